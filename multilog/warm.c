/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a cold log: producer state, and the state of the application above, are read from the last segment's start
 * entry and the batches after it. Before that, soon after the start, the log reads whether segments are missing
 * before the first segment here. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "multilog/internal.h"

enum { BLOCK_BYTES = 4096 };

/* ---- bytes that the waking logs of a core share ---- */

void leat_restore_budget_init(struct leat_restore_budget *restore_budget, uint64_t bytes_max)
{
    *restore_budget = (struct leat_restore_budget){.bytes_max = bytes_max};
    leat_list_init(&restore_budget->waiting);
}

static bool restore_budget_fits(const struct leat_restore_budget *restore_budget, size_t bytes)
{
    return restore_budget->bytes_used == 0 ||
           restore_budget->bytes_used + bytes <= restore_budget->bytes_max;
}

/* SUBTLE: the first log in line steps again after each change of the line or of the bytes, so that no wake-up is
 * lost. In this step the log starts, goes on waiting for bytes in use (whose return comes through here), or leaves
 * the line (and comes through here). The log does not get the bytes here, because it may not want them any more. */
static void restore_budget_tell_first(struct leat_restore_budget *restore_budget)
{
    if (leat_list_empty(&restore_budget->waiting)) return;
    log_mark_dirty(LEAT_CONTAINER(restore_budget->waiting.next, struct leat_log, warm_link));
}

/* false: the log waits in line. No log overtakes another: a log with a large segment would wait for ever. */
static bool warm_bytes_take(struct leat_log *log, size_t bytes)
{
    struct leat_restore_budget *restore_budget = log->options.restore_budget;
    if (!restore_budget) return true;
    bool queued = !leat_list_empty(&log->warm_link);
    bool first = queued ? restore_budget->waiting.next == &log->warm_link
                        : leat_list_empty(&restore_budget->waiting);
    if (!first || !restore_budget_fits(restore_budget, bytes)) {
        if (!queued) leat_list_push_back(&restore_budget->waiting, &log->warm_link);
        return false;
    }
    restore_budget->bytes_used += bytes;
    log->warm_bytes = bytes;
    log_warm_leave(log);
    return true;
}

static void warm_bytes_give(struct leat_log *log)
{
    struct leat_restore_budget *restore_budget = log->options.restore_budget;
    leat_disk_read_free(&log->warm);
    if (!restore_budget) return;
    LEAT_ASSERT_CMP(restore_budget->bytes_used, >=, log->warm_bytes);
    restore_budget->bytes_used -= log->warm_bytes;
    log->warm_bytes = 0;
    restore_budget_tell_first(restore_budget);
}

/* Out of the line, where the log may not stand at all. */
void log_warm_leave(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (leat_list_empty(&log->warm_link)) return;
    leat_list_remove(&log->warm_link);
    restore_budget_tell_first(log->options.restore_budget);
}

/* ---- waking ---- */

/* SUBTLE: segments that are on their way here from other nodes are not given up because the last segment can't be
 * read. Else (1) the log is made with its last segment alone, which is damaged; (2) the log would begin there; (3)
 * older segments that come would be dropped at once, and segments that have not come would be dropped on every node. */
static void front_is_unreadable(struct leat_log *log)
{
    if (!log_front_is_unknown(log)) return;
    if (log_backfill_runs(log))
        log->first_segment = log->trim_segment = log->first_offset = log->trim_offset = 0;
    log_restored_enter(log, LOG_UNLOADED);
}

static void damaged_tell(const struct leat_log *log, const struct leat_segment *seg)
{
    const struct leat_log_ref *ref = &log->options.ref;
    leat_node_log_error(
        "log %u/%u/%u of %s takes no more appends: %s (store/%u at byte %llu); what is valid "
        "of it is read. Put that file back from a copy and restart; if that can't be: leat "
        "log recover %s --streamlet %u --log %u --accept-loss",
        ref->stream, ref->streamlet, ref->log, log->stream_name, log->why, seg->file_number,
        (unsigned long long)seg->file_offset, log->stream_name, ref->streamlet, ref->log);
}

