/* SPDX-License-Identifier: Apache-2.0 */
/* One log: an ordered, append-only sequence of segments with dense ids, written by one core, without locks.
 *
 * A log is a state machine on its core: appends copy batches onto the head; at the end of a turn one trailer seals
 * the turn's batches; sealed bytes become acked when every copy has them (level memory: at once on a single node;
 * level disk: after the commit request in flight and the next one); acked appends are answered in order. Rolling the
 * head: start entry of N+1 safe -> close entry of N safe -> only then data of N+1 is acked (roll order: dissertation
 * §4.4.2). */
#ifndef LEAT_MULTILOG_LOG_H
#define LEAT_MULTILOG_LOG_H

#include "base/timer.h"
#include "store/store.h"
#include "wire/batch.h"

struct leat_log; /* opaque */

/* Waking logs read their last segment whole. After a restart many logs wake at once, so all logs of a core share
 * these bytes: a log that gets none waits in line until another log is done. A log whose last segment is still in
 * memory needs none. A log that is alone always gets the bytes for its read. */
enum { LEAT_WARM_BYTES_MAX = 32 * 1024 * 1024, LEAT_WARM_BYTES_MIN = 8 * 1024 * 1024 + 4096 };
struct leat_restore_budget {
    uint64_t bytes_max, bytes_used;
    struct leat_list waiting; /* logs, in order of asking */
};
/** Must outlive the logs that share it. Thread: owner core, as all uses. */
void leat_restore_budget_init(struct leat_restore_budget *restore_budget, uint64_t bytes_max);

enum leat_log_state {
    LEAT_LOG_SERVING = 0,
    /* Its end is missing: reads of the records that are there, no appends (LEAT_E_LOG_INCOMPLETE) */
    LEAT_LOG_WAITING = 1,
    LEAT_LOG_DAMAGED = 2, /* stored bytes are damaged: reads of valid records, no appends */
    LEAT_LOG_STOPPED = 3, /* a flush failed (final), or the log is being given up: no appends */
};

/* Events of a log for its core. `owner` is the pointer of leat_log_options. All run on the core. */
struct leat_log_events {
    /** Work was gathered: call leat_log_turn_end() at the end of this turn. Called once per turn. */
    void (*on_dirty)(void *owner, struct leat_log *log);
    /** The acked end moved. Fetches that wait may go on. */
    void (*on_acked)(void *owner, struct leat_log *log);
    /** After leat_log_append() said LEAT_E_AGAIN: try again now. */
    void (*on_room)(void *owner, struct leat_log *log);
    /** The owner's first segment has started on all copies: have the coordinator commit "opened,
     * this stamp", then call leat_log_opened(). */
    void (*on_opening)(void *owner, struct leat_log *log);
    /** The bytes of the last segment are not the recorded ones, and this epoch has written nothing yet.
     * True: the log will be released, and made again with other bytes; until then it refuses appends by
     * LEAT_E_STARTING. False, or NULL: the log is DAMAGED. Must not call the log. */
    bool (*on_last_damaged)(void *owner, struct leat_log *log, struct leat_segment *seg);
    /** The file's bytes of a closed segment are not the recorded ones. LEAT_OK: memory and other nodes are asked, and
     * leat_log_repair_end() or leat_log_repair_give_up() follows; until then reads of the segment wait.
     * LEAT_E_NOT_FOUND: no node can be asked, and reads get LEAT_E_DAMAGED. Other errors: no node can be asked now,
     * and reads are to be tried again. Must not call the log, which may be in the middle of being made. NULL: there is
     * no other copy. */
    leat_err (*on_damaged)(void *owner, const struct leat_segment *seg);
};

/* State that an application above keeps in this log (consumer groups): start entries have it whole, batches change
 * it. */
struct leat_log_app {
    void *ctx;
    size_t (*snapshot_bytes)(void *ctx);             /* at most LEAT_START_BYTES_MAX / 2 */
    void (*snapshot_write)(void *ctx, uint8_t *out); /* exactly as many bytes */
    void (*on_restore)(void *ctx, const uint8_t *bytes, size_t count);
    void (*on_replay)(void *ctx, const struct leat_batch *batch);
    void (*on_read)(void *ctx); /* all batches were replayed. Not called for a new or damaged log */
};

