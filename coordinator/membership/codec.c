/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's messages as frames: docs/cluster-protocol.md, kind 273.
 *
 * [version, type, from, to, ...]; entries follow as payload: [u32 bytes, u32 type, u64 term] and
 * the bytes, for each. Snapshots travel in chunks of their own (membership/install.c). */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "coordinator/membership/messages.h"

enum { CODEC_VERSION = 1, ENTRY_HEADER_BYTES = 16 };

size_t co_message_payload_bytes(const struct raft_message *message)
{
    if (message->type != RAFT_APPEND_ENTRIES) return 0;
    const struct raft_append_entries *append = &message->append_entries;
    size_t bytes = 0;
    for (unsigned i = 0; i < append->n_entries; i++)
        bytes += ENTRY_HEADER_BYTES + append->entries[i].buf.len;
    return bytes;
}

void co_message_payload(const struct raft_message *message, uint8_t *out)
{
    const struct raft_append_entries *append = &message->append_entries;
    for (unsigned i = 0; i < append->n_entries; i++) {
        const struct raft_entry *entry = &append->entries[i];
        leat_put_le32(out, (uint32_t)entry->buf.len);
        leat_put_le32(out + 4, (uint32_t)entry->type);
        leat_put_le64(out + 8, entry->term);
        if (entry->buf.len) memcpy(out + ENTRY_HEADER_BYTES, entry->buf.base, entry->buf.len);
        out += ENTRY_HEADER_BYTES + entry->buf.len;
    }
}

static void head_write(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message, uint32_t fields)
{
    leat_msg_write_array(writer, 4 + fields);
    leat_msg_write_u64(writer, CODEC_VERSION);
    leat_msg_write_u64(writer, (uint64_t)message->type);
    leat_msg_write_u64(writer, from);
    leat_msg_write_u64(writer, message->server_id);
}

void co_message_encode(struct leat_msg_writer *writer, uint64_t from,
                       const struct raft_message *message)
{
    switch (message->type) {
    case RAFT_APPEND_ENTRIES: {
        const struct raft_append_entries *it = &message->append_entries;
        head_write(writer, from, message, 6);
        leat_msg_write_u64(writer, it->version);
        leat_msg_write_u64(writer, it->term);
        leat_msg_write_u64(writer, it->prev_log_index);
        leat_msg_write_u64(writer, it->prev_log_term);
        leat_msg_write_u64(writer, it->leader_commit);
        leat_msg_write_u64(writer, it->n_entries);
        break;
    }
    case RAFT_APPEND_ENTRIES_RESULT: {
        const struct raft_append_entries_result *it = &message->append_entries_result;
        head_write(writer, from, message, 6);
        leat_msg_write_u64(writer, it->version);
        leat_msg_write_u64(writer, it->term);
        leat_msg_write_u64(writer, it->rejected);
        leat_msg_write_u64(writer, it->last_log_index);
        leat_msg_write_u64(writer, it->features);
        leat_msg_write_u64(writer, it->capacity);
        break;
    }
    case RAFT_REQUEST_VOTE: {
        const struct raft_request_vote *it = &message->request_vote;
        head_write(writer, from, message, 7);
        leat_msg_write_u64(writer, it->version);
        leat_msg_write_u64(writer, it->term);
        leat_msg_write_u64(writer, it->candidate_id);
        leat_msg_write_u64(writer, it->last_log_index);
        leat_msg_write_u64(writer, it->last_log_term);
        leat_msg_write_bool(writer, it->disrupt_leader);
        leat_msg_write_bool(writer, it->pre_vote);
        break;
    }
    case RAFT_REQUEST_VOTE_RESULT: {
        const struct raft_request_vote_result *it = &message->request_vote_result;
        head_write(writer, from, message, 6);
        leat_msg_write_u64(writer, it->version);
        leat_msg_write_u64(writer, it->term);
        leat_msg_write_bool(writer, it->vote_granted);
        leat_msg_write_bool(writer, it->pre_vote);
        leat_msg_write_u64(writer, it->features);
        leat_msg_write_u64(writer, it->capacity);
        break;
    }
    case RAFT_TIMEOUT_NOW: {
        const struct raft_timeout_now *it = &message->timeout_now;
        head_write(writer, from, message, 4);
        leat_msg_write_u64(writer, it->version);
        leat_msg_write_u64(writer, it->term);
        leat_msg_write_u64(writer, it->last_log_index);
        leat_msg_write_u64(writer, it->last_log_term);
        break;
    }
    case RAFT_INSTALL_SNAPSHOT: /* membership/install.c */
        LEAT_ASSERT(false);
    }
    LEAT_ASSERT(!writer->overflow);
}

/* ---- in ---- */

