/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage: writing. See raft/log.h for the layout and raft/load.c for reading. */
#include "coordinator/raft/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/node_log.h"

uint32_t leat_raft_header_crc(const void *header, size_t bytes)
{
    return leat_crc32c(0, (const uint8_t *)header + 8, bytes - 8);
}

uint32_t leat_raft_frame_crc(const struct leat_raft_frame_header *frame, const void *data)
{
    uint32_t crc = leat_crc32c(0, &frame->bytes, sizeof frame->bytes);
    crc = leat_crc32c(crc, (const uint8_t *)frame + 8, sizeof *frame - 8);
    return leat_crc32c(crc, data, frame->bytes);
}

void leat_raft_path(char out[64], const char *kind, uint64_t number)
{
    snprintf(out, 64, "raft/%s-%020" PRIu64, kind, number);
}

leat_err leat_raft_io(const struct leat_disk *disk, enum leat_disk_kind kind,
                      struct leat_file *file, uint64_t offset, void *buffer, size_t bytes,
                      size_t *out_done)
{
    struct leat_disk_io io = {
        .kind = kind, .file = file, .offset = offset, .buffer = buffer, .bytes = bytes};
    leat_err rc = disk->run(disk->ctx, &io);
    if (out_done) *out_done = io.done_bytes;
    return rc;
}

/* ---- vote ---- */

struct vote_block {
    uint32_t magic, crc;
    uint32_t version, zero32;
    struct leat_raft_vote_state state;
};

/* Both blocks, one after the other: at any moment at least one block is complete, and at rest both are equal, so that
 * one corrupt block loses nothing. */
leat_err leat_raft_vote_write(struct leat_raft_log *log)
{
    log->vote.sequence++;
    struct vote_block block = {
        .magic = LEAT_RAFT_VOTE_MAGIC, .version = LEAT_RAFT_FORMAT_VERSION, .state = log->vote};
    block.crc = leat_raft_header_crc(&block, sizeof block);
    memset(log->vote_block, 0, LEAT_RAFT_VOTE_BLOCK_BYTES);
    memcpy(log->vote_block, &block, sizeof block);
    for (uint64_t i = 0; i < 2; i++) {
        leat_err rc =
            leat_raft_io(log->disk, LEAT_DISK_WRITE, log->vote_file, i * LEAT_RAFT_VOTE_BLOCK_BYTES,
                         log->vote_block, LEAT_RAFT_VOTE_BLOCK_BYTES, NULL);
        if (rc == LEAT_OK)
            rc = leat_raft_io(log->disk, LEAT_DISK_SYNC, log->vote_file, 0, NULL, 0, NULL);
        if (rc != LEAT_OK) return log->failed = rc;
    }
    return LEAT_OK;
}

leat_err leat_raft_log_vote(struct leat_raft_log *log, uint64_t term, uint64_t voted_for)
{
    if (log->failed != LEAT_OK) return log->failed;
    log->vote.term = term;
    log->vote.voted_for = voted_for;
    return leat_raft_vote_write(log);
}

/* ---- entries in memory ---- */

static struct leat_raft_entry *entry_slot(const struct leat_raft_log *log, size_t i)
{
    return &log->entries[(log->entry_front + i) & (log->entry_capacity - 1)];
}

const struct leat_raft_entry *leat_raft_log_get(const struct leat_raft_log *log, uint64_t index)
{
    if (index < log->start_index || index - log->start_index >= log->entry_count) return NULL;
    return entry_slot(log, index - log->start_index);
}

void leat_raft_entries_cut(struct leat_raft_log *log, uint64_t from_index)
{
    while (log->entry_count > 0 && leat_raft_log_last_index(log) >= from_index) {
        struct leat_raft_entry *entry = entry_slot(log, log->entry_count - 1);
        log->entry_bytes -= entry->bytes;
        leat_mem_free(entry->data);
        log->entry_count--;
    }
}

