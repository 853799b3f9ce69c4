/* SPDX-License-Identifier: Apache-2.0 */
/* The description of messages of the Kafka protocol, and the decoder and encoder that follow this description. The
 * descriptions are the .def files (see messages.h). */
#ifndef LEAT_KAFKA_CODEC_SCHEMA_H
#define LEAT_KAFKA_CODEC_SCHEMA_H

#include <string.h>

#include "base/error.h"
#include "kafka/codec/arena.h"

/* ---- decoded fields in C ---- */
struct leat_kafka_string {
    const char *text; /* NULL: null. Not terminated by 0 */
    int32_t bytes;
};
struct leat_kafka_bytes {
    const uint8_t *at; /* NULL: null */
    int32_t count;
};
/* Record batches. In a response they may lie elsewhere: gathered is then what the handler knows
 * them by, and the encoder leaves their place open (struct leat_kafka_gap). */
struct leat_kafka_records {
    const uint8_t *at; /* NULL and not gathered: null */
    int32_t count;
    void *gathered;
};
struct leat_kafka_uuid {
    uint8_t bytes[16];
};

enum leat_kafka_kind {
    LEAT_KAFKA_BOOL,
    LEAT_KAFKA_INT8,
    LEAT_KAFKA_INT16,
    LEAT_KAFKA_INT32,
    LEAT_KAFKA_INT64,
    LEAT_KAFKA_UUID,
    LEAT_KAFKA_STRING,
    LEAT_KAFKA_BYTES,
    LEAT_KAFKA_RECORDS,
    LEAT_KAFKA_STRUCT, /* a struct in place */
    LEAT_KAFKA_ARRAY,  /* of structs */
    LEAT_KAFKA_INT32_ARRAY,
    LEAT_KAFKA_STRING_ARRAY,
    LEAT_KAFKA_UUID_ARRAY,
};

struct leat_kafka_type;
typedef const struct leat_kafka_type *(*leat_kafka_type_fn)(void);

struct leat_kafka_field {
    const char *name;
    enum leat_kafka_kind kind;
    uint32_t at;                /* of the member in its struct */
    int8_t first, last;         /* versions with this field */
    int8_t nullable;            /* from version nullable - 1 on; 0: never null */
    int8_t tagged;              /* from version tagged - 1 on the field is optional; 0: never */
    int8_t tag;                 /* its tag, if tagged */
    int64_t fallback;           /* a number's value in versions without the field */
    leat_kafka_type_fn element; /* STRUCT, ARRAY */
};
struct leat_kafka_type {
    const char *name;
    uint32_t bytes; /* of the C struct */
    uint32_t field_count;
    uint32_t tag_count;             /* fields that are tagged in some version */
    void (*fallbacks)(void *zeros); /* every member at its fallback, all the way down */
    const struct leat_kafka_field *fields;
};
enum { LEAT_KAFKA_VERSION_LAST = 127 }; /* "and all later ones" */

/* Every array is a struct of these two, whatever its elements. count -1: null. */
struct leat_kafka_array {
    void *at;
    int32_t count;
};

/* ---- decoding ---- */
struct leat_kafka_reader {
    const uint8_t *at, *end;
    int16_t version;
    bool flexible;
    struct leat_kafka_arena *arena; /* arrays come from here; strings and bytes are views */
    const char *wrong; /* NULL, or what was wrong first; then nothing is read any more */
};
/**
 * Decode one struct of a version into *out, whole: members of other versions get their fallbacks.
 * Bounds are checked before bytes are looked at; an array is refused unless the bytes that are there
 * could hold it. The caller checks that reader->at == reader->end where it should be.
 * Errors: LEAT_E_INVALID (see reader->wrong), LEAT_E_NO_MEMORY (the arena's limit).
 * Thread: the arena's owner.
 */
leat_err leat_kafka_decode(struct leat_kafka_reader *reader, const struct leat_kafka_type *type,
                           void *out) LEAT_NODISCARD;
/* For headers. Failing they set reader->wrong and return 0 or null. */
int16_t leat_kafka_read_i16(struct leat_kafka_reader *reader);
int32_t leat_kafka_read_i32(struct leat_kafka_reader *reader);
struct leat_kafka_string leat_kafka_read_string(struct leat_kafka_reader *reader, bool nullable);
void leat_kafka_skip_tags(struct leat_kafka_reader *reader);

/* ---- encoding ---- */
/* A place in the encoding where record batches belong that were not copied. */
struct leat_kafka_gap {
    uint32_t at; /* bytes of the encoding before it */
    const struct leat_kafka_records *records;
};
struct leat_kafka_writer {
    uint8_t *bytes;
    size_t used, capacity; /* used goes on past capacity: how much it would take */
    size_t gap_bytes;      /* of the record batches not copied */
    int16_t version;
    bool flexible;
    struct leat_kafka_gap *gaps; /* may be NULL when there are no gathered records */
    uint32_t gap_count, gap_capacity;
};
/** Encode one struct. Nothing is written past the capacity; compare used with it afterwards. */
void leat_kafka_encode(struct leat_kafka_writer *writer, const struct leat_kafka_type *type,
                       const void *in);
void leat_kafka_write_i16(struct leat_kafka_writer *writer, int16_t value);
void leat_kafka_write_i32(struct leat_kafka_writer *writer, int32_t value);
void leat_kafka_write_string(struct leat_kafka_writer *writer, struct leat_kafka_string value);
void leat_kafka_write_no_tags(struct leat_kafka_writer *writer);

/** Zero and fallbacks, all the way down. */
static inline void leat_kafka_defaults(const struct leat_kafka_type *type, void *out)
{
    type->fallbacks(memset(out, 0, type->bytes));
}

/* ---- looking at types ---- */
static inline bool leat_kafka_field_in(const struct leat_kafka_field *field, int16_t version)
{
    return version >= field->first && version <= field->last;
}
static inline bool leat_kafka_field_tagged(const struct leat_kafka_field *field, int16_t version)
{
    return field->tagged > 0 && version >= field->tagged - 1;
}
static inline bool leat_kafka_field_nullable(const struct leat_kafka_field *field, int16_t version)
{
    return field->nullable > 0 && version >= field->nullable - 1;
}

/** Set a member that is a number, or a flag. false: it is of another kind. */
static inline bool leat_kafka_number_set(enum leat_kafka_kind kind, void *member, int64_t value)
{
    switch (kind) {
    case LEAT_KAFKA_BOOL:
        *(bool *)member = value != 0;
        return true;
    case LEAT_KAFKA_INT8:
        *(int8_t *)member = (int8_t)value;
        return true;
    case LEAT_KAFKA_INT16:
        *(int16_t *)member = (int16_t)value;
        return true;
    case LEAT_KAFKA_INT32:
        *(int32_t *)member = (int32_t)value;
        return true;
    case LEAT_KAFKA_INT64:
        *(int64_t *)member = value;
        return true;
    default:
        return false;
    }
}

static inline struct leat_kafka_string leat_kafka_text(const char *text)
{
    return (struct leat_kafka_string){text, text ? (int32_t)__builtin_strlen(text) : -1};
}

#endif
