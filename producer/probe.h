/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's checkers see of a producer. Only tests call this; no program of the product links it.
 *
 * Thread: the producer's. */
#ifndef LEAT_PRODUCER_PROBE_H
#define LEAT_PRODUCER_PROBE_H

#include "producer/engine.h"

/** Does the producer count as under way to each log what waits there with a sequence? */
bool leat_producer_under_way_is_right(const struct leat_producer_engine *engine);

#endif