static leat_err entries_reserve(struct leat_raft_log *log)
{
    if (log->entry_count < log->entry_capacity) return LEAT_OK;
    size_t capacity = log->entry_capacity == 0 ? 256 : log->entry_capacity * 2;
    struct leat_raft_entry *entries =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, capacity, sizeof *entries);
    if (!entries) return LEAT_E_NO_MEMORY;
    for (size_t i = 0; i < log->entry_count; i++)
        entries[i] = *entry_slot(log, i);
    leat_mem_free(log->entries);
    log->entries = entries;
    log->entry_capacity = capacity;
    log->entry_front = 0;
    return LEAT_OK;
}

leat_err leat_raft_entries_push(struct leat_raft_log *log, uint64_t term, uint32_t type,
                                const void *data, size_t bytes)
{
    if (entries_reserve(log) != LEAT_OK) return LEAT_E_NO_MEMORY;
    uint8_t *copy = leat_mem_calloc(LEAT_MEM_COORDINATOR, bytes ? bytes : 1, 1);
    if (!copy) return LEAT_E_NO_MEMORY;
    if (bytes) memcpy(copy, data, bytes);
    *entry_slot(log, log->entry_count) = (struct leat_raft_entry){
        .term = term, .type = type, .bytes = (uint32_t)bytes, .data = copy};
    log->entry_count++;
    log->entry_bytes += bytes;
    return LEAT_OK;
}

leat_err leat_raft_log_append(struct leat_raft_log *log, uint64_t index, uint64_t term,
                              uint32_t type, const void *data, size_t bytes)
{
    LEAT_ASSERT_CMP(index, >=, log->start_index);
    LEAT_ASSERT_CMP(index, <=, leat_raft_log_last_index(log) + 1);
    LEAT_ASSERT_CMP(bytes, <=, LEAT_RAFT_ENTRY_BYTES_MAX);
    leat_raft_entries_cut(log, index);
    /* On reading, a frame with an index that was written before replaces the earlier frame and all later entries. */
    if (log->written_index >= index) log->written_index = index - 1;
    if (log->writing && log->writing_valid >= index) log->writing_valid = index - 1;
    return leat_raft_entries_push(log, term, type, data, bytes);
}

/* ---- segments ---- */

leat_err leat_raft_segment_push(struct leat_raft_log *log, struct leat_raft_segment segment)
{
    if (log->segment_count == log->segment_capacity) {
        uint32_t capacity = log->segment_capacity == 0 ? 16 : log->segment_capacity * 2;
        if (capacity > LEAT_RAFT_SEGMENTS_MAX) return LEAT_E_TOO_MANY;
        void *segments =
            leat_mem_realloc(LEAT_MEM_COORDINATOR, log->segments, capacity, sizeof *log->segments);
        if (!segments) return LEAT_E_NO_MEMORY;
        log->segments = segments;
        log->segment_capacity = capacity;
    }
    log->segments[log->segment_count++] = segment;
    return LEAT_OK;
}

static leat_err segment_create(struct leat_raft_log *log)
{
    char path[64];
    leat_raft_path(path, "log", log->next_segment);
    struct leat_raft_segment segment = {.number = log->next_segment};
    leat_err rc = log->disk->open(log->disk->ctx, path, LEAT_OPEN_CREATE, &segment.file, NULL);
    if (rc != LEAT_OK) return rc;
    rc = log->disk->allocate(log->disk->ctx, segment.file, log->segment_bytes);
    if (rc == LEAT_OK) rc = log->disk->sync_dir(log->disk->ctx, "raft");
    if (rc == LEAT_OK) rc = leat_raft_segment_push(log, segment);
    if (rc != LEAT_OK) {
        log->disk->close(log->disk->ctx, segment.file);
        return rc;
    }
    log->next_segment++;
    return LEAT_OK;
}

/* ---- rounds ---- */

