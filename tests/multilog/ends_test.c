/* SPDX-License-Identifier: Apache-2.0 */
/* How a log gives segments back, ends, stops and answers: each condition by itself, on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"

/* ---- giving back ---- */

static void drop(void)
{
    log_step_drop(it);
    trace("-> from %u %u held, %llu closed %llu memory %u drops%s:", it->slot_begin, it->slot_count,
          (unsigned long long)it->closed_bytes, (unsigned long long)it->memory_bytes, it->drops,
          it->evictions_wanted ? " wanted" : "");
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" %s%s%s%s", slot(i)->changing ? "c" : "-", slot(i)->evicting ? "e" : "-",
              slot(i)->dropping ? "d" : "-", slot(i)->mail_due ? "m" : "-");
    trace(" helpers");
    for (unsigned i = 0; i < LOG_HELPERS; i++)
        trace(it->helper_busy[i] ? " b" : " -");
    trace("\n");
}

/* 0 and 1 are wanted back. */
static void wanted(void)
{
    segments(3);
    leat_log_on_evict_wanted(it, slot(0)->seg);
    leat_log_on_evict_wanted(it, slot(1)->seg);
}

static void helpers_busy(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        it->helper_busy[i] = true;
}

static void buffers_that_are_wanted_back_go_as_helpers_are_free(void **state)
{
    (void)state;
    CASE_AS_IT_IS(wanted, drop);
    CASE(wanted, drop, it->evictions_wanted = false);
    CASE(wanted, drop, slot(0)->evicting = false);
    CASE(wanted, drop, slot(0)->changing = true);
    CASE(wanted, drop, slot(0)->dropping = true);
    CASE(wanted, drop, slot(0)->file_reads = 1);
    CASE(wanted, drop, it->drops = 1);
    CASE(wanted, drop, it->close.seg = slot(0)->seg);
    CASE(wanted, drop, it->close.seg = slot(0)->seg, it->closing = true);
    CASE(wanted, drop, it->closing = true);
    CASE(wanted, drop, leat_segment_pin(slot(0)->seg));
    CASE(wanted, drop, slot(0)->mail_due = true);
    CASE(wanted, drop, helpers_busy(2));
    CASE(wanted, drop, helpers_busy(3));
    CASE(wanted, drop, helpers_busy(4));
    CASE(wanted, drop, it->first_segment = 1);
    TRACE_IS(
        "(void)0: EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b b - "
        "-\n"
        "it->evictions_wanted = false: -> from 0 4 held, 84736 closed 163840 memory 0 drops: -e-- "
        "-e-- ---- ---- helpers - - - -\n"
        "slot(0)->evicting = false: EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ---- ce-- ---- ---- helpers b - - "
        "-\n"
        "slot(0)->changing = true: EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b - - "
        "-\n"
        "slot(0)->dropping = true: EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: -ed- ce-- ---- ---- helpers b - - "
        "-\n"
        "slot(0)->file_reads = 1: EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b b - "
        "-\n"
        "it->drops = 1: EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 1 drops: ce-- ce-- ---- ---- helpers b b - "
        "-\n"
        "it->close.seg = slot(0)->seg: EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b b - "
        "-\n"
        "it->close.seg = slot(0)->seg, it->closing = true: EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: -e-- ce-- ---- ---- helpers b - - "
        "-\n"
        "it->closing = true: EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b b - "
        "-\n"
        "leat_segment_pin(slot(0)->seg): EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: -e-m ce-- ---- ---- helpers b - - "
        "-\n"
        "slot(0)->mail_due = true: EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: -e-m ce-- ---- ---- helpers b - - "
        "-\n"
        "helpers_busy(2): EVICT s0\n"
        "EVICT s1\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops: ce-- ce-- ---- ---- helpers b b b "
        "b\n"
        "helpers_busy(3): EVICT s0\n"
        "-> from 0 4 held, 84736 closed 163840 memory 0 drops wanted: ce-- -e-- ---- ---- helpers "
        "b b b b\n"
        "helpers_busy(4): -> from 0 4 held, 84736 closed 163840 memory 0 drops wanted: -e-- -e-- "
        "---- ---- helpers b b b b\n"
        "it->first_segment = 1: DROP s0\n"
        "EVICT s1\n"
        "-> from 1 3 held, 73224 closed 147456 memory 1 drops: ce-- ---- ---- helpers b b - -\n");
}

