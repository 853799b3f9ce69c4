/* Start: what the rows say, and what the bytes say where rows cannot know.
 *
 * Only segments that were being written are read (RESERVED and OPEN rows, and closed ones that were
 * not flushed); parked and flushed ones are taken from their rows. So a start costs what was open,
 * not what is stored. README has the table of cases. */
#include "store/private.h"

#include "base/diary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct opening {
    struct leat_store *store;
    size_t found_capacity;
    bool *file_scanned; /* [files]: holds open segments: sync before anything is decided on them */
};

bool leat_open_header_matches(const struct leat_store *store, const struct leat_segment *seg,
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
           row->pool_at % LEAT_SLOT_UNIT_BYTES == 0 &&
           row->pool_at + row->capacity <= arena->inherited_bytes;
}

/* The pool that survived with this row's bytes in it, or NULL. */
static struct leat_pool *pool_of(struct leat_store *store, const struct leat_row *row)
{
    if (arena_has(store->pool.arena, row)) return &store->pool;
    struct leat_pool *pool = leat_arenas_find(store, row);
    return pool && arena_has(pool->arena, row) ? pool : NULL;
}

/* ---- one found segment ---- */

/* Its row says which bytes it has: should its log's owner have them from another node, there is a place for
 * them. */
static void may_be_mended(struct leat_held *held, const struct leat_row *row)
{
    if (row->state != LEAT_SEGMENT_CLOSED || held->slot_shared || !held->slot.file) return;
    held->seg.rotten = true;
    held->seg.unwritten = !(row->flags & LEAT_ROW_FLUSHED);
}

