/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one log, seen from outside: after each turn of a node the log's state is compared with its state before.
 *
 * The modules are asked only what they tell everybody (leat_log_info(), leat_backup_each(), leat_machine_log_find()),
 * and which segments are closed. */
#include "tests/sim/life.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/backup.h"
#include "tests/sim/scenario.h"

enum { COPIES_MAX = 512, ACKED_EVERY_US = 250 * 1000 };

struct copy {
    uint64_t segment, handle;
    uint32_t epoch, version;
    enum leat_segment_state state;
    bool incomplete, damaged;
    bool there; /* at this look */
};

/* A node as it was at the last look. */
struct seen {
    bool alive, ready;
    bool has; /* the log, as its own */
    enum leat_log_state state;
    uint64_t first_offset, acked, end_segment, closed_end;
    struct copy copies[COPIES_MAX];
    unsigned copy_count;
    enum leat_recovery_phase phase; /* of an attempt that it leads, and that has this log */
};

static struct {
    struct scenario *scenario;
    const struct sim_life *life; /* NULL: nobody asks */
    struct leat_log_ref ref;     /* by the product's ids */
    struct seen nodes[SIM_SERVERS_MAX];
    uint64_t acked_told, acked_told_us;
    struct {
        bool known, opened;
        uint32_t epoch, version;
        char name[24];
    } committed;
} it; /* of the one scenario of a process */

static void row_say(enum sim_life_kind kind, const char *node, uint64_t offset, const char *format,
                    ...) LEAT_PRINTF(4, 5);
static void row_say(enum sim_life_kind kind, const char *node, uint64_t offset, const char *format,
                    ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct leat_log_ref *log = &it.life->log;
    struct sim_life_row row = {kind, it.scenario->world->now_us, offset, node, text};
    sim_trace(it.scenario->world, "%u/%u/%u at %s: %s", log->stream, log->streamlet, log->log, node,
              text);
    if (it.life->on_row) it.life->on_row(it.life->arg, &row);
}

/* Acks are many: the last one before anything else is told, and one each quarter of a second. */
static void acked_say(const struct sim_server *server, const struct seen *now)
{
    if (!now->has || now->acked == it.acked_told) return;
    it.acked_told = now->acked;
    it.acked_told_us = it.scenario->world->now_us;
    row_say(SIM_LIFE_ACKED, server->name, now->acked, "acked up to offset %llu",
            (unsigned long long)now->acked);
}

/* ---- the coordinators' tables ---- */

static bool is_alive(const char *name)
{
    for (unsigned i = 0; i < it.scenario->server_count; i++)
        if (strcmp(it.scenario->servers[i].name, name) == 0) return it.nodes[i].alive;
    return false;
}

static void owner_say(const char *name, uint32_t epoch)
{
    const char *before = it.committed.name;
    if (before[0] == '\0')
        row_say(SIM_LIFE_COMMITTED, "cluster", 0, "created: %s owns it, epoch %u", name, epoch);
    else if (strcmp(before, name) == 0)
        row_say(SIM_LIFE_COMMITTED, "cluster", 0, "%s owns it again, epoch %u", name, epoch);
    else
        row_say(SIM_LIFE_COMMITTED, "cluster", 0, "%s from %s to %s, epoch %u",
                is_alive(before) ? "moved" : "recovered: goes", before, name, epoch);
}

static void decided_say(const struct leat_log_record *record)
{
    const struct leat_tail_record *tail = &record->tail;
    if (tail->segment == UINT64_MAX)
        row_say(SIM_LIFE_DECIDED, "cluster", tail->next_offset,
                "decided end: offset %llu, no segment before it",
                (unsigned long long)tail->next_offset);
    else
        row_say(SIM_LIFE_DECIDED, "cluster", tail->next_offset,
                "decided end: offset %llu, segment %llu with %u bytes",
                (unsigned long long)tail->next_offset, (unsigned long long)tail->segment,
                tail->prefix_id.bytes);
}

static bool is_newer(uint32_t epoch, const struct leat_log_record *record)
{
    if (!it.committed.known) return true;
    if (epoch != it.committed.epoch) return epoch > it.committed.epoch;
    if (record->opened != it.committed.opened) return record->opened;
    return record->stamp_version > it.committed.version;
}

