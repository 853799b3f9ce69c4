/* SPDX-License-Identifier: Apache-2.0 */
#include "groups/probe.h"

#include "groups/internal.h"

static bool any_joins(const struct leat_groups *groups)
{
    LEAT_LIST_EACH(&groups->waiting, link)
    if (LEAT_CONTAINER(link, const struct leat_groups_request, link)->state == REQUEST_JOIN)
        return true;
    return false;
}

void leat_groups_see(const struct leat_groups *groups, struct leat_groups_seen *out_seen)
{
    *out_seen = (struct leat_groups_seen){
        .serves = groups->life == LIFE_AWAKE && !groups->broken,
        .in_flight = groups->in_flight,
        .waits = !leat_list_empty(&groups->waiting),
        .joins = any_joins(groups),
        .asks = !leat_list_empty(&groups->querying),
        .gathers = groups->sealed_bytes != 0 || groups->builder.record_count != 0,
        .acked = groups->acked,
    };
}

struct leat_group *leat_groups_see_group(struct leat_groups *groups, const char *name)
{
    return leat_groups_group_find(groups, name);
}
