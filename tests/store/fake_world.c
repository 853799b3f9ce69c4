/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/fake_world.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "tests/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096 };

uint64_t fake_random(struct fake_world *world)
{
    uint64_t z = world->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t fake_below(struct fake_world *world, uint64_t limit)
{
    return fake_random(world) % limit;
}

static void push(struct fake_world *world, struct fake_event event)
{
    LEAT_ASSERT_CMP(world->event_count, <, FAKE_EVENTS_MAX);
    world->events[(world->event_first + world->event_count++) % FAKE_EVENTS_MAX] = event;
}

/* ---- clock, random, mail ---- */
static uint64_t now_us(void *ctx)
{
    return ((struct fake_world *)ctx)->now_us;
}

static int64_t wall_ms(void *ctx)
{
    return (int64_t)(((struct fake_world *)ctx)->now_us / 1000);
}

static void wake_at(void *ctx, uint64_t at_us)
{
    ((struct fake_world *)ctx)->wake_at_us = at_us;
}

static uint64_t random_next(void *ctx)
{
    return fake_random(ctx);
}

static void mail_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    push(ctx, (struct fake_event){.to = to, .mail = mail});
}

/* ---- disk ---- */
struct leat_file *fake_file(struct fake_world *world, const char *name)
{
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        if (world->files[i].used && strcmp(world->files[i].name, name) == 0)
            return &world->files[i];
    return NULL;
}

static void file_room(struct leat_file *file, uint64_t bytes)
{
    if (bytes <= file->room) return;
    uint64_t room = (bytes + 0xfffff) & ~UINT64_C(0xfffff);
    uint64_t sectors = room / FAKE_SECTOR_BYTES;
    file->now = pages_grow(file->now, file->room, room);
    file->durable = pages_grow(file->durable, file->room, room);
    file->touched = pages_grow(file->touched, file->room / FAKE_SECTOR_BYTES, sectors);
    file->room = room;
}

static leat_err op_next(struct fake_world *world)
{
    world->op_count++;
    return world->op_count == world->fail_at ? LEAT_E_DISK : LEAT_OK;
}

static void file_write(struct leat_file *file, uint64_t offset, const uint8_t *from, size_t bytes)
{
    file_room(file, offset + bytes);
    memcpy(file->now + offset, from, bytes);
    for (uint64_t at = offset / FAKE_SECTOR_BYTES; at * FAKE_SECTOR_BYTES < offset + bytes; at++)
        file->touched[at] = 1;
    if (offset + bytes > file->bytes) file->bytes = offset + bytes;
}

static void file_zero(struct leat_file *file, uint64_t offset, size_t bytes)
{
    static const uint8_t zeros[4096];
    for (size_t at = 0; at < bytes; at += sizeof zeros)
        file_write(file, offset + at, zeros, sizeof zeros);
}

static void file_sync(struct leat_file *file)
{
    for (uint64_t i = 0; i < file->room / FAKE_SECTOR_BYTES; i++) {
        if (!file->touched[i]) continue;
        memcpy(file->durable + i * FAKE_SECTOR_BYTES, file->now + i * FAKE_SECTOR_BYTES,
               FAKE_SECTOR_BYTES);
        file->touched[i] = 0;
    }
    file->durable_bytes = file->bytes;
}

