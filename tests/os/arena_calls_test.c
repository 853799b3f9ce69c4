/* SPDX-License-Identifier: Apache-2.0 */
/* The arena port: where the pool lies, what of it is taken over, growing and giving back. Every call to the system and
 * to the rest of os/ is compared, in order. */
#include "tests/os/arena_alone.h"

#define BEGINS "collect /dev/shm 1\nreal data\n"
#define HELD   "stat 5\nflock 5\nallocate 5 0 0 4096\nmap 4096 5\nfs 5\n"
#define MADE   "stat 5\ncut 5 4096\nrandom 16 0\nowner /real\n"
#define ENDS   "unmap header 4096\nclose 5\n"
#define SHM    BEGINS "name /dev/shm 1\n"

static void closes(const char *calls)
{
    trace_begin();
    leat_os_arena_close(actor.arena);
    actor.arena = NULL;
    TRACE_IS(calls);
}

static void header_lies(uint64_t steps)
{
    struct pool_header *header = &played.page.header;
    memset(header, 0, sizeof *header);
    header->magic = POOL_MAGIC;
    header->version = POOL_VERSION;
    memcpy(header->boot_id, played.boot_id, BOOT_ID_BYTES);
    memset(header->pool_id, 0x33, sizeof header->pool_id);
    header->steps = steps;
    played.st.st_size = (off_t)(POOL_DATA_OFFSET + steps * STEP);
}

/* ---- where ---- */

static void adds(char expected[1000], const char *calls)
{
    size_t used = strlen(expected);
    snprintf(expected + used, 1000 - used, "%s", calls);
}

/* Goal: an ordinary account's pool lies in the data directory; a system account's in memory, where there is one, or
 * room for one, and none in the data directory. */
static void pool_lies_where_it_is_or_has_room(void **state)
{
    (void)state;
    static const char local[] = "open /real/pool\n", shm[] = "open /dev/shm/the-name\n",
                      look[] = "look /real/pool\n", room[] = "room /dev/shm\n";
    char full[300];
    snprintf(
        full, sizeof full,
        "node log %d /dev/shm has no room for 128 MiB; the pool is a file in the data directory, "
        "where the kernel also writes it to disk\n",
        (int)LEAT_NODE_LOG_WARN);
    const struct {
        uid_t account;
        bool exists, named, has_local, room_fails;
        uint64_t blocks, block_bytes;
        const char *calls[4];
    } rows[] = {
        {SYSTEM_ACCOUNTS_END, true, true, false, false, 0, 0, {local}},
        {SYSTEM_ACCOUNTS_END - 1, true, true, true, false, 0, 0, {"name /dev/shm 1\n", shm}},
        {0, true, false, true, false, 0, 0, {"name /dev/shm 1\n", shm}},
        {0, false, true, true, false, 1000000, 4096, {"name /dev/shm 1\n", look, local}},
        {0, false, true, false, false, 32768, 4096, {"name /dev/shm 1\n", look, room, shm}},
        {0, false, true, false, false, 1, 2 * STEP - 1, {"name /dev/shm 1\n", look, room, full}},
        {0, false, true, false, true, 32768, 4096, {"name /dev/shm 1\n", look, room, full}},
        {0, false, false, false, false, 32768, 4096, {"name /dev/shm 1\n", look, full}},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[1000] = BEGINS;
        played.account = rows[i].account;
        played.exists = rows[i].exists;
        played.named = rows[i].named;
        played.room = (struct statvfs){.f_bavail = rows[i].blocks, .f_frsize = rows[i].block_bytes};
        played.has_local = rows[i].has_local;
        plan(ROOM, 0, rows[i].room_fails ? EIO : 0);
        trace_begin();
        played.st.st_mode = S_IFIFO; /* no further than that */
        assert_int_equal(opens(2 * STEP + STEP - 1), LEAT_E_CONFIG);
        for (unsigned k = 0; k < 4 && rows[i].calls[k]; k++)
            adds(expected, rows[i].calls[k]);
        if (strstr(expected, "node log")) adds(expected, local);
        adds(expected, "stat 5\nclose 5\n");
        TRACE_IS(expected);
    }
}

