/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: allocation, release, catalogue rows, and messages to owners. */
#include "store/private.h"

#include "base/node_log.h"

#include <stdarg.h>
#include <stdio.h>

struct held_slab {
    struct leat_list link;
    struct leat_held helds[LEAT_STORE_HELD_PER_SLAB];
};

struct leat_held *leat_held_get(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    if (leat_list_empty(&store->held_free)) {
        struct held_slab *slab = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *slab);
        if (!slab) return NULL;
        leat_list_push_back(&store->slabs_head, &slab->link);
        store->slab_count++;
        for (int i = 0; i < LEAT_STORE_HELD_PER_SLAB; i++)
            leat_list_push_back(&store->held_free, &slab->helds[i].seg.by_store);
    }
    struct leat_segment *seg =
        LEAT_CONTAINER(leat_list_pop_front(&store->held_free), struct leat_segment, by_store);
    struct leat_held *held = leat_held_of(seg);
    *held = (struct leat_held){.store = store};
    seg->post = store->env->post;
    seg->owner_actor = LEAT_ACTORS;
    leat_list_init(&seg->by_log);
    leat_list_init(&seg->by_store);
    leat_list_init(&held->event_link);
    leat_list_init(&held->in_round);
    return held;
}

void leat_held_put(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    leat_list_remove(&held->seg.by_store);
    leat_list_remove(&held->event_link);
    held->events_wanted = 0;
    if (atomic_load_explicit(&held->event_busy, memory_order_acquire))
        leat_list_push_back(&store->zombies, &held->event_link);
    else
        leat_list_push_front(&store->held_free, &held->seg.by_store);
}

void leat_held_fini_all(struct leat_store *store)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&store->slabs_head)) != NULL)
        leat_mem_free(LEAT_CONTAINER(link, struct held_slab, link));
}

uint64_t leat_held_free_bytes(const struct leat_store *store)
{
    uint64_t held = store->cat.held_count;
    uint64_t helds = store->slab_count * LEAT_STORE_HELD_PER_SLAB;
    uint64_t rows = (uint64_t)store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK;
    uint64_t row_bytes = sizeof(struct leat_row_chunk) / LEAT_STORE_ROWS_PER_CHUNK;
    uint64_t bytes = helds > held ? (helds - held) * sizeof(struct leat_held) : 0;
    return rows > held ? bytes + (rows - held) * row_bytes : bytes;
}

/* ---- mail to the owner ---- */
static void event_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_held *held = LEAT_CONTAINER(mail, struct leat_held, event);
    const struct leat_store_events *events = &held->store->options.events;
    if (held->events_sent & LEAT_HELD_EVENT_FLUSHED && events->on_flushed)
        events->on_flushed(actor, &held->seg);
    if (held->events_sent & LEAT_HELD_EVENT_EVICT && events->on_evict_wanted)
        events->on_evict_wanted(actor, &held->seg);
    if (held->events_sent & LEAT_HELD_EVENT_DAMAGED && events->on_damaged)
        events->on_damaged(actor, &held->seg);
    /* SUBTLE: only now. The callback may have sent a DROP that the store answers on its own thread
     * while we are still here; until this store (pairs with the acquire in leat_held_put() and
     * leat_held_events_step()) the descriptor is not given to another segment. */
    atomic_store_explicit(&held->event_busy, false, memory_order_release);
}

static void event_send(struct leat_store *store, struct leat_held *held)
{
    held->events_sent = held->events_wanted;
    held->events_wanted = 0;
    held->event = (struct leat_mail){.deliver = event_deliver};
    atomic_store_explicit(&held->event_busy, true, memory_order_relaxed);
    store->env->post->send(store->env->post->ctx, held->seg.owner_actor, &held->event);
}

void leat_held_tell(struct leat_store *store, struct leat_held *held, unsigned events)
{
    LEAT_ASSERT_OWNER(store);
    if (held->seg.owner_actor >= LEAT_CORES_MAX) { /* found, and no log has it */
        if (events & LEAT_HELD_EVENT_FLUSHED) held->seg.flushed = true;
        if (events & LEAT_HELD_EVENT_DAMAGED) leat_segment_damage_found(&held->seg);
        return;
    }
    held->events_wanted |= events;
    if (!atomic_load_explicit(&held->event_busy, memory_order_acquire)) {
        leat_list_remove(&held->event_link);
        event_send(store, held);
    } else if (leat_list_empty(&held->event_link)) {
        leat_list_push_back(&store->event_waits, &held->event_link);
    }
}

