/* SPDX-License-Identifier: Apache-2.0 */
/* Which trap of many steps a cluster's seed has, and what it needs of the streams. A seed has one at most: each takes
 * the place of the scheduled faults. */
#include "tests/sim/stage.h"

/* A trap takes two to five times as long as a brief seed. Of the seeds whose dice have a trap, so many have it; the
 * rest have the scheduled faults. The early traps take less time. */
enum { EARLY_PER_MILLE = 600, TRAPS_PER_MILLE = 400 };

static const struct kind {
    void (*start)(struct scenario *scenario);
    struct sim_trap_needs needs;
} kinds[SIM_TRAPS] = {
    [SIM_TRAP_NONE] = {NULL, {.batches = 1}},
    [SIM_TRAP_READER] = {sim_trap_reader_start, {.batches = 4, .copies_min = 2}},
    [SIM_TRAP_FILL] = {sim_trap_fill_start, {.batches = 1, .copies_min = 2, .few_logs = true}},
    [SIM_TRAP_LEAVE] = {sim_trap_leave_start, {.batches = 1, .copies = 2, .few_logs = true}},
    [SIM_TRAP_DELETES] = {NULL, {.batches = 8, .copies_min = 2, .few_logs = true}}, /* deletes.c */
    [SIM_TRAP_HOME] = {sim_trap_home_start, {.batches = 4, .copies_min = 2}},
    [SIM_TRAP_MOVED] = {sim_trap_moved_start, {.batches = 4, .copies = 2, .few_logs = true}},
    [SIM_TRAP_UNASKED] = {sim_trap_unasked_start,
                          {.batches = 4, .copies = 3, .few_logs = true, .on_disk = true}},
    [SIM_TRAP_HANDED] = {sim_trap_handed_start, {.batches = 4, .copies = 2, .few_logs = true}},
    [SIM_TRAP_FRONT] =
        {sim_trap_front_start,
         {.batches = 4, .copies = 2, .few_logs = true, .one_log = true, .on_disk = true}},
    [SIM_TRAP_LOSS] = {sim_trap_loss_start,
                       {.batches = 4, .copies = 2, .few_logs = true, .on_disk = true}},
    [SIM_TRAP_STAGE] = {sim_stage_start, {0}}, /* the stage says what */
    [SIM_TRAP_SLOW] = {sim_trap_slow_start, {.batches = 6, .copies = 2, .few_logs = true}},
};

const struct sim_trap_needs *sim_trap_needs(const struct scenario *scenario)
{
    return scenario->trap == SIM_TRAP_STAGE ? &scenario->stage->needs
                                            : &kinds[scenario->trap].needs;
}

static bool trap_is_kept(uint64_t seed, uint32_t per_mille)
{
    struct sim_rng rng;
    sim_rng_init(&rng, seed, "traps that are kept");
    return sim_rng_chance(&rng, per_mille);
}

bool sim_trap_choose_early(struct scenario *scenario, const struct scenario_options *options)
{
    if (options->nodes != SIM_VOTERS_MAX || options->calm || options->deletes ||
        scenario->trap != SIM_TRAP_NONE || !trap_is_kept(options->seed, EARLY_PER_MILLE))
        return false;
    if (sim_trap_reader_choose(options->seed))
        scenario->trap = SIM_TRAP_READER;
    else if (sim_trap_fill_choose(options->seed))
        scenario->trap = SIM_TRAP_FILL;
    else if (sim_trap_leave_choose(options->seed))
        scenario->trap = SIM_TRAP_LEAVE;
    return scenario->trap != SIM_TRAP_NONE;
}

void sim_trap_choose(struct scenario *scenario)
{
    static bool (*const choices[SIM_TRAPS])(struct scenario *) = {
        [SIM_TRAP_HOME] = sim_trap_home_choose,       [SIM_TRAP_MOVED] = sim_trap_moved_choose,
        [SIM_TRAP_UNASKED] = sim_trap_unasked_choose, [SIM_TRAP_HANDED] = sim_trap_handed_choose,
        [SIM_TRAP_FRONT] = sim_trap_front_choose,     [SIM_TRAP_LOSS] = sim_trap_loss_choose,
        [SIM_TRAP_SLOW] = sim_trap_slow_choose,
    };
    if (scenario->server_count < SIM_VOTERS_MAX || scenario->calm || scenario->deletes ||
        scenario->closed_rot || scenario->rows_rot ||
        !trap_is_kept(scenario->world->seed, TRAPS_PER_MILLE))
        return;
    for (unsigned i = 0; i < SIM_TRAPS && scenario->trap == SIM_TRAP_NONE; i++)
        if (choices[i] && choices[i](scenario)) scenario->trap = i;
}

void sim_trap_start(struct scenario *scenario)
{
    if (kinds[scenario->trap].start) kinds[scenario->trap].start(scenario);
}
