/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of a cluster's logs, looked at from outside while the cluster runs: the records that each node holds are
 * compared with what clients were told, and closed copies with each other, byte for byte.
 *
 * The product is asked only which node holds which copy, and not what it believes of the copy; the bytes are scanned
 * anew. The newest entry that any node, dead or alive, has applied counts as committed by the coordinators: a node
 * applies an entry before it acts on the entry. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/log.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum { COMPARE_EVERY_US = 300 * 1000, CHECK_PER_MILLE = 300 };

static bool newer(const struct sim_stamp *now, const struct sim_stamp *then)
{
    if (now->epoch != then->epoch) return now->epoch > then->epoch;
    if (now->opened != then->opened) return now->opened;
    return now->stamp_version > then->stamp_version;
}

static struct sim_stamp *stamp_of(struct scenario *scenario, struct leat_log_ref log)
{
    return &scenario->stamps[log.stream][log.streamlet][log.log];
}

static struct leat_log_ref ref_of(const struct scenario *scenario, struct leat_log_ref log)
{
    return (struct leat_log_ref){scenario->streams[log.stream].id, log.streamlet, log.log};
}

static void log_note(struct scenario *scenario, struct leat_machine *machine,
                     struct leat_log_ref log)
{
    struct leat_machine_stream *stream;
    const struct leat_machine_log *row =
        leat_machine_log_find(machine, ref_of(scenario, log), &stream);
    if (!row) return;
    struct sim_stamp seen = {.opened = row->record.opened,
                             .epoch = row->epoch.v,
                             .stamp_epoch = row->record.stamp_epoch.v,
                             .stamp_version = row->record.stamp_version};
    struct sim_stamp *stamp = stamp_of(scenario, log);
    if (!newer(&seen, stamp)) return;
    *stamp = seen;
    sim_trace(scenario->world, "committed: %u/%u/%u epoch %u, %s, stamp %u/%u", log.stream,
              log.streamlet, log.log, seen.epoch, seen.opened ? "opened" : "tail", seen.stamp_epoch,
              seen.stamp_version);
}

static struct leat_machine *machine_of(const struct sim_server *server)
{
    if (!server->node || !leat_node_coordinator(server->node)) return NULL;
    return leat_coordinator_tables(leat_node_coordinator(server->node));
}

/* Its memory stays until the seed's end, so it is read after the death, too. */
void sim_copies_note(struct scenario *scenario, const struct sim_server *server)
{
    struct leat_machine *machine = machine_of(server);
    if (!machine || !scenario->streams_made) return;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        for (uint32_t s = 0; s < scenario->streams[i].settings.streamlets; s++)
            for (uint32_t q = 0; q < scenario->streams[i].settings.logs; q++)
                log_note(scenario, machine, (struct leat_log_ref){i, s, q});
}

bool sim_copies_owns(struct scenario *scenario, const struct sim_server *server,
                     struct leat_log_ref log)
{
    struct leat_machine *machine = machine_of(server);
    struct leat_machine_stream *stream;
    if (!machine || !leat_machine_log_find(machine, ref_of(scenario, log), &stream)) return false;
    uint16_t owner = stream->owners[log.streamlet];
    return owner != LEAT_OWNER_NONE && strcmp(machine->nodes[owner].info.name, server->name) == 0;
}

bool sim_copies_written_elsewhere(const struct sim_server *server, struct leat_log_ref ref,
                                  uint64_t segment)
{
    if (!server->ready || !leat_node_backup(server->node)) return false;
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(leat_node_backup(server->node), ref, &rep))
        if (rep.seg->id.v == segment && rep.seg->writer != 0) return true;
    return false;
}

bool sim_copies_damaged(struct scenario *scenario, const struct sim_server *server,
                        struct leat_log_ref log)
{
    struct leat_log_ref ref = ref_of(scenario, log);
    struct leat_partition_seen partition;
    struct leat_log_info info;
    if (!server->ready || !leat_node_partition_at(server->node, ref, &partition) || !partition.log)
        return false;
    leat_log_info(partition.log, &info);
    return info.state == LEAT_LOG_DAMAGED;
}

