/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory between real processes: writers that are killed or stopped in the middle, hosts that
 * are killed. The program starts itself again as the other process. */
#include "tests/transport/os_rig.h"

#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/os/real_rig.h"

enum {
    STEP = LEAT_ARENA_STEP_BYTES,
    WRITE_BYTES = 4 * 1024,
    PIPE_BYTES = 4096, /* so far a writer gets ahead of what is heard of it */
    WRITES = STEP / WRITE_BYTES,
    UNDER_WAY = 16,
    KILLS = 40,
    STOPS = 20,
};

/* What the processes share. */
struct shared {
    struct leat_rmem_grant grant;
    _Atomic uint64_t acked; /* raised in on_done, before anything else */
    _Atomic bool failed;
};
static struct shared *shared;
static char shared_path[64];

static void shared_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    RIG_CHECK(fd >= 0 && ftruncate(fd, sizeof *shared) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RIG_CHECK(shared != MAP_FAILED);
    close(fd);
}

static uint8_t pattern(uint64_t number)
{
    return (uint8_t)(number % 251 + 1);
}

/* ---- the other process: a writer ---- */

struct writer {
    struct os_rig *rig;
    struct leat_rmem_target *target;
    struct leat_rmem_write writes[UNDER_WAY];
    struct leat_iov iovs[UNDER_WAY];
    uint8_t *bytes;
    uint64_t posted;
    bool over;
};

static void writer_post(struct writer *writer, struct leat_rmem_write *write);

static void writer_on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct writer *writer = write->owner;
    if (rc) return;
    atomic_fetch_add(&shared->acked, 1);
    RIG_CHECK(putchar('.') == '.' && fflush(stdout) == 0); /* the other process waits for these */
    writer_post(writer, write);
}
static void writer_post(struct writer *writer, struct leat_rmem_write *write)
{
    size_t slot = (size_t)(write - writer->writes);
    if (writer->posted == WRITES) return;
    uint8_t *bytes = writer->bytes + slot * WRITE_BYTES;
    memset(bytes, pattern(writer->posted), WRITE_BYTES);
    writer->iovs[slot] = (struct leat_iov){bytes, WRITE_BYTES};
    *write = (struct leat_rmem_write){.iovs = &writer->iovs[slot],
                                      .iov_count = 1,
                                      .offset = writer->posted * WRITE_BYTES,
                                      .on_done = writer_on_done,
                                      .owner = writer};
    if (leat_rmem_write(writer->target, write) == LEAT_OK) writer->posted++;
}
static void writer_on_attached(void *user, struct leat_rmem_target *target)
{
    struct writer *writer = user;
    writer->target = target;
    for (unsigned i = 0; i < UNDER_WAY; i++)
        writer_post(writer, &writer->writes[i]);
}
static void writer_on_failed(void *user, struct leat_rmem_target *target,
                             const struct leat_error *error)
{
    struct writer *writer = user;
    (void)error;
    leat_rmem_detach(target);
    atomic_store(&shared->failed, true);
    writer->over = true;
    writer->rig->rig.notify(writer->rig);
}
static const struct leat_rmem_target_handler writer_handler = {writer_on_attached,
                                                               writer_on_failed};
static void writer_begin(void *arg)
{
    struct writer *writer = arg;
    const struct leat_rmem *port = writer->rig->rig.writer;
    RIG_CHECK(port->attach(port->ctx, 0, &shared->grant, &writer_handler, writer, &writer->target,
                           NULL) == LEAT_OK);
}
static bool writer_over(void *arg)
{
    return ((struct writer *)arg)->over;
}

static int writer_main(const char *dir)
{
    struct writer writer = {.rig = os_rig_make(dir, NULL)};
    writer.rig->rig.writer = os_rig_writer(writer.rig, LEAT_RMEM_SHM);
    writer.bytes = malloc((size_t)UNDER_WAY * WRITE_BYTES);
    os_rig_start(writer.rig);
    writer.rig->rig.call(writer.rig, RIG_WRITER, writer_begin, &writer);
    writer.rig->rig.wait(writer.rig, RIG_WRITER, writer_over, &writer);
    os_rig_stop(writer.rig);
    os_rig_drop(writer.rig);
    return 0;
}

/* ---- host's calls, here or in the other process ---- */

