/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up the oldest records: whole segments by retention, records before an offset by request, lost segments by an
 * operator. */
#include "base/bug.h"
#include "base/crc32c.h"
#include "multilog/internal.h"

/* ---- whole segments ----
 * The trim entry is acked before anything is freed: after a crash nothing that a start or trim
 * entry calls retained may be missing. */

static void write_trim(struct leat_log *log)
{
    struct leat_trim trim = {log->trim_segment, log->trim_offset};
    (void)leat_entry_append(&log->head.writer, LEAT_ENTRY_TRIM, 0, 0, &trim, sizeof trim,
                            leat_crc32c(0, &trim, sizeof trim));
    log->trim_written = true;
    log->trim_ack_segment = log->head.seg->id.v;
    log->trim_ack_bytes = log->head.writer.used;
}

static bool is_wanted(const struct leat_log *log)
{
    return log_trim_is_pending(log) && !log->trim_written && log->state == LEAT_LOG_SERVING &&
           log->ending != LOG_DELETING;
}

/* SUBTLE: what asks for another step has to be what that step does.
 *  1. Retention wants a trim entry, and the stream is deleted in the same turn.
 *  2. There is room for the entry, and none is written any more.
 *  3. Were a step asked for as there is room, and the next one, the turn would never end: what deletes the log is
 *     answered in a later one. */
bool log_trim_is_due(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return is_wanted(log) && log_head_fits(log, sizeof(struct leat_trim));
}

void log_step_trim(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log_trim_is_due(log)) {
        write_trim(log);
    } else if (is_wanted(log) && !log_is_stopping(log) && !log->room_wanted) {
        log->room_wanted = true;
        /* A cold log wakes first, and log_step_warm() has run already: step again. Not while the disk is full: the
         * request is refused at once then, and the turn would never end. */
        bool wakes = log_is_unloaded(log) && log_now(log) >= log->reserve_not_before_us;
        if (wakes || LEAT_BUG(FULL_ASKS_ON)) log_mark_dirty(log);
    }
}

void log_step_trimmed(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log->trim_written || log->state != LEAT_LOG_SERVING || log->ending == LOG_DELETING) return;
    const struct log_open *open = log->old.seg ? &log->old : &log->head;
    bool acked =
        open->seg->id.v > log->trim_ack_segment ||
        (open->seg->id.v == log->trim_ack_segment && open->acked_bytes > log->trim_ack_bytes);
    if (!acked && !LEAT_BUG(TRIM_BEFORE_ACK)) return;
    log->first_segment = log->trim_segment;
    log->trim_written = false;
    log_begin_note(log, log->trim_offset);
    if (leat_list_empty(&log->trims)) return;
    /* A full disk, or heap, gets space now: see begin_without_space(). */
    log->reserve_not_before_us = log->memory_not_before_us = 0;
    log_mark_dirty(log);
}

/* ---- records before an offset ----
 *
 * The log's last start entry says where the log begins: after a restart one block is enough to know it. So a request
 * to begin later makes the head roll, and is done once the start entry of N+1 is as safe as an append and N is
 * closed. Only a trim entry has what retention has dropped meanwhile, and a restart does not look at it before the
 * first append: so a request is compared with begin_told. Then segments without records that are left go by a trim
 * entry, as by retention.
 *
 * SUBTLE: the start entry names the new offset, and no later first segment than the entry before. If N+1's start
 * entry named N+1 as the first segment, N could be dropped while N+1 holds nothing but its start entry. A recovery
 * asks for the predecessor of such a segment, would find none, and wait for it. */

leat_err leat_log_trim_before(struct leat_log *log, struct leat_log_trim *trim,
                              struct leat_error *error)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    leat_err rc = log_refusal(log, error);
    if (rc != LEAT_OK) return rc;
    if (trim->before == UINT64_MAX) trim->before = log_acked(log);
    if (trim->before > log_acked(log))
        return leat_error_set(error, LEAT_E_OFFSET_OUT_OF_RANGE,
                              "offset %llu is past the log's end, %llu",
                              (unsigned long long)trim->before, (unsigned long long)log_acked(log));
    leat_list_push_back(&log->trims, &trim->link);
    log_mark_dirty(log);
    return LEAT_OK;
}

static uint64_t begin_wanted(const struct leat_log *log)
{
    uint64_t wanted = 0;
    LEAT_LIST_EACH(&log->trims, it)
    {
        const struct leat_log_trim *trim = LEAT_CONTAINER(it, struct leat_log_trim, link);
        if (trim->before > wanted) wanted = trim->before;
    }
    return wanted;
}

void log_begin_take(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    uint64_t wanted = begin_wanted(log);
    log->begin_written = true;
    log->begin_offset = wanted > log->first_offset ? wanted : log->first_offset;
    log->begin_segment = log->next_segment;
}

/* A full disk, or heap, has no room for the segment that would say it. The head may have some for a trim entry,
 * which frees whole segments. */
static void begin_without_space(struct leat_log *log, uint64_t wanted)
{
    uint32_t count = 0;
    while (count + 1 < log->slot_count && log_slot_at(log, count)->closed &&
           log_slot_at(log, count)->seg->next_offset <= wanted)
        count++;
    if (count == 0 || !log_head_fits(log, sizeof(struct leat_trim))) return;
    log_trim_to(log, count);
    if (log->trim_offset > wanted) log->trim_offset = wanted;
}

