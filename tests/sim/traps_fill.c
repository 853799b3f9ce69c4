/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for copies of closed segments that are being made, in some of the cluster seeds, in place of the
 * scheduled faults. There is a fourth machine, streams have two copies or three, and machines have verbs. A node is
 * killed, and its segments are soon copied elsewhere. The trap waits for a write by which such a copy gets bytes, and
 * then does one of these:
 *
 * TRIMMED: the write takes up to 0.7 s (verbs), and the log is trimmed to its end: the segment goes meanwhile.
 *
 * MOVED: the write takes as long, and the log moves to the very node that gets the copy: the new owner does not know of
 * the write.
 *
 * CUT: the write takes as long, and the session with the backup ends; in the next session the owner says what lies
 * there. This may be any write.
 *
 * POWER: with its last bytes on their way the node loses its power while it calls the copy closed. The next start must
 * not call the copy whole before it is closed: the copy would be taken for the end of its log. */
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 60,
    GAP_US_MAX = 500 * 1000,
    AWAY_US_MAX = 500 * 1000,
    GRACE_US_LEAST = 10 * 1000,
    GRACE_US_MAX = 50 * 1000,
    REST_US_MAX = 60 * 1000, /* from one fault to the next */
    HOLD_US_LEAST = 350 * 1000,
    HOLD_US_MAX = 700 * 1000,
    LOOK_US = 200,
    LOOK_US_MAX = 4000 * 1000,
    OPS_MAX = 8, /* of the disk, from when the last bytes have arrived */
};

enum trap_kind { TRIMMED, MOVED, CUT, POWER };

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum trap_kind kind;
    bool armed;
    /* POWER: the copy, its row on that node's disk, until when its next start is waited for; 0: it is not. */
    struct sim_server *server;
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_epoch epoch;
    uint32_t row;
    unsigned boots;
    uint64_t until_us;
    uint64_t held_until_us; /* a write: nobody is killed before */
} trap;                     /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node) && leat_node_backup(server->node);
}

static struct sim_server *server_named(const char *name)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (lives(&scenario->servers[i]) && strcmp(scenario->servers[i].name, name) == 0)
            return &scenario->servers[i];
    return NULL;
}

/* ---- POWER ---- */

/* Has the node found the copy as an open replica, though it was closed nowhere but at its owner? */
static void found_check(const struct sim_server *server)
{
    const struct leat_backup *backup = leat_node_backup(server->node);
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup, &rep)) {
        const struct leat_segment *seg = rep.seg;
        if (!seg || seg->row != trap.row || seg->id.v != trap.segment.v ||
            !leat_log_ref_equal(seg->log, trap.log) || seg->epoch.v != trap.epoch.v)
            continue;
        sim_trace(trap.scenario->world, "trap: the copy is found in state %u, %s", seg->state,
                  seg->incomplete ? "a part" : "whole");
        if (seg->incomplete || seg->state == LEAT_SEGMENT_CLOSED) continue;
        sim_fail(trap.scenario->world,
                 "A1 lost-write: %s lost its power while a copy of segment %llu of log id "
                 "%u/%u/%u was made there, which is closed, and finds it open and whole: a mark",
                 server->name, (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet,
                 seg->log.log);
    }
}

static void found_look(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = trap.server;
    if (server->boots != trap.boots && lives(server)) {
        trap.until_us = 0;
        found_check(server);
        return;
    }
    if (world->now_us < trap.until_us)
        sim_world_at(world, world->now_us + LOOK_US, found_look, NULL);
    (void)event;
}

static void on_cut(void *arg)
{
    struct sim_server *server = arg;
    struct sim_world *world = server->scenario->world;
    sim_fault_struck(world, SIM_FAULT_POWER_OP);
    trap.boots = server->boots;
    trap.until_us = world->now_us + LOOK_US_MAX;
    sim_world_at(world, world->now_us + LOOK_US, found_look, NULL);
}

static void aim(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!lives(server) || trap.scenario->faults_over) return;
    sim_disk_aim(server->disk, sim_rng_between(&trap.rng, 1, OPS_MAX),
                 (enum sim_cut_phase)sim_rng_below(&trap.rng, 3), on_cut, server);
    (void)world;
}

/* end: how far the write reaches. */
static bool power_strikes(const struct leat_copy_seen *copy, const struct leat_segment *seg,
                          uint64_t end, struct sim_server *server)
{
    struct sim_world *world = trap.scenario->world;
    const struct leat_backup *backup = leat_node_backup(server->node);
    struct leat_replica_seen rep;
    if (sim_death_of(server, SIM_DEATH_POWER) != SIM_DEATH_POWER ||
        !leat_backup_see(backup, copy->handle, &rep) || !rep.seg)
        return false;
    if (world->now_us < trap.until_us) return false; /* one at a time */
    if (end < seg->prefix_id.bytes) return false;
    trap.server = server;
    trap.log = seg->log;
    trap.segment = seg->id;
    trap.epoch = seg->epoch;
    trap.row = rep.seg->row;
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 50, 300), aim, server);
    return true;
}

/* ---- TRIMMED, MOVED ---- */

static bool stream_of(const struct leat_segment *seg, struct leat_log_ref *out_log)
{
    *out_log = seg->log;
    return sim_stream_of(trap.scenario, seg->log.stream, &out_log->stream);
}