struct host {
    struct os_rig *rig;
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    bool grown;
    unsigned inherited;
    uint8_t id[LEAT_RMEM_ID_BYTES];
};

static void on_grown(struct leat_rmem_grow *grow)
{
    struct host *host = grow->owner;
    RIG_CHECK(grow->rc == LEAT_OK);
    host->grown = true;
    host->rig->rig.notify(host->rig);
}
static void host_open(void *arg)
{
    struct host *host = arg;
    const struct leat_rmem_host *port = host->rig->rig.host;
    RIG_CHECK(port->open(port->ctx, "writer", 1, STEP, &host->arena, NULL) == LEAT_OK);
    host->grown = false;
    host->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = host};
    port->grow(port->ctx, host->arena, &host->grow);
}
static bool host_grown(void *arg)
{
    return ((struct host *)arg)->grown;
}
static void host_grant(void *arg)
{
    struct host *host = arg;
    const struct leat_rmem_host *port = host->rig->rig.host;
    port->grant(port->ctx, host->arena, &shared->grant);
}
static void host_arena(struct host *host)
{
    host->rig->rig.call(host->rig, RIG_HOST, host_open, host);
    host->rig->rig.wait(host->rig, RIG_HOST, host_grown, host);
    host->rig->rig.call(host->rig, RIG_HOST, host_grant, host);
}
static uint8_t *copy;
static void host_revoke_and_copy(void *arg)
{
    struct host *host = arg;
    host->rig->rig.host->revoke(host->rig->rig.host->ctx, host->arena);
    memcpy(copy, host->arena->base, STEP);
}
static void host_retire(void *arg)
{
    struct host *host = arg;
    host->rig->rig.host->retire(host->rig->rig.host->ctx, host->arena);
}

static int host_main(const char *dir)
{
    struct host host = {.rig = os_rig_make(dir, NULL)};
    os_rig_start(host.rig);
    host_arena(&host);
    memset(host.arena->base, 0x5a, 4096);
    RIG_CHECK(putchar('.') == '.' && fflush(stdout) == 0);
    for (;;)
        (void)pause();
}

/* ---- starting the other process ---- */

struct process {
    pid_t pid;
    int out; /* what it prints */
};

static struct process start(const char *role, const char *dir)
{
    int ends[2];
    RIG_CHECK(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) >= 0);
    struct process process = {.out = ends[0]};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    char *const arguments[] = {(char *)"transport_process_test", (char *)(uintptr_t)role,
                               shared_path, (char *)(uintptr_t)dir, NULL};
    RIG_CHECK(posix_spawn(&process.pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    return process;
}
/* Until it has printed so many; false: it ended before. */
static bool heard(struct process *process, unsigned count)
{
    char dots[64];
    while (count > 0) {
        ssize_t n = read(process->out, dots, count < sizeof dots ? count : sizeof dots);
        if (n <= 0) return false;
        count -= (unsigned)n;
    }
    return true;
}
static void drain(struct process *process)
{
    while (heard(process, 64))
        continue;
    close(process->out);
}

/* Every acked write is there, whole; of the later writes a prefix is there, and the rest is zero. Returns whether the
 * last write is torn. */
static bool check_copy(uint64_t acked)
{
    uint64_t at = 0;
    while (at < STEP && copy[at] == pattern(at / WRITE_BYTES))
        at++;
    assert_true(at >= acked * WRITE_BYTES);
    /* Stores need not become visible in address order, but nothing may lie past what was under way. */
    uint64_t end = (acked + 2 * UNDER_WAY) * WRITE_BYTES;
    assert_true(end >= STEP ||
                (copy[end] == 0 && memcmp(copy + end, copy + end + 1, STEP - end - 1) == 0));
    return at % WRITE_BYTES != 0;
}

static void temp_files(char dir[32])
{
    snprintf(dir, 32, "/var/tmp/leat-proc-XXXXXX");
    RIG_CHECK(mkdtemp(dir) != NULL);
    snprintf(shared_path, sizeof shared_path, "%s/shared", dir);
    shared_map(shared_path);
}

static void writer_killed_in_the_middle_leaves_all_that_was_acked(void **state)
{
    char dir[32];
    (void)state;
    temp_files(dir);
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 3);
    struct host host = {.rig = os_rig_make(NULL, NULL)};
    os_rig_start(host.rig);
    copy = malloc(STEP);
    unsigned in_the_middle = 0, torn = 0;
    for (unsigned i = 0; i < KILLS; i++) {
        host_arena(&host);
        atomic_store(&shared->acked, 0);
        struct process process = start("writer", dir);
        (void)heard(&process, 1 + (unsigned)(leat_xoshiro_next(&random) % (WRITES / 4)));
        RIG_CHECK(kill(process.pid, SIGKILL) == 0 && waitpid(process.pid, NULL, 0) > 0);
        host.rig->rig.call(host.rig, RIG_HOST, host_revoke_and_copy, &host);
        uint64_t acked = atomic_load(&shared->acked);
        if (acked < WRITES) in_the_middle++;
        if (check_copy(acked)) torn++;
        drain(&process);
        host.rig->rig.call(host.rig, RIG_HOST, host_retire, &host);
    }
    print_message("killed in the middle: %u of %d, last write torn: %u\n", in_the_middle, KILLS,
                  torn);
    assert_true(in_the_middle > 0);
    free(copy);
    os_rig_stop(host.rig);
    os_rig_drop(host.rig);
    real_rig_remove_dir(dir);
}

