/* SPDX-License-Identifier: Apache-2.0 */
/* When a log does what it does by itself: each condition by itself, on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"

/* ---- the last run's trailer ---- */

static void on_disk(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_DISK));
}

static void run_close(void)
{
    struct log_open *head = &it->head;
    uint32_t used = head->writer.used;
    it->next_offset += 5; /* which is noted */
    log_run_close(it);
    trace("%u more", head->writer.used - used);
    if (head->sealed_offset == it->next_offset) trace(", sealed as it is");
    if (head->run_closed_bytes == head->writer.used) trace(", not again");
    trace("\n");
}

static void last_run_is_closed_once_all_of_it_is_acked(void **state)
{
    (void)state;
    CASE_AS_IT_IS(on_disk, run_close);
    CASE(on_disk, run_close, it->options.durability = LEAT_DURABILITY_MEMORY);
    CASE(on_disk, run_close, it->hibernating = LOG_HIBERNATED);
    CASE(on_disk, run_close, it->hibernating = LOG_HIBERNATING);
    CASE(on_disk, run_close, it->old.seg = it->head.seg);
    CASE(on_disk, run_close, it->opened = LOG_UNOPENED);
    CASE(on_disk, run_close, it->commit_count = 1);
    CASE(on_disk, run_close, one_waits(2));
    CASE(on_disk, run_close, it->head.run_closed_bytes = it->head.writer.used);
    CASE(on_disk, run_close, it->head.run_closed_bytes = it->head.writer.used - 32);
    CASE(on_disk, run_close, it->head.acked_bytes -= 1);
    CASE(on_disk, run_close, it->head.start_end = it->head.writer.used);
    TRACE_IS("(void)0: 32 more, sealed as it is, not again\n"
             "it->options.durability = LEAT_DURABILITY_MEMORY: 0 more\n"
             "it->hibernating = LOG_HIBERNATED: 0 more\n"
             "it->hibernating = LOG_HIBERNATING: 0 more\n"
             "it->old.seg = it->head.seg: 0 more\n"
             "it->opened = LOG_UNOPENED: 0 more\n"
             "it->commit_count = 1: 0 more\n"
             "one_waits(2): 0 more\n"
             "it->head.run_closed_bytes = it->head.writer.used: 0 more, not again\n"
             "it->head.run_closed_bytes = it->head.writer.used - 32: 32 more, sealed as it is, not "
             "again\n"
             "it->head.acked_bytes -= 1: 0 more\n"
             "it->head.start_end = it->head.writer.used: 0 more\n");
}

/* ---- what is to be safe next ---- */

static void request_note(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    (void)ctx, (void)post;
    assert_int_equal(req->kind, LEAT_STORE_COMMIT);
    trace("COMMIT s%llu ", (unsigned long long)req->seg->id.v);
}

/* Segment N+1 has its start entry everywhere, and a batch; all that was sealed of N is everywhere, too. */
static void rolling(void)
{
    segments(1);
    size_t used = trace_used;
    must_append(fake, 5, 100);
    trace_text[trace_used = used] = '\0';
    it->store_port.request = request_note;
    it->options.durability = LEAT_DURABILITY_DISK;
    it->old = it->head;
    it->old.seg = slot(0)->seg;
    it->old.index = NULL;
    it->old.safe_bytes = it->old.writer.sealed_bytes = it->old.writer.used;
    it->head.safe_bytes = it->head.start_end;
    it->commit_count = 0;
    fake->made_up = true;
}

static void step_safe(void)
{
    log_step_safe(it);
    trace("-> %u asked\n", it->commit_count);
}

/* Goal: data of N+1 goes nowhere before N's close entry is sealed, and everywhere. */
static void data_waits_for_the_close_before_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(rolling, step_safe);
    CASE(rolling, step_safe, it->old.writer.used += 8);
    CASE(rolling, step_safe, it->old.safe_bytes -= 8);
    CASE(rolling, step_safe, it->head.safe_bytes -= 8, it->old.safe_bytes -= 8);
    TRACE_IS("(void)0: COMMIT s1 -> 1 asked\n"
             "it->old.writer.used += 8: -> 0 asked\n"
             "it->old.safe_bytes -= 8: COMMIT s0 -> 1 asked\n"
             "it->head.safe_bytes -= 8, it->old.safe_bytes -= 8: COMMIT s1 -> 1 asked\n");
}

