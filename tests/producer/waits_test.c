/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer's engine waits for: streams that were deleted while appends are under way, producer ids that can't be
 * read, frames that have not come back, batches that go on filling. On the rig of steps_test.c. */
#include "tests/producer/steps_rig.h"

#include <string.h>

/* ---- streams ---- */

/* Goal: a stream is reported as deleted while an append to one of its streamlets is under way: the producer looks the
 * stream up again when that append has come back, and not before; records that are added meanwhile wait. */
static void waits_for_what_is_under_way_to_a_stream_that_is_gone(void **state)
{
    (void)state;
    for (unsigned replaced = 0; replaced < 2; replaced++) {
        steps_ready(1, 2);
        add(1, 1, 0);
        add(2, 2, 1);
        steps_turn(1);
        steps_answer(all_ok, 0, NULL);
        steps_turn(1);
        add(3, 3, 0);
        steps_turn(1);
        steps.did[0] = 0;
        /* That to streamlet 1 breaks; that to streamlet 0 stays. */
        struct leat_request *request = steps.appends[0];
        memmove(&steps.appends[0], &steps.appends[1],
                --steps.append_count * sizeof steps.appends[0]);
        request->on_done(request, LEAT_E_CLOSED, NULL,
                         &(struct leat_error){.code = LEAT_E_CLOSED, .text = "it broke"});
        steps_turn(1000);
        steps_did("lookup s;");
        if (replaced)
            steps_known(6, 2, 0);
        else
            steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
        steps_did("");
        if (replaced) add(4, 4, -1); /* else what came back is reason enough */
        steps_turn(1);
        assert_true(look_us() <= PRODUCER_BUSY_LOOK_US && look_us() > PRODUCER_BUSY_LOOK_US - 1100);
        steps_turn(2000);
        steps_did("");
        steps_answer(all_ok, 7, NULL);
        steps_turn(1);
        steps_did("#3 at 7;lookup s;");
        steps_known(6, 2, 0);
        steps_did("#2 UNKNOWN_STREAM 'the stream was deleted';");
        steps_turn(1);
        assert_int_equal(strncmp(steps.did, replaced ? "append 6/" : "", 9 * replaced), 0);
        steps.did[0] = 0;
        if (replaced) steps_answer(all_ok, 7, NULL);
        steps_end();
        steps.did[0] = 0;
    }
}

/* Goal: an idle stream of which one streamlet was never used is refused like others; and one with a single append
 * of unknown fate goes on under the next epoch. */
static void waits_for_no_streamlet_that_was_never_used(void **state)
{
    (void)state;
    for (unsigned unknown = 0; unknown < 2; unknown++) {
        steps_ready(1, 3);
        add(1, 1, 2);
        steps_turn(1);
        if (unknown)
            steps_append_fails(LEAT_E_CLOSED, "it broke");
        else
            steps_answer(all_ok, 0, NULL);
        steps_turn(1000);
        if (!unknown) leat_producer_stream_lookup(steps.engine->streams[0]);
        steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
        assert_int_equal(steps_add(2, 2), LEAT_E_UNKNOWN_STREAM);
        steps_turn(1000000);
        steps.did[0] = 0;
        add(2, 2, 2);
        steps_turn(1);
        steps_did("lookup s;");
        steps_known(5, 3, 0);
        steps_turn(1);
        steps_did(unknown ? "id? 100.3;" : "append 5/2/0@44: 100.3+1#2;");
        steps_end();
        steps.did[0] = 0;
    }
}

/* Goal: pieces of a batch that was cut stay for their streamlet, also in the stream that comes after theirs. */
static void waits_of_pieces_are_for_their_streamlet(void **state)
{
    (void)state;
    steps_ready(8, 2);
    steps.engine->streams[0]->gathered->batch_bytes_max = 61 + 11;
    add(1, 8, 1);
    steps_turn(1);
    steps_did("append 5/1/0@42: 100.3+0#1 100.3+1#2 100.3+2#3 100.3+3#4 100.3+4#5;");
    leat_producer_log_expire(steps.engine->streams[0]->own[1],
                             steps.now_us); /* they are as old as it was */
    steps_did("");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_known(6, 2, 61 + 11);
    steps.did[0] = 0;
    steps_turn(1);
    steps_did("append 6/1/0@42: 100.3+0#6 100.3+1#7 100.3+2#8;");
    steps_answer(all_ok, 0, NULL);
    steps_end();
}

