/* SPDX-License-Identifier: Apache-2.0 */
/* How the disk port opens files, and its operations: what is asked of the system for each, with which words and in
 * which order, and what is made of the answers (disk_alone.h). */
#include "tests/os/disk_alone.h"

static void opens_as(unsigned flags, const char *path, const char *want, leat_err rc)
{
    struct leat_file *file = NULL;
    struct leat_error error = {0};
    assert_int_equal(disk->open(disk->ctx, path, flags, &file, &error), rc);
    TRACE_IS(want);
    assert_int_equal(file != NULL, rc == LEAT_OK);
    if (!rc)
        assert_int_equal(leat_os_file_direct_fd(file), flags & LEAT_OPEN_DIRECT ? FILE_FD : -1);
    if (file) close_file(file);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), 0);
}

static const char *tried(unsigned how, const char *mode, const char *then)
{
    static char text[2][400];
    static unsigned turn;
    turn ^= 1;
    snprintf(text[turn], sizeof text[0], "(made)\nopen 7 'f' %#x%s\n%s", how, mode, then);
    return text[turn];
}

static const char *tried_twice(unsigned first, unsigned second, const char *mode, const char *then)
{
    static char text[400];
    snprintf(text, sizeof text, "(made)\nopen 7 'f' %#x%s\nopen 7 'f' %#x%s\n%s", first, mode,
             second, mode, then);
    return text;
}

