/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for a torn copy beside a whole copy, in some cluster seeds whose machines write into each other's
 * memory over a network. One write to a node fails when all of its bytes have arrived but the first. Nobody appends any
 * more, and the owner reaches no other node: the owner makes another copy there, beside the torn copy. When the new
 * copy is whole, and the torn copy, which ends alike, has not gone yet, the owner is killed. A recovery has to find the
 * whole copy, whichever of the two a backup looks at first. */
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/rmem.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 200,
    GAP_US_MAX = 300 * 1000,
    LOOK_US = 150,
    TEAR_US = 150 * 1000,  /* a write is waited for */
    BESIDE_US = 80 * 1000, /* another copy is */
    AWAY_US_MAX = 3000 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *owner, *backup;
    struct sim_process *process; /* the owner's */
    uint64_t until_us;
    bool going;
    const uint8_t *at; /* where a write was torn */
} trap;                /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node) && leat_node_backup(server->node);
}

/* ---- are there two? ---- */

static bool is_there(const struct leat_replica_seen *rep)
{
    return rep->seg && rep->seg->buffer && rep->writer.at && !rep->damaged && !rep->dropping &&
           !rep->drop_wanted && !rep->adopting && !rep->seg->incomplete &&
           rep->seg->state != LEAT_SEGMENT_CLOSED &&
           strcmp(rep->writer.node, trap.owner->name) == 0;
}

/* Its last entry lies there, and what is in front of it does not. */
static bool is_torn(const struct leat_segment *seg, const struct leat_scan *whole)
{
    struct leat_entry trailer;
    struct leat_scan scan;
    if (seg->capacity < whole->bytes || whole->bytes < sizeof trailer) return false;
    memcpy(&trailer, seg->buffer + whole->bytes - sizeof trailer, sizeof trailer);
    if (trailer.type != LEAT_ENTRY_TRAILER || trailer.crc != whole->crc) return false;
    leat_scan_segment(seg->buffer, seg->capacity, &scan);
    return scan.bytes < whole->bytes;
}

static const struct leat_backup *backup_of_trap(void)
{
    return leat_node_backup(trap.backup->node);
}

static bool stands_beside(const struct leat_segment *torn)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(backup_of_trap(), torn->log, &rep)) {
        struct leat_scan scan;
        if (rep.seg == torn || !is_there(&rep) || rep.seg->id.v != torn->id.v) continue;
        leat_scan_segment(rep.seg->buffer, rep.seg->capacity, &scan);
        if (scan.started && is_torn(torn, &scan)) return true;
    }
    return false;
}

static const struct leat_segment *torn_find(void)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup_of_trap(), &rep))
        if (is_there(&rep) && trap.at >= rep.seg->buffer &&
            trap.at < rep.seg->buffer + rep.seg->capacity)
            return rep.seg;
    return NULL;
}

/* ---- when ---- */

/* The owner and the one backup are alone with each other. */
static void cut_until(uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (server == trap.owner || server == trap.backup) continue;
        sim_net_cut(scenario->world, server->name, trap.owner->name, until_us);
        sim_net_cut(scenario->world, trap.owner->name, server->name, until_us);
        if (until_us && server->process) (void)sim_net_reset(server->process, 1000);
    }
}

static void nobody_appends(uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->client_count; i++)
        sim_process_pause(scenario->clients[i]->process, until_us);
}

static void end(void)
{
    struct sim_world *world = trap.scenario->world;
    if (trap.at) cut_until(0);
    world->rmem_tear.from[0] = '\0';
    trap.going = false;
}

static void tear_seen(void)
{
    struct sim_world *world = trap.scenario->world;
    trap.at = world->rmem_tear.at;
    trap.until_us = world->now_us + BESIDE_US;
    cut_until(trap.until_us);
    (void)sim_net_reset(trap.backup->process, 1000); /* else it is attached again after 200 ms */
    nobody_appends(trap.until_us);
    sim_trace(world, "trap: a write of %s to %s is torn", trap.owner->name, trap.backup->name);
}

static void strike(void)
{
    struct sim_world *world = trap.scenario->world;
    sim_trace(world, "trap: %s has a torn copy beside a whole one, and %s dies", trap.backup->name,
              trap.owner->name);
    trap.owner->away_us_max = AWAY_US_MAX;
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_fault_struck(world, SIM_FAULT_TORN_BESIDE);
    sim_process_die(trap.owner->process, SIM_DEATH_KILL);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    bool here = lives(trap.owner) && trap.owner->process == trap.process && lives(trap.backup);
    if (trap.scenario->faults_over || world->now_us >= trap.until_us || !here) {
        end();
        return;
    }
    if (!trap.at && world->rmem_tear.at) tear_seen();
    const struct leat_segment *torn = trap.at ? torn_find() : NULL;
    if (torn && stands_beside(torn)) {
        strike();
        end();
        return;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct sim_world *world = scenario->world;
    unsigned count = scenario->server_count;
    unsigned first = (unsigned)sim_rng_below(&trap.rng, count);
    unsigned step = 1 + (unsigned)sim_rng_below(&trap.rng, count - 1);
    trap.owner = &scenario->servers[first];
    trap.backup = &scenario->servers[(first + step) % count];
    if (!lives(trap.owner) || !lives(trap.backup)) return;
    trap.process = trap.owner->process;
    trap.going = true;
    trap.at = NULL;
    trap.until_us = world->now_us + TEAR_US;
    sim_rmem_tear(world, trap.owner->name, trap.backup->name);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    if (trap.scenario->faults_over) return;
    if (!trap.going) begin();
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 50000, GAP_US_MAX), due,
                 event->a);
}

void sim_trap_torn_start(struct scenario *scenario)
{
    memset(&trap, 0, sizeof trap);
    trap.scenario = scenario;
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-torn");
    bool verbs = scenario->rmem_kinds == 1u << LEAT_RMEM_VERBS;
    if (!sim_rng_chance(&trap.rng, SEEDS_PER_MILLE) || !verbs) return;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
