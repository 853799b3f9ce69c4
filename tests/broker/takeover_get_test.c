/* SPDX-License-Identifier: Apache-2.0 */
/* How a segment of a log that comes becomes this node's own, by takeover*.c alone: what is adopted, looked at and
 * pulled; where nothing names it; and what follows where nobody has it. */
#include "tests/broker/takeover_rig.h"

/* ---- here, or pulled ---- */

static void segment_is_adopted_looked_at_or_pulled(void **state)
{
    (void)state;
    static const struct {
        leat_err adopt, look;
        const char *said;
    } rows[] = {
        {LEAT_OK, LEAT_OK, ""},
        {LEAT_E_AGAIN, LEAT_OK, ""},
        {LEAT_E_NO_MEMORY, LEAT_OK, ""},
        {LEAT_E_STALE_EPOCH, LEAT_OK, ""},
        {LEAT_E_NOT_FOUND, LEAT_OK, "look at any 7/1/1 segment 4 1000:4\n"},
        {LEAT_E_NOT_FOUND, LEAT_E_AGAIN, "look at any 7/1/1 segment 4 1000:4\n"},
        {LEAT_E_NOT_FOUND, LEAT_E_NOT_FOUND,
         "look at any 7/1/1 segment 4 1000:4\n"
         "pull 7/1/1 segment 4 1000:4 next 50 version 0, of 2 nodes from 10\n"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        it.adopt = rows[i].adopt;
        it.look = rows[i].look;
        struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
        char expected[512];
        snprintf(expected, sizeof expected, "mail to 0\nmail to 0\n%s%s",
                 "adopt 7/1/1 segment 4 1000:4 next 50, epoch 9\n", rows[i].said);
        assert_said(expected);
        bool pauses = (i >= 1 && i <= 3) || i == 5;
        assert_int_equal(takeover->busy, !pauses);
        if (pauses) assert_pauses(takeover, TICK);
        ends();
    }
}

/* Goal: a copy that is longer than its candidate is not looked at, and a candidate is pulled whole. */
static void candidate_is_pulled_whole(void **state)
{
    (void)state;
    begin();
    it.adopt = LEAT_E_NOT_FOUND;
    (void)wants(TAKEOVER_TAIL, 0);
    below_found(LEAT_OK, 4, 1);
    said_enough();
    alone_deliver();
    assert_said("adopt 7/1/1 segment 4 1000:1 next 0, epoch 9\n"
                "pull 7/1/1 segment 4 1000:1 next 0 version 0 whole, of 2 nodes from 10\n");
    assert_ptr_equal(it.pulling->owner, alone.cores[0].takeovers->all.next);
    ends();
}

static void all_that_are_up_are_asked(void **state)
{
    (void)state;
    begin();
    struct leat_backup_pull pull = {.node_count = 9};
    leat_pull_from_all(&alone.cores[0], &pull);
    assert_int_equal(pull.node_count, 2);
    assert_int_equal(pull.nodes[0], 10);
    assert_int_equal(pull.nodes[1], 12);
    assert_true(leat_all_nodes_up(&alone.cores[0]));
    node_is(2, LEAT_NODE_DOWN, false);
    leat_pull_from_all(&alone.cores[0], &pull);
    assert_int_equal(pull.node_count, 1);
    assert_false(leat_all_nodes_up(&alone.cores[0]));
    node_is(2, LEAT_NODE_DOWN, true);
    assert_true(leat_all_nodes_up(&alone.cores[0]));
    node_is(0, LEAT_NODE_DOWN, false);
    assert_false(leat_all_nodes_up(&alone.cores[0]));
    ends();
}

static void pull_ends_somehow(void **state)
{
    (void)state;
    begin();
    it.adopt = it.look = LEAT_E_NOT_FOUND;
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    assert_true(takeover->all_asked);
    said_enough();
    pulled(LEAT_OK);
    assert_said("mail to 0\n");
    assert_false(takeover->busy);
    assert_int_equal(takeover->failures, 0);
    it.pull = LEAT_E_AGAIN; /* others are under way */
    alone_deliver();
    assert_pauses(takeover, TICK);
    assert_int_equal(takeover->failures, 0);
    it.pull = LEAT_OK;
    later(TICK);
    pulled(LEAT_E_CLOSED);
    assert_pauses(takeover, 5 * TICK);
    assert_int_equal(takeover->failures, 0);
    later(5 * TICK);
    node_is(2, LEAT_NODE_DOWN, false);
    pulled(LEAT_E_NOT_FOUND);
    assert_true(takeover->all_asked); /* when it was asked */
    assert_pauses(takeover, TICK);
    assert_int_equal(takeover->failures, 1);
    assert_int_equal(takeover->nowhere, 1);
    it.pull = LEAT_E_NOT_FOUND; /* nobody can be asked */
    later(TICK);
    assert_false(takeover->all_asked);
    assert_pauses(takeover, TICK);
    assert_int_equal(takeover->nowhere, 2);
    ends();
}

/* ---- the last one is nowhere ---- */

/* Goal: a node whose copy is damaged has no copy. Any other failure may be the node's, which may have the segment
 * then. */
static void last_segment_is_nowhere_when_all_say_so(void **state)
{
    (void)state;
    begin();
    it.adopt = it.look = LEAT_E_NOT_FOUND;
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    pulled(LEAT_E_NOT_FOUND);
    uint64_t first_us = alone.now_us;
    assert_int_equal(takeover->missing_us, first_us);
    fails(LEAT_E_DAMAGED, TICK);
    assert_int_equal(takeover->nowhere, 2);
    assert_int_equal(takeover->missing_us, first_us);
    fails(LEAT_E_DISK, TICK);
    assert_int_equal(takeover->nowhere, 0);
    assert_int_equal(takeover->failures, 3);
    fails(LEAT_E_NOT_FOUND, TICK);
    assert_int_equal(takeover->nowhere, 1);
    assert_int_equal(takeover->missing_us, alone.now_us);
    for (unsigned i = 4; i < 9; i++)
        fails(LEAT_E_NOT_FOUND, TICK);
    assert_pauses(takeover, TICK);
    fails(LEAT_E_NOT_FOUND, TICK); /* the tenth */
    assert_pauses(takeover, 10 * TICK);
    ends();
}

/* Goal: for as long as the limit says, which is longer while a node is down. */
static void last_segment_is_looked_for_for_some_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool down = i & 1, early = i & 2;
        begin();
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
        pulled(LEAT_E_NOT_FOUND);
        if (down) node_is(3, LEAT_NODE_DOWN, false);
        uint64_t limit_us = down ? LEAT_TAKEOVER_AWAY_US : LEAT_TAKEOVER_NOWHERE_US;
        fails(LEAT_E_NOT_FOUND, limit_us - TICK - early);
        assert_pauses(takeover, TICK);
        later(TICK);
        said_enough();
        pulled(LEAT_E_NOT_FOUND);
        assert_said(early ? "" : "mail to 1\n");
        assert_int_equal(takeover->state, early ? TAKEOVER_TAIL : TAKEOVER_ABSENT);
        assert_int_equal(takeover->busy, !early);
        alone.mail_count = 0;
        ends();
    }
}

