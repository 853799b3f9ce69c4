/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of any part of a core on a connection: pause its reads, close it, count a request of it. */
#include "base/assert.h"
#include "base/node_log.h"
#include "broker/net/core.h"

void leat_peer_begin(struct leat_peer *peer)
{
    peer->requests++;
}

void leat_peer_close(struct leat_peer *peer, const char *why)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->conn == NULL || peer->closing) return;
    leat_node_log_summed(&peer->core->closed_sum, leat_core_now(peer->core), LEAT_NODE_LOG_INFO,
                         "%s (%s) closed: %s", peer->core->net->peer(peer->conn), peer->name, why);
    peer->closing = true;
    leat_peer_pause(peer, LEAT_PAUSE_CLOSING);
    peer->core->net->close(peer->conn);
}

void leat_peer_pause(struct leat_peer *peer, enum leat_pause why)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->paused == 0 && peer->conn != NULL) peer->core->net->pause(peer->conn);
    peer->paused |= why;
}

void leat_peer_resume(struct leat_peer *peer, enum leat_pause why)
{
    LEAT_ASSERT_OWNER(peer->core);
    if ((peer->paused & why) == 0) return;
    peer->paused &= ~(unsigned)why;
    if (peer->paused == 0 && peer->conn != NULL) peer->core->net->resume(peer->conn);
}
