/* SPDX-License-Identifier: Apache-2.0 */
/* Many seeds: a line for each failure, which replays it, and the totals of all seeds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "tests/sim/stage.h"

enum {
    /* From so many on a kind of fault that never struck is a failure. */
    SEEDS_FOR_COUNTS = 100,
    SEEDS_FOR_STAGE = 20,
    CLUSTER_SEEDS_FOR_COUNTS = 1000,
    CLUSTER_SEEDS_FOR_UNUSUAL = 5000,
    CLUSTER_SEEDS_FOR_RARE = 16000,
    SEEDS_PER_PROCESS = 200,
    SHARES = 4, /* of what is left a process gets that part at most, so that all end together */
};

struct many {
    const struct sim_seeds_options *asked;
    uint64_t end;         /* behind the last one */
    uint64_t next, again; /* to be given out; for a second time */
    uint64_t *hashes;     /* of the traces of first runs, from asked->from on */
    struct sim_totals *totals;
    uint64_t seeds; /* that have ended */
};

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* ---- a seed's end ---- */

static void totals_add(struct sim_totals *totals, const struct scenario_result *result, bool passed)
{
    if (!totals->seeds++) totals->batches_min = UINT64_MAX;
    totals->events += result->events;
    totals->virtual_us += result->virtual_us;
    totals->batches += result->acked_batches;
    totals->records += result->acked_records;
    totals->compared += result->compared;
    totals->marks += result->marks;
    sim_visited_add(&totals->visited, &result->visited);
    if (passed && result->acked_batches < totals->batches_min)
        totals->batches_min = result->acked_batches;
    for (int i = 0; i < SIM_FAULTS; i++) {
        totals->faults[i] += result->faults[i];
        totals->seeds_with[i] += result->faults[i] != 0;
    }
}

static void failure_print(const struct sim_job *job, const char *verdict)
{
    const struct sim_setting *setting = &job->setting;
    printf("tools/sim --seed %" PRIu64, job->seed);
    if (setting->stage)
        printf(" --stage %s", sim_stage_at(setting->stage)->name);
    else if (setting->nodes > 1)
        printf(" --nodes %" PRIu32, setting->nodes);
    if (setting->hard && !setting->stage) printf(" --hard");
    if (setting->deletes && !setting->stage) printf(" --deletes");
    if (setting->hasty && !setting->stage) printf(" --hasty");
    if (setting->bug) printf(" --bug %s", sim_bug_name(setting->bug));
    printf(": %s\n", verdict);
    sim_job_text_print(job);
    fflush(stdout);
}

static void seed_end(struct many *many, struct sim_job *job)
{
    char verdict[SIM_VERDICT_BYTES];
    struct sim_totals *totals = many->totals;
    uint64_t *hash = &many->hashes[job->seed - many->asked->from];
    sim_job_verdict(job, verdict, sizeof verdict);
    if (!verdict[0] && job->second && *hash != job->result.trace_hash)
        snprintf(verdict, sizeof verdict,
                 "does not replay: two runs gave %016" PRIx64 " and %016" PRIx64, *hash,
                 job->result.trace_hash);
    if (job->second) {
        totals->twice++;
    } else {
        *hash = job->result.trace_hash;
        many->seeds++;
        totals_add(totals, &job->result, !verdict[0]);
    }
    if (verdict[0]) {
        totals->failed++;
        failure_print(job, verdict);
    }
    sim_job_next(job);
}

/* ---- what a job gets ---- */

/* All once, then some of them a second time; the job stays as it is where there are none. */
static void seeds_give(struct many *many, struct sim_job *job)
{
    const struct sim_seeds_options *asked = many->asked;
    if (many->next < many->end) {
        uint64_t shares = asked->jobs > 1 ? SHARES * asked->jobs : 1;
        uint64_t count = (many->end - many->next + shares - 1) / shares;
        if (count > SEEDS_PER_PROCESS) count = SEEDS_PER_PROCESS;
        if (!sim_process_can_again()) count = 1;
        sim_job_start(job, &asked->setting, many->next, many->next + count, false);
        many->next += count;
        return;
    }
    /* Of a seed that still runs there is nothing to compare with. */
    if (many->seeds != asked->count || !asked->twice_every) return;
    while (many->again < many->end && !many->hashes[many->again - asked->from]) /* it died */
        many->again += asked->twice_every;
    if (many->again >= many->end) return;
    sim_job_start(job, &asked->setting, many->again, many->again + 1, true);
    many->again += asked->twice_every;
}

/* ---- what they came to ---- */

