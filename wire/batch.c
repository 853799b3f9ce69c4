/* SPDX-License-Identifier: Apache-2.0 */
/* Checking and stamping whole record batches. */
#include "wire/batch.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/check.h"

#include <inttypes.h>

/* Attribute bits, as Kafka has them. */
enum {
    CODEC_MASK = 0x07,
    FLAG_TRANSACTIONAL = 0x10,
    FLAG_CONTROL = 0x20,
};
enum { MAGIC_AT = 16, MAX_TIMESTAMP_AT = 35 };

static leat_err head_check(const uint8_t *data, size_t bytes, struct leat_error *error);
static leat_err fields_parse(const uint8_t *data, size_t bytes, struct leat_batch *batch,
                             struct leat_error *error);
static leat_err records_check(struct leat_batch *batch, struct leat_error *error);

uint64_t leat_batch_bytes(const uint8_t *data, size_t bytes)
{
    if (bytes < LEAT_BATCH_LENGTH_AT + 4) return 0;
    int32_t length = (int32_t)leat_get_be32(data + LEAT_BATCH_LENGTH_AT);
    if (length < LEAT_BATCH_HEADER_BYTES - (LEAT_BATCH_LENGTH_AT + 4)) return 0;
    return (uint64_t)length + LEAT_BATCH_LENGTH_AT + 4;
}

enum leat_codec leat_batch_codec(const uint8_t *data, size_t bytes)
{
    if (bytes < LEAT_BATCH_HEADER_BYTES) return LEAT_CODEC_NONE;
    return (enum leat_codec)(data[22] & CODEC_MASK);
}

bool leat_batch_crc_is_right(const uint8_t *data, size_t bytes)
{
    return bytes >= LEAT_BATCH_HEADER_BYTES &&
           leat_get_be32(data + LEAT_BATCH_CRC_AT) ==
               leat_crc32c(0, data + LEAT_BATCH_CRC_FROM, bytes - LEAT_BATCH_CRC_FROM);
}

/* A flipped bit must not look like a mistake of the producer, which would give the records up: the CRC comes before all
 * that it covers. The magic is not covered; the layouts of other magics have no CRC-32C at this place. */
static leat_err crc_check(const uint8_t *data, size_t bytes, struct leat_error *error)
{
    leat_err rc = head_check(data, bytes, error);
    if (rc == LEAT_E_UNSUPPORTED && leat_batch_crc_is_right(data, bytes))
        return leat_error_set(error, LEAT_E_CORRUPT,
                              "the batch's magic is %d, but its CRC-32C is right for magic 2",
                              data[MAGIC_AT]);
    if (rc != LEAT_OK || leat_batch_crc_is_right(data, bytes)) return rc;
    return leat_error_set(error, LEAT_E_CORRUPT,
                          "the batch's CRC-32C is %08" PRIx32 " but its bytes give %08" PRIx32,
                          leat_get_be32(data + LEAT_BATCH_CRC_AT),
                          leat_crc32c(0, data + LEAT_BATCH_CRC_FROM, bytes - LEAT_BATCH_CRC_FROM));
}

leat_err leat_batch_check(const uint8_t *data, size_t bytes, struct leat_batch *out_batch,
                          struct leat_error *error)
{
    struct leat_batch batch;
    leat_err rc = crc_check(data, bytes, error);
    if (rc == LEAT_OK) rc = fields_parse(data, bytes, &batch, error);
    if (rc == LEAT_OK) rc = records_check(&batch, error);
    if (rc == LEAT_OK) *out_batch = batch;
    return rc;
}

/* The header's time is not trusted: retention would drop the records of a client that leaves out the greatest time
 * (-1), as older than all other records. */