/* Goal: a request that is refused before there is a pool is refused by name, and leaves nothing. */
static void pool_that_has_no_place_is_refused(void **state)
{
    (void)state;
    char text[300];
    world.data_fd = -1;
    assert_int_equal(opens(STEP), LEAT_E_CONFIG);
    assert_string_equal(error.text, "a pool needs a data directory");
    world.data_fd = 0;
    assert_int_equal(opens(STEP - 1), LEAT_E_CONFIG);
    assert_string_equal(error.text, "a pool takes at least 64 MiB of memory");
    leat_mem_fail_at(1);
    assert_int_equal(opens(STEP), LEAT_E_NO_MEMORY);
    assert_string_equal(error.text, "no memory for the pool");
    TRACE_IS("");
    plan(REAL, 0, EACCES);
    assert_int_equal(opens(STEP), LEAT_E_CONFIG);
    snprintf(text, sizeof text, "can't resolve the data directory: %s", strerror(EACCES));
    assert_string_equal(error.text, text);
    TRACE_IS(BEGINS);
    memset(played.real, 'r', 4091);
    assert_int_equal(opens(STEP), LEAT_E_CONFIG);
    assert_string_equal(error.text, "the data directory's path is too long");
    TRACE_IS(BEGINS);
    played.real[4090] = 0;
    plan(OPEN, 0, EROFS);
    assert_int_equal(opens(STEP), LEAT_E_DISK);
    TRACE_IS(BEGINS "open ...rrrrr/pool (4095)\n");
    snprintf(text, sizeof text, "can't open the pool %.120s: %s", played.real, strerror(EROFS));
    assert_string_equal(error.text, text);
    assert_null(actor.arena);
    assert_null(actor.env.arena);
}

/* ---- the file ---- */

/* Goal: a pool that is new has a header that says all of it, and no step. */
static void pool_is_made_anew(void **state)
{
    (void)state;
    memset(&played.page, 0xff, sizeof played.page);
    played.page.header.magic = POOL_MAGIC + 1;
    assert_int_equal(opens(3 * STEP + 7), LEAT_OK);
    TRACE_IS(BEGINS "open /real/pool\n" HELD MADE "reserve 203423744 -1\nthread\n");
    const struct pool_header *header = &played.page.header;
    assert_true(header->magic == POOL_MAGIC);
    assert_int_equal(header->version, POOL_VERSION);
    assert_int_equal(header->reserved, 0);
    assert_memory_equal(header->boot_id, played.boot_id, BOOT_ID_BYTES);
    assert_int_equal(header->steps, 0);
    assert_int_equal(header->data_dir[0], 0);
    const struct leat_arena *port = actor.env.arena;
    assert_ptr_equal(port->base, (void *)BASE);
    assert_int_equal(port->limit_bytes, 3 * STEP);
    assert_int_equal(port->grown_bytes, 0);
    assert_int_equal(port->inherited_bytes, 0);
    assert_memory_equal(port->pool_id, header->pool_id, sizeof port->pool_id);
    assert_int_equal(port->pool_id[15], 0x5a);
    assert_false(leat_os_arena_in_memory(&world, 1));
    closes("<>wake\njoin 77\nunmap pool 203423744\n" ENDS);
}

