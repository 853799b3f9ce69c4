/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends by a single node's own segments. Pure; metadata/tail.h has the rule for several nodes. */
#ifndef LEAT_COORDINATOR_METADATA_DECIDE_H
#define LEAT_COORDINATOR_METADATA_DECIDE_H

#include "coordinator/metadata/records.h"

/**
 * Decide where one log ends. Pure.
 * record: what the coordinator holds. marks: what was found (NULL: nothing).
 */
void leat_decide_tail(struct leat_log_ref log, const struct leat_log_record *record,
                      const struct leat_log_marks *marks, struct leat_log_decision *out_decision);

#endif
