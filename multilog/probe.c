/* SPDX-License-Identifier: Apache-2.0 */
#include "multilog/probe.h"

#include "multilog/internal.h"

void leat_log_see(const struct leat_log *log, struct leat_log_seen *out_seen)
{
    const struct log_open *head = &log->head, *old = &log->old;
    *out_seen = (struct leat_log_seen){
        .state = log->state,
        .opened = log_is_opened(log),
        .opening_paused = log->opened == LOG_OPENING_PAUSED,
        .front_unknown = log_front_is_unknown(log),
        .older_come = log_older_come(log),
        .damage_look = log->damage_look,
        .place_rc = log->reserve_rc,
        .segment_count = log->slot_count,
        .head = head->seg,
        .old = old->seg,
        .head_records = head->record_count,
        .head_acked = head->acked_bytes == head->writer.used,
        .safe_offset = old->seg ? old->safe_offset : head->safe_offset,
        .appends_wait = !leat_list_empty(&log->waiting),
        .acked_offset = log_acked(log),
        .next_offset = log->next_offset,
        .trim_segment = log->trim_segment,
    };
    for (uint32_t i = 0; log->damage_look && i < log->slot_count; i++)
        out_seen->refused |= log_slot_is_refused(log, log_slot_at(log, i));
}

static struct leat_log_segment_seen slot_see(const struct log_slot *slot)
{
    return (struct leat_log_segment_seen){slot->seg, slot->closed, slot->dropping};
}

struct leat_log_segment_seen leat_log_see_segment(const struct leat_log *log, uint32_t index)
{
    return slot_see(log_slot_at(log, index));
}

struct leat_log_segment_seen leat_log_see_id(const struct leat_log *log, uint64_t segment)
{
    const struct log_slot *slot = log_slot_find(log, segment);
    return slot ? slot_see(slot) : (struct leat_log_segment_seen){0};
}

bool leat_log_see_producer(const struct leat_log *log, uint32_t *at, int64_t *out_id,
                           int32_t *out_first_sequence)
{
    const struct leat_producers *producers = &log->producers;
    if (producers->expired || producers->count == 0) return false;
    while (*at <= producers->slot_mask) {
        const struct leat_producer_state *state = &producers->slots[(*at)++];
        if (state->producer_id < 0) continue;
        *out_id = state->producer_id;
        *out_first_sequence = state->first_sequence;
        return true;
    }
    return false;
}

void leat_log_first_lose(struct leat_log *log)
{
    struct log_slot *slot = log_slot_at(log, 0);
    leat_segment_damage_found(slot->seg);
    slot->repair = LOG_REPAIR_LOST;
    log->damage_look = true;
}

void leat_log_last_lose(struct leat_log *log)
{
    leat_log_set_state(log, LEAT_LOG_DAMAGED, "its last segment is damaged");
}

void leat_log_first_pass(struct leat_log *log, uint32_t bytes)
{
    log_slot_at(log, 0)->seg->passed_bytes = bytes;
    log->passed_look = true;
}