static void trimmed(void)
{
    segments(3);
    it->first_segment = it->trim_segment = 2;
}

static void segments_that_are_trimmed_go_one_by_one(void **state)
{
    (void)state;
    CASE_AS_IT_IS(trimmed, drop);
    CASE(trimmed, drop, it->first_segment = 0);
    CASE(trimmed, drop, it->first_segment = 1);
    CASE(trimmed, drop, it->drops = 1);
    CASE(trimmed, drop, slot(0)->file_reads = 1);
    CASE(trimmed, drop, slot(0)->changing = true);
    CASE(trimmed, drop, slot(0)->closed = false);
    CASE(trimmed, drop, leat_segment_pin(slot(0)->seg));
    CASE(trimmed, drop, leat_segment_pin(slot(1)->seg));
    CASE(trimmed, drop, it->close.seg = slot(0)->seg, it->closing = true);
    CASE(trimmed, drop, helpers_busy(3));
    CASE(trimmed, drop, helpers_busy(4));
    TRACE_IS(
        "(void)0: DROP s0\n"
        "-> from 1 3 held, 73224 closed 147456 memory 1 drops: ---- ---- ---- helpers b - - -\n"
        "it->first_segment = 0: -> from 0 4 held, 84736 closed 163840 memory 0 drops: ---- ---- "
        "---- ---- helpers - - - -\n"
        "it->first_segment = 1: DROP s0\n"
        "-> from 1 3 held, 73224 closed 147456 memory 1 drops: ---- ---- ---- helpers b - - -\n"
        "it->drops = 1: -> from 0 4 held, 84736 closed 163840 memory 1 drops: ---- ---- ---- ---- "
        "helpers - - - -\n"
        "slot(0)->file_reads = 1: -> from 0 4 held, 84736 closed 163840 memory 0 drops: ---- ---- "
        "---- ---- helpers - - - -\n"
        "slot(0)->changing = true: -> from 0 4 held, 84736 closed 163840 memory 0 drops: c--- ---- "
        "---- ---- helpers - - - -\n"
        "slot(0)->closed = false: DROP s0\n"
        "-> from 1 3 held, 84736 closed 147456 memory 1 drops: ---- ---- ---- helpers b - - -\n"
        "leat_segment_pin(slot(0)->seg): -> from 0 4 held, 84736 closed 163840 memory 0 drops: "
        "---m ---- ---- ---- helpers - - - -\n"
        "leat_segment_pin(slot(1)->seg): DROP s0\n"
        "-> from 1 3 held, 73224 closed 147456 memory 1 drops: ---- ---- ---- helpers b - - -\n"
        "it->close.seg = slot(0)->seg, it->closing = true: -> from 0 4 held, 84736 closed 163840 "
        "memory 0 drops: ---- ---- ---- ---- helpers - - - -\n"
        "helpers_busy(3): DROP s0\n"
        "-> from 1 3 held, 73224 closed 147456 memory 1 drops: ---- ---- ---- helpers b b b b\n"
        "helpers_busy(4): -> from 0 4 held, 84736 closed 163840 memory 0 drops: ---- ---- ---- "
        "---- helpers b b b b\n");
}

static void deleted(void)
{
    segments(2);
    it->ending = LOG_DELETING;
}

static void drop_and_head(void)
{
    drop();
    trace("   %s head, %s old\n", it->head.seg ? "a" : "no", it->old.seg ? "an" : "no");
}

