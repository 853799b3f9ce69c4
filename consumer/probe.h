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

/* A log that a consumer reads. */
struct leat_consumer_log_seen {
    uint32_t at; /* which one; 0: none, and a walk begins */
    struct leat_log_ref ref;
    uint64_t owner;    /* the incarnation that it is fetched from; 0: not known */
    uint32_t epoch;    /* ... and the epoch that is asked for */
    uint64_t next;     /* the records from there on are wanted */
    uint64_t grace_us; /* so long its owner may wait for more bytes */
    /* A fetch of it is under way, there is room for the answer, and owners are not asked for. */
    bool reads;
};
/** The next one; the first one when all of `seen` is zero. false: no more. */
bool leat_consumer_log_next(const struct leat_consumer_engine *engine,
                            struct leat_consumer_log_seen *seen);

#endif
