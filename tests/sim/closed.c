/* SPDX-License-Identifier: Apache-2.0 */
/* Closed segments that rot on the disk of one machine, while its node runs or just before the node dies, where other
 * machines have whole copies of the segments: bits flip, a sector becomes another, a file loses its end. Where nodes
 * scrub, the copy of a second machine may rot as well, so long as a third copy is whole. Nobody gives these machines
 * another disk, and nobody accepts any loss: each reader is to get every record, and where the store looks for damage
 * by itself all copies are to be equal in the end. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "store/probe.h"
#include "store/row.h"
#include "tests/sim/scenario.h"

enum {
    CANDIDATES_MAX = 512,
    AT_A_TIME_MAX = 3,
    GAP_US_MAX = 1500 * 1000,
    TRUNCATE_PER_MILLE = 400, /* where nothing lies behind */
    SECTOR_PER_MILLE = 300,
    DEATH_PER_MILLE = 300,
    TWO_PER_MILLE = 400,
    OWN_PER_MILLE = 800, /* ... where repairs are struck: only an owner repairs */
    FORGOTTEN_PER_MILLE =
        600, /* of the faults: memory has nothing of what is struck, other nodes have */
    REPAIR_PER_MILLE = 600, /* of the writes and flushes of a repair */
    ROWS_PER_MILLE = 50,    /* of the seeds of clusters without another kind of damage */
    REFUSED_LATE_MAX = 3,   /* writes of a seed, when all else is healed */
    RESTART_US_MAX = 8 * 1000 * 1000,
    EQUAL_US_MAX = 120 * 1000 * 1000,
};

static struct leat_store *store_of(const struct sim_server *server)
{
    bool lives = server->ready && server->process && server->process->alive && server->node;
    return lives ? leat_node_store(server->node) : NULL;
}

/* The next closed segment that is durably in its file: it is there, whenever the power goes. */
static bool closed_next(const struct leat_store *store, struct leat_store_seen *at)
{
    while (leat_store_see_next(store, at)) {
        const struct leat_segment *seg = at->seg;
        if (!seg || at->written != LEAT_SEGMENT_CLOSED || !at->written_flushed) continue;
        if (seg->state == LEAT_SEGMENT_CLOSED && !seg->incomplete) return true;
    }
    return false;
}

/* Whether it was repaired since is not asked: it is left alone. */
static bool was_struck(const struct sim_server *server, const struct leat_segment *seg)
{
    const struct scenario *scenario = server->scenario;
    for (unsigned i = 0; i < scenario->rot_count; i++) {
        const struct sim_rot *rot = &scenario->rots[i];
        if (rot->server == server && rot->segment == seg->id.v &&
            leat_log_ref_equal(rot->log, seg->log))
            return true;
    }
    return false;
}

static bool goes(const struct leat_store_seen *at)
{
    const struct leat_segment *seg = at->seg;
    struct leat_replica_seen rep;
    if (at->goes || seg->owner_actor >= LEAT_CORES_MAX) return true;
    return seg->log_pointer == NULL ||
           (leat_backup_see_segment(seg, &rep) && (rep.damaged || rep.dropping || rep.drop_wanted));
}

/* A whole copy of the segment on a machine other than these two. A copy that was struck is not whole. */
static const struct leat_segment *held_elsewhere(struct scenario *scenario,
                                                 const struct leat_segment *seg,
                                                 const struct sim_server *but,
                                                 const struct sim_server *nor,
                                                 struct sim_server **out_server)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        struct leat_store_seen at = {0};
        if (server == but || server == nor) continue;
        while (closed_next(store_of(server), &at)) {
            const struct leat_segment *other = at.seg;
            if (goes(&at) || other->id.v != seg->id.v ||
                !leat_log_ref_equal(other->log, seg->log) || was_struck(server, other))
                continue;
            if (other->prefix_id.bytes != seg->prefix_id.bytes ||
                other->prefix_id.crc != seg->prefix_id.crc)
                continue;
            *out_server = server;
            return other;
        }
    }
    return NULL;
}

