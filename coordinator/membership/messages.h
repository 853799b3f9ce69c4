/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages and snapshots on their way between voters. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_MESSAGES_H
#define LEAT_COORDINATOR_MEMBERSHIP_MESSAGES_H

#include "coordinator/membership/state.h"

/* codec.c */
/** Control body of a message (not of a snapshot), and how many payload bytes follow. */
void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message);
size_t co_message_payload_bytes(const struct raft_message *message);
void co_message_payload(const struct raft_message *message, uint8_t *out);
/** Checked and bounded. On success entries are raft's memory. *out_to: for whom it is. */
leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to) LEAT_NODISCARD;

/* letters.c */
void co_raft_send(struct leat_coordinator *coordinator, const struct raft_message *message);
void co_raft_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* install.c */
void co_install_send(struct leat_coordinator *coordinator, const struct raft_message *message);
/** The next chunk behind *have bytes of `total` that were announced: room grows with what has come. */
leat_err co_chunk_add(uint8_t **bytes, size_t *have, size_t total,
                      const struct leat_frame *frame) LEAT_NODISCARD;
void co_install_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket);
void co_install_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_install_fini(struct leat_coordinator *coordinator);

#endif
