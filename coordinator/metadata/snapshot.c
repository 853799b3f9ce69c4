/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine's tables as bytes and back.
 *
 * [version, formed, cluster id, next stream, next epoch, next incarnation, next producer id,
 *  changes, [node...], [stream...], staged attempt, staged next, staged rows, [session...],
 *   [outcome...], unowned changes, [mark of a deleted name...]]
 * node    = [name, address, incarnation, cores, streamlets, node address, rack, id, state, draining,
 *            memory bytes, changes, crashed, kafka address, boot, host, logs most]
 * stream  = [id, name, settings, [[owner, epoch, node + 1]...], [log...], remade]
 * log     = [epoch, stamp epoch, stamp version] when opened, and then, if any of it is known, segment,
 *           bytes, crc, next offset, heard, jumped to, and then, if it is known where it began: segment,
 *           bytes, crc, next offset, jumped; else [epoch, segment, bytes, crc, next offset, jumped] and,
 *           if ever, jumped to
 * session = [session, sequence]
 * outcome = [session, sequence, incarnation, first id, rc, stream, ids, epoch], oldest first
 *
 * In the order of ids, so that equal tables give equal bytes. */
#include "coordinator/metadata/machine.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum {
    SNAPSHOT_FIELDS = 18,
    NODE_FIELDS = 17,
    STREAM_FIELDS = 6,
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
    const struct leat_log_record *record = &log->record;
    const struct leat_tail_record *began = record->opened ? leat_log_decided(record) : NULL;
    bool more = record->heard != 0 || log->jumped_to != 0 || began;
    uint32_t fields = record->opened ? began ? 14 : more ? 9 : 3 : log->jumped_to ? 7 : 6;
    leat_msg_write_array(writer, fields);
    leat_msg_write_u64(writer, log->epoch.v);
    if (record->opened) {
        leat_msg_write_u64(writer, record->stamp_epoch.v);
        leat_msg_write_u64(writer, record->stamp_version);
        if (!more) return;
    }
    leat_tail_record_write(writer, &record->tail);
    if (record->opened)
        leat_msg_write_u64(writer, record->heard);
    else
        leat_msg_write_bool(writer, record->tail.jumped);
    if (fields != 6) leat_msg_write_u64(writer, log->jumped_to);
    if (!began) return;
    leat_tail_record_write(writer, began);
    leat_msg_write_bool(writer, began->jumped);
}

static void stream_write(struct leat_msg_writer *writer, const struct leat_machine_stream *stream)
{
    const struct leat_stream_desc *desc = stream->desc;
    leat_msg_write_array(writer, STREAM_FIELDS);
    leat_msg_write_u64(writer, desc->id);
    leat_msg_write_string(writer, desc->name, strlen(desc->name));
    leat_msg_settings_write(writer, &desc->settings);
    leat_msg_write_array(writer, desc->streamlet_count);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        leat_msg_write_array(writer, 3);
        leat_msg_write_u64(writer, desc->streamlets[i].owner);
        leat_msg_write_u64(writer, desc->streamlets[i].epoch.v);
        leat_msg_write_u64(writer,
                           stream->owners[i] == LEAT_OWNER_NONE ? 0 : stream->owners[i] + 1u);
    }
    leat_msg_write_array(writer, stream->log_count);
    for (uint32_t i = 0; i < stream->log_count; i++)
        log_write(writer, &stream->logs[i]);
    leat_msg_write_bool(writer, desc->remade);
}

static void node_write(struct leat_msg_writer *writer, const struct leat_machine_node *node)
{
    const struct leat_node_info *info = &node->info;
    leat_msg_write_array(writer, NODE_FIELDS);
    leat_msg_write_string(writer, info->name, strlen(info->name));
    leat_msg_write_string(writer, info->address, strlen(info->address));
    leat_msg_write_u64(writer, info->incarnation);
    leat_msg_write_u64(writer, info->cores);
    leat_msg_write_u64(writer, info->streamlets);
    leat_msg_write_string(writer, info->node_address, strlen(info->node_address));
    leat_msg_write_string(writer, info->rack, strlen(info->rack));
    leat_msg_write_bin(writer, node->id, sizeof node->id);
    leat_msg_write_u64(writer, (uint64_t)info->state);
    leat_msg_write_bool(writer, info->draining);
    leat_msg_write_u64(writer, info->memory_bytes);
    leat_msg_write_u64(writer, node->changes);
    leat_msg_write_bool(writer, info->crashed);
    leat_msg_write_string(writer, info->kafka_address, strlen(info->kafka_address));
    leat_msg_write_u64(writer, node->boot);
    leat_msg_write_string(writer, info->host, strlen(info->host));
    leat_msg_write_u64(writer, info->logs_most);
}

