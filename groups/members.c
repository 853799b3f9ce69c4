/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a group: joins, heartbeats, leaves, silence, and the new assignment that follows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "groups/internal.h"

/* ---- rebalance ---- */

void leat_groups_prepare(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (group->phase == LEAT_GROUP_PREPARING) return;
    uint64_t longest_ms = 0;
    group->phase = LEAT_GROUP_PREPARING;
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!group->members[i].gone && group->members[i].session_ms > longest_ms)
            longest_ms = group->members[i].session_ms;
    group->settle_at_us = leat_groups_now_us(groups) + groups->options.settle_us;
    group->give_up_at_us = leat_groups_now_us(groups) + longest_ms * 1000;
}

static leat_err stream_gather(struct leat_groups *groups, struct leat_group *group, uint32_t stream,
                              uint64_t *added)
{
    uint32_t streamlets = 0, logs = 0;
    if (!groups->options.broker.stream_size(groups->options.ctx, stream, &streamlets, &logs))
        return LEAT_OK;
    uint64_t count = (uint64_t)streamlets * logs;
    if (count > LEAT_GROUPS_LOGS_MAX) return LEAT_E_TOO_MANY;
    struct leat_log_ref *refs = leat_mem_calloc(LEAT_MEM_BROKER, count + 1, sizeof *refs);
    if (!refs) return LEAT_E_NO_MEMORY;
    uint64_t fresh = 0;
    for (uint64_t i = 0; i < count; i++) {
        refs[i] = (struct leat_log_ref){stream, (uint32_t)(i / logs), (uint32_t)(i % logs)};
        fresh += !leat_group_log_find(group, refs[i]);
    }
    leat_err rc = LEAT_E_TOO_MANY;
    *added += fresh;
    const char *why = NULL;
    if (fresh > 0)
        why = leat_groups_lacks(groups, group->maker, 0,
                                *added * leat_group_log_bytes(group, refs[0]),
                                *added * leat_group_log_memory_bytes());
    if (!why && group->log_count + fresh <= LEAT_GROUPS_LOGS_MAX)
        rc = leat_group_logs_add(group, refs, count);
    leat_mem_free(refs);
    return rc;
}

static int number_order(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* All logs of the members' streams, each stream once; logs of other streams keep their offsets. */
static leat_err logs_gather(struct leat_groups *groups, struct leat_group *group)
{
    size_t most = (size_t)group->member_count * LEAT_GROUPS_STREAMS_MAX, count = 0;
    uint32_t *streams = leat_mem_calloc(LEAT_MEM_BROKER, most + 1, sizeof *streams);
    if (!streams) return LEAT_E_NO_MEMORY;
    for (uint32_t m = 0; m < group->member_count; m++)
        for (uint32_t s = 0; s < group->members[m].stream_count; s++)
            streams[count++] = group->members[m].streams[s];
    qsort(streams, count, sizeof *streams, number_order);
    leat_err rc = LEAT_OK;
    uint64_t added = 0;
    for (size_t i = 0; i < count && rc == LEAT_OK; i++)
        if (i == 0 || streams[i] != streams[i - 1])
            rc = stream_gather(groups, group, streams[i], &added);
    leat_mem_free(streams);
    if (rc != LEAT_OK) return rc;
    leat_group_bytes_count(group);
    return leat_groups_table_bytes(groups) > LEAT_GROUPS_TABLE_BYTES_MAX ? LEAT_E_TOO_MANY
                                                                         : LEAT_OK;
}

/* Told once all is acked. What the member owns is found then: for all members at once all of it would have to lie in
 * memory. */
static void join_answer(struct leat_groups *groups, const struct leat_group *group,
                        struct leat_group_member *member)
{
    struct leat_groups_request *join = member->join;
    member->join = NULL;
    leat_groups_wait_end(groups, join);
    join->generation = group->generation;
    memcpy(join->member, member->id, sizeof join->member);
    leat_groups_wait_ack(groups, join);
}

size_t leat_groups_join_fill(struct leat_groups *groups, struct leat_groups_request *join)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, join->group);
    const struct leat_group_member *member =
        group ? leat_group_member_find(group, join->member) : NULL;
    if (!member || group->generation != join->generation) {
        (void)leat_groups_answer(
            join, LEAT_E_UNKNOWN_MEMBER,
            "not a member any more: the group has a newer generation: join anew");
        return 1;
    }
    if (leat_group_assigned(group, member, &join->assigned, &join->assigned_count) != LEAT_OK)
        (void)leat_groups_answer(join, LEAT_E_NO_MEMORY, "no memory for an assignment");
    return (size_t)group->member_count + group->log_count;
}

