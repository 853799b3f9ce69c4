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
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { SECTOR = 512, CHUNK = 64 * 1024, PATH_BYTES = 160, DIRECT_ALIGN = 4096 };

struct pending {
    struct pending *next;
    uint64_t offset;
    size_t bytes;
    uint8_t data[];
};

struct inode {
    struct inode *next;
    struct sim_disk *disk;
    uint64_t size, durable_size, allocated;
    uint64_t low_size; /* smallest since the last flush: beyond it `durable` is void */
    uint8_t **now, **durable;
    size_t chunks; /* of both arrays */
    struct pending *first, *last;
    bool failed; /* a flush failed: final */
};

struct leat_file {
    struct inode *inode;
    bool direct, read_only;
};

struct name {
    char path[PATH_BYTES];
    struct inode *inode; /* NULL: a directory */
};
struct names {
    struct name *at;
    size_t count, capacity;
};
struct name_op {
    struct name_op *next;
    char remove[PATH_BYTES], add[PATH_BYTES]; /* "" = nothing */
    struct inode *inode;                      /* of add */
};

struct sim_disk {
    struct sim_world *world;
    struct sim_rng rng;
    struct inode *inodes;
    struct names now, durable;
    struct name_op *first, *last;
    uint64_t ops, aim_at, stall_until_us;
    enum sim_cut_phase aim_phase;
    void (*on_cut)(void *);
    void *on_cut_arg;
    sim_sweep_fn sweep;
    void *sweep_arg;
    bool full, fail_write, fail_sync, took_error, lost_flush;
};

/* ---- images ---- */

static void image_need(struct inode *inode, uint64_t end)
{
    size_t chunks = (size_t)((end + CHUNK - 1) / CHUNK);
    if (chunks <= inode->chunks) return;
    size_t room = inode->chunks ? inode->chunks : 16;
    while (room < chunks)
        room *= 2;
    inode->now = realloc(inode->now, room * sizeof *inode->now);
    inode->durable = realloc(inode->durable, room * sizeof *inode->durable);
    LEAT_ASSERT(inode->now && inode->durable);
    for (size_t i = inode->chunks; i < room; i++)
        inode->now[i] = inode->durable[i] = NULL;
    inode->chunks = room;
}

static bool all_zero(const uint8_t *data, size_t bytes)
{
    return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

static void image_write(uint8_t **image, uint64_t offset, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        size_t in = (size_t)(offset % CHUNK), take = CHUNK - in < bytes ? CHUNK - in : bytes;
        uint8_t **chunk = &image[offset / CHUNK];
        if (*chunk || !all_zero(data, take)) {
            if (!*chunk) *chunk = calloc(1, CHUNK);
            LEAT_ASSERT(*chunk != NULL);
            memcpy(*chunk + in, data, take);
        }
        offset += take;
        data += take;
        bytes -= take;
    }
}

static void image_read(uint8_t *const *image, size_t chunks, uint64_t offset, uint8_t *to,
                       size_t bytes)
{
    while (bytes) {
        size_t in = (size_t)(offset % CHUNK), take = CHUNK - in < bytes ? CHUNK - in : bytes;
        const uint8_t *chunk = offset / CHUNK < chunks ? image[offset / CHUNK] : NULL;
        if (chunk)
            memcpy(to, chunk + in, take);
        else
            memset(to, 0, take);
        offset += take;
        to += take;
        bytes -= take;
    }
}

static void image_cut(uint8_t **image, size_t chunks, uint64_t size)
{
    if (size >= (uint64_t)chunks * CHUNK) return;
    for (size_t i = (size_t)(size / CHUNK); i < chunks; i++) {
        uint64_t from = (uint64_t)i * CHUNK;
        if (!image[i]) continue;
        if (from >= size) {
            free(image[i]);
            image[i] = NULL;
        } else {
            memset(image[i] + (size - from), 0, (size_t)(CHUNK - (size - from)));
        }
    }
}

static void pending_free(struct inode *inode)
{
    for (struct pending *write = inode->first, *next; write; write = next) {
        next = write->next;
        free(write);
    }
    inode->first = inode->last = NULL;
}

