/* leat-sim: run the simulated server through seeds of faults, or through a power cut at every disk
 * operation.
 *
 * Seeds run in other processes: an assertion that fails ends that seed only. A process runs several,
 * one after the other, and is brought back to what it was before each, so that nothing of one seed
 * can touch another: processes of their own took half of the time. Every second run of a seed has one
 * of its own, with other addresses and other remains in the memory, and has to be the same. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "tests/sim/scenario.h"

enum {
    JOBS_MAX = 64,
    SECONDS_PER_SEED = 120,
    SEEDS_FOR_COUNTS = 100, /* from here on every fault kind must have struck */
    CLUSTER_SEEDS_FOR_COUNTS = 1000,
    BUG_SEEDS = 1000, /* within which each is to be found */
    TWICE_EVERY = 25, /* seeds that are run twice, to see that they replay */
    SEEDS_PER_PROCESS = 50,
    SHARES = 4, /* of what is left a process gets that part at most, so that all end together */
    JOBS_USUAL = 2,
    SUBSETS = 20,
    MMAP_FROM_BYTES = 256 * 1024,
    STACK_BYTES = 256 * 1024, /* of which remains are made */
};

struct job {
    pid_t pid;
    int pipe, text;     /* where the results and the words come from */
    uint64_t seed, end; /* the one that runs now; behind the last one */
    bool second;
    struct scenario_result result;
    size_t got;
};

struct totals {
    uint64_t seeds, failed, batches, batches_min, records, faults[SIM_FAULTS], twice, compared,
        marks;
    double cpu_s;
};

const char *__asan_default_options(void);
/* A killed process's memory is not given back piece by piece: that is what kill -9 means. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- deliberate bugs ---- */

static const struct {
    const char *text, *rule;
} bugs[LEAT_BUGS_END] = {
#define LEAT_BUG_ROW(name, text, rule) [LEAT_BUG_##name] = {text, rule},
#include "base/bug.def"
#undef LEAT_BUG_ROW
};

/* ---- one run in a child ---- */

static uint32_t nodes = 1;   /* of every seed */
static bool recovery = true; /* in every seed of a cluster */
static bool hard;            /* in every seed of a cluster */
static bool deletes;         /* in every seed of a cluster; else in those that choose it */
static uint64_t twice_every = TWICE_EVERY;
static unsigned bug; /* in every seed; enum leat_bug */
static struct {
    uint64_t cpu_s, least;
} limit; /* of many seeds: after so much CPU time no more are begun; fewer fail. 0: none */

static void bug_set(void)
{
#ifdef LEAT_BUGS
    leat_bug = (enum leat_bug)bug;
#endif
}

static void child_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t done = write(fd, at, bytes);
        if (done <= 0) _exit(3);
        at += done;
        bytes -= (size_t)done;
    }
}

