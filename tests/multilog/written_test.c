/* SPDX-License-Identifier: Apache-2.0 */
/* What a log writes of itself and when that counts: trims, where it begins, trailers, appends; each condition by
 * itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"

static struct leat_log_trim trim;

static void on_trimmed(struct leat_log_trim *done, leat_err rc)
{
    trace("before %llu: %s, begins at %llu ", (unsigned long long)done->before, leat_err_name(rc),
          (unsigned long long)done->first_offset);
}

static void four(void)
{
    segments(4);
    it->dirty = false;
}

static void trim_asked(uint64_t before)
{
    trim = (struct leat_log_trim){.before = before, .on_done = on_trimmed};
    leat_list_push_back(&it->trims, &trim.link);
}

static void begins_tell(void)
{
    trace("-> s%llu/%llu at %llu/%llu%s%s%s%s", (unsigned long long)it->first_segment,
          (unsigned long long)it->trim_segment, (unsigned long long)it->first_offset,
          (unsigned long long)it->trim_offset, it->trim_written ? " written" : "",
          it->begin_written ? " begin" : "", it->roll_wanted ? " roll" : "",
          it->room_wanted ? " room" : "");
    trace(" told %llu pauses %llu %llu%s\n", (unsigned long long)it->begin_told,
          (unsigned long long)it->reserve_not_before_us,
          (unsigned long long)it->memory_not_before_us, it->dirty ? ", dirty" : "");
}

/* ---- trim entries ---- */

static void pending(void)
{
    four();
    it->trim_segment = 2;
    it->trim_offset = 200;
}

static void step_trim(void)
{
    uint32_t used = it->head.writer.used;
    log_step_trim(it);
    trace("%u more, at s%llu %u ", it->head.writer.used - used,
          (unsigned long long)it->trim_ack_segment, it->trim_ack_bytes);
    begins_tell();
}

static void fill(void)
{
    it->head.writer.used = it->head.writer.capacity - 8;
}

static void trim_entry_is_written_where_there_is_room(void **state)
{
    (void)state;
    CASE_AS_IT_IS(pending, step_trim);
    CASE(pending, step_trim, it->trim_segment = 0);
    CASE(pending, step_trim, it->trim_written = true);
    CASE(pending, step_trim, it->state = LEAT_LOG_STOPPED);
    CASE(pending, step_trim, it->ending = LOG_DELETING);
    CASE(pending, step_trim, it->ending = LOG_STOPPING);
    CASE(pending, step_trim, fill());
    CASE(pending, step_trim, fill(), it->ending = LOG_STOPPING);
    CASE(pending, step_trim, fill(), it->room_wanted = true);
    CASE(pending, step_trim, fill(), it->restored = LOG_UNLOADED);
    CASE(pending, step_trim, fill(), it->restored = LOG_UNLOADED,
         it->reserve_not_before_us = fake->now_us);
    CASE(pending, step_trim, fill(), it->restored = LOG_UNLOADED,
         it->reserve_not_before_us = fake->now_us + 1);
    TRACE_IS(
        "(void)0: 48 more, at s4 5888 -> s0/2 at 0/200 written told 0 pauses 0 0\n"
        "it->trim_segment = 0: 0 more, at s0 0 -> s0/0 at 0/200 told 0 pauses 0 0\n"
        "it->trim_written = true: 0 more, at s0 0 -> s0/2 at 0/200 written told 0 pauses 0 0\n"
        "it->state = LEAT_LOG_STOPPED: 0 more, at s0 0 -> s0/2 at 0/200 told 0 pauses 0 0\n"
        "it->ending = LOG_DELETING: 0 more, at s0 0 -> s0/2 at 0/200 told 0 pauses 0 0\n"
        "it->ending = LOG_STOPPING: 48 more, at s4 5888 -> s0/2 at 0/200 written told 0 pauses 0 "
        "0\n"
        "fill(): 0 more, at s0 0 -> s0/2 at 0/200 room told 0 pauses 0 0\n"
        "fill(), it->ending = LOG_STOPPING: 0 more, at s0 0 -> s0/2 at 0/200 told 0 pauses 0 0\n"
        "fill(), it->room_wanted = true: 0 more, at s0 0 -> s0/2 at 0/200 room told 0 pauses 0 0\n"
        "fill(), it->restored = LOG_UNLOADED: 0 more, at s0 0 -> s0/2 at 0/200 room told 0 pauses "
        "0 0, "
        "dirty\n"
        "fill(), it->restored = LOG_UNLOADED, it->reserve_not_before_us = fake->now_us: 0 more, at "
        "s0 "
        "0 -> "
        "s0/2 at 0/200 room told 0 pauses 1000000 0, dirty\n"
        "fill(), it->restored = LOG_UNLOADED, it->reserve_not_before_us = fake->now_us + 1: 0 "
        "more, at "
        "s0 0 -> "
        "s0/2 at 0/200 room told 0 pauses 1000001 0\n");
}