static void requests_write(struct leat_msg_writer *writer, const struct leat_machine *machine)
{
    leat_msg_write_array(writer, machine->session_count);
    for (uint32_t i = 0; i < machine->session_count; i++) {
        leat_msg_write_array(writer, 2);
        leat_msg_write_u64(writer, machine->sessions[i].session);
        leat_msg_write_u64(writer, machine->sessions[i].sequence);
    }
    uint32_t count = machine->outcome_count;
    uint32_t first = count < LEAT_OUTCOMES_MAX ? 0 : machine->outcome_next;
    leat_msg_write_array(writer, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_machine_outcome *outcome =
            &machine->outcomes[(first + i) % LEAT_OUTCOMES_MAX];
        leat_msg_write_array(writer, 8);
        leat_msg_write_u64(writer, outcome->session);
        leat_msg_write_u64(writer, outcome->sequence);
        leat_msg_write_u64(writer, outcome->incarnation);
        leat_msg_write_i64(writer, outcome->first_id);
        leat_msg_write_u64(writer, outcome->rc);
        leat_msg_write_u64(writer, outcome->stream_id);
        leat_msg_write_u64(writer, outcome->id_count);
        leat_msg_write_u64(writer, outcome->epoch);
    }
}

static void voters_write(struct leat_msg_writer *writer, const struct leat_machine *machine)
{
    leat_msg_write_array(writer, machine->voter_count);
    for (uint32_t i = 0; i < machine->voter_count; i++) {
        const struct leat_machine_voter *voter = &machine->voters[i];
        leat_msg_write_array(writer, 2);
        leat_msg_write_string(writer, voter->address, strlen(voter->address));
        leat_msg_write_string(writer, voter->name, strlen(voter->name));
    }
}

static void gone_write(struct leat_msg_writer *writer, const struct leat_machine *machine)
{
    uint32_t count = machine->gone_count;
    uint32_t first = count < LEAT_GONE_NAMES_MAX ? 0 : machine->gone_next;
    leat_msg_write_array(writer, count);
    for (uint32_t i = 0; i < count; i++)
        leat_msg_write_u64(writer, machine->gone_names[(first + i) % LEAT_GONE_NAMES_MAX]);
}

leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count)
{
    size_t capacity = snapshot_bytes_max(machine);
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, capacity, 1);
    if (!bytes) return LEAT_E_NO_MEMORY;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, capacity);
    leat_msg_write_array(&writer, SNAPSHOT_FIELDS);
    leat_msg_write_u64(&writer, LEAT_SNAPSHOT_VERSION);
    leat_msg_write_bool(&writer, machine->formed);
    leat_msg_write_bin(&writer, machine->cluster_id, sizeof machine->cluster_id);
    leat_msg_write_u64(&writer, machine->next_stream_id);
    leat_msg_write_u64(&writer, machine->next_epoch);
    leat_msg_write_u64(&writer, machine->next_incarnation);
    leat_msg_write_i64(&writer, machine->next_producer_id);
    leat_msg_write_u64(&writer, machine->changes);
    leat_msg_write_array(&writer, machine->node_count);
    for (uint32_t i = 0; i < machine->node_count; i++)
        node_write(&writer, &machine->nodes[i]);
    leat_msg_write_array(&writer, machine->stream_count);
    for (uint32_t i = 0; i < machine->stream_count; i++)
        stream_write(&writer, &machine->streams[i]);
    leat_msg_write_u64(&writer, machine->staged_attempt);
    leat_msg_write_u64(&writer, machine->staged_next);
    leat_msg_write_bin(&writer, machine->staged, machine->staged_bytes);
    requests_write(&writer, machine);
    leat_msg_write_u64(&writer, machine->unowned_changes);
    gone_write(&writer, machine);
    voters_write(&writer, machine);
    LEAT_ASSERT(!writer.overflow); /* the bounds above are upper ones */
    *out_bytes = bytes;
    *out_count = writer.used;
    return LEAT_OK;
}