/* The new generation. Its members are the members that have joined; they hear of the generation once it is durable. */
static void generation_begin(struct leat_groups *groups, struct leat_group *group)
{
    /* Its logs may fill a batch. */
    if (groups->builder.record_count > 0) {
        group->settle_at_us = group->give_up_at_us = leat_groups_now_us(groups) + RETRY_US / 10;
        return; /* after the next ack */
    }
    for (uint32_t i = 0; i < group->member_count; i++) {
        group->members[i].gone = !group->members[i].join;
        group->members[i].fresh = false;
        group->members[i].deadline_us =
            leat_groups_now_us(groups) + (uint64_t)group->members[i].session_ms * 1000;
    }
    leat_group_members_sweep(group);
    leat_err rc = logs_gather(groups, group);
    if (rc != LEAT_OK) {
        for (uint32_t i = 0; i < group->member_count; i++) {
            struct leat_groups_request *join = group->members[i].join;
            group->members[i].join = NULL;
            (void)leat_groups_answer(
                join, rc, "the groups of this home have more logs than their table holds");
            leat_groups_tell(groups, join);
        }
        group->member_count = 0;
        /* Else the table stays above its limit, and the next start entry has no room for it. */
        leat_group_logs_forget_unread(group);
    }
    leat_group_generation_next(group);
    group->phase = LEAT_GROUP_STABLE;
    leat_group_assign(group);
    leat_group_bytes_count(group);
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    leat_record_native_write(&writer, &(struct leat_stored_record){0});
    leat_group_encode(&writer, group, false);
    leat_groups_record_add(groups, &writer);
    for (uint32_t i = 0; i < group->member_count; i++)
        join_answer(groups, group, &group->members[i]);
    leat_groups_append_try(groups);
}

void leat_groups_group_step(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (group->classic) {
        leat_groups_classic_step(groups, group);
        return;
    }
    uint64_t now = leat_groups_now_us(groups);
    bool all_joined = true;
    uint32_t live = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct leat_group_member *member = &group->members[i];
        if (!member->gone && !member->join && member->deadline_us <= now) {
            member->gone = true;
            leat_groups_prepare(groups, group);
        }
        live += !member->gone;
        all_joined = all_joined && (member->gone || member->join);
    }
    if (group->phase != LEAT_GROUP_PREPARING) return;
    if ((all_joined && (now >= group->settle_at_us || live == 0)) || now >= group->give_up_at_us)
        generation_begin(groups, group);
}

uint64_t leat_groups_group_next_us(const struct leat_group *group)
{
    if (group->classic) return leat_groups_classic_next_us(group->classic);
    uint64_t next = UINT64_MAX;
    bool all_joined = true;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = &group->members[i];
        if (member->gone || member->join) continue;
        all_joined = false;
        if (member->deadline_us < next) next = member->deadline_us;
    }
    if (group->phase != LEAT_GROUP_PREPARING) return next;
    uint64_t phase_end = all_joined ? group->settle_at_us : group->give_up_at_us;
    return phase_end < next ? phase_end : next;
}

/* ---- join, heartbeat, leave ---- */

static bool join_refused(struct leat_groups *groups, struct leat_groups_request *request,
                         const struct leat_group *group)
{
    if (request->mode == LEAT_GROUPS_PARALLEL && !groups->options.broker.group)
        return leat_groups_answer(request, LEAT_E_UNSUPPORTED,
                                  "parallel groups are not served here");
    if (request->stream_count == 0 || request->stream_count > LEAT_GROUPS_STREAMS_MAX)
        return leat_groups_answer(request, LEAT_E_INVALID,
                                  "a member reads between 1 and 16 streams");
    if (request->session_ms == 0) request->session_ms = LEAT_GROUPS_SESSION_MS_DEFAULT;
    if (request->session_ms < LEAT_GROUPS_SESSION_MS_MIN ||
        request->session_ms > LEAT_GROUPS_SESSION_MS_MAX)
        return leat_groups_answer(request, LEAT_E_INVALID,
                                  "a session lasts between 100 ms and 30 minutes");
    for (uint32_t i = 0; i < request->stream_count; i++) {
        uint32_t streamlets, logs;
        if (!groups->options.broker.stream_size(groups->options.ctx, request->streams[i],
                                                &streamlets, &logs))
            return leat_groups_answer(request, LEAT_E_UNKNOWN_STREAM,
                                      "a stream of the member is unknown");
    }
    if (group && group->classic &&
        (group->classic->member_count || request->mode != LEAT_GROUPS_ORDERED))
        return leat_groups_answer(
            request, LEAT_E_OTHER_PROTOCOL,
            "this name is used by a group of Kafka clients: use another name, "
            "or join in ordered mode when its members are gone");
    if (group && !group->classic && group->mode != request->mode &&
        (group->member_count || group->log_count))
        return leat_groups_answer(
            request, LEAT_E_INVALID,
            group->mode == LEAT_GROUPS_PARALLEL
                ? "the group is of mode parallel: join in that, or use another name"
                : "the group is of mode ordered: join in that, or use another name");
    return !leat_groups_group_room(groups, request);
}

