/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of buffers: what it gives out and takes back, and when it grows or gives memory back. */
#include "store/private.h"
#include "tests/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)
enum {
    UNIT = LEAT_SLOT_UNIT_BYTES,
    STEP_UNITS = LEAT_ARENA_STEP_BYTES / LEAT_SLOT_UNIT_BYTES,
    STEPS = 8
};

static struct leat_arena arena;
static struct leat_arena_grow *growing, *shrinking;
static uint8_t *memory;

static void on_grow(void *ctx, struct leat_arena_grow *grow)
{
    (void)ctx;
    assert_null(growing);
    growing = grow;
}
static void on_shrink(void *ctx, struct leat_arena_grow *grow)
{
    (void)ctx;
    assert_null(shrinking);
    shrinking = grow;
}

/* An arena of eight steps, of which so many are there. */
static void arena_begin(unsigned steps, unsigned inherited)
{
    if (!memory) memory = pages_get(STEPS * STEP);
    arena = (struct leat_arena){.base = memory,
                                .limit_bytes = STEPS * STEP,
                                .grown_bytes = steps * STEP,
                                .inherited_bytes = inherited * STEP,
                                .grow = on_grow,
                                .shrink = on_shrink};
    growing = shrinking = NULL;
}

static struct leat_pool pool_of(unsigned steps, unsigned inherited, uint64_t limit)
{
    struct leat_pool pool;
    memset(&pool, 0xff, sizeof pool);
    arena_begin(steps, inherited);
    assert_int_equal(leat_pool_init(&pool, &arena, limit), LEAT_OK);
    return pool;
}

static void grown(leat_err rc)
{
    struct leat_arena_grow *grow = growing;
    assert_non_null(grow);
    growing = NULL;
    if (rc == LEAT_OK) arena.grown_bytes += STEP;
    grow->rc = rc;
    grow->on_grown(grow);
}

static void shrunk(leat_err rc)
{
    struct leat_arena_grow *grow = shrinking;
    assert_non_null(grow);
    shrinking = NULL;
    if (rc == LEAT_OK) arena.grown_bytes -= STEP;
    grow->rc = rc;
    grow->on_grown(grow);
}

/* Goal: its limit is whole steps, no more than the arena's, and one at least; what an earlier process left past it is
 * known and not given out. */
