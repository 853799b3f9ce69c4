/* Memory of one request: given out from the front, given back all at once. Bounded twice: each
 * arena has a limit, and all arenas of a core share another (struct leat_kafka_arena_share). */
#ifndef LEAT_KAFKA_ARENA_H
#define LEAT_KAFKA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LEAT_KAFKA_ARENA_INLINE_BYTES = 1536, /* enough for most requests: then nothing is allocated */
    LEAT_KAFKA_ARENA_CHUNK_BYTES = 16 * 1024,
    LEAT_KAFKA_ARENA_BYTES_MAX = 48 * 1024 * 1024, /* of one request */
};

struct leat_kafka_arena_share {
    size_t bytes_used, bytes_max;
};

struct leat_kafka_arena_chunk;
struct leat_kafka_arena {
    struct leat_kafka_arena_share *share; /* borrowed; NULL: none */
    struct leat_kafka_arena_chunk *chunks;
    uint8_t *at, *end;
    size_t bytes_allocated, bytes_max;
    _Alignas(16) uint8_t first[LEAT_KAFKA_ARENA_INLINE_BYTES];
};

void leat_kafka_arena_init(struct leat_kafka_arena *arena, struct leat_kafka_arena_share *share,
                           size_t bytes_max);
void leat_kafka_arena_fini(struct leat_kafka_arena *arena);
/** Zeroed, aligned to 16 bytes, valid until fini; NULL when a limit is reached or there is no
 * memory. Thread: owner's. */
void *leat_kafka_arena_take(struct leat_kafka_arena *arena, size_t count, size_t bytes);

#endif
