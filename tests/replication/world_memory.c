/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other nodes write into, and their one-sided writes: late, torn, with their parts in any order. */
#include "tests/replication/world_parts.h"

#include "tests/pages.h"

/* ---- the memory that others write into ---- */
static struct world_arena *arena_of(struct leat_rmem_arena *arena)
{
    return (struct world_arena *)(void *)arena;
}

static leat_err host_open(void *ctx, const char *writer, uint64_t incarnation, uint64_t limit_bytes,
                          struct leat_rmem_arena **out_arena, struct leat_error *error)
{
    struct world_node *node = ctx;
    struct world *world = node->world;
    (void)error;
    for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++) {
        struct world_arena *arena = &world->arenas[i];
        if (arena->used) continue;
        *arena = (struct world_arena){.used = true, .node = node->number};
        arena->arena.base = arena->pages = pages_get(WORLD_ARENA_BYTES);
        arena->arena.limit_bytes = limit_bytes;
        arena->arena.number = i + 1;
        arena->arena.writer_incarnation = incarnation;
        snprintf(arena->arena.writer, sizeof arena->arena.writer, "%s", writer);
        for (unsigned j = 0; j < LEAT_RMEM_ID_BYTES; j++)
            arena->arena.id[j] = (uint8_t)world_below(world, 256);
        *out_arena = &arena->arena;
        return LEAT_OK;
    }
    return LEAT_E_TOO_MANY;
}

static void host_grow(void *ctx, struct leat_rmem_arena *arena, struct leat_rmem_grow *grow)
{
    struct world_node *node = ctx;
    LEAT_ASSERT(!node->growing && !arena->revoked);
    node->growing = grow;
    node->grow_arena = arena_of(arena);
    node->grown_us = world_later(node->world, 2000);
}

static void host_grant(void *ctx, const struct leat_rmem_arena *arena,
                       struct leat_rmem_grant *out_grant)
{
    (void)ctx;
    LEAT_ASSERT_CMP(arena->grown_bytes, >, 0);
    out_grant->bytes = sizeof arena->number;
    memcpy(out_grant->data, &arena->number, sizeof arena->number);
}

static void host_revoke(void *ctx, struct leat_rmem_arena *arena)
{
    (void)ctx;
    arena->revoked = true;
}

static void host_retire(void *ctx, struct leat_rmem_arena *arena)
{
    (void)ctx;
    arena->revoked = true;
    arena_of(arena)->closed = true; /* zombies keep their view of it */
}

/* ---- one-sided writes ---- */
static leat_err rmem_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                            const struct leat_rmem_target_handler *handler, void *user,
                            struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct world *world = ctx;
    uint32_t number;
    (void)error;
    LEAT_ASSERT_CMP(grant->bytes, ==, sizeof number);
    memcpy(&number, grant->data, sizeof number);
    struct world_target *target = calloc(1, sizeof *target);
    target->target.port = &world->rmem;
    target->target.kind = LEAT_RMEM_SHM;
    target->world = world;
    target->arena = &world->arenas[number - 1];
    target->handler = handler;
    target->user = user;
    target->node = node;
    target->attaching = true;
    /* Attaching is the first entry of its queue. */
    LEAT_ASSERT_CMP(world->write_count, <, WORLD_WRITES_MAX);
    target->last_us = world_later(world, world->write_us_max);
    world->writes[world->write_count++] =
        (struct world_write){.target = target, .at_us = target->last_us};
    *out_target = &target->target;
    return LEAT_OK;
}

static leat_err rmem_write(struct leat_rmem_target *base, struct leat_rmem_write *write)
{
    struct world_target *target = (struct world_target *)(void *)base;
    struct world *world = target->world;
    LEAT_ASSERT(!target->detached);
    if (!base->attached || base->failed) return LEAT_E_CLOSED;
    LEAT_ASSERT_CMP(world->write_count, <, WORLD_WRITES_MAX);
    write->bytes = 0;
    for (unsigned i = 0; i < write->iov_count; i++)
        write->bytes += (uint32_t)write->iovs[i].bytes;
    LEAT_ASSERT_CMP(write->offset + write->bytes, <=, target->arena->arena.grown_bytes);
    uint64_t at = world_later(world, world->write_us_max);
    if (at < target->last_us) at = target->last_us;
    target->last_us = at;
    world->writes[world->write_count++] =
        (struct world_write){.write = write, .target = target, .at_us = at};
    return LEAT_OK;
}

static void target_free_if_over(struct world *world, struct world_target *target)
{
    if (!target->detached || target->held) return;
    for (unsigned i = 0; i < world->write_count; i++)
        if (world->writes[i].target == target) return;
    free(target);
}

static void rmem_detach(struct leat_rmem_target *base)
{
    struct world_target *target = (struct world_target *)(void *)base;
    target->detached = true;
    target_free_if_over(target->world, target);
}

