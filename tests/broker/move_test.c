/* SPDX-License-Identifier: Apache-2.0 */
/* Streamlets that are handed over on purpose, by move.c alone: what it says to logs, copies, the target and the
 * coordinators, at each step and at whatever these answer. */
#include "tests/broker/move_rig.h"

/* ---- step by step ---- */

static void streamlet_moves_step_by_step(void **state)
{
    (void)state;
    begin();
    start();
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("mail to 0\nmail to 1\n"); /* to the logs' cores: may they go? */
    assert_int_equal(it.mover.step, LEAT_MOVE_CHECKS);
    alone_deliver();
    alone_deliver();
    assert_said("mail to 0\nmail to 0\n");
    alone_deliver();
    assert_said("");
    alone_deliver();
    assert_said("ask 200 for 1000000 us\n");
    target_answers(LEAT_OK, 1);
    assert_said("mail to 0\nmail to 1\n");
    assert_int_equal(it.mover.step, LEAT_MOVE_STOPS);
    alone_deliver();
    assert_said("wake a\ncopies of a silent\nstop a\n");
    assert_true(leat_partition_goes(&it.partition[0]));
    assert_int_equal(it.partition[0].state, LEAT_PARTITION_DRAINS);
    assert_ptr_equal(it.partition[0].moving->partition, &it.partition[0]);
    alone_deliver();
    assert_said("wake b\ncopies of b silent\nstop b\n");
    it.logs[0].tail.next_offset = 70; /* what was appended before it stopped */
    stopped(0);
    assert_null(it.partition[0].moving);
    assert_int_equal(it.partition[0].state, LEAT_PARTITION_DRAINED);
    stopped(1);
    assert_said("mail to 0\nmail to 0\n");
    alone_deliver();
    assert_said("");
    alone_deliver();
    assert_said("coordinate move to n2, epoch 9, incarnation 100\n"
                "  7/1/0 ends at segment 3 100:a next 70\n"
                "  7/1/1 ends at segment 4 101:a next 51\n");
    assert_ptr_equal(alone.cores[0].movers->all.next, &it.mover.link);
    assert_int_equal(alone.cores[0].movers->count, 1);
    coordinators_say(LEAT_OK, 12);
    assert_said("node log info: stream 7, streamlet 1 goes to node n2, epoch 12\n"
                "timer stops\ndone OK\n");
    end();
}

/* Goal: a log without a segment says so, and one without copies of its own has none to be silent. */
static void log_without_segments_ends_nowhere(void **state)
{
    (void)state;
    begin();
    it.logs[0].tail = (struct leat_log_tail){.next_segment = 0};
    it.logs[1].tail.next_segment = 1;
    it.partition[0].copies = it.partition[1].copies = NULL;
    start();
    alone_deliver_all();
    target_answers(LEAT_OK, 1);
    said_enough();
    alone_deliver_all();
    assert_said("wake a\nstop a\nwake b\nstop b\n");
    stopped(1);
    stopped(0);
    said_enough();
    alone_deliver_all();
    assert_said("coordinate move to n2, epoch 9, incarnation 100\n"
                "  7/1/0 ends at segment -1 0:0 next 0\n"
                "  7/1/1 ends at segment 0 101:a next 51\n");
    coordinators_say(LEAT_OK, 12);
    end();
}

/* ---- it does not even begin ---- */

static void streamlet_that_is_not_there_does_not_move(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        if (i == 0) alone.no_stream = true;
        if (i == 1) it.mover.streamlet = ALONE_STREAMLETS;
        start();
        alone_deliver();
        assert_said("mail to 0\ntimer stops\ndone UNKNOWN_LOG: there is no such streamlet\n");
        end();
    }
}

static void streamlet_of_another_node_does_not_move(void **state)
{
    (void)state;
    begin();
    alone.desc->streamlets[1].owner = TARGET;
    start();
    alone_deliver();
    assert_said("mail to 0\ntimer stops\n"
                "done NOT_OWNER: the streamlet is not this node's any more\n");
    end();
}

