/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies by tables: a .def file names the fields of each body once. The table generates the functions that write and
 * read the body (here), the test of the protocol's page (tests/wire/rows_page.h), and the fuzz target and its seeds
 * (tests/fuzz/rows.h). wire/bodies.def explains the tables; rows_declare.h and rows_make.h turn a table into
 * declarations and definitions.
 *
 * As everywhere in control bodies: fields added later stand at the end of an array, and are skipped by readers
 * that do not know them. */
#ifndef LEAT_WIRE_ROW_H
#define LEAT_WIRE_ROW_H

#include <stddef.h>

#include "wire/msg.h"

enum leat_msg_field_kind {
    LEAT_MSG_FIELD_U64,
    LEAT_MSG_FIELD_U32,
    LEAT_MSG_FIELD_U16,
    LEAT_MSG_FIELD_U8,
    LEAT_MSG_FIELD_I64,
    LEAT_MSG_FIELD_BOOL,
    LEAT_MSG_FIELD_TEXT,   /* struct leat_msg_string */
    LEAT_MSG_FIELD_BIN,    /* struct leat_msg_bin */
    LEAT_MSG_FIELD_BIN16,  /* uint8_t[16] */
    LEAT_MSG_FIELD_CHARS,  /* char[room], ends with a zero */
    LEAT_MSG_FIELD_NUMBER, /* always that of `max`; no member */
    LEAT_MSG_FIELD_ROW,    /* another row's struct, in place */
    LEAT_MSG_FIELD_EITHER, /* the same if a bool is set; else a number, a uint64_t */
    LEAT_MSG_FIELD_LIST, /* uint32_t: how many elements follow, which the caller writes and reads */
    LEAT_MSG_FIELD_REST, /* a list or row that the caller writes and reads whole; no member */
};
enum leat_msg_field_is {
    LEAT_MSG_ALWAYS,
    LEAT_MSG_OPTIONAL,   /* earlier versions do not write it: zero, or an empty text, then */
    LEAT_MSG_OR_MINUS_1, /* I64: the same, -1 then */
    LEAT_MSG_IF_SET,     /* the same, and not written where this and all later fields are zero */
    LEAT_MSG_IF_SET_OR,  /* the same, unless another member, a uint32_t, has a certain value */
};

enum leat_msg_size {
    LEAT_MSG_GROWS, /* later versions write more fields, which are skipped */
    LEAT_MSG_EXACT, /* all fields, or the body is refused */
    LEAT_MSG_FORMS, /* all fields, or the fields up to a field with `ends` */
    LEAT_MSG_ENTRY, /* all fields. The number in the array's head is ignored */
};

typedef const struct leat_msg_row *(*leat_msg_row_fn)(void);

struct leat_msg_field {
    const char *name; /* as the page calls it */
    uint8_t kind, is;
    uint16_t at;      /* of the member in the struct */
    uint16_t room;    /* CHARS */
    uint16_t view_at; /* LIST: of a struct leat_msg_reader that is left at its elements; 0: none */
    uint16_t flag_at; /* EITHER: of the bool */
    /* EITHER: of the number; 0: written as 0, and stepped over. IF_SET_OR: of the other member. */
    uint16_t other_at;
    bool last;    /* LIST: no field may follow it, not in later versions either */
    bool ends;    /* FORMS: may be the last field */
    uint32_t max; /* U32: more is refused; 0: no limit. NUMBER: it. IF_SET_OR: that value */
    leat_msg_row_fn
        row;   /* ROW, EITHER, REST; LIST: of an element, NULL: elements are single values */
    bool list; /* REST: an array of such rows */
};
struct leat_msg_row {
    const char *name;
    const char *place; /* on the page: "9 FETCH", "9 FETCH answer", the name of an element, or "" */
    const struct leat_msg_field *fields;
    uint16_t count, bytes; /* fields; of the struct */
    uint16_t count_at;     /* FORMS: of the uint32_t member with the number of fields */
    uint8_t size;          /* enum leat_msg_size */
    /* Without fields: */
    leat_msg_row_fn list; /* the body is an array of such rows */
    const char *values;   /* the body is an array of single values, which the page calls so */
};

/** The row's array, up to and with the header of the first list, or up to the first REST. Thread: any. */
void leat_msg_row_write(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                        const void *value);
/** The fields after the elements of a list, or after a REST_AT: as above, from the field after the member at
 * `member_at`. */
void leat_msg_row_write_behind(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                               const void *value, size_t member_at);
/**
 * Read a body of leat_msg_row_write(); lists with a view are skipped. Missing members become zero. Fails as the
 * reader does.
 *
 * Returns how many fields of the array are left to the caller: the fields from the first REST on, or fields of a
 * newer version after a list; both end with leat_msg_read_end(). A row without these is read whole: 0.
 */
uint32_t leat_msg_row_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                           void *out_value);
/** Read the `left` fields after the elements of the list, or after the REST_AT, at `member_at`. Returns as
 * leat_msg_row_read(). */
uint32_t leat_msg_row_read_behind(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                                  void *out_value, size_t member_at, uint32_t left);
/* The same of a row that is called as its struct. */
#define LEAT_MSG_WRITE_BEHIND(writer, name, value, member)                                         \
    leat_msg_row_write_behind(writer, name##_row(), value, offsetof(struct name, member))
#define LEAT_MSG_READ_BEHIND(reader, name, value, member, left)                                    \
    leat_msg_row_read_behind(reader, name##_row(), value, offsetof(struct name, member), left)
/** A whole body; false: malformed, or bytes follow the body. */
bool leat_msg_row_decode(const void *bytes, size_t count, const struct leat_msg_row *row,
                         void *out_value) LEAT_NODISCARD;

/** Is an array next? Thread: any. */
static inline bool leat_msg_array_is_next(const struct leat_msg_reader *reader)
{
    if (reader->failed || reader->at == reader->end) return false;
    return (*reader->at & 0xf0) == 0x90 || *reader->at == 0xdc || *reader->at == 0xdd;
}

#endif
