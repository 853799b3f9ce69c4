/* Replication: every segment on several nodes, by one-sided writes (Tailwind, ATC'18, §3.3).
 *
 * Two faces. The *primary* stands in front of the store on every core: logs with more than one copy
 * give it the same requests (struct leat_keep) that they would give to the store, and it answers
 * when all copies have done what was asked. The *backup* keeps other nodes' segments (replicas) in
 * this node's store: it hands out memory and afterwards is not asked about single writes.
 *
 *     log -> keeper (leat_primary_keeper) -> store                  of this node
 *                                         -> one-sided writes       into each backup's arena
 *                                         -> control requests  ->   backup -> store   of that node
 *
 * replication/README.md has the order of steps and the reasons.
 */
#ifndef LEAT_REPLICATION_REPLICATION_H
#define LEAT_REPLICATION_REPLICATION_H

#include "base/rmem.h"
#include "base/timer.h"
#include "link/link.h"
#include "store/store.h"

enum {
    LEAT_REP_NODES_MAX = 256, /* as many as a cluster has; a node's number is its index in the
                                 coordinator's table */
    LEAT_REP_CALLS_MAX = 512, /* control requests of one core to one node under way; more wait */
    LEAT_REP_BATCH_MAX = 512, /* rows of one RESTAMP, FLUSH, SETTLE request or AUDIT answer */
    LEAT_REP_WRITE_BYTES_MAX = 1024 * 1024,  /* one one-sided write */
    LEAT_REP_MESSAGE_BYTES_MAX = 128 * 1024, /* one that travels as a message */
    LEAT_REP_CANDIDATES = 5,                 /* drawn at random, the least loaded wins */
    LEAT_REP_HOST_BYTES_MAX = 255,
    LEAT_BACKUP_PULLS_MAX = 64, /* of whole segments from elsewhere, at one time */
};

/* Control requests to a backup (kinds of frames; bodies: replication/messages.h). Never renumber.
 */
