/* SPDX-License-Identifier: Apache-2.0 */
/* What a log's core does with segments that come, and what core 0 does with the log core's answers: takeover*.c
 * alone. */
#include "broker/data/begun.h"
#include "tests/broker/takeover_rig.h"

/* With a segment that is on its way to the log, as its last segment or an older segment. */
static struct leat_takeover *brings(enum takeover_state state)
{
    struct leat_takeover *takeover = wants(state, 1000);
    it.seg.buffer = (uint8_t *)"";
    adopted(LEAT_OK);
    said_enough();
    assert_ptr_equal(takeover->seg, &it.seg);
    return takeover;
}

/* ---- may it? ---- */

enum refusal { NO_STREAM, STOPPING, OWNER, NOT_BEGUN, BEGUN_ANEW, REFUSALS };

/* Why the log is not to be made any more. */
static void refuses(enum refusal why)
{
    if (why == NO_STREAM) alone.no_stream = true;
    if (why == STOPPING) alone.cores[HOME].stopping = true;
    if (why == OWNER) alone.desc->streamlets[1].owner = ALONE_SELF + 1;
    if (why == NOT_BEGUN) alone.stream.begun->count = 0;
    if (why == BEGUN_ANEW) begun()->epoch.v = EPOCH + 1;
}

/* Goal: the segment of a log that is not to be made goes back, and the takeover ends, whoever owns the log by then. */
static void log_that_is_not_to_be_made_is_not(void **state)
{
    (void)state;
    for (enum refusal why = 0; why < REFUSALS; why++) {
        begin();
        (void)brings(TAKEOVER_TAIL);
        refuses(why);
        alone_deliver_all();
        assert_said("mail to 0\n"
                    "mail to 0\n"
                    "take back segment 4\n");
        assert_int_equal(takeovers(), 0);
        assert_false(it.there);
        ends();
    }
}

static void log_that_is_not_to_be_made_does_not_wait(void **state)
{
    (void)state;
    for (enum refusal why = 0; why < REFUSALS; why++) {
        begin();
        struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
        takeover_enter(takeover, TAKEOVER_ABSENT);
        takeover_to_home(takeover);
        refuses(why);
        said_enough();
        alone_deliver_all();
        assert_said("mail to 0\n"
                    "mail to 0\n");
        assert_int_equal(takeovers(), 0);
        assert_false(it.there);
        ends();
    }
}

/* Goal: without memory it is tried again, with the same segment. */
static void log_that_cant_be_made_is_made_later(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = brings(TAKEOVER_TAIL);
    it.create = LEAT_E_NO_MEMORY;
    alone_deliver(), alone_deliver();
    assert_pauses(takeover, TICK);
    assert_ptr_equal(takeover->seg, &it.seg);
    alone_deliver();
    it.create = LEAT_OK;
    later(TICK);
    alone_deliver();
    assert_said("start entry in 1000 bytes\n"
                "mail to 1\n"
                "make 7/1/1, epoch 9, of 1 segments, next 5 at 50, behind 1000:4, older follow\n"
                "mail to 0\n");
    alone_deliver();
    assert_null(takeover->seg);
    assert_int_equal(takeover->state, TAKEOVER_OLDER);
    alone_deliver_all();
    ends();
    begin();
    takeover = wants(TAKEOVER_TAIL, 1000);
    takeover_enter(takeover, TAKEOVER_ABSENT);
    it.create = LEAT_E_NO_MEMORY;
    takeover_to_home(takeover);
    alone_deliver(), alone_deliver();
    assert_false(it.partition.tail_missing);
    assert_int_equal(takeover->state, TAKEOVER_TAIL);
    assert_pauses(takeover, 10 * TICK);
    alone_deliver();
    ends();
}

/* Goal: no log of a stream that is being deleted waits for its last segment. A log that has its last segment is made,
 * and the segment goes with the log (leat_partition_create()). */
