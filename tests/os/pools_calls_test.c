/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in a folder that is everyone's: the name of a pool, the owner that it names, and which pools are removed. The
 * files, and the directories that they name, are played here (--wrap); each call that changes anything, and each lock,
 * is a line of the trace. */
#include "os/pool.h"

#include "base/node_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

enum { FILES_MAX = 8, DIRS_MAX = 24, ME = 42 };
#define USUAL "leat-pool-0000000000abc123"

static struct {
    struct file {
        const char *name;
        bool closed;  /* it can't be opened */
        bool unknown; /* nothing is known of it */
        struct stat st;
        struct pool_header header;
        ssize_t bytes; /* that can be read of the header */
        bool locked, stays;
    } files[FILES_MAX];
    unsigned count, read;
    struct dir {
        const char *path;
        dev_t device;
        ino_t inode;
        int error; /* else it is not to be seen, by that */
    } dirs[DIRS_MAX];
    bool folder, random;
    char asked[64]; /* the last directory that was */
} played;
static struct pool_header *lock_changes; /* is no orphan's once it is locked */

/* ---- the system ---- */
DIR *__wrap_opendir(const char *folder);
DIR *__wrap_opendir(const char *folder)
{
    trace("opendir %s\n", folder);
    played.read = 0;
    return played.folder ? (DIR *)&played : NULL;
}
struct dirent *__wrap_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir)
{
    static struct dirent entry;
    (void)dir;
    if (played.read == played.count) return NULL;
    snprintf(entry.d_name, sizeof entry.d_name, "%s", played.files[played.read++].name);
    return &entry;
}
int __wrap_closedir(DIR *dir);
int __wrap_closedir(DIR *dir)
{
    (void)dir;
    trace("closedir\n");
    return 0;
}
int __wrap_dirfd(DIR *dir);
int __wrap_dirfd(DIR *dir)
{
    (void)dir;
    return 77;
}
static unsigned opened;
int __wrap_openat64(int dir, const char *name, int how, ...);
int __wrap_openat64(int dir, const char *name, int how, ...)
{
    bool usual = how == (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) && dir == 77;
    trace("open %s%s\n", name, usual ? "" : " otherwise");
    for (unsigned i = 0; i < played.count; i++)
        if (strcmp(played.files[i].name, name) == 0 && !played.files[i].closed) {
            opened++;
            return (int)i; /* the number 0 is a file's as others are */
        }
    return -1;
}
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    trace("close %d\n", fd);
    opened--;
    return 0;
}
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out)
{
    *out = played.files[fd].st;
    return played.files[fd].unknown ? -1 : 0;
}
ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t from);
ssize_t __wrap_pread64(int fd, void *out, size_t bytes, off_t from)
{
    assert_int_equal(bytes, sizeof(struct pool_header));
    assert_int_equal(from, 0);
    memcpy(out, &played.files[fd].header, bytes);
    return played.files[fd].bytes;
}
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how)
{
    trace("lock %d%s\n", fd, how == (LOCK_EX | LOCK_NB) ? "" : " otherwise");
    if (lock_changes) lock_changes->magic = 0;
    return played.files[fd].locked ? -1 : 0;
}
int __wrap_unlinkat(int dir, const char *name, int how);
int __wrap_unlinkat(int dir, const char *name, int how)
{
    trace("unlink %d %s %d\n", dir, name, how);
    for (unsigned i = 0; i < played.count; i++)
        if (strcmp(played.files[i].name, name) == 0) return played.files[i].stays ? -1 : 0;
    return -1;
}
int __wrap_stat64(const char *path, struct stat *out);
int __wrap_stat64(const char *path, struct stat *out)
{
    snprintf(played.asked, sizeof played.asked, "%s", path);
    for (unsigned i = 0; i < DIRS_MAX && played.dirs[i].path; i++) {
        const struct dir *dir = &played.dirs[i];
        if (strcmp(dir->path, path) != 0) continue;
        errno = dir->error ? dir->error : ENOENT; /* which says nothing where all is well */
        if (dir->error) return -1;
        *out = (struct stat){.st_dev = dir->device, .st_ino = dir->inode};
        return 0;
    }
    errno = ENOENT;
    return -1;
}
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return ME;
}
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    const uint32_t number = 0xab;
    trace("random %zu %u\n", bytes, flags);
    memcpy(out, &number, bytes);
    return played.random ? (ssize_t)bytes : (ssize_t)bytes - 1;
}
uint64_t __wrap_leat_os_path_hash(const char *path);
uint64_t __wrap_leat_os_path_hash(const char *path)
{
    (void)path;
    return 0xabc123;
}

