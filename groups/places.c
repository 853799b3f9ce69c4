/* SPDX-License-Identifier: Apache-2.0 */
/* Places for groups: which group is dropped for a new group, and how a group is removed. */
#include <string.h>

#include "base/assert.h"
#include "groups/internal.h"

static bool has_a_set(const struct leat_groups *groups, uint64_t address)
{
    for (uint32_t i = 0; i < groups->group_count; i++)
        if (groups->groups[i]->maker == address) return true;
    return false;
}

/* An idle group is dropped for a new group: joined once, and never committed to. First idle groups of the same maker;
 * groups of other makers only for an address without any. Recorded, otherwise a restart would find more groups than
 * may exist. */
static void group_idle_drop(struct leat_groups *groups, uint64_t maker)
{
    if (!leat_groups_record_fits(groups, RECORD_HEAD_BYTES)) return;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const struct leat_group *group = groups->groups[i];
        if (!leat_group_idle(group) || (maker != 0 && group->maker != maker)) continue;
        leat_groups_group_forget(groups, group);
        return;
    }
}

void leat_groups_group_forget(struct leat_groups *groups, const struct leat_group *group)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    struct leat_stored_record record = {0};
    memcpy(record.name, group->name, sizeof record.name);
    leat_record_delete_write(&writer, &record);
    leat_groups_group_remove(groups, group->name);
    leat_groups_record_add(groups, &writer);
}

bool leat_groups_group_room(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_group *group = leat_groups_group_find(groups, request->group);
    const struct leat_group_member *again =
        group ? leat_group_member_find(group, request->member) : NULL;
    if (group && !again) leat_group_maker_adopt(group, request->address);
    const uint32_t more = group == NULL;
    const uint64_t maker = again ? 0 : group ? group->maker : request->address;
    size_t bytes = 4 * RECORD_HEAD_BYTES, memory = leat_group_memory_bytes_max();
    if (again) { /* only additional streams take room: the table counts 5 bytes for each */
        bytes = request->stream_count > again->stream_count
                    ? 5 * (size_t)(request->stream_count - again->stream_count)
                    : 0;
        memory = 0;
    }
    const char *why = leat_groups_lacks(groups, maker, more, bytes, memory);
    /* Two of others' at most: a share of one group takes two places that are free (leat_groups_share_has()). */
    for (int others = 0; why && more && others < 3; others++) {
        if (others &&
            (groups->group_count + 1 < LEAT_GROUPS_PER_HOME_MAX || has_a_set(groups, maker)))
            break;
        group_idle_drop(groups, others ? 0 : maker);
        why = leat_groups_lacks(groups, maker, more, bytes, memory);
    }
    if (!why) return true;
    (void)leat_groups_answer(request, LEAT_E_TOO_MANY, why);
    return false;
}
