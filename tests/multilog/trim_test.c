/* SPDX-License-Identifier: Apache-2.0 */
/* Records before an offset are given up: at once, for good, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "reopen.h"

struct asked {
    struct leat_log_trim trim;
    leat_err rc;
    unsigned answers;
};

static void on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    struct asked *asked = trim->owner;
    asked->rc = rc;
    asked->answers++;
}

static leat_err trim_ask(struct fake *fake, struct asked *asked, uint64_t before)
{
    struct leat_error error = {0};
    *asked = (struct asked){.trim = {.before = before, .on_done = on_trimmed, .owner = asked}};
    leat_err rc = leat_log_trim_before(fake->log, &asked->trim, &error);
    assert_int_equal(asked->answers, 0);
    if (rc != LEAT_OK) assert_true(error.text[0] != '\0');
    return rc;
}

static uint64_t must_trim(struct fake *fake, uint64_t before)
{
    struct asked asked;
    assert_int_equal(trim_ask(fake, &asked, before), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(asked.answers, 1);
    assert_int_equal(asked.rc, LEAT_OK);
    return asked.trim.first_offset;
}

/* The log begins at exactly this offset, whichever way the log is asked; all later records are there. */
static void begins_at(struct fake *fake, uint64_t first)
{
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct leat_locate_op op = {.what = LEAT_LOCATE_EARLIEST};
    assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
    assert_int_equal(op.offset.v, first);
    struct leat_read place = {.by_position = true, .position = op.position};
    struct leat_read read = {.from = {first}};
    uint64_t end = leat_log_acked_offset(fake->log);
    if (first < end) {
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_true(read.first.v <= first && read.next.v > first);
        assert_int_equal(read_once(fake, &place, buffer), LEAT_OK);
        while (place.iov_count == 0) {
            place.position = place.next_position;
            assert_int_equal(read_once(fake, &place, buffer), LEAT_OK);
        }
        assert_int_equal(place.first.v, read.first.v);
        op = (struct leat_locate_op){.what = LEAT_LOCATE_TIME, .value = 0};
        assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
        assert_int_equal(op.offset.v, first);
    }
    for (uint64_t at = first; at < end; at = read.next.v) {
        read = (struct leat_read){.from = {at}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_true(read.next.v > at);
    }
    if (first > 0) {
        read = (struct leat_read){.from = {first - 1}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    }
    struct leat_log_info info = info_of(fake);
    assert_int_equal(info.first_offset, first);
    assert_int_equal(info.missing_segments, 0);
    free(buffer);
}

/* A trim inside a segment and inside a batch; whole segments before the offset go. Starts find the same, also one start
 * after the other and with appends between. */
static void trim_inside_a_segment_survives_restarts(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    uint64_t first = bases[3] + 77;
    assert_int_equal(must_trim(fake, first), first);
    assert_int_equal(fake->drops, 3);
    begins_at(fake, first);
    for (int start = 0; start < 3; start++) {
        reopen(fake, 0, 0, evicted);
        begins_at(fake, first);
        if (start > 0) must_append(fake, 7, 100);
        begins_at(fake, first);
    }
    /* Once more, in the next batch, after all that. */
    assert_int_equal(must_trim(fake, first + 50), first + 50);
    reopen(fake, 0, 0, evicted);
    begins_at(fake, first + 50);
    fake_destroy(fake);
}

/* All that is acked: the segments go, offsets go on, and a crash right after finds the end. */
static void trim_of_everything_keeps_the_end(void **state)
{
    bool evicted = *state != NULL;
    struct fake *fake = log_of(4);
    uint64_t end = leat_log_acked_offset(fake->log);
    assert_int_equal(must_trim(fake, UINT64_MAX), end);
    begins_at(fake, end);
    assert_int_equal(info_of(fake).segment_count, 1);
    reopen(fake, 0, 0, evicted);
    begins_at(fake, end);
    must_append(fake, 3, 100);
    begins_at(fake, end);
    assert_int_equal(leat_log_acked_offset(fake->log), end + 3);
    fake_destroy(fake);
}

/* One segment with id 0: its own start entry knows of nothing yet. */
static void trim_of_everything_rolls_no_more_after_a_start(void **state)
{
    (void)state;
    struct fake *fake = log_of(3);
    (void)must_trim(fake, UINT64_MAX);
    uint64_t end = leat_log_acked_offset(fake->log);
    for (unsigned i = 0; i < 3; i++) {
        reopen(fake, 0, 0, i & 1);
        fake_settle(fake);
        uint64_t next = fake->log->next_segment;
        for (unsigned care = 0; care < 3; care++) {
            fake->now_us += 1000 * 1000;
            leat_log_care(fake->log);
            fake_settle(fake);
        }
        assert_int_equal(fake->log->next_segment, next);
        begins_at(fake, end);
    }
    must_append(fake, 50, 100); /* and what is empty goes as soon as there is a head */
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(fake->log->slot_count, 1);
    begins_at(fake, end);
    fake_destroy(fake);
}

static void trim_in_the_first_segment_of_all_survives(void **state)
{
    bool evicted = *state != NULL;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 50, 100);
    assert_int_equal(must_trim(fake, 20), 20);
    begins_at(fake, 20);
    reopen(fake, 0, 0, evicted);
    begins_at(fake, 20);
    fake_destroy(fake);
}

/* Nothing to do where the log begins later already; past the end is refused, and changes nothing. */
static void trim_below_the_front_or_past_the_end_changes_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    uint64_t end = leat_log_acked_offset(fake->log), segments = fake->log->next_segment;
    struct asked asked;
    assert_int_equal(trim_ask(fake, &asked, end + 1), LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(must_trim(fake, 0), 0);
    assert_int_equal(fake->log->next_segment, segments);
    assert_int_equal(must_trim(fake, 60), 60);
    segments = fake->log->next_segment;
    assert_int_equal(must_trim(fake, 10), 60);
    assert_int_equal(fake->log->next_segment, segments);
    begins_at(fake, 60);
    fake_destroy(fake);
}

/* Not answered, and not shown, before the start entry is as safe as an append and the predecessor is
 * closed: a crash in between keeps all that was acked. */
static void trim_is_answered_once_it_is_safe(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 50, 100);
    struct asked asked;
    assert_int_equal(trim_ask(fake, &asked, 20), LEAT_OK);
    fake_turn_end(fake);
    unsigned steps = 0;
    while (asked.answers == 0) {
        assert_int_equal(info_of(fake).first_offset, 0);
        assert_true(fake_deliver(fake));
        steps++;
    }
    assert_true(steps >= 3); /* reserved; the start entry flushed; the close entry flushed */
    assert_int_equal(info_of(fake).first_offset, 20);
    assert_true(fake->log->old.seg == NULL);
    fake_settle(fake);
    fake_destroy(fake);
}

