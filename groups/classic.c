/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a classic group: joins, heartbeats, leaves. See classic.h; classic_share.c has the phases. */
#include "groups/classic.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "groups/internal.h"

static bool text_zero(struct leat_msg_string text)
{
    return text.bytes > 0 && memchr(text.text, 0, text.bytes) != NULL;
}

/* ---- the group that a request names ---- */

bool leat_groups_classic_ensure(struct leat_groups *groups, struct leat_groups_request *request,
                                struct leat_group **out_group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (group && group->mode == LEAT_GROUPS_CLASSIC) {
        *out_group = group;
        return true;
    }
    if (group && (group->member_count > 0 || group->mode != LEAT_GROUPS_ORDERED)) {
        (void)leat_groups_answer(
            request, LEAT_E_OTHER_PROTOCOL,
            "a native consumer group of this name has members, or reads segment "
            "groups: use another name, or delete it");
        return false;
    }
    if (!leat_groups_group_room(groups, request)) return false;
    struct leat_classic *classic = leat_classic_create();
    if (!group && classic) {
        group = leat_group_create(request->group, LEAT_GROUPS_CLASSIC);
        if (group) {
            group->maker = request->address;
            leat_groups_group_add(groups, group);
        }
    }
    if (!group || !classic) {
        leat_classic_destroy(&classic);
        (void)leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a group");
        return false;
    }
    group->mode = LEAT_GROUPS_CLASSIC;
    group->phase = LEAT_GROUP_STABLE;
    group->classic = classic;
    leat_group_bytes_count(group);
    *out_group = group;
    return true;
}

/* ---- checks ---- */

/* A member that joins again with no more metadata than before is never refused, however full the memory is, and
 * whatever its address. */
static bool memory_refused(struct leat_groups *groups, struct leat_groups_request *request)
{
    const struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_msg_string id = leat_classic_text(request->member);
    const struct leat_classic_member *me = NULL;
    if (group && group->classic && id.bytes > 0) me = leat_classic_member_find(group->classic, id);
    if (group && group->classic && !me)
        me = leat_classic_instance_find(group->classic, request->classic->instance);
    size_t bytes = leat_classic_join_bytes(request->classic);
    if (me && bytes <= leat_classic_member_bytes(me)) return false;
    if (me) bytes += me->assignment_bytes;
    if (leat_groups_members_have_room(groups, request->address, me, bytes)) return false;
    return leat_groups_answer(
        request, LEAT_E_TOO_MANY,
        "the groups of this home hold as much for members as they may, or for "
        "those of this address");
}

static bool join_refused(struct leat_groups *groups, struct leat_groups_request *request)
{
    const struct leat_classic_call *call = request->classic;
    if (request->session_ms < LEAT_GROUPS_SESSION_MS_MIN ||
        request->session_ms > LEAT_GROUPS_SESSION_MS_MAX)
        return leat_groups_answer(request, LEAT_E_INVALID,
                                  "a session lasts between 100 ms and 30 minutes");
    if (call->protocol_count == 0 || call->protocol_count > LEAT_CLASSIC_PROTOCOLS_MAX ||
        call->protocol_type.bytes == 0)
        return leat_groups_answer(request, LEAT_E_OTHER_PROTOCOL,
                                  "a member names a protocol type and 1 to 16 protocols");
    bool longs = call->protocol_type.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX ||
                 call->instance.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX ||
                 call->client.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX ||
                 call->host.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX || text_zero(call->protocol_type);
    for (uint32_t i = 0; i < call->protocol_count; i++) {
        longs = longs || call->protocols[i].name.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX ||
                call->protocols[i].name.bytes == 0 || text_zero(call->protocols[i].name);
    }
    if (longs)
        return leat_groups_answer(request, LEAT_E_INVALID,
                                  "names of protocols and clients have 1 to 255 bytes, none zero");
    return memory_refused(groups, request);
}

/* SUBTLE: a member that joins again from another address counts for the new address only if this address has room.
 *  1. One address has half of all members. They join again from a second address, and count for it from then on.
 *  2. The first address has no members now, and takes half of the rest; and so on: two addresses have all. */
static void address_note(const struct leat_groups *groups, struct leat_classic_member *member,
                         const struct leat_groups_request *request)
{
    size_t bytes = leat_classic_member_bytes(member) + member->assignment_bytes;
    if (leat_groups_members_have_room(groups, request->address, member, bytes))
        member->address = request->address;
}

/* ---- members come ---- */

