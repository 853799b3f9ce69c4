/* SPDX-License-Identifier: Apache-2.0 */
/* The primary: a layer between logs and the store on every core. Logs with more than one copy send their requests
 * (struct leat_store_req) to the primary instead of the store, and the primary answers when all copies have done the
 * same.
 *
 *     log -> store port (leat_primary_port) -> store                  of this node
 *                                         -> one-sided writes       into each backup's arena
 *                                         -> control requests  ->   each backup
 *
 * replication/primary/README.md has the order of steps and the reasons.
 */
#ifndef LEAT_REPLICATION_PRIMARY_PRIMARY_H
#define LEAT_REPLICATION_PRIMARY_PRIMARY_H

#include "base/rmem.h"
#include "base/timer.h"
#include "replication/control/control.h"
#include "store/store.h"

enum {
    LEAT_REP_CALLS_MAX = 512, /* control requests of one core to one node under way; more wait */
    LEAT_REP_WRITE_BYTES_MAX = 1024 * 1024,  /* one one-sided write */
    LEAT_REP_MESSAGE_BYTES_MAX = 128 * 1024, /* a write that is sent as a message */
    LEAT_REP_CANDIDATES = 5,                 /* drawn at random, the least loaded wins */
    LEAT_REP_HOST_BYTES_MAX = 255,
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
    bool gone; /* down, and not expected back */
};

struct leat_primary;     /* opaque; one per core */
struct leat_primary_log; /* opaque; one per log of that core with copies > 1 */

/* The versions of logs that lost a copy, for the coordinator: one entry for all logs. */
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
    /** A node has come: what the store port's refusal() said may not hold any more. NULL: not wanted. */
    void (*on_room)(void *owner, struct leat_primary_log *rep);
    /** A closed segment was to be copied again, and what this node's file has of it is damaged. NULL: not
     * wanted. */
    void (*on_damaged)(void *owner, struct leat_primary_log *rep, struct leat_segment *seg);
};

struct leat_primary_options {
    const struct leat_env *env;   /* the core's */
    struct leat_timers *timers;   /* takes LEAT_PRIMARY_TIMERS */
    struct leat_store_port store; /* below */
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
    /* Closed segments of a lost backup are copied elsewhere after: while a node is not heard, or has not reported its
     * replicas (60 s); while a crashed node is not back (20 s); else (1 s). Never after more than grace_us. */
    uint64_t grace_us, grace_crashed_us, grace_none_us;
    uint64_t audit_us;                /* each backup is asked for unconfirmed replicas (30 s) */
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
/** The link to the node was refused, with `rc`: the link is tried again, nothing else changes. */
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
    uint32_t copies, min_copies; /* copies > 1: else use the store's store port as it is */
    enum leat_durability durability;
    uint32_t version; /* the coordinator's for this log and epoch; 1 for a new or adopted log */
    bool opened;      /* this epoch's first segment is committed already */
    /* Older segments come by leat_primary_log_add(): until leat_primary_log_whole() no backup is told to drop
     * segments that are unknown here. */
    bool backfill_follows;
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
/** A further closed segment, older than all others. LEAT_E_NO_MEMORY: nothing was done. */
leat_err leat_primary_log_add(struct leat_primary_log *rep,
                              struct leat_segment *seg) LEAT_NODISCARD;
void leat_primary_log_whole(struct leat_primary_log *rep);
/** So many copies an ack needs at least from now on. */
void leat_primary_log_min_copies_set(struct leat_primary_log *rep, uint32_t min_copies);
/** The coordinators are about to be asked for another owner: from now on this owner lets no replica go. Its other
 * requests go on. silent false: no other owner was asked for, and this owner lets replicas go again. */
void leat_primary_log_silence(struct leat_primary_log *rep, bool silent);
/** Asserts what is true of the sessions with backups between two turns. */
void leat_primary_check(const struct leat_primary *primary);
/** Asserts what is true of its segments and their copies between two turns. */
void leat_primary_log_check(const struct leat_primary_log *rep);
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
struct leat_store_port leat_primary_port(struct leat_primary_log *rep);
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

/* ---- status ---- */
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
    bool closed, hibernated, complete;
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
/* The other nodes with the newest segment that has begun: first nodes with all of it, then nodes whose copies
 * are still being filled. Numbers as struct leat_rep_node has them. */
struct leat_rep_places {
    uint8_t count, whole;
    uint8_t nodes[LEAT_COPIES_MAX - 1];
};
/** Bytes of it are on their way to copies. Thread: owner. */
bool leat_primary_log_is_writing(const struct leat_primary_log *rep);
/** false: no segment has begun, so no copy is missing. Thread: owner. */
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

#endif
