/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine's tables as bytes, and back: bodies.def has the fields. */
#include "coordinator/metadata/private.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "wire/row.h"

enum {
    SNAPSHOT_HEAD_BYTES = 256 + 5 * LEAT_GONE_NAMES_MAX,
    SNAPSHOT_NODE_BYTES =
        LEAT_NODE_NAME_BYTES_MAX + 3 * LEAT_ADDRESS_BYTES_MAX + LEAT_RACK_BYTES_MAX + 96,
    SNAPSHOT_STREAM_BYTES = LEAT_STREAM_NAME_BYTES_MAX + 160,
    SNAPSHOT_STREAMLET_BYTES = 24,
    SNAPSHOT_SESSION_BYTES = 24,
    SNAPSHOT_OUTCOME_BYTES = 64,
    SNAPSHOT_LOG_BYTES = 112,
};

static size_t snapshot_bytes_max(const struct leat_machine *machine)
{
    size_t bytes = SNAPSHOT_HEAD_BYTES + machine->staged_bytes;
    bytes += machine->voter_count * sizeof machine->voters[0];
    bytes += (size_t)machine->node_count * SNAPSHOT_NODE_BYTES;
    bytes += (size_t)machine->session_count * SNAPSHOT_SESSION_BYTES;
    bytes += (size_t)machine->outcome_count * SNAPSHOT_OUTCOME_BYTES;
    for (uint32_t i = 0; i < machine->stream_count; i++)
        bytes += SNAPSHOT_STREAM_BYTES +
                 (size_t)machine->streams[i].desc->streamlet_count * SNAPSHOT_STREAMLET_BYTES +
                 (size_t)machine->streams[i].log_count * SNAPSHOT_LOG_BYTES;
    return bytes;
}

static void log_write(struct leat_msg_writer *writer, const struct leat_machine_log *log)
{
    enum { STAMP = 3, JUMPED_TO = 9, BEGAN = 14, ENDED = 6, ENDED_JUMPED_TO = 7 };
    const struct leat_log_record *record = &log->record;
    const struct leat_tail_record *began = record->opened ? leat_log_decided(record) : NULL;
    bool more = record->heard != 0 || log->jumped_to != 0;
    struct leat_kept_log kept = {.log = *log};
    if (record->opened) {
        kept.fields = began ? BEGAN : more ? JUMPED_TO : STAMP;
        leat_kept_opened_write(writer, &kept);
    } else {
        kept.fields = log->jumped_to ? ENDED_JUMPED_TO : ENDED;
        leat_kept_ended_write(writer, &kept);
    }
}

static void stream_write(struct leat_msg_writer *writer, const struct leat_machine_stream *stream)
{
    const struct leat_stream_desc *desc = stream->desc;
    const struct leat_kept_stream kept = {
        .name = {desc->name, (uint32_t)strlen(desc->name)},
        .settings = desc->settings,
        .id = desc->id,
        .streamlet_count = desc->streamlet_count,
        .log_count = stream->log_count,
        .remade = desc->remade,
    };
    leat_kept_stream_write(writer, &kept);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        const struct leat_kept_streamlet streamlet = {
            desc->streamlets[i].owner, desc->streamlets[i].epoch.v,
            stream->owners[i] == LEAT_OWNER_NONE ? 0 : stream->owners[i] + 1u};
        leat_kept_streamlet_write(writer, &streamlet);
    }
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_stream, &kept, streamlet_count);
    for (uint32_t i = 0; i < stream->log_count; i++)
        log_write(writer, &stream->logs[i]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_stream, &kept, log_count);
}

/* Of a ring the oldest is written first. */
static uint32_t ring_first(uint32_t count, uint32_t next, uint32_t most)
{
    return count < most ? 0 : next;
}

