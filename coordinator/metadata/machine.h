/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state machine: tables, and the committed entries that change them.
 *
 * Deterministic: the same entries give the same tables and the same snapshot bytes on every voter. The machine uses
 * no clock and no random number; an entry has all that it needs.
 */
#ifndef LEAT_COORDINATOR_METADATA_MACHINE_H
#define LEAT_COORDINATOR_METADATA_MACHINE_H

#include "coordinator/metadata/records.h"
#include "wire/msg.h"

enum {
    LEAT_COMMAND_VERSION = 1,
    LEAT_SNAPSHOT_VERSION = 9,
    LEAT_SESSIONS_MAX = 512,  /* coordinators whose requests are remembered */
    LEAT_OUTCOMES_MAX = 4096, /* of requests; older ones are forgotten */
    LEAT_EPOCH_MAX = 0x7fffffff,
    LEAT_ADOPT_CHUNK_BYTES = 1024 * 1024 - 4096, /* an entry stays below 1 MiB */
    LEAT_ADOPT_ROW_BYTES_MAX = 64,
    LEAT_ADOPT_STAGED_BYTES_MAX = 128 * 1024 * 1024, /* 1,000,000 logs and to spare */
};

/* Numbers are in stored logs: never renumber; bodies.def has their fields. ADOPT, ACCEPT_LOSS, MOVE, NODE_STATE and
 * RECOVER are in logs of earlier versions only: they are read. */
enum leat_command_kind {
    LEAT_COMMAND_FORM = 1,
    LEAT_COMMAND_STREAM_CREATE = 2,
    LEAT_COMMAND_STREAM_DELETE = 3,
    LEAT_COMMAND_PRODUCER_IDS = 4,
    LEAT_COMMAND_OPENED = 5,
    LEAT_COMMAND_NODE_UP = 6,
    LEAT_COMMAND_ADOPT = 7,
    LEAT_COMMAND_ACCEPT_LOSS = 8,
    LEAT_COMMAND_BARRIER = 9,
    LEAT_COMMAND_REQUEST = 10,
    LEAT_COMMAND_VERSION_RAISE = 11,
    LEAT_COMMAND_MOVE = 12,
    LEAT_COMMAND_NODE_DRAIN = 13,
    LEAT_COMMAND_NODE_STATE = 14,
    LEAT_COMMAND_CRASH = 15,
    LEAT_COMMAND_RECOVER = 16,
    LEAT_COMMAND_ASSIGN = 17,
    LEAT_COMMAND_STREAM_CHANGE = 24,
};
enum leat_recover_decision {
    LEAT_RECOVER_WAITS = 0,  /* keeps its stamp */
    LEAT_RECOVER_TAIL = 1,   /* this tail becomes its record */
    LEAT_RECOVER_STANDS = 2, /* its record is a tail and stays */
    LEAT_RECOVER_LEFT = 3,   /* this is what is left of the log: the rest is given up */
};
enum { LEAT_OWNER_NONE = 0xffff };

struct leat_machine_log {
    struct leat_log_record record; /* leat_machine_log_enter(), also for the epoch */
    struct leat_epoch epoch; /* its owner's; the streamlet's, unless data was given up since */
    uint64_t jumped_to;      /* the highest offset at which it went on after data was given up */
};
struct leat_machine_stream {
    uint32_t id;
    struct leat_stream_desc *desc; /* one reference; name, settings, owners */
    struct leat_machine_log *logs; /* [streamlets * logs], by streamlet, then log */
    /* [streamlets] index into nodes, or LEAT_OWNER_NONE. A node keeps what it owns through all its
     * incarnations; the description names the incarnation that adopted it last. */
    uint16_t *owners;
    uint32_t log_count;
};
struct leat_machine_node {
    struct leat_node_info info;
    uint8_t id[16];   /* of its data directory */
    uint64_t boot;    /* the directory's mark of the last start that came up; 0: none is known */
    uint64_t changes; /* to its streamlets, or to the ends of their logs */
    uint64_t logs;    /* of the streamlets that it owns */
    uint64_t adopted; /* the incarnation that adopted here, as far as this process saw; not kept */
};
struct leat_machine_session {
    uint64_t session;
    uint64_t sequence; /* highest seen */
};
/* What an applied entry answers its requester. */
struct leat_machine_result {
    leat_err rc;
    struct leat_error error;
    struct leat_stream_desc *desc; /* borrowed */
    uint32_t stream_id;
    int64_t first_id;
    uint32_t id_count;
    uint64_t incarnation;
    struct leat_epoch epoch;
    uint64_t session, sequence; /* of a REQUEST; else 0 */
    bool malformed;             /* refused, because its bytes are no command */
    bool drained_last;          /* by this entry no node is left that is not drained */
};
/* A result as it is remembered: without its sentence. */
struct leat_machine_outcome {
    uint64_t session, sequence, incarnation;
    int64_t first_id;
    uint32_t rc, stream_id, id_count, epoch;
};

/* From raft's configuration: voters, and joining voters. */
struct leat_machine_voter {
    char address[LEAT_ADDRESS_BYTES_MAX + 1];
    char name[LEAT_NODE_NAME_BYTES_MAX + 1]; /* ""; not said by a configuration of old */
};