bool leat_held_events_step(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    LEAT_LIST_EACH(&store->zombies, it)
    {
        struct leat_held *held = LEAT_CONTAINER(it, struct leat_held, event_link);
        if (atomic_load_explicit(&held->event_busy, memory_order_acquire)) continue;
        leat_list_remove(it);
        leat_list_push_front(&store->held_free, &held->seg.by_store);
    }
    LEAT_LIST_EACH(&store->event_waits, it)
    {
        struct leat_held *held = LEAT_CONTAINER(it, struct leat_held, event_link);
        if (atomic_load_explicit(&held->event_busy, memory_order_acquire)) continue;
        leat_list_remove(it);
        event_send(store, held);
    }
    return !leat_list_empty(&store->event_waits);
}

/* ---- lists, buffers, rows ---- */
void leat_held_move(struct leat_held *held, enum leat_held_where where, struct leat_list *list)
{
    struct leat_store *store = held->store;
    if (held->where == LEAT_HELD_ASKED) {
        LEAT_ASSERT_CMP(store->asked_bytes, >=, held->seg.capacity);
        store->asked_bytes -= held->seg.capacity;
    }
    if (held->where == LEAT_HELD_CACHED) store->cached_bytes -= held->seg.capacity;
    bool was_dirty = held->where >= LEAT_HELD_DIRTY && held->where <= LEAT_HELD_FLUSHING;
    if (was_dirty && held->dirty_in_arena) store->arenas_dirty -= held->seg.capacity;
    if (held->leaving) held->leaving->leaving_bytes -= held->seg.capacity;
    held->leaving = NULL;
    leat_list_remove(&held->seg.by_store);
    held->where = where;
    if (list) leat_list_push_back(list, &held->seg.by_store);
    if (where == LEAT_HELD_ASKED) store->asked_bytes += held->seg.capacity;
    if (where == LEAT_HELD_CACHED) store->cached_bytes += held->seg.capacity;
    if (where == LEAT_HELD_DIRTY || where == LEAT_HELD_FLUSHING) {
        held->dirty_in_arena = leat_held_in_arena(held);
        if (held->dirty_in_arena) store->arenas_dirty += held->seg.capacity;
    }
    if ((where == LEAT_HELD_FLUSHING || where == LEAT_HELD_KEPT) && leat_held_in_arena(held)) {
        held->leaving = held->pool;
        held->leaving->leaving_bytes += held->seg.capacity;
    }
}

void leat_held_release_buffer(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_segment *seg = &held->seg;
    if (!seg->buffer) return;
    /* A reader that still sends from here would send another log's bytes. */
    LEAT_ASSERT_CMP(atomic_load_explicit(&seg->pins, memory_order_acquire) & 0x7fffffffu, ==, 0);
    atomic_store_explicit(&seg->pins, 0, memory_order_relaxed);
    if (held->leave) { /* its place comes back with its arena's end */
        held->pool->given--;
        seg->buffer = NULL;
        return;
    }
    uint64_t from_ns = held->pool->zeroed ? leat_store_cpu(store) : 0;
    leat_pool_give(held->pool, seg->buffer, seg->capacity);
    if (held->pool->zeroed) store->zeroing_ns += leat_store_cpu(store) - from_ns;
    seg->buffer = NULL;
}

