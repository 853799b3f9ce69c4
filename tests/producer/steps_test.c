/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's log after each answer, step by step: the reports, the batches that are sent again, their sequences and
 * epochs. README's table of failures, row by row, with and without an earlier attempt of unknown fate. */
#include "tests/producer/steps_rig.h"

#include <stdio.h>
#include <string.h>

/* Record 4 waits behind those. */
static void three_under_way_and_one_waits(void)
{
    three_under_way();
    add(4, 4, -1);
    steps_turn(1);
    steps_did(""); /* one at a time, unless the window is full */
}

/* Goal: acked records are reported in order, with their offsets, and the next batch goes. */
static void steps_acks_are_told_in_order(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    answer_all(LEAT_OK, NULL);
    steps_did("#1 at 10;#2 at 11;#3 at 12;");
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+4#4;");
    steps_answer((const leat_err[]){LEAT_E_ALREADY_APPENDED}, 10, NULL);
    steps_did("#4 there;");
    const struct leat_producer_engine_stats *stats = leat_producer_engine_stats(steps.engine);
    assert_int_equal(stats->records_acked, 5);
    assert_int_equal(stats->batches_acked, 5);
    assert_int_equal(stats->appends_sent, 3);
    assert_int_equal(stats->records_failed + stats->retries, 0);
    assert_int_equal(stats->last_error, LEAT_OK);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 1); /* until the turn's end */
    steps_turn(1);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
    steps_end();
}

/* Goal: all five batches of a log's window may be under way, in two frames when the second fills the window; a sixth
 * batch waits. */
static void steps_window_is_five(void **state)
{
    (void)state;
    steps_ready(1, 1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    add(2, 4, -1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    assert_int_equal(steps_add(5, -1), LEAT_OK);
    assert_int_equal(steps_add(6, -1), LEAT_OK);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+2#2 100.3+3#3 100.3+4#4 100.3+5#5;");
    steps_turn(1);
    steps_did("");
    answer_all(LEAT_OK, NULL);
    steps_turn(1);
    steps_did("#1 at 10;append 5/0/0@40: 100.3+6#6;"); /* which fills it again */
    answer_all(LEAT_OK, NULL);
    answer_all(LEAT_OK, NULL);
    steps_did("#2 at 10;#3 at 11;#4 at 12;#5 at 13;#6 at 10;");
    steps_end();
}

/* Answers that leave open whether the batch is in the log: the same bytes are sent again, after the pause, which
 * grows. */
static void steps_unknown_is_sent_again_as_it_was(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        bool answered, lookup;
    } rows[] = {{LEAT_E_AGAIN, true, false},          {LEAT_E_TIMEOUT, true, true},
                {LEAT_E_TOO_FEW_COPIES, true, false}, {LEAT_E_NO_MEMORY, false, false},
                {LEAT_E_CLOSED, false, true},         {LEAT_E_TIMEOUT, false, true},
                {LEAT_E_NOT_OWNER, true, true},       {LEAT_E_STALE_EPOCH, true, true},
                {LEAT_E_NOT_OWNER, false, true},      {LEAT_E_CORRUPT, true, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        three_under_way_and_one_waits();
        for (unsigned attempt = 0; attempt < 3; attempt++) {
            if (rows[i].answered)
                answer_all(rows[i].rc, "as the script says");
            else
                steps_append_fails(rows[i].rc, "as the script says");
            steps_did("");
            assert_int_equal(steps.engine->stats.last_error, rows[i].rc);
            assert_string_equal(steps.engine->stats.last_text, "as the script says");
            assert_int_equal(steps.engine->stats.retries, attempt);
            steps_turn(999 + attempt * 1000);
            steps_did("");
            steps_turn(1);
            if (rows[i].lookup) {
                steps_did("lookup s;");
                steps_known(5, 1, 0);
                steps_turn(1);
            }
            steps_did("append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4;");
        }
        answer_all(LEAT_OK, NULL);
        steps_did("#1 at 10;#2 at 11;#3 at 12;#4 at 13;");
        assert_int_equal(steps.engine->stats.retries, 3);
        /* It was acked: the next pause is the shortest again. */
        assert_int_equal(steps_add(5, -1), LEAT_OK);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+5#5;");
        answer_all(LEAT_E_AGAIN, NULL);
        steps_turn(999);
        steps_did("");
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+5#5;");
        steps_end();
    }
}

/* Goal: a batch is refused for good and known not to be in the log: its record fails with the code's name, and the
 * batches after it go on in order under the next epoch from sequence 0. No batch is sent before the next epoch is
 * there. */
static void steps_refusal_lets_the_others_go_on(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_INVALID, LEAT_E_TOO_MANY_PRODUCERS, LEAT_E_UNSUPPORTED};
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        three_under_way_and_one_waits();
        answer_all(codes[i], "so it is");
        steps_did("");
        steps_turn(1000);
        char want[100];
        snprintf(want, sizeof want, "#1 %s 'so it is';id? 100.3;", leat_err_name(codes[i]));
        steps_did(want);
        steps_turn(1000);
        steps_did("");
        steps_id(100, 7);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.7+0#2 100.7+1#3 100.7+2#4;");
        answer_all(LEAT_OK, NULL);
        steps_did("#2 at 10;#3 at 11;#4 at 12;");
        steps_end();
    }
    /* One in the middle; those before it are acked. */
    three_under_way_and_one_waits();
    steps_answer((const leat_err[]){LEAT_OK, LEAT_E_INVALID, LEAT_E_INVALID}, 10, NULL);
    steps_did("#1 at 10;");
    steps_turn(1000);
    steps_did("#2 INVALID 'malformed request';id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#3 100.4+1#4;");
    steps_end();
    /* What is acked behind it is told as that. */
    three_under_way_and_one_waits();
    steps_answer((const leat_err[]){LEAT_E_INVALID, LEAT_OK, LEAT_E_ALREADY_APPENDED}, 10, NULL);
    steps_did("");
    steps_turn(1000);
    steps_did("#1 INVALID 'malformed request';#2 at 11;#3 there;id? 100.3;");
    steps_end();
}

