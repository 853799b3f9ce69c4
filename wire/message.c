/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies. A decoder reads the fields it knows and skips what a newer peer has added at the
 * end of an array. */
#include "wire/message.h"

#include "wire/body.h"

#include <string.h>

static leat_err body_result(const struct leat_msg_reader *reader)
{
    return leat_msg_read_done(reader) ? LEAT_OK : LEAT_E_INVALID;
}

static void string_write(struct leat_msg_writer *writer, struct leat_msg_string string)
{
    leat_msg_write_string(writer, string.text, string.bytes);
}

/* ---- ERROR, HELLO ---- */

void leat_msg_error_encode(struct leat_msg_writer *writer, leat_err code, const char *text)
{
    leat_msg_write_array(writer, 3);
    leat_msg_write_u64(writer, (uint64_t)code);
    leat_msg_write_u64(writer, (uint64_t)leat_err_class(code));
    leat_msg_write_string(writer, text, strlen(text));
}

leat_err leat_msg_error_decode(const void *bytes, size_t count, struct leat_msg_error *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = leat_body_open(&reader, 3);
    struct leat_msg_error error;
    error.code = (leat_err)leat_msg_read_u32(&reader);
    (void)leat_msg_read_u32(&reader); /* the class, for peers that do not know the code */
    error.text = leat_msg_read_string(&reader);
    leat_msg_skip_n(&reader, more);
    leat_err rc = body_result(&reader);
    if (rc == LEAT_OK) *out = error;
    return rc;
}

void leat_msg_hello_encode(struct leat_msg_writer *writer, const struct leat_msg_hello *hello)
{
    leat_msg_write_array(writer, 4);
    leat_msg_write_u64(writer, hello->version_min);
    leat_msg_write_u64(writer, hello->version_max);
    string_write(writer, hello->name);
    leat_msg_write_i64(writer, hello->lane);
}

leat_err leat_msg_hello_decode(const void *bytes, size_t count, struct leat_msg_hello *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = leat_body_open(&reader, 4);
    struct leat_msg_hello hello;
    hello.version_min = leat_msg_read_u32(&reader);
    hello.version_max = leat_msg_read_u32(&reader);
    hello.name = leat_msg_read_string(&reader);
    hello.lane = leat_msg_read_i64(&reader);
    leat_msg_skip_n(&reader, more);
    leat_err rc = body_result(&reader);
    if (rc == LEAT_OK) *out = hello;
    return rc;
}

void leat_msg_hello_ok_encode(struct leat_msg_writer *writer, const struct leat_msg_hello_ok *ok)
{
    leat_msg_write_array(writer, 6);
    leat_msg_write_u64(writer, ok->version);
    leat_msg_write_bin(writer, ok->cluster_id, sizeof ok->cluster_id);
    leat_msg_write_u64(writer, ok->incarnation);
    string_write(writer, ok->node);
    leat_msg_write_u64(writer, ok->lanes);
    leat_msg_write_u64(writer, ok->lane);
}

leat_err leat_msg_hello_ok_decode(const void *bytes, size_t count, struct leat_msg_hello_ok *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = leat_body_open(&reader, 6);
    struct leat_msg_hello_ok ok;
    ok.version = leat_msg_read_u32(&reader);
    struct leat_msg_string id = leat_msg_read_string(&reader);
    if (id.bytes != sizeof ok.cluster_id)
        reader.failed = true;
    else
        memcpy(ok.cluster_id, id.text, sizeof ok.cluster_id);
    ok.incarnation = leat_msg_read_u64(&reader);
    ok.node = leat_msg_read_string(&reader);
    ok.lanes = leat_msg_read_u32(&reader);
    ok.lane = leat_msg_read_u32(&reader);
    leat_msg_skip_n(&reader, more);
    leat_err rc = body_result(&reader);
    if (rc == LEAT_OK) *out = ok;
    return rc;
}