/* ---- every mark has everything that was acked ---- */

struct look {
    struct scenario *scenario;
    const struct sim_server *server;
    const struct sim_stamp *stamp;
    struct leat_log_ref log;
    uint64_t acked;
};

static void mark_check(void *arg, const struct leat_replica_info *info)
{
    const struct look *look = arg;
    if (!info->mark || info->epoch.v != look->stamp->stamp_epoch ||
        info->version < look->stamp->stamp_version)
        return;
    look->scenario->marks++;
    if (info->next_offset >= look->acked) return;
    /* A flipped bit in the last run that was acked: no later bytes say so, and the end is called what it may be
     * (docs/recovery.md). A verifier sees what comes of that. */
    if (look->server->corrupt && info->torn) return;
    sim_fail(look->scenario->world,
             "A1 lost-write: %s counts as a copy of %u/%u/%u (segment %llu, epoch %u, version %u; "
             "committed %u) and ends at %llu, acked is %llu",
             look->server->name, look->log.stream, look->log.streamlet, look->log.log,
             (unsigned long long)info->segment.v, info->epoch.v, info->version,
             look->stamp->stamp_version, (unsigned long long)info->next_offset,
             (unsigned long long)look->acked);
}

static struct leat_backup *backup_of(const struct sim_server *server)
{
    bool lives = server->process && server->process->alive && server->node &&
                 leat_node_has_cores(server->node);
    return lives ? leat_node_backup(server->node) : NULL;
}

static void log_check(struct scenario *scenario, struct leat_log_ref log)
{
    struct look look = {.scenario = scenario, .stamp = stamp_of(scenario, log), .log = log};
    struct leat_log_ref ref = ref_of(scenario, log);
    if (scenario->streams[log.stream].settings.copies == 1) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_machine *machine = machine_of(&scenario->servers[i]);
        if (machine) log_note(scenario, machine, log);
    }
    look.acked = check_acked_end(scenario->check, log);
    if (!look.stamp->opened || look.acked == 0) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_backup *backup = backup_of(&scenario->servers[i]);
        look.server = &scenario->servers[i];
        if (backup) leat_backup_each(backup, &ref, true, mark_check, &look);
    }
}

void sim_copies_acked(struct scenario *scenario, struct leat_log_ref log)
{
    if (scenario->server_count == 1 || !sim_rng_chance(&scenario->look, CHECK_PER_MILLE)) return;
    log_check(scenario, log);
}

/* ---- closed copies are equal ---- */

static bool byte_at(const struct leat_segment *seg, uint32_t at, uint8_t *out)
{
    if (seg->buffer) {
        *out = seg->buffer[at];
        return true;
    }
    if (!seg->file) return false;
    sim_file_peek(seg->file, seg->file_offset + at, out, 1);
    return true;
}

/* Where bytes of a copy are, in one piece of at most *bytes; NULL: they are zeros. */
static const uint8_t *piece_at(const struct leat_segment *seg, uint32_t at, uint32_t *bytes)
{
    if (seg->buffer) return seg->buffer + at;
    return sim_file_view(seg->file, seg->file_offset + at, bytes);
}

static bool bytes_equal(const struct leat_segment *a, const struct leat_segment *b,
                        uint32_t *out_at)
{
    static const uint8_t zeros[4096];
    for (uint32_t at = 0, bytes; at < a->prefix_id.bytes; at += bytes) {
        bytes = a->prefix_id.bytes - at;
        if (bytes > sizeof zeros) bytes = sizeof zeros;
        const uint8_t *of_a = piece_at(a, at, &bytes), *of_b = piece_at(b, at, &bytes);
        if (of_a != of_b && memcmp(of_a ? of_a : zeros, of_b ? of_b : zeros, bytes) != 0) {
            *out_at = at;
            return false;
        }
    }
    return true;
}

