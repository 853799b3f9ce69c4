/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for tests of any table of bodies (wire/bodies.def): its rows as a list, values made from a number, a body
 * that is read and written again, and the array as docs show it. */
#ifndef LEAT_TESTS_ROWS_H
#define LEAT_TESTS_ROWS_H

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "wire/row.h"

enum { ROWS_VALUE_BYTES_MAX = 16 * 1024, ROWS_FIELDS_MAX = 32, ROWS_DEPTH_MAX = 4 };

static inline uint64_t rows_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline void rows_number_fill(const struct leat_msg_field *field, void *at, uint64_t number)
{
    static const char *const texts[] = {"", "n1", "rooms.attic", "127.0.0.1:7701"};
    const char *text = texts[number % 4];
    uint64_t u64 = number >> (number % 4) * 16; /* of all widths */
    uint32_t u32 = (uint32_t)u64 >> (number % 3) * 8;
    switch ((enum leat_msg_field_kind)field->kind) {
    case LEAT_MSG_FIELD_U64:
    case LEAT_MSG_FIELD_I64:
        memcpy(at, &u64, sizeof u64);
        return;
    case LEAT_MSG_FIELD_U32:
        if (field->max != 0) u32 %= field->max + 1;
        memcpy(at, &u32, sizeof u32);
        return;
    case LEAT_MSG_FIELD_U16:
        memcpy(at, &u32, sizeof(uint16_t));
        return;
    case LEAT_MSG_FIELD_U8:
        memcpy(at, &u32, sizeof(uint8_t));
        return;
    case LEAT_MSG_FIELD_BOOL:
        *(bool *)at = number & 1;
        return;
    case LEAT_MSG_FIELD_TEXT:
        *(struct leat_msg_string *)at = (struct leat_msg_string){text, (uint32_t)strlen(text)};
        return;
    case LEAT_MSG_FIELD_BIN:
        *(struct leat_msg_bin *)at = (struct leat_msg_bin){text, (uint32_t)strlen(text)};
        return;
    case LEAT_MSG_FIELD_BIN16:
        memset(at, (int)(number & 0xff), 16);
        return;
    case LEAT_MSG_FIELD_CHARS:
        (void)snprintf(at, field->room, "%s", text);
        return;
    default:
        LEAT_ASSERT(field->kind == LEAT_MSG_FIELD_LIST);
        u32 = (uint32_t)(number % 3);
        memcpy(at, &u32, sizeof u32);
    }
}

/* A random length of the lengths that a row may have. */
static inline void rows_form_fill(const struct leat_msg_row *row, char *value, uint64_t *state)
{
    uint32_t count = 1 + (uint32_t)(rows_random(state) % row->count);
    while (count < row->count && !row->fields[count - 1].ends)
        count++;
    memcpy(value + row->count_at, &count, sizeof count);
}

static inline void rows_fill(const struct leat_msg_row *row, char *value, uint64_t *state);

/* A value for each of the two members; the flag says which one counts. */
static inline void rows_either_fill(const struct leat_msg_field *field, char *value,
                                    uint64_t *state)
{
    uint64_t number = rows_random(state);
    *(bool *)(value + field->flag_at) = number & 1;
    if (field->other_at) memcpy(value + field->other_at, &number, sizeof number);
    rows_fill(field->row(), value + field->at, state);
}

/* Half of the fields are zero; half of the zero fields are written all the same, because another field has its largest
 * value. */
static inline void rows_other_fill(const struct leat_msg_field *field, char *value, uint64_t number)
{
    LEAT_ASSERT(field->kind == LEAT_MSG_FIELD_U64);
    if (number % 4 < 2) memset(value + field->at, 0, sizeof(uint64_t));
    if (number % 4 % 2 == 0) memcpy(value + field->other_at, &field->max, sizeof field->max);
}