static void written(void)
{
    pending();
    it->trim_written = true;
    it->trim_ack_segment = 4;
    it->trim_ack_bytes = it->head.acked_bytes - 1;
    it->reserve_not_before_us = it->memory_not_before_us = 5;
}

static void step_trimmed(void)
{
    log_step_trimmed(it);
    begins_tell();
}

static void trim_counts_once_its_entry_is_acked(void **state)
{
    (void)state;
    CASE_AS_IT_IS(written, step_trimmed);
    CASE(written, step_trimmed, it->trim_written = false);
    CASE(written, step_trimmed, it->state = LEAT_LOG_STOPPED);
    CASE(written, step_trimmed, it->ending = LOG_DELETING);
    CASE(written, step_trimmed, it->trim_ack_bytes = it->head.acked_bytes);
    CASE(written, step_trimmed, it->trim_ack_bytes = it->head.acked_bytes + 1,
         it->trim_ack_segment = 3);
    CASE(written, step_trimmed, it->trim_ack_segment = 5);
    CASE(written, step_trimmed, it->old.seg = slot(3)->seg);
    CASE(written, step_trimmed, it->old.seg = slot(3)->seg, it->trim_ack_segment = 3);
    CASE(written, step_trimmed, it->old.seg = slot(3)->seg, it->trim_ack_segment = 3,
         it->trim_ack_bytes = 0, it->old.acked_bytes = 1);
    CASE(written, step_trimmed, trim_asked(100));
    CASE(written, step_trimmed, it->first_offset = 300);
    TRACE_IS(
        "(void)0: -> s2/2 at 200/200 told 0 pauses 5 5\n"
        "it->trim_written = false: -> s0/2 at 0/200 told 0 pauses 5 5\n"
        "it->state = LEAT_LOG_STOPPED: -> s0/2 at 0/200 written told 0 pauses 5 5\n"
        "it->ending = LOG_DELETING: -> s0/2 at 0/200 written told 0 pauses 5 5\n"
        "it->trim_ack_bytes = it->head.acked_bytes: -> s0/2 at 0/200 written told 0 pauses 5 5\n"
        "it->trim_ack_bytes = it->head.acked_bytes + 1, it->trim_ack_segment = 3: -> s2/2 at "
        "200/200 told 0 pauses 5 5\n"
        "it->trim_ack_segment = 5: -> s0/2 at 0/200 written told 0 pauses 5 5\n"
        "it->old.seg = slot(3)->seg: -> s0/2 at 0/200 written told 0 pauses 5 5\n"
        "it->old.seg = slot(3)->seg, it->trim_ack_segment = 3: -> s0/2 at 0/200 written told 0 "
        "pauses 5 5\n"
        "it->old.seg = slot(3)->seg, it->trim_ack_segment = 3, it->trim_ack_bytes = 0, "
        "it->old.acked_bytes = 1: -> s2/2 at 200/200 told 0 pauses 5 5\n"
        "trim_asked(100): -> s2/2 at 200/200 told 0 pauses 0 0, dirty\n"
        "it->first_offset = 300: -> s2/2 at 300/300 told 0 pauses 5 5\n");
}

/* ---- retention ---- */

static void retain(void)
{
    log_retain(it);
    begins_tell();
}

static void reqs(void)
{
    four();
    it->options.settings.retention_ms = 1000;
    fake->now_us += 100 * 1000 * 1000;
}

static int64_t wall(void)
{
    return fake_wall(fake);
}