static void copy_compare(struct scenario *scenario, const struct sim_server *owner,
                         const struct sim_server *server, const struct leat_segment *own,
                         const struct leat_segment *copy)
{
    uint32_t at = 0;
    uint8_t byte;
    if (server->corrupt || owner->corrupt) return;
    scenario->compared++;
    bool same = copy->prefix_id.bytes == own->prefix_id.bytes &&
                copy->prefix_id.crc == own->prefix_id.crc &&
                copy->base_offset == own->base_offset && copy->next_offset == own->next_offset;
    if (!byte_at(own, 0, &byte) || !byte_at(copy, 0, &byte)) return;
    if (same && bytes_equal(own, copy, &at)) return;
    bool victims = scenario->scrubs || server == scenario->victim || owner == scenario->victim;
    if (scenario->closed_rot && victims) {
        scenario->unequal++; /* until it is found: closed.c */
        return;
    }
    if (leat_segment_is_damaged(own))
        return; /* its file came back without its end: fetched from another node */
    sim_fail(scenario->world,
             "A1 lost-write: copies differ: segment %llu of log id %u/%u/%u, closed, at %s: %u "
             "bytes to %llu, the owner has %u to %llu; other bytes from %u on",
             (unsigned long long)own->id.v, own->log.stream, own->log.streamlet, own->log.log,
             server->name, copy->prefix_id.bytes, (unsigned long long)copy->next_offset,
             own->prefix_id.bytes, (unsigned long long)own->next_offset, at);
}

static const struct sim_server *server_of(const struct scenario *scenario, uint64_t incarnation)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (backup_of(server) && leat_node_incarnation(server->node) == incarnation) return server;
    }
    return NULL;
}

/* What an open copy has is what the owner wrote: every byte of its valid prefix. */
static void open_compare(struct scenario *scenario, const struct sim_server *server,
                         const struct leat_set_seen *set, const struct leat_segment *copy)
{
    const struct leat_segment *own = set->seg;
    struct leat_scan found;
    if (!copy->buffer || !own->buffer || copy->state == LEAT_SEGMENT_CLOSED) return;
    leat_scan_segment(copy->buffer, copy->capacity, &found);
    uint32_t at = found.bytes < set->target ? found.bytes : set->target;
    if (memcmp(copy->buffer, own->buffer, at) != 0)
        for (at = 0; copy->buffer[at] == own->buffer[at];)
            at++;
    scenario->compared++;
    if (at == found.bytes) return;
    sim_fail(scenario->world,
             "A1 lost-write: a copy is no prefix: segment %llu of log id %u/%u/%u at %s: %u bytes "
             "are valid, the owner wrote %u and other ones from %u on",
             (unsigned long long)own->id.v, own->log.stream, own->log.streamlet, own->log.log,
             server->name, found.bytes, set->target, at);
}

/* SUBTLE: a version may be committed that a copy of a started segment does not carry, and nothing is lost:
 *  1. A copy of N+1 is asked for with version 1, and its backup is slow. N+1 has not started.
 *  2. A copy of N is lost. What is left of N is stamped 2, and 2 is committed.
 *  3. The backup answers: version 1. N+1 starts, and the copy is to be restamped.
 * The start is answered when all copies of N+1 carry 2. Until then N is not closed, N+1 has nothing that was
 * acked, and the copies of N have all of it. They are looked at themselves. */
static bool start_is_due(const struct leat_set_seen *set)
{
    struct leat_set_seen before;
    if (!set->starts || !leat_set_see_before(set, &before)) return false;
    return before.id.v + 1 == set->id.v && before.started && !before.closed && !before.dropping;
}

