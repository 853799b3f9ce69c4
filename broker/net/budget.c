/* SPDX-License-Identifier: Apache-2.0 */
/* How a memory budget is split.
 *
 * Two sums. The first sum is what the parts of a budget take as a rule: with the pool it is the budget. The second
 * sum is what all parts take at most, at the same moment, on each core. The second sum may exceed the budget by a
 * tenth and 32 MiB at most; the pool is made smaller until this holds, down to one step. A budget without room for
 * one step of pool is refused: fewer cores need less. */
#include "base/bytes.h"
#include "base/intake.h"
#include "broker/net/core.h"
#include "groups/classic.h"
#include "wire/unpack.h"

enum {
    MIB = 1024 * 1024,
    OVERHEAD_PROCESS_BYTES = 16 * MIB,   /* code, libraries, stacks, the coordinator's state */
    OVERHEAD_CATALOGUE_BYTES = 16 * MIB, /* rows and descriptors of segments, logs */
    CATALOGUE_BYTES_MIN = 8 * MIB,       /* in the smallest budgets */
    OVERHEAD_CORE_BYTES = 12 * MIB,      /* request structs, tables, the network's buffers */
    BUFFERS_MIN = 2,                     /* per core; one disk read needs one */
    BUFFERS_MAX = 16,
    FRAMES_BYTES_MIN = LEAT_WANT_BYTES_MAX, /* a frame of any size has to fit */
    FRAMES_BYTES_MAX = 64 * MIB,
    FRAMES_REST_BYTES_MIN = 4 * MIB, /* beside the frame that may always grow */
    REST_BYTES_MIN = 6 * MIB, /* an answer, with its one batch beyond the limit, has to fit */
    REST_BYTES_MAX = 32 * MIB,
    DOOR_BYTES_MIN = 4 * MIB,
    DOOR_BYTES_MAX = 64 * MIB,
    FORWARD_BYTES_MIN = LEAT_FRAME_BYTES_MAX, /* a request of any size */
    FORWARD_BYTES_MAX = 16 * MIB,
    READY_BYTES_MIN = 2 * MIB,
    READY_BYTES_MAX = 32 * MIB,
    PEERS_BYTES_MIN = 4096 * LEAT_HEAP_PEER_BYTES,
    PEERS_BYTES_MAX = 8192 * LEAT_HEAP_PEER_BYTES,
    GROUP_BYTES_MIN = 128 * 1024, /* members of groups of one home */
    TABLES_BYTES_MIN = 4 * MIB,   /* tables of all homes of groups */
    TABLES_BYTES_MAX = 128 * MIB,
    NODES_BYTES_MIN = 4 * MIB,
    NODES_BYTES_MAX = 64 * MIB,
    /* In the second sum: */
    MOST_PROCESS_BYTES = 10 * MIB, /* 7 were measured */
    MOST_CORE_BYTES = 2 * MIB,     /* tables, the read buffer, where answers are written */
    MOST_CALL_BYTES = 3072,        /* of a call that needs no room */
    /* The frame that may always grow, and a read */
    MOST_FRAME_BYTES = LEAT_WANT_BYTES_MAX + 256 * 1024,
    MOST_BESIDE_BYTES = 32 * MIB, /* above the budget and a tenth of it */
    MOST_SPARE_BYTES = 4 * MIB,   /* of MOST_BESIDE_BYTES, for what malloc leaves between blocks */
};

static uint64_t part(uint64_t memory_bytes, uint32_t cores, uint32_t divisor, uint64_t least,
                     uint64_t most)
{
    uint64_t share = memory_bytes / divisor / cores;
    if (share < least) share = least;
    return share < most ? share : most;
}

