/* SPDX-License-Identifier: Apache-2.0 */
/* What is committed takes effect here. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_APPLIED_H
#define LEAT_COORDINATOR_MEMBERSHIP_APPLIED_H

#include "coordinator/membership/state.h"

/* applied.c */
leat_err co_apply(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Replace the tables, then tell what is different. */
leat_err co_restore(struct leat_coordinator *coordinator, const uint8_t *bytes, size_t count);
/** Tell of all nodes and streams. */
void co_tables_tell(struct leat_coordinator *coordinator);

#endif
