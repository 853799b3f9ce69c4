/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into structs, as the table says. */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "kafka/codec/schema.h"

static void read_struct(struct leat_kafka_reader *reader, const struct leat_kafka_type *type,
                        void *out);

static __attribute__((cold, noinline)) void fail(struct leat_kafka_reader *reader,
                                                 const char *wrong)
{
    if (reader->wrong == NULL) reader->wrong = wrong;
    reader->at = reader->end;
}

static size_t left(const struct leat_kafka_reader *reader)
{
    LEAT_ASSERT_SLOW(reader->at <= reader->end);
    return (size_t)(reader->end - reader->at);
}

static const char cut_short[] = "it ends in the middle of a field";
static const char no_room[] = "it needs more memory than one request may have";

/* `count` bytes of the input, or NULL. */
static inline const uint8_t *take(struct leat_kafka_reader *reader, size_t count)
{
    if (__builtin_expect(count > left(reader), 0)) {
        fail(reader, cut_short);
        return NULL;
    }
    const uint8_t *taken = reader->at;
    reader->at += count;
    return taken;
}

static inline uint8_t read_u8(struct leat_kafka_reader *reader)
{
    const uint8_t *at = take(reader, 1);
    return at != NULL ? *at : 0;
}

static inline int16_t read_i16(struct leat_kafka_reader *reader)
{
    const uint8_t *at = take(reader, 2);
    return at != NULL ? (int16_t)leat_get_be16(at) : 0;
}

static inline int32_t read_i32(struct leat_kafka_reader *reader)
{
    const uint8_t *at = take(reader, 4);
    return at != NULL ? (int32_t)leat_get_be32(at) : 0;
}

static inline int64_t read_i64(struct leat_kafka_reader *reader)
{
    const uint8_t *at = take(reader, 8);
    return at != NULL ? (int64_t)leat_get_be64(at) : 0;
}

/* At most 32 bits in five bytes, no longer than it has to be is not asked for. */
static uint32_t read_uvarint(struct leat_kafka_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        uint8_t byte = read_u8(reader);
        if (reader->wrong != NULL) return 0;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (value > UINT32_MAX) break;
            return (uint32_t)value;
        }
    }
    fail(reader, "a variable-length number has more than 32 bits");
    return 0;
}

/* Length of what follows; -1: null. */
static inline int32_t read_length(struct leat_kafka_reader *reader, bool is_short)
{
    if (reader->flexible) {
        uint32_t raw = read_uvarint(reader);
        if (raw > (uint32_t)INT32_MAX) {
            fail(reader, "a length is larger than 2^31");
            return 0;
        }
        return (int32_t)raw - 1;
    }
    int32_t length = is_short ? read_i16(reader) : read_i32(reader);
    if (length < -1) fail(reader, "a length is negative");
    return reader->wrong != NULL ? 0 : length;
}

static inline const uint8_t *read_run(struct leat_kafka_reader *reader, bool is_short,
                                      bool nullable, int32_t *out_count)
{
    int32_t length = read_length(reader, is_short);
    *out_count = 0;
    if (reader->wrong != NULL) return NULL;
    if (length < 0) {
        if (!nullable) fail(reader, "a field is null that may not be");
        *out_count = -1;
        return NULL;
    }
    const uint8_t *at = take(reader, (size_t)length);
    if (at != NULL) *out_count = length;
    return at;
}

static inline struct leat_kafka_string read_string(struct leat_kafka_reader *reader, bool nullable)
{
    struct leat_kafka_string value;
    value.text = (const char *)read_run(reader, true, nullable, &value.bytes);
    return value;
}

int16_t leat_kafka_read_i16(struct leat_kafka_reader *reader)
{
    return read_i16(reader);
}

int32_t leat_kafka_read_i32(struct leat_kafka_reader *reader)
{
    return read_i32(reader);
}

struct leat_kafka_string leat_kafka_read_string(struct leat_kafka_reader *reader, bool nullable)
{
    return read_string(reader, nullable);
}

static void skip_tag(struct leat_kafka_reader *reader)
{
    (void)take(reader, read_uvarint(reader));
}

void leat_kafka_skip_tags(struct leat_kafka_reader *reader)
{
    uint32_t count = read_uvarint(reader);
    for (uint32_t i = 0; i < count && reader->wrong == NULL; i++) {
        (void)read_uvarint(reader);
        skip_tag(reader);
    }
}

/* ---- arrays ---- */

