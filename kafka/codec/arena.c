/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/codec/arena.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

struct leat_kafka_arena_chunk {
    struct leat_kafka_arena_chunk *next;
    size_t bytes;
};
enum { CHUNK_HEAD_BYTES = 16 };
_Static_assert(sizeof(struct leat_kafka_arena_chunk) <= CHUNK_HEAD_BYTES, "alignment is kept");

void leat_kafka_arena_init(struct leat_kafka_arena *arena, struct leat_kafka_arena_share *share,
                           size_t bytes_max)
{
    arena->share = share;
    arena->chunks = NULL;
    arena->at = arena->first;
    arena->end = arena->first + sizeof arena->first;
    arena->bytes_allocated = 0;
    arena->bytes_max = bytes_max;
    arena->own_bytes_max = arena->bytes_missed = 0;
}

void leat_kafka_arena_fini(struct leat_kafka_arena *arena)
{
    struct leat_kafka_arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        struct leat_kafka_arena_chunk *next = chunk->next;
        leat_mem_free(chunk);
        chunk = next;
    }
    if (arena->share != NULL) {
        LEAT_ASSERT_CMP(arena->bytes_allocated, <=, arena->share->bytes_used);
        arena->share->bytes_used -= arena->bytes_allocated;
    }
    leat_kafka_arena_init(arena, arena->share, arena->bytes_max);
}

static bool share_fits(const struct leat_kafka_arena *arena, size_t bytes)
{
    const struct leat_kafka_arena_share *share = arena->share;
    if (share == NULL) return true;
    LEAT_ASSERT_CMP(share->bytes_used, <=, share->bytes_max);
    const bool own = arena->bytes_allocated + bytes <= arena->own_bytes_max;
    return share->bytes_used + bytes <=
           (own ? share->bytes_max : leat_kafka_arena_share_most(share));
}

bool leat_kafka_arena_hold(struct leat_kafka_arena *arena, size_t bytes)
{
    LEAT_ASSERT_CMP(arena->bytes_allocated, <=, arena->bytes_max);
    if (bytes > arena->bytes_max - arena->bytes_allocated) return false;
    if (!share_fits(arena, bytes)) {
        arena->bytes_missed = arena->bytes_allocated + bytes;
        return false;
    }
    arena->bytes_allocated += bytes;
    if (arena->share != NULL) arena->share->bytes_used += bytes;
    return true;
}

/* Zeroed as it comes: only the first bytes, which are used again and again, have to be wiped. */
void *leat_kafka_arena_grow(struct leat_kafka_arena *arena, size_t bytes)
{
    struct leat_kafka_arena_share *share = arena->share;
    LEAT_ASSERT_CMP(bytes, >, (size_t)(arena->end - arena->at)); /* else it is taken from there */
    LEAT_ASSERT_CMP(arena->bytes_allocated, <=, arena->bytes_max);
    if (bytes > arena->bytes_max) return NULL;
    bytes = LEAT_ALIGN_UP(bytes, (size_t)16);
    size_t chunk_bytes = CHUNK_HEAD_BYTES + bytes;
    const bool own = bytes > LEAT_KAFKA_ARENA_CHUNK_BYTES / 4;
    if (!own) {
        size_t wanted = arena->bytes_allocated > chunk_bytes ? arena->bytes_allocated : chunk_bytes;
        chunk_bytes = LEAT_KAFKA_ARENA_CHUNK_BYTES_MIN;
        while (chunk_bytes < wanted && chunk_bytes < LEAT_KAFKA_ARENA_CHUNK_BYTES)
            chunk_bytes *= 2;
    }
    LEAT_ASSERT_CMP(CHUNK_HEAD_BYTES + bytes, <=, chunk_bytes);
    if (chunk_bytes > arena->bytes_max - arena->bytes_allocated) return NULL;
    if (!share_fits(arena, chunk_bytes)) {
        arena->bytes_missed = arena->bytes_allocated + chunk_bytes;
        return NULL;
    }
    struct leat_kafka_arena_chunk *chunk = leat_mem_calloc(LEAT_MEM_BROKER, chunk_bytes, 1);
    if (chunk == NULL) return NULL;
    chunk->bytes = chunk_bytes;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->bytes_allocated += chunk_bytes;
    if (share != NULL) share->bytes_used += chunk_bytes;
    uint8_t *begin = (uint8_t *)chunk + CHUNK_HEAD_BYTES;
    LEAT_ASSERT(((uintptr_t)begin & 15) == 0);
    if (!own) {
        arena->at = begin + bytes;
        arena->end = (uint8_t *)chunk + chunk_bytes;
    }
    return begin;
}
