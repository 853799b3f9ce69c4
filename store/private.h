/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the store share. Everything belongs to the store's actor, unless a field says
 * otherwise. */
#ifndef LEAT_STORE_PRIVATE_H
#define LEAT_STORE_PRIVATE_H

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "store/buddy.h"
#include "store/row.h"
#include "store/store.h"

enum {
    LEAT_STORE_FILES_MAX = 4096,      /* 4 TiB */
    LEAT_STORE_ROWS_PER_CHUNK = 1024, /* catalogue grows by that: 128 KiB */
    LEAT_STORE_CHUNKS_MAX = 8192,     /* 8 M segments, 1 GiB of catalogue */
    LEAT_STORE_SLOT_STEP_BYTES = 64 * 1024 * 1024,
    LEAT_STORE_SLOT_FIRST_BYTES = 1024 * 1024, /* a store doubles from here up to the step */
    LEAT_STORE_ZERO_BYTES = 1024 * 1024,       /* written ahead by one operation */
    LEAT_STORE_ZERO_EVERY_BYTES = 512 * 1024,  /* and while commits come, after so much of theirs */
    LEAT_STORE_ROUND_BLOCKS_MAX = 64,          /* catalogue blocks written by one round */
    LEAT_STORE_LAZY_BLOCKS_MAX = 64,
    LEAT_STORE_FLUSH_IN_FLIGHT_MAX = 2,
    LEAT_STORE_FLUSH_WRITE_BYTES = 1024 * 1024,
    LEAT_STORE_FLUSH_WRITE_BYTES_BUSY = 256 * 1024, /* while commits come */
    LEAT_STORE_REPAIR_BYTES = 256 * 1024, /* of a segment that is written anew, at a time */
    LEAT_STORE_FLUSH_SYNC_BYTES = 32 * 1024 * 1024, /* flushed and not synced: sync now */
    LEAT_STORE_SPEED_BYTES_MIN = 64 * 1024, /* smaller writes say nothing of the disk's speed */
    LEAT_STORE_BUSY_US = 10 * 1000,         /* commits within that: the disk is theirs */
    /* Rounds of one file at a time: one with requests, one of flushes, which no request waits for. */
    LEAT_STORE_LANE_REQUESTS = 0,
    LEAT_STORE_LANE_SYNCS = 1,
    LEAT_STORE_LANES = 2,
    LEAT_STORE_CROWDED_ROUNDS = 64,         /* so long after two files wanted one at a time */
    LEAT_STORE_ROWS_PASSED_MAX = 2,         /* rounds of files that may go before waiting rows */
    LEAT_STORE_GROW_PAUSE_US = 4000 * 1000, /* between two steps of slow growth */
    LEAT_STORE_GROW_RETRY_US = 5000 * 1000, /* after a step that the system refused */
    LEAT_STORE_GROW_FIRST_US = 10 * 1000 * 1000, /* from first use to the first step ahead of it */
    LEAT_STORE_GROW_PATIENCE_US = 20 * 1000, /* waits longer than this make the pool grow at once */
    LEAT_STORE_LOOK_US = 1000 * 1000,        /* between two looks at what the pool may have */
    LEAT_STORE_LOOK_PAST_US = 100 * 1000,    /* while something lies past its limit */
    LEAT_STORE_ROOM_PART =
        16, /* of the pool is free, or heads past its limit stay where they are */
    LEAT_STORE_FAVOUR_US = 50 * 1000, /* waits longer than this get a place of their own */
    LEAT_STORE_HELD_PER_SLAB = 128,
    LEAT_STORE_COMPLAINT_BYTES = 200,
};
/* Units of file and pool are one size: a segment has the same order in both. */
_Static_assert(LEAT_SLOT_UNIT_BYTES << (LEAT_BUDDY_ORDERS - 1) == LEAT_SEGMENT_BYTES_MAX,
               "the largest block is the largest segment");
_Static_assert((int)LEAT_SLOT_UNIT_BYTES == (int)LEAT_SEGMENT_BYTES_MIN, "the smallest likewise");

