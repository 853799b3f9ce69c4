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

#endif