/* The fewest bytes that a value may take: what an array claims is held against it. */
static size_t struct_bytes_min(const struct leat_kafka_type *type,
                               const struct leat_kafka_reader *reader)
{
    static const uint8_t classic[] = {
        [LEAT_KAFKA_BOOL] = 1,       [LEAT_KAFKA_INT8] = 1,        [LEAT_KAFKA_INT16] = 2,
        [LEAT_KAFKA_INT32] = 4,      [LEAT_KAFKA_INT64] = 8,       [LEAT_KAFKA_UUID] = 16,
        [LEAT_KAFKA_STRING] = 2,     [LEAT_KAFKA_BYTES] = 4,       [LEAT_KAFKA_RECORDS] = 4,
        [LEAT_KAFKA_ARRAY] = 4,      [LEAT_KAFKA_INT32_ARRAY] = 4, [LEAT_KAFKA_STRING_ARRAY] = 4,
        [LEAT_KAFKA_UUID_ARRAY] = 4,
    };
    size_t bytes = reader->flexible ? 1 : 0; /* tags of the struct */
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (!leat_kafka_field_in(field, reader->version) ||
            leat_kafka_field_tagged(field, reader->version))
            continue;
        if (field->kind == LEAT_KAFKA_STRUCT && leat_kafka_field_nullable(field, reader->version))
            bytes += 1;
        else if (field->kind == LEAT_KAFKA_STRUCT)
            bytes += struct_bytes_min(field->element(), reader);
        else if (reader->flexible && field->kind > LEAT_KAFKA_UUID)
            bytes += 1;
        else {
            LEAT_ASSERT_CMP(classic[field->kind], >, 0); /* each kind has its row */
            bytes += classic[field->kind];
        }
    }
    return bytes > 0 ? bytes : 1;
}

/* Memory for an array that the input could hold: of elements of a struct, or of so many bytes. */
static inline void *read_array_head(struct leat_kafka_reader *reader, bool nullable,
                                    const struct leat_kafka_type *type, size_t wire_bytes_min,
                                    size_t element_bytes, struct leat_kafka_array *out)
{
    const int32_t count = read_length(reader, false);
    out->at = NULL;
    out->count = 0;
    if (reader->wrong != NULL) return NULL;
    if (count < 0) {
        if (!nullable) fail(reader, "an array is null that may not be");
        out->count = nullable ? -1 : 0;
        return NULL;
    }
    /* For an array of one element no bytes have to be counted: if the element is missing, nothing follows it. */
    if (count > 1 && type != NULL) wire_bytes_min = struct_bytes_min(type, reader);
    LEAT_ASSERT_CMP(wire_bytes_min, >, 0); /* a count that costs nothing could be any */
    if (__builtin_expect((size_t)count * wire_bytes_min > left(reader), 0)) {
        fail(reader, "an array claims more elements than there are bytes");
        return NULL;
    }
    out->at = leat_kafka_arena_take(reader->arena, (size_t)count, element_bytes);
    if (out->at == NULL) {
        fail(reader, no_room);
        return NULL;
    }
    out->count = count;
    return out->at;
}

static inline void read_struct_array(struct leat_kafka_reader *reader,
                                     const struct leat_kafka_field *field, bool nullable,
                                     struct leat_kafka_array *out)
{
    LEAT_ASSERT(field->element != NULL);
    const struct leat_kafka_type *type = field->element();
    uint8_t *at = read_array_head(reader, nullable, type, 1, type->bytes, out);
    LEAT_ASSERT(out->count <= 0 || at == out->at);
    for (int32_t i = 0; i < out->count && reader->wrong == NULL; i++)
        read_struct(reader, type, at + (size_t)i * type->bytes); /* zeroed, as arenas are */
}

static void read_string_array(struct leat_kafka_reader *reader, bool nullable,
                              struct leat_kafka_array *out)
{
    struct leat_kafka_string *at =
        read_array_head(reader, nullable, NULL, reader->flexible ? 1 : 2, sizeof *at, out);
    for (int32_t i = 0; i < out->count && reader->wrong == NULL; i++)
        at[i] = read_string(reader, false);
}

static void read_int32_array(struct leat_kafka_reader *reader, bool nullable,
                             struct leat_kafka_array *out)
{
    int32_t *at = read_array_head(reader, nullable, NULL, 4, sizeof *at, out);
    for (int32_t i = 0; i < out->count && reader->wrong == NULL; i++)
        at[i] = read_i32(reader);
}

static void read_uuid_array(struct leat_kafka_reader *reader, bool nullable,
                            struct leat_kafka_array *out)
{
    struct leat_kafka_uuid *at = read_array_head(reader, nullable, NULL, 16, sizeof *at, out);
    for (int32_t i = 0; i < out->count && reader->wrong == NULL; i++) {
        const uint8_t *bytes = take(reader, 16);
        if (bytes != NULL) memcpy(at[i].bytes, bytes, 16);
    }
}

/* ---- fields ---- */

