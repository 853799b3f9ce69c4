/* SPDX-License-Identifier: Apache-2.0 */
/* Included once for each table, like rows_declare.h: defines the functions declared there. */
#include "wire/row.h"

#define OPTIONAL   .is = LEAT_MSG_OPTIONAL
#define IF_SET     .is = LEAT_MSG_IF_SET
#define OR_MINUS_1 .is = LEAT_MSG_OR_MINUS_1
#define IF_SET_OR(other, number)                                                                   \
    .is = LEAT_MSG_IF_SET_OR, .other_at = offsetof(self, other), .max = (number)
#define MAX(limit)   .max = (limit)
#define VIEW(member) .view_at = offsetof(self, member)
#define LAST         .last = true
#define ENDS         .ends = true

/* Each row is a function, so that its fields can name their struct `self`. */
#define SIZED(row_name, type, row_size, row_count_at, row_place)                                   \
    const struct leat_msg_row *row_name##_row(void)                                                \
    {                                                                                              \
        typedef type self;                                                                         \
        enum { size = row_size, count_at = row_count_at };                                         \
        static const char name[] = #row_name, place[] = row_place;                                 \
        static const struct leat_msg_field fields[] = {
#define ROW(name, type, place)     SIZED(name, type, LEAT_MSG_GROWS, 0, place)
#define FAST_OF(name, type, place) ROW(name, type, place)
#define END                                                                                        \
    }                                                                                              \
    ;                                                                                              \
    static const struct leat_msg_row row = {.name = name,                                          \
                                            .place = place,                                        \
                                            .fields = fields,                                      \
                                            .size = size,                                          \
                                            .count_at = count_at,                                  \
                                            .count = sizeof fields / sizeof fields[0],             \
                                            .bytes = sizeof(self)};                                \
    return &row;                                                                                   \
    }
