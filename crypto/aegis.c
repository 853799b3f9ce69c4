/* SPDX-License-Identifier: Apache-2.0 */
/* AEGISMAC-128X2 by what the processor has. See aegis.h; aegis_path.h is the algorithm. */
#include "crypto/aegis.h"

#include <string.h>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* The Fibonacci numbers mod 256, as the specification has them. */
static const uint8_t aegis_c0[16] = {0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d,
                                     0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62};
static const uint8_t aegis_c1[16] = {0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1,
                                     0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};
/* For each lane: its number, and that of the last. */
static const uint8_t aegis_lanes[32] = {[1] = 1, [16] = 1, [17] = 1};

/* ---- with an instruction for the round ---- */

/* One step: every block becomes the AES round of the block before. */
#define UPDATE_BY_ROUNDS(prefix, target, regs)                                                     \
    static inline target void prefix##update(prefix##reg s[8][regs], prefix##reg m[2][regs])       \
    {                                                                                              \
        for (unsigned i = 0; i < (regs); i++) {                                                    \
            prefix##reg last = s[7][i];                                                            \
            s[7][i] = prefix##round(s[6][i], s[7][i]);                                             \
            s[6][i] = prefix##round(s[5][i], s[6][i]);                                             \
            s[5][i] = prefix##round(s[4][i], s[5][i]);                                             \
            s[4][i] = prefix##round(s[3][i], s[4][i] ^ m[1][i]);                                   \
            s[3][i] = prefix##round(s[2][i], s[3][i]);                                             \
            s[2][i] = prefix##round(s[1][i], s[2][i]);                                             \
            s[1][i] = prefix##round(s[0][i], s[1][i]);                                             \
            s[0][i] = prefix##round(last, s[0][i] ^ m[0][i]);                                      \
        }                                                                                          \
    }

#if defined(__x86_64__)

typedef __m256i vaes_reg;
typedef __m256i vaes_loose __attribute__((aligned(1), may_alias));
#define vaes_round(state, key) _mm256_aesenc_epi128(state, key)
UPDATE_BY_ROUNDS(vaes_, __attribute__((target("vaes,avx2"))), 1)

#define PATH(name)  vaes_##name
#define PATH_TARGET __attribute__((target("vaes,avx2")))
#define PATH_REGS   1
#include "crypto/aegis_path.h"

typedef __m128i aesni_reg;
typedef __m128i aesni_loose __attribute__((aligned(1), may_alias));
#define aesni_round(state, key) _mm_aesenc_si128(state, key)
UPDATE_BY_ROUNDS(aesni_, __attribute__((target("aes"))), 2)

#define PATH(name)  aesni_##name
#define PATH_TARGET __attribute__((target("aes")))
#define PATH_REGS   2
#include "crypto/aegis_path.h"

#elif defined(__aarch64__)

/* This processor's instruction adds the key before the round, not after the round. */
#define NEON_TARGET            __attribute__((target("+crypto")))
typedef uint8x16_t neon_reg;
typedef uint8x16_t neon_loose __attribute__((aligned(1), may_alias));
#define neon_round(state, key) (vaesmcq_u8(vaeseq_u8(state, vdupq_n_u8(0))) ^ (key))
UPDATE_BY_ROUNDS(neon_, NEON_TARGET, 2)

#define PATH(name)  neon_##name
#define PATH_TARGET NEON_TARGET
#define PATH_REGS   2
#include "crypto/aegis_path.h"

#endif

/* ---- without ----
 *
 * No table is indexed by a secret, so timing reveals nothing. The 256 bytes of the state go through the S-box
 * together: bit k of all bytes is a plane, and an operation on a plane works on 256 bytes at once.
 */
typedef uint64_t plain_reg __attribute__((vector_size(32)));
typedef uint64_t plain_loose __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint32_t plain_columns __attribute__((vector_size(32)));

/* Swaps bit i of the bytes of a[k] with bit k of the bytes of a[i]. Twice is the identity. */
static inline void planes_turn(plain_reg a[8])
{
    static const uint64_t masks[3] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f};
    for (unsigned bit = 0; bit < 3; bit++)
        for (unsigned i = 0; i < 8; i++) {
            unsigned by = 1u << bit;
            if (i & by) continue;
            plain_reg changed = ((a[i] >> by) ^ a[i | by]) & masks[bit];
            a[i | by] ^= changed;
            a[i] ^= changed << by;
        }
}

/* Modulo x^8 + x^4 + x^3 + x + 1. */
static inline void field_reduce(plain_reg product[15], plain_reg out[8])
{
    for (unsigned i = 14; i >= 8; i--) {
        product[i - 4] ^= product[i];
        product[i - 5] ^= product[i];
        product[i - 7] ^= product[i];
        product[i - 8] ^= product[i];
    }
    for (unsigned i = 0; i < 8; i++)
        out[i] = product[i];
}