static void pool_begins_with_what_is_there(void **state)
{
    (void)state;
    static const struct {
        unsigned steps, inherited;
        uint64_t limit, want;
        uint32_t units, free, past;
    } rows[] = {
        {0, 0, STEP, STEP, STEP_UNITS, 0, 0},
        {1, 0, 2 * STEP - 1, STEP, STEP_UNITS, STEP_UNITS, 0},
        {1, 0, 2 * STEP, 2 * STEP, 2 * STEP_UNITS, STEP_UNITS, 0},
        {2, 0, STEP, STEP, STEP_UNITS, STEP_UNITS, 0},
        {3, 3, STEP, STEP, 3 * STEP_UNITS, STEP_UNITS, 2 * STEP_UNITS},
        {3, 3, 4 * STEP, 4 * STEP, 4 * STEP_UNITS, 3 * STEP_UNITS, 0},
        {2, 1, UINT64_MAX, STEPS * STEP, STEPS * STEP_UNITS, 2 * STEP_UNITS, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_pool pool = pool_of(rows[i].steps, rows[i].inherited, rows[i].limit);
        assert_int_equal(pool.limit_bytes, rows[i].want);
        assert_int_equal(pool.full_bytes, rows[i].want);
        assert_int_equal(pool.buddy.units, rows[i].units);
        assert_int_equal(pool.buddy.free_units, rows[i].free);
        assert_int_equal(pool.buddy.past_units, rows[i].past);
        assert_int_equal(leat_pool_used(&pool), 0);
        assert_int_equal(leat_pool_past_bytes(&pool), 0);
        assert_int_equal(leat_pool_can_grow(&pool), rows[i].steps * STEP < rows[i].want);
        assert_int_equal(pool.ahead_bytes, STEP);
        assert_int_equal(leat_pool_due_us(&pool), UINT64_MAX);
        leat_pool_fini(&pool);
    }
    struct leat_pool pool;
    arena_begin(0, 0);
    assert_int_equal(leat_pool_init(&pool, &arena, STEP - 1), LEAT_E_CONFIG);
    assert_int_equal(leat_pool_init(&pool, &arena, 0), LEAT_E_CONFIG);
    leat_mem_fail_at(1);
    assert_int_equal(leat_pool_init(&pool, &arena, STEP), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    arena.limit_bytes = ((uint64_t)UINT32_MAX + 1 + STEP_UNITS) * UNIT;
    assert_int_equal(leat_pool_init(&pool, &arena, UINT64_MAX), LEAT_E_CONFIG);
    arena.inherited_bytes = arena.limit_bytes;
    assert_int_equal(leat_pool_init(&pool, &arena, STEP), LEAT_E_CONFIG);
}

/* Goal: buffers differ only in their place, begin with no entry, and are counted. Buffers for replicas have only zeros
 * when they are given out, and a retired arena gives no buffer. */
static void pool_gives_and_takes(void **state)
{
    (void)state;
    struct leat_pool pool = pool_of(1, 0, STEP);
    memset(memory, 0x77, 4 * UNIT);
    assert_false(pool.used_once);
    uint8_t *one = leat_pool_take(&pool, UNIT), *two = leat_pool_take(&pool, 2 * UNIT);
    assert_true(pool.used_once);
    assert_ptr_equal(one, memory);
    assert_ptr_equal(two, memory + 2 * UNIT);
    assert_int_equal(pool.given, 2);
    assert_int_equal(leat_pool_used(&pool), 3 * UNIT);
    for (uint32_t i = 0; i < 2 * UNIT; i++)
        assert_int_equal(two[i], i < LEAT_ENTRY_HEADER_BYTES ? 0 : 0x77);
    leat_pool_give(&pool, two, 2 * UNIT);
    assert_int_equal(pool.given, 1);
    assert_int_equal(two[100], 0x77); /* it may be looked for there */
    /* What lies in a free place is copied and left; in one that is used it is not. */
    static uint8_t copy[UNIT];
    memset(copy, 0, sizeof copy);
    assert_true(leat_pool_peek(&pool, 2 * UNIT, 2 * UNIT, 50, copy));
    assert_int_equal(copy[49], 0x77);
    assert_int_equal(copy[50], 0);
    assert_false(leat_pool_peek(&pool, 0, UNIT, 50, copy));
    assert_int_equal(leat_pool_used(&pool), UNIT);
    assert_int_equal(pool.given, 1);
    /* A place as a row names it. */
    pool.used_once = false;
    assert_false(leat_pool_claim(&pool, 0, UNIT));
    assert_false(leat_pool_claim(&pool, UNIT + 1, UNIT));
    assert_false(leat_pool_claim(&pool, UNIT - 1, UNIT));
    assert_false(leat_pool_claim(&pool, ((uint64_t)UINT32_MAX + 1 + 5) * UNIT, UNIT));
    assert_false(leat_pool_claim(&pool, UNIT, 2 * UNIT)); /* no multiple of its size */
    assert_true(leat_pool_claim(&pool, 5 * UNIT, UNIT));
    assert_true(pool.used_once);
    assert_int_equal(pool.given, 2);
    leat_pool_give(&pool, memory + 5 * UNIT, UNIT);
    leat_pool_give(&pool, one, UNIT);
    leat_pool_fini(&pool);

    pool = pool_of(1, 0, STEP);
    pool.zeroed = true;
    memset(memory, 0, 4 * UNIT);
    one = leat_pool_take(&pool, UNIT);
    memset(one, 0x55, UNIT);
    two = leat_pool_take(&pool, UNIT);
    memset(two, 0x55, UNIT);
    leat_pool_give(&pool, one, UNIT);
    for (uint32_t i = 0; i < UNIT; i++)
        assert_int_equal(one[i], 0);
    assert_int_equal(two[0], 0x55);
    pool.retired = true;
    uint64_t used = leat_pool_used(&pool);
    leat_pool_give(&pool, two, UNIT);
    assert_int_equal(leat_pool_used(&pool), used); /* it serves nobody again */
    assert_int_equal(pool.given, 0);
    assert_int_equal(two[0], 0x55);
    leat_pool_fini(&pool);
}

/* Goal: the pool counts the memory used past a lowered limit, and knows whether it may grow. */
static void pool_counts_what_lies_past_its_limit(void **state)
{
    (void)state;
    struct leat_pool pool = pool_of(3, 0, 4 * STEP);
    uint8_t *all[24];
    for (unsigned i = 0; i < 24; i++)
        assert_non_null(all[i] = leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX));
    assert_null(leat_pool_take(&pool, UNIT));
    leat_pool_limit_set(&pool, STEP);
    assert_int_equal(pool.limit_bytes, STEP);
    assert_int_equal(pool.full_bytes, 4 * STEP);
    assert_int_equal(leat_pool_past_bytes(&pool), 2 * STEP);
    assert_false(leat_pool_can_grow(&pool));
    leat_pool_give(&pool, all[23], LEAT_SEGMENT_BYTES_MAX);
    assert_int_equal(leat_pool_past_bytes(&pool), 2 * STEP - LEAT_SEGMENT_BYTES_MAX);
    assert_int_equal(leat_pool_used(&pool), 3 * STEP - LEAT_SEGMENT_BYTES_MAX);
    assert_null(leat_pool_take(&pool, UNIT));
    leat_pool_limit_set(&pool, 3 * STEP);
    assert_int_equal(leat_pool_past_bytes(&pool), 0);
    assert_false(leat_pool_can_grow(&pool)); /* all of it is there */
    leat_pool_limit_set(&pool, 4 * STEP);
    assert_true(leat_pool_can_grow(&pool));
    pool.grow_failed = true;
    assert_false(leat_pool_can_grow(&pool));
    leat_pool_fini(&pool);
}

/* Goal: from three quarters of its limit on, what is flushed is rather given out than memory taken, where there is a
 * step of it. */
static void pool_prefers_recycling_when_nearly_all_is_there(void **state)
{
    (void)state;
    for (unsigned steps = 4; steps <= 8; steps++) {
        struct leat_pool pool = pool_of(steps, 0, 8 * STEP);
        assert_int_equal(leat_pool_prefers_recycling(&pool, STEP), steps >= 6);
        assert_false(leat_pool_prefers_recycling(&pool, STEP - 1));
        leat_pool_fini(&pool);
    }
}

enum {
    NOW = 100 * 1000 * 1000,
    LATER = LEAT_STORE_GROW_FIRST_US,
    PAUSE = LEAT_STORE_GROW_PAUSE_US
};
static const struct step_case {
    unsigned steps;          /* there, of 8 */
    uint32_t taken;          /* segments of 8 MiB of them */
    bool once, went, failed; /* used_once, went_ahead, grow_failed */
    uint64_t behind, grown;  /* since when; when it grew last */
    bool wanted, slowly;
    /* then */
    bool grows;
    uint64_t due, behind_then;
    bool failed_then;
} step_cases[] = {
    /* Nobody needs any. */
    {1, 0, false, false, false, 0, 0, false, false, false, UINT64_MAX, 0, false},
    {1, 0, true, false, false, 0, 0, false, false, false, UINT64_MAX, 0, false},
    {1, 0, true, false, false, NOW - 5, 0, false, false, false, UINT64_MAX, 0, false},
    {1, 8, false, false, false, 0, 0, false, false, false, UINT64_MAX, 0, false},
    /* The very first step. */
    {0, 0, false, false, false, 0, 0, false, false, true, UINT64_MAX, 0, false},
    /* Somebody waits. */
    {1, 0, true, false, false, 0, 0, true, false, true, UINT64_MAX, 0, false},
    {1, 1, true, false, false, 0, 0, true, false, true, UINT64_MAX, NOW, false},
    {8, 64, true, true, false, 0, 0, true, false, false, UINT64_MAX, 0, false},
    /* Ahead of use: the first time when half is gone at once, before that some time later. */
    {1, 1, true, false, false, 0, 0, false, false, false, NOW + LATER, NOW, false},
    {1, 4, true, false, false, 0, 0, false, false, false, NOW + LATER, NOW, false},
    {1, 5, true, false, false, 0, 0, false, false, true, UINT64_MAX, NOW, false},
    {1, 1, true, false, false, NOW - LATER + 1, 0, false, false, false, NOW + 1, NOW - LATER + 1,
     false},
    {1, 1, true, false, false, NOW - LATER, 0, false, false, true, UINT64_MAX, NOW - LATER, false},
    {1, 1, true, true, false, 0, 0, false, false, true, UINT64_MAX, NOW, false},
    {2, 8, true, true, false, 0, 0, false, false, false, UINT64_MAX, 0, false},
    {2, 9, true, true, false, 0, 0, false, false, true, UINT64_MAX, NOW, false},
    /* Slowly. */
    {2, 9, true, true, false, 0, NOW - PAUSE + 1, false, true, false, NOW + 1, NOW, false},
    {2, 9, true, true, false, 0, NOW - PAUSE, false, true, true, UINT64_MAX, NOW, false},
    {2, 9, true, true, false, 0, NOW - 1, true, true, false, NOW - 1 + PAUSE, NOW, false},
    {2, 9, true, true, false, 0, NOW - 1, true, false, true, UINT64_MAX, NOW, false},
    /* It was refused. */
    {2, 9, true, true, true, 0, NOW - LEAT_STORE_GROW_RETRY_US + 1, true, false, false, NOW + 1, 0,
     true},
    {2, 9, true, true, true, 0, NOW - LEAT_STORE_GROW_RETRY_US, true, false, true, UINT64_MAX, NOW,
     false},
};

/* busy: another step is under way; granted: the arena gives the one that is asked for. */
static void step_is(const struct step_case *row, bool busy, bool granted)
{
    struct leat_pool pool = pool_of(row->steps, 0, STEPS * STEP);
    for (uint32_t j = 0; j < row->taken; j++)
        assert_non_null(leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX));
    pool.used_once = row->once;
    pool.went_ahead = row->went;
    pool.grow_failed = row->failed;
    pool.behind_us = row->behind;
    pool.grown_us = row->grown;
    pool.growing = busy;
    pool.due_us = 77;
    leat_pool_step(&pool, row->wanted, row->slowly, NOW);
    assert_int_equal(growing != NULL, row->grows && !busy);
    assert_int_equal(pool.growing, row->grows || busy);
    assert_int_equal(pool.grow_failed, row->failed_then);
    assert_int_equal(pool.due_us, busy && !row->failed_then ? UINT64_MAX : row->due);
    assert_int_equal(pool.behind_us, busy ? row->behind : row->behind_then);
    assert_int_equal(pool.grown_us, row->grows && !busy ? (uint64_t)NOW : row->grown);
    bool ahead = row->grows && !busy && row->behind_then;
    assert_int_equal(pool.went_ahead, row->went || ahead);
    pool.retired = true;
    assert_int_equal(leat_pool_due_us(&pool), UINT64_MAX);
    pool.retired = false;
    if (growing) {
        pool.grow.owner = &pool; /* it was moved here */
        leat_err rc = granted ? LEAT_OK : LEAT_E_NO_MEMORY;
        uint32_t free_before = pool.buddy.free_units;
        grown(rc);
        assert_false(pool.growing);
        assert_int_equal(pool.grow_failed, rc != LEAT_OK);
        assert_int_equal(pool.buddy.free_units - free_before, rc ? 0 : STEP_UNITS);
        assert_int_equal(pool.added_bytes, arena.grown_bytes);
    }
    leat_pool_fini(&pool);
}

