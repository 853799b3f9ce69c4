/* SPDX-License-Identifier: Apache-2.0 */
/* Commit rounds: group commit, without a timer.
 *
 * Each store file has rounds of its own: all waiting bytes are written, the file is synced once, and all requests of
 * the round are answered. Meanwhile the next round of the file gathers, and begins when this round has ended, with
 * the bytes that owners have sealed by then. The catalogue has such rounds for rows. A commit waits only for its own
 * file: not for another file's sync, and for rows only now and then (LEAT_STORE_ROWS_PASSED_MAX), because the disk
 * does one thing after the other. A write that depends on the durability of an earlier write goes into a round that
 * starts after the earlier round has ended: no order between concurrent rounds is assumed.
 *
 * RAMCloud (dissertation §4.2) keeps a replica's buffer until one contiguous write at its close. Here a `disk` segment
 * is written as it grows, since this node's copy may be the only one. */
#include "store/private.h"

/* ---- a round of a file ---- */
static void data_join(struct leat_store_round *round, struct leat_held *held, uint32_t from,
                      uint32_t to)
{
    if (!held->round) {
        held->round = round;
        leat_list_push_back(&round->helds, &held->in_round);
        held->round_from = from;
        held->round_to = to;
    } else {
        if (from < held->round_from) held->round_from = from;
        if (to > held->round_to) held->round_to = to;
    }
}

/* Bytes that the owner has sealed since the request are included. */
static void commit_follow(struct leat_store_req *req)
{
    if (req->kind != LEAT_STORE_COMMIT || !req->follow) return;
    /* Pairs with the release in log_show(). */
    uint32_t sealed = atomic_load_explicit(&req->seg->sealed_bytes, memory_order_acquire);
    LEAT_ASSERT_CMP(sealed, <=, req->seg->capacity);
    if (sealed > req->to_bytes) req->to_bytes = sealed;
}

static void file_gather(struct leat_store *store, struct leat_store_round *round)
{
    struct leat_store_file *file = round->of;
    LEAT_LIST_EACH(&file->todo, it)
    {
        struct leat_store_req *req = leat_store_req_waiting(it);
        struct leat_held *held = leat_held_of(req->seg);
        /* Two concurrent writes of a segment's last block may end in either order, and the older write would undo the
         * newer write: so a file has one round with requests at a time. */
        LEAT_ASSERT(!held->round || held->round == round);
        uint32_t from, to;
        store->data_waiting--;
        leat_list_remove(it);
        req->rc = leat_round_data_state(held);
        commit_follow(req);
        bool wanted = !req->rc && leat_round_data_wanted(req, &from, &to);
        /* The round does nothing for this commit: the last round wrote its bytes. */
        if (!wanted && req->kind == LEAT_STORE_COMMIT) {
            held->data_reqs--;
            leat_store_answer(store, req, req->rc);
            continue;
        }
        leat_list_push_back(&round->reqs, it);
        if (wanted) data_join(round, held, from, to);
    }
    struct leat_list *it;
    /* A sync that goes anyway is theirs too. */
    while ((it = leat_list_pop_front(&file->flush_wait)) != NULL) {
        store->flush_written--;
        store->flush_unsynced_bytes -= leat_held_by_store(it)->seg.prefix_id.bytes;
        leat_list_push_back(&round->flush_syncs, it);
    }
}

static void file_round_end(struct leat_store *store, struct leat_store_round *round);

static void on_data_done(struct leat_disk_io *io)
{
    struct leat_store *store = io->owner;
    struct leat_store_round *round = io->kind == LEAT_DISK_SYNC
                                         ? LEAT_CONTAINER(io, struct leat_store_round, sync)
                                         : LEAT_CONTAINER(io, struct leat_held, io)->round;
    LEAT_ASSERT_CMP(round->ios, >, 0);
    if (--round->ios == 0) file_round_end(store, round);
}

