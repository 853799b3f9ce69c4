/* A cluster: machines that form it in any order, work, die, stand still and lose sight of each
 * other, one fault at a time, and come back. */
#include "tests/sim/scenario.h"

#include "base/assert.h"

static struct sim_server *any_server(struct scenario *scenario)
{
    return &scenario->servers[sim_rng_below(&scenario->world->fault, scenario->server_count)];
}

static void die(struct sim_server *server, enum sim_death death)
{
    if (!server->process || !server->process->alive) return;
    sim_faults_count_death(server->scenario,
                           death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    sim_process_die(server->process, death);
}

/* One way, or both: then for the same time. */
static void cut(struct scenario *scenario, const struct sim_server *a, const struct sim_server *b)
{
    struct sim_world *world = scenario->world;
    uint64_t until_us = world->now_us + sim_rng_between(&world->fault, 10000, 3000000);
    if (a == b) return;
    sim_net_cut(world, a->name, b->name, until_us);
    if (sim_rng_chance(&world->fault, 500)) sim_net_cut(world, b->name, a->name, until_us);
    sim_net_delay(world, b->name, a->name, sim_rng_below(&world->fault, 5000));
    world->faults[SIM_FAULT_NODE_CUT]++;
    sim_trace(world, "%s does not reach %s", a->name, b->name);
}

static void strike(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    struct sim_rng *rng = &world->fault;
    struct sim_server *server = any_server(scenario);
    struct sim_process *process = server->process;
    uint64_t pick = sim_rng_below(rng, 100);
    if (pick < 30) {
        cut(scenario, server, any_server(scenario));
    } else if (!process || !process->alive) {
        return;
    } else if (pick < 50) {
        die(server, SIM_DEATH_KILL);
    } else if (pick < 60) {
        if (scenario->power_cuts) die(server, SIM_DEATH_POWER);
    } else if (pick < 75) {
        process->paused_until_us = world->now_us + sim_rng_between(rng, 10000, 4000000);
        world->faults[SIM_FAULT_PAUSE]++;
        sim_trace(world, "%s stands still", process->name);
    } else if (pick < 90) {
        (void)sim_net_reset(process, 500);
    } else if (pick < 95) {
        process->wall_jump_ms += (int64_t)sim_rng_below(rng, 7200000) - 3600000;
        world->faults[SIM_FAULT_CLOCK]++;
    } else {
        sim_server_stop(server);
    }
}

static void fault_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    strike(scenario);
    sim_world_at(world, world->now_us + sim_rng_between(&world->fault, 50000, 1500000), fault_due,
                 scenario);
}

void sim_nodes_faults_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + 50000, fault_due, scenario);
}

void sim_nodes_heal(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    scenario->faults_over = true;
    sim_trace(world, "every node is healed");
    for (unsigned i = 0; i < scenario->server_count; i++) {
        scenario->servers[i].process->paused_until_us = 0;
        for (unsigned j = 0; j < scenario->server_count; j++) {
            sim_net_cut(world, scenario->servers[i].name, scenario->servers[j].name, 0);
            sim_net_delay(world, scenario->servers[i].name, scenario->servers[j].name, 0);
        }
    }
}

static bool all_ready(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!scenario->servers[i].ready) return false;
    return true;
}

bool sim_nodes_form(struct scenario *scenario, uint64_t limit_us)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_server_boot_later(&scenario->servers[i],
                              sim_rng_between(&scenario->world->work, 1, 2000000));
    return sim_run_until(scenario, all_ready, limit_us);
}

/* The same for all at once: a power cut of the room, or a kill of every process. */
void sim_nodes_die(struct scenario *scenario)
{
    struct sim_rng *rng = &scenario->world->work;
    bool power = scenario->power_cuts && sim_rng_chance(rng, 700);
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_process_die(scenario->servers[i].process, power ? SIM_DEATH_POWER : SIM_DEATH_KILL);
}

bool sim_nodes_ready(struct scenario *scenario, uint64_t limit_us)
{
    return sim_run_until(scenario, all_ready, limit_us);
}
