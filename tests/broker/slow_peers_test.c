/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that say nothing, leave frames unfinished or take no answers: each has its limit, and no less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_hash.h"
#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/net/core.h"
#include "broker/node/hooks.h"
#include "tests/broker/parts.h"

enum { PEERS = LEAT_CORE_STRANGERS_MAX + 2, SECOND = 1000 * 1000 };

/* The network, as far as it is asked here. */
struct leat_conn {
    size_t queued;
    bool closed, paused;
    enum leat_net_account account;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
};

static size_t conn_queued(const struct leat_conn *conn)
{
    return conn->queued;
}
static size_t conn_copied(const struct leat_conn *conn)
{
    (void)conn;
    return 0;
}
static size_t conns_copied(void *ctx)
{
    (void)ctx;
    return 0;
}
static void conn_close(struct leat_conn *conn)
{
    conn->closed = true;
}
static void conn_pause(struct leat_conn *conn)
{
    conn->paused = true;
}
static void conn_resume(struct leat_conn *conn)
{
    conn->paused = false;
}
static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "a peer";
}
static void conn_account(struct leat_conn *conn, enum leat_net_account account)
{
    conn->account = account;
}
static const uint8_t *conn_key(const struct leat_conn *conn)
{
    static const uint8_t same[LEAT_NET_KEY_BYTES];
    (void)conn;
    return same;
}
static uint64_t draw(void *ctx)
{
    (void)ctx;
    return 7;
}
static const struct leat_protocol native = {0}, idle = {.idle_us_max = 600ull * SECOND};

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->net = (struct leat_net){.ctx = desk,
                                  .queued_bytes = conn_queued,
                                  .copied_bytes = conn_copied,
                                  .copied_bytes_all = conns_copied,
                                  .pause = conn_pause,
                                  .resume = conn_resume,
                                  .close = conn_close,
                                  .account = conn_account,
                                  .key = conn_key,
                                  .peer = conn_peer};
    desk->node.options.cores = 1;
    desk->node.options.memory_bytes = 1ull << 30;
    struct leat_core *core = &desk->core;
    desk->node.hooks = &leat_core_hooks;
    core_world_set(core, &desk->world, &desk->node, &desk->net);
    struct leat_list *lists[] = {&core->slow_peers,
                                 &core->owing_peers,
                                 &core->answer_peers,
                                 &core->cut_peers,
                                 &core->strangers,
                                 &core->idle_peers,
                                 &core->data->deferred_fetches,
                                 &core->data->ready_fetches};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_output_init(core);
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        struct leat_list *own[] = {&peer->slow, &peer->owing,       &peer->answers,   &peer->quiet,
                                   &peer->cut,  &peer->output.wait, &peer->stock.link};
        for (size_t j = 0; j < sizeof own / sizeof *own; j++)
            leat_list_init(own[j]);
        peer->core = core;
        peer->conn = &desk->conns[i];
        peer->protocol = &native;
    }
    return desk;
}

static void pass(struct desk *desk, uint64_t us)
{
    for (uint64_t end_us = desk->world.now_us + us; desk->world.now_us < end_us;) {
        uint64_t step_us = end_us - desk->world.now_us;
        desk->world.now_us += step_us < SECOND ? step_us : SECOND;
        leat_peer_tick(&desk->core);
    }
}

/* Goal: memory for connections that have not said who they are is not on the clients' account; an address has a limited
 * number of connections. */
static void who_is_not_known_is_counted_apart(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const struct leat_random random = {NULL, draw, NULL};
    const struct leat_conn_handler *handler = NULL;
    leat_list_init(&desk->core.peers);
    leat_addresses_init(&desk->node.addresses, &random, 2);
    desk->node.cores = &desk->core;
    for (unsigned i = 0; i < 3; i++) {
        desk->conns[i].account = LEAT_NET_CLIENTS;
        assert_int_equal(
            leat_peer_open(&desk->core, &desk->peers[i], &desk->conns[i], &native, &handler),
            i < 2);
    }
    assert_non_null(handler);
    assert_int_equal(desk->conns[0].account, LEAT_NET_STRANGERS);
    assert_int_equal(desk->core.stranger_count, 2);
    leat_peer_known(&desk->peers[0]);
    assert_int_equal(desk->conns[0].account, LEAT_NET_CLIENTS);
    assert_int_equal(desk->core.stranger_count, 1);
    for (unsigned i = 0; i < 2; i++)
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    free(desk);
}

/* One request of a byte. */
static enum leat_handled take_one(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                  size_t *out_taken, size_t *out_want)
{
    (void)data;
    *out_taken = *out_want = 1;
    if (bytes == 0) return LEAT_SHORT;
    leat_peer_begin(peer);
    return LEAT_HANDLED;
}