static double clock_s(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void seed_run(uint64_t seed, struct scenario_result *out_result)
{
    double start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    struct scenario_options options = {
        .seed = seed, .nodes = nodes, .recovery = recovery, .hard = hard, .deletes = deletes};
    bug_set();
    alarm(SECONDS_PER_SEED);
    scenario_run(&options, out_result);
    out_result->cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;
}

/* SUBTLE: a byte of a pointer was taken for a flag by the raft library, in one state: one seed of thousands
 * did not replay, by chance, where the heap began 5 KiB further on. A second run has other addresses, and
 * other remains in its heap and its stack. */
static __attribute__((noinline)) void remains_make(uint64_t seed)
{
    volatile uint8_t stack[STACK_BYTES];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0xa5;
    sim_process_elsewhere(seed);
}

static void child_run(uint64_t seed, uint64_t end, bool second, int pipe, int text)
{
    struct scenario_result result;
    dup2(text, 2);
    if (second) remains_make(seed);
    if (end > seed + 1 && !sim_process_keep()) _exit(3);
    for (;;) {
        seed_run(seed, &result);
        child_write(pipe, &result, sizeof result);
        if (++seed == end) _exit(0);
        sim_process_again();
        if (ftruncate(text, 0) || lseek(text, 0, SEEK_SET)) _exit(3);
    }
}

/* Run the seeds from `seed` to `end`, not itself, one after the other. */
static void job_start(struct job *job, uint64_t seed, uint64_t end, bool second)
{
    int ends[2];
    memset(job, 0, sizeof *job);
    job->seed = seed;
    job->end = end;
    job->second = second;
    job->text = memfd_create("leat-sim", MFD_CLOEXEC);
    if (pipe2(ends, O_CLOEXEC) != 0 || job->text < 0) {
        perror("leat-sim");
        exit(3);
    }
    fflush(NULL);
    job->pid = fork();
    if (job->pid < 0) {
        perror("leat-sim: fork");
        exit(3);
    }
    if (job->pid == 0) child_run(seed, end, second, ends[1], job->text);
    close(ends[1]);
    job->pipe = ends[0];
}

/* The last lines of what the child said: the failed assertion, or the sanitizer's report. */
static void text_print(int fd)
{
    static char text[6000];
    struct stat file; /* no seek: the child writes by the same offset */
    off_t bytes = fstat(fd, &file) == 0 ? file.st_size : 0;
    off_t from = bytes > (off_t)sizeof text ? bytes - (off_t)sizeof text : 0;
    ssize_t got = pread(fd, text, sizeof text, from);
    if (got > 0) fwrite(text, 1, (size_t)got, stdout);
}

/* What a child's end says of the seed that it was at. */
static void death_verdict(const struct job *job, char *out, size_t bytes)
{
    int status = 0;
    while (waitpid(job->pid, &status, 0) < 0)
        continue;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(out, bytes, "A10 stuck: no end within %d s of real time", SECONDS_PER_SEED);
    else if (WIFSIGNALED(status))
        snprintf(out, bytes, "A11 assert: ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, bytes, "A11 assert: ended with code %d", WEXITSTATUS(status));
}

/* The verdict of the job's seed, "" = passed. Waits for its end. */
static void job_verdict(struct job *job, char *out, size_t bytes)
{
    char *to = (char *)&job->result;
    ssize_t got = 1;
    out[0] = '\0';
    memset(&job->result, 0, sizeof job->result);
    for (job->got = 0; job->got < sizeof job->result && got > 0; job->got += (size_t)got) {
        got = read(job->pipe, to + job->got, sizeof job->result - job->got);
        if (got < 0) got = 0;
    }
    if (job->got < sizeof job->result) {
        death_verdict(job, out, bytes);
        job->pid = 0;
    } else if (job->result.failure[0]) {
        snprintf(out, bytes, "%s", job->result.failure);
    } else if (job->result.acked_batches < SIM_BATCHES) {
        snprintf(out, bytes, "only %" PRIu64 " batches were acked, %d are wanted",
                 job->result.acked_batches, SIM_BATCHES);
    }
}

/* On to the next of its seeds; where its process has died, in a new one. Without any, the job is over:
 * pid 0. */
static void job_next(struct job *job)
{
    uint64_t next = job->seed + 1;
    if (job->pid && next < job->end) {
        job->seed = next;
        return;
    }
    if (job->pid)
        while (waitpid(job->pid, NULL, 0) < 0)
            continue;
    close(job->pipe);
    close(job->text);
    job->pid = 0;
    if (next < job->end) job_start(job, next, job->end, job->second);
}

static void job_end(struct job *job, struct totals *totals, uint64_t *hashes, uint64_t from)
{
    char verdict[SIM_FAIL_TEXT_BYTES + 64];
    job_verdict(job, verdict, sizeof verdict);
    uint64_t *hash = &hashes[job->seed - from];
    if (!verdict[0] && job->second && *hash != job->result.trace_hash)
        snprintf(verdict, sizeof verdict,
                 "does not replay: two runs gave %016" PRIx64 " and %016" PRIx64, *hash,
                 job->result.trace_hash);
    totals->cpu_s += job->result.cpu_s;
    if (!job->second) {
        *hash = job->result.trace_hash;
        totals->seeds++;
        totals->batches += job->result.acked_batches;
        totals->records += job->result.acked_records;
        totals->compared += job->result.compared;
        totals->marks += job->result.marks;
        if (!verdict[0] && job->result.acked_batches < totals->batches_min)
            totals->batches_min = job->result.acked_batches;
        for (int i = 0; i < SIM_FAULTS; i++)
            totals->faults[i] += job->result.faults[i];
    } else {
        totals->twice++;
    }
    if (verdict[0]) {
        totals->failed++;
        printf("tools/sim --seed %" PRIu64, job->seed);
        if (nodes > 1) printf(" --nodes %" PRIu32, nodes);
        if (nodes > 1 && !recovery) printf(" --no-recovery");
        if (hard) printf(" --hard");
        if (deletes) printf(" --deletes");
        if (bug) printf(" --bug %s", bugs[bug].text);
        printf(": %s\n", verdict);
        text_print(job->text);
        fflush(stdout);
    }
    job_next(job);
}

/* ---- many seeds ---- */

/* Must it strike in a run of many seeds? */
static bool counts(int fault)
{
    if (nodes == 1) return fault < SIM_FAULTS_ONE_NODE;
    return hard || fault != SIM_FAULT_RMEM_SLOW;
}

static int totals_print(const struct totals *totals, double seconds)
{
    int zero = 0;
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " run twice, %.1f s; %" PRIu64
           " batches acked (least %" PRIu64 " in a seed), %" PRIu64 " records\n",
           totals->seeds, totals->failed, totals->twice, seconds, totals->batches,
           totals->batches_min == UINT64_MAX ? 0 : totals->batches_min, totals->records);
    if (nodes > 1)
        printf("copies: %" PRIu64 " marks held against what was acked, %" PRIu64
               " closed ones compared\n",
               totals->marks, totals->compared);
    printf("faults:");
    for (int i = 0; i < SIM_FAULTS; i++) {
        if (!counts(i) && totals->faults[i] == 0) continue;
        printf(" %s %" PRIu64, sim_fault_name((enum sim_fault)i), totals->faults[i]);
        zero += totals->faults[i] == 0;
    }
    printf("\n");
    if (zero && totals->seeds >= (nodes > 1 ? CLUSTER_SEEDS_FOR_COUNTS : SEEDS_FOR_COUNTS)) {
        printf("leat-sim: %d kinds of faults never struck\n", zero);
        return 1;
    }
    return totals->failed ? 1 : 0;
}

static double now_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* The next seeds for a job: all once, then some of them a second time. False: there are none. */
static bool seeds_give(struct job *job, uint64_t *next, uint64_t *again, uint64_t from,
                       uint64_t end, const uint64_t *hashes, bool first_ended)
{
    if (*next < end) {
        uint64_t count = (end - *next) / (SHARES * JOBS_USUAL) + 1;
        if (count > SEEDS_PER_PROCESS) count = SEEDS_PER_PROCESS;
        if (!sim_process_can_again()) count = 1;
        job_start(job, *next, *next + count, false);
        *next += count;
        return true;
    }
    if (!first_ended) return false; /* of a seed that runs there is nothing to compare with */
    while (*again < end && !hashes[*again - from]) /* it died */
        *again += twice_every;
    if (*again >= end) return false;
    job_start(job, *again, *again + 1, true);
    *again += twice_every;
    return true;
}

/* Fewer seeds than were asked for, as their time was up, are said last; from `least` on they are enough. */
static int shortened_print(uint64_t asked, uint64_t seeds)
{
    if (seeds == asked) return 0;
    printf("%" PRIu64 " of %" PRIu64 " seeds: their %" PRIu64 " s of CPU time are over%s\n", seeds,
           asked, limit.cpu_s, seeds < limit.least ? ", and these are too few" : "");
    return seeds < limit.least ? 1 : 0;
}

static int run_seeds(uint64_t from, uint64_t count, unsigned jobs)
{
    static struct job running[JOBS_MAX];
    struct totals totals = {.batches_min = UINT64_MAX};
    uint64_t *hashes = calloc(count, sizeof *hashes);
    uint64_t next = from, again = from, asked = count;
    double start_s = now_s();
    if (!hashes) return 3;
    for (;;) {
        if (limit.cpu_s && totals.cpu_s >= (double)limit.cpu_s) count = next - from;
        struct pollfd waits[JOBS_MAX];
        unsigned busy = 0;
        bool first_ended = totals.seeds == count;
        for (unsigned i = 0; i < jobs; i++) {
            if (!running[i].pid)
                (void)seeds_give(&running[i], &next, &again, from, from + count, hashes,
                                 first_ended);
            waits[i] = (struct pollfd){running[i].pid ? running[i].pipe : -1, POLLIN, 0};
            busy += running[i].pid != 0;
        }
        if (!busy) break;
        if (poll(waits, jobs, -1) < 0) continue;
        for (unsigned i = 0; i < jobs; i++)
            if (running[i].pid && waits[i].revents) job_end(&running[i], &totals, hashes, from);
    }
    free(hashes);
    int code = totals_print(&totals, now_s() - start_s);
    return shortened_print(asked, count) ? 1 : code;
}

/* A seed that fails without the bug as well says nothing of it. */
static bool fails_anyway(uint64_t seed)
{
    char verdict[SIM_FAIL_TEXT_BYTES + 64];
    struct job job;
    unsigned with = bug;
    bug = 0;
    job_start(&job, seed, seed + 1, false);
    job_verdict(&job, verdict, sizeof verdict);
    job_next(&job);
    bug = with;
    return verdict[0] != '\0';
}

/* Which seed is the first to fail, from 1 on? 0: none of them. */
static uint64_t first_failure(uint64_t count, unsigned jobs, char *out_verdict, size_t bytes)
{
    static struct job running[JOBS_MAX];
    uint64_t next = 1, first = 0;
    memset(running, 0, sizeof running);
    for (;;) {
        struct pollfd waits[JOBS_MAX];
        unsigned busy = 0;
        for (unsigned i = 0; i < jobs; i++) {
            if (!running[i].pid && next <= count && !first) {
                job_start(&running[i], next, next + 1, false);
                next++;
            }
            waits[i] = (struct pollfd){running[i].pid ? running[i].pipe : -1, POLLIN, 0};
            busy += running[i].pid != 0;
        }
        if (!busy) return first;
        if (poll(waits, jobs, -1) < 0) continue;
        for (unsigned i = 0; i < jobs; i++) {
            char verdict[SIM_FAIL_TEXT_BYTES + 64];
            if (!running[i].pid || !waits[i].revents) continue;
            uint64_t seed = running[i].seed;
            job_verdict(&running[i], verdict, sizeof verdict);
            job_next(&running[i]);
            if (!verdict[0] || (first && first < seed)) continue;
            if (fails_anyway(seed)) continue;
            first = seed;
            snprintf(out_verdict, bytes, "%s", verdict);
        }
    }
}

/* Some show only where less goes wrong at once, some only where nobody has a second copy. */
static const struct {
    uint32_t nodes;
    bool hard, deletes;
    const char *told;
} bug_worlds[] = {{3, true, false, ""},
                  {3, false, false, ", without --hard"},
                  {1, false, false, ", of one node"},
                  {3, true, true, ", with --deletes"}};

static int run_bugs(uint64_t count, unsigned jobs)
{
    unsigned missed = 0, from = bug ? bug : 1, end = bug ? bug + 1 : LEAT_BUGS_END;
#ifndef LEAT_BUGS
    fputs("leat-sim: built without -Dbugs=true: there are none\n", stderr);
    return 2;
#endif
    printf("| bug | the rule that is broken | seeds | found as |\n|---|---|---|---|\n");
    for (bug = from; bug < end; bug++) {
        char verdict[SIM_FAIL_TEXT_BYTES + 64] = "";
        uint64_t seed = 0;
        unsigned world = 0;
        for (; world < sizeof bug_worlds / sizeof *bug_worlds; world++) {
            nodes = bug_worlds[world].nodes;
            hard = bug_worlds[world].hard;
            deletes = bug_worlds[world].deletes;
            seed = first_failure(count, jobs, verdict, sizeof verdict);
            if (seed) break;
        }
        missed += seed == 0;
        if (seed)
            printf("| %s | %s | %" PRIu64 "%s | %.60s |\n", bugs[bug].text, bugs[bug].rule, seed,
                   bug_worlds[world].told, verdict);
        else
            printf("| %s | %s | not in %" PRIu64 " | |\n", bugs[bug].text, bugs[bug].rule, count);
        fflush(stdout);
    }
    printf("%u bugs, %u not found\n", end - from, missed);
    return missed ? 1 : 0;
}

static unsigned bug_find(const char *text)
{
    for (unsigned i = 1; i < LEAT_BUGS_END; i++)
        if (strcmp(bugs[i].text, text) == 0) return i;
    fprintf(stderr, "leat-sim: no bug is called '%s'; see base/bug.def\n", text);
    exit(2);
}

/* ---- one seed, here ---- */

static int run_seed(uint64_t seed, bool tracing)
{
    struct scenario_options options = {.seed = seed,
                                       .nodes = nodes,
                                       .recovery = recovery,
                                       .hard = hard,
                                       .deletes = deletes,
                                       .tracing = tracing};
    struct scenario_result result;
    bug_set();
    scenario_run(&options, &result);
    printf("seed %" PRIu64 ": %s; %" PRIu64 " batches, %" PRIu64 " records acked, %" PRIu64
           " events, %.1f virtual seconds, %" PRIu64 " disk operations, trace %016" PRIx64
           "\nfaults:",
           seed, result.failure[0] ? result.failure : "passed", result.acked_batches,
           result.acked_records, result.events, (double)result.virtual_us / 1e6, result.disk_ops,
           result.trace_hash);
    for (int i = 0; i < SIM_FAULTS; i++)
        if (result.faults[i])
            printf(" %s %" PRIu64, sim_fault_name((enum sim_fault)i), result.faults[i]);
    printf("\n");
    return result.failure[0] ? 1 : 0;
}

/* The options are those of the other sweep. */
static int run_allocations(const struct cut_sweep_options *asked)
{
    struct alloc_sweep_options options = {.seed = asked->seed,
                                          .only = asked->only_op,
                                          .jobs = asked->jobs,
                                          .step = asked->step,
                                          .seconds_per_run = SECONDS_PER_SEED,
                                          .tracing = asked->tracing};
    return alloc_sweep_run(&options);
}

/* ---- what is asked ---- */

static void usage(FILE *to)
{
    fputs("usage: leat-sim --seed S [--trace]            replay one seed\n"
          "       leat-sim --seeds N [--from S] [--jobs J]  run many; each line of a failure "
          "replays it\n"
          "           [--cpu-seconds S] [--least N]         none is begun after S seconds of CPU "
          "time; fewer "
          "than N fail\n"
          "       --nodes N: a cluster of N machines that form, die and come back\n"
          "       --hard: blow upon blow, more to lose; deliberate bugs always have it\n"
          "       --deletes: streams are deleted in every seed, not in one of twenty\n"
          "       --twice: every seed is run twice, to see that it replays, not one of 25\n"
          "       --no-recovery: the streamlets of one that dies wait for it\n"
          "       leat-sim --sweep [--seed S] [--step K] [--subsets N] [--jobs J]\n"
          "           power cut before, inside and after every K-th disk operation\n"
          "       leat-sim --sweep [--seed S] --op N [--subset M] [--trace]  only there\n"
          "       leat-sim --allocations [--seed S] [--step K] [--jobs J]\n"
          "           every K-th allocation of the server fails, each in a run of its own\n"
          "       leat-sim --bugs [--bug NAME] [--nodes N] [--seeds N] [--jobs J]\n"
          "           (-Dbugs=true) break one rule after the other until a seed fails\n"
          "       leat-sim --allocations [--seed S] --op N [--trace]  only that one\n",
          to);
}

static const struct option option_names[] = {
    {"seed", 1, NULL, 's'},
    {"seeds", 1, NULL, 'n'},
    {"from", 1, NULL, 'f'},
    {"jobs", 1, NULL, 'j'},
    {"trace", 0, NULL, 't'},
    {"sweep", 0, NULL, 'w'},
    {"step", 1, NULL, 'k'},
    {"subsets", 1, NULL, 'u'},
    {"op", 1, NULL, 'o'},
    {"subset", 1, NULL, 'b'},
    {"nodes", 1, NULL, 'N'},
    {"help", 0, NULL, 'h'},
    {"allocations", 0, NULL, 'a'},
    {"bug", 1, NULL, 'B'},
    {"bugs", 0, NULL, 'g'},
    {"recovery", 0, NULL, 'R'},
    {"no-recovery", 0, NULL, 'W'},
    {"hard", 0, NULL, 'H'},
    {"cpu-seconds", 1, NULL, 'm'},
    {"least", 1, NULL, 'l'},
    {"deletes", 0, NULL, 'D'},
    {"twice", 0, NULL, 'T'},
    {0},
};

/* Large blocks come fresh from the kernel: nothing clears and touches what a simulated server never uses,
 * which was nine tenths of a run's time. */
static void large_blocks_fresh(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
    (void)mallopt(M_TOP_PAD, 1024 * 1024);
}

int main(int argc, char **argv)
{
    uint64_t seed = 0, count = 0, from = 1, jobs = 2;
    bool trace = false, sweeping = false, allocations = false, all_bugs = false;
    struct cut_sweep_options sweep = {
        .subsets = SUBSETS, .step = 1, .seconds_per_run = SECONDS_PER_SEED};
    large_blocks_fresh();
    for (int option; (option = getopt_long(argc, argv, "h", option_names, NULL)) != -1;) {
        uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (option) {
        case 's':
            seed = number;
            break;
        case 'n':
            count = number;
            break;
        case 'f':
            from = number;
            break;
        case 'm':
            limit.cpu_s = number;
            break;
        case 'l':
            limit.least = number;
            break;
        case 'j':
            jobs = number < 1 ? 1 : number > JOBS_MAX ? JOBS_MAX : number;
            break;
        case 't':
            trace = true;
            break;
        case 'w':
            sweeping = true;
            break;
        case 'B':
            bug = bug_find(optarg);
            hard = true;
            break;
        case 'g':
            all_bugs = true;
            break;
        case 'a':
            allocations = true;
            break;
        case 'k':
            sweep.step = number ? (unsigned)number : 1;
            break;
        case 'u':
            sweep.subsets = number ? (unsigned)number : 1;
            break;
        case 'o':
            sweep.only_op = number;
            break;
        case 'b':
            sweep.only_subset = number;
            break;
        case 'N':
            if (number < 1 || number > SIM_SERVERS_MAX) {
                fprintf(stderr, "leat-sim: --nodes takes 1 to %d\n", SIM_SERVERS_MAX);
                return 2;
            }
            nodes = (uint32_t)number;
            break;
        case 'R': /* the default */
        case 'W':
            recovery = option == 'R';
            break;
        case 'H':
            hard = true;
            break;
        case 'D':
            deletes = true;
            break;
        case 'T':
            twice_every = 1;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    sweep.seed = seed ? seed : 1;
    sweep.jobs = (unsigned)jobs;
    sweep.tracing = trace;
    if (allocations) return run_allocations(&sweep);
    if (all_bugs) return run_bugs(count ? count : BUG_SEEDS, (unsigned)jobs);
    if (sweeping) return cut_sweep_run(&sweep);
    if (count) return run_seeds(from, count, (unsigned)jobs);
    if (seed) return run_seed(seed, trace);
    usage(stderr);
    return 2;
}
