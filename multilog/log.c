/* SPDX-License-Identifier: Apache-2.0 */
/* A log's life, and the step that drives everything. */
#include "multilog/log.h"

#include <string.h>

#include "base/bug.h"
#include "base/mem.h"
#include "multilog/internal.h"

/* ---- life ---- */

static void take_segments(struct leat_log *log, struct leat_segment *const *segs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct leat_segment *seg = segs[i];
        LEAT_ASSERT_CMP(seg->state, ==, LEAT_SEGMENT_CLOSED);
        LEAT_ASSERT(i == 0 || segs[i - 1]->id.v < seg->id.v);
        log_segment_own(log, seg);
        log_slot_push(log, seg);
        log_slot_at(log, (uint32_t)i)->closed = true;
        log->closed_bytes += seg->prefix_id.bytes;
        if (seg->buffer) log->memory_bytes += seg->capacity;
        if (leat_segment_is_damaged(seg))
            (void)log_slot_is_repaired(log, log_slot_at(log, (uint32_t)i));
        uint64_t expected = i > 0 ? segs[i - 1]->next_offset : seg->base_offset;
        log->damage_look |= seg->base_offset != expected;
    }
}

static leat_err log_init(struct leat_log *log, const struct leat_log_options *options,
                         size_t seg_count)
{
    log->stream_name = leat_mem_strdup(LEAT_MEM_LOG, options->stream_name);
    if (!log->stream_name) return LEAT_E_NO_MEMORY;
    log->options.stream_name = log->stream_name;
    /* Half of a start entry belongs to the state of an application above. */
    uint32_t room = options->app.ctx ? LEAT_START_BYTES_MAX / 2 : LEAT_START_BYTES_MAX;
    uint32_t most =
        (room - (uint32_t)sizeof(struct leat_start)) / (uint32_t)sizeof(struct leat_producer_state);
    if (most > LEAT_PRODUCERS_PER_LOG_MAX) most = LEAT_PRODUCERS_PER_LOG_MAX;
    leat_err rc =
        leat_producers_init(&log->producers, most, log->env->random->next(log->env->random->ctx));
    if (rc != LEAT_OK) return rc;
    uint32_t capacity = (uint32_t)seg_count + 4;
    log->slots = leat_mem_calloc(LEAT_MEM_LOG, capacity, sizeof *log->slots);
    if (!log->slots) return LEAT_E_NO_MEMORY;
    log->slot_capacity = capacity;
    return LEAT_OK;
}

leat_err leat_log_create(const struct leat_env *env, const struct leat_store_port *store_port,
                         struct leat_timers *timers, const struct leat_log_options *options,
                         struct leat_segment *const *segs, size_t seg_count,
                         const struct leat_log_tail *tail, struct leat_log **out_log)
{
    LEAT_ASSERT(options->durability != LEAT_DURABILITY_DEFAULT);
    struct leat_log *log = leat_mem_calloc(LEAT_MEM_LOG, 1, sizeof *log);
    if (!log) return LEAT_E_NO_MEMORY;
    log->env = env;
    log->store_port = *store_port;
    log->timers = timers;
    log->options = *options;
    leat_list_init(&log->waiting);
    leat_list_init(&log->trims);
    leat_list_init(&log->stalled_reads);
    leat_list_init(&log->warm_link);
    leat_err rc = log_init(log, options, seg_count);
    if (rc != LEAT_OK) {
        leat_log_destroy(&log);
        return rc;
    }
    log->next_segment = tail->next_segment;
    log->next_offset = tail->next_offset;
    log->first_segment = log->trim_segment = tail->next_segment;
    log->first_offset = log->trim_offset = tail->next_offset;
    if (!tail->jumped) log->previous = tail->previous;
    take_segments(log, segs, seg_count);
    atomic_init(&log->acked_offset, tail->next_offset);
    if (seg_count == 0) log->begin_told = log->first_offset;
    log->jumped = log->front_accepted = tail->jumped;
    /* The first segment of all was started when nothing had been given up yet. */
    bool first = seg_count > 0 && segs[seg_count - 1]->id.v == 0;
    log->restored = seg_count == 0 ? LOG_WARM : first ? LOG_UNLOADED : LOG_FRONT_UNKNOWN;
    /* SUBTLE: after an accepted loss the log may have no producer state left, and still takes no producer in the
     * middle of its sequences. Else (1) batches 7 and 8 are under way, the log waits, both are refused; (2) the loss
     * is accepted; (3) batch 8 comes again, before 7. A producer that begins anew, under its next epoch, sends both
     * in order. */
    log->producers.lost = seg_count == 0 && tail->next_segment > 0;
    if (seg_count == 0 && options->remade) log->producers.expired = true;
    log->gathered_us = log_now(log);
    log->backfill = tail->backfill_follows ? LOG_BACKFILL_FOLLOWS : LOG_BACKFILL_NONE;
    log->holes = tail->holes;
    log->damage_look |= seg_count == 0 || log_front_is_unknown(log) || tail->backfill_follows ||
                        segs[seg_count - 1]->next_offset != tail->next_offset;
    *out_log = log;
    /* An application with state in the log waits for this state, not for the first append. */
    if ((log_is_unloaded(log) && log->options.app.ctx) || log_front_is_unknown(log))
        log_mark_dirty(log);
    return LEAT_OK;
}

