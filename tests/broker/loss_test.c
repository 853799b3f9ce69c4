/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted loss of a log's end, by recover.c alone: what the coordinators are asked, and what becomes of the log at
 * each of their answers and at whatever happens to it meanwhile. */
#include "broker/data/partition.h"
#include "tests/broker/loss_rig.h"

/* ---- step by step ---- */

static void loss_is_accepted_step_by_step(void **state)
{
    (void)state;
    begin();
    accepts();
    assert_said("wake\n"
                "coordinate loss of 7/1/0, epoch 9, incarnation 100: segment 4 100:7 "
                "next 0, at least 60\n");
    assert_true(leat_partition_goes(&it.partition));
    assert_false(leat_partition_loss_stops(&it.partition));
    coordinators_say(LEAT_OK);
    assert_said("stop the log\n");
    assert_true(leat_partition_loss_stops(&it.partition));
    stopped();
    assert_said("release copies\n");
    idle();
    assert_said("destroy the groups\n"
                "destroy the log\n"
                "detach\n"
                "open, epoch 10, of 2 segments, next 5 at 1000, jumped, older follow\n"
                "node log warn: stream 7, streamlet 1, log 0\n"
                "mail to 1\n");
    assert_false(leat_partition_goes(&it.partition) || leat_partition_loss_stops(&it.partition));
    assert_int_equal(it.partition.seg_count, 2);
    assert_ptr_equal(it.partition.segs[0], &it.segs[0]);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
    assert_int_equal(it.partition.backfill_ticks, LEAT_OLDER_TICKS - 1);
    alone_deliver();
    assert_said("answer\n");
    assert_int_equal(answered_offset(), 1000);
    end();
}

/* Goal: a log of one copy has none to be released. */
static void log_without_copies_is_made_anew_at_once(void **state)
{
    (void)state;
    to_stop();
    it.partition.copies = NULL;
    stopped();
    assert_said_first("destroy the groups\n");
    alone_deliver_all();
    said_enough();
    end();
}

/* Goal: the call names the last segment that is kept and the highest known offset, whichever source knows them. */
static void what_is_left_is_named_by_who_knows_most(void **state)
{
    (void)state;
    static const struct {
        uint64_t highest, count, end, next, acked, found;
        const char *left;
        uint64_t known;
    } rows[] = {
        {4, 2, 4, 40, 50, 60, "segment 4 100:7 next 0", 60},
        {4, 2, 5, 40, 50, 60, "segment 4 100:7 next 0", 60},
        {4, 2, 6, 70, 50, 60, "segment 5 0:0 next 0", 70},
        {4, 1, 6, 70, 50, 60, "segment 5 0:0 next 0", 70},
        {4, 0, 6, 40, 80, 60, "segment 4 100:7 next 0", 80},
        {UINT64_MAX, 2, 4, 40, 50, 0, "segment 3 0:0 next 0", 50},
        {UINT64_MAX, 0, 4, 40, 30, 0, "segment -1 100:7 next 0", 40},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned away = 0; away < 2; away++) {
            begin();
            it.partition.highest_segment = rows[i].highest;
            it.partition.highest_offset = rows[i].found;
            it.info.segment_count = rows[i].count;
            it.info.end_segment = rows[i].end;
            it.info.next_offset = rows[i].next;
            it.info.acked_offset = rows[i].acked;
            it.partition.tail_missing = away;
            accepts();
            char expected[512];
            snprintf(expected, sizeof expected,
                     "wake\ncoordinate loss of 7/1/0, epoch 9, incarnation 100: %s, at "
                     "least %llu%s\n",
                     rows[i].left, (unsigned long long)rows[i].known, away ? ", stands in" : "");
            assert_said(expected);
            coordinators_say(LEAT_E_AGAIN);
            alone_deliver_all();
            said_enough();
            end();
        }
    }
}

/* Goal: segments that are not here, and that other nodes may have, are asked for. */
static void missing_segments_are_asked_for_behind_the_loss(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, second;
        bool node;
        uint32_t copies;
        bool older, holes;
    } rows[] = {
        {0, 1, true, 2, false, false}, {1, 2, true, 1, true, false},   {0, 2, true, 2, true, true},
        {0, 2, true, 1, false, false}, {1, 3, false, 2, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        to_stop();
        it.segs[0].id.v = rows[i].first;
        it.segs[1].id.v = rows[i].second;
        if (!rows[i].node) alone.node.options.cluster.node_address = NULL;
        alone.desc->settings.copies = rows[i].copies;
        stopped(), idle();
        char expected[512];
        snprintf(
            expected, sizeof expected,
            "release copies\ndestroy the groups\ndestroy the log\ndetach\nopen, epoch 10, of 2 "
            "segments, next 5 at 1000, jumped%s%s\n",
            rows[i].older ? ", older follow" : "", rows[i].holes ? ", holes" : "");
        assert_said_first(expected);
        assert_int_equal(it.partition.backfill == LEAT_BACKFILL_DUE, rows[i].older);
        alone_deliver_all();
        said_enough();
        end();
    }
}