enum leat_rep_kind {
    LEAT_REP_ATTACH = LEAT_NODE_KIND_REPLICATION, /* begin of a session: grant of memory, load */
    LEAT_REP_OPEN,                                /* a buffer and a place on disk; may be refused */
    LEAT_REP_CLOSE,                               /* complete: flush behind, give the buffer back */
    LEAT_REP_PARK,     /* flush, record (length, CRC), give the buffer back; stays open */
    LEAT_REP_RESUME,   /* erase the record, a fresh buffer */
    LEAT_REP_COMPLETE, /* a replacement is identical now */
    LEAT_REP_DROP,     /* trimmed, or not wanted any more */
    LEAT_REP_RESTAMP,  /* rows: the version is another one */
    LEAT_REP_FLUSH,    /* rows: make bytes durable */
    LEAT_REP_AUDIT,    /* which replicas have nobody's word? */
    LEAT_REP_SETTLE,   /* rows: keep or drop */
    LEAT_REP_PULL,     /* any node: a piece of a replica that is closed, parked or fenced */
    LEAT_REP_SEAL,     /* a new owner: cut one of an old epoch to the decided end, and close it */
    LEAT_REP_ASK,      /* are you there? */
    LEAT_REP_KINDS_END,
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

/* A node as placement sees it. */
struct leat_rep_node {
    unsigned number;
    char name[LEAT_LINK_NODE_NAME_BYTES_MAX + 1]; /* for people; "": its number stands for it */
    uint64_t incarnation;                         /* 0: down */
    char host[LEAT_REP_HOST_BYTES_MAX + 1];       /* of its address */
    char rack[LEAT_REP_HOST_BYTES_MAX + 1];       /* "": none said */
    bool draining;                                /* gets no new replicas */
    /* Down, and that incarnation never comes back: the next one is there in seconds, or much later. */
    bool crashed;
    bool gone; /* down, and nobody expects it back */
};

/* ================================ primary ================================ */
struct leat_primary;     /* opaque; one per core */
struct leat_primary_log; /* opaque; one per log of that core with copies > 1 */

/* The versions of logs that lost a copy, for the coordinator: one entry for all of them. */
struct leat_rep_version {
    struct leat_log_ref log;
    struct leat_epoch epoch;
    uint32_t version;
};

struct leat_primary_events {
    /**
     * Have the coordinator commit these versions (LEAT_COORDINATE_VERSION), then call
     * leat_primary_versions_done(), later, once. One at a time. rows: borrowed until then.
     */
    void (*on_versions)(void *owner, struct leat_primary *primary,
                        const struct leat_rep_version *rows, size_t count);
    /** A node has come: what the keeper's refusal() said may not hold any more. NULL: not wanted. */
    void (*on_room)(void *owner, struct leat_primary_log *rep);
    /** A closed segment was to be copied again, and what this node's file has of it is damaged. NULL: not
     * wanted. */
    void (*on_damaged)(void *owner, struct leat_primary_log *rep, struct leat_segment *seg);
};

struct leat_primary_options {
    const struct leat_env *env; /* the core's */
    struct leat_timers *timers; /* takes LEAT_PRIMARY_TIMERS */
    struct leat_keeper store;   /* below */
    struct leat_rep_net net;
    const struct leat_rmem *rmem; /* the core's: one-sided writes */
    struct leat_cpu cpu;
    struct leat_rep_node self;
    struct leat_primary_events events;
    void *owner;
    /* 0: defaults */
    uint64_t answer_us; /* a control request, or a write, not done for so long: that backup is
                               lost (2 s) */
    /* Nothing that is asked of a backup is answered for so long, while others answer several
     * questions: it is lost. Longer where answers have taken their time of late (0: never). */
    uint64_t quiet_us;
    uint64_t flush_us;     /* likewise a flush (10 s) */
    uint64_t open_wait_us; /* a reservation tries backups for so long, then goes on with fewer
                               copies or is refused (2 s) */
    /* Closed segments of a lost backup are copied elsewhere after: while a node is not heard, or has
     * not told what it has (60 s); while one that crashed is not back (20 s); else (1 s). Never after
     * more than grace_us. */
    uint64_t grace_us, grace_crashed_us, grace_none_us;
    uint64_t audit_us; /* each backup is asked what it holds without anybody's word (30 s) */
    uint64_t recopy_bytes_per_second; /* background (64 MiB) */
    unsigned window;                  /* writes in flight per replica (4) */
};
enum { LEAT_PRIMARY_TIMERS = 1 };

leat_err leat_primary_create(const struct leat_primary_options *options,
                             struct leat_primary **out_primary) LEAT_NODISCARD;
/** Only when its logs are destroyed. Sessions end. */
void leat_primary_destroy(struct leat_primary **primary);

/** The node table changed. incarnation 0 or another one: replicas at the old one are lost. */
void leat_primary_node_set(struct leat_primary *primary, const struct leat_rep_node *node);
/** That node's link was refused, for that reason: the link is tried again, nothing else changes. */
void leat_primary_peer_refused(struct leat_primary *primary, unsigned node, leat_err rc);
/** The link to that node's backup is up: the session begins (ATTACH). */
void leat_primary_peer_up(struct leat_primary *primary, unsigned node);
/** The link is gone: every replica there that is not closed is lost for this core. Losing the
 * control connection is losing the backup (else writes into the memory of a dead one would count).
 */
void leat_primary_peer_down(struct leat_primary *primary, unsigned node);

struct leat_primary_log_options {
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint32_t copies, min_copies; /* copies > 1: else use the store's keeper as it is */
    enum leat_durability durability;
    uint32_t version; /* the coordinator's for this log and epoch; 1 for a new or adopted log */
    bool opened;      /* this epoch's first segment is committed already */
    /* Older segments come by leat_primary_log_add(): until leat_primary_log_whole() nobody is told
     * to drop what is not known here. */
    bool older_follow;
    /* Nor of these, after that: the log has none of some, and can't tell whether they are its own. */
    struct leat_segment_range unsure;
    void *owner; /* for events */
};
/** segs: the log's closed segments. Where their other copies lie is found out by audits; what is
 * missing is copied in the background. Thread: the core. */
leat_err leat_primary_log_create(struct leat_primary *primary,
                                 const struct leat_primary_log_options *options,
                                 struct leat_segment *const *segs, size_t seg_count,
                                 struct leat_primary_log **out_rep) LEAT_NODISCARD;
/** One more closed segment, older than the others. LEAT_E_NO_MEMORY: nothing was done. */
leat_err leat_primary_log_add(struct leat_primary_log *rep,
                              struct leat_segment *seg) LEAT_NODISCARD;
void leat_primary_log_whole(struct leat_primary_log *rep);
/** So many copies an ack needs at least from now on. */
void leat_primary_log_min_copies_set(struct leat_primary_log *rep, uint32_t min_copies);
/** Another owner is about to be asked for: from now on this one says about nobody's replicas that they may
 * go. What it asks for itself goes on. silent false: none was asked for, it speaks again. */
void leat_primary_log_silence(struct leat_primary_log *rep, bool silent);
/** Nothing more of it is acked, and nothing told to the coordinator: its commits are refused. */
void leat_primary_log_abandon(struct leat_primary_log *rep);
/** The log is given up, and has no request under way: from now on nothing more is asked for it.
 * on_idle, once, and never inside this call: the store works on none of its segments any more; then
 * they may be another's, and this is destroyed. */
void leat_primary_log_release(struct leat_primary_log *rep, void (*on_idle)(void *arg), void *arg);
/** After the log itself is destroyed, and when the store works on none of its segments. Replicas stay
 * where they are. */
void leat_primary_log_destroy(struct leat_primary_log **rep);
/** What the log is created with. */
struct leat_keeper leat_primary_keeper(struct leat_primary_log *rep);
void *leat_primary_log_owner(const struct leat_primary_log *rep);
/**
 * The log's first segment has started on all copies: the version to be committed with OPENED.
 * From here on the log acks nothing that this version does not cover. Call leat_primary_opened()
 * with the outcome before leat_log_opened().
 */
uint32_t leat_primary_opening(struct leat_primary_log *rep);
void leat_primary_opened(struct leat_primary_log *rep, leat_err rc);
/** The outcome of on_versions. A class other than retry stops the acks of a single log for good:
 * another owns it. Of several each is told again by itself. */
void leat_primary_versions_done(struct leat_primary *primary, leat_err rc);

/* ================================ backup ================================ */
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
 * more, nobody holds its bytes, its owner_actor is the backup's. LEAT_E_NO_MEMORY: nothing was done.
 * Thread: owner.
 */
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation) LEAT_NODISCARD;

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

