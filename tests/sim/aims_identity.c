/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at the file `identity`, in a few of the cluster seeds whose machines may lose power. A machine's
 * process is killed when the file is written and not flushed yet; the next start reads the identity out of the page
 * cache. Soon after that start is ready the power goes. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 30,
    LOOK_US = 3000,
    SOON_US_MAX = 30 * 1000,
};

static struct {
    const struct sim_server *server; /* NULL: none is struck, or no more */
    struct sim_rng rng;
} aim; /* of the one scenario of a process */

void sim_aim_identity_choose(struct scenario *scenario)
{
    aim.server = NULL;
    /* A word that no seed of another bug's row draws this aim with (bugs.md). */
    sim_rng_init(&aim.rng, scenario->world->seed, "identity found");
    if (!sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return;
    aim.server = &scenario->servers[sim_rng_below(&aim.rng, scenario->server_count)];
    if (sim_death_of(aim.server, SIM_DEATH_POWER) != SIM_DEATH_POWER) aim.server = NULL;
}

static void power_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->boots != event->n || !server->process->alive || aim.server != server) return;
    if (!server->ready) {
        sim_world_at(world, world->now_us + LOOK_US, power_due, server)->n = event->n;
        return;
    }
    aim.server = NULL;
    sim_fault_struck(world, SIM_FAULT_POWER);
    sim_trace(world, "aim: the power of %s goes, which found its identity", server->name);
    sim_process_die(server->process, SIM_DEATH_POWER);
}

void sim_aim_identity_boot(struct sim_server *server)
{
    struct sim_world *world = server->scenario->world;
    if (server != aim.server) return;
    if (sim_disk_kill_at_flush(server->disk, server->boots == 1 ? "identity" : NULL)) {
        /* The process was killed there. */
        sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, SOON_US_MAX), power_due, server)
            ->n = server->boots;
        return;
    }
    if (server->boots > 1) aim.server = NULL;
}