/* The zombie stores on after it wakes: into memory that is nobody's any more. */
static void writers_stopped_over_a_fence_harm_nobody_when_they_go_on(void **state)
{
    char dir[32];
    (void)state;
    temp_files(dir);
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 5);
    struct host host = {.rig = os_rig_make(NULL, NULL)};
    os_rig_start(host.rig);
    copy = malloc(STEP);
    unsigned in_the_middle = 0;
    for (unsigned i = 0; i < STOPS; i++) {
        host_arena(&host);
        atomic_store(&shared->acked, 0);
        atomic_store(&shared->failed, false);
        struct process process = start("writer", dir);
        (void)heard(&process, 1 + (unsigned)(leat_xoshiro_next(&random) % (WRITES / 4)));
        RIG_CHECK(kill(process.pid, SIGSTOP) == 0);
        RIG_CHECK(waitpid(process.pid, NULL, WUNTRACED) == process.pid);
        host.rig->rig.call(host.rig, RIG_HOST, host_revoke_and_copy, &host);
        uint64_t acked_before = atomic_load(&shared->acked);
        host.rig->rig.call(host.rig, RIG_HOST, host_retire, &host);
        host_arena(&host); /* the next owner of the memory */
        RIG_CHECK(kill(process.pid, SIGCONT) == 0);
        drain(&process); /* until it has ended */
        int status;
        RIG_CHECK(waitpid(process.pid, &status, 0) == process.pid && status == 0);
        assert_true(atomic_load(&shared->failed));
        /* It may ack what it had fenced before it was stopped; the copy has that too. */
        check_copy(atomic_load(&shared->acked));
        if (acked_before < WRITES) in_the_middle++;
        for (uint64_t b = 0; b < STEP; b += 8)
            RIG_CHECK(*(const uint64_t *)(const void *)(host.arena->base + b) == 0);
        host.rig->rig.call(host.rig, RIG_HOST, host_retire, &host);
    }
    assert_int_equal(in_the_middle, STOPS);
    free(copy);
    os_rig_stop(host.rig);
    os_rig_drop(host.rig);
    real_rig_remove_dir(dir);
}

/* ---- a host that is killed ---- */

struct watcher {
    struct os_rig *rig;
    struct leat_rmem_target *target;
    bool attached, failed;
    struct leat_error error;
};
static void watcher_on_attached(void *user, struct leat_rmem_target *target)
{
    struct watcher *watcher = user;
    (void)target;
    watcher->attached = true;
    watcher->rig->rig.notify(watcher->rig);
}
static void watcher_on_failed(void *user, struct leat_rmem_target *target,
                              const struct leat_error *error)
{
    struct watcher *watcher = user;
    watcher->failed = true;
    watcher->error = *error;
    leat_rmem_detach(target);
    watcher->rig->rig.notify(watcher->rig);
}
static const struct leat_rmem_target_handler watcher_handler = {watcher_on_attached,
                                                                watcher_on_failed};
