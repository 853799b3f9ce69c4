/* SPDX-License-Identifier: Apache-2.0 */
/* Entries, the parts of a segment. Little-endian, 8-byte aligned, header 32 bytes + payload + zero padding.
 *
 *    0 type u8          1 flags u8         2 zero u16       4 payload bytes u32
 *    8 base offset u64                    16 record count u32
 *   20 CRC u32                            24 zero u64
 *
 * CRC is the CRC-32C of the whole payload (0 for an empty one). Type 0 is "no entry": zeroed memory
 * reads as the end.
 *
 * A TRAILER (Tailwind §3.1) has no payload; its `CRC` is the *chain*: CRC-32C over all entry headers of this segment
 * up to here and the other fields of the trailer (a trailer continues the chain from the trailer before); a computed
 * 0 is stored as 1. The `base offset` field is the acked length of this segment at the time of the write. The last
 * entry of a valid prefix is always a trailer, so (length, chain CRC) names the prefix's bytes: headers cover payload
 * CRCs. Entries under one trailer are one atomic unit.
 *
 * Order in a segment:
 *   SEGMENT header, START, TRAILER, { BATCH or TRIM, …, TRAILER }*, CLOSE, TRAILER
 *
 * The header is written when the buffer is reserved, and has no trailer of its own; the START when
 * the segment becomes the head. Without START a segment is a reservation, not part of the log.
 */
#ifndef LEAT_WIRE_ENTRY_H
#define LEAT_WIRE_ENTRY_H

#include "base/error.h"
#include "base/types.h"

enum leat_entry_type {
    LEAT_ENTRY_NONE = 0,
    LEAT_ENTRY_SEGMENT = 1,
    LEAT_ENTRY_START = 2,
    LEAT_ENTRY_BATCH = 3,
    LEAT_ENTRY_TRAILER = 4,
    LEAT_ENTRY_TRIM = 5,
    LEAT_ENTRY_CLOSE = 6,
};
enum { LEAT_ENTRY_HEADER_BYTES = 32, LEAT_ENTRY_ALIGN = 8, LEAT_FORMAT_VERSION = 1 };

struct leat_entry {
    uint8_t type;
    uint8_t flags; /* zero */
    uint16_t zero16;
    uint32_t payload_bytes;
    uint64_t base_offset; /* BATCH: first offset. TRAILER: acked bytes. Others: 0 */
    uint32_t record_count;
    uint32_t crc;
    uint64_t zero64;
};
_Static_assert(sizeof(struct leat_entry) == LEAT_ENTRY_HEADER_BYTES, "entry header layout");

static inline uint32_t leat_entry_bytes(uint32_t payload_bytes)
{
    return LEAT_ENTRY_HEADER_BYTES +
           ((payload_bytes + LEAT_ENTRY_ALIGN - 1) & ~(uint32_t)(LEAT_ENTRY_ALIGN - 1));
}

/* Payload of SEGMENT, fixed part; the stream's name follows. */
struct leat_segment_header {
    uint32_t magic; /* LEAT_SEGMENT_MAGIC */
    uint16_t format_version;
    uint16_t name_bytes;
    uint8_t cluster_id[16];
    uint32_t stream, streamlet, log;
    uint32_t epoch;
    uint64_t group, segment;
    uint64_t owner_incarnation;
    uint32_t capacity;
    uint32_t durability;
    int64_t created_ms;
    int64_t retention_ms, retention_bytes;
    uint32_t streamlets, logs, copies,
        segment_bytes_max; /* so that streams can be rebuilt from segments alone */
};
enum { LEAT_SEGMENT_MAGIC = 0x5441454c /* "LEAT" */ };
_Static_assert(sizeof(struct leat_segment_header) == 112, "segment header layout");

/* Payload of START, fixed part; then producer_count producers, then app_bytes of opaque state of the log's
 * application. */
struct leat_start {
    uint64_t base_offset; /* of the first record to come */
    struct leat_prefix_id
        previous;           /* of segment id - 1 up to and with its close trailer; {0,0} for none */
    uint64_t first_segment; /* first retained */
    uint64_t first_offset;
    uint32_t producer_count;
    uint32_t app_bytes;
    uint8_t producers_expired; /* this log has dropped producer state at least once */
    uint8_t zero[7];
};
_Static_assert(sizeof(struct leat_start) == 48, "start layout");

/* One producer's state at a log. */
struct leat_producer_batch {
    int32_t first_sequence, last_sequence;
    uint64_t first_offset;
};
struct leat_producer_state {
    int64_t producer_id;
    int64_t last_used_ms;
    int32_t first_sequence; /* the first sequence this log accepted in this epoch */
    int16_t epoch;
    uint8_t batch_count; /* of `batches`, oldest first */
    uint8_t zero[1];
    struct leat_producer_batch batches[LEAT_BATCHES_IN_FLIGHT_MAX];
};
_Static_assert(sizeof(struct leat_producer_state) == 104, "producer state layout");

