/* SPDX-License-Identifier: Apache-2.0 */
/* Each checker must bite: a history with exactly one thing wrong is refused by its name, and the
 * same history without it is accepted. */
#include "tests/sim/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char verdict[400];

static void on_fail(void *ctx, const char *text)
{
    (void)ctx;
    if (!verdict[0]) snprintf(verdict, sizeof verdict, "%s", text);
}

static const struct leat_log_ref disk_log = {0, 0, 0}, memory_log = {1, 0, 0}, trim_log = {2, 0, 0};
static struct check_reader reader, verifier;

/* Three streams (disk, memory, trimming); producer 1 has sent numbers 0 to 9 to each. */
static struct check *history(void)
{
    verdict[0] = '\0';
    struct check *check = check_create(on_fail, NULL);
    check_stream_add(check, 0, 1, 2, LEAT_DURABILITY_DISK, false, 0);
    check_stream_add(check, 1, 1, 1, LEAT_DURABILITY_MEMORY, false, 0);
    check_stream_add(check, 2, 1, 1, LEAT_DURABILITY_DISK, true, 1000);
    for (uint32_t stream = 0; stream < 3; stream++)
        for (uint32_t i = 0; i < 10; i++)
            check_sent(check, stream, (struct check_value){1, i});
    memset(&reader, 0, sizeof reader);
    memset(&verifier, 0, sizeof verifier);
    verifier.verifier = true;
    return check;
}

static void ack(struct check *check, struct leat_log_ref log, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        check_acked(check, log, (struct check_value){1, i}, i);
}

static void see(struct check *check, struct check_reader *who, struct leat_log_ref log,
                uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        check_seen(check, who, log, i, (struct check_value){1, i});
}

static void expect(struct check *check, const char *name)
{
    if (name)
        assert_non_null(strstr(verdict, name));
    else
        assert_string_equal(verdict, "");
    check_destroy(&check);
}

static void history_clean_accepted(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    see(check, &reader, disk_log, 0, 10);
    see(check, &verifier, disk_log, 0, 10);
    check_failed(check, 0, (struct check_value){1, 3}, true); /* a resend, refused: harmless */
    char behind[CHECK_BEHIND_BYTES];
    assert_true(check_audit_done(check, 0, behind));
    assert_int_equal(check_acked_count(check), 10);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, NULL);
}

static void acked_record_missing_before_others_is_lost_write(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    see(check, &verifier, disk_log, 5, 10);
    verdict[0] = '\0'; /* the skip itself was seen too; the loss is what this is about */
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "A1 lost-write");
}

static void acked_record_missing_at_end_is_unseen(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    see(check, &verifier, disk_log, 0, 9);
    char behind[CHECK_BEHIND_BYTES];
    assert_false(check_audit_done(check, 0, behind));
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "A2 unseen");
}

static void value_at_two_offsets_is_duplicate(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 3);
    see(check, &reader, disk_log, 0, 3);
    check_seen(check, &reader, disk_log, 3, (struct check_value){1, 2});
    expect(check, "A3 duplicate");
}

static void value_in_two_places_is_duplicate(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 1);
    check_seen(check, &reader, (struct leat_log_ref){0, 0, 1}, 0, (struct check_value){1, 0});
    expect(check, "A3 duplicate");
    check = history();
    check_shared(check, disk_log, 5, 0);
    check_shared(check, disk_log, 5, 1); /* of another segment group */
    expect(check, "A3 duplicate");
}

static void two_values_at_one_offset_are_inconsistent(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 1);
    check_acked(check, disk_log, (struct check_value){1, 1}, 0);
    expect(check, "A4 inconsistent-offsets");
}

static void loss_that_reuses_offsets_is_inconsistent(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, memory_log, 0, 8);
    check_power_cut(check);
    check_waiting(check, memory_log, "gone");
    check_jumped(check, memory_log, check_end_at_cut(check, memory_log), 6);
    expect(check, "A4 inconsistent-offsets");
}

static void refused_value_that_is_read_is_aborted_read(void **state)
{
    (void)state;
    struct check *check = history();
    check_failed(check, 0, (struct check_value){1, 0}, true);
    check_seen(check, &reader, disk_log, 0, (struct check_value){1, 0});
    expect(check, "A5 aborted-read");
}

