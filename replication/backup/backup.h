/* SPDX-License-Identifier: Apache-2.0 */
/* The backup: it keeps other nodes' segments (replicas) in this node's store. It hands out memory, and afterwards is
 * not asked about single writes (Tailwind, ATC'18, §3.3). replication/backup/README.md has the reasons. */
#ifndef LEAT_REPLICATION_BACKUP_BACKUP_H
#define LEAT_REPLICATION_BACKUP_BACKUP_H

#include "base/rmem.h"
#include "base/timer.h"
#include "replication/control/control.h"
#include "store/store.h"

enum { LEAT_BACKUP_PULLS_MAX = 64 }; /* segments that are fetched from other nodes at one time */

struct leat_backup; /* opaque; one per node, on the core that `env` belongs to */

struct leat_backup_options {
    const struct leat_env *env;
    const void *owner;          /* its core, as LEAT_ASSERT_OWNER() takes it */
    struct leat_timers *timers; /* takes LEAT_BACKUP_TIMERS */
    struct leat_store *store;
    struct leat_rep_net net;
    const struct leat_rmem_host *rmem; /* makes, grants, revokes arenas; NULL: only what is there */
    /** Is this stream known to be deleted? NULL: no stream is ever deleted. */
    bool (*stream_deleted)(void *arg, uint32_t stream);
    /** Is there no memory for what one replica more takes beside its bytes? Then opens are refused. NULL: there is. */
    bool (*is_full)(void *arg);
    void *arg;
    struct leat_cpu cpu;
    uint8_t cluster_id[16];
    uint64_t writer_bytes_max; /* memory for one writer's replicas: multiple of the arena step */
    /* Memory for the replicas of all writers: each writer may take an equal share, at most half. 0: no limit but
     * writer_bytes_max. */
    uint64_t writers_bytes_max;
    /* If this is more: what the first steps of all writers may take. A node without one can copy nothing here. */
    uint64_t first_bytes_max;
    /** Is this a node of the cluster, in this incarnation? Only such nodes get memory here. arg. NULL: every
     * requester is. */
    bool (*is_node)(void *arg, const char *node, uint64_t incarnation);
    /** How many bytes of writers_bytes_max other parts of the node need now: writers keep the steps that they have, and
     * new steps come from the rest. arg. NULL: none. */
    uint64_t (*less_bytes)(void *arg);
    /* 0: defaults */
    uint64_t unflushed_seconds; /* bytes not yet in files: at most what the disk takes in so long
                                   (10), never less than 512 MiB */
};
enum { LEAT_BACKUP_TIMERS = 1 };

leat_err leat_backup_create(const struct leat_backup_options *options,
                            struct leat_backup **out_backup) LEAT_NODISCARD;
void leat_backup_destroy(struct leat_backup **backup);
/** Asserts what is true of replicas and writers between two turns: for leat_actor_ops.check. Thread: owner. */
void leat_backup_check(const struct leat_backup *backup);
/** A replica that the start found; all come before the first request. The backup keeps the replica until an owner says
 * whether it counts. found->kind LOST: it counts for nothing, and an owner may drop it. */
leat_err leat_backup_take_found(struct leat_backup *backup,
                                const struct leat_found *found) LEAT_NODISCARD;
/** A request of kind LEAT_REP_*; writer: the identity of the link's peer. `frame` is a view. */
void leat_backup_request(struct leat_backup *backup, const struct leat_link_identity *writer,
                         const struct leat_frame *frame, const struct leat_link_ticket *ticket);
/**
 * Incarnations of the node up to `incarnation` are gone: their requests are refused from now on, and their arena is
 * revoked before this returns: none of their writes completes any more. on_done, later and once: their open replicas
 * have left the arena; writes that still land there are ignored. LEAT_E_NO_MEMORY: nothing was done. Thread: owner.
 */
leat_err leat_backup_fence(struct leat_backup *backup, const char *node, uint64_t incarnation,
                           void (*on_done)(void *arg), void *arg) LEAT_NODISCARD;
/**
 * This node becomes the owner of the log, in the epoch `owner`: its replica of the segment, cut to the committed
 * `prefix_id`, becomes the node's own closed segment, as durable as the stream's acks, and the backup forgets the
 * replica. next_offset 0, max_timestamp_ms INT64_MIN: taken from the bytes. on_done, later and once, with the
 * segment: no log owns the segment yet, but the store's events about it go to actor `to` from now on. Errors (on_done
 * never runs): LEAT_E_NOT_FOUND: no complete replica here that could be cut to this prefix id (a longer hibernated or
 * closed replica could only after leat_backup_look() has found that it begins so); LEAT_E_STALE_EPOCH: a later owner
 * counts the replica, so this node does not own the log any more; LEAT_E_AGAIN: the replica is busy, ask again;
 * LEAT_E_NO_MEMORY. By on_done: LEAT_E_DAMAGED, LEAT_E_DISK. Thread: owner.
 */