/* ---- pool ---- */
struct leat_pool {
    struct leat_arena *arena;
    uint64_t limit_bytes; /* no more is given out past it */
    uint64_t full_bytes;  /* the limit at start: it may be lowered and raised again */
    struct leat_buddy buddy;
    uint64_t added_bytes; /* of the arena, known to the buddy */
    uint64_t grown_us;    /* when it last began to grow */
    struct leat_arena_grow grow;
    bool growing; /* or shrinking */
    bool grow_failed, used_once;
    bool keeps;         /* the arena does not take a step back */
    bool went_ahead;    /* it has grown ahead of use once */
    uint64_t behind_us; /* since when less is free than is kept free; 0: enough is */
    uint64_t due_us;    /* when a step that has to wait is due; UINT64_MAX: none waits */
    /* A pool for replicas: buffers are zeroed when they come back, and so are zero when they are given out. */
    bool zeroed;
    bool retired;           /* buffers that come back are not given out again */
    uint64_t ahead_bytes;   /* kept free by growing ahead of use */
    uint64_t leaving_bytes; /* of an arena: being flushed, or flushed and soon given back */
    uint32_t given;         /* buffers out */
};
leat_err leat_pool_init(struct leat_pool *pool, struct leat_arena *arena,
                        uint64_t limit_bytes) LEAT_NODISCARD;
void leat_pool_fini(struct leat_pool *pool);
/** A buffer whose first entry is invalid, or NULL: none of that size is free. */
uint8_t *leat_pool_take(struct leat_pool *pool, uint32_t capacity);
/** Take this very buffer, contents kept. */
bool leat_pool_claim(struct leat_pool *pool, uint64_t at, uint32_t capacity);
/** Copy the bytes of this place, if no segment has it. */
bool leat_pool_peek(struct leat_pool *pool, uint64_t at, uint32_t capacity, uint32_t bytes,
                    uint8_t *into);
void leat_pool_give(struct leat_pool *pool, uint8_t *buffer, uint32_t capacity);
/** A multiple of the step, at most full_bytes. What is in use past it stays so until it is given back. */
void leat_pool_limit_set(struct leat_pool *pool, uint64_t limit_bytes);
/** In use past the limit. */
uint64_t leat_pool_past_bytes(const struct leat_pool *pool);
/** Start growing when that is due, or giving back a step past the limit; on_grown runs later. slowly: one step in
 * four seconds. */
void leat_pool_step(struct leat_pool *pool, bool wanted, bool slowly, uint64_t now_us);
/** Is giving out flushed segments better now than growing? */
bool leat_pool_prefers_recycling(const struct leat_pool *pool, uint64_t recyclable_bytes);
uint64_t leat_pool_used(const struct leat_pool *pool);
bool leat_pool_can_grow(const struct leat_pool *pool);
/** When a step that waits for its time is due, as the last leat_pool_step() found; UINT64_MAX: none waits. */
uint64_t leat_pool_due_us(const struct leat_pool *pool);

/* ---- arenas of replicas ---- */
struct leat_store_arena {
    struct leat_store *store;
    struct leat_list link;
    struct leat_pool pool;
    struct leat_list waits;             /* RESERVE, RESUME: while it grows; by req->waiting */
    struct leat_store_arena_op *retire; /* waits until nothing lies there any more */
    bool inherited;
    size_t index; /* of the inherited */
};
enum { LEAT_STORE_ARENAS_MAX = 1024 };

