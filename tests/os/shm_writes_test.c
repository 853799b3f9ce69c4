/* SPDX-License-Identifier: Apache-2.0 */
/* The writer port over shared memory: where bytes go, when a write is done and as what, and every way in which a target
 * ends. Every callback, mail and job is compared, in order. */
#include "tests/os/shm_alone.h"

struct row {
    struct leat_rmem_write write;
    struct leat_iov iovs[LEAT_RMEM_IOVS_MAX];
    const char *name;
    struct leat_rmem_target *more; /* on_done writes this row there again, once */
};
static struct row rows[8];

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct row *row = write->owner;
    trace("%s done %d\n", row->name, rc);
    struct leat_rmem_target *more = row->more;
    row->more = NULL;
    if (more) assert_int_equal(leat_rmem_write(more, write), LEAT_OK);
}

/* Row i writes these letters there. */
static leat_err writes(struct leat_rmem_target *target, unsigned i, uint64_t offset,
                       const char *letters)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct row *row = &rows[i];
    *row = (struct row){.name = names[i]};
    row->iovs[0] = (struct leat_iov){letters, strlen(letters)};
    row->write = (struct leat_rmem_write){
        .iovs = row->iovs, .iov_count = 1, .offset = offset, .on_done = on_done, .owner = row};
    return leat_rmem_write(target, &row->write);
}

static struct leat_rmem_target *attached(const char *user)
{
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach(user, &target), LEAT_OK);
    job_ends();
    assert_true(target->attached);
    trace_begin();
    return target;
}

static void failed_is(const char *before, leat_err rc, const char *text)
{
    char expected[500];
    snprintf(expected, sizeof expected, "%sa failed: %d %s\n", before, rc, text);
    TRACE_IS(expected);
}

