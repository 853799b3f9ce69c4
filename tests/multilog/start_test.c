/* SPDX-License-Identifier: Apache-2.0 */
/* The last segment's start entry, and the entries after it, in a log that is opened: where the log begins, which
 * earlier segments are missing, which producers it knows; and the state of a log whose start entry says nonsense. The
 * segment is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "start_rig.h"

static const struct says begins[] = {
    {.what = "all of it", .first_segment = 6, .first_offset = 60},
    {.what = "within the first", .first_segment = 6, .first_offset = 65},
    {.what = "later", .first_segment = 7, .first_offset = 72},
    {.what = "one is missing", .first_segment = 5, .first_offset = 50},
    {.what = "all before it are missing", .first_segment = 0, .first_offset = 0},
    {.what = "missing, and trimmed",
     .first_segment = 5,
     .first_offset = 50,
     .trim_segment = 7,
     .trim_offset = 70},
    {.what = "missing, and trimmed to less",
     .first_segment = 3,
     .first_offset = 30,
     .trim_segment = 5,
     .trim_offset = 50},
    {.what = "trimmed by a shorter entry",
     .first_segment = 5,
     .first_offset = 50,
     .trim_segment = 7,
     .trim_offset = 70,
     .short_trim = true},
    {.what = "trimmed before",
     .first_segment = 5,
     .first_offset = 55,
     .trim_segment = 4,
     .trim_offset = 40},
    {.what = "trimmed in what is held",
     .first_segment = 6,
     .first_offset = 60,
     .trim_segment = 8,
     .trim_offset = 80},
    {.what = "at its first segment and before its records", .first_segment = 6, .first_offset = 55},
    {.what = "at its end", .first_segment = 9, .first_offset = 90},
    {.what = "past its end", .first_segment = 10, .first_offset = 91},
    {.what = "what is missing has no record", .first_segment = 5, .first_offset = 60},
    {.what = "an offset past its end", .first_segment = 6, .first_offset = 91},
    {.what = "a segment past its end", .first_segment = 10, .first_offset = 60},
};

/* Goal: the log begins where its last start entry, or a later trim entry, says; what should be there in front of what
 * is held is missing, and what is past its end is not believed. */
static void log_begins_where_its_last_segment_says(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof begins / sizeof *begins; i++)
        opened(&begins[i], false, i % 2 == 1);
    TRACE_IS("all of it\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "within the first, in memory\n"
             "  opened: state 0 cold, from 6/65, told 65, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/65, told 65, missing 0 to 0, 1 producers\n"
             "later\n"
             "  opened: state 0 cold, from 6/72, told 72, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 7/72, told 72, missing 0 to 0, 1 producers\n"
             "one is missing, in memory\n"
             "  opened: state 0 cold, from 5/50, told 50, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/50, told 50, missing 1 to 60, 1 producers\n"
             "all before it are missing\n"
             "  opened: state 0 cold, from 0/0, told 0, missing 6 to 60, 0 producers\n"
             "  woken: state 0, from 0/0, told 0, missing 6 to 60, 1 producers\n"
             "missing, and trimmed, in memory\n"
             "  opened: state 0 cold, from 6/70, told 50, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 7/70, told 70, missing 0 to 0, 1 producers\n"
             "missing, and trimmed to less\n"
             "  opened: state 0 cold, from 5/50, told 30, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/50, told 50, missing 1 to 60, 1 producers\n"
             "trimmed by a shorter entry, in memory\n"
             "  opened: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "trimmed before\n"
             "  opened: state 0 cold, from 5/55, told 55, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/55, told 55, missing 1 to 60, 1 producers\n"
             "trimmed in what is held, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 8/80, told 80, missing 0 to 0, 1 producers\n"
             "at its first segment and before its records\n"
             "  opened: state 0 cold, from 6/60, told 55, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "at its end, in memory\n"
             "  opened: state 0 cold, from 6/90, told 90, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 9/90, told 90, missing 0 to 0, 1 producers\n"
             "past its end\n"
             "  opened: state 0 cold, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "what is missing has no record, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "an offset past its end\n"
             "  opened: state 0 cold, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "a segment past its end, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n");
}

/* Goal: likewise where what is missing was given up. */
static void log_that_jumped_begins_with_what_is_held(void **state)
{
    (void)state;
    opened(&begins[3], true, false);
    opened(&begins[3], false, true);
    opened(&begins[5], true, true);
    TRACE_IS("one is missing, jumped\n"
             "  opened: state 0 cold, from 6/60, told 50, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n"
             "one is missing, in memory\n"
             "  opened: state 0 cold, from 5/50, told 50, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/50, told 50, missing 1 to 60, 1 producers\n"
             "missing, and trimmed, jumped, in memory\n"
             "  opened: state 0 cold, from 6/60, told 50, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 7/70, told 70, missing 0 to 0, 1 producers\n");
}