static void log_of_a_deleted_stream_does_not_wait(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    takeover_enter(takeover, TAKEOVER_ABSENT);
    takeover_to_home(takeover);
    alone.stream.deleted = true;
    said_enough();
    alone_deliver_all();
    assert_said("mail to 0\n"
                "mail to 0\n");
    assert_int_equal(takeovers(), 0);
    assert_false(it.there);
    alone.stream.deleted = false;
    ends();
}

/* ---- an older segment ---- */

static void older_segment_that_the_log_has_no_use_for_goes_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        it.there = i != 0;
        (void)brings(TAKEOVER_OLDER);
        if (i == 1) alone.cores[HOME].stopping = true;
        if (i == 2) it.partition.give_up = (void *)&it;
        if (i == 3) it.partition.epoch.v = EPOCH + 1;
        if (i == 4) it.add = LEAT_E_NOT_OWNER;
        alone_deliver_all();
        if (i == 4)
            assert_said("add segment\n"
                        "mail to 0\n"
                        "mail to 0\n"
                        "take back segment 4\n");
        else
            assert_said("mail to 0\n"
                        "mail to 0\n"
                        "take back segment 4\n");
        assert_int_equal(takeovers(), 0);
        ends();
    }
}

/* Goal: a segment that the log has already goes back, and the segment before is next. */
static void older_segment_that_the_log_has_is_passed_over(void **state)
{
    (void)state;
    begin();
    it.there = true;
    struct leat_takeover *takeover = brings(TAKEOVER_OLDER);
    takeover->failures = 7;
    it.add = LEAT_E_EXISTS;
    alone_deliver(), alone_deliver();
    assert_said("add segment\n"
                "mail to 0\n"
                "mail to 0\n"
                "take back segment 4\n");
    assert_null(takeover->seg);
    assert_int_equal(takeover->segment, 3);
    assert_string_equal(prefix_id_text(takeover->prefix_id), "900:3");
    assert_int_equal(takeover->next_offset, 40);
    assert_int_equal(takeover->failures, 0);
    alone_deliver_all();
    ends();
}

static void older_segment_waits_for_its_log(void **state)
{
    (void)state;
    begin();
    it.there = true;
    struct leat_takeover *takeover = brings(TAKEOVER_OLDER);
    it.add = LEAT_E_AGAIN;
    alone_deliver(), alone_deliver();
    assert_pauses(takeover, TICK);
    assert_ptr_equal(takeover->seg, &it.seg);
    alone_deliver();
    it.add = LEAT_OK;
    later(TICK);
    assert_said("start entry in 1000 bytes\n"
                "mail to 1\n"); /* what it says is read again */
    alone_deliver_all();
    assert_said("add segment\n"
                "look after its copies\n"
                "mail to 0\n"
                "mail to 0\n"
                "adopt 7/1/1 segment 3 900:3 next 40, epoch 9\n");
    ends();
}

/* Goal: without memory to look after its copies the segment is the log's all the same. */
static void older_segment_whose_copies_are_not_looked_after(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.there = true;
        struct leat_takeover *takeover = brings(TAKEOVER_OLDER);
        if (i == 0) it.copies = LEAT_E_NO_MEMORY;
        if (i == 1) it.partition.copies = NULL;
        alone_deliver(), alone_deliver();
        assert_said(i == 0 ? "add segment\nlook after its copies\n"
                             "node log warn: no memory to look after copies of a segment\n"
                             "mail to 0\nmail to 0\n"
                           : "add segment\nmail to 0\nmail to 0\n");
        assert_null(takeover->seg);
        alone_deliver_all();
        ends();
    }
}

/* Goal: where the log begins by now nothing in front of that is fetched, and none that is needed is left out. */
static void older_segments_come_up_to_where_the_log_begins(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        it.there = true;
        struct leat_takeover *takeover = brings(TAKEOVER_OLDER);
        takeover->first_retained = i == 0 ? 5 : i == 1 ? 4 : 3;
        if (i == 2) it.retained = 2; /* says less than the takeover knows */
        if (i == 3) it.retained = 4;
        if (i == 4) takeover->first_retained = takeover->segment = 0;
        alone_deliver(), alone_deliver();
        bool ended = i != 2;
        assert_int_equal(takeover->state, ended ? TAKEOVER_COMPLETE : TAKEOVER_OLDER);
        if (!ended) assert_int_equal(takeover->segment, 3);
        assert_int_equal(takeover->left.count, 0);
        alone_deliver_all();
        ends();
    }
}

