/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptions of all messages: see messages.h. */
#include "kafka/codec/messages.h"

/* First round: of each entry, how many fields are tagged in some version. Most have none. */
#define ELSE(n)                             0
#define NULL_FROM(v)                        0
#define TAG(n, v)                           1
#define BEGIN(entry)                        enum { tags_##entry = 0
#define F(kind, member, from, to, ...)      +LEAT_KAFKA_OPTION(0, ##__VA_ARGS__, 0, 0, 0)
#define ARRAY(entry, member, from, to, ...) +LEAT_KAFKA_OPTION(0, ##__VA_ARGS__, 0, 0, 0)
#define ONE(entry, member, from, to, ...)   +LEAT_KAFKA_OPTION(0, ##__VA_ARGS__, 0, 0, 0)
#define END(entry)                                                                                 \
    }                                                                                              \
    ;
#include "kafka/codec/schemas.def"
#undef ELSE
#undef NULL_FROM
#undef TAG
#undef BEGIN
#undef F
#undef ARRAY
#undef ONE
#undef END

#define LAST         LEAT_KAFKA_VERSION_LAST
#define ELSE(n)      .fallback = (n)
#define NULL_FROM(v) .nullable = (v) + 1
#define TAG(n, v)    .tag = (n), .tagged = (v) + 1

/* Each is a function, so that an entry can name its own struct by one word. */
#define BEGIN(entry)                                                                               \
    const struct leat_kafka_type *leat_kafka_type_##entry(void)                                    \
    {                                                                                              \
        typedef struct leat_kafka_##entry entry_struct;                                            \
        static const struct leat_kafka_field fields[] = {
#define FIELD(field_kind, member, from, to, ...)                                                   \
    {.name = #member,                                                                              \
     .kind = LEAT_KAFKA_##field_kind,                                                              \
     .at = offsetof(entry_struct, member),                                                         \
     .first = (from),                                                                              \
     .last = (to),                                                                                 \
     ##__VA_ARGS__},
#define F(field_kind, member, from, to, ...) FIELD(field_kind, member, from, to, ##__VA_ARGS__)
#define ARRAY(entry, member, from, to, ...)                                                        \
    FIELD(ARRAY, member, from, to, .element = leat_kafka_type_##entry, ##__VA_ARGS__)
#define ONE(entry, member, from, to, ...)                                                          \
    FIELD(STRUCT, member, from, to, .element = leat_kafka_type_##entry, ##__VA_ARGS__)
#define END(entry)                                                                                 \
    }                                                                                              \
    ;                                                                                              \
    static const struct leat_kafka_type type = {                                                   \
        .name = #entry,                                                                            \
        .bytes = sizeof(entry_struct),                                                             \
        .field_count = sizeof fields / sizeof *fields,                                             \
        .tag_count = tags_##entry,                                                                 \
        .fallbacks = leat_kafka_fallbacks_##entry,                                                 \
        .fields = fields,                                                                          \
    };                                                                                             \
    return &type;                                                                                  \
    }
#include "kafka/codec/schemas.def"
