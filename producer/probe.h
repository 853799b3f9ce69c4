/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's checkers see of a producer. Only tests call this; no program of the product links it.
 *
 * Thread: the producer's. */
#ifndef LEAT_PRODUCER_PROBE_H
#define LEAT_PRODUCER_PROBE_H

#include "producer/engine.h"

/** Does the producer count as under way to each log what waits there with a sequence? */
bool leat_producer_under_way_is_right(const struct leat_producer_engine *engine);

/* A log that a producer appends to. */
struct leat_producer_log_seen {
    uint32_t stream, streamlet; /* where the walk is; 0, 0: it begins */
    struct leat_log_ref ref;
    uint64_t
        oldest_us; /* the oldest batch that was not acked yet was begun then; 0: there is none */
};
/** The next log; the first log when all of `seen` is zero. false: no more. */
bool leat_producer_log_next(const struct leat_producer_engine *engine,
                            struct leat_producer_log_seen *seen);

#endif
