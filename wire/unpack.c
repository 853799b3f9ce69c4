/* SPDX-License-Identifier: Apache-2.0 */
/* Uncompressing piece by piece, into memory that was taken at the start: each piece is checked and overwritten.
 *
 * All errors that a consumer would find are refused: checksums inside the compressed bytes are compared, too. The
 * batch's CRC covers these checksums, but the producer of the batch computed this CRC. */
#define ZSTD_STATIC_LINKING_ONLY /* decoding in memory of our own; Debian's library has it */
#include "wire/unpack.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "wire/check.h"
#include "wire/codec.h"
#include "wire/xxh32.h"

#include <inttypes.h>
#include <lz4.h>
#include <zstd.h>
#include <zstd_errors.h>
#ifdef LEAT_HAVE_ZLIB
#include <zlib.h>
#endif

enum {
    PIECE_BYTES = 128 * 1024, /* at most, of what a codec hands on at once where it may choose */
    ZSTD_WINDOW_LOG = 23,
    SEEK_PIECE_BYTES =
        32 * 1024, /* of a look-up, for which appends wait: 0.1 to 0.2 ms with gzip */
    UNPACKER_ALIGN = 64,
};
_Static_assert(1 << ZSTD_WINDOW_LOG == LEAT_UNPACK_WINDOW_BYTES, "one limit");

/* zlib asks twice, for its state and for its window. */
struct zlib_memory {
    uint8_t *at;
    size_t left;
};

struct leat_unpacker {
    uint8_t *memory; /* [bytes], aligned; all of it whichever codec's turn it is */
    size_t bytes;
    void *block;
    /* Of the check under way. */
    struct leat_record_check check;
    const char *wrong; /* of a record */
    size_t made, made_max;
    uint32_t piece_bytes; /* at most PIECE_BYTES */
    size_t pause_at;      /* so much is made when this step ends */
    size_t taken;         /* of the compressed bytes; 0: the codec has not begun */
#ifdef LEAT_HAVE_ZLIB
    z_stream gzip;
    struct zlib_memory gzip_memory;
#endif
    ZSTD_DStream *zstd; /* in `memory`; NULL: another codec has used that since */
    struct leat_lz4_frame lz4;
    struct leat_xxh32 lz4_content;
};

struct leat_unpacker *leat_unpacker_create(size_t bytes)
{
    LEAT_ASSERT_CMP(bytes, >, PIECE_BYTES);
    struct leat_unpacker *unpacker = leat_mem_calloc(LEAT_MEM_WIRE, 1, sizeof *unpacker);
    void *block = leat_mem_calloc(LEAT_MEM_WIRE, bytes + UNPACKER_ALIGN, 1);
    if (unpacker == NULL || block == NULL) {
        leat_mem_free(unpacker);
        leat_mem_free(block);
        return NULL;
    }
    unpacker->block = block;
    unpacker->bytes = bytes;
    unpacker->memory = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)block, (uintptr_t)UNPACKER_ALIGN);
    return unpacker;
}

void leat_unpacker_destroy(struct leat_unpacker *unpacker)
{
    if (unpacker == NULL) return;
    leat_mem_free(unpacker->block);
    leat_mem_free(unpacker);
}

/* Between two pieces: others come first. */
static bool pauses(const struct leat_unpacker *unpacker)
{
    return unpacker->made >= unpacker->pause_at;
}

/* A piece. LEAT_E_INVALID: a record in it is wrong. */
static leat_err piece_take(struct leat_unpacker *unpacker, const uint8_t *piece, size_t bytes)
{
    unpacker->made += bytes;
    if (unpacker->made > unpacker->made_max) return LEAT_E_TOO_LARGE;
    unpacker->wrong = leat_record_check_feed(&unpacker->check, piece, bytes);
    return unpacker->wrong == NULL ? LEAT_OK : LEAT_E_INVALID;
}

/* One member of gzip, or one frame of zstd, and nothing after.
 *
 * SUBTLE: clients differ in what follows. (1) A batch's records lie in two members. (2) Java's client reads both,
 * librdkafka the first, kafka-python the first frame. (3) The batch is acknowledged, and some readers silently skip
 * half of its records. No client writes such batches. */

/* ---- gzip ---- */

#ifdef LEAT_HAVE_ZLIB
static void *zlib_take(void *ctx, unsigned count, unsigned bytes)
{
    struct zlib_memory *memory = ctx;
    size_t wanted = LEAT_ALIGN_UP((size_t)count * bytes, (size_t)16);
    if (wanted > memory->left) return NULL;
    void *taken = memory->at;
    memory->at += wanted;
    memory->left -= wanted;
    return taken;
}

