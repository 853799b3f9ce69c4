/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's engine, turn by turn: the log after answers that differ, the content of a frame, lookups that are
 * repeated and when, callers that are told of room, and what remains at an end. On the rig of steps_test.c. */
#include "tests/producer/steps_rig.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- answers ---- */

/* Goal: after a batch that is refused for good, no later batch of its epoch is in the log, whatever code the later
 * batches got. */
static void turns_refusal_says_that_those_behind_are_not_there(void **state)
{
    (void)state;
    three_under_way();
    steps_answer((const leat_err[]){LEAT_E_INVALID, LEAT_E_AGAIN, LEAT_E_DISK}, 10, "x");
    steps_turn(1000);
    steps_did("#1 INVALID 'x';id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#2 100.4+1#3;");
    steps_answer((const leat_err[]){LEAT_E_SEQUENCE_GAP, LEAT_E_SEQUENCE_GAP}, 0, NULL);
    steps_turn(
        2000); /* and so it goes again, as neither may be there by an attempt of this epoch */
    steps_id(100, 5);
    steps_turn(1);
    steps_did("id? 100.4;append 5/0/0@40: 100.5+0#2 100.5+1#3;");
    steps_answer(all_ok, 7, NULL);
    steps_did("#2 at 7;#3 at 8;");
    steps_end();
}

/* Goal: an answer to the very first sequence of an epoch counts like the answer to any other sequence: a gap, and a
 * timeout. */
