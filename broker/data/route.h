/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log is served, and why not. Thread: a core. */
#ifndef LEAT_BROKER_DATA_ROUTE_H
#define LEAT_BROKER_DATA_ROUTE_H

#include "broker/data/partition.h"

struct leat_node;

/** Which log is it, does it live here, is the epoch right? Fills error (may be NULL). out_home: its
 * core. An isolated node answers NOT_OWNER: other nodes know the owner. */
leat_err leat_partition_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                              uint32_t *out_home, struct leat_error *error) LEAT_NODISCARD;
/** The same under whatever epoch: for what is true under any. */
leat_err leat_partition_place(struct leat_core *core, struct leat_log_ref ref, uint32_t *out_home,
                              struct leat_error *error) LEAT_NODISCARD;
/** Why a log's own core does not serve it: leat_partition_absent()'s code, in words. */
const char *leat_partition_absent_words(leat_err absent);
/** Why no request finds this log: STARTING if it comes, or comes again; else UNKNOWN_STREAM. */
leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref);

#endif
