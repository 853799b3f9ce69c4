/* SPDX-License-Identifier: Apache-2.0 */
/* How much room a log asks for: the sizes of its segments, what is refused where memory is short, and when its table of
 * producers grows and shrinks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "watch.h"

/* Goal: a segment holds what waits, four times the start entry, and no more than the stream says where that is
 * enough. */
static void segment_is_as_large_as_what_waits_asks_for(void **state)
{
    (void)state;
    static const uint32_t most[] = {0, 16384, 65536, 1 << 20, LEAT_SEGMENT_BYTES_MAX};
    static const uint32_t values[] = {100,   7000,  15000,  15900,  16200,
                                      32000, 65000, 130000, 1000000};
    for (unsigned m = 0; m < sizeof most / sizeof *most; m++) {
        trace("%u:", most[m]);
        for (unsigned v = 0; v < sizeof values / sizeof *values; v++) {
            struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
            fake->options.settings.segment_bytes_max = most[m];
            fake_open(fake, NULL, 0, NULL);
            size_t used = trace_used;
            (void)put(fake, 1, values[v]);
            trace_text[trace_used = used] = '\0';
            trace(" %u", fake->log->reserve.capacity);
            fake_settle(fake);
            trace_text[trace_used = used] = '\0';
            trace(" %u", fake->log->head.seg->capacity);
            watch_end(fake);
        }
        trace("\n");
    }
    TRACE_IS("0: 16384 16384 16384 32768 32768 32768 131072 131072 1048576\n"
             "16384: 16384 16384 16384 32768 32768 32768 131072 131072 1048576\n"
             "65536: 16384 16384 16384 32768 32768 32768 131072 131072 1048576\n"
             "1048576: 16384 16384 16384 32768 32768 32768 131072 131072 1048576\n"
             "8388608: 16384 16384 16384 32768 32768 32768 131072 131072 1048576\n");
}

/* Goal: the pace of rolling asks for more, up to what the stream says. */
static void segment_is_as_large_as_its_log_rolls(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 16384, 65536, 1 << 20, LEAT_SEGMENT_BYTES_MAX};
    for (unsigned m = 0; m < 5; m++)
        for (unsigned r = 0; r < 5; r++) {
            struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
            fake->options.settings.segment_bytes_max = sizes[m];
            fake_open(fake, NULL, 0, NULL);
            fake->log->roll_capacity = sizes[r];
            size_t used = trace_used;
            (void)put(fake, 1, 100);
            trace_text[trace_used = used] = '\0';
            trace("%u%s", fake->log->reserve.capacity, r < 4 ? " " : "\n");
            watch_end(fake);
        }
    TRACE_IS("16384 16384 65536 1048576 8388608\n"
             "16384 16384 16384 16384 16384\n"
             "16384 16384 65536 65536 65536\n"
             "16384 16384 65536 1048576 1048576\n"
             "16384 16384 65536 1048576 8388608\n");
}

/* Goal: where there is no memory for another segment none is asked for, and appends are refused by name, for a second.
 * Requests that free memory may take the spare segment. */
static void segment_without_memory_is_refused_by_name(void **state)
{
    (void)state;
    struct fake *fake = watch_begun(LEAT_DURABILITY_MEMORY);
    struct leat_log *log = fake->log;
    watched.full = true;
    (void)put(fake, 1, 20000);
    (void)put(fake, 1, 20000);
    state_trace(fake);
    TRACE_IS(
        "append 2: AGAIN\n"
        "full? 760\n"
        "room\n"
        "append 3: NO_MEMORY\n"
        "  state 0 0..1 acked 1, s0..1 1 held, groups 0+1, 504 bytes 16384 memory, 1 records\n");
    fake->now_us += 999 * 1000;
    (void)put(fake, 1, 20000);
    fake->now_us += 1000;
    (void)put(fake, 1, 20000);
    TRACE_IS("append 4: NO_MEMORY\n"
             "append 5: AGAIN\n"
             "full? 760\n"
             "room\n");
    log->roll_wanted = true; /* its data has expired: that frees some */
    log_mark_dirty(log);
    fake_turn_end(fake);
    TRACE_IS("full? spare 744\n");
    watched.full = false;
    fake->now_us += 1000 * 1000;
    log_mark_dirty(log);
    fake_turn_end(fake);
    fake_settle(fake);
    state_trace(fake);
    TRACE_IS(
        "RESERVE s1 1/0/0 e7 cap 16384 d1\n"
        "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 32768 memory, 1 records\n");
    log->options.settings.retention_bytes = 500; /* at its size: what it takes frees as much */
    watched.full = true;
    (void)put(fake, 1, 40000);
    TRACE_IS("append 6: AGAIN\n"
             "full? spare 776\n"
             "room\n");
    watched.full = false;
    watch_end(fake);
}