/* The head as well, once nothing is under way about it. */
static void deleted_log_drops_all_as_helpers_are_free(void **state)
{
    (void)state;
    CASE_AS_IT_IS(deleted, drop_and_head);
    CASE(deleted, drop_and_head, it->commit_count = 1);
    CASE(deleted, drop_and_head, it->closing = true);
    CASE(deleted, drop_and_head, it->hibernating = LOG_HIBERNATING);
    CASE(deleted, drop_and_head, it->hibernating = LOG_RESUMING);
    CASE(deleted, drop_and_head, it->old = it->head, it->head = (struct log_open){0},
         it->commit_count = 1);
    CASE(deleted, drop_and_head, it->old = it->head, it->head = (struct log_open){0});
    CASE(deleted, drop_and_head, slot(2)->seg->flushed = true, helpers_busy(2));
    CASE(deleted, drop_and_head, slot(0)->file_reads = 1);
    TRACE_IS("(void)0: DROP s0\n"
             "DROP s1\n"
             "DROP s2\n"
             "-> from 3 0 held, 0 closed 0 memory 3 drops: helpers b b b -\n"
             "   no head, no old\n"
             "it->commit_count = 1: DROP s0\n"
             "DROP s1\n"
             "-> from 2 1 held, 0 closed 65536 memory 2 drops: ---- helpers b b - -\n"
             "   a head, no old\n"
             "it->closing = true: DROP s0\n"
             "-> from 1 2 held, 11512 closed 81920 memory 1 drops: ---- ---- helpers b - - -\n"
             "   a head, no old\n"
             "it->hibernating = LOG_HIBERNATING: DROP s0\n"
             "DROP s1\n"
             "-> from 2 1 held, 0 closed 65536 memory 2 drops: ---- helpers b b - -\n"
             "   a head, no old\n"
             "it->hibernating = LOG_RESUMING: DROP s0\n"
             "DROP s1\n"
             "-> from 2 1 held, 0 closed 65536 memory 2 drops: ---- helpers b b - -\n"
             "   a head, no old\n"
             "it->old = it->head, it->head = (struct log_open){0}, it->commit_count = 1: DROP s0\n"
             "DROP s1\n"
             "-> from 2 1 held, 0 closed 65536 memory 2 drops: ---- helpers b b - -\n"
             "   no head, an old\n"
             "it->old = it->head, it->head = (struct log_open){0}: DROP s0\n"
             "DROP s1\n"
             "DROP s2\n"
             "-> from 3 0 held, 0 closed 0 memory 3 drops: helpers b b b -\n"
             "   no head, no old\n"
             "slot(2)->seg->flushed = true, helpers_busy(2): DROP s0\n"
             "DROP s1\n"
             "-> from 2 1 held, 0 closed 65536 memory 2 drops: ---- helpers b b b b\n"
             "   a head, no old\n"
             "slot(0)->file_reads = 1: -> from 0 3 held, 23024 closed 98304 memory 0 drops: ---- "
             "---- ---- helpers - - - -\n"
             "   a head, no old\n");
}

static void answered(void)
{
    size_t used = trace_used;
    log_step_drop(it);
    trace_text[trace_used = used] = '\0';
    it->dirty = it->evictions_wanted = false;
    while (fake->queued)
        one_done();
    trace("%s, ", it->dirty ? "dirty" : "not dirty");
    drop();
}

static void fails(unsigned kinds)
{
    fake->fail_kinds = kinds;
    fake->fail_rc = LEAT_E_DISK;
    fake->fail_request_at = fake->requests + 1;
}

static void what_was_given_back_is_counted_once_it_is_gone(void **state)
{
    (void)state;
    CASE_AS_IT_IS(wanted, answered);
    CASE(wanted, answered, fails(1u << LEAT_STORE_EVICT));
    CASE_AS_IT_IS(trimmed, answered);
    TRACE_IS("(void)0: dirty, -> from 0 4 held, 84736 closed 131072 memory 0 drops: ---- ---- ---- "
             "---- helpers - - - -\n"
             "fails(1u << LEAT_STORE_EVICT): dirty, -> from 0 4 held, 84736 closed 147456 memory 0 "
             "drops: ---- ---- ---- ---- helpers - - - -\n"
             "(void)0: dirty, DROP s1\n"
             "-> from 2 2 held, 61712 closed 131072 memory 1 drops: ---- ---- helpers b - - -\n");
}

