/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are not heard of are DOWN, where none is declared crashed: the leader says so, and that they are UP
 * again. */
#include "coordinator/membership/detect.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"

static void watch_done(struct leat_coordinate *request)
{
    ((struct leat_coordinator *)request->owner)->watching = false;
}

static void watch_tell(struct leat_coordinator *coordinator, const struct leat_node_info *node,
                       enum leat_node_state state)
{
    coordinator->watching = true;
    coordinator->watch_request = (struct leat_coordinate){.kind = LEAT_COORDINATE_NODE_STATE,
                                                          .from = LEAT_ACTOR_COORDINATOR,
                                                          .target = node->name,
                                                          .incarnation = node->incarnation,
                                                          .node_state = state,
                                                          .on_done = watch_done,
                                                          .owner = coordinator};
    co_request_queue(coordinator, &coordinator->watch_request);
}

static bool node_heard(struct leat_coordinator *coordinator, const struct leat_node_info *node)
{
    return node->incarnation == coordinator->incarnation ||
           co_peer_of_incarnation(coordinator, node->incarnation) != NULL;
}

void co_down_tick(struct leat_coordinator *coordinator, uint64_t now_us)
{
    if (!co_leads(coordinator) || coordinator->watching || co_recovers(coordinator)) return;
    for (uint32_t i = 0; i < coordinator->machine.node_count; i++) {
        const struct leat_node_info *node = &coordinator->machine.nodes[i].info;
        if (!node->node_address[0]) continue; /* an embedded node of before */
        bool heard = node_heard(coordinator, node);
        /* SUBTLE: the entry that says that a node has come up is applied here before the node
         * itself has applied it and can tell its new incarnation. Held against the time when its
         * last incarnation was heard of, it was called down at once, and up again when it was
         * heard: clients that asked in between did not learn its address. */
        bool anew = coordinator->watch[i].incarnation != node->incarnation;
        if (heard || anew) coordinator->watch[i].heard_us = now_us;
        coordinator->watch[i].incarnation = node->incarnation;
        enum leat_node_state state = node->state;
        if (heard && state != LEAT_NODE_UP)
            state = LEAT_NODE_UP;
        else if (state == LEAT_NODE_UP &&
                 now_us > coordinator->watch[i].heard_us + CO_DOWN_AFTER_US)
            state = LEAT_NODE_DOWN;
        if (state == node->state) continue;
        watch_tell(coordinator, node, state);
        return;
    }
}