static void zlib_give(void *ctx, void *memory)
{
    (void)ctx;
    (void)memory;
}

static leat_err gzip_unpack(struct leat_unpacker *unpacker, const uint8_t *in, size_t in_bytes)
{
    enum { WINDOW_BITS_GZIP = 15 + 16 };
    z_stream *stream = &unpacker->gzip;
    if (unpacker->taken == 0) {
        unpacker->gzip_memory =
            (struct zlib_memory){unpacker->memory + PIECE_BYTES, unpacker->bytes - PIECE_BYTES};
        *stream =
            (z_stream){.zalloc = zlib_take, .zfree = zlib_give, .opaque = &unpacker->gzip_memory};
        if (inflateInit2(stream, WINDOW_BITS_GZIP) != Z_OK) return LEAT_E_INTERNAL;
    }
    /* Not written; zlib's interface is older than const. */
    stream->next_in = (Bytef *)(uintptr_t)in + unpacker->taken;
    stream->avail_in = (uInt)(in_bytes - unpacker->taken);
    for (;;) {
        stream->next_out = unpacker->memory;
        stream->avail_out = unpacker->piece_bytes;
        int said = inflate(stream, Z_NO_FLUSH);
        leat_err rc =
            piece_take(unpacker, unpacker->memory, unpacker->piece_bytes - stream->avail_out);
        if (rc != LEAT_OK) return rc;
        if (said == Z_STREAM_END) return stream->avail_in == 0 ? LEAT_OK : LEAT_E_CORRUPT;
        /* Without room for output the result would have been OK: so input is missing. */
        if (said != Z_OK) return LEAT_E_CORRUPT;
        unpacker->taken = in_bytes - stream->avail_in;
        if (pauses(unpacker)) return LEAT_E_AGAIN;
    }
}
#else
static leat_err gzip_unpack(struct leat_unpacker *unpacker, const uint8_t *in, size_t in_bytes)
{
    (void)unpacker;
    (void)in;
    (void)in_bytes;
    return LEAT_E_UNSUPPORTED;
}
#endif

/* ---- snappy ---- */

static leat_err snappy_block_unpack(struct leat_unpacker *unpacker, const uint8_t *in,
                                    size_t in_bytes)
{
    size_t room = unpacker->made_max - unpacker->made, made;
    if (room > LEAT_UNPACK_WINDOW_BYTES) room = LEAT_UNPACK_WINDOW_BYTES;
    leat_err rc = leat_snappy_block_uncompress(in, in_bytes, unpacker->memory, room, &made);
    return rc == LEAT_OK ? piece_take(unpacker, unpacker->memory, made) : rc;
}

static leat_err snappy_unpack(struct leat_unpacker *unpacker, const uint8_t *in, size_t in_bytes)
{
    size_t head = leat_snappy_frame_bytes(in, in_bytes);
    if (head == 0) {
        if (unpacker->made_max > LEAT_UNPACK_WINDOW_BYTES)
            unpacker->made_max = LEAT_UNPACK_WINDOW_BYTES;
        return snappy_block_unpack(unpacker, in, in_bytes);
    }
    if ((int32_t)leat_get_be32(in + LEAT_SNAPPY_VERSION_AT) < 1) return LEAT_E_CORRUPT;
    if (unpacker->taken == 0) unpacker->taken = head;
    while (unpacker->taken < in_bytes) {
        const uint8_t *at = in + unpacker->taken;
        size_t left = in_bytes - unpacker->taken;
        if (pauses(unpacker)) return LEAT_E_AGAIN;
        if (left < 4 || leat_get_be32(at) > left - 4) return LEAT_E_CORRUPT;
        leat_err rc = snappy_block_unpack(unpacker, at + 4, leat_get_be32(at));
        if (rc != LEAT_OK) return rc;
        unpacker->taken += 4 + leat_get_be32(at);
    }
    return LEAT_OK;
}

/* ---- lz4 ---- */

