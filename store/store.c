/* SPDX-License-Identifier: Apache-2.0 */
/* The store's actor: requests come in by mail, one step after every batch of callbacks. */
#include "store/private.h"

/* ---- requests ---- */
static void request_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store *store = actor;
    struct leat_store_req *req = LEAT_CONTAINER(mail, struct leat_store_req, mail);
    req->asked_us = store->env->clock->now_us(store->env->clock->ctx);
    switch (req->kind) {
    case LEAT_STORE_RESERVE:
        store->reserves_begun++;
        leat_memory_reserve(store, req);
        return;
    case LEAT_STORE_RESUME:
        leat_memory_resume(store, req);
        return;
    case LEAT_STORE_EVICT:
        leat_memory_evict(store, req);
        return;
    case LEAT_STORE_MOVE:
        leat_memory_move(store, req);
        return;
    case LEAT_STORE_REPAIR:
        leat_repair(store, req);
        return;
    case LEAT_STORE_COMMIT:
        store->committed_us = req->asked_us;
        break;
    case LEAT_STORE_CLOSE:
    case LEAT_STORE_HIBERNATE:
    case LEAT_STORE_STAMP:
    case LEAT_STORE_GIVE_UP:
    case LEAT_STORE_DROP:
        break;
    }
    leat_round_add(store, req);
}

static void store_port_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    struct leat_store *store = ctx;
    if (req->kind == LEAT_STORE_RESERVE)
        atomic_fetch_add_explicit(&store->reserves_sent, 1, memory_order_relaxed);
    req->from = post->self;
    req->rc = LEAT_OK;
    req->mail = (struct leat_mail){.deliver = request_deliver};
    post->send(post->ctx, LEAT_ACTOR_STORE, &req->mail);
}

/* Alone, the store's memory is named shared memory: a killed process loses nothing of it. */
static bool store_port_safe_in_memory(void *ctx, const struct leat_segment *seg)
{
    (void)ctx;
    return seg->buffer != NULL;
}

/* Is the head past the limit of the pool? If the rest of the pool is full the head stays: its successor would wait
 * for memory, and hold up requests without any buffer. */
static bool store_port_in_the_way(void *ctx, const struct leat_segment *head)
{
    const struct leat_store *store = ctx;
    uint64_t limit = atomic_load_explicit(&store->usage_limit, memory_order_relaxed);
    uint64_t room = atomic_load_explicit(&store->usage_room, memory_order_relaxed);
    if (atomic_load_explicit(&store->usage_kept, memory_order_relaxed)) return false;
    const struct leat_pool *pool = &store->pool; /* the fields that are read here never change */
    uintptr_t base = (uintptr_t)pool->arena->base, at = (uintptr_t)head->buffer;
    uint64_t span = (uint64_t)pool->buddy.units * LEAT_SLOT_UNIT_BYTES;
    if (at < base + limit || at >= base + span) return false;
    return room >= head->capacity + limit / LEAT_STORE_ROOM_PART;
}

struct leat_store_port leat_store_port(struct leat_store *store)
{
    return (struct leat_store_port){.ctx = store,
                                    .request = store_port_request,
                                    .safe_in_memory = store_port_safe_in_memory,
                                    .in_the_way = store_port_in_the_way,
                                    .commits = 2};
}

/* ---- the actor ---- */
static void usage_step(struct leat_store *store)
{
    atomic_store_explicit(&store->usage_limit, store->pool.limit_bytes, memory_order_relaxed);
    atomic_store_explicit(&store->usage_memory, leat_pool_used(&store->pool), memory_order_relaxed);
    atomic_store_explicit(&store->usage_room,
                          (uint64_t)store->pool.buddy.free_units * LEAT_SLOT_UNIT_BYTES,
                          memory_order_relaxed);
    uint64_t moving = store->pool.growing ? LEAT_ARENA_STEP_BYTES : 0;
    atomic_store_explicit(&store->usage_grown, store->pool.added_bytes + moving,
                          memory_order_relaxed);
    atomic_store_explicit(&store->usage_kept, store->pool.keeps || !store->pool.arena->shrink,
                          memory_order_relaxed);
    atomic_store_explicit(&store->usage_disk,
                          store->slots.disk_bytes + leat_catalogue_bytes(&store->cat),
                          memory_order_relaxed);
    atomic_store_explicit(&store->usage_segments, store->cat.held_count, memory_order_relaxed);
    atomic_store_explicit(&store->usage_disk_lacks, store->slots.full_bytes, memory_order_relaxed);
    atomic_store_explicit(&store->usage_rows_free, leat_held_free_bytes(store),
                          memory_order_relaxed);
    /* Stored last: a reader that counts the row of a request also sees the smaller number of free rows. */
    atomic_store_explicit(&store->usage_reserves, store->reserves_begun, memory_order_release);
    leat_arenas_usage(store);
}

