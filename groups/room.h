/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the tables of all homes of a node, and the share of each address: the groups that the address made.
 *
 * An address has at most as much as is left free: a single address gets half, and with any number of addresses
 * something is left for the next address. Private to the groups and their broker. Thread: any. */
#ifndef LEAT_GROUPS_ROOM_H
#define LEAT_GROUPS_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/shares.h"

enum { LEAT_GROUPS_ROOM_BUCKETS = 4096 };

/* Counts by a hash of the address, with a number that is drawn anew at each start: two addresses in a bucket share
 * its part, and an attacker can't compute which do. */
struct leat_groups_room {
    uint64_t bytes_max;
    uint64_t number; /* odd */
    _Atomic uint64_t bytes;
    _Atomic uint64_t shares[LEAT_GROUPS_ROOM_BUCKETS];
    _Atomic uint32_t
        unread; /* homes whose tables were not read yet: the counts are too low by these */
};

/** Of `most` all hold `all`, `own` of that this address: may it have so many more? address 0: unknown, limited by
 * `most` alone. */
static inline bool leat_groups_share_has(uint64_t address, uint64_t own, uint64_t all,
                                         uint64_t most, uint64_t more)
{
    if (address == 0) return more <= most && all <= most - more;
    return leat_share_has(own, all, most, more);
}

/** Thread: startup. */
void leat_groups_room_init(struct leat_groups_room *room, const struct leat_random *random,
                           uint64_t bytes_max);
/** May an address have so many bytes more? */
bool leat_groups_room_has(const struct leat_groups_room *room, uint64_t address, uint64_t more);
/** Counts a group's memory: `before`, then `after`. Never refused: stored groups are kept. */
void leat_groups_room_count(struct leat_groups_room *room, uint64_t address, uint64_t before,
                            uint64_t after);
/** What is taken beyond bytes_max: homes came from another node, or the budget was larger once. */
uint64_t leat_groups_room_over(const struct leat_groups_room *room);

#endif
