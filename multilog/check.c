/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions about a log between two turns, whatever came in the turn before. */
#include "multilog/internal.h"

/* How many rows of the table are looked at: in slow builds all, in other builds the rows that are written to. */
#ifdef LEAT_SLOW_CHECKS
enum { ROWS_LOOKED_AT = 1 << 20 };
#else
enum { ROWS_LOOKED_AT = 2 };
#endif

static void row_check(const struct leat_log *log, uint32_t i)
{
    const struct log_slot *slot = log_slot_at(log, i);
    const struct leat_segment *seg = slot->seg;
    LEAT_ASSERT(seg != NULL && seg->log_pointer == log);
    LEAT_ASSERT(!slot->evicting || slot->closed);
    LEAT_ASSERT(slot->repair == LOG_REPAIR_NONE || slot->closed);
    LEAT_ASSERT(slot->closed != (seg == log->head.seg || seg == log->old.seg));
    /* A segment that is written to is whole: a torn tail counts no more once its segment is written on. */
    LEAT_ASSERT(slot->closed || seg->integrity == LEAT_INTEGRITY_OK);
    /* Not their offsets: offsets of closed segments were read from files at a start, and a forged file may say
     * anything. */
    if (slot->closed && i + 1 < log->slot_count)
        LEAT_ASSERT_CMP(seg->id.v, <, log_slot_at(log, i + 1)->seg->id.v);
}

/* The store changes a segment while `changing`: then the sums are not known. */
static void sums_check(const struct leat_log *log)
{
    uint64_t closed_bytes = 0, memory_bytes = log->next ? log->next->capacity : 0;
    uint32_t reads = 0;
    for (uint32_t i = 0; i < log->slot_count; i++) {
        const struct log_slot *slot = log_slot_at(log, i);
        if (slot->changing) return;
        if (slot->closed) closed_bytes += slot->seg->prefix_id.bytes;
        if (slot->seg->buffer) memory_bytes += slot->seg->capacity;
        reads += slot->file_reads;
    }
    LEAT_ASSERT_CMP(closed_bytes, ==, log->closed_bytes);
    LEAT_ASSERT_CMP(memory_bytes, ==, log->memory_bytes);
    LEAT_ASSERT_CMP(reads, ==, log->reads_in_flight + log->warming);
}

static void table_check(const struct leat_log *log)
{
    uint32_t count = log->slot_count;
    for (uint32_t i = count > ROWS_LOOKED_AT ? count - ROWS_LOOKED_AT : 0; i < count; i++)
        row_check(log, i);
    if (count > 0) LEAT_ASSERT_CMP(log_slot_at(log, count - 1)->seg->id.v, <, log->next_segment);
    if (log->head.seg) LEAT_ASSERT(count > 0 && log_slot_at(log, count - 1)->seg == log->head.seg);
    if (count <= ROWS_LOOKED_AT) sums_check(log);
}

/* Acked bytes are safe, safe bytes are sealed, sealed bytes were written. */
static void open_check(const struct leat_log *log, const struct log_open *open)
{
    if (open->seg == NULL) return;
    LEAT_ASSERT_CMP(open->acked_bytes, <=, open->safe_bytes);
    LEAT_ASSERT_CMP(open->safe_bytes, <=, open->writer.sealed_bytes);
    LEAT_ASSERT_CMP(open->writer.sealed_bytes, <=, open->writer.used);
    LEAT_ASSERT_CMP(open->safe_offset, <=, open->sealed_offset);
    LEAT_ASSERT_CMP(open->sealed_offset, <=, log->next_offset);
    for (unsigned i = 0; i < open->seal_count; i++)
        LEAT_ASSERT_CMP(open->seals[i].bytes, >=, i ? open->seals[i - 1].bytes : open->safe_bytes);
}

static void offsets_check(const struct leat_log *log)
{
    const struct log_open *upto = log->old.seg ? &log->old : &log->head;
    LEAT_ASSERT_CMP(log->first_offset, <=, log_acked(log));
    LEAT_ASSERT_CMP(log_acked(log), <=, upto->seg ? upto->sealed_offset : log->next_offset);
    LEAT_ASSERT_CMP(log->first_segment, <=, log->trim_segment);
    LEAT_ASSERT_CMP(log->trim_segment, <=, log->next_segment);
    LEAT_ASSERT(!log->trim_written || log_trim_is_pending(log));
}

/* The step that acks an offset answers the appends that wait for the offset. */
static void waiting_check(const struct leat_log *log)
{
    if (leat_list_empty(&log->waiting)) return;
    const struct leat_append *first =
        LEAT_CONTAINER(log->waiting.next, const struct leat_append, waiting);
    LEAT_ASSERT(log->dirty ||
                (first->ack_position > log_acked(log) && log->state != LEAT_LOG_STOPPED));
}

static void requests_check(const struct leat_log *log)
{
    for (unsigned i = 0; i < log->commit_count; i++) {
        const struct leat_segment *seg =
            log->commits[(log->commit_first + i) % LOG_COMMITS_MAX].req.seg;
        LEAT_ASSERT(seg == log->head.seg || seg == log->old.seg);
    }
    LEAT_ASSERT(!log->next || (!log->reserving && log->next->id.v == log->next_segment));
    LEAT_ASSERT(log->hibernating == LOG_AWAKE ||
                (log->head.seg && !log->old.seg && log->commit_count == 0));
    LEAT_ASSERT(log->opened == LOG_UNOPENED || log->head.seg);
    LEAT_ASSERT(log->restored == LOG_WARM || !log->head.seg);
    LEAT_ASSERT(!log->warming || log_is_unloaded(log));
}

void leat_log_check(const struct leat_log *log, bool queued)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT(!log->in_step);
    LEAT_ASSERT_CMP(log->dirty, ==, queued);
    LEAT_ASSERT(!log->on_end || log->ending != LOG_LIVES);
    if (log->ending == LOG_DELETING || (log->resting && log->ending == LOG_RELEASING))
        return; /* the segments go one by one */
    LEAT_ASSERT(!log->old.seg || log->head.seg);
    table_check(log);
    open_check(log, &log->head);
    open_check(log, &log->old);
    offsets_check(log);
    waiting_check(log);
    requests_check(log);
}
