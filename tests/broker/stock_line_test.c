/* SPDX-License-Identifier: Apache-2.0 */
/* Structs for requests: bounds of what a connection owns, and what the lines of waiting connections keep true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "tests/broker/stock_rig.h"

static bool waits(const struct desk *desk, unsigned i)
{
    return !leat_list_empty(&desk->peers[i].stock.link);
}

static bool is_answered(const struct desk *desk, unsigned i)
{
    return !leat_list_empty(&desk->peers[i].answers);
}

/* The stock is empty: connection 0 has its structs. No connection may own more. */
static struct desk *desk_empty(void)
{
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(asks(desk, 0, false));
    for (unsigned i = 0; i < PEERS; i++)
        desk->peers[i].stock.own_bytes = LEAT_PEER_OWN_BYTES_MOST;
    return desk;
}

static void desk_close(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++)
        leat_stock_leave(&desk->peers[i]);
    assert_true(leat_line_empty(&desk->stock.lines[0]));
    assert_true(leat_line_empty(&desk->stock.lines[1]));
    desk_end_all(desk);
    desk_free(desk);
}

/* Goal: an empty stock gives no struct. */
static void empty_stock_gives_nothing(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    assert_null(leat_stock_take(&desk->stock, NULL));
    desk_close(desk);
}

/* Goal: a connection that pipelines owns bytes while half of all own bytes is left, to the byte; a connection with one
 * request has more of its own while all are not used up. */
static void own_bytes_have_their_bounds(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    struct leat_peer *peer = &desk->peers[1];
    _Atomic uint64_t *all = &desk->core.counters.own_bytes;
    peer->stock.own_bytes = 0;
    *all = LEAT_CORE_OWN_BYTES / 2 - ELEMENT;
    assert_true(leat_stock_admits(&desk->stock, peer, false, 1));
    ++*all;
    assert_false(leat_stock_admits(&desk->stock, peer, false, 1));
    peer->stock.own_bytes = LEAT_PEER_OWN_BYTES_MOST - ELEMENT;
    *all = LEAT_CORE_OWN_BYTES - ELEMENT;
    assert_true(leat_stock_admits(&desk->stock, peer, true, 1));
    ++*all;
    assert_false(leat_stock_admits(&desk->stock, peer, true, 1));
    *all = 0;
    desk_close(desk);
}

/* Goal: a connection that gives own bytes back goes on, if it waits; bytes of a connection that is gone count no more.
 * */
static void own_bytes_that_come_back_wake_their_connection(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    desk->peers[1].stock.own_bytes = 0;
    assert_true(leat_own_take(&desk->peers[1], true, LEAT_PEER_OWN_BYTES_MOST));
    assert_false(asks(desk, 1, true));
    leat_own_give(&desk->core, &desk->peers[1], ELEMENT);
    assert_false(waits(desk, 1));
    assert_false(desk->conns[1].paused);
    assert_true(is_answered(desk, 1)); /* its protocol asks again */
    leat_own_give(&desk->core, NULL, LEAT_PEER_OWN_BYTES_MOST - ELEMENT);
    assert_int_equal(desk->core.counters.own_bytes, 0);
    desk_close(desk);
}

/* Goal: a connection that does not wait is not woken, and is to be answered once. */
static void who_does_not_wait_is_not_woken(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    leat_stock_again(&desk->peers[1]);
    assert_false(is_answered(desk, 1));
    for (unsigned i = 1; i < 3; i++)
        assert_false(asks(desk, i, true));
    leat_list_push_back(&desk->core.answer_peers, &desk->peers[1].answers);
    leat_stock_again(&desk->peers[1]);
    leat_stock_again(&desk->peers[2]);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[1].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[2].answers);
    desk_close(desk);
}

/* Goal: a request that is the only one of its connection takes a free struct before connections that pipeline, also
 * where these are of its own address. */
static void only_request_comes_before_pipelines(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    leat_sharer_leave(&desk->core, desk->peers[2].sharer);
    desk->peers[2].address = 1;
    assert_true(leat_sharer_join(&desk->core, &desk->peers[2]));
    assert_false(asks(desk, 1, false));
    assert_false(leat_stocks_are_wanted(&desk->core));
    ends(desk, 0);
    assert_true(asks(desk, 3, true)); /* though the stock is wanted */
    assert_false(asks(desk, 2, true));
    assert_true(leat_stocks_are_wanted(&desk->core));
    ends(desk, 0);
    assert_true(leat_stocks_call(&desk->core));
    assert_false(waits(desk, 2));
    assert_true(waits(desk, 1));
    desk_close(desk);
}

/* Goal: structs that were allocated are given back where one of them finds no memory, and those of the stock stay. */
static void widening_without_memory_leaves_nothing(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    for (unsigned i = 0; i < PEERS; i++)
        desk->peers[i].stock.own_bytes = 0;
    for (unsigned at = 1; at <= 2; at++) {
        leat_mem_fail_at(at);
        assert_false(leat_stock_widen(&desk->stock, &desk->peers[1], true, 2));
        leat_mem_fail_at(0);
        assert_int_equal(desk->stock.left, 0);
        assert_int_equal(desk->peers[1].stock.own_bytes, 0);
        assert_int_equal(desk->core.counters.own_bytes, 0);
    }
    assert_true(leat_stock_widen(&desk->stock, &desk->peers[1], true, 2));
    assert_int_equal(desk->stock.left, 2);
    ends(desk, 0);
    leat_stock_narrow(&desk->stock, &desk->peers[1]);
    assert_true(desk->stock.left > 0);
    (void)leat_stock_take(&desk->stock, NULL);
    leat_stock_narrow(&desk->stock, &desk->peers[1]);
    assert_int_equal(desk->core.counters.own_bytes, 0);
    assert_int_equal(desk->stock.left, 0);
    leat_stock_give(&desk->stock, desk->stock.block, NULL, NULL);
    desk_close(desk);
}

