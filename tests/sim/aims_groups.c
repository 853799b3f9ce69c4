/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at homes of consumer groups, in some of the cluster seeds with --hard. A seed has one of these:
 * - A node is away when a group is asked for the first time, so that the stream of homes can't have its copies.
 * - A member comes, so that all members of its group join again. While joins wait for other members, the home moves to
 *   another node. */
#include <string.h>

#include "broker/probe.h"
#include "groups/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 150, /* of the seeds with --hard */
    FIRST_PER_MILLE = 300,
    FIRST_US_MAX = 600 * 1000,
    AWAY_US_MAX = 2000 * 1000,
    GAP_US_MAX = 400 * 1000,
    LOOK_US = 300,
    LOOK_US_MAX = 1500 * 1000,
    MEMBERS_MAX = 6, /* that come beside the others */
    MEMBERS_FIRST = 40,
};

static struct {
    struct scenario *scenario; /* NULL: this seed has no such aim */
    struct sim_rng rng;
    uint64_t until_us;
    unsigned members;
} aim; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && !server->stopping && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static bool in_group(const struct sim_client *client)
{
    return client->kind == SIM_CLIENT_MEMBER || client->kind == SIM_CLIENT_SHARER ||
           client->kind == SIM_CLIENT_KAFKA_MEMBER;
}

static void die(struct sim_server *server, uint64_t away_us_max)
{
    server->away_us_max = away_us_max;
    sim_fault_struck(aim.scenario->world, SIM_FAULT_KILL);
    sim_process_die(server->process, SIM_DEATH_KILL);
}

/* ---- the first request to a group ---- */

static void away_at_first(void)
{
    struct scenario *scenario = aim.scenario;
    uint64_t until_us = scenario->world->now_us + sim_rng_between(&aim.rng, 50000, FIRST_US_MAX);
    struct sim_server *server = &scenario->servers[sim_rng_below(&aim.rng, scenario->server_count)];
    if (!lives(server)) return;
    for (unsigned i = 0; i < scenario->client_count; i++)
        if (in_group(scenario->clients[i]))
            sim_process_pause(scenario->clients[i]->process, until_us);
    sim_trace(scenario->world, "aim: %s is away when groups begin, at %llu", server->name,
              (unsigned long long)until_us);
    die(server, AWAY_US_MAX);
}

/* ---- homes ---- */

static struct sim_server *home_find(struct leat_log_ref *out_home)
{
    struct scenario *scenario = aim.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_partition_seen it = {0};
        while (lives(&scenario->servers[i]) &&
               leat_node_partition_next(scenario->servers[i].node, &it)) {
            struct leat_groups_seen home;
            if (!it.groups || it.going || it.moves) continue;
            leat_groups_see(it.groups, &home);
            *out_home = it.ref;
            if (home.joins) return &scenario->servers[i];
        }
    }
    return NULL;
}

/* A member comes: all members of its group join again. */
static void member_comes(void)
{
    if (aim.members == MEMBERS_MAX) return;
    (void)sim_client_start(aim.scenario, SIM_CLIENT_MEMBER, 0, MEMBERS_FIRST + aim.members++);
}

static void move_away(const struct sim_server *server, struct leat_log_ref home)
{
    struct scenario *scenario = aim.scenario;
    unsigned first = (unsigned)sim_rng_below(&aim.rng, scenario->server_count);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *to = &scenario->servers[(first + i) % scenario->server_count];
        if (to == server || !lives(to) || scenario->wish.to) continue;
        sim_trace(scenario->world, "aim: joins wait at %s, and their home goes", server->name);
        scenario->hurried = true;
        scenario->wish = (struct sim_wish){SIM_STREAMS, home.streamlet, to};
    }
}

static void due(struct sim_world *world, struct sim_event *event);

static void look(struct sim_world *world, struct sim_event *event)
{
    bool over = aim.scenario->faults_over || world->now_us >= aim.until_us;
    struct leat_log_ref home;
    struct sim_server *server = over ? NULL : home_find(&home);
    if (server) move_away(server, home);
    if (!over && !server) {
        sim_world_at(world, world->now_us + LOOK_US, look, event->a);
        return;
    }
    if (aim.scenario->faults_over) return;
    sim_world_at(world, world->now_us + sim_rng_between(&aim.rng, 50000, GAP_US_MAX), due,
                 event->a);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    if (aim.scenario->faults_over) return;
    aim.until_us = world->now_us + LOOK_US_MAX;
    member_comes();
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

void sim_aim_groups_start(struct scenario *scenario)
{
    memset(&aim, 0, sizeof aim);
    sim_rng_init(&aim.rng, scenario->world->seed, "aim-groups");
    if (!scenario->hard || !sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return;
    aim.scenario = scenario;
    if (sim_rng_chance(&aim.rng, FIRST_PER_MILLE))
        away_at_first();
    else
        sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&aim.rng, GAP_US_MAX),
                     due, scenario);
}
