/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in a folder of all accounts: their names; and the removal of pools whose data directory was removed while its
 * server was down, since no server would free this memory. */
#include "os/pool.h"

#include "base/node_log.h"
#include "os/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shortens the path to its parent directory; false: there is none. */
static bool path_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || path[1] == 0) return false;
    slash[slash == path] = 0;
    return true;
}

/* Not there; whether it was removed, or is only not to be seen from here, removed() says. */
static bool missing(const struct pool_header *header)
{
    struct stat st;
    return stat(header->data_dir, &st) != 0 && errno == ENOENT;
}

/* Was the directory removed, rather than unmounted, or is it only not to be seen from here? SUBTLE: where a disk was
 * mounted there is another directory, of another device, or, where a part of the same disk was mounted there, with
 * another inode. So the innermost existing directory must be one that the data directory was in. */
static bool removed(const struct pool_header *header)
{
    struct stat st;
    char path[sizeof header->data_dir];
    memcpy(path, header->data_dir, strlen(header->data_dir) + 1);
    if (!missing(header)) return false;
    for (int outer = -1; outer < POOL_OUTER_MAX && path_up(path); outer++) {
        uint64_t inode = outer < 0 ? header->data_dir_parent_inode : header->outer_inodes[outer];
        if (stat(path, &st) == 0)
            return inode != 0 && st.st_dev == header->data_dir_device && st.st_ino == inode;
        if (errno != ENOENT) return false;
    }
    return false;
}

void leat_os_pool_name_owner(struct pool_header *header, const char *data_dir)
{
    struct stat st, around;
    char path[sizeof header->data_dir];
    size_t bytes = strlen(data_dir) + 1;
    if (bytes > sizeof header->data_dir) return;
    memcpy(path, data_dir, bytes);
    if (stat(path, &st) || !path_up(path) || stat(path, &around)) return;
    header->data_dir_device = st.st_dev;
    header->data_dir_parent_inode = around.st_ino;
    memset(header->outer_inodes, 0, sizeof header->outer_inodes);
    for (int i = 0; i < POOL_OUTER_MAX && around.st_dev == st.st_dev && path_up(path); i++)
        if (stat(path, &around) == 0 && around.st_dev == st.st_dev)
            header->outer_inodes[i] = around.st_ino;
    memcpy(header->data_dir, data_dir, bytes);
}

