/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies as other versions write them, and as nobody does: with fields left out, more of them, cut anywhere,
 * and with something behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "replication/control/messages.h"
#include "tests/trace.h"
#include "wire/message.h"

enum { ROOM = 16 * 1024 };

/* Changes an array of `had` fields into an array of `fields`: surplus fields are cut off, one byte each, and missing
 * fields become small numbers. Returns the number of bytes. */
static uint32_t refit(uint8_t bytes[ROOM], uint32_t used, uint32_t had, uint32_t fields)
{
    uint8_t body[ROOM];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, ROOM);
    leat_msg_write_array(&writer, had);
    uint32_t head = writer.used;
    uint32_t cut = had > fields ? had - fields : 0;
    memcpy(body + head, bytes + head, used - head);
    leat_msg_writer_init(&writer, bytes, ROOM);
    leat_msg_write_array(&writer, fields);
    memcpy(bytes + writer.used, body + head, used - head - cut);
    writer.used += used - head - cut;
    for (uint32_t i = had; i < fields; i++)
        leat_msg_write_u64(&writer, 5);
    assert_false(writer.overflow);
    return writer.used;
}

static uint8_t bytes[ROOM];

/* Each prefix of the body is refused, and so is the body with a byte after its end. */
static void only_whole(leat_err (*read)(uint32_t count), uint32_t used)
{
    for (uint32_t i = 0; i < used; i++)
        assert_int_equal(read(i), LEAT_E_INVALID);
    bytes[used] = 1;
    assert_int_equal(read(used + 1), LEAT_E_INVALID);
    assert_int_equal(read(used), LEAT_OK);
}

/* ---- of one replica ---- */
static struct rep_body body;

static leat_err body_read(uint32_t count)
{
    memset(&body, 0xff, sizeof body);
    return rep_body_decode(bytes, count, &body);
}

/* Goal: a field that an earlier version does not have is zero, and a field that only a later version has is skipped. */
static void bodies_of_other_versions_are_read(void **state)
{
    (void)state;
    const struct rep_body said = {
        .handle = 1, .log = {2, 3, 4}, .max_timestamp_ms = -1, .owner = {7}, .passed_bytes = 9};
    for (uint32_t fields = 13; fields <= 18; fields++) {
        uint32_t used = refit(bytes, rep_body_encode(&said, bytes), 16, fields);
        leat_err rc = body_read(used);
        trace("%u: %s", fields, leat_err_name(rc));
        if (!rc)
            trace(" h%u %u/%u/%u %d owner %u passed %u", (unsigned)body.handle, body.log.stream,
                  body.log.streamlet, body.log.log, (int)body.max_timestamp_ms, body.owner.v,
                  body.passed_bytes);
        trace("\n");
        if (!rc) only_whole(body_read, used);
    }
    TRACE_IS("13: INVALID\n"
             "14: OK h1 2/3/4 -1 owner 0 passed 0\n"
             "15: OK h1 2/3/4 -1 owner 7 passed 0\n"
             "16: OK h1 2/3/4 -1 owner 7 passed 9\n"
             "17: OK h1 2/3/4 -1 owner 7 passed 9\n"
             "18: OK h1 2/3/4 -1 owner 7 passed 9\n");
}

static struct rep_pull pull;

static leat_err pull_read(uint32_t count)
{
    memset(&pull, 0, sizeof pull);
    return rep_pull_decode(bytes, count, &pull);
}

/* Goal: the same of what is asked of another backup. */
static void pulls_of_other_versions_are_read(void **state)
{
    (void)state;
    struct rep_pull said = {.log = {2, 3, 4}, .from = 5, .count = 6, .whole = true};
    for (uint32_t fields = 7; fields <= 11; fields++) {
        uint32_t used = refit(bytes, rep_pull_encode(&said, bytes), 9, fields);
        leat_err rc = pull_read(used);
        trace("%u: %s", fields, leat_err_name(rc));
        if (!rc)
            trace(" %u/%u/%u %u+%u%s", pull.log.stream, pull.log.streamlet, pull.log.log, pull.from,
                  pull.count, pull.whole ? " whole" : "");
        trace("\n");
        if (!rc) only_whole(pull_read, used);
    }
    said.whole = false;
    assert_int_equal(pull_read(rep_pull_encode(&said, bytes)), LEAT_OK);
    assert_false(pull.whole);
    TRACE_IS("7: INVALID\n"
             "8: OK 2/3/4 5+6\n"
             "9: OK 2/3/4 5+6 whole\n"
             "10: OK 2/3/4 5+6 whole\n"
             "11: OK 2/3/4 5+6 whole\n");
}

static struct rep_answer answer;

static leat_err answer_read(uint32_t count)
{
    return rep_answer_decode(bytes, count, &answer);
}

static void answers_of_other_versions_are_read(void **state)
{
    (void)state;
    const struct rep_answer said = {1, 2, 3};
    for (uint32_t fields = 2; fields <= 5; fields++) {
        uint32_t used = refit(bytes, rep_answer_encode(&said, bytes), 3, fields);
        leat_err rc = answer_read(used);
        trace("%u: %s\n", fields, leat_err_name(rc));
        if (!rc) only_whole(answer_read, used);
    }
    assert_true(answer.handle == 1 && answer.place == 2 && answer.load_bytes == 3);
    TRACE_IS("2: INVALID\n"
             "3: OK\n"
             "4: OK\n"
             "5: OK\n");
}

/* ---- grants ---- */
static struct rep_attached attached;

