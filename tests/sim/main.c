/* SPDX-License-Identifier: Apache-2.0 */
/* leat-sim: run the simulated server through seeds of faults, or through a power cut at every disk
 * operation. Here is what it is asked; the ways to run are in the other files. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/sim/explore.h"
#include "tests/sim/stage.h"

enum {
    BUG_SEEDS = 1000, /* within which each is to be found */
    NIGHT_EVENTS = 1000 * 1000 * 1000,
    TWICE_EVERY = 50, /* of so many seeds one is run twice, to see that it replays */
    JOBS_USUAL = 2,
    SUBSETS = 20,
    MMAP_FROM_BYTES = 256 * 1024,
};

static void usage(FILE *to)
{
    fputs(
        "usage: leat-sim --seed S [--trace]            replay one seed\n"
        "           --trace of these lines only: [--log STREAM/STREAMLET/LOG] [--segment N]\n"
        "           [--node NAME] [--kind KIND]; tests/sim/README.md has the kinds\n"
        "       leat-sim --seed S --life STREAM/STREAMLET/LOG   what became of that log, a table\n"
        "       leat-sim --seeds N [--from S] [--jobs J]  run many; each line of a failure "
        "replays it\n"
        "       leat-sim --night [--events N] [--seconds S] [--from S] [--jobs J]\n"
        "           all kinds of worlds in turn, for a billion events; what was visited\n"
        "       --nodes N: a cluster of N machines that form, die and come back\n"
        "       --hard: fault upon fault, more to lose; deliberate bugs always have it\n"
        "       --deletes: streams are deleted in every seed, not in one of thirty\n"
        "       --hasty: what nodes that have gone had is copied elsewhere at once\n"
        "       --stage NAME: the world of that stage (tests/sim/stages.md), for one rare moment\n"
        "       --stages --seeds N: N seeds of every stage\n"
        "       --twice: every seed is run twice, to see that it replays, not one of 50\n"
        "       leat-sim --sweep [--seed S] [--step K] [--subsets N] [--jobs J]\n"
        "           power cut before, inside and after every K-th disk operation\n"
        "       leat-sim --sweep [--seed S] --op N [--subset M] [--trace]  only there\n"
        "       leat-sim --errors [--seed S] [--step K] [--jobs J]   or, one: --op N --subset M "
        "[--trace]\n"
        "           the disk refuses a write, or a flush, or has no space, from every K-th "
        "operation on\n"
        "       leat-sim --allocations [--seed S] [--step K] [--jobs J]\n"
        "           every K-th allocation of the server fails, each in a run of its own\n"
        "       leat-sim --bugs [--bug NAME] [--nodes N] [--seeds N] [--jobs J]\n"
        "           (leat-sim-bugs) break one rule after the other until a seed fails\n"
        "       leat-sim --bugs --table FILE [--bug NAME] [--seeds N] [--jobs J]\n"
        "           each by the seed of its row (tests/sim/bugs.md) or another one; says the "
        "table anew\n"
        "       leat-sim --allocations [--seed S] --op N [--trace]  only that one\n"
        "       leat-sim --explore --nodes N --seconds S | --events N [--from S] [--keep DIR] "
        "[--bug NAME]\n"
        "           runs that go on with other dice where seeds seldom come; a file for each "
        "failure,\n"
        "           with --keep also for what was new\n"
        "       leat-sim --replay FILE [--trace]          such a file\n",
        to);
}

/* Set by getopt_long(). */
static struct {
    int trace, sweep, errors, allocations, bugs, explore, hard, deletes, hasty, twice, night,
        stages;
} flags;

static const struct option option_names[] = {
    {"seed", 1, NULL, 's'},
    {"seeds", 1, NULL, 'n'},
    {"from", 1, NULL, 'f'},
    {"jobs", 1, NULL, 'j'},
    {"seconds", 1, NULL, 'm'},
    {"events", 1, NULL, 'e'},
    {"nodes", 1, NULL, 'N'},
    {"step", 1, NULL, 'k'},
    {"subsets", 1, NULL, 'u'},
    {"op", 1, NULL, 'o'},
    {"subset", 1, NULL, 'b'},
    {"bug", 1, NULL, 'B'},
    {"stage", 1, NULL, 'S'},
    {"keep", 1, NULL, 'K'},
    {"replay", 1, NULL, 'R'},
    {"table", 1, NULL, 'T'},
    {"log", 1, NULL, 'L'},
    {"segment", 1, NULL, 'G'},
    {"node", 1, NULL, 'O'},
    {"kind", 1, NULL, 'I'},
    {"life", 1, NULL, 'F'},
    {"help", 0, NULL, 'h'},
    {"trace", 0, &flags.trace, 1},
    {"sweep", 0, &flags.sweep, 1},
    {"errors", 0, &flags.errors, 1},
    {"allocations", 0, &flags.allocations, 1},
    {"bugs", 0, &flags.bugs, 1},
    {"explore", 0, &flags.explore, 1},
    {"hard", 0, &flags.hard, 1},
    {"deletes", 0, &flags.deletes, 1},
    {"hasty", 0, &flags.hasty, 1},
    {"twice", 0, &flags.twice, 1},
    {"night", 0, &flags.night, 1},
    {"stages", 0, &flags.stages, 1},
    {0},
};