/* The coordinators hold a version only when every copy that must count carries it. */
static void stamp_check(struct scenario *scenario, const struct leat_set_seen *set,
                        const char *where, const struct leat_segment *copy)
{
    struct leat_log_ref log = copy->log;
    if (!sim_stream_of(scenario, copy->log.stream, &log.stream)) return;
    const struct sim_stamp *stamp = stamp_of(scenario, log);
    if (!stamp->opened || stamp->stamp_epoch != copy->epoch.v || !set->started ||
        copy->version >= stamp->stamp_version || start_is_due(set))
        return;
    sim_fail(
        scenario->world,
        "A1 lost-write: the copy at %s of segment %llu of %u/%u/%u is of version %u, and %u is "
        "committed: it would not count",
        where, (unsigned long long)copy->id.v, log.stream, log.streamlet, log.log, copy->version,
        stamp->stamp_version);
}

static void set_look(struct scenario *scenario, const struct sim_server *owner,
                     const struct leat_set_seen *set)
{
    if (!set->seg || set->closed || set->dropping || !set->started) return;
    if (!set->hibernated && !set->want_hibernated && !set->resumes)
        stamp_check(scenario, set, owner->name, set->seg);
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        const struct sim_server *server = server_of(scenario, copy.incarnation);
        if (!server || copy.state != LEAT_COPY_OPEN) continue;
        struct leat_replica_seen rep;
        if (!leat_backup_see(backup_of(server), copy.handle, &rep) || !rep.seg || rep.damaged ||
            rep.dropping || rep.drop_wanted)
            continue;
        if (set->hibernated || set->want_hibernated || set->resumes)
            continue; /* a buffer that is read into */
        if (!leat_log_ref_equal(rep.seg->log, set->seg->log)) {
            sim_fail(scenario->world, "the copy of segment %llu at %s is of another log",
                     (unsigned long long)set->id.v, server->name);
            continue;
        }
        open_compare(scenario, server, set, rep.seg);
        if (copy.incomplete) continue;
        stamp_check(scenario, set, server->name, rep.seg);
    }
}

/* To a recovery data in N+1 is the sign that N is closed on all its copies: only where N+1 has just begun are
 * more copies of N made first. What a kill leaves of N+1 at its owner is looked at, too. */
static void roll_look(struct scenario *scenario, const struct sim_server *owner,
                      const struct leat_set_seen *set)
{
    struct leat_set_seen before;
    struct leat_scan scan;
    if (set->closed || !set->seg || !set->seg->buffer || !leat_set_see_before(set, &before)) return;
    if (before.id.v + 1 != set->id.v || set->hibernated || set->resumes) return;
    leat_scan_segment(set->seg->buffer, set->seg->capacity, &scan);
    if (!scan.started || leat_scan_only_start(&scan)) return;
    for (unsigned i = 0; i < before.copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(&before, i);
        const struct sim_server *server = server_of(scenario, copy.incarnation);
        if (!server || copy.state != LEAT_COPY_OPEN || copy.incomplete) continue;
        struct leat_replica_seen rep;
        if (!leat_backup_see(backup_of(server), copy.handle, &rep) || !rep.seg ||
            !rep.seg->buffer || rep.damaged || rep.drop_wanted)
            continue;
        leat_scan_segment(rep.seg->buffer, rep.seg->capacity, &scan);
        if (scan.closed) continue;
        sim_fail(scenario->world,
                 "A1 lost-write: segment %llu of log id %u/%u/%u has data at its owner %s, and %s "
                 "has the "
                 "one before it to %llu, not closed: it would count as closed there",
                 (unsigned long long)set->id.v, set->seg->log.stream, set->seg->log.streamlet,
                 set->seg->log.log, owner->name, server->name,
                 (unsigned long long)scan.next_offset);
    }
}

static void set_compare(struct scenario *scenario, const struct sim_server *owner,
                        const struct leat_set_seen *set)
{
    if (!set->closed || set->dropping || !set->seg || set->seg->state != LEAT_SEGMENT_CLOSED)
        return;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        const struct sim_server *server = server_of(scenario, copy.incarnation);
        if (!server || copy.state != LEAT_COPY_CLOSED || copy.incomplete) continue;
        struct leat_replica_seen rep;
        if (!leat_backup_see(backup_of(server), copy.handle, &rep) || !rep.seg || rep.damaged ||
            rep.dropping || rep.drop_wanted || rep.seg->state != LEAT_SEGMENT_CLOSED)
            continue;
        copy_compare(scenario, owner, server, set->seg, rep.seg);
    }
}

