/* SPDX-License-Identifier: Apache-2.0 */
/* Where the copies of a log's segments lie, by describe.c alone: each field, from which segment on, how many at most,
 * and who answers. */
#include "broker/admin/calls.h"
#include "tests/broker/describe_rig.h"

static void call_segments(uint32_t fields, uint64_t streamlet, uint64_t log, uint64_t from)
{
    uint8_t body[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, fields);
    leat_msg_write_string(&writer, "orders", 6);
    leat_msg_write_u64(&writer, streamlet);
    leat_msg_write_u64(&writer, log);
    leat_msg_write_u64(&writer, from);
    if (fields > 4) leat_msg_write_u64(&writer, 5); /* of a later version */
    calls.kind = LEAT_KIND_SEGMENTS;
    calls.log = (struct leat_log_ref){ALONE_STREAM, (uint32_t)streamlet, (uint32_t)log};
    alone_call(leat_call_segments, &writer);
}

/* So many segments, 10 and up, each with a copy on c. */
static void holds(uint32_t count)
{
    it.partition[1][0].copies = (void *)&it.status;
    it.segment_count = count;
    for (uint32_t i = 0; i < count; i++)
        it.segments[i] = (struct leat_rep_segment_status){
            .segment.v = 10 + i, .wanted = 2, .count = 1, .copies = {{.node = 2, .bytes = i}}};
}

/* Reads an answer of so many segments, the first of which is that one. Is there more? */
static bool more_than(uint32_t count, uint64_t first)
{
    struct leat_msg_reader reader;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    assert_int_equal(leat_msg_read_array(&reader), count);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_segment segment;
        struct leat_msg_segment_copy copy;
        leat_msg_segment_read(&reader, &segment);
        assert_int_equal(segment.id, first + i);
        assert_int_equal(segment.copy_count, 1);
        leat_msg_segment_copy_read(&reader, &copy);
        assert_int_equal(copy.bytes, first - 10 + i);
    }
    bool more = leat_msg_read_bool(&reader);
    assert_true(leat_msg_read_done(&reader));
    return more;
}

static void segments_are_listed_by_the_core_of_their_log(void **state)
{
    (void)state;
    begin();
    it.partition[1][0].copies = (void *)&it.status;
    it.segment_count = 3;
    it.segments[0] =
        (struct leat_rep_segment_status){.segment.v = 3,
                                         .closed = true,
                                         .wanted = 2,
                                         .count = 2,
                                         .copies = {{.node = 1, .complete = true, .bytes = 5000},
                                                    {.node = 2, .closed = true, .bytes = 7}}};
    it.segments[1] = (struct leat_rep_segment_status){.segment.v = 5,
                                                      .misplaced = true,
                                                      .wanted = 1,
                                                      .count = 1,
                                                      .copies = {{.node = 0, .hibernated = true}}};
    it.segments[2] = (struct leat_rep_segment_status){.segment.v = 6};
    call_segments(4, 1, 0, 3);
    alone_deliver_all();
    assert_said("find orders/1/0\nmail to 0\nmail to 1\nanswer\n");
    static const struct leat_msg_segment segments[] = {
        {3, true, false, 2, 2}, {5, false, true, 1, 1}, {6, false, false, 0, 0}};
    static const struct leat_msg_segment_copy copies[] = {{{"b", 1}, true, false, false, 5000},
                                                          {{"c", 1}, false, true, false, 7},
                                                          {{"n1", 2}, false, false, true, 0}};
    struct leat_msg_reader reader;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    assert_int_equal(leat_msg_read_array(&reader), 3);
    for (unsigned i = 0, at = 0; i < 3; i++) {
        struct leat_msg_segment segment;
        leat_msg_segment_read(&reader, &segment);
        assert_int_equal(segment.id, segments[i].id);
        assert_int_equal(segment.closed, segments[i].closed);
        assert_int_equal(segment.misplaced, segments[i].misplaced);
        assert_int_equal(segment.wanted, segments[i].wanted);
        assert_int_equal(segment.copy_count, segments[i].copy_count);
        for (uint32_t c = 0; c < segment.copy_count; c++, at++) {
            struct leat_msg_segment_copy copy;
            leat_msg_segment_copy_read(&reader, &copy);
            assert_int_equal(copy.node.bytes, copies[at].node.bytes);
            assert_memory_equal(copy.node.text, copies[at].node.text, copy.node.bytes);
            assert_int_equal(copy.complete, copies[at].complete);
            assert_int_equal(copy.closed, copies[at].closed);
            assert_int_equal(copy.hibernated, copies[at].hibernated);
            assert_int_equal(copy.bytes, copies[at].bytes);
        }
    }
    assert_false(leat_msg_read_bool(&reader));
    assert_true(leat_msg_read_done(&reader));
    end();
}

