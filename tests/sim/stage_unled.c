/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for an owner that the coordinators' leader alone does not reach. Nothing goes between the two for
 * seconds; clients and the third node reach both. The leader has the owner declared crashed, other nodes have its
 * streamlets, and the owner lives on: it learns from the third node that it may have crashed, and is isolated.
 * Producers rest between bursts, so appends come to the isolated owner when nothing else is under way there. They are
 * to find the new owner: waits.c. A client of Kafka asks the owner what to do: doors.c. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/doors.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 300 * 1000,
    LOOK_US = 1000,
    CUT_US_MIN = 7 * 1000 * 1000, /* longer than waits.c lets an append wait */
    CUT_US_MAX = 9 * 1000 * 1000,
    REST_US = 3 * 1000 * 1000, /* the owner hears of its crash, and starts again */
    PAUSE_US_MIN = 100 * 1000,
    PAUSE_US_MAX = 900 * 1000,
    STRIKES_MAX = 2,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *owner, *leader; /* owner: NULL: no cut is under way */
    uint64_t until_us;                 /* of the cut, or of the rest after it */
    unsigned strikes;
    bool came;
} stage; /* of the one scenario of a process */

static struct sim_server *leader_find(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        struct sim_server *server = &stage.scenario->servers[i];
        if (!sim_serves(server)) return NULL;
        if (leat_coordinator_see(leat_node_coordinator(server->node)).recovers) return server;
    }
    return NULL;
}

static void cut_until(uint64_t until_us)
{
    struct sim_world *world = stage.scenario->world;
    sim_net_cut(world, stage.owner->name, stage.leader->name, until_us);
    sim_net_cut(world, stage.leader->name, stage.owner->name, until_us);
}

static void strike(void)
{
    struct scenario *scenario = stage.scenario;
    uint64_t now_us = scenario->world->now_us;
    struct sim_server *leader = leader_find();
    if (!leader || stage.strikes == STRIKES_MAX) return;
    struct sim_server *owner =
        &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    if (owner == leader || !sim_serves(owner) || !leat_node_is_confirmed(owner->node)) return;
    stage.strikes++;
    stage.leader = leader;
    stage.owner = owner;
    stage.came = false;
    stage.until_us = now_us + sim_rng_between(&stage.rng, CUT_US_MIN, CUT_US_MAX);
    sim_fault_struck(scenario->world, SIM_FAULT_NODE_PARTED);
    cut_until(stage.until_us);
    sim_doors_owner(owner);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        if (stage.owner) cut_until(0);
        sim_doors_owner(NULL);
        return;
    }
    if (stage.owner && !stage.came && sim_serves(stage.owner) &&
        !leat_node_is_confirmed(stage.owner->node)) {
        stage.came = true;
        sim_stage_came(scenario);
    }
    if (world->now_us >= stage.until_us) {
        sim_doors_owner(NULL);
        if (stage.owner) stage.until_us = world->now_us + REST_US;
        if (!stage.owner)
            strike();
        else
            stage.owner = NULL;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-unled");
    scenario->pause_us_max = sim_rng_between(&stage.rng, PAUSE_US_MIN, PAUSE_US_MAX);
}

static void start(struct scenario *scenario)
{
    stage.until_us = scenario->world->now_us + BEGIN_US;
    sim_world_at(scenario->world, stage.until_us, look, scenario);
    sim_doors_start(scenario);
}

const struct sim_stage sim_stage_unled = {.name = "unled",
                                          .nodes = 3,
                                          .needs = {.batches = 4, .copies = 2},
                                          .choose = choose,
                                          .start = start};
