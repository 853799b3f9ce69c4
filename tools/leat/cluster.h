/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to CLUSTER_STATUS, read: for leat cluster status and for the benchmark of recovery. */
#ifndef LEAT_TOOLS_LEAT_CLUSTER_H
#define LEAT_TOOLS_LEAT_CLUSTER_H

#include "tools/leat/cli.h"
#include "wire/verdict.h"

/** Ask. Prints the error unless quiet; returns an exit code. The answer is kept only for exit code 0: the result
 * points into the answer. */
int cli_cluster_get(struct leat_cluster_told *cluster, struct cli_answer *answer, bool quiet);
/** An array of the first count rows that the reader stands at: logs, and why. */
void cli_cluster_logs_json(struct leat_msg_reader reader, uint32_t count);
void cli_passed_json(struct leat_msg_reader reader, uint32_t count);
/** Prints the passed_bytes of a log, without the log's name. */
void cli_passed_print(const struct leat_msg_passed *passed);

#endif