/* Goal: a log is made of the segments that a start has kept for it; a log without segments begins at its first
 * segment. */
static void segments_that_a_start_kept_are_kept(void **state)
{
    (void)state;
    to_stop();
    it.partition.segs = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *it.partition.segs);
    it.partition.segs[0] = &it.segs[2];
    it.partition.seg_count = 1;
    stopped(), idle();
    assert_said("release copies\n"
                "destroy the groups\n"
                "destroy the log\n"
                "detach\n"
                "open, epoch 10, of 1 segments, next 5 at 1000, jumped, older follow\n"
                "node log warn: stream 7, streamlet 1, log 0\n"
                "mail to 1\n");
    alone_deliver_all();
    said_enough();
    end();
    begin();
    it.partition.highest_segment = UINT64_MAX;
    it.info.segment_count = 0;
    accepts();
    coordinators_say(LEAT_OK);
    said_enough();
    stopped(), idle();
    assert_said("release copies\n"
                "destroy the groups\n"
                "destroy the log\n"
                "detach\n"
                "open, epoch 10, of 0 segments, next 0 at 1000, jumped\n"
                "node log warn: stream 7, streamlet 1, log 0\n"
                "mail to 1\n");
    alone_deliver_all();
    said_enough();
    end();
}

/* ---- it can't be made anew ---- */

static void log_that_cant_be_made_anew_is_gone_until_a_restart(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        to_stop();
        if (i == 0) it.open = LEAT_E_DISK;
        if (i == 1) leat_mem_fail_at(1);
        stopped(), idle();
        leat_mem_fail_at(0);
        said_enough();
        assert_false(it.there);
        alone_deliver();
        char expected[512];
        snprintf(
            expected, sizeof expected,
            "refuse %s: the loss is accepted, but the log can't be made again before a restart: "
            "%s\n",
            i == 0 ? "DISK" : "NO_MEMORY", leat_err_text(i == 0 ? LEAT_E_DISK : LEAT_E_NO_MEMORY));
        assert_said(expected);
        end();
    }
}

/* ---- what happens to it meanwhile ---- */

/* Goal: given up at each step it goes, and its loss is accepted all the same; whose stream goes is not told of. */
static void log_given_up_meanwhile_goes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        bool late = i & 1;
        unsigned gone = i / 2;
        to_stop();
        if (late) stopped();
        said_enough();
        it.partition.give_up = (void *)&it;
        if (gone == 1) alone.no_stream = true;
        if (gone == 2) alone.stream.deleted = true;
        if (late)
            idle();
        else
            stopped();
        assert_null(it.partition.recover);
        char expected[512];
        snprintf(expected, sizeof expected, "give up, go on%s\n%smail to 1\n",
                 late ? ", copies idle" : "",
                 gone ? "" : "node log warn: stream 7, streamlet 1, log 0\n");
        assert_said(expected);
        alone_deliver();
        assert_said(gone ? "refuse UNKNOWN_STREAM: the stream was deleted meanwhile\n"
                         : "answer\n");
        end();
    }
}

static void stream_deleted_meanwhile_takes_the_log_along(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool late = i & 1, deleted = i & 2;
        to_stop();
        if (late) stopped();
        said_enough();
        if (deleted) alone.stream.deleted = true;
        if (!deleted) alone.no_stream = true;
        if (late)
            idle();
        else
            stopped();
        assert_said(late ? "destroy the partition\nmail to 1\n" : "delete\nmail to 1\n");
        alone_deliver();
        assert_said("refuse UNKNOWN_STREAM: the stream was deleted meanwhile\n");
        end();
    }
}

static void core_that_stops_meanwhile_is_told(void **state)
{
    (void)state;
    to_stop();
    stopped();
    alone.cores[0].stopping = true;
    said_enough();
    idle();
    assert_said("mail to 1\n"
                "core 0 has one log less to stop\n");
    alone_deliver();
    assert_said("refuse STARTING: the loss is accepted, and the server is stopping\n");
    assert_null(it.partition.recover);
    end();
}

/* ---- what the coordinators say ---- */

