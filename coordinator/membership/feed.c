/* SPDX-License-Identifier: Apache-2.0 */
/* Learners: nodes that do not vote and have the same tables.
 *
 * A learner asks any voter (FEED), which sends committed entries from an index on, or, if the voter's log begins
 * later, a snapshot of the tables first. One message at a time, answered when it is applied. A learner keeps nothing
 * on disk: it asks from the beginning when it starts. */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "coordinator/membership/applied.h"
#include "coordinator/membership/feed.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/voters.h"

/* FEED [from]
 * ENTRIES [first, count] + for each [u32 bytes, u32 type] and the bytes
 * SNAPSHOT [index, total, offset] + the chunk */

enum { CONTROL_BYTES_MAX = 64 };

/* ---- a voter's side ---- */

struct helping {
    struct leat_link_call call;
    struct leat_iov iov;
    struct leat_coordinator *coordinator;
    struct co_peer *peer;
    bool snapshot;
    size_t bytes;
    uint64_t next; /* entry after this */
    uint8_t control[CONTROL_BYTES_MAX];
    uint8_t payload[];
};

static void feed_stop(struct co_peer *peer)
{
    leat_mem_free(peer->feed_snapshot);
    peer->feed_snapshot = NULL;
    peer->feed_bytes = peer->feed_offset = 0;
    peer->feeding = false;
}

void co_feed_wanted(struct leat_coordinator *coordinator, struct co_peer *peer, uint64_t from)
{
    LEAT_ASSERT_OWNER(coordinator);
    (void)coordinator;
    feed_stop(peer);
    peer->feeding = true;
    peer->feed_next = from ? from : 1;
}

void co_feed_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    LEAT_ASSERT_OWNER(coordinator);
    feed_stop(peer);
    peer->feed_busy = false;
    if (coordinator->feeder == peer) coordinator->feeder = NULL;
}

static void helping_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                         const struct leat_error *error)
{
    struct helping *helping = call->owner;
    struct co_peer *peer = helping->peer;
    (void)answer;
    (void)error;
    if (rc == LEAT_E_CANCELLED) { /* the coordinator closes, and the peer is gone */
        leat_mem_free(helping);
        return;
    }
    /* Calls end before on_down, so the peer is still there. */
    peer->feed_busy = false;
    if (rc == LEAT_OK && helping->snapshot && peer->feed_snapshot) {
        peer->feed_offset += helping->bytes;
        if (peer->feed_offset == peer->feed_bytes) {
            peer->feed_next = peer->feed_index + 1;
            leat_mem_free(peer->feed_snapshot);
            peer->feed_snapshot = NULL;
        }
    } else if (rc == LEAT_OK) {
        if (peer->feeding && !helping->snapshot) peer->feed_next = helping->next;
    } else {
        feed_stop(peer);
        /* The learner must ask anew. It has sent an error, or hears that the link is cut. */
        if (rc == LEAT_E_TIMEOUT) leat_link_cut(peer->link, rc, "a learner took too long");
    }
    leat_mem_free(helping);
}

static struct helping *helping_make(struct leat_coordinator *coordinator, struct co_peer *peer,
                                    size_t bytes)
{
    struct helping *helping = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *helping + bytes);
    if (!helping) return NULL;
    helping->coordinator = coordinator;
    helping->peer = peer;
    helping->bytes = bytes;
    return helping;
}

static void helping_send(struct helping *helping, uint16_t kind, uint32_t control_bytes)
{
    struct co_peer *peer = helping->peer;
    helping->iov = (struct leat_iov){helping->payload, helping->bytes};
    helping->call = (struct leat_link_call){.kind = kind,
                                            .control = helping->control,
                                            .control_bytes = control_bytes,
                                            .payload = &helping->iov,
                                            .payload_count = helping->bytes ? 1 : 0,
                                            .timeout_us = CO_CALL_US,
                                            .on_done = helping_done,
                                            .owner = helping};
    if (leat_link_call(peer->link, &helping->call) == LEAT_OK)
        peer->feed_busy = true;
    else
        leat_mem_free(helping); /* tried again at the next turn */
}

