/* SPDX-License-Identifier: Apache-2.0 */
/* Who belongs to a group: joins, heartbeats, leaves. See groups.h; group_share.c has the phases. */
#include "sets/groups.h"

#include <inttypes.h>
#include <stdio.h>

#include "sets/internal.h"

static bool text_zero(struct leat_msg_string text)
{
    return text.bytes > 0 && memchr(text.text, 0, text.bytes) != NULL;
}

/* ---- the set of a group ---- */

bool leat_sets_group_ensure(struct leat_sets *sets, struct leat_sets_request *request,
                            struct leat_set **out_set)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (set && set->mode == LEAT_SETS_GROUP) {
        *out_set = set;
        return true;
    }
    if (set && (set->member_count > 0 || set->mode != LEAT_SETS_ORDERED)) {
        (void)leat_sets_answer(request, LEAT_E_OTHER_PROTOCOL,
                               "a native consumer set of this name has members, or reads groups of "
                               "segments: use another name, or delete it");
        return false;
    }
    if (!leat_sets_set_room(sets, request)) return false;
    struct leat_group *group = leat_group_create();
    if (!set && group) {
        set = leat_set_create(request->set, LEAT_SETS_GROUP);
        if (set) {
            set->maker = request->address;
            leat_sets_set_add(sets, set);
        }
    }
    if (!set || !group) {
        leat_group_destroy(&group);
        (void)leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a group");
        return false;
    }
    set->mode = LEAT_SETS_GROUP;
    set->phase = LEAT_SET_STABLE;
    set->group = group;
    leat_set_bytes_count(set);
    *out_set = set;
    return true;
}

/* ---- checks ---- */

/* Who joins again and says no more than before is not refused, however full it is, and from wherever it comes. */
static bool memory_refused(struct leat_sets *sets, struct leat_sets_request *request)
{
    const struct leat_set *set = leat_sets_set_find(sets, request->set);
    struct leat_msg_string id = leat_group_text(request->member);
    const struct leat_group_member *me = NULL;
    if (set && set->group && id.bytes > 0) me = leat_group_member_find(set->group, id);
    if (set && set->group && !me)
        me = leat_group_instance_find(set->group, request->group->instance);
    size_t bytes = leat_group_join_bytes(request->group);
    if (me && bytes <= leat_group_member_bytes(me)) return false;
    if (me) bytes += me->assignment_bytes;
    if (leat_sets_members_have_room(sets, request->address, me, bytes)) return false;
    return leat_sets_answer(request, LEAT_E_TOO_MANY,
                            "the groups of this home hold as much for members as they may, or for "
                            "those of this address");
}

static bool join_refused(struct leat_sets *sets, struct leat_sets_request *request)
{
    const struct leat_group_call *call = request->group;
    if (request->session_ms < LEAT_SETS_SESSION_MS_MIN ||
        request->session_ms > LEAT_SETS_SESSION_MS_MAX)
        return leat_sets_answer(request, LEAT_E_INVALID,
                                "a session lasts between 100 ms and 30 minutes");
    if (call->protocol_count == 0 || call->protocol_count > LEAT_GROUP_PROTOCOLS_MAX ||
        call->protocol_type.bytes == 0)
        return leat_sets_answer(request, LEAT_E_OTHER_PROTOCOL,
                                "a member names a protocol type and 1 to 16 protocols");
    bool longs = call->protocol_type.bytes > LEAT_GROUP_TEXT_BYTES_MAX ||
                 call->instance.bytes > LEAT_GROUP_TEXT_BYTES_MAX ||
                 call->client.bytes > LEAT_GROUP_TEXT_BYTES_MAX ||
                 call->host.bytes > LEAT_GROUP_TEXT_BYTES_MAX || text_zero(call->protocol_type);
    for (uint32_t i = 0; i < call->protocol_count; i++) {
        longs = longs || call->protocols[i].name.bytes > LEAT_GROUP_TEXT_BYTES_MAX ||
                call->protocols[i].name.bytes == 0 || text_zero(call->protocols[i].name);
    }
    if (longs)
        return leat_sets_answer(request, LEAT_E_INVALID,
                                "names of protocols and clients have 1 to 255 bytes, none zero");
    return memory_refused(sets, request);
}

/* SUBTLE: a member that joins again from another address counts for that one only where it has room.
 *  1. One address has half of all members. They join again from a second one, and count for that from then on.
 *  2. The first has nothing now, and takes half of what is left; and so on: two addresses have all. */
static void address_note(const struct leat_sets *sets, struct leat_group_member *member,
                         const struct leat_sets_request *request)
{
    size_t bytes = leat_group_member_bytes(member) + member->assignment_bytes;
    if (leat_sets_members_have_room(sets, request->address, member, bytes))
        member->address = request->address;
}

/* ---- members come ---- */

