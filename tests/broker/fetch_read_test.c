/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of a fetch, by fetch_read.c alone: what each log is asked for, and what becomes of the log's answer. */
#include "tests/broker/fetch_read_rig.h"

/* ---- a run of batches ---- */

static void run_of_batches_is_read(void **state)
{
    (void)state;
    begin(1, 0);
    it.pins = true;
    run();
    assert_said("read 7/1/0 from 40, 600 bytes\n");
    const struct leat_msg_fetched *result = &it.items[0].result;
    assert_null(it.fetch.at);
    assert_int_equal(result->code, LEAT_OK);
    assert_int_equal(result->bytes, 200);
    assert_int_equal(result->first_offset, 5);
    assert_int_equal(result->acked_offset, 60);
    assert_int_equal(result->next.segment, 20);
    assert_int_equal(result->resume, 0);
    assert_int_equal(it.items[0].watch_from, 60);
    assert_int_equal(it.fetch.bytes, 200);
    assert_int_equal(it.fetch.records, 7);
    assert_false(it.fetch.refused || it.fetch.full);
    assert_non_null(it.fetch.reads);
    assert_ptr_equal(it.fetch.reads_last, it.fetch.reads);
    leat_fetch_drop_reads(&it.fetch);
    assert_said("unpin\n");
    end();
}

/* Goal: the next run of the same log follows, as long as it comes from memory and there is room; each run goes on where
 * the run before ended. */
static void runs_follow_each_other(void **state)
{
    (void)state;
    begin(1, 0);
    it.acked = 500;
    run();
    assert_said("read 7/1/0 from 40, 600 bytes\n"
                "read 7/1/0 from 60, 400 bytes, strict\n"
                "read 7/1/0 from 60, 200 bytes, strict\n"); /* and then it has what it may have */
    assert_int_equal(it.items[0].result.bytes, 600);
    assert_int_equal(it.fetch.bytes, 600);
    assert_int_equal(it.fetch.records, 21);
    assert_ptr_equal(it.fetch.reads->next->next, it.fetch.reads_last);
    end();
}

static void runs_end_with_their_reasons(void **state)
{
    (void)state;
    enum { ALL, FETCH_FULL, ITEM_FULL, AT_THE_END, FROM_DISK, GROUP, SAME_GROUP, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin(1, 0);
        it.acked = 61;
        if (i == FETCH_FULL) it.fetch.bytes_max = 200;
        if (i == ITEM_FULL) it.items[0].max_bytes = 200;
        if (i == AT_THE_END) it.acked = 60;
        if (i == FROM_DISK) it.fetch.buffer = leat_buffer_try(&alone.cores[0]);
        if (i == GROUP || i == SAME_GROUP) {
            it.items[0].want.by_position = true;
            it.items[0].want.position = (struct leat_position){i == GROUP ? 2 : 1, 20, 10};
        }
        assert_true(leat_fetch_read_at(&it.fetch));
        bool goes_on = i == ALL || i == SAME_GROUP;
        assert_ptr_equal(it.fetch.at, goes_on ? &it.items[0] : NULL);
        it.fetch.at = NULL;
        end();
    }
}

/* Goal: each run is by position where that is asked for: by offset a further run may be of the next segment group. */
static void each_run_is_by_position(void **state)
{
    (void)state;
    begin(1, 0);
    it.items[0].want.by_position = true;
    it.items[0].want.position = it.items[0].result.next = (struct leat_position){1, 20, 10};
    it.acked = 61;
    it.items[0].max_bytes = 300;
    run();
    assert_said("read 7/1/0 from position 10, 300 bytes\n"
                "read 7/1/0 from position 30, 100 bytes, strict\n");
    end();
}

/* Goal: limits of the request and of the log both hold. */
static void limits_hold(void **state)
{
    (void)state;
    begin(3, 0);
    it.partition[1].ref.log = 1;
    it.items[1].home = 0, it.items[1].want.log.log = 0;
    it.items[0].max_bytes = 200, it.items[1].max_bytes = 900, it.items[2].max_bytes = 900;
    it.fetch.bytes_max = 500;
    run();
    assert_said("read 7/1/0 from 40, 200 bytes\nread 7/1/0 from 41, 300 bytes, strict\n"
                "read 7/1/0 from 42, 100 bytes, strict\n");
    it.fetch.at = NULL;
    end();
    begin(1, 0);
    it.fetch.bytes = 1001; /* more than it may have: the first batch goes out whatever its size */
    run();
    assert_said(""); /* the ends alone, which are known */
    assert_int_equal(it.items[0].result.acked_offset, 60);
    end();
}

