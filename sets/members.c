/* SPDX-License-Identifier: Apache-2.0 */
/* Who belongs to a set: joins, heartbeats, leaves, silence, and the sharing out that follows. */
#include "sets/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- rebalance ---- */

void leat_sets_prepare(struct leat_sets *sets, struct leat_set *set)
{
    if (set->phase == LEAT_SET_PREPARING) return;
    uint64_t longest_ms = 0;
    set->phase = LEAT_SET_PREPARING;
    for (uint32_t i = 0; i < set->member_count; i++)
        if (!set->members[i].gone && set->members[i].session_ms > longest_ms)
            longest_ms = set->members[i].session_ms;
    set->settle_at_us = leat_sets_now_us(sets) + sets->options.settle_us;
    set->give_up_at_us = leat_sets_now_us(sets) + longest_ms * 1000;
}

static leat_err stream_gather(struct leat_sets *sets, struct leat_set *set, uint32_t stream,
                              uint64_t *added)
{
    uint32_t streamlets = 0, logs = 0;
    if (!sets->options.broker.stream_size(sets->options.ctx, stream, &streamlets, &logs))
        return LEAT_OK;
    uint64_t count = (uint64_t)streamlets * logs;
    if (count > LEAT_SETS_LOGS_MAX) return LEAT_E_TOO_MANY;
    struct leat_log_ref *refs = leat_mem_calloc(LEAT_MEM_BROKER, count + 1, sizeof *refs);
    if (!refs) return LEAT_E_NO_MEMORY;
    uint64_t fresh = 0;
    for (uint64_t i = 0; i < count; i++) {
        refs[i] = (struct leat_log_ref){stream, (uint32_t)(i / logs), (uint32_t)(i % logs)};
        fresh += !leat_set_log_find(set, refs[i]);
    }
    leat_err rc = LEAT_E_TOO_MANY;
    *added += fresh;
    const char *why = NULL;
    if (fresh > 0)
        why = leat_sets_lacks(sets, set->maker, 0, *added * leat_set_log_bytes(set, refs[0]),
                              *added * leat_set_log_memory_bytes());
    if (!why && set->log_count + fresh <= LEAT_SETS_LOGS_MAX)
        rc = leat_set_logs_add(set, refs, count);
    leat_mem_free(refs);
    return rc;
}