static void file_submit(struct leat_store *store, struct leat_store_round *round, bool beside)
{
    const struct leat_disk *disk = store->env->disk;
    struct leat_disk_io *before = NULL, *first = NULL;
    LEAT_LIST_EACH(&round->helds, it)
    {
        struct leat_held *held = LEAT_CONTAINER(it, struct leat_held, in_round);
        uint32_t from = LEAT_ALIGN_DOWN(held->round_from, (uint32_t)LEAT_BLOCK_BYTES);
        uint32_t to = LEAT_ALIGN_UP(held->round_to, (uint32_t)LEAT_BLOCK_BYTES);
        held->io.rc = LEAT_OK;
        if (from == to) continue;
        /* Bytes past round_to are the owner's and may change while they are written: nothing depends on them, since
         * the trailer chain rejects incomplete runs. */
        held->io = (struct leat_disk_io){
            .kind = LEAT_DISK_WRITE,
            .file = held->seg.file,
            .offset = held->seg.file_offset + from,
            .buffer = held->seg.buffer + from,
            .bytes = to - from,
            .on_done = on_data_done,
            .owner = store,
            .beside = beside,
            .together = !beside,
        };
        round->ios++;
        store->committed_bytes += to - from;
        if (!first) first = &held->io;
        leat_disk_append(disk, &before, &held->io);
    }
    round->ios++;
    round->sync = (struct leat_disk_io){.kind = LEAT_DISK_SYNC,
                                        .file = round->of->file,
                                        .on_done = on_data_done,
                                        .owner = store,
                                        .beside = beside};
    leat_disk_append(disk, &before, &round->sync);
    if (beside) disk->submit(disk->ctx, first ? first : &round->sync);
}

/* A round on this thread is answered soonest, and the next begins where it ended; but meanwhile nothing else
 * can. Two threads more have to be woken for one that runs beside, which pays where another file's would
 * have waited. */
static bool round_beside(struct leat_store *store, const struct leat_store_round *round)
{
    if (leat_list_empty(&round->reqs)) return true; /* no request waits for the round */
    if (store->data_running > 1 || store->flush_in_flight)
        store->crowded = LEAT_STORE_CROWDED_ROUNDS;
    else if (store->crowded)
        store->crowded--;
    return store->crowded != 0;
}

/* What waits and is not being written, if anything. */
static void file_round(struct leat_store *store, struct leat_store_round *round)
{
    file_gather(store, round);
    if (leat_list_empty(&round->reqs) && leat_list_empty(&round->flush_syncs)) return;
    round->running = true;
    store->data_running++;
    if (!leat_list_empty(&round->reqs)) store->flush_turn = true;
    if (leat_list_empty(&round->helds) && leat_list_empty(&round->flush_syncs)) {
        round->sync.rc = LEAT_OK;
        file_round_end(store, round); /* everything was refused: nothing to wait for */
    } else {
        file_submit(store, round, round_beside(store, round));
    }
}

/* ---- the end of a round ---- */
/* Does the committed prefix hold a START entry? Then recovery must not take this for a reservation,
 * whatever damage it finds. */
static bool started_in_file(const struct leat_held *held)
{
    struct leat_entry entry;
    memcpy(&entry, held->seg.buffer, sizeof entry);
    if (entry.type != LEAT_ENTRY_SEGMENT) return false;
    uint64_t at = (uint64_t)leat_entry_bytes(entry.payload_bytes);
    if (at + LEAT_ENTRY_HEADER_BYTES > held->in_file_bytes) return false;
    memcpy(&entry, held->seg.buffer + at, sizeof entry);
    return entry.type == LEAT_ENTRY_START &&
           at + leat_entry_bytes(entry.payload_bytes) + LEAT_ENTRY_HEADER_BYTES <=
               held->in_file_bytes;
}

