/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of the catalogue: rows of many segments, written and synced together. */
#include "base/bug.h"
#include "store/private.h"

static bool row_join(struct leat_store *store, struct leat_store_req *req, struct leat_held *held,
                     enum leat_segment_state state, unsigned flags, bool sync)
{
    if (store->cat.failed) {
        req->rc = LEAT_E_DISK;
        return true;
    }
    if (!leat_catalogue_join(&store->cat, held->seg.row)) return false;
    if (state == LEAT_SEGMENT_FREE)
        leat_held_row_free(store, held);
    else
        leat_held_row_set(store, held, state, flags);
    store->cat.sync_wanted |= sync;
    return true;
}

/* Where its bytes lie in the node's own pool is said beside: should its file rot, a killed server's memory may have
 * them. An arena of replicas ends with its writer. */
static unsigned flushed_flags(const struct leat_held *held)
{
    bool own = held->pool == &held->store->pool;
    return LEAT_ROW_FLUSHED | (own ? LEAT_ROW_IN_POOL : 0u);
}

/* A row that says the same of another place, or with another stamp. */
static bool join_same_state(struct leat_store *store, struct leat_store_req *req,
                            struct leat_held *held)
{
    const struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
    struct leat_segment *seg = req->seg;
    unsigned flags = row->flags & (LEAT_ROW_FLUSHED | LEAT_ROW_IN_POOL);
    if (!seg->buffer && !LEAT_BUG(STAMP_NAMES_MEMORY))
        flags &= ~(unsigned)LEAT_ROW_IN_POOL; /* that memory is gone, and is to be repaired */
    if (flags & LEAT_ROW_FLUSHED && !LEAT_BUG(STAMP_NAMES_MEMORY)) flags = flushed_flags(held);
    bool sync = row->state == LEAT_SEGMENT_HIBERNATED || seg->durability == LEAT_DURABILITY_DISK;
    if (sync && LEAT_BUG(STAMP_UNSYNCED)) sync = false;
    if (req->kind == LEAT_STORE_STAMP) {
        seg->version = req->version;
        seg->role = req->role;
        seg->writer = req->writer;
        seg->incomplete = req->incomplete;
        seg->provisional = req->provisional;
    } else if (req->kind == LEAT_STORE_GIVE_UP) {
        seg->given_up |= req->given_up;
        seg->front_given_up |= req->front_given_up;
        sync = true;
    } else {
        sync = false;
    }
    /* Closed by its close entry alone, found at a start, with all bytes in the file: the row still has its content
     * from before the close, and names memory that is gone. */
    enum leat_segment_state state = row->state;
    if (!seg->buffer && seg->state == LEAT_SEGMENT_CLOSED && state < LEAT_SEGMENT_HIBERNATED) {
        state = LEAT_SEGMENT_CLOSED;
        flags = LEAT_ROW_FLUSHED;
    }
    return row_join(store, req, held, state, flags, sync);
}

/* false: the round has no room for its row. */
static bool join(struct leat_store *store, struct leat_store_req *req)
{
    struct leat_held *held = leat_held_of(req->seg);
    const struct leat_segment *seg = req->seg;
    bool whole = !seg->buffer || held->in_file_bytes >= seg->prefix_id.bytes;
    req->rc = LEAT_OK;
    switch (req->kind) {
    case LEAT_STORE_RESERVE:
        return row_join(store, req, held, LEAT_SEGMENT_RESERVED, LEAT_ROW_IN_POOL,
                        req->durability == LEAT_DURABILITY_DISK);
    case LEAT_STORE_CLOSE:
        /* A hibernated segment has no close entry: only the row says that it is closed, so the row must
         * be durable before the answer lets data into the next segment, or two segments would be open. The row
         * of another segment may be lost in a power cut: a scan finds the close entry. */
        return row_join(store, req, held, LEAT_SEGMENT_CLOSED,
                        whole ? flushed_flags(held) : LEAT_ROW_IN_POOL, !seg->buffer);
    case LEAT_STORE_HIBERNATE:
        /* The bytes had an earlier round. With bytes and row in one round, a failed write of the bytes would leave a
         * row for missing bytes. */
        return row_join(store, req, held, LEAT_SEGMENT_HIBERNATED, 0, true);
    case LEAT_STORE_RESUME:
        if (LEAT_BUG(HIBERNATED_ON))
            return row_join(store, req, held, LEAT_SEGMENT_HIBERNATED, LEAT_ROW_IN_POOL, true);
        return row_join(store, req, held, LEAT_SEGMENT_OPEN, LEAT_ROW_IN_POOL, true);
    case LEAT_STORE_DROP:
        return row_join(store, req, held, LEAT_SEGMENT_FREE, 0, true);
    case LEAT_STORE_STAMP:
    case LEAT_STORE_GIVE_UP:
    case LEAT_STORE_MOVE:
        return join_same_state(store, req, held);
    case LEAT_STORE_COMMIT:
    case LEAT_STORE_EVICT:
    case LEAT_STORE_REPAIR:
        break;
    }
    /* Those have no row: they never come here. */
    LEAT_ASSERT(req->kind != LEAT_STORE_COMMIT && req->kind != LEAT_STORE_EVICT &&
                req->kind != LEAT_STORE_REPAIR);
    return true;
}

