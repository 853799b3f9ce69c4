/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: one row per segment, whole in memory, written in 4 KiB blocks.
 *
 * Rule: the RAM copy of a row changes only when the changed row may be written. A block that is written for one row
 * includes the neighbouring rows, so "changed but not to be written yet" cannot exist. Blocks are copied when a round
 * is submitted: the RAM copy may then go on changing while the disk reads the copy. */
#include "store/private.h"

#include "base/crc32c.h"

#include <stdio.h>

enum { CHUNK_BYTES = LEAT_STORE_ROWS_PER_CHUNK * LEAT_ROW_BYTES };
_Static_assert((int)CHUNK_BYTES <= LEAT_STORE_ROUND_BLOCKS_MAX * LEAT_BLOCK_BYTES,
               "a chunk is read at once");

static uint32_t row_crc(const struct leat_row *row, uint32_t number)
{
    uint32_t crc = leat_crc32c(0, &number, sizeof number);
    return leat_crc32c(crc, (const uint8_t *)row + sizeof row->crc, sizeof *row - sizeof row->crc);
}

static bool is_zero(const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    return count == 0 || (at[0] == 0 && memcmp(at, at + 1, count - 1) == 0);
}

bool leat_row_valid(const struct leat_row *row, uint32_t number)
{
    if (is_zero(row, sizeof *row)) return true;
    if (row->crc != row_crc(row, number) || row->state > LEAT_SEGMENT_CLOSED) return false;
    if (row->state == LEAT_SEGMENT_FREE) return true;
    /* A place begins at a multiple of its size, so it does not reach beyond the file either. */
    return row->capacity >= LEAT_SEGMENT_BYTES_MIN && row->capacity <= LEAT_SEGMENT_BYTES_MAX &&
           (row->capacity & (row->capacity - 1)) == 0 && row->prefix_id_bytes <= row->capacity &&
           row->durability <= LEAT_DURABILITY_DISK && row->slot_file < LEAT_STORE_FILES_MAX &&
           row->slot_unit < LEAT_STORE_FILE_BYTES / LEAT_SLOT_UNIT_BYTES &&
           row->slot_unit % (row->capacity / LEAT_SLOT_UNIT_BYTES) == 0;
}

void leat_row_seal(struct leat_row *row, uint32_t number)
{
    row->crc = row_crc(row, number);
}

struct leat_row *leat_catalogue_row(const struct leat_catalogue *cat, uint32_t row)
{
    LEAT_ASSERT_CMP(row / LEAT_STORE_ROWS_PER_CHUNK, <, cat->chunk_count);
    return &cat->chunks[row / LEAT_STORE_ROWS_PER_CHUNK]->rows[row % LEAT_STORE_ROWS_PER_CHUNK];
}

struct leat_held **leat_catalogue_held(const struct leat_catalogue *cat, uint32_t row)
{
    LEAT_ASSERT_CMP(row / LEAT_STORE_ROWS_PER_CHUNK, <, cat->chunk_count);
    return &cat->chunks[row / LEAT_STORE_ROWS_PER_CHUNK]->held[row % LEAT_STORE_ROWS_PER_CHUNK];
}

uint64_t leat_catalogue_bytes(const struct leat_catalogue *cat)
{
    return LEAT_BLOCK_BYTES + (uint64_t)cat->chunk_count * CHUNK_BYTES;
}

leat_err leat_catalogue_init(struct leat_catalogue *cat, const struct leat_disk *disk)
{
    *cat = (struct leat_catalogue){.disk = disk};
    cat->chunks = leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_CHUNKS_MAX, sizeof *cat->chunks);
    if (!cat->chunks) return LEAT_E_NO_MEMORY;
    cat->staging_raw =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_STORE_ROUND_BLOCKS_MAX + 2, LEAT_BLOCK_BYTES);
    if (!cat->staging_raw) return LEAT_E_NO_MEMORY;
    cat->staging = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)cat->staging_raw, LEAT_BLOCK_BYTES);
    /* The header has a block of its own: the catalogue grows while a round is in flight. */
    cat->header_block = cat->staging + LEAT_STORE_ROUND_BLOCKS_MAX * LEAT_BLOCK_BYTES;
    return LEAT_OK;
}

