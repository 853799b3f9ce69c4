/* SPDX-License-Identifier: Apache-2.0 */
/* Producer state: what is new, repeated, older, a gap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "multilog/producers.h"

static const uint64_t NUMBER = UINT64_C(0x9e3779b97f4a7c15);

static struct leat_batch batch_of(int64_t id, int16_t epoch, int32_t sequence, uint32_t count)
{
    return (struct leat_batch){.producer_id = id,
                               .producer_epoch = epoch,
                               .base_sequence = sequence,
                               .record_count = count};
}

static enum leat_producer_verdict check(const struct leat_producers *producers, int64_t id,
                                        int16_t epoch, int32_t sequence, uint32_t count)
{
    struct leat_batch batch = batch_of(id, epoch, sequence, count);
    uint64_t offset;
    int64_t expected;
    return leat_producers_check(producers, &batch, &offset, &expected);
}

static void record(struct leat_producers *producers, int64_t id, int16_t epoch, int32_t sequence,
                   uint32_t count, uint64_t offset)
{
    struct leat_batch batch = batch_of(id, epoch, sequence, count);
    assert_int_equal(leat_producers_replay(producers, &batch, offset, 1000), LEAT_OK);
}

static void check_repeats_and_gaps_are_told_apart(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    assert_int_equal(check(&producers, 1, 0, 7, 1), LEAT_PRODUCER_GAP);
    producers.lost = true;
    assert_int_equal(check(&producers, 1, 0, 7, 1), LEAT_PRODUCER_UNKNOWN);
    assert_int_equal(check(&producers, 1, 0, 0, 1), LEAT_PRODUCER_NEW);
    for (int i = 0; i < 8; i++)
        record(&producers, 1, 0, i * 10, 10, 100 + (uint64_t)i * 10);
    assert_int_equal(check(&producers, 1, 0, 80, 3), LEAT_PRODUCER_NEW);
    assert_int_equal(check(&producers, 1, 0, 81, 3), LEAT_PRODUCER_GAP);
    assert_int_equal(check(&producers, 1, 0, 70, 10), LEAT_PRODUCER_DUPLICATE);
    assert_int_equal(check(&producers, 1, 0, 30, 10), LEAT_PRODUCER_DUPLICATE);
    assert_int_equal(check(&producers, 1, 0, 20, 10), LEAT_PRODUCER_OLDER);
    assert_int_equal(check(&producers, 1, 0, 75, 10), LEAT_PRODUCER_GAP); /* half of it is new */
    assert_int_equal(check(&producers, 1, 1, 80, 1), LEAT_PRODUCER_GAP);
    assert_int_equal(check(&producers, 1, 1, 0, 1), LEAT_PRODUCER_NEW);
    record(&producers, 1, 1, 0, 1, 300);
    assert_int_equal(check(&producers, 1, 0, 80, 1), LEAT_PRODUCER_FENCED);
    assert_int_equal(check(&producers, 1, 1, 0, 1), LEAT_PRODUCER_DUPLICATE);
    leat_producers_fini(&producers);
}

static void is_repeated(const struct leat_producers *producers, int16_t epoch, int32_t sequence,
                        uint32_t count, uint64_t at)
{
    struct leat_batch batch = batch_of(1, epoch, sequence, count);
    uint64_t offset = UINT64_MAX;
    int64_t expected;
    assert_int_equal(leat_producers_check(producers, &batch, &offset, &expected),
                     LEAT_PRODUCER_DUPLICATE);
    assert_int_equal(offset, at);
}

/* Goal: each of the last five batches, when it comes again, is told the offset that it got; those of a new epoch are
 * known as well as those of the first, from the first of them on, and of the old one nothing is. */
static void repeated_batch_is_told_its_own_offset(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    for (int16_t epoch = 0; epoch < 3; epoch++) {
        uint64_t base = 1000 * ((uint64_t)epoch + 1);
        for (int32_t last = 0; last < 8; last++) {
            record(&producers, 1, epoch, last, 1, base + 10 * (uint64_t)last);
            for (int32_t at = last < 5 ? 0 : last - 4; at <= last; at++)
                is_repeated(&producers, epoch, at, 1, base + 10 * (uint64_t)at);
            for (int32_t at = 0; at < last - 4; at++)
                assert_int_equal(check(&producers, 1, epoch, at, 1), LEAT_PRODUCER_OLDER);
            assert_int_equal(check(&producers, 1, epoch, last + 1, 1), LEAT_PRODUCER_NEW);
            assert_int_equal(check(&producers, 1, epoch, last + 2, 1), LEAT_PRODUCER_GAP);
        }
    }
    leat_producers_fini(&producers);
}