/* This machine needs no other segment that lies behind this segment in the file. */
static bool is_last_in_file(const struct leat_store *store, const struct leat_segment *seg)
{
    struct leat_store_seen at = {0};
    while (leat_store_see_next(store, &at))
        if (at.seg && at.seg->file == seg->file && at.seg->file_offset > seg->file_offset)
            return false;
    return true;
}

static void flip(struct sim_server *server, const char *path, uint64_t at, unsigned bits)
{
    for (unsigned bit = 0; bit < 8; bit++)
        if (bits & 1u << bit) (void)sim_disk_flip(server->disk, path, at, bit);
}

/* The machine's memory may have the bytes where the segment's buffer was, until another segment gets the place. */
void sim_closed_forget(const struct leat_store *store, const struct leat_segment *seg)
{
    uint8_t *left = leat_store_left_at(store, seg);
    if (left) memset(left, 0, LEAT_ENTRY_HEADER_BYTES);
}

/* NULL: too many were struck. */
static struct sim_rot *rot_note(struct sim_server *server, const struct leat_segment *seg,
                                uint32_t at)
{
    struct scenario *scenario = server->scenario;
    if (scenario->rot_count == SIM_ROTS_MAX) return NULL;
    struct sim_rot *rot = &scenario->rots[scenario->rot_count++];
    *rot = (struct sim_rot){
        .server = server, .log = seg->log, .segment = seg->id.v, .offset = seg->file_offset + at};
    snprintf(rot->path, sizeof rot->path, "store/%u", seg->file_number);
    (void)sim_disk_peek(server->disk, rot->path, rot->offset, &rot->byte, 1);
    return rot;
}

const struct leat_segment *sim_closed_find(struct scenario *scenario, struct leat_log_ref log,
                                           uint64_t segment)
{
    struct leat_store_seen at = {0};
    struct sim_server *other;
    if (!scenario->closed_rot) return NULL;
    while (closed_next(store_of(scenario->victim), &at)) {
        const struct leat_segment *seg = at.seg;
        if (seg->id.v == segment && leat_log_ref_equal(seg->log, log) && !at.shares_place &&
            seg->role == LEAT_SEGMENT_OWN && !seg->buffer && !was_struck(scenario->victim, seg) &&
            held_elsewhere(scenario, seg, scenario->victim, NULL, &other))
            return seg;
    }
    return NULL;
}

void sim_closed_flip(struct scenario *scenario, const struct leat_segment *seg, uint32_t at,
                     unsigned bit)
{
    struct sim_server *server = scenario->victim;
    const struct sim_rot *rot = rot_note(server, seg, at);
    if (!rot) return;
    sim_closed_forget(store_of(server), seg);
    flip(server, rot->path, rot->offset, 1u << bit);
    sim_fault_struck(scenario->world, SIM_FAULT_CLOSED_OWN);
}

static void rot_one(struct sim_server *server, const struct leat_segment *seg)
{
    struct scenario *scenario = server->scenario;
    uint32_t at = (uint32_t)sim_rng_below(&scenario->closed, seg->prefix_id.bytes);
    uint64_t offset = seg->file_offset + at;
    const char *what = "a bit";
    const struct sim_rot *rot = rot_note(server, seg, at);
    if (!rot) return;
    const char *path = rot->path;
    if (is_last_in_file(leat_node_store(server->node), seg) &&
        sim_rng_chance(&scenario->closed, TRUNCATE_PER_MILLE)) {
        (void)sim_disk_cut_end(server->disk, path, offset);
        sim_fault_struck(scenario->world, SIM_FAULT_CLOSED_CUT);
        what = "the file's end";
    } else if (sim_rng_chance(&scenario->closed, SECTOR_PER_MILLE)) {
        for (uint32_t i = 0; i < 512 && at + i < seg->prefix_id.bytes; i++)
            flip(server, path, offset + i, (unsigned)sim_rng_between(&scenario->closed, 1, 255));
        what = "a sector";
    } else {
        flip(server, path, offset, 1u << sim_rng_below(&scenario->closed, 8));
    }
    sim_fault_struck(scenario->world, seg->role == LEAT_SEGMENT_REPLICA ? SIM_FAULT_CLOSED_COPY
                                                                        : SIM_FAULT_CLOSED_OWN);
    sim_trace(scenario->world,
              "%s: %s of closed segment %llu of log id %u/%u/%u (%s) is not as it was, "
              "at %u of %u",
              server->name, what, (unsigned long long)seg->id.v, seg->log.stream,
              seg->log.streamlet, seg->log.log,
              seg->role == LEAT_SEGMENT_REPLICA ? "a copy" : "its own", at, seg->prefix_id.bytes);
}

