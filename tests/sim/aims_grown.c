/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at store files that have grown, in some of the seeds of one server. Until a flush of the file has
 * ended, its failure takes what the file has grown by, while the catalogue's rows that lie there are flushed by
 * themselves. So that flush fails, and the process is killed soon: the memory of the segments stays as it was. */
#include <string.h>

#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"
#include "tests/sim/swift.h"

enum {
    SEEDS_PER_MILLE = 300,
    GAP_US_MAX = 1500 * 1000,
    LOOK_US = 2000,
    KILL_US_MAX = 20 * 1000,
};

static struct {
    struct sim_rng rng;
    uint64_t not_before_us;
} aim; /* of the one scenario of a process */

static void kill_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over || !server->process->alive || server->boots != event->n)
        return;
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_trace(world, "aim: %s is killed, and a file of its store may lose its end", server->name);
    sim_process_die(server->process, SIM_DEATH_KILL);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over) return;
    bool wanted = world->now_us >= aim.not_before_us;
    if (wanted && server->process->alive && sim_disk_failed_grown(server->disk)) {
        sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, KILL_US_MAX), kill_due, server)
            ->n = server->boots;
        aim.not_before_us = world->now_us + sim_rng_between(&aim.rng, 2 * KILL_US_MAX, GAP_US_MAX);
        wanted = false;
    }
    sim_disk_fail_grown(server->disk, wanted && server->ready);
    sim_world_at(world, world->now_us + LOOK_US, look, server);
}

void sim_aim_grown_start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    memset(&aim, 0, sizeof aim);
    sim_rng_init(&aim.rng, world->seed, "aim-grown");
    /* A torment tells how long others wait, for which the server has to live on. */
    if (!sim_torment_is_chosen(scenario) && sim_rng_chance(&aim.rng, SEEDS_PER_MILLE))
        sim_world_at(world, world->now_us + LOOK_US, look, &scenario->servers[0]);
}
