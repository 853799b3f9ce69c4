/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does that a suite cannot ask for: disappear, and refuse to lock memory. Runs in a
 * guest of its own, as root.
 *
 *   vm_device removal     the device is taken away under a stream of writes
 *   vm_device memlock     as a system account with a limit of locked memory that is too low */
#include "base/node_log.h"
#include "tests/transport/os_rig.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WRITE_BYTES = 64 * 1024, UNDER_WAY = 8, WRITES = LEAT_ARENA_STEP_BYTES / WRITE_BYTES };

struct test {
    struct os_rig *rig;
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    bool grown, attached, failed;
    struct leat_error error;
    struct leat_rmem_target *target;
    uint8_t *bytes;
    struct leat_rmem_write writes[UNDER_WAY];
    struct leat_iov iovs[UNDER_WAY];
    uint64_t posted, acked;
    leat_err rc;
};
static char complaint[512];

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    if (strstr(line, "ulimit -l")) snprintf(complaint, sizeof complaint, "%s", line);
}

static void on_grown(struct leat_rmem_grow *grow)
{
    struct test *test = grow->owner;
    RIG_CHECK(grow->rc == LEAT_OK);
    test->grown = true;
    test->rig->rig.notify(test->rig);
}
static void host_open(void *arg)
{
    struct test *test = arg;
    const struct leat_rmem_host *host = test->rig->rig.host;
    RIG_CHECK(host->open(host->ctx, "writer", 1, LEAT_ARENA_STEP_BYTES, &test->arena, NULL) ==
              LEAT_OK);
    test->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = test};
    host->grow(host->ctx, test->arena, &test->grow);
}
static bool is_grown(void *arg)
{
    return ((struct test *)arg)->grown;
}
static void host_grant(void *arg)
{
    struct test *test = arg;
    test->rig->rig.host->grant(test->rig->rig.host->ctx, test->arena, &test->grant);
}
static void host_retire(void *arg)
{
    struct test *test = arg;
    test->rig->rig.host->retire(test->rig->rig.host->ctx, test->arena);
}

static void post(struct test *test, struct leat_rmem_write *write);

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct test *test = write->owner;
    if (rc) return;
    test->acked++;
    test->rig->rig.notify(test->rig);
    post(test, write);
}
/* Over and over into the same place, so that it never ends by itself: each slot of the memory gets
 * rising numbers. */
static void post(struct test *test, struct leat_rmem_write *write)
{
    size_t slot = (size_t)(write - test->writes);
    uint64_t number = test->posted;
    memset(test->bytes + slot * WRITE_BYTES, (int)(number / WRITES % 255 + 1), WRITE_BYTES);
    test->iovs[slot] = (struct leat_iov){test->bytes + slot * WRITE_BYTES, WRITE_BYTES};
    *write = (struct leat_rmem_write){.iovs = &test->iovs[slot],
                                      .iov_count = 1,
                                      .offset = number % WRITES * WRITE_BYTES,
                                      .on_done = on_done,
                                      .owner = test};
    if (leat_rmem_write(test->target, write) == LEAT_OK) test->posted++;
}
static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct test *test = user;
    test->target = target;
    test->attached = true;
    for (unsigned i = 0; i < UNDER_WAY; i++)
        post(test, &test->writes[i]);
}
static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct test *test = user;
    test->failed = true;
    test->error = *error;
    leat_rmem_detach(target);
    test->rig->rig.notify(test->rig);
}
static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static void attach(void *arg)
{
    struct test *test = arg;
    const struct leat_rmem *writer = test->rig->rig.writer;
    test->rc =
        writer->attach(writer->ctx, 0, &test->grant, &handler, test, &test->target, &test->error);
}
static bool runs(void *arg)
{
    struct test *test = arg;
    return test->acked > 40 || test->failed;
}
static bool has_failed(void *arg)
{
    return ((struct test *)arg)->failed;
}