static void whole_segments_go_as_they_expire(void **state)
{
    (void)state;
    CASE_AS_IT_IS(reqs, retain);
    CASE(reqs, retain, it->restored = LOG_FRONT_UNKNOWN);
    CASE(reqs, retain, it->trim_segment = 1);
    CASE(reqs, retain, it->old.seg = it->head.seg);
    CASE(reqs, retain, slot(1)->seg->max_timestamp_ms = wall() - 1000);
    CASE(reqs, retain, slot(1)->seg->max_timestamp_ms = wall() - 1001);
    CASE(reqs, retain, slot(1)->seg->max_timestamp_ms = wall() + 1, slot(1)->seg->written_ms = 0);
    CASE(reqs, retain, slot(1)->seg->max_timestamp_ms = wall() + 1, slot(1)->seg->written_ms = 1);
    CASE(reqs, retain, slot(0)->seg->max_timestamp_ms = wall());
    CASE(reqs, retain, slot(0)->seg->max_timestamp_ms = wall(), it->first_offset = 100);
    CASE(reqs, retain, slot(0)->seg->max_timestamp_ms = wall(), it->first_offset = 99);
    CASE(reqs, retain, it->slot_count = 4);
    CASE(reqs, retain, it->slot_count = 4, slot(3)->seg->base_offset = slot(3)->seg->next_offset);
    CASE(reqs, retain, it->options.settings.retention_ms = 0);
    TRACE_IS("(void)0: -> s0/4 at 0/1300 told 0 pauses 0 0\n"
             "it->restored = LOG_FRONT_UNKNOWN: -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->trim_segment = 1: -> s0/1 at 0/0 told 0 pauses 0 0\n"
             "it->old.seg = it->head.seg: -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "slot(1)->seg->max_timestamp_ms = wall() - 1000: -> s0/1 at 0/100 told 0 pauses 0 0\n"
             "slot(1)->seg->max_timestamp_ms = wall() - 1001: -> s0/4 at 0/1300 told 0 pauses 0 0\n"
             "slot(1)->seg->max_timestamp_ms = wall() + 1, slot(1)->seg->written_ms = 0: -> s0/1 "
             "at 0/100 told 0 pauses 0 0\n"
             "slot(1)->seg->max_timestamp_ms = wall() + 1, slot(1)->seg->written_ms = 1: -> s0/4 "
             "at 0/1300 told 0 pauses 0 0\n"
             "slot(0)->seg->max_timestamp_ms = wall(): -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "slot(0)->seg->max_timestamp_ms = wall(), it->first_offset = 100: -> s0/4 at 100/1300 "
             "told 0 pauses 0 0\n"
             "slot(0)->seg->max_timestamp_ms = wall(), it->first_offset = 99: -> s0/0 at 99/0 told "
             "0 pauses 0 0\n"
             "it->slot_count = 4: -> s0/5 at 0/1350 told 0 pauses 0 0\n"
             "it->slot_count = 4, slot(3)->seg->base_offset = slot(3)->seg->next_offset: -> s0/3 "
             "at 0/1300 told 0 pauses 0 0\n"
             "it->options.settings.retention_ms = 0: -> s0/0 at 0/0 told 0 pauses 0 0\n");
}

static void sized(void)
{
    four();
    uint64_t all = it->closed_bytes + it->head.acked_bytes;
    it->options.settings.retention_bytes = (int64_t)(all - slot(0)->seg->prefix_id.bytes);
}

static void segments_beyond_the_size_go(void **state)
{
    (void)state;
    CASE_AS_IT_IS(sized, retain);
    CASE(sized, retain, it->options.settings.retention_bytes += 1);
    CASE(sized, retain, it->options.settings.retention_bytes -= slot(1)->seg->prefix_id.bytes);
    CASE(sized, retain, it->options.settings.retention_bytes -= slot(1)->seg->prefix_id.bytes - 1);
    CASE(sized, retain, it->head.acked_bytes -= 1);
    CASE(sized, retain, it->options.settings.retention_bytes = 1);
    CASE(sized, retain, it->options.settings.retention_bytes = 0);
    TRACE_IS(
        "(void)0: -> s0/1 at 0/100 told 0 pauses 0 0\n"
        "it->options.settings.retention_bytes += 1: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->options.settings.retention_bytes -= slot(1)->seg->prefix_id.bytes: -> s0/2 at 0/200 "
        "told 0 pauses 0 0\n"
        "it->options.settings.retention_bytes -= slot(1)->seg->prefix_id.bytes - 1: -> s0/1 at "
        "0/100 told 0 pauses 0 0\n"
        "it->head.acked_bytes -= 1: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->options.settings.retention_bytes = 1: -> s0/4 at 0/1300 told 0 pauses 0 0\n"
        "it->options.settings.retention_bytes = 0: -> s0/0 at 0/0 told 0 pauses 0 0\n");
}

