/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a coordinator: leadership, tables, pending requests, and
 * the recovery attempt. Only tests call these functions; no program of the product links them. A function that
 * changes the coordinator says so.
 *
 * Thread: the coordinator's, or any while its actor does not run. After a node's death all values stay as they were. */
#ifndef LEAT_COORDINATOR_PROBE_H
#define LEAT_COORDINATOR_PROBE_H

#include "coordinator/coordinator.h"
#include "coordinator/metadata/machine.h"

struct leat_coordinator_seen {
    bool leads;
    bool recovers; /* it leads in a cluster, not as a server alone */
    bool ready;
    uint64_t incarnation; /* its own; 0: not known yet */
    uint64_t applied;     /* entries */
    uint64_t ping;        /* number of the last round of pings */
    leat_err failed;      /* it goes on no more: */
    const char *failed_why;
    /* Of the running recovery attempt, or of the last attempt. */
    uint64_t attempt;
    enum leat_recovery_phase phase;
    bool commits; /* its decisions are proposed, and not applied yet */
};
struct leat_coordinator_seen leat_coordinator_see(const struct leat_coordinator *coordinator);

/** The tables, as this node has applied them: to be looked at by what machine.h finds. */
struct leat_machine *leat_coordinator_tables(const struct leat_coordinator *coordinator);
/** The pending request after `before` (NULL: the first): sent by this node and not applied yet. NULL: no more. */
const struct leat_coordinate *leat_coordinator_pending(const struct leat_coordinator *coordinator,
                                                       const struct leat_coordinate *before);
/** The last of this node's pings that this voter has answered, in this incarnation, by any connection; 0: none. */
uint64_t leat_coordinator_answered(const struct leat_coordinator *coordinator, const char *voter,
                                   uint64_t incarnation);

/** Changes it: has the disk no room for a segment of the log of raft? */
void leat_coordinator_full_set(struct leat_coordinator *coordinator, bool full);

/* ---- an attempt of recovery; nodes: by their index in the tables ---- */

/* A log of the attempt. */
struct leat_attempt_log {
    struct leat_log_ref ref;
    struct leat_log_record seen; /* in the tables, when the attempt began */
    enum leat_recover_decision decision;
    bool undecided; /* it waits, as no node that answered has its end */
    struct leat_tail_record tail;
    struct leat_prefix_id
        before; /* of the segment before the tail, if needed; bytes 0: not needed */
    /* Of its streamlet. */
    bool takes;     /* it gets an owner; else its owner lives */
    uint64_t owner; /* this incarnation */
};
/** false: there are not so many. */
bool leat_attempt_log(const struct leat_coordinator *coordinator, uint32_t log,
                      struct leat_attempt_log *out_log);

/* What a node has reported of a log. */
struct leat_attempt_row {
    const struct leat_replica_row *row; /* until the attempt goes on */
    uint32_t node;
    bool holds; /* the tail that was decided */
};
/** false: of this log there are not so many. */
bool leat_attempt_row(const struct leat_coordinator *coordinator, uint32_t log, uint32_t row,
                      struct leat_attempt_row *out_row);

/* A copy that a node is asked to make. */
struct leat_attempt_task {
    uint32_t log, node;
    bool before; /* not of the tail, but of the segment before it */
};
/** false: there are not so many. */
bool leat_attempt_task(const struct leat_coordinator *coordinator, uint32_t task,
                       struct leat_attempt_task *out_task);

/** Has this node reported all its replicas? */
bool leat_attempt_answered(const struct leat_coordinator *coordinator, uint32_t node);
/** Have all that are to come back? */
bool leat_attempt_all_heard(const struct leat_coordinator *coordinator);
/** Logs that wait, and why; out_count: of all, of which LEAT_RECOVERY_WAITING_MAX are there. */
const struct leat_recovery_waiting *leat_attempt_waiting(const struct leat_coordinator *coordinator,
                                                         uint32_t *out_count);

#endif
