/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies of the native protocol, one msgpack array each: bodies.def and bodies_data.def list their fields,
 * docs/protocol.md shows and explains them. Fields added later go to the end of an array: a decoder skips unknown
 * fields. */
#ifndef LEAT_WIRE_MESSAGE_H
#define LEAT_WIRE_MESSAGE_H

#include "wire/msg.h"

struct leat_msg_error {
    leat_err code;
    uint32_t class; /* for peers that do not know the code */
    struct leat_msg_string text;
};
struct leat_msg_hello {
    uint32_t version_min, version_max;
    struct leat_msg_string name;
    int64_t lane; /* the core this connection wants to live on; -1: any */
};
struct leat_msg_hello_ok {
    uint32_t version;
    uint8_t cluster_id[16];
    uint64_t incarnation;
    struct leat_msg_string node;
    uint32_t lanes, lane;
};
struct leat_msg_pong {
    int64_t wall_ms;
};

/* METADATA. An empty list: all streams; may_create: make a missing one, if the server allows that. */
struct leat_msg_metadata {
    uint32_t name_count;
    struct leat_msg_reader names; /* read: stands at the first */
    bool may_create, nodes_only;
};
struct leat_msg_metadata_ok {
    uint8_t cluster_id[16];
    uint32_t node_count, stream_count;
    struct leat_msg_reader nodes, streams; /* read: stand at the first */
};
struct leat_msg_node {
    uint64_t incarnation;
    struct leat_msg_string name, address;
    uint32_t lanes;
};
struct leat_msg_stream {
    leat_err code;
    struct leat_msg_string name;
    uint32_t id;
    struct leat_stream_settings settings;
    uint32_t log_count;          /* logs that follow */
    struct leat_msg_string text; /* why it can't be shown; empty: the code says it */
};
struct leat_msg_log {
    uint32_t streamlet, log;
    uint64_t owner;
    uint32_t epoch, lane;
};

struct leat_msg_name {
    struct leat_msg_string name;
};
struct leat_msg_create {
    struct leat_msg_string name;
    struct leat_stream_settings settings;
};
struct leat_msg_created {
    uint32_t id;
    struct leat_stream_settings settings; /* as completed by the server */
};
struct leat_msg_log_info {
    struct leat_msg_log at;
    uint32_t state; /* 0 ok, 1 waiting (incomplete), 2 damaged (read only) */
    uint64_t first_offset, acked_offset, bytes, first_segment, segments, groups, first_group,
        producers, memory_bytes;
    leat_err code;
    struct leat_msg_string text;
    /* Zeros from a server that does not say. */
    uint32_t copies, copies_min, copies_now; /* now: of the head, the owner's included */
    uint64_t segments_lacking;               /* with fewer copies than there should be */
    bool suspended;                          /* appends wait: a lost copy is being replaced */
    bool below_min;                          /* appends are refused: too few copies */
    uint64_t end_segment;  /* after the last segment; ids between may be missing */
    uint64_t offsets_lost; /* between the first and the acked offset: offsets without a record */
    /* Bytes of torn tails that starts cut off: in all; in how many segments, the last of these segments, and the
     * offset where this segment ends. */
    uint64_t passed_bytes, passed_segments, passed_segment, passed_offset;
};
struct leat_msg_owner {
    uint64_t incarnation;
    struct leat_msg_string name;
};
/* To another broker only the logs that are this node's own, and no owners. */
struct leat_msg_described {
    struct leat_msg_string name;
    uint32_t id;
    struct leat_stream_settings settings;
    uint32_t log_count, owner_count;
};

enum { LEAT_SEGMENT_ROWS_MAX = 1000 };
struct leat_msg_segments_ask {
    struct leat_msg_string name;
    uint32_t streamlet, log;
    uint64_t from;
};
/* Ascending, LEAT_SEGMENT_ROWS_MAX at most. A log of one copy has none to tell of. */
struct leat_msg_segments {
    uint32_t count;
    bool more; /* further segments follow */
};
struct leat_msg_segment {
    uint64_t id;
    bool closed, misplaced;
    uint32_t wanted, copy_count;
};
struct leat_msg_segment_copy {
    struct leat_msg_string node;
    bool complete, closed, hibernated;
    uint32_t bytes;
};
struct leat_msg_producer_id {
    int64_t id, epoch; /* asked for: -1, a new id; else the next epoch of that id */
};

