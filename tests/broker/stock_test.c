/* SPDX-License-Identifier: Apache-2.0 */
/* Structs for requests where there are few: a few of each connection's own, and turns for the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/data/append.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "tests/broker/stock_rig.h"

/* Goal: however much a connection pipelines, the first request of each other connection has its struct at once. */
static void who_asks_for_one_has_it_where_the_stock_is_empty(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < COUNT + OWN; i++)
        assert_true(asks(desk, 0, i == 0));
    assert_false(asks(desk, 0, false));
    assert_true(desk->conns[0].paused);
    assert_int_equal(desk->stock.left, 0);
    for (unsigned i = 1; i < PEERS; i++)
        assert_true(asks(desk, i, true));
    assert_int_equal(desk->core.counters.own_bytes, LEAT_PEER_OWN_BYTES + (PEERS - 1) * ELEMENT);
    desk_free(desk);
}

/* Goal: connections that pipeline leave half of the own bytes of all connections to others; a connection without
 * another request under way gets its own bytes. */
static void pipelines_leave_own_ones_to_others(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    while (asks(desk, 0, false))
        continue;
    leat_stock_leave(&desk->peers[0]);
    uint64_t held = desk->core.counters.own_bytes;
    desk->core.counters.own_bytes = LEAT_CORE_OWN_BYTES / 2;
    assert_false(asks(desk, 1, false));
    assert_true(asks(desk, 1, true));
    desk->core.counters.own_bytes = LEAT_CORE_OWN_BYTES;
    assert_false(asks(desk, 1, false));
    assert_true(asks(desk, 2, true));
    assert_false(leat_stock_admits(&desk->stock, &desk->peers[3], true, OWN + 1));
    assert_true(leat_own_take(&desk->peers[3], true, LEAT_PEER_OWN_BYTES));
    assert_false(leat_own_take(&desk->peers[3], true, 1));
    leat_own_give(&desk->core, &desk->peers[3], LEAT_PEER_OWN_BYTES);
    leat_stock_leave(&desk->peers[1]);
    desk->core.counters.own_bytes = held + 2 * ELEMENT;
    desk_free(desk);
}

/* Goal: a freed struct goes to the connection that has waited longest, a single struct for each. A connection that got
 * a struct waits behind all others, and a connection that comes meanwhile does not get the struct first. */
static void structs_come_in_turns(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(asks(desk, 0, false));
    for (unsigned p = 0; p < 4; p++) {
        while (asks(desk, p, false))
            continue;
        assert_true(desk->conns[p].paused);
    }
    for (unsigned round = 0; round < 12; round++) {
        const unsigned next = round % 4;
        leat_stock_give(&desk->stock, desk->taken[0][round], &desk->peers[0],
                        desk->peers[0].sharer);
        desk->taken[0][round] = desk->taken[0][--desk->count[0]];
        desk->peers[5].stock.own_bytes = LEAT_PEER_OWN_BYTES; /* it has its own by now */
        assert_false(asks(desk, 5, false));
        assert_true(leat_stocks_call(&desk->core));
        leat_stock_leave(&desk->peers[5]);
        desk->peers[5].stock.own_bytes = 0;
        for (unsigned p = 0; p < 4; p++)
            assert_int_equal(desk->conns[p].paused, p != next);
        void *element = leat_stock_take_for(&desk->stock, &desk->peers[next], false);
        assert_non_null(element);
        desk->taken[next][desk->count[next]++] = element;
        assert_null(leat_stock_take_for(&desk->stock, &desk->peers[next], false));
        assert_false(leat_stocks_call(&desk->core));
    }
    for (unsigned p = 0; p < 4; p++)
        leat_stock_leave(&desk->peers[p]);
    desk_free(desk);
}