static void streamlet_moves_once_at_a_time(void **state)
{
    (void)state;
    to_stop();
    struct leat_mover second = it.mover;
    leat_mover_start(&alone.cores[0], &second);
    alone_deliver();
    assert_said("mail to 0\ntimer stops\ndone AGAIN: the streamlet is on its way already\n");
    assert_int_equal(it.mover.step, LEAT_MOVE_STOPS);
    stopped(0), stopped(1);
    alone_deliver_all();
    coordinators_say(LEAT_OK, 12);
    end();
}

/* Goal: another streamlet of the stream goes at the same time; so do four, and no fifth. */
static void few_streamlets_move_at_one_time(void **state)
{
    (void)state;
    begin();
    struct leat_mover many[LEAT_MOVERS_MAX + 1];
    for (unsigned i = 0; i <= LEAT_MOVERS_MAX; i++) {
        many[i] = it.mover;
        many[i].stream = i == 0 ? ALONE_STREAM : ALONE_STREAM + i;
        many[i].streamlet = i == 0 ? 0 : 1;
        leat_mover_start(&alone.cores[0], &many[i]);
    }
    leat_mover_start(&alone.cores[0], &it.mover);
    said_enough();
    for (unsigned i = 0; i < 2; i++) {
        alone_deliver();
        assert_said("timer stops\n"
                    "done AGAIN: too many streamlets are on their way: try again\n");
    }
    for (unsigned i = 2; i <= LEAT_MOVERS_MAX; i++) {
        alone_deliver();
        assert_said("timer stops\ndone UNKNOWN_LOG: there is no such streamlet\n");
    }
    alone_deliver();
    assert_said("mail to 0\nmail to 1\n");
    alone.desc->streamlets[1].owner = TARGET;
    alone_deliver_all();
    target_answers(LEAT_OK, 1);
    end();
}

/* Goal: neither another streamlet of the stream, nor one of that number of another stream, is in the way. */
static void streamlet_moves_beside_others(void **state)
{
    (void)state;
    begin();
    struct leat_mover others[2] = {it.mover, it.mover};
    others[0].streamlet = 0;
    others[1].stream = ALONE_STREAM + 1;
    start();
    for (unsigned i = 0; i < 2; i++)
        leat_mover_start(&alone.cores[0], &others[i]);
    said_enough();
    alone_deliver();
    assert_said("mail to 0\nmail to 1\n");
    alone.desc->streamlets[0].owner = TARGET;
    alone_deliver_all();
    said_enough();
    target_answers(LEAT_OK, 1);
    assert_said("mail to 0\nmail to 1\n");
    it.absent[0] = it.absent[1] = true;
    alone_deliver_all();
    end();
}

static void no_memory_refuses_the_move(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        begin();
        start();
        leat_mem_fail_at(n);
        alone_deliver();
        leat_mem_fail_at(0);
        assert_said("mail to 0\ntimer stops\ndone AGAIN: no memory\n");
        end();
    }
}

/* ---- logs that can't go ---- */

static const char *checks(void)
{
    static char what[512];
    start();
    said_enough();
    for (unsigned i = 0; i < 5; i++)
        alone_deliver();
    snprintf(what, sizeof what, "done %s: %s", leat_err_name(it.mover.rc), it.mover.error.text);
    return what;
}

