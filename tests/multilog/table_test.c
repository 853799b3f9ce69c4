/* SPDX-License-Identifier: Apache-2.0 */
/* What a log tells of its table of segments: what is lost and damaged of it, in words and in numbers, what is given
 * up of that, and which offsets each group has. The table is made up; nothing of it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watch.h"

struct row {
    uint64_t id, base, next;
};

/* A log of these closed segments, which ends behind them, or later. */
static struct fake *log_of_rows(const struct row *rows, size_t count, uint64_t next_segment,
                                uint64_t next_offset)
{
    struct fake *fake = watch(LEAT_DURABILITY_DISK);
    struct leat_segment *segs[64];
    for (size_t i = 0; i < count; i++) {
        struct leat_segment *seg = segs[i] = calloc(1, sizeof *seg);
        *seg = (struct leat_segment){.id = {rows[i].id},
                                     .state = LEAT_SEGMENT_CLOSED,
                                     .capacity = 65536,
                                     .flushed = true,
                                     .base_offset = rows[i].base,
                                     .next_offset = rows[i].next,
                                     .prefix_id = {100, 1}};
        fake->held[fake->held_count++] =
            (struct fake_held){.seg = seg, .file = fake_buffer(65536), .closed_row = true};
    }
    struct leat_log_tail tail = {.next_segment = next_segment, .next_offset = next_offset};
    fake_open(fake, segs, count, &tail);
    fake->made_up = true;
    fake->log->restored = LOG_UNLOADED; /* as if it had been looked up */
    return fake;
}

static void end(struct fake *fake)
{
    fake->log->restored = LOG_WARM;
    watch_end(fake);
}

static void trouble_trace(struct fake *fake)
{
    char words[256];
    leat_err rc = leat_log_trouble(fake->log, words, sizeof words);
    trace("%s \"%s\"\n", leat_err_name(rc), words);
}

static void rot(struct fake *fake, uint32_t at)
{
    struct log_slot *slot = log_slot_at(fake->log, at);
    slot->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    fake->log->damage_look = true;
    slot->repair = LOG_REPAIR_LOST;
}

/* Segments 2, 3, 5, 8 of ten records each; 4 is missing, and 6 and 7, and what came behind 8. */
static const struct row holed[] = {{2, 20, 30}, {3, 30, 40}, {5, 50, 60}, {8, 80, 90}};
enum { HOLED = sizeof holed / sizeof *holed };

/* Goal: each place is told by what is wrong there and where it is, two of them in words. */
static void places_are_told_in_words(void **state)
{
    (void)state;
    struct fake *fake = log_of_rows(holed, 2, 4, 40);
    trouble_trace(fake);
    rot(fake, 1);
    trouble_trace(fake);
    fake->log->first_offset = 35; /* what is before that is given up anyhow */
    trouble_trace(fake);
    rot(fake, 0);
    fake->log->first_offset = 20;
    trouble_trace(fake);
    log_slot_at(fake->log, 0)->given_up = true;
    trouble_trace(fake);
    log_slot_at(fake->log, 0)->given_up = false;
    log_slot_at(fake->log, 0)->dropping = true;
    trouble_trace(fake);
    log_slot_at(fake->log, 0)->dropping = false;
    log_slot_at(fake->log, 0)->repair = LOG_REPAIR_NONE; /* others are asked */
    trouble_trace(fake);
    TRACE_IS("OK \"\"\n"
             "DAMAGED \"segment 3 with offsets 30 to 39 is damaged\"\n"
             "DAMAGED \"segment 3 with offsets 35 to 39 is damaged\"\n"
             "DAMAGED \"segment 2 with offsets 20 to 29 is damaged, segment 3 with offsets 30 to "
             "39 is damaged\"\n"
             "DAMAGED \"segment 3 with offsets 30 to 39 is damaged\"\n"
             "DAMAGED \"segment 3 with offsets 30 to 39 is damaged\"\n"
             "DAMAGED \"segment 3 with offsets 30 to 39 is damaged\"\n");
    end(fake);
    fake = log_of_rows(holed, 3, 6, 60);
    trouble_trace(fake);
    end(fake);
    fake = log_of_rows(holed, HOLED, 9, 90);
    trouble_trace(fake);
    end(fake);
    fake = log_of_rows(holed, HOLED, 10, 100);
    trouble_trace(fake);
    fake->log->first_segment = fake->log->first_offset = 0;
    trouble_trace(fake);
    rot(fake, 2);
    trouble_trace(fake);
    end(fake);
    static const struct row cut[] = {{0, 0, 8}, {1, 10, 20}}; /* the end of 0 was cut off */
    fake = log_of_rows(cut, 2, 2, 20);
    trouble_trace(fake);
    TRACE_IS("DAMAGED \"segment 4 with offsets 40 to 49 is missing\"\n"
             "DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with offsets "
             "60 to 79 are missing\"\n"
             "DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with offsets "
             "60 to 79 are missing, and 1 places more\"\n"
             "DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segment 4 with offsets "
             "40 to 49 is missing, and 2 places more\"\n"
             "DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segment 4 with offsets "
             "40 to 49 is missing, and 3 places more\"\n"
             "DAMAGED \"offsets 8 to 9 are damaged\"\n");
    end(fake);
}