static void three(void)
{
    segments(3);
}

static struct leat_segment *asked;

static void evict_wanted(void)
{
    leat_log_on_evict_wanted(it, asked);
    trace("->%s%s%s\n", slot(1)->evicting ? " evicting" : "", it->evictions_wanted ? " wanted" : "",
          it->dirty ? " dirty" : "");
}

static void only_what_is_whole_in_its_file_is_wanted_back(void **state)
{
    (void)state;
    static struct leat_segment other;
    CASE(three, evict_wanted, asked = slot(1)->seg);
    CASE(three, evict_wanted, asked = slot(1)->seg, slot(1)->closed = false);
    CASE(three, evict_wanted, asked = slot(1)->seg, asked->flushed = false);
    CASE(three, evict_wanted, asked = slot(1)->seg, slot(1)->changing = true);
    CASE(three, evict_wanted, asked = slot(1)->seg, free(asked->buffer), asked->buffer = NULL);
    CASE(three, evict_wanted, asked = &other, other = *slot(1)->seg);
    CASE(three, evict_wanted, asked = &other, other.id.v = 9);
    TRACE_IS("asked = slot(1)->seg: -> evicting wanted dirty\n"
             "asked = slot(1)->seg, slot(1)->closed = false: ->\n"
             "asked = slot(1)->seg, asked->flushed = false: ->\n"
             "asked = slot(1)->seg, slot(1)->changing = true: ->\n"
             "asked = slot(1)->seg, free(asked->buffer), asked->buffer = NULL: ->\n"
             "asked = &other, other = *slot(1)->seg: ->\n"
             "asked = &other, other.id.v = 9: ->\n");
}

/* ---- the end ---- */

static void on_over(void *arg, struct leat_log *ended)
{
    assert_ptr_equal(ended, it);
    trace("%s ", (const char *)arg);
}

static void begun(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
}

static void stopping(void)
{
    begun();
    leat_log_stop(it, on_over, (void *)(uintptr_t) "stopped");
}

static void end(void)
{
    log_step_end(it);
    trace("->%s%s%s\n", it->hibernating == LOG_HIBERNATING ? " hibernating" : "",
          it->on_end ? "" : " over", it->resting ? " resting" : "");
}

static void stop_waits_for_what_is_under_way_and_hibernates_the_head(void **state)
{
    (void)state;
    CASE_AS_IT_IS(stopping, end);
    CASE(stopping, end, it->on_end = NULL);
    CASE(stopping, end, one_waits(2));
    CASE(stopping, end, one_waits(2), it->state = LEAT_LOG_STOPPED);
    CASE(stopping, end, it->reads_in_flight = 1);
    CASE(stopping, end, it->state = LEAT_LOG_STOPPED);
    CASE(stopping, end, it->state = LEAT_LOG_STOPPED, it->commit_count = 1);
    CASE(stopping, end, it->state = LEAT_LOG_WAITING);
    CASE(stopping, end, it->head.seg = NULL);
    CASE(stopping, end, it->hibernating = LOG_HIBERNATED);
    CASE(stopping, end, it->old.seg = it->head.seg);
    CASE(stopping, end, it->opened = LOG_UNOPENED);
    CASE(stopping, end, it->head.acked_bytes -= 1);
    CASE(stopping, end, leat_segment_pin(it->head.seg));
    CASE(stopping, end, it->reserving = true);
    CASE(stopping, end, it->next = it->head.seg, it->reserving = true);
    CASE(stopping, end, it->next = it->head.seg);
    TRACE_IS("(void)0: HIBERNATE s0 504 from 0 to 1\n"
             "-> hibernating\n"
             "it->on_end = NULL: -> over\n"
             "one_waits(2): ->\n"
             "one_waits(2), it->state = LEAT_LOG_STOPPED: ->\n"
             "it->reads_in_flight = 1: ->\n"
             "it->state = LEAT_LOG_STOPPED: stopped -> over\n"
             "it->state = LEAT_LOG_STOPPED, it->commit_count = 1: ->\n"
             "it->state = LEAT_LOG_WAITING: stopped -> over\n"
             "it->head.seg = NULL: stopped -> over\n"
             "it->hibernating = LOG_HIBERNATED: stopped -> over\n"
             "it->old.seg = it->head.seg: ->\n"
             "it->opened = LOG_UNOPENED: ->\n"
             "it->head.acked_bytes -= 1: ->\n"
             "leat_segment_pin(it->head.seg): ->\n"
             "it->reserving = true: ->\n"
             "it->next = it->head.seg, it->reserving = true: ->\n"
             "it->next = it->head.seg: DROP s0\n"
             "->\n");
}

