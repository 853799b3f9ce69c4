/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections each address has: no address takes the places of all other addresses. */
#ifndef LEAT_BROKER_NET_ADDRESSES_H
#define LEAT_BROKER_NET_ADDRESSES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/key_hash.h"

enum {
    LEAT_ADDRESS_BUCKETS = 4096,
};

/* Counts of connections by a hash of the address (of IPv6 a /56: leat_net's key()). Two addresses in one bucket share
 * its limit, as one pair in LEAT_ADDRESS_BUCKETS does. The hash uses numbers that are drawn anew at each start, so no
 * client can tell which addresses share a bucket (base/key_hash.h). Any core counts. */
struct leat_addresses {
    struct leat_key_hash hash;
    uint32_t most;
    _Atomic uint32_t counts[LEAT_ADDRESS_BUCKETS];
};

/** most: 0: LEAT_ADDRESS_CONNECTIONS (broker/node.h). Thread: startup. */
void leat_addresses_init(struct leat_addresses *addresses, const struct leat_random *random,
                         uint32_t most);
/** false: the address has its limit of connections already. */
bool leat_addresses_join(struct leat_addresses *addresses, const uint8_t key[LEAT_NET_KEY_BYTES],
                         uint32_t *out_bucket);
/** Connections of all addresses that share a bucket. Thread: any. */
static inline uint32_t leat_addresses_count(const struct leat_addresses *addresses, uint32_t bucket)
{
    return atomic_load_explicit(&addresses->counts[bucket], memory_order_relaxed);
}
void leat_addresses_leave(struct leat_addresses *addresses, uint32_t bucket);

#endif
