/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, when: chosen by the seed, one fault at a time, while producers are at work. */
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

#include <stdio.h>

static bool serving(const struct scenario *scenario)
{
    const struct sim_server *server = &scenario->servers[0];
    return server->process && server->process->alive && server->ready && !server->stopping;
}

static void kill_server(struct scenario *scenario)
{
    if (!scenario->servers[0].process->alive) return;
    sim_fault_struck(scenario->world, SIM_FAULT_KILL);
    sim_process_die(scenario->servers[0].process, SIM_DEATH_KILL);
}

static void power_server(struct scenario *scenario)
{
    if (!scenario->servers[0].process->alive) return;
    sim_fault_struck(scenario->world, SIM_FAULT_POWER);
    sim_process_die(scenario->servers[0].process, SIM_DEATH_POWER);
}

static void on_cut(void *arg)
{
    struct scenario *scenario = arg;
    sim_fault_struck(scenario->world, SIM_FAULT_POWER_OP);
}

static void heal_disk(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    sim_trace(world, "disk has space again");
    sim_disk_set_full(scenario->servers[0].disk, false);
}

/* After a failed flush the log is stopped until the server starts anew; the operator does that. */
static void operator_restart(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (!scenario->servers[0].process->alive || event->n != scenario->servers[0].boots) return;
    if (scenario->power_cuts && sim_rng_chance(&world->fault, 300))
        power_server(scenario);
    else
        kill_server(scenario);
}

static struct sim_client *any_client(struct scenario *scenario)
{
    return scenario->clients[sim_rng_below(&scenario->world->fault, scenario->client_count)];
}

static void disk_full(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_trace(world, "disk full");
    sim_disk_set_full(scenario->servers[0].disk, true);
    sim_world_at(world, world->now_us + sim_rng_between(&world->fault, 50000, 1500000), heal_disk,
                 scenario);
}

static void heal_files(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    sim_trace(world, "files can be opened again");
    sim_disk_set_no_files(scenario->servers[0].disk, false);
}

static void no_files(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_trace(world, "no file can be opened");
    sim_disk_set_no_files(scenario->servers[0].disk, true);
    sim_world_at(world, world->now_us + sim_rng_between(&world->fault, 50000, 1500000), heal_files,
                 scenario);
}

static void disk_error(struct scenario *scenario, enum leat_disk_kind kind)
{
    struct sim_world *world = scenario->world;
    sim_disk_fail_next(scenario->servers[0].disk, kind);
    uint64_t at_us = world->now_us + sim_rng_between(&world->fault, 20000, 400000);
    sim_world_at(world, at_us, operator_restart, scenario)->n = scenario->servers[0].boots;
}

void sim_faults_disk(struct scenario *scenario, enum sim_disk_fault fault)
{
    if (fault == SIM_DISK_IS_FULL)
        disk_full(scenario);
    else if (fault == SIM_DISK_NO_FILES)
        no_files(scenario);
    else
        disk_error(scenario, fault == SIM_DISK_WRITE_FAILS ? LEAT_DISK_WRITE : LEAT_DISK_SYNC);
}

static void wall_jump(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    int64_t jump_ms = (int64_t)sim_rng_below(&world->fault, 7200000) - 3600000;
    sim_trace(world, "the wall clock jumps by %lld ms", (long long)jump_ms);
    scenario->servers[0].process->wall_jump_ms += jump_ms;
    sim_fault_struck(world, SIM_FAULT_CLOCK);
}

static void client_fault(struct scenario *scenario, bool partition)
{
    struct sim_world *world = scenario->world;
    struct sim_client *client = any_client(scenario);
    if (partition) {
        client->process->cut_off_until_us =
            world->now_us + sim_rng_between(&world->fault, 10000, 2000000);
        sim_fault_struck(world, SIM_FAULT_PARTITION);
    } else {
        sim_process_pause(client->process,
                          world->now_us + sim_rng_between(&world->fault, 100000, 6000000));
        client->slow = sim_rng_chance(&world->fault, 300);
        sim_fault_struck(world, SIM_FAULT_SLOW);
    }
    sim_trace(world, "%s %s", client->process->name, partition ? "is cut off" : "stands still");
}

