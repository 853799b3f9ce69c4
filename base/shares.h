/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of addresses in a limited resource. An address has at most as much as is left free: a single address gets
 * half, and with any number of addresses something is left for the next address. Thread: owner's. */
#ifndef LEAT_BASE_SHARES_H
#define LEAT_BASE_SHARES_H

#include "base/assert.h"
#include "base/port.h"

enum { LEAT_SHARES_BUCKETS = 512 };

/* Counts by a hash of the address, with a number that is drawn anew at each start: two addresses in a bucket share
 * its part, and an attacker can't compute which do. */
struct leat_shares {
    uint64_t number; /* odd */
    uint32_t most, all;
    uint32_t own[LEAT_SHARES_BUCKETS];
};

/** Of `most` all hold `all`, `own` of that this address: may it have so many more? */
static inline bool leat_share_has(uint64_t own, uint64_t all, uint64_t most, uint64_t more)
{
    return more <= most && all <= most - more && own + more <= most - all - more;
}
/** Where an address is counted, of so many places. */
static inline uint32_t leat_share_bucket(uint64_t number, uint64_t address, uint32_t buckets)
{
    return (uint32_t)((address * number) >> 32) % buckets;
}

/** shares: zeroed. */
static inline void leat_shares_init(struct leat_shares *shares, const struct leat_random *random,
                                    uint32_t most)
{
    shares->number = random->next(random->ctx) | 1;
    shares->most = most;
}
static inline uint32_t *leat_shares_own(struct leat_shares *shares, uint64_t address)
{
    return &shares->own[leat_share_bucket(shares->number, address, LEAT_SHARES_BUCKETS)];
}
/** May the address have one more? 0 is an address, too. */
static inline bool leat_shares_has(struct leat_shares *shares, uint64_t address)
{
    return leat_share_has(*leat_shares_own(shares, address), shares->all, shares->most, 1);
}
static inline void leat_shares_add(struct leat_shares *shares, uint64_t address)
{
    shares->all++;
    (*leat_shares_own(shares, address))++;
}
static inline void leat_shares_remove(struct leat_shares *shares, uint64_t address)
{
    uint32_t *own = leat_shares_own(shares, address);
    LEAT_ASSERT_CMP(*own, >, 0);
    shares->all--;
    (*own)--;
}

#endif