/* Goal: missing segments before the log's begin are no damage, though earlier segments are still there. */
static void gap_in_front_of_a_trim_is_not_told(void **state)
{
    (void)state;
    static const uint64_t firsts[] = {20, 45, 55, 65, 79, 80, 83};
    struct fake *fake = log_of_rows(holed, HOLED, 9, 90);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        fake->log->first_offset = firsts[i];
        fake->log->damage_look = true;
        trouble_trace(fake);
    }
    TRACE_IS("DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with offsets "
             "60 to 79 are missing\"\n"
             "DAMAGED \"segment 4 with offsets 45 to 49 is missing, segments 6 to 7 with offsets "
             "60 to 79 are missing\"\n"
             "DAMAGED \"segments 6 to 7 with offsets 60 to 79 are missing\"\n"
             "DAMAGED \"segments 6 to 7 with offsets 65 to 79 are missing\"\n"
             "DAMAGED \"segments 6 to 7 with offsets 79 to 79 are missing\"\n"
             "OK \"\"\n"
             "OK \"\"\n");
    end(fake);
}

/* Goal: a log that takes no appends is named for that alone; segments that are to come, or were given up, are no
 * damage. */
static void what_comes_or_was_given_up_is_not_told(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 12; way++) {
        struct fake *fake = log_of_rows(holed, HOLED, 10, 100);
        struct leat_log *log = fake->log;
        log->first_segment = log->first_offset = 0;
        trace("%u: ", way);
        if (way == 1) log->backfill = LOG_BACKFILL_FOLLOWS;
        if (way == 2) log->backfill = LOG_BACKFILL_FOLLOWS, log->holes = true;
        if (way == 3) log->restored = LOG_FRONT_UNKNOWN;
        if (way == 4) log_slot_at(log, 2)->front_given_up = true;
        if (way == 5) log_slot_at(log, 2)->joint = LOG_JOINT_JUMPED;
        if (way == 6) log->jumped = true;
        if (way == 7) log_slot_at(log, 0)->seg->base_offset = UINT64_C(3) << 40;
        if (way == 8) log_slot_at(log, 2)->joint = LOG_JOINT_CHAINED;
        if (way == 9) leat_log_set_state(log, LEAT_LOG_WAITING, "it waits");
        if (way == 10) leat_log_set_state(log, LEAT_LOG_DAMAGED, "it is damaged");
        if (way == 11) leat_log_set_state(log, LEAT_LOG_STOPPED, "it has stopped");
        trouble_trace(fake);
        log->state = LEAT_LOG_SERVING;
        log->restored = LOG_UNLOADED;
        end(fake);
    }
    TRACE_IS("0: DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segment 4 with "
             "offsets 40 to 49 is missing, and 2 places more\"\n"
             "1: DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with "
             "offsets 60 to 79 are missing, and 1 places more\"\n"
             "2: OK \"\"\n"
             "3: DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with "
             "offsets 60 to 79 are missing, and 1 places more\"\n"
             "4: DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segments 6 to 7 with "
             "offsets 60 to 79 are missing, and 1 places more\"\n"
             "5: DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segments 6 to 7 with "
             "offsets 60 to 79 are missing, and 1 places more\"\n"
             "6: DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segment 4 with "
             "offsets 40 to 49 is missing, and 1 places more\"\n"
             "7: DAMAGED \"segment 4 with offsets 40 to 49 is missing, segments 6 to 7 with "
             "offsets 60 to 79 are missing, and 1 places more\"\n"
             "8: DAMAGED \"segments 0 to 1 with offsets 0 to 19 are missing, segment 4 with "
             "offsets 40 to 49 is missing, and 2 places more\"\n"
             "9: LOG_INCOMPLETE \"it waits\"\n"
             "10: DAMAGED \"it is damaged\"\n"
             "11: DISK \"it has stopped\"\n");
}