uint64_t leat_node_overhead(uint64_t memory_bytes, uint32_t cores, uint32_t *out_buffers_per_core,
                            uint64_t *out_frame_bytes_per_core)
{
    /* A sixteenth of the budget each for buffers and for half-received frames. */
    uint64_t buffers = memory_bytes / 16 / cores / LEAT_DISK_BUFFER_BYTES;
    if (buffers < BUFFERS_MIN) buffers = BUFFERS_MIN;
    if (buffers > BUFFERS_MAX) buffers = BUFFERS_MAX;
    uint64_t frames = part(memory_bytes, cores, 16, FRAMES_BYTES_MIN, FRAMES_BYTES_MAX);
    *out_buffers_per_core = (uint32_t)buffers;
    *out_frame_bytes_per_core = frames;
    return OVERHEAD_PROCESS_BYTES + OVERHEAD_CATALOGUE_BYTES +
           cores * (OVERHEAD_CORE_BYTES + buffers * LEAT_DISK_BUFFER_BYTES + frames);
}

uint64_t leat_node_intake_bytes(uint64_t frame_bytes)
{
    return frame_bytes > FRAMES_REST_BYTES_MIN + LEAT_WANT_BYTES_MAX
               ? frame_bytes - LEAT_WANT_BYTES_MAX
               : FRAMES_REST_BYTES_MIN;
}

uint64_t leat_node_links_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 32, NODES_BYTES_MIN, NODES_BYTES_MAX);
}

uint64_t leat_node_warm_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 32, LEAT_WARM_BYTES_MIN, LEAT_WARM_BYTES_MAX);
}

uint64_t leat_node_rest_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 64, REST_BYTES_MIN, REST_BYTES_MAX);
}

uint64_t leat_node_door_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 64, DOOR_BYTES_MIN, DOOR_BYTES_MAX);
}

uint64_t leat_node_forward_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 32, FORWARD_BYTES_MIN, FORWARD_BYTES_MAX);
}

uint64_t leat_node_forwards_bytes(uint64_t memory_bytes, uint32_t cores)
{
    if (cores == 1) return 0;
    return part(memory_bytes, 1, 32, FORWARD_BYTES_MIN, (uint64_t)cores * FORWARD_BYTES_MAX);
}

uint64_t leat_node_ready_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return part(memory_bytes, cores, 64, READY_BYTES_MIN, READY_BYTES_MAX);
}

uint64_t leat_node_peers_bytes(uint64_t memory_bytes)
{
    return part(memory_bytes, 1, 40, PEERS_BYTES_MIN, PEERS_BYTES_MAX);
}

uint64_t leat_node_group_bytes(uint64_t memory_bytes)
{
    return part(memory_bytes, 1, 2048, GROUP_BYTES_MIN, LEAT_CLASSIC_MEMORY_BYTES_MAX);
}

uint64_t leat_node_tables_bytes(uint64_t memory_bytes)
{
    return part(memory_bytes, 1, 32, TABLES_BYTES_MIN, TABLES_BYTES_MAX);
}

/* Bytes that all parts take at most at the same moment, beside the pool and stored segments. */
static uint64_t most_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint32_t buffers;
    uint64_t frames;
    (void)leat_node_overhead(memory_bytes, cores, &buffers, &frames);
    /* Answers have three quarters of their part, and calls that are small need no room beside these. */
    uint64_t output = leat_node_output_bytes(memory_bytes, cores);
    uint64_t calls =
        (uint64_t)MOST_CALL_BYTES * leat_node_structs(memory_bytes, cores, LEAT_CORE_CALLS_MAX);
    uint64_t core =
        MOST_CORE_BYTES + LEAT_CORE_OWN_BYTES + leat_core_stocks_bytes(memory_bytes, cores) +
        output + (calls > output / 4 ? calls - output / 4 : 0) +
        buffers * (uint64_t)LEAT_DISK_BUFFER_BYTES + leat_node_intake_bytes(frames) +
        MOST_FRAME_BYTES + LEAT_INTAKE_SMALLS_BYTES + LEAT_INTAKE_STRANGERS_BYTES +
        leat_node_warm_bytes(memory_bytes, cores) + leat_node_rest_bytes(memory_bytes, cores) +
        leat_node_door_bytes(memory_bytes, cores) + LEAT_UNPACKER_BYTES;
    uint64_t requests = (uint64_t)LEAT_FRONT_REQUEST_BYTES *
                        leat_node_structs(memory_bytes, cores, LEAT_CORE_CALLS_MAX);
    return MOST_PROCESS_BYTES + leat_node_peers_bytes(memory_bytes) +
           LEAT_GROUPS_HOMES * leat_node_group_bytes(memory_bytes) +
           leat_node_tables_bytes(memory_bytes) + leat_node_forwards_bytes(memory_bytes, cores) +
           cores * (core + requests);
}