static struct leat_read reading;

static void releasing(void)
{
    segments(2);
    leat_log_release(it, on_over, (void *)(uintptr_t) "released");
}

static void release_waits_for_readers_and_fails_what_waits(void **state)
{
    (void)state;
    CASE_AS_IT_IS(releasing, end);
    CASE(releasing, end, watch_count = 3, one_waits(2));
    CASE(releasing, end, it->next = it->head.seg);
    CASE(releasing, end, it->next = it->head.seg, it->reserving = true);
    CASE(releasing, end, it->closing = true);
    CASE(releasing, end, leat_list_push_back(&it->stalled_reads, &reading.link));
    CASE(releasing, end, leat_segment_pin(slot(0)->seg));
    CASE(releasing, end, leat_segment_pin(slot(2)->seg));
    TRACE_IS("(void)0: released -> over resting\n"
             "watch_count = 3, one_waits(2): append 3: STALE_EPOCH at 0\n"
             "released -> over resting\n"
             "it->next = it->head.seg: DROP s2\n"
             "->\n"
             "it->next = it->head.seg, it->reserving = true: ->\n"
             "it->closing = true: ->\n"
             "leat_list_push_back(&it->stalled_reads, &reading.link): ->\n"
             "leat_segment_pin(slot(0)->seg): ->\n"
             "leat_segment_pin(slot(2)->seg): ->\n");
}

static void deleting(void)
{
    begun();
    it->ending = LOG_STOPPING;
    leat_log_delete(it, on_over, (void *)(uintptr_t) "gone");
    assert_int_equal(it->ending, LOG_DELETING);
}

static void delete_waits_until_nothing_is_held(void **state)
{
    (void)state;
    CASE_AS_IT_IS(deleting, end);
    CASE(deleting, end, it->slot_count = 0);
    CASE(deleting, end, it->slot_count = 0, watch_count = 5, one_waits(2));
    CASE(deleting, end, it->slot_count = 0, it->commit_count = 1);
    CASE(deleting, end, it->slot_count = 0, it->next = it->head.seg);
    CASE(deleting, end, it->slot_count = 0, it->next = it->head.seg, it->reserving = true);
    TRACE_IS("(void)0: ->\n"
             "it->slot_count = 0: gone -> over\n"
             "it->slot_count = 0, watch_count = 5, one_waits(2): append 5: UNKNOWN_STREAM at 0\n"
             "gone -> over\n"
             "it->slot_count = 0, it->commit_count = 1: ->\n"
             "it->slot_count = 0, it->next = it->head.seg: DROP s0\n"
             "->\n"
             "it->slot_count = 0, it->next = it->head.seg, it->reserving = true: ->\n");
}

/* ---- what is told ---- */

static void turn(void)
{
    leat_log_turn_end(it);
    trace("->%s%s%s%s\n", it->opened == LOG_OPENING ? " opening" : "",
          it->room_wanted ? " wants room" : "", it->room_bytes ? " bytes" : "",
          it->dirty ? " dirty" : "");
}

static void unopened(void)
{
    begun();
    it->opened = LOG_UNOPENED;
}