/* Goal: a limited number of requests of one connection is under way; the connection is read again when half of them are
 * answered. */
static void who_has_many_requests_under_way_is_not_read_from(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const struct leat_random random = {NULL, draw, NULL};
    const struct leat_protocol protocol = {.take = take_one};
    const struct leat_conn_handler *handler = NULL;
    static const uint8_t bytes[2 * LEAT_PEER_REQUESTS_MAX];
    size_t want;
    leat_list_init(&desk->core.peers);
    leat_addresses_init(&desk->node.addresses, &random, 2);
    desk->node.cores = &desk->core;
    struct leat_peer *peer = &desk->peers[0];
    assert_true(leat_peer_open(&desk->core, peer, &desk->conns[0], &protocol, &handler));
    assert_int_equal(handler->on_bytes(peer, &desk->conns[0], bytes, sizeof bytes, &want),
                     LEAT_PEER_REQUESTS_MAX);
    assert_true(desk->conns[0].paused);
    while (peer->requests > LEAT_PEER_REQUESTS_MAX / 2) {
        assert_true(desk->conns[0].paused);
        leat_peer_end(peer);
    }
    assert_false(desk->conns[0].paused);
    leat_sharer_leave(&desk->core, peer->sharer);
    free(desk);
}

static void closed_ignore(struct leat_peer *peer)
{
    (void)peer;
}

/* Goal: a closed connection, and its address with it, counts for memory as long as its requests are under way. The
 * connection no longer counts for the connections that its address may have open. A connection for which there is no
 * memory leaves nothing. */
static void closed_connection_counts_until_its_requests_have_ended(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const struct leat_random random = {NULL, draw, NULL};
    const struct leat_protocol protocol = {.on_closed = closed_ignore};
    const struct leat_conn_handler *handler = NULL;
    struct leat_counters *counters = &desk->core.counters;
    struct leat_addresses *addresses = &desk->node.addresses;
    leat_list_init(&desk->core.peers);
    leat_addresses_init(addresses, &random, 2);
    desk->node.cores = &desk->core;
    counters->connections = LEAT_CORE_PEERS_MAX;
    for (unsigned i = 0; i < 3; i++) {
        assert_false(
            leat_peer_open(&desk->core, &desk->peers[i], &desk->conns[i], &protocol, &handler));
        assert_int_equal(leat_addresses_count(addresses, desk->peers[i].address), 0);
    }
    counters->connections = 0;
    struct leat_peer *peer = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *peer);
    assert_non_null(peer);
    assert_true(leat_peer_open(&desk->core, peer, &desk->conns[0], &protocol, &handler));
    const uint32_t address = peer->address;
    assert_int_equal(peer->address_number, leat_key_number(conn_key(&desk->conns[0])));
    assert_int_equal(leat_addresses_count(addresses, address), 1);
    assert_int_equal(counters->connections, 1);
    assert_int_equal(counters->closed_peers, 0);
    leat_peer_begin(peer);
    handler->on_closed(peer, &desk->conns[0], LEAT_OK);
    assert_int_equal(leat_addresses_count(addresses, address), 0);
    assert_int_equal(counters->connections, 0);
    assert_int_equal(counters->closed_peers, 1);
    assert_int_equal(counters->addresses, 1);
    leat_peer_end(peer);
    assert_int_equal(counters->closed_peers, 0);
    assert_int_equal(counters->addresses, 0);
    free(desk);
}

static void last_line(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)level;
    snprintf(ctx, 256, "%s", line);
}

/* Goal: the node log says why this side ends a connection, and is silent where the other side does. */
static void connection_that_a_limit_ends_is_told_with_it(void **state)
{
    (void)state;
    const leat_err whys[] = {LEAT_OK, LEAT_E_CLOSED, LEAT_E_TIMEOUT, LEAT_E_TOO_MANY};
    const char *const said[] = {"", "", "sends too slowly", "finds no room on the core"};
    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++) {
        struct desk *desk = desk_new();
        const struct leat_random random = {NULL, draw, NULL};
        const struct leat_protocol protocol = {.on_closed = closed_ignore};
        const struct leat_conn_handler *handler = NULL;
        char line[256] = "";
        leat_list_init(&desk->core.peers);
        leat_addresses_init(&desk->node.addresses, &random, 2);
        desk->node.cores = &desk->core;
        struct leat_peer *peer = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *peer);
        assert_non_null(peer);
        assert_true(leat_peer_open(&desk->core, peer, &desk->conns[0], &protocol, &handler));
        leat_node_log_set(last_line, line, LEAT_NODE_LOG_INFO);
        handler->on_closed(peer, &desk->conns[0], whys[i]);
        leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
        assert_non_null(strstr(line, said[i]));
        assert_int_equal(line[0] == '\0', said[i][0] == '\0');
        free(desk);
    }
}

