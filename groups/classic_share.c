/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a classic group: waiting for members, a new generation, the leader's assignment. Also the description
 * of a classic group for clients. */
#include "base/assert.h"
#include "base/mem.h"
#include "groups/classic.h"
#include "groups/internal.h"

static struct leat_msg_string text_put(char **at, struct leat_msg_string text)
{
    struct leat_msg_string put = {*at, text.bytes};
    if (text.bytes) memcpy(*at, text.text, text.bytes);
    *at += text.bytes;
    return put;
}

static uint64_t longest_us(const struct leat_classic *classic)
{
    uint64_t longest_ms = LEAT_GROUPS_SESSION_MS_MIN;
    for (uint32_t i = 0; i < classic->member_count; i++)
        if (classic->members[i]->rebalance_ms > longest_ms)
            longest_ms = classic->members[i]->rebalance_ms;
    return longest_ms * 1000;
}

/* ---- recording ---- */

bool leat_groups_classic_record(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    const struct leat_classic *classic = group->classic;
    size_t head = RECORD_HEAD_BYTES + strlen(group->name);
    bool whole = leat_groups_record_fits(groups, head + classic->stored_bytes);
    /* Too large for any batch: recorded without its members. Else it waits for the next batch. */
    if (!whole && groups->builder.record_count > 0) return false;
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    struct leat_stored_record record = {.generation = group->generation, .maker = group->maker};
    memcpy(record.name, group->name, sizeof record.name);
    leat_record_classic_write(&writer, &record);
    leat_classic_encode(&writer, classic, whole);
    leat_msg_row_write_behind(&writer, leat_record_classic_row(), &record,
                              offsetof(struct leat_stored_record, classic));
    leat_groups_record_add(groups, &writer);
    return true;
}

/* ---- phases ---- */

static void syncs_end(struct leat_groups *groups, struct leat_classic *classic)
{
    for (uint32_t i = 0; i < classic->member_count; i++) {
        struct leat_groups_request *sync = classic->members[i]->sync;
        if (!sync) continue;
        classic->members[i]->sync = NULL;
        leat_groups_classic_heard(groups, classic->members[i]);
        (void)leat_groups_answer(sync, LEAT_E_REBALANCING,
                                 "the group is being shared out anew: join again");
        leat_groups_tell(groups, sync);
    }
}

void leat_groups_classic_prepare(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic *classic = group->classic;
    if (classic->phase == LEAT_CLASSIC_PREPARING) return;
    uint64_t now = leat_groups_now_us(groups);
    classic->first = classic->phase == LEAT_CLASSIC_EMPTY;
    leat_classic_enter(classic, LEAT_CLASSIC_PREPARING);
    classic->settle_at_us = now;
    classic->give_up_at_us = now + longest_us(classic);
    syncs_end(groups, classic);
}

void leat_groups_classic_settle(struct leat_groups *groups, struct leat_classic *classic)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint64_t settled = leat_groups_now_us(groups) + groups->options.classic_settle_us;
    classic->settle_at_us = settled < classic->give_up_at_us ? settled : classic->give_up_at_us;
}

/* The held join of a member gets its answer once all is acked; or now, where there is no memory. */
static void join_tell(struct leat_groups *groups, struct leat_group *group,
                      struct leat_classic_member *member)
{
    struct leat_groups_request *join = member->join;
    member->join = NULL;
    member->nameless = false;
    leat_err rc = leat_groups_classic_join_answer(group, member, join, NULL);
    leat_groups_classic_heard(groups, member);
    if (rc != LEAT_OK) {
        (void)leat_groups_answer(join, LEAT_E_NO_MEMORY, "no memory for the members of a group");
        leat_groups_tell(groups, join);
        return;
    }
    leat_groups_wait_end(groups, join);
    leat_groups_wait_ack(groups, join);
}

