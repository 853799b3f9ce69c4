/* SPDX-License-Identifier: Apache-2.0 */
/* A log that serves, and lacks segments before or between its own: where these are looked for, and what is known of
 * them. takeover*.c alone. */
#include "broker/data/partition.h"
#include "tests/broker/takeover_rig.h"

/* ---- which places ---- */

static void holes_are_seen(void **state)
{
    (void)state;
    struct leat_segment a = {.id = {3}}, b = {.id = {4}}, c = {.id = {6}};
    struct leat_segment *none[] = {&a, &b}, *one[] = {&a, &b, &c}, *first[] = {&a, &c};
    assert_false(leat_takeover_has_holes(NULL, 0));
    assert_false(leat_takeover_has_holes(none, 1));
    assert_false(leat_takeover_has_holes(none, 2));
    assert_true(leat_takeover_has_holes(one, 3));
    assert_true(leat_takeover_has_holes(first, 2));
}

/* Goal: where rows are damaged, what is missing between segments and in front of a jump may be the log's own. */
static void unsure_is_all_that_is_missing(void **state)
{
    (void)state;
    static const struct {
        uint64_t ids[4];
        size_t count;
        uint64_t next;
        bool jumped;
        uint64_t first, end;
    } rows[] = {
        {{3, 4, 5}, 3, 6, false, 0, 0},  {{3, 4, 5}, 3, 6, true, 0, 0},
        {{3, 5, 9}, 3, 10, false, 4, 9}, {{3, 4, 9}, 3, 12, false, 5, 9},
        {{3, 4, 9}, 3, 12, true, 5, 12}, {{3, 4}, 2, 12, true, 5, 12},
        {{3, 4}, 2, 12, false, 0, 0},    {{0}, 0, 12, true, 0, 12},
        {{0}, 0, 12, false, 0, 0},       {{0}, 0, 0, true, 0, 0},
        {{3}, 1, 12, true, 4, 12},
    };
    begin();
    for (unsigned copies = 1; copies <= 2; copies++) {
        for (unsigned i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
            struct leat_segment segs[4];
            struct leat_segment *list[4];
            bool damaged = i & 1;
            for (size_t k = 0; k < 4; k++) {
                list[k] = &segs[k];
                segs[k].id.v = k < rows[i / 2].count ? rows[i / 2].ids[k] : 99;
            }
            it.rows_damaged = damaged;
            alone.desc->settings.copies = copies;
            struct leat_log_tail tail = {.next_segment = rows[i / 2].next,
                                         .jumped = rows[i / 2].jumped};
            struct leat_segment_range range =
                leat_takeover_unsure(&it.partition, list, rows[i / 2].count, &tail);
            assert_int_equal(range.first, damaged ? rows[i / 2].first : 0);
            assert_int_equal(range.end, damaged ? rows[i / 2].end : 0);
            assert_said(damaged && rows[i / 2].end > 0 && copies > 1 ? "node log warn: log 7/1/1\n"
                                                                     : "");
        }
    }
    ends();
}

/* A log that serves and was looked through last up to `hole_below`. */
static void lacks(uint64_t retained, uint64_t first, uint64_t hole_end)
{
    begin();
    it.there = true;
    it.retained = retained;
    it.first = (struct leat_segment){
        .id = {first}, .base_offset = 40, .file_offset = 8192, .prefix_id = {700, 9}};
    it.first_held = &it.first;
    it.behind = it.first;
    it.behind.id.v = hole_end;
    it.behind.base_offset = 90;
    it.behind.file_offset = 16384;
    it.partition.holes = hole_end != 0;
    if (hole_end != 0) it.hole = (struct leat_log_hole){&it.behind, hole_end - 2};
    it.partition.hole_below = UINT64_MAX;
    it.partition.backfill = LEAT_BACKFILL_DUE;
    it.partition.backfill_ticks = 5;
    it.start.base_offset = hole_end != 0 ? 90 : 40;
}

static void looks(void)
{
    leat_takeover_older(&it.partition);
}

