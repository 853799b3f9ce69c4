/* SPDX-License-Identifier: Apache-2.0 */
/* At a start: the state of a row's segment, by its available bytes. README has the table of cases. */
#include "store/open.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/node_log.h"

/* ---- whose bytes are these? ---- */

bool leat_judge_header_matches(const struct leat_store *store, const struct leat_segment *seg,
                               const struct leat_scan *scan)
{
    const struct leat_segment_header *header = &scan->header;
    return scan->has_header && header->magic == LEAT_SEGMENT_MAGIC &&
           memcmp(header->cluster_id, store->options.cluster_id, sizeof header->cluster_id) == 0 &&
           header->stream == seg->log.stream && header->streamlet == seg->log.streamlet &&
           header->log == seg->log.log && header->epoch == seg->epoch.v &&
           header->segment == seg->id.v && header->capacity == seg->capacity;
}

/* The header entry's ids, checksums aside: damage in a header must not turn a segment into a
 * reservation. */
static bool header_resembles(const struct leat_segment *seg, const uint8_t *bytes)
{
    struct leat_segment_header header;
    memcpy(&header, bytes + LEAT_ENTRY_HEADER_BYTES, sizeof header);
    return header.stream == seg->log.stream && header.streamlet == seg->log.streamlet &&
           header.log == seg->log.log && header.epoch == seg->epoch.v &&
           header.segment == seg->id.v;
}

static bool arena_has(const struct leat_arena *arena, const struct leat_row *row)
{
    return row->flags & LEAT_ROW_IN_POOL && arena->inherited_bytes != 0 &&
           memcmp(row->pool_id, arena->pool_id, sizeof row->pool_id) == 0 &&
           row->pool_at % LEAT_SLOT_UNIT_BYTES == 0 && row->pool_at <= arena->inherited_bytes &&
           row->capacity <= arena->inherited_bytes - row->pool_at;
}

struct leat_pool *leat_judge_pool(struct leat_store *store, const struct leat_row *row)
{
    if (arena_has(store->pool.arena, row)) return &store->pool;
    struct leat_pool *pool = leat_arenas_find(store, row);
    return pool && arena_has(pool->arena, row) ? pool : NULL;
}

/* ---- one found segment ---- */

void leat_judge_repairable(struct leat_held *held, const struct leat_row *row)
{
    if (row->state != LEAT_SEGMENT_CLOSED || held->slot_shared) return;
    leat_segment_integrity_enter(&held->seg, row->flags & LEAT_ROW_FLUSHED
                                                 ? LEAT_INTEGRITY_CORRUPT
                                                 : LEAT_INTEGRITY_MISSING);
}

static struct leat_found *found_add(struct leat_opening *op, struct leat_held *held,
                                    enum leat_found_kind kind)
{
    struct leat_store *store = op->store;
    if (store->found_count == op->found_capacity) {
        size_t capacity = op->found_capacity ? op->found_capacity * 2 : 64;
        struct leat_found *found =
            leat_mem_realloc(LEAT_MEM_STORE, store->found, capacity, sizeof *found);
        if (!found) return NULL;
        store->found = found;
        op->found_capacity = capacity;
    }
    struct leat_found *found = &store->found[store->found_count++];
    *found = (struct leat_found){.seg = &held->seg, .kind = kind};
    return found;
}

leat_err leat_judge_plain(struct leat_opening *op, struct leat_held *held,
                          enum leat_found_kind kind, enum leat_segment_state state)
{
    held->seg.state = state;
    struct leat_found *found = found_add(op, held, kind);
    if (!found) return LEAT_E_NO_MEMORY;
    found->scan = (struct leat_scan){
        .bytes = held->seg.prefix_id.bytes,
        .crc = held->seg.prefix_id.crc,
        .acked_bytes = held->seg.prefix_id.bytes,
        .started = true,
        .closed = state == LEAT_SEGMENT_CLOSED,
        .base_offset = held->seg.base_offset,
        .next_offset = held->seg.next_offset,
        .max_timestamp_ms = held->seg.max_timestamp_ms,
    };
    return LEAT_OK;
}