static inline void field_multiply(const plain_reg a[8], const plain_reg b[8], plain_reg out[8])
{
    plain_reg product[15] = {0};
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < 8; j++)
            product[i + j] ^= a[i] & b[j];
    field_reduce(product, out);
}

static inline void field_square(const plain_reg a[8], plain_reg out[8])
{
    plain_reg product[15] = {0};
    for (unsigned i = 0; i < 8; i++)
        product[2 * i] = a[i];
    field_reduce(product, out);
}

/* The S-box: the inverse, which is the 254th power, and then an affine map. */
static void planes_substitute(plain_reg a[8])
{
    plain_reg to_2[8], to_3[8], to_12[8], to_15[8], to_240[8], inverse[8];
    field_square(a, to_2);
    field_multiply(to_2, a, to_3);
    field_square(to_3, to_12);
    field_square(to_12, to_12);
    field_multiply(to_12, to_3, to_15);
    field_square(to_15, to_240);
    for (unsigned i = 0; i < 3; i++)
        field_square(to_240, to_240);
    field_multiply(to_240, to_12, inverse);
    field_multiply(inverse, to_2, inverse);
    for (unsigned i = 0; i < 8; i++) {
        a[i] = inverse[i] ^ inverse[(i + 4) % 8] ^ inverse[(i + 5) % 8] ^ inverse[(i + 6) % 8] ^
               inverse[(i + 7) % 8];
        if (0x63 >> i & 1) a[i] = ~a[i];
    }
}

/* ShiftRows and MixColumns, on columns of four bytes, the first row lowest. */
static inline void columns_mix(plain_reg *block)
{
    plain_columns c = (plain_columns)*block;
    plain_columns x = (c & 0x000000ff) |
                      (__builtin_shufflevector(c, c, 1, 2, 3, 0, 5, 6, 7, 4) & 0x0000ff00) |
                      (__builtin_shufflevector(c, c, 2, 3, 0, 1, 6, 7, 4, 5) & 0x00ff0000) |
                      (__builtin_shufflevector(c, c, 3, 0, 1, 2, 7, 4, 5, 6) & 0xff000000);
    plain_columns below = x >> 8 | x << 24, sum = x ^ below;
    plain_columns over = sum >> 7 & 0x01010101;
    plain_columns twice =
        (sum & 0x7f7f7f7f) << 1 ^ over ^ over << 1 ^ over << 3 ^ over << 4; /* 0x1b */
    *block = (plain_reg)(twice ^ below ^ (sum >> 16 | sum << 16));
}

static void plain_update(plain_reg s[8][1], plain_reg m[2][1])
{
    plain_reg a[8];
    for (unsigned i = 0; i < 8; i++)
        a[i] = s[i][0];
    planes_turn(a);
    planes_substitute(a);
    planes_turn(a);
    for (unsigned i = 0; i < 8; i++) {
        columns_mix(&a[i]);
        s[(i + 1) % 8][0] ^= a[i];
    }
    s[0][0] ^= m[0][0];
    s[4][0] ^= m[1][0];
}

#define PATH(name) plain_##name
#define PATH_TARGET
#define PATH_REGS 1
#include "crypto/aegis_path.h"

/* ---- which ---- */

#if defined(__x86_64__)
static bool vaes_there;

/* No name for this feature is known to all compilers yet. Queried once, not for each connection: in a virtual machine
 * the query traps to the host, which takes tens of microseconds. */
__attribute__((constructor)) static void processor_ask(void)
{
    enum { FEATURES = 7, VAES_BIT = 1 << 9 };
    unsigned a, b, c, d;
    __builtin_cpu_init(); /* constructors are in no order */
    vaes_there = __builtin_cpu_supports("avx2") && __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) &&
                 (c & VAES_BIT);
}
#endif

void leat_aegis_paths(struct leat_aegis_path out[LEAT_AEGIS_PATHS_MAX])
{
    unsigned count = 0;
#if defined(__x86_64__)
    out[count++] = (struct leat_aegis_path){"vaes", vaes_tag, vaes_there};
    out[count++] =
        (struct leat_aegis_path){"aes-ni", aesni_tag, __builtin_cpu_supports("aes") != 0};
#elif defined(__aarch64__)
    out[count++] =
        (struct leat_aegis_path){"neon", neon_tag, (getauxval(AT_HWCAP) & HWCAP_AES) != 0};
#endif
    out[count++] = (struct leat_aegis_path){"plain", plain_tag, true};
    while (count < LEAT_AEGIS_PATHS_MAX)
        out[count++] = (struct leat_aegis_path){0};
}

leat_aegis_tag_fn *leat_aegis_best(void)
{
    struct leat_aegis_path paths[LEAT_AEGIS_PATHS_MAX];
    leat_aegis_paths(paths);
    unsigned best = 0;
    while (!paths[best].usable)
        best++;
    return paths[best].tag;
}