static void turns_first_sequence_is_one_like_others(void **state)
{
    (void)state;
    first_under_way();
    steps_answer((const leat_err[]){LEAT_E_SEQUENCE_GAP}, 0, NULL);
    steps_turn(1000);
    steps_did("id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#1;");
    steps_answer(all_ok, 9, NULL);
    steps_did("#1 at 9;");
    steps_end();

    first_under_way();
    add(2, 4, -1);
    steps_turn(1);
    steps_did(""); /* it is none of those that wait for the window to be filled */
    steps_answer(all_ok, 1, NULL);
    steps_turn(1);
    steps_did("#1 at 1;append 5/0/0@40: 100.3+1#2 100.3+2#3 100.3+3#4;");
    steps_answer(all_ok, 2, NULL);
    steps_end();
    steps.did[0] = 0;

    first_under_way();
    struct leat_producer_log *log = steps.engine->streams[0]->own[0];
    leat_producer_log_expire(log, steps.now_us + STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms';");
    assert_int_equal(log->sequenced, 1);
    steps_answer(all_ok, 9, NULL);
    steps_did("");
    steps_end();
}

/* Goal: a batch that was compressed once goes under the next epoch as it is, whole. */
static void turns_compressed_batch_goes_again_as_it_is(void **state)
{
    (void)state;
    static uint8_t scratch[LEAT_BATCH_BYTES_MAX];
    steps_ready(0, 1);
    steps.engine->options.codec = LEAT_CODEC_LZ4;
    steps.engine->scratch = scratch;
    assert_int_equal(steps_add_sized(1, -1, 600), LEAT_OK);
    leat_producer_engine_flush(steps.engine);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    size_t bytes = steps.appends[0]->payload[0].bytes;
    assert_true(bytes < 200);
    steps_answer((const leat_err[]){LEAT_E_SEQUENCE_GAP}, 0, NULL);
    steps_turn(1000);
    steps_id(100, 4);
    steps_turn(1);
    steps_did("id? 100.3;append 5/0/0@40: 100.4+0#1;");
    assert_int_equal(steps.appends[0]->payload[0].bytes, bytes);
    steps_answer(all_ok, 1, NULL);
    steps.engine->scratch = NULL;
    steps_end();
}

/* Goal: a batch as large as one may be is compressed like others. */
static void turns_largest_batch_is_compressed(void **state)
{
    (void)state;
    static uint8_t scratch[LEAT_BATCH_BYTES_MAX], value[LEAT_BATCH_BYTES_MAX];
    steps_ready(0, 1);
    steps.engine->options.codec = LEAT_CODEC_LZ4;
    steps.engine->scratch = scratch;
    size_t bytes = LEAT_BATCH_BYTES_MAX - LEAT_BATCH_HEADER_BYTES;
    bytes -= leat_batch_record_bytes_max(0, bytes, 0) - bytes;
    assert_int_equal(
        leat_producer_engine_add(steps.engine, "s", -1, 0, NULL, 0, value, bytes, NULL, NULL),
        LEAT_OK);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#0;");
    const struct leat_iov *iov = steps.appends[0]->payload;
    assert_int_equal(leat_batch_codec(iov->base, iov->bytes), LEAT_CODEC_LZ4);
    steps_answer(all_ok, 1, NULL);
    steps.engine->scratch = NULL;
    steps_end();
}

/* Goal: an append has the epoch of its own log, and none where the client knows another stream of that name by now. */
static void turns_append_has_the_epoch_of_its_own_stream(void **state)
{
    (void)state;
    for (uint32_t id = 0; id <= 9; id += 9) { /* 0: it knows none */
        three_under_way();
        steps_answer((const leat_err[]){LEAT_E_AGAIN, LEAT_E_AGAIN, LEAT_E_AGAIN}, 0, NULL);
        steps.stream.id = id;
        steps_turn(1000);
        steps_did("append 5/0/0@0: 100.3+1#1 100.3+2#2 100.3+3#3;");
        steps_answer(all_ok, 0, NULL);
        steps_end();
        steps.did[0] = 0;
    }
}

/* ---- frames ---- */

enum { LARGE = 2090000 };
static uint8_t large[LARGE];

/* Nobody hears of it. */
static void add_large(uint32_t n, size_t bytes)
{
    large[0] = (uint8_t)n;
    assert_int_equal(
        leat_producer_engine_add(steps.engine, "s", 0, 0, NULL, 0, large, bytes, NULL, NULL),
        LEAT_OK);
}

/* Goal: a frame takes as many batches as fit, to the last byte, when they go first and when they go again; what fits no
 * more goes by itself. Method: four batches that fill a frame exactly, then by a byte more, and a small one behind. */
static void turns_frame_takes_what_fits(void **state)
{
    (void)state;
    for (unsigned over = 0; over < 2; over++) {
        steps_begin(1);
        steps.engine->options.buffer_bytes = 32 * 1024 * 1024;
        add(0, 0, -1);
        steps_first(1, 100);
        steps_answer(all_ok, 0, NULL);
        steps.did[0] = 0;
        add_large(1, LARGE);
        add_large(2, LARGE);
        add_large(3, LARGE);
        size_t used =
            LEAT_CONTAINER(steps.engine->gather->ready.next, struct leat_producer_batch, link)
                ->builder.used;
        add_large(4, PRODUCER_FRAME_BATCH_BYTES_MAX - 3 * used - (used - LARGE) + over);
        add_large(5, 4);
        steps_turn(1);
        const char *first = over ? "append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3;"
                                 : "append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4;";
        const char *second =
            over ? "append 5/0/0@40: 100.3+4#4 100.3+5#5;" : "append 5/0/0@40: 100.3+5#5;";
        char want[200];
        snprintf(want, sizeof want, "%s%s", first, second);
        steps_did(want);
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < steps.appends[0]->payload_count; i++)
            bytes += steps.appends[0]->payload[i].bytes;
        if (!over) assert_int_equal(bytes, PRODUCER_FRAME_BATCH_BYTES_MAX);
        steps_append_fails(LEAT_E_NO_MEMORY, "no");
        steps_append_fails(LEAT_E_NO_MEMORY, "no");
        steps_turn(1000);
        steps_did(first); /* the window is full: the next one waits for its answer */
        steps_answer(all_ok, 0, NULL);
        steps_turn(1);
        steps_did(second);
        steps_answer(all_ok, 0, NULL);
        steps_turn(1);
        assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
        steps_end();
    }
}

/* ---- what is asked again ---- */

/* Goal: a log in trouble has its stream looked up when its pause is over, and another log's turn doesn't bring that
 * forward; a second one in trouble does not ask a second time. */
