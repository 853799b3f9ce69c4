/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a node's heap, by heap.c alone: at how many bytes a log or a connection more is admitted, what the pool
 * gives up for it, and what the node log is told. What the store has is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/net/heap.h"
#include "tests/broker/alone.h"

enum {
    LOG = LEAT_LOG_HEAP_BYTES,
    KEPT = LEAT_HEAP_SPARE_BYTES + LEAT_HEAP_SLAB_BYTES,
    ROOM = 1024 * 1024, /* of the heap, for logs and what is stored */
};
#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)
#define POOL (4 * STEP)

static struct {
    uint64_t heap;
    struct leat_store_usage usage;
    struct leat_env store_env;
    struct leat_member rows[3];
    uint64_t room; /* of a budget */
    unsigned trims;
} it;

/* ---- what it calls ---- */

void leat_store_usage(const struct leat_store *store, struct leat_store_usage *out_usage)
{
    assert_ptr_equal(store, &it);
    *out_usage = it.usage;
}
uint64_t leat_groups_room_over(const struct leat_groups_room *room)
{
    assert_ptr_equal(room, &alone.node.groups_room);
    return 0;
}
uint64_t leat_node_heap_room(uint64_t memory_bytes, uint32_t cores)
{
    (void)memory_bytes, (void)cores;
    return it.room;
}
uint64_t leat_node_pool_bytes(uint64_t memory_bytes, uint32_t cores)
{
    (void)cores;
    return memory_bytes;
}
static uint64_t heap_bytes(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return it.heap;
}
static void heap_trim(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    it.trims++;
}

/* ---- the rig ---- */

static struct leat_node *begin(void)
{
    struct leat_node *node = &alone.node;
    alone_begin();
    memset(&it, 0, sizeof it);
    it.room = ROOM;
    it.store_env = alone.env;
    node->store = (void *)&it;
    node->options.store_env = &it.store_env;
    node->options.heap_bytes = heap_bytes;
    node->options.heap_trim = heap_trim;
    node->options.heap_ctx = &it;
    node->heap_room_bytes = ROOM;
    node->pool_bytes = POOL;
    node->copies_bytes = 2 * STEP;
    it.usage.memory_grown = it.usage.memory_limit = POOL;
    return node;
}

/* ---- logs ---- */

static void log_is_admitted_where_there_is_memory(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    it.heap = ROOM - LOG; /* it fits into its room */
    assert_true(leat_node_heap_admits(node, 50));
    assert_false(leat_heap_waits(&node->heap_wait, 50));
    it.heap++;
    assert_false(leat_node_heap_admits(node, 50)); /* the pool holds all */
    assert_true(leat_heap_waits(&node->heap_wait, 51));
    it.usage.memory_grown = 3 * STEP;
    it.heap = ROOM + STEP - LOG;
    assert_true(leat_node_heap_admits(node, 60));
    it.heap++;
    assert_false(leat_node_heap_admits(node, 60));
    node->options.heap_bytes = NULL;
    assert_true(leat_node_heap_admits(node, 60));
    alone_end();
}

static void log_that_waited_is_refused(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    it.heap = ROOM;
    assert_false(leat_node_heap_refuses(node, 5));
    for (uint64_t at_us = 5; at_us < 5 + LEAT_HEAP_WAIT_US; at_us += LEAT_HEAP_WANTED_US - 1) {
        assert_false(leat_node_heap_admits(node, at_us));
        assert_false(leat_node_heap_refuses(node, at_us));
    }
    assert_false(leat_node_heap_admits(node, 4 + (uint64_t)LEAT_HEAP_WAIT_US));
    assert_false(leat_node_heap_refuses(node, 4 + (uint64_t)LEAT_HEAP_WAIT_US));
    assert_true(leat_node_heap_refuses(node, 5 + (uint64_t)LEAT_HEAP_WAIT_US));
    uint64_t later_us = 4 + (uint64_t)LEAT_HEAP_WAIT_US + LEAT_HEAP_WANTED_US;
    assert_true(leat_node_heap_refuses(node, later_us - 1));
    assert_false(leat_node_heap_refuses(node, later_us)); /* nobody asks any more */
    alone_end();
}

static void pool_is_pressed(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    assert_false(leat_node_pool_pressed(node, 50));
    it.usage.memory_limit--;
    assert_true(leat_node_pool_pressed(node, 50));
    it.usage.memory_kept = true;
    assert_false(leat_node_pool_pressed(node, 50));
    it.heap = ROOM;
    assert_false(leat_node_heap_admits(node, 50));
    assert_true(leat_node_pool_pressed(node, 51));
    alone_end();
}

