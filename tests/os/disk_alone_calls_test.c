/* SPDX-License-Identifier: Apache-2.0 */
/* The disk port's calls, and where its zeros come from: what is asked of the system for each, with which words and in
 * which order, and what is made of the answers (disk_alone.h). */
#include "tests/os/disk_alone.h"

/* ---- calls ---- */

/* Goal: each call asks the system for what it says, in the data directory. */
static void calls_ask_for_what_they_say(void **state)
{
    (void)state;
    struct leat_file *file = file_of(0);
    uint64_t number = 0;
    unsigned folder_how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    char want[200];
    assert_int_equal(disk->size(disk->ctx, file, &number), LEAT_OK);
    assert_int_equal(number, 5000);
    TRACE_IS("stat 5\n");
    assert_int_equal(disk->truncate(disk->ctx, file, 12), LEAT_OK);
    TRACE_IS("cut 5 12\n");
    assert_int_equal(disk->space(disk->ctx, &number), LEAT_OK);
    assert_int_equal(number, 40 * 512);
    TRACE_IS("space 7\n");
    assert_int_equal(disk->rename(disk->ctx, "a", "b/c"), LEAT_OK);
    TRACE_IS("rename 7 'a' 7 'b/c'\n");
    assert_int_equal(disk->make_dir(disk->ctx, "d"), LEAT_OK);
    say(MAKE_DIR, -EEXIST);
    assert_int_equal(disk->make_dir(disk->ctx, "d"), LEAT_OK);
    TRACE_IS("make 7 'd' 0750\nmake 7 'd' 0750\n");
    errno = EEXIST;
    say(MAKE_DIR, -EIO);
    assert_int_equal(disk->make_dir(disk->ctx, "d"), LEAT_E_DISK);
    TRACE_IS("make 7 'd' 0750\n");
    errno = EISDIR;
    assert_int_equal(disk->remove(disk->ctx, "f"), LEAT_OK);
    TRACE_IS("remove 7 'f' 0\n");
    say(REMOVE, -EISDIR);
    assert_int_equal(disk->remove(disk->ctx, "d"), LEAT_OK);
    snprintf(want, sizeof want, "remove 7 'd' 0\nremove 7 'd' %d\n", AT_REMOVEDIR);
    TRACE_IS(want);
    say(REMOVE, -EISDIR);
    say(REMOVE, -ENOENT); /* what the second try says counts */
    assert_int_equal(disk->remove(disk->ctx, "d"), LEAT_E_NOT_FOUND);
    TRACE_IS(want);
    assert_int_equal(disk->sync_dir(disk->ctx, ""), LEAT_OK);
    snprintf(want, sizeof want, "open 7 '.' %#x\nsync all of 5\nclose 5\n", folder_how);
    TRACE_IS(want);
    say(SYNC, -ENOSPC);
    assert_int_equal(disk->sync_dir(disk->ctx, ""),
                     LEAT_E_DISK_FULL); /* not what closing it says */
    TRACE_IS(want);
    say(OPEN, -ENOENT);
    assert_int_equal(disk->sync_dir(disk->ctx, "d"), LEAT_E_NOT_FOUND);
    snprintf(want, sizeof want, "open 7 'd' %#x\n", folder_how);
    TRACE_IS(want);
    close_file(file);
}

/* Goal: space is asked for from the file's beginning. Where that is not supported, zeros are written from the file's
 * end on, and never over its bytes. */
