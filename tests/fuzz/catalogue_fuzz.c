/* SPDX-License-Identifier: Apache-2.0 */
/* A start of the store: the catalogue, its rows, and the bytes that the rows name in the store's files and in memory
 * that outlived a kill. Whatever the files hold, the store is refused by name or opens. After an opening the segments
 * that were found keep the bounds of segments, no two writable segments share a slot, the store goes on, and the next
 * start finds the same segments.
 *
 * The input: the header (struct leat_catalogue_header), two bytes with the number of rows in the file, then pieces
 * (fuzz.h). Bits 0 and 1 of a kind: a row (two bytes number, the row), bytes of a store file or bytes of memory (two
 * bytes with the unit where the bytes begin); bits 2 to 4: which file; bit 7: checksums stay as they are. */
#include "entries.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/private.h"
#include "tests/store/fake_world.h"

enum { PIECE_ROW, PIECE_FILE, PIECE_MEMORY, PIECE_KINDS, AS_IT_IS = 128 };
enum {
    MEMORY_BYTES = LEAT_ARENA_STEP_BYTES,
    SPACE_BYTES = 48 * 1024 * 1024,
    FILES = 4,
    ROWS_MAX = 2 * LEAT_STORE_ROWS_PER_CHUNK,
    FOUND_MAX = 512,
};
static const uint8_t cluster[16] = "the cluster 0001";

/* ---- files ---- */

static struct leat_file *file_of(struct fake_world *world, const char *name, uint64_t bytes)
{
    struct leat_file *file;
    leat_err rc = world->disk.open(world, name, LEAT_OPEN_CREATE, &file, NULL);
    if (rc == LEAT_OK) rc = world->disk.allocate(world, file, bytes);
    LEAT_ASSERT(rc == LEAT_OK);
    return file;
}

/* A test has little memory and few files: a row's numbers are brought down to these. */
static void row_put(struct fake_world *world, const struct fuzz_piece *piece, uint32_t rows)
{
    struct leat_row row = {0};
    if (piece->count < 2) return;
    uint32_t number = leat_get_le16(piece->bytes) % ROWS_MAX;
    size_t count = piece->count - 2 < sizeof row ? piece->count - 2 : sizeof row;
    if (number >= rows) return;
    memcpy(&row, piece->bytes + 2, count);
    row.slot_file %= FILES;
    if (row.flags & LEAT_ROW_IN_POOL) memcpy(row.pool_id, world->arena.pool_id, 16);
    if ((piece->kind & AS_IT_IS) == 0) leat_row_seal(&row, number);
    struct leat_file *file = fake_file(world, "catalogue");
    memcpy(file->now + LEAT_BLOCK_BYTES + (size_t)number * LEAT_ROW_BYTES, &row, sizeof row);
}

static void bytes_put(struct fake_world *world, const struct fuzz_piece *piece)
{
    bool in_memory = piece->kind % 4 == PIECE_MEMORY;
    if (piece->count <= 2) return; /* an empty file has no bytes to point at */
    size_t count = piece->count - 2, at = leat_get_le16(piece->bytes) % 64 * LEAT_SLOT_UNIT_BYTES;
    uint8_t *to;
    if (in_memory) {
        world->arena.grown_bytes = MEMORY_BYTES;
        to = world->arena.base + at;
    } else {
        char name[16];
        (void)snprintf(name, sizeof name, "store/%u", piece->kind / 4 % FILES);
        to =
            file_of(world, name, LEAT_ALIGN_UP(at + count, (size_t)LEAT_SLOT_UNIT_BYTES))->now + at;
    }
    memcpy(to, piece->bytes + 2, count);
    if ((piece->kind & AS_IT_IS) == 0) fuzz_entries_seal(to, count, false);
}

static void world_fill(struct fake_world *world, const uint8_t *data, size_t size)
{
    struct leat_catalogue_header header;
    memcpy(&header, data, sizeof header);
    header.crc = leat_crc32c(0, (const uint8_t *)&header + sizeof header.crc,
                             sizeof header - sizeof header.crc);
    uint32_t rows = leat_get_le16(data + sizeof header) % (ROWS_MAX + 1);
    uint64_t bytes = LEAT_BLOCK_BYTES + (uint64_t)rows * LEAT_ROW_BYTES;
    memcpy(file_of(world, "catalogue", bytes)->now, &header, sizeof header);
    struct fuzz_pieces pieces = {data + sizeof header + 2, data + size};
    struct fuzz_piece piece;
    while (fuzz_piece_next(&pieces, &piece)) {
        if (piece.kind % 4 % PIECE_KINDS == PIECE_ROW)
            row_put(world, &piece, rows);
        else
            bytes_put(world, &piece);
    }
    world->space_bytes = SPACE_BYTES;
    fake_kill(world); /* the memory is what it left */
}

/* ---- starts ---- */

static void on_segment(void *core, struct leat_segment *seg)
{
    (void)core;
    (void)seg;
}
static void on_complaint(void *arg, const char *line)
{
    (void)arg;
    LEAT_ASSERT(line[0] && strlen(line) < LEAT_STORE_COMPLAINT_BYTES);
}

