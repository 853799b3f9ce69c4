/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections may change the cluster: drain, replace or promote a node, move a streamlet, accept a
 * loss. The operator of the machine may; a client that merely reaches the port of producers and consumers
 * may not.
 *
 * The node to which the client is connected makes the check; a request that another node hands on has
 * passed the check there. */
#ifndef LEAT_BROKER_ADMIN_ADMINISTER_H
#define LEAT_BROKER_ADMIN_ADMINISTER_H

#include "broker/net/core.h"

/** Does a request of this kind change the cluster? Thread: any. */
bool leat_administers(uint16_t kind);
/** May this connection ask for such changes? The account of the server and root may, by the Unix socket;
 * as long as nothing controls access every account of this machine may, by a loopback address. */
bool leat_peer_may_administer(const struct leat_peer *peer);
/** Why not, and how to ask so that it is allowed: for the answer. */
void leat_administer_refusal(const struct leat_peer *peer, struct leat_error *out_error);
/** Listen on the Unix socket. Where that fails the node log says so, and the node goes on without one. */
void leat_administer_open(struct leat_core *core);

#endif
