/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a voter whose snapshot reaches further than its log, and further than its leader knows. A
 * voter is cut off while the coordinators commit entries, and then reached again. It gets these entries, and takes its
 * first snapshot at once; its power goes before its log is flushed and before the leader has heard of the entries. If
 * the disk has kept the snapshot and not the entries, the leader sends entries that begin inside the snapshot when the
 * voter is back. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 50 * 1000,
    LOOK_US = 20,
    AWAY_US_MIN = 400 * 1000, /* and as long again: moves are committed */
    SOON_US_MAX = 300,
    POWER_AWAY_US = 1500 * 1000, /* the leader has forgotten what it sent by then */
    ENTRIES_MIN = 4,
    BYTES_MIN = 1500, /* of entries before the first snapshot */
    BYTES_MAX = 4000,
    STRIKES_MAX = 6,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *voter;
    uint64_t cut_until_us, strike_us; /* strike_us: 0: not yet */
    uint64_t applied;                 /* by the voter, when it was looked at last */
    unsigned boots, strikes;
} stage; /* of the one scenario of a process */

static struct leat_coordinator *coordinator_of(const struct sim_server *server)
{
    bool there = server->process && server->process->alive && server->node;
    return there ? leat_node_coordinator(server->node) : NULL;
}

static bool leads(const struct sim_server *server)
{
    return coordinator_of(server) && leat_coordinator_see(coordinator_of(server)).leads;
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_world *world = scenario->world;
    do
        stage.voter = &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    while (leads(stage.voter));
    stage.cut_until_us = world->now_us + AWAY_US_MIN + sim_rng_below(&stage.rng, AWAY_US_MIN);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        sim_net_cut(world, scenario->servers[i].name, stage.voter->name, stage.cut_until_us);
        sim_net_cut(world, stage.voter->name, scenario->servers[i].name, stage.cut_until_us);
    }
}

/* Entries come about. */
static void wish(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_server *to = &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    if (scenario->wish.to || to == stage.voter) return;
    uint32_t stream = (uint32_t)sim_rng_below(&stage.rng, SIM_STREAMS);
    scenario->wish =
        (struct sim_wish){.stream = stream,
                          .streamlet = (uint32_t)sim_rng_below(
                              &stage.rng, scenario->streams[stream].settings.streamlets),
                          .to = to};
}

static void voter_look(void)
{
    struct sim_world *world = stage.scenario->world;
    if (!coordinator_of(stage.voter)) return;
    uint64_t applied = leat_coordinator_see(coordinator_of(stage.voter)).applied;
    bool many = stage.boots == stage.voter->boots && applied >= stage.applied + ENTRIES_MIN;
    stage.boots = stage.voter->boots;
    stage.applied = applied;
    if (many && !stage.strike_us && stage.strikes < STRIKES_MAX)
        stage.strike_us = world->now_us + sim_rng_below(&stage.rng, SOON_US_MAX);
    if (!stage.strike_us || world->now_us < stage.strike_us) return;
    stage.strike_us = 0;
    stage.strikes++;
    stage.voter->away_us_max = POWER_AWAY_US;
    sim_stage_came(stage.scenario);
    sim_process_die(stage.voter->process, SIM_DEATH_POWER);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over && world->now_us < stage.cut_until_us;
    if (scenario->faults_over) return;
    if (scenario->hurried) wish();
    voter_look();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-inside");
    scenario->raft_snapshot_bytes_min = sim_rng_between(&stage.rng, BYTES_MIN, BYTES_MAX);
    scenario->power_cuts = true;
}

static void start(struct scenario *scenario)
{
    begin();
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_inside = {
    .name = "inside",
    .nodes = 3,
    .needs = {.batches = 2, .copies_min = 2, .on_disk = true},
    .choose = choose,
    .start = start};
