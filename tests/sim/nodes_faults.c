/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with a cluster, and when. Each seed draws for itself how likely each kind is, and
 * leaves many out: what only shows when one thing happens over and over, and nothing else, is met
 * as well as what needs several. Now and then several strike at the same moment. */
#include "tests/sim/rmem.h"
#include "tests/sim/scenario.h"

enum kind {
    KILL,
    KILL_IN_CALL,
    POWER,
    POWER_AT_DISK,
    LEADER,
    SEVERAL,
    ROOM,
    RESTART,
    PAUSE,
    CLOCK,
    CUT,
    PARTED,
    ALONE,
    HALF_OPEN,
    LATE_BYTES,
    RESET,
    REFUSE,
    DELAY,
    CLIENT_CUT,
    CLIENT_PAUSE,
    STALL,
    FULL,
    NO_FILES,
    DISK_ERROR,
    WRITING,
    WRITTEN_TO,
    RMEM_ERRORS,
    RMEM_FULL,
    DAMAGE,
    KINDS,
};
_Static_assert((int)KINDS == (int)SIM_CLUSTER_FAULTS, "one weight for each");

static struct sim_rng *dice(struct scenario *scenario)
{
    return &scenario->world->fault;
}

static struct sim_server *any_server(struct scenario *scenario)
{
    return &scenario->servers[sim_rng_below(dice(scenario), scenario->server_count)];
}

static bool lives(const struct sim_server *server)
{
    return server->process && server->process->alive;
}

/* ---- deaths ---- */

static void second_fault(struct sim_world *world, struct sim_event *event);

/* Misfortunes come in company: while a death is noticed and made good, something else happens. */
static void fault_again(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    if (!scenario->hard || !sim_rng_chance(&world->fault, 250)) return;
    uint64_t most_us = sim_rng_chance(&world->fault, 500) ? 8000 : 250000;
    sim_world_at(world, world->now_us + sim_rng_between(&world->fault, 200, most_us), second_fault,
                 scenario);
}

static void die(struct sim_server *server, enum sim_death death)
{
    struct scenario *scenario = server->scenario;
    struct sim_world *world = scenario->world;
    if (!lives(server)) return;
    death = sim_death_of(server, death);
    if (sim_rng_chance(&world->fault, 250)) {
        server->away_us_max =
            sim_rng_between(&world->fault, 500000, scenario->brief ? 2000000 : 8000000);
        sim_fault_struck(world, SIM_FAULT_AWAY);
    }
    if (!server->ready) sim_fault_struck(world, SIM_FAULT_CUT_START);
    sim_fault_struck(world, death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    fault_again(scenario);
    if (scenario->hard && server == scenario->victim && sim_rng_chance(&world->fault, 300))
        sim_damage_strike(server);
    else
        sim_process_die(server->process, death);
}

static enum sim_death any_death(struct scenario *scenario)
{
    return sim_rng_chance(dice(scenario), 500) ? SIM_DEATH_POWER : SIM_DEATH_KILL;
}

static void kill_in_call(struct sim_server *server)
{
    server->process->death = SIM_DEATH_KILL;
    server->process->die_in_calls = sim_rng_between(dice(server->scenario), 1, 2000);
    sim_fault_struck(server->scenario->world, SIM_FAULT_KILL_CALL);
}

static void on_cut(void *arg)
{
    struct sim_server *server = arg;
    sim_fault_struck(server->scenario->world, SIM_FAULT_POWER_OP);
}

static void aim(struct sim_server *server)
{
    struct scenario *scenario = server->scenario;
    if (sim_death_of(server, SIM_DEATH_POWER) != SIM_DEATH_POWER) return;
    sim_disk_aim(server->disk, sim_rng_between(dice(scenario), 1, 40),
                 (enum sim_cut_phase)sim_rng_below(dice(scenario), 3), on_cut, server);
}

static void died_writing(void *arg)
{
    struct sim_server *server = arg;
    if (lives(server)) sim_fault_struck(server->scenario->world, SIM_FAULT_RMEM_WRITER);
    die(server, any_death(server->scenario));
}

static void died_written_to(void *arg)
{
    struct sim_server *server = arg;
    if (lives(server)) sim_fault_struck(server->scenario->world, SIM_FAULT_RMEM_TARGET);
    die(server, any_death(server->scenario));
}

static void kill_leader(struct scenario *scenario)
{
    static struct leat_coordinator_status status;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server) || !server->node) continue;
        leat_coordinator_status(leat_node_coordinator(server->node), &status);
        if (status.role != LEAT_VOTER_LEADER) continue;
        sim_fault_struck(scenario->world, SIM_FAULT_LEADER);
        die(server, any_death(scenario));
        return;
    }
}