static void leader_pick(struct leat_classic *classic)
{
    const struct leat_classic_member *first = NULL;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        if (!member->join) continue;
        if (strcmp(member->id, classic->leader) == 0) return;
        if (!first) first = member;
    }
    memset(classic->leader, 0, sizeof classic->leader);
    if (first) memcpy(classic->leader, first->id, sizeof classic->leader);
}

/* Members that have not joined again are removed; static members stay as long as their session. */
static void absent_drop(struct leat_groups *groups, struct leat_classic *classic)
{
    for (uint32_t i = classic->member_count; i > 0; i--) {
        struct leat_classic_member *member = classic->members[i - 1];
        if (!member->join && !member->pending && member->instance.bytes == 0)
            leat_groups_classic_member_end(groups, classic, member, LEAT_E_UNKNOWN_MEMBER);
    }
}

static void generation_begin(struct leat_groups *groups, struct leat_group *group)
{
    struct leat_classic *classic = group->classic;
    uint64_t now = leat_groups_now_us(groups);
    absent_drop(groups, classic);
    leader_pick(classic);
    uint32_t joined = leat_classic_members_joined(classic);
    if (joined > 0 && classic->leader[0] == '\0') {
        /* Only static members that are away: wait for them, or for their sessions' ends. */
        classic->give_up_at_us = now + longest_us(classic);
        return;
    }
    leat_classic_protocol_pick(classic);
    /* The type stays: a classic group without a type counts as a group of commits alone. */
    if (joined == 0) classic->protocol[0] = '\0';
    if (joined == 0) classic->assigned_bytes = 0;
    enum leat_classic_phase before = classic->phase;
    uint32_t generation = group->generation;
    leat_group_generation_next(group);
    leat_classic_enter(classic, joined > 0 ? LEAT_CLASSIC_COMPLETING : LEAT_CLASSIC_EMPTY);
    leat_classic_assignments_drop(classic);
    if (!leat_groups_classic_record(groups, group)) {
        group->generation = generation;
        leat_classic_enter(classic, before);
        classic->settle_at_us = classic->give_up_at_us =
            now + RETRY_US / 10; /* after the next ack */
        return;
    }
    classic->sync_by_us = now + longest_us(classic);
    for (uint32_t i = 0; i < classic->member_count; i++)
        if (classic->members[i]->join) join_tell(groups, group, classic->members[i]);
    leat_groups_append_try(groups);
}

/* This is no failure detection of nodes: the member itself chose the timeout of its session. */
static bool member_silent(const struct leat_classic_member *member, uint64_t now)
{
    return !member->join && !member->sync && member->deadline_us <= now;
}

static bool all_joined(const struct leat_classic *classic)
{
    for (uint32_t i = 0; i < classic->member_count; i++)
        if (!classic->members[i]->join) return false; /* nor pending */
    return true;
}

void leat_groups_classic_step(struct leat_groups *groups, struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic *classic = group->classic;
    uint64_t now = leat_groups_now_us(groups);
    bool gone = false;
    for (uint32_t i = classic->member_count; i > 0; i--) {
        struct leat_classic_member *member = classic->members[i - 1];
        if (classic->phase == LEAT_CLASSIC_COMPLETING && !member->pending && !member->sync &&
            now >= classic->sync_by_us)
            member->deadline_us = now; /* has its generation and does not ask for its share */
        if (!member_silent(member, now)) continue;
        gone = gone || !member->pending;
        leat_groups_classic_member_end(groups, classic, member, LEAT_E_UNKNOWN_MEMBER);
    }
    /* A leader whose session ended counts as a member that is gone; a SYNC of the leader ends the wait. */
    if (gone) leat_groups_classic_prepare(groups, group);
    if (classic->phase != LEAT_CLASSIC_PREPARING) return;
    if ((all_joined(classic) && (now >= classic->settle_at_us || classic->member_count == 0)) ||
        now >= classic->give_up_at_us)
        generation_begin(groups, group);
}