/* Goal: a limited number of connections may not have said who they are; a connection that has said so does not
 * count. */
static void of_too_many_strangers_the_oldest_goes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < LEAT_CORE_STRANGERS_MAX; i++) {
        leat_peer_quiet_begin(&desk->peers[i]);
        leat_peer_shed_strangers(&desk->core);
    }
    assert_false(desk->conns[0].closed);
    leat_peer_quiet_end(&desk->peers[0]);
    desk->peers[0].greeted = true;
    for (unsigned i = LEAT_CORE_STRANGERS_MAX; i < PEERS; i++) {
        leat_peer_quiet_begin(&desk->peers[i]);
        leat_peer_shed_strangers(&desk->core);
    }
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(desk->conns[i].closed, i == 1);
    assert_int_equal(desk->core.stranger_count, LEAT_CORE_STRANGERS_MAX);
    free(desk);
}

/* Goal: a connection has ten seconds to say who it is. */
static void who_says_nothing_is_closed(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    leat_peer_quiet_begin(&desk->peers[0]);
    pass(desk, 2 * SECOND);
    leat_peer_quiet_begin(&desk->peers[1]);
    leat_peer_quiet_begin(&desk->peers[2]);
    pass(desk, LEAT_PEER_HELLO_US - 2 * SECOND - 1);
    assert_false(desk->conns[0].closed);
    leat_peer_quiet_end(&desk->peers[2]); /* it has said so */
    pass(desk, 1);
    assert_true(desk->conns[0].closed);
    assert_false(desk->conns[1].closed);
    pass(desk, 2 * SECOND);
    assert_true(desk->conns[1].closed);
    assert_false(desk->conns[2].closed);
    free(desk);
}

/* Goal: a minute for a request to come whole, however often another byte of it comes. */
static void frame_that_is_not_finished_ends_the_connection(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    leat_peer_expect(&desk->peers[0]);
    leat_peer_expect(&desk->peers[1]);
    for (unsigned i = 0; i < LEAT_PEER_FRAME_US / SECOND; i++) {
        assert_false(desk->conns[0].closed);
        if (i == 30) leat_peer_expect_nothing(&desk->peers[1]); /* whole */
        leat_peer_expect(&desk->peers[0]);
        if (i >= 30) leat_peer_expect(&desk->peers[1]); /* the next one */
        pass(desk, SECOND);
    }
    assert_true(desk->conns[0].closed);
    assert_false(desk->conns[1].closed);
    free(desk);
}

/* Goal: a connection that takes none of its answers for ten seconds is closed; a single byte is enough to stay. */
static void who_takes_no_answers_is_closed(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 3; i++) {
        desk->conns[i].queued = 1000;
        leat_peer_owes(&desk->peers[i]);
    }
    pass(desk, SECOND);
    for (unsigned i = 0; i < LEAT_PEER_STALL_US / SECOND; i++) {
        assert_false(desk->conns[0].closed);
        desk->conns[1].queued--;
        if (i == 5) desk->conns[2].queued = 0;
        pass(desk, SECOND);
    }
    assert_true(desk->conns[0].closed);
    assert_true(leat_list_empty(&desk->peers[0].owing));
    assert_false(desk->conns[1].closed);
    assert_false(desk->conns[2].closed);
    assert_true(leat_list_empty(&desk->peers[2].owing));
    free(desk);
}

/* Goal: a connection that has so many bytes to take is not read until half of them are taken; other connections are. */
static void who_has_much_to_take_is_not_read_from(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].queued = desk->conns[1].queued = LEAT_PEER_QUEUED_BYTES_MAX;
    assert_false(leat_peer_is_slow(&desk->peers[0]));
    desk->conns[0].queued++;
    assert_true(leat_peer_is_slow(&desk->peers[0]));
    assert_true(desk->conns[0].paused);
    assert_false(leat_peer_is_slow(&desk->peers[1]));
    desk->conns[0].queued = LEAT_PEER_QUEUED_BYTES_MAX / 2 + 1;
    leat_peer_slow_tick(&desk->core);
    assert_true(desk->conns[0].paused);
    desk->conns[0].queued--;
    leat_peer_slow_tick(&desk->core);
    assert_false(desk->conns[0].paused);
    assert_true(leat_list_empty(&desk->core.slow_peers));
    free(desk);
}