/* Its copy was struck on a machine other than these two. */
static bool struck_besides(const struct scenario *scenario, const struct leat_segment *seg,
                           const struct sim_server *second)
{
    for (unsigned i = 0; i < scenario->rot_count; i++) {
        const struct sim_rot *rot = &scenario->rots[i];
        if (rot->server != scenario->victim && rot->server != second && rot->segment == seg->id.v &&
            leat_log_ref_equal(rot->log, seg->log))
            return true;
    }
    return false;
}

/* Damage two of three copies: a single whole copy is enough, whichever copy is asked first. Never more: where a move
 * has left a fourth copy, its owner may drop the whole copy while the owner takes the others for whole. */
static void rot_two(struct scenario *scenario, const struct leat_segment *seg)
{
    struct sim_server *second, *third;
    uint32_t stream;
    rot_one(scenario->victim, seg);
    if (!scenario->scrubs || !sim_rng_chance(&scenario->closed, TWO_PER_MILLE) ||
        !sim_stream_of(scenario, seg->log.stream, &stream) ||
        scenario->streams[stream].settings.copies < 3)
        return;
    const struct leat_segment *other =
        held_elsewhere(scenario, seg, scenario->victim, NULL, &second);
    if (!other || struck_besides(scenario, seg, second)) return;
    if (held_elsewhere(scenario, seg, scenario->victim, second, &third)) rot_one(second, other);
}

void sim_closed_strike(struct scenario *scenario, unsigned wanted)
{
    const struct leat_segment *found[CANDIDATES_MAX];
    struct sim_server *server = scenario->victim, *other;
    struct leat_store_seen at = {0};
    if (!scenario->closed_rot) return;
    const struct leat_store *store = store_of(server);
    unsigned count = 0;
    bool own = scenario->repairs_struck && sim_rng_chance(&scenario->repair, OWN_PER_MILLE);
    bool forgotten = sim_rng_chance(&scenario->closed, FORGOTTEN_PER_MILLE);
    while (count < CANDIDATES_MAX && closed_next(store, &at)) {
        if (own && at.seg->role == LEAT_SEGMENT_REPLICA) continue;
        if (forgotten && at.seg->buffer && at.seg->role == LEAT_SEGMENT_OWN) continue;
        if (!at.shares_place && held_elsewhere(scenario, at.seg, server, NULL, &other))
            found[count++] = at.seg;
    }
    for (; wanted > 0 && count > 0; wanted--) {
        const struct leat_segment *seg = found[sim_rng_below(&scenario->closed, count)];
        if (forgotten) sim_closed_forget(store, seg);
        rot_two(scenario, seg);
    }
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_rng *rng = &scenario->closed;
    if (scenario->faults_over) return;
    sim_closed_strike(scenario, (unsigned)sim_rng_between(rng, 1, AT_A_TIME_MAX));
    if (store_of(scenario->victim) && sim_rng_chance(rng, DEATH_PER_MILLE))
        sim_process_die(scenario->victim->process, SIM_DEATH_KILL);
    sim_world_at(world, world->now_us + sim_rng_between(rng, 1000, GAP_US_MAX), due, scenario);
}

/* ---- and while one is written anew ---- */

static void flush_failed(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    bool same = server->process->alive && event->n == server->boots;
    if (same && !server->scenario->faults_over) sim_process_die(server->process, SIM_DEATH_KILL);
    (void)world;
}

