/* SPDX-License-Identifier: Apache-2.0 */
/* A night's run: all kinds of worlds in turn, and a report of what was visited in them. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tests/sim/job.h"

enum {
    SLICE = 200,       /* seeds of one kind, then as many of the next kind */
    TWICE_EVERY = 100, /* of so many seeds one is run twice, to see that it replays */
};

static const struct {
    const char *name;
    struct sim_setting setting;
    unsigned slices; /* in each round */
} worlds[] = {
    {"three nodes", {.nodes = 3}, 4},
    {"--hard", {.nodes = 3, .hard = true}, 2},
    {"--deletes", {.nodes = 3, .deletes = true}, 1},
    {"--hard --hasty", {.nodes = 3, .hard = true, .hasty = true}, 1},
    {"one node", {.nodes = 1}, 1},
};
enum { WORLDS = sizeof worlds / sizeof *worlds };

struct night {
    const struct sim_night_options *asked;
    uint64_t next; /* seed */
    time_t start_s;
    struct sim_totals totals[WORLDS];
};

static uint64_t seconds_gone(const struct night *night)
{
    return (uint64_t)(time(NULL) - night->start_s);
}

static uint64_t events_run(const struct night *night)
{
    uint64_t events = 0;
    for (unsigned i = 0; i < WORLDS; i++)
        events += night->totals[i].events;
    return events;
}

static bool is_over(const struct night *night)
{
    const struct sim_night_options *asked = night->asked;
    return events_run(night) >= asked->events ||
           (asked->seconds && seconds_gone(night) >= asked->seconds);
}

static void slice_run(struct night *night, unsigned world)
{
    struct sim_seeds_options options = {.setting = worlds[world].setting,
                                        .from = night->next,
                                        .count = SLICE,
                                        .twice_every = TWICE_EVERY,
                                        .jobs = night->asked->jobs};
    sim_seeds_add(&options, &night->totals[world]);
    night->next += SLICE;
    printf("%" PRIu64 " s, %" PRIu64 " million events: %s to seed %" PRIu64 "\n",
           seconds_gone(night), events_run(night) / 1000000, worlds[world].name, night->next - 1);
    fflush(stdout);
}

/* ---- the report ---- */

static void worlds_print(const struct night *night)
{
    printf("| worlds | seeds | failed | run twice | million events | virtual hours | batches acked "
           "| marks | copies compared |\n|---|---|---|---|---|---|---|---|---|\n");
    for (unsigned i = 0; i < WORLDS; i++) {
        const struct sim_totals *totals = &night->totals[i];
        printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %.1f | %" PRIu64
               " | %" PRIu64 " | %" PRIu64 " |\n",
               worlds[i].name, totals->seeds, totals->failed, totals->twice,
               totals->events / 1000000, (double)totals->virtual_us / 3.6e9, totals->batches,
               totals->marks, totals->compared);
    }
}

static uint64_t seeds_with(const struct night *night, int fault)
{
    uint64_t seeds = 0;
    for (unsigned i = 0; i < WORLDS; i++)
        seeds += night->totals[i].seeds_with[fault];
    return seeds;
}

/* The number of worlds that should have it and have not. */
static unsigned fault_print(const struct night *night, int fault)
{
    unsigned missing = 0;
    printf("| %s |", sim_fault_name((enum sim_fault)fault));
    for (unsigned i = 0; i < WORLDS; i++) {
        const struct sim_totals *totals = &night->totals[i];
        bool absent = sim_fault_missing(&worlds[i].setting, totals, fault);
        printf(" %" PRIu64 " in %" PRIu64 "%s |", totals->faults[fault], totals->seeds_with[fault],
               absent ? ", missing" : "");
        missing += absent;
    }
    printf("\n");
    return missing;
}

/* What the fewest seeds had comes first. */
static unsigned faults_print(const struct night *night)
{
    bool printed[SIM_FAULTS] = {false};
    unsigned missing = 0;
    printf("\nHow often, and in how many seeds:\n| fault |");
    for (unsigned i = 0; i < WORLDS; i++)
        printf(" %s |", worlds[i].name);
    printf("\n|---|");
    for (unsigned i = 0; i < WORLDS; i++)
        printf("---|");
    printf("\n");
    for (unsigned row = 0; row < SIM_FAULTS; row++) {
        int least = -1;
        for (int i = 0; i < SIM_FAULTS; i++)
            if (!printed[i] && (least < 0 || seeds_with(night, i) < seeds_with(night, least)))
                least = i;
        printed[least] = true;
        missing += fault_print(night, least);
    }
    return missing;
}

/* How often each pair of visits.def was met, a line for each kind of cluster. Returns how many are too rare: that is
 * known of the worlds that ask for nothing. */
static int visits_told(const struct night *night)
{
    printf("\n");
    for (unsigned i = 0; i < WORLDS; i++) {
        if (worlds[i].setting.nodes == 1) continue;
        printf("%s, ", worlds[i].name);
        sim_visits_print(&night->totals[i].visited, true);
    }
    return sim_visits_rare(&night->totals[0].visited, night->totals[0].seeds);
}

int sim_night_run(const struct sim_night_options *asked)
{
    static struct night night;
    night = (struct night){.asked = asked, .next = asked->from, .start_s = time(NULL)};
    while (!is_over(&night))
        for (unsigned world = 0; world < WORLDS; world++)
            for (unsigned i = 0; i < worlds[world].slices && !is_over(&night); i++)
                slice_run(&night, world);
    worlds_print(&night);
    unsigned missing = faults_print(&night);
    int rare = visits_told(&night);
    uint64_t seeds = 0, failed = 0;
    for (unsigned i = 0; i < WORLDS; i++) {
        seeds += night.totals[i].seeds;
        failed += night.totals[i].failed;
    }
    printf("\n%" PRIu64 " events, %" PRIu64 " seeds from %" PRIu64 " on, %" PRIu64
           " failed, %u kinds of faults are missing, %d pairs too rare, %" PRIu64 " s\n",
           events_run(&night), seeds, asked->from, failed, missing, rare, seconds_gone(&night));
    return failed || missing || rare ? 1 : 0;
}
