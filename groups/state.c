/* SPDX-License-Identifier: Apache-2.0 */
/* The table as the home log keeps it: whole in start entries, change by change in batches. */
#include "groups/internal.h"

#include <string.h>

#include "base/assert.h"

/* Members of classic groups are taken along while there is room: without them a classic group goes on in its
 * generation, and its members join anew. */
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
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1] = {0};
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (text.bytes > LEAT_GROUPS_NAME_BYTES_MAX) return false;
    if (text.bytes) memcpy(name, text.text, text.bytes);
    struct leat_group *group = leat_groups_group_find(groups, name);
    for (uint32_t i = leat_msg_read_array(reader); i > 0 && !reader->failed; i--) {
        uint32_t fields = leat_msg_read_array(reader);
        if (fields != 5 && fields != 7) return false;
        struct leat_log_ref ref = leat_msg_read_log(reader);
        int64_t segment_group = leat_msg_read_i64(reader);
        uint64_t offset = leat_msg_read_u64(reader);
        uint32_t epoch = fields == 7 ? leat_msg_read_u32(reader) : 0;
        struct leat_msg_string metadata = {0};
        if (fields == 7) metadata = leat_msg_read_string(reader);
        if (reader->failed || !group) continue; /* deleted by what the snapshot already holds */
        struct leat_group_log *log = leat_group_log_add(group, ref);
        if (!log ||
            leat_group_commit(group, log, segment_group, offset, true) == LEAT_E_NO_MEMORY ||
            leat_group_offset_note(log, epoch, metadata.text, metadata.bytes) != LEAT_OK)
            return false;
    }
    if (group) leat_group_bytes_count(group);
    return !reader->failed;
}

/* A classic group's members and generation; what it has committed is recorded apart. */
static bool replay_group(struct leat_groups *groups, struct leat_msg_reader *reader,
                         bool with_maker)
{
    char name[LEAT_GROUPS_NAME_BYTES_MAX + 1] = {0};
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (text.bytes > LEAT_GROUPS_NAME_BYTES_MAX) return false;
    if (text.bytes) memcpy(name, text.text, text.bytes);
    uint32_t generation = leat_msg_read_u32(reader);
    struct leat_classic *classic = leat_classic_decode(reader);
    if (!classic) return false;
    uint64_t maker = with_maker ? leat_msg_read_u64(reader) : 0;
    struct leat_group *group = leat_groups_group_find(groups, name);
    if (!group && groups->group_count < LEAT_GROUPS_PER_HOME_MAX) {
        group = leat_group_create(name, LEAT_GROUPS_CLASSIC);
        if (group) {
            group->maker = maker;
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
    group->generation = generation;
    group->member_count = 0; /* a native group without members has become a classic group */
    leat_group_bytes_count(group);
    return true;
}

static bool replay_record(struct leat_groups *groups, const struct leat_record *record)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, record->value, record->value_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    uint32_t kind = leat_msg_read_u32(&reader);
    if (reader.failed) return false;
    if (kind == RECORD_NATIVE_GROUP) return group_take(groups, &reader);
    if (kind == RECORD_COMMIT) return replay_commit(groups, &reader);
    if (kind == RECORD_CLASSIC_GROUP) return replay_group(groups, &reader, fields > 4);
    if (kind == RECORD_DELETE) {
        char name[LEAT_GROUPS_NAME_BYTES_MAX + 1] = {0};
        struct leat_msg_string text = leat_msg_read_string(&reader);
        if (reader.failed || text.bytes > LEAT_GROUPS_NAME_BYTES_MAX) return false;
        memcpy(name, text.text, text.bytes);
        leat_groups_group_remove(groups, name);
    }
    return kind <= RECORD_DELETE;
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
