/* SPDX-License-Identifier: Apache-2.0 */
/* Reading acked batches: from memory at once, from the file by one or two reads. */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/bytes.h"
#include "base/node_log.h"
#include "multilog/read.h"

enum {
    BLOCK_BYTES = 4096,
    READ_AHEAD_BYTES = LEAT_INDEX_EVERY_BYTES + 4 * BLOCK_BYTES,
};
enum read_phase { PHASE_NONE, PHASE_INDEX, PHASE_WINDOW, PHASE_JOINT, PHASE_FRONT };

static struct leat_target target_of(const struct leat_read *read)
{
    struct leat_target target = {
        .offset = read->from.v, .position = read->position.position, .time_ms = read->time_ms};
    target.kind = read->by_time       ? LEAT_TARGET_TIME
                  : read->by_position ? LEAT_TARGET_POSITION
                                      : LEAT_TARGET_OFFSET;
    return target;
}

/* The end of what is acked, as a position that stays an entry boundary for ever. */
struct leat_position log_end_position(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct log_open *open = log->old.seg ? &log->old : &log->head;
    uint64_t segment = open->seg ? open->seg->id.v : log->next_segment;
    return (struct leat_position){log_group_of(segment), segment,
                                  open->seg ? open->acked_bytes : 0};
}

static leat_err read_end(struct leat_read *read, leat_err rc)
{
    read->rc = rc;
    read->phase = PHASE_NONE;
    return LEAT_OK;
}

static leat_err read_nothing(struct leat_log *log, struct leat_read *read)
{
    read->next.v = log_acked(log);
    read->next_position = read->by_position ? read->position : log_end_position(log);
    return read_end(read, LEAT_OK);
}

/* ---- places that readers come back to ----
 * The index of a closed segment is not kept in memory: it takes up to 8 KiB for each. With the place where a sequential
 * reader stopped, its next answer needs one read of the file; an answer from elsewhere needs two. */

static void hint_put(struct leat_log *log, const struct leat_read *read)
{
    if (read->iov_count == 0) return;
    struct log_hint hint = {read->next_position.segment, read->next.v,
                            read->next_position.position};
    for (unsigned i = 0; i < LOG_HINTS; i++) {
        struct log_hint *known = &log->hints[i];
        /* The same reader has moved on. */
        if (known->segment != hint.segment || known->offset != read->from.v) continue;
        *known = hint;
        return;
    }
    log->hints[log->hint_next++ % LOG_HINTS] = hint;
}

/* Exact hits only: a walk from elsewhere is bounded by the index alone. */
static uint32_t hint_find(const struct leat_log *log, uint64_t segment,
                          const struct leat_target *target)
{
    for (unsigned i = 0; i < LOG_HINTS; i++) {
        const struct log_hint *hint = &log->hints[i];
        if (hint->segment != segment || hint->position == 0) continue;
        if (target->kind == LEAT_TARGET_OFFSET
                ? hint->offset == target->offset
                : target->kind == LEAT_TARGET_POSITION && hint->position == target->position)
            return hint->position;
    }
    return 0;
}

/* ---- one segment ---- */

static leat_err read_step(struct leat_log *log, struct leat_read *read);

/* Nothing is left to read in this segment: the read goes on in the next segment. A read by position ends with its
 * segment group: its reader may not own the next group.
 *
 * SUBTLE: a member of a parallel group had read all of a group while the group's last segment was open. Its next read
 * began at the end of the closed segment, and brought records of the next group, which another member owns. */
static leat_err read_on(struct leat_log *log, struct leat_read *read,
                        const struct leat_segment *seg)
{
    uint64_t next = seg->id.v + 1;
    struct leat_position place = {log_group_of(next), next, 0};
    bool left = read->by_position && place.group != read->position.group;
    if (left && !LEAT_BUG(INTO_NEXT_GROUP)) {
        read->next.v = seg->next_offset;
        read->next_position = place;
        return read_end(read, LEAT_OK);
    }
    read->from.v = seg->next_offset;
    read->position = place;
    return read_step(log, read);
}

/* The segment's file was read, and is not as it should be: are other nodes asked for the segment? The read does not
 * wait here, because it has one of the few buffers. */
