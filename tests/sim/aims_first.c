/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at the first starts of a machine, in some of the cluster seeds, while the cluster forms: one machine
 * is struck while it makes its files, starts anew with what is left of them, and is struck again. A write or a flush is
 * refused, the process is killed inside a port call, or the power goes at a disk operation. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 250,
    STARTS = 3,
    CALLS_MAX = 60,
    OPS_MAX = 30,
    FLUSH_PER_MILLE = 300,
    RESTART_US = 300 * 1000,
};

static struct {
    const struct sim_server *server; /* NULL: none is struck */
    struct sim_rng rng;
} aim; /* of the one scenario of a process */

static void power_struck(void *arg)
{
    struct sim_server *server = arg;
    sim_fault_struck(server->scenario->world, SIM_FAULT_POWER_OP);
    sim_trace(server->scenario->world, "aim: the power of %s goes amid its start", server->name);
}

void sim_aim_first_choose(struct scenario *scenario)
{
    aim.server = NULL;
    sim_rng_init(&aim.rng, scenario->world->seed, "aim-first");
    if (!sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return;
    aim.server = &scenario->servers[sim_rng_below(&aim.rng, scenario->server_count)];
}

static void restart_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->boots == event->n && server->process->alive && !server->ready)
        sim_process_die(server->process, SIM_DEATH_KILL);
    (void)world;
}

void sim_aim_first_boot(struct sim_server *server)
{
    struct scenario *scenario = server->scenario;
    if (server != aim.server) return;
    sim_disk_no_errors(server->disk); /* of the start before, which it did not come to */
    if (server->boots > STARTS) {
        aim.server = NULL;
        return;
    }
    /* What lives on is started anew by an operator: after an error its coordinator has stopped. */
    sim_world_at(scenario->world, scenario->world->now_us + RESTART_US, restart_due, server)->n =
        server->boots;
    if (sim_rng_chance(&aim.rng, FLUSH_PER_MILLE))
        sim_disk_fail_next(server->disk,
                           sim_rng_chance(&aim.rng, 500) ? LEAT_DISK_WRITE : LEAT_DISK_SYNC);
    bool power = scenario->power_cuts && sim_rng_chance(&aim.rng, server->boots == 1 ? 200 : 600) &&
                 sim_death_of(server, SIM_DEATH_POWER) == SIM_DEATH_POWER;
    if (power) {
        sim_disk_aim(server->disk, sim_rng_between(&aim.rng, 1, OPS_MAX),
                     (enum sim_cut_phase)sim_rng_below(&aim.rng, 3), power_struck, server);
        return;
    }
    server->process->death = SIM_DEATH_KILL;
    server->process->die_in_calls = sim_rng_between(&aim.rng, 1, CALLS_MAX);
    sim_fault_struck(scenario->world, SIM_FAULT_KILL_CALL);
}
