/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for homes of groups, in a few of the cluster seeds. The node that owns the home of a group is cut
 * off from the other nodes, and a member of the group from that node. Once another node has the home, a further member
 * joins, so that a generation begins of which the old home has not heard. When the first member is in this generation
 * and has committed, the member is cut off from the other nodes instead. The member asks the old home, whose generation
 * is another, joins there again, and is to be told nothing of what was committed. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "consumer/probe.h"
#include "groups/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 60,
    GAP_US_MAX = 1000 * 1000,
    LOOK_US = 500,
    /* A member is dropped after 3 s of silence: the old home is to be asked before that. */
    CUT_US = 2000 * 1000,
    BACK_US = 1200 * 1000, /* a heartbeat comes every second */
    CLIENTS_MAX = 60,      /* where there have been so many, no member is added any more */
};

static const char group_name[] = "members";

enum step { IDLE, CUT, FOLLOWED, BACK };

static struct trap_home {
    struct scenario *scenario;
    struct sim_rng rng;
    enum step step;
    uint64_t until_us;
    struct sim_server *old;
    struct sim_process *process; /* of `old`, when it was cut off */
    struct sim_client *member;
    uint32_t generation; /* at the old home */
} trap;                  /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

/* The home there that knows the group; NULL: it has none. */
static struct leat_groups *home_at(const struct sim_server *server)
{
    struct leat_partition_seen at = {0};
    struct leat_groups_seen home;
    while (lives(server) && leat_node_partition_next(server->node, &at)) {
        if (!at.groups || at.going) continue;
        leat_groups_see(at.groups, &home);
        if (home.serves && leat_groups_see_group(at.groups, group_name)) return at.groups;
    }
    return NULL;
}

static bool is_in(const struct sim_client *client, uint32_t generation)
{
    uint32_t of;
    return client->process->alive && client->consumer &&
           leat_consumer_is_member(client->consumer, &of) && of == generation;
}

/* ---- between machines ---- */

static void cut_client(struct sim_client *client, const struct sim_server *server,
                       uint64_t until_us)
{
    struct sim_process *process = client->process;
    if (!process->host[0]) snprintf(process->host, sizeof process->host, "%s", process->name);
    sim_net_cut(trap.scenario->world, process->host, server->name, until_us);
    sim_net_cut(trap.scenario->world, server->name, process->host, until_us);
}

static void cut_from_others(bool of_member, uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other == trap.old) continue;
        if (of_member) {
            cut_client(trap.member, other, until_us);
        } else {
            sim_net_cut(scenario->world, trap.old->name, other->name, until_us);
            sim_net_cut(scenario->world, other->name, trap.old->name, until_us);
        }
    }
}

/* ---- steps ---- */

static struct sim_client *member_find(uint32_t generation)
{
    for (unsigned i = 0; i < trap.scenario->client_count; i++) {
        struct sim_client *client = trap.scenario->clients[i];
        if (client->kind == SIM_CLIENT_MEMBER && is_in(client, generation)) return client;
    }
    return NULL;
}

static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct sim_world *world = scenario->world;
    unsigned homes = 0; /* of two one was followed before, and has not heard of it yet */
    for (unsigned i = 0; i < scenario->server_count; i++) {
        if (!lives(&scenario->servers[i])) return; /* most are to be there without it */
        homes += home_at(&scenario->servers[i]) != NULL;
    }
    if (homes != 1) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_groups *groups = home_at(&scenario->servers[i]);
        if (!groups) continue;
        const struct leat_group *group = leat_groups_see_group(groups, group_name);
        struct sim_client *member = member_find(group->generation);
        if (group->phase != LEAT_GROUP_STABLE || !member) continue;
        trap.old = &scenario->servers[i];
        trap.process = trap.old->process;
        trap.member = member;
        trap.generation = group->generation;
        trap.step = CUT;
        trap.until_us = world->now_us + CUT_US;
        cut_from_others(false, trap.until_us + BACK_US);
        cut_client(member, trap.old, trap.until_us);
        (void)sim_net_reset(member->process, 1000);
        sim_trace(world, "trap: %s has the home of a group, and is cut off", trap.old->name);
        return;
    }
}

static struct leat_groups *new_home(void)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++) {
        struct sim_server *server = &trap.scenario->servers[i];
        struct leat_groups *groups = server == trap.old ? NULL : home_at(server);
        if (groups) return groups;
    }
    return NULL;
}

static void add_member(void)
{
    struct scenario *scenario = trap.scenario;
    if (scenario->client_count >= CLIENTS_MAX) return;
    struct sim_client *more =
        sim_client_start(scenario, SIM_CLIENT_MEMBER, trap.member->stream, trap.member->index + 1);
    if (more) cut_client(more, trap.old, trap.until_us + BACK_US);
    trap.step = FOLLOWED;
    sim_trace(scenario->world, "trap: another node has that home");
}

/* Something that the member was given then is committed further than the old home knows. */
static bool has_committed(struct leat_groups *now)
{
    struct leat_groups *before = home_at(trap.old);
    struct leat_group *group = leat_groups_see_group(now, group_name);
    struct leat_group *old = before ? leat_groups_see_group(before, group_name) : NULL;
    struct leat_groups_seen seen;
    leat_groups_see(now, &seen);
    if (!old || seen.in_flight || !is_in(trap.member, group->generation) ||
        group->generation <= trap.generation)
        return false;
    for (uint32_t i = 0; i < group->log_count; i++) {
        const struct leat_group_log *log = leat_group_log_find(old, group->logs[i].log);
        if (log && group->logs[i].has_offset &&
            group->logs[i].offset > (log->has_offset ? log->offset : 0))
            return true;
    }
    return false;
}

static void ask_old(void)
{
    struct sim_world *world = trap.scenario->world;
    trap.step = BACK;
    trap.until_us = world->now_us + BACK_US;
    cut_client(trap.member, trap.old, 0);
    cut_from_others(true, trap.until_us);
    cut_from_others(false, trap.until_us);
    (void)sim_net_reset(trap.member->process, 1000);
    sim_fault_struck(world, SIM_FAULT_OLD_HOME);
    sim_trace(world, "trap: %s reaches only the old home", trap.member->process->name);
}

static void end(void)
{
    cut_from_others(true, 0);
    cut_from_others(false, 0);
    cut_client(trap.member, trap.old, 0);
    trap.step = IDLE;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    const struct scenario *scenario = event->a;
    struct leat_groups *now = new_home();
    if (scenario->faults_over || world->now_us >= trap.until_us || !lives(trap.old) ||
        trap.old->process != trap.process || !trap.member->process->alive) {
        end();
        return;
    }
    if (trap.step == CUT && now) add_member();
    if (trap.step == FOLLOWED && now && has_committed(now)) ask_old();
    if (trap.step == BACK && is_in(trap.member, trap.generation)) {
        end(); /* the member was told: what the member reads shows what */
        return;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    if (trap.scenario->faults_over) return;
    if (trap.step == IDLE) {
        begin();
        if (trap.step != IDLE) sim_world_at(world, world->now_us + LOOK_US, look, event->a);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 100000, GAP_US_MAX), due,
                 event->a);
}

bool sim_trap_home_choose(struct scenario *scenario)
{
    trap = (struct trap_home){.scenario = scenario};
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-home");
    return sim_rng_chance(&trap.rng, SEEDS_PER_MILLE);
}

void sim_trap_home_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