static void owner_is_asked_once_whether_it_may_open(void **state)
{
    (void)state;
    CASE_AS_IT_IS(unopened, turn);
    CASE(unopened, turn, it->opened = LOG_OPENED);
    CASE(unopened, turn, it->opened = LOG_OPENING);
    CASE(unopened, turn, it->opened = LOG_OPENING_PAUSED);
    CASE(unopened, turn, it->ending = LOG_STOPPING);
    CASE(unopened, turn, it->state = LEAT_LOG_WAITING);
    CASE(unopened, turn, it->state = LEAT_LOG_STOPPED);
    CASE(unopened, turn, it->head.start_end = it->head.safe_bytes);
    CASE(unopened, turn, it->head.start_end = it->head.safe_bytes + 1);
    CASE(unopened, turn, it->resting = true);
    CASE(unopened, turn, it->in_step = true);
    TRACE_IS("(void)0: opening s0\n"
             "-> opening\n"
             "it->opened = LOG_OPENED: ->\n"
             "it->opened = LOG_OPENING: -> opening\n"
             "it->opened = LOG_OPENING_PAUSED: ->\n"
             "it->ending = LOG_STOPPING: opening s0\n"
             "-> opening\n"
             "it->state = LEAT_LOG_WAITING: ->\n"
             "it->state = LEAT_LOG_STOPPED: ->\n"
             "it->head.start_end = it->head.safe_bytes: opening s0\n"
             "-> opening\n"
             "it->head.start_end = it->head.safe_bytes + 1: ->\n"
             "it->resting = true: ->\n"
             "it->in_step = true: ->\n");
}

static void waits_for_room(void)
{
    begun();
    it->room_wanted = true;
    it->room_bytes = 100;
}

static void whoever_waits_for_room_is_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(waits_for_room, turn);
    CASE(waits_for_room, turn, it->room_wanted = false);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000, it->state = LEAT_LOG_STOPPED);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000, it->state = LEAT_LOG_WAITING);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000, it->ending = LOG_STOPPING);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000,
         it->memory_not_before_us = fake->now_us + 1);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000, it->memory_not_before_us = fake->now_us);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000, it->reserve_rc = LEAT_E_DISK_FULL,
         it->reserve_not_before_us = fake->now_us + 1);
    CASE(waits_for_room, turn, it->room_bytes = 60 * 1000,
         it->reserve_not_before_us = fake->now_us + 1);
    CASE(waits_for_room, turn, it->producers_wanted = true,
         it->producers_not_before_us = fake->now_us + 1);
    CASE(waits_for_room, turn, it->hibernating = LOG_RESUMING);
    CASE(waits_for_room, turn, it->restored = LOG_UNLOADED, it->warming = true);
    TRACE_IS("(void)0: room\n"
             "->\n"
             "it->room_wanted = false: -> bytes\n"
             "it->room_bytes = 60 * 1000: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
             "-> wants room bytes\n"
             "it->room_bytes = 60 * 1000, it->state = LEAT_LOG_STOPPED: room\n"
             "->\n"
             "it->room_bytes = 60 * 1000, it->state = LEAT_LOG_WAITING: room\n"
             "->\n"
             "it->room_bytes = 60 * 1000, it->ending = LOG_STOPPING: room\n"
             "->\n"
             "it->room_bytes = 60 * 1000, it->memory_not_before_us = fake->now_us + 1: room\n"
             "->\n"
             "it->room_bytes = 60 * 1000, it->memory_not_before_us = fake->now_us: RESERVE s1 "
             "1/0/0 e7 cap 65536 d1\n"
             "-> wants room bytes\n"
             "it->room_bytes = 60 * 1000, it->reserve_rc = LEAT_E_DISK_FULL, "
             "it->reserve_not_before_us = fake->now_us + 1: room\n"
             "->\n"
             "it->room_bytes = 60 * 1000, it->reserve_not_before_us = fake->now_us + 1: -> wants "
             "room bytes\n"
             "it->producers_wanted = true, it->producers_not_before_us = fake->now_us + 1: -> "
             "wants room bytes\n"
             "it->hibernating = LOG_RESUMING: -> wants room bytes\n"
             "it->restored = LOG_UNLOADED, it->warming = true: -> wants room bytes\n");
}

