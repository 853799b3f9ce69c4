/* SPDX-License-Identifier: Apache-2.0 */
/* The host port: arenas of named memory that other nodes write into. */
#include "os/rmem.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static struct os_rmem_arena *arena_of(const struct leat_rmem_arena *port)
{
    return LEAT_CONTAINER(port, struct os_rmem_arena, port);
}

/* ---- making and freeing ---- */

/* A struct with reserved addresses and a place in the table. */
static struct os_rmem_arena *arena_make(struct os_rmem *rmem, uint64_t limit_bytes,
                                        leat_err *out_rc)
{
    unsigned slot = 0;
    while (slot < LEAT_RMEM_ARENAS_MAX && rmem->arenas[slot])
        slot++;
    *out_rc = slot == LEAT_RMEM_ARENAS_MAX ? LEAT_E_TOO_MANY : LEAT_E_NO_MEMORY;
    if (slot == LEAT_RMEM_ARENAS_MAX) return NULL;
    struct os_rmem_arena *arena = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *arena);
    if (!arena) return NULL;
    void *base = leat_os_addresses_reserve(limit_bytes);
    if (!base) {
        leat_mem_free(arena);
        return NULL;
    }
    arena->rmem = rmem;
    arena->fd = -1;
    arena->port.base = base;
    arena->port.limit_bytes = limit_bytes;
    arena->port.number = rmem->generation[slot]++ * LEAT_RMEM_ARENAS_MAX + slot + 1;
    (void)pthread_mutex_lock(&rmem->lock);
    rmem->arenas[slot] = arena;
    (void)pthread_mutex_unlock(&rmem->lock);
    return arena;
}

static void arena_unlist(struct os_rmem_arena *arena)
{
    struct os_rmem *rmem = arena->rmem;
    (void)pthread_mutex_lock(&rmem->lock);
    rmem->arenas[(arena->port.number - 1) % LEAT_RMEM_ARENAS_MAX] = NULL;
    (void)pthread_mutex_unlock(&rmem->lock);
}

static void arena_free(struct os_rmem_arena *arena)
{
    leat_os_verbs_release(arena);
    (void)munmap(arena->port.base, arena->port.limit_bytes);
    if (arena->header) (void)munmap(arena->header, RMEM_HEADER_BYTES);
    if (arena->fd >= 0) (void)close(arena->fd);
    leat_mem_free(arena);
}

static leat_err host_open(void *ctx, const char *writer, uint64_t writer_incarnation,
                          uint64_t limit_bytes, struct leat_rmem_arena **out_arena,
                          struct leat_error *error)
{
    struct os_rmem *rmem = ctx;
    LEAT_ASSERT(limit_bytes > 0 && limit_bytes % LEAT_ARENA_STEP_BYTES == 0);
    LEAT_ASSERT_CMP(limit_bytes / LEAT_ARENA_STEP_BYTES, <=, (uint64_t)LEAT_RMEM_STEPS_MAX);
    LEAT_ASSERT_CMP(strlen(writer), <=, (size_t)LEAT_RMEM_NAME_BYTES_MAX);
    leat_err rc;
    struct os_rmem_arena *arena = arena_make(rmem, limit_bytes, &rc);
    if (!arena)
        return leat_error_set(error, rc, "no arena for node %.100s: %s", writer, leat_err_text(rc));
    memcpy(arena->port.writer, writer, strlen(writer) + 1);
    arena->port.writer_incarnation = writer_incarnation;
    if (getrandom(arena->port.id, sizeof arena->port.id, 0) != (ssize_t)sizeof arena->port.id) {
        arena_unlist(arena);
        arena_free(arena);
        return leat_error_set(error, LEAT_E_INTERNAL, "the kernel gives no random numbers");
    }
    *out_arena = &arena->port;
    return LEAT_OK;
}

/* ---- the file; on the helper's thread ---- */

