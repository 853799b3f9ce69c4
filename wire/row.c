/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies by tables of their fields: see row.h. */
#include "wire/row.h"

#include <string.h>

#include "base/assert.h"
#include "wire/body.h"

enum { BIN_BYTES = 16 };

static void field_write(struct leat_msg_writer *writer, enum leat_msg_field_kind kind,
                        const void *at)
{
    const struct leat_msg_string *text = at;
    switch (kind) {
    case LEAT_MSG_FIELD_U64:
        leat_msg_write_u64(writer, *(const uint64_t *)at);
        return;
    case LEAT_MSG_FIELD_U32:
        leat_msg_write_u64(writer, *(const uint32_t *)at);
        return;
    case LEAT_MSG_FIELD_I64:
        leat_msg_write_i64(writer, *(const int64_t *)at);
        return;
    case LEAT_MSG_FIELD_BOOL:
        leat_msg_write_bool(writer, *(const bool *)at);
        return;
    case LEAT_MSG_FIELD_TEXT:
        leat_msg_write_string(writer, text->text, text->bytes);
        return;
    case LEAT_MSG_FIELD_BIN16:
        leat_msg_write_bin(writer, at, BIN_BYTES);
        return;
    }
}

static void field_read(struct leat_msg_reader *reader, enum leat_msg_field_kind kind, void *at)
{
    struct leat_msg_string text;
    switch (kind) {
    case LEAT_MSG_FIELD_U64:
        *(uint64_t *)at = leat_msg_read_u64(reader);
        return;
    case LEAT_MSG_FIELD_U32:
        *(uint32_t *)at = leat_msg_read_u32(reader);
        return;
    case LEAT_MSG_FIELD_I64:
        *(int64_t *)at = leat_msg_read_i64(reader);
        return;
    case LEAT_MSG_FIELD_BOOL:
        *(bool *)at = leat_msg_read_bool(reader);
        return;
    case LEAT_MSG_FIELD_TEXT:
        *(struct leat_msg_string *)at = leat_msg_read_string(reader);
        return;
    case LEAT_MSG_FIELD_BIN16:
        text = leat_msg_read_string(reader);
        if (text.bytes != BIN_BYTES)
            reader->failed = true;
        else
            memcpy(at, text.text, BIN_BYTES);
        return;
    }
}

void leat_msg_row_write(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                        const void *value, uint32_t more)
{
    leat_msg_write_array(writer, row->count + more);
    for (uint32_t i = 0; i < row->count; i++)
        field_write(writer, (enum leat_msg_field_kind)row->fields[i].kind,
                    (const char *)value + row->fields[i].at);
}

uint32_t leat_msg_row_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                           void *out_value, uint32_t more)
{
    uint32_t extra = leat_body_open(reader, row->count + more);
    for (uint32_t i = 0; i < row->count; i++)
        field_read(reader, (enum leat_msg_field_kind)row->fields[i].kind,
                   (char *)out_value + row->fields[i].at);
    return extra;
}

uint32_t leat_msg_row_encode(const struct leat_msg_row *row, const void *value, uint8_t *out,
                             size_t out_bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, out_bytes);
    leat_msg_row_write(&writer, row, value, 0);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err leat_msg_row_decode(const void *bytes, size_t count, const struct leat_msg_row *row,
                             void *out_value)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    leat_msg_skip_n(&reader, leat_msg_row_read(&reader, row, out_value, 0));
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}