/* A part of the machines, or all of them: a rack loses power, somebody stops the wrong service. */
static void kill_several(struct scenario *scenario, bool all)
{
    enum sim_death death = any_death(scenario);
    unsigned wanted = all ? scenario->server_count
                          : (unsigned)sim_rng_between(dice(scenario), 2, scenario->server_count);
    unsigned first = (unsigned)sim_rng_below(dice(scenario), scenario->server_count);
    if (wanted < 2) return;
    sim_fault_struck(scenario->world,
                     wanted == scenario->server_count ? SIM_FAULT_ROOM : SIM_FAULT_SEVERAL);
    for (unsigned i = 0; i < wanted; i++)
        die(&scenario->servers[(first + i) % scenario->server_count], death);
}

/* After a failed flush the log is stopped until the server starts anew; the operator does that. */
static void operator_restart(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (lives(server) && event->n == server->boots) die(server, any_death(server->scenario));
    (void)world;
}

/* ---- between machines ---- */

static uint64_t for_a_while(struct scenario *scenario)
{
    uint64_t most_us = sim_rng_chance(dice(scenario), 300) ? 6000000 : 600000;
    return scenario->world->now_us + sim_rng_between(dice(scenario), 5000, most_us);
}

/* The same, of connections that break, or carry bytes late: any node may wait for these. */
static uint64_t conns_for_a_while(struct scenario *scenario)
{
    uint64_t until_us = for_a_while(scenario);
    if (scenario->unseen_until_us < until_us) scenario->unseen_until_us = until_us;
    return until_us;
}

static void part(struct scenario *scenario, const struct sim_server *a, const struct sim_server *b,
                 bool both, uint64_t until_us)
{
    if (a == b) return;
    sim_net_cut(scenario->world, a->name, b->name, until_us);
    if (both) sim_net_cut(scenario->world, b->name, a->name, until_us);
    sim_trace(scenario->world, "%s and %s: cut %s until %llu", a->name, b->name,
              both ? "both ways" : "one way", (unsigned long long)until_us);
}

static void alone(struct scenario *scenario, const struct sim_server *server)
{
    uint64_t until_us = for_a_while(scenario);
    unsigned ways = (unsigned)sim_rng_below(dice(scenario), 3); /* in, out, both */
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other == server) continue;
        if (ways != 0) part(scenario, server, other, false, until_us);
        if (ways != 1) part(scenario, other, server, false, until_us);
    }
    sim_fault_struck(scenario->world, SIM_FAULT_NODE_ALONE);
}

static void between(struct scenario *scenario, enum kind kind)
{
    const struct sim_server *a = any_server(scenario), *b = any_server(scenario);
    struct sim_world *world = scenario->world;
    if (kind == ALONE) {
        alone(scenario, a);
    } else if (a != b && kind == DELAY) {
        sim_net_delay(world, a->name, b->name, sim_rng_below(dice(scenario), 20000));
        sim_fault_struck(world, SIM_FAULT_DELAY);
    } else if (a != b) {
        part(scenario, a, b, kind == PARTED, for_a_while(scenario));
        sim_fault_struck(world, kind == PARTED ? SIM_FAULT_NODE_PARTED : SIM_FAULT_NODE_CUT);
    }
}

static void client_fault(struct scenario *scenario, bool cut)
{
    struct sim_world *world = scenario->world;
    struct sim_client *client =
        scenario->clients[sim_rng_below(dice(scenario), scenario->client_count)];
    if (cut)
        client->process->cut_off_until_us = for_a_while(scenario);
    else
        sim_process_pause(client->process, for_a_while(scenario));
    sim_fault_struck(world, cut ? SIM_FAULT_PARTITION : SIM_FAULT_SLOW);
    sim_trace(world, "%s %s", client->process->name, cut ? "is cut off" : "stands still");
}

/* ---- disks and memory ---- */

static void heal_disk(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over)
        return; /* all was healed then; what is full now others have filled (quiet.c) */
    sim_disk_set_full(server->disk, false);
    sim_disk_set_no_files(server->disk, false);
    (void)world;
}

static void heal_rmem(struct sim_world *world, struct sim_event *event)
{
    world->rmem_error_per_mille = 0;
    world->rmem_full = false;
    (void)event;
}

