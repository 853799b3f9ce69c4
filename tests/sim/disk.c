/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk: files in memory that forget what was not flushed.
 *
 * Each file has two images: `now`, what a reader sees (page cache and disk together), and
 * `durable`, what has been flushed. Between them lies a list of pending writes. A power cut keeps
 * a random part of them: none, all, a prefix whose last write is torn, or a coin per write or per
 * sector, so that writes are also reordered. A 512 B sector is old or new, never mixed. kill -9
 * keeps everything written, but the operation in flight may have been done in part.
 *
 * Names work likewise: creations, renames and removals are pending per directory until sync_dir();
 * a power cut keeps a prefix of them.
 */
#include "tests/sim/disk_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { DIRECT_ALIGN = 4096 };

struct sim_disk *sim_disk_create(struct sim_world *world)
{
    struct sim_disk *disk = calloc(1, sizeof *disk);
    LEAT_ASSERT(disk != NULL);
    disk->world = world;
    sim_rng_init(&disk->rng, world->seed, "disk itself");
    return disk;
}

void sim_disk_destroy(struct sim_disk **disk_at)
{
    struct sim_disk *disk = *disk_at;
    if (!disk) return;
    for (struct sim_inode *inode = disk->inodes, *next; inode; inode = next) {
        next = inode->next;
        sim_inode_destroy(inode);
    }
    for (struct sim_name_op *op = disk->first, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    free(disk->now.at);
    free(disk->durable.at);
    free(disk);
    *disk_at = NULL;
}

static bool aimed(struct sim_disk *disk, uint64_t op, enum sim_cut_phase phase)
{
    if (disk->sweep && disk->sweep(disk->sweep_arg, op, phase)) {
        disk->sweep = NULL;
        return true;
    }
    return disk->aim_at == op && disk->aim_phase == phase;
}

/* The aimed power cut. Returns when the process is not inside a call of its own. */
static void cut(struct sim_disk *disk, struct sim_process *process)
{
    disk->aim_at = 0;
    if (disk->on_cut) disk->on_cut(disk->on_cut_arg);
    sim_process_die(process, SIM_DEATH_POWER);
}

static leat_err write_check(struct leat_file *file, const struct leat_disk_io *io)
{
    struct sim_disk *disk = file->inode->disk;
    LEAT_ASSERT(!file->read_only);
    if (file->inode->failed) return LEAT_E_DISK;
    if (sim_disk_refuses(disk, io)) {
        disk->took_error = true;
        sim_fault_struck(disk->world, SIM_FAULT_IO_ERROR);
        return LEAT_E_DISK;
    }
    if (disk->full && io->offset + io->bytes > file->inode->allocated) {
        sim_fault_struck(disk->world, SIM_FAULT_FULL);
        return LEAT_E_DISK_FULL;
    }
    return LEAT_OK;
}

/* Zeros over what reads as zeros leave nothing that a crash could tear. A file that was cut may end before. */
static void inode_zero(struct sim_inode *inode, uint64_t offset, size_t bytes)
{
    static const uint8_t zeros[SIM_SECTOR];
    uint8_t now[SIM_SECTOR];
    for (size_t at = 0; at < bytes; at += SIM_SECTOR) {
        if (offset + at + SIM_SECTOR > inode->size) {
            sim_inode_write(inode, offset + at, zeros, SIM_SECTOR);
            continue;
        }
        sim_image_read(inode->now, inode->chunks, offset + at, now, SIM_SECTOR);
        if (memcmp(now, zeros, SIM_SECTOR) != 0)
            sim_inode_write(inode, offset + at, zeros, SIM_SECTOR);
    }
}

static leat_err io_apply(struct sim_disk *disk, struct leat_disk_io *io, const uint8_t *data)
{
    struct sim_inode *inode = io->file->inode;
    leat_err rc = LEAT_OK;
    io->done_bytes = 0;
    switch (io->kind) {
    case LEAT_DISK_READ:
        if (io->offset < inode->size) {
            uint64_t left = inode->size - io->offset;
            io->done_bytes = left < io->bytes ? (size_t)left : io->bytes;
            sim_image_read(inode->now, inode->chunks, io->offset, io->buffer, io->done_bytes);
        }
        break;
    case LEAT_DISK_WRITE:
        rc = write_check(io->file, io);
        if (rc == LEAT_OK) {
            sim_inode_write(inode, io->offset, data, io->bytes);
            io->done_bytes = io->bytes;
        } else if (rc == LEAT_E_DISK) {
            sim_disk_write_part(disk, inode, io->offset, data, io->bytes);
        }
        break;
    case LEAT_DISK_SYNC:
        if ((disk->fail_sync || (disk->fail_grown && inode->grown)) && !inode->failed) {
            disk->fail_sync = disk->fail_grown = false;
            disk->took_error = true;
            sim_fault_struck(disk->world, SIM_FAULT_IO_ERROR);
            inode->failed = true; /* its pages may be lost: see sim_disk_process_died() */
        }
        if (inode->failed)
            rc = LEAT_E_DISK;
        else
            sim_inode_sync(inode);
        break;
    case LEAT_DISK_ZERO:
        rc = write_check(io->file, io);
        if (!rc) io->done_bytes = io->bytes;
        if (!rc || rc == LEAT_E_DISK) inode_zero(inode, io->offset, rc ? io->bytes / 2 : io->bytes);
        break;
    }
    return io->rc = rc;
}

static void io_check(const struct leat_disk_io *io)
{
    LEAT_ASSERT(io->file != NULL);
    if (io->kind == LEAT_DISK_SYNC || !io->file->direct) return;
    LEAT_ASSERT_CMP(io->offset % DIRECT_ALIGN, ==, 0u);
    LEAT_ASSERT_CMP(io->bytes % DIRECT_ALIGN, ==, 0u);
    LEAT_ASSERT_CMP((uintptr_t)io->buffer % DIRECT_ALIGN, ==, 0u);
}

static uint64_t stalled_until_us(const struct sim_disk *disk, enum leat_disk_kind kind)
{
    uint64_t until_us =
        kind == LEAT_DISK_READ ? disk->stall_reads_until_us : disk->stall_writes_until_us;
    return until_us > disk->stall_until_us ? until_us : disk->stall_until_us;
}

static uint64_t latency_us(struct sim_disk *disk, const struct leat_disk_io *io)
{
    uint64_t us = io->kind == LEAT_DISK_SYNC ? sim_rng_between(&disk->rng, 60, 400)
                                             : sim_rng_between(&disk->rng, 10, 100);
    us += io->bytes / 4096;
    if (sim_rng_chance(&disk->rng, 10)) us += sim_rng_below(&disk->rng, 20000);
    uint64_t now_us = disk->world->now_us;
    uint64_t until_us = stalled_until_us(disk, io->kind);
    if (until_us > now_us + us) us = until_us - now_us;
    return us;
}

static void done(struct sim_world *world, struct sim_event *event)
{
    struct leat_disk_io *io = event->a;
    io->on_done(io);
    (void)world;
}

static void queue_start(struct sim_actor *actor);

static void inside(struct sim_disk *disk, struct leat_disk_io *io, const uint8_t *data)
{
    struct sim_inode *inode = io->file->inode;
    if (io->kind == LEAT_DISK_WRITE && !disk->full)
        sim_disk_write_part(disk, inode, io->offset, data, io->bytes);
}

/* The event that was under way for an operation which queue_drain() has done. */
static bool queue_was_drained(struct sim_actor *actor)
{
    if (!actor->disk_drained) return false;
    actor->disk_drained = actor->disk_busy = false;
    queue_start(actor);
    return true;
}

static void stage_fill(uint8_t **stage, const struct leat_disk_io *io)
{
    if (io->kind != LEAT_DISK_WRITE || !io->bytes) return;
    *stage = realloc(*stage, io->bytes);
    LEAT_ASSERT(*stage != NULL);
    memcpy(*stage, io->buffer, io->bytes);
}

/* The stage holds the buffer as it was at the operation's start; the device may have fetched any
 * sector then or now. */
static void stage_fetch(struct sim_disk *disk, const struct leat_disk_io *io, uint8_t *stage)
{
    if (io->kind != LEAT_DISK_WRITE) return;
    for (size_t at = 0; at < io->bytes; at += SIM_SECTOR) {
        size_t take = io->bytes - at < SIM_SECTOR ? io->bytes - at : SIM_SECTOR;
        if (sim_rng_chance(&disk->rng, 500))
            memcpy(stage + at, (const uint8_t *)io->buffer + at, take);
    }
}

/* The operation at the head of an actor's queue has run its time. */
static void queue_finish(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->a;
    struct sim_process *process = actor->process;
    if (!process->alive) return;
    struct sim_disk *disk = process->disk;
    if (queue_was_drained(actor)) return;
    struct leat_disk_io *io = actor->disk_first;
    uint64_t op = event->n;
    uint64_t stalled_us = stalled_until_us(disk, io->kind);
    if (stalled_us > world->now_us) {
        sim_world_at(world, stalled_us, queue_finish, actor)->n = op;
        return;
    }
    stage_fetch(disk, io, actor->disk_stage);
    if (aimed(disk, op, SIM_CUT_INSIDE)) {
        inside(disk, io, actor->disk_stage);
        actor->disk_started = false;
        cut(disk, process);
        return;
    }
    (void)io_apply(disk, io, actor->disk_stage);
    actor->disk_started = false;
    if (aimed(disk, op, SIM_CUT_AFTER)) {
        cut(disk, process);
        return;
    }
    actor->disk_first = io->next;
    if (!actor->disk_first) actor->disk_last = NULL;
    actor->disk_busy = false;
    sim_actor_post(actor, 1, done, io);
    queue_start(actor);
}

static void queue_begin(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->a;
    if (!actor->process->alive) return;
    struct sim_disk *disk = actor->process->disk;
    if (queue_was_drained(actor)) return;
    struct leat_disk_io *io = actor->disk_first;
    uint64_t op = actor->disk_op = ++disk->ops;
    if (aimed(disk, op, SIM_CUT_BEFORE)) {
        cut(disk, actor->process);
        return;
    }
    stage_fill(&actor->disk_stage, io);
    actor->disk_started = true;
    sim_world_at(world, world->now_us + latency_us(disk, io), queue_finish, actor)->n = op;
}

static void queue_start(struct sim_actor *actor)
{
    if (actor->disk_busy || !actor->disk_first) return;
    actor->disk_busy = true;
    sim_world_at(actor->world, actor->world->now_us, queue_begin, actor);
}

/* Reads and zeros, which wait for nothing. */
static void read_finish(struct sim_world *world, struct sim_event *event)
{
    struct leat_disk_io *io = event->a;
    struct sim_actor *actor = event->b;
    if (!actor->process->alive) return;
    if (io->kind != LEAT_DISK_ZERO) (void)io_apply(actor->process->disk, io, NULL);
    sim_actor_post(actor, 1, done, io);
    (void)world;
}

/* Beside all other operations, so it takes effect at once; what a power cut then leaves of it is a
 * matter of sectors, as with any write that was not flushed. */
static void zero_start(struct sim_actor *actor, struct leat_disk_io *io, uint64_t op)
{
    struct sim_disk *disk = actor->process->disk;
    if (aimed(disk, op, SIM_CUT_BEFORE)) cut(disk, actor->process);
    (void)io_apply(disk, io, NULL);
    if (aimed(disk, op, SIM_CUT_INSIDE) || aimed(disk, op, SIM_CUT_AFTER))
        cut(disk, actor->process);
}

/* ---- beside the queue: every chain has a time of its own ---- */

static void beside_begin(struct sim_world *world, struct sim_event *event);

/* Whoever has a write refused in the middle of it may write again; nobody restarts anything for that. */
static void beside_apply(struct sim_disk *disk, struct sim_beside *beside, bool fails)
{
    bool took_error = disk->took_error;
    if (fails) sim_disk_fail_next(disk, beside->io->kind);
    (void)io_apply(disk, beside->io, beside->stage);
    if (fails && beside->io->kind == LEAT_DISK_WRITE) disk->took_error = took_error;
}

static void beside_finish(struct sim_world *world, struct sim_event *event)
{
    struct sim_beside *beside = event->a;
    struct sim_process *process = beside->actor->process;
    if (!process->alive) return;
    struct sim_disk *disk = process->disk;
    struct leat_disk_io *io = beside->io;
    uint64_t stalled_us = stalled_until_us(disk, io->kind);
    if (stalled_us > world->now_us) {
        sim_world_at(world, stalled_us, beside_finish, beside);
        return;
    }
    stage_fetch(disk, io, beside->stage);
    beside->started = false;
    if (aimed(disk, beside->op, SIM_CUT_INSIDE)) {
        inside(disk, io, beside->stage);
        cut(disk, process);
        return;
    }
    enum sim_amid amid = disk->amid ? disk->amid(disk->amid_arg, io) : SIM_AMID_NOTHING;
    if (amid == SIM_AMID_KILL || amid == SIM_AMID_POWER) {
        inside(disk, io, beside->stage);
        sim_process_die(process, amid == SIM_AMID_POWER ? SIM_DEATH_POWER : SIM_DEATH_KILL);
        return;
    }
    beside_apply(disk, beside, amid == SIM_AMID_ERROR);
    if (aimed(disk, beside->op, SIM_CUT_AFTER)) {
        cut(disk, process);
        return;
    }
    beside->io = io->then;
    if (beside->io) {
        sim_world_at(world, world->now_us, beside_begin, beside);
        return;
    }
    while ((io = beside->first)) {
        beside->first = io->then;
        sim_actor_post(beside->actor, 1, done, io);
    }
}

static void beside_begin(struct sim_world *world, struct sim_event *event)
{
    struct sim_beside *beside = event->a;
    struct sim_process *process = beside->actor->process;
    if (!process->alive) return;
    struct sim_disk *disk = process->disk;
    beside->op = ++disk->ops;
    if (aimed(disk, beside->op, SIM_CUT_BEFORE)) {
        cut(disk, process);
        return;
    }
    stage_fill(&beside->stage, beside->io);
    beside->started = true;
    sim_world_at(world, world->now_us + latency_us(disk, beside->io), beside_finish, beside);
}

/* Two writes of one place at a time have no order. */
static void beside_check(const struct sim_actor *actor, const struct leat_disk_io *io)
{
    for (const struct sim_beside *other = actor->besides; other; other = other->next)
        for (const struct leat_disk_io *it = other->io; it; it = it->then)
            if (io->kind == LEAT_DISK_WRITE && it->kind == LEAT_DISK_WRITE && it->file == io->file)
                LEAT_ASSERT(io->offset >= it->offset + it->bytes ||
                            io->offset + io->bytes <= it->offset);
}

static void beside_start(struct sim_actor *actor, struct leat_disk_io *io)
{
    for (const struct leat_disk_io *it = io; it; it = it->then)
        beside_check(actor, it);
    struct sim_beside *beside = actor->besides;
    while (beside && beside->io)
        beside = beside->next;
    if (!beside) {
        beside = calloc(1, sizeof *beside);
        LEAT_ASSERT(beside != NULL);
        beside->actor = actor;
        beside->next = actor->besides;
        actor->besides = beside;
    }
    beside->io = beside->first = io;
    for (; io; io = io->then) {
        io_check(io);
        LEAT_ASSERT(io->beside && io->on_done != NULL);
        LEAT_ASSERT(io->kind == LEAT_DISK_WRITE || io->kind == LEAT_DISK_SYNC);
    }
    sim_world_at(actor->world, actor->world->now_us, beside_begin, beside);
}

void sim_disk_actor_fini(struct sim_actor *actor)
{
    struct sim_beside *beside = actor->besides;
    while (beside) {
        struct sim_beside *next = beside->next;
        free(beside->stage);
        free(beside);
        beside = next;
    }
    free(actor->disk_stage);
}

static void disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    sim_port_called(actor);
    io_check(io);
    LEAT_ASSERT(io->on_done != NULL);
    if (io->kind == LEAT_DISK_READ || io->kind == LEAT_DISK_ZERO) { /* may overtake */
        uint64_t op = ++disk->ops;
        if (io->kind == LEAT_DISK_ZERO) zero_start(actor, io, op);
        sim_world_at(actor->world, actor->world->now_us + latency_us(disk, io), read_finish, io)
            ->b = actor;
        return;
    }
    if (io->beside) {
        beside_start(actor, io);
        return;
    }
    LEAT_ASSERT(io->then == NULL);
    io->next = NULL;
    if (actor->disk_last)
        actor->disk_last->next = io;
    else
        actor->disk_first = io;
    actor->disk_last = io;
    queue_start(actor);
}