static void next_place_is_between_others_then_in_front(void **state)
{
    (void)state;
    lacks(2, 4, 9);
    assert_true(leat_takeover_goes_on(&it.partition));
    looks();
    assert_said("read 4096 bytes at 16384\n");
    it.held = &it.behind;
    alone_io_done(LEAT_OK, 4096);
    said_enough();
    alone_deliver_all();
    struct leat_takeover *takeover =
        LEAT_CONTAINER(alone.cores[0].takeovers->all.next, struct leat_takeover, link);
    assert_int_equal(takeover->hole_end, 9);
    assert_int_equal(takeover->first_retained, 7);
    assert_int_equal(takeover->segment, 8);
    assert_int_equal(takeover->next_offset, 90);
    assert_string_equal(prefix_id_text(takeover->prefix_id), "900:3");
    assert_true(takeover->repeated);
    assert_int_equal(takeover->state, TAKEOVER_OLDER);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_UNDER_WAY);
    assert_said("mail to 0\n"
                "adopt 7/1/1 segment 8 900:3 next 90, epoch 9\n");
    ends();
    lacks(2, 4, 9);
    it.partition.hole_below = 9; /* that one was looked at */
    assert_true(leat_takeover_goes_on(&it.partition));
    looks();
    assert_said("read 4096 bytes at 8192\n");
    it.held = &it.first;
    it.start.base_offset = 40;
    alone_io_done(LEAT_OK, 4096);
    alone_deliver_all();
    takeover = LEAT_CONTAINER(alone.cores[0].takeovers->all.next, struct leat_takeover, link);
    assert_int_equal(takeover->hole_end, 0);
    assert_int_equal(takeover->first_retained, 2);
    assert_int_equal(takeover->segment, 3);
    assert_int_equal(takeover->next_offset, 40);
    ends();
}

/* Goal: a log that lacks nothing is whole. */
static void log_that_lacks_nothing_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        lacks(i == 1 ? 5 : 4, 4, 9);
        it.partition.holes = false; /* not one that is known of counts */
        if (i == 2) it.first_held = NULL;
        if (i == 3) it.partition.copies = NULL;
        if (i == 4) it.first.id.v = it.retained = 0, it.front_known = false;
        assert_false(leat_takeover_goes_on(&it.partition));
        looks();
        assert_said(i == 3 ? "older ones done\nno holes\n"
                           : "older ones done\nno holes\ncopies: whole\n");
        assert_int_equal(it.partition.backfill, LEAT_BACKFILL_NONE);
        ends();
    }
}

/* Goal: where its front is not known yet it is asked again with the next tick. */
static void log_whose_front_is_not_known_waits(void **state)
{
    (void)state;
    lacks(0, 1, 0);
    it.front_known = false;
    looks();
    assert_said("");
    assert_int_equal(it.partition.backfill_ticks, 4);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
    ends();
}

/* Goal: a segment behind a gap has to be repaired first where its file never got its bytes: the segment that it names
 * is not known. With the bytes in memory the named segment is known. Where no node has the bytes, the named segment is
 * missing. */
static void segment_that_its_file_never_got_comes_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        lacks(2, 4, 0);
        it.lost = i == 4;
        it.first.integrity = i & 1 || it.lost ? LEAT_INTEGRITY_MISSING : LEAT_INTEGRITY_OK;
        if (i & 2) it.first.buffer = (uint8_t *)"";
        it.start.base_offset = 40;
        looks();
        static const char *const expected[] = {
            "read 4096 bytes at 8192\n", "segment 4 is damaged\n",
            "start entry in 700 bytes\nmail to 0\n", "start entry in 700 bytes\nmail to 0\n",
            "segment 4 is damaged, lost\nolder ones done\n"};
        assert_said(expected[i]);
        assert_int_equal(it.partition.backfill,
                         i == 1 || i == 4 ? LEAT_BACKFILL_DUE : LEAT_BACKFILL_UNDER_WAY);
        if (i == 0) it.there = false, alone_io_done(LEAT_OK, 4096);
        alone_deliver_all();
        ends();
    }
}

static void no_memory_leaves_the_question(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 2; n++) {
        lacks(2, 4, 0);
        leat_mem_fail_at(n);
        looks();
        leat_mem_fail_at(0);
        assert_said("");
        assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
        ends();
    }
}

