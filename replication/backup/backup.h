/* SPDX-License-Identifier: Apache-2.0 */
/* The backup: it keeps other nodes' segments (replicas) in this node's store. It hands out memory, and afterwards is
 * not asked about single writes (Tailwind, ATC'18, §3.3). replication/backup/README.md has the reasons. */
#ifndef LEAT_REPLICATION_BACKUP_BACKUP_H
#define LEAT_REPLICATION_BACKUP_BACKUP_H

#include "base/rmem.h"
#include "base/timer.h"
#include "replication/control/control.h"
#include "store/store.h"

enum { LEAT_BACKUP_PULLS_MAX = 64 }; /* of whole segments from elsewhere, at one time */

struct leat_backup; /* opaque; one per node, on the core that `env` belongs to */

struct leat_backup_options {
    const struct leat_env *env;
    struct leat_timers *timers; /* takes LEAT_BACKUP_TIMERS */
    struct leat_store *store;
    struct leat_rep_net net;
    const struct leat_rmem_host *rmem; /* makes, grants, revokes arenas; NULL: only what is there */
    /** Is it known that this stream was deleted? NULL: none ever is. */
    bool (*stream_deleted)(void *arg, uint32_t stream);
    /** Is there no memory for what one replica more takes beside its bytes? Then opens are refused. NULL: there is. */
    bool (*is_full)(void *arg);
    void *arg;
    struct leat_cpu cpu;
    uint8_t cluster_id[16];
    uint64_t writer_bytes_max; /* memory for one writer's replicas: multiple of the arena step */
    /* For all of them; of it each has the same share, and at most half. 0: no limit but each one's. */
    uint64_t writers_bytes_max;
    /* Where that is less: what the first steps of all may take, without which a node can copy nothing here. */
    uint64_t first_bytes_max;
    /** Is that a node of the cluster, in this incarnation? Nobody else has memory here. arg. NULL: whoever asks is. */
    bool (*is_node)(void *arg, const char *node, uint64_t incarnation);
    /** By how much less than writers_bytes_max it has to be now: steps that are there stay, none comes. arg. NULL:
     * by nothing. */
    uint64_t (*less_bytes)(void *arg);
    /* 0: defaults */
    uint64_t unflushed_seconds; /* bytes not yet in files: at most what the disk takes in so long
                                   (10), never less than 512 MiB */
};
enum { LEAT_BACKUP_TIMERS = 1 };

leat_err leat_backup_create(const struct leat_backup_options *options,
                            struct leat_backup **out_backup) LEAT_NODISCARD;
void leat_backup_destroy(struct leat_backup **backup);
/** A replica found at start; all of them before the first request. It is kept until an owner has
 * given its word. found->kind LOST: known, never a mark. */
leat_err leat_backup_take_found(struct leat_backup *backup,
                                const struct leat_found *found) LEAT_NODISCARD;
/** A request of kind LEAT_REP_*; writer: who the link says it is. `frame` is a view. */
void leat_backup_request(struct leat_backup *backup, const struct leat_link_identity *writer,
                         const struct leat_frame *frame, const struct leat_link_ticket *ticket);
/**
 * Incarnations of that node up to this one are gone: requests of theirs are refused from now on,
 * their arena is revoked before this returns: no write of theirs completes any more. on_done, later
 * and once: open replicas of theirs have left that memory, what still lands there is not looked at.
 * LEAT_E_NO_MEMORY: nothing was done. Thread: owner.
 */
leat_err leat_backup_fence(struct leat_backup *backup, const char *node, uint64_t incarnation,
                           void (*on_done)(void *arg), void *arg) LEAT_NODISCARD;
