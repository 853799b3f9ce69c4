/* SPDX-License-Identifier: Apache-2.0 */
/* Of the replicas that a node holds of a log, those that a recovery may ask for. Private to broker/. */
#ifndef LEAT_BROKER_OWNERSHIP_FILTER_H
#define LEAT_BROKER_OWNERSHIP_FILTER_H

#include "coordinator/coordinator.h"

/** Keep, in place and in order, what says where one log ends: all marks; of closed segments the one that the record
 * names, the highest, the highest that may be left of an opened log (leat_tail_may_be_left()), and those right in front
 * of one without records; of lost ones the last. rows: of that log,
 * ascending by segment. Returns how many are kept. Thread: any. Allocates: never. */
size_t leat_rows_filter(struct leat_replica_row *rows, size_t count,
                        const struct leat_log_record *record);

#endif