/* Many at once take one roll, each gets its answer, and so do appends meanwhile. */
static void trim_many_at_once_take_one_roll(void **state)
{
    (void)state;
    struct fake *fake = log_of(3);
    uint64_t segments = fake->log->next_segment;
    struct asked asked[5];
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(trim_ask(fake, &asked[i], 10 * (5 - i)), LEAT_OK);
    must_append(fake, 5, 100);
    fake_settle(fake);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(asked[i].answers, 1);
        assert_int_equal(asked[i].rc, LEAT_OK);
        assert_int_equal(asked[i].trim.first_offset, 50);
    }
    assert_int_equal(fake->log->next_segment, segments + 1);
    begins_at(fake, 50);
    fake_destroy(fake);
}

/* A hibernated log wakes for it; a cold one too; and a log that stops, goes or failed answers it. */
static void trim_of_a_log_that_rests_or_ends_is_answered(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 50, 100);
    fake->now_us += 20 * 1000 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(fake->log->hibernating, LOG_HIBERNATED);
    assert_int_equal(must_trim(fake, 20), 20);
    begins_at(fake, 20);
    struct asked asked;
    assert_int_equal(trim_ask(fake, &asked, 30), LEAT_OK);
    leat_log_stop(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    assert_int_equal(asked.answers, 1);
    assert_int_equal(leat_err_class(asked.rc), LEAT_CLASS_RETRY);
    assert_int_equal(trim_ask(fake, &asked, 30), LEAT_E_STARTING);
    fake->ended = false;
    fake_destroy(fake);

    fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 50, 100);
    fake->fail_request_at = fake->requests + 2;
    fake->fail_kinds = 1u << LEAT_STORE_COMMIT;
    fake->fail_rc = LEAT_E_DISK;
    assert_int_equal(trim_ask(fake, &asked, 30), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(asked.answers, 1);
    assert_int_equal(asked.rc, LEAT_E_DISK);
    assert_int_equal(trim_ask(fake, &asked, 30), LEAT_E_DISK);
    begins_at(fake, 0);
    fake_destroy(fake);
}

