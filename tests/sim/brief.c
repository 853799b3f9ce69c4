/* Brief seeds: more than half of a cluster's seeds have a quarter of the work, fewer clients and logs, and wait for
 * nothing that takes seconds. What a seed costs is not what goes wrong in it: where 960 records are written, forming
 * the cluster, waiting for sessions that time out, and asking everybody how things are take half of the events. With
 * deliberate bugs a brief seed fails as often for each second of a processor as a long one (README), and there are
 * more of them, so more that is drawn differently. What needs much before it happens has long seeds. */
#include "tests/sim/scenario.h"

enum {
    BRIEF_PER_MILLE = 850, /* of those that can be */
    TOLD_PER_MILLE = 250,
    KAFKA_PER_MILLE =
        400, /* of those with clients of Kafka's protocol; their sessions take seconds to end */
};

void sim_brief_choose(struct scenario *scenario, const struct scenario_options *options)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "brief");
    bool chosen = sim_rng_chance(&rng, BRIEF_PER_MILLE);
    bool told = sim_rng_chance(&rng, TOLD_PER_MILLE), kafka = sim_rng_chance(&rng, KAFKA_PER_MILLE);
    bool long_one = options->calm || options->records || scenario->deletes ||
                    scenario->trap != SIM_TRAP_NONE || scenario->closed_rot || scenario->rows_rot;
    if (!chosen || long_one) return;
    scenario->brief = true;
    scenario->brief_told = told;
    scenario->with_kafka &= kafka;
}
