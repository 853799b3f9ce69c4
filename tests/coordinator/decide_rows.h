/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends by replicas as nodes tell of them: metadata/tail.h, asked with such rows. For tests. */
#ifndef LEAT_TESTS_COORDINATOR_DECIDE_ROWS_H
#define LEAT_TESTS_COORDINATOR_DECIDE_ROWS_H

#include "coordinator/metadata/tail.h"

/* The nodes that reported on one log. */
struct co_hearing {
    const uint32_t *nodes; /* of each row, whose it is */
    uint32_t enough;       /* most of the log's copies: so many are not damaged at once */
    bool all;              /* nobody is left who may have more of it */
};

/** out_holds[i]: rows[i] has the bytes of the tail that was decided. */
static inline void co_decide_replicas(struct leat_log_ref log, const struct leat_log_record *record,
                                      const struct leat_replica_row *const *rows, size_t count,
                                      const struct co_hearing *heard,
                                      struct leat_log_decision *out_decision, bool *out_holds)
{
    const struct leat_tail_question question = {record, heard->enough, heard->all};
    struct leat_tail_row of[LEAT_TAIL_ROWS_MAX] = {{0}};
    struct leat_tail tail;
    for (size_t i = 0; i < count; i++)
        of[i] = leat_tail_row_of(rows[i], heard->nodes[i]);
    leat_tail_decide(&question, of, count, &tail);
    for (size_t i = 0; i < count; i++)
        out_holds[i] = leat_tail_holds(&tail, i);
    *out_decision = (struct leat_log_decision){
        .log = log, .kind = tail.ends ? LEAT_DECIDED_TAIL : LEAT_DECIDED_WAIT, .tail = tail.end};
    if (!tail.ends) leat_tail_text(&tail, record, out_decision->why);
}

#endif
