/* SPDX-License-Identifier: Apache-2.0 */
/* Compressing and uncompressing the records section: lz4 frames and zstd frames, as Kafka's clients
 * write them in batches of magic 2.
 *
 * The lz4 frame around the blocks is written and read here, not by lz4's frame functions: these want room for the
 * worst case even when the result is small, and allocate for each frame. Reading ignores the frame's own checksums:
 * the batch's CRC covers every byte of the frame. */
#include "wire/batch.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/codec.h"
#include "wire/xxh32.h"

#include <lz4.h>
#include <lz4hc.h>
#include <stdatomic.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    LZ4_MAGIC = 0x184d2204,
    LZ4_FLAG_DICTIONARY = 0x01,
    LZ4_FLAG_CONTENT_CHECKSUM = 0x04,
    LZ4_FLAG_CONTENT_SIZE = 0x08,
    LZ4_FLAG_BLOCK_CHECKSUM = 0x10,
    LZ4_FLAG_INDEPENDENT = 0x20,
    LZ4_BLOCK_BYTES = 64 * 1024,
    LZ4_WINDOW_BYTES = 64 * 1024,
};

/* Contexts of zstd are large (a megabyte and more), so a few are kept for the next call. Shared by
 * all threads: one takes a slot's content out, and puts it into a free slot afterwards. */
enum { SPARE_CONTEXTS = 4 };
static _Atomic(ZSTD_CCtx *) spare_compressors[SPARE_CONTEXTS];
static _Atomic(ZSTD_DCtx *) spare_decompressors[SPARE_CONTEXTS];

static ZSTD_CCtx *compressor_take(void)
{
    for (int i = 0; i < SPARE_CONTEXTS; i++) {
        ZSTD_CCtx *context = atomic_exchange(&spare_compressors[i], NULL);
        if (context != NULL) return context;
    }
    return ZSTD_createCCtx();
}

static void compressor_give(ZSTD_CCtx *context)
{
    for (int i = 0; i < SPARE_CONTEXTS; i++) {
        ZSTD_CCtx *none = NULL;
        if (atomic_compare_exchange_strong(&spare_compressors[i], &none, context)) return;
    }
    (void)ZSTD_freeCCtx(context); /* cannot fail for a context that is not in use */
}

static ZSTD_DCtx *decompressor_take(void)
{
    for (int i = 0; i < SPARE_CONTEXTS; i++) {
        ZSTD_DCtx *context = atomic_exchange(&spare_decompressors[i], NULL);
        if (context != NULL) return context;
    }
    return ZSTD_createDCtx();
}

static void decompressor_give(ZSTD_DCtx *context)
{
    for (int i = 0; i < SPARE_CONTEXTS; i++) {
        ZSTD_DCtx *none = NULL;
        if (atomic_compare_exchange_strong(&spare_decompressors[i], &none, context)) return;
    }
    (void)ZSTD_freeDCtx(context); /* as above */
}

/* Each codec function returns the bytes written, or an error; 0 bytes: does not fit. */
static size_t lz4_compress(const uint8_t *in, size_t in_bytes, int level, uint8_t *out,
                           size_t out_capacity)
{
    /* Version 1, independent blocks of at most 64 KiB, no checksums, no content size. The last
     * byte is the header checksum, a constant since everything before it is. */
    static const uint8_t head[7] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82};
    enum { END_MARK_BYTES = 4, BLOCK_SIZE_BYTES = 4 };
    if (out_capacity < sizeof head + END_MARK_BYTES) return 0;
    uint8_t *at = out, *end = out + out_capacity - END_MARK_BYTES;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    while (in_bytes > 0) {
        int count = in_bytes < LZ4_BLOCK_BYTES ? (int)in_bytes : LZ4_BLOCK_BYTES;
        if (end - at <= BLOCK_SIZE_BYTES) return 0;
        ptrdiff_t left = end - at - BLOCK_SIZE_BYTES;
        /* Strictly smaller than stored, else it is stored. */
        int room = left < count - 1 ? (int)left : count - 1;
        const char *from = (const char *)in;
        char *to = (char *)at + BLOCK_SIZE_BYTES;
        int made = 0;
        if (room > 0)
            made = level >= LZ4HC_CLEVEL_MIN
                       ? LZ4_compress_HC(from, to, count, room, level)
                       : LZ4_compress_fast(from, to, count, room, level < 0 ? -level : 1);
        if (made <= 0) {
            if (left < count) return 0;
            memcpy(to, from, (size_t)count);
            leat_put_le32(at, (uint32_t)count | LEAT_LZ4_BLOCK_STORED);
            made = count;
        } else {
            leat_put_le32(at, (uint32_t)made);
        }
        at += BLOCK_SIZE_BYTES + made;
        in += count;
        in_bytes -= (size_t)count;
    }
    leat_put_le32(at, 0);
    return (size_t)(at + END_MARK_BYTES - out);
}