static void snapshot_begin(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    unsigned under_way = 0;
    LEAT_LIST_EACH(&coordinator->peers, at)
    if (LEAT_CONTAINER(at, struct co_peer, list)->feed_snapshot) under_way++;
    if (under_way >= CO_FEED_SNAPSHOTS_MAX) return; /* tried again at the next turn */
    if (leat_machine_snapshot(&coordinator->machine, &peer->feed_snapshot, &peer->feed_bytes) !=
        LEAT_OK) {
        peer->feed_snapshot = NULL;
        return;
    }
    peer->feed_index = coordinator->applied;
    peer->feed_offset = 0;
}

static void snapshot_chunk(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    size_t bytes = peer->feed_bytes - peer->feed_offset;
    if (bytes > CO_CHUNK_BYTES) bytes = CO_CHUNK_BYTES;
    struct helping *helping = helping_make(coordinator, peer, bytes);
    if (!helping) return;
    helping->snapshot = true;
    memcpy(helping->payload, peer->feed_snapshot + peer->feed_offset, bytes);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, helping->control, sizeof helping->control);
    co_snapshot_said_write(
        &writer, &(struct co_snapshot_said){peer->feed_index, peer->feed_bytes, peer->feed_offset});
    LEAT_ASSERT(!writer.overflow);
    helping_send(helping, CO_KIND_SNAPSHOT, writer.used);
}

static void entries_send(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    size_t bytes = 0;
    uint32_t count = 0;
    for (uint64_t i = peer->feed_next; i <= coordinator->applied; i++, count++) {
        const struct leat_raft_entry *entry = leat_raft_log_get(&coordinator->drive.log, i);
        if (!entry || (count > 0 && bytes + entry->bytes > CO_FEED_BYTES)) break;
        bytes += CO_ENTRIES_HEAD_BYTES + entry->bytes;
    }
    if (count == 0) {
        snapshot_begin(coordinator, peer);
        return;
    }
    struct helping *helping = helping_make(coordinator, peer, bytes);
    if (!helping) return;
    uint8_t *at = helping->payload;
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_raft_entry *entry =
            leat_raft_log_get(&coordinator->drive.log, peer->feed_next + i);
        co_entry_head_write(at, CO_ENTRIES_HEAD_BYTES,
                            &(struct co_entry_head){.bytes = entry->bytes, .type = entry->type});
        at += CO_ENTRIES_HEAD_BYTES;
        if (entry->bytes) memcpy(at, entry->data, entry->bytes);
        at += entry->bytes;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, helping->control, sizeof helping->control);
    co_entries_said_write(&writer, &(struct co_entries_said){peer->feed_next, count});
    LEAT_ASSERT(!writer.overflow);
    helping->next = peer->feed_next + count;
    helping_send(helping, CO_KIND_ENTRIES, writer.used);
}

void co_feed_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!coordinator->votes) return;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (!peer->feeding || peer->feed_busy || !leat_link_is_up(peer->link)) continue;
        if (!peer->feed_snapshot && peer->feed_next <= coordinator->applied)
            entries_send(coordinator, peer);
        if (peer->feed_snapshot && !peer->feed_busy) snapshot_chunk(coordinator, peer);
    }
}

/* ---- a learner's side ---- */

struct asking {
    struct leat_link_call call;
    struct leat_coordinator *coordinator;
    struct co_peer *peer;
    uint8_t control[CONTROL_BYTES_MAX];
};

static void feed_in_drop(struct leat_coordinator *coordinator)
{
    leat_mem_free(coordinator->feed_in);
    coordinator->feed_in = NULL;
    coordinator->feed_in_total = coordinator->feed_in_offset = 0;
}

static void asking_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct asking *asking = call->owner;
    struct leat_coordinator *coordinator = asking->coordinator;
    (void)answer;
    (void)error;
    if (rc != LEAT_OK && rc != LEAT_E_CANCELLED && coordinator->feeder == asking->peer)
        coordinator->feeder = NULL;
    leat_mem_free(asking);
}

