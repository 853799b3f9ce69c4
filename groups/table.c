/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one home: see table.h. */
#include "groups/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log_rows.h"
#include "base/mem.h"
#include "groups/stored.h"

_Thread_local uint64_t leat_group_steps;

static int ref_order(const void *a, const void *b)
{
    return leat_log_ref_order(*(const struct leat_log_ref *)a, *(const struct leat_log_ref *)b);
}

size_t leat_log_refs_sort(struct leat_log_ref *refs, size_t count)
{
    size_t kept = 0;
    if (count > 0) qsort(refs, count, sizeof *refs, ref_order);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !leat_log_ref_equal(refs[kept - 1], refs[i])) refs[kept++] = refs[i];
    return kept;
}

static void log_free(struct leat_group_log *log)
{
    leat_mem_free(log->groups);
    leat_mem_free(log->metadata);
}

bool leat_group_peopled(const struct leat_group *group)
{
    return group->member_count > 0 || (group->classic && group->classic->member_count > 0);
}

struct leat_group *leat_group_create(const char *name, enum leat_groups_mode mode)
{
    struct leat_group *group = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *group);
    if (!group) return NULL;
    snprintf(group->name, sizeof group->name, "%s", name);
    group->mode = mode;
    group->next_serial = 1;
    leat_group_bytes_count(group);
    return group;
}

void leat_group_destroy(struct leat_group **group)
{
    struct leat_group *it = *group;
    if (!it) return;
    for (uint32_t i = 0; i < it->log_count; i++)
        log_free(&it->logs[i]);
    if (it->room) leat_groups_room_count(it->room, it->maker, it->memory_bytes, 0);
    leat_classic_destroy(&it->classic);
    leat_mem_free(it->logs);
    leat_mem_free(it->members);
    leat_mem_free(it);
    *group = NULL;
}

/* ---- members ---- */

struct leat_group_member *leat_group_member_find(struct leat_group *group, const char *id)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!group->members[i].gone && strcmp(group->members[i].id, id) == 0)
            return &group->members[i];
    return NULL;
}

struct leat_group_member *leat_group_member_add(struct leat_group *group)
{
    void *members = leat_mem_realloc(LEAT_MEM_BROKER, group->members, group->member_count + 1,
                                     sizeof *group->members);
    if (!members) return NULL;
    group->members = members;
    struct leat_group_member *member = &group->members[group->member_count++];
    memset(member, 0, sizeof *member);
    member->serial = group->next_serial++;
    return member;
}

void leat_group_members_sweep(struct leat_group *group)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!group->members[i].gone) group->members[kept++] = group->members[i];
    group->member_count = kept;
}

/* ---- logs ---- */

static uint32_t log_index(const struct leat_group *group, struct leat_log_ref log)
{
    return (uint32_t)LEAT_LOG_ROWS_FROM(group->logs, group->log_count, log, log);
}

struct leat_group_log *leat_group_log_find(struct leat_group *group, struct leat_log_ref log)
{
    uint32_t i = log_index(group, log);
    return i < group->log_count && leat_log_ref_equal(group->logs[i].log, log) ? &group->logs[i]
                                                                               : NULL;
}

struct leat_group_log *leat_group_log_add(struct leat_group *group, struct leat_log_ref log)
{
    struct leat_group_log *found = leat_group_log_find(group, log);
    if (found) return found;
    if (group->log_count == group->log_room) {
        uint32_t room = group->log_room ? group->log_room * 2 : 4;
        void *logs = leat_mem_realloc(LEAT_MEM_BROKER, group->logs, room, sizeof *group->logs);
        if (!logs) return NULL;
        group->logs = logs;
        group->log_room = room;
    }
    uint32_t i = log_index(group, log);
    memmove(&group->logs[i + 1], &group->logs[i], (group->log_count - i) * sizeof *group->logs);
    leat_group_steps += group->log_count - i;
    group->logs[i] = (struct leat_group_log){.log = log};
    group->log_count++;
    return &group->logs[i];
}

