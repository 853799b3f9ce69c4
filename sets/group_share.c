/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a group: who is waited for, a generation begins, the leader shares out. And what can
 * be seen of a group from outside. */
#include "base/assert.h"
#include "base/mem.h"
#include "sets/groups.h"
#include "sets/internal.h"

static struct leat_msg_string text_put(char **at, struct leat_msg_string text)
{
    struct leat_msg_string put = {*at, text.bytes};
    if (text.bytes) memcpy(*at, text.text, text.bytes);
    *at += text.bytes;
    return put;
}

static uint64_t longest_us(const struct leat_group *group)
{
    uint64_t longest_ms = LEAT_SETS_SESSION_MS_MIN;
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i]->rebalance_ms > longest_ms)
            longest_ms = group->members[i]->rebalance_ms;
    return longest_ms * 1000;
}

/* ---- recording ---- */

bool leat_sets_group_record(struct leat_sets *sets, struct leat_set *set)
{
    const struct leat_group *group = set->group;
    size_t head = RECORD_HEAD_BYTES + strlen(set->name);
    bool whole = leat_sets_record_fits(sets, head + group->stored_bytes);
    /* Too large for any batch: recorded without its members. Else it waits for the next batch. */
    if (!whole && sets->builder.record_count > 0) return false;
    struct leat_msg_writer writer = leat_sets_record_begin(sets, RECORD_GROUP, set->maker ? 4 : 3);
    leat_msg_write_string(&writer, set->name, strlen(set->name));
    leat_msg_write_u64(&writer, set->generation);
    leat_group_encode(&writer, group, whole);
    if (set->maker) leat_msg_write_u64(&writer, set->maker);
    leat_sets_record_add(sets, &writer);
    return true;
}

/* ---- phases ---- */

static void syncs_end(struct leat_sets *sets, struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct leat_sets_request *sync = group->members[i]->sync;
        if (!sync) continue;
        group->members[i]->sync = NULL;
        leat_sets_group_heard(sets, group->members[i]);
        (void)leat_sets_answer(sync, LEAT_E_REBALANCING,
                               "the group is being shared out anew: join again");
        leat_sets_tell(sets, sync);
    }
}

void leat_sets_group_prepare(struct leat_sets *sets, struct leat_set *set)
{
    struct leat_group *group = set->group;
    if (group->phase == LEAT_GROUP_PREPARING) return;
    uint64_t now = leat_sets_now_us(sets);
    group->first = group->phase == LEAT_GROUP_EMPTY;
    group->phase = LEAT_GROUP_PREPARING;
    group->settle_at_us = now;
    group->give_up_at_us = now + longest_us(group);
    syncs_end(sets, group);
}

void leat_sets_group_settle(struct leat_sets *sets, struct leat_group *group)
{
    uint64_t settled = leat_sets_now_us(sets) + sets->options.group_settle_us;
    group->settle_at_us = settled < group->give_up_at_us ? settled : group->give_up_at_us;
}

/* The held join of a member gets its answer once all is acked; or now, where there is no memory. */
static void join_tell(struct leat_sets *sets, struct leat_set *set,
                      struct leat_group_member *member)
{
    struct leat_sets_request *join = member->join;
    member->join = NULL;
    member->nameless = false;
    leat_err rc = leat_sets_group_join_answer(set, member, join, NULL);
    leat_sets_group_heard(sets, member);
    if (rc != LEAT_OK) {
        (void)leat_sets_answer(join, LEAT_E_NO_MEMORY, "no memory for the members of a group");
        leat_sets_tell(sets, join);
        return;
    }
    leat_sets_wait_end(sets, join);
    leat_sets_wait_ack(sets, join);
}

static void leader_pick(struct leat_group *group)
{
    const struct leat_group_member *first = NULL;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = group->members[i];
        if (!member->join) continue;
        if (strcmp(member->id, group->leader) == 0) return;
        if (!first) first = member;
    }
    memset(group->leader, 0, sizeof group->leader);
    if (first) memcpy(group->leader, first->id, sizeof group->leader);
}

/* Those that have not joined again are no members any more; static ones stay as long as their
 * session does. */
static void absent_drop(struct leat_sets *sets, struct leat_group *group)
{
    for (uint32_t i = group->member_count; i > 0; i--) {
        struct leat_group_member *member = group->members[i - 1];
        if (!member->join && !member->pending && member->instance.bytes == 0)
            leat_sets_group_member_end(sets, group, member, LEAT_E_UNKNOWN_MEMBER);
    }
}

