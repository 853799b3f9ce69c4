/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a home of consumer groups that leaves its node while a commit of a parallel group waits for
 * another node. Of four nodes one has all logs that the group reads, no copy of the group's home, and does not lead.
 * When a commit asks that node how far segment groups go, nothing goes from it to the home's node any more, and the
 * home moves to a third node. So the home has gone before the commit has its answer. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "groups/probe.h"
#include "multilog/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/stage.h"

enum {
    NODES = 4,
    STREAM = 3, /* that parallel groups read */
    SHARERS = 2,
    SHARERS_FIRST = 50,
    DELAY_US = 1500, /* between nodes: a question is seen before it is answered */
    LOOK_US = 200,
    ARRANGE_US = 300 * 1000, /* until what was wished has come about */
    CUT_US = 1500 * 1000,    /* a link is silent for 2 s before it is given up */
    BEGIN_US = 300 * 1000,
};

static const char group_name[] = "sharers";

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *home, *asked; /* asked: NULL: no cut now */
    struct leat_log_ref ref;
    uint64_t until_us, arranged_us;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static bool home_at(const struct sim_server *server, struct leat_partition_seen *out)
{
    struct leat_groups_seen home;
    *out = (struct leat_partition_seen){0};
    while (lives(server) && leat_node_partition_next(server->node, out)) {
        if (!out->groups || out->going) continue;
        leat_groups_see(out->groups, &home);
        if (home.serves && leat_groups_see_group(out->groups, group_name)) return true;
    }
    return false;
}

static bool owns_stream(const struct sim_server *server)
{
    struct leat_log_ref ref = {stage.scenario->streams[STREAM].id, 0, 0};
    struct leat_partition_seen seen;
    return lives(server) && leat_node_partition_at(server->node, ref, &seen) && !seen.going;
}

static bool leads(const struct sim_server *server)
{
    return leat_coordinator_see(leat_node_coordinator(server->node)).leads;
}

/* Is a copy of the home's open segment there? Yes, where the home has none. */
static bool has_copy(const struct leat_partition_seen *home, const struct sim_server *server)
{
    struct leat_log_seen log;
    struct leat_set_seen set;
    leat_log_see(home->log, &log);
    if (!log.head || !leat_set_see_of(log.head, &set)) return true;
    for (unsigned i = 0; i < set.copy_count; i++)
        if (strcmp(leat_copy_see(&set, i).node, server->name) == 0) return true;
    return false;
}

static struct sim_server *outside(const struct leat_partition_seen *home)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (server != stage.home && lives(server) && !leads(server) && !has_copy(home, server))
            return server;
    }
    return NULL;
}

static struct sim_server *any_but(const struct sim_server *one, const struct sim_server *other)
{
    struct scenario *scenario = stage.scenario;
    for (;;) {
        uint64_t i = sim_rng_below(&stage.rng, scenario->server_count);
        struct sim_server *server = &scenario->servers[i];
        if (server != one && server != other) return server;
    }
}

static void wish(uint32_t stream, uint32_t streamlet, struct sim_server *to)
{
    if (stage.scenario->wish.to) return;
    stage.scenario->wish = (struct sim_wish){stream, streamlet, to};
}

/* What the commit asks is with a node outside, or will be: false. */
static bool is_arranged(const struct leat_partition_seen *home)
{
    struct sim_server *server = outside(home);
    uint64_t now_us = stage.scenario->world->now_us;
    if (server && owns_stream(server)) {
        stage.asked = server;
        return true;
    }
    if (now_us < stage.arranged_us + ARRANGE_US) return false;
    stage.arranged_us = now_us;
    if (server)
        wish(STREAM, 0, server);
    else
        wish(SIM_STREAMS, home->ref.streamlet, any_but(stage.home, NULL));
    return false;
}

static void cut_until(uint64_t until_us)
{
    sim_net_cut(stage.scenario->world, stage.asked->name, stage.home->name, until_us);
}

static void strike(const struct leat_partition_seen *home)
{
    struct sim_world *world = stage.scenario->world;
    stage.until_us = world->now_us + CUT_US;
    stage.ref = home->ref;
    cut_until(stage.until_us);
    wish(SIM_STREAMS, home->ref.streamlet, any_but(stage.home, stage.asked));
    sim_trace(world, "stage: a commit at %s asks %s, and its home goes", stage.home->name,
              stage.asked->name);
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct leat_partition_seen home;
    struct leat_groups_seen seen;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        stage.home = &scenario->servers[i];
        if (!home_at(stage.home, &home) || home.moves) continue;
        if (!is_arranged(&home)) return;
        leat_groups_see(home.groups, &seen);
        if (seen.asks && !seen.in_flight)
            strike(&home);
        else
            stage.asked = NULL;
        return;
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct leat_partition_seen home;
    if (stage.asked) {
        bool stays = lives(stage.home) &&
                     leat_node_partition_at(stage.home->node, stage.ref, &home) && home.groups;
        bool over = scenario->faults_over || world->now_us >= stage.until_us;
        if (!stays && !over) sim_stage_came(scenario);
        if (!stays || over) {
            cut_until(0);
            stage.asked = NULL;
        }
    } else if (!scenario->faults_over)
        begin();
    if (!scenario->faults_over || stage.asked)
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-home-asks");
    scenario->hurried = true;
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    for (unsigned i = 0; i < scenario->server_count; i++)
        for (unsigned k = 0; k < scenario->server_count; k++)
            if (i != k)
                sim_net_delay(world, scenario->servers[i].name, scenario->servers[k].name,
                              DELAY_US);
    for (unsigned i = 0; i < SHARERS; i++)
        (void)sim_client_start(scenario, SIM_CLIENT_SHARER, STREAM, SHARERS_FIRST + i);
    sim_world_at(world, world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_home_asks = {
    .name = "home-asks",
    .nodes = NODES,
    .needs = {.batches = 2, .copies_min = 2, .few_logs = true},
    .choose = choose,
    .start = start,
};
