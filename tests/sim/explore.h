/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that go on with other dice where seeds seldom come, and files that replay them. */
#ifndef LEAT_TESTS_SIM_EXPLORE_H
#define LEAT_TESTS_SIM_EXPLORE_H

#include "tests/sim/job.h"

/* What a file says: a seed, what it is run with, and the dice of later turns. */
struct sim_replay {
    uint64_t seed;
    struct sim_setting setting;
    struct sim_dice_plan dice;
};

/* ---- replay.c ---- */
/** False after a message. why: one line, for whoever reads the file. */
bool sim_replay_write(const char *path, const struct sim_replay *replay, const char *why);
bool sim_replay_read(const char *path, struct sim_replay *out_replay);

/* ---- explore.c ---- */
struct sim_explore_options {
    struct sim_setting setting;
    uint64_t from;    /* seed of the first run */
    uint64_t seconds; /* no run is begun after that */
    unsigned jobs;
    const char *keep; /* a directory: files of what was new, too; NULL: of failures only, here */
};
/** Returns the exit code: 1 where a run failed. */
int sim_explore_run(const struct sim_explore_options *options);

#endif