/* Goal: a batch that would be too much is left for the next request. */
static void full_answer_takes_no_more(void **state)
{
    (void)state;
    begin(2, 0);
    it.items[1].home = 0, it.items[1].want.log.log = 0;
    it.full = true;
    it.bytes = 0;
    run();
    assert_null(it.fetch.at); /* all logs are asked all the same */
    assert_true(it.fetch.full);
    assert_int_equal(it.fetch.bytes, 0);
    assert_null(it.fetch.reads);
    assert_int_equal(it.items[0].result.next.segment, 0);
    end();
}

/* ---- nothing ---- */

/* Goal: where offsets jump, or nothing is left of a group, the place moves on all the same. Records after a jump are
 * waited for. */
static void empty_run_moves_the_place(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin(1, 0);
        it.bytes = 0;
        if (i == 1) it.next = 40;
        if (i == 4) it.items[0].max_bytes = 1;
        if (i == 2) it.items[0].want.by_position = true;
        if (i == 3) it.items[0].max_bytes = 0; /* its ends alone */
        run();
        assert_int_equal(it.items[0].result.next.segment, i == 3 ? 0 : 20);
        assert_int_equal(it.items[0].result.resume, i == 0 || i == 4 ? 60 : 0);
        assert_int_equal(it.items[0].watch_from, i == 0 || i == 4 ? 60 : 0); /* 0: as it was */
        assert_null(it.fetch.reads);
        assert_int_equal(it.fetch.records, 0);
        end();
    }
}

/* Goal: where nothing is read, the request knows whether the log waits for its end; not where the reader is before the
 * end of what is stored and the answer has no room, where the read is refused, nor where something is read. Of a reader
 * by position the read says where it ended: the next batch may be too large for the answer, or the next records may be
 * in another group. A byte is room: a batch may be larger than the room. */
static void end_that_is_missing_is_known(void **state)
{
    (void)state;
    enum { SERVES, WAITS, READ, REFUSED, BEFORE, ENDS, POSITION };
    enum { BYTE = POSITION + 1, POSITION_ENDS, POSITION_FULL, OTHER_GROUP, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin(1, 0);
        it.log_state = i == SERVES ? LEAT_LOG_SERVING : LEAT_LOG_WAITING;
        it.acked = i == BEFORE ? 41 : 40;
        it.next = i == POSITION_FULL || i == OTHER_GROUP ? 39 : 40;
        it.full = i == POSITION_FULL;
        if (i != READ) it.bytes = 0;
        if (i == REFUSED) it.rc = LEAT_E_DAMAGED;
        if (i == BEFORE || i == ENDS || i == POSITION_ENDS) it.items[0].max_bytes = 0;
        if (i == BYTE) it.items[0].max_bytes = 1;
        it.items[0].want.by_position = i >= POSITION;
        if (i >= POSITION) it.items[0].want.offset = 0;
        assert_true(leat_fetch_read_at(&it.fetch));
        bool missing = i == WAITS || i == ENDS || i == POSITION || i == BYTE;
        assert_int_equal(it.items[0].end_missing, missing);
        it.fetch.at = NULL;
        end();
    }
}