/* ---- store files ---- */
struct leat_store_file {
    struct leat_file *file;
    uint32_t number;
    uint32_t grown_units, found_units; /* found: at open */
    uint32_t here_units; /* fewer than grown: the disk was too full for all that rows claim */
    bool failed;         /* a flush failed: final */
    struct leat_buddy buddy;
    bool sync_wanted; /* cut only */
    /* Its rounds: bytes and one sync, then answers. Nothing of another file is waited for. */
    struct leat_list ready;      /* in store->files_ready: something waits for its next round */
    struct leat_list todo;       /* requests whose bytes wait */
    struct leat_list flush_wait; /* segments flushed and not synced: go along with any round */
    struct leat_store_round {
        struct leat_store_file *of;
        struct leat_list reqs, helds, flush_syncs;
        unsigned ios; /* under way */
        bool running;
        struct leat_disk_io sync;
    } rounds[LEAT_STORE_LANES];
};
struct leat_slots {
    const struct leat_disk *disk;
    struct leat_store_file **files; /* [LEAT_STORE_FILES_MAX] */
    uint32_t count;
    uint64_t disk_bytes;
    /* Space for `disk` segments is written before it is given out. It grows at the end of this file, NULL: none;
     * [fresh_from, fresh_end) of this file is allocated, and enters its buddy when written. The step before is in
     * another file, ahead_before (NULL: none). */
    struct leat_store_file *ahead, *ahead_before;
    uint32_t fresh_from, fresh_end;
    bool look_ahead; /* space was taken since the last look */
    bool no_more;    /* the end is near: begin nothing */
    bool lacks_file; /* the last file that was wanted could not be made; the node log has it */
    /* The node log has said that there is no space for so much, until so much is taken or free again; 0: there is
     * space. */
    uint32_t full_bytes;
    /* The piece being written: no part of the above any more. */
    struct leat_store_file *zeroing; /* NULL: none */
    uint32_t zero_from, zero_units;
    struct leat_disk_io zero;
};
struct leat_slot {
    struct leat_store_file *file;
    uint32_t unit;
};
leat_err leat_slots_init(struct leat_slots *slots, const struct leat_disk *disk) LEAT_NODISCARD;
void leat_slots_fini(struct leat_slots *slots);
/** Open the files that are there. */
leat_err leat_slots_open(struct leat_slots *slots, struct leat_error *error) LEAT_NODISCARD;
/** Grows files as needed. LEAT_E_DISK_FULL, LEAT_E_DISK, LEAT_E_NO_MEMORY. */
leat_err leat_slots_take(struct leat_slots *slots, uint32_t capacity,
                         enum leat_durability durability,
                         struct leat_slot *out_slot) LEAT_NODISCARD;
/** Go on writing space ahead. true: a piece was begun. */
bool leat_slots_step(struct leat_slots *slots);
/** At open: a row claims units up to there, which the file does not have (a power cut took its
 * growth). The file grows to them, so no other segment gets the place. */
leat_err leat_slots_cover(struct leat_slots *slots, uint32_t number, uint32_t units) LEAT_NODISCARD;
/** Allocates the missing end of the file, if any. DISK_FULL: not now. */
leat_err leat_slots_fill(struct leat_slots *slots, struct leat_store_file *file) LEAT_NODISCARD;
void leat_slots_give(struct leat_slots *slots, struct leat_slot slot, uint32_t capacity);

/* ---- catalogue ---- */
struct leat_held;
struct leat_row_chunk {
    struct leat_row rows[LEAT_STORE_ROWS_PER_CHUNK];
    struct leat_held *held[LEAT_STORE_ROWS_PER_CHUNK]; /* NULL: none */
    uint64_t free[LEAT_STORE_ROWS_PER_CHUNK / 64];     /* bit: may be given out */
    uint64_t changed;  /* bit per block of this chunk: differs from the file; open and cut only */
    uint32_t in_round; /* bit per block: staged or to be staged in this round */
};
_Static_assert(LEAT_STORE_ROWS_PER_CHUNK / LEAT_ROWS_PER_BLOCK == 32, "in_round is 32 bits");

struct leat_catalogue {
    const struct leat_disk *disk;
    struct leat_file *file;
    struct leat_catalogue_header header;
    struct leat_row_chunk **chunks; /* [LEAT_STORE_CHUNKS_MAX] */
    uint32_t chunk_count;
    uint32_t free_hint; /* no free row in chunks before */
    uint32_t held_count;
    bool failed; /* a write or flush failed: final */
    /* the round's */
    uint8_t *staging_raw, *staging; /* 4 KiB aligned, LEAT_STORE_ROUND_BLOCKS_MAX blocks */
    uint8_t *header_block;
    uint32_t rows_in_file; /* at open: later rows of the last chunk are not there */
    struct leat_disk_io ios[LEAT_STORE_ROUND_BLOCKS_MAX];
    uint32_t blocks[LEAT_STORE_ROUND_BLOCKS_MAX];
    uint32_t block_count;
    bool sync_wanted;
    struct leat_disk_io sync;
    uint32_t lazy[LEAT_STORE_LAZY_BLOCKS_MAX]; /* blocks worth writing when a round goes anyway */
    uint32_t lazy_count;
};
leat_err leat_catalogue_init(struct leat_catalogue *cat,
                             const struct leat_disk *disk) LEAT_NODISCARD;
