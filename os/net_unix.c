/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: the kernel tells the account of the connecting process. */
#include "os/net.h"

#include "base/node_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char prefix[] = "unix:";

const char *leat_os_unix_path(const char *address)
{
    size_t bytes = sizeof prefix - 1;
    return strncmp(address, prefix, bytes) == 0 && address[bytes] ? address + bytes : NULL;
}

/* ---- listening ---- */

/* A socket of a killed process: this process has the directory (leat_os_lock()), so no process listens there. */
static bool stale_remove(int dir_fd, const char *name, const char *address,
                         struct leat_error *error)
{
    struct stat found;
    if (fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return true; /* bind() tells the rest */
    if (S_ISSOCK(found.st_mode) && unlinkat(dir_fd, name, 0) == 0) return true;
    (void)leat_error_set(error, LEAT_E_EXISTS,
                         "can't listen on %.100s: something else has that name in the data "
                         "directory; move it away",
                         address);
    return false;
}

leat_err leat_os_unix_listen(struct os_actor *actor, const char *address, int *out_fd,
                             struct leat_error *error)
{
    const char *name = leat_os_unix_path(address);
    int dir_fd = actor->world->data_fd;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    /* By way of its directory: a path longer than the 107 bytes of an address does not matter then. */
    int length = snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
    if (dir_fd < 0 || strchr(name, '/') || length < 0 || (size_t)length >= sizeof at.sun_path)
        return leat_error_set(error, LEAT_E_INVALID, "%.100s is no name in the data directory",
                              address);
    if (!stale_remove(dir_fd, name, address, error)) return LEAT_E_EXISTS;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A socket's file gets the mode that the socket has when it is bound: it is never open to other accounts. */
    if (fd >= 0 && fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        listen(fd, LEAT_NET_BACKLOG) == 0) {
        *out_fd = fd;
        return LEAT_OK;
    }
    int cause = errno;
    if (fd >= 0) (void)close(fd);
    return leat_error_set(error, LEAT_E_CONFIG, "can't listen on %.100s: %s", address,
                          strerror(cause));
}

void leat_os_unix_forget(struct os_actor *actor, const char *address)
{
    /* Fails if the socket or the directory has been removed: nothing is left to do then. */
    (void)unlinkat(actor->world->data_fd, leat_os_unix_path(address), 0);
}

bool leat_os_unix_admit(struct leat_conn *conn, int fd)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return false;
    snprintf(conn->peer, sizeof conn->peer, "process %ld of account %lu", (long)who.pid,
             (unsigned long)who.uid);
    /* The file's mode says the same; not every file system keeps to it, and modes can be changed. */
    if (who.uid != 0 && who.uid != geteuid()) return false;
    conn->origin = LEAT_ORIGIN_OWNER;
    return true;
}

/* ---- connecting ---- */

int leat_os_unix_connect(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int length = snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
    /* no process listens there, in both cases */
    int cause = errno == ENOENT ? ECONNREFUSED : errno;
    (void)close(fd);
    errno = cause;
    return -1;
}
