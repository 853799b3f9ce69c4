#include "tests/replication/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/private.h"

const uint8_t world_cluster[16] = "the cluster 0002";
enum { RECORD_BYTES = 40 };

uint64_t world_below(struct world *world, uint64_t limit)
{
    return limit ? leat_xoshiro_below(&world->random, limit) : 0;
}

static uint64_t later(struct world *world, uint64_t us_max)
{
    return world->now_us + world_below(world, us_max + 1);
}

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
        arena->raw = calloc(1, WORLD_ARENA_BYTES + 4096);
        arena->arena.base = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)arena->raw, (uintptr_t)4096);
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
    node->grown_us = later(node->world, 2000);
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
    target->last_us = later(world, world->write_us_max);
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
    uint64_t at = later(world, world->write_us_max);
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

static void write_finish(struct world *world, unsigned index)
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

/* ---- control messages ---- */
static void message_push(struct world *world, struct world_message message)
{
    LEAT_ASSERT_CMP(world->message_count, <, WORLD_MESSAGES_MAX);
    unsigned peer = message.answer ? message.from : message.to;
    struct world_node *node = &world->nodes[peer];
    message.at_us = later(world, world->message_us_max);
    if (message.at_us < node->link_last_us[message.answer])
        message.at_us = node->link_last_us[message.answer];
    node->link_last_us[message.answer] = message.at_us;
    message.link = node->link;
    world->messages[world->message_count++] = message;
}

static leat_err net_call(void *ctx, unsigned to, struct leat_link_call *call)
{
    struct world *world = ctx;
    struct world_node *node = &world->nodes[to];
    if (!node->link_up) return LEAT_E_CLOSED;
    LEAT_ASSERT_CMP(world->call_count, <, WORLD_CALLS_MAX);
    uint64_t id = ++world->ids;
    world->calls[world->call_count++] = (struct world_call){
        .call = call, .to = to, .id = id, .deadline_us = world->now_us + call->timeout_us};
    uint8_t *control = malloc(call->control_bytes);
    memcpy(control, call->control, call->control_bytes);
    message_push(world, (struct world_message){.id = id,
                                               .to = to,
                                               .kind = call->kind,
                                               .control = control,
                                               .bytes = call->control_bytes});
    return LEAT_OK;
}

static void net_cut(void *ctx, unsigned node)
{
    world_link_cut(ctx, node);
}

static void net_answer(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                       uint32_t bytes)
{
    struct world_node *node = ctx;
    if (ticket->connection != node->link) return;
    uint8_t *copy = malloc(bytes + 1);
    memcpy(copy, control, bytes);
    message_push(node->world, (struct world_message){.id = ticket->request,
                                                     .from = node->number,
                                                     .answer = true,
                                                     .control = copy,
                                                     .bytes = bytes});
}

static void net_refuse(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                       const char *text)
{
    struct world_node *node = ctx;
    (void)text;
    if (ticket->connection != node->link) return;
    message_push(node->world,
                 (struct world_message){
                     .id = ticket->request, .from = node->number, .answer = true, .rc = rc});
}

static void call_end(struct world *world, unsigned index, leat_err rc,
                     const struct leat_frame *frame)
{
    struct world_call ended = world->calls[index];
    struct leat_error error = {rc, ""};
    world->calls[index] = world->calls[--world->call_count];
    ended.call->on_done(ended.call, rc, frame, &error);
}