static void inode_write(struct inode *inode, uint64_t offset, const uint8_t *data, size_t bytes)
{
    if (!bytes) return;
    image_need(inode, offset + bytes);
    image_write(inode->now, offset, data, bytes);
    if (offset + bytes > inode->size) inode->size = offset + bytes;
    if (inode->size > inode->allocated) inode->allocated = inode->size;
    struct pending *write = malloc(sizeof *write + bytes);
    LEAT_ASSERT(write != NULL);
    *write = (struct pending){.offset = offset, .bytes = bytes};
    memcpy(write->data, data, bytes);
    if (inode->last)
        inode->last->next = write;
    else
        inode->first = write;
    inode->last = write;
}

static void inode_sync(struct inode *inode)
{
    image_cut(inode->durable, inode->chunks, inode->low_size);
    inode->low_size = UINT64_MAX;
    for (struct pending *write = inode->first; write; write = write->next)
        image_write(inode->durable, write->offset, write->data, write->bytes);
    pending_free(inode);
    inode->durable_size = inode->size;
}

/* Writes not flushed beyond the new end are void: a later growth reads zeros there. */
static void inode_shrink(struct inode *inode, uint64_t bytes)
{
    for (struct pending *write = inode->first; write; write = write->next) {
        if (write->offset >= bytes)
            write->bytes = 0;
        else if (write->offset + write->bytes > bytes)
            write->bytes = (size_t)(bytes - write->offset);
    }
    image_cut(inode->now, inode->chunks, bytes);
    inode->size = inode->allocated = bytes;
    if (bytes < inode->low_size) inode->low_size = bytes;
}

/* Keep part of one pending write: sectors that `keep` says. */
static void sectors_keep(struct inode *inode, const struct pending *write, uint32_t per_mille,
                         uint64_t prefix_bytes)
{
    struct sim_disk *disk = inode->disk;
    bool kept = false, lost = false;
    for (size_t done = 0; done < write->bytes;) {
        uint64_t at = write->offset + done;
        size_t take = (size_t)(SECTOR - at % SECTOR);
        if (take > write->bytes - done) take = write->bytes - done;
        if (done < prefix_bytes && sim_rng_chance(&disk->rng, per_mille)) {
            image_write(inode->durable, at, write->data + done, take);
            kept = true;
        } else {
            lost = true;
        }
        done += take;
    }
    if (kept && lost) disk->world->faults[SIM_FAULT_TORN]++;
    if (!kept) disk->world->faults[SIM_FAULT_LOST]++;
}

static void inode_crash(struct inode *inode)
{
    struct sim_disk *disk = inode->disk;
    unsigned mode = (unsigned)sim_rng_below(&disk->rng, 5);
    uint64_t count = 0;
    for (struct pending *write = inode->first; write; write = write->next)
        count++;
    uint64_t prefix = count ? sim_rng_below(&disk->rng, count) : 0, at = 0;
    /* A truncation took effect before everything after it, or not at all. */
    if (inode->low_size != UINT64_MAX && sim_rng_chance(&disk->rng, 500))
        image_cut(inode->durable, inode->chunks, inode->low_size);
    inode->low_size = UINT64_MAX;
    for (struct pending *write = inode->first; write; write = write->next, at++) {
        switch (mode) {
        case 0:
            sectors_keep(inode, write, 0, 0);
            break;
        case 1:
            sectors_keep(inode, write, 1000, UINT64_MAX);
            break;
        case 2: /* in order, the last one torn */
            sectors_keep(inode, write, 1000,
                         at < prefix    ? UINT64_MAX
                         : at == prefix ? sim_rng_below(&disk->rng, write->bytes + 1)
                                        : 0);
            break;
        case 3:
            sectors_keep(inode, write, sim_rng_chance(&disk->rng, 500) ? 1000 : 0, UINT64_MAX);
            break;
        default:
            sectors_keep(inode, write, 500, UINT64_MAX);
            break;
        }
    }
    pending_free(inode);
    /* The size is one of those that the file had, or between. */
    uint64_t low = inode->durable_size, high = inode->size;
    if (low > high) {
        uint64_t swap = low;
        low = high;
        high = swap;
    }
    unsigned pick = (unsigned)sim_rng_below(&disk->rng, 3);
    uint64_t size = pick == 0 ? low : pick == 1 ? high : sim_rng_between(&disk->rng, low, high);
    inode->size = inode->durable_size = size;
    inode->failed = false;
    image_cut(inode->durable, inode->chunks, size);
    for (size_t i = 0; i < inode->chunks; i++) {
        if (inode->durable[i]) {
            if (!inode->now[i]) inode->now[i] = malloc(CHUNK);
            LEAT_ASSERT(inode->now[i] != NULL);
            memcpy(inode->now[i], inode->durable[i], CHUNK);
        } else {
            free(inode->now[i]);
            inode->now[i] = NULL;
        }
    }
}

