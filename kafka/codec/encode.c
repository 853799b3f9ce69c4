/* SPDX-License-Identifier: Apache-2.0 */
/* Structs into bytes, as the table says. */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "kafka/codec/schema.h"

static void write_struct(struct leat_kafka_writer *writer, const struct leat_kafka_type *type,
                         const void *in);
static bool is_default(const struct leat_kafka_field *field, const uint8_t *member);

/* Room for `count` bytes, or NULL: they are counted all the same. */
static inline uint8_t *put(struct leat_kafka_writer *writer, size_t count)
{
    size_t at = writer->used;
    writer->used += count;
    return writer->used <= writer->capacity ? writer->bytes + at : NULL;
}

static inline void write_u8(struct leat_kafka_writer *writer, uint8_t value)
{
    uint8_t *at = put(writer, 1);
    if (at != NULL) *at = value;
}

static inline void write_i16(struct leat_kafka_writer *writer, int16_t value)
{
    uint8_t *at = put(writer, 2);
    if (at != NULL) leat_put_be16(at, (uint16_t)value);
}

static inline void write_i32(struct leat_kafka_writer *writer, int32_t value)
{
    uint8_t *at = put(writer, 4);
    if (at != NULL) leat_put_be32(at, (uint32_t)value);
}

static inline void write_i64(struct leat_kafka_writer *writer, int64_t value)
{
    uint8_t *at = put(writer, 8);
    if (at != NULL) leat_put_be64(at, (uint64_t)value);
}

static inline void write_bytes(struct leat_kafka_writer *writer, const void *bytes, size_t count)
{
    uint8_t *at = put(writer, count);
    if (at != NULL && count > 0) memcpy(at, bytes, count);
}