uint64_t leat_groups_classic_next_us(const struct leat_classic *classic)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        if (!member->join && !member->sync && member->deadline_us < next)
            next = member->deadline_us;
        if (classic->phase == LEAT_CLASSIC_COMPLETING && !member->pending && !member->sync &&
            classic->sync_by_us < next)
            next = classic->sync_by_us;
    }
    if (classic->phase != LEAT_CLASSIC_PREPARING) return next;
    uint64_t end = all_joined(classic) ? classic->settle_at_us : classic->give_up_at_us;
    return end < next ? end : next;
}

void leat_groups_classic_wake(struct leat_groups *groups, struct leat_classic *classic)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    for (uint32_t i = 0; i < classic->member_count; i++)
        leat_groups_classic_heard(groups, classic->members[i]);
    classic->settle_at_us = leat_groups_now_us(groups);
    classic->sync_by_us = classic->give_up_at_us = classic->settle_at_us + longest_us(classic);
}

/* ---- answers ---- */

static size_t rows_bytes(const struct leat_classic *classic)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        const struct leat_classic_member *member = classic->members[i];
        bytes += sizeof(struct leat_classic_row) + strlen(member->id) + member->instance.bytes +
                 member->client.bytes + member->host.bytes + member->assignment_bytes +
                 leat_classic_metadata(classic, member).bytes;
    }
    return bytes;
}

/* The last member has left, and the generation that says so comes with the next turn. */
static enum leat_classic_phase phase_shown(const struct leat_classic *classic)
{
    return leat_classic_members_joined(classic) == 0 ? LEAT_CLASSIC_EMPTY : classic->phase;
}

static size_t answer_bytes(const struct leat_classic *classic, bool with_rows)
{
    size_t bytes = strlen(classic->protocol_type) + strlen(classic->protocol) + 1;
    return with_rows ? bytes + rows_bytes(classic) : bytes;
}

bool leat_groups_classic_answer_fits(const struct leat_classic *classic,
                                     struct leat_groups_request *request)
{
    return leat_groups_answer_fits(request, answer_bytes(classic, true));
}

/* One block: rows (if any), then texts. */
static leat_err rows_give(const struct leat_classic *classic, struct leat_groups_request *request,
                          bool with_rows)
{
    struct leat_classic_call *call = request->classic;
    request->answer_bytes = answer_bytes(classic, with_rows);
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, request->answer_bytes);
    if (!call->memory) return LEAT_E_NO_MEMORY;
    uint32_t count = with_rows ? leat_classic_members_joined(classic) : 0, row = 0;
    call->members = call->memory;
    call->member_count = count;
    char *at = (char *)(call->members + count);
    call->group_protocol_type = text_put(&at, leat_classic_text(classic->protocol_type));
    call->group_protocol = text_put(&at, leat_classic_text(classic->protocol));
    for (uint32_t i = 0; i < classic->member_count && with_rows; i++) {
        const struct leat_classic_member *member = classic->members[i];
        if (member->pending) continue;
        call->members[row++] = (struct leat_classic_row){
            .member = text_put(&at, leat_classic_text(member->id)),
            .instance = text_put(&at, member->instance),
            .client = text_put(&at, member->client),
            .host = text_put(&at, member->host),
            .metadata = text_put(&at, leat_classic_metadata(classic, member)),
            .assignment = text_put(
                &at, (struct leat_msg_string){member->assignment, member->assignment_bytes})};
    }
    return LEAT_OK;
}

leat_err leat_groups_classic_join_answer(struct leat_group *group,
                                         struct leat_classic_member *member,
                                         struct leat_groups_request *join, const char *leader)
{
    struct leat_classic_call *call = join->classic;
    const struct leat_classic *classic = group->classic;
    bool leads = strcmp(classic->leader, member->id) == 0;
    leat_err rc = rows_give(classic, join, leads && !leader);
    if (rc != LEAT_OK) return rc;
    join->generation = group->generation;
    memcpy(join->member, member->id, sizeof join->member);
    memset(call->leader, 0, sizeof call->leader);
    memcpy(call->leader, leader ? leader : classic->leader, sizeof call->leader);
    return LEAT_OK;
}

