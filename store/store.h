/* SPDX-License-Identifier: Apache-2.0 */
/* The segment store: all segments of a node, own segments and replicas. One actor (LEAT_ACTOR_STORE).
 *
 * The store has the memory pool, the store files, and the catalogue. It makes commit rounds (all waiting writes, then
 * one flush per file) and flushes closed segments in the background. Logs send requests, structs of the sender, by
 * message, and get them back as answers. Replication is a layer between log and store with the same requests; hence
 * `struct leat_store_port`.
 */
#ifndef LEAT_STORE_STORE_H
#define LEAT_STORE_STORE_H

#include "segment.h"

enum leat_store_req_kind {
    LEAT_STORE_RESERVE, /* in: log, id, epoch, durability, capacity. out: seg (RESERVED, a buffer
                          whose first entry is invalid, memory and disk reserved, its catalogue row as durable as the
                          stream's acks). Waits while memory is short; LEAT_E_DISK_FULL when there
                          is no disk space, LEAT_E_NO_MEMORY after LEAT_RESERVE_WAIT_US */
    LEAT_STORE_COMMIT, /* make [from, to) of seg durable (O_DIRECT from the buffer, rounded out to 4
                          KiB), whatever the  stream's level. LEAT_E_DISK: final, the log stops */
    /* seg has its close entry at seg->prefix_id and is complete: record this, flush later, recycle. A `disk` stream's
     * bytes are in the file then. Answered when the row is written (durable for a hibernated segment); evicting the
     * buffer is asked for later (on_evict_wanted) */
    LEAT_STORE_CLOSE,
    LEAT_STORE_HIBERNATE, /* in: seg->prefix_id; no pins. Flush everything, record prefix id and HIBERNATED
                          durably, take the buffer (seg->buffer becomes NULL). LEAT_E_DAMAGED: the
                          bytes are not what prefix id says */
    LEAT_STORE_RESUME, /* erase the hibernating record durably, give a buffer of `capacity` with the
                          bytes in it */
    LEAT_STORE_DROP, /* seg is trimmed: free its slot and buffer and the descriptor (seg is gone when
                       answered) */
    LEAT_STORE_STAMP, /* in: version, writer, role, incomplete, provisional. Recorded: durably where the stream's
                        acks are durable, and for a hibernated segment, whose row is all it has */
    /* take the bytes into a buffer of the node's own pool (contents as they are now): the writer of the old place is
     * not trusted any more. The old buffer is not given out again until its arena is retired */
    LEAT_STORE_MOVE,
    /* in: bytes. What the file has of a CLOSED segment, flushed or missing, is not what its prefix id says: written in
     * place, and synced. The row changes only where it did not say that the file has the bytes. Not to be dropped
     * before the answer, with which its owner says that seg->integrity is OK again. LEAT_E_INVALID: in memory alone,
     * or not these bytes. bytes NULL: from this node's memory; LEAT_E_NOT_FOUND: not all bytes are there */
    LEAT_STORE_REPAIR,
    /* in: given_up, front_given_up. Recorded durably, in addition to earlier marks, together with the owner's present
     * seg->passed_bytes */
    LEAT_STORE_GIVE_UP,
    LEAT_STORE_EVICT, /* owner gives the buffer of a CLOSED, flushed segment back; seg->buffer
                        becomes NULL */
};

struct leat_store_req {
    struct leat_mail mail;
    enum leat_store_req_kind kind;
    unsigned from; /* actor that asks; the answer arrives there */
    struct leat_segment *seg;
    /* RESERVE */
    struct leat_log_ref log;
    struct leat_segment_id id;
    struct leat_epoch epoch;
    enum leat_durability durability;
    uint32_t capacity; /* RESERVE, RESUME */
    leat_err rc;       /* of the answer */
    /* RESERVE, RESUME: where the buffer comes from; NULL: the node's pool. A full arena refuses at once with
     * LEAT_E_NO_MEMORY: no request waits for other segments to go. Its buffers are zeroed. */
    struct leat_store_arena *arena;
    /* RESERVE, STAMP */
    uint32_t version; /* RESERVE: 0 is 1 */
    enum leat_segment_role role;
    uint64_t writer;
    bool incomplete, provisional;
    bool given_up, front_given_up; /* GIVE_UP */
    bool leave; /* DROP: its buffer may still be written, so is not given out again */
    /* COMMIT */
    bool follow; /* to_bytes grows to seg->sealed_bytes, as it is when the round begins */
    uint32_t from_bytes, to_bytes;
    /* REPAIR: the prefix id's length, 4 KiB aligned, then zeros up to the next 4 KiB. Borrowed until the answer. */
    uint8_t *bytes;
    uint8_t *copy;                               /* the store's: REPAIR, of the bytes in memory */
    void (*on_done)(struct leat_store_req *req); /* on actor `from` */
    /* HIBERNATE, if copies on other nodes are hibernated as well: called on actor `from`, before on_done, when the
     * bytes are in the file of this node. NULL: not wanted. */
    void (*on_here)(struct leat_store_req *req);
    void *owner;
    struct leat_list waiting; /* the store's */
    uint64_t asked_us;        /* the store's */
    struct leat_disk_io io;   /* the store's: RESUME reads back by it, REPAIR writes */
};

