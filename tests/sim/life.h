/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one log: the history of the log and of its copies, on which node, as a table. Private to the
 * simulator. */
#ifndef LEAT_TESTS_SIM_LIFE_H
#define LEAT_TESTS_SIM_LIFE_H

#include "base/types.h"

struct scenario;

enum sim_life_kind {
    SIM_LIFE_NODE,      /* a node started, serves, died */
    SIM_LIFE_COMMITTED, /* the coordinators' tables: owner, epoch, version */
    SIM_LIFE_DECIDED,   /* ... `offset`: where the log ends, and the next owner goes on */
    SIM_LIFE_RECOVERY,  /* an attempt of recovery that is about this log */
    SIM_LIFE_OWNER,     /* the log at the node that has it: state, segments, where it begins */
    SIM_LIFE_ACKED,     /* `offset`: the end of what its owner has acked */
    SIM_LIFE_COPY,      /* a copy of a segment on another node */
};

struct sim_life_row {
    enum sim_life_kind kind;
    uint64_t at_us, offset;
    const char *node; /* "cluster": of the tables */
    const char *event;
};

/* Caller's, until the seed's end. */
struct sim_life {
    struct leat_log_ref log;                                   /* by the simulator's numbers */
    void (*on_row)(void *arg, const struct sim_life_row *row); /* NULL: lines of a trace alone */
    void *arg;
};

/** Look at the log after each turn of each node from now on. Draws nothing and changes nothing: a seed goes as it would
 * without. One log in a process. */
void sim_life_start(struct scenario *scenario, const struct sim_life *life);

#endif
