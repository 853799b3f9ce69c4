/* How many connections there are from where: no address takes the places of all others. */
#ifndef LEAT_BROKER_ADDRESSES_H
#define LEAT_BROKER_ADDRESSES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LEAT_ADDRESS_BUCKETS = 4096,
    LEAT_ADDRESS_CONNECTIONS = 16384, /* of one address, unless the operator says otherwise */
};

/* Counts by a hash of the address, seeded anew at each start: two addresses that share a bucket share its limit,
 * which is rare, and nobody can choose it. Any core counts. */
struct leat_addresses {
    uint32_t seed, most;
    _Atomic uint32_t counts[LEAT_ADDRESS_BUCKETS];
};

/** most: 0: LEAT_ADDRESS_CONNECTIONS. Thread: startup. */
void leat_addresses_init(struct leat_addresses *addresses, uint64_t seed, uint32_t most);
/** peer: as the net port names it. false: there are as many of it already. */
bool leat_addresses_join(struct leat_addresses *addresses, const char *peer, uint32_t *out_bucket);
void leat_addresses_leave(struct leat_addresses *addresses, uint32_t bucket);

#endif
