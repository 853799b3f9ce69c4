/* SPDX-License-Identifier: Apache-2.0 */
/* Leat's own protocol on a connection. */
#ifndef LEAT_BROKER_NODE_NATIVE_H
#define LEAT_BROKER_NODE_NATIVE_H

#include "base/port.h"
#include "wire/frame.h"

struct leat_core;
struct leat_peer;

void *leat_peer_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler);
/** Take a request that is neither append nor fetch. False: there is no such kind. */
bool leat_peer_call(struct leat_peer *peer, const struct leat_frame *frame);

/** Listen on the Unix socket for requests that change the cluster. Where that fails the node log says so, and the node
 * goes on without one. */
void leat_administer_open(struct leat_core *core);

#endif
