/* SPDX-License-Identifier: Apache-2.0 */
/* Records before an offset that are given up, by trim.c alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/front_logs.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

static struct {
    struct leat_partition partition;
    bool there;
    leat_err absent, refuses, name;
    struct leat_log_trim *trim;
} it;

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, 0);
    assert_true(leat_log_ref_equal(ref, it.partition.ref));
    return it.there ? &it.partition : NULL;
}
leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, 0);
    assert_true(leat_log_ref_equal(ref, it.partition.ref));
    return it.absent;
}
const char *leat_partition_absent_words(leat_err absent)
{
    return leat_err_name(absent);
}
leat_err leat_log_trim_before(struct leat_log *log, struct leat_log_trim *trim,
                              struct leat_error *error)
{
    assert_ptr_equal(log, &it);
    said("trim before %llu", (unsigned long long)trim->before);
    assert_int_equal(trim->first_offset, 0);
    it.trim = trim;
    return it.refuses == LEAT_OK ? LEAT_OK : leat_error_set(error, it.refuses, "past the end");
}
leat_err leat_stream_name_allowed(struct leat_msg_string name, struct leat_error *error)
{
    assert_int_equal(name.bytes, 6);
    return it.name == LEAT_OK ? LEAT_OK : leat_error_set(error, it.name, "the server's own");
}

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    calls.log = (struct leat_log_ref){ALONE_STREAM, 1, 0};
    it.there = true;
    it.partition = (struct leat_partition){.ref = calls.log, .log = (void *)&it};
}

static void end(void)
{
    assert_int_equal(calls.open, 0);
    alone_end();
}

static void asks(void)
{
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_trim_write(&writer, &(struct leat_msg_trim){{"orders", 6}, 1, 0, 77});
    alone_call(leat_call_stream_trim, &writer);
}

static void ends(leat_err rc)
{
    it.trim->first_offset = 70;
    it.trim->on_done(it.trim, rc);
}

static void records_are_given_up(void **state)
{
    (void)state;
    begin();
    asks();
    assert_said("find orders/1/0\nmail to 0\n");
    alone_deliver();
    assert_said("trim before 77\n");
    ends(LEAT_OK);
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("answer\n");
    struct leat_msg_reader reader;
    struct leat_msg_trimmed told;
    alone_answer(&reader);
    leat_msg_trimmed_read(&reader, &told);
    assert_int_equal(told.first_offset, 70);
    end();
}

static void trim_that_fails_says_why(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "refuse STARTING: STARTING\n",
        "refuse STARTING: STARTING\n",
        "refuse OFFSET_OUT_OF_RANGE: past the end\n",
        "refuse DISK: the disk failed a read, write or flush\n",
    };
    for (unsigned i = 0; i < 4; i++) {
        begin();
        it.absent = LEAT_E_STARTING;
        it.there = i != 0;
        it.partition.state = i == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        if (i == 2) it.refuses = LEAT_E_OFFSET_OUT_OF_RANGE;
        asks();
        alone_deliver();
        if (i == 3) ends(LEAT_E_DISK);
        assert_said(i < 2 ? "find orders/1/0\nmail to 0\nmail to 1\n"
                          : "find orders/1/0\nmail to 0\ntrim before 77\nmail to 1\n");
        alone_deliver();
        assert_said(expected[i]);
        end();
    }
}

static void call_is_checked(void **state)
{
    (void)state;
    begin();
    uint8_t bytes[16];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_u64(&writer, 7);
    alone_call(leat_call_stream_trim, &writer);
    assert_said("refuse INVALID: the control body of stream trim is not [stream, streamlet, log, "
                "before]\n");
    it.name = LEAT_E_INVALID;
    asks();
    assert_said("refuse INVALID: the server's own\n");
    it.name = LEAT_OK;
    calls.not_kept = true;
    asks();
    assert_said("refuse TOO_LARGE: too long\n");
    calls.not_kept = false, calls.none = true;
    asks();
    assert_said("");
    calls.none = false, calls.no_log = true; /* its stream is looked for */
    asks();
    assert_said("find orders/1/0\n");
    calls.no_log = false;
    calls.seek->on_again(calls.seek);
    assert_said("find orders/1/0\nmail to 0\n");
    alone_deliver();
    ends(LEAT_OK);
    alone_deliver();
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_given_up),
        cmocka_unit_test(trim_that_fails_says_why),
        cmocka_unit_test(call_is_checked),
    };
    return cmocka_run_group_tests_name("broker trim", tests, NULL, NULL);
}