/* ---- arenas for replicas ----
 * One per writer on another node, beside the node's pool. The store gives out and recycles buffers; the maker of the
 * arena controls the rights to write. */
struct leat_store_arena; /* opaque */
struct leat_store_arena_op {
    struct leat_mail mail;
    unsigned from;
    struct leat_arena *arena;       /* ADD: borrowed until RETIRE is answered */
    uint64_t limit_bytes;           /* ADD: at most arena->limit_bytes */
    struct leat_store_arena *added; /* ADD: out. RETIRE: in */
    leat_err rc;
    void (*on_done)(struct leat_store_arena_op *op); /* on actor `from` */
    void *owner;
};
struct leat_store;
/** Thread: a core; on_done later. LEAT_E_NO_MEMORY, LEAT_E_CONFIG (a limit below one step). */
void leat_store_arena_add(struct leat_store *store, const struct leat_post *post,
                          struct leat_store_arena_op *op);
/** No buffer of it is given out again. on_done when no segment has one there any more: the arena may
 * go. One at a time per arena. */
void leat_store_arena_retire(struct leat_store *store, const struct leat_post *post,
                             struct leat_store_arena_op *op);

/* Where a log's segments are kept: the store, or the primary as a layer before the store. */
struct leat_store_port {
    void *ctx;
    /** Start a request. Thread: a core. Completion by req->on_done on the same actor, never
     * inside. */
    void (*request)(void *ctx, const struct leat_post *post, struct leat_store_req *req);
    /**
     * Bytes [0, upto) of seg are written and sealed. Returns true when they are as safe as level
     * `memory` asks right now (store alone: named shared memory holds them); false: a COMMIT
     * request is needed.
     */
    bool (*safe_in_memory)(void *ctx, const struct leat_segment *seg);
    /** Why nothing can be appended right now (LEAT_E_TOO_FEW_COPIES), or LEAT_OK. NULL: never. */
    leat_err (*refusal)(void *ctx);
    /**
     * Level `memory`, while a COMMIT of seg is under way: bytes [0, upto) are sealed by now, and may go
     * to the copies already. A hint: nothing is answered, the next COMMIT asks for them. NULL: not
     * wanted.
     */
    void (*ahead)(void *ctx, struct leat_segment *seg, uint32_t upto);
    /**
     * Should this head be rolled though it has room, since its successor's copies would be placed better? Asked now
     * and then; true: the head is rolled. NULL: never.
     */
    bool (*roll_wanted)(void *ctx, const struct leat_segment *head);
    /**
     * Should this head have a buffer, though nobody appends: does it lack a copy that can be made now, or are bytes
     * being written from its buffer? Asked now and then. True: a hibernated head is resumed, a head with a buffer is
     * not hibernated. NULL: never.
     */
    bool (*copy_wanted)(void *ctx, const struct leat_segment *head);
    /**
     * Does the buffer of this head block memory that must be given back, while there is room for its successor? Asked
     * now and then. NULL: never.
     */
    bool (*in_the_way)(void *ctx, const struct leat_segment *head);
    /** COMMITs of one segment that may be under way at a time, answered in order; the store goes on with the next
     * while the answer of the last is on its way to the log. 0: one COMMIT, without `follow`. */
    unsigned commits;
};

/* What the store tells a segment's owner without being asked. Set once at open. Runs on the owner's
 * core. */