static void end_data(struct leat_store *store, struct leat_store_round *round)
{
    LEAT_LIST_EACH(&round->helds, it)
    {
        struct leat_held *held = LEAT_CONTAINER(it, struct leat_held, in_round);
        leat_list_remove(it);
        held->round = NULL;
        if (held->io.rc) held->failed = true;
        if (leat_round_data_state(held)) continue;
        if (held->round_from > held->in_file_bytes || held->round_to <= held->in_file_bytes)
            continue;
        held->in_file_bytes = held->round_to;
        /* Two things that recovery cannot see in damaged bytes: that the segment had started, and how much of it was
         * durable. The row has both after the sync: before, the row would claim bytes that a power cut may lose.
         * Neither is needed at once, so there is no extra write. Until that write a bit that flips in the ids of the
         * header entry can make the segment look like a reservation. */
        const struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
        if (row->state == LEAT_SEGMENT_OPEN ||
            (row->state == LEAT_SEGMENT_RESERVED && started_in_file(held))) {
            leat_held_row_set(store, held, LEAT_SEGMENT_OPEN, LEAT_ROW_IN_POOL);
            leat_catalogue_join_lazily(&store->cat, held->seg.row);
        }
    }
}

/* Does another file's round wait because this thread was not there for it? */
static bool others_ready(const struct leat_store *store, const struct leat_store_file *file)
{
    const struct leat_list *first = store->files_ready.next;
    if (first == &file->ready) first = first->next;
    return first != &store->files_ready;
}

static void file_round_end(struct leat_store *store, struct leat_store_round *round)
{
    struct leat_store_file *file = round->of;
    if (round->sync.rc && !file->failed) {
        file->failed = true;
        leat_store_complain(store,
                            "the disk failed a flush of store/%u: nothing more is written there",
                            file->number);
    }
    end_data(store, round);
    round->running = false;
    store->data_running--;
    if (!leat_list_empty(&store->todo)) store->rows_passed++;
    if (others_ready(store, file)) store->crowded = LEAT_STORE_CROWDED_ROUNDS;
    if (!leat_list_empty(&file->todo)) leat_round_file_ready(store, file);
    struct leat_list *it;
    while ((it = leat_list_pop_front(&round->reqs)) != NULL) {
        struct leat_store_req *req = leat_store_req_waiting(it);
        struct leat_held *held = leat_held_of(req->seg);
        LEAT_ASSERT_CMP(held->data_reqs, >, 0);
        held->data_reqs--;
        if (!req->rc) req->rc = leat_round_data_state(held);
        if (req->rc) {
            leat_round_end_failed(store, req, held);
        } else if (req->kind == LEAT_STORE_COMMIT) {
            leat_store_answer(store, req, LEAT_OK);
        } else {
            leat_list_push_back(&store->todo, &req->waiting);
        }
    }
    while ((it = leat_list_pop_front(&round->flush_syncs)) != NULL) {
        struct leat_held *held = leat_held_by_store(it);
        if (leat_round_data_state(held)) {
            leat_flush_failed(store, held);
            continue;
        }
        held->in_file_bytes = held->seg.prefix_id.bytes;
        leat_list_push_back(&store->flush_synced, it);
    }
}

/* ---- the step ---- */
static struct leat_store_round *lane_free(struct leat_store_file *file)
{
    /* What comes while requests are written waits, and goes together. */
    struct leat_store_round *round =
        &file->rounds[leat_list_empty(&file->todo) ? LEAT_STORE_LANE_SYNCS
                                                   : LEAT_STORE_LANE_REQUESTS];
    return round->running ? NULL : round;
}

static void flush_syncs_due(struct leat_store *store)
{
    if (!leat_flush_sync_due(store)) return;
    for (uint32_t i = 0; i < store->slots.count; i++) {
        struct leat_store_file *file = store->slots.files[i];
        if (file && !leat_list_empty(&file->flush_wait)) leat_round_file_ready(store, file);
    }
}

void leat_round_step(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    flush_syncs_due(store);
    do {
        LEAT_LIST_EACH(&store->files_ready, it)
        {
            struct leat_store_file *file = LEAT_CONTAINER(it, struct leat_store_file, ready);
            struct leat_store_round *round = lane_free(file);
            if (!round) continue;
            leat_list_remove(it);
            file_round(store, round);
        }
    } while (leat_rows_round(store));
}
