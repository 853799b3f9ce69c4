/* SPDX-License-Identifier: Apache-2.0 */
/* The disk port, when the system refuses: each call of it in turn, with each kind of refusal, and what the port makes
 * of that; calls that do a part; and what is asked of the system when all is well. Method: the calls themselves stand
 * here, in front of the system's (--wrap). */
#include "os/internal.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCK = 4096 };

/* ---- the script ---- */
enum call {
    OPEN,
    SIZE,
    ALLOCATE,
    TRUNCATE,
    WRITE,
    READ,
    SYNC,
    SYNC_DIR,
    RENAME,
    REMOVE,
    MAKE_DIR,
    READ_DIR,
    OPEN_DIR,
    SPACE,
    CALLS
};
static struct {
    enum call call;
    int skip, error; /* the call after so many fails by that; 0: none */
    size_t part;     /* else WRITE and READ do so many bytes at most; 0: all */
    bool nothing;    /* WRITE takes nothing, and says so */
} script;
static unsigned calls[CALLS];

static bool fails(enum call call)
{
    calls[call]++;
    if (script.error == 0 || script.call != call || script.skip-- != 0) return false;
    errno = script.error;
    script.error = 0;
    return true;
}

static void plan(enum call call, int skip, int error)
{
    script.call = call;
    script.skip = skip;
    script.error = error;
    memset(calls, 0, sizeof calls);
}

int __real_openat64(int dir, const char *path, int how, ...);
int __wrap_openat64(int dir, const char *path, int how, ...);
int __wrap_openat64(int dir, const char *path, int how, ...)
{
    return fails(OPEN) ? -1 : __real_openat64(dir, path, how, 0640);
}
#define WRAPPED(type, name, call, parameters, arguments)                                           \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails(call) ? (type)-1 : __real_##name arguments;                                   \
    }
WRAPPED(int, fstat64, SIZE, (int fd, struct stat *st), (fd, st))
WRAPPED(int, fallocate64, ALLOCATE, (int fd, int mode, off_t from, off_t bytes),
        (fd, mode, from, bytes))
WRAPPED(int, ftruncate64, TRUNCATE, (int fd, off_t bytes), (fd, bytes))
WRAPPED(int, fdatasync, SYNC, (int fd), (fd))
WRAPPED(int, fsync, SYNC_DIR, (int fd), (fd))
WRAPPED(int, renameat, RENAME, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAPPED(int, unlinkat, REMOVE, (int dir, const char *path, int flags), (dir, path, flags))
WRAPPED(int, mkdirat, MAKE_DIR, (int dir, const char *path, mode_t mode), (dir, path, mode))
WRAPPED(int, fstatvfs64, SPACE, (int fd, struct statvfs *st), (fd, st))
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    return fails(OPEN_DIR) ? NULL : __real_fdopendir(fd);
}
struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir)
{
    return fails(READ_DIR) ? NULL : __real_readdir64(dir);
}
ssize_t __real_pwrite64(int fd, const void *at, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *at, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *at, size_t bytes, off_t offset)
{
    if (fails(WRITE)) return -1;
    if (script.nothing) return 0;
    return __real_pwrite64(fd, at, script.part && bytes > script.part ? script.part : bytes,
                           offset);
}
ssize_t __real_pread64(int fd, void *at, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *at, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *at, size_t bytes, off_t offset)
{
    if (fails(READ)) return -1;
    return __real_pread64(fd, at, script.part && bytes > script.part ? script.part : bytes, offset);
}

/* ---- the port, without threads ---- */
static struct leat_os_world world;
static struct os_actor actor;
static const struct leat_disk *disk;
static char dir[64];
static uint8_t data[64 * BLOCK] __attribute__((aligned(BLOCK)));

static int begin(void **state)
{
    (void)state;
    memset(&script, 0, sizeof script);
    snprintf(dir, sizeof dir, "/tmp/leat-disk-calls-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    memset(&actor, 0, sizeof actor);
    world.data_fd = open(dir, O_RDONLY | O_DIRECTORY);
    actor.world = &world;
    leat_os_disk_queue_init(&actor);
    leat_os_disk_ports_init(&actor);
    disk = &actor.disk_port;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / BLOCK);
    return world.data_fd < 0;
}

