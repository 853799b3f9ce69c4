/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a log, request by request: each request that the log makes, each event and answer, and the state that the
 * log reports after that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watch.h"

/* Goal: the first batch waits for a segment, its start entry to be safe, and the coordinator. */
static void first_batch_waits_for_each_step_of_opening(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct fake *fake = watch((enum leat_durability)level);
        fake_open(fake, NULL, 0, NULL);
        state_trace(fake);
        (void)put(fake, 3, 100);
        state_trace(fake);
        deliver(fake);
        (void)put(fake, 3, 100);
        state_trace(fake);
        if (level == LEAT_DURABILITY_DISK) deliver(fake);
        leat_log_opened(fake->log, LEAT_E_TIMEOUT);
        fake_turn_end(fake);
        trace("opened in vain\n");
        leat_log_care(fake->log);
        fake_turn_end(fake);
        leat_log_opened(fake->log, LEAT_OK);
        fake_turn_end(fake);
        state_trace(fake);
        while (fake->queued)
            deliver(fake);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS(
                "  state 0 0..0 acked 0, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 0 records\n"
                "append 0: AGAIN\n"
                "RESERVE s0 1/0/0 e7 cap 16384 d1\n"
                "  state 0 0..0 acked 0, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 0 records "
                "busy wants room\n"
                "opening s0\n"
                "room\n"
                "  state 0 0..0 acked 0, s0..1 1 held, groups 0+1, 264 bytes 16384 memory, 0 "
                "records\n"
                "  state 0 0..3 acked 0, s0..1 1 held, groups 0+1, 720 bytes 16384 memory, 3 "
                "records\n"
                "opened in vain\n"
                "opening s0\n"
                "acked 3\n"
                "append 1: OK at 0\n"
                "  state 0 0..3 acked 3, s0..1 1 held, groups 0+1, 720 bytes 16384 memory, 3 "
                "records\n");
        else
            TRACE_IS(
                "  state 0 0..0 acked 0, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 0 records\n"
                "append 0: AGAIN\n"
                "RESERVE s0 1/0/0 e7 cap 16384 d2\n"
                "  state 0 0..0 acked 0, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 0 records "
                "busy wants room\n"
                "COMMIT s0 0..264\n"
                "room\n"
                "  state 0 0..0 acked 0, s0..1 1 held, groups 0+1, 264 bytes 16384 memory, 0 "
                "records busy\n"
                "  state 0 0..3 acked 0, s0..1 1 held, groups 0+1, 688 bytes 16384 memory, 3 "
                "records busy\n"
                "COMMIT s0 264..720\n"
                "opening s0\n"
                "  state 0 0..3 acked 0, s0..1 1 held, groups 0+1, 720 bytes 16384 memory, 3 "
                "records busy\n"
                "opened in vain\n"
                "opening s0\n"
                "  state 0 0..3 acked 0, s0..1 1 held, groups 0+1, 720 bytes 16384 memory, 3 "
                "records busy\n"
                "acked 3\n"
                "append 1: OK at 0\n"
                "  state 0 0..3 acked 3, s0..1 1 held, groups 0+1, 720 bytes 16384 memory, 3 "
                "records\n");
        watch_end(fake);
    }
}

/* Goal: where memory is not safe by itself a commit is asked for, and what is sealed meanwhile goes ahead. */
static void copies_are_asked_for_and_sent_ahead(void **state)
{
    (void)state;
    struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
    fake->store_port.ahead = watch_ahead;
    fake->memory_is_safe = false;
    fake->open_at_once = true;
    fake_open(fake, NULL, 0, NULL);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    trace_begin();
    (void)put(fake, 1, 100);
    (void)put(fake, 1, 100);
    (void)put(fake, 1, 100);
    TRACE_IS("COMMIT s0 264..504\n"
             "ahead s0 744\n"
             "ahead s0 984\n");
    deliver(fake);
    TRACE_IS("COMMIT s0 504..984\n"
             "acked 1\n"
             "append 1: OK at 0\n"
             "  state 0 0..3 acked 1, s0..1 1 held, groups 0+1, 984 bytes 16384 memory, 3 records "
             "busy\n");
    deliver(fake);
    deliver(fake);
    TRACE_IS(
        "acked 3\n"
        "append 2: OK at 1\n"
        "append 3: OK at 2\n"
        "  state 0 0..3 acked 3, s0..1 1 held, groups 0+1, 984 bytes 16384 memory, 3 records\n"
        "nothing\n"
        "  state 0 0..3 acked 3, s0..1 1 held, groups 0+1, 984 bytes 16384 memory, 3 records\n");
    watch_end(fake);
}

