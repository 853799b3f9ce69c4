/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a consumer. Nothing here changes a consumer. Only tests call
 * this; no program of the product links it.
 *
 * Thread: the consumer's. */
#ifndef LEAT_CONSUMER_PROBE_H
#define LEAT_CONSUMER_PROBE_H

#include "consumer/engine.h"

/** Is the consumer a member of its group now? *out_generation: the last generation that it was told; 0: none. */
bool leat_consumer_is_member(const struct leat_consumer_engine *engine, uint32_t *out_generation);
/** Is the consumer to become a member, and has neither asked for that nor is about to? */
bool leat_consumer_stands_still(const struct leat_consumer_engine *engine);

#endif