static void generation_begin(struct leat_sets *sets, struct leat_set *set)
{
    struct leat_group *group = set->group;
    uint64_t now = leat_sets_now_us(sets);
    absent_drop(sets, group);
    leader_pick(group);
    uint32_t joined = leat_group_members_joined(group);
    if (joined > 0 && group->leader[0] == '\0') {
        /* Only static members that are away: wait for them, or for their sessions' ends. */
        group->give_up_at_us = now + longest_us(group);
        return;
    }
    leat_group_protocol_pick(group);
    /* The type stays: a group without one is taken for a group of commits alone. */
    if (joined == 0) group->protocol[0] = '\0';
    if (joined == 0) group->assigned_bytes = 0;
    /* Signed on Kafka's wire. Nobody gets there by rebalances: a thousand a second take 24 days. */
    LEAT_ASSERT_CMP(set->generation, <, INT32_MAX);
    enum leat_group_phase before = group->phase;
    set->generation++;
    group->phase = joined > 0 ? LEAT_GROUP_COMPLETING : LEAT_GROUP_EMPTY;
    leat_group_assignments_drop(group);
    if (!leat_sets_group_record(sets, set)) {
        set->generation--;
        group->phase = before;
        group->settle_at_us = group->give_up_at_us = now + RETRY_US / 10; /* after the next ack */
        return;
    }
    group->sync_by_us = now + longest_us(group);
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i]->join) join_tell(sets, set, group->members[i]);
    leat_sets_append_try(sets);
}

static bool member_silent(const struct leat_group_member *member, uint64_t now)
{
    return !member->join && !member->sync && member->deadline_us <= now;
}

static bool all_joined(const struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (!group->members[i]->join) return false; /* nor pending */
    return true;
}

void leat_sets_group_step(struct leat_sets *sets, struct leat_set *set)
{
    struct leat_group *group = set->group;
    uint64_t now = leat_sets_now_us(sets);
    bool gone = false;
    for (uint32_t i = group->member_count; i > 0; i--) {
        struct leat_group_member *member = group->members[i - 1];
        if (group->phase == LEAT_GROUP_COMPLETING && !member->pending && !member->sync &&
            now >= group->sync_by_us)
            member->deadline_us = now; /* has its generation and does not ask for its share */
        if (!member_silent(member, now)) continue;
        gone = gone || !member->pending;
        leat_sets_group_member_end(sets, group, member, LEAT_E_UNKNOWN_MEMBER);
    }
    /* A leader that is waited for and gone is a member that is gone; one that syncs ends this. */
    if (gone) leat_sets_group_prepare(sets, set);
    if (group->phase != LEAT_GROUP_PREPARING) return;
    if ((all_joined(group) && (now >= group->settle_at_us || group->member_count == 0)) ||
        now >= group->give_up_at_us)
        generation_begin(sets, set);
}

uint64_t leat_sets_group_next_us(const struct leat_group *group)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = group->members[i];
        if (!member->join && !member->sync && member->deadline_us < next)
            next = member->deadline_us;
        if (group->phase == LEAT_GROUP_COMPLETING && !member->pending && !member->sync &&
            group->sync_by_us < next)
            next = group->sync_by_us;
    }
    if (group->phase != LEAT_GROUP_PREPARING) return next;
    uint64_t end = all_joined(group) ? group->settle_at_us : group->give_up_at_us;
    return end < next ? end : next;
}

void leat_sets_group_wake(struct leat_sets *sets, struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        leat_sets_group_heard(sets, group->members[i]);
    group->settle_at_us = leat_sets_now_us(sets);
    group->sync_by_us = group->give_up_at_us = group->settle_at_us + longest_us(group);
}

/* ---- answers ---- */

static size_t rows_bytes(const struct leat_group *group)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct leat_group_member *member = group->members[i];
        bytes += sizeof(struct leat_group_row) + strlen(member->id) + member->instance.bytes +
                 member->client.bytes + member->host.bytes + member->assignment_bytes +
                 leat_group_metadata(group, member).bytes;
    }
    return bytes;
}

/* The last member has left, and the generation that says so comes with the next turn. */
static enum leat_group_phase phase_shown(const struct leat_group *group)
{
    return leat_group_members_joined(group) == 0 ? LEAT_GROUP_EMPTY : group->phase;
}

static size_t answer_bytes(const struct leat_group *group, bool with_rows)
{
    size_t bytes = strlen(group->protocol_type) + strlen(group->protocol) + 1;
    return with_rows ? bytes + rows_bytes(group) : bytes;
}

bool leat_sets_group_answer_fits(const struct leat_group *group, struct leat_sets_request *request)
{
    return leat_sets_answer_fits(request, answer_bytes(group, true));
}