static void take_scan(struct leat_segment *seg, const struct leat_scan *scan)
{
    seg->prefix_id = (struct leat_prefix_id){scan->bytes, scan->crc};
    seg->base_offset = scan->base_offset;
    seg->next_offset = scan->next_offset;
    seg->max_timestamp_ms = scan->max_timestamp_ms;
}

leat_err leat_judge_lost(struct leat_opening *op, struct leat_held *held,
                         enum leat_segment_state state, const struct leat_scan *scan,
                         const char *format, ...)
{
    struct leat_segment *seg = &held->seg;
    seg->state = state;
    if (scan && state != LEAT_SEGMENT_HIBERNATED && state != LEAT_SEGMENT_CLOSED)
        take_scan(seg, scan);
    struct leat_found *found = found_add(op, held, LEAT_FOUND_LOST);
    if (!found) return LEAT_E_NO_MEMORY;
    if (scan) found->scan = *scan;
    va_list args;
    va_start(args, format);
    vsnprintf(found->why, sizeof found->why, format, args);
    va_end(args);
    leat_store_complain_of(op->store, "segment %llu of log %u/%u/%u: %s",
                           (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet,
                           seg->log.log, found->why);
    return LEAT_OK;
}

void leat_judge_free(struct leat_store *store, struct leat_held *held)
{
    leat_held_row_free(store, held);
    leat_catalogue_changed(&store->cat, held->seg.row);
    held->forgotten = true;
}

static leat_err slot_read(struct leat_opening *op, struct leat_held *held, size_t bytes)
{
    struct leat_store *store = op->store;
    struct leat_disk_io io = {
        .kind = LEAT_DISK_READ,
        .file = held->seg.file,
        .offset = held->seg.file_offset,
        .buffer = store->scratch,
        .bytes = bytes,
    };
    memset(store->scratch, 0, bytes);
    return store->env->disk->run(store->env->disk->ctx, &io);
}

/* ---- cases ---- */
/* The first write of a writer elsewhere, which died in it: pieces of one-sided writes come in any order,
 * so ids can be there and the checksum over them be wrong. Nothing was acked then: where anything was, a
 * trailer further on says so, and it is damage. */
static bool torn_on_its_way(const struct leat_segment *seg, const struct leat_scan *scan,
                            bool in_file)
{
    bool in_memory = seg->durability != LEAT_DURABILITY_DISK && !in_file;
    if (LEAT_BUG(TORN_FIRST_IS_DAMAGE)) return false;
    return seg->role == LEAT_SEGMENT_REPLICA && in_memory && !scan->has_header &&
           scan->acked_bytes == 0;
}

/* Nothing was written since the memory was given to this reservation: leat_pool_take() clears only the place of the
 * first entry's header. After this place there may be ids of the same segment, if it was reserved, given back because
 * too little fitted, and reserved again in the same place. A server killed at that moment has lost nothing. */
static bool is_unwritten(const uint8_t *bytes, bool in_file)
{
    static const uint8_t cleared[LEAT_ENTRY_HEADER_BYTES];
    return !in_file && !LEAT_BUG(REMAINS_ARE_DAMAGE) && memcmp(bytes, cleared, sizeof cleared) == 0;
}

/* SUBTLE: where a file's valid prefix ends, a write may have been torn, or a bit may have flipped in a complete,
 * acked write: no later entry names the last acked write. So such an end is told apart from an end that was never
 * written past: there the next entry's header is zeros (leat_entry_seal() and the clearing of buffers ensure this).
 * Recovery does not take such a torn tail alone for the log's end (docs/recovery.md). */
static bool is_torn(const struct leat_segment *seg, const struct leat_scan *scan,
                    const uint8_t *bytes)
{
    static const uint8_t nothing[LEAT_ENTRY_HEADER_BYTES];
    if (LEAT_BUG(DAMAGE_IS_TORN) || seg->capacity - scan->bytes < sizeof nothing) return false;
    return memcmp(bytes + scan->bytes, nothing, sizeof nothing) != 0;
}

/* The number of bytes written after a torn tail. The seal of a run clears the place of the next entry; older bytes of
 * this place may follow. With a damaged header the number is only an estimate. */
static uint32_t behind_bytes(const struct leat_segment *seg, const struct leat_scan *scan,
                             const uint8_t *bytes)
{
    static const uint8_t nothing[LEAT_ENTRY_HEADER_BYTES];
    uint32_t at = scan->bytes;
    const struct leat_entry *entry;
    while ((entry = leat_entry_at(bytes, seg->capacity, at)) != NULL)
        at += leat_entry_bytes(entry->payload_bytes);
    while (seg->capacity - at >= sizeof nothing && memcmp(bytes + at, nothing, sizeof nothing) != 0)
        at += LEAT_ENTRY_ALIGN;
    return at - scan->bytes;
}

/* RESERVED or OPEN, its bytes at hand in `bytes`. */
static leat_err open_bytes(struct leat_opening *op, struct leat_held *held,
                           const struct leat_row *row, const uint8_t *bytes, bool in_file)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    bool known_started = row->state == LEAT_SEGMENT_OPEN || held->damaged;
    struct leat_scan scan;
    leat_scan_segment(bytes, seg->capacity, &scan);
    if (!leat_judge_header_matches(store, seg, &scan)) {
        if (!known_started && (!header_resembles(seg, bytes) || is_unwritten(bytes, in_file) ||
                               torn_on_its_way(seg, &scan, in_file))) {
            leat_judge_free(store, held);
            return LEAT_OK;
        }
        scan.bytes = scan.crc = 0;
        scan.started = false;
        return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                               "damaged: its header does not match");
    }
    if (known_started && scan.acked_bytes < row->prefix_id_bytes)
        scan.acked_bytes = row->prefix_id_bytes;
    scan.damaged = scan.bytes < scan.acked_bytes && !LEAT_BUG(DAMAGE_IS_TORN);
    if (scan.damaged)
        return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                               "damaged: only %u of at least %u acked bytes are valid", scan.bytes,
                               scan.acked_bytes);
    if (!scan.started) {
        if (known_started)
            return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                                   "damaged: its start entry is not valid");
        leat_judge_free(store, held);
        return LEAT_OK;
    }
    take_scan(seg, &scan);
    held->damaged = false;
    if (in_file) held->in_file_bytes = scan.bytes;
    if (!scan.closed) {
        seg->state = LEAT_SEGMENT_OPEN;
        bool torn =
            in_file && seg->durability == LEAT_DURABILITY_DISK && is_torn(seg, &scan, bytes);
        leat_segment_integrity_enter(seg, torn ? LEAT_INTEGRITY_TORN : LEAT_INTEGRITY_OK);
        struct leat_found *found = found_add(op, held, LEAT_FOUND_MARK);
        if (!found) return LEAT_E_NO_MEMORY;
        found->scan = scan;
        if (torn) found->behind_bytes = behind_bytes(seg, &scan, bytes);
        return LEAT_OK;
    }
    /* Closed by its bytes: the row catches up. */
    seg->flushed = in_file;
    leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED,
                      in_file ? LEAT_ROW_FLUSHED : LEAT_ROW_IN_POOL);
    leat_catalogue_changed(&store->cat, seg->row);
    return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
}