/* A failed target takes nothing, and leaves without another word. */
static void is_over(struct leat_rmem_target *target, const char *left)
{
    char expected[300];
    trace_begin();
    assert_true(target->failed);
    assert_int_equal(writes(target, 7, 0, "x"), LEAT_E_CLOSED);
    leat_rmem_detach(target);
    TRACE_IS("mail\n");
    mail_comes();
    job_ends();
    snprintf(expected, sizeof expected, "job\n%s", left);
    TRACE_IS(expected);
    assert_int_equal(played.mail_count + played.job_count, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    arena_lies();
}
#define LEFT "unmap arena 201326592\nunmap header 8192\nclose %u\nclose 7\n"

static const char *left_of(unsigned fd)
{
    static char text[200];
    snprintf(text, sizeof text, LEFT, fd);
    return text;
}

/* ---- writes that are done ---- */

/* Goal: bytes are there when write() returns, piece behind piece; they count once the word was read, later. */
static void shm_write_stores_then_counts(void **state)
{
    (void)state;
    port_opens();
    struct leat_rmem_target *target = attached("a");
    played.memory[4] = played.memory[11] = '-';
    rows[1] = (struct row){.name = "1"};
    rows[1].iovs[0] = (struct leat_iov){"abc", 3};
    rows[1].iovs[1] = (struct leat_iov){"", 0};
    rows[1].iovs[2] = (struct leat_iov){"defx", 3};
    rows[1].iovs[3] = (struct leat_iov){"XX", 2}; /* not of it */
    rows[1].write = (struct leat_rmem_write){
        .iovs = rows[1].iovs, .iov_count = 3, .offset = 5, .on_done = on_done, .owner = &rows[1]};
    assert_int_equal(leat_rmem_write(target, &rows[1].write), LEAT_OK);
    assert_memory_equal(played.memory + 4, "-abcdef-", 8);
    assert_int_equal(writes(target, 2, 2 * STEP - 2, "zz"), LEAT_OK); /* the last that are there */
    assert_memory_equal(played.memory + 2 * STEP - 2, "zz", 2);
    TRACE_IS("mail\n"); /* one fence for both */
    rows[1].more = target;
    mail_comes();
    TRACE_IS("1 done 0\n2 done 0\nmail\n"); /* a write meanwhile has a message of its own */
    mail_comes();
    TRACE_IS("1 done 0\n");
    assert_int_equal(played.mail_count + played.job_count, 0);
    leat_rmem_detach(target);
    mail_comes();
    job_ends();
    port_closes();
}

/* Goal: a call that can't be a write is refused, and the target is none the worse. */
static void shm_write_refuses_what_is_none(void **state)
{
    (void)state;
    struct leat_rmem_target *target = NULL;
    port_opens();
    assert_int_equal(attach("a", &target), LEAT_OK);
    assert_int_equal(writes(target, 0, 0, "x"), LEAT_E_CLOSED); /* not yet */
    job_ends();
    trace_begin();
    assert_int_equal(writes(target, 0, 0, ""), LEAT_E_INVALID);
    assert_int_equal(writes(target, 0, 3 * STEP - 1, "xy"), LEAT_E_OFFSET_OUT_OF_RANGE);
    TRACE_IS("");
    assert_int_equal(writes(target, 0, 3, "x"), LEAT_OK);
    mail_comes();
    TRACE_IS("mail\n0 done 0\n");
    leat_rmem_detach(target);
    assert_int_equal(writes(target, 0, 3, "x"), LEAT_E_CLOSED);
    mail_comes();
    job_ends();
    port_closes();
}

/* Goal: writes past what is mapped wait until the helper has mapped what the host has grown, in order, with all that
 * come behind them; the helper is asked once. */
static void shm_write_waits_for_a_step(void **state)
{
    (void)state;
    port_opens();
    struct leat_rmem_target *target = attached("a");
    played.page.header.pool.steps = 3;
    played.st.st_size += STEP;
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    assert_int_equal(writes(target, 1, 2 * STEP - 1, "bb"), LEAT_OK);
    assert_int_equal(writes(target, 2, 1, "c"), LEAT_OK);
    assert_int_equal(writes(target, 3, 3 * STEP - 1, "d"), LEAT_OK);
    TRACE_IS("mail\njob\n");
    assert_int_equal(played.memory[1] | played.memory[2 * STEP - 1], 0);
    mail_comes();
    TRACE_IS("0 done 0\n");
    job_ends();
    TRACE_IS("stat 10\nstep 10 2\ntouch 2 0\nmail\n");
    assert_memory_equal(played.memory + 2 * STEP - 1, "bb", 2);
    assert_int_equal(played.memory[1], 'c');
    assert_int_equal(played.memory[3 * STEP - 1], 'd');
    mail_comes();
    TRACE_IS("1 done 0\n2 done 0\n3 done 0\n");
    leat_rmem_detach(target);
    mail_comes();
    job_ends();
    port_closes();
}

/* ---- the fence ---- */

/* Goal: a write counts only if its arena was not revoked before the write was looked at; later writes are not asked for
 * either. */
static void shm_write_fails_once_revoked(void **state)
{
    (void)state;
    port_opens();
    struct leat_rmem_target *target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    assert_int_equal(writes(target, 1, 2 * STEP, "b"), LEAT_OK); /* waits */
    trace_begin();
    played.page.header.control = RMEM_REVOKED;
    mail_comes();
    char expected[200];
    snprintf(expected, sizeof expected, "0 done %d\n1 done %d\nwatch ends\n", LEAT_E_CANCELLED,
             LEAT_E_CANCELLED);
    failed_is(expected, LEAT_E_CANCELLED, "the backup has revoked the arena");
    played.page.header.pool.steps = 3;
    played.st.st_size += STEP;
    job_ends(); /* the step that was asked for comes: for nobody */
    TRACE_IS("stat 10\nstep 10 2\ntouch 2 0\n");
    is_over(target, left_of(10));
    target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    played.page.header.control = 0; /* anything but open */
    mail_comes();
    snprintf(expected, sizeof expected, "mail\n0 done %d\nwatch ends\n", LEAT_E_CANCELLED);
    failed_is(expected, LEAT_E_CANCELLED, "the backup has revoked the arena");
    is_over(target, left_of(11));
    port_closes();
}

/* ---- ends ---- */

/* Goal: a write past the memory to which the host has grown fails the target, and the writes behind it; bytes that were
 * stored count. */
static void shm_write_past_what_is_grown_fails_the_target(void **state)
{
    (void)state;
    port_opens();
    struct leat_rmem_target *target = attached("a");
    char expected[300];
    assert_int_equal(writes(target, 0, 2 * STEP - 1, "aa"), LEAT_OK);
    assert_int_equal(writes(target, 1, 5, "b"), LEAT_OK);
    trace_begin();
    job_ends(); /* nothing new */
    TRACE_IS("stat 10\nmail\n");
    assert_false(target->failed);
    mail_comes();
    snprintf(expected, sizeof expected, "0 done %d\n1 done %d\nwatch ends\n",
             LEAT_E_OFFSET_OUT_OF_RANGE, LEAT_E_OFFSET_OUT_OF_RANGE);
    failed_is(expected, LEAT_E_OFFSET_OUT_OF_RANGE, "a write past what the arena has grown to");
    is_over(target, left_of(10));
    port_closes();
}

/* Goal: waiting writes that are reached count, although the write behind them fails. */
static void shm_write_counts_before_the_one_that_fails(void **state)
{
    (void)state;
    port_opens();
    address.limit_bytes = played.page.header.limit_bytes = 3 * STEP;
    played.page.header.pool.steps = 1;
    struct leat_rmem_target *target = attached("a");
    char expected[300];
    played.page.header.pool.steps = 2;
    assert_int_equal(writes(target, 0, STEP, "a"), LEAT_OK);
    assert_int_equal(writes(target, 1, 2 * STEP - 1, "b"), LEAT_OK);
    assert_int_equal(writes(target, 2, 2 * STEP, "c"), LEAT_OK);
    trace_begin();
    job_ends();
    TRACE_IS("stat 10\nstep 10 1\ntouch 1 0\nmail\n");
    mail_comes();
    snprintf(expected, sizeof expected, "0 done 0\n1 done 0\n2 done %d\nwatch ends\n",
             LEAT_E_OFFSET_OUT_OF_RANGE);
    failed_is(expected, LEAT_E_OFFSET_OUT_OF_RANGE, "a write past what the arena has grown to");
    is_over(target, left_of(10));
    port_closes();
}

/* Goal: a step that can't be mapped fails the target, by its reason. */
static void shm_write_fails_where_no_step_can_be_mapped(void **state)
{
    (void)state;
    char before[100], text[200];
    port_opens();
    for (unsigned i = 0; i < 4; i++) {
        static const leat_err rcs[] = {LEAT_E_DAMAGED, LEAT_E_NO_MEMORY, LEAT_E_DISK,
                                       LEAT_E_DAMAGED};
        struct leat_rmem_target *target = attached("a");
        assert_int_equal(writes(target, 0, 2 * STEP, "a"), LEAT_OK);
        played.page.header.pool.steps = 3;
        if (i > 0) played.st.st_size += STEP;
        if (i == 1) plan(STEP_MAP, 0, ENOMEM);
        if (i == 2) plan(STAT, 0, EIO);
        if (i == 3) played.st.st_size = POOL_DATA_OFFSET - 1;
        job_ends();
        trace_begin();
        mail_comes();
        snprintf(before, sizeof before, "0 done %d\nwatch ends\n", rcs[i]);
        snprintf(text, sizeof text, "can't map " PATH ": %s",
                 i % 3 == 0 ? "the file has been cut" : leat_err_text(rcs[i]));
        failed_is(before, rcs[i], text);
        is_over(target, left_of(10 + i));
    }
    port_closes();
}

/* Goal: when the host's process ends the target fails, and what was stored and not yet looked at counts by the word;
 * the first reason stays. */
static void shm_ends_with_the_process(void **state)
{
    (void)state;
    char before[200];
    port_opens();
    struct leat_rmem_target *target = attached("a");
    played.on_ready(played.on_ready_user);
    TRACE_IS("watch ends\nmail\n");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_E_CLOSED);
    mail_comes();
    failed_is("", LEAT_E_CLOSED, "the backup's process has ended");
    is_over(target, left_of(10));
    target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    assert_int_equal(writes(target, 1, 2 * STEP, "b"), LEAT_OK);
    played.on_ready(played.on_ready_user);
    TRACE_IS("mail\njob\nwatch ends\n");
    mail_comes();
    snprintf(before, sizeof before, "0 done 0\n1 done %d\n", LEAT_E_CLOSED);
    failed_is(before, LEAT_E_CLOSED, "the backup's process has ended");
    played.page.header.pool.steps = 3;
    job_ends(); /* the file has been cut, but it is over already */
    TRACE_IS("stat 11\nmail\n");
    mail_comes();
    TRACE_IS("");
    is_over(target, left_of(11));
    target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    played.on_ready(played.on_ready_user);
    played.page.header.control = RMEM_REVOKED;
    trace_begin();
    mail_comes();
    snprintf(before, sizeof before, "0 done %d\n", LEAT_E_CANCELLED);
    failed_is(before, LEAT_E_CLOSED, "the backup's process has ended");
    is_over(target, left_of(12));
    port_closes();
}

