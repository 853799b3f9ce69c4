/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: power-of-two pieces of the arena.
 *
 * A recycled buffer keeps its old bytes but for the first entry's place, which is cleared: zeroing all of it took 12
 * % of a busy server's CPU. Old bytes cannot pass for the new segment's: the header entry begins the chain of
 * trailers and has other ids or another epoch, so no old trailer matches, except by chance, 1 in 2^32. Zeros are
 * needed in three places: after a cut and after a resumed prefix, where old bytes may continue this chain, and in
 * replicas' buffers, where a remote writer writes in any order. The first entry is cleared before the row is written:
 * after a kill a row names memory that has the row's segment, or nothing.
 *
 * Growing costs 0.6 to 2.6 s of CPU per GiB by first touch, recycling a flushed segment next to nothing. So the pool
 * grows ahead of use up to three quarters of its limit; from there on, while flushed segments could be given out
 * instead, by one step in four seconds only. A buffer that is given out again loses its segment from memory, and
 * consumers of the segment wait for the disk; so the limit is not half. */
#include "store/private.h"

#include "base/bug.h"
#include "base/copy.h"

static void on_grown(struct leat_arena_grow *grow);

static uint32_t unit_of(const struct leat_pool *pool, const uint8_t *buffer)
{
    return (uint32_t)((uint64_t)(buffer - pool->arena->base) / LEAT_SLOT_UNIT_BYTES);
}

static void add_grown(struct leat_pool *pool)
{
    uint64_t span = (uint64_t)pool->buddy.units * LEAT_SLOT_UNIT_BYTES;
    uint64_t grown = pool->arena->grown_bytes < span ? pool->arena->grown_bytes : span;
    LEAT_ASSERT_CMP(grown, >=, pool->added_bytes);
    leat_buddy_add(&pool->buddy, (uint32_t)(pool->added_bytes / LEAT_SLOT_UNIT_BYTES),
                   (uint32_t)((grown - pool->added_bytes) / LEAT_SLOT_UNIT_BYTES));
    pool->added_bytes = grown;
}

leat_err leat_pool_init(struct leat_pool *pool, struct leat_arena *arena, uint64_t limit_bytes)
{
    *pool = (struct leat_pool){
        .arena = arena, .ahead_bytes = LEAT_ARENA_STEP_BYTES, .due_us = UINT64_MAX};
    if (limit_bytes > arena->limit_bytes) limit_bytes = arena->limit_bytes;
    limit_bytes = LEAT_ALIGN_DOWN(limit_bytes, (uint64_t)LEAT_ARENA_STEP_BYTES);
    if (limit_bytes == 0 || limit_bytes / LEAT_SLOT_UNIT_BYTES > UINT32_MAX) return LEAT_E_CONFIG;
    pool->limit_bytes = pool->full_bytes = limit_bytes;
    /* Started with a smaller budget than before, the arena still has what lies past it: that is
     * found and read, but not given out again, and goes back step by step. */
    uint64_t span = limit_bytes > arena->inherited_bytes ? limit_bytes : arena->inherited_bytes;
    if (span / LEAT_SLOT_UNIT_BYTES > UINT32_MAX) return LEAT_E_CONFIG;
    uint32_t units = (uint32_t)(span / LEAT_SLOT_UNIT_BYTES);
    leat_err rc = leat_buddy_init(&pool->buddy, units);
    if (rc) return rc;
    leat_buddy_limit_set(&pool->buddy, (uint32_t)(limit_bytes / LEAT_SLOT_UNIT_BYTES));
    add_grown(pool);
    pool->grow.owner = pool;
    return LEAT_OK;
}

void leat_pool_fini(struct leat_pool *pool)
{
    leat_buddy_fini(&pool->buddy);
}

