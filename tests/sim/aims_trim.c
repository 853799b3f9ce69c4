/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at trims, in some of the seeds of one server. Where a log begins then is said by a trim
 * entry alone, and the log's first segments go when the entry is safe. Half of the times that retention has chosen
 * segments the next flush fails, which is mostly the flush of the trim entry. Soon the power goes. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"

enum {
    SEEDS_PER_MILLE = 150,
    STRIKE_PER_MILLE = 500, /* of the times */
    LOOK_US = 100,
    POWER_US_MAX = 30 * 1000,
};

/* Of the one scenario of a process. */
static struct {
    struct sim_rng rng;
    uint64_t segments[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX]; /* of the stream with retention */
} aim;

/* Has retention chosen more of its segments since the last look, or a start found that it had? */
static bool is_trimmed(struct scenario *scenario, const struct leat_partition_seen *partition)
{
    struct leat_log_ref ref = partition->ref;
    uint32_t stream;
    if (!sim_stream_of(scenario, ref.stream, &stream) || !scenario->streams[stream].trims)
        return false;
    uint64_t *before = &aim.segments[ref.streamlet][ref.log];
    struct leat_log_seen log;
    if (!partition->log) return false;
    leat_log_see(partition->log, &log);
    bool is = log.trim_segment > *before;
    *before = log.trim_segment;
    return is;
}

static bool any_trimmed(struct scenario *scenario)
{
    struct leat_partition_seen partition = {0};
    bool any = false;
    while (leat_node_partition_next(scenario->servers[0].node, &partition))
        any |= is_trimmed(scenario, &partition);
    return any;
}

static void power_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over || !server->process->alive || event->n != server->boots)
        return;
    sim_fault_struck(world, SIM_FAULT_POWER);
    sim_process_die(server->process, SIM_DEATH_POWER);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_server *server = &scenario->servers[0];
    if (scenario->faults_over) return;
    bool serves = server->process->alive && server->ready && server->node &&
                  leat_node_has_cores(server->node);
    if (serves && any_trimmed(scenario) && sim_rng_chance(&aim.rng, STRIKE_PER_MILLE)) {
        sim_disk_fail_next(server->disk, LEAT_DISK_SYNC);
        sim_trace(world, "aim: retention trims, and the next flush fails");
        sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, POWER_US_MAX), power_due,
                     server)
            ->n = server->boots;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

void sim_aim_trim_start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    memset(&aim, 0, sizeof aim);
    sim_rng_init(&aim.rng, world->seed, "aim-trim");
    if (scenario->power_cuts && sim_rng_chance(&aim.rng, SEEDS_PER_MILLE))
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}
