/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. */
#include "tests/coordinator/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pages.h"

struct leat_file {
    int inode;
};

static bool disk_op(struct fake_world *world)
{
    if (world->dead) return false;
    if (++world->disk_ops == world->cut_at) world->dead = true;
    return !world->dead || (leat_xoshiro_next(&world->rng) & 1); /* the last may still happen */
}

/* ---- names ---- */

static struct fake_name *name_find(struct fake_name *names, const char *path)
{
    for (int i = 0; i < FAKE_NAMES_MAX; i++)
        if (names[i].path[0] && strcmp(names[i].path, path) == 0) return &names[i];
    return NULL;
}

static void name_set(struct fake_name *names, const char *path, int inode)
{
    struct fake_name *name = name_find(names, path);
    if (inode < 0) {
        if (name) name->path[0] = 0;
        return;
    }
    for (int i = 0; i < FAKE_NAMES_MAX && !name; i++)
        if (!names[i].path[0]) name = &names[i];
    if (!name) abort();
    snprintf(name->path, sizeof name->path, "%s", path);
    name->inode = inode;
}

static void names_do(struct fake_name *names, const struct fake_name_op *op)
{
    if (op->kind == 0) name_set(names, op->to, op->inode);
    if (op->kind == 1) name_set(names, op->from, -1);
    if (op->kind == 2) {
        name_set(names, op->from, -1);
        name_set(names, op->to, op->inode);
    }
}

static void name_op(struct fake_world *world, int kind, const char *from, const char *to, int inode)
{
    if (world->op_count == FAKE_OPS_MAX) abort();
    struct fake_name_op *op = &world->ops[world->op_count++];
    op->kind = kind;
    op->inode = inode;
    snprintf(op->from, sizeof op->from, "%s", from);
    snprintf(op->to, sizeof op->to, "%s", to);
    names_do(world->names, op);
}

/* ---- files ---- */

static void inode_grow(struct fake_inode *inode, size_t bytes)
{
    if (bytes <= inode->bytes) return;
    if (bytes > inode->capacity) {
        size_t capacity = inode->capacity ? inode->capacity : 8192;
        while (capacity < bytes)
            capacity *= 2;
        inode->now = pages_grow(inode->now, inode->capacity, capacity);
        inode->safe = pages_grow(inode->safe, inode->capacity, capacity);
        inode->capacity = capacity;
    }
    inode->bytes = bytes;
}

static void inode_dirty(struct fake_inode *inode, size_t from, size_t to)
{
    if (inode->dirty_from >= inode->dirty_to) {
        inode->dirty_from = from;
        inode->dirty_to = to;
    }
    if (from < inode->dirty_from) inode->dirty_from = from;
    if (to > inode->dirty_to) inode->dirty_to = to;
}

static leat_err disk_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    struct fake_world *world = ctx;
    struct fake_name *name = name_find(world->names, path);
    int inode = name ? name->inode : -1;
    if (!name) {
        if (!(flags & LEAT_OPEN_CREATE))
            return leat_error_set(error, LEAT_E_NOT_FOUND, "no file %s", path);
        if (!disk_op(world)) return leat_error_set(error, LEAT_E_DISK, "dead");
        for (int i = 0; i < FAKE_FILES_MAX && inode < 0; i++)
            if (!world->inodes[i].used) inode = i;
        if (inode < 0) abort();
        world->inodes[inode].used = true;
        name_op(world, 0, "", path, inode);
    }
    *out_file = malloc(sizeof **out_file);
    if (!*out_file) abort();
    (*out_file)->inode = inode;
    return LEAT_OK;
}

static void disk_close(void *ctx, struct leat_file *file)
{
    (void)ctx;
    free(file);
}

static leat_err disk_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    *out_bytes = ((struct fake_world *)ctx)->inodes[file->inode].bytes;
    return LEAT_OK;
}

static leat_err disk_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct fake_world *world = ctx;
    if (world->full) return LEAT_E_DISK_FULL;
    if (!disk_op(world)) return LEAT_E_DISK;
    inode_grow(&world->inodes[file->inode], bytes);
    return LEAT_OK;
}

static leat_err disk_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    struct fake_world *world = ctx;
    struct fake_inode *inode = &world->inodes[file->inode];
    if (!disk_op(world)) return LEAT_E_DISK;
    if (bytes < inode->bytes) {
        memset(inode->now + bytes, 0, inode->bytes - bytes);
        inode_dirty(inode, bytes, inode->bytes);
    }
    inode_grow(inode, bytes);
    inode->bytes = bytes;
    return LEAT_OK;
}

