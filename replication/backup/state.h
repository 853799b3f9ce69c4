/* SPDX-License-Identifier: Apache-2.0 */
/* The backup from the inside. Private to its module (tests may include it). */
#ifndef LEAT_REPLICATION_BACKUP_STATE_H
#define LEAT_REPLICATION_BACKUP_STATE_H

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/free_list.h"
#include "base/mem.h"
#include "replication/backup/backup.h"
#include "replication/control/messages.h"

enum {
    BACKUP_SLOTS_PER_STEP = 1024,
    BACKUP_SLOTS_MAX = 8 * 1024 * 1024,
    BACKUP_WRITERS_MAX = 1024,
    BACKUP_WRITERS_MIN = 2,   /* the memory for replicas is divided by so many writers at least */
    BACKUP_ATTACHES_MAX = 64, /* of one writer: its cores ask at once */
    BACKUP_ROWS_MAX = 256,    /* of one AUDIT answer */
    BACKUP_UNFLUSHED_BYTES_MIN = 512 * 1024 * 1024,
    BACKUP_LOG_BUCKETS = 8192,
    BACKUP_SERVES_MAX = 32, /* pieces for other nodes that are being read */
    BACKUP_LOOKS_MAX = 4,   /* replicas that are looked at (look.c), up to a segment each */
    /* A replica that its owner has not named since OPEN is listed in audits when it is older than this. */
    BACKUP_YOUNG_US = 60 * 1000 * 1000,
    /* A replica that may still be written to goes without its owner's DROP so long after the deletion of its stream. */
    BACKUP_GONE_US = 10 * 1000 * 1000,
};

