/* SPDX-License-Identifier: Apache-2.0 */
/* What a log does without being asked, in one condition at a time: care.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poke.h"

enum { SECOND_US = 1000 * 1000 };

static void begun(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
}

/* Three closed segments and a head; the memory of the three is wanted back. */
static void rolled(void)
{
    segments(3);
    for (uint32_t i = 0; i < 3; i++)
        leat_log_on_evict_wanted(it, slot(i)->seg);
    trace_begin();
}

/* ---- giving memory and segments back ---- */

/* Goal: a segment behind one that can't go yet stays, also where its memory is wanted back: a crash would leave a hole
 * in front of what is retained. */
static void segment_that_was_trimmed_goes_after_those_before_it(void **state)
{
    (void)state;
    rolled();
    it->first_segment = 2;
    leat_segment_pin(slot(0)->seg);
    log_step_drop(it);
    assert_int_equal(it->drops, 0);
    assert_false(slot(1)->changing || slot(1)->dropping);
    TRACE_IS("EVICT s2\n");
    leat_segment_unpin(slot(0)->seg, &fake->post);
    poke_end();

    rolled();
    struct leat_segment *first = slot(0)->seg;
    it->first_segment = 2;
    log_step_drop(it);
    assert_int_equal(it->drops, 1);
    assert_null(first->log_pointer); /* nobody finds the log by it any more */
    assert_ptr_equal(slot(0)->seg->log_pointer, it);
    TRACE_IS("DROP s0\n"
             "EVICT s2\n");
    poke_end();
}

/* Goal: memory that is wanted back is given, but not that of a segment whose close is under way. */
static void evicted_is_what_was_closed(void **state)
{
    (void)state;
    rolled();
    it->close.seg = slot(0)->seg;
    log_step_drop(it);
    TRACE_IS("EVICT s0\n"
             "EVICT s1\n"
             "EVICT s2\n");
    assert_false(it->evictions_wanted);
    poke_end();

    rolled();
    it->close.seg = slot(0)->seg;
    it->closing = true;
    slot(1)->evicting = false; /* nobody wants that */
    log_step_drop(it);
    TRACE_IS("EVICT s2\n");
    poke_end();
}

/* Goal: the head of a deleted log goes when no request is under way that names the head, or leads to it. */
static void head_of_a_deleted_log_goes_last(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 5; way++) {
        begun();
        fake->made_up = true;
        it->ending = LOG_DELETING;
        it->close.seg = NULL;
        it->closing = way == 1;
        it->hibernating = way == 2 ? LOG_HIBERNATING : way == 3 ? LOG_RESUMING : LOG_AWAKE;
        it->commit_count = way == 4;
        log_step_drop(it);
        TRACE_IS(way == 0 ? "DROP s0\n" : "");
        poke_end();
    }
}

static void flushed_segment_is_looked_at(void **state)
{
    (void)state;
    rolled();
    slot(0)->seg->flushed = it->dirty = fake->dirty = false;
    leat_log_on_flushed(it, slot(0)->seg);
    assert_true(slot(0)->seg->flushed && it->dirty && fake->dirty);
    poke_end();
}

/* Goal: a disk that refuses the bytes of what nobody looks for any more does not begin that again. */
static void repairing_that_was_given_up_stays_so(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_DISK_FULL, LEAT_E_NOT_FOUND};
    for (unsigned i = 0; i < 2; i++) {
        rolled();
        slot(1)->repair = LOG_REPAIR_LOST;
        slot(1)->repair_held = true;
        slot(1)->file_reads = it->reads_in_flight = 1;
        assert_false(leat_log_repair_end(it, slot(1)->seg->id, codes[i]));
        assert_int_equal(slot(1)->repair, LOG_REPAIR_LOST);
        poke_end();
    }
}

/* Goal: a deleted log leaves no memory behind. */
static void deleted_log_gives_its_memory_back(void **state)
{
    (void)state;
    const size_t before = leat_mem_bytes(LEAT_MEM_LOG);
    begun();
    assert_true(leat_mem_bytes(LEAT_MEM_LOG) > before);
    leat_log_delete(it, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    leat_log_destroy(&fake->log);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);
    fake_destroy(fake);
    trace_begin();
}

/* ---- heads ---- */

/* Goal: there is no head to ask about, to hibernate, or to leave. */
static void log_without_a_head_has_none_to_hibernate(void **state)
{
    (void)state;
    begun();
    it->store_port.copy_wanted = watch_copy_wanted;
    fake->made_up = true;
    it->head.seg = NULL;
    fake->now_us += 20 * SECOND_US;
    leat_log_care(it);
    assert_false(it->hibernating);
    TRACE_IS("");
    poke_end();
}

/* Goal: a head is hibernated so long after the last append as was said last; nobody takes its memory meanwhile; that
 * hibernating fails is final. */
