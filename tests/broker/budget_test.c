/* SPDX-License-Identifier: Apache-2.0 */
/* How a memory budget is split: the share of each part, the least budget and the largest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/intake.h"
#include "broker/net/core.h"
#include "groups/classic.h"
#include "wire/frame.h"
#include "wire/unpack.h"

static const uint64_t MIB = 1024 * 1024, KIB = 1024;
static const uint32_t ANY_CORES[] = {1, 2, 3, 16, LEAT_CORES_MAX};

/* From less than any server takes to more than any machine has. */
static uint64_t next_memory(uint64_t memory)
{
    return memory + memory / 3 + 4097;
}

static uint64_t within(uint64_t share, uint64_t least, uint64_t most)
{
    return share < least ? least : share > most ? most : share;
}

/* Goal: a core's part is its share of the budget, never less than what one request of any size takes, and no more than
 * what is of use. */
static void each_core_has_its_share_within_bounds(void **state)
{
    (void)state;
    const struct {
        uint64_t (*bytes)(uint64_t memory_bytes, uint32_t cores);
        uint64_t divisor, least, most;
    } parts[] = {
        {leat_node_links_bytes, 32, 4 * MIB, 64 * MIB},
        {leat_node_warm_bytes, 32, LEAT_WARM_BYTES_MIN, LEAT_WARM_BYTES_MAX},
        {leat_node_rest_bytes, 64, 6 * MIB, 32 * MIB},
        {leat_node_door_bytes, 64, 4 * MIB, 64 * MIB},
        {leat_node_forward_bytes, 32, LEAT_FRAME_BYTES_MAX, 16 * MIB},
        {leat_node_ready_bytes, 64, 2 * MIB, 32 * MIB},
        {leat_node_output_bytes, 32, LEAT_OUTPUT_BYTES_MIN, LEAT_OUTPUT_BYTES_MAX},
    };
    for (unsigned p = 0; p < sizeof parts / sizeof *parts; p++)
        for (unsigned c = 0; c < sizeof ANY_CORES / sizeof *ANY_CORES; c++)
            for (uint64_t memory = MIB; memory < MIB * MIB; memory = next_memory(memory))
                assert_int_equal(parts[p].bytes(memory, ANY_CORES[c]),
                                 within(memory / parts[p].divisor / ANY_CORES[c], parts[p].least,
                                        parts[p].most));
}

/* Goal: so is what all cores have together. A core alone hands no append on to others. */
static void all_cores_have_their_share_within_bounds(void **state)
{
    (void)state;
    const struct {
        uint64_t (*bytes)(uint64_t memory_bytes);
        uint64_t divisor, least, most;
    } parts[] = {
        {leat_node_peers_bytes, 40, 4096ull * LEAT_HEAP_PEER_BYTES, 8192ull * LEAT_HEAP_PEER_BYTES},
        {leat_node_group_bytes, 2048, 128 * KIB, LEAT_CLASSIC_MEMORY_BYTES_MAX},
        {leat_node_tables_bytes, 32, 4 * MIB, 128 * MIB},
    };
    for (uint64_t memory = MIB; memory < MIB * MIB; memory = next_memory(memory)) {
        for (unsigned p = 0; p < sizeof parts / sizeof *parts; p++)
            assert_int_equal(parts[p].bytes(memory),
                             within(memory / parts[p].divisor, parts[p].least, parts[p].most));
        assert_int_equal(leat_node_forwards_bytes(memory, 1), 0);
        for (unsigned c = 1; c < sizeof ANY_CORES / sizeof *ANY_CORES; c++)
            assert_int_equal(leat_node_forwards_bytes(memory, ANY_CORES[c]),
                             within(memory / 32, LEAT_FRAME_BYTES_MAX, ANY_CORES[c] * 16 * MIB));
    }
}