void leat_held_row_set(struct leat_store *store, struct leat_held *held,
                       enum leat_segment_state state, unsigned flags)
{
    LEAT_ASSERT_OWNER(store);
    const struct leat_segment *seg = &held->seg;
    struct leat_row *row = leat_catalogue_row(&store->cat, seg->row);
    *row = (struct leat_row){
        .state = (uint8_t)state,
        .durability = (uint8_t)seg->durability,
        .flags =
            (uint8_t)(flags | (seg->role == LEAT_SEGMENT_REPLICA ? LEAT_ROW_REPLICA : 0) |
                      (seg->incomplete ? LEAT_ROW_INCOMPLETE : 0) |
                      (seg->provisional ? LEAT_ROW_PROVISIONAL : 0) |
                      (seg->given_up ? LEAT_ROW_GIVEN_UP : 0) |
                      (seg->front_given_up ? LEAT_ROW_FRONT_GIVEN_UP : 0) |
                      (state == LEAT_SEGMENT_HIBERNATED && seg->integrity == LEAT_INTEGRITY_TORN
                           ? LEAT_ROW_TORN
                           : 0)),
        .more = held->damaged ? LEAT_ROW_DAMAGED : 0,
        .writer = seg->writer,
        .version = seg->version,
        .stream = seg->log.stream,
        .streamlet = seg->log.streamlet,
        .log = seg->log.log,
        .epoch = seg->epoch.v,
        .segment = seg->id.v,
        .capacity = seg->capacity,
        .slot_file = held->slot.file->number,
        .slot_unit = held->slot.unit,
        .base_offset = seg->base_offset,
    };
    if (state == LEAT_SEGMENT_HIBERNATED || state == LEAT_SEGMENT_CLOSED) {
        row->prefix_id_bytes = seg->prefix_id.bytes;
        row->prefix_id_crc = seg->prefix_id.crc;
        row->next_offset = seg->next_offset;
        row->max_timestamp_ms = seg->max_timestamp_ms;
        row->written_ms = seg->written_ms;
        row->passed_bytes = seg->passed_bytes;
    }
    /* OPEN: at least so much is valid, or it is damaged. */
    if (state == LEAT_SEGMENT_OPEN) row->prefix_id_bytes = held->in_file_bytes;
    if (flags & LEAT_ROW_IN_POOL) {
        row->pool_at = held->pool_at;
        memcpy(row->pool_id, held->pool->arena->pool_id, sizeof row->pool_id);
    }
    leat_row_seal(row, seg->row);
}

void leat_held_row_damaged(struct leat_store *store, struct leat_held *held, bool damaged)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
    if (held->damaged == damaged || store->cat.failed) return;
    held->damaged = damaged;
    row->more = damaged ? LEAT_ROW_DAMAGED : 0;
    leat_row_seal(row, held->seg.row);
    leat_catalogue_join_lazily(&store->cat, held->seg.row);
    store->rows_noted = true;
}

void leat_held_row_free(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
    *row = (struct leat_row){.state = LEAT_SEGMENT_FREE};
    leat_row_seal(row, held->seg.row);
}

void leat_held_free(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
    leat_held_release_buffer(store, held);
    if (!held->slot_shared) leat_slots_give(&store->slots, held->slot, held->seg.capacity);
    leat_catalogue_give(&store->cat, held->seg.row);
    if (store->scrubbing == held) store->scrubbing = NULL;
    leat_held_put(store, held);
}

/* ---- complaints ---- */
static void complaint_keep(struct leat_store *store, const char *line)
{
    if (store->complaint_count < LEAT_STORE_COMPLAINTS_MAX)
        memcpy(store->complaints[store->complaint_count], line, LEAT_STORE_COMPLAINT_BYTES);
    store->complaint_count++;
}

void leat_store_complain(struct leat_store *store, const char *format, ...)
{
    char line[LEAT_STORE_COMPLAINT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    leat_node_log_error("store: %s", line);
    complaint_keep(store, line);
}

void leat_store_complain_of(struct leat_store *store, const char *format, ...)
{
    const struct leat_clock *clock = store->env->clock;
    char line[LEAT_STORE_COMPLAINT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    store->segments_sum.what = "segments are missing or damaged";
    leat_node_log_summed(&store->segments_sum, clock->now_us(clock->ctx), LEAT_NODE_LOG_ERROR,
                         "store: %s", line);
    complaint_keep(store, line);
}

void leat_store_complaints(const struct leat_store *store,
                           void (*each)(void *arg, const char *line), void *arg)
{
    for (size_t i = 0; i < store->complaint_count && i < LEAT_STORE_COMPLAINTS_MAX; i++)
        each(arg, store->complaints[i]);
    if (store->complaint_count > LEAT_STORE_COMPLAINTS_MAX) {
        char line[80];
        snprintf(line, sizeof line, "and %zu complaints more, see the node log",
                 store->complaint_count - LEAT_STORE_COMPLAINTS_MAX);
        each(arg, line);
    }
}

leat_err leat_store_scratch(struct leat_store *store)
{
    if (store->scratch) return LEAT_OK;
    store->scratch_raw =
        leat_mem_calloc(LEAT_MEM_STORE, 1, LEAT_SEGMENT_BYTES_MAX + LEAT_BLOCK_BYTES);
    if (!store->scratch_raw) return LEAT_E_NO_MEMORY;
    store->scratch = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)store->scratch_raw, LEAT_BLOCK_BYTES);
    return LEAT_OK;
}

uint64_t leat_store_cpu(const struct leat_store *store)
{
    return store->options.cpu_ns ? store->options.cpu_ns(NULL) : 0;
}
