/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's checkers see of a client. Only tests call this; no program of the product links it.
 *
 * Thread: the client's. */
#ifndef LEAT_CLIENT_PROBE_H
#define LEAT_CLIENT_PROBE_H

#include "client/client.h"

/** The most open connections to one lane of one incarnation of a node; *out_lane: that lane. 0: none is open. */
unsigned leat_client_conns_alike(const struct leat_client *client, int64_t *out_lane);
/** For how long one node has owed the answer to a look-up, beyond the time limit of a request; 0: for no such time. */
uint64_t leat_client_lookup_late_us(const struct leat_client *client, uint64_t now_us);

#endif