static bool is_repaired(struct leat_log *log, struct log_slot *slot)
{
    return slot->closed && !slot->seg->buffer && log_slot_is_repaired(log, slot);
}

static leat_err read_damaged(struct leat_log *log, struct leat_read *read, uint32_t at)
{
    struct log_slot *slot = log_slot_find(log, read->segment);
    if (slot->closed && slot->given_up) return read_on(log, read, slot->seg);
    if (is_repaired(log, slot)) return read_end(read, LEAT_E_STARTING);
    if (!slot->damage_told)
        leat_node_log_error("log %u/%u/%u of %s: segment %llu is damaged at %u",
                            log->options.ref.stream, log->options.ref.streamlet,
                            log->options.ref.log, log->stream_name,
                            (unsigned long long)read->segment, at);
    slot->damage_told = true;
    log_read_place_set(read, at);
    if (slot->closed) read->next.v = slot->seg->next_offset;
    return read_end(read, LEAT_E_DAMAGED);
}

/* The records that are there end before the next segment begins, and the log does not know that an operator gave up
 * the records between. */
static bool ends_short(const struct leat_log *log, const struct log_slot *slot)
{
    const struct log_slot *after = log_slot_find(log, slot->seg->id.v + 1);
    return slot->closed && after && after->joint != LOG_JOINT_JUMPED && !after->front_given_up &&
           after->seg->base_offset > slot->seg->next_offset;
}

static leat_err joint_look(struct leat_log *log, struct leat_read *read, struct log_slot *after,
                           bool *out_jumped);

/* SUBTLE: a reader does not pass over missing offsets because the next segment is there.
 *  1. The row of segment 4 says that it was being written; a start finds its file damaged in the middle, and the
 *     valid part counts as closed. Segments 5 to 7 are whole.
 *  2. A reader comes to the end of this part, and would go on with segment 5.
 * The reader is told, once. If segment 5 names no predecessor, an operator gave the records up, and the reader goes
 * on. */
static leat_err read_short(struct leat_log *log, struct leat_read *read, struct log_slot *slot)
{
    struct leat_segment *seg = slot->seg;
    struct log_slot *after = log_slot_find(log, seg->id.v + 1);
    bool jumped = false;
    leat_err rc = joint_look(log, read, after, &jumped);
    if (rc == LEAT_E_AGAIN) return rc;
    if (rc != LEAT_OK) return read_end(read, rc);
    if (jumped) return read_step(log, read);
    if (!slot->damage_told)
        leat_node_log_error(
            "log %u/%u/%u of %s: segment %llu is damaged at %u: offsets %llu to %llu are not there",
            log->options.ref.stream, log->options.ref.streamlet, log->options.ref.log,
            log->stream_name, (unsigned long long)seg->id.v, seg->prefix_id.bytes,
            (unsigned long long)seg->next_offset, (unsigned long long)after->seg->base_offset - 1);
    slot->damage_told = true;
    read->segment = seg->id.v;
    log_read_place_set(read, seg->prefix_id.bytes);
    read->next.v = after->seg->base_offset;
    return read_end(read, LEAT_E_DAMAGED);
}

/* Did a walk end where all is acked? Then it met no offset that is not acked yet: a flipped bit made it so. */
static bool is_acked_at(struct leat_log *log, const struct log_slot *slot,
                        const struct leat_read *read, uint32_t at)
{
    if (slot->closed) return slot->seg->next_offset <= log_acked(log);
    if (!read->by_position && !read->by_time) return true; /* the wanted offset is acked */
    const struct log_open *open = log_open_of(log, slot->seg);
    return open && at < open->acked_bytes;
}

