/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections may ask for changes of the cluster: see calls.h. */
#include "broker/admin/calls.h"

#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"

bool leat_administers(uint16_t kind)
{
    return kind == LEAT_KIND_NODE_CHANGE || kind == LEAT_KIND_STREAMLET_MOVE ||
           kind == LEAT_KIND_LOG_RECOVER;
}

bool leat_peer_may_administer(const struct leat_peer *peer)
{
    return peer->core->net->origin(peer->conn) != LEAT_ORIGIN_NETWORK;
}

void leat_administer_refusal(const struct leat_peer *peer, struct leat_error *out_error)
{
    LEAT_ASSERT_OWNER(peer->core);
    enum { PATH_BYTES_SHOWN = 90 };
    const struct leat_node *node = peer->core->node;
    const char *path = node->options.admin_path;
    bool shown = path != NULL && strlen(path) <= PATH_BYTES_SHOWN;
    leat_error_set(
        out_error, LEAT_E_DENIED,
        "what changes the cluster is not taken from %.48s, another machine: on the machine of "
        "node %.40s, as its leatd's account or root, say -b unix:%s",
        peer->core->net->peer(peer->conn), node->name,
        shown ? path : "leatd.sock in its data directory");
}