struct leat_log_options {
    struct leat_log_ref ref;
    struct leat_epoch epoch; /* this owner's */
    const char *stream_name;
    struct leat_stream_settings settings;
    uint8_t cluster_id[16];
    uint64_t incarnation;
    enum leat_durability durability; /* resolved: memory or disk */
    uint64_t hibernate_after_us;
    uint64_t producer_expiry_ms;
    bool remade; /* in place of a stream of the same name: producers may begin in the middle */
    struct leat_log_app app;                    /* ctx NULL: none */
    struct leat_restore_budget *restore_budget; /* borrowed; NULL: unlimited */
    struct leat_log_events events;
    /** Is there no memory for `bytes` more, for the descriptor of a stored segment or for producers? spare: the
     * memory is to free other memory, or is needed in any case. Thread: owner core. NULL: there always is memory. */
    bool (*memory_is_full)(void *owner, bool spare, uint64_t bytes);
    void *owner;
    const void *actor; /* its core, as LEAT_ASSERT_OWNER() takes it */
};

/* What the log begins with: the result of recovery, or nothing for a new log. */
struct leat_log_tail {
    uint64_t next_segment;          /* id of the first segment to write */
    struct leat_prefix_id previous; /* of next_segment - 1 */
    uint64_t next_offset;
    bool jumped; /* data was given up before next_offset: the chain starts anew */
    /* The log's older segments are still on other nodes and come by leat_log_segment_add(): reads of them wait until
     * leat_log_older_done(). */
    bool backfill_follows;
    bool stands_in; /* the log waits for its end, and other nodes may have its segments */
    /* Segments between other segments are not here. They may still come: until leat_log_holes_end() retention does
     * not pass over their places. */
    bool holes;
};

/**
 * Create a log on its core. segs: all its closed segments, ascending ids, each becomes the log's.
 * The log starts cold: producer state is read back (last segment's start entry, then its batches)
 * at the first append, or with a leat_log_app at once: events.on_dirty runs from within, after
 * *out_log is set, and until leat_log_info.cold is false that state must not be relied on.
 * Thread: owner core.
 */
leat_err leat_log_create(const struct leat_env *env, const struct leat_store_port *store_port,
                         struct leat_timers *timers, const struct leat_log_options *options,
                         struct leat_segment *const *segs, size_t seg_count,
                         const struct leat_log_tail *tail,
                         struct leat_log **out_log) LEAT_NODISCARD;
/** Only when idle: nothing waiting, no request in flight (see leat_log_stop()). */
void leat_log_destroy(struct leat_log **log);

/* ---- append ---- */
struct leat_append {          /* caller's; a batch that waits for its ack */
    struct leat_list waiting; /* the log's */
    uint64_t first_offset;    /* out */
    uint64_t ack_position;    /* the log's */
    uint32_t address;         /* of the client, for its share of the log; 0: not known */
    bool duplicate;           /* out: was appended before */
    int64_t append_time_ms;   /* out: the records' time, if the log sets it; else -1 */
    /** Exactly once, from leat_log_turn_end() or a completion, never inside leat_log_append().
     * Order of positions. */
    void (*on_acked)(struct leat_append *append, leat_err rc);
    void *owner;
};
/**
 * Check a batch against the log's state and copy it onto the head.
 *
 * batch  Checked by leat_batch_check(). Borrowed until return. Its base offset and leader epoch are
 * stamped in the copy. Returns LEAT_OK: append->on_acked will run. A duplicate of the last five
 * batches is answered with its first offset, and only once the original is acked; an older one
 * likewise with LEAT_E_ALREADY_APPENDED... by on_acked. LEAT_E_AGAIN: no room right now (opening,
 * rolling, resuming, window full); on_room follows. Nothing was done. Definite refusals:
 * LEAT_E_SEQUENCE_GAP, _PRODUCER_FENCED, _UNKNOWN_PRODUCER, _TOO_MANY_PRODUCERS, _TOO_LARGE,
 * _LOG_INCOMPLETE, _DAMAGED, _DISK_FULL.
 * Thread: owner core. Blocks: never. Allocates: never.
 */
leat_err leat_log_append(struct leat_log *log, const struct leat_batch *batch,
                         struct leat_append *append, struct leat_error *error) LEAT_NODISCARD;
/** Like an append without records: append->on_acked runs once all earlier appends are acked, or can't be. false: all
 * are acked; on_acked does not run. Thread: owner core. */
bool leat_log_await_acked(struct leat_log *log, struct leat_append *append) LEAT_NODISCARD;
/** Seal what this turn gathered and start what is to start. */
void leat_log_turn_end(struct leat_log *log);
/** Asserts what is true between two turns. queued: leat_log_turn_end() is to come, as events.on_dirty has asked. */
void leat_log_check(const struct leat_log *log, bool queued);
/** The coordinator's answer to on_opening. */
void leat_log_opened(struct leat_log *log, leat_err rc);

