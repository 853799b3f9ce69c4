/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs that are only read here: Kafka's clients write them. Private to wire/ (tests may include it). */
#ifndef LEAT_WIRE_CODEC_H
#define LEAT_WIRE_CODEC_H

#include "base/error.h"

/* Both: LEAT_E_TOO_LARGE when the capacity does not do, LEAT_E_CORRUPT. Nothing is written past the
 * capacity, whatever the bytes say. Thread: any. */

/** A gzip member, or several. LEAT_E_UNSUPPORTED: built without zlib. LEAT_E_NO_MEMORY. */
leat_err leat_gzip_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_capacity,
                              size_t *out_bytes) LEAT_NODISCARD;
/** One snappy block, or the frames around blocks that Java's clients write. Allocates: never. */
leat_err leat_snappy_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                                size_t out_capacity, size_t *out_bytes) LEAT_NODISCARD;

/** One block. As above; out_bytes is what its own length field says. */
leat_err leat_snappy_block_uncompress(const uint8_t *in, size_t in_bytes, uint8_t *out,
                                      size_t out_capacity, size_t *out_bytes) LEAT_NODISCARD;
/** Bytes of the header before the frames of Java's clients: magic, then two versions. 0: a single block. */
size_t leat_snappy_frame_bytes(const uint8_t *in, size_t in_bytes);
enum { LEAT_SNAPPY_VERSION_AT = 8 };

/* The descriptor of an lz4 frame. */
struct leat_lz4_frame {
    uint32_t block_bytes_max;
    uint64_t content_bytes; /* if sized */
    bool independent, block_sums, content_sum, sized;
    bool sum_is_right; /* the descriptor's own */
};
#define LEAT_LZ4_BLOCK_STORED 0x80000000u
/** Returns where the blocks begin, or NULL when it is no descriptor that we know. Thread: any. */
const uint8_t *leat_lz4_frame_read(const uint8_t *in, const uint8_t *end,
                                   struct leat_lz4_frame *out_frame);

#endif