/* One block: rows (if any), then texts. */
static leat_err rows_give(const struct leat_group *group, struct leat_sets_request *request,
                          bool with_rows)
{
    struct leat_group_call *call = request->group;
    request->answer_bytes = answer_bytes(group, with_rows);
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, request->answer_bytes);
    if (!call->memory) return LEAT_E_NO_MEMORY;
    uint32_t count = with_rows ? leat_group_members_joined(group) : 0, row = 0;
    call->members = call->memory;
    call->member_count = count;
    char *at = (char *)(call->members + count);
    call->group_protocol_type = text_put(&at, leat_group_text(group->protocol_type));
    call->group_protocol = text_put(&at, leat_group_text(group->protocol));
    for (uint32_t i = 0; i < group->member_count && with_rows; i++) {
        const struct leat_group_member *member = group->members[i];
        if (member->pending) continue;
        call->members[row++] = (struct leat_group_row){
            .member = text_put(&at, leat_group_text(member->id)),
            .instance = text_put(&at, member->instance),
            .client = text_put(&at, member->client),
            .host = text_put(&at, member->host),
            .metadata = text_put(&at, leat_group_metadata(group, member)),
            .assignment = text_put(
                &at, (struct leat_msg_string){member->assignment, member->assignment_bytes})};
    }
    return LEAT_OK;
}

leat_err leat_sets_group_join_answer(struct leat_set *set, struct leat_group_member *member,
                                     struct leat_sets_request *join, const char *leader)
{
    struct leat_group_call *call = join->group;
    const struct leat_group *group = set->group;
    bool leads = strcmp(group->leader, member->id) == 0;
    leat_err rc = rows_give(group, join, leads && !leader);
    if (rc != LEAT_OK) return rc;
    join->generation = set->generation;
    memcpy(join->member, member->id, sizeof join->member);
    memset(call->leader, 0, sizeof call->leader);
    memcpy(call->leader, leader ? leader : group->leader, sizeof call->leader);
    return LEAT_OK;
}

/* Answered now, or once what it tells of is acked. */
static bool answer_acked(struct leat_sets *sets, struct leat_sets_request *request)
{
    if (leat_sets_all_acked(sets)) return leat_sets_answer(request, LEAT_OK, NULL);
    leat_sets_wait_ack(sets, request);
    return false;
}

bool leat_sets_group_join_now(struct leat_sets *sets, struct leat_set *set,
                              struct leat_group_member *member, struct leat_sets_request *request,
                              const char *leader)
{
    if (leat_sets_group_join_answer(set, member, request, leader) != LEAT_OK)
        return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for the members of a group");
    return answer_acked(sets, request);
}

/* ---- sync ---- */

static leat_err assignment_give(const struct leat_group *group,
                                const struct leat_group_member *member,
                                struct leat_sets_request *sync)
{
    struct leat_group_call *call = sync->group;
    sync->answer_bytes = answer_bytes(group, false) + member->assignment_bytes;
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, sync->answer_bytes);
    if (!call->memory) return LEAT_E_NO_MEMORY;
    char *at = call->memory;
    call->group_protocol_type = text_put(&at, leat_group_text(group->protocol_type));
    call->group_protocol = text_put(&at, leat_group_text(group->protocol));
    call->assignment =
        text_put(&at, (struct leat_msg_string){member->assignment, member->assignment_bytes});
    return LEAT_OK;
}

static bool shares_take(struct leat_sets *sets, struct leat_set *set,
                        struct leat_sets_request *request)
{
    struct leat_group *group = set->group;
    const struct leat_group_call *call = request->group;
    size_t bytes = 0;
    for (uint32_t i = 0; i < call->share_count; i++)
        bytes += call->shares[i].assignment.bytes;
    size_t kept = leat_group_assigned_bytes(group);
    if (group->assigned_bytes > kept) kept = group->assigned_bytes;
    if (bytes > kept && !leat_sets_members_have_room(sets, request->address, NULL, bytes - kept)) {
        (void)leat_sets_answer(request, LEAT_E_TOO_MANY, "the assignments are too large");
        return false;
    }
    leat_group_assignments_drop(group); /* of an attempt before */
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; i < call->share_count && rc == LEAT_OK; i++) {
        struct leat_group_member *member = leat_group_member_find(group, call->shares[i].member);
        if (member && !member->pending)
            rc = leat_group_assignment_set(group, member, call->shares[i].assignment);
    }
    group->phase = LEAT_GROUP_STABLE;
    if (rc == LEAT_OK && leat_sets_group_record(sets, set)) {
        group->assigned_bytes = leat_group_assigned_bytes(group);
        return true;
    }
    group->phase = LEAT_GROUP_COMPLETING;
    (void)leat_sets_answer(request, LEAT_E_AGAIN, "not now: the home log has much to take");
    return false;
}