static void log_compare(struct scenario *scenario, const struct sim_server *owner,
                        const struct leat_primary_log *rep)
{
    for (unsigned settled = 0; settled < 2; settled++) {
        struct leat_set_seen set = {0};
        while (leat_set_see_next(rep, settled, &set)) {
            set_look(scenario, owner, &set);
            set_compare(scenario, owner, &set);
            if (!settled) roll_look(scenario, owner, &set);
        }
    }
}

/* The memory of a dead server is the memory that its next process finds. */
void sim_copies_death(struct scenario *scenario, const struct sim_server *server)
{
    struct leat_partition_seen at = {0};
    while (server->node && leat_node_partition_next(server->node, &at)) {
        struct leat_set_seen set = {0};
        while (at.copies && leat_set_see_next(at.copies, false, &set))
            roll_look(scenario, server, &set);
    }
}

void sim_copies_check(struct scenario *scenario)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        const struct leat_stream_settings *settings = &scenario->streams[i].settings;
        for (uint32_t s = 0; scenario->streams_made && s < settings->streamlets; s++)
            for (uint32_t q = 0; q < settings->logs; q++)
                log_check(scenario, (struct leat_log_ref){i, s, q});
    }
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        struct leat_partition_seen at = {0};
        while (backup_of(server) && leat_node_partition_next(server->node, &at))
            if (at.copies) log_compare(scenario, server, at.copies);
    }
}

/* ---- nobody does anything: every segment gets its copies again, the last one of each log too ---- */

static bool set_is_whole(uint32_t copies, const struct leat_set_seen *set)
{
    if (!set->reserved || set->dropping) return true;
    if (set->seg && leat_segment_is_damaged(set->seg))
        return true; /* fetched from another node first: closed.c */
    unsigned count = 1;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        if (copy.state != LEAT_COPY_OPENING && !copy.incomplete) count++;
    }
    return count >= copies;
}

static bool log_is_whole(struct scenario *scenario, const struct sim_server *server,
                         const struct leat_partition_seen *partition)
{
    static char told[160];
    uint32_t copies = leat_primary_log_see(partition->copies).copies;
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    if (partition->going || info.state != LEAT_LOG_SERVING) return true;
    for (unsigned settled = 0; settled < 2; settled++) {
        struct leat_set_seen set = {0};
        while (leat_set_see_next(partition->copies, settled, &set)) {
            if (set_is_whole(copies, &set)) continue;
            snprintf(told, sizeof told,
                     "%u of %u copies of segment %llu%s of log id %u/%u/%u of %s",
                     set.copy_count + 1, copies, (unsigned long long)set.id.v,
                     set.hibernated ? ", hibernated,"
                     : set.closed   ? ", closed,"
                                    : "",
                     info.ref.stream, info.ref.streamlet, info.ref.log, server->name);
            scenario->waits_for = told;
            return false;
        }
    }
    return true;
}

bool sim_copies_are_whole(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!backup_of(server)) return false;
        struct leat_partition_seen at = {0};
        while (leat_node_partition_next(server->node, &at))
            if (at.copies && at.log && !log_is_whole(scenario, server, &at)) return false;
    }
    scenario->waits_for = NULL;
    return true;
}

static void look_again(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    sim_copies_check(scenario);
    sim_kept_check(scenario);
    sim_world_at(world, world->now_us + COMPARE_EVERY_US, look_again, scenario);
}

void sim_copies_watch(struct scenario *scenario)
{
    sim_rng_init(&scenario->look, scenario->world->seed, "copies");
    sim_world_at(scenario->world, scenario->world->now_us + COMPARE_EVERY_US, look_again, scenario);
}