/* Goal: when a step of memory is asked for: at once where somebody waits, ahead of use when less is free than is kept
 * free, the first time of that some seconds later; slowly where that is better, and not while one is under way or was
 * refused a moment ago. */
static void pool_steps_when_it_should(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof step_cases / sizeof step_cases[0]; i++) {
        step_is(&step_cases[i], false, i % 2);
        step_is(&step_cases[i], true, i % 2);
    }
}

/* Goal: a whole step past the limit of which nothing is used goes back, one at a time, from the end; where the arena
 * keeps it, it stays and is not asked for again. */
static void pool_gives_back_steps_past_its_limit(void **state)
{
    (void)state;
    struct leat_pool pool = pool_of(4, 0, 4 * STEP);
    pool.grow.owner = &pool;
    uint8_t *all[32];
    for (unsigned i = 0; i < 32; i++)
        all[i] = leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX);
    leat_pool_limit_set(&pool, STEP);
    for (unsigned i = 16; i < 32; i++) { /* all but the first of them, in the last step */
        if (i != 24) leat_pool_give(&pool, all[i], LEAT_SEGMENT_BYTES_MAX);
        leat_pool_step(&pool, false, false, 1);
        assert_null(shrinking);
    }
    leat_pool_give(&pool, all[24], LEAT_SEGMENT_BYTES_MAX);
    arena.shrink = NULL;
    leat_pool_step(&pool, false, false, 1);
    assert_null(shrinking);
    assert_false(pool.growing);
    arena.shrink = on_shrink;
    pool.keeps = true;
    leat_pool_step(&pool, false, false, 1);
    assert_null(shrinking);
    pool.keeps = false;
    leat_pool_step(&pool, true, false, 1);
    assert_non_null(shrinking);
    assert_null(growing);
    assert_true(pool.growing);
    assert_int_equal(pool.added_bytes, 3 * STEP);
    assert_int_equal(pool.buddy.past_units, STEP_UNITS);
    leat_pool_step(&pool, true, false, 1); /* one at a time */
    shrunk(LEAT_OK);
    assert_false(pool.growing || pool.keeps);
    assert_int_equal(pool.buddy.past_units, STEP_UNITS);
    leat_pool_step(&pool, true, false, 1);
    shrunk(LEAT_E_DISK);
    assert_true(pool.keeps);
    assert_int_equal(pool.added_bytes, 3 * STEP); /* it is the pool's again */
    assert_int_equal(pool.buddy.past_units, STEP_UNITS);
    leat_pool_step(&pool, true, false, 1);
    assert_null(shrinking);
    pool.keeps = false;
    leat_pool_limit_set(&pool, 2 * STEP);
    leat_pool_limit_set(&pool, 3 * STEP); /* nothing lies past it now */
    leat_pool_step(&pool, false, false, 1);
    assert_null(shrinking);
    leat_pool_fini(&pool);
}