void log_step_begin(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (leat_list_empty(&log->trims) || log_front_is_unknown(log) || log->begin_written) return;
    if (log->state != LEAT_LOG_SERVING || log->ending != LOG_LIVES) return;
    uint64_t wanted = begin_wanted(log);
    if (wanted <= log->begin_told) return;
    if (log_place_refusal(log, true) != LEAT_OK) {
        if (!log_trim_is_pending(log)) begin_without_space(log, wanted);
        return;
    }
    log->roll_wanted = true;
    if (!log_is_unloaded(log) || log->room_wanted) return;
    log->room_wanted = true; /* a cold log wakes first */
    log_mark_dirty(log);
}

static bool begin_is_acked(const struct leat_log *log)
{
    const struct log_open *head = &log->head;
    return !log->old.seg && head->seg && head->seg->id.v >= log->begin_segment &&
           head->acked_bytes >= head->start_end;
}

static void trims_answer(struct leat_log *log, leat_err refusal)
{
    struct leat_list waiting;
    struct leat_list *link;
    leat_list_init(&waiting);
    while ((link = leat_list_pop_front(&log->trims)) != NULL)
        leat_list_push_back(&waiting, link);
    while ((link = leat_list_pop_front(&waiting)) != NULL) {
        struct leat_log_trim *trim = LEAT_CONTAINER(link, struct leat_log_trim, link);
        bool done = trim->before <= log->begin_told && !log_front_is_unknown(log);
        if (!done && refusal == LEAT_OK) {
            leat_list_push_back(&log->trims, link);
            continue;
        }
        trim->first_offset = log->first_offset;
        trim->on_done(trim, done ? LEAT_OK : refusal);
    }
}

void log_step_begun(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (leat_list_empty(&log->trims) && !log->begin_written) return;
    if (log->begin_written && begin_is_acked(log)) {
        bool later = log->begin_offset > log->first_offset;
        log->begin_written = false;
        log->begin_told = log->begin_offset;
        log_begin_note(log, log->begin_offset);
        if (later) {
            log_retain(log);
            log_mark_dirty(log); /* the trim entry */
        }
    }
    leat_err refusal = log_refusal(log, NULL);
    bool waits = log->begin_written || log_trim_is_pending(log);
    if (refusal == LEAT_OK && !waits) refusal = log_place_refusal(log, true);
    trims_answer(log, refusal);
}

/* ---- lost segments before the log's first ---- */

void leat_log_skip_missing(struct leat_log *log, void (*on_done)(void *arg, struct leat_log *log),
                           void *arg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT(log->skip == LOG_SKIP_NONE);
    log_skip_enter(log, LOG_SKIP_FRONT);
    log_damage_name(log);
    log->on_skipped = on_done;
    log->on_skipped_arg = arg;
    log_mark_dirty(log);
}

/* SUBTLE: only what was known to be missing when the operator accepted the loss is given up (log_damage_name()).
 *  1. A log came to a new owner with its last segment. Its older segments are on their way, and missing here.
 *  2. An operator says that bytes which a start has passed over were seen: "all of it is kept".
 *  3. If the missing segments were given up, all older segments would go, on every node.
 * The same holds for segments that turn out to be lost while the store notes another place, and for a log that has
 * not read yet where it begins. true: missing first segments are being given up. */
static bool front_skip(struct leat_log *log)
{
    if (!log_front_is_missing(log)) return false;
    const struct log_slot *first = log_slot_at(log, 0);
    if (!(first->named & LOG_NAMED_FRONT) && !LEAT_BUG(UNNAMED_GIVEN_UP)) return false;
    if (log_trim_is_pending(log)) return true;
    log->trim_segment = first->seg->id.v;
    log->trim_offset = first->seg->base_offset;
    log_mark_dirty(log);
    return true;
}

/* SUBTLE: a loss that is accepted while memory is still looked at is of the damaged last segment, too.
 *  1. An append finds the last segment damaged, and is refused. This node's memory is looked at for the segment.
 *  2. An operator accepts the loss before memory has answered: the segment does not count as lost yet.
 *  3. If nothing of the segment was given up then, readers would meet the damage after (2), and so would each start.
 * A log with copies does not wait: other nodes may be asked for long, and their bytes may still come after (2). */
static bool last_is_looked_for(const struct leat_log *log)
{
    return log->options.settings.copies < 2 &&
           log_slot_is_sought(log_slot_at(log, log->slot_count - 1));
}

void log_step_skip(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->skip == LOG_SKIP_NONE) return;
    bool writable = log->state == LEAT_LOG_SERVING && log->ending == LOG_LIVES;
    if (log->skip == LOG_SKIP_FRONT) {
        if (writable && front_skip(log)) return;
        log_skip_enter(log, LOG_SKIP_GOES);
    }
    if (log->skip == LOG_SKIP_ASKED) return;
    bool last = log->state == LEAT_LOG_DAMAGED && log->ending == LOG_LIVES;
    if (last && last_is_looked_for(log)) return;
    if ((writable || last) && log->skip == LOG_SKIP_GOES && log_damage_give_up(log)) return;
    log_skip_enter(log, LOG_SKIP_NONE);
    log->on_skipped(log->on_skipped_arg, log);
}
