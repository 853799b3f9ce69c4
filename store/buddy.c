/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two blocks by bitmaps. */
#include "store/buddy.h"

#include "base/assert.h"
#include "base/mem.h"

static uint32_t words_of(uint32_t units, unsigned order)
{
    return ((units >> order) + 63) / 64;
}

leat_err leat_buddy_init(struct leat_buddy *buddy, uint32_t units)
{
    LEAT_ASSERT_CMP(units % (1u << (LEAT_BUDDY_ORDERS - 1)), ==, 0);
    size_t words = 0;
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++)
        words += words_of(units, order);
    uint64_t *storage = leat_mem_calloc(LEAT_MEM_STORE, words ? words : 1, sizeof *storage);
    if (!storage) return LEAT_E_NO_MEMORY;
    *buddy = (struct leat_buddy){.units = units, .limit = units, .storage = storage};
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++) {
        buddy->bits[order] = storage;
        storage += words_of(units, order);
    }
    return LEAT_OK;
}

void leat_buddy_fini(struct leat_buddy *buddy)
{
    leat_mem_free(buddy->storage);
    *buddy = (struct leat_buddy){0};
}

static bool is_free(const struct leat_buddy *buddy, uint32_t block, unsigned order)
{
    return buddy->bits[order][block / 64] >> (block % 64) & 1;
}

/* Blocks lie on one side of the limit, which is a multiple of the largest. */
static uint32_t *count_of(struct leat_buddy *buddy, uint32_t unit)
{
    return unit < buddy->limit ? &buddy->free_units : &buddy->past_units;
}

static void set_free(struct leat_buddy *buddy, uint32_t block, unsigned order)
{
    LEAT_ASSERT(!is_free(buddy, block, order));
    buddy->bits[order][block / 64] |= UINT64_C(1) << (block % 64);
    buddy->free_count[order]++;
    if (block / 64 < buddy->hint[order]) buddy->hint[order] = block / 64;
}

static void set_taken(struct leat_buddy *buddy, uint32_t block, unsigned order)
{
    LEAT_ASSERT(is_free(buddy, block, order));
    buddy->bits[order][block / 64] &= ~(UINT64_C(1) << (block % 64));
    buddy->free_count[order]--;
}

void leat_buddy_give(struct leat_buddy *buddy, uint32_t unit, unsigned order)
{
    LEAT_ASSERT_CMP(order, <, LEAT_BUDDY_ORDERS);
    LEAT_ASSERT_CMP((uint64_t)unit + (1u << order), <=, buddy->units);
    LEAT_ASSERT_CMP(unit % (1u << order), ==, 0);
    *count_of(buddy, unit) += 1u << order;
    LEAT_ASSERT_CMP(buddy->free_units, <=, buddy->limit);
    LEAT_ASSERT_CMP(buddy->past_units, <=, buddy->units - buddy->limit);
    uint32_t block = unit >> order;
    while (order + 1 < LEAT_BUDDY_ORDERS && is_free(buddy, block ^ 1, order)) {
        set_taken(buddy, block ^ 1, order);
        block >>= 1;
        order++;
    }
    set_free(buddy, block, order);
}

void leat_buddy_add(struct leat_buddy *buddy, uint32_t from, uint32_t count)
{
    uint32_t end = from + count;
    LEAT_ASSERT_CMP(end, <=, buddy->units);
    while (from < end) {
        unsigned order = LEAT_BUDDY_ORDERS - 1;
        while (from % (1u << order) != 0 || (uint64_t)from + (1u << order) > end)
            order--;
        leat_buddy_give(buddy, from, order);
        from += 1u << order;
    }
}

/* The block of `order` that holds `unit` has just been taken: frees the rest beside the smaller block that is
 * wanted. */
static void split_down(struct leat_buddy *buddy, uint32_t unit, unsigned order, unsigned to_order)
{
    while (order > to_order) {
        order--;
        set_free(buddy, (unit >> order) ^ 1, order);
    }
}

