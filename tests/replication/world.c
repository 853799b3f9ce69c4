/* SPDX-License-Identifier: Apache-2.0 */
#include "store/private.h"
#include "tests/pages.h"
#include "tests/replication/world_parts.h"

const uint8_t world_cluster[16] = "the cluster 0002";

/* ---- clocks and dice ---- */
static uint64_t core_now(void *ctx)
{
    return ((struct world_node *)ctx)->world->now_us;
}
static int64_t core_wall(void *ctx)
{
    return (int64_t)(((struct world_node *)ctx)->world->now_us / 1000);
}
static void core_wake_at(void *ctx, uint64_t at_us)
{
    ((struct world_node *)ctx)->wake_us = at_us;
}
static uint64_t world_next(void *ctx)
{
    return leat_xoshiro_next(&((struct world *)ctx)->random);
}

/* ---- nodes ---- */
static void store_on_flushed(void *core, struct leat_segment *seg)
{
    struct world_node *node = core;
    if (seg->role == LEAT_SEGMENT_REPLICA)
        leat_backup_on_flushed(node->backup, seg);
    else if (seg->log_pointer)
        leat_log_on_flushed(seg->log_pointer, seg);
}

static void store_on_evict_wanted(void *core, struct leat_segment *seg)
{
    struct world_node *node = core;
    if (seg->role == LEAT_SEGMENT_REPLICA)
        leat_backup_on_evict_wanted(node->backup, seg);
    else if (seg->log_pointer)
        leat_log_on_evict_wanted(seg->log_pointer, seg);
}

static bool heap_is_full(void *arg)
{
    return ((const struct world_node *)arg)->heap_full;
}

static bool stream_is_deleted(void *arg, uint32_t stream)
{
    const struct world_node *node = arg;
    return node->deleted == stream;
}

static void node_open(struct world_node *node)
{
    struct world *world = node->world;
    struct leat_arena *inherited[WORLD_ARENAS_MAX];
    size_t inherited_count = 0;
    struct leat_error error = {0};
    for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++) {
        struct world_arena *arena = &world->arenas[i];
        if (!arena->used || arena->closed || arena->node != node->number) continue;
        arena->arena.revoked = true; /* before anything else */
        arena->closed = true;
        arena->left = (struct leat_arena){.base = arena->arena.base,
                                          .limit_bytes = arena->arena.limit_bytes,
                                          .grown_bytes = arena->arena.grown_bytes,
                                          .inherited_bytes = arena->arena.grown_bytes};
        memcpy(arena->left.pool_id, arena->arena.id, sizeof arena->left.pool_id);
        inherited[inherited_count++] = &arena->left;
    }
    struct leat_store_options options = {
        .memory_bytes = WORLD_STORE_BYTES,
        .flush_delay_us = 50000,
        .inherited = inherited,
        .inherited_count = inherited_count,
        .events = {.on_flushed = store_on_flushed, .on_evict_wanted = store_on_evict_wanted}};
    memcpy(options.cluster_id, world_cluster, sizeof world_cluster);
    leat_err rc = leat_store_open(&node->disk.env, &options, &node->store, &error);
    LEAT_ASSERT(rc == LEAT_OK);
    node->disk.store = node->store;
    node->store_port = leat_store_port(node->store);
    rc = leat_timers_init(&node->timers, &node->clock, 16);
    LEAT_ASSERT(rc == LEAT_OK);
    node->wake_us = UINT64_MAX;
    node->alive = true;
    struct leat_backup_options backup = {
        .env = &node->env,
        .timers = &node->timers,
        .store = node->store,
        .net = world_backup_net(node),
        .rmem = &node->host,
        .stream_deleted = stream_is_deleted,
        .is_full = heap_is_full,
        .arg = node,
        .writer_bytes_max = WORLD_ARENA_BYTES,
    };
    rc = leat_backup_create(&backup, &node->backup);
    LEAT_ASSERT(rc == LEAT_OK);
}

static void node_init(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    node->world = world;
    node->number = number;
    node->incarnation = 100 + number;
    fake_world_init(&node->disk, leat_xoshiro_next(&world->random), WORLD_STORE_BYTES);
    node->disk.core = node;
    node->disk.now_us = world->now_us;
    node->clock = (struct leat_clock){node, core_now, core_wall, core_wake_at};
    world_host_init(node);
    static struct leat_random random;
    random = (struct leat_random){.ctx = world, .next = world_next};
    node->env = (struct leat_env){.clock = &node->clock,
                                  .random = &random,
                                  .post = &node->disk.core_post,
                                  .disk = &node->disk.disk};
    node->link = 2;
    node->link_at_us = number ? world_later(world, 3000) : UINT64_MAX;
    node_open(node);
    leat_store_found_done(node->store);
}

void world_drop_store(struct world_node *node)
{
    node->store->rows_running = false;
    node->store->data_running = 0;
    node->store->flush_in_flight = 0;
    node->store->slots.zeroing = NULL;
    leat_store_close(&node->store);
}