static void machine_write(struct leat_msg_writer *writer, const struct leat_machine *machine)
{
    struct leat_kept_machine kept = {
        .next_incarnation = machine->next_incarnation,
        .changes = machine->changes,
        .unowned_changes = machine->unowned_changes,
        .staged_attempt = machine->staged_attempt,
        .next_producer_id = machine->next_producer_id,
        .staged = {machine->staged, (uint32_t)machine->staged_bytes},
        .next_stream_id = machine->next_stream_id,
        .next_epoch = machine->next_epoch,
        .staged_next = machine->staged_next,
        .node_count = machine->node_count,
        .stream_count = machine->stream_count,
        .session_count = machine->session_count,
        .outcome_count = machine->outcome_count,
        .gone_count = machine->gone_count,
        .voter_count = machine->voter_count,
        .formed = machine->formed,
    };
    memcpy(kept.cluster_id, machine->cluster_id, sizeof kept.cluster_id);
    leat_kept_machine_write(writer, &kept);
    for (uint32_t i = 0; i < machine->node_count; i++)
        leat_kept_node_write(writer, &machine->nodes[i]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_machine, &kept, node_count);
    for (uint32_t i = 0; i < machine->stream_count; i++)
        stream_write(writer, &machine->streams[i]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_machine, &kept, stream_count);
    for (uint32_t i = 0; i < machine->session_count; i++)
        leat_kept_session_write(writer, &machine->sessions[i]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_machine, &kept, session_count);
    uint32_t first = ring_first(machine->outcome_count, machine->outcome_next, LEAT_OUTCOMES_MAX);
    for (uint32_t i = 0; i < machine->outcome_count; i++)
        leat_kept_outcome_write(writer, &machine->outcomes[(first + i) % LEAT_OUTCOMES_MAX]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_machine, &kept, outcome_count);
    first = ring_first(machine->gone_count, machine->gone_next, LEAT_GONE_NAMES_MAX);
    for (uint32_t i = 0; i < machine->gone_count; i++)
        leat_msg_write_u64(writer, machine->gone_names[(first + i) % LEAT_GONE_NAMES_MAX]);
    LEAT_MSG_WRITE_BEHIND(writer, leat_kept_machine, &kept, gone_count);
    for (uint32_t i = 0; i < machine->voter_count; i++)
        leat_kept_voter_write(writer, &machine->voters[i]);
}

leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count)
{
    size_t capacity = snapshot_bytes_max(machine);
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, capacity, 1);
    if (!bytes) return LEAT_E_NO_MEMORY;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, capacity);
    machine_write(&writer, machine);
    LEAT_ASSERT(!writer.overflow); /* the bounds above are upper ones */
    *out_bytes = bytes;
    *out_count = writer.used;
    return LEAT_OK;
}

static void log_read(struct leat_msg_reader *reader, struct leat_machine_log *out)
{
    struct leat_msg_reader ahead = *reader;
    uint32_t fields = leat_msg_read_array(&ahead);
    struct leat_kept_log kept;
    const bool opened = fields != 6 && fields != 7; /* leat_kept_ended has so many */
    if (opened)
        (void)leat_kept_opened_read(reader, &kept);
    else
        (void)leat_kept_ended_read(reader, &kept);
    *out = kept.log;
    out->record.opened = opened;
}

static void streamlet_read(const struct leat_machine *machine, struct leat_msg_reader *reader,
                           struct leat_stream_desc *desc, uint32_t i, uint16_t *out_owner)
{
    struct leat_kept_streamlet kept;
    (void)leat_kept_streamlet_read(reader, &kept);
    if (kept.node > machine->node_count) reader->failed = true;
    desc->streamlets[i].owner = kept.owner;
    desc->streamlets[i].epoch.v = kept.epoch;
    *out_owner = kept.node == 0 || reader->failed ? LEAT_OWNER_NONE : (uint16_t)(kept.node - 1);
}

