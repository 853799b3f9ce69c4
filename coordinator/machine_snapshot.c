/* The state machine's tables as bytes and back.
 *
 * [version, formed, cluster id, next stream, next epoch, next incarnation, next producer id,
 *  changes, [node...], [stream...], staged attempt, staged next, staged rows]
 * node   = [name, address, incarnation, cores, streamlets]
 * stream = [id, name, settings, [owner, epoch]..., [log...]]
 * log    = [epoch, stamp epoch] when opened; [epoch, segment, bytes, crc, next offset, jumped]
 *
 * In the order of ids, so that equal tables give equal bytes. */
#include "coordinator/machine.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum {
    SNAPSHOT_HEAD_BYTES = 256,
    SNAPSHOT_NODE_BYTES = LEAT_NODE_NAME_BYTES_MAX + LEAT_ADDRESS_BYTES_MAX + 64,
    SNAPSHOT_STREAM_BYTES = LEAT_STREAM_NAME_BYTES_MAX + 160,
    SNAPSHOT_STREAMLET_BYTES = 24,
    SNAPSHOT_LOG_BYTES = 48,
};

static size_t snapshot_bytes_max(const struct leat_machine *machine)
{
    size_t bytes = SNAPSHOT_HEAD_BYTES + machine->staged_bytes;
    bytes += (size_t)machine->node_count * SNAPSHOT_NODE_BYTES;
    for (uint32_t i = 0; i < machine->stream_count; i++)
        bytes += SNAPSHOT_STREAM_BYTES +
                 (size_t)machine->streams[i].desc->streamlet_count * SNAPSHOT_STREAMLET_BYTES +
                 (size_t)machine->streams[i].log_count * SNAPSHOT_LOG_BYTES;
    return bytes;
}

static void log_write(struct leat_msg_writer *writer, const struct leat_machine_log *log)
{
    const struct leat_log_record *record = &log->record;
    leat_msg_write_array(writer, record->opened ? 2 : 6);
    leat_msg_write_u64(writer, log->epoch.v);
    if (record->opened) {
        leat_msg_write_u64(writer, record->stamp_epoch.v);
        return;
    }
    leat_msg_write_u64(writer, record->tail.segment);
    leat_msg_write_u64(writer, record->tail.extent.bytes);
    leat_msg_write_u64(writer, record->tail.extent.crc);
    leat_msg_write_u64(writer, record->tail.next_offset);
    leat_msg_write_bool(writer, record->tail.jumped);
}

static void stream_write(struct leat_msg_writer *writer, const struct leat_machine_stream *stream)
{
    const struct leat_stream_desc *desc = stream->desc;
    leat_msg_write_array(writer, 5);
    leat_msg_write_u64(writer, desc->id);
    leat_msg_write_string(writer, desc->name, strlen(desc->name));
    leat_msg_settings_write(writer, &desc->settings);
    leat_msg_write_array(writer, desc->streamlet_count);
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        leat_msg_write_array(writer, 2);
        leat_msg_write_u64(writer, desc->streamlets[i].owner);
        leat_msg_write_u64(writer, desc->streamlets[i].epoch.v);
    }
    leat_msg_write_array(writer, stream->log_count);
    for (uint32_t i = 0; i < stream->log_count; i++)
        log_write(writer, &stream->logs[i]);
}

leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count)
{
    size_t capacity = snapshot_bytes_max(machine);
    uint8_t *bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, capacity, 1);
    if (!bytes) return LEAT_E_NO_MEMORY;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, capacity);
    leat_msg_write_array(&writer, 13);
    leat_msg_write_u64(&writer, LEAT_SNAPSHOT_VERSION);
    leat_msg_write_bool(&writer, machine->formed);
    leat_msg_write_bin(&writer, machine->cluster_id, sizeof machine->cluster_id);
    leat_msg_write_u64(&writer, machine->next_stream_id);
    leat_msg_write_u64(&writer, machine->next_epoch);
    leat_msg_write_u64(&writer, machine->next_incarnation);
    leat_msg_write_i64(&writer, machine->next_producer_id);
    leat_msg_write_u64(&writer, machine->changes);
    leat_msg_write_array(&writer, machine->node_count);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_machine_node *node = &machine->nodes[i];
        leat_msg_write_array(&writer, 5);
        leat_msg_write_string(&writer, node->name, strlen(node->name));
        leat_msg_write_string(&writer, node->address, strlen(node->address));
        leat_msg_write_u64(&writer, node->incarnation);
        leat_msg_write_u64(&writer, node->cores);
        leat_msg_write_u64(&writer, node->streamlets);
    }
    leat_msg_write_array(&writer, machine->stream_count);
    for (uint32_t i = 0; i < machine->stream_count; i++)
        stream_write(&writer, &machine->streams[i]);
    leat_msg_write_u64(&writer, machine->staged_attempt);
    leat_msg_write_u64(&writer, machine->staged_next);
    leat_msg_write_bin(&writer, machine->staged, machine->staged_bytes);
    LEAT_ASSERT(!writer.overflow); /* the bounds above are upper ones */
    *out_bytes = bytes;
    *out_count = writer.used;
    return LEAT_OK;
}

