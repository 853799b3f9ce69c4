/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that form the cluster, make and delete streams, and give out producer ids. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"

/* ---- form, barrier, producer ids ---- */

leat_err leat_machine_apply_form(struct leat_machine *machine, struct leat_msg_reader *reader,
                                 struct leat_machine_result *result)
{
    struct leat_entry_form form;
    (void)leat_entry_form_read(reader, &form);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    /* A refusal, and not what stops a voter: all of them would stop here, at each start again. */
    if (machine->formed) {
        result->rc = leat_error_set(&result->error, LEAT_E_EXISTS, "the cluster is formed already");
        return LEAT_OK;
    }
    memcpy(machine->cluster_id, form.cluster_id, sizeof machine->cluster_id);
    machine->formed = true;
    return LEAT_OK;
}

leat_err leat_machine_apply_producer_ids(struct leat_machine *machine,
                                         struct leat_msg_reader *reader,
                                         struct leat_machine_result *result)
{
    struct leat_entry_producer_ids ids;
    (void)leat_entry_producer_ids_read(reader, &ids);
    if (!leat_msg_read_done(reader) || ids.count == 0) return leat_machine_malformed(result);
    /* All voters, of any version, decide the same: the count is in the entry, and the limit is the type's. A refusal,
     * not an error that stops the voter: all voters would stop here, at each start again. */
    if (machine->next_producer_id > INT64_MAX - (int64_t)ids.count) {
        result->rc =
            leat_error_set(&result->error, LEAT_E_TOO_MANY, "all producer ids are used up");
        return LEAT_OK;
    }
    result->first_id = machine->next_producer_id;
    result->id_count = ids.count;
    machine->next_producer_id += ids.count;
    return LEAT_OK;
}

/* ---- streams ---- */

static leat_err create_check(struct leat_machine *machine, struct leat_msg_string name,
                             struct leat_stream_settings *settings,
                             struct leat_machine_result *result)
{
    result->rc = leat_stream_name_check(name.text, name.bytes, &result->error);
    if (result->rc != LEAT_OK) return result->rc;
    if (leat_machine_name_find(machine, name.text, name.bytes))
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_STREAM_EXISTS,
                                  "a stream named '%.*s' exists", (int)name.bytes, name.text);
    result->rc = leat_stream_settings_complete(settings, machine->cores, &result->error);
    if (result->rc != LEAT_OK) return result->rc;
    if (machine->stream_count >= LEAT_STREAMS_MAX)
        return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                           "the cluster has %d streams, as many as it may",
                                           LEAT_STREAMS_MAX);
    uint32_t nodes = leat_machine_nodes_up(machine);
    if (settings->copies > 1 && settings->copies > nodes)
        return result->rc = leat_error_set(&result->error, LEAT_E_INVALID,
                                           "%" PRIu32 " copies were asked for; the cluster has "
                                           "%" PRIu32 " node%s to keep them",
                                           settings->copies, nodes, nodes == 1 ? "" : "s");
    uint64_t logs = (uint64_t)settings->streamlets * settings->logs;
    if (machine->log_count + logs > LEAT_CLUSTER_LOGS_MAX)
        return result->rc = leat_error_set(&result->error, LEAT_E_TOO_MANY,
                                           "%" PRIu64 " logs more than the cluster's %" PRIu64
                                           " would exceed the %d it may have",
                                           logs, machine->log_count, LEAT_CLUSTER_LOGS_MAX);
    /* Without it no group could commit: there is one, of few logs. */
    const bool sets = leat_machine_text_equal("leat.sets", name.text, name.bytes) && logs <= 64;
    if (!sets && !leat_machine_has_room(machine, logs, result)) return result->rc;
    if (machine->next_stream_id == UINT32_MAX)
        return result->rc =
                   leat_error_set(&result->error, LEAT_E_TOO_MANY, "all stream ids are used up");
    return LEAT_OK;
}

/* ---- names that were deleted ----
 *
 * An idempotent producer whose topic is deleted and created again goes on with its next sequence, which a log without
 * state of this producer would refuse for good. Only streams with such names accept the sequence: elsewhere the
 * producer's first batch has been lost on its way. */

static uint32_t name_mark(const char *name, size_t bytes)
{
    return leat_crc32c(0, name, bytes);
}

static bool name_is_gone(const struct leat_machine *machine, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < machine->gone_count; i++)
        if (machine->gone_names[i] == name_mark(name, bytes)) return true;
    return false;
}

