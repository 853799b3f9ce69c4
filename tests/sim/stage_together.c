/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for generations that are refused together. What the coordinators' leader says to other nodes is
 * slow, and now and then one of these nodes loses all its copies on nodes that are not the leader's. So its logs need
 * a higher generation, and while the first of these is on its way the others gather for one request. Meanwhile a
 * stream is deleted, of which that node has not heard: its logs are in the request as well, which is refused because
 * of them. Logs of other streams are not to suffer from that. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 100 * 1000,
    LOOK_US = 500,
    DELAY_US = 60 * 1000, /* less than a node is waited for */
    GAP_US_MIN = 80 * 1000,
    GAP_US_MAX = 200 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *leader; /* slow; NULL: none is */
    uint64_t strike_us, came_us;
} stage; /* of the one scenario of a process */

static struct sim_server *leader_find(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        struct sim_server *server = &stage.scenario->servers[i];
        if (sim_serves(server) && leat_coordinator_see(leat_node_coordinator(server->node)).leads)
            return server;
    }
    return NULL;
}

/* By the leader's tables. */
static bool is_deleted(uint32_t stream)
{
    struct leat_machine *machine =
        leat_coordinator_tables(leat_node_coordinator(stage.leader->node));
    return !leat_machine_stream_find(machine, stream);
}

/* Has the node logs that wait for a generation, of a stream that is deleted and of a stream that stays? */
static bool both_wait(const struct sim_server *server)
{
    struct leat_partition_seen partition = {0};
    bool deleted = false, stays = false;
    while (leat_node_partition_next(server->node, &partition)) {
        uint32_t stream;
        if (partition.going || !partition.copies || !leat_primary_log_see(partition.copies).held)
            continue;
        if (is_deleted(partition.ref.stream))
            deleted = true;
        else if (sim_stream_of(stage.scenario, partition.ref.stream, &stream))
            stays = true;
    }
    return deleted && stays;
}

static void delay(uint64_t us)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != stage.leader)
            sim_net_delay(scenario->world, stage.leader->name, scenario->servers[i].name, us);
}

static void leader_look(void)
{
    struct sim_server *leader = leader_find();
    if (leader == stage.leader) return;
    if (stage.leader) delay(0);
    stage.leader = leader;
    if (leader) delay(DELAY_US);
}

static void strike(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_world *world = scenario->world;
    const struct sim_server *server =
        &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    if (world->now_us < stage.strike_us || server == stage.leader || !sim_serves(server)) return;
    stage.strike_us = world->now_us + sim_rng_between(&stage.rng, GAP_US_MIN, GAP_US_MAX);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other != server && other != stage.leader && sim_serves(other))
            sim_net_reset_between(server->process, other->process);
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        if (stage.leader) delay(0);
        return;
    }
    leader_look();
    if (stage.leader) strike();
    for (unsigned i = 0; stage.leader && i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (server == stage.leader || !sim_serves(server) || world->now_us < stage.came_us ||
            !both_wait(server))
            continue;
        stage.came_us = world->now_us + DELAY_US; /* the same moment, until then */
        sim_stage_came(scenario);
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    scenario->cores = 1; /* a request has the logs of one core */
}

static void start(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-together");
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_together = {.name = "together",
                                             .nodes = 5,
                                             .deletes = true,
                                             .needs = {.batches = 2, .copies_min = 2},
                                             .choose = choose,
                                             .start = start};