/* Goal: an allocation that fails as a segment is asked for, or rolled to, is a pause of a second. */
static void roll_without_memory_is_tried_again(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 2; n++) {
        struct fake *fake = watch_begun(LEAT_DURABILITY_MEMORY);
        fake->log->slot_capacity = 1; /* its table is full */
        trace("%llu\n", (unsigned long long)n);
        leat_mem_fail_at(n);
        (void)put(fake, 1, 20000);
        leat_mem_fail_at(0);
        (void)put(fake, 1, 20000);
        fake->now_us += 999 * 1000;
        (void)put(fake, 1, 20000);
        trace("a second later\n");
        fake->now_us += 1000;
        (void)put(fake, 1, 20000);
        fake_settle(fake);
        state_trace(fake);
        watch_end(fake);
    }
    TRACE_IS(
        "1\n"
        "append 2: AGAIN\n"
        "append 3: AGAIN\n"
        "append 4: AGAIN\n"
        "a second later\n"
        "append 5: AGAIN\n"
        "RESERVE s1 1/0/0 e7 cap 32768 d1\n"
        "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
        "room\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n"
        "2\n"
        "append 2: AGAIN\n"
        "append 3: AGAIN\n"
        "append 4: AGAIN\n"
        "a second later\n"
        "append 5: AGAIN\n"
        "RESERVE s1 1/0/0 e7 cap 32768 d1\n"
        "CLOSE s0 600 from 0 to 1 max 7000 written 1001000 state 4\n"
        "room\n"
        "  state 0 0..1 acked 1, s0..2 2 held, groups 0+1, 864 bytes 49152 memory, 1 records\n");
}

/* ---- producers ---- */

static struct leat_batch batch_of(int64_t id, int32_t sequence, uint32_t count)
{
    return (struct leat_batch){.producer_id = id, .base_sequence = sequence, .record_count = count};
}

/* Goal: a table of producers grows when it must, wants to grow before that, holds as many producers as it may, and says
 * what memory it takes. */
static void table_of_producers_grows_ahead_of_need(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 40, 12345), LEAT_OK);
    enum leat_producer_verdict before = LEAT_PRODUCER_NEW;
    bool wants = false;
    for (int64_t id = 0; id <= 40; id++) {
        struct leat_batch batch = batch_of(id, 0, 1);
        uint64_t offset;
        int64_t expected;
        enum leat_producer_verdict verdict =
            leat_producers_check(&producers, &batch, &offset, &expected);
        bool now = leat_producers_wants_room(&producers);
        if (verdict != before || now != wants)
            trace("%u: verdict %u%s, %zu bytes\n", producers.count, (unsigned)verdict,
                  now ? " wants room" : "", leat_producers_prepare_bytes(&producers));
        before = verdict;
        wants = now;
        if (verdict == LEAT_PRODUCER_FULL) break;
        if (verdict == LEAT_PRODUCER_GROW) {
            leat_mem_fail_at(1);
            assert_int_equal(leat_producers_prepare(&producers), LEAT_E_NO_MEMORY);
            leat_mem_fail_at(0);
            assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
        }
        leat_producers_record(&producers, &batch, (uint64_t)id, 1000 + id);
    }
    TRACE_IS("4: verdict 0 wants room, 1664 bytes\n"
             "6: verdict 6 wants room, 1664 bytes\n"
             "7: verdict 0, 11584 bytes\n"
             "8: verdict 0 wants room, 11584 bytes\n"
             "12: verdict 6 wants room, 11584 bytes\n"
             "13: verdict 0, 14976 bytes\n"
             "16: verdict 0 wants room, 14976 bytes\n"
             "24: verdict 6 wants room, 14976 bytes\n"
             "25: verdict 0, 21760 bytes\n"
             "32: verdict 0 wants room, 21760 bytes\n"
             "40: verdict 7, 21760 bytes\n");
    leat_producers_fini(&producers);
}

struct kept {
    int64_t times[512];
    unsigned count;
};

