/* SPDX-License-Identifier: Apache-2.0 */
/* Learners, and the nodes that feed entries to learners. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_FEED_H
#define LEAT_COORDINATOR_MEMBERSHIP_FEED_H

#include "coordinator/membership/state.h"

/* feed.c */
void co_feed_wanted(struct leat_coordinator *coordinator, struct co_peer *peer, uint64_t from);
void co_feed_advance(struct leat_coordinator *coordinator);
void co_feed_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_feed_tick(struct leat_coordinator *coordinator);
void co_feed_entries(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket);
void co_feed_snapshot(struct leat_coordinator *coordinator, struct co_peer *peer,
                      const struct leat_frame *frame, const struct leat_link_ticket *ticket);

#endif
