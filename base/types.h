/* SPDX-License-Identifier: Apache-2.0 */
/* Small value types that name what a number means. */
#ifndef LEAT_BASE_TYPES_H
#define LEAT_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Logical offset: dense index of a record in its log. */
struct leat_offset {
    uint64_t v;
};

/* Ownership epoch: one number of one cluster-wide counter, never reused. 0 = none. 31 bits, so that
 * it also fits Kafka's leader epoch. */
struct leat_epoch {
    uint32_t v;
};

/* Dense id of a segment within its log: 0, 1, 2, ... */
struct leat_segment_id {
    uint64_t v;
};

/* first <= id < end; none where both are equal. */
struct leat_segment_range {
    uint64_t first, end;
};
static inline bool leat_segment_range_has(const struct leat_segment_range *range, uint64_t id)
{
    return id >= range->first && id < range->end;
}

/* Which log. Stream ids are never reused and start at 1. */
struct leat_log_ref {
    uint32_t stream;
    uint32_t streamlet;
    uint32_t log;
};

/* KerA's application offset within one log (thesis §5.2.1). The group is segment / segments per
 * group. */
struct leat_position {
    uint64_t group;
    uint64_t segment;
    uint32_t position; /* bytes from the segment's start; 0 = its first record */
};

/* (length, CRC) names a segment prefix's bytes: see wire/entry.h. */
struct leat_prefix_id {
    uint32_t bytes;
    uint32_t crc;
};
static inline bool leat_prefix_id_equal(struct leat_prefix_id a, struct leat_prefix_id b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

enum leat_durability {
    LEAT_DURABILITY_DEFAULT = 0, /* the server chooses: disk where all copies are on one host */
    LEAT_DURABILITY_MEMORY = 1,
    LEAT_DURABILITY_DISK = 2,
};

/* Limits that several modules share. */
enum {
    LEAT_BATCH_BYTES_MAX = 2 * 1024 * 1024,
    LEAT_START_BYTES_MAX = 2 * 1024 * 1024,
    LEAT_SEGMENT_BYTES_MIN = 16 * 1024,
    LEAT_SEGMENT_BYTES_MAX = 8 * 1024 * 1024,
    LEAT_SEGMENTS_PER_GROUP = 16,
    LEAT_PRODUCERS_PER_LOG_MAX = 16384,
    LEAT_BATCH_BYTES_LIMIT_MIN = 128, /* no stream may ask for less */
    LEAT_BATCHES_IN_FLIGHT_MAX = 5,   /* per producer and log; also how many a log remembers */
    LEAT_STREAM_NAME_BYTES_MAX = 249,
    LEAT_STREAMLETS_MAX = 65536,
    LEAT_LOGS_MAX = 256, /* Q of one streamlet */
    LEAT_CORES_MAX = 64,
    LEAT_COPIES_MAX = 8, /* of a segment, the owner's included */
    /* After an accepted loss a log continues at a multiple of 2^40, and records before that would fill 64 TiB: so two
     * offsets with different upper bits have an offset gap between them. */
    LEAT_GAP_BITS = 40,
};

static inline bool leat_log_ref_equal(struct leat_log_ref a, struct leat_log_ref b)
{
    return a.stream == b.stream && a.streamlet == b.streamlet && a.log == b.log;
}
/** Below 0: a comes before b; 0: equal; above 0: a comes after b. */
static inline int leat_log_ref_order(struct leat_log_ref a, struct leat_log_ref b)
{
    if (a.stream != b.stream) return a.stream < b.stream ? -1 : 1;
    if (a.streamlet != b.streamlet) return a.streamlet < b.streamlet ? -1 : 1;
    return a.log < b.log ? -1 : a.log > b.log;
}

/* How compressed produced batches are checked. Uncompressed batches are always checked whole. */
enum leat_validate {
    LEAT_VALIDATE_FULL, /* their records, too, for which they are uncompressed */
    LEAT_VALIDATE_CRC,  /* that the bytes are the sent bytes */
};

/* A stream's settings, as created and as kept by the coordinator. Zero means "the default". */
struct leat_stream_settings {
    uint32_t streamlets; /* M, at least 1 */
    uint32_t logs;       /* Q, at least 1; never changes */
    uint32_t copies;     /* 1 on a single node */
    uint32_t min_copies;
    enum leat_durability durability;
    uint32_t segment_bytes_max; /* power of two, LEAT_SEGMENT_BYTES_MIN .. _MAX */
    int64_t retention_ms;       /* <= 0: for ever */
    int64_t retention_bytes;    /* per log; <= 0: unbounded */
    uint32_t batch_bytes_max;   /* LEAT_BATCH_BYTES_LIMIT_MIN .. LEAT_BATCH_BYTES_MAX */
    bool append_time;           /* records get the time of their append; else their producer's */
    /* What a client of Kafka asked for and is told again. Nothing goes by them. */
    uint32_t
        segment_bytes_asked; /* segment_bytes_max is the most of it that a segment can have; 0: the same */
    uint32_t compression_asked; /* as kafka/handlers/config.c numbers them; 0: the producer's */
    enum leat_validate validate;
};

#endif