static void so_many_logs_have_memory(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    node->heap_room_bytes = STEP + KEPT - POOL; /* in 64 bits */
    node->pool_bytes = POOL;
    assert_int_equal(leat_node_logs_most(node), 1);
    node->heap_room_bytes += 2 * LOG - 1;
    assert_int_equal(leat_node_logs_most(node), 1);
    node->heap_room_bytes++;
    assert_int_equal(leat_node_logs_most(node), 2);
    node->heap_room_bytes -= 2 * LOG + 5; /* less than what is kept */
    assert_int_equal(leat_node_logs_most(node), 1);
    const uint64_t most = (uint64_t)ALONE_CORES * LEAT_CORE_LOGS_MAX;
    node->heap_room_bytes = STEP + KEPT + most * LOG - POOL;
    assert_int_equal(leat_node_logs_most(node), most);
    node->heap_room_bytes -= LOG;
    assert_int_equal(leat_node_logs_most(node), most - 1);
    node->heap_room_bytes += 3 * LOG;
    assert_int_equal(leat_node_logs_most(node), most);
    node->options.heap_bytes = NULL;
    assert_int_equal(leat_node_logs_most(node), 0);
    alone_end();
}

static void streams_may_take_so_much(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    assert_int_equal(leat_node_heap_most(node), ROOM + POOL - STEP - KEPT);
    it.usage.memory_kept = true;
    it.usage.memory_grown = STEP;
    assert_int_equal(leat_node_heap_most(node), ROOM + POOL - STEP - KEPT);
    it.usage.memory_grown = 0; /* it has its first step all the same */
    assert_int_equal(leat_node_heap_most(node), ROOM + POOL - STEP - KEPT);
    it.usage.memory_grown = 2 * STEP;
    assert_int_equal(leat_node_heap_most(node), ROOM + POOL - 2 * STEP - KEPT);
    it.usage.memory_kept = false;
    assert_int_equal(leat_node_heap_most(node), ROOM + POOL - STEP - KEPT);
    node->pool_bytes = STEP;
    node->heap_room_bytes = KEPT + 1;
    assert_int_equal(leat_node_heap_most(node), 1);
    node->heap_room_bytes = KEPT - 1;
    assert_int_equal(leat_node_heap_most(node), 0);
    alone_end();
}

static void budget_holds_what_is_stored(void **state)
{
    (void)state;
    (void)begin();
    enum { LOGS = 3000, SEGMENTS = 70000 };
    const uint64_t takes =
        LOGS * (uint64_t)LEAT_HEAP_LOG_LEAST_BYTES + SEGMENTS * (uint64_t)LEAT_SEGMENT_HEAP_BYTES;
    uint64_t pool = STEP + takes - ROOM; /* its last step it keeps */
    assert_true(leat_heap_holds(pool, 2, LOGS, SEGMENTS));
    assert_false(leat_heap_holds(pool - 1, 2, LOGS, SEGMENTS));
    assert_false(leat_heap_holds(pool, 2, LOGS + 1, SEGMENTS));
    assert_false(leat_heap_holds(pool, 2, LOGS, SEGMENTS + 1));
    it.room = takes + 3 * STEP; /* room that is left is no lack */
    assert_true(leat_heap_holds(STEP, 2, LOGS, SEGMENTS));
    it.room = takes;
    assert_true(leat_heap_holds(0, 2, LOGS, SEGMENTS));
    alone_end();
}

/* Goal: a size that fits into the room of the heap fits, whatever the pool has taken by then. */
static void heap_is_looked_at(void **state)
{
    (void)state;
    assert_int_equal(leat_heap_look(0, STEP, 9 * STEP, true), LEAT_HEAP_FITS);
    assert_int_equal(leat_heap_look(1, 4 * STEP, 4 * STEP - 1, true), LEAT_HEAP_FITS);
    assert_int_equal(leat_heap_look(1, 4 * STEP, 4 * STEP, true), LEAT_HEAP_NEVER);
    assert_int_equal(leat_heap_look(1, 4 * STEP, 4 * STEP, false), LEAT_HEAP_WAITS);
    assert_int_equal(leat_heap_look(1, STEP, STEP, false), LEAT_HEAP_NEVER);
    assert_int_equal(leat_heap_look(1, STEP, STEP + 1, false), LEAT_HEAP_WAITS);
    assert_false(leat_heap_is_full(0, 0, 9 * STEP));
    assert_false(leat_heap_is_full(1, 3 * STEP + 1, 2 * STEP));
    assert_true(leat_heap_is_full(2, 3 * STEP + 1, 2 * STEP));
}

/* ---- what the pool gives up ---- */

static void what_is_not_counted_takes_nothing(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    atomic_store(&alone.cores[0].counters.own_bytes, LEAT_CORE_OWN_BYTES + 5);
    atomic_store(&alone.cores[1].counters.own_bytes, LEAT_CORE_OWN_BYTES);
    it.heap = ROOM;
    assert_int_equal(leat_node_heap_over(node), 5);
    node->options.heap_bytes = NULL;
    node->heap_room_bytes = 0;
    assert_int_equal(leat_node_heap_over(node), 0);
    alone_end();
}

