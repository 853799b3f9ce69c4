/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come, by takeover*.c alone: the last segment, the log that is made of it, and the older segments; which
 * takeover waits for which; what is pulled, and what happens where it can't be had. */
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "tests/broker/takeover_rig.h"

/* ---- step by step ---- */

static void log_comes_step_by_step(void **state)
{
    (void)state;
    begin();
    it.seg.file_offset = 8192;
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    assert_said("mail to 0\n");
    assert_true(alone_deliver());
    assert_true(leat_takeover_is_under_way(&alone.cores[0], LOG));
    assert_false(leat_takeover_is_under_way(&alone.cores[0], (struct leat_log_ref){7, 1, 0}));
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("adopt 7/1/1 segment 4 1000:4 next 50, epoch 9\n");
    assert_non_null(it.timer);
    tick(); /* it is busy */
    assert_said("");
    adopted(LEAT_OK);
    assert_said("read 4096 bytes at 8192\n");
    alone_io_done(LEAT_OK, 4096);
    assert_said("where does the start of 1000 bytes end, by 4096?\n"
                "start entry in 4096 bytes\n"
                "mail to 1\n");
    alone.now_us += 5000;
    alone_deliver();
    assert_said("make 7/1/1, epoch 9, of 1 segments, next 5 at 50, behind 1000:4, older follow\n"
                "mail to 0\n");
    alone_deliver();
    assert_said("mail to 0\n"
                "node log info: log 7/1/1 is served here under epoch 9, 5 ms after this node heard "
                "of it\n");
    alone_deliver();
    assert_said(
        "adopt 7/1/1 segment 3 900:3 next 40, epoch 9\n"); /* the one before, as the start entry names it */
    it.seg.buffer = (uint8_t *)"";
    it.start.previous = (struct leat_prefix_id){800, 2};
    it.start.base_offset = 30;
    adopted(LEAT_OK); /* its bytes are in memory */
    assert_said("start entry in 900 bytes\n"
                "mail to 1\n");
    alone_deliver();
    assert_said("add segment\n"
                "look after its copies\n"
                "mail to 0\n");
    alone_deliver();
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("adopt 7/1/1 segment 2 800:2 next 30, epoch 9\n");
    adopted(LEAT_OK);
    alone_deliver();
    said_enough();
    it.partition.unsure = (struct leat_segment_range){5, 6};
    alone_deliver();
    assert_said("mail to 0\n"); /* 2 is the first that is retained */
    alone_deliver();
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("older ones done\n"
                "no holes\n"
                "copies: whole\n"
                "mail to 0\n");
    alone_deliver();
    assert_said("mail to 0\n"
                "drop what is left of 7/1/1, epoch 9, but 5 to 6\n");
    assert_int_equal(takeovers(), 0);
    it.timer = NULL;
    alone_deliver();
    assert_said("");
    assert_null(it.timer); /* nothing is left to be looked at */
    end();
}

/* Goal: a log that has no segments is made of none, and nothing more of it comes. */
static void log_without_segments_is_made(void **state)
{
    (void)state;
    begin();
    begun()->record.tail = (struct leat_tail_record){.segment = UINT64_MAX, .next_offset = 7};
    ask();
    assert_true(it.there);
    assert_int_equal(takeovers(), 0);
    begun()->epoch.v = EPOCH + 1;
    it.there = false;
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    alone_deliver_all();
    assert_said("mail to 0\n"
                "mail to 0\n"
                "mail to 1\n"
                "make 7/1/1, epoch 10, of 0 segments, next 0 at 7, behind 0:0\n"
                "mail to 0\n"
                "mail to 0\n"
                "node log info: log 7/1/1 is served here under epoch 10, 0 ms after this node "
                "heard of it\n");
    end();
}

/* Goal: behind a jump of offsets the chain begins anew. */
static void log_behind_a_jump_names_no_predecessor(void **state)
{
    (void)state;
    begin();
    begun()->record.tail.jumped = true;
    begun()->record.tail.next_offset = 1000;
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    alone_deliver_all();
    assert_said("mail to 0\n"
                "mail to 0\n"
                "adopt 7/1/1 segment 4 1000:4 next 0, epoch 9\n");
    it.seg.buffer = (uint8_t *)"";
    adopted(LEAT_OK);
    alone_deliver();
    assert_said(
        "start entry in 1000 bytes\n"
        "mail to 1\n"
        "make 7/1/1, epoch 9, of 1 segments, next 5 at 1000, behind 0:0, jumped, older follow\n"
        "mail to 0\n");
    it.there = false;
    alone.cores[HOME].stopping = true;
    alone_deliver_all();
    adopted(LEAT_OK);
    alone_deliver_all();
    end();
}

