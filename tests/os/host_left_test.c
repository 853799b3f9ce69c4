/* SPDX-License-Identifier: Apache-2.0 */
/* The host port: what an earlier process left in two folders, which of these files are taken over, and what this
 * process leaves. Every call to the system and to the rest of os/ is compared, in order. */
#include "tests/os/host_alone.h"

#include "base/node_log.h"

#define ONE  "leat-rmem-0000000000abc123-one"
#define TWO  "leat-rmem-0000000000abc123-two"
#define SHM  "collect /dev/shm 0\nopendir /dev/shm\n"
#define DATA "closedir /dev/shm\nopendir /data\n"

static struct leat_error error;

static void lies(unsigned folder, const char *path, const char *one, const char *two)
{
    played.folders[folder].folder = path;
    played.folders[folder].names[0] = one;
    played.folders[folder].names[1] = two;
}

/* A header as good as they are. */
static struct rmem_header *header_lies(unsigned page, uint64_t steps, uint64_t limit_steps)
{
    struct rmem_header *header = &played.pages[page].header;
    memset(header, 0, sizeof *header);
    header->pool.magic = POOL_MAGIC;
    header->pool.version = POOL_VERSION;
    memcpy(header->pool.boot_id, rmem.boot_id, BOOT_ID_BYTES);
    for (unsigned i = 0; i < LEAT_RMEM_ID_BYTES; i++)
        header->pool.pool_id[i] = (uint8_t)(i + 1);
    header->pool.steps = steps;
    header->magic = RMEM_MAGIC;
    header->version = RMEM_VERSION;
    header->limit_bytes = limit_steps * STEP;
    header->writer_incarnation = 9;
    memset(header->writer, 'w', LEAT_RMEM_NAME_BYTES_MAX);
    header->control = RMEM_OPEN;
    played.st.st_size = (off_t)(POOL_DATA_OFFSET + steps * STEP);
    return header;
}

static void closes(void)
{
    leat_os_rmem_host_close(&rmem);
    for (unsigned i = 0; i < LEAT_RMEM_ARENAS_MAX; i++)
        assert_null(rmem.arenas[i]);
}

static void is_told(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("node log %d %s\n", (int)level, line);
}

static void each(void *arg, struct leat_rmem_arena *arena)
{
    assert_ptr_equal(arg, &error);
    trace("inherited %u\n", arena->number);
}

/* Goal: with nothing left the port is whole, and offers what needs nobody else. */
static void host_opens_where_nothing_is(void **state)
{
    (void)state;
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    TRACE_IS(SHM "opendir /data\n");
    assert_ptr_equal(host_actor.env.rmem_host, &rmem.host);
    host = &rmem.host;
    assert_ptr_equal(host->ctx, &rmem);
    assert_int_equal(host->kinds, 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_RPC);
    assert_true(host->open && host->grow && host->grant && host->revoke && host->retire &&
                host->each_inherited && host->enter && host->leave);
    host->each_inherited(host->ctx, each, &error);
    TRACE_IS("");
    closes();
    TRACE_IS("");
}