static bool store_open(struct fake_world *world, struct leat_store **out_store)
{
    struct leat_store_options options = {
        .memory_bytes = MEMORY_BYTES,
        .flush_delay_us = 1000,
        .scrub_bytes_per_second = 64 * 1024 * 1024,
        .events = {.on_evict_wanted = on_segment, .on_flushed = on_segment}};
    struct leat_error error = {.code = LEAT_OK};
    memcpy(options.cluster_id, cluster, sizeof cluster);
    leat_err rc = leat_store_open(&world->env, &options, out_store, &error);
    LEAT_ASSERT(rc == error.code && (rc == LEAT_OK || error.text[0]));
    return rc == LEAT_OK;
}

/* The start's report of a segment, for comparison with the next start's. */
struct told {
    struct leat_log_ref log;
    struct leat_segment_id id;
    struct leat_epoch epoch;
    enum leat_found_kind kind;
    struct leat_prefix_id prefix_id;
};

static void found_check(const struct fake_world *world, const struct leat_found *found)
{
    const struct leat_segment *seg = found->seg;
    LEAT_ASSERT(seg->capacity >= LEAT_SEGMENT_BYTES_MIN && seg->capacity <= LEAT_SEGMENT_BYTES_MAX);
    LEAT_ASSERT(seg->file != NULL);
    LEAT_ASSERT_CMP(seg->file_offset + seg->capacity, <=, LEAT_STORE_FILE_BYTES);
    LEAT_ASSERT_CMP((unsigned)seg->durability, <=, LEAT_DURABILITY_DISK);
    if (found->kind != LEAT_FOUND_LOST) LEAT_ASSERT_CMP(seg->prefix_id.bytes, <=, seg->capacity);
    if (!seg->buffer) return;
    LEAT_ASSERT(seg->buffer >= world->arena.base);
    LEAT_ASSERT(seg->buffer + seg->capacity <= world->arena.base + world->arena.grown_bytes);
}

static void places_check(const struct leat_found *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct leat_held *one = leat_held_of(found[i].seg);
        for (size_t j = i + 1; j < count && !one->slot_shared; j++) {
            const struct leat_held *two = leat_held_of(found[j].seg);
            if (two->slot_shared || two->seg.file != one->seg.file) continue;
            LEAT_ASSERT(one->seg.file_offset + one->seg.capacity <= two->seg.file_offset ||
                        two->seg.file_offset + two->seg.capacity <= one->seg.file_offset);
        }
    }
}

static size_t found_tell(const struct fake_world *world, const struct leat_store *store,
                         struct told *out)
{
    size_t count = store->found_count;
    LEAT_ASSERT(store->found_own <= count);
    places_check(store->found, count);
    for (size_t i = 0; i < count; i++) {
        const struct leat_found *found = &store->found[i];
        found_check(world, found);
        if (i < FOUND_MAX)
            out[i] = (struct told){found->seg->log, found->seg->id, found->seg->epoch, found->kind,
                                   found->seg->prefix_id};
    }
    return count < FOUND_MAX ? count : FOUND_MAX;
}

static bool told_is_of(const struct told *a, const struct told *b)
{
    return leat_log_ref_equal(a->log, b->log) && a->id.v == b->id.v && a->epoch.v == b->epoch.v;
}

/* A good segment stays as it was. A segment that was LOST for a missing file may have another state now that the start
 * has made the file, or be an empty reservation. No more segments are found. */
static void told_check(const struct told *first, size_t count, const struct told *second,
                       size_t count_second)
{
    size_t at = 0;
    for (size_t i = 1; i < count; i++)
        if (told_is_of(&first[i - 1], &first[i])) return; /* rows of one name: which is which? */
    for (size_t i = 0; i < count; i++) {
        bool here = at < count_second && told_is_of(&first[i], &second[at]);
        if (first[i].kind != LEAT_FOUND_LOST) {
            LEAT_ASSERT(here && first[i].kind == second[at].kind);
            LEAT_ASSERT(first[i].prefix_id.bytes == second[at].prefix_id.bytes &&
                        first[i].prefix_id.crc == second[at].prefix_id.crc);
        }
        at += here;
    }
    LEAT_ASSERT(at == count_second);
}

static void starts_run(struct fake_world *world)
{
    static struct told first[FOUND_MAX], second[FOUND_MAX];
    struct leat_store *store;
    if (!store_open(world, &store)) return;
    size_t count = found_tell(world, store, first);
    leat_store_complaints(store, on_complaint, NULL);
    leat_store_close(&store);
    fake_kill(world);
    LEAT_ASSERT(store_open(world, &store));
    told_check(first, count, second, found_tell(world, store, second));
    world->store = store;
    leat_store_found_done(store);
    fake_pass(world, 200000);
    leat_store_complaints(store, on_complaint, NULL);
    fake_settle(world);
    world->store = NULL;
    leat_store_close(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake_world world;
    if (size < sizeof(struct leat_catalogue_header) + 2) return 0;
    fake_world_init(&world, 1, MEMORY_BYTES);
    world_fill(&world, data, size);
    starts_run(&world);
    fake_world_fini(&world);
    return 0;
}