/* Goal: producers of the start entry and those of the batches behind it are known; what can't be understood is damage,
 * and the log takes no appends. */
static void start_entry_that_is_nonsense_is_damage(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++)
        opened(&nonsense[i], false, i % 2 == 1);
    TRACE_IS("three producers\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 4 producers\n"
             "some were forgotten, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 4 producers expired\n"
             "fewer than there are\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "more than there are, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "many more\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "state of others that is not there, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "state of others\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 3 producers\n");
}

/* Goal: likewise a start entry that is wrong in other ways. A log whose end was given up goes on, and knows no
 * producer. */
static void start_entry_that_is_wrong_is_damage(void **state)
{
    (void)state;
    for (unsigned i = 7; i < sizeof nonsense / sizeof *nonsense; i++)
        opened(&nonsense[i], false, i % 2 == 1);
    TRACE_IS("a byte more of it, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "a producer of no id\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "more than a block of them, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 61 producers\n"
             "a batch that is none\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "too short, in memory\n"
             "  opened: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "not there\n"
             "  opened: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its bytes do not match the recorded length and checksum\n");
    opened(&nonsense[3], true, false);
    opened(&nonsense[10], true, false);
    TRACE_IS("more than there are, jumped\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 0 producers lost\n"
             "a batch that is none, jumped\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 0 producers lost\n");
}

/* Goal: what is told of the start entry alone, from as many of the first bytes as there are. */
static void start_entry_is_found_in_the_first_bytes(void **state)
{
    (void)state;
    static uint8_t segment[CAPACITY];
    struct leat_start start;
    struct says says = {
        .first_segment = 6, .first_offset = 60, .producers = 2, .producers_told = 2};
    struct leat_prefix_id prefix_id = segment_write(segment, &says);
    uint32_t end = leat_log_start_end(segment, prefix_id.bytes, prefix_id.bytes);
    uint32_t known = 0, found = 0; /* from so many bytes on */
    for (uint32_t count = 0; count <= prefix_id.bytes; count++) {
        uint32_t one = leat_log_start_end(segment, count, prefix_id.bytes);
        assert_true(one == 0 || one == end);
        if (one && !known) known = count;
        assert_true(!known || one);
        bool is = leat_log_start_find(segment, count, &start);
        if (is && !found) found = count;
        assert_int_equal(is, found != 0);
    }
    assert_int_equal(start.first_offset, 60);
    trace("ends at %u, known from %u on, found from %u on\n", end, known, found);
    assert_int_equal(leat_log_start_end(segment, prefix_id.bytes, end), end);
    assert_int_equal(leat_log_start_end(segment, prefix_id.bytes, end - 1), 0);
    segment[end - 1] ^= 1; /* its checksum covers all of it */
    assert_false(leat_log_start_find(segment, prefix_id.bytes, &start));
    TRACE_IS("ends at 432, known from 224 on, found from 432 on\n");
    const struct says none[] = {{.no_start = true}, {.short_start = true}};
    for (unsigned i = 0; i < 2; i++) {
        prefix_id = segment_write(segment, &none[i]);
        assert_int_equal(leat_log_start_end(segment, prefix_id.bytes, prefix_id.bytes), 0);
        assert_false(leat_log_start_find(segment, prefix_id.bytes, &start));
    }
}

/* ---- of a log that has a reason already, and without memory ---- */

static const struct leat_log_tail end_of_three = {.next_segment = LAST + 1, .next_offset = 90};

/* Goal: a log that refuses appends for a reason keeps the reason when its last segment is found damaged; the begin of
 * the log is not looked for any more. */
static void reason_of_a_log_stays_the_first(void **state)
{
    (void)state;
    static const enum leat_log_state states[] = {LEAT_LOG_SERVING, LEAT_LOG_WAITING,
                                                 LEAT_LOG_DAMAGED};
    for (unsigned i = 0; i < 3; i++) {
        struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
        struct leat_segment *segs[3];
        held_make(fake, &(struct says){.no_start = true}, false, segs);
        fake_open(fake, segs, 3, &end_of_three);
        if (states[i] != LEAT_LOG_SERVING)
            leat_log_set_state(fake->log, states[i], "the first reason");
        fake_settle(fake);
        trace("%s\n", fake->log->why);
        log_trace(fake, "read");
        watch_end(fake);
    }
    TRACE_IS("segment 8 is damaged: its bytes do not match the recorded length and checksum\n"
             "  read: state 2, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "the first reason\n"
             "  read: state 1 cold, from 6/60, told 0, missing 0 to 0, 0 producers\n"
             "the first reason\n"
             "  read: state 2 cold, from 6/60, told 0, missing 0 to 0, 0 producers\n");
}