/* What any node has applied is committed. */
static void committed_look(struct leat_machine *machine)
{
    struct leat_machine_stream *stream;
    const struct leat_machine_log *row = leat_machine_log_find(machine, it.ref, &stream);
    if (!row || !is_newer(row->epoch.v, &row->record)) return;
    const struct leat_log_record *record = &row->record;
    uint16_t owner = stream->owners[it.ref.streamlet];
    const char *name = owner == LEAT_OWNER_NONE ? "nobody" : machine->nodes[owner].info.name;
    if (row->epoch.v != it.committed.epoch) {
        owner_say(name, row->epoch.v);
        if (!record->opened) decided_say(record);
    }
    if (record->opened && (row->epoch.v != it.committed.epoch || !it.committed.opened))
        row_say(SIM_LIFE_COMMITTED, "cluster", 0,
                "opened: copies of version %u/%u say where it ends", record->stamp_epoch.v,
                record->stamp_version);
    else if (record->opened && record->stamp_version != it.committed.version)
        row_say(SIM_LIFE_COMMITTED, "cluster", 0,
                "version raised to %u/%u: older copies do not count", record->stamp_epoch.v,
                record->stamp_version);
    it.committed.known = true;
    it.committed.epoch = row->epoch.v;
    it.committed.opened = record->opened;
    it.committed.version = record->stamp_version;
    snprintf(it.committed.name, sizeof it.committed.name, "%s", name);
}

static void recovery_look(const struct sim_server *server, struct seen *now)
{
    static const char *const words[] = {
        [LEAT_RECOVERY_NONE] = "recovery: the attempt has ended",
        [LEAT_RECOVERY_COLLECT] = "recovery began: asks nodes which copies they have",
        [LEAT_RECOVERY_PREPARE] = "recovery: has the copies made that the end needs",
        [LEAT_RECOVERY_COMMIT] = "recovery: asks for its decision to be committed",
    };
    const struct leat_coordinator *coordinator = leat_node_coordinator(server->node);
    const struct leat_coordinator_seen as = leat_coordinator_see(coordinator);
    enum leat_recovery_phase phase = LEAT_RECOVERY_NONE;
    struct leat_attempt_log log;
    for (uint32_t i = 0; as.phase != phase && leat_attempt_log(coordinator, i, &log); i++)
        if (leat_log_ref_equal(log.ref, it.ref)) phase = as.phase;
    if (phase == now->phase) return;
    now->phase = phase;
    row_say(SIM_LIFE_RECOVERY, server->name, 0, "%s", words[phase]);
}

/* ---- its owner ---- */

static const struct leat_log *log_on(const struct sim_server *server)
{
    struct leat_partition_seen partition;
    bool has = leat_node_partition_at(server->node, it.ref, &partition);
    return has && !partition.going ? partition.log : NULL;
}

/* Behind the newest segment that is closed. */
static uint64_t closed_end_of(const struct leat_log *log)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    for (uint32_t i = seen.segment_count; i > 0; i--) {
        struct leat_log_segment_seen segment = leat_log_see_segment(log, i - 1);
        if (segment.closed) return segment.seg->id.v + 1;
    }
    return 0;
}

static void state_say(const struct sim_server *server, const struct leat_log_info *info)
{
    static const char *const words[] = {[LEAT_LOG_SERVING] = "serves it",
                                        [LEAT_LOG_WAITING] = "takes no appends: it waits",
                                        [LEAT_LOG_DAMAGED] = "takes no appends: it is damaged",
                                        [LEAT_LOG_STOPPED] = "takes no appends: it has stopped"};
    row_say(SIM_LIFE_OWNER, server->name, 0, "%s, offsets %llu to %llu%s%.100s", words[info->state],
            (unsigned long long)info->first_offset, (unsigned long long)info->acked_offset,
            info->why && info->why[0] ? ": " : "", info->why ? info->why : "");
}

static void segments_say(const struct sim_server *server, const struct seen *now,
                         const struct leat_log_info *info, uint64_t closed_end)
{
    if (closed_end > now->closed_end)
        row_say(SIM_LIFE_OWNER, server->name, 0, "segment %llu is closed",
                (unsigned long long)closed_end - 1);
    if (info->end_segment > now->end_segment)
        row_say(SIM_LIFE_OWNER, server->name, 0, "begins segment %llu",
                (unsigned long long)info->end_segment - 1);
    if (info->first_offset > now->first_offset)
        row_say(SIM_LIFE_OWNER, server->name, 0, "trimmed: begins at offset %llu now",
                (unsigned long long)info->first_offset);
}

static void owner_look(const struct sim_server *server, struct seen *now)
{
    const struct leat_log *log = log_on(server);
    struct leat_log_info info;
    if (!log) {
        if (now->has) row_say(SIM_LIFE_OWNER, server->name, 0, "gives the log up");
        now->has = false;
        return;
    }
    leat_log_info(log, &info);
    uint64_t closed_end = closed_end_of(log);
    bool had = now->has, changed = !had || info.state != now->state;
    bool segments = had && (closed_end > now->closed_end || info.end_segment > now->end_segment ||
                            info.first_offset > now->first_offset);
    if (had && (changed || segments)) acked_say(server, now);
    if (changed) state_say(server, &info);
    if (segments) segments_say(server, now, &info, closed_end);
    now->has = true;
    now->state = info.state;
    now->first_offset = info.first_offset;
    now->acked = info.acked_offset;
    now->end_segment = info.end_segment;
    now->closed_end = closed_end;
}

