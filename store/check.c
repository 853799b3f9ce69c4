/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the store between two turns, whatever came in the turn before. */
#include "store/private.h"

/* All of a list are where it says. Returns the sum of their buffers. */
static uint64_t held_check(const struct leat_list *list, enum leat_held_where where)
{
    uint64_t bytes = 0;
    LEAT_LIST_EACH(list, it)
    {
        const struct leat_held *held = leat_held_by_store(it);
        LEAT_ASSERT_CMP(held->where, ==, where);
        LEAT_ASSERT(where == LEAT_HELD_STUCK || (held->seg.buffer != NULL && held->pool != NULL));
        bytes += held->seg.capacity;
    }
    return bytes;
}

static size_t count_of(const struct leat_list *list)
{
    size_t count = 0;
    LEAT_LIST_EACH(list, it)
    count++;
    return count;
}

/* A request that waits for a buffer has none in the pool, and is in the queue of its size. */
static void waits_check(const struct leat_store *store)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++)
        LEAT_LIST_EACH(&store->memory_waits[order], it)
        {
            const struct leat_store_req *req = leat_store_req_waiting(it);
            LEAT_ASSERT_CMP(leat_buddy_order(req->seg->capacity, LEAT_SLOT_UNIT_BYTES), ==, order);
            LEAT_ASSERT(req->seg->buffer == NULL || leat_held_in_arena(leat_held_of(req->seg)));
            count++;
            bytes += req->seg->capacity;
        }
    LEAT_ASSERT_CMP(count, ==, store->memory_wait_count);
    LEAT_ASSERT_CMP(bytes, ==, store->memory_wait_bytes);
}

static void pool_check(const struct leat_pool *pool)
{
    const struct leat_buddy *buddy = &pool->buddy;
    uint64_t free_bytes = ((uint64_t)buddy->free_units + buddy->past_units) * LEAT_SLOT_UNIT_BYTES;
    LEAT_ASSERT_CMP(free_bytes, <=, pool->added_bytes);
    LEAT_ASSERT_CMP(pool->limit_bytes, <=, pool->full_bytes);
    LEAT_ASSERT_CMP(pool->leaving_bytes, <=, pool->added_bytes);
}

/* A segment that is being flushed is being written, or waits for its file's sync, or for its row, and nothing else. */
static void flush_check(const struct leat_store *store)
{
    size_t written = 0, syncing = 0, writing = 0;
    for (uint32_t i = 0; i < store->slots.count; i++) {
        const struct leat_store_file *file = store->slots.files[i];
        if (file == NULL) continue;
        written += count_of(&file->flush_wait);
        for (unsigned lane = 0; lane < LEAT_STORE_LANES; lane++)
            syncing += count_of(&file->rounds[lane].flush_syncs);
    }
    LEAT_ASSERT_CMP(written, ==, store->flush_written);
    for (unsigned i = 0; i < LEAT_STORE_FLUSH_IN_FLIGHT_MAX; i++) {
        const struct leat_held *held = store->flush_ios[i].held;
        if (held == NULL) continue;
        LEAT_ASSERT_CMP(held->where, ==, LEAT_HELD_FLUSHING);
        LEAT_ASSERT_CMP(held->flush_ios, >, 0);
        writing++;
    }
    LEAT_ASSERT_CMP(writing, ==, store->flush_in_flight);
    LEAT_ASSERT(store->flushing == NULL || store->flushing->where == LEAT_HELD_FLUSHING);
    size_t rows = count_of(&store->flush_synced) + count_of(&store->rows_flush);
    LEAT_ASSERT_CMP(written + syncing + rows, <=, store->flush_pending);
    LEAT_ASSERT_CMP(store->flush_pending, <=,
                    written + syncing + rows + writing + (store->flushing != NULL));
}

void leat_store_check(const void *actor)
{
    const struct leat_store *store = actor;
    LEAT_ASSERT_CMP(held_check(&store->cached, LEAT_HELD_CACHED), ==, store->cached_bytes);
    LEAT_ASSERT_CMP(held_check(&store->asked, LEAT_HELD_ASKED), ==, store->asked_bytes);
    (void)held_check(&store->dirty, LEAT_HELD_DIRTY);
    (void)held_check(&store->dirty_soon, LEAT_HELD_DIRTY);
    (void)held_check(&store->stuck, LEAT_HELD_STUCK);
    waits_check(store);
    flush_check(store);
    pool_check(&store->pool);
    LEAT_ASSERT_CMP(count_of(&store->arenas), ==, store->arena_count);
    LEAT_LIST_EACH(&store->arenas, it)
    pool_check(&LEAT_CONTAINER(it, const struct leat_store_arena, link)->pool);
}
