/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for deletions, in some of the seeds that delete streams. The owner of a deleted log has a copy of
 * its head on another node, which hears of the deletion before the owner does: the thread of the owner's coordinator
 * stands still for a moment that is too short for the owner to be called dead. The owner's cores go on, and other logs
 * of the owner roll. A segment of such a log may come to lie where the copy was, and be filled beyond the end of the
 * copy. Then the owner is given more records for the deleted stream, and dies when these were written to that place:
 * the bytes on other nodes count then. Nothing else goes wrong in these seeds. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/deletes.h"

enum {
    SEEDS_PER_MILLE = 500,
    WAIT_US_MAX = 2500 * 1000, /* a deletion waits for its moment */
    LOOK_US = 150,
    /* A node is suspected after 100 ms, and called dead 60 ms later. */
    HOLD_US = 140 * 1000,
    AWAY_US_MAX = 3000 * 1000,
    END_BYTES_MAX = 4000, /* of the copy's segment when its moment has come */
    BEHIND_BYTES = 600,   /* of the other segment, behind where that ends */
};

struct trap_deleted {
    struct scenario *scenario;
    struct sim_rng rng;
    bool given;
    uint64_t wait_until_us, until_us;
    struct sim_server *owner, *backup;
    /* The copy, as it was when the deletion was sent. */
    struct leat_log_ref log;
    struct leat_segment_id segment;
    const uint8_t *place;
    uint32_t bytes, end;
    struct sim_client *client; /* whose records are for that stream */
    void (*produce)(struct sim_client *client);
};

static struct trap_deleted trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_has_cores(server->node);
}

static struct leat_backup *backup_of(const struct sim_server *server)
{
    return leat_node_backup(server->node);
}

/* ---- what the owner has ---- */

static bool copy_at(const struct leat_set_seen *set, const char *node,
                    struct leat_copy_seen *out_copy)
{
    for (unsigned i = 0; i < set->copy_count; i++) {
        *out_copy = leat_copy_see(set, i);
        if (strcmp(out_copy->node, node) == 0 && out_copy->lives) return true;
    }
    return false;
}

static bool is_open(const struct leat_set_seen *set)
{
    return set->seg && set->started && !set->closed && !set->dropping && !set->hibernated &&
           !set->want_hibernated;
}

/* The set of an open segment at its owner, and its copy at the other node. */
static bool open_find(struct leat_log_ref ref, struct leat_segment_id segment,
                      struct leat_set_seen *out_set, struct leat_copy_seen *out_copy)
{
    for (uint32_t c = 0; c < trap.scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(trap.owner->node, c);
        const struct leat_primary_log *log = leat_primary_log_at(primary, ref);
        if (log)
            return leat_set_see(log, segment, out_set) && is_open(out_set) &&
                   copy_at(out_set, trap.backup->name, out_copy);
    }
    return false;
}

/* Of another log, and half full: the next one may be opened soon. */
static bool rolls_soon(const struct leat_primary_log *log, const struct leat_set_seen *set)
{
    struct leat_copy_seen copy;
    return is_open(set) && leat_primary_log_see(log).ref.stream != trap.log.stream &&
           set->capacity <= trap.bytes && set->target > set->capacity / 2 &&
           copy_at(set, trap.backup->name, &copy);
}

static bool any_rolls_soon(void)
{
    for (uint32_t c = 0; c < trap.scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(trap.owner->node, c);
        const struct leat_primary_log *log = NULL;
        while ((log = leat_primary_log_next(primary, log))) {
            struct leat_set_seen set = {0};
            while (leat_set_see_next(log, false, &set))
                if (rolls_soon(log, &set)) return true;
        }
    }
    return false;
}

/* ---- what the other node has ---- */

static const struct leat_segment *replica_find(uint32_t stream, const char *writer)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup_of(trap.backup), &rep))
        if (rep.seg && rep.seg->log.stream == stream && rep.seg->buffer && rep.written &&
            strcmp(rep.writer.node, writer) == 0)
            return rep.seg;
    return NULL;
}

/* Does an open segment of another log lie there now, with bytes behind the end of what was there? */
static bool is_reused(void)
{
    const uint8_t *end = trap.place + trap.end;
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup_of(trap.backup), &rep)) {
        const struct leat_segment *seg = rep.seg;
        if (!seg || !seg->buffer || !rep.written ||
            strcmp(rep.writer.node, trap.owner->name) != 0 || seg->log.stream == trap.log.stream ||
            seg->buffer > end)
            continue;
        struct leat_set_seen set;
        struct leat_copy_seen copy;
        if (!open_find(seg->log, seg->id, &set, &copy) ||
            seg->buffer + copy.done < end + BEHIND_BYTES)
            continue;
        sim_trace(trap.scenario->world,
                  "trap: %u/%u/%u segment %llu lies there, its byte %u of %u; %u copies",
                  seg->log.stream, seg->log.streamlet, seg->log.log, (unsigned long long)seg->id.v,
                  (unsigned)(end - seg->buffer), copy.done, set.copy_count);
        return true;
    }
    return false;
}

