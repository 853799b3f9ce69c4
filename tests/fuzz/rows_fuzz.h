/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies for a fuzz target, from their tables: what else would be seeds. */
#ifndef LEAT_TESTS_ROWS_FUZZ_H
#define LEAT_TESTS_ROWS_FUZZ_H

#include "tests/rows.h"

/** Now and then another valid body of a row, behind its number, which begins with `number`; else any change. */
static inline size_t rows_mutate(const leat_msg_row_fn *rows, size_t count, unsigned number,
                                 uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct leat_msg_writer writer;
    uint64_t random = seed;
    size_t at = rows_random(&random) % count;
    if (seed % 16 != 0 || max_size < 2) return LLVMFuzzerMutate(data, size, max_size);
    leat_msg_writer_init(&writer, data + 1, max_size - 1);
    rows_make(&writer, rows[at](), &random);
    if (writer.overflow) return LLVMFuzzerMutate(data, size, max_size);
    data[0] = (uint8_t)(number + at);
    return 1 + writer.used;
}

#endif
