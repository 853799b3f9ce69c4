/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery as the coordinator's actor (coordinator/coordinator.c) calls it. Thread: the coordinator's. */
#ifndef LEAT_COORDINATOR_RECOVERY_RECOVERY_H
#define LEAT_COORDINATOR_RECOVERY_RECOVERY_H

#include "coordinator/membership/coordinate.h"

struct co_peer;

/** Nothing is done for a server alone. */
leat_err co_recovery_init(struct leat_coordinator *coordinator) LEAT_NODISCARD;
/** Drops the attempt, and all COLLECTs and PULLs that the broker has not answered. */
void co_recovery_close(struct leat_coordinator *coordinator);
/** The work at the end of a turn. */
void co_recovery_turn_end(struct leat_coordinator *coordinator);
/** A message of recovery from a peer that has the right to send it: COLLECT, PULL, RECOVERY. */
void co_recovery_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket);
/** What this node knows of recoveries, for operators. */
void co_report_fill(struct leat_coordinator *coordinator, struct leat_recovery_report *out);

#endif
