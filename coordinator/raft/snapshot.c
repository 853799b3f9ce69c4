/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage: the snapshot file.
 *
 * {magic, CRC, version, index, term, configuration's index, bytes of configuration and data, CRC of
 * both} + configuration + data. Written under another name, synced, renamed, the directory synced:
 * a file under its own name is whole, and whatever fails its check afterwards is damage. */
#include "coordinator/raft/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"

struct snapshot_header {
    uint32_t magic, crc;
    uint32_t version, body_crc;
    uint64_t index, term, conf_index;
    uint64_t conf_bytes, data_bytes;
};

#define SNAPSHOT_NEW_PATH "raft/snapshot.new"

void leat_raft_snapshot_fini(struct leat_raft_snapshot *snapshot)
{
    leat_mem_free(snapshot->conf);
    leat_mem_free(snapshot->data);
    *snapshot = (struct leat_raft_snapshot){0};
}

/* ---- load ---- */

static leat_err snapshot_damaged(struct leat_error *error, const char *path, const char *what)
{
    return leat_error_set(error, LEAT_E_DAMAGED,
                          "%s is damaged: %s. This node may not vote; restore the file from a copy",
                          path, what);
}

static leat_err snapshot_body_read(struct leat_raft_log *log, struct leat_file *file,
                                   const struct snapshot_header *header, const char *path,
                                   struct leat_error *error)
{
    struct leat_raft_snapshot *snapshot = &log->snapshot;
    snapshot->conf = leat_mem_calloc(LEAT_MEM_COORDINATOR, header->conf_bytes + 1, 1);
    snapshot->data = leat_mem_calloc(LEAT_MEM_COORDINATOR, header->data_bytes + 1, 1);
    if (!snapshot->conf || !snapshot->data)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to read %s", path);
    size_t done = 0;
    leat_err rc = leat_raft_io(log->disk, LEAT_DISK_READ, file, sizeof *header, snapshot->conf,
                               header->conf_bytes, &done);
    if (rc == LEAT_OK && done == header->conf_bytes)
        rc = leat_raft_io(log->disk, LEAT_DISK_READ, file, sizeof *header + header->conf_bytes,
                          snapshot->data, header->data_bytes, &done);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "%s can't be read", path);
    uint32_t crc = leat_crc32c(0, snapshot->conf, header->conf_bytes);
    crc = leat_crc32c(crc, snapshot->data, header->data_bytes);
    if (done != header->data_bytes || crc != header->body_crc)
        return snapshot_damaged(error, path, "its content fails the check");
    if (!leat_raft_configuration_valid(snapshot->conf, header->conf_bytes))
        return snapshot_damaged(error, path, "it names no voters");
    if (header->term == 0 || header->term > log->vote.term)
        return snapshot_damaged(error, path, "its term is none, or raft/vote is older than it");
    snapshot->conf_bytes = header->conf_bytes;
    snapshot->data_bytes = header->data_bytes;
    snapshot->index = header->index;
    snapshot->term = header->term;
    snapshot->conf_index = header->conf_index;
    return LEAT_OK;
}

leat_err leat_raft_snapshot_load(struct leat_raft_log *log, uint64_t index,
                                 struct leat_error *error)
{
    char path[64];
    leat_raft_path(path, "snapshot", index);
    struct leat_file *file;
    leat_err rc = log->disk->open(log->disk->ctx, path, LEAT_OPEN_READ, &file, error);
    if (rc != LEAT_OK) return rc;
    struct snapshot_header header = {0};
    size_t done = 0;
    uint64_t bytes = 0;
    rc = leat_raft_io(log->disk, LEAT_DISK_READ, file, 0, &header, sizeof header, &done);
    if (rc == LEAT_OK) rc = log->disk->size(log->disk->ctx, file, &bytes);
    if (rc != LEAT_OK)
        (void)leat_error_set(error, rc, "%s can't be read", path);
    else if (done != sizeof header || header.magic != LEAT_RAFT_SNAPSHOT_MAGIC ||
             header.version != LEAT_RAFT_FORMAT_VERSION ||
             header.crc != leat_raft_header_crc(&header, sizeof header) || header.index != index)
        rc = snapshot_damaged(error, path, "its header fails the check");
    else if (header.conf_bytes > bytes || header.data_bytes > bytes ||
             sizeof header + header.conf_bytes + header.data_bytes > bytes)
        rc = snapshot_damaged(error, path, "it is shorter than it says");
    else
        rc = snapshot_body_read(log, file, &header, path, error);
    log->disk->close(log->disk->ctx, file);
    return rc;
}

