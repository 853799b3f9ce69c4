/* SPDX-License-Identifier: Apache-2.0 */
/* The primary from the inside. Private to its module (tests may include it).
 *
 * Written as convergence: each copy's state is compared with the wanted state, the next step is started, and each
 * completion marks the log dirty, so that the log is compared again. A lost backup only takes copies away; the
 * necessary steps follow from the comparison.
 */
#ifndef LEAT_REPLICATION_PRIMARY_STATE_H
#define LEAT_REPLICATION_PRIMARY_STATE_H

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "replication/control/messages.h"
#include "replication/primary/primary.h"

enum {
    REP_WRITES_MAX = 2048, /* one-sided writes of one core under way */
    REP_LOG_BUCKETS = 4096,
    REP_TICK_US = 20 * 1000,   /* while something is under way */
    REP_CPU_EVERY = 16,        /* posts, of which one is measured */
    REP_RETRY_US = 200 * 1000, /* after failed attachments, AGAIN, and refusals at most */
    REP_REFUSAL_TELL_US = 30 * 1000 * 1000, /* between two lines of the same cause for it */
    REP_LACKS_TELL_US =
        10 * 1000 * 1000, /* closed segments lack copies: longer than a node's restart */
    /* A node that is met for the first time, and has refused nothing, is not called missing for so long. */
    REP_COMING_US = 30 * 1000 * 1000,
    REP_REFUSED_US = 2 * 1000, /* all have refused a copy: then so long, doubling with each time */
    REP_LAST_COPY_US = 60 * 1000, /* enough copies are there: the others are waited for so long */
    REP_VERSION_ROWS_MAX = 16384,
    /* A piece of a closed segment that is copied again. The core does nothing else meanwhile, and other messages to
     * the backup wait for the piece: 1 MiB every 20 ms (two copies of 20 to 100 us) was in appends' p99. */
    REP_STAGING_BYTES = 256 * 1024,
    REP_RECOPY_US = 4 * 1000, /* between two of them: 64 MiB/s */
    /* Badly placed copies: heads that are rolled, of all logs of a core; of one log until the nodes change again;
     * closed segments looked at in a tick; copies that can't be moved yet. */
    REP_ROLL_US = 50 * 1000,
    REP_ROLLS_AHEAD_US = 1000 * 1000,
    REP_ROLLS_MAX = 3,
    REP_CROWDED_LOOKS = 16,
    /* Hibernated heads of a core that are resumed to be copied again, at most: as heads that are rolled, and no more
     * bytes than of closed segments. */
    REP_WAKE_US = 50 * 1000,
    REP_WAKES_AHEAD_US = 1000 * 1000,
    REP_CROWDED_AGAIN_US = 2 * 1000 * 1000,
};

/* A replica at its backup, as far as its answers say (README.md, "States"). */
enum rep_copy_state {
    REP_COPY_OPENING, /* asked for; not part of anything yet */
    REP_COPY_OPEN,
    REP_COPY_HIBERNATED,
    REP_COPY_CLOSED,
};

struct rep_set;
struct rep_peer;

/* One control request about one replica. */
struct rep_op {
    struct leat_link_call call;
    struct leat_list link; /* waits for room in the link */
    struct leat_primary *primary;
    struct rep_peer *peer;
    struct rep_copy *copy; /* NULL: the copy was given up */
    uint8_t control[REP_BODY_BYTES_MAX];
};