static bool adopt_buffer(struct leat_store *store, struct leat_held *held,
                         const struct leat_row *row)
{
    struct leat_pool *pool = leat_judge_pool(store, row);
    if (!pool) return false;
    if (!leat_pool_claim(pool, row->pool_at, row->capacity)) {
        leat_store_complain(store, "rows of the catalogue claim the same memory (row %u)",
                            held->seg.row);
        return false;
    }
    held->pool = pool;
    held->pool_at = row->pool_at;
    held->seg.buffer = pool->arena->base + row->pool_at;
    return true;
}

static leat_err slot_write(struct leat_opening *op, struct leat_held *held, size_t bytes)
{
    struct leat_disk_io io = {
        .kind = LEAT_DISK_WRITE,
        .file = held->seg.file,
        .offset = held->seg.file_offset,
        .buffer = op->store->scratch,
        .bytes = bytes,
    };
    return op->store->env->disk->run(op->store->env->disk->ctx, &io);
}

/* A replica that was open. Its writer may be alive and not know of this start: what still reaches
 * the old memory must not change what was found (docs/stories.md 11). So the valid prefix is taken
 * from a private copy, put into the file and called hibernated. */
static leat_err open_replica(struct leat_opening *op, struct leat_held *held,
                             const struct leat_row *row)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    struct leat_scan scan;
    leat_scan_segment(store->scratch, seg->capacity, &scan);
    bool whole = leat_judge_header_matches(store, seg, &scan) && scan.started && !scan.damaged &&
                 scan.bytes >= (row->state == LEAT_SEGMENT_OPEN ? row->prefix_id_bytes : 0);
    if (!whole) return open_bytes(op, held, row, store->scratch, false);
    /* Bytes from the file stay as they are: if the torn tail were cleared before the row says HIBERNATED, a power cut
     * in between would hide the tail. */
    bool from_file = seg->durability == LEAT_DURABILITY_DISK;
    leat_err rc = LEAT_OK;
    if (!from_file) {
        memset(store->scratch + scan.bytes, 0, seg->capacity - scan.bytes);
        rc = slot_write(op, held, LEAT_ALIGN_UP(scan.bytes, (uint32_t)LEAT_BLOCK_BYTES));
    }
    if (rc)
        return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                               "cannot be written to store/%u: %s", row->slot_file,
                               leat_err_text(rc));
    op->file_scanned[row->slot_file] = true;
    rc = open_bytes(op, held, row, store->scratch, true);
    if (rc || seg->state != LEAT_SEGMENT_OPEN) return rc;
    seg->state = LEAT_SEGMENT_HIBERNATED;
    leat_held_row_set(store, held, LEAT_SEGMENT_HIBERNATED, 0);
    leat_catalogue_changed(&store->cat, seg->row);
    return LEAT_OK;
}

