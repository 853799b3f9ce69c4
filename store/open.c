/* SPDX-License-Identifier: Apache-2.0 */
/* Start: the rows, and the bytes of segments where rows cannot know.
 *
 * Only segments that were being written are read (RESERVED and OPEN rows, and unflushed closed segments); hibernated
 * and flushed segments are taken from their rows. So the cost of a start grows with the open segments, not with the
 * stored. README has the table of cases. */
#include "store/open.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/node_log.h"

static void from_row(struct leat_held *held, const struct leat_row *row, uint32_t number,
                     int64_t now_ms)
{
    struct leat_segment *seg = &held->seg;
    seg->log = (struct leat_log_ref){row->stream, row->streamlet, row->log};
    seg->id.v = row->segment;
    seg->epoch.v = row->epoch;
    seg->durability = row->durability;
    seg->version = row->version ? row->version : 1;
    seg->role = row->flags & LEAT_ROW_REPLICA ? LEAT_SEGMENT_REPLICA : LEAT_SEGMENT_OWN;
    seg->writer = row->writer;
    seg->incomplete = row->flags & LEAT_ROW_INCOMPLETE;
    seg->provisional = row->flags & LEAT_ROW_PROVISIONAL;
    bool torn = row->state == LEAT_SEGMENT_HIBERNATED && row->flags & LEAT_ROW_TORN;
    seg->integrity = torn ? LEAT_INTEGRITY_TORN : LEAT_INTEGRITY_OK;
    seg->given_up = row->flags & LEAT_ROW_GIVEN_UP;
    seg->front_given_up = row->flags & LEAT_ROW_FRONT_GIVEN_UP;
    seg->passed_bytes = row->passed_bytes;
    seg->capacity = row->capacity;
    seg->row = number;
    seg->prefix_id = (struct leat_prefix_id){row->prefix_id_bytes, row->prefix_id_crc};
    seg->base_offset = row->base_offset;
    seg->next_offset = row->next_offset;
    seg->max_timestamp_ms = row->max_timestamp_ms;
    seg->written_ms = row->written_ms ? row->written_ms : now_ms;
}

/* SUBTLE: written now, or it would be a later time at each start, and retention would never come to it. */
static void note_written(struct leat_store *store, const struct leat_held *held)
{
    struct leat_row *row = leat_catalogue_row(&store->cat, held->seg.row);
    if (row->state != LEAT_SEGMENT_CLOSED || row->written_ms) return;
    row->written_ms = held->seg.written_ms;
    leat_row_seal(row, held->seg.row);
    leat_catalogue_changed(&store->cat, held->seg.row);
}

/* Claims the slot of a row. If the file did not have the slot (*out_there false), the file has an empty slot now, or
 * lacks the space. A missing file that can't be made stops the opening of the store: made later, the file would know
 * no claims. */
static leat_err claim_slot(struct leat_store *store, struct leat_held *held,
                           const struct leat_row *row, bool *out_there)
{
    struct leat_slots *slots = &store->slots;
    uint32_t end = row->slot_unit + row->capacity / LEAT_SLOT_UNIT_BYTES;
    struct leat_store_file *file = slots->files[row->slot_file];
    bool there = file && end <= file->found_units;
    leat_err rc = there ? LEAT_OK : leat_slots_cover(slots, row->slot_file, end);
    file = slots->files[row->slot_file];
    held->slot_shared = true;
    if (!file) {
        leat_node_log_error("store: store/%u is missing, and can't be made: %s", row->slot_file,
                            leat_err_text(rc));
        return rc;
    }
    if (rc != LEAT_OK && (rc != LEAT_E_DISK_FULL || LEAT_BUG(FULL_IS_FINAL))) file->failed = true;
    held->slot = (struct leat_slot){file, row->slot_unit};
    held->seg.file = file->file;
    held->seg.file_number = file->number;
    held->seg.file_offset = (uint64_t)row->slot_unit * LEAT_SLOT_UNIT_BYTES;
    if (end > file->grown_units) return LEAT_OK;
    held->slot_shared = !leat_buddy_claim(&file->buddy, row->slot_unit,
                                          leat_buddy_order(row->capacity, LEAT_SLOT_UNIT_BYTES));
    if (held->slot_shared)
        leat_store_complain(store,
                            "rows of the catalogue claim the same place in store/%u (row %u)",
                            row->slot_file, held->seg.row);
    *out_there = there;
    return LEAT_OK;
}