/* Records that were acked before the log stopped are answered as acked, other records never will be. */
static void log_that_stopped_answers_what_was_acked(void **state)
{
    (void)state;
    CASE(begun, turn, it->state = LEAT_LOG_STOPPED, it->stopped_rc = LEAT_E_DISK, watch_count = 0,
         one_waits(1), one_waits(2));
    CASE(begun, turn, watch_count = 0, one_waits(1), one_waits(2));
    CASE(begun, turn, it->state = LEAT_LOG_STOPPED, it->stopped_rc = LEAT_E_STARTING,
         it->head.safe_offset = 2, watch_count = 0, one_waits(2));
    CASE(begun, turn, it->opened = LOG_UNOPENED, it->head.safe_offset = 2, watch_count = 0,
         one_waits(2));
    CASE(begun, turn, it->head.safe_offset = 2, watch_count = 0, one_waits(2), one_waits(3));
    TRACE_IS(
        "it->state = LEAT_LOG_STOPPED, it->stopped_rc = LEAT_E_DISK, watch_count = 0, "
        "one_waits(1), one_waits(2): append 0: OK at 0\n"
        "append 1: DISK at 0\n"
        "->\n"
        "watch_count = 0, one_waits(1), one_waits(2): append 0: OK at 0\n"
        "->\n"
        "it->state = LEAT_LOG_STOPPED, it->stopped_rc = LEAT_E_STARTING, it->head.safe_offset = 2, "
        "watch_count = 0, one_waits(2): append 0: STARTING at 0\n"
        "->\n"
        "it->opened = LOG_UNOPENED, it->head.safe_offset = 2, watch_count = 0, one_waits(2): "
        "opening s0\n"
        "-> opening\n"
        "it->head.safe_offset = 2, watch_count = 0, one_waits(2), one_waits(3): acked 2\n"
        "append 0: OK at 0\n"
        "->\n");
}

static void stand(void)
{
    trace("-> state %u rc %s: %s%s%s%s\n", (unsigned)it->state, leat_err_name(it->stopped_rc),
          it->why, log_is_opened(it) ? ", opened" : "",
          it->opened == LOG_OPENING_PAUSED ? ", paused" : "", it->dirty ? ", dirty" : "");
}

static void asked_to_open(void)
{
    unopened();
    it->opened = LOG_OPENING;
}