/* Dependent blocks are refused, as in Kafka, since Kafka's Java clients can't read them. */
static leat_err lz4_unpack(struct leat_unpacker *unpacker, const uint8_t *in, size_t in_bytes)
{
    const uint8_t *end = in + in_bytes, *first = in;
    struct leat_xxh32 *content = &unpacker->lz4_content;
    if (unpacker->taken == 0) {
        in = leat_lz4_frame_read(in, end, &unpacker->lz4);
        if (in == NULL || !unpacker->lz4.sum_is_right || !unpacker->lz4.independent)
            return LEAT_E_CORRUPT;
        leat_xxh32_init(content);
        unpacker->taken = (size_t)(in - first);
    }
    const struct leat_lz4_frame frame = unpacker->lz4;
    ptrdiff_t sum_bytes = frame.block_sums ? 4 : 0;
    for (in = first + unpacker->taken;; unpacker->taken = (size_t)(in - first)) {
        if (pauses(unpacker)) return LEAT_E_AGAIN;
        if (end - in < 4) return LEAT_E_CORRUPT;
        uint32_t head = leat_get_le32(in), bytes = head & ~LEAT_LZ4_BLOCK_STORED;
        in += 4;
        if (head == 0) break;
        if (bytes > frame.block_bytes_max || (ptrdiff_t)bytes + sum_bytes > end - in)
            return LEAT_E_CORRUPT;
        if (sum_bytes != 0 && leat_xxh32(in, bytes) != leat_get_le32(in + bytes))
            return LEAT_E_CORRUPT;
        const uint8_t *out = in;
        int made = (int)bytes;
        if (head == bytes) {
            out = unpacker->memory;
            made = LZ4_decompress_safe((const char *)in, (char *)unpacker->memory, (int)bytes,
                                       (int)frame.block_bytes_max);
        }
        if (made < 0) return LEAT_E_CORRUPT;
        if (frame.content_sum) leat_xxh32_add(content, out, (size_t)made);
        leat_err rc = piece_take(unpacker, out, (size_t)made);
        if (rc != LEAT_OK) return rc;
        in += (ptrdiff_t)bytes + sum_bytes;
    }
    if (end - in != (frame.content_sum ? 4 : 0)) return LEAT_E_CORRUPT;
    if (frame.content_sum && leat_xxh32_end(content) != leat_get_le32(in)) return LEAT_E_CORRUPT;
    if (frame.sized && frame.content_bytes != unpacker->made) return LEAT_E_CORRUPT;
    return LEAT_OK;
}

/* ---- zstd ---- */

/* The context is kept from batch to batch: making one asks the processor for its features (cpuid) twice, and in a
 * virtual machine each time the hypervisor answers. */