/**
 * This node becomes the owner of the log, in the epoch `owner`: its replica of that segment, cut to `extent` as the
 * coordinator has committed it, becomes the node's own closed segment, durably where the stream's
 * acks are, and the backup forgets it. next_offset 0, max_timestamp_ms INT64_MIN: what its bytes say. on_done,
 * later and once, with the segment: nobody owns it until a log does, but what the store has to tell
 * about it goes to actor `to` from now on. Errors (on_done never runs): LEAT_E_NOT_FOUND: no whole
 * replica here that could hold that, nor a longer one that was looked at (leat_backup_look());
 * LEAT_E_STALE_EPOCH: a later owner counts on it, so the log is not this one's any more; LEAT_E_AGAIN:
 * something is under way with it, ask again; LEAT_E_NO_MEMORY. By on_done: LEAT_E_DAMAGED, LEAT_E_DISK.
 * Thread: owner.
 */
leat_err leat_backup_adopt(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_epoch owner, struct leat_segment_id segment,
                           struct leat_extent extent, uint64_t next_offset,
                           int64_t max_timestamp_ms, unsigned to,
                           void (*on_done)(void *arg, leat_err rc, struct leat_segment *seg),
                           void *arg) LEAT_NODISCARD;
/**
 * The way back: a segment that was this node's own, of a log that another node owns by now, becomes
 * a replica that is kept until its owner has given its word. seg: closed or parked, no log has it any
 * more, nobody holds its bytes, its owner_actor is the backup's. useless: its log has found other bytes than its
 * extent says, and it counts for nothing. LEAT_E_NO_MEMORY: nothing was done.
 * Thread: owner.
 */
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless) LEAT_NODISCARD;

/** That node has gone for good, as it seems: its memory here goes back, what is needed of it goes on in this node's
 * own. Should it come after all it attaches again. Thread: owner. */
void leat_backup_release(struct leat_backup *backup, const char *node, uint64_t incarnation);

/* A whole segment from another node. Caller's storage until on_done. */
struct leat_backup_pull {
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_extent extent;
    uint64_t next_offset;               /* after it; 0: what its bytes say */
    uint32_t version;                   /* of its stamp; 0: 1 */
    unsigned nodes[LEAT_REP_NODES_MAX]; /* numbers; asked in this order */
    unsigned node_count;
    bool whole; /* only of one that is not known to go on behind it */
    /* It ends where an attempt of recovery would cut the log: it counts as a copy of that, but not as what is left of
     * a log before an owner has counted on it. */
    bool tentative;
    /* NULL: a replica is made of it. Else only the bytes are wanted: as many as the extent says, here. */
    uint8_t *into;
    void (*on_done)(struct leat_backup_pull *pull, leat_err rc);
    void *owner;
    /* the backup's */
    struct leat_mail mail;
    struct leat_backup *backup;
    struct leat_link_call call;
    struct replica *rep;
    uint8_t *first; /* piece, until there is a place for it */
    uint32_t first_bytes, at, asked, passed_bytes;
    unsigned node_at;
    uint64_t since_us; /* the node at node_at was asked first */
    bool hurried, slow,
        patient; /* this piece; one was left for its pace; all are asked once more */
    leat_err rc;
    uint8_t control[96];
};
/**
 * Make a closed replica here with exactly these bytes, verified by (length, CRC), durable where the
 * stream's acks are; or fetch them only: `into`. Errors: LEAT_E_AGAIN (too many under way),
 * LEAT_E_INVALID. By on_done, later and once: LEAT_OK; LEAT_E_NOT_FOUND: none of the nodes has it;
 * LEAT_E_NO_MEMORY, LEAT_E_DISK_FULL; what the first node said, or why it could not be asked, of those that leave most
 * hope: to be tried again, else a reason of its own (LEAT_E_DAMAGED), else that it has not got it. Thread: owner.
 */
leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull) LEAT_NODISCARD;
/** The bytes of a replica here that begins with exactly that become durable, if the stream's level is
 * disk and they are not. Errors: LEAT_E_NOT_FOUND, LEAT_E_AGAIN (something is under way with it),
 * LEAT_E_NO_MEMORY; on_done never runs then. Thread: owner. */
