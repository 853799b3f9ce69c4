/* SPDX-License-Identifier: Apache-2.0 */
/* os/arena.c alone: the system's calls and what it calls of os/ are played here (--wrap), each is a line of the trace,
 * and a test may have the n-th of a kind refused. The grower runs inside of grower_runs(). Locks are '<' and '>' in the
 * trace. For one test program only. */
#ifndef LEAT_TESTS_OS_ARENA_ALONE_H
#define LEAT_TESTS_OS_ARENA_ALONE_H

#include "os/internal.h"
#include "os/pool.h"

#include "base/mem.h"
#include "base/node_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

#define STEP     ((uint64_t)LEAT_ARENA_STEP_BYTES)
#define RESERVED UINT64_C(0x1000003000)
#define BASE     UINT64_C(0x1000200000) /* the next huge page's */

enum call {
    REAL,
    OPEN,
    STAT,
    LOCK,
    ALLOCATE,
    MAP,
    RESERVE,
    FS,
    CUT,
    RANDOM,
    STEP_MAP,
    GROW,
    SHRINK,
    THREAD,
    ROOM
};
static struct {
    enum call call;
    int skip, error, times; /* the calls after so many fail by that; 0: none */
} script;

static struct {
    union {
        struct pool_header header;
        uint8_t bytes[POOL_HEADER_BYTES];
    } page;
    char real[LEAT_OS_PATH_BYTES]; /* the data directory's */
    uid_t account;
    struct stat st;
    struct statvfs room;
    long fs;
    bool exists, named, has_local;
    char boot_id[BOOT_ID_BYTES];
    int fd;
    void *(*thread)(void *);
    void *thread_arg;
    void (*on_wait)(unsigned times); /* the grower has nothing to do */
    unsigned waits;
    struct leat_mail *mail;
    const char *no_verbs;
} played __attribute__((aligned(4096)));

static void plan(enum call call, int skip, int error)
{
    script.call = call;
    script.skip = skip;
    script.error = error;
    script.times = 1;
}

static bool fails(enum call call)
{
    if (script.error == 0 || script.call != call || script.skip-- > 0) return false;
    errno = script.error;
    if (--script.times == 0) script.error = 0;
    return true;
}

/* A path of so many equal letters would only fill the trace. */
static void trace_path(const char *what, const char *path)
{
    size_t bytes = strlen(path);
    if (bytes > 200)
        trace("%s ...%s (%zu)\n", what, path + bytes - 10, bytes);
    else
        trace("%s %s\n", what, path);
}

