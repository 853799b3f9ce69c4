/* SPDX-License-Identifier: Apache-2.0 */
/* The end that had been decided for a log when its owner's epoch began: the record keeps this end, and replicas of
 * earlier owners after this end do not count as left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/metadata/machine.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/one_machine.h"

enum { BEFORE = 2, NOW = 4, LATER = 5 }; /* epochs */

static const struct leat_tail_record END = {
    .segment = 5, .prefix_id = {300, 0x30}, .next_offset = 90};

static bool same(const struct leat_tail_record *a, const struct leat_tail_record *b)
{
    return a->segment == b->segment && a->prefix_id.bytes == b->prefix_id.bytes &&
           a->prefix_id.crc == b->prefix_id.crc && a->next_offset == b->next_offset &&
           a->jumped == b->jumped;
}

/* ---- it is kept ---- */

/* Node a (1) has stream 1, of one log. */
static int begin(void **state)
{
    (void)machine_begin(state);
    node_up("a", 1);
    assert_int_equal(stream_make("s", 1, 1), LEAT_OK);
    return 0;
}

static struct leat_machine_log *log_of(void)
{
    return &machine->streams[0].logs[0];
}

static void open_log(uint32_t version)
{
    struct entry e;
    entry_begin(&e, LEAT_COMMAND_OPENED, 5);
    leat_msg_write_u64(&e.w, log_of()->epoch.v);
    leat_msg_write_array(&e.w, 1);
    leat_msg_write_array(&e.w, 3);
    for (unsigned k = 0; k < 3; k++)
        leat_msg_write_u64(&e.w, k == 0);
    opened_end(&e.w, 1, version);
    assert_int_equal(applied(&e), LEAT_OK);
    assert_true(log_of()->record.opened);
    assert_int_equal(log_of()->record.stamp_version, version);
}

static void snapshot_and_back(void)
{
    uint8_t *snapshot;
    size_t count;
    assert_int_equal(leat_machine_snapshot(machine, &snapshot, &count), LEAT_OK);
    assert_int_equal(leat_machine_restore(machine, snapshot, count), LEAT_OK);
    leat_mem_free(snapshot);
}

static void opened_log_keeps_where_it_began(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct leat_tail_record ends[] = {
            END,
            {.segment = UINT64_MAX},
            {.segment = 5, .prefix_id = {300, 0x30}, .next_offset = 1ull << 40, .jumped = true}};
        log_of()->record = (struct leat_log_record){.tail = ends[i]};
        open_log(1);
        assert_true(same(&log_of()->record.began, &ends[i]));
        assert_int_equal(log_of()->record.tail.segment, 0);
        open_log(2); /* its owner did not hear of that */
        snapshot_and_back();
        assert_true(same(&log_of()->record.began, &ends[i]));
        assert_ptr_equal(leat_log_decided(&log_of()->record), &log_of()->record.began);
    }
}

/* ---- what is left ---- */

static const struct leat_tail_record END_NONE = {.segment = UINT64_MAX};
static const struct leat_tail_record END_JUMPED = {
    .segment = 5, .prefix_id = {300, 0x30}, .next_offset = 1ull << 40, .jumped = true};
static const struct leat_tail_record END_UNSAID = {
    .segment = 5, .next_offset = 1ull << 40, .jumped = true};

static struct leat_log_record record_of(const struct leat_tail_record *began)
{
    struct leat_log_record record = {
        .opened = true, .stamp_epoch = {NOW}, .stamp_version = 1, .tail = {.segment = 9}};
    if (began) record.began = *began;
    return record;
}

static struct leat_replica_row row_of(uint64_t segment, uint32_t epoch, enum leat_replica_kind kind,
                                      uint32_t length, uint32_t crc)
{
    return (struct leat_replica_row){.segment = segment,
                                     .kind = kind,
                                     .epoch = {epoch},
                                     .version = 1,
                                     .prefix_id = {length, crc},
                                     .next_offset = length / 10 * 3};
}

static bool may_be_left(const struct leat_log_record *record, const struct leat_replica_row *row)
{
    const struct leat_tail_row of = leat_tail_row_of(row, 0);
    return leat_tail_may_be_left(record, &of);
}

