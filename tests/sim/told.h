/* SPDX-License-Identifier: Apache-2.0 */
/* What operators and clients are told. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_TOLD_H
#define LEAT_TESTS_SIM_TOLD_H

#include "base/node_log.h"
#include "tests/sim/scenario.h"

struct leat_log;

enum sim_told_what {
    SIM_TOLD_LOGS,           /* the cluster's status and the streams' descriptions */
    SIM_TOLD_ALL_BUT_COPIES, /* Kafka's metadata, what groups have committed, and the logs' ends, too */
    SIM_TOLD_ALL, /* and how many replicas are in sync, which nodes tell up to five seconds late */
};
/** It is quiet: each node that serves, or only that node, has to tell how things are, in the end; else the seed fails
 * (A13). Where each node is asked, each is also asked for groups by Kafka's protocol. */
void sim_told_look(struct scenario *scenario, const char *when, const struct sim_server *only,
                   enum sim_told_what what);
/* ---- told_round.c ---- */
/** A quiet period begins, with all nodes ready. */
void sim_round_begin(struct scenario *scenario, const char *when);
/** The quiet period ends. */
void sim_round_end(struct scenario *scenario);
/** The seed is over: it had quiet periods, and nodes were asked in each; else the seed fails (A13). */
void sim_rounds_judge(struct scenario *scenario);
/** quiet.c: in some seeds a node is away, or a disk full, with nothing else going on; each node has to tell. */
void sim_quiet_run(struct scenario *scenario);

/* ---- told_node_log.c ---- */
/** A line of a node's log. */
void sim_node_log_line(struct scenario *scenario, enum leat_node_log_level level, const char *line);
/** Of a cluster: no bit has flipped, no power has gone, and no disk has failed, so nothing is damaged. */
bool sim_told_is_unharmed(const struct scenario *scenario);
/** It is quiet from now on, or is not any more. */
void sim_node_log_quiet(bool quiet);
/** The disk of this server is full: a server that has not written so fails the run. Draws nothing. */
void sim_node_log_full_look(struct scenario *scenario, const struct sim_server *server);
/** An operator is to accept the loss of this log, of the scenario's streams: if its owner has the log waiting, the
 * owner has written so into its node log; else the seed fails (A13). */
void sim_node_log_loss_look(struct scenario *scenario, struct leat_log_ref log);
/** What a server tells as missing lies where this log of it has records; else the seed fails (A13). Draws nothing. */
void sim_node_log_front_look(const struct sim_server *server, struct leat_log *log);
/** Each log in trouble has to be named by a line of its owner's; else the seed fails (A13). */
void sim_node_log_look(struct scenario *scenario, const char *when);

#endif
