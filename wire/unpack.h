/* SPDX-License-Identifier: Apache-2.0 */
/* Checking the records of compressed batches: they are uncompressed piece by piece, and no piece is kept. */
#ifndef LEAT_WIRE_UNPACK_H
#define LEAT_WIRE_UNPACK_H

#include "wire/batch.h"

enum {
    /* A batch uncompresses to so many bytes for each of its own, and some to begin with: enough for any codec and
     * realistic records; and never to more than the limit. */
    LEAT_UNPACKED_PER_BYTE = 1024,
    LEAT_UNPACKED_BYTES_MIN = 4 * 1024 * 1024,
    LEAT_UNPACKED_BYTES_MAX = 16 * 1024 * 1024,
    /* zstd: what a frame may refer back to, as RFC 8878 recommends; levels beyond 19 want more. snappy: of a block. */
    LEAT_UNPACK_WINDOW_BYTES = 8 * 1024 * 1024,
    /* What an unpacker takes at most. Memory that no batch needs is not touched. */
    LEAT_UNPACKER_BYTES = 8832 * 1024,
    LEAT_UNPACKER_GZIP_BYTES = 256 * 1024, /* enough for gzip */
};

/* Memory for one check at a time. */
struct leat_unpacker;

/** bytes: LEAT_UNPACKER_BYTES, or what is enough for the codec. NULL: no memory. It allocates nothing later. */
struct leat_unpacker *leat_unpacker_create(size_t bytes);
void leat_unpacker_destroy(struct leat_unpacker *unpacker);

/**
 * The same as leat_unpacker_check(), in steps, so that other work comes in between: each step ends between two
 * uncompressed pieces, when the pieces of this step have `most` bytes or more. A piece has 128 KiB, of lz4 a block (4
 * MiB at most), of snappy one (8 MiB).
 *
 * batch  The same bytes each time, possibly at another address.
 * LEAT_E_AGAIN: more is to come. An unfinished check may simply be replaced by another: there is nothing to free.
 */
void leat_unpacker_begin(struct leat_unpacker *unpacker, const struct leat_batch *batch);
leat_err leat_unpacker_step(struct leat_unpacker *unpacker, struct leat_batch *batch, size_t most,
                            size_t *out_bytes, struct leat_error *error) LEAT_NODISCARD;

/**
 * Check the records of a compressed batch as leat_batch_check() checks uncompressed records.
 *
 * batch      Checked by leat_batch_check(). Its highest timestamp is set from its records.
 * out_bytes  The number of uncompressed bytes, also on an error: the cost of the check.
 * error      May be NULL.
 * Errors: LEAT_E_INVALID, whatever is wrong with the bytes; LEAT_E_TOO_LARGE: more than the limits above;
 * LEAT_E_UNSUPPORTED: a zstd window of more than the limit; gzip, when built without zlib.
 * Thread: any, one at a time for an unpacker.  Blocks: never.  Allocates: never.
 */
leat_err leat_unpacker_check(struct leat_unpacker *unpacker, struct leat_batch *batch,
                             size_t *out_bytes, struct leat_error *error) LEAT_NODISCARD;

/**
 * Look for a compressed batch's first record that is not older than a time, from an offset delta on: in the same
 * steps, but in pieces of 32 KiB, in at most the first made_max bytes.
 *
 * LEAT_OK: found. LEAT_E_AGAIN: more is to come. LEAT_E_NOT_FOUND: none, or what follows can't be read.
 */
void leat_unpacker_seek_begin(struct leat_unpacker *unpacker, const struct leat_batch *batch,
                              int64_t time_ms, uint32_t from, size_t made_max);
leat_err leat_unpacker_seek_step(struct leat_unpacker *unpacker, const struct leat_batch *batch,
                                 size_t most, uint32_t *out_delta, int64_t *out_ms) LEAT_NODISCARD;

/** Tests: bytes that this thread has uncompressed to look for times. */
extern _Thread_local uint64_t leat_unpack_sought;

#endif
