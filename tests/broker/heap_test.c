/* SPDX-License-Identifier: Apache-2.0 */
/* What the heap may take beyond its room, with what the pool has and may give back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/port.h"
#include "broker/net/core.h"
#include "broker/net/heap.h"
#include "store/private.h"

#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)

static void heap_takes_what_the_pool_does_not_hold(void **state)
{
    (void)state;
    assert_int_equal(leat_heap_look(0, 4 * STEP, 4 * STEP, false), LEAT_HEAP_FITS);
    assert_int_equal(leat_heap_look(STEP, 4 * STEP, 3 * STEP, false), LEAT_HEAP_FITS);
    assert_int_equal(leat_heap_look(2 * STEP, 4 * STEP, 0, false), LEAT_HEAP_FITS);
}

static void heap_waits_for_a_step_that_the_pool_still_holds(void **state)
{
    (void)state;
    assert_int_equal(leat_heap_look(1, 4 * STEP, 4 * STEP, false), LEAT_HEAP_WAITS);
    assert_int_equal(leat_heap_look(STEP + 1, 4 * STEP, 3 * STEP, false), LEAT_HEAP_WAITS);
    assert_int_equal(leat_heap_look(9 * STEP, 4 * STEP, 2 * STEP, false), LEAT_HEAP_WAITS);
}

static void heap_does_not_wait_for_what_never_comes(void **state)
{
    (void)state;
    assert_int_equal(leat_heap_look(3 * STEP + 1, 4 * STEP, STEP, false), LEAT_HEAP_NEVER);
    assert_int_equal(leat_heap_look(1, STEP, STEP, false), LEAT_HEAP_NEVER);
    assert_int_equal(leat_heap_look(1, 4 * STEP, 4 * STEP, true), LEAT_HEAP_NEVER);
}

static void heap_is_full_when_one_step_of_the_pool_is_left(void **state)
{
    (void)state;
    assert_false(leat_heap_is_full(0, STEP, 0));
    assert_true(leat_heap_is_full(1, STEP, 0));
    assert_false(leat_heap_is_full(3 * STEP, 4 * STEP, 0));
    assert_true(leat_heap_is_full(3 * STEP + 1, 4 * STEP, 0));
    assert_false(leat_heap_is_full(STEP, 4 * STEP, 2 * STEP)); /* replicas have the rest */
    assert_true(leat_heap_is_full(STEP + 1, 4 * STEP, 2 * STEP));
}

/* Goal: when many logs ask for segments at the same moment, each log sees what the logs before it have asked for. */
static void segments_that_were_asked_for_count_as_taken(void **state)
{
    (void)state;
    struct leat_store_usage usage = {.rows_free_bytes = 5000};
    assert_int_equal(leat_heap_taken(90000, &usage), 85000);
    usage.rows_asked_bytes = 5000;
    assert_int_equal(leat_heap_taken(90000, &usage), 90000);
    usage.rows_asked_bytes = 8000;
    assert_int_equal(leat_heap_taken(90000, &usage), 93000);
    usage = (struct leat_store_usage){.rows_free_bytes = 5000};
    assert_int_equal(leat_heap_taken(4000, &usage), 0);
}

/* Goal: as many cores are served as the budget has room for, and a budget below the least has room for fewer. */
static void budget_has_room_for_so_many_cores(void **state)
{
    (void)state;
    const uint64_t mib = 1024 * 1024;
    uint64_t before = 0;
    for (uint32_t cores = 1; cores <= LEAT_CORES_MAX; cores++) {
        uint64_t least = leat_node_least_memory(cores);
        assert_true(least > before);
        before = least;
        assert_int_equal(leat_node_pool_bytes(least - mib, cores), 0);
        assert_int_equal(leat_node_cores_most(least - mib, cores), cores > 1 ? cores - 1 : 1);
        for (uint64_t memory = least; memory < 64 * least; memory += memory / 3) {
            assert_int_equal(leat_node_cores_most(memory, cores), cores);
            uint64_t pool = leat_node_pool_bytes(memory, cores);
            assert_true(pool >= STEP && pool < memory && pool % STEP == 0);
            assert_true(leat_node_heap_room(memory, cores) >= 8 * mib);
        }
    }
    assert_true(leat_node_least_memory(1) <= 128 * mib);
    assert_true(leat_node_least_memory(2) <= 192 * mib);
}

