/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of a minority that are not as they were: flipped bits, files that lost their end or are gone, a disk put
 * back to an older state, an empty one. One machine of a seed has all of that, again and again; what
 * the others hold has to be enough, so of streams with at least two copies nothing may be missed.
 *
 * Where a machine names damage, or does not start because of it, somebody gives it an empty disk; a
 * voter is then replaced (leat node replace). A disk put back to an older state is that of a machine
 * that does not vote: raft can't know a voter that has forgotten its votes (docs/recovery.md). */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/rmem.h"
#include "tests/sim/scenario.h"

enum {
    TRIES_MAX = 200,
    LOST_TRIES_MAX = 4000, /* most of a store file is room for later */
    FLIPS_MAX = 3,
    RUNNING_PER_MILLE = 400,
    HEARD_US_MIN = 1000 * 1000,
    HEARD_US_MAX = 8 * 1000 * 1000,
    LOST_PER_MILLE = 300, /* a store file is lost as a whole, instead of the end of any file */
};

static struct sim_rng *dice(const struct sim_server *server)
{
    return &server->scenario->world->fault;
}

static bool votes(const struct sim_server *server)
{
    return server->number < SIM_VOTERS_MAX;
}

static void victim_set(struct scenario *scenario, unsigned number)
{
    scenario->victim = &scenario->servers[number];
    sim_rng_init(&scenario->lost, scenario->world->seed, "lost files");
    sim_rng_init(&scenario->closed, scenario->world->seed, "closed");
}

void sim_closed_choose(struct scenario *scenario, unsigned number)
{
    victim_set(scenario, number);
    sim_rng_init(&scenario->repair, scenario->world->seed, "repairs");
    scenario->closed_rot = true;
}

void sim_damage_choose(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    if (scenario->server_count < 3 || !sim_rng_chance(rng, 250)) return;
    unsigned victim = scenario->server_count > SIM_VOTERS_MAX
                          ? scenario->server_count - 1
                          : (unsigned)sim_rng_below(rng, scenario->server_count);
    victim_set(scenario, victim);
    scenario->closed_rot = sim_rng_chance(&scenario->closed, 300);
    scenario->scrubs = scenario->closed_rot && sim_rng_chance(&scenario->closed, 500);
    sim_rng_init(&scenario->repair, scenario->world->seed, "repairs");
    scenario->repairs_struck = scenario->closed_rot && sim_rng_chance(&scenario->repair, 600);
    /* What nobody looks for is repaired when somebody reads it from the disk: seldom. */
    if (scenario->repairs_struck && sim_rng_chance(&scenario->repair, 800)) scenario->scrubs = true;
    /* An owner hears of a damaged copy when it asks: a seed's end waits for that. */
    if (scenario->scrubs)
        scenario->audit_us = sim_rng_between(&scenario->closed, HEARD_US_MIN, HEARD_US_MAX);
}

void sim_damage_strike(struct sim_server *server)
{
    struct scenario *scenario = server->scenario;
    enum sim_damage kinds[] = {SIM_DAMAGE_FLIP, SIM_DAMAGE_TRUNCATE, SIM_DAMAGE_EMPTY,
                               SIM_DAMAGE_STALE};
    unsigned count = votes(server) ? 3 : 4;
    if (!server->process || !server->process->alive || scenario->faults_over) return;
    if (scenario->closed_rot) return; /* closed.c */
    server->damage = kinds[sim_rng_below(dice(server), count)];
    bool file = server->damage == SIM_DAMAGE_FLIP || server->damage == SIM_DAMAGE_TRUNCATE;
    if (file && sim_rng_chance(dice(server), RUNNING_PER_MILLE)) {
        sim_fault_struck(scenario->world, SIM_FAULT_RUNNING_DISK);
        sim_damage_apply(server); /* a disk rots whether a node runs or not */
        return;
    }
    sim_process_die(server->process, SIM_DEATH_KILL);
}

void sim_damage_on_death(struct sim_server *server)
{
    if (server != server->scenario->victim || votes(server) || server->corrupt) return;
    if (!server->kept || sim_rng_chance(dice(server), 300)) {
        if (server->damage == SIM_DAMAGE_STALE) server->damage = SIM_DAMAGE_EMPTY;
        server->kept = sim_disk_keep(server->disk); /* the last one stays until the seed ends */
    }
}

/* What a voter's raft log got in the last 200 ms before a death reads as torn when it is damaged
 * (coordinator/raft/log.h): as if it had promised nothing of that. tests/coordinator flips every
 * byte of it. */
static bool place_pick(struct sim_server *server, const char *prefix,
                       struct sim_disk_place *out_place)
{
    static const char raft_log[] = "raft/log-";
    return sim_disk_pick(server->disk, dice(server), prefix, out_place) &&
           !(votes(server) && strncmp(out_place->path, raft_log, sizeof raft_log - 1) == 0);
}

static void flip(struct sim_server *server)
{
    struct sim_disk_place place;
    uint64_t count = sim_rng_between(dice(server), 1, FLIPS_MAX);
    const char *prefix = sim_rng_chance(dice(server), 600) ? "store/" : "";
    for (unsigned i = 0; i < TRIES_MAX && count > 0; i++) {
        if (!place_pick(server, prefix, &place)) continue;
        unsigned bit = (unsigned)sim_rng_below(dice(server), 8);
        if (!sim_disk_flip(server->disk, place.path, place.offset, bit)) continue;
        sim_fault_struck(server->scenario->world, SIM_FAULT_FLIP);
        sim_trace(server->scenario->world, "%s: bit %u of byte %llu of %s flips", server->name, bit,
                  (unsigned long long)place.offset, place.path);
        server->corrupt = true;
        count--;
    }
}