/* Goal: at level `disk` as many commits are under way as the store port takes, and the one behind takes along what
 * comes. */
static void commits_on_disk_follow_each_other(void **state)
{
    (void)state;
    for (unsigned commits = 0; commits <= 3; commits++) {
        struct fake *fake = watch(LEAT_DURABILITY_DISK);
        fake->store_port.commits = commits;
        fake->open_at_once = true;
        fake_open(fake, NULL, 0, NULL);
        (void)put(fake, 1, 100);
        fake_settle(fake);
        (void)put(fake, 1, 100);
        fake_settle(fake);
        trace_begin();
        for (unsigned i = 0; i < 3; i++)
            (void)put(fake, 1, 100);
        while (fake->queued)
            deliver(fake);
        if (commits < 2)
            TRACE_IS("COMMIT s0 504..744\n"
                     "COMMIT s0 744..1192\n"
                     "acked 2\n"
                     "append 2: OK at 1\n"
                     "  state 0 0..4 acked 2, s0..1 1 held, groups 0+1, 1192 bytes 16384 memory, 4 "
                     "records busy\n"
                     "acked 4\n"
                     "append 3: OK at 2\n"
                     "append 4: OK at 3\n"
                     "  state 0 0..4 acked 4, s0..1 1 held, groups 0+1, 1192 bytes 16384 memory, 4 "
                     "records\n");
        else
            TRACE_IS("COMMIT s0 504..744 and on\n"
                     "COMMIT s0 504..984 and on\n"
                     "COMMIT s0 744..1224 and on\n"
                     "acked 2\n"
                     "append 2: OK at 1\n"
                     "  state 0 0..4 acked 2, s0..1 1 held, groups 0+1, 1224 bytes 16384 memory, 4 "
                     "records busy\n"
                     "acked 3\n"
                     "append 3: OK at 2\n"
                     "  state 0 0..4 acked 3, s0..1 1 held, groups 0+1, 1224 bytes 16384 memory, 4 "
                     "records busy\n"
                     "acked 4\n"
                     "append 4: OK at 3\n"
                     "  state 0 0..4 acked 4, s0..1 1 held, groups 0+1, 1224 bytes 16384 memory, 4 "
                     "records\n");
        watch_end(fake);
    }
}

/* Goal: a log that rolls: the next segment's start, then the close of the one before, then what came meanwhile. */
static void roll_goes_step_by_step(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct fake *fake = watch_begun((enum leat_durability)level);
        fake->now_us += 2 * 1000 * 1000;
        while (put(fake, 1, 20000) == LEAT_OK)
            fake_settle(fake);
        trace_begin();
        state_trace(fake);
        deliver(fake);
        (void)put(fake, 1, 20000);
        state_trace(fake);
        while (fake->queued)
            deliver(fake);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records busy wants room\n"
                     "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
                     "room\n"
                     "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 "
                     "records busy\n"
                     "acked 2\n"
                     "append 3: OK at 1\n"
                     "  state 0 0..2 acked 2, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, "
                     "2 records busy\n"
                     "  state 0 0..2 acked 2, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, "
                     "2 records\n");
        else
            TRACE_IS("  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records busy wants room\n"
                     "COMMIT s1 0..264\n"
                     "room\n"
                     "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 832 bytes 49152 memory, 1 "
                     "records busy\n"
                     "  state 0 0..2 acked 1, s0..2 2 held, groups 0+1, 20936 bytes 49152 memory, "
                     "2 records busy\n"
                     "COMMIT s0 504..600\n"
                     "  state 0 0..2 acked 1, s0..2 2 held, groups 0+1, 20968 bytes 49152 memory, "
                     "2 records busy\n"
                     "CLOSE s0 600 from 0 to 1 max 7000 written 1003000 state 4\n"
                     "COMMIT s1 264..20400\n"
                     "  state 0 0..2 acked 1, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, "
                     "2 records busy\n"
                     "  state 0 0..2 acked 1, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, "
                     "2 records busy\n"
                     "acked 2\n"
                     "append 3: OK at 1\n"
                     "  state 0 0..2 acked 2, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, "
                     "2 records\n");
        watch_end(fake);
    }
}

