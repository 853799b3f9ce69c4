/* SPDX-License-Identifier: Apache-2.0 */
/* The writer port over shared memory: stores into the mapped arena of a backup on this host.
 *
 * A write stores at once; its completion comes later in the same turn and is: full fence, then the
 * control word read again and found open. One fence serves all writes since the last. */
#include "os/rmem.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An arena as this process has it mapped, shared by its cores. Owner: the helper's thread, but for
 * the fields that never change and mapped_bytes. */
struct os_shm_map {
    struct leat_list link;
    unsigned refs;
    int fd;
    uint8_t id[LEAT_RMEM_ID_BYTES];
    struct rmem_header *header;
    uint8_t *base;
    uint64_t limit_bytes;
    _Atomic uint64_t mapped_bytes; /* raised by the helper, read by cores */
};

struct os_shm { /* one core's port */
    struct leat_rmem port;
    struct os_rmem *rmem;
    struct os_actor *actor;
    struct leat_list targets;
    unsigned count;
};

enum shm_job_kind { SHM_ATTACH, SHM_EXTEND, SHM_RELEASE };

struct os_shm_target {
    struct leat_rmem_target target;
    struct os_shm *shm;
    struct leat_list link;
    const struct leat_rmem_target_handler *handler;
    void *user;
    struct os_shm_map *map;
    struct leat_list stored;  /* their bytes are stored; completion owed */
    struct leat_list waiting; /* past what is mapped so far */
    struct leat_mail mail;
    struct os_job job;
    enum shm_job_kind job_kind;
    bool mailed, job_out, detached, told;
    struct leat_error error; /* why it fails; code 0: it does not */
    int process_fd;          /* readable when the host's process ends; -1: none */
    struct os_watch *watch;
    struct leat_rmem_address address;
    struct rmem_shm_grant grant;
    char path[RMEM_SHM_PATH_BYTES_MAX + 1];
    leat_err job_rc;
    struct leat_error job_error;
};

static struct os_shm_target *shm_of(struct leat_rmem_target *target)
{
    return LEAT_CONTAINER(target, struct os_shm_target, target);
}

static void target_mail(struct os_shm_target *shm)
{
    if (shm->mailed) return;
    shm->mailed = true;
    const struct leat_post *post = &shm->shm->actor->post;
    post->send(post->ctx, post->self, &shm->mail);
}

static void target_fail(struct os_shm_target *shm, leat_err rc, const char *text)
{
    if (shm->error.code == LEAT_OK) leat_error_set(&shm->error, rc, "%s", text);
    target_mail(shm);
}

/* ---- maps; on the helper's thread ---- */

static leat_err map_header_check(const struct os_shm_target *shm, const struct rmem_header *header,
                                 struct leat_error *error)
{
    if (header->pool.magic != POOL_MAGIC || header->magic != RMEM_MAGIC)
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%.150s is no arena", shm->path);
    if (header->version != RMEM_VERSION)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "%.120s is of format %u, this is %u",
                              shm->path, header->version, RMEM_VERSION);
    if (memcmp(header->pool.pool_id, shm->address.id, LEAT_RMEM_ID_BYTES) != 0 ||
        header->limit_bytes != shm->address.limit_bytes)
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%.150s is another arena now", shm->path);
    return LEAT_OK;
}