/* Segments 0 and 1 are closed, by their rows, too, and 1 is so again. */
static void closing(void)
{
    segments(2);
    it->close.seg = slot(1)->seg;
    it->close.rc = LEAT_OK;
    it->closing = true;
    it->options.settings.retention_bytes = 1;
    it->trim_written = true; /* an entry is on its way, so none is written now */
}

static void is_closed(void)
{
    it->close.on_done(&it->close);
    trace("-> %s, %s%s, trimmed before s%llu\n",
          slot(1)->seg->state == LEAT_SEGMENT_CLOSED ? "closed" : "open",
          it->state == LEAT_LOG_SERVING ? "serves" : "does not serve",
          it->closing ? ", closing" : "", (unsigned long long)it->trim_segment);
}

/* Goal: a segment whose row could not be written is open, as its row says. Where the row could be written, records that
 * are too old go. */
static void segment_is_closed_by_its_row(void **state)
{
    (void)state;
    CASE_AS_IT_IS(closing, is_closed);
    CASE(closing, is_closed, it->close.rc = LEAT_E_DISK);
    CASE(closing, is_closed, it->options.settings.retention_bytes = 0);
    CASE(closing, is_closed, it->state = LEAT_LOG_WAITING);
    CASE(closing, is_closed, it->ending = LOG_STOPPING);
    TRACE_IS("(void)0: -> closed, serves, trimmed before s2\n"
             "it->close.rc = LEAT_E_DISK: -> open, does not serve, trimmed before s0\n"
             "it->options.settings.retention_bytes = 0: -> closed, serves, trimmed before s0\n"
             "it->state = LEAT_LOG_WAITING: -> closed, does not serve, trimmed before s0\n"
             "it->ending = LOG_STOPPING: -> closed, serves, trimmed before s0\n");
}

static void step_close(void)
{
    it->head.safe_bytes = it->head.start_end;
    it->old.seg->prefix_id.bytes = 8;
    log_step_close(it);
    trace("-> %s\n", it->old.seg ? "not closed" : "closed");
}

/* Goal: a log that has stopped closes nothing. */
static void stopped_log_closes_nothing(void **state)
{
    (void)state;
    CASE(rolling, step_close, it->state = LEAT_LOG_STOPPED);
    TRACE_IS("it->state = LEAT_LOG_STOPPED: -> not closed\n");
}

/* Goal: a closed segment leaves no index in memory, and nothing is reserved ahead for a log without a head. */
static void closed_segment_leaves_nothing_in_memory(void **state)
{
    (void)state;
    size_t taken[2];
    for (unsigned i = 0; i < 2; i++) {
        size_t before = leat_mem_bytes(LEAT_MEM_LOG);
        segments(1 + i);
        taken[i] = leat_mem_bytes(LEAT_MEM_LOG) - before;
        it->store_port.request = request_note;
        it->rolling_fast = true;
        struct leat_segment *seg = it->head.seg;
        it->head.seg = NULL;
        log_step_room(it);
        it->head.seg = seg;
        poke_end();
    }
    assert_in_range(taken[1], taken[0], taken[0] + 255); /* no index has so little */
    TRACE_IS("");
}

/* ---- readers that wait ---- */

static void two(void)
{
    segments(2);
}

static void read_twice(uint64_t from)
{
    static struct leat_read reads[2];
    for (unsigned i = 0; i < 2; i++) {
        reads[i] = (struct leat_read){.from = {from}, .max_bytes = 1};
        leat_list_init(&reads[i].link);
        trace("%s ", leat_err_name(leat_log_read(it, &reads[i])));
    }
    unsigned count = 0;
    LEAT_LIST_EACH(&it->stalled_reads, at)
    count++;
    trace("-> %u wait\n", count);
}

static void read_first(void)
{
    read_twice(0);
}

static void read_last(void)
{
    read_twice(it->next_offset - 1);
}

static void is_sought(void)
{
    free(slot(0)->seg->buffer);
    slot(0)->seg->buffer = NULL;
    slot(0)->repair = LOG_REPAIR_SOUGHT;
}

static void is_on_its_way(void)
{
    it->slot_begin++;
    it->slot_count--;
    it->backfill = LOG_BACKFILL_FOLLOWS;
}

