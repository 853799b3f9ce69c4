/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that go on with other dice where seeds seldom come, and files that replay such runs. */
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
    uint64_t from; /* seed of the first run */
    uint64_t seconds,
        events; /* no run is begun after that; 0: no bound. Only events give the same runs again. */
    unsigned jobs;
    bool quiet;       /* no words and no files */
    const char *keep; /* a directory: files of what was new, too; NULL: of failures only, here */
};
struct sim_explored {
    uint64_t failures, events;
    char verdict[SIM_VERDICT_BYTES]; /* of the first failure */
};
/** With a bug: until a run fails by it. False: there is no memory. */
bool sim_explore_run(const struct sim_explore_options *options, struct sim_explored *out);

#endif
