/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table, LEAT_ROWS: goes into the initializer of an array of leat_msg_row_fn. No guard. */
#define BODY(name, place)                   name##_row,
#define BODY_OF(name, type, place)          name##_row,
#define EXACT_OF(name, type, place)         name##_row,
#define FAST_OF(name, type, place)          name##_row,
#define FORMS_OF(name, type, member, place) name##_row,
#define ENTRY(name, place)                  name##_row,
#define ROW(name, type, place)              name##_row,
#define ROWS(name, place, element)          name##_row,
#define VALUES_ONLY(name, place, text)      name##_row,
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