static void name_goes(struct leat_machine *machine, const char *name, size_t bytes)
{
    machine->gone_names[machine->gone_next] = name_mark(name, bytes);
    machine->gone_next = (machine->gone_next + 1) % LEAT_GONE_NAMES_MAX;
    if (machine->gone_count < LEAT_GONE_NAMES_MAX) machine->gone_count++;
}

leat_err leat_machine_apply_stream_create(struct leat_machine *machine,
                                          struct leat_msg_reader *reader,
                                          struct leat_machine_result *result)
{
    struct leat_entry_create create;
    (void)leat_entry_create_read(reader, &create);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    struct leat_msg_string name = create.name;
    struct leat_stream_settings settings = create.settings;
    if (create_check(machine, name, &settings, result) != LEAT_OK) return LEAT_OK;
    if (machine->next_epoch > LEAT_EPOCH_MAX) {
        (void)leat_machine_epochs_used_up(result);
        return LEAT_OK;
    }

    struct leat_stream_desc *desc =
        leat_machine_desc_create(machine->next_stream_id, name.text, name.bytes, &settings);
    if (!desc) return LEAT_E_NO_MEMORY;
    desc->remade = name_is_gone(machine, name.text, name.bytes);
    struct leat_machine_log *logs;
    if (leat_machine_stream_add(machine, desc, &logs) != LEAT_OK) {
        leat_stream_desc_unref(desc);
        return LEAT_E_NO_MEMORY;
    }
    machine->next_stream_id++;
    struct leat_epoch epoch = {leat_machine_epoch_draw(machine)};
    struct leat_machine_stream *stream = &machine->streams[machine->stream_count - 1];
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        struct leat_machine_node *owner = leat_machine_owner_choose(machine, settings.logs);
        desc->streamlets[i].owner = owner ? owner->info.incarnation : 0;
        desc->streamlets[i].epoch = epoch;
        leat_machine_owner_changed(machine, owner ? leat_machine_node_index(machine, owner)
                                                  : LEAT_OWNER_NONE);
        if (!owner) continue;
        stream->owners[i] = leat_machine_node_index(machine, owner);
        leat_machine_owner_count(owner, settings.logs, true);
    }
    /* Empty, and known to be: only "opened" makes marks say where the log ends. */
    for (uint32_t i = 0; i < settings.streamlets * settings.logs; i++)
        logs[i] = (struct leat_machine_log){.record.tail.segment = UINT64_MAX, .epoch = epoch};
    machine->changes++;
    result->desc = desc;
    result->stream_id = desc->id;
    result->epoch = epoch;
    leat_machine_stream_told(machine, desc);
    return LEAT_OK;
}

static void owners_uncount(struct leat_machine *machine, const struct leat_machine_stream *stream)
{
    for (uint32_t i = 0; i < stream->desc->streamlet_count; i++)
        leat_machine_owner_changed(machine, stream->owners[i]);
    for (uint32_t i = 0; i < stream->desc->streamlet_count; i++)
        if (stream->owners[i] != LEAT_OWNER_NONE)
            leat_machine_owner_count(&machine->nodes[stream->owners[i]],
                                     stream->desc->settings.logs, false);
}

leat_err leat_machine_apply_stream_delete(struct leat_machine *machine,
                                          struct leat_msg_reader *reader,
                                          struct leat_machine_result *result)
{
    struct leat_entry_delete delete;
    (void)leat_entry_delete_read(reader, &delete);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    struct leat_msg_string name = delete.name;
    struct leat_machine_stream *stream = leat_machine_name_find(machine, name.text, name.bytes);
    if (!stream) {
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_STREAM, "no stream '%.*s'",
                                    (int)name.bytes, name.text);
        return LEAT_OK;
    }
    if (stream->desc->internal) {
        result->rc = leat_error_set(&result->error, LEAT_E_BAD_NAME,
                                    "'%.*s' is an internal stream and can't be deleted",
                                    (int)name.bytes, name.text);
        return LEAT_OK;
    }
    uint32_t id = stream->id;
    name_goes(machine, name.text, name.bytes);
    owners_uncount(machine, stream);
    leat_machine_stream_drop(machine, stream);
    machine->changes++;
    result->stream_id = id;
    if (machine->on_stream_deleted) machine->on_stream_deleted(machine->owner, id);
    return LEAT_OK;
}

leat_err leat_machine_apply_barrier(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_entry_barrier barrier;
    (void)machine;
    (void)leat_entry_barrier_read(reader, &barrier);
    return leat_msg_read_done(reader) ? LEAT_OK : leat_machine_malformed(result);
}