/* ---- what there is ---- */
static void is_told(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d %s\n", (int)level, line);
}

static int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof played);
    played.folder = played.random = true;
    lock_changes = NULL;
    opened = 0;
    leat_node_log_set(is_told, NULL, LEAT_NODE_LOG_INFO);
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    return opened != 0;
}

#define POOLS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static void dir_lies(const char *path, dev_t device, ino_t inode)
{
    unsigned i = 0;
    while (played.dirs[i].path)
        i++;
    assert_true(i < DIRS_MAX);
    played.dirs[i] = (struct dir){path, device, inode, 0};
}

/* A pool of this account, of a data directory. */
static struct file *file_lies(const char *name, const char *data_dir)
{
    struct file *file = &played.files[played.count++];
    *file = (struct file){.name = name, .bytes = sizeof file->header};
    file->st = (struct stat){.st_mode = S_IFREG | 0600, .st_uid = ME, .st_blocks = 4095};
    file->header.magic = POOL_MAGIC;
    file->header.version = POOL_VERSION;
    snprintf(file->header.data_dir, sizeof file->header.data_dir, "%s", data_dir);
    return file;
}

/* ---- names ---- */

static void name_is(const char *name, bool exists, const char *calls, const char *file, int line)
{
    char out[POOL_NAME_BYTES], expected[1000];
    bool out_exists = !exists;
    trace_begin();
    assert_true(leat_os_pool_name("/shm", "/data", out, &out_exists));
    snprintf(expected, sizeof expected, "opendir /shm\n%s", calls);
    trace_must_be(expected, file, line);
    if (strcmp(out, name) != 0 || exists != out_exists) fprintf(stderr, "%d: %s\n", line, out);
    assert_string_equal(out, name);
    assert_int_equal(out_exists, exists);
}
#define NAME_IS(name, exists, calls) name_is((name), (exists), (calls), __FILE__, __LINE__)

/* Goal: the usual name is taken where it is free or this account's; a header that names the directory goes before. */
static void pool_name_is_the_usual_or_its_own(void **state)
{
    (void)state;
    played.folder = false;
    NAME_IS(USUAL, false, "");
    played.folder = true;
    (void)file_lies("leat-pool-0000000000abc12", "/data");
    (void)file_lies("leat-pool-0000000000abc124", "/data");
    NAME_IS(USUAL, false, "closedir\n");
    (void)file_lies(USUAL "-01", "/other"); /* this account's, but another directory's */
    NAME_IS(USUAL, false, "open " USUAL "-01\nclose 2\nclosedir\n");
    (void)file_lies(USUAL, "/other");
    NAME_IS(USUAL, true, "open " USUAL "-01\nclose 2\nopen " USUAL "\nclose 3\nclosedir\n");
    (void)file_lies(USUAL "-02", "/data");
    NAME_IS(USUAL "-02", true,
            "open " USUAL "-01\nclose 2\nopen " USUAL "\nclose 3\nopen " USUAL
            "-02\nclose 4\nclosedir\n");
    (void)file_lies(USUAL "-03", "/data"); /* -02 stays: the first file that names /data */
    played.files[3].header.magic++;        /* half made: the name is this account's for all that */
    NAME_IS(USUAL "-02", true,
            "open " USUAL "-01\nclose 2\nopen " USUAL "\nclose 3\nopen " USUAL
            "-02\nclose 4\nopen " USUAL "-03\nclose 5\nclosedir\n");
}

