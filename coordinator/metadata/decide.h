/* Where a log ends: by what one node holds of its own (decide.c), by what many hold (decide_replicas.c). Pure. */
#ifndef LEAT_COORDINATOR_METADATA_DECIDE_H
#define LEAT_COORDINATOR_METADATA_DECIDE_H

#include "coordinator/metadata/records.h"

/**
 * Decide where one log ends. Pure.
 * record: what the coordinator holds. marks: what was found (NULL: nothing).
 */
void leat_decide_tail(struct leat_log_ref log, const struct leat_log_record *record,
                      const struct leat_log_marks *marks, struct leat_log_decision *out_decision);

/* Who was heard of one log. */
struct co_hearing {
    const uint32_t *nodes; /* of each row, whose it is */
    uint32_t enough;       /* most of the log's copies: so many are not damaged at once */
    bool all;              /* nobody is left who may have more of it */
};
/** The row's replica has the bytes that the tail names, whatever follows. */
bool co_row_holds(const struct leat_tail_record *tail, const struct leat_replica_row *row);
/** The row is of the segment in which the log was decided to end (leat_log_decided()), by another writer than the
 * record's epoch. */
bool co_row_lies_at_end(const struct leat_log_record *record, const struct leat_replica_row *row);
/** Where one log ends, by what many nodes hold of it (rows: its, any order). out_holds[i]: rows[i] has
 * the bytes of the tail that was decided. */
void co_decide_replicas(struct leat_log_ref log, const struct leat_log_record *record,
                        const struct leat_replica_row *const *rows, size_t count,
                        const struct co_hearing *heard, struct leat_log_decision *out_decision,
                        bool *out_holds);

#endif