leat_err leat_backup_adopt(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_epoch owner, struct leat_segment_id segment,
                           struct leat_prefix_id prefix_id, uint64_t next_offset,
                           int64_t max_timestamp_ms, unsigned to,
                           void (*on_done)(void *arg, leat_err rc, struct leat_segment *seg),
                           void *arg) LEAT_NODISCARD;
/**
 * The way back: a segment of this node's own, of a log that another node owns by now, becomes a replica, which is
 * kept until the new owner decides. seg: closed or hibernated, in no log, without holders of its bytes, its owner_actor
 * is the backup's. useless: the bytes are not those of its prefix id, so the replica counts for nothing.
 * LEAT_E_NO_MEMORY: nothing was done.
 * Thread: owner.
 */
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless) LEAT_NODISCARD;

/** The node seems to have gone for good: its arena here is freed, and replicas that are still needed move to this
 * node's own memory. If the node comes after all, it attaches again. Thread: owner. */
void leat_backup_release(struct leat_backup *backup, const char *node, uint64_t incarnation);

/* A whole segment from another node. Caller's storage until on_done. */
struct leat_backup_pull {
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_prefix_id prefix_id;
    uint64_t next_offset;               /* after it; 0: what its bytes say */
    uint32_t version;                   /* of its stamp; 0: 1 */
    unsigned nodes[LEAT_REP_NODES_MAX]; /* numbers; asked in this order */
    unsigned node_count;
    bool whole; /* only from a replica that is not known to be longer */
    /* The segment ends where a recovery attempt would cut the log: the replica counts for that attempt, but not as
     * what is left of a log, until an owner counts it. */
    bool provisional;
    /* NULL: a replica is made. Otherwise only the bytes are fetched: prefix_id.bytes of them, to here. */
    uint8_t *into;
    void (*on_done)(struct leat_backup_pull *pull, leat_err rc);
    void *owner;
    /* the backup's */
    struct leat_mail mail;
    struct leat_backup *backup;
    struct leat_link_call call;
    struct replica *rep;
    uint8_t *first; /* the first piece, until the replica has a buffer */
    uint32_t first_bytes, at, asked, passed_bytes;
    unsigned node_at;
    uint64_t since_us; /* when the node at node_at was first asked */
    bool hurried; /* this piece has a short timeout, because another node may have the segment */
    bool slow;    /* a node was left because of such a timeout */
    bool patient; /* all nodes are asked once more, without short timeouts */
    leat_err rc;
    uint8_t control[96];
};
/**
 * Make a closed replica here with exactly these bytes, verified by (length, CRC), durable where the stream's acks
 * are; or fetch them only: `into`. Errors: LEAT_E_AGAIN (too many under way), LEAT_E_INVALID. By on_done, later and
 * once: LEAT_OK; LEAT_E_NOT_FOUND: no node has it; LEAT_E_NO_MEMORY, LEAT_E_DISK_FULL; else the most hopeful reason
 * that a node gave, or why a node could not be asked: a retryable error before any other (LEAT_E_DAMAGED), and
 * LEAT_E_NOT_FOUND last; of equals the first. Thread: owner.
 */
leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull) LEAT_NODISCARD;
/** Flush a replica here that begins with exactly these bytes, if the stream's level is disk and the bytes are not
 * durable yet. Errors: LEAT_E_NOT_FOUND, LEAT_E_AGAIN (the replica is busy), LEAT_E_NO_MEMORY; on_done never runs
 * then. Thread: owner. */
leat_err leat_backup_flush(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                           void (*on_done)(void *arg, leat_err rc), void *arg) LEAT_NODISCARD;
/**
 * Does this replica, which is hibernated or closed and longer, begin with exactly these bytes? The replica is read.
 * LEAT_OK: on_done, later and once; from then on the replica may be served, adopted and flushed with this prefix id.
 * Errors (on_done never runs): LEAT_E_NOT_FOUND: it can't begin so, or the answer is known; LEAT_E_AGAIN,
 * LEAT_E_NO_MEMORY. Thread: owner.
 */
leat_err leat_backup_look(struct leat_backup *backup, uint64_t handle,
                          struct leat_prefix_id prefix_id, void (*on_done)(void *arg, bool begins),
                          void *arg) LEAT_NODISCARD;
