/* SPDX-License-Identifier: Apache-2.0 */
/* Named shared memory: it outlives a killed process, not a power cut. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

struct sim_arena {
    struct sim_world *world;
    uint8_t *base;
    uint64_t limit_bytes, grown_bytes, inherited_bytes;
    uint8_t pool_id[16];
    struct sim_rng rng;
    struct leat_arena port; /* of the living process */
    struct sim_actor *actor;
};

static void pool_new(struct sim_arena *arena)
{
    for (size_t i = 0; i < sizeof arena->pool_id; i++)
        arena->pool_id[i] = (uint8_t)sim_rng_next(&arena->rng);
    arena->grown_bytes = 0;
}

struct sim_arena *sim_arena_create(struct sim_world *world, uint64_t limit_bytes)
{
    struct sim_arena *arena = calloc(1, sizeof *arena);
    LEAT_ASSERT(arena != NULL);
    LEAT_ASSERT(limit_bytes % LEAT_ARENA_STEP_BYTES == 0);
    arena->world = world;
    arena->limit_bytes = limit_bytes;
    sim_rng_init(&arena->rng, world->seed, "arena");
    arena->base = sim_map(limit_bytes);
    pool_new(arena);
    return arena;
}

void sim_arena_destroy(struct sim_arena **arena)
{
    if (!*arena) return;
    sim_unmap((*arena)->base);
    free(*arena);
    *arena = NULL;
}

static void grown(struct sim_world *world, struct sim_event *event)
{
    struct leat_arena_grow *grow = event->a;
    struct sim_arena *arena = event->b;
    if (arena->grown_bytes < arena->limit_bytes) {
        arena->grown_bytes += LEAT_ARENA_STEP_BYTES;
        arena->port.grown_bytes = arena->grown_bytes;
        grow->rc = LEAT_OK;
    } else {
        grow->rc = LEAT_E_NO_MEMORY;
    }
    grow->on_grown(grow);
    (void)world;
}

static void arena_grow(void *ctx, struct leat_arena_grow *grow)
{
    struct sim_arena *arena = ctx;
    sim_port_called(arena->actor);
    uint64_t delay_us = sim_rng_between(&arena->rng, 100, 5000);
    sim_actor_post(arena->actor, delay_us, grown, grow)->b = arena;
}

static void shrunk(struct sim_world *world, struct sim_event *event)
{
    struct leat_arena_grow *grow = event->a;
    struct sim_arena *arena = event->b;
    grow->rc = LEAT_OK;
    arena->port.grown_bytes = arena->grown_bytes;
    grow->on_grown(grow);
    (void)world;
}

/* Gone at once, whether or not the process lives to hear of it. */
static void arena_shrink(void *ctx, struct leat_arena_grow *grow)
{
    struct sim_arena *arena = ctx;
    sim_port_called(arena->actor);
    LEAT_ASSERT_CMP(arena->grown_bytes, >=, 2 * LEAT_ARENA_STEP_BYTES);
    arena->grown_bytes -= LEAT_ARENA_STEP_BYTES;
    LEAT_ASSERT(madvise(arena->base + arena->grown_bytes, LEAT_ARENA_STEP_BYTES, MADV_DONTNEED) ==
                0);
    sim_fault_struck(arena->world, SIM_FAULT_SHRUNK);
    uint64_t delay_us = sim_rng_between(&arena->rng, 100, 5000);
    sim_actor_post(arena->actor, delay_us, shrunk, grow)->b = arena;
}

struct leat_arena *sim_arena_attach(struct sim_arena *arena, struct sim_actor *actor)
{
    arena->actor = actor;
    arena->port = (struct leat_arena){
        .ctx = arena,
        .base = arena->base,
        .limit_bytes = arena->limit_bytes,
        .grown_bytes = arena->grown_bytes,
        .inherited_bytes = arena->grown_bytes,
        .grow = arena_grow,
        .shrink = arena_shrink,
    };
    memcpy(arena->port.pool_id, arena->pool_id, sizeof arena->pool_id);
    return &arena->port;
}

void sim_arena_empty(struct sim_arena *arena)
{
    /* Private anonymous pages come back as zeros. */
    LEAT_ASSERT(madvise(arena->base, arena->limit_bytes, MADV_DONTNEED) == 0);
    pool_new(arena);
}
