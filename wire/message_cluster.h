/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies about the cluster as a whole: what an operator asks. See wire/message.h.
 *
 * CLUSTER_STATUS []
 *   Answer [cluster id bin16, node, role, why, term, applied index, leader address, streams, logs,
 *           [voter…], [node…], recovery]
 *     node (the first): who answers. role: of its coordinator, a word. why: what is wrong, or "".
 *     voter  [address, votes, reachable, last index]
 *     node   [name, incarnation, address, node address, rack, cores, state, draining,
 *             memory bytes, streamlets, report]
 *     report [known, why, pool limit, pool used, replicas limit, replicas used, replicas unflushed,
 *             logs, logs under-replicated, below min copies, suspended, segments under-replicated,
 *             misplaced, [[node, up, transport, replicas, load bytes]…], trouble, logs in trouble,
 *             [[stream id, streamlet, log, stream, why]…], logs with bytes passed over,
 *             [[stream id, streamlet, log, stream, bytes, segments, segment, offset]…]]
 *             what the node says of itself; known false: it was not asked, or did not answer: why
 *     trouble   of the node as a whole (its disk is full), or "". The logs: those it owns of which records
 *               can't be read or that take no appends, some of them; and those where a start has passed over bytes
 *               behind the end of a segment: how many, in how many segments, the last one, and its end offset
 *     state  1 up, 2 down, 3 gone
 *     recovery [known, phase, streamlets, logs, decided, nodes asked, nodes answered, copies, copies
 *             under way, age us, ended, last: recovered, its us, since the crash us, waiting,
 *             [[stream id, streamlet, log, stream, why]…]], of the last leader that was heard
 *     phase  0 nothing is under way, 1 collecting, 2 preparing, 3 committing
 * NODE_REPORT [with peers]
 *   Answer report, of the node that is asked
 * NODE_CHANGE [what, node name]
 *   what: 1 drain (gets nothing new), 2 end of that, 3 let it vote, 4 its voter has lost its data
 *   Answer []
 * STREAMLET_MOVE [stream name, streamlet, node name]: hand it over to that node
 *   Answer [], when that is committed
 */
#ifndef LEAT_WIRE_MESSAGE_CLUSTER_H
#define LEAT_WIRE_MESSAGE_CLUSTER_H

#include "wire/message.h"

struct leat_msg_cluster {
    uint8_t cluster_id[16];
    struct leat_msg_string node, role, why, leader_address;
    uint64_t term, applied_index, streams, logs;
    bool has_recovery; /* read: it stands behind the nodes */
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
    /* Read: stands at the first peer, whose rows the reader itself has left behind. Written: the
     * peers follow. */
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
    struct leat_msg_node_report report; /* read only: the writer appends it behind the row */
};
/** The head, up to and without the two lists; each is written as an array of the elements below. */
void leat_msg_cluster_write(struct leat_msg_writer *writer, const struct leat_msg_cluster *cluster);
void leat_msg_cluster_read(struct leat_msg_reader *reader, struct leat_msg_cluster *out);
void leat_msg_voter_write(struct leat_msg_writer *writer, const struct leat_msg_voter *voter);
void leat_msg_voter_read(struct leat_msg_reader *reader, struct leat_msg_voter *out);
void leat_msg_cluster_node_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_cluster_node *node);
void leat_msg_cluster_node_read(struct leat_msg_reader *reader, struct leat_msg_cluster_node *out);
void leat_msg_node_report_write(struct leat_msg_writer *writer,
                                const struct leat_msg_node_report *report);
void leat_msg_node_report_read(struct leat_msg_reader *reader, struct leat_msg_node_report *out);
/** Behind the peers; leat_msg_recovery_row_write() for each of troubled_count follows. */
void leat_msg_node_report_end_write(struct leat_msg_writer *writer,
                                    const struct leat_msg_node_report *report);
/** Behind these; leat_msg_passed_write() for each of passed_count follows. */
void leat_msg_node_report_passed_write(struct leat_msg_writer *writer,
                                       const struct leat_msg_node_report *report);
void leat_msg_passed_write(struct leat_msg_writer *writer, const struct leat_msg_passed *row);
void leat_msg_passed_read(struct leat_msg_reader *reader, struct leat_msg_passed *out);
void leat_msg_report_peer_write(struct leat_msg_writer *writer,
                                const struct leat_msg_report_peer *peer);
void leat_msg_report_peer_read(struct leat_msg_reader *reader, struct leat_msg_report_peer *out);

void leat_msg_recovery_write(struct leat_msg_writer *writer,
                             const struct leat_msg_recovery *recovery);
void leat_msg_recovery_read(struct leat_msg_reader *reader, struct leat_msg_recovery *out);
void leat_msg_recovery_row_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_recovery_row *row);
void leat_msg_recovery_row_read(struct leat_msg_reader *reader, struct leat_msg_recovery_row *out);

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
void leat_msg_node_change_encode(struct leat_msg_writer *writer,
                                 const struct leat_msg_node_change *change);
leat_err leat_msg_node_change_decode(const void *bytes, size_t count,
                                     struct leat_msg_node_change *out) LEAT_NODISCARD;

struct leat_msg_streamlet_move {
    struct leat_msg_string stream;
    uint32_t streamlet;
    struct leat_msg_string node;
};
void leat_msg_streamlet_move_encode(struct leat_msg_writer *writer,
                                    const struct leat_msg_streamlet_move *move);
leat_err leat_msg_streamlet_move_decode(const void *bytes, size_t count,
                                        struct leat_msg_streamlet_move *out) LEAT_NODISCARD;

#endif
