/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log begins, and what retention gives up. */
#include "base/bug.h"
#include "multilog/internal.h"

bool log_trim_is_pending(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log->trim_segment != log->first_segment;
}

void log_begin_note(struct leat_log *log, uint64_t offset)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->first_offset < offset) log->first_offset = offset;
    if (log->trim_offset < log->first_offset) log->trim_offset = log->first_offset;
}

/* SUBTLE: a time that can't be right is not believed: what its producer left out (-1) would go at once, and what
 * lies in the future would stay for ever. Such records count from when they came, as Kafka counts what has no time
 * from when its file was written. Where this server's own clock was wrong then, times of records are right later. */
static bool time_is_over(const struct leat_log *log, int64_t newest_ms, int64_t written_ms,
                         int64_t now_ms)
{
    int64_t retention_ms = log->options.settings.retention_ms;
    bool known = newest_ms >= 0 && newest_ms <= now_ms;
    if (!known && written_ms == 0) return false;
    return retention_ms > 0 && (known ? newest_ms : written_ms) < now_ms - retention_ms;
}

static bool segment_has_expired(const struct leat_log *log, const struct leat_segment *seg,
                                int64_t now_ms, uint64_t bytes)
{
    const struct leat_stream_settings *settings = &log->options.settings;
    /* SUBTLE: a segment without records, too, expires by the time when it was written. If such a segment was dropped
     * at once, all segments before it would be given up, also segments that have not come from other nodes yet. */
    if (time_is_over(log, seg->max_timestamp_ms, seg->written_ms, now_ms)) return true;
    if (settings->retention_ms > 0 && seg->base_offset == seg->next_offset && LEAT_BUG(EMPTY_GOES))
        return true;
    /* The newest retention_bytes stay: otherwise a log of one large segment would lose all its records. */
    return settings->retention_bytes > 0 &&
           bytes - (LEAT_BUG(SIZE_TAKES_LAST) ? 0 : seg->prefix_id.bytes) >=
               (uint64_t)settings->retention_bytes;
}

/* Segments before this segment may still come, with records that no operator gave up. */
static bool is_behind_a_hole(const struct leat_log *log, uint32_t at)
{
    if (!log->holes || at == 0) return false;
    const struct log_slot *slot = log_slot_at(log, at);
    return slot->seg->id.v != log_slot_at(log, at - 1)->seg->id.v + 1 &&
           slot->joint != LOG_JOINT_JUMPED && slot->seg->base_offset > log->first_offset;
}

/* SUBTLE: trim up to a hole, not over it. Nodes drop the replicas of trimmed segments.
 *  1. The row of segment 4 is damaged, and no node with segment 4 is up. Segments 0 to 3 expire, and segment 5 does
 *     not.
 *  2. If the log began with segment 5, no node would look for segment 4 again, though segment 4 has not expired. */
void log_trim_to(struct leat_log *log, uint32_t count)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct leat_segment *first = log_slot_at(log, count)->seg;
    const struct leat_segment *last = log_slot_at(log, count - 1)->seg;
    bool hole = is_behind_a_hole(log, count);
    log->trim_segment = hole ? last->id.v + 1 : first->id.v;
    log->trim_offset = hole ? last->next_offset : first->base_offset;
}

/* Drops whole closed segments, the oldest first. The last segment stays unless a head follows it: its start entry has
 * the producers' state.
 *
 * SUBTLE: nothing is dropped before the log knows where it begins.
 *  1. A log starts with segments 1 and 2; segment 0 is on other nodes. Until the log's beginning is read, the log
 *     begins with segment 1.
 *  2. Segment 1 was closed without a record: no record of it lies after the log's beginning, so it may go.
 *  3. The log begins with segment 2, and the acked records of segment 0 are dropped on every node. */
void log_retain(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log_front_is_unknown(log) && !LEAT_BUG(FRONT_GIVEN_UP)) return;
    if (log_trim_is_pending(log) || log->old.seg) return;
    int64_t now_ms = log->env->clock->wall_ms(log->env->clock->ctx);
    /* SUBTLE: only acked bytes count. Bytes that are not acked may be gone after a crash; if they counted, retention
     * would drop as many acked bytes too many. */
    uint64_t bytes = log->closed_bytes + (log->head.seg ? log->head.acked_bytes : 0);
    uint32_t count = 0;
    while (count < log->slot_count) {
        const struct log_slot *slot = log_slot_at(log, count);
        if (!slot->closed || is_behind_a_hole(log, count)) break;
        /* A log that was trimmed to its end, after a start: else each start would roll it once more. */
        bool last = count + 1 == log->slot_count;
        if (last && slot->seg->base_offset == slot->seg->next_offset) break;
        bool given_up = slot->seg->next_offset <= log->first_offset;
        if (!given_up && !segment_has_expired(log, slot->seg, now_ms, bytes)) break;
        bytes -= slot->seg->prefix_id.bytes;
        count++;
    }
    if (count == 0) return;
    if (count == log->slot_count) {
        log->trim_segment = log->next_segment;
        log->trim_offset = log->next_offset;
    } else {
        log_trim_to(log, count);
    }
    log_begin_note(log, log->first_offset);
}

/* A log that is written no more would keep its last records for ever: retention drops closed
 * segments only. */
bool log_head_has_expired(const struct leat_log *log, int64_t now_ms)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct log_open *head = &log->head;
    return head->seg && !log->old.seg && log_is_opened(log) && head->record_count > 0 &&
           head->acked_bytes == head->writer.used &&
           time_is_over(log, head->max_timestamp_ms, log->gathered_wall_ms, now_ms);
}