/* The walk has ended within this segment. */
static leat_err read_walked(struct leat_log *log, struct leat_read *read,
                            const struct leat_segment *seg, enum log_walk_end end, uint32_t at)
{
    if (end == LOG_WALK_DAMAGED) return read_damaged(log, read, at);
    read->full = end == LOG_WALK_FULL;
    if (read->full) return read_end(read, LEAT_OK);
    struct log_slot *slot = log_slot_find(log, seg->id.v);
    if (read->by_position && !read->boundary && read->position.position > at) {
        if (is_acked_at(log, slot, read, at) && !LEAT_BUG(PLACE_UNCHECKED))
            return read_damaged(log, read, at); /* acked bytes go on up to this position */
        return read_end(read, LEAT_E_OFFSET_OUT_OF_RANGE);
    }
    if (end == LOG_WALK_NO_BOUNDARY) return read_end(read, LEAT_E_OFFSET_OUT_OF_RANGE);
    bool over = at == seg->prefix_id.bytes && slot->closed;
    if (read->iov_count) {
        hint_put(log, read);
        if (over && read->next.v == seg->next_offset && !ends_short(log, slot))
            read->next_position =
                (struct leat_position){log_group_of(seg->id.v + 1), seg->id.v + 1, 0};
        return read_end(read, LEAT_OK);
    }
    if (!over) {
        if (is_acked_at(log, slot, read, at)) return read_damaged(log, read, at);
        return read_nothing(log, read);
    }
    if (!read->by_position && !read->by_time) return read_damaged(log, read, at);
    if (!read->by_time && ends_short(log, slot)) return read_short(log, read, slot);
    return read_on(log, read, seg);
}

static uint32_t segment_limit(const struct leat_log *log, const struct leat_segment *seg)
{
    if (seg == log->head.seg) return log->head.writer.sealed_bytes;
    if (seg == log->old.seg) return log->old.writer.sealed_bytes;
    return seg->prefix_id.bytes;
}

/* Where the walk starts, as far as that is known without the file. */
static bool floor_find(const struct leat_log *log, const struct leat_segment *seg,
                       const struct leat_target *target, const uint8_t *buffer, uint32_t *out_at)
{
    *out_at = hint_find(log, seg->id.v, target);
    if (*out_at) return true;
    const struct leat_close *close = NULL;
    if (seg == log->head.seg) close = &log->head.index->close;
    if (seg == log->old.seg) close = &log->old.index->close;
    if (!close && buffer) close = leat_index_find(buffer, 0, seg->prefix_id.bytes);
    if (close) *out_at = leat_index_floor(close, target, seg->base_offset);
    return close != NULL || buffer != NULL ||
           (target->kind == LEAT_TARGET_POSITION && target->position == 0);
}

static leat_err read_memory(struct leat_log *log, struct leat_read *read, struct leat_segment *seg)
{
    struct leat_target target = target_of(read);
    struct log_view view = {seg->buffer, 0,    segment_limit(log, seg), segment_limit(log, seg),
                            false,       false};
    uint32_t at;
    (void)floor_find(log, seg, &target, seg->buffer, &at);
    enum log_walk_end end = log_walk(log, read, &view, &target, &at);
    if (read->iov_count) {
        leat_segment_pin(seg);
        read->pinned = seg;
    }
    return read_walked(log, read, seg, end, at);
}

/* ---- from the file ---- */

static void on_file_read(struct leat_disk_io *io);

static leat_err file_read(struct leat_log *log, struct leat_read *read, struct log_slot *slot,
                          uint32_t from, uint32_t bytes, enum read_phase phase)
{
    const struct leat_segment *seg = slot->seg;
    uint32_t begin = LEAT_ALIGN_DOWN(from, (uint32_t)BLOCK_BYTES);
    uint64_t end = LEAT_ALIGN_UP((uint64_t)from + bytes, (uint64_t)BLOCK_BYTES);
    read->file_limit = segment_limit(log, seg);
    uint64_t last = LEAT_ALIGN_UP((uint64_t)read->file_limit, (uint64_t)BLOCK_BYTES);
    if (end > last) end = last;
    if (end - begin > read->disk_buffer_bytes)
        end = begin + LEAT_ALIGN_DOWN(read->disk_buffer_bytes, (size_t)BLOCK_BYTES);
    read->phase = phase;
    read->file_from = begin;
    read->walk_at = from;
    read->io = (struct leat_disk_io){.kind = LEAT_DISK_READ,
                                     .file = seg->file,
                                     .offset = seg->file_offset + begin,
                                     .buffer = read->disk_buffer,
                                     .bytes = (size_t)(end - begin),
                                     .on_done = on_file_read,
                                     .owner = read};
    slot->file_reads++;
    log->reads_in_flight++;
    log->env->disk->submit(log->env->disk->ctx, &read->io);
    return LEAT_E_AGAIN;
}

