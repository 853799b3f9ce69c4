/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies of the native protocol, one msgpack array each; docs/protocol.md shows them all.
 *
 * Encoding is msgpack-c's packer into caller's memory. Decoding is a small cursor: msgpack-c's
 * unpacker allocates, and sizes what it allocates by unchecked counts; here every count is bounded
 * by the bytes that remain, nothing is allocated and strings are views. Fields added later go to
 * the end of an array: a decoder skips what it does not know, and takes defaults for what is
 * missing from the end where this page says so.
 */
#ifndef LEAT_WIRE_MESSAGE_H
#define LEAT_WIRE_MESSAGE_H

#include "base/error.h"
#include "base/types.h"

/* ---- cursor ---- */
struct leat_msg_reader {
    const uint8_t *at, *end;
    bool failed; /* sticky: every later read returns a zero value */
};
struct leat_msg_string {
    const char *text; /* view, not terminated */
    uint32_t bytes;
};
void leat_msg_reader_init(struct leat_msg_reader *reader, const void *bytes, size_t count);
/** Array header; fails when the count exceeds the bytes left. */
uint32_t leat_msg_read_array(struct leat_msg_reader *reader);
uint32_t leat_msg_read_map(struct leat_msg_reader *reader);
uint64_t leat_msg_read_u64(struct leat_msg_reader *reader);
uint32_t leat_msg_read_u32(struct leat_msg_reader *reader); /* fails above UINT32_MAX */
int64_t leat_msg_read_i64(struct leat_msg_reader *reader);
bool leat_msg_read_bool(struct leat_msg_reader *reader);
struct leat_msg_string leat_msg_read_string(struct leat_msg_reader *reader); /* str or bin */
/** Skip one value of any kind; nesting deeper than 8 fails. */
void leat_msg_skip(struct leat_msg_reader *reader);
void leat_msg_skip_n(struct leat_msg_reader *reader, uint32_t count);
/** Of all strings in a body, which is the caller's own: control characters become '?'. */
void leat_msg_texts_clean(uint8_t *body, size_t bytes);
/** True when nothing failed and everything was consumed. */
bool leat_msg_read_done(const struct leat_msg_reader *reader);

struct leat_msg_writer {
    uint8_t *bytes;
    uint32_t used, capacity;
    bool overflow; /* sticky */
};
void leat_msg_writer_init(struct leat_msg_writer *writer, void *bytes, size_t capacity);
void leat_msg_write_array(struct leat_msg_writer *writer, uint32_t count);
void leat_msg_write_u64(struct leat_msg_writer *writer, uint64_t value);
void leat_msg_write_i64(struct leat_msg_writer *writer, int64_t value);
void leat_msg_write_bool(struct leat_msg_writer *writer, bool value);
void leat_msg_write_string(struct leat_msg_writer *writer, const char *text, size_t bytes);
void leat_msg_write_bin(struct leat_msg_writer *writer, const void *data, size_t bytes);
/** A value that is encoded already. */
void leat_msg_write_raw(struct leat_msg_writer *writer, const void *encoded, size_t bytes);

/* ---- bodies ----
 * For each: void leat_X_encode(writer, &x), leat_err leat_X_decode(bytes, count, &x)
 * (LEAT_E_INVALID). Bodies with lists: encode/decode the head, then one call per element, in order,
 * as the comments say.
 */

/* ERROR [code, class, text] */
struct leat_msg_error {
    leat_err code;
    struct leat_msg_string text;
};
void leat_msg_error_encode(struct leat_msg_writer *writer, leat_err code, const char *text);
leat_err leat_msg_error_decode(const void *bytes, size_t count,
                               struct leat_msg_error *out) LEAT_NODISCARD;

/* HELLO [version min, version max, client name, lane]
 *   lane: the core this connection wants to live on; -1: any
 * Answer [version, cluster id bin16, node incarnation, node name, lanes, lane] */
struct leat_msg_hello {
    uint32_t version_min, version_max;
    struct leat_msg_string name;
    int64_t lane;
};
struct leat_msg_hello_ok {
    uint32_t version;
    uint8_t cluster_id[16];
    uint64_t incarnation;
    struct leat_msg_string node;
    uint32_t lanes, lane;
};
void leat_msg_hello_encode(struct leat_msg_writer *writer, const struct leat_msg_hello *hello);
leat_err leat_msg_hello_decode(const void *bytes, size_t count,
                               struct leat_msg_hello *out) LEAT_NODISCARD;