/* A segment at one backup. */
struct rep_copy {
    struct rep_set *set;    /* NULL: given up; freed when nothing of it is under way */
    struct rep_set *source; /* whose buffer its writes come from; outlives `set` */
    struct rep_peer *peer;
    uint64_t session; /* of the peer: a copy does not outlive it, unless closed */
    struct leat_list by_peer;
    struct leat_list in_batch; /* waits for RESTAMP or FLUSH */
    struct rep_op *op;
    bool batched;     /* a row of a batch under way */
    uint8_t state;    /* rep_copy_enter(); a byte, as there are many copies */
    bool incomplete;  /* so marked at the backup */
    bool counted;     /* acks need it */
    bool asked_whole; /* COMPLETE was sent: the mark "incomplete" may be gone */
    bool found;       /* reported by its backup, which has not yet heard that it counts */
    uint64_t handle, place;
    uint32_t stamp, stamp_sent; /* version recorded there; highest version that it may have */
    uint32_t sent, done;        /* bytes posted; in its memory, from the start */
    uint32_t flushed;           /* durable there */
    uint32_t writes;            /* under way */
};

struct rep_write {
    struct leat_rmem_write write; /* first */
    struct leat_iov iov;
    struct rep_copy *copy;
    struct leat_list link; /* free, or peer->writes in order of posting */
    uint64_t posted_us;
    uint32_t bytes;
};

/* A segment as its log has asked for it (README.md, "States"). In each state the local copy has this state, and the
 * other copies are on their way to it. A segment can be dropped in any state but HIBERNATING and RESUMING. */
enum rep_set_state {
    REP_SET_RESERVING, /* RESERVE is not answered */
    REP_SET_RESERVED,
    REP_SET_STARTED,     /* its start entry may lie anywhere: this one, and all below */
    REP_SET_HIBERNATING, /* HIBERNATE is asked */
    REP_SET_HIBERNATED,  /* the local copy is; HIBERNATE is answered when the others are */
    REP_SET_RESUMING, /* RESUME is asked; then STARTED, and it is answered when no copy is hibernated */
    REP_SET_CLOSED, /* its close entry is on all copies */
};

/* The request to the store for the local copy; STAMP goes beside it. */
enum rep_local_state {
    REP_LOCAL_IDLE,
    REP_LOCAL_ASKED,
    REP_LOCAL_ANSWERED, /* local_rc, not yet used */
};

/* A segment and its copies, the local one included. */
struct rep_set {
    struct leat_primary_log *log;
    struct leat_list link;    /* log->active or log->settled */
    struct leat_list deficit; /* closed, lacks copies: primary->deficit */
    struct leat_segment *seg;
    struct leat_segment_id id;
    uint32_t capacity;
    enum rep_set_state state;         /* rep_set_enter() */
    enum rep_local_state local_state; /* rep_local_enter() */
    bool dropping;            /* DROP is asked, or RESERVE refused: in addition to the state */
    bool full_once;           /* has been closed on as many nodes as wanted */
    bool misplaced;           /* shares a host or rack with another copy */
    struct leat_list crowded; /* closed and misplaced: primary->crowded */
    /* primary->places when no better place was found; when the segment was a head to be rolled for a better place */
    uint32_t places, rolled_places;
    uint32_t target; /* sealed bytes that all copies should have */
    /* The version of the local copy, as durable as acks: seg->version is the version of the row that is being
     * written. */
    uint32_t stamped;
    /* What the log waits for. */
    struct leat_store_req *reserve, *commit, *close, *hibernate, *resume, *drop, *evict;
    leat_err refusal;                   /* of the reserve: it is being undone */
    struct leat_store_req local, stamp; /* at the store */
    bool stamp_busy;
    leat_err local_rc;
    struct rep_copy *copies[LEAT_COPIES_MAX - 1];
    unsigned copy_count;
    unsigned writes; /* from its buffer, or file reads, under way */
    uint64_t since_us, retry_us, stamp_retry_us, lost_us;
    unsigned refusals;                         /* times that there was no node to ask */
    uint64_t refused[LEAT_REP_NODES_MAX / 64]; /* nodes that said no lately */
};