/* Goal: all who wait for the same thing are there when it comes. */
static void readers_wait_together(void **state)
{
    (void)state;
    CASE(two, read_first, is_sought());
    CASE(two, read_first, is_on_its_way());
    CASE(two, read_last, it->hibernating = LOG_HIBERNATING);
    TRACE_IS("is_sought(): AGAIN AGAIN -> 2 wait\n"
             "is_on_its_way(): AGAIN AGAIN -> 2 wait\n"
             "it->hibernating = LOG_HIBERNATING: AGAIN AGAIN -> 2 wait\n");
}

/* ---- the care ---- */

static void care(void)
{
    it->copy_wanted = true;
    leat_log_care(it);
    trace("->%s%s%s%s%s%s\n", it->roll_wanted ? " roll" : "", it->leave_wanted ? " leave" : "",
          it->copy_wanted ? " copy" : "", it->hibernating == LOG_HIBERNATING ? " hibernate" : "",
          it->rolling_fast ? " fast" : "", it->dirty ? "" : " not dirty");
}

static void in_the_way(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    it->store_port.in_the_way = watch_in_the_way;
    watched.in_the_way = true;
}

static void head_that_is_in_the_way_leaves(void **state)
{
    (void)state;
    CASE_AS_IT_IS(in_the_way, care);
    CASE(in_the_way, care, it->store_port.in_the_way = NULL);
    CASE(in_the_way, care, watched.in_the_way = false);
    CASE(in_the_way, care, it->options.hibernate_after_us = 0);
    CASE(in_the_way, care, it->head.seg = NULL);
    CASE(in_the_way, care, it->old.seg = it->head.seg);
    CASE(in_the_way, care, it->opened = LOG_UNOPENED);
    CASE(in_the_way, care, it->hibernating = LOG_HIBERNATED);
    CASE(in_the_way, care, it->hibernating = LOG_HIBERNATING);
    CASE(in_the_way, care, it->hibernating = LOG_RESUMING);
    CASE(in_the_way, care, it->leave_not_before_us = fake->now_us);
    CASE(in_the_way, care, it->leave_not_before_us = fake->now_us + 1);
    CASE(in_the_way, care, it->leave_wanted = true, watched.in_the_way = false);
    CASE(in_the_way, care, it->state = LEAT_LOG_STOPPED);
    CASE(in_the_way, care, it->state = LEAT_LOG_WAITING);
    CASE(in_the_way, care, it->ending = LOG_STOPPING);
    CASE(in_the_way, care, it->ending = LOG_DELETING);
    TRACE_IS("(void)0: in the way s0?\n"
             "-> leave\n"
             "it->store_port.in_the_way = NULL: ->\n"
             "watched.in_the_way = false: in the way s0?\n"
             "->\n"
             "it->options.hibernate_after_us = 0: HIBERNATE s0 504 from 0 to 1\n"
             "-> hibernate\n"
             "it->head.seg = NULL: ->\n"
             "it->old.seg = it->head.seg: ->\n"
             "it->opened = LOG_UNOPENED: ->\n"
             "it->hibernating = LOG_HIBERNATED: ->\n"
             "it->hibernating = LOG_HIBERNATING: -> hibernate\n"
             "it->hibernating = LOG_RESUMING: ->\n"
             "it->leave_not_before_us = fake->now_us: in the way s0?\n"
             "-> leave\n"
             "it->leave_not_before_us = fake->now_us + 1: ->\n"
             "it->leave_wanted = true, watched.in_the_way = false: in the way s0?\n"
             "->\n"
             "it->state = LEAT_LOG_STOPPED: -> copy\n"
             "it->state = LEAT_LOG_WAITING: -> copy\n"
             "it->ending = LOG_STOPPING: -> copy\n"
             "it->ending = LOG_DELETING: -> copy\n");
}

/* Rolling fast, with the next one reserved. */
static void lies_badly(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    size_t used = trace_used;
    it->rolling_fast = true;
    log_step_room(it);
    one_done();
    trace_text[trace_used = used] = '\0';
    assert_non_null(it->next);
    it->store_port.roll_wanted = watch_roll_wanted;
    watched.roll_wanted = true;
    it->dirty = false;
}