/* ---- blocking calls ---- */

static uint64_t call_begin(struct sim_actor *actor)
{
    struct sim_disk *disk = actor->process->disk;
    sim_port_called(actor);
    uint64_t op = ++disk->ops;
    if (aimed(disk, op, SIM_CUT_BEFORE)) cut(disk, actor->process);
    /* Inside a call that changes names or sizes: it took effect or not, by the crash's own coin. */
    return op;
}

static void call_end(struct sim_actor *actor, uint64_t op)
{
    struct sim_disk *disk = actor->process->disk;
    if (aimed(disk, op, SIM_CUT_INSIDE) || aimed(disk, op, SIM_CUT_AFTER))
        cut(disk, actor->process);
}

/* A blocking operation runs after everything submitted before: that happens now. */
static void queue_drain(struct sim_actor *actor)
{
    struct sim_disk *disk = actor->process->disk;
    if (actor->disk_first) sim_port_called(actor);
    while (actor->disk_first) {
        struct leat_disk_io *io = actor->disk_first;
        bool started = actor->disk_started;
        const uint8_t *data = started && io->kind == LEAT_DISK_WRITE ? actor->disk_stage : NULL;
        if (!data) data = io->buffer;
        uint64_t op = started ? actor->disk_op : ++disk->ops;
        if (!started && aimed(disk, op, SIM_CUT_BEFORE)) cut(disk, actor->process);
        if (aimed(disk, op, SIM_CUT_INSIDE)) {
            inside(disk, io, data);
            cut(disk, actor->process);
        }
        (void)io_apply(disk, io, data);
        if (aimed(disk, op, SIM_CUT_AFTER)) cut(disk, actor->process);
        actor->disk_started = false;
        actor->disk_first = io->next;
        if (!actor->disk_first) actor->disk_last = NULL;
        sim_actor_post(actor, 1, done, io);
    }
    actor->disk_drained = actor->disk_busy;
}

