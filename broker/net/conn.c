/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: hello, frames, answers, and connections that are not read from for a while. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/net/core.h"
#include "wire/message.h"

static size_t peer_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes);
static void peer_on_closed(void *user, struct leat_conn *conn, leat_err why);
static void *peer_on_moved(void *to_actor, struct leat_conn *conn, void *baggage,
                           const struct leat_conn_handler **out_handler);
static void peer_attach(struct leat_core *core, struct leat_peer *peer);
static void peer_detach(struct leat_peer *peer);

static const struct leat_conn_handler peer_handler = {NULL, peer_on_bytes, peer_on_closed};

/* ---- coming and going ---- */

static bool peer_has_memory(struct leat_core *core, const struct leat_peer *peer,
                            const struct leat_conn *conn)
{
    uint64_t now = atomic_load_explicit(&core->counters.connections, memory_order_relaxed);
    uint64_t of_address = leat_addresses_count(&core->node->addresses, peer->address);
    if (leat_node_heap_admits_peer(core->node, now, of_address)) return true;
    leat_node_log_summed(&core->closed_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                         "%s refused: what the memory budget leaves for connections is taken "
                         "(--memory)",
                         core->net->peer(conn));
    return false;
}

bool leat_peer_open(struct leat_core *core, struct leat_peer *peer, struct leat_conn *conn,
                    const struct leat_protocol *protocol,
                    const struct leat_conn_handler **out_handler)
{
    LEAT_ASSERT_OWNER(core);
    if (core->stopping) return false;
    if (!leat_addresses_join(&core->node->addresses, core->net->key(conn), &peer->address)) {
        leat_node_log_summed(&core->closed_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                             "%s refused: its address has as many connections as one may have "
                             "(--connections-per-address, and half of ulimit -n at most)",
                             core->net->peer(conn));
        return false;
    }
    peer->address_number = leat_key_number(core->net->key(conn));
    if (!peer_has_memory(core, peer, conn) || !leat_sharer_join(core, peer)) {
        leat_addresses_leave(&core->node->addresses, peer->address);
        return false;
    }
    struct leat_list *lists[] = {&peer->all,         &peer->slow,        &peer->owing,
                                 &peer->stock.link,  &peer->answers,     &peer->cut,
                                 &peer->quiet,       &peer->room.by_log, &peer->room.by_time,
                                 &peer->group_calls, &peer->limited,     &peer->locators,
                                 &peer->output.wait, &peer->output.keep, &peer->output.lasts};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_borrower_init(&peer->borrowed);
    leat_turn_init(&peer->unpack.turn);
    leat_pace_peer_init(&peer->pace);
    peer->protocol = protocol;
    peer->conn = conn;
    peer_attach(core, peer);
    core->net->account(conn, LEAT_NET_STRANGERS);
    leat_peer_shed_strangers(core);
    *out_handler = &peer_handler;
    return true;
}

static void peer_attach(struct leat_core *core, struct leat_peer *peer)
{
    peer->core = core;
    leat_list_push_back(&core->peers, &peer->all);
    leat_peer_quiet_begin(peer);
    atomic_fetch_add_explicit(&core->counters.connections, 1, memory_order_relaxed);
}

static void peer_detach(struct leat_peer *peer)
{
    struct leat_core *core = peer->core;
    leat_peer_expect_nothing(peer);
    leat_peer_quiet_end(peer);
    leat_unpack_forget(peer);
    leat_pace_forget(peer);
    leat_list_remove(&peer->all);
    leat_list_remove(&peer->slow);
    leat_list_remove(&peer->owing);
    leat_stock_leave(peer);
    leat_output_leave(peer);
    atomic_fetch_sub_explicit(&core->counters.connections, 1, memory_order_relaxed);
}

/* Peers come and go, and whose fault it was is theirs to say. Why this side ended one is its own. */
static void closed_tell(struct leat_peer *peer, leat_err why)
{
    const char *text = why == LEAT_E_TIMEOUT ? "it sends too slowly, and others need the memory"
                       : why == LEAT_E_TOO_MANY
                           ? "what it has sent finds no room on the core that it goes to"
                           : NULL;
    if (!text) return;
    leat_node_log_summed(&peer->core->closed_sum, leat_core_now(peer->core), LEAT_NODE_LOG_INFO,
                         "%s (%s) closed: %s", peer->core->net->peer(peer->conn), peer->name, text);
}