static void log_read(struct leat_msg_reader *reader, struct leat_machine_log *log)
{
    uint32_t fields = leat_msg_read_array(reader);
    log->epoch.v = leat_msg_read_u32(reader);
    bool opened_more = fields == 9 || fields == 14;
    if (fields == 3 || opened_more) {
        log->record.opened = true;
        log->record.stamp_epoch.v = leat_msg_read_u32(reader);
        log->record.stamp_version = leat_msg_read_u32(reader);
        if (!opened_more) return;
    }
    leat_tail_record_read(reader, &log->record.tail);
    if (log->record.opened)
        log->record.heard = leat_msg_read_u64(reader);
    else
        log->record.tail.jumped = leat_msg_read_bool(reader);
    if (fields == 7 || opened_more) log->jumped_to = leat_msg_read_u64(reader);
    if (fields == 14) {
        leat_tail_record_read(reader, &log->record.began);
        log->record.began.jumped = leat_msg_read_bool(reader);
    }
    if (fields != 6 && fields != 7 && !opened_more) reader->failed = true;
}

static void streamlet_read(const struct leat_machine *machine, struct leat_msg_reader *reader,
                           struct leat_stream_desc *desc, uint32_t i, uint16_t *out_owner)
{
    uint32_t fields = leat_msg_read_array(reader);
    desc->streamlets[i].owner = leat_msg_read_u64(reader);
    desc->streamlets[i].epoch.v = leat_msg_read_u32(reader);
    uint32_t owner = leat_msg_read_u32(reader);
    if (fields != 3 || owner > machine->node_count) reader->failed = true;
    *out_owner = owner == 0 || reader->failed ? LEAT_OWNER_NONE : (uint16_t)(owner - 1);
}

static leat_err stream_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t fields = leat_msg_read_array(reader);
    if (fields != STREAM_FIELDS) return LEAT_E_CORRUPT;
    uint32_t id = leat_msg_read_u32(reader);
    struct leat_msg_string name = leat_msg_read_string(reader);
    struct leat_stream_settings settings = {0};
    leat_msg_settings_read(reader, &settings);
    uint32_t streamlets = leat_msg_read_array(reader);
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
    for (uint32_t i = 0; i < streamlets && !reader->failed; i++)
        if (owners[i] != LEAT_OWNER_NONE) machine->nodes[owners[i]].logs += settings.logs;
    uint32_t log_count = leat_msg_read_array(reader);
    if (reader->failed || log_count != streamlets * settings.logs) return LEAT_E_CORRUPT;
    for (uint32_t i = 0; i < log_count; i++)
        log_read(reader, &logs[i]);
    desc->remade = leat_msg_read_bool(reader);
    return reader->failed ? LEAT_E_CORRUPT : LEAT_OK;
}

static bool text_read(struct leat_msg_reader *reader, char *out, size_t capacity)
{
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (reader->failed || text.bytes >= capacity) return false;
    if (text.bytes) memcpy(out, text.text, text.bytes);
    return true;
}

static bool node_read(struct leat_machine_node *node, struct leat_msg_reader *reader)
{
    struct leat_node_info *info = &node->info;
    uint32_t fields = leat_msg_read_array(reader);
    if (!text_read(reader, info->name, sizeof info->name) ||
        !text_read(reader, info->address, sizeof info->address))
        return false;
    info->incarnation = leat_msg_read_u64(reader);
    info->cores = leat_msg_read_u32(reader);
    info->streamlets = leat_msg_read_u64(reader);
    if (fields != NODE_FIELDS ||
        !text_read(reader, info->node_address, sizeof info->node_address) ||
        !text_read(reader, info->rack, sizeof info->rack))
        return false;
    struct leat_msg_string id = leat_msg_read_string(reader);
    uint32_t state = leat_msg_read_u32(reader);
    info->draining = leat_msg_read_bool(reader);
    info->memory_bytes = leat_msg_read_u64(reader);
    node->changes = leat_msg_read_u64(reader);
    info->crashed = leat_msg_read_bool(reader);
    if (!text_read(reader, info->kafka_address, sizeof info->kafka_address)) return false;
    node->boot = leat_msg_read_u64(reader);
    if (!text_read(reader, info->host, sizeof info->host)) return false;
    info->logs_most = leat_msg_read_u64(reader);
    if (reader->failed || id.bytes != sizeof node->id || state < LEAT_NODE_UP ||
        state > LEAT_NODE_GONE)
        return false;
    memcpy(node->id, id.text, sizeof node->id);
    info->state = (enum leat_node_state)state;
    return true;
}

static bool nodes_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || count > LEAT_NODES_MAX) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!node_read(&machine->nodes[i], reader)) return false;
        machine->node_count++;
    }
    return true;
}

