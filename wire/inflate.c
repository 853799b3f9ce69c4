/* SPDX-License-Identifier: Apache-2.0 */
/* gzip by zlib; snappy, whose format (github.com/google/snappy, format_description.txt) is a few lines. */
#include "wire/codec.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

/* ---- gzip ---- */

#ifdef LEAT_HAVE_ZLIB
#include <zlib.h>

enum { WINDOW_BITS_GZIP = 15 + 16 };

static void *zlib_take(void *ctx, unsigned count, unsigned bytes)
{
    (void)ctx;
    return leat_mem_calloc(LEAT_MEM_WIRE, count, bytes);
}

static void zlib_give(void *ctx, void *memory)
{
    (void)ctx;
    leat_mem_free(memory);
}

leat_err leat_gzip_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_capacity,
                              size_t *out_bytes)
{
    z_stream stream = {.zalloc = zlib_take, .zfree = zlib_give};
    if (in_bytes > UINT32_MAX || out_capacity > UINT32_MAX) return LEAT_E_TOO_LARGE;
    stream.next_in = (Bytef *)(uintptr_t)in; /* not written; zlib's interface is older than const */
    stream.avail_in = (uInt)in_bytes;
    stream.next_out = out;
    stream.avail_out = (uInt)out_capacity;
    if (inflateInit2(&stream, WINDOW_BITS_GZIP) != Z_OK) return LEAT_E_NO_MEMORY;
    int said;
    do {
        said = inflate(&stream, Z_FINISH);
        if (said != Z_STREAM_END || stream.avail_in == 0) break;
        said = inflateReset(&stream); /* another member follows */
    } while (said == Z_OK);
    size_t made = out_capacity - stream.avail_out;
    bool full = stream.avail_out == 0;
    (void)inflateEnd(&stream); /* cannot fail for a stream that was begun */
    if (said == Z_STREAM_END) {
        *out_bytes = made;
        return LEAT_OK;
    }
    if (said == Z_MEM_ERROR) return LEAT_E_NO_MEMORY;
    return said == Z_BUF_ERROR && full ? LEAT_E_TOO_LARGE : LEAT_E_CORRUPT;
}
#else
leat_err leat_gzip_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_capacity,
                              size_t *out_bytes)
{
    (void)in;
    (void)in_bytes;
    (void)out;
    (void)out_capacity;
    (void)out_bytes;
    return LEAT_E_UNSUPPORTED;
}
#endif

/* ---- snappy ---- */

struct snappy {
    const uint8_t *at, *end; /* of the block */
    uint8_t *out;
    size_t made, room; /* of the block's own bytes */
};

static bool length_read(struct snappy *snappy, uint32_t *out_length)
{
    uint64_t length = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (snappy->at == snappy->end) return false;
        uint8_t byte = *snappy->at++;
        length |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *out_length = (uint32_t)length;
        return length <= UINT32_MAX;
    }
    return false;
}

/* So many bytes, little-endian. */
static bool number_read(struct snappy *snappy, unsigned bytes, uint32_t *out_number)
{
    if ((size_t)(snappy->end - snappy->at) < bytes) return false;
    *out_number = 0;
    for (unsigned i = 0; i < bytes; i++)
        *out_number |= (uint32_t)*snappy->at++ << (8 * i);
    return true;
}

static bool literal_take(struct snappy *snappy, uint8_t tag)
{
    uint32_t length = tag >> 2;
    if (length >= 60 && !number_read(snappy, length - 59, &length)) return false;
    uint64_t bytes = (uint64_t)length + 1;
    if (bytes > (uint64_t)(snappy->end - snappy->at) || bytes > snappy->room - snappy->made)
        return false;
    memcpy(snappy->out + snappy->made, snappy->at, bytes);
    snappy->at += bytes;
    snappy->made += bytes;
    return true;
}

static bool copy_take(struct snappy *snappy, uint8_t tag)
{
    uint32_t offset, length = 1 + (uint32_t)(tag >> 2);
    if ((tag & 3) == 1) {
        if (!number_read(snappy, 1, &offset)) return false;
        offset |= (uint32_t)(tag >> 5) << 8;
        length = 4 + ((tag >> 2) & 7);
    } else if (!number_read(snappy, (tag & 3) == 2 ? 2 : 4, &offset)) {
        return false;
    }
    if (offset == 0 || offset > snappy->made || length > snappy->room - snappy->made) return false;
    /* It may overlap what it makes: a short pattern repeated. */
    uint8_t *to = snappy->out + snappy->made;
    for (uint32_t i = 0; i < length; i++)
        to[i] = to[(ptrdiff_t)i - (ptrdiff_t)offset];
    snappy->made += length;
    return true;
}

leat_err leat_snappy_block_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                                      size_t out_capacity, size_t *out_bytes)
{
    struct snappy snappy = {.at = in, .end = in + in_bytes, .out = out};
    uint32_t length;
    if (!length_read(&snappy, &length)) return LEAT_E_CORRUPT;
    if (length > out_capacity) return LEAT_E_TOO_LARGE;
    snappy.room = length;
    while (snappy.at < snappy.end) {
        uint8_t tag = *snappy.at++;
        if (!((tag & 3) == 0 ? literal_take(&snappy, tag) : copy_take(&snappy, tag)))
            return LEAT_E_CORRUPT;
    }
    if (snappy.made != length) return LEAT_E_CORRUPT;
    *out_bytes = length;
    return LEAT_OK;
}

size_t leat_snappy_frame_bytes(const uint8_t *in, size_t in_bytes)
{
    /* Of snappy-java: this, two versions of four bytes, then [bytes of a block, big-endian; block]. */
    static const uint8_t magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
    enum { FRAME_HEADER_BYTES = 16 };
    bool framed = in_bytes >= FRAME_HEADER_BYTES && memcmp(in, magic, sizeof magic) == 0;
    return framed ? FRAME_HEADER_BYTES : 0;
}

leat_err leat_snappy_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                                size_t out_capacity, size_t *out_bytes)
{
    size_t at = leat_snappy_frame_bytes(in, in_bytes), made = 0;
    if (at == 0) return leat_snappy_block_uncompress(in, in_bytes, out, out_capacity, out_bytes);
    while (at < in_bytes) {
        size_t block_made;
        if (in_bytes - at < 4) return LEAT_E_CORRUPT;
        uint32_t block = leat_get_be32(in + at);
        at += 4;
        if (block > in_bytes - at) return LEAT_E_CORRUPT;
        leat_err rc = leat_snappy_block_uncompress(in + at, block, out + made, out_capacity - made,
                                                   &block_made);
        if (rc != LEAT_OK) return rc;
        at += block;
        made += block_made;
    }
    *out_bytes = made;
    return LEAT_OK;
}