/* Appends wait for what was written before them to the same node. */
static bool is_waited_for(const struct leat_copy_seen *copy, const struct leat_set_seen *of)
{
    const struct leat_primary_log_seen own = leat_primary_log_see(of->log);
    const struct leat_primary_log *log = NULL;
    while ((log = leat_primary_log_next(own.primary, log))) {
        const struct leat_log_ref ref = leat_primary_log_see(log).ref;
        struct leat_set_seen set = {0};
        if (ref.stream != own.ref.stream || ref.streamlet != own.ref.streamlet) continue;
        while (leat_set_see_next(log, false, &set))
            for (unsigned i = 0; i < set.copy_count; i++) {
                const struct leat_copy_seen other = leat_copy_see(&set, i);
                if (other.peer == copy->peer && other.at != copy->at) return true;
            }
    }
    return false;
}

static bool trim_strikes(const struct leat_copy_seen *copy, const struct leat_set_seen *set)
{
    struct scenario *scenario = trap.scenario;
    struct leat_log_ref log;
    if (!scenario->trimmer || is_waited_for(copy, set) || !stream_of(set->seg, &log)) return false;
    if (check_acked_end(scenario->check, log) < set->seg->next_offset) return false;
    scenario->trim_wish = log;
    scenario->trim_wished = true;
    return true;
}

static bool move_strikes(const struct leat_copy_seen *copy, const struct leat_set_seen *set,
                         struct sim_server *server)
{
    struct leat_log_ref log;
    if (is_waited_for(copy, set) || !stream_of(set->seg, &log)) return false;
    trap.scenario->wish =
        (struct sim_wish){.stream = log.stream, .streamlet = log.streamlet, .to = server};
    return true;
}

static void cut_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!trap.scenario->faults_over && lives(server)) (void)sim_net_reset(server->process, 1000);
    (void)world;
}

static bool cut_strikes(struct sim_server *server)
{
    struct sim_world *world = trap.scenario->world;
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 50, 2000), cut_due, server);
    return true;
}

/* ---- when ---- */

static void arm(struct sim_world *world, struct sim_event *event)
{
    trap.armed = true;
    trap.kind =
        sim_rng_chance(&trap.rng, 350) ? POWER : (enum trap_kind)sim_rng_below(&trap.rng, POWER);
    (void)world, (void)event;
}

/* Asked of each write: how much longer does it take? */
static uint64_t on_write(const struct leat_rmem_write *it, enum leat_rmem_kind kind)
{
    struct leat_copy_seen copy;
    struct leat_set_seen set;
    uint64_t end;
    if (!trap.armed || trap.scenario->faults_over || !leat_write_see(it, &copy, &set, &end) ||
        !set.seg || set.dropping)
        return 0;
    if (!(set.closed && copy.incomplete) && trap.kind != CUT) return 0;
    struct sim_server *server = server_named(copy.node);
    if (!server) return 0;
    bool strikes = false;
    if (trap.kind == POWER)
        strikes = power_strikes(&copy, set.seg, end, server);
    else if (kind == LEAT_RMEM_VERBS)
        strikes = trap.kind == TRIMMED ? trim_strikes(&copy, &set)
                  : trap.kind == MOVED ? move_strikes(&copy, &set, server)
                                       : cut_strikes(server);
    if (!strikes) return 0;
    struct sim_world *world = trap.scenario->world;
    trap.armed = false;
    sim_world_at(world, world->now_us + sim_rng_below(&trap.rng, REST_US_MAX), arm, NULL);
    sim_fault_struck(world, SIM_FAULT_AMID_FILL);
    sim_trace(world, "trap %u: a copy of segment %llu of log id %u/%u/%u at %s", trap.kind,
              (unsigned long long)set.id.v, set.seg->log.stream, set.seg->log.streamlet,
              set.seg->log.log, server->name);
    if (trap.kind == POWER) return 0;
    uint64_t hold_us = sim_rng_between(&trap.rng, HOLD_US_LEAST, HOLD_US_MAX);
    trap.held_until_us = world->now_us + hold_us;
    return hold_us;
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&trap.rng, scenario->server_count)];
    if (lives(server) && world->now_us >= trap.held_until_us) {
        server->away_us_max = AWAY_US_MAX;
        sim_fault_struck(world, SIM_FAULT_KILL);
        sim_process_die(server->process, SIM_DEATH_KILL);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 150 * 1000, GAP_US_MAX), due,
                 scenario);
}

bool sim_trap_fill_choose(uint64_t seed)
{
    sim_rng_init(&trap.rng, seed, "trap-fill");
    return sim_rng_chance(&trap.rng, SEEDS_PER_MILLE);
}

void sim_trap_fill_set(struct scenario *scenario)
{
    scenario->transport = LEAT_RMEM_VERBS;
    scenario->rmem_kinds = 1u << LEAT_RMEM_VERBS;
    scenario->with_trims = true;
    scenario->power_cuts = true;
    scenario->trims_on_wish = true;
    scenario->value_bytes = 1600;
    scenario->grace_us = sim_rng_between(&trap.rng, GRACE_US_LEAST, GRACE_US_MAX);
}

void sim_trap_fill_start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    trap.scenario = scenario;
    trap.until_us = trap.held_until_us = 0;
    arm(world, NULL);
    world->rmem_hold_us = on_write;
    sim_world_at(world, world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX), due, scenario);
    sim_trap_piece_start(scenario);
}