/* Goal: a header of which anything is wrong names nothing. */
static void pool_name_reads_only_good_headers(void **state)
{
    (void)state;
    struct file *file = file_lies(USUAL "-01", "/data");
    const struct file good = *file;
    static const char calls[] = "open " USUAL "-01\nclose 0\nclosedir\n";
    NAME_IS(USUAL "-01", true, calls);
    for (unsigned i = 0; i < 7; i++) {
        *file = good;
        if (i == 0) file->header.magic++;
        if (i == 1) file->header.version++;
        if (i == 2) file->bytes--;
        if (i == 3) memset(file->header.data_dir, '/', sizeof file->header.data_dir);
        if (i == 4) file->st.st_uid++;
        if (i == 5) file->st.st_mode = S_IFIFO;
        if (i == 6) file->unknown = true;
        NAME_IS(USUAL, false, calls);
    }
    *file = good;
    file->closed = true;
    NAME_IS(USUAL, false, "open " USUAL "-01\nclosedir\n");
    *file = good;
    file->name = USUAL "-0123456789012345678901234567890123456789";
    NAME_IS(USUAL "-012345678901234567890123456789012345", true,
            "open " USUAL "-0123456789012345678901234567890123456789\nclose 0\nclosedir\n");
}

/* Goal: where the usual name is somebody else's, one that nobody foresees is taken, if it will be found again. */
static void pool_name_that_is_taken_has_a_random_end(void **state)
{
    (void)state;
    char out[POOL_NAME_BYTES], expected[400], path[2042];
    bool exists = true;
    file_lies(USUAL, "/data")->st.st_uid++;
    snprintf(expected, sizeof expected,
             "open " USUAL "\nclose 0\nclosedir\nrandom 4 0\nnode log %d /shm/" USUAL
             " belongs to another account; the pool is " USUAL "-000000ab there\n",
             (int)LEAT_NODE_LOG_WARN);
    NAME_IS(USUAL "-000000ab", false, expected);
    played.random = false;
    assert_false(leat_os_pool_name("/shm", "/data", out, &exists));
    assert_false(exists);
    played.random = true;
    memset(path, 'p', sizeof path);
    path[2040] = 0;
    assert_false(leat_os_pool_name("/shm", path, out, &exists)); /* no header holds that */
    path[2039] = 0;
    assert_true(leat_os_pool_name("/shm", path, out, &exists));
    (void)file_lies(USUAL "-01", "/data"); /* found again */
    NAME_IS(USUAL "-01", true, "open " USUAL "\nclose 0\nopen " USUAL "-01\nclose 1\nclosedir\n");
}

/* ---- owners ---- */

/* Goal: a header names its directory with all that it lies in, on the same device, the innermost first. */
static void pool_names_the_directories_around(void **state)
{
    (void)state;
    struct pool_header header;
    memset(&header, 0xff, sizeof header);
    dir_lies("/a/b/c/d", 5, 50);
    dir_lies("/a/b/c", 5, 51);
    dir_lies("/a/b", 5, 52);
    dir_lies("/a", 5, 53);
    dir_lies("/", 5, 54);
    leat_os_pool_name_owner(&header, "/a/b/c/d");
    assert_string_equal(header.data_dir, "/a/b/c/d");
    assert_int_equal(header.data_dir_device, 5);
    assert_int_equal(header.data_dir_parent_inode, 51);
    static const uint64_t all[POOL_OUTER_MAX] = {52, 53, 54}, some[POOL_OUTER_MAX] = {52},
                          gap[POOL_OUTER_MAX] = {0, 53, 54}, none[POOL_OUTER_MAX];
    assert_memory_equal(header.outer_inodes, all, sizeof all);
    played.dirs[3].device = 6; /* a mount's own boundary */
    leat_os_pool_name_owner(&header, "/a/b/c/d");
    assert_memory_equal(header.outer_inodes, some, sizeof some);
    played.dirs[3].device = 5;
    played.dirs[2].error = EACCES;
    leat_os_pool_name_owner(&header, "/a/b/c/d");
    assert_memory_equal(header.outer_inodes, gap, sizeof gap);
    played.dirs[1].device = 6; /* the directory is where something is mounted */
    leat_os_pool_name_owner(&header, "/a/b/c/d");
    assert_int_equal(header.data_dir_parent_inode, 51);
    assert_memory_equal(header.outer_inodes, none, sizeof none);
    leat_os_pool_name_owner(&header, "/a");
    assert_string_equal(header.data_dir, "/a");
    assert_int_equal(header.data_dir_parent_inode, 54);
    assert_memory_equal(header.outer_inodes, none, sizeof none);
}