/* Goal: the producer checks the size of each of five batches that may go next, and cuts only the batches that are too
 * large. */
static void waits_of_five_are_looked_at(void **state)
{
    (void)state;
    steps_ready(0, 1);
    uint32_t limit = 61 + 11;
    steps.engine->streams[0]->gathered->batch_bytes_max = 0;
    for (uint32_t n = 1; n <= 4; n++) {
        add(n, n, -1);
        leat_producer_engine_flush(steps.engine);
    }
    add(5, 6, -1);
    leat_producer_engine_flush(steps.engine);
    steps.engine->streams[0]->gathered->batch_bytes_max = limit;
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4 100.3+5#5;");
    uint64_t bytes = steps.engine->gather->big_bytes;
    assert_true(bytes >= 2 * limit && bytes < 3 * limit + 100);
    steps_answer(all_ok, 0, NULL);
    steps_turn(1);
    steps_answer(all_ok, 0, NULL);
    steps_end();
}

/* ---- ids ---- */

static void id_bytes(const uint8_t *bytes, size_t count)
{
    struct leat_request *request = steps.id;
    struct leat_frame frame = {.control = bytes, .control_bytes = (uint32_t)count};
    assert_non_null(request);
    steps.id = NULL;
    request->on_done(request, LEAT_OK, &frame, &(struct leat_error){.code = LEAT_OK});
}

/* Goal: an id that is cut short, has bytes behind it, or is none, is asked for again after the pause, and then the
 * engine sleeps. */
static void waits_for_an_id_that_can_be_read(void **state)
{
    (void)state;
    static const uint8_t cut[] = {0x92, 100}, few[] = {0x91, 100, 3}, none[] = {0x90},
                         behind[] = {0x92, 100, 3, 9}, more[] = {0x93, 100, 3, 9};
    static const struct {
        const uint8_t *bytes;
        size_t count;
        bool good;
    } rows[] = {
        {cut, 2, false}, {few, 3, false}, {none, 1, false}, {behind, 4, false}, {more, 4, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        steps_begin(1);
        add(1, 1, -1);
        steps_turn(1);
        steps_known(5, 1, 0);
        steps_turn(1);
        steps.did[0] = 0;
        id_bytes(rows[i].bytes, rows[i].count);
        steps_turn(1);
        steps_did(rows[i].good ? "append 5/0/0@40: 100.3+0#1;" : "");
        if (!rows[i].good) {
            assert_int_equal(look_us(), 999);
            steps_turn(999);
            steps_did("id? -1.-1;");
            assert_int_equal(look_us(), UINT64_MAX);
        }
        steps_end();
        steps.did[0] = 0;
    }
}

/* Goal: a record that waits for a producer id longer than its time fails with a timeout, and the report has its log;
 * the end takes the request for the id back, once. */
static void waits_for_an_id_as_long_as_its_time(void **state)
{
    (void)state;
    steps_begin(1);
    told_count = 0;
    add_told(-1, false);
    steps_turn(1);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("lookup s;id? -1.-1;");
    leat_producer_stream_expire(steps.engine->streams[0], steps.now_us - 2 + STEPS_TIMEOUT_US - 1);
    assert_int_equal(told_count, 0);
    leat_producer_stream_expire(steps.engine->streams[0], steps.now_us - 2 + STEPS_TIMEOUT_US);
    assert_int_equal(told_count, 1);
    assert_true(leat_log_ref_equal(told_of, (struct leat_log_ref){5, 0, 0}));
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_did("no id;");
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_end();
    steps_did("");
}

/* ---- time ---- */

/* Goal: the engine comes round for what is due first: of batches that are open, and of logs that are tried again. */
static void waits_for_what_is_due_first(void **state)
{
    (void)state;
    steps_ready(0, 2);
    steps.engine->options.linger_us = 1000;
    add(1, 1, 0);
    steps_turn(400);
    add(2, 2, 1);
    steps_turn(100);
    assert_int_equal(look_us(), 500);
    steps_end();
    steps.did[0] = 0;
    static const leat_err again[] = {LEAT_E_AGAIN};
    steps_ready(1, 2);
    add(1, 1, 0);
    add(2, 2, 1);
    steps_turn(1);
    struct leat_request *first = steps.appends[0];
    steps.appends[0] = steps.appends[1]; /* that to streamlet 1 is answered first, twice */
    steps.appends[1] = first;
    steps_answer(again, 0, NULL);
    steps_turn(1000);
    steps_answer(again, 0, NULL); /* streamlet 0 */
    steps_answer(again, 0, NULL);
    steps_turn(1);
    assert_int_equal(look_us(), 999);
    steps_end();
    steps.did[0] = 0;
}

/* Goal: a record that has failed in a turn is no longer open at the end of the turn. */
static void waits_for_nothing_that_has_failed(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 1, -1);
    steps_turn(1);
    steps_answer((const leat_err[]){LEAT_E_INVALID}, 0, NULL);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 1);
    steps_turn(1000);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
    steps_end();
    steps.did[0] = 0;
    steps_begin(1); /* and nothing at all */
    steps_end();
}

