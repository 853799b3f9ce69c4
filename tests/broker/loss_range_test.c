/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator is told of a log's loss, and one in front of a log or between others: recover.c alone. */
#include "broker/data/seek.h"
#include "broker/ownership/calls.h"
#include "tests/broker/loss_rig.h"

/* ---- what would be kept ---- */

static void kept_is_told_of_a_log_that_waits(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "refuse LOG_INCOMPLETE: offsets 10 to 49 would be kept, and can be read now; missing: its "
        "end is "
        "missing\n",
        "refuse LOG_INCOMPLETE: nothing of it is here: nothing would be kept; missing: its end is "
        "missing\n",
        "refuse LOG_INCOMPLETE: offsets 10 to 49 would be kept, and can be read now, but for 3 of "
        "them "
        "(20 to 22); missing: its end is missing\n",
        "refuse LOG_INCOMPLETE: offsets 10 to 49 would be kept, and can be read now, but for 8 of "
        "them "
        "(20 to 22, and 1 place more); missing: its end is missing\n",
        "refuse LOG_INCOMPLETE: offsets 10 to 49 would be kept, and can be read now, but for 9 of "
        "them "
        "(20 to 22, and 2 places more); missing: its end is missing\n",
    };
    for (unsigned i = 5; i-- > 0;) {
        begin();
        if (i == 1) it.info.acked_offset = 10;
        it.damages[0] = (struct leat_log_damage){.first_offset = 20, .end_offset = 23};
        it.damages[1] = (struct leat_log_damage){.first_offset = 30, .end_offset = 35};
        it.damages[2] = (struct leat_log_damage){.first_offset = 40, .end_offset = 41};
        it.damage_count = i < 2 ? 0 : i - 1;
        if (i == 2) it.damages[it.damage_count++] = (struct leat_log_damage){5, 6, 25, 25, false};
        wonders();
        said_enough();
        alone_deliver();
        assert_said(expected[i]);
        assert_false(leat_partition_goes(&it.partition));
        end();
    }
}

/* Goal: for a log that is on no node that is up, the operator is told what the coordinators have heard. */
static void kept_is_told_of_a_log_that_stands_in(void **state)
{
    (void)state;
    static const char
        unknown[] = "refuse LOG_INCOMPLETE: what would be kept is not known yet; missing: "
                    "its end is missing\n",
        none[] = "refuse LOG_INCOMPLETE: no node has anything of it: nothing would be "
                 "kept; missing: its end is missing\n",
        some[] = "refuse LOG_INCOMPLETE: what nodes have of it up to offset 59 (in segment "
                 "4) would be kept, and can be read then; missing: its end is missing\n";
    static const char *const expected[] = {some, unknown, unknown, unknown, unknown, none, none};
    for (unsigned i = 0; i < 7; i++) {
        begin();
        it.partition.tail_missing = true;
        it.begun.record.opened = i != 3;
        it.begun.record.heard = i != 4;
        if (i == 1) alone.no_stream = true;
        if (i == 2) alone.stream.begun = NULL;
        if (i == 5) it.partition.highest_segment = UINT64_MAX;
        if (i == 6) it.partition.highest_offset = 0;
        wonders();
        said_enough();
        alone_deliver();
        assert_said(expected[i]);
        end();
    }
}

/* ---- no log, or one that is not to be asked ---- */

static void log_that_is_not_here_is_refused(void **state)
{
    (void)state;
    static const char waits[] = "refuse AGAIN: not all nodes have said what they have of it: start "
                                "those that are down, or say "
                                "that they will not come back (leat node drain), and wait some "
                                "seconds; leat cluster status "
                                "tells more\n";
    static const char absent[] = "refuse UNKNOWN_STREAM: UNKNOWN_STREAM\n";
    static const char *const expected[] = {waits,  absent, absent,
                                           absent, absent, "refuse STARTING: STARTING\n"};
    for (unsigned i = 0; i < 6; i++) {
        begin();
        it.there = i == 5;
        it.partition.state = LEAT_PARTITION_GOES;
        it.absent = LEAT_E_UNKNOWN_STREAM;
        it.begun.record.opened = i != 1;
        it.begun.epoch.v = 9;
        it.begun.record.stamp_epoch.v = i == 2 ? 9 : 8;
        if (i == 3) alone.no_stream = true;
        if (i == 4) alone.stream.begun = NULL;
        accepts();
        said_enough();
        alone_deliver();
        assert_said(expected[i]);
        end();
    }
}

