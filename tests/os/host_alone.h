/* SPDX-License-Identifier: Apache-2.0 */
/* os/rmem_host.c alone: the system's calls and what it calls of os/ are played here (--wrap), each is a line of the
 * trace, and a test may have the n-th of a kind refused. Locks are '<' and '>' there. For one test program only. */
#ifndef LEAT_TESTS_OS_HOST_ALONE_H
#define LEAT_TESTS_OS_HOST_ALONE_H

#include "os/rmem.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

#define STEP  ((uint64_t)LEAT_ARENA_STEP_BYTES)
#define FIRST UINT64_C(0x1000000000) /* between the addresses of two arenas, and before the first */

enum call { OPEN, LOCK, ALLOCATE, MAP, STAT, UNLINK, RANDOM, RESERVE, GROW, STEP_MAP, OPEN_DIR };
static struct {
    enum call call;
    int skip, error; /* the call after so many fails by that; 0: none */
} script;

static struct {
    union {
        struct rmem_header header;
        uint8_t bytes[RMEM_HEADER_BYTES];
    } pages[8];
    unsigned mapped, reserved, opened; /* how many so far */
    struct stat st;                    /* of any file */
    struct {
        const char *folder;
        const char *names[6];
    } folders[2];
    unsigned read; /* names of the folder that is open */
    struct os_job *jobs[8];
    unsigned job_count, locked;
    size_t shm_bytes, verbs_bytes; /* of a grant */
    void (*on_wait)(void);
} played __attribute__((aligned(4096)));

static void plan(enum call call, int skip, int error)
{
    script.call = call;
    script.skip = skip;
    script.error = error;
}

static bool fails(enum call call)
{
    if (script.error == 0 || script.call != call || script.skip-- != 0) return false;
    errno = script.error;
    script.error = 0;
    return true;
}

/* Where that is, in words. */
static const char *place(const void *at)
{
    static char text[32];
    const uint8_t *byte = at, *pages = played.pages[0].bytes;
    if (byte >= pages && byte < pages + sizeof played.pages)
        snprintf(text, sizeof text, "page%zu", (size_t)(byte - pages) / RMEM_HEADER_BYTES);
    else if (at)
        snprintf(text, sizeof text, "base%llu", (unsigned long long)((uintptr_t)at / FIRST));
    else
        snprintf(text, sizeof text, "any");
    return text;
}

/* A path of so many equal letters would only fill the trace. */
static void trace_path(const char *what, const char *path)
{
    size_t bytes = strlen(path);
    if (bytes > 200)
        trace("%s ...%s (%zu)", what, path + bytes - 30, bytes);
    else
        trace("%s %s", what, path);
}

/* ---- the system ---- */
int __wrap_open64(const char *path, int how, ...);
int __wrap_open64(const char *path, int how, ...)
{
    int make = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int inherit = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    trace_path("open", path);
    if (how == make) {
        va_list args;
        va_start(args, how);
        trace(" new %o\n", va_arg(args, unsigned));
        va_end(args);
    } else {
        trace(" %s\n", how == inherit ? "old" : "otherwise");
    }
    return fails(OPEN) ? -1 : (int)(100 + played.opened++);
}
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    return 0;
}
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    trace("flock %d %s\n", fd, how == (LOCK_EX | LOCK_NB) ? "alone" : "otherwise");
    return fails(LOCK) ? -1 : 0;
}
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes)
{
    trace("allocate %d %d %lld %lld\n", fd, mode, (long long)from, (long long)bytes);
    return fails(ALLOCATE) ? -1 : 0;
}
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from)
{
    bool usual = !at && what == (PROT_READ | PROT_WRITE) && how == MAP_SHARED;
    trace("map %zu %d %lld%s\n", bytes, fd, (long long)from, usual ? "" : " otherwise");
    return fails(MAP) ? MAP_FAILED : (void *)&played.pages[played.mapped++];
}
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    trace("unmap %s %zu\n", place(at), bytes);
    return 0;
}
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out)
{
    trace("stat %d\n", fd);
    *out = played.st;
    return fails(STAT) ? -1 : 0;
}
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    trace_path("unlink", path);
    trace("\n");
    return fails(UNLINK) ? -1 : 0;
}
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return 42;
}
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    trace("random %zu %u\n", bytes, flags);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)(i * 0x11 + 1 + played.reserved);
    return fails(RANDOM) ? (ssize_t)bytes - 1 : (ssize_t)bytes;
}
DIR *__wrap_opendir(const char *folder);
DIR *__wrap_opendir(const char *folder)
{
    trace_path("opendir", folder);
    trace("\n");
    if (fails(OPEN_DIR)) return NULL;
    played.read = 0;
    for (unsigned i = 0; i < 2; i++)
        if (played.folders[i].folder && strcmp(folder, played.folders[i].folder) == 0)
            return (DIR *)&played.folders[i];
    return NULL;
}
struct dirent *__wrap_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir)
{
    static struct dirent entry;
    const char *name = played.folders[(void *)dir == &played.folders[1]].names[played.read++];
    if (!name) return NULL;
    snprintf(entry.d_name, sizeof entry.d_name, "%s", name);
    return &entry;
}
int __wrap_closedir(DIR *dir);
int __wrap_closedir(DIR *dir)
{
    trace("closedir %s\n", played.folders[(void *)dir == &played.folders[1]].folder);
    return 0;
}

