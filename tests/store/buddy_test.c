/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of units beside a plain row of them: after each of thousands of steps both say the same. */
#include "store/buddy.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    TOP = LEAT_BUDDY_ORDERS - 1,
    LARGEST = 1 << TOP,
    UNITS_MAX = 5 * LARGEST,
    TAKEN_MAX = UNITS_MAX
};

struct plain {
    struct leat_buddy real;
    bool free[UNITS_MAX];
    uint32_t units, limit, kept_from, kept_end;
    uint32_t added; /* units before were given to it */
    struct {
        uint32_t unit;
        unsigned order;
    } taken[TAKEN_MAX];
    uint32_t taken_count;
    uint64_t seed;
};

static uint32_t dice(struct plain *plain, uint32_t below)
{
    uint64_t z = plain->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static bool whole(const struct plain *plain, uint32_t unit, unsigned order)
{
    for (uint32_t i = unit; i < unit + (1u << order); i++)
        if (!plain->free[i]) return false;
    return true;
}

/* The order of the largest free block that begins there; LEAT_BUDDY_ORDERS: none does. */
static unsigned block_at(const struct plain *plain, uint32_t unit)
{
    if (!plain->free[unit]) return LEAT_BUDDY_ORDERS;
    unsigned order = TOP;
    while (unit % (1u << order) != 0 || !whole(plain, unit, order))
        order--;
    /* Within a larger one it is no block of its own. */
    return order < TOP && whole(plain, unit >> (order + 1) << (order + 1), order + 1)
               ? LEAT_BUDDY_ORDERS
               : order;
}

static void mark(struct plain *plain, uint32_t unit, uint32_t count, bool is_free)
{
    for (uint32_t i = unit; i < unit + count; i++) {
        assert_int_equal(plain->free[i], !is_free);
        plain->free[i] = is_free;
    }
}

static void compare(const struct plain *plain)
{
    uint32_t counts[LEAT_BUDDY_ORDERS] = {0}, below = 0, past = 0;
    for (uint32_t i = 0; i < plain->units; i++) {
        below += i < plain->limit && plain->free[i];
        past += i >= plain->limit && plain->free[i];
    }
    for (uint32_t i = 0; i < plain->units;) {
        unsigned order = block_at(plain, i);
        if (order < LEAT_BUDDY_ORDERS) counts[order]++;
        i += order < LEAT_BUDDY_ORDERS ? 1u << order : 1;
    }
    assert_int_equal(plain->real.free_units, below);
    assert_int_equal(plain->real.past_units, past);
    assert_memory_equal(plain->real.free_count, counts, sizeof counts);
}

static void do_take(struct plain *plain)
{
    unsigned order = dice(plain, LEAT_BUDDY_ORDERS);
    uint32_t want = UINT32_MAX;
    for (unsigned at = order; at <= TOP && want == UINT32_MAX; at++)
        for (uint32_t i = 0; i < plain->limit && want == UINT32_MAX; i += 1u << at)
            if (block_at(plain, i) == at &&
                (i >= plain->kept_end || i + (1u << at) <= plain->kept_from))
                want = i;
    uint32_t unit = UINT32_MAX;
    assert_int_equal(leat_buddy_take(&plain->real, order, &unit), want != UINT32_MAX);
    assert_int_equal(unit, want);
    if (want == UINT32_MAX) return;
    mark(plain, unit, 1u << order, false);
    plain->taken[plain->taken_count].unit = unit;
    plain->taken[plain->taken_count++].order = order;
}

static void do_give(struct plain *plain)
{
    if (!plain->taken_count) return;
    uint32_t at = dice(plain, plain->taken_count);
    uint32_t unit = plain->taken[at].unit;
    unsigned order = plain->taken[at].order;
    plain->taken[at] = plain->taken[--plain->taken_count];
    mark(plain, unit, 1u << order, true);
    leat_buddy_give(&plain->real, unit, order);
}

static void do_claim(struct plain *plain)
{
    unsigned order = dice(plain, LEAT_BUDDY_ORDERS);
    uint32_t unit = dice(plain, plain->units + 3) >> order << order;
    if (dice(plain, 8) == 0) unit += dice(plain, 3);
    bool want = unit % (1u << order) == 0 && unit + (1u << order) <= plain->units &&
                whole(plain, unit, order);
    assert_int_equal(leat_buddy_claim(&plain->real, unit, order), want);
    if (!want) return;
    mark(plain, unit, 1u << order, false);
    plain->taken[plain->taken_count].unit = unit;
    plain->taken[plain->taken_count++].order = order;
}

static void do_other(struct plain *plain)
{
    uint32_t what = dice(plain, 5), count = dice(plain, 900);
    unsigned order = dice(plain, LEAT_BUDDY_ORDERS);
    uint32_t unit = dice(plain, plain->units) >> order << order, in = 0;
    switch (what) {
    case 0:
        if (count > plain->units - plain->added) count = plain->units - plain->added;
        mark(plain, plain->added, count, true);
        leat_buddy_add(&plain->real, plain->added, count);
        plain->added += count;
        break;
    case 1:
        plain->limit = dice(plain, plain->units / LARGEST + 1) * LARGEST;
        leat_buddy_limit_set(&plain->real, plain->limit);
        assert_int_equal(plain->real.limit, plain->limit);
        break;
    case 2:
        leat_buddy_keep(&plain->real, unit, order);
        plain->kept_from = unit;
        plain->kept_end = unit + (1u << order);
        break;
    case 3:
        leat_buddy_keep_none(&plain->real);
        plain->kept_from = plain->kept_end = 0;
        break;
    case 4:
        for (uint32_t i = unit; i < unit + (1u << order); i++)
            in += plain->free[i];
        assert_int_equal(leat_buddy_free_in(&plain->real, unit, order), in);
        break;
    }
}

/* Goal: blocks that are taken, given back, claimed and counted agree with a plain row of units, with any limit and any
 * kept place. */
static void buddy_is_as_a_plain_row_of_units(void **state)
{
    (void)state;
    static struct plain plain;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        memset(&plain, 0, sizeof plain);
        plain.seed = seed;
        plain.units = plain.limit = (uint32_t)(seed % 5 + 1) * LARGEST;
        assert_int_equal(leat_buddy_init(&plain.real, plain.units), LEAT_OK);
        for (unsigned step = 0; step < 700; step++) {
            uint32_t what = dice(&plain, 10);
            if (what < 4)
                do_take(&plain);
            else if (what < 7)
                do_give(&plain);
            else if (what < 8)
                do_claim(&plain);
            else
                do_other(&plain);
            compare(&plain);
        }
        leat_buddy_limit_set(&plain.real, plain.units);
        plain.limit = plain.units;
        while (plain.taken_count)
            do_give(&plain);
        compare(&plain);
        assert_int_equal(plain.real.free_units, plain.added);
        leat_buddy_fini(&plain.real);
        assert_null(plain.real.storage);
    }
}

