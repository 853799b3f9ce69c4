/* SPDX-License-Identifier: Apache-2.0 */
#include "groups/probe.h"

#include "groups/internal.h"

void leat_groups_see(const struct leat_groups *groups, struct leat_groups_seen *out_seen)
{
    *out_seen = (struct leat_groups_seen){
        .serves = groups->life == LIFE_AWAKE && !groups->broken,
        .in_flight = groups->in_flight,
        .waits = !leat_list_empty(&groups->waiting),
        .gathers = groups->sealed_bytes != 0 || groups->builder.record_count != 0,
        .acked = groups->acked,
    };
}

struct leat_group *leat_groups_see_group(struct leat_groups *groups, const char *name)
{
    return leat_groups_group_find(groups, name);
}
