/* SPDX-License-Identifier: Apache-2.0 */
/* Services of the operating system for a program. */
#include "os/net.h"

#include "base/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_WAIT_MS_MAX = 30 * 1000, LOCK_LOOK_EVERY_MS = 10 };

/* The reason, and what the operator can do. */
static leat_err refused(struct leat_error *error, leat_err rc, const char *what, const char *path,
                        int code, const char *option)
{
    const char *first = code == ENOSPC || code == EDQUOT ? "free space there, or "
                        : code == EACCES || code == EPERM || code == EROFS
                            ? "allow this account to write there, or "
                            : "";
    return leat_error_set(error, rc, "can't %s %.150s: %s: %sname another by %s", what, path,
                          leat_os_open_cause(code), first, option);
}

leat_err leat_os_directories_make(const char *path, const char *option, struct leat_error *error)
{
    struct stat st;
    char part[LEAT_OS_PATH_BYTES];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return leat_error_set(error, LEAT_E_CONFIG, "a directory's path is empty or long");
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        char kept = part[i];
        part[i] = 0;
        int code = mkdir(part, 0750) ? errno : 0;
        if (code == EEXIST && stat(part, &st) == 0 && !S_ISDIR(st.st_mode)) code = ENOTDIR;
        if (code != 0 && code != EEXIST)
            return refused(error, LEAT_E_CONFIG, "make the directory", part, code, option);
        part[i] = kept;
    }
    return LEAT_OK;
}

static void lock_holder(int fd, char out[24])
{
    ssize_t n = pread(fd, out, 23, 0);
    size_t length = n > 0 ? (size_t)n : 0;
    out[length] = 0;
    out[strspn(out, "0123456789")] = 0;
    if (!out[0]) memcpy(out, "unknown", sizeof "unknown");
}

/* A process that ends gives its locks back only after its memory, and 8 GiB of memory take a second: a supervisor
 * starts the next server at once, and the dead process must not make this start fail. As soon as the kernel frees the
 * memory of a process, its /proc/PID/exe leads nowhere. */
static bool holder_is_ending(const char *pid_text)
{
    char path[64], text[4096];
    long pid = strtol(pid_text, NULL, 10);
    if (pid <= 0) return false; /* unknown holder */
    if (kill((pid_t)pid, 0) && errno == ESRCH) return true;
    snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    if (readlink(path, text, sizeof text) < 0 && errno == ENOENT) return true;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false; /* gone just now: the lock is free at the next look */
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *state = strstr(text, "\nState:\t"), *pending = strstr(text, "\nSigPnd:\t");
    if (state && (state[8] == 'Z' || state[8] == 'X')) return true;
    uint64_t kill_bit = UINT64_C(1) << (SIGKILL - 1); /* killed, and did not run since */
    return pending && (strtoull(pending + 9, NULL, 16) & kill_bit) != 0;
}

/* Until the holder has ended, or a moment, where the kernel tells of no end (before 5.3, or not ours to watch). */
static void holder_wait(const char *holder)
{
    int end = (int)syscall(SYS_pidfd_open, strtol(holder, NULL, 10), 0);
    struct pollfd wait = {.fd = end, .events = POLLIN}; /* a negative one is left out */
    (void)poll(&wait, 1, LOCK_LOOK_EVERY_MS);
    if (end >= 0) (void)close(end);
}

/* Waits only for processes that are ending; false: out_holder has the lock and keeps it. A holder counts as alive
 * only after two checks in a row: between the SIGKILL and the release of its memory nothing shows that a process is
 * ending. */
static bool lock_take(int fd, char out_holder[24])
{
    int lives = 0;
    for (int waited_ms = 0;; waited_ms += LOCK_LOOK_EVERY_MS) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        lock_holder(fd, out_holder);
        lives = holder_is_ending(out_holder) ? 0 : lives + 1;
        if (waited_ms >= LOCK_WAIT_MS_MAX || lives == 2) return false;
        holder_wait(out_holder);
    }
}