static int end(void **state)
{
    (void)state;
    static const char *const names[] = {"f", "g", "h", "d/x", "d"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)disk->remove(disk->ctx, names[i]);
    (void)close(world.data_fd);
    return rmdir(dir);
}

static struct leat_file *file_of(const char *name, unsigned flags)
{
    struct leat_file *file = NULL;
    assert_int_equal(disk->open(disk->ctx, name, LEAT_OPEN_CREATE | flags, &file, NULL), LEAT_OK);
    return file;
}

static leat_err run(enum leat_disk_kind kind, struct leat_file *file, uint64_t offset, size_t bytes,
                    size_t *out_done)
{
    struct leat_disk_io io = {
        .kind = kind, .file = file, .offset = offset, .buffer = data, .bytes = bytes};
    leat_err rc = disk->run(disk->ctx, &io);
    assert_int_equal(io.rc, rc);
    if (out_done) *out_done = io.done_bytes;
    return rc;
}

static const struct {
    int error;
    leat_err rc;
} errors[] = {{ENOSPC, LEAT_E_DISK_FULL}, {EDQUOT, LEAT_E_DISK_FULL}, {EFBIG, LEAT_E_DISK_FULL},
              {ENOENT, LEAT_E_NOT_FOUND}, {EEXIST, LEAT_E_EXISTS},    {ENOMEM, LEAT_E_NO_MEMORY},
              {EMFILE, LEAT_E_NO_MEMORY}, {ENFILE, LEAT_E_NO_MEMORY}, {EIO, LEAT_E_DISK},
              {EROFS, LEAT_E_DISK},       {EACCES, LEAT_E_DISK}};
enum { ERRORS = sizeof errors / sizeof errors[0] };

static void count_name(void *arg, const char *name)
{
    (void)name;
    ++*(unsigned *)arg;
}

/* Goal: each call that the system refuses is told by what it was, and nothing else is done. */
static void calls_that_are_refused_are_told_by_name(void **state)
{
    (void)state;
    struct leat_file *file = file_of("f", 0), *other = NULL;
    struct leat_error error = {0};
    uint64_t number = 0;
    unsigned names = 0;
    assert_int_equal(disk->make_dir(disk->ctx, "d"), LEAT_OK);
    for (unsigned i = 0; i < ERRORS; i++) {
        int e = errors[i].error;
        leat_err rc = errors[i].rc;
        plan(OPEN, 0, e);
        assert_int_equal(disk->open(disk->ctx, "g", LEAT_OPEN_CREATE, &other, &error), rc);
        assert_non_null(strstr(error.text, "can't open g: "));
        assert_non_null(strstr(error.text, strerror(e)));
        assert_int_equal(calls[OPEN], 1);
        plan(OPEN, 0, e);
        assert_int_equal(
            disk->open(disk->ctx, "g", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &other, NULL), rc);
        assert_int_equal(calls[OPEN], 1); /* that is no matter of direct writes */
        plan(SIZE, 0, e);
        assert_int_equal(disk->size(disk->ctx, file, &number), rc);
        plan(SIZE, 0, e);
        assert_int_equal(disk->allocate(disk->ctx, file, BLOCK), rc);
        assert_int_equal(calls[ALLOCATE], 0);
        plan(ALLOCATE, 0, e);
        assert_int_equal(disk->allocate(disk->ctx, file, BLOCK), rc);
        assert_int_equal(calls[WRITE], 0);
        plan(TRUNCATE, 0, e);
        assert_int_equal(disk->truncate(disk->ctx, file, BLOCK), rc);
        plan(RENAME, 0, e);
        assert_int_equal(disk->rename(disk->ctx, "f", "h"), rc);
        plan(REMOVE, 0, e);
        assert_int_equal(disk->remove(disk->ctx, "f"), rc);
        assert_int_equal(calls[REMOVE], 1);
        plan(MAKE_DIR, 0, e);
        assert_int_equal(disk->make_dir(disk->ctx, "d/x"), rc == LEAT_E_EXISTS ? LEAT_OK : rc);
        plan(OPEN, 0, e);
        assert_int_equal(disk->sync_dir(disk->ctx, ""), rc);
        assert_int_equal(calls[SYNC_DIR], 0);
        plan(SYNC_DIR, 0, e);
        assert_int_equal(disk->sync_dir(disk->ctx, "d"), rc);
        plan(OPEN, 0, e);
        assert_int_equal(disk->list(disk->ctx, "", count_name, &names), rc);
        plan(OPEN_DIR, 0, e);
        assert_int_equal(disk->list(disk->ctx, "", count_name, &names), rc);
        plan(READ_DIR, 1, e);
        assert_int_equal(disk->list(disk->ctx, "", count_name, &names), rc);
        assert_int_equal(names, 0); /* a part of the names is none */
        plan(SPACE, 0, e);
        assert_int_equal(disk->space(disk->ctx, &number), rc);
        plan(WRITE, 0, e);
        assert_int_equal(run(LEAT_DISK_WRITE, file, 0, BLOCK, NULL), rc);
        plan(WRITE, 0, e);
        assert_int_equal(run(LEAT_DISK_ZERO, file, 0, BLOCK, NULL), rc);
        plan(READ, 0, e);
        assert_int_equal(run(LEAT_DISK_READ, file, 0, BLOCK, NULL), LEAT_E_DISK);
    }
    plan(SIZE, 0, EIO); /* of what it is nothing is known */
    assert_int_equal(disk->open(disk->ctx, "f", 0, &other, &error), LEAT_E_DISK);
    assert_non_null(strstr(error.text, "it is not a file"));
    leat_mem_fail_at(1);
    assert_int_equal(disk->open(disk->ctx, "f", 0, &other, &error), LEAT_E_NO_MEMORY);
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        assert_int_equal(disk->list(disk->ctx, "", count_name, &names), LEAT_E_NO_MEMORY);
    }
    leat_mem_fail_at(0);
    plan(SPACE, 9, 0);
    assert_int_equal(disk->list(disk->ctx, "", count_name, &names), LEAT_OK);
    assert_int_equal(names, 2); /* f and d: nothing was made of what was refused */
    disk->close(disk->ctx, file);
    disk->close(disk->ctx, NULL);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), 0);
}

