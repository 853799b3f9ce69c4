/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are larger than their stream takes by now: into which pieces a batch is cut, which callers are told
 * then, what happens without memory, and which batches are not cut. On the rig of steps_test.c. */
#include "tests/producer/steps_rig.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { TWO_RECORDS = 61 + 2 * 11 };

static void takes(uint32_t bytes)
{
    steps.engine->streams[0]->gathered->batch_bytes_max = bytes;
}

static bool pool_is_whole(void)
{
    const struct leat_gather *gather = steps.engine->gather;
    return gather->free_count == gather->batch_count && gather->big_bytes == 0;
}

/* Adds a record without a callback. */
static void add_unheard(uint32_t n)
{
    uint8_t value[4] = {(uint8_t)n};
    assert_int_equal(leat_producer_engine_add(steps.engine, "s", -1, 0, NULL, 0, value,
                                              sizeof value, NULL, NULL),
                     LEAT_OK);
}

/* Goal: a caller that asked for the result of a record learns the record's offset, also when the record is in a later
 * piece of a cut batch; nothing is reported for a record without a callback. */
static void cut_tells_of_records_where_they_are(void **state)
{
    (void)state;
    for (unsigned heard = 0; heard < 2; heard++) {
        steps_ready(0, 1);
        for (uint32_t n = 1; n <= 6; n++)
            if (heard && (n == 2 || n == 3 || n == 6))
                assert_int_equal(steps_add(n, -1), LEAT_OK);
            else
                add_unheard(n);
        leat_producer_engine_flush(steps.engine);
        takes(TWO_RECORDS);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+1#1,2 100.3+3#3,4 100.3+5#5,6;");
        steps_answer(all_ok, 20, NULL);
        steps_did(heard ? "#2 at 21;#3 at 21;#6 at 23;" : "");
        steps_turn(1);
        assert_int_equal(leat_producer_engine_open_records(steps.engine), 0);
        assert_true(pool_is_whole());
        steps_end();
    }
}

/* Goal: a piece takes as many records as fit; a record that is too large by itself is a piece of its own, in its place
 * in the order. */
static void cut_makes_pieces_as_large_as_may_be(void **state)
{
    (void)state;
    steps_ready(0, 1);
    add(1, 10, -1);
    assert_int_equal(steps_add_sized(11, -1, 500), LEAT_OK);
    assert_int_equal(steps_add(12, -1), LEAT_OK);
    leat_producer_engine_flush(steps.engine);
    takes(61 + 8 * 11);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+1#1,2,3,4,5,6,7,8 100.3+9#9,10 100.3+11#11 100.3+12#12;");
    assert_true(steps.engine->gather->big_bytes < 2000);
    steps_answer(all_ok, 20, NULL);
    steps_turn(1);
    assert_true(pool_is_whole());
    steps_end();
}

/* Goal: without memory for the pieces a batch goes as it is, and is cut when it has been refused and there is some;
 * nothing of a try is left. */
