/* SPDX-License-Identifier: Apache-2.0 */
/* Which replicas of a log a node tells a recovery of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "broker/ownership/filter.h"
#include "coordinator/metadata/tail.h"

static const struct leat_log_record opened = {.opened = true};

static struct leat_replica_row closed(uint64_t segment, uint64_t records)
{
    return (struct leat_replica_row){.segment = segment,
                                     .kind = LEAT_REPLICA_CLOSED,
                                     .base_offset = 10 * segment,
                                     .next_offset = 10 * segment + records};
}

static struct leat_replica_row mark(uint64_t segment, bool only_start)
{
    return (struct leat_replica_row){
        .segment = segment, .kind = LEAT_REPLICA_MARK, .only_start = only_start};
}

static struct leat_replica_row lost(uint64_t segment)
{
    return (struct leat_replica_row){.segment = segment, .kind = LEAT_REPLICA_LOST};
}

/* wanted: the segments that are kept, and 0. */
static void assert_filtered(struct leat_replica_row *rows, size_t count,
                            const struct leat_log_record *record, const uint64_t *wanted)
{
    size_t kept = leat_rows_filter(rows, count, record);
    for (size_t i = 0; i < kept; i++)
        assert_int_equal(rows[i].segment, wanted[i]);
    assert_int_equal(wanted[kept], 0);
}

static void highest_closed_one_and_marks_are_told(void **state)
{
    (void)state;
    struct leat_replica_row rows[] = {closed(1, 5), closed(2, 5), closed(3, 5), mark(4, false)};
    assert_filtered(rows, 4, &opened, (uint64_t[]){3, 4, 0});
    struct leat_replica_row alone[] = {closed(1, 5), closed(2, 5)};
    assert_filtered(alone, 2, &opened, (uint64_t[]){2, 0});
}

static void segment_that_the_record_names_is_told(void **state)
{
    (void)state;
    struct leat_log_record record = {.tail = {.segment = 1}};
    struct leat_replica_row rows[] = {closed(1, 5), closed(2, 5), closed(3, 5)};
    assert_filtered(rows, 3, &record, (uint64_t[]){1, 3, 0});
}

