/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages and snapshots on their way between voters. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_MESSAGES_H
#define LEAT_COORDINATOR_MEMBERSHIP_MESSAGES_H

#include "base/bytes.h"
#include "coordinator/membership/state.h"
#include "wire/msg.h"

/* Bodies: their fields are listed in bodies.def, docs/cluster-protocol.md explains them. */
struct co_state_said {
    uint8_t cluster_id[16];
    struct leat_msg_string node;
    uint64_t incarnation;
    uint32_t role;
    uint64_t voter_id, term, leader_id, applied;
    struct leat_msg_string address;
    uint32_t name_count;          /* of voters; 0 from earlier versions, which do not name voters */
    struct leat_msg_reader names; /* read: stands at the first */
};
struct co_raft_message {
    uint32_t version, type;
    uint64_t from, to;
    struct raft_message message;
};
struct co_install_said {
    uint64_t from, to;
    uint8_t version;
    uint64_t term, last_index, last_term, conf_index;
    struct leat_msg_bin conf;
    uint64_t total, offset;
};
struct co_form_voter {
    uint64_t voter_id;
    struct leat_msg_string address;
};
struct co_form_said {
    uint8_t cluster_id[16];
    uint32_t count;
};
struct co_feed_said {
    uint64_t from;
};
struct co_entries_said {
    uint64_t first;
    uint32_t count;
};
struct co_snapshot_said {
    uint64_t index, total, offset;
};
struct co_join_said {
    uint8_t cluster_id[16];
    uint64_t voter_id;
};
struct co_admin_said {
    bool replace;
    struct leat_msg_string node;
};
struct co_ping_said {
    bool leads, crashed, deaf;
    uint64_t term, incarnation, applied, number;
};
struct co_voter_kept {
    uint64_t voter_id;
    uint8_t cluster_id[16];
};

#define LEAT_ROWS "coordinator/membership/bodies.def"
#include "wire/rows_declare.h"

/* Before each entry in a payload: little-endian, all fields or the first two (docs/cluster-protocol.md). */
struct co_entry_head {
    uint32_t bytes, type; /* of the entry that follows; enum raft_entry_type */
    uint64_t term;
};
enum {
    CO_ENTRIES_HEAD_BYTES = 8, /* of ENTRIES: bytes, type */
    CO_RAFT_HEAD_BYTES = 16,   /* of RAFT: all fields */
};

static inline void co_entry_head_write(uint8_t *out, size_t count, const struct co_entry_head *head)
{
    leat_put_le32(out, head->bytes);
    leat_put_le32(out + 4, head->type);
    if (count == CO_RAFT_HEAD_BYTES) leat_put_le64(out + 8, head->term);
}
static inline struct co_entry_head co_entry_head_read(const uint8_t *at, size_t count)
{
    return (struct co_entry_head){.bytes = leat_get_le32(at),
                                  .type = leat_get_le32(at + 4),
                                  .term = count == CO_RAFT_HEAD_BYTES ? leat_get_le64(at + 8) : 0};
}

/* codec.c */
/** Control body of a message (not of a snapshot), and how many payload bytes follow. */
void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message);
size_t co_message_payload_bytes(const struct raft_message *message);
void co_message_payload(const struct raft_message *message, uint8_t *out);
/** Checked and bounded. On success entries are raft's memory. *out_to: the addressed voter. */
leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to) LEAT_NODISCARD;

/* raft_transport.c */
void co_raft_send(struct leat_coordinator *coordinator, const struct raft_message *message);
void co_raft_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                  const struct leat_frame *frame);

/* install.c */
void co_install_send(struct leat_coordinator *coordinator, const struct raft_message *message);
/** Adds the next chunk after *have bytes; `total` bytes were announced. Memory grows with the bytes that have come. */
leat_err co_chunk_add(uint8_t **bytes, size_t *have, size_t total,
                      const struct leat_frame *frame) LEAT_NODISCARD;
void co_install_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                     const struct leat_frame *frame, const struct leat_link_ticket *ticket);
void co_install_peer_gone(struct leat_coordinator *coordinator, struct co_peer *peer);
void co_install_fini(struct leat_coordinator *coordinator);

#endif
