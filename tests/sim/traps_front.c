/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (trap.c) for a log whose front is not known, in some cluster seeds in which nothing else goes wrong. There is
 * one log per stream, and one of these logs is brought to where retention could give up segments that the log does not
 * know of:
 * 1. The owner is told late that a segment is closed on all its copies, and dies before that: the next segment has only
 * begun. Another owner closes this next segment, without a record, and begins more segments.
 * 2. When these have records, the second owner dies, too, and nobody appends. The third owner takes the last segment,
 * and then the earlier segments, one by one. When it has the segment without a record, and not the segment before that,
 * all nodes are killed.
 * 3. The third owner has the log again, of these segments, and its disk answers no read: for longer than it takes until
 * retention looks, the owner does not know where the log begins. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 30,
    BEGIN_US = 500 * 1000,
    LOOK_US = 100,
    DELAY_US = 8000, /* of what an owner is told */
    PAUSE_US = 1000, /* again and again: what is paused goes on as soon as a step is given up */
    AWAY_US = 500 * 1000,
    CLOSED_US = 3000 * 1000, /* for each step, and then from the beginning */
    TAKEN_US = 2500 * 1000,
    ADOPTED_US = 4000 * 1000,
    STALL_US = 1300 * 1000, /* logs are cared for once a second */
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { BEGUN, CLOSED, TAKEN, ADOPTED, STALLED } step;
    uint64_t empty, until_us; /* empty: the segment without a record */
    struct sim_server *slow;  /* what it is told is late */
} trap;                       /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static const struct leat_log *log_at(const struct sim_server *server)
{
    struct leat_log_ref ref = {trap.scenario->streams[0].id, 0, 0};
    struct leat_partition_seen partition;
    if (!server->process || !server->process->alive || !server->node) return NULL;
    bool has = leat_node_partition_at(server->node, ref, &partition);
    return has && !partition.going ? partition.log : NULL;
}

static void step_to(unsigned step, uint64_t for_us)
{
    struct sim_world *world = trap.scenario->world;
    trap.step = step;
    trap.until_us = world->now_us + for_us;
    sim_trace(world, "trap: step %u, segment %llu", step, (unsigned long long)trap.empty);
}

static void die(struct sim_server *server, uint64_t away_us)
{
    if (!server->process || !server->process->alive) return;
    sim_fault_struck(trap.scenario->world, SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    sim_server_boot_later(server, away_us + sim_rng_below(&trap.rng, away_us));
}

static void nobody_appends(uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        bool writes = client->kind == SIM_CLIENT_PRODUCER || client->kind == SIM_CLIENT_RAW ||
                      client->kind == SIM_CLIENT_KAFKA_PRODUCER;
        if (writes) sim_process_pause(client->process, until_us);
    }
}

/* The segment without records is the first of the log here, and another segment follows. unknown: the log has yet to
 * read where it begins. */
static bool begins_with_it(const struct leat_log *log, bool unknown)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    if (seen.segment_count < 2 || seen.head || seen.front_unknown != unknown) return false;
    struct leat_log_segment_seen first = leat_log_see_segment(log, 0);
    return first.closed && !first.dropping && first.seg->id.v == trap.empty;
}

static void delay_from(struct sim_server *server)
{
    struct scenario *scenario = trap.scenario;
    if (trap.slow == server) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const char *name = scenario->servers[i].name;
        if (trap.slow) sim_net_delay(scenario->world, name, trap.slow->name, 0);
        if (server) sim_net_delay(scenario->world, name, server->name, DELAY_US);
    }
    trap.slow = server;
}

/* ---- the steps ---- */

static bool all_live(void)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++)
        if (!lives(&trap.scenario->servers[i])) return false;
    return true;
}

static const struct sim_server *server_of(uint64_t incarnation)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++) {
        const struct sim_server *server = &trap.scenario->servers[i];
        if (lives(server) && leat_node_incarnation(server->node) == incarnation) return server;
    }
    return NULL;
}

static const struct leat_segment *copy_of(const struct leat_set_seen *set, unsigned i)
{
    const struct leat_copy_seen copy = leat_copy_see(set, i);
    const struct sim_server *server = server_of(copy.incarnation);
    struct leat_replica_seen rep;
    if (!server || !leat_backup_see(leat_node_backup(server->node), copy.handle, &rep)) return NULL;
    return !rep.damaged && !rep.drop_wanted ? rep.seg : NULL;
}

