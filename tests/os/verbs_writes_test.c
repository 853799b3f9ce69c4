/* SPDX-License-Identifier: Apache-2.0 */
/* Writes over verbs: which requests they become, when they wait, and that none counts as done that did not succeed. */
#include "tests/os/verbs_writer_alone.h"

#define GONE     "the RDMA connection to the backup ended: DISCONNECTED"
#define WENT     CUT(2, 1, 2, 2)
#define QUEUE_NO "the RDMA queue takes no request"
#define POOL_KEY "register pool+0 67108864 write\n"

enum { WRITES_MAX = 300 };

static struct leat_rmem_write writes[WRITES_MAX];
static struct leat_iov iovs[WRITES_MAX][LEAT_RMEM_IOVS_MAX];
static unsigned write_count;
static unsigned done_count;
static void (*when_done)(struct leat_rmem_write *write);

static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    done_count++;
    if (when_done)
        when_done(write);
    else
        trace("%s done %d\n", (const char *)write->owner, rc);
}

static struct leat_rmem_write *write_of(const char *name, uint64_t offset)
{
    assert_true(write_count < WRITES_MAX);
    struct leat_rmem_write *write = &writes[write_count];
    *write = (struct leat_rmem_write){.iovs = iovs[write_count++],
                                      .offset = offset,
                                      .on_done = on_done,
                                      .owner = (void *)(uintptr_t)name};
    return write;
}
static void piece(struct leat_rmem_write *write, const void *base, size_t bytes)
{
    ((struct leat_iov *)(uintptr_t)write->iovs)[write->iov_count++] =
        (struct leat_iov){base, bytes};
}
/* Ten bytes, of which the first is the source's first. */
static struct leat_rmem_write *writes_ten(struct leat_rmem_target *target, const char *name,
                                          uint64_t offset)
{
    struct leat_rmem_write *write = write_of(name, offset);
    piece(write, source, 10);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    return write;
}
static void done_is(struct leat_rmem_target *target, const struct leat_rmem_write *write,
                    const char *expected)
{
    completes(verbs_of(target)->cq, write, IBV_WC_SUCCESS);
    ready(WCS);
    TRACE_IS(expected);
}
static void disconnected(struct leat_rmem_target *target)
{
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    ready(CM);
}
static void expect(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void expect(const char *format, ...)
{
    static char expected[sizeof trace_text];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    TRACE_IS(expected);
}

static struct leat_rmem_target *opens(unsigned steps)
{
    write_count = done_count = 0;
    when_done = NULL;
    port_opens();
    return attached("t", steps);
}
static void closes(struct leat_rmem_target *target)
{
    leaves(target);
    port_closes();
}

/* ---- requests ---- */

/* Goal: a write is one request with its pieces in order; a piece without bytes is passed over. */
static void verbs_write_is_a_request(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct leat_rmem_write *write = write_of("a", 7);
    piece(write, source + 50, 0);
    piece(write, source, 10);
    piece(write, source + 60, 0);
    piece(write, source + 100, 5);
    piece(write, source + 70, 0);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    TRACE_IS("write 1 0x100000007/501: source+0 10/1001 source+100 5/1001 a told\n");
    done_is(target, write, "a done 0\n");
    done_is(target, writes_ten(target, "b", STEP - 10), /* to the end of what is grown */
            "write 1 0x103fffff6/501: source+0 10/1001 b told\nb done 0\n");
    write = write_of("c", 4 * STEP - 9);
    piece(write, source, 10);
    assert_int_equal(leat_rmem_write(target, write), LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(leat_rmem_write(target, write_of("d", 0)), LEAT_E_INVALID);
    TRACE_IS("");
    closes(target);
}

/* Goal: a write across two steps is two requests, each with its step's key; the last one says when both are done. */
static void verbs_write_across_steps_is_two_requests(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(3);
    struct leat_rmem_write *write = write_of("a", STEP - 6);
    piece(write, source, 4);
    piece(write, source + 100, 4);
    piece(write, source + 200, 4);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    TRACE_IS("write 1 0x103fffffa/501: source+0 4/1001 source+100 2/1001\n"
             "write 1 0x104000000/502: source+102 2/1001 source+200 4/1001 a told\n");
    done_is(target, write, "a done 0\n");
    write = write_of("b", 2 * STEP - 4); /* the first piece ends with its step */
    piece(write, source, 4);
    piece(write, source + 100, 1);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    TRACE_IS("write 1 0x107fffffc/502: source+0 4/1001\n"
             "write 1 0x108000000/503: source+100 1/1001 b told\n");
    done_is(target, write, "b done 0\n");
    write = writes_ten(target, "c", STEP);
    TRACE_IS("write 1 0x104000000/502: source+0 10/1001 c told\n");
    done_is(target, write, "c done 0\n");
    closes(target);
}

/* Goal: each piece has the key of the memory that it lies in, and is cut where that memory ends. */
static void verbs_write_comes_from_several_regions(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct leat_rmem_write *write = write_of("a", 0);
    char line[1000];
    size_t used = (size_t)snprintf(line, sizeof line, "write 1 0x100000000/501:");
    for (unsigned i = 0; i < LEAT_RMEM_IOVS_MAX; i++) {
        piece(write, source + SOURCE_BYTES - 4, 10); /* the pool follows */
        used += (size_t)snprintf(line + used, sizeof line - used,
                                 " source+1048572 4/1001 pool+0 6/1003");
    }
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    TRACE_IS("job\n");
    job_ends();
    TRACE_IS(POOL_KEY "mail\n");
    mail_comes();
    expect("%s a told\n", line);
    closes(target);
}

/* ---- waiting ---- */

/* Goal: steps whose keys are not known are asked for once, and later writes wait; a step that is not there fails. */
static void verbs_write_waits_for_keys(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct leat_rmem_write *a = writes_ten(target, "a", 0);
    (void)writes_ten(target, "b", STEP - 9);
    TRACE_IS("write 1 0x100000000/501: source+0 10/1001 a told\n" READS(1, 1002));
    (void)writes_ten(target, "c", 20);
    done_is(target, a, "a done 0\n");
    keys_come(target, 2);
    TRACE_IS("mail\nwrite 1 0x103fffff7/501: source+0 9/1001\n"
             "write 1 0x104000000/502: source+9 1/1001 b told\n"
             "write 1 0x100000014/501: source+0 10/1001 c told\n");
    mail_comes();
    TRACE_IS("");
    completes(verbs_of(target)->cq, &writes[1], IBV_WC_SUCCESS);
    (void)writes_ten(target, "d", 2 * STEP); /* the key of its first byte is none */
    (void)writes_ten(target, "e", 0);
    TRACE_IS(READS(1, 1002));
    keys_come(target, 2); /* b is done before the table is there */
    TRACE_IS("b done 0\nmail\n");
    assert_true(target->failed);
    struct leat_rmem_write *late = write_of("f", 0);
    piece(late, source, 1);
    assert_int_equal(leat_rmem_write(target, late), LEAT_E_CLOSED);
    completes(verbs_of(target)->cq, &writes[2],
              IBV_WC_SUCCESS); /* which is true, though it failed */
    mail_comes();
    leat_err past = LEAT_E_OFFSET_OUT_OF_RANGE;
    expect("disconnect 2\nc done 0\nqp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\nd done %d\n"
           "e done %d\nt failed: %d a write past what the arena has grown to, or what the backup "
           "could register\n",
           past, past, past);
    closes(target);
}

/* Goal: the table may have a hole; a write that waits for keys stays first, before what came later. */
static void verbs_write_waits_for_the_key_of_each_step(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(4);
    verbs_of(target)->keys[1] = 0;
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW; i++)
        (void)writes_ten(target, "w", 0);
    trace_begin();
    (void)writes_ten(target, "x", 2 * STEP - 5);
    (void)writes_ten(target, "y", 2 * STEP);
    (void)writes_ten(target, "z", STEP - 5);
    done_is(target, &writes[0], "w done 0\n" READS(1, 1002));
    keys_come(target, 4);
    TRACE_IS("mail\nwrite 1 0x107fffffb/502: source+0 5/1001\n"
             "write 1 0x108000000/503: source+5 5/1001 x told\n");
    done_is(target, &writes[1], "w done 0\nwrite 1 0x108000000/503: source+0 10/1001 y told\n");
    done_is(target, &writes[2],
            "w done 0\nwrite 1 0x103fffffb/501: source+0 5/1001\n"
            "write 1 0x104000000/502: source+5 5/1001 z told\n");
    closes(target);
}

/* Goal: a second table changes nothing for who waits for none. */
static void verbs_table_may_come_again(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
    TRACE_IS(READS(1, 1002));
    (void)writes_ten(target, "a", STEP - 10); /* which needs no key that is not there */
    TRACE_IS("");
    keys_come(target, 1);
    TRACE_IS("mail\nwrite 1 0x103fffff6/501: source+0 10/1001 a told\n");
    mail_comes();
    established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
    TRACE_IS(READS(1, 1002));
    keys_come(target, 1);
    TRACE_IS("mail\n");
    mail_comes();
    TRACE_IS("");
    closes(target);
}

/* Goal: the pool's new steps are registered once, beside the core; a failure of that fails the target. */
static void verbs_write_waits_for_the_pool(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct leat_rmem_write *write = write_of("a", 0);
    piece(write, pool.base + 8, 10);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    (void)writes_ten(target, "b", 100);
    TRACE_IS("job\n");
    assert_int_equal(leat_os_verbs_local_key(&rmem, pool.base, &(uint32_t){0}, &(size_t){0}),
                     VERBS_KEY_LATER);
    job_ends();
    mail_comes();
    TRACE_IS(POOL_KEY "mail\nwrite 1 0x100000000/501: pool+8 10/1003 a told\n"
                      "write 1 0x100000064/501: source+0 10/1001 b told\n");
    pool.grown_bytes = 2 * STEP;
    write = write_of("c", 0);
    piece(write, pool.base + STEP, 10);
    plan(REGISTER, 0, ENOMEM);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    job_ends();
    TRACE_IS("job\nregister pool+67108864 67108864 write\nmail\n");
    mail_comes();
    leat_err rc = LEAT_E_NO_MEMORY;
    expect(WENT "a done %d\nb done %d\nc done %d\n"
                "t failed: %d the limit of locked memory is too low to register 64 MiB for RDMA: "
                "raise it (ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit file)\n",
           rc, rc, rc, rc);
    closes(target);
}

/* Goal: at most so many writes are in the device's hands; the others follow in order. */
static void verbs_window_is_bounded(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW; i++)
        (void)writes_ten(target, "w", 10 * (uint64_t)i);
    trace_begin();
    (void)writes_ten(target, "x", 2000);
    (void)writes_ten(target, "y", 3000);
    TRACE_IS("");
    done_is(target, &writes[0], "w done 0\nwrite 1 0x1000007d0/501: source+0 10/1001 x told\n");
    completes(verbs_of(target)->cq, &writes[1], IBV_WC_SUCCESS);
    done_is(target, &writes[2],
            "w done 0\nw done 0\nwrite 1 0x100000bb8/501: source+0 10/1001 y told\n");
    (void)writes_ten(target, "z", 4000);
    TRACE_IS("write 1 0x100000fa0/501: source+0 10/1001 z told\n");
    closes(target);
}