static struct leat_classic_member *member_new(struct leat_groups *groups, struct leat_group *group,
                                              struct leat_groups_request *request)
{
    const struct leat_random *random = groups->options.env->random;
    struct leat_msg_string client = request->classic->client;
    char name[LEAT_CLASSIC_CLIENT_IN_ID_MAX + 1] = {0};
    struct leat_classic_member *member = leat_classic_member_add(group->classic);
    if (!member) {
        (void)leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
        return NULL;
    }
    uint32_t bytes = client.bytes < sizeof name ? client.bytes : (uint32_t)sizeof name - 1;
    for (uint32_t i = 0; i < bytes; i++) /* cut names stay readable: no half of a character */
        name[i] = client.text[i] > ' ' && client.text[i] < 0x7f ? client.text[i] : '_';
    uint64_t high = random->next(random->ctx), low = random->next(random->ctx);
    snprintf(member->id, sizeof member->id, "%s-%08x-%04x-%04x-%04x-%012" PRIx64,
             bytes > 0 ? name : "member", (unsigned)(high >> 32), (unsigned)(high >> 16) & 0xffff,
             (unsigned)high & 0xffff, (unsigned)(low >> 48), low & 0xffffffffffff);
    member->session_ms = request->session_ms;
    member->rebalance_ms = request->classic->rebalance_ms;
    member->address = request->address;
    leat_groups_classic_heard(groups, member);
    return member;
}

/* Held until all have joined. */
static bool join_hold(struct leat_groups *groups, struct leat_group *group,
                      struct leat_classic_member *member, struct leat_groups_request *request)
{
    if (leat_classic_facts_set(group->classic, member, request->classic) != LEAT_OK)
        return leat_groups_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
    member->pending = false; /* before its bytes are counted: it is stored from now on */
    leat_classic_type_set(group->classic, request->classic->protocol_type);
    member->session_ms = request->session_ms;
    member->rebalance_ms = request->classic->rebalance_ms;
    if (member->address != request->address) address_note(groups, member, request);
    leat_groups_classic_held_end(groups, &member->join, LEAT_E_CANCELLED);
    member->join = request;
    leat_groups_wait_begin(groups, request, REQUEST_JOIN);
    leat_groups_classic_prepare(groups, group);
    if (group->classic->first) leat_groups_classic_settle(groups, group->classic);
    return false; /* the timer takes the next step: it may have to tell this very request */
}

/* A new process of a static member: takes the place of the old one, which is fenced. */
static bool join_instance_again(struct leat_groups *groups, struct leat_group *group,
                                struct leat_classic_member *old,
                                struct leat_groups_request *request)
{
    struct leat_classic *classic = group->classic;
    bool same = leat_classic_facts_same(old, request->classic);
    bool led = strcmp(classic->leader, old->id) == 0;
    char old_id[sizeof old->id];
    memcpy(old_id, old->id, sizeof old_id);
    leat_groups_classic_held_end(groups, &old->join, LEAT_E_MEMBER_FENCED);
    leat_groups_classic_held_end(groups, &old->sync, LEAT_E_MEMBER_FENCED);
    /* The new member's id, in the old member's place. */
    struct leat_classic_member *fresh = member_new(groups, group, request);
    if (!fresh) return true;
    memcpy(old->id, fresh->id, sizeof old->id);
    leat_classic_member_remove(classic, fresh);
    old->nameless = false;
    leat_groups_classic_heard(groups, old);
    if (led) memcpy(classic->leader, old->id, sizeof classic->leader);
    if (classic->phase != LEAT_CLASSIC_STABLE || !same ||
        !leat_groups_classic_record(groups, group))
        return join_hold(groups, group, old, request);
    /* Nothing has changed for the other members. A former leader without support for skip_assignment gets its old
     * member id as the leader's id, so asks for its assignment and makes none. */
    old->session_ms = request->session_ms;
    old->rebalance_ms = request->classic->rebalance_ms;
    if (old->address != request->address) address_note(groups, old, request);
    request->classic->skip_assignment = led && request->classic->can_skip;
    leat_groups_append_try(groups);
    if (groups->broken) return leat_groups_answer(request, groups->broken_rc, groups->why);
    return leat_groups_classic_join_now(groups, group, old, request,
                                        led && !request->classic->can_skip ? old_id : NULL);
}

static bool join_known(struct leat_groups *groups, struct leat_group *group,
                       struct leat_classic_member *member, struct leat_groups_request *request)
{
    const struct leat_classic *classic = group->classic;
    bool same = leat_classic_facts_same(member, request->classic);
    bool leads = strcmp(classic->leader, member->id) == 0;
    leat_groups_classic_heard(groups, member);
    if (member->pending || classic->phase == LEAT_CLASSIC_EMPTY ||
        classic->phase == LEAT_CLASSIC_PREPARING || !same)
        return join_hold(groups, group, member, request);
    /* A leader that joins again wants a new assignment; any other member has lost the answer. */
    if (classic->phase == LEAT_CLASSIC_STABLE && leads)
        return join_hold(groups, group, member, request);
    leat_groups_classic_held_end(groups, &member->sync, LEAT_E_CANCELLED);
    return leat_groups_classic_join_now(groups, group, member, request, NULL);
}