/* Goal: bytes that are damaged here already are not sent again and again: their record fails by name. Bytes that were
 * damaged on their way are in steps_unknown_is_sent_again_as_it_was. */
static void steps_damaged_here_is_refused(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    struct leat_producer_append *append = steps.appends[0]->owner;
    struct leat_producer_batch *first = append->batches[0];
    first->bytes[first->byte_count - 1] ^= 1;
    answer_all(LEAT_E_CORRUPT, "so it is");
    steps_turn(1000);
    steps_did("#1 CORRUPT 'so it is';id? 100.3;");
    steps_id(100, 7);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.7+0#2 100.7+1#3 100.7+2#4;");
    answer_all(LEAT_OK, NULL);
    steps_did("#2 at 10;#3 at 11;#4 at 12;");
    steps_end();
}

/* Goal: a refusal promises nothing when an earlier attempt of the batch may be in the log: the batch is reported as
 * unknown, and so are later batches that also had an earlier attempt; batches that were never sent go on. */
static void steps_refusal_after_an_unknown_attempt_is_unknown(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_INVALID, LEAT_E_SEQUENCE_GAP, LEAT_E_UNKNOWN_PRODUCER,
                                     LEAT_E_PRODUCER_FENCED};
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++)
        for (unsigned unsent = 0; unsent < 2; unsent++) {
            three_under_way_and_one_waits();
            steps.unsent = unsent;
            steps_append_fails(LEAT_E_CLOSED, "it broke");
            steps.unsent = false;
            steps_turn(1000);
            steps_known(5, 1, 0);
            steps_turn(1);
            steps_did("lookup s;append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4;");
            answer_all(codes[i], "so it is");
            steps_turn(2000);
            char want[800];
            const char *name = leat_err_name(codes[i]);
            if (unsent && i == 0) /* it had not left: the refusal is definite */
                snprintf(want, sizeof want, "#1 %s 'so it is';id? 100.3;", name);
            else if (unsent)
                snprintf(want, sizeof want, "id? 100.3;");
            else
                snprintf(want, sizeof want,
                         "#1 TIMEOUT 'whether it was appended is unknown: so it is';"
                         "#2 TIMEOUT 'whether it was appended is unknown: so it is';"
                         "#3 TIMEOUT 'whether it was appended is unknown: so it is';id? 100.3;");
            steps_did(want);
            steps_id(100, 4);
            steps_turn(1);
            steps_did(!unsent  ? "append 5/0/0@40: 100.4+0#4;"
                      : i == 0 ? "append 5/0/0@40: 100.4+0#2 100.4+1#3 100.4+2#4;"
                               : "append 5/0/0@40: 100.4+0#1 100.4+1#2 100.4+2#3 100.4+3#4;");
            steps_end();
        }
}