static void syncs_tell(struct leat_sets *sets, struct leat_group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct leat_group_member *member = group->members[i];
        struct leat_sets_request *sync = member->sync;
        if (!sync) continue;
        member->sync = NULL;
        leat_sets_group_heard(sets, member);
        if (assignment_give(group, member, sync) != LEAT_OK) {
            (void)leat_sets_answer(sync, LEAT_E_NO_MEMORY, "no memory for an assignment");
            leat_sets_tell(sets, sync);
            continue;
        }
        leat_sets_wait_end(sets, sync);
        leat_sets_wait_ack(sets, sync);
    }
}

static bool sync_other_protocol(const struct leat_group *group, const struct leat_group_call *call)
{
    return (call->protocol_type.bytes > 0 &&
            !leat_group_text_same(call->protocol_type, leat_group_text(group->protocol_type))) ||
           (call->protocol.bytes > 0 &&
            !leat_group_text_same(call->protocol, leat_group_text(group->protocol)));
}

bool leat_sets_do_group_sync(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    struct leat_group_member *member = leat_sets_group_member_check(set, request);
    if (!member) return true;
    struct leat_group *group = set->group;
    leat_sets_group_heard(sets, member);
    if (sync_other_protocol(group, request->group))
        return leat_sets_answer(request, LEAT_E_OTHER_PROTOCOL,
                                "the group shares out by another protocol");
    if (group->phase == LEAT_GROUP_PREPARING)
        return leat_sets_answer(request, LEAT_E_REBALANCING,
                                "the group is being shared out anew: join again");
    if (group->phase == LEAT_GROUP_COMPLETING && strcmp(group->leader, member->id) == 0) {
        if (!shares_take(sets, set, request)) return true;
        syncs_tell(sets, group);
        leat_sets_append_try(sets);
        if (sets->broken) return leat_sets_answer(request, sets->broken_rc, sets->why);
    }
    if (group->phase == LEAT_GROUP_STABLE) {
        size_t bytes = answer_bytes(group, false) + member->assignment_bytes;
        if (!leat_sets_answer_fits(request, bytes)) return true;
        if (assignment_give(group, member, request) != LEAT_OK)
            return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for an assignment");
        return answer_acked(sets, request);
    }
    struct leat_sets_request *earlier = member->sync;
    member->sync = request;
    leat_sets_wait_begin(sets, request, REQUEST_JOIN);
    if (earlier) {
        (void)leat_sets_answer(earlier, LEAT_E_CANCELLED, "the member has asked again");
        leat_sets_tell(sets, earlier);
    }
    return false;
}

/* ---- from outside ---- */

bool leat_sets_do_describe(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_group_call *call = request->group;
    const struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (!set) return leat_sets_answer(request, LEAT_E_NOT_FOUND, "no such consumer set");
    call->mode = set->mode;
    request->generation = set->generation;
    if (!set->group) {
        call->phase = set->member_count == 0             ? LEAT_GROUP_EMPTY
                      : set->phase == LEAT_SET_PREPARING ? LEAT_GROUP_PREPARING
                                                         : LEAT_GROUP_STABLE;
        return answer_acked(sets, request);
    }
    call->phase = phase_shown(set->group);
    if (!leat_sets_group_answer_fits(set->group, request)) return true;
    if (rows_give(set->group, request, true) != LEAT_OK)
        return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for the members of a group");
    if (call->phase == LEAT_GROUP_EMPTY) call->group_protocol.bytes = 0;
    return answer_acked(sets, request);
}

bool leat_sets_do_list(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_group_call *call = request->group;
    size_t bytes = 1;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_set *set = sets->sets[i];
        bytes += sizeof(struct leat_group_listed) + strlen(set->name) +
                 (set->group ? strlen(set->group->protocol_type) : 0);
    }
    if (!leat_sets_answer_fits(request, bytes)) return true;
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, bytes);
    if (!call->memory)
        return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a list of sets");
    call->listed = call->memory;
    call->listed_count = sets->set_count;
    char *at = (char *)(call->listed + sets->set_count);
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_set *set = sets->sets[i];
        struct leat_group_listed *listed = &call->listed[i];
        listed->mode = set->mode;
        listed->name = text_put(&at, leat_group_text(set->name));
        listed->phase = set->member_count > 0 ? LEAT_GROUP_STABLE : LEAT_GROUP_EMPTY;
        if (!set->group) continue;
        listed->phase = phase_shown(set->group);
        listed->protocol_type = text_put(&at, leat_group_text(set->group->protocol_type));
    }
    return answer_acked(sets, request);
}
