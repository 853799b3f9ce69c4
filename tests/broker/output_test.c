/* A core's memory for answers and calls: who has room, who waits, who has to go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/core.h"

enum { PEERS = 16, MIB = 1024 * 1024 };

/* The network, as far as it is asked here. */
struct leat_conn {
    size_t copied;
    uint64_t taken;
    bool closed;
};

struct desk {
    struct leat_core core;
    struct leat_node node;
    struct leat_env env;
    struct leat_clock clock;
    struct leat_net net;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
    uint64_t now_us;
};

static uint64_t desk_now(void *ctx)
{
    return ((const struct desk *)ctx)->now_us;
}

static size_t conn_copied(const struct leat_conn *conn)
{
    return conn->copied;
}

static size_t conn_queued(const struct leat_conn *conn)
{
    return conn->copied;
}

static uint64_t conn_taken(const struct leat_conn *conn)
{
    return conn->taken;
}

static void conn_takes(struct leat_conn *conn, size_t bytes)
{
    conn->copied -= bytes;
    conn->taken += bytes;
}

static size_t conns_copied(void *ctx)
{
    const struct desk *desk = ctx;
    size_t bytes = 0;
    for (unsigned i = 0; i < PEERS; i++)
        bytes += desk->conns[i].copied;
    return bytes;
}

static void conn_close(struct leat_conn *conn)
{
    conn->closed = true;
}

static void conn_pause(struct leat_conn *conn)
{
    (void)conn;
}

static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "a peer";
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->now_us = 1000 * 1000;
    desk->clock = (struct leat_clock){.ctx = desk, .now_us = desk_now};
    desk->env.clock = &desk->clock;
    desk->net = (struct leat_net){.ctx = desk,
                                  .queued_bytes = conn_queued,
                                  .taken_bytes = conn_taken,
                                  .copied_bytes = conn_copied,
                                  .copied_bytes_all = conns_copied,
                                  .pause = conn_pause,
                                  .resume = conn_pause,
                                  .close = conn_close,
                                  .peer = conn_peer};
    desk->node.options.cores = 1;
    desk->node.options.memory_bytes =
        512ull * MIB; /* 16 MiB of it: 12 for answers, 2 for each connection */
    struct leat_core *core = &desk->core;
    core->node = &desk->node;
    core->env = &desk->env;
    core->net = &desk->net;
    struct leat_list *lists[] = {&core->slow_peers, &core->owing_peers, &core->answer_peers,
                                 &core->deferred_fetches, &core->ready_fetches};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_output_init(core);
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        peer->core = core;
        peer->conn = &desk->conns[i];
        peer->requests = 1;
        leat_list_init(&peer->slow);
        leat_list_init(&peer->answers);
        leat_list_init(&peer->owing);
        leat_list_init(&peer->output.wait);
    }
    return desk;
}

/* Goal: a connection that holds more than its share is not read from; others do not notice. */
static void peer_beyond_its_share_waits_alone(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    assert_int_equal(desk->core.output.bytes_max, 16 * MIB);
    desk->conns[0].copied = 2 * MIB;
    assert_false(leat_peer_is_slow(&desk->peers[0]));
    desk->conns[0].copied++;
    desk->conns[1].copied = 1;
    assert_true(leat_peer_is_slow(&desk->peers[0]));
    assert_int_equal(desk->peers[0].paused, LEAT_PAUSE_SLOW);
    assert_false(leat_peer_is_slow(&desk->peers[1]));
    assert_true(leat_output_fits(&desk->core, 1 * MIB));
    desk->conns[0].copied = 0;
    leat_peer_drained(&desk->peers[0]);
    assert_int_equal(desk->peers[0].paused, 0);
    free(desk);
}

