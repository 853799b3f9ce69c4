/* SPDX-License-Identifier: Apache-2.0 */
/* How a drive begins and ends. */
#include "coordinator/raft/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"

static void raft_configure(struct leat_raft_drive *drive,
                           const struct leat_raft_drive_options *options)
{
    raft_seed(&drive->raft, (unsigned)drive->env->random->next(drive->env->random->ctx));
    raft_set_election_timeout(&drive->raft, options->election_ms);
    raft_set_heartbeat_timeout(&drive->raft, options->heartbeat_ms);
    raft_set_pre_vote(&drive->raft, true); /* a voter that was cut off does not disturb a leader */
}

leat_err leat_raft_drive_open(struct leat_raft_drive *drive, const struct leat_env *env,
                              struct leat_timers *timers, const struct leat_raft_hooks *hooks,
                              const struct leat_raft_drive_options *options, bool *out_new,
                              struct leat_error *error)
{
    memset(drive, 0, sizeof *drive);
    drive->env = env;
    drive->timers = timers;
    drive->hooks = *hooks;
    drive->snapshot_bytes_min = options->snapshot_bytes_min;
    leat_err rc =
        leat_raft_log_open(&drive->log, env->disk, options->segment_bytes, out_new, error);
    if (rc != LEAT_OK) return rc;
    leat_raft_drive_events_set(drive);
    if (raft_init(&drive->raft, NULL, NULL, options->id, options->address) != 0) {
        leat_raft_log_close(&drive->log);
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for raft");
    }
    drive->raft_open = true;
    raft_configure(drive, options);
    return LEAT_OK;
}

void leat_raft_drive_id_set(struct leat_raft_drive *drive, uint64_t id)
{
    LEAT_ASSERT(raft_last_index(&drive->raft) == 0);
    drive->raft.id = id;
}

leat_err leat_raft_drive_form(struct leat_raft_drive *drive,
                              const struct raft_configuration *configuration, const void *command,
                              size_t command_bytes, struct leat_error *error)
{
    struct raft_buffer conf;
    if (raft_configuration_encode(configuration, &conf) != 0)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for raft");
    struct leat_raft_entry entries[2] = {
        {.type = RAFT_CHANGE, .data = conf.base, .bytes = (uint32_t)conf.len},
        {.type = RAFT_COMMAND,
         .data = (uint8_t *)(uintptr_t)command,
         .bytes = (uint32_t)command_bytes},
    };
    leat_err rc = leat_raft_log_form(&drive->log, entries, 2, error);
    raft_free(conf.base);
    return rc;
}

static leat_err start_entries(struct leat_raft_drive *drive, struct raft_event *event)
{
    struct leat_raft_log *log = &drive->log;
    size_t bytes = 0;
    for (size_t i = 0; i < log->entry_count; i++)
        bytes += leat_raft_log_get(log, log->start_index + i)->bytes;
    if (log->entry_count == 0) return LEAT_OK;
    struct raft_entry *entries = raft_malloc(log->entry_count * sizeof *entries);
    uint8_t *batch = raft_malloc(bytes + 1), *at = batch;
    if (!entries || !batch) {
        raft_free(entries);
        raft_free(batch);
        return LEAT_E_NO_MEMORY;
    }
    for (size_t i = 0; i < log->entry_count; i++) {
        const struct leat_raft_entry *entry = leat_raft_log_get(log, log->start_index + i);
        memcpy(at, entry->data, entry->bytes);
        entries[i] = (struct raft_entry){.term = entry->term,
                                         .type = (enum raft_entry_type)entry->type,
                                         .buf = {.base = at, .len = entry->bytes},
                                         .batch = batch};
        at += entry->bytes;
    }
    event->start.entries = entries;
    event->start.n_entries = (unsigned)log->entry_count;
    return LEAT_OK;
}

leat_err leat_raft_drive_start(struct leat_raft_drive *drive, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    const struct leat_raft_snapshot *snapshot = &drive->log.snapshot;
    struct raft_event event = {.type = RAFT_START};
    struct raft_snapshot_metadata meta = {0};
    event.start.term = drive->log.vote.term;
    event.start.voted_for = drive->log.vote.voted_for;
    event.start.start_index = drive->log.start_index;
    leat_err rc = LEAT_OK;
    if (snapshot->index != 0) {
        rc = drive->hooks.restore(drive->hooks.owner, snapshot->data, snapshot->data_bytes);
        if (rc == LEAT_OK && !leat_raft_drive_snapshot_meta(drive, &meta)) rc = LEAT_E_CORRUPT;
        if (rc != LEAT_OK)
            return leat_error_set(error, rc,
                                  "the coordinator's snapshot %" PRIu64
                                  " does not decode: is this program older than it?",
                                  snapshot->index);
        event.start.metadata = &meta;
        drive->applied = snapshot->index;
    }
    rc = start_entries(drive, &event);
    if (rc == LEAT_OK) rc = leat_raft_drive_step(drive, &event);
    if (event.start.entries) {
        raft_free(event.start.entries[0].batch);
        raft_free(event.start.entries);
    }
    if (rc != LEAT_OK)
        return leat_error_set(error, rc, "the coordinator can't go on from its log: %s",
                              leat_err_text(rc));
    leat_raft_drive_timer_arm(drive);
    return LEAT_OK;
}

void leat_raft_drive_close(struct leat_raft_drive *drive)
{
    if (!drive->raft_open) return;
    /* A blocking operation comes after all that were submitted: then nothing is in flight. */
    if ((drive->log.writing || drive->log.saving) && drive->log.vote_file &&
        leat_raft_io(drive->log.disk, LEAT_DISK_SYNC, drive->log.vote_file, 0, NULL, 0, NULL) !=
            LEAT_OK)
        leat_node_log_warn("coordinator: the disk failed on the way out");
    leat_timer_stop(drive->timers, &drive->raft_timer);
    leat_timer_stop(drive->timers, &drive->mark_timer);
    if (leat_raft_drive_installs(drive)) {
        raft_configuration_close(&drive->install_meta.configuration);
        raft_free(drive->install_chunk.base);
    }
    raft_close(&drive->raft, NULL);
    leat_raft_log_close(&drive->log);
    leat_mem_free(drive->fill);
    drive->raft_open = false;
}