static void turns_lookup_waits_for_its_pause_and_is_one(void **state)
{
    (void)state;
    steps_ready(1, 2);
    add(1, 1, 0);
    add(2, 2, 1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;append 5/1/0@42: 100.3+0#2;");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1);
    assert_int_equal(look_us(), 999); /* sooner than it would for what is under way */
    steps_answer(all_ok, 0, NULL);
    add(3, 3, 1);
    steps_turn(1);
    steps_did("#2 at 0;append 5/1/0@42: 100.3+1#3;"); /* and no lookup yet */
    steps_turn(998);
    steps_did("lookup s;");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_did("");
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_did(
        "lookup s;"); /* which the second one wants: what was known was asked before it failed */
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;append 5/1/0@42: 100.3+1#3;");
    steps_answer(all_ok, 1, NULL);
    steps_answer(all_ok, 2, NULL);
    steps_end();
}

/* Goal: a stream that is known is not asked about while nobody needs it, also when it was refused since; who adds a
 * record then is refused until it has been asked again. */
static void turns_idle_stream_is_not_asked_about(void **state)
{
    (void)state;
    three_under_way();
    steps_answer((const leat_err[]){LEAT_E_UNKNOWN_LOG, LEAT_E_UNKNOWN_LOG, LEAT_E_UNKNOWN_LOG}, 0,
                 "no log");
    steps_turn(1000);
    steps_did("#1 UNKNOWN_LOG 'no log';lookup s;id? 100.3;");
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "no stream");
    steps_did("#2 UNKNOWN_STREAM 'no stream';#3 UNKNOWN_STREAM 'no stream';");
    steps_turn(1);
    steps_turn(2000000);
    steps_did("");
    assert_int_equal(look_us(), UINT64_MAX);
    steps_end();
}

/* Goal: records that came during a lookup that was refused are looked at again when the stream may be looked up
 * again. */
static void turns_refused_stream_is_asked_again_in_time(void **state)
{
    (void)state;
    steps_begin(1);
    steps.engine->options.timeout_us = STEPS_TIMEOUT_US;
    add(1, 1, -1);
    steps_turn(1);
    add(2, 2, -1);
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    steps_did("lookup s;#1 UNKNOWN_STREAM 'there is none';");
    steps_turn(1);
    assert_int_equal(look_us(), 999999);
    steps_turn(9);
    assert_int_equal(look_us(), 999990);
    steps.engine->options.timeout_us =
        10 * (uint64_t)STEPS_TIMEOUT_US; /* nothing's time is over by then */
    steps_turn(999989);
    steps_did("");
    steps.engine->options.timeout_us = STEPS_TIMEOUT_US;
    steps_turn(1);
    assert_non_null(steps.lookup);
    steps_end();
}

/* Goal: a stream is reported as deleted while an append to it has an unknown fate: the append's records are reported as
 * deleted, unsent records by the refusal. If the stream turns out to exist, no record follows under the old epoch. */