/* Goal: where there is no room whoever owes nothing still gets small answers, and nobody gets more. */
static void full_core_gives_small_answers_to_those_who_took_theirs(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 7; i++)
        desk->conns[i].copied = 2 * MIB;
    assert_true(leat_peer_is_slow(&desk->peers[3]));
    assert_false(leat_output_is_over(&desk->peers[8]));
    assert_true(leat_output_fits(&desk->core, LEAT_OUTPUT_SMALL_BYTES));
    assert_false(leat_output_fits(&desk->core, LEAT_OUTPUT_SMALL_BYTES + 1));
    desk->conns[8].copied = 100; /* has one by now, and has not taken it */
    assert_true(leat_output_is_over(&desk->peers[8]));
    /* Calls have a quarter for themselves, and small ones their number. */
    assert_true(leat_output_take(&desk->peers[9], MIB));
    assert_false(leat_output_take(&desk->peers[9], 2 * MIB));
    assert_true(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES));
    leat_output_give(&desk->peers[9], MIB + LEAT_OUTPUT_CALL_BYTES);
    desk->conns[10].copied = 4 * MIB; /* answers are in the calls' quarter, too */
    assert_false(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES + 1));
    assert_true(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES));
    leat_output_give(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES);
    assert_int_equal(desk->core.output.held, 0);
    free(desk);
}

/* Goal: a call that takes more than all there is has its turn, alone; else nothing of that size would ever be
 * answered. */
static void largest_calls_are_served_one_at_a_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    assert_true(leat_output_take(&desk->peers[0], 20 * MIB));
    assert_false(leat_output_take(&desk->peers[1], 20 * MIB));
    assert_false(leat_output_take(&desk->peers[1], MIB));
    assert_true(leat_output_holds_share(&desk->peers[0])); /* and is not read from meanwhile */
    assert_false(leat_output_holds_share(&desk->peers[1]));
    leat_output_give(&desk->peers[0], 20 * MIB);
    assert_false(leat_output_holds_share(&desk->peers[0]));
    assert_true(leat_output_take(&desk->peers[1], 8 * MIB + 1));
    assert_false(leat_output_take(&desk->peers[0], 20 * MIB));
    leat_output_give(&desk->peers[1], 8 * MIB + 1);
    assert_int_equal(desk->core.output.held, 0);
    free(desk);
}

/* Goal: answers that wait go out in their order, as many as there is room for; one that is larger than all has half. */
static void waiting_answers_go_out_in_order_as_room_comes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 6; i++)
        desk->conns[i].copied = 2 * MIB;
    leat_output_wait(&desk->peers[8], 100 * MIB);
    leat_output_wait(&desk->peers[9], MIB);
    leat_output_resume(&desk->core);
    assert_true(leat_list_empty(&desk->core.answer_peers));
    desk->conns[0].copied = desk->conns[1].copied = 0;
    leat_output_resume(&desk->core); /* 4 MiB of 12: the first wants 6 */
    assert_true(leat_list_empty(&desk->core.answer_peers));
    desk->conns[2].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[8].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[8].answers);
    assert_ptr_equal(desk->core.output.waits.next, &desk->peers[9].output.wait);
    free(desk);
}

/* Goal: who keeps others waiting by taking a little now and then goes before those who wait do. */
static void those_who_hold_go_before_those_who_wait(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 11 * MIB;
    leat_list_push_back(&desk->core.owing_peers, &desk->peers[0].owing);
    for (unsigned i = 0; i < 60; i++) { /* owes all the time, and nobody minds */
        leat_output_tick(&desk->core);
        desk->now_us += 1000 * 1000;
    }
    assert_false(desk->conns[0].closed);
    leat_output_wait(&desk->peers[1], 2 * MIB);
    uint64_t began_us = desk->now_us;
    while (!desk->conns[0].closed) {
        assert_false(desk->conns[1].closed);
        assert_true(desk->now_us - began_us <= LEAT_OUTPUT_WAIT_US);
        desk->now_us += 1000 * 1000;
        conn_takes(&desk->conns[0], 1);
        leat_output_tick(&desk->core);
    }
    assert_true(desk->now_us - began_us >= LEAT_OUTPUT_OWE_US);
    leat_list_remove(&desk->peers[0].owing); /* as when it is closed */
    desk->conns[0].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[1].answers);
    assert_false(desk->conns[1].closed);
    free(desk);
}

