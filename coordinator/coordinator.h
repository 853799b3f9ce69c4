/* The coordinator: a replicated state machine on C-Raft (raft_step), one voter in the embedded
 * default.
 *
 * It knows nodes and incarnations, streams and their ids, owner and epoch per streamlet, for each
 * log either the stamp of its owner's first segment or a tail record, and producer id blocks. It is
 * never on the append path. One actor (LEAT_ACTOR_COORDINATOR); others reach it by requests mailed
 * there and back.
 */
#ifndef LEAT_COORDINATOR_COORDINATOR_H
#define LEAT_COORDINATOR_COORDINATOR_H

#include "base/list.h"
#include "base/port.h"
#include "base/types.h"

struct leat_coordinator; /* opaque */

/* Immutable once published; shared by reference count. */
struct leat_stream_desc {
    _Atomic uint32_t refs;
    uint32_t id;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_stream_settings settings; /* complete */
    bool internal;                        /* name starts with "leat." : not listed, not deletable */
    uint32_t streamlet_count;
    struct {
        uint64_t owner; /* incarnation */
        struct leat_epoch epoch;
    } streamlets[];
};
void leat_stream_desc_ref(struct leat_stream_desc *desc);
void leat_stream_desc_unref(struct leat_stream_desc *desc);

/* Where a log ends, when it is not its marks that say so. */
struct leat_tail_record {
    uint64_t segment;          /* last segment; UINT64_MAX = the log has none yet */
    struct leat_extent extent; /* of it */
    uint64_t next_offset;
    bool jumped; /* offsets before next_offset were given up */
};

/* What the node found of one log at start; input of the decision. Ascending by log. */
struct leat_log_marks {
    struct leat_log_ref log;
    bool has_mark;
    uint64_t mark_segment; /* lowest with a mark */
    struct leat_epoch mark_epoch;
    struct leat_extent mark_extent;
    uint64_t mark_next_offset;
    bool mark_only_start;     /* nothing but a start entry: predecessor must match the chain */
    bool predecessor_matches; /* closed, with the extent that the start entry names (or there is
                                 none to name) */
    bool has_closed;
    uint64_t closed_segment; /* highest closed */
    struct leat_extent closed_extent;
    uint64_t closed_next_offset;
    bool lost; /* a started segment is there whose bytes did not survive or are damaged */
    uint64_t highest_segment; /* of anything found */
    char why[96];
};
enum leat_decision { LEAT_DECIDED_TAIL, LEAT_DECIDED_WAIT };
struct leat_log_decision {
    struct leat_log_ref log;
    enum leat_decision kind;
    struct leat_tail_record tail; /* TAIL */
    struct leat_epoch epoch;      /* this owner's; 0: the streamlet stays as it is */
    char why[240];                /* WAIT */
};

/* State per log as the coordinator holds it. */
struct leat_log_record {
    bool opened; /* true: stamp_epoch says whose marks count; false: tail stands */
    struct leat_epoch stamp_epoch;
    struct leat_tail_record tail;
};
/**
 * Decide where one log ends (design: fence, collect, decide, step 3). Pure.
 * record: what the coordinator holds. marks: what was found (NULL: nothing).
 */
void leat_decide_tail(struct leat_log_ref log, const struct leat_log_record *record,
                      const struct leat_log_marks *marks, struct leat_log_decision *out_decision);

enum leat_coordinate_kind {
    LEAT_COORDINATE_STREAM_CREATE, /* name, settings (zeros: defaults). out: desc (a reference is
                                      given) */
    LEAT_COORDINATE_STREAM_DELETE, /* name. out: stream_id */
    LEAT_COORDINATE_PRODUCER_IDS,  /* out: first_id, id_count */
    LEAT_COORDINATE_OPENED,  /* logs[log_count], epochs of all = epoch. Committed as one entry */
    LEAT_COORDINATE_NODE_UP, /* node_name, address, cores. out: incarnation, cluster_id; old ones
                                are down then */
    LEAT_COORDINATE_ADOPT,   /* marks[mark_count] of everything found; out: decisions (see
                                leat_coordinator_decisions) */
    LEAT_COORDINATE_ACCEPT_LOSS, /* logs[0], next_offset, segment: tail record with jumped; out:
                                    epoch fresh */
    LEAT_COORDINATE_BARRIER,     /* done when everything before is applied */
};
struct leat_coordinate {
    struct leat_mail mail;
    enum leat_coordinate_kind kind;
    unsigned from;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_stream_settings settings;
    struct leat_stream_desc *desc;
    uint32_t stream_id;
    int64_t first_id;
    uint32_t id_count;
    const struct leat_log_ref *logs;
    size_t log_count;
    struct leat_epoch epoch;
    uint64_t segment, next_offset;
    const char *node_name, *address;
    uint32_t cores;
    uint64_t incarnation;
    uint8_t cluster_id[16];
    const struct leat_log_marks *marks;
    size_t mark_count;
    struct leat_log_decision
        *decisions; /* out of ADOPT: one per log of every stream; given, leat_mem_free() */
    size_t decision_count;
    leat_err rc;
    struct leat_error error;
    void (*on_done)(
        struct leat_coordinate *request); /* on actor `from`, once committed and applied */
    void *owner;
    struct leat_list link; /* the coordinator's */
    uint64_t index;        /* the coordinator's: of its entry */
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
    /** The state machine leads (single voter: soon after start) and takes requests. */
    void (*on_ready)(void *owner);
    void *owner;
};
enum {
    LEAT_PRODUCER_ID_BLOCK = 1000,
    LEAT_STREAMS_MAX = 100000,
    LEAT_STREAM_LOGS_MAX = 1 << 18,      /* streamlets times logs of one stream */
    LEAT_CLUSTER_LOGS_MAX = 1000 * 1000, /* of all streams: the state machine holds a row each */
    LEAT_OPENED_LOGS_MAX = 16384,        /* of one OPENED request */
    LEAT_COORDINATE_QUEUE_MAX = 65536,   /* more waiting requests are refused by LEAT_E_AGAIN */
};

/** Open raft's files in "raft/", form a cluster of one if the directory is new. Blocks. The actor
 * then goes on by events. A damaged log is named and refused, never shortened. */
leat_err leat_coordinator_open(const struct leat_env *env,
                               const struct leat_coordinator_options *options,
                               struct leat_coordinator **out_coordinator,
                               struct leat_error *error) LEAT_NODISCARD;
void leat_coordinator_close(struct leat_coordinator **coordinator);
/** Send a request. Thread: any actor's. */
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request);
/** The cluster's id (made when it formed). Thread: coordinator, or after on_ready. */
void leat_coordinator_cluster_id(const struct leat_coordinator *coordinator, uint8_t out_id[16]);
extern const struct leat_actor_ops leat_coordinator_actor;

/** Is the name allowed? Letters, digits, '.', '_', '-', 1 to 249 bytes, not "." or "..". error
 * names the offence. */
leat_err leat_stream_name_check(const char *name, size_t bytes,
                                struct leat_error *error) LEAT_NODISCARD;
/** Complete defaults and check limits of settings. */
leat_err leat_stream_settings_complete(struct leat_stream_settings *settings, uint32_t cores,
                                       struct leat_error *error) LEAT_NODISCARD;

#endif