/* Goal: a server does not start with less memory than its stored data takes; with the memory that it had when it stored
 * the data, a server starts. */
static void least_memory_holds_what_is_stored(void **state)
{
    (void)state;
    const uint64_t mib = 1024 * 1024, small = 224 * mib;
    assert_true(leat_heap_holds(small, 2, 0, 0));
    assert_true(leat_heap_holds(small, 2, 1000, 5000));
    assert_false(leat_heap_holds(small, 2, 30000, 90000));
    assert_int_equal(leat_heap_least_memory(small, 2, 0, 0), small);
    uint64_t least = leat_heap_least_memory(small, 2, 30000, 90000);
    uint64_t takes = 30000 * UINT64_C(7168) + 90000 * UINT64_C(704);
    assert_true(least > small + takes - 2 * STEP && least < small + takes + 2 * STEP);
    assert_int_equal(leat_heap_least_memory(least, 2, 30000, 90000), least);
    assert_true(leat_heap_least_memory(least - 16 * mib, 2, 30000, 90000) == least);
    assert_int_equal(leat_heap_least_memory(2048 * mib, 2, 30000, 90000), 2048 * mib);
}

static uint64_t stored_bytes;
static uint64_t as_many_as_are_stored(void *ctx)
{
    (void)ctx;
    return stored_bytes;
}

static void core_has(struct leat_core *core, uint64_t connections, uint64_t addresses)
{
    atomic_store(&core->counters.connections, connections);
    atomic_store(&core->counters.addresses, addresses);
}

/* Goal: started with the least memory that a refusal names, a node takes its first connections and appends to each of
 * its logs. Numbers of logs are odd, so that none fits a step of the pool by chance. */
static void least_memory_that_is_named_is_of_use(void **state)
{
    (void)state;
    struct leat_store *store = calloc(1, sizeof *store);
    for (uint32_t cores = 1; cores <= 8; cores *= 2) {
        struct leat_core *all = calloc(cores, sizeof *all);
        for (uint64_t logs = 1; logs < 60000; logs = logs * 5 / 4 + 1) {
            uint64_t least =
                leat_heap_least_memory(leat_node_least_memory(cores), cores, logs, 3 * logs);
            assert_true(leat_heap_holds(least, cores, logs, 3 * logs));
            stored_bytes = logs * LEAT_LOG_HEAP_BYTES + 3 * logs * LEAT_SEGMENT_HEAP_BYTES;
            struct leat_node node = {
                .options = {.cores = cores, .heap_bytes = as_many_as_are_stored},
                .cores = all,
                .store = store,
                .pool_bytes = leat_node_pool_bytes(least, cores),
                .heap_room_bytes = leat_node_heap_room(least, cores),
                .peers_place_bytes = leat_node_peers_bytes(least),
            };
            core_has(&all[0], 4000, cores); /* of a few addresses */
            assert_false(leat_node_heap_is_full(&node, LEAT_HEAP_SPARE_BYTES, 0));
            assert_true(leat_node_heap_admits_peer(&node, 4000, 2000));
            core_has(&all[0], 1400, 1400); /* each of its own address */
            assert_true(leat_node_heap_admits_peer(&node, 1400, 1));
        }
        free(all);
    }
    free(store);
}

/* Goal: for the logs of a node that dies there is room beforehand, and none is kept once they have come. */
static void share_is_what_a_node_has_while_another_is_away(void **state)
{
    (void)state;
    assert_int_equal(leat_heap_share(30001, 3), 15001);
    assert_int_equal(leat_heap_share(30000, 2), 30000);
    assert_int_equal(leat_heap_share(30000, 1), 30000);
    assert_int_equal(leat_heap_share(30000, 0), 30000); /* nobody has been heard of */
    assert_int_equal(leat_heap_share(0, 3), 0);
    uint64_t one = leat_heap_ahead_bytes(1, 0);
    assert_true(one >= 7000 && one <= 8000);
    assert_int_equal(leat_heap_ahead_bytes(15001, 10001), 5000 * one);
    assert_int_equal(leat_heap_ahead_bytes(15001, 15001), 0);
    assert_int_equal(leat_heap_ahead_bytes(15001, 20000), 0);
}

