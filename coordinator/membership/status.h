/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state, for operators. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_STATUS_H
#define LEAT_COORDINATOR_MEMBERSHIP_STATUS_H

#include "coordinator/membership/state.h"

/* status.c */
/** Logs which voters this start waits for. */
void co_wait_tell(struct leat_coordinator *coordinator, uint64_t now_us);
/** Why requests that wait for the leader get no answer, and what helps: for the requester. before: the text's
 * beginning. */
void co_leader_lacks_tell(struct leat_coordinator *coordinator, const char *before, char *out,
                          size_t bytes);

#endif