void leat_catalogue_fini(struct leat_catalogue *cat);
typedef void (*leat_complain_fn)(void *arg, const char *line);
/** Open or make the file; read all rows. Bad rows stay as they are, are never given out, and are
 * named by complain(). out_bad_rows: how many, missing ones included. */
leat_err leat_catalogue_open(struct leat_catalogue *cat, const struct leat_env *env,
                             const uint8_t cluster_id[16], bool store_files_exist,
                             leat_complain_fn complain, void *arg, uint64_t *out_bad_rows,
                             struct leat_error *error) LEAT_NODISCARD;
/** A catalogue of no cluster yet (zeros) is of this one from now on. */
leat_err leat_catalogue_cluster_set(struct leat_catalogue *cat, const uint8_t cluster_id[16],
                                    struct leat_error *error) LEAT_NODISCARD;
/** A row that is FREE, durably. Grows the file. */
leat_err leat_catalogue_take(struct leat_catalogue *cat, uint32_t *out_row) LEAT_NODISCARD;
/** The row may be given out again. */
void leat_catalogue_give(struct leat_catalogue *cat, uint32_t row);
struct leat_row *leat_catalogue_row(const struct leat_catalogue *cat, uint32_t row);
struct leat_held **leat_catalogue_held(const struct leat_catalogue *cat, uint32_t row);
bool leat_row_valid(const struct leat_row *row, uint32_t number);
void leat_row_seal(struct leat_row *row, uint32_t number);
uint64_t leat_catalogue_bytes(const struct leat_catalogue *cat);
/** Have this row's block written by the round being gathered. false: the round has no room. */
bool leat_catalogue_join(struct leat_catalogue *cat, uint32_t row);
/** Have it written some time. */
void leat_catalogue_join_lazily(struct leat_catalogue *cat, uint32_t row);
/** Copy the joined blocks and submit them. Returns how many operations. */
unsigned leat_catalogue_submit(struct leat_catalogue *cat, bool beside,
                               void (*on_done)(struct leat_disk_io *), void *owner);
void leat_catalogue_round_end(struct leat_catalogue *cat);
/** Blocking, at open and cut: note a changed row; write all changed ones and sync. */
void leat_catalogue_changed(struct leat_catalogue *cat, uint32_t row);
leat_err leat_catalogue_write_changed(struct leat_catalogue *cat) LEAT_NODISCARD;

/* ---- a segment as the store holds it ---- */
enum leat_held_where {
    LEAT_HELD_NOWHERE,
    LEAT_HELD_DIRTY,    /* closed, waits for its flush */
    LEAT_HELD_FLUSHING, /* being written to its slot, or waiting for sync and row */
    LEAT_HELD_CACHED,   /* flushed, still in memory */
    LEAT_HELD_ASKED,    /* its owner was asked for the buffer */
    LEAT_HELD_STUCK,    /* its flush failed: stays in memory */
    LEAT_HELD_KEPT,     /* flushed, in an arena: its owner gives the buffer back unasked */
};
enum leat_held_events {
    LEAT_HELD_EVENT_FLUSHED = 1,
    LEAT_HELD_EVENT_EVICT = 2,
    LEAT_HELD_EVENT_DAMAGED = 4,
};

struct leat_held {
    struct leat_segment seg; /* first; seg.by_store links it in the list that `where` names */
    struct leat_store *store;
    enum leat_held_where where;
    struct leat_slot slot;
    struct leat_pool *pool; /* where seg.buffer is, or was, from; NULL: never had one */
    uint64_t pool_at;       /* of seg.buffer; without one its bytes may still lie there */
    uint32_t in_file_bytes; /* durable in its slot, from the start */
    uint64_t closed_us;
    bool dirty_in_arena;       /* counted in store->arenas_dirty */
    struct leat_pool *leaving; /* the arena in whose leaving_bytes it is counted; NULL: none */
    bool repairing;            /* its file is being written anew */
    /* CLOSED, flushed: its place was found without the right bytes, and its row says so, since a missing place is
     * made again, and a flipped bit that was read is recorded nowhere else. */
    bool damaged;
    bool damage_named;           /* by the scrub, which finds the damage again and again */
    bool leave;                  /* dropped: its writer may still write into its buffer */
    bool failed;                 /* its part of the file failed: final */
    bool slot_shared;            /* another row claims the slot too (damage): never give it back */
    bool cut;                    /* leat_store_cut() changed it: sync its file */
    bool forgotten;              /* leat_store_forget(): release when the row is durable */
    struct leat_store_req *drop; /* waits until the flush under way has ended */