enum { TICK_US = 1000 * 1000 }; /* a log asks again so often */

/* Returns how long logs wait that come at `from_us`, while the pool holds so much. */
static uint64_t wait_from(struct leat_heap_wait *wait, uint64_t grown_bytes, uint64_t from_us)
{
    uint64_t now_us = from_us;
    while (!leat_heap_waited(wait, grown_bytes, now_us)) {
        assert_true(leat_heap_waits(wait, now_us + TICK_US));
        now_us += TICK_US;
        assert_true(now_us < from_us + 100 * TICK_US);
    }
    return now_us - from_us;
}

static void log_waits_for_so_long_and_then_no_more(void **state)
{
    (void)state;
    struct leat_heap_wait wait = {0};
    assert_false(leat_heap_waits(&wait, 1));
    assert_int_equal(wait_from(&wait, 4 * STEP, 5), LEAT_HEAP_WAIT_US);
    assert_int_equal(wait_from(&wait, 4 * STEP, 5 + LEAT_HEAP_WAIT_US + TICK_US), 0);
    uint64_t later_us = 5 + LEAT_HEAP_WAIT_US + TICK_US + LEAT_HEAP_WANTED_US;
    assert_false(leat_heap_waits(&wait, later_us));
    assert_int_equal(wait_from(&wait, 4 * STEP, later_us), LEAT_HEAP_WAIT_US);
}

static void log_waits_anew_when_a_step_was_given_back(void **state)
{
    (void)state;
    struct leat_heap_wait wait = {0};
    for (unsigned i = 0; i < 9; i++)
        assert_false(leat_heap_waited(&wait, 4 * STEP, 5 + i * (uint64_t)TICK_US));
    assert_int_equal(wait_from(&wait, 3 * STEP, 5 + 9 * (uint64_t)TICK_US), LEAT_HEAP_WAIT_US);
}

/* Goal: a pool that grows, for which it was asked before, gives nobody a reason to wait longer. */
static void log_does_not_wait_longer_when_the_pool_grows(void **state)
{
    (void)state;
    struct leat_heap_wait wait = {0};
    for (unsigned i = 0; i < 9; i++)
        assert_false(leat_heap_waited(&wait, 3 * STEP, 5 + i * (uint64_t)TICK_US));
    assert_int_equal(wait_from(&wait, 4 * STEP, 5 + 9 * (uint64_t)TICK_US), TICK_US);
}