static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    io_check(io);
    queue_drain(actor);
    uint64_t op = call_begin(actor);
    if (aimed(disk, op, SIM_CUT_INSIDE)) {
        inside(disk, io, io->buffer);
        cut(disk, actor->process);
    }
    if (disk->kill_path && sim_disk_is_killed(disk, io))
        sim_process_die(actor->process, SIM_DEATH_KILL);
    leat_err rc = io_apply(disk, io, io->buffer);
    if (aimed(disk, op, SIM_CUT_AFTER)) cut(disk, actor->process);
    return rc;
}

static bool lacks_files(struct sim_disk *disk)
{
    if (disk->no_files) sim_fault_struck(disk->world, SIM_FAULT_NO_FILES);
    return disk->no_files;
}

static leat_err disk_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[SIM_PATH_BYTES];
    sim_path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (lacks_files(disk))
        return leat_error_set(error, LEAT_E_NO_MEMORY, "%s: too many open files", path);
    struct sim_name *name = sim_name_find(&disk->now, clean);
    if (name && (flags & LEAT_OPEN_EXCLUSIVE) && (flags & LEAT_OPEN_CREATE))
        return leat_error_set(error, LEAT_E_EXISTS, "%s exists", path);
    if (name && !name->inode) return leat_error_set(error, LEAT_E_DISK, "%s is a directory", path);
    if (!name && !(flags & LEAT_OPEN_CREATE))
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%s does not exist", path);
    struct sim_inode *inode = name ? name->inode : NULL;
    if (!inode) {
        if (disk->full) {
            sim_fault_struck(disk->world, SIM_FAULT_FULL);
            return leat_error_set(error, LEAT_E_DISK_FULL, "%s: no space left", path);
        }
        const char *slash = strrchr(clean, '/');
        char dir[SIM_PATH_BYTES];
        snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - clean) : 0, clean);
        if (dir[0] && !sim_name_find(&disk->now, dir))
            return leat_error_set(error, LEAT_E_NOT_FOUND, "%s: no such directory", dir);
        inode = sim_inode_create(disk);
        sim_name_change(disk, "", clean, inode);
    }
    struct leat_file *file = calloc(1, sizeof *file);
    LEAT_ASSERT(file != NULL);
    file->inode = inode;
    file->direct = (flags & LEAT_OPEN_DIRECT) != 0;
    file->read_only = (flags & LEAT_OPEN_READ) != 0;
    *out_file = file;
    call_end(actor, op);
    return LEAT_OK;
}

