/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator asks of this node when others have crashed, and tells of how it stands
 * itself. Private to broker/. See docs/recovery.md. */
#ifndef LEAT_BROKER_OWNERSHIP_COLLECT_H
#define LEAT_BROKER_OWNERSHIP_COLLECT_H

#include "coordinator/coordinator.h"

/** For leat_coordinator_options. Thread: coordinator. */
void leat_node_on_collect(void *owner, struct leat_collect *collect);
void leat_node_on_pull(void *owner, struct leat_pull *pull);
void leat_node_on_standing(void *owner, enum leat_standing standing);

#endif