/* Goal: a log that does not know what a batch would follow gets all again under the next epoch, if none of it may be
 * there. */
static void steps_gap_sends_all_again_under_the_next_epoch(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_SEQUENCE_GAP, LEAT_E_UNKNOWN_PRODUCER,
                                     LEAT_E_PRODUCER_FENCED};
    for (unsigned i = 0; i < 3; i++) {
        three_under_way_and_one_waits();
        answer_all(codes[i], NULL);
        steps_turn(1000);
        steps_did("id? 100.3;");
        steps_id(100, 4);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.4+0#1 100.4+1#2 100.4+2#3 100.4+3#4;");
        answer_all(LEAT_OK, NULL);
        steps_did("#1 at 10;#2 at 11;#3 at 12;#4 at 13;");
        steps_end();
    }
}

/* Goal: a code that no retry can repair is reported for all batches that may be in the log, whatever their own last
 * answer was. */
static void steps_fatal_refusal_is_told_by_its_name(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    steps_answer((const leat_err[]){LEAT_E_DISK, LEAT_E_AGAIN, LEAT_E_AGAIN}, 10, "gone for good");
    steps_turn(1000);
    steps_did("#1 DISK 'gone for good';#2 DISK 'gone for good';#3 DISK 'gone for good';id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#4;");
    steps_end();
}

/* Goal: after a failure for good no batch that may be in the log goes on, also where each batch got that code
 * itself. */
static void steps_fatal_refusal_of_all_is_told_of_all(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    answer_all(LEAT_E_DISK, "gone for good");
    steps_turn(1000);
    steps_did("#1 DISK 'gone for good';#2 DISK 'gone for good';#3 DISK 'gone for good';id? 100.3;");
    steps_end();
}

/* Goal: a stream that is reported as unknown, or a log of it, is looked up at once. */
static void steps_stream_that_is_gone_is_looked_up(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_UNKNOWN_LOG, LEAT_E_UNKNOWN_STREAM};
    for (unsigned i = 0; i < 2; i++) {
        three_under_way_and_one_waits();
        answer_all(codes[i], "not here");
        steps_turn(1000);
        if (i) { /* first who has it: another may */
            steps_did("lookup s;");
            steps_known(5, 1, 0);
            steps_turn(1);
        }
        char want[100];
        snprintf(want, sizeof want, "#1 %s 'not here';lookup s;", leat_err_name(codes[i]));
        assert_int_equal(strncmp(steps.did, want, strlen(want)), 0);
        steps_end();
    }
}

/* Goal: a batch that compression does not make smaller is sent uncompressed. */
static void steps_compression_that_does_not_help_is_left_out(void **state)
{
    (void)state;
    static uint8_t scratch[LEAT_BATCH_BYTES_MAX];
    for (unsigned helps = 0; helps < 2; helps++) {
        steps_ready(0, 1);
        uint64_t before = steps.engine->stats.bytes_acked;
        steps.engine->options.codec = LEAT_CODEC_LZ4;
        steps.engine->scratch = scratch;
        assert_int_equal(steps_add_sized(1, -1, helps ? 500 : 4), LEAT_OK);
        leat_producer_engine_flush(steps.engine);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+1#1;");
        const struct leat_iov *iov = steps.appends[0]->payload;
        uint64_t bytes = iov->bytes;
        assert_int_equal(leat_batch_codec(iov->base, iov->bytes),
                         helps ? LEAT_CODEC_LZ4 : LEAT_CODEC_NONE);
        assert_true(bytes < 200);
        answer_all(LEAT_OK, NULL);
        steps_turn(1);
        assert_int_equal(steps.engine->stats.bytes_acked - before, bytes);
        steps.engine->scratch = NULL;
        steps_end();
    }
}