/* A writer: an incarnation of a node that writes here. */
struct backup_writer {
    struct leat_list link;
    struct leat_backup *backup;
    char node[LEAT_LINK_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation;
    struct leat_rmem_arena *rmem;
    struct leat_arena arena; /* the same, as the store sees it; store's thread but for `base` */
    struct leat_store_arena_op add, retire;
    struct leat_store_arena *at_store; /* NULL: not yet, or not any more */
    bool ready;                        /* has memory: may be granted */
    bool fenced, retiring, failed;
    bool starved; /* its first memory was refused; the store asks again after a while */
    /* growth: asked on the store's thread, done by the host port on this one */
    struct leat_mail grow_mail, grown_mail;
    struct leat_arena_grow *growing;
    struct leat_rmem_grow grow;
    struct leat_link_ticket attaches[BACKUP_ATTACHES_MAX];
    unsigned attach_count;
    uint32_t replicas; /* with this writer */
    unsigned moves;    /* of a fence, under way */
};

struct backup_fence {
    struct leat_list link;
    struct leat_mail mail;
    struct leat_backup *backup;
    void (*on_done)(void *arg);
    void *arg;
};

/* Does a replica begin with this prefix id, which is shorter than the replica? look.c */
struct replica_looked {
    struct leat_prefix_id prefix_id; /* 0 bytes: not looked at */
    bool begins;
    uint64_t next_offset;
    int64_t max_timestamp_ms;
};

struct replica {
    struct leat_backup *backup;
    struct leat_segment *seg;     /* NULL: being opened */
    struct backup_writer *writer; /* NULL: found at a start */
    struct leat_list link;        /* backup->replicas */
    struct leat_list by_log;      /* backup->by_log; with seg */
    uint64_t handle;
    uint64_t opened_us;
    uint64_t gone_us; /* when its stream was deleted; 0: not since the replica is here */
    uint32_t flushed; /* bytes durable */
    unsigned busy;    /* requests under way */
    bool adopting;    /* it is becoming a log's own segment: no other use may begin */
    bool move_wanted; /* fenced: out of its writer's arena, as soon as nothing is under way */
    bool settled;     /* an owner has named it since it was made or found */
    struct leat_epoch owner_epoch; /* highest epoch of an owner that made or counted it */
    bool damaged;                  /* it counts for nothing: its bytes are not known to be right */
    bool dropping, evicting, drop_wanted;
    bool
        leave; /* its place serves no other segment, as its writer may still write there: REP_SETTLE_LEAVE */
    struct replica_looked looked[LEAT_BEGINS_MAX]; /* the latest first */
    struct leat_store_req evict;
};

/* A request under way at the store. */
struct backup_request {
    struct leat_backup *backup;
    struct replica *rep;
    struct leat_store_req req;
    unsigned kind; /* enum leat_rep_kind; 0: our own */
    struct leat_link_ticket ticket;
    struct rep_body body;
    struct backup_rows *rows;
    uint32_t row;
    void (*on_adopted)(void *arg, leat_err rc, struct leat_segment *seg);
    void *adopted_arg;
    void (*on_flushed)(void *arg, leat_err rc);
    unsigned adopted_to;
    enum leat_segment_state before; /* CLOSE: the state to restore on failure */
    bool cut;                       /* CLOSE: it was longer, and `uncut` is restored on failure */
    struct replica_looked uncut;
    struct leat_backup_pull *pull;
};

/* A request with rows: answered when all are done. */
struct backup_rows {
    struct leat_backup *backup;
    struct leat_link_ticket ticket;
    uint32_t count, left;
    struct rep_pair pairs[]; /* [count] */
};

/* Incarnations of a node up to this one are gone. */
struct backup_fenced {
    char node[LEAT_LINK_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation;
};
enum { BACKUP_FENCED_MAX = 256 };

struct leat_backup {
    struct leat_backup_options options;
    struct leat_store_port store_port;
    struct leat_list writers, replicas;
    struct leat_free_list requests_free; /* struct backup_request */
    struct leat_list *by_log;            /* [BACKUP_LOG_BUCKETS] */
    unsigned writer_count;
    struct replica **slots;
    uint32_t *generations;
    uint32_t slot_count, slot_free_hint;
    uint32_t replica_count;
    struct leat_list fences; /* struct backup_fence: wait for moves */
    unsigned moves;
    struct backup_fenced *fenced; /* [BACKUP_FENCED_MAX] */
    unsigned fenced_count;
    uint64_t opening_bytes; /* asked of the store, not yet in its accounts */
    uint8_t *answer;        /* AUDIT's */
    struct leat_rep_accounts accounts;
    unsigned serves, pulls, looks; /* under way */
};

static inline uint64_t backup_now(const struct leat_backup *backup)
{
    const struct leat_clock *clock = backup->options.env->clock;
    return clock->now_us(clock->ctx);
}

/* backup.c */
leat_err backup_replica_new(struct leat_backup *backup, struct replica **out_rep) LEAT_NODISCARD;
/** The replica has this segment from now on, and is found by its log. */
void backup_replica_has(struct replica *rep, struct leat_segment *seg);
/** The same for a busy replica that no writer on another node has opened.
 * SUBTLE: a replica may come after the deletion of its stream: it is dropped too, when it is not busy. (1) A log is
 * moving to another node, or an older segment to this node. (2) Its stream is deleted: its replicas here are dropped.
 * (3) The segment becomes a replica, and no owner will ever drop it: it would stay here until the next start. */
void backup_replica_comes(struct replica *rep, struct leat_segment *seg);
/** Does this backup know that the stream was deleted? */
bool backup_stream_is_gone(const struct leat_backup *backup, uint32_t stream);
/** The bucket with the replicas of this log (and of other logs), by `by_log`. */
struct leat_list *backup_bucket(const struct leat_backup *backup, struct leat_log_ref log);
struct replica *backup_find(const struct leat_backup *backup, uint64_t handle);
/** Close the replica, at its prefix id: `on_done` must call backup_closed() before any other use of the replica. */
void backup_close(struct backup_request *request, void (*on_done)(struct leat_store_req *req));
/** The end of backup_close(). If the disk refused, the replica is not closed, and has only the bytes on the disk. */
void backup_closed(struct backup_request *request);
void backup_answer(struct leat_backup *backup, const struct leat_link_ticket *ticket,
                   const struct replica *rep);
void backup_refuse(struct leat_backup *backup, const struct leat_link_ticket *ticket, leat_err rc,
                   const char *text);
/** The limit of bytes not yet in files, at the disk's latest speed. */
uint64_t backup_unflushed_max(const struct leat_backup *backup,
                              const struct leat_store_usage *usage);
uint64_t backup_load(const struct leat_backup *backup);
void backup_replica_free(struct replica *rep);
struct backup_request *backup_request_get(struct leat_backup *backup);
void backup_request_put(struct backup_request *request);
void backup_store(struct backup_request *request, enum leat_store_req_kind kind,
                  void (*on_done)(struct leat_store_req *req));
/** Drop the replica, as soon as it is not busy. */
void backup_drop(struct replica *rep);
/* Drop for an owner that is not the writer: the writer may not have stopped writing to the replica. */
void backup_drop_for_another(struct replica *rep);
/* An owner counts the replica. passed: the owner's leat_segment.passed_bytes + 1; 0: the owner does not say. */
void backup_confirm(struct replica *rep, uint32_t passed);
/** May the node that opened the replica still write into it? */
bool backup_is_written(const struct replica *rep);
/** Something that was under way has ended. */
void backup_idle(struct replica *rep);

/* writer.c */
struct backup_writer *backup_writer_find(const struct leat_backup *backup, const char *node,
                                         uint64_t incarnation);
void backup_attach(struct leat_backup *backup, const struct leat_link_identity *who,
                   const struct leat_link_ticket *ticket);
void backup_writers_fini(struct leat_backup *backup);
void backup_writer_left(struct backup_writer *writer);
/** Moves the replica out of the arena of its fenced writer. It is not busy. */
void backup_move(struct replica *rep);
/** The replica has moved, or need not move any more. The last one ends the fences that wait. */
void backup_move_over(struct replica *rep);
bool backup_is_fenced(const struct leat_backup *backup, const char *node, uint64_t incarnation);

/* look.c */
/** The result by which a longer hibernated or closed replica is known to begin with exactly this prefix id; NULL: it is
 * not known to. */
const struct replica_looked *backup_begins(const struct replica *rep,
                                           struct leat_prefix_id prefix_id);
/** Looks at a replica that may begin so and was not looked at yet. LEAT_OK: on_done later and once, and there may be
 * more such replicas; LEAT_E_NOT_FOUND: none; LEAT_E_AGAIN, LEAT_E_NO_MEMORY. */
leat_err backup_look(const struct leat_backup *backup, struct leat_log_ref log,
                     struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                     void (*on_done)(void *arg, bool begins), void *arg) LEAT_NODISCARD;

/* pull.c */
void backup_pull_serve(struct leat_backup *backup, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket);

/* adopt.c */
void backup_seal(struct leat_backup *backup, const struct leat_frame *frame,
                 const struct leat_link_ticket *ticket);

/** What another node says of leat_segment.passed_bytes: never more than the segment can have. */
static inline uint32_t backup_passed_bounded(const struct leat_segment *seg, uint32_t bytes)
{
    return bytes < seg->capacity ? bytes : seg->capacity;
}

#endif