/* No space for the segment that would say it: whole segments go by a trim entry, and then there is
 * space. Without any to free it is refused by name. */
static void trim_on_a_full_disk_frees_what_it_can(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    uint64_t bases[SEGMENTS_MAX];
    struct asked asked;
    bases_of(fake, bases);
    fake->options.hibernate_after_us = UINT64_MAX;
    leat_log_hibernate_after_set(fake->log, UINT64_MAX);
    fake->now_us += 2 * LOG_SLOW_ROLL_US;
    leat_log_care(fake->log); /* no reservation ahead is kept */
    fake_settle(fake);
    fake->fail_request_at = fake->requests + 1;
    fake->fail_kinds = 1u << LEAT_STORE_RESERVE;
    fake->fail_rc = LEAT_E_DISK_FULL;
    assert_int_equal(trim_ask(fake, &asked, bases[2] + 7), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(asked.answers, 1);
    assert_int_equal(asked.rc, LEAT_OK);
    begins_at(fake, bases[2] + 7);

    fake->fail_request_at = fake->requests + 1;
    assert_int_equal(trim_ask(fake, &asked, bases[2] + 9), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(asked.answers, 1);
    assert_int_equal(asked.rc, LEAT_E_DISK_FULL);
    begins_at(fake, bases[2] + 7);
    fake_destroy(fake);
}

/* Retention goes on from there, and what it drops is told as before. */
static void trim_and_retention_agree(void **state)
{
    (void)state;
    struct fake *fake = log_of(8);
    assert_int_equal(must_trim(fake, 60), 60);
    fake->log->options.settings.retention_bytes = 300 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    uint64_t first = info_of(fake).first_offset;
    assert_true(first > 60);
    begins_at(fake, first);
    for (int start = 0; start < 2; start++) {
        reopen(fake, 0, 0, start == 1);
        begins_at(fake, first);
        must_append(fake, 1, 100);
    }
    fake_destroy(fake);
}

/* A log that fills a segment in milliseconds does not wait for the next care, a second later. */
static void retention_by_size_drops_with_each_close(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    uint64_t first = info_of(fake).first_segment, segment = info_of(fake).segment_count;
    fake->log->options.settings.retention_bytes = 300 * 1000;
    for (int i = 0; i < 100000 && info_of(fake).first_segment == first; i++)
        must_append(fake, 10, 100);
    fake_settle(fake);
    assert_true(info_of(fake).first_segment > first);
    assert_true(info_of(fake).segment_count <= segment + 1);
    fake_destroy(fake);
}

/* Bytes that a crash may take again keep nothing from being kept. */
static void retention_by_size_counts_what_is_acked(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    uint64_t bases[SEGMENTS_MAX];
    bases_of(fake, bases);
    uint64_t first = info_of(fake).first_segment;
    const struct leat_segment *oldest = log_slot_at(fake->log, 0)->seg;
    fake->log->options.settings.retention_bytes =
        (int64_t)(info_of(fake).bytes - oldest->prefix_id.bytes + 1);
    struct sent sent;
    assert_int_equal(append(fake, &sent, 10, 100, -1, -1, -1), LEAT_OK);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(sent.rc, LEAT_OK);
    assert_int_equal(info_of(fake).first_segment, first);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(info_of(fake).first_segment, first + 1);
    begins_at(fake, bases[1]);
    fake_destroy(fake);
}

/* A group whose records are all given up has ended; one that is cut begins where the log does. */
static void trim_moves_the_ends_of_groups(void **state)
{
    (void)state;
    struct fake *fake = log_of(LEAT_SEGMENTS_PER_GROUP + 2);
    uint64_t bases[SEGMENTS_MAX], first, end;
    bases_of(fake, bases);
    assert_int_equal(must_trim(fake, bases[3] + 5), bases[3] + 5);
    assert_int_equal(leat_log_group(fake->log, 0, &first, &end), LEAT_OK);
    assert_int_equal(first, bases[3] + 5);
    assert_int_equal(end, bases[LEAT_SEGMENTS_PER_GROUP]);
    fake_destroy(fake);
}

/* Only the last segment says where the log begins. Damaged, it says nothing: what was given up is shown,
 * not what was not is hidden. As it was, it says so again. */
static void trim_is_forgotten_while_the_last_segment_is_damaged(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    uint64_t middle = log_slot_at(fake->log, 1)->seg->base_offset + 1;
    assert_int_equal(must_trim(fake, middle), middle);
    for (unsigned damaged = 0; damaged < 3; damaged++) {
        reopen(fake, 0, 0, true);
        struct leat_segment *last = log_slot_at(fake->log, fake->log->slot_count - 1)->seg;
        uint8_t *byte = &fake_held_of(fake, last)->file[last->prefix_id.bytes / 2];
        if (damaged == 1) *byte ^= 1;
        fake_settle(fake);
        if (damaged == 1) {
            assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
            begins_at(fake, log_slot_at(fake->log, 0)->seg->base_offset);
            *byte ^= 1;
        } else {
            assert_int_equal(info_of(fake).state, LEAT_LOG_SERVING);
            begins_at(fake, middle);
        }
    }
    fake_destroy(fake);
}

/* Goal: a turn ends in which retention wants a trim entry, and the log is deleted. */
static void retention_of_a_log_that_is_deleted_asks_for_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    fake->log->options.settings.retention_bytes = 1;
    leat_log_care(fake->log);
    assert_true(log_trim_is_pending(fake->log) && log_trim_is_due(fake->log));
    leat_log_delete(fake->log, fake_on_end, fake);
    for (unsigned steps = 0; fake->dirty; steps++) {
        assert_in_range(steps, 0, 20);
        fake->dirty = false;
        leat_log_turn_end(fake->log);
    }
    assert_false(fake->ended); /* its segments are on their way */
    fake_settle(fake);
    assert_true(fake->ended);
    leat_log_destroy(&fake->log);
    fake->ended = fake->dirty = false;
    fake_destroy(fake);
}

/* Goal: a released log does nothing more while its copies are being released, though a trim entry is due: the broker
 * destroys the log when the copies are idle. */
static void retention_of_a_log_that_was_released_asks_for_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    leat_log_release(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    uint64_t requests = fake->requests;
    fake->log->trim_segment = fake->log->first_segment + 1; /* what is in front is heard of late */
    assert_true(log_trim_is_due(fake->log));
    for (unsigned turn = 0; turn < 20; turn++)
        leat_log_turn_end(fake->log);
    assert_int_equal(fake->requests, requests);
    assert_true(log_is_quiet(fake->log));
    fake->ended = false;
    while (leat_log_segment_pop(fake->log) != NULL) {
    }
    leat_log_destroy(&fake->log);
    fake_destroy(fake);
}

int main(void)
{
    static int files;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trim_inside_a_segment_survives_restarts),
        cmocka_unit_test_prestate(trim_inside_a_segment_survives_restarts, &files),
        cmocka_unit_test(trim_of_everything_keeps_the_end),
        cmocka_unit_test_prestate(trim_of_everything_keeps_the_end, &files),
        cmocka_unit_test(trim_of_everything_rolls_no_more_after_a_start),
        cmocka_unit_test(trim_in_the_first_segment_of_all_survives),
        cmocka_unit_test_prestate(trim_in_the_first_segment_of_all_survives, &files),
        cmocka_unit_test(trim_below_the_front_or_past_the_end_changes_nothing),
        cmocka_unit_test(trim_is_answered_once_it_is_safe),
        cmocka_unit_test(trim_many_at_once_take_one_roll),
        cmocka_unit_test(trim_of_a_log_that_rests_or_ends_is_answered),
        cmocka_unit_test(trim_on_a_full_disk_frees_what_it_can),
        cmocka_unit_test(trim_and_retention_agree),
        cmocka_unit_test(retention_by_size_drops_with_each_close),
        cmocka_unit_test(retention_by_size_counts_what_is_acked),
        cmocka_unit_test(retention_of_a_log_that_is_deleted_asks_for_nothing),
        cmocka_unit_test(retention_of_a_log_that_was_released_asks_for_nothing),
        cmocka_unit_test(trim_moves_the_ends_of_groups),
        cmocka_unit_test(trim_is_forgotten_while_the_last_segment_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