static leat_err disk_remove(void *ctx, const char *path)
{
    struct fake_world *world = ctx;
    if (!name_find(world->names, path)) return LEAT_E_NOT_FOUND;
    if (!disk_op(world)) return LEAT_E_DISK;
    name_op(world, 1, path, "", -1);
    return LEAT_OK;
}

static leat_err disk_rename(void *ctx, const char *from, const char *to)
{
    struct fake_world *world = ctx;
    struct fake_name *name = name_find(world->names, from);
    if (!name) return LEAT_E_NOT_FOUND;
    if (!disk_op(world)) return LEAT_E_DISK;
    name_op(world, 2, from, to, name->inode);
    return LEAT_OK;
}

static leat_err disk_make_dir(void *ctx, const char *path)
{
    (void)path;
    return ((struct fake_world *)ctx)->dead ? LEAT_E_DISK : LEAT_OK;
}

static leat_err disk_sync_dir(void *ctx, const char *path)
{
    struct fake_world *world = ctx;
    (void)path;
    if (!disk_op(world)) return LEAT_E_DISK;
    for (unsigned i = 0; i < world->op_count; i++)
        names_do(world->safe_names, &world->ops[i]);
    world->op_count = 0;
    return LEAT_OK;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static leat_err disk_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                          void *arg)
{
    struct fake_world *world = ctx;
    char *names[FAKE_NAMES_MAX];
    int count = 0;
    size_t prefix = strlen(path);
    for (int i = 0; i < FAKE_NAMES_MAX; i++) {
        char *name = world->names[i].path;
        if (strncmp(name, path, prefix) == 0 && name[prefix] == '/')
            names[count++] = name + prefix + 1;
    }
    qsort(names, (size_t)count, sizeof names[0], text_compare);
    for (int i = 0; i < count; i++)
        each(arg, names[i]);
    return LEAT_OK;
}

static leat_err disk_space(void *ctx, uint64_t *out_free_bytes)
{
    *out_free_bytes = ((struct fake_world *)ctx)->full ? 0 : UINT32_MAX;
    return LEAT_OK;
}

static leat_err io_do(struct fake_world *world, struct leat_disk_io *io)
{
    struct fake_inode *inode = &world->inodes[io->file->inode];
    io->done_bytes = 0;
    if (io->kind == LEAT_DISK_READ) {
        if (io->offset < inode->bytes) {
            size_t left = inode->bytes - io->offset;
            io->done_bytes = io->bytes < left ? io->bytes : left;
            memcpy(io->buffer, inode->now + io->offset, io->done_bytes);
        }
        return io->rc = LEAT_OK;
    }
    bool happens = disk_op(world);
    if (io->kind == LEAT_DISK_WRITE && happens) {
        inode_grow(inode, io->offset + io->bytes);
        memcpy(inode->now + io->offset, io->buffer, io->bytes);
        inode_dirty(inode, io->offset, io->offset + io->bytes);
        io->done_bytes = io->bytes;
    }
    if (io->kind == LEAT_DISK_SYNC && happens) {
        world->syncs++;
        if (inode->dirty_to > inode->dirty_from)
            memcpy(inode->safe + inode->dirty_from, inode->now + inode->dirty_from,
                   inode->dirty_to - inode->dirty_from);
        inode->dirty_from = inode->dirty_to = 0;
        inode->safe_bytes = inode->bytes;
    }
    return io->rc = world->dead ? LEAT_E_DISK : LEAT_OK;
}

static void io_drain(struct fake_world *world, bool tell)
{
    struct leat_disk_io *io;
    while ((io = world->io_head)) {
        world->io_head = io->next;
        if (!world->io_head) world->io_tail = &world->io_head;
        (void)io_do(world, io);
        if (tell) io->on_done(io);
    }
}

static void disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct fake_world *world = ctx;
    io->next = NULL;
    *world->io_tail = io;
    world->io_tail = &io->next;
}

static leat_err disk_run(void *ctx, struct leat_disk_io *io)
{
    /* What was submitted before is done first; its completions come later. */
    struct fake_world *world = ctx;
    for (struct leat_disk_io *before = world->io_head; before; before = before->next)
        if (!before->done_bytes && before->rc == LEAT_OK) (void)io_do(world, before);
    return io_do(world, io);
}

/* ---- clock, random, mail ---- */