/* Goal: before anything is stopped all logs are asked, and the first of them that can't go says why. */
static void log_that_cant_go_is_found_before_anything_stops(void **state)
{
    (void)state;
    static const char going[] =
        "done AGAIN: log 1 of the streamlet is being made or goes already: try again";
    for (unsigned i = 0; i < 6; i++) {
        begin();
        const char *expected = going;
        if (i == 0) it.absent[1] = true;
        if (i == 1) it.partition[1].state = LEAT_PARTITION_GOES;
        if (i == 2) alone.cores[1].stopping = true;
        if (i == 3) {
            it.logs[1].info.state = LEAT_LOG_WAITING;
            expected = "done LOG_INCOMPLETE: log 1 of the streamlet can't move: its disk failed";
        }
        if (i >= 4) {
            it.logs[1].tail.jumped = true;
            expected = "done AGAIN: the end of log 1 was given up by an operator, and nothing was "
                       "appended since: append something first";
        }
        if (i == 5) {
            it.absent[0] = true;
            expected =
                "done AGAIN: log 0 of the streamlet is being made or goes already: try again";
        }
        assert_string_equal(checks(), expected);
        assert_null(it.ask);
        assert_false(leat_partition_goes(&it.partition[0]));
        end();
    }
}

/* The answers to a stop come back, and the logs that were stopped go on. */
static void assert_goes_on(const char *said_first, const char *done)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "%smail to 0\nmail to 1\n%stimer stops\n%s", said_first,
             "copies of a speak\ngo on a\nmail to 0\nmail to 0\n", done);
    alone_deliver_all();
    assert_said(expected);
    assert_int_equal(it.partition[0].state, LEAT_PARTITION_SERVES);
    assert_null(it.request);
}

/* Goal: a log that can't go, as its end is not known to be safe, keeps the other log here, and nobody is asked. */
static void log_that_fails_while_it_stops_lets_the_other_go_on(void **state)
{
    (void)state;
    to_stop();
    stopped(0);
    it.logs[1].tail.jumped = true;
    it.partition[1].give_up = (void *)&it; /* it goes otherwise */
    stopped(1);
    assert_goes_on("mail to 0\nmail to 0\n",
                   "done LOG_INCOMPLETE: log 1 of the streamlet can't move: its disk failed\n");
    end();
}

/* Goal: so does a log that a failed flush has stopped while bytes of the log are on their way to a copy. A log that
 * serves has waited for these bytes. */
static void log_that_is_written_to_its_copies_lets_the_other_go_on(void **state)
{
    (void)state;
    to_stop();
    it.logs[0].writing = true;
    stopped(0);
    it.logs[1].writing = true;
    it.logs[1].info.state = LEAT_LOG_STOPPED;
    stopped(1);
    alone_deliver_all();
    assert_said(
        "mail to 0\nmail to 0\nmail to 0\nmail to 1\ncopies of a speak\ngo on a\nmail to 0\n"
        "copies of b speak\ngo on b\nmail to 0\ntimer stops\n"
        "done AGAIN: log 1 of the streamlet can't move while bytes of it are on their way to "
        "a copy: try again\n");
    assert_null(it.request);
    end();
}

/* Goal: a log that a failed flush has stopped goes all the same, where no bytes are on their way to a copy. */
static void log_that_stopped_by_itself_moves_when_its_copies_are_idle(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        to_stop();
        if (i == 0) it.partition[0].copies = NULL; /* it has none */
        it.logs[0].info.state = LEAT_LOG_STOPPED;
        stopped(0), stopped(1);
        said_enough();
        alone_deliver_all();
        assert_said_first("coordinate move to n2");
        coordinators_say(LEAT_OK, 12);
        end();
    }
}

/* Goal: so does a log that is deleted meanwhile, or goes to another node; the first log that says why counts. */
static void log_that_goes_while_it_stops_lets_the_other_go_on(void **state)
{
    (void)state;
    to_stop();
    stopped(0);
    leat_move_part_gone(it.partition[1].moving);
    assert_null(it.partition[1].moving);
    assert_goes_on(
        "mail to 0\nmail to 0\n",
        "done UNKNOWN_STREAM: the stream was deleted, or has another owner, meanwhile\n");
    end();
}

/* Goal: and one that began to go between the check and the stop. */
static void log_that_goes_before_it_stops_lets_the_other_go_on(void **state)
{
    (void)state;
    to_ask();
    target_answers(LEAT_OK, 1);
    it.partition[1].state = LEAT_PARTITION_GOES;
    said_enough();
    alone_deliver(), alone_deliver(), alone_deliver();
    assert_said("wake a\ncopies of a silent\nstop a\nmail to 0\n");
    stopped(0);
    assert_goes_on("mail to 0\n",
                   "done AGAIN: log 1 of the streamlet is being made or goes already: "
                   "try again\n");
    assert_true(leat_partition_goes(&it.partition[1])); /* not by this */
    end();
}

