/* SPDX-License-Identifier: Apache-2.0 */
/* The replicas of a node that a recovery may ask for. Private to broker/. */
#ifndef LEAT_BROKER_OWNERSHIP_FILTER_H
#define LEAT_BROKER_OWNERSHIP_FILTER_H

#include "coordinator/coordinator.h"

/** Keep, in place and in order, the rows that say where one log ends: all open replicas; of closed segments the
 * segment that the record names, the highest, the highest that may be left of an opened log
 * (leat_tail_may_be_left()), and the segments right before a segment without records; of lost segments the last.
 * rows: of this log, ascending by segment. Returns how many rows are kept. Thread: any. Allocates: never. */
size_t leat_rows_filter(struct leat_replica_row *rows, size_t count,
                        const struct leat_log_record *record);

#endif