/* Some of its bytes, in pieces that no order binds. */
static void apply(struct world *world, const struct world_write *pending, unsigned of_8)
{
    const struct leat_rmem_write *write = pending->write;
    uint8_t *at = pending->target->arena->arena.base + write->offset;
    const uint8_t *from = write->iovs[0].base;
    LEAT_ASSERT_CMP(write->iov_count, ==, 1);
    for (uint32_t done = 0; done < write->bytes; done += 64) {
        uint32_t bytes = write->bytes - done < 64 ? write->bytes - done : 64;
        if (of_8 == 8 || world_below(world, 8) < of_8) memcpy(at + done, from + done, bytes);
    }
}

static void ghost_add(struct world *world, const struct world_write *pending)
{
    const struct leat_rmem_write *write = pending->write;
    if (world->ghost_count == WORLD_GHOSTS_MAX) return;
    struct world_ghost *ghost = &world->ghosts[world->ghost_count++];
    *ghost = (struct world_ghost){pending->target->arena, write->offset, write->bytes,
                                  malloc(write->bytes)};
    memcpy(ghost->copy, write->iovs[0].base, write->bytes);
}

static void ghost_land(struct world *world)
{
    unsigned index = (unsigned)world_below(world, world->ghost_count);
    struct world_ghost ghost = world->ghosts[index];
    world->ghosts[index] = world->ghosts[--world->ghost_count];
    uint32_t from = (uint32_t)world_below(world, ghost.bytes);
    memcpy(ghost.arena->arena.base + ghost.offset + from, ghost.copy + from, ghost.bytes - from);
    free(ghost.copy);
    world->ghosts_landed++;
}

static void target_fail(struct world *world, struct world_target *target)
{
    if (target->target.failed) return;
    target->target.failed = true;
    struct leat_error error = {LEAT_E_CLOSED, "the world broke it"};
    /* Every write ends first. */
    for (bool again = true; again;) {
        again = false;
        for (unsigned i = 0; i < world->write_count; i++) {
            struct world_write pending = world->writes[i];
            if (pending.target != target || !pending.write) continue;
            memmove(&world->writes[i], &world->writes[i + 1],
                    (world->write_count - i - 1) * sizeof world->writes[0]);
            world->write_count--;
            ghost_add(world, &pending);
            apply(world, &pending, (unsigned)world_below(world, 9));
            world->torn++;
            pending.write->on_done(pending.write, LEAT_E_CLOSED);
            again = true;
            break;
        }
    }
    if (!target->detached) target->handler->on_failed(target->user, &target->target, &error);
}

void world_write_finish(struct world *world, unsigned index)
{
    struct world_write pending = world->writes[index];
    struct world_target *target = pending.target;
    memmove(&world->writes[index], &world->writes[index + 1],
            (world->write_count - index - 1) * sizeof world->writes[0]);
    world->write_count--;
    target->held = true;
    if (!pending.write) {
        target->attaching = false;
        if (!target->detached) {
            target->target.attached = true;
            if (target->arena->arena.revoked)
                target_fail(world, target);
            else
                target->handler->on_attached(target->user, &target->target);
        }
    } else if (target->detached) {
        ghost_add(world, &pending);
        world->torn++;
        apply(world, &pending, (unsigned)world_below(world, 9));
        pending.write->on_done(pending.write, LEAT_E_CANCELLED);
    } else if (target->arena->arena.revoked || target->target.failed) {
        apply(world, &pending, (unsigned)world_below(world, 9)); /* a zombie scribbles */
        world->torn++;
        pending.write->on_done(pending.write, LEAT_E_CANCELLED);
        target_fail(world, target);
    } else {
        apply(world, &pending, 8);
        pending.write->on_done(pending.write, LEAT_OK);
    }
    target->held = false;
    target_free_if_over(world, target);
}

void world_targets_fail(struct world *world, unsigned node)
{
    for (unsigned i = 0; i < world->write_count; i++) {
        struct world_target *target = world->writes[i].target;
        if (target->node != node || target->detached || !target->target.attached) continue;
        target->held = true;
        target_fail(world, target);
        target->held = false;
        target_free_if_over(world, target);
        return;
    }
}
void world_bytes_come(struct world *world)
{
    /* Bytes of a write come when they like. */
    if (world->write_count && world_below(world, 16) == 0) {
        const struct world_write *pending = &world->writes[world_below(world, world->write_count)];
        if (pending->write) apply(world, pending, 1);
    }
    if (world->ghost_count && world_below(world, 3000) == 0) ghost_land(world);
}

void world_host_init(struct world_node *node)
{
    node->host = (struct leat_rmem_host){.ctx = node,
                                         .kinds = 1u << LEAT_RMEM_SHM,
                                         .open = host_open,
                                         .grow = host_grow,
                                         .grant = host_grant,
                                         .revoke = host_revoke,
                                         .retire = host_retire};
}

void world_rmem_init(struct world *world)
{
    world->rmem = (struct leat_rmem){.ctx = world,
                                     .kind = LEAT_RMEM_SHM,
                                     .attach = rmem_attach,
                                     .write = rmem_write,
                                     .detach = rmem_detach};
}
