/* SPDX-License-Identifier: Apache-2.0 */
/* The host port: making arenas, growing them, grants, fences, and bytes that come as messages. Every call to the system
 * and to the rest of os/ is compared, in order. */
#include "tests/os/host_alone.h"

static struct leat_rmem_grow grow;
static struct leat_error error;

static struct leat_rmem_arena *opens(const char *writer, uint64_t steps)
{
    struct leat_rmem_arena *arena = NULL;
    assert_int_equal(host->open(host->ctx, writer, 77, steps * STEP, &arena, &error), LEAT_OK);
    return arena;
}

static void on_grown(struct leat_rmem_grow *at)
{
    assert_ptr_equal(at, &grow);
    struct leat_rmem_arena *arena = at->owner;
    trace("grown %d %llu %s\n", at->rc, (unsigned long long)(arena->grown_bytes / STEP),
          at->rc ? at->error.text : "");
}

static void asks(struct leat_rmem_arena *arena)
{
    grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = arena};
    host->grow(host->ctx, arena, &grow);
}

static void grows(struct leat_rmem_arena *arena)
{
    asks(arena);
    job_runs();
}

static void retires(struct leat_rmem_arena *arena)
{
    host->retire(host->ctx, arena);
    job_runs();
}

static struct leat_rmem_address address_of(const struct leat_rmem_arena *arena)
{
    struct leat_rmem_address address = {.limit_bytes = arena->limit_bytes, .number = arena->number};
    memcpy(address.id, arena->id, sizeof address.id);
    return address;
}

/* ---- making ---- */