static void head_that_lies_badly_rolls(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lies_badly, care);
    CASE(lies_badly, care, it->store_port.roll_wanted = NULL);
    CASE(lies_badly, care, watched.roll_wanted = false);
    CASE(lies_badly, care, it->head.seg = NULL);
    CASE(lies_badly, care, it->old.seg = it->head.seg);
    CASE(lies_badly, care, it->opened = LOG_UNOPENED);
    CASE(lies_badly, care, it->roll_wanted = true);
    CASE(lies_badly, care, it->reserving = true);
    CASE(lies_badly, care, it->ending = LOG_STOPPING);
    /* The pace: a head that lasts is no fast one. */
    CASE(lies_badly, care, watched.roll_wanted = false,
         it->rolled_us = fake->now_us - LOG_SLOW_ROLL_US);
    CASE(lies_badly, care, watched.roll_wanted = false,
         it->rolled_us = fake->now_us - LOG_SLOW_ROLL_US - 1);
    TRACE_IS(
        "(void)0: roll s0?\n"
        "DROP s1\n"
        "-> roll fast\n"
        "it->store_port.roll_wanted = NULL: -> fast\n"
        "watched.roll_wanted = false: roll s0?\n"
        "-> fast\n"
        "it->head.seg = NULL: -> fast\n"
        "it->old.seg = it->head.seg: -> fast\n"
        "it->opened = LOG_UNOPENED: -> fast\n"
        "it->roll_wanted = true: -> roll fast\n"
        "it->reserving = true: roll s0?\n"
        "-> roll fast\n"
        "it->ending = LOG_STOPPING: -> copy fast\n"
        "watched.roll_wanted = false, it->rolled_us = fake->now_us - LOG_SLOW_ROLL_US: roll s0?\n"
        "-> fast\n"
        "watched.roll_wanted = false, it->rolled_us = fake->now_us - LOG_SLOW_ROLL_US - 1: roll "
        "s0?\n"
        "DROP s1\n"
        "->\n");
}

static void expires(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    it->options.settings.retention_ms = 1000;
}

static int64_t wall(void)
{
    return fake_wall(fake);
}

static void head_whose_data_has_expired_rolls(void **state)
{
    (void)state;
    CASE_AS_IT_IS(expires, care);
    CASE(expires, care, it->options.settings.retention_ms = 0);
    CASE(expires, care, it->old.seg = it->head.seg);
    CASE(expires, care, it->opened = LOG_UNOPENED);
    CASE(expires, care, it->head.record_count = 0);
    CASE(expires, care, it->head.acked_bytes -= 1);
    CASE(expires, care, it->head.max_timestamp_ms = wall() - 1000);
    CASE(expires, care, it->head.max_timestamp_ms = wall() - 1001);
    CASE(expires, care, it->head.max_timestamp_ms = 0);
    CASE(expires, care, it->head.max_timestamp_ms = -1);
    CASE(expires, care, it->head.max_timestamp_ms = -1, it->gathered_wall_ms = wall() - 1000);
    CASE(expires, care, it->head.max_timestamp_ms = -1, it->gathered_wall_ms = wall() - 1001);
    CASE(expires, care, it->head.max_timestamp_ms = -1, it->gathered_wall_ms = 0);
    CASE(expires, care, it->head.max_timestamp_ms = wall());
    CASE(expires, care, it->head.max_timestamp_ms = wall() + 1, it->gathered_wall_ms = 7);
    TRACE_IS("(void)0: -> roll\n"
             "it->options.settings.retention_ms = 0: ->\n"
             "it->old.seg = it->head.seg: ->\n"
             "it->opened = LOG_UNOPENED: ->\n"
             "it->head.record_count = 0: ->\n"
             "it->head.acked_bytes -= 1: ->\n"
             "it->head.max_timestamp_ms = wall() - 1000: ->\n"
             "it->head.max_timestamp_ms = wall() - 1001: -> roll\n"
             "it->head.max_timestamp_ms = 0: -> roll\n"
             "it->head.max_timestamp_ms = -1: ->\n"
             "it->head.max_timestamp_ms = -1, it->gathered_wall_ms = wall() - 1000: ->\n"
             "it->head.max_timestamp_ms = -1, it->gathered_wall_ms = wall() - 1001: -> roll\n"
             "it->head.max_timestamp_ms = -1, it->gathered_wall_ms = 0: ->\n"
             "it->head.max_timestamp_ms = wall(): ->\n"
             "it->head.max_timestamp_ms = wall() + 1, it->gathered_wall_ms = 7: -> roll\n");
}

static void idle(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    fake->now_us = it->gathered_us + it->options.hibernate_after_us;
}

static struct leat_log_trim trim;

