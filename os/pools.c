/* Pools whose data directory was removed while its server was dead: memory that nobody gives back. */
#include "os/pool.h"

#include "base/diary.h"
#include "os/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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

static bool is_orphan(int fd)
{
    struct stat st;
    struct pool_header header;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) return false;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header) return false;
    if (header.magic != POOL_MAGIC || header.version != POOL_VERSION) return false;
    if (header.data_dir[0] != '/' || !memchr(header.data_dir, 0, sizeof header.data_dir))
        return false;
    return removed(&header);
}

unsigned leat_os_pools_collect(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "leat-pool-", strlen("leat-pool-")) != 0 &&
            strncmp(entry->d_name, "leat-rmem-", strlen("leat-rmem-")) != 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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
