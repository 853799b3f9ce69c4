/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a backup: its replicas, the state of each, and the writers
 * into its memory. Nothing here changes a backup. Only tests call this; no program of the product links it.
 *
 * Thread: the backup's, or any while its actor does not run. */
#ifndef LEAT_REPLICATION_BACKUP_PROBE_H
#define LEAT_REPLICATION_BACKUP_PROBE_H

#include "replication/backup/backup.h"

/* A writer: one incarnation of a node. */
struct leat_writer_seen {
    const void *at; /* which one; NULL: none, and the walk begins */
    const char *node;
    uint64_t incarnation;
    const struct leat_rmem_arena *arena;     /* NULL: it has no memory here yet */
    const struct leat_store_arena *at_store; /* the same; NULL: not yet, or not any more */
    bool fenced;
    unsigned moves; /* replicas that must leave its memory before the fence is done */
};

struct leat_replica_seen {
    const void *at;                 /* which one; NULL: none, and the walk begins */
    const struct leat_segment *seg; /* NULL: it is being opened */
    uint64_t handle;                /* as its owner names it; of no other replica of this process */
    struct leat_writer_seen writer; /* all zero: a start found it */
    bool written;                   /* the node that opened the replica may still write into it */
    bool busy;                      /* something of it is under way at the store */
    bool adopting;                  /* it becomes a segment of a log of this node */
    bool move_wanted;               /* it is to leave its writer's memory */
    bool damaged;                   /* it counts for nothing */
    bool dropping;                  /* it goes: the store is asked for it, */
    bool drop_wanted;               /* ... or will be, when nothing else is under way */
    bool leave; /* its place is never given out again, as its writer was cut off */
    struct leat_epoch owner_epoch; /* of the latest owner that made or counted it; 0: none */
};

/** By its handle. false: there is none. */
bool leat_backup_see(const struct leat_backup *backup, uint64_t handle,
                     struct leat_replica_seen *out_seen);
/** The replica of a segment; false: the segment has role OWN, or no backup has taken it yet. */
bool leat_backup_see_segment(const struct leat_segment *seg, struct leat_replica_seen *out_seen);
/** The next replica; the first one when all of `seen` is zero. false: there is none, or backup is NULL. */
bool leat_backup_see_next(const struct leat_backup *backup, struct leat_replica_seen *seen);
/** The same, of the replicas of a log that have a segment. */
bool leat_backup_see_of(const struct leat_backup *backup, struct leat_log_ref log,
                        struct leat_replica_seen *seen);
/** The next writer. */
bool leat_backup_see_writer(const struct leat_backup *backup, struct leat_writer_seen *seen);
/** How many pieces are being read for others; how many replicas are on their way out of fenced memory. */
unsigned leat_backup_serving(const struct leat_backup *backup);
unsigned leat_backup_moving(const struct leat_backup *backup);

#endif