static void head_that_is_idle_is_hibernated(void **state)
{
    (void)state;
    CASE_AS_IT_IS(idle, care);
    CASE(idle, care, fake->now_us -= 1);
    CASE(idle, care, it->old.seg = it->head.seg);
    CASE(idle, care, it->opened = LOG_UNOPENED);
    CASE(idle, care, it->reserving = true);
    CASE(idle, care, it->commit_count = 1);
    CASE(idle, care, it->closing = true);
    CASE(idle, care, it->hibernating = LOG_RESUMING);
    CASE(idle, care, it->warming = true);
    CASE(idle, care, it->reads_in_flight = 1);
    CASE(idle, care, it->helper_busy[0] = true);
    CASE(idle, care, it->helper_busy[LOG_HELPERS - 1] = true);
    CASE(idle, care, one_waits(2));
    CASE(idle, care, leat_list_push_back(&it->trims, &trim.link));
    CASE(idle, care, it->head.acked_bytes -= 1);
    CASE(idle, care, it->room_wanted = true);
    CASE(idle, care, it->roll_wanted = true);
    CASE(idle, care, it->hibernating = LOG_HIBERNATED);
    CASE(idle, care, it->trim_segment = 1);
    CASE(idle, care, leat_segment_pin(it->head.seg));
    CASE(idle, care, slot(0)->mail_due = true);
    TRACE_IS("(void)0: HIBERNATE s0 504 from 0 to 1\n"
             "-> hibernate\n"
             "fake->now_us -= 1: ->\n"
             "it->old.seg = it->head.seg: ->\n"
             "it->opened = LOG_UNOPENED: ->\n"
             "it->reserving = true: ->\n"
             "it->commit_count = 1: ->\n"
             "it->closing = true: ->\n"
             "it->hibernating = LOG_RESUMING: ->\n"
             "it->warming = true: ->\n"
             "it->reads_in_flight = 1: ->\n"
             "it->helper_busy[0] = true: ->\n"
             "it->helper_busy[LOG_HELPERS - 1] = true: ->\n"
             "one_waits(2): ->\n"
             "leat_list_push_back(&it->trims, &trim.link): ->\n"
             "it->head.acked_bytes -= 1: ->\n"
             "it->room_wanted = true: ->\n"
             "it->roll_wanted = true: -> roll\n"
             "it->hibernating = LOG_HIBERNATED: ->\n"
             "it->trim_segment = 1: ->\n"
             "leat_segment_pin(it->head.seg): ->\n"
             "slot(0)->mail_due = true: ->\n");
}

static void hibernated(void)
{
    idle();
    size_t used = trace_used;
    leat_log_care(it);
    (void)fake_deliver(fake);
    trace_text[trace_used = used] = '\0';
    assert_int_equal(it->hibernating, LOG_HIBERNATED);
    it->dirty = false;
    it->store_port.copy_wanted = watch_copy_wanted;
    watched.copy_wanted = true;
}

static void hibernated_head_that_lacks_a_copy_is_resumed_for_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(hibernated, care);
    CASE(hibernated, care, it->store_port.copy_wanted = NULL);
    CASE(hibernated, care, watched.copy_wanted = false);
    CASE(hibernated, care, it->old.seg = it->head.seg);
    CASE(hibernated, care, it->opened = LOG_UNOPENED);
    CASE(hibernated, care, it->hibernating = LOG_HIBERNATING);
    CASE(hibernated, care, it->hibernating = LOG_RESUMING);
    CASE(hibernated, care, it->hibernating = LOG_AWAKE);
    CASE(hibernated, care, it->gathered_us += 1);
    TRACE_IS("(void)0: copy s0?\n"
             "-> copy\n"
             "it->store_port.copy_wanted = NULL: ->\n"
             "watched.copy_wanted = false: copy s0?\n"
             "->\n"
             "it->old.seg = it->head.seg: ->\n"
             "it->opened = LOG_UNOPENED: ->\n"
             "it->hibernating = LOG_HIBERNATING: -> hibernate\n"
             "it->hibernating = LOG_RESUMING: ->\n"
             "it->hibernating = LOG_AWAKE: copy s0?\n"
             "->\n"
             "it->gathered_us += 1: ->\n");
}

static void resume(void)
{
    log_step_resume(it);
    trace("->%s%s\n", it->hibernating == LOG_RESUMING ? " resuming" : "",
          slot(0)->changing ? " changing" : "");
}

