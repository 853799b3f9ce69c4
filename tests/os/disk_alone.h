/* SPDX-License-Identifier: Apache-2.0 */
/* The disk port alone: the system's calls stand here (--wrap), each is a line of the trace, and the test says what each
 * gives. What the system does with real files is tried in disk_calls_test.c. For one test program only. */
#ifndef LEAT_TESTS_OS_DISK_ALONE_H
#define LEAT_TESTS_OS_DISK_ALONE_H

#include "os/internal.h"
#include "os/pool.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

enum { BLOCK = 4096, DATA_FD = 7, FILE_FD = 5, MIB = 1024 * 1024 };

/* ---- what the system says ---- */

enum call {
    OPEN,
    STAT,
    ALLOCATE,
    SYNC,
    MAKE_DIR,
    REMOVE,
    OTHER,
    OPEN_DIR,
    READ_DIR,
    WRITE,
    READ,
    CALLS
};
static struct {
    long says[8];
    unsigned count, next;
} script[CALLS];
static struct stat status; /* what fstat() gives */
static struct {
    char names[140][8];
    unsigned count, next;
} folder;

/* The next call of that kind gives this; below zero that errno. */
static void say(enum call call, long value)
{
    assert_true(script[call].count < 8);
    script[call].says[script[call].count++] = value;
}

static long said(enum call call, long usual)
{
    long value =
        script[call].next < script[call].count ? script[call].says[script[call].next++] : usual;
    if (value >= 0) return value;
    errno = (int)-value;
    return -1;
}

int __wrap_openat64(int dir, const char *path, int how, ...);
int __wrap_openat64(int dir, const char *path, int how, ...)
{
    va_list args;
    va_start(args, how);
    trace("open %d '%s' %#x", dir, path, (unsigned)how);
    if (how & O_CREAT) trace(" %#o", va_arg(args, unsigned));
    trace("\n");
    va_end(args);
    return (int)said(OPEN, FILE_FD);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    errno = EIO; /* which nobody asks for */
    return -1;
}

int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st)
{
    trace("stat %d\n", fd);
    *st = status;
    return (int)said(STAT, 0);
}

int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t from, off_t bytes)
{
    trace("allocate %d %d %lld %lld\n", fd, mode, (long long)from, (long long)bytes);
    return (int)said(ALLOCATE, 0);
}

int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes)
{
    trace("cut %d %lld\n", fd, (long long)bytes);
    return (int)said(OTHER, 0);
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    trace("sync %d\n", fd);
    return (int)said(SYNC, 0);
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    trace("sync all of %d\n", fd);
    return (int)said(SYNC, 0);
}

int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    trace("rename %d '%s' %d '%s'\n", a, from, b, to);
    return (int)said(OTHER, 0);
}

int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags)
{
    trace("remove %d '%s' %d\n", dir, path, flags);
    return (int)said(REMOVE, 0);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
    trace("make %d '%s' %#o\n", dir, path, mode);
    return (int)said(MAKE_DIR, 0);
}

int __wrap_fstatvfs64(int fd, struct statvfs *st);
int __wrap_fstatvfs64(int fd, struct statvfs *st)
{
    trace("space %d\n", fd);
    *st = (struct statvfs){
        .f_bsize = 5, .f_frsize = 512, .f_blocks = 100, .f_bfree = 60, .f_bavail = 40};
    return (int)said(OTHER, 0);
}

DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    trace("list %d\n", fd);
    return said(OPEN_DIR, 1) < 0 ? NULL : (DIR *)(void *)&folder;
}

struct dirent *__wrap_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir)
{
    static struct dirent entry;
    assert_ptr_equal(dir, &folder);
    if (said(READ_DIR, 1) < 0 || folder.next == folder.count) return NULL;
    memcpy(entry.d_name, folder.names[folder.next++], sizeof folder.names[0]);
    errno = ENOTDIR; /* what a call that succeeds leaves there says nothing */
    return &entry;
}