    /* Mail to the owner. event_busy: set by the store before sending, cleared (release) by the
     * owner's core after the callback; the store reads it with acquire. Until then neither the mail
     * nor this struct is used again. */
    struct leat_mail event;
    unsigned events_sent, events_wanted;
    _Atomic bool event_busy;
    struct leat_list event_link; /* wanted but busy; or dropped but busy */

    /* Its file's round: one write covers all commits of this segment. The row is not touched while requests of this
     * segment wait for their bytes. */
    unsigned data_reqs;
    struct leat_list in_round;
    struct leat_store_round
        *round; /* that writes it; NULL: none. One at a time: they may overlap */
    uint32_t round_from, round_to;
    struct leat_disk_io io;

    uint32_t flush_at; /* flush: next byte to submit */
    unsigned flush_ios;
};
static inline struct leat_held *leat_held_of(struct leat_segment *seg)
{
    return (struct leat_held *)(void *)seg;
}

struct leat_flush_io {
    struct leat_disk_io io;
    struct leat_held *held;
    uint64_t submitted_us;
};

struct leat_store {
    const struct leat_env *env;
    struct leat_store_options options;
    struct leat_pool pool;
    struct leat_slots slots;
    struct leat_catalogue cat;
    bool started; /* leat_store_found_done() was called */

    /* descriptors */
    struct leat_list held_free;  /* by seg.by_store */
    struct leat_list slabs_head; /* of struct held_slab */
    uint64_t slab_count;
    struct leat_list zombies; /* dropped, an event mail still under way; by event_link */
    struct leat_list event_waits;

    /* requests */
    struct leat_list memory_waits[LEAT_BUDDY_ORDERS]; /* RESERVE, RESUME; oldest first */
    uint32_t memory_wait_count;
    uint64_t memory_wait_bytes;
    struct leat_store_req *favoured; /* has waited too long: a place is kept free for it */
    uint64_t favoured_at_us;         /* when that was last looked at */
    uint64_t look_us;                /* when to look next at what the pool may have */
    struct leat_list todo;           /* for the next round of the catalogue */

    /* rounds: one per store file, one of the catalogue */
    struct leat_list files_ready;
    unsigned data_running, data_waiting; /* rounds of files in flight; requests for their next */
    unsigned crowded; /* rounds still to be run on other threads, so that they may overlap */
    bool rows_running;
    bool rows_noted; /* a row has changed that no request waits for, and is written soon */
    unsigned rows_ios, rows_passed; /* passed: rounds of files that went first meanwhile */
    struct leat_list rows_reqs, rows_flush;
    uint64_t committed_us;    /* when a commit was last asked for */
    uint64_t committed_bytes; /* since a piece was last written ahead */

    /* background flushes; lists by seg.by_store */
    struct leat_list dirty, dirty_soon, flush_synced, cached, asked, stuck;
    struct leat_held *flushing; /* being submitted */
    struct leat_flush_io flush_ios[LEAT_STORE_FLUSH_IN_FLIGHT_MAX];
    unsigned flush_in_flight;
    bool flush_turn;        /* one piece may go before the next round of a file */
    unsigned flush_written; /* segments in the files' flush_wait */
    uint64_t flush_unsynced_bytes, asked_bytes, cached_bytes;
    unsigned flush_pending; /* segments FLUSHING */
    bool flush_failed;
    void (*flush_all_done)(void *arg, leat_err rc);
    void *flush_all_arg;

    /* scrub */
    uint8_t *scratch_raw, *scratch; /* LEAT_SEGMENT_BYTES_MAX, 4 KiB aligned: open, cut, scrub */
    struct leat_disk_io scrub_io;
    struct leat_held *scrubbing;
    bool scrub_reading;
    uint32_t scrub_row;
    uint64_t scrub_at_us;
    unsigned repairs; /* under way */