static void space_is_allocated_or_written(void **state)
{
    (void)state;
    struct leat_file *file = file_of(0);
    say(ALLOCATE, -EINTR);
    assert_int_equal(disk->allocate(disk->ctx, file, 9000), LEAT_OK);
    TRACE_IS("stat 5\nallocate 5 0 0 9000\nallocate 5 0 0 9000\n");
    errno = EINTR;
    assert_int_equal(disk->allocate(disk->ctx, file, 1), LEAT_OK);
    TRACE_IS("stat 5\nallocate 5 0 0 1\n");
    assert_int_equal(disk->allocate(disk->ctx, file, 0), LEAT_OK);
    TRACE_IS("stat 5\n");
    script[ALLOCATE].next = script[ALLOCATE].count = 0;
    huge = NULL;
    say(ALLOCATE, -EOPNOTSUPP);
    say(WRITE, -EIO);
    assert_int_equal(disk->allocate(disk->ctx, file, 9000), LEAT_E_DISK);
    trace_begin(); /* the first zeros look for a page of 2 MiB */
    say(ALLOCATE, -ENOSYS);
    assert_int_equal(disk->allocate(disk->ctx, file, 9000), LEAT_OK);
    TRACE_IS("stat 5\nallocate 5 0 0 9000\nwrite 5 zeros 4000 at 5000\n");
    say(ALLOCATE, -ENOSYS);
    assert_int_equal(disk->allocate(disk->ctx, file, 5000), LEAT_OK);
    TRACE_IS("stat 5\nallocate 5 0 0 5000\n");
    say(ALLOCATE, -ENOSYS); /* the first piece that is refused is the last */
    say(WRITE, MIB);
    say(WRITE, -ENOSPC);
    assert_int_equal(disk->allocate(disk->ctx, file, 5000 + 4 * MIB), LEAT_E_DISK_FULL);
    TRACE_IS("stat 5\nallocate 5 0 0 4199304\nwrite 5 zeros 1048576 at 5000\nwrite 5 zeros 1048576 "
             "at 1053576\n");
    say(ALLOCATE, -ENOSPC);
    assert_int_equal(disk->allocate(disk->ctx, file, 9000), LEAT_E_DISK_FULL);
    TRACE_IS("stat 5\nallocate 5 0 0 9000\n");
    close_file(file);
    script[ALLOCATE].next = script[ALLOCATE].count = 0;
    file = file_of(LEAT_OPEN_DIRECT);
    say(ALLOCATE, -ENOSYS);
    assert_int_equal(disk->allocate(disk->ctx, file, 9000), LEAT_E_INVALID); /* of 5,000 bytes */
    TRACE_IS("stat 5\nallocate 5 0 0 9000\n");
    status.st_size = 8192;
    say(ALLOCATE, -ENOSYS);
    assert_int_equal(disk->allocate(disk->ctx, file, 8193), LEAT_OK);
    TRACE_IS("stat 5\nallocate 5 0 0 8193\nwrite 5 zeros 4096 at 8192\n");
    close_file(file);
}

static void note_name(void *arg, const char *name)
{
    assert_ptr_equal(arg, &folder);
    trace("%s\n", name);
}

static void folder_has(const char *name)
{
    snprintf(folder.names[folder.count++], sizeof folder.names[0], "%s", name);
}

/* Goal: names come in order, those of the folder itself not, and none where one could not be read. */
static void names_are_listed_in_order_or_not_at_all(void **state)
{
    (void)state;
    char want[200], opened[100];
    snprintf(opened, sizeof opened, "open 7 '.' %#x\n",
             (unsigned)(O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    static const char *const names[] = {"..", "b", ".", "ab", "a", ".a"};
    for (unsigned i = 0; i < 6; i++)
        folder_has(names[i]);
    errno = EIO;
    assert_int_equal(disk->list(disk->ctx, "", note_name, &folder), LEAT_OK);
    snprintf(want, sizeof want, "%slist 5\nclose the list\n.a\na\nab\nb\n", opened);
    TRACE_IS(want);
    folder.next = 0;
    for (unsigned i = 0; i < 3; i++)
        say(READ_DIR, 1);
    say(READ_DIR, -ENOENT);
    assert_int_equal(disk->list(disk->ctx, "", note_name, &folder), LEAT_E_NOT_FOUND);
    snprintf(want, sizeof want, "%slist 5\nclose the list\n", opened);
    TRACE_IS(want);
    say(OPEN_DIR, -ENOMEM);
    assert_int_equal(disk->list(disk->ctx, "", note_name, &folder), LEAT_E_NO_MEMORY);
    snprintf(want, sizeof want, "%slist 5\nclose 5\n", opened);
    TRACE_IS(want);
    say(OPEN, -ENOENT);
    assert_int_equal(disk->list(disk->ctx, "", note_name, &folder), LEAT_E_NOT_FOUND);
    TRACE_IS(opened);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), 0);
}