/* What of a trace is shown; the log whose life is told. */
static struct sim_trace_filter filter;
static struct sim_life life;

struct asked {
    uint64_t seed, seeds, from, seconds, events, op, subset;
    uint32_t nodes;
    unsigned jobs, step, subsets, bug, stage;
    const char *keep, *replay, *table;
};

static unsigned at_least_one(uint64_t number)
{
    return number ? (unsigned)number : 1;
}

static void life_print(void *arg, const struct sim_life_row *row)
{
    (void)arg;
    printf("%12.6f  %-8s  %s\n", (double)row->at_us / 1e6, row->node, row->event);
}

/* Take an option about what a replay shows. False: the option is another, or is wrong, after a message. */
static bool shown_take(int option, const char *text)
{
    switch (option) {
    case 'I':
        filter.kind = text;
        return true;
    case 'O':
        filter.node = text;
        return true;
    case 'G':
        filter.about.has_segment = true;
        filter.about.segment = strtoull(text, NULL, 10);
        return true;
    case 'F':
        life.on_row = life_print;
        break;
    case 'L':
        filter.about.has_log = true;
        break;
    default:
        return false;
    }
    if (sim_trace_log_read(text, &filter.about.log) && filter.about.log.stream < SIM_STREAMS) {
        life.log = filter.about.log;
        return true;
    }
    fprintf(stderr,
            "leat-sim: '%s' is no STREAM/STREAMLET/LOG: the simulator's streams are 0 to %d\n",
            text, SIM_STREAMS - 1);
    return false;
}

/* An option that takes a value. False after a message. */
static bool value_take(struct asked *asked, int option, const char *text)
{
    uint64_t number = strtoull(text, NULL, 10);
    switch (option) {
    case 's':
        asked->seed = number;
        return true;
    case 'n':
        asked->seeds = number;
        return true;
    case 'f':
        asked->from = number;
        return true;
    case 'j':
        asked->jobs = number > SIM_JOBS_MAX ? SIM_JOBS_MAX : at_least_one(number);
        return true;
    case 'm':
        asked->seconds = number;
        return true;
    case 'e':
        asked->events = number;
        return true;
    case 'N':
        asked->nodes = (uint32_t)number;
        if (number >= 1 && number <= SIM_SERVERS_MAX) return true;
        fprintf(stderr, "leat-sim: --nodes takes 1 to %d\n", SIM_SERVERS_MAX);
        return false;
    case 'k':
        asked->step = at_least_one(number);
        return true;
    case 'u':
        asked->subsets = at_least_one(number);
        return true;
    case 'o':
        asked->op = number;
        return true;
    case 'b':
        asked->subset = number;
        return true;
    case 'K':
        asked->keep = text;
        return true;
    case 'R':
        asked->replay = text;
        return true;
    case 'T':
        asked->table = text;
        return true;
    case 'S':
        asked->stage = sim_stage_find(text);
        if (asked->stage) return true;
        fprintf(stderr, "leat-sim: no stage is called '%s'; see tests/sim/stages.def\n", text);
        return false;
    case 'B':
        asked->bug = sim_bug_find(text);
        if (asked->bug) return true;
        fprintf(stderr, "leat-sim: no bug is called '%s'; see base/bug.def\n", text);
        return false;
    default:
        return shown_take(option, text);
    }
}

/* ---- what is run ---- */

/* One seed, in this process. */
static int run_seed(const struct sim_setting *setting, uint64_t seed,
                    const struct sim_dice_plan *dice)
{
    struct scenario_options options = sim_setting_options(setting, seed);
    struct scenario_result result;
    options.tracing = flags.trace;
    options.dice = dice;
    if (life.on_row || filter.about.has_log) options.life = &life;
    sim_trace_filter_set(&filter);
    sim_bug_set(setting->bug);
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
    if (setting->nodes > 1) sim_visits_print(&result.visited, false);
    return result.failure[0] ? 1 : 0;
}

static int run_replay(const char *path)
{
    struct sim_replay replay;
    if (!sim_replay_read(path, &replay)) return 2;
    return run_seed(&replay.setting, replay.seed, &replay.dice);
}

