/* A cluster: machines that form it in any order, and end together. */
#include "tests/sim/scenario.h"

bool sim_nodes_are_ready(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!scenario->servers[i].ready || scenario->servers[i].stopping) return false;
    return true;
}

bool sim_nodes_form(struct scenario *scenario, uint64_t limit_us)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_server_boot_later(&scenario->servers[i],
                              sim_rng_between(&scenario->world->work, 1, 2000000));
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

bool sim_nodes_ready(struct scenario *scenario, uint64_t limit_us)
{
    return sim_run_until(scenario, sim_nodes_are_ready, limit_us);
}
