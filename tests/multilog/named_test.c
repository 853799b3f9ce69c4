/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted loss gives up what was named when it was accepted, and nothing that turns out to be lost later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reopen.h"

static void on_skipped(void *arg, struct leat_log *log)
{
    (void)log;
    (*(unsigned *)arg)++;
}

static unsigned places_named(const struct fake *fake)
{
    struct leat_log_damage damage;
    uint64_t at = 0;
    unsigned count = 0;
    while (leat_log_damage_find(fake->log, &at, &damage))
        count++;
    return count;
}

static struct log_slot *slot_of(struct fake *fake, uint64_t segment)
{
    struct log_slot *slot = log_slot_find(fake->log, segment);
    assert_non_null(slot);
    return slot;
}

static void passed_over(struct fake *fake, uint64_t segment)
{
    slot_of(fake, segment)->seg->passed_bytes = 50;
    fake->log->passed_look = true;
}

static uint64_t passed_segments(struct fake *fake)
{
    struct leat_log_passed passed;
    leat_log_passed_over(fake->log, &passed);
    return passed.segments;
}

/* As a node that is asked for the bytes of a closed segment, and has not got them. */
static void rots(struct fake *fake, uint64_t segment)
{
    slot_of(fake, segment)->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    slot_of(fake, segment)->repair = LOG_REPAIR_LOST;
    fake->log->damage_look = true;
}

/* The loss is accepted, and the store has been asked to note a part of it. */
static void accept(struct fake *fake, unsigned *told)
{
    unsigned before = *told;
    leat_log_skip_missing(fake->log, on_skipped, told);
    fake_turn_end(fake);
    assert_int_equal(*told, before);
    assert_int_equal(fake->log->skip, LOG_SKIP_ASKED);
}

/* Goal: where all that was named has been given up, what is left is given up by the next word. */
static void rest_is_given_up(struct fake *fake, unsigned *told)
{
    unsigned before = *told;
    leat_log_skip_missing(fake->log, on_skipped, told);
    fake_settle(fake);
    assert_int_equal(*told, before + 1);
    assert_int_equal(places_named(fake), 0);
    assert_int_equal(passed_segments(fake), 0);
}

/* Goal: a segment between others that is on its way is not given up where it turns out to be on no node meanwhile. */
static void hole_that_is_found_to_be_lost_meanwhile_stays(void **state)
{
    (void)state;
    unsigned told = 0;
    struct fake *fake = log_of(6);
    fake->holes = fake->backfill_follows = true;
    reopen(fake, 1 << 3, 0, false);
    fake_settle(fake);
    passed_over(fake, 5);
    assert_int_equal(places_named(fake), 0);
    accept(fake, &told);
    leat_log_older_done(fake->log, false);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_int_equal(passed_segments(fake), 0);
    assert_int_equal(places_named(fake), 1);
    assert_false(slot_of(fake, 4)->front_given_up);
    rest_is_given_up(fake, &told);
    assert_true(slot_of(fake, 4)->front_given_up);
    fake_destroy(fake);
}

/* Goal: the same of records that turn out to be damaged, and of bytes that turn out to have been passed over. */
static void damage_that_is_found_meanwhile_stays(void **state)
{
    (void)state;
    unsigned told = 0;
    struct fake *fake = log_of(6);
    fake_settle(fake);
    rots(fake, 1);
    passed_over(fake, 2);
    accept(fake, &told);
    rots(fake, 3);
    passed_over(fake, 4);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_true(slot_of(fake, 1)->given_up);
    assert_false(slot_of(fake, 3)->given_up);
    assert_int_equal(places_named(fake), 1);
    assert_int_equal(passed_segments(fake), 1);
    assert_int_equal(slot_of(fake, 4)->seg->passed_bytes, 50);
    rest_is_given_up(fake, &told);
    assert_true(slot_of(fake, 3)->given_up);
    fake_destroy(fake);
}

/* Goal: before the start entry of the last segment was read nobody knows which earlier segments are missing, and nobody
 * gives these up: the operator was told that all of the log is kept. */
