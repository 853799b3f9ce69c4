/* SPDX-License-Identifier: Apache-2.0 */
/* A world with network, disks, arenas and one-sided writes: the world itself calls these only by this table. */
#include "tests/sim/sim.h"

static void attach(struct sim_actor *actor)
{
    struct sim_process *process = actor->process;
    actor->net = sim_net_ops;
    actor->net.ctx = actor;
    actor->disk = sim_disk_ops;
    actor->disk.ctx = actor;
    actor->env.net = &actor->net;
    if (process->disk) actor->env.disk = &actor->disk;
    if (process->arena && actor->number == LEAT_ACTOR_STORE)
        actor->env.arena = sim_arena_attach(process->arena, actor);
}

static void process_died(struct sim_process *process, enum sim_death death)
{
    sim_net_process_died(process, death);
    if (process->disk) sim_disk_process_died(process, death);
    if (process->arena && death == SIM_DEATH_POWER) sim_arena_empty(process->arena);
    if (process->rmem_host && death == SIM_DEATH_POWER) sim_rmem_power_cut(process->rmem_host);
}

static void world_fini(struct sim_world *world)
{
    sim_net_fini(world);
    sim_rmem_fini(world);
}

struct sim_world *sim_world_create(uint64_t seed, bool tracing)
{
    static const struct sim_ports ports = {
        .attach = attach,
        .turn_ended = sim_net_actor_flush,
        .process_died = process_died,
        .actor_fini = sim_disk_actor_fini,
        .world_fini = world_fini,
    };
    return sim_world_with(&ports, seed, tracing);
}
