/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to CLUSTER_STATUS, read: for leat cluster status and for the benchmark of recovery. */
#ifndef LEAT_TOOLS_LEAT_CLUSTER_H
#define LEAT_TOOLS_LEAT_CLUSTER_H

#include "tools/leat/cli.h"
#include "wire/verdict.h"

/** Ask. Says what is wrong unless quiet; returns an exit code, and the answer is held only when that is 0: what is
 * read of it points into it. */
int cli_cluster_get(struct leat_cluster_told *cluster, struct cli_answer *answer, bool quiet);
/** An array of the first count rows that the reader stands at: logs, and why. */
void cli_cluster_logs_json(struct leat_msg_reader reader, uint32_t count);
void cli_passed_json(struct leat_msg_reader reader, uint32_t count);
/** What it was that a start has passed over in a log, for people, without the log's name. */
void cli_passed_print(const struct leat_msg_passed *passed);

#endif
