/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies by tables of their fields: see row.h. */
#include "wire/row.h"

#include <string.h>

#include "base/assert.h"

enum { BIN_BYTES = 16, ENTRY_FIELDS_MIN = 2 /* version, kind */ };

static bool is_zero(const struct leat_msg_field *field, const char *value)
{
    const void *at = value + field->at;
    if (field->kind == LEAT_MSG_FIELD_EITHER) return !*(const bool *)(value + field->flag_at);
    if (field->kind == LEAT_MSG_FIELD_TEXT) return ((const struct leat_msg_string *)at)->bytes == 0;
    if (field->kind == LEAT_MSG_FIELD_U64) return *(const uint64_t *)at == 0;
    if (field->kind == LEAT_MSG_FIELD_U32 || field->kind == LEAT_MSG_FIELD_LIST)
        return *(const uint32_t *)at == 0;
    LEAT_ASSERT(field->kind == LEAT_MSG_FIELD_BOOL);
    return !*(const bool *)at;
}

static bool is_form(const struct leat_msg_row *row, uint32_t count)
{
    return count == row->count || (count > 0 && count < row->count && row->fields[count - 1].ends);
}

static bool is_left_out(const struct leat_msg_field *field, const char *value)
{
    if (field->is == LEAT_MSG_IF_SET) return is_zero(field, value);
    return field->is == LEAT_MSG_IF_SET_OR && is_zero(field, value) &&
           *(const uint32_t *)(value + field->other_at) != field->max;
}

/* How many fields are written of that value. */
static uint32_t fields_set(const struct leat_msg_row *row, const void *value)
{
    uint32_t count = row->count;
    if (row->size == LEAT_MSG_FORMS) {
        memcpy(&count, (const char *)value + row->count_at, sizeof count);
        LEAT_ASSERT(is_form(row, count));
        return count;
    }
    while (count > 0 && is_left_out(&row->fields[count - 1], value))
        count--;
    return count;
}

static void field_write(struct leat_msg_writer *writer, const struct leat_msg_field *field,
                        const char *value)
{
    const void *at = value + field->at;
    const struct leat_msg_string *text = at;
    const struct leat_msg_bin *bin = at;
    switch ((enum leat_msg_field_kind)field->kind) {
    case LEAT_MSG_FIELD_U64:
        leat_msg_write_u64(writer, *(const uint64_t *)at);
        return;
    case LEAT_MSG_FIELD_U32:
        leat_msg_write_u64(writer, *(const uint32_t *)at);
        return;
    case LEAT_MSG_FIELD_U16:
        leat_msg_write_u64(writer, *(const uint16_t *)at);
        return;
    case LEAT_MSG_FIELD_U8:
        leat_msg_write_u64(writer, *(const uint8_t *)at);
        return;
    case LEAT_MSG_FIELD_I64:
        leat_msg_write_i64(writer, *(const int64_t *)at);
        return;
    case LEAT_MSG_FIELD_BOOL:
        leat_msg_write_bool(writer, *(const bool *)at);
        return;
    case LEAT_MSG_FIELD_TEXT:
        leat_msg_write_string(writer, text->bytes > 0 ? text->text : "", text->bytes);
        return;
    case LEAT_MSG_FIELD_BIN:
        leat_msg_write_bin(writer, bin->bytes > 0 ? bin->data : "", bin->bytes);
        return;
    case LEAT_MSG_FIELD_BIN16:
        leat_msg_write_bin(writer, at, BIN_BYTES);
        return;
    case LEAT_MSG_FIELD_CHARS:
        leat_msg_write_string(writer, at, strlen(at));
        return;
    case LEAT_MSG_FIELD_NUMBER:
        leat_msg_write_u64(writer, field->max);
        return;
    case LEAT_MSG_FIELD_ROW:
        leat_msg_row_write(writer, field->row(), at);
        return;
    case LEAT_MSG_FIELD_EITHER:
        if (*(const bool *)(value + field->flag_at))
            leat_msg_row_write(writer, field->row(), at);
        else
            leat_msg_write_u64(writer,
                               field->other_at ? *(const uint64_t *)(value + field->other_at) : 0);
        return;
    case LEAT_MSG_FIELD_LIST:
        leat_msg_write_array(writer, *(const uint32_t *)at);
        return;
    case LEAT_MSG_FIELD_REST:
        return;
    }
}

static uint32_t u32_read(struct leat_msg_reader *reader, uint32_t max)
{
    uint32_t value = leat_msg_read_u32(reader);
    if (max == 0 || value <= max) return value;
    reader->failed = true;
    return 0;
}

static void list_read(struct leat_msg_reader *reader, const struct leat_msg_field *field,
                      char *value)
{
    uint32_t count = leat_msg_read_array(reader);
    memcpy(value + field->at, &count, sizeof count);
    if (field->view_at == 0) return;
    memcpy(value + field->view_at, reader, sizeof *reader);
    leat_msg_skip_n(reader, count);
}

static void either_read(struct leat_msg_reader *reader, const struct leat_msg_field *field,
                        char *value)
{
    bool *flag = (bool *)(value + field->flag_at);
    *flag = leat_msg_array_is_next(reader);
    if (*flag)
        (void)leat_msg_row_read(reader, field->row(), value + field->at);
    else if (field->other_at)
        *(uint64_t *)(value + field->other_at) = leat_msg_read_u64(reader);
    else
        leat_msg_skip(reader);
}