/* Goal: a step is given back when no part of it is used, and not before, however much is free before the step in the
 * pool. The step is in no free list then; a step that comes again is like any other. */
static void pool_gives_back_what_is_all_free(void **state)
{
    (void)state;
    enum { BLOCKS = LEAT_ARENA_STEP_BYTES / LEAT_SEGMENT_BYTES_MAX };
    for (unsigned kept = 0; kept < BLOCKS; kept++) {
        struct leat_pool pool = pool_of(3, 0, 3 * STEP);
        pool.grow.owner = &pool;
        uint8_t *all[3 * BLOCKS];
        for (unsigned i = 0; i < 3 * BLOCKS; i++)
            assert_non_null(all[i] = leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX));
        leat_pool_limit_set(&pool, STEP);
        for (unsigned i = BLOCKS; i < 3 * BLOCKS; i++)
            if (i != 2 * BLOCKS + kept) leat_pool_give(&pool, all[i], LEAT_SEGMENT_BYTES_MAX);
        leat_pool_step(&pool, false, false, 1000);
        assert_null(shrinking);
        leat_pool_give(&pool, all[2 * BLOCKS + kept], LEAT_SEGMENT_BYTES_MAX);
        leat_pool_step(&pool, false, false, 1000);
        assert_non_null(shrinking);
        assert_int_equal(pool.added_bytes, 2 * STEP);
        assert_int_equal(pool.buddy.past_units, STEP_UNITS);
        shrunk(LEAT_OK);
        leat_pool_limit_set(&pool, 3 * STEP);
        leat_pool_step(&pool, true, false, 2000);
        grown(LEAT_OK);
        assert_int_equal(pool.buddy.free_units, 2 * STEP_UNITS);
        for (unsigned i = BLOCKS; i < 3 * BLOCKS; i++)
            assert_ptr_equal(leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX), all[i]);
        assert_null(leat_pool_take(&pool, UNIT));
        leat_pool_fini(&pool);
    }
}