void world_node_kill(struct world *world, unsigned number, bool power)
{
    struct world_node *node = &world->nodes[number];
    LEAT_ASSERT(node->alive && number != 0);
    node->alive = false;
    if (power) {
        fake_power_cut(&node->disk);
        for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++)
            if (world->arenas[i].used && world->arenas[i].node == number) {
                world->arenas[i].closed = true; /* gone; nobody can write there any more */
                world->arenas[i].arena.revoked = true;
            }
    } else {
        fake_kill(&node->disk);
    }
    node->growing = NULL;
    leat_backup_destroy(&node->backup);
    world_drop_store(node);
    leat_timers_fini(&node->timers);
    node->wake_us = UINT64_MAX;
    /* Writers may go on for a while: nothing tells them but the link. */
    world_link_cut(world, number);
}

void world_node_open(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    LEAT_ASSERT(!node->alive);
    node->incarnation += 10;
    node_open(node);
}

void world_node_start(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    size_t count;
    world_node_open(world, number);
    const struct leat_found *found = leat_store_found_replicas(node->store, &count);
    for (size_t i = 0; i < count; i++) {
        leat_err rc = leat_backup_take_found(node->backup, &found[i]);
        LEAT_ASSERT(rc == LEAT_OK);
    }
    leat_store_found_done(node->store);
}

/* ---- time ---- */
static void turns(struct world *world)
{
    for (bool again = true; again;) {
        again = false;
        for (unsigned i = 0; i < world->log_count; i++) {
            struct world_log *log = &world->logs[i];
            if (!log->dirty || !log->log) continue;
            log->dirty = false;
            leat_log_turn_end(log->log);
            again = true;
        }
    }
}

static bool node_has_events(const struct world_node *node)
{
    return node->alive && fake_is_busy(&node->disk);
}

static bool fake_event_one(struct world *world)
{
    unsigned first = (unsigned)world_below(world, world->node_count);
    for (unsigned i = 0; i < world->node_count; i++) {
        struct world_node *node = &world->nodes[(first + i) % world->node_count];
        if (!node_has_events(node)) continue;
        node->disk.now_us = world->now_us;
        (void)fake_step(&node->disk);
        return true;
    }
    return false;
}

static void min_at(uint64_t *best, uint64_t at_us)
{
    if (at_us < *best) *best = at_us;
}

static bool message_waits(const struct world *world, const struct world_message *message)
{
    return world->nodes[message->answer ? message->from : message->to].mute;
}

static uint64_t next_at(const struct world *world)
{
    uint64_t at = UINT64_MAX;
    for (unsigned i = 0; i < world->message_count; i++)
        if (!message_waits(world, &world->messages[i])) min_at(&at, world->messages[i].at_us);
    for (unsigned i = 0; i < world->write_count; i++)
        if (!world->nodes[world->writes[i].target->node].slow) min_at(&at, world->writes[i].at_us);
    for (unsigned i = 0; i < world->call_count; i++)
        min_at(&at, world->calls[i].deadline_us);
    for (unsigned i = 0; i < world->node_count; i++) {
        const struct world_node *node = &world->nodes[i];
        if (!node->link_up) min_at(&at, node->link_at_us);
        if (!node->alive) continue;
        min_at(&at, node->wake_us);
        min_at(&at, node->disk.wake_at_us);
        if (node->growing) min_at(&at, node->grown_us);
    }
    for (unsigned i = 0; i < world->log_count; i++)
        if (world->logs[i].opening) min_at(&at, world->logs[i].opening_at_us);
    if (world->versions_asked) min_at(&at, world->versions_at_us);
    return at;
}

static bool node_due(struct world *world, struct world_node *node)
{
    if (!node->link_up && node->link_at_us <= world->now_us) {
        world_link_event(world, node);
        return true;
    }
    if (!node->alive) return false;
    if (node->growing && node->grown_us <= world->now_us) {
        struct leat_rmem_grow *grow = node->growing;
        node->growing = NULL;
        bool full = node->grow_arena->arena.grown_bytes == node->grow_arena->arena.limit_bytes;
        grow->rc = full ? LEAT_E_NO_MEMORY : LEAT_OK;
        if (!full) node->grow_arena->arena.grown_bytes += LEAT_ARENA_STEP_BYTES;
        grow->on_grown(grow);
        return true;
    }
    if (node->wake_us <= world->now_us) {
        node->wake_us = UINT64_MAX;
        leat_timers_run(&node->timers);
        return true;
    }
    if (node->disk.wake_at_us <= world->now_us) {
        node->disk.wake_at_us = UINT64_MAX;
        node->disk.now_us = world->now_us;
        leat_store_actor.on_wake(node->store);
        leat_store_actor.on_turn_end(node->store);
        return true;
    }
    return false;
}

