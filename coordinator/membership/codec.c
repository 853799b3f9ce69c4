/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages as frames (docs/cluster-protocol.md, kind 273), and what comes of bodies.def.
 *
 * Entries follow a message as payload: [u32 bytes, u32 type, u64 term] and the bytes, for each.
 * Snapshots travel in chunks of their own (membership/install.c). */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "coordinator/membership/messages.h"

#define LEAT_ROWS "coordinator/membership/bodies.def"
#include "wire/rows_make.h"

enum { CODEC_VERSION = 1 };

size_t co_message_payload_bytes(const struct raft_message *message)
{
    if (message->type != RAFT_APPEND_ENTRIES) return 0;
    const struct raft_append_entries *append = &message->append_entries;
    size_t bytes = 0;
    for (unsigned i = 0; i < append->n_entries; i++)
        bytes += CO_RAFT_HEAD_BYTES + append->entries[i].buf.len;
    return bytes;
}

void co_message_payload(const struct raft_message *message, uint8_t *out)
{
    const struct raft_append_entries *append = &message->append_entries;
    for (unsigned i = 0; i < append->n_entries; i++) {
        const struct raft_entry *entry = &append->entries[i];
        co_entry_head_write(
            out, CO_RAFT_HEAD_BYTES,
            &(struct co_entry_head){(uint32_t)entry->buf.len, entry->type, entry->term});
        out += CO_RAFT_HEAD_BYTES;
        if (entry->buf.len) memcpy(out, entry->buf.base, entry->buf.len);
        out += entry->buf.len;
    }
}

static const struct leat_msg_row *row_of(uint32_t type)
{
    static const leat_msg_row_fn rows[] = {
        [RAFT_APPEND_ENTRIES] = co_append_entries_row,
        [RAFT_APPEND_ENTRIES_RESULT] = co_append_entries_result_row,
        [RAFT_REQUEST_VOTE] = co_request_vote_row,
        [RAFT_REQUEST_VOTE_RESULT] = co_request_vote_result_row,
        [RAFT_TIMEOUT_NOW] = co_timeout_now_row,
    };
    bool known = type < sizeof rows / sizeof rows[0] && rows[type];
    return known ? rows[type]() : NULL; /* a snapshot: membership/install.c */
}

void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message)
{
    const struct leat_msg_row *row = row_of(message->type);
    LEAT_ASSERT(row);
    struct co_raft_message body = {CODEC_VERSION, message->type, from, message->server_id,
                                   *message};
    leat_msg_row_write(writer, row, &body);
    LEAT_ASSERT(!writer->overflow);
}

/* ---- in ---- */

/* First the lengths, so that nothing is allocated for a count that the payload does not have. */
static bool entries_fit(const struct leat_frame *frame, uint64_t count, size_t *out_bytes)
{
    size_t at = 0, bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (frame->payload_bytes - at < CO_RAFT_HEAD_BYTES) return false;
        struct co_entry_head head = co_entry_head_read(frame->payload + at, CO_RAFT_HEAD_BYTES);
        at += CO_RAFT_HEAD_BYTES;
        if (head.bytes > frame->payload_bytes - at || head.bytes > LEAT_RAFT_ENTRY_BYTES_MAX ||
            head.type < RAFT_COMMAND || head.type > RAFT_CHANGE ||
            (head.type == RAFT_CHANGE &&
             !leat_raft_configuration_valid(frame->payload + at, head.bytes)))
            return false;
        at += head.bytes;
        bytes += head.bytes;
    }
    *out_bytes = bytes;
    return at == frame->payload_bytes;
}

static leat_err entries_decode(const struct leat_frame *frame, struct raft_append_entries *append)
{
    size_t bytes = 0;
    append->entries = NULL;
    if (append->n_entries == 0) return frame->payload_bytes == 0 ? LEAT_OK : LEAT_E_INVALID;
    if (!entries_fit(frame, append->n_entries, &bytes)) return LEAT_E_INVALID;
    struct raft_entry *entries = raft_calloc(append->n_entries, sizeof *entries);
    uint8_t *batch = raft_malloc(bytes + 1), *to = batch; /* never 0 */
    if (!entries || !batch) {
        raft_free(entries);
        raft_free(batch);
        return LEAT_E_NO_MEMORY;
    }
    const uint8_t *at = frame->payload;
    for (unsigned i = 0; i < append->n_entries; i++) {
        struct co_entry_head head = co_entry_head_read(at, CO_RAFT_HEAD_BYTES);
        entries[i] = (struct raft_entry){.term = head.term,
                                         .type = (enum raft_entry_type)head.type,
                                         .buf = {.base = to, .len = head.bytes},
                                         .batch = batch};
        memcpy(to, at + CO_RAFT_HEAD_BYTES, head.bytes);
        to += head.bytes;
        at += CO_RAFT_HEAD_BYTES + head.bytes;
    }
    append->entries = entries;
    return LEAT_OK;
}

leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to)
{
    struct co_raft_message body;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)co_raft_message_read(&reader, &body);
    const struct leat_msg_row *row = reader.failed ? NULL : row_of(body.type);
    if (!row || !leat_msg_row_decode(frame->control, frame->control_bytes, row, &body) ||
        body.version != CODEC_VERSION || body.from == 0)
        return LEAT_E_INVALID;
    *out = body.message;
    out->type = (enum raft_message_type)body.type;
    out->server_id = body.from;
    if (out->type == RAFT_APPEND_ENTRIES) {
        leat_err rc = entries_decode(frame, &out->append_entries);
        if (rc != LEAT_OK) return rc;
    }
    *out_to = body.to;
    return LEAT_OK;
}