/* ---- detaching ---- */

/* Goal: a detached target calls its handler no more, ends all of its writes, and goes when nothing of the target is on
 * its way. */
static void shm_detach_ends_what_is_under_way(void **state)
{
    (void)state;
    char expected[300];
    struct leat_rmem_target *target = NULL;
    port_opens();
    assert_int_equal(attach("a", &target), LEAT_OK);
    leat_rmem_detach(target); /* before it was attached */
    trace_begin();
    mail_comes();
    TRACE_IS("");
    job_ends();
    assert_null(strstr(trace_text, "attached"));
    assert_null(strstr(trace_text, "watch"));
    trace_begin();
    job_ends();
    TRACE_IS(left_of(10));
    target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    assert_int_equal(writes(target, 1, 2 * STEP, "b"), LEAT_OK);
    leat_rmem_detach(target);
    TRACE_IS("mail\njob\n"); /* its mail is under way */
    job_ends();
    TRACE_IS("stat 11\n");
    mail_comes();
    snprintf(expected, sizeof expected, "0 done 0\n1 done %d\nwatch ends\njob\n", LEAT_E_CANCELLED);
    TRACE_IS(expected);
    job_ends();
    TRACE_IS(left_of(11));
    target = attached("a");
    assert_int_equal(writes(target, 0, 0, "a"), LEAT_OK);
    leat_rmem_detach(target);
    played.page.header.control = RMEM_REVOKED;
    trace_begin();
    mail_comes(); /* nobody is told, but whose write it was */
    snprintf(expected, sizeof expected, "0 done %d\nwatch ends\njob\n", LEAT_E_CANCELLED);
    TRACE_IS(expected);
    job_ends();
    arena_lies();
    assert_int_equal(attach("a", &target), LEAT_OK); /* refused, and detached meanwhile */
    leat_rmem_detach(target);
    plan(OPEN, 0, ENOENT);
    mail_comes();
    trace_begin();
    job_ends();
    TRACE_IS("process 99 0\nidentity 99\nopen " PATH "\nmail\n");
    mail_comes();
    TRACE_IS("job\n");
    job_ends();
    TRACE_IS("close 7\n");
    port_closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHM_TEST(shm_write_stores_then_counts),
        SHM_TEST(shm_write_refuses_what_is_none),
        SHM_TEST(shm_write_waits_for_a_step),
        SHM_TEST(shm_write_fails_once_revoked),
        SHM_TEST(shm_write_past_what_is_grown_fails_the_target),
        SHM_TEST(shm_write_counts_before_the_one_that_fails),
        SHM_TEST(shm_write_fails_where_no_step_can_be_mapped),
        SHM_TEST(shm_ends_with_the_process),
        SHM_TEST(shm_detach_ends_what_is_under_way),
    };
    return cmocka_run_group_tests_name("os-shm-writes", tests, NULL, NULL);
}