/* Goal: where the segment that comes into a hole names no earlier segment, nothing before it was lost: the earlier
 * segment was given up. Before any other segment a node may have one all the same. */
static void what_comes_into_a_hole_ends_at_a_jump(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool hole = i & 1, named = i & 2;
        begin();
        it.there = true;
        struct leat_takeover *takeover = brings(TAKEOVER_OLDER);
        takeover->hole_end = hole ? 9 : 0;
        if (!named) takeover->start.previous = (struct leat_prefix_id){0, 0};
        takeover->left.count = 2;
        alone_deliver(), alone_deliver();
        bool ended = hole && !named;
        assert_int_equal(takeover->state, ended ? TAKEOVER_COMPLETE : TAKEOVER_OLDER);
        if (!ended) assert_int_equal(takeover->left.count, 0);
        alone.mail_count = 0;
        ends();
    }
}

/* ---- no more come ---- */

static struct leat_takeover *ended(enum takeover_state how)
{
    begin();
    it.there = true;
    struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 1000);
    takeover_enter(takeover, how);
    return takeover;
}

static void tells(struct leat_takeover *takeover)
{
    said_enough();
    takeover_to_home(takeover);
    alone_deliver_all();
}

static void end_is_told_to_a_log_that_is_there(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct leat_takeover *takeover = ended(TAKEOVER_COMPLETE);
        if (i == 0) it.there = false;
        if (i == 1) alone.cores[HOME].stopping = true;
        if (i == 2) it.partition.give_up = (void *)&it;
        if (i == 3) it.partition.epoch.v = EPOCH + 1;
        tells(takeover);
        assert_said("mail to 1\n"
                    "mail to 0\n"
                    "mail to 0\n");
        assert_int_equal(takeovers(), 0);
        ends();
    }
}

/* Goal: where the log begins has to be known first only where what is in front was given up. */
static void end_is_told_before_the_front_is_known(void **state)
{
    (void)state;
    for (unsigned complete = 0; complete < 2; complete++) {
        struct leat_takeover *takeover = ended(complete ? TAKEOVER_COMPLETE : TAKEOVER_MISSING);
        it.front_known = false;
        tells(takeover);
        assert_int_equal(takeovers(), 0);
        ends();
    }
}

/* Goal: only for a log that lacks nothing are its left-over segments dropped. The front is given up only where no node
 * that may have it is away. */
static void end_says_what_is_missing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        static const enum takeover_state hows[] = {TAKEOVER_COMPLETE, TAKEOVER_MISSING,
                                                   TAKEOVER_NODE_DOWN};
        enum takeover_state how = hows[i % 3];
        bool complete = how == TAKEOVER_COMPLETE, holes = i > 2;
        struct leat_takeover *takeover = ended(how);
        struct leat_segment seg = {.id = {8}};
        if (holes) it.partition.holes = true, it.hole.behind = &seg;
        it.partition.unsure = (struct leat_segment_range){3, 4};
        it.partition.hole_below = 0;
        tells(takeover);
        bool whole = complete && !holes;
        char expected[512];
        snprintf(expected, sizeof expected,
                 "mail to 1\n%solder ones done\n%smail to 0\nmail to 0\n%s",
                 how == TAKEOVER_MISSING ? "give up the front\n" : "",
                 whole ? "no holes\ncopies: whole\n" : "",
                 whole ? "drop what is left of 7/1/1, epoch 9, but 3 to 4\n" : "");
        assert_said(expected);
        assert_int_equal(it.partition.backfill, whole ? LEAT_BACKFILL_NONE : LEAT_BACKFILL_DUE);
        assert_int_equal(it.partition.backfill_node_down, how == TAKEOVER_NODE_DOWN);
        assert_false(it.partition.backfill_pass_node_down);
        assert_true(it.partition.hole_below == UINT64_MAX);
        assert_int_equal(takeovers(), 0);
        ends();
    }
}