void leat_msg_hello_ok_encode(struct leat_msg_writer *writer, const struct leat_msg_hello_ok *ok);
leat_err leat_msg_hello_ok_decode(const void *bytes, size_t count,
                                  struct leat_msg_hello_ok *out) LEAT_NODISCARD;

/* settings: [streamlets, logs, copies, min copies, durability, segment bytes max, retention ms,
 *            retention bytes, batch bytes max, append time bool]     the last two: 0 where not said */
void leat_msg_settings_write(struct leat_msg_writer *writer,
                             const struct leat_stream_settings *settings);
void leat_msg_settings_read(struct leat_msg_reader *reader, struct leat_stream_settings *out);

/* METADATA [[name…], may_create, nodes only (optional; then no names)]
 *   an empty list: all streams; may_create: make a missing one, if the server allows that
 * Answer [cluster id bin16, [node…], [stream…]]
 *   node   [incarnation, name, address, lanes]
 *   stream [code, name, id, settings, [log…]]     code != 0: [code, name, text]
 *   log    [streamlet, log, owner incarnation, epoch, lane]
 * Written and read piecewise by leat_msg_node_*, leat_msg_stream_*, leat_msg_log_*. */
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
void leat_msg_node_write(struct leat_msg_writer *writer, const struct leat_msg_node *node);
void leat_msg_node_read(struct leat_msg_reader *reader, struct leat_msg_node *out);
void leat_msg_stream_write(struct leat_msg_writer *writer, const struct leat_msg_stream *stream);
void leat_msg_stream_read(struct leat_msg_reader *reader, struct leat_msg_stream *out);
void leat_msg_log_write(struct leat_msg_writer *writer, const struct leat_msg_log *log);
void leat_msg_log_read(struct leat_msg_reader *reader, struct leat_msg_log *out);

/* STREAM_CREATE [name, settings]
 *   Answer [id, settings]     settings: as completed by the server
 * STREAM_DELETE [name]
 *   Answer []
 * STREAM_DESCRIBE [name]
 *   Answer [name, id, settings, [log…], [node…]]
 *   log [streamlet, log, owner, epoch, lane, state, first offset, acked offset, bytes,
 *        first segment, segments, groups, first group, producers, memory bytes, code, text,
 *        copies, min copies, copies now, segments lacking copies, suspended, below min, end segment,
 *        offsets lost, bytes passed over, in how many segments, the last of them, its end offset]
 *   state: 0 ok, 1 waiting (incomplete), 2 damaged (read only)
 *   node [incarnation, name]: the owners. To another broker only the logs that are this node's own,
 *   and no nodes.
 * SEGMENTS [name, streamlet, log, from segment]
 *   Answer [[segment…], more]: ascending, LEAT_SEGMENT_ROWS_MAX at most; more: there are others
 *   behind them. A log of one copy has none to tell of.
 *   segment [id, closed, misplaced, other copies wanted, [[node, complete, closed, parked, bytes]…]]
 * PRODUCER_ID [id or -1, epoch or -1]
 *   Answer [id, epoch]        -1: a new id; else the next epoch of that id
 * PING []
 *   Answer [wall clock, ms] */
struct leat_msg_log_info {
    struct leat_msg_log at;
    uint32_t state;
    uint64_t first_offset, acked_offset, bytes, first_segment, segments, groups, first_group,
        producers, memory_bytes;
    leat_err code;
    struct leat_msg_string text;
    /* Zeros from a server that does not say. */
    uint32_t copies, copies_min, copies_now; /* now: of the head, the owner's included */
    uint64_t segments_lacking;               /* with fewer copies than there should be */
    bool suspended;                          /* appends wait: a lost copy is being replaced */
    bool below_min;                          /* appends are refused: too few copies */
    uint64_t end_segment;                    /* behind the last one; ids between may be missing */
    uint64_t offsets_lost; /* of those from the first to the acked one: no record has them */
    /* Bytes behind the end of segments that a start passed over: in all; in how many segments, the
     * last of them, and the offset where that ends. */
    uint64_t passed_bytes, passed_segments, passed_segment, passed_offset;
};
void leat_msg_log_info_write(struct leat_msg_writer *writer, const struct leat_msg_log_info *info);
void leat_msg_log_info_read(struct leat_msg_reader *reader, struct leat_msg_log_info *out);