static void value_read_and_then_refused_is_aborted_read(void **state)
{
    (void)state;
    struct check *check = history();
    check_seen(check, &reader, disk_log, 0, (struct check_value){1, 0});
    check_failed(check, 0, (struct check_value){1, 0}, true);
    expect(check, "A5 aborted-read");
}

static void value_never_sent_is_aborted_read(void **state)
{
    (void)state;
    struct check *check = history();
    check_seen(check, &reader, disk_log, 0, (struct check_value){1, 77});
    expect(check, "A5 aborted-read");
}

static void unknown_outcome_that_is_read_is_accepted(void **state)
{
    (void)state;
    struct check *check = history();
    check_failed(check, 0, (struct check_value){1, 0}, false);
    see(check, &reader, disk_log, 0, 1);
    see(check, &verifier, disk_log, 0, 1);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, NULL);
}

static void consumer_that_jumps_is_poll_skip(void **state)
{
    (void)state;
    struct check *check = history();
    see(check, &reader, disk_log, 0, 2);
    see(check, &reader, disk_log, 3, 4);
    expect(check, "A6 poll-skip");
}

/* Batches of 100 bytes count 328 with what surrounds them; 1000 bytes have to stay. */
static void trim_deeper_than_retention_is_lost(void **state)
{
    uint32_t first_kept = *(const uint32_t *)*state;
    struct check *check = history();
    ack(check, trim_log, 0, 10);
    see(check, &reader, trim_log, 0, 10);
    for (uint32_t i = 0; i < 10; i++)
        check_stored(check, trim_log, i, 1, 100);
    see(check, &verifier, trim_log, first_kept, 10);
    check_final(check, 2);
    expect(check, first_kept > 7 ? "A1 lost-write" : NULL);
}

static void consumer_of_trimmed_stream_that_jumps_is_accepted(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, trim_log, 0, 10);
    see(check, &reader, trim_log, 0, 2);
    see(check, &reader, trim_log, 6, 10);
    see(check, &verifier, trim_log, 6, 10);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, NULL);
}

static void consumer_that_goes_back_is_nonmonotonic_poll(void **state)
{
    (void)state;
    struct check *check = history();
    see(check, &reader, disk_log, 0, 2);
    see(check, &reader, disk_log, 1, 2);
    expect(check, "A7 nonmonotonic-poll");
}

static void committed_offset_that_goes_back_is_nonmonotonic_poll(void **state)
{
    (void)state;
    struct check *check = history();
    reader.in_group = true;
    see(check, &reader, disk_log, 0, 5);
    check_committed(check, 0, disk_log, 4);
    check_reader_reset(check, &reader);
    see(check, &reader, disk_log, 3, 4);
    expect(check, "A7 nonmonotonic-poll");
}

static void set_that_resumes_from_its_commit_is_accepted(void **state)
{
    (void)state;
    struct check *check = history();
    reader.in_group = true;
    see(check, &reader, disk_log, 0, 5);
    check_committed(check, 0, disk_log, 3);
    check_reader_reset(check, &reader);
    see(check, &reader, disk_log, 3, 8);
    expect(check, NULL);
}

static void set_that_begins_beyond_what_it_read_is_poll_skip(void **state)
{
    (void)state;
    struct check *check = history();
    reader.in_group = true;
    see(check, &reader, disk_log, 0, 5);
    check_reader_reset(check, &reader);
    see(check, &reader, disk_log, 6, 7);
    expect(check, "A6 poll-skip");
}

static void producer_order_reversed_is_nonmonotonic_send(void **state)
{
    (void)state;
    struct check *check = history();
    check_seen(check, &verifier, disk_log, 0, (struct check_value){1, 1});
    check_seen(check, &verifier, disk_log, 1, (struct check_value){1, 0});
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "A8 nonmonotonic-send");
}

static void record_seen_and_gone_later_is_vanished(void **state)
{
    (void)state;
    struct check *check = history();
    see(check, &reader, disk_log, 0, 3);
    see(check, &verifier, disk_log, 0, 2);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "vanished");
}

/* What was read and never acked has to be there as well, so a verifier is not done before it. */
static void audit_is_done_when_what_was_read_is_there(void **state)
{
    (void)state;
    struct check *check = history();
    char behind[CHECK_BEHIND_BYTES];
    ack(check, disk_log, 0, 2);
    see(check, &reader, disk_log, 0, 3);
    see(check, &verifier, disk_log, 0, 2);
    assert_false(check_audit_done(check, disk_log.stream, behind));
    see(check, &verifier, disk_log, 2, 3);
    assert_true(check_audit_done(check, disk_log.stream, behind));
    check_final(check, disk_log.stream);
    expect(check, NULL);
}