/* Goal: an arena begins with addresses, a number that is new, a random id, and whom it is for; nothing else is made. */
static void host_open_makes_an_arena_without_a_file(void **state)
{
    (void)state;
    host_opens();
    char longest[LEAT_RMEM_NAME_BYTES_MAX + 1];
    memset(longest, 'w', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    struct leat_rmem_arena *one = opens(longest, LEAT_RMEM_STEPS_MAX), *two = opens("b", 1);
    TRACE_IS("reserve 512\n<>random 16 0\n"
             "reserve 1\n<>random 16 0\n");
    assert_ptr_equal(one->base, (void *)FIRST);
    assert_int_equal(one->limit_bytes, LEAT_RMEM_STEPS_MAX * STEP);
    assert_int_equal(one->grown_bytes, 0);
    assert_int_equal(one->number, 1);
    assert_int_equal(one->writer_incarnation, 77);
    assert_string_equal(one->writer, longest);
    assert_false(one->revoked || one->inherited);
    for (unsigned i = 0; i < LEAT_RMEM_ID_BYTES; i++)
        assert_int_equal(one->id[i], (uint8_t)(i * 0x11 + 2));
    assert_int_equal(two->number, 2);
    assert_string_equal(two->writer, "b");
    assert_int_equal(whole(one)->fd, -1);
    assert_ptr_equal(whole(one)->rmem, &rmem);
    assert_ptr_equal(rmem.arenas[0], whole(one));
    assert_ptr_equal(rmem.arenas[1], whole(two));
    retires(one);
    TRACE_IS("<>verbs 1 revoke\n<>job, the last\n"
             "verbs 1 release\nunmap base1 34359738368\n");
    assert_null(rmem.arenas[0]);
    one = opens("c", 2); /* the place again, the number never */
    assert_int_equal(one->number, LEAT_RMEM_ARENAS_MAX + 1);
    assert_ptr_equal(rmem.arenas[0], whole(one));
    retires(two);
    retires(one);
    assert_null(rmem.arenas[0]);
    assert_null(rmem.arenas[1]);
}

/* Goal: a refused arena leaves nothing behind, and the refusal says whose arena it was to be. */
static void host_open_refused_leaves_nothing(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arena = NULL;
    char name[151], text[200];
    memset(name, 'n', 150);
    name[150] = 0;
    leat_mem_fail_at(1);
    assert_int_equal(host->open(host->ctx, name, 1, STEP, &arena, &error), LEAT_E_NO_MEMORY);
    snprintf(text, sizeof text, "no arena for node %.100s: %s", name,
             leat_err_text(LEAT_E_NO_MEMORY));
    assert_string_equal(error.text, text);
    TRACE_IS("");
    plan(RESERVE, 0, ENOMEM);
    assert_int_equal(host->open(host->ctx, "a", 1, STEP, &arena, &error), LEAT_E_NO_MEMORY);
    TRACE_IS("reserve 1\n");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    plan(RANDOM, 0, EAGAIN);
    assert_int_equal(host->open(host->ctx, "a", 1, STEP, &arena, &error), LEAT_E_INTERNAL);
    assert_string_equal(error.text, "the kernel gives no random numbers");
    TRACE_IS("reserve 1\n<>random 16 0\n<>verbs 1 release\nunmap base1 67108864\n");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    assert_null(arena);
    assert_null(rmem.arenas[0]);
    for (unsigned i = 1; i <= LEAT_RMEM_ARENAS_MAX; i++)
        assert_int_equal(opens("a", 1)->number, i == 1 ? LEAT_RMEM_ARENAS_MAX + 1 : i);
    trace_begin();
    assert_int_equal(host->open(host->ctx, "a", 1, STEP, &arena, &error), LEAT_E_TOO_MANY);
    snprintf(text, sizeof text, "no arena for node a: %s", leat_err_text(LEAT_E_TOO_MANY));
    assert_string_equal(error.text, text);
    TRACE_IS("");
    for (unsigned i = 0; i < LEAT_RMEM_ARENAS_MAX; i++) {
        retires(&rmem.arenas[i]->port);
        trace_begin();
    }
}

/* ---- growing ---- */

#define PATH "/shm/leat-rmem-0000000000abc123-02132435465768798a9bacbdcedff001"

/* Goal: the first step makes the file, with a complete header; each step has its memory before it is counted. */
static void host_grow_makes_the_file_then_steps(void **state)
{
    (void)state;
    host_opens();
    rmem.in_memory = true;
    struct leat_rmem_arena *arena = opens("wri", 2);
    trace_begin();
    asks(arena);
    assert_ptr_equal(played.jobs[0], &whole(arena)->job);
    TRACE_IS("job\n"); /* nothing on this thread */
    job_runs();
    TRACE_IS("open " PATH " new 600\nflock 100 alone\nallocate 100 0 0 8192\nmap 8192 100 0\n"
             "grow 100 0 base1 1\nverbs 1 step 0 of 0\ngrown 0 1 \n");
    const struct rmem_header *header = &played.pages[0].header;
    assert_true(header->pool.magic == POOL_MAGIC);
    assert_int_equal(header->pool.version, POOL_VERSION);
    assert_memory_equal(header->pool.boot_id, rmem.boot_id, BOOT_ID_BYTES);
    assert_memory_equal(header->pool.pool_id, arena->id, LEAT_RMEM_ID_BYTES);
    assert_string_equal(header->pool.data_dir, "/data");
    assert_int_equal(header->pool.steps, 1);
    assert_true(header->magic == RMEM_MAGIC);
    assert_int_equal(header->version, RMEM_VERSION);
    assert_int_equal(header->limit_bytes, 2 * STEP);
    assert_int_equal(header->writer_incarnation, 77);
    assert_string_equal(header->writer, "wri");
    assert_int_equal(header->control, RMEM_OPEN);
    rmem.in_memory = false;
    grows(arena);
    TRACE_IS("job\ngrow 100 1 base1 0\nverbs 1 step 1 of 1\ngrown 0 2 \n");
    assert_int_equal(header->pool.steps, 2);
    grows(arena);
    assert_int_equal(grow.rc, LEAT_E_NO_MEMORY);
    trace("%s\n", leat_err_text(grow.rc));
    assert_non_null(strstr(trace_text, " 2 the memory for segments of node wri is at its limit\n"));
    assert_null(strstr(trace_text, "grow "));
    trace_begin();
    retires(arena);
    TRACE_IS("<>verbs 1 revoke\nunlink " PATH "\n<>job, the last\n"
             "verbs 1 release\nunmap base1 134217728\nunmap page0 8192\nclose 100\n");
    assert_int_equal(header->control, RMEM_REVOKED);
}

/* Goal: a file that can't be made is gone again, and the next try makes it. */
static void host_grow_refused_is_tried_again(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arena = opens("wri", 2);
    static const enum call file[] = {LOCK, ALLOCATE, MAP};
    static const char *const calls[] = {"flock 100 alone\n",
                                        "flock 101 alone\nallocate 101 0 0 8192\n",
                                        "flock 102 alone\nallocate 102 0 0 8192\nmap 8192 102 0\n"};
    char expected[1000], text[200];
    trace_begin();
    plan(OPEN, 0, EACCES);
    grows(arena);
    snprintf(expected, sizeof expected, "job\nopen %s new 600\ngrown %d 0 can't make %s: %s\n",
             PATH, LEAT_E_NO_MEMORY, PATH, strerror(EACCES));
    TRACE_IS(expected);
    for (unsigned i = 0; i < 3; i++) {
        plan(file[i], 0, ENOSPC);
        grows(arena);
        snprintf(expected, sizeof expected,
                 "job\nopen %s new 600\n%sunlink %s\nclose %u\ngrown %d 0 no room for %s: %s\n",
                 PATH, calls[i], PATH, 100 + i, LEAT_E_NO_MEMORY, PATH, strerror(ENOSPC));
        TRACE_IS(expected);
        assert_int_equal(whole(arena)->fd, -1);
        assert_null(whole(arena)->header);
    }
    snprintf(text, sizeof text,
             "no room in /shm for 64 MiB of other nodes' segments (see df /shm)");
    plan(GROW, 0, ENOSPC);
    grows(arena);
    snprintf(expected, sizeof expected,
             "job\nopen %s new 600\nflock 103 alone\nallocate 103 0 0 8192\nmap 8192 103 0\n"
             "grow 103 0 base1 0\ngrown %d 0 %s\n",
             PATH, LEAT_E_NO_MEMORY, text);
    TRACE_IS(expected);
    assert_int_equal(played.pages[0].header.pool.steps, 0);
    grows(arena); /* the file is there by now */
    TRACE_IS("job\ngrow 103 0 base1 0\nverbs 1 step 0 of 0\ngrown 0 1 \n");
    retires(arena);
}

/* Goal: a folder whose path is long is cut in what is told, and never overruns. */
static void host_grow_in_a_long_folder(void **state)
{
    (void)state;
    host_opens();
    memset(rmem.folder, 'f', 3950);
    rmem.folder[3950] = 0;
    rmem.folder[0] = '/';
    struct leat_rmem_arena *arena = opens("wri", 1);
    trace_begin();
    plan(OPEN, 0, ENOENT);
    grows(arena);
    assert_int_equal(strlen(whole(arena)->path), 3900 + strlen(PATH) - 4);
    char text[300];
    snprintf(text, sizeof text, "can't make %.120s: %s", rmem.folder, strerror(ENOENT));
    assert_string_equal(grow.error.text, text);
    plan(LOCK, 0, ENOENT);
    grows(arena);
    snprintf(text, sizeof text, "no room for %.120s: %s", rmem.folder, strerror(ENOENT));
    assert_string_equal(grow.error.text, text);
    plan(GROW, 0, ENOENT);
    grows(arena);
    snprintf(text, sizeof text,
             "no room in %.100s for 64 MiB of other nodes' segments (see df %.60s)", rmem.folder,
             rmem.folder);
    assert_string_equal(grow.error.text, text);
    retires(arena);
}

/* ---- revoking and retiring ---- */

/* Goal: revoking writes the word where somebody may have a grant, once, then ends RDMA. */
static void host_revoke_writes_the_word_once(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arena = opens("wri", 2);
    grows(arena);
    trace_begin();
    host->revoke(host->ctx, arena);
    TRACE_IS("<>verbs 1 revoke\n");
    assert_true(arena->revoked);
    assert_int_equal(played.pages[0].header.control, RMEM_REVOKED);
    host->revoke(host->ctx, arena);
    TRACE_IS("");
    retires(arena);
    TRACE_IS("unlink " PATH "\n<>job, the last\n"
             "verbs 1 release\nunmap base1 134217728\nunmap page0 8192\nclose 100\n");
}

/* Goal: revoked or retired while a step is made, an arena is so when that is done, be it its first step or not. */
static void host_revoke_while_a_step_is_made(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arena = opens("wri", 2);
    asks(arena);
    trace_begin();
    host->revoke(host->ctx, arena);
    TRACE_IS("<>verbs 1 revoke\n");
    job_runs();
    TRACE_IS("open " PATH " new 600\nflock 100 alone\nallocate 100 0 0 8192\nmap 8192 100 0\n"
             "grow 100 0 base1 0\nverbs 1 step 0 of 0\ngrown 0 1 \n");
    assert_int_equal(played.pages[0].header.control, RMEM_REVOKED);
    assert_null(whole(arena)->growing);
    retires(arena);
    arena = opens("wri", 2);
    asks(arena);
    host->revoke(host->ctx, arena);
    trace_begin();
    plan(OPEN, 0, EIO);
    job_runs(); /* there is no header to write to */
    assert_int_equal(grow.rc, LEAT_E_NO_MEMORY);
    trace_begin();
    retires(arena);
    TRACE_IS("unlink /shm/leat-rmem-0000000000abc123-031425364758697a8b9cadbecfe0f102\n"
             "<>job, the last\nverbs 1025 release\nunmap base2 134217728\n");
    arena = opens("wri", 2);
    asks(arena);
    trace_begin();
    host->retire(host->ctx, arena);
    TRACE_IS("<>verbs 2049 revoke\n"); /* the job is out */
    assert_non_null(rmem.arenas[0]);
    job_runs();
    TRACE_IS("open /shm/leat-rmem-0000000000abc123-0415263748596a7b8c9daebfd0e1f203 new 600\n"
             "flock 101 alone\nallocate 101 0 0 8192\nmap 8192 101 0\n"
             "grow 101 0 base3 0\nverbs 2049 step 0 of 0\n"
             "unlink /shm/leat-rmem-0000000000abc123-0415263748596a7b8c9daebfd0e1f203\n"
             "<>job, the last\n"); /* nobody is told */
    assert_null(rmem.arenas[0]);
    job_runs();
    TRACE_IS("verbs 2049 release\nunmap base3 134217728\nunmap page1 8192\nclose 101\n");
}

/* ---- bytes that come as messages ---- */

static struct leat_rmem_address entered;
static unsigned leaves_left;
static leat_err left[4];

static void one_leaves(void)
{
    left[--leaves_left] = host->leave(host->ctx, &entered);
}

/* Goal: revoking waits until the last that is copying has left, which is told that it was too late. */
static void host_revoke_waits_for_who_is_copying(void **state)
{
    (void)state;
    host_opens();
    const struct leat_rmem_from from = {"wri", 77};
    struct leat_rmem_arena *arena = opens("wri", 2);
    uint8_t *at = NULL;
    grows(arena);
    entered = address_of(arena);
    trace_begin();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(host->enter(host->ctx, &from, &entered, 8, 8, &at), LEAT_OK);
    assert_int_equal(whole(arena)->pins, 3);
    assert_int_equal(host->leave(host->ctx, &entered), LEAT_OK);
    TRACE_IS("<><><><>");
    leaves_left = 2;
    played.on_wait = one_leaves;
    host->revoke(host->ctx, arena);
    TRACE_IS("<wait\n<>wait\n<wake\n>>verbs 1 revoke\n");
    assert_int_equal(left[0], LEAT_E_CANCELLED);
    assert_int_equal(left[1], LEAT_E_CANCELLED);
    assert_int_equal(whole(arena)->pins, 0);
    retires(arena);
    arena = opens("wri", 2);
    grows(arena);
    entered = address_of(arena);
    trace_begin();
    assert_int_equal(host->enter(host->ctx, &from, &entered, 0, 1, &at), LEAT_OK);
    assert_int_equal(host->leave(host->ctx, &entered), LEAT_OK);
    TRACE_IS("<><>"); /* nobody waits */
    retires(arena);
}

/* Goal: bytes come in only within what the arena has grown to, from its writer, until it is revoked. */
static void host_enter_checks_whose_and_where(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_from from = {"wri", 77};
    struct leat_rmem_arena *arena = opens("wri", 3), *other = opens("oth", 3);
    struct leat_rmem_address address = address_of(arena), stale;
    uint8_t *at = NULL;
#define ENTER(offset, bytes) host->enter(host->ctx, &from, &address, (offset), (bytes), &at)
    assert_int_equal(ENTER(0, 1), LEAT_E_OFFSET_OUT_OF_RANGE); /* no file yet */
    grows(arena);
    grows(arena);
    const struct {
        uint64_t offset, bytes;
        bool fits;
    } rows[] = {{0, 1, true},
                {0, 2 * STEP, true},
                {0, 2 * STEP + 1, false},
                {1, 2 * STEP, false},
                {1, 2 * STEP - 1, true},
                {2 * STEP - 1, 1, true},
                {2 * STEP - 1, 2, false},
                {2 * STEP, 0, true},
                {2 * STEP, 1, false},
                {2 * STEP + 1, 0, false},
                {5, UINT64_MAX, false},
                {UINT64_MAX, 1, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        at = NULL;
        assert_int_equal(ENTER(rows[i].offset, rows[i].bytes),
                         rows[i].fits ? LEAT_OK : LEAT_E_OFFSET_OUT_OF_RANGE);
        assert_ptr_equal(at, rows[i].fits ? arena->base + rows[i].offset : NULL);
        assert_int_equal(whole(arena)->pins, rows[i].fits);
        if (rows[i].fits) assert_int_equal(host->leave(host->ctx, &address), LEAT_OK);
    }
    from.incarnation = 78;
    assert_int_equal(ENTER(0, 1), LEAT_E_DENIED);
    from = (struct leat_rmem_from){"wr", 77};
    assert_int_equal(ENTER(0, 1), LEAT_E_DENIED);
    from.node = "wri";
    for (unsigned i = 0; i < 4; i++) {
        stale = address = address_of(arena);
        if (i == 0) address.number = 0;
        if (i == 1) address.number = other->number;
        if (i == 2) address.number += LEAT_RMEM_ARENAS_MAX; /* of the same place */
        if (i == 3) address.id[LEAT_RMEM_ID_BYTES - 1]++;
        assert_int_equal(ENTER(0, 1), LEAT_E_NOT_FOUND);
        trace_begin();
        assert_null(leat_os_rmem_arena_find(&rmem, &address));
        TRACE_IS("<>");
        assert_ptr_equal(leat_os_rmem_arena_find(&rmem, &stale), whole(arena));
    }
    address = (struct leat_rmem_address){.number = 3};
    assert_int_equal(ENTER(0, 1), LEAT_E_NOT_FOUND); /* an empty place */
    address = address_of(arena);
    host->revoke(host->ctx, arena);
    assert_int_equal(ENTER(0, 1), LEAT_E_CANCELLED);
    assert_int_equal(ENTER(9 * STEP, 1), LEAT_E_CANCELLED);
    assert_int_equal(whole(arena)->pins, 0);
    retires(arena);
    retires(other);
}

/* ---- grants ---- */

/* Goal: a grant begins with the address, and offers each way that there is, the best first. */
static void host_grant_offers_what_there_is(void **state)
{
    (void)state;
    host_opens();
    struct leat_rmem_arena *arena = opens("wri", 2);
    grows(arena);
    for (unsigned i = 0; i < 8; i++) {
        bool shm = i & 1, path_fits = i & 2, verbs = i & 4;
        struct leat_rmem_address address = address_of(arena);
        struct leat_rmem_grant grant;
        uint8_t expected[LEAT_RMEM_GRANT_BYTES_MAX] = {LEAT_RMEM_NONE, sizeof address};
        memcpy(expected + 2, &address, sizeof address);
        size_t bytes = 2 + sizeof address;
        memset(&grant, 0xff, sizeof grant);
        rmem.host.kinds = 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_RPC;
        if (shm) rmem.host.kinds |= 1u << LEAT_RMEM_SHM;
        played.shm_bytes = path_fits ? RMEM_SECTION_BYTES : 0;
        played.verbs_bytes = verbs ? 60 : 0;
        if (shm && path_fits) {
            expected[bytes++] = LEAT_RMEM_SHM;
            expected[bytes++] = RMEM_SECTION_BYTES;
            memset(expected + bytes, 's', RMEM_SECTION_BYTES);
            bytes += RMEM_SECTION_BYTES;
        }
        if (verbs) {
            expected[bytes++] = LEAT_RMEM_VERBS;
            expected[bytes++] = 60;
            memset(expected + bytes, 'v', 60);
            bytes += 60;
        }
        expected[bytes++] = LEAT_RMEM_TCP;
        expected[bytes++] = 0;
        expected[bytes++] = LEAT_RMEM_RPC;
        expected[bytes++] = 0;
        trace_begin();
        host->grant(host->ctx, arena, &grant);
        TRACE_IS(shm ? "grant shm 1\ngrant verbs 1\n" : "grant verbs 1\n");
        assert_int_equal(grant.bytes, bytes);
        assert_memory_equal(grant.data, expected, sizeof expected);
    }
    retires(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(host_open_makes_an_arena_without_a_file),
        HOST_TEST(host_open_refused_leaves_nothing),
        HOST_TEST(host_grow_makes_the_file_then_steps),
        HOST_TEST(host_grow_refused_is_tried_again),
        HOST_TEST(host_grow_in_a_long_folder),
        HOST_TEST(host_revoke_writes_the_word_once),
        HOST_TEST(host_revoke_while_a_step_is_made),
        HOST_TEST(host_revoke_waits_for_who_is_copying),
        HOST_TEST(host_enter_checks_whose_and_where),
        HOST_TEST(host_grant_offers_what_there_is),
    };
    return cmocka_run_group_tests_name("os-host-calls", tests, NULL, NULL);
}