/* APPEND. The batches are the payload. */
struct leat_msg_append {
    struct leat_log_ref log;
    uint32_t epoch;
    uint32_t batch_count;
};
/* One per batch, in order. code 0: appended, or appended before (then its first offset of old). After the
 * first refused batch the rest is refused too, and the array has one more element, a string: the sentence. */
struct leat_msg_appended {
    leat_err code;
    uint64_t first_offset;
};

struct leat_msg_fetch {
    uint32_t min_bytes, max_bytes, wait_ms;
    uint32_t log_count;
};
struct leat_msg_fetch_log {
    struct leat_log_ref log;
    uint32_t epoch;
    bool by_position; /* from: [group, segment, position] instead of an offset */
    uint64_t offset;
    struct leat_position position;
};
/* The batches of each log are the payload, in order, without entry headers. */
struct leat_msg_fetched {
    leat_err code;
    uint64_t first_offset, acked_offset; /* first retained; end of what may be read */
    uint32_t bytes;                      /* of this log in the payload */
    bool by_position;                    /* as it was asked for */
    struct leat_position next;
    /* DAMAGED: the first offset after the missing or damaged records; equal to the requested offset: not known.
     * Without code and batches: all records between the requested offset and `resume` were given up. */
    uint64_t resume;
    struct leat_msg_string text; /* why it is refused; empty: the code says it */
};

enum leat_locate {
    LEAT_LOCATE_EARLIEST,
    LEAT_LOCATE_LATEST,
    LEAT_LOCATE_TIME, /* value: ms since 1970; the first record at or after it, or the acked end */
    LEAT_LOCATE_OFFSET,
    LEAT_LOCATE_NEWEST,   /* the record with the highest time */
    LEAT_LOCATE_EPOCH,    /* where the records of owners up to that epoch end */
    LEAT_LOCATE_POSITION, /* the first record of the batch that lies there */
};
struct leat_msg_locate {
    struct leat_log_ref log;
    uint32_t what;
    int64_t value;
    struct leat_position position; /* of LEAT_LOCATE_POSITION, instead of the value */
};
struct leat_msg_locate_all {
    uint32_t count;
};
struct leat_msg_located {
    leat_err code;
    uint64_t offset;
    int64_t timestamp_ms; /* -1: not known */
    struct leat_position position;
    struct leat_msg_string text; /* why it is refused; empty: the code says it */
};

/* Consumer groups. mode 0 ordered: a member owns logs; 1 parallel: a member owns segment groups. */
struct leat_msg_group_join {
    struct leat_msg_string group, member;
    uint32_t mode, session_ms;
    uint32_t stream_count; /* names that follow */
};
/* Held until the group has settled; a member that is already in joins again with its name. */
struct leat_msg_group_joined {
    struct leat_msg_string member;
    uint32_t generation;
    uint32_t share_count;
};
/* The member's segment groups are first, first + step, first + 2 step, ... without end (groups/groups.h); ordered mode:
 * 0, 0, 1, the whole log. */
struct leat_msg_group_share {
    struct leat_log_ref log;
    uint64_t first_group, group_step;
    uint64_t group_count; /* 0: without end */
};
/* After a GROUP_ request that another node has forwarded: its client's address (groups_calls.c says how long). */
struct leat_msg_forwarded {
    uint64_t address;
};
struct leat_msg_group_heartbeat {
    struct leat_msg_string group, member;
    uint32_t generation;
};
struct leat_msg_group_leave {
    struct leat_msg_string group, member;
};
struct leat_msg_group_commit {
    struct leat_msg_string group, member;
    uint32_t generation;
    uint32_t offset_count;
};
/* group -1: ordered. Else an offset at or past the group's end, or 2^64-1, says that the group is done. */
struct leat_msg_group_offset {
    struct leat_log_ref log;
    int64_t group;
    uint64_t offset;
};
struct leat_msg_group_fetch {
    struct leat_msg_string group;
    uint32_t log_count; /* 0: all */
};
struct leat_msg_group_fetched {
    uint32_t generation;
    uint32_t offset_count;
};
struct leat_msg_segment_group_ask {
    struct leat_log_ref log;
    uint64_t group;
};
struct leat_msg_segment_group {
    uint64_t first, end_offset;
};