static void holed(void)
{
    reqs();
    memmove(slot(2), slot(2) + 1, 2 * sizeof *it->slots);
    it->slot_count--;
    it->holes = true;
    slot(2)->joint = LOG_JOINT_UNKNOWN;
}

static void retention_ends_at_a_hole(void **state)
{
    (void)state;
    CASE_AS_IT_IS(holed, retain);
    CASE(holed, retain, it->holes = false);
    CASE(holed, retain, slot(2)->joint = LOG_JOINT_JUMPED);
    CASE(holed, retain, it->first_offset = slot(2)->seg->base_offset);
    CASE(holed, retain, it->first_offset = slot(2)->seg->base_offset - 1);
    CASE(holed, retain, slot(2)->seg->id.v = 2);
    TRACE_IS(
        "(void)0: -> s0/2 at 0/200 told 0 pauses 0 0\n"
        "it->holes = false: -> s0/4 at 0/1300 told 0 pauses 0 0\n"
        "slot(2)->joint = LOG_JOINT_JUMPED: -> s0/4 at 0/1300 told 0 pauses 0 0\n"
        "it->first_offset = slot(2)->seg->base_offset: -> s0/4 at 750/1300 told 0 pauses 0 0\n"
        "it->first_offset = slot(2)->seg->base_offset - 1: -> s0/2 at 749/749 told 0 pauses 0 0\n"
        "slot(2)->seg->id.v = 2: -> s0/3 at 0/1300 told 0 pauses 0 0\n");
}

/* ---- where it begins ---- */

static void step_begin(void)
{
    log_step_begin(it);
    begins_tell();
}

static void asked(void)
{
    four();
    trim_asked(250);
}

static void without_space(uint64_t before)
{
    trim.before = before;
    it->reserve_rc = LEAT_E_DISK_FULL;
    it->reserve_not_before_us = fake->now_us + 1;
}

static void request_to_begin_later_rolls_or_trims(void **state)
{
    (void)state;
    CASE_AS_IT_IS(asked, step_begin);
    CASE(four, step_begin, it->begin_told = 0);
    CASE(asked, step_begin, it->restored = LOG_FRONT_UNKNOWN);
    CASE(asked, step_begin, it->begin_written = true);
    CASE(asked, step_begin, it->state = LEAT_LOG_WAITING);
    CASE(asked, step_begin, it->ending = LOG_DELETING);
    CASE(asked, step_begin, it->ending = LOG_STOPPING);
    CASE(asked, step_begin, it->begin_told = 249);
    CASE(asked, step_begin, it->begin_told = 250);
    CASE(asked, step_begin, it->restored = LOG_UNLOADED);
    CASE(asked, step_begin, it->restored = LOG_UNLOADED, it->room_wanted = true);
    CASE(asked, step_begin, without_space(250));
    CASE(asked, step_begin, without_space(200));
    CASE(asked, step_begin, without_space(199));
    CASE(asked, step_begin, without_space(99));
    CASE(asked, step_begin, without_space(1350));
    CASE(asked, step_begin, without_space(250), slot(1)->closed = false);
    CASE(asked, step_begin, without_space(250), it->trim_segment = 1);
    CASE(asked, step_begin, without_space(250), fill());
    TRACE_IS(
        "(void)0: -> s0/0 at 0/0 roll told 0 pauses 0 0\n"
        "it->begin_told = 0: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->restored = LOG_FRONT_UNKNOWN: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->begin_written = true: -> s0/0 at 0/0 begin told 0 pauses 0 0\n"
        "it->state = LEAT_LOG_WAITING: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->ending = LOG_DELETING: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->ending = LOG_STOPPING: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->begin_told = 249: -> s0/0 at 0/0 roll told 249 pauses 0 0\n"
        "it->begin_told = 250: -> s0/0 at 0/0 told 250 pauses 0 0\n"
        "it->restored = LOG_UNLOADED: -> s0/0 at 0/0 roll room told 0 pauses 0 0, dirty\n"
        "it->restored = LOG_UNLOADED, it->room_wanted = true: -> s0/0 at 0/0 roll room told 0 "
        "pauses 0 "
        "0\n"
        "without_space(250): -> s0/2 at 0/200 told 0 pauses 1000001 0\n"
        "without_space(200): -> s0/2 at 0/200 told 0 pauses 1000001 0\n"
        "without_space(199): -> s0/1 at 0/100 told 0 pauses 1000001 0\n"
        "without_space(99): -> s0/0 at 0/0 told 0 pauses 1000001 0\n"
        "without_space(1350): -> s0/4 at 0/1300 told 0 pauses 1000001 0\n"
        "without_space(250), slot(1)->closed = false: -> s0/1 at 0/100 told 0 pauses 1000001 0\n"
        "without_space(250), it->trim_segment = 1: -> s0/1 at 0/0 told 0 pauses 1000001 0\n"
        "without_space(250), fill(): -> s0/0 at 0/0 told 0 pauses 1000001 0\n");
}