/* Goal: the pace of rolling says how large the next segment is, and whether it is reserved ahead. */
static void pace_of_rolling_sizes_segments(void **state)
{
    (void)state;
    static const uint64_t lasts_ms[] = {500, 999, 1000, 30000, 64000, 64001,
                                        900, 900, 900,  900,   900};
    struct fake *fake = watch_begun(LEAT_DURABILITY_MEMORY);
    char text[2048];
    size_t used = 0;
    for (unsigned i = 0; i < sizeof lasts_ms / sizeof *lasts_ms; i++) {
        uint64_t before = fake->log->next_segment;
        fake->now_us = fake->log->rolled_us + lasts_ms[i] * 1000;
        while (fake->log->next_segment == before) {
            if (put(fake, 1, 30000) == LEAT_E_AGAIN) fake_settle(fake);
            fake_settle(fake);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%llu ms: %u%s, next %u\n",
                                 (unsigned long long)lasts_ms[i], fake->log->head.seg->capacity,
                                 fake->log->rolling_fast ? " fast" : "", fake->log->roll_capacity);
        trace_begin();
    }
    trace("%s", text);
    TRACE_IS("500 ms: 32768 fast, next 65536\n"
             "999 ms: 65536 fast, next 131072\n"
             "1000 ms: 131072, next 65536\n"
             "30000 ms: 65536, next 131072\n"
             "64000 ms: 131072, next 65536\n"
             "64001 ms: 65536, next 32768\n"
             "900 ms: 32768 fast, next 262144\n"
             "900 ms: 262144 fast, next 131072\n"
             "900 ms: 131072 fast, next 1048576\n"
             "900 ms: 1048576 fast, next 524288\n"
             "900 ms: 524288 fast, next 4194304\n");
    watch_end(fake);
}

/* ---- care ---- */

/* Goal: a head that nobody appends to is hibernated, when nothing is under way with it, and resumed by the next
 * append. */
static void idle_head_is_hibernated_and_resumed(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct fake *fake = watch_begun((enum leat_durability)level);
        fake->now_us = fake->log->gathered_us + 10 * 1000 * 1000 - 1;
        leat_log_care(fake->log);
        fake_settle(fake);
        trace("not yet\n");
        fake->now_us = fake->log->gathered_us + 10 * 1000 * 1000;
        leat_log_care(fake->log);
        fake_settle(fake);
        state_trace(fake);
        leat_log_care(fake->log); /* it is */
        fake_settle(fake);
        (void)put(fake, 1, 100);
        state_trace(fake);
        deliver(fake);
        (void)put(fake, 1, 100);
        fake_settle(fake);
        state_trace(fake);
        if (level == LEAT_DURABILITY_MEMORY)
            TRACE_IS("not yet\n"
                     "HIBERNATE s0 504 from 0 to 1\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 0 memory, 1 "
                     "records hibernated\n"
                     "append 2: AGAIN\n"
                     "RESUME s0 cap 16384\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 0 memory, 1 "
                     "records hibernated busy wants room\n"
                     "room\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records\n"
                     "acked 2\n"
                     "append 3: OK at 1\n"
                     "  state 0 0..2 acked 2, s0..1 1 held, groups 0+1, 744 bytes 16384 memory, 2 "
                     "records\n");
        else
            TRACE_IS("COMMIT s0 504..536\n"
                     "not yet\n"
                     "HIBERNATE s0 536 from 0 to 1\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 536 bytes 0 memory, 1 "
                     "records hibernated\n"
                     "append 2: AGAIN\n"
                     "RESUME s0 cap 16384\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 536 bytes 0 memory, 1 "
                     "records hibernated busy wants room\n"
                     "room\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 536 bytes 16384 memory, 1 "
                     "records\n"
                     "COMMIT s0 536..776\n"
                     "acked 2\n"
                     "append 3: OK at 1\n"
                     "  state 0 0..2 acked 2, s0..1 1 held, groups 0+1, 776 bytes 16384 memory, 2 "
                     "records\n");
        watch_end(fake);
    }
}