/* Goal: an answer that can't be read has no effect, at whichever byte it ends; a readable answer counts, also with more
 * fields than this version knows. */
static void steps_answer_that_can_not_be_read_says_nothing(void **state)
{
    (void)state;
    static const uint8_t ok[] = {0x93, 0x92, 0, 1, 0x92, 0, 2, 0x92, 0, 3},
                         few[] = {0x92, 0x92, 0, 1, 0x92, 0, 2},
                         short_rows[] = {0x93, 0x91, 0, 0x92, 0, 2, 0x92, 0, 3},
                         text[] = {0x94, 0x92, 0, 1, 0x92, 0, 2, 0x92, 0, 3, 7},
                         wide[] = {0x93, 0x93, 0, 1, 9, 0x92, 0, 2, 0x94, 0, 3, 0xa1, 'x', 9};
    static const struct {
        const uint8_t *bytes;
        uint32_t count;
        bool good;
    } rows[] = {{ok, 10, true},         {wide, 14, true},  {few, 7, false},
                {short_rows, 9, false}, {text, 11, false}, {ok, 0, false},
                {ok, 1, false},         {ok, 3, false},    {ok, 9, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        three_under_way_and_one_waits();
        steps_answer_bytes(rows[i].bytes, rows[i].count);
        steps_did(rows[i].good ? "#1 at 1;#2 at 2;#3 at 3;" : "");
        if (!rows[i].good) {
            assert_string_equal(steps.engine->stats.last_text,
                                "the server's answer could not be read");
            steps_turn(1000);
            steps_known(5, 1, 0);
            steps_turn(1);
            steps_did("lookup s;append 5/0/0@40: 100.3+1#1 100.3+2#2 100.3+3#3 100.3+4#4;");
            answer_all(LEAT_E_SEQUENCE_GAP, NULL); /* and so it may be there */
            steps_turn(2000);
            assert_non_null(strstr(steps.did, "#1 TIMEOUT 'whether it was appended is unknown"));
        }
        steps_end();
    }
}

/* Goal: a send that is refused at once is no attempt: it makes no fate unknown, and is tried again. */
static void steps_send_that_is_refused_is_tried_again(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_NOT_OWNER, LEAT_E_UNKNOWN_STREAM, LEAT_E_NO_MEMORY};
    for (unsigned i = 0; i < 3; i++) {
        steps_ready(1, 1);
        assert_int_equal(steps_add(1, -1), LEAT_OK);
        steps.send_rc = codes[i];
        steps_turn(1);
        steps_did("no;");
        assert_int_equal(steps.engine->stats.last_error, codes[i]);
        assert_string_equal(steps.engine->stats.last_text, "the script's why");
        assert_int_equal(steps.engine->requests_out, 0);
        steps_turn(999);
        steps_did("");
        steps_turn(1);
        if (i < 2) {
            steps_did("lookup s;");
            steps_known(5, 1, 0);
            steps_turn(1);
        }
        steps_did("append 5/0/0@40: 100.3+1#1;");
        answer_all(LEAT_E_SEQUENCE_GAP, NULL);
        steps_turn(2000);
        steps_did("id? 100.3;"); /* it can't be there */
        steps_end();
    }
}

/* Goal: a record that is not acked in its time fails with a timeout. A record that was never sent is taken out; a
 * record with a sequence keeps its place until all sequenced records are reported, then the producer leaves the
 * epoch. */