static void place_that_is_looked_at_is_not_looked_at_twice(void **state)
{
    (void)state;
    lacks(2, 4, 0);
    it.held = &it.first;
    for (unsigned i = 0; i < 2; i++) {
        it.partition.backfill = LEAT_BACKFILL_DUE; /* a look from before the log came was put off */
        looks();
        alone_io_done(LEAT_OK, 4096);
    }
    alone_deliver_all();
    assert_int_equal(takeovers(), 1);
    ends(); /* and the other's memory is free */
}

/* ---- what the one behind says ---- */

static void asks_later(bool there)
{
    assert_int_equal(takeovers(), 0);
    assert_int_equal(it.partition.backfill, there ? LEAT_BACKFILL_DUE : LEAT_BACKFILL_UNDER_WAY);
    assert_int_equal(it.partition.backfill_ticks, there ? LEAT_OLDER_TICKS - 1 : 5);
}

/* Goal: the start entry of the segment behind a gap is read whole, where the segment is still there. */
static void start_of_the_one_behind_is_read_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        lacks(2, 4, 0);
        looks();
        said_enough();
        struct leat_segment other = it.first;
        it.held = &it.first;
        it.start_end = 4097;
        if (i == 1) it.there = false;
        if (i == 2) it.held = NULL;
        if (i == 3) it.held = &other, other.file_offset++;
        if (i == 4) it.held = &other, other.file = (void *)&it;
        if (i == 5) leat_mem_fail_at(1);
        if (i != 0) it.start_found = false; /* what was read is only a part */
        alone_io_done(LEAT_OK, 4096);
        leat_mem_fail_at(0);
        if (i == 0) {
            assert_said("where does the start of 700 bytes end, by 4096?\n"
                        "read 8192 bytes at 8192\n");
            it.start_end = 0;
            alone_io_done(LEAT_OK, 8192);
            assert_said("where does the start of 700 bytes end, by 8192?\n"
                        "start entry in 8192 bytes\n"
                        "mail to 0\n");
        } else {
            /* What is not read for lack of memory, or is of another segment by now, is not damaged. */
            assert_said(i == 1
                            ? "where does the start of 700 bytes end, by 4096?\n"
                            : "where does the start of 700 bytes end, by 4096?\nwatch the log\n");
            asks_later(i != 1);
        }
        alone_deliver_all();
        ends();
    }
}

/* Goal: a segment behind a gap that is damaged is repaired, and nothing in its start entry counts; a start entry with
 * another base offset is another segment's. The segment before is missing only where no node has the bytes of the
 * damaged segment. */
static void start_of_the_one_behind_is_damaged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        lacks(2, 4, 0);
        it.lost = i == 8;
        if (i == 5) it.first.base_offset = 0; /* as it is of a log without records so far */
        looks();
        said_enough();
        struct leat_segment other = it.first;
        it.held = &it.first;
        if (i != 1) it.start_found = false;
        if (i == 1) it.start.base_offset = 41;
        if (i == 2) it.held = NULL; /* it was trimmed */
        if (i == 3) it.there = false;
        if (i == 4) other.buffer = (uint8_t *)"", it.held = &other; /* memory has it */
        if (i == 6) other.file_offset++, it.held = &other;
        if (i == 7) other.file = (void *)&it, it.held = &other;
        it.partition.backfill_ticks = 5;
        alone_io_done(i == 0 ? LEAT_E_DISK : LEAT_OK, 4096);
        char expected[256];
        unsigned count = i == 0 ? 0 : 4096;
        int at = snprintf(expected, sizeof expected,
                          "where does the start of 700 bytes end, by %u?\n", count);
        if (i != 2 && i != 3 && i != 6 &&
            i != 7) /* else these bytes are no segment's of the log any more */
            at += snprintf(expected + at, sizeof expected - (size_t)at,
                           "start entry in %u bytes\n%s", count,
                           i == 4   ? "older ones done\n"
                           : i == 8 ? "segment 4 is damaged, lost\nolder ones done\n"
                                    : "segment 4 is damaged\n");
        if (i != 3) snprintf(expected + at, sizeof expected - (size_t)at, "watch the log\n");
        assert_said(expected);
        if (i == 4 || i == 8) /* the pass is over, and the next one is not due */
            assert_int_equal(it.partition.backfill_ticks, 5);
        else
            asks_later(i != 3);
        assert_int_equal(takeovers(), 0);
        ends();
    }
}

