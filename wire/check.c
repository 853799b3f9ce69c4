/* SPDX-License-Identifier: Apache-2.0 */
/* Checking records in turn, and finding their greatest time. */
#include "wire/check.h"

#include "base/bytes.h"
#include "wire/reader.h"

static const char malformed_field[] = "its fields do not fill it, or have impossible lengths";

/* The places of the fields of a checked record. */
struct fields {
    const uint8_t *start, *time, *offset, *key_length, *key, *value_length, *value, *headers, *end;
    int64_t time_delta;
    uint64_t offset_raw;
};

/* What a record predicts of a similar next record: the widths of all fields, and the lengths of record, key and
 * value. */
struct shape {
    ptrdiff_t step;     /* bytes of the record */
    ptrdiff_t value_at; /* where its value's length lies */
    uint16_t value;     /* its bytes, one or two */
    bool two;
    /* Its first eight bytes hold all up to the key's length; of these the bits of the time may differ. */
    uint64_t head, head_mask, time_mask;
    unsigned time_at;
    uint32_t offset_end; /* the first offset delta that takes a byte more */
    uint64_t offset_step,
        offset_more; /* what the offset delta grows by; the mark of its first byte of two */
};

void leat_record_check_init(struct leat_record_check *check, const struct leat_batch *batch)
{
    bool append_time = (batch->attributes & LEAT_BATCH_APPEND_TIME) != 0;
    *check = (struct leat_record_check){
        .base_timestamp_ms = append_time ? batch->max_timestamp_ms : batch->base_timestamp_ms,
        .delta_mask = append_time ? 0 : UINT64_MAX,
        .max_timestamp_ms = INT64_MIN,
        .count = batch->record_count,
        .left = batch->record_count,
    };
}

/* A length and its bytes, which may be null. NULL: malformed. */
static inline const uint8_t *bytes_pass(const uint8_t *at, const uint8_t *end,
                                        const uint8_t **out_bytes)
{
    uint64_t raw;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
    if (__builtin_expect(at == NULL, 0)) return NULL;
    *out_bytes = at;
    if (__builtin_expect(raw & 1, 0)) return raw == 1 ? at : NULL;
    return raw >> 1 > (uint64_t)(end - at) ? NULL : at + (raw >> 1);
}

/* Is a whole record there, and well-formed? As leat_record_read(), but finds only the places of the fields. */
static inline bool fields_find(const uint8_t *at, const uint8_t *end, struct fields *out)
{
    uint64_t raw;
    out->start = at;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
    if (__builtin_expect(at == NULL || (raw & 1), 0)) return false;
    if (__builtin_expect(raw == 0 || raw >> 1 > (uint64_t)(end - at), 0)) return false;
    out->end = end = at + (raw >> 1);
    out->time = ++at; /* after the attributes: none are defined */
    at = leat_varint_read(at, end, LEAT_VARLONG_BYTES_MAX, &raw);
    if (__builtin_expect(at == NULL, 0)) return false;
    out->time_delta = leat_unzigzag(raw);
    out->offset = at;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &out->offset_raw);
    if (__builtin_expect(at == NULL, 0)) return false;
    out->key_length = at;
    at = bytes_pass(at, end, &out->key);
    if (__builtin_expect(at == NULL, 0)) return false;
    out->value_length = at;
    at = bytes_pass(at, end, &out->value);
    if (__builtin_expect(at == NULL, 0)) return false;
    out->headers = at;
    at = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
    if (__builtin_expect(at == NULL, 0)) return false;
    if (__builtin_expect(raw == 0, 1)) return at == end;
    /* A header takes at least two bytes, so the loop is bounded by what is there. */
    return !(raw & 1) && raw >> 1 <= (uint64_t)(end - at) / 2 &&
           leat_record_headers_check(at, end, (uint32_t)(raw >> 1));
}

/* Of 1 to 8 bytes. */
static inline uint64_t bytes_mask(ptrdiff_t bytes)
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