/* Goal: however long the wait, a node whose disk fails may have the segment. */
static void last_segment_is_not_nowhere_while_disks_fail(void **state)
{
    (void)state;
    begin();
    it.adopt = it.look = LEAT_E_NOT_FOUND;
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    alone.now_us += LEAT_TAKEOVER_NOWHERE_US;
    pulled(LEAT_E_DISK);
    assert_pauses(takeover, TICK);
    assert_int_equal(takeover->state, TAKEOVER_TAIL);
    ends();
}

/* Goal: then the log is made as a log that waits, and its segment is looked for all the same; the log that stands in
 * goes first. */
static void log_whose_last_segment_is_nowhere_waits(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    said_enough();
    takeover_enter(takeover, TAKEOVER_ABSENT);
    takeover_to_home(takeover);
    alone_deliver();
    assert_said("mail to 1\n"
                "make 7/1/1, epoch 9, of 0 segments, next 5 at 50, behind 1000:4, stands in\n"
                "it waits: its last segment 4 is on no node that is up\n"
                "node log error: stream \"orders\", streamlet 1, log 1 waits\n"
                "mail to 0\n");
    assert_true(it.partition.tail_missing);
    assert_int_equal(it.partition.highest_segment, 4);
    alone_deliver();
    assert_int_equal(takeover->state, TAKEOVER_TAIL);
    assert_pauses(takeover, 10 * TICK);
    alone_deliver();
    said_enough();
    takeover_enter(takeover, TAKEOVER_ABSENT);
    takeover_to_home(takeover);
    alone_deliver();
    assert_said("mail to 1\n"
                "mail to 0\n"); /* it is there already */
    alone_deliver_all();
    assert_pauses(takeover, 10 * TICK);
    later(10 * TICK);
    it.seg.buffer = (uint8_t *)"";
    adopted(LEAT_OK);
    alone_deliver();
    assert_said("adopt 7/1/1 segment 4 1000:4 next 50, epoch 9\n"
                "start entry in 1000 bytes\n"
                "mail to 1\n"
                "give up the log\n"
                "mail to 0\n");
    alone_deliver();
    assert_pauses(takeover, TICK);
    alone_deliver();
    it.there = it.partition.tail_missing = false;
    later(TICK);
    assert_said("start entry in 1000 bytes\n"
                "mail to 1\n");
    takeover->since_us = alone.now_us;
    alone_deliver();
    said_enough();
    alone_deliver();
    assert_said("mail to 0\n"
                "node log info: log 7/1/1 is served here under epoch 9, 0 ms after this node heard "
                "of it\n");
    alone.mail_count = 0;
    ends();
}

