/* Checking and stamping whole record batches. */
#include "wire/batch.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/varint.h"

#include <inttypes.h>

/* Attribute bits, as Kafka has them. */
enum {
    CODEC_MASK = 0x07,
    FLAG_TRANSACTIONAL = 0x10,
    FLAG_CONTROL = 0x20,
};
enum { MAX_TIMESTAMP_AT = 35 };

enum {
    RECORD_BODY_BYTES_MIN =
        6, /* attributes, two deltas, two lengths, header count: one byte each */
    RECORD_BYTES_MIN = 1 + RECORD_BODY_BYTES_MIN,
};

static leat_err batch_parse(const uint8_t *data, size_t bytes, struct leat_batch *batch,
                            struct leat_error *error);
static const char *records_walk(const uint8_t *at, const uint8_t *end, uint32_t count);

uint64_t leat_batch_bytes(const uint8_t *data, size_t bytes)
{
    if (bytes < LEAT_BATCH_LENGTH_AT + 4) return 0;
    int32_t length = (int32_t)leat_get_be32(data + LEAT_BATCH_LENGTH_AT);
    if (length < LEAT_BATCH_HEADER_BYTES - (LEAT_BATCH_LENGTH_AT + 4)) return 0;
    return (uint64_t)length + LEAT_BATCH_LENGTH_AT + 4;
}

leat_err leat_batch_check(const uint8_t *data, size_t bytes, struct leat_batch *out_batch,
                          struct leat_error *error)
{
    struct leat_batch batch;
    leat_err rc = batch_parse(data, bytes, &batch, error);
    if (rc != LEAT_OK) return rc;

    uint32_t stored = leat_get_be32(data + LEAT_BATCH_CRC_AT);
    uint32_t computed =
        leat_crc32c(0, data + LEAT_BATCH_CRC_FROM, batch.byte_count - LEAT_BATCH_CRC_FROM);
    if (stored != computed)
        return leat_error_set(error, LEAT_E_CORRUPT,
                              "the batch's CRC-32C is %08" PRIx32 " but its bytes give %08" PRIx32,
                              stored, computed);
    if (batch.codec == LEAT_CODEC_NONE) {
        const char *wrong =
            records_walk(data + LEAT_BATCH_HEADER_BYTES, data + bytes, batch.record_count);
        if (wrong != NULL)
            return leat_error_set(error, LEAT_E_INVALID, "batch of %" PRIu32 " records: %s",
                                  batch.record_count, wrong);
    }
    *out_batch = batch;
    return LEAT_OK;
}

leat_err leat_batch_view(const uint8_t *data, size_t bytes, struct leat_batch *out_batch)
{
    struct leat_batch batch;
    leat_err rc = batch_parse(data, bytes, &batch, NULL);
    if (rc != LEAT_OK) return rc;
    *out_batch = batch;
    return LEAT_OK;
}

void leat_batch_stamp(uint8_t *batch, uint64_t base_offset, uint32_t leader_epoch)
{
    leat_put_be64(batch, base_offset);
    leat_put_be32(batch + 12, leader_epoch);
}

void leat_batch_set_append_time(uint8_t *header, uint32_t byte_count, int64_t time_ms)
{
    /* crc(A B) = shift(crc(A), |B|) ^ crc(B), and shifting is linear: what A's change does to the whole
     * does not depend on B. */
    enum { CHANGED_BYTES = MAX_TIMESTAMP_AT + 8 - LEAT_BATCH_CRC_FROM };
    uint32_t before = leat_crc32c(0, header + LEAT_BATCH_CRC_FROM, CHANGED_BYTES);
    leat_put_be16(header + LEAT_BATCH_CRC_FROM,
                  leat_get_be16(header + LEAT_BATCH_CRC_FROM) | LEAT_BATCH_APPEND_TIME);
    leat_put_be64(header + MAX_TIMESTAMP_AT, (uint64_t)time_ms);
    uint32_t after = leat_crc32c(0, header + LEAT_BATCH_CRC_FROM, CHANGED_BYTES);
    uint32_t shifted =
        leat_crc32c_join(before ^ after, 0, byte_count - LEAT_BATCH_CRC_FROM - CHANGED_BYTES);
    leat_put_be32(header + LEAT_BATCH_CRC_AT, leat_get_be32(header + LEAT_BATCH_CRC_AT) ^ shifted);
}

void leat_batch_set_producer(uint8_t *batch, uint32_t byte_count, int64_t producer_id,
                             int16_t producer_epoch, int32_t base_sequence)
{
    leat_put_be64(batch + 43, (uint64_t)producer_id);
    leat_put_be16(batch + 51, (uint16_t)producer_epoch);
    leat_put_be32(batch + 53, (uint32_t)base_sequence);
    leat_put_be32(batch + LEAT_BATCH_CRC_AT,
                  leat_crc32c(0, batch + LEAT_BATCH_CRC_FROM, byte_count - LEAT_BATCH_CRC_FROM));
}

