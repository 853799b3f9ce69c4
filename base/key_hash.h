/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of an address key for limits: without the random numbers, collisions can't be computed. */
#ifndef LEAT_BASE_KEY_HASH_H
#define LEAT_BASE_KEY_HASH_H

#include "base/bytes.h"
#include "base/port.h"

/* SUBTLE: an attacker with many addresses uses colliding addresses, if he can compute them.
 *  1. A CRC is linear: two addresses of one length whose difference has CRC 0 collide, whatever the CRC began with.
 *     So a secret seed is no secret: the difference is found once, on any machine.
 *  2. Connections from enough such addresses fill the count that a victim's address is in, and the victim is refused;
 *     or all these addresses are in one chain, and each look-up walks the chain.
 * A sum of the key's words, each times a random number of 64 bits, is multilinear hashing (Carter and Wegman; Lemire
 * and Kaser, 2014): the upper 32 bits of any two different keys are equal with probability 2^-32, over the random
 * numbers. The counts are never shown outside, so an attacker can't learn the numbers. */
struct leat_key_hash {
    uint64_t numbers[LEAT_NET_KEY_BYTES / 4 + 1];
};

static inline void leat_key_hash_init(struct leat_key_hash *hash, const struct leat_random *random)
{
    for (unsigned i = 0; i < LEAT_NET_KEY_BYTES / 4 + 1; i++)
        hash->numbers[i] = random->next(random->ctx);
}

static inline uint32_t leat_key_hash(const struct leat_key_hash *hash,
                                     const uint8_t key[LEAT_NET_KEY_BYTES])
{
    uint64_t sum = hash->numbers[LEAT_NET_KEY_BYTES / 4];
    for (unsigned i = 0; i < LEAT_NET_KEY_BYTES / 4; i++)
        sum += hash->numbers[i] * leat_get_le32(key + 4 * i);
    return (uint32_t)(sum >> 32);
}

/** The same on all nodes and after each start, and never 0. Different IPv6 networks have different numbers, and so
 * have different IPv4 addresses: a key uses one of its halves, and the other half is zero (os/net_open.c). */
static inline uint64_t leat_key_number(const uint8_t key[LEAT_NET_KEY_BYTES])
{
    uint64_t number = leat_get_le64(key) ^ leat_get_le64(key + 8) * 0x9e3779b97f4a7c15u;
    return number ? number : 1;
}

#endif
