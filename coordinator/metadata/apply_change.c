/* SPDX-License-Identifier: Apache-2.0 */
/* An entry that changes a stream: more streamlets, other settings. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

static void settings_change(struct leat_stream_settings *settings, uint32_t change,
                            const struct leat_stream_settings *wanted)
{
    if ((change & LEAT_CHANGE_STREAMLETS) != 0) settings->streamlets = wanted->streamlets;
    if ((change & LEAT_CHANGE_RETENTION_MS) != 0) settings->retention_ms = wanted->retention_ms;
    if ((change & LEAT_CHANGE_RETENTION_BYTES) != 0)
        settings->retention_bytes = wanted->retention_bytes;
    if ((change & LEAT_CHANGE_SEGMENT_BYTES) != 0) {
        settings->segment_bytes_max = wanted->segment_bytes_max;
        settings->segment_bytes_asked = wanted->segment_bytes_asked;
    }
    if ((change & LEAT_CHANGE_COMPRESSION) != 0)
        settings->compression_asked = wanted->compression_asked;
    if ((change & LEAT_CHANGE_MIN_COPIES) != 0) settings->min_copies = wanted->min_copies;
    if ((change & LEAT_CHANGE_BATCH_BYTES) != 0)
        settings->batch_bytes_max = wanted->batch_bytes_max;
    if ((change & LEAT_CHANGE_APPEND_TIME) != 0) settings->append_time = wanted->append_time;
    if ((change & LEAT_CHANGE_VALIDATE) != 0) settings->validate = wanted->validate;
}

static leat_err change_check(struct leat_machine *machine, const struct leat_stream_desc *desc,
                             struct leat_stream_settings *settings,
                             struct leat_machine_result *result)
{
    uint32_t before = desc->streamlet_count;
    if (settings->streamlets < before)
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_INVALID,
                                  "stream '%s' has %" PRIu32 " streamlets; their number only grows",
                                  desc->name, before);
    result->rc = leat_stream_settings_complete(settings, machine->cores, &result->error);
    if (result->rc != LEAT_OK) return result->rc;
    uint64_t more = (uint64_t)(settings->streamlets - before) * settings->logs;
    if (machine->log_count + more > LEAT_CLUSTER_LOGS_MAX)
        return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                           "%" PRIu64 " logs more than the cluster's %" PRIu64
                                           " would exceed the %d it may have",
                                           more, machine->log_count, LEAT_CLUSTER_LOGS_MAX);
    if (more > 0 && !leat_machine_has_room(machine, more, result)) return result->rc;
    if (more > 0 && machine->next_epoch > LEAT_EPOCH_MAX)
        return leat_machine_epochs_used_up(result);
    return LEAT_OK;
}

/* Room for the tables of more streamlets; on failure nothing has changed. */
static leat_err tables_grow(struct leat_machine_stream *stream, uint32_t streamlets)
{
    uint32_t logs = streamlets * stream->desc->settings.logs;
    struct leat_machine_log *grown =
        leat_mem_realloc(LEAT_MEM_ROWS, stream->logs, logs, sizeof *grown);
    if (!grown) return LEAT_E_NO_MEMORY;
    stream->logs = grown;
    uint16_t *owners = leat_mem_realloc(LEAT_MEM_ROWS, stream->owners, streamlets, sizeof *owners);
    if (!owners) return LEAT_E_NO_MEMORY;
    stream->owners = owners;
    return LEAT_OK;
}

static void streamlets_add(struct leat_machine *machine, struct leat_machine_stream *stream,
                           struct leat_stream_desc *desc, uint32_t before,
                           struct leat_machine_result *result)
{
    struct leat_epoch epoch = {leat_machine_epoch_draw(machine)};
    uint32_t logs = desc->settings.logs;
    result->epoch = epoch;
    for (uint32_t i = before; i < desc->streamlet_count; i++) {
        struct leat_machine_node *owner = leat_machine_owner_choose(machine, logs);
        desc->streamlets[i].owner = owner ? owner->info.incarnation : 0;
        desc->streamlets[i].epoch = epoch;
        stream->owners[i] = owner ? leat_machine_node_index(machine, owner) : LEAT_OWNER_NONE;
        leat_machine_owner_changed(machine, stream->owners[i]);
        if (owner) leat_machine_owner_count(owner, logs, true);
    }
    for (uint32_t i = before * logs; i < desc->streamlet_count * logs; i++)
        stream->logs[i] =
            (struct leat_machine_log){.record.tail.segment = UINT64_MAX, .epoch = epoch};
    machine->log_count += (uint64_t)desc->streamlet_count * logs - stream->log_count;
    stream->log_count = desc->streamlet_count * logs;
}

leat_err leat_machine_apply_stream_change(struct leat_machine *machine,
                                          struct leat_msg_reader *reader,
                                          struct leat_machine_result *result)
{
    struct leat_entry_change change;
    (void)leat_entry_change_read(reader, &change);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    struct leat_msg_string name = change.name;
    struct leat_machine_stream *stream = leat_machine_name_find(machine, name.text, name.bytes);
    if (!stream || stream->desc->internal) {
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_STREAM, "no stream '%.*s'",
                                    (int)name.bytes, name.text);
        return LEAT_OK;
    }
    struct leat_stream_desc *old = stream->desc;
    struct leat_stream_settings settings = old->settings;
    settings_change(&settings, change.change, &change.settings);
    if (change_check(machine, old, &settings, result) != LEAT_OK) return LEAT_OK;
    struct leat_stream_desc *desc =
        leat_machine_desc_create(old->id, old->name, strlen(old->name), &settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    memcpy(desc->streamlets, old->streamlets, old->streamlet_count * sizeof desc->streamlets[0]);
    if (desc->streamlet_count > old->streamlet_count) {
        if (tables_grow(stream, desc->streamlet_count) != LEAT_OK) {
            leat_stream_desc_unref(desc);
            return LEAT_E_NO_MEMORY;
        }
        streamlets_add(machine, stream, desc, old->streamlet_count, result);
    }
    stream->desc = desc;
    leat_stream_desc_unref(old);
    machine->changes++;
    result->desc = desc;
    result->stream_id = desc->id;
    leat_machine_stream_told(machine, desc);
    return LEAT_OK;
}