static void message_deliver(struct world *world, unsigned index)
{
    struct world_message message = world->messages[index];
    memmove(&world->messages[index], &world->messages[index + 1],
            (world->message_count - index - 1) * sizeof world->messages[0]);
    world->message_count--;
    struct world_node *node = &world->nodes[message.answer ? message.from : message.to];
    struct leat_frame frame = {
        .kind = message.kind, .control = message.control, .control_bytes = message.bytes};
    if (message.link != node->link || !node->link_up) {
        free(message.control);
        return;
    }
    if (message.answer) {
        for (unsigned i = 0; i < world->call_count; i++)
            if (world->calls[i].id == message.id) {
                call_end(world, i, message.rc, &frame);
                break;
            }
    } else if (node->alive) {
        struct leat_link_identity who = {.incarnation = world->nodes[0].incarnation, .cores = 1};
        struct leat_link_ticket ticket = {
            .request = (uint32_t)message.id, .connection = node->link, .kind = message.kind};
        snprintf(who.node, sizeof who.node, "n0");
        if (message.kind == LEAT_REP_OPEN && world_below(world, 100) < node->refuses)
            net_refuse(node, &ticket, LEAT_E_AGAIN, "no");
        else
            leat_backup_request(node->backup, &who, &frame, &ticket);
    }
    free(message.control);
}

/* ---- links ---- */
void world_link_cut(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    if (!node->link_up) return;
    node->link_up = false;
    node->link++;
    node->link_at_us = later(world, 4 * world->message_us_max);
}

static void link_event(struct world *world, struct world_node *node)
{
    bool told = node->link % 2 == 0; /* even: the owner knows that it is down */
    if (!told) {
        for (unsigned i = 0; i < world->call_count;) {
            if (world->calls[i].to != node->number) {
                i++;
                continue;
            }
            call_end(world, i, LEAT_E_CLOSED, NULL);
            i = 0;
        }
        node->link++;
        leat_primary_peer_down(world->primary, node->number);
        node->link_at_us = later(world, 20 * world->message_us_max) + 1000;
        return;
    }
    if (!node->alive) {
        node->link_at_us = world->now_us + 5000;
        return;
    }
    struct leat_rep_node seen = {.number = node->number, .incarnation = node->incarnation};
    snprintf(seen.host, sizeof seen.host, "h%u", node->number);
    leat_primary_node_set(world->primary, &seen);
    node->link_up = true;
    node->link_at_us = UINT64_MAX;
    leat_primary_peer_up(world->primary, node->number);
}

/* ---- the coordinator ---- */
static void on_versions(void *owner, struct leat_primary *primary,
                        const struct leat_rep_version *rows, size_t count)
{
    struct world *world = owner;
    (void)primary;
    LEAT_ASSERT(!world->versions_asked && count <= 64);
    world->versions_asked = true;
    world->version_count = count;
    memcpy(world->version_rows, rows, count * sizeof *rows);
    world->versions_at_us = later(world, 4 * world->message_us_max);
}

struct world_log *world_log_of(struct world *world, struct leat_log_ref ref)
{
    for (unsigned i = 0; i < world->log_count; i++)
        if (leat_log_ref_equal(world->logs[i].ref, ref)) return &world->logs[i];
    return NULL;
}

static void versions_event(struct world *world)
{
    world->versions_asked = false;
    bool heard = !world->coordinator_down;
    bool answered = heard && world_below(world, 5) != 0;
    for (size_t i = 0; heard && i < world->version_count; i++) {
        struct world_log *log = world_log_of(world, world->version_rows[i].log);
        LEAT_ASSERT_CMP(world->version_rows[i].epoch.v, ==, (uint32_t)WORLD_EPOCH);
        world_check_stamps(world, log, world->version_rows[i].version);
        if (world->version_rows[i].version > log->version)
            log->version = world->version_rows[i].version;
    }
    leat_primary_versions_done(world->primary, answered ? LEAT_OK : LEAT_E_TIMEOUT);
}

static void log_on_opening(void *owner, struct leat_log *log)
{
    struct world_log *mine = owner;
    (void)log;
    mine->opening = true;
    mine->opening_version = leat_primary_opening(mine->rep);
    mine->opening_at_us = later(mine->world, 4 * mine->world->message_us_max);
}

static void opening_event(struct world_log *log)
{
    struct world *world = log->world;
    log->opening = false;
    bool heard = !world->coordinator_down;
    bool answered = heard && world_below(world, 5) != 0;
    if (heard) {
        world_check_stamps(world, log, log->opening_version);
        log->opened = true;
        if (log->opening_version > log->version) log->version = log->opening_version;
    }
    leat_err rc = answered ? LEAT_OK : LEAT_E_TIMEOUT;
    leat_primary_opened(log->rep, rc);
    leat_log_opened(log->log, rc);
}