/* The memory of a killed server has it: its bytes never were in the file alone, or it was being written, and had to be
 * there whole. */
static bool memory_stands_in(struct leat_store *store, const struct leat_held *held,
                             const struct leat_row *row)
{
    if (!leat_judge_pool(store, row) || LEAT_BUG(END_TAKES_MEMORY)) return false;
    if (held->slot_shared || held->slot.file->failed) return false; /* nowhere to flush it to */
    return row->state == LEAT_SEGMENT_RESERVED || row->state == LEAT_SEGMENT_OPEN ||
           (row->state == LEAT_SEGMENT_CLOSED && row->durability != LEAT_DURABILITY_DISK &&
            !(row->flags & LEAT_ROW_FLUSHED));
}

/* SUBTLE: (1) A flush fails, and a file loses its end. (2) The process is killed, and the disk is full at the next
 * start, so the file does not get its end back. (3) If the segments of this end were called lost, another segment would
 * take the memory that alone has their acked records. So the start fails, and the memory stays. */
static leat_err memory_waits(const struct leat_held *held)
{
    leat_node_log_error(
        "store: store/%u has lost its end, the disk has no space for it, and memory alone has what "
        "belongs there. Make space, and start this server again: until then its memory stays",
        held->seg.file_number);
    return LEAT_E_DISK_FULL;
}

static leat_err open_row(struct leat_opening *op, uint32_t number)
{
    struct leat_store *store = op->store;
    struct leat_row row = *leat_catalogue_row(&store->cat, number);
    struct leat_held *held = leat_held_get(store);
    if (!held) return LEAT_E_NO_MEMORY;
    from_row(held, &row, number, store->env->clock->wall_ms(store->env->clock->ctx));
    note_written(store, held);
    *leat_catalogue_held(&store->cat, number) = held;
    store->cat.held_count++;
    if (row.state == LEAT_SEGMENT_CLOSED && row.flags & LEAT_ROW_FLUSHED &&
        leat_judge_pool(store, &row) == &store->pool) {
        held->pool = &store->pool; /* not read now: a repair looks there */
        held->pool_at = row.pool_at;
    }
    bool there = false;
    leat_err rc = claim_slot(store, held, &row, &there);
    if (rc) return rc;
    bool flushed = row.state == LEAT_SEGMENT_CLOSED && row.flags & LEAT_ROW_FLUSHED;
    held->damaged = row.more & LEAT_ROW_DAMAGED;
    bool named = flushed && held->damaged && !held->slot_shared;
    bool stands_in = !there && !named && memory_stands_in(store, held, &row);
    if (stands_in && held->slot.file->here_units < held->slot.file->grown_units)
        return memory_waits(held);
    if (!there && !named && !stands_in) {
        if (row.state == LEAT_SEGMENT_RESERVED && row.durability == LEAT_DURABILITY_DISK &&
            !held->damaged) {
            /* The file grew for it and was not synced before a power cut: nothing was committed
             * there. A `memory` segment's bytes are gone with its memory. */
            leat_judge_free(store, held);
            return LEAT_OK;
        }
        leat_judge_repairable(held, &row);
        return leat_judge_lost(op, held,
                               row.state == LEAT_SEGMENT_RESERVED ? LEAT_SEGMENT_OPEN : row.state,
                               NULL, "the file store/%u is missing or truncated", row.slot_file);
    }
    if (held->seg.incomplete) {
        /* A part of a segment must never count as the whole (dissertation §4.5.2). */
        leat_judge_free(store, held);
        return LEAT_OK;
    }
    switch ((enum leat_segment_state)row.state) {
    case LEAT_SEGMENT_RESERVED:
    case LEAT_SEGMENT_OPEN:
        return leat_judge_unclosed(op, held, &row);
    case LEAT_SEGMENT_HIBERNATED:
        return leat_judge_hibernated(op, held, &row);
    case LEAT_SEGMENT_CLOSED:
        if (!flushed) return leat_judge_unflushed(op, held, &row);
        if (named) return leat_judge_damaged(op, held, &row, there);
        held->in_file_bytes = row.prefix_id_bytes;
        held->seg.flushed = true;
        return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
    case LEAT_SEGMENT_FREE:
        break;
    }
    return LEAT_OK;
}