/* A node that runs has a lost store file open, and reads and writes the file until the node stops. */
static bool shorten(struct sim_server *server, const struct sim_disk_place *place, bool lost)
{
    struct sim_world *world = server->scenario->world;
    if (lost ? !sim_disk_lose(server->disk, place->path)
             : !sim_disk_truncate(server->disk, place->path, place->offset))
        return false;
    sim_fault_struck(world, lost ? SIM_FAULT_LOST_FILE : SIM_FAULT_TRUNCATED);
    sim_trace(world, lost ? "%s: %s is gone" : "%s: %s ends at %llu", server->name, place->path,
              (unsigned long long)place->offset);
    server->corrupt = true;
    return true;
}

static bool shorten_any(struct sim_server *server, const char *prefix, unsigned tries, bool lost)
{
    struct sim_disk_place place;
    while (tries-- > 0)
        if (place_pick(server, prefix, &place) && shorten(server, &place, lost)) return true;
    return false;
}

static void truncate_one(struct sim_server *server)
{
    bool lost = sim_rng_chance(&server->scenario->lost, LOST_PER_MILLE);
    if (lost && shorten_any(server, "store/", LOST_TRIES_MAX, true)) return;
    (void)shorten_any(server, "", TRIES_MAX, false);
}

/* With the machine goes its memory. */
static void memory_empty(struct sim_server *server)
{
    sim_arena_empty(server->arena);
    sim_rmem_power_cut(server->rmem_host);
}

void sim_damage_apply(struct sim_server *server)
{
    struct sim_world *world = server->scenario->world;
    enum sim_damage damage = server->damage;
    server->damage = SIM_DAMAGE_NONE;
    if (damage == SIM_DAMAGE_STALE && !server->kept) damage = SIM_DAMAGE_EMPTY;
    switch (damage) {
    case SIM_DAMAGE_NONE:
        return;
    case SIM_DAMAGE_FLIP:
        flip(server);
        return;
    case SIM_DAMAGE_TRUNCATE:
        truncate_one(server);
        return;
    case SIM_DAMAGE_STALE:
        sim_trace(world, "%s: its disk is as it was once", server->name);
        sim_disk_put_back(server->disk, server->kept);
        server->older = true;
        memory_empty(server);
        server->corrupt = true; /* it is refused by name, unless it was kept since the last start */
        sim_fault_struck(world, SIM_FAULT_STALE_DISK);
        return;
    case SIM_DAMAGE_EMPTY:
        sim_trace(world, "%s: its disk is empty", server->name);
        sim_disk_empty(server->disk);
        memory_empty(server);
        server->corrupt = server->older = false;
        server->failed_boots = 0;
        sim_fault_struck(world, votes(server) ? SIM_FAULT_EMPTY_VOTER : SIM_FAULT_EMPTY_DISK);
        if (votes(server)) server->forgot = true;
        return;
    }
}

static void empty_now(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!server->corrupt || server->damage == SIM_DAMAGE_EMPTY) return;
    server->damage = SIM_DAMAGE_EMPTY;
    if (server->process && server->process->alive) sim_process_die(server->process, SIM_DEATH_KILL);
    (void)world;
}

void sim_damage_named(struct sim_server *server)
{
    struct sim_world *world = server->scenario->world;
    if (!server->corrupt || server != server->scenario->victim)
        return; /* a trap's own bits come back */
    sim_world_at(world, world->now_us + sim_rng_between(dice(server), 1000, 500000), empty_now,
                 server);
}

/* ---- deaths in the middle of what is rarely met ---- */

struct amid {
    bool open, resume, version, move, recovery;
};

static void log_see(const struct leat_primary_log *log, struct amid *amid)
{
    struct leat_set_seen set = {0};
    amid->version |= leat_primary_log_see(log).held;
    while (leat_set_see_next(log, false, &set)) {
        amid->resume |= set.resumes;
        for (unsigned i = 0; i < set.copy_count; i++)
            amid->open |= leat_copy_see(&set, i).state == LEAT_COPY_OPENING;
    }
}

void sim_amid_count(struct sim_server *server)
{
    struct sim_world *world = server->scenario->world;
    struct leat_node *node = server->node;
    struct amid amid = {0};
    if (!node) return;
    struct leat_partition_seen at = {0};
    amid.move = leat_node_handing_over(node) > 0;
    while (leat_node_partition_next(node, &at))
        if (at.copies) log_see(at.copies, &amid);
    const struct leat_coordinator *coordinator = leat_node_coordinator(node);
    if (coordinator) amid.recovery = leat_coordinator_see(coordinator).phase != LEAT_RECOVERY_NONE;
    if (amid.open) sim_fault_struck(world, SIM_FAULT_AMID_OPEN);
    if (amid.resume) sim_fault_struck(world, SIM_FAULT_AMID_RESUME);
    if (amid.version) sim_fault_struck(world, SIM_FAULT_AMID_VERSION);
    if (amid.move) sim_fault_struck(world, SIM_FAULT_AMID_MOVE);
    if (amid.recovery) sim_fault_struck(world, SIM_FAULT_AMID_RECOVERY);
}
