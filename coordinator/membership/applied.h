/* SPDX-License-Identifier: Apache-2.0 */
/* What is committed takes effect here. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_APPLIED_H
#define LEAT_COORDINATOR_MEMBERSHIP_APPLIED_H

#include "coordinator/membership/state.h"

/* applied.c */
leat_err co_apply(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Replaces the tables by a snapshot, then calls the options' events. */
leat_err co_restore(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Calls on_node and on_stream for all nodes and streams. */
void co_tables_tell(struct leat_coordinator *coordinator);

#endif
