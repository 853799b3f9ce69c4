/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/probe.h"

#include "broker/data/replicate.h"
#include "broker/net/core.h"

const char *leat_node_name(const struct leat_node *node)
{
    return node->name;
}

uint64_t leat_node_incarnation(const struct leat_node *node)
{
    return node->incarnation;
}

const uint8_t *leat_node_cluster_id(const struct leat_node *node)
{
    return node->cluster_id;
}

bool leat_node_has_cores(const struct leat_node *node)
{
    return node->cores != NULL;
}

bool leat_node_is_confirmed(const struct leat_node *node)
{
    return leat_node_stands(node, NULL) == LEAT_OK;
}

uint64_t leat_node_heap_asked_us(const struct leat_node *node)
{
    return atomic_load(&node->heap_wait.asked_us);
}

const char *leat_node_member(const struct leat_node *node, uint32_t member)
{
    if (!node->cores || member >= node->cores[0].members.count) return NULL;
    return node->cores[0].members.rows[member]->info.name;
}

static const struct leat_replicate *replicate_of(const struct leat_node *node, uint32_t core)
{
    LEAT_ASSERT_CMP(core, <, node->options.cores);
    return node->cores ? node->cores[core].replicate : NULL;
}

struct leat_primary *leat_node_primary(const struct leat_node *node, uint32_t core)
{
    const struct leat_replicate *replicate = replicate_of(node, core);
    return replicate ? replicate->primary : NULL;
}

struct leat_backup *leat_node_backup(const struct leat_node *node)
{
    const struct leat_replicate *replicate = replicate_of(node, 0);
    return replicate ? replicate->backup : NULL;
}