/* Goal: a call that waits until a stream is known is woken once, and not again when the first batch comes back. */
static void waits_until_a_stream_is_known_are_over_once(void **state)
{
    (void)state;
    unsigned told = 0;
    steps_begin(1);
    leat_producer_engine_on_room(steps.engine, count_call, &told);
    add(1, 1, -1);
    assert_int_equal(steps_add(2, 1), LEAT_E_AGAIN);
    steps_turn(1);
    assert_int_equal(told, 0);
    steps_known(5, 2, 0);
    steps_turn(1);
    assert_int_equal(told, 1);
    steps_id(100, 3);
    steps_turn(1);
    steps_answer(all_ok, 0, NULL);
    steps_turn(1);
    steps_turn(1);
    assert_int_equal(told, 1);
    steps_end();
}

/* Goal: a record that was reported as timed out is not sent again, though it was never sent. */
static void waits_that_are_over_are_not_sent_again(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 2, -1);
    steps_turn(1);
    steps.unsent = true;
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps.unsent = false;
    steps.did[0] = 0;
    leat_producer_log_expire(steps.engine->streams[0]->own[0], steps.now_us + STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms: it broke';#2 TIMEOUT 'not acked within 500 ms: "
              "it broke';");
    add(3, 3, -1);
    steps_turn(1000);
    steps_did("lookup s;");
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_id(100, 4);
    steps_turn(1);
    steps_did("id? 100.3;append 5/0/0@40: 100.4+0#3;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* ---- frames ---- */

/* Goal: after a failure nothing is sent, and the engine does not come round, before all frames have come back. */
static void waits_until_all_frames_have_come_back(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 1, -1);
    steps_turn(1);
    add(2, 5, -1);
    steps_turn(1);
    steps_did(
        "append 5/0/0@40: 100.3+1#1;append 5/0/0@40: 100.3+2#2 100.3+3#3 100.3+4#4 100.3+5#5;");
    steps_append_fails(LEAT_E_NO_MEMORY, "no");
    leat_timer_stop(&steps.timers, &steps.engine->look);
    steps_turn(1);
    assert_int_equal(look_us(), PRODUCER_BUSY_LOOK_US);
    steps_turn(5000);
    steps_did("");
    steps_append_fails(LEAT_E_NO_MEMORY, "no");
    steps_turn(5000);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4 100.3+5#5;");
    steps.withdraws = true;
    assert_true(leat_producer_engine_stop(steps.engine));
    assert_int_equal(steps.engine->streams[0]->own[0]->requests_out,
                     0); /* nor for one that is taken back */
    steps_end();
    steps_ready(1, 1);
    add(1, 1, -1);
    steps_turn(1);
    add(2, 5, -1);
    steps_turn(1);
    steps.did[0] = 0;
    steps_answer((const leat_err[]){LEAT_E_SEQUENCE_GAP}, 0, NULL);
    steps_turn(5000);
    steps_did(""); /* no epoch is left with an append of it under way */
    steps_append_fails(LEAT_E_NO_MEMORY, "no");
    steps_turn(5000);
    steps_did("id? 100.3;");
    steps_end();
    steps.did[0] = 0;
}

