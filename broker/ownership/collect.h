/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator asks of this node when other nodes have crashed (docs/recovery.md), and the reports of this
 * node's own standing. Private to broker/. */
#ifndef LEAT_BROKER_OWNERSHIP_COLLECT_H
#define LEAT_BROKER_OWNERSHIP_COLLECT_H

#include "coordinator/coordinator.h"

/** For leat_coordinator_options. Thread: coordinator. */
void leat_node_on_collect(void *owner, struct leat_collect *collect);
void leat_node_on_pull(void *owner, struct leat_pull *pull);
void leat_node_on_standing(void *owner, enum leat_standing standing);

#endif