static struct leat_found *found_add(struct opening *op, struct leat_held *held,
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

static leat_err add_plain(struct opening *op, struct leat_held *held, enum leat_found_kind kind,
                          enum leat_segment_state state)
{
    held->seg.state = state;
    struct leat_found *found = found_add(op, held, kind);
    if (!found) return LEAT_E_NO_MEMORY;
    found->scan = (struct leat_scan){
        .bytes = held->seg.extent.bytes,
        .crc = held->seg.extent.crc,
        .acked_bytes = held->seg.extent.bytes,
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
    seg->extent = (struct leat_extent){scan->bytes, scan->crc};
    seg->base_offset = scan->base_offset;
    seg->next_offset = scan->next_offset;
    seg->max_timestamp_ms = scan->max_timestamp_ms;
}

LEAT_PRINTF(5, 6)
static leat_err add_lost(struct opening *op, struct leat_held *held, enum leat_segment_state state,
                         const struct leat_scan *scan, const char *format, ...)
{
    struct leat_segment *seg = &held->seg;
    seg->state = state;
    if (scan && state != LEAT_SEGMENT_PARKED && state != LEAT_SEGMENT_CLOSED) take_scan(seg, scan);
    struct leat_found *found = found_add(op, held, LEAT_FOUND_LOST);
    if (!found) return LEAT_E_NO_MEMORY;
    if (scan) found->scan = *scan;
    va_list args;
    va_start(args, format);
    vsnprintf(found->why, sizeof found->why, format, args);
    va_end(args);
    leat_store_complain(op->store, "segment %llu of log %u/%u/%u: %s",
                        (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet,
                        seg->log.log, found->why);
    return LEAT_OK;
}

/* A reservation that never started is no part of any log. */
static void free_reservation(struct leat_store *store, struct leat_held *held)
{
    leat_held_row_free(store, held);
    leat_catalogue_changed(&store->cat, held->seg.row);
    held->forgotten = true;
}

static leat_err slot_read(struct opening *op, struct leat_held *held, size_t bytes,
                          size_t *out_done)
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
    leat_err rc = store->env->disk->run(store->env->disk->ctx, &io);
    *out_done = rc ? 0 : io.done_bytes;
    return rc;
}

/* ---- cases ---- */
/* The first write of a writer elsewhere, which died in it: pieces of one-sided writes come in any order,
 * so ids can be there and the checksum over them be wrong. Nothing was acked then: where anything was, a
 * trailer further on says so, and it is damage. */
static bool torn_on_its_way(const struct leat_segment *seg, const struct leat_scan *scan,
                            bool in_file)
{
    bool in_memory = seg->durability != LEAT_DURABILITY_DISK && !in_file;
    return seg->role == LEAT_SEGMENT_REPLICA && in_memory && !scan->has_header &&
           scan->acked_bytes == 0;
}

/* Nothing was put into the memory since it was given to this reservation: whoever takes memory clears the
 * place of the first entry's header, and nothing else of it (leat_pool_take()). Behind it the ids of the
 * same segment may lie: reserved, given back because too little fitted, and reserved again in the same
 * place. A server killed at that moment has lost nothing. */
static bool is_unwritten(const uint8_t *bytes, bool in_file)
{
    static const uint8_t cleared[LEAT_ENTRY_HEADER_BYTES];
    return !in_file && memcmp(bytes, cleared, sizeof cleared) == 0;
}

/* SUBTLE: where a file's valid prefix ends, a write may have been torn, and a bit may have flipped in a
 * write that was whole and acked: what was acked last is named by nothing that was written later. So it
 * is told from an end behind which nothing was ever written: there the next entry's header is zeros
 * (leat_entry_seal() and whoever clears buffers see to it). Recovery does not take such an end alone for
 * the log's (docs/recovery.md). */
static bool is_ragged(const struct leat_segment *seg, const struct leat_scan *scan,
                      const uint8_t *bytes)
{
    static const uint8_t nothing[LEAT_ENTRY_HEADER_BYTES];
    if (LEAT_BUG(DAMAGE_IS_TORN) || seg->capacity - scan->bytes < sizeof nothing) return false;
    return memcmp(bytes + scan->bytes, nothing, sizeof nothing) != 0;
}

/* RESERVED or OPEN, its bytes at hand in `bytes`. */
static leat_err open_bytes(struct opening *op, struct leat_held *held, const struct leat_row *row,
                           const uint8_t *bytes, bool in_file)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    bool known_started = row->state == LEAT_SEGMENT_OPEN;
    struct leat_scan scan;
    leat_scan_segment(bytes, seg->capacity, &scan);
    if (!leat_open_header_matches(store, seg, &scan)) {
        if (!known_started && (!header_resembles(seg, bytes) || is_unwritten(bytes, in_file) ||
                               torn_on_its_way(seg, &scan, in_file))) {
            free_reservation(store, held);
            return LEAT_OK;
        }
        scan.bytes = scan.crc = 0;
        scan.started = false;
        return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan, "damaged: its header does not match");
    }
    if (known_started && scan.acked_bytes < row->extent_bytes) scan.acked_bytes = row->extent_bytes;
    scan.damaged = scan.bytes < scan.acked_bytes && !LEAT_BUG(DAMAGE_IS_TORN);
    if (scan.damaged)
        return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                        "damaged: only %u of at least %u acked bytes are valid", scan.bytes,
                        scan.acked_bytes);
    if (!scan.started) {
        if (known_started)
            return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                            "damaged: its start entry is not valid");
        free_reservation(store, held);
        return LEAT_OK;
    }
    take_scan(seg, &scan);
    if (in_file) held->in_file_bytes = scan.bytes;
    if (!scan.closed) {
        seg->state = LEAT_SEGMENT_OPEN;
        seg->ragged =
            in_file && seg->durability == LEAT_DURABILITY_DISK && is_ragged(seg, &scan, bytes);
        struct leat_found *found = found_add(op, held, LEAT_FOUND_MARK);
        if (!found) return LEAT_E_NO_MEMORY;
        found->scan = scan;
        return LEAT_OK;
    }
    /* Closed by its bytes: the row catches up. */
    seg->state = LEAT_SEGMENT_CLOSED;
    seg->flushed = in_file;
    leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED,
                      in_file ? LEAT_ROW_FLUSHED : LEAT_ROW_IN_POOL);
    leat_catalogue_changed(&store->cat, seg->row);
    return add_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
}

