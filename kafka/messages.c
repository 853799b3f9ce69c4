/* The descriptions of all messages: see messages.h. */
#include "kafka/messages.h"

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
    static const struct leat_kafka_type type = {#entry, sizeof(entry_struct),                      \
                                                sizeof fields / sizeof *fields, fields};           \
    return &type;                                                                                  \
    }
#include "kafka/schemas.def"