static void id_text(const uint8_t id[LEAT_RMEM_ID_BYTES], char out[2 * LEAT_RMEM_ID_BYTES + 1])
{
    for (unsigned i = 0; i < LEAT_RMEM_ID_BYTES; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", id[i]);
}

static leat_err header_map(struct os_rmem_arena *arena)
{
    void *at = mmap(NULL, RMEM_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (at == MAP_FAILED) return LEAT_E_NO_MEMORY;
    arena->header = at;
    return LEAT_OK;
}

static void header_write(struct os_rmem_arena *arena)
{
    struct os_rmem *rmem = arena->rmem;
    struct rmem_header *header = arena->header;
    header->pool.version = POOL_VERSION;
    memcpy(header->pool.boot_id, rmem->boot_id, BOOT_ID_BYTES);
    memcpy(header->pool.pool_id, arena->port.id, LEAT_RMEM_ID_BYTES);
    leat_os_pool_name_owner(&header->pool, rmem->data_dir);
    header->version = RMEM_VERSION;
    header->limit_bytes = arena->port.limit_bytes;
    header->writer_incarnation = arena->port.writer_incarnation;
    memcpy(header->writer, arena->port.writer, sizeof header->writer);
    atomic_store(&header->control, RMEM_OPEN);
    header->magic = RMEM_MAGIC;
    /* Last: a half made file is no arena. */
    __atomic_store_n(&header->pool.magic, POOL_MAGIC, __ATOMIC_RELEASE);
}

static leat_err file_make(struct os_rmem_arena *arena, struct leat_error *error)
{
    struct os_rmem *rmem = arena->rmem;
    char id[2 * LEAT_RMEM_ID_BYTES + 1];
    id_text(arena->port.id, id);
    int length =
        snprintf(arena->path, sizeof arena->path, "%.3900s/" LEAT_OS_RMEM_FILE "%016llx-%s",
                 rmem->folder, (unsigned long long)leat_os_path_hash(rmem->data_dir), id);
    LEAT_ASSERT(length > 0 && (size_t)length < sizeof arena->path);
    int fd = open(arena->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "can't make %.120s: %s", arena->path,
                              strerror(errno));
    arena->fd = fd;
    leat_err rc = LEAT_OK;
    /* The lock tells writers that the host lives. Only writers test it. */
    if (flock(fd, LOCK_EX | LOCK_NB) || fallocate(fd, 0, 0, RMEM_HEADER_BYTES) || header_map(arena))
        rc = leat_error_set(error, LEAT_E_NO_MEMORY, "no room for %.120s: %s", arena->path,
                            strerror(errno));
    if (!rc) {
        header_write(arena);
        return LEAT_OK;
    }
    (void)unlink(arena->path); /* else the next start does */
    (void)close(fd);
    arena->fd = -1;
    return rc;
}

static void grow_run(struct os_job *job)
{
    struct os_rmem_arena *arena = LEAT_CONTAINER(job, struct os_rmem_arena, job);
    struct leat_rmem_grow *grow = arena->growing;
    uint64_t step = arena->port.grown_bytes / LEAT_ARENA_STEP_BYTES;
    grow->rc = arena->header ? LEAT_OK : file_make(arena, &grow->error);
    if (grow->rc) return;
    grow->rc = leat_os_step_grow(arena->fd, step, arena->port.base, arena->rmem->in_memory);
    if (grow->rc) {
        leat_error_set(&grow->error, grow->rc,
                       "no room in %.100s for %d MiB of other nodes' segments (see df %.60s)",
                       arena->rmem->folder, LEAT_ARENA_STEP_BYTES >> 20, arena->rmem->folder);
        return;
    }
    leat_os_verbs_step(arena, step);
    __atomic_store_n(&arena->header->pool.steps, step + 1, __ATOMIC_RELEASE);
}

static void free_run(struct os_job *job)
{
    arena_free(LEAT_CONTAINER(job, struct os_rmem_arena, job));
}

static void retire_finish(struct os_rmem_arena *arena)
{
    if (arena->path[0]) (void)unlink(arena->path); /* if that fails the next start does it */
    arena_unlist(arena);
    arena->job = (struct os_job){.run = free_run};
    leat_os_job_start(arena->rmem, &arena->job);
}

static void grown_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct os_job *job = LEAT_CONTAINER(mail, struct os_job, mail);
    struct os_rmem_arena *arena = LEAT_CONTAINER(job, struct os_rmem_arena, job);
    struct leat_rmem_grow *grow = arena->growing;
    arena->growing = NULL;
    arena->job_out = false;
    if (arena->retired) {
        retire_finish(arena); /* the file may be younger than retire() */
        return;
    }
    if (grow->rc == LEAT_OK) {
        arena->port.grown_bytes += LEAT_ARENA_STEP_BYTES;
        /* Revoked while the file was being made. */
        if (arena->port.revoked) atomic_store(&arena->header->control, RMEM_REVOKED);
    }
    grow->on_grown(grow);
}

static void limit_run(struct os_job *job)
{
    struct os_rmem_arena *arena = LEAT_CONTAINER(job, struct os_rmem_arena, job);
    arena->growing->rc = leat_error_set(&arena->growing->error, LEAT_E_NO_MEMORY,
                                        "the memory for segments of node %.100s is at its limit",
                                        arena->port.writer);
}

static void host_grow(void *ctx, struct leat_rmem_arena *port, struct leat_rmem_grow *grow)
{
    struct os_rmem *rmem = ctx;
    struct os_rmem_arena *arena = arena_of(port);
    LEAT_ASSERT(arena->growing == NULL && grow->on_grown != NULL);
    LEAT_ASSERT(!port->revoked);
    arena->growing = grow;
    arena->job_out = true;
    bool room = port->grown_bytes + LEAT_ARENA_STEP_BYTES <= port->limit_bytes;
    arena->job = (struct os_job){.run = room ? grow_run : limit_run,
                                 .actor = rmem->host_actor,
                                 .mail.deliver = grown_deliver};
    leat_os_job_start(rmem, &arena->job);
}

/* ---- grants ---- */

static void host_grant(void *ctx, const struct leat_rmem_arena *port,
                       struct leat_rmem_grant *out_grant)
{
    struct os_rmem *rmem = ctx;
    const struct os_rmem_arena *arena = arena_of(port);
    LEAT_ASSERT(port->grown_bytes > 0);
    struct leat_rmem_address address = {.limit_bytes = port->limit_bytes, .number = port->number};
    memcpy(address.id, port->id, sizeof address.id);
    uint8_t body[RMEM_SECTION_BYTES];
    *out_grant = (struct leat_rmem_grant){0};
    bool fits = leat_rmem_grant_add(out_grant, LEAT_RMEM_NONE, &address, sizeof address);
    size_t bytes = rmem->host.kinds & 1u << LEAT_RMEM_SHM ? leat_os_shm_grant(arena, body) : 0;
    if (bytes) fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_SHM, body, bytes);
    bytes = leat_os_verbs_grant(arena, body);
    if (bytes) fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_VERBS, body, bytes);
    fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_TCP, "", 0);
    fits = fits && leat_rmem_grant_add(out_grant, LEAT_RMEM_RPC, "", 0);
    LEAT_ASSERT(fits);
}