void leat_catalogue_fini(struct leat_catalogue *cat)
{
    if (cat->file) cat->disk->close(cat->disk->ctx, cat->file);
    for (uint32_t i = 0; i < cat->chunk_count; i++)
        leat_mem_free(cat->chunks[i]);
    leat_mem_free(cat->chunks);
    leat_mem_free(cat->staging_raw);
    *cat = (struct leat_catalogue){0};
}

static leat_err run(struct leat_catalogue *cat, struct leat_file *file, enum leat_disk_kind kind,
                    uint64_t offset, void *buffer, size_t bytes, size_t *out_done)
{
    struct leat_disk_io io = {
        .kind = kind, .file = file, .offset = offset, .buffer = buffer, .bytes = bytes};
    leat_err rc = cat->disk->run(cat->disk->ctx, &io);
    if (out_done) *out_done = rc ? 0 : io.done_bytes;
    return rc;
}

static leat_err header_write(struct leat_catalogue *cat, struct leat_file *file)
{
    struct leat_catalogue_header *header = &cat->header;
    header->crc = leat_crc32c(0, (const uint8_t *)header + sizeof header->crc,
                              sizeof *header - sizeof header->crc);
    memset(cat->header_block, 0, LEAT_BLOCK_BYTES);
    memcpy(cat->header_block, header, sizeof *header);
    leat_err rc = run(cat, file, LEAT_DISK_WRITE, 0, cat->header_block, LEAT_BLOCK_BYTES, NULL);
    return rc ? rc : run(cat, file, LEAT_DISK_SYNC, 0, NULL, 0, NULL);
}

/* A catalogue appears under its name only when its header is durable: a file "catalogue" without a
 * valid header is damage, never a start that was cut short. */
static leat_err file_make(struct leat_catalogue *cat, const struct leat_env *env,
                          const uint8_t cluster_id[16], struct leat_error *error)
{
    const struct leat_disk *disk = cat->disk;
    struct leat_file *file = NULL;
    leat_err rc =
        disk->open(disk->ctx, "catalogue.new", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &file, error);
    if (rc) return rc;
    cat->header = (struct leat_catalogue_header){.magic = LEAT_CATALOGUE_MAGIC,
                                                 .version = LEAT_CATALOGUE_VERSION,
                                                 .row_bytes = LEAT_ROW_BYTES};
    memcpy(cat->header.cluster_id, cluster_id, sizeof cat->header.cluster_id);
    for (int i = 0; i < 2; i++)
        leat_put_le64(cat->header.store_id + i * 8, env->random->next(env->random->ctx));
    rc = disk->truncate(disk->ctx, file, 0);
    if (!rc) rc = disk->allocate(disk->ctx, file, LEAT_BLOCK_BYTES);
    if (!rc) rc = header_write(cat, file);
    disk->close(disk->ctx, file);
    if (!rc) rc = disk->rename(disk->ctx, "catalogue.new", "catalogue");
    if (!rc) rc = disk->sync_dir(disk->ctx, ".");
    if (rc) return leat_error_set(error, rc, "cannot make the catalogue: %s", leat_err_text(rc));
    return LEAT_OK;
}