static leat_err io_run(struct fake_world *world, struct leat_disk_io *io)
{
    struct leat_file *file = io->file;
    leat_err rc = op_next(world);
    if (io->kind == LEAT_DISK_ZERO && world->fail_zero) {
        world->fail_zero = false;
        world->zeros_failed++;
        rc = LEAT_E_DISK;
    }
    io->done_bytes = 0;
    if (file->sync_failed) rc = LEAT_E_DISK;
    if (io->kind != LEAT_DISK_SYNC && file->direct)
        LEAT_ASSERT(io->offset % 4096 == 0 && io->bytes % 4096 == 0 &&
                    (uintptr_t)io->buffer % 4096 == 0);
    if (io->kind == LEAT_DISK_READ && !rc) {
        uint64_t there = io->offset < file->bytes ? file->bytes - io->offset : 0;
        io->done_bytes = there < io->bytes ? there : io->bytes;
        memcpy(io->buffer, file->now + io->offset, io->done_bytes);
    } else if (io->kind == LEAT_DISK_WRITE) {
        /* A failed write may have got through in part. */
        size_t bytes = io->bytes;
        if (rc) bytes = fake_below(world, bytes / FAKE_SECTOR_BYTES + 1) * FAKE_SECTOR_BYTES;
        if (!file->sync_failed && bytes) file_write(file, io->offset, io->buffer, bytes);
        if (!rc) io->done_bytes = bytes;
    } else if (io->kind == LEAT_DISK_ZERO) {
        LEAT_ASSERT_CMP(io->offset + io->bytes, <=, file->bytes);
        size_t bytes = rc ? io->bytes / 2 / 4096 * 4096 : io->bytes;
        if (!file->sync_failed) file_zero(file, io->offset, bytes);
    } else if (io->kind == LEAT_DISK_SYNC) {
        if (rc)
            file->sync_failed = true;
        else
            file_sync(file);
    }
    io->rc = rc;
    return rc;
}

/* Two writes of one place at a time have no order. */
static void beside_check(const struct fake_world *world, const struct leat_disk_io *io)
{
    for (int i = 0; i < world->beside_count; i++)
        for (const struct leat_disk_io *it = world->besides[i]; it; it = it->then)
            if (io->kind == LEAT_DISK_WRITE && it->kind == LEAT_DISK_WRITE && it->file == io->file)
                LEAT_ASSERT(io->offset >= it->offset + it->bytes ||
                            io->offset + io->bytes <= it->offset);
}

static void submit_check(const struct fake_world *world, const struct leat_disk_io *io)
{
    beside_check(world, io);
    for (const struct leat_disk_io *other = world->disk_first; other; other = other->next)
        if (other->kind == LEAT_DISK_ZERO && other->file == io->file && io->kind != LEAT_DISK_SYNC)
            LEAT_ASSERT(io->offset >= other->offset + other->bytes ||
                        io->offset + io->bytes <= other->offset);
}

static void disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct fake_world *world = ctx;
    submit_check(world, io);
    if (io->beside) {
        for (const struct leat_disk_io *then = io->then; then; then = then->then) {
            LEAT_ASSERT(then->beside);
            submit_check(world, then);
        }
        LEAT_ASSERT_CMP(world->beside_count, <, FAKE_BESIDES_MAX);
        world->besides[world->beside_count++] = io;
        return;
    }
    io->next = NULL;
    *world->disk_last = io;
    world->disk_last = &io->next;
}

/* Any chain may be the next to get on. */
static struct leat_disk_io *beside_pop(struct fake_world *world)
{
    if (world->beside_count == 0) return NULL;
    int at = (int)fake_below(world, (uint64_t)world->beside_count);
    struct leat_disk_io *io = world->besides[at];
    world->besides[at] = io->then;
    if (!io->then) world->besides[at] = world->besides[--world->beside_count];
    return io;
}

static struct leat_disk_io *disk_pop(struct fake_world *world)
{
    struct leat_disk_io *io = world->disk_first;
    if (!io) return NULL;
    world->disk_first = io->next;
    if (!world->disk_first) world->disk_last = &world->disk_first;
    return io;
}

static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    struct leat_disk_io *before;
    while ((before = disk_pop(ctx)) != NULL) {
        (void)io_run(ctx, before);
        push(ctx, (struct fake_event){.to = LEAT_ACTOR_STORE, .io = before});
    }
    return io_run(ctx, io);
}