/* /dev/shm is everyone's: a file there is looked at only if this account made it. */
static bool is_own(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* The path is terminated. */
static bool header_read(int fd, struct pool_header *out)
{
    return pread(fd, out, sizeof *out, 0) == (ssize_t)sizeof *out && out->magic == POOL_MAGIC &&
           out->version == POOL_VERSION && out->data_dir[0] == '/' &&
           memchr(out->data_dir, 0, sizeof out->data_dir);
}

static bool is_orphan(int fd)
{
    struct pool_header header;
    return is_own(fd) && header_read(fd, &header) && removed(&header);
}

enum {
    DOUBTS_TOLD_MAX = 3 /* by name; more are counted, so that a start stays readable */
};

/* Unused pools whose directories are missing. */
struct doubts {
    unsigned count;
    uint64_t bytes;
};

/* An operator may know better than to keep such a pool. */
static void doubt_tell(struct doubts *doubts, const char *folder, const char *name, int fd)
{
    struct pool_header header;
    struct stat st;
    if (!is_own(fd) || !header_read(fd, &header) || !missing(&header) || fstat(fd, &st) ||
        flock(fd, LOCK_EX | LOCK_NB))
        return;
    doubts->bytes += (uint64_t)st.st_blocks * 512;
    if (++doubts->count > DOUBTS_TOLD_MAX) return;
    leat_node_log_info(
        "%s/%.64s has %llu MiB of memory of %.150s, which is not there: kept, as its "
        "disk may not be "
        "mounted. If that was removed for good: rm %s/%.64s",
        folder, name, (unsigned long long)st.st_blocks * 512 >> 20, header.data_dir, folder, name);
}

static void doubts_sum(const struct doubts *doubts, const char *folder)
{
    if (doubts->count <= DOUBTS_TOLD_MAX) return;
    leat_node_log_info("%s has %u such files in all, of %llu MiB: each begins with the path of its "
                       "data directory (strings FILE | head -1)",
                       folder, doubts->count, (unsigned long long)doubts->bytes >> 20);
}

/* Never waits: the file may be a pipe of another account. */
static int pool_peek(DIR *dir, const char *name)
{
    return openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* ---- names ---- */

enum pool_claim {
    POOL_FOREIGN,
    POOL_UNNAMED,
    POOL_NAMED
}; /* NAMED: its header names the directory */

static enum pool_claim pool_claim(DIR *dir, const char *name, const char *data_dir)
{
    struct pool_header header;
    enum pool_claim claim = POOL_FOREIGN;
    int fd = pool_peek(dir, name);
    if (fd < 0) return POOL_FOREIGN;
    if (is_own(fd)) claim = POOL_UNNAMED;
    if (claim == POOL_UNNAMED && header_read(fd, &header) && strcmp(header.data_dir, data_dir) == 0)
        claim = POOL_NAMED;
    (void)close(fd);
    return claim;
}

bool leat_os_pool_name(const char *folder, const char *data_dir, char out_name[POOL_NAME_BYTES],
                       bool *out_exists)
{
    char usual[POOL_NAME_BYTES];
    bool usual_free = true;
    enum pool_claim best = POOL_FOREIGN;
    int length = snprintf(usual, sizeof usual, "leat-pool-%016llx",
                          (unsigned long long)leat_os_path_hash(data_dir));
    memcpy(out_name, usual, sizeof usual);
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, usual, (size_t)length) != 0) continue;
        bool is_usual = entry->d_name[length] == 0;
        enum pool_claim claim = pool_claim(dir, entry->d_name, data_dir);
        if (is_usual) usual_free = claim != POOL_FOREIGN;
        if (claim <= best || (claim == POOL_UNNAMED && !is_usual)) continue;
        best = claim;
        snprintf(out_name, POOL_NAME_BYTES, "%.*s", POOL_NAME_BYTES - 1, entry->d_name);
    }
    if (dir) (void)closedir(dir);
    *out_exists = best != POOL_FOREIGN;
    if (*out_exists || usual_free) return true;
    uint32_t suffix;
    if (strlen(data_dir) >= sizeof((struct pool_header *)0)->data_dir ||
        getrandom(&suffix, sizeof suffix, 0) != (ssize_t)sizeof suffix)
        return false;
    snprintf(out_name, POOL_NAME_BYTES, "%.40s-%08x", usual, (unsigned)suffix);
    leat_node_log_warn("%s/%s belongs to another account; the pool is %s there", folder, usual,
                       out_name);
    return true;
}

/* ---- useless pools ---- */

unsigned leat_os_pools_collect(const char *folder, bool tells_doubts)
{
    unsigned count = 0;
    struct doubts doubts = {0};
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "leat-pool-", strlen("leat-pool-")) != 0 &&
            strncmp(entry->d_name, "leat-rmem-", strlen("leat-rmem-")) != 0)
            continue;
        int fd = pool_peek(dir, entry->d_name);
        if (fd < 0) continue;
        /* Looked at before the lock too: a server that is just starting must not find its pool locked by this check. */
        if (is_orphan(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_orphan(fd) &&
            unlinkat(dirfd(dir), entry->d_name, 0) == 0) {
            leat_node_log_info("removed the memory pool %.64s: its data directory is gone",
                               entry->d_name);
            count++;
        } else if (tells_doubts) {
            doubt_tell(&doubts, folder, entry->d_name, fd);
        }
        (void)close(fd);
    }
    (void)closedir(dir);
    doubts_sum(&doubts, folder);
    return count;
}
