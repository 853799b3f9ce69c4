/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C. ISA-L chooses the fastest code for the processor at first use. */
#include "base/crc32c.h"

#include "base/assert.h"

#include <isa-l/crc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ISA-L takes an int length. A multiple of 64 keeps its fast path aligned between pieces. */
enum { CRC_PIECE_BYTES = 1 << 30 };

/* ISA-L's AVX-512 code returns with the upper halves of the vector registers in use, and every SSE
 * instruction of the caller then pays for merging them (measured: 165 ns more for checking a batch
 * of two records, whose CRC takes 10). */
static inline void vector_state_clear(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx")) __asm__ volatile("vzeroupper" ::: "memory");
#endif
}

uint32_t leat_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    /* ISA-L's function never writes; its pointer lacks the const. */
    unsigned char *at = (unsigned char *)(uintptr_t)data;
    /* It neither inverts at the start nor at the end, so both are done here: the usual value
     * results, and since the two inversions cancel, calls chain. */
    crc = ~crc;
    while (bytes > CRC_PIECE_BYTES) {
        crc = crc32_iscsi(at, CRC_PIECE_BYTES, crc);
        at += CRC_PIECE_BYTES;
        bytes -= CRC_PIECE_BYTES;
    }
    if (bytes > 0) crc = crc32_iscsi(at, (int)bytes, crc);
    vector_state_clear();
    return ~crc;
}

/* ---- joining ----
 *
 * A CRC is a polynomial modulo P, and appended bytes multiply the polynomial: crc(a b) = crc(a) x^(8|b|) + crc(b)
 * (the inversions at both ends cancel). The power is a product of one factor per set bit of |b|.
 *
 * multiply(a, b) is a b x^33 mod P: the carry-less product of two reversed numbers of 32 bits is shifted by one bit,
 * and the reduction, which is the CRC of the product's 8 bytes, multiplies by x^32. So the factor of bit k is
 * x^(8 2^k - 33) mod P.
 */
static const uint32_t join_factors[32] = {
    0xbf818109, 0x780d5a4d, 0x05ec76f1, 0x00000001, 0x493c7d27, 0xba4fc28e, 0x9e4addf8, 0x0d3b6092,
    0xb9e02b86, 0xdd7e3b0c, 0x170076fa, 0xa51b6135, 0x82f89c77, 0x54a86326, 0x1dc403cc, 0x5ae703ab,
    0xc5013a36, 0xac2ac6dd, 0x9b4615a9, 0x688d1c61, 0xf6af14e6, 0xb6ffe386, 0xb717425b, 0x478b0d30,
    0x54cc62e5, 0x7b2102ee, 0x8a99adef, 0xa7568c8f, 0xd610d67e, 0x6b086b3f, 0xd94f3c0b, 0xbf818109,
};

#if defined(__x86_64__)
__attribute__((target("pclmul,sse4.2"))) static uint32_t shift_fast(uint32_t crc, uint32_t bytes)
{
    for (; bytes > 0; bytes &= bytes - 1) {
        __m128i factor = _mm_cvtsi32_si128((int)join_factors[__builtin_ctz(bytes)]);
        __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), factor, 0);
        crc = (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
    }
    return crc;
}
#endif

static uint32_t shift_plain(uint32_t crc, uint32_t bytes)
{
    for (; bytes > 0; bytes &= bytes - 1) {
        uint64_t factor = join_factors[__builtin_ctz(bytes)], product = 0;
        for (int bit = 0; bit < 32; bit++)
            product ^= (factor << bit) & (0 - (uint64_t)(crc >> bit & 1));
        unsigned char at[8];
        for (int i = 0; i < 8; i++)
            at[i] = (unsigned char)(product >> 8 * i);
        crc = crc32_iscsi(at, 8, 0);
    }
    return crc;
}

uint32_t leat_crc32c_join(uint32_t crc_a, uint32_t crc_b, size_t b_bytes)
{
    LEAT_ASSERT_CMP(b_bytes, <=, UINT32_MAX);
    uint32_t bytes = (uint32_t)b_bytes;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2"))
        return shift_fast(crc_a, bytes) ^ crc_b;
#endif
    return shift_plain(crc_a, bytes) ^ crc_b;
}

uint32_t leat_crc32c_join_plain(uint32_t crc_a, uint32_t crc_b, uint32_t b_bytes)
{
    return shift_plain(crc_a, b_bytes) ^ crc_b;
}