static void disk_fault(struct sim_server *server, enum kind kind)
{
    struct scenario *scenario = server->scenario;
    struct sim_world *world = scenario->world;
    if (kind == STALL) {
        sim_disk_stall(server->disk, for_a_while(scenario));
        sim_fault_struck(world, SIM_FAULT_STALL);
    } else if (kind == FULL) {
        sim_disk_set_full(server->disk, true);
        sim_world_at(world, for_a_while(scenario), heal_disk, server);
    } else if (kind == NO_FILES) {
        sim_disk_set_no_files(server->disk, true);
        sim_world_at(world, for_a_while(scenario), heal_disk, server);
    } else {
        sim_disk_fail_next(server->disk,
                           sim_rng_chance(dice(scenario), 500) ? LEAT_DISK_WRITE : LEAT_DISK_SYNC);
        sim_world_at(world, world->now_us + sim_rng_between(dice(scenario), 20000, 400000),
                     operator_restart, server)
            ->n = server->boots;
    }
    sim_trace(world, "%s: disk %s", server->name,
              kind == STALL      ? "stands still"
              : kind == FULL     ? "full"
              : kind == NO_FILES ? "opens no file"
                                 : "will fail");
}

static void rmem_fault(struct scenario *scenario, enum kind kind)
{
    struct sim_world *world = scenario->world;
    if (kind == RMEM_ERRORS)
        world->rmem_error_per_mille = (uint32_t)sim_rng_between(dice(scenario), 5, 300);
    else
        world->rmem_full = true;
    sim_world_at(world, for_a_while(scenario), heal_rmem, NULL);
}

/* ---- one fault ---- */

static void on_one(struct scenario *scenario, enum kind kind)
{
    struct sim_world *world = scenario->world;
    struct sim_server *server = any_server(scenario);
    struct sim_process *process = server->process;
    if (!lives(server)) return;
    switch (kind) {
    case KILL:
        die(server, SIM_DEATH_KILL);
        break;
    case POWER:
        die(server, SIM_DEATH_POWER);
        break;
    case KILL_IN_CALL:
        kill_in_call(server);
        break;
    case POWER_AT_DISK:
        aim(server);
        break;
    case RESTART:
        sim_server_stop(server);
        break;
    case PAUSE:
        sim_process_pause(process, for_a_while(scenario));
        sim_fault_struck(world, SIM_FAULT_PAUSE);
        sim_trace(world, "%s stands still", process->name);
        break;
    case CLOCK:
        process->wall_jump_ms += (int64_t)sim_rng_below(dice(scenario), 7200000) - 3600000;
        sim_fault_struck(world, SIM_FAULT_CLOCK);
        break;
    case WRITING:
    case WRITTEN_TO:
        sim_rmem_aim(world, server->name, kind == WRITTEN_TO,
                     sim_rng_between(dice(scenario), 1, 30),
                     kind == WRITING ? died_writing : died_written_to, server);
        break;
    case HALF_OPEN:
        (void)sim_net_half_open(process, 500, conns_for_a_while(scenario));
        break;
    case LATE_BYTES:
        sim_net_late(process, 300, conns_for_a_while(scenario));
        break;
    case RESET:
        (void)sim_net_reset(process, 500);
        break;
    case REFUSE:
        world->refuse_until_us = world->now_us + sim_rng_between(dice(scenario), 1000, 200000);
        (void)sim_net_reset(process, 700);
        break;
    default:
        disk_fault(server, kind);
        break;
    }
}

static void strike(struct scenario *scenario, enum kind kind)
{
    switch (kind) {
    case LEADER:
        kill_leader(scenario);
        break;
    case SEVERAL:
    case ROOM:
        kill_several(scenario, kind == ROOM);
        break;
    case CUT:
    case PARTED:
    case ALONE:
    case DELAY:
        between(scenario, kind);
        break;
    case CLIENT_CUT:
    case CLIENT_PAUSE:
        client_fault(scenario, kind == CLIENT_CUT);
        break;
    case RMEM_ERRORS:
    case RMEM_FULL:
        rmem_fault(scenario, kind);
        break;
    case DAMAGE:
        if (scenario->victim) sim_damage_strike(scenario->victim);
        break;
    default:
        on_one(scenario, kind);
        break;
    }
}

static enum kind kind_draw(struct scenario *scenario)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < KINDS; i++)
        all += scenario->fault_weights[i];
    uint64_t pick = sim_rng_below(dice(scenario), all);
    for (unsigned i = 0; i < KINDS; i++) {
        if (pick < scenario->fault_weights[i]) return (enum kind)i;
        pick -= scenario->fault_weights[i];
    }
    return KILL; /* not reached */
}

static void second_fault(struct sim_world *world, struct sim_event *event)
{
    static const enum kind kinds[] = {LEADER, LEADER, PAUSE, KILL, CUT, ALONE, RESET, STALL};
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    strike(scenario, kinds[sim_rng_below(&world->fault, sizeof kinds / sizeof *kinds)]);
}

