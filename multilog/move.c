/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that change their owner: where the log ends; how it gives its segments up; how older segments come, one after
 * the other, to the new owner, which serves already. */
#include <string.h>

#include "base/bug.h"
#include "base/node_log.h"
#include "multilog/internal.h"

/* ---- at the old owner ---- */

/* The prefix of a segment that is safe: it ends with a trailer. */
static struct leat_prefix_id safe_prefix_id(const struct log_open *open)
{
    struct leat_entry trailer;
    if (open->safe_bytes == open->writer.used)
        return (struct leat_prefix_id){open->writer.used, open->writer.chain};
    memcpy(&trailer, open->seg->buffer + open->safe_bytes - sizeof trailer, sizeof trailer);
    LEAT_ASSERT_CMP(trailer.type, ==, LEAT_ENTRY_TRAILER);
    return (struct leat_prefix_id){open->safe_bytes, trailer.crc};
}

/* SUBTLE: a log that a failed flush has stopped ends where it is safe, not at the last written batch.
 *  1. X drains a log of two copies, X and B. The flush of the last batches fails at X, so they are not acked; B has
 *     these batches, or a part of them.
 *  2. If the log ended after these batches, B would serve the log, and the batches would be read, and answered as
 *     duplicates. They are on B's disk alone; batches that B has not got are in X's memory alone.
 *  3. This disk is lost, or X's power. All batches that were ever acked are on the disks of X and other nodes, but
 *     the committed end is not, and no segment there leads to it: all older segments count as missing with it. */
static void safe_end(const struct leat_log *log, struct leat_log_tail *out_tail)
{
    const struct log_open *open = &log->head;
    if (log->old.seg) {
        open = &log->old; /* nothing after it was acked: ack.c, rule R2 */
    } else if (open->safe_bytes < open->start_end) {
        *out_tail = (struct leat_log_tail){.next_segment = open->seg->id.v,
                                           .previous = log->previous,
                                           .next_offset = open->seg->base_offset,
                                           .jumped = log_slot_at(log, log->slot_count - 1)->joint ==
                                                     LOG_JOINT_JUMPED};
        return;
    }
    *out_tail = (struct leat_log_tail){.next_segment = open->seg->id.v + 1,
                                       .previous = safe_prefix_id(open),
                                       .next_offset = open->safe_offset};
}

void leat_log_end(const struct leat_log *log, struct leat_log_tail *out_tail)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct log_open *head = &log->head;
    *out_tail = (struct leat_log_tail){.next_segment = log->next_segment,
                                       .previous = log->previous,
                                       .next_offset = log->next_offset,
                                       .jumped = log->jumped && !head->seg};
    if (!head->seg) return;
    struct leat_log_tail safe = *out_tail;
    if (log->state == LEAT_LOG_STOPPED) safe_end(log, &safe);
    out_tail->next_segment = head->seg->id.v + 1;
    out_tail->previous = (struct leat_prefix_id){head->writer.used, head->writer.chain};
    if (log->state == LEAT_LOG_STOPPED &&
        (safe.next_offset == out_tail->next_offset || !LEAT_BUG(ENDS_UNSAFE)))
        *out_tail = safe;
}

void leat_log_release(struct leat_log *log, void (*on_released)(void *arg, struct leat_log *log),
                      void *arg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log_ending_enter(log, LOG_RELEASING, on_released, arg);
}

bool log_release_goes_on(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    /* Whether the new owner has them it knows best: its answer to the same batch says so. */
    log_fail_waiting(log, LEAT_E_STALE_EPOCH);
    log_drop_next(log);
    if (log->next || !log_is_quiet(log) || !leat_list_empty(&log->stalled_reads)) return false;
    bool all = true;
    for (uint32_t i = 0; i < log->slot_count; i++)
        all &= log_slot_is_unpinned(log_slot_at(log, i));
    return all;
}

struct leat_segment *leat_log_segment_pop(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT(log->ending == LOG_RELEASING);
    if (log->slot_count == 0) return NULL;
    struct leat_segment *seg = log_slot_at(log, log->slot_count - 1)->seg;
    log->slot_count--;
    seg->log_pointer = NULL;
    return seg;
}

size_t leat_log_closed(const struct leat_log *log, struct leat_segment **out)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    size_t count = 0;
    for (uint32_t i = 0; i < log->slot_count; i++)
        if (log_slot_at(log, i)->closed) out[count++] = log_slot_at(log, i)->seg;
    return count;
}

/* ---- at the new owner ---- */