/* ---- save ---- */

static leat_err snapshot_install(struct leat_raft_log *log)
{
    const struct leat_disk *disk = log->disk;
    char path[64];
    leat_raft_path(path, "snapshot", log->next.index);
    leat_err rc = disk->rename(disk->ctx, SNAPSHOT_NEW_PATH, path);
    if (rc == LEAT_OK) rc = disk->sync_dir(disk->ctx, "raft");
    if (rc != LEAT_OK) return rc;
    if (log->snapshot.index != 0 && log->snapshot.index != log->next.index) {
        leat_raft_path(path, "snapshot", log->snapshot.index);
        /* A leftover is removed by the next start. */
        (void)disk->remove(disk->ctx, path);
    }
    leat_raft_snapshot_fini(&log->snapshot);
    log->snapshot = log->next;
    log->next = (struct leat_raft_snapshot){0};
    return LEAT_OK;
}

static void save_ended(struct leat_raft_log *log)
{
    if (log->save_file) log->disk->close(log->disk->ctx, log->save_file);
    log->save_file = NULL;
    leat_err rc = log->save_rc;
    if (rc == LEAT_OK) rc = snapshot_install(log);
    log->saving = false;
    if (rc != LEAT_OK) leat_raft_snapshot_fini(&log->next);
    log->on_snapshot(log->owner, rc);
}

static void save_io_done(struct leat_disk_io *io)
{
    struct leat_raft_log *log = io->owner;
    if (io->rc != LEAT_OK && log->save_rc == LEAT_OK) log->save_rc = io->rc;
    if (--log->save_left == 0) save_ended(log);
}

static leat_err save_head_build(struct leat_raft_log *log)
{
    const struct leat_raft_snapshot *next = &log->next;
    struct snapshot_header header = {.magic = LEAT_RAFT_SNAPSHOT_MAGIC,
                                     .version = LEAT_RAFT_FORMAT_VERSION,
                                     .index = next->index,
                                     .term = next->term,
                                     .conf_index = next->conf_index,
                                     .conf_bytes = next->conf_bytes,
                                     .data_bytes = next->data_bytes};
    header.body_crc =
        leat_crc32c(leat_crc32c(0, next->conf, next->conf_bytes), next->data, next->data_bytes);
    header.crc = leat_raft_header_crc(&header, sizeof header);
    leat_mem_free(log->save_head);
    log->save_head_bytes = sizeof header + next->conf_bytes;
    log->save_head = leat_mem_calloc(LEAT_MEM_COORDINATOR, log->save_head_bytes, 1);
    if (!log->save_head) return LEAT_E_NO_MEMORY;
    memcpy(log->save_head, &header, sizeof header);
    memcpy(log->save_head + sizeof header, next->conf, next->conf_bytes);
    return LEAT_OK;
}

void leat_raft_log_snapshot_save(struct leat_raft_log *log,
                                 const struct leat_raft_snapshot *snapshot)
{
    const struct leat_disk *disk = log->disk;
    LEAT_ASSERT(!log->saving);
    log->saving = true;
    log->next = *snapshot;
    log->save_rc = save_head_build(log);
    log->save_left = 3;
    if (log->save_rc == LEAT_OK)
        log->save_rc =
            disk->open(disk->ctx, SNAPSHOT_NEW_PATH, LEAT_OPEN_CREATE, &log->save_file, NULL);
    uint64_t bytes = log->save_head_bytes + snapshot->data_bytes;
    if (log->save_rc == LEAT_OK) log->save_rc = disk->truncate(disk->ctx, log->save_file, 0);
    if (log->save_rc == LEAT_OK) log->save_rc = disk->allocate(disk->ctx, log->save_file, bytes);
    if (log->save_rc != LEAT_OK) {
        save_ended(log);
        return;
    }
    log->save_ios[0] = (struct leat_disk_io){
        .kind = LEAT_DISK_WRITE, .buffer = log->save_head, .bytes = log->save_head_bytes};
    log->save_ios[1] = (struct leat_disk_io){.kind = LEAT_DISK_WRITE,
                                             .offset = log->save_head_bytes,
                                             .buffer = log->next.data,
                                             .bytes = log->next.data_bytes};
    log->save_ios[2] = (struct leat_disk_io){.kind = LEAT_DISK_SYNC};
    for (int i = 0; i < 3; i++) {
        log->save_ios[i].file = log->save_file;
        log->save_ios[i].on_done = save_io_done;
        log->save_ios[i].owner = log;
        disk->submit(disk->ctx, &log->save_ios[i]);
    }
}