static leat_err header_check(struct leat_catalogue *cat, size_t bytes, const uint8_t cluster_id[16],
                             struct leat_error *error)
{
    struct leat_catalogue_header *header = &cat->header;
    memcpy(header, cat->header_block, sizeof *header);
    if (bytes < LEAT_BLOCK_BYTES || header->magic != LEAT_CATALOGUE_MAGIC)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the file 'catalogue' does not begin with a catalogue's header; "
                              "restore it, nothing was changed");
    uint32_t crc = leat_crc32c(0, (const uint8_t *)header + sizeof header->crc,
                               sizeof *header - sizeof header->crc);
    if (header->version != LEAT_CATALOGUE_VERSION)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "the file 'catalogue' has format version %u, this program knows %u",
                              header->version, (unsigned)LEAT_CATALOGUE_VERSION);
    if (crc != header->crc || header->row_bytes != LEAT_ROW_BYTES)
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "the header of the file 'catalogue' is damaged (checksum mismatch); "
                              "restore it, nothing was changed");
    static const uint8_t none[16];
    if (memcmp(header->cluster_id, cluster_id, sizeof header->cluster_id) != 0 &&
        memcmp(header->cluster_id, none, sizeof none) != 0)
        return leat_error_set(
            error, LEAT_E_WRONG_CLUSTER,
            "the file 'catalogue' belongs to another cluster; nothing was changed");
    return LEAT_OK;
}

leat_err leat_catalogue_cluster_set(struct leat_catalogue *cat, const uint8_t cluster_id[16],
                                    struct leat_error *error)
{
    static const uint8_t none[16];
    struct leat_catalogue_header *header = &cat->header;
    if (memcmp(header->cluster_id, cluster_id, sizeof header->cluster_id) == 0) return LEAT_OK;
    if (memcmp(header->cluster_id, none, sizeof none) != 0)
        return leat_error_set(
            error, LEAT_E_WRONG_CLUSTER,
            "the file 'catalogue' belongs to another cluster; nothing was changed");
    memcpy(header->cluster_id, cluster_id, sizeof header->cluster_id);
    leat_err rc = header_write(cat, cat->file); /* within one sector: old or new */
    if (rc)
        return leat_error_set(error, rc, "cannot write the catalogue's header: %s",
                              leat_err_text(rc));
    return LEAT_OK;
}

static leat_err chunk_add(struct leat_catalogue *cat)
{
    LEAT_ASSERT_CMP(cat->chunk_count, <, LEAT_STORE_CHUNKS_MAX);
    struct leat_row_chunk *chunk = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *chunk);
    if (!chunk) return LEAT_E_NO_MEMORY;
    cat->chunks[cat->chunk_count++] = chunk;
    return LEAT_OK;
}

/* Rows that the header promises and the file no longer has. */
static uint64_t missing_rows(const struct leat_catalogue *cat, uint64_t bytes)
{
    uint64_t have = bytes < LEAT_BLOCK_BYTES ? 0 : (bytes - LEAT_BLOCK_BYTES) / LEAT_ROW_BYTES;
    return cat->header.row_count > have ? cat->header.row_count - have : 0;
}

/* SUBTLE: no more than what the header says and one chunk, which a crash leaves between making space and saying so.
 * (1) A file has been copied or restored with a length that is not its own, of nothing but a hole. (2) Every row of
 * it would be read, and kept: a GiB of memory, whatever the budget. */
static leat_err length_check(const struct leat_catalogue *cat, uint64_t bytes,
                             struct leat_error *error)
{
    uint64_t most = LEAT_STORE_CHUNKS_MAX * (uint64_t)LEAT_STORE_ROWS_PER_CHUNK;
    uint64_t rows = cat->header.row_count < most ? cat->header.row_count : most;
    if (bytes <= LEAT_BLOCK_BYTES + rows * LEAT_ROW_BYTES + CHUNK_BYTES &&
        bytes <= LEAT_BLOCK_BYTES + most * LEAT_ROW_BYTES)
        return LEAT_OK;
    return leat_error_set(error, LEAT_E_DAMAGED,
                          "the file 'catalogue' has %llu bytes, and by its header %llu rows of %d "
                          "bytes: longer than it can be; restore it, nothing was changed",
                          (unsigned long long)bytes, (unsigned long long)cat->header.row_count,
                          (int)LEAT_ROW_BYTES);
}