/* Goal: each call that is refused ends the try, by its name, and what was had is given back. */
static void pool_refused_is_given_back(void **state)
{
    (void)state;
    char expected[1000], text[300];
    const struct {
        enum call call;
        int skip, error;
        leat_err rc;
        const char *text;
        bool with_reason;
        const char *calls, *back;
    } rows[] = {
        {STAT, 0, EIO, LEAT_E_CONFIG, "the pool /real/pool belongs to another account", false,
         "stat 5\n", "close 5\n"},
        {LOCK, 0, EIO, LEAT_E_LOCKED, "another process uses the pool /real/pool", false,
         "stat 5\n!", "close 5\n"},
        {ALLOCATE, 0, ENOSPC, LEAT_E_NO_MEMORY, "no room for the pool /real/pool: ", true,
         "stat 5\nflock 5\nallocate 5 0 0 4096\n", "close 5\n"},
        {MAP, 0, ENOMEM, LEAT_E_NO_MEMORY, "can't map the pool", false,
         "stat 5\nflock 5\nallocate 5 0 0 4096\nmap 4096 5\n", "close 5\n"},
        {STAT, 1, EIO, LEAT_E_DISK, "can't read the pool: ", true, HELD "stat 5\n", ENDS},
        {CUT, 0, EIO, LEAT_E_DISK, "can't empty the pool: ", true, HELD "stat 5\ncut 5 4096\n",
         ENDS},
        {RANDOM, 0, EIO, LEAT_E_INTERNAL, "the kernel gives no random numbers", false,
         HELD "stat 5\ncut 5 4096\nrandom 16 0\n", ENDS},
        {RESERVE, 0, ENOMEM, LEAT_E_NO_MEMORY, "can't reserve 64 MiB of addresses", false,
         HELD MADE "reserve 69206016 -1\n", ENDS},
        {THREAD, 0, EAGAIN, LEAT_E_NO_MEMORY, "can't start the pool's thread", false,
         HELD MADE "reserve 69206016 -1\nthread\n", "unmap pool 69206016\n" ENDS},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(&played.page, 0, sizeof played.page);
        played.page.header.version = 9;
        plan(rows[i].call, rows[i].skip, rows[i].error);
        trace_begin();
        assert_int_equal(opens(STEP), rows[i].rc);
        snprintf(text, sizeof text, "%s%s", rows[i].text,
                 rows[i].with_reason ? strerror(rows[i].error) : "");
        assert_string_equal(error.text, text);
        snprintf(expected, sizeof expected, BEGINS "open /real/pool\n%s%s", rows[i].calls,
                 rows[i].back);
        TRACE_IS(expected);
        assert_null(actor.arena);
        assert_null(actor.env.arena);
        if (i != 7 && i != 8) assert_true(played.page.header.magic != POOL_MAGIC);
    }
    played.st.st_uid++;
    assert_int_equal(opens(STEP), LEAT_E_CONFIG);
    played.st.st_uid--;
    played.fd = 0; /* a file's as others are */
    trace_begin();
    plan(MAP, 0, ENOMEM);
    assert_int_equal(opens(STEP), LEAT_E_NO_MEMORY);
    TRACE_IS(BEGINS "open /real/pool\nstat 0\nflock 0\nallocate 0 0 0 4096\nmap 4096 0\nclose 0\n");
}

/* Goal: a pool that somebody still holds is waited for, half a minute. */
static void pool_that_is_held_is_waited_for(void **state)
{
    (void)state;
    trace_begin();
    plan(LOCK, 0, EWOULDBLOCK);
    script.times = 3;
    assert_int_equal(opens(STEP), LEAT_OK);
    assert_non_null(strstr(trace_text, "stat 5\n!.!.!.flock 5\n"));
    closes("<>wake\njoin 77\nunmap pool 69206016\n" ENDS);
    plan(LOCK, 0, EWOULDBLOCK);
    script.times = 3000;
    assert_int_equal(opens(STEP), LEAT_OK);
    closes("<>wake\njoin 77\nunmap pool 69206016\n" ENDS);
    plan(LOCK, 0, EWOULDBLOCK);
    script.times = 3001;
    trace_begin();
    assert_int_equal(opens(STEP), LEAT_E_LOCKED);
    assert_int_equal(script.error, 0); /* all of them */
}

/* Goal: pages are huge only in memory; that is asked of the file. */
static void pool_knows_whether_it_is_memory(void **state)
{
    (void)state;
    assert_true(leat_os_arena_in_memory(&world, 1)); /* none: nothing is on a disk */
    played.fs = 0x01021994;
    assert_int_equal(opens(STEP), LEAT_OK);
    assert_true(leat_os_arena_in_memory(&world, 1));
    leat_os_arena_discard(&world, 1);
    closes("<>wake\njoin 77\nunmap pool 69206016\nunmap header 4096\nunlink /real/pool\nclose 5\n");
    leat_os_arena_discard(&world, 1); /* of none: nothing */
    plan(FS, 0, EIO);
    assert_int_equal(opens(STEP), LEAT_OK);
    assert_false(leat_os_arena_in_memory(&world, 1));
    leat_os_arena_stop(actor.arena);
    closes("unmap pool 69206016\n" ENDS); /* joined once */
}

/* ---- taking over ---- */

/* Goal: a pool of this boot is taken over with all steps that its header names, as far as they are there; any other is
 * made anew. */