/* ---- names ---- */

/* "./a//b/" is "a/b"; the data directory itself is "". */
static void path_clean(const char *path, char out[PATH_BYTES])
{
    size_t used = 0;
    for (const char *at = path; *at;) {
        size_t part = strcspn(at, "/");
        if (part && !(part == 1 && at[0] == '.')) {
            LEAT_ASSERT(used + part + 2 < PATH_BYTES);
            if (used) out[used++] = '/';
            memcpy(out + used, at, part);
            used += part;
        }
        at += part;
        while (*at == '/')
            at++;
    }
    out[used] = '\0';
}

static bool path_in(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = slash ? (size_t)(slash - path) : 0;
    return path[0] && strlen(dir) == bytes && memcmp(path, dir, bytes) == 0;
}

static struct name *name_find(struct names *names, const char *path)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i].path, path) == 0) return &names->at[i];
    return NULL;
}

static void name_apply(struct names *names, const struct name_op *op)
{
    struct name *old = op->remove[0] ? name_find(names, op->remove) : NULL;
    if (old) *old = names->at[--names->count];
    if (!op->add[0]) return;
    struct name *name = name_find(names, op->add);
    if (!name) {
        if (names->count == names->capacity) {
            names->capacity = names->capacity ? 2 * names->capacity : 32;
            names->at = realloc(names->at, names->capacity * sizeof *names->at);
            LEAT_ASSERT(names->at != NULL);
        }
        name = &names->at[names->count++];
        memcpy(name->path, op->add, PATH_BYTES);
    }
    name->inode = op->inode;
}

static void name_change(struct sim_disk *disk, const char *remove, const char *add,
                        struct inode *inode)
{
    struct name_op *op = calloc(1, sizeof *op);
    LEAT_ASSERT(op != NULL);
    snprintf(op->remove, sizeof op->remove, "%s", remove);
    snprintf(op->add, sizeof op->add, "%s", add);
    op->inode = inode;
    name_apply(&disk->now, op);
    if (disk->last)
        disk->last->next = op;
    else
        disk->first = op;
    disk->last = op;
}

/* Everything that touches the directory, and what it may depend on, becomes durable. */
static void names_sync(struct sim_disk *disk, const char *dir)
{
    struct name_op **link = &disk->first, *last = NULL;
    while (*link) {
        struct name_op *op = *link;
        if (path_in(op->remove, dir) || path_in(op->add, dir)) {
            name_apply(&disk->durable, op);
            *link = op->next;
            free(op);
        } else {
            last = op;
            link = &op->next;
        }
    }
    disk->last = last;
}

static void names_crash(struct sim_disk *disk)
{
    uint64_t count = 0;
    for (struct name_op *op = disk->first; op; op = op->next)
        count++;
    uint64_t keep = sim_rng_below(&disk->rng, count + 1);
    for (struct name_op *op = disk->first, *next; op; op = next) {
        next = op->next;
        if (keep) {
            name_apply(&disk->durable, op);
            keep--;
        }
        free(op);
    }
    disk->first = disk->last = NULL;
    disk->now.count = 0;
    for (size_t i = 0; i < disk->durable.count; i++) {
        struct name_op add = {.inode = disk->durable.at[i].inode};
        memcpy(add.add, disk->durable.at[i].path, PATH_BYTES);
        name_apply(&disk->now, &add);
    }
}

/* ---- the disk ---- */

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
    for (struct inode *inode = disk->inodes, *next; inode; inode = next) {
        next = inode->next;
        pending_free(inode);
        for (size_t i = 0; i < inode->chunks; i++) {
            free(inode->now[i]);
            free(inode->durable[i]);
        }
        free(inode->now);
        free(inode->durable);
        free(inode);
    }
    for (struct name_op *op = disk->first, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    free(disk->now.at);
    free(disk->durable.at);
    free(disk);
    *disk_at = NULL;
}

