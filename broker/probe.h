/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers know of a node: who it is, and the primaries and the backup of its
 * cores, which have probes of their own. Tests alone call this; no program of the product links it. Nothing here
 * changes a node.
 *
 * Thread: core 0's, or any while no actor of the node runs. Of a node that has died all is as it was. */
#ifndef LEAT_BROKER_PROBE_H
#define LEAT_BROKER_PROBE_H

#include "broker/node.h"

struct leat_backup;
struct leat_groups;
struct leat_log;
struct leat_primary;
struct leat_primary_log;

/* Limits that clients meet. */
struct leat_node_limits {
    uint32_t fetch_bytes;     /* LEAT_FETCH_BYTES_MAX */
    uint64_t lend_us;         /* LEAT_LEND_US */
    uint64_t stall_us;        /* LEAT_PEER_STALL_US */
    uint64_t log_spare_bytes; /* of heap: below this, no log is made */
};
extern const struct leat_node_limits leat_node_limits;

const char *leat_node_name(const struct leat_node *node);
/** 0: it has none yet. */
uint64_t leat_node_incarnation(const struct leat_node *node);
/** 16 bytes; zeros: not known yet. */
const uint8_t *leat_node_cluster_id(const struct leat_node *node);
/** Are its cores made? What is said of cores below is NULL before. */
bool leat_node_has_cores(const struct leat_node *node);
/** Does it know that it is up, so that it may serve reads? */
bool leat_node_is_confirmed(const struct leat_node *node);
/** When a log of it last asked for heap and found no room; 0: never. */
uint64_t leat_node_heap_asked_us(const struct leat_node *node);
/** The name of a node of the cluster, in the order in which this one asks them; NULL: there are not so many. */
const char *leat_node_member(const struct leat_node *node, uint32_t member);

/** Of a core. NULL: it has none, as a server alone, or none yet. */
struct leat_primary *leat_node_primary(const struct leat_node *node, uint32_t core);
/** NULL: likewise. */
struct leat_backup *leat_node_backup(const struct leat_node *node);
/** Connections of a core wait for a buffer of reads: when the oldest read that has a buffer got it. 0: no connection
 * waits, or no read has one. */
uint64_t leat_node_lent_us(const struct leat_node *node, uint32_t core);
/** How many streamlets are being handed over. */
uint32_t leat_node_handing_over(const struct leat_node *node);
/** Is the coordinator asked, or about to be, to give a streamlet with a stopped log of this node to another node? */
bool leat_node_move_asks(const struct leat_node *node);
/** Do logs, or older segments of logs, come to this node? */
bool leat_node_taking_over(const struct leat_node *node);
/** The segment that the first such log of a streamlet wants now. false: no log of the streamlet comes. */
bool leat_node_takeover_wants(const struct leat_node *node, uint32_t stream, uint32_t streamlet,
                              uint64_t *out_segment);
/* A log, or an older segment of a log, that comes to this node. */
struct leat_takeover_seen {
    const void *at; /* which one; NULL: none, and a walk begins */
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint64_t segment; /* the one that it wants now */
    /* For an answer, for its log, or for an earlier takeover of the same log; or it ends now. */
    bool waits;
};
/** The next one; the first one when all of `seen` is zero. false: no more. */
bool leat_node_takeover_next(const struct leat_node *node, struct leat_takeover_seen *seen);
/** Does a core know this stream, or has one not let go of all of it? */
bool leat_node_has_stream(const struct leat_node *node, uint32_t stream);

/* A log that this node has. */
struct leat_partition_seen {
    const void *at;        /* which one; NULL: none, and a walk begins */
    uint32_t core, bucket; /* where the walk is */
    struct leat_log_ref ref;
    struct leat_log *log;                  /* NULL: none is made of it yet */
    const struct leat_primary_log *copies; /* NULL: this node's copy is the only one */
    struct leat_groups *groups;            /* of a home log that has been read; else NULL */
    bool going;                            /* deleted or stopped: no new work */
    bool drained;                          /* stopped, to go to another owner */
    bool blocked;                          /* appends wait for room in the log */
    bool moves;                            /* another owner is asked for, or has it */
};
/** The next one, core by core; the first one when all of `seen` is zero. false: no more, or it has no cores. */
bool leat_node_partition_next(const struct leat_node *node, struct leat_partition_seen *seen);
/** The same logs in another order, which changes from look to look; much cheaper where logs are few. */
bool leat_node_log_next(const struct leat_node *node, struct leat_partition_seen *seen);
/** That one. false: it is not here. */
bool leat_node_partition_at(const struct leat_node *node, struct leat_log_ref ref,
                            struct leat_partition_seen *out_seen);
/** The epoch of its streamlet, as the log's core knows it. false: that core does not know the stream. */
bool leat_node_partition_epoch(const struct leat_node *node, const struct leat_partition_seen *seen,
                               uint32_t *out_epoch);

#endif