static leat_err round_reserve(struct leat_raft_log *log, size_t bytes)
{
    if (bytes <= log->round_capacity) return LEAT_OK;
    size_t capacity = log->round_capacity == 0 ? 65536 : log->round_capacity;
    while (capacity < bytes)
        capacity *= 2;
    void *round = leat_mem_realloc(LEAT_MEM_COORDINATOR, log->round, capacity, 1);
    if (!round) return LEAT_E_NO_MEMORY;
    log->round = round;
    log->round_capacity = capacity;
    return LEAT_OK;
}

static leat_err round_add_frame(struct leat_raft_log *log, uint64_t index)
{
    const struct leat_raft_entry *entry = leat_raft_log_get(log, index);
    struct leat_raft_frame_header frame = {
        .bytes = entry->bytes, .term = entry->term, .index = index, .type = entry->type};
    frame.crc = leat_raft_frame_crc(&frame, entry->data);
    size_t bytes = sizeof frame + LEAT_ALIGN_UP((size_t)entry->bytes, 8);
    leat_err rc = round_reserve(log, log->round_bytes + bytes);
    if (rc != LEAT_OK) return rc;
    uint8_t *at = log->round + log->round_bytes;
    memset(at, 0, bytes);
    memcpy(at, &frame, sizeof frame);
    memcpy(at + sizeof frame, entry->data, entry->bytes);
    log->round_bytes += bytes;
    return LEAT_OK;
}

static size_t frame_bytes(const struct leat_raft_log *log, uint64_t index)
{
    return LEAT_RAFT_FRAME_HEADER_BYTES +
           LEAT_ALIGN_UP((size_t)leat_raft_log_get(log, index)->bytes, 8);
}

/* The segment that takes the next round; a new one when the first frame would not fit. */
static leat_err round_segment(struct leat_raft_log *log, uint64_t first_index,
                              struct leat_raft_segment **out_segment, uint64_t *out_previous_end)
{
    *out_previous_end = 0;
    if (log->segment_count > 0) {
        struct leat_raft_segment *last = &log->segments[log->segment_count - 1];
        if (last->end == 0 ||
            last->end + LEAT_RAFT_ROUND_HEADER_BYTES + frame_bytes(log, first_index) <=
                log->segment_bytes) {
            /* Created before, but its first round never came to be. */
            if (last->end == 0 && log->segment_count > 1) *out_previous_end = last[-1].end;
            *out_segment = last;
            return LEAT_OK;
        }
        *out_previous_end = last->end;
    }
    leat_err rc = segment_create(log);
    if (rc == LEAT_OK) *out_segment = &log->segments[log->segment_count - 1];
    return rc;
}

static leat_err round_build(struct leat_raft_log *log, uint64_t *out_offset)
{
    uint64_t index = log->written_index + 1, first = index, last = leat_raft_log_last_index(log);
    struct leat_raft_segment *segment;
    uint64_t previous_end;
    leat_err rc = round_segment(log, first, &segment, &previous_end);
    if (rc != LEAT_OK) return rc;
    log->round_bytes = 0;
    rc = round_reserve(log, LEAT_RAFT_HEADER_BYTES + LEAT_RAFT_ROUND_HEADER_BYTES);
    if (rc != LEAT_OK) return rc;
    *out_offset = segment->end;
    if (segment->end == 0) {
        struct leat_raft_segment_header header = {.magic = LEAT_RAFT_SEGMENT_MAGIC,
                                                  .version = LEAT_RAFT_FORMAT_VERSION,
                                                  .number = segment->number,
                                                  .previous_end = previous_end};
        header.crc = leat_raft_header_crc(&header, sizeof header);
        memcpy(log->round, &header, sizeof header);
        log->round_bytes = sizeof header;
    }
    size_t head_at = log->round_bytes;
    log->round_bytes += LEAT_RAFT_ROUND_HEADER_BYTES;
    uint32_t count = 0;
    for (; index <= last; index++, count++) {
        size_t bytes = log->round_bytes + frame_bytes(log, index);
        if (count > 0 &&
            (bytes > LEAT_RAFT_ROUND_BYTES_MAX || segment->end + bytes > log->segment_bytes))
            break;
        rc = round_add_frame(log, index);
        if (rc != LEAT_OK) return rc;
    }
    struct leat_raft_round_header head = {
        .magic = LEAT_RAFT_ROUND_MAGIC,
        .segment = segment->number,
        .at = segment->end + head_at,
        .bytes = (uint32_t)(log->round_bytes - head_at - LEAT_RAFT_ROUND_HEADER_BYTES),
        .count = count,
        .first_index = first};
    head.crc = leat_raft_header_crc(&head, sizeof head);
    memcpy(log->round + head_at, &head, sizeof head);
    log->writing_index = first + count - 1;
    return LEAT_OK;
}