static bool is_kept(const struct leat_buddy *buddy, uint32_t block, unsigned order)
{
    uint32_t from = block << order;
    return from < buddy->kept_end && from + (1u << order) > buddy->kept_from;
}

/* The lowest free block of just that order. */
static bool find_free(struct leat_buddy *buddy, unsigned order, uint32_t *out_block)
{
    if (buddy->free_count[order] == 0) return false;
    uint32_t word = buddy->hint[order], words = words_of(buddy->units, order);
    while (word < words && buddy->bits[order][word] == 0)
        word++;
    buddy->hint[order] = word;
    for (; word < words; word++) {
        for (uint64_t bits = buddy->bits[order][word]; bits; bits &= bits - 1) {
            *out_block = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (*out_block << order >= buddy->limit) return false;
            if (!is_kept(buddy, *out_block, order)) return true;
        }
    }
    return false;
}

bool leat_buddy_take(struct leat_buddy *buddy, unsigned order, uint32_t *out_unit)
{
    LEAT_ASSERT_CMP(order, <, LEAT_BUDDY_ORDERS);
    unsigned from = order;
    uint32_t block = 0;
    while (from < LEAT_BUDDY_ORDERS && !find_free(buddy, from, &block))
        from++;
    if (from == LEAT_BUDDY_ORDERS) return false;
    set_taken(buddy, block, from);
    uint32_t unit = block << from;
    split_down(buddy, unit, from, order);
    buddy->free_units -= 1u << order;
    *out_unit = unit;
    return true;
}

void leat_buddy_limit_set(struct leat_buddy *buddy, uint32_t limit)
{
    const unsigned order = LEAT_BUDDY_ORDERS - 1;
    LEAT_ASSERT_CMP(limit, <=, buddy->units);
    LEAT_ASSERT_CMP(limit % (1u << order), ==, 0);
    uint32_t from = limit < buddy->limit ? limit : buddy->limit;
    uint32_t end = limit < buddy->limit ? buddy->limit : limit;
    uint32_t units = 0;
    for (; from < end; from += 1u << order)
        units += leat_buddy_free_in(buddy, from, order);
    bool lower = limit < buddy->limit;
    buddy->limit = limit;
    buddy->free_units = lower ? buddy->free_units - units : buddy->free_units + units;
    buddy->past_units = lower ? buddy->past_units + units : buddy->past_units - units;
}

void leat_buddy_keep(struct leat_buddy *buddy, uint32_t unit, unsigned order)
{
    buddy->kept_from = unit;
    buddy->kept_end = unit + (1u << order);
}

void leat_buddy_keep_none(struct leat_buddy *buddy)
{
    buddy->kept_from = buddy->kept_end = 0;
}

uint32_t leat_buddy_free_in(const struct leat_buddy *buddy, uint32_t unit, unsigned order)
{
    uint32_t units = 0;
    for (unsigned at = 0; at < LEAT_BUDDY_ORDERS; at++) {
        if (at >= order) {
            if (is_free(buddy, unit >> at, at)) return 1u << order;
            continue;
        }
        for (uint32_t block = unit >> at; block < (unit + (1u << order)) >> at; block++)
            units += is_free(buddy, block, at) ? 1u << at : 0;
    }
    return units;
}

bool leat_buddy_claim(struct leat_buddy *buddy, uint32_t unit, unsigned order)
{
    LEAT_ASSERT_CMP(order, <, LEAT_BUDDY_ORDERS);
    if (unit % (1u << order) != 0 || (uint64_t)unit + (1u << order) > buddy->units) return false;
    for (unsigned from = order; from < LEAT_BUDDY_ORDERS; from++) {
        if (!is_free(buddy, unit >> from, from)) continue;
        set_taken(buddy, unit >> from, from);
        split_down(buddy, unit, from, order);
        *count_of(buddy, unit) -= 1u << order;
        return true;
    }
    return false;
}

unsigned leat_buddy_order(uint64_t bytes, uint64_t unit_bytes)
{
    unsigned order = 0;
    while (unit_bytes << order < bytes)
        order++;
    return order;
}