/* Goal: where a log waits that goes already nothing is given up twice. */
static void log_that_goes_already_is_waited_for(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 1000);
    it.seg.buffer = (uint8_t *)"";
    it.there = it.partition.tail_missing = true;
    it.partition.state = LEAT_PARTITION_GOES;
    adopted(LEAT_OK);
    said_enough();
    alone_deliver();
    assert_said("mail to 0\n");
    alone_deliver();
    assert_pauses(takeover, TICK);
    alone_deliver();
    it.partition.tail_missing = false;
    it.partition.state = LEAT_PARTITION_SERVES;
    it.partition.epoch.v = EPOCH - 1; /* an earlier one */
    later(TICK);
    alone_deliver();
    assert_said("start entry in 1000 bytes\n"
                "mail to 1\n"
                "mail to 0\n");
    alone_deliver_all();
    assert_pauses(takeover, TICK);
    ends();
}

/* Goal: a takeover whose log has been made meanwhile ends, and makes no second log. */
static void log_that_is_made_ends_the_takeover(void **state)
{
    (void)state;
    begin();
    (void)wants(TAKEOVER_TAIL, 1000);
    it.seg.buffer = (uint8_t *)"";
    it.there = true;
    adopted(LEAT_OK);
    said_enough();
    alone_deliver_all();
    assert_said("mail to 0\n"
                "mail to 0\n"
                "take back segment 4\n");
    assert_int_equal(takeovers(), 0);
    ends();
}

/* ---- nothing names it ---- */

static struct leat_takeover *wants_jumped(uint64_t segment)
{
    struct leat_takeover *takeover = wants(TAKEOVER_TAIL, 0);
    takeover->tail.jumped = true;
    takeover->segment = segment;
    takeover->next_offset = 0;
    return takeover;
}

/* Goal: unless a node is down that may have a newer segment. */
static void newest_that_is_found_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool down = i & 1, newest = i & 2;
        begin();
        if (down) node_is(3, LEAT_NODE_DOWN, false);
        struct leat_takeover *takeover = wants_jumped(4);
        assert_said("mail to 0\n"
                    "mail to 0\n"
                    "newest of 7/1/1 up to segment 4?\n");
        assert_true(takeover->busy);
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        below_found(LEAT_OK, newest ? 4 : 3, 2);
        assert_int_equal(takeover->nowhere, down && !newest);
        if (down && !newest) {
            assert_said("");
            assert_pauses(takeover, TICK);
            later(TICK);
            assert_said("newest of 7/1/1 up to segment 4?\n");
        } else {
            assert_said("mail to 0\n");
            assert_int_equal(takeover->segment, newest ? 4 : 3);
            assert_string_equal(prefix_id_text(takeover->prefix_id), "1000:1");
            assert_int_equal(takeover->left.count, 2);
        }
        alone.mail_count = 0;
        ends();
    }
}