leat_err leat_group_logs_add(struct leat_group *group, const struct leat_log_ref *refs,
                             size_t count)
{
    uint32_t fresh = 0;
    for (size_t i = 0; i < count; i++)
        fresh += !leat_group_log_find(group, refs[i]);
    if (fresh == 0) return LEAT_OK;
    if (fresh > group->log_room - group->log_count) {
        uint32_t room = group->log_count + fresh;
        void *logs = leat_mem_realloc(LEAT_MEM_BROKER, group->logs, room, sizeof *group->logs);
        if (!logs) return LEAT_E_NO_MEMORY;
        group->logs = logs;
        group->log_room = room;
    }
    /* From the end: the place of each row is free then. */
    uint32_t old = group->log_count, at = old + fresh;
    group->log_count = at;
    for (size_t i = count; i > 0 && at > old;) {
        int order = old == 0 ? -1 : leat_log_ref_order(group->logs[old - 1].log, refs[i - 1]);
        leat_group_steps++;
        if (order > 0)
            group->logs[--at] = group->logs[--old];
        else if (order < 0)
            group->logs[--at] = (struct leat_group_log){.log = refs[--i]};
        else
            i--;
    }
    return LEAT_OK;
}

void leat_group_logs_forget_unread(struct leat_group *group)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->log_count; i++) {
        const struct leat_group_log *log = &group->logs[i];
        if (log->has_offset || log->first_group > 0 || log->group_count > 0)
            group->logs[kept++] = *log;
        else
            log_free(&group->logs[i]);
    }
    group->log_count = kept;
}

uint32_t leat_group_stream_drop(struct leat_group *group, uint32_t stream)
{
    const uint32_t from = log_index(group, (struct leat_log_ref){.stream = stream});
    uint32_t end = from;
    for (; end < group->log_count && group->logs[end].log.stream == stream; end++)
        log_free(&group->logs[end]);
    const uint32_t dropped = end - from;
    if (dropped == 0) return 0;
    memmove(&group->logs[from], &group->logs[end], (group->log_count - end) * sizeof *group->logs);
    group->log_count -= dropped;
    return dropped;
}

/* ---- commits ---- */

/* Finished segment groups at the front are forgotten: first_group says it. */
static void groups_advance(struct leat_group_log *log)
{
    uint32_t used = 0;
    while (used < log->group_count && log->groups[used].group == log->first_group) {
        if (log->groups[used].offset != LEAT_SEGMENT_GROUP_DONE) {
            log->has_offset = true;
            log->offset = log->groups[used++].offset;
            break;
        }
        log->first_group++;
        used++;
    }
    log->group_count -= used;
    if (used) memmove(log->groups, log->groups + used, log->group_count * sizeof *log->groups);
}

static leat_err group_commit(struct leat_group_log *log, uint64_t segment_group, uint64_t offset,
                             bool force)
{
    if (segment_group < log->first_group) return LEAT_OK; /* finished already */
    if (segment_group - log->first_group > LEAT_GROUPS_AHEAD_MAX) return LEAT_E_AGAIN;
    if (segment_group == log->first_group) {
        if (offset == LEAT_SEGMENT_GROUP_DONE) {
            log->first_group++;
            log->has_offset = false;
            log->offset = 0;
            groups_advance(log);
        } else if (force || !log->has_offset || offset > log->offset) {
            log->has_offset = true;
            log->offset = offset;
        }
        return LEAT_OK;
    }
    uint32_t i = 0;
    while (i < log->group_count && log->groups[i].group < segment_group)
        i++;
    if (i < log->group_count && log->groups[i].group == segment_group) {
        if (force || offset > log->groups[i].offset) log->groups[i].offset = offset;
        return LEAT_OK;
    }
    void *groups =
        leat_mem_realloc(LEAT_MEM_BROKER, log->groups, log->group_count + 1, sizeof *log->groups);
    if (!groups) return LEAT_E_NO_MEMORY;
    log->groups = groups;
    memmove(&log->groups[i + 1], &log->groups[i], (log->group_count - i) * sizeof *log->groups);
    log->groups[i] = (struct leat_segment_group){segment_group, offset};
    log->group_count++;
    return LEAT_OK;
}

bool leat_group_segment_group_known(const struct leat_group_log *log, uint64_t segment_group)
{
    if (segment_group <= log->first_group) return true;
    for (uint32_t i = 0; i < log->group_count; i++)
        if (log->groups[i].group == segment_group) return true;
    return false;
}

bool leat_group_skip(struct leat_group_log *log, uint64_t segment_group)
{
    if (segment_group <= log->first_group) return false;
    uint32_t gone = 0;
    while (gone < log->group_count && log->groups[gone].group < segment_group)
        gone++;
    log->group_count -= gone;
    if (gone) memmove(log->groups, log->groups + gone, log->group_count * sizeof *log->groups);
    log->first_group = segment_group;
    log->has_offset = false;
    log->offset = 0;
    groups_advance(log);
    return true;
}

