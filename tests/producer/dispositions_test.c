/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of records where several things go wrong at once: a time that is over with some acked, answers that are
 * too short, refusals after an attempt of unknown fate, memory that is missing. On the rig of steps_test.c. */
#include "tests/producer/steps_rig.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Goal: acked batches behind a batch that is late are not sent again with it, and are not reported as late when their
 * time is over: they are reported as acked when it is known what became of those before them. */
static void dispositions_acked_batches_are_never_late(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 3, -1);
    steps_turn(1);
    steps.did[0] = 0;
    add(4, 4, -1);
    steps_answer((const leat_err[]){LEAT_E_AGAIN, LEAT_OK, LEAT_OK}, 10, "not now");
    steps_turn(1000);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+4#4;");
    steps_turn(STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms: not now';"
              "#4 TIMEOUT 'not acked within 500 ms: not now';");
    steps_answer(all_ok, 20, NULL);
    steps_did("#2 at 11;#3 at 12;");
    steps_turn(1);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
    steps_end();
}

/* Goal: a log whose only batch was reported as late leaves its epoch: the batch is not sent again, and the next record
 * goes under the next epoch. */
static void dispositions_late_batch_alone_ends_its_epoch(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 1, -1);
    steps_turn(1);
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps.did[0] = 0;
    leat_producer_log_expire(steps.engine->streams[0]->own[0], steps.now_us + STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms: it broke';");
    add(2, 2, -1);
    steps_turn(1000);
    steps_did("lookup s;");
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("id? 100.3;");
    steps_id_cut(100, 4); /* it is asked for again */
    assert_true(steps.engine->id_paused);
    assert_true(steps.engine->id == 100 && steps.engine->epoch == 3);
    steps_turn(200000);
    steps_did("id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#2;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
    steps.did[0] = 0;
}

/* Goal: a batch that may be there, behind a batch that failed for good, is not sent again: the failure says nothing
 * about what the log has, and the batch might be appended twice. */
static void dispositions_batch_that_may_be_there_behind_a_failure_fails(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 2, -1);
    steps_turn(1);
    steps.did[0] = 0;
    steps_answer((const leat_err[]){LEAT_E_INTERNAL, LEAT_E_TIMEOUT}, 10, "it broke");
    steps_turn(1000);
    steps_did("#1 INTERNAL 'it broke';#2 INTERNAL 'it broke';");
    steps_end();
    steps.did[0] = 0;
}

/* Goal: an answer of fewer rows than batches says nothing, also where bytes follow that look like rows: all its batches
 * are sent again as they were. */
