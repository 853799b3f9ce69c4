/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of what an address is to limits, which nobody can aim at without knowing its numbers. */
#ifndef LEAT_BASE_KEY_HASH_H
#define LEAT_BASE_KEY_HASH_H

#include "base/bytes.h"
#include "base/port.h"

/* SUBTLE: an attacker with many addresses uses those that collide, if he can compute which ones do.
 *  1. A CRC is linear: two addresses of one length whose difference has CRC 0 collide, whatever the CRC began with.
 *     So a secret seed is no secret: the difference is found once, on any machine.
 *  2. Connections from enough such addresses fill the count that a victim's address is in, and the victim is refused;
 *     or they all lie in one chain, and each look-up goes through them.
 * A sum of the key's words, each times a random number of 64 bits, is multilinear hashing (Carter and Wegman; Lemire
 * and Kaser, 2014): of its upper 32 bits any two different keys have the same with probability 2^-32, over the
 * numbers, whichever keys they are. What is counted by it is not told to anyone, so nobody learns the numbers. */
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

/** The same on all nodes and after each start, and never 0. No two networks of IPv6 have the same, nor two addresses of
 * IPv4: a key has one of its halves, and the other is zero (os/net_open.c). */
static inline uint64_t leat_key_number(const uint8_t key[LEAT_NET_KEY_BYTES])
{
    uint64_t number = leat_get_le64(key) ^ leat_get_le64(key + 8) * 0x9e3779b97f4a7c15u;
    return number ? number : 1;
}

#endif
