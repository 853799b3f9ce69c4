/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's checkers see of a client. Only tests call this; no program of the product links it.
 *
 * Thread: the client's. */
#ifndef LEAT_CLIENT_PROBE_H
#define LEAT_CLIENT_PROBE_H

#include "client/client.h"

/** The most open connections to one lane of one incarnation of a node; *out_lane: that lane. 0: none is open. */
unsigned leat_client_conns_alike(const struct leat_client *client, int64_t *out_lane);

#endif