static leat_err map_file(const struct os_shm_target *shm, struct os_shm_map *map,
                         struct leat_error *error)
{
    struct stat st;
    map->fd = open(shm->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (map->fd < 0)
        return leat_error_set(
            error, LEAT_E_NOT_FOUND,
            "can't open %.120s: %s (another account, or another view of the files)", shm->path,
            strerror(errno));
    if (fstat(map->fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_size < POOL_DATA_OFFSET)
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%.120s belongs to another account",
                              shm->path);
    void *at = mmap(NULL, RMEM_HEADER_BYTES, PROT_READ, MAP_SHARED, map->fd, 0);
    if (at == MAP_FAILED) return leat_error_set(error, LEAT_E_NO_MEMORY, "can't map the arena");
    map->header = at;
    leat_err rc = map_header_check(shm, map->header, error);
    if (rc) return rc;
    map->limit_bytes = map->header->limit_bytes;
    map->base = leat_os_addresses_reserve(map->limit_bytes);
    if (!map->base) return leat_error_set(error, LEAT_E_NO_MEMORY, "can't map the arena");

    return LEAT_OK;
}

static void map_free(struct os_shm_map *map)
{
    if (map->base) (void)munmap(map->base, map->limit_bytes);
    if (map->header) (void)munmap(map->header, RMEM_HEADER_BYTES);
    if (map->fd >= 0) (void)close(map->fd);
    leat_list_remove(&map->link);
    leat_mem_free(map);
}

static void map_unref(struct os_shm_map *map)
{
    if (--map->refs == 0) map_free(map);
}

/* Maps all steps that the host has added. If the file is shorter than its header says (truncated from outside), bytes
 * after its end are not touched: SIGBUS would end the process. */
static leat_err map_extend(struct os_shm_map *map)
{
    struct stat st; /* asked for after the steps: their host makes the file longer first */
    uint64_t steps = __atomic_load_n(&map->header->pool.steps, __ATOMIC_ACQUIRE);
    if (fstat(map->fd, &st)) return LEAT_E_DISK;
    uint64_t most = map->limit_bytes / LEAT_ARENA_STEP_BYTES;
    uint64_t there = ((uint64_t)st.st_size - POOL_DATA_OFFSET) / LEAT_ARENA_STEP_BYTES;
    uint64_t step = atomic_load(&map->mapped_bytes) / LEAT_ARENA_STEP_BYTES;
    for (; step < steps && step < most; step++) {
        if (st.st_size < POOL_DATA_OFFSET || step >= there) return LEAT_E_DAMAGED;
        leat_err rc = leat_os_step_map(map->fd, step, map->base);
        if (rc) return rc;
        leat_os_step_touch(map->base + step * LEAT_ARENA_STEP_BYTES, false);
        atomic_store(&map->mapped_bytes, (step + 1) * LEAT_ARENA_STEP_BYTES);
    }
    return LEAT_OK;
}

static leat_err map_refusal(const struct os_shm_target *shm, leat_err rc, struct leat_error *error)
{
    return leat_error_set(error, rc, "can't map %.120s: %s", shm->path,
                          rc == LEAT_E_DAMAGED ? "the file has been cut" : leat_err_text(rc));
}

static leat_err map_get(struct os_shm_target *shm, struct leat_error *error)
{
    struct os_rmem *rmem = shm->shm->rmem;
    LEAT_LIST_EACH(&rmem->maps, link)
    {
        struct os_shm_map *map = LEAT_CONTAINER(link, struct os_shm_map, link);
        if (memcmp(map->id, shm->address.id, LEAT_RMEM_ID_BYTES) != 0) continue;
        if (map->limit_bytes != shm->address.limit_bytes)
            return leat_error_set(error, LEAT_E_INVALID, "the grant lies about the arena's size");
        map->refs++;
        shm->map = map;
        return LEAT_OK;
    }
    struct os_shm_map *map = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *map);
    if (!map) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to map an arena");
    map->fd = -1;
    map->refs = 1;
    memcpy(map->id, shm->address.id, LEAT_RMEM_ID_BYTES);
    leat_list_push_back(&rmem->maps, &map->link);
    leat_err rc = map_file(shm, map, error);
    if (rc)
        map_unref(map);
    else
        shm->map = map;
    return rc;
}

static int process_open(const struct rmem_shm_grant *grant)
{
    uint64_t started, space;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)grant->pid, 0);
    if (fd < 0) return -1; /* an old kernel, or gone: the file's lock says which */
    leat_os_process_identity((long)grant->pid, &started, &space);
    if (space == grant->pid_space && started == grant->process_started) return fd;
    (void)close(fd); /* the process number means another process here */
    return -1;
}

static void attach_run(struct os_job *job)
{
    struct os_shm_target *shm = LEAT_CONTAINER(job, struct os_shm_target, job);
    struct leat_error *error = &shm->job_error;
    shm->process_fd = process_open(&shm->grant);
    shm->job_rc = map_get(shm, error);
    if (!shm->job_rc && flock(shm->map->fd, LOCK_SH | LOCK_NB) == 0) {
        (void)flock(shm->map->fd, LOCK_UN);
        shm->job_rc = leat_error_set(error, LEAT_E_CLOSED, "the process that made %.120s has ended",
                                     shm->path);
    }
    if (!shm->job_rc && atomic_load(&shm->map->header->control) != RMEM_OPEN)
        shm->job_rc = leat_error_set(error, LEAT_E_CANCELLED, "the backup has revoked the arena");
    leat_err rc = shm->job_rc ? LEAT_OK : map_extend(shm->map);
    if (rc) shm->job_rc = map_refusal(shm, rc, error);
}

