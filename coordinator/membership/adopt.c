/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: decide for all logs, and put the decisions into entries. */
#include "coordinator/membership/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

/* A node that knows more than its coordinator has the wrong one, or one that forgot. */
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

/* SUBTLE: with copies on other nodes only a tail that is committed and whole here is adopted at once.
 * (1) The owner dies with bytes in its segment that nobody was promised, and starts anew. (2) It
 * adopts its own mark, which ends behind them, and that becomes the log's tail. (3) It dies again,
 * with its memory or its disk: nobody has that tail, and the log waits, although every other copy
 * holds all that was acknowledged. So where marks decide, the whole streamlet is left to recovery,
 * which sees to it that enough nodes hold what it decides; and so is one whose tail is missing
 * here, which others may have. That goes for what an operator left of a log, too: (1) loss is accepted; what is
 * left is here and on B. (2) This node's disk is replaced. (3) It adopts the log as one without segments, and
 * as its owner calls what B has one too many. */
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

static void row_write(struct leat_msg_writer *writer, const struct leat_log_decision *decision)
{
    leat_msg_write_array(writer, 8);
    leat_msg_write_log(writer, decision->log);
    leat_msg_write_u64(writer, (uint64_t)decision->kind);
    leat_tail_record_write(writer, &decision->tail);
}

/* Only what changes needs a row: a log that waits, or whose tail record stands, keeps what it has.
 * So a restart of 100,000 idle logs is one small entry. */
static bool row_wanted(struct leat_machine *machine, const struct leat_log_decision *decision)
{
    if (decision->left) return decision->log.log == 0;
    if (decision->kind != LEAT_DECIDED_TAIL) return false;
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(machine, decision->log.stream);
    uint32_t i = decision->log.streamlet * stream->desc->settings.logs + decision->log.log;
    return stream->logs[i].record.opened;
}

/* Fill rows from *next on, as many as one entry takes. */
static void rows_fill(struct leat_machine *machine, const struct leat_coordinate *request,
                      size_t *next, struct leat_msg_writer *rows)
{
    for (; *next < request->decision_count; (*next)++) {
        if (rows->used + LEAT_ADOPT_ROW_BYTES_MAX > LEAT_ADOPT_CHUNK_BYTES) return;
        if (row_wanted(machine, &request->decisions[*next]))
            row_write(rows, &request->decisions[*next]);
    }
}

leat_err leat_adopt_encode(struct leat_machine *machine, const struct leat_coordinate *request,
                           uint64_t attempt, bool leaves, struct raft_buffer *commands,
                           unsigned commands_max, unsigned *out_count, uint8_t **out_bytes,
                           struct leat_error *error)
{
    enum { HEAD_BYTES = 96 };
    size_t chunk = LEAT_ADOPT_CHUNK_BYTES + HEAD_BYTES;
    size_t chunks =
        request->decision_count * LEAT_ADOPT_ROW_BYTES_MAX / (LEAT_ADOPT_CHUNK_BYTES / 2) + 1;
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, chunks + 1, chunk);
    if (!bytes) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for an adoption");
    uint8_t *rows_bytes = bytes + chunks * chunk; /* one more, to build rows in */
    const struct leat_machine_node *node =
        leat_machine_incarnation_find(machine, request->incarnation);
    uint64_t seen = node ? leat_machine_seen(machine, node) : 0;
    size_t next = 0;
    unsigned count = 0;
    do {
        LEAT_ASSERT_CMP(count, <, chunks);
        if (count == commands_max) {
            leat_mem_free(bytes);
            return leat_error_set(error, LEAT_E_TOO_MANY, "an adoption of too many logs");
        }
        struct leat_msg_writer rows, writer;
        leat_msg_writer_init(&rows, rows_bytes, LEAT_ADOPT_CHUNK_BYTES);
        rows_fill(machine, request, &next, &rows);
        leat_msg_writer_init(&writer, bytes + count * chunk, chunk);
        leat_msg_write_array(&writer, 10);
        leat_msg_write_u64(&writer, LEAT_COMMAND_VERSION);
        leat_msg_write_u64(&writer, LEAT_COMMAND_ADOPT);
        leat_msg_write_u64(&writer, attempt);
        leat_msg_write_u64(&writer, count);
        leat_msg_write_bool(&writer, next == request->decision_count);
        leat_msg_write_u64(&writer, request->incarnation);
        leat_msg_write_u64(&writer, machine->changes);
        leat_msg_write_bin(&writer, rows_bytes, rows.used);
        leat_msg_write_u64(&writer, seen);
        leat_msg_write_bool(&writer, leaves);
        LEAT_ASSERT(!writer.overflow && !rows.overflow);
        commands[count] = (struct raft_buffer){.base = bytes + count * chunk, .len = writer.used};
        count++;
    } while (next < request->decision_count);
    *out_count = count;
    *out_bytes = bytes;
    return LEAT_OK;
}