static void segments_are_listed_from_one_on(void **state)
{
    (void)state;
    begin();
    holds(5);
    call_segments(5, 1, 0, 12);
    alone_deliver_all();
    assert_false(more_than(3, 12));
    call_segments(4, 1, 0, 15);
    alone_deliver_all();
    assert_false(more_than(0, 15));
    holds(LEAT_SEGMENT_ROWS_MAX);
    call_segments(4, 1, 0, 0);
    alone_deliver_all();
    assert_false(more_than(LEAT_SEGMENT_ROWS_MAX, 10));
    holds(LEAT_SEGMENT_ROWS_MAX + 1);
    call_segments(4, 1, 0, 0);
    alone_deliver_all();
    assert_true(more_than(LEAT_SEGMENT_ROWS_MAX, 10));
    call_segments(4, 1, 0, 11);
    alone_deliver_all();
    assert_false(more_than(LEAT_SEGMENT_ROWS_MAX, 11));
    it.partition[1][0].copies = NULL; /* this node's are the only ones */
    call_segments(4, 1, 0, 0);
    alone_deliver_all();
    assert_false(more_than(0, 0));
    end();
}

static void segments_are_refused(void **state)
{
    (void)state;
    begin();
    call_segments(3, 1, 0, 0);
    assert_said("refuse INVALID: segments are asked for as [name, streamlet, log, from segment]\n");
    call_segments(4, UINT64_C(1) << 32, 0, 0);
    assert_said("refuse INVALID: segments are asked for as [name, streamlet, log, from segment]\n");
    calls.not_kept = true;
    call_segments(4, 1, 0, 0);
    assert_said("refuse TOO_LARGE: too long\n");
    calls.not_kept = false;
    calls.none = true;
    call_segments(4, 1, 0, 0);
    assert_said("");
    calls.none = false;
    for (unsigned i = 1; i <= 2; i++) {
        leat_mem_fail_at(i);
        call_segments(4, 1, 0, 0);
        leat_mem_fail_at(0);
        assert_true(said_one("find "));
        assert_true(said_one("refuse AGAIN"));
        assert_said("");
    }
    /* It goes, or it has not come yet. */
    it.partition[1][0].state = LEAT_PARTITION_GOES;
    for (unsigned i = 0; i < 2; i++) {
        call_segments(4, 1, 0, 0);
        alone_deliver_all();
        assert_said("find orders/1/0\nmail to 0\nmail to 1\n"
                    "refuse STARTING: the log is not ready here: it is being made, moved or taken "
                    "over, or the server "
                    "stops; try again\n");
        it.partition[1][0].core = NULL;
    }
    end();
}

static void segments_are_asked_for_again(void **state)
{
    (void)state;
    begin();
    holds(1);
    calls.no_log = true;
    call_segments(4, 1, 0, 0);
    assert_said("find orders/1/0\n");
    calls.no_log = false;
    calls.seek->on_again(calls.seek);
    alone_deliver_all();
    assert_said("find orders/1/0\nmail to 0\nmail to 1\nanswer\n");
    assert_false(more_than(1, 10));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_listed_by_the_core_of_their_log),
        cmocka_unit_test(segments_are_listed_from_one_on),
        cmocka_unit_test(segments_are_refused),
        cmocka_unit_test(segments_are_asked_for_again),
    };
    return cmocka_run_group_tests_name("broker segments", tests, NULL, NULL);
}