static leat_err stream_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    struct leat_kept_stream kept;
    uint32_t left = leat_kept_stream_read(reader, &kept);
    const uint32_t id = kept.id, streamlets = kept.streamlet_count;
    const struct leat_msg_string name = kept.name;
    const struct leat_stream_settings settings = kept.settings;
    uint32_t last = machine->stream_count ? machine->streams[machine->stream_count - 1].id : 0;
    if (reader->failed || id <= last || streamlets != settings.streamlets || streamlets == 0 ||
        settings.logs == 0 || settings.logs > LEAT_LOGS_MAX || streamlets > LEAT_STREAMLETS_MAX ||
        leat_stream_name_check(name.text, name.bytes, NULL) != LEAT_OK ||
        leat_machine_name_find(machine, name.text, name.bytes))
        return LEAT_E_CORRUPT;
    struct leat_stream_desc *desc = leat_machine_desc_create(id, name.text, name.bytes, &settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    struct leat_machine_log *logs;
    leat_err rc = leat_machine_stream_add(machine, desc, &logs);
    if (rc != LEAT_OK) {
        leat_stream_desc_unref(desc);
        return rc;
    }
    uint16_t *owners = machine->streams[machine->stream_count - 1].owners;
    for (uint32_t i = 0; i < streamlets && !reader->failed; i++)
        streamlet_read(machine, reader, desc, i, &owners[i]);
    for (uint32_t i = 0; i < streamlets && !reader->failed; i++) {
        if (owners[i] == LEAT_OWNER_NONE) continue;
        machine->nodes[owners[i]].info.streamlets++;
        machine->nodes[owners[i]].logs += settings.logs;
    }
    left = LEAT_MSG_READ_BEHIND(reader, leat_kept_stream, &kept, streamlet_count, left);
    if (reader->failed || kept.log_count != streamlets * settings.logs) return LEAT_E_CORRUPT;
    for (uint32_t i = 0; i < kept.log_count; i++)
        log_read(reader, &logs[i]);
    (void)LEAT_MSG_READ_BEHIND(reader, leat_kept_stream, &kept, log_count, left);
    desc->remade = kept.remade;
    return reader->failed ? LEAT_E_CORRUPT : LEAT_OK;
}

/* How many streamlets a node owns is counted anew with the streams, whatever the bytes say. */
static bool nodes_read(struct leat_machine *machine, struct leat_msg_reader *reader, uint32_t count)
{
    if (reader->failed || count > LEAT_NODES_MAX) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_node_info *info = &machine->nodes[i].info;
        (void)leat_kept_node_read(reader, &machine->nodes[i]);
        if (reader->failed || info->state < LEAT_NODE_UP) return false;
        if (info->crashed && info->state == LEAT_NODE_UP) return false;
        info->streamlets = 0;
        machine->node_count++;
    }
    return true;
}

static leat_err sessions_read(struct leat_machine *machine, struct leat_msg_reader *reader,
                              uint32_t count)
{
    if (reader->failed || count > LEAT_SESSIONS_MAX) return LEAT_E_CORRUPT;
    for (uint32_t i = 0; i < count; i++)
        (void)leat_kept_session_read(reader, &machine->sessions[i]);
    machine->session_count = count;
    return reader->failed ? LEAT_E_CORRUPT : LEAT_OK;
}

static leat_err outcomes_read(struct leat_machine *machine, struct leat_msg_reader *reader,
                              uint32_t count)
{
    if (reader->failed || count > LEAT_OUTCOMES_MAX) return LEAT_E_CORRUPT;
    if (count == 0) return LEAT_OK;
    machine->outcomes =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, LEAT_OUTCOMES_MAX, sizeof *machine->outcomes);
    if (!machine->outcomes) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        (void)leat_kept_outcome_read(reader, &machine->outcomes[i]);
    machine->outcome_count = count;
    machine->outcome_next = count % LEAT_OUTCOMES_MAX;
    return reader->failed ? LEAT_E_CORRUPT : LEAT_OK;
}