/* Goal: each thing that speaks against hibernating, by itself. */
static void head_with_something_to_do_is_not_hibernated(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct fake *fake = watch_begun(LEAT_DURABILITY_MEMORY);
        struct leat_log *log = fake->log;
        fake->now_us += 20 * 1000 * 1000;
        if (i == 1) log->opened = LOG_UNOPENED;
        if (i == 2) log->room_wanted = true;
        if (i == 3) log->roll_wanted = true;
        if (i == 4) log->helper_busy[LOG_HELPERS - 1] = true;
        if (i == 5) log->head.acked_bytes--;
        if (i == 6) leat_segment_pin(log->head.seg);
        if (i == 7) log->helper_busy[0] = true;
        leat_log_care(log);
        assert_int_equal(log->hibernating == LOG_HIBERNATING, i == 0);
        assert_int_equal(log_slot_at(log, 0)->mail_due, i == 6);
        log->opened = LOG_OPENED;
        log->room_wanted = log->roll_wanted = false;
        log->helper_busy[LOG_HELPERS - 1] = log->helper_busy[0] = false;
        if (i == 5) log->head.acked_bytes++;
        if (i == 6) leat_log_care(log); /* asks no second time before the mail has come */
        if (i == 6) leat_segment_unpin(log->head.seg, &fake->post);
        if (i == 6) leat_log_care(log);
        assert_int_equal(log->hibernating == LOG_HIBERNATING, i == 0);
        fake_settle(fake);
        assert_int_equal(log->hibernating == LOG_HIBERNATED, i == 0);
        leat_log_care(log);
        fake_settle(fake);
        assert_int_equal(log->hibernating, LOG_HIBERNATED);
        watch_end(fake);
        trace_begin();
    }
}

/* Goal: the store port is asked what it wants of a head, and of which; the head is rolled, resumed, or left for that.
 * */
