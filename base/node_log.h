/* SPDX-License-Identifier: Apache-2.0 */
/* The node log: levelled lines, one function set by the program. */
#ifndef LEAT_BASE_NODE_LOG_H
#define LEAT_BASE_NODE_LOG_H

#include "error.h"

enum leat_node_log_level {
    LEAT_NODE_LOG_ERROR,
    LEAT_NODE_LOG_WARN,
    LEAT_NODE_LOG_INFO,
    LEAT_NODE_LOG_DEBUG
};

typedef void (*leat_node_log_fn)(void *ctx, enum leat_node_log_level level, const char *line);

/** Set where lines go (NULL = nowhere) and the lowest level that is formatted. Thread: startup. */
void leat_node_log_set(leat_node_log_fn fn, void *ctx, enum leat_node_log_level level);
/** Thread: any. Blocks: as the sink does. Never on the data path. */
void leat_node_log(enum leat_node_log_level level, const char *format, ...) LEAT_PRINTF(2, 3);

/* For lines that clients or peers can cause without limit. The first lines are written; further lines are counted,
 * and the count is written at the end of the interval. Guarded by: its owner's thread. */
struct leat_node_log_sum {
    const char *what;  /* "connections were closed", for the count */
    uint64_t since_us; /* of the first line; 0: none yet */
    uint32_t lines, kept;
};
enum { LEAT_NODE_LOG_SUM_LINES = 10, LEAT_NODE_LOG_SUM_US = 10 * 1000 * 1000 };
void leat_node_log_summed(struct leat_node_log_sum *sum, uint64_t now_us,
                          enum leat_node_log_level level, const char *format, ...)
    LEAT_PRINTF(4, 5);
/** Write the count, if its time is over and there is one. */
void leat_node_log_sum_tell(struct leat_node_log_sum *sum, uint64_t now_us);
/** A name from outside, for lines: cut to capacity - 1, bytes that are no printable ASCII as '?'. */
void leat_node_log_name(char *out, size_t capacity, const char *text, size_t bytes);
/** Control characters become '?'. */
void leat_node_log_clean(char *text, size_t bytes);
/** No control bytes? Other bytes are whatever they are. */
bool leat_node_log_is_text(const char *text, size_t bytes);

#define leat_node_log_error(...) leat_node_log(LEAT_NODE_LOG_ERROR, __VA_ARGS__)
#define leat_node_log_warn(...)  leat_node_log(LEAT_NODE_LOG_WARN, __VA_ARGS__)
#define leat_node_log_info(...)  leat_node_log(LEAT_NODE_LOG_INFO, __VA_ARGS__)
#define leat_node_log_debug(...) leat_node_log(LEAT_NODE_LOG_DEBUG, __VA_ARGS__)

#endif