/* ---- the system ---- */
char *__wrap_realpath(const char *path, char *out);
char *__wrap_realpath(const char *path, char *out)
{
    trace("real %s\n", path);
    if (fails(REAL)) return NULL;
    memcpy(out, played.real, sizeof played.real);
    return out;
}
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return played.account;
}
int __wrap_lstat64(const char *path, struct stat *out);
int __wrap_lstat64(const char *path, struct stat *out)
{
    trace_path("look", path);
    memset(out, 0, sizeof *out);
    if (!played.has_local) errno = ENOENT;
    return played.has_local ? 0 : -1;
}
int __wrap_statvfs64(const char *path, struct statvfs *out);
int __wrap_statvfs64(const char *path, struct statvfs *out)
{
    trace("room %s\n", path);
    *out = played.room;
    return fails(ROOM) ? -1 : 0;
}
int __wrap_open64(const char *path, int how, ...);
int __wrap_open64(const char *path, int how, ...)
{
    va_list args;
    va_start(args, how);
    trace_path(how == (O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW) && va_arg(args, unsigned) == 0600
                   ? "open"
                   : "open otherwise",
               path);
    va_end(args);
    return fails(OPEN) ? -1 : played.fd;
}
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    return 0;
}
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out)
{
    trace("stat %d\n", fd);
    *out = played.st;
    return fails(STAT) ? -1 : 0;
}
int __wrap_fstatfs64(int fd, struct statfs *out);
int __wrap_fstatfs64(int fd, struct statfs *out)
{
    trace("fs %d\n", fd);
    memset(out, 0, sizeof *out);
    out->f_type = played.fs;
    return fails(FS) ? -1 : 0;
}
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    if (how != (LOCK_EX | LOCK_NB)) trace("flock otherwise\n");
    if (fails(LOCK)) {
        trace("!");
        return -1;
    }
    trace("flock %d\n", fd);
    return 0;
}
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
    if (fds != NULL || count != 0 || ms != 10) trace("poll otherwise\n");
    trace(".");
    return 0;
}
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes)
{
    trace("allocate %d %d %lld %lld\n", fd, mode, (long long)from, (long long)bytes);
    return fails(ALLOCATE) ? -1 : 0;
}
int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes)
{
    trace("cut %d %lld\n", fd, (long long)bytes);
    if (bytes == POOL_HEADER_BYTES) assert_true(played.page.header.magic == 0); /* no pool by now */
    return fails(CUT) ? -1 : 0;
}
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from);
void *__wrap_mmap64(void *at, size_t bytes, int what, int how, int fd, off_t from)
{
    if (at || from) trace("map otherwise\n");
    if (what == PROT_NONE && how == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)) {
        trace("reserve %zu %d\n", bytes, fd);
        return fails(RESERVE) ? MAP_FAILED : (void *)RESERVED;
    }
    bool usual = what == (PROT_READ | PROT_WRITE) && how == MAP_SHARED;
    trace("map %zu %d%s\n", bytes, fd, usual ? "" : " otherwise");
    return fails(MAP) ? MAP_FAILED : (void *)&played.page;
}
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    const char *what = at == &played.page ? "header" : at == (void *)RESERVED ? "pool" : "other";
    trace("unmap %s %zu\n", what, bytes);
    return 0;
}
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    trace_path("unlink", path);
    return 0;
}
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    trace("random %zu %u\n", bytes, flags);
    memset(out, 0x5a, bytes);
    return fails(RANDOM) ? (ssize_t)bytes - 1 : (ssize_t)bytes;
}

/* ---- threads ---- */
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *),
                          void *arg)
{
    trace("thread%s\n", how ? " otherwise" : "");
    *out = (pthread_t)77;
    played.thread = run;
    played.thread_arg = arg;
    return fails(THREAD) ? EAGAIN : 0;
}
int __wrap_pthread_join(pthread_t thread, void **out);
int __wrap_pthread_join(pthread_t thread, void **out)
{
    trace("join %d%s\n", (int)thread, out ? " otherwise" : "");
    return 0;
}
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    trace("name %s\n", name);
    return 0;
}
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    (void)lock;
    trace("<");
    return 0;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    (void)lock;
    trace(">");
    return 0;
}
int __wrap_pthread_cond_signal(pthread_cond_t *wake);
int __wrap_pthread_cond_signal(pthread_cond_t *wake)
{
    (void)wake;
    trace("wake\n");
    return 0;
}
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock)
{
    (void)wake;
    (void)lock;
    trace("wait\n");
    assert_true(played.waits < 100);
    played.on_wait(played.waits++);
    return 0;
}

/* ---- the others of os/ ---- */
bool __wrap_leat_os_pool_name(const char *folder, const char *data_dir, char out[POOL_NAME_BYTES],
                              bool *out_exists);