static void log_read(struct leat_msg_reader *reader, struct leat_machine_log *log)
{
    uint32_t fields = leat_msg_read_array(reader);
    log->epoch.v = leat_msg_read_u32(reader);
    if (fields == 2) {
        log->record.opened = true;
        log->record.stamp_epoch.v = leat_msg_read_u32(reader);
        return;
    }
    log->record.tail.segment = leat_msg_read_u64(reader);
    log->record.tail.extent.bytes = leat_msg_read_u32(reader);
    log->record.tail.extent.crc = leat_msg_read_u32(reader);
    log->record.tail.next_offset = leat_msg_read_u64(reader);
    log->record.tail.jumped = leat_msg_read_bool(reader);
    if (fields != 6) reader->failed = true;
}

static leat_err stream_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    if (leat_msg_read_array(reader) != 5) return LEAT_E_CORRUPT;
    uint32_t id = leat_msg_read_u32(reader);
    struct leat_msg_string name = leat_msg_read_string(reader);
    struct leat_stream_settings settings = {0};
    leat_msg_settings_read(reader, &settings);
    uint32_t streamlets = leat_msg_read_array(reader);
    uint32_t last = machine->stream_count ? machine->streams[machine->stream_count - 1].id : 0;
    if (reader->failed || id <= last || streamlets != settings.streamlets || streamlets == 0 ||
        settings.logs == 0 || settings.logs > LEAT_LOGS_MAX || streamlets > LEAT_STREAMLETS_MAX ||
        leat_stream_name_check(name.text, name.bytes, NULL) != LEAT_OK)
        return LEAT_E_CORRUPT;
    struct leat_stream_desc *desc = leat_machine_desc_create(id, name.text, name.bytes, &settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < streamlets; i++) {
        if (leat_msg_read_array(reader) != 2) reader->failed = true;
        desc->streamlets[i].owner = leat_msg_read_u64(reader);
        desc->streamlets[i].epoch.v = leat_msg_read_u32(reader);
    }
    uint32_t log_count = leat_msg_read_array(reader);
    if (reader->failed || log_count != streamlets * settings.logs) {
        leat_stream_desc_unref(desc);
        return LEAT_E_CORRUPT;
    }
    struct leat_machine_log *logs;
    leat_err rc = leat_machine_stream_add(machine, desc, &logs);
    if (rc != LEAT_OK) {
        leat_stream_desc_unref(desc);
        return rc;
    }
    for (uint32_t i = 0; i < log_count; i++)
        log_read(reader, &logs[i]);
    return reader->failed ? LEAT_E_CORRUPT : LEAT_OK;
}

static bool nodes_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || count > LEAT_NODES_MAX) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_machine_node *node = &machine->nodes[i];
        if (leat_msg_read_array(reader) != 5) return false;
        struct leat_msg_string name = leat_msg_read_string(reader);
        struct leat_msg_string address = leat_msg_read_string(reader);
        node->incarnation = leat_msg_read_u64(reader);
        node->cores = leat_msg_read_u32(reader);
        node->streamlets = leat_msg_read_u64(reader);
        if (reader->failed || name.bytes > LEAT_NODE_NAME_BYTES_MAX ||
            address.bytes > LEAT_ADDRESS_BYTES_MAX)
            return false;
        memcpy(node->name, name.text, name.bytes);
        memcpy(node->address, address.text, address.bytes);
        machine->node_count++;
    }
    return true;
}

static leat_err staged_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    machine->staged_attempt = leat_msg_read_u64(reader);
    machine->staged_next = leat_msg_read_u32(reader);
    struct leat_msg_string rows = leat_msg_read_string(reader);
    if (!leat_msg_read_done(reader)) return LEAT_E_CORRUPT;
    if (rows.bytes == 0) return LEAT_OK;
    machine->staged = leat_mem_calloc(LEAT_MEM_COORDINATOR, rows.bytes, 1);
    if (!machine->staged) return LEAT_E_NO_MEMORY;
    machine->staged_capacity = machine->staged_bytes = rows.bytes;
    memcpy(machine->staged, rows.text, rows.bytes);
    return LEAT_OK;
}

static leat_err machine_read(struct leat_machine *machine, struct leat_msg_reader *reader)
{
    if (leat_msg_read_array(reader) != 13) return LEAT_E_CORRUPT;
    if (leat_msg_read_u32(reader) != LEAT_SNAPSHOT_VERSION) return LEAT_E_CORRUPT;
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
    return staged_read(machine, reader);
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