static void write_uvarint(struct leat_kafka_writer *writer, uint32_t value)
{
    while (value >= 0x80) {
        write_u8(writer, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    write_u8(writer, (uint8_t)value);
}

static inline void write_length(struct leat_kafka_writer *writer, int32_t length, bool is_short)
{
    LEAT_ASSERT(length >= -1);
    if (writer->flexible)
        write_uvarint(writer, (uint32_t)(length + 1));
    else if (is_short)
        write_i16(writer, (int16_t)length);
    else
        write_i32(writer, length);
}

static inline void write_run(struct leat_kafka_writer *writer, const void *bytes, int32_t count,
                             bool is_short, bool nullable)
{
    if (bytes == NULL) count = nullable ? -1 : 0;
    if (is_short && count > INT16_MAX) count = INT16_MAX;
    write_length(writer, count, is_short);
    if (count > 0) write_bytes(writer, bytes, (size_t)count);
}

void leat_kafka_write_i16(struct leat_kafka_writer *writer, int16_t value)
{
    write_i16(writer, value);
}

void leat_kafka_write_i32(struct leat_kafka_writer *writer, int32_t value)
{
    write_i32(writer, value);
}

void leat_kafka_write_string(struct leat_kafka_writer *writer, struct leat_kafka_string value)
{
    write_run(writer, value.text, value.bytes, true, true);
}

void leat_kafka_write_no_tags(struct leat_kafka_writer *writer)
{
    write_u8(writer, 0);
}

static void write_records(struct leat_kafka_writer *writer,
                          const struct leat_kafka_records *records, bool nullable)
{
    if (records->gathered == NULL) {
        write_run(writer, records->at, records->count, false, nullable);
        return;
    }
    LEAT_ASSERT(records->count > 0); /* nothing is not gathered */
    write_length(writer, records->count, false);
    LEAT_ASSERT_CMP(writer->gap_count, <, writer->gap_capacity);
    writer->gaps[writer->gap_count++] = (struct leat_kafka_gap){(uint32_t)writer->used, records};
    writer->gap_bytes += (size_t)records->count;
}

static void write_array(struct leat_kafka_writer *writer, const struct leat_kafka_field *field,
                        const struct leat_kafka_array *array)
{
    int32_t count = array->count;
    if (count < 0 && !leat_kafka_field_nullable(field, writer->version)) count = 0;
    LEAT_ASSERT(count <= 0 || array->at != NULL);
    write_length(writer, count, false);
    const struct leat_kafka_type *type = field->kind == LEAT_KAFKA_ARRAY ? field->element() : NULL;
    for (int32_t i = 0; i < count; i++) {
        if (type != NULL)
            write_struct(writer, type, (const uint8_t *)array->at + (size_t)i * type->bytes);
        else if (field->kind == LEAT_KAFKA_INT32_ARRAY)
            write_i32(writer, ((const int32_t *)array->at)[i]);
        else if (field->kind == LEAT_KAFKA_UUID_ARRAY)
            write_bytes(writer, ((const struct leat_kafka_uuid *)array->at)[i].bytes, 16);
        else {
            LEAT_ASSERT_SLOW(field->kind == LEAT_KAFKA_STRING_ARRAY);
            leat_kafka_write_string(writer, ((const struct leat_kafka_string *)array->at)[i]);
        }
    }
}

/* Inside the loop over a struct's fields: a call for each costs as much as most fields do. */
static inline __attribute__((always_inline)) void write_value(struct leat_kafka_writer *writer,
                                                              const struct leat_kafka_field *field,
                                                              const uint8_t *member)
{
    bool nullable = leat_kafka_field_nullable(field, writer->version);
    switch (field->kind) {
    case LEAT_KAFKA_BOOL:
        write_u8(writer, *(const bool *)member);
        break;
    case LEAT_KAFKA_INT8:
        write_u8(writer, *member);
        break;
    case LEAT_KAFKA_INT16:
        write_i16(writer, *(const int16_t *)(const void *)member);
        break;
    case LEAT_KAFKA_INT32:
        write_i32(writer, *(const int32_t *)(const void *)member);
        break;
    case LEAT_KAFKA_INT64:
        write_i64(writer, *(const int64_t *)(const void *)member);
        break;
    case LEAT_KAFKA_UUID:
        write_bytes(writer, member, 16);
        break;
    case LEAT_KAFKA_STRING: {
        const struct leat_kafka_string *value = (const void *)member;
        write_run(writer, value->text, value->bytes, true, nullable);
        break;
    }
    case LEAT_KAFKA_BYTES: {
        const struct leat_kafka_bytes *value = (const void *)member;
        write_run(writer, value->at, value->count, false, nullable);
        break;
    }
    case LEAT_KAFKA_RECORDS:
        write_records(writer, (const void *)member, nullable);
        break;
    case LEAT_KAFKA_STRUCT:
        if (nullable) write_u8(writer, is_default(field, member) ? 0xff : 1);
        if (!nullable || !is_default(field, member)) write_struct(writer, field->element(), member);
        break;
    case LEAT_KAFKA_ARRAY:
    case LEAT_KAFKA_INT32_ARRAY:
    case LEAT_KAFKA_STRING_ARRAY:
    case LEAT_KAFKA_UUID_ARRAY:
        write_array(writer, field, (const void *)member);
        break;
    }
}

/* ---- tags ---- */

/* A tagged field goes unwritten while it holds its fallback; a struct while its first field does. */
static bool is_default(const struct leat_kafka_field *field, const uint8_t *member)
{
    switch (field->kind) {
    case LEAT_KAFKA_BOOL:
        return *(const bool *)member == (field->fallback != 0);
    case LEAT_KAFKA_INT8:
        return *(const int8_t *)member == field->fallback;
    case LEAT_KAFKA_INT16:
        return *(const int16_t *)(const void *)member == field->fallback;
    case LEAT_KAFKA_INT32:
        return *(const int32_t *)(const void *)member == field->fallback;
    case LEAT_KAFKA_INT64:
        return *(const int64_t *)(const void *)member == field->fallback;
    case LEAT_KAFKA_STRING:
        return ((const struct leat_kafka_string *)(const void *)member)->text == NULL;
    case LEAT_KAFKA_BYTES:
        return ((const struct leat_kafka_bytes *)(const void *)member)->at == NULL;
    case LEAT_KAFKA_STRUCT: {
        const struct leat_kafka_field *first = &field->element()->fields[0];
        return is_default(first, member + first->at);
    }
    case LEAT_KAFKA_UUID: {
        static const uint8_t zeros[16];
        return memcmp(member, zeros, sizeof zeros) == 0;
    }
    case LEAT_KAFKA_RECORDS:
        return ((const struct leat_kafka_records *)(const void *)member)->at == NULL;
    default:
        return ((const struct leat_kafka_array *)(const void *)member)->count <= 0;
    }
}

static const struct leat_kafka_field *tag_next(const struct leat_kafka_writer *writer,
                                               const struct leat_kafka_type *type,
                                               const uint8_t *in, int *tag)
{
    const struct leat_kafka_field *found = NULL;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (!leat_kafka_field_in(field, writer->version) ||
            !leat_kafka_field_tagged(field, writer->version) || field->tag <= *tag ||
            is_default(field, in + field->at))
            continue;
        if (found == NULL || field->tag < found->tag) found = field;
    }
    if (found != NULL) *tag = (uint8_t)found->tag;
    return found;
}

static void write_tagged(struct leat_kafka_writer *writer, const struct leat_kafka_field *field,
                         const uint8_t *member)
{
    write_value(writer, field, member);
}

static void write_tags(struct leat_kafka_writer *writer, const struct leat_kafka_type *type,
                       const uint8_t *in)
{
    uint32_t count = 0;
    int tag = -1;
    if (type->tag_count == 0) {
        leat_kafka_write_no_tags(writer);
        return;
    }
    while (tag_next(writer, type, in, &tag) != NULL)
        count++;
    write_uvarint(writer, count);
    tag = -1;
    const struct leat_kafka_field *field;
    while ((field = tag_next(writer, type, in, &tag)) != NULL) {
        struct leat_kafka_writer sizing = {.version = writer->version, .flexible = true};
        write_tagged(&sizing, field, in + field->at);
        write_uvarint(writer, (uint32_t)field->tag);
        write_uvarint(writer, (uint32_t)sizing.used);
        write_tagged(writer, field, in + field->at);
        LEAT_ASSERT_CMP(count, >, 0);
        count--;
    }
    LEAT_ASSERT_CMP(count, ==, 0); /* as many as were announced */
}

static void write_struct(struct leat_kafka_writer *writer, const struct leat_kafka_type *type,
                         const void *in)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (leat_kafka_field_in(field, writer->version) &&
            !leat_kafka_field_tagged(field, writer->version))
            write_value(writer, field, (const uint8_t *)in + field->at);
    }
    if (writer->flexible) write_tags(writer, type, in);
}

void leat_kafka_encode(struct leat_kafka_writer *writer, const struct leat_kafka_type *type,
                       const void *in)
{
    LEAT_ASSERT(writer->bytes != NULL || writer->capacity == 0);
    LEAT_ASSERT(writer->gaps != NULL || writer->gap_capacity == 0);
    write_struct(writer, type, in);
}
