/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies of the fast path, by hand: append and fetch. tests/wire/rows_test.c holds them against
 * bodies.def. */
#include "wire/message.h"

/* The header of an array of at least `count` fields; returns how many more there are, added by a newer peer. */
static uint32_t body_open(struct leat_msg_reader *reader, uint32_t count)
{
    uint32_t fields = leat_msg_read_array(reader);
    if (fields >= count) return fields - count;
    reader->failed = true;
    return 0;
}

static void position_write(struct leat_msg_writer *writer, struct leat_position position)
{
    leat_msg_write_array(writer, 3);
    leat_msg_write_u64(writer, position.group);
    leat_msg_write_u64(writer, position.segment);
    leat_msg_write_u64(writer, position.position);
}

static struct leat_position position_read(struct leat_msg_reader *reader)
{
    struct leat_position position;
    uint32_t more = body_open(reader, 3);
    position.group = leat_msg_read_u64(reader);
    position.segment = leat_msg_read_u64(reader);
    position.position = leat_msg_read_u32(reader);
    leat_msg_skip_n(reader, more);
    return position;
}

/* Is an array next? Decides between the two forms of an offset. */
static bool array_next(const struct leat_msg_reader *reader)
{
    if (reader->failed || reader->at == reader->end) return false;
    return (*reader->at & 0xf0) == 0x90 || *reader->at == 0xdc || *reader->at == 0xdd;
}

void leat_msg_append_write(struct leat_msg_writer *writer, const struct leat_msg_append *append)
{
    leat_msg_write_array(writer, 5);
    leat_msg_write_log(writer, append->log);
    leat_msg_write_u64(writer, append->epoch);
    leat_msg_write_u64(writer, append->batch_count);
}

leat_err leat_msg_append_decode(const void *bytes, size_t count, struct leat_msg_append *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = body_open(&reader, 5);
    struct leat_msg_append append;
    append.log = leat_msg_read_log(&reader);
    append.epoch = leat_msg_read_u32(&reader);
    append.batch_count = leat_msg_read_u32(&reader);
    leat_msg_skip_n(&reader, more);
    if (!leat_msg_read_done(&reader)) return LEAT_E_INVALID;
    *out = append;
    return LEAT_OK;
}

void leat_msg_appended_write(struct leat_msg_writer *writer, leat_err code, uint64_t first_offset)
{
    leat_msg_write_array(writer, 2);
    leat_msg_write_u64(writer, (uint64_t)code);
    leat_msg_write_u64(writer, first_offset);
}

void leat_msg_appended_read(struct leat_msg_reader *reader, struct leat_msg_appended *out)
{
    uint32_t more = body_open(reader, 2);
    out->code = (leat_err)leat_msg_read_u32(reader);
    out->first_offset = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_fetch_write(struct leat_msg_writer *writer, const struct leat_msg_fetch *fetch)
{
    leat_msg_write_array(writer, 4);
    leat_msg_write_u64(writer, fetch->min_bytes);
    leat_msg_write_u64(writer, fetch->max_bytes);
    leat_msg_write_u64(writer, fetch->wait_ms);
    leat_msg_write_array(writer, fetch->log_count);
}

uint32_t leat_msg_fetch_read(struct leat_msg_reader *reader, struct leat_msg_fetch *out)
{
    uint32_t left = body_open(reader, 4);
    out->min_bytes = leat_msg_read_u32(reader);
    out->max_bytes = leat_msg_read_u32(reader);
    out->wait_ms = leat_msg_read_u32(reader);
    out->log_count = leat_msg_read_array(reader);
    return left;
}

void leat_msg_fetch_log_write(struct leat_msg_writer *writer, const struct leat_msg_fetch_log *log)
{
    leat_msg_write_array(writer, 5);
    leat_msg_write_log(writer, log->log);
    leat_msg_write_u64(writer, log->epoch);
    if (log->by_position) {
        position_write(writer, log->position);
    } else {
        leat_msg_write_u64(writer, log->offset);
    }
}

void leat_msg_fetch_log_read(struct leat_msg_reader *reader, struct leat_msg_fetch_log *out)
{
    *out = (struct leat_msg_fetch_log){0};
    uint32_t more = body_open(reader, 5);
    out->log = leat_msg_read_log(reader);
    out->epoch = leat_msg_read_u32(reader);
    out->by_position = array_next(reader);
    if (out->by_position)
        out->position = position_read(reader);
    else
        out->offset = leat_msg_read_u64(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_fetched_write(struct leat_msg_writer *writer, const struct leat_msg_fetched *fetched)
{
    bool damaged = fetched->code == LEAT_E_DAMAGED || fetched->resume != 0;
    bool told = fetched->text.bytes > 0;
    leat_msg_write_array(writer, told ? 7 : damaged ? 6 : fetched->by_position ? 5 : 4);
    leat_msg_write_u64(writer, (uint64_t)fetched->code);
    leat_msg_write_u64(writer, fetched->first_offset);
    leat_msg_write_u64(writer, fetched->acked_offset);
    leat_msg_write_u64(writer, fetched->bytes);
    if (fetched->by_position) {
        position_write(writer, fetched->next);
    } else if (damaged || told) {
        leat_msg_write_u64(writer, 0);
    }
    if (damaged || told) leat_msg_write_u64(writer, fetched->resume);
    if (told) leat_msg_write_string(writer, fetched->text.text, fetched->text.bytes);
}

void leat_msg_fetched_read(struct leat_msg_reader *reader, struct leat_msg_fetched *out)
{
    *out = (struct leat_msg_fetched){0};
    uint32_t more = body_open(reader, 4);
    out->code = (leat_err)leat_msg_read_u32(reader);
    out->first_offset = leat_msg_read_u64(reader);
    out->acked_offset = leat_msg_read_u64(reader);
    out->bytes = leat_msg_read_u32(reader);
    if (more > 0) {
        out->by_position = array_next(reader);
        if (out->by_position)
            out->next = position_read(reader);
        else
            leat_msg_skip(reader);
        more--;
    }
    if (more > 0) {
        out->resume = leat_msg_read_u64(reader);
        more--;
    }
    if (more > 0) {
        out->text = leat_msg_read_string(reader);
        more--;
    }
    leat_msg_skip_n(reader, more);
}