/* ---- read ---- */
enum { LEAT_READ_IOVS_MAX = 250 };
struct leat_read { /* caller's */
    /* in */
    bool by_position;
    struct leat_offset from;
    struct leat_position position;
    uint32_t max_bytes;       /* at least one batch is returned, however large */
    bool strict;              /* no: a first batch that is larger is not returned, see `full` */
    void *disk_buffer;        /* 4 KiB aligned, for bytes that have left memory; NULL: rc becomes
                               * LEAT_E_NO_MEMORY when it would be needed (buffers are few: the caller
                               * asks again with one) */
    size_t disk_buffer_bytes; /* >= LEAT_BATCH_BYTES_MAX + 64 KiB */
    void (*on_done)(struct leat_read *read); /* after LEAT_E_AGAIN */
    void *owner;
    /* out */
    leat_err rc; /* LEAT_OK (bytes may be 0: nothing acked beyond `from`), OFFSET_OUT_OF_RANGE,
                    DAMAGED, DISK, STARTING, LOG_INCOMPLETE (beyond what is there of a log that
                    waits for its end). Where an accepted loss let offsets jump, `from` moves
                    on to the next that exists. Where a segment is missing or damaged: DAMAGED,
                    next_position names it, next is the first offset after it (after a damaged head:
                    `from` itself) */
    unsigned iov_count;
    uint32_t bytes;
    bool full; /* nothing is returned because the first batch would exceed max_bytes */
    uint64_t record_count;
    struct leat_offset first; /* of the first batch in iovs; when there is one */
    struct leat_position first_position;
    struct leat_offset next;
    struct leat_position next_position;
    struct leat_segment *pinned; /* give back by leat_segment_unpin() when the bytes are sent; NULL:
                                    disk_buffer or none */
    /* the log's */
    struct leat_log *log;
    struct leat_disk_io io;
    uint64_t segment;
    uint32_t file_from, file_limit, walk_at;
    unsigned phase;
    bool boundary; /* the walk has met the position asked for */
    bool given_up; /* the walk has passed a batch there that was given up */
    bool by_time;
    int64_t time_ms;
    struct leat_list link;
    struct leat_iov
        iovs[LEAT_READ_IOVS_MAX]; /* out, last: whole batches, in order, no entry headers */
};
/** Gather acked batches from one segment, from the batch that holds `from` on. LEAT_OK: done now
 * (see read->rc); LEAT_E_AGAIN: on_done follows. A position in a trimmed segment is out of range, also at the
 * segment's end, where no record is left out. Thread: owner core. */
leat_err leat_log_read(struct leat_log *log, struct leat_read *read) LEAT_NODISCARD;

struct leat_locate_op { /* caller's */
    uint32_t what;      /* enum leat_locate of wire/message.h */
    int64_t value;
    struct leat_position from;     /* of LEAT_LOCATE_POSITION, instead of the value */
    struct leat_offset offset;     /* out; OFFSET_OUT_OF_RANGE: the nearest that there is */
    int64_t timestamp_ms;          /* out */
    struct leat_epoch epoch;       /* out of LEAT_LOCATE_EPOCH: of the last record there; 0: none */
    struct leat_position position; /* out */
    /* Out of LEAT_LOCATE_POSITION refused as OFFSET_OUT_OF_RANGE: where the log begins and ends. */
    struct leat_position first_position, end_position;
    leat_err rc;
    void (*on_done)(struct leat_locate_op *op);
    void *owner;
    struct leat_read read; /* the log's; caller fills disk_buffer, disk_buffer_bytes */
    /* The log's. True after leat_log_locate() or in on_done: leat_locate_step() follows. */
    bool seeks;
    struct leat_unpacker *unpacker; /* from the first step to the last */
    struct leat_batch batch;        /* which lies where the read has it */
    const struct leat_post *post;
};
/** As leat_log_read(): LEAT_OK done now, but for op->seeks; LEAT_E_AGAIN later. op: zeroed but for what is asked. */
leat_err leat_log_locate(struct leat_log *log, struct leat_locate_op *op) LEAT_NODISCARD;
/** Look for a time among the records of a compressed batch, which takes milliseconds: one piece, 32 KiB of
 * uncompressed bytes (of lz4 and snappy a block). LEAT_E_AGAIN: more pieces follow; LEAT_OK: done. The log may have
 * gone meanwhile. Thread: the log's. */