/* SUBTLE: a killed server's memory has the last acked bytes, whatever happened to the disk's copy.
 *  1. A run is committed, and acked. Nothing is written after the run.
 *  2. A bit of it flips on the disk; the process is killed.
 *  3. From the file alone this looks like a torn write: the acked records would be lost, and their offsets given out
 *     again.
 * Sealed bytes that were not acked may be kept, like those of a longer replica. All these bytes are in the file
 * before anything depends on them. */
static bool memory_is_better(const struct leat_store *store, const struct leat_held *held,
                             const struct leat_row *row, const uint8_t *in_memory,
                             struct leat_scan *out_memory)
{
    const struct leat_segment *seg = &held->seg;
    struct leat_scan file;
    leat_scan_segment(store->scratch, seg->capacity, &file);
    bool whole = leat_judge_header_matches(store, seg, &file) && file.started && !file.damaged;
    if (whole && (file.closed || !is_torn(seg, &file, store->scratch))) return false;
    leat_scan_segment(in_memory, seg->capacity, out_memory);
    uint32_t least = row->state == LEAT_SEGMENT_OPEN ? row->prefix_id_bytes : 0;
    return leat_judge_header_matches(store, seg, out_memory) && !out_memory->damaged &&
           out_memory->bytes >= least && out_memory->bytes > (whole ? file.bytes : 0);
}

/* false: nothing has changed. */
static bool take_from_memory(struct leat_opening *op, struct leat_held *held,
                             const struct leat_row *row)
{
    struct leat_store *store = op->store;
    const struct leat_pool *pool = leat_judge_pool(store, row);
    if (!pool || LEAT_BUG(DAMAGE_IS_TORN)) return false;
    const uint8_t *in_memory = pool->arena->base + row->pool_at;
    struct leat_scan scan;
    if (!memory_is_better(store, held, row, in_memory, &scan)) return false;
    memcpy(store->scratch, in_memory, scan.bytes);
    memset(store->scratch + scan.bytes, 0, row->capacity - scan.bytes);
    if (slot_write(op, held, LEAT_ALIGN_UP(scan.bytes, (uint32_t)LEAT_BLOCK_BYTES)) != LEAT_OK)
        return false;
    leat_node_log_warn(
        "segment %llu of log %u/%u/%u was damaged in store/%u, or its last write had "
        "not ended: its %u "
        "bytes come from the memory of the server before",
        (unsigned long long)held->seg.id.v, held->seg.log.stream, held->seg.log.streamlet,
        held->seg.log.log, row->slot_file, scan.bytes);
    return true;
}