void sim_disk_aim(struct sim_disk *disk, uint64_t n, enum sim_cut_phase phase,
                  void (*on_cut)(void *arg), void *arg)
{
    disk->aim_at = n ? disk->ops + n : 0;
    disk->aim_phase = phase;
    disk->on_cut = on_cut;
    disk->on_cut_arg = arg;
}

void sim_disk_sweep(struct sim_disk *disk, sim_sweep_fn sweep, void *arg)
{
    disk->sweep = sweep;
    disk->sweep_arg = arg;
}

uint64_t sim_disk_ops_count(const struct sim_disk *disk)
{
    return disk->ops;
}

void sim_disk_reseed(struct sim_disk *disk, uint64_t seed)
{
    sim_rng_init(&disk->rng, seed, "disk itself");
}

void sim_disk_set_full(struct sim_disk *disk, bool full)
{
    disk->full = full;
}

void sim_disk_stall(struct sim_disk *disk, uint64_t until_us)
{
    disk->stall_until_us = until_us;
}

void sim_disk_fail_next(struct sim_disk *disk, enum leat_disk_kind kind)
{
    if (kind == LEAT_DISK_SYNC)
        disk->fail_sync = true;
    else
        disk->fail_write = true;
}

void sim_disk_no_errors(struct sim_disk *disk)
{
    disk->fail_sync = disk->fail_write = false;
}

bool sim_disk_took_error(struct sim_disk *disk)
{
    bool took = disk->took_error;
    disk->took_error = false;
    return took;
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
    if (disk->fail_write) {
        disk->fail_write = false;
        disk->took_error = true;
        disk->world->faults[SIM_FAULT_IO_ERROR]++;
        return LEAT_E_DISK;
    }
    if (disk->full && io->offset + io->bytes > file->inode->allocated) {
        disk->world->faults[SIM_FAULT_FULL]++;
        return LEAT_E_DISK_FULL;
    }
    return LEAT_OK;
}

/* What a write leaves behind that was in flight when its process or machine died. */
static void write_part(struct sim_disk *disk, struct inode *inode, uint64_t offset,
                       const uint8_t *data, size_t bytes)
{
    size_t sectors = bytes / SECTOR;
    size_t keep = (size_t)sim_rng_below(&disk->rng, sectors + 1) * SECTOR;
    if (sim_rng_chance(&disk->rng, 250)) keep = bytes;
    inode_write(inode, offset, data, keep);
}