static leat_err attached_read(uint32_t count)
{
    memset(&attached, 0, sizeof attached);
    return rep_attached_decode(bytes, count, &attached);
}

static uint32_t attached_write(uint32_t fields, uint32_t grant_bytes)
{
    static const uint8_t grant[LEAT_RMEM_GRANT_BYTES_MAX + 1] = {[0] = 3, [1] = 4};
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, ROOM);
    leat_msg_write_array(&writer, fields);
    leat_msg_write_bin(&writer, grant, grant_bytes);
    for (uint32_t i = 1; i < fields; i++)
        leat_msg_write_u64(&writer, 7 - i);
    return writer.used;
}

/* Goal: a grant is no longer than there is room for, and comes with how full its backup is. */
static void grants_of_other_versions_are_read(void **state)
{
    (void)state;
    for (uint32_t fields = 1; fields <= 5; fields++) {
        uint32_t used = attached_write(fields, 2);
        leat_err rc = attached_read(used);
        trace("%u: %s", fields, leat_err_name(rc));
        if (!rc)
            trace(" %u: %u %u, load %u", attached.grant.bytes, attached.grant.data[0],
                  attached.grant.data[1], (unsigned)attached.load_bytes);
        trace("\n");
        if (!rc) only_whole(attached_read, used);
    }
    TRACE_IS("1: INVALID\n"
             "2: OK 2: 3 4, load 6\n"
             "3: OK 2: 3 4, load 6\n"
             "4: OK 2: 3 4, load 6\n"
             "5: OK 2: 3 4, load 6\n");
    assert_int_equal(attached_read(attached_write(2, LEAT_RMEM_GRANT_BYTES_MAX)), LEAT_OK);
    assert_int_equal(attached.grant.bytes, LEAT_RMEM_GRANT_BYTES_MAX);
    assert_int_equal(attached_read(attached_write(2, LEAT_RMEM_GRANT_BYTES_MAX + 1)),
                     LEAT_E_INVALID);
    assert_int_equal(attached.grant.bytes, 0);
}

/* ---- rows ---- */
static struct rep_pair pairs[LEAT_REP_BATCH_MAX + 1];
static uint32_t pair_count;

static leat_err pairs_read(uint32_t count)
{
    memset(pairs, 0xff, sizeof pairs);
    return rep_pairs_decode(bytes, count, pairs, &pair_count);
}

static uint32_t pairs_write(uint32_t rows, uint32_t fields)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, ROOM);
    leat_msg_write_array(&writer, rows);
    for (uint32_t i = 0; i < rows; i++) {
        leat_msg_write_array(&writer, fields);
        for (uint32_t k = 0; k < fields; k++)
            leat_msg_write_u64(&writer, 3 * i + k);
    }
    assert_false(writer.overflow);
    return writer.used;
}

/* Goal: rows of other versions are read as bodies are; of those that have not come nothing is written. */
static void rows_of_other_versions_are_read(void **state)
{
    (void)state;
    for (uint32_t fields = 1; fields <= 5; fields++) {
        uint32_t used = pairs_write(2, fields);
        leat_err rc = pairs_read(used);
        trace("%u: %s", fields, leat_err_name(rc));
        for (uint32_t i = 0; !rc && i < pair_count; i++)
            trace(" %u=%u/%u", (unsigned)pairs[i].handle, (unsigned)pairs[i].value,
                  pairs[i].passed);
        trace("\n");
        assert_int_equal(pairs[2].handle, UINT64_MAX);
        if (!rc) only_whole(pairs_read, used);
    }
    TRACE_IS("1: INVALID\n"
             "2: OK 0=1/0 3=4/0\n"
             "3: OK 0=1/2 3=4/5\n"
             "4: OK 0=1/2 3=4/5\n"
             "5: OK 0=1/2 3=4/5\n");
    assert_int_equal(pairs_read(pairs_write(3, 2) - 3), LEAT_E_INVALID);
    assert_int_equal(pairs[1].value, 4);
    uint32_t used = pairs_write(3, 2);
    bytes[2] = 0xc0; /* no handle: nil */
    assert_int_equal(pairs_read(used), LEAT_E_INVALID);
    assert_int_equal(pairs[1].handle, UINT64_MAX);
    assert_int_equal(pairs[1].passed, UINT32_MAX);
    assert_int_equal(pairs_read(pairs_write(0, 0)), LEAT_OK);
    assert_int_equal(pair_count, 0);
}

/* Goal: as many as there is room for, and no more. */
static void rows_are_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    assert_int_equal(pairs_read(pairs_write(LEAT_REP_BATCH_MAX, 3)), LEAT_OK);
    assert_int_equal(pair_count, LEAT_REP_BATCH_MAX);
    assert_int_equal(pairs[LEAT_REP_BATCH_MAX - 1].passed, 3 * (LEAT_REP_BATCH_MAX - 1) + 2);
    assert_int_equal(pairs[LEAT_REP_BATCH_MAX].handle, UINT64_MAX);
    assert_int_equal(pairs_read(pairs_write(LEAT_REP_BATCH_MAX + 1, 3)), LEAT_E_TOO_LARGE);
    assert_int_equal(pairs[0].handle, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(bodies_of_other_versions_are_read),
        TRACE_TEST(pulls_of_other_versions_are_read),
        TRACE_TEST(answers_of_other_versions_are_read),
        TRACE_TEST(grants_of_other_versions_are_read),
        TRACE_TEST(rows_of_other_versions_are_read),
        TRACE_TEST(rows_are_no_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