static leat_err cannot_be_read(struct leat_opening *op, struct leat_held *held,
                               const struct leat_row *row, leat_err rc)
{
    return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, NULL, "cannot be read from store/%u: %s",
                           row->slot_file, leat_err_text(rc));
}

leat_err leat_judge_unclosed(struct leat_opening *op, struct leat_held *held,
                             const struct leat_row *row)
{
    struct leat_store *store = op->store;
    bool replica = row->flags & LEAT_ROW_REPLICA;
    const struct leat_pool *pool = replica ? leat_judge_pool(store, row) : NULL;
    if (pool && row->durability != LEAT_DURABILITY_DISK) {
        memcpy(store->scratch, pool->arena->base + row->pool_at, row->capacity);
        return open_replica(op, held, row);
    }
    if (row->durability != LEAT_DURABILITY_DISK && adopt_buffer(store, held, row))
        return open_bytes(op, held, row, held->seg.buffer, false);
    leat_err rc = slot_read(op, held, row->capacity);
    if (rc) return cannot_be_read(op, held, row, rc);
    op->file_scanned[row->slot_file] = true;
    if (row->durability == LEAT_DURABILITY_DISK && replica) return open_replica(op, held, row);
    if (row->durability == LEAT_DURABILITY_DISK) {
        /* A failed write may have begun. The content of an unreadable place is unknown: if it counted as zeros, a
         * committed and acked segment whose row was not written yet would look like an unused reservation. */
        if (!take_from_memory(op, held, row)) rc = slot_read(op, held, row->capacity);
        if (rc) return cannot_be_read(op, held, row, rc);
        return open_bytes(op, held, row, store->scratch, true);
    }
    /* A `memory` segment whose memory is gone. The file has the whole segment if it was closed and flushed and only
     * the row's change did not get through; otherwise the file has a part at best. */
    struct leat_scan scan;
    leat_scan_segment(store->scratch, row->capacity, &scan);
    bool matches = leat_judge_header_matches(store, &held->seg, &scan);
    if (matches && (scan.closed || LEAT_BUG(TAIL_OF_FILE_COUNTS)) && !scan.damaged)
        return open_bytes(op, held, row, store->scratch, true);
    if (!matches) scan = (struct leat_scan){0};
    return leat_judge_lost(
        op, held, LEAT_SEGMENT_OPEN, &scan,
        "its memory did not survive (another boot or another pool); %u bytes are in "
        "the file",
        scan.bytes);
}

/* The bytes of a closed segment that are only in memory which a killed process has left. SUBTLE: all are checked.
 *  1. A process is killed before a closed segment is flushed; a bit of the segment flips in memory.
 *  2. The last trailer is right, as its checksum covers headers only. If this were enough, readers would get the
 *     flipped bit.
 *  3. The segment is flushed, and is a right copy from then on, until a scrub reads it. */
static bool memory_is_whole(const struct leat_store *store, const struct leat_segment *seg)
{
    struct leat_scan scan;
    leat_scan_segment(seg->buffer, seg->prefix_id.bytes, &scan);
    return leat_judge_header_matches(store, seg, &scan) && leat_scan_is(&scan, seg->prefix_id);
}