static leat_err zstd_compress(const uint8_t *in, size_t in_bytes, int level, uint8_t *out,
                              size_t out_capacity, size_t *out_bytes)
{
    ZSTD_CCtx *context = compressor_take();
    if (context == NULL) return LEAT_E_NO_MEMORY;
    size_t made = ZSTD_compressCCtx(context, out, out_capacity, in, in_bytes,
                                    level == 0 ? ZSTD_CLEVEL_DEFAULT : level);
    compressor_give(context);
    if (!ZSTD_isError(made)) {
        *out_bytes = made;
        return LEAT_OK;
    }
    switch (ZSTD_getErrorCode(made)) {
    case ZSTD_error_dstSize_tooSmall:
        return LEAT_E_AGAIN;
    case ZSTD_error_memory_allocation:
        return LEAT_E_NO_MEMORY;
    default:
        return LEAT_E_INTERNAL;
    }
}

leat_err leat_batch_compress(const uint8_t *batch, uint32_t byte_count, enum leat_codec codec,
                             int level, uint8_t *out, size_t out_capacity, uint32_t *out_bytes)
{
    LEAT_ASSERT_CMP(byte_count, >, (uint32_t)LEAT_BATCH_HEADER_BYTES);
    if (out_capacity <= LEAT_BATCH_HEADER_BYTES) return LEAT_E_AGAIN;
    const uint8_t *in = batch + LEAT_BATCH_HEADER_BYTES;
    size_t in_bytes = byte_count - LEAT_BATCH_HEADER_BYTES;
    uint8_t *to = out + LEAT_BATCH_HEADER_BYTES;
    size_t room = out_capacity - LEAT_BATCH_HEADER_BYTES, made = 0;
    if (room >= in_bytes) room = in_bytes - 1; /* not smaller is of no use */

    if (codec == LEAT_CODEC_LZ4) {
        made = lz4_compress(in, in_bytes, level, to, room);
        if (made == 0) return LEAT_E_AGAIN;
    } else if (codec == LEAT_CODEC_ZSTD) {
        leat_err rc = zstd_compress(in, in_bytes, level, to, room, &made);
        if (rc != LEAT_OK) return rc;
    } else {
        return LEAT_E_UNSUPPORTED;
    }
    uint32_t total = (uint32_t)(LEAT_BATCH_HEADER_BYTES + made);
    memcpy(out, batch, LEAT_BATCH_HEADER_BYTES);
    leat_put_be32(out + LEAT_BATCH_LENGTH_AT, total - LEAT_BATCH_LENGTH_AT - 4);
    uint16_t attributes = leat_get_be16(batch + 21);
    leat_put_be16(out + 21, (uint16_t)((attributes & ~7u) | (uint16_t)codec));
    leat_put_be32(out + LEAT_BATCH_CRC_AT,
                  leat_crc32c(0, out + LEAT_BATCH_CRC_FROM, total - LEAT_BATCH_CRC_FROM));
    *out_bytes = total;
    return LEAT_OK;
}

/* One block of a frame. Dependent blocks refer to up to 64 KiB of earlier output; `made` bytes of this output are
 * directly before `to`. Returns bytes made or negative. */
static int lz4_block_decompress(const uint8_t *in, uint32_t in_bytes, bool independent, uint8_t *to,
                                size_t made, size_t room)
{
    int capacity = room > INT32_MAX ? INT32_MAX : (int)room;
    const char *from = (const char *)in;
    if (independent || made == 0)
        return LZ4_decompress_safe(from, (char *)to, (int)in_bytes, capacity);
    int window = made < LZ4_WINDOW_BYTES ? (int)made : LZ4_WINDOW_BYTES;
    return LZ4_decompress_safe_usingDict(from, (char *)to, (int)in_bytes, capacity,
                                         (const char *)to - window, window);
}