/* ---- revoking ---- */

/* SUBTLE: a writer of this host stores its bytes, then fences, then reads the control word. Here the
 * word is written, then fenced, then (by the caller, after this) the bytes are read. So for every
 * write either the writer sees the word, and does not count it as done, or the copy has its bytes.
 * Writes that come as messages are between enter() and leave() under `lock`; writes by RDMA end with
 * their queue pair. */
static void host_revoke(void *ctx, struct leat_rmem_arena *port)
{
    struct os_rmem *rmem = ctx;
    struct os_rmem_arena *arena = arena_of(port);
    if (port->revoked) return;
    (void)pthread_mutex_lock(&rmem->lock);
    port->revoked = true;
    while (arena->pins > 0) /* a core is copying a message in: at most LEAT_RMEM_WRITE_BYTES_MAX */
        (void)pthread_cond_wait(&rmem->unpinned, &rmem->lock);
    (void)pthread_mutex_unlock(&rmem->lock);
    /* While the first step is made no writer has a grant, and grown_deliver() writes the control word. */
    if (port->grown_bytes > 0) atomic_store(&arena->header->control, RMEM_REVOKED);
    atomic_thread_fence(memory_order_seq_cst);
    leat_os_verbs_revoke(arena);
}

static void host_retire(void *ctx, struct leat_rmem_arena *port)
{
    struct os_rmem_arena *arena = arena_of(port);
    host_revoke(ctx, port);
    arena->retired = true;
    if (!arena->job_out) retire_finish(arena);
}