static void front_that_is_not_known_yet_stays(void **state)
{
    (void)state;
    uint64_t bases[SEGMENTS_MAX];
    unsigned told = 0;
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 3, 0, true);
    passed_over(fake, 5);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_int_equal(passed_segments(fake), 0);
    assert_int_equal(info_of(fake).missing_segments, 2);
    assert_int_equal(info_of(fake).first_offset, 0);
    rest_is_given_up(fake, &told);
    assert_int_equal(info_of(fake).first_offset, bases[2]);
    fake_destroy(fake);
}

/* A log that takes no appends tells each waiting caller that nothing was given up. */
static void front_given_up_of_a_log_that_stops_ends_the_wait(void **state)
{
    (void)state;
    unsigned told = 0;
    struct fake *fake = log_of(6);
    reopen(fake, 3, 0, true);
    fake_settle(fake);
    fake->fail_reads = true; /* the log has to wake, so that its head takes the trim entry */
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_turn_end(fake);
    assert_int_equal(told, 0);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
    fake_destroy(fake);
}

static leat_err memory_is_asked(void *owner, const struct leat_segment *seg)
{
    (void)owner, (void)seg;
    return LEAT_OK;
}

static struct log_slot *last_of(const struct fake *fake)
{
    return log_slot_at(fake->log, fake->log->slot_count - 1);
}

/* A log whose last segment was found damaged by an append a moment ago, and is asked for. */
static struct fake *last_damaged(uint8_t copies)
{
    struct fake *fake = log_of(6);
    fake->options.events.on_damaged = memory_is_asked;
    fake->options.settings.copies = copies;
    reopen(fake, 0, 0, true);
    fake_settle(fake);
    fake_held_of(fake, last_of(fake)->seg)->file[100] ^= 1;
    fake->log->room_wanted = true;
    log_mark_dirty(fake->log);
    fake_settle(fake);
    assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
    assert_int_equal(last_of(fake)->repair, LOG_REPAIR_SOUGHT);
    return fake;
}

/* Goal: a loss that is accepted while this node's memory is asked for the damaged last segment is of that segment, if
 * memory has not got it. Where memory has it, nothing is given up. */
static void loss_of_a_last_segment_waits_for_memory(void **state)
{
    (void)state;
    for (int has_it = 0; has_it < 2; has_it++) {
        unsigned told = 0;
        struct fake *fake = last_damaged(1);
        leat_log_skip_missing(fake->log, on_skipped, &told);
        fake_settle(fake);
        assert_int_equal(told, 0);
        if (has_it) {
            struct log_slot *slot = last_of(fake);
            assert_ptr_equal(leat_log_repair_begin(fake->log, slot->seg->id, slot->seg->prefix_id),
                             slot->seg);
            fake_settle(fake);
            assert_int_equal(told, 0);
            assert_true(leat_log_repair_end(fake->log, slot->seg->id, LEAT_OK));
        } else {
            leat_log_repair_give_up(fake->log, last_of(fake)->seg->id);
        }
        fake_settle(fake);
        assert_int_equal(told, 1);
        assert_int_equal(last_of(fake)->given_up, !has_it);
        assert_int_equal(places_named(fake), 0);
        fake_destroy(fake);
    }
}

/* Goal: other nodes may be asked for long: the operator gets an answer, and what they may have is not given up. */
static void loss_of_a_last_segment_does_not_wait_for_others(void **state)
{
    (void)state;
    unsigned told = 0;
    struct fake *fake = last_damaged(2);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_false(last_of(fake)->given_up);
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hole_that_is_found_to_be_lost_meanwhile_stays),
        cmocka_unit_test(damage_that_is_found_meanwhile_stays),
        cmocka_unit_test(front_that_is_not_known_yet_stays),
        cmocka_unit_test(front_given_up_of_a_log_that_stops_ends_the_wait),
        cmocka_unit_test(loss_of_a_last_segment_waits_for_memory),
        cmocka_unit_test(loss_of_a_last_segment_does_not_wait_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