static void aim(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_disk_aim(scenario->servers[0].disk, sim_rng_between(&world->fault, 1, 60),
                 (enum sim_cut_phase)sim_rng_below(&world->fault, 3), on_cut, scenario);
}

static void kill_in_call(struct scenario *scenario)
{
    scenario->servers[0].process->death = SIM_DEATH_KILL;
    scenario->servers[0].process->die_in_calls = sim_rng_between(&scenario->world->fault, 1, 3000);
    sim_fault_struck(scenario->world, SIM_FAULT_KILL_CALL);
}

static void strike(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    struct sim_rng *rng = &world->fault;
    struct sim_process *server = scenario->servers[0].process;
    uint64_t pick = sim_rng_below(rng, 100);
    if (!serving(scenario)) {
        /* Dying while coming up. */
        if (server->alive && sim_rng_chance(rng, 500)) {
            sim_fault_struck(world, SIM_FAULT_CUT_START);
            if (scenario->power_cuts && sim_rng_chance(rng, 500))
                power_server(scenario);
            else
                kill_server(scenario);
        }
        return;
    }
    if (pick < 14) {
        kill_server(scenario);
    } else if (pick < 28) {
        kill_in_call(scenario);
    } else if (pick < 36) {
        if (scenario->power_cuts) power_server(scenario);
    } else if (pick < 46) {
        if (scenario->power_cuts) aim(scenario);
    } else if (pick < 56) {
        (void)sim_net_reset(server, 500);
    } else if (pick < 62) {
        world->refuse_until_us = world->now_us + sim_rng_between(rng, 1000, 200000);
        (void)sim_net_reset(server, 700);
    } else if (pick < 68) {
        client_fault(scenario, true);
    } else if (pick < 74) {
        sim_disk_stall(scenario->servers[0].disk,
                       world->now_us + sim_rng_between(rng, 1000, 1500000));
        sim_fault_struck(world, SIM_FAULT_STALL);
    } else if (pick < 77) {
        disk_full(scenario);
    } else if (pick < 80) {
        no_files(scenario);
    } else if (pick < 84) {
        disk_error(scenario, sim_rng_chance(rng, 500) ? LEAT_DISK_WRITE : LEAT_DISK_SYNC);
    } else if (pick < 89) {
        client_fault(scenario, false);
    } else if (pick < 93) {
        wall_jump(scenario);
    } else if (pick < 97) {
        sim_process_pause(server, world->now_us + sim_rng_between(rng, 10000, 3000000));
        sim_fault_struck(world, SIM_FAULT_PAUSE);
    } else {
        sim_server_stop(&scenario->servers[0]);
    }
}

static void fault_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    if (scenario->streams_made || sim_rng_chance(&world->fault, 200)) strike(scenario);
    sim_world_at(world, world->now_us + sim_rng_between(&world->fault, 20000, 700000), fault_due,
                 scenario);
}

void sim_faults_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + 50000, fault_due, scenario);
    sim_aim_trim_start(scenario);
    sim_aim_grown_start(scenario);
}

void sim_faults_heal(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    scenario->faults_over = true;
    sim_trace(world, "everything is healed");
    sim_disk_set_full(scenario->servers[0].disk, false);
    sim_disk_set_no_files(scenario->servers[0].disk, false);
    sim_disk_stall(scenario->servers[0].disk, 0);
    sim_disk_aim(scenario->servers[0].disk, 0, SIM_CUT_BEFORE, NULL, NULL);
    sim_disk_no_errors(scenario->servers[0].disk);
    world->refuse_until_us = 0;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[i];
        client->process->cut_off_until_us = client->process->paused_until_us = 0;
        client->slow = false;
    }
    scenario->servers[0].process->paused_until_us = 0;
    scenario->servers[0].process->die_in_calls = 0;
    /* What a disk error stopped stays stopped until a restart. */
    if (scenario->servers[0].process->alive && sim_disk_took_error(scenario->servers[0].disk))
        sim_process_die(scenario->servers[0].process, SIM_DEATH_KILL);
}