/* ---- locks ---- */
static struct os_rmem rmem;

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (lock != &rmem.lock) return 0;
    assert_int_equal(played.locked++, 0);
    trace("<");
    return 0;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    if (lock != &rmem.lock) return 0;
    assert_int_equal(played.locked--, 1);
    trace(">");
    return 0;
}
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock)
{
    assert_ptr_equal(wake, &rmem.unpinned);
    assert_ptr_equal(lock, &rmem.lock);
    trace("wait\n");
    assert_int_equal(played.locked--, 1);
    assert_non_null(played.on_wait);
    played.on_wait();
    assert_int_equal(played.locked++, 0);
    return 0;
}
int __wrap_pthread_cond_broadcast(pthread_cond_t *wake);
int __wrap_pthread_cond_broadcast(pthread_cond_t *wake)
{
    assert_ptr_equal(wake, &rmem.unpinned);
    trace("wake\n");
    return 0;
}

/* ---- the others of os/ ---- */
uint8_t *__wrap_leat_os_addresses_reserve(uint64_t bytes);
uint8_t *__wrap_leat_os_addresses_reserve(uint64_t bytes)
{
    trace("reserve %llu\n", (unsigned long long)(bytes / STEP));
    return fails(RESERVE) ? NULL : (uint8_t *)(uintptr_t)(FIRST * ++played.reserved);
}
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job);
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job)
{
    assert_ptr_equal(at, &rmem);
    trace("job%s\n", job->actor == NULL ? ", the last" : "");
    if (job->actor) assert_ptr_equal(job->actor, rmem.host_actor);
    assert_true(played.job_count < 8);
    played.jobs[played.job_count++] = job;
}
uint64_t __wrap_leat_os_path_hash(const char *path);
uint64_t __wrap_leat_os_path_hash(const char *path)
{
    return strcmp(path, rmem.data_dir) == 0 ? 0xabc123 : 0;
}
void __wrap_leat_os_pool_name_owner(struct pool_header *header, const char *data_dir);
void __wrap_leat_os_pool_name_owner(struct pool_header *header, const char *data_dir)
{
    snprintf(header->data_dir, sizeof header->data_dir, "%s", data_dir);
}
unsigned __wrap_leat_os_pools_collect(const char *folder, bool tells);
unsigned __wrap_leat_os_pools_collect(const char *folder, bool tells)
{
    trace("collect %s %d\n", folder, tells);
    return 0;
}
size_t __wrap_leat_os_shm_grant(const struct os_rmem_arena *arena, uint8_t *out);
size_t __wrap_leat_os_shm_grant(const struct os_rmem_arena *arena, uint8_t *out)
{
    trace("grant shm %u\n", arena->port.number);
    memset(out, 's', played.shm_bytes);
    return played.shm_bytes;
}
leat_err __wrap_leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory);
leat_err __wrap_leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory)
{
    trace("grow %d %llu %s %d\n", fd, (unsigned long long)step, place(base), in_memory);
    return fails(GROW) ? LEAT_E_NO_MEMORY : LEAT_OK;
}
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base);
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base)
{
    trace("step %d %llu %s\n", fd, (unsigned long long)step, place(base));
    return fails(STEP_MAP) ? LEAT_E_INTERNAL : LEAT_OK;
}
void __wrap_leat_os_verbs_step(struct os_rmem_arena *arena, uint64_t step);
void __wrap_leat_os_verbs_step(struct os_rmem_arena *arena, uint64_t step)
{
    trace("verbs %u step %llu of %llu\n", arena->port.number, (unsigned long long)step,
          (unsigned long long)arena->header->pool.steps);
}
size_t __wrap_leat_os_verbs_grant(const struct os_rmem_arena *arena, uint8_t *out);
size_t __wrap_leat_os_verbs_grant(const struct os_rmem_arena *arena, uint8_t *out)
{
    trace("grant verbs %u\n", arena->port.number);
    memset(out, 'v', played.verbs_bytes);
    return played.verbs_bytes;
}
void __wrap_leat_os_verbs_revoke(struct os_rmem_arena *arena);
void __wrap_leat_os_verbs_revoke(struct os_rmem_arena *arena)
{
    trace("verbs %u revoke\n", arena->port.number);
}
void __wrap_leat_os_verbs_release(struct os_rmem_arena *arena);
void __wrap_leat_os_verbs_release(struct os_rmem_arena *arena)
{
    trace("verbs %u release\n", arena->port.number);
}

/* ---- the port ---- */
static struct os_actor host_actor;
static const struct leat_rmem_host *host;

static int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof played);
    memset(&rmem, 0, sizeof rmem);
    memset(&host_actor, 0, sizeof host_actor);
    plan(OPEN, 0, 0);
    rmem.host_actor = &host_actor;
    snprintf(rmem.folder, sizeof rmem.folder, "/shm");
    snprintf(rmem.data_dir, sizeof rmem.data_dir, "/data");
    snprintf(rmem.boot_id, sizeof rmem.boot_id, "this boot");
    played.st = (struct stat){.st_mode = S_IFREG | 0600, .st_uid = 42};
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    if (played.locked || leat_mem_bytes(LEAT_MEM_NET) != 0) return -1;
    return 0;
}

#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* With what lies in both folders. */
static void host_opens(void)
{
    struct leat_error error = {0};
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    assert_ptr_equal(host_actor.env.rmem_host, &rmem.host);
    host = &rmem.host;
    trace_begin();
}

static struct os_rmem_arena *whole(struct leat_rmem_arena *port)
{
    return LEAT_CONTAINER(port, struct os_rmem_arena, port);
}

/* The helper's thread runs the oldest job; then its mail comes. */
static void job_runs(void)
{
    assert_true(played.job_count > 0);
    struct os_job *job = played.jobs[0];
    bool last = job->actor == NULL;
    memmove(played.jobs, played.jobs + 1, --played.job_count * sizeof played.jobs[0]);
    job->run(job);
    if (!last) job->mail.deliver(NULL, &job->mail);
}

#endif