/* Goal: of what is deeper than there is room for, the innermost are named; of what is not there, or has no room,
 * nothing changes. */
static void pool_names_no_more_than_it_has_room_for(void **state)
{
    (void)state;
    static char paths[20][64], longest[2042];
    struct {
        struct pool_header header;
        uint64_t behind[2];
    } room;
    static const uint64_t zeros[2];
    struct pool_header before;
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned k = 0; k <= i; k++)
            snprintf(paths[i] + strlen(paths[i]), 8, "/x");
        dir_lies(paths[i], 5, 100 + i);
    }
    memset(&room, 0, sizeof room);
    leat_os_pool_name_owner(&room.header, paths[19]);
    assert_int_equal(room.header.data_dir_parent_inode, 118);
    for (unsigned i = 0; i < POOL_OUTER_MAX; i++)
        assert_int_equal(room.header.outer_inodes[i], 117 - i);
    assert_memory_equal(room.behind, zeros, sizeof zeros);
    before = room.header;
    leat_os_pool_name_owner(&room.header, "/gone");
    dir_lies("none", 5, 3);
    leat_os_pool_name_owner(&room.header, "none");
    dir_lies("/", 5, 1);
    leat_os_pool_name_owner(&room.header, "/"); /* it lies in none */
    played.dirs[21].error = EACCES;
    leat_os_pool_name_owner(&room.header, "/x"); /* of what it lies in nothing is known */
    memset(longest, 'l', sizeof longest);
    longest[0] = '/';
    longest[2040] = 0;
    dir_lies(longest, 5, 2);
    played.dirs[21].error = 0;
    leat_os_pool_name_owner(&room.header, longest);
    assert_memory_equal(&room.header, &before, sizeof before);
    longest[2039] = 0;
    leat_os_pool_name_owner(&room.header, longest);
    assert_string_equal(room.header.data_dir, longest);
}

/* ---- removing ---- */

#define GONE "/a/b/c"
#define TOLD                                                                                       \
    "node log %d /shm/leat-pool-1 has 1 MiB of memory of " GONE                                    \
    ", which is not there: kept, as its disk may not be mounted. If that was removed for good: "   \
    "rm /shm/leat-pool-1\n"

/* One pool, of a directory that is gone from where /a/b lies. */
static struct file *orphan_lies(const char *name)
{
    struct file *file = file_lies(name, GONE);
    file->header.data_dir_device = 5;
    file->header.data_dir_parent_inode = 51;
    file->header.outer_inodes[0] = 52;
    file->header.outer_inodes[1] = 53;
    return file;
}

static void collected_is(unsigned count, bool tells, const char *calls, const char *file, int line)
{
    char expected[3000];
    trace_begin();
    assert_int_equal(leat_os_pools_collect("/shm", tells), count);
    snprintf(expected, sizeof expected, "opendir /shm\n%sclosedir\n", calls);
    trace_must_be(expected, file, line);
}
#define COLLECTED_IS(count, tells, calls)                                                          \
    collected_is((count), (tells), (calls), __FILE__, __LINE__)

/* Goal: a pool goes whose directory was removed, alone or with directories around it. Names that are not of pools, and
 * files that can't be opened, are left alone. */