    /* replicas */
    struct leat_list arenas;
    unsigned arena_count;
    uint64_t arenas_dirty; /* bytes of their segments that are closed and not in files */
    uint64_t flush_speed;  /* bytes per second, smoothed */
    uint64_t zeroing_ns, flush_ns;

    /* found */
    struct leat_found *found;
    size_t found_count, found_own;

    char (*complaints)[LEAT_STORE_COMPLAINT_BYTES];
    bool rows_damaged;
    struct leat_node_log_sum segments_sum;
    size_t complaint_count; /* may exceed LEAT_STORE_COMPLAINTS_MAX: then only counted */

    /* usage: written by the store with relaxed order, read by anyone */
    _Atomic bool usage_kept;
    _Atomic uint64_t usage_limit, usage_memory, usage_grown, usage_disk, usage_segments,
        usage_disk_lacks;
    _Atomic uint64_t usage_room; /* free below the limit */
    _Atomic uint64_t usage_rows_free;
    uint64_t reserves_begun; /* of reserves_sent, which requesters count */
    _Atomic uint64_t reserves_sent, usage_reserves;
    _Atomic uint64_t usage_arenas_limit, usage_arenas, usage_arenas_grown, usage_arenas_dirty,
        usage_flush_speed, usage_zeroing, usage_flush;
};

/* No two of the files below call each other. store.c calls the others, and is called by none. */

/* check.c */
/** As leat_actor_ops.check. */
void leat_store_check(const void *actor);

/* chain.c */
/** Submit `io`; or, if it is `beside`, append it to the chain after `before` (NULL: none yet): the caller submits the
 * first operation of the chain when the chain is complete. */
void leat_disk_append(const struct leat_disk *disk, struct leat_disk_io **before,
                      struct leat_disk_io *io);

/* held.c */
struct leat_held *leat_held_get(struct leat_store *store);
/** The descriptor goes back, or becomes a zombie while its event mail is under way. */
void leat_held_put(struct leat_store *store, struct leat_held *held);
void leat_held_fini_all(struct leat_store *store);
/** Memory of unused descriptors and rows: these are never freed. */
uint64_t leat_held_free_bytes(const struct leat_store *store);
/** Tell the owner; never more than one mail per segment under way. */
void leat_held_tell(struct leat_store *store, struct leat_held *held, unsigned events);
/** Send what could not be sent before, free zombies. true: some still wait. */
bool leat_held_events_step(struct leat_store *store);
void leat_held_move(struct leat_held *held, enum leat_held_where where, struct leat_list *list);
void leat_held_release_buffer(struct leat_store *store, struct leat_held *held);
/** Fill the row from the segment and seal it in the RAM copy. */
void leat_held_row_set(struct leat_store *store, struct leat_held *held,
                       enum leat_segment_state state, unsigned flags);
void leat_held_row_free(struct leat_store *store, struct leat_held *held);
/** leat_held.damaged, in its row soon. */
void leat_held_row_damaged(struct leat_store *store, struct leat_held *held, bool damaged);
/** Slot, row, buffer and descriptor become reusable: the row is FREE, durably. */
void leat_held_free(struct leat_store *store, struct leat_held *held);
void leat_store_complain(struct leat_store *store, const char *format, ...) LEAT_PRINTF(2, 3);
/** Of one segment, of which a lost file has any number: the node log has the first few, and how many came after. */
void leat_store_complain_of(struct leat_store *store, const char *format, ...) LEAT_PRINTF(2, 3);
leat_err leat_store_scratch(struct leat_store *store) LEAT_NODISCARD;
uint64_t leat_store_cpu(const struct leat_store *store);
static inline bool leat_held_in_arena(const struct leat_held *held)
{
    return held->seg.buffer && held->pool != &held->store->pool;
}

/* requests.c */
/** Take a request in: the bytes wait for the file's next round, or the row for the catalogue's. */
void leat_round_add(struct leat_store *store, struct leat_store_req *req);
/** Whether the segment's file can still be written and read. */
leat_err leat_round_data_state(const struct leat_held *held);
/** Which bytes must be durable before the request goes on. false: none. */
bool leat_round_data_wanted(const struct leat_store_req *req, uint32_t *out_from, uint32_t *out_to);
/** The file has something for a round. */
void leat_round_file_ready(struct leat_store *store, struct leat_store_file *file);
/** A round is in flight. */
bool leat_round_running(const struct leat_store *store);
/** Something waits for a round, or one is in flight. */
bool leat_round_busy(const struct leat_store *store);
void leat_store_answer(struct leat_store *store, struct leat_store_req *req, leat_err rc);
/** Answer a request that failed: req->rc. */
void leat_round_end_failed(struct leat_store *store, struct leat_store_req *req,
                           struct leat_held *held);

