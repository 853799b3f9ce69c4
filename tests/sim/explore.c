/* SPDX-License-Identifier: Apache-2.0 */
/* Exploring: runs that begin where seeds seldom come.
 *
 * A seed is run, and its visits are noted: pairs (visits.def), and which pair came after which. A new visit is kept as
 * a prefix: the seed, the dice thrown since, and the turn of the visit. Then the prefix whose pair was met least often
 * so far is run again, up to about that turn, and forked there: each child goes on to its end with dice of its own, and
 * its new visits are prefixes again. Half of the children are struck by a fault or two right after the fork.
 *
 * Where a rule is broken (base/bug.h) each run that came to the rule is a prefix: the broken rule matters only by what
 * happens around it. The more seldom runs come to the rule, the more of the time is spent on the runs that did. */
#include "tests/sim/explore.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"

enum {
    PREFIXES_MAX = 4096,
    CHILDREN = 8,          /* of a fork */
    TRIES_MAX = 6,         /* as often a prefix is chosen */
    FRESH_PER_MILLE = 850, /* of choices, so that two runs of five are new seeds */
    BEFORE_TURNS = 3000,   /* a fork is so much before what was met, at most; or behind a rule */
    FAR_BEFORE = 8,        /* times that, now and then, before a rule */
    MEETS_MAX = 16,        /* that are noted of a run */
    MEETS_GAP = 200,       /* turns between two of them, at first */
    DEAD_EVENTS = 100000,  /* what a run is taken to have cost that could not say it */
    DIED = 1,
    ENDED = 2,
};

/* The turns at which a run came to the rule that is broken: where it did so often, some of them. */
struct meets {
    uint64_t turns[MEETS_MAX], gap;
    unsigned count;
};

struct prefix {
    uint64_t seed, turn;
    struct sim_dice_plan dice;
    unsigned visit, behind; /* what was met there; SIM_VISITS: nothing before */
    unsigned tries;
    struct meets meets; /* not empty: the run of this prefix came to the rule */
    uint64_t events;    /* of it, in all */
};

/* Where a run says what it came to: memory of this process and its children. */
struct outcome {
    int state;
    uint64_t value; /* its dice */
    struct scenario_result result;
    struct meets meets;
};

static struct {
    const struct sim_explore_options *asked;
    struct prefix prefixes[PREFIXES_MAX];
    unsigned prefix_count;
    uint64_t pairs[SIM_VISITS], behind[SIM_VISITS][SIM_VISITS]; /* runs that met them */
    uint64_t runs, forks, failures, next_seed, events;
    uint64_t met;                    /* of the new seeds: so many came to the rule */
    char verdict[SIM_VERDICT_BYTES]; /* of the first failure */
    struct meets meets;              /* of this process */
    struct sim_rng rng;
    struct sim_replay now;    /* what is run */
    struct outcome *outcomes; /* [CHILDREN] */
    unsigned child, running;
} explore;

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* ---- a rule that is broken ---- */

#ifdef LEAT_BUGS
static void on_met(void)
{
    struct meets *meets = &explore.meets;
    uint64_t turn = sim_dice_turn();
    if (!meets->gap) meets->gap = MEETS_GAP;
    if (meets->count && turn < meets->turns[meets->count - 1] + meets->gap) return;
    if (meets->count == MEETS_MAX) {
        for (unsigned i = 0; i < MEETS_MAX / 2; i++)
            meets->turns[i] = meets->turns[2 * i];
        meets->count = MEETS_MAX / 2;
        meets->gap *= 2;
    }
    meets->turns[meets->count++] = turn;
}
#endif

static void bug_set(unsigned bug)
{
    sim_bug_set(bug);
#ifdef LEAT_BUGS
    leat_bug_on_met = bug ? on_met : NULL;
#endif
}

/* Of a child: note where its run came to the rule after its fork. */
static void meets_note(const struct sim_replay *replay, const struct outcome *outcome)
{
    unsigned count = replay->dice.count;
    uint64_t fork = count ? replay->dice.at[count - 1].turn : 0;
    struct meets meets = {0};
    for (unsigned i = 0; i < outcome->meets.count; i++)
        if (outcome->meets.turns[i] > fork) meets.turns[meets.count++] = outcome->meets.turns[i];
    if (meets.count == 0) return;
    explore.met += count == 0;
    if (explore.prefix_count == PREFIXES_MAX || count + 1 >= SIM_DICE_MAX) return;
    explore.prefixes[explore.prefix_count++] = (struct prefix){.seed = replay->seed,
                                                               .dice = replay->dice,
                                                               .meets = meets,
                                                               .events = outcome->result.events};
}