/* Goal: where memory for the last segment's bytes is short, or for what is in it, it is read again a second later, and
 * not before. */
static void last_segment_is_read_again_where_memory_was_short(void **state)
{
    (void)state;
    for (unsigned wakes = 0; wakes < 2; wakes++) {
        struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
        struct leat_segment *segs[3];
        held_make(fake, &begins[0], false, segs);
        fake_open(fake, segs, 3, &end_of_three);
        if (wakes) {
            fake_settle(fake);
            fake->log->room_wanted = true;
            log_mark_dirty(fake->log);
        }
        uint64_t reads = fake->reads_done;
        leat_mem_fail_at(1);
        fake_settle(fake);
        leat_mem_fail_at(0);
        for (unsigned more = 0; more < 3; more++) {
            log_mark_dirty(fake->log);
            fake_settle(fake);
            trace("%u reads", (unsigned)(fake->reads_done - reads));
            log_trace(fake, "later");
            fake->now_us += more == 0 ? LOG_RESERVE_PAUSE_US - 1 : 1;
        }
        watch_end(fake);
    }
    TRACE_IS("0 reads  later: state 0 cold front unknown, from 6/60, told 0, missing 0 to 0, 0 "
             "producers\n"
             "0 reads  later: state 0 cold front unknown, from 6/60, told 0, missing 0 to 0, 0 "
             "producers\n"
             "1 reads  later: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "0 reads  later: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "0 reads  later: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "RESERVE s9 1/0/0 e7 cap 16384 d1\n"
             "opening s9\n"
             "room\n"
             "1 reads  later: state 0, from 6/60, told 60, missing 0 to 0, 1 producers\n");
}

/* Goal: likewise where the segment is in memory, and there is none for its producers. */
static void producers_are_read_again_where_memory_was_short(void **state)
{
    (void)state;
    struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
    struct leat_segment *segs[3];
    held_make(fake, &nonsense[0], true, segs);
    fake_open(fake, segs, 3, &end_of_three);
    fake_settle(fake);
    fake->log->room_wanted = true;
    log_mark_dirty(fake->log);
    leat_mem_fail_at(1);
    fake_settle(fake);
    leat_mem_fail_at(0);
    for (unsigned more = 0; more < 3; more++) {
        size_t used = trace_used;
        log_mark_dirty(fake->log);
        fake_settle(fake);
        trace_text[trace_used = used] = '\0';
        log_trace(fake, "later");
        fake->now_us += more == 0 ? LOG_RESERVE_PAUSE_US - 1 : 1;
    }
    watch_end(fake);
    TRACE_IS("  later: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  later: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  later: state 0, from 6/60, told 60, missing 0 to 0, 4 producers\n");
}

/* ---- what others are told of ---- */

static unsigned apps_restored, apps_read, last_damages;
static uint64_t damaged_segment;
static void app_on_restore(void *ctx, const uint8_t *of, size_t count)
{
    (void)ctx, (void)of, (void)count;
    apps_restored++;
}
static void app_on_replay(void *ctx, const struct leat_batch *batch)
{
    (void)ctx, (void)batch;
}
static void app_on_read(void *ctx)
{
    (void)ctx;
    apps_read++;
}
static bool on_last_damaged(void *owner, struct leat_log *log, struct leat_segment *seg)
{
    (void)owner, (void)log;
    assert_int_equal(seg->id.v, LAST);
    last_damages++;
    return false;
}
static leat_err on_damaged(void *owner, const struct leat_segment *seg)
{
    (void)owner;
    damaged_segment = seg->id.v;
    return LEAT_OK;
}

/* A log with an application, opened and left to itself. */
static struct fake *told_of(const struct says *says, bool in_memory, bool jumped)
{
    struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
    struct leat_segment *segs[3];
    struct leat_log_tail tail = end_of_three;
    tail.jumped = jumped;
    apps_restored = apps_read = last_damages = 0;
    damaged_segment = 0;
    fake->options.app = (struct leat_log_app){.ctx = fake,
                                              .on_restore = app_on_restore,
                                              .on_replay = app_on_replay,
                                              .on_read = app_on_read};
    fake->options.events.on_last_damaged = on_last_damaged;
    fake->options.events.on_damaged = on_damaged;
    held_make(fake, says, in_memory, segs);
    fake_open(fake, segs, 3, &tail);
    return fake;
}

/* At its end the log would ask its application for a snapshot, and this application has none. */
static void told_end(struct fake *fake)
{
    fake->log->options.app.ctx = NULL;
    watch_end(fake);
}