static void count_names(void *arg, const char *name)
{
    (void)name;
    ++*(unsigned *)arg;
}

/* Goal: a folder of any size: room for 64 names, twice as many whenever they are full; without memory none is told. */
static void names_may_be_many(void **state)
{
    (void)state;
    char name[8];
    for (unsigned i = 0; i < 130; i++) {
        snprintf(name, sizeof name, "%u", i);
        folder_has(name);
    }
    for (unsigned at = 1; at <= 134; at++) { /* of 130 names and three tables */
        unsigned told = 0;
        folder.next = 0;
        leat_mem_fail_at(at);
        assert_int_equal(disk->list(disk->ctx, "d", count_names, &told),
                         at == 134 ? LEAT_OK : LEAT_E_NO_MEMORY);
        assert_int_equal(told, at == 134 ? 130 : 0);
        leat_mem_fail_at(0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), 0);
        trace_begin();
    }
}

/* ---- zeros ---- */

enum { PLAIN, NONE, PROTECTED, SMALL };

/* Zeros for the first time in a process: in a process of its own, as a process has one first time. Each line to
 * `out`. */
static void zeros_of_a_process(unsigned how, int out)
{
    struct leat_file *file = file_of(0);
    if (how == PROTECTED) say(OTHER, -ENOMEM);
    if (how == SMALL) say(OPEN, -EINVAL), script[OPEN].next = script[OPEN].count - 1;
    huge = how == NONE ? NULL
                       : mmap(NULL, HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct leat_disk_io io = {
        .kind = LEAT_DISK_ZERO, .file = file, .offset = 9, .bytes = 2 * MIB + 1};
    leat_os_disk_io_run(&io);
    trace("%d %zu\n", (int)io.rc, io.done_bytes);
    leat_os_disk_io_run(&io); /* the second time nothing is looked for */
    _exit(write(out, trace_text, trace_used) == (ssize_t)trace_used ? 0 : 1);
}

static void zeros_are(unsigned how, const char *looked, const char *source)
{
    static const int64_t bytes[] = {MIB, MIB, 1, MIB, MIB, 1};
    char got[4000] = "", want[4000];
    int ends[2], result = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) zeros_of_a_process(how, ends[1]);
    assert_true(read(ends[0], got, sizeof got - 1) > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    size_t used = (size_t)snprintf(want, sizeof want, "%s", looked);
    for (unsigned i = 0; i < 6; i++)
        used += (size_t)snprintf(want + used, sizeof want - used, "write 5 %s %lld at %lld\n%s",
                                 source, (long long)bytes[i], (long long)(9 + (i % 3) * MIB),
                                 i == 2 ? "0 2097153\n" : "");
    assert_string_equal(got, want);
    dup2(ends[0], ends[1]); /* both ends go: close() stands here */
}

/* Goal: zeros come by the mebibyte, out of a page of 2 MiB where there is one, else out of one of the kernel's. */
static void zeros_come_out_of_a_huge_page_where_there_is_one(void **state)
{
    (void)state;
    char allowed[200], collapsed[300], small[400];
    unsigned both = PROT_READ | PROT_WRITE;
    snprintf(allowed, sizeof allowed, "reserve 2097152\nallow 1 2097152 %u\n", both);
    snprintf(collapsed, sizeof collapsed, "%scollapse 1 2097152 %d\n", allowed, MADV_COLLAPSE);
    snprintf(small, sizeof small, "%sunmap 2097152\n", collapsed);
    zeros_are(PLAIN, collapsed, "huge");
    zeros_are(NONE, "reserve 2097152\n", "zeros");
    zeros_are(PROTECTED, allowed, "zeros");
    zeros_are(SMALL, small, "zeros");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(zeros_come_out_of_a_huge_page_where_there_is_one),
        TEST(calls_ask_for_what_they_say),
        TEST(space_is_allocated_or_written),
        TEST(names_are_listed_in_order_or_not_at_all),
        TEST(names_may_be_many),
    };
    return cmocka_run_group_tests_name("os disk calls alone", tests, NULL, NULL);
}