static void step_begun(void)
{
    log_step_begun(it);
    begins_tell();
    leat_list_init(&it->trims);
}

static void begun(void)
{
    asked();
    it->begin_written = true;
    it->begin_offset = 250;
    it->begin_segment = 4;
}

static void log_begins_later_once_its_start_entry_is_acked(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, step_begun);
    CASE(begun, step_begun, it->old.seg = slot(3)->seg);
    CASE(begun, step_begun, it->begin_segment = 5);
    CASE(begun, step_begun, it->begin_segment = 3);
    CASE(begun, step_begun, it->head.acked_bytes = it->head.start_end);
    CASE(begun, step_begun, it->head.acked_bytes = it->head.start_end - 1);
    CASE(begun, step_begun, it->head.seg = NULL);
    CASE(begun, step_begun, trim.before = 251);
    CASE(begun, step_begun, it->first_offset = 250);
    CASE(begun, step_begun, it->first_offset = 251);
    CASE(begun, step_begun, it->restored = LOG_FRONT_UNKNOWN);
    CASE(begun, step_begun, it->ending = LOG_DELETING);
    CASE(begun, step_begun, it->begin_written = false);
    CASE(begun, step_begun, it->begin_written = false, it->ending = LOG_STOPPING);
    CASE(begun, step_begun, it->begin_written = false, without_space(250));
    CASE(begun, step_begun, it->begin_written = false, without_space(250), it->trim_segment = 1);
    CASE(begun, step_begun, it->begin_segment = 5, without_space(250));
    TRACE_IS(
        "(void)0: before 250: OK, begins at 250 -> s0/2 at 250/250 told 250 pauses 0 0, dirty\n"
        "it->old.seg = slot(3)->seg: -> s0/0 at 0/0 begin told 0 pauses 0 0\n"
        "it->begin_segment = 5: -> s0/0 at 0/0 begin told 0 pauses 0 0\n"
        "it->begin_segment = 3: before 250: OK, begins at 250 -> s0/2 at 250/250 told 250 pauses 0 "
        "0, dirty\n"
        "it->head.acked_bytes = it->head.start_end: before 250: OK, begins at 250 -> s0/2 at "
        "250/250 told 250 pauses 0 0, dirty\n"
        "it->head.acked_bytes = it->head.start_end - 1: -> s0/0 at 0/0 begin told 0 pauses 0 0\n"
        "it->head.seg = NULL: -> s0/0 at 0/0 begin told 0 pauses 0 0\n"
        "trim.before = 251: -> s0/2 at 250/250 told 250 pauses 0 0, dirty\n"
        "it->first_offset = 250: before 250: OK, begins at 250 -> s0/0 at 250/250 told 250 pauses "
        "0 0\n"
        "it->first_offset = 251: before 250: OK, begins at 251 -> s0/0 at 251/251 told 250 pauses "
        "0 0\n"
        "it->restored = LOG_FRONT_UNKNOWN: -> s0/0 at 250/250 told 250 pauses 0 0, dirty\n"
        "it->ending = LOG_DELETING: before 250: OK, begins at 250 -> s0/2 at 250/250 told 250 "
        "pauses 0 "
        "0, dirty\n"
        "it->begin_written = false: -> s0/0 at 0/0 told 0 pauses 0 0\n"
        "it->begin_written = false, it->ending = LOG_STOPPING: before 250: STARTING, begins at 0 "
        "-> "
        "s0/0 "
        "at 0/0 told 0 pauses 0 0\n"
        "it->begin_written = false, without_space(250): before 250: DISK_FULL, begins at 0 -> s0/0 "
        "at 0/0 told 0 pauses 1000001 0\n"
        "it->begin_written = false, without_space(250), it->trim_segment = 1: -> s0/1 at 0/0 told "
        "0 pauses 1000001 0\n"
        "it->begin_segment = 5, without_space(250): -> s0/0 at 0/0 begin told 0 pauses 1000001 "
        "0\n");
}

/* ---- what an operator gave up ---- */

