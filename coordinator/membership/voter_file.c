/* SPDX-License-Identifier: Apache-2.0 */
/* The small files of a voter: raft/voter, its identity; raft/form, the cluster that is being formed.
 *
 * raft/voter and raft/form: [u32 magic, u32 CRC-32C of the rest, u32 bytes, u32 version], body.
 * The body of raft/voter: [id, cluster id bin16]; of raft/form: membership/form.c. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/voters.h"

enum {
    FILE_MAGIC = 0x4d46524c /* "LRFM" */,
    FILE_VERSION = 1,
    FILE_HEADER_BYTES = 16,
};

leat_err co_file_save(struct leat_coordinator *coordinator, const char *name, const uint8_t *body,
                      size_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct leat_disk *disk = coordinator->env->disk;
    uint8_t bytes[FILE_HEADER_BYTES + CO_FILE_BODY_BYTES_MAX];
    char path[64], fresh[64];
    LEAT_ASSERT_CMP(count, <=, (size_t)CO_FILE_BODY_BYTES_MAX);
    snprintf(path, sizeof path, "raft/%s", name);
    snprintf(fresh, sizeof fresh, "raft/%s.new", name);
    leat_put_le32(bytes, FILE_MAGIC);
    leat_put_le32(bytes + 8, (uint32_t)count);
    leat_put_le32(bytes + 12, FILE_VERSION);
    memcpy(bytes + FILE_HEADER_BYTES, body, count);
    leat_put_le32(bytes + 4, leat_crc32c(0, bytes + 8, FILE_HEADER_BYTES - 8 + count));
    struct leat_file *file;
    leat_err rc = disk->open(disk->ctx, fresh, LEAT_OPEN_CREATE, &file, NULL);
    if (rc != LEAT_OK) return rc;
    rc = disk->truncate(disk->ctx, file, 0);
    size_t all = FILE_HEADER_BYTES + count;
    if (rc == LEAT_OK) rc = disk->allocate(disk->ctx, file, all);
    if (rc == LEAT_OK) rc = leat_raft_io(disk, LEAT_DISK_WRITE, file, 0, bytes, all, NULL);
    if (rc == LEAT_OK) rc = leat_raft_io(disk, LEAT_DISK_SYNC, file, 0, NULL, 0, NULL);
    disk->close(disk->ctx, file);
    if (rc == LEAT_OK) rc = disk->rename(disk->ctx, fresh, path);
    if (rc == LEAT_OK) rc = disk->sync_dir(disk->ctx, "raft");
    if (rc == LEAT_OK) rc = disk->sync_dir(disk->ctx, ".");
    return rc;
}

struct looking {
    const char *name;
    bool found;
};
static void look(void *arg, const char *name)
{
    struct looking *looking = arg;
    if (strcmp(looking->name, name) == 0) looking->found = true;
}

/* *out_count 0: there is no such file. */
leat_err co_file_load(struct leat_coordinator *coordinator, const char *name, uint8_t *out,
                      size_t *out_count, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct leat_disk *disk = coordinator->env->disk;
    uint8_t bytes[FILE_HEADER_BYTES + CO_FILE_BODY_BYTES_MAX];
    struct looking looking = {.name = name};
    char path[64];
    snprintf(path, sizeof path, "raft/%s", name);
    *out_count = 0;
    leat_err rc = disk->make_dir(disk->ctx, "raft");
    if (rc == LEAT_OK) rc = disk->list(disk->ctx, "raft", look, &looking);
    if (rc != LEAT_OK || !looking.found) return rc;
    struct leat_file *file;
    rc = disk->open(disk->ctx, path, LEAT_OPEN_READ, &file, error);
    if (rc != LEAT_OK) return rc;
    size_t done = 0;
    rc = leat_raft_io(disk, LEAT_DISK_READ, file, 0, bytes, sizeof bytes, &done);
    disk->close(disk->ctx, file);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "%s can't be read", path);
    uint32_t count = done >= FILE_HEADER_BYTES ? leat_get_le32(bytes + 8) : 0;
    if (count == 0 || count > CO_FILE_BODY_BYTES_MAX || done < FILE_HEADER_BYTES + count ||
        leat_get_le32(bytes) != FILE_MAGIC || leat_get_le32(bytes + 12) != FILE_VERSION ||
        leat_get_le32(bytes + 4) != leat_crc32c(0, bytes + 8, FILE_HEADER_BYTES - 8 + count))
        return leat_error_set(error, LEAT_E_DAMAGED,
                              "%s is damaged. This node may not vote; restore the file from a copy",
                              path);
    memcpy(out, bytes + FILE_HEADER_BYTES, count);
    *out_count = count;
    return LEAT_OK;
}

leat_err co_voter_save(struct leat_coordinator *coordinator, const uint8_t cluster_id[16])
{
    LEAT_ASSERT_OWNER(coordinator);
    uint8_t body[32];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    struct co_voter_kept kept = {.voter_id = coordinator->voter_id};
    memcpy(kept.cluster_id, cluster_id, sizeof kept.cluster_id);
    co_voter_kept_write(&writer, &kept);
    LEAT_ASSERT(!writer.overflow);
    return co_file_save(coordinator, "voter", body, writer.used);
}

leat_err co_voter_load(struct leat_coordinator *coordinator, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(coordinator);
    uint8_t body[CO_FILE_BODY_BYTES_MAX];
    size_t count;
    leat_err rc = co_file_load(coordinator, "voter", body, &count, error);
    if (rc != LEAT_OK) return rc;
    coordinator->voter_id = 1; /* a voter that began alone */
    if (count == 0) return LEAT_OK;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, body, count);
    struct co_voter_kept kept;
    (void)co_voter_kept_read(&reader, &kept);
    coordinator->voter_id = kept.voter_id;
    if (reader.failed || kept.voter_id == 0)
        return leat_error_set(error, LEAT_E_DAMAGED, "raft/voter names no voter");
    memcpy(coordinator->cluster_id, kept.cluster_id, sizeof kept.cluster_id);
    return LEAT_OK;
}