static int earlier(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static struct kept kept_of(const struct leat_producers *producers)
{
    struct kept kept = {.count = 0};
    for (uint32_t i = 0; i <= producers->slot_mask; i++)
        if (producers->slots[i].producer_id >= 0)
            kept.times[kept.count++] = producers->slots[i].last_used_ms;
    qsort(kept.times, kept.count, sizeof kept.times[0], earlier);
    return kept;
}

/* Goal: the oldest producers that may go, go, and as many as must: compared with a sorted list, for tables made by
 * chance. */
static void oldest_producers_go_first(void **state)
{
    (void)state;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 23);
    for (unsigned round = 0; round < 400; round++) {
        struct leat_producers producers;
        unsigned count = 1 + (unsigned)leat_xoshiro_below(&random, 200);
        uint64_t spread = UINT64_C(1) << leat_xoshiro_below(&random, 40);
        assert_int_equal(leat_producers_init(&producers, 500, round), LEAT_OK);
        int64_t before_ms = 1 + (int64_t)leat_xoshiro_below(&random, spread + 1);
        uint64_t acked = 100;
        struct kept may = {.count = 0}, rest = {.count = 0};
        for (unsigned i = 0; i < count; i++) {
            struct leat_batch batch = batch_of(7 * (int64_t)i, 0, 1);
            int64_t time_ms = (int64_t)leat_xoshiro_below(&random, spread);
            uint64_t offset = 90 + leat_xoshiro_below(&random, 12); /* some are not acked */
            assert_int_equal(leat_producers_replay(&producers, &batch, offset, time_ms), LEAT_OK);
            struct kept *to = time_ms < before_ms && offset < acked ? &may : &rest;
            to->times[to->count++] = time_ms;
        }
        uint32_t keep = (uint32_t)leat_xoshiro_below(&random, count + 1);
        uint32_t goes = count - keep < may.count ? count - keep : may.count;
        qsort(may.times, may.count, sizeof may.times[0], earlier);
        for (unsigned i = goes; i < may.count; i++)
            rest.times[rest.count++] = may.times[i];
        qsort(rest.times, rest.count, sizeof rest.times[0], earlier);
        assert_int_equal(leat_producers_shed(&producers, keep, before_ms, acked), goes);
        struct kept kept = kept_of(&producers);
        assert_int_equal(kept.count, rest.count);
        assert_int_equal(producers.count, rest.count);
        assert_memory_equal(kept.times, rest.times, rest.count * sizeof rest.times[0]);
        assert_int_equal(producers.expired, goes > 0);
        leat_producers_fini(&producers);
    }
}

/* Goal: a sequence counts as accepted exactly where it has been accepted: compared with all sequences that were, also
 * over their wrap. */
static void sequences_are_judged_by_all_that_were_accepted(void **state)
{
    (void)state;
    static const int32_t begins[] = {0, 1, 1000, INT32_MAX - 20, INT32_MAX - 1, INT32_MAX};
    for (unsigned b = 0; b < sizeof begins / sizeof *begins; b++) {
        struct leat_producers producers;
        assert_int_equal(leat_producers_init(&producers, 40, 12345), LEAT_OK);
        producers.expired = true; /* so that it may begin anywhere */
        uint32_t next = (uint32_t)begins[b];
        for (unsigned k = 0; k < 12; k++) { /* batches of 1, 2, 3, 1, 2, ... records */
            struct leat_batch batch = batch_of(5, (int32_t)(next & 0x7fffffff), 1 + k % 3);
            leat_producers_record(&producers, &batch, 100 + k, 1000);
            next += batch.record_count;
            for (int32_t d = -30; d <= 3; d++)
                for (uint32_t count = 1; count <= 4; count++) {
                    struct leat_batch asked =
                        batch_of(5, (int32_t)((next + (uint32_t)d) & 0x7fffffff), count);
                    uint64_t offset = 0;
                    int64_t expected = 0;
                    enum leat_producer_verdict verdict =
                        leat_producers_check(&producers, &asked, &offset, &expected);
                    int32_t accepted = (int32_t)(next - (uint32_t)begins[b]);
                    bool within = d >= -accepted && d + (int32_t)count <= 0;
                    enum leat_producer_verdict right = d == 0   ? LEAT_PRODUCER_NEW
                                                       : within ? LEAT_PRODUCER_OLDER
                                                                : LEAT_PRODUCER_GAP;
                    int32_t end = 0;
                    for (unsigned last = k + 1; last-- > 0 && k - last < 5;) { /* the last five */
                        int32_t records = 1 + (int32_t)(last % 3);
                        if (d == end - records && (int32_t)count == records) {
                            right = LEAT_PRODUCER_DUPLICATE;
                            assert_int_equal(offset, 100 + last);
                        }
                        end -= records;
                    }
                    assert_int_equal(verdict, right);
                    assert_int_equal(expected, next & 0x7fffffff);
                }
        }
        leat_producers_fini(&producers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(segment_is_as_large_as_what_waits_asks_for),
        TRACE_TEST(segment_is_as_large_as_its_log_rolls),
        TRACE_TEST(segment_without_memory_is_refused_by_name),
        TRACE_TEST(roll_without_memory_is_tried_again),
        TRACE_TEST(table_of_producers_grows_ahead_of_need),
        TRACE_TEST(oldest_producers_go_first),
        TRACE_TEST(sequences_are_judged_by_all_that_were_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
