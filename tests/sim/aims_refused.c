/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at requests of owners that are refused, in some of the cluster seeds that delete streams; nothing but
 * this aim, and the aims beside scheduled faults, strikes in these seeds. A stream is deleted while a node that is not
 * the leader asks the coordinators to open a log of that stream. The coordinator's thread of that node stands still,
 * for too short for the node to be called dead; so the request leaves after the deletion. Meanwhile the node loses its
 * connections, and so copies. Before, a node that owns logs of the stream is killed in half of the cases: its logs get
 * a new epoch, and so another owner opens them. After four of five strikes nothing is struck any more: a log that
 * stands still does so until the seed's end. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/deletes.h"

enum {
    SEEDS_PER_MILLE = 250, /* of the seeds that delete streams */
    KILL_PER_MILLE = 500,
    LAST_PER_MILLE = 800,
    CORE_PER_MILLE = 500,
    GAP_US_MAX = 300 * 1000,
    LOOK_US = 200,
    LOOK_US_MAX = 400 * 1000,
    AWAY_US_MAX = 30 * 1000,
    /* A node is suspected after 100 ms, and called dead 60 ms later. */
    HOLD_US = 140 * 1000,
    CORE_US_MAX = 40 * 1000,
    RESET_US_MAX = 30 * 1000,
};

static struct {
    struct sim_rng rng;
    struct scenario *scenario;
    bool looking;
    bool ended; /* nothing is struck any more */
    uint64_t until_us;
} aim; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_has_cores(server->node);
}

static bool leads(const struct sim_server *server)
{
    return leat_coordinator_see(leat_node_coordinator(server->node)).leads;
}

/* 0: there is none that is not about to go. */
static uint32_t thrown_stream(struct sim_deletes **out_deletes)
{
    struct sim_deletes *deletes = sim_deletes_of(aim.scenario);
    *out_deletes = deletes;
    if (!deletes || deletes->count == 0 || deletes->thrown[deletes->count - 1].asked) return 0;
    return deletes->thrown[deletes->count - 1].id;
}

/* Is the log about to be opened, or has its owner asked for that? */
static bool opens(const struct leat_partition_seen *at)
{
    struct leat_log_seen log;
    if (!at->log || at->going) return false;
    leat_log_see(at->log, &log);
    return log.head && !log.opened;
}

static void reset_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!server->scenario->faults_over && lives(server)) (void)sim_net_reset(server->process, 1000);
    (void)world;
}

static void hold(struct sim_server *server, uint32_t core, struct sim_deletes *deletes)
{
    struct sim_world *world = aim.scenario->world;
    uint64_t until_us = world->now_us + HOLD_US;
    server->coordinator->free_at_us = until_us;
    if (sim_rng_chance(&aim.rng, CORE_PER_MILLE))
        server->cores[core]->free_at_us = world->now_us + sim_rng_below(&aim.rng, CORE_US_MAX);
    sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, RESET_US_MAX), reset_due, server);
    deletes->hurry = 1;
    aim.scenario->unseen_until_us = until_us;
    aim.ended = sim_rng_chance(&aim.rng, LAST_PER_MILLE);
    sim_fault_struck(world, SIM_FAULT_DELETED_UNHEARD);
    sim_trace(world, "aim: what %s asks leaves after the deletion of a stream, at %llu",
              server->name, (unsigned long long)until_us);
}

/* True: struck. */
static bool server_look(struct sim_server *server, uint32_t stream, struct sim_deletes *deletes)
{
    struct leat_partition_seen at = {0};
    while (leat_node_partition_next(server->node, &at)) {
        if (at.ref.stream != stream || !opens(&at)) continue;
        hold(server, at.core, deletes);
        return true;
    }
    return false;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_deletes *deletes;
    uint32_t stream = thrown_stream(&deletes);
    aim.looking = stream && !scenario->faults_over && world->now_us < aim.until_us;
    for (unsigned i = 0; i < scenario->server_count && aim.looking; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (lives(server) && !leads(server) && server_look(server, stream, deletes))
            aim.looking = false;
    }
    if (aim.looking) sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void owner_dies(uint32_t stream)
{
    struct scenario *scenario = aim.scenario;
    unsigned first = (unsigned)sim_rng_below(&aim.rng, scenario->server_count);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[(first + i) % scenario->server_count];
        struct leat_partition_seen at = {0};
        if (!lives(server) || leads(server)) continue;
        while (leat_node_partition_next(server->node, &at) && at.ref.stream != stream)
            ;
        if (at.ref.stream != stream) continue;
        server->away_us_max = AWAY_US_MAX;
        sim_fault_struck(scenario->world, SIM_FAULT_KILL);
        sim_process_die(server->process, SIM_DEATH_KILL);
        return;
    }
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_deletes *deletes;
    if (scenario->faults_over || aim.ended) return;
    uint32_t stream = thrown_stream(&deletes);
    if (stream && !aim.looking) {
        if (sim_rng_chance(&aim.rng, KILL_PER_MILLE)) owner_dies(stream);
        aim.looking = true;
        aim.until_us = world->now_us + LOOK_US_MAX;
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&aim.rng, 10000, GAP_US_MAX), due,
                 scenario);
}

bool sim_aim_refused_start(struct scenario *scenario)
{
    memset(&aim, 0, sizeof aim);
    aim.scenario = scenario;
    /* A word that no seed of another bug's row draws this aim with (bugs.md). */
    sim_rng_init(&aim.rng, scenario->world->seed, "refused for good");
    if (!scenario->deletes || !sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return false;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&aim.rng, GAP_US_MAX),
                 due, scenario);
    return true;
}
