/* SPDX-License-Identifier: Apache-2.0 */
/* Building record batches in caller's memory. */
#include "wire/batch.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/varint.h"

/* What a record takes at most besides its bytes: length, attributes, timestamp delta, offset delta,
 * two lengths, header count. */
enum { RECORD_EXTRA_BYTES_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5 };
/* And besides its bytes and its own length: no fewer than this. */
enum { RECORD_BODY_EXTRA_BYTES_MIN = 6 };

void leat_batch_builder_init(struct leat_batch_builder *builder, uint8_t *bytes, size_t capacity)
{
    LEAT_ASSERT_CMP(capacity, >=, (size_t)LEAT_BATCH_HEADER_BYTES);
    if (capacity > LEAT_BATCH_BYTES_MAX) capacity = LEAT_BATCH_BYTES_MAX;
    *builder = (struct leat_batch_builder){
        .bytes = bytes,
        .used = LEAT_BATCH_HEADER_BYTES,
        .capacity = (uint32_t)capacity,
        .digested = LEAT_BATCH_HEADER_BYTES,
    };
}

size_t leat_batch_record_bytes_max(size_t key_bytes, size_t value_bytes, size_t headers_bytes)
{
    return key_bytes + value_bytes + headers_bytes + RECORD_EXTRA_BYTES_MAX;
}

/* Copies of some tens of bytes: whole 16-byte pieces, the last one overlapping, so that sizes which
 * vary from record to record cost no call and no jump table. */
static inline uint8_t *bytes_copy(uint8_t *to, const uint8_t *from, size_t count)
{
    if (count >= 16 && count <= 256) {
        size_t at = 0;
        do {
            memcpy(to + at, from + at, 16);
            at += 16;
        } while (at + 16 <= count);
        memcpy(to + count - 16, from + count - 16, 16);
    } else if (count > 0) {
        memcpy(to, from, count);
    }
    return to + count;
}

struct fields {
    uint64_t timestamp, offset, key_length, value_length, header_count; /* zigzagged */
    const uint8_t *key, *value, *headers;
    size_t key_bytes, value_bytes, headers_bytes;
};

static inline uint8_t *body_write(uint8_t *at, const struct fields *f)
{
    *at++ = 0; /* attributes */
    at = leat_varint_write(at, f->timestamp);
    at = leat_varint_write(at, f->offset);
    at = leat_varint_write(at, f->key_length);
    at = bytes_copy(at, f->key, f->key_bytes);
    at = leat_varint_write(at, f->value_length);
    at = bytes_copy(at, f->value, f->value_bytes);
    at = leat_varint_write(at, f->header_count);
    return bytes_copy(at, f->headers, f->headers_bytes);
}

/* The exact way, for records whose length's own length is not plain to see, or that may be the last
 * to fit. NULL when it does not fit. */
static __attribute__((noinline)) uint8_t *record_write_exact(uint8_t *at, size_t room,
                                                             const struct fields *f)
{
    size_t body = 1 + leat_varint_bytes(f->timestamp) + leat_varint_bytes(f->offset) +
                  leat_varint_bytes(f->key_length) + f->key_bytes +
                  leat_varint_bytes(f->value_length) + f->value_bytes +
                  leat_varint_bytes(f->header_count) + f->headers_bytes;
    if (leat_varint_bytes((uint64_t)body << 1) + body > room) return NULL;
    return body_write(leat_varint_write(at, (uint64_t)body << 1), f);
}

