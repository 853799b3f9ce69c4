/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of named memory that others write into: see rmem.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "tests/sim/rmem_parts.h"

bool sim_rmem_host_lives(const struct sim_rmem_host *host)
{
    return host->actor && host->actor->process->alive;
}

struct sim_rmem_host *sim_rmem_host_create(struct sim_world *world, const char *node)
{
    struct sim_rmem_host *host = calloc(1, sizeof *host);
    char purpose[64];
    LEAT_ASSERT(host != NULL);
    snprintf(purpose, sizeof purpose, "rmem host %s", node);
    sim_rng_init(&host->rng, world->seed, purpose);
    host->world = world;
    host->next = world->rmem_hosts;
    world->rmem_hosts = host;
    return host;
}

static void region_free(struct region *region)
{
    sim_unmap(region->port.base);
    free(region);
}

void sim_rmem_fini(struct sim_world *world)
{
    for (struct sim_rmem_host *host = world->rmem_hosts, *next; host; host = next) {
        next = host->next;
        for (struct region *region = host->regions, *after; region; region = after) {
            after = region->next;
            region_free(region);
        }
        free(host);
    }
    world->rmem_hosts = NULL;
}

static struct sim_rmem_host *host_of(void *ctx)
{
    struct sim_rmem_host *host = ctx;
    sim_port_called(host->actor);
    return host;
}

static leat_err host_open(void *ctx, const char *writer, uint64_t writer_incarnation,
                          uint64_t limit_bytes, struct leat_rmem_arena **out_arena,
                          struct leat_error *error)
{
    struct sim_rmem_host *host = host_of(ctx);
    LEAT_ASSERT(limit_bytes && limit_bytes % LEAT_ARENA_STEP_BYTES == 0);
    LEAT_ASSERT(limit_bytes / LEAT_ARENA_STEP_BYTES <= LEAT_RMEM_STEPS_MAX);
    unsigned count = 0;
    for (struct region *region = host->regions; region; region = region->next)
        count += !region->retired;
    if (count >= LEAT_RMEM_ARENAS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "%u arenas are in use", count);
    struct region *region = calloc(1, sizeof *region);
    LEAT_ASSERT(region != NULL);
    region->host = host;
    region->port.base = sim_map(limit_bytes);
    region->port.limit_bytes = limit_bytes;
    region->port.number = ++host->last_number;
    region->port.writer_incarnation = writer_incarnation;
    snprintf(region->port.writer, sizeof region->port.writer, "%s", writer);
    for (size_t i = 0; i < sizeof region->port.id; i++)
        region->port.id[i] = (uint8_t)sim_rng_next(&host->rng);
    region->next = host->regions;
    host->regions = region;
    *out_arena = &region->port;
    return LEAT_OK;
}

static void grown(struct sim_world *world, struct sim_event *event)
{
    struct leat_rmem_grow *grow = event->a;
    struct region *region = event->b;
    if (region->retired) return;
    if (region->port.grown_bytes < region->port.limit_bytes && !world->rmem_full) {
        region->port.grown_bytes += LEAT_ARENA_STEP_BYTES;
        grow->rc = LEAT_OK;
    } else {
        if (world->rmem_full) sim_fault_struck(world, SIM_FAULT_RMEM_FULL);
        grow->rc =
            leat_error_set(&grow->error, LEAT_E_NO_MEMORY, "no memory for a step of an arena");
    }
    grow->on_grown(grow);
}

static void host_grow(void *ctx, struct leat_rmem_arena *arena, struct leat_rmem_grow *grow)
{
    struct sim_rmem_host *host = host_of(ctx);
    LEAT_ASSERT(!arena->revoked);
    uint64_t delay_us = sim_rng_between(&host->rng, 100, 5000);
    if (host->world->rmem_grow_us) delay_us = host->world->rmem_grow_us;
    sim_actor_post(host->actor, delay_us, grown, grow)->b =
        LEAT_CONTAINER(arena, struct region, port);
}