/* Goal: where nothing is wrong the table is not walked again until something may be. */
static void table_is_walked_only_where_something_may_be_wrong(void **state)
{
    (void)state;
    struct fake *fake = log_of_rows(holed, 2, 4, 40);
    struct leat_log *log = fake->log;
    for (unsigned way = 0; way < 4; way++) {
        log->damage_look = true;
        log->restored = way == 1 ? LOG_FRONT_UNKNOWN : LOG_UNLOADED;
        log->backfill = way == 2 ? LOG_BACKFILL_FOLLOWS : LOG_BACKFILL_NONE;
        if (way == 3) rot(fake, 0);
        size_t used = trace_used;
        trouble_trace(fake);
        trace_text[trace_used = used] = '\0';
        assert_int_equal(log->damage_look, way != 0);
    }
    log->restored = LOG_UNLOADED;
    log->damage_look = false;
    trouble_trace(fake); /* nobody has said that it has */
    TRACE_IS("OK \"\"\n");
    end(fake);
}

/* ---- giving up ---- */

static void on_skipped(void *arg, struct leat_log *log)
{
    (void)log;
    trace("skipped\n");
    *(bool *)arg = true;
}

static void skip_missing(struct fake *fake)
{
    bool told = false;
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_true(told);
    assert_int_equal(fake->log->reads_in_flight, 0);
}

/* Goal: each place is given up by the row of its segment, one after the other, and then what was passed over. */
static void each_place_is_given_up_by_its_row(void **state)
{
    (void)state;
    struct fake *fake = log_of_rows(holed, HOLED, 9, 90);
    rot(fake, 1);
    rot(fake, 3);
    for (uint32_t i = 0; i < 3; i += 2) {
        log_slot_at(fake->log, i)->seg->passed_bytes = 7 + i;
        fake->log->passed_look = true;
    }
    fake->log->restored = LOG_WARM;
    skip_missing(fake);
    trouble_trace(fake);
    for (uint32_t i = 0; i < HOLED; i++) {
        const struct log_slot *slot = log_slot_at(fake->log, i);
        trace("s%llu%s%s passed %u reads %u\n", (unsigned long long)slot->seg->id.v,
              slot->given_up ? " given up" : "", slot->front_given_up ? " and its front" : "",
              slot->seg->passed_bytes, slot->file_reads);
    }
    skip_missing(fake); /* nothing is left */
    TRACE_IS("GIVE_UP s3 it passed 0\n"
             "GIVE_UP s5 its front passed 9\n"
             "GIVE_UP s8 its front passed 0\n"
             "GIVE_UP s8 it passed 0\n"
             "GIVE_UP s2 passed 0\n"
             "GIVE_UP s5 passed 0\n"
             "skipped\n"
             "OK \"\"\n"
             "s2 passed 0 reads 0\n"
             "s3 given up passed 0 reads 0\n"
             "s5 and its front passed 0 reads 0\n"
             "s8 given up and its front passed 0 reads 0\n"
             "skipped\n");
    end(fake);
}