static void feed_ask(struct leat_coordinator *coordinator, struct co_peer *peer)
{
    struct asking *asking = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *asking);
    if (!asking) return;
    asking->coordinator = coordinator;
    asking->peer = peer;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, asking->control, sizeof asking->control);
    co_feed_said_write(&writer, &(struct co_feed_said){coordinator->applied + 1});
    asking->call = (struct leat_link_call){.kind = CO_KIND_FEED,
                                           .control = asking->control,
                                           .control_bytes = writer.used,
                                           .timeout_us = CO_CALL_US,
                                           .on_done = asking_done,
                                           .owner = asking};
    feed_in_drop(coordinator);
    if (leat_link_call(peer->link, &asking->call) != LEAT_OK) {
        leat_mem_free(asking);
        return;
    }
    coordinator->feeder = peer;
    coordinator->current = true;
    coordinator->fed_us = co_now(coordinator);
}

static bool may_feed(const struct leat_coordinator *coordinator, const struct co_peer *peer)
{
    static const uint8_t none[16];
    const uint8_t *wanted = leat_links_identity(coordinator->links)->cluster_id;
    return co_peer_votes(coordinator, peer) &&
           (peer->state.role == LEAT_VOTER_FOLLOWER || peer->state.role == LEAT_VOTER_LEADER) &&
           memcmp(peer->state.cluster_id, none, sizeof none) != 0 &&
           (memcmp(wanted, none, sizeof none) == 0 ||
            memcmp(wanted, peer->state.cluster_id, sizeof none) == 0);
}

/* The leader says which entry it has applied. A feeder that has fed less may be dead or cut off. */
void co_feed_behind(struct leat_coordinator *coordinator, struct co_peer *leader, uint64_t index)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!co_learns(coordinator) || coordinator->applied >= index || coordinator->feeder == leader ||
        !may_feed(coordinator, leader))
        return;
    feed_ask(coordinator, leader);
}

void co_feed_tick(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!co_learns(coordinator)) {
        coordinator->feeder = NULL;
        return;
    }
    /* A voter that is cut off from the others goes on answering pings and hears of nothing. When
     * something was asked for and nothing comes, or a leader of a later term is known, another voter
     * may know more. */
    const struct co_peer *leader = co_peer_leader(coordinator);
    bool old =
        leader && coordinator->feeder && coordinator->feeder->state.term < leader->state.term;
    bool starved = coordinator->feeder && (old || !leat_list_empty(&coordinator->pending)) &&
                   co_now(coordinator) > coordinator->fed_us + 2 * CO_RESEND_US;
    if (coordinator->feeder && !starved) return;
    struct co_peer *candidates[LEAT_VOTERS_MAX];
    uint32_t count = 0;
    LEAT_LIST_EACH(&coordinator->peers, at)
    {
        struct co_peer *peer = LEAT_CONTAINER(at, struct co_peer, list);
        if (count < LEAT_VOTERS_MAX && peer != coordinator->feeder && may_feed(coordinator, peer))
            candidates[count++] = peer;
    }
    if (count == 0) return;
    uint64_t dice = coordinator->env->random->next(coordinator->env->random->ctx);
    feed_ask(coordinator, candidates[dice % count]);
}

static void learner_fail(struct leat_coordinator *coordinator, leat_err rc)
{
    if (coordinator->failed != LEAT_OK) return;
    coordinator->failed = rc;
    static const char why[] = "the coordinator has stopped: an entry from its voters can't be "
                              "applied; is this program older than theirs?";
    memcpy(coordinator->failed_why, why, sizeof why);
    co_requests_fail(coordinator, rc, why);
}

static void configuration_learnt(struct leat_coordinator *coordinator, const uint8_t *bytes,
                                 size_t count)
{
    struct raft_buffer buffer = {.base = (void *)(uintptr_t)bytes, .len = count};
    struct raft_configuration configuration;
    if (!leat_raft_configuration_valid(bytes, count) ||
        raft_configuration_decode(&buffer, &configuration) != 0)
        return;
    co_voters_applied(coordinator, &configuration);
    co_peers_want(coordinator);
    raft_configuration_close(&configuration);
}

