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

#endif
