/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies between primary and backup, as bodies.def lists them. */
#include "replication/control/messages.h"

#include <string.h>

#include "base/assert.h"

#define LEAT_ROWS "replication/control/bodies.def"
#include "wire/rows_make.h"

/* A whole body, which must fit. */
static uint32_t encode(const struct leat_msg_row *row, const void *value, uint8_t *out,
                       size_t out_bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, out_bytes);
    leat_msg_row_write(&writer, row, value);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

uint32_t rep_body_encode(const struct rep_body *body, uint8_t out[REP_BODY_BYTES_MAX])
{
    return encode(rep_body_row(), body, out, REP_BODY_BYTES_MAX);
}

uint32_t rep_pull_encode(const struct rep_pull *pull, uint8_t out[REP_PULL_BYTES_MAX])
{
    return encode(rep_pull_row(), pull, out, REP_PULL_BYTES_MAX);
}

uint32_t rep_answer_encode(const struct rep_answer *answer, uint8_t out[REP_BODY_BYTES_MAX])
{
    return encode(rep_answer_row(), answer, out, REP_BODY_BYTES_MAX);
}

uint32_t rep_attached_encode(const struct rep_attached *attached,
                             uint8_t out[REP_ATTACHED_BYTES_MAX])
{
    struct rep_granted granted = {{attached->grant.data, attached->grant.bytes},
                                  attached->load_bytes};
    return encode(rep_granted_row(), &granted, out, REP_ATTACHED_BYTES_MAX);
}

leat_err rep_attached_decode(const void *bytes, size_t count, struct rep_attached *out)
{
    struct rep_granted granted;
    if (rep_granted_decode(bytes, count, &granted) != LEAT_OK ||
        granted.grant.bytes > sizeof out->grant.data)
        return LEAT_E_INVALID;
    out->grant.bytes = granted.grant.bytes;
    memcpy(out->grant.data, granted.grant.data, granted.grant.bytes);
    out->load_bytes = granted.load_bytes;
    return LEAT_OK;
}

uint32_t rep_pairs_encode(const struct rep_pair *pairs, uint32_t count, uint8_t *out,
                          size_t out_bytes)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, out_bytes);
    rep_settle_all_write(&writer, count);
    for (uint32_t i = 0; i < count; i++)
        rep_pair_write(&writer, &pairs[i]);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}

leat_err rep_pairs_decode(const void *bytes, size_t count, struct rep_pair *out,
                          uint32_t *out_count)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    uint32_t rows = rep_settle_all_read(&reader);
    if (rows > LEAT_REP_BATCH_MAX) return LEAT_E_TOO_LARGE;
    for (uint32_t i = 0; i < rows && !reader.failed; i++)
        rep_pair_read(&reader, &out[i]);
    *out_count = rows;
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}
