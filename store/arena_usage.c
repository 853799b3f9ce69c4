/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas of replicas, as all parts see them: whose a row names, how much of them is in use. */
#include "store/private.h"

struct leat_pool *leat_arenas_find(struct leat_store *store, const struct leat_row *row)
{
    LEAT_LIST_EACH(&store->arenas, it)
    {
        struct leat_pool *pool = &leat_store_arena_at(it)->pool;
        if (memcmp(pool->arena->pool_id, row->pool_id, sizeof row->pool_id) == 0) return pool;
    }
    return NULL;
}

static bool any_uses_over(const struct leat_store *store, uint64_t eighths)
{
    for (const struct leat_list *it = store->arenas.next; it != &store->arenas; it = it->next) {
        const struct leat_pool *pool =
            &LEAT_CONTAINER(it, const struct leat_store_arena, link)->pool;
        /* Writers share the memory for replicas: most arenas are refused growth before their limit. */
        uint64_t most = pool->grow_failed ? pool->added_bytes : pool->limit_bytes;
        uint64_t used = leat_pool_used(pool) - pool->leaving_bytes;
        if (!pool->retired && used > most / 8 * eighths) return true;
    }
    return false;
}

bool leat_arenas_pressed(const struct leat_store *store)
{
    return any_uses_over(store, 4);
}

bool leat_arenas_short(const struct leat_store *store)
{
    return any_uses_over(store, 6);
}

void leat_arenas_usage(struct leat_store *store)
{
    uint64_t limit = 0, used = 0, grown = 0;
    LEAT_LIST_EACH(&store->arenas, it)
    {
        const struct leat_pool *pool = &leat_store_arena_at(it)->pool;
        limit += pool->retired ? 0 : pool->limit_bytes;
        used += leat_pool_used(pool);
        grown += pool->added_bytes;
    }
    atomic_store_explicit(&store->usage_arenas_limit, limit, memory_order_relaxed);
    atomic_store_explicit(&store->usage_arenas, used, memory_order_relaxed);
    atomic_store_explicit(&store->usage_arenas_grown, grown, memory_order_relaxed);
    atomic_store_explicit(&store->usage_arenas_dirty, store->arenas_dirty, memory_order_relaxed);
    atomic_store_explicit(&store->usage_flush_speed, store->flush_speed, memory_order_relaxed);
    atomic_store_explicit(&store->usage_zeroing, store->zeroing_ns, memory_order_relaxed);
    atomic_store_explicit(&store->usage_flush, store->flush_ns, memory_order_relaxed);
}