/* Payload of TRIM. */
struct leat_trim {
    uint64_t first_segment, first_offset;
};

/* Payload of CLOSE, fixed part; index_count index rows follow, ascending. */
struct leat_close {
    uint64_t next_offset; /* base offset of the next segment */
    uint64_t record_count;
    int64_t max_timestamp_ms;
    uint32_t bytes; /* before the close entry */
    uint32_t index_count;
};
_Static_assert(sizeof(struct leat_close) == 32, "close layout");
struct leat_index_row {
    uint32_t position;        /* of a batch entry's header */
    uint32_t offset_delta;    /* its base offset - the segment's base offset */
    int64_t max_timestamp_ms; /* of everything before this position: the row to start from for time
                                 t is the last with max_timestamp < t */
};

/* ---- writing ---- */
/* A segment being written: its place and its chain. Owner thread only. */
struct leat_entry_writer {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t used;         /* everything written, trailers included */
    uint32_t sealed_bytes; /* up to and with the last trailer */
    uint32_t chain;        /* CRC over headers so far; what the next trailer continues: to resume a
                              segment, used = sealed_bytes = the prefix id's bytes, chain = its crc */
};
void leat_entry_writer_init(struct leat_entry_writer *writer, uint8_t *bytes, uint32_t capacity);
/** Does an entry of that payload, and a trailer after it, fit while `keep_free` bytes stay? */
bool leat_entry_fits(const struct leat_entry_writer *writer, uint32_t payload_bytes,
                     uint32_t keep_free);
/** Append an entry; payload is copied. Returns its header's position. The caller has asked leat_entry_fits().
 * base_offset and record_count: 0 but for BATCH. payload_crc: CRC-32C of payload (a known CRC is passed; otherwise
 * leat_crc32c(0, …)). */
uint32_t leat_entry_append(struct leat_entry_writer *writer, enum leat_entry_type type,
                           uint64_t base_offset, uint32_t record_count, const void *payload,
                           uint32_t payload_bytes, uint32_t payload_crc);
/** Append the trailer; acked_bytes at most sealed_bytes; returns (length, chain) of the prefix that ends here. */
struct leat_prefix_id leat_entry_seal(struct leat_entry_writer *writer, uint32_t acked_bytes);
/** Chain CRC of a trailer, given the chain before it. Never 0. */
uint32_t leat_entry_trailer_crc(uint32_t chain_before, const struct leat_entry *trailer);

/* ---- scanning (Tailwind Algorithm 1, hardened) ---- */
struct leat_scan {
    uint32_t bytes;       /* valid prefix: up to and with the last matching trailer */
    uint32_t crc;         /* its chain */
    uint32_t acked_bytes; /* highest acked length seen in any matching trailer, also past a bad
                             payload */
    bool damaged;         /* bytes < acked_bytes: acked entries lie past damage */
    bool started, closed; /* within the valid prefix */
    struct leat_prefix_id
        previous; /* if started: what the start entry says of the segment before */
    uint64_t base_offset, next_offset; /* if started */
    uint64_t retained_segment;         /* highest first segment that a trim entry names; 0: none */
    int64_t max_timestamp_ms;          /* of all batches; -1 for none */
    struct leat_segment_header header; /* if has_header */
    bool has_header;
};
/** Walk a segment's bytes from its start. Never reads past `bytes`. Trusts nothing. Thread: any.
 * Allocates: never. */
void leat_scan_segment(const uint8_t *segment, uint32_t bytes, struct leat_scan *out_scan);
/** Whether the segment shows only that it has started: no batch, and no trim entry that gives up the segment before.
 * Then the roll to this segment may not have ended, and the segment before is needed. A trim entry that gives up the
 * segment before was written after the roll, and before the copies of that segment were dropped. For a scan that
 * started. */
bool leat_scan_only_start(const struct leat_scan *scan);
/** Whether the segment began, and its valid prefix has exactly this prefix id. */
static inline bool leat_scan_is(const struct leat_scan *scan, struct leat_prefix_id prefix_id)
{
    return scan->started && scan->bytes == prefix_id.bytes && scan->crc == prefix_id.crc;
}

/* Walk the entries of a prefix already known to be valid. Returns the header, or NULL at the end or
 * on nonsense. */
const struct leat_entry *leat_entry_at(const uint8_t *segment, uint32_t valid_bytes,
                                       uint32_t position);

#endif
