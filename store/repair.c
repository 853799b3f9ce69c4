/* SPDX-License-Identifier: Apache-2.0 */
/* Repair: a closed segment whose file has other bytes than its prefix id says, or never got the bytes, is written in
 * place.
 *
 * A closed segment's bytes never change, and (length, CRC) names them. So each sector that is written here gets its
 * right content: if the power goes, the place is no worse than before. The row has the right prefix id all along, and
 * is not touched, unless it does not say yet that the file has the bytes. */
#include "store/private.h"

static void repair_end(struct leat_store_req *req, leat_err rc)
{
    struct leat_held *held = leat_held_of(req->seg);
    struct leat_store *store = held->store;
    if (!rc) held->in_file_bytes = req->seg->prefix_id.bytes;
    /* A segment that was in memory alone is in its file now. Without this row a start finds it by its bytes. The
     * owner resets seg->integrity after the answer: its core reads the field meanwhile. */
    if (!rc) leat_held_row_damaged(store, held, false);
    if (!rc && req->seg->integrity == LEAT_INTEGRITY_MISSING) {
        leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED, LEAT_ROW_FLUSHED);
        leat_catalogue_join_lazily(&store->cat, req->seg->row);
    }
    leat_mem_free(req->copy);
    req->copy = NULL;
    held->repairing = false;
    store->repairs--;
    leat_store_answer(store, req, rc);
}

static void on_synced(struct leat_disk_io *io)
{
    struct leat_store_req *req = io->owner;
    const struct leat_held *held = leat_held_of(req->seg);
    struct leat_store_file *file = held->slot.file;
    if (io->rc && !file->failed) {
        file->failed = true; /* a failed flush is final, for every request */
        leat_store_complain(held->store,
                            "the disk failed a flush of store/%u: nothing more is written there",
                            file->number);
    }
    repair_end(req, io->rc);
}

static void on_written(struct leat_disk_io *io);

static void piece_submit(struct leat_store_req *req)
{
    const struct leat_held *held = leat_held_of(req->seg);
    const struct leat_disk *disk = held->store->env->disk;
    uint32_t end = LEAT_ALIGN_UP(req->seg->prefix_id.bytes, (uint32_t)LEAT_BLOCK_BYTES);
    uint32_t left = end - req->from_bytes;
    req->io = (struct leat_disk_io){
        .kind = left ? LEAT_DISK_WRITE : LEAT_DISK_SYNC,
        .file = held->slot.file->file,
        .offset = (uint64_t)held->slot.unit * LEAT_SLOT_UNIT_BYTES + req->from_bytes,
        .buffer = req->bytes + req->from_bytes,
        .bytes = left < LEAT_STORE_REPAIR_BYTES ? left : LEAT_STORE_REPAIR_BYTES,
        .on_done = left ? on_written : on_synced,
        .owner = req,
        .beside = true,
    };
    disk->submit(disk->ctx, &req->io);
}

static void on_written(struct leat_disk_io *io)
{
    struct leat_store_req *req = io->owner;
    if (io->rc) {
        repair_end(req, io->rc);
        return;
    }
    req->from_bytes += (uint32_t)io->bytes;
    piece_submit(req);
}

/* These bytes and no others: another copy that was cut elsewhere, or a part of it, would be as damaged as
 * what is there. */
static bool are_its_bytes(const struct leat_store *store, const struct leat_segment *seg,
                          const uint8_t *bytes)
{
    struct leat_scan scan;
    leat_scan_segment(bytes, seg->prefix_id.bytes, &scan);
    return leat_scan_is(&scan, seg->prefix_id) && scan.base_offset == seg->base_offset &&
           scan.next_offset <= seg->next_offset && leat_judge_header_matches(store, seg, &scan);
}

/* A copy of the segment's buffer, or of the buffer's former place while no other segment has this place: also after a
 * kill, where the row names the place and the pool survived. The bytes are copied before they are checked. */
static bool memory_copy(struct leat_store *store, const struct leat_held *held, uint8_t *into)
{
    const struct leat_segment *seg = &held->seg;
    uint32_t bytes = seg->prefix_id.bytes;
    if (bytes == 0 || bytes > seg->capacity) return false;
    if (seg->buffer)
        memcpy(into, seg->buffer, bytes);
    else if (held->pool != &store->pool ||
             !leat_pool_peek(&store->pool, held->pool_at, seg->capacity, bytes, into))
        return false;
    memset(into + bytes, 0, LEAT_ALIGN_UP(bytes, (uint32_t)LEAT_BLOCK_BYTES) - bytes);
    return are_its_bytes(store, seg, into);
}

bool leat_repair_remembers(struct leat_store *store, const struct leat_held *held)
{
    return leat_store_scratch(store) == LEAT_OK && memory_copy(store, held, store->scratch);
}

/* A copy: its buffer may be given back meanwhile, and another segment's bytes lie there then. */
static leat_err bytes_from_memory(struct leat_store *store, struct leat_store_req *req)
{
    size_t bytes = req->seg->capacity + LEAT_BLOCK_BYTES;
    req->copy = leat_mem_calloc(LEAT_MEM_STORE, 1, bytes);
    if (!req->copy) return LEAT_E_NO_MEMORY;
    req->bytes = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)req->copy, (uintptr_t)LEAT_BLOCK_BYTES);
    return memory_copy(store, leat_held_of(req->seg), req->bytes) ? LEAT_OK : LEAT_E_NOT_FOUND;
}

/* A file that lacks its end, because there was no disk space, may get it now. */
static leat_err place_check(struct leat_store *store, const struct leat_held *held)
{
    struct leat_store_file *file = held->slot.file;
    uint32_t end = held->slot.unit + held->seg.capacity / LEAT_SLOT_UNIT_BYTES;
    if (file->failed) return LEAT_E_DISK;
    return end <= file->here_units ? LEAT_OK : leat_slots_fill(&store->slots, file);
}

void leat_repair(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(req->seg);
    const struct leat_row *row = leat_catalogue_row(&store->cat, req->seg->row);
    bool in_file =
        (row->flags & LEAT_ROW_FLUSHED) != 0 || req->seg->integrity == LEAT_INTEGRITY_MISSING;
    leat_err rc = LEAT_OK;
    req->copy = NULL;
    if (row->state != LEAT_SEGMENT_CLOSED || !in_file || held->repairing || held->slot_shared)
        rc = LEAT_E_INVALID;
    else if (!req->bytes)
        rc = bytes_from_memory(store, req);
    else if (!are_its_bytes(store, req->seg, req->bytes) && !LEAT_BUG(REPAIR_UNCHECKED))
        rc = LEAT_E_INVALID;
    if (!rc) rc = place_check(store, held);
    if (rc) {
        /* The owner has read wrong bytes. */
        if (rc == LEAT_E_NOT_FOUND && row->flags & LEAT_ROW_FLUSHED)
            leat_held_row_damaged(store, held, true);
        leat_mem_free(req->copy);
        req->copy = NULL;
        leat_store_answer(store, req, rc);
        return;
    }
    if (store->scrubbing == held)
        store->scrubbing = NULL; /* the scrub may read a mixture of old and new bytes */
    held->repairing = true;
    store->repairs++;
    req->from_bytes = 0;
    piece_submit(req);
}