static void store_port_is_asked_about_the_head(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
        fake->open_at_once = true;
        fake->store_port.roll_wanted = watch_roll_wanted;
        fake->store_port.copy_wanted = watch_copy_wanted;
        fake->store_port.in_the_way = watch_in_the_way;
        fake_open(fake, NULL, 0, NULL);
        leat_log_care(fake->log); /* no head */
        fake_settle(fake);
        TRACE_IS("");
        (void)put(fake, 1, 100);
        fake_settle(fake);
        (void)put(fake, 1, 100);
        fake_settle(fake);
        trace_begin();
        watched.roll_wanted = way == 1;
        watched.in_the_way = way == 2;
        fake->now_us += way == 3 ? 20 * 1000 * 1000 : 1000 * 1000;
        leat_log_care(fake->log);
        if (way == 2) watched.in_the_way = false; /* of the successor */
        fake_settle(fake);
        state_trace(fake);
        if (way == 3) watched.copy_wanted = true;
        leat_log_care(fake->log);
        fake_settle(fake);
        state_trace(fake);
        if (way == 0)
            TRACE_IS("roll s0?\n"
                     "in the way s0?\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records\n"
                     "roll s0?\n"
                     "in the way s0?\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records\n");
        else if (way == 1)
            TRACE_IS("roll s0?\n"
                     "in the way s0?\n"
                     "RESERVE s1 1/0/0 e7 cap 16384 d1\n"
                     "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
                     "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 32768 memory, 1 "
                     "records\n"
                     "roll s1?\n"
                     "in the way s1?\n"
                     "RESERVE s2 1/0/0 e7 cap 16384 d1\n"
                     "CLOSE s1 360 from 1 to 1 max -9223372036854775808 written 1001000 state 4\n"
                     "  state 0 0..1 acked 1, s0..3 3 held, groups 0+1, 1224 bytes 49152 memory, 1 "
                     "records\n");
        else if (way == 2)
            TRACE_IS("roll s0?\n"
                     "in the way s0?\n"
                     "RESERVE s1 1/0/0 e7 cap 16384 d1\n"
                     "in the way s1?\n"
                     "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
                     "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 32768 memory, 1 "
                     "records\n"
                     "roll s1?\n"
                     "in the way s1?\n"
                     "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 32768 memory, 1 "
                     "records\n");
        else
            TRACE_IS("roll s0?\n"
                     "copy s0?\n"
                     "HIBERNATE s0 504 from 0 to 1\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 0 memory, 1 "
                     "records hibernated\n"
                     "roll s0?\n"
                     "copy s0?\n"
                     "RESUME s0 cap 16384\n"
                     "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 "
                     "records\n");
        watch_end(fake);
    }
}

/* ---- the end ---- */

static void on_end(void *arg, struct leat_log *log)
{
    trace("ended\n");
    fake_on_end(arg, log);
}

/* Goal: a stop takes no more appends, and ends when all is safe and the head hibernated; then it may go on. */
static void stop_ends_with_a_hibernated_head(void **state)
{
    (void)state;
    struct fake *fake = watch_begun(LEAT_DURABILITY_DISK);
    (void)put(fake, 1, 100);
    leat_log_stop(fake->log, on_end, fake);
    fake_turn_end(fake);
    (void)put(fake, 1, 100);
    while (fake->queued && !fake->ended)
        deliver(fake);
    TRACE_IS(
        "COMMIT s0 504..744\n"
        "append 3: STARTING\n"
        "acked 2\n"
        "append 2: OK at 1\n"
        "HIBERNATE s0 744 from 0 to 2\n"
        "  state 0 0..2 acked 2, s0..1 1 held, groups 0+1, 744 bytes 16384 memory, 2 records busy\n"
        "ended\n"
        "  state 0 0..2 acked 2, s0..1 1 held, groups 0+1, 744 bytes 0 memory, 2 records "
        "hibernated\n");
    assert_true(fake->ended);
    fake->ended = false;
    leat_log_go_on(fake->log);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    TRACE_IS("append 4: AGAIN\n"
             "RESUME s0 cap 16384\n"
             "room\n"
             "COMMIT s0 744..984\n"
             "acked 3\n"
             "append 5: OK at 2\n");
    leat_log_stop(fake->log, on_end, fake);
    fake_turn_end(fake);
    leat_log_abandon(fake->log);
    fake_settle(fake);
    TRACE_IS("HIBERNATE s0 984 from 0 to 3\n"
             "ended\n");
    fake->ended = false;
    watch_end(fake);
}

/* Goal: a deleted log fails what waits, drops all of its segments and its reservation, and is gone. */
static void deleted_log_drops_everything(void **state)
{
    (void)state;
    struct fake *fake = watch_begun(LEAT_DURABILITY_DISK);
    while (put(fake, 1, 20000) == LEAT_OK)
        fake_settle(fake);
    fake_settle(fake);
    (void)put(fake, 1, 20000);
    trace_begin();
    fake->ended = false;
    leat_log_delete(fake->log, on_end, fake);
    fake_turn_end(fake);
    while (fake->queued && !fake->ended)
        deliver(fake);
    TRACE_IS("DROP s0\n"
             "append 3: UNKNOWN_STREAM at 1\n"
             "DROP s2\n"
             "acked 2\n"
             "DROP s1\n"
             "  state 0 0..2 acked 2, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 2 records busy\n"
             "  state 0 0..2 acked 2, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 2 records busy\n"
             "  state 0 0..2 acked 2, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 2 records busy\n"
             "ended\n"
             "  state 0 0..2 acked 2, s0..0 0 held, groups 0+0, 0 bytes 0 memory, 2 records\n");
    assert_int_equal(fake->held_count, 0);
    leat_log_destroy(&fake->log);
    watch_end(fake);
}

