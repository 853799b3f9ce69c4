/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: taken by the drive, and received from a leader. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "coordinator/raft/private.h"

static leat_err conf_copy(const struct raft_configuration *configuration, uint8_t **out_bytes,
                          size_t *out_count)
{
    struct raft_buffer encoded;
    if (raft_configuration_encode(configuration, &encoded) != 0) return LEAT_E_NO_MEMORY;
    uint8_t *copy = leat_mem_calloc(LEAT_MEM_COORDINATOR, encoded.len + 1, 1);
    if (copy) memcpy(copy, encoded.base, encoded.len);
    raft_free(encoded.base);
    if (!copy) return LEAT_E_NO_MEMORY;
    *out_bytes = copy;
    *out_count = encoded.len;
    return LEAT_OK;
}

/* ---- taken ---- */

static void snapshot_take(struct leat_raft_drive *drive)
{
    const struct leat_raft_entry *entry = leat_raft_log_get(&drive->log, drive->applied);
    if (!entry) return; /* the last snapshot ends here */
    struct leat_raft_snapshot snapshot = {
        .index = drive->applied,
        .term = entry->term,
        .conf_index = drive->raft.configuration_committed_index,
    };
    drive->bytes_since_snapshot = 0;
    leat_err rc =
        conf_copy(&drive->raft.configuration_committed, &snapshot.conf, &snapshot.conf_bytes);
    if (rc == LEAT_OK)
        rc = drive->hooks.snapshot(drive->hooks.owner, &snapshot.data, &snapshot.data_bytes);
    if (rc != LEAT_OK) {
        leat_raft_snapshot_fini(&snapshot);
        leat_node_log_warn("coordinator: no snapshot now: %s", leat_err_text(rc));
        return;
    }
    leat_raft_drive_snapshot_enter(drive, LEAT_RAFT_SNAPSHOT_TAKES);
    leat_raft_log_snapshot_save(&drive->log, &snapshot);
}

void leat_raft_drive_snapshot_maybe(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    uint64_t wanted = drive->snapshot_bytes_min;
    if (wanted < 2 * drive->log.snapshot.data_bytes) wanted = 2 * drive->log.snapshot.data_bytes;
    if (drive->failed != LEAT_OK || drive->log.saving || leat_raft_drive_installs(drive) ||
        drive->bytes_since_snapshot < wanted || drive->applied < raft_commit_index(&drive->raft))
        return;
    snapshot_take(drive);
}

bool leat_raft_drive_snapshot_meta(const struct leat_raft_drive *drive,
                                   struct raft_snapshot_metadata *out_meta)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    const struct leat_raft_snapshot *snapshot = &drive->log.snapshot;
    struct raft_buffer conf = {.base = snapshot->conf, .len = snapshot->conf_bytes};
    struct raft_snapshot_metadata meta = {.index = snapshot->index,
                                          .term = snapshot->term,
                                          .configuration_index = snapshot->conf_index};
    if (raft_configuration_decode(&conf, &meta.configuration) != 0) return false;
    *out_meta = meta;
    return true;
}

/* The first entry to keep before a snapshot. */
static uint64_t trailing_first(const struct leat_raft_drive *drive)
{
    uint64_t index = drive->log.snapshot.index + 1, bytes = 0;
    while (index > drive->log.start_index) {
        bytes += leat_raft_log_get(&drive->log, index - 1)->bytes;
        if (bytes > LEAT_RAFT_TRAILING_BYTES) break;
        index--;
    }
    return index;
}

static void snapshot_taken(struct leat_raft_drive *drive, leat_err rc)
{
    if (rc != LEAT_OK) {
        leat_node_log_warn("coordinator: a snapshot failed: %s", leat_err_text(rc));
        return;
    }
    uint64_t first = trailing_first(drive);
    struct raft_event event = {.type = RAFT_SNAPSHOT};
    if (!leat_raft_drive_snapshot_meta(drive, &event.snapshot.metadata)) return;
    event.snapshot.trailing = (unsigned)(event.snapshot.metadata.index + 1 - first);
    if (leat_raft_drive_step(drive, &event) != LEAT_OK) return;
    rc = leat_raft_log_compact(&drive->log, first);
    if (rc != LEAT_OK) leat_raft_drive_fail(drive, rc, "raft's log can't be compacted");
}

