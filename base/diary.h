/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own diary: levelled lines, one function set by the program. */
#ifndef LEAT_BASE_DIARY_H
#define LEAT_BASE_DIARY_H

#include "error.h"

enum leat_diary_level { LEAT_DIARY_ERROR, LEAT_DIARY_WARN, LEAT_DIARY_INFO, LEAT_DIARY_DEBUG };

typedef void (*leat_diary_fn)(void *ctx, enum leat_diary_level level, const char *line);

/** Set where lines go (NULL = nowhere) and the lowest level that is formatted. Thread: startup. */
void leat_diary_set(leat_diary_fn fn, void *ctx, enum leat_diary_level level);
/** Thread: any. Blocks: as the sink does. Never on the data path. */
void leat_diary(enum leat_diary_level level, const char *format, ...) LEAT_PRINTF(2, 3);

/* Lines that others bring about as often as they like. The first few are written; the others are counted, and the count
 * is written when their time is over. Guarded by: its owner's thread. */
struct leat_diary_sum {
    const char *what;  /* "connections were closed", for the count */
    uint64_t since_us; /* of the first line; 0: none yet */
    uint32_t lines, kept;
};
enum { LEAT_DIARY_SUM_LINES = 10, LEAT_DIARY_SUM_US = 10 * 1000 * 1000 };
void leat_diary_summed(struct leat_diary_sum *sum, uint64_t now_us, enum leat_diary_level level,
                       const char *format, ...) LEAT_PRINTF(4, 5);
/** Write the count, if its time is over and there is one. */
void leat_diary_sum_tell(struct leat_diary_sum *sum, uint64_t now_us);
/** What somebody else calls itself, for lines: cut to capacity - 1, bytes that are no printable ASCII as '?'. */
void leat_diary_name(char *out, size_t capacity, const char *text, size_t bytes);
/** Control characters become '?'. */
void leat_diary_clean(char *text, size_t bytes);
/** No control bytes? Other bytes are whatever they are. */
bool leat_diary_is_text(const char *text, size_t bytes);

#define leat_diary_error(...) leat_diary(LEAT_DIARY_ERROR, __VA_ARGS__)
#define leat_diary_warn(...)  leat_diary(LEAT_DIARY_WARN, __VA_ARGS__)
#define leat_diary_info(...)  leat_diary(LEAT_DIARY_INFO, __VA_ARGS__)
#define leat_diary_debug(...) leat_diary(LEAT_DIARY_DEBUG, __VA_ARGS__)

#endif
