/* CRC-32C. ISA-L chooses the fastest code for the processor at first use. */
#include "base/crc32c.h"

#include <isa-l/crc.h>

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