/* ---- what a run came to ---- */

static void keep_path(char *out, size_t bytes, const char *what, uint64_t turn)
{
    const char *dir = explore.asked->keep ? explore.asked->keep : ".";
    snprintf(out, bytes, "%s/%s-%" PRIu64 "-%" PRIu64 ".replay", dir, what, explore.now.seed, turn);
}

static void prefix_add(const struct sim_replay *replay, unsigned visit, unsigned behind,
                       uint64_t turn)
{
    if (explore.prefix_count == PREFIXES_MAX || replay->dice.count + 1 >= SIM_DICE_MAX) return;
    explore.prefixes[explore.prefix_count++] = (struct prefix){
        .seed = replay->seed, .turn = turn, .dice = replay->dice, .visit = visit, .behind = behind};
    if (!explore.asked->keep) return;
    char path[300], what[100];
    snprintf(what, sizeof what, "%s%s%s", sim_visit_name(visit),
             behind < SIM_VISITS ? "-behind-" : "",
             behind < SIM_VISITS ? sim_visit_name(behind) : "");
    keep_path(path, sizeof path, what, turn);
    (void)sim_replay_write(path, replay, what);
}

/* Pairs first, then which came behind which. */
static void visits_note(const struct sim_replay *replay, const struct sim_visited *visited)
{
    for (unsigned i = 0; i < SIM_VISITS; i++) {
        if (!visited->count[i]) continue;
        if (explore.pairs[i]++ == 0) prefix_add(replay, i, SIM_VISITS, visited->first[i]);
    }
    for (unsigned i = 0; i < SIM_VISITS; i++)
        for (unsigned k = 0; k < SIM_VISITS; k++) {
            if (!visited->count[i] || !visited->count[k]) continue;
            if (visited->first[k] >= visited->first[i]) continue;
            if (explore.behind[i][k]++ == 0) prefix_add(replay, i, k, visited->first[i]);
        }
}

static bool passes_without_bug(const struct sim_replay *replay);

static void failure_tell(const struct sim_replay *replay, const char *why)
{
    char path[300];
    if (replay->setting.bug && !passes_without_bug(replay)) return;
    uint64_t turn = replay->dice.count ? replay->dice.at[replay->dice.count - 1].turn : 0;
    if (explore.failures++ == 0) snprintf(explore.verdict, sizeof explore.verdict, "%s", why);
    if (explore.asked->quiet) return;
    keep_path(path, sizeof path, "failure", turn);
    if (!sim_replay_write(path, replay, why)) return;
    printf("tools/sim --replay %s: %s\n", path, why);
    fflush(stdout);
}