/* Goal: a stream is whole if the final pass would find nothing missing. Records that were trimmed are not missing, nor
 * those that went with an accepted loss. */
static void stream_is_whole_unless_the_final_pass_finds_a_loss(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to; /* of ten: what the verifier finds */
        uint64_t trimmed;
        bool excused;
        const char *missing;
    } cases[] = {{0, 10, 0, false, NULL},         {0, 9, 0, false, "A2 unseen"},
                 {1, 10, 0, false, "A1"},         {3, 10, 3, false, NULL},
                 {10, 10, 10, false, NULL},       {10, 10, 9, false, "A2 unseen"},
                 {10, 10, 0, false, "A2 unseen"}, {10, 10, 0, true, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct check *check = history();
        ack(check, memory_log, 0, 10);
        if (cases[i].trimmed > 0) check_trim_asked(check, memory_log, cases[i].trimmed);
        check_power_cut(check);
        if (cases[i].excused) check_waiting(check, memory_log, "memory gone");
        see(check, &verifier, memory_log, cases[i].from, cases[i].to);
        verdict[0] = '\0';
        assert_int_equal(check_stream_whole(check, memory_log.stream), cases[i].missing == NULL);
        check_final(check, memory_log.stream);
        expect(check, cases[i].missing);
    }
}

static void hole_in_the_final_pass_is_poll_skip(void **state)
{
    (void)state;
    struct check *check = history();
    see(check, &verifier, disk_log, 0, 1);
    check_seen(check, &verifier, disk_log, 2, (struct check_value){1, 2});
    verdict[0] = '\0';
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "A6 poll-skip");
}

static void memory_log_that_waits_after_power_cut_is_accepted(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, memory_log, 0, 8);
    check_power_cut(check);
    assert_true(check_at_risk(check, memory_log));
    check_waiting(check, memory_log, "memory gone");
    check_jumped(check, memory_log, check_end_at_cut(check, memory_log), 20);
    see(check, &verifier, memory_log, 0, 4);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, NULL);
}

/* A reader may be told of the jump while the operator who asked for it waits for the answer: not without such a
 * request, nor where nothing can have been lost. */
static void jump_before_its_answer_is_accepted(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        struct check *check = history();
        bool cut = turn != 2, asked = turn != 3;
        ack(check, memory_log, 0, 8);
        if (cut) check_power_cut(check);
        check_giving_up(check, memory_log, asked);
        if (turn == 1) check_giving_up(check, memory_log, false); /* refused */
        see(check, &reader, memory_log, 4, 8);
        expect(check, turn == 0 ? NULL : "A6 poll-skip");
    }
}

/* What a verifier found after the loss was accepted stays, but for what goes with the power, or by request. */
static void what_an_accepted_loss_left_stays(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        struct check *check = history();
        ack(check, memory_log, 0, 8);
        check_power_cut(check);
        check_waiting(check, memory_log, "memory gone");
        check_jumped(check, memory_log, check_end_at_cut(check, memory_log), 20);
        see(check, &verifier, memory_log, 0, 4);
        if (turn == 1) check_power_cut(check);
        if (turn == 2) check_trim_asked(check, memory_log, 3);
        check_audit_begin(check);
        check_reader_reset(check, &verifier);
        see(check, &verifier, memory_log, turn == 3 ? 0 : 3, 4);
        char behind[CHECK_BEHIND_BYTES];
        assert_int_equal(check_audit_done(check, memory_log.stream, behind), turn != 0);
        assert_int_equal(check_stream_whole(check, memory_log.stream), turn != 0);
        check_final(check, memory_log.stream);
        expect(check, turn == 0 ? "vanished" : NULL);
    }
}