static void disk_close(void *ctx, struct leat_file *file)
{
    sim_port_called(ctx);
    free(file);
}

static leat_err disk_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    sim_port_called(ctx);
    *out_bytes = file->inode->size;
    return LEAT_OK;
}

static leat_err disk_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    uint64_t op = call_begin(actor);
    if (disk->full && bytes > file->inode->allocated) {
        sim_fault_struck(disk->world, SIM_FAULT_FULL);
        return LEAT_E_DISK_FULL;
    }
    if (bytes > file->inode->allocated) file->inode->allocated = bytes;
    if (bytes > file->inode->size) {
        file->inode->grown = sim_disk_is_store_file(disk, file->inode);
        file->inode->size = bytes;
    }
    sim_image_need(file->inode, bytes);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct sim_actor *actor = ctx;
    uint64_t op = call_begin(actor);
    struct sim_inode *inode = file->inode;
    if (bytes < inode->size) sim_inode_shrink(inode, bytes);
    sim_image_need(inode, bytes);
    inode->size = bytes;
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_remove(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[SIM_PATH_BYTES];
    sim_path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (!sim_name_find(&disk->now, clean)) return LEAT_E_NOT_FOUND;
    sim_name_change(disk, clean, "", NULL);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_rename(void *ctx, const char *from, const char *to)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean_from[SIM_PATH_BYTES], clean_to[SIM_PATH_BYTES];
    sim_path_clean(from, clean_from);
    sim_path_clean(to, clean_to);
    uint64_t op = call_begin(actor);
    struct sim_name *name = sim_name_find(&disk->now, clean_from);
    if (!name) return LEAT_E_NOT_FOUND;
    sim_name_change(disk, clean_from, clean_to, name->inode);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_make_dir(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[SIM_PATH_BYTES];
    sim_path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (clean[0] && !sim_name_find(&disk->now, clean)) sim_name_change(disk, "", clean, NULL);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_sync_dir(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    char clean[SIM_PATH_BYTES];
    sim_path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (lacks_files(actor->process->disk)) return LEAT_E_NO_MEMORY;
    sim_names_sync(actor->process->disk, clean);
    call_end(actor, op);
    return LEAT_OK;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static leat_err disk_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                          void *arg)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[SIM_PATH_BYTES];
    sim_path_clean(path, clean);
    sim_port_called(actor);
    if (lacks_files(disk)) return LEAT_E_NO_MEMORY;
    if (clean[0] && !sim_name_find(&disk->now, clean)) return LEAT_E_NOT_FOUND;
    char **found = calloc(disk->now.count + 1, sizeof *found);
    LEAT_ASSERT(found != NULL);
    size_t count = 0;
    for (size_t i = 0; i < disk->now.count; i++) {
        const char *name = disk->now.at[i].path;
        const char *slash = strrchr(name, '/');
        if (sim_path_in(name, clean)) found[count++] = strdup(slash ? slash + 1 : name);
    }
    qsort(found, count, sizeof *found, name_order);
    for (size_t i = 0; i < count; i++) {
        each(arg, found[i]);
        free(found[i]);
    }
    free(found);
    return LEAT_OK;
}

static leat_err disk_space(void *ctx, uint64_t *out_free_bytes)
{
    struct sim_actor *actor = ctx;
    sim_port_called(actor);
    *out_free_bytes = actor->process->disk->full ? 0 : 64ull << 30;
    return LEAT_OK;
}

const struct leat_disk sim_disk_ops = {
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
    .space = disk_space,
};