leat_err leat_locate_step(struct leat_locate_op *op) LEAT_NODISCARD;

/* ---- care ---- */
/** Retention by time and size, hibernating when idle, producer expiry. Call every second or so per log
 * that is not hibernated, and now and then for hibernated ones. */
void leat_log_care(struct leat_log *log);
/** From the next care on: how long a log is idle before its head's buffer is given back. */
void leat_log_hibernate_after_set(struct leat_log *log, uint64_t hibernate_after_us);
/** SIGTERM: take no more appends, seal, flush and hibernate; on_hibernated runs once, when nothing is in
 * flight any more. */
void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg);
/** After on_stopped: no other node became the owner, so the log takes appends again. */
void leat_log_go_on(struct leat_log *log);
/** Do not wait for the end of a stop any more: batches that are not acked never will be, and the head stays as it is,
 * as in a crash. The requests that its store port has under way still have to end. */
void leat_log_abandon(struct leat_log *log);
/** Of a stopped log, before it is destroyed: has the store answered all requests that the log made since, because the
 * store wanted memory or readers gave bytes back? From now on the log makes no request. false: not yet; on_dirty
 * comes with the answer. */
bool leat_log_rest(struct leat_log *log);
/** The stream is deleted: fail what waits, drop all segments, then on_gone; then
 * leat_log_destroy(). */
void leat_log_delete(struct leat_log *log, void (*on_gone)(void *arg, struct leat_log *log),
                     void *arg);
/** An operator gives up the records that leat_log_damage_find() and leat_log_passed_over() name now, and no others.
 * Segments that are missing before the first segment here (see leat_log_info.missing_segments): a trim entry gives
 * them up, and the log begins after them. Missing or damaged segments between others: the rows of their segments
 * record it, and readers pass over them. Bytes that were passed over count as seen. on_done once, when this is acked
 * or the log takes no appends any more; leat_log_trouble() says whether it is done. One call at a time. */
void leat_log_skip_missing(struct leat_log *log, void (*on_done)(void *arg, struct leat_log *log),
                           void *arg);
struct leat_log_trim {     /* caller's */
    struct leat_list link; /* the log's */
    uint64_t before;       /* in; UINT64_MAX: all acked records. Out: the offset that was used */
    uint64_t first_offset; /* out: where the log begins */
    /** Exactly once, never inside leat_log_trim_before(). Errors as of appends; then a later start may
     * find that it took effect. */
    void (*on_done)(struct leat_log_trim *trim, leat_err rc);
    void *owner;
};
/**
 * Give up all records before an offset: the log begins there, also inside a segment, once that is as
 * safe as an append; whole segments are freed after it. Nothing happens where the log begins later
 * already. Errors: LEAT_E_OFFSET_OUT_OF_RANGE: past what is acked; refusals as of appends: nothing was
 * done, and on_done does not run. Thread: owner core.
 */
leat_err leat_log_trim_before(struct leat_log *log, struct leat_log_trim *trim,
                              struct leat_error *error) LEAT_NODISCARD;
/** The stream's settings have changed: how long and how much is kept, how large segments become.
 * Thread: owner core. */
void leat_log_settings_set(struct leat_log *log, const struct leat_stream_settings *settings);
/** Mark as waiting or damaged (from recovery), with a sentence kept for answers. */
void leat_log_set_state(struct leat_log *log, enum leat_log_state state, const char *why);

/* ---- changing the owner ---- */
/** Where it ends. Once it was stopped (leat_log_stop()) that does not change any more. Of a log in
 * state STOPPED: the end of what is safe, all that was acked among it. */
void leat_log_end(const struct leat_log *log, struct leat_log_tail *out_tail);
/** Another node owns the log: waiting appends fail (LEAT_E_STALE_EPOCH; reads LEAT_E_NOT_OWNER); on_released once,
 * when no request is in flight and no reader holds bytes; then leat_log_segment_pop() until it returns NULL, and
 * leat_log_destroy(). Replaces an earlier stop. */
void leat_log_release(struct leat_log *log, void (*on_released)(void *arg, struct leat_log *log),
                      void *arg);
struct leat_segment *leat_log_segment_pop(struct leat_log *log);
/** Add a closed segment, older than the segments that the log writes: it becomes the log's. Errors: LEAT_E_NOT_OWNER:
 * the log is on its way out; LEAT_E_EXISTS: the log has this segment; LEAT_E_AGAIN: the log does not know yet where it
 * begins; LEAT_E_NO_MEMORY. */