static int found_order(const void *left, const void *right)
{
    const struct leat_segment *a = ((const struct leat_found *)left)->seg;
    const struct leat_segment *b = ((const struct leat_found *)right)->seg;
    if (a->role != b->role) return a->role < b->role ? -1 : 1;
    int order = leat_log_ref_order(a->log, b->log);
    if (order != 0) return order;
    if (a->id.v != b->id.v) return a->id.v < b->id.v ? -1 : 1;
    if (a->epoch.v != b->epoch.v) return a->epoch.v < b->epoch.v ? -1 : 1;
    return 0;
}

static bool is_out_there(const struct leat_store *store, const struct leat_row *row)
{
    const struct leat_store_file *file = store->slots.files[row->slot_file];
    return file && row->slot_unit + row->capacity / LEAT_SLOT_UNIT_BYTES <= file->found_units;
}

/* Does the row show that the file had this place on the disk? Such a row is written only after the file was synced. */
static bool was_there(const struct leat_row *row)
{
    return row->state == LEAT_SEGMENT_HIBERNATED ||
           (row->state == LEAT_SEGMENT_CLOSED && row->flags & LEAT_ROW_FLUSHED) ||
           (row->state == LEAT_SEGMENT_OPEN && row->prefix_id_bytes != 0);
}

static bool is_behind(const struct leat_store *store, const struct leat_row *row,
                      const uint32_t *synced_units)
{
    /* The name of a file is on the disk before any row names the file. */
    return !store->slots.files[row->slot_file] || row->slot_unit < synced_units[row->slot_file];
}

/* SUBTLE: a missing segment is recorded before its place is allocated again.
 *  1. store/0 is gone. Its segments are reported; the places that their rows claim are allocated, since no other
 *     segment may get these places, and read as zeros.
 *  2. The next start finds a file of the right size. A start reads no closed and flushed segment: all segments count
 *     as intact until a consumer reads them.
 * So the rows first say durably that the segments were found missing; then the file grows. The row of a segment that
 * was reserved for level `disk` may be out of date: the segment had no bytes only where the file may never have grown
 * for it. */
static leat_err note_missing(struct leat_opening *op)
{
    struct leat_store *store = op->store;
    struct leat_catalogue *cat = &store->cat;
    uint32_t rows = cat->chunk_count * LEAT_STORE_ROWS_PER_CHUNK;
    uint32_t *synced_units =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_FILES_MAX, sizeof(uint32_t));
    bool noted = false;
    if (LEAT_BUG(MISSING_FORGOTTEN)) {
        leat_mem_free(synced_units);
        return LEAT_OK;
    }
    if (!synced_units) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < rows; i++) {
        const struct leat_row *row = leat_catalogue_row(cat, i);
        uint32_t end = row->slot_unit + row->capacity / LEAT_SLOT_UNIT_BYTES;
        if (leat_row_valid(row, i) && was_there(row) && end > synced_units[row->slot_file])
            synced_units[row->slot_file] = end;
    }
    for (uint32_t i = 0; i < rows; i++) {
        struct leat_row *row = leat_catalogue_row(cat, i);
        bool closed = row->state == LEAT_SEGMENT_CLOSED && row->flags & LEAT_ROW_FLUSHED;
        bool reserved =
            row->state == LEAT_SEGMENT_RESERVED && row->durability == LEAT_DURABILITY_DISK;
        if (!(closed || reserved) || !leat_row_valid(row, i) || is_out_there(store, row)) continue;
        if (row->more & LEAT_ROW_DAMAGED || (reserved && !is_behind(store, row, synced_units)))
            continue;
        row->more |= LEAT_ROW_DAMAGED;
        leat_row_seal(row, i);
        leat_catalogue_changed(cat, i);
        noted = true;
    }
    leat_mem_free(synced_units);
    return noted ? leat_catalogue_write_changed(cat) : LEAT_OK;
}