static void extend_run(struct os_job *job)
{
    struct os_shm_target *shm = LEAT_CONTAINER(job, struct os_shm_target, job);
    shm->job_rc = map_extend(shm->map);
    if (shm->job_rc) (void)map_refusal(shm, shm->job_rc, &shm->job_error);
}

static void release_run(struct os_job *job)
{
    struct os_shm_target *shm = LEAT_CONTAINER(job, struct os_shm_target, job);
    if (shm->map) map_unref(shm->map);
    shm->map = NULL;
    if (shm->process_fd >= 0) (void)close(shm->process_fd);
    shm->process_fd = -1;
}

/* ---- a target's life ---- */

static void job_deliver(void *actor, struct leat_mail *mail);

static void job_start(struct os_shm_target *shm, enum shm_job_kind kind)
{
    static void (*const runs[])(struct os_job *) = {attach_run, extend_run, release_run};
    LEAT_ASSERT(!shm->job_out);
    shm->job_out = true;
    shm->job_kind = kind;
    shm->job =
        (struct os_job){.run = runs[kind], .actor = shm->shm->actor, .mail.deliver = job_deliver};
    leat_os_job_start(shm->shm->rmem, &shm->job);
}

static void target_free(struct os_shm_target *shm)
{
    leat_list_remove(&shm->link);
    shm->shm->count--;
    leat_mem_free(shm);
}

/* Detached, and nothing of it is on its way: give the map back, then go. */
static void target_leave(struct os_shm_target *shm)
{
    if (!shm->detached || shm->mailed || shm->job_out) return;
    leat_os_watch_close(&shm->watch);
    job_start(shm, SHM_RELEASE);
}

static void on_process_end(void *user)
{
    struct os_shm_target *shm = user;
    leat_os_watch_close(&shm->watch);
    target_fail(shm, LEAT_E_CLOSED, "the backup's process has ended");
}

static void attached(struct os_shm_target *shm)
{
    if (shm->process_fd >= 0)
        shm->watch = leat_os_watch_open(shm->shm->actor, shm->process_fd, on_process_end, shm);
    shm->target.attached = true;
    shm->handler->on_attached(shm->user, &shm->target);
}

static void store(struct os_shm_target *shm, struct leat_rmem_write *write)
{
    uint8_t *at = shm->map->base + write->offset;
    for (unsigned i = 0; i < write->iov_count; i++) {
        memcpy(at, write->iovs[i].base, write->iovs[i].bytes);
        at += write->iovs[i].bytes;
    }
    leat_list_push_back(&shm->stored, &write->list);
    target_mail(shm);
}

/* Stores the writes that the mapping reaches now; the first write past the host's steps fails the target. */
static void waiting_store(struct os_shm_target *shm)
{
    uint64_t mapped = atomic_load(&shm->map->mapped_bytes);
    while (!leat_list_empty(&shm->waiting)) {
        struct leat_rmem_write *write =
            LEAT_CONTAINER(shm->waiting.next, struct leat_rmem_write, list);
        if (write->offset + write->bytes > mapped) break;
        leat_list_remove(&write->list);
        store(shm, write);
    }
    if (!leat_list_empty(&shm->waiting))
        target_fail(shm, LEAT_E_OFFSET_OUT_OF_RANGE, "a write past what the arena has grown to");
}

static void job_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct os_job *job = LEAT_CONTAINER(mail, struct os_job, mail);
    struct os_shm_target *shm = LEAT_CONTAINER(job, struct os_shm_target, job);
    shm->job_out = false;
    if (shm->job_kind == SHM_RELEASE) {
        target_free(shm);
        return;
    }
    if (shm->job_rc)
        target_fail(shm, shm->job_rc, shm->job_error.text);
    else if (shm->job_kind == SHM_ATTACH && !shm->detached)
        attached(shm);
    else if (shm->job_kind == SHM_EXTEND && !shm->detached && shm->error.code == LEAT_OK)
        waiting_store(shm);
    target_leave(shm);
}