static void pools_whose_directory_was_removed_go(void **state)
{
    (void)state;
    char calls[400];
    played.folder = false;
    assert_int_equal(leat_os_pools_collect("/shm", true), 0);
    TRACE_IS("opendir /shm\n");
    played.folder = true;
    (void)orphan_lies("leat-pool-1");
    (void)orphan_lies("leat-rmem-2");
    (void)orphan_lies("leat-pool_3");
    (void)orphan_lies("leat-rmem_4");
    orphan_lies("leat-pool-5")->closed = true;
    snprintf(
        calls, sizeof calls,
        "open leat-pool-1\nlock 0\nunlink 77 leat-pool-1 0\n"
        "node log %d removed the memory pool leat-pool-1: its data directory is gone\nclose 0\n"
        "open leat-rmem-2\nlock 1\nunlink 77 leat-rmem-2 0\n"
        "node log %d removed the memory pool leat-rmem-2: its data directory is gone\nclose 1\n"
        "open leat-pool-5\n",
        (int)LEAT_NODE_LOG_INFO, (int)LEAT_NODE_LOG_INFO);
    dir_lies("/a/b", 5, 51);
    COLLECTED_IS(2, false, calls);
    played.dirs[0] = (struct dir){"/a", 5, 52, 0};
    COLLECTED_IS(2, false, calls);
    played.dirs[0] = (struct dir){"/", 5, 53, 0};
    COLLECTED_IS(2, true, calls);
}

/* Goal: a pool of which anything is in doubt stays: told only if nobody uses it and its directory is not there. */
static void pools_in_doubt_stay(void **state)
{
    (void)state;
    struct file *file = orphan_lies("leat-pool-1");
    const struct file good = *file;
    char told[400];
    snprintf(told, sizeof told, "open leat-pool-1\nlock 0\n" TOLD "close 0\n",
             (int)LEAT_NODE_LOG_INFO);
    static const char still[] = "open leat-pool-1\nclose 0\n";
    for (unsigned i = 0;; i++) {
        *file = good;
        played.dirs[0] = (struct dir){"/a/b", 5, 51, 0};
        played.dirs[1] = (struct dir){0};
        const char *calls = told;
        if (i == 0) played.dirs[0].device = 6; /* another disk's, where one was mounted */
        if (i == 1) played.dirs[0].inode = 52;
        if (i == 2) played.dirs[0].error = EACCES;
        if (i == 3) file->header.data_dir_parent_inode = played.dirs[0].inode = 0;
        if (i == 4) played.dirs[0].path = NULL;                    /* nothing is there at all */
        if (i == 5) played.dirs[0] = (struct dir){"/a", 5, 51, 0}; /* the one around has another */
        if (i == 6) played.dirs[0] = (struct dir){GONE, 5, 50, 0}, calls = still;
        if (i == 7) played.dirs[0] = (struct dir){GONE, 5, 50, EACCES}, calls = still;
        if (i == 8) file->st.st_uid++, calls = still;
        if (i == 9) file->st.st_mode = S_IFIFO, calls = still;
        if (i == 10) file->unknown = true, calls = still;
        if (i == 11) file->header.magic++, calls = still;
        if (i == 12) file->header.version++, calls = still;
        if (i == 13) file->header.data_dir[0] = 'a', calls = still;
        if (i == 14) file->header.data_dir[0] = 0, calls = still;
        if (i == 15) file->bytes--, calls = still;
        if (i == 16)
            memset(file->header.data_dir, '/', sizeof file->header.data_dir), calls = still;
        if (i == 17) file->locked = true, calls = "open leat-pool-1\nlock 0\nlock 0\nclose 0\n";
        if (i == 18) played.dirs[1] = (struct dir){GONE, 5, 50, 0}, calls = still;
        if (i == 19) played.dirs[0].error = EACCES, played.dirs[1] = (struct dir){"/a", 5, 52, 0};
        if (i == 20) break;
        COLLECTED_IS(0, true, calls);
        if (calls == told) COLLECTED_IS(0, false, still);
    }
    *file = good;
    file->stays = true; /* it can't be removed */
    snprintf(told, sizeof told,
             "open leat-pool-1\nlock 0\nunlink 77 leat-pool-1 0\nlock 0\n" TOLD "close 0\n",
             (int)LEAT_NODE_LOG_INFO);
    COLLECTED_IS(0, true, told);
    *file = good;
    lock_changes = &file->header; /* it was taken just before the lock */
    COLLECTED_IS(0, true, "open leat-pool-1\nlock 0\nclose 0\n");
}

