/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a group, as all parts see them: who asks, sessions, what they may take, their end. */
#include "sets/internal.h"

struct leat_group_member *leat_sets_group_member_check(struct leat_set *set,
                                                       struct leat_sets_request *request)
{
    struct leat_group *group = set ? set->group : NULL;
    struct leat_msg_string id = leat_group_text(request->member);
    struct leat_msg_string instance = request->group->instance;
    struct leat_group_member *member = group ? leat_group_member_find(group, id) : NULL;
    if (group && instance.bytes > 0) {
        struct leat_group_member *holder = leat_group_instance_find(group, instance);
        if (holder && holder != member) {
            (void)leat_sets_answer(request, LEAT_E_MEMBER_FENCED,
                                   "another member has taken over this instance id");
            return NULL;
        }
        if (!holder) member = NULL;
    }
    if (!member || member->pending) {
        (void)leat_sets_answer(request, LEAT_E_UNKNOWN_MEMBER,
                               "not a member of the group (any more): join anew");
        return NULL;
    }
    if (request->generation != set->generation) {
        (void)leat_sets_answer(request, LEAT_E_STALE_GENERATION,
                               "the group has another generation: join again");
        return NULL;
    }
    return member;
}

void leat_sets_group_heard(struct leat_sets *sets, struct leat_group_member *member)
{
    member->deadline_us = leat_sets_now_us(sets) + (uint64_t)member->session_ms * 1000;
}

/* SUBTLE: what a group had shared out stays its own while it is shared out anew.
 *  1. A member joins again, and the assignments of all are dropped. Strangers fill the home with members.
 *  2. The leader shares out as much as before, and is refused, as there is no room for it now.
 * It counts for the set's maker meanwhile: who was assigned it may have left. */
static size_t assigned_kept(const struct leat_group *group)
{
    size_t now = leat_group_assigned_bytes(group);
    return group->assigned_bytes > now ? group->assigned_bytes - now : 0;
}

bool leat_sets_members_have_room(const struct leat_sets *sets, uint64_t address,
                                 const struct leat_group_member *except, size_t bytes)
{
    size_t all = 0, own = 0;
    for (uint32_t i = 0; i < sets->set_count; i++) {
        const struct leat_group *group = sets->sets[i]->group;
        for (uint32_t m = 0; group && m < group->member_count; m++) {
            const struct leat_group_member *member = group->members[m];
            if (member == except) continue;
            size_t takes = leat_group_member_bytes(member) + member->assignment_bytes;
            all += takes;
            if (address != 0 && member->address == address) own += takes;
        }
        size_t kept = group ? assigned_kept(group) : 0;
        all += kept;
        if (address != 0 && sets->sets[i]->maker == address) own += kept;
    }
    return leat_sets_share_has(address, own, all, sets->options.group_bytes_max, bytes);
}

/* An earlier join or sync of the same member still waits: its answer would be news of yesterday. */
void leat_sets_group_held_end(struct leat_sets *sets, struct leat_sets_request **held, leat_err rc)
{
    struct leat_sets_request *request = *held;
    if (!request) return;
    *held = NULL;
    (void)leat_sets_answer(request, rc, leat_err_text(rc));
    leat_sets_tell(sets, request);
}

void leat_sets_group_member_end(struct leat_sets *sets, struct leat_group *group,
                                struct leat_group_member *member, leat_err rc)
{
    leat_sets_group_held_end(sets, &member->join, rc);
    leat_sets_group_held_end(sets, &member->sync, rc);
    leat_group_member_remove(group, member);
}
