/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: requests that need a buffer, and the sources of buffers.
 *
 * Buffers come, in this order: free ones; a step more of the arena; closed segments that are in their files already,
 * oldest first, by asking their owners (which hold the readers' pins); closed segments still to be flushed (flush.c
 * hurries when half of the pool is used). Requests wait in one queue per size: a large request does not hold up small
 * requests, which hibernates and rolls need to free memory again; nor do small requests hold up a large request for
 * ever (see fairness below). */
#include "store/private.h"

#include "base/node_log.h"

static void wait_push(struct leat_store *store, struct leat_store_req *req, uint32_t capacity)
{
    unsigned order = leat_buddy_order(capacity, LEAT_SLOT_UNIT_BYTES);
    leat_list_push_back(&store->memory_waits[order], &req->waiting);
    store->memory_wait_count++;
    store->memory_wait_bytes += capacity;
}

static void wait_remove(struct leat_store *store, struct leat_store_req *req)
{
    leat_list_remove(&req->waiting);
    store->memory_wait_count--;
    store->memory_wait_bytes -= req->seg->capacity;
}

void leat_memory_reserve(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    uint32_t capacity = req->capacity;
    LEAT_ASSERT(capacity >= LEAT_SEGMENT_BYTES_MIN && capacity <= LEAT_SEGMENT_BYTES_MAX &&
                (capacity & (capacity - 1)) == 0);
    req->seg = NULL;
    if (store->cat.failed) {
        leat_store_answer(store, req, LEAT_E_DISK);
        return;
    }
    struct leat_held *held = leat_held_get(store);
    if (!held) {
        leat_store_answer(store, req, LEAT_E_NO_MEMORY);
        return;
    }
    leat_err rc = leat_slots_take(&store->slots, capacity, req->durability, &held->slot);
    if (!rc) {
        rc = leat_catalogue_take(&store->cat, &held->seg.row);
        if (rc) leat_slots_give(&store->slots, held->slot, capacity);
    }
    if (rc) {
        leat_held_put(store, held);
        leat_store_answer(store, req, rc);
        return;
    }
    struct leat_segment *seg = &held->seg;
    seg->log = req->log;
    seg->id = req->id;
    seg->epoch = req->epoch;
    seg->durability = req->durability;
    seg->version = req->version ? req->version : 1;
    seg->role = req->role;
    seg->writer = req->writer;
    seg->incomplete = req->incomplete;
    seg->provisional = req->provisional;
    seg->capacity = capacity;
    seg->file = held->slot.file->file;
    seg->file_number = held->slot.file->number;
    seg->file_offset = (uint64_t)held->slot.unit * LEAT_SLOT_UNIT_BYTES;
    seg->state = LEAT_SEGMENT_RESERVED;
    seg->owner_actor = req->from;
    *leat_catalogue_held(&store->cat, seg->row) = held;
    req->seg = seg;
    if (req->arena)
        leat_arena_take(store, req);
    else
        wait_push(store, req, capacity);
}

void leat_memory_resume(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(req->seg);
    LEAT_ASSERT_CMP(req->seg->state, ==, LEAT_SEGMENT_HIBERNATED);
    LEAT_ASSERT(req->seg->buffer == NULL);
    if (store->cat.failed || held->failed || held->slot.file->failed)
        leat_store_answer(store, req, LEAT_E_DISK);
    else if (req->arena)
        leat_arena_take(store, req);
    else
        wait_push(store, req, req->seg->capacity);
}

void leat_memory_move(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    if (store->cat.failed)
        leat_store_answer(store, req, LEAT_E_DISK);
    else if (!leat_held_in_arena(leat_held_of(req->seg)))
        leat_store_answer(store, req, LEAT_OK); /* no other writer */
    else
        wait_push(store, req, req->seg->capacity);
}

