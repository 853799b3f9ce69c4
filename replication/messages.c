/* Control bodies between primary and backup. */
#include "replication/messages.h"

#include <string.h>

#include "base/assert.h"

static uint32_t open_array(struct leat_msg_reader *reader, uint32_t least)
{
    uint32_t count = leat_msg_read_array(reader);
    if (count < least) {
        reader->failed = true;
        return 0;
    }
    return count - least;
}

static leat_err done(struct leat_msg_reader *reader, uint32_t extra)
{
    leat_msg_skip_n(reader, extra);
    return leat_msg_read_done(reader) ? LEAT_OK : LEAT_E_INVALID;
}

static void log_write(struct leat_msg_writer *writer, struct leat_log_ref log)
{
    leat_msg_write_u64(writer, log.stream);
    leat_msg_write_u64(writer, log.streamlet);
    leat_msg_write_u64(writer, log.log);
}

static struct leat_log_ref log_read(struct leat_msg_reader *reader)
{
    struct leat_log_ref log;
    log.stream = leat_msg_read_u32(reader);
    log.streamlet = leat_msg_read_u32(reader);
    log.log = leat_msg_read_u32(reader);
    return log;
}

uint32_t rep_body_encode(const struct rep_body *body, uint8_t out[REP_BODY_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_BODY_BYTES_MAX);
    leat_msg_write_array(&writer, 14);
    leat_msg_write_u64(&writer, body->handle);
    log_write(&writer, body->log);
    leat_msg_write_u64(&writer, body->segment.v);
    leat_msg_write_u64(&writer, body->epoch.v);
    leat_msg_write_u64(&writer, body->version);
    leat_msg_write_u64(&writer, body->capacity);
    leat_msg_write_u64(&writer, body->durability);
    leat_msg_write_bool(&writer, body->incomplete);
    leat_msg_write_u64(&writer, body->extent.bytes);
    leat_msg_write_u64(&writer, body->extent.crc);
    leat_msg_write_u64(&writer, body->next_offset);
    leat_msg_write_i64(&writer, body->max_timestamp_ms);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

uint32_t rep_pull_encode(const struct rep_pull *pull, uint8_t out[REP_PULL_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_PULL_BYTES_MAX);
    leat_msg_write_array(&writer, 8);
    log_write(&writer, pull->log);
    leat_msg_write_u64(&writer, pull->segment.v);
    leat_msg_write_u64(&writer, pull->extent.bytes);
    leat_msg_write_u64(&writer, pull->extent.crc);
    leat_msg_write_u64(&writer, pull->from);
    leat_msg_write_u64(&writer, pull->count);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_pull_decode(const void *bytes, size_t count, struct rep_pull *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t extra = open_array(&reader, 8);
    out->log = log_read(&reader);
    out->segment.v = leat_msg_read_u64(&reader);
    out->extent.bytes = leat_msg_read_u32(&reader);
    out->extent.crc = leat_msg_read_u32(&reader);
    out->from = leat_msg_read_u32(&reader);
    out->count = leat_msg_read_u32(&reader);
    return done(&reader, extra);
}

leat_err rep_body_decode(const void *bytes, size_t count, struct rep_body *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t extra = open_array(&reader, 14);
    out->handle = leat_msg_read_u64(&reader);
    out->log = log_read(&reader);
    out->segment.v = leat_msg_read_u64(&reader);
    out->epoch.v = leat_msg_read_u32(&reader);
    out->version = leat_msg_read_u32(&reader);
    out->capacity = leat_msg_read_u32(&reader);
    out->durability = leat_msg_read_u32(&reader);
    out->incomplete = leat_msg_read_bool(&reader);
    out->extent.bytes = leat_msg_read_u32(&reader);
    out->extent.crc = leat_msg_read_u32(&reader);
    out->next_offset = leat_msg_read_u64(&reader);
    out->max_timestamp_ms = leat_msg_read_i64(&reader);
    return done(&reader, extra);
}

uint32_t rep_answer_encode(const struct rep_answer *answer, uint8_t out[REP_BODY_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_BODY_BYTES_MAX);
    leat_msg_write_array(&writer, 3);
    leat_msg_write_u64(&writer, answer->handle);
    leat_msg_write_u64(&writer, answer->place);
    leat_msg_write_u64(&writer, answer->load_bytes);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_answer_decode(const void *bytes, size_t count, struct rep_answer *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t extra = open_array(&reader, 3);
    out->handle = leat_msg_read_u64(&reader);
    out->place = leat_msg_read_u64(&reader);
    out->load_bytes = leat_msg_read_u64(&reader);
    return done(&reader, extra);
}

uint32_t rep_attached_encode(const struct rep_attached *attached,
                             uint8_t out[REP_ATTACHED_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_ATTACHED_BYTES_MAX);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_bin(&writer, attached->grant.data, attached->grant.bytes);
    leat_msg_write_u64(&writer, attached->load_bytes);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_attached_decode(const void *bytes, size_t count, struct rep_attached *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t extra = open_array(&reader, 2);
    struct leat_msg_string grant = leat_msg_read_string(&reader);
    if (reader.failed || grant.bytes > sizeof out->grant.data) return LEAT_E_INVALID;
    out->grant.bytes = grant.bytes;
    memcpy(out->grant.data, grant.text, grant.bytes);
    out->load_bytes = leat_msg_read_u64(&reader);
    return done(&reader, extra);
}

uint32_t rep_pairs_encode(const struct rep_pair *pairs, uint32_t count, uint8_t *out,
                          size_t out_bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, out_bytes);
    leat_msg_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, pairs[i].handle);
        leat_msg_write_u64(&writer, pairs[i].value);
    }
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_pairs_decode(const void *bytes, size_t count, struct rep_pair *out,
                          uint32_t *out_count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t rows = leat_msg_read_array(&reader);
    if (rows > LEAT_REP_BATCH_MAX) return LEAT_E_TOO_LARGE;
    for (uint32_t i = 0; i < rows && !reader.failed; i++) {
        uint32_t extra = open_array(&reader, 2);
        out[i].handle = leat_msg_read_u64(&reader);
        out[i].value = leat_msg_read_u64(&reader);
        leat_msg_skip_n(&reader, extra);
    }
    *out_count = rows;
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

void rep_row_write(struct leat_msg_writer *writer, const struct rep_row *row)
{
    leat_msg_write_array(writer, 10);
    leat_msg_write_u64(writer, row->handle);
    log_write(writer, row->log);
    leat_msg_write_u64(writer, row->segment.v);
    leat_msg_write_u64(writer, row->epoch.v);
    leat_msg_write_u64(writer, row->version);
    leat_msg_write_u64(writer, row->state);
    leat_msg_write_u64(writer, row->extent.bytes);
    leat_msg_write_u64(writer, row->extent.crc);
}

void rep_row_read(struct leat_msg_reader *reader, struct rep_row *out)
{
    uint32_t extra = open_array(reader, 10);
    out->handle = leat_msg_read_u64(reader);
    out->log = log_read(reader);
    out->segment.v = leat_msg_read_u64(reader);
    out->epoch.v = leat_msg_read_u32(reader);
    out->version = leat_msg_read_u32(reader);
    out->state = leat_msg_read_u32(reader);
    out->extent.bytes = leat_msg_read_u32(reader);
    out->extent.crc = leat_msg_read_u32(reader);
    leat_msg_skip_n(reader, extra);
}