/* Goal: in a core's memory for frames a single frame may always grow, and a fixed part is left beside it. */
static void frames_have_room_beside_the_largest(void **state)
{
    (void)state;
    const uint64_t edge = 4 * MIB + LEAT_WANT_BYTES_MAX;
    assert_int_equal(leat_node_intake_bytes(0), 4 * MIB);
    assert_int_equal(leat_node_intake_bytes(edge), 4 * MIB);
    assert_int_equal(leat_node_intake_bytes(edge + 1), 4 * MIB + 1);
    assert_int_equal(leat_node_intake_bytes(edge + 60 * MIB), 64 * MIB);
}

/* Goal: memory that does not depend on requests counts once for the process and once for each core. */
static void overhead_counts_buffers_and_frames_of_each_core(void **state)
{
    (void)state;
    for (unsigned c = 0; c < sizeof ANY_CORES / sizeof *ANY_CORES; c++)
        for (uint64_t memory = MIB; memory < MIB * MIB; memory = next_memory(memory)) {
            const uint32_t cores = ANY_CORES[c];
            uint32_t buffers = 0;
            uint64_t frames = 0;
            uint64_t overhead = leat_node_overhead(memory, cores, &buffers, &frames);
            assert_int_equal(buffers, within(memory / 16 / cores / LEAT_DISK_BUFFER_BYTES, 2, 16));
            assert_int_equal(frames, within(memory / 16 / cores, LEAT_WANT_BYTES_MAX, 64 * MIB));
            assert_int_equal(overhead,
                             32 * MIB + cores * (12 * MIB + frames +
                                                 buffers * (uint64_t)LEAT_DISK_BUFFER_BYTES));
        }
}

/* Goal: a cluster's other nodes have half of the pool for their copies; the smallest pool is not shared. */
static void half_of_a_pool_is_for_others_copies(void **state)
{
    (void)state;
    const uint64_t step = LEAT_ARENA_STEP_BYTES;
    assert_int_equal(leat_node_own_pool_bytes(9 * step, false), 9 * step);
    assert_int_equal(leat_node_own_pool_bytes(9 * step, true), 4 * step);
    assert_int_equal(leat_node_own_pool_bytes(8 * step, true), 4 * step);
    assert_int_equal(leat_node_own_pool_bytes(2 * step, true), step);
    assert_int_equal(leat_node_own_pool_bytes(step, true), step);
    assert_int_equal(leat_node_own_pool_bytes(0, true), 0);
    assert_int_equal(leat_node_own_pool_bytes(0, false), 0);
}

/* What a core has at most, beside the pool, as broker/net/budget.c names its parts. */
static uint64_t most_of_core(uint64_t memory, uint32_t cores, uint64_t buffers, uint64_t frames)
{
    const uint64_t calls = leat_node_structs(memory, cores, LEAT_CORE_CALLS_MAX) * 3 * KIB;
    const uint64_t output = leat_node_output_bytes(memory, cores);
    const uint64_t parts[] = {
        2 * MIB, /* of tables, and where answers are written */
        LEAT_CORE_OWN_BYTES,
        leat_core_stocks_bytes(memory, cores),
        output,
        calls > output / 4 ? calls - output / 4
                           : 0, /* a quarter of the answers' part is for calls */
        buffers * LEAT_DISK_BUFFER_BYTES,
        leat_node_intake_bytes(frames),
        LEAT_WANT_BYTES_MAX + 256 * KIB, /* the frame that may always grow */
        LEAT_INTAKE_SMALLS_BYTES,
        LEAT_INTAKE_STRANGERS_BYTES,
        leat_node_warm_bytes(memory, cores),
        leat_node_rest_bytes(memory, cores),
        leat_node_door_bytes(memory, cores),
        LEAT_UNPACKER_BYTES,
        leat_node_structs(memory, cores, LEAT_CORE_CALLS_MAX) * (uint64_t)LEAT_FRONT_REQUEST_BYTES,
    };
    uint64_t bytes = 0;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        bytes += parts[i];
    return bytes;
}

