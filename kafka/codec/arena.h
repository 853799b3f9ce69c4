/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one request: given out piece by piece, given back all at once. Bounded twice: each arena has a limit, and
 * all arenas of a core share a limit (struct leat_kafka_arena_share). */
#ifndef LEAT_KAFKA_CODEC_ARENA_H
#define LEAT_KAFKA_CODEC_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

enum {
    LEAT_KAFKA_ARENA_INLINE_BYTES = 1536, /* enough for most requests: then nothing is allocated */
    /* Chunks double up to this: most of what does not fit above takes little more, and may be held for long. */
    LEAT_KAFKA_ARENA_CHUNK_BYTES_MIN = 2048,
    LEAT_KAFKA_ARENA_CHUNK_BYTES = 16 * 1024,
    LEAT_KAFKA_ARENA_BYTES_MAX = 48 * 1024 * 1024, /* of one request */
    /* So much of a connection's only request may be of the last part of the share, one of so many. */
    LEAT_KAFKA_ARENA_OWN_BYTES = LEAT_KAFKA_ARENA_CHUNK_BYTES,
    LEAT_KAFKA_ARENA_OWN_PART = 8,
};

struct leat_kafka_arena_share {
    size_t bytes_used, bytes_max;
};

/** Bytes of the share that any request may use. */
static inline size_t leat_kafka_arena_share_most(const struct leat_kafka_arena_share *share)
{
    return share->bytes_max - share->bytes_max / LEAT_KAFKA_ARENA_OWN_PART;
}

struct leat_kafka_arena_chunk;
struct leat_kafka_arena {
    struct leat_kafka_arena_share *share; /* borrowed; NULL: none */
    struct leat_kafka_arena_chunk *chunks;
    uint8_t *at, *end;
    size_t bytes_allocated, bytes_max;
    size_t own_bytes_max; /* so many of its bytes may be of the share's last part */
    size_t bytes_missed;  /* bytes that it would have had in all with enough room in the share */
    _Alignas(16) uint8_t first[LEAT_KAFKA_ARENA_INLINE_BYTES];
};

void leat_kafka_arena_init(struct leat_kafka_arena *arena, struct leat_kafka_arena_share *share,
                           size_t bytes_max);
void leat_kafka_arena_fini(struct leat_kafka_arena *arena);
/** Count memory that lies elsewhere, until fini. false: a limit is reached. */
bool leat_kafka_arena_hold(struct leat_kafka_arena *arena, size_t bytes);
/** leat_kafka_arena_take() for more bytes than the current chunk has. */
void *leat_kafka_arena_grow(struct leat_kafka_arena *arena, size_t bytes);

/** Zeroed, aligned to 16 bytes, valid until fini; NULL when a limit is reached or there is no
 * memory. Thread: owner's. */
static inline void *leat_kafka_arena_take(struct leat_kafka_arena *arena, size_t count,
                                          size_t bytes)
{
    size_t wanted;
    if (__builtin_mul_overflow(count, bytes, &wanted)) return NULL;
    if (wanted == 0) wanted = 1;
    LEAT_ASSERT_SLOW(arena->at <= arena->end);
    /* The room of a chunk is a multiple of 16 bytes: bytes that fit still do when rounded up. */
    if (wanted > (size_t)(arena->end - arena->at)) return leat_kafka_arena_grow(arena, wanted);
    void *taken = arena->at;
    wanted = LEAT_ALIGN_UP(wanted, (size_t)16);
    arena->at += wanted;
    return memset(taken, 0, wanted);
}

#endif