/* ================================ status ================================ */
/* Totals since the start; CPU in ns. Thread: the owner's of what is asked. */
struct leat_rep_accounts {
    uint64_t cpu_append;           /* primary: posting one-sided writes */
    uint64_t cpu_backup_data_path; /* backup: on the way of single writes (0 with shm and verbs) */
    uint64_t cpu_backup_control;
    uint64_t replicated_bytes; /* payload of completed writes, all replicas */
    uint64_t writes;
    uint64_t segments;     /* closed with all their copies */
    uint64_t control_rpcs; /* OPEN and CLOSE that were answered: 2 per segment and backup */
    uint64_t open_rpcs;    /* of these the OPEN */
    uint64_t park_rpcs, resume_rpcs, flush_rpcs;
    uint64_t other_rpcs; /* restamp, complete, drop, audit, settle, attach */
    uint64_t refused_opens, lost_backups, replaced_copies, recopied_bytes, versions;
};
struct leat_rep_peer_status {
    unsigned node;
    bool up, attached;
    bool says_gone;        /* it refuses this node: its tables have this incarnation as dead */
    const char *transport; /* "shm", …; "" when not attached */
    uint64_t load_bytes;   /* as the backup said last: not yet in its files */
    uint32_t replicas;     /* this core's, open ones */
};
struct leat_primary_status {
    uint32_t logs, logs_under_replicated, logs_below_min, logs_suspended;
    uint32_t segments_under_replicated, segments_misplaced; /* two copies on a host or rack */
    struct leat_rep_accounts accounts;
};
void leat_primary_status(const struct leat_primary *primary, struct leat_primary_status *out);
/** Only these: no walk over the logs. A view, as long as the primary. */
const struct leat_rep_accounts *leat_primary_accounts(const struct leat_primary *primary);
/** Bits 1 << kind of the transports (enum leat_rmem_kind) that sessions with backups use now. */
uint32_t leat_primary_transports(const struct leat_primary *primary);
/** One row per known node; returns how many there are. */
size_t leat_primary_peers(const struct leat_primary *primary, struct leat_rep_peer_status *out,
                          size_t count_max);

struct leat_rep_copy_status {
    unsigned node;
    bool closed, parked, complete;
    uint32_t bytes; /* done there */
};
struct leat_rep_segment_status {
    struct leat_segment_id segment;
    bool closed, misplaced;
    uint32_t wanted, count; /* other copies than the owner's */
    struct leat_rep_copy_status copies[LEAT_COPIES_MAX - 1];
};
/** Where the copies of each segment lie, ascending. */
void leat_primary_log_each(const struct leat_primary_log *rep,
                           void (*each)(void *arg, const struct leat_rep_segment_status *status),
                           void *arg);
/* The other nodes that have the newest segment that has begun: those that have it whole, then those
 * that are still being filled. Numbers as struct leat_rep_node has them. */
struct leat_rep_places {
    uint8_t count, whole;
    uint8_t nodes[LEAT_COPIES_MAX - 1];
};
/** false: no segment has begun, so nobody lacks anything. Thread: owner. */
bool leat_primary_log_places(const struct leat_primary_log *rep, struct leat_rep_places *out);
struct leat_primary_log_status {
    uint32_t copies, min_copies, version;
    uint32_t
        copies_now; /* whole ones of the head, the owner's included; of the last segment if there is none */
    uint64_t segments_lacking; /* with fewer whole copies than there should be */
    bool suspended;            /* acks wait: a lost copy is being replaced */
    bool below_min;
};
void leat_primary_log_status(const struct leat_primary_log *rep,
                             struct leat_primary_log_status *out);

struct leat_backup_status {
    uint32_t replicas, replicas_open, replicas_parked, replicas_unsettled, writers;
    uint64_t arena_bytes, arena_used_bytes, unflushed_bytes, unflushed_max, flush_bytes_per_second;
    struct leat_rep_accounts accounts;
    uint64_t cpu_zeroing, cpu_flush; /* the store's */
};
void leat_backup_status(const struct leat_backup *backup, struct leat_backup_status *out);
/** Only these: no walk over the replicas. A view, as long as the backup. */
const struct leat_rep_accounts *leat_backup_accounts(const struct leat_backup *backup);

#endif