/* Goal: a row that can't be written ends the skipping; bytes that were passed over do not count as seen then. */
static void row_that_can_not_be_written_gives_up_nothing(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct fake *fake = log_of_rows(holed, 2, 4, 40);
        struct leat_log_passed passed;
        if (way == 0) rot(fake, 1);
        log_slot_at(fake->log, 0)->seg->passed_bytes = 7;
        fake->log->passed_look = true;
        fake->log->restored = LOG_WARM;
        fake->fail_request_at = 1;
        fake->fail_rc = LEAT_E_DISK;
        fake->fail_kinds = 1u << LEAT_STORE_GIVE_UP;
        skip_missing(fake);
        trouble_trace(fake);
        leat_log_passed_over(fake->log, &passed);
        trace("%llu bytes in %llu, s%llu to %llu\n", (unsigned long long)passed.bytes,
              (unsigned long long)passed.segments, (unsigned long long)passed.segment,
              (unsigned long long)passed.next_offset);
        assert_false(log_slot_at(fake->log, 1)->given_up);
        skip_missing(fake); /* again */
        leat_log_passed_over(fake->log, &passed);
        assert_int_equal(passed.bytes, 0);
        end(fake);
    }
    TRACE_IS("GIVE_UP s3 it passed 0\n"
             "skipped\n"
             "DAMAGED \"segment 3 with offsets 30 to 39 is damaged\"\n"
             "7 bytes in 1, s2 to 30\n"
             "GIVE_UP s3 it passed 0\n"
             "GIVE_UP s2 passed 0\n"
             "skipped\n"
             "GIVE_UP s2 passed 0\n"
             "skipped\n"
             "OK \"\"\n"
             "7 bytes in 1, s2 to 30\n"
             "GIVE_UP s2 passed 0\n"
             "skipped\n");
}

/* Goal: damage that can't be given up now is left: in a segment that goes, or that the store works on. Of a damaged log
 * only the last segment is given up. */
static void what_goes_is_not_given_up(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 5; way++) {
        struct fake *fake = log_of_rows(holed, 2, 4, 40);
        struct leat_log *log = fake->log;
        rot(fake, 0);
        rot(fake, 1);
        log->restored = LOG_WARM;
        trace("%u\n", way);
        if (way == 1) log_slot_at(log, 0)->changing = true;
        if (way == 2) log_slot_at(log, 0)->dropping = true;
        if (way == 3) leat_log_set_state(log, LEAT_LOG_DAMAGED, "it is damaged");
        if (way == 4) leat_log_set_state(log, LEAT_LOG_WAITING, "it waits");
        skip_missing(fake);
        log_slot_at(log, 0)->changing = log_slot_at(log, 0)->dropping = false;
        log->state = LEAT_LOG_SERVING;
        end(fake);
    }
    TRACE_IS("0\n"
             "GIVE_UP s2 it passed 0\n"
             "GIVE_UP s3 it passed 0\n"
             "skipped\n"
             "1\n"
             "GIVE_UP s3 it passed 0\n"
             "skipped\n"
             "2\n"
             "GIVE_UP s3 it passed 0\n"
             "skipped\n"
             "3\n"
             "GIVE_UP s3 it passed 0\n"
             "skipped\n"
             "4\n"
             "skipped\n");
}

/* ---- numbers ---- */

/* Goal: how many offsets are lost, as a look at each of them says, for tables made up by chance. */
static void lost_offsets_are_those_that_no_segment_has(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 17);
    for (unsigned round = 0; round < 2000; round++) {
        struct row rows[12];
        size_t count = 0;
        uint64_t offset = leat_xoshiro_below(&random, 5), acked;
        bool follow = leat_xoshiro_below(&random, 3) == 0, holes = leat_xoshiro_below(&random, 2);
        uint64_t most = 1 + leat_xoshiro_below(&random, 11);
        for (uint64_t id = 0; id < most; id++) {
            uint64_t next = offset + leat_xoshiro_below(&random, 6);
            if (leat_xoshiro_below(&random, 4)) rows[count++] = (struct row){id, offset, next};
            offset = next;
        }
        acked = offset + leat_xoshiro_below(&random, 3);
        if (count == 0) continue;
        struct fake *fake = log_of_rows(rows, count, most, acked);
        fake->log->first_offset = leat_xoshiro_below(&random, acked + 1);
        fake->log->backfill = follow ? LOG_BACKFILL_FOLLOWS : LOG_BACKFILL_NONE;
        fake->log->holes = holes;
        uint64_t lost = 0;
        for (uint64_t at = fake->log->first_offset; at < acked; at++) {
            bool here = false;
            size_t behind = 0; /* the first segment that begins behind it */
            while (behind < count && rows[behind].base <= at)
                behind++;
            for (size_t i = 0; i < count; i++)
                here |= rows[i].base <= at && at < rows[i].next;
            bool comes = follow && behind < count && (behind == 0 || holes);
            lost += !here && !comes;
        }
        assert_int_equal(leat_log_offsets_lost(fake->log), lost);
        fake->log->backfill = LOG_BACKFILL_NONE, fake->log->holes = false;
        end(fake);
    }
    trace_begin();
}