static leat_err rows_read(struct leat_catalogue *cat, uint64_t bytes, leat_complain_fn complain,
                          void *arg, uint64_t *out_bad)
{
    uint64_t bad = missing_rows(cat, bytes);
    char line[LEAT_STORE_COMPLAINT_BYTES];
    if (bad) {
        snprintf(line, sizeof line,
                 "the file 'catalogue' is truncated: %llu of %llu rows are missing",
                 (unsigned long long)bad, (unsigned long long)cat->header.row_count);
        complain(arg, line);
    }
    uint64_t chunks = (bytes - LEAT_BLOCK_BYTES + CHUNK_BYTES - 1) / CHUNK_BYTES;
    for (uint64_t i = 0; i < chunks; i++) {
        leat_err rc = chunk_add(cat);
        if (rc) return rc;
        struct leat_row_chunk *chunk = cat->chunks[i];
        size_t done = 0;
        rc = run(cat, cat->file, LEAT_DISK_READ, LEAT_BLOCK_BYTES + i * CHUNK_BYTES, cat->staging,
                 CHUNK_BYTES, &done);
        if (rc) return rc;
        /* What lies past the end of the file is zeros. */
        memcpy(chunk->rows, cat->staging, LEAT_ALIGN_DOWN(done, (size_t)LEAT_ROW_BYTES));
        for (uint32_t j = 0; j < LEAT_STORE_ROWS_PER_CHUNK; j++) {
            uint32_t number = (uint32_t)i * LEAT_STORE_ROWS_PER_CHUNK + j;
            if (leat_row_valid(&chunk->rows[j], number)) continue;
            bad++;
            snprintf(line, sizeof line,
                     "row %u of the file 'catalogue' is damaged: its segment is "
                     "not known any more",
                     number);
            complain(arg, line);
        }
    }
    cat->rows_in_file = (uint32_t)((bytes - LEAT_BLOCK_BYTES) / LEAT_ROW_BYTES);
    *out_bad = bad;
    return LEAT_OK;
}

/* SUBTLE: the header has the new row count before a row is written in a new chunk.
 *  1. A crash leaves a chunk that the header does not count. Its rows are free, and are used.
 *  2. The next crash while the file grows leaves a second such chunk.
 *  3. length_check() refuses a file that is more than one chunk longer than its header says: this catalogue, with all
 *     its segments. */
static leat_err rows_promise(struct leat_catalogue *cat, struct leat_error *error)
{
    if (cat->rows_in_file <= cat->header.row_count) return LEAT_OK;
    cat->header.row_count = cat->rows_in_file;
    leat_err rc = run(cat, cat->file, LEAT_DISK_SYNC, 0, NULL, 0, NULL); /* its length, first */
    if (rc == LEAT_OK) rc = header_write(cat, cat->file);
    if (rc == LEAT_OK) return LEAT_OK;
    return leat_error_set(error, rc, "cannot write the catalogue's header: %s", leat_err_text(rc));
}

leat_err leat_catalogue_open(struct leat_catalogue *cat, const struct leat_env *env,
                             const uint8_t cluster_id[16], bool store_files_exist,
                             leat_complain_fn complain, void *arg, uint64_t *out_bad_rows,
                             struct leat_error *error)
{
    const struct leat_disk *disk = cat->disk;
    leat_err rc = disk->open(disk->ctx, "catalogue", LEAT_OPEN_DIRECT, &cat->file, error);
    if (rc == LEAT_E_NOT_FOUND) {
        if (store_files_exist)
            return leat_error_set(error, LEAT_E_DAMAGED,
                                  "the directory 'store' has data but the file 'catalogue' is "
                                  "missing; restore it, nothing was changed");
        rc = file_make(cat, env, cluster_id, error);
        if (!rc) rc = disk->open(disk->ctx, "catalogue", LEAT_OPEN_DIRECT, &cat->file, error);
    }
    if (rc) return rc;
    uint64_t bytes = 0;
    size_t done = 0;
    rc = disk->size(disk->ctx, cat->file, &bytes);
    if (!rc)
        rc = run(cat, cat->file, LEAT_DISK_READ, 0, cat->header_block, LEAT_BLOCK_BYTES, &done);
    if (rc) return leat_error_set(error, rc, "cannot read the catalogue: %s", leat_err_text(rc));
    rc = header_check(cat, done, cluster_id, error);
    if (!rc) rc = length_check(cat, bytes, error);
    if (!rc) rc = leat_catalogue_cluster_set(cat, cluster_id, error);
    if (rc) return rc;
    rc = rows_read(cat, bytes, complain, arg, out_bad_rows);
    if (rc) return leat_error_set(error, rc, "cannot read the catalogue: %s", leat_err_text(rc));
    return rows_promise(cat, error);
}

