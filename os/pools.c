/* Pools in a folder that is everyone's: what they are called; and those whose data directory was removed while its
 * server was dead, memory that nobody gives back. */
#include "os/pool.h"

#include "base/diary.h"
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

/* The directory that a path lies in. */
static bool parent_stat(const char *data_dir, struct stat *out)
{
    char parent[sizeof((struct pool_header *)0)->data_dir];
    memcpy(parent, data_dir, strlen(data_dir) + 1);
    char *slash = strrchr(parent, '/');
    if (!slash) return false;
    slash[slash == parent] = 0;
    return stat(parent, out) == 0;
}

/* Was the directory removed, rather than unmounted, or is it only not to be seen from here? */
static bool removed(const struct pool_header *header)
{
    struct stat st;
    if (stat(header->data_dir, &st) == 0 || errno != ENOENT) return false;
    return parent_stat(header->data_dir, &st) && st.st_dev == header->data_dir_device &&
           st.st_ino == header->data_dir_parent_inode;
}

void leat_os_pool_name_owner(struct pool_header *header, const char *data_dir)
{
    struct stat st, parent;
    size_t bytes = strlen(data_dir) + 1;
    if (bytes > sizeof header->data_dir || stat(data_dir, &st) || !parent_stat(data_dir, &parent))
        return;
    header->data_dir_device = st.st_dev;
    header->data_dir_parent_inode = parent.st_ino;
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

/* Never waits: what looks like a pool may be somebody's pipe. */
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
    leat_diary_warn("%s/%s belongs to another account; the pool is %s there", folder, usual,
                    out_name);
    return true;
}

/* ---- pools that nobody needs ---- */

unsigned leat_os_pools_collect(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "leat-pool-", strlen("leat-pool-")) != 0 &&
            strncmp(entry->d_name, "leat-rmem-", strlen("leat-rmem-")) != 0)
            continue;
        int fd = pool_peek(dir, entry->d_name);
        if (fd < 0) continue;
        /* Looked at before the lock too: a server that is just starting must not find its pool
         * locked by somebody who only looks. */
        if (is_orphan(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_orphan(fd) &&
            unlinkat(dirfd(dir), entry->d_name, 0) == 0) {
            leat_diary_info("removed the memory pool %.64s: its data directory is gone",
                            entry->d_name);
            count++;
        }
        (void)close(fd);
    }
    (void)closedir(dir);
    return count;
}