enum { LEAT_SEGMENT_ROWS_MAX = 1000 };
struct leat_msg_segment {
    uint64_t id;
    bool closed, misplaced;
    uint32_t wanted, copy_count; /* leat_msg_segment_copy_*() follow */
};
struct leat_msg_segment_copy {
    struct leat_msg_string node;
    bool complete, closed, parked;
    uint32_t bytes;
};
void leat_msg_segment_write(struct leat_msg_writer *writer, const struct leat_msg_segment *segment);
void leat_msg_segment_read(struct leat_msg_reader *reader, struct leat_msg_segment *out);
void leat_msg_segment_copy_write(struct leat_msg_writer *writer,
                                 const struct leat_msg_segment_copy *copy);
void leat_msg_segment_copy_read(struct leat_msg_reader *reader, struct leat_msg_segment_copy *out);

/* APPEND [stream, streamlet, log, epoch, n] + n batches
 * Answer [[code, first offset]…]: one per batch, in order
 *   code 0: appended, or appended before (then its first offset of old). After the first refused
 *   batch the rest is refused too, and the array has one more element, a string: the sentence. */
struct leat_msg_append {
    struct leat_log_ref log;
    uint32_t epoch;
    uint32_t batch_count;
};
void leat_msg_append_encode(struct leat_msg_writer *writer, const struct leat_msg_append *append);
leat_err leat_msg_append_decode(const void *bytes, size_t count,
                                struct leat_msg_append *out) LEAT_NODISCARD;

/* FETCH [min bytes, max bytes, wait ms, [[stream, streamlet, log, epoch, from]…]]
 *   from: an integer: logical offset; [group, segment, position]: application offset
 * Answer [[code, first offset, acked offset, bytes, next…]…] + the batches of each, in order,
 * without entry headers
 *   first offset: first retained; acked offset: end of what may be read; bytes: of this log in the
 *   payload; next: [group, segment, position] to go on from, where `from` was of that form.
 *   code OFFSET_OUT_OF_RANGE: first and acked say the valid range.
 *   code DAMAGED: one field more after next (0 where that is not of that form): resume, the first
 *   offset behind what is missing or damaged; what was asked for: not known. The same without code and
 *   batches where nothing is between the offset asked for and resume: it was given up for good.
 *   A refusal may have one field more, behind next and resume (0 where there is none): a sentence. */
struct leat_msg_fetch {
    uint32_t min_bytes, max_bytes, wait_ms;
    uint32_t log_count; /* elements that follow: leat_msg_fetch_log_read() each */
};
struct leat_msg_fetch_log {
    struct leat_log_ref log;
    uint32_t epoch;
    bool by_position;
    uint64_t offset;
    struct leat_position position;
};
struct leat_msg_fetched {
    leat_err code;
    uint64_t first_offset, acked_offset;
    uint32_t bytes;
    bool by_position;
    struct leat_position next;
    uint64_t resume;             /* DAMAGED, or up to there all was given up; else 0 */
    struct leat_msg_string text; /* why it is refused; empty: the code says it */
};
void leat_msg_fetch_write(struct leat_msg_writer *writer, const struct leat_msg_fetch *fetch);
void leat_msg_fetch_log_write(struct leat_msg_writer *writer, const struct leat_msg_fetch_log *log);
/** Reads up to and with the inner array's header; log_count elements follow. Failure is the
 * reader's. */
void leat_msg_fetch_read(struct leat_msg_reader *reader, struct leat_msg_fetch *out);
void leat_msg_fetch_log_read(struct leat_msg_reader *reader, struct leat_msg_fetch_log *out);
void leat_msg_fetched_write(struct leat_msg_writer *writer, const struct leat_msg_fetched *fetched);
void leat_msg_fetched_read(struct leat_msg_reader *reader, struct leat_msg_fetched *out);