void leat_memory_evict(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(req->seg);
    LEAT_ASSERT_CMP(req->seg->state, ==, LEAT_SEGMENT_CLOSED);
    LEAT_ASSERT(held->where == LEAT_HELD_CACHED || held->where == LEAT_HELD_ASKED ||
                held->where == LEAT_HELD_KEPT);
    leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
    held->events_wanted &= ~(unsigned)LEAT_HELD_EVENT_EVICT;
    leat_held_release_buffer(store, held);
    leat_store_answer(store, req, LEAT_OK);
}

static void give_up(struct leat_store *store, struct leat_store_req *req)
{
    wait_remove(store, req);
    leat_memory_refuse(store, req);
}

static void serve_waits(struct leat_store *store)
{
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        while (!leat_list_empty(&store->memory_waits[order])) {
            struct leat_store_req *req = leat_store_req_waiting(store->memory_waits[order].next);
            uint8_t *buffer = leat_pool_take(&store->pool, req->seg->capacity);
            if (!buffer) return; /* no larger one either */
            wait_remove(store, req);
            leat_memory_got_buffer(store, req, &store->pool, buffer);
        }
    }
}

/* ---- fairness ----
 * Small requests are served from any free memory, so that a large request could wait for ever. A request that has
 * waited for LEAT_STORE_FAVOUR_US gets a place: the aligned piece of its size of which most is free or could be given
 * back. Free memory in this place is kept for the request (buddy.kept), and flushed segments in this place are asked
 * back first. Small requests go on everywhere else. */
static struct leat_store_req *oldest(const struct leat_store *store)
{
    struct leat_store_req *oldest = NULL;
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        if (leat_list_empty(&store->memory_waits[order])) continue;
        struct leat_store_req *req = leat_store_req_waiting(store->memory_waits[order].next);
        if (!oldest || req->asked_us <= oldest->asked_us) oldest = req;
    }
    return oldest;
}

static void count_units(const struct leat_list *list, const struct leat_store *store,
                        unsigned order, uint32_t *units)
{
    for (const struct leat_list *it = list->next; it != list; it = it->next) {
        const struct leat_held *held = leat_held_by_store(it);
        if (!held->seg.buffer || leat_held_in_arena(held)) continue;
        uint64_t unit =
            (uint64_t)(held->seg.buffer - store->pool.arena->base) / LEAT_SLOT_UNIT_BYTES;
        units[unit >> order] += held->seg.capacity / LEAT_SLOT_UNIT_BYTES;
    }
}

static void place_choose(struct leat_store *store, unsigned order)
{
    struct leat_buddy *buddy = &store->pool.buddy;
    uint32_t places = (uint32_t)(store->pool.limit_bytes / LEAT_SLOT_UNIT_BYTES) >> order;
    uint32_t *units = leat_mem_calloc(LEAT_MEM_STORE, buddy->units >> order, sizeof *units);
    if (!units) return; /* again at the next look */
    for (uint32_t i = 0; i < places; i++)
        units[i] = leat_buddy_free_in(buddy, i << order, order);
    count_units(&store->cached, store, order, units);
    count_units(&store->asked, store, order, units);
    count_units(&store->dirty, store, order, units);
    count_units(&store->dirty_soon, store, order, units);
    uint32_t best = 0;
    for (uint32_t i = 1; i < places; i++)
        if (units[i] > units[best]) best = i;
    leat_buddy_keep(buddy, best << order, order);
    leat_mem_free(units);
}

static void ask_one(struct leat_store *store, struct leat_held *held)
{
    if (held->seg.owner_actor >= LEAT_CORES_MAX) {
        /* No owner, no pins: no request is needed. */
        leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
        leat_held_release_buffer(store, held);
        return;
    }
    leat_held_move(held, LEAT_HELD_ASKED, &store->asked);
    leat_held_tell(store, held, LEAT_HELD_EVENT_EVICT);
}

static void ask_in_place(struct leat_store *store)
{
    const struct leat_buddy *buddy = &store->pool.buddy;
    const uint8_t *base = store->pool.arena->base;
    const uint8_t *from = base + (uint64_t)buddy->kept_from * LEAT_SLOT_UNIT_BYTES;
    const uint8_t *end = base + (uint64_t)buddy->kept_end * LEAT_SLOT_UNIT_BYTES;
    LEAT_LIST_EACH(&store->cached, it)
    {
        struct leat_held *held = leat_held_by_store(it);
        if (held->seg.buffer >= from && held->seg.buffer < end) ask_one(store, held);
    }
}