/* 4 was shown and went with the power; 3, never there, comes again and is before nothing. */
static void resend_after_what_was_lost_is_in_order(void **state)
{
    (void)state;
    for (int still_there = 0; still_there < 2; still_there++) {
        struct check *check = history();
        see(check, &reader, memory_log, 0, 3);
        check_seen(check, &reader, memory_log, 3, (struct check_value){1, 4});
        check_power_cut(check);
        check_waiting(check, memory_log, "memory gone");
        check_jumped(check, memory_log, check_end_at_cut(check, memory_log), 20);
        check_acked(check, memory_log, (struct check_value){1, 3}, 20);
        check_audit_begin(check);
        see(check, &verifier, memory_log, 0, 3);
        if (still_there) check_seen(check, &verifier, memory_log, 3, (struct check_value){1, 4});
        check_seen(check, &verifier, memory_log, 20, (struct check_value){1, 3});
        for (uint32_t i = 0; i < 3; i++)
            check_final(check, i);
        expect(check, still_there ? "A8 nonmonotonic-send" : NULL);
    }
}

/* A reader is told of 3 when it is lost: that lay in its connection. Its producer had no answer and sends it again. */
static void record_that_is_seen_late_and_lost_may_come_again(void **state)
{
    (void)state;
    for (int still_there = 0; still_there < 2; still_there++) {
        struct check *check = history();
        check_power_cut(check);
        check_waiting(check, memory_log, "memory gone");
        check_seen(check, &reader, memory_log, 3, (struct check_value){1, 3});
        check_jumped(check, memory_log, check_end_at_cut(check, memory_log), 20);
        check_acked(check, memory_log, (struct check_value){1, 3}, 20);
        check_audit_begin(check);
        if (still_there) check_seen(check, &verifier, memory_log, 3, (struct check_value){1, 3});
        check_seen(check, &verifier, memory_log, 20, (struct check_value){1, 3});
        expect(check, still_there ? "A3 duplicate" : NULL);
    }
}

static void memory_log_that_loses_silently_is_lost_write(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, memory_log, 0, 8);
    check_power_cut(check);
    see(check, &verifier, memory_log, 0, 4);
    for (uint32_t i = 0; i < 3; i++)
        check_final(check, i);
    expect(check, "A2 unseen");
}

static void log_that_waits_without_power_cut_is_lost_write(void **state)
{
    (void)state;
    struct check *check = history();
    check_waiting(check, memory_log, "?");
    expect(check, "A1 lost-write");
}

static void two_members_of_one_generation_on_a_log_are_two_readers(void **state)
{
    (void)state;
    struct check *check = history();
    check_owned(check, 0, disk_log, 4, 1);
    check_owned(check, 0, disk_log, 5, 2); /* it was given to another */
    check_owned(check, 0, disk_log, 4, 1); /* late */
    assert_string_equal(verdict, "");
    check_owned(check, 0, disk_log, 5, 3);
    expect(check, "two-readers");
}

static void disk_log_that_waits_after_power_cut_is_lost_write(void **state)
{
    (void)state;
    struct check *check = history();
    check_power_cut(check);
    check_waiting(check, disk_log, "?");
    expect(check, "A1 lost-write");
}

/* ---- what is given up by request ---- */

/* Asked for and answered, or not, `asked` records of ten are given up; what a verifier that begins after
 * that finds from `begin` on, but for `hole`. */
static struct check *given_up(uint64_t asked, bool answered, uint32_t begin, uint32_t hole)
{
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    check_trim_asked(check, disk_log, asked);
    if (answered) check_trimmed(check, disk_log, asked, asked == UINT64_MAX ? 10 : asked);
    check_reader_reset(check, &verifier);
    see(check, &verifier, disk_log, begin, hole);
    if (hole < 10) see(check, &verifier, disk_log, hole + 1, 10);
    check_final(check, 0);
    return check;
}

static void trim_answered_takes_what_is_before_it_and_no_more(void **state)
{
    (void)state;
    expect(given_up(4, true, 4, 10), NULL);
    expect(given_up(4, true, 3, 10), "untrimmed"); /* one is there again */
    expect(given_up(4, true, 5, 10), "A6 poll-skip");
    expect(given_up(4, true, 4, 6), "A6 poll-skip");
    expect(given_up(10, true, 10, 10), NULL);
    expect(given_up(10, true, 9, 10), "untrimmed");
    expect(given_up(UINT64_MAX, true, 10, 10), NULL);
    expect(given_up(UINT64_MAX, true, 9, 10), "untrimmed");
}

static void trim_without_an_answer_may_have_been_done_or_not(void **state)
{
    (void)state;
    for (uint32_t begin = 0; begin <= 4; begin++)
        expect(given_up(4, false, begin, 10), NULL);
    expect(given_up(4, false, 5, 10), "A6 poll-skip");
    expect(given_up(4, false, 10, 10), "A2 unseen"); /* what is behind it is gone, too */
    expect(given_up(4, false, 2, 3), "A1 lost-write");
    for (uint32_t begin = 0; begin <= 10; begin++)
        expect(given_up(UINT64_MAX, false, begin, 10), NULL);
}

