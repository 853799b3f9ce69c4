/* SPDX-License-Identifier: Apache-2.0 */
/* Files under the data directory. */
#include "os/internal.h"
#include "os/pool.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct leat_file {
    int fd;
    bool direct;
    /* A flush failed. The kernel may have dropped the dirty pages and report success the next time,
     * so nothing about this file can be believed any more. Relaxed: readers need no order. */
    _Atomic bool failed;
    /* SUBTLE: without O_DIRECT the kernel reports a failed page write only once, to the first sync of this descriptor
     * that ends; a concurrent sync would report success. So syncs of a file run in turn, and each checks the result
     * of the sync before. */
    pthread_mutex_t sync_lock;
};

enum { ZERO_BYTES = 1024 * 1024 };
/* Never written: all pages are the kernel's page of zeros, and cost no memory. */
static uint8_t zeros[ZERO_BYTES] __attribute__((aligned(4096)));
/* The same in a huge page, from the first use on, if the system gives a huge page: the disk gets a single piece of
 * memory in place of 256, which takes a third of the CPU and two thirds of the time. */
static uint8_t *zeros_huge = zeros;
static pthread_once_t zeros_once = PTHREAD_ONCE_INIT;

static void zeros_make(void)
{
    uint8_t *at = leat_os_addresses_reserve(HUGE_PAGE_BYTES);
    if (!at) return;
    if (mprotect(at, HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE)) return;
    memset(at, 0, 4096); /* only existing pages are collapsed */
    if (madvise(at, HUGE_PAGE_BYTES, MADV_COLLAPSE) == 0)
        zeros_huge = at;
    else
        (void)munmap(at, HUGE_PAGE_BYTES);
}

/* ---- operations ---- */

static leat_err file_write(struct leat_file *file, const uint8_t *at, size_t bytes, uint64_t offset,
                           size_t *out_done)
{
    while (bytes > 0) {
        ssize_t n = pwrite(file->fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return leat_os_errno(errno);
        if (n == 0) return LEAT_E_DISK;
        at += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
        *out_done += (size_t)n;
    }
    return LEAT_OK;
}

int leat_os_file_direct_fd(const struct leat_file *file)
{
    return file->direct && !atomic_load_explicit(&file->failed, memory_order_relaxed) ? file->fd
                                                                                      : -1;
}

void leat_os_disk_write_ended(struct leat_disk_io *io, int64_t result)
{
    if (result < 0 && result != -EINTR && result != -EAGAIN) {
        io->rc = leat_os_errno((int)-result);
        return;
    }
    size_t took = result > 0 ? (size_t)result : 0;
    LEAT_ASSERT_CMP(took, <=, io->bytes);
    io->done_bytes = took;
    if (took < io->bytes)
        io->rc = file_write(io->file, (const uint8_t *)io->buffer + took, io->bytes - took,
                            io->offset + took, &io->done_bytes);
}

static leat_err file_read(struct leat_file *file, uint8_t *at, size_t bytes, uint64_t offset,
                          size_t *out_done)
{
    while (bytes > 0) {
        ssize_t n = pread(file->fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return LEAT_E_DISK;
        if (n == 0) break; /* the end of the file */
        at += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
        *out_done += (size_t)n;
        /* A direct read ends off its alignment only at the end of the file, and going on from there
         * would be refused. */
        if (file->direct && (n & 4095) != 0) break;
    }
    return LEAT_OK;
}

static leat_err file_zero(struct leat_file *file, size_t bytes, uint64_t offset, size_t *out_done)
{
    (void)pthread_once(&zeros_once, zeros_make);
    leat_err rc = LEAT_OK;
    while (bytes > 0 && !rc) {
        size_t piece = bytes < ZERO_BYTES ? bytes : ZERO_BYTES;
        rc = file_write(file, zeros_huge, piece, offset, out_done);
        offset += piece;
        bytes -= piece;
    }
    return rc;
}

static leat_err file_sync(struct leat_file *file)
{
    leat_err rc = LEAT_OK;
    if (!file->direct) (void)pthread_mutex_lock(&file->sync_lock);
    if (atomic_load_explicit(&file->failed, memory_order_relaxed)) {
        rc = LEAT_E_DISK;
    } else if (fdatasync(file->fd) != 0) {
        rc = leat_os_errno(errno) == LEAT_E_DISK_FULL ? LEAT_E_DISK_FULL : LEAT_E_DISK;
        atomic_store_explicit(&file->failed, true, memory_order_relaxed);
    }
    if (!file->direct) (void)pthread_mutex_unlock(&file->sync_lock);
    return rc;
}

void leat_os_disk_io_run(struct leat_disk_io *io)
{
    struct leat_file *file = io->file;
    if (atomic_load_explicit(&file->failed, memory_order_relaxed)) {
        io->rc = LEAT_E_DISK;
        return;
    }
    switch (io->kind) {
    case LEAT_DISK_READ:
        io->rc = file_read(file, io->buffer, io->bytes, io->offset, &io->done_bytes);
        break;
    case LEAT_DISK_WRITE:
        io->rc = file_write(file, io->buffer, io->bytes, io->offset, &io->done_bytes);
        break;
    case LEAT_DISK_SYNC:
        io->rc = file_sync(file);
        break;
    case LEAT_DISK_ZERO:
        io->rc = file_zero(file, io->bytes, io->offset, &io->done_bytes);
        break;
    }
}

/* ---- blocking calls ---- */

static int data_fd(void *ctx)
{
    return ((struct os_actor *)ctx)->world->data_fd;
}

/* "" is the data directory itself. */
static const char *path_or_dot(const char *path)
{
    LEAT_ASSERT(path[0] != '/');
    return path[0] ? path : ".";
}

/* A pipe without a writer would keep a start for ever, at its open or at its first read. */
static bool is_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode));
}