static void warm_damaged(struct leat_log *log, const char *what)
{
    char why[LOG_WHY_BYTES];
    struct leat_segment *last = log_slot_at(log, log->slot_count - 1)->seg;
    const struct leat_log_events *events = &log->options.events;
    snprintf(why, sizeof why, "segment %llu is damaged: %s", (unsigned long long)last->id.v, what);
    front_is_unreadable(log);
    if (log->state != LEAT_LOG_SERVING) return; /* the log has a reason already */
    log_restored_enter(log, LOG_WARM);
    if (log->ending == LOG_LIVES && events->on_last_damaged &&
        events->on_last_damaged(log->options.owner, log, last)) {
        log_fail(log, LEAT_E_STARTING, why);
        return;
    }
    /* SUBTLE: an operator who has accepted the loss of the records after a segment can't accept more.
     *  1. The last segment is damaged, and the log takes no appends. Its loss is accepted: the log goes on after an
     *     offset gap.
     *  2. The log's last segment is still the damaged one, is read for the first append, and is damaged.
     *  3. If this stopped the log, each acceptance would be followed by the next.
     * So the log goes on, as a log without any segment left does; unreadable records are reported as in any other
     * segment. */
    if (log->jumped) {
        log->producers.lost = true;
        (void)log_slot_is_repaired(log, log_slot_at(log, log->slot_count - 1));
        return;
    }
    leat_log_set_state(log, LEAT_LOG_DAMAGED, why);
    (void)log_slot_is_repaired(log, log_slot_at(log, log->slot_count - 1));
    damaged_tell(log, last);
}

/* Segments below what an acked entry calls retained were about to be dropped: now they are. */
static void retained_note(struct leat_log *log, uint64_t segment, uint64_t offset)
{
    if (segment > log->next_segment || offset > log_acked(log)) return;
    if (segment > log->first_segment) {
        if (log->trim_segment < segment) log->trim_segment = segment;
        log->first_segment = segment;
    }
    log_begin_note(log, offset);
}

/* The last segment's start entry. */
static void begin_told_note(struct leat_log *log, const struct leat_start *start)
{
    if (start->first_offset <= log_acked(log)) log->begin_told = start->first_offset;
}

static leat_err start_decode(struct leat_log *log, const uint8_t *payload, uint32_t bytes)
{
    struct leat_start start;
    if (bytes < sizeof start) return LEAT_E_CORRUPT;
    memcpy(&start, payload, sizeof start);
    uint64_t left = bytes - sizeof start;
    uint64_t producer_bytes = (uint64_t)start.producer_count * sizeof(struct leat_producer_state);
    if (producer_bytes > left || left - producer_bytes < start.app_bytes) return LEAT_E_CORRUPT;
    leat_err rc = leat_producers_decode(
        &log->producers, payload + sizeof start, left,
        LEAT_BUG(START_WITHOUT_PRODUCERS) ? 0 : start.producer_count, start.producers_expired != 0);
    if (rc != LEAT_OK) return rc;
    begin_told_note(log, &start);
    retained_note(log, start.first_segment, start.first_offset);
    const struct leat_log_app *app = &log->options.app;
    if (app->ctx)
        app->on_restore(app->ctx, payload + sizeof start + producer_bytes, start.app_bytes);
    return LEAT_OK;
}

static leat_err batch_replay(struct leat_log *log, const struct leat_entry *entry,
                             const uint8_t *payload, int64_t now_ms)
{
    struct leat_batch batch;
    leat_err rc = leat_batch_view(payload, entry->payload_bytes, &batch);
    if (rc != LEAT_OK) return rc;
    rc = leat_producers_replay(&log->producers, &batch, entry->base_offset, now_ms);
    if (rc != LEAT_OK) return rc;
    const struct leat_log_app *app = &log->options.app;
    if (app->ctx) app->on_replay(app->ctx, &batch);
    return LEAT_OK;
}