static void steps_time_that_is_over_is_told(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    uint64_t added = steps.now_us - 1;
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_did("lookup s;"); /* which nobody answers */
    steps_turn(added + STEPS_TIMEOUT_US - 2 - steps.now_us);
    leat_producer_log_expire(steps.engine->streams[0]->own[0], added - 1 + STEPS_TIMEOUT_US - 1);
    steps_did("");
    leat_producer_log_expire(steps.engine->streams[0]->own[0], added - 1 + STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms: it broke';#2 TIMEOUT 'not acked within 500 ms: "
              "it broke';"
              "#3 TIMEOUT 'not acked within 500 ms: it broke';");
    /* Their epoch is left, whatever is behind them. */
    assert_int_equal(steps.engine->streams[0]->own[0]->sequenced, 0);
    assert_true(steps.engine->streams[0]->own[0]->needs_epoch);
    leat_producer_log_expire(steps.engine->streams[0]->own[0], added + 1 + STEPS_TIMEOUT_US);
    steps_did("#4 TIMEOUT 'could not be sent within 500 ms: it broke';");
    assert_int_equal(steps.engine->stats.records_failed, 4);
    steps_known(5, 1, 0);
    assert_int_equal(steps_add(5, -1), LEAT_OK);
    steps_turn(10000);
    steps_did("id? 100.3;"); /* nothing follows under an epoch whose sequences nobody fills */
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#5;");
    steps_end();
    /* While an append is under way its sequences stay, and what it brings counts no more. */
    three_under_way_and_one_waits();
    added = steps.now_us - 1;
    leat_producer_log_expire(steps.engine->streams[0]->own[0], added - 1 + STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'not acked within 500 ms';#2 TIMEOUT 'not acked within 500 ms';"
              "#3 TIMEOUT 'not acked within 500 ms';");
    assert_int_equal(steps.engine->streams[0]->own[0]->sequenced, 3);
    answer_all(LEAT_OK, NULL);
    steps_did("");
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+4#4;");
    answer_all(LEAT_OK, NULL);
    steps_did("#4 at 10;");
    assert_int_equal(steps.engine->stats.records_acked, 2);
    assert_int_equal(steps.engine->stats.records_failed, 3);
    steps_end();
}

/* Goal: a look at the time before that is over changes nothing, be it of the very first sequence. */
static void steps_time_that_is_not_over_changes_nothing(void **state)
{
    (void)state;
    first_under_way();
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    struct leat_producer_log *log = steps.engine->streams[0]->own[0];
    leat_producer_log_expire(log, steps.now_us);
    steps_did("");
    assert_int_equal(log->sequenced, 1);
    assert_false(log->needs_epoch);
    steps_turn(1000);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("lookup s;append 5/0/0@40: 100.3+0#1;");
    answer_all(LEAT_OK, NULL);
    steps_did("#1 at 10;");
    steps_end();
}

/* Goal: a batch that is larger than its stream takes by now is cut before it is sent again, all pieces under the next
 * epoch; a batch of a single record fails with the code's name. */
static void steps_too_large_is_cut(void **state)
{
    (void)state;
    steps_ready(4, 1);
    add(1, 5, -1);
    leat_producer_engine_flush(steps.engine);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1,2,3,4 100.3+5#5;");
    answer_all(LEAT_E_TOO_LARGE, "too much");
    steps_turn(1000);
    steps_did("lookup s;");
    steps_known(5, 1, 61 + 2 * 11);
    steps_turn(1);
    steps_did("id? 100.3;");
    steps_id(100, 4);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.4+0#1,2 100.4+2#3,4 100.4+4#5;");
    answer_all(LEAT_OK, NULL);
    steps_did("#1 at 10;#2 at 11;#3 at 11;#4 at 12;#5 at 12;");
    steps_turn(1);
    assert_int_equal(steps.engine->gather->big_bytes, 0);
    steps_end();

    three_under_way_and_one_waits();
    answer_all(LEAT_E_TOO_LARGE, "too much");
    steps_turn(1000);
    steps_known(5, 1, 20);
    steps_turn(1);
    steps_did("lookup s;#1 TOO_LARGE 'too much';id? 100.3;");
    steps_end();
}

