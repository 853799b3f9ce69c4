/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the records of an uncompressed batch. */
#include "wire/batch.h"

#include "wire/reader.h"

const uint8_t *leat_varint_read_slow(const uint8_t *at, const uint8_t *end, uint32_t bytes_max,
                                     uint64_t *out_raw)
{
    uint64_t raw = 0;
    for (uint32_t i = 0; i < bytes_max; i++) {
        if (at == end) return NULL;
        uint64_t seven = *at & 0x7f;
        /* The tenth byte of a 64-bit and the fifth of a 32-bit value have fewer than seven bits. */
        if (i == 9 && seven > 1) return NULL;
        if (bytes_max == LEAT_VARINT_BYTES_MAX && i == 4 && seven > 0x0f) return NULL;
        raw |= seven << (7 * i);
        if ((*at++ & 0x80) == 0) {
            *out_raw = raw;
            return at;
        }
    }
    return NULL;
}

void leat_record_reader_init(struct leat_record_reader *reader, const struct leat_batch *batch,
                             const uint8_t *records, size_t bytes)
{
    bool append_time = (batch->attributes & LEAT_BATCH_APPEND_TIME) != 0;
    *reader = (struct leat_record_reader){
        .at = records,
        .end = records + bytes,
        .base_timestamp_ms = append_time ? batch->max_timestamp_ms : batch->base_timestamp_ms,
        .delta_mask = append_time ? 0 : UINT64_MAX,
        .left = batch->record_count,
        .count = batch->record_count,
    };
}

/* Users of the raw headers may walk them without further checks. */
bool leat_record_headers_check(const uint8_t *at, const uint8_t *end, uint32_t count)
{
    const uint8_t *bytes;
    uint32_t byte_count;
    for (uint32_t i = 0; i < count; i++) {
        at = leat_record_bytes_read(at, end, &bytes, &byte_count);
        if (at == NULL || bytes == NULL) return false;
        at = leat_record_bytes_read(at, end, &bytes, &byte_count);
        if (at == NULL) return false;
    }
    return at == end;
}

leat_err leat_record_next(struct leat_record_reader *reader, struct leat_record *out_record)
{
    return leat_record_read(reader, out_record);
}
