/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's variable-length integers: zigzag, seven bits a byte, lowest first. Private to wire. */
#ifndef LEAT_WIRE_VARINT_H
#define LEAT_WIRE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAT_VARINT_BYTES_MAX = 5, LEAT_VARLONG_BYTES_MAX = 10 };

static inline uint64_t leat_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t leat_unzigzag(uint64_t raw)
{
    return (int64_t)((raw >> 1) ^ (0 - (raw & 1)));
}

/* Bytes that a raw (already zigzagged) value takes. */
static inline uint32_t leat_varint_bytes(uint64_t raw)
{
    return (uint32_t)((63 - __builtin_clzll(raw | 1)) / 7 + 1);
}

static inline uint8_t *leat_varint_write(uint8_t *at, uint64_t raw)
{
    /* Nearly every field of a record is below 2^14: two predictable branches and no loop. */
    if (__builtin_expect(raw < 0x80, 1)) {
        *at = (uint8_t)raw;
        return at + 1;
    }
    if (__builtin_expect(raw < 0x4000, 1)) {
        at[0] = (uint8_t)(raw | 0x80);
        at[1] = (uint8_t)(raw >> 7);
        return at + 2;
    }
    while (raw >= 0x80) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at = (uint8_t)raw;
    return at + 1;
}

/* Any length up to `bytes_max`; NULL when it runs past the end or is too long. */
const uint8_t *leat_varint_read_slow(const uint8_t *at, const uint8_t *end, uint32_t bytes_max,
                                     uint64_t *out_raw);

/* The raw value at `at`, or NULL. Out-of-line only past two bytes. A single byte is tried first: a record may end
 * with such a byte, and nothing after the record may be read. */
static inline const uint8_t *leat_varint_read(const uint8_t *at, const uint8_t *end,
                                              uint32_t bytes_max, uint64_t *out_raw)
{
    if (__builtin_expect(at < end, 1)) {
        uint32_t low = at[0];
        if (__builtin_expect(low < 0x80, 1)) {
            *out_raw = low;
            return at + 1;
        }
        if (__builtin_expect(end - at >= 2, 1)) {
            uint32_t high = at[1];
            if (__builtin_expect(high < 0x80, 1)) {
                *out_raw = (low & 0x7f) | (high << 7);
                return at + 2;
            }
        }
    }
    return leat_varint_read_slow(at, end, bytes_max, out_raw);
}

#endif