/* Goal: stopped logs go on even where the streamlet has another owner by then. A log that is given up, or whose core
 * stops, does not go on: its giving up, or the stop of the core, ends the log. */
static void logs_go_on_unless_they_go_otherwise(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        to_stop();
        stopped(0);
        leat_move_part_gone(it.partition[1].moving);
        it.partition[1].state = LEAT_PARTITION_DRAINED;
        alone_deliver(), alone_deliver();
        said_enough();
        if (i == 0) alone.no_stream = true;
        if (i == 1) alone.desc->streamlets[1].owner = TARGET;
        if (i == 2) it.partition[0].give_up = (void *)&it;
        if (i == 3) alone.cores[0].stopping = true;
        if (i == 4) it.absent[0] = true;
        if (i == 5) it.partition[0].copies = it.partition[1].copies = NULL;
        alone_deliver_all();
        const char *logs = i < 2    ? "copies of a speak\ngo on a\nmail to 0\n"
                           : i == 5 ? "go on a\nmail to 0\n"
                                    : "mail to 0\n";
        char expected[512];
        snprintf(
            expected, sizeof expected,
            "%s%sgo on b\nmail to 0\ntimer stops\ndone UNKNOWN_STREAM: the stream was deleted, "
            "or has another owner, meanwhile\n",
            logs, i == 5 ? "" : "copies of b speak\n");
        assert_said(expected);
        end();
    }
}

/* Goal: the streamlet went to another node while its target was asked. */
static void streamlet_lost_before_its_logs_stop_stops_none(void **state)
{
    (void)state;
    to_ask();
    alone.desc->streamlets[1].owner = TARGET;
    target_answers(LEAT_OK, 1);
    assert_said("timer stops\ndone NOT_OWNER: the streamlet is not this node's any more\n");
    end();
}

/* Goal: the epoch is that under which the logs stop. */
static void epoch_is_as_the_logs_stop(void **state)
{
    (void)state;
    to_ask();
    alone.desc->streamlets[1].epoch.v = 10;
    target_answers(LEAT_OK, 1);
    alone.desc->streamlets[1].epoch.v = 11;
    alone_deliver_all();
    stopped(0), stopped(1);
    said_enough();
    alone_deliver_all();
    assert_int_equal(it.request->epoch.v, 10);
    assert_ptr_equal(it.request->logs, it.mover.refs);
    coordinators_say(LEAT_OK, 12);
    end();
}

/* ---- the node stops meanwhile ---- */

/* Goal: the log that serves no more then has no end to be committed; the core counts it once. */
static void log_that_stops_with_its_node(void **state)
{
    (void)state;
    for (unsigned serving = 0; serving < 2; serving++) {
        to_stop();
        alone.cores[1].stopping = true;
        if (!serving) it.logs[1].info.state = LEAT_LOG_STOPPED;
        stopped(1);
        assert_said("mail to 0\ncore 1 has one log less to stop\n");
        stopped(0);
        assert_said("mail to 0\n");
        alone_deliver_all();
        if (serving) {
            assert_non_null(it.request);
            said_enough();
            coordinators_say(LEAT_OK, 12);
        } else {
            assert_said("mail to 0\nmail to 1\ncopies of a speak\ngo on a\nmail to 0\nmail to 0\n"
                        "timer stops\ndone STARTING: the node stops\n");
        }
        end();
    }
}

/* ---- the target ---- */

/* Goal: the target is asked again as long as it can't write as many copies as the stream needs, and is waited for up to
 * a limit in all. */