/* LOCATE [[stream, streamlet, log, what, value]…]
 *   what: 0 earliest, 1 latest, 2 time (value: ms since 1970; the first record at or after it, or
 *   the acked end when there is none), 3 offset, 6 application offset: group, segment and position
 *   stand where the value does
 * Answer [[code, offset, timestamp ms or -1, group, segment, position, text]…]; text, a sentence, only
 * where it is refused */
enum leat_locate {
    LEAT_LOCATE_EARLIEST,
    LEAT_LOCATE_LATEST,
    LEAT_LOCATE_TIME,
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
struct leat_msg_located {
    leat_err code;
    uint64_t offset;
    int64_t timestamp_ms;
    struct leat_position position;
    struct leat_msg_string text; /* why it is refused; empty: the code says it */
};
void leat_msg_locate_write(struct leat_msg_writer *writer, const struct leat_msg_locate *locate);
void leat_msg_locate_read(struct leat_msg_reader *reader, struct leat_msg_locate *out);
void leat_msg_located_write(struct leat_msg_writer *writer, const struct leat_msg_located *located);
void leat_msg_located_read(struct leat_msg_reader *reader, struct leat_msg_located *out);

/* Consumer sets. mode 0 ordered: a member owns logs; 1 parallel: a member owns groups.
 *
 * SET_JOIN [set, member or "", mode, session ms, [stream…]]
 *   Answer [member, generation, [[stream, streamlet, log, first group, 0, group step]…]]
 *   The member's groups are first, first + step, first + 2 step, … without end (sets/sets.h);
 *   ordered mode: 0, 0, 1, the whole log. Held until the set has settled; a member that is
 *   already in joins again with its name.
 * SET_HEARTBEAT [set, member, generation]
 *   Answer []; STALE_GENERATION: join again
 * SET_LEAVE [set, member]
 *   Answer []
 * SET_COMMIT [set, member or "", generation, [[stream, streamlet, log, group or -1, offset]…]]
 *   Answer [], once durable. group >= 0 (parallel): an offset at or past the group's end, or
 *   2^64-1, says that the group is done.
 * SET_FETCH [set, [[stream, streamlet, log]…]]      an empty list: all
 *   Answer [generation, [[stream, streamlet, log, group or -1, offset]…]]
 *
 * Heads are read up to and with the header of their list; its elements follow, one call each. Member
 * names, set names and stream names are views. */
struct leat_msg_set_join {
    struct leat_msg_string set, member;
    uint32_t mode, session_ms;
    uint32_t stream_count; /* names that follow: leat_msg_read_string(), _write_string() */
};
struct leat_msg_set_joined {
    struct leat_msg_string member;
    uint32_t generation;
    uint32_t share_count; /* leat_msg_set_share_*() follow */
};
struct leat_msg_set_share {
    struct leat_log_ref log;
    uint64_t first_group, group_step;
};
struct leat_msg_set_heartbeat {
    struct leat_msg_string set, member;
    uint32_t generation;
};
struct leat_msg_set_leave {
    struct leat_msg_string set, member;
};
struct leat_msg_set_commit {
    struct leat_msg_string set, member;
    uint32_t generation;
    uint32_t offset_count; /* leat_msg_set_offset_*() follow */
};
struct leat_msg_set_offset {
    struct leat_log_ref log;
    int64_t group;
    uint64_t offset;
};
struct leat_msg_set_fetch {
    struct leat_msg_string set;
    uint32_t log_count; /* leat_msg_log_ref_*() follow */
};
struct leat_msg_set_fetched {
    uint32_t generation;
    uint32_t offset_count; /* leat_msg_set_offset_*() follow */
};
void leat_msg_set_join_write(struct leat_msg_writer *writer, const struct leat_msg_set_join *join);
void leat_msg_set_join_read(struct leat_msg_reader *reader, struct leat_msg_set_join *out);
void leat_msg_set_joined_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_joined *joined);
void leat_msg_set_joined_read(struct leat_msg_reader *reader, struct leat_msg_set_joined *out);
void leat_msg_set_share_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_share *share);
void leat_msg_set_share_read(struct leat_msg_reader *reader, struct leat_msg_set_share *out);
void leat_msg_set_heartbeat_write(struct leat_msg_writer *writer,
                                  const struct leat_msg_set_heartbeat *heartbeat);