leat_err leat_group_commit(struct leat_group *group, struct leat_group_log *log,
                           int64_t segment_group, uint64_t offset, bool force)
{
    if (group->mode == LEAT_GROUPS_PARALLEL && offset == LEAT_GROUP_GROUPS_GONE) {
        (void)leat_group_skip(log, (uint64_t)segment_group);
        return LEAT_OK;
    }
    if (group->mode == LEAT_GROUPS_PARALLEL)
        return group_commit(log, (uint64_t)segment_group, offset, force);
    if (offset == LEAT_SEGMENT_GROUP_DONE) {
        log->has_offset = false;
        log->offset = 0;
        return leat_group_offset_note(log, 0, NULL, 0);
    }
    if (force || !log->has_offset || offset > log->offset) {
        log->has_offset = true;
        log->offset = offset;
    }
    return LEAT_OK;
}

leat_err leat_group_offset_note(struct leat_group_log *log, uint32_t leader_epoch_plus_1,
                                const char *metadata, uint32_t metadata_bytes)
{
    char *bytes = NULL;
    if (metadata_bytes > 0) {
        bytes = leat_mem_calloc(LEAT_MEM_BROKER, 1, metadata_bytes);
        if (!bytes) return LEAT_E_NO_MEMORY;
        memcpy(bytes, metadata, metadata_bytes);
    }
    leat_mem_free(log->metadata);
    log->metadata = bytes;
    log->metadata_bytes = metadata_bytes;
    log->leader_epoch_plus_1 = leader_epoch_plus_1;
    return LEAT_OK;
}

void leat_group_classic_drop(struct leat_group *group)
{
    leat_classic_destroy(&group->classic);
    leat_group_bytes_count(group);
}

bool leat_group_idle(const struct leat_group *group)
{
    if (group->member_count > 0 || (group->classic && group->classic->member_count > 0))
        return false;
    for (uint32_t i = 0; i < group->log_count; i++)
        if (group->logs[i].has_offset || group->logs[i].first_group > 0 ||
            group->logs[i].group_count > 0)
            return false;
    return true;
}

/* ---- bytes ---- */

static size_t uint_bytes(uint64_t value)
{
    return value < 128 ? 1 : value < 256 ? 2 : value < 65536 ? 3 : value <= UINT32_MAX ? 5 : 9;
}

/* What malloc and its tags add to a block, and leave between blocks; a maker, encoded. */
enum { BLOCK_BYTES = 40, MAKER_BYTES = 9 };

size_t leat_group_memory_bytes_max(void)
{
    return sizeof(struct leat_group) + sizeof(struct leat_classic) + 3 * BLOCK_BYTES;
}

size_t leat_group_log_memory_bytes(void)
{
    return sizeof(struct leat_group_log);
}

static size_t log_memory_bytes(const struct leat_group_log *log)
{
    size_t bytes = 0;
    if (log->groups) bytes += log->group_count * sizeof *log->groups + BLOCK_BYTES;
    if (log->metadata) bytes += log->metadata_bytes + BLOCK_BYTES;
    return bytes;
}

static void memory_count(struct leat_group *group, size_t of_logs)
{
    size_t before = group->memory_bytes;
    group->memory_bytes = sizeof *group + BLOCK_BYTES + of_logs;
    if (group->classic) group->memory_bytes += sizeof *group->classic + BLOCK_BYTES;
    if (group->members)
        group->memory_bytes += group->member_count * sizeof *group->members + BLOCK_BYTES;
    if (group->logs) group->memory_bytes += group->log_room * sizeof *group->logs + BLOCK_BYTES;
    if (group->room) leat_groups_room_count(group->room, group->maker, before, group->memory_bytes);
}

void leat_group_room_enter(struct leat_group *group, struct leat_groups_room *room)
{
    LEAT_ASSERT(!group->room);
    group->room = room;
    if (room) leat_groups_room_count(room, group->maker, 0, group->memory_bytes);
}

void leat_group_maker_adopt(struct leat_group *group, uint64_t address)
{
    if (group->maker != 0 || address == 0) return;
    if (group->room) leat_groups_room_count(group->room, group->maker, group->memory_bytes, 0);
    group->maker = address;
    if (group->room) leat_groups_room_count(group->room, group->maker, 0, group->memory_bytes);
}

/* Offset and owner count in full, whatever they are: a commit and a sharing out do not need more room. Numbers
 * of logs count as they are written: with five bytes each the logs of the largest stream would not fit. */
