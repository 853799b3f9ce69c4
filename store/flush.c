/* SPDX-License-Identifier: Apache-2.0 */
/* Flush-behind: closed segments of `memory` streams go to their files in the background.
 *
 * Order for each: bytes written -> file synced -> row CLOSED and flushed, synced -> the owner is
 * told. Only then may the buffer go: until then the arena is the only place that has the bytes.
 *
 * A segment waits for its flush (flush_delay_us) unless memory is short: a burst that fits into half of the pool
 * costs no CPU for its flush meanwhile (a quarter of a busy server's), and may be deleted before it is written. */
#include "store/private.h"

static void on_written(struct leat_disk_io *io);

/* Memory that could be evicted counts as free. */
bool leat_flush_pressed(const struct leat_store *store)
{
    uint64_t used = leat_pool_used(&store->pool), spare = store->cached_bytes + store->asked_bytes;
    return store->flush_all_done != NULL || store->memory_wait_count != 0 ||
           leat_pool_past_bytes(&store->pool) != 0 || used > store->pool.limit_bytes / 2 + spare ||
           leat_arenas_pressed(store);
}

static struct leat_held *dirty_first(const struct leat_store *store)
{
    const struct leat_list *list =
        leat_list_empty(&store->dirty_soon) ? &store->dirty : &store->dirty_soon;
    if (leat_list_empty(list)) return NULL;
    return leat_held_by_store(list->next);
}

/* A disk stream's segment waits for nothing, because nearly all of it is in the file. A replica whose
 * writer is gone keeps an arena from being given back. */
static bool is_urgent(const struct leat_held *held)
{
    if (held->seg.durability == LEAT_DURABILITY_DISK) return true;
    return leat_held_in_arena(held) && held->pool->retired;
}

/* held: dirty_first() */
static bool is_due(const struct leat_store *store, const struct leat_held *held, uint64_t now_us)
{
    return !leat_list_empty(&store->dirty_soon) || leat_flush_pressed(store) ||
           now_us >= held->closed_us + store->options.flush_delay_us;
}

void leat_flush_closed(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    held->closed_us = store->env->clock->now_us(store->env->clock->ctx);
    if (!held->seg.buffer || held->in_file_bytes >= held->seg.prefix_id.bytes) {
        leat_flush_recorded(store, held);
    } else if (held->failed || held->slot.file->failed) {
        leat_held_move(held, LEAT_HELD_STUCK, &store->stuck);
        store->flush_failed = true;
    } else {
        leat_held_move(held, LEAT_HELD_DIRTY, is_urgent(held) ? &store->dirty_soon : &store->dirty);
    }
}

static void drop_go_on(struct leat_store *store, struct leat_held *held)
{
    if (!held->drop) return;
    struct leat_store_req *req = held->drop;
    held->drop = NULL;
    leat_round_add(store, req);
}

void leat_flush_recorded(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    if (held->where == LEAT_HELD_FLUSHING) store->flush_pending--;
    if (leat_held_in_arena(held))
        leat_held_move(held, LEAT_HELD_KEPT, NULL);
    else if (held->seg.buffer)
        leat_held_move(held, LEAT_HELD_CACHED, &store->cached);
    else
        leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
    if (!held->drop) leat_held_tell(store, held, LEAT_HELD_EVENT_FLUSHED);
    if (held->where == LEAT_HELD_KEPT && held->seg.owner_actor >= LEAT_CORES_MAX) {
        leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
        leat_held_release_buffer(store, held); /* no owner, no pins: no request is needed */
    }
    drop_go_on(store, held);
}

void leat_flush_failed(struct leat_store *store, struct leat_held *held)
{
    LEAT_ASSERT_OWNER(store);
    LEAT_ASSERT_CMP(held->where, ==, LEAT_HELD_FLUSHING);
    store->flush_pending--;
    store->flush_failed = true;
    held->failed = true;
    leat_held_move(held, LEAT_HELD_STUCK, &store->stuck);
    leat_store_complain(store,
                        "segment %llu of log %u/%u/%u could not be flushed to store/%u: it stays "
                        "in memory",
                        (unsigned long long)held->seg.id.v, held->seg.log.stream,
                        held->seg.log.streamlet, held->seg.log.log, held->slot.file->number);
    drop_go_on(store, held);
}

static uint32_t flush_end(const struct leat_held *held)
{
    return LEAT_ALIGN_UP(held->seg.prefix_id.bytes, (uint32_t)LEAT_BLOCK_BYTES);
}

static void submit_piece(struct leat_store *store, struct leat_held *held, uint32_t bytes_max)
{
    struct leat_flush_io *slot = store->flush_ios;
    while (slot->held)
        slot++;
    LEAT_ASSERT_CMP(slot - store->flush_ios, <, LEAT_STORE_FLUSH_IN_FLIGHT_MAX);
    uint32_t bytes = flush_end(held) - held->flush_at;
    if (bytes > bytes_max) bytes = bytes_max;
    slot->held = held;
    slot->submitted_us = store->env->clock->now_us(store->env->clock->ctx);
    slot->io = (struct leat_disk_io){
        .kind = LEAT_DISK_WRITE,
        .file = held->seg.file,
        .offset = held->seg.file_offset + held->flush_at,
        .buffer = held->seg.buffer + held->flush_at,
        .bytes = bytes,
        .on_done = on_written,
        .owner = store,
        .beside = true,
    };
    held->flush_at += bytes;
    held->flush_ios++;
    store->flush_in_flight++;
    store->env->disk->submit(store->env->disk->ctx, &slot->io);
}