static void begin(struct test *test)
{
    test->rig = os_rig_make(NULL, "0.0.0.0");
    test->rig->rig.writer = os_rig_writer(test->rig, LEAT_RMEM_VERBS);
    RIG_CHECK(test->rig->rig.writer != NULL);
    os_rig_start(test->rig);
    test->rig->rig.call(test->rig, RIG_HOST, host_open, test);
    test->rig->rig.wait(test->rig, RIG_HOST, is_grown, test);
    test->rig->rig.call(test->rig, RIG_HOST, host_grant, test);
}

static int removal(void)
{
    static struct test test;
    begin(&test);
    test.bytes = test.rig->rig.memory(test.rig, (size_t)UNDER_WAY * WRITE_BYTES);
    test.rig->rig.call(test.rig, RIG_WRITER, attach, &test);
    RIG_CHECK(test.rc == LEAT_OK);
    test.rig->rig.wait(test.rig, RIG_WRITER, runs, &test);
    RIG_CHECK(test.attached && !test.failed);
    pid_t pid;
    char *const arguments[] = {(char *)"rdma", (char *)"link", (char *)"delete", (char *)"rxe0",
                               NULL};
    RIG_CHECK(posix_spawnp(&pid, "rdma", NULL, NULL, arguments, environ) == 0);
    test.rig->rig.wait(test.rig, RIG_WRITER, has_failed, &test);
    /* Not waited for: Soft-RoCE's removal ends when this process has closed the device. */
    printf("after %llu acked writes: %s\n", (unsigned long long)test.acked, test.error.text);
    /* The last that was acked, and those before it, are there: a later one may be as well. */
    for (uint64_t i = test.acked > WRITES ? test.acked - WRITES : 0; i < test.acked; i++) {
        uint8_t wanted = (uint8_t)(i / WRITES % 255 + 1);
        uint8_t got = test.arena->base[i % WRITES * WRITE_BYTES + WRITE_BYTES - 1];
        RIG_CHECK(got == wanted || got == (uint8_t)(wanted % 255 + 1));
    }
    test.rig->rig.call(test.rig, RIG_WRITER, attach, &test);
    RIG_CHECK(test.rc == LEAT_E_UNSUPPORTED || test.rc == LEAT_OK);
    printf("attaching again: %s\n", test.rc ? test.error.text : "tried, and fails");
    fflush(stdout);
    test.rig->rig.call(test.rig, RIG_HOST, host_retire, &test);
    os_rig_stop(test.rig);
    os_rig_drop(test.rig);
    return 0;
}

static int memlock(void)
{
    static struct test test;
    struct rlimit low = {1 << 20, 1 << 20};
    RIG_CHECK(setrlimit(RLIMIT_MEMLOCK, &low) == 0);
    RIG_CHECK(setgid(1) == 0 && setuid(1) == 0); /* daemon: root may lock without limit */
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_WARN);
    begin(&test);
    printf("%s\n", complaint);
    RIG_CHECK(complaint[0]);
    size_t bytes;
    RIG_CHECK(!leat_rmem_grant_find(&test.grant, LEAT_RMEM_VERBS, &bytes));
    RIG_CHECK(leat_rmem_grant_find(&test.grant, LEAT_RMEM_SHM, &bytes)); /* others go on */
    test.rig->rig.call(test.rig, RIG_WRITER, attach, &test);
    RIG_CHECK(test.rc == LEAT_E_UNSUPPORTED);
    printf("attaching: %s\n", test.error.text);
    test.rig->rig.call(test.rig, RIG_HOST, host_retire, &test);
    os_rig_stop(test.rig);
    os_rig_drop(test.rig);
    return 0;
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "removal") == 0) return removal();
    if (argc == 2 && strcmp(argv[1], "memlock") == 0) return memlock();
    fprintf(stderr, "vm_device: removal or memlock\n");
    return 2;
}