static bool adopt_buffer(struct leat_store *store, struct leat_held *held,
                         const struct leat_row *row)
{
    struct leat_pool *pool = pool_of(store, row);
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

static leat_err slot_write(struct opening *op, struct leat_held *held, size_t bytes)
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
 * from a private copy, put into the file and called parked. */
static leat_err open_replica(struct opening *op, struct leat_held *held, const struct leat_row *row)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    struct leat_scan scan;
    leat_scan_segment(store->scratch, seg->capacity, &scan);
    bool whole = leat_open_header_matches(store, seg, &scan) && scan.started && !scan.damaged &&
                 scan.bytes >= (row->state == LEAT_SEGMENT_OPEN ? row->extent_bytes : 0);
    if (!whole) return open_bytes(op, held, row, store->scratch, false);
    /* What comes from the file stays as it is there: cleared before the row says PARKED, what makes its
     * end ragged would be gone after a power cut between the two. */
    bool from_file = seg->durability == LEAT_DURABILITY_DISK;
    leat_err rc = LEAT_OK;
    if (!from_file) {
        memset(store->scratch + scan.bytes, 0, seg->capacity - scan.bytes);
        rc = slot_write(op, held, LEAT_ALIGN_UP(scan.bytes, (uint32_t)LEAT_BLOCK_BYTES));
    }
    if (rc)
        return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan, "cannot be written to store/%u: %s",
                        row->slot_file, leat_err_text(rc));
    op->file_scanned[row->slot_file] = true;
    rc = open_bytes(op, held, row, store->scratch, true);
    if (rc || seg->state != LEAT_SEGMENT_OPEN) return rc;
    seg->state = LEAT_SEGMENT_PARKED;
    leat_held_row_set(store, held, LEAT_SEGMENT_PARKED, 0);
    leat_catalogue_changed(&store->cat, seg->row);
    return LEAT_OK;
}

static leat_err open_unclosed(struct opening *op, struct leat_held *held,
                              const struct leat_row *row)
{
    struct leat_store *store = op->store;
    bool replica = row->flags & LEAT_ROW_REPLICA;
    const struct leat_pool *pool = replica ? pool_of(store, row) : NULL;
    if (pool && row->durability != LEAT_DURABILITY_DISK) {
        memcpy(store->scratch, pool->arena->base + row->pool_at, row->capacity);
        return open_replica(op, held, row);
    }
    if (row->durability != LEAT_DURABILITY_DISK && adopt_buffer(store, held, row))
        return open_bytes(op, held, row, held->seg.buffer, false);
    size_t done;
    leat_err rc = slot_read(op, held, row->capacity, &done);
    if (rc)
        return add_lost(op, held, LEAT_SEGMENT_OPEN, NULL, "cannot be read from store/%u: %s",
                        row->slot_file, leat_err_text(rc));
    op->file_scanned[row->slot_file] = true;
    if (row->durability == LEAT_DURABILITY_DISK)
        return replica ? open_replica(op, held, row)
                       : open_bytes(op, held, row, store->scratch, true);
    /* A `memory` segment whose memory is gone. The file has it whole if it was closed and flushed
     * and only the row's change did not get through; else what is there is a part at best. */
    struct leat_scan scan;
    leat_scan_segment(store->scratch, row->capacity, &scan);
    bool matches = leat_open_header_matches(store, &held->seg, &scan);
    if (matches && (scan.closed || LEAT_BUG(TAIL_OF_FILE_COUNTS)) && !scan.damaged)
        return open_bytes(op, held, row, store->scratch, true);
    if (!matches) scan = (struct leat_scan){0};
    return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                    "its memory did not survive (another boot or another pool); %u bytes are in "
                    "the file",
                    scan.bytes);
}

/* The trailer that ends the recorded prefix is there: with the header enough for memory that no
 * power cut has touched. */
static bool ends_with(const struct leat_segment *seg)
{
    if (seg->extent.bytes < LEAT_ENTRY_HEADER_BYTES || seg->extent.bytes > seg->capacity)
        return false;
    struct leat_entry entry;
    memcpy(&entry, seg->buffer + seg->extent.bytes - sizeof entry, sizeof entry);
    return entry.type == LEAT_ENTRY_TRAILER && entry.crc == seg->extent.crc &&
           header_resembles(seg, seg->buffer);
}