static struct leat_group_member *member_new(struct leat_sets *sets, struct leat_set *set,
                                            struct leat_sets_request *request)
{
    const struct leat_random *random = sets->options.env->random;
    struct leat_msg_string client = request->group->client;
    char name[LEAT_GROUP_CLIENT_IN_ID_MAX + 1] = {0};
    struct leat_group_member *member = leat_group_member_add(set->group);
    if (!member) {
        (void)leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
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
    member->rebalance_ms = request->group->rebalance_ms;
    member->address = request->address;
    leat_sets_group_heard(sets, member);
    return member;
}

/* Held until all have joined. */
static bool join_hold(struct leat_sets *sets, struct leat_set *set,
                      struct leat_group_member *member, struct leat_sets_request *request)
{
    if (leat_group_facts_set(set->group, member, request->group) != LEAT_OK)
        return leat_sets_answer(request, LEAT_E_NO_MEMORY, "no memory for a member");
    member->pending = false; /* before its bytes are counted: it is stored from now on */
    leat_group_type_set(set->group, request->group->protocol_type);
    member->session_ms = request->session_ms;
    member->rebalance_ms = request->group->rebalance_ms;
    if (member->address != request->address) address_note(sets, member, request);
    leat_sets_group_held_end(sets, &member->join, LEAT_E_CANCELLED);
    member->join = request;
    leat_sets_wait_begin(sets, request, REQUEST_JOIN);
    leat_sets_group_prepare(sets, set);
    if (set->group->first) leat_sets_group_settle(sets, set->group);
    return false; /* the timer takes the next step: it may have to tell this very request */
}

/* A new process of a static member: takes the place of the old one, which is fenced. */
static bool join_instance_again(struct leat_sets *sets, struct leat_set *set,
                                struct leat_group_member *old, struct leat_sets_request *request)
{
    struct leat_group *group = set->group;
    bool same = leat_group_facts_same(old, request->group);
    bool led = strcmp(group->leader, old->id) == 0;
    char old_id[sizeof old->id];
    memcpy(old_id, old->id, sizeof old_id);
    leat_sets_group_held_end(sets, &old->join, LEAT_E_MEMBER_FENCED);
    leat_sets_group_held_end(sets, &old->sync, LEAT_E_MEMBER_FENCED);
    /* The new one's name, in the old one's place. */
    struct leat_group_member *fresh = member_new(sets, set, request);
    if (!fresh) return true;
    memcpy(old->id, fresh->id, sizeof old->id);
    leat_group_member_remove(group, fresh);
    old->nameless = false;
    leat_sets_group_heard(sets, old);
    if (led) memcpy(group->leader, old->id, sizeof group->leader);
    if (group->phase != LEAT_GROUP_STABLE || !same || !leat_sets_group_record(sets, set))
        return join_hold(sets, set, old, request);
    /* Nothing has changed for the others. One that led and does not know of skipping is told that
     * the old one leads, and so asks for its assignment and makes none. */
    old->session_ms = request->session_ms;
    old->rebalance_ms = request->group->rebalance_ms;
    if (old->address != request->address) address_note(sets, old, request);
    request->group->skip_assignment = led && request->group->can_skip;
    leat_sets_append_try(sets);
    if (sets->broken) return leat_sets_answer(request, sets->broken_rc, sets->why);
    return leat_sets_group_join_now(sets, set, old, request,
                                    led && !request->group->can_skip ? old_id : NULL);
}

static bool join_known(struct leat_sets *sets, struct leat_set *set,
                       struct leat_group_member *member, struct leat_sets_request *request)
{
    const struct leat_group *group = set->group;
    bool same = leat_group_facts_same(member, request->group);
    bool leads = strcmp(group->leader, member->id) == 0;
    leat_sets_group_heard(sets, member);
    if (member->pending || group->phase == LEAT_GROUP_EMPTY ||
        group->phase == LEAT_GROUP_PREPARING || !same)
        return join_hold(sets, set, member, request);
    /* A leader that joins again wants to share out anew; of anybody else the answer was lost. */
    if (group->phase == LEAT_GROUP_STABLE && leads) return join_hold(sets, set, member, request);
    leat_sets_group_held_end(sets, &member->sync, LEAT_E_CANCELLED);
    return leat_sets_group_join_now(sets, set, member, request, NULL);
}

static bool join_new(struct leat_sets *sets, struct leat_set *set,
                     struct leat_sets_request *request)
{
    const struct leat_group_call *call = request->group;
    if (set->group->member_count >= LEAT_SETS_MEMBERS_MAX)
        return leat_sets_answer(request, LEAT_E_TOO_MANY,
                                "the group has as many members as it may");
    struct leat_group_member *member = member_new(sets, set, request);
    if (!member) return true;
    member->pending = true;
    if (call->instance.bytes == 0 && call->needs_id) {
        memcpy(request->member, member->id, sizeof request->member);
        return leat_sets_answer(request, LEAT_E_MEMBER_ID_REQUIRED,
                                "join again under the member id that this answer gives");
    }
    member->nameless = call->instance.bytes == 0;
    if (!join_hold(sets, set, member, request)) return false;
    leat_group_member_remove(set->group, member);
    return true;
}

bool leat_sets_do_group_join(struct leat_sets *sets, struct leat_sets_request *request)
{
    const struct leat_group_call *call = request->group;
    struct leat_set *set;
    if (join_refused(sets, request)) return true;
    if (!leat_sets_group_ensure(sets, request, &set)) return true;
    struct leat_group *group = set->group;
    struct leat_msg_string id = leat_group_text(request->member);
    struct leat_group_member *member = id.bytes > 0 ? leat_group_member_find(group, id) : NULL;
    struct leat_group_member *holder = leat_group_instance_find(group, call->instance);
    if (id.bytes > 0 && holder && holder != member)
        return leat_sets_answer(request, LEAT_E_MEMBER_FENCED,
                                "another member has taken over this instance id");
    if (id.bytes > 0 && (!member || (call->instance.bytes > 0 && !holder && !member->pending)))
        return leat_sets_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                "not a member of the group (any more): join anew");
    struct leat_group_member *me = member ? member : holder;
    uint32_t others = leat_group_members_joined(group) - (me && !me->pending);
    if (others > 0 &&
        (!leat_group_text_same(leat_group_text(group->protocol_type), call->protocol_type) ||
         !leat_group_protocols_fit(group, me, call)))
        return leat_sets_answer(request, LEAT_E_OTHER_PROTOCOL,
                                "the group's members know no protocol in common with this one");
    /* Who leads is told of all members. Asked before anything changes. */
    if (me && strcmp(group->leader, me->id) == 0 && !leat_sets_group_answer_fits(group, request))
        return true;
    if (member) return join_known(sets, set, member, request);
    if (holder) return join_instance_again(sets, set, holder, request);
    return join_new(sets, set, request);
}