/* ---- failures ---- */

/* Goal: memory that nobody named is sent nowhere; a queue that is full, or of a pair that broke, fails the target. */
static void verbs_request_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct leat_rmem_target *target = opens(1);
        memset(played.made, 0, sizeof played.made);
        (void)writes_ten(target, "a", 0);
        trace_begin();
        struct leat_rmem_write *write = write_of("b", 0);
        piece(write, source - (i == 0), 10);
        if (i > 0) plan(POST, 0, i == 1 ? ENOMEM : EINVAL);
        assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
        TRACE_IS(i == 0 ? "mail\n" : "write 1 0x100000000/501: source+0 10/1001 b told\nmail\n");
        assert_true(target->failed);
        mail_comes();
        leat_err rc = i == 0 ? LEAT_E_INVALID : LEAT_E_CLOSED;
        expect(WENT "a done %d\nb done %d\nt failed: %d %s\n", rc, rc, rc,
               i == 0 ? "a write from memory that was not named by source()" : QUEUE_NO);
        closes(target);
        end(NULL);
        begin(NULL);
    }
}

/* Goal: what the device reports as failed, whatever the status, is never acked, nor is any write after it. */
static void verbs_write_that_fails_is_never_acked(void **state)
{
    (void)state;
    for (enum ibv_wc_status status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++) {
        struct leat_rmem_target *target = opens(2);
        struct ibv_cq *cq = verbs_of(target)->cq;
        const char *text = status == IBV_WC_RETRY_EXC_ERR ? "retry exceeded" : "another status";
        (void)writes_ten(target, "a", 0);
        (void)writes_ten(target, "b", STEP - 5);
        (void)writes_ten(target, "c", 0);
        trace_begin();
        completes(cq, &writes[0], IBV_WC_SUCCESS);
        if (status & 1) { /* the first of its two requests, of which a success would not be told */
            completes(cq, &writes[1], status);
            cq_of(cq)->wcs[1].wr_id = 0;
        }
        completes(cq, &writes[1], status & 1 ? IBV_WC_WR_FLUSH_ERR : status);
        completes(cq, &writes[2], IBV_WC_WR_FLUSH_ERR);
        ready(WCS);
        TRACE_IS("a done 0\nmail\n");
        assert_true(target->failed);
        ready(WCS); /* before the mail comes */
        disconnected(target);
        TRACE_IS("");
        mail_comes();
        leat_err rc = LEAT_E_CLOSED;
        expect(WENT "b done %d\nc done %d\n"
                    "t failed: %d the RDMA write failed: %s (fenced, or the peer is gone)\n",
               rc, rc, rc, text);
        closes(target);
        end(NULL);
        begin(NULL);
    }
}