static void target_that_has_met_too_few_is_waited_for(void **state)
{
    (void)state;
    to_ask();
    alone.desc->settings.min_copies = 3;
    target_answers(LEAT_OK, 1); /* itself and one */
    assert_said("timer 20000\n");
    expire();
    assert_said("ask 200 for 1000000 us\n");
    target_answers(LEAT_E_AGAIN, 2); /* not its answer */
    assert_said("timer 20000\n");
    it.ask_rc = LEAT_E_AGAIN;
    expire();
    assert_said("ask 200 for 1000000 us\ntimer 20000\n");
    it.ask_rc = LEAT_OK;
    leat_mem_fail_at(1);
    expire();
    leat_mem_fail_at(0);
    assert_said("timer 20000\n");
    alone.now_us += LEAT_MOVE_TARGET_US_MAX - 1;
    expire();
    target_answers(LEAT_OK, 1);
    assert_said("ask 200 for 1000000 us\ntimer 20000\n");
    alone.now_us += 1;
    expire();
    target_answers(LEAT_OK, 1);
    assert_said("ask 200 for 1000000 us\nmail to 0\nmail to 1\n");
    alone.desc->streamlets[1].owner = TARGET;
    alone_deliver_all();
    stopped(0), stopped(1);
    alone_deliver_all();
    coordinators_say(LEAT_OK, 12);
    end();
}

/* Goal: an answer that was cut short is not believed. */
static void answer_that_is_cut_short_has_met_nobody(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < 2; cut++) {
        to_ask();
        it.cut = cut;
        target_answers(LEAT_OK, 1);
        assert_said(cut == 0 ? "mail to 0\nmail to 1\n" : "timer 20000\n");
        it.absent[0] = it.absent[1] = true;
        it.cut = 0;
        if (cut > 0) expire(), target_answers(LEAT_OK, 1);
        alone_deliver_all();
        end();
    }
}

static void target_that_has_met_enough_is_not_waited_for(void **state)
{
    (void)state;
    to_ask();
    alone.desc->settings.min_copies = 3;
    target_answers(LEAT_OK, 2);
    assert_said("mail to 0\nmail to 1\n");
    alone_deliver_all();
    stopped(0), stopped(1);
    alone_deliver_all();
    coordinators_say(LEAT_OK, 12);
    end();
}

/* Goal: where waiting is of no use it goes on: the coordinators say what is to be said of the target. */
static void target_is_not_waited_for_in_vain(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        to_ask();
        alone.desc->settings.min_copies = 3;
        if (i == 0) it.target.info.state = LEAT_NODE_DOWN;
        if (i == 1) snprintf(it.target.info.name, sizeof it.target.info.name, "n3");
        if (i == 2) alone.cores[0].stopping = true;
        target_answers(LEAT_OK, 1);
        assert_said("mail to 0\nmail to 1\n");
        alone.desc->streamlets[1].owner = TARGET; /* no further */
        alone.cores[0].stopping = false;
        for (unsigned q = 0; q < ALONE_LOGS; q++)
            it.absent[q] = true;
        alone_deliver_all();
        assert_said(
            "mail to 0\nmail to 0\nmail to 0\nmail to 1\nmail to 0\nmail to 0\ntimer stops\n"
            "done AGAIN: log 0 of the streamlet is being made or goes already: try again\n");
        end();
    }
}

/* Goal: nobody is asked for one copy, of a stream that has gone, or of a node that is not known. */
static void target_is_not_asked_without_need(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        alone.desc->settings.min_copies = i == 3 ? 2 : i;
        if (i == 3) snprintf(it.target.info.name, sizeof it.target.info.name, "n3");
        if (i == 2) alone.desc->settings.min_copies = 1;
        start();
        for (unsigned n = 0; n < 4; n++)
            alone_deliver();
        said_enough();
        if (i == 2) alone.no_stream = true;
        alone_deliver();
        if (i == 2)
            assert_said("timer stops\ndone NOT_OWNER: the streamlet is not this node's any more\n");
        else
            assert_said("mail to 0\nmail to 1\n");
        it.absent[0] = it.absent[1] = true;
        alone_deliver_all();
        end();
    }
}

