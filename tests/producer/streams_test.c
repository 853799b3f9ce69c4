/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's streams and identity, step by step: what is looked up when, where batches go, what becomes of what
 * waits, and when the engine comes round by itself. */
#include "tests/producer/steps_rig.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Goal: a stream is looked up when something is added for it, once; then the id is asked for; then it goes. */
static void streams_first_record_asks_for_stream_and_id(void **state)
{
    (void)state;
    steps_begin(1);
    steps_turn(1);
    steps_did("");
    leat_producer_engine_flush(steps.engine); /* there is nothing */
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    assert_int_equal(leat_producer_engine_open_records(steps.engine), 1);
    steps_turn(1);
    steps_did("lookup s;");
    assert_int_equal(steps_add(2, 1), LEAT_E_AGAIN); /* of which streamlets nobody knows */
    steps_turn(1);
    steps_did("");
    steps_known(5, 3, 0);
    steps_turn(1);
    steps_did("id? -1.-1;");
    assert_int_equal(steps_add(2, 1), LEAT_OK);
    steps_turn(1);
    steps_did("");
    steps_id(100, 3);
    steps_turn(1);
    /* 100 modulo 3, and streamlet 1 both: the log is 100 modulo 2. */
    steps_did("append 5/1/0@42: 100.3+0#1 100.3+1#2;");
    steps_answer(all_ok, 7, NULL);
    steps_did("#1 at 7;#2 at 8;");
    steps_end();
    steps_begin(1);
    steps.engine->options.create_streams = false;
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    steps_did("lookup s only;");
    steps_end();
    steps_did(
        "no lookup;#1 CANCELLED 'the producer was closed; whether it was appended is unknown';");
}

/* Goal: batches of any streamlet go to all in turn, from one that the id says; each log counts its own sequences. */
static void streams_take_turns(void **state)
{
    (void)state;
    steps_ready(1, 3); /* the first of them went to streamlet 1 */
    add(1, 5, -1);
    steps_turn(1);
    steps_did("append 5/2/0@44: 100.3+0#1 100.3+1#4;append 5/0/0@40: 100.3+0#2 100.3+1#5;"
              "append 5/1/0@42: 100.3+1#3;");
    assert_int_equal(steps.engine->requests_out, 3);
    steps_answer(all_ok, 1, NULL);
    steps_answer(all_ok, 5, NULL);
    steps_answer(all_ok, 9, NULL);
    steps_did("#1 at 1;#4 at 2;#2 at 5;#5 at 6;#3 at 9;");
    assert_int_equal(steps.engine->requests_out, 0);
    steps_end();
}

static uint64_t spread(void *ctx, int64_t id)
{
    assert_int_equal(id, 100);
    ++*(unsigned *)ctx;
    return 101;
}

