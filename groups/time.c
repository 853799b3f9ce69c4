/* SPDX-License-Identifier: Apache-2.0 */
/* When a home has something to do by time alone. */
#include "base/assert.h"
#include "groups/internal.h"

void leat_groups_timer_arm(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint64_t next = UINT64_MAX, now = leat_groups_now_us(groups);
    for (uint32_t i = 0; i < groups->group_count && groups->life == LIFE_AWAKE; i++) {
        struct leat_group *group = groups->groups[i];
        uint64_t at = leat_groups_group_next_us(group);
        if (at < next) next = at;
        if (!groups->options.retention_us || leat_group_peopled(group)) continue;
        if (!group->used_us) group->used_us = now;
        at = group->used_us + groups->options.retention_us;
        /* It stays until its end has room in a batch; the home's core has other things to do meanwhile. */
        if (at <= now && !leat_groups_record_fits(groups, RECORD_HEAD_BYTES)) at = now + RETRY_US;
        if (at < next) next = at;
    }
    if (!leat_groups_all_acked(groups) && now + RETRY_US < next) next = now + RETRY_US;
    if (groups->untold) next = now;
    if (groups->unread && groups->read_by_us < next) next = groups->read_by_us;
    if (!leat_list_empty(&groups->reading) && now + READ_POLL_US < next) next = now + READ_POLL_US;
    if (groups->broken || next == UINT64_MAX)
        leat_timer_stop(groups->options.timers, &groups->timer);
    else
        leat_timer_start(groups->options.timers, &groups->timer, next > now ? next - now : 0);
}