struct leat_store_events {
    /** Memory is short: give this CLOSED, flushed segment's buffer back by LEAT_STORE_EVICT when no
     * reader pins it. */
    void (*on_evict_wanted)(void *core, struct leat_segment *seg);
    /** A closed segment is now wholly in its file. The owner sets seg->flushed. */
    void (*on_flushed)(void *core, struct leat_segment *seg);
    /** The scrub has found other bytes in a closed segment's file than its prefix id says; called in each pass with
     * this result. NULL: not called. */
    void (*on_damaged)(void *core, struct leat_segment *seg);
};

struct leat_store_options {
    uint64_t memory_bytes;  /* pool limit, multiple of LEAT_ARENA_STEP_BYTES */
    uint8_t cluster_id[16]; /* zeros: not known yet, see leat_store_join() */
    uint64_t
        flush_delay_us; /* closed segments of `memory` streams wait this long, or until half of the pool is
                                in use and cannot be evicted, or half of an arena of replicas */
    uint64_t scrub_bytes_per_second; /* 0 = no scrub */
    struct leat_store_events events;
    /* Arenas of replicas that an earlier process left, already revoked. Read only: bytes that are not in files yet
     * are written during open or later; borrowed until on_inherited_free. */
    struct leat_arena *const *inherited;
    size_t inherited_count;
    /** No segment has bytes in inherited[index] any more. Store's thread; may run inside leat_store_found_done().
     * NULL: not called. */
    void (*on_inherited_free)(void *owner, size_t index);
    /** By how much the pool must be smaller than memory_bytes now, because of unforeseen other use of memory. In
     * whole steps, and the pool keeps at least one step. Asked every second, and before it grows. NULL: never.
     * Store's thread. */
    uint64_t (*less_bytes)(void *owner);
    void *owner;
    uint64_t (*cpu_ns)(void *); /* of the calling thread, for the accounts; NULL: none */
};
enum {
    LEAT_RESERVE_WAIT_US = 10 * 1000 * 1000,
    LEAT_STORE_FILE_BYTES = 1024 * 1024 * 1024,
    LEAT_SLOT_UNIT_BYTES = 16 * 1024,
};

/* What a start finds: one row per segment held. */
enum leat_found_kind {
    LEAT_FOUND_CLOSED, /* by its row, or by a close entry in its valid prefix */
    LEAT_FOUND_MARK,   /* started, no close entry, bytes survived: says where its log ends */
    LEAT_FOUND_LOST, /* started, but its bytes did not survive (memory gone) or are damaged: `scan`
                        says what is valid */
};
struct leat_found {
    struct leat_segment
        *seg; /* state OPEN, HIBERNATED or CLOSED; prefix id, base_offset, next_offset,
                                 max_timestamp filled */
    enum leat_found_kind kind;
    struct leat_scan scan; /* MARK and LOST */
    uint32_t
        behind_bytes; /* MARK with a torn tail: at least so many bytes after it are no complete write */
    char why[96];     /* LOST */
};

struct leat_store; /* opaque */

/**
 * Open the data directory's store: read the catalogue, adopt or forget the memory pool, scan open
 * segments only. Blocks (start-up, on the store's thread). Reservations that never started are
 * freed. What is damaged is named by leat_store_complaints(); nothing of it is deleted.
 */
leat_err leat_store_open(const struct leat_env *env, const struct leat_store_options *options,
                         struct leat_store **out_store, struct leat_error *error) LEAT_NODISCARD;
/** Everything found at open with role OWN, ordered by (stream, streamlet, log, segment). Valid until
 * leat_store_found_done(). */
const struct leat_found *leat_store_found(const struct leat_store *store, size_t *out_count);
/** The same with role REPLICA. Those that were open are hibernated now, or LOST: a writer that does not know of the
 * start may still write into their memory. Incomplete replicas are dropped. */
const struct leat_found *leat_store_found_replicas(const struct leat_store *store,
                                                   size_t *out_count);
/** Another role, between found and found_done: durable with leat_store_cut_done(). */
void leat_store_role_set(struct leat_store *store, struct leat_segment *seg,
                         enum leat_segment_role role, uint64_t writer);
/** Each found segment that a log or a backup takes has its owner_actor by now: of the others no message is sent.
 * Flushes begin. */