static void on_skipped(void *arg, struct leat_log *log_of_it)
{
    assert_ptr_equal(log_of_it, it);
    trace("%s ", (const char *)arg);
}

static void step_skip(void)
{
    log_damage_name(it); /* as if the loss were accepted now */
    log_step_skip(it);
    trace("%s%s", it->skip != LOG_SKIP_NONE ? "waits " : "over ",
          it->skip == LOG_SKIP_ASKED ? "gives up " : "");
    begins_tell();
}

static void skips(void)
{
    four();
    leat_log_skip_missing(it, on_skipped, (void *)(uintptr_t) "skipped");
    it->dirty = false;
}

/* The first one is not here. */
static void skips_front(void)
{
    skips();
    it->slot_begin++;
    it->slot_count--;
}

static void rots(void)
{
    slot(1)->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    slot(1)->repair = LOG_REPAIR_LOST;
}

static void what_is_lost_is_skipped_step_by_step(void **state)
{
    (void)state;
    CASE_AS_IT_IS(skips, step_skip);
    CASE(skips, step_skip, it->skip = LOG_SKIP_NONE);
    CASE(skips, step_skip, it->restored = LOG_FRONT_UNKNOWN);
    CASE(skips, step_skip, it->restored = LOG_FRONT_UNKNOWN, it->state = LEAT_LOG_STOPPED);
    CASE(skips_front, step_skip, it->front_accepted = false);
    CASE(skips_front, step_skip, it->trim_segment = 1);
    CASE(skips_front, step_skip, it->state = LEAT_LOG_STOPPED);
    CASE(skips_front, step_skip, it->ending = LOG_DELETING);
    CASE(skips_front, step_skip, it->ending = LOG_STOPPING);
    CASE(skips, step_skip, rots());
    CASE(skips, step_skip, rots(), it->skip = LOG_SKIP_ASKED);
    CASE(skips, step_skip, rots(), it->skip = LOG_SKIP_FAILED);
    CASE(skips, step_skip, rots(), it->ending = LOG_DELETING);
    CASE(skips, step_skip, rots(), it->ending = LOG_STOPPING);
    CASE(skips, step_skip, rots(), it->state = LEAT_LOG_WAITING);
    CASE(skips, step_skip, rots(), it->state = LEAT_LOG_DAMAGED);
    CASE(skips, step_skip, rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2);
    CASE(skips, step_skip, rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2,
         it->ending = LOG_DELETING);
    CASE(skips, step_skip, rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2,
         it->ending = LOG_STOPPING);
    TRACE_IS("(void)0: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->skip = LOG_SKIP_NONE: over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->restored = LOG_FRONT_UNKNOWN: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->restored = LOG_FRONT_UNKNOWN, it->state = LEAT_LOG_STOPPED: skipped over -> s0/0 "
             "at 0/0 told "
             "0 pauses 0 0\n"
             "it->front_accepted = false: waits -> s0/1 at 0/100 told 0 pauses 0 0, dirty\n"
             "it->trim_segment = 1: waits -> s0/1 at 0/0 told 0 pauses 0 0\n"
             "it->state = LEAT_LOG_STOPPED: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->ending = LOG_DELETING: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "it->ending = LOG_STOPPING: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(): GIVE_UP s1 it passed 0\n"
             "waits gives up -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->skip = LOG_SKIP_ASKED: waits gives up -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->skip = LOG_SKIP_FAILED: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->ending = LOG_DELETING: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->ending = LOG_STOPPING: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->state = LEAT_LOG_WAITING: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->state = LEAT_LOG_DAMAGED: skipped over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2: GIVE_UP s1 it passed 0\n"
             "waits gives up -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2, it->ending = LOG_DELETING: "
             "skipped "
             "over -> s0/0 at 0/0 told 0 pauses 0 0\n"
             "rots(), it->state = LEAT_LOG_DAMAGED, it->slot_count = 2, it->ending = LOG_STOPPING: "
             "skipped "
             "over -> s0/0 at 0/0 told 0 pauses 0 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(trim_entry_is_written_where_there_is_room),
        TRACE_TEST(trim_counts_once_its_entry_is_acked),
        TRACE_TEST(whole_segments_go_as_they_expire),
        TRACE_TEST(segments_beyond_the_size_go),
        TRACE_TEST(retention_ends_at_a_hole),
        TRACE_TEST(request_to_begin_later_rolls_or_trims),
        TRACE_TEST(log_begins_later_once_its_start_entry_is_acked),
        TRACE_TEST(what_is_lost_is_skipped_step_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