/* Inside the loop over a struct's fields: a call for each costs as much as most fields do. */
static inline __attribute__((always_inline)) void
read_value(struct leat_kafka_reader *reader, const struct leat_kafka_field *field, uint8_t *member)
{
    bool nullable = leat_kafka_field_nullable(field, reader->version);
    struct leat_kafka_array *array = (void *)member;
    switch (field->kind) {
    case LEAT_KAFKA_BOOL:
        *(bool *)member = read_u8(reader) != 0;
        break;
    case LEAT_KAFKA_INT8:
        *(int8_t *)member = (int8_t)read_u8(reader);
        break;
    case LEAT_KAFKA_INT16:
        *(int16_t *)(void *)member = read_i16(reader);
        break;
    case LEAT_KAFKA_INT32:
        *(int32_t *)(void *)member = read_i32(reader);
        break;
    case LEAT_KAFKA_INT64:
        *(int64_t *)(void *)member = read_i64(reader);
        break;
    case LEAT_KAFKA_UUID: {
        const uint8_t *bytes = take(reader, 16);
        if (bytes != NULL) memcpy(member, bytes, 16);
        break;
    }
    case LEAT_KAFKA_STRING:
        *(struct leat_kafka_string *)(void *)member = read_string(reader, nullable);
        break;
    case LEAT_KAFKA_BYTES: {
        struct leat_kafka_bytes *value = (void *)member;
        value->at = read_run(reader, false, nullable, &value->count);
        break;
    }
    case LEAT_KAFKA_RECORDS: {
        struct leat_kafka_records *value = (void *)member;
        value->at = read_run(reader, false, nullable, &value->count);
        break;
    }
    case LEAT_KAFKA_STRUCT:
        /* A byte before the struct says whether it is there; a struct that is null keeps its fallbacks. */
        if (!nullable || (int8_t)read_u8(reader) >= 0)
            read_struct(reader, field->element(), member);
        break;
    case LEAT_KAFKA_ARRAY:
        read_struct_array(reader, field, nullable, array);
        break;
    case LEAT_KAFKA_INT32_ARRAY:
        read_int32_array(reader, nullable, array);
        break;
    case LEAT_KAFKA_STRING_ARRAY:
        read_string_array(reader, nullable, array);
        break;
    case LEAT_KAFKA_UUID_ARRAY:
        read_uuid_array(reader, nullable, array);
        break;
    }
}

static void read_tagged(struct leat_kafka_reader *reader, const struct leat_kafka_field *field,
                        uint8_t *member)
{
    read_value(reader, field, member);
}

static const struct leat_kafka_field *tag_find(const struct leat_kafka_type *type, uint32_t tag,
                                               int16_t version)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (leat_kafka_field_in(field, version) && leat_kafka_field_tagged(field, version) &&
            (uint32_t)field->tag == tag)
            return field;
    }
    return NULL;
}

/* Known tags are read, and must have their size; other tags are skipped. */
static void read_tags(struct leat_kafka_reader *reader, const struct leat_kafka_type *type,
                      uint8_t *out)
{
    LEAT_ASSERT(reader->flexible);
    uint32_t count = read_uvarint(reader);
    int64_t before = -1;
    for (uint32_t i = 0; i < count && reader->wrong == NULL; i++) {
        uint32_t tag = read_uvarint(reader);
        if (reader->wrong == NULL && (int64_t)tag <= before) fail(reader, "tags do not ascend");
        before = tag;
        const struct leat_kafka_field *field = tag_find(type, tag, reader->version);
        if (field == NULL) {
            skip_tag(reader);
            continue;
        }
        uint32_t bytes = read_uvarint(reader);
        const uint8_t *value = take(reader, bytes);
        if (value == NULL) return;
        struct leat_kafka_reader inner = *reader;
        inner.at = value;
        inner.end = value + bytes;
        read_tagged(&inner, field, out + field->at);
        if (inner.wrong == NULL && inner.at != inner.end)
            inner.wrong = "a tagged field is shorter than its size";
        if (inner.wrong != NULL) fail(reader, inner.wrong);
    }
}

static void read_struct(struct leat_kafka_reader *reader, const struct leat_kafka_type *type,
                        void *out)
{
    type->fallbacks(out);
    for (uint32_t i = 0; i < type->field_count && reader->wrong == NULL; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (leat_kafka_field_in(field, reader->version) &&
            !leat_kafka_field_tagged(field, reader->version))
            read_value(reader, field, (uint8_t *)out + field->at);
    }
    if (reader->flexible && reader->wrong == NULL) read_tags(reader, type, out);
}

leat_err leat_kafka_decode(struct leat_kafka_reader *reader, const struct leat_kafka_type *type,
                           void *out)
{
    LEAT_ASSERT(reader->wrong == NULL); /* earlier errors have been looked at */
    memset(out, 0, type->bytes);
    read_struct(reader, type, out);
    LEAT_ASSERT(reader->wrong == NULL || reader->at == reader->end);
    if (reader->wrong == no_room) return LEAT_E_NO_MEMORY;
    return reader->wrong != NULL ? LEAT_E_INVALID : LEAT_OK;
}
