/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster: machines that form it in any order, and end together. */
#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum { GRACE_US_MIN = 30 * 1000, GRACE_US_MAX = 1500 * 1000 };

/* With --hasty what a node that has gone had is copied elsewhere within a second or so, not 20 s later, which is longer
 * than faults last: so nodes come back while that is under way, or with copies of which others have been made. */
void sim_nodes_grace_choose(struct scenario *scenario)
{
    struct sim_rng rng;
    sim_rng_init(&rng, scenario->world->seed, "grace");
    scenario->grace_us = sim_rng_between(&rng, GRACE_US_MIN, GRACE_US_MAX);
}

void sim_nodes_grace_set(const struct sim_server *server)
{
    const struct scenario *scenario = server->scenario;
    for (uint32_t c = 0; scenario->grace_us && c < scenario->cores; c++)
        leat_primary_grace_set(leat_node_primary(server->node, c), 4 * scenario->grace_us,
                               scenario->grace_us, scenario->grace_us);
}

bool sim_nodes_are_ready(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!scenario->servers[i].ready || scenario->servers[i].stopping) return false;
    return true;
}

bool sim_nodes_form(struct scenario *scenario, uint64_t limit_us)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_server_boot_later(
            &scenario->servers[i],
            sim_rng_between(&scenario->world->work, 1, scenario->brief ? 200000 : 2000000));
    return sim_run_until(scenario, sim_nodes_are_ready, limit_us);
}

/* The same for all at once: a power cut of the room, or a kill of every process. */
void sim_nodes_die(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    bool power = scenario->power_cuts && sim_rng_chance(rng, 700);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        sim_process_die(server->process,
                        sim_death_of(server, power ? SIM_DEATH_POWER : SIM_DEATH_KILL));
    }
}

bool sim_nodes_are_even(struct scenario *scenario)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_node *node = scenario->servers[i].node;
        if (!node || !leat_node_coordinator(node)) continue;
        uint64_t applied = leat_coordinator_see(leat_node_coordinator(node)).applied;
        if (applied < least) least = applied;
        if (applied > most) most = applied;
    }
    return least >= most;
}

bool sim_nodes_ready(struct scenario *scenario, uint64_t limit_us)
{
    return sim_run_until(scenario, sim_nodes_are_ready, limit_us);
}