static unsigned drained;
static void on_drained(struct leat_core *core)
{
    (void)core;
    drained++;
}

/* Goal: when a slow connection has taken enough, its answers are written and reads that waited go on, once; nothing is
 * asked of a connection that is gone. */
static void who_has_taken_enough_is_answered(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_core_hooks hooks = leat_core_hooks;
    struct leat_peer *peer = &desk->peers[0];
    hooks.drained = on_drained;
    desk->node.hooks = &hooks;
    drained = 0;
    desk->conns[0].queued = LEAT_PEER_QUEUED_BYTES_MAX + 1;
    assert_true(leat_peer_is_slow(peer));
    assert_ptr_equal(desk->core.slow_peers.next, &peer->slow);
    leat_peer_drained(peer);
    assert_int_equal(drained, 0);
    desk->conns[0].queued = 0;
    leat_peer_drained(peer);
    leat_peer_drained(peer);
    assert_int_equal(drained, 1);
    assert_ptr_equal(desk->core.answer_peers.next, &peer->answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &peer->answers);
    leat_list_remove(&peer->answers);
    desk->conns[0].queued = LEAT_PEER_QUEUED_BYTES_MAX + 1;
    assert_true(leat_peer_is_slow(peer));
    peer->conn = NULL;
    assert_false(leat_peer_is_slow(peer));
    leat_peer_drained(peer);
    assert_int_equal(drained, 1);
    free(desk);
}

/* Goal: where a protocol has such a limit, silence ends a connection, and neither a wait for an answer nor words do. */
static void who_is_idle_is_closed(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 3; i++) {
        desk->peers[i].protocol = &idle;
        desk->peers[i].greeted = true;
        leat_peer_quiet_begin(&desk->peers[i]);
    }
    desk->peers[1].requests = 1;
    desk->peers[2].heard = true;
    pass(desk, idle.idle_us_max - 1);
    assert_false(desk->conns[0].closed);
    pass(desk, 1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(desk->conns[i].closed, i == 0);
    desk->peers[1].requests = 0;
    pass(desk, idle.idle_us_max);
    assert_true(desk->conns[1].closed && desk->conns[2].closed);
    free(desk);
}

/* Goal: at an isolated node a front end's connection that waits for an answer is closed, after its time and no
 * earlier: not a connection without a request, not a native connection, not one whose wait has ended meanwhile. The
 * time begins anew when the node is isolated again. */
static void who_waits_at_an_isolated_node_is_closed(void **state)
{
    (void)state;
    enum { WAITS, QUIET, NATIVE, ENDS, COUNT };
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < COUNT; i++) {
        desk->peers[i].protocol = i == NATIVE ? &native : &idle;
        desk->peers[i].greeted = true;
        desk->peers[i].requests = i != QUIET;
        leat_peer_quiet_begin(&desk->peers[i]);
    }
    static const unsigned stands[] = {LEAT_STANDING_CONFIRMED, LEAT_STANDING_ALONE, 0,
                                      LEAT_STANDING_CRASHED};
    for (unsigned i = 0; i < 4; i++) {
        atomic_store(&desk->node.standing, stands[i]);
        pass(desk, LEAT_PEER_ISOLATED_TICKS * SECOND);
    }
    for (unsigned i = 0; i < COUNT; i++)
        assert_false(desk->conns[i].closed);
    desk->peers[ENDS].requests = 0;
    pass(desk, SECOND);
    assert_true(desk->conns[WAITS].closed);
    desk->peers[ENDS].requests = 1;
    pass(desk, (LEAT_PEER_ISOLATED_TICKS - 1) * SECOND);
    assert_false(desk->conns[ENDS].closed);
    pass(desk, SECOND);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(desk->conns[i].closed, i == WAITS || i == ENDS);
    free(desk);
}

/* Goal: each slow connection is looked at again, and so are reads that wait, at each look. */
static void slow_ones_go_on_together(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_core_hooks hooks = leat_core_hooks;
    hooks.drained = on_drained;
    desk->node.hooks = &hooks;
    for (unsigned i = 0; i < 2; i++) {
        desk->conns[i].queued = LEAT_PEER_QUEUED_BYTES_MAX + 1;
        assert_true(leat_peer_is_slow(&desk->peers[i]));
    }
    drained = 0;
    leat_peer_slow_tick(&desk->core); /* neither has taken anything */
    assert_int_equal(drained, 1);
    desk->conns[0].queued = desk->conns[1].queued = 0;
    leat_peer_slow_tick(&desk->core);
    for (unsigned i = 0; i < 2; i++)
        assert_false(desk->conns[i].paused);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[0].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[1].answers);
    free(desk);
}