void leat_store_found_done(struct leat_store *store);
/**
 * The log's end is decided and committed: cut this open or hibernated segment to `prefix_id` and close it, by its row
 * alone: the bytes stay equal to those of all other copies. Used between found and serving; LEAT_E_AGAIN while a round
 * is in flight, LEAT_E_DAMAGED when the bytes are not what prefix id says.
 * Thread: store. Blocks. Damaged or lost segments that an operator gave up are dropped with
 * leat_store_forget().
 */
leat_err leat_store_cut(struct leat_store *store, struct leat_segment *seg,
                        struct leat_prefix_id prefix_id, uint64_t next_offset,
                        int64_t max_timestamp_ms) LEAT_NODISCARD;
leat_err leat_store_forget(struct leat_store *store, struct leat_segment *seg) LEAT_NODISCARD;
/** A found mark that is kept for another node, which owns its log by now: a replica can't be open without a buffer,
 * so the valid bytes in its file become a hibernated replica. A replica with a buffer stays open. Durable with
 * leat_store_cut_done(). Thread: store. */
void leat_store_found_hibernate(struct leat_store *store, const struct leat_found *found);
/** Make the changes of leat_store_cut() and leat_store_forget() durable: one commit round. Blocks. */
leat_err leat_store_cut_done(struct leat_store *store) LEAT_NODISCARD;

/** Random, made with the data directory: two directories never have the same. Thread: any. */
void leat_store_id(const struct leat_store *store, uint8_t out_id[16]);
/** A store opened for a cluster whose id was not known yet (zeros) is of this one from now on. Durable.
 * LEAT_E_WRONG_CLUSTER: it is of another. Thread: store. Blocks. */
leat_err leat_store_join(struct leat_store *store, const uint8_t cluster_id[16],
                         struct leat_error *error) LEAT_NODISCARD;

/** Requests come in here, by mail to LEAT_ACTOR_STORE. */
struct leat_store_port leat_store_port(struct leat_store *store);
/** Actor pointer and drive functions. */
extern const struct leat_actor_ops leat_store_actor;

/** After leat_store_flush_all(): are the bytes of all segments of the pool in files? Not while memory has an open
 * segment that no log has hibernated: a start found it, and no owner has been decided yet. Thread: the store's, or any
 * when no actor runs. */
bool leat_store_is_on_disk(const struct leat_store *store) LEAT_NODISCARD;
/** Give all dirty closed segments to their files and sync; on_done when all is down. For SIGTERM
 * (logs hibernate first). Before leat_store_found_done() memory keeps the segments that were found. */
void leat_store_flush_all(struct leat_store *store, void (*on_done)(void *arg, leat_err rc),
                          void *arg);
void leat_store_close(struct leat_store **store);

/** Sentences about what is damaged: found at open (catalogue rows, files), and later by the scrub;
 * the first LEAT_STORE_COMPLAINTS_MAX of them, then how many more. Thread: store, or before its
 * actor runs. */
void leat_store_complaints(const struct leat_store *store,
                           void (*each)(void *arg, const char *line), void *arg);
enum { LEAT_STORE_COMPLAINTS_MAX = 64 };
/** Were rows of the catalogue damaged, or missing, at the start? Their segments are unknown. Such rows stay as they
 * are, so the next start finds them, too. Thread: any. */
bool leat_store_rows_damaged(const struct leat_store *store);

struct leat_store_usage {
    uint64_t memory_limit, memory_used,     /* the limit as it is now */
        memory_grown, disk_bytes, segments; /* grown: with a step that comes or goes */
    bool memory_kept;                       /* no step of it is ever given back */
    /* Of the heap: allocated descriptors that are free for further segments, and the need of reservations that are
     * asked for and have not begun. */
    uint64_t rows_free_bytes, rows_asked_bytes;
    /* replicas */
    uint64_t arenas_limit, arenas_used, arenas_grown; /* used: buffers given out */
    uint64_t arenas_dirty;                            /* of them: not yet in files */
    uint64_t flush_bytes_per_second;                  /* measured; 0: nothing flushed yet */
    uint64_t cpu_zeroing_ns, cpu_flush_ns;
    /* Of a segment that the last request found no place for on the disk; 0: it found a place. */
    uint64_t disk_lacks_bytes;
};
/** Thread: any (atomics). */
void leat_store_usage(const struct leat_store *store, struct leat_store_usage *out_usage);

#endif