/* ---- settings, METADATA ---- */

void leat_msg_settings_write(struct leat_msg_writer *writer,
                             const struct leat_stream_settings *settings)
{
    leat_msg_write_array(writer, 13);
    leat_msg_write_u64(writer, settings->streamlets);
    leat_msg_write_u64(writer, settings->logs);
    leat_msg_write_u64(writer, settings->copies);
    leat_msg_write_u64(writer, settings->min_copies);
    leat_msg_write_u64(writer, (uint64_t)settings->durability);
    leat_msg_write_u64(writer, settings->segment_bytes_max);
    leat_msg_write_i64(writer, settings->retention_ms);
    leat_msg_write_i64(writer, settings->retention_bytes);
    leat_msg_write_u64(writer, settings->batch_bytes_max);
    leat_msg_write_bool(writer, settings->append_time);
    leat_msg_write_u64(writer, settings->segment_bytes_asked);
    leat_msg_write_u64(writer, settings->compression_asked);
    leat_msg_write_u64(writer, (uint64_t)settings->validate);
}

void leat_msg_settings_read(struct leat_msg_reader *reader, struct leat_stream_settings *out)
{
    uint32_t more = leat_body_open(reader, 8);
    out->streamlets = leat_msg_read_u32(reader);
    out->logs = leat_msg_read_u32(reader);
    out->copies = leat_msg_read_u32(reader);
    out->min_copies = leat_msg_read_u32(reader);
    uint32_t durability = leat_msg_read_u32(reader);
    if (durability > LEAT_DURABILITY_DISK) {
        reader->failed = true;
        durability = LEAT_DURABILITY_DEFAULT;
    }
    out->durability = (enum leat_durability)durability;
    out->segment_bytes_max = leat_msg_read_u32(reader);
    out->retention_ms = leat_msg_read_i64(reader);
    out->retention_bytes = leat_msg_read_i64(reader);
    out->batch_bytes_max = 0;
    out->append_time = false;
    out->segment_bytes_asked = out->compression_asked = 0;
    out->validate = LEAT_VALIDATE_FULL;
    if (more > 0) {
        out->batch_bytes_max = leat_msg_read_u32(reader);
        more--;
    }
    if (more > 0) {
        out->append_time = leat_msg_read_bool(reader);
        more--;
    }
    if (more > 0) {
        out->segment_bytes_asked = leat_msg_read_u32(reader);
        more--;
    }
    if (more > 0) {
        out->compression_asked = leat_msg_read_u32(reader);
        more--;
    }
    if (more > 0) {
        uint32_t validate = leat_msg_read_u32(reader);
        if (validate > LEAT_VALIDATE_CRC)
            reader->failed = true;
        else
            out->validate = (enum leat_validate)validate;
        more--;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_node_write(struct leat_msg_writer *writer, const struct leat_msg_node *node)
{
    leat_msg_write_array(writer, 4);
    leat_msg_write_u64(writer, node->incarnation);
    string_write(writer, node->name);
    string_write(writer, node->address);
    leat_msg_write_u64(writer, node->lanes);
}

void leat_msg_node_read(struct leat_msg_reader *reader, struct leat_msg_node *out)
{
    uint32_t more = leat_body_open(reader, 4);
    out->incarnation = leat_msg_read_u64(reader);
    out->name = leat_msg_read_string(reader);
    out->address = leat_msg_read_string(reader);
    out->lanes = leat_msg_read_u32(reader);
    leat_msg_skip_n(reader, more);
}

void leat_msg_stream_write(struct leat_msg_writer *writer, const struct leat_msg_stream *stream)
{
    leat_msg_write_array(writer, stream->code == LEAT_OK ? 5 : 3);
    leat_msg_write_u64(writer, (uint64_t)stream->code);
    string_write(writer, stream->name);
    if (stream->code != LEAT_OK) {
        string_write(writer, stream->text);
        return;
    }
    leat_msg_write_u64(writer, stream->id);
    leat_msg_settings_write(writer, &stream->settings);
    leat_msg_write_array(writer, stream->log_count);
}

void leat_msg_stream_read(struct leat_msg_reader *reader, struct leat_msg_stream *out)
{
    *out = (struct leat_msg_stream){.name = {"", 0}, .text = {"", 0}};
    uint32_t more = leat_body_open(reader, 2);
    out->code = (leat_err)leat_msg_read_u32(reader);
    out->name = leat_msg_read_string(reader);
    if (reader->failed) return;
    if (out->code != LEAT_OK) {
        if (more > 0) out->text = leat_msg_read_string(reader);
        leat_msg_skip_n(reader, more > 0 ? more - 1 : 0);
        return;
    }
    /* The logs are the last field, and are read by the caller: nothing may come after them. */
    if (more != 3) {
        reader->failed = true;
        return;
    }
    out->id = leat_msg_read_u32(reader);
    leat_msg_settings_read(reader, &out->settings);
    out->log_count = leat_msg_read_array(reader);
}

void leat_msg_log_write(struct leat_msg_writer *writer, const struct leat_msg_log *log)
{
    leat_msg_write_array(writer, 5);
    leat_msg_write_u64(writer, log->streamlet);
    leat_msg_write_u64(writer, log->log);
    leat_msg_write_u64(writer, log->owner);
    leat_msg_write_u64(writer, log->epoch);
    leat_msg_write_u64(writer, log->lane);
}

static void log_fields_read(struct leat_msg_reader *reader, struct leat_msg_log *out)
{
    out->streamlet = leat_msg_read_u32(reader);
    out->log = leat_msg_read_u32(reader);
    out->owner = leat_msg_read_u64(reader);
    out->epoch = leat_msg_read_u32(reader);
    out->lane = leat_msg_read_u32(reader);
}

void leat_msg_log_read(struct leat_msg_reader *reader, struct leat_msg_log *out)
{
    uint32_t more = leat_body_open(reader, 5);
    log_fields_read(reader, out);
    leat_msg_skip_n(reader, more);
}

void leat_msg_log_info_write(struct leat_msg_writer *writer, const struct leat_msg_log_info *info)
{
    leat_msg_write_array(writer, 29);
    leat_msg_write_u64(writer, info->at.streamlet);
    leat_msg_write_u64(writer, info->at.log);
    leat_msg_write_u64(writer, info->at.owner);
    leat_msg_write_u64(writer, info->at.epoch);
    leat_msg_write_u64(writer, info->at.lane);
    leat_msg_write_u64(writer, info->state);
    leat_msg_write_u64(writer, info->first_offset);
    leat_msg_write_u64(writer, info->acked_offset);
    leat_msg_write_u64(writer, info->bytes);
    leat_msg_write_u64(writer, info->first_segment);
    leat_msg_write_u64(writer, info->segments);
    leat_msg_write_u64(writer, info->groups);
    leat_msg_write_u64(writer, info->first_group);
    leat_msg_write_u64(writer, info->producers);
    leat_msg_write_u64(writer, info->memory_bytes);
    leat_msg_write_u64(writer, (uint64_t)info->code);
    string_write(writer, info->text);
    leat_msg_write_u64(writer, info->copies);
    leat_msg_write_u64(writer, info->copies_min);
    leat_msg_write_u64(writer, info->copies_now);
    leat_msg_write_u64(writer, info->segments_lacking);
    leat_msg_write_bool(writer, info->suspended);
    leat_msg_write_bool(writer, info->below_min);
    leat_msg_write_u64(writer, info->end_segment);
    leat_msg_write_u64(writer, info->offsets_lost);
    leat_msg_write_u64(writer, info->passed_bytes);
    leat_msg_write_u64(writer, info->passed_segments);
    leat_msg_write_u64(writer, info->passed_segment);
    leat_msg_write_u64(writer, info->passed_offset);
}

void leat_msg_log_info_read(struct leat_msg_reader *reader, struct leat_msg_log_info *out)
{
    *out = (struct leat_msg_log_info){0};
    uint32_t more = leat_body_open(reader, 17);
    log_fields_read(reader, &out->at);
    out->state = leat_msg_read_u32(reader);
    out->first_offset = leat_msg_read_u64(reader);
    out->acked_offset = leat_msg_read_u64(reader);
    out->bytes = leat_msg_read_u64(reader);
    out->first_segment = leat_msg_read_u64(reader);
    out->segments = leat_msg_read_u64(reader);
    out->groups = leat_msg_read_u64(reader);
    out->first_group = leat_msg_read_u64(reader);
    out->producers = leat_msg_read_u64(reader);
    out->memory_bytes = leat_msg_read_u64(reader);
    out->code = (leat_err)leat_msg_read_u32(reader);
    out->text = leat_msg_read_string(reader);
    if (more >= 6) {
        out->copies = leat_msg_read_u32(reader);
        out->copies_min = leat_msg_read_u32(reader);
        out->copies_now = leat_msg_read_u32(reader);
        out->segments_lacking = leat_msg_read_u64(reader);
        out->suspended = leat_msg_read_bool(reader);
        out->below_min = leat_msg_read_bool(reader);
        more -= 6;
    }
    if (more > 0) {
        out->end_segment = leat_msg_read_u64(reader);
        more--;
    }
    if (more > 0) {
        out->offsets_lost = leat_msg_read_u64(reader);
        more--;
    }
    if (more >= 4) {
        out->passed_bytes = leat_msg_read_u64(reader);
        out->passed_segments = leat_msg_read_u64(reader);
        out->passed_segment = leat_msg_read_u64(reader);
        out->passed_offset = leat_msg_read_u64(reader);
        more -= 4;
    }
    leat_msg_skip_n(reader, more);
}

void leat_msg_segment_write(struct leat_msg_writer *writer, const struct leat_msg_segment *segment)
{
    leat_msg_write_array(writer, 5);
    leat_msg_write_u64(writer, segment->id);
    leat_msg_write_bool(writer, segment->closed);
    leat_msg_write_bool(writer, segment->misplaced);
    leat_msg_write_u64(writer, segment->wanted);
    leat_msg_write_array(writer, segment->copy_count);
}

void leat_msg_segment_read(struct leat_msg_reader *reader, struct leat_msg_segment *out)
{
    *out = (struct leat_msg_segment){0};
    if (leat_body_open(reader, 5) != 0) reader->failed = true; /* the list is the last field */
    out->id = leat_msg_read_u64(reader);
    out->closed = leat_msg_read_bool(reader);
    out->misplaced = leat_msg_read_bool(reader);
    out->wanted = leat_msg_read_u32(reader);
    out->copy_count = leat_msg_read_array(reader);
}

void leat_msg_segment_copy_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_segment_copy *copy)
{
    leat_msg_write_array(writer, 5);
    string_write(writer, copy->node);
    leat_msg_write_bool(writer, copy->complete);
    leat_msg_write_bool(writer, copy->closed);
    leat_msg_write_bool(writer, copy->parked);
    leat_msg_write_u64(writer, copy->bytes);
}

void leat_msg_segment_copy_read(struct leat_msg_reader *reader, struct leat_msg_segment_copy *out)
{
    *out = (struct leat_msg_segment_copy){0};
    uint32_t more = leat_body_open(reader, 5);
    out->node = leat_msg_read_string(reader);
    out->complete = leat_msg_read_bool(reader);
    out->closed = leat_msg_read_bool(reader);
    out->parked = leat_msg_read_bool(reader);
    out->bytes = leat_msg_read_u32(reader);
    leat_msg_skip_n(reader, more);
}