/** A value of the row's struct, by the state of a random number. */
static inline void rows_fill(const struct leat_msg_row *row, char *value, uint64_t *state)
{
    memset(value, 0, row->bytes);
    if (row->size == LEAT_MSG_FORMS) rows_form_fill(row, value, state);
    for (uint32_t i = 0; i < row->count; i++) {
        const struct leat_msg_field *field = &row->fields[i];
        if (field->kind == LEAT_MSG_FIELD_ROW)
            rows_fill(field->row(), value + field->at, state);
        else if (field->kind == LEAT_MSG_FIELD_EITHER)
            rows_either_fill(field, value, state);
        else if (field->kind != LEAT_MSG_FIELD_REST && field->kind != LEAT_MSG_FIELD_NUMBER)
            rows_number_fill(field, value + field->at, rows_random(state));
        if (field->is == LEAT_MSG_IF_SET_OR) rows_other_fill(field, value, rows_random(state));
    }
}

/* How many fields a value has. */
static inline uint32_t rows_fields(const struct leat_msg_row *row, const char *value)
{
    uint32_t count = row->count;
    if (row->size == LEAT_MSG_FORMS) memcpy(&count, value + row->count_at, sizeof count);
    return count;
}

/* Does a member name the place of the next value? */
static inline bool rows_goes_on(const struct leat_msg_field *field)
{
    return field->kind == LEAT_MSG_FIELD_LIST ||
           (field->kind == LEAT_MSG_FIELD_REST && field->at != 0);
}

static inline void rows_make(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                             uint64_t *state);

static inline void rows_elements_make(struct leat_msg_writer *writer, leat_msg_row_fn row,
                                      uint32_t count, uint64_t *state)
{
    for (uint32_t i = 0; i < count; i++)
        if (row != NULL)
            rows_make(writer, row(), state);
        else
            leat_msg_write_string(writer, "text", 1 + i % 4);
}

/** A whole body with all its lists. */
static inline void rows_make(struct leat_msg_writer *writer, const struct leat_msg_row *row,
                             uint64_t *state)
{
    _Alignas(16) char value[ROWS_VALUE_BYTES_MAX];
    if (row->fields == NULL) {
        leat_msg_write_array(writer, 2);
        rows_elements_make(writer, row->list, 2, state);
        return;
    }
    LEAT_ASSERT(row->bytes <= sizeof value);
    rows_fill(row, value, state);
    leat_msg_row_write(writer, row, value);
    for (uint32_t i = 0; i < rows_fields(row, value); i++) {
        const struct leat_msg_field *field = &row->fields[i];
        uint32_t count = 1;
        if (field->kind < LEAT_MSG_FIELD_LIST) continue;
        if (field->kind == LEAT_MSG_FIELD_LIST) memcpy(&count, value + field->at, sizeof count);
        if (field->list) leat_msg_write_array(writer, count);
        rows_elements_make(writer, field->row, count, state);
        if (rows_goes_on(field)) leat_msg_row_write_behind(writer, row, value, field->at);
    }
}

static inline bool rows_copy(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                             struct leat_msg_writer *writer, uint32_t depth);

/* Single values are texts or numbers: they are stepped over, and written as they are. */
static inline bool rows_elements_copy(struct leat_msg_reader *reader, leat_msg_row_fn row,
                                      uint32_t count, struct leat_msg_writer *writer,
                                      uint32_t depth)
{
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        const uint8_t *from = reader->at;
        if (row != NULL) {
            if (!rows_copy(reader, row(), writer, depth + 1)) return false;
            continue;
        }
        leat_msg_skip(reader);
        if (!reader->failed) leat_msg_write_raw(writer, from, (size_t)(reader->at - from));
    }
    return !reader->failed;
}

/** Read a row and write it again, with its lists. False: it is none, or lacks what the caller of a row with a
 * REST writes. */