/* Goal: a sync that failed once is the end of the file, whatever call comes then; only the first failure says that the
 * disk was full. */
static void calls_after_a_failed_sync_are_refused(void **state)
{
    (void)state;
    for (unsigned direct = 0; direct < 2; direct++)
        for (unsigned i = 0; i < ERRORS; i++) {
            struct leat_file *file = file_of("f", direct ? LEAT_OPEN_DIRECT : 0);
            assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, NULL), LEAT_OK);
            plan(SYNC, 0, errors[i].error);
            assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, NULL),
                             errors[i].rc == LEAT_E_DISK_FULL ? LEAT_E_DISK_FULL : LEAT_E_DISK);
            plan(SYNC, 0, 0);
            assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, NULL), LEAT_E_DISK);
            assert_int_equal(run(LEAT_DISK_WRITE, file, 0, BLOCK, NULL), LEAT_E_DISK);
            assert_int_equal(run(LEAT_DISK_READ, file, 0, BLOCK, NULL), LEAT_E_DISK);
            assert_int_equal(run(LEAT_DISK_ZERO, file, 0, BLOCK, NULL), LEAT_E_DISK);
            assert_int_equal(calls[SYNC] + calls[WRITE] + calls[READ], 0);
            disk->close(disk->ctx, file);
        }
}

/* Goal: an operation that the system does in parts, or that a signal interrupts, is done whole; where the system takes
 * no byte, the operation ends. */