static enum sim_amid amid_repair(void *arg, const struct leat_disk_io *io)
{
    struct sim_server *server = arg;
    struct scenario *scenario = server->scenario;
    struct sim_world *world = scenario->world;
    const struct leat_store *store = store_of(server);
    if (!store || !leat_store_io_repairs(store, io) ||
        !sim_rng_chance(&scenario->repair, REPAIR_PER_MILLE))
        return SIM_AMID_NOTHING;
    bool flush = io->kind == LEAT_DISK_SYNC;
    enum sim_amid amid =
        (enum sim_amid)sim_rng_between(&scenario->repair, SIM_AMID_ERROR, SIM_AMID_POWER);
    if (scenario->faults_over) { /* nobody starts anything anew: a refused write needs nobody */
        if (flush || scenario->refused_late == REFUSED_LATE_MAX) return SIM_AMID_NOTHING;
        scenario->refused_late++;
        amid = SIM_AMID_ERROR;
    }
    if (amid == SIM_AMID_POWER && sim_death_of(server, SIM_DEATH_POWER) != SIM_DEATH_POWER)
        amid = SIM_AMID_KILL;
    sim_fault_struck(world, amid == SIM_AMID_ERROR  ? SIM_FAULT_REPAIR_ERROR
                            : amid == SIM_AMID_KILL ? SIM_FAULT_REPAIR_KILL
                                                    : SIM_FAULT_REPAIR_POWER);
    sim_trace(world, "%s: %s amid the %s of a repair", server->name,
              amid == SIM_AMID_ERROR  ? "an error"
              : amid == SIM_AMID_KILL ? "a kill"
                                      : "the power goes",
              flush ? "flush" : "write");
    /* Nothing is written to that file any more: somebody starts the node anew, now or later. */
    if (amid == SIM_AMID_ERROR && flush)
        sim_world_at(world,
                     world->now_us + sim_rng_between(&scenario->repair, 20000, RESTART_US_MAX),
                     flush_failed, server)
            ->n = server->boots;
    return amid;
}

/* ---- rows ----
 *
 * Which bytes a segment has, and where, is said by its row alone: damaged, it names nothing. Where its neighbours
 * are there the log has a hole that only other nodes can fill. A row is read at a start, so the node's own logs
 * have that hole where it takes them back: most often after the death of all nodes. */

static bool has_own(const struct leat_store *store, struct leat_log_ref log, uint64_t segment)
{
    struct leat_store_seen at = {0};
    while (closed_next(store, &at))
        if (at.seg->role != LEAT_SEGMENT_REPLICA && at.seg->id.v == segment &&
            leat_log_ref_equal(at.seg->log, log))
            return true;
    return false;
}

static bool row_flip(struct sim_server *server)
{
    const struct leat_segment *found[CANDIDATES_MAX];
    struct leat_store_seen at = {0};
    struct scenario *scenario = server->scenario;
    struct sim_server *other;
    const struct leat_store *store = store_of(server);
    unsigned count = 0;
    uint32_t stream;
    while (count < CANDIDATES_MAX && closed_next(store, &at)) {
        const struct leat_segment *seg = at.seg;
        if (seg->role == LEAT_SEGMENT_REPLICA || at.shares_place || goes(&at)) continue;
        if (!sim_stream_of(scenario, seg->log.stream, &stream) ||
            scenario->streams[stream].settings.copies < 2)
            continue;
        if (seg->id.v > 0 && has_own(store, seg->log, seg->id.v - 1) &&
            has_own(store, seg->log, seg->id.v + 1) &&
            held_elsewhere(scenario, seg, server, NULL, &other))
            found[count++] = seg;
    }
    if (count == 0 || scenario->rot_count == SIM_ROTS_MAX) return false;
    const struct leat_segment *seg = found[sim_rng_below(&scenario->closed, count)];
    uint64_t byte = LEAT_BLOCK_BYTES + (uint64_t)seg->row * LEAT_ROW_BYTES +
                    sim_rng_below(&scenario->closed, LEAT_ROW_BYTES);
    if (!sim_disk_flip(server->disk, "catalogue", byte,
                       (unsigned)sim_rng_below(&scenario->closed, 8)))
        return false;
    scenario->rots[scenario->rot_count++] = (struct sim_rot){
        .server = server, .log = seg->log, .segment = seg->id.v, .offset = byte, .row = true};
    sim_fault_struck(scenario->world, SIM_FAULT_ROW);
    sim_trace(scenario->world,
              "%s: a bit of the row of closed segment %llu of log id %u/%u/%u flips", server->name,
              (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet, seg->log.log);
    return true;
}

void sim_rows_strike(struct scenario *scenario)
{
    for (unsigned i = 0; scenario->rows_rot && i < scenario->server_count; i++)
        (void)row_flip(&scenario->servers[i]);
}

void sim_rows_judge(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->rot_count; i++) {
        const struct sim_rot *rot = &scenario->rots[i];
        const struct leat_store *store = store_of(rot->server);
        if (rot->row && store && has_own(store, rot->log, rot->segment))
            scenario->world->faults[SIM_FAULT_FILLED]++;
    }
}