static inline bool rows_copy(struct leat_msg_reader *reader, const struct leat_msg_row *row,
                             struct leat_msg_writer *writer, uint32_t depth)
{
    LEAT_ASSERT(depth < ROWS_DEPTH_MAX && row->count <= ROWS_FIELDS_MAX);
    if (row->fields == NULL) {
        uint32_t count = leat_msg_read_array(reader);
        leat_msg_write_array(writer, count);
        return rows_elements_copy(reader, row->list, count, writer, depth);
    }
    _Alignas(16) char value[ROWS_VALUE_BYTES_MAX];
    struct leat_msg_reader elements[ROWS_FIELDS_MAX];
    uint32_t counts[ROWS_FIELDS_MAX] = {0};
    uint32_t left = leat_msg_row_read(reader, row, value);
    for (uint32_t i = 0; i < rows_fields(row, value) && !reader->failed; i++) {
        const struct leat_msg_field *field = &row->fields[i];
        if (field->kind < LEAT_MSG_FIELD_LIST) continue;
        if (field->kind == LEAT_MSG_FIELD_REST) {
            if (left-- == 0) return false;
            counts[i] = field->list ? leat_msg_read_array(reader) : 1;
        } else {
            memcpy(&counts[i], value + field->at, sizeof counts[i]);
        }
        elements[i] = *reader;
        if (field->view_at != 0) {
            memcpy(&elements[i], value + field->view_at, sizeof elements[i]);
            continue;
        }
        leat_msg_skip_n(reader, counts[i]);
        if (rows_goes_on(field))
            left = leat_msg_row_read_behind(reader, row, value, field->at, left);
    }
    leat_msg_skip_n(reader, left);
    if (reader->failed) return false;
    leat_msg_row_write(writer, row, value);
    for (uint32_t i = 0; i < rows_fields(row, value); i++) {
        const struct leat_msg_field *field = &row->fields[i];
        if (field->kind < LEAT_MSG_FIELD_LIST) continue;
        if (field->list) leat_msg_write_array(writer, counts[i]);
        if (counts[i] > 0 &&
            !rows_elements_copy(&elements[i], field->row, counts[i], writer, depth))
            return false;
        if (rows_goes_on(field)) leat_msg_row_write_behind(writer, row, value, field->at);
    }
    return true;
}

/* ---- as the page shows it ---- */

static inline void rows_put(char *out, size_t out_bytes, const char *text)
{
    size_t used = strlen(out);
    LEAT_ASSERT(used + strlen(text) < out_bytes);
    memcpy(out + used, text, strlen(text) + 1);
}

static inline void rows_show(const struct leat_msg_row *row, char *out, size_t out_bytes);

/* By its name, where it has one on the page. */
static inline void rows_element_show(leat_msg_row_fn row, char *out, size_t out_bytes)
{
    const char *place = row()->place;
    if (place[0] >= 'a' && place[0] <= 'z')
        rows_put(out, out_bytes, place);
    else
        rows_show(row(), out, out_bytes);
}

/** "[code, first offset]" is added to the text in `out`. */
static inline void rows_show(const struct leat_msg_row *row, char *out, size_t out_bytes)
{
    rows_put(out, out_bytes, "[");
    if (row->list != NULL) rows_element_show(row->list, out, out_bytes);
    if (row->values != NULL) rows_put(out, out_bytes, row->values);
    if (row->fields == NULL) rows_put(out, out_bytes, "...");
    for (uint32_t i = 0; i < row->count; i++) {
        const struct leat_msg_field *field = &row->fields[i];
        bool list = field->kind == LEAT_MSG_FIELD_LIST || field->list;
        if (i > 0) rows_put(out, out_bytes, ", ");
        if (list) rows_put(out, out_bytes, "[");
        if (field->name[0] != '\0')
            rows_put(out, out_bytes, field->name);
        else
            rows_element_show(field->row, out, out_bytes);
        if (list) rows_put(out, out_bytes, "...]");
    }
    rows_put(out, out_bytes, "]");
}

#endif
