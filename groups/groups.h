/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups: consumers that share a name share a stream's logs, and what they have committed
 * is durable.
 *
 * Every group has one home, leat_groups_home(name): one of the LEAT_GROUPS_HOMES logs of the internal stream
 * "leat.sets", which are spread over its streamlets, and so over nodes. Each home log has a `struct leat_groups` on
 * its core. This is a pure state machine: requests, acks of the home log and time go in; answers and batches for the
 * home log come out. The whole table (generations, members, assignments, committed offsets) is in the start entries
 * of the home log, so nothing is lost by retention, and recovery reads a single segment. (An offsets stream with only
 * batches would lose the offsets of every group that was idle for longer than the retention.)
 *
 * What is promised:
 * - In one generation a unit (see below) has at most one owner.
 * - A generation is used once: the counter of a group continues after restarts, so that the commit of
 *   a member that slept through a rebalance is refused by name.
 * - A committed offset never goes back, unless `force` is set.
 * - No answer shows a change before the batch with this change is acked. The table itself changes when a request has
 *   passed its checks, and may be ahead of the log; batches hold absolute values, so the replay of a batch that a
 *   snapshot already covers changes nothing in the end.
 *
 * Units. Mode ordered: one unit = one log; the unit's owner reads the whole log, in order. Mode parallel: one unit =
 * one segment group (16 segments) of a log; different members read the segment groups of a log at the same time (KerA
 * thesis §5.2.3). New segment groups need no rebalance: an assignment names an endless arithmetic series of segment
 * groups (struct leat_groups_assigned).
 */
#ifndef LEAT_GROUPS_GROUPS_H
#define LEAT_GROUPS_GROUPS_H

#include "base/list.h"
#include "base/timer.h"
#include "groups/room.h"
#include "multilog/log.h"

struct leat_groups; /* opaque: the groups of one home log */

#define LEAT_GROUPS_STREAM_NAME "leat.sets"

enum {
    LEAT_GROUPS_HOMES = 64, /* logs of LEAT_GROUPS_STREAM_NAME, in all its streamlets together */
    /* As it is made. A stream of another shape, made by another version, keeps it: where a home lies is
     * reckoned from the stream's own (leat_groups_home_log). */
    LEAT_GROUPS_STREAMLETS = 16,
    LEAT_GROUPS_NAME_BYTES_MAX = 249, /* of a group */
    LEAT_GROUPS_MEMBER_BYTES_MAX = 63,
    LEAT_GROUPS_PER_HOME_MAX = 1024,
    LEAT_GROUPS_MEMBERS_MAX = 1024, /* of one group */
    LEAT_GROUPS_STREAMS_MAX = 16,   /* that one member may name */
    LEAT_GROUPS_LOGS_MAX = 32768,   /* of one group; those of the largest stream */
    /* Parallel mode, per log: segment groups that may be done or begun beyond the first unfinished one. */
    LEAT_GROUPS_AHEAD_MAX = 256,
    LEAT_GROUPS_COMMIT_ROWS_MAX = 32768,
    LEAT_GROUPS_COMMIT_ROWS_PARALLEL_MAX = 8192, /* each may bring a second: segment groups gone */
    LEAT_GROUPS_ANSWER_BYTES = 1024, /* such answers need no account: their number has a limit */
    LEAT_GROUPS_WAITING_MAX = 4096,  /* of one home, for an ack or a rebalance: base/shares.h */
    /* The table of one home, encoded. More is refused: LEAT_E_TOO_MANY. */
    LEAT_GROUPS_TABLE_BYTES_MAX = LEAT_START_BYTES_MAX / 2 - 4096,
    LEAT_GROUPS_BATCH_BYTES_MAX = 1024 * 1024, /* of one batch given to the home log */
    LEAT_GROUPS_SESSION_MS_MIN = 100,
    LEAT_GROUPS_SESSION_MS_MAX = 30 * 60 * 1000,
    LEAT_GROUPS_SESSION_MS_DEFAULT = 10 * 1000,
    LEAT_GROUPS_SETTLE_US_DEFAULT = 100 * 1000,
    LEAT_GROUPS_READ_US_MAX = 3 * 1000 * 1000,
    LEAT_GROUPS_ACK_WAIT_US_MAX = 30 * 1000 * 1000, /* then answered LEAT_E_TIMEOUT: unknown */
};

