/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that one more record, segment or field decides: what a look-up finds, what a start entry says, what an
 * accepted loss names, what a log leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poke.h"

/* ---- looking up ---- */

/* Goal: a log that waits and has no segment does not say that a place before its end never was: the place may be on
 * another node. */
static void waiting_log_does_not_deny_a_place(void **state)
{
    (void)state;
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    fake_open(made, NULL, 0, &(struct leat_log_tail){.next_segment = 5, .next_offset = 50});
    struct leat_locate_op op = {.what = LEAT_LOCATE_POSITION, .from = {0, 2, 64}};
    assert_int_equal(locate(made, &op, buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    leat_log_set_state(made->log, LEAT_LOG_WAITING, "its end is elsewhere");
    op = (struct leat_locate_op){.what = LEAT_LOCATE_POSITION, .from = {0, 2, 64}};
    assert_int_equal(locate(made, &op, buffer), LEAT_E_LOG_INCOMPLETE);
    fake_destroy(made);
    free(buffer);
}

/* Goal: all records of a batch have the time when the log took it, where the stream says so, also after the first of
 * them has been given up. */
static void record_of_append_time_has_its_batchs_time(void **state)
{
    (void)state;
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    made->options.settings.append_time = true;
    fake_open(made, NULL, 0, NULL);
    times.later_ms = 500; /* the producer's clock */
    must_append(made, 3, 100);
    times.later_ms = 0;
    made->log->first_offset = made->log->trim_offset = 1;
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = fake_wall(made) - 1};
    assert_int_equal(locate(made, &op, buffer), LEAT_OK);
    assert_int_equal(op.offset.v, 1);
    assert_int_equal(op.timestamp_ms, fake_wall(made));
    fake_destroy(made);
    free(buffer);
}

/* Goal: the newest record is looked for in the segments that the log still has, the first of these, too. */
static void newest_record_is_of_what_is_retained(void **state)
{
    (void)state;
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    uint64_t bases[8];
    made->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(made, NULL, 0, NULL);
    while (made->log->next_segment < 4) {
        times.later_ms = 4000 - 1000 * (int64_t)made->log->next_segment;
        must_append(made, 50, 100);
    }
    times.later_ms = 0;
    bases_of(made, bases);
    /* The last batch that was put before a roll has the time of the segment before. */
    uint64_t newest[2];
    int64_t highest[2];
    for (unsigned i = 0; i < 2; i++) {
        made->log->first_segment = made->log->trim_segment = i;
        made->log->first_offset = made->log->trim_offset = bases[i];
        struct leat_locate_op op = {.what = LEAT_LOCATE_NEWEST};
        assert_int_equal(locate(made, &op, buffer), LEAT_OK);
        newest[i] = op.offset.v;
        highest[i] = op.timestamp_ms;
    }
    assert_true(newest[0] >= bases[0] && newest[0] < bases[1]);
    assert_true(newest[1] >= bases[1] && newest[1] < bases[2]);
    assert_int_equal(highest[0], log_slot_at(made->log, 0)->seg->max_timestamp_ms);
    assert_int_equal(highest[1], log_slot_at(made->log, 1)->seg->max_timestamp_ms);
    made->log->first_segment = made->log->trim_segment = 0;
    made->log->first_offset = made->log->trim_offset = 0;
    fake_destroy(made);
    free(buffer);
}

static void on_earliest(struct leat_locate_op *op)
{
    *(bool *)op->owner = true;
}

/* Goal: who asks where a log begins hears that the log has gone meanwhile. */
static void earliest_of_a_log_that_goes_is_refused(void **state)
{
    (void)state;
    struct fake *made = log_of(3);
    bool done = false;
    reopen(made, 0, 0, true);
    assert_true(log_front_is_unknown(made->log));
    struct leat_locate_op op = {
        .what = LEAT_LOCATE_EARLIEST, .on_done = on_earliest, .owner = &done};
    assert_int_equal(leat_log_locate(made->log, &op), LEAT_E_AGAIN);
    fake_delete_log(made);
    assert_true(done);
    assert_int_equal(op.rc, LEAT_E_UNKNOWN_STREAM);
    fake_destroy(made);
}

/* ---- what is written ---- */

/* Goal: a start entry that is written while a trim entry is not acked yet names what the trim entry names, the offset,
 * too. */
static void start_entry_names_what_is_being_trimmed(void **state)
{
    (void)state;
    for (unsigned later = 0; later < 2; later++) {
        segments(3);
        uint64_t base = slot(1)->seg->base_offset;
        it->trim_written = true;
        it->trim_segment = 1;
        it->trim_offset = base;
        it->trim_ack_segment = UINT64_MAX; /* not acked */
        it->begin_offset = later ? base + 7 : 0;
        if (later) it->first_offset = base + 7;
        uint64_t before = it->head.seg->id.v;
        it->roll_wanted = true;
        log_mark_dirty(it);
        fake->made_up = true;
        fake_settle(fake);
        assert_int_equal(it->head.seg->id.v, before + 1);
        struct leat_start start;
        assert_true(leat_log_start_find(it->head.seg->buffer, it->head.seg->capacity, &start));
        assert_int_equal(start.first_segment, 1);
        assert_int_equal(start.first_offset, later ? base + 7 : base);
        poke_end();
    }
}

/* Goal: a head that was to leave stays for a while after no successor could be had. */
static void head_stays_where_no_successor_is_had(void **state)
{
    (void)state;
    segments(1);
    it->leave_wanted = true;
    it->room_wanted = true;
    it->room_bytes = 1024 * 1024; /* more than fits */
    fake->made_up = true;
    fake->fail_rc = LEAT_E_AGAIN;
    fake->fail_kinds = 1u << LEAT_STORE_RESERVE;
    fake->fail_request_at = fake->requests + 1;
    log_mark_dirty(it);
    fake_turn_end(fake);
    assert_true(it->reserving && it->leave_wanted);
    fake->ended = true; /* no step after the answer */
    assert_true(fake_deliver(fake));
    assert_false(it->reserving);
    assert_false(it->leave_wanted);
    assert_int_equal(it->leave_not_before_us, fake->now_us + LOG_LEAVE_PAUSE_US);
    poke_end();
}

/* Goal: a last trailer says that all is acked as long as there is room for a trailer, to the byte. */
static void last_trailer_takes_the_last_room(void **state)
{
    (void)state;
    struct fake *made = watch_begun(LEAT_DURABILITY_DISK);
    poke_begin(made);
    while (log_head_fits(it, 1))
        it->head.writer.capacity--;
    assert_true(log_head_fits(it, 0));
    assert_true(it->head.writer.used != it->head.run_closed_bytes);
    log_run_close(it);
    assert_int_equal(it->head.run_closed_bytes, it->head.writer.used);
    poke_end();
}

/* ---- accepted losses ---- */

static unsigned skips;
static void on_skipped(void *arg, struct leat_log *log)
{
    (void)arg, (void)log;
    skips++;
}

/* Goal: an accepted loss in a log without segments ends at once; in a sound log it names no record. */
static void accepted_loss_names_what_is_lost_alone(void **state)
{
    (void)state;
    struct fake *made = watch(LEAT_DURABILITY_MEMORY);
    fake_open(made, NULL, 0, NULL);
    skips = 0;
    leat_log_skip_missing(made->log, on_skipped, NULL);
    fake_settle(made);
    assert_int_equal(skips, 1);
    watch_end(made);
    segments(2);
    log_damage_name(it);
    for (uint32_t i = 0; i < it->slot_count; i++)
        assert_int_equal(slot(i)->named, 0);
    it->state = LEAT_LOG_DAMAGED;
    log_damage_name(it);
    assert_int_equal(slot(it->slot_count - 1)->named, LOG_NAMED_RECORDS);
    poke_end();
}

/* Goal: nothing is noted in the row of a segment that is being dropped. */
static void segment_that_is_dropped_is_not_given_up(void **state)
{
    (void)state;
    for (unsigned dropping = 0; dropping < 2; dropping++) {
        segments(3);
        slot(2)->seg->base_offset += 5; /* five records before are missing */
        slot(2)->named = LOG_NAMED_FRONT;
        slot(2)->joint = LOG_JOINT_CHAINED;
        slot(2)->dropping = dropping;
        it->damage_look = true;
        it->skip = LOG_SKIP_GOES;
        trace_begin();
        assert_int_equal(log_damage_give_up(it), !dropping);
        TRACE_IS(dropping ? "" : "GIVE_UP s2 its front passed 0\n");
        fake->queued = 0;
        slot(2)->seg->base_offset -= 5;
        poke_end();
    }
}

/* ---- what is left ---- */

/* Goal: the closed segments of a log are told in their order; a log that has gone owns none of its segments. */
static void log_that_has_gone_owns_no_segment(void **state)
{
    (void)state;
    struct fake *made = log_of(3);
    struct leat_segment *segs[SEGMENTS_MAX];
    assert_int_equal(leat_log_closed(made->log, segs), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(segs[i]->id.v, i);
    reopen(made, 0, 0, false);
    leat_log_rest(made->log);
    fake_settle(made);
    size_t count = leat_log_closed(made->log, segs);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(segs[i]->log_pointer, made->log);
    leat_log_destroy(&made->log);
    for (size_t i = 0; i < count; i++)
        assert_null(segs[i]->log_pointer);
    fake_destroy(made);
}

static size_t snapshot_none(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Goal: a log with an application above, whose state others wait for, may take the memory that is kept for segments
 * that free memory. */
static void log_of_an_application_may_take_the_spare_memory(void **state)
{
    (void)state;
    for (unsigned app = 0; app < 2; app++) {
        segments(1);
        watched.full = true;
        it->options.app.ctx = app ? fake : NULL;
        it->options.app.snapshot_bytes = snapshot_none;
        it->room_wanted = true;
        it->room_bytes = 1024 * 1024;
        trace_begin();
        log_step_room(it);
        assert_int_equal(strstr(trace_text, "full? spare") != NULL, app);
        assert_non_null(strstr(trace_text, "full?"));
        it->options.app.ctx = NULL;
        poke_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(waiting_log_does_not_deny_a_place),
        TRACE_TEST(record_of_append_time_has_its_batchs_time),
        TRACE_TEST(newest_record_is_of_what_is_retained),
        TRACE_TEST(earliest_of_a_log_that_goes_is_refused),
        TRACE_TEST(start_entry_names_what_is_being_trimmed),
        TRACE_TEST(head_stays_where_no_successor_is_had),
        TRACE_TEST(last_trailer_takes_the_last_room),
        TRACE_TEST(accepted_loss_names_what_is_lost_alone),
        TRACE_TEST(segment_that_is_dropped_is_not_given_up),
        TRACE_TEST(log_that_has_gone_owns_no_segment),
        TRACE_TEST(log_of_an_application_may_take_the_spare_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