static bool due_one(struct world *world)
{
    for (unsigned i = 0; i < world->message_count; i++)
        if (world->messages[i].at_us <= world->now_us &&
            !message_waits(world, &world->messages[i])) {
            world_message_deliver(world, i);
            return true;
        }
    for (unsigned i = 0; i < world->write_count; i++) {
        const struct world_target *target = world->writes[i].target;
        if (world->writes[i].at_us > world->now_us || world->nodes[target->node].slow) continue;
        world_write_finish(world, i);
        return true;
    }
    for (unsigned i = 0; i < world->call_count; i++)
        if (world->calls[i].deadline_us <= world->now_us) {
            world_call_timeout(world, i);
            return true;
        }
    for (unsigned i = 0; i < world->node_count; i++)
        if (node_due(world, &world->nodes[i])) return true;
    for (unsigned i = 0; i < world->log_count; i++)
        if (world->logs[i].opening && world->logs[i].opening_at_us <= world->now_us) {
            world_opening_event(&world->logs[i]);
            return true;
        }
    if (world->versions_asked && world->versions_at_us <= world->now_us) {
        world_versions_event(world);
        return true;
    }
    return false;
}

void world_step(struct world *world)
{
    world_bytes_come(world);
    bool done = world_below(world, 3) ? fake_event_one(world) || due_one(world)
                                      : due_one(world) || fake_event_one(world);
    if (!done) {
        uint64_t at = next_at(world);
        uint64_t soon = world->now_us + 20000;
        world->now_us = at > world->now_us && at < soon ? at : soon;
    } else if (world_below(world, 8) == 0) {
        world->now_us += world_below(world, 40);
    }
    turns(world);
}

void world_care(struct world *world)
{
    if (world->now_us < world->care_us) return;
    world->care_us = world->now_us + 20000;
    for (unsigned i = 0; i < world->log_count; i++)
        leat_log_care(world->logs[i].log);
    turns(world);
}

void world_run(struct world *world, uint64_t us)
{
    uint64_t until = world->now_us + us;
    while (world->now_us < until) {
        world_step(world);
        world_care(world);
    }
}

/* ---- life ---- */
uint64_t world_segment_bytes = 64 * 1024;

struct world *world_new(uint64_t seed, unsigned nodes, unsigned copies, unsigned logs,
                        enum leat_durability durability, int64_t retention_bytes)
{
    struct world *world = calloc(1, sizeof *world);
    world->retention_bytes = retention_bytes;
    leat_xoshiro_seed(&world->random, seed);
    world->now_us = 1000 * 1000;
    world->node_count = nodes;
    world->copies = copies;
    world->min_copies = copies / 2 + 1;
    world->log_count = logs;
    world->durability = durability;
    world->message_us_max = 300;
    world->write_us_max = 100;
    world->segment_bytes_max = world_segment_bytes;
    world->hibernate_after_us = 1000 * 1000 * 1000;
    world_rmem_init(world);
    for (unsigned i = 0; i < nodes; i++)
        node_init(world, i);
    struct leat_primary_options options = {
        .env = &world->nodes[0].env,
        .timers = &world->nodes[0].timers,
        .store = world->nodes[0].store_port,
        .net = world_primary_net(world),
        .rmem = &world->rmem,
        .self = {.number = 0, .incarnation = 100, .host = "h0"},
        .events = world_primary_events(),
        .owner = world,
        .answer_us = 50 * 1000,
        .flush_us = 200 * 1000,
        .open_wait_us = 40 * 1000,
        .grace_us = 300 * 1000,
        .audit_us = 500 * 1000,
    };
    leat_err rc = leat_primary_create(&options, &world->primary);
    LEAT_ASSERT(rc == LEAT_OK);
    for (unsigned i = 0; i < logs; i++)
        world_log_open(world, i);
    return world;
}

void world_free(struct world *world)
{
    /* A process that ends: nothing of it is taken down in order. */
    for (unsigned i = 0; i < world->message_count; i++)
        free(world->messages[i].control);
    for (unsigned i = 0; i < world->node_count; i++) {
        struct world_node *node = &world->nodes[i];
        if (node->alive) {
            leat_backup_destroy(&node->backup);
            leat_timers_fini(&node->timers);
            if (node->store) world_drop_store(node);
        }
        fake_world_fini(&node->disk);
    }
    for (unsigned i = 0; i < world->ghost_count; i++)
        free(world->ghosts[i].copy);
    for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++)
        if (world->arenas[i].pages) pages_put(world->arenas[i].pages, WORLD_ARENA_BYTES);
    free(world);
}

void world_append_all(struct world *world, unsigned batches, uint32_t bytes)
{
    for (unsigned i = 0; i < batches; i++) {
        struct world_log *log = &world->logs[i % world->log_count];
        for (unsigned tries = 0; !world_append(log, bytes) && tries < 200000; tries++) {
            world_step(world);
            world_care(world);
        }
    }
}

bool world_settle(struct world *world, uint64_t us)
{
    uint64_t until = world->now_us + us;
    while (world->now_us < until) {
        world_step(world);
        world_care(world);
        bool idle = true;
        for (unsigned i = 0; i < world->log_count; i++)
            idle &= world_is_idle(&world->logs[i]);
        if (idle) return true;
    }
    return false;
}
