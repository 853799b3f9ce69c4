/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two blocks of a row of units: which are free. Used for buffers in the pool and for slots
 * in a store file. One bit per possible block and order: two bits per unit in all, so that a
 * terabyte of slots costs 16 MiB. The lowest free block is given out first, which keeps small data
 * small and makes runs repeatable. */
#ifndef LEAT_STORE_BUDDY_H
#define LEAT_STORE_BUDDY_H

#include "base/error.h"

enum { LEAT_BUDDY_ORDERS = 10 }; /* block of order k = 2^k units; 16 KiB .. 8 MiB */

struct leat_buddy {
    uint32_t units;
    uint32_t limit;                  /* units from here on are free or taken, but never given out */
    uint32_t free_units, past_units; /* free: before the limit; past it */
    uint32_t free_count[LEAT_BUDDY_ORDERS];
    uint32_t hint[LEAT_BUDDY_ORDERS];  /* no bit is set in a word before this one */
    uint64_t *bits[LEAT_BUDDY_ORDERS]; /* bit i of order k: block [i << k, (i + 1) << k) is free */
    uint64_t *storage;
    uint32_t kept_from, kept_end; /* units that leat_buddy_take() leaves alone; equal: none */
};

/** All units taken, the limit at the end. units: a multiple of 2^(LEAT_BUDDY_ORDERS - 1). LEAT_E_NO_MEMORY. */
leat_err leat_buddy_init(struct leat_buddy *buddy, uint32_t units) LEAT_NODISCARD;
void leat_buddy_fini(struct leat_buddy *buddy);
/** Make [from, from + count), all taken, free. Thread: store. */
void leat_buddy_add(struct leat_buddy *buddy, uint32_t from, uint32_t count);
/** Take the lowest free block of that order. false: none. Thread: store. */
bool leat_buddy_take(struct leat_buddy *buddy, unsigned order, uint32_t *out_unit);
/** Give a block back; it must be taken. Thread: store. */
void leat_buddy_give(struct leat_buddy *buddy, uint32_t unit, unsigned order);
/** Take this very block. false: a part of it is taken already. Thread: store. */
bool leat_buddy_claim(struct leat_buddy *buddy, uint32_t unit, unsigned order);
/** Units from `limit` on are not for leat_buddy_take(). A multiple like units. Thread: store. */
void leat_buddy_limit_set(struct leat_buddy *buddy, uint32_t limit);
/** Keep a block's units from leat_buddy_take(), free or not, until leat_buddy_keep_none(). Thread: store. */
void leat_buddy_keep(struct leat_buddy *buddy, uint32_t unit, unsigned order);
void leat_buddy_keep_none(struct leat_buddy *buddy);
/** How many units of a block are free. Thread: store. */
uint32_t leat_buddy_free_in(const struct leat_buddy *buddy, uint32_t unit, unsigned order);
/** Order of the smallest block of at least that many units of `unit_bytes`. Thread: any. */
unsigned leat_buddy_order(uint64_t bytes, uint64_t unit_bytes);

#endif
