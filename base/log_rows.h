/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are sorted by log. */
#ifndef LEAT_BASE_LOG_ROWS_H
#define LEAT_BASE_LOG_ROWS_H

#include <stddef.h>

#include "base/types.h"

/** The number of the first row whose log is `log` or comes after it; `count`: no row's is. The rows ascend by log; each
 * takes `row_bytes`, and has its log at byte `log_at`. Thread: any; nothing is kept. */
static inline size_t leat_log_rows_from(const void *rows, size_t count, size_t row_bytes,
                                        size_t log_at, struct leat_log_ref log)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct leat_log_ref *at =
            (const void *)((const char *)rows + middle * row_bytes + log_at);
        if (leat_log_ref_order(*at, log) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
/* The same, of an array whose elements have their log in `member`. */
#define LEAT_LOG_ROWS_FROM(rows, count, member, log)                                               \
    leat_log_rows_from((rows), (count), sizeof *(rows), offsetof(__typeof__(*(rows)), member),     \
                       (log))

#endif
