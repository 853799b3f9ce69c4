/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a cluster of four nodes in two halves for seconds: a voter and the node without a vote hear
 * each other, and not the two other voters. Clients reach all four. The leader of the two voters has the far nodes
 * declared crashed, and near nodes serve their streamlets. The far nodes hear each other, so they are not isolated:
 * their tables name the old owners, and an owner there waits for copies and for the leader. Producers are to find the
 * new owner, as a near node names it: waits.c. */
#include <string.h>

#include "broker/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    NODES = 4,
    BEGIN_US = 300 * 1000,
    LOOK_US = 1000,
    CUT_US_MIN = 7 * 1000 * 1000, /* longer than waits.c lets an append wait */
    CUT_US_MAX = 9 * 1000 * 1000,
    REST_US = 3 * 1000 * 1000, /* the far nodes hear of their crash, and start again */
    PAUSE_US_MIN = 20 * 1000,
    PAUSE_US_MAX = 400 * 1000,
    STRIKES_MAX = 2,
};

enum step { WAITS, CUT, RESTS };

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum step step;
    const struct sim_server *far[2]; /* the voter, and the node without a vote */
    uint64_t until_us;               /* of this step */
    unsigned strikes;
    bool came; /* in this cut */
} stage;       /* of the one scenario of a process */

static bool is_far(const struct sim_server *server)
{
    return server == stage.far[0] || server == stage.far[1];
}

static void cut_until(uint64_t until_us)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *near = &scenario->servers[i];
        for (unsigned k = 0; !is_far(near) && k < 2; k++) {
            sim_net_cut(scenario->world, stage.far[k]->name, near->name, until_us);
            sim_net_cut(scenario->world, near->name, stage.far[k]->name, until_us);
        }
    }
}

static void strike(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!sim_serves(&scenario->servers[i]) ||
            !leat_node_is_confirmed(scenario->servers[i].node))
            return;
    stage.far[0] = &scenario->servers[sim_rng_below(&stage.rng, SIM_VOTERS_MAX)];
    stage.far[1] = &scenario->servers[SIM_VOTERS_MAX];
    stage.strikes++;
    stage.step = CUT;
    stage.came = false;
    stage.until_us = scenario->world->now_us + sim_rng_between(&stage.rng, CUT_US_MIN, CUT_US_MAX);
    sim_fault_struck(scenario->world, SIM_FAULT_NODE_PARTED);
    cut_until(stage.until_us);
}

/* A log that a far and a near node serve. */
static bool is_served_twice(const struct sim_server *far)
{
    struct leat_partition_seen old = {0}, new;
    while (sim_serves(far) && leat_node_partition_next(far->node, &old))
        for (unsigned i = 0; !old.going && i < stage.scenario->server_count; i++) {
            const struct sim_server *near = &stage.scenario->servers[i];
            if (!is_far(near) && sim_serves(near) &&
                leat_node_partition_at(near->node, old.ref, &new) && !new.going)
                return true;
        }
    return false;
}

static void advance(void)
{
    uint64_t now_us = stage.scenario->world->now_us;
    switch (stage.step) {
    case WAITS:
        if (stage.strikes < STRIKES_MAX) strike();
        return;
    case CUT:
        stage.step = RESTS;
        stage.until_us = now_us + REST_US;
        return;
    case RESTS:
        stage.step = WAITS;
        return;
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        if (stage.step == CUT) cut_until(0);
        return;
    }
    if (stage.step == CUT && !stage.came &&
        (is_served_twice(stage.far[0]) || is_served_twice(stage.far[1]))) {
        stage.came = true;
        sim_stage_came(scenario);
    }
    if (world->now_us >= stage.until_us) advance();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-split");
    scenario->pause_us_max = sim_rng_between(&stage.rng, PAUSE_US_MIN, PAUSE_US_MAX);
}

static void start(struct scenario *scenario)
{
    stage.until_us = scenario->world->now_us + BEGIN_US;
    sim_world_at(scenario->world, stage.until_us, look, scenario);
}

const struct sim_stage sim_stage_split = {.name = "split",
                                          .nodes = NODES,
                                          .needs = {.batches = 4, .copies_min = 2},
                                          .choose = choose,
                                          .start = start};