static void peer_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct leat_peer *peer = user;
    LEAT_ASSERT(peer->conn == conn);
    closed_tell(peer, why);
    peer->conn = NULL;
    leat_addresses_leave(&peer->core->node->addresses, peer->address);
    leat_peer_begin(peer);
    peer_detach(peer);
    atomic_fetch_add_explicit(&peer->core->counters.closed_peers, 1, memory_order_relaxed);
    peer->protocol->on_closed(peer);
    leat_peer_end(peer);
}

void leat_peer_known(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    leat_peer_quiet_end(peer);
    peer->greeted = true;
    leat_peer_quiet_begin(peer);
    peer->core->net->account(peer->conn, LEAT_NET_CLIENTS);
}

void leat_peer_end(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    LEAT_ASSERT_CMP(peer->requests, >, 0);
    peer->requests--;
    if (peer->conn == NULL) {
        if (peer->requests > 0) return;
        leat_list_remove(&peer->answers);
        leat_sharer_leave(peer->core, peer->sharer);
        atomic_fetch_sub_explicit(&peer->core->counters.closed_peers, 1, memory_order_relaxed);
        leat_mem_free(peer);
        return;
    }
    if (peer->paused == 0) return;
    /* The next request is the only one under way */
    if (peer->requests == 0) leat_stock_again(peer);
    if ((peer->paused & LEAT_PAUSE_REQUESTS) != 0 && peer->requests <= LEAT_PEER_REQUESTS_MAX / 2 &&
        !leat_output_holds_share(peer))
        leat_peer_resume(peer, LEAT_PAUSE_REQUESTS);
}

void leat_peer_close_all(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_LIST_EACH(&core->peers, link)
    {
        struct leat_peer *peer = LEAT_CONTAINER(link, struct leat_peer, all);
        core->net->close(peer->conn);
    }
}

/* ---- reading ---- */

static size_t peer_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    struct leat_peer *peer = user;
    struct leat_core *core = peer->core;
    size_t used = 0;
    (void)conn;

    *want_bytes = 0;
    peer->heard = true;
    while (peer->paused == 0) {
        if (core->net->queued_bytes(peer->conn) > 0 && leat_peer_is_slow(peer)) break;
        if (peer->requests >= LEAT_PEER_REQUESTS_MAX || leat_output_holds_share(peer)) {
            leat_peer_pause(peer, LEAT_PAUSE_REQUESTS);
            break;
        }
        size_t want = 0, taken = 0;
        enum leat_handled handled =
            peer->protocol->take(peer, data + used, bytes - used, &taken, &want);
        if (handled == LEAT_SHORT) {
            if (bytes > used) leat_peer_expect(peer);
            *want_bytes = want;
            break;
        }
        /* The frame is whole, and the peer was not moved */
        if (peer->core == core) leat_peer_expect_nothing(peer);
        if (handled == LEAT_HELD) break;
        used += taken;
        if (handled == LEAT_LEFT) break;
    }
    return used;
}

void leat_peer_move(struct leat_peer *peer, uint32_t core)
{
    LEAT_ASSERT_OWNER(peer->core);
    const struct leat_net *net = peer->core->net;
    LEAT_ASSERT_CMP(peer->requests, ==, 0);
    peer_detach(peer);
    leat_list_remove(&peer->answers);
    leat_sharer_leave(peer->core, peer->sharer);
    peer->core = &peer->core->node->cores[core];
    peer->append_now = NULL;
    net->move(peer->conn, core, peer_on_moved, peer);
}

static void *peer_on_moved(void *to_actor, struct leat_conn *conn, void *baggage,
                           const struct leat_conn_handler **out_handler)
{
    struct leat_core *core = to_actor;
    struct leat_peer *peer = baggage;
    LEAT_ASSERT(peer->core == core);
    if (core->stopping || !leat_sharer_join(core, peer)) {
        leat_addresses_leave(&core->node->addresses, peer->address);
        leat_mem_free(peer);
        return NULL;
    }
    peer->conn = conn;
    peer_attach(core, peer);
    if (peer->protocol->on_moved != NULL) peer->protocol->on_moved(peer, peer->moved_request);
    *out_handler = &peer_handler;
    return peer;
}

/* ---- writing ---- */

void leat_peer_send_bytes(struct leat_peer *peer, const void *bytes, size_t count)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->conn == NULL || peer->closing) return;
    leat_peer_owes(peer);
    if (peer->core->net->send_copy(peer->conn, bytes, count) == LEAT_OK) return;
    /* The connection's own buffer is full. That is rare: a buffer of the answer's own will do. */
    uint8_t *buffer = NULL;
    if (peer->core->net->queued_bytes(peer->conn) < LEAT_PEER_QUEUED_BYTES_HARD)
        buffer = leat_mem_calloc(LEAT_MEM_BROKER, 1, count);
    if (buffer != NULL) {
        memcpy(buffer, bytes, count);
        leat_peer_send_large(peer, buffer, count);
        return;
    }
    leat_node_log_summed(&peer->core->closed_sum, leat_core_now(peer->core), LEAT_NODE_LOG_WARN,
                         "%s (%s) does not take its answers; connection closed",
                         peer->core->net->peer(peer->conn), peer->name);
    peer->closing = true;
    leat_peer_pause(peer, LEAT_PAUSE_CLOSING);
    peer->core->net->close(peer->conn);
}

