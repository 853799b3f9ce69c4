/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between two machines that carry a few kilobytes a second for a while, in one direction or in both, with old
 * data to be sent over them. In some cluster seeds the slow lines come beside the scheduled faults. In others they are
 * a trap (trap.c): nothing else goes wrong there, so waits.c has many logs that no fault concerns. */
#include "coordinator/probe.h"
#include "tests/sim/scenario.h"

enum {
    TRAP_PER_MILLE = 250,  /* of cluster seeds; trap.c keeps a part of these */
    BESIDE_PER_MILLE = 60, /* of cluster seeds without a trap */
    FIRST_US_MAX = 600 * 1000,
    GAP_US_MAX = 2500 * 1000,
    SLOW_US_LEAST = 1500 * 1000,
    SLOW_US_MAX = 10 * 1000 * 1000,
    RATE_LEAST = 1024, /* bytes in a second; doubled up to four times */
    RATE_DOUBLINGS = 5,
    UNLED_PER_MILLE = 600, /* of the lines do not lead to or from the coordinators' leader */
    BOTH_PER_MILLE = 500,
    SOON_US_MAX = 300 * 1000,
    AWAY_US_LEAST = 20 * 1000,
    AWAY_US_MAX = 600 * 1000,
    AGAIN_US = 1000,
    MOVE_EVERY_US = 150 * 1000,
    VALUE_BYTES = 1600,
    PAUSE_US_MAX = 40 * 1000,
};

/* What has to be sent over the line. */
enum load {
    FAR_RETURNS, /* copies, and entries of the coordinators, that the node behind the line has missed */
    NEAR_DIES,    /* takeovers */
    STREAMS_MOVE, /* older segments */
    ONLY_APPENDS,
    LOADS,
};

static struct trap_slow {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *near, *far; /* the slow line leads from near to far */
    uint64_t until_us;
} trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive;
}

static void death_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (trap.scenario->faults_over || !lives(server)) return;
    server->away_us_max = sim_rng_between(&trap.rng, AWAY_US_LEAST, AWAY_US_MAX);
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_process_die(server->process, SIM_DEATH_KILL);
}

static void move_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over && world->now_us < trap.until_us;
    if (!scenario->hurried) return;
    uint32_t stream = (uint32_t)sim_rng_below(&trap.rng, SIM_STREAMS);
    uint32_t streamlets = scenario->streams[stream].settings.streamlets;
    uint32_t streamlet = (uint32_t)sim_rng_below(&trap.rng, streamlets);
    if (!scenario->wish.to)
        scenario->wish =
            (struct sim_wish){.stream = stream, .streamlet = streamlet, .to = trap.far};
    sim_world_at(world, world->now_us + MOVE_EVERY_US, move_due, scenario);
}

static void load_begin(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    uint64_t soon_us = world->now_us + sim_rng_below(&trap.rng, SOON_US_MAX);
    switch ((enum load)sim_rng_below(&trap.rng, LOADS)) {
    case FAR_RETURNS:
        sim_world_at(world, soon_us, death_due, trap.far);
        break;
    case NEAR_DIES:
        sim_world_at(world, soon_us, death_due, trap.near);
        break;
    case STREAMS_MOVE:
        sim_world_at(world, soon_us, move_due, scenario);
        break;
    default:
        break;
    }
}

static bool leads(const struct sim_server *server)
{
    return lives(server) && leat_node_coordinator(server->node) &&
           leat_coordinator_see(leat_node_coordinator(server->node)).recovers;
}

static void line_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    unsigned near = (unsigned)sim_rng_below(&trap.rng, scenario->server_count);
    unsigned far = (unsigned)sim_rng_below(&trap.rng, scenario->server_count - 1);
    if (far >= near) far++;
    trap.near = &scenario->servers[near];
    trap.far = &scenario->servers[far];
    if ((leads(trap.near) || leads(trap.far)) && sim_rng_chance(&trap.rng, UNLED_PER_MILLE)) {
        sim_world_at(world, world->now_us + AGAIN_US, line_due, scenario); /* another one */
        return;
    }
    uint64_t rate = RATE_LEAST << sim_rng_below(&trap.rng, RATE_DOUBLINGS);
    trap.until_us = world->now_us + sim_rng_between(&trap.rng, SLOW_US_LEAST, SLOW_US_MAX);
    bool both = sim_rng_chance(&trap.rng, BOTH_PER_MILLE);
    sim_net_rate(world, trap.near->name, trap.far->name, rate, trap.until_us);
    if (both) sim_net_rate(world, trap.far->name, trap.near->name, rate, trap.until_us);
    sim_trace(world, "%s to %s%s: %llu bytes a second until %llu", trap.near->name, trap.far->name,
              both ? " and back" : "", (unsigned long long)rate, (unsigned long long)trap.until_us);
    load_begin(scenario);
    sim_world_at(world, trap.until_us + sim_rng_below(&trap.rng, GAP_US_MAX), line_due, scenario);
}

static bool begin(struct scenario *scenario, const char *purpose, uint32_t per_mille)
{
    trap = (struct trap_slow){.scenario = scenario};
    sim_rng_init(&trap.rng, scenario->world->seed, purpose);
    return sim_rng_chance(&trap.rng, per_mille);
}

bool sim_trap_slow_choose(struct scenario *scenario)
{
    if (!begin(scenario, "trap-slow", TRAP_PER_MILLE)) return false;
    scenario->value_bytes = VALUE_BYTES;
    scenario->pause_us_max = PAUSE_US_MAX;
    return true;
}

void sim_trap_slow_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, FIRST_US_MAX),
                 line_due, scenario);
}

void sim_slow_lines_start(struct scenario *scenario)
{
    /* Seeds that delete streams have aims of their own (aims_hold.c). */
    if (scenario->deletes) return;
    if (begin(scenario, "slow lines", BESIDE_PER_MILLE)) sim_trap_slow_start(scenario);
}