/* The bytes have passed the scanner: lengths and payload CRCs are right. A failed allocation leaves
 * the log cold; the next try starts from the start entry again. */
static leat_err warm_replay(struct leat_log *log, const uint8_t *bytes, uint32_t count)
{
    /* A batch's time of arrival is not stored: its producer counts as used now, which keeps state rather too long
     * than too short. */
    int64_t now_ms = log->env->clock->wall_ms(log->env->clock->ctx);
    uint32_t at = 0;
    struct leat_trim trim;
    const struct leat_entry *entry;
    while ((entry = leat_entry_at(bytes, count, at)) != NULL) {
        const uint8_t *payload = bytes + at + LEAT_ENTRY_HEADER_BYTES;
        leat_err rc = LEAT_OK;
        if (entry->type == LEAT_ENTRY_START)
            rc = start_decode(log, payload, entry->payload_bytes);
        else if (entry->type == LEAT_ENTRY_BATCH)
            rc = batch_replay(log, entry, payload, now_ms);
        else if (entry->type == LEAT_ENTRY_TRIM && entry->payload_bytes == sizeof trim) {
            memcpy(&trim, payload, sizeof trim);
            retained_note(log, trim.first_segment, trim.first_offset);
        }
        if (rc != LEAT_OK) return rc;
        at += leat_entry_bytes(entry->payload_bytes);
    }
    return LEAT_OK;
}

/* Are these the recorded bytes of the last segment? If not, the log is damaged from here on. */
static bool warm_checked(struct leat_log *log, const uint8_t *bytes)
{
    const struct leat_segment *seg = log_slot_at(log, log->slot_count - 1)->seg;
    struct leat_scan scan;
    leat_scan_segment(bytes, seg->prefix_id.bytes, &scan);
    if (leat_scan_is(&scan, seg->prefix_id)) return true;
    warm_damaged(log, "its bytes do not match the recorded length and checksum");
    return false;
}

static void warm_from(struct leat_log *log, const uint8_t *bytes)
{
    const struct leat_segment *seg = log_slot_at(log, log->slot_count - 1)->seg;
    if (!warm_checked(log, bytes)) return;
    leat_err rc = warm_replay(log, bytes, seg->prefix_id.bytes);
    if (rc == LEAT_E_NO_MEMORY) {
        log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        return;
    }
    if (rc != LEAT_OK) {
        warm_damaged(log, "its start entry can't be understood");
        return;
    }
    log_restored_enter(log, LOG_WARM);
    if (log->options.app.ctx) log->options.app.on_read(log->options.app.ctx);
}

/* ---- the front: the first segments ----
 *
 * Segments of level `memory` may be gone after a power cut while later segments are there. The last segment's start
 * entry, or a trim entry after it, says which segment is the first retained one. If the first segment here is later,
 * the segments between are missing; a reader that begins at the earliest offset must be told. A log whose own end was
 * lost takes this from the last segment that is left, which may still call trimmed segments retained: such a log
 * reports too many missing segments rather than too few. A corrupt last segment says nothing, and the log serves all
 * records that it has. */

/* An operator gave up the missing segments, and no segment is on its way. */
static bool front_is_given_up(const struct leat_log *log)
{
    return log->jumped && !log_backfill_runs(log);
}

static void front_is(struct leat_log *log, uint64_t segment, uint64_t offset)
{
    const struct leat_segment *held = log_slot_at(log, 0)->seg;
    log_restored_enter(log, LOG_UNLOADED);
    if (segment >= held->id.v || offset >= held->base_offset || front_is_given_up(log)) {
        /* Nothing is missing; records may have been given up. */
        if (offset <= log_acked(log)) log_begin_note(log, offset);
        return;
    }
    if (log_trim_is_pending(log)) return; /* retention is past it already */
    log->first_segment = log->trim_segment = segment;
    log->first_offset = log->trim_offset = offset;
    log_gap_tell(log, 0);
}