/* The verdict on a batch of producer 1, and the offset that goes with the verdict. */
static void is_answered(const struct leat_producers *producers, int16_t epoch, int32_t sequence,
                        enum leat_producer_verdict verdict, int64_t expected, uint64_t at)
{
    struct leat_batch batch = batch_of(1, epoch, sequence, 1);
    uint64_t offset = 77;
    int64_t out_expected = 77;
    assert_int_equal(leat_producers_check(producers, &batch, &offset, &out_expected), verdict);
    assert_int_equal(out_expected, expected);
    assert_int_equal(offset, at);
}

/* Goal: a gap is told the sequence that would have been right, who is fenced the epoch, and a repeat of what is not
 * remembered any more the last offset below which it surely lies. */
static void answer_says_what_would_have_been_right(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    is_answered(&producers, 3, 7, LEAT_PRODUCER_GAP, 0, 77);
    is_answered(&producers, 3, 0, LEAT_PRODUCER_NEW, 0, 77);
    for (int32_t i = 0; i < 8; i++)
        record(&producers, 1, 3, i, 1, 100 + 10 * (uint64_t)i);
    is_answered(&producers, 3, 9, LEAT_PRODUCER_GAP, 8, 77);
    is_answered(&producers, 3, 2, LEAT_PRODUCER_OLDER, 8, 170);
    is_answered(&producers, 3, 3, LEAT_PRODUCER_DUPLICATE, 8, 130);
    is_answered(&producers, 2, 8, LEAT_PRODUCER_FENCED, 3, 77);
    is_answered(&producers, 4, 1, LEAT_PRODUCER_GAP, 0, 77);
    is_answered(&producers, 4, 0, LEAT_PRODUCER_NEW, 0, 77);
    leat_producers_fini(&producers);
}

/* Goal: a batch that a new epoch repeats is known by its own first sequence, not by the first sequence of the epoch
 * before. */
static void new_epoch_begins_where_it_began(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    producers.expired = true; /* taken in the middle */
    record(&producers, 1, 0, 70, 1, 10);
    for (int32_t i = 0; i < 8; i++)
        record(&producers, 1, 1, i, 1, 20 + (uint64_t)i);
    assert_int_equal(check(&producers, 1, 1, 0, 1), LEAT_PRODUCER_OLDER);
    assert_int_equal(check(&producers, 1, 1, 70, 1), LEAT_PRODUCER_GAP);
    assert_int_equal(check(&producers, 1, 1, INT32_MAX, 1),
                     LEAT_PRODUCER_GAP); /* before its first */
    leat_producers_fini(&producers);
}

/* Goal: a batch of a new epoch is no repeat of a batch of the epoch before with the same sequences: it was never
 * appended, so it is a gap. */
static void batch_of_the_epoch_before_is_not_repeated(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    for (int32_t i = 0; i < 3; i++)
        record(&producers, 1, 0, 5 * i, 5, 100 + 5 * (uint64_t)i);
    record(&producers, 1, 1, 0, 3, 200);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(check(&producers, 1, 1, 5 * i, 5), LEAT_PRODUCER_GAP);
    is_answered(&producers, 1, 3, LEAT_PRODUCER_NEW, 3, 77);
    leat_producers_fini(&producers);
}

