/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster agrees on, as values: streams, nodes, where each log ends, and what nodes hold of a log. */
#ifndef LEAT_COORDINATOR_METADATA_RECORDS_H
#define LEAT_COORDINATOR_METADATA_RECORDS_H

#include "base/error.h"
#include "base/types.h"

enum {
    LEAT_PRODUCER_ID_BLOCK = 1000,
    LEAT_STREAMS_MAX = 100000,
    LEAT_STREAM_LOGS_MAX = 1 << 18,      /* streamlets times logs of one stream */
    LEAT_CLUSTER_LOGS_MAX = 1000 * 1000, /* of all streams: the state machine holds a row each */
    LEAT_OPENED_LOGS_MAX = 16384,        /* of one OPENED request */
};

/* Immutable once published; shared by reference count. */
struct leat_stream_desc {
    _Atomic uint32_t refs;
    uint32_t id;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_stream_settings settings; /* complete */
    bool internal;                        /* name starts with "leat." : not listed, not deletable */
    /* a stream of this name was deleted not long before: producers of the deleted stream go on here, in the
     * middle of their sequences */
    bool remade;
    uint32_t streamlet_count;
    struct {
        uint64_t owner; /* incarnation */
        struct leat_epoch epoch;
    } streamlets[];
};
void leat_stream_desc_ref(struct leat_stream_desc *desc);
void leat_stream_desc_unref(struct leat_stream_desc *desc);

/* Where a log ends, where open replicas do not decide this. */
struct leat_tail_record {
    uint64_t segment;                /* last segment; UINT64_MAX = the log has none yet */
    struct leat_prefix_id prefix_id; /* of it */
    uint64_t next_offset;
    bool jumped; /* offsets before next_offset were given up */
};

/* What the node found of a log at its start; input of the decision. Ascending by log. */
struct leat_log_marks {
    struct leat_log_ref log;
    bool has_mark;
    uint64_t mark_segment; /* the lowest segment with a mark after which the log did not go on */
    struct leat_epoch mark_epoch;
    uint32_t mark_version; /* 0: not said, that is 1 */
    struct leat_prefix_id mark_prefix_id;
    uint64_t mark_next_offset;
    bool mark_only_start;     /* nothing but a start entry: predecessor must match the chain */
    bool predecessor_matches; /* closed, with the prefix id that the start entry names (or there is
                                 none to name) */
    bool has_closed;
    uint64_t closed_segment; /* highest closed */
    struct leat_prefix_id closed_prefix_id;
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
    /* TAIL: its segment was not found here; it was given up, or is on other nodes */
    bool elsewhere;
    struct leat_epoch epoch; /* this owner's; 0: the streamlet stays as it is */
    /* WAIT, and its streamlet was not adopted (epoch 0): recovery decides with what all nodes hold.
     * What is here is kept as replicas. */
    bool left;
    char why[240]; /* WAIT */
};

/* State per log as the coordinator holds it. */
struct leat_log_record {
    bool opened; /* true: the stamp says whose marks count; false: tail stands */
    struct leat_epoch stamp_epoch;
    uint32_t stamp_version; /* raised when a copy is lost; marks of a lower one do not count */
    struct leat_tail_record tail;
    /* Opened, and the log waits: every node has said what it holds, when the cluster had given out
     * incarnations below this (0: not so). Then `tail` is the best of it, not where the log ends. */
    uint64_t heard;
    /* Opened: the decided end of the log when the stamp's epoch began. Bytes that replicas of other epochs have after
     * this end were never acked. Zeros: not known, the log was opened by an earlier version. */
    struct leat_tail_record began;
};
/* What says where a log ends (README.md, "A log's record"). Not stored: derived from the record and the epoch. */
enum leat_record_state {
    LEAT_RECORD_EMPTY,  /* it has no segment yet */
    LEAT_RECORD_ENDED,  /* its tail record */
    LEAT_RECORD_LEFT,   /* its tail record, which an operator accepted */
    LEAT_RECORD_OPENED, /* open replicas with the stamp */
    /* Open replicas of an earlier ownership: no node serves the log until recovery has decided where the log ends. */
    LEAT_RECORD_WAITS,
    LEAT_RECORD_WAITS_HEARD, /* likewise; all nodes have reported what is left */
};
/** epoch: the log's, of its owner. */
static inline enum leat_record_state leat_record_state(const struct leat_log_record *record,
                                                       struct leat_epoch epoch)
{
    if (record->opened && record->stamp_epoch.v == epoch.v) return LEAT_RECORD_OPENED;
    if (record->opened) return record->heard ? LEAT_RECORD_WAITS_HEARD : LEAT_RECORD_WAITS;
    if (record->tail.jumped) return LEAT_RECORD_LEFT;
    return record->tail.segment == UINT64_MAX ? LEAT_RECORD_EMPTY : LEAT_RECORD_ENDED;
}
/** No node serves the log until recovery has decided its end. */
static inline bool leat_record_waits(const struct leat_log_record *record, struct leat_epoch epoch)
{
    return leat_record_state(record, epoch) >= LEAT_RECORD_WAITS;
}