/* Once a verifier has found it done it stays so. */
static void trim_that_was_seen_is_not_undone(void **state)
{
    (void)state;
    struct check *check = given_up(4, false, 3, 10);
    check_audit_begin(check);
    check_reader_reset(check, &verifier);
    see(check, &verifier, disk_log, 3, 10);
    check_final(check, 0);
    assert_string_equal(verdict, "");
    check_reader_reset(check, &verifier);
    see(check, &verifier, disk_log, 2, 10);
    expect(check, "untrimmed");
}

static void trim_answered_with_an_earlier_begin_is_untrimmed(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    check_trim_asked(check, disk_log, 6);
    check_trimmed(check, disk_log, 6, 6);
    assert_string_equal(verdict, "");
    check_trimmed(check, disk_log, 6, 5);
    expect(check, "untrimmed");
}

static void log_told_to_begin_with_what_was_given_up_is_untrimmed(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    check_trim_asked(check, disk_log, 6);
    check_trimmed(check, disk_log, 6, 6);
    check_told_to_begin(check, disk_log, 6, check_trimmed_to(check, disk_log));
    assert_string_equal(verdict, "");
    check_told_to_begin(check, disk_log, 5, check_trimmed_to(check, disk_log));
    expect(check, "untrimmed");
}

static void consumer_that_jumps_past_a_trim_is_poll_skip(void **state)
{
    (void)state;
    for (uint32_t to = 5; to <= 7; to++) {
        struct check *check = history();
        check_trim_asked(check, disk_log, 6);
        ack(check, disk_log, 0, 10);
        see(check, &reader, disk_log, 0, 2);
        see(check, &reader, disk_log, to, 10);
        expect(check, to <= 6 ? NULL : "A6 poll-skip");
    }
}

static void place_that_leads_elsewhere_is_poll_skip(void **state)
{
    (void)state;
    for (uint64_t found = 2; found <= 7; found++) {
        struct check *check = history();
        ack(check, disk_log, 0, 10);
        check_addressed(check, disk_log, 4, 6, LEAT_OK, found);
        expect(check, found == 4 ? NULL : "A6 poll-skip");
    }
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    check_addressed(check, disk_log, 4, 6, LEAT_E_TIMEOUT, 0);
    assert_string_equal(verdict, "");
    check_addressed(check, disk_log, 4, 6, LEAT_E_OFFSET_OUT_OF_RANGE, 0);
    expect(check, "A6 poll-skip");
    check = history();
    ack(check, disk_log, 0, 10);
    check_addressed(check, disk_log, 4, 6, LEAT_E_DAMAGED, 0);
    expect(check, "A13 told");
}

static void place_of_what_was_given_up_may_be_none(void **state)
{
    (void)state;
    struct check *check = history();
    ack(check, disk_log, 0, 10);
    check_trim_asked(check, disk_log, 5); /* the middle of the batch */
    check_addressed(check, disk_log, 4, 6, LEAT_OK, 5);
    check_addressed(check, disk_log, 0, 3, LEAT_E_OFFSET_OUT_OF_RANGE, 0);
    assert_string_equal(verdict, "");
    check_addressed(check, disk_log, 4, 6, LEAT_OK, 6);
    expect(check, "A6 poll-skip");
}

static void reader_that_went_back_sees_that_record_next(void **state)
{
    (void)state;
    for (uint32_t from = 2; from < 5; from++) {
        struct check *check = history();
        ack(check, disk_log, 0, 10);
        see(check, &reader, disk_log, 0, 8);
        check_reader_seek(&reader, disk_log, 3);
        see(check, &reader, disk_log, from, 10);
        expect(check, from < 3 ? "A7" : from > 3 ? "A6" : NULL);
    }
}

/* Goal: records that an operator gave up may be missing, and no others: none before, none after, and not all earlier
 * records. */
