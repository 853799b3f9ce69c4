/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli) by ISA-L. */
#ifndef LEAT_BASE_CRC32C_H
#define LEAT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * Extend a CRC-32C. Start with 0; leat_crc32c(leat_crc32c(0, a), b) is the CRC of a followed by b.
 * CRC-32C("123456789") is 0xe3069283.
 *
 * Thread: any.  Blocks: never.  Allocates: never.
 */
uint32_t leat_crc32c(uint32_t crc, const void *data, size_t bytes);

/**
 * CRC-32C of a followed by b, from the CRC of each and the length of b; the bytes are not looked at.
 * Costs one carry-less multiplication per set bit of b_bytes, a few ns, where the processor has them
 * (x86-64), else as many loops of 32 steps.
 *
 * b_bytes  Below 2^32.
 *
 * Thread: any.  Blocks: never.  Allocates: never.
 */
uint32_t leat_crc32c_join(uint32_t crc_a, uint32_t crc_b, size_t b_bytes);
/** The same where the processor has no carry-less multiplication; for tests. Thread: any. */
uint32_t leat_crc32c_join_plain(uint32_t crc_a, uint32_t crc_b, uint32_t b_bytes);

#endif