/* Goal: buffers are given out below the limit, whatever the limit was before. */
static void pool_gives_out_below_its_limit(void **state)
{
    (void)state;
    struct leat_pool pool = pool_of(3, 0, 4 * STEP);
    for (unsigned steps = 1; steps <= 3; steps++) {
        leat_pool_limit_set(&pool, STEP); /* down, and up again */
        leat_pool_limit_set(&pool, steps * STEP);
        assert_int_equal(pool.buddy.limit, steps * STEP_UNITS);
        for (unsigned i = 0; i < STEP / LEAT_SEGMENT_BYTES_MAX; i++)
            assert_ptr_equal(leat_pool_take(&pool, LEAT_SEGMENT_BYTES_MAX),
                             memory + (steps - 1) * STEP + i * (uint64_t)LEAT_SEGMENT_BYTES_MAX);
        assert_null(leat_pool_take(&pool, UNIT));
    }
    leat_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_begins_with_what_is_there),
        cmocka_unit_test(pool_gives_and_takes),
        cmocka_unit_test(pool_counts_what_lies_past_its_limit),
        cmocka_unit_test(pool_prefers_recycling_when_nearly_all_is_there),
        cmocka_unit_test(pool_steps_when_it_should),
        cmocka_unit_test(pool_gives_back_steps_past_its_limit),
        cmocka_unit_test(pool_gives_back_what_is_all_free),
        cmocka_unit_test(pool_gives_out_below_its_limit),
    };
    return cmocka_run_group_tests_name("store pool", tests, NULL, NULL);
}