/* Must it strike in a run of many seeds? */
static bool counts(const struct sim_setting *setting, int fault)
{
    if (setting->stage || fault == SIM_FAULT_STAGE)
        return setting->stage && fault == SIM_FAULT_STAGE;
    if (setting->nodes == 1) return fault < SIM_FAULTS_ONE_NODE;
    if (fault == SIM_FAULT_TORMENT) return false;   /* of one node */
    if (fault == SIM_FAULT_LOGS_WAIT) return false; /* few seeds make logs just then */
    if (fault == SIM_FAULT_OLD_OWNER || fault == SIM_FAULT_OLD_HOME ||
        fault == SIM_FAULT_LATE_DROP || fault == SIM_FAULT_HANDED_ON || fault == SIM_FAULT_FRONT ||
        fault == SIM_FAULT_LOSS_AMID || fault == SIM_FAULT_UNASKED ||
        fault == SIM_FAULT_AMID_FILL || fault == SIM_FAULT_AMID_LEAVE)
        return !setting->deletes && setting->nodes == SIM_VOTERS_MAX;
    return setting->hard || fault != SIM_FAULT_RMEM_SLOW;
}

/* From how many seeds on? Seven times as many as bring one on average: not one run in a thousand fails for nothing. Of
 * 3,000 seeds of three nodes, when half of them were brief, DEAF struck in 2, STALE_DISK in 7, LOST_FILE in 9. */
static uint64_t seeds_for(const struct sim_setting *setting, int fault)
{
    if (setting->stage) return SEEDS_FOR_STAGE;
    if (setting->nodes == 1) return SEEDS_FOR_COUNTS;
    switch (fault) {
    case SIM_FAULT_DELETED_MOVE:
    case SIM_FAULT_DEAF:
    case SIM_FAULT_STALE_DISK:
    case SIM_FAULT_LOST_FILE:
        return CLUSTER_SEEDS_FOR_RARE;
    case SIM_FAULT_REPAIR_POWER:
    case SIM_FAULT_COMMIT_LOST:
    case SIM_FAULT_FRONT:
    case SIM_FAULT_UNASKED:
    case SIM_FAULT_CLOSED_CUT:
        return CLUSTER_SEEDS_FOR_UNUSUAL;
    default:
        return CLUSTER_SEEDS_FOR_COUNTS;
    }
}

bool sim_fault_missing(const struct sim_setting *setting, const struct sim_totals *totals,
                       int fault)
{
    return counts(setting, fault) && totals->faults[fault] == 0 &&
           totals->seeds >= seeds_for(setting, fault);
}

/* Returns how many kinds are missing. */
static int faults_print(const struct sim_setting *setting, const struct sim_totals *totals)
{
    int zero = 0;
    printf("faults:");
    for (int i = 0; i < SIM_FAULTS; i++) {
        if (!counts(setting, i) && totals->faults[i] == 0) continue;
        printf(" %s %" PRIu64, sim_fault_name((enum sim_fault)i), totals->faults[i]);
        zero += sim_fault_missing(setting, totals, i);
    }
    printf("\n");
    return zero;
}

/* Returns how many pairs are too rare: of three nodes, where nobody asks for one kind of seeds. */
static int visits_told(const struct sim_setting *setting, const struct sim_totals *totals)
{
    sim_visits_print(&totals->visited, true);
    if (setting->nodes != 3) return 0;
    if (setting->hard || setting->deletes || setting->hasty || setting->bug || setting->stage)
        return 0;
    return sim_visits_rare(&totals->visited, totals->seeds);
}

static int totals_print(const struct sim_setting *setting, const struct sim_totals *totals,
                        double seconds)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " run twice, %.1f s; %" PRIu64
           " batches acked (least %" PRIu64 " in a seed), %" PRIu64 " records\n",
           totals->seeds, totals->failed, totals->twice, seconds, totals->batches,
           totals->batches_min == UINT64_MAX ? 0 : totals->batches_min, totals->records);
    if (setting->nodes > 1)
        printf("copies: %" PRIu64 " marks held against what was acked, %" PRIu64
               " closed ones compared\n",
               totals->marks, totals->compared);
    int zero = faults_print(setting, totals);
    if (zero) printf("leat-sim: %d kinds of faults never struck\n", zero);
    int rare = setting->nodes > 1 ? visits_told(setting, totals) : 0;
    if (zero || rare) return 1;
    return totals->failed ? 1 : 0;
}

void sim_seeds_add(const struct sim_seeds_options *asked, struct sim_totals *totals)
{
    static struct sim_job jobs[SIM_JOBS_MAX];
    struct many many = {.asked = asked,
                        .end = asked->from + asked->count,
                        .next = asked->from,
                        .again = asked->from,
                        .hashes = calloc(asked->count, sizeof(uint64_t)),
                        .totals = totals};
    LEAT_ASSERT(many.hashes != NULL);
    for (;;) {
        for (unsigned i = 0; i < asked->jobs; i++)
            if (!jobs[i].pid) seeds_give(&many, &jobs[i]);
        if (!sim_jobs_wait(jobs, asked->jobs)) break;
        for (unsigned i = 0; i < asked->jobs; i++)
            if (jobs[i].ready) seed_end(&many, &jobs[i]);
    }
    free(many.hashes);
}

int sim_seeds_run(const struct sim_seeds_options *asked)
{
    struct sim_totals totals = {0};
    double start_s = now_s();
    sim_seeds_add(asked, &totals);
    return totals_print(&asked->setting, &totals, now_s() - start_s);
}