static void answers_and_faults_change_the_state(void **state)
{
    (void)state;
    CASE(asked_to_open, stand, leat_log_opened(it, LEAT_OK));
    CASE(asked_to_open, stand, leat_log_opened(it, LEAT_E_AGAIN));
    CASE(asked_to_open, stand, leat_log_opened(it, LEAT_E_UNKNOWN_STREAM));
    CASE(asked_to_open, stand, leat_log_opened(it, LEAT_E_STALE_EPOCH));
    CASE(asked_to_open, stand, log_fail(it, LEAT_E_DISK, "x"),
         leat_log_opened(it, LEAT_E_UNKNOWN_STREAM));
    CASE(begun, stand, leat_log_set_state(it, LEAT_LOG_WAITING, "its end is elsewhere"));
    CASE(begun, stand, leat_log_set_state(it, LEAT_LOG_DAMAGED, "it rots"));
    CASE(begun, stand, log_fail(it, LEAT_E_STALE_EPOCH, "one"), log_fail(it, LEAT_E_DISK, "two"));
    CASE(begun, stand, log_fail_finally(it, LEAT_E_DISK_FULL, "a flush failed"));
    CASE(begun, stand, leat_log_abandon(it));
    CASE(stopping, stand, it->dirty = false, leat_log_abandon(it));
    CASE(releasing, stand, it->dirty = false, leat_log_abandon(it));
    CASE(stopping, stand, log_fail(it, LEAT_E_DISK, "x"), leat_log_abandon(it));
    CASE(stopping, stand, it->dirty = false, it->on_end = NULL, leat_log_go_on(it));
    TRACE_IS("leat_log_opened(it, LEAT_OK): -> state 0 rc OK: , opened, dirty\n"
             "leat_log_opened(it, LEAT_E_AGAIN): -> state 0 rc OK: , paused, dirty\n"
             "leat_log_opened(it, LEAT_E_UNKNOWN_STREAM): -> state 3 rc UNKNOWN_STREAM: the stream "
             "was deleted, dirty\n"
             "leat_log_opened(it, LEAT_E_STALE_EPOCH): -> state 3 rc STALE_EPOCH: the coordinator "
             "did not accept this owner's first segment, dirty\n"
             "log_fail(it, LEAT_E_DISK, \"x\"), leat_log_opened(it, LEAT_E_UNKNOWN_STREAM): -> "
             "state 3 rc DISK: x, dirty\n"
             "leat_log_set_state(it, LEAT_LOG_WAITING, \"its end is elsewhere\"): -> state 1 rc "
             "DISK: its end is elsewhere, opened, dirty\n"
             "leat_log_set_state(it, LEAT_LOG_DAMAGED, \"it rots\"): -> state 2 rc DISK: it rots, "
             "opened, dirty\n"
             "log_fail(it, LEAT_E_STALE_EPOCH, \"one\"), log_fail(it, LEAT_E_DISK, \"two\"): -> "
             "state 3 rc STALE_EPOCH: one, opened, dirty\n"
             "log_fail_finally(it, LEAT_E_DISK_FULL, \"a flush failed\"): -> state 3 rc DISK: a "
             "flush failed (no space left in the data directory), which is final, opened, dirty\n"
             "leat_log_abandon(it): -> state 0 rc OK: , opened\n"
             "it->dirty = false, leat_log_abandon(it): -> state 3 rc STARTING: the server is "
             "stopping, opened, dirty\n"
             "it->dirty = false, leat_log_abandon(it): -> state 0 rc OK: , opened\n"
             "log_fail(it, LEAT_E_DISK, \"x\"), leat_log_abandon(it): -> state 3 rc DISK: x, "
             "opened, dirty\n"
             "it->dirty = false, it->on_end = NULL, leat_log_go_on(it): -> state 0 rc OK: , "
             "opened, dirty\n");
}

static void rest(void)
{
    bool rests = leat_log_rest(it);
    assert_int_equal(rests, it->resting);
    trace("%s\n", rests ? "rests" : "not yet");
}

static void log_rests_when_nothing_is_under_way(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, rest);
    CASE(begun, rest, it->commit_count = 1);
    CASE(begun, rest, one_waits(2));
    CASE(begun, rest, one_waits(2), it->resting = true);
    TRACE_IS("(void)0: rests\n"
             "it->commit_count = 1: not yet\n"
             "one_waits(2): not yet\n"
             "one_waits(2), it->resting = true: rests\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(buffers_that_are_wanted_back_go_as_helpers_are_free),
        TRACE_TEST(segments_that_are_trimmed_go_one_by_one),
        TRACE_TEST(deleted_log_drops_all_as_helpers_are_free),
        TRACE_TEST(what_was_given_back_is_counted_once_it_is_gone),
        TRACE_TEST(only_what_is_whole_in_its_file_is_wanted_back),
        TRACE_TEST(stop_waits_for_what_is_under_way_and_hibernates_the_head),
        TRACE_TEST(release_waits_for_readers_and_fails_what_waits),
        TRACE_TEST(delete_waits_until_nothing_is_held),
        TRACE_TEST(owner_is_asked_once_whether_it_may_open),
        TRACE_TEST(whoever_waits_for_room_is_told),
        TRACE_TEST(log_that_stopped_answers_what_was_acked),
        TRACE_TEST(answers_and_faults_change_the_state),
        TRACE_TEST(log_rests_when_nothing_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
