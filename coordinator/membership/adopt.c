/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: decide for all logs, and put the decisions into entries. */
#include "coordinator/membership/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/metadata/assign.h"

/* A node may have marks of streams or epochs that this coordinator does not know: then the coordinator is another
 * cluster's, or has lost entries. */
static leat_err marks_check(struct leat_machine *machine, const struct leat_coordinate *request,
                            struct leat_error *error)
{
    for (size_t i = 0; i < request->mark_count; i++) {
        const struct leat_log_marks *marks = &request->marks[i];
        if (i > 0 && leat_log_ref_order(request->marks[i - 1].log, marks->log) >= 0)
            return leat_error_set(error, LEAT_E_INVALID, "the marks are not in ascending order");
        if (marks->log.stream >= machine->next_stream_id)
            return leat_error_set(error, LEAT_E_WRONG_CLUSTER,
                                  "the data names stream %" PRIu32
                                  ", which this coordinator has never created: it has forgotten, "
                                  "or is another cluster's. Everything is kept: put the data "
                                  "directory's raft/ back from a copy, and restart",
                                  marks->log.stream);
        if (marks->has_mark && marks->mark_epoch.v >= machine->next_epoch)
            return leat_error_set(error, LEAT_E_WRONG_CLUSTER,
                                  "the data names epoch %" PRIu32
                                  ", which this coordinator has never given out: it has forgotten, "
                                  "or is another cluster's. Everything is kept: put the data "
                                  "directory's raft/ back from a copy, and restart",
                                  marks->mark_epoch.v);
        struct leat_machine_stream *stream = leat_machine_stream_find(machine, marks->log.stream);
        if (stream && (marks->log.streamlet >= stream->desc->settings.streamlets ||
                       marks->log.log >= stream->desc->settings.logs))
            return leat_error_set(error, LEAT_E_WRONG_CLUSTER,
                                  "the data names streamlet %" PRIu32 " log %" PRIu32
                                  " of stream %" PRIu32 ", which has no such log",
                                  marks->log.streamlet, marks->log.log, marks->log.stream);
    }
    return LEAT_OK;
}

static uint64_t newest_incarnation(const struct leat_machine *machine)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].info.incarnation > newest)
            newest = machine->nodes[i].info.incarnation;
    return newest;
}

/* SUBTLE: where other nodes have replicas, a start adopts a tail at once only if the tail is committed and complete
 * here.
 *  1. The owner dies. Its segment ends with bytes that were never acked. The owner starts anew.
 *  2. The owner adopts its own mark, which ends after these bytes: this becomes the tail record of the log.
 *  3. The owner dies again, and its memory or its disk is lost. No node has this tail, so the log waits, although
 *     every other replica has all acked records.
 * So where marks decide, the whole streamlet is left to recovery: recovery commits a tail only after enough nodes
 * hold the tail. A streamlet with a tail that is missing here is left to recovery too: another node may have the
 * tail. The same goes for the rest of a log after an accepted loss: (1) Loss is accepted; the rest is here and on B.
 * (2) This node's disk is replaced. (3) The node adopts the log as a log without segments, and as the owner calls B's
 * replica superfluous. */
static void streamlet_leave(const struct leat_machine_log *rows,
                            struct leat_log_decision *decisions, uint32_t logs)
{
    bool leaves = false;
    for (uint32_t q = 0; q < logs; q++)
        leaves = leaves || rows[q].record.opened || decisions[q].kind == LEAT_DECIDED_WAIT ||
                 decisions[q].elsewhere;
    for (uint32_t q = 0; q < logs && leaves; q++) {
        decisions[q].left = true;
        if (decisions[q].kind == LEAT_DECIDED_WAIT) continue;
        decisions[q].kind = LEAT_DECIDED_WAIT;
        snprintf(decisions[q].why, sizeof decisions[q].why,
                 "decided with what all nodes hold of its streamlet");
    }
}