size_t leat_group_log_bytes(const struct leat_group *group, struct leat_log_ref log)
{
    enum { ARRAY = 1, OWNER = 5, HAS_OFFSET = 1, OFFSET = 9, GROUPS = 1, GROUPS_ARRAY_MAX = 3 };
    size_t numbers = uint_bytes(log.stream) + uint_bytes(log.streamlet) + uint_bytes(log.log);
    size_t groups =
        group->mode == LEAT_GROUPS_PARALLEL ? 2 * OFFSET + GROUPS_ARRAY_MAX : 3 * GROUPS;
    return ARRAY + numbers + OWNER + HAS_OFFSET + OFFSET + groups;
}

void leat_group_bytes_count(struct leat_group *group)
{
    size_t bytes = 64 + MAKER_BYTES + strlen(group->name);
    size_t memory = 0;
    for (uint32_t i = 0; i < group->member_count; i++)
        bytes += 24 + LEAT_GROUPS_MEMBER_BYTES_MAX + (size_t)group->members[i].stream_count * 5;
    for (uint32_t i = 0; i < group->log_count; i++) {
        const struct leat_group_log *log = &group->logs[i];
        bytes += leat_group_log_bytes(group, log->log);
        memory += log_memory_bytes(log);
        bytes += (size_t)log->group_count * LEAT_GROUP_SEGMENT_GROUP_BYTES;
        if (log->leader_epoch_plus_1 > 0 || log->metadata_bytes > 0)
            bytes += LEAT_GROUP_NOTE_BYTES + log->metadata_bytes;
        /* A group that was of another mode. */
        if (group->mode != LEAT_GROUPS_PARALLEL)
            bytes += uint_bytes(log->first_group) + uint_bytes(log->from_group) - 2 +
                     (log->group_count > 0 ? 2 : 0);
    }
    /* Its members are stored where there is room, so they do not count. */
    if (group->classic)
        bytes += 32 + 2 * LEAT_CLASSIC_TEXT_BYTES_MAX + LEAT_GROUPS_MEMBER_BYTES_MAX;
    group->bytes = bytes;
    memory_count(group, memory);
}

static void log_encode(struct leat_msg_writer *writer, const struct leat_group_log *log)
{
    enum { READ = 9, NOTED = 11 };
    bool noted = log->leader_epoch_plus_1 > 0 || log->metadata_bytes > 0;
    const struct leat_stored_log stored = {.log = *log,
                                           .number_count = 2 * log->group_count,
                                           .fields = noted ? NOTED : READ,
                                           .metadata = {log->metadata, log->metadata_bytes}};
    leat_stored_log_write(writer, &stored);
    for (uint32_t g = 0; g < log->group_count; g++) {
        leat_msg_write_u64(writer, log->groups[g].group);
        leat_msg_write_u64(writer, log->groups[g].offset);
    }
    LEAT_MSG_WRITE_BEHIND(writer, leat_stored_log, &stored, number_count);
}

/* For reading or writing the fields after the elements of a list of a group, or after its classic group. */
#define BEHIND(member) offsetof(struct leat_stored_group, member)

static const struct leat_msg_row *group_row(bool classic)
{
    return classic ? leat_stored_classic_group_row() : leat_stored_group_row();
}

void leat_group_encode(struct leat_msg_writer *writer, const struct leat_group *group,
                       bool with_members)
{
    enum { FIELDS = 6 };
    const struct leat_msg_row *row = group_row(group->classic != NULL);
    struct leat_stored_group stored = {
        .generation = group->generation,
        .next_serial = group->next_serial,
        .mode = group->mode,
        .log_count = group->log_count,
        .fields = FIELDS + (group->classic != NULL) + (group->maker != 0),
        .maker = group->maker,
    };
    memcpy(stored.name, group->name, sizeof stored.name);
    for (uint32_t i = 0; i < group->member_count; i++)
        stored.member_count +=
            !group->members[i].fresh; /* the gone keep their place in this generation */
    leat_msg_row_write(writer, row, &stored);
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = &group->members[i];
        if (member->fresh) continue;
        leat_stored_member_write(writer, member);
        for (uint32_t s = 0; s < member->stream_count; s++)
            leat_msg_write_u64(writer, member->streams[s]);
    }
    leat_msg_row_write_behind(writer, row, &stored, BEHIND(member_count));
    for (uint32_t i = 0; i < group->log_count; i++)
        log_encode(writer, &group->logs[i]);
    leat_msg_row_write_behind(writer, row, &stored, BEHIND(log_count));
    if (!group->classic) return;
    leat_classic_encode(writer, group->classic, with_members);
    leat_msg_row_write_behind(writer, row, &stored, BEHIND(classic));
}