uint8_t *leat_pool_take(struct leat_pool *pool, uint32_t capacity)
{
    uint32_t unit;
    if (!leat_buddy_take(&pool->buddy, leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES), &unit))
        return NULL;
    pool->used_once = true;
    pool->given++;
    uint8_t *buffer = pool->arena->base + (uint64_t)unit * LEAT_SLOT_UNIT_BYTES;
    if (!pool->zeroed) memset(buffer, 0, LEAT_ENTRY_HEADER_BYTES);
    return buffer;
}

bool leat_pool_claim(struct leat_pool *pool, uint64_t at, uint32_t capacity)
{
    if (at % LEAT_SLOT_UNIT_BYTES || at / LEAT_SLOT_UNIT_BYTES > UINT32_MAX) return false;
    pool->used_once = true;
    bool taken = leat_buddy_claim(&pool->buddy, (uint32_t)(at / LEAT_SLOT_UNIT_BYTES),
                                  leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES));
    if (taken) pool->given++;
    return taken;
}

bool leat_pool_peek(struct leat_pool *pool, uint64_t at, uint32_t capacity, uint32_t bytes,
                    uint8_t *into)
{
    uint32_t unit = (uint32_t)(at / LEAT_SLOT_UNIT_BYTES);
    unsigned order = leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES);
    if (!leat_buddy_claim(&pool->buddy, unit, order)) return false;
    memcpy(into, pool->arena->base + at, bytes);
    leat_buddy_give(&pool->buddy, unit, order);
    return true;
}

void leat_pool_give(struct leat_pool *pool, uint8_t *buffer, uint32_t capacity)
{
    uint32_t unit = unit_of(pool, buffer);
    LEAT_ASSERT_CMP(pool->given, >, 0);
    pool->given--;
    if (pool->retired) return;
    if (pool->zeroed) leat_zero_block(buffer, capacity);
    leat_buddy_give(&pool->buddy, unit, leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES));
}

void leat_pool_limit_set(struct leat_pool *pool, uint64_t limit_bytes)
{
    LEAT_ASSERT_CMP(limit_bytes % LEAT_ARENA_STEP_BYTES, ==, 0);
    LEAT_ASSERT(limit_bytes != 0 && limit_bytes <= pool->full_bytes);
    leat_buddy_limit_set(&pool->buddy, (uint32_t)(limit_bytes / LEAT_SLOT_UNIT_BYTES));
    pool->limit_bytes = limit_bytes;
}

uint64_t leat_pool_past_bytes(const struct leat_pool *pool)
{
    if (pool->added_bytes <= pool->limit_bytes) return 0;
    return pool->added_bytes - pool->limit_bytes -
           (uint64_t)pool->buddy.past_units * LEAT_SLOT_UNIT_BYTES;
}

uint64_t leat_pool_used(const struct leat_pool *pool)
{
    uint64_t free_units = (uint64_t)pool->buddy.free_units + pool->buddy.past_units;
    return pool->added_bytes - free_units * LEAT_SLOT_UNIT_BYTES;
}

bool leat_pool_can_grow(const struct leat_pool *pool)
{
    return !pool->grow_failed && pool->added_bytes < pool->limit_bytes;
}

static void on_grown(struct leat_arena_grow *grow)
{
    struct leat_pool *pool = grow->owner;
    pool->growing = false;
    /* Named memory is full. What is there must do for a while: asking again on every request would
     * only burn time, and the budget is a limit, not a promise. */
    if (grow->rc) pool->grow_failed = true;
    add_grown(pool);
}

static void on_shrunk(struct leat_arena_grow *grow)
{
    struct leat_pool *pool = grow->owner;
    pool->growing = false;
    if (grow->rc) pool->keeps = true;
    add_grown(pool); /* what was kept */
}