static void hibernated_head_is_resumed_for_whatever_needs_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(hibernated, resume);
    CASE(hibernated, resume, it->room_wanted = true);
    CASE(hibernated, resume, it->roll_wanted = true);
    CASE(hibernated, resume, it->copy_wanted = true);
    CASE(hibernated, resume, it->room_wanted = true, it->hibernating = LOG_AWAKE);
    CASE(hibernated, resume, it->room_wanted = true, it->hibernating = LOG_RESUMING);
    CASE(hibernated, resume, it->room_wanted = true, it->state = LEAT_LOG_STOPPED);
    CASE(hibernated, resume, it->room_wanted = true, it->ending = LOG_DELETING);
    CASE(hibernated, resume, it->room_wanted = true, it->ending = LOG_STOPPING);
    CASE(hibernated, resume, it->room_wanted = true, it->reserve_not_before_us = fake->now_us);
    CASE(hibernated, resume, it->room_wanted = true, it->reserve_not_before_us = fake->now_us + 1);
    TRACE_IS(
        "(void)0: ->\n"
        "it->room_wanted = true: RESUME s0 cap 16384\n"
        "-> resuming changing\n"
        "it->roll_wanted = true: RESUME s0 cap 16384\n"
        "-> resuming changing\n"
        "it->copy_wanted = true: RESUME s0 cap 16384\n"
        "-> resuming changing\n"
        "it->room_wanted = true, it->hibernating = LOG_AWAKE: ->\n"
        "it->room_wanted = true, it->hibernating = LOG_RESUMING: -> resuming\n"
        "it->room_wanted = true, it->state = LEAT_LOG_STOPPED: ->\n"
        "it->room_wanted = true, it->ending = LOG_DELETING: ->\n"
        "it->room_wanted = true, it->ending = LOG_STOPPING: ->\n"
        "it->room_wanted = true, it->reserve_not_before_us = fake->now_us: RESUME s0 cap 16384\n"
        "-> resuming changing\n"
        "it->room_wanted = true, it->reserve_not_before_us = fake->now_us + 1: ->\n");
}

/* ---- room ---- */

static void lacks_room(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    it->store_port.in_the_way = watch_in_the_way;
    it->room_wanted = true;
    it->room_bytes = 60 * 1000;
    assert_false(log_head_fits(it, it->room_bytes));
}

static void room(void)
{
    log_step_room(it);
    trace("-> head %llu%s%s%s\n", (unsigned long long)it->head.seg->id.v,
          it->reserving ? " reserving" : "", it->next ? " next" : "", it->old.seg ? " old" : "");
}

static void segment_is_reserved_for_what_has_no_room(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lacks_room, room);
    CASE(lacks_room, room, it->state = LEAT_LOG_WAITING);
    CASE(lacks_room, room, it->restored = LOG_UNLOADED);
    CASE(lacks_room, room, it->ending = LOG_DELETING);
    CASE(lacks_room, room, it->ending = LOG_STOPPING);
    CASE(lacks_room, room, it->room_bytes = 100);
    CASE(lacks_room, room, it->room_bytes = 100, it->roll_wanted = true);
    CASE(lacks_room, room, it->room_bytes = 100, it->leave_wanted = true);
    CASE(lacks_room, room, it->room_bytes = 100, it->rolling_fast = true);
    CASE(lacks_room, room, it->room_wanted = false);
    CASE(lacks_room, room, it->room_wanted = false, it->rolling_fast = true);
    CASE(lacks_room, room, it->room_wanted = false, it->rolling_fast = true,
         it->old.seg = it->head.seg);
    CASE(lacks_room, room, it->hibernating = LOG_HIBERNATING);
    CASE(lacks_room, room, it->hibernating = LOG_RESUMING);
    CASE(lacks_room, room, it->hibernating = LOG_HIBERNATED);
    CASE(lacks_room, room, it->old.seg = it->head.seg);
    CASE(lacks_room, room, it->opened = LOG_UNOPENED);
    CASE(lacks_room, room, it->reserving = true);
    CASE(lacks_room, room, it->reserve_not_before_us = fake->now_us);
    CASE(lacks_room, room, it->reserve_not_before_us = fake->now_us + 1);
    TRACE_IS("(void)0: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
             "-> head 0 reserving\n"
             "it->state = LEAT_LOG_WAITING: -> head 0\n"
             "it->restored = LOG_UNLOADED: -> head 0\n"
             "it->ending = LOG_DELETING: -> head 0\n"
             "it->ending = LOG_STOPPING: -> head 0\n"
             "it->room_bytes = 100: -> head 0\n"
             "it->room_bytes = 100, it->roll_wanted = true: RESERVE s1 1/0/0 e7 cap 16384 d1\n"
             "-> head 0 reserving\n"
             "it->room_bytes = 100, it->leave_wanted = true: RESERVE s1 1/0/0 e7 cap 16384 d1\n"
             "-> head 0 reserving\n"
             "it->room_bytes = 100, it->rolling_fast = true: RESERVE s1 1/0/0 e7 cap 16384 d1\n"
             "-> head 0 reserving\n"
             "it->room_wanted = false: -> head 0\n"
             "it->room_wanted = false, it->rolling_fast = true: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
             "-> head 0 reserving\n"
             "it->room_wanted = false, it->rolling_fast = true, it->old.seg = it->head.seg: -> "
             "head 0 old\n"
             "it->hibernating = LOG_HIBERNATING: -> head 0\n"
             "it->hibernating = LOG_RESUMING: -> head 0\n"
             "it->hibernating = LOG_HIBERNATED: -> head 0\n"
             "it->old.seg = it->head.seg: -> head 0 old\n"
             "it->opened = LOG_UNOPENED: -> head 0\n"
             "it->reserving = true: -> head 0 reserving\n"
             "it->reserve_not_before_us = fake->now_us: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
             "-> head 0 reserving\n"
             "it->reserve_not_before_us = fake->now_us + 1: -> head 0\n");
}