enum leat_groups_mode {
    LEAT_GROUPS_ORDERED = 0,
    LEAT_GROUPS_PARALLEL = 1,
    LEAT_GROUPS_CLASSIC = 2
};

/* What a member owns in its generation: segment groups first_group, first_group + group_step,
 * first_group + 2 * group_step, ... without end. Ordered mode: group 0, step 1, i.e. the whole log.
 * On the wire: [stream, streamlet, log, first_group, 0 (= no end), group_step]. */
struct leat_groups_assigned {
    struct leat_log_ref log;
    uint64_t first_group;
    uint32_t group_step;
};

enum { LEAT_SEGMENT_GROUP_NONE = -1 };
#define LEAT_SEGMENT_GROUP_DONE UINT64_MAX /* as an offset: the segment group is finished */

/* One committed offset: the next to be read.
 * Ordered mode: group = LEAT_SEGMENT_GROUP_NONE.
 * Parallel mode: the segment group, >= 0. In a COMMIT an offset at or past the group's end, or
 * LEAT_SEGMENT_GROUP_DONE, finishes it. FETCH answers per log with a row for the first unfinished segment group G
 * (all groups below G are done; the offset is the place to go on, or 0: from the beginning of G), then a row for each
 * group above G that is begun (offset) or done (LEAT_SEGMENT_GROUP_DONE), ascending. */
struct leat_groups_offset {
    struct leat_log_ref log;
    int64_t group;
    uint64_t offset;
    /* Classic groups (classic.h) keep these with an offset: the epoch of the record before it, plus 1 (0: not
     * said), and bytes of the client's own. COMMIT: borrowed; FETCH: in the memory of the rows. */
    uint32_t leader_epoch_plus_1;
    uint32_t metadata_bytes;
    const char *metadata;
};

enum leat_groups_kind {
    LEAT_GROUPS_JOIN,
    LEAT_GROUPS_HEARTBEAT,
    LEAT_GROUPS_LEAVE,
    LEAT_GROUPS_COMMIT,
    LEAT_GROUPS_FETCH,
    LEAT_GROUPS_DELETE,         /* a group without members, and its offsets */
    LEAT_GROUPS_OFFSETS_DELETE, /* of a group without members: those of `logs` */
    /* Of classic groups (classic.h), with request->classic; COMMIT, too, where that is given. */
    LEAT_GROUPS_CLASSIC_JOIN,
    LEAT_GROUPS_CLASSIC_SYNC,
    LEAT_GROUPS_CLASSIC_HEARTBEAT,
    LEAT_GROUPS_CLASSIC_LEAVE,
    LEAT_GROUPS_DESCRIBE, /* any group; NOT_FOUND */
    LEAT_GROUPS_LIST,     /* all groups of this home; `group` does not matter */
};

struct leat_classic_call;