static leat_err window_read(struct leat_log *log, struct leat_read *read, struct log_slot *slot,
                            uint32_t at)
{
    uint32_t wanted =
        read->max_bytes < LEAT_BATCH_BYTES_MAX ? read->max_bytes : LEAT_BATCH_BYTES_MAX;
    return file_read(log, read, slot, at, wanted + READ_AHEAD_BYTES, PHASE_WINDOW);
}

static leat_err read_file(struct leat_log *log, struct leat_read *read, struct log_slot *slot)
{
    if (!read->disk_buffer) return read_end(read, LEAT_E_NO_MEMORY);
    LEAT_ASSERT_CMP(read->disk_buffer_bytes, >=, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    struct leat_target target = target_of(read);
    uint32_t at;
    if (floor_find(log, slot->seg, &target, NULL, &at)) return window_read(log, read, slot, at);
    uint32_t end = slot->seg->prefix_id.bytes;
    uint32_t from = end > LEAT_INDEX_TAIL_BYTES_MAX ? end - LEAT_INDEX_TAIL_BYTES_MAX : 0;
    return file_read(log, read, slot, from, end - from, PHASE_INDEX);
}

/* Note from a segment's start entry whether it names a predecessor. Bytes without a start entry are damaged: then no
 * record was given up. */
static void joint_note(struct leat_log *log, struct log_slot *slot, const uint8_t *bytes,
                       uint32_t count)
{
    struct leat_start start;
    bool jumped = leat_log_start_find(bytes, count, &start) && start.previous.bytes == 0 &&
                  start.base_offset == slot->seg->base_offset;
    slot->joint = jumped ? LOG_JOINT_JUMPED : LOG_JOINT_CHAINED;
    log->damage_look = true; /* operators hear of the same damage as readers */
}

/* The file's bytes are here: go on. */
static leat_err file_goes_on(struct leat_log *log, struct leat_read *read, struct log_slot *slot)
{
    const struct leat_segment *seg = slot->seg;
    if (read->phase == PHASE_JOINT) {
        uint32_t count = (uint32_t)read->io.done_bytes;
        uint32_t end = leat_log_start_end(read->disk_buffer, count, seg->prefix_id.bytes);
        if (end > count && count == BLOCK_BYTES) /* read once more, so much */
            return file_read(log, read, slot, 0, end, PHASE_JOINT);
        struct leat_start start;
        if (!leat_log_start_find(read->disk_buffer, count, &start) && is_repaired(log, slot))
            return read_end(read, LEAT_E_STARTING);
        joint_note(log, slot, read->disk_buffer, count);
        return read_step(log, read);
    }
    struct leat_target target = target_of(read);
    /* A hibernated head may have been resumed and gone on meanwhile: what was read ends where it ended
     * then. */
    uint32_t limit = read->file_limit, got = read->file_from + (uint32_t)read->io.done_bytes;
    struct log_view view = {
        read->disk_buffer, read->file_from, got < limit ? got : limit, limit, true, slot->given_up};
    uint32_t at = read->walk_at;
    if (view.end < limit && read->io.done_bytes < read->io.bytes)
        return read_damaged(log, read, view.end);
    if (read->phase == PHASE_INDEX) {
        const struct leat_close *close =
            leat_index_find(read->disk_buffer, read->file_from, seg->prefix_id.bytes);
        at = close ? leat_index_floor(close, &target, seg->base_offset) : 0;
        /* Small segments come whole with their index. */
        if (read->file_from != 0) return window_read(log, read, slot, at);
    }
    enum log_walk_end end = log_walk(log, read, &view, &target, &at);
    /* A large batch, or no index: the whole buffer holds any entry, so this gets on. */
    if (end == LOG_WALK_MORE)
        return file_read(log, read, slot, at, (uint32_t)read->disk_buffer_bytes, PHASE_WINDOW);
    if (end == LOG_WALK_DONE && read->iov_count == 0 && limit != segment_limit(log, seg))
        return read_step(log, read);
    return read_walked(log, read, seg, end, at);
}

static void on_file_read(struct leat_disk_io *io)
{
    struct leat_read *read = io->owner;
    struct leat_log *log = read->log;
    struct log_slot *slot = log_slot_find(log, read->segment);
    LEAT_ASSERT(slot != NULL && slot->file_reads > 0);
    slot->file_reads--;
    log->reads_in_flight--;
    log_mark_dirty(log);
    leat_err rc;
    if (log->ending == LOG_DELETING)
        rc = read_end(read, LEAT_E_UNKNOWN_STREAM);
    else if (io->rc != LEAT_OK)
        rc = read_end(read, is_repaired(log, slot) ? LEAT_E_STARTING : LEAT_E_DISK);
    else
        rc = file_goes_on(log, read, slot);
    if (rc != LEAT_E_AGAIN) read->on_done(read);
}

/* ---- which segment ---- */

/* Last segment that begins at or before the offset. */
static struct log_slot *slot_of_offset(const struct leat_log *log, uint64_t offset)
{
    uint32_t low = 0, high = log->slot_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (log_slot_at(log, middle)->seg->base_offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? log_slot_at(log, low - 1) : NULL;
}

/* First segment with at least this id; NULL: none. */
static struct log_slot *slot_from(const struct leat_log *log, uint64_t segment)
{
    uint32_t at = log_slot_from(log, segment);
    return at < log->slot_count ? log_slot_at(log, at) : NULL;
}

/* Segments that should be here are not: their offsets are gone, by name, and nothing else. */
static leat_err read_missing(struct leat_log *log, struct leat_read *read, uint64_t first_missing)
{
    if (log_backfill_runs(log) && !log_is_stopping(log) &&
        !log->reads_expire) { /* the segment is on its way here */
        leat_list_push_back(&log->stalled_reads, &read->link);
        return LEAT_E_AGAIN;
    }
    if (log_backfill_runs(log)) return read_end(read, LEAT_E_STARTING);
    struct log_slot *after = slot_from(log, first_missing);
    uint64_t end_offset = after ? after->seg->base_offset : log_acked(log);
    bool *told = after ? &after->hole_told : &log->hole_told;
    if (!*told) log_gap_tell(log, log_slot_from(log, first_missing));
    *told = true;
    read->segment = first_missing;
    log_read_place_set(read, 0);
    read->next.v = end_offset;
    return read_end(read, LEAT_E_DAMAGED);
}

/* Ids below `after` (NULL: below the next segment) are not there. LEAT_OK: *out_jumped says whether
 * an operator gave them up. LEAT_E_AGAIN: it is being looked up, and the read goes on by itself.
 * LEAT_E_NO_MEMORY: that needs a buffer. */
static leat_err joint_look(struct leat_log *log, struct leat_read *read, struct log_slot *after,
                           bool *out_jumped)
{
    if (after && after->front_given_up) {
        *out_jumped = true;
        return LEAT_OK;
    }
    bool readable =
        after && (after->seg->buffer || after->seg->integrity != LEAT_INTEGRITY_MISSING);
    if (readable && after->joint == LOG_JOINT_UNKNOWN) {
        struct leat_segment *seg = after->seg;
        if (seg->buffer && !after->changing) {
            joint_note(log, after, seg->buffer, seg->prefix_id.bytes);
        } else {
            if (!read->disk_buffer) return LEAT_E_NO_MEMORY;
            read->segment = seg->id.v;
            return file_read(log, read, after, 0, BLOCK_BYTES, PHASE_JOINT);
        }
    }
    *out_jumped = after ? after->joint == LOG_JOINT_JUMPED : log->jumped;
    return LEAT_OK;
}

/* Segments are missing from `first_missing` up to the next segment: are they lost, given up, or on their way? While
 * segments before an offset gap come, or while a node that may have them is down, no reader passes over them. A
 * missing segment without records has no offsets: the read passes over it. */
static leat_err read_hole(struct leat_log *log, struct leat_read *read, uint64_t first_missing)
{
    struct log_slot *after = slot_from(log, first_missing);
    bool jumped = false;
    leat_err rc = joint_look(log, read, after, &jumped);
    if (rc == LEAT_E_AGAIN) return rc;
    if (rc != LEAT_OK) return read_end(read, rc);
    bool away = after && after == log_slot_at(log, 0) && log->older_node_down;
    bool missed = (!jumped || away) && log_gap_has_records(log, log_slot_from(log, first_missing));
    if (missed || log_backfill_runs(log)) return read_missing(log, read, first_missing);
    if (!after) return read_nothing(log, read);
    struct leat_position place = {log_group_of(after->seg->id.v), after->seg->id.v, 0};
    if (read->by_position && place.group != read->position.group) {
        /* The groups between have no records; a reader of this group may not own the next. */
        read->next.v = after->seg->base_offset;
        read->next_position = place;
        return read_end(read, LEAT_OK);
    }
    read->from.v = after->seg->base_offset;
    read->position = place;
    return read_step(log, read);
}

/* SUBTLE: only a log that knows its end may call an offset too high. A reader that was told "too high" begins
 * elsewhere: when the end comes back, the reader reads the records there twice, or never. */
static leat_err past_end(const struct leat_log *log)
{
    bool waits = log->state == LEAT_LOG_WAITING && !LEAT_BUG(TOO_HIGH_WHILE_WAITING);
    return waits ? LEAT_E_LOG_INCOMPLETE : LEAT_E_OFFSET_OUT_OF_RANGE;
}

/* LEAT_OK and *out_slot left NULL: nothing is acked at this offset yet. LEAT_E_DAMAGED: the segment is missing. */
static leat_err resolve_offset(struct leat_log *log, struct leat_read *read,
                               struct log_slot **out_slot)
{
    uint64_t from = read->from.v, acked = log_acked(log);
    if (from < log->first_offset)
        return log_front_is_elsewhere(log) ? LEAT_E_LOG_INCOMPLETE : LEAT_E_OFFSET_OUT_OF_RANGE;
    if (from > acked) return past_end(log);
    if (from == acked) return LEAT_OK;
    *out_slot = slot_of_offset(log, from);
    return *out_slot ? LEAT_OK : LEAT_E_DAMAGED;
}

int64_t log_newest_of(struct leat_log *log, const struct log_slot *slot)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct log_open *open = slot->closed ? NULL : log_open_of(log, slot->seg);
    return open ? open->max_timestamp_ms : slot->seg->max_timestamp_ms;
}

/* The first segment from there on that may have the time. Missing segments are passed over, but not segments that are
 * on their way here: a reader that was given a later offset would never see these. */
static void resolve_time(struct leat_log *log, struct leat_read *read)
{
    struct leat_position *place = &read->position;
    uint64_t id = place->segment < log->first_segment ? log->first_segment : place->segment;
    uint32_t at = log_slot_from(log, id);
    for (; at < log->slot_count; at++, id++) {
        const struct log_slot *slot = log_slot_at(log, at);
        if (slot->seg->id.v > id && log_backfill_runs(log)) break;
        id = slot->seg->id.v;
        if (log_newest_of(log, slot) >= read->time_ms) break;
    }
    if (at == log->slot_count && !log_backfill_runs(log)) id = log->next_segment;
    if (id != place->segment) *place = (struct leat_position){log_group_of(id), id, 0};
}

static leat_err resolve_position(struct leat_log *log, struct leat_read *read,
                                 struct log_slot **out_slot)
{
    struct leat_position *place = &read->position;
    if (read->by_time) resolve_time(log, read);
    if (place->group != log_group_of(place->segment) || place->segment < log->first_segment)
        return LEAT_E_OFFSET_OUT_OF_RANGE;
    struct log_slot *slot = log_slot_find(log, place->segment);
    if (!slot) {
        if (place->segment < log->next_segment && log->slot_count) return LEAT_E_DAMAGED;
        bool next = place->segment == log->next_segment && place->position == 0;
        return next ? LEAT_OK : LEAT_E_OFFSET_OUT_OF_RANGE;
    }
    if (place->position > segment_limit(log, slot->seg)) return LEAT_E_OFFSET_OUT_OF_RANGE;
    *out_slot = slot;
    return LEAT_OK;
}

leat_err leat_log_front_await(struct leat_log *log, struct leat_read *read)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log_front_is_unknown(log)) return LEAT_OK;
    read->log = log;
    read->phase = PHASE_FRONT;
    leat_list_init(&read->link);
    return read_step(log, read);
}