leat_err leat_backup_flush(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_segment_id segment, struct leat_extent extent,
                           void (*on_done)(void *arg, leat_err rc), void *arg) LEAT_NODISCARD;
/**
 * Does that replica, which is parked or closed and longer, begin with exactly these bytes? It is read.
 * LEAT_OK: on_done, later and once; it may be served, adopted and flushed as that from then on. Errors
 * (on_done never runs): LEAT_E_NOT_FOUND: it can't, or it is known; LEAT_E_AGAIN, LEAT_E_NO_MEMORY. Thread: owner.
 */
leat_err leat_backup_look(struct leat_backup *backup, uint64_t handle, struct leat_extent extent,
                          void (*on_done)(void *arg, bool begins), void *arg) LEAT_NODISCARD;
/** The same of whichever replica of that segment may, for whoever asks again: LEAT_E_AGAIN: one is looked at, or
 * begins with them and is not in its file yet;
 * LEAT_E_NOT_FOUND: there is none that nobody has looked at; LEAT_E_NO_MEMORY. Thread: owner. */
leat_err leat_backup_look_any(struct leat_backup *backup, struct leat_log_ref log,
                              struct leat_segment_id segment,
                              struct leat_extent extent) LEAT_NODISCARD;
/** Is a whole closed or parked replica with exactly these bytes here? Thread: owner. */
bool leat_backup_holds(const struct leat_backup *backup, struct leat_log_ref log,
                       struct leat_segment_id segment, struct leat_extent extent);
/** The node owns the log under that epoch and has all of it: what is left of it among its replicas
 * goes, but what an owner after this one counts on, and segments of which it is not sure (leat_primary_log_options). */
void leat_backup_drop_log(struct leat_backup *backup, struct leat_log_ref log,
                          struct leat_epoch epoch, const struct leat_segment_range *unsure);
/** A committed delete entry: replicas of that stream go, those that are written to with their owner's word, or after
 * a while. Those that come after this go as options.stream_deleted says. */
void leat_backup_stream_deleted(struct leat_backup *backup, uint32_t stream);
/** After what a start has found was taken: replicas of streams that were deleted meanwhile go. Nobody else would ever
 * say so, for they have no owner. */
void leat_backup_drop_deleted(struct leat_backup *backup,
                              bool (*deleted)(void *arg, uint32_t stream), void *arg);
/** From the store's events, for segments with role LEAT_SEGMENT_REPLICA. */
void leat_backup_on_flushed(struct leat_backup *backup, struct leat_segment *seg);
void leat_backup_on_evict_wanted(struct leat_backup *backup, struct leat_segment *seg);
/** The owner hears of it with the next audit, counts on it no more, and has another copy made. */
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
    bool tentative;            /* CLOSED: see leat_segment.tentative */
    bool ragged;               /* PARKED: see leat_segment.ragged */
    bool mark;                 /* whole, started, not closed; extent is what the scan or the parking
                                  record says. Marks of a live writer may grow while being looked at */
    struct leat_extent extent; /* CLOSED, PARKED: all of it; else of the valid prefix */
    struct leat_extent previous;
    uint64_t base_offset, next_offset;
    bool only_start;
    bool durable; /* that extent would survive a power cut */
    int64_t max_timestamp_ms;
    uint64_t writer;
    uint64_t handle;
    /* shorter; it was found to begin with these. 0 bytes: not known of any (more) */
    struct leat_extent begins[LEAT_BEGINS_MAX];
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
    uint32_t replicas, replicas_open, replicas_parked, replicas_unsettled, writers;
    uint64_t arena_used_bytes, unflushed_bytes, flush_bytes_per_second;
    struct leat_rep_accounts accounts;
};
void leat_backup_status(const struct leat_backup *backup, struct leat_backup_status *out);
/** Only these: no walk over the replicas. A view, as long as the backup. */
const struct leat_rep_accounts *leat_backup_accounts(const struct leat_backup *backup);

#endif
