/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's actor as coordinator/coordinator.c puts it together: this library's part of its life and of its
 * turns. The part of recovery comes in between. Thread: the coordinator's. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_ACTOR_H
#define LEAT_COORDINATOR_MEMBERSHIP_ACTOR_H

#include "coordinator/membership/coordinate.h"

struct co_peer;

/** COLLECT, PULL or RECOVERY of a peer that has the right to send them. */
typedef void co_recovery_request_fn(struct leat_coordinator *coordinator, struct co_peer *peer,
                                    const struct leat_frame *frame,
                                    const struct leat_link_ticket *ticket);

/** A coordinator that has read nothing yet. options: see leat_coordinator_open(). LEAT_E_CONFIG, LEAT_E_NO_MEMORY. */
leat_err co_create(const struct leat_env *env, const struct leat_coordinator_options *options,
                   co_recovery_request_fn *on_recovery, struct leat_coordinator **out_coordinator,
                   struct leat_error *error) LEAT_NODISCARD;
/** Reads raft's files, opens links. Blocks. After an error: close and destroy it. */
leat_err co_open(struct leat_coordinator *coordinator, struct leat_error *error) LEAT_NODISCARD;
/** No message and no answer comes any more. */
void co_close(struct leat_coordinator *coordinator);
void co_destroy(struct leat_coordinator **coordinator);

void co_wake(struct leat_coordinator *coordinator);
/** A turn ends. false: this server is alone, or the coordinator has failed: recovery has nothing to do. */
bool co_turn_advance(struct leat_coordinator *coordinator);
/** After recovery's part of the turn: peers hear what has changed. */
void co_turn_tell(struct leat_coordinator *coordinator);
/** Asserts what is true between two turns. */
void co_check(const struct leat_coordinator *coordinator);

const struct leat_env *co_env(const struct leat_coordinator *coordinator);
/** All fields but `recovery`. */
void co_status_fill(struct leat_coordinator *coordinator, struct leat_coordinator_status *out);

#endif