/* Goal: a connection that was called in vain stays the first. */
static void called_in_vain_costs_no_place(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    while (asks(desk, 0, false))
        continue;
    leat_stock_leave(&desk->peers[0]);
    desk->peers[1].stock.own_bytes = desk->peers[2].stock.own_bytes = LEAT_PEER_OWN_BYTES;
    assert_false(asks(desk, 1, false));
    ends(desk, 0); /* of its own */
    for (unsigned i = 1; i < OWN; i++)
        ends(desk, 0);
    assert_false(leat_stocks_call(&desk->core));
    ends(desk, 0);
    assert_true(leat_stocks_call(&desk->core));
    assert_true(asks(desk, 0, false)); /* nobody stood in line any more */
    assert_false(asks(desk, 2, false));
    desk->world.now_us += 1000;
    assert_false(asks(desk, 1, false));
    ends(desk, 0);
    assert_true(leat_stocks_call(&desk->core));
    assert_true(asks(desk, 1, false));
    assert_true(desk->conns[2].paused);
    leat_stock_leave(&desk->peers[2]);
    desk->peers[1].stock.own_bytes = desk->peers[2].stock.own_bytes = 0;
    desk_free(desk);
}

/* Goal: a request for many structs, the only request of its connection, goes before all connections that pipeline. No
 * other connection takes the structs that come free meanwhile; the wait has an end. */
static void many_for_one_come_before_pipelines(void **state)
{
    (void)state;
    enum { MANY = LEAT_PEER_OWN_BYTES_MOST / ELEMENT + 1 };
    struct desk *desk = desk_new();
    struct leat_stock large;
    void *held[2 * MANY];
    assert_int_equal(leat_stock_init(&large, &desk->core, ELEMENT, 2 * MANY), LEAT_OK);
    for (unsigned i = 0; i < 2 * MANY; i++)
        held[i] = leat_stock_take(&large, NULL);
    assert_true(leat_stock_admits(&large, &desk->peers[1], true, MANY - 1));
    assert_false(leat_stock_admits(&large, &desk->peers[1], true, MANY));
    desk->peers[0].stock.own_bytes = LEAT_PEER_OWN_BYTES;
    assert_null(leat_stock_take_for(&large, &desk->peers[0], false));
    leat_stock_wait(&large, &desk->peers[1], true, MANY);
    struct leat_wanted wanted;
    leat_stocks_wanted(&desk->core, &wanted);
    assert_int_equal(wanted.of_all, MANY);
    assert_int_equal(wanted.of_own, 0);
    assert_true(leat_wanted_of(&wanted, desk->peers[2].sharer, 1));
    assert_int_equal(wanted.of_all, MANY - 1);
    assert_int_equal(wanted.of_own, 0);
    for (unsigned i = 0; i < MANY; i++) {
        assert_false(leat_stocks_call(&desk->core));
        void *own = leat_stock_take_for(&large, &desk->peers[2], true);
        assert_non_null(own);
        assert_int_equal(large.left, i);
        leat_stock_give(&large, own, &desk->peers[2], desk->peers[2].sharer);
        leat_stock_give(&large, held[i], NULL, NULL);
    }
    assert_true(leat_stocks_call(&desk->core));
    assert_false(desk->conns[1].paused);
    assert_true(leat_stock_admits(&large, &desk->peers[1], true, MANY));
    assert_true(desk->conns[0].paused);

    leat_stock_wait(&large, &desk->peers[3], true, 2 * MANY);
    desk->world.now_us += LEAT_STOCK_WAIT_US - 1;
    leat_stocks_tick(&desk->core);
    assert_false(desk->conns[3].closed);
    desk->world.now_us++;
    leat_stocks_tick(&desk->core);
    assert_true(desk->conns[3].closed);
    assert_false(desk->conns[0].closed); /* it waits for its own requests */
    leat_stock_leave(&desk->peers[0]);
    desk->peers[0].stock.own_bytes = 0;
    leat_stock_fini(&large);
    desk_free(desk);
}

/* Goal: as long as a connection waits that has nothing under way, fetches that wait for data are answered, the oldest
 * first, as many as that takes; other fetches are left alone. */