static void dispositions_answer_of_too_few_rows_says_nothing(void **state)
{
    (void)state;
    static const uint8_t few[] = {0x91, 0x92, 0, 10, 0x92, 0, 11};
    steps_ready(1, 1);
    add(1, 2, -1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2;");
    steps_answer_bytes(few, sizeof few);
    steps_did("");
    assert_string_equal(steps.engine->stats.last_text, "the server's answer could not be read");
    steps_turn(1000);
    steps_did("lookup s;");
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2;");
    steps_answer(all_ok, 10, NULL);
    steps_did("#1 at 10;#2 at 11;");
    steps_end();
}

/* Goal: a batch that is refused as too large is not cut and sent under another epoch if an earlier attempt may be in
 * the log: its records would be there twice. */
static void dispositions_batch_that_may_be_there_is_not_cut(void **state)
{
    (void)state;
    steps_ready(2, 1);
    add(1, 2, -1);
    steps_turn(1);
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1,2;lookup s;append 5/0/0@40: 100.3+1#1,2;");
    steps_answer((const leat_err[]){LEAT_E_TOO_LARGE}, 0, "too much");
    steps_turn(2000);
    steps_did("lookup s;");
    steps_known(5, 1, 61 + 12);
    steps_turn(1);
    steps_did("#1 TIMEOUT 'whether it was appended is unknown: too much';"
              "#2 TIMEOUT 'whether it was appended is unknown: too much';");
    steps_end();
    steps.did[0] = 0;
}

/* Goal: a stream that was refused once, and is known since, is not looked at without a pause while an append keeps the
 * producer from looking it up. */
static void dispositions_old_refusal_does_not_hurry(void **state)
{
    (void)state;
    steps_begin(1);
    add(1, 1, -1);
    steps_turn(1);
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    steps_turn(1000000);
    add(2, 2, -1);
    steps_turn(1);
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_id(100, 3);
    steps_turn(1);
    steps_answer(all_ok, 0, NULL);
    steps_turn(2000000);
    steps.did[0] = 0;
    add(3, 3, 0);
    add(4, 4, 1);
    steps_turn(1);
    struct leat_request *request = steps.appends[0];
    steps.appends[0] = steps.appends[1];
    steps.appends[1] = request;
    steps_append_fails(LEAT_E_CLOSED, "it broke"); /* the other stays */
    steps.did[0] = 0;
    steps_turn(1000);
    steps_did("lookup s;");
    add(5, 5, -1);
    steps_known(6, 2, 0);
    steps_turn(1);
    steps_did("");
    assert_true(leat_timer_armed(&steps.engine->look));
    assert_in_range(steps.engine->look.at_us - steps.now_us, PRODUCER_BUSY_LOOK_US - 2000,
                    PRODUCER_BUSY_LOOK_US);
    steps_answer(all_ok, 7, NULL);
    steps_end();
    steps.did[0] = 0;
}

/* Two streamlets, each with an append under way; the one to streamlet 1 is the older one. */
static void two_under_way(void)
{
    steps_ready(1, 2);
    add(1, 1, 0);
    add(2, 2, 1);
    steps_turn(1);
    struct leat_request *first = steps.appends[0];
    steps.appends[0] = steps.appends[1];
    steps.appends[1] = first;
    steps.did[0] = 0;
}

/* Goal: a lookup that failed for a while is repeated, though an append to another streamlet is under way. */
static void dispositions_lookup_does_not_wait_for_appends(void **state)
{
    (void)state;
    two_under_way();
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_did("lookup s;");
    steps_lookup_fails(LEAT_E_TIMEOUT, "no answer");
    steps_turn(1);
    steps_did("lookup s;");
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_did("append 5/1/0@42: 100.3+0#2;");
    steps_end();
    steps.did[0] = 0;
}

/* Goal: a log of which nothing is in question keeps its epoch when its stream is refused and comes back. */
static void dispositions_log_without_a_question_keeps_its_epoch(void **state)
{
    (void)state;
    two_under_way();
    steps_append_fails(LEAT_E_CLOSED, "it broke"); /* of streamlet 1 */
    steps_answer(all_ok, 10, NULL);
    steps_turn(1000);
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    steps_did("#1 at 10;lookup s;#2 UNKNOWN_STREAM 'the stream was deleted';");
    steps_turn(1000000);
    (void)steps_add(3, 0);
    add(3, 3, 0);
    steps_turn(1);
    steps_known(5, 2, 0);
    steps_turn(1);
    assert_non_null(strstr(steps.did, "lookup s;append 5/0/"));
    assert_null(steps.id);
    steps_end();
    steps.did[0] = 0;
}

/* Goal: an id is asked for when a record needs one, and no more when the record's time is over. */
static void dispositions_id_is_for_records(void **state)
{
    (void)state;
    steps_begin(1);
    add(1, 1, -1);
    steps_turn(1);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("lookup s;id? -1.-1;");
    assert_int_equal(leat_producer_engine_stats(steps.engine)->ids_asked, 1);
    steps_id_fails(LEAT_E_AGAIN, "not now");
    leat_producer_stream_expire(steps.engine->streams[0], steps.now_us + STEPS_TIMEOUT_US);
    steps_turn(100000);
    steps_turn(100000);
    steps_did("#1 TIMEOUT 'could not be sent within 500 ms: not now';");
    add(2, 2, -1);
    steps_turn(1);
    steps_turn(1);
    steps_did("id? -1.-1;");
    assert_int_equal(leat_producer_engine_stats(steps.engine)->ids_asked, 2);
    steps_end();
    steps.did[0] = 0;
}

/* Goal: a batch that goes on under the next epoch is not judged by the refusal of its attempt before, when those in
 * front of it are given up about. Method: three batches are refused. The second is cut into five, which fill the
 * window, and whose time is over before the third's. */
static void dispositions_batch_is_not_judged_by_an_older_attempt(void **state)
{
    (void)state;
    steps_ready(5, 1);
    add(1, 10, -1);
    steps.now_us += 1000;
    add(11, 11, -1);
    leat_producer_engine_flush(steps.engine);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1,2,3,4,5 100.3+6#6,7,8,9,10 100.3+11#11;");
    steps_answer((const leat_err[]){LEAT_E_INVALID, LEAT_E_INVALID, LEAT_E_INVALID}, 0, "so it is");
    steps_turn(1000);
    assert_non_null(strstr(steps.did, "#5 INVALID 'so it is';id? 100.3;"));
    steps.did[0] = 0;
    steps.engine->streams[0]->gathered->batch_bytes_max = steps.stream.settings.batch_bytes_max =
        61 + 12; /* one record */
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#6 100.4+1#7 100.4+2#8 100.4+3#9 100.4+4#10;");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    uint64_t later_us = steps.now_us + STEPS_TIMEOUT_US - 1500; /* the third is 1,000 us younger */
    leat_producer_log_expire(steps.engine->streams[0]->own[0], later_us);
    assert_non_null(strstr(steps.did, "#10 TIMEOUT"));
    assert_null(strstr(steps.did, "#11"));
    steps.did[0] = 0;
    steps_turn(2000);
    steps_did("lookup s;");
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("id? 100.4;");
    steps_id(100, 5);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.5+0#11;");
    steps_end();
    steps.did[0] = 0;
}

static bool no_memory(void *arg)
{
    (void)arg;
    return true;
}

/* Goal: a record for whose stream there is no memory fails without a log; one for whose log there is none fails with
 * its streamlet. */
static void dispositions_without_memory_name_what_is_known(void **state)
{
    (void)state;
    steps_begin(1);
    told_count = 0;
    add_told(-1, false);
    leat_mem_ask(no_memory, NULL);
    steps_turn(1);
    leat_mem_ask(NULL, NULL);
    assert_int_equal(told_count, 1);
    assert_true(leat_log_ref_equal(told_of, (struct leat_log_ref){0, 0, 0}));
    add(1, 1, -1);
    steps_turn(1);
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_id(100, 3);
    steps_turn(1);
    steps_answer(all_ok, 0, NULL);
    steps_turn(1);
    add_told(1, false);
    leat_mem_ask(no_memory, NULL);
    steps_turn(1);
    leat_mem_ask(NULL, NULL);
    assert_int_equal(told_count, 2);
    assert_true(leat_log_ref_equal(told_of, (struct leat_log_ref){5, 1, 0}));
    steps_end();
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dispositions_acked_batches_are_never_late),
        TEST(dispositions_late_batch_alone_ends_its_epoch),
        TEST(dispositions_batch_that_may_be_there_behind_a_failure_fails),
        TEST(dispositions_answer_of_too_few_rows_says_nothing),
        TEST(dispositions_batch_that_may_be_there_is_not_cut),
        TEST(dispositions_old_refusal_does_not_hurry),
        TEST(dispositions_lookup_does_not_wait_for_appends),
        TEST(dispositions_log_without_a_question_keeps_its_epoch),
        TEST(dispositions_id_is_for_records),
        TEST(dispositions_batch_is_not_judged_by_an_older_attempt),
        TEST(dispositions_without_memory_name_what_is_known),
    };
    return cmocka_run_group_tests_name("producer fates", tests, NULL, NULL);
}
