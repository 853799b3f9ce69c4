/* The answer to CLUSTER_STATUS, read: for leat cluster status and for the benchmark of recovery. */
#ifndef LEAT_TOOLS_LEAT_CLUSTER_H
#define LEAT_TOOLS_LEAT_CLUSTER_H

#include "tools/cli.h"
#include "wire/message_cluster.h"

enum { CLI_CLUSTER_VOTERS_MAX = 64, CLI_CLUSTER_NODES_MAX = 1024 };
struct cli_cluster {
    struct cli_answer answer; /* views point into it: cli_answer_fini() */
    struct leat_msg_cluster head;
    struct leat_msg_voter voters[CLI_CLUSTER_VOTERS_MAX];
    struct leat_msg_cluster_node nodes[CLI_CLUSTER_NODES_MAX];
    uint32_t voter_count, node_count;
    struct leat_msg_recovery recovery;
};
/** Ask. Says what is wrong unless quiet; returns an exit code, and nothing is held when it is not 0. */
int cli_cluster_get(struct cli_cluster *cluster, bool quiet);
/** An array of the first count rows that the reader stands at: logs, and why. */
void cli_cluster_logs_json(struct leat_msg_reader reader, uint32_t count);
void cli_passed_json(struct leat_msg_reader reader, uint32_t count);
/** What it was that a start has passed over in a log, for people, without the log's name. */
void cli_passed_print(const struct leat_msg_passed *passed);

#endif