/* false: none that is of use. */
static inline bool shape_learn(struct shape *shape, const struct fields *record)
{
    const uint8_t *start = record->start;
    ptrdiff_t step = record->end - start, head_bytes = record->key - start;
    ptrdiff_t time_bytes = record->offset - record->time;
    ptrdiff_t offset_bytes = record->key_length - record->offset;
    ptrdiff_t value_at = record->value_length - start;
    ptrdiff_t length_bytes = record->value - record->value_length;
    if (head_bytes > 8 || time_bytes > 3 || offset_bytes > 2 || length_bytes > 2) return false;
    if (step < 8 || record->headers + 1 != record->end) return false;
    ptrdiff_t offset_at = record->offset - start;
    *shape = (struct shape){
        .step = step,
        .value_at = value_at,
        .value = length_bytes == 2 ? leat_get_le16(start + value_at) : start[value_at],
        .two = length_bytes == 2,
        .head_mask = bytes_mask(head_bytes),
        .time_at = 8 * (unsigned)(record->time - start),
        .offset_step = UINT64_C(2) << (8 * offset_at),
        .offset_more = offset_bytes == 2 ? UINT64_C(0x80) << (8 * offset_at) : 0,
        .offset_end = offset_bytes == 2 ? 1 << 13 : 1 << 6,
    };
    shape->head = leat_get_le64(start) & shape->head_mask;
    shape->time_mask = (bytes_mask(time_bytes) & UINT64_C(0x7f7f7f)) << shape->time_at;
    return true;
}

static __attribute__((noinline)) void seek_note(struct leat_record_check *check, int64_t time_ms)
{
    uint32_t place = check->count - check->left;
    if (check->found || time_ms < check->sought_ms || place < check->sought_from) return;
    check->found = true;
    check->found_ms = time_ms;
    check->found_at = place;
}

static inline void time_note(struct leat_record_check *check, int64_t delta)
{
    int64_t time_ms =
        (int64_t)((uint64_t)check->base_timestamp_ms + ((uint64_t)delta & check->delta_mask));
    if (time_ms > check->max_timestamp_ms) check->max_timestamp_ms = time_ms;
    if (__builtin_expect(check->seeks, 0)) seek_note(check, time_ms);
}

/* Its value's length, and no headers. */
static inline bool rest_is_alike(const struct shape *shape, const uint8_t *at, bool two)
{
    const uint8_t *value = at + shape->value_at;
    return (two ? leat_get_le16(value) : *value) == shape->value && at[shape->step - 1] == 0;
}

/* The record at `at` is not as expected: is it only of another time? Then what its head is; else 0. */
static __attribute__((noinline)) uint64_t other_time_take(struct leat_record_check *check,
                                                          const struct shape *shape,
                                                          const uint8_t *at, uint64_t head)
{
    if (!rest_is_alike(shape, at, shape->two)) return 0;
    uint64_t found = leat_get_le64(at) & shape->head_mask;
    if (((found ^ head) & ~shape->time_mask) != 0) return 0;
    uint64_t bits = (found & shape->time_mask) >> shape->time_at;
    time_note(check,
              leat_unzigzag((bits & 0x7f) | ((bits >> 1) & 0x3f80) | ((bits >> 2) & 0x1fc000)));
    return found;
}

/* Returns how many of `most` are not alike, or follow a record that is not alike. */
static inline __attribute__((always_inline)) uint32_t alike_run(struct leat_record_check *check,
                                                                const struct shape *shape,
                                                                const uint8_t *at, uint32_t most,
                                                                bool two)
{
    const struct shape known = *shape;
    uint64_t head = known.head;
    uint32_t left = most;
    for (; left > 0; left--, at += known.step) {
        head = (head + known.offset_step) | known.offset_more;
        bool alike = (leat_get_le64(at) & known.head_mask) == head;
        if (__builtin_expect(alike && rest_is_alike(&known, at, two), 1)) continue;
        head = other_time_take(check, shape, at, head);
        if (head == 0) break;
    }
    return left;
}

/* Most records have the same size, and fields of the same sizes. A record that is like the record before is compared
 * with that record, in 13 instructions, instead of being decoded field by field, where each field waits for the field
 * before. A separate function, so that the loops have their values in registers. */