static bool subscription_same(const struct leat_group_member *member,
                              const struct leat_groups_request *request)
{
    return member->session_ms == request->session_ms &&
           member->stream_count == request->stream_count &&
           memcmp(member->streams, request->streams,
                  request->stream_count * sizeof request->streams[0]) == 0;
}

static struct leat_group_member *member_new(struct leat_groups *groups, struct leat_group *group)
{
    struct leat_group_member *member = leat_group_member_add(group);
    if (!member) return NULL;
    const struct leat_random *random = groups->options.env->random;
    snprintf(member->id, sizeof member->id, "m-%016" PRIx64 "-%" PRIu32, random->next(random->ctx),
             member->serial);
    member->fresh = true;
    return member;
}

bool leat_groups_do_join(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (join_refused(groups, request, group)) return true;
    struct leat_group_member *member =
        group ? leat_group_member_find(group, request->member) : NULL;
    if (request->member[0] && !member)
        return leat_groups_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                  "not a member (any more): join anew");
    if (!member && group && group->member_count == LEAT_GROUPS_MEMBERS_MAX)
        return leat_groups_answer(request, LEAT_E_TOO_MANY,
                                  "the group has as many members as it may");
    if (member && group->phase == LEAT_GROUP_STABLE && !member->join &&
        subscription_same(member, request)) {
        /* The member's answer was lost: nothing has changed, so no rebalance is needed. */
        if (!leat_groups_answer_fits(request, group->log_count * sizeof *request->assigned))
            return true;
        bool waits = leat_groups_must_append(groups);
        if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
        member->join = request;
        leat_groups_wait_begin(groups, request, REQUEST_JOIN);
        member->deadline_us = leat_groups_now_us(groups) + (uint64_t)member->session_ms * 1000;
        join_answer(groups, group, member);
        if (waits) return false;
        leat_groups_wait_end(groups, request);
        (void)leat_groups_join_fill(groups, request);
        return true;
    }
    bool created = !group;
    if (!group) {
        group = leat_group_create(request->group, request->mode);
        if (!group) return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a group");
        group->maker = request->address;
        leat_groups_group_add(groups, group);
    }
    if (group->classic) leat_group_classic_drop(group); /* it had no members: see join_refused() */
    group->mode = request->mode;
    if (!member) member = member_new(groups, group);
    if (!member) {
        if (created) leat_groups_group_remove(groups, request->group);
        return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
    }
    struct leat_groups_request *earlier = member->join;
    member->join = request;
    if (earlier) {
        (void)leat_groups_answer(earlier, LEAT_E_CANCELLED, "the member has joined again");
        leat_groups_tell(groups, earlier);
    }
    member->session_ms = request->session_ms;
    member->stream_count = request->stream_count;
    memcpy(member->streams, request->streams, request->stream_count * sizeof member->streams[0]);
    leat_group_bytes_count(group); /* before the next join is asked whether there is room for it */
    leat_groups_wait_begin(groups, request, REQUEST_JOIN);
    leat_groups_prepare(groups, group);
    return false;
}

struct leat_group_member *leat_groups_member_check(struct leat_group *group,
                                                   struct leat_groups_request *request)
{
    struct leat_group_member *member =
        group ? leat_group_member_find(group, request->member) : NULL;
    if (!member || member->fresh) {
        (void)leat_groups_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                 "not a member (any more): join anew");
        return NULL;
    }
    if (request->generation != group->generation) {
        (void)leat_groups_answer(request, LEAT_E_STALE_GENERATION,
                                 "the group has a newer generation: join again");
        return NULL;
    }
    return member;
}

bool leat_groups_do_heartbeat(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_group_member *member = leat_groups_member_check(group, request);
    if (!member) return true;
    member->deadline_us = leat_groups_now_us(groups) + (uint64_t)member->session_ms * 1000;
    if (group->phase == LEAT_GROUP_PREPARING)
        return leat_groups_answer(request, LEAT_E_STALE_GENERATION,
                                  "the group is being shared out anew: commit, then join again");
    return leat_groups_answer(request, LEAT_OK, NULL);
}

bool leat_groups_do_leave(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_group_member *member =
        group ? leat_group_member_find(group, request->member) : NULL;
    if (!member)
        return leat_groups_answer(request, LEAT_E_UNKNOWN_MEMBER, "not a member (any more)");
    struct leat_groups_request *join = member->join;
    member->join = NULL;
    member->gone = true;
    if (join) {
        (void)leat_groups_answer(join, LEAT_E_CANCELLED, "the member has left");
        leat_groups_tell(groups, join);
    }
    leat_groups_prepare(groups, group);
    /* The last one out: recorded now. If this waited for the group to settle, and the server stopped meanwhile, the
     * place of the member that left would be held for a whole session. */
    bool live = false;
    for (uint32_t i = 0; i < group->member_count; i++)
        live |= !group->members[i].gone;
    if (!live) leat_groups_group_step(groups, group);
    return leat_groups_answer(request, LEAT_OK, NULL);
}