static leat_err rows_open(struct leat_opening *op)
{
    struct leat_catalogue *cat = &op->store->cat;
    for (uint32_t number = 0; number < cat->chunk_count * LEAT_STORE_ROWS_PER_CHUNK; number++) {
        const struct leat_row *row = leat_catalogue_row(cat, number);
        if (!leat_row_valid(row, number)) continue; /* named already; kept, never given out */
        if (row->state == LEAT_SEGMENT_FREE) {
            if (number >= cat->rows_in_file) continue;
            struct leat_row_chunk *chunk = cat->chunks[number / LEAT_STORE_ROWS_PER_CHUNK];
            uint32_t bit = number % LEAT_STORE_ROWS_PER_CHUNK;
            chunk->free[bit / 64] |= UINT64_C(1) << (bit % 64);
            continue;
        }
        leat_err rc = open_row(op, number);
        if (rc) return rc;
    }
    return LEAT_OK;
}

/* Bytes from the page cache of a killed process may not be on the disk yet. A decision from these bytes could survive
 * a power cut that the bytes do not survive. */
static leat_err sync_scanned(struct leat_opening *op)
{
    struct leat_store *store = op->store;
    for (uint32_t i = 0; i < store->slots.count; i++) {
        if (!op->file_scanned[i]) continue;
        struct leat_disk_io io = {.kind = LEAT_DISK_SYNC, .file = store->slots.files[i]->file};
        leat_err rc = store->env->disk->run(store->env->disk->ctx, &io);
        if (rc) return rc;
    }
    return LEAT_OK;
}

static void release_reservations(struct leat_store *store)
{
    for (uint32_t i = 0; i < store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK; i++) {
        struct leat_held *held = *leat_catalogue_held(&store->cat, i);
        if (held && held->forgotten) leat_held_free(store, held);
    }
}

static void free_space(struct leat_store *store, bool quarantine)
{
    if (quarantine)
        leat_store_complain(store, "damaged rows may own places in the store's files: what is free "
                                   "there now is not used again, files grow instead");
    for (uint32_t i = 0; i < store->slots.count; i++) {
        struct leat_store_file *file = store->slots.files[i];
        if (file) leat_buddy_add(&file->buddy, 0, file->grown_units);
    }
}

/* Take out of use what no row claimed. */
static void quarantine_free(struct leat_store *store)
{
    for (uint32_t i = 0; i < store->slots.count; i++) {
        struct leat_store_file *file = store->slots.files[i];
        uint32_t unit;
        for (unsigned order = LEAT_BUDDY_ORDERS; file && order-- > 0;)
            while (file->buddy.free_count[order] && leat_buddy_take(&file->buddy, order, &unit)) {
            }
    }
}

/* Closed segments that are in memory again: flushed in the background, or kept. */
static void queue_adopted(struct leat_store *store)
{
    for (size_t i = 0; i < store->found_count; i++) {
        struct leat_held *held = leat_held_of(store->found[i].seg);
        if (store->found[i].kind == LEAT_FOUND_CLOSED && held->seg.buffer)
            leat_flush_closed(store, held);
    }
}

leat_err leat_open_found(struct leat_store *store, bool quarantine, struct leat_error *error)
{
    struct leat_opening op = {.store = store};
    op.file_scanned = leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_FILES_MAX, sizeof(bool));
    leat_err rc = op.file_scanned ? leat_store_scratch(store) : LEAT_E_NO_MEMORY;
    if (rc) goto out;
    free_space(store, quarantine);
    rc = note_missing(&op);
    if (!rc) rc = rows_open(&op);
    if (rc) goto out;
    if (quarantine) quarantine_free(store);
    rc = sync_scanned(&op);
    if (!rc) rc = leat_catalogue_write_changed(&store->cat);
    if (rc) goto out;
    release_reservations(store);
    if (store->found_count)
        qsort(store->found, store->found_count, sizeof *store->found, found_order);
    while (store->found_own < store->found_count &&
           store->found[store->found_own].seg->role == LEAT_SEGMENT_OWN)
        store->found_own++;
    queue_adopted(store);
    leat_node_log_sum_tell(&store->segments_sum,
                           store->segments_sum.since_us + LEAT_NODE_LOG_SUM_US);
out:
    leat_mem_free(op.file_scanned);
    if (rc) leat_error_set(error, rc, "cannot open the store: %s", leat_err_text(rc));
    return rc;
}