/* Goal: which of a streamlet's logs is the producer's is its id modulo their number, or what the sharer says. */
static void streams_log_is_by_the_number(void **state)
{
    (void)state;
    unsigned asked = 0;
    steps_ready(1, 2);
    steps.engine->share.spread = spread;
    steps.engine->share.ctx = &asked;
    assert_int_equal(steps_add(1, 1), LEAT_OK);
    steps_turn(1);
    steps_did("append 5/1/1@43: 100.3+0#1;");
    assert_int_equal(asked, 1);
    steps.engine->share = (struct leat_producer_engine_share){0};
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* Goal: a refused lookup fails the stream's waiting records with the refusal's text, and refuses new records for a
 * second; then the producer looks the stream up again. */
static void streams_refused_one_is_asked_again_later(void **state)
{
    (void)state;
    steps_begin(1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    steps_did("lookup s;");
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    steps_did("#1 UNKNOWN_STREAM 'there is none';");
    assert_string_equal(steps.engine->stats.last_text, "there is none");
    uint64_t refused = steps.now_us;
    assert_int_equal(steps_add(2, -1), LEAT_E_UNKNOWN_STREAM);
    steps_turn(999999);
    steps_did("");
    assert_int_equal(steps_add(2, -1), LEAT_E_UNKNOWN_STREAM);
    steps_turn(1);
    assert_int_equal(steps.now_us - refused, 1000000);
    steps_did("lookup s;");
    assert_int_equal(steps_add(2, -1), LEAT_OK);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_id(100, 3);
    steps_turn(1);
    steps_did("id? -1.-1;append 5/0/0@40: 100.3+0#2;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* Goal: a lookup that fails for a passing reason is repeated in the next turn; a waiting record fails when its time is
 * over, with the last error. */
static void streams_what_waits_has_its_time(void **state)
{
    (void)state;
    for (unsigned said = 0; said < 2; said++) {
        steps_begin(1);
        assert_int_equal(steps_add(1, -1), LEAT_OK);
        uint64_t added = steps.now_us;
        steps_turn(1);
        steps_did("lookup s;");
        if (said) {
            steps_lookup_fails(LEAT_E_TIMEOUT, "nobody is there");
            steps_did("");
            assert_int_equal(steps_add(2, -1), LEAT_OK); /* it is not refused */
            steps_turn(1);
            steps_did("lookup s;");
        }
        leat_producer_stream_expire(steps.engine->streams[0], added + STEPS_TIMEOUT_US - 1);
        steps_did("");
        leat_producer_stream_expire(steps.engine->streams[0], added + STEPS_TIMEOUT_US);
        steps_did(said ? "#1 TIMEOUT 'could not be sent within 500 ms: nobody is there';"
                       : "#1 TIMEOUT 'could not be sent within 500 ms: no server answered';");
        assert_int_equal(steps.engine->stats.records_failed, 1);
        steps_end();
        steps_did(said ? "no lookup;#2 CANCELLED 'the producer was closed; whether it was appended "
                         "is unknown';"
                       : "no lookup;");
    }
}

/* Goal: a stream that has more streamlets by now gets records in all of them; a stream with another id or other logs is
 * another stream: its logs begin anew. */
static void streams_that_change_are_adopted(void **state)
{
    (void)state;
    steps_ready(1, 1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    steps_answer((const leat_err[]){LEAT_E_NOT_OWNER}, 0, "not here");
    steps_turn(1000);
    steps_did("lookup s;");
    assert_int_equal(steps_add(2, 1), LEAT_E_UNKNOWN_LOG);
    steps_known(5, 2, 0);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    assert_int_equal(steps_add(2, 1), LEAT_OK);
    steps_turn(1);
    steps_did("append 5/1/0@42: 100.3+0#2;");
    steps_answer(all_ok, 1, NULL);
    /* Another one of that name, while the second log's append is on its way: nothing is given up before it is back. */
    leat_producer_stream_lost(steps.engine->streams[0]);
    steps_did("#1 at 1;lookup s;");
    leat_producer_stream_lost(steps.engine->streams[0]); /* it is asked already */
    steps_did("");
    assert_int_equal(steps_add(3, 0), LEAT_OK);
    steps_known(6, 2, 0);
    steps_turn(1);
    steps_did("");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1);
    steps_did("lookup s;");
    steps_known(6, 2, 0);
    steps_did("#2 UNKNOWN_STREAM 'the stream was deleted';");
    steps_turn(1);
    steps_did("append 6/0/0@40: 100.3+0#3;");
    steps_answer(all_ok, 1, NULL);
    steps_did("#3 at 1;");
    steps_end();
}

/* Goal: a batch for a streamlet that the stream does not have any more is refused by that. */
static void streams_streamlet_that_is_gone_is_refused(void **state)
{
    (void)state;
    steps_ready(1, 3);
    assert_int_equal(steps_add(1, 1), LEAT_OK);
    steps_turn(1);
    steps_did("append 5/1/0@42: 100.3+1#1;");
    steps_append_fails(LEAT_E_CLOSED, "it broke");
    steps_turn(1000);
    steps_did("lookup s;");
    assert_int_equal(steps_add(2, 2), LEAT_OK);
    assert_int_equal(steps_add(3, 1), LEAT_OK);
    steps_turn(1); /* they wait */
    steps_known(6, 2, 0);
    steps_did("#1 UNKNOWN_STREAM 'the stream was deleted';");
    steps_turn(1);
    steps_did(
        "#2 UNKNOWN_LOG 'the stream has no such streamlet or log';append 6/1/0@42: 100.3+0#3;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* Goal: an id that is refused, or can't be read, is asked for again after its pause, which grows; the engine comes
 * round for that. */
static void streams_id_is_asked_for_until_it_is_there(void **state)
{
    (void)state;
    steps_begin(1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    steps_known(5, 1, 0);
    steps_turn(1);
    steps_did("lookup s;id? -1.-1;");
    static const struct {
        int64_t id, epoch;
    } bad[] = {{-1, 3}, {100, -1}, {100, INT16_MAX + 1}};
    for (unsigned i = 0; i < 4; i++) {
        if (i < 3)
            steps_id(bad[i].id, bad[i].epoch);
        else
            steps_id_fails(LEAT_E_TIMEOUT, "no answer");
        assert_int_equal(steps.engine->stats.last_error, i < 3 ? LEAT_E_INVALID : LEAT_E_TIMEOUT);
        steps_turn(0);
        assert_int_equal(look_us(), 1000 * (i + 1));
        steps_turn(1000 * (i + 1) - 1);
        steps_did("");
        steps_turn(1);
        steps_did("id? -1.-1;");
    }
    steps_id(0, INT16_MAX);
    assert_int_equal(steps.engine->id_attempts, 0);
    steps_turn(1);
    steps_did("append 5/0/0@40: 0.32767+0#1;");
    steps_answer(all_ok, 1, NULL);
    steps_end();
}

/* Goal: when the engine comes round by itself: for the linger of the oldest open batch, sooner than 20 ms only where
 * nothing is under way; after a pause; where something waits for a stream; and not at all where there is nothing. */
static void streams_engine_comes_round_in_time(void **state)
{
    (void)state;
    steps_ready(100, 1);
    steps_turn(1);
    assert_int_equal(look_us(), UINT64_MAX);
    steps.engine->options.linger_us = steps.engine->gather->linger_us = 700;
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    assert_int_equal(look_us(), 699);
    steps_turn(698);
    steps_did("");
    assert_int_equal(look_us(), 1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    assert_int_equal(look_us(), 20000);
    assert_int_equal(steps_add(2, -1), LEAT_OK);
    steps_turn(1);
    assert_true(look_us() >= 19999 && look_us() <= 20000); /* the answer comes before */
    steps.engine->options.linger_us = steps.engine->gather->linger_us = 50000;
    steps_answer((const leat_err[]){LEAT_E_AGAIN}, 0, NULL);
    steps_turn(1);
    assert_int_equal(look_us(), 999); /* its pause */
    steps_turn(999);
    steps_did("append 5/0/0@40: 100.3+1#1;");
    steps_answer(all_ok, 1, NULL);
    steps_turn(100);
    assert_int_equal(look_us(), 50000 - 1101 + 0);
    steps.did[0] = 0;
    steps_end();
    /* The first record asks to be looked at for its time limit: at a quarter of it, or after 250 ms. */
    steps_begin(1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(0);
    assert_true(leat_timer_armed(&steps.engine->expiry));
    assert_int_equal(steps.engine->expiry.at_us - steps.now_us, STEPS_TIMEOUT_US / 4);
    steps_end();
    steps_begin(1);
    steps.engine->options.timeout_us = 4000000;
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps.engine->options.timeout_us = STEPS_TIMEOUT_US;
    steps_turn(0);
    steps.engine->options.timeout_us = 4000000;
    leat_timer_stop(&steps.timers, &steps.engine->expiry);
    steps_turn(0);
    assert_int_equal(steps.engine->expiry.at_us - steps.now_us, 250000);
    steps_end();
}

/* Goal: with nothing under way the engine comes round when the oldest open batch is due, and not before, whatever it
 * was to come round for until then. */
static void streams_engine_does_not_come_round_for_what_is_over(void **state)
{
    (void)state;
    steps_ready(100, 1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    assert_int_equal(look_us(), 20000); /* an append is under way */
    steps_answer(all_ok, 1, NULL);
    steps.engine->options.linger_us = steps.engine->gather->linger_us = 50000;
    assert_int_equal(steps_add(2, -1), LEAT_OK);
    steps_turn(0);
    assert_int_equal(look_us(), 50000);
    steps_end();
}

/* Goal: a stream for which there is no memory when it becomes known is not known: it is looked up again. */
static void streams_without_memory_are_looked_up_again(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 2; n++) {
        steps_begin(1);
        assert_int_equal(steps_add(1, -1), LEAT_OK);
        steps_turn(1);
        leat_mem_fail_at(n);
        steps_known(5, 3, 0);
        leat_mem_fail_at(0);
        assert_int_equal(steps.engine->stats.last_error, LEAT_E_NO_MEMORY);
        steps_turn(1);
        steps_did("lookup s;lookup s;");
        steps_known(5, 3, 0);
        steps_turn(1);
        steps_id(100, 3);
        steps_turn(1);
        steps_did("id? -1.-1;append 5/1/0@42: 100.3+0#1;");
        steps_answer(all_ok, 1, NULL);
        steps_end();
    }
}

/* Goal: a streamlet whose log has a frame and more to send keeps its next batch open, filling up. */
static void streams_batch_is_held_while_its_log_has_enough(void **state)
{
    (void)state;
    steps_ready(0, 2);
    for (uint32_t n = 1; n <= 11; n++) { /* one under way, four behind it without a sequence... */
        assert_int_equal(steps_add(n, 1), LEAT_OK);
        steps_turn(1);
    }
    const struct leat_producer_log *log = steps.engine->streams[0]->own[1];
    assert_true(leat_producer_log_has_enough(log));
    assert_int_equal(leat_list_empty(&steps.engine->gather->held), false);
    assert_int_equal(steps_add(12, 0), LEAT_OK); /* the other streamlet's goes */
    steps.did[0] = 0;
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#12;");
    while (steps.append_count)
        steps_answer(all_ok, 1, NULL);
    steps_turn(1);
    assert_false(leat_producer_log_has_enough(log));
    while (steps.append_count) {
        steps_answer(all_ok, 1, NULL);
        steps_turn(1);
    }
    assert_int_equal(steps.engine->stats.records_acked, 13);
    steps_end();
}

/* Goal: a lookup of the longest name asks for no more than that name: what stands behind is the lookup's own. */
static void streams_longest_name_is_looked_up_whole(void **state)
{
    (void)state;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1], want[LEAT_STREAM_NAME_BYTES_MAX + 32];
    uint8_t value[4] = {1};
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    steps_begin(1);
    assert_int_equal(leat_producer_engine_add(steps.engine, name, -1, 0, NULL, 0, value,
                                              sizeof value, NULL, NULL),
                     LEAT_OK);
    steps_turn(1);
    snprintf(want, sizeof want, "lookup %s;", name);
    steps_did(want);
    steps_lookup_fails(LEAT_E_UNKNOWN_STREAM, "there is none");
    steps_did("");
    steps_end();
}

/* Goal: of as many streams as there may be, each is looked at, and none behind the table: the sanitizer of undefined
 * behaviour sees such a read. The client here has one lookup, so the first stream stands in for the others. */
static void streams_that_fill_the_table_are_looked_at(void **state)
{
    (void)state;
    steps_begin(1);
    assert_int_equal(steps_add(1, -1), LEAT_OK);
    steps_turn(1);
    steps_did("lookup s;");
    struct leat_producer_engine *engine = steps.engine;
    for (uint32_t i = 1; i < LEAT_GATHER_STREAMS_MAX; i++) {
        assert_null(engine->streams[i]);
        engine->streams[i] = engine->streams[0];
    }
    steps_turn(STEPS_TIMEOUT_US);
    steps_did("#1 TIMEOUT 'could not be sent within 500 ms: no server answered';");
    for (uint32_t i = 1; i < LEAT_GATHER_STREAMS_MAX; i++)
        engine->streams[i] = NULL;
    steps_end();
    steps_did("no lookup;");
}

/* Goal: an engine with as many streams as there may be ends, and no stream is looked for behind the table. */
static void engine_with_a_full_table_ends(void **state)
{
    (void)state;
    steps_begin(1);
    unsigned refused = 0;
    for (unsigned i = 0; i <= LEAT_GATHER_STREAMS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        refused += leat_producer_engine_add(steps.engine, name, -1, 0, NULL, 0, "v", 1, NULL,
                                            NULL) == LEAT_E_TOO_MANY;
    }
    assert_int_equal(refused, 1);
    assert_int_equal(steps.engine->gather->stream_count, LEAT_GATHER_STREAMS_MAX);
    steps_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_first_record_asks_for_stream_and_id),
        cmocka_unit_test(streams_take_turns),
        cmocka_unit_test(streams_log_is_by_the_number),
        cmocka_unit_test(streams_refused_one_is_asked_again_later),
        cmocka_unit_test(streams_what_waits_has_its_time),
        cmocka_unit_test(streams_that_change_are_adopted),
        cmocka_unit_test(streams_streamlet_that_is_gone_is_refused),
        cmocka_unit_test(streams_id_is_asked_for_until_it_is_there),
        cmocka_unit_test(streams_engine_comes_round_in_time),
        cmocka_unit_test(streams_engine_does_not_come_round_for_what_is_over),
        cmocka_unit_test(streams_without_memory_are_looked_up_again),
        cmocka_unit_test(streams_batch_is_held_while_its_log_has_enough),
        cmocka_unit_test(streams_longest_name_is_looked_up_whole),
        cmocka_unit_test(streams_that_fill_the_table_are_looked_at),
        cmocka_unit_test(engine_with_a_full_table_ends),
    };
    return cmocka_run_group_tests_name("producer streams", tests, NULL, NULL);
}
