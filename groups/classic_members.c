/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a classic group, for all parts: the member of a request, sessions, memory, removal. */
#include "base/assert.h"
#include "groups/internal.h"

struct leat_classic_member *leat_groups_classic_member_check(struct leat_group *group,
                                                             struct leat_groups_request *request)
{
    struct leat_classic *classic = group ? group->classic : NULL;
    struct leat_msg_string id = leat_classic_text(request->member);
    struct leat_msg_string instance = request->classic->instance;
    struct leat_classic_member *member = classic ? leat_classic_member_find(classic, id) : NULL;
    if (classic && instance.bytes > 0) {
        struct leat_classic_member *holder = leat_classic_instance_find(classic, instance);
        if (holder && holder != member) {
            (void)leat_groups_answer(request, LEAT_E_MEMBER_FENCED,
                                     "another member has taken over this instance id");
            return NULL;
        }
        if (!holder) member = NULL;
    }
    if (!member || member->pending) {
        (void)leat_groups_answer(request, LEAT_E_UNKNOWN_MEMBER,
                                 "not a member of the group (any more): join anew");
        return NULL;
    }
    if (request->generation != group->generation) {
        (void)leat_groups_answer(request, LEAT_E_STALE_GENERATION,
                                 "the group has another generation: join again");
        return NULL;
    }
    return member;
}

void leat_groups_classic_heard(struct leat_groups *groups, struct leat_classic_member *member)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    member->deadline_us = leat_groups_now_us(groups) + (uint64_t)member->session_ms * 1000;
}

/* SUBTLE: a classic group keeps the memory of its assignments during a rebalance.
 *  1. A member joins again, and all assignments are dropped. Other clients fill the home with members.
 *  2. The leader assigns as much as before, and is refused, as there is no room now.
 * This memory counts for the group's maker meanwhile: the assigned members may have left. */
static size_t assigned_kept(const struct leat_classic *classic)
{
    size_t now = leat_classic_assigned_bytes(classic);
    return classic->assigned_bytes > now ? classic->assigned_bytes - now : 0;
}

bool leat_groups_members_have_room(const struct leat_groups *groups, uint64_t address,
                                   const struct leat_classic_member *except, size_t bytes)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    size_t all = 0, own = 0;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_classic *classic = groups->groups[i]->classic;
        for (uint32_t m = 0; classic && m < classic->member_count; m++) {
            const struct leat_classic_member *member = classic->members[m];
            if (member == except) continue;
            size_t takes = leat_classic_member_bytes(member) + member->assignment_bytes;
            all += takes;
            if (address != 0 && member->address == address) own += takes;
        }
        size_t kept = classic ? assigned_kept(classic) : 0;
        all += kept;
        if (address != 0 && groups->groups[i]->maker == address) own += kept;
    }
    return leat_groups_share_has(address, own, all, groups->options.group_bytes_max, bytes);
}

/* An earlier join or sync of the same member still waits: its answer would be news of yesterday. */
void leat_groups_classic_held_end(struct leat_groups *groups, struct leat_groups_request **held,
                                  leat_err rc)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_groups_request *request = *held;
    if (!request) return;
    *held = NULL;
    (void)leat_groups_answer(request, rc, leat_err_text(rc));
    leat_groups_tell(groups, request);
}

void leat_groups_classic_member_end(struct leat_groups *groups, struct leat_classic *classic,
                                    struct leat_classic_member *member, leat_err rc)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    leat_groups_classic_held_end(groups, &member->join, rc);
    leat_groups_classic_held_end(groups, &member->sync, rc);
    leat_classic_member_remove(classic, member);
}