/* Buffers past the limit are not used again: flushed segments there are evicted now, whatever their age. */
static void ask_past(struct leat_store *store)
{
    const struct leat_pool *pool = &store->pool;
    const uint8_t *from = pool->arena->base + pool->limit_bytes;
    const uint8_t *end = pool->arena->base + (uint64_t)pool->buddy.units * LEAT_SLOT_UNIT_BYTES;
    LEAT_LIST_EACH(&store->cached, it)
    {
        struct leat_held *held = leat_held_by_store(it);
        if (held->seg.buffer >= from && held->seg.buffer < end) ask_one(store, held);
    }
}

static void limit_step(struct leat_store *store)
{
    struct leat_pool *pool = &store->pool;
    uint64_t less = store->options.less_bytes(store->options.owner);
    uint64_t full = pool->full_bytes, step = LEAT_ARENA_STEP_BYTES;
    uint64_t most = less < full ? LEAT_ALIGN_DOWN(full - less, step) : 0;
    /* Up again with some room to spare, or it would go up and down with every log. */
    if (most > pool->limit_bytes) {
        less += step / 4;
        most = less < full ? LEAT_ALIGN_DOWN(full - less, step) : 0;
        if (most < pool->limit_bytes) most = pool->limit_bytes;
        if (less == step / 4) most = full;
    }
    if (most < step) most = step;
    if (most == pool->limit_bytes) return;
    leat_node_log_info(
        "memory for segments: %llu MiB of %llu, as much as logs, what is stored and replicas leave",
        (unsigned long long)(most >> 20), (unsigned long long)(full >> 20));
    /* The place that is kept free for a request may be past the limit. */
    leat_buddy_keep_none(&pool->buddy);
    store->favoured = NULL;
    leat_pool_limit_set(pool, most);
}

static void look_step(struct leat_store *store, uint64_t now_us)
{
    if (now_us < store->look_us) return;
    if (store->options.less_bytes) limit_step(store);
    bool past = leat_pool_past_bytes(&store->pool) != 0;
    if (past && store->started) ask_past(store);
    store->look_us = now_us + (past ? LEAT_STORE_LOOK_PAST_US : LEAT_STORE_LOOK_US);
}

static void favour_step(struct leat_store *store, uint64_t now_us)
{
    struct leat_buddy *buddy = &store->pool.buddy;
    struct leat_store_req *req = oldest(store);
    if (store->favoured != req) {
        leat_buddy_keep_none(buddy);
        store->favoured = NULL;
    }
    if (!req || now_us < req->asked_us + LEAT_STORE_FAVOUR_US) return;
    if (leat_pool_can_grow(&store->pool)) return; /* comes by itself, in one piece */
    unsigned order = leat_buddy_order(req->seg->capacity, LEAT_SLOT_UNIT_BYTES);
    if (order == 0) return; /* any unit will do */
    if (!store->favoured || now_us >= store->favoured_at_us + LEAT_STORE_FAVOUR_US) {
        leat_buddy_keep_none(buddy);
        place_choose(store, order);
        store->favoured = req;
        store->favoured_at_us = now_us;
        if (buddy->kept_from != buddy->kept_end) ask_in_place(store);
    }
    if (buddy->kept_from == buddy->kept_end) return;
    uint32_t unit = buddy->kept_from;
    if (!leat_buddy_claim(buddy, unit, order)) return;
    store->pool.given++;
    leat_buddy_keep_none(buddy);
    store->favoured = NULL;
    uint8_t *buffer = store->pool.arena->base + (uint64_t)unit * LEAT_SLOT_UNIT_BYTES;
    memset(buffer, 0, LEAT_ENTRY_HEADER_BYTES);
    wait_remove(store, req);
    leat_memory_got_buffer(store, req, &store->pool, buffer);
}