/* Goal: after a batch that is known not to be in the log, no later batch of its epoch is in the log, whatever the fate
 * of the later batches was before: only the first batch is unknown. */
static void waits_are_over_behind_a_hole(void **state)
{
    (void)state;
    steps_ready(1, 1);
    add(1, 3, -1);
    steps_turn(1);
    steps.did[0] = 0;
    steps_answer((const leat_err[]){LEAT_E_AGAIN, LEAT_E_INVALID, LEAT_E_AGAIN}, 0, "x");
    steps_turn(1000);
    steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3;");
    steps_answer((const leat_err[]){LEAT_E_SEQUENCE_GAP, LEAT_E_SEQUENCE_GAP, LEAT_E_SEQUENCE_GAP},
                 0, "gap");
    steps_turn(2000);
    steps_did("#1 TIMEOUT 'whether it was appended is unknown: gap';id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#2 100.4+1#3;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
    steps.did[0] = 0;
    /* Without one each is unknown by what it was told itself. */
    static const leat_err again[] = {LEAT_E_AGAIN, LEAT_E_AGAIN},
                          then[] = {LEAT_E_SEQUENCE_GAP, LEAT_E_AGAIN};
    steps_ready(1, 1);
    add(1, 2, -1);
    steps_turn(1);
    steps_answer(again, 0, "x");
    steps_turn(1000);
    steps.did[0] = 0;
    steps_answer(then, 0, "gap");
    steps_turn(2000);
    steps_did("#1 TIMEOUT 'whether it was appended is unknown: gap';#2 AGAIN 'whether it was "
              "appended is unknown: gap';");
    steps_end();
}

/* Goal: a log has enough with a whole frame beside what is under way, and its streamlet's next batch stays open
 * from then on, also that of streamlet 0; a flush sends what a linger holds. */
static void waits_with_the_next_batch_when_there_is_enough(void **state)
{
    (void)state;
    for (int32_t streamlet = 0; streamlet < 2; streamlet++) {
        steps_ready(1, 2);
        add(1, 2, streamlet);
        steps_turn(1);
        const struct leat_producer_log *log = steps.engine->streams[0]->own[streamlet];
        add(3, 5, streamlet);
        steps_turn(1);
        for (uint32_t n = 6; n <= 10; n++) {
            assert_int_equal(leat_producer_log_has_enough(log), false);
            add(n, n, streamlet);
            steps_turn(1);
        }
        assert_true(leat_producer_log_has_enough(log));
        add(14, 14, streamlet);
        steps_turn(1);
        assert_true(leat_producer_log_has_enough(log)); /* and with more than that, too */
        steps.engine->gather->batch_records = 10;
        for (uint32_t n = 11; n <= 13; n++) {
            add(n, n, streamlet);
            steps_turn(1);
        }
        assert_false(leat_list_empty(&steps.engine->gather->held));
        while (steps.append_count) {
            steps_answer(all_ok, 0, NULL);
            steps.did[0] = 0;
            steps_turn(1);
        }
        assert_int_equal(steps.engine->stats.batches_acked, 1 + 11 + 1); /* the three are one */
        steps_end();
        steps.did[0] = 0;
    }
    steps_ready(0, 1);
    steps.engine->options.linger_us = 1000000;
    add(1, 1, -1);
    steps_turn(1);
    steps_did("");
    leat_producer_engine_flush(steps.engine);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waits_for_what_is_under_way_to_a_stream_that_is_gone),
        TEST(waits_for_no_streamlet_that_was_never_used),
        TEST(waits_of_pieces_are_for_their_streamlet),
        TEST(waits_of_five_are_looked_at),
        TEST(waits_for_an_id_that_can_be_read),
        TEST(waits_for_an_id_as_long_as_its_time),
        TEST(waits_for_what_is_due_first),
        TEST(waits_for_nothing_that_has_failed),
        TEST(waits_until_a_stream_is_known_are_over_once),
        TEST(waits_that_are_over_are_not_sent_again),
        TEST(waits_until_all_frames_have_come_back),
        TEST(waits_are_over_behind_a_hole),
        TEST(waits_with_the_next_batch_when_there_is_enough),
    };
    return cmocka_run_group_tests_name("producer waits", tests, NULL, NULL);
}
