/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse index of one segment: one row per about 32 KiB, kept while the segment is written and stored in its
 * close entry. A row points at a batch entry's header. */
#ifndef LEAT_MULTILOG_INDEX_H
#define LEAT_MULTILOG_INDEX_H

#include "wire/batch.h"
#include "wire/entry.h"

enum {
    LEAT_INDEX_EVERY_BYTES = 32 * 1024,
    LEAT_INDEX_ROWS_MAX = LEAT_SEGMENT_BYTES_MAX / LEAT_INDEX_EVERY_BYTES,
    /* No close entry with its trailer is longer than this. */
    LEAT_INDEX_TAIL_BYTES_MAX = 8 * 1024,
};

/* `close` and `rows` lie together: they are the close entry's payload as it is stored. */
struct leat_index {
    uint32_t row_max;
    uint32_t next_position; /* the first batch at or after this position gets the next row */
    struct leat_close close;
    struct leat_index_row rows[];
};
_Static_assert(offsetof(struct leat_index, rows) ==
                   offsetof(struct leat_index, close) + sizeof(struct leat_close),
               "the payload is contiguous");

/** For a segment of this capacity. NULL: no memory. */
struct leat_index *leat_index_create(uint32_t capacity);
/** Heap bytes of such an index. */
size_t leat_index_bytes(uint32_t capacity);
void leat_index_destroy(struct leat_index **index);
/** Payload bytes of the close entry at most, for room to keep free. */
uint32_t leat_index_close_bytes_max(uint32_t capacity);
/** A batch is about to lie at `position`. max_before: highest timestamp before it. Hot.
 * A row holds 32 bits of offset: what lies further from the segment's first one is found by a walk from the
 * last row. A megabyte of compressed batches may say that it has so many records. */
static inline void leat_index_note(struct leat_index *index, uint32_t position,
                                   uint64_t offset_delta, int64_t max_before)
{
    if (position < index->next_position || index->close.index_count == index->row_max ||
        offset_delta > UINT32_MAX)
        return;
    index->rows[index->close.index_count++] =
        (struct leat_index_row){position, (uint32_t)offset_delta, max_before};
    index->next_position = position + LEAT_INDEX_EVERY_BYTES;
}
static inline uint32_t leat_index_payload_bytes(const struct leat_close *close)
{
    return (uint32_t)(sizeof *close + close->index_count * sizeof(struct leat_index_row));
}

/* The record that a walk is looking for; also says which batches to leave out. */
struct leat_target {
    enum { LEAT_TARGET_OFFSET, LEAT_TARGET_POSITION, LEAT_TARGET_TIME } kind;
    uint64_t offset;
    uint32_t position;
    int64_t time_ms;
};
/** Where to start the walk: position of the last row not past the target, or 0. base_offset: the
 * segment's. */
uint32_t leat_index_floor(const struct leat_close *close, const struct leat_target *target,
                          uint64_t base_offset);
/**
 * Find the close entry whose trailer ends at `end` in a segment; `bytes` are the segment's from
 * position `from` on. The payload is a view, checked. NULL: there is none (cut without room for
 * it), or not within these bytes. Trusts nothing. Thread: any. Allocates: never.
 */
const struct leat_close *leat_index_find(const uint8_t *bytes, uint32_t from, uint32_t end);

#endif