/* from: the turn at which it began, as a child. */
static void outcome_take(const struct sim_replay *replay, const struct outcome *outcome, int status,
                         uint64_t from)
{
    char why[SIM_VERDICT_BYTES];
    explore.runs++;
    explore.events += outcome->state == ENDED ? outcome->result.events - from : DEAD_EVENTS;
    if (outcome->state == ENDED) {
        visits_note(replay, &outcome->result.visited);
        meets_note(replay, outcome);
        if (outcome->result.failure[0]) failure_tell(replay, outcome->result.failure);
        return;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(why, sizeof why, "A10 stuck: no end within %d s of real time",
                 SIM_SECONDS_PER_SEED);
    else if (outcome->state == DIED)
        snprintf(why, sizeof why, "ended before its end: a replay tells how");
    else
        snprintf(why, sizeof why, "A11 assert: ended by %s %d",
                 WIFSIGNALED(status) ? "signal" : "code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    failure_tell(replay, why);
}

/* ---- a run ---- */

static pid_t forked(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid >= 0) return pid;
    perror("leat-sim: fork");
    _exit(3);
}

static int status_of(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* In a process of its own: what is run, to its end. */
static void body(const struct sim_replay *replay, struct outcome *outcome)
{
    struct scenario_options options = sim_setting_options(&replay->setting, replay->seed);
    struct scenario_result result;
    if (!freopen("/dev/null", "w", stderr)) _exit(3);
    options.dice = &replay->dice;
    bug_set(replay->setting.bug);
    alarm(SIM_SECONDS_PER_SEED);
    scenario_run(&options, &result);
    if (explore.child < CHILDREN) outcome = &explore.outcomes[explore.child];
    outcome->result = result;
    outcome->meets = explore.meets;
    outcome->state = ENDED;
    _exit(0);
}

static bool passes_without_bug(const struct sim_replay *replay)
{
    struct sim_replay without = *replay;
    struct outcome *outcome = &explore.outcomes[CHILDREN];
    without.setting.bug = 0;
    outcome->state = 0;
    pid_t pid = forked();
    if (pid == 0) body(&without, outcome);
    (void)status_of(pid);
    explore.events += outcome->state == ENDED ? outcome->result.events : DEAD_EVENTS;
    return outcome->state == ENDED && !outcome->result.failure[0];
}

static void fresh_run(void)
{
    struct sim_replay *now = &explore.now;
    *now = (struct sim_replay){.seed = explore.next_seed++, .setting = explore.asked->setting};
    explore.outcomes[0].state = 0;
    explore.child = CHILDREN;
    pid_t pid = forked();
    if (pid == 0) body(now, &explore.outcomes[0]);
    int status = status_of(pid);
    outcome_take(now, &explore.outcomes[0], status, 0);
}

/* In the process that has run the prefix: it becomes its children, some at a time, and ends with the last child. The
 * parent of the process does not get the children's statuses, so a child notes before it runs that it died. */
static uint64_t on_stop(void)
{
    unsigned running = 0;
    pid_t pids[CHILDREN];
    alarm(0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        if (running == explore.asked->jobs) {
            for (unsigned k = 0; k < i; k++)
                if (pids[k] && waitpid(pids[k], &(int){0}, 0) > 0) pids[k] = 0;
            running = 0;
        }
        pids[i] = forked();
        running++;
        if (pids[i]) continue;
        explore.child = i;
        explore.outcomes[i].state = DIED;
        alarm(SIM_SECONDS_PER_SEED);
        return explore.outcomes[i].value;
    }
    for (unsigned k = 0; k < CHILDREN; k++)
        if (pids[k]) (void)waitpid(pids[k], &(int){0}, 0);
    _exit(0);
}

static uint64_t fork_turn(const struct prefix *prefix)
{
    struct sim_rng *rng = &explore.rng;
    uint64_t least = prefix->dice.count ? prefix->dice.at[prefix->dice.count - 1].turn + 1 : 1;
    uint64_t at = prefix->turn + 1;
    uint64_t before = sim_rng_chance(rng, 500) ? 0 : sim_rng_below(rng, BEFORE_TURNS);
    if (prefix->meets.count) {
        at = prefix->meets.turns[sim_rng_below(rng, prefix->meets.count)] + 1;
        if (before && sim_rng_chance(rng, 250)) return at + before;
        if (before && sim_rng_chance(rng, 250)) before *= FAR_BEFORE;
    }
    return at > least + before ? at - before : least;
}

static void prefix_run(struct prefix *prefix)
{
    struct sim_replay *now = &explore.now;
    uint64_t turn = fork_turn(prefix);
    *now = (struct sim_replay){
        .seed = prefix->seed, .setting = explore.asked->setting, .dice = prefix->dice};
    now->dice.stop_turn = turn;
    now->dice.on_stop = on_stop;
    for (unsigned i = 0; i < CHILDREN; i++) {
        explore.outcomes[i].state = 0;
        explore.outcomes[i].value = sim_rng_next(&explore.rng);
    }
    prefix->tries++;
    explore.forks++;
    explore.child = CHILDREN;
    pid_t pid = forked();
    if (pid == 0) body(now, &explore.outcomes[CHILDREN]);
    int status = status_of(pid);
    explore.events += turn;
    struct sim_replay child = *now;
    child.dice.on_stop = NULL;
    child.dice.stop_turn = 0;
    child.dice.count++;
    for (unsigned i = 0; i < CHILDREN; i++) {
        if (explore.outcomes[i].state == 0) continue; /* the prefix ended before that turn */
        child.dice.at[child.dice.count - 1] =
            (struct sim_dice){.turn = turn, .value = explore.outcomes[i].value};
        outcome_take(&child, &explore.outcomes[i], status, turn);
    }
}

/* ---- which ---- */

static uint64_t met(const struct prefix *prefix)
{
    return prefix->behind < SIM_VISITS ? explore.behind[prefix->visit][prefix->behind]
                                       : explore.pairs[prefix->visit];
}

/* The prefix whose pair was met least often, and that was chosen least often for this pair. Of prefixes that came to a
 * rule: the shortest. */
static struct prefix *prefix_choose(void)
{
    struct prefix *best = NULL;
    uint64_t best_cost = UINT64_MAX;
    for (unsigned i = 0; i < explore.prefix_count; i++) {
        struct prefix *prefix = &explore.prefixes[i];
        bool rule = prefix->meets.count != 0;
        uint64_t cost = (rule ? prefix->events : met(prefix) + 1) * (prefix->tries + 1);
        if (rule != (explore.met != 0)) continue;
        if (prefix->tries == TRIES_MAX || cost >= best_cost) continue;
        best = prefix;
        best_cost = cost;
    }
    return best;
}

static void told(double seconds)
{
    unsigned pairs = 0, behind = 0;
    for (unsigned i = 0; i < SIM_VISITS; i++) {
        pairs += explore.pairs[i] != 0;
        for (unsigned k = 0; k < SIM_VISITS; k++)
            behind += explore.behind[i][k] != 0;
    }
    printf("%" PRIu64 " runs, %" PRIu64 " seeds and %" PRIu64 " forks, %" PRIu64
           " events, %.1f s; %" PRIu64 " failed; %u of %u pairs met, %u one behind another\n",
           explore.runs, explore.next_seed - explore.asked->from, explore.forks, explore.events,
           seconds, explore.failures, pairs, SIM_VISITS, behind);
    if (explore.asked->setting.bug)
        printf("%" PRIu64 " of the seeds came to the rule\n", explore.met);
    printf("never met:");
    for (unsigned i = 0; i < SIM_VISITS; i++)
        if (!explore.pairs[i]) printf(" %s", sim_visit_name(i));
    printf("\nruns that met:");
    for (unsigned i = 0; i < SIM_VISITS; i++)
        if (explore.pairs[i]) printf(" %s %" PRIu64, sim_visit_name(i), explore.pairs[i]);
    printf("\n");
}

static bool is_over(double start_s)
{
    const struct sim_explore_options *asked = explore.asked;
    if (asked->setting.bug && explore.failures) return true;
    if (asked->events && explore.events >= asked->events) return true;
    return asked->seconds && now_s() >= start_s + (double)asked->seconds;
}

/* Of 1,000 choices. */
static uint32_t fresh_per_mille(void)
{
    uint64_t seeds = explore.next_seed - explore.asked->from;
    if (!explore.met) return FRESH_PER_MILLE;
    return FRESH_PER_MILLE / 2 + (uint32_t)(explore.met * FRESH_PER_MILLE / 2 / seeds);
}

bool sim_explore_run(const struct sim_explore_options *options, struct sim_explored *out)
{
    static struct outcome *outcomes;
    double start_s = now_s();
    if (!outcomes)
        outcomes = mmap(NULL, (CHILDREN + 1) * sizeof *outcomes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED) return false;
    memset(&explore, 0, sizeof explore);
    explore.asked = options;
    explore.next_seed = options->from;
    explore.outcomes = outcomes;
    sim_rng_init(&explore.rng, options->from, "explore");
    while (!is_over(start_s)) {
        bool fresh = sim_rng_chance(&explore.rng, fresh_per_mille());
        struct prefix *prefix = fresh ? NULL : prefix_choose();
        if (prefix)
            prefix_run(prefix);
        else
            fresh_run();
    }
    if (!options->quiet) told(now_s() - start_s);
    *out = (struct sim_explored){.failures = explore.failures, .events = explore.events};
    memcpy(out->verdict, explore.verdict, sizeof out->verdict);
    return true;
}
