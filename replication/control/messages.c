/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies between primary and backup. */
#include "replication/control/messages.h"

#include <string.h>

#include "base/assert.h"
#include "wire/row.h"

static const struct leat_msg_field body_fields[] = {
    LEAT_MSG_FIELD(struct rep_body, handle),
    LEAT_MSG_FIELD_LOG(struct rep_body, log),
    LEAT_MSG_FIELD(struct rep_body, segment.v),
    LEAT_MSG_FIELD(struct rep_body, epoch.v),
    LEAT_MSG_FIELD(struct rep_body, version),
    LEAT_MSG_FIELD(struct rep_body, capacity),
    LEAT_MSG_FIELD(struct rep_body, durability),
    LEAT_MSG_FIELD(struct rep_body, incomplete),
    LEAT_MSG_FIELD(struct rep_body, extent.bytes),
    LEAT_MSG_FIELD(struct rep_body, extent.crc),
    LEAT_MSG_FIELD(struct rep_body, next_offset),
    LEAT_MSG_FIELD(struct rep_body, max_timestamp_ms),
};
static const struct leat_msg_row body_row = LEAT_MSG_ROW(body_fields);

static const struct leat_msg_field pull_fields[] = {
    LEAT_MSG_FIELD_LOG(struct rep_pull, log),      LEAT_MSG_FIELD(struct rep_pull, segment.v),
    LEAT_MSG_FIELD(struct rep_pull, extent.bytes), LEAT_MSG_FIELD(struct rep_pull, extent.crc),
    LEAT_MSG_FIELD(struct rep_pull, from),         LEAT_MSG_FIELD(struct rep_pull, count),
};
static const struct leat_msg_row pull_row = LEAT_MSG_ROW(pull_fields);

static const struct leat_msg_field answer_fields[] = {
    LEAT_MSG_FIELD(struct rep_answer, handle),
    LEAT_MSG_FIELD(struct rep_answer, place),
    LEAT_MSG_FIELD(struct rep_answer, load_bytes),
};
static const struct leat_msg_row answer_row = LEAT_MSG_ROW(answer_fields);

static const struct leat_msg_field pair_fields[] = {
    LEAT_MSG_FIELD(struct rep_pair, handle),
    LEAT_MSG_FIELD(struct rep_pair, value),
};
static const struct leat_msg_row pair_row = LEAT_MSG_ROW(pair_fields);

static const struct leat_msg_field audit_fields[] = {
    LEAT_MSG_FIELD(struct rep_row, handle),       LEAT_MSG_FIELD_LOG(struct rep_row, log),
    LEAT_MSG_FIELD(struct rep_row, segment.v),    LEAT_MSG_FIELD(struct rep_row, epoch.v),
    LEAT_MSG_FIELD(struct rep_row, version),      LEAT_MSG_FIELD(struct rep_row, state),
    LEAT_MSG_FIELD(struct rep_row, extent.bytes), LEAT_MSG_FIELD(struct rep_row, extent.crc),
};
static const struct leat_msg_row audit_row = LEAT_MSG_ROW(audit_fields);

uint32_t rep_body_encode(const struct rep_body *body, uint8_t out[REP_BODY_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_BODY_BYTES_MAX);
    leat_msg_row_write(&writer, &body_row, body, 2);
    leat_msg_write_u64(&writer, body->owner.v);
    leat_msg_write_u64(&writer, body->passed_bytes);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_body_decode(const void *bytes, size_t count, struct rep_body *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t more = leat_msg_row_read(&reader, &body_row, out, 0);
    out->owner.v = more > 0 ? leat_msg_read_u32(&reader) : 0; /* of an earlier version: not told */
    out->passed_bytes = more > 1 ? leat_msg_read_u32(&reader) : 0;
    leat_msg_skip_n(&reader, more > 2 ? more - 2 : 0);
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

uint32_t rep_pull_encode(const struct rep_pull *pull, uint8_t out[REP_PULL_BYTES_MAX])
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, REP_PULL_BYTES_MAX);
    leat_msg_row_write(&writer, &pull_row, pull, 1);
    leat_msg_write_bool(&writer, pull->whole);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_pull_decode(const void *bytes, size_t count, struct rep_pull *out)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t extra = leat_msg_row_read(&reader, &pull_row, out, 0);
    out->whole = extra > 0 && leat_msg_read_bool(&reader);
    leat_msg_skip_n(&reader, extra > 0 ? extra - 1 : 0);
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

uint32_t rep_answer_encode(const struct rep_answer *answer, uint8_t out[REP_BODY_BYTES_MAX])
{
    return leat_msg_row_encode(&answer_row, answer, out, REP_BODY_BYTES_MAX);
}

leat_err rep_answer_decode(const void *bytes, size_t count, struct rep_answer *out)
{
    return leat_msg_row_decode(bytes, count, &answer_row, out);
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
    uint32_t fields = leat_msg_read_array(&reader);
    struct leat_msg_string grant = leat_msg_read_string(&reader);
    if (reader.failed || fields < 2 || grant.bytes > sizeof out->grant.data) return LEAT_E_INVALID;
    out->grant.bytes = grant.bytes;
    memcpy(out->grant.data, grant.text, grant.bytes);
    out->load_bytes = leat_msg_read_u64(&reader);
    leat_msg_skip_n(&reader, fields - 2);
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

uint32_t rep_pairs_encode(const struct rep_pair *pairs, uint32_t count, uint8_t *out,
                          size_t out_bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, out_bytes);
    leat_msg_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        leat_msg_row_write(&writer, &pair_row, &pairs[i], pairs[i].passed > 0);
        if (pairs[i].passed > 0) leat_msg_write_u64(&writer, pairs[i].passed);
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
        uint32_t more = leat_msg_row_read(&reader, &pair_row, &out[i], 0);
        out[i].passed = more > 0 ? leat_msg_read_u32(&reader) : 0;
        leat_msg_skip_n(&reader, more > 0 ? more - 1 : 0);
    }
    *out_count = rows;
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

void rep_row_write(struct leat_msg_writer *writer, const struct rep_row *row)
{
    leat_msg_row_write(writer, &audit_row, row, 0);
}

void rep_row_read(struct leat_msg_reader *reader, struct rep_row *out)
{
    leat_msg_skip_n(reader, leat_msg_row_read(reader, &audit_row, out, 0));
}