static leat_err disk_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    struct fake_world *world = ctx;
    struct leat_file *file = fake_file(world, path);
    if (!file && !(flags & LEAT_OPEN_CREATE))
        return leat_error_set(error, LEAT_E_NOT_FOUND, "no file %s", path);
    if (op_next(world)) return leat_error_set(error, LEAT_E_DISK, "cannot open %s", path);
    if (world->no_opens)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "%s: too many open files", path);
    for (int i = 0; !file && i < FAKE_FILES_MAX; i++)
        if (!world->files[i].used) file = &world->files[i];
    LEAT_ASSERT(file);
    if (!file->used) {
        *file = (struct leat_file){.world = world, .used = true};
        snprintf(file->name, sizeof file->name, "%s", path);
    }
    file->direct = flags & LEAT_OPEN_DIRECT;
    *out_file = file;
    return LEAT_OK;
}

static void disk_close(void *ctx, struct leat_file *file)
{
    (void)ctx;
    (void)file;
}

static leat_err disk_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    (void)ctx;
    *out_bytes = file->bytes;
    return LEAT_OK;
}

static leat_err disk_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct fake_world *world = ctx;
    if (op_next(world)) return LEAT_E_DISK;
    uint64_t total = 0;
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        if (world->files[i].used && &world->files[i] != file) total += world->files[i].bytes;
    if (world->space_bytes && total + bytes > world->space_bytes) return LEAT_E_DISK_FULL;
    file_room(file, bytes);
    if (bytes > file->bytes) file->bytes = bytes;
    return LEAT_OK;
}

static leat_err disk_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    if (op_next(ctx)) return LEAT_E_DISK;
    file->bytes = bytes;
    return LEAT_OK;
}

static void file_gone(struct leat_file *file)
{
    pages_put(file->now, file->room);
    pages_put(file->durable, file->room);
    pages_put(file->touched, file->room / FAKE_SECTOR_BYTES);
    *file = (struct leat_file){0};
}

static leat_err disk_remove(void *ctx, const char *path)
{
    struct leat_file *file = fake_file(ctx, path);
    if (file) file_gone(file);
    return file ? LEAT_OK : LEAT_E_NOT_FOUND;
}

static leat_err disk_rename(void *ctx, const char *from, const char *to)
{
    if (op_next(ctx)) return LEAT_E_DISK;
    struct leat_file *file = fake_file(ctx, from);
    if (!file) return LEAT_E_NOT_FOUND;
    (void)disk_remove(ctx, to);
    snprintf(file->name, sizeof file->name, "%s", to);
    file->name_durable = false;
    return LEAT_OK;
}

static leat_err disk_make_dir(void *ctx, const char *path)
{
    (void)path;
    return op_next(ctx);
}

static leat_err disk_sync_dir(void *ctx, const char *path)
{
    struct fake_world *world = ctx;
    (void)path;
    if (op_next(world)) return LEAT_E_DISK;
    if (world->no_dirs) return LEAT_E_NO_MEMORY;
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        world->files[i].name_durable = world->files[i].used;
    return LEAT_OK;
}

static leat_err disk_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                          void *arg)
{
    struct fake_world *world = ctx;
    size_t prefix = strlen(path);
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        if (world->files[i].used && strncmp(world->files[i].name, path, prefix) == 0 &&
            world->files[i].name[prefix] == '/')
            each(arg, world->files[i].name + prefix + 1);
    return LEAT_OK;
}

static leat_err disk_space(void *ctx, uint64_t *out_free_bytes)
{
    (void)ctx;
    *out_free_bytes = UINT64_MAX;
    return LEAT_OK;
}

/* ---- arena ---- */
static void arena_grow(void *ctx, struct leat_arena_grow *grow)
{
    push(ctx, (struct fake_event){.to = LEAT_ACTOR_STORE, .grow = grow});
}

