/* SPDX-License-Identifier: Apache-2.0 */
/* The newest segment of a log at or below a given segment, on any node. Private to broker/.
 *
 * As a rule each segment's start entry names the segment before it. After an accepted loss no start entry names the
 * segment before the offset gap, and any node may have older segments of the log: this node asks all nodes (LOG_BELOW).
 */
#ifndef LEAT_BROKER_OWNERSHIP_BELOW_H
#define LEAT_BROKER_OWNERSHIP_BELOW_H

#include "broker/net/core.h"
#include "broker/ownership/calls.h"

enum { LEAT_BELOW_CANDIDATES_MAX = 4, LEAT_BELOW_BYTES_MAX = 48 };

/* Whole closed replicas of one segment, by prefix id. All replicas are equal, with two exceptions: replicas that
 * failed recovery attempts made, and replicas of owners whose log was decided to end before this segment. */
struct leat_below_found {
    uint64_t segment;
    uint32_t epoch; /* of the owner that wrote it */
    uint32_t count; /* of candidates; 0: there is none */
    struct leat_below_candidate {
        struct leat_prefix_id prefix_id;
        uint32_t nodes; /* nodes with such a replica */
    } candidates[LEAT_BELOW_CANDIDATES_MAX];
};

/* Caller's storage until on_done. */
struct leat_below {
    struct leat_core *core; /* 0 */
    struct leat_log_ref ref;
    uint64_t segment; /* this segment is looked for, or else the newest segment before it */
    /** Once, never inside leat_below_start(). LEAT_OK: this node and all other nodes that are up have answered.
     * Otherwise a node has not answered, or still has the log as its own: ask again. */
    void (*on_done)(struct leat_below *below, leat_err rc);
    void *owner;
    struct leat_below_found found;
    bool missed; /* a node that may have a newer replica was down when it was to be asked */
    /* its own fields */
    struct leat_mail mail;
    struct leat_ask ask;
    uint32_t at; /* index in the members: the node that is asked next */
    uint8_t control[LEAT_BELOW_BYTES_MAX];
};
/** Thread: core 0. */
void leat_below_start(struct leat_below *below);
/** Adds the answer of a node that has a whole closed replica of this segment and epoch. Only replicas of the newest
 * segment stay in `found`, and of these only replicas of the latest epoch. A length that no segment can have is
 * ignored. `found` is zeroed before the first call. */
void leat_below_add(struct leat_below_found *found, uint64_t segment, uint32_t epoch,
                    struct leat_prefix_id prefix_id);
/** The prefix id that most nodes have; of two prefix ids on as many nodes the longer. found.count is not 0. */
struct leat_prefix_id leat_below_best(const struct leat_below_found *found);
/** No node gives out the best replica: removes it, so the next best replica counts. False: it was the only one. */
bool leat_below_pass(struct leat_below_found *found);

#endif
