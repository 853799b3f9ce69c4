/* SPDX-License-Identifier: Apache-2.0 */
#include "store/probe.h"

#include <string.h>

#include "store/private.h"

void leat_store_see(const struct leat_store *store, uint32_t row, struct leat_store_seen *out_seen)
{
    const struct leat_row *says = leat_catalogue_row(&store->cat, row);
    const struct leat_held *held = *leat_catalogue_held(&store->cat, row);
    *out_seen = (struct leat_store_seen){
        .row = row,
        .log = {says->stream, says->streamlet, says->log},
        .segment = says->segment,
        .written = (enum leat_segment_state)says->state,
        .written_flushed = says->flags & LEAT_ROW_FLUSHED,
        .written_replica = says->flags & LEAT_ROW_REPLICA,
        .seg = held ? &held->seg : NULL,
        .goes = held && held->drop,
        .shares_place = held && held->slot_shared,
        .in_file_bytes = held ? held->in_file_bytes : 0,
    };
}

static bool says_nothing(const struct leat_store_seen *seen)
{
    return !seen->seg && seen->written == LEAT_SEGMENT_FREE;
}

bool leat_store_see_next(const struct leat_store *store, struct leat_store_seen *seen)
{
    uint32_t rows = store ? store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK : 0;
    uint32_t row = says_nothing(seen) ? 0 : seen->row + 1;
    for (; row < rows; row++) {
        bool free = leat_catalogue_row(&store->cat, row)->state == LEAT_SEGMENT_FREE;
        if (free && !*leat_catalogue_held(&store->cat, row)) continue;
        leat_store_see(store, row, seen);
        return true;
    }
    return false;
}

uint8_t *leat_store_left_at(const struct leat_store *store, const struct leat_segment *seg)
{
    const struct leat_held *held = *leat_catalogue_held(&store->cat, seg->row);
    LEAT_ASSERT(held && &held->seg == seg);
    uint32_t unit = (uint32_t)(held->pool_at / LEAT_SLOT_UNIT_BYTES);
    unsigned order = leat_buddy_order(seg->capacity, LEAT_SLOT_UNIT_BYTES);
    if (seg->buffer || held->pool != &store->pool ||
        leat_buddy_free_in(&store->pool.buddy, unit, order) < 1u << order)
        return NULL;
    return store->pool.arena->base + held->pool_at;
}

bool leat_store_any_free(const struct leat_store_arena *arena, uint64_t offset, uint32_t bytes)
{
    const struct leat_buddy *buddy = &arena->pool.buddy;
    uint32_t last = (uint32_t)((offset + bytes - 1) / LEAT_SLOT_UNIT_BYTES);
    for (uint32_t unit = (uint32_t)(offset / LEAT_SLOT_UNIT_BYTES); unit <= last; unit++)
        if (leat_buddy_free_in(buddy, unit, 0)) return true;
    return false;
}

bool leat_store_io_repairs(const struct leat_store *store, const struct leat_disk_io *io)
{
    uint32_t rows = store->repairs ? store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK : 0;
    for (uint32_t row = 0; row < rows; row++) {
        const struct leat_held *held = *leat_catalogue_held(&store->cat, row);
        if (!held || !held->repairing || held->seg.file != io->file) continue;
        if (io->kind == LEAT_DISK_SYNC) return true;
        if (io->offset >= held->seg.file_offset &&
            io->offset < held->seg.file_offset + held->seg.prefix_id.bytes)
            return true;
    }
    return false;
}

uint64_t leat_store_pool_bytes(const struct leat_store *store)
{
    return store->pool.added_bytes;
}

bool leat_store_lacks_space(const struct leat_store *store)
{
    return store->slots.full_bytes > 0;
}

void leat_store_memory_take(struct leat_store *store, struct leat_store_taken *out_taken)
{
    struct leat_pool *pool = &store->pool;
    uint32_t capacity = LEAT_SEGMENT_BYTES_MAX;
    out_taken->count = 0;
    if (pool->added_bytes < 2 * (uint64_t)LEAT_ARENA_STEP_BYTES && !leat_pool_can_grow(pool))
        return;
    while (capacity >= LEAT_SEGMENT_BYTES_MIN && out_taken->count < LEAT_STORE_TAKEN_MAX) {
        uint8_t *buffer = leat_pool_take(pool, capacity);
        bool first = buffer && buffer < pool->arena->base + LEAT_ARENA_STEP_BYTES;
        if (buffer && !first) leat_pool_give(pool, buffer, capacity);
        if (first) {
            out_taken->buffers[out_taken->count].buffer = buffer;
            out_taken->buffers[out_taken->count++].capacity = capacity;
        } else {
            capacity /= 2;
        }
    }
}

void leat_store_memory_give(struct leat_store *store, const struct leat_store_taken *taken)
{
    for (unsigned i = 0; i < taken->count; i++)
        leat_pool_give(&store->pool, taken->buffers[i].buffer, taken->buffers[i].capacity);
}

void leat_store_space_hide(struct leat_store *store, bool hidden)
{
    for (uint32_t i = 0; i < LEAT_STORE_FILES_MAX; i++) {
        struct leat_store_file *file = store->slots.files[i];
        if (file) leat_buddy_limit_set(&file->buddy, hidden ? 0 : file->buddy.units);
    }
}