/* ---- logs ---- */
static void log_on_dirty(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct world_log *)owner)->dirty = true;
}
static void log_on_acked(void *owner, struct leat_log *log)
{
    struct world_log *mine = owner;
    mine->acked = leat_log_acked_offset(log);
    world_check(mine->world);
}
static void log_on_room(void *owner, struct leat_log *log)
{
    (void)owner;
    (void)log;
}
static void on_room_rep(void *owner, struct leat_primary_log *rep)
{
    (void)owner;
    (void)rep;
}

static void on_append_acked(struct leat_append *append, leat_err rc)
{
    struct world_batch *batch = append->owner;
    batch->used = false;
    if (rc) {
        batch->log->failed++;
        return;
    }
    LEAT_ASSERT_CMP(append->first_offset, <, leat_log_acked_offset(batch->log->log));
}

bool world_append(struct world_log *log, uint32_t bytes)
{
    static uint8_t buffer[65536 + 1024];
    uint8_t value[RECORD_BYTES];
    struct leat_batch_builder builder;
    struct world_batch *slot = NULL;
    struct leat_batch batch;
    struct leat_error error;
    for (unsigned i = 0; i < WORLD_BATCHES_MAX && !slot; i++)
        if (!log->batches[i].used) slot = &log->batches[i];
    if (!slot) return false;
    leat_batch_builder_init(&builder, buffer, bytes + 512);
    for (uint32_t done = 0; done < bytes; done += RECORD_BYTES) {
        memset(value, (int)(log->next_value & 0x7f), sizeof value);
        memcpy(value, &log->next_value, sizeof log->next_value);
        if (leat_batch_builder_add(&builder, 1000, NULL, 0, value, sizeof value, NULL, 0, 0)) break;
        log->next_value++;
    }
    uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_err rc = leat_batch_check(buffer, count, &batch, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    slot->append = (struct leat_append){.on_acked = on_append_acked, .owner = slot};
    slot->log = log;
    rc = leat_log_append(log->log, &batch, &slot->append, &error);
    slot->used = rc == LEAT_OK;
    return slot->used;
}

bool world_is_idle(const struct world_log *log)
{
    for (unsigned i = 0; i < WORLD_BATCHES_MAX; i++)
        if (log->batches[i].used) return false;
    return true;
}

static void log_open(struct world *world, unsigned index)
{
    struct world_log *log = &world->logs[index];
    struct world_node *owner = &world->nodes[0];
    log->world = world;
    log->ref = (struct leat_log_ref){1, index, 0};
    struct leat_primary_log_options rep_options = {.ref = log->ref,
                                                   .epoch = {WORLD_EPOCH},
                                                   .copies = world->copies,
                                                   .min_copies = world->min_copies,
                                                   .durability = world->durability,
                                                   .version = 1,
                                                   .owner = log};
    leat_err rc = leat_primary_log_create(world->primary, &rep_options, NULL, 0, &log->rep);
    LEAT_ASSERT(rc == LEAT_OK);
    struct leat_keeper keeper = leat_primary_keeper(log->rep);
    struct leat_log_options options = {
        .ref = log->ref,
        .epoch = {WORLD_EPOCH},
        .stream_name = "s",
        .settings = {.streamlets = 4,
                     .logs = 1,
                     .copies = world->copies,
                     .segment_bytes_max = (uint32_t)world->segment_bytes_max,
                     .retention_bytes = world->retention_bytes},
        .incarnation = 1,
        .durability = world->durability,
        .park_after_us = world->park_after_us,
        .producer_expiry_ms = 1000 * 1000,
        .events = {log_on_dirty, log_on_acked, log_on_room, log_on_opening},
        .owner = log,
    };
    memcpy(options.cluster_id, world_cluster, sizeof world_cluster);
    struct leat_log_tail tail = {0};
    rc = leat_log_create(&owner->env, &keeper, &owner->timers, &options, NULL, 0, &tail, &log->log);
    LEAT_ASSERT(rc == LEAT_OK);
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
    node->keeper = leat_store_keeper(node->store);
    rc = leat_timers_init(&node->timers, &node->clock, 16);
    LEAT_ASSERT(rc == LEAT_OK);
    node->wake_us = UINT64_MAX;
    node->alive = true;
    struct leat_backup_options backup = {
        .env = &node->env,
        .timers = &node->timers,
        .store = node->store,
        .net = {.ctx = node, .answer = net_answer, .refuse = net_refuse},
        .rmem = &node->host,
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
    node->host = (struct leat_rmem_host){.ctx = node,
                                         .kinds = 1u << LEAT_RMEM_SHM,
                                         .open = host_open,
                                         .grow = host_grow,
                                         .grant = host_grant,
                                         .revoke = host_revoke,
                                         .retire = host_retire};
    static struct leat_random random;
    random = (struct leat_random){.ctx = world, .next = world_next};
    node->env = (struct leat_env){.clock = &node->clock,
                                  .random = &random,
                                  .post = &node->disk.core_post,
                                  .disk = &node->disk.disk};
    node->link = 2;
    node->link_at_us = number ? later(world, 3000) : UINT64_MAX;
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

void world_node_start(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    size_t count;
    LEAT_ASSERT(!node->alive);
    node->incarnation += 10;
    node_open(node);
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

static uint64_t next_at(const struct world *world)
{
    uint64_t at = UINT64_MAX;
    for (unsigned i = 0; i < world->message_count; i++)
        min_at(&at, world->messages[i].at_us);
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
        link_event(world, node);
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
        if (world->messages[i].at_us <= world->now_us) {
            message_deliver(world, i);
            return true;
        }
    for (unsigned i = 0; i < world->write_count; i++) {
        const struct world_target *target = world->writes[i].target;
        if (world->writes[i].at_us > world->now_us || world->nodes[target->node].slow) continue;
        write_finish(world, i);
        return true;
    }
    for (unsigned i = 0; i < world->call_count; i++)
        if (world->calls[i].deadline_us <= world->now_us) {
            call_end(world, i, LEAT_E_TIMEOUT, NULL);
            return true;
        }
    for (unsigned i = 0; i < world->node_count; i++)
        if (node_due(world, &world->nodes[i])) return true;
    for (unsigned i = 0; i < world->log_count; i++)
        if (world->logs[i].opening && world->logs[i].opening_at_us <= world->now_us) {
            opening_event(&world->logs[i]);
            return true;
        }
    if (world->versions_asked && world->versions_at_us <= world->now_us) {
        versions_event(world);
        return true;
    }
    return false;
}

void world_step(struct world *world)
{
    /* Bytes of a write come when they like. */
    if (world->write_count && world_below(world, 16) == 0) {
        const struct world_write *pending = &world->writes[world_below(world, world->write_count)];
        if (pending->write) apply(world, pending, 1);
    }
    if (world->ghost_count && world_below(world, 3000) == 0) ghost_land(world);
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
    world->segment_bytes_max = 64 * 1024;
    world->park_after_us = 1000 * 1000 * 1000;
    world->rmem = (struct leat_rmem){.ctx = world,
                                     .kind = LEAT_RMEM_SHM,
                                     .attach = rmem_attach,
                                     .write = rmem_write,
                                     .detach = rmem_detach};
    for (unsigned i = 0; i < nodes; i++)
        node_init(world, i);
    struct leat_primary_options options = {
        .env = &world->nodes[0].env,
        .timers = &world->nodes[0].timers,
        .store = world->nodes[0].keeper,
        .net = {.ctx = world, .call = net_call, .cut = net_cut},
        .rmem = &world->rmem,
        .self = {.number = 0, .incarnation = 100, .host = "h0"},
        .events = {.on_versions = on_versions, .on_room = on_room_rep},
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
        log_open(world, i);
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
        free(world->arenas[i].raw);
    free(world);
}