static void fetches_that_wait_give_way(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_fetch fetches[4] = {0};
    for (unsigned i = 0; i < 4; i++) {
        fetches[i].core = &desk->core;
        fetches[i].sharer = desk->peers[2 + i].sharer;
        fetches[i].state = i == 1 ? LEAT_FETCH_RUNNING : LEAT_FETCH_WAITING;
        fetches[i].item_count = 5;
        leat_list_init(&fetches[i].link);
        leat_list_push_back(&desk->core.data->fetches, &fetches[i].by_core);
    }
    leat_fetch_give_way(&desk->core);
    assert_true(leat_list_empty(&desk->core.data->ready_fetches));
    leat_stock_wait(&desk->stock, &desk->peers[0], false, 1); /* it pipelines */
    leat_fetch_give_way(&desk->core);
    assert_true(leat_list_empty(&desk->core.data->ready_fetches));
    leat_stock_wait(&desk->stock, &desk->peers[1], true, 6);
    leat_fetch_give_way(&desk->core);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(fetches[i].over_deadline, i == 0 || i == 2);
    leat_stock_leave(&desk->peers[0]);
    leat_stock_leave(&desk->peers[1]);
    desk_free(desk);
}

/* Goal: however many connections an address has, the address holds half. Its next connections wait for structs of the
 * address. Its fetches that wait for data give way to these connections, and no other address's fetches do. */
static void address_that_has_its_half_waits_for_itself(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < COUNT; i++)
        leat_stock_give(&desk->stock, (uint8_t *)desk->stock.block + (size_t)i * ELEMENT, NULL,
                        NULL); /* now all are there, and others may have half */
    desk_gather(desk, 4);
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(asks(desk, i % 4, true));
    assert_int_equal(desk->stock.left, COUNT);
    assert_false(asks(desk, 0, true));
    assert_false(asks(desk, 1, true));
    struct leat_fetch fetches[2] = {0};
    for (unsigned i = 0; i < 2; i++) {
        fetches[i].core = &desk->core;
        fetches[i].sharer = desk->peers[i == 0 ? 5 : 3].sharer;
        fetches[i].state = LEAT_FETCH_WAITING;
        leat_list_init(&fetches[i].link);
        leat_list_push_back(&desk->core.data->fetches, &fetches[i].by_core);
    }
    leat_fetch_give_way(&desk->core);
    assert_false(fetches[0].over_deadline);
    assert_true(fetches[1].over_deadline);
    assert_false(leat_stocks_call(&desk->core));
    leat_stock_wait(&desk->stock, &desk->peers[6], true, 1); /* it came behind them */
    assert_true(leat_stocks_call(&desk->core));
    assert_false(desk->conns[6].paused);
    assert_true(asks(desk, 6, true));
    assert_true(desk->conns[0].paused);
    ends(desk, 2);
    assert_true(leat_stocks_call(&desk->core));
    assert_false(desk->conns[0].paused);
    assert_true(asks(desk, 0, true));
    leat_stock_leave(&desk->peers[1]);
    desk_end_all(desk);
    for (unsigned i = 0; i < COUNT; i++)
        assert_non_null(leat_stock_take(&desk->stock, NULL));
    desk_free(desk);
}

/* Goal: an address that waits for more than is left holds up nobody behind it. */
static void address_that_wants_more_than_is_left_is_passed(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk_gather(desk, 4);
    for (unsigned i = 0; i < COUNT / 2; i++)
        assert_true(asks(desk, i % 4, true));
    leat_stock_wait(&desk->stock, &desk->peers[0], true, COUNT);
    leat_stock_wait(&desk->stock, &desk->peers[6], true, COUNT / 2);
    assert_true(leat_stocks_call(&desk->core));
    assert_false(desk->conns[6].paused);
    assert_true(desk->conns[0].paused);
    leat_stock_leave(&desk->peers[0]);
    desk_end_all(desk);
    desk_free(desk);
}

