/* SPDX-License-Identifier: Apache-2.0 */
/* What recovery uses of this library: the tables, facts of this node, its peers, the way of a request to the leader.
 * Thread: the coordinator's. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_SERVICES_H
#define LEAT_COORDINATOR_MEMBERSHIP_SERVICES_H

#include "coordinator/membership/coordinate.h"

struct co_peer;
struct co_recovery;
struct leat_machine;

/* Kinds of frames between coordinators: docs/cluster-protocol.md. Permitted senders: membership/rights.c. */
enum co_kind {
    CO_KIND_STATE = LEAT_NODE_KIND_COORDINATOR, /* 272 */
    CO_KIND_RAFT = 273,
    CO_KIND_INSTALL = 274,
    CO_KIND_FORM = 275,
    CO_KIND_SUBMIT = 276,
    CO_KIND_FEED = 277,
    CO_KIND_ENTRIES = 278,
    CO_KIND_SNAPSHOT = 279,
    CO_KIND_JOIN = 280,
    CO_KIND_ADMIN = 281,
    CO_KIND_PING = 282,
    CO_KIND_COLLECT = 283,
    CO_KIND_PULL = 284,
    CO_KIND_LOST = 285,
    CO_KIND_PONG = 286,
    CO_KIND_RECOVERY = 287,
};
enum { CO_TICK_US = 100 * 1000 /* of a clustered coordinator */ };

/* ---- services.c: this node ---- */

uint64_t co_now(const struct leat_coordinator *coordinator);
uint64_t co_random(const struct leat_coordinator *coordinator);
/** Raft runs here, and this voter leads. */
bool co_leads(const struct leat_coordinator *coordinator);
/** Does this node have an address for other nodes? false: a server alone. */
bool co_clustered(const struct leat_coordinator *coordinator);
/** Everything that was committed before this node's start is applied here. */
bool co_ready(const struct leat_coordinator *coordinator);
/** The index of the last entry that is applied here. */
uint64_t co_applied(const struct leat_coordinator *coordinator);
/** This node's incarnation; 0: not known yet. */
uint64_t co_incarnation(const struct leat_coordinator *coordinator);
/** The tables, as this node has applied them. */
struct leat_machine *co_tables(const struct leat_coordinator *coordinator);
const struct leat_coordinator_options *co_options(const struct leat_coordinator *coordinator);
/** What recovery keeps with this coordinator, from co_recovery_set(); NULL: nothing. */
struct co_recovery *co_recovery_of(const struct leat_coordinator *coordinator);
void co_recovery_set(struct leat_coordinator *coordinator, struct co_recovery *recovery);

/* ---- services.c: its peers ---- */

/** To answer a request by its ticket. */
struct leat_links *co_links(const struct leat_coordinator *coordinator);
/** NULL: not connected. */
struct leat_link *co_peer_link(const struct co_peer *peer);
/** As the peer's STATE says; 0: it has said none, or has no vote. */
uint64_t co_peer_voter_id(const struct co_peer *peer);
/** Sends the message to all peers that are reached; it may be lost. */
void co_peers_tell(struct leat_coordinator *coordinator, enum co_kind kind, const uint8_t *bytes,
                   size_t count);

/* peers.c */
/** Sends this node's STATE to all peers; always: also if nothing has changed. */
void co_state_tell(struct leat_coordinator *coordinator, bool always);
/* who.c */
struct co_peer *co_peer_of_incarnation(struct leat_coordinator *coordinator, uint64_t incarnation);
/** The leader, by the peers' states; NULL: none, or this node. */
struct co_peer *co_peer_leader(struct leat_coordinator *coordinator);
/* self.c */
bool co_same_cluster(const struct leat_coordinator *coordinator, const struct co_peer *peer);
/* feed.c */
/** The leader has applied this entry: if this node is a learner that lacks the entry, it asks the leader. */
void co_feed_behind(struct leat_coordinator *coordinator, struct co_peer *leader, uint64_t index);
/* queue.c */
/** A request of the coordinator's own. */
void co_request_queue(struct leat_coordinator *coordinator, struct leat_coordinate *request);

#endif
