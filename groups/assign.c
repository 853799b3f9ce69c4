/* SPDX-License-Identifier: Apache-2.0 */
/* Which member reads which log or segment group of a generation. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "groups/table.h"

static bool member_reads(const struct leat_group_member *member, uint32_t stream)
{
    for (uint32_t i = 0; i < member->stream_count; i++)
        if (member->streams[i] == stream) return true;
    return false;
}

/* ---- ordered mode ---- */

/* The members that read a stream, ordered by the number of their logs; of equals the oldest first. */
struct readers {
    const uint32_t *counts; /* logs of each member */
    uint32_t count;
    uint16_t heap[LEAT_GROUPS_MEMBERS_MAX]; /* members */
    uint16_t place
        [LEAT_GROUPS_MEMBERS_MAX]; /* of each member in the heap, plus 1; 0: does not read this stream */
};

static bool reader_before(const struct readers *readers, uint16_t a, uint16_t b)
{
    leat_group_steps++;
    if (readers->counts[a] != readers->counts[b]) return readers->counts[a] < readers->counts[b];
    return a < b;
}

static void reader_put(struct readers *readers, uint32_t at, uint16_t member)
{
    readers->heap[at] = member;
    readers->place[member] = (uint16_t)(at + 1);
}

static void reader_rise(struct readers *readers, uint32_t at)
{
    uint16_t member = readers->heap[at];
    while (at > 0 && reader_before(readers, member, readers->heap[(at - 1) / 2])) {
        reader_put(readers, at, readers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    reader_put(readers, at, member);
}

static void reader_sink(struct readers *readers, uint32_t at)
{
    uint16_t member = readers->heap[at];
    for (uint32_t below; (below = 2 * at + 1) < readers->count; at = below) {
        if (below + 1 < readers->count &&
            reader_before(readers, readers->heap[below + 1], readers->heap[below]))
            below++;
        if (!reader_before(readers, readers->heap[below], member)) break;
        reader_put(readers, at, readers->heap[below]);
    }
    reader_put(readers, at, member);
}

static void readers_find(struct readers *readers, const struct leat_group *group, uint32_t stream)
{
    readers->count = 0;
    memset(readers->place, 0, sizeof readers->place);
    for (uint32_t i = 0; i < group->member_count; i++) {
        leat_group_steps++;
        if (!member_reads(&group->members[i], stream)) continue;
        reader_put(readers, readers->count, (uint16_t)i);
        reader_rise(readers, readers->count++);
    }
}

/* They stand in the order of their serials. UINT32_MAX: nobody's. */
static uint32_t serial_find(const struct leat_group *group, uint32_t serial)
{
    uint32_t low = 0, high = group->member_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (group->members[middle].serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return low < group->member_count && group->members[low].serial == serial ? low : UINT32_MAX;
}

static uint32_t owner_find(const struct leat_group *group, const struct leat_group_log *log)
{
    uint32_t owner = serial_find(group, log->owner);
    if (owner == UINT32_MAX || !member_reads(&group->members[owner], log->log.stream))
        return UINT32_MAX;
    return owner;
}

/* First each member keeps its logs; then logs move, one at a time, to a member with at least two logs fewer. So a
 * member loses only as many logs as balance needs. */
static void assign_ordered(struct leat_group *group)
{
    uint32_t counts[LEAT_GROUPS_MEMBERS_MAX] = {0};
    struct readers readers = {.counts = counts};
    for (uint32_t i = 0; i < group->log_count; i++) {
        uint32_t owner = owner_find(group, &group->logs[i]);
        if (owner == UINT32_MAX)
            group->logs[i].owner = 0;
        else
            counts[owner]++;
    }
    for (uint32_t i = 0; i < group->log_count; i++) {
        struct leat_group_log *log = &group->logs[i];
        if (i == 0 || log->log.stream != group->logs[i - 1].log.stream)
            readers_find(&readers, group, log->log.stream);
        if (readers.count == 0) continue;
        uint16_t least = readers.heap[0];
        uint32_t owner = serial_find(group, log->owner);
        if (owner != UINT32_MAX && counts[owner] < counts[least] + 2) continue;
        if (owner != UINT32_MAX) {
            counts[owner]--;
            reader_rise(&readers, readers.place[owner] - 1U);
        }
        counts[least]++;
        reader_sink(&readers, readers.place[least] - 1U);
        log->owner = group->members[least].serial;
    }
}

/* Joins without end use up the serials: the members of this generation get the first ones again, in the same order. */
static void serials_renew(struct leat_group *group)
{
    if (group->next_serial <= LEAT_GROUP_SERIALS_KEPT) return;
    for (uint32_t i = 0; i < group->log_count; i++)
        group->logs[i].owner = serial_find(group, group->logs[i].owner) + 1; /* 0: nobody */
    for (uint32_t i = 0; i < group->member_count; i++)
        group->members[i].serial = i + 1;
    group->next_serial = group->member_count + 1;
}

void leat_group_assign(struct leat_group *group)
{
    LEAT_ASSERT_CMP(group->member_count, <=, LEAT_GROUPS_MEMBERS_MAX);
    serials_renew(group);
    if (group->mode != LEAT_GROUPS_PARALLEL) {
        assign_ordered(group);
        return;
    }
    for (uint32_t i = 0; i < group->log_count; i++)
        group->logs[i].from_group = group->logs[i].first_group;
}

/* ---- what is whose ---- */

/* How many members read the stream, and which of them `serial` is. */
static uint32_t readers_count(const struct leat_group *group, uint32_t stream, uint32_t serial,
                              uint32_t *out_place)
{
    uint32_t count = 0;
    *out_place = UINT32_MAX;
    for (uint32_t i = 0; i < group->member_count; i++) {
        leat_group_steps++;
        if (group->members[i].fresh || !member_reads(&group->members[i], stream)) continue;
        if (group->members[i].serial == serial) *out_place = count;
        count++;
    }
    return count;
}

/* Parallel mode: segment group g of a log goes to reader (g - from_group + place of the log) mod readers.
 * The place turns from log to log, so that a log with few groups does not always ask the first. */
static uint32_t log_turn(const struct leat_group_log *log, uint32_t readers)
{
    return (log->log.streamlet + log->log.log) % readers;
}

uint32_t leat_group_owner(const struct leat_group *group, const struct leat_group_log *log,
                          int64_t segment_group)
{
    if (group->mode == LEAT_GROUPS_ORDERED) return log->owner;
    uint32_t place, readers = readers_count(group, log->log.stream, 0, &place);
    if (readers == 0 || segment_group < 0 || (uint64_t)segment_group < log->from_group) return 0;
    uint64_t at = ((uint64_t)segment_group - log->from_group + log_turn(log, readers)) % readers;
    for (uint32_t i = 0; i < group->member_count; i++) {
        if (group->members[i].fresh || !member_reads(&group->members[i], log->log.stream)) continue;
        if (at-- == 0) return group->members[i].serial;
    }
    return 0;
}

leat_err leat_group_assigned(const struct leat_group *group, const struct leat_group_member *member,
                             struct leat_groups_assigned **out, size_t *out_count)
{
    size_t most = 0, count = 0;
    for (uint32_t i = 0; i < group->log_count; i++)
        most += group->mode != LEAT_GROUPS_ORDERED || group->logs[i].owner == member->serial;
    struct leat_groups_assigned *rows = leat_mem_calloc(LEAT_MEM_BROKER, most + 1, sizeof *rows);
    if (!rows) return LEAT_E_NO_MEMORY;
    uint32_t place = UINT32_MAX, readers = 0;
    for (uint32_t i = 0; i < group->log_count; i++) {
        const struct leat_group_log *log = &group->logs[i];
        leat_group_steps++;
        if (group->mode == LEAT_GROUPS_ORDERED) {
            if (log->owner == member->serial)
                rows[count++] = (struct leat_groups_assigned){log->log, 0, 1};
            continue;
        }
        /* The same for all logs of a stream. */
        if (i == 0 || log->log.stream != group->logs[i - 1].log.stream)
            readers = readers_count(group, log->log.stream, member->serial, &place);
        if (place == UINT32_MAX) continue;
        uint64_t first =
            log->from_group + (place + readers - log_turn(log, readers) % readers) % readers;
        rows[count++] = (struct leat_groups_assigned){log->log, first, readers};
    }
    *out = rows;
    *out_count = count;
    return LEAT_OK;
}