/* It dies with that: its process would write the row again. */
static void row_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct sim_rng *rng = &scenario->closed;
    if (scenario->faults_over) return;
    struct sim_server *server = &scenario->servers[sim_rng_below(rng, scenario->server_count)];
    if (row_flip(server)) sim_process_die(server->process, SIM_DEATH_KILL);
    sim_world_at(world, world->now_us + sim_rng_between(rng, 1000, GAP_US_MAX), row_due, scenario);
}

void sim_rows_choose(struct scenario *scenario)
{
    if (scenario->victim || scenario->server_count < 3) return;
    sim_rng_init(&scenario->closed, scenario->world->seed, "rows");
    scenario->rows_rot = sim_rng_chance(&scenario->closed, ROWS_PER_MILLE);
}

void sim_closed_start(struct scenario *scenario)
{
    if (scenario->rows_rot)
        sim_world_at(scenario->world,
                     scenario->world->now_us + sim_rng_between(&scenario->closed, 1000, GAP_US_MAX),
                     row_due, scenario);
    if (!scenario->closed_rot) return;
    for (unsigned i = 0; i < scenario->server_count && scenario->repairs_struck; i++)
        sim_disk_amid(scenario->servers[i].disk, amid_repair, &scenario->servers[i]);
    sim_world_at(scenario->world,
                 scenario->world->now_us + sim_rng_between(&scenario->closed, 1000, GAP_US_MAX),
                 due, scenario);
}

/* Still in the place where it was struck, and whole there. */
static bool is_repaired(const struct sim_rot *rot)
{
    struct leat_store_seen at = {0};
    while (closed_next(store_of(rot->server), &at)) {
        const struct leat_segment *seg = at.seg;
        char path[sizeof rot->path];
        uint8_t byte;
        if (seg->id.v != rot->segment || !leat_log_ref_equal(seg->log, rot->log)) continue;
        snprintf(path, sizeof path, "store/%u", seg->file_number);
        if (strcmp(path, rot->path) != 0 || rot->offset < seg->file_offset ||
            rot->offset >= seg->file_offset + seg->prefix_id.bytes)
            continue;
        return sim_disk_peek(rot->server->disk, path, rot->offset, &byte, 1) && byte == rot->byte;
    }
    return false;
}

static bool all_equal(struct scenario *scenario)
{
    uint64_t end_us = scenario->world->now_us + EQUAL_US_MAX;
    for (;;) {
        scenario->unequal = 0;
        sim_copies_check(scenario);
        if (scenario->unequal == 0 || scenario->world->failure[0]) return true;
        if (scenario->world->now_us >= end_us) return false;
        sim_world_run(scenario->world, scenario->world->now_us + 500 * 1000, NULL);
    }
}

void sim_closed_judge(struct scenario *scenario)
{
    if (!scenario->closed_rot || scenario->rot_count == 0) return;
    if (scenario->scrubs && !all_equal(scenario)) {
        sim_stuck(scenario, "a damaged copy of a closed segment is not made good");
        return;
    }
    for (unsigned i = 0; i < scenario->rot_count; i++)
        if (is_repaired(&scenario->rots[i])) scenario->world->faults[SIM_FAULT_REPAIRED]++;
}
