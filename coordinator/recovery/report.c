/* SPDX-License-Identifier: Apache-2.0 */
/* What the leader knows of recoveries, for operators: sent to all nodes, so that an operator can ask any node. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "coordinator/recovery/attempt.h"

enum {
    ROW_BYTES = 256 + 32,
    REPORT_BYTES = 512 + LEAT_RECOVERY_WAITING_MAX * ROW_BYTES,
    TELL_AGAIN_US = 1000 * 1000,
};

/* Rows of logs that wait are large, and mostly few: only waiting_rows of them are written and copied. */
static void report_clear(struct leat_recovery_report *out)
{
    memset(out, 0, offsetof(struct leat_recovery_report, waiting));
}

static void report_copy(struct leat_recovery_report *to, const struct leat_recovery_report *from)
{
    size_t rows_bytes = from->waiting_rows * sizeof *from->waiting;
    memcpy(to, from, offsetof(struct leat_recovery_report, waiting) + rows_bytes);
}

static void own_fill(struct leat_coordinator *coordinator, struct leat_recovery_report *out)
{
    const struct co_recovery *it = co_recovery_of(coordinator);
    out->known = true;
    out->ended = it->fruitful;
    out->last = it->last;
    if (it->phase != LEAT_RECOVERY_NONE) out->now = co_recovery_status(coordinator);
    out->waiting_count = it->waiting_count;
    out->waiting_rows = it->waiting_count < LEAT_RECOVERY_WAITING_MAX ? it->waiting_count
                                                                      : LEAT_RECOVERY_WAITING_MAX;
    memcpy(out->waiting, it->waiting, out->waiting_rows * sizeof *out->waiting);
}

static void report_send(struct leat_coordinator *coordinator,
                        const struct leat_recovery_report *report)
{
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, REPORT_BYTES);
    if (!bytes) return; /* told again */
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, REPORT_BYTES);
    struct co_report_said said = {report->ended, report->now, report->last, report->waiting_count,
                                  report->waiting_rows};
    co_report_said_write(&writer, &said);
    for (uint32_t i = 0; i < report->waiting_rows; i++) {
        const struct leat_recovery_waiting *row = &report->waiting[i];
        co_waiting_said_write(
            &writer, &(struct co_waiting_said){row->log, {row->why, (uint32_t)strlen(row->why)}});
    }
    LEAT_ASSERT(!writer.overflow);
    co_peers_tell(coordinator, CO_KIND_RECOVERY, bytes, writer.used); /* and again later */
    leat_mem_free(bytes);
}

void co_report_tell(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it || !co_leads(coordinator)) return;
    uint64_t now_us = co_now(coordinator);
    bool same = it->told.attempt == it->attempt && it->told.ended == it->attempts &&
                it->told.phase == it->phase && it->told.waits == it->waiting_count;
    /* Also for a first report: other nodes may have a report about waiting logs from an earlier run of this node. */
    bool idle = it->attempts == 0 && it->phase == LEAT_RECOVERY_NONE;
    if (same && ((idle && LEAT_BUG(EARLIER_REPORT_STAYS)) || now_us < it->told.us + TELL_AGAIN_US))
        return;
    it->told.attempt = it->attempt;
    it->told.ended = it->attempts;
    it->told.phase = it->phase;
    it->told.waits = it->waiting_count;
    it->told.us = now_us;
    struct leat_recovery_report *report =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *report); /* large */
    if (!report) return;
    own_fill(coordinator, report);
    report_send(coordinator, report);
    leat_mem_free(report);
}

static bool rows_read(struct leat_msg_reader *reader, struct leat_recovery_report *out)
{
    if (reader->failed || out->waiting_rows > LEAT_RECOVERY_WAITING_MAX) return false;
    for (uint32_t i = 0; i < out->waiting_rows; i++) {
        struct leat_recovery_waiting *row = &out->waiting[i];
        struct co_waiting_said said;
        (void)co_waiting_said_read(reader, &said);
        if (reader->failed || said.why.bytes >= sizeof row->why) return false;
        row->log = said.log;
        memcpy(row->why, said.why.text, said.why.bytes);
        row->why[said.why.bytes] = 0;
    }
    return true;
}

void co_report_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                    const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it || !co_same_cluster(coordinator, peer)) return;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    struct leat_recovery_report *out = &it->heard;
    struct co_report_said said;
    uint32_t left = co_report_said_read(&reader, &said);
    out->ended = said.ended;
    out->now = said.now;
    out->last = said.last;
    out->waiting_count = said.waiting;
    out->waiting_rows = said.rows;
    if (!rows_read(&reader, out) || !leat_msg_read_end(&reader, left)) {
        report_clear(out);
        leat_link_cut(co_peer_link(peer), LEAT_E_INVALID, "a malformed report of recoveries");
        return;
    }
    out->known = true;
    it->heard_from = co_peer_voter_id(peer);
}

void co_report_fill(struct leat_coordinator *coordinator, struct leat_recovery_report *out)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct co_recovery *it = co_recovery_of(coordinator);
    report_clear(out);
    if (!it) return;
    if (co_leads(coordinator)) {
        own_fill(coordinator, out);
    } else {
        const struct co_peer *leader = co_peer_leader(coordinator);
        if (leader && co_peer_voter_id(leader) == it->heard_from) report_copy(out, &it->heard);
    }
    if (LEAT_BUG(WAITS_UNTOLD)) out->waiting_count = out->waiting_rows = 0;
    for (uint32_t i = 0; i < out->waiting_rows; i++) {
        struct leat_recovery_waiting *row = &out->waiting[i];
        const struct leat_machine_stream *stream =
            leat_machine_stream_find(co_tables(coordinator), row->log.stream);
        snprintf(row->stream, sizeof row->stream, "%s", stream ? stream->desc->name : "");
    }
}