/* Goal: sequences up to half a turn behind are older, all others ahead, however many there were. */
static void half_a_turn_of_sequences_is_behind(void **state)
{
    (void)state;
    enum { BATCH = 1 << 20, HALF = 1 << 30 };
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    for (uint32_t i = 0; i < 3000; i++) {
        const int32_t sequence = (int32_t)((i * (uint32_t)BATCH) & INT32_MAX);
        const uint32_t next = (i + 1) * (uint32_t)BATCH, behind = i < 1024 ? next : HALF;
        record(&producers, 1, 0, sequence, BATCH, (uint64_t)i * BATCH);
        if (i < 6) continue;
        assert_int_equal(check(&producers, 1, 0, (int32_t)((next - behind) & INT32_MAX), 1),
                         LEAT_PRODUCER_OLDER);
        assert_int_equal(check(&producers, 1, 0, (int32_t)((next - behind - 1) & INT32_MAX), 1),
                         LEAT_PRODUCER_GAP);
    }
    leat_producers_fini(&producers);
}

/* Goal: a batch without a producer is nobody's, in each call. */
static void nobody_is_not_remembered(void **state)
{
    (void)state;
    struct leat_producers producers;
    struct leat_batch batch = batch_of(-1, -1, -1, 1);
    assert_int_equal(leat_producers_init(&producers, 8, NUMBER), LEAT_OK);
    assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
    leat_producers_record(&producers, &batch, 5, 1000);
    leat_producers_note(&producers, -1, 7);
    assert_int_equal(producers.count, 0);
    assert_int_equal(producers.holders->counts[7], 0);
    leat_producers_fini(&producers);
    assert_null(producers.slots);
}

/* Goal: as many bytes as are said are taken, and given back whatever fails; nothing of a table changes then. */
static void table_takes_what_it_says_and_gives_it_back(void **state)
{
    (void)state;
    const size_t before = leat_mem_bytes(LEAT_MEM_LOG);
    struct leat_producers producers;
    uint8_t encoded[4 * sizeof(struct leat_producer_state)];
    assert_int_equal(leat_producers_init(&producers, 20, NUMBER), LEAT_OK);
    for (int i = 0; i < 4; i++)
        record(&producers, i, 0, 0, 1, (uint64_t)i);
    leat_producers_encode(&producers, encoded);
    const size_t small = leat_mem_bytes(LEAT_MEM_LOG);
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        assert_int_equal(leat_producers_prepare(&producers), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), small);
        assert_true(producers.slot_mask == 7 && producers.count == 4);
    }
    const size_t more = leat_producers_prepare_bytes(&producers);
    assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before + more);
    leat_producers_fini(&producers);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);

    assert_int_equal(leat_producers_init(&producers, 8, NUMBER), LEAT_OK);
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        assert_int_equal(leat_producers_decode(&producers, encoded, sizeof encoded, 4, false),
                         LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), small);
        assert_int_equal(producers.count, 0);
    }
    assert_int_equal(leat_producers_decode(&producers, encoded, sizeof encoded, 4, false), LEAT_OK);
    assert_true(producers.slot_mask == 7 && producers.count == 4);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG),
                     small + sizeof(struct leat_producer_holders) + 8 * sizeof(uint16_t));
    leat_producers_fini(&producers);
}

/* A log that has forgotten somebody takes producers in the middle; what came before their first
 * sequence here was never appended, and is not called so (docs/stories.md 18 b). */
static void check_before_first_sequence_is_a_gap(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    record(&producers, 9, 0, 0, 1, 0);
    assert_int_equal(leat_producers_expire(&producers, 999, 10), 0);
    assert_int_equal(leat_producers_expire(&producers, 1001, 0), 0); /* not acked yet */
    assert_int_equal(leat_producers_expire(&producers, 1001, 10), 1);
    assert_int_equal(check(&producers, 1, 0, 70, 5), LEAT_PRODUCER_NEW);
    record(&producers, 1, 0, 70, 5, 10);
    assert_int_equal(check(&producers, 1, 0, 60, 5), LEAT_PRODUCER_GAP);
    assert_int_equal(check(&producers, 1, 0, 68, 5), LEAT_PRODUCER_GAP);
    leat_producers_fini(&producers);
}