/* Goal: where each group begins and ends: of segments that are here, of one of which none is, of the one to come. */
static void groups_begin_and_end_with_their_segments(void **state)
{
    (void)state;
    enum { PER = LEAT_SEGMENTS_PER_GROUP };
    const struct row rows[] = {{1, 10, 20},       {PER - 1, 30, 40},  {PER, 40, 50},
                               {PER + 3, 50, 60}, {3 * PER, 90, 100}, {4 * PER - 1, 110, 120}};
    struct fake *fake = log_of_rows(rows, 6, 4 * PER, 120);
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t group = 0; group < 6; group++) {
            uint64_t first = 0, last = 0;
            leat_err rc = leat_log_group(fake->log, group, &first, &last);
            trace("%llu: %s", (unsigned long long)group, leat_err_name(rc));
            if (!rc) trace(" %llu..%lld", (unsigned long long)first, (long long)last);
            trace("\n");
        }
        fake->log->first_segment = PER + 3; /* the second time: the front is given up */
        fake->log->first_offset = 55;
    }
    TRACE_IS("0: OK 10..40\n"
             "1: OK 40..90\n"
             "2: OK 90..90\n"
             "3: OK 90..120\n"
             "4: OK 120..-1\n"
             "5: NOT_FOUND\n"
             "0: NOT_FOUND\n"
             "1: OK 55..90\n"
             "2: OK 90..90\n"
             "3: OK 90..120\n"
             "4: OK 120..-1\n"
             "5: NOT_FOUND\n");
    end(fake);
}

/* Goal: segments are found by their ids, whichever are there. */
static void segments_are_found_by_their_ids(void **state)
{
    (void)state;
    struct fake *fake = log_of_rows(holed, HOLED, 9, 90);
    for (uint64_t id = 0; id < 11; id++) {
        const struct log_slot *slot = log_slot_find(fake->log, id);
        trace("%u%s ", log_slot_from(fake->log, id), slot ? "!" : "");
        assert_true(!slot || slot->seg->id.v == id);
    }
    trace("\n");
    TRACE_IS("0 0 0! 1! 2 2! 3 3 3! 4 4 \n");
    end(fake);
}

/* Goal: the segments that may have their buffers back, and those that may not. */
static void buffer_is_given_back_where_the_file_has_it(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 6; way++) {
        struct fake *fake = log_of_rows(holed, 2, 4, 40);
        struct leat_log *log = fake->log;
        struct log_slot *slot = log_slot_at(log, 1);
        struct leat_segment other = *slot->seg, *seg = slot->seg;
        seg->buffer = way == 1 ? NULL : fake_buffer(65536);
        seg->flushed = way != 2;
        slot->closed = way != 3;
        slot->changing = way == 4;
        log->memory_bytes = 65536;
        log->restored = LOG_WARM;
        other.id.v = way == 5 ? 77 : 3; /* of another log, or gone */
        leat_log_on_evict_wanted(log, &other);
        assert_false(slot->evicting);
        leat_log_on_evict_wanted(log, seg);
        slot->changing = false;
        fake_settle(fake);
        trace("%u: %s, %llu bytes\n", way, seg->buffer ? "there" : "gone",
              (unsigned long long)log->memory_bytes);
        slot->closed = true;
        end(fake);
    }
    TRACE_IS("EVICT s3\n"
             "0: gone, 0 bytes\n"
             "1: gone, 65536 bytes\n"
             "2: there, 65536 bytes\n"
             "3: there, 65536 bytes\n"
             "4: there, 65536 bytes\n"
             "EVICT s3\n"
             "5: gone, 0 bytes\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(places_are_told_in_words),
        TRACE_TEST(gap_in_front_of_a_trim_is_not_told),
        TRACE_TEST(what_comes_or_was_given_up_is_not_told),
        TRACE_TEST(table_is_walked_only_where_something_may_be_wrong),
        TRACE_TEST(each_place_is_given_up_by_its_row),
        TRACE_TEST(row_that_can_not_be_written_gives_up_nothing),
        TRACE_TEST(what_goes_is_not_given_up),
        TRACE_TEST(lost_offsets_are_those_that_no_segment_has),
        TRACE_TEST(groups_begin_and_end_with_their_segments),
        TRACE_TEST(segments_are_found_by_their_ids),
        TRACE_TEST(buffer_is_given_back_where_the_file_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