/* Its bytes are gone at once, whether or not the store lives to hear of it. */
static void arena_shrink(void *ctx, struct leat_arena_grow *grow)
{
    struct fake_world *world = ctx;
    LEAT_ASSERT_CMP(world->arena.grown_bytes, >=, 2 * LEAT_ARENA_STEP_BYTES);
    world->shrinks++;
    world->arena.grown_bytes -= LEAT_ARENA_STEP_BYTES;
    memset(world->arena.base + world->arena.grown_bytes, 0, LEAT_ARENA_STEP_BYTES);
    push(ctx, (struct fake_event){.to = LEAT_ACTOR_STORE, .grow = grow, .shrink = true});
}

static void arena_free(struct fake_world *world)
{
    if (world->arena.base)
        pages_put(world->arena.base - GUARD_BYTES, world->arena.limit_bytes + 2 * GUARD_BYTES);
    world->arena.base = NULL;
}

/* Accesses outside the arena fault, on either side. */
static void arena_new(struct fake_world *world)
{
    size_t bytes = world->arena.limit_bytes;
    arena_free(world);
    uint8_t *pages = pages_get(bytes + 2 * GUARD_BYTES);
    LEAT_ASSERT(mprotect(pages, GUARD_BYTES, PROT_NONE) == 0 &&
                mprotect(pages + GUARD_BYTES + bytes, GUARD_BYTES, PROT_NONE) == 0);
    world->arena.base = pages + GUARD_BYTES;
    world->arena.grown_bytes = world->arena.inherited_bytes = 0;
    for (size_t i = 0; i < sizeof world->arena.pool_id; i++)
        world->arena.pool_id[i] = (uint8_t)fake_random(world);
}

/* ---- the world ---- */
void fake_world_init(struct fake_world *world, uint64_t seed, uint64_t memory_bytes)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    world->now_us = 1000000;
    world->wake_at_us = UINT64_MAX;
    world->disk_last = &world->disk_first;
    world->clock =
        (struct leat_clock){.ctx = world, .now_us = now_us, .wall_ms = wall_ms, .wake_at = wake_at};
    world->random = (struct leat_random){.ctx = world, .next = random_next};
    world->core_post = (struct leat_post){.ctx = world, .send = mail_send, .self = 0};
    world->store_post =
        (struct leat_post){.ctx = world, .send = mail_send, .self = LEAT_ACTOR_STORE};
    world->disk = (struct leat_disk){.ctx = world,
                                     .submit = disk_submit,
                                     .run = disk_run,
                                     .open = disk_open,
                                     .close = disk_close,
                                     .size = disk_size,
                                     .allocate = disk_allocate,
                                     .truncate = disk_truncate,
                                     .remove = disk_remove,
                                     .rename = disk_rename,
                                     .make_dir = disk_make_dir,
                                     .sync_dir = disk_sync_dir,
                                     .list = disk_list,
                                     .space = disk_space};
    world->arena = (struct leat_arena){
        .ctx = world, .limit_bytes = memory_bytes, .grow = arena_grow, .shrink = arena_shrink};
    arena_new(world);
    world->env = (struct leat_env){.clock = &world->clock,
                                   .random = &world->random,
                                   .post = &world->store_post,
                                   .disk = &world->disk,
                                   .arena = &world->arena};
}

void fake_world_fini(struct fake_world *world)
{
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        if (world->files[i].used) file_gone(&world->files[i]);
    arena_free(world);
}

static void turn_end(struct fake_world *world)
{
    if (!world->turn || !world->store || world->turn_stays) return;
    world->turn = false;
    leat_store_actor.on_turn_end(world->store);
    if (!world->poked) leat_store_actor.check(world->store);
}

static void deliver(struct fake_world *world, const struct fake_event *event)
{
    world->turn = world->turn || event->to == LEAT_ACTOR_STORE;
    if (event->grow) {
        if (!event->shrink) world->arena.grown_bytes += LEAT_ARENA_STEP_BYTES;
        event->grow->rc = LEAT_OK;
        event->grow->on_grown(event->grow);
    } else if (event->io) {
        event->io->on_done(event->io);
    } else {
        event->mail->deliver(event->to == LEAT_ACTOR_STORE ? (void *)world->store : world->core,
                             event->mail);
    }
    turn_end(world);
}

