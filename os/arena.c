/* SPDX-License-Identifier: Apache-2.0 */
/* The arena port: a pool file of named shared memory that outlives a killed process.
 *
 *   0                  one page: struct pool_header, written by this process alone
 *   POOL_DATA_OFFSET   step 0, step 1, ... of LEAT_ARENA_STEP_BYTES each
 */
#include "os/internal.h"

#include "os/pool.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { POOL_LOCK_MS = 10, POOL_LOCK_TRIES = 3000 }; /* half a minute */

#define TMPFS_MAGIC_NUMBER 0x01021994 /* linux/magic.h */

struct os_arena {
    struct leat_arena port;
    struct os_actor *actor;
    struct pool_header *header;
    void *reserved;
    uint64_t reserved_bytes;
    int fd;
    bool discard, in_memory; /* in_memory: a tmpfs, so pages can be huge */
    char path[LEAT_OS_PATH_BYTES];
    char data_dir[LEAT_OS_PATH_BYTES]; /* its real path */

    struct leat_mail grown_mail;     /* the grower's to the actor */
    struct leat_arena_grow *growing; /* owner: the actor, handed over under `lock` */
    pthread_t grower;
    pthread_mutex_t lock; /* leaf */
    pthread_cond_t wake;
    bool shrinks; /* what is asked for; else it grows. Handed over like `growing` */
    bool grower_started, asked, stop; /* asked, stop: guarded by `lock` */
};

/* ---- steps ---- */

static uint8_t *step_at(struct os_arena *arena, uint64_t step)
{
    return arena->port.base + step * LEAT_ARENA_STEP_BYTES;
}

static leat_err step_grow(struct os_arena *arena)
{
    uint64_t step = arena->port.grown_bytes / LEAT_ARENA_STEP_BYTES;
    leat_err rc = leat_os_step_grow(arena->fd, step, arena->port.base, arena->in_memory);
    if (rc) return rc;
    arena->header->steps = step + 1;
    return LEAT_OK;
}

/* SUBTLE: the header goes first. After a kill between any two of these calls, the next start finds the bytes of each
 * step in the header, and cuts off the bytes after the last step. */
static leat_err step_shrink(struct os_arena *arena)
{
    uint64_t step = arena->port.grown_bytes / LEAT_ARENA_STEP_BYTES - 1;
    /* An RDMA device keeps the memory pinned, whatever happens to the file. */
    struct leat_os_world *world = arena->actor->world;
    if (world->rmem != NULL && leat_os_rmem_no_verbs(world) == NULL) return LEAT_E_DISK;
    __atomic_store_n(&arena->header->steps, step, __ATOMIC_RELEASE);
    leat_err rc = leat_os_step_shrink(arena->fd, step, arena->port.base);
    if (rc) __atomic_store_n(&arena->header->steps, step + 1, __ATOMIC_RELEASE);
    return rc;
}

static void grown_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct os_arena *arena = LEAT_CONTAINER(mail, struct os_arena, grown_mail);
    struct leat_arena_grow *grow = arena->growing;
    arena->growing = NULL;
    if (grow->rc == LEAT_OK && arena->shrinks)
        arena->port.grown_bytes -= LEAT_ARENA_STEP_BYTES;
    else if (grow->rc == LEAT_OK)
        arena->port.grown_bytes += LEAT_ARENA_STEP_BYTES;
    grow->on_grown(grow);
}

static void *grower_main(void *arg)
{
    struct os_arena *arena = arg;
    (void)pthread_setname_np(pthread_self(), "leat-grower");
    uint64_t inherited = arena->port.inherited_bytes / LEAT_ARENA_STEP_BYTES, touched = 0;
    (void)pthread_mutex_lock(&arena->lock);
    while (!arena->stop) {
        if (arena->asked) {
            arena->asked = false;
            (void)pthread_mutex_unlock(&arena->lock);
            uint64_t below = arena->port.grown_bytes / LEAT_ARENA_STEP_BYTES - arena->shrinks;
            if (inherited > below) inherited = below; /* not to be touched any more */
            arena->growing->rc = arena->shrinks ? step_shrink(arena) : step_grow(arena);
            leat_os_mail_push(arena->actor, &arena->grown_mail);
            (void)pthread_mutex_lock(&arena->lock);
        } else if (touched < inherited) {
            (void)pthread_mutex_unlock(&arena->lock);
            leat_os_step_touch(step_at(arena, touched++), false);
            (void)pthread_mutex_lock(&arena->lock);
        } else {
            (void)pthread_cond_wait(&arena->wake, &arena->lock);
        }
    }
    (void)pthread_mutex_unlock(&arena->lock);
    return NULL;
}