static void pool_of_this_boot_is_taken_over(void **state)
{
    (void)state;
    for (unsigned i = 0;; i++) {
        header_lies(2);
        bool good = false;
        uint64_t steps = 2;
        if (i == 0) good = true;
        if (i == 1) played.page.header.magic++;
        if (i == 2) played.page.header.version++;
        if (i == 3) played.page.header.boot_id[0]++;
        if (i == 4) played.page.header.boot_id[BOOT_ID_BYTES - 1]++;
        if (i == 5) played.st.st_size--;
        if (i == 6) played.st.st_size += STEP - 1, good = true;
        if (i == 7) header_lies(0), steps = 0, good = true;
        if (i == 8) header_lies(0), steps = 0, good = true, played.st.st_size = 4096;
        if (i == 9) played.st.st_size = 4096;
        if (i == 10) header_lies(5), steps = 5, good = true;
        if (i == 11) header_lies(3), steps = 3, good = true;
        if (i == 12) break;
        uint64_t limit = steps > 3 ? steps : 3;
        char expected[1000] = BEGINS "open /real/pool\n" HELD MADE "reserve 203423744 -1\nthread\n";
        if (good) {
            size_t n =
                (size_t)snprintf(expected, sizeof expected,
                                 BEGINS "open /real/pool\n" HELD
                                        "stat 5\ncut 5 %llu\nowner stays /real\nreserve %llu -1\n",
                                 (unsigned long long)(POOL_DATA_OFFSET + steps * STEP),
                                 (unsigned long long)(limit * STEP + HUGE_PAGE_BYTES));
            for (unsigned step = 0; step < steps; step++)
                n += (size_t)snprintf(expected + n, sizeof expected - n, "step 5 %u\n", step);
            snprintf(expected + n, sizeof expected - n, "thread\n");
        }
        trace_begin();
        assert_int_equal(opens(3 * STEP), LEAT_OK);
        TRACE_IS(expected);
        const struct leat_arena *port = actor.env.arena;
        assert_int_equal(port->limit_bytes, (good ? limit : 3) * STEP);
        assert_int_equal(port->inherited_bytes, good ? steps * STEP : 0);
        assert_int_equal(port->grown_bytes, good ? steps * STEP : 0);
        assert_int_equal(port->pool_id[0], good ? 0x33 : 0x5a);
        assert_int_equal(played.page.header.steps, good ? steps : 0);
        leat_os_arena_close(actor.arena);
        actor.arena = NULL;
    }
    header_lies(1);
    played.boot_id[0] = played.page.header.boot_id[0] = 0; /* it is not known which this is */
    assert_int_equal(opens(STEP), LEAT_OK);
    assert_int_equal(actor.env.arena->inherited_bytes, 0);
    leat_os_arena_close(actor.arena);
    actor.arena = NULL;
}

/* Goal: a pool that can't be cut or mapped is refused, and stays as it is for the next start. */
static void pool_that_cannot_be_taken_over_stays(void **state)
{
    (void)state;
    char text[200];
    header_lies(2);
    plan(CUT, 0, EIO);
    assert_int_equal(opens(3 * STEP), LEAT_E_DISK);
    snprintf(text, sizeof text, "can't cut the pool: %s", strerror(EIO));
    assert_string_equal(error.text, text);
    trace_begin();
    plan(STEP_MAP, 1, ENOMEM);
    assert_int_equal(opens(3 * STEP), LEAT_E_NO_MEMORY);
    snprintf(text, sizeof text, "can't map the pool: %s", strerror(ENOMEM));
    assert_string_equal(error.text, text);
    TRACE_IS(BEGINS "open /real/pool\n" HELD "stat 5\ncut 5 136314880\nowner stays /real\n"
                    "reserve 203423744 -1\nstep 5 0\nstep 5 1\nunmap pool 203423744\n" ENDS);
    assert_true(played.page.header.magic == POOL_MAGIC);
    assert_int_equal(played.page.header.steps, 2);
}

/* ---- growing ---- */

static struct leat_arena_grow grow;

static void on_grown(struct leat_arena_grow *at)
{
    assert_ptr_equal(at, &grow);
    trace("told %d %llu of %llu\n", at->rc,
          (unsigned long long)(actor.env.arena->grown_bytes / STEP),
          (unsigned long long)played.page.header.steps);
}

static void asks(bool shrinks)
{
    const struct leat_arena *port = actor.env.arena;
    grow = (struct leat_arena_grow){.on_grown = on_grown};
    (shrinks ? port->shrink : port->grow)(port->ctx, &grow);
}

static void steps_come_and_go(unsigned times)
{
    if (times > 0 && times != 7) delivers();
    if (times == 0 || times == 1) asks(false);
    if (times == 2) {
        asks(false); /* past the limit: told without the grower */
        delivers();
        asks(true);
    }
    if (times == 3) plan(GROW, 0, ENOSPC), asks(false);
    if (times == 4) plan(SHRINK, 0, EIO), asks(true);
    if (times == 5) asks(true);
    if (times == 6) leat_os_arena_stop(actor.arena);
}