static bool is_closed(const struct leat_set_seen *set)
{
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_segment *seg = copy_of(set, i);
        struct leat_scan scan;
        if (!seg || !seg->buffer) return false;
        leat_scan_segment(seg->buffer, seg->capacity, &scan);
        if (!scan.closed) return false;
    }
    return set->copy_count > 0;
}

/* Wherever copies are, its head has the start entry alone, and the one before it is closed, of which the owner does
 * not know yet: so there is nothing else on its way. */
static bool has_only_begun(const struct leat_log_seen *log)
{
    const struct leat_segment *head = log->head;
    struct leat_set_seen set, before;
    struct leat_scan scan;
    if (!head || !leat_set_see_of(head, &set) || !set.started || set.copy_count == 0 || !log->old ||
        !leat_set_see_before(&set, &before) || !is_closed(&before))
        return false;
    for (unsigned i = 0; i < set.copy_count; i++) {
        const struct leat_segment *seg = copy_of(&set, i);
        if (!seg || !seg->buffer) return false;
        leat_scan_segment(seg->buffer, seg->capacity, &scan);
        if (!scan.started || !leat_scan_only_start(&scan)) return false;
    }
    return true;
}

static void begun(struct sim_server *server, const struct leat_log *log)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    if (!all_live() || !seen.opened || !seen.head || seen.head->id.v == 0 || !has_only_begun(&seen))
        return;
    trap.empty = seen.head->id.v;
    step_to(CLOSED, CLOSED_US);
    die(server, AWAY_US);
}

static void closed(struct sim_server *server, const struct leat_log *log)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    if (!all_live() || !seen.head || seen.head->id.v <= trap.empty || seen.old ||
        seen.head_records == 0 || !seen.head_acked)
        return;
    struct leat_log_segment_seen empty = leat_log_see_id(log, trap.empty);
    if (!empty.closed || empty.seg->next_offset != empty.seg->base_offset) {
        step_to(BEGUN, 0);
        return;
    }
    step_to(TAKEN, TAKEN_US);
    die(server, AWAY_US);
}

static void taken(const struct leat_log *log)
{
    if (!begins_with_it(log, false)) return;
    step_to(ADOPTED, ADOPTED_US);
    for (unsigned i = 0; i < trap.scenario->server_count; i++)
        die(&trap.scenario->servers[i], 10 * 1000);
}

/* A read that has begun is not late any more: so none ends from the node's start on. */
static void reads_stand_still(void)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_disk_stall_reads(scenario->servers[i].disk, scenario->world->now_us + STALL_US);
}

static void adopted(const struct leat_log *log)
{
    struct sim_world *world = trap.scenario->world;
    if (!begins_with_it(log, true)) return;
    sim_fault_struck(world, SIM_FAULT_FRONT);
    step_to(STALLED, STALL_US);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        delay_from(NULL);
        return;
    }
    if (trap.step != BEGUN && world->now_us >= trap.until_us) step_to(BEGUN, 0);
    if (trap.step >= TAKEN) nobody_appends(world->now_us + PAUSE_US);
    unsigned before = trap.step;
    for (unsigned i = 0; i < scenario->server_count && trap.step == before; i++) {
        struct sim_server *server = &scenario->servers[i];
        const struct leat_log *log = log_at(server);
        if (!log) continue;
        delay_from(trap.step == BEGUN ? server : NULL);
        if (trap.step == BEGUN)
            begun(server, log);
        else if (trap.step == CLOSED)
            closed(server, log);
        else if (trap.step == TAKEN)
            taken(log);
        else if (trap.step == ADOPTED)
            adopted(log);
    }
    if (before == ADOPTED) reads_stand_still();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

bool sim_trap_front_choose(struct scenario *scenario)
{
    memset(&trap, 0, sizeof trap);
    trap.scenario = scenario;
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-front");
    if (!sim_rng_chance(&trap.rng, SEEDS_PER_MILLE) || scenario->server_count > SIM_VOTERS_MAX ||
        scenario->victim)
        return false;
    scenario->move_per_mille = 0;
    scenario->with_trims = false;
    /* One-sided writes end unasked. */
    scenario->rmem_kinds = 0;
    scenario->transport = LEAT_RMEM_RPC;
    return true;
}

void sim_trap_front_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}
