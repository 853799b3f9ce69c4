/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a log's last segment to the log's decided end, and giving segments up.
 *
 * Nothing is cut before the decision is committed (docs/recovery.md); what is cut is exactly a prefix that the
 * scanner accepts. Order: store files synced -> rows CLOSED, synced. A crash in between leaves an open segment, which
 * is cut again.
 *
 * SUBTLE: the row alone closes it; no entry is added.
 *  1. Nodes 1 and 2 have the last segment, at the decided length. Node 1 comes up, takes its log back and closes the
 *     segment by an entry, so that node 1's copy is longer.
 *  2. The next segment's start entry names the longer copy, so node 2's copy does not count any more: the segment is
 *     on one node, until it has been copied again.
 *  3. Node 1's disk is lost, and with it records that node 2's disk still has. */
#include "store/private.h"

static leat_err run(struct leat_store *store, enum leat_disk_kind kind, struct leat_file *file,
                    uint64_t offset, void *buffer, size_t bytes)
{
    struct leat_disk_io io = {
        .kind = kind, .file = file, .offset = offset, .buffer = buffer, .bytes = bytes};
    leat_err rc = store->env->disk->run(store->env->disk->ctx, &io);
    if (!rc && kind == LEAT_DISK_READ && io.done_bytes < bytes) rc = LEAT_E_DAMAGED;
    return rc;
}

/* Are the bytes up to the cut the decided bytes? Bytes after the cut are cleared in memory, so that a start that
 * finds the segment open again finds this length. */
static leat_err prefix_check(struct leat_store *store, struct leat_segment *seg,
                             struct leat_prefix_id prefix_id, struct leat_scan *out_scan)
{
    const uint8_t *bytes = seg->buffer;
    if (!bytes) {
        if (!seg->file) return LEAT_E_DAMAGED;
        leat_err rc = leat_store_scratch(store);
        if (!rc)
            rc = run(store, LEAT_DISK_READ, seg->file, seg->file_offset, store->scratch,
                     LEAT_ALIGN_UP(prefix_id.bytes, (uint32_t)LEAT_BLOCK_BYTES));
        if (rc) return rc;
        bytes = store->scratch;
    }
    leat_scan_segment(bytes, prefix_id.bytes, out_scan);
    if (!leat_judge_header_matches(store, seg, out_scan) || !out_scan->started ||
        out_scan->bytes != prefix_id.bytes || out_scan->crc != prefix_id.crc)
        return LEAT_E_DAMAGED;
    if (seg->buffer) memset(seg->buffer + prefix_id.bytes, 0, seg->capacity - prefix_id.bytes);
    return LEAT_OK;
}

static leat_err cut_open(struct leat_store *store, struct leat_held *held,
                         struct leat_prefix_id prefix_id, uint64_t next_offset,
                         int64_t max_timestamp_ms)
{
    struct leat_segment *seg = &held->seg;
    struct leat_scan scan;
    leat_err rc = prefix_check(store, seg, prefix_id, &scan);
    if (rc) return rc;
    if (scan.next_offset > next_offset) return LEAT_E_DAMAGED;
    seg->prefix_id = prefix_id;
    seg->base_offset = scan.base_offset;
    seg->next_offset = next_offset;
    seg->max_timestamp_ms = max_timestamp_ms;
    seg->state = LEAT_SEGMENT_CLOSED;
    held->cut = true;
    return LEAT_OK;
}

leat_err leat_store_cut(struct leat_store *store, struct leat_segment *seg,
                        struct leat_prefix_id prefix_id, uint64_t next_offset,
                        int64_t max_timestamp_ms)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(seg);
    if (leat_round_running(store)) return LEAT_E_AGAIN;
    if (prefix_id.bytes == 0 || prefix_id.bytes > seg->capacity) return LEAT_E_INVALID;
    if (seg->state == LEAT_SEGMENT_CLOSED) {
        /* Cut already, by the start before this one, which did not get to its end. */
        bool same = seg->next_offset == next_offset && seg->prefix_id.bytes >= prefix_id.bytes;
        return same ? LEAT_OK : LEAT_E_DAMAGED;
    }
    return cut_open(store, held, prefix_id, next_offset, max_timestamp_ms);
}

leat_err leat_store_forget(struct leat_store *store, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_held *held = leat_held_of(seg);
    if (leat_round_running(store) || held->where == LEAT_HELD_FLUSHING) return LEAT_E_AGAIN;
    if (held->where != LEAT_HELD_NOWHERE) leat_held_move(held, LEAT_HELD_NOWHERE, NULL);
    held->forgotten = true;
    held->cut = false;
    return LEAT_OK;
}

void leat_store_found_hibernate(struct leat_store *store, const struct leat_found *found)
{
    LEAT_ASSERT_OWNER(store);
    struct leat_segment *seg = found->seg;
    struct leat_held *held = leat_held_of(seg);
    if (found->kind != LEAT_FOUND_MARK || seg->state != LEAT_SEGMENT_OPEN || seg->buffer) return;
    seg->state = LEAT_SEGMENT_HIBERNATED;
    seg->prefix_id = (struct leat_prefix_id){found->scan.bytes, found->scan.crc};
    seg->base_offset = found->scan.base_offset;
    seg->next_offset = found->scan.next_offset;
    seg->max_timestamp_ms = found->scan.max_timestamp_ms;
    held->in_file_bytes = seg->prefix_id.bytes;
    leat_held_row_set(store, held, LEAT_SEGMENT_HIBERNATED, 0);
    leat_catalogue_changed(&store->cat, seg->row);
}

static leat_err files_sync(struct leat_store *store)
{
    for (uint32_t i = 0; i < store->slots.count; i++) {
        struct leat_store_file *file = store->slots.files[i];
        if (!file || !file->sync_wanted) continue;
        file->sync_wanted = false;
        leat_err rc = run(store, LEAT_DISK_SYNC, file->file, 0, NULL, 0);
        if (rc) {
            file->failed = true;
            return rc;
        }
    }
    return LEAT_OK;
}

leat_err leat_store_cut_done(struct leat_store *store)
{
    LEAT_ASSERT_OWNER(store);
    if (leat_round_running(store)) return LEAT_E_AGAIN;
    uint32_t rows = store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK;
    for (uint32_t i = 0; i < rows; i++) {
        struct leat_held *held = *leat_catalogue_held(&store->cat, i);
        if (held && held->cut && !held->seg.buffer) held->slot.file->sync_wanted = true;
    }
    leat_err rc = files_sync(store);
    if (rc) return rc;
    for (uint32_t i = 0; i < rows; i++) {
        struct leat_held *held = *leat_catalogue_held(&store->cat, i);
        if (!held || !(held->cut || held->forgotten)) continue;
        if (held->forgotten)
            leat_held_row_free(store, held);
        else
            leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED,
                              held->seg.buffer ? LEAT_ROW_IN_POOL : LEAT_ROW_FLUSHED);
        leat_catalogue_changed(&store->cat, i);
    }
    rc = leat_catalogue_write_changed(&store->cat);
    if (rc) return rc;
    for (uint32_t i = 0; i < rows; i++) {
        struct leat_held *held = *leat_catalogue_held(&store->cat, i);
        if (held && held->forgotten) {
            leat_held_free(store, held);
        } else if (held && held->cut) {
            held->cut = false;
            if (!held->seg.buffer) held->in_file_bytes = held->seg.prefix_id.bytes;
            leat_flush_closed(store, held);
        }
    }
    return LEAT_OK;
}