void leat_log_destroy(struct leat_log **log_pointer)
{
    struct leat_log *log = *log_pointer;
    if (!log) return;
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT(log_is_quiet(log) && leat_list_empty(&log->waiting));
    LEAT_ASSERT(leat_list_empty(&log->stalled_reads) && leat_list_empty(&log->trims));
    log_warm_leave(log);
    for (uint32_t i = 0; i < log->slot_count; i++)
        log_slot_at(log, i)->seg->log_pointer = NULL;
    leat_index_destroy(&log->next_index);
    leat_index_destroy(&log->head.index);
    leat_index_destroy(&log->old.index);
    leat_producers_fini(&log->producers);
    leat_disk_read_free(&log->warm);
    leat_mem_free(log->slots);
    leat_mem_free(log->stream_name);
    leat_mem_free(log);
    *log_pointer = NULL;
}

/* ---- state ---- */

void leat_log_settings_set(struct leat_log *log, const struct leat_stream_settings *settings)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT_CMP(settings->logs, ==, log->options.settings.logs);
    log->options.settings = *settings;
}

void leat_log_opened(struct leat_log *log, leat_err rc)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    bool again = leat_err_class(rc) == LEAT_CLASS_RETRY;
    LEAT_ASSERT(log->opened == LOG_OPENING);
    log_opened_enter(log, rc == LEAT_OK ? LOG_OPENED : again ? LOG_OPENING_PAUSED : LOG_UNOPENED);
    if (rc == LEAT_E_UNKNOWN_STREAM && log->state != LEAT_LOG_STOPPED)
        log_state_enter(log, LEAT_LOG_STOPPED, rc,
                        "the stream was deleted"); /* leat_log_delete() follows: no fault */
    else if (rc != LEAT_OK && !again)
        log_fail(log, rc, "the coordinator did not accept this owner's first segment");
    log_mark_dirty(log);
}

/* ---- the step ---- */

static void tell_opening(struct leat_log *log)
{
    if (log->opened != LOG_UNOPENED || log->ending == LOG_DELETING || !log->head.seg ||
        log->state != LEAT_LOG_SERVING)
        return;
    if (log->head.safe_bytes < log->head.start_end) return;
    log_opened_enter(log, LOG_OPENING);
    log->options.events.on_opening(log->options.owner, log);
}

static void tell_room(struct leat_log *log)
{
    if (!log->room_wanted) return;
    bool refused = log->state != LEAT_LOG_SERVING || log->ending != LOG_LIVES ||
                   log_place_refusal(log, false) != LEAT_OK;
    bool fits =
        !log_is_unloaded(log) && !log->producers_wanted && log_head_fits(log, log->room_bytes);
    if (!refused && !fits) return;
    log->room_wanted = false;
    log->room_bytes = 0;
    log->options.events.on_room(log->options.owner, log);
}

void log_step(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    /* Events call back into the log; what they gather is for the next turn's step. */
    if (log->in_step || log->resting) return;
    log->in_step = true;
    log_step_front(log);
    log_step_warm(log);
    log_step_trim(log);
    log_step_begin(log);
    log_step_seal(log);
    log_step_resume(log);
    log_step_room(log);
    log_step_close(log); /* a start entry that has become safe lets N's close trailer be written */
    log_step_safe(log);
    log_step_close(log);
    tell_opening(log);
    if (log->state == LEAT_LOG_STOPPED) {
        log_step_ack(log);
        log_fail_waiting(log, log->stopped_rc);
    } else {
        log_step_ack(log);
    }
    log_step_trimmed(log);
    log_step_begun(log);
    log_step_skip(log);
    log_step_drop(log);
    log_step_reads(log);
    tell_room(log);
    log->in_step = false;
    /* A trim entry that had no room waits for no event but this. */
    bool due = log_trim_is_due(log);
    if (LEAT_BUG(DELETED_ASKS_ON) && log->ending == LOG_DELETING)
        due = log_trim_is_pending(log) && !log->trim_written && log->state == LEAT_LOG_SERVING &&
              log_head_fits(log, sizeof(struct leat_trim));
    if (due) log_mark_dirty(log);
    log_step_end(log); /* may be the last the log hears */
}