static void check_sequence_wraps_to_zero(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    producers.expired = true;
    record(&producers, 1, 0, INT32_MAX - 2, 2, 0); /* up to and with INT32_MAX - 1 */
    assert_int_equal(check(&producers, 1, 0, INT32_MAX, 3), LEAT_PRODUCER_NEW);
    record(&producers, 1, 0, INT32_MAX, 3, 2); /* INT32_MAX, 0, 1 */
    assert_int_equal(check(&producers, 1, 0, 2, 1), LEAT_PRODUCER_NEW);
    assert_int_equal(check(&producers, 1, 0, INT32_MAX, 3), LEAT_PRODUCER_DUPLICATE);
    assert_int_equal(check(&producers, 1, 0, 0, 2), LEAT_PRODUCER_OLDER);
    assert_int_equal(check(&producers, 1, 0, 3, 1), LEAT_PRODUCER_GAP);
    /* More than a whole turn of the numbers: behind and ahead stay apart. */
    int32_t sequence = 2;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(check(&producers, 1, 0, sequence, 1 << 20), LEAT_PRODUCER_NEW);
        record(&producers, 1, 0, sequence, 1 << 20, (uint64_t)i << 20);
        uint32_t next = ((uint32_t)sequence + (1u << 20)) & 0x7fffffffu;
        assert_int_equal(check(&producers, 1, 0, (int32_t)((next + 1) & 0x7fffffff), 1),
                         LEAT_PRODUCER_GAP);
        assert_int_equal(check(&producers, 1, 0, sequence, 1 << 20), LEAT_PRODUCER_DUPLICATE);
        sequence = (int32_t)next;
    }
    assert_int_equal(check(&producers, 1, 0, (sequence - (10 << 20)) & 0x7fffffff, 5),
                     LEAT_PRODUCER_OLDER);
    leat_producers_fini(&producers);
}

static void table_full_and_crowded_are_refused(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 20, NUMBER), LEAT_OK);
    for (int i = 0; i < 6; i++)
        record(&producers, i, 0, 0, 1, (uint64_t)i);
    assert_int_equal(check(&producers, 100, 0, 0, 1), LEAT_PRODUCER_GROW);
    leat_mem_fail_at(1);
    assert_int_equal(leat_producers_prepare(&producers), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
    assert_int_equal(check(&producers, 100, 0, 0, 1), LEAT_PRODUCER_NEW);
    for (int i = 6; i < 20; i++)
        record(&producers, i, 0, 0, 1, (uint64_t)i);
    assert_int_equal(check(&producers, 100, 0, 0, 1), LEAT_PRODUCER_FULL);
    assert_int_equal(check(&producers, 19, 0, 1, 1), LEAT_PRODUCER_NEW);
    leat_producers_fini(&producers);
}

/* Random producers come, go and return; the table is compared with an array, and with what its own
 * encoding decodes to. */
static void table_random_changes_agree_with_an_array(void **state)
{
    (void)state;
    enum { IDS = 300 };
    struct leat_producers producers, copy;
    struct leat_xoshiro random;
    int32_t next[IDS] = {0};
    bool known[IDS] = {false};
    leat_xoshiro_seed(&random, 5);
    assert_int_equal(leat_producers_init(&producers, IDS, NUMBER), LEAT_OK);
    for (int64_t step = 0; step < 20000; step++) {
        int64_t id = (int64_t)leat_xoshiro_below(&random, IDS);
        struct leat_batch batch = batch_of(id * 1000003, 0, next[id], 3);
        assert_int_equal(leat_producers_replay(&producers, &batch, 0, step), LEAT_OK);
        next[id] += 3;
        known[id] = true;
        if (leat_xoshiro_below(&random, 100)) continue;
        (void)leat_producers_expire(&producers, step - (int64_t)leat_xoshiro_below(&random, 500),
                                    1);
        size_t bytes = leat_producers_encoded_bytes(&producers);
        uint8_t *encoded = malloc(bytes + 1);
        leat_producers_encode(&producers, encoded);
        assert_int_equal(leat_producers_init(&copy, IDS, NUMBER), LEAT_OK);
        if (bytes)
            assert_int_equal(leat_producers_decode(&copy, encoded, bytes - 1, producers.count, 1),
                             LEAT_E_CORRUPT);
        assert_int_equal(leat_producers_decode(&copy, encoded, bytes, producers.count, 1), LEAT_OK);
        assert_int_equal(copy.count, producers.count);
        uint32_t count = 0;
        for (int64_t i = 0; i < IDS; i++) {
            if (!known[i]) continue;
            enum leat_producer_verdict a = check(&producers, i * 1000003, 0, next[i] - 3, 3);
            assert_int_equal(a, check(&copy, i * 1000003, 0, next[i] - 3, 3));
            if (a == LEAT_PRODUCER_DUPLICATE)
                count++;
            else
                known[i] = false;
        }
        assert_int_equal(count, producers.count);
        leat_producers_fini(&copy);
        free(encoded);
    }
    leat_producers_fini(&producers);
}