/* Goal: each way to open asks for what it says and no more, never through a link, never waiting. */
static void files_are_opened_as_asked_for(void **state)
{
    (void)state;
    const char *made = " 0640";
    opens_as(0, "f", tried(HOW | O_RDWR, "", "stat 5\n"), LEAT_OK);
    opens_as(LEAT_OPEN_READ, "f", tried(HOW | O_RDONLY, "", "stat 5\n"), LEAT_OK);
    opens_as(LEAT_OPEN_CREATE, "f", tried(HOW | O_RDWR | O_CREAT, made, "stat 5\n"), LEAT_OK);
    opens_as(LEAT_OPEN_EXCLUSIVE, "f", tried(HOW | O_RDWR | O_CREAT | O_EXCL, made, "stat 5\n"),
             LEAT_OK);
    opens_as(LEAT_OPEN_DIRECT | LEAT_OPEN_EXCLUSIVE, "f",
             tried(HOW | O_RDWR | O_CREAT | O_EXCL | O_DIRECT, made, "stat 5\n"), LEAT_OK);
    status.st_mode = S_IFCHR;
    opens_as(LEAT_OPEN_DIRECT, "f", tried(HOW | O_RDWR | O_DIRECT, "", "stat 5\n"), LEAT_OK);
    static const mode_t others[] = {S_IFIFO, S_IFDIR, S_IFSOCK, S_IFBLK};
    for (unsigned i = 0; i < 4; i++) {
        status.st_mode = others[i];
        opens_as(0, "f", tried(HOW | O_RDWR, "", "stat 5\nclose 5\n(gone)\n"), LEAT_E_DISK);
    }
    status.st_mode = S_IFREG;
    say(STAT, -EIO);
    opens_as(0, "f", tried(HOW | O_RDWR, "", "stat 5\nclose 5\n(gone)\n"), LEAT_E_DISK);
    status.st_mode = S_IFREG;
    say(OPEN,
        0); /* a descriptor like others; and what an earlier call left asks for no second try */
    struct leat_file *file = NULL;
    errno = EINVAL;
    assert_int_equal(disk->open(disk->ctx, "f", LEAT_OPEN_DIRECT, &file, NULL), LEAT_OK);
    TRACE_IS(tried(HOW | O_RDWR | O_DIRECT, "", "stat 0\n"));
    assert_int_equal(leat_os_file_direct_fd(file), 0);
    disk->close(disk->ctx, file);
    TRACE_IS("close 0\n(gone)\n");
    char root[100];
    snprintf(root, sizeof root, "(made)\nopen 7 '.' %#x\nstat 5\n", (unsigned)(HOW | O_RDWR));
    opens_as(0, "", root, LEAT_OK);
    leat_mem_fail_at(1);
    opens_as(0, "f", "", LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    disk->close(disk->ctx, NULL);
    TRACE_IS("");
}

/* Goal: a second try only where the first was refused as direct, and not for a new file then; what is refused leaves
 * nothing. */
static void files_are_opened_otherwise_where_direct_is_refused(void **state)
{
    (void)state;
    struct leat_file *file = NULL;
    unsigned made = HOW | O_RDWR | O_CREAT;
    say(OPEN, -EINVAL);
    assert_int_equal(
        disk->open(disk->ctx, "f", LEAT_OPEN_DIRECT | LEAT_OPEN_EXCLUSIVE, &file, NULL), LEAT_OK);
    TRACE_IS(tried_twice(made | O_EXCL | O_DIRECT, made, " 0640", "stat 5\n"));
    assert_int_equal(leat_os_file_direct_fd(file), -1);
    close_file(file);
    say(OPEN, -EINVAL);
    say(OPEN, -ENOENT);
    opens_as(LEAT_OPEN_DIRECT, "f",
             tried_twice(HOW | O_RDWR | O_DIRECT, HOW | O_RDWR, "", "(gone)\n"), LEAT_E_NOT_FOUND);
    say(OPEN, -ENOENT);
    opens_as(LEAT_OPEN_DIRECT, "f", tried(HOW | O_RDWR | O_DIRECT, "", "(gone)\n"),
             LEAT_E_NOT_FOUND);
    errno = EINVAL;
    say(OPEN, -EINVAL); /* of a file that must be new: it stays so where nothing was direct */
    opens_as(LEAT_OPEN_EXCLUSIVE, "f", tried(made | O_EXCL, " 0640", "(gone)\n"), LEAT_E_DISK);
}

/* ---- operations ---- */

static leat_err run(enum leat_disk_kind kind, struct leat_file *file, uint64_t offset, size_t bytes,
                    size_t done)
{
    struct leat_disk_io io = {.kind = kind,
                              .file = file,
                              .offset = offset,
                              .buffer = data,
                              .bytes = bytes,
                              .done_bytes = 99,
                              .rc = LEAT_E_INVALID};
    leat_err rc = disk->run(disk->ctx, &io);
    assert_int_equal(io.rc, rc);
    assert_int_equal(io.done_bytes, done);
    return rc;
}

/* Goal: a write goes on where it was cut, from where in memory and in the file it belongs; no errno of an earlier call
 * decides anything. */
static void writes_go_on_where_they_were_cut(void **state)
{
    (void)state;
    struct leat_file *file = file_of(0);
    say(WRITE, 100);
    say(WRITE, -EINTR);
    say(WRITE, 1);
    assert_int_equal(run(LEAT_DISK_WRITE, file, 5000, 301, 301), LEAT_OK);
    TRACE_IS(
        "write 5 from 0 301 at 5000\nwrite 5 from 100 201 at 5100\nwrite 5 from 100 201 at 5100\n"
        "write 5 from 101 200 at 5101\n");
    static const int left_over[] = {EINTR, ENOSPC};
    for (unsigned i = 0; i < 2; i++) {
        script[WRITE].next = script[WRITE].count = 0;
        say(WRITE, 10);
        say(WRITE, 0);
        errno = left_over[i];
        assert_int_equal(run(LEAT_DISK_WRITE, file, 0, 20, 10), LEAT_E_DISK);
        TRACE_IS("write 5 from 0 20 at 0\nwrite 5 from 10 10 at 10\n");
    }
    assert_int_equal(run(LEAT_DISK_WRITE, file, 0, 0, 0), LEAT_OK);
    assert_int_equal(run(LEAT_DISK_READ, file, 0, 0, 0), LEAT_OK);
    TRACE_IS("");
    assert_int_equal(run(LEAT_DISK_WRITE, file, 9, 1, 1), LEAT_OK);
    assert_int_equal(run(LEAT_DISK_READ, file, 9, 1, 1), LEAT_OK);
    assert_int_equal(run(LEAT_DISK_READ, file, 9, 2, 2), LEAT_OK);
    TRACE_IS("write 5 from 0 1 at 9\nread 5 from 0 1 at 9\nread 5 from 0 2 at 9\n");
    close_file(file);
}

/* Goal: of a write that ended elsewhere the rest is written, from where it belongs: all of it where none was. */
static void writes_that_ended_elsewhere_go_on(void **state)
{
    (void)state;
    static const struct {
        int64_t result;
        const char *then;
    } rows[] = {
        {-EINTR, "write 5 from 10 300 at 7000\n"}, {-EAGAIN, "write 5 from 10 300 at 7000\n"},
        {0, "write 5 from 10 300 at 7000\n"},      {1, "write 5 from 11 299 at 7001\n"},
        {299, "write 5 from 309 1 at 7299\n"},     {300, ""}};
    struct leat_file *file = file_of(LEAT_OPEN_DIRECT);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_disk_io io = {.kind = LEAT_DISK_WRITE,
                                  .file = file,
                                  .offset = 7000,
                                  .buffer = data + 10,
                                  .bytes = 300};
        leat_os_disk_write_ended(&io, rows[i].result);
        TRACE_IS(rows[i].then);
        assert_int_equal(io.rc, LEAT_OK);
        assert_int_equal(io.done_bytes, 300);
    }
    close_file(file);
}