void leat_msg_set_heartbeat_read(struct leat_msg_reader *reader,
                                 struct leat_msg_set_heartbeat *out);
void leat_msg_set_leave_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_leave *leave);
void leat_msg_set_leave_read(struct leat_msg_reader *reader, struct leat_msg_set_leave *out);
void leat_msg_set_commit_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_commit *commit);
void leat_msg_set_commit_read(struct leat_msg_reader *reader, struct leat_msg_set_commit *out);
void leat_msg_set_offset_write(struct leat_msg_writer *writer,
                               const struct leat_msg_set_offset *offset);
void leat_msg_set_offset_read(struct leat_msg_reader *reader, struct leat_msg_set_offset *out);
void leat_msg_set_fetch_write(struct leat_msg_writer *writer,
                              const struct leat_msg_set_fetch *fetch);
void leat_msg_set_fetch_read(struct leat_msg_reader *reader, struct leat_msg_set_fetch *out);
void leat_msg_set_fetched_write(struct leat_msg_writer *writer,
                                const struct leat_msg_set_fetched *fetched);
void leat_msg_set_fetched_read(struct leat_msg_reader *reader, struct leat_msg_set_fetched *out);
void leat_msg_log_ref_write(struct leat_msg_writer *writer, const struct leat_log_ref *log);
void leat_msg_log_ref_read(struct leat_msg_reader *reader, struct leat_log_ref *out);

/* LOG_RECOVER [stream name, streamlet, log, accept_loss bool]
 *   Answer [next offset]      where the log goes on, or begins. accept_loss false: refused, with what would be kept
 * STREAM_TRIM [stream name, streamlet, log, before]
 *   Answer [first offset]     records below `before` are given up; 2^64-1: all that is acked
 * PLACES [stream id], between nodes
 *   Answer [bin…], one for each log of the stream: [how many nodes besides the owner have its newest
 *   segment whole, numbers of all that have it, those first], a byte each; empty: not its own
 * LOG_BELOW [[stream id, streamlet, log], segment], between nodes
 *   Answer [[segment, bytes, crc, epoch]…]   the newest whole closed replica up to that one, as a rule one;
 *   several where they differ. epoch: of the owner that wrote it
 * STATUS []
 *   Answer [version text, uptime ms, cpu us (whole process), memory budget, memory used, disk free,
 *           cores, appended records, appended bytes, fetched records, fetched bytes, connections,
 *           [account…]]
 *     account: struct leat_msg_accounts, in its order; a newer server may have more at the end */
struct leat_msg_recover {
    struct leat_msg_string stream;
    uint32_t streamlet, log;
    bool accept_loss;
};
struct leat_msg_recovered {
    uint64_t next_offset;
};
struct leat_msg_trim {
    struct leat_msg_string stream;
    uint32_t streamlet, log;
    uint64_t before;
};
struct leat_msg_trimmed {
    uint64_t first_offset;
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
    uint64_t park_rpcs, resume_rpcs, flush_rpcs, other_rpcs;
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
    struct leat_msg_accounts accounts; /* zeros from a server that does not know them */
};
void leat_msg_recover_write(struct leat_msg_writer *writer, const struct leat_msg_recover *recover);
void leat_msg_recover_read(struct leat_msg_reader *reader, struct leat_msg_recover *out);
void leat_msg_recovered_write(struct leat_msg_writer *writer,
                              const struct leat_msg_recovered *recovered);
void leat_msg_recovered_read(struct leat_msg_reader *reader, struct leat_msg_recovered *out);
void leat_msg_trim_write(struct leat_msg_writer *writer, const struct leat_msg_trim *trim);
void leat_msg_trim_read(struct leat_msg_reader *reader, struct leat_msg_trim *out);
void leat_msg_trimmed_write(struct leat_msg_writer *writer, const struct leat_msg_trimmed *trimmed);
void leat_msg_trimmed_read(struct leat_msg_reader *reader, struct leat_msg_trimmed *out);
void leat_msg_status_write(struct leat_msg_writer *writer, const struct leat_msg_status *status);
void leat_msg_status_read(struct leat_msg_reader *reader, struct leat_msg_status *out);

#endif