bool fake_is_busy(const struct fake_world *world)
{
    return world->event_count || world->disk_first || world->beside_count;
}

bool fake_event_step(struct fake_world *world)
{
    if (!world->event_count) return false;
    struct fake_event event = world->events[world->event_first];
    world->event_first = (world->event_first + 1) % FAKE_EVENTS_MAX;
    world->event_count--;
    deliver(world, &event);
    return true;
}

bool fake_step(struct fake_world *world)
{
    bool disk =
        (world->disk_first || world->beside_count) && (!world->event_count || fake_below(world, 2));
    if (disk) {
        bool beside = world->beside_count && (!world->disk_first || fake_below(world, 2));
        struct leat_disk_io *io = beside ? beside_pop(world) : disk_pop(world);
        (void)io_run(world, io);
        push(world, (struct fake_event){.to = LEAT_ACTOR_STORE, .io = io});
        return true;
    }
    return fake_event_step(world);
}

void fake_settle(struct fake_world *world)
{
    while (fake_step(world)) {
    }
}

void fake_pass(struct fake_world *world, uint64_t us)
{
    uint64_t until = world->now_us + us;
    fake_settle(world);
    for (int i = 0; i < 100000 && world->wake_at_us <= until; i++) {
        if (world->wake_at_us > world->now_us) world->now_us = world->wake_at_us;
        world->wake_at_us = UINT64_MAX;
        leat_store_actor.on_wake(world->store);
        world->turn = true;
        turn_end(world);
        fake_settle(world);
    }
    world->now_us = until;
}

/* Does the operation still happen? false: the operation does not happen, or in part, and no later operation happens. */
static bool last_run(struct fake_world *world, struct leat_disk_io *io)
{
    if (fake_below(world, 3) == 0) return false;
    if (io->kind == LEAT_DISK_WRITE && fake_below(world, 4) == 0) {
        size_t bytes = fake_below(world, io->bytes / FAKE_SECTOR_BYTES + 1) * FAKE_SECTOR_BYTES;
        if (bytes) file_write(io->file, io->offset, io->buffer, bytes);
        return false;
    }
    (void)io_run(world, io);
    return true;
}

void fake_kill(struct fake_world *world)
{
    struct leat_disk_io *io;
    bool running = true;
    for (int i = 0; i < world->beside_count; i++)
        for (io = world->besides[i]; io && last_run(world, io); io = io->then) {
        }
    world->beside_count = 0;
    while ((io = disk_pop(world)) != NULL)
        running = running && last_run(world, io);
    world->event_first = world->event_count = 0;
    world->wake_at_us = UINT64_MAX;
    world->arena.inherited_bytes = world->arena.grown_bytes;
    world->store = NULL;
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        world->files[i].sync_failed = false;
}

void fake_power_cut(struct fake_world *world)
{
    fake_kill(world);
    for (int i = 0; i < FAKE_FILES_MAX; i++) {
        struct leat_file *file = &world->files[i];
        if (!file->used) continue;
        if (!file->name_durable && fake_below(world, 2)) {
            file_gone(file);
            continue;
        }
        uint64_t keep_per_16 = fake_below(world, 17);
        for (uint64_t at = 0; at < file->room / FAKE_SECTOR_BYTES; at++) {
            if (!file->touched[at]) continue;
            file->touched[at] = 0;
            uint8_t *now = file->now + at * FAKE_SECTOR_BYTES;
            uint8_t *durable = file->durable + at * FAKE_SECTOR_BYTES;
            if (fake_below(world, 16) < keep_per_16)
                memcpy(durable, now, FAKE_SECTOR_BYTES);
            else
                memcpy(now, durable, FAKE_SECTOR_BYTES);
        }
        if (fake_below(world, 2)) file->bytes = file->durable_bytes;
        file->durable_bytes = file->bytes;
    }
    arena_new(world);
}
