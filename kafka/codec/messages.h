/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of all messages, made from the tables in schema_*.def.
 *
 * A table entry
 *
 *     BEGIN(metadata_request)
 *     ARRAY(metadata_request_topic, topics, 0, LAST, NULL_FROM(1))
 *     F(BOOL, allow_auto_topic_creation, 4, LAST, ELSE(1))
 *     END(metadata_request)
 *
 * says: versions 0 and later have an array `topics` of metadata_request_topic, which may be null from
 * version 1 on; versions 4 and later have a flag, which counts as 1 in those before. It becomes
 * `struct leat_kafka_metadata_request` here, and the description leat_kafka_type_metadata_request()
 * in messages.c, which decoder, encoder and docs/kafka-api.md follow. Order is order on the wire.
 * leat_kafka_fallbacks_metadata_request() sets, in zeroed memory, what is not zero by default.
 *
 *   F(KIND, name, first, last, ...)           a field: INT8 .. INT64, BOOL, STRING, BYTES, RECORDS,
 *                                             UUID, INT32_ARRAY, STRING_ARRAY, UUID_ARRAY
 *   ARRAY(struct, name, first, last, ...)     an array of an earlier entry: .at[], .count (-1: null)
 *   ONE(struct, name, first, last, ...)       an earlier entry in place
 *   ELSE(n)       what a number is in versions without it (default 0)
 *   NULL_FROM(v)  may be null from version v on; a struct in place is null while its first field holds
 *                 its fallback
 *   TAG(n, v)     optional with tag number n, from version v on
 */
#ifndef LEAT_KAFKA_CODEC_MESSAGES_H
#define LEAT_KAFKA_CODEC_MESSAGES_H

#include "kafka/codec/schema.h"

#define LEAT_KAFKA_MEMBER_BOOL(name)    bool name;
#define LEAT_KAFKA_MEMBER_INT8(name)    int8_t name;
#define LEAT_KAFKA_MEMBER_INT16(name)   int16_t name;
#define LEAT_KAFKA_MEMBER_INT32(name)   int32_t name;
#define LEAT_KAFKA_MEMBER_INT64(name)   int64_t name;
#define LEAT_KAFKA_MEMBER_UUID(name)    struct leat_kafka_uuid name;
#define LEAT_KAFKA_MEMBER_STRING(name)  struct leat_kafka_string name;
#define LEAT_KAFKA_MEMBER_BYTES(name)   struct leat_kafka_bytes name;
#define LEAT_KAFKA_MEMBER_RECORDS(name) struct leat_kafka_records name;
#define LEAT_KAFKA_MEMBER_ARRAY(type, name)                                                        \
    struct {                                                                                       \
        type *at;                                                                                  \
        int32_t count;                                                                             \
    } name;
#define LEAT_KAFKA_MEMBER_INT32_ARRAY(name)  LEAT_KAFKA_MEMBER_ARRAY(int32_t, name)
#define LEAT_KAFKA_MEMBER_STRING_ARRAY(name) LEAT_KAFKA_MEMBER_ARRAY(struct leat_kafka_string, name)
#define LEAT_KAFKA_MEMBER_UUID_ARRAY(name)   LEAT_KAFKA_MEMBER_ARRAY(struct leat_kafka_uuid, name)

#define LEAT_KAFKA_FALLBACK_BOOL(member, n)         (member) = (n) != 0
#define LEAT_KAFKA_FALLBACK_INT8(member, n)         (member) = (n)
#define LEAT_KAFKA_FALLBACK_INT16(member, n)        (member) = (n)
#define LEAT_KAFKA_FALLBACK_INT32(member, n)        (member) = (n)
#define LEAT_KAFKA_FALLBACK_INT64(member, n)        (member) = (n)
#define LEAT_KAFKA_FALLBACK_UUID(member, n)         (void)(n) /* and so on: zeros, null, empty */
#define LEAT_KAFKA_FALLBACK_STRING(member, n)       (void)(n)
#define LEAT_KAFKA_FALLBACK_BYTES(member, n)        (void)(n)
#define LEAT_KAFKA_FALLBACK_RECORDS(member, n)      (void)(n)
#define LEAT_KAFKA_FALLBACK_INT32_ARRAY(member, n)  (void)(n)
#define LEAT_KAFKA_FALLBACK_STRING_ARRAY(member, n) (void)(n)
#define LEAT_KAFKA_FALLBACK_UUID_ARRAY(member, n)   (void)(n)

/* One of a field's options, in whatever order they stand: the other options count as 0. */
#define LEAT_KAFKA_OPTION(nothing, a, b, c, ...) ((a) + (b) + (c))

#define BEGIN(entry)                    struct leat_kafka_##entry {
#define F(kind, name, first, last, ...) LEAT_KAFKA_MEMBER_##kind(name)
#define ARRAY(element, name, first, last, ...)                                                     \
    LEAT_KAFKA_MEMBER_ARRAY(struct leat_kafka_##element, name)
#define ONE(element, name, first, last, ...) struct leat_kafka_##element name;
#define END(entry)                                                                                 \
    }                                                                                              \
    ;                                                                                              \
    const struct leat_kafka_type *leat_kafka_type_##entry(void);
#include "kafka/codec/schemas.def"
#undef BEGIN
#undef F
#undef ARRAY
#undef ONE
#undef END

#define ELSE(n)      (n)
#define NULL_FROM(v) 0
#define TAG(n, v)    0
#define BEGIN(entry)                                                                               \
    static inline void leat_kafka_fallbacks_##entry(void *zeros)                                   \
    {                                                                                              \
        struct leat_kafka_##entry *out = zeros;                                                    \
        (void)out;
#define F(kind, name, first, last, ...)                                                            \
    LEAT_KAFKA_FALLBACK_##kind(out->name, LEAT_KAFKA_OPTION(0, ##__VA_ARGS__, 0, 0, 0));
#define ARRAY(element, name, first, last, ...)
#define ONE(element, name, first, last, ...) leat_kafka_fallbacks_##element(&out->name);
#define END(entry)                           }
#include "kafka/codec/schemas.def"
#undef ELSE
#undef NULL_FROM
#undef TAG
#undef BEGIN
#undef F
#undef ARRAY
#undef ONE
#undef END

#endif