leat_err leat_log_segment_add(struct leat_log *log, struct leat_segment *seg) LEAT_NODISCARD;
/** The first segment that is retained: no segment below is needed any more. 0: all are, or the log does not know yet.
 */
uint64_t leat_log_first_retained(const struct leat_log *log);
bool leat_log_front_known(const struct leat_log *log);
/** As a read of nothing: LEAT_OK: where the log begins is known; LEAT_E_AGAIN: read->on_done follows. */
leat_err leat_log_front_await(struct leat_log *log, struct leat_read *read) LEAT_NODISCARD;
/** The oldest segment that is here, or NULL. Its place in its file, and its start entry, may be read at any time; it
 * may be trimmed meanwhile. */
const struct leat_segment *leat_log_first_held(const struct leat_log *log);
/** All closed segments, ascending ids; out has room for leat_log_info.segment_count. A caller that makes the log anew
 * from them destroys it first. Returns how many. */
size_t leat_log_closed(const struct leat_log *log, struct leat_segment **out);
/** Like leat_log_first_held() for a given segment; NULL: it is not here. */
const struct leat_segment *leat_log_held(const struct leat_log *log, uint64_t segment);
/* A hole: segments are missing from `first` up to the segment `behind`. */
struct leat_log_hole {
    const struct leat_segment *behind; /* as leat_log_first_held() returns it */
    uint64_t first;
};
/** The newest hole between two segments, if the later segment has a lower id than `below`. Not a known offset gap. */
bool leat_log_hole_find(const struct leat_log *log, uint64_t below,
                        struct leat_log_hole *out_hole) LEAT_NODISCARD;
/** The start entry of the segment after the hole names no predecessor: an operator gave the missing segments up. */
void leat_log_hole_jumped(struct leat_log *log, uint64_t behind);
/** No hole is left. */
void leat_log_holes_end(struct leat_log *log);
/** How many of a segment's first bytes hold its whole start entry, with its table of producers; 0: the bytes name no
 * length within segment_bytes. The first block names the length, and in most segments it holds the whole entry.
 * Thread: any. */
uint32_t leat_log_start_end(const uint8_t *bytes, uint32_t count, uint32_t segment_bytes);
/** The fixed part of a segment's start entry, from the segment's first bytes. false: the entry is damaged, or `count`
 * bytes do not hold the whole entry, which its checksum covers. Thread: any. */
bool leat_log_start_find(const uint8_t *bytes, uint32_t count,
                         struct leat_start *out_start) LEAT_NODISCARD;
/** A segment that is not here now is on no node: reads of it fail by name. It may still be added. node_down: a node
 * that may have it is down: reads of missing first segments fail even before an offset gap. */
void leat_log_older_done(struct leat_log *log, bool node_down);
/** All nodes that could have the missing first segments were asked. If the log was made after an accepted loss, or
 * the first segment here begins after an offset gap (`jumped`), these segments were given up with that loss, and the
 * log begins after them. Otherwise nothing happens. */
void leat_log_front_give_up(struct leat_log *log, bool jumped);
/** The missing first segments are looked for once more: reads of them wait again until the look ends. Segments that
 * were not found before stay named (leat_log_trouble()). */
void leat_log_older_again(struct leat_log *log);
/** Do reads wait for older segments? */
bool leat_log_reads_wait(const struct leat_log *log);
/** Reads that wait for older segments have waited for long enough: LEAT_E_STARTING, with the next turn. */
void leat_log_reads_expire(struct leat_log *log);

/* From the store's events. */
void leat_log_on_evict_wanted(struct leat_log *log, struct leat_segment *seg);
void leat_log_on_flushed(struct leat_log *log, struct leat_segment *seg);

/** The store's scrub, or a read, has found that what the file has of a closed segment is damaged.
 * told: the node log says so already. true: its bytes are on no node that was asked. */
bool leat_log_on_damaged(struct leat_log *log, const struct leat_segment *seg, bool told);
/* ---- a damaged closed segment is written anew (LEAT_STORE_REPAIR), see on_damaged ---- */
/** The segment's bytes are here, to be written over the corrupt bytes. The segment is not dropped, and the log does
 * not end, before leat_log_repair_end(). NULL: the log has no use for the segment any more. */
struct leat_segment *leat_log_repair_begin(struct leat_log *log, struct leat_segment_id segment,
                                           struct leat_prefix_id prefix_id);