static void watcher_attach(void *arg)
{
    struct watcher *watcher = arg;
    const struct leat_rmem *port = watcher->rig->rig.writer;
    watcher->attached = watcher->failed = false;
    RIG_CHECK(port->attach(port->ctx, 0, &shared->grant, &watcher_handler, watcher,
                           &watcher->target, NULL) == LEAT_OK);
}
static bool watcher_attached(void *arg)
{
    struct watcher *watcher = arg;
    return watcher->attached || watcher->failed;
}
static bool watcher_failed(void *arg)
{
    return ((struct watcher *)arg)->failed;
}
static void see_inherited(void *arg, struct leat_rmem_arena *arena)
{
    struct host *host = arg;
    struct leat_rmem_address address;
    RIG_CHECK(leat_rmem_grant_address(&shared->grant, &address) == LEAT_OK);
    RIG_CHECK(memcmp(address.id, arena->id, LEAT_RMEM_ID_BYTES) == 0);
    RIG_CHECK(arena->inherited && arena->revoked && arena->grown_bytes == STEP);
    RIG_CHECK(strcmp(arena->writer, "writer") == 0 && arena->writer_incarnation == 1);
    RIG_CHECK(arena->base[0] == 0x5a && arena->base[4095] == 0x5a && arena->base[4096] == 0);
    host->arena = arena;
    host->inherited++;
}
static void host_inherited(void *arg)
{
    struct host *host = arg;
    host->rig->rig.host->each_inherited(host->rig->rig.host->ctx, see_inherited, host);
}

static void host_killed_is_told_to_its_writer_and_leaves_its_arena_revoked(void **state)
{
    char dir[32], data[48];
    (void)state;
    temp_files(dir);
    snprintf(data, sizeof data, "%s/data", dir);
    RIG_CHECK(mkdir(data, 0700) == 0);
    struct watcher watcher = {.rig = os_rig_make(NULL, NULL)};
    watcher.rig->rig.writer = os_rig_writer(watcher.rig, LEAT_RMEM_SHM);
    os_rig_start(watcher.rig);
    struct process process = start("host", data);
    assert_true(heard(&process, 1));
    watcher.rig->rig.call(watcher.rig, RIG_WRITER, watcher_attach, &watcher);
    watcher.rig->rig.wait(watcher.rig, RIG_WRITER, watcher_attached, &watcher);
    assert_true(watcher.attached);
    RIG_CHECK(kill(process.pid, SIGKILL) == 0);
    watcher.rig->rig.wait(watcher.rig, RIG_WRITER, watcher_failed, &watcher);
    RIG_CHECK(waitpid(process.pid, NULL, 0) == process.pid);
    drain(&process);
    /* Nobody lives there, although the file is there and open. */
    watcher.rig->rig.call(watcher.rig, RIG_WRITER, watcher_attach, &watcher);
    watcher.rig->rig.wait(watcher.rig, RIG_WRITER, watcher_attached, &watcher);
    assert_true(watcher.failed);
    assert_int_equal(watcher.error.code, LEAT_E_CLOSED);
    os_rig_stop(watcher.rig);
    os_rig_drop(watcher.rig);

    struct host host = {.rig = os_rig_make(data, NULL)};
    os_rig_start(host.rig);
    host.rig->rig.call(host.rig, RIG_HOST, host_inherited, &host);
    assert_int_equal(host.inherited, 1);
    host.rig->rig.call(host.rig, RIG_HOST, host_retire, &host);
    os_rig_stop(host.rig);
    os_rig_drop(host.rig);
    host = (struct host){.rig = os_rig_make(data, NULL)};
    os_rig_start(host.rig);
    host.rig->rig.call(host.rig, RIG_HOST, host_inherited, &host);
    assert_int_equal(host.inherited, 0);
    os_rig_stop(host.rig);
    os_rig_drop(host.rig);
    real_rig_remove_dir(dir);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        shared_map(argv[2]);
        return strcmp(argv[1], "writer") == 0 ? writer_main(argv[3]) : host_main(argv[3]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_killed_in_the_middle_leaves_all_that_was_acked),
        cmocka_unit_test(writers_stopped_over_a_fence_harm_nobody_when_they_go_on),
        cmocka_unit_test(host_killed_is_told_to_its_writer_and_leaves_its_arena_revoked),
    };
    return cmocka_run_group_tests_name("transport processes", tests, NULL, NULL);
}