static leat_err records_check(struct leat_batch *batch, struct leat_error *error)
{
    bool append_time = (batch->attributes & LEAT_BATCH_APPEND_TIME) != 0;
    if (batch->codec != LEAT_CODEC_NONE) {
        if (!append_time && batch->max_timestamp_ms < batch->base_timestamp_ms)
            batch->max_timestamp_ms = batch->base_timestamp_ms;
        return LEAT_OK;
    }
    struct leat_record_check check;
    leat_record_check_init(&check, batch);
    const char *wrong = leat_record_check_feed(&check, batch->bytes + LEAT_BATCH_HEADER_BYTES,
                                               batch->byte_count - LEAT_BATCH_HEADER_BYTES);
    if (wrong == NULL) wrong = leat_record_check_end(&check);
    if (wrong != NULL)
        return leat_error_set(error, LEAT_E_INVALID, "record %" PRIu32 " of %" PRIu32 ": %s",
                              batch->record_count - check.left, batch->record_count, wrong);
    if (!append_time) batch->max_timestamp_ms = check.max_timestamp_ms;
    return LEAT_OK;
}

leat_err leat_batch_view(const uint8_t *data, size_t bytes, struct leat_batch *out_batch)
{
    struct leat_batch batch;
    leat_err rc = head_check(data, bytes, NULL);
    if (rc == LEAT_OK) rc = fields_parse(data, bytes, &batch, NULL);
    if (rc != LEAT_OK) return rc;
    *out_batch = batch;
    return LEAT_OK;
}

void leat_batch_stamp(uint8_t *batch, uint64_t base_offset, uint32_t leader_epoch)
{
    leat_put_be64(batch, base_offset);
    leat_put_be32(batch + 12, leader_epoch);
}

/* crc(A B) = shift(crc(A), |B|) ^ crc(B), and shifting is linear: what A's change does to the whole does not depend
 * on B. */
static void times_set(uint8_t *header, uint32_t byte_count, uint16_t flags, int64_t time_ms)
{
    enum { CHANGED_BYTES = MAX_TIMESTAMP_AT + 8 - LEAT_BATCH_CRC_FROM };
    uint32_t before = leat_crc32c(0, header + LEAT_BATCH_CRC_FROM, CHANGED_BYTES);
    leat_put_be16(header + LEAT_BATCH_CRC_FROM,
                  leat_get_be16(header + LEAT_BATCH_CRC_FROM) | flags);
    leat_put_be64(header + MAX_TIMESTAMP_AT, (uint64_t)time_ms);
    uint32_t after = leat_crc32c(0, header + LEAT_BATCH_CRC_FROM, CHANGED_BYTES);
    uint32_t shifted =
        leat_crc32c_join(before ^ after, 0, byte_count - LEAT_BATCH_CRC_FROM - CHANGED_BYTES);
    leat_put_be32(header + LEAT_BATCH_CRC_AT, leat_get_be32(header + LEAT_BATCH_CRC_AT) ^ shifted);
}

void leat_batch_set_append_time(uint8_t *header, uint32_t byte_count, int64_t time_ms)
{
    times_set(header, byte_count, LEAT_BATCH_APPEND_TIME, time_ms);
}

void leat_batch_set_max_time(uint8_t *header, const struct leat_batch *batch)
{
    if ((int64_t)leat_get_be64(header + MAX_TIMESTAMP_AT) == batch->max_timestamp_ms) return;
    times_set(header, batch->byte_count, 0, batch->max_timestamp_ms);
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

/* What no CRC covers. */
static leat_err head_check(const uint8_t *data, size_t bytes, struct leat_error *error)
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
    if (data[MAGIC_AT] != 2)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "batch magic %d; only 2 is supported",
                              data[MAGIC_AT]);
    if (leat_batch_bytes(data, bytes) != bytes)
        return leat_error_set(error, LEAT_E_INVALID,
                              "the batch's length field gives %" PRIu64 " bytes, %zu are there",
                              leat_batch_bytes(data, bytes), bytes);
    return LEAT_OK;
}

static leat_err fields_parse(const uint8_t *data, size_t bytes, struct leat_batch *batch,
                             struct leat_error *error)
{
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
