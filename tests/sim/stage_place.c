/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for readers that go back to a place in a closed segment whose entries before the place are damaged.
 * Closed segments of one machine rot, as in some of the usual seeds; in each seed of the stage that machine votes and
 * owns logs, and aims_place.c flips a bit in an offset or a length before a place that a reader goes back to. */
#include "tests/sim/aims.h"
#include "tests/sim/stage.h"

static void choose(struct scenario *scenario)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "stage-place");
    sim_closed_choose(scenario, (unsigned)sim_rng_below(&rng, SIM_VOTERS_MAX));
    scenario->value_bytes = 1600; /* many segments are closed */
}

const struct sim_stage sim_stage_place = {
    .name = "place", .nodes = 3, .needs = {.batches = 4, .copies = 3}, .choose = choose};
