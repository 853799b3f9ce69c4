/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <string.h>

#include "base/assert.h"

enum { ELEMENTS_MAX = 3, BYTES_MAX = 40 };

uint64_t fill_next(struct fill *fill)
{
    fill->state ^= fill->state << 13;
    fill->state ^= fill->state >> 7;
    fill->state ^= fill->state << 17;
    return fill->state * 0x2545f4914f6cdd1du;
}

static void *take(struct fill *fill, size_t count, size_t bytes)
{
    void *taken = leat_kafka_arena_take(fill->arena, count + 1, bytes);
    LEAT_ASSERT(taken != NULL);
    return taken;
}

static void *run(struct fill *fill, bool nullable, int32_t *out_count)
{
    if (nullable && fill_next(fill) % 4 == 0) {
        *out_count = -1;
        return NULL;
    }
    *out_count = (int32_t)(fill_next(fill) % BYTES_MAX);
    uint8_t *bytes = take(fill, (size_t)*out_count, 1);
    for (int32_t i = 0; i < *out_count; i++)
        bytes[i] = (uint8_t)fill_next(fill);
    return bytes;
}

static void fill_array(struct fill *fill, const struct leat_kafka_field *field, bool nullable,
                       struct leat_kafka_array *out)
{
    static const size_t bytes_of[] = {
        [LEAT_KAFKA_INT32_ARRAY] = 4,
        [LEAT_KAFKA_UUID_ARRAY] = 16,
        [LEAT_KAFKA_STRING_ARRAY] = sizeof(struct leat_kafka_string),
    };
    const struct leat_kafka_type *type = field->kind == LEAT_KAFKA_ARRAY ? field->element() : NULL;
    out->count =
        nullable && fill_next(fill) % 4 == 0 ? -1 : (int32_t)(fill_next(fill) % ELEMENTS_MAX);
    if (out->count < 0) return;
    size_t bytes = type != NULL ? type->bytes : bytes_of[field->kind];
    uint8_t *at = out->at = take(fill, (size_t)out->count, bytes);
    for (int32_t i = 0; i < out->count; i++, at += bytes) {
        if (type != NULL) {
            fill_struct(fill, type, at);
        } else if (field->kind == LEAT_KAFKA_STRING_ARRAY) {
            struct leat_kafka_string *text = (void *)at;
            text->text = run(fill, false, &text->bytes);
        } else {
            for (size_t b = 0; b < bytes; b++)
                at[b] = (uint8_t)fill_next(fill);
        }
    }
}

static void fill_value(struct fill *fill, const struct leat_kafka_field *field, uint8_t *member)
{
    bool nullable = leat_kafka_field_nullable(field, fill->version);
    uint64_t number = fill_next(fill);
    if (field->kind == LEAT_KAFKA_BOOL) number %= 2;
    if (leat_kafka_number_set(field->kind, member, (int64_t)number)) return;
    switch (field->kind) {
    case LEAT_KAFKA_UUID:
        memcpy(member, &number, sizeof number);
        break;
    case LEAT_KAFKA_STRING: {
        struct leat_kafka_string *value = (void *)member;
        value->text = run(fill, nullable, &value->bytes);
        break;
    }
    case LEAT_KAFKA_BYTES: {
        struct leat_kafka_bytes *value = (void *)member;
        value->at = run(fill, nullable, &value->count);
        break;
    }
    case LEAT_KAFKA_RECORDS: {
        struct leat_kafka_records *value = (void *)member;
        value->at = run(fill, nullable, &value->count);
        break;
    }
    case LEAT_KAFKA_STRUCT:
        fill_struct(fill, field->element(), member);
        break;
    default:
        fill_array(fill, field, nullable, (void *)member);
        break;
    }
}

void fill_struct(struct fill *fill, const struct leat_kafka_type *type, void *out)
{
    leat_kafka_defaults(type, out);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct leat_kafka_field *field = &type->fields[i];
        if (!leat_kafka_field_in(field, fill->version)) continue;
        if (leat_kafka_field_tagged(field, fill->version) && fill_next(fill) % 2 == 0) continue;
        fill_value(fill, field, (uint8_t *)out + field->at);
    }
}