static void arena_ask(struct os_arena *arena, struct leat_arena_grow *grow, bool shrinks)
{
    LEAT_ASSERT(arena->growing == NULL);
    LEAT_ASSERT(grow->on_grown != NULL);
    arena->growing = grow;
    arena->shrinks = shrinks;
    arena->grown_mail.deliver = grown_deliver;
    if (!shrinks && arena->port.grown_bytes + LEAT_ARENA_STEP_BYTES > arena->port.limit_bytes) {
        grow->rc = LEAT_E_NO_MEMORY;
        leat_os_mail_push(arena->actor, &arena->grown_mail);
        return;
    }
    (void)pthread_mutex_lock(&arena->lock);
    arena->asked = true;
    (void)pthread_mutex_unlock(&arena->lock);
    (void)pthread_cond_signal(&arena->wake);
}

static void arena_grow(void *ctx, struct leat_arena_grow *grow)
{
    arena_ask(ctx, grow, false);
}

static void arena_shrink(void *ctx, struct leat_arena_grow *grow)
{
    arena_ask(ctx, grow, true);
}

/* ---- the pool file ---- */

/* The folder of the pool. An existing pool wins over free space: it may hold acked bytes. */
static leat_err pool_place(struct os_arena *arena, uint64_t limit_bytes, struct leat_error *error)
{
    char real[LEAT_OS_PATH_BYTES], local[LEAT_OS_PATH_BYTES + 8];
    if (!realpath(arena->actor->world->data_dir, real))
        return leat_error_set(error, LEAT_E_CONFIG, "can't resolve the data directory: %s",
                              strerror(errno));
    memcpy(arena->data_dir, real, strlen(real) + 1);
    snprintf(local, sizeof local, "%s/pool", real);
    if (strlen(local) >= sizeof arena->path)
        return leat_error_set(error, LEAT_E_CONFIG, "the data directory's path is too long");
    memcpy(arena->path, local, strlen(local) + 1);
    if (geteuid() >= SYSTEM_ACCOUNTS_END) return LEAT_OK;
    char name[POOL_NAME_BYTES];
    struct stat st;
    struct statvfs room;
    bool exists = false, named = leat_os_pool_name("/dev/shm", real, name, &exists);
    if (!exists && lstat(local, &st) == 0) return LEAT_OK;
    if (exists || (named && statvfs("/dev/shm", &room) == 0 &&
                   (uint64_t)room.f_bavail * room.f_frsize >= limit_bytes)) {
        snprintf(arena->path, sizeof arena->path, "/dev/shm/%s", name);
        return LEAT_OK;
    }
    leat_node_log_warn(
        "/dev/shm has no room for %llu MiB; the pool is a file in the data directory, "
        "where the kernel also writes it to disk",
        (unsigned long long)(limit_bytes >> 20));
    return LEAT_OK;
}

/* SUBTLE: this process has the lock on the data directory, so any other holder of the pool is about to end: killed a
 * moment ago, or this process before it started anew. Its mapping keeps the lock until the last reader of its memory
 * has let go (a ps is enough), which on a busy machine is after the next start. */
static bool pool_lock(int fd)
{
    for (unsigned left = POOL_LOCK_TRIES; flock(fd, LOCK_EX | LOCK_NB); left--) {
        if (errno != EWOULDBLOCK || left == 0) return false;
        (void)poll(NULL, 0, POOL_LOCK_MS);
    }
    return true;
}