/* Goal: arenas of both folders are taken over, revoked, with all of their steps; other files are not looked at. */
static void host_takes_over_what_was_left(void **state)
{
    (void)state;
    lies(0, "/dev/shm", "leat-rmem-0000000000abc12", ONE);
    played.folders[0].names[2] = "leat-rmem-0000000000abc124-one";
    lies(1, "/data", "leat-pool-0000000000abc123", TWO);
    struct rmem_header *one = header_lies(0, 3, 4);
    (void)header_lies(1, 3, 3);
    memcpy(played.pages[1].header.writer, "x", 2);
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    TRACE_IS(SHM "open /dev/shm/" ONE " old\nstat 100\nmap 8192 100 0\nreserve 4\n<>"
                 "step 100 0 base1\nstep 100 1 base1\nstep 100 2 base1\n" DATA "open /data/" TWO
                 " old\nstat 101\nmap 8192 101 0\nreserve 3\n<>"
                 "step 101 0 base2\nstep 101 1 base2\nstep 101 2 base2\nclosedir /data\n");
    const struct os_rmem_arena *arena = rmem.arenas[0];
    assert_int_equal(arena->fd, 100);
    assert_ptr_equal(arena->header, one);
    assert_true(arena->port.inherited && arena->port.revoked && !arena->retired);
    assert_int_equal(arena->port.number, 1);
    assert_int_equal(arena->port.writer_incarnation, 9);
    assert_int_equal(arena->port.limit_bytes, 4 * STEP);
    assert_int_equal(arena->port.grown_bytes, 3 * STEP);
    assert_ptr_equal(arena->port.base, (void *)FIRST);
    assert_int_equal(strlen(arena->port.writer), LEAT_RMEM_NAME_BYTES_MAX);
    assert_memory_equal(arena->port.writer, one->writer, sizeof one->writer);
    assert_memory_equal(arena->port.id, one->pool.pool_id, LEAT_RMEM_ID_BYTES);
    assert_string_equal(arena->path, "/dev/shm/" ONE);
    assert_int_equal(one->control, RMEM_REVOKED);
    assert_int_equal(one->pool.steps, 3);
    assert_string_equal(rmem.arenas[1]->port.writer, "x");
    host = &rmem.host;
    struct leat_rmem_arena *own = NULL;
    assert_int_equal(host->open(host->ctx, "own", 1, STEP, &own, &error), LEAT_OK);
    trace_begin();
    host->each_inherited(host->ctx, each, &error);
    TRACE_IS("inherited 1\ninherited 2\n");
    host->retire(host->ctx, &rmem.arenas[0]->port);
    job_runs();
    TRACE_IS("unlink /dev/shm/" ONE "\n<>job, the last\nverbs 1 release\n"
             "unmap base1 268435456\nunmap page0 8192\nclose 100\n");
    closes(); /* what was not retired stays for the next process */
    TRACE_IS("verbs 2 revoke\nverbs 2 release\nunmap base2 201326592\nunmap page1 8192\nclose 101\n"
             "verbs 3 revoke\nverbs 3 release\nunmap base3 67108864\n");
}

/* Opens with one file; the calls must be these, and the file is taken over or not. */
static void left_is(const char *calls, bool taken, const char *file, int line)
{
    char expected[1000];
    lies(0, "/dev/shm", ONE, NULL);
    played.opened = played.mapped = played.reserved = 0;
    trace_begin();
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    snprintf(expected, sizeof expected,
             SHM "open /dev/shm/" ONE " old\n%sclosedir /dev/shm\n"
                 "opendir /data\n",
             calls);
    char *steps = taken ? strstr(trace_text, "reserve") : NULL;
    char *after = steps ? strstr(steps, "closedir") : NULL;
    if (after) memmove(steps, after, strlen(after) + 1);
    trace_must_be(expected, file, line);
    assert_int_equal(rmem.arenas[0] != NULL, taken);
    closes();
    trace_begin();
}
#define LEFT_IS(calls, taken) left_is((calls), (taken), __FILE__, __LINE__)
#define LOOKED                "stat 100\nmap 8192 100 0\n"
#define REMOVED               "close 100\nunlink /dev/shm/" ONE "\n"
#define NO_GOOD               LOOKED "unmap page0 8192\n" REMOVED

/* Goal: a header of which anything is wrong makes the file nobody's, and it is removed; at each bound it is good. */
static void host_removes_what_is_no_good(void **state)
{
    (void)state;
    for (unsigned i = 0;; i++) {
        struct rmem_header *header = header_lies(0, 2, 2);
        bool good = false;
        if (i == 0) header->pool.magic++;
        if (i == 1) header->pool.version++;
        if (i == 2) header->magic++;
        if (i == 3) header->version++;
        if (i == 4) header->pool.boot_id[0]++;
        if (i == 5) header->pool.boot_id[BOOT_ID_BYTES - 1]++;
        if (i == 6) header->limit_bytes = 0;
        if (i == 7) header->limit_bytes++;
        if (i == 8) header->limit_bytes = 3 * STEP - 1;
        if (i == 9) header->limit_bytes = (LEAT_RMEM_STEPS_MAX + 1) * STEP;
        if (i == 10) header->limit_bytes = LEAT_RMEM_STEPS_MAX * STEP, good = true;
        if (i == 11) header->pool.steps = 0;
        if (i == 12) header->pool.steps = 3, played.st.st_size += STEP;
        if (i == 13) header->pool.steps = 1, good = true;
        if (i == 14) played.st.st_size--;
        if (i == 15) played.st.st_size = POOL_DATA_OFFSET - 1;
        if (i == 16) played.st.st_size = POOL_DATA_OFFSET;
        if (i == 17) played.st.st_size += 5, good = true;
        if (i == 18) header->writer[LEAT_RMEM_NAME_BYTES_MAX] = 'w';
        if (i == 19) header->writer[0] = 0, good = true;
        if (i == 20) played.st.st_size = RMEM_HEADER_BYTES;
        if (i == 21) break;
        LEFT_IS(good ? LOOKED : NO_GOOD, good);
        assert_int_equal(header->control, good ? RMEM_REVOKED : RMEM_OPEN);
    }
    (void)header_lies(0, 1, 1);
    rmem.boot_id[0] = 0; /* it is not known which boot this is */
    played.pages[0].header.pool.boot_id[0] = 0;
    LEFT_IS(NO_GOOD, false);
}

