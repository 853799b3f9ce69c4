/* SPDX-License-Identifier: Apache-2.0 */
/* The other coordinators: links, and look-ups by name, incarnation and voter id. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_PEERS_H
#define LEAT_COORDINATOR_MEMBERSHIP_PEERS_H

#include "coordinator/membership/state.h"

/* peers.c */
leat_err co_peers_init(struct leat_coordinator *coordinator, struct leat_error *error);
void co_peers_fini(struct leat_coordinator *coordinator);
/** Sends the present cluster id and incarnation of this node to links and peers. */
void co_identity_update(struct leat_coordinator *coordinator);
/** Open links to all voters that are known. */
void co_peers_want(struct leat_coordinator *coordinator);
/** Tries the node's address at once, if the node is up and its link is down. */
void co_peer_retry(struct leat_coordinator *coordinator, const struct leat_node_info *node);
void co_address_want(struct leat_coordinator *coordinator, const char *address);
/** Takes a peer's STATE. If the STATE is malformed, or names another node, the peer's link is cut. */
void co_state_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                   const struct leat_frame *frame);

/* who.c */
struct co_peer *co_peer_of_voter(struct leat_coordinator *coordinator, uint64_t id);
struct co_peer *co_peer_of_node(struct leat_coordinator *coordinator, const char *name);
struct co_peer *co_peer_of_address(struct leat_coordinator *coordinator, const char *address);
enum leat_voter_role co_role(const struct leat_coordinator *coordinator);

/* serve.c: all but recovery */
extern const struct co_peer_events co_serve_events;

#endif
