/* SPDX-License-Identifier: Apache-2.0 */
/* The generators: splitmix64. */
#include "tests/sim/sim.h"

#include "base/assert.h"

void sim_rng_init(struct sim_rng *rng, uint64_t seed, const char *purpose)
{
    uint64_t hash = 14695981039346656037ull ^ seed;
    for (const char *at = purpose; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211ull;
    rng->state = hash;
    (void)sim_rng_next(rng); /* neighbouring seeds start apart */
    rng->state ^= seed * 0x9e3779b97f4a7c15ull;
}

static uint64_t thrown;

void sim_dice_throw(uint64_t value)
{
    thrown = value;
}

uint64_t sim_rng_next(struct sim_rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15ull) ^ thrown;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint64_t sim_rng_below(struct sim_rng *rng, uint64_t limit)
{
    LEAT_ASSERT(limit != 0);
    return sim_rng_next(rng) % limit;
}

uint64_t sim_rng_between(struct sim_rng *rng, uint64_t low, uint64_t high)
{
    LEAT_ASSERT(low <= high);
    return low + sim_rng_below(rng, high - low + 1);
}

bool sim_rng_chance(struct sim_rng *rng, uint32_t per_mille)
{
    return sim_rng_below(rng, 1000) < per_mille;
}
