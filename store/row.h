/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the catalogue, as it lies on disk: 128 bytes, little-endian, four to a 512 B sector, so
 * that a row is old or new after a power cut, never mixed.
 *
 * File "catalogue": block 0 (4 KiB) is the header below, then rows. A row of zeros was never used.
 */
#ifndef LEAT_STORE_ROW_H
#define LEAT_STORE_ROW_H

#include "base/error.h"

enum {
    LEAT_ROW_BYTES = 128,
    LEAT_BLOCK_BYTES = 4096,
    LEAT_ROWS_PER_BLOCK = LEAT_BLOCK_BYTES / LEAT_ROW_BYTES,
    LEAT_CATALOGUE_MAGIC = 0x5441434c, /* "LCAT" */
    LEAT_CATALOGUE_VERSION = 1,
};
enum leat_row_flags {
    LEAT_ROW_FLUSHED = 1, /* CLOSED: the slot holds all of it, durably */
    LEAT_ROW_IN_POOL =
        2, /* pool_id and pool_at say where its bytes lie in memory; FLUSHED: where they lay, and
                                another segment's may lie by now */
    LEAT_ROW_REPLICA = 4,      /* of another node's log: `writer` wrote it */
    LEAT_ROW_INCOMPLETE = 8,   /* a replacement not yet identical: never used */
    LEAT_ROW_TORN = 16,        /* HIBERNATED: see LEAT_INTEGRITY_TORN */
    LEAT_ROW_PROVISIONAL = 32, /* see leat_segment.provisional */
    LEAT_ROW_GIVEN_UP = 64,    /* see leat_segment.given_up, front_given_up */
    LEAT_ROW_FRONT_GIVEN_UP = 128,
};
enum leat_row_more {
    LEAT_ROW_DAMAGED =
        1, /* its place was found not to have what the row says: see leat_held.damaged */
};

struct leat_row {
    uint32_t crc;  /* of the rest, begun with the row's own number: a misdirected write shows */
    uint8_t state; /* enum leat_segment_state */
    uint8_t durability;
    uint8_t flags;
    uint8_t more; /* enum leat_row_more; 0: written by an earlier version */
    uint32_t stream, streamlet, log, epoch;
    uint64_t segment;
    uint32_t capacity;
    uint32_t slot_file; /* store/<slot_file> */
    uint32_t slot_unit; /* of LEAT_SLOT_UNIT_BYTES, from the file's start */
    uint32_t prefix_id_bytes,
        prefix_id_crc; /* OPEN: bytes known to be in the file when it was written */
    uint32_t
        passed_bytes; /* HIBERNATED, CLOSED: leat_segment.passed_bytes; 0: by a version that did not note it */
    uint64_t base_offset, next_offset;
    int64_t max_timestamp_ms;
    uint64_t pool_at;    /* bytes from the arena's start */
    uint8_t pool_id[16]; /* the arena: the node's pool, or the arena of a remote writer */
    uint64_t writer;     /* REPLICA: incarnation */
    uint32_t version;    /* with `epoch`: the stamp */
    uint32_t zero32_2;
    int64_t written_ms; /* CLOSED: leat_segment.written_ms; 0: by a version that did not note it */
};
_Static_assert(sizeof(struct leat_row) == LEAT_ROW_BYTES, "row layout");
_Static_assert(offsetof(struct leat_row, segment) == 24, "row layout");
_Static_assert(offsetof(struct leat_row, pool_id) == 88, "row layout");

struct leat_catalogue_header {
    uint32_t crc; /* of the rest of this struct */
    uint32_t magic;
    uint32_t version;
    uint32_t row_bytes;
    uint8_t cluster_id[16];
    uint8_t store_id[16]; /* random, made with the store */
    uint64_t row_count;   /* the file has room for at least that many */
};
_Static_assert(sizeof(struct leat_catalogue_header) == 56, "catalogue header layout");

#endif