/* Goal: a released log takes no appends, and gives its segments up, newest first, once nobody holds them. */
static void released_log_gives_its_segments_up(void **state)
{
    (void)state;
    struct fake *fake = watch_begun(LEAT_DURABILITY_DISK);
    while (put(fake, 1, 20000) == LEAT_OK)
        fake_settle(fake);
    fake_settle(fake);
    (void)put(fake, 1, 20000);
    trace_begin();
    fake->ended = false;
    struct leat_segment *pinned = fake->log->head.seg;
    leat_segment_pin(pinned);
    leat_log_release(fake->log, on_end, fake);
    fake_turn_end(fake);
    while (fake->queued && !fake->ended)
        deliver(fake);
    TRACE_IS(
        "append 3: STALE_EPOCH at 1\n"
        "DROP s2\n"
        "acked 2\n"
        "  state 0 0..2 acked 2, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, 2 records "
        "busy\n"
        "  state 0 0..2 acked 2, s0..2 2 held, groups 0+1, 21000 bytes 49152 memory, 2 records\n");
    assert_false(fake->ended);
    assert_int_equal(put(fake, 1, 100), LEAT_E_STARTING);
    TRACE_IS("append 4: STARTING\n");
    leat_segment_unpin(pinned, &fake->post);
    while (fake->queued && !fake->ended)
        (void)fake_deliver(fake);
    const struct leat_segment *seg;
    while ((seg = leat_log_segment_pop(fake->log)) != NULL)
        trace("s%llu state %u, the log's: %d\n", (unsigned long long)seg->id.v,
              (unsigned)seg->state, seg->log_pointer != NULL);
    TRACE_IS("ended\n"
             "s1 state 2, the log's: 0\n"
             "s0 state 4, the log's: 0\n");
    leat_log_destroy(&fake->log);
    watch_end(fake);
}

/* ---- what fails ---- */

/* Each request of that kind fails, from the head's roll on; then two appends, a second apart. */
static void fails(enum leat_store_req_kind kind, leat_err rc)
{
    struct fake *fake = watch_begun(LEAT_DURABILITY_DISK);
    char why[256];
    fake->fail_rc = rc;
    fake->fail_kinds = 1u << kind;
    for (unsigned k = 0; k < 3 && fake->log->state == LEAT_LOG_SERVING; k++) {
        (void)put(fake, 1, 20000);
        bool more = true;
        while (more && fake->log->state == LEAT_LOG_SERVING) {
            fake->fail_request_at = fake->requests + 1;
            more = fake_deliver(fake) &&
                   kind != LEAT_STORE_RESERVE; /* once: it may be tried at once */
        }
        if (kind == LEAT_STORE_RESERVE) break;
    }
    fake->fail_kinds = 0;
    fake_settle(fake);
    trace_begin();
    leat_err told = leat_log_trouble(fake->log, why, sizeof why);
    trace("%s \"%s\"%s\n", leat_err_name(told), why,
          leat_log_lacks_space(fake->log) ? " lacks space" : "");
    state_trace(fake);
    watch_count = 0;
    (void)put(fake, 1, 20000);
    fake_settle(fake);
    fake->now_us += 1000 * 1000;
    (void)put(fake, 1, 20000);
    fake_settle(fake);
    state_trace(fake);
    watch_end(fake);
}