int __wrap_closedir(DIR *dir);
int __wrap_closedir(DIR *dir)
{
    assert_ptr_equal(dir, &folder);
    trace("close the list\n");
    return 0;
}

static uint8_t data[4 * BLOCK];
static uint8_t *huge; /* what stands for a page of 2 MiB */

static void trace_place(const char *what, int fd, const uint8_t *at, size_t bytes, off_t offset)
{
    trace("%s %d ", what, fd);
    if (at >= data && at < data + sizeof data)
        trace("from %u", (unsigned)(at - data));
    else
        trace("%s", huge && at == huge ? "huge" : "zeros");
    trace(" %zu at %lld\n", bytes, (long long)offset);
}

ssize_t __wrap_pwrite64(int fd, const void *at, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *at, size_t bytes, off_t offset)
{
    trace_place("write", fd, at, bytes, offset);
    return said(WRITE, (long)bytes);
}

ssize_t __wrap_pread64(int fd, void *at, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *at, size_t bytes, off_t offset)
{
    trace_place("read", fd, at, bytes, offset);
    return said(READ, (long)bytes);
}

int __wrap_mprotect(void *at, size_t bytes, int what);
int __wrap_mprotect(void *at, size_t bytes, int what)
{
    trace("allow %d %zu %d\n", at == huge, bytes, what);
    return (int)said(OTHER, 0);
}

int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    trace("collapse %d %zu %d\n", at == huge, bytes, advice);
    return (int)said(OPEN, 0);
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    if (at != huge) return __real_munmap(at, bytes);
    trace("unmap %zu\n", bytes);
    return 0;
}

void *__wrap_leat_os_addresses_reserve(size_t bytes);
void *__wrap_leat_os_addresses_reserve(size_t bytes)
{
    trace("reserve %zu\n", bytes);
    return huge;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *how);
int __wrap_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *how)
{
    (void)lock;
    assert_null(how);
    trace("(made)\n");
    return 0;
}
static void (*before_lock)(void); /* once: what happens while the first lock is waited for */
#define LOCK_CALL(name, word)                                                                      \
    int __wrap_pthread_mutex_##name(pthread_mutex_t *lock);                                        \
    int __wrap_pthread_mutex_##name(pthread_mutex_t *lock)                                         \
    {                                                                                              \
        (void)lock;                                                                                \
        trace("(" word ")\n");                                                                     \
        return 0;                                                                                  \
    }
LOCK_CALL(destroy, "gone")

LOCK_CALL(unlock, "unlocked")
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    void (*before)(void) = before_lock;
    (void)lock;
    before_lock = NULL;
    if (before) before();
    trace("(locked)\n");
    return 0;
}

static struct leat_os_world world;
static struct os_actor actor;
static const struct leat_disk *disk;

void __wrap_leat_os_disk_run(struct os_actor *of);
void __wrap_leat_os_disk_run(struct os_actor *of)
{
    assert_ptr_equal(of, &actor);
    trace("run what was submitted\n");
    of->disk.first = of->disk.first->next;
}

static int begin(void **state)
{
    (void)state;
    memset(script, 0, sizeof script);
    memset(&folder, 0, sizeof folder);
    memset(&actor, 0, sizeof actor);
    status = (struct stat){.st_mode = S_IFREG, .st_size = 5000};
    world.data_fd = DATA_FD;
    actor.world = &world;
    leat_os_disk_ports_init(&actor);
    disk = &actor.disk_port;
    trace_begin();
    return 0;
}

/* ---- files ---- */

enum { HOW = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };

/* One that is open; nothing is in the trace. */
static struct leat_file *file_of(unsigned flags)
{
    struct leat_file *file = NULL;
    assert_int_equal(disk->open(disk->ctx, "f", flags, &file, NULL), LEAT_OK);
    assert_non_null(file);
    trace_begin();
    return file;
}

static void close_file(struct leat_file *file)
{
    trace_begin();
    disk->close(disk->ctx, file);
    TRACE_IS("close 5\n(gone)\n");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

#endif