static __attribute__((noinline)) const uint8_t *alike_take(struct leat_record_check *check,
                                                           const struct shape *shape,
                                                           const uint8_t *at, const uint8_t *end)
{
    uint32_t offset = check->count - check->left;
    uint32_t most = shape->offset_end < check->count ? shape->offset_end : check->count;
    most = offset < most ? most - offset : 0;
    size_t bytes = (size_t)(end - at), step = (size_t)shape->step;
    if (most * step > bytes) most = (uint32_t)(bytes / step);
    uint32_t left = shape->two ? alike_run(check, shape, at, most, true)
                               : alike_run(check, shape, at, most, false);
    check->left -= most - left;
    return at + (most - left) * step;
}

static const char *record_wrong(const uint8_t *at, const uint8_t *end)
{
    uint64_t raw;
    const uint8_t *body = leat_varint_read(at, end, LEAT_VARINT_BYTES_MAX, &raw);
    if (body == NULL) return end - at >= LEAT_VARINT_BYTES_MAX ? "its length is malformed" : NULL;
    if (raw & 1) return "its length is negative";
    /* Attributes, two deltas, two lengths, header count: one byte each. */
    if (raw >> 1 < 6) return "it is shorter than its fields";
    if (raw >> 1 > (uint64_t)(end - body)) return NULL;
    return malformed_field;
}

const uint8_t *leat_record_check_take(struct leat_record_check *check, const uint8_t *at,
                                      const uint8_t *end, const char **out_wrong)
{
    while (check->left > 0) {
        struct fields record;
        if (!fields_find(at, end, &record)) {
            *out_wrong = record_wrong(at, end);
            break;
        }
        if (record.offset_raw != (uint64_t)(check->count - check->left) << 1) {
            *out_wrong = "its offset delta is not its place in the batch";
            break;
        }
        time_note(check, record.time_delta);
        check->left--;
        const uint8_t *start = at;
        at = record.end;
        /* A shape is useless if the next record has another size. Of records that are alike no time is noted. */
        struct shape shape;
        if (!check->seeks && end - at >= at - start && leat_get_le16(at) == leat_get_le16(start) &&
            shape_learn(&shape, &record))
            at = alike_take(check, &shape, at, end);
    }
    return at;
}

/* ---- a record in pieces ---- */

/* A byte of a number. 1: it is whole; 0: more follow; -1: it is malformed. */
static int varint_add(struct leat_record_check *check, uint8_t byte, unsigned bytes_max)
{
    unsigned at = check->varint_bytes++;
    uint64_t seven = byte & 0x7f;
    if (at == 0) check->varint = 0;
    /* As leat_varint_read_slow() has it. */
    if (at >= bytes_max || (at == 9 && seven > 1)) return -1;
    if (bytes_max == LEAT_VARINT_BYTES_MAX && at == 4 && seven > 0x0f) return -1;
    check->varint |= seven << (7 * at);
    if (byte & 0x80) return 0;
    check->varint_bytes = 0;
    return 1;
}

/* After the last header the record ends. */
static const char *headers_next(struct leat_record_check *check)
{
    if (check->headers_left > 0) {
        check->headers_left--;
        check->field = LEAT_RECORD_HEADER_KEY_LENGTH;
        return NULL;
    }
    if (check->record_left != 0) return malformed_field;
    check->field = LEAT_RECORD_NONE;
    check->left--;
    return NULL;
}

/* A length, and the field that has so many bytes; -1 is null, where that may be. */
static const char *length_take(struct leat_record_check *check, bool may_be_null,
                               enum leat_record_field field)
{
    uint64_t raw = check->varint;
    if (raw & 1 && !(may_be_null && raw == 1)) return malformed_field;
    check->skip = raw & 1 ? 0 : raw >> 1;
    if (check->skip > check->record_left) return malformed_field;
    check->field = field;
    return NULL;
}