leat_err leat_batch_builder_add(struct leat_batch_builder *builder, int64_t timestamp_ms,
                                const void *key, size_t key_bytes, const void *value,
                                size_t value_bytes, const void *headers, size_t headers_bytes,
                                uint32_t header_count)
{
    if (__builtin_expect(builder->record_count == 0, 0)) {
        builder->base_timestamp_ms = timestamp_ms;
        builder->max_timestamp_ms = timestamp_ms;
    }
    size_t room = builder->capacity - builder->used;
    /* One at a time: a sum of outside sizes may overflow. */
    if (__builtin_expect(key_bytes > room || value_bytes > room || headers_bytes > room ||
                             builder->record_count == LEAT_RECORDS_PER_BATCH_MAX,
                         0))
        return LEAT_E_AGAIN;
    if (key == NULL) key_bytes = 0;
    if (value == NULL) value_bytes = 0;
    struct fields f = {
        .timestamp =
            leat_zigzag((int64_t)((uint64_t)timestamp_ms - (uint64_t)builder->base_timestamp_ms)),
        .offset = (uint64_t)builder->record_count << 1,
        .key_length = key == NULL ? 1 : (uint64_t)key_bytes << 1,
        .value_length = value == NULL ? 1 : (uint64_t)value_bytes << 1,
        .header_count = (uint64_t)header_count << 1,
        .key = key,
        .value = value,
        .headers = headers,
        .key_bytes = key_bytes,
        .value_bytes = value_bytes,
        .headers_bytes = headers_bytes,
    };
    uint8_t *start = builder->bytes + builder->used, *end;
    size_t raw_bytes = key_bytes + value_bytes + headers_bytes;
    /* The length comes before the body but is known only after it. If every body of these sizes has a length of one
     * byte (up to 63) or of two (64 to 8,191), the body is written first and the length afterwards: no sizes need to
     * be computed. */
    size_t body_bytes_max = raw_bytes + RECORD_EXTRA_BYTES_MAX - LEAT_VARINT_BYTES_MAX;
    bool roomy = raw_bytes + RECORD_EXTRA_BYTES_MAX <= room;
    if (__builtin_expect(
            raw_bytes + RECORD_BODY_EXTRA_BYTES_MIN >= 64 && body_bytes_max < 8192 && roomy, 1)) {
        end = body_write(start + 2, &f);
        uint32_t length = (uint32_t)(end - start - 2) << 1;
        start[0] = (uint8_t)(length | 0x80);
        start[1] = (uint8_t)(length >> 7);
    } else if (body_bytes_max < 64 && roomy) {
        end = body_write(start + 1, &f);
        start[0] = (uint8_t)((end - start - 1) << 1);
    } else {
        end = record_write_exact(start, room, &f);
        if (end == NULL) return LEAT_E_AGAIN;
    }
    builder->used = (uint32_t)(end - builder->bytes);
    builder->record_count++;
    if (timestamp_ms > builder->max_timestamp_ms) builder->max_timestamp_ms = timestamp_ms;
    return LEAT_OK;
}

void leat_batch_builder_digest(struct leat_batch_builder *builder, uint32_t bytes_min)
{
    uint32_t bytes = builder->used - builder->digested;
    if (bytes < bytes_min) return;
    builder->digest = leat_crc32c(builder->digest, builder->bytes + builder->digested, bytes);
    builder->digested = builder->used;
}

uint32_t leat_batch_builder_finish(struct leat_batch_builder *builder,
                                   enum leat_codec codec_of_records, int64_t producer_id,
                                   int16_t producer_epoch, int32_t base_sequence)
{
    LEAT_ASSERT_CMP(builder->record_count, >, 0u);
    uint8_t *bytes = builder->bytes;
    leat_put_be64(bytes, 0);
    leat_put_be32(bytes + LEAT_BATCH_LENGTH_AT, builder->used - LEAT_BATCH_LENGTH_AT - 4);
    leat_put_be32(bytes + 12, 0);
    bytes[16] = 2;
    leat_put_be16(bytes + 21, (uint16_t)codec_of_records);
    leat_put_be32(bytes + 23, builder->record_count - 1);
    leat_put_be64(bytes + 27, (uint64_t)builder->base_timestamp_ms);
    leat_put_be64(bytes + 35, (uint64_t)builder->max_timestamp_ms);
    leat_put_be32(bytes + 57, builder->record_count);
    leat_put_be64(bytes + 43, (uint64_t)producer_id);
    leat_put_be16(bytes + 51, (uint16_t)producer_epoch);
    leat_put_be32(bytes + 53, (uint32_t)base_sequence);
    uint32_t records =
        leat_crc32c(builder->digest, bytes + builder->digested, builder->used - builder->digested);
    uint32_t header =
        leat_crc32c(0, bytes + LEAT_BATCH_CRC_FROM, LEAT_BATCH_HEADER_BYTES - LEAT_BATCH_CRC_FROM);
    leat_put_be32(bytes + LEAT_BATCH_CRC_AT,
                  leat_crc32c_join(header, records, builder->used - LEAT_BATCH_HEADER_BYTES));
    return builder->used;
}
