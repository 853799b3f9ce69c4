/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes' heaps take beside their pools. All of them share this process' heap, so it is a figure of the
 * world, which goes up and down; with it go the limits of the pools. */
#include "broker/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"

enum {
    BUDGET_PER_MILLE = 125, /* of all seeds */
    BUDGET_NONE_PER_MILLE = 500,
    BUDGET_WHOLE_PER_MILLE = 500,
    BUDGET_FULL_PER_MILLE = 300, /* of a whole one: no segment more */
    /* For streams that are made later, so that none is refused; beside what these leave for first segments. */
    BUDGET_STREAMS_BYTES = 1024 * 1024,
};

uint64_t sim_budget_bytes(void *ctx)
{
    return ((struct scenario *)ctx)->heap_bytes;
}

/* A seed's records hardly fill a step. So while the pools may be large, what is free of the first step is held
 * by nobody, and segments lie past it when the limit falls. */
struct ballast {
    struct leat_store *store;
    unsigned boots;
    uint64_t asked_us; /* when a log of it last found no room, as seen */
    struct leat_store_taken taken;
};
static struct ballast ballasts[SIM_SERVERS_MAX];

static bool runs(const struct sim_server *server)
{
    return server->process && server->process->alive && server->ready && !server->stopping;
}

/* Have logs waited for memory since this was last looked at? */
static void logs_look(struct ballast *ballast, const struct sim_server *server)
{
    uint64_t asked_us = leat_node_heap_asked_us(server->node);
    if (asked_us > ballast->asked_us)
        sim_fault_struck(server->scenario->world, SIM_FAULT_LOGS_WAIT);
    ballast->asked_us = asked_us;
}

static void ballast_give(struct ballast *ballast, struct sim_server *server)
{
    bool same = runs(server) && server->boots == ballast->boots;
    if (same) leat_store_memory_give(ballast->store, &ballast->taken);
    ballast->taken.count = 0;
}

static void ballast_take(struct ballast *ballast, struct sim_server *server)
{
    ballast->store = leat_node_store(server->node);
    ballast->boots = server->boots;
    leat_store_memory_take(ballast->store, &ballast->taken);
}

/* So much that one step is left. */
static uint64_t heap_most(const struct scenario *scenario)
{
    uint64_t pool = leat_node_pool_bytes(scenario->memory_bytes, scenario->cores);
    pool = leat_node_own_pool_bytes(pool, scenario->server_count > 1);
    return pool - LEAT_ARENA_STEP_BYTES - leat_node_limits.log_spare_bytes - BUDGET_STREAMS_BYTES +
           leat_node_heap_room(scenario->memory_bytes, scenario->cores);
}

static void change(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool none = scenario->faults_over || sim_rng_chance(&scenario->heap, BUDGET_NONE_PER_MILLE);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (runs(server)) logs_look(&ballasts[i], server);
        ballast_give(&ballasts[i], server);
        if (none && !scenario->faults_over && runs(server)) ballast_take(&ballasts[i], server);
    }
    uint64_t most = heap_most(scenario);
    bool whole = sim_rng_chance(&scenario->heap, BUDGET_WHOLE_PER_MILLE);
    scenario->heap_bytes = none ? 0 : whole ? most : sim_rng_below(&scenario->heap, most);
    if (!none && whole && sim_rng_chance(&scenario->heap, BUDGET_FULL_PER_MILLE))
        scenario->heap_bytes += leat_node_limits.log_spare_bytes;
    sim_fault_struck(world, SIM_FAULT_HEAP);
    sim_trace(world, "heaps take %llu MiB", (unsigned long long)(scenario->heap_bytes >> 20));
    if (scenario->faults_over) return;
    /* Long enough for what lies past the limit to be hibernated, or closed and flushed. */
    uint64_t until_us = none ? sim_rng_between(&scenario->heap, 50000, 1500000)
                             : sim_rng_between(&scenario->heap, 500000, 6000000);
    sim_world_at(world, world->now_us + until_us, change, scenario);
}

void sim_budget_choose(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_rng_init(&scenario->heap, world->seed, "heap");
    if (!sim_rng_chance(&scenario->heap, BUDGET_PER_MILLE)) return;
    scenario->budget = true;
    for (unsigned i = 0; i < SIM_SERVERS_MAX; i++)
        ballasts[i].asked_us = 0;
    sim_world_at(world, world->now_us + 100000, change, scenario);
}