leat_err leat_judge_unflushed(struct leat_opening *op, struct leat_held *held,
                              const struct leat_row *row)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    bool survived = adopt_buffer(store, held, row);
    if (survived) {
        if (memory_is_whole(store, seg))
            return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
        leat_held_release_buffer(store, held);
    }
    leat_err rc = slot_read(op, held, row->capacity);
    if (rc) {
        leat_judge_repairable(held, row);
        return leat_judge_lost(op, held, LEAT_SEGMENT_CLOSED, NULL,
                               "cannot be read from store/%u: %s", row->slot_file,
                               leat_err_text(rc));
    }
    op->file_scanned[row->slot_file] = true;
    struct leat_scan scan;
    leat_scan_segment(store->scratch, seg->prefix_id.bytes, &scan);
    if (!leat_judge_header_matches(store, seg, &scan)) scan = (struct leat_scan){0};
    if (scan.bytes != seg->prefix_id.bytes || scan.crc != seg->prefix_id.crc) {
        leat_judge_repairable(held, row);
        return leat_judge_lost(
            op, held, LEAT_SEGMENT_CLOSED, &scan,
            "its memory %s before it was flushed; %u of %u bytes are in the file",
            survived ? "was damaged" : "did not survive", scan.bytes, seg->prefix_id.bytes);
    }
    held->in_file_bytes = scan.bytes;
    seg->flushed = true;
    leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED, LEAT_ROW_FLUSHED);
    leat_catalogue_changed(&store->cat, seg->row);
    return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
}

/* Recorded damage is checked again: the operator may have restored the file, or a repair was not recorded. */
leat_err leat_judge_damaged(struct leat_opening *op, struct leat_held *held,
                            const struct leat_row *row, bool there)
{
    struct leat_segment *seg = &held->seg;
    struct leat_scan scan;
    leat_err rc = slot_read(op, held, row->capacity);
    leat_scan_segment(op->store->scratch, row->prefix_id_bytes, &scan);
    if (rc || !leat_judge_header_matches(op->store, seg, &scan)) scan = (struct leat_scan){0};
    op->file_scanned[row->slot_file] |= rc == LEAT_OK;
    held->in_file_bytes = row->prefix_id_bytes;
    seg->flushed = true;
    if (scan.bytes == row->prefix_id_bytes && scan.crc == row->prefix_id_crc) {
        held->damaged = false;
        leat_held_row_set(op->store, held, LEAT_SEGMENT_CLOSED,
                          LEAT_ROW_FLUSHED | (held->pool ? LEAT_ROW_IN_POOL : 0u));
        leat_catalogue_changed(&op->store->cat, seg->row);
        return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
    }
    leat_segment_integrity_enter(seg, LEAT_INTEGRITY_CORRUPT);
    leat_store_complain_of(
        op->store,
        "segment %llu of log %u/%u/%u: the file store/%u %s: %u of %u bytes of it are valid",
        (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet, seg->log.log,
        row->slot_file, there ? "is damaged" : "is missing or truncated", scan.bytes,
        row->prefix_id_bytes);
    return leat_judge_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
}

/* The recorded prefix is read, since the segment is still open: if the prefix does not match, this log alone waits
 * for an operator. If the cut found this later, the whole node could not start. */
leat_err leat_judge_hibernated(struct leat_opening *op, struct leat_held *held,
                               const struct leat_row *row)
{
    struct leat_segment *seg = &held->seg;
    held->in_file_bytes = row->prefix_id_bytes;
    size_t bytes = LEAT_ALIGN_UP(row->prefix_id_bytes, (uint32_t)LEAT_BLOCK_BYTES);
    leat_err rc = LEAT_E_DAMAGED;
    if (bytes <= seg->capacity) rc = slot_read(op, held, bytes);
    if (rc)
        return leat_judge_lost(op, held, LEAT_SEGMENT_HIBERNATED, NULL,
                               "cannot be read from store/%u: %s", row->slot_file,
                               leat_err_text(rc));
    struct leat_scan scan;
    leat_scan_segment(op->store->scratch, row->prefix_id_bytes, &scan);
    if (!leat_judge_header_matches(op->store, seg, &scan)) scan = (struct leat_scan){0};
    if (scan.started && scan.bytes == row->prefix_id_bytes && scan.crc == row->prefix_id_crc)
        return leat_judge_plain(op, held, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED);
    scan.acked_bytes = row->prefix_id_bytes;
    scan.damaged = true;
    return leat_judge_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                           "damaged: only %u of %u acked bytes are valid", scan.bytes,
                           row->prefix_id_bytes);
}