/* Goal: the header names a step when its memory is there, and until its memory goes; who asked is told once. */
static void pool_grows_and_shrinks_by_steps(void **state)
{
    (void)state;
    char expected[1000];
    played.fs = 0x01021994;
    assert_int_equal(opens(2 * STEP), LEAT_OK);
    trace_begin();
    grower_runs(steps_come_and_go);
    snprintf(expected, sizeof expected,
             "name leat-grower\n<wait\n<>wake\n>grow 5 0 of 0 1\nmail\n<wait\ntold 0 1 of 1\n"
             "<>wake\n>grow 5 1 of 1 1\nmail\n<wait\ntold 0 2 of 2\n"
             "mail\ntold %d 2 of 2\n<>wake\n>shrink 5 1 of 1\nmail\n<wait\ntold 0 1 of 1\n"
             "<>wake\n>grow 5 1 of 1 1\nmail\n<wait\ntold %d 1 of 1\n"
             "<>wake\n>shrink 5 0 of 0\nmail\n<wait\ntold %d 1 of 1\n"
             "<>wake\n>shrink 5 0 of 0\nmail\n<wait\ntold 0 0 of 0\n<>wake\njoin 77\n>",
             LEAT_E_NO_MEMORY, LEAT_E_NO_MEMORY, LEAT_E_DISK);
    TRACE_IS(expected);
    closes("unmap pool 136314880\n" ENDS);
}

static void a_device_has_it_pinned(unsigned times)
{
    if (times > 0) delivers();
    if (times == 0 || times == 1) asks(true);
    if (times == 1) played.no_verbs = "why not"; /* no device */
    if (times == 2) world.rmem = NULL, played.no_verbs = NULL, asks(true);
    if (times == 3) leat_os_arena_stop(actor.arena);
}

/* Goal: no step is given back that a device may write from. */
static void pool_does_not_shrink_under_a_device(void **state)
{
    (void)state;
    char expected[1000];
    header_lies(3);
    assert_int_equal(opens(3 * STEP), LEAT_OK);
    static int any;
    world.rmem = (struct os_rmem *)&any;
    trace_begin();
    grower_runs(a_device_has_it_pinned);
    world.rmem = NULL;
    snprintf(
        expected, sizeof expected,
        "name leat-grower\n<>touch 0 0\n<>touch 1 0\n<>touch 2 0\n<wait\n<>wake\n>mail\n<wait\n"
        "told %d 3 of 3\n<>wake\n>shrink 5 2 of 2\nmail\n<wait\ntold 0 2 of 2\n"
        "<>wake\n>shrink 5 1 of 1\nmail\n<wait\ntold 0 1 of 1\n<>wake\njoin 77\n>",
        LEAT_E_DISK);
    TRACE_IS(expected);
    closes("unmap pool 203423744\n" ENDS);
}

static void stops_at_once(unsigned times)
{
    delivers();
    assert_int_equal(times, 0);
    leat_os_arena_stop(actor.arena);
}

/* Goal: a requested shrink comes before the touching of pages, for which nobody waits; a step that was given back is
 * not touched. */
static void pool_shrinks_before_it_is_touched(void **state)
{
    (void)state;
    header_lies(3);
    assert_int_equal(opens(3 * STEP), LEAT_OK);
    asks(true);
    trace_begin();
    grower_runs(stops_at_once);
    TRACE_IS("name leat-grower\n<>shrink 5 2 of 2\nmail\n<>touch 0 0\n<>touch 1 0\n<wait\n"
             "told 0 2 of 2\n<>wake\njoin 77\n>");
    closes("unmap pool 203423744\n" ENDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(pool_lies_where_it_is_or_has_room),
        ARENA_TEST(pool_that_has_no_place_is_refused),
        ARENA_TEST(pool_is_made_anew),
        ARENA_TEST(pool_refused_is_given_back),
        ARENA_TEST(pool_that_is_held_is_waited_for),
        ARENA_TEST(pool_knows_whether_it_is_memory),
        ARENA_TEST(pool_of_this_boot_is_taken_over),
        ARENA_TEST(pool_that_cannot_be_taken_over_stays),
        ARENA_TEST(pool_grows_and_shrinks_by_steps),
        ARENA_TEST(pool_does_not_shrink_under_a_device),
        ARENA_TEST(pool_shrinks_before_it_is_touched),
    };
    return cmocka_run_group_tests_name("os-arena-calls", tests, NULL, NULL);
}