static void log_stopped_by_its_disk_is_refused(void **state)
{
    (void)state;
    for (unsigned asks = 0; asks < 2; asks++) {
        begin();
        it.info.state = LEAT_LOG_STOPPED;
        if (asks)
            wonders();
        else
            accepts();
        said_enough();
        alone_deliver();
        assert_said("refuse INVALID: the log was stopped by its disk: restart the server\n");
        end();
    }
}

/* ---- in front, or between others ---- */

static const char seen[] =
    "seen: at least 1 bytes that a start has passed over, the last behind offset "
    "33";

/* A log that serves: with damage, with bytes that were passed over. */
static void serves(bool damaged, bool passed)
{
    begin();
    it.info.state = LEAT_LOG_SERVING;
    it.trouble = damaged ? LEAT_E_DAMAGED : LEAT_OK;
    it.damages[0] = (struct leat_log_damage){.first_offset = 3, .end_offset = 6};
    it.damage_count = damaged;
    if (passed) it.passed = (struct leat_log_passed){.bytes = 1, .next_offset = 33};
}

static void loss_between_others_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool damaged = i & 1, passed = i & 2;
        serves(damaged, passed);
        it.partition.backfill_node_down = true; /* no matter, for a question */
        wonders();
        said_enough();
        alone_deliver();
        char expected[512];
        if (i == 0)
            snprintf(expected, sizeof expected, "refuse INVALID: %s\n",
                     "nothing is missing or known to be damaged: there is nothing to give up");
        else
            snprintf(expected, sizeof expected, "refuse DAMAGED: %s%s%s%s\n",
                     damaged ? "all else would be kept, and can be read now; given up: "
                             : "all of it is kept, and can be read; ",
                     damaged ? "offsets 3 to 5 are damaged" : "", damaged && passed ? "; " : "",
                     passed ? seen : "");
        assert_said(expected);
        end();
    }
}

static void loss_between_others_is_accepted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool damaged = i & 1, passed = i & 2;
        serves(damaged, passed);
        accepts();
        if (i == 0) {
            assert_said("mail to 1\n");
            alone_deliver();
            assert_said_first("refuse INVALID: nothing is missing");
            said_enough();
        } else {
            assert_said("node log warn: stream 7, streamlet 1, log 0\nskip missing\n");
            it.trouble = LEAT_OK;
            it.damage_count = 0;
            it.passed.bytes = 0;
            it.info.first_offset = 44;
            skipped();
            assert_said(damaged ? "node log warn: stream 7, streamlet 1, log 0\nmail to 1\n"
                                : "mail to 1\n");
            assert_false(it.partition.skipping_missing);
            alone_deliver();
            assert_said("answer\n");
            assert_int_equal(answered_offset(), 44);
        }
        end();
    }
}

/* Goal: damage that is still there after an accepted loss is refused by name. */
static void loss_that_could_not_be_accepted_is_told(void **state)
{
    (void)state;
    serves(true, false);
    accepts();
    said_enough();
    skipped();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said(
        "refuse AGAIN: not all of its loss could be accepted: offsets 3 to 5 are damaged\n");
    end();
}

/* Goal: a log that its disk stopped while the loss was being noted has not noted it. */
static void loss_of_a_log_that_stops_is_not_accepted(void **state)
{
    (void)state;
    serves(true, false);
    accepts();
    said_enough();
    it.info.state = LEAT_LOG_STOPPED;
    it.trouble = LEAT_E_DISK;
    it.damage_count = 0;
    skipped();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said_first("refuse AGAIN: not all of its loss could be accepted: ");
    said_enough();
    end();
}

