/* SPDX-License-Identifier: Apache-2.0 */
/* LOCATE, by locate.c alone: what is asked for, and in which words it is refused. */
#include "tests/broker/locate_rig.h"

static struct leat_msg_locate wanted(uint32_t what, int64_t value, struct leat_position position)
{
    return (struct leat_msg_locate){
        .log = {ALONE_STREAM, 1, 1}, .what = what, .value = value, .position = position};
}

static void asks(const struct leat_msg_locate *rows, uint32_t count, uint32_t said_count)
{
    static uint8_t bytes[64 * 1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, said_count);
    for (uint32_t i = 0; i < count; i++)
        leat_msg_locate_write(&writer, &rows[i]);
    alone_call(leat_call_locate, &writer);
}

/* One place is asked for, and the answer has these words. */
static void assert_located(const struct leat_msg_locate *row, const char *words)
{
    struct leat_msg_reader reader;
    struct leat_msg_located found;
    char got[512];
    asks(row, 1, 1);
    alone_deliver_all();
    said_enough();
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 1);
    leat_msg_located_read(&reader, &found);
    assert_false(reader.failed);
    snprintf(got, sizeof got, "%s %llu %lld %u %.*s", leat_err_name(found.code),
             (unsigned long long)found.offset, (long long)found.timestamp_ms,
             found.position.position, (int)found.text.bytes, found.text.text);
    assert_string_equal(got, words);
}

static void located_is_answered(void **state)
{
    (void)state;
    begin();
    const struct leat_msg_locate row = wanted(LEAT_LOCATE_TIME, 5, (struct leat_position){0, 0, 0});
    assert_located(&row, "OK 1005 2005 99 ");
    end();
}

/* Goal: all are answered, in order, up to the limit. */
static void many_are_answered(void **state)
{
    (void)state;
    begin();
    static struct leat_msg_locate rows[LEAT_LOCATE_LOGS_MAX + 1];
    for (unsigned i = 0; i <= LEAT_LOCATE_LOGS_MAX; i++)
        rows[i] = wanted(LEAT_LOCATE_OFFSET, 10 + i, (struct leat_position){0, 0, 0});
    asks(rows, LEAT_LOCATE_LOGS_MAX, LEAT_LOCATE_LOGS_MAX);
    while (alone_deliver())
        said_enough();
    struct leat_msg_reader reader;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), LEAT_LOCATE_LOGS_MAX);
    for (unsigned i = 0; i < LEAT_LOCATE_LOGS_MAX; i++) {
        struct leat_msg_located found;
        leat_msg_located_read(&reader, &found);
        assert_int_equal(found.offset, 1010 + i);
    }
    assert_true(leat_msg_read_done(&reader));
    asks(rows, LEAT_LOCATE_LOGS_MAX + 1, LEAT_LOCATE_LOGS_MAX + 1);
    assert_said_first("refuse INVALID: a locate names 1 to 1024 logs as");
    end();
}

static void offset_that_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    begin();
    it.rc = LEAT_E_OFFSET_OUT_OF_RANGE;
    const struct leat_msg_locate row =
        wanted(LEAT_LOCATE_OFFSET, 5, (struct leat_position){0, 0, 0});
    assert_located(&row,
                   "OFFSET_OUT_OF_RANGE 1005 2005 99 stream 7 streamlet 1 log 1 has no offset 5: "
                   "the nearest is 1005");
    end();
}

/* The log goes from 1/16/0 to 2/40/50. */
static void place_that_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        struct leat_position place;
        const char *why;
    } rows[] = {
        {{1, 17, 3}, "no batch begins there"},
        {{1, 16, 3}, "no batch begins there, or none any more"},
        {{2, 17, 3}, "segment 17 is of segment group 1"},
        {{0, 15, 3}, "it was given up, or retention dropped it"},
        {{2, 40, 50}, "no batch begins there"},
        {{2, 40, 51}, "that is behind the end"},
        {{2, 41, 0}, "that is behind the end"},
        {{2, 39, 99}, "no batch begins there"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        it.rc = LEAT_E_OFFSET_OUT_OF_RANGE;
        const struct leat_msg_locate row = wanted(LEAT_LOCATE_POSITION, 0, rows[i].place);
        char words[512];
        snprintf(words, sizeof words,
                 "OFFSET_OUT_OF_RANGE 1000 2000 99 nothing at %llu/%llu/%u: %s; the log goes from "
                 "1/16/0 "
                 "to 2/40/50",
                 (unsigned long long)rows[i].place.group, (unsigned long long)rows[i].place.segment,
                 rows[i].place.position, rows[i].why);
        assert_located(&row, words);
        end();
    }
}

/* Goal: a refusal has the words of the log's state at the time of the answer. */
static void log_that_is_not_here_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const words[] = {
        "NOT_OWNER 0 0 0 not here",
        "STARTING 1005 2005 99 it comes",
        "UNKNOWN_STREAM 1005 2005 99 it has gone",
        "DAMAGED 1005 2005 99 ",
    };
    for (unsigned i = 0; i < 4; i++) {
        begin();
        if (i == 0) it.place = LEAT_E_NOT_OWNER;
        if (i == 1) it.rc = LEAT_E_STARTING;
        if (i == 2) it.rc = LEAT_E_UNKNOWN_STREAM;
        if (i == 3) it.rc = LEAT_E_DAMAGED;
        const struct leat_msg_locate row =
            wanted(LEAT_LOCATE_LATEST, 5, (struct leat_position){0, 0, 0});
        assert_located(&row, words[i]);
        const struct leat_msg_locate place =
            wanted(LEAT_LOCATE_POSITION, 5, (struct leat_position){0, 0, 0});
        static const char *const of_place[] = {
            "NOT_OWNER 0 0 0 not here", "STARTING 1000 2000 99 it comes",
            "UNKNOWN_STREAM 1000 2000 99 it has gone", "DAMAGED 1000 2000 99 "};
        assert_located(&place, of_place[i]);
        end();
    }
}

static void malformed_call_is_refused(void **state)
{
    (void)state;
    static const char invalid[] =
        "refuse INVALID: a locate names 1 to 1024 logs as [[stream, streamlet, "
        "log, what, value]...]\n";
    begin();
    const struct leat_msg_locate row =
        wanted(LEAT_LOCATE_OFFSET, 5, (struct leat_position){0, 0, 0});
    asks(&row, 1, 0);
    assert_said(invalid);
    asks(&row, 1, LEAT_LOCATE_LOGS_MAX + 1);
    assert_said(invalid);
    asks(&row, 1, 2); /* which is not there */
    assert_said("refuse INVALID: malformed list of logs in a locate\n");
    uint8_t byte = 0x07;
    struct leat_msg_writer writer = {.bytes = &byte, .used = 1, .capacity = 1};
    alone_call(leat_call_locate, &writer);
    assert_said(invalid);
    for (unsigned n = 1; n <= 3; n++) {
        leat_mem_fail_at(n);
        asks(&row, 1, 1);
        leat_mem_fail_at(0);
        assert_said("refuse AGAIN\n");
    }
    calls.none = true;
    asks(&row, 1, 1);
    assert_said("");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(located_is_answered),
        cmocka_unit_test(many_are_answered),
        cmocka_unit_test(offset_that_is_not_there_is_refused_by_name),
        cmocka_unit_test(place_that_is_not_there_is_refused_by_name),
        cmocka_unit_test(log_that_is_not_here_is_refused_by_name),
        cmocka_unit_test(malformed_call_is_refused),
    };
    return cmocka_run_group_tests_name("broker locate_call", tests, NULL, NULL);
}