static int number_order(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* All logs of what the members read, each stream once; those of nobody's stream keep their offsets. */
static leat_err logs_gather(struct leat_sets *sets, struct leat_set *set)
{
    size_t most = (size_t)set->member_count * LEAT_SETS_STREAMS_MAX, count = 0;
    uint32_t *streams = leat_mem_calloc(LEAT_MEM_BROKER, most + 1, sizeof *streams);
    if (!streams) return LEAT_E_NO_MEMORY;
    for (uint32_t m = 0; m < set->member_count; m++)
        for (uint32_t s = 0; s < set->members[m].stream_count; s++)
            streams[count++] = set->members[m].streams[s];
    qsort(streams, count, sizeof *streams, number_order);
    leat_err rc = LEAT_OK;
    uint64_t added = 0;
    for (size_t i = 0; i < count && rc == LEAT_OK; i++)
        if (i == 0 || streams[i] != streams[i - 1])
            rc = stream_gather(sets, set, streams[i], &added);
    leat_mem_free(streams);
    if (rc != LEAT_OK) return rc;
    leat_set_bytes_count(set);
    return leat_sets_table_bytes(sets) > LEAT_SETS_TABLE_BYTES_MAX ? LEAT_E_TOO_MANY : LEAT_OK;
}

/* Told once all is acked. What the member owns is found then: for all members at once all of it would have to lie in
 * memory. */
static void join_answer(struct leat_sets *sets, const struct leat_set *set,
                        struct leat_set_member *member)
{
    struct leat_sets_request *join = member->join;
    member->join = NULL;
    leat_sets_wait_end(sets, join);
    join->generation = set->generation;
    memcpy(join->member, member->id, sizeof join->member);
    leat_sets_wait_ack(sets, join);
}

size_t leat_sets_join_fill(struct leat_sets *sets, struct leat_sets_request *join)
{
    struct leat_set *set = leat_sets_set_find(sets, join->set);
    const struct leat_set_member *member = set ? leat_set_member_find(set, join->member) : NULL;
    if (!member || set->generation != join->generation) {
        (void)leat_sets_answer(join, LEAT_E_UNKNOWN_MEMBER,
                               "not a member any more: the set has a newer generation: join anew");
        return 1;
    }
    if (leat_set_assigned(set, member, &join->assigned, &join->assigned_count) != LEAT_OK)
        (void)leat_sets_answer(join, LEAT_E_NO_MEMORY, "no memory for an assignment");
    return (size_t)set->member_count + set->log_count;
}

/* The new generation. Its members are those that have joined; it is told once it is durable. */
static void generation_begin(struct leat_sets *sets, struct leat_set *set)
{
    if (!leat_sets_record_fits(sets,
                               set->bytes + RECORD_HEAD_BYTES + 64 * (size_t)LEAT_SETS_LOGS_MAX) &&
        sets->builder.record_count > 0) {
        set->settle_at_us = set->give_up_at_us = leat_sets_now_us(sets) + RETRY_US / 10;
        return; /* after the next ack */
    }
    for (uint32_t i = 0; i < set->member_count; i++) {
        set->members[i].gone = !set->members[i].join;
        set->members[i].fresh = false;
        set->members[i].deadline_us =
            leat_sets_now_us(sets) + (uint64_t)set->members[i].session_ms * 1000;
    }
    leat_set_members_sweep(set);
    leat_err rc = logs_gather(sets, set);
    if (rc != LEAT_OK) {
        for (uint32_t i = 0; i < set->member_count; i++) {
            struct leat_sets_request *join = set->members[i].join;
            set->members[i].join = NULL;
            (void)leat_sets_answer(join, rc,
                                   "the sets of this home have more logs than their table holds");
            leat_sets_tell(sets, join);
        }
        set->member_count = 0;
        /* Else the table stays above its limit, and the next start entry has no room for it. */
        leat_set_logs_forget_unread(set);
    }
    set->generation++;
    set->phase = LEAT_SET_STABLE;
    leat_set_assign(set);
    leat_set_bytes_count(set);
    struct leat_msg_writer writer = leat_sets_record_begin(sets, RECORD_SET, 1);
    leat_set_encode(&writer, set, false);
    leat_sets_record_add(sets, &writer);
    for (uint32_t i = 0; i < set->member_count; i++)
        join_answer(sets, set, &set->members[i]);
    leat_sets_append_try(sets);
}

void leat_sets_set_step(struct leat_sets *sets, struct leat_set *set)
{
    if (set->group) {
        leat_sets_group_step(sets, set);
        return;
    }
    uint64_t now = leat_sets_now_us(sets);
    bool all_joined = true;
    uint32_t live = 0;
    for (uint32_t i = 0; i < set->member_count; i++) {
        struct leat_set_member *member = &set->members[i];
        if (!member->gone && !member->join && member->deadline_us <= now) {
            member->gone = true;
            leat_sets_prepare(sets, set);
        }
        live += !member->gone;
        all_joined = all_joined && (member->gone || member->join);
    }
    if (set->phase != LEAT_SET_PREPARING) return;
    if ((all_joined && (now >= set->settle_at_us || live == 0)) || now >= set->give_up_at_us)
        generation_begin(sets, set);
}

uint64_t leat_sets_set_next_us(const struct leat_set *set)
{
    if (set->group) return leat_sets_group_next_us(set->group);
    uint64_t next = UINT64_MAX;
    bool all_joined = true;
    for (uint32_t i = 0; i < set->member_count; i++) {
        const struct leat_set_member *member = &set->members[i];
        if (member->gone || member->join) continue;
        all_joined = false;
        if (member->deadline_us < next) next = member->deadline_us;
    }
    if (set->phase != LEAT_SET_PREPARING) return next;
    uint64_t phase_end = all_joined ? set->settle_at_us : set->give_up_at_us;
    return phase_end < next ? phase_end : next;
}

/* ---- join, heartbeat, leave ---- */

static bool join_refused(struct leat_sets *sets, struct leat_sets_request *request,
                         const struct leat_set *set)
{
    if (request->mode == LEAT_SETS_PARALLEL && !sets->options.broker.group)
        return leat_sets_answer(request, LEAT_E_UNSUPPORTED, "parallel sets are not served here");
    if (request->stream_count == 0 || request->stream_count > LEAT_SETS_STREAMS_MAX)
        return leat_sets_answer(request, LEAT_E_INVALID, "a member reads between 1 and 16 streams");
    if (request->session_ms == 0) request->session_ms = LEAT_SETS_SESSION_MS_DEFAULT;
    if (request->session_ms < LEAT_SETS_SESSION_MS_MIN ||
        request->session_ms > LEAT_SETS_SESSION_MS_MAX)
        return leat_sets_answer(request, LEAT_E_INVALID,
                                "a session lasts between 100 ms and 30 minutes");
    for (uint32_t i = 0; i < request->stream_count; i++) {
        uint32_t streamlets, logs;
        if (!sets->options.broker.stream_size(sets->options.ctx, request->streams[i], &streamlets,
                                              &logs))
            return leat_sets_answer(request, LEAT_E_UNKNOWN_STREAM,
                                    "a stream of the member is unknown");
    }
    if (set && set->group && (set->group->member_count || request->mode != LEAT_SETS_ORDERED))
        return leat_sets_answer(request, LEAT_E_OTHER_PROTOCOL,
                                "this name is used by a group of Kafka clients: use another name, "
                                "or join in ordered mode when its members are gone");
    if (set && !set->group && set->mode != request->mode && (set->member_count || set->log_count))
        return leat_sets_answer(
            request, LEAT_E_INVALID,
            set->mode == LEAT_SETS_PARALLEL
                ? "the set is of mode parallel: join in that, or use another name"
                : "the set is of mode ordered: join in that, or use another name");
    return !leat_sets_set_room(sets, request);
}

static bool subscription_same(const struct leat_set_member *member,
                              const struct leat_sets_request *request)
{
    return member->session_ms == request->session_ms &&
           member->stream_count == request->stream_count &&
           memcmp(member->streams, request->streams,
                  request->stream_count * sizeof request->streams[0]) == 0;
}

static struct leat_set_member *member_new(struct leat_sets *sets, struct leat_set *set)
{
    struct leat_set_member *member = leat_set_member_add(set);
    if (!member) return NULL;
    const struct leat_random *random = sets->options.env->random;
    snprintf(member->id, sizeof member->id, "m-%016" PRIx64 "-%" PRIu32, random->next(random->ctx),
             member->serial);
    member->fresh = true;
    return member;
}

bool leat_sets_do_join(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (join_refused(sets, request, set)) return true;
    struct leat_set_member *member = set ? leat_set_member_find(set, request->member) : NULL;
    if (request->member[0] && !member)
        return leat_sets_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                "not a member (any more): join anew");
    if (!member && set && set->member_count == LEAT_SETS_MEMBERS_MAX)
        return leat_sets_answer(request, LEAT_E_TOO_MANY, "the set has as many members as it may");
    if (member && set->phase == LEAT_SET_STABLE && !member->join &&
        subscription_same(member, request)) {
        /* Its answer was lost: nothing has changed, so nobody needs to be disturbed. */
        if (!leat_sets_answer_fits(request, set->log_count * sizeof *request->assigned))
            return true;
        bool waits = leat_sets_must_append(sets);
        if (sets->broken) return leat_sets_answer(request, sets->broken_rc, sets->why);
        member->join = request;
        leat_sets_wait_begin(sets, request, REQUEST_JOIN);
        member->deadline_us = leat_sets_now_us(sets) + (uint64_t)member->session_ms * 1000;
        join_answer(sets, set, member);
        if (waits) return false;
        leat_sets_wait_end(sets, request);
        (void)leat_sets_join_fill(sets, request);
        return true;
    }
    bool created = !set;
    if (!set) {
        set = leat_set_create(request->set, request->mode);
        if (!set) return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a set");
        set->maker = request->address;
        leat_sets_set_add(sets, set);
    }
    if (set->group) leat_set_group_drop(set); /* it had no members: see join_refused() */
    set->mode = request->mode;
    if (!member) member = member_new(sets, set);
    if (!member) {
        if (created) leat_sets_set_remove(sets, request->set);
        return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
    }
    struct leat_sets_request *earlier = member->join;
    member->join = request;
    if (earlier) {
        (void)leat_sets_answer(earlier, LEAT_E_CANCELLED, "the member has joined again");
        leat_sets_tell(sets, earlier);
    }
    member->session_ms = request->session_ms;
    member->stream_count = request->stream_count;
    memcpy(member->streams, request->streams, request->stream_count * sizeof member->streams[0]);
    leat_set_bytes_count(set); /* before the next join is asked whether there is room for it */
    leat_sets_wait_begin(sets, request, REQUEST_JOIN);
    leat_sets_prepare(sets, set);
    return false;
}

