/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a copy of an open segment that is called complete. There are four nodes, and three copies of
 * each log. A backup dies, so that its copies are soon made on the fourth node. When a new copy there is complete, and
 * its owner has not heard so yet, nothing goes between the two any more. As soon as the owner has acked more, or after
 * a while, the owner and the other backup die, and stay away until the log has a new owner. Of the four nodes three
 * vote: one of the two that die does not. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/stage.h"

enum {
    NODES = 4,
    GRACE_US_MAX = 60 * 1000,
    DELAY_US = 800, /* between nodes: an answer is seen before it arrives */
    LOOK_US = 100,
    BEGIN_US = 400 * 1000,
    BACKUP_AWAY_US = 700 * 1000,
    GAP_US_MAX = 600 * 1000,
    ACK_US = 700 * 1000,   /* so long the owner goes on */
    AWAY_US = 2500 * 1000, /* the owner and the other backup */
    REST_US = 4 * AWAY_US / 3,
    STRIKES_MAX = 3,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *owner, *other, *filled; /* owner: NULL: no strike is under way */
    struct leat_log_ref ref;
    uint64_t next_offset; /* what comes from there on the new copy does not get */
    uint64_t until_us, next_us;
    unsigned strikes;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node) && leat_node_backup(server->node);
}

static bool all_live(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++)
        if (!lives(&stage.scenario->servers[i])) return false;
    return true;
}

static struct sim_server *server_named(const char *name)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (lives(&scenario->servers[i]) && strcmp(scenario->servers[i].name, name) == 0)
            return &scenario->servers[i];
    return NULL;
}

static void die(struct sim_server *server, uint64_t away_us)
{
    if (!server->process || !server->process->alive) return;
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    sim_server_boot_later(server, away_us);
}

static bool votes(const struct sim_server *server)
{
    return server->number < SIM_VOTERS_MAX;
}

static struct leat_log_seen log_at(const struct sim_server *server)
{
    struct leat_partition_seen partition;
    struct leat_log_seen log = {0};
    if (lives(server) && leat_node_partition_at(server->node, stage.ref, &partition) &&
        partition.log)
        leat_log_see(partition.log, &log);
    return log;
}

static void cut_until(uint64_t until_us)
{
    struct sim_world *world = stage.scenario->world;
    sim_net_cut(world, stage.owner->name, stage.filled->name, until_us);
    sim_net_cut(world, stage.filled->name, stage.owner->name, until_us);
}

/* The backup has it complete, and the owner has asked for that. */
static bool is_complete_there(const struct leat_copy_seen *copy, const struct sim_server *server)
{
    struct leat_replica_seen rep;
    return copy->incomplete && copy->state == LEAT_COPY_OPEN &&
           leat_backup_see(leat_node_backup(server->node), copy->handle, &rep) && rep.seg &&
           !rep.seg->incomplete;
}

static bool strike_at(struct sim_server *owner, const struct leat_set_seen *set)
{
    struct sim_world *world = stage.scenario->world;
    struct sim_server *filled = NULL, *other = NULL;
    for (unsigned i = 0; i < set->copy_count; i++) {
        struct leat_copy_seen copy = leat_copy_see(set, i);
        struct sim_server *server = server_named(copy.node);
        if (!server) return false;
        if (is_complete_there(&copy, server))
            filled = server;
        else if (!copy.incomplete)
            other = server;
    }
    if (!filled || !other || (votes(owner) && votes(other))) return false;
    stage.owner = owner;
    stage.other = other;
    stage.filled = filled;
    stage.ref = set->seg->log;
    stage.next_offset = log_at(owner).next_offset;
    stage.until_us = world->now_us + ACK_US;
    stage.strikes++;
    cut_until(world->now_us + REST_US);
    sim_trace(world, "stage: %s calls a copy of segment %llu complete, and %s does not hear so",
              filled->name, (unsigned long long)set->id.v, owner->name);
    sim_stage_came(stage.scenario);
    return true;
}

static bool strike(struct sim_server *owner)
{
    for (uint32_t core = 0; core < stage.scenario->cores; core++) {
        struct leat_primary *primary = leat_node_primary(owner->node, core);
        const struct leat_primary_log *log = NULL;
        while ((log = leat_primary_log_next(primary, log))) {
            struct leat_primary_log_seen of = leat_primary_log_see(log);
            struct leat_set_seen set = {0};
            uint32_t stream;
            if (!sim_stream_of(stage.scenario, of.ref.stream, &stream)) continue;
            while (leat_set_see_next(log, false, &set))
                if (set.seg && set.started && !set.closed && strike_at(owner, &set)) return true;
        }
    }
    return false;
}

/* Copies are to be made anew: of the nodes one dies, for a while. */
static void one_dies(void)
{
    struct scenario *scenario = stage.scenario;
    uint64_t now_us = scenario->world->now_us;
    if (now_us < stage.next_us || !all_live()) return;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    stage.next_us = now_us + BACKUP_AWAY_US + sim_rng_below(&stage.rng, GAP_US_MAX);
    die(server, BACKUP_AWAY_US);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        if (stage.owner) cut_until(0);
        return;
    }
    if (stage.owner && stage.until_us > 0) {
        if (log_at(stage.owner).acked_offset > stage.next_offset ||
            world->now_us >= stage.until_us) {
            stage.until_us = 0;
            die(stage.owner, AWAY_US);
            die(stage.other, AWAY_US);
            stage.next_us = world->now_us + REST_US;
        }
    } else if (world->now_us >= stage.next_us) {
        if (stage.owner) cut_until(0);
        stage.owner = NULL;
        if (stage.strikes < STRIKES_MAX) one_dies();
    }
    for (unsigned i = 0; i < scenario->server_count && !stage.owner; i++)
        if (stage.strikes < STRIKES_MAX && lives(&scenario->servers[i]))
            (void)strike(&scenario->servers[i]);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-whole");
    scenario->grace_us = sim_rng_between(&stage.rng, 1000, GRACE_US_MAX);
    /* A cut holds up copies' bytes, too. */
    scenario->rmem_kinds = 0;
    scenario->transport = LEAT_RMEM_RPC;
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    for (unsigned i = 0; i < scenario->server_count; i++)
        for (unsigned k = 0; k < scenario->server_count; k++)
            if (i != k)
                sim_net_delay(world, scenario->servers[i].name, scenario->servers[k].name,
                              DELAY_US);
    stage.next_us = world->now_us + BEGIN_US;
    sim_world_at(world, stage.next_us, look, scenario);
}

const struct sim_stage sim_stage_whole = {
    .name = "whole",
    .nodes = NODES,
    .needs = {.batches = 4, .copies = 3, .few_logs = true, .one_log = true},
    .choose = choose,
    .start = start,
};
