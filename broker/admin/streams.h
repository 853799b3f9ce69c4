/* SPDX-License-Identifier: Apache-2.0 */
/* May a stream be made, or moved? Private to broker/; what front ends call is in broker/front_logs.h. */
#ifndef LEAT_BROKER_ADMIN_STREAMS_H
#define LEAT_BROKER_ADMIN_STREAMS_H

#include "broker/data/seek.h"
#include "broker/front_logs.h"
#include "broker/net/core.h"

/** Streams that requests name are made at a limited rate: may this core make one more now, for this address? An
 * address gets half of the rate. Error: LEAT_E_STARTING. Call once for each stream that is made. Thread: core. */
leat_err leat_stream_rate_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  struct leat_error *error) LEAT_NODISCARD;
/** May the target have this streamlet as well? The target's memory is taken to be like this node's. LEAT_E_TOO_MANY.
 * Thread: any core. */
leat_err leat_stream_move_allowed(const struct leat_core *core, const struct leat_stream_desc *desc,
                                  const struct leat_node_info *target,
                                  struct leat_error *error) LEAT_NODISCARD;
#endif