static void field_read(struct leat_msg_reader *reader, const struct leat_msg_field *field,
                       char *value)
{
    void *at = value + field->at;
    struct leat_msg_string text;
    switch ((enum leat_msg_field_kind)field->kind) {
    case LEAT_MSG_FIELD_U64:
        *(uint64_t *)at = leat_msg_read_u64(reader);
        return;
    case LEAT_MSG_FIELD_U32:
        *(uint32_t *)at = u32_read(reader, field->max);
        return;
    case LEAT_MSG_FIELD_U16:
        *(uint16_t *)at = (uint16_t)u32_read(reader, UINT16_MAX);
        return;
    case LEAT_MSG_FIELD_U8:
        *(uint8_t *)at = (uint8_t)u32_read(reader, UINT8_MAX);
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
    case LEAT_MSG_FIELD_BIN:
        text = leat_msg_read_string(reader);
        *(struct leat_msg_bin *)at = (struct leat_msg_bin){text.text, text.bytes};
        return;
    case LEAT_MSG_FIELD_BIN16:
        text = leat_msg_read_string(reader);
        if (text.bytes != BIN_BYTES)
            reader->failed = true;
        else
            memcpy(at, text.text, BIN_BYTES);
        return;
    case LEAT_MSG_FIELD_CHARS:
        text = leat_msg_read_string(reader);
        if (text.bytes >= field->room)
            reader->failed = true;
        else if (text.bytes > 0)
            memcpy(at, text.text, text.bytes);
        return;
    case LEAT_MSG_FIELD_NUMBER:
        if (leat_msg_read_u64(reader) != field->max) reader->failed = true;
        return;
    case LEAT_MSG_FIELD_ROW:
        (void)leat_msg_row_read(reader, field->row(), at); /* such rows leave nothing */
        return;
    case LEAT_MSG_FIELD_EITHER:
        either_read(reader, field, value);
        return;
    case LEAT_MSG_FIELD_LIST:
        list_read(reader, field, value);
        return;
    case LEAT_MSG_FIELD_REST:
        return;
    }
}

static void fields_write(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                         const void *value, uint32_t from)
{
    uint32_t count = fields_set(row, value);
    if (from == 0) leat_msg_write_array(writer, count);
    for (uint32_t i = from; i < count; i++) {
        field_write(writer, &row->fields[i], value);
        if (row->fields[i].kind >= LEAT_MSG_FIELD_LIST) return;
    }
}

void leat_msg_row_write(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                        const void *value)
{
    fields_write(writer, row, value, 0);
}

static uint32_t field_behind(const struct leat_msg_row *row, size_t member_at)
{
    uint32_t at = 0;
    while (row->fields[at].at != member_at)
        at++;
    return at + 1;
}

void leat_msg_row_write_behind(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                               const void *value, size_t member_at)
{
    fields_write(writer, row, value, field_behind(row, member_at));
}

/* Sets all members to "missing": an empty text must be printable. */
static void clear(const struct leat_msg_row *row, void *out_value)
{
    memset(out_value, 0, row->bytes);
    for (uint32_t i = 0; i < row->count; i++) {
        void *at = (char *)out_value + row->fields[i].at;
        if (row->fields[i].kind == LEAT_MSG_FIELD_TEXT)
            *(struct leat_msg_string *)at = (struct leat_msg_string){"", 0};
        else if (row->fields[i].is == LEAT_MSG_OR_MINUS_1)
            *(int64_t *)at = -1;
    }
}

static uint32_t fields_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                            void *out_value, uint32_t from, uint32_t left)
{
    for (uint32_t i = from; i < row->count && !reader->failed; i++) {
        const struct leat_msg_field *field = &row->fields[i];
        if (field->kind == LEAT_MSG_FIELD_REST) return left;
        if (left == 0) {
            if (field->is == LEAT_MSG_ALWAYS && row->size != LEAT_MSG_FORMS) reader->failed = true;
            return 0;
        }
        field_read(reader, field, out_value);
        left--;
        if (field->kind != LEAT_MSG_FIELD_LIST || field->view_at != 0) continue;
        if (field->last && left > 0) reader->failed = true;
        return left;
    }
    leat_msg_skip_n(reader, left);
    return 0;
}

/* How many fields there are, by the array's head. */
static uint32_t count_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                           void *out_value)
{
    uint32_t count = leat_msg_read_array(reader);
    if (row->size == LEAT_MSG_GROWS) return count;
    if (row->size == LEAT_MSG_ENTRY) {
        if (count < ENTRY_FIELDS_MIN) reader->failed = true;
        return row->count;
    }
    if (row->size == LEAT_MSG_FORMS)
        memcpy((char *)out_value + row->count_at, &count, sizeof count);
    if (row->size == LEAT_MSG_EXACT ? count != row->count : !is_form(row, count))
        reader->failed = true;
    return count;
}

uint32_t leat_msg_row_read(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                           void *out_value)
{
    clear(row, out_value);
    return fields_read(reader, row, out_value, 0, count_read(reader, row, out_value));
}

uint32_t leat_msg_row_read_behind(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                                  void *out_value, size_t member_at, uint32_t left)
{
    return fields_read(reader, row, out_value, field_behind(row, member_at), left);
}

bool leat_msg_row_decode(const void *bytes, size_t count, const struct leat_msg_row *row,
                         void *out_value)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    return leat_msg_read_end(&reader, leat_msg_row_read(&reader, row, out_value));
}