static void node_that_went_down_meanwhile_counts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        if (i == 0) node_is(2, LEAT_NODE_DOWN, false);
        struct leat_takeover *takeover = wants_jumped(4);
        node_is(2, i == 1 ? LEAT_NODE_DOWN : LEAT_NODE_UP, false);
        it.below->missed = i == 2; /* when it was to be asked */
        said_enough();
        below_found(LEAT_OK, 0, 0);
        assert_false(takeover->all_asked);
        assert_said("");
        assert_pauses(takeover, TICK);
        ends();
    }
}

/* Goal: nodes that could not be asked are asked again; a stream that has gone has no segments. */
static void newest_is_asked_for_again(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants_jumped(4);
    takeover->next_offset = 9;
    below_found(LEAT_E_AGAIN, 4, 1);
    assert_pauses(takeover, 5 * TICK);
    assert_int_equal(takeover->nowhere, 0);
    later(5 * TICK);
    said_enough();
    below_found(LEAT_E_UNKNOWN_STREAM, 4, 1);
    assert_said("mail to 0\n");
    assert_int_equal(takeover->next_offset, 0);
    alone.mail_count = 0;
    ends();
}

/* Goal: nobody has anything: the log begins behind the jump, without a segment. */
static void nothing_left_makes_a_log_without_segments(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants_jumped(4);
    takeover->tail.next_offset = 1000;
    below_found(LEAT_OK, 0, 0);
    assert_int_equal(takeover->state, TAKEOVER_TAIL);
    said_enough();
    alone_deliver_all();
    assert_said("make 7/1/1, epoch 9, of 0 segments, next 5 at 1000, behind 0:0, jumped\n"
                "mail to 0\n"
                "mail to 0\n"
                "node log info: log 7/1/1 is served here under epoch 9, 0 ms after this node heard "
                "of it\n");
    assert_int_equal(takeovers(), 0);
    ends();
}

/* Goal: where no node gives out the candidate that was found, the next best is tried, and when none is left, an older
 * segment. */
static void candidate_that_nobody_gives_out_is_passed_over(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = wants_jumped(4);
    it.adopt = it.look = LEAT_E_NOT_FOUND;
    below_found(LEAT_OK, 4, 2);
    alone_deliver();
    pulled(LEAT_E_NOT_FOUND);
    assert_pauses(takeover, TICK);
    fails(LEAT_E_NOT_FOUND, LEAT_TAKEOVER_MISSING_US - 1);
    assert_string_equal(prefix_id_text(takeover->prefix_id), "1000:1");
    fails(LEAT_E_NOT_FOUND, TICK);
    assert_string_equal(prefix_id_text(takeover->prefix_id), "1000:2");
    assert_int_equal(takeover->failures, 0);
    assert_int_equal(takeover->nowhere, 0);
    assert_pauses(takeover, TICK);
    fails(LEAT_E_NOT_FOUND, TICK);
    fails(LEAT_E_DAMAGED, LEAT_TAKEOVER_MISSING_US - TICK);
    assert_int_equal(takeover->segment, 4);
    fails(LEAT_E_DAMAGED, TICK);
    assert_int_equal(takeover->segment, 3);
    assert_int_equal(takeover->nowhere, 0);
    assert_int_equal(takeover->prefix_id.bytes, 0);
    assert_int_equal(takeover->prefix_id.crc, 0);
    assert_pauses(takeover, TICK);
    later(TICK);
    assert_said("newest of 7/1/1 up to segment 3?\n");
    assert_int_equal(takeover->left.count, 0);
    takeover->segment = 0;
    below_found(LEAT_OK, 0, 1);
    alone_deliver();
    pulled(LEAT_E_NOT_FOUND);
    fails(LEAT_E_NOT_FOUND, LEAT_TAKEOVER_MISSING_US);
    assert_said("adopt 7/1/1 segment 0 1000:1 next 0, epoch 9\n"
                "pull 7/1/1 segment 0 1000:1 next 0 version 0 whole, of 2 nodes from 10\n"
                "mail to 1\n"); /* nothing is left */
    assert_true(takeover->busy);
    alone.mail_count = 0;
    ends();
}