/* Goal: addresses that wait have turns, however many connections an address has. */
static void addresses_have_turns_in_line(void **state)
{
    (void)state;
    static const unsigned turns[] = {0, 5, 1, 2, 3};
    struct desk *desk = desk_new();
    while (asks(desk, 7, false))
        continue;
    leat_stock_leave(&desk->peers[7]);
    desk_gather(desk, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_false(asks(desk, i, true));
    desk->peers[5].stock.own_bytes = LEAT_PEER_OWN_BYTES_MOST;
    assert_false(asks(desk, 5, true));
    while (desk->stock.left == 0) /* its own ones first */
        ends(desk, 7);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(leat_stocks_call(&desk->core));
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(desk->conns[turns[k]].paused, k > i);
        assert_true(asks(desk, turns[i], true));
        ends(desk, 7);
    }
    desk_end_all(desk);
    desk_free(desk);
}

/* Goal: an append of more batches than there are structs for has its turn, and is not refused. */
static void append_of_many_batches_waits_in_line(void **state)
{
    (void)state;
    enum { MANY = 100 };
    const struct leat_log_ref log = {1, 0, 0};
    struct desk *desk = desk_new();
    struct leat_core *core = &desk->core;
    struct leat_stock *pool = &core->part_pool;
    void *parts[MANY];
    assert_int_equal(
        leat_stock_init(&core->append_pool, core, sizeof(struct leat_append_request), 8), LEAT_OK);
    assert_int_equal(leat_stock_init(pool, core, sizeof(struct leat_append_part), MANY), LEAT_OK);
    for (unsigned i = 0; i < MANY; i++)
        parts[i] = leat_stock_take(pool, NULL);
    desk->peers[1].stock.own_bytes = LEAT_PEER_OWN_BYTES_MOST;
    for (unsigned again = 0; again < 2; again++) {
        assert_null(leat_append_begin(&desk->peers[1], true, log, 0, MANY, NULL, NULL));
        assert_true(desk->conns[1].paused);
        assert_int_equal(core->append_pool.left, 8);
        struct leat_wanted wanted;
        leat_stocks_wanted(core, &wanted); /* readers have nothing that it could use */
        assert_int_equal(wanted.of_all, 0);
        for (unsigned i = 0; i < MANY - 1; i++) {
            assert_false(leat_stocks_call(core));
            leat_stock_give(pool, parts[i], NULL, NULL);
        }
        assert_true(leat_stocks_call(core));
        assert_false(desk->conns[1].paused);
        for (unsigned i = 0; i < MANY - 1; i++) /* somebody is faster */
            parts[i] = leat_stock_take(pool, NULL);
    }
    leat_stock_leave(&desk->peers[1]);
    desk->peers[1].stock.own_bytes = 0;
    leat_stock_fini(&core->append_pool);
    leat_stock_fini(pool);
    desk_free(desk);
}

static void note_ready(struct leat_fetch *fetch)
{
    ++*(unsigned *)fetch->owner;
}

/* Goal: fetches also give way that wait, or whose own answer waits, until their connection takes earlier answers. A
 * fetch that is under way, or whose connection takes its answers, is left alone. */