static leat_err read_step(struct leat_log *log, struct leat_read *read)
{
    for (;;) {
        if (log->ending == LOG_DELETING) return read_end(read, LEAT_E_UNKNOWN_STREAM);
        if (log->ending == LOG_RELEASING) return read_end(read, LEAT_E_NOT_OWNER);
        /* Until the log's beginning is known, the log can't tell whether the wanted offset is missing, was given up,
         * or never existed; and the answer of a read says where the log begins. */
        if (log_front_is_unknown(log)) {
            if (log_is_stopping(log) || log->reads_expire) return read_end(read, LEAT_E_STARTING);
            leat_list_push_back(&log->stalled_reads, &read->link);
            return LEAT_E_AGAIN;
        }
        if (read->phase == PHASE_FRONT) return read_end(read, LEAT_OK);
        bool by_position = read->by_position || read->by_time;
        struct log_slot *slot = NULL;
        leat_err rc =
            by_position ? resolve_position(log, read, &slot) : resolve_offset(log, read, &slot);
        if (rc == LEAT_E_DAMAGED)
            return read_hole(log, read, by_position ? read->position.segment : log->first_segment);
        if (rc != LEAT_OK) return read_end(read, rc);
        if (!slot) return read_nothing(log, read);
        struct leat_segment *seg = slot->seg;
        if (!by_position && slot->closed && read->from.v >= seg->next_offset) {
            /* Ids are dense and offsets jump only where data was given up for good: then the log
             * goes on at the next offset that exists. Else a segment is missing. */
            const struct log_slot *after = slot_from(log, seg->id.v + 1);
            if ((after ? after->seg->id.v : log->next_segment) != seg->id.v + 1)
                return read_hole(log, read, seg->id.v + 1);
            if (!after) return read_nothing(log, read);
            if (ends_short(log, slot)) return read_short(log, read, slot);
            read->from.v = after->seg->base_offset;
            continue;
        }
        read->segment = seg->id.v;
        read->boundary = false;
        if (log_slot_is_sought(slot) && !seg->buffer) {
            if (log_is_stopping(log) || log->reads_expire || read->disk_buffer ||
                slot->repair == LOG_REPAIR_REFUSED)
                return read_end(read, LEAT_E_STARTING);
            leat_list_push_back(&log->stalled_reads, &read->link);
            return LEAT_E_AGAIN;
        }
        /* SUBTLE: a read waits until this node's file has the head, but not for the copies. A backup behind a slow line
         * answered HIBERNATE a second later; a reader, whose fetch may name other logs as well, waited as long. */
        if (log->hibernating == LOG_HIBERNATING && seg == log->head.seg) {
            leat_list_push_back(&log->stalled_reads, &read->link);
            return LEAT_E_AGAIN;
        }
        if (!slot->changing && !slot->evicting && seg->buffer) return read_memory(log, read, seg);
        /* Not from its place: what lies there may be batches of the same offsets that never were acked. */
        if (seg->integrity == LEAT_INTEGRITY_MISSING) return read_damaged(log, read, 0);
        return read_file(log, read, slot);
    }
}

leat_err log_read_begin(struct leat_log *log, struct leat_read *read)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    read->log = log;
    read->iov_count = 0;
    read->bytes = 0;
    read->record_count = 0;
    read->pinned = NULL;
    read->full = false;
    read->given_up = false;
    read->next = read->from;
    read->next_position = read->position;
    read->phase = PHASE_NONE;
    leat_list_init(&read->link);
    return read_step(log, read);
}

leat_err leat_log_read(struct leat_log *log, struct leat_read *read)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    read->by_time = false;
    return log_read_begin(log, read);
}

void log_step_reads(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct leat_list stalled;
    leat_list_init(&stalled);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&log->stalled_reads)) != NULL)
        leat_list_push_back(&stalled, link);
    while ((link = leat_list_pop_front(&stalled)) != NULL) {
        struct leat_read *read = LEAT_CONTAINER(link, struct leat_read, link);
        if (read_step(log, read) != LEAT_E_AGAIN) read->on_done(read);
    }
    log->reads_expire = false;
}
