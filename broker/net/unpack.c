/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection has a compressed batch checked next; a check costs a core a thousand times as much as an append.
 * Addresses have turns, and of each address its connections, by the bytes that were uncompressed for them. A turn of
 * the event loop uncompresses a limited number of bytes, and one piece more; a batch goes on in the next turn where
 * it ended, and no other batch begins meanwhile.
 *
 * A connection's own core checks its batches, also for logs of other cores: connections wait, not logs. */
#include "broker/net/unpack.h"

#include "base/assert.h"
#include "base/mem.h"
#include "broker/net/core.h"
#include "wire/unpack.h"

enum {
    /* 0.1 to 1 ms. Sixteen of them may follow each other before sockets are looked at again. */
    UNPACK_TURN_BYTES = 256 * 1024,
    UNPACK_COST_MIN = 4096,                  /* of a batch, however small */
    UNPACK_TRY_BYTES = LEAT_BATCH_BYTES_MAX, /* an honest batch is hardly larger */
};

leat_err leat_unpack_init(struct leat_core *core)
{
    struct leat_unpack *unpack = &core->unpack;
    leat_turns_init(&unpack->addresses);
    unpack->left = UNPACK_TURN_BYTES;
    unpack->unpacker = leat_unpacker_create(LEAT_UNPACKER_BYTES);
    return unpack->unpacker != NULL ? LEAT_OK : LEAT_E_NO_MEMORY;
}

void leat_unpack_fini(struct leat_core *core)
{
    leat_unpacker_destroy(core->unpack.unpacker);
}

void leat_unpack_turn_end(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    core->unpack.left = UNPACK_TURN_BYTES;
}

void leat_unpack_forget(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    leat_unpack_leave(peer);
    peer->unpack.due = peer->unpack.tried = false;
    leat_turn_init(&peer->unpack.turn);
}

/* ---- turns ---- */

static struct leat_peer *next_peer(struct leat_unpack *unpack)
{
    struct leat_turn *turn = leat_address_turns_next(&unpack->addresses);
    return turn != NULL ? LEAT_CONTAINER(turn, struct leat_peer, unpack.turn) : NULL;
}

static void line_leave(struct leat_peer *peer)
{
    if (peer->sharer->unpack == NULL) return;
    leat_address_turns_leave(&peer->core->unpack.addresses, peer->sharer->unpack,
                             &peer->unpack.turn);
}

static void unpack_deliver(void *actor, struct leat_mail *mail);

static void mail_myself(struct leat_core *core)
{
    struct leat_unpack *unpack = &core->unpack;
    if (unpack->mailed) return;
    unpack->mailed = true;
    leat_core_mail(core, core->index, &unpack->mail, unpack_deliver);
}

/* The peer's frame comes again, unless the peer is paused for another reason. */
static bool call(struct leat_peer *peer)
{
    leat_list_remove(&peer->room.by_time);
    leat_peer_resume(peer, LEAT_PAUSE_ROOM);
    return peer->paused == 0;
}

/* SUBTLE: a batch that is half checked and whose connection is not read from makes no other batch wait. Else (1) a
 * connection has a large batch half checked; (2) the connection takes no answers, so it is not read from; (3) until
 * it is closed for that, no other batch would be checked on this core. So the check ends there, and begins anew when
 * the connection is read from again. */
static void unpack_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_unpack *unpack = &core->unpack;
    (void)mail;
    unpack->mailed = false;
    if (unpack->at != NULL && !call(unpack->at)) unpack->at = NULL;
    struct leat_peer *peer = unpack->at == NULL ? next_peer(unpack) : NULL;
    if (peer != NULL) {
        line_leave(peer);
        peer->unpack.due = true;
        (void)call(peer); /* a connection that is not read from asks later */
    }
    if (unpack->addresses.count > 0) mail_myself(core);
}

bool leat_unpack_waits(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->core->unpack.at == peer || !leat_list_empty(&peer->unpack.turn.link);
}

void leat_unpack_leave(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_unpack *unpack = &peer->core->unpack;
    line_leave(peer);
    if (unpack->at == peer) unpack->at = NULL;
}

static bool may_begin(struct leat_peer *peer)
{
    const struct leat_unpack *unpack = &peer->core->unpack;
    bool due = peer->unpack.due || unpack->addresses.count == 0;
    peer->unpack.due = false;
    return due && unpack->at == NULL && unpack->left > 0;
}

static void wait_in_line(struct leat_peer *peer)
{
    leat_address_turns_wait(&peer->core->unpack.addresses, peer->sharer->unpack,
                            &peer->unpack.turn);
    mail_myself(peer->core);
}

/* SUBTLE: a connection that has used nothing yet may want much. (1) 64 connections come, each with a batch that takes
 * 50 ms. (2) One more connection comes with a small batch. (3) No connection has used anything, so the small batch
 * would be the 65th. So a batch of more than UNPACK_TRY_BYTES makes way for connections whose batches are not known
 * yet, and begins anew after these. It makes way once, or its check would never end. */
static bool makes_way(struct leat_peer *peer)
{
    struct leat_unpack *unpack = &peer->core->unpack;
    if (peer->unpack.tried || unpack->at_bytes < UNPACK_TRY_BYTES) return false;
    const struct leat_peer *next = next_peer(unpack);
    return next != NULL && !next->unpack.tried;
}

leat_err leat_unpack(struct leat_peer *peer, struct leat_batch *batch, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    struct leat_unpack *unpack = &core->unpack;
    if (leat_address_turns_of(&peer->sharer->unpack) == NULL)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to check a compressed batch");
    if (unpack->at != peer) {
        if (!may_begin(peer)) {
            wait_in_line(peer);
            return LEAT_E_AGAIN;
        }
        leat_unpacker_begin(unpack->unpacker, batch);
        unpack->at_bytes = 0;
    } else if (unpack->left <= 0) {
        mail_myself(core);
        return LEAT_E_AGAIN;
    }
    size_t cost;
    leat_err rc = leat_unpacker_step(unpack->unpacker, batch, (size_t)unpack->left, &cost, error);
    unpack->at = rc == LEAT_E_AGAIN ? peer : NULL;
    unpack->at_bytes += cost;
    if (cost < UNPACK_COST_MIN) cost = UNPACK_COST_MIN;
    unpack->left -= (int64_t)cost;
    leat_address_turns_charge(&unpack->addresses, peer->sharer->unpack, &peer->unpack.turn, cost);
    if (rc != LEAT_E_AGAIN) {
        peer->unpack.tried = false;
    } else if (makes_way(peer)) {
        unpack->at = NULL;
        peer->unpack.tried = true;
        wait_in_line(peer);
    } else {
        mail_myself(core);
    }
    return rc;
}