static void fetches_of_slow_connections_give_way(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_fetch fetches[5] = {0};
    struct leat_fetch_item items[5] = {0};
    unsigned refused[5] = {0};
    struct leat_list deferred, slow;
    leat_list_init(&deferred);
    leat_list_init(&slow);
    for (unsigned i = 0; i < 5; i++) {
        struct leat_peer *peer = &desk->peers[i];
        leat_list_init(&peer->slow);
        if (i != 1) leat_list_push_back(&slow, &peer->slow);
        fetches[i] = (struct leat_fetch){.core = &desk->core,
                                         .peer = peer,
                                         .sharer = peer->sharer,
                                         .items = &items[i],
                                         .item_count = 5,
                                         .bytes = 100,
                                         .on_ready = note_ready,
                                         .owner = &refused[i]};
        items[i].result.bytes = 100;
        fetches[i].state = i == 3 ? LEAT_FETCH_READY : LEAT_FETCH_RUNNING;
        leat_list_init(&fetches[i].link);
        if (i < 2) leat_list_push_back(&deferred, &fetches[i].link); /* the third reads */
        leat_list_push_back(&desk->core.data->fetches, &fetches[i].by_core);
    }
    leat_list_push_back(&deferred, &fetches[4].link);
    leat_fetch_give_way(&desk->core);
    leat_stock_wait(&desk->stock, &desk->peers[6], true, 6);
    leat_fetch_give_way(&desk->core); /* two of them are enough */
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(refused[i], i == 0 || i == 3);
        assert_int_equal(items[i].result.code, refused[i] ? LEAT_E_AGAIN : LEAT_OK);
        assert_int_equal(fetches[i].bytes, refused[i] ? 0 : 100);
    }
    assert_true(leat_list_empty(&fetches[0].link));
    assert_int_equal(fetches[0].state, LEAT_FETCH_READY);
    leat_stock_leave(&desk->peers[6]);
    desk_free(desk);
}

/* Goal: a fetch whose logs can't be read leaves none of its own structs to other connections. */
static void fetch_of_no_logs_leaves_nothing_of_its_own(void **state)
{
    (void)state;
    enum { LOGS = 5 };
    struct desk *desk = desk_new();
    struct leat_core *core = &desk->core;
    struct leat_peer *peer = &desk->peers[1];
    void *items[2 * LOGS];
    assert_int_equal(leat_stock_init(&core->fetch_pool, core, LEAT_FETCH_STRUCT_BYTES, 8), LEAT_OK);
    assert_int_equal(
        leat_stock_init(&core->item_pool, core, sizeof(struct leat_fetch_item), 2 * LOGS), LEAT_OK);
    for (unsigned i = 0; i < 2 * LOGS; i++)
        items[i] = leat_stock_take(&core->item_pool, NULL);
    leat_list_init(&core->owing_peers);
    leat_list_init(&peer->owing);
    leat_borrower_init(&peer->borrowed);
    uint8_t control[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 4);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_u64(&writer, 1);
    leat_msg_write_array(&writer, LOGS);
    for (unsigned i = 0; i < LOGS; i++)
        leat_msg_write_u64(&writer, 1); /* no logs */
    const struct leat_frame frame = {.control = control, .control_bytes = writer.used};
    assert_int_equal(leat_fetch_frame(peer, &frame), LEAT_HANDLED);
    assert_int_equal(desk->conns[1].answers, 1);
    assert_int_equal(core->item_pool.left, 0);
    assert_int_equal(peer->stock.own_bytes, 0);
    assert_int_equal(core->counters.own_bytes, 0);
    for (unsigned i = 0; i < 2 * LOGS; i++)
        leat_stock_give(&core->item_pool, items[i], NULL, NULL);
    leat_stock_fini(&core->fetch_pool);
    leat_stock_fini(&core->item_pool);
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_for_one_has_it_where_the_stock_is_empty),
        cmocka_unit_test(pipelines_leave_own_ones_to_others),
        cmocka_unit_test(structs_come_in_turns),
        cmocka_unit_test(called_in_vain_costs_no_place),
        cmocka_unit_test(many_for_one_come_before_pipelines),
        cmocka_unit_test(fetches_that_wait_give_way),
        cmocka_unit_test(address_that_has_its_half_waits_for_itself),
        cmocka_unit_test(address_that_wants_more_than_is_left_is_passed),
        cmocka_unit_test(addresses_have_turns_in_line),
        cmocka_unit_test(append_of_many_batches_waits_in_line),
        cmocka_unit_test(fetches_of_slow_connections_give_way),
        cmocka_unit_test(fetch_of_no_logs_leaves_nothing_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
