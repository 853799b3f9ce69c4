/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse index of a segment, compared with a look at all of its batches; and what is stored of producers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "multilog/index.h"
#include "multilog/producers.h"

enum { CAPACITY = 1 << 20, BATCHES_MAX = 400, BASE = 5000 };

struct scene {
    struct leat_index *index;
    struct {
        uint32_t position;
        uint64_t offset;
        int64_t before; /* highest time before it */
    } batches[BATCHES_MAX];
    unsigned count;
};

static struct scene scene_make(uint64_t seed)
{
    struct scene scene = {.index = leat_index_create(CAPACITY)};
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, seed);
    uint32_t position = 224;
    uint64_t offset = BASE;
    int64_t highest = INT64_MIN;
    while (position < CAPACITY - 40000 && scene.count < BATCHES_MAX) {
        scene.batches[scene.count].position = position;
        scene.batches[scene.count].offset = offset;
        scene.batches[scene.count++].before = highest;
        leat_index_note(scene.index, position, offset - BASE, highest);
        position += 8 * (uint32_t)(10 + leat_xoshiro_below(&random, 1000));
        offset += 1 + leat_xoshiro_below(&random, 50);
        int64_t time = (int64_t)leat_xoshiro_below(&random, 10 * scene.count + 20);
        if (time > highest) highest = time;
    }
    return scene;
}

/* Goal: there is a row for the first batch behind each 32 KiB, and none for the front. */
static void row_is_made_for_every_so_many_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct scene scene = scene_make(seed);
        uint32_t next = LEAT_INDEX_EVERY_BYTES, rows = 0;
        for (unsigned i = 0; i < scene.count; i++) {
            if (scene.batches[i].position < next) continue;
            const struct leat_index_row *row = &scene.index->rows[rows++];
            assert_int_equal(row->position, scene.batches[i].position);
            assert_int_equal(row->offset_delta, scene.batches[i].offset - BASE);
            assert_int_equal(row->max_timestamp_ms, scene.batches[i].before);
            next = scene.batches[i].position + LEAT_INDEX_EVERY_BYTES;
        }
        assert_int_equal(scene.index->close.index_count, rows);
        assert_true(rows > 10);
        leat_index_destroy(&scene.index);
        assert_null(scene.index);
    }
    struct leat_index *index = leat_index_create(65536); /* two rows at most */
    static const uint64_t deltas[5] = {0, UINT64_C(1) << 32, UINT32_MAX, 3, 4};
    for (uint32_t i = 0; i < 5; i++)
        leat_index_note(index, i * LEAT_INDEX_EVERY_BYTES, deltas[i], 0);
    assert_int_equal(index->close.index_count, 2);
    assert_int_equal(index->rows[0].position,
                     2 * LEAT_INDEX_EVERY_BYTES); /* 1 is too far from the first */
    assert_int_equal(index->rows[0].offset_delta, UINT32_MAX);
    /* Just so far behind the row before: */
    assert_int_equal(index->rows[1].position, 3 * LEAT_INDEX_EVERY_BYTES);
    assert_int_equal(leat_index_close_bytes_max(65536), leat_index_payload_bytes(&index->close));
    assert_int_equal(leat_index_bytes(65536), sizeof *index + 2 * sizeof index->rows[0]);
    leat_index_destroy(&index);
}

/* Goal: a walk starts at the last row of the index that is not past the walk's target. */
static void walk_starts_at_the_last_row_before_its_target(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct scene scene = scene_make(seed);
        const struct leat_close *close = &scene.index->close;
        for (unsigned what = 0; what < 3; what++)
            for (uint32_t k = 0; k < 3000; k++) {
                struct leat_target target = {.kind = LEAT_TARGET_OFFSET,
                                             .offset = BASE - 10 + k * 4};
                if (what == 1) target.kind = LEAT_TARGET_POSITION, target.position = k * 350;
                if (what == 2) target.kind = LEAT_TARGET_TIME, target.time_ms = (int64_t)k - 5;
                uint32_t floor = 0;
                for (uint32_t r = 0; r < close->index_count; r++) {
                    const struct leat_index_row *row = &scene.index->rows[r];
                    bool before = what == 0   ? BASE + row->offset_delta <= target.offset
                                  : what == 1 ? row->position <= target.position
                                              : row->max_timestamp_ms < target.time_ms;
                    if (before) floor = row->position;
                }
                assert_int_equal(leat_index_floor(close, &target, BASE), floor);
            }
        for (uint32_t r = 0; r < close->index_count; r++) {
            const struct leat_index_row *row = &scene.index->rows[r];
            uint32_t before = r ? row[-1].position : 0;
            struct leat_target target = {.kind = LEAT_TARGET_POSITION, .position = row->position};
            assert_int_equal(leat_index_floor(close, &target, BASE), row->position);
            target.position--;
            assert_int_equal(leat_index_floor(close, &target, BASE), before);
        }
        leat_index_destroy(&scene.index);
    }
}

/* Goal: the close entry is found from its end, wherever the bytes begin, if all of it is there; and not one of which a
 * single bit is another. */