/* First the lengths, so that nothing is allocated for a count that the payload does not have. */
static bool entries_fit(const struct leat_frame *frame, uint64_t count, size_t *out_bytes)
{
    size_t at = 0, bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (frame->payload_bytes - at < ENTRY_HEADER_BYTES) return false;
        uint32_t length = leat_get_le32(frame->payload + at);
        uint32_t type = leat_get_le32(frame->payload + at + 4);
        at += ENTRY_HEADER_BYTES;
        if (length > frame->payload_bytes - at || length > LEAT_RAFT_ENTRY_BYTES_MAX ||
            type < RAFT_COMMAND || type > RAFT_CHANGE ||
            (type == RAFT_CHANGE && !leat_raft_configuration_valid(frame->payload + at, length)))
            return false;
        at += length;
        bytes += length;
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
        uint32_t length = leat_get_le32(at);
        entries[i] = (struct raft_entry){.term = leat_get_le64(at + 8),
                                         .type = (enum raft_entry_type)leat_get_le32(at + 4),
                                         .buf = {.base = to, .len = length},
                                         .batch = batch};
        memcpy(to, at + ENTRY_HEADER_BYTES, length);
        to += length;
        at += ENTRY_HEADER_BYTES + length;
    }
    append->entries = entries;
    return LEAT_OK;
}

static uint16_t u16_read(struct leat_msg_reader *reader)
{
    uint32_t value = leat_msg_read_u32(reader);
    if (value > UINT16_MAX) reader->failed = true;
    return (uint16_t)value;
}

static uint8_t u8_read(struct leat_msg_reader *reader)
{
    uint32_t value = leat_msg_read_u32(reader);
    if (value > UINT8_MAX) reader->failed = true;
    return (uint8_t)value;
}

static void fields_read(struct leat_msg_reader *reader, struct raft_message *out)
{
    switch (out->type) {
    case RAFT_APPEND_ENTRIES:
        out->append_entries.version = u8_read(reader);
        out->append_entries.term = leat_msg_read_u64(reader);
        out->append_entries.prev_log_index = leat_msg_read_u64(reader);
        out->append_entries.prev_log_term = leat_msg_read_u64(reader);
        out->append_entries.leader_commit = leat_msg_read_u64(reader);
        out->append_entries.n_entries = leat_msg_read_u32(reader);
        break;
    case RAFT_APPEND_ENTRIES_RESULT:
        out->append_entries_result.version = u8_read(reader);
        out->append_entries_result.term = leat_msg_read_u64(reader);
        out->append_entries_result.rejected = leat_msg_read_u64(reader);
        out->append_entries_result.last_log_index = leat_msg_read_u64(reader);
        out->append_entries_result.features = u16_read(reader);
        out->append_entries_result.capacity = u16_read(reader);
        break;
    case RAFT_REQUEST_VOTE:
        out->request_vote.version = u8_read(reader);
        out->request_vote.term = leat_msg_read_u64(reader);
        out->request_vote.candidate_id = leat_msg_read_u64(reader);
        out->request_vote.last_log_index = leat_msg_read_u64(reader);
        out->request_vote.last_log_term = leat_msg_read_u64(reader);
        out->request_vote.disrupt_leader = leat_msg_read_bool(reader);
        out->request_vote.pre_vote = leat_msg_read_bool(reader);
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        out->request_vote_result.version = u8_read(reader);
        out->request_vote_result.term = leat_msg_read_u64(reader);
        out->request_vote_result.vote_granted = leat_msg_read_bool(reader);
        out->request_vote_result.pre_vote = leat_msg_read_bool(reader);
        out->request_vote_result.features = u16_read(reader);
        out->request_vote_result.capacity = u16_read(reader);
        break;
    case RAFT_TIMEOUT_NOW:
        out->timeout_now.version = u8_read(reader);
        out->timeout_now.term = leat_msg_read_u64(reader);
        out->timeout_now.last_log_index = leat_msg_read_u64(reader);
        out->timeout_now.last_log_term = leat_msg_read_u64(reader);
        break;
    default:
        reader->failed = true;
    }
}

leat_err co_message_decode(const struct leat_frame *frame, struct raft_message *out,
                           uint64_t *out_to)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    memset(out, 0, sizeof *out);
    (void)leat_msg_read_array(&reader);
    uint32_t version = leat_msg_read_u32(&reader);
    out->type = (enum raft_message_type)leat_msg_read_u32(&reader);
    out->server_id = leat_msg_read_u64(&reader);
    uint64_t to = leat_msg_read_u64(&reader);
    if (!reader.failed) fields_read(&reader, out);
    if (!leat_msg_read_done(&reader) || version != CODEC_VERSION || out->server_id == 0)
        return LEAT_E_INVALID;
    if (out->type == RAFT_APPEND_ENTRIES) {
        leat_err rc = entries_decode(frame, &out->append_entries);
        if (rc != LEAT_OK) return rc;
    }
    *out_to = to;
    return LEAT_OK;
}