static void head_is_hibernated_when_it_is_said(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        begun();
        leat_log_hibernate_after_set(it, 5 * SECOND_US);
        fake->now_us = it->gathered_us + 5 * SECOND_US - 1;
        leat_log_care(it);
        assert_false(it->hibernating);
        fake->now_us++;
        leat_log_care(it);
        assert_true(it->hibernating && slot(0)->changing);
        TRACE_IS("HIBERNATE s0 504 from 0 to 1\n");
        fake->fail_rc = LEAT_E_DISK;
        fake->fail_kinds = 1u << LEAT_STORE_HIBERNATE;
        fake->fail_request_at = fails ? fake->requests + 1 : 0;
        fake_settle(fake);
        assert_false(it->hibernating == LOG_HIBERNATING || slot(0)->changing);
        assert_int_equal(it->hibernating == LOG_HIBERNATED, !fails);
        assert_int_equal(it->state, fails ? LEAT_LOG_STOPPED : LEAT_LOG_SERVING);
        if (fails) assert_non_null(strstr(it->why, "hibernating the log's head failed"));
        poke_end();
        trace_begin();
    }
}

/* Goal: where there is no memory for a hibernated head it is asked for a second later; anything else ends the log. */
static void head_that_is_not_resumed(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        begun();
        fake->now_us += 20 * SECOND_US;
        leat_log_care(it);
        fake_settle(fake);
        assert_true(it->hibernating == LOG_HIBERNATED);
        trace_begin();
        fake->fail_rc = full ? LEAT_E_NO_MEMORY : LEAT_E_DISK;
        fake->fail_kinds = 1u << LEAT_STORE_RESUME;
        fake->fail_request_at = fake->requests + 1;
        assert_int_equal(put(fake, 1, 100), LEAT_E_AGAIN);
        fake_settle(fake);
        assert_true(it->hibernating == LOG_HIBERNATED);
        TRACE_IS(full ? "append 2: AGAIN\n"
                        "RESUME s0 cap 16384\n"
                      : "append 2: AGAIN\n"
                        "RESUME s0 cap 16384\n"
                        "room\n"); /* to be refused by name */
        assert_int_equal(it->state, full ? LEAT_LOG_SERVING : LEAT_LOG_STOPPED);
        if (!full) {
            assert_string_equal(it->why, "the hibernated head of the log could not be read back");
            poke_end();
            trace_begin();
            continue;
        }
        fake->now_us += SECOND_US - 1;
        leat_log_care(it);
        fake_settle(fake);
        TRACE_IS("");
        fake->now_us++;
        leat_log_care(it);
        fake_settle(fake);
        assert_false(log_is_hibernated(it));
        TRACE_IS("RESUME s0 cap 16384\n"
                 "room\n");
        poke_end();
    }
}

/* Goal: an idle log has no segment reserved, however short ago it rolled. */
static void idle_log_does_not_roll_fast(void **state)
{
    (void)state;
    for (unsigned idle = 0; idle < 2; idle++) {
        begun();
        fake->now_us += (idle ? 20 : 5) * SECOND_US;
        it->rolled_us = fake->now_us;
        it->rolling_fast = true;
        leat_log_care(it);
        assert_int_equal(it->rolling_fast, !idle);
        poke_end();
        trace_begin();
    }
}

/* Goal: a trailer says that what came last is acked, once nothing came for half a second, and no sooner. */
static void run_is_closed_when_nothing_comes(void **state)
{
    (void)state;
    poke_begin(watch_begun(LEAT_DURABILITY_DISK));
    const uint32_t used = it->head.writer.used;
    fake->now_us = it->gathered_us + LOG_RUN_CLOSE_US - 1;
    leat_log_care(it);
    assert_int_equal(it->head.writer.used, used);
    fake->now_us++;
    leat_log_care(it);
    assert_true(it->head.writer.used > used);
    poke_end();
    trace_begin();
}

/* Goal: producers are forgotten where the stream says when, and of a log that has read them. */
static void producers_are_forgotten_where_that_is_asked_for(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        begun();
        (void)put_as(fake, 1, 100, 5, 0);
        fake_settle(fake);
        assert_int_equal(it->producers.count, 1);
        fake->made_up = true;
        it->restored = way == 1 ? LOG_UNLOADED : LOG_WARM;
        if (way == 2) it->options.producer_expiry_ms = 0;
        fake->now_us += UINT64_C(30) * 3600 * SECOND_US;
        leat_log_care(it);
        assert_int_equal(it->producers.count, way == 0 ? 0 : 1);
        poke_end();
        trace_begin();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(segment_that_was_trimmed_goes_after_those_before_it),
        TRACE_TEST(evicted_is_what_was_closed),
        TRACE_TEST(head_of_a_deleted_log_goes_last),
        TRACE_TEST(flushed_segment_is_looked_at),
        TRACE_TEST(repairing_that_was_given_up_stays_so),
        TRACE_TEST(deleted_log_gives_its_memory_back),
        TRACE_TEST(log_without_a_head_has_none_to_hibernate),
        TRACE_TEST(head_is_hibernated_when_it_is_said),
        TRACE_TEST(head_that_is_not_resumed),
        TRACE_TEST(idle_log_does_not_roll_fast),
        TRACE_TEST(run_is_closed_when_nothing_comes),
        TRACE_TEST(producers_are_forgotten_where_that_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
