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
    uint32_t at; /* the log's number in the walk, from 1 on; 0: the walk begins */
    struct leat_log_ref ref;
    uint64_t owner; /* the incarnation to fetch from; 0: not known */
    uint32_t epoch; /* ... and the epoch that a fetch names */
    uint64_t
        next; /* the next offset to fetch; by position: all records of `group` before it were read */
    bool by_position;
    uint64_t group;       /* the segment group that is read by position */
    uint32_t generation;  /* changes when positions change, perhaps to the same `next` */
    uint64_t grace_us;    /* how long the owner may wait for more bytes */
    bool fetching;        /* the log is in the fetch under way */
    uint64_t poll_us;     /* by position: how long a fetch of other logs may keep the log waiting */
    uint64_t retry_at_us; /* no fetch names the log before this time */
    /* The log is to be fetched, there is room for the answer, and no question about owners is under way. A log that is
     * read by position is also to be asked first where a group begins, or where an offset in the group lies. */
    bool reads;
};
/** The next log; the first log when all of `seen` is zero. false: no more. */
bool leat_consumer_log_next(const struct leat_consumer_engine *engine,
                            struct leat_consumer_log_seen *seen);

#endif
