/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies of the data path: append, fetch, locate. */
#include "wire/message.h"

#include "wire/body.h"

static void position_fields_write(struct leat_msg_writer *writer, struct leat_position position)
{
    leat_msg_write_u64(writer, position.group);
    leat_msg_write_u64(writer, position.segment);
    leat_msg_write_u64(writer, position.position);
}

static struct leat_position position_fields_read(struct leat_msg_reader *reader)
{
    struct leat_position position;
    position.group = leat_msg_read_u64(reader);
    position.segment = leat_msg_read_u64(reader);
    position.position = leat_msg_read_u32(reader);
    return position;
}

static struct leat_position position_read(struct leat_msg_reader *reader)
{
    uint32_t more = leat_body_open(reader, 3);
    struct leat_position position = position_fields_read(reader);
    leat_msg_skip_n(reader, more);
    return position;
}

/* Is an array next? Decides between the two forms of an offset. */
static bool array_next(const struct leat_msg_reader *reader)
{
    if (reader->failed || reader->at == reader->end) return false;
    return (*reader->at & 0xf0) == 0x90 || *reader->at == 0xdc || *reader->at == 0xdd;
}

void leat_msg_append_encode(struct leat_msg_writer *writer, const struct leat_msg_append *append)
{
    leat_msg_write_array(writer, 5);
    leat_body_log_write(writer, append->log);
    leat_msg_write_u64(writer, append->epoch);
    leat_msg_write_u64(writer, append->batch_count);
}

leat_err leat_msg_append_decode(const void *bytes, size_t count, struct leat_msg_append *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = leat_body_open(&reader, 5);
    struct leat_msg_append append;
    append.log = leat_body_log_read(&reader);
    append.epoch = leat_msg_read_u32(&reader);
    append.batch_count = leat_msg_read_u32(&reader);
    leat_msg_skip_n(&reader, more);
    if (!leat_msg_read_done(&reader)) return LEAT_E_INVALID;
    *out = append;
    return LEAT_OK;
}

void leat_msg_fetch_write(struct leat_msg_writer *writer, const struct leat_msg_fetch *fetch)
{
    leat_msg_write_array(writer, 4);
    leat_msg_write_u64(writer, fetch->min_bytes);
    leat_msg_write_u64(writer, fetch->max_bytes);
    leat_msg_write_u64(writer, fetch->wait_ms);
    leat_msg_write_array(writer, fetch->log_count);
}

void leat_msg_fetch_read(struct leat_msg_reader *reader, struct leat_msg_fetch *out)
{
    /* Fields added later come after the list; who has read the list skips to the end. */
    (void)leat_body_open(reader, 4);
    out->min_bytes = leat_msg_read_u32(reader);
    out->max_bytes = leat_msg_read_u32(reader);
    out->wait_ms = leat_msg_read_u32(reader);
    out->log_count = leat_msg_read_array(reader);
}

void leat_msg_fetch_log_write(struct leat_msg_writer *writer, const struct leat_msg_fetch_log *log)
{
    leat_msg_write_array(writer, 5);
    leat_body_log_write(writer, log->log);
    leat_msg_write_u64(writer, log->epoch);
    if (log->by_position) {
        leat_msg_write_array(writer, 3);
        position_fields_write(writer, log->position);
    } else {
        leat_msg_write_u64(writer, log->offset);
    }
}

void leat_msg_fetch_log_read(struct leat_msg_reader *reader, struct leat_msg_fetch_log *out)
{
    *out = (struct leat_msg_fetch_log){0};
    uint32_t more = leat_body_open(reader, 5);
    out->log = leat_body_log_read(reader);
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
        leat_msg_write_array(writer, 3);
        position_fields_write(writer, fetched->next);
    } else if (damaged || told) {
        leat_msg_write_u64(writer, 0);
    }
    if (damaged || told) leat_msg_write_u64(writer, fetched->resume);
    if (told) leat_msg_write_string(writer, fetched->text.text, fetched->text.bytes);
}

void leat_msg_fetched_read(struct leat_msg_reader *reader, struct leat_msg_fetched *out)
{
    *out = (struct leat_msg_fetched){0};
    uint32_t more = leat_body_open(reader, 4);
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

void leat_msg_locate_write(struct leat_msg_writer *writer, const struct leat_msg_locate *locate)
{
    bool by_position = locate->what == LEAT_LOCATE_POSITION;
    leat_msg_write_array(writer, by_position ? 7 : 5);
    leat_body_log_write(writer, locate->log);
    leat_msg_write_u64(writer, locate->what);
    if (by_position)
        position_fields_write(writer, locate->position);
    else
        leat_msg_write_i64(writer, locate->value);
}

void leat_msg_locate_read(struct leat_msg_reader *reader, struct leat_msg_locate *out)
{
    *out = (struct leat_msg_locate){0};
    uint32_t more = leat_body_open(reader, 5);
    out->log = leat_body_log_read(reader);
    out->what = leat_msg_read_u32(reader);
    if (out->what != LEAT_LOCATE_POSITION) {
        out->value = leat_msg_read_i64(reader);
    } else if (more < 2) {
        reader->failed = true;
    } else {
        out->position = position_fields_read(reader);
        more -= 2;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_located_write(struct leat_msg_writer *writer, const struct leat_msg_located *located)
{
    bool told = located->text.bytes > 0;
    leat_msg_write_array(writer, told ? 7 : 6);
    leat_msg_write_u64(writer, (uint64_t)located->code);
    leat_msg_write_u64(writer, located->offset);
    leat_msg_write_i64(writer, located->timestamp_ms);
    position_fields_write(writer, located->position);
    if (told) leat_msg_write_string(writer, located->text.text, located->text.bytes);
}

void leat_msg_located_read(struct leat_msg_reader *reader, struct leat_msg_located *out)
{
    *out = (struct leat_msg_located){0};
    uint32_t more = leat_body_open(reader, 6);
    out->code = (leat_err)leat_msg_read_u32(reader);
    out->offset = leat_msg_read_u64(reader);
    out->timestamp_ms = leat_msg_read_i64(reader);
    out->position = position_fields_read(reader);
    if (more > 0) {
        out->text = leat_msg_read_string(reader);
        more--;
    }
    leat_msg_skip_n(reader, more);
}
