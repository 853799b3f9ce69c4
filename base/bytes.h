/* SPDX-License-Identifier: Apache-2.0 */
/* Unaligned loads and stores of fixed byte order. */
#ifndef LEAT_BASE_BYTES_H
#define LEAT_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#define LEAT_BYTES_PAIR(bits, order, conv)                                                         \
    static inline uint##bits##_t leat_get_##order##bits(const void *at)                            \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, at, sizeof v);                                                                  \
        return conv(v);                                                                            \
    }                                                                                              \
    static inline void leat_put_##order##bits(void *at, uint##bits##_t value)                      \
    {                                                                                              \
        uint##bits##_t v = conv(value);                                                            \
        memcpy(at, &v, sizeof v);                                                                  \
    }

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Leat's stored structs are little-endian and are used in place"
#endif
#define LEAT_SAME(v) (v)
LEAT_BYTES_PAIR(16, le, LEAT_SAME)
LEAT_BYTES_PAIR(32, le, LEAT_SAME)
LEAT_BYTES_PAIR(64, le, LEAT_SAME)
LEAT_BYTES_PAIR(16, be, __builtin_bswap16)
LEAT_BYTES_PAIR(32, be, __builtin_bswap32)
LEAT_BYTES_PAIR(64, be, __builtin_bswap64)
#undef LEAT_SAME
#undef LEAT_BYTES_PAIR

#define LEAT_ALIGN_UP(value, to)   (((value) + ((to)-1)) & ~(__typeof__(value))((to)-1))
#define LEAT_ALIGN_DOWN(value, to) ((value) & ~(__typeof__(value))((to)-1))

#endif