static void calls_that_do_a_part_go_on(void **state)
{
    (void)state;
    static uint8_t back[16 * BLOCK];
    struct leat_file *file = file_of("f", 0);
    size_t done = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    script.part = 3000;
    plan(WRITE, 2, EINTR);
    assert_int_equal(run(LEAT_DISK_WRITE, file, 100, 10 * BLOCK, &done), LEAT_OK);
    assert_int_equal(done, 10 * BLOCK);
    assert_int_equal(calls[WRITE], 1 + (10 * BLOCK + 2999) / 3000);
    int raw = openat(fd, "f", O_RDONLY);
    assert_int_equal(__real_pread64(raw, back, sizeof back, 100), 10 * BLOCK);
    assert_memory_equal(back, data, 10 * BLOCK);
    plan(READ, 1, EINTR);
    memcpy(back, data, sizeof back);
    memset(data, 0, 11 * BLOCK);
    assert_int_equal(run(LEAT_DISK_READ, file, 100, 11 * BLOCK, &done), LEAT_OK);
    assert_int_equal(done, 10 * BLOCK); /* there is no more */
    assert_memory_equal(data, back, 10 * BLOCK);
    plan(WRITE, 2, EIO);
    assert_int_equal(run(LEAT_DISK_WRITE, file, 0, 3 * BLOCK, &done), LEAT_E_DISK);
    assert_int_equal(done, 6000);
    script.nothing = true;
    plan(WRITE, 0, 0);
    assert_int_equal(run(LEAT_DISK_WRITE, file, 0, BLOCK, &done), LEAT_E_DISK);
    assert_int_equal(calls[WRITE], 1);
    assert_int_equal(done, 0);
    script.nothing = false;
    script.part = 0;
    /* Zeros go by a mebibyte. */
    plan(WRITE, 0, 0);
    assert_int_equal(run(LEAT_DISK_ZERO, file, 50, 2 * 1024 * 1024 + 7, &done), LEAT_OK);
    assert_int_equal(calls[WRITE], 3);
    assert_int_equal(done, 2 * 1024 * 1024 + 7);
    assert_int_equal(__real_pread64(raw, back, 200, 0), 200);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(back[i], i < 50 ? back[i] : 0);
    struct stat st;
    assert_int_equal(__real_fstat64(raw, &st), 0);
    assert_int_equal(st.st_size, 50 + 2 * 1024 * 1024 + 7);
    (void)close(raw);
    (void)close(fd);
    disk->close(disk->ctx, file);
}

/* Goal: where space can't be allocated it is taken by zeros, from the file's end on, and by whole blocks of a file that
 * is written directly. */
static void calls_take_space_by_zeros_where_they_must(void **state)
{
    (void)state;
    static const int none[] = {EOPNOTSUPP, ENOSYS};
    for (unsigned i = 0; i < 4; i++) {
        bool direct = i >= 2;
        struct leat_file *file = file_of("f", direct ? LEAT_OPEN_DIRECT : 0);
        uint64_t size = 0;
        assert_int_equal(disk->truncate(disk->ctx, file, 0), LEAT_OK);
        assert_int_equal(run(LEAT_DISK_WRITE, file, 0, BLOCK, NULL), LEAT_OK);
        plan(ALLOCATE, 0, none[i % 2]);
        assert_int_equal(disk->allocate(disk->ctx, file, 3 * BLOCK + 5), LEAT_OK);
        assert_int_equal(calls[WRITE], 1);
        assert_int_equal(disk->size(disk->ctx, file, &size), LEAT_OK);
        assert_int_equal(size, direct ? 4 * BLOCK : 3 * BLOCK + 5);
        memset(data, 1, BLOCK);
        assert_int_equal(run(LEAT_DISK_READ, file, 0, BLOCK, NULL), LEAT_OK);
        assert_int_equal(data[4095], (uint8_t)(4095 * 7)); /* what was there stays */
        plan(ALLOCATE, 0, none[i % 2]);
        assert_int_equal(disk->allocate(disk->ctx, file, BLOCK), LEAT_OK); /* it has that */
        assert_int_equal(calls[WRITE], 0);
        plan(WRITE, 0, ENOSPC);
        plan(ALLOCATE, 1, EIO); /* an interruption is no refusal */
        assert_int_equal(disk->allocate(disk->ctx, file, 5 * BLOCK), LEAT_OK);
        plan(ALLOCATE, 0, EINTR);
        assert_int_equal(disk->allocate(disk->ctx, file, 6 * BLOCK), LEAT_OK);
        assert_int_equal(calls[ALLOCATE], 2);
        assert_int_equal(disk->size(disk->ctx, file, &size), LEAT_OK);
        assert_int_equal(size, 6 * BLOCK);
        plan(ALLOCATE, 0, 0);
        assert_int_equal(disk->allocate(disk->ctx, file, 0), LEAT_OK);
        assert_int_equal(calls[ALLOCATE], 0);
        if (direct) {
            assert_int_equal(disk->truncate(disk->ctx, file, BLOCK + 1), LEAT_OK);
            plan(ALLOCATE, 0, ENOSYS);
            assert_int_equal(disk->allocate(disk->ctx, file, 2 * BLOCK), LEAT_E_INVALID);
        }
        disk->close(disk->ctx, file);
    }
}

