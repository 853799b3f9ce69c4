/* Which replicas of a log a node tells a recovery of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker/ownership/thin.h"

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
static void assert_thin(struct leat_replica_row *rows, size_t count,
                        const struct leat_log_record *record, const uint64_t *wanted)
{
    size_t kept = leat_rows_thin(rows, count, record);
    for (size_t i = 0; i < kept; i++)
        assert_int_equal(rows[i].segment, wanted[i]);
    assert_int_equal(wanted[kept], 0);
}

static void highest_closed_one_and_marks_are_told(void **state)
{
    (void)state;
    struct leat_replica_row rows[] = {closed(1, 5), closed(2, 5), closed(3, 5), mark(4, false)};
    assert_thin(rows, 4, &opened, (uint64_t[]){3, 4, 0});
    struct leat_replica_row alone[] = {closed(1, 5), closed(2, 5)};
    assert_thin(alone, 2, &opened, (uint64_t[]){2, 0});
}

static void segment_that_the_record_names_is_told(void **state)
{
    (void)state;
    struct leat_log_record record = {.tail = {.segment = 1}};
    struct leat_replica_row rows[] = {closed(1, 5), closed(2, 5), closed(3, 5)};
    assert_thin(rows, 3, &record, (uint64_t[]){1, 3, 0});
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
        rows[i].extent.bytes = 100;
    }
    const struct leat_replica_row all[5] = {rows[0], rows[1], rows[2], rows[3], rows[4]};
    record.began = (struct leat_tail_record){.segment = 3, .extent = {90, 1}};
    assert_thin(rows, 5, &record, (uint64_t[]){2, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[2].holds_tail = true;
    assert_thin(rows, 5, &record, (uint64_t[]){3, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[3].epoch.v = 4;
    assert_thin(rows, 5, &record, (uint64_t[]){4, 5, 0});
    memcpy(rows, all, sizeof rows);
    rows[4].tentative = true;
    record.began = (struct leat_tail_record){0};
    assert_thin(rows, 5, &record, (uint64_t[]){4, 5, 0});
    memcpy(rows, all, sizeof rows);
    record = (struct leat_log_record){.tail = {.segment = 3}};
    rows[4].tentative = true;
    assert_thin(rows, 5, &record, (uint64_t[]){3, 5, 0});
}

static void last_that_was_lost_is_told(void **state)
{
    (void)state;
    struct leat_replica_row rows[] = {lost(1), lost(2), closed(3, 5), mark(4, true)};
    assert_thin(rows, 4, &opened, (uint64_t[]){2, 3, 4, 0});
}

/* Goal: another node may have any of those without records open, and ask for the one in front. */
static void all_in_front_of_those_without_records_are_told(void **state)
{
    (void)state;
    struct leat_replica_row one[] = {closed(1, 5), closed(2, 5), mark(3, true)};
    assert_thin(one, 3, &opened, (uint64_t[]){2, 3, 0});
    struct leat_replica_row two[] = {closed(0, 5), closed(1, 5), closed(2, 0), mark(3, true)};
    assert_thin(two, 4, &opened, (uint64_t[]){1, 2, 3, 0});
    struct leat_replica_row three[] = {closed(1, 5), closed(2, 5), closed(3, 0), closed(4, 0)};
    assert_thin(three, 4, &opened, (uint64_t[]){2, 3, 4, 0});
    struct leat_replica_row twice[] = {closed(1, 5), mark(2, true), closed(2, 0), mark(3, true)};
    assert_thin(twice, 4, &opened, (uint64_t[]){1, 2, 2, 3, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_closed_one_and_marks_are_told),
        cmocka_unit_test(segment_that_the_record_names_is_told),
        cmocka_unit_test(highest_that_may_be_left_is_told),
        cmocka_unit_test(last_that_was_lost_is_told),
        cmocka_unit_test(all_in_front_of_those_without_records_are_told),
    };
    return cmocka_run_group_tests_name("broker thin", tests, NULL, NULL);
}
