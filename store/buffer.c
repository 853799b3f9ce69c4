/* SPDX-License-Identifier: Apache-2.0 */
/* A request that waited for memory: the next steps with a buffer, or without. */
#include "store/private.h"

/* ---- resume ----
 * The bytes are in the buffer before the row is written: a kill in between would leave a row that names memory
 * without them. The row is written, and the hibernating record gone, before the answer: what is acked after the
 * answer lies beyond the recorded end, and a start would call the log shorter. */
static void on_read_back(struct leat_disk_io *io)
{
    struct leat_store_req *req = io->owner;
    struct leat_held *held = leat_held_of(req->seg);
    struct leat_store *store = held->store;
    struct leat_segment *seg = req->seg;
    leat_err rc = io->rc;
    if (!rc && io->done_bytes < seg->prefix_id.bytes) rc = LEAT_E_DAMAGED;
    if (!rc) {
        /* The slot may hold older bytes after the hibernated prefix. */
        memset(seg->buffer + seg->prefix_id.bytes, 0, seg->capacity - seg->prefix_id.bytes);
        struct leat_scan scan;
        leat_scan_segment(seg->buffer, seg->prefix_id.bytes, &scan);
        if (scan.bytes != seg->prefix_id.bytes || scan.crc != seg->prefix_id.crc) {
            rc = LEAT_E_DAMAGED;
            leat_store_complain(store,
                                "hibernated segment %llu of log %u/%u/%u is damaged in store/%u at "
                                "%llu: %u of %u bytes are valid",
                                (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet,
                                seg->log.log, held->slot.file->number,
                                (unsigned long long)seg->file_offset, scan.bytes,
                                seg->prefix_id.bytes);
        }
    }
    if (rc) {
        leat_held_release_buffer(store, held);
        leat_store_answer(store, req, rc);
        return;
    }
    leat_round_add(store, req);
}

/* The old place is left as it is: its writer may still write there. The place comes back only with the arena's end. */
static void move_bytes(struct leat_held *held, const uint8_t *buffer)
{
    uint64_t from_ns = leat_store_cpu(held->store);
    memcpy((void *)(uintptr_t)buffer, held->seg.buffer, held->seg.capacity);
    held->pool->given--;
    if (held->leaving) held->leaving->leaving_bytes -= held->seg.capacity;
    held->leaving = NULL;
    held->store->flush_ns += leat_store_cpu(held->store) - from_ns;
}

void leat_memory_got_buffer(struct leat_store *store, struct leat_store_req *req,
                            struct leat_pool *pool, uint8_t *buffer)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(req->seg);
    struct leat_segment *seg = req->seg;
    if (req->kind == LEAT_STORE_MOVE) move_bytes(held, buffer);
    seg->buffer = buffer;
    held->pool = pool;
    held->pool_at = (uint64_t)(buffer - pool->arena->base);
    if (req->kind == LEAT_STORE_RESERVE || req->kind == LEAT_STORE_MOVE) {
        leat_round_add(store, req);
        return;
    }
    req->io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = seg->file,
        .offset = seg->file_offset,
        .buffer = buffer,
        .bytes = LEAT_ALIGN_UP(seg->prefix_id.bytes, (uint32_t)LEAT_BLOCK_BYTES),
        .on_done = on_read_back,
        .owner = req,
    };
    store->env->disk->submit(store->env->disk->ctx, &req->io);
}

void leat_memory_refuse(struct leat_store *store, struct leat_store_req *req)
{
    LEAT_ASSERT_OWNER(store);
    if (req->kind == LEAT_STORE_RESERVE) {
        /* Nothing of it was written: the row is FREE on disk, the slot untouched. */
        leat_held_free(store, leat_held_of(req->seg));
        req->seg = NULL;
    }
    leat_store_answer(store, req, LEAT_E_NO_MEMORY);
}