void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, flags, request, control_bytes,
                      payload_bytes);
    leat_peer_send_bytes(peer, out, LEAT_FRAME_HEADER_BYTES + (size_t)control_bytes);
}

static uint32_t peer_encode_refusal(uint8_t *out, size_t capacity, enum leat_kind kind,
                                    uint32_t request, leat_err code, const char *text)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES,
                         capacity - LEAT_FRAME_HEADER_BYTES);
    leat_msg_error_encode(&writer, code, text != NULL ? text : leat_err_text(code));
    LEAT_ASSERT(!writer.overflow);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR,
                      request, writer.used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer.used;
}

enum { REFUSAL_BYTES_MAX = LEAT_FRAME_HEADER_BYTES + LEAT_ERROR_TEXT_BYTES + 64 };

void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *text)
{
    LEAT_ASSERT_OWNER(peer->core);
    uint8_t out[REFUSAL_BYTES_MAX];
    leat_peer_send_bytes(peer, out,
                         peer_encode_refusal(out, sizeof out, kind, request, code, text));
}

/* A last answer, then the end. */
struct peer_farewell {
    struct leat_send send;
    struct leat_iov iov;
    struct leat_peer *peer;
    uint8_t bytes[REFUSAL_BYTES_MAX];
};

static void peer_on_farewell_sent(struct leat_send *send, leat_err rc)
{
    struct peer_farewell *farewell = send->owner;
    struct leat_peer *peer = farewell->peer;
    (void)rc; /* closed either way */
    if (peer->conn != NULL) peer->core->net->close(peer->conn);
    leat_mem_free(farewell);
    leat_peer_end(peer);
}

void leat_peer_refuse_and_close(struct leat_peer *peer, uint16_t kind, uint32_t request,
                                leat_err code, const char *text)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    leat_node_log_summed(&core->closed_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                         "%s (%s) refused and closed: %s", core->net->peer(peer->conn),
                         peer->greeted ? peer->name : "no hello", text);
    struct peer_farewell *farewell = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *farewell);
    leat_peer_pause(peer, LEAT_PAUSE_CLOSING);
    if (farewell == NULL) {
        peer->closing = true;
        peer->core->net->close(peer->conn);
        return;
    }
    farewell->peer = peer;
    farewell->iov.base = farewell->bytes;
    farewell->iov.bytes = peer_encode_refusal(farewell->bytes, sizeof farewell->bytes,
                                              (enum leat_kind)kind, request, code, text);
    farewell->send.iovs = &farewell->iov;
    farewell->send.iov_count = 1;
    farewell->send.on_sent = peer_on_farewell_sent;
    farewell->send.owner = farewell;
    leat_peer_begin(peer);
    peer->closing = true;
    leat_peer_owes(peer);
    peer->core->net->send(peer->conn, &farewell->send);
}

struct peer_large {
    struct leat_send send;
    struct leat_iov iov;
    struct leat_peer *peer;
    uint8_t *buffer;
};

static void peer_on_large_sent(struct leat_send *send, leat_err rc)
{
    struct peer_large *large = send->owner;
    (void)rc; /* the peer learns of its end by on_closed */
    struct leat_peer *peer = large->peer;
    leat_output_give(peer, large->iov.bytes);
    leat_mem_free(large->buffer);
    leat_mem_free(large);
    leat_peer_end(peer);
}

void leat_peer_send_large(struct leat_peer *peer, uint8_t *buffer, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct peer_large *large = NULL;
    if (peer->conn != NULL && !peer->closing)
        large = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *large);
    if (large == NULL) {
        leat_mem_free(buffer);
        if (peer->conn != NULL) peer->core->net->close(peer->conn);
        return;
    }
    large->peer = peer;
    large->buffer = buffer;
    large->iov.base = buffer;
    large->iov.bytes = bytes;
    large->send.iovs = &large->iov;
    large->send.iov_count = 1;
    large->send.on_sent = peer_on_large_sent;
    large->send.owner = large;
    leat_output_add(peer, bytes);
    leat_peer_begin(peer);
    leat_peer_owes(peer);
    peer->core->net->send(peer->conn, &large->send);
}