/* Goal: the time for answers does not begin again with each answer. It does with the first answer after all were
 * taken. */
static void time_for_answers_begins_with_the_first(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 2; i++) {
        desk->conns[i].queued = 1000;
        leat_peer_owes(&desk->peers[i]);
    }
    pass(desk, SECOND);
    desk->conns[1].queued = 0;
    pass(desk, LEAT_PEER_STALL_US - SECOND);
    desk->conns[1].queued = 1000;
    for (unsigned i = 0; i < 2; i++) {
        assert_false(desk->conns[i].closed);
        leat_peer_owes(&desk->peers[i]);
    }
    pass(desk, SECOND);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(desk->conns[i].closed, i == 0);
    free(desk);
}

/* Goal: a connection whose frame has come whole has no limit of time for one. */
static void whole_frame_has_no_limit(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    leat_peer_expect(&desk->peers[0]);
    leat_peer_expect_nothing(&desk->peers[0]);
    pass(desk, 2 * LEAT_PEER_FRAME_US);
    assert_false(desk->conns[0].closed);
    free(desk);
}

/* Goal: silence is allowed where a protocol has no such limit. Only strangers count as strangers, and each once. */
static void silence_of_the_known_is_theirs(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->peers[0].greeted = desk->peers[1].greeted = true;
    desk->peers[1].protocol = &idle;
    for (unsigned i = 0; i < 3; i++)
        leat_peer_quiet_begin(&desk->peers[i]);
    pass(desk, SECOND);
    assert_int_equal(desk->core.stranger_count, 1);
    for (unsigned i = 0; i < 3; i++) {
        leat_peer_quiet_end(&desk->peers[i]);
        leat_peer_quiet_end(&desk->peers[i]);
        assert_int_equal(desk->core.stranger_count, i < 2);
        assert_false(desk->conns[i].closed);
    }
    free(desk);
}

/* Goal: an accepted connection has what its front end keeps for it right after it, zeroed; a refused one is none. */
static void accepted_connection_has_memory_of_its_front_end(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    const struct leat_random random = {NULL, draw, NULL};
    const struct leat_protocol protocol = {.on_closed = closed_ignore};
    const struct leat_conn_handler *handler = NULL;
    uint64_t own[LEAT_FRONT_CONN_BYTES / sizeof(uint64_t)] = {0};
    leat_list_init(&desk->core.peers);
    leat_addresses_init(&desk->node.addresses, &random, 1);
    desk->node.cores = &desk->core;
    const size_t before = leat_mem_bytes(LEAT_MEM_BROKER);
    struct leat_peer *peer =
        leat_peer_accepted(&desk->core, &desk->conns[0], &protocol, sizeof own, &handler);
    assert_non_null(peer);
    assert_ptr_equal(leat_peer_own(peer), peer + 1);
    assert_true(leat_mem_bytes(LEAT_MEM_BROKER) >= before + sizeof *peer + sizeof own);
    assert_memory_equal(leat_peer_own(peer), own, sizeof own);
    assert_null(leat_peer_accepted(&desk->core, &desk->conns[1], &protocol, sizeof own, &handler));
    handler->on_closed(peer, &desk->conns[0], LEAT_OK);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), before);
    free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_not_known_is_counted_apart),
        cmocka_unit_test(who_has_many_requests_under_way_is_not_read_from),
        cmocka_unit_test(closed_connection_counts_until_its_requests_have_ended),
        cmocka_unit_test(connection_that_a_limit_ends_is_told_with_it),
        cmocka_unit_test(of_too_many_strangers_the_oldest_goes),
        cmocka_unit_test(who_says_nothing_is_closed),
        cmocka_unit_test(frame_that_is_not_finished_ends_the_connection),
        cmocka_unit_test(who_takes_no_answers_is_closed),
        cmocka_unit_test(who_has_much_to_take_is_not_read_from),
        cmocka_unit_test(who_has_taken_enough_is_answered),
        cmocka_unit_test(who_is_idle_is_closed),
        cmocka_unit_test(who_waits_at_an_isolated_node_is_closed),
        cmocka_unit_test(slow_ones_go_on_together),
        cmocka_unit_test(time_for_answers_begins_with_the_first),
        cmocka_unit_test(whole_frame_has_no_limit),
        cmocka_unit_test(silence_of_the_known_is_theirs),
        cmocka_unit_test(accepted_connection_has_memory_of_its_front_end),
    };
    return cmocka_run_group_tests_name("broker slow_peers", tests, NULL, NULL);
}