/* A request. The caller's storage; borrowed, with all that it points to, until the answer. */
struct leat_groups_request {
    enum leat_groups_kind kind;
    char group[LEAT_GROUPS_NAME_BYTES_MAX + 1];
    /* JOIN: "" = a new member, the answer names it (out). HEARTBEAT, LEAVE: required. COMMIT: "" =
     * from outside the group; allowed only while the group has no members. */
    char member[LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint32_t generation; /* HEARTBEAT, COMMIT: in. JOIN, FETCH: out */
    uint64_t address; /* whose request it is: leat_key_number(). 0: not known, which has no share */

    /* JOIN */
    enum leat_groups_mode mode;
    uint32_t session_ms;     /* 0: the default */
    const uint32_t *streams; /* ids, [stream_count]; the broker has looked up the names */
    uint32_t stream_count;   /* 1 .. LEAT_GROUPS_STREAMS_MAX */
    struct leat_groups_assigned *assigned; /* out, [assigned_count], given: leat_mem_free(). May be
                                            NULL with count 0: more members than units */
    size_t assigned_count;

    /* COMMIT: rows in. OFFSETS_DELETE: `logs` in. FETCH: `logs` in ([log_count]; 0: all), rows out
     * (given, leat_mem_free()).
     * A log without a committed offset has no row. */
    const struct leat_groups_offset *commits;
    size_t commit_count;
    bool force; /* COMMIT: offsets may go back (an operator's seek) */
    const struct leat_log_ref *logs;
    size_t log_count;
    struct leat_groups_offset *offsets;
    size_t offset_count;

    /* FETCH, DESCRIBE, LIST, CLASSIC_JOIN, CLASSIC_SYNC: the answer may take so many bytes, which the caller has
     * counted in an account. If the answer needs more: LEAT_E_NO_MEMORY, and answer_bytes says how much; the same
     * request may be repeated with this number. A held join or sync has no such limit. */
    size_t answer_bytes_max;
    size_t answer_bytes; /* out: of what is given, or would be */

    struct leat_classic_call *classic; /* the requests of classic groups; else NULL */

    /* Answer. Refusals: INVALID, BAD_NAME, UNKNOWN_STREAM, UNKNOWN_LOG, UNKNOWN_MEMBER,
     * STALE_GENERATION (join again), NOT_ASSIGNED, TOO_MANY, NOT_FOUND, AGAIN (a queue is full, or
     * a slow member holds back the first unfinished segment group), UNSUPPORTED. Of classic groups also REBALANCING,
     * MEMBER_ID_REQUIRED (`member` is the id), MEMBER_FENCED, OTHER_PROTOCOL. TIMEOUT: the home log
     * could not take it in time; whether it took effect is unknown. */
    leat_err rc;
    struct leat_error error;
    void (*on_done)(struct leat_groups_request *request);
    void *owner;

    /* the groups' */
    struct leat_list link;
    uint64_t ack_sequence;
    uint64_t deadline_us;
    unsigned state;
    size_t queries_left;
    void *scratch;
};

/* A question to the log's core about its segment groups (parallel mode only). Lies in the groups' memory. */
struct leat_segment_group_query {
    struct leat_log_ref log;
    uint64_t group;
    /* out, by the broker */
    leat_err rc;          /* LEAT_OK, or what stands in the way (UNKNOWN_LOG, ...) */
    uint64_t first_group; /* first retained of the log (struct leat_log_info) */
    uint64_t end_offset;  /* of `group`, exclusive: leat_log_group(); UINT64_MAX while it grows or
                             does not exist yet; 0 when it is gone */
    void (*on_done)(struct leat_segment_group_query *query); /* on the home's core, once */
    bool skips;                                              /* the groups' */
    void *owner;                                             /* the groups' */
    struct leat_mail mail;                                   /* the broker's */
    void *broker;                                            /* the broker's, NULL at first */
    void *home;                                              /* the groups' */
    struct leat_list link;                                   /* the broker's */
};

/* What the home needs of its broker. All run on the home log's core. */
struct leat_groups_broker {
    /**
     * Append to the home log: leat_log_append() with these very arguments. LEAT_OK:
     * append->on_acked follows. LEAT_E_AGAIN and other codes of class retry: nothing was done; the
     * groups try again at leat_groups_on_room() or after 100 ms. Other codes: the home is broken (see
     * leat_groups_broken()). The batch is one uncompressed record batch without producer id; borrowed
     * until return.
     */
    leat_err (*append)(void *ctx, const struct leat_batch *batch, struct leat_append *append);
    /** How many streamlets and logs per streamlet a stream has now; false: no such stream. */
    bool (*stream_size)(void *ctx, uint32_t stream, uint32_t *out_streamlets, uint32_t *out_logs);
    /** Ask a log's core; query->on_done follows, never inside. NULL: parallel mode is refused. */
    void (*group)(void *ctx, struct leat_segment_group_query *query);
};

struct leat_groups_options {
    const void *core;           /* the actor that owns the home: LEAT_ASSERT_OWNER */
    const struct leat_env *env; /* clock, random */
    struct leat_timers *timers; /* room for one timer per home */
    uint32_t home;              /* 0 .. LEAT_GROUPS_HOMES - 1 */
    /* 0: LEAT_GROUPS_SETTLE_US_DEFAULT. How long a group with its first members waits for more before it assigns */
    uint64_t settle_us;
    /* the same of a classic group, anew with each joining member; 0: LEAT_CLASSIC_SETTLE_US_DEFAULT */
    uint64_t classic_settle_us;
    /* 0: for ever. A group without members and commits for so long is deleted, with its offsets. Counted from the
     * last restart, if later */
    uint64_t retention_us;
    uint64_t group_bytes_max;      /* 0: LEAT_CLASSIC_MEMORY_BYTES_MAX */
    struct leat_groups_room *room; /* of the node; NULL: without limit */
    /* another node may have the home before this node knows: committed offsets are shown only after an append */
    bool followed;
    struct leat_groups_broker broker;
    void *ctx; /* of the broker's functions */
};

/**
 * The home of a group: CRC-32C of its name mod LEAT_GROUPS_HOMES. Thread: any.
 */
uint32_t leat_groups_home(const char *group, size_t bytes);
/** The log of a home, in a stream of so many logs to a streamlet; and the other way round. */
static inline struct leat_log_ref leat_groups_home_log(uint32_t stream, uint32_t logs,
                                                       uint32_t home)
{
    return (struct leat_log_ref){stream, home / logs, home % logs};
}
static inline uint32_t leat_groups_home_of(struct leat_log_ref ref, uint32_t logs)
{
    return ref.streamlet * logs + ref.log;
}
/** How the stream of homes is made. */
struct leat_stream_settings leat_groups_stream_settings(void);

/**
 * Create an empty table. Give leat_groups_app() to leat_log_create() of the home log.
 *
 * A home log starts cold and reads its state back at its first append. So the groups make this append themselves when
 * the first request comes (an empty batch); requests wait for its ack. Members in the table then have a whole session
 * to send a request.
 * Thread: home core.  Allocates: yes.
 */
leat_err leat_groups_create(const struct leat_groups_options *options,
                            struct leat_groups **out_groups) LEAT_NODISCARD;
/** Answers every waiting request with LEAT_E_TIMEOUT, in this call (on_done runs inside). The client
 * asks again, and finds the present node of the home. No append may be in flight: stop the home log first. Queries
 * may be in flight: each ends later, and its request is answered in the same way. NULL is fine. */
void leat_groups_destroy(struct leat_groups **groups);
/** How the table is stored in the home log. snapshot_bytes is at most LEAT_START_BYTES_MAX / 2. */
struct leat_log_app leat_groups_app(struct leat_groups *groups);
/**
 * Do one request.
 *
 * Returns true: answered now, see request->rc (on_done does not run). false: on_done runs exactly
 * once, later, or inside this call where the home's log fails: the request may be gone already.
 *
 * JOIN is held until the group has settled: all members have joined again, or those that did not within the longest
 * session of the group have been dropped; then the new generation is made durable and all held joins are answered.
 * Members learn of a rebalance by STALE_GENERATION from their next heartbeat; until the new generation is there they
 * may still commit under the old generation, and should do so before they join again.
 * COMMIT, DELETE: answered once acked. LEAVE, HEARTBEAT: answered at once. FETCH: answered once all shown offsets
 * are acked; at a home that is followed, once an append that began after the request is acked.
 * Thread: home core.  Blocks: never.  Allocates: yes (control path).
 */
bool leat_groups_do(struct leat_groups *groups, struct leat_groups_request *request) LEAT_NODISCARD;
/** The requester is gone: a waiting request is answered LEAT_E_CANCELLED at once by on_done (inside). Started work
 * goes on. A request that is not waiting is left alone. */
void leat_groups_cancel(struct leat_groups *groups, struct leat_groups_request *request);

/**
 * The table has been read from the home log, or the log was empty.
 *
 * A new group or offset is accepted only when all homes of the node have been read: before, the share of its address
 * is unknown. Such requests wait meanwhile, for each home at most LEAT_GROUPS_READ_US_MAX since the home was made.
 */
void leat_groups_is_read(struct leat_groups *groups);
/** The home log has room again (leat_log_events.on_room). */
void leat_groups_on_room(struct leat_groups *groups);
/** A stream has more streamlets now: its groups are rebalanced. Returns how many rows of the table were looked at:
 * groups, members, logs. */
uint32_t leat_groups_on_stream_changed(struct leat_groups *groups, uint32_t stream);
/** A stream is gone: its logs leave all groups. Returns the same. */
uint32_t leat_groups_on_stream_deleted(struct leat_groups *groups, uint32_t stream);

/** NULL, or why this home refuses everything: an append failed for good, or its stored table does
 * not read. Requests are then answered by that code. */
const char *leat_groups_broken(const struct leat_groups *groups);

/** Asserts what is true of a home between two turns: for leat_actor_ops.check. Thread: home core. */
void leat_groups_check(const struct leat_groups *groups);

struct leat_groups_info {
    uint32_t groups, members;
    uint64_t table_bytes;
    uint64_t waiting;
};
void leat_groups_info(const struct leat_groups *groups, struct leat_groups_info *out_info);

#endif
