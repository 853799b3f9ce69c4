/* SPDX-License-Identifier: Apache-2.0 */
/* Closed segments whose bytes in this node's file are not the recorded ones: other nodes have whole replicas, as a
 * rule. The log's owner fetches these; this file has the state of the log meanwhile. Bytes in memory, if there are
 * any, are right. */
#include "multilog/internal.h"

bool log_slot_is_repaired(struct leat_log *log, struct log_slot *slot)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct leat_log_events *events = &log->options.events;
    if (log_slot_is_sought(slot)) return true;
    leat_segment_damage_found(slot->seg); /* no node may copy from it */
    log->damage_look = true;
    if (!events->on_damaged || LEAT_BUG(ROT_STAYS)) {
        log_slot_repair_enter(slot, LOG_REPAIR_LOST);
        return false;
    }
    if (log_now(log) < slot->repair_not_before_us) return false;
    leat_err rc = events->on_damaged(log->options.owner, slot->seg);
    if (rc == LEAT_OK)
        log_slot_repair_enter(slot,
                              log_slot_is_lost(slot) ? LOG_REPAIR_LOST_SOUGHT : LOG_REPAIR_SOUGHT);
    else if (rc == LEAT_E_NOT_FOUND)
        log_slot_repair_enter(slot, LOG_REPAIR_LOST);
    else
        log->unsought = true;
    return rc != LEAT_E_NOT_FOUND;
}

/* SUBTLE: a damaged segment whose bytes could not be asked for is asked for again, whether it is read or not.
 *  1. The scrub finds segment 5 damaged while no memory is left to ask for its bytes.
 *  2. Nobody reads segment 5, and no copy of it is made meanwhile, as its bytes here are damaged.
 *  3. The nodes with the other copies are lost, one after the other. */
void log_repairs_ask(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log->unsought) return;
    log->unsought = false;
    for (uint32_t i = 0; !log->unsought && i < log->slot_count; i++) {
        struct log_slot *slot = log_slot_at(log, i);
        if (slot->repair == LOG_REPAIR_NONE && slot->closed && !slot->dropping && !slot->given_up &&
            leat_segment_is_damaged(slot->seg))
            (void)log_slot_is_repaired(log, slot);
    }
}

bool leat_log_on_damaged(struct leat_log *log, const struct leat_segment *seg, bool told)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, seg->id.v);
    if (!slot || slot->seg != seg || !slot->closed || slot->dropping) return false;
    slot->damage_told |= told; /* readers that find the damage again add no line */
    (void)log_slot_is_repaired(log, slot);
    return log_slot_is_lost(slot);
}

static bool is_over(const struct leat_log *log)
{
    return log->ending != LOG_LIVES || log->resting;
}

struct leat_segment *leat_log_repair_begin(struct leat_log *log, struct leat_segment_id segment,
                                           struct leat_prefix_id prefix_id)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, segment.v);
    if (is_over(log) || !slot || !log_slot_is_sought(slot) || slot->dropping) return NULL;
    /* The segment was given up while its bytes were written, and is asked for again: one writes at a time. */
    if (slot->repair_held) return NULL;
    struct leat_segment *seg = slot->seg;
    if (!leat_prefix_id_equal(seg->prefix_id, prefix_id)) return NULL;
    /* As a read of its file does. */
    slot->file_reads++;
    log->reads_in_flight++;
    slot->repair_held = true;
    return seg;
}

/* SUBTLE: a read of a segment whose repair the disk refuses does not wait for the next attempt.
 *  1. A fetch is for two logs. A segment of the first log is damaged here, and the disk is full.
 *  2. The read of this segment waits for 10 s, and the second log's records with it. The client's patience ends
 *     before that.
 *  3. The client asks again for both logs, and so on: the second log, which is whole, can't be read. */
bool leat_log_repair_end(struct leat_log *log, struct leat_segment_id segment, leat_err rc)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, segment.v);
    LEAT_ASSERT(slot != NULL && slot->file_reads > 0 && slot->repair_held);
    slot->repair_held = false;
    slot->file_reads--;
    log->reads_in_flight--;
    if (rc == LEAT_OK) {
        log_slot_repair_enter(slot, LOG_REPAIR_NONE);
        slot->damage_told = false;
        leat_segment_integrity_enter(slot->seg, LEAT_INTEGRITY_OK);
        slot->seg->flushed = true;       /* a start may have found the segment not flushed */
        slot->joint = LOG_JOINT_UNKNOWN; /* not known while the bytes were damaged */
    }
    if (rc == LEAT_E_INVALID) leat_log_repair_give_up(log, segment);
    bool over = rc == LEAT_OK || rc == LEAT_E_INVALID;
    /* The disk refused to write the bytes: this node's memory, or another node, has them. */
    if (!over && rc != LEAT_E_NOT_FOUND && log_slot_is_sought(slot)) {
        log_slot_repair_enter(slot, LOG_REPAIR_REFUSED);
        log->damage_look = true;
    }
    log_mark_dirty(log);
    return over;
}

void leat_log_repair_give_up(struct leat_log *log, struct leat_segment_id segment)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, segment.v);
    if (!slot) return;
    log_slot_repair_enter(slot, LOG_REPAIR_LOST);
    log->damage_look = true;
    slot->repair_not_before_us = log_now(log) + LEAT_LOG_REPAIR_AGAIN_US;
    log_mark_dirty(log);
}