struct leat_set_member *leat_sets_member_check(struct leat_set *set,
                                               struct leat_sets_request *request)
{
    struct leat_set_member *member = set ? leat_set_member_find(set, request->member) : NULL;
    if (!member || member->fresh) {
        (void)leat_sets_answer(request, LEAT_E_UNKNOWN_MEMBER,
                               "not a member (any more): join anew");
        return NULL;
    }
    if (request->generation != set->generation) {
        (void)leat_sets_answer(request, LEAT_E_STALE_GENERATION,
                               "the set has a newer generation: join again");
        return NULL;
    }
    return member;
}

bool leat_sets_do_heartbeat(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    struct leat_set_member *member = leat_sets_member_check(set, request);
    if (!member) return true;
    member->deadline_us = leat_sets_now_us(sets) + (uint64_t)member->session_ms * 1000;
    if (set->phase == LEAT_SET_PREPARING)
        return leat_sets_answer(request, LEAT_E_STALE_GENERATION,
                                "the set is being shared out anew: commit, then join again");
    return leat_sets_answer(request, LEAT_OK, NULL);
}

bool leat_sets_do_leave(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    struct leat_set_member *member = set ? leat_set_member_find(set, request->member) : NULL;
    if (!member) return leat_sets_answer(request, LEAT_E_UNKNOWN_MEMBER, "not a member (any more)");
    struct leat_sets_request *join = member->join;
    member->join = NULL;
    member->gone = true;
    if (join) {
        (void)leat_sets_answer(join, LEAT_E_CANCELLED, "the member has left");
        leat_sets_tell(sets, join);
    }
    leat_sets_prepare(sets, set);
    /* The last one out: recorded now. Waiting for others to settle, a server that stops meanwhile would hold the
     * place of a member that has left for a whole session. */
    bool live = false;
    for (uint32_t i = 0; i < set->member_count; i++)
        live |= !set->members[i].gone;
    if (!live) leat_sets_set_step(sets, set);
    return leat_sets_answer(request, LEAT_OK, NULL);
}