static void log_that_is_refused_is_told(void **state)
{
    (void)state;
    enum { ROUTED, GONE, GOING, DAMAGED, RANGE, HOPED, CASES };
    static const leat_err codes[CASES] = {
        LEAT_E_NOT_OWNER,           LEAT_E_STARTING, LEAT_E_STARTING, LEAT_E_DAMAGED,
        LEAT_E_OFFSET_OUT_OF_RANGE, LEAT_E_AGAIN};
    for (unsigned i = 0; i < CASES; i++) {
        begin(2, 0);
        it.items[1].home = 0, it.items[1].want.log.log = 0;
        it.absent = LEAT_E_STARTING;
        if (i == ROUTED) it.items[0].refused = LEAT_E_NOT_OWNER;
        if (i == GONE) it.gone = true;
        if (i == GOING) it.partition[0].state = LEAT_PARTITION_GOES;
        if (i == DAMAGED || i == HOPED) it.rc = LEAT_E_DAMAGED;
        if (i == HOPED) it.hope = LEAT_E_AGAIN;
        if (i == RANGE) it.rc = LEAT_E_OFFSET_OUT_OF_RANGE;
        assert_true(leat_fetch_read_at(&it.fetch));
        const struct leat_msg_fetched *result = &it.items[0].result;
        assert_ptr_equal(it.fetch.at, &it.items[1]);
        assert_true(it.fetch.refused);
        assert_int_equal(result->code, codes[i]);
        assert_int_equal(result->resume, i == DAMAGED ? 60 : 0);
        bool asked = i >= DAMAGED;
        assert_int_equal(result->first_offset, asked ? 5 : 0);
        assert_int_equal(result->acked_offset, asked ? 60 : 0);
        assert_int_equal(result->next.segment, 0); /* the place stays */
        assert_null(it.fetch.reads);
        it.fetch.at = NULL;
        end();
    }
}

/* Goal: behind batches nothing is said of what was given up: the next request hears it. */
static void empty_run_behind_batches_says_nothing(void **state)
{
    (void)state;
    begin(1, 0);
    it.acked = 500;
    assert_true(leat_fetch_read_at(&it.fetch));
    it.bytes = 0;
    it.next = 90;
    it.group = 3;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_null(it.fetch.at);
    assert_int_equal(it.items[0].result.resume, 0);
    assert_int_equal(it.items[0].result.next.group, 1);
    assert_int_equal(it.items[0].result.bytes, 200);
    end();
}

/* Goal: batches that were read before a refusal go out, and the next request is told of the refusal. */
static void refusal_behind_batches_is_left_to_the_next_request(void **state)
{
    (void)state;
    begin(1, 0);
    it.acked = 61;
    assert_true(leat_fetch_read_at(&it.fetch));
    it.rc = LEAT_E_DAMAGED;
    assert_true(leat_fetch_read_at(&it.fetch));
    assert_null(it.fetch.at);
    assert_false(it.fetch.refused);
    assert_int_equal(it.items[0].result.code, LEAT_OK);
    assert_int_equal(it.items[0].result.bytes, 200);
    end();
}

/* ---- later, and elsewhere ---- */

static void run_that_ends_later_goes_on(void **state)
{
    (void)state;
    for (uint32_t log = 0; log < 2; log++) {
        begin(2, log);
        it.later = it.reads_wait = true;
        assert_false(leat_fetch_read_at(&it.fetch));
        if (log == 1) {
            assert_said("mail to 1\n");
            alone_deliver();
        }
        assert_said(log == 0 ? "read 7/1/0 from 40, 600 bytes\nwatch 7/1/0\n"
                             : "read 7/1/1 from 40, 600 bytes\nwatch 7/1/1\n");
        it.later = it.reads_wait = false;
        it.acked = 59; /* as it is by then */
        ends_later();
        if (log == 1) {
            assert_said("mail to 0\n");
            alone_deliver();
            assert_said("read 7/1/0 from 41, 600 bytes, strict\nfinish\n");
        } else {
            assert_said("mail to 1\n");
            alone_deliver_all();
            assert_said("read 7/1/1 from 41, 600 bytes, strict\nmail to 0\nfinish\n");
        }
        assert_int_equal(it.items[0].result.acked_offset, 59);
        assert_int_equal(it.fetch.bytes, 400);
        end();
    }
}

/* Goal: what is there is hoped for only of the log that was read. */
static void damage_that_is_found_later_is_hoped_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin(1, 0);
        it.later = true;
        assert_false(leat_fetch_read_at(&it.fetch));
        it.rc = LEAT_E_DAMAGED;
        it.hope = LEAT_E_STARTING;
        if (i == 1) it.gone = true;
        if (i == 2) it.partition[0].log = (void *)&it;
        ends_later();
        assert_int_equal(it.items[0].result.code, i == 0 ? LEAT_E_STARTING : LEAT_E_DAMAGED);
        end();
    }
}