/* Goal: nobody else may have what is left of it; what is behind where its epoch began is not. */
static void highest_that_may_be_left_is_told(void **state)
{
    (void)state;
    struct leat_log_record record = {.opened = true, .stamp_epoch = {4}};
    struct leat_replica_row rows[5];
    for (unsigned i = 0; i < 5; i++) {
        rows[i] = closed(i + 1, 5);
        rows[i].epoch.v = 2;
        rows[i].prefix_id.bytes = 100;
    }
    const struct leat_replica_row all[5] = {rows[0], rows[1], rows[2], rows[3], rows[4]};
    record.began = (struct leat_tail_record){.segment = 3, .prefix_id = {90, 1}};
    assert_filtered(rows, 5, &record, (uint64_t[]){2, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[2].holds_tail = true;
    assert_filtered(rows, 5, &record, (uint64_t[]){3, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[3].epoch.v = 4;
    assert_filtered(rows, 5, &record, (uint64_t[]){4, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[4].provisional = true;
    record.began = (struct leat_tail_record){0};
    assert_filtered(rows, 5, &record, (uint64_t[]){4, 5, 0});
    memcpy(rows, all, sizeof rows);
    record = (struct leat_log_record){.tail = {.segment = 3}};
    rows[4].provisional = true;
    assert_filtered(rows, 5, &record, (uint64_t[]){3, 5, 0});
}

/* Goal: the later owner's is what is left, whichever of the two the node has first. */
static void of_one_segment_the_later_owners_is_told(void **state)
{
    (void)state;
    struct leat_log_record record = {.opened = true, .stamp_epoch = {5}};
    for (unsigned order = 0; order < 2; order++) {
        struct leat_replica_row rows[] = {closed(1, 5), closed(1, 5), closed(3, 5)};
        for (unsigned i = 0; i < 3; i++) {
            rows[i].epoch.v = i == order ? 4 : 2;
            rows[i].prefix_id.bytes = 100;
        }
        rows[2].provisional = true;
        assert_int_equal(leat_rows_filter(rows, 3, &record), 2);
        assert_true(rows[0].segment == 1 && rows[0].epoch.v == 4 && rows[1].segment == 3);
    }
}

/* Goal: of what is left a copy that an attempt of recovery closed is told beside the mark, whichever was
 * found first. */
static void all_copies_of_what_is_left_are_told(void **state)
{
    (void)state;
    struct leat_log_record record = {
        .opened = true, .stamp_epoch = {5}, .began = {.segment = 2, .prefix_id = {90, 1}}};
    for (unsigned order = 0; order < 2; order++) {
        struct leat_replica_row rows[] = {closed(3, 5), closed(3, 5), closed(4, 5)};
        rows[1 - order] = mark(3, false);
        for (unsigned i = 0; i < 3; i++) {
            rows[i].epoch.v = i < 2 ? 5 : 4;
            rows[i].prefix_id.bytes = 100;
        }
        assert_filtered(rows, 3, &record, (uint64_t[]){3, 3, 4, 0});
    }
    struct leat_replica_row first[] = {closed(0, 5), closed(1, 5)};
    first[0].epoch.v = 5, first[1].epoch.v = 4;
    first[0].prefix_id.bytes = 100;
    assert_int_equal(leat_rows_filter(first, 2, &record), 2); /* the log's very first, too */
    struct leat_replica_row none[] = {closed(0, 5), closed(1, 5)};
    assert_filtered(none, 2, &record, (uint64_t[]){1, 0});
}

/* Goal: of a log that its owner has not opened what may be left is not asked for. */
static void log_that_is_not_opened_has_nothing_left(void **state)
{
    (void)state;
    struct leat_log_record record = {.tail = {.segment = 1}};
    struct leat_replica_row rows[] = {closed(1, 5), closed(2, 5), closed(3, 5)};
    rows[1].prefix_id.bytes = 100;
    assert_filtered(rows, 3, &record, (uint64_t[]){1, 3, 0});
}

static void last_that_was_lost_is_told(void **state)
{
    (void)state;
    struct leat_replica_row rows[] = {lost(1), lost(2), closed(3, 5), mark(4, true)};
    assert_filtered(rows, 4, &opened, (uint64_t[]){2, 3, 4, 0});
    struct leat_replica_row highest[] = {lost(3), closed(3, 5), lost(4)};
    assert_filtered(highest, 3, &opened, (uint64_t[]){3, 4, 0});
    assert_int_equal(highest[0].kind, LEAT_REPLICA_CLOSED);
}

/* Goal: another node may have any of those without records open, and ask for the one in front. */
static void all_in_front_of_those_without_records_are_told(void **state)
{
    (void)state;
    struct leat_replica_row one[] = {closed(1, 5), closed(2, 5), mark(3, true)};
    assert_filtered(one, 3, &opened, (uint64_t[]){2, 3, 0});
    struct leat_replica_row two[] = {closed(0, 5), closed(1, 5), closed(2, 0), mark(3, true)};
    assert_filtered(two, 4, &opened, (uint64_t[]){1, 2, 3, 0});
    struct leat_replica_row three[] = {closed(1, 5), closed(2, 5), closed(3, 0), closed(4, 0)};
    assert_filtered(three, 4, &opened, (uint64_t[]){2, 3, 4, 0});
    struct leat_replica_row twice[] = {closed(1, 5), mark(2, true), closed(2, 0), mark(3, true)};
    assert_filtered(twice, 4, &opened, (uint64_t[]){1, 2, 2, 3, 0});
    struct leat_replica_row both[] = {closed(1, 5), closed(1, 5), mark(2, true), closed(3, 5)};
    assert_filtered(both, 4, &opened, (uint64_t[]){1, 1, 2, 3, 0});
}

/* Goal: of a lost one nothing is known, so nobody asks for the one in front; what counts is the segment right behind,
 * and no other copy of the same, nor what lies behind the rows. */
static void those_in_front_of_others_are_left_out(void **state)
{
    (void)state;
    struct leat_replica_row gone[] = {closed(1, 5), lost(2), closed(3, 5)};
    assert_filtered(gone, 3, &opened, (uint64_t[]){2, 3, 0});
    struct leat_replica_row same[] = {closed(1, 0), closed(1, 0), closed(2, 5), closed(3, 5)};
    assert_filtered(same, 4, &opened, (uint64_t[]){3, 0});
    struct leat_replica_row behind[] = {closed(1, 5), closed(2, 5), closed(2, 0)};
    assert_filtered(behind, 2, &opened, (uint64_t[]){2, 0});
}

/* ---- what is left out changes no answer ---- */

enum { NODES = 3, NODE_ROWS = 8, EPOCH = 3 };

static struct leat_xoshiro rng;

static uint32_t chance(uint32_t of)
{
    return (uint32_t)leat_xoshiro_below(&rng, of);
}

/* One owner's log: segments 1 to 6 and what each node has of them. `empty`: without records. */
struct one_log {
    struct leat_log_record record;
    uint32_t head, raised; /* raised: the first segment of version 2 */
    bool empty[NODE_ROWS];
};

static struct leat_replica_row row_of(const struct one_log *log, uint32_t segment)
{
    uint64_t base = 100 * segment;
    struct leat_replica_row row = {
        .segment = segment,
        .kind = segment < log->head ? LEAT_REPLICA_CLOSED : LEAT_REPLICA_MARK,
        .epoch = {EPOCH},
        .version = segment < log->raised ? 1 : 2,
        .prefix_id = {1000 + segment, 1},
        .previous = {999 + segment, 1},
        .base_offset = base,
        .next_offset = log->empty[segment] ? base : base + 100,
    };
    for (uint32_t i = segment; i-- > 1;) /* those without records take no offsets */
        if (log->empty[i]) row.base_offset -= 100, row.next_offset -= 100;
    row.only_start = row.kind == LEAT_REPLICA_MARK && log->empty[segment];
    return row;
}

/* A node's: some are not there, lost, or open although the log went on; or the node was left behind. */
static size_t rows_make(const struct one_log *log, struct leat_replica_row *rows)
{
    size_t count = 0;
    bool left = chance(6) == 0;
    for (uint32_t segment = 1; segment <= (left ? log->raised : log->head); segment++) {
        if (chance(3) == 0) continue;
        struct leat_replica_row row = row_of(log, segment);
        if (chance(12) == 0) row.kind = LEAT_REPLICA_LOST;
        if (row.kind == LEAT_REPLICA_CLOSED && chance(8) == 0) {
            row.kind = LEAT_REPLICA_MARK; /* its close entry was hit, or came after the crash */
            row.torn = chance(2);
            row.prefix_id.bytes -= 1;
            row.prefix_id.crc = 2;
            row.only_start = log->empty[segment];
        }
        if (left && segment == log->raised) row.version = 1, row.kind = LEAT_REPLICA_MARK;
        row.provisional = row.kind == LEAT_REPLICA_CLOSED && chance(12) == 0;
        rows[count++] = row;
    }
    return count;
}

static void what_is_left_out_changes_no_answer(void **state)
{
    (void)state;
    unsigned ends = 0, left_out = 0;
    leat_xoshiro_seed(&rng, 4);
    for (unsigned turn = 0; turn < 200000; turn++) {
        struct one_log log = {.head = 2 + chance(5)};
        log.raised = chance(log.head) + 1;
        struct leat_tail_row all[NODES * NODE_ROWS], told[NODES * NODE_ROWS];
        size_t all_count = 0, told_count = 0;
        struct leat_tail whole, filtered;
        for (uint32_t i = 1; i < NODE_ROWS; i++)
            log.empty[i] = chance(3) == 0;
        log.record = (struct leat_log_record){
            .opened = chance(4) > 0, .stamp_epoch = {EPOCH}, .stamp_version = 2};
        struct leat_replica_row end = row_of(&log, 1 + chance(log.head));
        log.record.tail = (struct leat_tail_record){
            .segment = end.segment, .prefix_id = end.prefix_id, .next_offset = end.next_offset};
        for (uint32_t node = 0; node < NODES; node++) {
            struct leat_replica_row rows[NODE_ROWS];
            size_t count = rows_make(&log, rows);
            for (size_t i = 0; i < count; i++)
                all[all_count++] = leat_tail_row_of(&rows[i], node);
            count = leat_rows_filter(rows, count, &log.record);
            for (size_t i = 0; i < count; i++)
                told[told_count++] = leat_tail_row_of(&rows[i], node);
        }
        const struct leat_tail_question question = {&log.record, 2, chance(2)};
        leat_tail_decide(&question, all, all_count, &whole);
        leat_tail_decide(&question, told, told_count, &filtered);
        if (whole.reason != filtered.reason || whole.end.segment != filtered.end.segment ||
            whole.end.prefix_id.bytes != filtered.end.prefix_id.bytes)
            fail_msg("turn %u: %d and %d, segment %d and %d", turn, (int)whole.reason,
                     (int)filtered.reason, (int)whole.end.segment, (int)filtered.end.segment);
        ends += whole.ends;
        left_out += (unsigned)(all_count - told_count);
        if (!log.record.opened) continue;
        leat_tail_left(&log.record, all, all_count, &whole);
        leat_tail_left(&log.record, told, told_count, &filtered);
        if (whole.reason != filtered.reason || whole.end.segment != filtered.end.segment ||
            whole.end.prefix_id.bytes != filtered.end.prefix_id.bytes)
            fail_msg("turn %u, left: %d and %d, segment %d and %d", turn, (int)whole.reason,
                     (int)filtered.reason, (int)whole.end.segment, (int)filtered.end.segment);
    }
    assert_true(ends > 50000 && left_out > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_closed_one_and_marks_are_told),
        cmocka_unit_test(segment_that_the_record_names_is_told),
        cmocka_unit_test(highest_that_may_be_left_is_told),
        cmocka_unit_test(of_one_segment_the_later_owners_is_told),
        cmocka_unit_test(all_copies_of_what_is_left_are_told),
        cmocka_unit_test(log_that_is_not_opened_has_nothing_left),
        cmocka_unit_test(last_that_was_lost_is_told),
        cmocka_unit_test(all_in_front_of_those_without_records_are_told),
        cmocka_unit_test(those_in_front_of_others_are_left_out),
        cmocka_unit_test(what_is_left_out_changes_no_answer),
    };
    return cmocka_run_group_tests_name("broker filter", tests, NULL, NULL);
}