static struct leat_file *syncs_beside;
static void fails_beside(void)
{
    say(SYNC, -EIO);
    assert_int_equal(run(LEAT_DISK_SYNC, syncs_beside, 0, 0, 0), LEAT_E_DISK);
}

/* Goal: a sync that waited for another that failed asks for nothing, and has failed, too. */
static void syncs_that_waited_for_one_that_failed_fail(void **state)
{
    (void)state;
    struct leat_file *file = syncs_beside = file_of(0);
    before_lock = fails_beside;
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_E_DISK);
    TRACE_IS("(locked)\nsync 5\n(unlocked)\n(locked)\n(unlocked)\n");
    close_file(file);
}

/* Goal: a read goes on likewise, up to the file's end; a direct read ends where a short read left it amid a block. */
static void reads_go_on_up_to_the_end(void **state)
{
    (void)state;
    static const struct {
        bool direct;
        long first;
        const char *then; /* after which the file has ended */
    } rows[] = {{false, 100, "read 5 from 100 8092 at 4196\n"},
                {false, 4096, "read 5 from 4096 4096 at 8192\n"},
                {true, 4096, "read 5 from 4096 4096 at 8192\n"},
                {true, 100, ""},
                {true, 4097, ""},
                {true, 4095, ""},
                {true, 6144, ""}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_file *file = file_of(rows[i].direct ? LEAT_OPEN_DIRECT : 0);
        script[READ].next = script[READ].count = 0;
        say(READ, -EINTR);
        say(READ, rows[i].first);
        say(READ, 0);
        errno = EINTR;
        assert_int_equal(run(LEAT_DISK_READ, file, 4096, 8192, (size_t)rows[i].first), LEAT_OK);
        char want[200];
        snprintf(want, sizeof want, "read 5 from 0 8192 at 4096\nread 5 from 0 8192 at 4096\n%s",
                 rows[i].then);
        TRACE_IS(want);
        script[READ].next = script[READ].count = 0;
        say(READ, -ENOSPC);
        assert_int_equal(run(LEAT_DISK_READ, file, 0, 10, 0), LEAT_E_DISK);
        trace_begin();
        close_file(file);
    }
}

/* Goal: syncs of a file that is not direct go one after the other, and each looks at the outcome of the sync before.
 * Syncs of a direct file need not. */
static void syncs_go_one_after_the_other(void **state)
{
    (void)state;
    struct leat_file *file = file_of(0);
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_OK);
    TRACE_IS("(locked)\nsync 5\n(unlocked)\n");
    say(SYNC, -ENOSPC);
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_E_DISK_FULL);
    TRACE_IS("(locked)\nsync 5\n(unlocked)\n");
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_E_DISK);
    TRACE_IS("");
    close_file(file);
    file = file_of(LEAT_OPEN_DIRECT);
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_OK);
    TRACE_IS("sync 5\n");
    assert_int_equal(leat_os_file_direct_fd(file), FILE_FD);
    say(SYNC, -EIO);
    assert_int_equal(run(LEAT_DISK_SYNC, file, 0, 0, 0), LEAT_E_DISK);
    assert_int_equal(leat_os_file_direct_fd(file), -1); /* the kernel is given no more of it */
    close_file(file);
}

/* Goal: all submitted operations run before an operation that runs at once. */
static void operations_at_once_come_behind_those_submitted(void **state)
{
    (void)state;
    struct leat_file *file = file_of(0);
    struct leat_disk_io before[2] = {{.next = &before[1]}, {.next = NULL}};
    actor.disk.first = before;
    assert_int_equal(run(LEAT_DISK_WRITE, file, 0, 8, 8), LEAT_OK);
    TRACE_IS("run what was submitted\nrun what was submitted\nwrite 5 from 0 8 at 0\n");
    close_file(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_opened_as_asked_for),
        TEST(files_are_opened_otherwise_where_direct_is_refused),
        TEST(writes_go_on_where_they_were_cut),
        TEST(writes_that_ended_elsewhere_go_on),
        TEST(syncs_that_waited_for_one_that_failed_fail),
        TEST(reads_go_on_up_to_the_end),
        TEST(syncs_go_one_after_the_other),
        TEST(operations_at_once_come_behind_those_submitted),
    };
    return cmocka_run_group_tests_name("os disk alone", tests, NULL, NULL);
}
