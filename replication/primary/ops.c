/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about one replica: each waits for its turn at the backup, and at most LEAT_REP_CALLS_MAX are under way. */
#include "replication/primary/state.h"

struct rep_op *rep_op_get(struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    if (!leat_list_empty(&primary->ops_free))
        return LEAT_CONTAINER(leat_list_pop_front(&primary->ops_free), struct rep_op, link);
    struct rep_op *op = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *op);
    if (op) leat_list_init(&op->link);
    return op;
}

void rep_peer_ops(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    const struct leat_rep_net *net = &peer->primary->options.net;
    while (peer->state == REP_PEER_ATTACHED && peer->ops < LEAT_REP_CALLS_MAX &&
           !leat_list_empty(&peer->ops_waiting)) {
        struct rep_op *op = LEAT_CONTAINER(peer->ops_waiting.next, struct rep_op, link);
        if (!op->copy) {
            leat_list_remove(&op->link);
            leat_list_push_back(&peer->primary->ops_free, &op->link);
            continue;
        }
        if (net->call(net->ctx, peer->node.number, &op->call)) {
            rep_arm(peer->primary, REP_TICK_US); /* no room, or the end of the link is on its way */
            return;
        }
        leat_list_remove(&op->link);
        if (peer->ops++ == 0) {
            peer->ops_us = rep_now(peer->primary);
            rep_arm(peer->primary, REP_TICK_US);
        }
    }
}