static leat_err open_unflushed(struct opening *op, struct leat_held *held,
                               const struct leat_row *row)
{
    struct leat_store *store = op->store;
    struct leat_segment *seg = &held->seg;
    if (adopt_buffer(store, held, row)) {
        if (ends_with(seg)) return add_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
        leat_held_release_buffer(store, held);
    }
    size_t done;
    leat_err rc = slot_read(op, held, row->capacity, &done);
    if (rc) {
        may_be_mended(held, row);
        return add_lost(op, held, LEAT_SEGMENT_CLOSED, NULL, "cannot be read from store/%u: %s",
                        row->slot_file, leat_err_text(rc));
    }
    op->file_scanned[row->slot_file] = true;
    struct leat_scan scan;
    leat_scan_segment(store->scratch, seg->extent.bytes, &scan);
    if (!leat_open_header_matches(store, seg, &scan)) scan = (struct leat_scan){0};
    if (scan.bytes != seg->extent.bytes || scan.crc != seg->extent.crc) {
        may_be_mended(held, row);
        return add_lost(op, held, LEAT_SEGMENT_CLOSED, &scan,
                        "its memory did not survive before it was flushed; %u of %u bytes are in "
                        "the file",
                        scan.bytes, seg->extent.bytes);
    }
    held->in_file_bytes = scan.bytes;
    seg->flushed = true;
    leat_held_row_set(store, held, LEAT_SEGMENT_CLOSED, LEAT_ROW_FLUSHED);
    leat_catalogue_changed(&store->cat, seg->row);
    return add_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
}

/* Its recorded prefix is read, since it is still open: what does not match waits for an operator,
 * as one log; found later, by the cut, it would have kept the whole node from starting. */
static leat_err open_parked(struct opening *op, struct leat_held *held, const struct leat_row *row)
{
    struct leat_segment *seg = &held->seg;
    held->in_file_bytes = row->extent_bytes;
    size_t bytes = LEAT_ALIGN_UP(row->extent_bytes, (uint32_t)LEAT_BLOCK_BYTES);
    size_t done;
    leat_err rc = LEAT_E_DAMAGED;
    if (bytes <= seg->capacity) rc = slot_read(op, held, bytes, &done);
    if (rc)
        return add_lost(op, held, LEAT_SEGMENT_PARKED, NULL, "cannot be read from store/%u: %s",
                        row->slot_file, leat_err_text(rc));
    struct leat_scan scan;
    leat_scan_segment(op->store->scratch, row->extent_bytes, &scan);
    if (!leat_open_header_matches(op->store, seg, &scan)) scan = (struct leat_scan){0};
    if (scan.started && scan.bytes == row->extent_bytes && scan.crc == row->extent_crc)
        return add_plain(op, held, LEAT_FOUND_MARK, LEAT_SEGMENT_PARKED);
    scan.acked_bytes = row->extent_bytes;
    scan.damaged = true;
    return add_lost(op, held, LEAT_SEGMENT_OPEN, &scan,
                    "damaged: only %u of %u acked bytes are valid", scan.bytes, row->extent_bytes);
}

static void from_row(struct leat_held *held, const struct leat_row *row, uint32_t number)
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
    seg->ragged = row->flags & LEAT_ROW_RAGGED;
    seg->capacity = row->capacity;
    seg->row = number;
    seg->extent = (struct leat_extent){row->extent_bytes, row->extent_crc};
    seg->base_offset = row->base_offset;
    seg->next_offset = row->next_offset;
    seg->max_timestamp_ms = row->max_timestamp_ms;
}

/* The slot of a row: false when the file did not have it; then it has it now, empty. */
static bool claim_slot(struct leat_store *store, struct leat_held *held, const struct leat_row *row)
{
    struct leat_slots *slots = &store->slots;
    uint32_t end = row->slot_unit + row->capacity / LEAT_SLOT_UNIT_BYTES;
    struct leat_store_file *file = slots->files[row->slot_file];
    bool there = file && end <= file->found_units;
    if (!there && leat_slots_cover(slots, row->slot_file, end)) {
        if (file) file->failed = true; /* no room even for that: nothing is written there */
    }
    file = slots->files[row->slot_file];
    held->slot_shared = true;
    if (!file) return false;
    held->slot = (struct leat_slot){file, row->slot_unit};
    held->seg.file = file->file;
    held->seg.file_number = file->number;
    held->seg.file_offset = (uint64_t)row->slot_unit * LEAT_SLOT_UNIT_BYTES;
    if (end > file->grown_units) return false;
    held->slot_shared = !leat_buddy_claim(&file->buddy, row->slot_unit,
                                          leat_buddy_order(row->capacity, LEAT_SLOT_UNIT_BYTES));
    if (held->slot_shared)
        leat_store_complain(store,
                            "rows of the catalogue claim the same place in store/%u (row %u)",
                            row->slot_file, held->seg.row);
    return there;
}