static leat_err disk_open(void *ctx, const char *path, unsigned flags, struct leat_file **out_file,
                          struct leat_error *error)
{
    /* A write or truncation through a link would change a file elsewhere, and two names could mean the same file.
     * Directories may be links: an operator may have put a directory on another disk. */
    int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | ((flags & LEAT_OPEN_READ) ? O_RDONLY : O_RDWR);
    if (flags & LEAT_OPEN_CREATE) how |= O_CREAT;
    if (flags & LEAT_OPEN_EXCLUSIVE) how |= O_CREAT | O_EXCL;
    struct leat_file *file = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *file);
    if (!file) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to open %s", path);
    file->fd = -1;
    (void)pthread_mutex_init(&file->sync_lock, NULL);
    if (flags & LEAT_OPEN_DIRECT) {
        file->fd = openat(data_fd(ctx), path_or_dot(path), how | O_DIRECT, 0640);
        file->direct = file->fd >= 0;
        /* A refusal of O_DIRECT may come after the file was made, so the second try must not ask
         * for a new one. Only this process makes files here: it holds the lock. */
        if (file->fd < 0 && errno == EINVAL) how &= ~O_EXCL;
    }
    bool again = file->fd < 0 && (!(flags & LEAT_OPEN_DIRECT) || errno == EINVAL);
    if (again) file->fd = openat(data_fd(ctx), path_or_dot(path), how, 0640);
    if (file->fd < 0) {
        int cause = errno;
        (void)pthread_mutex_destroy(&file->sync_lock);
        leat_mem_free(file);
        return leat_error_set(error, leat_os_errno(cause), "can't open %.150s: %s", path,
                              leat_os_open_cause(cause));
    }
    if (!is_file(file->fd)) {
        (void)close(file->fd);
        (void)pthread_mutex_destroy(&file->sync_lock);
        leat_mem_free(file);
        return leat_error_set(error, LEAT_E_DISK, "can't open %.150s: it is not a file", path);
    }
    *out_file = file;
    return LEAT_OK;
}

static void disk_close(void *ctx, struct leat_file *file)
{
    (void)ctx;
    if (!file) return;
    (void)close(file->fd); /* what had to last was synced, and the sync was looked at */
    (void)pthread_mutex_destroy(&file->sync_lock);
    leat_mem_free(file);
}

static leat_err disk_size(void *ctx, struct leat_file *file, uint64_t *out_bytes)
{
    (void)ctx;
    struct stat st;
    if (fstat(file->fd, &st)) return leat_os_errno(errno);
    *out_bytes = (uint64_t)st.st_size;
    return LEAT_OK;
}

