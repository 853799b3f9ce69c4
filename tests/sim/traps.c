/* SPDX-License-Identifier: Apache-2.0 */
/* Traps: faults of several parts, each set for one moment, in one cluster seed of six. The traps have a generator of
 * their own, so that all other seeds stay what they were.
 *
 * LATE_WORD: a node is killed and is back at once, so that all voters are there. The leader is cut off as soon as it
 * has asked for the entry that gives the dead node's logs to other nodes. Another leader decides, and is obeyed for a
 * while; then the old leader asks again, before it knows that it was called dead.
 *
 * COMMIT_LOST: disks stand still until more commits of a group come while a commit is on its way. As soon as this
 * commit is acked the later commits go out. Disks stand still again, all machines lose their power, and the group's
 * members start anew: they begin at the offsets that the group has committed.
 *
 * DAMAGED_END: all machines lose their power. On the disk that rots (damage.c) bits flip in the last bytes of open
 * segments, and the machine with the other copy of these bytes stays away for seconds. Recovery must wait for this
 * machine. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "groups/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE =
        100, /* of those that can't have DAMAGED_END: these are few, and all have it */
    GAP_US_MAX = 1000 * 1000,
    LOOK_US = 150,
    LOOK_US_MAX = 2000 * 1000,
    BACK_US_MAX = 5 * 1000,
    /* A silent leader is noticed after 160 ms; connections are given up after 390. */
    CUT_US_LEAST = 180 * 1000,
    CUT_US_MAX = 450 * 1000,
    STALL_US = 20 * 1000,
    AWAY_US_MAX = 6000 * 1000,
    ENDS_MAX = 256,
    FLIPS_MAX = 16,
    END_BYTES = 200,
    CLIENTS_MAX = 60, /* where there have been so many, members are not started anew any more */
};

struct trap_end {
    unsigned other; /* the machine that has it, too */
    char path[32];
    uint64_t offset; /* of the byte in which a bit flips */
};

enum trap_kind { LATE_WORD, COMMIT_LOST, DAMAGED_END };

struct sim_traps {
    struct scenario *scenario;
    struct sim_rng rng;
    enum trap_kind kind;
    bool looking, delayed;
    uint64_t until_us;
    /* Of this one commits waited for another's ack, when it stood at `acked`, in `process`. */
    const struct leat_groups *groups;
    uint64_t acked;
    struct sim_process *process;
};

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node;
}

static void die(struct sim_server *server, enum sim_death death, uint64_t away_us_max)
{
    if (!server->process || !server->process->alive) return;
    server->away_us_max = away_us_max;
    death = sim_death_of(server, death);
    sim_fault_struck(server->scenario->world,
                     death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    sim_process_die(server->process, death);
}

/* ---- LATE_WORD ---- */

/* An entry of recovery is on its way, and not applied yet. */
static bool commits(const struct sim_server *server)
{
    const struct leat_coordinator *coordinator = leat_node_coordinator(server->node);
    return coordinator && leat_coordinator_see(coordinator).commits;
}

static void cut_off(struct sim_traps *traps, const struct sim_server *server)
{
    struct scenario *scenario = traps->scenario;
    struct sim_world *world = scenario->world;
    uint64_t until_us = world->now_us + sim_rng_between(&traps->rng, CUT_US_LEAST, CUT_US_MAX);
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != server) {
            sim_net_cut(world, server->name, scenario->servers[i].name, until_us);
            sim_net_cut(world, scenario->servers[i].name, server->name, until_us);
        }
    sim_fault_struck(world, SIM_FAULT_LATE_WORD);
    sim_trace(world, "trap: %s is cut off until %llu", server->name, (unsigned long long)until_us);
}

/* ---- COMMIT_LOST ---- */

static void member_anew(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    struct scenario *scenario = client->scenario;
    if (scenario->faults_over || !client->process->alive || client->given_up ||
        scenario->client_count >= CLIENTS_MAX)
        return;
    (void)sim_client_start(scenario, client->kind, client->stream, client->index);
    sim_client_kill(client);
    (void)world;
}