leat_err leat_adopt_decide(struct leat_machine *machine, struct leat_coordinate *request,
                           bool leaves, struct leat_error *error)
{
    leat_err rc = marks_check(machine, request, error);
    if (rc != LEAT_OK) return rc;
    if (request->incarnation == 0) request->incarnation = newest_incarnation(machine);
    const struct leat_machine_node *node =
        leat_machine_incarnation_find(machine, request->incarnation);
    if (!node || node->info.crashed)
        return leat_error_set(error, LEAT_E_STALE_EPOCH,
                              "incarnation %" PRIu64 " is not up (any more)", request->incarnation);
    request->decisions =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, machine->log_count + 1, sizeof *request->decisions);
    if (!request->decisions)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to decide %" PRIu64 " logs",
                              machine->log_count);
    size_t next_mark = 0, count = 0;
    for (uint32_t s = 0; s < machine->stream_count; s++) {
        const struct leat_machine_stream *stream = &machine->streams[s];
        uint32_t logs = stream->desc->settings.logs;
        for (uint32_t i = 0; i < stream->log_count; i++) {
            struct leat_log_ref log = {stream->id, i / logs, i % logs};
            if (!leat_machine_adoptable(machine, stream, log.streamlet, node)) continue;
            while (next_mark < request->mark_count &&
                   leat_log_ref_order(request->marks[next_mark].log, log) < 0)
                next_mark++;
            const struct leat_log_marks *marks =
                next_mark < request->mark_count &&
                        leat_log_ref_equal(request->marks[next_mark].log, log)
                    ? &request->marks[next_mark]
                    : NULL;
            leat_decide_tail(log, &stream->logs[i].record, marks, &request->decisions[count++]);
            if (leaves && log.log + 1 == logs && stream->desc->settings.copies > 1)
                streamlet_leave(&stream->logs[i + 1 - logs], &request->decisions[count - logs],
                                logs);
        }
    }
    request->decision_count = count;
    return LEAT_OK;
}

/* ---- entries ---- */

/* Only a change needs a row: a log that waits keeps its state, and so does a log with a tail record. So a restart of
 * 100,000 idle logs is one small entry. */
static bool row_wanted(struct leat_machine *machine, const struct leat_log_decision *decision)
{
    if (decision->left) return decision->log.log == 0;
    if (decision->kind != LEAT_DECIDED_TAIL) return false;
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(machine, decision->log.stream);
    uint32_t i = decision->log.streamlet * stream->desc->settings.logs + decision->log.log;
    return stream->logs[i].record.opened;
}

/* The rows of one streamlet: `decisions` points to the first of its decisions, and every log has a decision. */
static uint32_t rows_wanted(struct leat_machine *machine, const struct leat_log_decision *decisions,
                            uint32_t *out_logs)
{
    uint32_t wanted = 0;
    *out_logs = leat_machine_stream_find(machine, decisions->log.stream)->desc->settings.logs;
    for (uint32_t q = 0; q < *out_logs; q++)
        wanted += row_wanted(machine, &decisions[q]);
    return wanted;
}

static void streamlet_write(struct leat_machine *machine, const struct leat_coordinate *request,
                            const struct leat_log_decision *decisions, uint32_t wanted,
                            struct leat_msg_writer *writer)
{
    struct leat_machine_stream *stream;
    for (uint32_t q = 0, written = 0; written < wanted; q++) {
        const struct leat_log_decision *it = &decisions[q];
        if (!row_wanted(machine, it)) continue;
        const struct leat_machine_log *log = leat_machine_log_find(machine, it->log, &stream);
        struct leat_assign_row row = {
            .log = it->log,
            .seen_owner = stream->desc->streamlets[it->log.streamlet].owner,
            .seen_epoch = stream->desc->streamlets[it->log.streamlet].epoch.v,
            .owner = request->incarnation,
            .rows = wanted,
            .seen_log_epoch = log->epoch.v,
            .seen_stamp = log->record.opened ? log->record.stamp_epoch.v : 0,
            .seen_version = log->record.opened ? log->record.stamp_version : 0,
            .decision = it->left ? LEAT_RECOVER_WAITS : LEAT_RECOVER_TAIL,
            .tail = it->tail};
        if (written++ == 0) leat_assign_streamlet_write(writer, &row);
        leat_assign_log_write(writer, &row);
    }
}