/* The number at check->field is whole. */
static const char *number_take(struct leat_record_check *check)
{
    uint64_t raw = check->varint;
    switch (check->field) {
    case LEAT_RECORD_LENGTH:
        if (raw & 1) return "its length is negative";
        if (raw == 0) return "it is shorter than its fields";
        check->record_left = raw >> 1;
        check->field = LEAT_RECORD_ATTRIBUTES;
        return NULL;
    case LEAT_RECORD_TIME:
        time_note(check, leat_unzigzag(raw));
        check->field = LEAT_RECORD_OFFSET;
        return NULL;
    case LEAT_RECORD_OFFSET:
        if (raw != (uint64_t)(check->count - check->left) << 1)
            return "its offset delta is not its place in the batch";
        check->field = LEAT_RECORD_KEY_LENGTH;
        return NULL;
    case LEAT_RECORD_KEY_LENGTH:
        return length_take(check, true, LEAT_RECORD_KEY);
    case LEAT_RECORD_VALUE_LENGTH:
        return length_take(check, true, LEAT_RECORD_VALUE);
    case LEAT_RECORD_HEADERS:
        if (raw & 1 || raw >> 1 > check->record_left / 2) return malformed_field;
        check->headers_left = (uint32_t)(raw >> 1);
        return headers_next(check);
    case LEAT_RECORD_HEADER_KEY_LENGTH:
        return length_take(check, false, LEAT_RECORD_HEADER_KEY);
    default: /* LEAT_RECORD_HEADER_VALUE_LENGTH */
        return length_take(check, true, LEAT_RECORD_HEADER_VALUE);
    }
}

/* The bytes at check->field are over. */
static const char *bytes_end(struct leat_record_check *check)
{
    switch (check->field) {
    case LEAT_RECORD_KEY:
        check->field = LEAT_RECORD_VALUE_LENGTH;
        return NULL;
    case LEAT_RECORD_VALUE:
        check->field = LEAT_RECORD_HEADERS;
        return NULL;
    case LEAT_RECORD_HEADER_KEY:
        check->field = LEAT_RECORD_HEADER_VALUE_LENGTH;
        return NULL;
    default: /* LEAT_RECORD_HEADER_VALUE */
        return headers_next(check);
    }
}

static bool field_is_bytes(enum leat_record_field field)
{
    return field == LEAT_RECORD_KEY || field == LEAT_RECORD_VALUE ||
           field == LEAT_RECORD_HEADER_KEY || field == LEAT_RECORD_HEADER_VALUE;
}

/* On with the record that was cut, to its end or the piece's. */
static const char *cut_record_take(struct leat_record_check *check, const uint8_t **at,
                                   const uint8_t *end)
{
    while (check->field != LEAT_RECORD_NONE) {
        if (field_is_bytes(check->field)) {
            size_t bytes = (size_t)(end - *at);
            if (bytes > check->skip) bytes = check->skip;
            *at += bytes;
            check->skip -= bytes;
            check->record_left -= bytes;
            if (check->skip > 0) return NULL;
            const char *wrong = bytes_end(check);
            if (wrong != NULL) return wrong;
            continue;
        }
        if (*at == end) return NULL;
        bool length = check->field == LEAT_RECORD_LENGTH;
        if (!length && check->record_left == 0) return malformed_field;
        uint8_t byte = *(*at)++;
        if (!length) check->record_left--;
        if (check->field == LEAT_RECORD_ATTRIBUTES) {
            check->field = LEAT_RECORD_TIME;
            continue;
        }
        bool wide = check->field == LEAT_RECORD_TIME;
        int whole = varint_add(check, byte, wide ? LEAT_VARLONG_BYTES_MAX : LEAT_VARINT_BYTES_MAX);
        if (whole < 0) return length ? "its length is malformed" : malformed_field;
        const char *wrong = whole ? number_take(check) : NULL;
        if (wrong != NULL) return wrong;
    }
    return NULL;
}

const char *leat_record_check_feed(struct leat_record_check *check, const uint8_t *piece,
                                   size_t bytes)
{
    const uint8_t *at = piece, *end = piece + bytes;
    const char *wrong = cut_record_take(check, &at, end);
    if (wrong != NULL || at == end) return wrong;
    at = leat_record_check_take(check, at, end, &wrong);
    if (wrong != NULL || at == end) return wrong;
    if (check->left == 0) return "bytes are left over after the last record";
    check->field = LEAT_RECORD_LENGTH;
    return cut_record_take(check, &at, end);
}

const char *leat_record_check_end(const struct leat_record_check *check)
{
    return check->left > 0 ? "the records end before their count is reached" : NULL;
}