/* One chunk more: space first, so that a row's write cannot meet a full disk; then the header, so
 * that a file cut short is noticed. */
static leat_err grow(struct leat_catalogue *cat)
{
    if (cat->chunk_count == LEAT_STORE_CHUNKS_MAX) return LEAT_E_TOO_MANY;
    uint64_t bytes = leat_catalogue_bytes(cat) + CHUNK_BYTES;
    leat_err rc = cat->disk->allocate(cat->disk->ctx, cat->file, bytes);
    if (rc) return rc;
    rc = chunk_add(cat);
    if (rc) return rc;
    cat->header.row_count = (uint64_t)cat->chunk_count * LEAT_STORE_ROWS_PER_CHUNK;
    rc = header_write(cat, cat->file);
    if (rc) {
        cat->failed = true;
        return LEAT_E_DISK;
    }
    memset(cat->chunks[cat->chunk_count - 1]->free, 0xff,
           sizeof cat->chunks[cat->chunk_count - 1]->free);
    return LEAT_OK;
}

leat_err leat_catalogue_take(struct leat_catalogue *cat, uint32_t *out_row)
{
    for (;;) {
        for (uint32_t i = cat->free_hint; i < cat->chunk_count; i++) {
            struct leat_row_chunk *chunk = cat->chunks[i];
            for (uint32_t j = 0; j < LEAT_STORE_ROWS_PER_CHUNK / 64; j++) {
                if (!chunk->free[j]) continue;
                uint32_t bit = (uint32_t)__builtin_ctzll(chunk->free[j]);
                chunk->free[j] &= chunk->free[j] - 1;
                cat->free_hint = i;
                cat->held_count++;
                *out_row = i * LEAT_STORE_ROWS_PER_CHUNK + j * 64 + bit;
                return LEAT_OK;
            }
        }
        cat->free_hint = cat->chunk_count;
        leat_err rc = grow(cat);
        if (rc) return rc;
    }
}

void leat_catalogue_give(struct leat_catalogue *cat, uint32_t row)
{
    uint32_t in_chunk = row % LEAT_STORE_ROWS_PER_CHUNK;
    struct leat_row_chunk *chunk = cat->chunks[row / LEAT_STORE_ROWS_PER_CHUNK];
    LEAT_ASSERT(!(chunk->free[in_chunk / 64] >> (in_chunk % 64) & 1));
    LEAT_ASSERT_CMP(chunk->rows[in_chunk].state, ==, LEAT_SEGMENT_FREE);
    chunk->free[in_chunk / 64] |= UINT64_C(1) << (in_chunk % 64);
    chunk->held[in_chunk] = NULL;
    if (row / LEAT_STORE_ROWS_PER_CHUNK < cat->free_hint)
        cat->free_hint = row / LEAT_STORE_ROWS_PER_CHUNK;
    cat->held_count--;
}

/* ---- rounds ---- */
static bool join_block(struct leat_catalogue *cat, uint32_t block)
{
    struct leat_row_chunk *chunk = cat->chunks[block / 32];
    uint32_t bit = UINT32_C(1) << (block % 32);
    if (chunk->in_round & bit) return true;
    if (cat->block_count == LEAT_STORE_ROUND_BLOCKS_MAX) return false;
    chunk->in_round |= bit;
    cat->blocks[cat->block_count++] = block;
    return true;
}

bool leat_catalogue_join(struct leat_catalogue *cat, uint32_t row)
{
    return join_block(cat, row / LEAT_ROWS_PER_BLOCK);
}

