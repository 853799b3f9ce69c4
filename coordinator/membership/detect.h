/* SPDX-License-Identifier: Apache-2.0 */
/* Failure detection: pings, suspicion, crashes, and the standing of this node. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_DETECT_H
#define LEAT_COORDINATOR_MEMBERSHIP_DETECT_H

#include "coordinator/membership/state.h"

/* standing.c */
void co_standing_set(struct leat_coordinator *coordinator, enum leat_standing standing);
void co_standing_advance(struct leat_coordinator *coordinator);
bool co_others_expected(const struct leat_coordinator *coordinator);
unsigned co_voters_count(const struct leat_coordinator *coordinator);
void co_detect_node(struct leat_coordinator *coordinator, const struct leat_node_info *node);
void co_ping_send(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_ping_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);
void co_pong_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* probe.c */
void co_probes_init(struct leat_coordinator *coordinator);
void co_probes_fini(struct leat_coordinator *coordinator);
/** If a process listens at the address nothing happens; if none does: co_detect_refused(). */
void co_probe_start(struct leat_coordinator *coordinator, const char *address, uint64_t incarnation,
                    uint64_t voter_id);
void co_probes_expire(struct leat_coordinator *coordinator, uint64_t now_us);

/* detect.c */
void co_detect_init(struct leat_coordinator *coordinator);
void co_detect_start(struct leat_coordinator *coordinator);
void co_detect_fini(struct leat_coordinator *coordinator);
uint64_t co_suspect_us(const struct leat_coordinator *coordinator);
uint64_t co_confirm_us(const struct leat_coordinator *coordinator);
bool co_peer_heard_of(const struct co_peer *peer);
/** No process listens at the address of this incarnation, and of this voter if it was the leader (else 0). */
void co_detect_refused(struct leat_coordinator *coordinator, uint64_t incarnation,
                       uint64_t voter_id);
/** The peer says that it leads and hears no majority; ignored unless the peer is the leader. */
void co_detect_deaf(struct leat_coordinator *coordinator, const struct co_peer *peer);
void co_detect_leads(struct leat_coordinator *coordinator);
/** A connection that was up has ended; the peer's last state is still there. */
void co_detect_peer_down(struct leat_coordinator *coordinator, const struct co_peer *peer);
void co_lost_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

#endif