static void host_grant(void *ctx, const struct leat_rmem_arena *arena,
                       struct leat_rmem_grant *out_grant)
{
    struct sim_rmem_host *host = host_of(ctx);
    struct leat_rmem_address address = {.limit_bytes = arena->limit_bytes, .number = arena->number};
    memcpy(address.id, arena->id, sizeof address.id);
    out_grant->bytes = 0;
    bool fits = leat_rmem_grant_add(out_grant, LEAT_RMEM_NONE, &address, sizeof address);
    for (unsigned kind = LEAT_RMEM_SHM; kind <= LEAT_RMEM_VERBS && fits; kind++)
        if (host->port.kinds & (1u << kind))
            fits = leat_rmem_grant_add(out_grant, (enum leat_rmem_kind)kind, "sim", 3);
    fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_TCP, "", 0);
    fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_RPC, "", 0);
    LEAT_ASSERT(fits);
}

static void host_revoke(void *ctx, struct leat_rmem_arena *arena)
{
    (void)host_of(ctx);
    arena->revoked = true;
}

static void host_retire(void *ctx, struct leat_rmem_arena *arena)
{
    (void)host_of(ctx);
    struct region *region = LEAT_CONTAINER(arena, struct region, port);
    arena->revoked = region->retired = true;
    /* The struct stays: writes may be on their way to it. Whoever reads the memory gets zeros. */
    LEAT_ASSERT(madvise(arena->base, arena->limit_bytes, MADV_DONTNEED) == 0);
}

static void host_each_inherited(void *ctx, void (*each)(void *arg, struct leat_rmem_arena *arena),
                                void *arg)
{
    struct sim_rmem_host *host = host_of(ctx);
    for (struct region *region = host->regions; region; region = region->next)
        if (!region->retired && !region->lost && region->port.inherited) each(arg, &region->port);
}

struct region *sim_rmem_region(struct sim_rmem_host *host, const struct leat_rmem_address *address)
{
    for (struct region *region = host->regions; region; region = region->next)
        if (!region->retired && !region->lost && region->port.number == address->number &&
            memcmp(region->port.id, address->id, LEAT_RMEM_ID_BYTES) == 0)
            return region;
    return NULL;
}

/* From any actor of the process. */
static leat_err host_enter(void *ctx, const struct leat_rmem_from *from,
                           const struct leat_rmem_address *address, uint64_t offset, uint64_t bytes,
                           uint8_t **out_at)
{
    struct region *region = sim_rmem_region(ctx, address);
    if (!region) return LEAT_E_NOT_FOUND;
    if (!leat_rmem_is_writer(&region->port, from)) return LEAT_E_DENIED;
    if (region->port.revoked) return LEAT_E_CANCELLED;
    if (offset > region->port.grown_bytes || bytes > region->port.grown_bytes - offset)
        return LEAT_E_OFFSET_OUT_OF_RANGE;
    *out_at = region->port.base + offset;
    return LEAT_OK;
}

static leat_err host_leave(void *ctx, const struct leat_rmem_address *address)
{
    struct region *region = sim_rmem_region(ctx, address);
    return region && !region->port.revoked ? LEAT_OK : LEAT_E_CANCELLED;
}

const struct leat_rmem_host *sim_rmem_host_attach(struct sim_rmem_host *host,
                                                  struct sim_actor *actor, unsigned kinds)
{
    host->actor = actor;
    host->port = (struct leat_rmem_host){
        .ctx = host,
        .kinds = kinds,
        .open = host_open,
        .grow = host_grow,
        .grant = host_grant,
        .revoke = host_revoke,
        .retire = host_retire,
        .each_inherited = host_each_inherited,
        .enter = host_enter,
        .leave = host_leave,
    };
    for (struct region *region = host->regions; region; region = region->next) {
        region->port.inherited = region->port.revoked = true;
        region->port.owner = NULL;
    }
    return &host->port;
}

void sim_rmem_power_cut(struct sim_rmem_host *host)
{
    for (struct region *region = host->regions; region; region = region->next) {
        if (!region->lost)
            LEAT_ASSERT(madvise(region->port.base, region->port.limit_bytes, MADV_DONTNEED) == 0);
        region->lost = region->port.revoked = true;
    }
}