static leat_err pool_open(struct os_arena *arena, struct leat_error *error)
{
    arena->fd = open(arena->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (arena->fd < 0)
        return leat_error_set(error, leat_os_errno(errno), "can't open the pool %.120s: %s",
                              arena->path, strerror(errno));
    struct stat st;
    /* All accounts may write to /dev/shm: never use a file of another account. */
    if (fstat(arena->fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return leat_error_set(error, LEAT_E_CONFIG, "the pool %.120s belongs to another account",
                              arena->path);
    if (!pool_lock(arena->fd))
        return leat_error_set(error, LEAT_E_LOCKED, "another process uses the pool %.120s",
                              arena->path);
    if (fallocate(arena->fd, 0, 0, POOL_HEADER_BYTES))
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no room for the pool %.120s: %s",
                              arena->path, strerror(errno));
    void *at = mmap(NULL, POOL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (at == MAP_FAILED) return leat_error_set(error, LEAT_E_NO_MEMORY, "can't map the pool");
    arena->header = at;
    struct statfs where;
    arena->in_memory = fstatfs(arena->fd, &where) == 0 && where.f_type == TMPFS_MAGIC_NUMBER;
    return LEAT_OK;
}

/* How many steps an earlier process of this boot left; 0 after making the pool anew. */
static leat_err pool_inherit(struct os_arena *arena, uint64_t *out_steps, struct leat_error *error)
{
    struct pool_header *header = arena->header;
    char boot_id[BOOT_ID_BYTES];
    leat_os_boot_id(boot_id);
    struct stat st;
    if (fstat(arena->fd, &st))
        return leat_error_set(error, LEAT_E_DISK, "can't read the pool: %s", strerror(errno));
    uint64_t bytes = st.st_size > POOL_DATA_OFFSET ? (uint64_t)st.st_size - POOL_DATA_OFFSET : 0;
    if (header->magic == POOL_MAGIC && header->version == POOL_VERSION && boot_id[0] &&
        memcmp(header->boot_id, boot_id, BOOT_ID_BYTES) == 0 &&
        header->steps <= bytes / LEAT_ARENA_STEP_BYTES) {
        *out_steps = header->steps;
        /* A step that was being made, or given back, when its process was killed. */
        if (ftruncate(arena->fd, (off_t)(POOL_DATA_OFFSET + header->steps * LEAT_ARENA_STEP_BYTES)))
            return leat_error_set(error, LEAT_E_DISK, "can't cut the pool: %s", strerror(errno));
        leat_os_pool_name_owner(arena->header, arena->data_dir);
        return LEAT_OK;
    }
    /* The magic goes last: a pool half made is made anew. */
    header->magic = 0;
    if (ftruncate(arena->fd, POOL_HEADER_BYTES))
        return leat_error_set(error, LEAT_E_DISK, "can't empty the pool: %s", strerror(errno));
    memset(header, 0, sizeof *header);
    header->version = POOL_VERSION;
    memcpy(header->boot_id, boot_id, BOOT_ID_BYTES);
    if (getrandom(header->pool_id, sizeof header->pool_id, 0) != (ssize_t)sizeof header->pool_id)
        return leat_error_set(error, LEAT_E_INTERNAL, "the kernel gives no random numbers");
    leat_os_pool_name_owner(arena->header, arena->data_dir);
    __atomic_store_n(&header->magic, POOL_MAGIC, __ATOMIC_RELEASE);
    *out_steps = 0;
    return LEAT_OK;
}

static leat_err pool_map(struct os_arena *arena, uint64_t limit_bytes, struct leat_error *error)
{
    uint64_t steps = 0;
    leat_err rc = pool_inherit(arena, &steps, error);
    if (rc) return rc;
    uint64_t inherited = steps * LEAT_ARENA_STEP_BYTES;
    /* A smaller limit than before must not lose the bytes past it. */
    uint64_t limit = inherited > limit_bytes ? inherited : limit_bytes;
    arena->reserved_bytes = limit + HUGE_PAGE_BYTES;
    arena->reserved = mmap(NULL, arena->reserved_bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena->reserved == MAP_FAILED) {
        arena->reserved = NULL;
        return leat_error_set(error, LEAT_E_NO_MEMORY, "can't reserve %llu MiB of addresses",
                              (unsigned long long)(limit >> 20));
    }
    arena->port.base =
        (uint8_t *)LEAT_ALIGN_UP((uintptr_t)arena->reserved, (uintptr_t)HUGE_PAGE_BYTES);
    arena->port.limit_bytes = limit;
    for (uint64_t step = 0; step < steps; step++) {
        if (leat_os_step_map(arena->fd, step, arena->port.base))
            return leat_error_set(error, LEAT_E_NO_MEMORY, "can't map the pool: %s",
                                  strerror(errno));
    }
    arena->port.grown_bytes = arena->port.inherited_bytes = inherited;
    memcpy(arena->port.pool_id, arena->header->pool_id, sizeof arena->port.pool_id);
    return LEAT_OK;
}

leat_err leat_os_arena_open(struct leat_os_world *world, unsigned number, uint64_t limit_bytes,
                            struct leat_error *error)
{
    LEAT_ASSERT_CMP(number, <, LEAT_ACTORS);
    struct os_actor *actor = world->actors[number];
    LEAT_ASSERT(actor != NULL && actor->arena == NULL);
    if (world->data_fd < 0)
        return leat_error_set(error, LEAT_E_CONFIG, "a pool needs a data directory");
    limit_bytes = LEAT_ALIGN_DOWN(limit_bytes, (uint64_t)LEAT_ARENA_STEP_BYTES);
    if (limit_bytes == 0)
        return leat_error_set(error, LEAT_E_CONFIG, "a pool takes at least %d MiB of memory",
                              LEAT_ARENA_STEP_BYTES >> 20);
    struct os_arena *arena = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *arena);
    if (!arena) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the pool");
    arena->actor = actor;
    arena->fd = -1;
    arena->port.ctx = arena;
    arena->port.grow = arena_grow;
    arena->port.shrink = arena_shrink;
    (void)pthread_mutex_init(&arena->lock, NULL);
    (void)pthread_cond_init(&arena->wake, NULL);
    (void)leat_os_pools_collect("/dev/shm", true);
    leat_err rc = pool_place(arena, limit_bytes, error);
    if (!rc) rc = pool_open(arena, error);
    if (!rc) rc = pool_map(arena, limit_bytes, error);
    if (!rc && pthread_create(&arena->grower, NULL, grower_main, arena))
        rc = leat_error_set(error, LEAT_E_NO_MEMORY, "can't start the pool's thread");
    if (rc) {
        leat_os_arena_close(arena);
        return rc;
    }
    arena->grower_started = true;
    actor->arena = arena;
    actor->env.arena = &arena->port;
    return LEAT_OK;
}

bool leat_os_arena_in_memory(const struct leat_os_world *world, unsigned number)
{
    const struct os_arena *arena = world->actors[number]->arena;
    return arena == NULL || arena->in_memory;
}

void leat_os_arena_discard(struct leat_os_world *world, unsigned number)
{
    LEAT_ASSERT_CMP(number, <, LEAT_ACTORS);
    LEAT_ASSERT(world->actors[number] != NULL);
    if (world->actors[number]->arena) world->actors[number]->arena->discard = true;
}

void leat_os_arena_stop(struct os_arena *arena)
{
    if (!arena->grower_started) return;
    (void)pthread_mutex_lock(&arena->lock);
    arena->stop = true;
    (void)pthread_mutex_unlock(&arena->lock);
    (void)pthread_cond_signal(&arena->wake);
    (void)pthread_join(arena->grower, NULL);
    arena->grower_started = false;
}

void leat_os_arena_close(struct os_arena *arena)
{
    leat_os_arena_stop(arena);
    if (arena->reserved) (void)munmap(arena->reserved, arena->reserved_bytes);
    if (arena->header) (void)munmap(arena->header, POOL_HEADER_BYTES);
    if (arena->fd >= 0) {
        if (arena->discard) (void)unlink(arena->path); /* if that fails it is inherited: harmless */
        (void)close(arena->fd);
    }
    (void)pthread_cond_destroy(&arena->wake);
    (void)pthread_mutex_destroy(&arena->lock);
    leat_mem_free(arena);
}
