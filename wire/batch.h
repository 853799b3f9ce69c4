/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka RecordBatch v2 (magic 2): the one stored and transmitted form of records. Big-endian, as
 * Kafka has it.
 *
 *    0 baseOffset i64             8 batchLength i32, bytes after it   12 partitionLeaderEpoch i32
 *   16 magic i8 = 2              17 crc u32, CRC-32C from 21 on       21 attributes i16
 *   23 lastOffsetDelta i32       27 baseTimestamp i64                 35 maxTimestamp i64
 *   43 producerId i64            51 producerEpoch i16                 53 baseSequence i32
 *   57 recordsCount i32          61 records
 */
#ifndef LEAT_WIRE_BATCH_H
#define LEAT_WIRE_BATCH_H

#include "base/error.h"
#include "base/types.h"

enum {
    LEAT_BATCH_HEADER_BYTES = 61,
    LEAT_BATCH_LENGTH_AT = 8,
    LEAT_BATCH_CRC_AT = 17,
    LEAT_BATCH_CRC_FROM = 21,
    LEAT_BATCH_APPEND_TIME = 0x08, /* attributes: all records have the batch's highest timestamp */
    LEAT_RECORDS_PER_BATCH_MAX = 1 << 20,
};

enum leat_codec {
    LEAT_CODEC_NONE = 0,
    LEAT_CODEC_GZIP = 1,
    LEAT_CODEC_SNAPPY = 2,
    LEAT_CODEC_LZ4 = 3,
    LEAT_CODEC_ZSTD = 4
};

/* A checked batch. Plain values; `bytes` is a view of the caller's buffer. */
struct leat_batch {
    const uint8_t *bytes;
    uint32_t byte_count;   /* whole batch, header included */
    uint32_t record_count; /* >= 1 */
    uint64_t base_offset;
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms; /* of a checked one: what the records say, which the header may not */
    int64_t producer_id;      /* -1: not idempotent */
    int16_t producer_epoch;
    int32_t base_sequence; /* -1 without a producer id */
    uint32_t leader_epoch;
    uint16_t attributes;
    enum leat_codec codec;
};

/** Bytes of the batch that starts at data (from its length field), 0 if fewer than 12 bytes are
 * there or the field is negative or too small to be a batch. The result may exceed `bytes` and any
 * limit. Thread: any. */
uint64_t leat_batch_bytes(const uint8_t *data, size_t bytes);

/** The codec in the header, whatever else is wrong with the batch; LEAT_CODEC_NONE if there is no header. Thread:
 * any. */
enum leat_codec leat_batch_codec(const uint8_t *data, size_t bytes);

/**
 * Check one batch whole: lengths, magic, CRC, count = lastOffsetDelta + 1, no control or transactional flags; and,
 * where records are not compressed, each record: form, offset delta equal to its place; and the records fill the
 * batch exactly.
 *
 * data        Borrowed. Exactly one batch.
 * error       May be NULL; says which check failed.
 * Errors: LEAT_E_INVALID, LEAT_E_TOO_LARGE, LEAT_E_CORRUPT, LEAT_E_UNSUPPORTED. CORRUPT: these are not the bytes that
 * the producer wrote, so the producer may send them again. The CRC is checked before all that the CRC covers.
 * Thread: any.  Blocks: never.  Allocates: never.
 */
leat_err leat_batch_check(const uint8_t *data, size_t bytes, struct leat_batch *out_batch,
                          struct leat_error *error) LEAT_NODISCARD;

/** Whether the CRC-32C in the header is that of the bytes after the CRC. `bytes`: one batch, by its length field. Base
 * offset, length, leader epoch and magic are not covered. Thread: any. */
bool leat_batch_crc_is_right(const uint8_t *data, size_t bytes);

/** Fill a view from a stored batch whose payload CRC an entry has vouched for: no CRC pass, no
 * walk. Bounds are checked. */
leat_err leat_batch_view(const uint8_t *data, size_t bytes,
                         struct leat_batch *out_batch) LEAT_NODISCARD;

/** Write the two fields outside the CRC. Thread: the owner of the bytes. */
void leat_batch_stamp(uint8_t *batch, uint64_t base_offset, uint32_t leader_epoch);

/**
 * The log sets the times: timestamp type, highest timestamp and CRC in a batch's header. The records' own times stay,
 * and are ignored from now on. The CRC is computed from the old CRC, which must be right, without another pass over
 * the records.
 *
 * header  The first LEAT_BATCH_HEADER_BYTES of a batch, or a copy of them.
 * Thread: the owner of the bytes.
 */