struct leat_msg_recover {
    struct leat_msg_string stream;
    uint32_t streamlet, log;
    bool accept_loss; /* false: refused, with what would be kept */
};
struct leat_msg_recovered {
    uint64_t next_offset; /* where the log goes on, or begins */
};
struct leat_msg_trim {
    struct leat_msg_string stream;
    uint32_t streamlet, log;
    uint64_t before; /* records below it are given up; 2^64-1: all that is acked */
};
struct leat_msg_trimmed {
    uint64_t first_offset;
};
struct leat_msg_places_ask {
    uint32_t stream;
};
struct leat_msg_below_ask {
    struct leat_log_ref log;
    uint64_t segment;
};
struct leat_msg_below {
    uint64_t segment;
    uint32_t bytes, crc;
    uint32_t epoch; /* of the owner that wrote it */
};
/* Of replication, since the start; CPU of whole threads or parts of them in ns. */
struct leat_msg_accounts {
    uint64_t transports;       /* bits 1 << kind in use towards backups: enum leat_rmem_kind */
    uint64_t cpu_cores_ns;     /* all threads of cores; the following are part of it, but for flush
                                  and zeroing */
    uint64_t cpu_replicate_ns; /* owner: posting one-sided writes */
    uint64_t cpu_data_path_ns; /* backup: putting written bytes in place (rpc) */
    uint64_t cpu_emulation_ns; /* backup: the same for tcp, in place of a card */
    uint64_t cpu_control_ns;   /* backup: requests */
    uint64_t cpu_flush_ns, cpu_zeroing_ns;
    uint64_t replicated_bytes, writes; /* owner: to all its backups */
    uint64_t segments;                 /* owner: closed with all their copies */
    uint64_t control_rpcs;             /* owner: OPEN and CLOSE: two per segment and backup */
    uint64_t open_rpcs;                /* of these OPEN */
    uint64_t hibernate_rpcs, resume_rpcs, flush_rpcs, other_rpcs;
    uint64_t lost_backups, replaced_copies;
    /* Not sums but as it is now. Segment buffers in use, of its own logs and of others' copies. */
    uint64_t own_buffer_bytes, copy_buffer_bytes;
    uint64_t logs_troubled; /* of its own: they take no appends, or lack records */
    uint64_t
        pool_in_file; /* 1: segments' memory is a file on a disk, which the kernel writes there too */
};
enum { LEAT_MSG_ACCOUNTS = sizeof(struct leat_msg_accounts) / sizeof(uint64_t) };
struct leat_msg_status {
    struct leat_msg_string version;
    uint64_t uptime_ms, cpu_us, memory_budget, memory_used, disk_free, cores, appended_records,
        appended_bytes, fetched_records, fetched_bytes, connections;
    struct leat_msg_accounts accounts; /* zeros from an earlier server */
};

#define LEAT_ROWS "wire/bodies.def"
#include "wire/rows_declare.h"
#define LEAT_ROWS "wire/bodies_data.def"
#include "wire/rows_declare.h"

/* Written and read by hand: of two forms each. As the functions of bodies.def; the _encode and _decode of errors are of
 * whole bodies. */
void leat_msg_error_encode(struct leat_msg_writer *writer, leat_err code, const char *text);
leat_err leat_msg_error_decode(const void *bytes, size_t count,
                               struct leat_msg_error *out) LEAT_NODISCARD;
void leat_msg_stream_write(struct leat_msg_writer *writer, const struct leat_msg_stream *stream);
void leat_msg_stream_read(struct leat_msg_reader *reader, struct leat_msg_stream *out);
void leat_msg_locate_write(struct leat_msg_writer *writer, const struct leat_msg_locate *locate);
void leat_msg_locate_read(struct leat_msg_reader *reader, struct leat_msg_locate *out);

#endif