/* ---- nodes ---- */
enum {
    LEAT_NODES_MAX = 256,
    LEAT_NODE_NAME_BYTES_MAX = 255,
    LEAT_ADDRESS_BYTES_MAX = 127,
    LEAT_RACK_BYTES_MAX = 63, /* likewise of a host */
    LEAT_VOTERS_MAX = 9,
};
/* Numbers are in stored logs. */
enum leat_node_state {
    LEAT_NODE_UP = 1,
    LEAT_NODE_DOWN = 2, /* not heard of; its streamlets stay its own */
    LEAT_NODE_GONE = 3, /* drained, and stopped after that */
};
struct leat_node_info {
    char name[LEAT_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation;                           /* the newest */
    char address[LEAT_ADDRESS_BYTES_MAX + 1];       /* for clients */
    char node_address[LEAT_ADDRESS_BYTES_MAX + 1];  /* for nodes; "": none, an embedded node */
    char kafka_address[LEAT_ADDRESS_BYTES_MAX + 1]; /* for clients of Kafka; "": none */
    char rack[LEAT_RACK_BYTES_MAX + 1];             /* "": not said */
    char host[LEAT_RACK_BYTES_MAX + 1];             /* the machine; "": by its node address */
    uint32_t cores;
    enum leat_node_state state;
    /* This incarnation was declared crashed, for good (state is DOWN): every backup fences this incarnation, and all
     * before. A newer incarnation under this name says the same of all earlier incarnations. */
    bool crashed;
    bool draining;         /* gets nothing new */
    uint64_t memory_bytes; /* of segments, announced when it came up */
    uint64_t logs_most;    /* that it has memory for, announced when it came up; 0: not announced */
    uint64_t streamlets;   /* that it owns */
};

/* ---- what nodes hold ---- */

/* What a node holds of a log: a replica that was scanned after its writer was fenced. */
enum leat_replica_kind {
    LEAT_REPLICA_MARK = 1,   /* started, whole, not closed, and its bytes survived */
    LEAT_REPLICA_CLOSED = 2, /* or its bytes are right by their (length, CRC) only */
    LEAT_REPLICA_LOST = 3,   /* it is known to have been here; its bytes went, or are damaged */
};
struct leat_replica_row {
    struct leat_log_ref log;
    uint64_t segment;
    enum leat_replica_kind kind;
    struct leat_epoch epoch; /* its writer's; 0: not said */
    uint32_t version;
    struct leat_prefix_id prefix_id; /* its valid prefix */
    struct leat_prefix_id previous;  /* of the segment before, named by the start entry */
    uint64_t base_offset, next_offset;
    int64_t max_timestamp_ms;
    bool only_start; /* MARK: no batch yet, so the segment before it is needed */
    /* MARK: bytes after its end may be a torn write, or a damaged acked write. Alone the replica does not say where
     * its log ends. */
    bool torn;
    bool durable; /* the prefix id would survive a power cut */
    /* leat_log_decided() names this segment, and the replica begins with exactly those bytes, whatever
     * follows (looked for and checked, not guessed). */
    bool holds_tail;
    bool
        provisional; /* CLOSED: made for an attempt of recovery, and no owner has counted on it since */
};
/** Where the log was decided to end the last time: its tail, or, opened, where its epoch began. NULL: not known. */
static inline const struct leat_tail_record *leat_log_decided(const struct leat_log_record *record)
{
    const struct leat_tail_record *began = &record->began;
    if (!record->opened) return &record->tail;
    bool known = began->segment == UINT64_MAX || began->prefix_id.bytes > 0 || began->jumped;
    return known ? began : NULL;
}

/* What of a stream's settings is to change. Numbers are in stored logs. */
enum leat_stream_change {
    LEAT_CHANGE_STREAMLETS = 1,
    LEAT_CHANGE_RETENTION_MS = 2,
    LEAT_CHANGE_RETENTION_BYTES = 4,
    LEAT_CHANGE_SEGMENT_BYTES = 8,
    LEAT_CHANGE_MIN_COPIES = 16,
    LEAT_CHANGE_BATCH_BYTES = 32,
    LEAT_CHANGE_APPEND_TIME = 64,
    LEAT_CHANGE_COMPRESSION = 128,
    LEAT_CHANGE_VALIDATE = 256,
};
/** Is the name allowed? Letters, digits, '.', '_', '-', 1 to 249 bytes, not "." or "..". error
 * names the offence. */
leat_err leat_stream_name_check(const char *name, size_t bytes,
                                struct leat_error *error) LEAT_NODISCARD;
/** Complete defaults and check limits of settings. */
leat_err leat_stream_settings_complete(struct leat_stream_settings *settings, uint32_t cores,
                                       struct leat_error *error) LEAT_NODISCARD;

#endif