/* Goal: a file that is not this account's is left alone; a file that is too short, or can't be mapped, is removed. */
static void host_leaves_what_is_somebody_elses(void **state)
{
    (void)state;
    leat_node_log_set(is_told, NULL, LEAT_NODE_LOG_WARN);
    (void)header_lies(0, 1, 1);
    plan(OPEN, 0, EACCES);
    LEFT_IS("", false);
    plan(STAT, 0, EIO);
    LEFT_IS("stat 100\nclose 100\n", false);
    played.st.st_mode = S_IFIFO;
    LEFT_IS("stat 100\nclose 100\n", false);
    played.st.st_mode = S_IFREG;
    played.st.st_uid = 43;
    LEFT_IS("stat 100\nclose 100\n", false);
    played.st.st_uid = 42;
    played.st.st_size = RMEM_HEADER_BYTES - 1;
    LEFT_IS("stat 100\n" REMOVED, false);
    (void)header_lies(0, 1, 1);
    plan(MAP, 0, ENOMEM);
    LEFT_IS(LOOKED REMOVED, false);
    played.pages[0].header.magic++;
    plan(UNLINK, 0, EBUSY);
    char expected[400];
    snprintf(expected, sizeof expected, NO_GOOD "node log %d can't remove /dev/shm/" ONE ": %s\n",
             (int)LEAT_NODE_LOG_WARN, strerror(EBUSY));
    LEFT_IS(expected, false);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
}

/* Goal: a file that can't be taken over stops the start, and the start says why; the other files are not looked at. */
static void host_stops_where_it_cannot_take_over(void **state)
{
    (void)state;
    char text[200];
    lies(0, "/dev/shm", ONE, TWO);
    lies(1, "/data", ONE, NULL);
    (void)header_lies(0, 2, 2);
    (void)header_lies(1, 2, 2);
    plan(STEP_MAP, 1, ENOMEM);
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_E_NO_MEMORY);
    TRACE_IS(SHM "open /dev/shm/" ONE " old\n" LOOKED
                 "reserve 2\n<>step 100 0 base1\nstep 100 1 base1\nclosedir /dev/shm\n");
    snprintf(text, sizeof text, "can't map what an earlier process left in /shm: %s",
             leat_err_text(LEAT_E_NO_MEMORY));
    assert_string_equal(error.text, text);
    assert_null(host_actor.env.rmem_host);
    assert_int_equal(played.pages[0].header.control, RMEM_REVOKED); /* before anything else */
    assert_int_equal(rmem.arenas[0]->port.grown_bytes, 0);
    closes();
    TRACE_IS(
        "verbs 1 revoke\nverbs 1 release\nunmap base1 134217728\nunmap page0 8192\nclose 100\n");
    /* Each allocation, in each folder. */
    played.mapped = 0;
    leat_mem_fail_at(1);
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_E_NO_MEMORY);
    played.mapped = 0;
    leat_mem_fail_at(0);
    plan(RESERVE, 0, ENOMEM);
    trace_begin();
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_E_NO_MEMORY);
    assert_null(rmem.arenas[0]);
    played.folders[0].folder = NULL;
    played.mapped = 0;
    plan(RESERVE, 0, ENOMEM);
    trace_begin();
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_E_NO_MEMORY);
    TRACE_IS(SHM "opendir /data\nopen /data/" ONE " old\nstat 103\nmap 8192 103 0\nreserve 2\n"
                 "closedir /data\n");
    memset(rmem.folder, 'f', 150);
    rmem.folder[150] = 0;
    plan(RESERVE, 0, ENOMEM);
    played.mapped = 0;
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_E_NO_MEMORY);
    snprintf(text, sizeof text, "can't map what an earlier process left in %.100s: %s", rmem.folder,
             leat_err_text(LEAT_E_NO_MEMORY));
    assert_string_equal(error.text, text);
}