static void writes_end(struct leat_list *writes, leat_err rc)
{
    while (!leat_list_empty(writes)) {
        struct leat_list *first = leat_list_pop_front(writes);
        struct leat_rmem_write *write = LEAT_CONTAINER(first, struct leat_rmem_write, list);
        write->on_done(write, rc);
    }
}

static void list_move(struct leat_list *from, struct leat_list *to)
{
    leat_list_init(to);
    while (!leat_list_empty(from))
        leat_list_push_back(to, leat_list_pop_front(from));
}

static void target_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct os_shm_target *shm = LEAT_CONTAINER(mail, struct os_shm_target, mail);
    struct leat_list stored;
    list_move(&shm->stored, &stored); /* on_done may write more: for another fence */
    leat_err rc = LEAT_OK;
    if (!leat_list_empty(&stored)) {
        /* SUBTLE: see host_revoke(): the stores, the fence, then the word. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&shm->map->header->control) != RMEM_OPEN) {
            rc = LEAT_E_CANCELLED;
            if (shm->error.code == LEAT_OK)
                leat_error_set(&shm->error, rc, "the backup has revoked the arena");
        }
    }
    if (shm->error.code) shm->target.failed = true;
    writes_end(&stored, rc);
    if (shm->error.code) {
        /* Stored before the target failed by itself, between two turns: not asked for any more. */
        writes_end(&shm->stored, shm->error.code);
        writes_end(&shm->waiting, shm->error.code);
    } else if (shm->detached) {
        writes_end(&shm->waiting, LEAT_E_CANCELLED);
    }
    shm->mailed = false;
    if (!leat_list_empty(&shm->stored)) target_mail(shm);
    if (shm->error.code && !shm->told && !shm->detached) {
        shm->told = true;
        leat_os_watch_close(&shm->watch);
        shm->handler->on_failed(shm->user, &shm->target, &shm->error);
    }
    target_leave(shm);
}

/* ---- the port ---- */

/* SUBTLE: opening a file can have effects. A peer may name a file of another kind (a watchdog's device, a tape): this
 * process, which may run as root, would open this file for writing, even if a later check refuses it. */
static bool path_is_an_arenas(const char *path)
{
    const char *name = strrchr(path, '/');
    return path[0] == '/' && strncmp(name + 1, LEAT_OS_RMEM_FILE, strlen(LEAT_OS_RMEM_FILE)) == 0;
}

static leat_err grant_read(struct os_shm_target *shm, const struct leat_rmem_grant *grant,
                           struct leat_error *error)
{
    size_t bytes = 0;
    const uint8_t *body = leat_rmem_grant_find(grant, LEAT_RMEM_SHM, &bytes);
    if (!body) return leat_error_set(error, LEAT_E_UNSUPPORTED, "the backup does not offer shm");
    if (leat_rmem_grant_address(grant, &shm->address) || bytes < sizeof shm->grant)
        return leat_error_set(error, LEAT_E_INVALID, "the grant can't be read");
    memcpy(&shm->grant, body, sizeof shm->grant);
    size_t path_bytes = shm->grant.path_bytes;
    if (path_bytes != bytes - sizeof shm->grant || path_bytes > RMEM_SHM_PATH_BYTES_MAX)
        return leat_error_set(error, LEAT_E_INVALID, "the grant can't be read");
    memcpy(shm->path, body + sizeof shm->grant, path_bytes);
    if (!path_is_an_arenas(shm->path))
        return leat_error_set(error, LEAT_E_INVALID, "the grant names no arena's file");
    const struct os_rmem *rmem = shm->shm->rmem;
    if (!rmem->boot_id[0] || memcmp(shm->grant.boot_id, rmem->boot_id, BOOT_ID_BYTES) != 0)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "shm reaches only backups on the same host: this one is on another, "
                              "or was before a reboot");
    return LEAT_OK;
}