/* Beyond what is to be kept the longest unused go, exactly as many as must, never younger ones than
 * asked nor unacked ones. */
static void shed_takes_the_longest_unused_only(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    const int64_t minute = 60 * 1000;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 11);
    for (int round = 0; round < 50; round++) {
        struct leat_producers producers;
        assert_int_equal(leat_producers_init(&producers, COUNT, NUMBER), LEAT_OK);
        int64_t used[COUNT];
        bool gone[COUNT] = {false};
        /* From all at one time to a whole day. */
        uint64_t spread = UINT64_C(1) << (round % 28);
        int64_t before = (int64_t)(spread / 2) + 1;
        for (int i = 0; i < COUNT; i++) {
            used[i] = (int64_t)leat_xoshiro_below(&random, spread);
            struct leat_batch batch = batch_of(i, 0, 0, 1);
            assert_int_equal(leat_producers_replay(&producers, &batch, (uint64_t)i, used[i]),
                             LEAT_OK);
        }
        uint32_t keep = (uint32_t)leat_xoshiro_below(&random, COUNT + 1);
        uint64_t acked = leat_xoshiro_below(&random, 4) ? COUNT : COUNT / 2;
        uint32_t removed = leat_producers_shed(&producers, keep, before, acked);
        assert_int_equal(producers.count, COUNT - removed);
        uint32_t candidates = 0, missing = 0;
        int64_t youngest_gone = INT64_MIN, oldest_kept = INT64_MAX;
        for (int i = 0; i < COUNT; i++) {
            gone[i] = check(&producers, i, 0, 0, 1) != LEAT_PRODUCER_DUPLICATE;
            missing += gone[i];
            bool candidate = used[i] < before && (uint64_t)i < acked;
            candidates += candidate;
            assert_true(candidate || !gone[i]);
            if (gone[i] && used[i] > youngest_gone) youngest_gone = used[i];
            if (!gone[i] && candidate && used[i] < oldest_kept) oldest_kept = used[i];
        }
        uint32_t excess = COUNT - keep;
        assert_int_equal(missing, removed);
        assert_int_equal(removed, candidates < excess ? candidates : excess);
        assert_true(youngest_gone <= oldest_kept);
        assert_true(producers.expired == (removed > 0));
        leat_producers_fini(&producers);
    }
    /* Whatever stood in a file as time of use is bytes from outside. */
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, minute, INT64_MAX - 1};
    for (int i = 0; i < 6; i++) {
        struct leat_batch batch = batch_of(i, 0, 0, 1);
        assert_int_equal(leat_producers_replay(&producers, &batch, 0, times[i]), LEAT_OK);
    }
    for (uint32_t left = 6; left > 1; left--) {
        assert_int_equal(leat_producers_shed(&producers, left - 1, INT64_MAX, 1), 1);
        assert_int_equal(check(&producers, 6 - (int)left, 0, 1, 1), LEAT_PRODUCER_NEW);
        assert_int_equal(check(&producers, 6 - (int)left, 0, 0, 1), LEAT_PRODUCER_NEW);
        assert_int_equal(check(&producers, 7 - (int)left, 0, 0, 1), LEAT_PRODUCER_DUPLICATE);
    }
    leat_producers_fini(&producers);
}

/* Goal: nobody goes as long as no more are remembered than are to be kept; of times as far apart as one of the 256
 * parts into which they are sorted goes, the oldest goes. */