static bool join_new(struct leat_groups *groups, struct leat_group *group,
                     struct leat_groups_request *request)
{
    const struct leat_classic_call *call = request->classic;
    if (group->classic->member_count >= LEAT_GROUPS_MEMBERS_MAX)
        return leat_groups_answer(request, LEAT_E_TOO_MANY,
                                  "the group has as many members as it may");
    struct leat_classic_member *member = member_new(groups, group, request);
    if (!member) return true;
    member->pending = true;
    if (call->instance.bytes == 0 && call->needs_id) {
        memcpy(request->member, member->id, sizeof request->member);
        return leat_groups_answer(request, LEAT_E_MEMBER_ID_REQUIRED,
                                  "join again under the member id that this answer gives");
    }
    member->nameless = call->instance.bytes == 0;
    if (!join_hold(groups, group, member, request)) return false;
    leat_classic_member_remove(group->classic, member);
    return true;
}

bool leat_groups_do_classic_join(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    const struct leat_classic_call *call = request->classic;
    struct leat_group *group;
    if (join_refused(groups, request)) return true;
    if (!leat_groups_classic_ensure(groups, request, &group)) return true;
    struct leat_classic *classic = group->classic;
    struct leat_msg_string id = leat_classic_text(request->member);
    struct leat_classic_member *member =
        id.bytes > 0 ? leat_classic_member_find(classic, id) : NULL;
    struct leat_classic_member *holder = leat_classic_instance_find(classic, call->instance);
    if (id.bytes > 0 && holder && holder != member)
        return leat_groups_answer(request, LEAT_E_MEMBER_FENCED,
                                  "another member has taken over this instance id");
    if (id.bytes > 0 && (!member || (call->instance.bytes > 0 && !holder && !member->pending)))
        return leat_groups_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                  "not a member of the group (any more): join anew");
    struct leat_classic_member *me = member ? member : holder;
    uint32_t others = leat_classic_members_joined(classic) - (me && !me->pending);
    if (others > 0 &&
        (!leat_classic_text_same(leat_classic_text(classic->protocol_type), call->protocol_type) ||
         !leat_classic_protocols_fit(classic, me, call)))
        return leat_groups_answer(request, LEAT_E_OTHER_PROTOCOL,
                                  "the group's members know no protocol in common with this one");
    /* The leader's answer lists all members. Whether it fits is asked here, while nothing has changed yet. */
    if (me && strcmp(classic->leader, me->id) == 0 &&
        !leat_groups_classic_answer_fits(classic, request))
        return true;
    if (member) return join_known(groups, group, member, request);
    if (holder) return join_instance_again(groups, group, holder, request);
    return join_new(groups, group, request);
}

/* ---- members stay and go ---- */

bool leat_groups_do_classic_heartbeat(struct leat_groups *groups,
                                      struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    struct leat_classic_member *member = leat_groups_classic_member_check(group, request);
    if (!member) return true;
    leat_groups_classic_heard(groups, member);
    if (group->classic->phase == LEAT_CLASSIC_PREPARING)
        return leat_groups_answer(request, LEAT_E_REBALANCING,
                                  "the group is being shared out anew: join again");
    return leat_groups_answer(request, LEAT_OK, NULL);
}

static leat_err leaver_do(struct leat_groups *groups, struct leat_classic *classic,
                          const struct leat_classic_leaver *leaver)
{
    struct leat_classic_member *member = leat_classic_member_find(classic, leaver->member);
    if (leaver->instance.bytes > 0) {
        struct leat_classic_member *holder = leat_classic_instance_find(classic, leaver->instance);
        if (!holder) return LEAT_E_UNKNOWN_MEMBER;
        if (leaver->member.bytes > 0 && holder != member) return LEAT_E_MEMBER_FENCED;
        member = holder;
    }
    if (!member) return LEAT_E_UNKNOWN_MEMBER;
    leat_groups_classic_member_end(groups, classic, member, LEAT_E_UNKNOWN_MEMBER);
    return LEAT_OK;
}

bool leat_groups_do_classic_leave(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic_call *call = request->classic;
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    if (call->leaver_count > LEAT_CLASSIC_LEAVERS_MAX)
        return leat_groups_answer(request, LEAT_E_TOO_MANY, "too many members in one request");
    bool left = false;
    for (uint32_t i = 0; i < call->leaver_count; i++) {
        struct leat_classic_leaver *leaver = &call->leavers[i];
        leaver->rc = group && group->classic ? leaver_do(groups, group->classic, leaver)
                                             : LEAT_E_UNKNOWN_MEMBER;
        left = left || leaver->rc == LEAT_OK;
    }
    if (left) leat_groups_classic_prepare(groups, group);
    return leat_groups_answer(request, LEAT_OK, NULL);
}

void leat_groups_classic_cancel(struct leat_groups *groups, struct leat_group *group,
                                struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_classic *classic = group->classic;
    for (uint32_t i = 0; i < classic->member_count; i++) {
        struct leat_classic_member *member = classic->members[i];
        if (member->join != request && member->sync != request) continue;
        bool joining = member->join == request;
        if (joining)
            member->join = NULL;
        else
            member->sync = NULL;
        leat_groups_classic_heard(groups, member);
        if (!joining || !member->nameless) return;
        leat_groups_classic_member_end(groups, classic, member, LEAT_E_CANCELLED);
        leat_groups_classic_prepare(groups, group);
        return;
    }
}
