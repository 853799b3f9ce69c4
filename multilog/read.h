/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the parts of reading share: read.c, read_walk.c. */
#ifndef LEAT_MULTILOG_READ_H
#define LEAT_MULTILOG_READ_H

#include "multilog/internal.h"

/* Bytes of a segment: the whole segment in memory, or a window of its file. */
struct log_view {
    const uint8_t *bytes;
    uint32_t from, end; /* positions that are here */
    uint32_t limit;     /* end of the segment's valid prefix */
    bool verify;        /* payload CRCs: the bytes come from a file */
    bool given_up;      /* batches that are damaged are passed over */
};
enum log_walk_end {
    LOG_WALK_DONE,
    LOG_WALK_MORE, /* the bytes that are needed lie past the view */
    LOG_WALK_DAMAGED,
    LOG_WALK_FULL,        /* the first batch is larger than what may be returned */
    LOG_WALK_NO_BOUNDARY, /* no batch begins at the place that was asked for */
};
/** Take the batches from *at on that the target asks for, as far as they are acked and fit; *at is then where the
 * walk ended. */
enum log_walk_end log_walk(const struct leat_log *log, struct leat_read *read,
                           const struct log_view *view, const struct leat_target *target,
                           uint32_t *at);
/** The next read begins there, in this one's segment. */
void log_read_place_set(struct leat_read *read, uint32_t at);

#endif