leat_err leat_log_segment_add(struct leat_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT_CMP(seg->state, ==, LEAT_SEGMENT_CLOSED);
    if (log->ending == LOG_DELETING || log->ending == LOG_RELEASING ||
        seg->id.v >= log->next_segment)
        return LEAT_E_NOT_OWNER;
    /* SUBTLE: no segment is added before the log knows what is retained. Else (1) the log is made with its last
     * segment alone, which counts as the first so far; (2) an older segment is added; (3) the older segment lies
     * before the first, as if it were trimmed, and is dropped. */
    if (log_front_is_unknown(log)) return LEAT_E_AGAIN;
    uint32_t at = log_slot_from(log, seg->id.v);
    if (at < log->slot_count && log_slot_at(log, at)->seg->id.v == seg->id.v) return LEAT_E_EXISTS;
    /* One slot more: a reservation under way has been promised its slot. */
    leat_err rc = log_slots_reserve(log, 2);
    if (rc != LEAT_OK) return rc;
    /* From here on nothing fails. Pointers into the table are never kept over a turn. */
    struct log_slot *slots = log->slots + log->slot_begin;
    memmove(slots + at + 1, slots + at, (log->slot_count - at) * sizeof *slots);
    slots[at] = (struct log_slot){.seg = seg,
                                  .closed = true,
                                  .given_up = seg->given_up,
                                  .front_given_up = seg->front_given_up};
    log->slot_count++;
    log->passed_look |= seg->passed_bytes > 0;
    /* The store's event that the segment is flushed, if there was one, was lost on the way here. */
    if (!seg->buffer) seg->flushed = true;
    log_segment_own(log, seg);
    log->closed_bytes += seg->prefix_id.bytes;
    if (seg->buffer) log->memory_bytes += seg->capacity;
    if (leat_segment_is_damaged(seg)) (void)log_slot_is_repaired(log, &slots[at]);
    log_mark_dirty(log); /* reads may wait for this segment */
    return LEAT_OK;
}

uint64_t leat_log_first_retained(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log_front_is_unknown(log) ? 0 : log->first_segment;
}

bool leat_log_front_known(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return !log_front_is_unknown(log);
}

void leat_log_older_done(struct leat_log *log, bool node_down)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log->older_node_down = node_down;
    if (!log_backfill_runs(log)) return;
    if (log_front_is_missing(log) && log->backfill == LOG_BACKFILL_FOLLOWS)
        leat_node_log_error(
            "log %u/%u/%u of %s: segment %llu is on no node that is up: reads in front of segment "
            "%llu wait",
            log->options.ref.stream, log->options.ref.streamlet, log->options.ref.log,
            log->stream_name, (unsigned long long)log_slot_at(log, 0)->seg->id.v - 1,
            (unsigned long long)log_slot_at(log, 0)->seg->id.v);
    log_backfill_enter(log, LOG_BACKFILL_LOOKED);
    log->damage_look = true;
    log_mark_dirty(log);
}

void leat_log_front_give_up(struct leat_log *log, bool jumped)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if ((!log->front_accepted && !jumped) || log_front_is_unknown(log) ||
        !log_front_is_missing(log) || log_trim_is_pending(log))
        return;
    const struct leat_segment *held = log_slot_at(log, 0)->seg;
    leat_node_log_warn(
        "log %u/%u/%u of %s: segments %llu to %llu went with what an operator gave up",
        log->options.ref.stream, log->options.ref.streamlet, log->options.ref.log, log->stream_name,
        (unsigned long long)log->first_segment, (unsigned long long)held->id.v - 1);
    log->first_segment = log->trim_segment = held->id.v;
    if (held->base_offset > log->first_offset)
        log->first_offset = log->trim_offset = held->base_offset;
    log_mark_dirty(log);
}

void leat_log_older_again(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->ending != LOG_LIVES || log_backfill_runs(log)) return;
    bool looked = log->backfill == LOG_BACKFILL_LOOKED;
    log_backfill_enter(log, looked ? LOG_BACKFILL_AGAIN : LOG_BACKFILL_FOLLOWS);
}

bool leat_log_reads_wait(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return !leat_list_empty(&log->stalled_reads);
}

void leat_log_reads_expire(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log->reads_expire = true;
    log_mark_dirty(log);
}

const struct leat_segment *leat_log_first_held(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log->slot_count ? log_slot_at(log, 0)->seg : NULL;
}

const struct leat_segment *leat_log_held(const struct leat_log *log, uint64_t segment)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct log_slot *slot = log_slot_find(log, segment);
    return slot ? slot->seg : NULL;
}

/* ---- holes between segments ---- */

bool leat_log_hole_find(const struct leat_log *log, uint64_t below, struct leat_log_hole *out_hole)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    for (uint32_t i = log_slot_from(log, below); i-- > 1;) {
        const struct log_slot *slot = log_slot_at(log, i);
        uint64_t first = log_slot_at(log, i - 1)->seg->id.v + 1;
        if (!slot->closed || slot->seg->id.v == first || slot->joint == LOG_JOINT_JUMPED) continue;
        *out_hole = (struct leat_log_hole){slot->seg, first};
        return true;
    }
    return false;
}

void leat_log_hole_jumped(struct leat_log *log, uint64_t behind)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, behind);
    if (slot) slot->joint = LOG_JOINT_JUMPED;
}

void leat_log_holes_end(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log->holes = false;
}
