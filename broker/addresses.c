#include "broker/addresses.h"

#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"

void leat_addresses_init(struct leat_addresses *addresses, uint64_t seed, uint32_t most)
{
    addresses->seed = (uint32_t)seed;
    addresses->most = most ? most : LEAT_ADDRESS_CONNECTIONS;
}

bool leat_addresses_join(struct leat_addresses *addresses, const char *peer, uint32_t *out_bucket)
{
    const char *colon = strrchr(peer, ':'); /* before the port */
    size_t bytes = colon ? (size_t)(colon - peer) : strlen(peer);
    uint32_t bucket = leat_crc32c(addresses->seed, peer, bytes) % LEAT_ADDRESS_BUCKETS;
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