/* Goal: a log with an application wakes by itself, and tells the application once that all records were read. A log
 * that is damaged, or waits, does not. */
static void who_is_above_is_told_when_all_was_read(void **state)
{
    (void)state;
    for (unsigned in_memory = 0; in_memory < 2; in_memory++) {
        struct fake *fake = told_of(&begins[0], in_memory, false);
        fake_settle(fake);
        assert_false(info_of(fake).unloaded);
        assert_true(apps_restored == 1 && apps_read == 1);
        told_end(fake);

        fake = told_of(&nonsense[8], in_memory, false); /* a producer of no id */
        fake_settle(fake);
        assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
        assert_int_equal(apps_read, 0);
        told_end(fake);

        fake = told_of(&begins[0], in_memory, false);
        leat_log_set_state(fake->log, LEAT_LOG_WAITING, "its end is elsewhere");
        fake_settle(fake);
        assert_true(info_of(fake).unloaded);
        assert_true(apps_restored == 0 && apps_read == 0);
        told_end(fake);
    }
}

/* Goal: other nodes are asked for the last segment, where this segment is damaged, also where the log goes on without
 * the segment, as its end was given up. For a log that ends no node is asked. */
static void last_segment_that_is_damaged_is_asked_for(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 3; c++) {
        bool jumped = c == 1, ends = c == 2;
        struct fake *fake = told_of(&nonsense[8], false, jumped);
        fake->made_up = true;
        while (log_front_is_unknown(fake->log)) {
            fake_turn_end(fake);
            assert_true(fake_deliver(fake));
        }
        fake_turn_end(fake); /* the last segment is read */
        assert_true(fake->log->warming);
        if (ends) fake->log->ending = LOG_STOPPING;
        fake_settle(fake);
        assert_int_equal(last_damages, !ends);
        assert_int_equal(damaged_segment, LAST);
        assert_int_equal(info_of(fake).state, jumped ? LEAT_LOG_SERVING : LEAT_LOG_DAMAGED);
        if (ends) fake->log->ending = LOG_LIVES;
        told_end(fake);
    }
}

/* Goal: a file that is shorter than its segment is damage, whether the log reads it for its front or for its
 * producers. */
static void last_segment_whose_file_is_cut_is_damaged(void **state)
{
    (void)state;
    for (unsigned wakes = 0; wakes < 2; wakes++) {
        struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
        struct leat_segment *segs[3];
        held_make(fake, &begins[0], false, segs);
        fake_open(fake, segs, 3, &end_of_three);
        if (wakes) fake_settle(fake);
        fake->files_end = segs[2]->prefix_id.bytes - 1;
        fake->log->room_wanted = wakes;
        log_mark_dirty(fake->log);
        fake_settle(fake);
        assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
        trace("%s\n", fake->log->why);
        watch_end(fake);
    }
    TRACE_IS("segment 8 is damaged: its file is too short\n"
             "room\n" /* appends that wait for room try again, and are refused */
             "segment 8 is damaged: its file is too short\n");
}

/* Goal: segments that retention has dropped do not come back as missing when the log finds where it began. */
static void front_that_is_let_go_of_is_not_missing(void **state)
{
    (void)state;
    struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
    struct leat_segment *segs[3];
    held_make(fake, &begins[3], false, segs); /* 5 is missing */
    fake_open(fake, segs, 3, &end_of_three);
    fake->made_up = true;
    fake->log->trim_segment = 7;
    fake->log->trim_offset = 70;
    fake_settle(fake);
    assert_false(log_front_is_unknown(fake->log));
    assert_int_equal(fake->log->trim_segment, 7);
    assert_int_equal(fake->log->first_segment, 6);
    fake->log->trim_segment = 6;
    fake->log->trim_offset = 60;
    watch_end(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(log_begins_where_its_last_segment_says),
        TRACE_TEST(log_that_jumped_begins_with_what_is_held),
        TRACE_TEST(start_entry_that_is_nonsense_is_damage),
        TRACE_TEST(start_entry_that_is_wrong_is_damage),
        TRACE_TEST(start_entry_is_found_in_the_first_bytes),
        TRACE_TEST(reason_of_a_log_stays_the_first),
        TRACE_TEST(last_segment_is_read_again_where_memory_was_short),
        TRACE_TEST(producers_are_read_again_where_memory_was_short),
        TRACE_TEST(who_is_above_is_told_when_all_was_read),
        TRACE_TEST(last_segment_that_is_damaged_is_asked_for),
        TRACE_TEST(last_segment_whose_file_is_cut_is_damaged),
        TRACE_TEST(front_that_is_let_go_of_is_not_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