bool __wrap_leat_os_pool_name(const char *folder, const char *data_dir, char out[POOL_NAME_BYTES],
                              bool *out_exists)
{
    trace("name %s %d\n", folder, strcmp(data_dir, played.real) == 0);
    snprintf(out, POOL_NAME_BYTES, "the-name");
    *out_exists = played.exists;
    return played.named;
}
void __wrap_leat_os_pool_name_owner(struct pool_header *header, const char *data_dir);
void __wrap_leat_os_pool_name_owner(struct pool_header *header, const char *data_dir)
{
    assert_ptr_equal(header, &played.page.header);
    trace_path(header->magic == POOL_MAGIC ? "owner stays" : "owner", data_dir);
}
unsigned __wrap_leat_os_pools_collect(const char *folder, bool tells);
unsigned __wrap_leat_os_pools_collect(const char *folder, bool tells)
{
    trace("collect %s %d\n", folder, tells);
    return 0;
}
void __wrap_leat_os_boot_id(char out[BOOT_ID_BYTES]);
void __wrap_leat_os_boot_id(char out[BOOT_ID_BYTES])
{
    memcpy(out, played.boot_id, BOOT_ID_BYTES);
}
static const char *base_of(const uint8_t *base)
{
    return base == (const uint8_t *)BASE ? "" : " otherwise";
}
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base);
leat_err __wrap_leat_os_step_map(int fd, uint64_t step, uint8_t *base)
{
    trace("step %d %llu%s\n", fd, (unsigned long long)step, base_of(base));
    return fails(STEP_MAP) ? LEAT_E_NO_MEMORY : LEAT_OK;
}
leat_err __wrap_leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory);
leat_err __wrap_leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory)
{
    trace("grow %d %llu of %llu %d%s\n", fd, (unsigned long long)step,
          (unsigned long long)played.page.header.steps, in_memory, base_of(base));
    return fails(GROW) ? LEAT_E_NO_MEMORY : LEAT_OK;
}
leat_err __wrap_leat_os_step_shrink(int fd, uint64_t step, uint8_t *base);
leat_err __wrap_leat_os_step_shrink(int fd, uint64_t step, uint8_t *base)
{
    trace("shrink %d %llu of %llu%s\n", fd, (unsigned long long)step,
          (unsigned long long)played.page.header.steps, base_of(base));
    return fails(SHRINK) ? LEAT_E_DISK : LEAT_OK;
}
void __wrap_leat_os_step_touch(uint8_t *at, bool fresh);
void __wrap_leat_os_step_touch(uint8_t *at, bool fresh)
{
    trace("touch %lld %d\n", (long long)((uintptr_t)at - BASE) / LEAT_ARENA_STEP_BYTES, fresh);
}
leat_err __wrap_leat_os_errno(int error);
leat_err __wrap_leat_os_errno(int error)
{
    return error == EROFS ? LEAT_E_DISK : LEAT_E_INTERNAL;
}
const char *__wrap_leat_os_rmem_no_verbs(const struct leat_os_world *world);
const char *__wrap_leat_os_rmem_no_verbs(const struct leat_os_world *world)
{
    (void)world;
    return played.no_verbs;
}
static struct os_actor actor;
void __wrap_leat_os_mail_push(struct os_actor *to, struct leat_mail *mail);
void __wrap_leat_os_mail_push(struct os_actor *to, struct leat_mail *mail)
{
    assert_ptr_equal(to, &actor);
    assert_null(played.mail);
    trace("mail\n");
    played.mail = mail;
}

/* ---- the port ---- */
static struct leat_os_world world;
static struct leat_error error;

static void is_told(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d %s\n", (int)level, line);
}

static int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof played);
    memset(&world, 0, sizeof world);
    memset(&actor, 0, sizeof actor);
    memset(&error, 0, sizeof error);
    memset(&script, 0, sizeof script);
    snprintf(played.real, sizeof played.real, "/real");
    snprintf(played.boot_id, sizeof played.boot_id, "this boot");
    snprintf(world.data_dir, sizeof world.data_dir, "data");
    played.account = SYSTEM_ACCOUNTS_END;
    played.st = (struct stat){.st_mode = S_IFREG, .st_uid = SYSTEM_ACCOUNTS_END};
    played.fd = 5;
    actor.world = &world;
    world.actors[1] = &actor;
    leat_node_log_set(is_told, NULL, LEAT_NODE_LOG_WARN);
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    leat_mem_fail_at(0);
    return leat_mem_bytes(LEAT_MEM_STORE) != 0;
}

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static leat_err opens(uint64_t bytes)
{
    return leat_os_arena_open(&world, 1, bytes, &error);
}

/* Until it is told to stop; on_wait says what happens whenever it has nothing to do. */
static void grower_runs(void (*on_wait)(unsigned times))
{
    played.waits = 0;
    played.on_wait = on_wait;
    assert_null(played.thread(played.thread_arg));
}

static void delivers(void)
{
    struct leat_mail *mail = played.mail;
    assert_non_null(mail);
    played.mail = NULL;
    mail->deliver(NULL, mail);
}

#endif