/* The last step is past the limit and nothing of it is used: it goes back to the kernel. */
static bool shrink(struct leat_pool *pool)
{
    const unsigned order = LEAT_BUDDY_ORDERS - 1;
    const uint32_t units = LEAT_ARENA_STEP_BYTES / LEAT_SLOT_UNIT_BYTES;
    if (pool->arena->shrink == NULL || pool->keeps || pool->added_bytes <= pool->limit_bytes ||
        pool->buddy.past_units < units)
        return false;
    uint32_t end = (uint32_t)(pool->added_bytes / LEAT_SLOT_UNIT_BYTES), from = end - units;
    for (uint32_t unit = from; unit < end; unit += 1u << order)
        if (leat_buddy_free_in(&pool->buddy, unit, order) != 1u << order) return false;
    for (uint32_t unit = from; unit < end; unit += 1u << order)
        LEAT_ASSERT(leat_buddy_claim(&pool->buddy, unit, order));
    pool->added_bytes -= LEAT_ARENA_STEP_BYTES;
    pool->growing = true;
    pool->grow.on_grown = on_shrunk;
    pool->arena->shrink(pool->arena->ctx, &pool->grow);
    return true;
}

bool leat_pool_prefers_recycling(const struct leat_pool *pool, uint64_t recyclable_bytes)
{
    uint64_t eager_bytes = pool->limit_bytes / 4 * 3;
    return pool->added_bytes >= eager_bytes && recyclable_bytes >= LEAT_ARENA_STEP_BYTES;
}

uint64_t leat_pool_due_us(const struct leat_pool *pool)
{
    return pool->retired ? UINT64_MAX : pool->due_us;
}

/* SUBTLE: the first step ahead of use waits for a while, as long as half of ahead_bytes is free.
 *  1. A node has only had replicas, which are in arenas: its pool has never been used.
 *  2. An owner dies. The fence moves its open replicas, up to 8 MiB, into the pools of all other nodes.
 *  3. All these pools had less free than ahead_bytes at the same moment, and the nodes touched 64 MiB each, 10 to
 *     25 ms of a processor, while the dead node's logs waited for a commit and an owner. */
static uint64_t first_step_us(const struct leat_pool *pool, uint64_t free_bytes)
{
    bool rests = !pool->went_ahead && free_bytes >= pool->ahead_bytes / 2;
    return pool->behind_us + (rests ? LEAT_STORE_GROW_FIRST_US : 0);
}

/* SUBTLE: each step computes anew what the pool waits for. A produce and a delete took the pool's free bytes below
 * ahead_bytes and back; the moment when they went below was kept, and as the time of the next wake-up this moment
 * stayed in the past for ever. */
void leat_pool_step(struct leat_pool *pool, bool wanted, bool slowly, uint64_t now_us)
{
    uint64_t retry_us = pool->grown_us + LEAT_STORE_GROW_RETRY_US;
    uint64_t was_us = pool->due_us;
    pool->due_us = UINT64_MAX;
    if (now_us >= retry_us) pool->grow_failed = false;
    if (pool->grow_failed) pool->due_us = retry_us;
    if (pool->growing || shrink(pool) || !leat_pool_can_grow(pool)) return;
    uint64_t free_bytes = (uint64_t)pool->buddy.free_units * LEAT_SLOT_UNIT_BYTES;
    bool behind = pool->used_once && free_bytes < pool->ahead_bytes;
    if (!behind)
        pool->behind_us = 0;
    else if (pool->behind_us == 0)
        pool->behind_us = now_us;
    if (!behind && LEAT_BUG(POOL_STILL_WAITS)) pool->due_us = was_us;
    if (!wanted && !behind && pool->added_bytes != 0) return;
    uint64_t at_us = slowly ? pool->grown_us + LEAT_STORE_GROW_PAUSE_US : now_us;
    if (!wanted && behind && first_step_us(pool, free_bytes) > at_us)
        at_us = first_step_us(pool, free_bytes);
    if (now_us < at_us) {
        pool->due_us = at_us;
        return;
    }
    pool->went_ahead = pool->went_ahead || behind;
    pool->grown_us = now_us;
    pool->growing = true;
    pool->grow.on_grown = on_grown;
    pool->arena->grow(pool->arena->ctx, &pool->grow);
}
