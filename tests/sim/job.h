/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds in processes of their own, and the two ways in which leat-sim runs many of them. */
#ifndef LEAT_TESTS_SIM_JOB_H
#define LEAT_TESTS_SIM_JOB_H

#include <sys/types.h>

#include "tests/sim/scenario.h"

enum {
    SIM_JOBS_MAX = 64,
    SIM_SECONDS_PER_SEED = 120, /* of real time: then it is stuck */
    SIM_VERDICT_BYTES = SIM_FAIL_TEXT_BYTES + 64,
};

/* What every seed of a run has. */
struct sim_setting {
    uint32_t nodes;
    bool hard;      /* in a cluster */
    bool deletes;   /* in a cluster; else in the seeds that choose it */
    bool hasty;     /* in a cluster: copies are made anew at once */
    unsigned stage; /* its number; 0: none. stage.h */
    unsigned bug;   /* enum leat_bug: the rule that is broken */
};
struct scenario_options sim_setting_options(const struct sim_setting *setting, uint64_t seed);

/* ---- job.c ---- */
/* A process that runs a range of seeds, one after the other. */
struct sim_job {
    pid_t pid;          /* 0: there is none */
    int pipe, text;     /* where the results and the words come from */
    uint64_t seed, end; /* the one that runs now; behind the last one */
    bool second;        /* a seed's second run, to see that it replays */
    bool ready;         /* a seed has ended: sim_job_verdict(), then sim_job_next() */
    struct sim_setting setting;
    struct scenario_result result;
};
/** Run the seeds from `seed` to `end`, not itself. */
void sim_job_start(struct sim_job *job, const struct sim_setting *setting, uint64_t seed,
                   uint64_t end, bool second);
/** Wait until a running job is ready; false: none runs. */
bool sim_jobs_wait(struct sim_job *jobs, unsigned count);
/** Of the seed that has ended, "": passed. result: zeros where its process has died. Waits for the seed's end. */
void sim_job_verdict(struct sim_job *job, char *out, size_t bytes);
/** The last lines of what its process said: the failed assertion, or the sanitizer's report. */
void sim_job_text_print(const struct sim_job *job);
/** On to the next of its seeds; where its process has died, in a new one. Without any the job is over: pid 0. */
void sim_job_next(struct sim_job *job);

/* ---- seeds.c ---- */
struct sim_seeds_options {
    struct sim_setting setting;
    uint64_t from, count;
    uint64_t twice_every; /* so many seeds one is run twice; 0: none */
    unsigned jobs;
};
/* What many seeds came to together. Zeros: none yet. */
struct sim_totals {
    uint64_t seeds, failed, twice, events, virtual_us;
    uint64_t batches, batches_min, records, compared, marks;
    uint64_t faults[SIM_FAULTS], seeds_with[SIM_FAULTS]; /* how often; in how many of the seeds */
    struct sim_visited visited;
};
/** Run many, print a line for each that fails, and add them to `totals`. */
void sim_seeds_add(const struct sim_seeds_options *asked, struct sim_totals *totals);
/** A kind of fault that struck in none of so many seeds that some would have had it. */
bool sim_fault_missing(const struct sim_setting *setting, const struct sim_totals *totals,
                       int fault);
/** Run many, and count what went wrong in them. Returns the exit code. */
int sim_seeds_run(const struct sim_seeds_options *asked);

/* ---- night.c ---- */
struct sim_night_options {
    uint64_t from;            /* the first seed */
    uint64_t events, seconds; /* nothing is begun after either; 0 seconds: as long as it takes */
    unsigned jobs;
};
/** Run all kinds of worlds in turn, and report what was visited. Returns the exit code. */
int sim_night_run(const struct sim_night_options *asked);

/* ---- bugs.c ---- */
/** As --bug takes it. */
const char *sim_bug_name(unsigned bug);
/** 0: none is called that. */
unsigned sim_bug_find(const char *name);
/** The kind of world that the table calls so ("three --hard"), into `setting`. False: none is. */
bool sim_bug_world(const char *name, struct sim_setting *setting);
/** This process has it from now on; but for leat-sim-bugs nothing. */
void sim_bug_set(unsigned bug);
/** Break each rule in turn, or only the rule `only` (0: all), until one of so many seeds fails. Returns the exit
 * code. */
int sim_bugs_run(unsigned only, uint64_t count, unsigned jobs);

/* ---- bugs_table.c ---- */
/** Is each bug (or `only` that) of the table in `path` found by its seed, else by one of so many of its world? Says the
 * table as it is now, then what is not found. Returns the exit code. */
int sim_bugs_table(const char *path, unsigned only, uint64_t count, unsigned jobs);

#endif