void leat_log_turn_end(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log->dirty = log->clocks_read = false;
    log_step(log);
}

/* ---- info ---- */

void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    uint64_t groups = 0, first_group = log_group_of(log->first_segment);
    uint64_t end_segment = log->first_segment;
    if (log->slot_count) {
        end_segment = log_slot_at(log, log->slot_count - 1)->seg->id.v + 1;
        groups = log_group_of(end_segment - 1) - first_group + 1;
    }
    *out_info = (struct leat_log_info){
        .state = log->state,
        .why = log->why,
        .first_offset = log->first_offset,
        .acked_offset = log_acked(log),
        .next_offset = log->next_offset,
        .bytes = log->closed_bytes + (log->head.seg ? log->head.writer.used : 0) +
                 (log->old.seg ? log->old.writer.used : 0),
        .memory_bytes = log->memory_bytes,
        .first_segment = log->first_segment,
        .segment_count = log->slot_count,
        .first_group = first_group,
        .group_count = groups,
        .end_segment = end_segment,
        .producers = log->producers.count,
        .unloaded = log_is_unloaded(log),
        .epoch = log->options.epoch,
        .ref = log->options.ref,
        .appended_records = log->appended_records,
        .appended_bytes = log->appended_bytes,
    };
    if (!log_front_is_missing(log) || log_older_come(log)) return;
    const struct leat_segment *held = log_slot_at(log, 0)->seg;
    out_info->missing_segments = held->id.v - log->first_segment;
    out_info->missing_end = held->base_offset;
}

uint64_t leat_log_offsets_lost(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    uint64_t lost = 0, at = log->first_offset, acked = log_acked(log);
    for (uint32_t i = 0; i < log->slot_count && at < acked; i++) {
        const struct log_slot *slot = log_slot_at(log, i);
        uint64_t base = slot->seg->base_offset, end = slot->closed ? slot->seg->next_offset : acked;
        bool comes = log_older_come(log) && (i == 0 || log->holes);
        if (base > at && !comes) lost += (base < acked ? base : acked) - at;
        if (base > at) at = base;
        if (end > at) at = end;
    }
    return at < acked ? lost + acked - at : lost;
}

static leat_err group_find(const struct leat_log *log, uint64_t group, uint64_t *out_first,
                           uint64_t *out_end)
{
    uint64_t id = group * LEAT_SEGMENTS_PER_GROUP;
    if (id + LEAT_SEGMENTS_PER_GROUP <= log->first_segment) return LEAT_E_NOT_FOUND;
    if (id < log->first_segment) id = log->first_segment;
    uint32_t first = log_slot_from(log, id);
    uint32_t end = log_slot_from(log, (group + 1) * LEAT_SEGMENTS_PER_GROUP);
    if (first == end && end < log->slot_count) {
        /* The whole group is missing: it has ended where the next group that is here begins. */
        *out_first = *out_end = log_slot_at(log, end)->seg->base_offset;
        return LEAT_OK;
    }
    if (first == end) {
        /* No segment of the group yet: only the group of the next segment exists already. */
        if (log->head.seg || log_group_of(log->next_segment) != group) return LEAT_E_NOT_FOUND;
        *out_first = log->next_offset;
        *out_end = UINT64_MAX;
        return LEAT_OK;
    }
    *out_first = log_slot_at(log, first)->seg->base_offset;
    /* While the roll is under way a crash may still move the boundary. */
    bool settled =
        end < log->slot_count && !(log->old.seg && log_slot_at(log, end)->seg == log->head.seg);
    if (!settled && end == log->slot_count && !log->head.seg &&
        log_group_of(log->next_segment) > group)
        *out_end = log->next_offset;
    else
        *out_end = settled ? log_slot_at(log, end)->seg->base_offset : UINT64_MAX;
    return LEAT_OK;
}

leat_err leat_log_group(const struct leat_log *log, uint64_t group, uint64_t *out_first,
                        uint64_t *out_end)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    leat_err rc = group_find(log, group, out_first, out_end);
    if (rc != LEAT_OK) return rc;
    if (*out_first < log->first_offset) *out_first = log->first_offset;
    if (*out_end < log->first_offset) *out_end = log->first_offset;
    return LEAT_OK;
}

uint64_t leat_log_acked_offset(const struct leat_log *log)
{
    return atomic_load_explicit(&log->acked_offset, memory_order_acquire);
}

uint64_t leat_log_head_segment(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log->head.seg ? log->head.seg->id.v : log->next_segment;
}