/* Goal: three doubts are told by name, then how many there are in all, of how much. */
static void pools_in_doubt_are_told_in_a_few_lines(void **state)
{
    (void)state;
    static const char *const names[] = {"leat-pool-1", "leat-pool-2", "leat-pool-3", "leat-pool-4"};
    char calls[3000];
    size_t n = 0;
    for (unsigned i = 0; i < 4; i++) {
        (void)orphan_lies(names[i]);
        n += (size_t)snprintf(calls + n, sizeof calls - n, "open %s\nlock %u\n", names[i], i);
        if (i < 3)
            n += (size_t)snprintf(
                calls + n, sizeof calls - n,
                "node log %d /shm/%s has 1 MiB of memory of " GONE
                ", which is not there: kept, as its disk may not be mounted. If that was removed "
                "for good: rm /shm/%s\n",
                (int)LEAT_NODE_LOG_INFO, names[i], names[i]);
        n += (size_t)snprintf(calls + n, sizeof calls - n, "close %u\n", i);
        played.count = i + 1;
        if (i == 2) COLLECTED_IS(0, true, calls);
    }
    char expected[4000];
    played.files[3].st.st_blocks = 2 * 4096 - 1;
    snprintf(expected, sizeof expected,
             "opendir /shm\n%sclosedir\nnode log %d /shm has 4 such files in all, of 9 MiB: each "
             "begins with the path of its data directory (strings FILE | head -1)\n",
             calls, (int)LEAT_NODE_LOG_INFO);
    trace_begin();
    assert_int_equal(leat_os_pools_collect("/shm", true), 0);
    TRACE_IS(expected);
}

/* Goal: as many around a directory are asked for as a header names, and no more. */
static void pools_are_looked_for_as_far_as_named(void **state)
{
    (void)state;
    struct file *file = file_lies("leat-pool-1", "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x");
    char calls[400];
    file->header.data_dir_device = 5;
    file->header.outer_inodes[POOL_OUTER_MAX - 1] = 9;
    dir_lies("/x", 5, 9); /* the last that is named */
    snprintf(
        calls, sizeof calls,
        "open leat-pool-1\nlock 0\nunlink 77 leat-pool-1 0\n"
        "node log %d removed the memory pool leat-pool-1: its data directory is gone\nclose 0\n",
        (int)LEAT_NODE_LOG_INFO);
    COLLECTED_IS(1, false, calls);
    played.dirs[0].path = "/"; /* one more */
    COLLECTED_IS(0, false, "open leat-pool-1\nclose 0\n");
    assert_string_equal(played.asked, "/x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOLS_TEST(pool_name_is_the_usual_or_its_own),
        POOLS_TEST(pool_name_reads_only_good_headers),
        POOLS_TEST(pool_name_that_is_taken_has_a_random_end),
        POOLS_TEST(pool_names_the_directories_around),
        POOLS_TEST(pool_names_no_more_than_it_has_room_for),
        POOLS_TEST(pools_whose_directory_was_removed_go),
        POOLS_TEST(pools_in_doubt_stay),
        POOLS_TEST(pools_in_doubt_are_told_in_a_few_lines),
        POOLS_TEST(pools_are_looked_for_as_far_as_named),
    };
    return cmocka_run_group_tests_name("os-pools-calls", tests, NULL, NULL);
}