/* Write streamlets from *next on, as many as one entry takes. How many they are. */
static uint32_t streamlets_write(struct leat_machine *machine,
                                 const struct leat_coordinate *request, size_t *next,
                                 struct leat_msg_writer *rows)
{
    uint32_t count = 0, logs;
    for (; *next < request->decision_count; *next += logs) {
        const struct leat_log_decision *decisions = &request->decisions[*next];
        uint32_t wanted = rows_wanted(machine, decisions, &logs);
        if (wanted == 0) continue;
        if (rows->used + LEAT_ASSIGN_HEAD_BYTES_MAX + wanted * LEAT_ASSIGN_LOG_BYTES_MAX >
            LEAT_ADOPT_CHUNK_BYTES)
            break;
        streamlet_write(machine, request, decisions, wanted, rows);
        count++;
    }
    return count;
}

/* The most entries: each entry is filled, except for less than the space of a streamlet. */
static size_t chunks_most(struct leat_machine *machine, const struct leat_coordinate *request)
{
    const size_t streamlet = LEAT_ASSIGN_HEAD_BYTES_MAX + LEAT_LOGS_MAX * LEAT_ASSIGN_LOG_BYTES_MAX;
    size_t bytes = 0;
    uint32_t logs;
    for (size_t i = 0; i < request->decision_count; i += logs)
        bytes += LEAT_ASSIGN_HEAD_BYTES_MAX +
                 LEAT_ASSIGN_LOG_BYTES_MAX * rows_wanted(machine, &request->decisions[i], &logs);
    return bytes / (LEAT_ADOPT_CHUNK_BYTES - streamlet) + 1;
}

leat_err leat_adopt_encode(struct leat_machine *machine, const struct leat_coordinate *request,
                           uint64_t attempt, struct raft_buffer *commands, unsigned commands_max,
                           unsigned *out_count, uint8_t **out_bytes, struct leat_error *error)
{
    size_t chunk = LEAT_ADOPT_CHUNK_BYTES + 2 * LEAT_ASSIGN_HEAD_BYTES_MAX;
    size_t chunks = chunks_most(machine, request), next = 0;
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, chunks + 1, chunk);
    if (!bytes) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for an adoption");
    uint8_t *rows_bytes = bytes + chunks * chunk; /* one more, to build rows in */
    const struct leat_machine_node *node =
        leat_machine_incarnation_find(machine, request->incarnation);
    struct leat_assign_entry entry = {
        .reason = LEAT_ASSIGN_START, .incarnation = request->incarnation, .attempt = attempt};
    do {
        LEAT_ASSERT_CMP(entry.part, <, chunks);
        if (entry.part == commands_max) {
            leat_mem_free(bytes);
            return leat_error_set(error, LEAT_E_TOO_MANY, "an adoption of too many logs");
        }
        struct leat_msg_writer rows, writer;
        leat_msg_writer_init(&rows, rows_bytes, LEAT_ADOPT_CHUNK_BYTES);
        entry.streamlets = streamlets_write(machine, request, &next, &rows);
        const bool last = next == request->decision_count;
        if (last) entry.streamlets++; /* the rest */
        leat_msg_writer_init(&writer, bytes + entry.part * chunk, chunk);
        leat_assign_entry_write(&writer, &entry);
        leat_msg_write_raw(&writer, rows_bytes, rows.used);
        if (last)
            leat_assign_rest_write(&writer, request->incarnation,
                                   node ? leat_machine_seen(machine, node) : 0);
        LEAT_ASSERT(!writer.overflow && !rows.overflow);
        commands[entry.part] =
            (struct raft_buffer){.base = bytes + entry.part * chunk, .len = writer.used};
        entry.part++;
    } while (next < request->decision_count);
    *out_count = entry.part;
    *out_bytes = bytes;
    return LEAT_OK;
}
