/* SPDX-License-Identifier: Apache-2.0 */
/* XXH32, the checksum of lz4's frames (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). Private to wire/. */
#ifndef LEAT_WIRE_XXH32_H
#define LEAT_WIRE_XXH32_H

#include "base/bytes.h"

#include <string.h>

#define LEAT_XXH32_1 0x9e3779b1u
#define LEAT_XXH32_2 0x85ebca77u
#define LEAT_XXH32_3 0xc2b2ae3du
#define LEAT_XXH32_4 0x27d4eb2fu
#define LEAT_XXH32_5 0x165667b1u

struct leat_xxh32 {
    uint32_t lanes[4];
    uint64_t total;
    uint8_t rest[16]; /* total % 16 bytes that are no whole stripe yet */
};

static inline uint32_t leat_xxh32_turn(uint32_t value, unsigned bits)
{
    return (value << bits) | (value >> (32 - bits));
}

static inline void leat_xxh32_init(struct leat_xxh32 *hash)
{
    *hash = (struct leat_xxh32){
        .lanes = {LEAT_XXH32_1 + LEAT_XXH32_2, LEAT_XXH32_2, 0, 0u - LEAT_XXH32_1}};
}

static inline void leat_xxh32_stripe(struct leat_xxh32 *hash, const uint8_t *at)
{
    for (int i = 0; i < 4; i++) {
        uint32_t lane = hash->lanes[i] + leat_get_le32(at + (size_t)4 * (size_t)i) * LEAT_XXH32_2;
        hash->lanes[i] = leat_xxh32_turn(lane, 13) * LEAT_XXH32_1;
    }
}

static inline void leat_xxh32_add(struct leat_xxh32 *hash, const uint8_t *at, size_t bytes)
{
    size_t held = hash->total % 16;
    hash->total += bytes;
    if (held + bytes < 16) {
        memcpy(hash->rest + held, at, bytes);
        return;
    }
    if (held > 0) {
        memcpy(hash->rest + held, at, 16 - held);
        leat_xxh32_stripe(hash, hash->rest);
        at += 16 - held;
        bytes -= 16 - held;
    }
    for (; bytes >= 16; at += 16, bytes -= 16)
        leat_xxh32_stripe(hash, at);
    memcpy(hash->rest, at, bytes);
}

static inline uint32_t leat_xxh32_end(const struct leat_xxh32 *hash)
{
    const uint32_t *lanes = hash->lanes;
    uint32_t sum = lanes[2] + LEAT_XXH32_5;
    if (hash->total >= 16)
        sum = leat_xxh32_turn(lanes[0], 1) + leat_xxh32_turn(lanes[1], 7) +
              leat_xxh32_turn(lanes[2], 12) + leat_xxh32_turn(lanes[3], 18);
    sum += (uint32_t)hash->total;
    size_t at = 0, held = hash->total % 16;
    for (; at + 4 <= held; at += 4)
        sum =
            leat_xxh32_turn(sum + leat_get_le32(hash->rest + at) * LEAT_XXH32_3, 17) * LEAT_XXH32_4;
    for (; at < held; at++)
        sum = leat_xxh32_turn(sum + hash->rest[at] * LEAT_XXH32_5, 11) * LEAT_XXH32_1;
    sum = (sum ^ (sum >> 15)) * LEAT_XXH32_2;
    sum = (sum ^ (sum >> 13)) * LEAT_XXH32_3;
    return sum ^ (sum >> 16);
}

static inline uint32_t leat_xxh32(const uint8_t *at, size_t bytes)
{
    struct leat_xxh32 hash;
    leat_xxh32_init(&hash);
    leat_xxh32_add(&hash, at, bytes);
    return leat_xxh32_end(&hash);
}

#endif