/* ---- members stay and go ---- */

bool leat_sets_do_group_heartbeat(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    struct leat_group_member *member = leat_sets_group_member_check(set, request);
    if (!member) return true;
    leat_sets_group_heard(sets, member);
    if (set->group->phase == LEAT_GROUP_PREPARING)
        return leat_sets_answer(request, LEAT_E_REBALANCING,
                                "the group is being shared out anew: join again");
    return leat_sets_answer(request, LEAT_OK, NULL);
}

static leat_err leaver_do(struct leat_sets *sets, struct leat_group *group,
                          const struct leat_group_leaver *leaver)
{
    struct leat_group_member *member = leat_group_member_find(group, leaver->member);
    if (leaver->instance.bytes > 0) {
        struct leat_group_member *holder = leat_group_instance_find(group, leaver->instance);
        if (!holder) return LEAT_E_UNKNOWN_MEMBER;
        if (leaver->member.bytes > 0 && holder != member) return LEAT_E_MEMBER_FENCED;
        member = holder;
    }
    if (!member) return LEAT_E_UNKNOWN_MEMBER;
    leat_sets_group_member_end(sets, group, member, LEAT_E_UNKNOWN_MEMBER);
    return LEAT_OK;
}

bool leat_sets_do_group_leave(struct leat_sets *sets, struct leat_sets_request *request)
{
    struct leat_group_call *call = request->group;
    struct leat_set *set = leat_sets_set_find(sets, request->set);
    if (call->leaver_count > LEAT_GROUP_LEAVERS_MAX)
        return leat_sets_answer(request, LEAT_E_TOO_MANY, "too many members in one request");
    bool left = false;
    for (uint32_t i = 0; i < call->leaver_count; i++) {
        struct leat_group_leaver *leaver = &call->leavers[i];
        leaver->rc =
            set && set->group ? leaver_do(sets, set->group, leaver) : LEAT_E_UNKNOWN_MEMBER;
        left = left || leaver->rc == LEAT_OK;
    }
    if (left) leat_sets_group_prepare(sets, set);
    return leat_sets_answer(request, LEAT_OK, NULL);
}

void leat_sets_group_cancel(struct leat_sets *sets, struct leat_set *set,
                            struct leat_sets_request *request)
{
    struct leat_group *group = set->group;
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct leat_group_member *member = group->members[i];
        if (member->join != request && member->sync != request) continue;
        bool joining = member->join == request;
        if (joining)
            member->join = NULL;
        else
            member->sync = NULL;
        leat_sets_group_heard(sets, member);
        if (!joining || !member->nameless) return;
        leat_sets_group_member_end(sets, group, member, LEAT_E_CANCELLED);
        leat_sets_group_prepare(sets, set);
        return;
    }
}