/* Goal: a write that the device reports as done before its pair breaks counts, also if nobody has looked by then. */
static void verbs_last_look_is_at_all_completions(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct ibv_cq *cq = verbs_of(target)->cq;
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW; i++)
        (void)writes_ten(target, "w", 0);
    (void)writes_ten(target, "x", 0);
    established(target, VERBS_MAGIC, sizeof(struct verbs_welcome));
    disconnected(target);
    trace_begin();
    completes(cq, NULL, IBV_WC_SUCCESS);
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW; i++)
        completes(cq, &writes[i], IBV_WC_SUCCESS);
    mail_comes();
    assert_int_equal(done_count, LEAT_RMEM_WINDOW + 1);
    char expected[100];
    snprintf(expected, sizeof expected, "x done %d\nt failed: %d " GONE "\n", LEAT_E_CLOSED,
             LEAT_E_CLOSED);
    assert_non_null(strstr(trace_text, expected));
    assert_null(strstr(trace_text, "w done 1"));
    unsigned oks = 0;
    for (const char *at = trace_text; (at = strstr(at, "w done 0\n")) != NULL; at++)
        oks++;
    assert_int_equal(oks, LEAT_RMEM_WINDOW);
    while (played.mail_count > 0)
        mail_comes();
    closes(target);
}