static void cut_waits_for_memory(void **state)
{
    (void)state;
    static uint8_t scratch[LEAT_BATCH_BYTES_MAX];
    for (unsigned compressed = 0; compressed < 2; compressed++)
        for (uint64_t at = 1, failed = 1; failed; at++) {
            steps_ready(0, 1);
            if (compressed) {
                steps.engine->options.codec = LEAT_CODEC_LZ4;
                steps.engine->scratch = scratch;
            }
            add(1, 4, -1);
            leat_producer_engine_flush(steps.engine);
            steps_turn(1);
            steps_did("append 5/0/0@40: 100.3+1#1,2,3,4;");
            answer_all(LEAT_E_TOO_LARGE, "too much");
            steps_turn(1000);
            steps_known(5, 1, TWO_RECORDS);
            steps_turn(1);
            steps_id(100, 4);
            steps_did("lookup s;id? 100.3;");
            steps.no_memory = true;
            leat_mem_fail_at(at);
            steps_turn(1);
            leat_mem_fail_at(0);
            steps.no_memory = false;
            failed = steps.appends[0]->payload_count == 1;
            if (failed) {
                steps_did("append 5/0/0@40: 100.4+0#1,2,3,4;");
                answer_all(LEAT_E_TOO_LARGE, "too much");
                steps_turn(2000);
                steps_known(5, 1, TWO_RECORDS);
                steps_turn(1);
                steps_id(100, 5);
                steps_did("lookup s;id? 100.4;");
                steps_turn(1);
            }
            steps_did(failed ? "append 5/0/0@40: 100.5+0#1,2 100.5+2#3,4;"
                             : "append 5/0/0@40: 100.4+0#1,2 100.4+2#3,4;");
            steps_answer(all_ok, 10, NULL);
            steps_did("#1 at 10;#2 at 11;#3 at 11;#4 at 12;");
            steps_turn(1);
            assert_true(pool_is_whole());
            assert_true(failed ||
                        at == 8); /* two pieces of three, and what it is uncompressed into */
            steps.engine->scratch = NULL;
            steps_end();
        }
}

/* Goal: batches under way are not cut, not even the very first batch. */
static void cut_leaves_what_is_under_way(void **state)
{
    (void)state;
    steps_begin(2);
    add(1, 2, -1);
    steps_first(1, 100);
    steps_did("lookup s;id? -1.-1;append 5/0/0@40: 100.3+0#1,2;");
    takes(61 + 12);
    add(3, 10, -1);
    steps_turn(1);
    steps_did("append 5/0/0@40: 100.3+2#3 100.3+3#4 100.3+4#5 100.3+5#6;");
    steps_answer(all_ok, 1, NULL);
    steps_answer(all_ok, 3, NULL);
    steps_turn(1);
    steps_did("#1 at 1;#2 at 2;#3 at 3;#4 at 4;#5 at 5;#6 at 6;append 5/0/0@40: 100.3+6#7 "
              "100.3+7#8 100.3+8#9 100.3+9#10;");
    steps_answer(all_ok, 7, NULL);
    steps_turn(1);
    assert_true(pool_is_whole());
    steps_end();
}

/* Goal: only a refusal as too large cuts a batch. After any other refusal the batch fails with that code; where the
 * stream has no limit, a batch that is too large fails with TOO_LARGE. */
static void cut_is_for_what_is_too_large_alone(void **state)
{
    (void)state;
    static const struct {
        leat_err code;
        uint32_t takes;
    } rows[] = {
        {LEAT_E_INVALID, TWO_RECORDS - 1}, {LEAT_E_TOO_LARGE, 0}, {LEAT_E_TOO_LARGE, TWO_RECORDS}};
    for (unsigned i = 0; i < 3; i++) {
        steps_ready(2, 1);
        add(1, 2, -1);
        steps_turn(1);
        steps_did("append 5/0/0@40: 100.3+1#1,2;");
        takes(rows[i].takes);
        answer_all(rows[i].code, "so it is");
        steps_turn(1000);
        if (rows[i].code == LEAT_E_TOO_LARGE) {
            steps_did("lookup s;");
            steps_known(5, 1, rows[i].takes);
            steps_turn(1);
        }
        char want[200];
        const char *name = leat_err_name(rows[i].code);
        snprintf(want, sizeof want, "#1 %s 'so it is';#2 %s 'so it is';", name, name);
        steps_did(want);
        steps_turn(1);
        assert_true(pool_is_whole());
        steps_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_tells_of_records_where_they_are),
        cmocka_unit_test(cut_makes_pieces_as_large_as_may_be),
        cmocka_unit_test(cut_waits_for_memory),
        cmocka_unit_test(cut_leaves_what_is_under_way),
        cmocka_unit_test(cut_is_for_what_is_too_large_alone),
    };
    return cmocka_run_group_tests_name("producer cut", tests, NULL, NULL);
}
