/* SPDX-License-Identifier: Apache-2.0 */
/* The port suite on the simulated ports: the same promises as the real ones keep. */
#include "tests/os/port_suite.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

struct sim_rig {
    struct port_rig rig;
    struct sim_world *world;
    struct sim_disk *disk;
    struct sim_process *process;
    struct sim_actor *actors[LEAT_ACTORS];
    void (*on_start[LEAT_ACTORS])(void *actor);
    void *self[LEAT_ACTORS];
    const struct leat_actor_ops *ops[LEAT_ACTORS];
    bool finished;
};

static const unsigned numbers[3] = {PORT_LEFT, PORT_RIGHT, PORT_DISK};
static uint64_t seed;

static const struct leat_env *rig_env(void *ctx, unsigned number)
{
    return &((struct sim_rig *)ctx)->actors[number]->env;
}

static void start(struct sim_world *world, struct sim_event *event)
{
    struct sim_rig *sim = event->a;
    unsigned number = event->actor->number;
    if (sim->on_start[number]) sim->on_start[number](event->actor->self);
    (void)world;
}

static void rig_attach(void *ctx, unsigned number, void *actor, const struct leat_actor_ops *ops,
                       void (*on_start)(void *actor))
{
    struct sim_rig *sim = ctx;
    sim->on_start[number] = on_start;
    sim->self[number] = actor;
    sim->ops[number] = ops;
}

static void rig_finish(void *ctx)
{
    ((struct sim_rig *)ctx)->finished = true;
}

static void close_all(void *arg)
{
    sim_net_close_all(arg);
}

static void rig_run(void *ctx)
{
    struct sim_rig *sim = ctx;
    for (int i = 0; i < 3; i++) {
        if (!sim->self[numbers[i]]) continue;
        sim_actor_register(sim->actors[numbers[i]], sim->self[numbers[i]], sim->ops[numbers[i]]);
        sim_actor_post(sim->actors[numbers[i]], 0, start, sim);
    }
    sim_world_run(sim->world, sim->world->now_us + 60ull * 1000000, &sim->finished);
    PORT_CHECK(sim->finished);
    PORT_CHECK(sim_process_enter(sim->process, close_all, sim->process));
    sim_world_run(sim->world, sim->world->now_us + 1000000, NULL);
    PORT_CHECK(sim->world->failure[0] == '\0');
}

static struct port_rig *rig_make(void)
{
    struct sim_rig *sim = calloc(1, sizeof *sim);
    PORT_CHECK(sim != NULL);
    sim->world = sim_world_create(++seed, false);
    sim->disk = sim_disk_create(sim->world);
    sim->process = sim_process_create(sim->world, "rig");
    sim->process->disk = sim->disk;
    for (int i = 0; i < 3; i++)
        sim->actors[numbers[i]] = sim_actor_create(sim->process, numbers[i]);
    sim->rig = (struct port_rig){
        .ctx = sim,
        .env = rig_env,
        .attach = rig_attach,
        .run = rig_run,
        .finish = rig_finish,
        .listen_address = "127.0.0.1:0",
        .refused_address = "127.0.0.1:1",
    };
    return &sim->rig;
}

static void rig_drop(struct port_rig *rig)
{
    struct sim_rig *sim = rig->ctx;
    sim_world_destroy(&sim->world);
    sim_disk_destroy(&sim->disk);
    free(sim);
}

int main(void)
{
    const struct port_family family = {"sim", rig_make, rig_drop};
    int failed = 0;
    for (unsigned round = 0; round < 20 && !failed; round++)
        failed = port_suite_run(&family);
    return failed;
}