/* ---- copies on other nodes ---- */

static struct copy *copy_find(struct seen *now, const struct leat_replica_info *info)
{
    for (unsigned i = 0; i < now->copy_count; i++)
        if (now->copies[i].segment == info->segment.v && now->copies[i].handle == info->handle)
            return &now->copies[i];
    LEAT_ASSERT(now->copy_count < COPIES_MAX);
    now->copies[now->copy_count] = (struct copy){
        .segment = info->segment.v, .handle = info->handle, .state = LEAT_SEGMENT_FREE};
    return &now->copies[now->copy_count++];
}

static const char *state_word(const struct leat_replica_info *info)
{
    if (info->damaged) return "damaged";
    if (info->incomplete) return "being filled";
    switch (info->state) {
    case LEAT_SEGMENT_RESERVED: /* it is until it is closed or hibernated: its owner writes into it */
    case LEAT_SEGMENT_OPEN:
        return "open";
    case LEAT_SEGMENT_HIBERNATED:
        return "hibernated";
    case LEAT_SEGMENT_CLOSED:
        return "closed";
    default:
        return "free";
    }
}

static void copy_look(void *arg, const struct leat_replica_info *info)
{
    const struct sim_server *server = arg;
    struct seen *now = &it.nodes[server->number];
    struct copy *copy = copy_find(now, info);
    bool was = copy->state != LEAT_SEGMENT_FREE;
    bool same = was && copy->state == info->state && copy->incomplete == info->incomplete &&
                copy->damaged == info->damaged;
    if (!same)
        row_say(SIM_LIFE_COPY, server->name, 0, "copy of segment %llu%s: %s, version %u/%u",
                (unsigned long long)info->segment.v, was ? "" : " is there", state_word(info),
                info->epoch.v, info->version);
    else if (copy->epoch != info->epoch.v || copy->version != info->version)
        row_say(SIM_LIFE_COPY, server->name, 0, "copy of segment %llu: version %u/%u",
                (unsigned long long)info->segment.v, info->epoch.v, info->version);
    copy->epoch = info->epoch.v;
    copy->version = info->version;
    copy->state = info->state;
    copy->incomplete = info->incomplete;
    copy->damaged = info->damaged;
    copy->there = true;
}

static void copies_look(const struct sim_server *server, struct seen *now)
{
    struct leat_backup *backup = leat_node_backup(server->node);
    if (!backup) return;
    for (unsigned i = 0; i < now->copy_count; i++)
        now->copies[i].there = false;
    leat_backup_each(backup, &it.ref, false, copy_look, (void *)server);
    for (unsigned i = 0; i < now->copy_count; i++) {
        if (now->copies[i].there) continue;
        row_say(SIM_LIFE_COPY, server->name, 0, "copy of segment %llu is gone",
                (unsigned long long)now->copies[i].segment);
        now->copies[i--] = now->copies[--now->copy_count];
    }
}

/* ---- a node ---- */

static void death_say(const struct sim_server *server, struct seen *now)
{
    static const char *const words[] = {[SIM_DEATH_KILL] = "dies (kill -9)",
                                        [SIM_DEATH_POWER] = "dies (power cut)",
                                        [SIM_DEATH_EXIT] = "stops"};
    acked_say(server, now);
    row_say(SIM_LIFE_NODE, server->name, 0, "%s%s", words[server->process->death],
            now->has ? ", and had the log" : "");
    memset(now, 0, sizeof *now);
}

static void node_look(const struct sim_server *server, struct seen *now)
{
    if (!now->alive) row_say(SIM_LIFE_NODE, server->name, 0, "starts");
    if (!now->ready && server->ready) row_say(SIM_LIFE_NODE, server->name, 0, "is ready");
    now->alive = true;
    now->ready = server->ready;
    if (!server->node || !leat_node_has_cores(server->node) || it.ref.stream == 0) return;
    if (leat_node_coordinator(server->node)) {
        committed_look(leat_coordinator_tables(leat_node_coordinator(server->node)));
        recovery_look(server, now);
    }
    owner_look(server, now);
    copies_look(server, now);
    if (it.scenario->world->now_us - it.acked_told_us >= ACKED_EVERY_US) acked_say(server, now);
}

static void on_turn(void *arg, struct sim_process *process)
{
    struct scenario *scenario = arg;
    it.ref.stream = scenario->streams[it.life->log.stream].id;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        struct seen *now = &it.nodes[i];
        if (server->process != process) continue;
        if (process->alive)
            node_look(server, now);
        else if (now->alive)
            death_say(server, now);
    }
}

void sim_life_start(struct scenario *scenario, const struct sim_life *life)
{
    it.scenario = scenario;
    it.life = life;
    it.ref = life->log;
    scenario->world->watch = on_turn;
    scenario->world->watch_arg = scenario;
}