/* Goal: a folder's path, and a file's name, that are too long are cut where they can't be anybody's. */
static void host_cuts_paths_that_are_too_long(void **state)
{
    (void)state;
    static char folder[3900], name[256];
    memset(folder, 'd', sizeof folder - 1);
    memset(name, 'n', sizeof name - 1);
    memcpy(name, ONE, strlen(ONE));
    memcpy(rmem.data_dir, folder, sizeof folder);
    lies(1, folder, name, NULL);
    plan(OPEN, 0, ENOENT);
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    char expected[2000];
    snprintf(expected, sizeof expected, SHM "opendir ...%.30s (3899)\nopen ...%.30s (4001) old\n",
             folder, name + 170);
    trace_text[strlen(expected)] = 0; /* then it is closed, by its whole path */
    TRACE_IS(expected);
}

static void nothing_grown(struct leat_rmem_grow *grow)
{
    trace("grown %d\n", grow->rc);
}

/* Goal: an arena that was retired is removed at the end, also if nobody could do so before; others stay. */
static void host_close_removes_what_was_retired(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arenas[3] = {NULL};
    struct leat_rmem_grow grow[3] = {
        {.on_grown = nothing_grown}, {.on_grown = nothing_grown}, {.on_grown = nothing_grown}};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(host->open(host->ctx, "w", i, 2 * STEP, &arenas[i], &error), LEAT_OK);
        host->grow(host->ctx, arenas[i], &grow[i]);
        if (i < 2) job_runs();
    }
    snprintf(whole(arenas[0])->path, sizeof whole(arenas[0])->path, "z");
    snprintf(whole(arenas[1])->path, sizeof whole(arenas[1])->path, "o");
    host->grow(host->ctx, arenas[0], &grow[0]);
    host->retire(host->ctx, arenas[0]); /* its job never ends */
    host->retire(host->ctx, arenas[2]); /* its file was never made */
    trace_begin();
    closes();
    TRACE_IS("verbs 1 revoke\nunlink z\nverbs 1 release\nunmap base1 134217728\n"
             "unmap page0 8192\nclose 100\n"
             "verbs 2 revoke\nverbs 2 release\nunmap base2 134217728\nunmap page1 8192\nclose 101\n"
             "verbs 3 revoke\nverbs 3 release\nunmap base3 134217728\n");
}

/* Goal: the number 0 is a file's as others are, be it made or found. */
static void host_takes_descriptor_0_for_a_file(void **state)
{
    (void)state;
    lies(0, "/dev/shm", ONE, NULL);
    (void)header_lies(0, 1, 1);
    played.opened = 0u - 100;
    assert_int_equal(leat_os_rmem_host_open(&rmem, &error), LEAT_OK);
    assert_non_null(rmem.arenas[0]);
    assert_int_equal(rmem.arenas[0]->fd, 0);
    trace_begin();
    closes();
    TRACE_IS("verbs 1 revoke\nverbs 1 release\nunmap base1 67108864\nunmap page0 8192\nclose 0\n");
    played.folders[0].folder = NULL;
    host_opens();
    struct leat_rmem_arena *arena = NULL;
    struct leat_rmem_grow grow = {.on_grown = nothing_grown};
    assert_int_equal(host->open(host->ctx, "w", 0, STEP, &arena, &error), LEAT_OK);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), sizeof(struct os_rmem_arena));
    played.opened = 0u - 100;
    host->grow(host->ctx, arena, &grow);
    job_runs();
    assert_int_equal(grow.rc, LEAT_OK);
    assert_int_equal(whole(arena)->fd, 0);
    snprintf(whole(arena)->path, sizeof whole(arena)->path, "z");
    trace_begin();
    host->retire(host->ctx, arena);
    job_runs();
    TRACE_IS("<>verbs 1025 revoke\nunlink z\n<>job, the last\n"
             "verbs 1025 release\nunmap base2 67108864\nunmap page1 8192\nclose 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(host_opens_where_nothing_is),
        HOST_TEST(host_takes_over_what_was_left),
        HOST_TEST(host_removes_what_is_no_good),
        HOST_TEST(host_leaves_what_is_somebody_elses),
        HOST_TEST(host_stops_where_it_cannot_take_over),
        HOST_TEST(host_cuts_paths_that_are_too_long),
        HOST_TEST(host_close_removes_what_was_retired),
        HOST_TEST(host_takes_descriptor_0_for_a_file),
    };
    return cmocka_run_group_tests_name("os-host-left", tests, NULL, NULL);
}
