/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a start share: open.c, judge.c. */
#ifndef LEAT_STORE_OPEN_H
#define LEAT_STORE_OPEN_H

#include "store/private.h"

struct leat_opening {
    struct leat_store *store;
    size_t found_capacity;
    bool *file_scanned; /* [files]: holds open segments: sync before anything is decided on them */
};

/** The pool that survived with this row's bytes in it, or NULL. */
struct leat_pool *leat_judge_pool(struct leat_store *store, const struct leat_row *row);

/* A segment is judged once, by one of these. */
/** By its row alone. */
leat_err leat_judge_plain(struct leat_opening *op, struct leat_held *held,
                          enum leat_found_kind kind, enum leat_segment_state state) LEAT_NODISCARD;
/** RESERVED or OPEN. */
leat_err leat_judge_unclosed(struct leat_opening *op, struct leat_held *held,
                             const struct leat_row *row) LEAT_NODISCARD;
leat_err leat_judge_hibernated(struct leat_opening *op, struct leat_held *held,
                               const struct leat_row *row) LEAT_NODISCARD;
/** CLOSED, and the row does not say that the file has the bytes. */
leat_err leat_judge_unflushed(struct leat_opening *op, struct leat_held *held,
                              const struct leat_row *row) LEAT_NODISCARD;
/** CLOSED and flushed, and the row says that the place was found without the bytes. there: the file had the place. */
leat_err leat_judge_damaged(struct leat_opening *op, struct leat_held *held,
                            const struct leat_row *row, bool there) LEAT_NODISCARD;
/** LOST, with a complaint. scan: the bytes that are left; NULL: nothing is known. */
leat_err leat_judge_lost(struct leat_opening *op, struct leat_held *held,
                         enum leat_segment_state state, const struct leat_scan *scan,
                         const char *format, ...) LEAT_PRINTF(5, 6) LEAT_NODISCARD;
/** A reservation that never started is no part of any log. */
void leat_judge_free(struct leat_store *store, struct leat_held *held);
/** A LOST segment whose row has its prefix id: if the log's owner gets the bytes from another node, there is a place
 * for them. */
void leat_judge_repairable(struct leat_held *held, const struct leat_row *row);

#endif
