/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/conn_rig.h"

struct conn_rig it;

/* ---- the network ---- */

static const char *net_peer(const struct leat_conn *conn)
{
    assert_ptr_equal(conn, &it.conn);
    return "him";
}
const uint8_t *net_key(const struct leat_conn *conn)
{
    static const uint8_t key[LEAT_NET_KEY_BYTES] = {9, 8, 7};
    assert_ptr_equal(conn, &it.conn);
    return key;
}
static void net_account(struct leat_conn *conn, enum leat_net_account account)
{
    assert_ptr_equal(conn, &it.conn);
    said("account of %s", account == LEAT_NET_STRANGERS ? "strangers"
                          : account == LEAT_NET_CLIENTS ? "clients"
                                                        : "others");
}
static void net_pause(struct leat_conn *conn)
{
    assert_ptr_equal(conn, &it.conn);
    said("pause");
}
static void net_resume(struct leat_conn *conn)
{
    assert_ptr_equal(conn, &it.conn);
    said("resume");
}
static void net_close(struct leat_conn *conn)
{
    assert_ptr_equal(conn, &it.conn);
    said("close");
}
static size_t net_queued(const struct leat_conn *conn)
{
    return conn->queued;
}
static leat_err net_send_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    assert_ptr_equal(conn, &it.conn);
    said("copy %zu bytes%s", count, it.copies_full ? ": no room" : "");
    if (it.copies_full) return LEAT_E_AGAIN;
    assert_in_range(count, 0, sizeof it.sent);
    memcpy(it.sent, bytes, count);
    it.sent_bytes = count;
    return LEAT_OK;
}
static void net_send(struct leat_conn *conn, struct leat_send *send)
{
    assert_ptr_equal(conn, &it.conn);
    assert_int_equal(send->iov_count, 1);
    said("send %zu bytes", send->iovs[0].bytes);
    it.send = send;
}
static void net_move(struct leat_conn *conn, unsigned to_actor,
                     void *(*on_moved)(void *to_actor, struct leat_conn *conn, void *baggage,
                                       const struct leat_conn_handler **out_handler),
                     void *baggage)
{
    assert_ptr_equal(conn, &it.conn);
    said("move to %u", to_actor);
    it.on_moved = on_moved;
    it.baggage = baggage;
}

/* ---- what else it calls ---- */

bool leat_addresses_join(struct leat_addresses *addresses, const uint8_t key[LEAT_NET_KEY_BYTES],
                         uint32_t *out_bucket)
{
    assert_ptr_equal(addresses, &alone.node.addresses);
    said("address %u comes", key[0]);
    *out_bucket = CONN_BUCKET;
    return !it.crowded;
}
void leat_addresses_leave(struct leat_addresses *addresses, uint32_t bucket)
{
    assert_ptr_equal(addresses, &alone.node.addresses);
    said("address goes from %u", bucket);
}
bool leat_node_heap_admits_peer(const struct leat_node *node, uint64_t connections,
                                uint64_t of_address)
{
    assert_ptr_equal(node, &alone.node);
    said("memory beside %llu, %llu", (unsigned long long)connections,
         (unsigned long long)of_address);
    return !it.full;
}
bool leat_sharer_join(struct leat_core *core, struct leat_peer *peer)
{
    said("sharer on %u", core->index);
    if (!it.no_sharer) peer->sharer = &it.sharer;
    return !it.no_sharer;
}
void leat_sharer_leave(struct leat_core *core, struct leat_sharer *sharer)
{
    assert_ptr_equal(sharer, &it.sharer);
    said("no sharer on %u", core->index);
}
void leat_turn_init(struct leat_turn *turn)
{
    (void)turn;
    said("turn");
}
void leat_pace_peer_init(struct leat_pace_peer *pace)
{
    (void)pace;
    said("pace");
}
/* One call of a connection, by its name. */
#define SAYS(name, words)                                                                          \
    void name(struct leat_peer *peer)                                                              \
    {                                                                                              \
        assert_non_null(peer->core);                                                               \
        said("%s", words);                                                                         \
    }
SAYS(leat_peer_quiet_begin, "quiet begins")
SAYS(leat_peer_quiet_end, "quiet ends")
SAYS(leat_peer_expect, "expect")
SAYS(leat_peer_expect_nothing, "expect nothing")
SAYS(leat_peer_owes, "owes")
SAYS(leat_unpack_forget, "no batch")
SAYS(leat_pace_forget, "no turn")
SAYS(leat_stock_leave, "no structs")
SAYS(leat_stock_again, "structs again")
SAYS(leat_output_leave, "no output")
bool leat_peer_is_slow(struct leat_peer *peer)
{
    (void)peer;
    said("slow?");
    return it.slow;
}
bool leat_output_holds_share(const struct leat_peer *peer)
{
    (void)peer;
    return it.over_share;
}
void leat_output_add(struct leat_peer *peer, size_t bytes)
{
    (void)peer;
    said("output more %zu", bytes);
}
void leat_output_give(struct leat_peer *peer, size_t bytes)
{
    (void)peer;
    said("output less %zu", bytes);
}
void leat_peer_shed_strangers(struct leat_core *core)
{
    said("strangers on %u", core->index);
}

/* ---- its protocol ---- */

static enum leat_handled take(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                              size_t *out_taken, size_t *out_want)
{
    enum leat_handled handled = it.handled[it.takes++];
    assert_ptr_equal(peer, it.peer);
    assert_int_equal(*out_taken, 0);
    assert_int_equal(*out_want, 0);
    said("take at %u of %zu", bytes > 0 ? *data : 0, bytes);
    if (handled == LEAT_HANDLED || handled == LEAT_LEFT) *out_taken = it.frame_bytes;
    if (handled == LEAT_SHORT) *out_want = 99;
    return handled;
}
static void on_closed(struct leat_peer *peer)
{
    assert_null(peer->conn);
    said("on closed, %u under way", peer->requests);
}
static void on_moved(struct leat_peer *peer, uint32_t tag)
{
    said("on moved to %u, tag %u", peer->core->index, tag);
}
struct leat_protocol protocol = {.take = take, .on_closed = on_closed};

/* ---- the rig ---- */

void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    it.net = (struct leat_net){.peer = net_peer,
                               .key = net_key,
                               .account = net_account,
                               .pause = net_pause,
                               .resume = net_resume,
                               .close = net_close,
                               .queued_bytes = net_queued,
                               .send_copy = net_send_copy,
                               .send = net_send,
                               .move = net_move};
    protocol.on_moved = on_moved;
    for (unsigned i = 0; i < ALONE_CORES; i++) {
        alone.cores[i].net = &it.net;
        leat_list_init(&alone.cores[i].peers);
    }
    atomic_store(&alone.node.addresses.counts[CONN_BUCKET], 5);
    atomic_store(&alone.cores[0].counters.connections, 3);
}

void end(void)
{
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    alone_end();
}

bool try_open(void)
{
    it.peer = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *it.peer);
    assert_non_null(it.peer);
    snprintf(it.peer->name, sizeof it.peer->name, "client");
    return leat_peer_open(&alone.cores[0], it.peer, &it.conn, &protocol, &it.handler);
}

struct leat_peer *opened(void)
{
    begin();
    assert_true(try_open());
    said_enough();
    return it.peer;
}

uint64_t connections(unsigned core)
{
    return atomic_load(&alone.cores[core].counters.connections);
}

void closes(leat_err why)
{
    it.handler->on_closed(it.peer, &it.conn, why);
    assert_true(leat_list_empty(&alone.cores[0].peers));
    assert_int_equal(atomic_load(&alone.cores[0].counters.closed_peers), 0);
}