/* Answered now, or once the shown state is acked. */
static bool answer_acked(struct leat_groups *groups, struct leat_groups_request *request)
{
    if (leat_groups_all_acked(groups)) return leat_groups_answer(request, LEAT_OK, NULL);
    leat_groups_wait_ack(groups, request);
    return false;
}

bool leat_groups_classic_join_now(struct leat_groups *groups, struct leat_group *group,
                                  struct leat_classic_member *member,
                                  struct leat_groups_request *request, const char *leader)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (leat_groups_classic_join_answer(group, member, request, leader) != LEAT_OK)
        return leat_groups_answer(request, LEAT_E_NO_MEMORY,
                                  "no memory for the members of a group");
    return answer_acked(groups, request);
}

/* ---- sync ---- */

static leat_err assignment_give(const struct leat_classic *classic,
                                const struct leat_classic_member *member,
                                struct leat_groups_request *sync)
{
    struct leat_classic_call *call = sync->classic;
    sync->answer_bytes = answer_bytes(classic, false) + member->assignment_bytes;
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, sync->answer_bytes);
    if (!call->memory) return LEAT_E_NO_MEMORY;
    char *at = call->memory;
    call->group_protocol_type = text_put(&at, leat_classic_text(classic->protocol_type));
    call->group_protocol = text_put(&at, leat_classic_text(classic->protocol));
    call->assignment =
        text_put(&at, (struct leat_msg_string){member->assignment, member->assignment_bytes});
    return LEAT_OK;
}

static bool shares_take(struct leat_groups *groups, struct leat_group *group,
                        struct leat_groups_request *request)
{
    struct leat_classic *classic = group->classic;
    const struct leat_classic_call *call = request->classic;
    size_t bytes = 0;
    for (uint32_t i = 0; i < call->share_count; i++)
        bytes += call->shares[i].assignment.bytes;
    size_t kept = leat_classic_assigned_bytes(classic);
    if (classic->assigned_bytes > kept) kept = classic->assigned_bytes;
    if (bytes > kept &&
        !leat_groups_members_have_room(groups, request->address, NULL, bytes - kept)) {
        (void)leat_groups_answer(request, LEAT_E_TOO_MANY, "the assignments are too large");
        return false;
    }
    leat_classic_assignments_drop(classic); /* of an attempt before */
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; i < call->share_count && rc == LEAT_OK; i++) {
        struct leat_classic_member *member =
            leat_classic_member_find(classic, call->shares[i].member);
        if (member && !member->pending)
            rc = leat_classic_assignment_set(classic, member, call->shares[i].assignment);
    }
    leat_classic_enter(classic, LEAT_CLASSIC_STABLE);
    if (rc == LEAT_OK && leat_groups_classic_record(groups, group)) {
        classic->assigned_bytes = leat_classic_assigned_bytes(classic);
        return true;
    }
    leat_classic_enter(classic, LEAT_CLASSIC_COMPLETING);
    (void)leat_groups_answer(request, LEAT_E_AGAIN, "not now: the home log has much to take");
    return false;
}

static void syncs_tell(struct leat_groups *groups, struct leat_classic *classic)
{
    for (uint32_t i = 0; i < classic->member_count; i++) {
        struct leat_classic_member *member = classic->members[i];
        struct leat_groups_request *sync = member->sync;
        if (!sync) continue;
        member->sync = NULL;
        leat_groups_classic_heard(groups, member);
        if (assignment_give(classic, member, sync) != LEAT_OK) {
            (void)leat_groups_answer(sync, LEAT_E_NO_MEMORY, "no memory for an assignment");
            leat_groups_tell(groups, sync);
            continue;
        }
        leat_groups_wait_end(groups, sync);
        leat_groups_wait_ack(groups, sync);
    }
}