/** rc: the store's answer. Returns true when the repair is over. LEAT_OK: the file has the right bytes now, and reads
 * go on. LEAT_E_INVALID: the segment has no place of its own in a file, as leat_log_repair_give_up(). Returns false at
 * LEAT_E_NOT_FOUND: this node's memory does not have the bytes, and another node is asked. Returns false at all other
 * errors: the disk refuses bytes that are here, so no record is lost, and the write is tried again. Reads go on
 * waiting. */
bool leat_log_repair_end(struct leat_log *log, struct leat_segment_id segment,
                         leat_err rc) LEAT_NODISCARD;
/** No node has the segment: reads get LEAT_E_DAMAGED, and nodes are asked again at a read after
 * LEAT_LOG_REPAIR_AGAIN_US. */
void leat_log_repair_give_up(struct leat_log *log, struct leat_segment_id segment);
enum { LEAT_LOG_REPAIR_AGAIN_US = 30 * 1000 * 1000 };

struct leat_log_info {
    enum leat_log_state state;
    const char *why; /* "" when serving */
    uint64_t first_offset, acked_offset, next_offset;
    uint64_t bytes, memory_bytes;
    uint64_t first_segment, segment_count, first_group, group_count;
    uint64_t end_segment; /* the id after the last segment here */
    uint32_t producers;
    bool unloaded; /* producer state, and the state of leat_log_app, is not read back yet */
    struct leat_epoch epoch;
    struct leat_log_ref ref;
    uint64_t appended_records, appended_bytes;
    /* Of the front, by what the last start or trim entry calls retained: so many segments, with
     * offsets from first_offset to (not with) missing_end. Known soon after the start. */
    uint64_t missing_segments, missing_end;
};
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info);
/** How many offsets from the log's first to its acked end have no record here: records that were lost or given up, and
 * offset gaps. Segments on their way from other nodes count as here. Looks at every segment. */
uint64_t leat_log_offsets_lost(const struct leat_log *log);
/* Records that can't be read: they are missing, or somewhere in these segments bytes are damaged. What other
 * nodes are asked for is not among them, nor what an operator gave up. */
struct leat_log_damage {
    uint64_t first_segment,
        end_segment; /* end: exclusive. Equal: the end of the previous segment was cut off */
    uint64_t first_offset,
        end_offset; /* equal: of a damaged segment with no records that the log has */
    bool missing;
};
/** The next damaged or missing range from *at on, which is 0 for the first; valid while the log is not called
 * otherwise. Ascending. Looks at every segment. Thread: owner core. */
bool leat_log_damage_find(const struct leat_log *log, uint64_t *at,
                          struct leat_log_damage *out) LEAT_NODISCARD;
/** The state of the log for an operator, in words: why it takes no appends (LEAT_E_LOG_INCOMPLETE, _DAMAGED, _DISK),
 * or which records are damaged or missing, or are in a segment that this node's disk does not take from another node
 * (LEAT_E_DAMAGED). Of these, only what leat_log_damage_find() finds can be given up. LEAT_OK and "": no trouble.
 * Cheap where there was never any. Thread: owner core. */
leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes) LEAT_NODISCARD;
/* Bytes that a start has passed over, after the end of a segment. One copy can't tell a torn write, which was never
 * acked, from an acked write that was damaged later. */
struct leat_log_passed {
    uint64_t bytes;    /* at least so many; 0: none that an operator has not seen */
    uint64_t segments; /* in so many segments */
    uint64_t segment,
        /* The last such segment, and where it ends: the offsets from there on were given out again */
        next_offset;
};
/** Cheap where no bytes were passed over. Thread: owner core. */
void leat_log_passed_over(struct leat_log *log, struct leat_log_passed *out);
/** The last reservation of a segment found no place on the disk: once its head is full, the log refuses appends. The
 * log learns of free space only when it asks again. Thread: owner core. */
bool leat_log_lacks_space(const struct leat_log *log);
/** Offsets where a group of segments begins and ends (end: exclusive; UINT64_MAX for a group that still grows).
 * NOT_FOUND. For consumer groups. */
leat_err leat_log_group(const struct leat_log *log, uint64_t group, uint64_t *out_first,
                        uint64_t *out_end) LEAT_NODISCARD;
/** The acked offset, readable from any core without a lock (acquire; pairs with the owner's release
 * store). */
uint64_t leat_log_acked_offset(const struct leat_log *log);
/** Id of the head, or of the next segment to start: for the "opened" commit. */
uint64_t leat_log_head_segment(const struct leat_log *log);

#endif