static bool zstd_begin(struct leat_unpacker *unpacker)
{
    if (unpacker->zstd != NULL)
        return !ZSTD_isError(ZSTD_DCtx_reset(unpacker->zstd, ZSTD_reset_session_only));
    ZSTD_DStream *made =
        ZSTD_initStaticDStream(unpacker->memory + PIECE_BYTES, unpacker->bytes - PIECE_BYTES);
    if (made == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(made, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
        return false;
    unpacker->zstd = made;
    return true;
}

static leat_err zstd_unpack(struct leat_unpacker *unpacker, const uint8_t *in, size_t in_bytes)
{
    if (unpacker->taken == 0 && !zstd_begin(unpacker)) return LEAT_E_INTERNAL;
    ZSTD_inBuffer from = {in, in_bytes, unpacker->taken};
    for (;;) {
        ZSTD_DStream *stream = unpacker->zstd;
        ZSTD_outBuffer to = {unpacker->memory, unpacker->piece_bytes, 0};
        size_t said = ZSTD_decompressStream(stream, &to, &from);
        if (ZSTD_isError(said)) {
            ZSTD_ErrorCode why = ZSTD_getErrorCode(said);
            bool large = why == ZSTD_error_frameParameter_windowTooLarge ||
                         why == ZSTD_error_memory_allocation;
            return large ? LEAT_E_UNSUPPORTED : LEAT_E_CORRUPT;
        }
        leat_err rc = piece_take(unpacker, unpacker->memory, to.pos);
        if (rc != LEAT_OK) return rc;
        if (said == 0) return from.pos == from.size ? LEAT_OK : LEAT_E_CORRUPT;
        if (from.pos == from.size && to.pos < to.size) return LEAT_E_CORRUPT;
        unpacker->taken = from.pos;
        if (pauses(unpacker)) return LEAT_E_AGAIN;
    }
}

/* ---- whole ---- */

static leat_err unpack(struct leat_unpacker *unpacker, const struct leat_batch *batch)
{
    const uint8_t *in = batch->bytes + LEAT_BATCH_HEADER_BYTES;
    size_t bytes = batch->byte_count - LEAT_BATCH_HEADER_BYTES;
    switch (batch->codec) {
    case LEAT_CODEC_GZIP:
        return gzip_unpack(unpacker, in, bytes);
    case LEAT_CODEC_SNAPPY:
        return snappy_unpack(unpacker, in, bytes);
    case LEAT_CODEC_LZ4:
        return lz4_unpack(unpacker, in, bytes);
    case LEAT_CODEC_ZSTD:
        return zstd_unpack(unpacker, in, bytes);
    default:
        return LEAT_E_INTERNAL;
    }
}

static const char *codec_name(enum leat_codec codec)
{
    static const char *const names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    return names[codec];
}

static leat_err refuse(const struct leat_unpacker *unpacker, const struct leat_batch *batch,
                       leat_err rc, struct leat_error *error)
{
    const char *codec = codec_name(batch->codec);
    uint32_t place = batch->record_count - unpacker->check.left;
    switch (rc) {
    case LEAT_E_TOO_LARGE:
        return leat_error_set(error, rc,
                              "a batch of %" PRIu32 " bytes that %s uncompresses to more than %zu",
                              batch->byte_count, codec, unpacker->made_max);
    case LEAT_E_UNSUPPORTED:
        return leat_error_set(error, rc,
                              batch->codec == LEAT_CODEC_GZIP
                                  ? "this server was built without gzip"
                                  : "a zstd window of more than 8 MiB: use a level of 19 or less");
    case LEAT_E_INVALID:
        return leat_error_set(error, rc, "record %" PRIu32 " of %" PRIu32 ", %s: %s", place,
                              batch->record_count, codec, unpacker->wrong);
    case LEAT_E_CORRUPT:
        return leat_error_set(error, LEAT_E_INVALID, "the records are not what %s writes", codec);
    default:
        return leat_error_set(error, rc, "%s", leat_err_text(rc));
    }
}

void leat_unpacker_begin(struct leat_unpacker *unpacker, const struct leat_batch *batch)
{
    LEAT_ASSERT(batch->codec != LEAT_CODEC_NONE);
    uint64_t most = (uint64_t)batch->byte_count * LEAT_UNPACKED_PER_BYTE + LEAT_UNPACKED_BYTES_MIN;
    unpacker->made = unpacker->taken = 0;
    if (batch->codec != LEAT_CODEC_ZSTD) unpacker->zstd = NULL;
    unpacker->piece_bytes = PIECE_BYTES;
    unpacker->made_max = most < LEAT_UNPACKED_BYTES_MAX ? most : LEAT_UNPACKED_BYTES_MAX;
    unpacker->wrong = NULL;
    leat_record_check_init(&unpacker->check, batch);
}

leat_err leat_unpacker_step(struct leat_unpacker *unpacker, struct leat_batch *batch, size_t most,
                            size_t *out_bytes, struct leat_error *error)
{
    size_t before = unpacker->made;
    unpacker->pause_at = most < SIZE_MAX - before ? before + most : SIZE_MAX;
    leat_err rc = unpack(unpacker, batch);
    *out_bytes = unpacker->made - before;
    if (rc == LEAT_E_AGAIN) return rc;
    if (rc == LEAT_OK) {
        unpacker->wrong = leat_record_check_end(&unpacker->check);
        if (unpacker->wrong != NULL) rc = LEAT_E_INVALID;
    }
    if (rc != LEAT_OK) return refuse(unpacker, batch, rc, error);
    if (unpacker->check.delta_mask != 0) batch->max_timestamp_ms = unpacker->check.max_timestamp_ms;
    return LEAT_OK;
}

leat_err leat_unpacker_check(struct leat_unpacker *unpacker, struct leat_batch *batch,
                             size_t *out_bytes, struct leat_error *error)
{
    leat_unpacker_begin(unpacker, batch);
    return leat_unpacker_step(unpacker, batch, SIZE_MAX, out_bytes, error);
}

void leat_unpacker_seek_begin(struct leat_unpacker *unpacker, const struct leat_batch *batch,
                              int64_t time_ms, uint32_t from, size_t made_max)
{
    leat_unpacker_begin(unpacker, batch);
    if (unpacker->made_max > made_max) unpacker->made_max = made_max;
    unpacker->piece_bytes = SEEK_PIECE_BYTES;
    unpacker->check.seeks = true;
    unpacker->check.sought_ms = time_ms;
    unpacker->check.sought_from = from;
}

_Thread_local uint64_t leat_unpack_sought;

leat_err leat_unpacker_seek_step(struct leat_unpacker *unpacker, const struct leat_batch *batch,
                                 size_t most, uint32_t *out_delta, int64_t *out_ms)
{
    struct leat_batch whole = *batch;
    size_t bytes;
    leat_err rc = leat_unpacker_step(unpacker, &whole, most, &bytes, NULL);
    leat_unpack_sought += bytes;
    if (unpacker->check.found) {
        *out_delta = unpacker->check.found_at;
        *out_ms = unpacker->check.found_ms;
        return LEAT_OK;
    }
    return rc == LEAT_E_AGAIN ? rc : LEAT_E_NOT_FOUND;
}