/* What was found is written there after minutes: a folder that cannot be made is told before. */
static bool folder_make(const char *path)
{
    if (!path || mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    fprintf(stderr, "leat-sim: the folder %s cannot be made: %s\n", path, strerror(errno));
    return false;
}

static int run_explore(const struct asked *asked, const struct sim_setting *setting)
{
    struct sim_explore_options options = {.setting = *setting,
                                          .from = asked->from,
                                          .seconds = asked->seconds,
                                          .events = asked->events,
                                          .jobs = asked->jobs,
                                          .keep = asked->keep};
    struct sim_explored explored;
    if (setting->nodes == 1 || (!asked->seconds && !asked->events)) {
        fprintf(stderr,
                "leat-sim: --explore takes --nodes, more than one, and --seconds or --events\n");
        return 2;
    }
    if (!folder_make(asked->keep)) return 2;
    if (!sim_explore_run(&options, &explored)) return 3;
    return explored.failures ? 1 : 0;
}

static int run_seeds(const struct asked *asked, const struct sim_setting *setting)
{
    struct sim_seeds_options options = {.setting = *setting,
                                        .from = asked->from,
                                        .count = asked->seeds,
                                        .twice_every = flags.twice ? 1 : TWICE_EVERY,
                                        .jobs = asked->jobs};
    return sim_seeds_run(&options);
}

/* Seeds of every stage. */
static int run_stages(const struct asked *asked)
{
    int worst = 0;
    for (unsigned i = 1; sim_stage_at(i); i++) {
        struct sim_setting setting = {.bug = asked->bug};
        sim_stage_set(&setting, i);
        printf("stage %s:\n", sim_stage_at(i)->name);
        int rc = run_seeds(asked, &setting);
        if (rc > worst) worst = rc;
    }
    return worst;
}

static int run_night(const struct asked *asked)
{
    struct sim_night_options options = {.from = asked->from,
                                        .events = asked->events ? asked->events : NIGHT_EVENTS,
                                        .seconds = asked->seconds,
                                        .jobs = asked->jobs};
    return sim_night_run(&options);
}

static int run_bugs(const struct asked *asked, const struct sim_setting *setting)
{
    uint64_t seeds = asked->seeds ? asked->seeds : BUG_SEEDS;
    if (asked->table) return sim_bugs_table(asked->table, asked->bug, seeds, asked->jobs);
    return sim_bugs_run(asked->bug, seeds, asked->jobs);
}

static int run_allocations(const struct asked *asked)
{
    struct alloc_sweep_options options = {.seed = asked->seed ? asked->seed : 1,
                                          .only = asked->op,
                                          .jobs = asked->jobs,
                                          .step = asked->step,
                                          .seconds_per_run = SIM_SECONDS_PER_SEED,
                                          .tracing = flags.trace};
    return alloc_sweep_run(&options);
}

static int run_cuts(const struct asked *asked)
{
    struct cut_sweep_options options = {.seed = asked->seed ? asked->seed : 1,
                                        .only_op = asked->op,
                                        .only_subset = asked->subset,
                                        .jobs = asked->jobs,
                                        .step = asked->step,
                                        .subsets = asked->subsets,
                                        .errors = flags.errors,
                                        .seconds_per_run = SIM_SECONDS_PER_SEED,
                                        .tracing = flags.trace};
    return cut_sweep_run(&options);
}

/* Large blocks come fresh from the kernel: nothing clears and touches what a simulated server never uses,
 * which was nine tenths of a run's time. */
static void large_blocks_fresh(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
    (void)mallopt(M_TOP_PAD, 1024 * 1024);
}

int main(int argc, char **argv)
{
    struct asked asked = {.from = 1, .nodes = 1, .jobs = JOBS_USUAL, .step = 1, .subsets = SUBSETS};
    large_blocks_fresh();
    for (int option; (option = getopt_long(argc, argv, "h", option_names, NULL)) != -1;) {
        if (option == 'h' || option == '?') {
            usage(option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
        if (option && !value_take(&asked, option, optarg)) return 2;
    }
    struct sim_setting setting = {.nodes = asked.nodes,
                                  .hard = flags.hard,
                                  .deletes = flags.deletes,
                                  .hasty = flags.hasty,
                                  .bug = asked.bug};
    sim_stage_set(&setting, asked.stage);
    if (asked.replay) return run_replay(asked.replay);
    if (flags.explore) return run_explore(&asked, &setting);
    if (flags.night) return run_night(&asked);
    if (asked.seconds || asked.events) {
        fprintf(stderr, "leat-sim: --seconds and --events are for --night and --explore; "
                        "--seeds N runs all\n");
        return 2;
    }
    if (flags.allocations) return run_allocations(&asked);
    if (flags.bugs) return run_bugs(&asked, &setting);
    if (flags.sweep || flags.errors) return run_cuts(&asked);
    if (asked.seed && asked.seeds) {
        fprintf(stderr, "leat-sim: --seed N runs that one; many begin with --from N\n");
        return 2;
    }
    if (asked.seeds && flags.stages) return run_stages(&asked);
    if (asked.seeds) return run_seeds(&asked, &setting);
    if (asked.seed) return run_seed(&setting, asked.seed, NULL);
    usage(stderr);
    return 2;
}