static leat_err shm_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                           const struct leat_rmem_target_handler *handler, void *user,
                           struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct os_shm *port = ctx;
    (void)node;
    if (port->count == LEAT_RMEM_TARGETS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "%d targets are attached already",
                              LEAT_RMEM_TARGETS_MAX);
    struct os_shm_target *shm = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *shm);
    if (!shm) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to attach an arena");
    shm->shm = port;
    shm->process_fd = -1;
    leat_err rc = grant_read(shm, grant, error);
    if (rc) {
        leat_mem_free(shm);
        return rc;
    }
    shm->target.port = &port->port;
    shm->target.kind = LEAT_RMEM_SHM;
    shm->handler = handler;
    shm->user = user;
    shm->mail.deliver = target_deliver;
    leat_list_init(&shm->stored);
    leat_list_init(&shm->waiting);
    leat_list_push_back(&port->targets, &shm->link);
    port->count++;
    job_start(shm, SHM_ATTACH);
    *out_target = &shm->target;
    return LEAT_OK;
}

static leat_err shm_write(struct leat_rmem_target *target, struct leat_rmem_write *write)
{
    struct os_shm_target *shm = shm_of(target);
    if (shm->detached || shm->error.code) return LEAT_E_CLOSED;
    leat_err rc = leat_rmem_write_check(target, write, shm->address.limit_bytes);
    if (rc) return rc;
    if (leat_list_empty(&shm->waiting) &&
        write->offset + write->bytes <= atomic_load(&shm->map->mapped_bytes)) {
        store(shm, write);
        return LEAT_OK;
    }
    leat_list_push_back(&shm->waiting, &write->list);
    if (!shm->job_out) job_start(shm, SHM_EXTEND);
    return LEAT_OK;
}

static void shm_detach(struct leat_rmem_target *target)
{
    struct os_shm_target *shm = shm_of(target);
    LEAT_ASSERT(!shm->detached);
    shm->detached = true;
    target_mail(shm); /* ends what waits, then leaves */
}

static const struct leat_rmem port_functions = {
    .kind = LEAT_RMEM_SHM,
    .attach = shm_attach,
    .write = shm_write,
    .detach = shm_detach,
};

size_t leat_os_shm_grant(const struct os_rmem_arena *arena, uint8_t out[RMEM_SECTION_BYTES])
{
    size_t path_bytes = strlen(arena->path);
    if (path_bytes > RMEM_SHM_PATH_BYTES_MAX) return 0; /* the writer falls back or says so */
    struct rmem_shm_grant grant = {.process_started = arena->rmem->process_started,
                                   .pid_space = arena->rmem->pid_space,
                                   .pid = (uint32_t)getpid(),
                                   .path_bytes = (uint32_t)path_bytes};
    memcpy(grant.boot_id, arena->rmem->boot_id, BOOT_ID_BYTES);
    memcpy(out, &grant, sizeof grant);
    memcpy(out + sizeof grant, arena->path, path_bytes);
    return sizeof grant + path_bytes;
}

/* ---- life ---- */

leat_err leat_os_shm_open(struct os_rmem *rmem, struct os_actor *actor)
{
    struct os_shm *port = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *port);
    if (!port) return LEAT_E_NO_MEMORY;
    port->port = port_functions;
    port->port.ctx = port;
    port->rmem = rmem;
    port->actor = actor;
    leat_list_init(&port->targets);
    rmem->shm[actor->number] = port;
    unsigned slot = 0;
    while (actor->env.rmems[slot])
        slot++;
    LEAT_ASSERT_CMP(slot, <, (unsigned)LEAT_ENV_RMEMS);
    actor->env.rmems[slot] = &port->port;
    return LEAT_OK;
}

/* Its thread and the helper's are joined. */
void leat_os_shm_close(struct os_rmem *rmem, struct os_actor *actor)
{
    struct os_shm *port = actor->number < LEAT_CORES_MAX ? rmem->shm[actor->number] : NULL;
    if (!port) return;
    while (!leat_list_empty(&port->targets)) {
        struct os_shm_target *shm = LEAT_CONTAINER(port->targets.next, struct os_shm_target, link);
        leat_os_watch_close(&shm->watch);
        release_run(&shm->job);
        target_free(shm);
    }
    rmem->shm[actor->number] = NULL;
    leat_mem_free(port);
}

void leat_os_shm_maps_close(struct os_rmem *rmem)
{
    LEAT_ASSERT(leat_list_empty(&rmem->maps)); /* every target gave its own back */
}
