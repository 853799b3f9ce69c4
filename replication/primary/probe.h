/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a primary: logs, replica sets (a set is a segment and its
 * copies), the state of each copy, and its node. A function that changes the primary says so. Only tests call this;
 * no program of the product links it.
 *
 * The results are of the moment of the call: pointers `at` identify the object. Thread: the primary's core, or any
 * while it does not run. After a node's death all values stay as they were. */
#ifndef LEAT_REPLICATION_PRIMARY_PROBE_H
#define LEAT_REPLICATION_PRIMARY_PROBE_H

#include "replication/primary/primary.h"

/* ---- logs ---- */
struct leat_primary_log_seen {
    const struct leat_primary *primary;
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint32_t copies, min_copies; /* the owner's included */
    bool held;                   /* acks wait for a version that the coordinator has to know */
    bool fenced;                 /* another owns it */
    bool silent;                 /* another owner was asked for */
    bool releasing;              /* given up */
};
struct leat_primary_log_seen leat_primary_log_see(const struct leat_primary_log *log);
/** The log after `before` (NULL: the first). NULL: no more, or primary is NULL. */
const struct leat_primary_log *leat_primary_log_next(const struct leat_primary *primary,
                                                     const struct leat_primary_log *before);
/** NULL: it is not here, or primary is NULL. */
const struct leat_primary_log *leat_primary_log_at(const struct leat_primary *primary,
                                                   struct leat_log_ref ref);

/* ---- sets ---- */
struct leat_set_seen {
    const void *at; /* NULL: none, and a walk begins */
    const struct leat_primary_log *log;
    const struct leat_segment *seg; /* NULL: not reserved yet */
    struct leat_segment_id id;
    uint32_t capacity, target; /* target: sealed bytes that all copies should have */
    bool reserved;
    bool started;                     /* its start entry may lie anywhere */
    bool closed;                      /* its close entry is on all copies */
    bool hibernated, want_hibernated; /* the local copy is; all are to be */
    bool dropping;
    bool starts, closes, hibernates, resumes; /* its log has asked for that, and is not answered */
    unsigned copy_count;                      /* without the local one */
};
/** The next of a log's sets, ascending: of settled sets, which are closed on every copy, or of all other sets. */
bool leat_set_see_next(const struct leat_primary_log *log, bool settled,
                       struct leat_set_seen *seen);
/** The set of a log's segment `id`; the set of `seg`. false: there is none. */
bool leat_set_see(const struct leat_primary_log *log, struct leat_segment_id id,
                  struct leat_set_seen *out_set);
bool leat_set_see_of(const struct leat_segment *seg, struct leat_set_seen *out_set);
/** The set before this set, among sets that are not settled. */
bool leat_set_see_before(const struct leat_set_seen *set, struct leat_set_seen *out_before);

/* ---- copies, and the nodes where they are ---- */
enum leat_copy_state { LEAT_COPY_OPENING, LEAT_COPY_OPEN, LEAT_COPY_HIBERNATED, LEAT_COPY_CLOSED };
struct leat_copy_seen {
    const void *at;   /* NULL: none, and a walk begins */
    const void *peer; /* leat_peer_seen.at */
    const char *node;
    uint64_t incarnation;
    enum leat_copy_state state; /* OPENING: asked for, and not part of anything yet */
    bool incomplete;            /* so marked there */
    bool found;                 /* its backup has not heard yet that it counts */
    bool lives;                 /* it belongs to the present session */
    bool leaves;                /* its backup is being told to drop it */
    uint64_t handle, place;     /* in its backup; of its first byte in that memory */
    uint32_t sent, done;        /* bytes posted; there, from the start */
    uint32_t writes;            /* under way */
};
/** i: below copy_count. */
struct leat_copy_seen leat_copy_see(const struct leat_set_seen *set, unsigned i);

struct leat_peer_seen {
    const void *at; /* NULL: none, and a walk begins */
    const char *node;
    uint64_t incarnation;
    bool attached;
    bool audits; /* an audit of the backup is under way */
    bool writes; /* some are under way there */
};
/** The next node that the primary knows. false: no more, or primary is NULL. */
bool leat_peer_see_next(const struct leat_primary *primary, struct leat_peer_seen *seen);
/** The next copy there that belongs to a set. */
bool leat_peer_copy_next(const struct leat_peer_seen *peer, struct leat_copy_seen *seen,
                         struct leat_set_seen *out_set);

/* ---- what is under way ---- */
/** The handle of the replica that a posted write is for. */
uint64_t leat_write_handle(const struct leat_rmem_write *write);
/** The copy and set of a write, and the end of the write in the segment. false: the copy was given up. */
bool leat_write_see(const struct leat_rmem_write *write, struct leat_copy_seen *out_copy,
                    struct leat_set_seen *out_set, uint64_t *out_end);
/** The copy of a closed segment that is made in the background; the copy that a piece is being read for. */
bool leat_recopy_see(const struct leat_primary *primary, struct leat_copy_seen *out_copy,
                     struct leat_set_seen *out_set);
bool leat_recopy_see_read(const struct leat_primary *primary, struct leat_copy_seen *out_copy,
                          struct leat_set_seen *out_set);
/** Is a piece being read, for any copy, also for a copy that has gone? */
bool leat_recopy_reads(const struct leat_primary *primary);
/** Changes it: how long a node that has gone is waited for before copies are made elsewhere, see the options. */
void leat_primary_grace_set(struct leat_primary *primary, uint64_t grace_us, uint64_t grace_none_us,
                            uint64_t grace_crashed_us);

#endif