static void fault_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    unsigned count = sim_rng_chance(&world->fault, 100) ? 3 : 1;
    while (count-- > 0)
        strike(scenario, kind_draw(scenario));
    sim_world_at(world,
                 world->now_us + sim_rng_between(&world->fault, 5000, scenario->fault_gap_us),
                 fault_due, scenario);
}

static void weights_draw(struct scenario *scenario)
{
    const uint32_t usual[KINDS] = {
        [KILL] = 12,
        [KILL_IN_CALL] = 8,
        [POWER] = 8,
        [POWER_AT_DISK] = 6,
        [LEADER] = 5,
        [SEVERAL] = 4,
        [ROOM] = 2,
        [RESTART] = 4,
        [PAUSE] = 10,
        [CLOCK] = 3,
        [CUT] = 8,
        [PARTED] = 8,
        [ALONE] = 6,
        [HALF_OPEN] = 6,
        [LATE_BYTES] = 4,
        [RESET] = 8,
        [REFUSE] = 3,
        [DELAY] = 3,
        [CLIENT_CUT] = 4,
        [CLIENT_PAUSE] = 3,
        [STALL] = 5,
        [FULL] = 4,
        [NO_FILES] = 3,
        [DISK_ERROR] = 4,
        [RMEM_ERRORS] = 8,
        [RMEM_FULL] = 3,
        [WRITING] = 8,
        [WRITTEN_TO] = 6,
        [DAMAGE] = scenario->victim ? 8 : 0,
    };
    bool some = false;
    while (!some) {
        for (unsigned i = 0; i < KINDS; i++) {
            uint64_t pick = sim_rng_below(dice(scenario), 4);
            scenario->fault_weights[i] = usual[i] * (pick == 0 ? 0 : pick == 3 ? 4 : 1);
            some |= scenario->fault_weights[i] != 0;
        }
    }
    scenario->fault_gap_us = sim_rng_between(dice(scenario), 50000, 900000);
}

void sim_nodes_faults_start(struct scenario *scenario)
{
    weights_draw(scenario);
    sim_world_at(scenario->world, scenario->world->now_us + 20000, fault_due, scenario);
}

static void soon_due(struct sim_world *world, struct sim_event *event)
{
    static const enum kind kinds[] = {KILL,  POWER, SEVERAL,    ROOM,          LEADER, PAUSE, CUT,
                                      ALONE, RESET, DISK_ERROR, POWER_AT_DISK, FULL,   STALL};
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    strike(scenario, kinds[sim_rng_below(&world->fault, sizeof kinds / sizeof *kinds)]);
}

void sim_nodes_strike_soon(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    if (!scenario->fault_gap_us) return; /* a trap, or an aim, has the seed for itself */
    for (unsigned count = sim_rng_chance(&world->fault, 500) ? 2 : 1; count; count--) {
        uint64_t most_us = sim_rng_chance(&world->fault, 600) ? 3000 : 60000;
        sim_world_at(world, world->now_us + sim_rng_below(&world->fault, most_us), soon_due,
                     scenario);
    }
}

static void go_on(struct sim_process *process)
{
    sim_process_go_on(process);
    process->cut_off_until_us = 0;
}

void sim_nodes_heal(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    scenario->faults_over = true;
    sim_trace(world, "everything is healed");
    world->refuse_until_us = 0;
    world->rmem_aim.n = 0;
    world->rmem_slow_per_mille = 0;
    heal_rmem(world, NULL);
    for (unsigned i = 0; i < scenario->client_count; i++) {
        if (scenario->clients[i]->kind == SIM_CLIENT_DEAF) continue; /* what it does is no fault */
        go_on(scenario->clients[i]->process);
    }
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        go_on(server->process);
        if (server->corrupt) sim_damage_named(server);
        server->process->die_in_calls = 0;
        sim_disk_set_full(server->disk, false);
        sim_disk_set_no_files(server->disk, false);
        sim_disk_stall(server->disk, 0);
        sim_disk_stall_reads(server->disk, 0);
        sim_disk_stall_writes(server->disk, 0);
        sim_disk_aim(server->disk, 0, SIM_CUT_BEFORE, NULL, NULL);
        sim_disk_no_errors(server->disk);
        for (unsigned j = 0; j < scenario->server_count; j++) {
            sim_net_cut(world, server->name, scenario->servers[j].name, 0);
            sim_net_delay(world, server->name, scenario->servers[j].name, 0);
            sim_net_rate(world, server->name, scenario->servers[j].name, 0, 0);
        }
        /* What a disk error stopped stays stopped until a restart. */
        if (lives(server) && sim_disk_took_error(server->disk))
            sim_process_die(server->process, SIM_DEATH_KILL);
    }
}