/* The disk's speed, smoothed. The backup limits the memory for replicas to the bytes that could be flushed in a few
 * seconds. */
static void speed_note(struct leat_store *store, size_t bytes, uint64_t submitted_us)
{
    uint64_t now_us = store->env->clock->now_us(store->env->clock->ctx);
    if (bytes < LEAT_STORE_SPEED_BYTES_MIN || now_us <= submitted_us) return;
    uint64_t speed = bytes * UINT64_C(1000000) / (now_us - submitted_us);
    store->flush_speed = store->flush_speed ? (store->flush_speed * 7 + speed) / 8 : speed;
}

static void on_written(struct leat_disk_io *io)
{
    struct leat_store *store = io->owner;
    struct leat_flush_io *slot = LEAT_CONTAINER(io, struct leat_flush_io, io);
    struct leat_held *held = slot->held;
    slot->held = NULL;
    speed_note(store, io->bytes, slot->submitted_us);
    store->flush_in_flight--;
    held->flush_ios--;
    if (io->rc) {
        held->failed = true;
        held->flush_at = flush_end(held);
        if (store->flushing == held) store->flushing = NULL;
    }
    if (held->flush_ios || held->flush_at < flush_end(held)) return;
    if (held->failed) {
        leat_flush_failed(store, held);
        return;
    }
    leat_list_push_back(&held->slot.file->flush_wait, &held->seg.by_store);
    store->flush_written++;
    store->flush_unsynced_bytes += held->seg.prefix_id.bytes;
}

bool leat_flush_sync_due(const struct leat_store *store)
{
    if (!store->flush_written) return false;
    /* A writer that was refused memory for a replica asks again within milliseconds. */
    bool wanted = store->memory_wait_count != 0 || leat_arenas_short(store);
    return wanted || store->flush_unsynced_bytes >= LEAT_STORE_FLUSH_SYNC_BYTES ||
           (!store->flushing && store->flush_in_flight == 0);
}

/* While a flush of all is asked for, each dirty segment is due: leat_flush_step() leaves none dirty, or flush_pending
 * counts those that go first.
 *
 * SUBTLE: segments that a start found in memory are not flushed before the start is done with them
 * (leat_store_found_done()). If a start that is refused waited for their flush:
 *  1. A server is killed. Closed segments of level memory are in the shared memory alone.
 *  2. The server starts with less memory, and the start is refused.
 *  3. The server waits for a flush that never begins, and does not end. */
static void flush_all_step(struct leat_store *store)
{
    if (!store->flush_all_done || store->flush_pending || leat_round_busy(store) ||
        store->scrub_reading || store->repairs || store->slots.zeroing)
        return;
    void (*done)(void *arg, leat_err rc) = store->flush_all_done;
    store->flush_all_done = NULL;
    done(store->flush_all_arg, store->flush_failed ? LEAT_E_DISK : LEAT_OK);
}

/* Commits have priority on the disk: a small piece is written between two rounds of a file. So no commit waits for
 * more than one piece, and the flush still makes progress. */
static bool piece_may_go(struct leat_store *store)
{
    if (!store->data_running && !store->data_waiting) return true;
    if (!store->flush_turn) return false;
    store->flush_turn = false;
    return true;
}

void leat_flush_step(struct leat_store *store, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(store);
    bool busy = leat_store_commits_come(store, now_us);
    unsigned in_flight_max = busy ? 1 : LEAT_STORE_FLUSH_IN_FLIGHT_MAX;
    uint32_t bytes_max = busy ? LEAT_STORE_FLUSH_WRITE_BYTES_BUSY : LEAT_STORE_FLUSH_WRITE_BYTES;
    while (store->started && store->flush_in_flight < in_flight_max) {
        if (!store->flushing) {
            struct leat_held *held = dirty_first(store);
            if (!held || !is_due(store, held, now_us)) break;
            leat_held_move(held, LEAT_HELD_FLUSHING, NULL);
            store->flush_pending++;
            if (held->failed || held->slot.file->failed) {
                leat_flush_failed(store, held);
                continue;
            }
            held->flush_at = LEAT_ALIGN_DOWN(held->in_file_bytes, (uint32_t)LEAT_BLOCK_BYTES);
            store->flushing = held;
        }
        struct leat_held *held = store->flushing;
        if (!piece_may_go(store)) break;
        submit_piece(store, held, bytes_max);
        if (held->flush_at >= flush_end(held)) store->flushing = NULL;
    }
    flush_all_step(store);
}

uint64_t leat_flush_next_us(const struct leat_store *store, uint64_t now_us)
{
    const struct leat_held *held = dirty_first(store);
    if (!store->started || !held || store->flushing) return UINT64_MAX;
    /* What is in flight ends with a turn of its own. */
    bool in_flight = store->flush_in_flight || store->data_running || store->data_waiting;
    if (is_due(store, held, now_us)) return in_flight ? UINT64_MAX : now_us;
    return held->closed_us + store->options.flush_delay_us;
}

bool leat_store_commits_come(const struct leat_store *store, uint64_t now_us)
{
    return store->committed_us != 0 && store->committed_us + LEAT_STORE_BUSY_US > now_us;
}