static void power_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_traps *traps = event->a;
    struct scenario *scenario = traps->scenario;
    if (scenario->faults_over) return;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_MEMBER)
            sim_world_at(world, world->now_us + sim_rng_between(&traps->rng, 1000, 20000),
                         member_anew, client);
    }
    for (unsigned i = 0; i < scenario->server_count; i++)
        die(&scenario->servers[i], SIM_DEATH_POWER, 0);
}

static void disks_stall(struct sim_traps *traps, uint64_t for_us)
{
    struct scenario *scenario = traps->scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_disk_stall(scenario->servers[i].disk, scenario->world->now_us + for_us);
}

static bool groups_struck(struct sim_traps *traps, struct sim_server *server,
                          const struct leat_groups *groups)
{
    struct sim_world *world = traps->scenario->world;
    struct leat_groups_seen seen;
    leat_groups_see(groups, &seen);
    if (traps->groups == groups && traps->process == server->process && seen.acked > traps->acked) {
        disks_stall(traps, STALL_US);
        sim_fault_struck(world, SIM_FAULT_COMMIT_LOST);
        sim_trace(world, "trap: commits of a set were acked, others are on their way");
        sim_world_at(world, world->now_us + sim_rng_between(&traps->rng, 300, 1500), power_due,
                     traps);
        return true;
    }
    if (!seen.in_flight || !seen.waits) return false;
    if (!traps->delayed) /* others are to come meanwhile */
        disks_stall(traps, sim_rng_between(&traps->rng, 5000, 40000));
    traps->delayed = true;
    if (!seen.gathers) return false;
    traps->groups = groups;
    traps->acked = seen.acked;
    traps->process = server->process;
    return false;
}

static bool homes_struck(struct sim_traps *traps, struct sim_server *server)
{
    struct leat_partition_seen at = {0};
    while (leat_node_partition_next(server->node, &at))
        if (at.groups && groups_struck(traps, server, at.groups)) return true;
    return false;
}

/* ---- DAMAGED_END ---- */

/* The bytes of an open segment that are durably in its file; 0: the trap does not use this segment. */
static uint32_t open_bytes(const struct leat_store_seen *at)
{
    const struct leat_segment *seg = at->seg;
    if (!seg || seg->state != LEAT_SEGMENT_OPEN || at->shares_place || !seg->file ||
        seg->durability != LEAT_DURABILITY_DISK || seg->incomplete)
        return 0;
    return at->in_file_bytes > END_BYTES ? at->in_file_bytes : 0;
}

/* The other machines that have the segment, one bit each. */
static unsigned elsewhere(const struct sim_server *victim, const struct leat_segment *seg)
{
    const struct scenario *scenario = victim->scenario;
    unsigned found = 0;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (server == victim || !lives(server)) continue;
        struct leat_store_seen at = {0};
        while (leat_store_see_next(leat_node_store(server->node), &at))
            if (at.seg && at.seg->id.v == seg->id.v && leat_log_ref_equal(at.seg->log, seg->log))
                found |= 1u << i;
    }
    return found;
}

/* The ends of the open segments there and on one other machine, the same machine for all ends: the machine with
 * most. */
static unsigned ends_find(struct sim_traps *traps, const struct sim_server *victim,
                          struct trap_end *ends, unsigned *out_away)
{
    struct leat_store_seen at = {0};
    unsigned count = 0, with[SIM_SERVERS_MAX] = {0}, kept = 0;
    while (count < ENDS_MAX && leat_store_see_next(leat_node_store(victim->node), &at)) {
        uint32_t bytes = open_bytes(&at);
        if (bytes == 0) continue;
        struct trap_end *end = &ends[count];
        unsigned others = elsewhere(victim, at.seg);
        for (end->other = 0; end->other < SIM_SERVERS_MAX && others != 1u << end->other;)
            end->other++;
        if (end->other == SIM_SERVERS_MAX) continue;
        with[end->other]++;
        snprintf(end->path, sizeof end->path, "store/%u", at.seg->file_number);
        end->offset = at.seg->file_offset + bytes - 1 - sim_rng_below(&traps->rng, END_BYTES);
        count++;
    }
    *out_away = 0;
    for (unsigned i = 0; i < SIM_SERVERS_MAX; i++)
        if (with[i] > with[*out_away]) *out_away = i;
    for (unsigned i = 0; i < count; i++)
        if (ends[i].other == *out_away) ends[kept++] = ends[i];
    return kept;
}