enum { EVENT_RETRY_US = 2000 };

static void arm(struct leat_store *store, uint64_t now_us, bool events_wait)
{
    uint64_t at = leat_memory_next_us(store);
    uint64_t next = leat_flush_next_us(store, now_us);
    if (next < at) at = next;
    next = leat_scrub_next_us(store);
    if (next < at) at = next;
    if (events_wait && now_us + EVENT_RETRY_US < at) at = now_us + EVENT_RETRY_US;
    store->env->clock->wake_at(store->env->clock->ctx, at);
}

/* Twice as fast as space is used, not faster: a step of 64 MiB in one go kept commits waiting. */
static void ahead_step(struct leat_store *store, uint64_t now_us)
{
    if (leat_store_commits_come(store, now_us) &&
        store->committed_bytes < LEAT_STORE_ZERO_EVERY_BYTES)
        return;
    if (leat_slots_step(&store->slots)) store->committed_bytes = 0;
}

static void on_turn_end(void *actor)
{
    struct leat_store *store = actor;
    uint64_t now_us = store->env->clock->now_us(store->env->clock->ctx);
    leat_memory_step(store, now_us);
    leat_round_step(store);
    leat_flush_step(store, now_us);
    ahead_step(store, now_us);
    leat_scrub_step(store, now_us);
    bool events_wait = leat_held_events_step(store);
    usage_step(store);
    arm(store, now_us, events_wait);
}

static void on_wake(void *actor)
{
    (void)actor; /* the turn's end does it all */
}

const struct leat_actor_ops leat_store_actor = {on_wake, on_turn_end, leat_store_check};

/* ---- open and close ---- */
static void complain_line(void *arg, const char *line)
{
    leat_store_complain(arg, "%s", line);
}

static void lists_init(struct leat_store *store)
{
    struct leat_list *heads[] = {
        &store->held_free, &store->slabs_head,   &store->zombies,    &store->event_waits,
        &store->todo,      &store->files_ready,  &store->rows_reqs,  &store->rows_flush,
        &store->dirty,     &store->flush_synced, &store->cached,     &store->asked,
        &store->stuck,     &store->arenas,       &store->dirty_soon,
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        leat_list_init(heads[i]);
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++)
        leat_list_init(&store->memory_waits[order]);
}

static leat_err parts_open(struct leat_store *store, struct leat_error *error)
{
    const struct leat_store_options *options = &store->options;
    store->complaints =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_COMPLAINTS_MAX, sizeof *store->complaints);
    if (!store->complaints) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory");
    leat_err rc = leat_pool_init(&store->pool, store->env->arena, options->memory_bytes);
    if (rc)
        return leat_error_set(error, rc, "a memory pool of %llu bytes is not possible: %s",
                              (unsigned long long)options->memory_bytes, leat_err_text(rc));
    rc = leat_arenas_open(store);
    if (!rc) rc = leat_slots_init(&store->slots, store->env->disk);
    if (!rc) rc = leat_catalogue_init(&store->cat, store->env->disk);
    if (rc) return leat_error_set(error, rc, "no memory for the store's tables");
    rc = leat_slots_open(&store->slots, error);
    if (rc) return rc;
    uint64_t bad_rows = 0;
    rc = leat_catalogue_open(&store->cat, store->env, options->cluster_id,
                             store->slots.disk_bytes != 0, complain_line, store, &bad_rows, error);
    if (rc) return rc;
    store->rows_damaged = bad_rows != 0;
    return leat_open_found(store, store->rows_damaged, error);
}

bool leat_store_rows_damaged(const struct leat_store *store)
{
    return store->rows_damaged;
}

leat_err leat_store_open(const struct leat_env *env, const struct leat_store_options *options,
                         struct leat_store **out_store, struct leat_error *error)
{
    LEAT_ASSERT(env->arena && env->disk && env->disk->run && env->post && env->clock);
    struct leat_store *store = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *store);
    if (!store) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the store");
    store->env = env;
    store->options = *options;
    lists_init(store);
    leat_err rc = parts_open(store, error);
    if (rc) {
        leat_store_close(&store);
        return rc;
    }
    usage_step(store);
    *out_store = store;
    return LEAT_OK;
}

void leat_store_id(const struct leat_store *store, uint8_t out_id[16])
{
    memcpy(out_id, store->cat.header.store_id, sizeof store->cat.header.store_id);
}

leat_err leat_store_join(struct leat_store *store, const uint8_t cluster_id[16],
                         struct leat_error *error)
{
    LEAT_ASSERT_OWNER(store);
    leat_err rc = leat_catalogue_cluster_set(&store->cat, cluster_id, error);
    if (!rc) memcpy(store->options.cluster_id, cluster_id, sizeof store->options.cluster_id);
    return rc;
}