/* Is the file among these files, by device and inode? */
static bool is_named(const struct stat *st, const char *const *paths)
{
    struct stat other;
    for (; *paths; paths++)
        if (stat(*paths, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
            return true;
    return false;
}

/* Files of a start that ended before it had made the identity; files of the file system itself; hidden files; and
 * files that this process was told to read. */
static bool is_harmless(DIR *listing, const char *name, const char *const *own_files)
{
    static const char *const names[] = {"lock", "pool", "leatd.sock", "lost+found"};
    struct stat st;
    if (name[0] == '.' || strncmp(name, "leat-rmem-", strlen("leat-rmem-")) == 0) return true;
    bool named = fstatat(dirfd(listing), name, &st, 0) == 0 && is_named(&st, own_files);
    for (size_t i = 0; !named && i < sizeof names / sizeof *names; i++)
        named = strcmp(name, names[i]) == 0;
    return named;
}

/* Somebody else's: files would be put between theirs. Names such as "store" and "raft" others give too: a server's
 * directory is told by its file "identity", which is the first that is made. */
static bool is_foreign(const char *data_dir, const char *const *own_files, char *out_name,
                       size_t size)
{
    DIR *listing = opendir(data_dir);
    struct stat st;
    bool others = false;
    if (!listing) return false; /* what can't be read is refused further on, by its cause */
    bool ours = fstatat(dirfd(listing), "identity", &st, 0) == 0 && S_ISREG(st.st_mode);
    for (const struct dirent *entry; !ours && !others && (entry = readdir(listing)) != NULL;) {
        others = !is_harmless(listing, entry->d_name, own_files);
        if (others) snprintf(out_name, size, "%.60s", entry->d_name);
    }
    (void)closedir(listing);
    return others;
}

leat_err leat_os_lock(const char *data_dir, const char *const *own_files, struct leat_error *error)
{
    leat_err rc = leat_os_directories_make(data_dir, "--data", error);
    if (rc) return rc;
    char other[64];
    if (is_foreign(data_dir, own_files, other, sizeof other))
        return leat_error_set(
            error, LEAT_E_CONFIG,
            "the directory %.120s has '%s' in it and no file \"identity\" of a server's: --data "
            "names an empty directory, one that is to be made, or a server's own, whole",
            data_dir, other);
    char path[LEAT_OS_PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/lock", data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0) return refused(error, LEAT_E_CONFIG, "open", path, errno, "--data");
    char holder[24];
    if (!lock_take(fd, holder)) {
        (void)close(fd);
        return leat_error_set(error, LEAT_E_LOCKED,
                              "the data directory %.120s is in use by process %s: end that "
                              "process, or name another directory by --data",
                              data_dir, holder);
    }
    char pid[24];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    /* The text only serves the message above; the lock itself is the kernel's. */
    errno = ENOSPC; /* where it is written in part */
    if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)length, 0) != length) {
        int code = errno;
        (void)close(fd);
        return refused(error, LEAT_E_DISK_FULL, "write", path, code, "--data");
    }
    return LEAT_OK; /* fd stays open on purpose: the process's end gives the lock back */
}

void leat_os_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@')) return;
    size_t length = strlen(path);
    if (length >= sizeof to.sun_path) return;
    memcpy(to.sun_path, path, length);
    if (path[0] == '@') to.sun_path[0] = 0; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    /* A supervisor that does not listen is no reason to do anything else. */
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, bytes);
    (void)close(fd);
}

uint64_t leat_os_cpu_us(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* "max" and unreadable files are no limit. */
static uint64_t limit_read(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return UINT64_MAX;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n <= 0 || text[0] < '0' || text[0] > '9') return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* The least limit of a control group and its parents. */
static uint64_t group_limit(const char *root, char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[LEAT_OS_PATH_BYTES];
        int length = snprintf(path, sizeof path, "%s%s/%s", root, group, file);
        if (length > 0 && (size_t)length < sizeof path) {
            uint64_t limit = limit_read(path);
            if (limit < least) least = limit;
        }
        char *slash = strrchr(group, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/* Lines "0::/path" (version 2) and "4:memory:/path" (version 1). */
static uint64_t groups_limit(void)
{
    uint64_t least = UINT64_MAX;
    FILE *groups = fopen("/proc/self/cgroup", "re");
    if (!groups) return least;
    char line[2048];
    while (fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = 0;
        char *kind = strchr(line, ':');
        char *group = kind ? strchr(kind + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        kind++;
        uint64_t limit = UINT64_MAX;
        if (!*kind)
            limit = group_limit("/sys/fs/cgroup", group, "memory.max");
        else if (strstr(kind, "memory"))
            limit = group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        if (limit < least) least = limit;
    }
    (void)fclose(groups);
    return least;
}

uint64_t leat_os_memory_bytes(void)
{
    uint64_t machine = uv_get_total_memory(), group = groups_limit();
    return group < machine ? group : machine;
}

unsigned leat_os_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int count = CPU_COUNT(&set);
    if (count < 1) return 1;
    return count > LEAT_CORES_MAX ? LEAT_CORES_MAX : (unsigned)count;
}

void leat_os_files(struct leat_os_files *out)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
    uint64_t all = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    out->kept = all / 8 < LEAT_NET_FILES_KEPT_MAX ? all / 8 : LEAT_NET_FILES_KEPT_MAX;
    out->clients = all - out->kept;
}

leat_err leat_os_default_data_dir(char out_path[4096], struct leat_error *error)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (state && state[0] == '/')
        length = snprintf(out_path, 4096, "%s/leat", state);
    else if (home && home[0] == '/')
        length = snprintf(out_path, 4096, "%s/.local/state/leat", home);
    if (length < 0 || length >= 4096)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "neither XDG_STATE_HOME nor HOME is set: name a data directory");
    return LEAT_OK;
}