/* Keep an eighth of the budget free, and what is waited for. While the pool would rather recycle
 * than grow, a step's worth of what it has is kept free as well. */
static void ask_back(struct leat_store *store)
{
    const struct leat_pool *pool = &store->pool;
    uint64_t used = leat_pool_used(pool); /* more than the limit, if that was lowered */
    uint64_t in_hand = (uint64_t)pool->buddy.free_units * LEAT_SLOT_UNIT_BYTES;
    uint64_t free_bytes = used < pool->limit_bytes ? pool->limit_bytes - used : 0;
    uint64_t over_bytes = used > pool->limit_bytes ? used - pool->limit_bytes : 0;
    if (pool->grow_failed) free_bytes = in_hand;
    /* What lies past a lowered limit is wanted back in this turn: no later one may come. */
    uint64_t want = pool->limit_bytes / 8 + store->memory_wait_bytes + over_bytes;
    uint64_t lack = want > free_bytes ? want - free_bytes : 0;
    uint64_t step = LEAT_ARENA_STEP_BYTES + store->memory_wait_bytes;
    if (leat_pool_prefers_recycling(pool, store->cached_bytes + store->asked_bytes) &&
        step > in_hand && step - in_hand > lack)
        lack = step - in_hand;
    bool stuck = store->memory_wait_count && !leat_pool_can_grow(pool) &&
                 store->asked_bytes == 0; /* free, but in pieces */
    uint64_t got = store->asked_bytes;
    while ((got < lack || stuck) && !leat_list_empty(&store->cached)) {
        struct leat_held *held = leat_held_by_store(store->cached.next);
        got += held->seg.capacity;
        ask_one(store, held);
        stuck = false;
    }
}

void leat_memory_step(struct leat_store *store, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(store);
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        while (!leat_list_empty(&store->memory_waits[order])) {
            struct leat_store_req *req = leat_store_req_waiting(store->memory_waits[order].next);
            if (now_us < req->asked_us + LEAT_RESERVE_WAIT_US) break;
            uint8_t *buffer = leat_pool_take(&store->pool, req->seg->capacity);
            if (!buffer) {
                give_up(store, req);
                continue;
            }
            wait_remove(store, req);
            leat_memory_got_buffer(store, req, &store->pool, buffer);
        }
    }
    look_step(store, now_us);
    favour_step(store, now_us);
    serve_waits(store);
    const struct leat_store_req *req = oldest(store);
    /* Other users of memory count the pool's present size, not its limit. */
    if (store->options.less_bytes && leat_pool_can_grow(&store->pool)) limit_step(store);
    bool impatient = req && now_us >= req->asked_us + LEAT_STORE_GROW_PATIENCE_US;
    bool slowly = !impatient && leat_pool_prefers_recycling(&store->pool, store->cached_bytes +
                                                                              store->asked_bytes);
    leat_pool_step(&store->pool, req != NULL, slowly, now_us);
    if (store->started) ask_back(store);
    leat_arenas_step(store, now_us);
}

uint64_t leat_memory_next_us(const struct leat_store *store)
{
    uint64_t next = UINT64_MAX;
    bool waits = false;
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        if (leat_list_empty(&store->memory_waits[order])) continue;
        waits = true;
        uint64_t at = leat_store_req_waiting(store->memory_waits[order].next)->asked_us +
                      LEAT_RESERVE_WAIT_US;
        if (at < next) next = at;
    }
    if (waits) { /* look again soon */
        uint64_t now_us = store->env->clock->now_us(store->env->clock->ctx);
        if (now_us + LEAT_STORE_GROW_PATIENCE_US < next)
            next = now_us + LEAT_STORE_GROW_PATIENCE_US;
    }
    if ((store->options.less_bytes || leat_pool_past_bytes(&store->pool) != 0) &&
        store->look_us < next)
        next = store->look_us;
    uint64_t due_us = leat_pool_due_us(&store->pool);
    if (due_us < next) next = due_us;
    due_us = leat_arenas_due_us(store);
    return due_us < next ? due_us : next;
}