struct leat_primary_log {
    struct leat_primary *primary;
    struct leat_primary_log_options options;
    struct leat_list link, dirty_link, version_link;
    struct leat_list waits_link; /* primary->waits: time alone may change something */
    struct leat_primary_log *hash_next;
    struct leat_list active;  /* sets that are not closed, or have something to do; ascending */
    struct leat_list settled; /* closed, and so is every copy that there is; ascending */
    uint32_t version;         /* that every copy should carry */
    uint32_t need;            /* a lost copy may carry one less: nothing is acked before the
                                 coordinator knows this one */
    uint32_t known;           /* the coordinator does, or is told first */
    bool opening, opened;     /* OPENED is asked for; committed */
    bool version_busy;        /* in the request under way */
    bool lacking;             /* a set has fewer copies than it should */
    bool fenced;              /* another owns it */
    bool version_alone;       /* refused with others': told again by itself */
    bool releasing;           /* given up */
    bool silent;              /* asked for another owner: decides about no replicas any more */
    uint64_t held_us;         /* since when acks wait */
    uint32_t rolled_places, rolls; /* for better places: so often since the nodes changed last */
    void (*on_idle)(void *arg);    /* releasing, and not told yet */
    void *idle_arg;
};

/* A RESTAMP or FLUSH under way, and the copies that wait for the next. */
struct rep_batch {
    struct leat_link_call call;
    struct rep_peer *peer;
    struct leat_list waiting; /* copies, by in_batch */
    struct rep_copy **rows;   /* [LEAT_REP_BATCH_MAX] */
    uint32_t *values;         /* what was asked for each */
    uint32_t count;
    uint8_t *control;
    bool busy;
    uint64_t sent_us;
    uint64_t session;
};

/* The session with a backup (README.md, "States"). */
enum rep_peer_state {
    REP_PEER_DOWN,       /* there is no link to it */
    REP_PEER_UP,         /* there is a link, and no session: the next ATTACH is due at retry_us */
    REP_PEER_ASKED,      /* ATTACH is asked */
    REP_PEER_CONNECTING, /* the backup has granted its memory: the target for writes is made */
    REP_PEER_ATTACHED,
};

enum rep_audit_state {
    REP_AUDIT_IDLE,     /* the next one is due at audited_us + audit_us */
    REP_AUDIT_ASKED,    /* which replicas does the backup have? */
    REP_AUDIT_SETTLING, /* the backup is told which of them to keep and to drop */
};

struct rep_peer {
    struct leat_primary *primary;
    struct leat_rep_node node;
    enum rep_peer_state state;        /* rep_peer_enter() */
    enum rep_audit_state audit_state; /* rep_audit_enter() */
    uint64_t session;                 /* grows with each attachment and each loss */
    uint64_t met_us;                  /* when it was up for the first time; 0: never */
    bool cut; /* a session with this incarnation ended: its writes may still land */
    uint64_t retry_us, audited_us;
    leat_err refused; /* why the last attempt to attach or to open a link failed */
    uint64_t refused_told_us;
    struct leat_rmem_target *target;
    struct leat_link_call attach, audit, settle, seal;
    uint8_t seal_control[REP_BODY_BYTES_MAX];
    bool seal_busy;
    uint8_t small[16];
    bool attach_busy; /* ATTACH has no answer yet, perhaps of a session that has ended */
    bool audit_all;   /* the first audit of a session: also confirmed replicas */
    bool audit_anew;  /* an audit of all was asked for during an audit */
    uint64_t audit_from;
    uint8_t *settle_control;
    struct rep_pair *settle_pairs;
    uint32_t settle_count;
    uint32_t settle_sent; /* pairs under way */
    uint64_t load_bytes;
    uint32_t open_count; /* copies not closed */
    struct leat_list copies, writes, ops_waiting;
    unsigned ops;
    uint64_t ops_us; /* since when there are some without a pause */
    /* silence.c */
    struct leat_link_call ask;
    bool asking;
    uint64_t asked_us, round;     /* the question under way, or the last one */
    uint64_t heard_us, wrote_us;  /* the last answer; the last write that ended */
    unsigned missed;              /* rounds that other backups have answered since heard_us */
    uint64_t took_us, took_at_us; /* the longest wait of late for an answer; noted then */
    uint64_t left_us, left_after_us;
    struct rep_batch restamp, flush;
};