/* Where fallocate is not supported the space is taken by writing zeros. */
static leat_err zero_fill(struct leat_file *file, uint64_t from, uint64_t to)
{
    size_t done = 0;
    /* A file that is written directly has a length of whole blocks. */
    from = file->direct ? LEAT_ALIGN_DOWN(from, 4096u) : from;
    to = file->direct ? LEAT_ALIGN_UP(to, 4096u) : to;
    return from < to ? file_zero(file, (size_t)(to - from), from, &done) : LEAT_OK;
}

static leat_err disk_allocate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    uint64_t size = 0;
    leat_err rc = disk_size(ctx, file, &size);
    if (rc) return rc;
    int failed;
    do {
        failed = bytes > 0 ? fallocate(file->fd, 0, 0, (off_t)bytes) : 0;
    } while (failed && errno == EINTR);
    if (!failed) return LEAT_OK;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return leat_os_errno(errno);
    if (file->direct && size % 4096 != 0) return LEAT_E_INVALID;
    return size < bytes ? zero_fill(file, size, bytes) : LEAT_OK;
}

static leat_err disk_truncate(void *ctx, struct leat_file *file, uint64_t bytes)
{
    (void)ctx;
    return ftruncate(file->fd, (off_t)bytes) ? leat_os_errno(errno) : LEAT_OK;
}

static leat_err disk_remove(void *ctx, const char *path)
{
    if (unlinkat(data_fd(ctx), path_or_dot(path), 0) == 0) return LEAT_OK;
    if (errno == EISDIR && unlinkat(data_fd(ctx), path, AT_REMOVEDIR) == 0) return LEAT_OK;
    return leat_os_errno(errno);
}

static leat_err disk_rename(void *ctx, const char *from, const char *to)
{
    int dir = data_fd(ctx);
    return renameat(dir, path_or_dot(from), dir, path_or_dot(to)) ? leat_os_errno(errno) : LEAT_OK;
}

static leat_err disk_make_dir(void *ctx, const char *path)
{
    if (mkdirat(data_fd(ctx), path_or_dot(path), 0750) == 0 || errno == EEXIST) return LEAT_OK;
    return leat_os_errno(errno);
}

static leat_err disk_sync_dir(void *ctx, const char *path)
{
    int dir = openat(data_fd(ctx), path_or_dot(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return leat_os_errno(errno);
    leat_err rc = fsync(dir) ? leat_os_errno(errno) : LEAT_OK;
    (void)close(dir);
    return rc;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static leat_err names_add(char ***names, size_t *count, size_t *capacity, const char *name)
{
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 64;
        char **grown = leat_mem_realloc(LEAT_MEM_STORE, *names, more, sizeof(char *));
        if (!grown) return LEAT_E_NO_MEMORY;
        *names = grown;
        *capacity = more;
    }
    (*names)[*count] = leat_mem_strdup(LEAT_MEM_STORE, name);
    if (!(*names)[*count]) return LEAT_E_NO_MEMORY;
    ++*count;
    return LEAT_OK;
}

static leat_err disk_list(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                          void *arg)
{
    int fd = openat(data_fd(ctx), path_or_dot(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        leat_err failed = leat_os_errno(errno);
        if (fd >= 0) (void)close(fd);
        return failed;
    }
    char **names = NULL;
    size_t count = 0, capacity = 0;
    leat_err rc = LEAT_OK;
    while (!rc) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            if (errno) rc = leat_os_errno(errno);
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        rc = names_add(&names, &count, &capacity, entry->d_name);
    }
    (void)closedir(dir);
    if (count > 0) qsort(names, count, sizeof names[0], name_compare);
    for (size_t i = 0; i < count; i++) {
        if (!rc) each(arg, names[i]);
        leat_mem_free(names[i]);
    }
    leat_mem_free(names);
    return rc;
}

static leat_err disk_space(void *ctx, uint64_t *out_free_bytes)
{
    struct statvfs st;
    if (fstatvfs(data_fd(ctx), &st)) return leat_os_errno(errno);
    *out_free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return LEAT_OK;
}

struct leat_disk leat_os_disk_calls(struct os_actor *actor)
{
    return (struct leat_disk){
        .ctx = actor,
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
}