void leat_batch_set_append_time(uint8_t *header, uint32_t byte_count, int64_t time_ms);

/** The highest timestamp of a checked batch, and the CRC, into its header, or into a copy of the header, as above.
 * Nothing changes if the header has this timestamp already. */
void leat_batch_set_max_time(uint8_t *header, const struct leat_batch *batch);

/* ---- records of an uncompressed batch ---- */
struct leat_record {
    const uint8_t *key, *value,
        *headers; /* NULL key or value = null; headers: raw, without the count before */
    uint32_t key_bytes, value_bytes, headers_bytes, header_count;
    int64_t timestamp_ms;
    uint32_t offset_delta;
};
struct leat_record_reader {
    const uint8_t *at, *end;
    int64_t base_timestamp_ms;
    uint64_t delta_mask; /* 0: the log has set the times, deltas do not count */
    uint32_t left, count;
};
/** records/bytes: the uncompressed records section. Thread: any. */
void leat_record_reader_init(struct leat_record_reader *reader, const struct leat_batch *batch,
                             const uint8_t *records, size_t bytes);
/** LEAT_OK and a record; LEAT_E_NOT_FOUND at the end; LEAT_E_CORRUPT. Headers of a record that is
 * returned are well-formed. Hot: a few ns a record. */
leat_err leat_record_next(struct leat_record_reader *reader,
                          struct leat_record *out_record) LEAT_NODISCARD;

/* ---- building ---- */
/* Appends records to caller's memory; no allocation. */
struct leat_batch_builder {
    uint8_t *bytes;
    uint32_t used, capacity;
    uint32_t record_count;
    int64_t base_timestamp_ms, max_timestamp_ms;
    uint32_t digested; /* records up to there are in digest */
    uint32_t digest;   /* CRC-32C of bytes[LEAT_BATCH_HEADER_BYTES .. digested) */
};
void leat_batch_builder_init(struct leat_batch_builder *builder, uint8_t *bytes, size_t capacity);
/** LEAT_E_AGAIN when it does not fit (the builder is unchanged). key NULL = null key; value NULL =
 * null value (an empty one has a pointer). headers: encoded as in Kafka, without the count; pass
 * header_count 0 for none. Hot. */
leat_err leat_batch_builder_add(struct leat_batch_builder *builder, int64_t timestamp_ms,
                                const void *key, size_t key_bytes, const void *value,
                                size_t value_bytes, const void *headers, size_t headers_bytes,
                                uint32_t header_count) LEAT_NODISCARD;
/** Take what was added since the last call into the CRC, where that is no less than bytes_min: soon after
 * the copy the bytes are in the nearest cache, and finish() may be on another processor. Optional. */
void leat_batch_builder_digest(struct leat_batch_builder *builder, uint32_t bytes_min);
/** Upper bound of the bytes of a record. */
size_t leat_batch_record_bytes_max(size_t key_bytes, size_t value_bytes, size_t headers_bytes);
/** Write header and CRC. Pass producer_id -1, epoch -1, sequence -1 for none. Returns the batch's
 * bytes. */
uint32_t leat_batch_builder_finish(struct leat_batch_builder *builder,
                                   enum leat_codec codec_of_records, int64_t producer_id,
                                   int16_t producer_epoch, int32_t base_sequence);
/** Rewrite producer fields and CRC of a finished batch (sequence assigned late). */
void leat_batch_set_producer(uint8_t *batch, uint32_t byte_count, int64_t producer_id,
                             int16_t producer_epoch, int32_t base_sequence);

/* ---- compression: lz4 (frame format, as Kafka), zstd; read only: gzip, snappy ---- */
/** Compress records (the section after the header) of a finished uncompressed batch into out; the
 * result is a finished batch again. LEAT_E_AGAIN: not smaller or does not fit; use the original. */
leat_err leat_batch_compress(const uint8_t *batch, uint32_t byte_count, enum leat_codec codec,
                             int level, uint8_t *out, size_t out_capacity,
                             uint32_t *out_bytes) LEAT_NODISCARD;
/** Uncompress the records section into out. LEAT_E_TOO_LARGE when it exceeds the capacity,
 * LEAT_E_CORRUPT, LEAT_E_UNSUPPORTED (gzip, when built without zlib). codec NONE copies nothing and
 * returns a view into the batch. */
leat_err leat_batch_records(const struct leat_batch *batch, uint8_t *out, size_t out_capacity,
                            const uint8_t **out_records, size_t *out_bytes) LEAT_NODISCARD;

#endif
