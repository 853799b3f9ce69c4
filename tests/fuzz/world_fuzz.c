/* SPDX-License-Identifier: Apache-2.0 */
/* A world whose input is a schedule: one simulated broker or three, honest clients, and a stranger that treats the
 * brokers' ports as the input says (tests/sim/stranger.c). Properties: honest clients are answered within 10 s of
 * virtual time; no command of a peer that has proved nothing is applied; no coordinator stops; the servers' heap stays
 * within its bound; no acknowledged record is lost (the simulator's own checkers); no assertion, no sanitizer's report.
 *
 * The input: one byte (bit 0: three nodes; bit 7: old records; the other bits: which seed), then the stranger's
 * schedule. Old records have left memory before the stranger comes: a reader of old records waits for a buffer, of
 * which a core has only a few for reads from files.
 *
 * Each input runs in a process of its own (child.h). */
#include "child.h"

#include "broker/net/budget.h"
#include "tests/sim/stranger.h"

enum {
    SECONDS_MAX = 60,
    RECORDS = 60,
    SEEDS = 32,
    THREE_NODES = 1,
    NODES = 3,
    OLD_RECORDS = 128,
    SPARE_BYTES = 64 * 1024 * 1024, /* beyond the least that so many cores need */
};

static const uint8_t *schedule;
static size_t schedule_bytes;
static bool old;

static void on_built(struct scenario *scenario)
{
    /* So much has room for two nodes that write into this one's; where a seed has one machine more, there are three. */
    if (scenario->server_count <= NODES)
        scenario->memory_bytes = leat_node_least_memory(scenario->cores) + SPARE_BYTES;
    if (old) scenario->value_bytes = SIM_STRANGER_OLD_BYTES;
    sim_stranger_start(scenario, old, schedule, schedule_bytes);
}

static void world_run(const uint8_t *data, size_t size)
{
    old = data[0] & OLD_RECORDS;
    struct scenario_result result;
    struct scenario_options options = {
        .seed = 1 + (data[0] >> 1) % SEEDS, /* OLD_RECORDS is a multiple */
        .calm = true,
        .nodes = data[0] & THREE_NODES ? NODES : 1,
        .records = old ? SIM_STRANGER_OLD_RECORDS : RECORDS,
        .on_built = on_built,
        .wait_for = sim_stranger_done,
        .tracing = getenv("LEAT_FUZZ_TRACE") != NULL,
    };
    schedule = data + 1;
    schedule_bytes = size - 1;
    scenario_run(&options, &result);
    if (!result.failure[0]) return;
    fprintf(stderr, "world: %s\n", result.failure);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2) fuzz_child(world_run, data, size, SECONDS_MAX);
    return 0;
}