static void record_that_was_not_given_up_is_missed(void **state)
{
    (void)state;
    static const struct {
        uint32_t before, after; /* seen: up to the one, and from the other on */
        const char *reader, *verifier;
    } cases[] = {{3, 6, NULL, NULL},
                 {4, 5, NULL, NULL},
                 {2, 6, "A6 poll-skip", "A1 lost-write"},
                 {3, 7, "A6 poll-skip", "A1 lost-write"},
                 {0, 6, "A6 poll-skip", "A1 lost-write"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct check *check = history();
        ack(check, disk_log, 0, 10);
        check_given_up(check, disk_log, 3, 6);
        see(check, &reader, disk_log, 0, cases[i].before);
        see(check, &reader, disk_log, cases[i].after, 10);
        expect(check, cases[i].reader);
        check = history();
        ack(check, disk_log, 0, 10);
        check_given_up(check, disk_log, 3, 6);
        see(check, &verifier, disk_log, 0, cases[i].before);
        see(check, &verifier, disk_log, cases[i].after, 10);
        verdict[0] = '\0';
        check_final(check, 0);
        expect(check, cases[i].verifier);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_clean_accepted),
        cmocka_unit_test(acked_record_missing_before_others_is_lost_write),
        cmocka_unit_test(acked_record_missing_at_end_is_unseen),
        cmocka_unit_test(value_at_two_offsets_is_duplicate),
        cmocka_unit_test(value_in_two_places_is_duplicate),
        cmocka_unit_test(two_values_at_one_offset_are_inconsistent),
        cmocka_unit_test(loss_that_reuses_offsets_is_inconsistent),
        cmocka_unit_test(refused_value_that_is_read_is_aborted_read),
        cmocka_unit_test(value_read_and_then_refused_is_aborted_read),
        cmocka_unit_test(value_never_sent_is_aborted_read),
        cmocka_unit_test(unknown_outcome_that_is_read_is_accepted),
        cmocka_unit_test(consumer_that_jumps_is_poll_skip),
        cmocka_unit_test_prestate(trim_deeper_than_retention_is_lost, &(uint32_t){7}),
        cmocka_unit_test_prestate(trim_deeper_than_retention_is_lost, &(uint32_t){8}),
        cmocka_unit_test(consumer_of_trimmed_stream_that_jumps_is_accepted),
        cmocka_unit_test(consumer_that_goes_back_is_nonmonotonic_poll),
        cmocka_unit_test(committed_offset_that_goes_back_is_nonmonotonic_poll),
        cmocka_unit_test(set_that_resumes_from_its_commit_is_accepted),
        cmocka_unit_test(set_that_begins_beyond_what_it_read_is_poll_skip),
        cmocka_unit_test(producer_order_reversed_is_nonmonotonic_send),
        cmocka_unit_test(record_seen_and_gone_later_is_vanished),
        cmocka_unit_test(audit_is_done_when_what_was_read_is_there),
        cmocka_unit_test(stream_is_whole_unless_the_final_pass_finds_a_loss),
        cmocka_unit_test(hole_in_the_final_pass_is_poll_skip),
        cmocka_unit_test(memory_log_that_waits_after_power_cut_is_accepted),
        cmocka_unit_test(jump_before_its_answer_is_accepted),
        cmocka_unit_test(what_an_accepted_loss_left_stays),
        cmocka_unit_test(record_that_is_seen_late_and_lost_may_come_again),
        cmocka_unit_test(resend_after_what_was_lost_is_in_order),
        cmocka_unit_test(memory_log_that_loses_silently_is_lost_write),
        cmocka_unit_test(log_that_waits_without_power_cut_is_lost_write),
        cmocka_unit_test(disk_log_that_waits_after_power_cut_is_lost_write),
        cmocka_unit_test(trim_answered_takes_what_is_before_it_and_no_more),
        cmocka_unit_test(trim_without_an_answer_may_have_been_done_or_not),
        cmocka_unit_test(trim_that_was_seen_is_not_undone),
        cmocka_unit_test(trim_answered_with_an_earlier_begin_is_untrimmed),
        cmocka_unit_test(log_told_to_begin_with_what_was_given_up_is_untrimmed),
        cmocka_unit_test(consumer_that_jumps_past_a_trim_is_poll_skip),
        cmocka_unit_test(two_members_of_one_generation_on_a_log_are_two_readers),
        cmocka_unit_test(place_that_leads_elsewhere_is_poll_skip),
        cmocka_unit_test(place_of_what_was_given_up_may_be_none),
        cmocka_unit_test(reader_that_went_back_sees_that_record_next),
        cmocka_unit_test(record_that_was_not_given_up_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