/* Goal: nobody is passed over while a node is down, or as long as one may only be out of reach. */
static void candidate_is_waited_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        struct leat_takeover *takeover = wants_jumped(4);
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        below_found(LEAT_OK, 4, 2);
        if (i == 0) node_is(2, LEAT_NODE_DOWN, false);
        alone_deliver();
        pulled(LEAT_E_NOT_FOUND);
        fails(i == 0 ? LEAT_E_NOT_FOUND : LEAT_E_DISK, 2 * LEAT_TAKEOVER_MISSING_US);
        assert_int_equal(takeover->left.count, 2);
        assert_int_equal(takeover->segment, 4);
        assert_pauses(takeover, TICK);
        ends();
    }
}

/* Goal: an older candidate, too, is passed over because no node has it, and not because disks failed, or nodes were
 * down. */
static void older_candidate_is_passed_over_where_nobody_has_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        bool passed = i == 1;
        begin();
        struct leat_takeover *takeover = wants_jumped(4);
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        below_found(LEAT_OK, 4, 2);
        takeover_enter(takeover, TAKEOVER_OLDER);
        if (i == 2) node_is(2, LEAT_NODE_DOWN, false);
        alone_deliver();
        pulled(LEAT_E_DISK);
        later(TICK);
        alone.now_us += LEAT_TAKEOVER_MISSING_US;
        pulled(i == 0 ? LEAT_E_DISK : LEAT_E_NOT_FOUND);
        assert_int_equal(takeover->state, passed   ? TAKEOVER_OLDER
                                          : i == 2 ? TAKEOVER_NODE_DOWN
                                                   : TAKEOVER_MISSING);
        assert_int_equal(takeover->left.count, passed ? 1 : 2);
        alone.mail_count = 0;
        ends();
    }
}

/* ---- an older one is nowhere ---- */

static void older_segment_is_looked_for_for_some_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool down = i & 1, early = i & 2;
        begin();
        it.there = true;
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 900);
        pulled(LEAT_E_DISK);
        uint64_t first_us = alone.now_us;
        assert_pauses(takeover, TICK);
        if (down) node_is(3, LEAT_NODE_DOWN, false);
        fails(LEAT_E_NOT_FOUND, LEAT_TAKEOVER_MISSING_US - TICK - early);
        assert_int_equal(takeover->missing_us, first_us);
        assert_pauses(takeover, TICK);
        later(TICK);
        said_enough();
        pulled(LEAT_E_NOT_FOUND);
        assert_said(early ? "" : "mail to 0\n");
        assert_int_equal(takeover->state, early  ? TAKEOVER_OLDER
                                          : down ? TAKEOVER_NODE_DOWN
                                                 : TAKEOVER_MISSING);
        assert_false(takeover->busy);
        if (early) alone.now_us += TICK;
        if (early) tick();
        if (early) pulled(LEAT_E_NOT_FOUND);
        said_enough();
        alone_deliver_all();
        assert_said(down ? "mail to 1\nolder ones done\nmail to 0\nmail to 0\n"
                         : "mail to 1\ngive up the front\nolder ones done\nmail to 0\nmail to 0\n");
        assert_int_equal(takeovers(), 0);
        assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
        assert_int_equal(it.partition.backfill_node_down, down);
        ends();
    }
}

/* Goal: so a takeover ends where no node is there to be asked. */
static void older_segment_that_nobody_can_be_asked_for_ends(void **state)
{
    (void)state;
    begin();
    it.there = true;
    it.adopt = it.look = it.pull = LEAT_E_NOT_FOUND;
    struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 900);
    assert_pauses(takeover, TICK);
    later(LEAT_TAKEOVER_MISSING_US);
    assert_int_equal(takeover->state, TAKEOVER_MISSING);
    said_enough();
    alone_deliver_all();
    assert_said("mail to 1\ngive up the front\nolder ones done\nmail to 0\nmail to 0\n");
    assert_int_equal(takeovers(), 0);
    ends();
}

