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

#define leat_diary_error(...) leat_diary(LEAT_DIARY_ERROR, __VA_ARGS__)
#define leat_diary_warn(...)  leat_diary(LEAT_DIARY_WARN, __VA_ARGS__)
#define leat_diary_info(...)  leat_diary(LEAT_DIARY_INFO, __VA_ARGS__)
#define leat_diary_debug(...) leat_diary(LEAT_DIARY_DEBUG, __VA_ARGS__)

#endif