static void round_written(struct leat_disk_io *io)
{
    struct leat_raft_log *log = io->owner;
    log->write_rc = io->rc;
}

static void round_kept(struct leat_raft_log *log)
{
    struct leat_raft_segment *segment = &log->segments[log->segment_count - 1];
    segment->end += log->round_bytes;
    if (segment->last_index < log->writing_index) segment->last_index = log->writing_index;
}

static void round_synced(struct leat_disk_io *io)
{
    struct leat_raft_log *log = io->owner;
    leat_err rc = log->write_rc != LEAT_OK ? log->write_rc : io->rc;
    log->writing = false;
    if (rc == LEAT_OK)
        round_kept(log);
    else
        log->failed = rc; /* a failed flush is final: the disk's content is unknown */
    log->on_durable(log->owner, log->writing_valid, rc);
}

static bool round_wanted(const struct leat_raft_log *log)
{
    return !log->writing && log->failed == LEAT_OK && log->entry_count > 0 &&
           log->written_index < leat_raft_log_last_index(log);
}

static leat_err round_begin(struct leat_raft_log *log)
{
    uint64_t offset;
    leat_err rc = round_build(log, &offset);
    log->full = rc == LEAT_E_DISK_FULL;
    if (rc == LEAT_E_DISK_FULL || rc == LEAT_E_NO_MEMORY) return rc; /* nothing was changed */
    if (rc != LEAT_OK) return log->failed = rc;
    struct leat_file *file = log->segments[log->segment_count - 1].file;
    log->written_index = log->writing_index;
    log->write_rc = LEAT_OK;
    log->write_io = (struct leat_disk_io){.kind = LEAT_DISK_WRITE,
                                          .file = file,
                                          .offset = offset,
                                          .buffer = log->round,
                                          .bytes = log->round_bytes,
                                          .on_done = round_written,
                                          .owner = log};
    log->sync_io = (struct leat_disk_io){
        .kind = LEAT_DISK_SYNC, .file = file, .on_done = round_synced, .owner = log};
    if (LEAT_BUG(RAFT_UNSYNCED)) log->sync_io.file = log->vote_file;
    return LEAT_OK;
}

void leat_raft_log_flush(struct leat_raft_log *log)
{
    if (!round_wanted(log) || round_begin(log) != LEAT_OK) return;
    log->writing = true;
    log->writing_valid = log->writing_index;
    log->disk->submit(log->disk->ctx, &log->write_io);
    log->disk->submit(log->disk->ctx, &log->sync_io);
}

leat_err leat_raft_log_flush_now(struct leat_raft_log *log)
{
    leat_err rc = LEAT_OK;
    while (rc == LEAT_OK && round_wanted(log)) {
        rc = round_begin(log);
        if (rc == LEAT_OK) rc = log->disk->run(log->disk->ctx, &log->write_io);
        if (rc == LEAT_OK) rc = log->disk->run(log->disk->ctx, &log->sync_io);
        if (rc == LEAT_OK) round_kept(log);
    }
    return rc == LEAT_OK ? log->failed : rc;
}

/* ---- durable mark, compaction ---- */

static void mark_place(const struct leat_raft_log *log, uint64_t *out_segment, uint64_t *out_end)
{
    *out_segment = log->next_segment;
    *out_end = 0;
    for (uint32_t i = log->segment_count; i-- > 0;) {
        if (log->segments[i].end == 0) continue; /* created; its first round is in flight */
        *out_segment = log->segments[i].number;
        *out_end = log->segments[i].end;
        return;
    }
}

