/* SPDX-License-Identifier: Apache-2.0 */
/* The table as the home log keeps it: whole in start entries, change by change in batches. */
#include "sets/internal.h"

#include <string.h>

#include "base/assert.h"

/* Members of groups are taken along while there is room: without them a group goes on in its
 * generation, and its members join anew. */
static void snapshot_encode(struct leat_sets *sets, struct leat_msg_writer *writer)
{
    size_t used = leat_sets_table_bytes(sets);
    leat_msg_writer_init(writer, sets->scratch, LEAT_SETS_BATCH_BYTES_MAX);
    leat_msg_write_array(writer, sets->set_count);
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_group *group = sets->sets[i]->group;
        bool room = group && used + group->stored_bytes <= LEAT_SETS_TABLE_BYTES_MAX;
        if (room) used += group->stored_bytes;
        leat_set_encode(writer, sets->sets[i], room);
    }
    LEAT_ASSERT(!writer->overflow); /* leat_sets_table_bytes() is an upper bound and is limited */
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

static bool set_take(struct leat_sets *sets, struct leat_msg_reader *reader)
{
    struct leat_set *set = leat_set_decode(reader);
    if (!set) return false;
    leat_sets_set_remove(sets, set->name);
    if (sets->set_count == LEAT_SETS_PER_HOME_MAX) {
        leat_set_destroy(&set);
        return false;
    }
    leat_sets_set_add(sets, set);
    return true;
}

static void app_on_restore(void *ctx, const uint8_t *bytes, size_t count)
{
    struct leat_sets *sets = ctx;
    struct leat_msg_reader reader;
    leat_sets_table_clear(sets);
    if (count == 0) return;
    leat_msg_reader_init(&reader, bytes, count);
    bool ok = true;
    for (uint32_t i = leat_msg_read_array(&reader); i > 0 && ok; i--)
        ok = set_take(sets, &reader);
    if (!ok || reader.failed) leat_sets_break(sets, LEAT_E_DAMAGED, "its table does not read");
}

static bool replay_commit(struct leat_sets *sets, struct leat_msg_reader *reader)
{
    char name[LEAT_SETS_NAME_BYTES_MAX + 1] = {0};
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (text.bytes > LEAT_SETS_NAME_BYTES_MAX) return false;
    if (text.bytes) memcpy(name, text.text, text.bytes);
    struct leat_set *set = leat_sets_set_find(sets, name);
    for (uint32_t i = leat_msg_read_array(reader); i > 0 && !reader->failed; i--) {
        uint32_t fields = leat_msg_read_array(reader);
        if (fields != 5 && fields != 7) return false;
        struct leat_log_ref ref;
        ref.stream = leat_msg_read_u32(reader);
        ref.streamlet = leat_msg_read_u32(reader);
        ref.log = leat_msg_read_u32(reader);
        int64_t group = leat_msg_read_i64(reader);
        uint64_t offset = leat_msg_read_u64(reader);
        uint32_t epoch = fields == 7 ? leat_msg_read_u32(reader) : 0;
        struct leat_msg_string metadata = {0};
        if (fields == 7) metadata = leat_msg_read_string(reader);
        if (reader->failed || !set) continue; /* deleted by what the snapshot already holds */
        struct leat_set_log *log = leat_set_log_add(set, ref);
        if (!log || leat_set_commit(set, log, group, offset, true) == LEAT_E_NO_MEMORY ||
            leat_set_offset_note(log, epoch, metadata.text, metadata.bytes) != LEAT_OK)
            return false;
    }
    if (set) leat_set_bytes_count(set);
    return !reader->failed;
}

/* A group's members and generation; what it has committed is recorded apart. */
static bool replay_group(struct leat_sets *sets, struct leat_msg_reader *reader, bool with_maker)
{
    char name[LEAT_SETS_NAME_BYTES_MAX + 1] = {0};
    struct leat_msg_string text = leat_msg_read_string(reader);
    if (text.bytes > LEAT_SETS_NAME_BYTES_MAX) return false;
    if (text.bytes) memcpy(name, text.text, text.bytes);
    uint32_t generation = leat_msg_read_u32(reader);
    struct leat_group *group = leat_group_decode(reader);
    if (!group) return false;
    uint64_t maker = with_maker ? leat_msg_read_u64(reader) : 0;
    struct leat_set *set = leat_sets_set_find(sets, name);
    if (!set && sets->set_count < LEAT_SETS_PER_HOME_MAX) {
        set = leat_set_create(name, LEAT_SETS_GROUP);
        if (set) {
            set->maker = maker;
            leat_sets_set_add(sets, set);
        }
    }
    if (!set || reader->failed) {
        leat_group_destroy(&group);
        return false;
    }
    leat_group_destroy(&set->group);
    set->group = group;
    set->mode = LEAT_SETS_GROUP;
    set->generation = generation;
    set->member_count = 0; /* a native set without members has become a group */
    leat_set_bytes_count(set);
    return true;
}

static bool replay_record(struct leat_sets *sets, const struct leat_record *record)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, record->value, record->value_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    uint32_t kind = leat_msg_read_u32(&reader);
    if (reader.failed) return false;
    if (kind == RECORD_SET) return set_take(sets, &reader);
    if (kind == RECORD_COMMIT) return replay_commit(sets, &reader);
    if (kind == RECORD_GROUP) return replay_group(sets, &reader, fields > 4);
    if (kind == RECORD_DELETE) {
        char name[LEAT_SETS_NAME_BYTES_MAX + 1] = {0};
        struct leat_msg_string text = leat_msg_read_string(&reader);
        if (reader.failed || text.bytes > LEAT_SETS_NAME_BYTES_MAX) return false;
        memcpy(name, text.text, text.bytes);
        leat_sets_set_remove(sets, name);
    }
    return kind <= RECORD_DELETE;
}

static void app_on_replay(void *ctx, const struct leat_batch *batch)
{
    struct leat_sets *sets = ctx;
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, batch, batch->bytes + LEAT_BATCH_HEADER_BYTES,
                            batch->byte_count - LEAT_BATCH_HEADER_BYTES);
    leat_err rc;
    while ((rc = leat_record_next(&reader, &record)) == LEAT_OK)
        if (!replay_record(sets, &record)) break;
    if (rc != LEAT_E_NOT_FOUND)
        leat_sets_break(sets, LEAT_E_DAMAGED, "a stored change of its table does not read");
}

static void app_on_read(void *ctx)
{
    leat_sets_is_read(ctx);
}

struct leat_log_app leat_sets_app(struct leat_sets *sets)
{
    return (struct leat_log_app){.ctx = sets,
                                 .snapshot_bytes = app_snapshot_bytes,
                                 .snapshot_write = app_snapshot_write,
                                 .on_restore = app_on_restore,
                                 .on_replay = app_on_replay,
                                 .on_read = app_on_read};
}
