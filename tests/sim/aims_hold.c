/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at starts and stops of nodes, in half of the cluster seeds that delete streams. A start asks the
 * coordinators which logs the node has, and makes these logs after the answer; a stop counts the logs that are to be
 * hibernated, and waits for them. Meanwhile the metadata go on. The store's thread stands still in that time, and
 * streams come and go at once: the start has heard of a stream that is deleted now, a streamlet moves to the node that
 * starts, a stream is created and deleted while a core stops. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/deletes.h"

enum {
    SEEDS_PER_MILLE = 500, /* of the seeds that delete streams */
    HOLD_PER_MILLE = 500,  /* of the starts and stops */
    HOLD_US_LEAST = 100 * 1000,
    HOLD_US_MAX = 500 * 1000,
    LOOK_US = 200,
    LOOKS_MAX = 15000, /* a start that asks later is not waited for */
};

static struct {
    bool wanted;
    unsigned looks;
    struct sim_rng rng;
    uint64_t hurry_until_us;
} aim; /* of the one scenario of a process */

static void hurry_over(struct sim_world *world, struct sim_event *event)
{
    struct sim_deletes *deletes = sim_deletes_of(event->a);
    if (deletes && world->now_us >= aim.hurry_until_us) deletes->hurry = 0;
}

/* streams: so many are deleted meanwhile. */
static void hold(struct sim_server *server, const char *amid, unsigned streams)
{
    struct scenario *scenario = server->scenario;
    struct sim_world *world = scenario->world;
    struct sim_deletes *deletes = sim_deletes_of(scenario);
    uint64_t until_us = world->now_us + sim_rng_between(&aim.rng, HOLD_US_LEAST, HOLD_US_MAX);
    server->store->free_at_us = until_us;
    sim_fault_struck(world, SIM_FAULT_STALL);
    sim_trace(world, "aim: the store of %s stands still amid its %s until %llu", server->name, amid,
              (unsigned long long)until_us);
    if (deletes) deletes->hurry = streams;
    if (until_us > aim.hurry_until_us) aim.hurry_until_us = until_us;
    sim_world_at(world, until_us, hurry_over, scenario);
}

static bool asks_what_it_has(const struct sim_server *server)
{
    const struct leat_coordinator *coordinator =
        server->node ? leat_node_coordinator(server->node) : NULL;
    const struct leat_coordinate *request = NULL;
    while (coordinator && (request = leat_coordinator_pending(coordinator, request)))
        if (request->kind == LEAT_COORDINATE_ADOPT) return true;
    return false;
}

static void move_here(struct sim_server *server)
{
    struct scenario *scenario = server->scenario;
    uint32_t stream = (uint32_t)sim_rng_below(&aim.rng, SIM_STREAMS);
    if (scenario->wish.to) return;
    scenario->wish = (struct sim_wish){.stream = stream,
                                       .streamlet = (uint32_t)sim_rng_below(
                                           &aim.rng, scenario->streams[stream].settings.streamlets),
                                       .to = server};
}

/* event->n: the start that is looked at. */
static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over || !server->process->alive || server->ready ||
        server->boots != event->n || aim.looks++ == LOOKS_MAX)
        return;
    if (!asks_what_it_has(server)) {
        sim_world_at(world, world->now_us + LOOK_US, look, server)->n = event->n;
        return;
    }
    if (!sim_rng_chance(&aim.rng, HOLD_PER_MILLE)) return;
    hold(server, "start", 1);
    move_here(server);
}

void sim_aim_hold_choose(struct scenario *scenario)
{
    memset(&aim, 0, sizeof aim);
    sim_rng_init(&aim.rng, scenario->world->seed, "aim-hold");
    aim.wanted = scenario->deletes && scenario->trap == SIM_TRAP_NONE && !scenario->calm &&
                 sim_rng_chance(&aim.rng, SEEDS_PER_MILLE);
}

void sim_aim_hold_boot(struct sim_server *server)
{
    struct sim_world *world = server->scenario->world;
    if (!aim.wanted || !server->scenario->streams_made || server->scenario->faults_over) return;
    aim.looks = 0;
    sim_world_at(world, world->now_us + LOOK_US, look, server)->n = server->boots;
}

void sim_aim_hold_stop(struct sim_server *server)
{
    if (!aim.wanted || server->scenario->faults_over || !sim_rng_chance(&aim.rng, HOLD_PER_MILLE))
        return;
    hold(server, "stop", 2);
}