/* Goal: a connection waits for one stock: for the one that it asked for last. */
static void connection_waits_for_one_stock(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    struct leat_stock other;
    struct leat_wanted wanted;
    assert_int_equal(leat_stock_init(&other, &desk->core, ELEMENT, 4), LEAT_OK);
    leat_stock_wait(&desk->stock, &desk->peers[1], true, 3);
    leat_stock_wait(&other, &desk->peers[2], true, 2);
    leat_stocks_wanted(&desk->core, &wanted); /* of both */
    assert_int_equal(wanted.of_all, 5);
    leat_stock_wait(&other, &desk->peers[1], true, 1);
    leat_stocks_wanted(&desk->core, &wanted);
    assert_int_equal(wanted.of_all, 3);
    assert_true(leat_stocks_call(&desk->core));
    assert_false(waits(desk, 1) || waits(desk, 2));
    leat_stock_fini(&other);
    desk_close(desk);
}

/* Goal: a call is for one try. Who was called in vain, or has left, does not take a struct before the line. */
static void call_is_for_one_try(void **state)
{
    (void)state;
    for (unsigned leaves = 0; leaves < 2; leaves++) {
        struct desk *desk = desk_empty();
        assert_false(asks(desk, 1, true));
        assert_false(asks(desk, 2, true));
        ends(desk, 0);
        assert_true(leat_stocks_call(&desk->core));
        assert_false(waits(desk, 1));
        void *faster = leat_stock_take(&desk->stock, NULL);
        if (leaves)
            leat_stock_leave(&desk->peers[1]);
        else
            assert_false(asks(desk, 1, true));
        leat_stock_give(&desk->stock, faster, NULL, NULL);
        assert_false(asks(desk, 1, true));
        desk_close(desk);
    }
}

/* Goal: a stock stays wanted while a connection waits for it whose address has its half. */
static void stock_stays_wanted_while_addresses_have_their_half(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    leat_stock_wait(&desk->stock, &desk->peers[0], false, 1); /* it pipelines, and has half */
    leat_stock_give(&desk->stock, desk->stock.block, NULL, NULL);
    assert_false(leat_stocks_call(&desk->core));
    assert_true(waits(desk, 0));
    assert_false(asks(desk, 1, false)); /* it does not pass the line */
    ends(desk, 0);
    assert_true(leat_stocks_call(&desk->core));
    assert_false(waits(desk, 0));
    (void)leat_stock_take(&desk->stock, NULL);
    desk_close(desk);
}

/* Goal: append structs come back as logs ack: a connection that waits for them wants nothing of others. */
static void who_waits_for_appends_wants_nothing_of_others(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    struct leat_stock *pools[] = {&desk->core.append_pool, &desk->core.part_pool};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(leat_stock_init(pools[i], &desk->core, ELEMENT, 1), LEAT_OK);
        leat_stock_wait(pools[i], &desk->peers[1], true, 1);
        assert_false(leat_stocks_are_wanted(&desk->core));
        leat_stock_leave(&desk->peers[1]);
        leat_list_remove(&pools[i]->wanted);
        leat_stock_fini(pools[i]);
    }
    desk_close(desk);
}

/* Goal: what an address wants of its own structs is counted anew each time, and is told once. */
static void wants_of_an_address_are_counted_anew(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    struct leat_wanted wanted;
    desk->peers[0].requests = 1;
    leat_stock_wait(&desk->stock, &desk->peers[0], true, 5); /* its address has its half */
    for (unsigned i = 0; i < 2; i++) {
        leat_stocks_wanted(&desk->core, &wanted);
        assert_int_equal(wanted.of_own, 5);
        assert_int_equal(wanted.of_all, 0);
        assert_true(leat_wanted_of(&wanted, desk->peers[0].sharer, 2));
        assert_int_equal(wanted.of_own, 3);
        assert_true(leat_wanted_of(&wanted, desk->peers[0].sharer, 5));
        assert_int_equal(wanted.of_own, 0);
        assert_false(leat_wanted_of(&wanted, desk->peers[0].sharer, 1));
    }
    leat_stocks_wanted(&desk->core, &wanted);
    leat_stocks_wanted(&desk->core, &wanted);
    assert_true(leat_wanted_of(&wanted, desk->peers[0].sharer, 100));
    assert_int_equal(wanted.of_own, 0);
    desk_close(desk);
}

/* Goal: a connection that waited too long is closed, and waits no more. */
static void who_waited_too_long_is_out_of_line(void **state)
{
    (void)state;
    struct desk *desk = desk_empty();
    assert_false(asks(desk, 1, true));
    desk->world.now_us += LEAT_STOCK_WAIT_US;
    leat_stocks_tick(&desk->core);
    assert_true(desk->conns[1].closed);
    assert_false(waits(desk, 1));
    desk_close(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_stock_gives_nothing),
        cmocka_unit_test(own_bytes_have_their_bounds),
        cmocka_unit_test(own_bytes_that_come_back_wake_their_connection),
        cmocka_unit_test(who_does_not_wait_is_not_woken),
        cmocka_unit_test(only_request_comes_before_pipelines),
        cmocka_unit_test(widening_without_memory_leaves_nothing),
        cmocka_unit_test(connection_waits_for_one_stock),
        cmocka_unit_test(call_is_for_one_try),
        cmocka_unit_test(stock_stays_wanted_while_addresses_have_their_half),
        cmocka_unit_test(who_waits_for_appends_wants_nothing_of_others),
        cmocka_unit_test(wants_of_an_address_are_counted_anew),
        cmocka_unit_test(who_waited_too_long_is_out_of_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
