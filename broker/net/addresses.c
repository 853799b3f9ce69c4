/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/net/addresses.h"

#include "base/assert.h"
#include "broker/node.h"

void leat_addresses_init(struct leat_addresses *addresses, const struct leat_random *random,
                         uint32_t most)
{
    leat_key_hash_init(&addresses->hash, random);
    addresses->most = most ? most : LEAT_ADDRESS_CONNECTIONS;
}

bool leat_addresses_join(struct leat_addresses *addresses, const uint8_t key[LEAT_NET_KEY_BYTES],
                         uint32_t *out_bucket)
{
    uint32_t bucket = leat_key_hash(&addresses->hash, key) % LEAT_ADDRESS_BUCKETS;
    if (atomic_fetch_add_explicit(&addresses->counts[bucket], 1, memory_order_relaxed) >=
        addresses->most) {
        leat_addresses_leave(addresses, bucket);
        return false;
    }
    *out_bucket = bucket;
    return true;
}

void leat_addresses_leave(struct leat_addresses *addresses, uint32_t bucket)
{
    uint32_t before =
        atomic_fetch_sub_explicit(&addresses->counts[bucket], 1, memory_order_relaxed);
    LEAT_ASSERT_CMP(before, >, 0);
}
