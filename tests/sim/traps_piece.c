/* SPDX-License-Identifier: Apache-2.0 */
/* One more fault in some of the seeds with the trap for copies that are being made (traps_fill.c). An owner is about to
 * read a piece of a closed segment out of its file, for a copy on another node. The disk answers this read up to 0.15 s
 * late. When the read has been asked for, the other node is killed, and messages of the owner take 30 ms each way. So
 * when the piece comes the owner has lost that copy, has chosen another node for the next copy, and does not know yet
 * where the next copy lies. The piece is to be written nowhere. */
#include <string.h>

#include "broker/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 400, /* of those */
    LOOK_US = 100,
    LATE_US_LEAST = 20 * 1000,
    LATE_US_MAX = 150 * 1000,
    DELAY_US = 30 * 1000,
    REST_US_MAX = 300 * 1000,
    AWAY_US_MAX = 800 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *owner; /* NULL: nothing is under way */
    const void *copy;         /* leat_copy_seen.at */
    bool struck;
    uint64_t until_us, rest_until_us;
} trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static void delay(const struct sim_server *owner, uint64_t us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const char *name = scenario->servers[i].name;
        if (&scenario->servers[i] == owner) continue;
        sim_net_delay(scenario->world, owner->name, name, us);
        sim_net_delay(scenario->world, name, owner->name, us);
    }
}

static void begin(struct sim_server *owner, const struct leat_copy_seen *copy)
{
    struct sim_world *world = trap.scenario->world;
    trap.owner = owner;
    trap.copy = copy->at;
    trap.struck = false;
    trap.until_us = world->now_us + sim_rng_between(&trap.rng, LATE_US_LEAST, LATE_US_MAX);
    sim_disk_stall_reads(owner->disk, trap.until_us);
}

static void end(void)
{
    if (trap.struck) delay(trap.owner, 0);
    trap.owner = NULL;
    trap.rest_until_us = trap.scenario->world->now_us + sim_rng_below(&trap.rng, REST_US_MAX);
}

static void strike(const struct leat_copy_seen *copy, const struct leat_set_seen *set)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server) || strcmp(server->name, copy->node) != 0) continue;
        trap.struck = true;
        server->away_us_max = AWAY_US_MAX;
        delay(trap.owner, DELAY_US);
        sim_fault_struck(scenario->world, SIM_FAULT_AMID_FILL);
        sim_fault_struck(scenario->world, SIM_FAULT_KILL);
        sim_trace(scenario->world, "trap: %s dies, %s reads a piece of segment %llu for it",
                  server->name, trap.owner->name, (unsigned long long)set->id.v);
        sim_process_die(server->process, SIM_DEATH_KILL);
        return;
    }
}

static void primary_look(struct sim_server *server, const struct leat_primary *primary)
{
    struct leat_copy_seen copy;
    struct leat_set_seen set;
    if (!trap.owner && leat_recopy_see(primary, &copy, &set) && copy.state == LEAT_COPY_OPENING &&
        !leat_recopy_reads(primary) && set.seg && !set.seg->buffer)
        begin(server, &copy);
    else if (server == trap.owner && !trap.struck && leat_recopy_see_read(primary, &copy, &set) &&
             copy.at == trap.copy)
        strike(&copy, &set);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool over = scenario->faults_over || (trap.owner && !lives(trap.owner));
    if (trap.owner && (over || world->now_us > trap.until_us)) end();
    if (scenario->faults_over) return;
    for (unsigned i = 0; i < scenario->server_count && world->now_us >= trap.rest_until_us; i++) {
        struct sim_server *server = &scenario->servers[i];
        for (uint32_t c = 0; lives(server) && c < scenario->cores; c++)
            if (leat_node_primary(server->node, c))
                primary_look(server, leat_node_primary(server->node, c));
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

void sim_trap_piece_start(struct scenario *scenario)
{
    memset(&trap, 0, sizeof trap);
    trap.scenario = scenario;
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-piece");
    if (sim_rng_chance(&trap.rng, SEEDS_PER_MILLE))
        sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, scenario);
}
