/* SPDX-License-Identifier: Apache-2.0 */
/* How a memory budget is split: the share of each part, the least budget and the largest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_core_has_its_share_within_bounds),
        cmocka_unit_test(all_cores_have_their_share_within_bounds),
        cmocka_unit_test(frames_have_room_beside_the_largest),
        cmocka_unit_test(overhead_counts_buffers_and_frames_of_each_core),
        cmocka_unit_test(half_of_a_pool_is_for_others_copies),
    };
    return cmocka_run_group_tests_name("broker budget", tests, NULL, NULL);
}