/* Goal: a node that was away at one place of a pass counts for the whole of it. */
static void end_remembers_who_was_away(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool before = i & 1, missing = i & 2;
        struct leat_takeover *takeover = ended(missing ? TAKEOVER_MISSING : TAKEOVER_COMPLETE);
        struct leat_segment seg = {.id = {8}};
        it.partition.backfill_pass_node_down = before;
        it.partition.holes = true, it.hole.behind = &seg;
        tells(takeover);
        assert_int_equal(it.partition.backfill_node_down, before);
        ends();
    }
}

/* ---- a gap between segments was looked at ---- */

/* Goal: as long as there is another hole the log is told nothing, and the node looks at that hole at once. */
static void hole_that_was_looked_at_is_followed_by_the_next(void **state)
{
    (void)state;
    struct leat_takeover *takeover = ended(TAKEOVER_COMPLETE);
    struct leat_segment seg = {.id = {5}};
    takeover->hole_end = 9;
    takeover->since_us = alone.now_us - 3000;
    it.partition.holes = true;
    it.hole.behind = &seg;
    it.partition.hole_below = UINT64_MAX;
    tells(takeover);
    assert_said("mail to 1\n"
                "node log info: log 7/1/1\n"
                "mail to 0\n"
                "mail to 0\n");
    assert_int_equal(it.partition.hole_below, 9);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
    assert_int_equal(it.partition.backfill_ticks, LEAT_OLDER_TICKS - 1);
    assert_int_equal(takeovers(), 0);
    ends();
}

/* Goal: the log is told of the segments that have come, and after the last hole whether any segment is still
 * missing. */
static void last_hole_ends_the_pass(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool complete = i & 1, left = i & 2;
        struct leat_takeover *takeover = ended(complete ? TAKEOVER_COMPLETE : TAKEOVER_NODE_DOWN);
        struct leat_segment seg = {.id = {12}};
        takeover->hole_end = 9;
        it.partition.holes = true;
        if (left) it.hole.behind = &seg; /* behind what was looked at: no place that is next */
        it.partition.unsure = (struct leat_segment_range){3, 4};
        tells(takeover);
        char expected[512];
        snprintf(
            expected, sizeof expected, "mail to 1\n%solder ones done\n%smail to 0\nmail to 0\n%s",
            complete ? "node log info: log 7/1/1\n" : "", left ? "" : "no holes\ncopies: whole\n",
            left ? "" : "drop what is left of 7/1/1, epoch 9, but 3 to 4\n");
        assert_said(expected);
        assert_int_equal(it.partition.backfill, left ? LEAT_BACKFILL_DUE : LEAT_BACKFILL_NONE);
        assert_int_equal(it.partition.backfill_node_down, left && !complete);
        assert_int_equal(it.partition.holes, left);
        ends();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_that_is_not_to_be_made_is_not),
        cmocka_unit_test(log_that_is_not_to_be_made_does_not_wait),
        cmocka_unit_test(log_of_a_deleted_stream_does_not_wait),
        cmocka_unit_test(log_that_cant_be_made_is_made_later),
        cmocka_unit_test(older_segment_that_the_log_has_no_use_for_goes_back),
        cmocka_unit_test(older_segment_that_the_log_has_is_passed_over),
        cmocka_unit_test(older_segment_waits_for_its_log),
        cmocka_unit_test(older_segment_whose_copies_are_not_looked_after),
        cmocka_unit_test(older_segments_come_up_to_where_the_log_begins),
        cmocka_unit_test(what_comes_into_a_hole_ends_at_a_jump),
        cmocka_unit_test(end_is_told_to_a_log_that_is_there),
        cmocka_unit_test(end_is_told_before_the_front_is_known),
        cmocka_unit_test(end_says_what_is_missing),
        cmocka_unit_test(end_remembers_who_was_away),
        cmocka_unit_test(hole_that_was_looked_at_is_followed_by_the_next),
        cmocka_unit_test(last_hole_ends_the_pass),
    };
    return cmocka_run_group_tests_name("broker takeover_home", tests, NULL, NULL);
}