void leat_store_close(struct leat_store **store_pointer)
{
    struct leat_store *store = *store_pointer;
    if (!store) return;
    LEAT_ASSERT(!leat_round_running(store) && store->flush_in_flight == 0);
    LEAT_ASSERT(!store->slots.zeroing && store->repairs == 0);
    leat_catalogue_fini(&store->cat);
    leat_slots_fini(&store->slots);
    leat_pool_fini(&store->pool);
    leat_arenas_fini(store);
    leat_held_fini_all(store);
    leat_mem_free(store->found);
    leat_mem_free(store->scratch_raw);
    leat_mem_free(store->complaints);
    leat_mem_free(store);
    *store_pointer = NULL;
}

const struct leat_found *leat_store_found(const struct leat_store *store, size_t *out_count)
{
    *out_count = store->found_own;
    return store->found;
}

const struct leat_found *leat_store_found_replicas(const struct leat_store *store,
                                                   size_t *out_count)
{
    *out_count = store->found_count - store->found_own;
    return store->found != NULL ? store->found + store->found_own : NULL;
}

void leat_store_role_set(struct leat_store *store, struct leat_segment *seg,
                         enum leat_segment_role role, uint64_t writer)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_row *row = leat_catalogue_row(&store->cat, seg->row);
    seg->role = role;
    seg->writer = writer;
    row->writer = writer;
    row->flags = (uint8_t)(row->flags & ~LEAT_ROW_REPLICA);
    if (role == LEAT_SEGMENT_REPLICA) row->flags |= LEAT_ROW_REPLICA;
    leat_row_seal(row, seg->row);
    leat_catalogue_changed(&store->cat, seg->row);
}

void leat_store_found_done(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    leat_mem_free(store->found);
    store->found = NULL;
    store->found_count = store->found_own = 0;
    store->started = true;
}

bool leat_store_is_on_disk(const struct leat_store *store)
{
    for (uint32_t row = 0; row < store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK; row++) {
        const struct leat_held *held = *leat_catalogue_held(&store->cat, row);
        bool in_pool = held && held->pool == &store->pool && held->seg.buffer;
        if (in_pool && !(held->seg.state == LEAT_SEGMENT_CLOSED && held->seg.flushed)) return false;
    }
    return true;
}

void leat_store_flush_all(struct leat_store *store, void (*on_done)(void *arg, leat_err rc),
                          void *arg)
{
    LEAT_ASSERT_OWNER(store);
    LEAT_ASSERT(store->flush_all_done == NULL);
    store->flush_all_done = on_done;
    store->options.scrub_bytes_per_second = 0; /* the end is near: no read may outlive the store */
    store->slots.no_more = true;
    store->flush_all_arg = arg;
}

void leat_store_usage(const struct leat_store *store, struct leat_store_usage *out_usage)
{
    uint64_t begun = atomic_load_explicit(&store->usage_reserves, memory_order_acquire);
    uint64_t sent = atomic_load_explicit(&store->reserves_sent, memory_order_relaxed);
    *out_usage = (struct leat_store_usage){
        .memory_limit = atomic_load_explicit(&store->usage_limit, memory_order_relaxed),
        .memory_used = atomic_load_explicit(&store->usage_memory, memory_order_relaxed),
        .memory_kept = atomic_load_explicit(&store->usage_kept, memory_order_relaxed),
        .memory_grown = atomic_load_explicit(&store->usage_grown, memory_order_relaxed),
        .rows_free_bytes = atomic_load_explicit(&store->usage_rows_free, memory_order_relaxed),
        .rows_asked_bytes = (sent - begun) * LEAT_SEGMENT_HEAP_BYTES,
        .disk_bytes = atomic_load_explicit(&store->usage_disk, memory_order_relaxed),
        .segments = atomic_load_explicit(&store->usage_segments, memory_order_relaxed),
        .arenas_limit = atomic_load_explicit(&store->usage_arenas_limit, memory_order_relaxed),
        .arenas_used = atomic_load_explicit(&store->usage_arenas, memory_order_relaxed),
        .arenas_grown = atomic_load_explicit(&store->usage_arenas_grown, memory_order_relaxed),
        .arenas_dirty = atomic_load_explicit(&store->usage_arenas_dirty, memory_order_relaxed),
        .flush_bytes_per_second =
            atomic_load_explicit(&store->usage_flush_speed, memory_order_relaxed),
        .cpu_zeroing_ns = atomic_load_explicit(&store->usage_zeroing, memory_order_relaxed),
        .cpu_flush_ns = atomic_load_explicit(&store->usage_flush, memory_order_relaxed),
        .disk_lacks_bytes = atomic_load_explicit(&store->usage_disk_lacks, memory_order_relaxed),
    };
}
