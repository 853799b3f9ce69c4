/* SPDX-License-Identifier: Apache-2.0 */
/* Copying blocks that change processors; clearing memory past the caches. */
#include "base/copy.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <stdint.h>
#endif

/* Sanitizers see only what the compiler knows to be a copy. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COPY_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define COPY_IS_WATCHED 1
#endif
#endif

#if defined(__x86_64__) && !defined(COPY_IS_WATCHED)

static bool moves_fast;

/* Asked once: in a virtual machine the question leaves to the host, which takes microseconds. */
__attribute__((constructor)) static void processor_ask(void)
{
    enum { FEATURES = 7, ERMS_BIT = 1 << 9 };
    unsigned a, b, c, d;
    moves_fast = __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (b & ERMS_BIT);
}

void leat_copy_block(void *to, const void *from, size_t bytes)
{
    if (bytes < LEAT_COPY_BLOCK_BYTES_MIN || !moves_fast) {
        if (bytes > 0) memcpy(to, from, bytes);
        return;
    }
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

enum { LINE_BYTES = 64 };

void leat_zero_block(void *at, size_t bytes)
{
    if (((uintptr_t)at | bytes) % LINE_BYTES) {
        memset(at, 0, bytes);
        return;
    }
    const __m128i zero = _mm_setzero_si128();
    for (size_t i = 0; i < bytes / sizeof zero; i++)
        _mm_stream_si128((__m128i *)at + i, zero);
    _mm_sfence(); /* such stores are in no order with others */
}

#else

void leat_zero_block(void *at, size_t bytes)
{
    memset(at, 0, bytes);
}

void leat_copy_block(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) memcpy(to, from, bytes);
}

#endif