static void rows_gather(struct leat_store *store)
{
    LEAT_LIST_EACH(&store->todo, it)
    {
        struct leat_store_req *req = leat_store_req_waiting(it);
        struct leat_held *held = leat_held_of(req->seg);
        /* SUBTLE: were a DROP to overtake a COMMIT of the same segment, the slot could be another's
         * before the bytes are written there. */
        if (held->data_reqs) continue;
        if (req->kind == LEAT_STORE_DROP) {
            if (held->where == LEAT_HELD_FLUSHING) {
                held->drop = req;
                leat_list_remove(it);
                continue;
            }
            if (held->where != LEAT_HELD_NOWHERE) leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
        }
        /* In order: what comes after may be about the same segment. */
        if (!join(store, req)) return;
        leat_list_remove(it);
        leat_list_push_back(&store->rows_reqs, it);
    }
}

static void rows_gather_flushed(struct leat_store *store)
{
    LEAT_LIST_EACH(&store->flush_synced, it)
    {
        struct leat_held *held = leat_held_by_store(it);
        if (store->cat.failed) {
            leat_flush_failed(store, held);
            continue;
        }
        if (!leat_catalogue_join(&store->cat, held->seg.row)) return;
        leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED, flushed_flags(held));
        store->cat.sync_wanted = true;
        leat_list_remove(it);
        leat_list_push_back(&store->rows_flush, it);
    }
}

static void end_hibernate(struct leat_store *store, struct leat_store_req *req,
                          struct leat_held *held)
{
    held->seg.state = LEAT_SEGMENT_HIBERNATED;
    leat_held_release_buffer(store, held);
    leat_store_answer(store, req, LEAT_OK);
}

static void end_req(struct leat_store *store, struct leat_store_req *req)
{
    struct leat_held *held = leat_held_of(req->seg);
    if (!req->rc && store->cat.failed) req->rc = LEAT_E_DISK;
    if (req->rc) {
        leat_round_end_failed(store, req, held);
        return;
    }
    switch (req->kind) {
    case LEAT_STORE_HIBERNATE:
        end_hibernate(store, req, held);
        return;
    case LEAT_STORE_CLOSE:
        held->seg.state = LEAT_SEGMENT_CLOSED;
        leat_flush_closed(store, held);
        break;
    case LEAT_STORE_RESUME:
        held->seg.state = LEAT_SEGMENT_OPEN;
        leat_segment_integrity_enter(&held->seg,
                                     LEAT_INTEGRITY_OK); /* its owner knows how long it is */
        held->seg.passed_bytes = 0;                      /* what lay there is written over */
        break;
    case LEAT_STORE_DROP:
        LEAT_ASSERT(!held->repairing); /* it would be written into another segment's place */
        held->leave = req->leave;
        leat_held_free(store, held);
        req->seg = NULL;
        break;
    case LEAT_STORE_COMMIT:
    case LEAT_STORE_RESERVE:
    case LEAT_STORE_STAMP:
    case LEAT_STORE_GIVE_UP:
    case LEAT_STORE_MOVE:
    case LEAT_STORE_EVICT:
    case LEAT_STORE_REPAIR:
        break;
    }
    leat_store_answer(store, req, LEAT_OK);
}

static void rows_round_end(struct leat_store *store)
{
    bool was_failed = store->cat.failed;
    leat_catalogue_round_end(&store->cat);
    if (store->cat.failed && !was_failed)
        leat_store_complain(store, "the disk failed a write of the catalogue: no segment can be "
                                   "reserved, hibernated or dropped until a restart");
    store->rows_running = false;
    struct leat_list *it;
    while ((it = leat_list_pop_front(&store->rows_reqs)) != NULL)
        end_req(store, leat_store_req_waiting(it));
    while ((it = leat_list_pop_front(&store->rows_flush)) != NULL) {
        if (store->cat.failed)
            leat_flush_failed(store, leat_held_by_store(it));
        else
            leat_flush_recorded(store, leat_held_by_store(it));
    }
}

static void on_row_done(struct leat_disk_io *io)
{
    struct leat_store *store = io->owner;
    LEAT_ASSERT_CMP(store->rows_ios, >, 0);
    if (--store->rows_ios == 0) rows_round_end(store);
}

bool leat_rows_round(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    if (store->rows_running) return false;
    if (store->data_running && store->rows_passed < LEAT_STORE_ROWS_PASSED_MAX) return false;
    rows_gather(store);
    rows_gather_flushed(store);
    bool noted = store->rows_noted && !store->cat.failed;
    if (leat_list_empty(&store->rows_reqs) && leat_list_empty(&store->rows_flush) && !noted)
        return false;
    store->cat.sync_wanted |= noted;
    store->rows_noted = false;
    store->rows_passed = 0;
    store->rows_running = true;
    bool beside = store->crowded != 0 || store->data_running || store->flush_in_flight;
    store->rows_ios = leat_catalogue_submit(&store->cat, beside, on_row_done, store);
    /* Everything was refused at once: nothing to wait for. */
    if (store->rows_ios == 0) rows_round_end(store);
    return true;
}
