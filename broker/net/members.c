/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes, as a core knows them; which node a log is on, and which core there. Nothing is changed. */
#include "broker/net/members.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "broker/net/core.h"

uint32_t leat_lane_of_log(struct leat_log_ref ref, uint32_t logs, uint32_t cores)
{
    return (uint32_t)(((uint64_t)ref.stream + (uint64_t)ref.streamlet * logs + ref.log) % cores);
}

bool leat_core_owns(const struct leat_core *core, const struct leat_stream_desc *desc,
                    uint32_t streamlet)
{
    LEAT_ASSERT_OWNER(core);
    return desc->streamlets[streamlet].owner == core->node->incarnation;
}

const struct leat_member *leat_member_find(const struct leat_core *core, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_members *members = &core->members;
    for (uint32_t i = 0; i < members->count; i++)
        if (members->rows[i]->info.incarnation == incarnation) return members->rows[i];
    return NULL;
}

struct leat_member *leat_member_named(const struct leat_core *core, const char *name)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_members *members = &core->members;
    for (uint32_t i = 0; i < members->count; i++)
        if (strcmp(members->rows[i]->info.name, name) == 0) return members->rows[i];
    return NULL;
}

uint32_t leat_member_cores(const struct leat_core *core, uint64_t incarnation)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_member *member = leat_member_find(core, incarnation);
    return member != NULL && !member->self && member->info.cores > 0 ? member->info.cores
                                                                     : core->node->options.cores;
}

/* The node of an earlier incarnation. */
static const struct leat_member *member_of_earlier(const struct leat_core *core,
                                                   uint64_t incarnation)
{
    const struct leat_members *members = &core->members;
    for (uint32_t i = 0; i < members->count; i++)
        for (uint32_t e = 0; e < LEAT_MEMBER_EARLIER_MAX; e++)
            if (members->rows[i]->earlier[e] == incarnation) return members->rows[i];
    return NULL;
}

void leat_member_words(const struct leat_core *core, uint64_t incarnation, char *out,
                       size_t capacity)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_member *member = leat_member_find(core, incarnation);
    const struct leat_member *earlier =
        member == NULL ? member_of_earlier(core, incarnation) : NULL;
    if (incarnation == 0)
        snprintf(out, capacity, "no node");
    else if (member == NULL)
        snprintf(out, capacity, "%s%.64s as it was before its last start (incarnation %llu)",
                 earlier != NULL ? "node " : "a node", earlier != NULL ? earlier->info.name : "",
                 (unsigned long long)incarnation);
    else
        snprintf(out, capacity, "node %.64s (%.64s%s)", member->info.name, member->info.address,
                 member->info.state == LEAT_NODE_UP ? "" : ": down");
}

uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs)
{
    return leat_lane_of_log(ref, logs, node->options.cores);
}

leat_err leat_node_stands(const struct leat_node *node, struct leat_error *error)
{
    unsigned standing = atomic_load_explicit(&node->standing, memory_order_relaxed);
    if (standing != LEAT_STANDING_ALONE && standing != LEAT_STANDING_CRASHED) return LEAT_OK;
    /* SUBTLE: not STARTING, which tells a producer to stay here and to try again.
     *  1. The leader does not reach this node, and has the node declared crashed; clients reach it.
     *  2. A log's first append is refused, because backups refuse this incarnation. The next appends are answered here,
     *     at once: the producer has no silence to notice, and sent the same bytes here for as long as the cut lasted.
     * Other nodes know the owner. */
    return leat_error_set(error, LEAT_BUG(ISOLATED_HOLDS) ? LEAT_E_STARTING : LEAT_E_NOT_OWNER,
                          "this node does not know whether it is still up: ask another one for "
                          "metadata, or wait");
}

bool leat_all_nodes_up(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    for (uint32_t i = 0; i < core->members.count; i++)
        if (leat_member_is_missed(core->members.rows[i])) return false;
    return true;
}