/* Goal: who has just begun to owe is not closed for what others have held for long. */
static void who_begins_to_owe_has_its_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 13 * MIB; /* not among those that are looked at */
    leat_list_push_back(&desk->core.owing_peers, &desk->peers[1].owing);
    for (unsigned i = 0; i < 60; i++) {
        leat_output_tick(&desk->core);
        desk->now_us += 1000 * 1000;
    }
    desk->conns[1].copied = 100;
    uint64_t began_us = desk->now_us;
    while (!desk->conns[1].closed) {
        leat_output_tick(&desk->core);
        desk->now_us += 1000 * 1000;
        assert_true(desk->now_us - began_us < LEAT_OUTPUT_WAIT_US);
    }
    assert_true(desk->now_us - began_us > LEAT_OUTPUT_OWE_US);
    leat_list_remove(&desk->peers[1].owing);
    free(desk);
}

/* Goal: who takes what it is given, or takes it at a good rate, stays, however long it owes at every look and others find
 * no room; those beside it who take a little now and then go, also where nobody waits because all are refused. */
static void who_takes_its_answers_stays_while_there_is_no_room(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        struct desk *desk = desk_new();
        for (unsigned i = 0; i < 8; i++) {
            desk->conns[i].copied = 3 * MIB / 2;
            leat_list_push_back(&desk->core.owing_peers, &desk->peers[i].owing);
        }
        if (!refused) leat_output_wait(&desk->peers[9], MIB);
        for (unsigned i = 0; i < 60; i++) {
            if (refused) assert_false(leat_output_fits(&desk->core, 13 * MIB));
            leat_output_tick(&desk->core);
            leat_output_wait_end(&desk->peers[9]); /* another waits instead */
            if (!refused) leat_output_wait(&desk->peers[9], MIB);
            desk->now_us += 1000 * 1000;
            for (unsigned p = 0; p < 8; p++)
                conn_takes(&desk->conns[p], p == 0 ? MIB : p == 1 ? 70 * 1024 : 100);
            desk->conns[0].copied += MIB; /* it has the next answer at once */
            desk->conns[1].copied += 70 * 1024;
        }
        for (unsigned p = 0; p < 8; p++)
            assert_int_equal(desk->conns[p].closed, p > 1);
        free(desk);
    }
}

/* Goal: nobody waits for ever. */
static void who_waits_has_a_limit_of_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 13 * MIB; /* not among those that are looked at */
    leat_output_wait(&desk->peers[1], MIB);
    desk->now_us += LEAT_OUTPUT_WAIT_US - 1;
    leat_output_tick(&desk->core);
    assert_false(desk->conns[1].closed);
    desk->now_us++;
    leat_output_tick(&desk->core);
    assert_true(desk->conns[1].closed);
    free(desk);
}

static void rate_gives_a_burst_then_a_few_each_second(void **state)
{
    (void)state;
    struct leat_rate rate = {0};
    uint64_t now_us = 5000 * 1000;
    for (unsigned i = 0; i < 200; i++)
        assert_true(leat_rate_take(&rate, now_us, 200, 10));
    assert_false(leat_rate_take(&rate, now_us, 200, 10));
    now_us += 100 * 1000;
    assert_true(leat_rate_take(&rate, now_us, 200, 10));
    assert_false(leat_rate_take(&rate, now_us, 200, 10));
    now_us += 3600ull * 1000 * 1000;
    for (unsigned i = 0; i < 200; i++)
        assert_true(leat_rate_take(&rate, now_us, 200, 10));
    assert_false(leat_rate_take(&rate, now_us, 200, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_beyond_its_share_waits_alone),
        cmocka_unit_test(full_core_gives_small_answers_to_those_who_took_theirs),
        cmocka_unit_test(largest_calls_are_served_one_at_a_time),
        cmocka_unit_test(waiting_answers_go_out_in_order_as_room_comes),
        cmocka_unit_test(those_who_hold_go_before_those_who_wait),
        cmocka_unit_test(who_begins_to_owe_has_its_time),
        cmocka_unit_test(who_takes_its_answers_stays_while_there_is_no_room),
        cmocka_unit_test(who_waits_has_a_limit_of_time),
        cmocka_unit_test(rate_gives_a_burst_then_a_few_each_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
