/* Checking records one after the other, and finding their greatest time. */
#include "wire/check.h"

#include "base/bytes.h"
#include "wire/reader.h"

static const char malformed_field[] = "its fields do not fill it, or have impossible lengths";

/* What one record says of the next, if that is like it: all of its fields' widths, its length, its key's and its
 * value's. */
struct shape {
    ptrdiff_t step;    /* bytes of the record; 0: no shape */
    uint32_t value_at; /* where its value's length lies */
    uint64_t value, value_mask;
    /* Its first eight bytes hold all up to the key's length. What stays, with the offset of the next record, and
     * the bits that may differ: those of the time. */
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

static inline uint64_t bytes_mask(uint32_t bytes)
{
    return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

/* Bytes of a varint that is known to be whole. */
static inline uint32_t varint_width(const uint8_t *at)
{
    uint32_t bytes = 1;
    while (*at++ & 0x80)
        bytes++;
    return bytes;
}

/* Of a record that was found right, and has no headers. */
static void shape_learn(struct shape *shape, const uint8_t *start, ptrdiff_t step,
                        const struct leat_record *record)
{
    shape->step = 0;
    uint32_t at = varint_width(start) + 1;
    uint32_t time_at = at, time_bytes = varint_width(start + at);
    at += time_bytes;
    uint32_t offset_at = at, offset_bytes = varint_width(start + at);
    at += offset_bytes;
    at += varint_width(start + at);
    if (at > 8 || time_bytes > 3 || offset_bytes > 2) return;
    shape->value_at = at + record->key_bytes;
    if (shape->value_at + 8 > step) return;
    uint32_t length_bytes = varint_width(start + shape->value_at);
    /* The count of headers is one byte, behind the value. */
    if (shape->value_at + length_bytes + record->value_bytes + 1 != step) return;
    shape->value_mask = bytes_mask(length_bytes);
    shape->value = leat_get_le64(start + shape->value_at) & shape->value_mask;
    shape->time_at = 8 * time_at;
    shape->time_mask = (bytes_mask(time_bytes) & UINT64_C(0x7f7f7f)) << shape->time_at;
    shape->head_mask = bytes_mask(at) & ~shape->time_mask;
    shape->offset_step = UINT64_C(2) << (8 * offset_at);
    shape->offset_more = offset_bytes == 2 ? UINT64_C(0x80) << (8 * offset_at) : 0;
    shape->offset_end = offset_bytes == 2 ? 1 << 13 : 1 << 6;
    shape->head = leat_get_le64(start) & shape->head_mask;
    shape->step = step;
}

static inline void time_note(struct leat_record_check *check, int64_t delta)
{
    int64_t time_ms =
        (int64_t)((uint64_t)check->base_timestamp_ms + ((uint64_t)delta & check->delta_mask));
    if (time_ms > check->max_timestamp_ms) check->max_timestamp_ms = time_ms;
}

static inline int64_t time_of(const struct shape *shape, uint64_t time_bits)
{
    uint64_t bits = time_bits >> shape->time_at;
    return leat_unzigzag((bits & 0x7f) | ((bits >> 1) & 0x3f80) | ((bits >> 2) & 0x1fc000));
}

/* Records mostly are of one size, and so are their fields. Those that are like the one before are compared with it,
 * eight bytes at a time, instead of being decoded one field after the other, where each has to wait for the one
 * before: a quarter of the time. */
static const uint8_t *alike_take(struct leat_record_check *check, const struct shape *shape,
                                 const uint8_t *at, const uint8_t *end)
{
    const struct shape known = *shape;
    uint64_t head = known.head, last_time = UINT64_MAX;
    uint32_t offset = check->count - check->left;
    uint32_t offset_end = known.offset_end < check->count ? known.offset_end : check->count;
    for (; offset < offset_end && end - at >= known.step; offset++) {
        head = (head + known.offset_step) | known.offset_more;
        uint64_t bytes = leat_get_le64(at);
        if ((bytes & known.head_mask) != head) break;
        if ((leat_get_le64(at + known.value_at) & known.value_mask) != known.value) break;
        if (at[known.step - 1] != 0) break; /* no headers */
        uint64_t time = bytes & known.time_mask;
        if (__builtin_expect(time != last_time, 0)) {
            time_note(check, time_of(&known, time));
            last_time = time;
        }
        at += known.step;
    }
    check->left = check->count - offset;
    return at;
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
    struct leat_record_reader reader = {
        .at = at, .end = end, .delta_mask = UINT64_MAX, .left = check->left, .count = check->count};
    struct shape shape = {0};
    ptrdiff_t last_step = 0;
    while (reader.left > 0) {
        const uint8_t *start = reader.at;
        struct leat_record record;
        if (leat_record_read(&reader, &record) != LEAT_OK) {
            *out_wrong = record_wrong(start, end);
            break;
        }
        if (record.offset_delta != check->count - check->left) {
            *out_wrong = "its offset delta is not its place in the batch";
            reader.at = start;
            break;
        }
        time_note(check, record.timestamp_ms); /* a delta: the reader's base is 0 */
        check->left = reader.left;
        ptrdiff_t step = reader.at - start;
        /* Where sizes vary, what is learnt is seldom of use. */
        if (step == last_step && record.header_count == 0) {
            shape_learn(&shape, start, step, &record);
            if (shape.step != 0) {
                reader.at = alike_take(check, &shape, reader.at, end);
                reader.left = check->left;
            }
        }
        last_step = step;
    }
    return reader.at;
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

/* Behind the headers, or where none are left, the record ends. */
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