enum { LEAT_GONE_NAMES_MAX = 256 };
struct leat_machine {
    uint32_t cores; /* default Q */
    bool formed;
    uint8_t cluster_id[16];
    uint32_t next_stream_id; /* from 1 */
    uint32_t next_epoch;     /* from 1 */
    uint64_t next_incarnation;
    int64_t next_producer_id;
    uint64_t changes;                    /* entries that changed an owner or the end of a log */
    uint64_t unowned_changes;            /* the same of streamlets without an owner */
    uint64_t node_changes;               /* nodes that came, crashed, adopted; not kept */
    struct leat_machine_stream *streams; /* ascending ids */
    uint32_t stream_count, stream_capacity;
    uint32_t *names; /* open addressing: stream id or 0 */
    uint32_t name_capacity;
    /* CRC-32C of the names deleted last: a ring. */
    uint32_t gone_names[LEAT_GONE_NAMES_MAX];
    uint32_t gone_count, gone_next;
    struct leat_machine_node nodes[LEAT_NODES_MAX];
    uint32_t node_count;
    struct leat_machine_voter voters[LEAT_VOTERS_MAX]; /* of the last configuration before here */
    uint32_t voter_count;
    uint64_t log_count;
    /* Chunks of the attempt that is coming in: rows only, concatenated. */
    uint64_t staged_attempt;
    uint32_t staged_next;
    uint8_t *staged;
    size_t staged_bytes, staged_capacity;
    struct leat_machine_session sessions[LEAT_SESSIONS_MAX]; /* the last used first */
    uint32_t session_count;
    struct leat_machine_outcome *outcomes; /* ring; heap */
    uint32_t outcome_count, outcome_next;
    /* Told as entries are applied; NULL: silent (restart, followers that catch up). */
    void (*on_stream)(void *owner, struct leat_stream_desc *desc);
    void (*on_stream_deleted)(void *owner, uint32_t stream_id);
    void (*on_node)(void *owner, const struct leat_node_info *node);
    void *owner;
};

/** machine: zeros (it is large, and most of it is never touched). */
void leat_machine_init(struct leat_machine *machine, uint32_t cores);
void leat_machine_fini(struct leat_machine *machine);
/** Asserts what is true between two entries. Thread: the machine's. */
void leat_machine_check(const struct leat_machine *machine);
/**
 * Apply one committed entry. A refused command is applied too, also bytes that are no command: it
 * changes nothing, and the result says why. What stops one voter stops all, at each start again, so
 * the bytes alone never do. Errors: LEAT_E_CORRUPT (of a newer version, or a kind that is not known
 * here: this voter must stop), LEAT_E_NO_MEMORY (must stop too: going on would make voters differ).
 * Neither LEAT_E_CORRUPT of what leat_machine_command_known().
 */
leat_err leat_machine_apply(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                            struct leat_machine_result *out_result) LEAT_NODISCARD;
/** What came of a request; false: not known, or not any more. */
bool leat_machine_outcome(struct leat_machine *machine, uint64_t session, uint64_t sequence,
                          struct leat_machine_result *out_result);
/** Is this the last node that may get streamlets, now or when it is up again? False for a node that is drained, or
 * unknown. */
bool leat_machine_drains_last(struct leat_machine *machine, const char *name, size_t bytes);
/** May a voter propose this for another node: is it a REQUEST of a known kind? */
bool leat_machine_command_known(const uint8_t *bytes, size_t count);
/** The whole state as bytes; given, leat_mem_free(). */
leat_err leat_machine_snapshot(const struct leat_machine *machine, uint8_t **out_bytes,
                               size_t *out_count) LEAT_NODISCARD;
/** Replace the whole state. On failure the machine is empty. LEAT_E_CORRUPT, LEAT_E_NO_MEMORY. */
leat_err leat_machine_restore(struct leat_machine *machine, const uint8_t *bytes,
                              size_t count) LEAT_NODISCARD;

struct leat_machine_stream *leat_machine_stream_find(const struct leat_machine *machine,
                                                     uint32_t id);
struct leat_machine_stream *leat_machine_name_find(struct leat_machine *machine, const char *name,
                                                   size_t bytes);
struct leat_machine_node *leat_machine_node_find(struct leat_machine *machine, const char *name,
                                                 size_t bytes);
/** The node whose newest incarnation this is, or NULL. */
struct leat_machine_node *leat_machine_incarnation_find(struct leat_machine *machine,
                                                        uint64_t incarnation);
static inline uint16_t leat_machine_node_index(const struct leat_machine *machine,
                                               const struct leat_machine_node *node)
{
    return (uint16_t)(node - machine->nodes);
}
/** May this node adopt the streamlet: does the node own it, or has it no owner? */
bool leat_machine_adoptable(const struct leat_machine *machine,
                            const struct leat_machine_stream *stream, uint32_t streamlet,
                            const struct leat_machine_node *node);
/** Equal at two times: nothing that this node owns or may adopt has changed in between. */
uint64_t leat_machine_seen(const struct leat_machine *machine,
                           const struct leat_machine_node *node);
static inline bool leat_machine_log_waits(const struct leat_machine_log *log)
{
    return leat_record_waits(&log->record, log->epoch);
}
/** The incarnation is its node's newest and was not declared crashed. */
bool leat_machine_incarnation_lives(struct leat_machine *machine, uint64_t incarnation);
struct leat_machine_log *leat_machine_log_find(const struct leat_machine *machine,
                                               struct leat_log_ref ref,
                                               struct leat_machine_stream **out_stream);
/** How many nodes may get something new. */
uint32_t leat_machine_nodes_up(const struct leat_machine *machine);
/** Has the node announced memory for so many logs beside its own? True for a node that announced nothing. */
bool leat_machine_node_has_room(const struct leat_machine_node *node, uint64_t logs);
/** Different hosts of nodes that are up: by configured host name, or else by node address without port. */
uint32_t leat_machine_hosts_up(const struct leat_machine *machine);
/** Bytes of a whole name are equal. */
bool leat_machine_text_equal(const char *text, const char *view, size_t view_bytes);

#endif
