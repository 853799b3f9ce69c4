/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at replicas that become a log's, in some of the cluster seeds. When a node makes one of its own the
 * disk there stands still for up to 0.6 s, so that this takes long. Meanwhile whoever wrote the replica is killed, and
 * fenced there; or the log goes on to a third node, which asks for the same segment. */
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 150,
    GAP_US_MAX = 500 * 1000,
    LOOK_US = 100,
    LOOK_US_MAX = 2000 * 1000,
    STALL_US_LEAST = 100 * 1000,
    STALL_US_MAX = 600 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    bool looking;
    uint64_t until_us;
} aim; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static struct sim_server *server_named(const char *name)
{
    struct scenario *scenario = aim.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (lives(&scenario->servers[i]) &&
            strcmp(leat_node_name(scenario->servers[i].node), name) == 0)
            return &scenario->servers[i];
    return NULL;
}

/* A replica that is being adopted; if there are several, first a replica whose writer lives. */
static bool adopted_by(const struct sim_server *server, struct leat_replica_seen *out_adopted)
{
    struct leat_replica_seen rep = {0};
    *out_adopted = rep;
    while (leat_backup_see_next(leat_node_backup(server->node), &rep)) {
        if (!rep.seg || !rep.adopting) continue;
        *out_adopted = rep;
        if (rep.writer.at && server_named(rep.writer.node)) break;
    }
    return out_adopted->at != NULL;
}

/* A living server other than these two. */
static struct sim_server *third(const struct sim_server *one, const struct sim_server *other)
{
    struct scenario *scenario = aim.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != one && &scenario->servers[i] != other &&
            lives(&scenario->servers[i]))
            return &scenario->servers[i];
    return NULL;
}

static void move_on(const struct leat_segment *seg, struct sim_server *to)
{
    struct scenario *scenario = aim.scenario;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        if (scenario->streams[i].id == seg->log.stream)
            scenario->wish =
                (struct sim_wish){.stream = i, .streamlet = seg->log.streamlet, .to = to};
}

static void strike(struct sim_server *server, const struct leat_replica_seen *rep)
{
    struct scenario *scenario = aim.scenario;
    struct sim_world *world = scenario->world;
    struct sim_server *writer = rep->writer.at ? server_named(rep->writer.node) : NULL;
    struct sim_server *to = third(server, writer);
    uint64_t stall_us = sim_rng_between(&aim.rng, STALL_US_LEAST, STALL_US_MAX);
    bool kills = writer && writer != server;
    if (!kills && !to) return;
    sim_disk_stall(server->disk, world->now_us + stall_us);
    sim_fault_struck(world, SIM_FAULT_AMID_ADOPTION);
    sim_trace(world, "aim: %s makes segment %llu of log id %u/%u/%u its own, %s %s", server->name,
              (unsigned long long)rep->seg->id.v, rep->seg->log.stream, rep->seg->log.streamlet,
              rep->seg->log.log, kills ? "killed is" : "its log goes on to",
              kills ? writer->name : to->name);
    if (!kills) {
        move_on(rep->seg, to);
        return;
    }
    writer->away_us_max = sim_rng_between(&aim.rng, 1000, 2000 * 1000);
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_process_die(writer->process, SIM_DEATH_KILL);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool over = scenario->faults_over || world->now_us >= aim.until_us;
    for (unsigned i = 0; i < scenario->server_count && !over; i++) {
        struct sim_server *server = &scenario->servers[i];
        struct leat_replica_seen rep;
        if (!lives(server) || !adopted_by(server, &rep)) continue;
        strike(server, &rep);
        over = true;
    }
    if (over)
        aim.looking = false;
    else
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

/* Where it goes a node has replicas of it, as a rule. */
static void ask_move(void)
{
    struct scenario *scenario = aim.scenario;
    uint32_t stream = (uint32_t)sim_rng_below(&aim.rng, SIM_STREAMS);
    scenario->wish = (struct sim_wish){
        .stream = stream,
        .streamlet =
            (uint32_t)sim_rng_below(&aim.rng, scenario->streams[stream].settings.streamlets),
        .to = &scenario->servers[sim_rng_below(&aim.rng, scenario->server_count)]};
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    if (!aim.looking) {
        if (sim_rng_chance(&aim.rng, 500)) ask_move();
        aim.looking = true;
        aim.until_us = world->now_us + LOOK_US_MAX;
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&aim.rng, 100000, GAP_US_MAX), due,
                 scenario);
}

void sim_aim_adopt_start(struct scenario *scenario)
{
    aim.scenario = scenario;
    aim.looking = false;
    sim_rng_init(&aim.rng, scenario->world->seed, "aim-adopt");
    if (!sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&aim.rng, GAP_US_MAX),
                 due, scenario);
}