/* ---- what the coordinators say ---- */

/* Goal: whether the move took effect is unknown: the coordinators are asked again with the same ends, as long as no
 * move was committed and the node goes on. */
static void move_is_asked_again_where_its_outcome_is_unknown(void **state)
{
    (void)state;
    to_commit();
    coordinators_say(LEAT_E_AGAIN, 0);
    assert_said("timer 100000\n");
    expire();
    assert_said("coordinate move to n2, epoch 9, incarnation 100\n"
                "  7/1/0 ends at segment 3 100:a next 50\n"
                "  7/1/1 ends at segment 4 101:a next 51\n");
    coordinators_say(LEAT_E_NOT_OWNER, 0);
    assert_said("timer stops\ndone NOT_OWNER: as they say\n");
    end();
    for (unsigned i = 0; i < 2; i++) {
        to_commit();
        if (i == 1) alone.cores[0].stopping = true;
        coordinators_say(LEAT_E_AGAIN, i == 0 ? 12 : 0);
        assert_said("timer stops\ndone AGAIN: as they say\n");
        end();
    }
}

static void mover_is_freed_with_its_core(void **state)
{
    (void)state;
    begin(); /* before it has asked anybody */
    start();
    leat_movers_fini(&alone.cores[0]);
    alone.mail_count = 0;
    alone.cores[0].movers->count = 0;
    said_enough();
    end();
    to_ask(); /* and its answer comes after it */
    leat_movers_fini(&alone.cores[0]);
    assert_true(leat_list_empty(&alone.cores[0].movers->all));
    target_answers(LEAT_OK, 1);
    assert_said("");
    alone.cores[0].movers->count = 0;
    end();
    to_commit();
    assert_null(it.mover.ask); /* it was answered, and is freed: nobody writes to it */
    leat_movers_fini(&alone.cores[0]);
    alone.cores[0].movers->count = 0;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamlet_moves_step_by_step),
        cmocka_unit_test(log_without_segments_ends_nowhere),
        cmocka_unit_test(streamlet_that_is_not_there_does_not_move),
        cmocka_unit_test(streamlet_of_another_node_does_not_move),
        cmocka_unit_test(streamlet_moves_once_at_a_time),
        cmocka_unit_test(few_streamlets_move_at_one_time),
        cmocka_unit_test(streamlet_moves_beside_others),
        cmocka_unit_test(no_memory_refuses_the_move),
        cmocka_unit_test(log_that_cant_go_is_found_before_anything_stops),
        cmocka_unit_test(log_that_fails_while_it_stops_lets_the_other_go_on),
        cmocka_unit_test(log_that_is_written_to_its_copies_lets_the_other_go_on),
        cmocka_unit_test(log_that_stopped_by_itself_moves_when_its_copies_are_idle),
        cmocka_unit_test(log_that_goes_while_it_stops_lets_the_other_go_on),
        cmocka_unit_test(log_that_goes_before_it_stops_lets_the_other_go_on),
        cmocka_unit_test(logs_go_on_unless_they_go_otherwise),
        cmocka_unit_test(streamlet_lost_before_its_logs_stop_stops_none),
        cmocka_unit_test(epoch_is_as_the_logs_stop),
        cmocka_unit_test(log_that_stops_with_its_node),
        cmocka_unit_test(target_that_has_met_too_few_is_waited_for),
        cmocka_unit_test(answer_that_is_cut_short_has_met_nobody),
        cmocka_unit_test(target_that_has_met_enough_is_not_waited_for),
        cmocka_unit_test(target_is_not_waited_for_in_vain),
        cmocka_unit_test(target_is_not_asked_without_need),
        cmocka_unit_test(move_is_asked_again_where_its_outcome_is_unknown),
        cmocka_unit_test(mover_is_freed_with_its_core),
    };
    return cmocka_run_group_tests_name("broker move", tests, NULL, NULL);
}