/* Replicas of epochs before the log's, and of a later epoch that no owner opened. */
static void others_are_left_up_to_where_the_epoch_began(void **state)
{
    (void)state;
    const enum leat_replica_kind mark = LEAT_REPLICA_MARK, closed = LEAT_REPLICA_CLOSED;
    const struct {
        const struct leat_tail_record *began; /* NULL: not known */
        uint64_t segment;
        enum leat_replica_kind kind;
        uint32_t length, crc;
        bool holds, provisional, left;
    } cases[] = {
        /* in front of it: what was closed and is counted on */
        {&END, 4, closed, 700, 7, false, false, true},
        {&END, 4, mark, 700, 7, false, false, false},
        {&END, 4, closed, 700, 7, false, true, false},
        /* there: what has exactly that, whatever it is and goes on with */
        {&END, 5, closed, 300, 0x30, false, false, true},
        {&END, 5, closed, 300, 0x30, false, true, true},
        {&END, 5, mark, 300, 0x30, false, false, true},
        {&END, 5, closed, 400, 0x40, true, false, true},
        {&END, 5, mark, 400, 0x40, true, false, true},
        {&END, 5, closed, 400, 0x40, false, false, false},
        {&END, 5, closed, 300, 0x31, false, false, false},
        {&END, 5, closed, 200, 0x20, false, false, false},
        {&END, 5, mark, 200, 0x20, false, false, false},
        /* behind it */
        {&END, 6, closed, 100, 1, false, false, false},
        {&END, 6, mark, 100, 1, false, false, false},
        {&END_NONE, 0, closed, 100, 1, false, false, false},
        {&END_JUMPED, 5, closed, 400, 0x40, true, false, true},
        {&END_JUMPED, 5, closed, 400, 0x40, false, false, false},
        {&END_JUMPED, 6, closed, 100, 1, false, false, false},
        /* nothing says how long the last one was */
        {&END_UNSAID, 5, closed, 400, 0x40, false, false, true},
        {&END_UNSAID, 5, mark, 400, 0x40, false, false, false},
        {&END_UNSAID, 6, closed, 100, 1, false, false, false},
        /* as it was */
        {NULL, 0, closed, 100, 1, false, false, true},
        {NULL, 9, closed, 100, 1, false, false, true},
        {NULL, 9, mark, 100, 1, true, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct leat_log_record record = record_of(cases[i].began);
        for (unsigned late = 0; late < 2; late++) {
            struct leat_replica_row row = row_of(cases[i].segment, late ? LATER : BEFORE,
                                                 cases[i].kind, cases[i].length, cases[i].crc);
            row.holds_tail = cases[i].holds;
            row.provisional = cases[i].provisional;
            if (may_be_left(&record, &row) != cases[i].left) fail_msg("case %zu", i);
            row.kind = LEAT_REPLICA_LOST;
            assert_false(may_be_left(&record, &row));
            row.kind = cases[i].kind;
            row.prefix_id.bytes = 0;
            assert_false(may_be_left(&record, &row));
        }
        struct leat_replica_row own =
            row_of(cases[i].segment, NOW, cases[i].kind, cases[i].length, cases[i].crc);
        own.provisional = cases[i].provisional;
        assert_true(may_be_left(&record, &own));
    }
}

/* Goal: X closed segment 5 at 400, and the log was decided to end at 300 of it, and went on; all that went on is lost.
 * What is left ends at 300, be X's copy the only one, and X's segment 6 is no part of it. */
static void what_is_left_is_cut_where_the_epoch_began(void **state)
{
    (void)state;
    struct co_recover_log log = {.seen = record_of(&END), .row_count = 2};
    struct co_row rows[2] = {{.row = row_of(5, BEFORE, LEAT_REPLICA_CLOSED, 400, 0x40)},
                             {.row = row_of(6, BEFORE, LEAT_REPLICA_CLOSED, 100, 1)}};
    struct co_recovery recovery = {.rows = rows, .row_count = 2};
    struct leat_tail_record best;
    assert_false(co_recovery_best(&recovery, &log, &best));
    rows[0].row.holds_tail = true;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_true(same(&best, &END));
    log.seen = record_of(&END_JUMPED); /* its next offset is where it went on */
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.prefix_id.bytes, 300);
    assert_int_equal(best.prefix_id.crc, 0x30);
    assert_int_equal(best.next_offset, 120);
    log.seen = record_of(&END_UNSAID);
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 5);
    assert_int_equal(best.prefix_id.bytes, 400);
    log.seen = record_of(&END_NONE);
    assert_false(co_recovery_best(&recovery, &log, &best));
    log.seen = record_of(NULL);
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 6);
    assert_int_equal(best.prefix_id.bytes, 100);
    /* What its own epoch wrote lies behind that, and is taken as it is. */
    log.seen = record_of(&END);
    rows[1].row.epoch.v = NOW;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 6);
    assert_int_equal(best.prefix_id.bytes, 100);
}

/* Goal: rows of a log beyond the number that is looked at are left out: a node that reports more is not trusted for
 * memory. */
static void rows_too_many_are_left_out(void **state)
{
    (void)state;
    static struct co_row rows[LEAT_TAIL_ROWS_MAX + 1];
    struct co_recover_log log = {.seen = record_of(NULL)};
    for (uint32_t i = 0; i <= LEAT_TAIL_ROWS_MAX; i++)
        rows[i].row = row_of(5, NOW, LEAT_REPLICA_LOST, 0, 0);
    struct co_recovery recovery = {.rows = rows, .row_count = LEAT_TAIL_ROWS_MAX + 1};
    struct leat_tail_record best;
    for (uint32_t good = LEAT_TAIL_ROWS_MAX - 1; good <= LEAT_TAIL_ROWS_MAX; good++) {
        rows[good].row = row_of(5, NOW, LEAT_REPLICA_CLOSED, 400, 0x40);
        log.row_count = LEAT_TAIL_ROWS_MAX + 1;
        assert_int_equal(co_recovery_best(&recovery, &log, &best), good < LEAT_TAIL_ROWS_MAX);
        rows[good].row = row_of(5, NOW, LEAT_REPLICA_LOST, 0, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opened_log_keeps_where_it_began, begin, machine_end),
        cmocka_unit_test(others_are_left_up_to_where_the_epoch_began),
        cmocka_unit_test(what_is_left_is_cut_where_the_epoch_began),
        cmocka_unit_test(rows_too_many_are_left_out),
    };
    return cmocka_run_group_tests_name("coordinator began", tests, NULL, NULL);
}
