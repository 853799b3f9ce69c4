/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at accepted losses, in cluster seeds: while the coordinators commit that an operator gives up what a
 * log lacks, or while the log is made anew after that, its owner is told to stop. A node that does not lead asks late,
 * in half of the cases. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    STRIKES_PER_MILLE = 400, /* of the requests */
    STRIKES_MAX = 3,         /* in a seed: a node that is stopped each time gives nothing up */
    LATE_PER_MILLE = 500,
    LOOK_US = 50,
    LOOKS_MAX = 2000,
    LATE_US_MAX = 60 * 1000, /* too short for the node to be called dead */
};

static struct {
    bool begun, looking;
    unsigned looks, strikes;
    struct sim_rng rng;
} aim; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && !server->stopping && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_has_cores(server->node);
}

/* Is an operator's word on its way to the coordinators? */
static bool gives_up(const struct sim_server *server)
{
    const struct leat_coordinate *request = NULL;
    while ((request = leat_coordinator_pending(leat_node_coordinator(server->node), request)) !=
           NULL)
        if (request->kind == LEAT_COORDINATE_ACCEPT_LOSS) return true;
    return false;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    aim.looking = aim.looks++ < LOOKS_MAX;
    for (unsigned i = 0; i < scenario->server_count && aim.looking; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server) || !gives_up(server)) continue;
        if (sim_rng_chance(&aim.rng, LATE_PER_MILLE))
            server->coordinator->free_at_us = world->now_us + sim_rng_below(&aim.rng, LATE_US_MAX);
        sim_trace(world, "aim: a loss is accepted at %s, and the node is to stop", server->name);
        sim_server_stop(server);
        aim.strikes++;
        aim.looking = false;
    }
    if (aim.looking) sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

void sim_aim_loss_choose(void)
{
    memset(&aim, 0, sizeof aim);
}

void sim_aim_loss_asked(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    if (scenario->trap != SIM_TRAP_NONE || scenario->calm) return;
    if (!aim.begun) sim_rng_init(&aim.rng, world->seed, "aim-loss");
    aim.begun = true;
    if (aim.looking || aim.strikes == STRIKES_MAX || !sim_rng_chance(&aim.rng, STRIKES_PER_MILLE))
        return;
    aim.looking = true;
    aim.looks = 0;
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}
