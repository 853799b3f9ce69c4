/* SPDX-License-Identifier: Apache-2.0 */
/* When a home has something to do by time alone. */
#include "sets/internal.h"

void leat_sets_timer_arm(struct leat_sets *sets)
{
    uint64_t next = UINT64_MAX, now = leat_sets_now_us(sets);
    for (uint32_t i = 0; i < sets->set_count && sets->life == LIFE_AWAKE; i++) {
        struct leat_set *set = sets->sets[i];
        uint64_t at = leat_sets_set_next_us(set);
        if (at < next) next = at;
        if (!sets->options.retention_us || leat_set_peopled(set)) continue;
        if (!set->used_us) set->used_us = now;
        at = set->used_us + sets->options.retention_us;
        if (at < next) next = at;
    }
    if (!leat_sets_all_acked(sets) && now + RETRY_US < next) next = now + RETRY_US;
    if (sets->untold) next = now;
    if (sets->unread && sets->read_by_us < next) next = sets->read_by_us;
    if (!leat_list_empty(&sets->reading) && now + READ_POLL_US < next) next = now + READ_POLL_US;
    if (sets->broken || next == UINT64_MAX)
        leat_timer_stop(sets->options.timers, &sets->timer);
    else
        leat_timer_start(sets->options.timers, &sets->timer, next > now ? next - now : 0);
}