/** The same for any replica of the segment that may begin so; the caller asks again later. LEAT_E_AGAIN: a replica is
 * being looked at, or begins with these bytes and is not in its file yet; LEAT_E_NOT_FOUND: no replica is
 * left to look at; LEAT_E_NO_MEMORY. Thread: owner. */
leat_err leat_backup_look_any(struct leat_backup *backup, struct leat_log_ref log,
                              struct leat_segment_id segment,
                              struct leat_prefix_id prefix_id) LEAT_NODISCARD;
/** Is a whole closed or hibernated replica with exactly these bytes here? Thread: owner. */
bool leat_backup_holds(const struct leat_backup *backup, struct leat_log_ref log,
                       struct leat_segment_id segment, struct leat_prefix_id prefix_id);
/** The node owns the log under `epoch` and has all its segments: the remaining replicas of the log are dropped,
 * except replicas that a later owner counts, and unsure segments (leat_primary_log_options). */
void leat_backup_drop_log(struct leat_backup *backup, struct leat_log_ref log,
                          struct leat_epoch epoch, const struct leat_segment_range *unsure);
/** A committed delete entry: replicas of the stream are dropped; replicas that are written to are dropped on their
 * owner's request, or after a while. Later replicas of the stream are dropped by options.stream_deleted. */
void leat_backup_stream_deleted(struct leat_backup *backup, uint32_t stream);
/** After a start has taken over its replicas: drops replicas of streams that were deleted meanwhile. No other call
 * would ever drop these, for they have no owner. */
void leat_backup_drop_deleted(struct leat_backup *backup,
                              bool (*deleted)(void *arg, uint32_t stream), void *arg);
/** From the store's events, for segments with role LEAT_SEGMENT_REPLICA. */
void leat_backup_on_flushed(struct leat_backup *backup, struct leat_segment *seg);
void leat_backup_on_evict_wanted(struct leat_backup *backup, struct leat_segment *seg);
/** The owner hears of this with the next audit, no longer counts the replica, and has another copy made. */
void leat_backup_on_damaged(struct leat_backup *backup, struct leat_segment *seg);

/* One replica, for recovery, status and the operator. */
enum { LEAT_BEGINS_MAX = 2 }; /* ends that a longer replica is known to begin with, or not */
struct leat_replica_info {
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_epoch epoch;
    uint32_t version;
    enum leat_segment_state state;
    bool incomplete, settled, damaged;
    bool provisional; /* CLOSED: see leat_segment.provisional */
    bool torn;        /* HIBERNATED: see leat_segment.torn */
    bool mark;        /* whole, started, not closed; prefix id is what the scan or the hibernating
                                  record says. Marks of a live writer may grow while being looked at */
    struct leat_prefix_id prefix_id; /* CLOSED, HIBERNATED: all of it; else of the valid prefix */
    struct leat_prefix_id previous;
    uint64_t base_offset, next_offset;
    bool only_start;
    bool durable; /* that prefix id would survive a power cut */
    int64_t max_timestamp_ms;
    uint64_t writer;
    uint64_t handle;
    /* Shorter prefix ids that the replica is known to begin with; 0 bytes: no more are known. */
    struct leat_prefix_id begins[LEAT_BEGINS_MAX];
    const struct leat_segment *seg; /* view until return */
};
/** Calls each() for every replica of a log for which wanted() says so; open ones are scanned. */
void leat_backup_collect(struct leat_backup *backup,
                         bool (*wanted)(void *arg, struct leat_log_ref log),
                         void (*each)(void *arg, const struct leat_replica_info *info), void *arg);
/** Calls each() for every replica of a log (log NULL: of all logs). scan: read the bytes of open
 * ones too (slow: fence first). Thread: owner. */
void leat_backup_each(struct leat_backup *backup, const struct leat_log_ref *log, bool scan,
                      void (*each)(void *arg, const struct leat_replica_info *info), void *arg);

/* ---- status ---- */
struct leat_backup_status {
    uint32_t replicas, replicas_open, replicas_hibernated, replicas_unsettled, writers;
    uint64_t arena_used_bytes, unflushed_bytes, flush_bytes_per_second;
    struct leat_rep_accounts accounts;
};
void leat_backup_status(const struct leat_backup *backup, struct leat_backup_status *out);
/** Only these: no walk over the replicas. A view, as long as the backup. */
const struct leat_rep_accounts *leat_backup_accounts(const struct leat_backup *backup);

#endif
