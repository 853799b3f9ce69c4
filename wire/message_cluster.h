/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies about the cluster as a whole: what an operator asks. Their fields: bodies_cluster.def. */
#ifndef LEAT_WIRE_MESSAGE_CLUSTER_H
#define LEAT_WIRE_MESSAGE_CLUSTER_H

#include "wire/message.h"

struct leat_msg_cluster {
    uint8_t cluster_id[16];
    struct leat_msg_string node, role, why, leader_address;
    uint64_t term, applied_index, streams, logs;
    bool has_recovery; /* read: it comes after the nodes */
};
struct leat_msg_recovery {
    bool known;
    uint64_t phase, streamlets, logs, decided, nodes_asked, nodes_answered, copies, copies_open,
        age_us, ended, last_recovered, last_us, last_since_crash_us, waiting;
    uint32_t row_count; /* as with the peers of a report */
    struct leat_msg_reader rows;
};
struct leat_msg_recovery_row { /* also of a report: a log in trouble */
    uint64_t stream_id, streamlet, log;
    struct leat_msg_string stream, why;
};
struct leat_msg_passed { /* of a report: a log where a start has passed over bytes */
    uint64_t stream_id, streamlet, log;
    struct leat_msg_string stream;
    uint64_t bytes, segments, segment, offset;
};
struct leat_msg_voter {
    struct leat_msg_string address;
    bool votes, reachable;
    uint64_t last_index;
};
struct leat_msg_report_peer {
    struct leat_msg_string node, transport; /* "": nothing is copied there */
    bool up;
    uint64_t replicas, load_bytes;
};
struct leat_msg_node_report {
    bool known;
    struct leat_msg_string why;
    uint64_t pool_limit, pool_used, replicas_limit, replicas_used, replicas_unflushed, logs,
        logs_under_replicated, logs_below_min, logs_suspended, segments_under_replicated,
        segments_misplaced;
    uint32_t peer_count;
    /* Read: a cursor at the first peer; the main reader has skipped the peers. Written: the peers follow. */
    struct leat_msg_reader peers;
    /* "" and zeros from a node that does not say. */
    struct leat_msg_string trouble;
    uint64_t logs_troubled;
    uint32_t troubled_count; /* of logs_troubled; as with the peers */
    struct leat_msg_reader troubled;
    uint64_t logs_passed; /* as logs_troubled */
    uint32_t passed_count;
    struct leat_msg_reader passed;
};
struct leat_msg_cluster_node {
    struct leat_msg_string name, address, node_address, rack;
    uint64_t incarnation, cores, state, memory_bytes, streamlets;
    bool draining;
    struct leat_msg_node_report report; /* read only: the writer appends it after the row */
};
enum leat_node_change {
    LEAT_NODE_CHANGE_DRAIN = 1,
    LEAT_NODE_CHANGE_UNDRAIN = 2,
    LEAT_NODE_CHANGE_ADD_VOTER = 3,
    LEAT_NODE_CHANGE_REPLACE = 4,
};
struct leat_msg_node_change {
    uint32_t what;
    struct leat_msg_string name;
};
struct leat_msg_streamlet_move {
    struct leat_msg_string stream;
    uint32_t streamlet;
    struct leat_msg_string node;
};
struct leat_msg_report_ask {
    bool with_peers;
};

#define LEAT_ROWS "wire/bodies_cluster.def"
#include "wire/rows_declare.h"

/* By hand. Of a cluster the head, up to and without the two lists; of a node what stands before the report. */
void leat_msg_cluster_write(struct leat_msg_writer *writer, const struct leat_msg_cluster *cluster);
void leat_msg_cluster_read(struct leat_msg_reader *reader, struct leat_msg_cluster *out);
void leat_msg_cluster_node_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_cluster_node *node);
void leat_msg_cluster_node_read(struct leat_msg_reader *reader, struct leat_msg_cluster_node *out);
/** A report is written in parts: up to its peers; after the peers, up to the rows of logs in trouble; after these
 * rows, up to the rows of logs with passed_bytes. */
void leat_msg_node_report_end_write(struct leat_msg_writer *writer,
                                    const struct leat_msg_node_report *report);
void leat_msg_node_report_passed_write(struct leat_msg_writer *writer,
                                       const struct leat_msg_node_report *report);

#endif