static leat_err io_apply(struct sim_disk *disk, struct leat_disk_io *io, const uint8_t *data)
{
    struct inode *inode = io->file->inode;
    leat_err rc = LEAT_OK;
    io->done_bytes = 0;
    switch (io->kind) {
    case LEAT_DISK_READ:
        if (io->offset < inode->size) {
            uint64_t left = inode->size - io->offset;
            io->done_bytes = left < io->bytes ? (size_t)left : io->bytes;
            image_read(inode->now, inode->chunks, io->offset, io->buffer, io->done_bytes);
        }
        break;
    case LEAT_DISK_WRITE:
        rc = write_check(io->file, io);
        if (rc == LEAT_OK) {
            inode_write(inode, io->offset, data, io->bytes);
            io->done_bytes = io->bytes;
        } else if (rc == LEAT_E_DISK) {
            write_part(disk, inode, io->offset, data, io->bytes);
        }
        break;
    case LEAT_DISK_SYNC:
        if (disk->fail_sync && !inode->failed) {
            disk->fail_sync = false;
            disk->took_error = true;
            disk->world->faults[SIM_FAULT_IO_ERROR]++;
            inode->failed = true; /* its pages may be lost: see sim_disk_process_died() */
        }
        if (inode->failed)
            rc = LEAT_E_DISK;
        else
            inode_sync(inode);
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

static uint64_t latency_us(struct sim_disk *disk, const struct leat_disk_io *io)
{
    uint64_t us = io->kind == LEAT_DISK_SYNC ? sim_rng_between(&disk->rng, 60, 400)
                                             : sim_rng_between(&disk->rng, 10, 100);
    us += io->bytes / 4096;
    if (sim_rng_chance(&disk->rng, 10)) us += sim_rng_below(&disk->rng, 20000);
    uint64_t now_us = disk->world->now_us;
    if (disk->stall_until_us > now_us + us) us = disk->stall_until_us - now_us;
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
    struct inode *inode = io->file->inode;
    if (io->kind == LEAT_DISK_WRITE && !disk->full)
        write_part(disk, inode, io->offset, data, io->bytes);
}

/* The event that was under way for an operation which queue_drain() has done. */
static bool queue_was_drained(struct sim_actor *actor)
{
    if (!actor->disk_drained) return false;
    actor->disk_drained = actor->disk_busy = false;
    queue_start(actor);
    return true;
}

/* The operation at the head of an actor's queue has run its time. The stage holds the buffer as it
 * was at the start; the device may have fetched any sector then or now. */
static void queue_finish(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->a;
    struct sim_process *process = actor->process;
    if (!process->alive) return;
    struct sim_disk *disk = process->disk;
    if (queue_was_drained(actor)) return;
    struct leat_disk_io *io = actor->disk_first;
    uint64_t op = event->n;
    if (disk->stall_until_us > world->now_us) {
        sim_world_at(world, disk->stall_until_us, queue_finish, actor)->n = op;
        return;
    }
    if (io->kind == LEAT_DISK_WRITE) {
        for (size_t at = 0; at < io->bytes; at += SECTOR) {
            size_t take = io->bytes - at < SECTOR ? io->bytes - at : SECTOR;
            if (sim_rng_chance(&disk->rng, 500))
                memcpy(actor->disk_stage + at, (uint8_t *)io->buffer + at, take);
        }
    }
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
    if (io->kind == LEAT_DISK_WRITE && io->bytes) {
        actor->disk_stage = realloc(actor->disk_stage, io->bytes);
        LEAT_ASSERT(actor->disk_stage != NULL);
        memcpy(actor->disk_stage, io->buffer, io->bytes);
    }
    actor->disk_started = true;
    sim_world_at(world, world->now_us + latency_us(disk, io), queue_finish, actor)->n = op;
}

static void queue_start(struct sim_actor *actor)
{
    if (actor->disk_busy || !actor->disk_first) return;
    actor->disk_busy = true;
    sim_world_at(actor->world, actor->world->now_us, queue_begin, actor);
}

static void read_finish(struct sim_world *world, struct sim_event *event)
{
    struct leat_disk_io *io = event->a;
    struct sim_actor *actor = event->b;
    if (!actor->process->alive) return;
    (void)io_apply(actor->process->disk, io, NULL);
    sim_actor_post(actor, 1, done, io);
    (void)world;
}

static void disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    sim_port_called(actor);
    io_check(io);
    LEAT_ASSERT(io->on_done != NULL);
    if (io->kind == LEAT_DISK_READ) { /* may overtake */
        disk->ops++;
        sim_world_at(actor->world, actor->world->now_us + latency_us(disk, io), read_finish, io)
            ->b = actor;
        return;
    }
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
    leat_err rc = io_apply(disk, io, io->buffer);
    if (aimed(disk, op, SIM_CUT_AFTER)) cut(disk, actor->process);
    return rc;
}

static leat_err disk_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[PATH_BYTES];
    path_clean(path, clean);
    uint64_t op = call_begin(actor);
    struct name *name = name_find(&disk->now, clean);
    if (name && (flags & LEAT_OPEN_EXCLUSIVE) && (flags & LEAT_OPEN_CREATE))
        return leat_error_set(error, LEAT_E_EXISTS, "%s exists", path);
    if (name && !name->inode) return leat_error_set(error, LEAT_E_DISK, "%s is a directory", path);
    if (!name && !(flags & LEAT_OPEN_CREATE))
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%s does not exist", path);
    struct inode *inode = name ? name->inode : NULL;
    if (!inode) {
        if (disk->full) {
            disk->world->faults[SIM_FAULT_FULL]++;
            return leat_error_set(error, LEAT_E_DISK_FULL, "%s: no space left", path);
        }
        const char *slash = strrchr(clean, '/');
        char dir[PATH_BYTES];
        snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - clean) : 0, clean);
        if (dir[0] && !name_find(&disk->now, dir))
            return leat_error_set(error, LEAT_E_NOT_FOUND, "%s: no such directory", dir);
        inode = calloc(1, sizeof *inode);
        LEAT_ASSERT(inode != NULL);
        inode->disk = disk;
        inode->low_size = UINT64_MAX;
        inode->next = disk->inodes;
        disk->inodes = inode;
        name_change(disk, "", clean, inode);
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
        disk->world->faults[SIM_FAULT_FULL]++;
        return LEAT_E_DISK_FULL;
    }
    if (bytes > file->inode->allocated) file->inode->allocated = bytes;
    if (bytes > file->inode->size) file->inode->size = bytes;
    image_need(file->inode, bytes);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct sim_actor *actor = ctx;
    uint64_t op = call_begin(actor);
    struct inode *inode = file->inode;
    if (bytes < inode->size) inode_shrink(inode, bytes);
    image_need(inode, bytes);
    inode->size = bytes;
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_remove(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[PATH_BYTES];
    path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (!name_find(&disk->now, clean)) return LEAT_E_NOT_FOUND;
    name_change(disk, clean, "", NULL);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_rename(void *ctx, const char *from, const char *to)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean_from[PATH_BYTES], clean_to[PATH_BYTES];
    path_clean(from, clean_from);
    path_clean(to, clean_to);
    uint64_t op = call_begin(actor);
    struct name *name = name_find(&disk->now, clean_from);
    if (!name) return LEAT_E_NOT_FOUND;
    name_change(disk, clean_from, clean_to, name->inode);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_make_dir(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    struct sim_disk *disk = actor->process->disk;
    char clean[PATH_BYTES];
    path_clean(path, clean);
    uint64_t op = call_begin(actor);
    if (clean[0] && !name_find(&disk->now, clean)) name_change(disk, "", clean, NULL);
    call_end(actor, op);
    return LEAT_OK;
}

static leat_err disk_sync_dir(void *ctx, const char *path)
{
    struct sim_actor *actor = ctx;
    char clean[PATH_BYTES];
    path_clean(path, clean);
    uint64_t op = call_begin(actor);
    names_sync(actor->process->disk, clean);
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
    char clean[PATH_BYTES];
    path_clean(path, clean);
    sim_port_called(actor);
    if (clean[0] && !name_find(&disk->now, clean)) return LEAT_E_NOT_FOUND;
    char **found = calloc(disk->now.count + 1, sizeof *found);
    LEAT_ASSERT(found != NULL);
    size_t count = 0;
    for (size_t i = 0; i < disk->now.count; i++) {
        const char *name = disk->now.at[i].path;
        const char *slash = strrchr(name, '/');
        if (path_in(name, clean)) found[count++] = strdup(slash ? slash + 1 : name);
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

/* ---- deaths and damage ---- */

void sim_disk_process_died(struct sim_process *process, enum sim_death death)
{
    struct sim_disk *disk = process->disk;
    for (struct sim_actor *actor = process->actors; actor; actor = actor->next) {
        struct leat_disk_io *io = actor->disk_first;
        /* Of the queue only its head can have begun. */
        if (io && actor->disk_started && io->kind == LEAT_DISK_WRITE && !io->file->inode->failed &&
            !(disk->full && io->offset + io->bytes > io->file->inode->allocated))
            write_part(disk, io->file->inode, io->offset, actor->disk_stage, io->bytes);
        actor->disk_first = actor->disk_last = NULL;
        actor->disk_busy = actor->disk_started = actor->disk_drained = false;
    }
    disk->lost_flush = false;
    for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
        disk->lost_flush |= inode->failed;
        if (death == SIM_DEATH_POWER || inode->failed) inode_crash(inode);
    }
    if (death == SIM_DEATH_POWER) names_crash(disk);
}

bool sim_disk_lost_flush(const struct sim_disk *disk)
{
    return disk->lost_flush;
}

bool sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t offset, unsigned bit)
{
    struct name *name = name_find(&disk->now, path);
    if (!name || !name->inode || offset >= name->inode->size) return false;
    size_t chunk = (size_t)(offset / CHUNK);
    if (chunk >= name->inode->chunks || !name->inode->now[chunk]) return false;
    name->inode->now[chunk][offset % CHUNK] ^= (uint8_t)(1u << bit);
    if (name->inode->durable[chunk])
        name->inode->durable[chunk][offset % CHUNK] ^= (uint8_t)(1u << bit);
    return true;
}

uint64_t sim_disk_file_bytes(struct sim_disk *disk, const char *path)
{
    struct name *name = name_find(&disk->now, path);
    return name && name->inode ? name->inode->size : 0;
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