/* Its bytes never were in the file alone: a file that lost its end (a failed flush) takes nothing. */
static bool memory_stands_in(struct leat_store *store, const struct leat_held *held,
                             const struct leat_row *row)
{
    if (row->durability == LEAT_DURABILITY_DISK || !pool_of(store, row)) return false;
    if (!held->slot.file || held->slot_shared) return false; /* nowhere to flush it to */
    return row->state == LEAT_SEGMENT_RESERVED || row->state == LEAT_SEGMENT_OPEN ||
           (row->state == LEAT_SEGMENT_CLOSED && !(row->flags & LEAT_ROW_FLUSHED));
}

static leat_err open_row(struct opening *op, uint32_t number)
{
    struct leat_store *store = op->store;
    struct leat_row row = *leat_catalogue_row(&store->cat, number);
    struct leat_held *held = leat_held_get(store);
    if (!held) return LEAT_E_NO_MEMORY;
    from_row(held, &row, number);
    *leat_catalogue_held(&store->cat, number) = held;
    store->cat.held_count++;
    if (!claim_slot(store, held, &row) && !memory_stands_in(store, held, &row)) {
        bool memory_has = row.durability != LEAT_DURABILITY_DISK && pool_of(store, &row);
        if (row.state == LEAT_SEGMENT_RESERVED && !memory_has && held->slot.file) {
            /* The file grew for it and was not synced before a power cut: nothing was committed
             * there. A `memory` segment's bytes are gone with its memory. */
            if (row.durability == LEAT_DURABILITY_DISK) {
                free_reservation(store, held);
                return LEAT_OK;
            }
        }
        may_be_mended(held, &row);
        return add_lost(op, held,
                        row.state == LEAT_SEGMENT_RESERVED ? LEAT_SEGMENT_OPEN : row.state, NULL,
                        "the file store/%u is missing or truncated", row.slot_file);
    }
    if (held->seg.incomplete) {
        /* Nobody may take a part of a segment for all of it (dissertation §4.5.2). */
        free_reservation(store, held);
        return LEAT_OK;
    }
    switch ((enum leat_segment_state)row.state) {
    case LEAT_SEGMENT_RESERVED:
    case LEAT_SEGMENT_OPEN:
        return open_unclosed(op, held, &row);
    case LEAT_SEGMENT_PARKED:
        return open_parked(op, held, &row);
    case LEAT_SEGMENT_CLOSED:
        if (!(row.flags & LEAT_ROW_FLUSHED)) return open_unflushed(op, held, &row);
        held->in_file_bytes = row.extent_bytes;
        held->seg.flushed = true;
        return add_plain(op, held, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED);
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
    if (a->log.stream != b->log.stream) return a->log.stream < b->log.stream ? -1 : 1;
    if (a->log.streamlet != b->log.streamlet) return a->log.streamlet < b->log.streamlet ? -1 : 1;
    if (a->log.log != b->log.log) return a->log.log < b->log.log ? -1 : 1;
    if (a->id.v != b->id.v) return a->id.v < b->id.v ? -1 : 1;
    if (a->epoch.v != b->epoch.v) return a->epoch.v < b->epoch.v ? -1 : 1;
    return 0;
}

static leat_err rows_open(struct opening *op)
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

/* What was read from the page cache of a killed process may not be on the disk yet. A decision
 * built on it would outlive it. */
static leat_err sync_scanned(struct opening *op)
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

/* Closed segments that are in memory again: flushed behind, or kept. */
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
    struct opening op = {.store = store};
    op.file_scanned = leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_FILES_MAX, sizeof(bool));
    leat_err rc = op.file_scanned ? leat_store_scratch(store) : LEAT_E_NO_MEMORY;
    if (rc) goto out;
    free_space(store, quarantine);
    rc = rows_open(&op);
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
out:
    leat_mem_free(op.file_scanned);
    if (rc) leat_error_set(error, rc, "cannot open the store: %s", leat_err_text(rc));
    return rc;
}