/* Goal: a file system that does not write directly is written to otherwise, also where the file was made by the try; a
 * file that must be new must be new then, too. */
static void calls_open_without_direct_writes_where_they_must(void **state)
{
    (void)state;
    struct leat_file *file = NULL;
    plan(OPEN, 0, EINVAL);
    assert_int_equal(disk->open(disk->ctx, "g", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &file, NULL),
                     LEAT_OK);
    assert_int_equal(calls[OPEN], 2);
    assert_int_equal(leat_os_file_direct_fd(file), -1);
    disk->close(disk->ctx, file);
    plan(OPEN, 0, EINVAL); /* the file is there by now: by the first try, for all that is known */
    assert_int_equal(
        disk->open(disk->ctx, "g", LEAT_OPEN_EXCLUSIVE | LEAT_OPEN_DIRECT, &file, NULL), LEAT_OK);
    disk->close(disk->ctx, file);
    assert_int_equal(
        disk->open(disk->ctx, "g", LEAT_OPEN_EXCLUSIVE | LEAT_OPEN_DIRECT, &file, NULL),
        LEAT_E_EXISTS);
    assert_int_equal(disk->open(disk->ctx, "g", LEAT_OPEN_EXCLUSIVE, &file, NULL), LEAT_E_EXISTS);
    plan(OPEN, 0, EINVAL);
    assert_int_equal(disk->open(disk->ctx, "g", 0, &file, NULL), LEAT_E_DISK);
    assert_int_equal(calls[OPEN], 1); /* that was not for direct writes */
    assert_int_equal(disk->open(disk->ctx, "g", LEAT_OPEN_READ, &file, NULL), LEAT_OK);
    assert_int_equal(run(LEAT_DISK_WRITE, file, 0, BLOCK, NULL), LEAT_E_DISK); /* to be read only */
    disk->close(disk->ctx, file);
}

/* Goal: an operation that ended beside this thread counts as it ended: whole, in part, so that the rest is done, or
 * refused. */
static void calls_that_ended_elsewhere_are_made_whole(void **state)
{
    (void)state;
    static const struct {
        int64_t result;
        leat_err rc;
        unsigned writes;
    } rows[] = {{2 * BLOCK, LEAT_OK, 0}, {BLOCK, LEAT_OK, 1},   {0, LEAT_OK, 1},
                {-EINTR, LEAT_OK, 1},    {-EAGAIN, LEAT_OK, 1}, {-ENOSPC, LEAT_E_DISK_FULL, 0},
                {-EIO, LEAT_E_DISK, 0}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_file *file = file_of("h", 0);
        assert_int_equal(disk->truncate(disk->ctx, file, 0), LEAT_OK);
        struct leat_disk_io io = {.kind = LEAT_DISK_WRITE,
                                  .file = file,
                                  .offset = BLOCK,
                                  .buffer = data,
                                  .bytes = 2 * BLOCK};
        plan(WRITE, 0, 0);
        leat_os_disk_write_ended(&io, rows[i].result);
        assert_int_equal(io.rc, rows[i].rc);
        assert_int_equal(calls[WRITE], rows[i].writes);
        assert_int_equal(io.done_bytes, rows[i].rc ? 0 : 2 * BLOCK);
        uint64_t size = 0;
        assert_int_equal(disk->size(disk->ctx, file, &size), LEAT_OK);
        assert_int_equal(size, rows[i].writes ? 3 * BLOCK : 0);
        disk->close(disk->ctx, file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_that_are_refused_are_told_by_name, begin, end),
        cmocka_unit_test_setup_teardown(calls_after_a_failed_sync_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(calls_that_do_a_part_go_on, begin, end),
        cmocka_unit_test_setup_teardown(calls_take_space_by_zeros_where_they_must, begin, end),
        cmocka_unit_test_setup_teardown(calls_open_without_direct_writes_where_they_must, begin,
                                        end),
        cmocka_unit_test_setup_teardown(calls_that_ended_elsewhere_are_made_whole, begin, end),
    };
    return cmocka_run_group_tests_name("os disk calls", tests, NULL, NULL);
}