static uint64_t clock_now(void *ctx)
{
    return ((struct fake_world *)ctx)->now_us;
}
static int64_t clock_wall(void *ctx)
{
    return (int64_t)(((struct fake_world *)ctx)->now_us / 1000) + 1700000000000;
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    ((struct fake_world *)ctx)->wake_us = at_us;
}
static uint64_t random_next(void *ctx)
{
    return leat_xoshiro_next(&((struct fake_world *)ctx)->rng);
}
static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct fake_world *world = ctx;
    (void)to; /* requesters and the coordinator share one mailbox here */
    mail->next = NULL;
    *world->mail_tail = mail;
    world->mail_tail = &mail->next;
}

static void queues_clear(struct fake_world *world)
{
    world->mail_head = NULL;
    world->mail_tail = &world->mail_head;
    world->io_head = NULL;
    world->io_tail = &world->io_head;
    world->wake_us = UINT64_MAX;
}

void fake_world_init(struct fake_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    leat_xoshiro_seed(&world->rng, seed);
    queues_clear(world);
    world->now_us = 1000000;
    world->clock = (struct leat_clock){world, clock_now, clock_wall, clock_wake};
    world->random = (struct leat_random){.ctx = world, .next = random_next};
    world->post = (struct leat_post){world, post_send, 0};
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
    world->env = (struct leat_env){.clock = &world->clock,
                                   .random = &world->random,
                                   .post = &world->post,
                                   .disk = &world->disk};
}

void fake_world_fini(struct fake_world *world)
{
    for (int i = 0; i < FAKE_FILES_MAX; i++) {
        pages_put(world->inodes[i].now, world->inodes[i].capacity);
        pages_put(world->inodes[i].safe, world->inodes[i].capacity);
    }
}

bool fake_world_turn(struct fake_world *world)
{
    bool any = false;
    struct leat_mail *mail = world->mail_head;
    world->mail_head = NULL;
    world->mail_tail = &world->mail_head;
    while (mail) {
        struct leat_mail *next = mail->next;
        mail->deliver(world->actor, mail);
        mail = next;
        any = true;
    }
    if (world->io_head) {
        io_drain(world, true);
        any = true;
    }
    if (world->wake_us <= world->now_us && world->ops_of_actor) {
        world->wake_us = UINT64_MAX;
        world->ops_of_actor->on_wake(world->actor);
        any = true;
    }
    if (any && world->ops_of_actor && world->ops_of_actor->on_turn_end)
        world->ops_of_actor->on_turn_end(world->actor);
    return any;
}

void fake_world_settle(struct fake_world *world)
{
    while (fake_world_turn(world)) {
    }
}

void fake_world_elapse(struct fake_world *world, uint64_t us)
{
    uint64_t until = world->now_us + us;
    fake_world_settle(world);
    while (world->wake_us <= until) {
        if (world->wake_us > world->now_us) world->now_us = world->wake_us;
        fake_world_settle(world);
    }
    world->now_us = until;
    fake_world_settle(world);
}

void fake_world_power_cut(struct fake_world *world)
{
    for (int i = 0; i < FAKE_FILES_MAX; i++) {
        struct fake_inode *inode = &world->inodes[i];
        size_t from = inode->dirty_from / FAKE_SECTOR * FAKE_SECTOR;
        for (size_t at = from; at < inode->dirty_to; at += FAKE_SECTOR) {
            if (memcmp(inode->now + at, inode->safe + at, FAKE_SECTOR) == 0) continue;
            if (leat_xoshiro_next(&world->rng) & 1)
                memcpy(inode->safe + at, inode->now + at, FAKE_SECTOR);
            else
                memcpy(inode->now + at, inode->safe + at, FAKE_SECTOR);
        }
        if (inode->bytes != inode->safe_bytes && (leat_xoshiro_next(&world->rng) & 1))
            inode->bytes = inode->safe_bytes;
        inode->safe_bytes = inode->bytes;
        inode->dirty_from = inode->dirty_to = 0;
        if (inode->capacity > inode->bytes) {
            memset(inode->now + inode->bytes, 0, inode->capacity - inode->bytes);
            memset(inode->safe + inode->bytes, 0, inode->capacity - inode->bytes);
        }
    }
    unsigned kept = (unsigned)leat_xoshiro_below(&world->rng, world->op_count + 1);
    for (unsigned i = 0; i < kept; i++)
        names_do(world->safe_names, &world->ops[i]);
    world->op_count = 0;
    memcpy(world->names, world->safe_names, sizeof world->names);
    queues_clear(world);
    world->dead = false;
    world->cut_at = 0;
}

struct fake_inode *fake_world_file(struct fake_world *world, const char *path)
{
    struct fake_name *name = name_find(world->names, path);
    return name ? &world->inodes[name->inode] : NULL;
}

void fake_world_remove(struct fake_world *world, const char *path)
{
    name_set(world->names, path, -1);
    name_set(world->safe_names, path, -1);
}