/* ---- bytes that come as messages; any thread ---- */

static leat_err host_enter(void *ctx, const struct leat_rmem_from *from,
                           const struct leat_rmem_address *address, uint64_t offset, uint64_t bytes,
                           uint8_t **out_at)
{
    struct os_rmem *rmem = ctx;
    leat_err rc = LEAT_OK;
    (void)pthread_mutex_lock(&rmem->lock);
    struct os_rmem_arena *arena = leat_os_rmem_arena_locked(rmem, address);
    uint64_t steps =
        arena && arena->header ? __atomic_load_n(&arena->header->pool.steps, __ATOMIC_ACQUIRE) : 0;
    uint64_t grown = steps * LEAT_ARENA_STEP_BYTES;
    if (!arena)
        rc = LEAT_E_NOT_FOUND;
    else if (!leat_rmem_is_writer(&arena->port, from))
        rc = LEAT_E_DENIED;
    else if (arena->port.revoked)
        rc = LEAT_E_CANCELLED;
    else if (offset > grown || bytes > grown - offset)
        rc = LEAT_E_OFFSET_OUT_OF_RANGE;
    else
        arena->pins++;
    (void)pthread_mutex_unlock(&rmem->lock);
    if (!rc) *out_at = arena->port.base + offset;
    return rc;
}

static leat_err host_leave(void *ctx, const struct leat_rmem_address *address)
{
    struct os_rmem *rmem = ctx;
    (void)pthread_mutex_lock(&rmem->lock);
    struct os_rmem_arena *arena = leat_os_rmem_arena_locked(rmem, address);
    LEAT_ASSERT(arena != NULL && arena->pins > 0);
    bool revoked = arena->port.revoked;
    if (--arena->pins == 0 && revoked) (void)pthread_cond_broadcast(&rmem->unpinned);
    (void)pthread_mutex_unlock(&rmem->lock);
    return revoked ? LEAT_E_CANCELLED : LEAT_OK;
}

/* ---- what an earlier process left ---- */

static bool header_good(const struct os_rmem *rmem, const struct rmem_header *header,
                        uint64_t file_bytes)
{
    uint64_t limit = header->limit_bytes, steps = header->pool.steps;
    return header->pool.magic == POOL_MAGIC && header->pool.version == POOL_VERSION &&
           header->magic == RMEM_MAGIC && header->version == RMEM_VERSION && rmem->boot_id[0] &&
           memcmp(header->pool.boot_id, rmem->boot_id, BOOT_ID_BYTES) == 0 && limit > 0 &&
           limit % LEAT_ARENA_STEP_BYTES == 0 &&
           limit / LEAT_ARENA_STEP_BYTES <= LEAT_RMEM_STEPS_MAX && steps > 0 &&
           steps <= limit / LEAT_ARENA_STEP_BYTES && file_bytes >= POOL_DATA_OFFSET &&
           steps <= (file_bytes - POOL_DATA_OFFSET) / LEAT_ARENA_STEP_BYTES &&
           memchr(header->writer, 0, sizeof header->writer) != NULL;
}