struct leat_primary {
    struct leat_primary_options options;
    struct rep_peer *peers[LEAT_REP_NODES_MAX]; /* NULL: never heard of */
    unsigned peer_end;                          /* from there on all are NULL */
    unsigned attached_count;                    /* of them: asked for with every append */
    uint64_t round;                             /* of questions: silence.c */
    struct leat_list logs, dirty, waits;
    uint32_t log_count;
    struct leat_primary_log **buckets;
    struct leat_mail kick;
    void (*on_kick)(void *actor, struct leat_mail *mail);
    bool kicked;
    struct leat_timer timer;
    struct leat_list ops_free, writes_free;
    struct rep_write *writes; /* [REP_WRITES_MAX]; from writes_fresh on never used, nor touched */
    unsigned writes_fresh;
    struct leat_list versions; /* logs that want the coordinator to know, by version_link */
    struct leat_rep_version *version_rows;
    struct leat_primary_log **version_logs;
    size_t version_count;
    bool versions_busy;
    uint64_t versions_retry_us;
    /* One closed segment at a time is copied in the background. */
    struct leat_list deficit;
    struct rep_set *recopy;
    struct rep_copy *recopy_copy;
    uint8_t *staging_raw, *staging;
    struct leat_disk_io read;
    /* What is read, and for which copy; NULL: has gone. */
    struct rep_set *read_set;
    struct rep_copy *read_copy;
    bool reading;
    uint64_t recopy_bytes, recopy_us; /* allowance */
    uint64_t wakes_at_us;             /* the next hibernated head is resumed for a copy then */
    /* Since when closed segments lack copies, and what had been copied then; 0: none does. */
    uint64_t lacks_since_us, lacks_bytes;
    bool lacks_told; /* ... and the node log says so */
    struct leat_rep_accounts accounts;
    /* better.c */
    uint32_t places; /* counts changes among the nodes, from 1 */
    struct leat_list crowded;
    uint32_t crowded_count, crowded_left;   /* left: to be looked at */
    uint64_t crowded_again_us, rolls_at_us; /* look at all of them again, 0: no; next roll */
    uint32_t posts;                         /* of a commit's bytes to its copies; wraps */
};

static inline uint64_t rep_now(const struct leat_primary *primary)
{
    const struct leat_clock *clock = primary->options.env->clock;
    return clock->now_us(clock->ctx);
}
static inline uint64_t rep_cpu(const struct leat_primary *primary)
{
    return primary->options.cpu.ns ? primary->options.cpu.ns(primary->options.cpu.ctx) : 0;
}
static inline bool rep_set_is_started(const struct rep_set *set)
{
    return set->state >= REP_SET_STARTED;
}
static inline bool rep_set_is_closed(const struct rep_set *set)
{
    return set->state == REP_SET_CLOSED;
}
/** Its copies are hibernated, or to be: they take no bytes, versions or replacements. */
static inline bool rep_set_is_hibernated(const struct rep_set *set)
{
    return set->state == REP_SET_HIBERNATING || set->state == REP_SET_HIBERNATED;
}
static inline uint32_t rep_wanted(const struct leat_primary_log *log)
{
    return log->options.copies - 1;
}
static inline bool rep_is_disk(const struct leat_primary_log *log)
{
    return log->options.durability == LEAT_DURABILITY_DISK;
}
/** There is a link, and no session yet. */
static inline bool rep_peer_is_coming(const struct rep_peer *peer)
{
    return peer->state != REP_PEER_DOWN && peer->state != REP_PEER_ATTACHED;
}
static inline bool rep_copy_lives(const struct rep_copy *copy)
{
    return copy->peer->state == REP_PEER_ATTACHED && copy->session == copy->peer->session;
}
/** Acks wait until the coordinator has taken a version. */
static inline bool rep_is_held(const struct leat_primary_log *log)
{
    return (log->opened || log->opening) && log->need > log->known;
}