static void front_from_whole(struct leat_log *log, const uint8_t *bytes)
{
    const struct leat_segment *seg = log_slot_at(log, log->slot_count - 1)->seg;
    if (!warm_checked(log, bytes)) return;
    struct leat_start start;
    struct leat_trim trim = {0}, first = {0};
    uint32_t at = 0;
    const struct leat_entry *entry;
    while ((entry = leat_entry_at(bytes, seg->prefix_id.bytes, at)) != NULL) {
        const uint8_t *payload = bytes + at + LEAT_ENTRY_HEADER_BYTES;
        if (entry->type == LEAT_ENTRY_START) {
            memcpy(&start, payload, sizeof start);
            begin_told_note(log, &start);
            first = (struct leat_trim){start.first_segment, start.first_offset};
        } else if (entry->type == LEAT_ENTRY_TRIM && entry->payload_bytes == sizeof trim) {
            memcpy(&trim, payload, sizeof trim);
            if (trim.first_segment > first.first_segment) first.first_segment = trim.first_segment;
            /* The trim entry's first segment may begin before the start entry's first offset. */
            if (trim.first_offset > first.first_offset) first.first_offset = trim.first_offset;
        }
        at += leat_entry_bytes(entry->payload_bytes);
    }
    front_is(log, first.first_segment, first.first_offset);
}

/* Where the start entry's payload begins; 0: there is none, or not its fixed part. */
static uint32_t start_at(const uint8_t *bytes, uint32_t count, struct leat_entry *out_entry)
{
    const struct leat_entry *entry = leat_entry_at(bytes, count, 0);
    if (!entry || entry->type != LEAT_ENTRY_SEGMENT) return 0;
    uint64_t at = leat_entry_bytes(entry->payload_bytes);
    uint64_t payload = at + LEAT_ENTRY_HEADER_BYTES;
    if (payload + sizeof(struct leat_start) > count) return 0;
    memcpy(out_entry, bytes + at, sizeof *out_entry);
    bool start = out_entry->type == LEAT_ENTRY_START &&
                 out_entry->payload_bytes >= sizeof(struct leat_start);
    return start ? (uint32_t)payload : 0;
}

uint32_t leat_log_start_end(const uint8_t *bytes, uint32_t count, uint32_t segment_bytes)
{
    struct leat_entry entry;
    uint32_t at = start_at(bytes, count, &entry);
    uint64_t end = (uint64_t)at + entry.payload_bytes;
    return at != 0 && end <= segment_bytes ? (uint32_t)end : 0;
}

bool leat_log_start_find(const uint8_t *bytes, uint32_t count, struct leat_start *out_start)
{
    struct leat_entry entry;
    uint32_t at = start_at(bytes, count, &entry);
    if (at == 0 || entry.payload_bytes > count - at ||
        leat_crc32c(0, bytes + at, entry.payload_bytes) != entry.crc)
        return false;
    memcpy(out_start, bytes + at, sizeof *out_start);
    return true;
}

/* Most logs have lost nothing, and their last segment's start entry says so. Else trim entries
 * after it count too.
 *
 * SUBTLE: it is believed only with its checksum, for which all of its table of producers has to be here.
 * (1) One bit of first_offset flips on this disk; (2) the log begins later than it does; (3) what is before
 * that goes with the next look at retention, on every node. */
static void front_from_block(struct leat_log *log, const uint8_t *bytes, uint32_t count)
{
    struct leat_start start;
    uint64_t held = log_slot_at(log, 0)->seg->id.v;
    uint32_t end = leat_log_start_end(bytes, count,
                                      log_slot_at(log, log->slot_count - 1)->seg->prefix_id.bytes);
    if (end > count) {
        log->front_bytes = end;
        return; /* read once more, so much */
    }
    if (leat_log_start_find(bytes, count, &start) &&
        (start.first_segment >= held || front_is_given_up(log))) {
        begin_told_note(log, &start);
        front_is(log, start.first_segment, start.first_offset);
    } else {
        log_restored_enter(log, LOG_FRONT_UNTOLD);
    }
}

