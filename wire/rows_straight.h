/* SPDX-License-Identifier: Apache-2.0 */
/* Included once, for LEAT_ROWS, a table of FAST_OF: what rows_declare.h declares of these. The functions are like
 * functions written by hand, field by field, and read no table: row.c takes two to three times the instructions.
 * Their results are those of row.c (tests/wire/rows_test.c, fuzz target message). Fields may be F, LOG, EITHER,
 * IN_IF, and LIST as the last field; fields with IF_SET or IF_SET_OR come after all others. */

#define ROWS(name, place, element)
#define CLEAR(value) memset(&(value), 0, sizeof(value))
#define WRITE(value)                                                                               \
    _Generic((value), uint64_t                                                                     \
             : leat_msg_write_u64, uint32_t                                                        \
             : leat_msg_write_u64, struct leat_msg_string                                          \
             : text_write)(writer, value)
#define READ(value)                                                                                \
    (value) = _Generic((value), uint64_t                                                           \
                       : leat_msg_read_u64, uint32_t                                               \
                       : leat_msg_read_u32, struct leat_msg_string                                 \
                       : leat_msg_read_string)(reader)
#define IS_SET(value)                                                                              \
    _Generic((value), uint64_t                                                                     \
             : number_is_set, uint32_t                                                             \
             : number_is_set, struct leat_msg_string                                               \
             : text_is_set)(value)

static inline void text_write(struct leat_msg_writer *writer, struct leat_msg_string text)
{
    leat_msg_write_string(writer, text.text, text.bytes);
}
static inline bool text_is_set(struct leat_msg_string text)
{
    return text.bytes > 0;
}
static inline bool number_is_set(uint64_t number)
{
    return number != 0;
}

/* How many fields are written; always: of any value. */
#define FAST_OF(name, type, place)                                                                 \
    static inline uint32_t name##_fields(const type *value, bool always)                           \
    {                                                                                              \
        uint32_t at = 0, count = 0;
#define END                                                                                        \
    (void)value, (void)always;                                                                     \
    return count;                                                                                  \
    }
#define FIELD_(set) count = ++at;
#define FIELD_IF_SET(set)                                                                          \
    at++;                                                                                          \
    if (!always && (set)) count = at;
#define FIELD_IF_SET_OR(other, number)                                                             \
    if (!always && value->other == (number)) count = at + 1;                                       \
    FIELD_IF_SET
#define LOG(member)                                 FIELD_(true) FIELD_(true) FIELD_(true)
#define F(member, text, ...)                        FIELD_##__VA_ARGS__(IS_SET(value->member))
#define IN_IF(flag, row, member, text, ...)         FIELD_##__VA_ARGS__(value->flag)
#define EITHER(flag, row, member, other, text, ...) FIELD_##__VA_ARGS__(value->flag)
#define LIST(row, member)                           FIELD_(true)
#include LEAT_ROWS
#undef FAST_OF
#undef END
#undef FIELD_
#undef FIELD_IF_SET
#undef FIELD_IF_SET_OR
#undef LOG
#undef F
#undef IN_IF
#undef EITHER
#undef LIST

#define FIELD_IF_SET_OR(other, number) FIELD_IF_SET

#define FAST_OF(name, type, place)                                                                 \
    void name##_write(struct leat_msg_writer *writer, const type *value)                           \
    {                                                                                              \
        const uint32_t count = name##_fields(value, false);                                        \
        uint32_t at = 0;                                                                           \
        leat_msg_write_array(writer, count);
#define END                                                                                        \
    (void)at;                                                                                      \
    }
#define FIELD_(write) at++, write;
#define FIELD_IF_SET(write)                                                                        \
    if (at++ < count) write;
#define LOG(member)          at += 2, FIELD_(leat_msg_write_log(writer, value->member))
#define F(member, text, ...) FIELD_##__VA_ARGS__(WRITE(value->member))
#define IN_IF(flag, row, member, text, ...)                                                        \
    FIELD_##__VA_ARGS__(value->flag ? row##_write(writer, &value->member)                          \
                                    : leat_msg_write_u64(writer, 0))
#define EITHER(flag, row, member, other, text, ...)                                                \
    FIELD_##__VA_ARGS__(value->flag ? row##_write(writer, &value->member) : WRITE(value->other))
#define LIST(row, member) leat_msg_write_array(writer, value->member);
#include LEAT_ROWS
#undef FAST_OF
#undef END
#undef FIELD_
#undef FIELD_IF_SET
#undef LOG
#undef F
#undef IN_IF
#undef EITHER
#undef LIST

#define FAST_OF(name, type, place)                                                                 \
    static inline uint32_t name##_take(struct leat_msg_reader *reader, type *out);                 \
    uint32_t name##_read(struct leat_msg_reader *reader, type *out)                                \
    {                                                                                              \
        return name##_take(reader, out);                                                           \
    }                                                                                              \
    leat_err name##_decode(const void *bytes, size_t count, type *out)                             \
    {                                                                                              \
        struct leat_msg_reader reader;                                                             \
        type value;                                                                                \
        leat_msg_reader_init(&reader, bytes, count);                                               \
        const uint32_t left = name##_take(&reader, &value);                                        \
        if (left > 0) leat_msg_skip_n(&reader, left);                                              \
        if (!leat_msg_read_done(&reader)) return LEAT_E_INVALID;                                   \
        *out = value;                                                                              \
        return LEAT_OK;                                                                            \
    }                                                                                              \
    static inline uint32_t name##_take(struct leat_msg_reader *reader, type *out)                  \
    {                                                                                              \
        const uint32_t count = leat_msg_read_array(reader), least = name##_fields(NULL, true);     \
        uint32_t more = count >= least ? count - least : 0, left = 0;                              \
        if (count < least) reader->failed = true;
#define END                                                                                        \
    if (more > 0) leat_msg_skip_n(reader, more);                                                   \
    return left;                                                                                   \
    }
#define FIELD_(read, clear) read;
#define FIELD_IF_SET(read, clear)                                                                  \
    if (more > 0)                                                                                  \
        more--, read;                                                                              \
    else                                                                                           \
        clear;
#define LOG(member)          out->member = leat_msg_read_log(reader);
#define F(member, text, ...) FIELD_##__VA_ARGS__(READ(out->member), CLEAR(out->member))
#define IN_IF(flag, row, member, text, ...)                                                        \
    FIELD_##__VA_ARGS__((out->flag = leat_msg_array_is_next(reader))                               \
                            ? (void)row##_take(reader, &out->member)                               \
                            : (void)(CLEAR(out->member), leat_msg_skip(reader)),                   \
                        (out->flag = false, CLEAR(out->member)))
#define EITHER(flag, row, member, other, text, ...)                                                \
    FIELD_##__VA_ARGS__((out->flag = leat_msg_array_is_next(reader))                               \
                            ? (void)(CLEAR(out->other), row##_take(reader, &out->member))          \
                            : (void)(CLEAR(out->member), READ(out->other)),                        \
                        (out->flag = false, CLEAR(out->member), CLEAR(out->other)))
#define LIST(row, member) out->member = leat_msg_read_array(reader), left = more, more = 0;
#include LEAT_ROWS
#undef FAST_OF
#undef END
#undef FIELD_
#undef FIELD_IF_SET
#undef FIELD_IF_SET_OR
#undef LOG
#undef F
#undef IN_IF
#undef EITHER
#undef LIST
#undef ROWS
#undef CLEAR
#undef WRITE
#undef READ
#undef IS_SET
#undef LEAT_ROWS