static leat_err requests_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t sessions = leat_msg_read_array(reader);
    if (reader->failed || sessions > LEAT_SESSIONS_MAX) return LEAT_E_CORRUPT;
    for (uint32_t i = 0; i < sessions; i++) {
        if (leat_msg_read_array(reader) != 2) return LEAT_E_CORRUPT;
        machine->sessions[i].session = leat_msg_read_u64(reader);
        machine->sessions[i].sequence = leat_msg_read_u64(reader);
    }
    machine->session_count = sessions;
    uint32_t outcomes = leat_msg_read_array(reader);
    if (reader->failed || outcomes > LEAT_OUTCOMES_MAX) return LEAT_E_CORRUPT;
    if (outcomes == 0) return LEAT_OK;
    machine->outcomes =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, LEAT_OUTCOMES_MAX, sizeof *machine->outcomes);
    if (!machine->outcomes) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < outcomes; i++) {
        struct leat_machine_outcome *outcome = &machine->outcomes[i];
        if (leat_msg_read_array(reader) != 8) return LEAT_E_CORRUPT;
        outcome->session = leat_msg_read_u64(reader);
        outcome->sequence = leat_msg_read_u64(reader);
        outcome->incarnation = leat_msg_read_u64(reader);
        outcome->first_id = leat_msg_read_i64(reader);
        outcome->rc = leat_msg_read_u32(reader);
        outcome->stream_id = leat_msg_read_u32(reader);
        outcome->id_count = leat_msg_read_u32(reader);
        outcome->epoch = leat_msg_read_u32(reader);
    }
    machine->outcome_count = outcomes;
    machine->outcome_next = outcomes % LEAT_OUTCOMES_MAX;
    return LEAT_OK;
}

static leat_err staged_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    machine->staged_attempt = leat_msg_read_u64(reader);
    machine->staged_next = leat_msg_read_u32(reader);
    struct leat_msg_string rows = leat_msg_read_string(reader);
    if (reader->failed) return LEAT_E_CORRUPT;
    if (rows.bytes == 0) return LEAT_OK;
    machine->staged = leat_mem_calloc(LEAT_MEM_ROWS, rows.bytes, 1);
    if (!machine->staged) return LEAT_E_NO_MEMORY;
    machine->staged_capacity = machine->staged_bytes = rows.bytes;
    memcpy(machine->staged, rows.text, rows.bytes);
    return LEAT_OK;
}

static bool gone_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    if (count > LEAT_GONE_NAMES_MAX) return false;
    for (uint32_t i = 0; i < count; i++)
        machine->gone_names[i] = leat_msg_read_u32(reader);
    machine->gone_count = count;
    machine->gone_next = count % LEAT_GONE_NAMES_MAX;
    return !reader->failed;
}

static bool voters_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || count > LEAT_VOTERS_MAX) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_machine_voter *voter = &machine->voters[i];
        if (leat_msg_read_array(reader) != 2 ||
            !text_read(reader, voter->address, sizeof voter->address) ||
            !text_read(reader, voter->name, sizeof voter->name))
            return false;
    }
    machine->voter_count = count;
    return true;
}

static leat_err machine_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t fields = leat_msg_read_array(reader);
    if (fields != SNAPSHOT_FIELDS || leat_msg_read_u32(reader) != LEAT_SNAPSHOT_VERSION)
        return LEAT_E_CORRUPT;
    machine->formed = leat_msg_read_bool(reader);
    struct leat_msg_string cluster_id = leat_msg_read_string(reader);
    if (reader->failed || cluster_id.bytes != sizeof machine->cluster_id) return LEAT_E_CORRUPT;
    memcpy(machine->cluster_id, cluster_id.text, cluster_id.bytes);
    machine->next_stream_id = leat_msg_read_u32(reader);
    machine->next_epoch = leat_msg_read_u32(reader);
    machine->next_incarnation = leat_msg_read_u64(reader);
    machine->next_producer_id = leat_msg_read_i64(reader);
    machine->changes = leat_msg_read_u64(reader);
    if (!nodes_read(machine, reader)) return LEAT_E_CORRUPT;
    uint32_t stream_count = leat_msg_read_array(reader);
    for (uint32_t i = 0; i < stream_count && !reader->failed; i++) {
        leat_err rc = stream_read(machine, reader);
        if (rc != LEAT_OK) return rc;
    }
    leat_err rc = staged_read(machine, reader);
    if (rc == LEAT_OK) rc = requests_read(machine, reader);
    if (rc != LEAT_OK) return rc; /* also where memory lacks: what follows was not come to */
    machine->unowned_changes = leat_msg_read_u64(reader);
    if (!gone_read(machine, reader) || !voters_read(machine, reader)) return LEAT_E_CORRUPT;
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