/* Goal: segments in other gaps are not missing because one segment after a gap is lost. Nodes are asked for them. */
static void gap_before_a_lost_segment_ends_no_pass(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        lacks(2, 4, 9);
        struct leat_segment six = it.first;
        six.id.v = 6;
        six.file_offset = 4096;
        it.lower = (struct leat_log_hole){&six, 5};
        it.lost = true;
        if (i == 0) it.behind.integrity = LEAT_INTEGRITY_MISSING;
        it.held = &it.behind;
        it.start_found = false;
        looks();
        if (i == 1) alone_io_done(LEAT_OK, 4096);
        assert_said(i == 0 ? "segment 9 is damaged, lost\n"
                           : "read 4096 bytes at 16384\n"
                             "where does the start of 700 bytes end, by 4096?\n"
                             "start entry in 4096 bytes\n"
                             "segment 9 is damaged, lost\nwatch the log\n");
        asks_later(true);
        looks();
        assert_said("read 4096 bytes at 4096\n");
        it.there = false;
        alone_io_done(LEAT_OK, 4096);
        ends();
    }
}

/* Goal: a segment behind a hole that names no earlier segment begins after an offset gap: the segment that was given up
 * is not asked for. Before any other segment a node may have one all the same. */
static void hole_in_front_of_a_jump_is_none(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        lacks(2, 4, 9);
        looks();
        said_enough();
        it.held = &it.behind;
        it.start.previous = (struct leat_prefix_id){0, 0};
        if (i == 1) it.there = false;
        alone_io_done(LEAT_OK, 4096);
        assert_said(i == 0 ? "where does the start of 700 bytes end, by 4096?\n"
                             "start entry in 4096 bytes\nhole in front of 9 is a jump\n"
                             "watch the log\n"
                           : "where does the start of 700 bytes end, by 4096?\n");
        asks_later(i == 0);
        ends();
    }
    lacks(2, 4, 0);
    looks();
    it.held = &it.first;
    it.start.previous = (struct leat_prefix_id){0, 0};
    said_enough();
    alone_io_done(LEAT_OK, 4096);
    alone_deliver_all();
    assert_said("where does the start of 700 bytes end, by 4096?\n"
                "start entry in 4096 bytes\n"
                "mail to 0\n"
                "mail to 0\n"
                "newest of 7/1/1 up to segment 3?\n");
    ends();
}

/* Goal: a search that pauses goes behind the others only where there are more searches than places. */
static void search_that_pauses_makes_room_where_others_wait(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        begin();
        for (uint32_t i = 0; i < LEAT_TAKEOVER_OLDER_MAX + more; i++) {
            struct leat_takeover *takeover = takeover_create(
                &alone.cores[HOME], (struct leat_log_ref){7, 1, i}, (struct leat_epoch){6});
            takeover->state = TAKEOVER_OLDER;
            takeover_send(takeover);
        }
        alone_deliver_all();
        struct leat_list *all = &alone.cores[0].takeovers->all, *first = all->next;
        takeover_pause(LEAT_CONTAINER(first, struct leat_takeover, link), TICK);
        assert_int_equal(first == all->prev, more);
        assert_int_equal(first == all->next, !more);
        leat_takeovers_fini(&alone.cores[0]);
        said_enough();
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_are_seen),
        cmocka_unit_test(unsure_is_all_that_is_missing),
        cmocka_unit_test(next_place_is_between_others_then_in_front),
        cmocka_unit_test(log_that_lacks_nothing_is_whole),
        cmocka_unit_test(log_whose_front_is_not_known_waits),
        cmocka_unit_test(segment_that_its_file_never_got_comes_first),
        cmocka_unit_test(no_memory_leaves_the_question),
        cmocka_unit_test(place_that_is_looked_at_is_not_looked_at_twice),
        cmocka_unit_test(start_of_the_one_behind_is_read_whole),
        cmocka_unit_test(start_of_the_one_behind_is_damaged),
        cmocka_unit_test(gap_before_a_lost_segment_ends_no_pass),
        cmocka_unit_test(hole_in_front_of_a_jump_is_none),
        cmocka_unit_test(search_that_pauses_makes_room_where_others_wait),
    };
    return cmocka_run_group_tests_name("broker takeover_older", tests, NULL, NULL);
}