static void shed_keeps_what_is_to_be_kept(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, NUMBER), LEAT_OK);
    for (int i = 0; i < 4; i++) {
        struct leat_batch batch = batch_of(i, 0, 0, 1);
        assert_int_equal(leat_producers_replay(&producers, &batch, 0, i == 0 ? 0 : 256), LEAT_OK);
    }
    for (uint32_t keep = 6; keep >= 4; keep--)
        assert_int_equal(leat_producers_shed(&producers, keep, 257, 1), 0);
    assert_int_equal(producers.count, 4);
    assert_int_equal(leat_producers_shed(&producers, 3, 257, 1), 1);
    assert_int_equal(check(&producers, 1, 0, 0, 1), LEAT_PRODUCER_DUPLICATE);
    assert_int_equal(producers.count, 3);
    leat_producers_fini(&producers);
}

/* Comes, as far as it may, from an address. */
static bool comes_from(struct leat_producers *producers, int64_t id, uint32_t address,
                       int64_t now_ms)
{
    enum leat_producer_verdict verdict = check(producers, id, 0, 0, 1);
    if (verdict == LEAT_PRODUCER_FULL || leat_producers_crowded_by(producers, id, address))
        return false;
    if (verdict == LEAT_PRODUCER_GROW) assert_int_equal(leat_producers_prepare(producers), LEAT_OK);
    struct leat_batch batch = batch_of(id, 0, 0, 1);
    leat_producers_record(producers, &batch, (uint64_t)id, now_ms);
    leat_producers_note(producers, id, address);
    return true;
}

/* Goal: producers of one address fill half of a table. Producers of other addresses find room, and known producers go
 * on. As long as the address's producers go on, a whole day brings the address no more of them; when they are forgotten
 * the address may bring new producers. */
static void producers_of_one_address_leave_half_to_others(void **state)
{
    (void)state;
    enum { MAX = 16384, GREEDY = 7, MINUTE_MS = 60 * 1000, ROUNDS = 100 };
    struct leat_producers producers;
    int64_t id = 0, now_ms = 1000 * MINUTE_MS;
    assert_int_equal(leat_producers_init(&producers, MAX, NUMBER), LEAT_OK);
    while (comes_from(&producers, id, GREEDY, now_ms))
        id++;
    assert_int_equal(id, MAX / 2);
    assert_false(leat_producers_crowded_by(&producers, 0, GREEDY)); /* known */
    assert_false(leat_producers_crowded_by(&producers, -1, GREEDY));
    assert_false(leat_producers_crowded_by(&producers, id, 0));
    for (unsigned round = 0; round < ROUNDS; round++) {
        now_ms += 14 * MINUTE_MS;
        for (int64_t i = 0; i < MAX / 2; i++) {
            struct leat_batch batch = batch_of(i, 0, (int32_t)round + 1, 1);
            leat_producers_record(&producers, &batch, (uint64_t)i, now_ms);
            leat_producers_note(&producers, i, GREEDY);
        }
        assert_int_equal(leat_producers_expire(&producers, now_ms, (uint64_t)id),
                         round == 0 ? 0 : MAX / 4);
        for (uint32_t i = 0; i < MAX / 4; i++) { /* many addresses bring a few each, which go */
            assert_false(comes_from(&producers, id, GREEDY, now_ms));
            assert_true(comes_from(&producers, id++, 100 + i % 1000, now_ms));
        }
    }
    assert_int_equal(leat_producers_expire(&producers, now_ms + 1, (uint64_t)id),
                     MAX / 2 + MAX / 4);
    assert_int_equal(producers.count, 0);
    for (unsigned i = 0; i < LEAT_PRODUCER_ADDRESSES; i++)
        assert_int_equal(producers.holders->counts[i], 0);
    assert_true(comes_from(&producers, id++, GREEDY, now_ms));
    leat_producers_fini(&producers);
}

/* Goal: an address that makes many producers, one after the other, is not refused for its producers that are out of
 * use. No producer of another address is forgotten for that. */
