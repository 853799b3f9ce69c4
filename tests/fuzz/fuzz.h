/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target includes. */
#ifndef LEAT_TESTS_FUZZ_H
#define LEAT_TESTS_FUZZ_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* An input of several pieces. A piece is a byte of kind, two bytes of length, and the bytes. A length beyond the end of
 * the input is cut. */
struct fuzz_pieces {
    const uint8_t *at, *end;
};
struct fuzz_piece {
    uint8_t kind;
    const uint8_t *bytes;
    size_t count;
};
enum { FUZZ_PIECE_HEADER_BYTES = 3 };

/** False: there are no more. */
static inline bool fuzz_piece_next(struct fuzz_pieces *pieces, struct fuzz_piece *out)
{
    if (pieces->end - pieces->at < FUZZ_PIECE_HEADER_BYTES) return false;
    out->kind = pieces->at[0];
    out->count = leat_get_le16(pieces->at + 1);
    out->bytes = pieces->at += FUZZ_PIECE_HEADER_BYTES;
    if (out->count > (size_t)(pieces->end - pieces->at))
        out->count = (size_t)(pieces->end - pieces->at);
    pieces->at += out->count;
    return true;
}

#endif