/* ---- reading the last segment ---- */

/* How many bytes of the last segment may hold the start entry. */
static uint32_t front_wanted(const struct leat_log *log)
{
    uint32_t all = log_slot_at(log, log->slot_count - 1)->seg->prefix_id.bytes;
    uint32_t some = log->front_bytes ? log->front_bytes : BLOCK_BYTES;
    return some < all ? some : all;
}

static void on_warm_read(struct leat_disk_io *io)
{
    struct leat_log *log = io->owner;
    struct log_slot *last = log_slot_at(log, log->slot_count - 1);
    uint32_t wanted = last->seg->prefix_id.bytes;
    log->warming = false;
    last->file_reads--;
    if (log->restored == LOG_FRONT_UNKNOWN) wanted = front_wanted(log);
    if (io->rc != LEAT_OK)
        warm_damaged(log, "the disk failed to read it");
    else if (io->done_bytes < wanted)
        warm_damaged(log, "its file is too short");
    else if (log->restored == LOG_FRONT_UNKNOWN)
        front_from_block(log, io->buffer, wanted);
    else if (log_front_is_unknown(log))
        front_from_whole(log, io->buffer);
    else
        warm_from(log, io->buffer);
    warm_bytes_give(log);
    log_mark_dirty(log);
}

static void warm_read(struct leat_log *log, struct log_slot *last, uint32_t count)
{
    const struct leat_segment *seg = last->seg;
    size_t bytes = LEAT_ALIGN_UP((size_t)count, (size_t)BLOCK_BYTES);
    if (!warm_bytes_take(log, bytes + BLOCK_BYTES)) return;
    if (!leat_disk_read_reserve(&log->warm, LEAT_MEM_BROKER, count)) {
        warm_bytes_give(log);
        log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
        return;
    }
    log->warming = true;
    last->file_reads++;
    leat_disk_read_start(&log->warm, log->env->disk, seg->file, seg->file_offset, count,
                         on_warm_read, log);
}

/* Also of a log that waits or is damaged: it is read. */
static bool front_can_start(const struct leat_log *log)
{
    if (log->warming || log->ending != LOG_LIVES) return false;
    if (log_now(log) < log->reserve_not_before_us) return false;
    return !log_slot_at(log, log->slot_count - 1)->changing;
}

void log_step_front(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log_front_is_unknown(log)) return;
    if (!front_can_start(log)) {
        log_warm_leave(log);
        return;
    }
    struct log_slot *last = log_slot_at(log, log->slot_count - 1);
    if (last->seg->buffer) {
        log_warm_leave(log);
        front_from_block(log, last->seg->buffer, last->seg->prefix_id.bytes);
        if (log_front_is_unknown(log)) front_from_whole(log, last->seg->buffer);
    } else {
        warm_read(log, last,
                  log->restored == LOG_FRONT_UNTOLD ? last->seg->prefix_id.bytes
                                                    : front_wanted(log));
    }
}

static bool warm_can_start(const struct leat_log *log)
{
    if (!log_is_unloaded(log) || log->warming || log->ending != LOG_LIVES) return false;
    if (log->state != LEAT_LOG_SERVING) return false;
    if (!log->room_wanted && !log->options.app.ctx) return false;
    if (log_now(log) < log->reserve_not_before_us) return false;
    return !log_slot_at(log, log->slot_count - 1)->changing;
}

void log_step_warm(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log_front_is_unknown(log)) return;
    /* Only a log that lacks nothing but bytes waits in line: otherwise all later logs would wait too. */
    if (!warm_can_start(log)) {
        log_warm_leave(log);
        return;
    }
    struct log_slot *last = log_slot_at(log, log->slot_count - 1);
    if (last->seg->buffer) {
        log_warm_leave(log);
        warm_from(log, last->seg->buffer);
    } else {
        warm_read(log, last, last->seg->prefix_id.bytes);
    }
}
