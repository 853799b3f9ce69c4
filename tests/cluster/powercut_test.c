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

static bool disk_make(void)
{
    snprintf(dir, sizeof dir, "/tmp/leat-power-XXXXXX");
    if (geteuid() != 0 || !mkdtemp(dir)) return false;
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
    if (dir[0]) (void)run("rm -rf %s", dir);
}

/* A pool in /dev/shm would outlive what is played here: a machine without power. */
static void pools_list(glob_t *out)
{
    memset(out, 0, sizeof *out);
    (void)glob("/dev/shm/leat-pool-*", 0, NULL, out);
}

static void pools_drop(const glob_t *before)
{
    glob_t now;
    pools_list(&now);
    for (size_t i = 0; i < now.gl_pathc; i++) {
        bool others = false;
        for (size_t j = 0; j < before->gl_pathc; j++)
            others |= strcmp(now.gl_pathv[i], before->gl_pathv[j]) == 0;
        if (!others) (void)unlink(now.gl_pathv[i]);
    }
    globfree(&now);
}

static void cleanup(void)
{
    if (server.pid > 0) {
        (void)kill(server.pid, SIGKILL);
        (void)waitpid(server.pid, NULL, 0);
    }
    disk_drop();
}

static void power_cut(const glob_t *pools)
{
    /* Stopped first: a machine without power answers nobody, so no client may hear of the disk. */
    server_freeze(&server);
    int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    __u32 how = SHUTDOWN_NO_LOG_FLUSH;
    if (fd < 0 || ioctl(fd, FS_IOC_SHUTDOWN, &how)) fail("shutdown: %s", strerror(errno));
    close(fd);
    server_kill(&server);
    pools_drop(pools);
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
    glob_t pools;
    pools_list(&pools);
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
        power_cut(&pools);
        counted += open > 0;
        server_start(&server);
    }
    load_finish(load);
    load_verify(load);
    server_stop(&server);
    load_destroy(&load);
    printf("%u power cuts with unanswered appends\n", counted);
    pools_drop(&pools);
    globfree(&pools);
    disk_drop();
    return 0;
}