#define ARRAY(row_name, row_place, ...)                                                            \
    void row_name##_write(struct leat_msg_writer *writer, size_t count)                            \
    {                                                                                              \
        leat_msg_write_array(writer, (uint32_t)count);                                             \
    }                                                                                              \
    uint32_t row_name##_read(struct leat_msg_reader *reader)                                       \
    {                                                                                              \
        return leat_msg_read_array(reader);                                                        \
    }                                                                                              \
    const struct leat_msg_row *row_name##_row(void)                                                \
    {                                                                                              \
        static const struct leat_msg_row row = {                                                   \
            .name = #row_name, .place = row_place, __VA_ARGS__};                                   \
        return &row;                                                                               \
    }
#define ROWS(name, place, element)     ARRAY(name, place, .list = element##_row)
#define VALUES_ONLY(name, place, text) ARRAY(name, place, .values = text)
#define FUNCTIONS(name, type)                                                                      \
    void name##_write(struct leat_msg_writer *writer, const type *value)                           \
    {                                                                                              \
        leat_msg_row_write(writer, name##_row(), value);                                           \
    }                                                                                              \
    uint32_t name##_read(struct leat_msg_reader *reader, type *out)                                \
    {                                                                                              \
        return leat_msg_row_read(reader, name##_row(), out);                                       \
    }                                                                                              \
    leat_err name##_decode(const void *bytes, size_t count, type *out)                             \
    {                                                                                              \
        type value;                                                                                \
        if (!leat_msg_row_decode(bytes, count, name##_row(), &value)) return LEAT_E_INVALID;       \
        *out = value;                                                                              \
        return LEAT_OK;                                                                            \
    }
#define BODY_OF(name, type, place) FUNCTIONS(name, type) ROW(name, type, place)
#define EXACT_OF(name, type, place)                                                                \
    FUNCTIONS(name, type) SIZED(name, type, LEAT_MSG_EXACT, 0, place)
#define FORMS_OF(name, type, member, place)                                                        \
    FUNCTIONS(name, type) SIZED(name, type, LEAT_MSG_FORMS, offsetof(type, member), place)
#define ENTRY(name, place)                                                                         \
    FUNCTIONS(name, struct name) SIZED(name, struct name, LEAT_MSG_ENTRY, 0, place)
#define BODY(name, place) BODY_OF(name, struct name, place)

/* The kind follows from the member's type. */
#define F(member, text, ...)                                                                       \
    {.name = text,                                                                                 \
     .at = offsetof(self, member),                                                                 \
     .kind = _Generic(((self *)NULL)->member, uint64_t                                             \
                      : LEAT_MSG_FIELD_U64, unsigned long long                                     \
                      : LEAT_MSG_FIELD_U64, uint32_t                                               \
                      : LEAT_MSG_FIELD_U32, uint16_t                                               \
                      : LEAT_MSG_FIELD_U16, uint8_t                                                \
                      : LEAT_MSG_FIELD_U8, int64_t                                                 \
                      : LEAT_MSG_FIELD_I64, bool                                                   \
                      : LEAT_MSG_FIELD_BOOL, struct leat_msg_string                                \
                      : LEAT_MSG_FIELD_TEXT, struct leat_msg_bin                                   \
                      : LEAT_MSG_FIELD_BIN, uint8_t *                                              \
                      : LEAT_MSG_FIELD_BIN16, char *                                               \
                      : LEAT_MSG_FIELD_CHARS),                                                     \
     .room = _Generic(((self *)NULL)->member, char *                                               \
                      : sizeof(((self *)NULL)->member), default                                    \
                      : 0),                                                                        \
     ##__VA_ARGS__},
#define NUMBER(number) {.name = #number, .kind = LEAT_MSG_FIELD_NUMBER, .max = (number)},
#define LOG(member)    F(member.stream, "stream") F(member.streamlet, "streamlet") F(member.log, "log")
#define PLACE(member)                                                                              \
    F(member.group, "group") F(member.segment, "segment") F(member.position, "position")
#define PART(field_kind, member, text, ...)                                                        \
    {.name = text,                                                                                 \
     .kind = LEAT_MSG_FIELD_##field_kind,                                                          \
     .at = offsetof(self, member),                                                                 \
     ##__VA_ARGS__},
#define IN(row_name, member, text, ...)                                                            \
    PART(ROW, member, text, .row = row_name##_row, ##__VA_ARGS__)
#define IN_IF(flag, row_name, member, text, ...)                                                   \
    PART(EITHER, member, text, .row = row_name##_row, .flag_at = offsetof(self, flag),             \
         ##__VA_ARGS__)
#define EITHER(flag, row_name, member, other, text, ...)                                           \
    IN_IF(flag, row_name, member, text, .other_at = offsetof(self, other), ##__VA_ARGS__)
#define LIST(row_name, member, ...) PART(LIST, member, "", .row = row_name##_row, ##__VA_ARGS__)
#define VALUES(member, text, ...)   PART(LIST, member, text, ##__VA_ARGS__)
#define REST(row_name, text)        {.name = text, .kind = LEAT_MSG_FIELD_REST, .row = row_name##_row},
#define REST_AT(row_name, member, text, ...)                                                       \
    PART(REST, member, text, .row = row_name##_row, ##__VA_ARGS__)
#define REST_LIST(row_name)                                                                        \
    {.name = "", .kind = LEAT_MSG_FIELD_REST, .row = row_name##_row, .list = true},
#include LEAT_ROWS
#undef OPTIONAL
#undef IF_SET
#undef OR_MINUS_1
#undef IF_SET_OR
#undef MAX
#undef VIEW
#undef LAST
#undef ENDS
#undef SIZED
#undef ROW
#undef FAST_OF
#undef END
#undef ROWS
#undef ARRAY
#undef VALUES_ONLY
#undef FUNCTIONS
#undef EXACT_OF
#undef FORMS_OF
#undef ENTRY
#undef BODY_OF
#undef BODY
#undef F
#undef NUMBER
#undef LOG
#undef PLACE
#undef PART
#undef IN
#undef IN_IF
#undef EITHER
#undef LIST
#undef VALUES
#undef REST
#undef REST_AT
#undef REST_LIST
#undef LEAT_ROWS