/* Goal: refused, the log stays, and hears of what it was not told meanwhile. */
static void loss_that_is_refused_leaves_the_log(void **state)
{
    (void)state;
    enum { STAYS, GIVEN_UP, STOPPING, NO_STREAM, DELETED, OTHERS, NOT_BEGUN, CASES };
    static const char *const expected[CASES] = {
        "look at what is known now\nmail to 1\n",
        "mail to 1\n",
        "stop the log with its core\nmail to 1\n",
        "delete\nmail to 1\n",
        "delete\nmail to 1\n",
        "mail to 1\n",
        "mail to 1\n",
    };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        accepts();
        said_enough();
        if (i == GIVEN_UP) it.partition.give_up = (void *)&it;
        if (i == STOPPING) alone.cores[0].stopping = true;
        if (i == NO_STREAM) alone.no_stream = true;
        if (i == DELETED) alone.stream.deleted = true;
        if (i == OTHERS) alone.desc->streamlets[1].owner = ALONE_SELF + 1;
        if (i == NOT_BEGUN) alone.stream.begun = NULL;
        coordinators_say(LEAT_E_AGAIN);
        assert_said(expected[i]);
        assert_null(it.partition.recover);
        assert_int_equal(leat_partition_goes(&it.partition), i == GIVEN_UP);
        alone_deliver();
        assert_said("refuse AGAIN: as they say\n");
        end();
    }
}

/* Goal: the call leaves alone a log that has another owner by then, or has gone; a log that stands in goes. */
static void loss_committed_late_leaves_what_is_there(void **state)
{
    (void)state;
    enum { GONE, ANOTHER, GIVEN_UP, STANDS_IN, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        accepts();
        said_enough();
        if (i == GONE) it.there = false;
        if (i == ANOTHER) it.partition.recover = NULL, it.partition.state = LEAT_PARTITION_SERVES;
        if (i == GIVEN_UP) it.partition.give_up = (void *)&it;
        if (i == STANDS_IN) it.partition.tail_missing = true;
        coordinators_say(LEAT_OK);
        assert_said(i == STANDS_IN
                        ? "node log warn: stream 7, streamlet 1, log 0\ngive up\nmail to 1\n"
                        : "node log warn: stream 7, streamlet 1, log 0\nmail to 1\n");
        assert_null(it.on_stopped);
        alone_deliver();
        assert_said("answer\n");
        assert_int_equal(answered_offset(), 1000);
        end();
    }
}

/* Goal: where the loss was refused, nothing changes for another log that is there by then. */
static void loss_refused_late_leaves_what_is_there(void **state)
{
    (void)state;
    begin();
    accepts();
    said_enough();
    it.partition.recover = NULL; /* another one */
    coordinators_say(LEAT_E_NOT_OWNER);
    assert_true(leat_partition_goes(&it.partition));
    assert_said("mail to 1\n");
    alone_deliver();
    said_enough();
    end();
}

static void loss_committed_of_a_stream_that_went_is_refused(void **state)
{
    (void)state;
    begin();
    accepts();
    said_enough();
    alone.stream.deleted = true;
    coordinators_say(LEAT_OK);
    assert_said("delete\nmail to 1\n");
    alone_deliver();
    assert_said("refuse UNKNOWN_STREAM: the stream was deleted meanwhile\n");
    end();
}

/* ---- its last segment is damaged ---- */

/* Goal: the segment says so first; a log that went meanwhile is not asked for. */
static void damaged_end_is_given_up_by_its_segment_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        it.info.state = LEAT_LOG_DAMAGED;
        it.partition.skipping_missing = i == 2;
        accepts();
        if (i == 2)
            assert_said_first("wake\ncoordinate");
        else
            assert_said("skip missing\n");
        if (i == 2) coordinators_say(LEAT_E_AGAIN);
        if (i < 2) {
            it.partition.state = i == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
            skipped();
            assert_false(it.partition.skipping_missing);
            assert_said_first(i == 0 ? "wake\ncoordinate" : "mail to 1\n");
            if (i == 0) coordinators_say(LEAT_E_AGAIN);
        }
        said_enough();
        alone_deliver_all();
        assert_said(i == 1 ? "refuse STARTING: STARTING\n" : "refuse AGAIN: as they say\n");
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_is_accepted_step_by_step),
        cmocka_unit_test(log_without_copies_is_made_anew_at_once),
        cmocka_unit_test(what_is_left_is_named_by_who_knows_most),
        cmocka_unit_test(missing_segments_are_asked_for_behind_the_loss),
        cmocka_unit_test(segments_that_a_start_kept_are_kept),
        cmocka_unit_test(log_that_cant_be_made_anew_is_gone_until_a_restart),
        cmocka_unit_test(log_given_up_meanwhile_goes),
        cmocka_unit_test(stream_deleted_meanwhile_takes_the_log_along),
        cmocka_unit_test(core_that_stops_meanwhile_is_told),
        cmocka_unit_test(loss_that_is_refused_leaves_the_log),
        cmocka_unit_test(loss_committed_late_leaves_what_is_there),
        cmocka_unit_test(loss_refused_late_leaves_what_is_there),
        cmocka_unit_test(loss_committed_of_a_stream_that_went_is_refused),
        cmocka_unit_test(damaged_end_is_given_up_by_its_segment_first),
    };
    return cmocka_run_group_tests_name("broker loss", tests, NULL, NULL);
}