static uint64_t no_bytes(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Goal: memory that connections take beyond their core's share is given up by the segments; where the segments can't,
 * no more connections come. */
static void connections_count_beyond_what_the_budget_has_a_place_for(void **state)
{
    (void)state;
    struct leat_store *store = calloc(1, sizeof *store);
    struct leat_core *cores = calloc(2, sizeof *cores);
    struct leat_node node = {.options = {.cores = 2, .heap_bytes = no_bytes},
                             .cores = cores,
                             .store = store,
                             .pool_bytes = STEP,
                             .heap_room_bytes = 4 * 1024 * 1024,
                             .peers_place_bytes = 8192 * LEAT_HEAP_PEER_BYTES};
    core_has(&cores[0], 7192, 0);
    assert_int_equal(leat_node_heap_over(&node), 0);
    assert_true(leat_node_heap_admits_peer(&node, 0, 0));
    core_has(&cores[1], 2000, 0);
    assert_false(leat_node_heap_admits_peer(&node, 2000, 0));
    core_has(&cores[1], 990, 0);
    assert_true(leat_node_heap_admits_peer(&node, 990, 0)); /* all have a place */
    core_has(&cores[1], 6000, 0);
    assert_int_equal(leat_node_heap_over(&node),
                     5000 * LEAT_HEAP_PEER_BYTES - node.heap_room_bytes);
    atomic_store(&cores[0].counters.closed_peers, 100);
    assert_int_equal(leat_node_heap_over(&node),
                     5100 * LEAT_HEAP_PEER_BYTES - node.heap_room_bytes);
    atomic_store(&cores[0].counters.closed_peers, 0);
    node.pool_bytes = 2 * STEP; /* gives one up */
    assert_true(leat_node_heap_admits_peer(&node, 8192, 0));
    assert_false(leat_node_heap_admits_peer(&node, LEAT_CORE_PEERS_MAX, 0));
    /* What connections have of their own counts as well, beyond what the budget has a place for. */
    uint64_t over = leat_node_heap_over(&node);
    atomic_store(&cores[0].counters.own_bytes, LEAT_CORE_OWN_BYTES);
    atomic_store(&cores[1].counters.own_bytes, LEAT_CORE_OWN_BYTES + 3 * LEAT_CORE_OWN_BYTES);
    assert_int_equal(leat_node_heap_over(&node), over + 3 * LEAT_CORE_OWN_BYTES);
    over = leat_node_heap_over(&node);
    node.groups_room.bytes_max = 5000; /* so do tables of consumer groups, beyond theirs */
    atomic_store(&node.groups_room.bytes, 5000);
    assert_int_equal(leat_node_heap_over(&node), over);
    atomic_store(&node.groups_room.bytes, 5777);
    assert_int_equal(leat_node_heap_over(&node), over + 777);
    struct leat_peer peer = {.core = &cores[0]};
    cores[0].node = &node;
    leat_list_init(&peer.stock.link);
    assert_true(leat_own_take(&peer, true, 512));
    node.pool_bytes = STEP;
    assert_false(leat_own_take(&peer, true, 512));
    leat_own_give(&cores[0], &peer, 512);
    free(cores);
    free(store);
}

/* Goal: a client with many addresses, like the owner of many networks of IPv6, takes no more memory than other clients:
 * the memory of addresses counts with their connections. And one address leaves half of the place to others. */
static void addresses_count_with_their_connections(void **state)
{
    (void)state;
    struct leat_store *store = calloc(1, sizeof *store);
    struct leat_core *cores = calloc(2, sizeof *cores);
    const uint64_t place = 8192 * LEAT_HEAP_PEER_BYTES;
    struct leat_node node = {.options = {.cores = 2, .heap_bytes = no_bytes},
                             .cores = cores,
                             .store = store,
                             .pool_bytes = STEP,
                             .heap_room_bytes = 4 * 1024 * 1024,
                             .peers_place_bytes = place};
    const uint64_t each = LEAT_HEAP_PEER_BYTES + LEAT_HEAP_ADDRESS_BYTES;
    core_has(&cores[0], place / each - 1, place / each - 1);
    assert_true(leat_node_heap_admits_peer(&node, 0, 0));
    core_has(&cores[0], place / each, place / each);
    core_has(&cores[1], 1000, 1000);
    assert_false(leat_node_heap_admits_peer(&node, 0, 0));
    assert_in_range(leat_node_heap_over(&node), 1000 * each - node.heap_room_bytes - each,
                    1000 * each - node.heap_room_bytes);
    core_has(&cores[0], 4096, 1);
    core_has(&cores[1], 0, 0);
    assert_true(leat_node_heap_admits_peer(&node, 4096, 0));
    assert_false(leat_node_heap_admits_peer(&node, 4096, 4096)); /* one address has half */
    node.pool_bytes = 2 * STEP; /* there is memory beside the place */
    assert_true(leat_node_heap_admits_peer(&node, 4096, 4096));
    free(cores);
    free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_takes_what_the_pool_does_not_hold),
        cmocka_unit_test(heap_waits_for_a_step_that_the_pool_still_holds),
        cmocka_unit_test(heap_does_not_wait_for_what_never_comes),
        cmocka_unit_test(heap_is_full_when_one_step_of_the_pool_is_left),
        cmocka_unit_test(segments_that_were_asked_for_count_as_taken),
        cmocka_unit_test(budget_has_room_for_so_many_cores),
        cmocka_unit_test(least_memory_holds_what_is_stored),
        cmocka_unit_test(least_memory_that_is_named_is_of_use),
        cmocka_unit_test(addresses_count_with_their_connections),
        cmocka_unit_test(connections_count_beyond_what_the_budget_has_a_place_for),
        cmocka_unit_test(share_is_what_a_node_has_while_another_is_away),
        cmocka_unit_test(log_waits_for_so_long_and_then_no_more),
        cmocka_unit_test(log_waits_anew_when_a_step_was_given_back),
        cmocka_unit_test(log_does_not_wait_longer_when_the_pool_grows),
    };
    return cmocka_run_group_tests_name("broker heap", tests, NULL, NULL);
}
