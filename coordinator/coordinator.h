/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: a replicated state machine on C-Raft (raft_step), one voter in the embedded
 * default, a few in a cluster.
 *
 * Its tables: nodes and incarnations, streams and stream ids, owner and epoch per streamlet, for each log either the
 * stamp of the owner's first segment or a tail record, and producer id blocks. No append waits for the coordinator.
 * One actor (LEAT_ACTOR_COORDINATOR) on every node; other actors send requests and get answers by messages.
 *
 * A node that is no voter is a learner: its actor applies the same entries and reports the same events. Requests may
 * be made on any node. A request goes to the leader as an entry with an id, is sent again when the leader is lost,
 * takes effect once, and is answered when this node has applied the entry: the result is in this node's tables
 * already.
 */
#ifndef LEAT_COORDINATOR_COORDINATOR_H
#define LEAT_COORDINATOR_COORDINATOR_H

#include "coordinator/membership/coordinate.h"

/** Open raft's files in "raft/", form a cluster of one node if the directory is new and no voters are named. Blocks.
 * The actor then goes on by events. A damaged log is named and refused, never shortened. options: copied; its strings
 * and the hub must outlive the coordinator. */
leat_err leat_coordinator_open(const struct leat_env *env,
                               const struct leat_coordinator_options *options,
                               struct leat_coordinator **out_coordinator,
                               struct leat_error *error) LEAT_NODISCARD;
void leat_coordinator_close(struct leat_coordinator **coordinator);
/** Caller's storage (large). Thread: coordinator. */
void leat_coordinator_status(const struct leat_coordinator *coordinator,
                             struct leat_coordinator_status *out_status);
/* The same from another actor: mailed there and back, as a request. */
struct leat_coordinator_ask {
    struct leat_mail mail;
    struct leat_coordinator_status *status; /* filled; borrowed until on_done */
    void (*on_done)(struct leat_coordinator_ask *ask);
    void *owner;
    unsigned from; /* the coordinator's */
};
void leat_coordinator_status_ask(const struct leat_post *post, struct leat_coordinator_ask *ask);
/** The state of a log in the tables; false: there is no such log. In on_stream: the state after the entry that is
 * reported. Thread: coordinator. */
bool leat_coordinator_log(const struct leat_coordinator *coordinator, struct leat_log_ref ref,
                          struct leat_log_record *out_record, struct leat_epoch *out_epoch);
/** The cluster's id (made when it formed). Thread: coordinator, or after on_ready. */
void leat_coordinator_cluster_id(const struct leat_coordinator *coordinator, uint8_t out_id[16]);
extern const struct leat_actor_ops leat_coordinator_actor;

#endif