static bool sync_other_protocol(const struct leat_classic *classic,
                                const struct leat_classic_call *call)
{
    return (call->protocol_type.bytes > 0 &&
            !leat_classic_text_same(call->protocol_type,
                                    leat_classic_text(classic->protocol_type))) ||
           (call->protocol.bytes > 0 &&
            !leat_classic_text_same(call->protocol, leat_classic_text(classic->protocol)));
}

bool leat_groups_do_classic_sync(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_classic_member *member = leat_groups_classic_member_check(group, request);
    if (!member) return true;
    struct leat_classic *classic = group->classic;
    leat_groups_classic_heard(groups, member);
    if (sync_other_protocol(classic, request->classic))
        return leat_groups_answer(request, LEAT_E_OTHER_PROTOCOL,
                                  "the group shares out by another protocol");
    if (classic->phase == LEAT_CLASSIC_PREPARING)
        return leat_groups_answer(request, LEAT_E_REBALANCING,
                                  "the group is being shared out anew: join again");
    if (classic->phase == LEAT_CLASSIC_COMPLETING && strcmp(classic->leader, member->id) == 0) {
        if (!shares_take(groups, group, request)) return true;
        syncs_tell(groups, classic);
        leat_groups_append_try(groups);
        if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    }
    if (classic->phase == LEAT_CLASSIC_STABLE) {
        size_t bytes = answer_bytes(classic, false) + member->assignment_bytes;
        if (!leat_groups_answer_fits(request, bytes)) return true;
        if (assignment_give(classic, member, request) != LEAT_OK)
            return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for an assignment");
        return answer_acked(groups, request);
    }
    struct leat_groups_request *earlier = member->sync;
    member->sync = request;
    leat_groups_wait_begin(groups, request, REQUEST_JOIN);
    if (earlier) {
        (void)leat_groups_answer(earlier, LEAT_E_CANCELLED, "the member has asked again");
        leat_groups_tell(groups, earlier);
    }
    return false;
}

/* ---- from outside ---- */

bool leat_groups_do_describe(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic_call *call = request->classic;
    const struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (!group) return leat_groups_answer(request, LEAT_E_NOT_FOUND, "no such consumer group");
    call->mode = group->mode;
    request->generation = group->generation;
    if (!group->classic) {
        call->phase = group->member_count == 0               ? LEAT_CLASSIC_EMPTY
                      : group->phase == LEAT_GROUP_PREPARING ? LEAT_CLASSIC_PREPARING
                                                             : LEAT_CLASSIC_STABLE;
        return answer_acked(groups, request);
    }
    call->phase = phase_shown(group->classic);
    if (!leat_groups_classic_answer_fits(group->classic, request)) return true;
    if (rows_give(group->classic, request, true) != LEAT_OK)
        return leat_groups_answer(request, LEAT_E_NO_MEMORY,
                                  "no memory for the members of a group");
    if (call->phase == LEAT_CLASSIC_EMPTY) call->group_protocol.bytes = 0;
    return answer_acked(groups, request);
}

bool leat_groups_do_list(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic_call *call = request->classic;
    size_t bytes = 1;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        bytes += sizeof(struct leat_classic_listed) + strlen(group->name) +
                 (group->classic ? strlen(group->classic->protocol_type) : 0);
    }
    if (!leat_groups_answer_fits(request, bytes)) return true;
    call->memory = leat_mem_calloc(LEAT_MEM_BROKER, 1, bytes);
    if (!call->memory)
        return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a list of groups");
    call->listed = call->memory;
    call->listed_count = groups->group_count;
    char *at = (char *)(call->listed + groups->group_count);
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        struct leat_classic_listed *listed = &call->listed[i];
        listed->mode = group->mode;
        listed->name = text_put(&at, leat_classic_text(group->name));
        listed->phase = group->member_count > 0 ? LEAT_CLASSIC_STABLE : LEAT_CLASSIC_EMPTY;
        if (!group->classic) continue;
        listed->phase = phase_shown(group->classic);
        listed->protocol_type = text_put(&at, leat_classic_text(group->classic->protocol_type));
    }
    return answer_acked(groups, request);
}
