/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers to CLUSTER_STATUS and STREAM_DESCRIBE say of how well things are: the one judgement, of which the
 * exit code of `leat cluster status` and the words of `leat stream describe` are made. Pure. */
#ifndef LEAT_WIRE_VERDICT_H
#define LEAT_WIRE_VERDICT_H

#include "wire/message_cluster.h"

enum { LEAT_TOLD_VOTERS_MAX = 64, LEAT_TOLD_NODES_MAX = 1024 };

/* The answer to CLUSTER_STATUS. Texts and rows are views of its bytes. */
struct leat_cluster_told {
    struct leat_msg_cluster head;
    struct leat_msg_voter voters[LEAT_TOLD_VOTERS_MAX];
    struct leat_msg_cluster_node nodes[LEAT_TOLD_NODES_MAX];
    uint32_t voter_count, node_count;
    struct leat_msg_recovery recovery;
};
/** false: it can't be read. Thread: any. */
bool leat_cluster_told_read(struct leat_msg_reader *reader, struct leat_cluster_told *out);
/** The only node was not started with --coordinators: it has no address for other nodes. */
bool leat_cluster_told_alone(const struct leat_cluster_told *told);
/** A node is up, and what its logs lack is not known. */
bool leat_node_told_unheard(const struct leat_msg_cluster_node *node);
/** No operator needs to act: no node is down, full or not heard, each voter can be reached, and no log lacks copies
 * or records, or has a torn tail that a start cut off. */
bool leat_cluster_told_well(const struct leat_cluster_told *told);

/** A row of STREAM_DESCRIBE in a word: "ok", "waiting", "damaged", "stopped", "full" (the disk of its node) or
 * "unknown" (the log is not served yet, or its owner was not heard). */
const char *leat_log_told_state(const struct leat_msg_log_info *log);
/** As far as anything is known that would refuse appends. */
bool leat_log_told_takes_appends(const struct leat_msg_log_info *log);

#endif