static void pool_gives_up_what_the_heap_takes(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    it.heap = ROOM;
    assert_int_equal(leat_node_pool_less(node), 0);
    assert_int_equal(it.trims, 1);
    it.heap = ROOM + 7;
    assert_int_equal(leat_node_pool_less(node), 7);
    atomic_store(&node->logs_share, 5); /* logs of a node that may die */
    atomic_store(&node->partition_count, 3);
    assert_int_equal(leat_node_pool_less(node), 7 + 2 * LOG);
    assert_false(leat_node_heap_admits(node, alone.now_us)); /* one waits */
    assert_int_equal(leat_node_pool_less(node), 7 + 3 * LOG);
    it.usage.arenas_grown = 2 * STEP; /* of more nodes than were foreseen */
    assert_int_equal(leat_node_pool_less(node), 7 + 3 * LOG);
    it.usage.arenas_grown += 9;
    assert_int_equal(leat_node_pool_less(node), 7 + 3 * LOG + 9);
    node->options.heap_trim = NULL;
    assert_int_equal(leat_node_pool_less(node), 7 + 3 * LOG + 9);
    assert_int_equal(it.trims, 6);
    it.heap = ROOM + 3 * STEP; /* its last step it keeps */
    assert_int_equal(leat_node_copies_less(&alone.cores[1]), 0);
    it.heap += 8;
    assert_int_equal(leat_node_copies_less(&alone.cores[1]), 8);
    alone_end();
}

/* ---- connections ---- */

static void connection_is_admitted_where_there_is_memory(void **state)
{
    (void)state;
    enum { ONE = LEAT_HEAP_PEER_BYTES + LEAT_HEAP_ADDRESS_BYTES };
    struct leat_node *node = begin();
    /* All that is left of it: what is kept for segments, and then a last connection. */
    it.heap = ROOM + POOL + node->copies_bytes - STEP - KEPT - LEAT_HEAP_SPARE_BYTES;
    node->peers_place_bytes = ONE; /* it has its place, though nothing else is left */
    it.heap += 2 * LEAT_HEAP_SPARE_BYTES;
    assert_true(leat_node_heap_admits_peer(node, 0, 0));
    node->peers_place_bytes = ONE - 1;
    assert_false(leat_node_heap_admits_peer(node, 0, 0));
    it.heap = ROOM + POOL + node->copies_bytes - STEP - KEPT - (2 * ONE - 1);
    assert_true(leat_node_heap_admits_peer(node, 0, 0));
    it.heap++;
    assert_false(leat_node_heap_admits_peer(node, 0, 0));
    node->peers_place_bytes = 0; /* no place is left */
    it.heap = ROOM + POOL + node->copies_bytes - STEP - KEPT - ONE;
    assert_true(leat_node_heap_admits_peer(node, 0, 1));
    it.heap++;
    assert_false(leat_node_heap_admits_peer(node, 0, 1));
    alone_end();
}

/* ---- once a second ---- */

static void full_node_is_told_now_and_then(void **state)
{
    (void)state;
    static const char *const told =
        "node log warn: logs and stored segments take all that the memory "
        "budget leaves them\n";
    struct leat_node *node = begin();
    struct leat_core *core = &alone.cores[0];
    it.heap = ROOM + POOL + node->copies_bytes - STEP - KEPT - LOG;
    leat_heap_tick(core);
    assert_said("");
    it.heap++;
    leat_heap_tick(&alone.cores[1]); /* the first core alone says so */
    assert_said("");
    for (unsigned i = 0; i < 2 * LEAT_HEAP_TOLD_TICKS + 1; i++) {
        leat_heap_tick(core);
        assert_said(i % LEAT_HEAP_TOLD_TICKS == 0 ? told : "");
    }
    alone_end();
}

static void share_is_of_all_nodes_that_have_not_gone(void **state)
{
    (void)state;
    struct leat_node *node = begin();
    struct leat_core *core = &alone.cores[0];
    static const enum leat_node_state states[] = {LEAT_NODE_UP, LEAT_NODE_DOWN, LEAT_NODE_UP};
    for (uint32_t i = 0; i < 3; i++) {
        it.rows[i].info.state = states[i];
        core->members.rows[i] = &it.rows[i];
    }
    core->members.count = 3;
    core->logs_known = 101;
    leat_heap_tick(&alone.cores[1]);
    assert_int_equal(atomic_load(&node->logs_share), 0);
    leat_heap_tick(core);
    assert_int_equal(atomic_load(&node->logs_share), 51);
    it.rows[0].info.state = LEAT_NODE_GONE;
    leat_heap_tick(core);
    assert_int_equal(atomic_load(&node->logs_share), 101);
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_is_admitted_where_there_is_memory),
        cmocka_unit_test(log_that_waited_is_refused),
        cmocka_unit_test(pool_is_pressed),
        cmocka_unit_test(so_many_logs_have_memory),
        cmocka_unit_test(streams_may_take_so_much),
        cmocka_unit_test(budget_holds_what_is_stored),
        cmocka_unit_test(heap_is_looked_at),
        cmocka_unit_test(what_is_not_counted_takes_nothing),
        cmocka_unit_test(pool_gives_up_what_the_heap_takes),
        cmocka_unit_test(connection_is_admitted_where_there_is_memory),
        cmocka_unit_test(full_node_is_told_now_and_then),
        cmocka_unit_test(share_is_of_all_nodes_that_have_not_gone),
    };
    return cmocka_run_group_tests_name("broker heap_node", tests, NULL, NULL);
}