static void producers_of_one_address_make_way_for_its_own(void **state)
{
    (void)state;
    enum { MAX = 16384, BUSY = 7, OTHER = 8, OTHERS = 3000, MINUTE_MS = 60 * 1000, MINUTES = 600 };
    struct leat_producers producers;
    int64_t id = 0, now_ms = 1000 * MINUTE_MS;
    assert_int_equal(leat_producers_init(&producers, MAX, NUMBER), LEAT_OK);
    while (id < OTHERS)
        assert_true(comes_from(&producers, id++, OTHER, now_ms));
    for (unsigned i = 0; i < OTHERS; i++)
        leat_producers_note(&producers, i, OTHER); /* from before the table was large */
    for (unsigned minute = 0; minute < MINUTES; minute++, now_ms += MINUTE_MS) {
        (void)leat_producers_shed_crowds(&producers, now_ms - 15 * MINUTE_MS, (uint64_t)id);
        for (unsigned i = 0; i < 200; i++)
            assert_true(comes_from(&producers, id++, BUSY, now_ms));
        assert_in_range(producers.count, 1, MAX / 2 + 200);
    }
    for (int64_t i = id - 15 * 200; i < id; i++)
        assert_int_equal(check(&producers, i, 0, 0, 1), LEAT_PRODUCER_DUPLICATE);
    for (int64_t i = 0; i < OTHERS; i++)
        assert_int_equal(check(&producers, i, 0, 0, 1), LEAT_PRODUCER_DUPLICATE);
    leat_producers_fini(&producers);
}

/* Goal: at half of what the table may hold, less a sixteenth, an address with more than a quarter, less as much, gives
 * up what it has beyond that; nobody else does, and nothing that may not go. */
static void crowd_goes_down_to_its_share_and_no_further(void **state)
{
    (void)state;
    enum { MAX = 64, SPARE = MAX / 16, HALF = MAX / 2 - SPARE, SHARE = MAX / 4 - SPARE };
    static const struct {
        uint32_t crowd, others, fresh, left; /* so many of them were used just now */
    } cases[] = {
        {HALF - 1, 0, 0, HALF - 1}, /* not so many yet */
        {HALF, 0, 0, SHARE},
        {SHARE, HALF - SHARE, 0, SHARE},
        {SHARE + 1, HALF - SHARE, 0, SHARE},
        {HALF, 0, HALF, HALF},
        {HALF, 0, SHARE + 3, SHARE + 3},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct leat_producers producers;
        assert_int_equal(leat_producers_init(&producers, MAX, NUMBER), LEAT_OK);
        while (producers.slot_mask + 1 < MAX)
            assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
        for (uint32_t i = 0; i < cases[c].crowd + cases[c].others; i++)
            assert_true(comes_from(&producers, i, i < cases[c].crowd ? 7 : 100 + i,
                                   i < cases[c].crowd - cases[c].fresh ? 1000 : 2000));
        uint32_t gone = leat_producers_shed_crowds(&producers, 1500, 1000);
        assert_int_equal(gone, cases[c].crowd - cases[c].left);
        assert_int_equal(producers.count, cases[c].left + cases[c].others);
        assert_int_equal(producers.holders->counts[7], cases[c].left);
        assert_int_equal(producers.expired, gone > 0);
        leat_producers_fini(&producers);
    }
}

/* Goal: whichever of a crowd was not used any more goes, wherever it lies in the table. */
static void crowd_is_looked_for_in_the_whole_table(void **state)
{
    (void)state;
    enum { MAX = 64, CROWD = 28 };
    bool was_last = false;
    for (uint32_t old = 0; old < CROWD; old++) {
        for (uint64_t odd = 1; odd < 16; odd += 2) {
            struct leat_producers producers;
            assert_int_equal(leat_producers_init(&producers, MAX, odd * NUMBER), LEAT_OK);
            while (producers.slot_mask + 1 < MAX)
                assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
            for (uint32_t i = 0; i < CROWD; i++)
                assert_true(comes_from(&producers, i, 7, i == old ? 1000 : 2000));
            was_last |= producers.slots[MAX - 1].producer_id == old;
            assert_int_equal(leat_producers_shed_crowds(&producers, 1500, 1000), 1);
            leat_producers_fini(&producers);
        }
    }
    assert_true(was_last);
}

/* Goal: once the table is half full, an address that has a quarter of the table is refused. Without a table of
 * addresses none is refused. A known producer, and a producer whose address is not known, go on. */