/* Goal: a queue of completions that gives no answer fails the target: its writes do not wait for ever. */
static void verbs_device_that_gives_no_answer_fails(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct leat_rmem_target *target = opens(1);
        struct leat_rmem_write *write = writes_ten(target, "a", 0);
        (void)writes_ten(target, "b", 0);
        trace_begin();
        plan(i == 0 ? NOTIFY : POLL, i == 2, EIO);
        done_is(target, write,
                i == 0   ? "mail\na done 0\n"
                : i == 1 ? "mail\n"
                         : "a done 0\nmail\n");
        if (i == 1) cq_of(verbs_of(target)->cq)->count = 0; /* what was in it is lost */
        mail_comes();
        leat_err rc = LEAT_E_CLOSED;
        if (i == 1)
            expect(WENT "a done %d\nb done %d\nt failed: %d the RDMA device is gone\n", rc, rc, rc);
        if (i != 1) expect(WENT "b done %d\nt failed: %d the RDMA device is gone\n", rc, rc);
        closes(target);
        end(NULL);
        begin(NULL);
    }
}

/* Goal: also where only the last look sees that. */
static void verbs_detach_ends_the_writes_of_a_device_that_gives_no_answer(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    (void)writes_ten(target, "a", 0);
    leat_rmem_detach(target);
    trace_begin();
    plan(POLL, 0, EIO);
    mail_comes();
    expect("disconnect 2\nmail\nqp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\na done %d\n",
           LEAT_E_CLOSED);
    mail_comes();
    TRACE_IS("");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

/* ---- turns ---- */

static struct leat_rmem_target *feeding;

/* Writes again and completes at once, as a device within one machine does. */
static void feed(struct leat_rmem_write *write)
{
    trace_begin(); /* too many lines */
    assert_int_equal(leat_rmem_write(feeding, write), LEAT_OK);
    completes(verbs_of(feeding)->cq, write, IBV_WC_SUCCESS);
}

/* Goal: a device that completes as fast as it is written to does not keep the core: the rest is looked at later. */
static void verbs_looks_at_so_many_completions_in_a_turn(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct ibv_cq *cq = verbs_of(target)->cq;
    struct leat_rmem_write *write = writes_ten(target, "a", 0);
    feeding = target;
    when_done = feed;
    cq_of(cq)->armed = false; /* no event tells */
    played.due[played.due_count++] = cq;
    completes(cq, write, IBV_WC_SUCCESS);
    /* of 64 events, each is asked for before the device completes once more */
    ready(WCS);
    assert_int_equal(done_count, 64 * 128);
    assert_int_equal(played.due_count, 1);
    assert_int_equal(played.mail_count, 1);
    played.due_count = 0;
    mail_comes();
    assert_int_equal(done_count, 65 * 128);
    assert_int_equal(played.mail_count, 1);
    when_done = NULL;
    trace_begin();
    mail_comes();
    TRACE_IS("a done 0\n");
    assert_int_equal(played.mail_count, 0);
    unsigned polls = played.polls;
    leat_os_verbs_mail(verbs_of(target)); /* news of another kind */
    leat_os_verbs_mail(verbs_of(target));
    TRACE_IS("mail\n");
    mail_comes();
    assert_int_equal(played.polls, polls);
    assert_int_equal(played.mail_count, 0);
    closes(target);
}

/* Goal: completions are taken by the dozen, and 128 of them in a turn; the event that told them is one. */
static void verbs_takes_a_batch_of_completions(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct ibv_cq *cq = verbs_of(target)->cq;
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW - 1; i++)
        (void)writes_ten(target, "w", 0);
    trace_begin();
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW - 1; i++)
        completes(cq, &writes[i], IBV_WC_SUCCESS);
    unsigned polls = played.polls;
    ready(WCS);
    assert_int_equal(done_count, LEAT_RMEM_WINDOW - 1);
    assert_int_equal(played.mail_count, 0);
    assert_int_equal(played.polls, polls + 9);
    assert_int_equal(verbs_of(target)->in_flight, 0);
    closes(target);
}