/* ---- received ---- */

static void install_begin(struct leat_raft_drive *drive)
{
    const struct raft_snapshot_metadata *meta = &drive->install_meta;
    struct leat_raft_snapshot snapshot = {
        .index = meta->index, .term = meta->term, .conf_index = meta->configuration_index};
    leat_err rc = conf_copy(&meta->configuration, &snapshot.conf, &snapshot.conf_bytes);
    snapshot.data_bytes = drive->install_chunk.len;
    snapshot.data = leat_mem_calloc(LEAT_MEM_COORDINATOR, snapshot.data_bytes + 1, 1);
    if (rc != LEAT_OK || !snapshot.data) {
        leat_raft_snapshot_fini(&snapshot);
        leat_raft_drive_fail(drive, LEAT_E_NO_MEMORY, "a received snapshot can't be kept");
        return;
    }
    memcpy(snapshot.data, drive->install_chunk.base, snapshot.data_bytes);
    leat_raft_log_snapshot_save(&drive->log, &snapshot);
}

void leat_raft_drive_install_take(struct leat_raft_drive *drive, const struct raft_update *update)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    drive->install_meta = update->snapshot.metadata;
    drive->install_chunk = update->snapshot.chunk;
    bool takes = drive->snapshot_state == LEAT_RAFT_SNAPSHOT_TAKES; /* its own goes first */
    leat_raft_drive_snapshot_enter(drive, takes ? LEAT_RAFT_SNAPSHOT_TAKES_FIRST
                                                : LEAT_RAFT_SNAPSHOT_INSTALLS);
    if (!takes) install_begin(drive);
}

void leat_raft_drive_install_finish(struct leat_raft_drive *drive)
{
    LEAT_ASSERT_OWNER(drive->hooks.owner);
    if (drive->snapshot_state != LEAT_RAFT_SNAPSHOT_SAVED || drive->log.writing) return;
    leat_err rc = leat_raft_log_reset(&drive->log, drive->install_meta.index + 1);
    if (rc == LEAT_OK)
        rc = drive->hooks.restore(drive->hooks.owner, drive->install_chunk.base,
                                  drive->install_chunk.len);
    if (rc != LEAT_OK) {
        leat_raft_drive_fail(drive, rc, "a received snapshot can't be installed");
        return;
    }
    raft_free(drive->install_chunk.base);
    drive->install_chunk.base = NULL;
    leat_raft_drive_snapshot_enter(drive, LEAT_RAFT_SNAPSHOT_NONE);
    drive->applied = drive->install_meta.index;
    drive->bytes_since_snapshot = 0;
    struct raft_event event = {.type = RAFT_PERSISTED_SNAPSHOT};
    event.persisted_snapshot.metadata = drive->install_meta;
    event.persisted_snapshot.last = true;
    (void)leat_raft_drive_step(drive, &event); /* a failure has stopped the drive already */
}

void leat_raft_drive_snapshot_saved(void *owner, leat_err rc)
{
    struct leat_raft_drive *drive = owner;
    if (drive->failed != LEAT_OK) return;
    bool next = drive->snapshot_state == LEAT_RAFT_SNAPSHOT_TAKES_FIRST;
    if (next || drive->snapshot_state == LEAT_RAFT_SNAPSHOT_TAKES) {
        leat_raft_drive_snapshot_enter(drive, next ? LEAT_RAFT_SNAPSHOT_INSTALLS
                                                   : LEAT_RAFT_SNAPSHOT_NONE);
        snapshot_taken(drive, rc);
        if (next && drive->failed == LEAT_OK) install_begin(drive);
        return;
    }
    if (rc != LEAT_OK) {
        leat_raft_drive_fail(drive, rc, "a received snapshot can't be stored");
        return;
    }
    leat_raft_drive_snapshot_enter(drive, LEAT_RAFT_SNAPSHOT_SAVED);
    leat_raft_drive_install_finish(drive);
}