/* Goal: no batch of several records is larger than its stream takes, however close to the limit the first record comes.
 * A batch above the limit would be cut into itself, refused, and cut again, until its time is over. Method: first
 * records of all sizes about the limit, each followed by small records, gathered before the stream was known and
 * after. */
static void steps_no_batch_is_larger_than_its_stream_takes(void **state)
{
    (void)state;
    enum { LIMIT = 400 };
    for (uint32_t bytes = LIMIT - 110; bytes <= LIMIT; bytes++)
        for (unsigned known = 0; known < 2; known++) {
            steps_begin(0);
            if (known) {
                assert_int_equal(steps_add(STEPS_RECORDS - 1, -1), LEAT_OK);
                leat_producer_engine_flush(steps.engine);
                steps_turn(1);
                steps_known(5, 1, LIMIT);
            }
            assert_int_equal(steps_add_sized(0, -1, bytes), LEAT_OK);
            for (uint32_t n = 1; n < 6; n++)
                assert_int_equal(steps_add(n, -1), LEAT_OK);
            leat_producer_engine_flush(steps.engine);
            steps_turn(1);
            if (!known) steps_known(5, 1, LIMIT);
            steps_turn(1);
            steps_id(100, 3);
            for (unsigned i = 0; i < 4; i++) {
                steps_turn(1);
                if (steps.append_count) answer_all(LEAT_OK, NULL);
            }
            for (uint32_t n = 0; n < 6; n++)
                assert_int_equal(steps.told[n], 1);
            assert_int_equal(steps.engine->stats.records_acked, 6 + known);
            steps_end();
        }
}

/* Goal: an engine that ends in the middle of all that reports its records as cancelled, once, and takes back the
 * requests under way. */
static void steps_stop_takes_everything_back(void **state)
{
    (void)state;
    three_under_way_and_one_waits();
    steps.withdraws = false;
    assert_false(leat_producer_engine_stop(steps.engine));
    steps_did("not withdrawn;");
    steps_append_fails(LEAT_E_CLOSED, "");
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_did("");
    steps_end();
    const char *why = "CANCELLED 'the producer was closed; whether it was appended is unknown'";
    char want[512];
    snprintf(want, sizeof want, "#1 %s;#2 %s;#3 %s;#4 %s;", why, why, why, why);
    steps_did(want);

    three_under_way_and_one_waits();
    steps.withdraws = true;
    assert_true(leat_producer_engine_stop(steps.engine));
    steps_did("withdrawn;");
    assert_int_equal(steps.engine->requests_out, 0);
    steps_end();
    steps_did(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_acks_are_told_in_order),
        cmocka_unit_test(steps_window_is_five),
        cmocka_unit_test(steps_unknown_is_sent_again_as_it_was),
        cmocka_unit_test(steps_refusal_lets_the_others_go_on),
        cmocka_unit_test(steps_damaged_here_is_refused),
        cmocka_unit_test(steps_refusal_after_an_unknown_attempt_is_unknown),
        cmocka_unit_test(steps_gap_sends_all_again_under_the_next_epoch),
        cmocka_unit_test(steps_fatal_refusal_is_told_by_its_name),
        cmocka_unit_test(steps_fatal_refusal_of_all_is_told_of_all),
        cmocka_unit_test(steps_stream_that_is_gone_is_looked_up),
        cmocka_unit_test(steps_compression_that_does_not_help_is_left_out),
        cmocka_unit_test(steps_answer_that_can_not_be_read_says_nothing),
        cmocka_unit_test(steps_send_that_is_refused_is_tried_again),
        cmocka_unit_test(steps_time_that_is_over_is_told),
        cmocka_unit_test(steps_time_that_is_not_over_changes_nothing),
        cmocka_unit_test(steps_too_large_is_cut),
        cmocka_unit_test(steps_no_batch_is_larger_than_its_stream_takes),
        cmocka_unit_test(steps_stop_takes_everything_back),
    };
    return cmocka_run_group_tests_name("producer steps", tests, NULL, NULL);
}