static void address_is_refused_from_a_quarter_on(void **state)
{
    (void)state;
    enum { MAX = 64 };
    for (uint32_t crowd = MAX / 4 - 1; crowd <= MAX / 4; crowd++) {
        for (uint32_t address = 7; address <= LEAT_PRODUCER_ADDRESSES; address += 4089) {
            struct leat_producers producers;
            assert_int_equal(leat_producers_init(&producers, MAX, NUMBER), LEAT_OK);
            while (producers.slot_mask + 1 < MAX)
                assert_int_equal(leat_producers_prepare(&producers), LEAT_OK);
            for (uint32_t i = 1; i <= MAX / 2; i++)
                assert_true(comes_from(&producers, i, i <= crowd ? address : 100 + i, 1000));
            assert_int_equal(leat_producers_crowded_by(&producers, 0, address), crowd == MAX / 4);
            assert_false(leat_producers_crowded_by(&producers, 1, address));
            assert_false(leat_producers_crowded_by(&producers, 0, 0));
            assert_false(leat_producers_crowded_by(&producers, -1, address));
            leat_producers_fini(&producers);
        }
    }
    struct leat_producers small;
    assert_int_equal(leat_producers_init(&small, 8, NUMBER), LEAT_OK);
    for (uint32_t i = 1; i <= 5; i++)
        assert_true(comes_from(&small, i, 7, 1000));
    assert_null(small.holders);
    assert_false(leat_producers_crowded_by(&small, 0, 7));
    assert_int_equal(leat_producers_shed_crowds(&small, 1500, 1000), 0);
    leat_producers_fini(&small);
}

/* Goal: ids that have one place under any number that can be known, or whose lower or upper bits alone differ, do not
 * lie behind each other: each look-up would go through all of them. */
static void chosen_ids_do_not_share_a_place(void **state)
{
    (void)state;
    enum { COUNT = 8192, RUN_MAX = 200 };
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t inverse = golden; /* modulo 2^64: each step doubles the bits that are right */
    for (unsigned i = 0; i < 6; i++)
        inverse *= 2 - golden * inverse;
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 1);
    for (unsigned kind = 0; kind < 3; kind++) {
        struct leat_producers producers;
        assert_int_equal(leat_producers_init(&producers, 2 * COUNT, leat_xoshiro_next(&random)),
                         LEAT_OK);
        for (uint64_t i = 1; producers.count < COUNT; i++) {
            const uint64_t chosen[] = {(UINT64_C(5) << 32 | i) * inverse, i << 48, i};
            if (chosen[kind] <= INT64_MAX) record(&producers, (int64_t)chosen[kind], 0, 0, 1, i);
        }
        uint32_t run = 0, longest = 0;
        for (uint32_t i = 0; i <= producers.slot_mask; i++) {
            run = producers.slots[i].producer_id >= 0 ? run + 1 : 0;
            if (run > longest) longest = run;
        }
        assert_in_range(longest, 1, RUN_MAX);
        leat_producers_fini(&producers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_repeats_and_gaps_are_told_apart),
        cmocka_unit_test(repeated_batch_is_told_its_own_offset),
        cmocka_unit_test(answer_says_what_would_have_been_right),
        cmocka_unit_test(new_epoch_begins_where_it_began),
        cmocka_unit_test(batch_of_the_epoch_before_is_not_repeated),
        cmocka_unit_test(half_a_turn_of_sequences_is_behind),
        cmocka_unit_test(nobody_is_not_remembered),
        cmocka_unit_test(table_takes_what_it_says_and_gives_it_back),
        cmocka_unit_test(check_before_first_sequence_is_a_gap),
        cmocka_unit_test(check_sequence_wraps_to_zero),
        cmocka_unit_test(table_full_and_crowded_are_refused),
        cmocka_unit_test(table_random_changes_agree_with_an_array),
        cmocka_unit_test(shed_takes_the_longest_unused_only),
        cmocka_unit_test(shed_keeps_what_is_to_be_kept),
        cmocka_unit_test(producers_of_one_address_leave_half_to_others),
        cmocka_unit_test(producers_of_one_address_make_way_for_its_own),
        cmocka_unit_test(crowd_goes_down_to_its_share_and_no_further),
        cmocka_unit_test(crowd_is_looked_for_in_the_whole_table),
        cmocka_unit_test(address_is_refused_from_a_quarter_on),
        cmocka_unit_test(chosen_ids_do_not_share_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