static bool member_decode(struct leat_msg_reader *reader, struct leat_group *group)
{
    struct leat_group_member stored;
    (void)leat_stored_member_read(reader, &stored);
    if (reader->failed || stored.stream_count > LEAT_GROUPS_STREAMS_MAX ||
        group->member_count == LEAT_GROUPS_MEMBERS_MAX)
        return false;
    struct leat_group_member *member = leat_group_member_add(group);
    if (!member) return false;
    group->next_serial--; /* the stored counter counts */
    uint32_t before = group->member_count > 1 ? member[-1].serial : 0;
    if (stored.serial <= before || stored.serial >= group->next_serial)
        return false; /* owners are named by it */
    *member = stored;
    for (uint32_t i = 0; i < stored.stream_count; i++)
        member->streams[i] = leat_msg_read_u32(reader);
    return true;
}

static bool log_decode(struct leat_msg_reader *reader, struct leat_group *group)
{
    struct leat_stored_log stored;
    uint32_t left = leat_stored_log_read(reader, &stored);
    const uint32_t numbers = stored.number_count;
    if (reader->failed || leat_group_log_find(group, stored.log.log) || numbers % 2 != 0 ||
        numbers > 2 * (LEAT_GROUPS_AHEAD_MAX + 1))
        return false;
    struct leat_group_log *log = leat_group_log_add(group, stored.log.log);
    if (!log) return false;
    *log = stored.log;
    if (numbers > 0) {
        log->groups = leat_mem_calloc(LEAT_MEM_BROKER, numbers / 2, sizeof *log->groups);
        if (!log->groups) return false;
    }
    log->group_count = numbers / 2;
    uint64_t before = log->first_group;
    for (uint32_t i = 0; i < log->group_count; i++) {
        log->groups[i].group = leat_msg_read_u64(reader);
        log->groups[i].offset = leat_msg_read_u64(reader);
        if (log->groups[i].group <= before) return false; /* commits look for their place in it */
        before = log->groups[i].group;
    }
    (void)LEAT_MSG_READ_BEHIND(reader, leat_stored_log, &stored, number_count, left);
    return leat_group_offset_note(log, stored.log.leader_epoch_plus_1, stored.metadata.data,
                                  stored.metadata.bytes) == LEAT_OK;
}

/* The fields after the name and the numbers. */
static bool group_read(struct leat_msg_reader *reader, struct leat_stored_group *stored,
                       uint32_t left, struct leat_group *group)
{
    const bool classic = stored->mode == LEAT_GROUPS_CLASSIC;
    const struct leat_msg_row *row = group_row(classic);
    for (uint32_t i = 0; i < stored->member_count; i++)
        if (!member_decode(reader, group)) return false;
    left = leat_msg_row_read_behind(reader, row, stored, BEHIND(member_count), left);
    for (uint32_t i = 0; i < stored->log_count; i++)
        if (!log_decode(reader, group)) return false;
    left = leat_msg_row_read_behind(reader, row, stored, BEHIND(log_count), left);
    if (classic && !reader->failed) {
        group->classic = leat_classic_decode(reader);
        (void)leat_msg_row_read_behind(reader, row, stored, BEHIND(classic), left - 1);
    }
    group->maker = stored->maker;
    return !reader->failed;
}

struct leat_group *leat_group_decode(struct leat_msg_reader *reader)
{
    enum { MODE_AT = 3 };
    struct leat_msg_reader ahead = *reader;
    struct leat_stored_group stored;
    (void)leat_msg_read_array(&ahead);
    leat_msg_skip_n(&ahead, MODE_AT);
    const bool classic = leat_msg_read_u32(&ahead) == LEAT_GROUPS_CLASSIC;
    uint32_t left = leat_msg_row_read(reader, group_row(classic), &stored);
    struct leat_group *group = NULL;
    if (!reader->failed && stored.next_serial > 0) /* serial 0 means no member */
        group = leat_group_create(stored.name, (enum leat_groups_mode)stored.mode);
    if (group) {
        group->generation = stored.generation;
        group->next_serial = stored.next_serial;
        if (group_read(reader, &stored, left, group)) {
            leat_group_bytes_count(group);
            return group;
        }
        leat_group_destroy(&group);
    }
    reader->failed = true;
    return NULL;
}