/* Goal: a segment that only this node's disk refuses is trouble, and nothing of it can be given up. */
static void segment_that_the_disk_refuses_is_not_given_up(void **state)
{
    (void)state;
    serves(true, false);
    it.damage_count = 0;
    accepts();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said_first("refuse INVALID: nothing is missing or known to be damaged");
    said_enough();
    end();
    serves(true, true); /* nor is it named with what was passed over */
    it.damage_count = 0;
    wonders();
    said_enough();
    alone_deliver();
    char expected[512];
    snprintf(expected, sizeof expected, "refuse DAMAGED: all of it is kept, and can be read; %s\n",
             seen);
    assert_said(expected);
    end();
}

static void loss_is_accepted_once_at_a_time(void **state)
{
    (void)state;
    serves(true, false);
    it.partition.skipping_missing = true;
    accepts();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("refuse INVALID: its loss is being accepted already\n");
    end();
}

/* Goal: no record is given up that a node which is down may have; bytes that the operator has only seen are not given
 * up. */
static void loss_is_not_accepted_while_a_node_is_down(void **state)
{
    (void)state;
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        serves(damaged, true);
        it.partition.backfill_node_down = true;
        accepts();
        if (damaged) {
            assert_said("node log warn: stream 7, streamlet 1, log 0\nmail to 1\n");
            alone_deliver();
            assert_said(
                "refuse AGAIN: a node is down that may have what is missing: start it, or say "
                "that it will not come back (leat node drain)\n");
        } else {
            assert_said("node log warn: stream 7, streamlet 1, log 0\nskip missing\n");
            it.passed.bytes = 0;
            skipped();
            alone_deliver();
            said_enough();
        }
        assert_false(it.partition.skipping_missing);
        end();
    }
}

/* ---- the call ---- */

static void call_is_checked(void **state)
{
    (void)state;
    begin();
    uint8_t bytes[16];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_u64(&writer, 7);
    alone_call(leat_call_recover, &writer);
    assert_said(
        "refuse INVALID: the control body of log recover is not [stream, streamlet, log, accept "
        "loss]\n");
    calls.not_kept = true;
    alone_call(leat_call_recover, &writer);
    assert_said("refuse TOO_LARGE: too long\n");
    calls.none = true;
    alone_call(leat_call_recover, &writer);
    assert_said("");
    end();
}

/* Goal: the call's stream is looked for first; then the call goes on as if the stream had been there, on the log's
 * core. */
static void call_waits_for_its_stream(void **state)
{
    (void)state;
    begin();
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    calls.no_log = true;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_recover_write(&writer, &(struct leat_msg_recover){{"orders", 6}, 1, 0, false});
    alone_call(leat_call_recover, &writer);
    assert_said("find orders/1/0\n");
    calls.no_log = false;
    calls.seek->on_again(calls.seek);
    assert_said("find orders/1/0\nmail to 0\n");
    alone_deliver_all();
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_is_told_of_a_log_that_waits),
        cmocka_unit_test(kept_is_told_of_a_log_that_stands_in),
        cmocka_unit_test(log_that_is_not_here_is_refused),
        cmocka_unit_test(log_stopped_by_its_disk_is_refused),
        cmocka_unit_test(loss_between_others_is_told),
        cmocka_unit_test(loss_between_others_is_accepted),
        cmocka_unit_test(loss_that_could_not_be_accepted_is_told),
        cmocka_unit_test(loss_is_accepted_once_at_a_time),
        cmocka_unit_test(loss_of_a_log_that_stops_is_not_accepted),
        cmocka_unit_test(segment_that_the_disk_refuses_is_not_given_up),
        cmocka_unit_test(loss_is_not_accepted_while_a_node_is_down),
        cmocka_unit_test(call_is_checked),
        cmocka_unit_test(call_waits_for_its_stream),
    };
    return cmocka_run_group_tests_name("broker loss_range", tests, NULL, NULL);
}
