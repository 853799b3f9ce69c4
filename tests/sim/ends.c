/* SPDX-License-Identifier: Apache-2.0 */
/* The decided ends of logs, one after the other, as the nodes' tables have them. Bytes of earlier owners behind a
 * decided end were promised to nobody, and their offsets were given to other records since. So if all records that a
 * log's epoch wrote were lost, at any time, and their loss accepted, a recovery would keep none of the bytes that other
 * epochs have behind the end. Nor does a log that moves end behind the bytes that are safe on all its copies: its owner
 * never acked bytes that the disk refused. Seldom are all records lost, so a recovery is asked for its choice when the
 * tables have changed, with the closed copies that there are. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/metadata/tail.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/scenario.h"

enum { ENDS_MAX = 8192, BUCKETS = 256, LOOK_US = 40 * 1000 };

struct end {
    struct leat_log_ref log;
    uint32_t epoch; /* of the owner that began there */
    struct leat_tail_record tail;
    unsigned next; /* of its bucket, +1; 0: the last one */
};

static struct {
    struct end ends[ENDS_MAX];
    unsigned count, buckets[BUCKETS];  /* the newest of each, +1 */
    uint64_t changes[SIM_SERVERS_MAX]; /* of the tables, as they were looked at last */
    uint64_t look_us;
    struct leat_tail_row rows[LEAT_TAIL_ROWS_MAX];
    size_t row_count;
} ends; /* of the one scenario of a process */

static unsigned *bucket_of(struct leat_log_ref log)
{
    return &ends.buckets[(log.stream * 31 + log.streamlet * 7 + log.log) % BUCKETS];
}

/* Where the epoch began whose marks would say where it ends. */
static const struct end *end_of(struct leat_log_ref log, struct leat_epoch epoch)
{
    for (unsigned at = *bucket_of(log); at; at = ends.ends[at - 1].next) {
        const struct end *end = &ends.ends[at - 1];
        if (leat_log_ref_equal(end->log, log) && end->epoch == epoch.v) return end;
    }
    return NULL;
}

static void end_note(struct leat_log_ref log, const struct leat_machine_log *as)
{
    unsigned *bucket = bucket_of(log);
    if (ends.count == ENDS_MAX || end_of(log, as->epoch)) return;
    ends.ends[ends.count++] = (struct end){log, as->epoch.v, as->record.tail, *bucket};
    *bucket = ends.count;
}

static bool is_behind(const struct leat_tail_record *left, const struct leat_tail_record *end)
{
    if (end->segment == UINT64_MAX || left->segment > end->segment) return true;
    return left->segment == end->segment && end->prefix_id.bytes > 0 &&
           left->prefix_id.bytes > end->prefix_id.bytes;
}

/* The rows of the log that earlier owners wrote, before its epoch, as a recovery would be told. */
static void rows_fill(const struct scenario *scenario, struct leat_log_ref log,
                      struct leat_epoch stamp)
{
    ends.row_count = 0;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        bool lives = server->process && server->process->alive && server->node &&
                     leat_node_has_cores(server->node) && leat_node_backup(server->node);
        if (!lives) continue;
        struct leat_replica_seen rep = {0};
        while (leat_backup_see_of(leat_node_backup(server->node), log, &rep)) {
            const struct leat_segment *seg = rep.seg;
            if (seg->state != LEAT_SEGMENT_CLOSED || seg->incomplete || rep.damaged ||
                seg->epoch.v >= stamp.v || ends.row_count == LEAT_TAIL_ROWS_MAX)
                continue;
            const struct leat_replica_row row = {.log = log,
                                                 .segment = seg->id.v,
                                                 .kind = LEAT_REPLICA_CLOSED,
                                                 .epoch = seg->epoch,
                                                 .version = seg->version,
                                                 .prefix_id = seg->prefix_id,
                                                 .base_offset = seg->base_offset,
                                                 .next_offset = seg->next_offset,
                                                 .provisional = seg->provisional};
            ends.rows[ends.row_count++] = leat_tail_row_of(&row, 0);
        }
    }
}

static void opened_see(struct scenario *scenario, struct leat_log_ref log,
                       const struct leat_log_record *record)
{
    const struct end *end = end_of(log, record->stamp_epoch);
    struct leat_tail left;
    if (!end) return;
    rows_fill(scenario, log, record->stamp_epoch);
    leat_tail_left(record, ends.rows, ends.row_count, &left);
    if (!left.ends || !is_behind(&left.end, &end->tail)) return;
    sim_fail(scenario->world,
             "A4 inconsistent-offsets: were all lost that epoch %u wrote of log id %u/%u/%u, what "
             "owners of before have would be kept up to segment %llu, %u bytes, and it was decided "
             "to end in segment %lld, %u bytes",
             record->stamp_epoch.v, log.stream, log.streamlet, log.log,
             (unsigned long long)left.end.segment, left.end.prefix_id.bytes,
             (long long)end->tail.segment, end->tail.prefix_id.bytes);
}

static void tables_see(struct scenario *scenario, const struct leat_machine *machine)
{
    for (uint32_t s = 0; s < machine->stream_count; s++) {
        const struct leat_machine_stream *stream = &machine->streams[s];
        const uint32_t logs = stream->desc->settings.logs;
        for (uint32_t i = 0; i < stream->log_count; i++) {
            const struct leat_log_ref log = {stream->id, i / logs, i % logs};
            if (stream->logs[i].record.opened)
                opened_see(scenario, log, &stream->logs[i].record);
            else
                end_note(log, &stream->logs[i]);
        }
    }
}

static const struct leat_log *log_of(const struct sim_server *server, struct leat_log_ref ref)
{
    struct leat_partition_seen partition;
    return leat_node_partition_at(server->node, ref, &partition) ? partition.log : NULL;
}

/* Where the logs of a streamlet are to end that its owner gives away. */
static void move_see(const struct sim_server *server, const struct leat_coordinate *request)
{
    for (uint32_t i = 0; i < request->log_count; i++) {
        const struct leat_log *log = log_of(server, request->logs[i]);
        const struct leat_tail_record *tail = &request->tails[i];
        struct leat_log_seen seen = {0};
        if (log) leat_log_see(log, &seen);
        if (seen.state != LEAT_LOG_STOPPED || !seen.head) continue;
        uint64_t safe = seen.safe_offset;
        if (tail->next_offset > safe)
            sim_fail(server->scenario->world,
                     "A7 nonmonotonic-poll: %s gives log id %u/%u/%u away, to end at offset %llu, "
                     "and only what is before %llu is safe",
                     server->name, request->logs[i].stream, request->logs[i].streamlet,
                     request->logs[i].log, (unsigned long long)tail->next_offset,
                     (unsigned long long)safe);
    }
}

static void moves_see(const struct sim_server *server)
{
    const struct leat_coordinator *coordinator = leat_node_coordinator(server->node);
    const struct leat_coordinate *request = NULL;
    while ((request = leat_coordinator_pending(coordinator, request)))
        if (request->kind == LEAT_COORDINATE_MOVE) move_see(server, request);
}

void sim_ends_see(const struct sim_server *server)
{
    const struct leat_machine *machine =
        leat_coordinator_tables(leat_node_coordinator(server->node));
    uint64_t now_us = server->scenario->world->now_us;
    moves_see(server);
    if (ends.changes[server->number] == machine->changes && now_us < ends.look_us) return;
    ends.changes[server->number] = machine->changes;
    ends.look_us = now_us + LOOK_US;
    tables_see(server->scenario, machine);
}

void sim_ends_start(void)
{
    memset(&ends, 0, sizeof ends);
}