static leat_err inherit_mapped(struct os_rmem *rmem, int fd, const char *path,
                               struct rmem_header *header)
{
    leat_err rc;
    struct os_rmem_arena *arena = arena_make(rmem, header->limit_bytes, &rc);
    if (!arena) return rc;
    arena->fd = fd;
    arena->header = header;
    arena->port.inherited = arena->port.revoked = true;
    arena->port.writer_incarnation = header->writer_incarnation;
    memcpy(arena->port.writer, header->writer, sizeof header->writer);
    memcpy(arena->port.id, header->pool.pool_id, LEAT_RMEM_ID_BYTES);
    memcpy(arena->path, path, strlen(path) + 1);
    /* Writers that outlived this node's earlier process must not take its memory for a backup's. */
    atomic_store(&header->control, RMEM_REVOKED);
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t steps = header->pool.steps;
    for (uint64_t step = 0; step < steps; step++)
        if (leat_os_step_map(fd, step, arena->port.base)) return LEAT_E_NO_MEMORY;
    arena->port.grown_bytes = steps * LEAT_ARENA_STEP_BYTES;
    return LEAT_OK;
}

static leat_err inherit(struct os_rmem *rmem, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0) return LEAT_OK; /* another account's, or gone */
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        (void)close(fd);
        return LEAT_OK;
    }
    void *at = st.st_size >= RMEM_HEADER_BYTES
                   ? mmap(NULL, RMEM_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    if (at != MAP_FAILED && header_good(rmem, at, (uint64_t)st.st_size))
        return inherit_mapped(rmem, fd, path, at);
    if (at != MAP_FAILED) (void)munmap(at, RMEM_HEADER_BYTES);
    (void)close(fd);
    if (unlink(path)) leat_node_log_warn("can't remove %.120s: %s", path, strerror(errno));
    return LEAT_OK;
}

static leat_err inherit_folder(struct os_rmem *rmem, const char *folder)
{
    char prefix[64], path[LEAT_OS_PATH_BYTES];
    int length = snprintf(prefix, sizeof prefix, LEAT_OS_RMEM_FILE "%016llx-",
                          (unsigned long long)leat_os_path_hash(rmem->data_dir));
    leat_err rc = LEAT_OK;
    DIR *dir = opendir(folder);
    if (!dir) return LEAT_OK;
    for (struct dirent *entry = readdir(dir); entry && !rc; entry = readdir(dir)) {
        if (strncmp(entry->d_name, prefix, (size_t)length) != 0) continue;
        snprintf(path, sizeof path, "%.3800s/%.200s", folder, entry->d_name);
        rc = inherit(rmem, path);
    }
    (void)closedir(dir);
    return rc;
}

static void host_each_inherited(void *ctx, void (*each)(void *arg, struct leat_rmem_arena *arena),
                                void *arg)
{
    struct os_rmem *rmem = ctx;
    for (unsigned i = 0; i < LEAT_RMEM_ARENAS_MAX; i++)
        if (rmem->arenas[i] && rmem->arenas[i]->port.inherited) each(arg, &rmem->arenas[i]->port);
}

/* ---- life ---- */

leat_err leat_os_rmem_host_open(struct os_rmem *rmem, struct leat_error *error)
{
    (void)leat_os_pools_collect("/dev/shm", false); /* the pool is opened later, and tells */
    leat_err rc = inherit_folder(rmem, "/dev/shm");
    if (!rc) rc = inherit_folder(rmem, rmem->data_dir);
    if (rc)
        return leat_error_set(error, rc, "can't map what an earlier process left in %.100s: %s",
                              rmem->folder, leat_err_text(rc));
    rmem->host = (struct leat_rmem_host){
        .ctx = rmem,
        .kinds = 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_RPC,
        .open = host_open,
        .grow = host_grow,
        .grant = host_grant,
        .revoke = host_revoke,
        .retire = host_retire,
        .each_inherited = host_each_inherited,
        .enter = host_enter,
        .leave = host_leave,
    };
    rmem->host_actor->env.rmem_host = &rmem->host;
    return LEAT_OK;
}

/* Files stay: the next process inherits what was not retired. */
void leat_os_rmem_host_close(struct os_rmem *rmem)
{
    for (unsigned i = 0; i < LEAT_RMEM_ARENAS_MAX; i++) {
        struct os_rmem_arena *arena = rmem->arenas[i];
        rmem->arenas[i] = NULL;
        if (!arena) continue;
        leat_os_verbs_revoke(arena); /* no process, no queue pairs */
        if (arena->retired && arena->path[0]) (void)unlink(arena->path);
        arena_free(arena);
    }
}