static void close_entry_is_found_from_its_end(void **state)
{
    (void)state;
    enum { AT = 4096, BYTES = 16384 };
    static _Alignas(8) uint8_t segment[BYTES];
    for (uint32_t rows = 0; rows <= LEAT_INDEX_ROWS_MAX + 1;
         rows += rows == 3 ? LEAT_INDEX_ROWS_MAX - 3 : 1) {
        static struct {
            struct leat_close close;
            struct leat_index_row rows[LEAT_INDEX_ROWS_MAX + 1];
        } payload;
        struct leat_entry_writer writer;
        memset(segment, 0, sizeof segment);
        leat_entry_writer_init(&writer, segment, BYTES);
        writer.used = AT;
        payload.close = (struct leat_close){.bytes = AT, .index_count = rows};
        uint32_t count = leat_index_payload_bytes(&payload.close);
        (void)leat_entry_append(&writer, LEAT_ENTRY_CLOSE, 0, 0, &payload, count,
                                leat_crc32c(0, &payload, count));
        uint32_t end = leat_entry_seal(&writer, 0).bytes;
        const struct leat_close *close = leat_index_find(segment, 0, end);
        assert_int_equal(close != NULL, rows <= LEAT_INDEX_ROWS_MAX);
        if (!close) continue;
        assert_ptr_equal(close, segment + AT + LEAT_ENTRY_HEADER_BYTES);
        assert_ptr_equal(leat_index_find(segment + AT, AT, end), close); /* just all of it */
        assert_null(leat_index_find(segment + AT + 8, AT + 8, end));
        assert_null(leat_index_find(segment, 0, end + 8));
        assert_null(leat_index_find(segment, 0, end - 8));
        assert_null(leat_index_find(segment, 0, end - 1));
        if (rows > 3) continue;
        for (uint32_t at = AT; at < end - LEAT_ENTRY_HEADER_BYTES; at++) {
            if (at >= AT + 1 && at < AT + 4) continue;  /* zeros that nobody looks at */
            if (at >= AT + 8 && at < AT + 20) continue; /* likewise, of a batch alone */
            if (at >= AT + 24 && at < AT + LEAT_ENTRY_HEADER_BYTES) continue;
            segment[at] ^= 4;
            assert_null(leat_index_find(segment, 0, end));
            segment[at] ^= 4;
        }
    }
}

/* ---- producers as they are stored ---- */

/* Goal: a stored state that can't be is refused, each thing by itself, and what was known stays. */
static void stored_state_that_can_not_be_is_refused(void **state)
{
    (void)state;
    struct leat_producers producers;
    assert_int_equal(leat_producers_init(&producers, 100, 7), LEAT_OK);
    for (unsigned i = 0; i < 16; i++) {
        struct leat_producer_state states[2] = {
            {.producer_id = 5, .batch_count = 2, .batches = {{0, 4, 70}, {5, 9, 75}}},
            {.producer_id = 6, .batch_count = LEAT_BATCHES_IN_FLIGHT_MAX}};
        size_t bytes = sizeof states;
        uint32_t count = 2;
        if (i == 1) states[0].producer_id = -1;
        if (i == 2) states[0].epoch = -1;
        if (i == 3) states[0].first_sequence = -1;
        if (i == 4) states[0].batch_count = 0;
        if (i == 5) states[1].batch_count = LEAT_BATCHES_IN_FLIGHT_MAX + 1;
        if (i == 6) states[0].batches[0].first_sequence = -1;
        if (i == 7) states[0].batches[0].last_sequence = -1;
        if (i == 8) states[0].batches[1].first_sequence = -1;
        if (i == 9) states[0].batches[1].last_sequence = -1;
        if (i == 10) states[0].batches[2].last_sequence = -1; /* there is none: nobody looks */
        if (i == 11) states[1].producer_id = 5;               /* twice */
        if (i == 12) bytes--;
        if (i == 13) count = 3;
        if (i == 14) count = UINT32_MAX;
        if (i == 15) count = 0;
        leat_err rc =
            leat_producers_decode(&producers, (const uint8_t *)states, bytes, count, i % 2);
        bool right = i == 0 || i == 10 || i == 15;
        assert_int_equal(rc, right ? LEAT_OK : LEAT_E_CORRUPT);
        assert_int_equal(producers.count, i == 15 ? 0 : 2);
        if (right) assert_int_equal(producers.expired, i % 2);
        if (i == 0) {
            struct leat_producer_state back[2];
            assert_int_equal(leat_producers_encoded_bytes(&producers), sizeof back);
            leat_producers_encode(&producers, (uint8_t *)back);
            assert_int_equal(back[0].producer_id + back[1].producer_id, 11);
        }
    }
    leat_producers_fini(&producers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_is_made_for_every_so_many_bytes),
        cmocka_unit_test(walk_starts_at_the_last_row_before_its_target),
        cmocka_unit_test(close_entry_is_found_from_its_end),
        cmocka_unit_test(stored_state_that_can_not_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