static void ends_flip(struct sim_traps *traps, struct sim_server *server,
                      const struct trap_end *ends, unsigned count)
{
    for (unsigned i = 0; i < FLIPS_MAX; i++) {
        const struct trap_end *end = &ends[sim_rng_below(&traps->rng, count)];
        unsigned bit = (unsigned)sim_rng_below(&traps->rng, 8);
        if (!sim_disk_flip(server->disk, end->path, end->offset, bit)) continue;
        sim_fault_struck(traps->scenario->world, SIM_FAULT_FLIP);
        sim_trace(traps->scenario->world, "trap: %s: bit %u of byte %llu of %s flips", server->name,
                  bit, (unsigned long long)end->offset, end->path);
        server->corrupt = true;
    }
}

static void ends_damage(struct sim_traps *traps)
{
    struct scenario *scenario = traps->scenario;
    struct sim_server *victim = scenario->victim;
    struct trap_end ends[ENDS_MAX];
    unsigned away;
    if (!lives(victim) || victim->corrupt || victim->damage != SIM_DAMAGE_NONE) return;
    unsigned count = ends_find(traps, victim, ends, &away);
    if (count == 0) return;
    for (unsigned i = 0; i < scenario->server_count; i++)
        die(&scenario->servers[i], SIM_DEATH_POWER, i == away ? AWAY_US_MAX : 0);
    ends_flip(traps, victim, ends, count);
    if (victim->corrupt) sim_fault_struck(scenario->world, SIM_FAULT_DAMAGED_END);
}

/* ---- when ---- */

static bool struck(struct sim_traps *traps, struct sim_server *server)
{
    if (traps->kind == COMMIT_LOST) return homes_struck(traps, server);
    if (!commits(server)) return false;
    for (unsigned i = 0; i < traps->scenario->server_count;
         i++) /* without it, too, most are there */
        if (!traps->scenario->servers[i].process->alive) return false;
    cut_off(traps, server);
    return true;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_traps *traps = event->a;
    struct scenario *scenario = traps->scenario;
    bool over = scenario->faults_over || world->now_us >= traps->until_us;
    for (unsigned i = 0; i < scenario->server_count && !over; i++)
        over = lives(&scenario->servers[i]) && struck(traps, &scenario->servers[i]);
    if (over)
        traps->looking = false;
    else
        sim_world_at(world, world->now_us + LOOK_US, look, traps);
}

static void set_up(struct sim_traps *traps)
{
    struct scenario *scenario = traps->scenario;
    struct sim_world *world = scenario->world;
    sim_trace(world, "trap %u", (unsigned)traps->kind);
    if (traps->kind == DAMAGED_END) {
        ends_damage(traps);
        return;
    }
    if (traps->kind == LATE_WORD)
        die(&scenario->servers[sim_rng_below(&traps->rng, scenario->server_count)], SIM_DEATH_KILL,
            BACK_US_MAX);
    traps->groups = NULL;
    traps->delayed = false;
    traps->looking = true;
    traps->until_us = world->now_us + LOOK_US_MAX;
    sim_world_at(world, world->now_us + LOOK_US, look, traps);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct sim_traps *traps = event->a;
    if (traps->scenario->faults_over) return;
    if (!traps->looking) set_up(traps);
    sim_world_at(world, world->now_us + sim_rng_between(&traps->rng, 100000, GAP_US_MAX), due,
                 traps);
}

void sim_traps_start(struct scenario *scenario)
{
    static struct sim_traps traps; /* of the one scenario of a process */
    traps = (struct sim_traps){.scenario = scenario};
    sim_rng_init(&traps.rng, scenario->world->seed, "traps");
    bool damages = scenario->victim && scenario->power_cuts && !scenario->closed_rot;
    bool chosen = sim_rng_chance(&traps.rng, SEEDS_PER_MILLE);
    if (!damages && !chosen) return;
    traps.kind = damages ? DAMAGED_END : LATE_WORD;
    bool commit = sim_rng_chance(&traps.rng, 500);
    if (!damages && scenario->power_cuts && commit) traps.kind = COMMIT_LOST;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&traps.rng, GAP_US_MAX),
                 due, &traps);
}
