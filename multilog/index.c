/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse index: making, finding and searching it. */
#include "multilog/index.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"

static uint32_t rows_for(uint32_t capacity)
{
    return capacity / LEAT_INDEX_EVERY_BYTES;
}

size_t leat_index_bytes(uint32_t capacity)
{
    return sizeof(struct leat_index) + (size_t)rows_for(capacity) * sizeof(struct leat_index_row);
}

struct leat_index *leat_index_create(uint32_t capacity)
{
    struct leat_index *index = leat_mem_calloc(LEAT_MEM_LOG, 1, leat_index_bytes(capacity));
    if (!index) return NULL;
    index->row_max = rows_for(capacity);
    /* The front of a segment needs no row: a walk starts there anyway. */
    index->next_position = LEAT_INDEX_EVERY_BYTES;
    return index;
}

void leat_index_destroy(struct leat_index **index)
{
    leat_mem_free(*index);
    *index = NULL;
}

uint32_t leat_index_close_bytes_max(uint32_t capacity)
{
    return (uint32_t)(sizeof(struct leat_close) +
                      rows_for(capacity) * sizeof(struct leat_index_row));
}

static bool row_is_past(const struct leat_index_row *row, const struct leat_target *target,
                        uint64_t base_offset)
{
    switch (target->kind) {
    case LEAT_TARGET_OFFSET:
        return base_offset + row->offset_delta > target->offset;
    case LEAT_TARGET_POSITION:
        return row->position > target->position;
    case LEAT_TARGET_TIME:
        return row->max_timestamp_ms >= target->time_ms;
    }
    return true;
}

uint32_t leat_index_floor(const struct leat_close *close, const struct leat_target *target,
                          uint64_t base_offset)
{
    const struct leat_index_row *rows = (const struct leat_index_row *)(const void *)(close + 1);
    uint32_t low = 0, high = close->index_count; /* rows below `low` are not past the target */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row_is_past(&rows[middle], target, base_offset))
            high = middle;
        else
            low = middle + 1;
    }
    return low == 0 ? 0 : rows[low - 1].position;
}

static const struct leat_close *close_at(const uint8_t *bytes, uint32_t from, uint32_t at,
                                         uint32_t payload_bytes)
{
    const struct leat_entry *entry = (const struct leat_entry *)(const void *)(bytes + (at - from));
    if (entry->type != LEAT_ENTRY_CLOSE || entry->payload_bytes != payload_bytes) return NULL;
    const struct leat_close *close = (const struct leat_close *)(const void *)(entry + 1);
    if (close->index_count > LEAT_INDEX_ROWS_MAX || close->bytes != at) return NULL;
    if (leat_index_payload_bytes(close) != payload_bytes) return NULL;
    return leat_crc32c(0, close, payload_bytes) == entry->crc ? close : NULL;
}

const struct leat_close *leat_index_find(const uint8_t *bytes, uint32_t from, uint32_t end)
{
    LEAT_ASSERT(((uintptr_t)bytes & 7) == 0 && (from & 7) == 0);
    if (end % LEAT_ENTRY_ALIGN != 0) return NULL;
    uint64_t room = end - from;
    /* The close entry's length is not known before the entry is found; its rows are whole, so only so many places are
     * possible. */
    for (uint32_t rows = 0; rows <= LEAT_INDEX_ROWS_MAX; rows++) {
        uint32_t payload =
            (uint32_t)(sizeof(struct leat_close) + rows * sizeof(struct leat_index_row));
        uint32_t back = leat_entry_bytes(payload) + LEAT_ENTRY_HEADER_BYTES;
        if (back > room) return NULL;
        const struct leat_close *close = close_at(bytes, from, end - back, payload);
        if (close) return close;
    }
    return NULL;
}
