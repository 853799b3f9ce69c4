/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the coordinator's interface: its requests, options and status, and the questions of recovery to nodes.
 * Other modules include coordinator/coordinator.h, which includes this header. */
#ifndef LEAT_COORDINATOR_MEMBERSHIP_COORDINATE_H
#define LEAT_COORDINATOR_MEMBERSHIP_COORDINATE_H

#include "base/list.h"
#include "base/port.h"
#include "base/types.h"
#include "coordinator/metadata/records.h"
#include "link/link.h"

struct leat_coordinator; /* opaque */

/* ---- recovery: what the leader asks of every node; docs/recovery.md ---- */

struct leat_crashed_node {
    char name[LEAT_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation; /* and all earlier ones of this node */
};
struct leat_collect_log {
    struct leat_log_ref log;
    struct leat_log_record record; /* as this node's tables have it */
};
/* Made by this node's coordinator when the leader collects. Answered once, any time later. */
struct leat_collect {
    struct leat_mail mail; /* sends the struct to and from the broker */
    uint64_t attempt;
    /* To be fenced before anything is looked at, on every transport and core. */
    const struct leat_crashed_node *crashed;
    size_t crashed_count;
    const struct leat_collect_log *logs; /* ascending */
    size_t log_count;
    /* The answer: every MARK of these logs, and four kinds of CLOSED: the segment of a tail record; the highest; the
     * segment before a segment without records; of an opened log the highest segment that may be left
     * (leat_tail_may_be_left()). Also the highest LOST segment, for operators. The node chooses them
     * (broker/ownership/filter.h). Any order. Given: leat_mem_free(). */
    struct leat_replica_row *rows;
    size_t row_count;
    leat_err rc; /* not LEAT_OK: counted as if this node had not answered */
};
/** Thread: any actor's. */
void leat_collected(const struct leat_post *post, struct leat_collect *collect);

enum { LEAT_PULL_SOURCES_MAX = LEAT_COPIES_MAX };
struct leat_pull_source {
    char node[LEAT_NODE_NAME_BYTES_MAX + 1];
    char node_address[LEAT_ADDRESS_BYTES_MAX + 1];
    uint64_t incarnation;
};
/* A request to a node: hold exactly these bytes of this segment, durably if the stream's level is disk. The copy is
 * closed and no mark: it counts by its prefix id. If this node itself is among the sources, the node has the bytes, and
 * only durability is asked for. Idempotent. No replica is cut: a longer replica here stays as it is. */
struct leat_pull {
    struct leat_mail mail;
    uint64_t attempt;
    struct leat_log_ref log;
    uint64_t segment;
    struct leat_prefix_id prefix_id;
    uint64_t next_offset;
    struct leat_epoch epoch; /* stamp of the replicas at the sources */
    uint32_t version;
    enum leat_durability durability;
    struct leat_pull_source sources[LEAT_PULL_SOURCES_MAX];
    uint32_t source_count;
    leat_err rc; /* the answer */
    struct leat_error error;
};
/** Thread: any actor's. */
void leat_pulled(const struct leat_post *post, struct leat_pull *pull);

/* A log of a streamlet, by this node's tables. */
struct leat_log_end {
    struct leat_log_ref log;
    struct leat_epoch epoch; /* its owner's */
    struct leat_log_record record;
    /* Neither the owner's own segments nor a tail record say where the log ends: no node serves the log until
     * recovery has decided. */
    bool waits;
};

enum leat_standing {
    LEAT_STANDING_CONFIRMED = 1, /* the leader has said that this incarnation is up */
    /* No node is heard, this process was stopped for a while, or a node that does not lead says that this
     * incarnation has crashed: other nodes may have taken over. Until confirmed, serve nothing that other nodes may
     * serve. */
    LEAT_STANDING_ALONE = 2,
    LEAT_STANDING_CRASHED = 3, /* for good: this incarnation never serves again */
};

enum leat_coordinate_kind {
    LEAT_COORDINATE_STREAM_CREATE, /* name, settings (zeros: defaults). out: desc (a reference is
                                      given) */
    LEAT_COORDINATE_STREAM_DELETE, /* name. out: stream_id */
    /* name, change, settings: `change` names the settings to take. Additional streamlets get owners of their own; the
     * number of streamlets never shrinks. out: desc, as above */
    LEAT_COORDINATE_STREAM_CHANGE,
    LEAT_COORDINATE_PRODUCER_IDS, /* out: first_id, id_count */
    /* logs[log_count], epochs of all = epoch, version (0: 1). Committed as one entry */
    LEAT_COORDINATE_OPENED,
    /* node_name, address, cores, kafka_address; of a cluster also node_address, rack, host, node_id,
     * memory_bytes, logs_most. out: incarnation, cluster_id; the node's earlier incarnations are down then.
     * LEAT_E_EXISTS: another node of that name is up */
    LEAT_COORDINATE_NODE_UP,
    LEAT_COORDINATE_ADOPT, /* marks[mark_count] of everything found; out: decisions */
    /* logs[0] gets a tail record with `jumped`. In: incarnation; the log's epoch; next_offset, the highest that this
     * node knows; tails[0], the last segment that is kept (NULL: `segment`, without a prefix id); stands_in. out: a new
     * epoch; next_offset, beyond every offset that any record of the log ever had */
    LEAT_COORDINATE_ACCEPT_LOSS,
    LEAT_COORDINATE_BARRIER, /* done when all entries that were committed before are applied */
    /* logs[log_count], incarnation, epoch, version: the stamps of these logs get `version`, in one entry.
     * LEAT_E_STALE_EPOCH: this incarnation does not own the logs. LEAT_E_INVALID: a log is not opened, or has a
     * higher version */
    LEAT_COORDINATE_VERSION,
    /* Hand streamlets over, after their logs were stopped. In: logs[log_count], all logs of these streamlets, in
     * ascending order; tails[log_count], where each ends; incarnation; epoch; target. LEAT_OK: the target owns the
     * streamlets; out: a new epoch. Refused with epoch != 0: the requester owns the streamlets, under this new epoch.
     * Refused with epoch 0: the requester did not own them, and nothing has changed; after an error of class RETRY
     * whether the move takes effect is not known. */
    LEAT_COORDINATE_MOVE,
    /* target, draining: gets nothing new (or does again). LEAT_E_INVALID: the last node that is not drained: by the
     * entries applied here, or when the drain was applied and was then taken back */
    LEAT_COORDINATE_NODE_DRAIN,
    /* target: name of a node: it becomes a voter (ADD), or its voter has lost its data (REPLACE). Answered when the
     * configuration is committed. */
    LEAT_COORDINATE_ADD_VOTER,
    LEAT_COORDINATE_NODE_REPLACE,
    /* stream_id, streamlet. out: ends[end_count], one per log (given, leat_mem_free()), epoch and
     * incarnation of its owner. From this node's own tables, at once */
    LEAT_COORDINATE_TAILS,
    LEAT_COORDINATE_CRASH,   /* target, incarnation: the leader's own */
    LEAT_COORDINATE_RECOVER, /* likewise */
};
struct leat_coordinate {
    struct leat_mail mail;
    enum leat_coordinate_kind kind;
    unsigned from;
    uint64_t asker; /* the client's address, as a number. 0: the node itself asks */
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_stream_settings settings;
    uint32_t change; /* enum leat_stream_change, or-ed */
    struct leat_stream_desc *desc;
    uint32_t stream_id;
    int64_t first_id;
    uint32_t id_count;
    const struct leat_log_ref *logs;
    size_t log_count;
    struct leat_epoch epoch;
    uint64_t segment, next_offset;
    const char *node_name, *address;
    const char *node_address, *rack, *host; /* may be NULL */
    const char *kafka_address;              /* likewise */
    uint8_t node_id[16];                    /* of the data directory; zeros: not said */
    /* Marks in the data directory: of this start, and of the last start that came up; 0: none. */
    uint64_t boot, boot_before;
    uint64_t memory_bytes, logs_most;
    uint32_t cores;
    uint64_t incarnation;
    uint32_t version;
    const struct leat_tail_record *tails;
    const char *target; /* a node's name */
    uint32_t streamlet;
    struct leat_log_end *ends; /* out of TAILS */
    size_t end_count;
    bool draining;
    /* ACCEPT_LOSS: this node has nothing of the log, and other nodes may have its end. LEAT_E_AGAIN: a node that may
     * have it was not heard yet. */
    bool stands_in;
    uint8_t cluster_id[16];
    const struct leat_log_marks *marks;
    size_t mark_count;
    struct leat_log_decision
        *decisions; /* out of ADOPT: one per log of every stream; given, leat_mem_free() */
    size_t decision_count;
    leat_err rc;
    struct leat_error error;
    uint64_t wait_us_max; /* 0: LEAT_COORDINATE_WAIT_US_MAX */
    void (*on_done)(
        struct leat_coordinate *request); /* on actor `from`, once committed and applied */
    void *owner;
    /* the coordinator's: */
    bool takes_back; /* NODE_DRAIN: the drain is being undone, and is refused then */
    struct leat_list link;
    uint64_t sequence; /* of its last entry */
    uint64_t since_us, sent_us;
    uint64_t attempt;       /* of ADOPT */
    const uint8_t *command; /* of recovery: borrowed until on_done */
    size_t command_bytes;
    uint8_t *bytes; /* its entries, once they were made */
    size_t byte_count;
};

struct leat_coordinator_options {
    uint32_t cores; /* default Q */
    /* The id that a cluster formed by this open gets (the node's identity file holds it already);
     * all zeros: a random one. */
    uint8_t cluster_id[16];
    /** Told on the coordinator's actor as entries are applied (also replayed at start, before any
     * request is answered): a stream came, changed or went. `desc` borrowed; take a reference to
     * keep it. */
    void (*on_stream)(void *owner, struct leat_stream_desc *desc);
    void (*on_stream_deleted)(void *owner, uint32_t stream_id);
    /** After on_stream for all streams, at the start and when a snapshot came. Ids up to `highest` were given out; an
     * id among these without an on_stream belongs to a deleted stream. NULL: not called. */
    void (*on_streams_given)(void *owner, uint32_t highest);
    /** A node came, changed or went (state GONE). Borrowed until return. NULL: not told. */
    void (*on_node)(void *owner, const struct leat_node_info *node);
    /** Once: a leader is known, and everything committed before that is applied here. */
    void (*on_ready)(void *owner);
    /** Recovery. Called on the coordinator's actor; each call is answered once, by leat_collected() or leat_pulled(),
     * from any actor, also after a failure. Close drops unanswered calls: the broker has stopped by then. NULL: of a
     * server alone. */
    void (*on_collect)(void *owner, struct leat_collect *collect);
    void (*on_pull)(void *owner, struct leat_pull *pull);
    /** The standing of this node in the cluster, at each change. A clustered node begins as CONFIRMED. NULL: not
     * told. */
    void (*on_standing)(void *owner, enum leat_standing standing);
    void *owner;
    /* ---- of a cluster; all zero: an embedded node, a single voter without an address ---- */
    const char *node_name;      /* shown to peers */
    const char *node_address;   /* own, for other nodes: "HOST:PORT". NULL: none */
    const char *listen_address; /* where to listen for nodes; NULL: node_address */
    /* Node addresses of the voters, the same list on every node. Without one: this node forms a
     * cluster of its own. This node is to vote when node_address is among them. */
    const char *const *voters;
    uint32_t voter_count;
    struct leat_link_hub *hub;          /* of the process; needed with node_address */
    const struct leat_key *key;         /* the cluster's; likewise, and must outlive it */
    uint32_t strangers_max;             /* see leat_links_options; 0: default */
    unsigned election_ms, heartbeat_ms; /* 0: defaults */
    /* Detection of crashes; 0: defaults. A node is asked every ping_ms, suspected when it was silent
     * for suspect_ms, and declared crashed when it does not answer within confirm_ms more. */
    unsigned ping_ms, suspect_ms, confirm_ms;
    uint64_t snapshot_bytes_min; /* 0: default */
    uint64_t raft_segment_bytes; /* of files of raft's log; 0: default */
};
enum {
    LEAT_COORDINATE_QUEUE_MAX = 65536,   /* more waiting requests are refused by LEAT_E_AGAIN */
    LEAT_COORDINATE_CLIENTS_MAX = 32768, /* of these, what clients asked for: base/shares.h */
    /* A request without an answer for so long ends with LEAT_E_TIMEOUT: whether it takes effect is unknown. NODE_UP
     * and ADOPT wait for ever: without these a node does not serve. Shorter than clients wait for an answer (30 s):
     * otherwise the reason would reach no client. */
    LEAT_COORDINATE_WAIT_US_MAX = 25 * 1000 * 1000,
};

/** Send a request. Thread: any actor's. */
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request);
enum leat_voter_role {
    LEAT_VOTER_LEARNER, /* does not vote */
    LEAT_VOTER_EMPTY,   /* waits for the cluster to be formed; if it is formed: has lost its data */
    LEAT_VOTER_PREPARED, /* the cluster is being formed */
    LEAT_VOTER_FOLLOWER,
    LEAT_VOTER_CANDIDATE,
    LEAT_VOTER_LEADER,
    LEAT_VOTER_FAILED,
    LEAT_VOTER_JOINING, /* has joined, and does not vote yet */
};
struct leat_voter_status {
    uint64_t id;
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
    bool votes;     /* else joining: it catches up */
    bool reachable; /* from here */
    /* the last entry known to be there; known to the leader, 0 on other nodes */
    uint64_t last_index;
};
enum leat_recovery_phase {
    LEAT_RECOVERY_NONE,
    LEAT_RECOVERY_COLLECT, /* nodes are asked what they hold */
    LEAT_RECOVERY_PREPARE, /* copies of tails are made */
    LEAT_RECOVERY_COMMIT,
};
struct leat_recovery_status {
    uint64_t attempt;
    enum leat_recovery_phase phase;
    uint32_t streamlets, logs, decided;
    uint32_t nodes_asked, nodes_answered, pulls, pulls_open;
    uint64_t age_us;                            /* since it began */
    uint64_t collect_us, prepare_us, commit_us; /* of the steps that have ended */
    uint64_t crash_to_commit_us;                /* 0: not ended, or nothing had crashed */
    uint32_t recovered;                         /* streamlets, of an ended attempt */
};
struct leat_recovery_waiting {
    struct leat_log_ref log;
    char stream[LEAT_STREAM_NAME_BYTES_MAX + 1]; /* "": gone since */
    char why[240];
};
enum { LEAT_RECOVERY_WAITING_MAX = 64 };
/* The leader's, sent to the other nodes at each change. */
struct leat_recovery_report {
    bool known;                       /* false: no leader has reported yet */
    uint64_t ended;                   /* attempts that gave a streamlet an owner, since it leads */
    struct leat_recovery_status now;  /* phase NONE: nothing is under way */
    struct leat_recovery_status last; /* attempt 0: none yet */
    uint32_t waiting_count;           /* logs that no node serves, by the last attempts */
    uint32_t waiting_rows;            /* how many of them are here */
    struct leat_recovery_waiting waiting[LEAT_RECOVERY_WAITING_MAX];
};
struct leat_coordinator_status {
    enum leat_voter_role role;
    char why[LEAT_ERROR_TEXT_BYTES]; /* what is wrong; "" = nothing */
    uint64_t term, applied_index, voter_id;
    uint64_t leader_id;                              /* 0: not known */
    char leader_address[LEAT_ADDRESS_BYTES_MAX + 1]; /* "": not known */
    uint8_t cluster_id[16];
    bool ready;
    uint32_t voter_count;
    struct leat_voter_status voters[LEAT_VOTERS_MAX];
    uint32_t stream_count; /* without internal ones */
    uint64_t log_count;
    bool leads;
    uint32_t node_count;
    struct leat_node_info nodes[LEAT_NODES_MAX]; /* from here on only what is counted is written */
    struct leat_recovery_report recovery;
};

#endif
