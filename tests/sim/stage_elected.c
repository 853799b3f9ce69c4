/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a leader that has just been elected and hears no other voter, while the cluster forms. The
 * leader's connections break, and the leader reaches nobody for a little longer than it takes until the leader pings
 * again; that is much shorter than a node is waited for. So the leader is to stay, and no node is to be called dead:
 * server.c. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/stage.h"

enum {
    LOOK_US = 100,
    /* Both together less than the time for which a leader counts as heard after its election. */
    LEADS_US_MAX = 50 * 1000,
    GAP_US_MAX = 4 * 1000,  /* clients make the streams by then */
    CUT_US_MIN = 27 * 1000, /* a ping each 25 ms */
    CUT_US_MAX = 40 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    const struct sim_server *leader;
    uint64_t leads_us, strike_us;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node);
}

static const struct sim_server *leader_find(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        const struct sim_server *server = &stage.scenario->servers[i];
        if (!lives(server)) continue;
        struct leat_coordinator_seen seen =
            leat_coordinator_see(leat_node_coordinator(server->node));
        if (seen.leads && seen.ready && seen.incarnation) return server;
    }
    return NULL;
}

/* Of all others: they have heard of this leader's cluster, and are a part of it. */
static bool all_take_part(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        const struct sim_server *server = &stage.scenario->servers[i];
        if (!lives(server) ||
            !leat_coordinator_see(leat_node_coordinator(server->node)).incarnation)
            return false;
    }
    return true;
}

static void strike(void)
{
    struct sim_world *world = stage.scenario->world;
    uint64_t until_us = world->now_us + sim_rng_between(&stage.rng, CUT_US_MIN, CUT_US_MAX);
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        const struct sim_server *server = &stage.scenario->servers[i];
        if (server == stage.leader) continue;
        sim_net_cut(world, server->name, stage.leader->name, until_us);
        sim_net_cut(world, stage.leader->name, server->name, until_us);
        sim_net_reset_between(server->process, stage.leader->process);
    }
    sim_stage_came(stage.scenario);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    const struct sim_server *leader = leader_find();
    if (leader != stage.leader) {
        stage.leader = leader;
        stage.leads_us = world->now_us;
        stage.strike_us = world->now_us + sim_rng_below(&stage.rng, GAP_US_MAX);
    }
    bool due = leader && world->now_us >= stage.strike_us && all_take_part();
    if (due && world->now_us < stage.leads_us + LEADS_US_MAX) {
        strike();
        return;
    }
    if (!stage.scenario->streams_made) sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-elected");
    scenario->brief = scenario->few = true;
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, scenario);
}

const struct sim_stage sim_stage_elected = {
    .name = "elected", .nodes = 3, .gentle = true, .needs = {.batches = 1}, .choose = choose};
