/* SPDX-License-Identifier: Apache-2.0 */
/* Repeatable random numbers: xoshiro256** seeded through splitmix64 (Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", 2021). Not for secrets. */
#ifndef LEAT_BASE_RANDOM_H
#define LEAT_BASE_RANDOM_H

#include <stdint.h>

struct leat_xoshiro {
    uint64_t s[4];
};

static inline uint64_t leat_splitmix_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void leat_xoshiro_seed(struct leat_xoshiro *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->s[i] = leat_splitmix_next(&seed);
}

static inline uint64_t leat_xoshiro_next(struct leat_xoshiro *random)
{
    uint64_t *s = random->s, x = s[1] * 5, t = s[1] << 17;
    uint64_t result = ((x << 7) | (x >> 57)) * 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform enough in [0, bound) for tests and jitter; bound > 0. */
static inline uint64_t leat_xoshiro_below(struct leat_xoshiro *random, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)leat_xoshiro_next(random) * bound) >> 64);
}

#endif