/* ---- leaving ---- */

static struct leat_rmem_target *leaving;
static void detach_now(struct leat_rmem_write *write)
{
    trace("%s leaves\n", (const char *)write->owner);
    when_done = NULL;
    leat_rmem_detach(leaving);
}

/* Goal: writes under way end once each, after the device let go of their bytes; who left hears nothing else. */
static void verbs_detach_ends_each_write_once(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    (void)writes_ten(target, "a", 0);
    (void)writes_ten(target, "b", 0);
    (void)writes_ten(target, "c", 0);
    (void)writes_ten(target, "d", STEP);
    trace_begin();
    leaving = target;
    when_done = detach_now;
    completes(verbs_of(target)->cq, &writes[0], IBV_WC_SUCCESS);
    done_is(target, &writes[1], "a leaves\nmail\nb done 0\n");
    assert_int_equal(leat_rmem_write(target, write_of("e", 0)), LEAT_E_CLOSED);
    keys_come(target, 2); /* d is not sent any more */
    TRACE_IS("");
    completes(verbs_of(target)->cq, &writes[2], IBV_WC_WR_FLUSH_ERR);
    mail_comes();
    expect("disconnect 2\nmail\nqp 1 ends\ncq 2 ends\nregion 2 ends\nid 2 ends\nc done %d\n"
           "d done %d\n",
           LEAT_E_CLOSED, LEAT_E_CLOSED);
    mail_comes();
    TRACE_IS("");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    target = attached("t", 1);
    (void)writes_ten(target, "a", 0);
    leat_rmem_detach(target);
    trace_begin();
    mail_comes();
    expect("disconnect 3\nqp 2 ends\ncq 3 ends\nregion 3 ends\nid 3 ends\na done %d\n",
           LEAT_E_CANCELLED);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

/* Goal: the struct stays as long as the helper's thread has its job. */
static void verbs_detach_waits_for_the_helper(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    struct leat_rmem_write *write = write_of("a", 0);
    piece(write, pool.base, 10);
    assert_int_equal(leat_rmem_write(target, write), LEAT_OK);
    leat_rmem_detach(target);
    trace_begin();
    mail_comes();
    expect(WENT "a done %d\n", LEAT_E_CANCELLED);
    assert_true(leat_mem_bytes(LEAT_MEM_NET) > port_bytes);
    job_ends();
    TRACE_IS(POOL_KEY "mail\n");
    mail_comes();
    TRACE_IS("");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

static void detach_at_once(void *user, struct leat_rmem_target *target)
{
    trace("%s attached\n", (const char *)user);
    leat_rmem_detach(target);
}
static void detach_when_told(void *user, struct leat_rmem_target *target,
                             const struct leat_error *why)
{
    on_failed(user, target, why);
    leat_rmem_detach(target);
}

/* Goal: a target may leave inside each callback, and a target that failed is told once. */
static void verbs_detaches_inside_a_callback(void **state)
{
    (void)state;
    static const struct leat_rmem_target_handler hasty = {detach_at_once, detach_when_told};
    struct leat_rmem_target *target = opens(1);
    verbs_of(target)->handler = &hasty;
    disconnected(target);
    trace_begin();
    mail_comes();
    expect(WENT "t failed: %d " GONE "\nmail\n", LEAT_E_CLOSED);
    mail_comes();
    TRACE_IS("");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    target = attached("t", 1);
    disconnected(target);
    mail_comes();
    trace_begin();
    leat_os_verbs_mail(verbs_of(target)); /* late news */
    mail_comes();
    TRACE_IS("mail\n");
    leaves(target);
    target = connected("t");
    verbs_of(target)->handler = &hasty;
    keys_come(target, 1);
    TRACE_IS("t attached\nmail\n");
    mail_comes();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    port_closes();
}

/* Goal: at the world's end no callback runs, whatever the device has reported by then. */
static void verbs_port_closes_with_targets(void **state)
{
    (void)state;
    struct leat_rmem_target *target = opens(1);
    (void)writes_ten(target, "a", 0);
    (void)writes_ten(target, "b", STEP);
    struct leat_rmem_target *other = NULL;
    assert_int_equal(attach("u", &other), LEAT_OK);
    completes(verbs_of(target)->cq, &writes[0], IBV_WC_SUCCESS);
    unsigned polls = played.polls;
    trace_begin();
    leat_os_verbs_actor_close(&rmem, &actor);
    TRACE_IS("watch 101 ends\n" WENT "id 3 ends\nwatch 102 ends\nwatch 200 ends\ncompletions end\n"
             "channel 102 ends\n");
    assert_int_equal(played.polls, polls);
    assert_int_equal(done_count, 0);
    port_closes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERBS_TEST(verbs_write_is_a_request),
        VERBS_TEST(verbs_write_across_steps_is_two_requests),
        VERBS_TEST(verbs_write_comes_from_several_regions),
        VERBS_TEST(verbs_write_waits_for_keys),
        VERBS_TEST(verbs_write_waits_for_the_key_of_each_step),
        VERBS_TEST(verbs_table_may_come_again),
        VERBS_TEST(verbs_write_waits_for_the_pool),
        VERBS_TEST(verbs_window_is_bounded),
        VERBS_TEST(verbs_request_is_refused),
        VERBS_TEST(verbs_write_that_fails_is_never_acked),
        VERBS_TEST(verbs_last_look_is_at_all_completions),
        VERBS_TEST(verbs_device_that_gives_no_answer_fails),
        VERBS_TEST(verbs_detach_ends_the_writes_of_a_device_that_gives_no_answer),
        VERBS_TEST(verbs_looks_at_so_many_completions_in_a_turn),
        VERBS_TEST(verbs_takes_a_batch_of_completions),
        VERBS_TEST(verbs_detach_ends_each_write_once),
        VERBS_TEST(verbs_detach_waits_for_the_helper),
        VERBS_TEST(verbs_detaches_inside_a_callback),
        VERBS_TEST(verbs_port_closes_with_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
