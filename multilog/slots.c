/* SPDX-License-Identifier: Apache-2.0 */
/* The table of segments, and the readers that hold their bytes. */
#include <string.h>

#include "base/mem.h"
#include "multilog/internal.h"

uint32_t log_slot_from(const struct leat_log *log, uint64_t segment)
{
    uint32_t low = 0, high = log->slot_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (log_slot_at(log, middle)->seg->id.v < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct log_slot *log_slot_find(const struct leat_log *log, uint64_t segment)
{
    uint32_t at = log_slot_from(log, segment);
    if (at == log->slot_count || log_slot_at(log, at)->seg->id.v != segment) return NULL;
    return log_slot_at(log, at);
}

leat_err log_slots_reserve(struct leat_log *log, uint32_t count)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->slot_begin + log->slot_count + count <= log->slot_capacity) return LEAT_OK;
    if (log->slot_begin > log->slot_capacity / 2 && log->slot_begin >= count) {
        memmove(log->slots, log->slots + log->slot_begin, log->slot_count * sizeof *log->slots);
        log->slot_begin = 0;
        return LEAT_OK;
    }
    uint32_t capacity = log->slot_capacity ? log->slot_capacity * 2 : 4;
    void *slots = leat_mem_realloc(LEAT_MEM_LOG, log->slots, capacity, sizeof *log->slots);
    if (!slots) return LEAT_E_NO_MEMORY;
    log->slots = slots;
    log->slot_capacity = capacity;
    return LEAT_OK;
}

void log_slot_push(struct leat_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT_CMP(log->slot_begin + log->slot_count, <, log->slot_capacity);
    if (log->slot_count == 0) {
        log->first_segment = log->trim_segment = seg->id.v;
        log->first_offset = log->trim_offset = seg->base_offset;
    }
    log->slots[log->slot_begin + log->slot_count++] = (struct log_slot){
        .seg = seg, .given_up = seg->given_up, .front_given_up = seg->front_given_up};
    log->passed_look |= seg->passed_bytes > 0;
}

struct log_open *log_open_of(struct leat_log *log, const struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->head.seg == seg) return &log->head;
    if (log->old.seg == seg) return &log->old;
    return NULL;
}

static void on_unpinned(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_segment *seg = LEAT_CONTAINER(mail, struct leat_segment, unpinned);
    struct leat_log *log = seg->log_pointer;
    if (!log) return;
    struct log_slot *slot = log_slot_find(log, seg->id.v);
    LEAT_ASSERT(slot != NULL && slot->mail_due);
    slot->mail_due = false;
    log->evictions_wanted = true;
    log_mark_dirty(log);
}

void log_segment_own(struct leat_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    seg->log_pointer = log;
    seg->owner_actor = log->env->post->self;
    seg->post = log->env->post;
    seg->unpinned.deliver = on_unpinned;
}

/* SUBTLE: once the mail is due nothing is done with the segment before it has arrived.
 *  1. A reader holds the last pin; the bytes are wanted back, so `unpinned` is to be sent.
 *  2. The reader is done, on another thread: the mail is in the queue, the count is 0.
 *  3. Were the count looked at again now, DROP would free the descriptor that the queue points
 *     into. */
bool log_slot_is_unpinned(struct log_slot *slot)
{
    if (slot->mail_due) return false;
    if (!slot->seg->buffer || leat_segment_want_back(slot->seg)) return true;
    slot->mail_due = true;
    return false;
}