const uint8_t *leat_lz4_frame_read(const uint8_t *in, const uint8_t *end,
                                   struct leat_lz4_frame *out_frame)
{
    enum { DESCRIPTOR_AT = 4, CONTENT_BYTES_AT = 6 };
    if (end - in < 7 || leat_get_le32(in) != LZ4_MAGIC) return NULL;
    uint8_t flags = in[DESCRIPTOR_AT], size_code = (uint8_t)((in[5] >> 4) & 7);
    if ((flags & 0xc0) != 0x40 || (flags & LZ4_FLAG_DICTIONARY) || size_code < 4) return NULL;
    bool sized = flags & LZ4_FLAG_CONTENT_SIZE;
    ptrdiff_t bytes = CONTENT_BYTES_AT + (sized ? 8 : 0); /* its checksum follows */
    if (end - in < bytes + 1) return NULL;
    *out_frame = (struct leat_lz4_frame){
        .block_bytes_max = 1u << (8 + 2 * size_code),
        .content_bytes = sized ? leat_get_le64(in + CONTENT_BYTES_AT) : 0,
        .independent = flags & LZ4_FLAG_INDEPENDENT,
        .block_sums = flags & LZ4_FLAG_BLOCK_CHECKSUM,
        .content_sum = flags & LZ4_FLAG_CONTENT_CHECKSUM,
        .sized = sized,
    };
    uint32_t sum = leat_xxh32(in + DESCRIPTOR_AT, (size_t)(bytes - DESCRIPTOR_AT));
    out_frame->sum_is_right = in[bytes] == (uint8_t)(sum >> 8);
    return in + bytes + 1;
}

static leat_err lz4_decompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                               size_t out_capacity, size_t *out_bytes)
{
    const uint8_t *end = in + in_bytes;
    struct leat_lz4_frame frame;
    in = leat_lz4_frame_read(in, end, &frame);
    if (in == NULL) return LEAT_E_CORRUPT;
    uint32_t block_max = frame.block_bytes_max;
    ptrdiff_t check_bytes = frame.block_sums ? 4 : 0;
    size_t made = 0;
    for (;;) {
        if (end - in < 4) return LEAT_E_CORRUPT;
        uint32_t head = leat_get_le32(in), count = head & ~LEAT_LZ4_BLOCK_STORED;
        in += 4;
        if (head == 0) break;
        if (count > block_max || (ptrdiff_t)count + check_bytes > end - in) return LEAT_E_CORRUPT;
        size_t room = out_capacity - made;
        if (head & LEAT_LZ4_BLOCK_STORED) {
            if (count > room) return LEAT_E_TOO_LARGE;
            memcpy(out + made, in, count);
            made += count;
        } else {
            /* One byte of lz4 makes at most 255: a block cannot make more than its maximum, and a
             * failure while less than that is left may be for want of room. */
            bool tight = room < block_max;
            int got = lz4_block_decompress(in, count, frame.independent, out + made, made,
                                           tight ? room : block_max);
            if (got < 0) return tight ? LEAT_E_TOO_LARGE : LEAT_E_CORRUPT;
            made += (size_t)got;
        }
        in += (ptrdiff_t)count + check_bytes;
    }
    if (end - in != (frame.content_sum ? 4 : 0)) return LEAT_E_CORRUPT;
    *out_bytes = made;
    return LEAT_OK;
}

static leat_err zstd_decompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                                size_t out_capacity, size_t *out_bytes)
{
    ZSTD_DCtx *context = decompressor_take();
    if (context == NULL) return LEAT_E_NO_MEMORY;
    size_t made = ZSTD_decompressDCtx(context, out, out_capacity, in, in_bytes);
    decompressor_give(context);
    if (!ZSTD_isError(made)) {
        *out_bytes = made;
        return LEAT_OK;
    }
    switch (ZSTD_getErrorCode(made)) {
    case ZSTD_error_dstSize_tooSmall:
        return LEAT_E_TOO_LARGE;
    case ZSTD_error_memory_allocation:
        return LEAT_E_NO_MEMORY;
    default:
        return LEAT_E_CORRUPT;
    }
}

leat_err leat_batch_records(const struct leat_batch *batch, uint8_t *out, size_t out_capacity,
                            const uint8_t **out_records, size_t *out_bytes)
{
    const uint8_t *in = batch->bytes + LEAT_BATCH_HEADER_BYTES;
    size_t in_bytes = batch->byte_count - LEAT_BATCH_HEADER_BYTES;
    leat_err rc;
    if (batch->codec == LEAT_CODEC_NONE) {
        *out_records = in;
        *out_bytes = in_bytes;
        return LEAT_OK;
    }
    if (out_capacity == 0) return LEAT_E_TOO_LARGE; /* out may be NULL */
    switch (batch->codec) {
    case LEAT_CODEC_LZ4:
        rc = lz4_decompress(in, in_bytes, out, out_capacity, out_bytes);
        break;
    case LEAT_CODEC_ZSTD:
        rc = zstd_decompress(in, in_bytes, out, out_capacity, out_bytes);
        break;
    case LEAT_CODEC_GZIP:
        rc = leat_gzip_uncompress(in, in_bytes, out, out_capacity, out_bytes);
        break;
    case LEAT_CODEC_SNAPPY:
        rc = leat_snappy_uncompress(in, in_bytes, out, out_capacity, out_bytes);
        break;
    default:
        return LEAT_E_UNSUPPORTED;
    }
    if (rc == LEAT_OK) *out_records = out;
    return rc;
}