/* Goal: a fetch of the ends of a log alone does not wait where the ends are known. */
static void ends_of_a_log_are_awaited(void **state)
{
    (void)state;
    begin(1, 0);
    it.items[0].max_bytes = 0;
    it.front_unknown = it.later = true;
    assert_false(leat_fetch_read_at(&it.fetch));
    assert_said("await the front of 7/1/0 from 40, 0 bytes\n");
    ends_later();
    assert_said("finish\n");
    assert_int_equal(it.items[0].result.first_offset, 5);
    end();
}

/* ---- older segments ---- */

/* Goal: what may come is looked for when it is read, at most once a second, and the read waits for it. */
static void missing_segment_is_looked_for(void **state)
{
    (void)state;
    enum { LOOKS, NOT_NOW, NOT_ASKED, NOT_LACKING, TOO_SOON, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin(1, 0);
        it.rc = LEAT_E_DAMAGED;
        it.lacks = i != NOT_LACKING;
        if (i != NOT_ASKED) it.partition[0].backfill = LEAT_BACKFILL_DUE;
        it.older_found = i != NOT_NOW;
        it.partition[0].backfill_looked_us = i == TOO_SOON ? 1 : 0;
        alone.now_us = LEAT_OLDER_READ_US;
        bool looks = i == LOOKS || i == NOT_NOW;
        bool done = leat_fetch_read_at(&it.fetch);
        assert_true(done);
        static const char *const expected[CASES] = {
            "read 7/1/0 from 40, 600 bytes\nreads wait again\nlook for older ones of 7/1/0\n"
            "read 7/1/0 from 40, 600 bytes\n",
            "read 7/1/0 from 40, 600 bytes\nreads wait again\nlook for older ones of 7/1/0\n"
            "older ones done\nread 7/1/0 from 40, 600 bytes\n",
            "read 7/1/0 from 40, 600 bytes\n", "read 7/1/0 from 40, 600 bytes\n",
            "read 7/1/0 from 40, 600 bytes\n"};
        assert_said(expected[i]);
        assert_int_equal(it.partition[0].backfill_looked_us, looks           ? alone.now_us
                                                             : i == TOO_SOON ? 1
                                                                             : 0);
        it.fetch.at = NULL;
        end();
    }
}

static void read_waits_for_the_missing_segment(void **state)
{
    (void)state;
    begin(1, 0);
    it.rc = LEAT_E_DAMAGED;
    it.lacks = it.older_found = true;
    it.partition[0].backfill = LEAT_BACKFILL_DUE;
    it.reads_wait = true;
    alone.now_us = LEAT_OLDER_READ_US;
    it.second_later = true;
    assert_false(leat_fetch_read_at(&it.fetch));
    assert_said("read 7/1/0 from 40, 600 bytes\nreads wait again\nlook for older ones of 7/1/0\n"
                "read 7/1/0 from 40, 600 bytes\nwatch 7/1/0\n");
    it.rc = LEAT_OK;
    ends_later();
    assert_said("finish\n");
    assert_int_equal(it.items[0].result.bytes, 200);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_of_batches_is_read),
        cmocka_unit_test(runs_follow_each_other),
        cmocka_unit_test(runs_end_with_their_reasons),
        cmocka_unit_test(each_run_is_by_position),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(full_answer_takes_no_more),
        cmocka_unit_test(empty_run_moves_the_place),
        cmocka_unit_test(end_that_is_missing_is_known),
        cmocka_unit_test(log_that_is_refused_is_told),
        cmocka_unit_test(empty_run_behind_batches_says_nothing),
        cmocka_unit_test(refusal_behind_batches_is_left_to_the_next_request),
        cmocka_unit_test(run_that_ends_later_goes_on),
        cmocka_unit_test(damage_that_is_found_later_is_hoped_for),
        cmocka_unit_test(ends_of_a_log_are_awaited),
        cmocka_unit_test(missing_segment_is_looked_for),
        cmocka_unit_test(read_waits_for_the_missing_segment),
    };
    return cmocka_run_group_tests_name("broker fetch_read", tests, NULL, NULL);
}
