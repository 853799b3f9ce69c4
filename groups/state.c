/* SPDX-License-Identifier: Apache-2.0 */
/* The table as the home log keeps it: whole in start entries, change by change in batches. */
#include "groups/internal.h"

#include <string.h>

#include "base/assert.h"

/* Members of classic groups are taken along while there is room: a classic group without stored members goes on in
 * its generation, and its members join anew. */
static void snapshot_encode(struct leat_groups *groups, struct leat_msg_writer *writer)
{
    size_t used = leat_groups_table_bytes(groups);
    leat_msg_writer_init(writer, groups->scratch, LEAT_GROUPS_BATCH_BYTES_MAX);
    leat_msg_write_array(writer, groups->group_count);
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_classic *classic = groups->groups[i]->classic;
        bool room = classic && used + classic->stored_bytes <= LEAT_GROUPS_TABLE_BYTES_MAX;
        if (room) used += classic->stored_bytes;
        leat_group_encode(writer, groups->groups[i], room);
    }
    LEAT_ASSERT(!writer->overflow); /* leat_groups_table_bytes() is an upper bound and is limited */
}

static size_t app_snapshot_bytes(void *ctx)
{
    struct leat_msg_writer writer;
    snapshot_encode(ctx, &writer);
    return writer.used;
}

static void app_snapshot_write(void *ctx, uint8_t *out)
{
    struct leat_msg_writer writer;
    snapshot_encode(ctx, &writer);
    memcpy(out, writer.bytes, writer.used);
}

static bool group_take(struct leat_groups *groups, struct leat_msg_reader *reader)
{
    struct leat_group *group = leat_group_decode(reader);
    if (!group) return false;
    leat_groups_group_remove(groups, group->name);
    if (groups->group_count == LEAT_GROUPS_PER_HOME_MAX) {
        leat_group_destroy(&group);
        return false;
    }
    leat_groups_group_add(groups, group);
    return true;
}

static void app_on_restore(void *ctx, const uint8_t *bytes, size_t count)
{
    struct leat_groups *groups = ctx;
    struct leat_msg_reader reader;
    leat_groups_table_clear(groups);
    if (count == 0) return;
    leat_msg_reader_init(&reader, bytes, count);
    bool ok = true;
    for (uint32_t i = leat_msg_read_array(&reader); i > 0 && ok; i--)
        ok = group_take(groups, &reader);
    if (!ok || reader.failed) leat_groups_break(groups, LEAT_E_DAMAGED, "its table does not read");
}

static bool replay_commit(struct leat_groups *groups, struct leat_msg_reader *reader)
{
    struct leat_stored_record record;
    (void)leat_record_commit_read(reader, &record);
    struct leat_group *group = leat_groups_group_find(groups, record.name);
    for (uint32_t i = 0; i < record.offset_count && !reader->failed; i++) {
        struct leat_stored_offset row;
        (void)leat_stored_offset_read(reader, &row);
        if (reader->failed || !group) continue; /* deleted by what the snapshot already holds */
        struct leat_group_log *log = leat_group_log_add(group, row.log);
        if (!log ||
            leat_group_commit(group, log, row.group, row.offset, true) == LEAT_E_NO_MEMORY ||
            leat_group_offset_note(log, row.leader_epoch_plus_1, row.metadata.data,
                                   row.metadata.bytes) != LEAT_OK)
            return false;
    }
    if (group) leat_group_bytes_count(group);
    return !reader->failed;
}

/* A classic group's members and generation; its committed offsets have separate records. */
static bool replay_group(struct leat_groups *groups, struct leat_msg_reader *reader)
{
    struct leat_stored_record record;
    uint32_t left = leat_record_classic_read(reader, &record);
    struct leat_classic *classic = reader->failed ? NULL : leat_classic_decode(reader);
    if (!classic) return false;
    if (left > 1)
        (void)leat_msg_row_read_behind(reader, leat_record_classic_row(), &record,
                                       offsetof(struct leat_stored_record, classic), left - 1);
    struct leat_group *group = leat_groups_group_find(groups, record.name);
    if (!group && groups->group_count < LEAT_GROUPS_PER_HOME_MAX) {
        group = leat_group_create(record.name, LEAT_GROUPS_CLASSIC);
        if (group) {
            group->maker = record.maker;
            leat_groups_group_add(groups, group);
        }
    }
    if (!group || reader->failed) {
        leat_classic_destroy(&classic);
        return false;
    }
    leat_classic_destroy(&group->classic);
    group->classic = classic;
    group->mode = LEAT_GROUPS_CLASSIC;
    group->generation = record.generation;
    group->member_count = 0; /* a native group without members has become a classic group */
    leat_group_bytes_count(group);
    return true;
}

static bool replay_record(struct leat_groups *groups, const struct leat_record *record)
{
    struct leat_msg_reader reader, ahead;
    struct leat_stored_record stored;
    leat_msg_reader_init(&reader, record->value, record->value_bytes);
    ahead = reader;
    (void)leat_msg_read_array(&ahead);
    const uint32_t kind = leat_msg_read_u32(&ahead);
    if (ahead.failed) return false;
    switch (kind) {
    case RECORD_NOTHING:
        return true;
    case RECORD_NATIVE_GROUP:
        (void)leat_record_native_read(&reader, &stored);
        return group_take(groups, &reader);
    case RECORD_COMMIT:
        return replay_commit(groups, &reader);
    case RECORD_DELETE:
        (void)leat_record_delete_read(&reader, &stored);
        if (!reader.failed) leat_groups_group_remove(groups, stored.name);
        return !reader.failed;
    case RECORD_CLASSIC_GROUP:
        return replay_group(groups, &reader);
    default:
        return false;
    }
}

static void app_on_replay(void *ctx, const struct leat_batch *batch)
{
    struct leat_groups *groups = ctx;
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, batch, batch->bytes + LEAT_BATCH_HEADER_BYTES,
                            batch->byte_count - LEAT_BATCH_HEADER_BYTES);
    leat_err rc;
    while ((rc = leat_record_next(&reader, &record)) == LEAT_OK)
        if (!replay_record(groups, &record)) break;
    if (rc != LEAT_E_NOT_FOUND)
        leat_groups_break(groups, LEAT_E_DAMAGED, "a stored change of its table does not read");
}

static void app_on_read(void *ctx)
{
    leat_groups_is_read(ctx);
}

struct leat_log_app leat_groups_app(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    return (struct leat_log_app){.ctx = groups,
                                 .snapshot_bytes = app_snapshot_bytes,
                                 .snapshot_write = app_snapshot_write,
                                 .on_restore = app_on_restore,
                                 .on_replay = app_on_replay,
                                 .on_read = app_on_read};
}
