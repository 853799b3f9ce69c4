/* Reading the records of an uncompressed batch. */
#include "wire/batch.h"

#include "wire/varint.h"

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
    *reader = (struct leat_record_reader){
        .at = records,
        .end = records + bytes,
        .base_timestamp_ms = batch->base_timestamp_ms,
        .left = batch->record_count,
        .count = batch->record_count,
    };
}

/* A length and its bytes; -1 is null. NULL when it does not fit. */
static inline const uint8_t *bytes_read(const uint8_t *at, const uint8_t *end,
                                        const uint8_t **out_bytes, uint32_t *out_count)
{
    uint64_t raw;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
    if (__builtin_expect(at == NULL, 0)) return NULL;
    if (__builtin_expect(raw & 1, 0)) { /* negative */
        *out_bytes = NULL;
        *out_count = 0;
        return raw == 1 ? at : NULL;
    }
    raw >>= 1;
    if (__builtin_expect(raw > (uint64_t)(end - at), 0)) return NULL;
    *out_bytes = at;
    *out_count = (uint32_t)raw;
    return at + raw;
}

/* Whoever gets the raw headers may walk them without checks of its own. */
static bool headers_check(const uint8_t *at, const uint8_t *end, uint32_t count)
{
    const uint8_t *bytes;
    uint32_t byte_count;
    for (uint32_t i = 0; i < count; i++) {
        at = bytes_read(at, end, &bytes, &byte_count);
        if (at == NULL || bytes == NULL) return false;
        at = bytes_read(at, end, &bytes, &byte_count);
        if (at == NULL) return false;
    }
    return at == end;
}

leat_err leat_record_next(struct leat_record_reader *reader, struct leat_record *out_record)
{
    const uint8_t *at = reader->at;
    if (reader->left == 0) return at == reader->end ? LEAT_E_NOT_FOUND : LEAT_E_CORRUPT;

    uint64_t length, timestamp, offset, header_count;
    at = leat_varint_read(at, reader->end, LEAT_VARINT_BYTES_MAX, &length);
    if (__builtin_expect(at == NULL || (length & 1), 0)) return LEAT_E_CORRUPT;
    length >>= 1;
    if (__builtin_expect(length == 0 || length > (uint64_t)(reader->end - at), 0))
        return LEAT_E_CORRUPT;
    const uint8_t *end = at + length;

    at++; /* attributes: none are defined */
    at = leat_varint_read(at, end, LEAT_VARLONG_BYTES_MAX, &timestamp);
    if (__builtin_expect(at == NULL, 0)) return LEAT_E_CORRUPT;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &offset);
    if (__builtin_expect(at == NULL || (offset & 1) || (offset >> 1) >= reader->count, 0))
        return LEAT_E_CORRUPT;
    struct leat_record record;
    at = bytes_read(at, end, &record.key, &record.key_bytes);
    if (__builtin_expect(at == NULL, 0)) return LEAT_E_CORRUPT;
    at = bytes_read(at, end, &record.value, &record.value_bytes);
    if (__builtin_expect(at == NULL, 0)) return LEAT_E_CORRUPT;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &header_count);
    if (__builtin_expect(at == NULL, 0)) return LEAT_E_CORRUPT;
    if (__builtin_expect(header_count != 0, 0)) {
        /* A header takes at least two bytes, so the loop is bounded by what is there. */
        if ((header_count & 1) || (header_count >> 1) > (uint64_t)(end - at) / 2 ||
            !headers_check(at, end, (uint32_t)(header_count >> 1)))
            return LEAT_E_CORRUPT;
    } else if (__builtin_expect(at != end, 0)) {
        return LEAT_E_CORRUPT;
    }
    record.headers = at;
    record.headers_bytes = (uint32_t)(end - at);
    record.header_count = (uint32_t)(header_count >> 1);
    /* Unsigned, because a hostile delta may overflow. */
    record.timestamp_ms =
        (int64_t)((uint64_t)reader->base_timestamp_ms + (uint64_t)leat_unzigzag(timestamp));
    record.offset_delta = (uint32_t)(offset >> 1);
    *out_record = record;
    reader->at = end;
    reader->left--;
    return LEAT_OK;
}