static leat_err staged_read(struct leat_machine *machine, const struct leat_kept_machine *kept)
{
    machine->staged_attempt = kept->staged_attempt;
    machine->staged_next = kept->staged_next;
    if (kept->staged.bytes == 0) return LEAT_OK;
    machine->staged = leat_mem_calloc(LEAT_MEM_ROWS, kept->staged.bytes, 1);
    if (!machine->staged) return LEAT_E_NO_MEMORY;
    machine->staged_capacity = machine->staged_bytes = kept->staged.bytes;
    memcpy(machine->staged, kept->staged.data, kept->staged.bytes);
    return LEAT_OK;
}

static bool gone_read(struct leat_machine *machine, struct leat_msg_reader *reader, uint32_t count)
{
    if (reader->failed || count > LEAT_GONE_NAMES_MAX) return false;
    for (uint32_t i = 0; i < count; i++)
        machine->gone_names[i] = leat_msg_read_u32(reader);
    machine->gone_count = count;
    machine->gone_next = count % LEAT_GONE_NAMES_MAX;
    return !reader->failed;
}

static bool voters_read(struct leat_machine *machine, struct leat_msg_reader *reader,
                        uint32_t count)
{
    if (reader->failed || count > LEAT_VOTERS_MAX) return false;
    for (uint32_t i = 0; i < count; i++)
        (void)leat_kept_voter_read(reader, &machine->voters[i]);
    machine->voter_count = count;
    return !reader->failed;
}

/* What stands before the first list. */
static void head_take(struct leat_machine *machine, const struct leat_kept_machine *kept)
{
    machine->formed = kept->formed;
    memcpy(machine->cluster_id, kept->cluster_id, sizeof machine->cluster_id);
    machine->next_stream_id = kept->next_stream_id;
    machine->next_epoch = kept->next_epoch;
    machine->next_incarnation = kept->next_incarnation;
    machine->next_producer_id = kept->next_producer_id;
    machine->changes = kept->changes;
}

static leat_err machine_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    struct leat_kept_machine kept;
    uint32_t left = leat_kept_machine_read(reader, &kept);
    head_take(machine, &kept);
    if (!nodes_read(machine, reader, kept.node_count)) return LEAT_E_CORRUPT;
    left = LEAT_MSG_READ_BEHIND(reader, leat_kept_machine, &kept, node_count, left);
    for (uint32_t i = 0; i < kept.stream_count && !reader->failed; i++) {
        leat_err rc = stream_read(machine, reader);
        if (rc != LEAT_OK) return rc;
    }
    left = LEAT_MSG_READ_BEHIND(reader, leat_kept_machine, &kept, stream_count, left);
    leat_err rc = reader->failed ? LEAT_E_CORRUPT : staged_read(machine, &kept);
    if (rc == LEAT_OK) rc = sessions_read(machine, reader, kept.session_count);
    left = LEAT_MSG_READ_BEHIND(reader, leat_kept_machine, &kept, session_count, left);
    if (rc == LEAT_OK) rc = outcomes_read(machine, reader, kept.outcome_count);
    if (rc != LEAT_OK) return rc; /* also where memory lacks: what follows was not come to */
    left = LEAT_MSG_READ_BEHIND(reader, leat_kept_machine, &kept, outcome_count, left);
    machine->unowned_changes = kept.unowned_changes;
    if (!gone_read(machine, reader, kept.gone_count)) return LEAT_E_CORRUPT;
    (void)LEAT_MSG_READ_BEHIND(reader, leat_kept_machine, &kept, gone_count, left);
    if (!voters_read(machine, reader, kept.voter_count)) return LEAT_E_CORRUPT;
    return leat_msg_read_done(reader) ? LEAT_OK : LEAT_E_CORRUPT;
}

leat_err leat_machine_restore(struct leat_machine *machine, const uint8_t *bytes, size_t count)
{
    leat_machine_fini(machine);
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    leat_err rc = machine_read(machine, &reader);
    if (rc != LEAT_OK) leat_machine_fini(machine);
    return rc;
}