bool leat_raft_log_mark_wanted(const struct leat_raft_log *log)
{
    uint64_t segment, end;
    mark_place(log, &segment, &end);
    return log->failed == LEAT_OK &&
           (segment != log->vote.durable_segment || end != log->vote.durable_end);
}

leat_err leat_raft_log_mark(struct leat_raft_log *log)
{
    if (log->failed != LEAT_OK) return log->failed;
    mark_place(log, &log->vote.durable_segment, &log->vote.durable_end);
    return leat_raft_vote_write(log);
}

static leat_err segments_remove(struct leat_raft_log *log, uint32_t count)
{
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; i < count; i++) {
        char path[64];
        leat_raft_path(path, "log", log->segments[i].number);
        log->disk->close(log->disk->ctx, log->segments[i].file);
        if (rc == LEAT_OK) rc = log->disk->remove(log->disk->ctx, path);
    }
    log->segment_count -= count;
    memmove(log->segments, log->segments + count, log->segment_count * sizeof *log->segments);
    return rc;
}

leat_err leat_raft_log_compact(struct leat_raft_log *log, uint64_t index)
{
    if (log->failed != LEAT_OK) return log->failed;
    LEAT_ASSERT_CMP(index, <=, log->snapshot.index + 1);
    uint32_t dead = 0;
    while (dead + 1 < log->segment_count && log->segments[dead].last_index < index)
        dead++;
    while (log->entry_count > 0 && log->start_index < index) {
        struct leat_raft_entry *entry = entry_slot(log, 0);
        log->entry_bytes -= entry->bytes;
        leat_mem_free(entry->data);
        log->entry_front = (log->entry_front + 1) & (log->entry_capacity - 1);
        log->entry_count--;
        log->start_index++;
    }
    if (dead == 0) return LEAT_OK;
    /* First say that they are not missed, then remove: a crash between leaves what the next start
     * removes. */
    log->vote.first_segment = log->segments[dead].number;
    leat_err rc = leat_raft_log_mark(log);
    if (rc == LEAT_OK) rc = segments_remove(log, dead);
    return rc;
}

leat_err leat_raft_log_reset(struct leat_raft_log *log, uint64_t index)
{
    if (log->failed != LEAT_OK) return log->failed;
    LEAT_ASSERT(!log->writing);
    leat_raft_entries_cut(log, 0);
    log->start_index = index;
    log->written_index = index - 1;
    log->vote.first_segment = log->next_segment;
    log->vote.durable_segment = log->next_segment;
    log->vote.durable_end = 0;
    leat_err rc = leat_raft_vote_write(log);
    if (rc == LEAT_OK) rc = segments_remove(log, log->segment_count);
    return rc;
}

void leat_raft_log_close(struct leat_raft_log *log)
{
    /* Only a hint: the next start does without. */
    if (log->vote_file && !log->writing && log->vote.formed && leat_raft_log_mark_wanted(log) &&
        leat_raft_log_mark(log) != LEAT_OK)
        leat_node_log_warn("coordinator: raft's durable mark was not noted on the way out");
    for (uint32_t i = 0; i < log->segment_count; i++)
        log->disk->close(log->disk->ctx, log->segments[i].file);
    if (log->vote_file) log->disk->close(log->disk->ctx, log->vote_file);
    if (log->save_file) log->disk->close(log->disk->ctx, log->save_file);
    if (log->entry_count > 0) leat_raft_entries_cut(log, 0);
    leat_mem_free(log->entries);
    leat_mem_free(log->segments);
    leat_mem_free(log->round);
    leat_mem_free(log->save_head);
    leat_mem_free(log->vote_memory);
    leat_raft_snapshot_fini(&log->snapshot);
    leat_raft_snapshot_fini(&log->next);
    memset(log, 0, sizeof *log);
}
