/* SPDX-License-Identifier: Apache-2.0 */
/* Brief seeds: more than half of a cluster's seeds have a quarter of the work, fewer clients and logs, and wait for
 * nothing that takes seconds. Most of the cost of a seed is not where things go wrong: where 960 records are written,
 * forming the cluster, waiting for sessions that time out, and asking all nodes for their state take half of the
 * events. With deliberate bugs a brief seed fails as often for each second of a processor as a long seed (README), and
 * there are more brief seeds, so more draws differ. Faults that need much before they happen have long seeds. A long
 * seed has half of the work where it has few clients and no trap that waits for many batches. */
#include "tests/sim/scenario.h"

enum {
    BRIEF_PER_MILLE = 970, /* of those that can be */
    FEW_PER_MILLE = 750,   /* of the others: few clients beside what they are for */
    END_PER_MILLE =
        350, /* of the brief ones: all nodes die once more, and everything is read again */
    /* To ask each node at once takes up to a third of a seed's events, whatever came before. In the other seeds one
     * node is asked when a quiet period ends: told_round.c. */
    TOLD_PER_MILLE = 500,
    TOLD_PER_MILLE_BRIEF = 150,
    KAFKA_PER_MILLE =
        400, /* of those with clients of Kafka's protocol; their sessions take seconds to end */
};

struct sim_work sim_brief_work(const struct scenario *scenario)
{
    if (scenario->brief) return (struct sim_work){.records = 240, .batches = 100};
    bool half = scenario->few && !scenario->deletes && sim_trap_needs(scenario)->batches == 1;
    if (half) return (struct sim_work){.records = 480, .batches = 250};
    return (struct sim_work){.records = 960, .batches = 500};
}

void sim_brief_choose(struct scenario *scenario, const struct scenario_options *options)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "brief");
    bool chosen = sim_rng_chance(&rng, BRIEF_PER_MILLE);
    uint64_t told = sim_rng_below(&rng, 1000);
    bool kafka = sim_rng_chance(&rng, KAFKA_PER_MILLE);
    bool long_one = options->calm || options->records || scenario->deletes ||
                    scenario->trap != SIM_TRAP_NONE || scenario->rows_rot;
    scenario->brief = chosen && !long_one;
    scenario->few = scenario->brief || sim_rng_chance(&rng, FEW_PER_MILLE);
    scenario->told_asked = told < (scenario->few ? TOLD_PER_MILLE_BRIEF : TOLD_PER_MILLE);
    scenario->ends_anew = !scenario->brief || sim_rng_chance(&rng, END_PER_MILLE);
    if (!scenario->brief) return;
    scenario->with_kafka &= kafka;
}