static leat_err entries_apply(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                              uint32_t count)
{
    const uint8_t *at = frame->payload, *end = at + frame->payload_bytes;
    for (uint32_t i = 0; i < count; i++) {
        if (end - at < CO_ENTRIES_HEAD_BYTES) return LEAT_E_INVALID;
        struct co_entry_head head = co_entry_head_read(at, CO_ENTRIES_HEAD_BYTES);
        at += CO_ENTRIES_HEAD_BYTES;
        if (head.bytes > (size_t)(end - at)) return LEAT_E_INVALID;
        coordinator->applied++;
        if (head.type == RAFT_CHANGE) configuration_learnt(coordinator, at, head.bytes);
        if (head.type == RAFT_COMMAND) {
            leat_err rc = co_apply(coordinator, at, head.bytes);
            if (rc != LEAT_OK) {
                learner_fail(coordinator, rc);
                return rc;
            }
        }
        at += head.bytes;
    }
    return at == end ? LEAT_OK : LEAT_E_INVALID;
}

static bool from_feeder(struct leat_coordinator *coordinator, const struct co_peer *peer,
                        const struct leat_link_ticket *ticket)
{
    if (co_learns(coordinator) && peer == coordinator->feeder && coordinator->failed == LEAT_OK)
        return true;
    leat_link_answer_error(coordinator->links, ticket, LEAT_E_AGAIN, "nothing is wanted of you");
    return false;
}

void co_feed_entries(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!from_feeder(coordinator, peer, ticket)) return;
    struct co_entries_said said;
    leat_err rc = co_entries_said_decode(frame->control, frame->control_bytes, &said);
    coordinator->fed_us = co_now(coordinator);
    if (rc == LEAT_OK)
        rc = said.first == coordinator->applied + 1 ? entries_apply(coordinator, frame, said.count)
                                                    : LEAT_E_INVALID;
    if (rc == LEAT_OK) {
        leat_link_answer(coordinator->links, ticket, "\x90", 1);
        return;
    }
    coordinator->feeder = NULL; /* the next tick asks any voter, from the last applied entry on */
    leat_link_answer_error(coordinator->links, ticket, rc, "not the entries that follow");
}

void co_feed_snapshot(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(coordinator);
    if (!from_feeder(coordinator, peer, ticket)) return;
    struct co_snapshot_said said = {0};
    leat_err read = co_snapshot_said_decode(frame->control, frame->control_bytes, &said);
    uint64_t index = said.index, total = said.total, offset = said.offset;
    coordinator->fed_us = co_now(coordinator);
    bool fits = read == LEAT_OK && total > 0 && total <= CO_SNAPSHOT_BYTES_MAX &&
                frame->payload_bytes > 0 && offset < total &&
                frame->payload_bytes <= total - offset && index > coordinator->applied;
    if (fits && offset == 0) {
        feed_in_drop(coordinator);
        coordinator->feed_in_total = total;
        coordinator->feed_in_index = index;
    }
    if (!fits || offset != coordinator->feed_in_offset || total != coordinator->feed_in_total ||
        index != coordinator->feed_in_index) {
        coordinator->feeder = NULL;
        leat_link_answer_error(coordinator->links, ticket, LEAT_E_INVALID, "not the next chunk");
        return;
    }
    leat_err rc = co_chunk_add(&coordinator->feed_in, &coordinator->feed_in_offset, total, frame);
    if (rc != LEAT_OK) {
        feed_in_drop(coordinator);
        coordinator->feeder = NULL;
        leat_link_answer_error(coordinator->links, ticket, rc, "no memory for the snapshot");
        return;
    }
    if (coordinator->feed_in_offset == total) {
        rc = co_restore(coordinator, coordinator->feed_in, total);
        feed_in_drop(coordinator);
        if (rc != LEAT_OK) {
            learner_fail(coordinator, rc);
            coordinator->feeder = NULL;
            leat_link_answer_error(coordinator->links, ticket, rc, "not a snapshot of the tables");
            return;
        }
        coordinator->applied = index;
    }
    leat_link_answer(coordinator->links, ticket, "\x90", 1);
}