/* buffer.c */
/** It is its turn: a buffer is there. */
void leat_memory_got_buffer(struct leat_store *store, struct leat_store_req *req,
                            struct leat_pool *pool, uint8_t *buffer);
/** A request that waited for memory ends without; after a RESERVE nothing stays allocated. */
void leat_memory_refuse(struct leat_store *store, struct leat_store_req *req);

/* memory.c */
void leat_memory_reserve(struct leat_store *store, struct leat_store_req *req);
void leat_memory_resume(struct leat_store *store, struct leat_store_req *req);
void leat_memory_evict(struct leat_store *store, struct leat_store_req *req);
void leat_memory_move(struct leat_store *store, struct leat_store_req *req);
void leat_memory_step(struct leat_store *store, uint64_t now_us);
uint64_t leat_memory_next_us(const struct leat_store *store);

/* arena_usage.c */
static inline struct leat_store_arena *leat_store_arena_at(struct leat_list *link)
{
    return LEAT_CONTAINER(link, struct leat_store_arena, link);
}
/** The pool that a row names, or NULL. */
struct leat_pool *leat_arenas_find(struct leat_store *store, const struct leat_row *row);
/** Is half of what an arena may have in use? Then its closed replicas are flushed without delay. */
bool leat_arenas_pressed(const struct leat_store *store);
/** Has one hardly any room left? Then what is flushed is synced at once. */
bool leat_arenas_short(const struct leat_store *store);
void leat_arenas_usage(struct leat_store *store);

/* arena.c */
leat_err leat_arenas_open(struct leat_store *store) LEAT_NODISCARD;
void leat_arenas_fini(struct leat_store *store);
void leat_arena_take(struct leat_store *store, struct leat_store_req *req);
void leat_arenas_step(struct leat_store *store, uint64_t now_us);
uint64_t leat_arenas_due_us(const struct leat_store *store);

static inline struct leat_store_req *leat_store_req_waiting(struct leat_list *link)
{
    return LEAT_CONTAINER(link, struct leat_store_req, waiting);
}
static inline struct leat_held *leat_held_by_store(const struct leat_list *link)
{
    return leat_held_of(LEAT_CONTAINER(link, struct leat_segment, by_store));
}

/* round.c */
void leat_round_step(struct leat_store *store);

/* rows.c */
/** Write the rows of what waits. false: nothing to do, or commits go first. */
bool leat_rows_round(struct leat_store *store);

/* flush.c */
/** One was asked for lately: the disk is theirs. */
bool leat_store_commits_come(const struct leat_store *store, uint64_t now_us);
void leat_flush_closed(struct leat_store *store, struct leat_held *held);
void leat_flush_step(struct leat_store *store, uint64_t now_us);
uint64_t leat_flush_next_us(const struct leat_store *store, uint64_t now_us);
bool leat_flush_sync_due(const struct leat_store *store);
/** The row says CLOSED and flushed, durably. */
void leat_flush_recorded(struct leat_store *store, struct leat_held *held);
void leat_flush_failed(struct leat_store *store, struct leat_held *held);
bool leat_flush_pressed(const struct leat_store *store);

/* scrub.c */
void leat_scrub_step(struct leat_store *store, uint64_t now_us);
uint64_t leat_scrub_next_us(const struct leat_store *store);

/* repair.c */
/** Are all bytes of this closed segment in memory, by their checksums? Uses the scratch. */
bool leat_repair_remembers(struct leat_store *store, const struct leat_held *held);
void leat_repair(struct leat_store *store, struct leat_store_req *req);

/* open.c */
leat_err leat_open_found(struct leat_store *store, bool quarantine,
                         struct leat_error *error) LEAT_NODISCARD;

/* judge.c */
/** Is this the header of the row's segment? */
bool leat_judge_header_matches(const struct leat_store *store, const struct leat_segment *seg,
                               const struct leat_scan *scan);

#endif