/* Goal: a single older segment is enough to follow. */
static void log_of_two_segments_has_an_older_one(void **state)
{
    (void)state;
    begin();
    begun()->record.tail.segment = 1;
    it.seg.buffer = (uint8_t *)"";
    ask();
    adopted(LEAT_OK);
    said_enough();
    alone_deliver();
    assert_said("make 7/1/1, epoch 9, of 1 segments, next 2 at 50, behind 1000:4, older follow\n"
                "mail to 0\n");
    alone.mail_count = 0;
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* Goal: where the first segment is the last one nothing older follows. */
static void log_of_one_segment_has_nothing_older(void **state)
{
    (void)state;
    begin();
    begun()->record.tail.segment = 0;
    it.seg.buffer = (uint8_t *)"";
    ask();
    adopted(LEAT_OK);
    alone_deliver();
    assert_said("start entry in 1000 bytes\n"
                "mail to 1\n"
                "make 7/1/1, epoch 9, of 1 segments, next 1 at 50, behind 1000:4\n"
                "mail to 0\n");
    alone_deliver_all();
    assert_said(
        "mail to 0\n"
        "node log info: log 7/1/1 is served here under epoch 9, 0 ms after this node heard of it\n"
        "mail to 1\n"
        "older ones done\n"
        "no holes\n"
        "copies: whole\n"
        "mail to 0\n"
        "mail to 0\n"
        "drop what is left of 7/1/1, epoch 9, but 0 to 0\n");
    end();
}

/* ---- who is next ---- */

static struct leat_takeover *ask_epoch(uint32_t epoch, enum takeover_state state)
{
    struct leat_takeover *takeover =
        takeover_create(&alone.cores[HOME], LOG, (struct leat_epoch){epoch});
    assert_non_null(takeover);
    takeover->state = state;
    takeover->segment = 4;
    takeover->tail.segment = 4;
    takeover->prefix_id = (struct leat_prefix_id){1000, 4};
    takeover_send(takeover);
    return takeover;
}

static void takeover_is_made_for_its_home(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = ask_epoch(3, TAKEOVER_TAIL);
    assert_ptr_equal(takeover->node, &alone.node);
    assert_int_equal(takeover->home, HOME);
    assert_int_equal(takeover->epoch.v, 3);
    assert_true(leat_log_ref_equal(takeover->ref, LOG));
    alone.now_us = 77;
    alone_deliver();
    assert_int_equal(takeover->since_us, 77);
    alone_deliver();
    leat_takeovers_fini(&alone.cores[0]);
    leat_mem_fail_at(1);
    assert_null(takeover_create(&alone.cores[HOME], LOG, (struct leat_epoch){3}));
    leat_mem_fail_at(0);
    end();
}

/* Goal: the same question twice is one; a later epoch's stands behind, and has its turn when the first has ended,
 * which it does at once, but for what is under way. An earlier one's ends no other. */
static void takeovers_of_one_log_stand_in_order(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *first = ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    (void)ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    assert_int_equal(takeovers(), 1);
    struct leat_takeover *second = ask_epoch(6, TAKEOVER_TAIL);
    struct leat_takeover *third = ask_epoch(4, TAKEOVER_TAIL);
    alone_deliver_all();
    assert_int_equal(takeovers(), 3);
    assert_true(first->replaced && !second->replaced && !third->replaced);
    assert_true(!first->queued && second->queued && third->queued);
    said_enough();
    tick();
    assert_said("");
    it.adopt = LEAT_OK;
    adopted(LEAT_E_DAMAGED); /* back, and nothing of it is wanted any more */
    tick();
    assert_int_equal(takeovers(), 2);
    assert_false(second->queued);
    assert_true(third->queued);
    assert_said("adopt 7/1/1 segment 4 1000:4 next 0, epoch 6\n");
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* Goal: a takeover that asks for a last segment has no log. It ends a takeover of the same epoch that fetches older
 * segments, and no other. */
static void last_segment_asked_for_anew_ends_the_older_ones(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        enum takeover_state before = i & 1 ? TAKEOVER_TAIL : TAKEOVER_OLDER,
                            then = i & 2 ? TAKEOVER_TAIL : TAKEOVER_OLDER;
        struct leat_takeover *first = ask_epoch(5, before);
        alone_deliver_all();
        (void)ask_epoch(5, then);
        alone_deliver_all();
        bool ends = before == TAKEOVER_OLDER && then == TAKEOVER_TAIL;
        assert_int_equal(takeovers(), ends ? 2 : 1);
        assert_int_equal(first->replaced, ends);
        leat_takeovers_fini(&alone.cores[0]);
        end();
    }
}

/* Goal: another log's stands beside it. */
static void takeovers_of_other_logs_go_on(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    said_enough();
    struct leat_takeover *other =
        takeover_create(&alone.cores[HOME], (struct leat_log_ref){7, 0, 1}, (struct leat_epoch){6});
    other->tail.segment = UINT64_MAX;
    takeover_send(other);
    alone_deliver(), alone_deliver();
    assert_said("mail to 0\n"
                "mail to 0\n"
                "mail to 1\n");
    assert_false(takeover->replaced || other->queued);
    alone.mail_count = 0;
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* So many takeovers of other logs come to core 0, in that state. */
static void others_come(uint32_t first, uint32_t end, enum takeover_state state,
                        struct leat_segment *seg, uint64_t again_us)
{
    for (uint32_t i = first; i < end; i++) {
        struct leat_takeover *takeover = takeover_create(
            &alone.cores[HOME], (struct leat_log_ref){7, 1, i}, (struct leat_epoch){6});
        takeover->state = state;
        takeover->prefix_id.bytes = 1;
        takeover->seg = seg;
        takeover->again_us = again_us;
        takeover_send(takeover);
    }
    alone_deliver_all();
}

static unsigned busy_count(void)
{
    unsigned busy = 0;
    LEAT_LIST_EACH(&alone.cores[0].takeovers->all, each)
    busy += LEAT_CONTAINER(each, struct leat_takeover, link)->busy;
    return busy;
}

/* Goal: older segments of so many logs come at one time; last ones of any number. */
static void older_segments_of_few_logs_come_at_one_time(void **state)
{
    (void)state;
    for (unsigned last = 0; last < 2; last++) {
        begin();
        others_come(0, LEAT_TAKEOVER_OLDER_MAX + 2, last ? TAKEOVER_TAIL : TAKEOVER_OLDER, NULL, 0);
        assert_int_equal(busy_count(), LEAT_TAKEOVER_OLDER_MAX + (last ? 2 : 0));
        leat_takeovers_fini(&alone.cores[0]);
        end();
    }
}

/* Goal: logs whose older segments are on no node, and who pause between two looks, keep no other log waiting. */
static void older_segments_that_are_nowhere_hold_no_place(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i < 2 * LEAT_TAKEOVER_OLDER_MAX; i++) {
        struct leat_takeover *takeover = takeover_create(
            &alone.cores[HOME], (struct leat_log_ref){7, 1, i}, (struct leat_epoch){6});
        takeover->state = TAKEOVER_OLDER;
        takeover->prefix_id.bytes = 1;
        takeover->again_us = i < LEAT_TAKEOVER_OLDER_MAX ? UINT64_MAX : 0;
        takeover_send(takeover);
    }
    alone_deliver_all();
    unsigned i = 0;
    LEAT_LIST_EACH(&alone.cores[0].takeovers->all, each)
    {
        bool pauses = i++ < LEAT_TAKEOVER_OLDER_MAX;
        assert_int_equal(LEAT_CONTAINER(each, struct leat_takeover, link)->busy, !pauses);
    }
    assert_int_equal(i, 2 * LEAT_TAKEOVER_OLDER_MAX);
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* Goal: each search for older segments has its turn, whatever keeps those before it from going on. */
static void searches_for_older_segments_take_turns(void **state)
{
    (void)state;
    begin();
    it.adopt = LEAT_E_AGAIN;
    for (uint32_t i = 0; i < 4 * LEAT_TAKEOVER_OLDER_MAX; i++) {
        struct leat_takeover *takeover = takeover_create(
            &alone.cores[HOME], (struct leat_log_ref){7, 1, i}, (struct leat_epoch){6});
        takeover->state = TAKEOVER_OLDER;
        takeover->prefix_id.bytes = 1;
        takeover_send(takeover);
    }
    alone_deliver_all();
    for (unsigned i = 1; i < 4; i++) {
        alone.now_us += TICK;
        tick();
    }
    LEAT_LIST_EACH(&alone.cores[0].takeovers->all, each)
    assert_int_not_equal(LEAT_CONTAINER(each, struct leat_takeover, link)->again_us, 0);
    leat_takeovers_fini(&alone.cores[0]);
    said_enough();
    end();
}

/* Goal: an older segment that is on its way, or here and not read yet, has a place; a last segment has none. */
static void older_segments_keep_their_places(void **state)
{
    (void)state;
    enum { MANY = LEAT_TAKEOVER_OLDER_MAX };
    static const struct {
        enum takeover_state state;
        bool seg, pauses;
        unsigned then; /* so many of MANY older ones that come later go on at once */
    } rows[] = {
        {TAKEOVER_TAIL, false, false, MANY},
        {TAKEOVER_OLDER, false, false, 0},
        {TAKEOVER_OLDER, true, true, 0},
        {TAKEOVER_OLDER, false, true, MANY},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        others_come(0, MANY, rows[i].state, rows[i].seg ? &it.seg : NULL,
                    rows[i].pauses ? UINT64_MAX : 0);
        unsigned before = busy_count();
        assert_int_equal(before, rows[i].pauses ? 0 : MANY);
        others_come(MANY, 2 * MANY, TAKEOVER_OLDER, NULL, 0);
        assert_int_equal(busy_count() - before, rows[i].then);
        leat_takeovers_fini(&alone.cores[0]);
        end();
    }
}

/* Goal: a segment that is here already is read, even if all places are taken: otherwise no place would become free. */
static void older_segment_that_is_here_is_read(void **state)
{
    (void)state;
    begin();
    others_come(1, LEAT_TAKEOVER_OLDER_MAX, TAKEOVER_OLDER, &it.seg, UINT64_MAX);
    assert_int_equal(busy_count(), 0);
    others_come(0, 1, TAKEOVER_OLDER, &it.seg, 0);
    assert_int_equal(busy_count(), 1);
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* Goal: nothing is done by a core that stops, before replicas are there, or in a pause; the tick goes on. */
static void takeover_waits_until_it_may(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        struct leat_core *core = &alone.cores[0];
        if (i == 0) core->stopping = true;
        if (i == 1) core->data->replicate->backup = NULL;
        struct leat_takeover *takeover = ask_epoch(5, TAKEOVER_TAIL);
        alone_deliver();
        if (i == 2) takeover_pause(takeover, 100);
        alone_deliver();
        assert_said("mail to 0\n"
                    "mail to 0\n");
        if (i == 2) alone.now_us += 99;
        tick();
        takeover->replaced = i < 2;
        tick();
        assert_said("");
        assert_int_equal(takeovers(), 1);
        takeover->replaced = false;
        core->stopping = false;
        core->data->replicate->backup = (void *)&it;
        alone.now_us += 1;
        tick();
        assert_said("adopt 7/1/1 segment 4 1000:4 next 0, epoch 5\n");
        leat_takeovers_fini(core);
        end();
    }
}

/* Goal: one kick is under way at a time. */
static void kicks_come_one_at_a_time(void **state)
{
    (void)state;
    begin();
    takeover_kick(&alone.cores[0]);
    takeover_kick(&alone.cores[0]);
    assert_said("mail to 0\n");
    alone_deliver();
    takeover_kick(&alone.cores[0]);
    assert_said("mail to 0\n");
    alone_deliver();
    end();
}

/* Goal: a takeover that is over gives its segment back, and tries that again as long as there is no memory for it. */
static void takeover_that_is_over_gives_its_segment_back(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    adopted(LEAT_OK);
    alone.io = NULL;
    takeover->busy = false;
    (void)ask_epoch(6, TAKEOVER_TAIL);
    it.take = LEAT_E_NO_MEMORY;
    said_enough();
    alone_deliver_all();
    assert_said("mail to 0\n"
                "take back segment 4\n");
    it.take = LEAT_OK;
    tick();
    assert_said("take back segment 4\n"
                "adopt 7/1/1 segment 4 1000:4 next 0, epoch 6\n");
    assert_int_equal(takeovers(), 1);
    leat_takeovers_fini(&alone.cores[0]);
    end();
}

/* Goal: a takeover ends, and asks no node any more, when the log is not this node's in the takeover's epoch; the epoch
 * of a log whose loss was accepted may be later than its streamlet's.
 * Method: a takeover looks for the newest segment before an offset gap. The streamlet's owner and epoch change. */
static void takeover_ends_when_its_log_is_another_nodes(void **state)
{
    (void)state;
    static const struct {
        uint64_t owner;
        uint32_t epoch;
        bool ends;
    } rows[] = {
        {ALONE_SELF, EPOCH, false},        {ALONE_SELF, EPOCH - 1, false},
        {ALONE_SELF, EPOCH + 1, true},     {ALONE_SELF + 1, EPOCH, true},
        {ALONE_SELF + 1, EPOCH + 1, true},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        (void)wants(TAKEOVER_OLDER, 0);
        below_found(LEAT_E_AGAIN, 0, 0); /* another node has the log, or gets it */
        alone.desc->streamlets[1].owner = rows[i].owner;
        alone.desc->streamlets[1].epoch.v = rows[i].epoch;
        later(5 * TICK);
        assert_int_equal(takeovers(), !rows[i].ends);
        assert_said(rows[i].ends ? "" : "newest of 7/1/1 up to segment 4?\n");
        ends();
    }
}

/* Goal: a takeover whose stream was deleted ends, and fetches no segment any more.
 * Method: the segment was fetched when the stream was deleted. Nothing more is asked for. */
static void takeover_of_a_deleted_stream_ends(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *takeover = ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    assert_true(takeover->busy);
    said_enough();
    it.deleted = true;
    tick();
    assert_int_equal(takeovers(), 1); /* its request is under way */
    takeover->busy = false;
    tick();
    assert_int_equal(takeovers(), 0);
    assert_said("");
    end();
}

/* Goal: a takeover that waits behind another, and is over itself, ends in its turn. */
static void takeover_behind_another_does_not_end_before_it(void **state)
{
    (void)state;
    begin();
    struct leat_takeover *first = ask_epoch(5, TAKEOVER_TAIL);
    alone_deliver_all();
    struct leat_takeover *second = ask_epoch(6, TAKEOVER_TAIL);
    alone_deliver_all();
    second->replaced = true;
    first->replaced = false;
    tick();
    assert_int_equal(takeovers(), 2);
    first->replaced = true, first->busy = false;
    tick();
    assert_int_equal(takeovers(), 0);
    said_enough();
    end();
}

/* ---- what is asked for, and by whom ---- */

/* Goal: a log whose end is not decided stands in, where its core has no log; a log whose end is decided is asked for by
 * its end. */
static void log_whose_end_nobody_has_stands_in(void **state)
{
    (void)state;
    begin();
    struct leat_log_record *record = &begun()->record;
    record->opened = true;
    record->stamp_epoch.v = 4;
    record->stamp_version = 3;
    record->heard = 1;
    it.there = true;
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    assert_said("");
    it.there = false;
    leat_takeover_ask(&alone.cores[HOME], begun(), ALONE_LOGS);
    assert_said("make 7/1/1, epoch 9, of 0 segments, next 5 at 50, behind 1000:4, stands in\n"
                "it waits: its end, of epoch 4 and version 3, is on no node that is up (leat "
                "cluster status)\n"
                "node log error: stream \"orders\", streamlet 1, log 1 waits\n");
    assert_true(it.partition.tail_missing);
    assert_int_equal(it.partition.highest_segment, 4);
    assert_int_equal(it.partition.highest_offset, 50);
    assert_string_equal(prefix_id_text(it.partition.highest_prefix_id), "1000:4");
    assert_int_equal(takeovers(), 0);
    end();
}

static void log_stands_in_only_where_all_were_heard(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        struct leat_log_record *record = &begun()->record;
        record->opened = true;
        record->heard = i == 0 ? 0 : 1;
        record->stamp_epoch.v = i == 1 ? EPOCH : EPOCH - 1;
        record->tail.segment = UINT64_MAX;
        if (i == 2) alone.no_stream = true;
        if (i == 3) alone.cores[HOME].stopping = true;
        if (i == 4) it.create = LEAT_E_NO_MEMORY;
        alone.stream.deleted = i == 5;
        takeover_stand_in(&alone.cores[HOME], begun());
        alone.stream.deleted = false;
        if (i == 4)
            assert_said(
                "make 7/1/1, epoch 9, of 0 segments, next 0 at 50, behind 1000:4, stands in\n");
        else
            assert_said("");
        assert_int_equal(alone.stream.logs_missing, i == 4);
        assert_int_equal(alone.cores[HOME].data->logs_missing, i == 4);
        end();
    }
}

static void partition_that_stands_in_hears_what_is_known_now(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        it.there = true;
        it.partition.tail_missing = i != 0;
        it.partition.state = i == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        it.partition.epoch.v = i == 3 ? EPOCH : EPOCH - 1;
        begun()->record.opened = i == 4;
        leat_takeover_look(&it.partition, begun(), ALONE_LOGS);
        if (i == 2)
            assert_said("mail to 0\n"); /* asked for */
        else
            assert_said("");
        assert_int_equal(it.partition.highest_segment, i == 4 ? 4 : 0);
        assert_int_equal(it.partition.highest_offset, i == 4 ? 50 : 0);
        assert_int_equal(it.partition.highest_prefix_id.bytes, i == 4 ? 1000 : 0);
        alone_deliver_all();
        leat_takeovers_fini(&alone.cores[0]);
        said_enough();
        end();
    }
}