/* Bytes that all parts take as a rule. */
static uint64_t rule_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint32_t buffers;
    uint64_t frames;
    uint64_t overhead = leat_node_overhead(memory_bytes, cores, &buffers, &frames);
    /* Most compressed batches touch little of the memory for their check, so small budgets count a share of it only.
     * The fixed overheads have the minimum for answers, for appends for other cores and for buffers that are kept
     * ready. The smallest budgets keep their one step of pool. */
    uint64_t more = cores * (leat_node_warm_bytes(memory_bytes, cores) +
                             leat_node_rest_bytes(memory_bytes, cores) +
                             leat_node_door_bytes(memory_bytes, cores) +
                             part(memory_bytes, cores, 64, 0, LEAT_UNPACKER_BYTES) +
                             leat_node_output_bytes(memory_bytes, cores) - LEAT_OUTPUT_BYTES_MIN);
    return memory_bytes >= overhead + more + LEAT_ARENA_STEP_BYTES ? overhead + more : overhead;
}

/* Bytes that are left for the pool and for stored segments. 0: none. */
static uint64_t left_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint64_t rule = rule_bytes(memory_bytes, cores) - OVERHEAD_CATALOGUE_BYTES;
    uint64_t bound = memory_bytes + memory_bytes / 10 + MOST_BESIDE_BYTES - MOST_SPARE_BYTES;
    uint64_t most = most_bytes(memory_bytes, cores);
    if (memory_bytes < rule || bound < most) return 0;
    return memory_bytes - rule < bound - most ? memory_bytes - rule : bound - most;
}

uint64_t leat_node_pool_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint64_t left = left_bytes(memory_bytes, cores);
    uint64_t rule = rule_bytes(memory_bytes, cores);
    if (memory_bytes < rule || left < CATALOGUE_BYTES_MIN) return 0;
    left -= CATALOGUE_BYTES_MIN;
    if (left > memory_bytes - rule) left = memory_bytes - rule;
    return LEAT_ALIGN_DOWN(left, (uint64_t)LEAT_ARENA_STEP_BYTES);
}

uint64_t leat_node_least_memory(uint32_t cores)
{
    uint64_t memory_bytes = LEAT_ARENA_STEP_BYTES;
    while (leat_node_pool_bytes(memory_bytes, cores) == 0)
        memory_bytes += MIB;
    return memory_bytes;
}

uint32_t leat_node_cores_most(uint64_t memory_bytes, uint32_t cores)
{
    while (cores > 1 && leat_node_pool_bytes(memory_bytes, cores) == 0)
        cores--;
    return cores;
}

uint64_t leat_node_heap_room(uint64_t memory_bytes, uint32_t cores)
{
    /* Bytes that are no whole step of the pool are for logs and stored segments, too. */
    return left_bytes(memory_bytes, cores) - leat_node_pool_bytes(memory_bytes, cores);
}

uint64_t leat_node_own_pool_bytes(uint64_t pool_bytes, bool clustered)
{
    uint64_t own =
        clustered ? LEAT_ALIGN_DOWN(pool_bytes / 2, (uint64_t)LEAT_ARENA_STEP_BYTES) : pool_bytes;
    return own > 0 || pool_bytes == 0 ? own : LEAT_ARENA_STEP_BYTES;
}

uint64_t leat_node_output_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint64_t share = memory_bytes / 32 / cores;
    if (share < LEAT_OUTPUT_BYTES_MIN) share = LEAT_OUTPUT_BYTES_MIN;
    return share < LEAT_OUTPUT_BYTES_MAX ? share : LEAT_OUTPUT_BYTES_MAX;
}
