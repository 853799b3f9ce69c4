/* SPDX-License-Identifier: Apache-2.0 */
/* What a primary asks of a backup: kinds of requests, how they reach other nodes, and what is counted on both sides.
 * Bodies: messages.h. */
#ifndef LEAT_REPLICATION_CONTROL_CONTROL_H
#define LEAT_REPLICATION_CONTROL_CONTROL_H

#include "link/link.h"

enum {
    LEAT_REP_NODES_MAX = 256, /* as many as a cluster has; a node's number is its index in the
                                 coordinator's table */
    LEAT_REP_BATCH_MAX = 512, /* rows of one RESTAMP, FLUSH, SETTLE request or AUDIT answer */
};

/* Control requests to a backup (kinds of frames; bodies: messages.h). Never renumber.
 */
enum leat_rep_kind {
    LEAT_REP_ATTACH = LEAT_NODE_KIND_REPLICATION, /* begin of a session: grant of memory, load */
    LEAT_REP_OPEN,                                /* a buffer and a place on disk; may be refused */
    LEAT_REP_CLOSE,     /* complete: flush afterwards, give the buffer back */
    LEAT_REP_HIBERNATE, /* flush, record (length, CRC), give the buffer back; stays open */
    LEAT_REP_RESUME,    /* erase the record, a fresh buffer */
    LEAT_REP_COMPLETE,  /* a replacement is identical now */
    LEAT_REP_DROP,      /* trimmed, or not wanted any more */
    LEAT_REP_RESTAMP,   /* rows: another version */
    LEAT_REP_FLUSH,     /* rows: make bytes durable */
    LEAT_REP_AUDIT,     /* which replicas has no owner confirmed? */
    LEAT_REP_SETTLE,    /* rows: keep or drop */
    LEAT_REP_PULL,      /* any node: a piece of a replica that is closed, hibernated or fenced */
    LEAT_REP_SEAL,      /* a new owner: cut one of an old epoch to the decided end, and close it */
    LEAT_REP_ASK,       /* are you there? */
};

/* ---- how requests reach other nodes: by link/, or by a test's world ---- */
struct leat_rep_net {
    void *ctx;
    /** To node number `node`'s backup, over this core's session with it. As leat_link_call(). */
    leat_err (*call)(void *ctx, unsigned node, struct leat_link_call *call);
    /** Reset the session: leat_primary_peer_down() follows, later. */
    void (*cut)(void *ctx, unsigned node);
    /** Backup: answer a request, now or later. Dropped when its link has gone. */
    void (*answer)(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                   uint32_t control_bytes);
    void (*refuse)(void *ctx, const struct leat_link_ticket *ticket, leat_err rc, const char *text);
};

/* CPU time of the calling thread, for the accounts; ns NULL: nothing is counted. Thread: any. */
struct leat_cpu {
    uint64_t (*ns)(void *ctx);
    void *ctx;
};

/* ---- accounts ---- */
/* Totals since the start; CPU in ns. Thread: the owner's of what is asked. */
struct leat_rep_accounts {
    uint64_t cpu_append; /* primary: posting one-sided writes */
    uint64_t cpu_backup_control;
    uint64_t replicated_bytes; /* payload of completed writes, all replicas */
    uint64_t writes;
    uint64_t segments;     /* closed with all their copies */
    uint64_t control_rpcs; /* OPEN and CLOSE that were answered: 2 per segment and backup */
    uint64_t open_rpcs;    /* of these the OPEN */
    uint64_t hibernate_rpcs, resume_rpcs, flush_rpcs;
    uint64_t other_rpcs; /* restamp, complete, drop, audit, settle, attach */
    uint64_t refused_opens, lost_backups, replaced_copies, recopied_bytes, versions;
};

#endif