/* Goal: a takeover behind a takeover that ends goes on, whatever takeovers of other logs are under way before it. */
static void takeover_behind_one_that_ends_goes_on_beside_other_logs(void **state)
{
    (void)state;
    begin();
    (void)wants(TAKEOVER_OLDER, 1000); /* of another log; it stays busy */
    struct leat_takeover *two[2];
    for (unsigned i = 0; i < 2; i++) {
        two[i] = takeover_create(&alone.cores[HOME], (struct leat_log_ref){ALONE_STREAM, 0, 1},
                                 (struct leat_epoch){EPOCH + i});
        two[i]->state = TAKEOVER_OLDER;
        two[i]->segment = 3;
        two[i]->prefix_id = (struct leat_prefix_id){800, 8};
        takeover_send(two[i]);
        alone_deliver_all();
    }
    assert_true(two[0]->replaced && two[1]->queued);
    adopted(LEAT_E_DISK);
    later(TICK);
    assert_int_equal(takeovers(), 2);
    assert_false(two[1]->queued);
    assert_said("adopt 7/0/1 segment 3 800:8 next 0, epoch 10\n");
    ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_comes_step_by_step),
        cmocka_unit_test(log_without_segments_is_made),
        cmocka_unit_test(log_behind_a_jump_names_no_predecessor),
        cmocka_unit_test(log_of_two_segments_has_an_older_one),
        cmocka_unit_test(log_of_one_segment_has_nothing_older),
        cmocka_unit_test(takeover_is_made_for_its_home),
        cmocka_unit_test(takeovers_of_one_log_stand_in_order),
        cmocka_unit_test(last_segment_asked_for_anew_ends_the_older_ones),
        cmocka_unit_test(takeovers_of_other_logs_go_on),
        cmocka_unit_test(older_segments_of_few_logs_come_at_one_time),
        cmocka_unit_test(older_segments_that_are_nowhere_hold_no_place),
        cmocka_unit_test(searches_for_older_segments_take_turns),
        cmocka_unit_test(older_segments_keep_their_places),
        cmocka_unit_test(older_segment_that_is_here_is_read),
        cmocka_unit_test(takeover_waits_until_it_may),
        cmocka_unit_test(kicks_come_one_at_a_time),
        cmocka_unit_test(takeover_that_is_over_gives_its_segment_back),
        cmocka_unit_test(takeover_ends_when_its_log_is_another_nodes),
        cmocka_unit_test(takeover_of_a_deleted_stream_ends),
        cmocka_unit_test(takeover_behind_another_does_not_end_before_it),
        cmocka_unit_test(log_whose_end_nobody_has_stands_in),
        cmocka_unit_test(log_stands_in_only_where_all_were_heard),
        cmocka_unit_test(partition_that_stands_in_hears_what_is_known_now),
        cmocka_unit_test(takeover_behind_one_that_ends_goes_on_beside_other_logs),
    };
    return cmocka_run_group_tests_name("broker takeover", tests, NULL, NULL);
}