/* Goal: a segment that can't be had is a pause of a second where that may change, and the end where not. */
static void reserve_that_fails_is_told_by_name(void **state)
{
    (void)state;
    fails(LEAT_STORE_RESERVE, LEAT_E_DISK_FULL);
    TRACE_IS(
        "OK \"\" lacks space\n"
        "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 records\n"
        "append 0: DISK_FULL\n"
        "append 1: AGAIN\n"
        "RESERVE s1 1/0/0 e7 cap 32768 d2\n"
        "COMMIT s1 0..264\n"
        "room\n"
        "COMMIT s0 504..600\n"
        "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n");
    fails(LEAT_STORE_RESERVE, LEAT_E_NO_MEMORY);
    TRACE_IS(
        "OK \"\"\n"
        "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 records wants "
        "room\n"
        "append 0: AGAIN\n"
        "append 1: AGAIN\n"
        "RESERVE s1 1/0/0 e7 cap 32768 d2\n"
        "COMMIT s1 0..264\n"
        "room\n"
        "COMMIT s0 504..600\n"
        "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n");
    fails(LEAT_STORE_RESERVE, LEAT_E_TOO_FEW_COPIES);
    TRACE_IS(
        "OK \"\"\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 114688 memory, 1 records\n"
        "COMMIT s1 264..20400\n"
        "acked 2\n"
        "append 0: OK at 1\n"
        "append 1: AGAIN\n"
        "COMMIT s2 0..264\n"
        "room\n"
        "COMMIT s1 20400..20496\n"
        "CLOSE s1 20496 from 1 to 2 max 7000 written 1001000 state 4\n"
        "  state 0 0..2 acked 2, s0..3 3 held, groups 0+1, 21360 bytes 114688 memory, 2 records\n");
    fails(LEAT_STORE_RESERVE, LEAT_E_DISK);
    TRACE_IS(
        "DISK \"reserving a segment failed (the disk failed a read, write or flush), which is "
        "final\"\n"
        "  state 3 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 records\n"
        "append 0: DISK\n"
        "append 1: DISK\n"
        "  state 3 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 records\n");
}

/* Goal: a commit or close that fails is final; where other nodes refuse this owner, the reason of the log says so. */
static void commit_or_close_that_fails_is_final(void **state)
{
    (void)state;
    fails(LEAT_STORE_COMMIT, LEAT_E_STALE_EPOCH);
    TRACE_IS(
        "DISK \"other nodes refuse this owner: the log is another node's now, or this node was "
        "declared crashed\"\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 832 bytes 49152 memory, 1 records\n"
        "append 0: STALE_EPOCH\n"
        "append 1: STALE_EPOCH\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 832 bytes 49152 memory, 1 records\n");
    fails(LEAT_STORE_COMMIT, LEAT_E_DISK);
    TRACE_IS(
        "DISK \"a flush of the log's head failed (the disk failed a read, write or flush), which "
        "is final\"\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 832 bytes 49152 memory, 1 records\n"
        "append 0: DISK\n"
        "append 1: DISK\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 832 bytes 49152 memory, 1 records\n");
    fails(LEAT_STORE_CLOSE, LEAT_E_DISK);
    TRACE_IS(
        "DISK \"recording a closed segment failed (the disk failed a read, write or flush), which "
        "is final\"\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n"
        "append 0: DISK\n"
        "append 1: DISK\n"
        "  state 3 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(first_batch_waits_for_each_step_of_opening),
        TRACE_TEST(copies_are_asked_for_and_sent_ahead),
        TRACE_TEST(commits_on_disk_follow_each_other),
        TRACE_TEST(roll_goes_step_by_step),
        TRACE_TEST(pace_of_rolling_sizes_segments),
        TRACE_TEST(idle_head_is_hibernated_and_resumed),
        TRACE_TEST(head_with_something_to_do_is_not_hibernated),
        TRACE_TEST(store_port_is_asked_about_the_head),
        TRACE_TEST(stop_ends_with_a_hibernated_head),
        TRACE_TEST(deleted_log_drops_everything),
        TRACE_TEST(released_log_gives_its_segments_up),
        TRACE_TEST(reserve_that_fails_is_told_by_name),
        TRACE_TEST(commit_or_close_that_fails_is_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
