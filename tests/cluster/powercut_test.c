/* SPDX-License-Identifier: Apache-2.0 */
/* Real power cuts: the data directory is an ext4 on a loop device; FS_IOC_SHUTDOWN without a log
 * flush forgets everything that was not flushed, as a cut would, and the server is killed with it.
 * Nothing acked at level `disk` may be missing afterwards.
 *
 *   powercut_test LEATD LEAT [TRIALS [SEED]]      77: skipped (no root, no loop devices)
 *
 * A cut counts only when unanswered appends were there. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cluster/load.h"

#define FS_IOC_SHUTDOWN _IOR('X', 125, __u32)
enum { SHUTDOWN_NO_LOG_FLUSH = 2, SKIPPED = 77 };

static struct server server;
static char dir[64], mountpoint[80], loop[40];

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
    char command[400];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command);
}

/* Mounts of this process are seen only in this process: a process elsewhere whose namespace had a copy of the mount
 * would keep the dead file system, and shared memory of other servers must not end with ours. */
static bool namespace_make(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(dir, dir, NULL, MS_BIND, NULL) == 0 &&
           mount(NULL, dir, NULL, MS_PRIVATE, NULL) == 0 &&
           mount(NULL, "/dev/shm", NULL, MS_PRIVATE, NULL) == 0 &&
           mount("memory", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static bool disk_make(void)
{
    snprintf(dir, sizeof dir, "/tmp/leat-power-XXXXXX");
    if (geteuid() != 0 || !mkdtemp(dir) || !namespace_make()) return false;
    snprintf(mountpoint, sizeof mountpoint, "%s/mnt", dir);
    if (run("truncate -s 4G %s/img && mkfs.ext4 -q %s/img && mkdir %s", dir, dir, mountpoint))
        return false;
    char command[120];
    snprintf(command, sizeof command, "losetup -f --show %s/img", dir);
    FILE *pipe = popen(command, "r");
    bool named = pipe && fgets(loop, sizeof loop, pipe);
    if (pipe && pclose(pipe)) named = false;
    loop[strcspn(loop, "\n")] = '\0';
    return named && mount(loop, mountpoint, "ext4", 0, NULL) == 0;
}

static void disk_drop(void)
{
    (void)umount(mountpoint);
    if (loop[0]) (void)run("losetup -d %s", loop);
    if (dir[0]) (void)umount(dir);
    if (dir[0]) (void)run("rm -rf %s", dir);
}

/* Shared memory would outlive what is played here: a machine without power. It is this test's own. */
static void memory_drop(void)
{
    glob_t files;
    if (glob("/dev/shm/*", 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            (void)unlink(files.gl_pathv[i]);
    globfree(&files);
}

static void cleanup(void)
{
    if (server.pid > 0) {
        (void)kill(server.pid, SIGKILL);
        (void)waitpid(server.pid, NULL, 0);
    }
    disk_drop();
}

static void power_cut(void)
{
    /* Stopped first: a machine without power answers nobody, so no client may hear of the disk. */
    server_freeze(&server);
    int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    __u32 how = SHUTDOWN_NO_LOG_FLUSH;
    if (fd < 0 || ioctl(fd, FS_IOC_SHUTDOWN, &how)) fail("shutdown: %s", strerror(errno));
    close(fd);
    server_kill(&server);
    memory_drop();
    if (umount(mountpoint)) fail("umount: %s", strerror(errno));
    if (mount(loop, mountpoint, "ext4", 0, NULL)) fail("mount: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: powercut_test LEATD LEAT [TRIALS [SEED]]\n");
        return 2;
    }
    if (!disk_make()) {
        disk_drop();
        printf("skipped: needs root and loop devices\n");
        return SKIPPED;
    }
    server.leatd = argv[1];
    server.leat = argv[2];
    fail_cleanup = cleanup;
    unsigned trials = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 200, counted = 0;
    uint64_t state = argc > 4 ? strtoull(argv[4], NULL, 10) : now_us();
    printf("seed %llu\n", (unsigned long long)state);
    snprintf(server.data, sizeof server.data, "%s/data", mountpoint);
    address_choose(server.address);
    server_start(&server);
    static const char *const streams[] = {"on-disk"};
    const char *const create[] = {"stream", "create", "on-disk",      "--streamlets", "2",
                                  "--logs", "2",      "--durability", "disk",         NULL};
    server_leat(&server, create);
    struct load *load = load_start(&server, streams, 1);
    while (counted < trials) {
        uint64_t open = load_wait(load, 1 + random_next(&state) % 1000);
        power_cut();
        counted += open > 0;
        server_start(&server);
    }
    load_finish(load);
    load_verify(load);
    server_stop(&server);
    load_destroy(&load);
    printf("%u power cuts with unanswered appends\n", counted);
    disk_drop();
    return 0;
}
