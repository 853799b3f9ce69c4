/* SPDX-License-Identifier: Apache-2.0 */
/* Included once for each table, so without a guard: LEAT_ROWS is the name of a .def file (wire/bodies.def
 * explains them). Declares of each BODY:
 *   NAME_write(writer, &value)          see leat_msg_row_write() for bodies with lists
 *   NAME_read(reader, &value)           see leat_msg_row_read() for what it returns
 *   NAME_decode(bytes, count, &value)   of a whole body. LEAT_E_INVALID: malformed, or bytes follow the body
 * and NAME_row(), its row, also of each ROW. Of each ROWS and VALUES_ONLY:
 *   NAME_write(writer, count)           so many elements follow, which the caller writes
 *   NAME_read(reader)                   how many follow. Fails as the reader does */
#define BODY(name, place) BODY_OF(name, struct name, place)
#define BODY_OF(name, type, place)                                                                 \
    void name##_write(struct leat_msg_writer *writer, const type *value);                          \
    uint32_t name##_read(struct leat_msg_reader *reader, type *out);                               \
    leat_err name##_decode(const void *bytes, size_t count, type *out) LEAT_NODISCARD;             \
    const struct leat_msg_row *name##_row(void);
#define EXACT_OF(name, type, place)         BODY_OF(name, type, place)
#define FAST_OF(name, type, place)          BODY_OF(name, type, place)
#define FORMS_OF(name, type, member, place) BODY_OF(name, type, place)
#define ENTRY(name, place)                  BODY(name, place)
#define ROW(name, type, place)              const struct leat_msg_row *name##_row(void);
#define ROWS(name, place, element)          VALUES_ONLY(name, place, "")
#define VALUES_ONLY(name, place, text)                                                             \
    void name##_write(struct leat_msg_writer *writer, size_t count);                               \
    uint32_t name##_read(struct leat_msg_reader *reader);                                          \
    ROW(name, , place)
#define F(member, text, ...)
#define NUMBER(number)
#define LOG(member)
#define PLACE(member)
#define IN(row, member, text, ...)
#define IN_IF(flag, row, member, text, ...)
#define EITHER(flag, row, member, other, text, ...)
#define LIST(row, member, ...)
#define VALUES(member, text, ...)
#define REST(row, text)
#define REST_AT(row, member, text, ...)
#define REST_LIST(row)
#define END
#include LEAT_ROWS
#undef BODY
#undef BODY_OF
#undef EXACT_OF
#undef FAST_OF
#undef FORMS_OF
#undef ENTRY
#undef ROW
#undef ROWS
#undef VALUES_ONLY
#undef F
#undef NUMBER
#undef LOG
#undef PLACE
#undef IN
#undef IN_IF
#undef EITHER
#undef LIST
#undef VALUES
#undef REST
#undef REST_AT
#undef REST_LIST
#undef END
#undef LEAT_ROWS