/* Goal: a block is no smaller than asked, and no larger than needed. */
static void buddy_order_is_the_smallest_that_fits(void **state)
{
    (void)state;
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        uint64_t bytes = UINT64_C(16384) << order;
        assert_int_equal(leat_buddy_order(bytes - 1, 16384), order);
        assert_int_equal(leat_buddy_order(bytes, 16384), order);
        assert_int_equal(leat_buddy_order(bytes + 1, 16384), order + 1);
    }
    assert_int_equal(leat_buddy_order(0, 16384), 0);
    struct leat_buddy buddy;
    leat_mem_fail_at(1);
    assert_int_equal(leat_buddy_init(&buddy, LARGEST), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(leat_buddy_init(&buddy, 0),
                     LEAT_OK); /* of no units there is nothing to have */
    uint32_t unit;
    assert_false(leat_buddy_take(&buddy, 0, &unit));
    assert_false(leat_buddy_claim(&buddy, 0, 0));
    leat_buddy_fini(&buddy);
}

/* Goal: a block past the end, or across the end, is no block, whatever is free. */
static void buddy_ends_with_its_units(void **state)
{
    (void)state;
    struct leat_buddy buddy;
    assert_int_equal(leat_buddy_init(&buddy, LARGEST), LEAT_OK);
    for (uint32_t unit = 0; unit < LARGEST; unit += 4)
        leat_buddy_add(&buddy, unit, 2); /* blocks of two, whose bits come behind those of one */
    uint32_t free_units = buddy.free_units;
    for (unsigned order = 0; order <= TOP; order++)
        for (uint32_t unit = LARGEST; unit <= 2 * LARGEST; unit += 1u << order)
            assert_false(leat_buddy_claim(&buddy, unit, order));
    assert_false(leat_buddy_claim(&buddy, UINT32_MAX, 0));
    assert_int_equal(buddy.free_units, free_units);
    leat_buddy_fini(&buddy);
}

/* Goal: of many units the lowest free unit is taken, whichever was freed last. */
static void buddy_takes_the_lowest_of_many(void **state)
{
    (void)state;
    enum { UNITS = 128 * LARGEST, WORDS = UNITS / 64 };
    struct leat_buddy buddy;
    assert_int_equal(leat_buddy_init(&buddy, UNITS), LEAT_OK);
    uint32_t unit;
    for (uint32_t word = WORDS - 3; word > 0; word -= 7) {
        for (uint32_t i = 0; i < 3; i++)
            leat_buddy_give(&buddy, (word + i) * 64, 0);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(leat_buddy_take(&buddy, 0, &unit));
            assert_int_equal(unit, (word + i) * 64);
        }
        leat_buddy_give(&buddy, word * 64 + 1, 0); /* stays free */
        assert_true(leat_buddy_take(&buddy, 0, &unit));
        assert_int_equal(unit, word * 64 + 1);
        if (word < 7) break;
    }
    assert_false(leat_buddy_take(&buddy, 0, &unit));
    leat_buddy_fini(&buddy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buddy_is_as_a_plain_row_of_units),
        cmocka_unit_test(buddy_order_is_the_smallest_that_fits),
        cmocka_unit_test(buddy_ends_with_its_units),
        cmocka_unit_test(buddy_takes_the_lowest_of_many),
    };
    return cmocka_run_group_tests_name("store buddy", tests, NULL, NULL);
}