/* What a core has as a rule, beyond the least that the overhead has of it. */
static uint64_t rule_of_core(uint64_t memory, uint32_t cores)
{
    return leat_node_warm_bytes(memory, cores) + leat_node_rest_bytes(memory, cores) +
           leat_node_door_bytes(memory, cores) +
           within(memory / 64 / cores, 0, LEAT_UNPACKER_BYTES) +
           leat_node_output_bytes(memory, cores) - LEAT_OUTPUT_BYTES_MIN;
}

struct sums {
    uint64_t rule, most; /* of all parts beside the pool: as a rule; at the same moment */
};

static struct sums sums_of(uint64_t memory, uint32_t cores)
{
    uint32_t buffers = 0;
    uint64_t frames = 0;
    struct sums sums = {.rule = leat_node_overhead(memory, cores, &buffers, &frames)};
    const uint64_t whole = sums.rule + cores * rule_of_core(memory, cores);
    if (whole + LEAT_ARENA_STEP_BYTES <= memory) sums.rule = whole; /* else one step comes first */
    sums.most = 10 * MIB + leat_node_peers_bytes(memory) +
                LEAT_GROUPS_HOMES * leat_node_group_bytes(memory) + leat_node_tables_bytes(memory) +
                leat_node_forwards_bytes(memory, cores) +
                cores * most_of_core(memory, cores, buffers, frames);
    return sums;
}

static uint64_t less(uint64_t of, uint64_t bytes)
{
    return of > bytes ? of - bytes : 0;
}

/* The pool has the whole steps that both sums leave. Logs and stored segments have the rest: 16 MiB of the first sum
 * are theirs, of which 8 MiB are never the pool's. */
static void assert_split(uint64_t memory, uint32_t cores)
{
    const struct sums sums = sums_of(memory, cores);
    const uint64_t bound = memory + memory / 10 + 28 * MIB;
    uint64_t left = less(memory + 16 * MIB, sums.rule);
    if (left > less(bound, sums.most)) left = less(bound, sums.most);
    uint64_t pool = less(left, 8 * MIB);
    if (pool > less(memory, sums.rule)) pool = less(memory, sums.rule);
    pool -= pool % LEAT_ARENA_STEP_BYTES;
    assert_int_equal(leat_node_pool_bytes(memory, cores), pool);
    assert_int_equal(leat_node_heap_room(memory, cores), left - pool);
}

/* Goal: a budget is kept by what its parts take as a rule, and exceeded by no more than a tenth and 28 MiB when all
 * parts are full at once; the pool has all that is left. */
static void pool_has_what_both_sums_leave(void **state)
{
    (void)state;
    for (unsigned c = 0; c < sizeof ANY_CORES / sizeof *ANY_CORES; c++)
        for (uint64_t memory = MIB; memory < MIB * MIB; memory += memory / 32 + 4097)
            assert_split(memory, ANY_CORES[c]);
}

/* Goal: the smallest budgets give up parts of the first sum for one step of pool, larger ones give up none. */
static void pool_of_one_step_comes_before_parts(void **state)
{
    (void)state;
    for (uint32_t cores = 1; cores <= 4; cores++) {
        uint64_t little = MIB, enough = 1024 * MIB * cores; /* for all parts and one step */
        while (enough - little > 1) {
            uint64_t memory = little + (enough - little) / 2;
            uint32_t buffers;
            uint64_t frames;
            uint64_t overhead = leat_node_overhead(memory, cores, &buffers, &frames);
            bool whole = sums_of(memory, cores).rule > overhead;
            *(whole ? &enough : &little) = memory;
        }
        assert_split(little, cores);
        assert_split(enough, cores);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_core_has_its_share_within_bounds),
        cmocka_unit_test(all_cores_have_their_share_within_bounds),
        cmocka_unit_test(frames_have_room_beside_the_largest),
        cmocka_unit_test(overhead_counts_buffers_and_frames_of_each_core),
        cmocka_unit_test(pool_has_what_both_sums_leave),
        cmocka_unit_test(pool_of_one_step_comes_before_parts),
        cmocka_unit_test(half_of_a_pool_is_for_others_copies),
    };
    return cmocka_run_group_tests_name("broker budget", tests, NULL, NULL);
}