/* Goal: a segment that was looked for before is not waited for, where all nodes say that they have no copy. */
static void older_segment_looked_for_before_is_given_up_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.adopt = it.look = LEAT_E_NOT_FOUND;
        struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 900);
        takeover->repeated = true;
        pulled(i == 0 ? LEAT_E_NOT_FOUND : LEAT_E_DAMAGED);
        assert_int_equal(takeover->state, i == 0 ? TAKEOVER_MISSING : TAKEOVER_OLDER);
        alone.mail_count = 0;
        ends();
    }
}

/* Goal: the next of several candidates is tried. */
static void older_candidate_is_passed_over(void **state)
{
    (void)state;
    begin();
    it.adopt = it.look = LEAT_E_NOT_FOUND;
    struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 0);
    takeover->repeated = true;
    below_found(LEAT_OK, 4, 2);
    alone_deliver();
    pulled(LEAT_E_NOT_FOUND);
    assert_int_equal(takeover->state, TAKEOVER_OLDER);
    assert_string_equal(prefix_id_text(takeover->prefix_id), "1000:2");
    assert_pauses(takeover, TICK);
    fails(LEAT_E_NOT_FOUND, TICK);
    assert_int_equal(takeover->state, TAKEOVER_MISSING);
    alone.mail_count = 0;
    ends();
}

/* Goal: nothing is named in front, and nobody has anything: the front went with what was given up. */
static void nothing_in_front_of_a_jump_ends_the_takeover(void **state)
{
    (void)state;
    begin();
    it.there = true;
    struct leat_takeover *takeover = wants(TAKEOVER_OLDER, 0);
    below_found(LEAT_OK, 0, 0);
    assert_int_equal(takeover->state, TAKEOVER_NONE_LEFT);
    said_enough();
    it.front_known = false; /* where the log begins has to be known first */
    alone_deliver_all();
    assert_said("mail to 0\n"
                "mail to 0\n");
    assert_pauses(takeover, TICK);
    it.front_known = true;
    later(TICK);
    alone_deliver_all();
    assert_said("mail to 1\n"
                "give up the front, jumped\n"
                "older ones done\n"
                "no holes\n"
                "copies: whole\n"
                "mail to 0\n"
                "mail to 0\n"
                "drop what is left of 7/1/1, epoch 9, but 0 to 0\n");
    assert_int_equal(takeovers(), 0);
    ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_is_adopted_looked_at_or_pulled),
        cmocka_unit_test(candidate_is_pulled_whole),
        cmocka_unit_test(all_that_are_up_are_asked),
        cmocka_unit_test(pull_ends_somehow),
        cmocka_unit_test(last_segment_is_nowhere_when_all_say_so),
        cmocka_unit_test(last_segment_is_looked_for_for_some_time),
        cmocka_unit_test(last_segment_is_not_nowhere_while_disks_fail),
        cmocka_unit_test(log_whose_last_segment_is_nowhere_waits),
        cmocka_unit_test(log_that_goes_already_is_waited_for),
        cmocka_unit_test(log_that_is_made_ends_the_takeover),
        cmocka_unit_test(newest_that_is_found_is_taken),
        cmocka_unit_test(node_that_went_down_meanwhile_counts),
        cmocka_unit_test(newest_is_asked_for_again),
        cmocka_unit_test(older_candidate_is_passed_over_where_nobody_has_it),
        cmocka_unit_test(nothing_left_makes_a_log_without_segments),
        cmocka_unit_test(candidate_that_nobody_gives_out_is_passed_over),
        cmocka_unit_test(candidate_is_waited_for),
        cmocka_unit_test(older_segment_is_looked_for_for_some_time),
        cmocka_unit_test(older_segment_that_nobody_can_be_asked_for_ends),
        cmocka_unit_test(older_segment_looked_for_before_is_given_up_at_once),
        cmocka_unit_test(older_candidate_is_passed_over),
        cmocka_unit_test(nothing_in_front_of_a_jump_ends_the_takeover),
    };
    return cmocka_run_group_tests_name("broker takeover_get", tests, NULL, NULL);
}
