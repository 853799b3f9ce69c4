/* SPDX-License-Identifier: Apache-2.0 */
/* Committed entries, and what a snapshot keeps, as structs: bodies.def lists their fields. What an entry does is in
 * apply_*.c. */
#ifndef LEAT_COORDINATOR_METADATA_ENTRIES_H
#define LEAT_COORDINATOR_METADATA_ENTRIES_H

#include "coordinator/metadata/machine.h"

struct leat_entry_head {
    uint32_t version, kind;
};
struct leat_entry_form {
    uint8_t cluster_id[16];
};
struct leat_entry_create {
    struct leat_msg_string name;
    struct leat_stream_settings settings;
};
struct leat_entry_delete {
    struct leat_msg_string name;
};
struct leat_entry_producer_ids {
    uint32_t count;
};
struct leat_entry_opened {
    uint64_t incarnation;
    uint32_t epoch, version, log_count;
    struct leat_msg_reader logs; /* read: stands at the first */
    bool began;
};
struct leat_entry_node_up {
    struct leat_msg_string name, address, node_address, rack, kafka_address, host;
    struct leat_msg_bin id; /* of the data directory; also empty */
    uint64_t memory_bytes, boot, boot_before;
    uint64_t logs_most; /* that it has memory for; 0: not said */
    uint32_t cores;
};
struct leat_entry_barrier {
    uint8_t nothing;
};
struct leat_entry_request {
    uint64_t session, sequence;
    struct leat_msg_bin command;
};
struct leat_entry_version {
    uint64_t incarnation;
    uint32_t epoch, version, log_count;
};
struct leat_entry_drain {
    struct leat_msg_string name;
    bool draining;
};
struct leat_entry_node_state {
    struct leat_msg_string name;
    uint64_t incarnation;
    uint32_t state;
};
struct leat_entry_crash {
    struct leat_msg_string name;
    uint64_t incarnation;
};
struct leat_entry_change {
    struct leat_msg_string name;
    uint32_t change; /* enum leat_stream_change, or-ed */
    struct leat_stream_settings settings;
};

/* ---- of earlier versions ---- */
struct leat_entry_adopt {
    uint64_t attempt, incarnation, changes, seen;
    uint32_t number;
    bool last, leaves;
    struct leat_msg_bin rows;
};
struct leat_entry_accept_loss {
    struct leat_log_ref log;
    uint64_t segment, next_offset, incarnation;
    uint32_t epoch;
    struct leat_prefix_id prefix_id;
    bool nothing;
};
struct leat_entry_move {
    uint64_t incarnation;
    uint32_t epoch, row_count;
    struct leat_msg_string target;
    struct leat_msg_reader rows; /* stands at the first */
};
struct leat_entry_recover {
    uint64_t attempt;
    uint32_t streamlets;
};

/* ---- the snapshot ---- */
struct leat_kept_streamlet {
    uint64_t owner;
    uint32_t epoch, node;
};
struct leat_kept_log {
    struct leat_machine_log log;
    uint32_t fields;
};
struct leat_kept_stream {
    struct leat_msg_string name;
    struct leat_stream_settings settings;
    uint32_t id, streamlet_count, log_count;
    bool remade;
};
struct leat_kept_machine {
    uint8_t cluster_id[16];
    uint64_t next_incarnation, changes, unowned_changes, staged_attempt;
    int64_t next_producer_id;
    struct leat_msg_bin staged;
    uint32_t next_stream_id, next_epoch, staged_next;
    uint32_t node_count, stream_count, session_count, outcome_count, gone_count, voter_count;
    bool formed;
};

struct leat_assign_row; /* assign.h */
struct leat_assign_entry;

#define LEAT_ROWS "coordinator/metadata/bodies.def"
#include "wire/rows_declare.h"

#endif