static void turns_stream_that_was_gone_goes_on_under_the_next_epoch(void **state)
{
    (void)state;
    three_under_way();
    add(4, 4, -1);
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_did("lookup s;");
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    const char *gone = "UNKNOWN_STREAM 'the stream was deleted'";
    char want[400];
    snprintf(want, sizeof want, "#1 %s;#2 %s;#3 %s;#4 UNKNOWN_STREAM 'there is none';", gone, gone,
             gone);
    steps_did(want);
    assert_int_equal(steps.engine->streams[0]->own[0]->sequenced, 0);
    assert_int_equal(steps_add(5, -1), LEAT_E_UNKNOWN_STREAM);
    steps_turn(1000000);
    steps_did("");
    add(5, 5, -1);
    steps_turn(1);
    steps_did("lookup s;");
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#5;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* Goal: a stream of the same id that has other logs by now: the producer's is another one. A lookup that was given up
 * says nothing. */
static void turns_stream_with_other_logs_has_other_logs(void **state)
{
    (void)state;
    steps_begin(1);
    add(1, 1, -1);
    steps_first(1, 101);
    steps_did("lookup s;id? -1.-1;append 5/0/1@41: 101.3+0#1;");
    steps_answer(all_ok, 0, NULL);
    steps_turn(1);
    leat_producer_stream_lookup(steps.engine->streams[0]);
    steps_lookup_fails(LEAT_E_CANCELLED, "given up");
    assert_int_equal(steps.engine->stats.last_error, LEAT_OK);
    leat_producer_stream_lookup(steps.engine->streams[0]);
    struct leat_client_lookup *lookup = steps.lookup;
    steps.lookup = NULL;
    steps.stream.settings.logs = steps.stream.log_count = 1;
    lookup->on_done(lookup, LEAT_OK, &steps.stream, &(struct leat_error){0});
    add(2, 2, -1);
    steps_turn(1);
    steps_did("#1 at 0;lookup s;lookup s;append 5/0/0@40: 101.3+0#2;");
    steps_answer(all_ok, 0, NULL);
    steps_end();
}

/* ---- room, time, memory ---- */

/* Goal: a caller that waits for room is told at the end of the turn that makes room, once. */
static void turns_room_is_told_once(void **state)
{
    (void)state;
    unsigned told = 0;
    uint32_t n = 0;
    steps_ready(1, 1);
    leat_producer_engine_on_room(steps.engine, count_call, &told);
    while (steps_add(n % STEPS_RECORDS, -1) == LEAT_OK)
        n++;
    assert_int_equal(n, 64);
    steps_turn(1);
    assert_int_equal(told, 0);
    for (unsigned i = 0; i < 20 && !told; i++) {
        while (steps.append_count)
            steps_answer(all_ok, 0, NULL);
        steps_turn(1);
        steps.did[0] = 0;
    }
    assert_int_equal(told, 1);
    while (steps.append_count)
        steps_answer(all_ok, 0, NULL);
    steps_turn(1);
    assert_int_equal(told, 1);
    steps_end();
}

/* Goal: the look at times that are over comes a quarter of the time limit after the first record, however many turns
 * there are, and never at once. */
static void turns_look_at_times_is_not_put_off(void **state)
{
    (void)state;
    steps_ready(1, 1);
    leat_timer_stop(&steps.timers, &steps.engine->expiry);
    add(1, 1, -1);
    steps_turn(1);
    uint64_t at = steps.engine->expiry.at_us;
    assert_int_equal(at, steps.now_us + STEPS_TIMEOUT_US / 4);
    add(2, 2, -1);
    steps_turn(1000);
    assert_int_equal(steps.engine->expiry.at_us, at);
    leat_timer_stop(&steps.timers, &steps.engine->expiry);
    steps.engine->options.timeout_us = 3;
    steps_turn(1);
    assert_int_equal(steps.engine->expiry.at_us, steps.now_us + 1);
    steps.engine->options.timeout_us = STEPS_TIMEOUT_US;
    steps_end();
}

/* Goal: a record that is added from a callback of a turn, and that fills its batch, gets a turn at once, unless
 * something is under way whose end would bring a turn. */
static void turns_record_added_amid_a_turn_has_the_next(void **state)
{
    (void)state;
    for (unsigned busy = 0; busy < 2; busy++) {
        steps_ready(1, 2);
        told_count = 0;
        add_told(0, true);
        if (busy) add(2, 2, 1);
        steps_turn(1);
        steps_answer((const leat_err[]){LEAT_E_INVALID}, 0, NULL);
        steps.did[0] = 0;
        assert_int_equal(steps.append_count, busy);
        steps_turn(1000);
        assert_int_equal(told_count, 1);
        assert_int_equal(look_us(), busy ? PRODUCER_BUSY_LOOK_US - 1000 : 0);
        while (steps.append_count)
            steps_answer(all_ok, 0, NULL);
        steps_end();
    }
}

/* Goal: a batch that is due while a caller fills it does not wake the engine: the caller tells the engine. */
static void turns_batch_that_is_filled_is_its_fillers(void **state)
{
    (void)state;
    for (unsigned other = 0; other < 2; other++) {
        steps_ready(0, 2);
        steps.engine->options.linger_us = 1000;
        struct leat_gather *gather = steps.engine->gather;
        add(1, 1, 0);
        gather->filling =
            LEAT_CONTAINER(gather->opened.next, struct leat_producer_batch, open_link);
        steps_turn(999);
        assert_false(gather->close_wanted);
        assert_int_equal(look_us(), 1);
        if (other) add(2, 2, 1);
        steps_turn(1);
        assert_true(gather->close_wanted);
        assert_int_equal(look_us(), other ? 999 : UINT64_MAX);
        gather->filling = NULL;
        gather->close_wanted = false;
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+1#1;");
        steps_answer(all_ok, 0, NULL);
        steps_end();
        steps.did[0] = 0;
    }
}

/* Goal: without memory an add is refused, and a record for whose log there is no memory fails with that code. */
static void turns_without_memory_are_told(void **state)
{
    (void)state;
    steps_begin(1);
    for (uint64_t at = 1; at <= 2; at++) {
        leat_mem_fail_at(at);
        assert_int_equal(steps_add(1, -1), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
    }
    add(1, 1, -1);
    leat_mem_fail_at(1);
    steps_turn(1);
    leat_mem_fail_at(0);
    steps_turn(1);
    if (!steps.lookup) { /* it was told when there was none for the stream */
        steps_did("#1 NO_MEMORY 'out of memory';");
        add(1, 1, -1);
        steps_turn(1);
    }
    steps.did[0] = 0;
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_id(100, 3);
    steps.did[0] = 0;
    leat_mem_fail_at(1);
    steps_turn(1);
    leat_mem_fail_at(0);
    char want[100];
    snprintf(want, sizeof want, "#1 NO_MEMORY '%s';", leat_err_text(LEAT_E_NO_MEMORY));
    steps_did(want);
    steps_end();
}

/* ---- the end ---- */

/* Goal: a record that no turn has seen is reported as cancelled, without a log; a lookup under way is taken back,
 * once. */
static void turns_end_tells_what_no_turn_has_seen(void **state)
{
    (void)state;
    steps_begin(0);
    told_count = 0;
    told_of = (struct leat_log_ref){1, 2, 3};
    add_told(-1, false);
    steps_end();
    assert_int_equal(told_count, 1);
    assert_true(leat_log_ref_equal(told_of, (struct leat_log_ref){0, 0, 0}));
    steps_begin(1);
    add_told(-1, false);
    steps_turn(1);
    steps_did("lookup s;");
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_did("no lookup;");
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_end();
    steps_did("");
    assert_int_equal(told_count, 2);
    /* Nor does one that is refused have a log. */
    steps_begin(1);
    add_told(-1, false);
    steps_turn(1);
    told_of = (struct leat_log_ref){1, 2, 3};
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    assert_int_equal(told_count, 3);
    assert_true(leat_log_ref_equal(told_of, (struct leat_log_ref){0, 0, 0}));
    steps_end();
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(turns_refusal_says_that_those_behind_are_not_there),
        TEST(turns_first_sequence_is_one_like_others),
        TEST(turns_compressed_batch_goes_again_as_it_is),
        TEST(turns_append_has_the_epoch_of_its_own_stream),
        TEST(turns_frame_takes_what_fits),
        TEST(turns_lookup_waits_for_its_pause_and_is_one),
        TEST(turns_idle_stream_is_not_asked_about),
        TEST(turns_refused_stream_is_asked_again_in_time),
        TEST(turns_stream_that_was_gone_goes_on_under_the_next_epoch),
        TEST(turns_room_is_told_once),
        TEST(turns_look_at_times_is_not_put_off),
        TEST(turns_record_added_amid_a_turn_has_the_next),
        TEST(turns_batch_that_is_filled_is_its_fillers),
        TEST(turns_stream_with_other_logs_has_other_logs),
        TEST(turns_largest_batch_is_compressed),
        TEST(turns_without_memory_are_told),
        TEST(turns_end_tells_what_no_turn_has_seen),
    };
    return cmocka_run_group_tests_name("producer turns", tests, NULL, NULL);
}