static void has_next(void)
{
    lacks_room();
    size_t used = trace_used;
    log_step_room(it);
    one_done();
    trace_text[trace_used = used] = '\0';
    assert_non_null(it->next);
}

static void reservation_becomes_the_head_or_goes(void **state)
{
    (void)state;
    CASE_AS_IT_IS(has_next, room);
    CASE(has_next, room, it->reserve_not_before_us = fake->now_us);
    CASE(has_next, room, it->reserve_not_before_us = fake->now_us + 1);
    CASE(has_next, room, it->room_bytes = it->next->capacity);
    CASE(has_next, room, it->room_bytes = it->next->capacity, it->reserving = true,
         it->reserve_not_before_us = fake->now_us + 1);
    CASE(has_next, room, it->leave_wanted = true);
    CASE(has_next, room, it->leave_wanted = true, watched.in_the_way = true);
    CASE(has_next, room, watched.in_the_way = true);
    CASE(has_next, room, it->room_wanted = false, it->rolling_fast = true);
    TRACE_IS("(void)0: -> head 1 old\n"
             "it->reserve_not_before_us = fake->now_us: -> head 1 old\n"
             "it->reserve_not_before_us = fake->now_us + 1: -> head 0 next\n"
             "it->room_bytes = it->next->capacity: DROP s1\n"
             "-> head 0 reserving\n"
             "it->room_bytes = it->next->capacity, it->reserving = true, it->reserve_not_before_us "
             "= fake->now_us + 1: -> head 0 reserving next\n"
             "it->leave_wanted = true: in the way s1?\n"
             "-> head 1 old\n"
             "it->leave_wanted = true, watched.in_the_way = true: in the way s1?\n"
             "DROP s1\n"
             "-> head 0 reserving\n"
             "watched.in_the_way = true: -> head 1 old\n"
             "it->room_wanted = false, it->rolling_fast = true: -> head 0 next\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(last_run_is_closed_once_all_of_it_is_acked),
        TRACE_TEST(head_that_is_in_the_way_leaves),
        TRACE_TEST(head_that_lies_badly_rolls),
        TRACE_TEST(head_whose_data_has_expired_rolls),
        TRACE_TEST(data_waits_for_the_close_before_it),
        TRACE_TEST(segment_is_closed_by_its_row),
        TRACE_TEST(stopped_log_closes_nothing),
        TRACE_TEST(closed_segment_leaves_nothing_in_memory),
        TRACE_TEST(readers_wait_together),
        TRACE_TEST(head_that_is_idle_is_hibernated),
        TRACE_TEST(hibernated_head_that_lacks_a_copy_is_resumed_for_it),
        TRACE_TEST(hibernated_head_is_resumed_for_whatever_needs_it),
        TRACE_TEST(segment_is_reserved_for_what_has_no_room),
        TRACE_TEST(reservation_becomes_the_head_or_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