/* table.c */
void rep_mark_dirty(struct leat_primary_log *log);
/** Looked at again a little later. */
void rep_wait(struct leat_primary_log *log);
void rep_arm(struct leat_primary *primary, uint64_t delay_us);
/** The log's place in the table, or the free place for it. */
struct leat_primary_log **rep_log_bucket(const struct leat_primary *primary,
                                         struct leat_log_ref ref);
struct leat_primary_log *rep_log_find(const struct leat_primary *primary, struct leat_log_ref ref);
struct rep_set *rep_set_find(const struct leat_primary_log *log, uint64_t segment);
/** Nodes that can hold a copy now, this one included. */
unsigned rep_nodes_up(const struct leat_primary *primary);
/** Stops copying the segment, if it is the closed segment that is being copied. */
void rep_recopy_forget(struct rep_set *set);
void rep_recopy_copy_gone(struct rep_copy *copy);
/** This node's file of a closed segment is corrupt. */
void rep_own_damaged(struct rep_set *set);

/* primary.c */
/** What a log is compared for: its sets, then its version. */
void rep_log_step(struct leat_primary_log *log);

/* version.c */
/** Queue the log's version for the coordinator, if all copies carry the version. */
void rep_version_step(struct leat_primary_log *log);
/** Send queued versions to the coordinator, one request at a time. */
void rep_versions_send(struct leat_primary *primary);

/* set.c */
/** The step of a segment from one state to the next. */
void rep_set_enter(struct rep_set *set, enum rep_set_state to);
/** The same of the request for the local copy. */
void rep_local_enter(struct rep_set *set, enum rep_local_state to);
struct rep_set *rep_set_new(struct leat_primary_log *log, struct leat_segment_id id,
                            uint32_t capacity);
void rep_set_step(struct rep_set *set);
/** Into the list of active sets, in order. */
void rep_set_activate(struct rep_set *set);
/** Into the list of settled or of active sets. */
void rep_set_settle(struct rep_set *set);
/** Answer the commit that waits, if all required bytes are there. Never inside a request. */
void rep_set_commit_try(struct rep_set *set);
/** Copies that would count in a recovery, the local copy included. */
unsigned rep_set_whole_count(const struct rep_set *set);
void rep_local_ask(struct rep_set *set, enum leat_store_req_kind kind);
/** Closed, and nothing is under way with any copy of it. */
bool rep_set_is_still(const struct rep_set *set);
/** Drops the worst placed copy, if the set has more copies than wanted and all are complete. */
void rep_set_surplus(struct rep_set *set);

/* copy.c */
/** The step of a copy from one state to the next. */
void rep_copy_enter(struct rep_copy *copy, enum rep_copy_state to);
struct rep_copy *rep_copy_new(struct rep_set *set, struct rep_peer *peer);
/** false: nothing was started, and the copy is gone. */
bool rep_copy_open(struct rep_copy *copy, bool incomplete);
void rep_copy_step(struct rep_copy *copy);
/** Nothing but bytes and acks is wanted of it: no need to compare. */
bool rep_copy_is_plain(const struct rep_copy *copy);
/** Post what is to be sent and fits into the window. */
void rep_copy_write(struct rep_copy *copy);
/** From that memory, up to `bytes` more. false: no room. */
bool rep_copy_write_from(struct rep_copy *copy, const uint8_t *from, uint32_t bytes);
/** The set does without it from now on. */
void rep_copy_remove(struct rep_copy *copy);
/** The copy is gone, or its state is unknown. */
void rep_copy_lost(struct rep_copy *copy);
void rep_copy_drop(struct rep_copy *copy);
/** Its backup is being told to drop it. */
bool rep_copy_leaves(const struct rep_copy *copy);
bool rep_copy_is_busy(const struct rep_copy *copy);