/* ---- when ---- */

static void kill_owner(void)
{
    struct sim_world *world = trap.scenario->world;
    trap.owner->away_us_max = AWAY_US_MAX;
    sim_trace(world, "trap: %s wrote where stream %u was", trap.owner->name, trap.log.stream);
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_process_die(trap.owner->process, SIM_DEATH_KILL);
}

static void more(struct sim_world *world, struct sim_event *event)
{
    (void)world;
    trap.produce(event->a);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    const struct scenario *scenario = event->a;
    if (scenario->faults_over || world->now_us >= trap.until_us || !lives(trap.owner) ||
        !lives(trap.backup))
        return;
    struct leat_set_seen set;
    struct leat_copy_seen copy;
    bool there = open_find(trap.log, trap.segment, &set, &copy);
    if (trap.given && (!there || (copy.sent > trap.end && !copy.writes))) {
        kill_owner();
        return;
    }
    if (!trap.given && there) {
        trap.end = copy.sent;
        trap.given = is_reused();
    }
    if (trap.given) sim_actor_post(trap.client->actor, 1, more, trap.client);
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static bool is_the_moment(uint32_t stream)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count * scenario->server_count; i++) {
        trap.owner = &scenario->servers[i / scenario->server_count];
        trap.backup = &scenario->servers[i % scenario->server_count];
        if (trap.owner == trap.backup || !lives(trap.owner) || !lives(trap.backup) ||
            leat_coordinator_see(leat_node_coordinator(trap.owner->node)).leads)
            continue;
        const struct leat_segment *seg = replica_find(stream, trap.owner->name);
        if (!seg) continue;
        struct leat_set_seen set;
        struct leat_copy_seen copy;
        if (!open_find(seg->log, seg->id, &set, &copy) || set.target > END_BYTES_MAX) continue;
        trap.log = seg->log;
        trap.segment = seg->id;
        trap.place = seg->buffer;
        trap.bytes = seg->capacity;
        if (any_rolls_soon()) return true;
    }
    return false;
}

void sim_trap_deleted_choose(struct scenario *scenario)
{
    trap = (struct trap_deleted){.scenario = scenario};
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-deleted");
    if (scenario->calm || scenario->trap != SIM_TRAP_NONE || !scenario->rmem_kinds ||
        !sim_rng_chance(&trap.rng, SEEDS_PER_MILLE))
        return;
    scenario->trap = SIM_TRAP_DELETES;
    /* Segments follow each other. */
    scenario->value_bytes = 1600;
    scenario->pause_us_max = 10000;
}

/* ---- of a stage that chooses them ---- */

static const struct sim_stage_deletes *stage_of(const struct scenario *scenario)
{
    return scenario->stage ? scenario->stage->thrown : NULL;
}

bool sim_trap_deleted_is(const struct scenario *scenario)
{
    return scenario->trap == SIM_TRAP_DELETES || stage_of(scenario);
}

void sim_trap_deleted_settings(const struct scenario *scenario,
                               struct leat_stream_settings *settings)
{
    const struct sim_stage_deletes *stage = stage_of(scenario);
    if (stage && stage->settings) stage->settings(settings);
}

bool sim_trap_deleted_reads(const struct sim_deletes *deletes)
{
    const struct scenario *scenario = deletes->scenario;
    bool trapped = scenario->trap == SIM_TRAP_DELETES && deletes->count == 1;
    return !scenario->calm && !stage_of(scenario) && !trapped;
}

/* ---- both ---- */

bool sim_trap_deleted_waits(struct sim_client *client, uint32_t stream,
                            void (*produce)(struct sim_client *client))
{
    struct scenario *scenario = client->scenario;
    struct sim_world *world = scenario->world;
    if (stage_of(scenario) && !scenario->faults_over)
        return stage_of(scenario)->waits(client, stream, produce);
    if (scenario->trap != SIM_TRAP_DELETES || scenario->faults_over ||
        world->now_us < trap.until_us)
        return false;
    if (!trap.wait_until_us) trap.wait_until_us = world->now_us + WAIT_US_MAX;
    bool over = world->now_us >= trap.wait_until_us;
    if (!over && !is_the_moment(stream)) return true;
    trap.wait_until_us = 0;
    if (over) return false;
    trap.until_us = world->now_us + HOLD_US;
    trap.given = false;
    trap.client = client;
    trap.produce = produce;
    trap.owner->coordinator->free_at_us = trap.until_us;
    sim_fault_struck(world, SIM_FAULT_DELETED_UNHEARD);
    sim_trace(world, "trap: %s does not hear that stream %u is deleted until %llu; %s has a copy",
              trap.owner->name, stream, (unsigned long long)trap.until_us, trap.backup->name);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
    return false;
}
