/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep of power cuts: the power goes before, inside and after every disk operation, each time in a run of its own.
 * And of errors: the next write or flush from there on fails, or for a while there is no space, or no file to be had.
 *
 * A fork is the snapshot at the moment of the cut; the parent goes on without one. Of an operation that is cut inside
 * different parts may be kept: so many subsets are tried. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/scenario.h"

enum { RECORDS = 60 };

static struct {
    struct cut_sweep_options options;
    unsigned running;
    uint64_t cuts, failed;
    bool child;
    uint64_t op, subset; /* the child's */
    enum sim_cut_phase phase;
} sweep;

static const char *const phase_names[] = {"before", "inside", "after"};
static const char *const fault_names[] = {"a write fails", "a flush fails", "no space", "no files"};

static const char *flag(void)
{
    return sweep.options.errors ? "--errors" : "--sweep";
}

static const char *what(void)
{
    return sweep.options.errors ? fault_names[sweep.subset - 1] : phase_names[sweep.phase];
}

static void reap(unsigned leave)
{
    while (sweep.running > leave) {
        int status;
        if (wait(&status) < 0) continue;
        sweep.running--;
        sweep.cuts++;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) sweep.failed++;
    }
}

/* The operation at which the cut struck is named by the child's own last words; an assertion's
 * words come before them, from the same process. */
static void child_ended_by(int signal_number)
{
    static char line[160];
    int bytes =
        snprintf(line, sizeof line,
                 "tools/sim %s --op %" PRIu64 " --subset %" PRIu64 " (%s): ended by signal %d\n",
                 flag(), sweep.op, sweep.subset, what(), signal_number);
    if (write(1, line, (size_t)bytes) != bytes) _exit(4);
    _exit(2);
}

/* In the child. True: the power goes there. */
static bool strike(struct scenario *scenario)
{
    if (sweep.options.errors) {
        sim_faults_disk(scenario, (enum sim_disk_fault)(sweep.subset - 1));
        return false;
    }
    sim_disk_reseed(scenario->servers[0].disk,
                    sweep.subset * 1000003 + sweep.op * 3 + (uint64_t)sweep.phase);
    return true;
}

static bool at_operation(struct scenario *scenario, uint64_t op, enum sim_cut_phase phase)
{
    const struct cut_sweep_options *asked = &sweep.options;
    if (sweep.child || (asked->only_op ? op != asked->only_op : op % asked->step != 0) ||
        (asked->errors && phase != SIM_CUT_BEFORE))
        return false;
    for (uint64_t subset = 1; subset <= asked->subsets; subset++) {
        if (asked->only_subset && subset != asked->only_subset) continue;
        reap(asked->jobs - 1);
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
            perror("leat-sim: fork");
            exit(3);
        }
        sweep.running += pid != 0;
        if (pid) continue;
        sweep.child = true;
        sweep.op = op;
        sweep.subset = subset;
        sweep.phase = phase;
        signal(SIGABRT, child_ended_by);
        signal(SIGALRM, child_ended_by);
        alarm(asked->seconds_per_run);
        return strike(scenario);
    }
    return false;
}

int cut_sweep_run(const struct cut_sweep_options *asked)
{
    sweep.options = *asked;
    if (asked->errors) sweep.options.subsets = SIM_DISK_FAULTS;
    struct scenario_options options = {.seed = asked->seed,
                                       .calm = true,
                                       .records = RECORDS,
                                       .tracing = sweep.options.tracing,
                                       .sweep = at_operation};
    struct scenario_result result;
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    scenario_run(&options, &result);
    if (sweep.child) {
        if (result.failure[0])
            printf("tools/sim %s --seed %" PRIu64 " --op %" PRIu64 " --subset %" PRIu64
                   " (%s): %s\n",
                   flag(), asked->seed, sweep.op, sweep.subset, what(), result.failure);
        fflush(stdout);
        _exit(result.failure[0] ? 1 : 0);
    }
    reap(0);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("sweep of seed %" PRIu64 ": %" PRIu64 " disk operations, %" PRIu64 " %s, %" PRIu64
           " failed%s%s, %.1f s\n",
           asked->seed, result.disk_ops, sweep.cuts,
           asked->errors ? "runs with an error of the disk" : "power cuts", sweep.failed,
           result.failure[0] ? "; without one: " : "", result.failure,
           (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9);
    return sweep.failed || result.failure[0] || !sweep.cuts ? 1 : 0;
}
