/* SPDX-License-Identifier: Apache-2.0 */
/* Deliberate bugs (leat-sim-bugs): does a seed fail when a rule is broken? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "tests/sim/stage.h"

static const struct {
    const char *name, *rule;
} bugs[LEAT_BUGS_END] = {
#define LEAT_BUG_ROW(id, name, rule) [LEAT_BUG_##id] = {name, rule},
#include "base/bug.def"
#undef LEAT_BUG_ROW
};

/* Some show only where less goes wrong at once, some only where nobody has a second copy. */
static const struct {
    uint32_t nodes;
    bool hard, deletes, hasty;
    const char *name;
} worlds[] = {{3, true, false, false, "three --hard"},
              {3, false, false, false, "three"},
              {1, false, false, false, "one"},
              {3, true, true, false, "three --hard --deletes"},
              {3, true, false, true, "three --hard --hasty"},
              {3, true, true, true, "three --hard --deletes --hasty"}};
enum { WORLDS = sizeof worlds / sizeof *worlds };

const char *sim_bug_name(unsigned bug)
{
    return bugs[bug].name;
}

unsigned sim_bug_find(const char *name)
{
    for (unsigned i = 1; i < LEAT_BUGS_END; i++)
        if (strcmp(bugs[i].name, name) == 0) return i;
    return 0;
}

void sim_bug_set(unsigned bug)
{
#ifdef LEAT_BUGS
    leat_bug = (enum leat_bug)bug;
#else
    (void)bug;
#endif
}

/* A seed that fails without the bug as well says nothing of it. */
static bool fails_anyway(const struct sim_setting *setting, uint64_t seed)
{
    char verdict[SIM_VERDICT_BYTES];
    struct sim_setting without = *setting;
    struct sim_job job;
    without.bug = 0;
    sim_job_start(&job, &without, seed, seed + 1, false);
    sim_job_verdict(&job, verdict, sizeof verdict);
    sim_job_next(&job);
    return verdict[0] != '\0';
}

bool sim_bug_world(const char *name, struct sim_setting *setting)
{
    static const char stage[] = "stage ";
    if (strncmp(name, stage, sizeof stage - 1) == 0) {
        sim_stage_set(setting, sim_stage_find(name + sizeof stage - 1));
        return setting->stage != 0;
    }
    for (unsigned i = 0; i < WORLDS; i++) {
        if (strcmp(worlds[i].name, name) != 0) continue;
        setting->nodes = worlds[i].nodes;
        setting->hard = worlds[i].hard;
        setting->deletes = worlds[i].deletes;
        setting->hasty = worlds[i].hasty;
        return true;
    }
    return false;
}

/* Which seed is the first to fail, from 1 on? 0: none of them. */
static uint64_t first_failure(const struct sim_setting *setting, uint64_t count, unsigned jobs,
                              char *out_verdict, size_t bytes)
{
    static struct sim_job running[SIM_JOBS_MAX];
    uint64_t next = 1, first = 0;
    memset(running, 0, sizeof running);
    for (;;) {
        for (unsigned i = 0; i < jobs; i++) {
            if (running[i].pid || next > count || first) continue;
            sim_job_start(&running[i], setting, next, next + 1, false);
            next++;
        }
        if (!sim_jobs_wait(running, jobs)) return first;
        for (unsigned i = 0; i < jobs; i++) {
            char verdict[SIM_VERDICT_BYTES];
            if (!running[i].ready) continue;
            uint64_t seed = running[i].seed;
            sim_job_verdict(&running[i], verdict, sizeof verdict);
            sim_job_next(&running[i]);
            if (!verdict[0] || (first && first < seed)) continue;
            if (fails_anyway(setting, seed)) continue;
            first = seed;
            snprintf(out_verdict, bytes, "%s", verdict);
        }
    }
}

/* False: no world has a seed that fails by it. */
static bool bug_run(unsigned bug, uint64_t count, unsigned jobs)
{
    for (unsigned i = 0; i < WORLDS; i++) {
        struct sim_setting setting = {.nodes = worlds[i].nodes,
                                      .hard = worlds[i].hard,
                                      .deletes = worlds[i].deletes,
                                      .hasty = worlds[i].hasty,
                                      .bug = bug};
        char verdict[SIM_VERDICT_BYTES] = "";
        uint64_t seed = first_failure(&setting, count, jobs, verdict, sizeof verdict);
        if (!seed) continue;
        printf("| %s | %s | %s | %" PRIu64 " | %.60s |\n", bugs[bug].name, bugs[bug].rule,
               worlds[i].name, seed, verdict);
        return true;
    }
    printf("| %s | %s | | not in %" PRIu64 " | |\n", bugs[bug].name, bugs[bug].rule, count);
    return false;
}

int sim_bugs_run(unsigned only, uint64_t count, unsigned jobs)
{
    unsigned missed = 0, from = only ? only : 1, end = only ? only + 1 : LEAT_BUGS_END;
#ifndef LEAT_BUGS
    fputs("leat-sim: leat-sim-bugs has them\n", stderr);
    return 2;
#endif
    printf("| bug | the rule that is broken | world | seed | found as |\n|---|---|---|---|---|\n");
    for (unsigned bug = from; bug < end; bug++) {
        missed += !bug_run(bug, count, jobs);
        fflush(stdout);
    }
    printf("%u bugs, %u not found\n", end - from, missed);
    return missed ? 1 : 0;
}