void leat_catalogue_join_lazily(struct leat_catalogue *cat, uint32_t row)
{
    uint32_t block = row / LEAT_ROWS_PER_BLOCK;
    for (uint32_t i = 0; i < cat->lazy_count; i++)
        if (cat->lazy[i] == block) return;
    /* When the list is full the row goes with its block's next write, some time later. */
    if (cat->lazy_count < LEAT_STORE_LAZY_BLOCKS_MAX) cat->lazy[cat->lazy_count++] = block;
}

unsigned leat_catalogue_submit(struct leat_catalogue *cat, bool beside,
                               void (*on_done)(struct leat_disk_io *), void *owner)
{
    struct leat_disk_io *before = NULL;
    if (cat->block_count || cat->sync_wanted) {
        while (cat->lazy_count && join_block(cat, cat->lazy[cat->lazy_count - 1]))
            cat->lazy_count--;
    }
    for (uint32_t i = 0; i < cat->block_count; i++) {
        uint32_t block = cat->blocks[i];
        uint8_t *copy = cat->staging + (size_t)i * LEAT_BLOCK_BYTES;
        memcpy(copy, &cat->chunks[block / 32]->rows[block % 32 * LEAT_ROWS_PER_BLOCK],
               LEAT_BLOCK_BYTES);
        cat->ios[i] = (struct leat_disk_io){
            .kind = LEAT_DISK_WRITE,
            .file = cat->file,
            .offset = LEAT_BLOCK_BYTES + (uint64_t)block * LEAT_BLOCK_BYTES,
            .buffer = copy,
            .bytes = LEAT_BLOCK_BYTES,
            .on_done = on_done,
            .owner = owner,
            .beside = beside,
        };
        leat_disk_append(cat->disk, &before, &cat->ios[i]);
    }
    if (cat->sync_wanted) {
        cat->sync = (struct leat_disk_io){.kind = LEAT_DISK_SYNC,
                                          .file = cat->file,
                                          .on_done = on_done,
                                          .owner = owner,
                                          .beside = beside};
        leat_disk_append(cat->disk, &before, &cat->sync);
    }
    if (beside && cat->block_count + cat->sync_wanted > 0)
        cat->disk->submit(cat->disk->ctx, cat->block_count ? &cat->ios[0] : &cat->sync);
    return cat->block_count + cat->sync_wanted;
}

void leat_catalogue_round_end(struct leat_catalogue *cat)
{
    for (uint32_t i = 0; i < cat->block_count; i++) {
        if (cat->ios[i].rc) cat->failed = true;
        cat->chunks[cat->blocks[i] / 32]->in_round = 0;
    }
    if (cat->sync_wanted && cat->sync.rc) cat->failed = true;
    cat->block_count = 0;
    cat->sync_wanted = false;
}

/* ---- blocking: open and cut ---- */
void leat_catalogue_changed(struct leat_catalogue *cat, uint32_t row)
{
    uint32_t block = row / LEAT_ROWS_PER_BLOCK;
    cat->chunks[block / 32]->changed |= UINT64_C(1) << (block % 32);
}

leat_err leat_catalogue_write_changed(struct leat_catalogue *cat)
{
    for (uint32_t i = 0; i < cat->chunk_count; i++) {
        struct leat_row_chunk *chunk = cat->chunks[i];
        for (uint32_t block = 0; block < 32; block++) {
            if (!(chunk->changed >> block & 1)) continue;
            memcpy(cat->header_block, &chunk->rows[block * LEAT_ROWS_PER_BLOCK], LEAT_BLOCK_BYTES);
            leat_err rc = run(cat, cat->file, LEAT_DISK_WRITE,
                              LEAT_BLOCK_BYTES + (uint64_t)(i * 32 + block) * LEAT_BLOCK_BYTES,
                              cat->header_block, LEAT_BLOCK_BYTES, NULL);
            if (rc) {
                cat->failed = true;
                return rc;
            }
            chunk->changed &= ~(UINT64_C(1) << block);
        }
    }
    leat_err rc = run(cat, cat->file, LEAT_DISK_SYNC, 0, NULL, 0, NULL);
    if (rc) cat->failed = true;
    return rc;
}