/* peer.c */
/** The step of a session from one state to the next. */
void rep_peer_enter(struct rep_peer *peer, enum rep_peer_state to);
void rep_peer_attach(struct rep_peer *peer);
/** The session ends; where there is a link the next one is tried soon. */
void rep_peer_lost(struct rep_peer *peer);
/** The link has ended, and with it the session. */
void rep_peer_down(struct rep_peer *peer);
void rep_peer_fini(struct rep_peer *peer);
leat_err rep_peer_init(struct rep_peer *peer, struct leat_primary *primary) LEAT_NODISCARD;
void rep_peer_batches(struct rep_peer *peer);

/* ops.c */
struct rep_op *rep_op_get(struct leat_primary *primary);
/** Send waiting requests, as far as there is room. */
void rep_peer_ops(struct rep_peer *peer);

/* silence.c */
/** The backup has answered a request. Called before the request is removed from the requests under way. */
void rep_peer_heard(struct rep_peer *peer);
/** A one-sided write has succeeded. Called before the write is removed from the writes under way. */
void rep_peer_wrote(struct rep_peer *peer);
/** A session begins. */
void rep_peer_came(struct rep_peer *peer);
/** Asks backups that owe an answer whether they are alive. true: look again at the next tick. */
bool rep_silence_look(struct leat_primary *primary, uint64_t now_us);
/** A backup that is silent while others answer, or has not taken a write for too long: its link is cut, and the caller
 * takes its session for lost. NULL: no such backup. */
struct rep_peer *rep_silence_shed(struct leat_primary *primary, uint64_t now_us);

/* place.c */
/** A node for one more copy, or NULL. */
struct rep_peer *rep_place_choose(const struct rep_set *set);
/** A further node may come soon: a session is being made. */
bool rep_place_may_come(const struct leat_primary *primary);
void rep_place_judge(struct rep_set *set);
/** How much two nodes share: 2 for a host, 1 for a rack. */
unsigned rep_place_shared(const struct leat_rep_node *a, const struct leat_rep_node *b);
/** Would placement see them differently? */
bool rep_place_differs(const struct leat_rep_node *a, const struct leat_rep_node *b);
bool rep_place_is_candidate(const struct rep_set *set, const struct rep_peer *peer);
/** A node that would break fewer preferences in place of one of the copies; NULL: there is none. */
struct rep_peer *rep_place_better(const struct rep_set *set);
/** The copy that violates most preferences. */
struct rep_copy *rep_place_worst(const struct rep_set *set);
/** A node can be used, or is another one than before. */
void rep_place_nodes_changed(struct leat_primary *primary);
/** Its copies or its state have changed. */
void rep_place_note(struct rep_set *set);
void rep_place_forget(struct rep_set *set);

/* better.c */
/** Should this head be rolled, as its successor's copies could lie better? Then it is taken for done. */
bool rep_better_roll(struct leat_primary_log *log, const struct leat_segment *seg);
/** A copy of a closed segment begun at a better place, or NULL. */
struct rep_copy *rep_better_begin(struct leat_primary *primary, uint64_t now_us);
/** Until rep_better_begin() may have something to do; UINT64_MAX: until something changes. */
uint64_t rep_better_next_us(const struct leat_primary *primary, uint64_t now_us);

/* background.c */
/** The step of an audit from one state to the next. */
void rep_audit_enter(struct rep_peer *peer, enum rep_audit_state to);
void rep_audit_step(struct rep_peer *peer, uint64_t now_us);
/** Asks the backup for all replicas again, also for confirmed replicas. */
void rep_audit_all(struct rep_peer *peer);
void rep_recopy_step(struct leat_primary *primary, uint64_t now_us);
/** Does an idle head need its buffer: does it lack a copy that can be made now, or is it being written from? A
 * hibernated head gets true once, in its turn. */
bool rep_head_copy_wanted(struct leat_primary_log *log, const struct leat_segment *head);

#endif