/* Attributes and producer fields that we take. */
static leat_err fields_check(const struct leat_batch *batch, struct leat_error *error)
{
    if (batch->attributes & (FLAG_TRANSACTIONAL | FLAG_CONTROL))
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "transactional and control batches are not supported");
    if (batch->codec > LEAT_CODEC_ZSTD)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "unknown compression codec %d",
                              (int)batch->codec);
    if (batch->producer_id < -1)
        return leat_error_set(error, LEAT_E_INVALID, "producer id %" PRId64, batch->producer_id);
    if (batch->producer_id >= 0 && (batch->producer_epoch < 0 || batch->base_sequence < 0))
        return leat_error_set(error, LEAT_E_INVALID,
                              "producer id %" PRId64 " with epoch %d and sequence %" PRId32,
                              batch->producer_id, batch->producer_epoch, batch->base_sequence);
    return LEAT_OK;
}

static leat_err batch_parse(const uint8_t *data, size_t bytes, struct leat_batch *batch,
                            struct leat_error *error)
{
    if (bytes > LEAT_BATCH_BYTES_MAX)
        return leat_error_set(error, LEAT_E_TOO_LARGE, "a batch of %zu bytes; the limit is %d",
                              bytes, LEAT_BATCH_BYTES_MAX);
    if (bytes < LEAT_BATCH_HEADER_BYTES)
        return leat_error_set(error, LEAT_E_INVALID,
                              "a batch of %zu bytes is shorter than its %d"
                              " byte header",
                              bytes, LEAT_BATCH_HEADER_BYTES);
    /* The magic decides what everything else means, so it is looked at first. */
    if (data[16] != 2)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "batch magic %d; only 2 is supported",
                              data[16]);
    if (leat_batch_bytes(data, bytes) != bytes)
        return leat_error_set(error, LEAT_E_INVALID,
                              "the batch's length field gives %" PRIu64 " bytes, %zu are there",
                              leat_batch_bytes(data, bytes), bytes);
    int32_t count = (int32_t)leat_get_be32(data + 57);
    int32_t last_delta = (int32_t)leat_get_be32(data + 23);
    if (count < 1 || last_delta != count - 1)
        return leat_error_set(error, LEAT_E_INVALID,
                              "%" PRId32 " records with last offset delta %" PRId32, count,
                              last_delta);
    if (count > LEAT_RECORDS_PER_BATCH_MAX)
        return leat_error_set(error, LEAT_E_TOO_LARGE, "%" PRId32 " records; the limit is %d",
                              count, LEAT_RECORDS_PER_BATCH_MAX);
    *batch = (struct leat_batch){
        .bytes = data,
        .byte_count = (uint32_t)bytes,
        .record_count = (uint32_t)count,
        .base_offset = leat_get_be64(data),
        .leader_epoch = leat_get_be32(data + 12),
        .attributes = leat_get_be16(data + 21),
        .codec = (enum leat_codec)(data[22] & CODEC_MASK),
        .base_timestamp_ms = (int64_t)leat_get_be64(data + 27),
        .max_timestamp_ms = (int64_t)leat_get_be64(data + 35),
        .producer_id = (int64_t)leat_get_be64(data + 43),
        .producer_epoch = (int16_t)leat_get_be16(data + 51),
        .base_sequence = (int32_t)leat_get_be32(data + 53),
    };
    return fields_check(batch, error);
}

/* The records' own lengths must fill the batch exactly. Returns what is wrong, or NULL.
 *
 * The walk is one chain of dependent loads: each record's place needs the length before it. Batches
 * mostly hold records of one size, so the bytes of the next length are first compared with those of
 * the last: where that branch is predicted the processor runs ahead with the known step instead of
 * waiting for the load. For sizes that vary, the work between two loads is as short as can be.
 */
static const char *records_walk(const uint8_t *at, const uint8_t *end, uint32_t count)
{
    uint32_t left = count;
    while (left > 0) {
        if (end - at < RECORD_BYTES_MIN) return "the records end before their count is reached";
        uint32_t pair = leat_get_le16(at);
        const uint8_t *body;
        uint32_t mask; /* the bytes of `pair` that are the length */
        int64_t length;
        if ((pair & 0x81) == 0) {
            mask = 0xff;
            body = at + 1;
            length = (pair & 0x7e) >> 1;
        } else if (__builtin_expect((pair & 0x8081) == 0x80, 1)) {
            mask = 0xffff;
            body = at + 2;
            length = ((pair >> 1) & 0x3f) | ((pair >> 2) & 0x1fc0);
        } else {
            uint64_t raw;
            mask = 0;
            body = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
            if (body == NULL) return "a record's length is malformed";
            length = leat_unzigzag(raw);
        }
        if (length < RECORD_BODY_BYTES_MIN) return "a record is shorter than its fields";
        if (length > end - body) return "a record runs past the end of the batch";
        ptrdiff_t step = body - at + (ptrdiff_t)length;
        at += step;
        left--;
        if (mask == 0) continue;
        /* A step is seven bytes at least, so the pair can be loaded where a step fits. */
        uint32_t known = pair & mask;
        while (left > 0 && end - at >= step && (leat_get_le16(at) & mask) == known) {
            at += step;
            left--;
        }
    }
    return at == end ? NULL : "bytes are left over after the last record";
}
