/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies whose fields are listed once: one table says how a struct is written and how it is
 * read. For bodies and rows that are plain lists of fields; what has more to it is written by hand.
 *
 * As everywhere in control bodies: fields added later stand at the end, and are skipped by readers
 * that do not know them. */
#ifndef LEAT_WIRE_ROW_H
#define LEAT_WIRE_ROW_H

#include <stddef.h>

#include "wire/message.h"

enum leat_msg_field_kind {
    LEAT_MSG_FIELD_U64,
    LEAT_MSG_FIELD_U32,
    LEAT_MSG_FIELD_I64,
    LEAT_MSG_FIELD_BOOL,
    LEAT_MSG_FIELD_TEXT,  /* struct leat_msg_string */
    LEAT_MSG_FIELD_BIN16, /* uint8_t[16] */
};

struct leat_msg_field {
    uint16_t at; /* in the struct */
    uint8_t kind;
};
struct leat_msg_row {
    const struct leat_msg_field *fields;
    uint32_t count;
};

/* Of that struct; the kind follows from the member's type. */
#define LEAT_MSG_FIELD(type, member)                                                                 \
    {                                                                                                \
        offsetof(type, member), _Generic(((type *)NULL)->member, uint64_t                          \
                                         : LEAT_MSG_FIELD_U64, uint32_t                            \
                                         : LEAT_MSG_FIELD_U32, int64_t                             \
                                         : LEAT_MSG_FIELD_I64, bool                                \
                                         : LEAT_MSG_FIELD_BOOL, struct leat_msg_string             \
                                         : LEAT_MSG_FIELD_TEXT, uint8_t *                          \
                                         : LEAT_MSG_FIELD_BIN16) \
    }
/* The three of a struct leat_log_ref. */
#define LEAT_MSG_FIELD_LOG(type, member)                                                           \
    LEAT_MSG_FIELD(type, member.stream), LEAT_MSG_FIELD(type, member.streamlet),                   \
        LEAT_MSG_FIELD(type, member.log)
#define LEAT_MSG_ROW(fields)                                                                       \
    {                                                                                              \
        fields, sizeof(fields) / sizeof(fields)[0]                                                 \
    }

/** An array of the row's fields; `more` elements of it follow, which the caller writes. Thread: any. */
void leat_msg_row_write(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                        const void *value, uint32_t more);
/** The row's fields of an array that has at least `more` elements behind them. Returns how many
 * elements stand behind those: to be skipped, or of a newer version. Fails as the reader does. */
uint32_t leat_msg_row_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                           void *out_value, uint32_t more);
/** A whole body. Returns its bytes; it must fit (asserted). */
uint32_t leat_msg_row_encode(const struct leat_msg_row *row, const void *value, uint8_t *out,
                             size_t out_bytes);
/** LEAT_E_INVALID: not such a body. */
leat_err leat_msg_row_decode(const void *bytes, size_t count, const struct leat_msg_row *row,
                             void *out_value) LEAT_NODISCARD;

#endif
