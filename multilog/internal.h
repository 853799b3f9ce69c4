/* SPDX-License-Identifier: Apache-2.0 */
/* One log from the inside. Private to multilog/ (tests may include it). */
#ifndef LEAT_MULTILOG_INTERNAL_H
#define LEAT_MULTILOG_INTERNAL_H

#include <stdatomic.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/disk_read.h"
#include "multilog/index.h"
#include "multilog/log.h"
#include "multilog/producers.h"

enum {
    LOG_RUN_BYTES_MAX = 1024 * 1024,     /* gathered under one trailer, plus one batch, or a roll */
    LOG_FAST_ROLL_US = 1000 * 1000,      /* rolling faster than this: segments grow */
    LOG_SLOW_ROLL_US = 64 * 1000 * 1000, /* slower than this: they shrink again */
    LOG_RUN_CLOSE_US = 500 * 1000,       /* silent for so long: see log_run_close() */
    LOG_RESERVE_PAUSE_US = 1000 * 1000,  /* after a refused reservation */
    LOG_LEAVE_PAUSE_US = 10 * 1000 * 1000, /* the same, of a head that is in the way only */
    LOG_HELPERS = 4,                       /* DROP and EVICT requests in flight */
    LOG_HINTS = 4,                         /* readers' last places */
    LOG_COMMITS_MAX = 2,                   /* COMMIT requests in flight */
    LOG_SEALS_MAX = 16,                    /* prefixes shown to the store, not yet safe */
    LOG_WHY_BYTES = 192,
    LOG_PRODUCER_AGE_MS_MIN = 15 * 60 * 1000, /* younger state is never given up */
};

/* Why segments are missing between a segment and the previous one, where ids are missing. */
enum log_joint {
    LOG_JOINT_UNKNOWN, /* the start entry says why, and has not been read */
    LOG_JOINT_CHAINED, /* the start entry names a predecessor: the missing segment is lost */
    LOG_JOINT_JUMPED,  /* the start entry names none: an operator gave the missing segments up */
};

/* Where the bytes of a closed segment are looked for, once its file is damaged (README.md, "States"). */
enum log_repair {
    /* No node is asked for its bytes: the segment is whole, or can't be asked for yet */
    LOG_REPAIR_NONE,
    LOG_REPAIR_SOUGHT, /* this node's memory and other nodes are asked for the segment's bytes */
    LOG_REPAIR_REFUSED, /* another node's bytes came, and this node's disk refused them: tried again */
    LOG_REPAIR_LOST,    /* no node has the segment's bytes */
    /* No node had the bytes, and all nodes are asked again: the segment stays lost until the bytes come */
    LOG_REPAIR_LOST_SOUGHT,
};

/* Does the coordinator know of this owner's first segment? Nothing is acked before. */
enum log_opened {
    LOG_UNOPENED,
    LOG_OPENING,        /* asked */
    LOG_OPENING_PAUSED, /* the coordinator could not commit: again at the next care */
    LOG_OPENED,         /* committed */
};

/* Whether the log is brought to an end, and why; on_end is called at this end. */
enum log_ending {
    LOG_LIVES,
    LOG_STOPPING,  /* the segments stay; the log may go on after all */
    LOG_RELEASING, /* the segments go to another owner */
    LOG_DELETING,  /* the segments are dropped */
};

/* Whether the head has a buffer. */
enum log_hibernating {
    LOG_AWAKE,
    LOG_HIBERNATING, /* HIBERNATE is in flight */
    LOG_HIBERNATED_HERE, /* HIBERNATE is in flight, and is done on this node: copies elsewhere are waited for */
    LOG_HIBERNATED, /* the head's bytes are only in its file */
    LOG_RESUMING,   /* RESUME is in flight */
};

/* What a log that was made of stored segments has read back of the last segment. */
enum log_restored {
    LOG_WARM, /* all; or it has no segment */
    /* nothing: the last segment's start entry says whether older segments are missing */
    LOG_FRONT_UNKNOWN,
    LOG_FRONT_UNTOLD, /* the start entry does not say that: the whole segment is read */
    LOG_UNLOADED,     /* where the log begins; not its producers, nor the state of leat_log_app */
};

/* Whether segments that are not here come from other nodes: leat_log_tail.backfill_follows, leat_log_older_done() and
 * leat_log_older_again(). */
enum log_backfill {
    LOG_BACKFILL_NONE,
    LOG_BACKFILL_FOLLOWS, /* the segments come, or all nodes are asked for the first time */
    LOG_BACKFILL_LOOKED,  /* all nodes were asked: segments that are not here are missing */
    LOG_BACKFILL_AGAIN,   /* the same, and all are asked again */
};

/* Whether an operator gives up missing or damaged records; on_skipped is called once, at the end. */
enum log_skip {
    LOG_SKIP_NONE,
    LOG_SKIP_FRONT,  /* segments that are missing before the first one go first */
    LOG_SKIP_GOES,   /* the next place is looked for */
    LOG_SKIP_ASKED,  /* GIVE_UP of a segment is in flight */
    LOG_SKIP_FAILED, /* the store has refused GIVE_UP: the rest is left as it is */
};

/* The parts of a segment that an operator gives up: the parts that leat_log_damage_find() and leat_log_passed_over()
 * named when the loss was accepted. */
enum {
    LOG_NAMED_RECORDS = 1, /* its damaged records */
    LOG_NAMED_FRONT = 2,   /* the records that are missing before it */
    LOG_NAMED_PASSED = 4,  /* bytes that a start passed over */
};

/* A started segment of the log, by id ascending in log->slots. */
struct log_slot {
    struct leat_segment *seg;
    uint32_t file_reads; /* in flight: its slot in the file must stay */
    enum log_joint joint;
    bool closed;   /* its close entry is safe */
    bool changing; /* the store is about to take or give its buffer */
    bool evicting; /* wanted back by the store */
    bool dropping;
    enum log_repair repair; /* log_slot_repair_enter() */
    /* The bytes are looked for in memory, or written: leat_log_repair_begin() to _end() */
    bool repair_held;
    bool given_up;       /* its unreadable records; see leat_segment */
    bool front_given_up; /* the records that are missing before it */
    unsigned named;      /* LOG_NAMED_ bits */
    uint64_t
        repair_not_before_us; /* no other node had the bytes: nodes are asked again after that */
    bool mail_due; /* readers hold its bytes; `unpinned` comes when the last reader is done */
    /* The node log has a line that the segment's bytes are damaged; that segments before it are missing. A reader
     * there tries again, perhaps for ever, and adds no second line. */
    bool damage_told, hole_told;
};

static inline bool log_slot_is_sought(const struct log_slot *slot)
{
    return slot->repair == LOG_REPAIR_SOUGHT || slot->repair == LOG_REPAIR_REFUSED ||
           slot->repair == LOG_REPAIR_LOST_SOUGHT;
}

static inline bool log_slot_is_lost(const struct log_slot *slot)
{
    return slot->repair == LOG_REPAIR_LOST || slot->repair == LOG_REPAIR_LOST_SOUGHT;
}

/* A prefix that ends with a trailer. */
struct log_seal {
    uint32_t bytes;
    uint64_t offset; /* offset of the next record */
};

/* A started segment that this owner writes. */
struct log_open {
    struct leat_segment *seg; /* NULL: none */
    struct leat_entry_writer writer;
    struct leat_index *index;
    uint32_t start_end;                  /* end of the start entry's trailer */
    uint32_t safe_bytes;                 /* sealed and as safe as the log's durability asks */
    uint32_t acked_bytes;                /* safe, and told */
    uint64_t sealed_offset, safe_offset; /* next offset at those prefixes */
    /* Values of seg->sealed_bytes that are not safe yet, oldest first: a COMMIT is answered with one of them. */
    struct log_seal seals[LOG_SEALS_MAX];
    unsigned seal_count;
    uint64_t record_count;
    int64_t max_timestamp_ms;
    /* Bytes of the head when a trailer last said that everything before it is acked */
    uint32_t run_closed_bytes;
    uint32_t close_acked_bytes; /* SUBTLE in roll.c: the close trailer's own field */
};

struct log_hint {
    uint64_t segment, offset;
    uint32_t position; /* of an entry: the batch of `offset`, or an entry before this batch */
};

struct leat_log {
    const struct leat_env *env;
    struct leat_store_port store_port;
    struct leat_timers *timers;
    struct leat_log_options options;
    char *stream_name;

    enum leat_log_state state; /* log_state_enter() */
    char why[LOG_WHY_BYTES];
    leat_err stopped_rc;

    /* Segments: slots[slot_begin .. slot_begin + slot_count). */
    struct log_slot *slots;
    bool hole_told; /* log_slot.hole_told for records that are missing at the end */
    uint32_t slot_begin, slot_count, slot_capacity;
    /* Retained. If the first segment's id is below the first slot's, the segments between are missing
     * (log_front_is_missing()). */
    uint64_t first_segment, first_offset; /* the offset may lie in a later segment */
    uint64_t trim_segment, trim_offset;   /* trim entry written, not yet acked; == first: none */
    bool trim_written;
    uint64_t trim_ack_segment;
    uint32_t trim_ack_bytes;
    struct leat_list trims; /* struct leat_log_trim, in the order of asking */
    bool begin_written;     /* the head's start entry names begin_offset, not yet acked */
    uint64_t begin_offset, begin_segment;
    /* The offset in the last acked start entry: a restart finds no lower offset */
    uint64_t begin_told;
    uint64_t closed_bytes, memory_bytes;
    bool evictions_wanted;
    unsigned drops; /* in flight */

    /* Writing. */
    struct log_open head, old; /* old: rolled away from, its close entry not yet safe */
    uint64_t next_offset;
    uint64_t next_segment;          /* id of the next segment to start */
    struct leat_prefix_id previous; /* of next_segment - 1, when there is no head */
    uint64_t gathered_us;           /* last append: the clocks, read once a turn */
    int64_t gathered_wall_ms;
    _Atomic uint64_t acked_offset;
    struct leat_list waiting; /* struct leat_append by ack_position */
    uint64_t appended_records, appended_bytes;

    /* Opening and rolling. */
    struct leat_segment *next; /* reserved, its header written; NULL: none */
    struct leat_entry_writer next_writer;
    struct leat_index *next_index;
    struct leat_store_req reserve, close, hibernate, helpers[LOG_HELPERS];
    /* COMMIT requests in flight, oldest first; all for one segment. */
    struct log_commit {
        struct leat_store_req req;
        struct log_seal asked;
    } commits[LOG_COMMITS_MAX];
    unsigned commit_first, commit_count;
    bool reserving, closing;          /* requests in flight */
    enum log_hibernating hibernating; /* log_hibernating_enter() */
    bool helper_busy[LOG_HELPERS];
    uint32_t roll_capacity; /* the capacity that the pace of rolling asks for */
    bool rolling_fast;
    uint64_t rolled_us;
    enum log_opened opened; /* log_opened_enter() */
    leat_err reserve_rc;
    /* No segment is reserved before this time: the heap has no room for the descriptor and row of a stored segment.
     * spent: nor for a segment whose start frees other segments. */
    uint64_t memory_not_before_us;
    bool memory_spent;
    uint64_t reserve_not_before_us;

    bool roll_wanted; /* the head's data has all expired: only a closed segment can be trimmed */
    bool copy_wanted; /* the hibernated head lacks a copy, and is to be resumed to get a copy */
    /* The head's memory is to be given back: it rolls when a successor can be had. */
    bool leave_wanted;
    uint64_t leave_not_before_us;

    /* What appends wait for. */
    bool room_wanted;
    uint32_t room_bytes; /* largest entry payload that was refused */
    bool producers_wanted;
    uint64_t producers_not_before_us; /* the memory budget had no room for more producers */

    struct leat_producers producers;
    enum log_restored restored; /* log_restored_enter() */
    bool warming;               /* a read for this is in flight */
    /* Made after an accepted loss: older segments that do not come are lost, too */
    bool front_accepted;
    /* LOG_FRONT_UNKNOWN: so many bytes of the last segment are read; 0: a block */
    uint32_t front_bytes;
    bool jumped;        /* an operator gave up the records after the last segment */
    enum log_skip skip; /* log_skip_enter() */
    void (*on_skipped)(void *arg, struct leat_log *log);
    void *on_skipped_arg;
    struct leat_store_req give_up; /* a range that is skipped, in its segment's row */
    uint32_t passed_seen; /* bytes that an operator has seen, while this is being recorded */
    struct leat_disk_read warm;
    struct leat_list warm_link; /* waits for bytes of options.restore_budget */
    size_t warm_bytes;          /* taken of options.restore_budget */

    /* Reading. */
    struct leat_list stalled_reads; /* wait until a segment has stopped changing */
    uint32_t reads_in_flight;
    unsigned hint_next;

    bool dirty, in_step, clocks_read;
    enum log_ending ending; /* log_ending_enter() */
    bool resting;           /* the log does nothing any more: leat_log_rest(), or it was released */
    enum log_backfill backfill; /* log_backfill_enter() */
    bool older_node_down; /* missing segments may be on a node that was down at the last look */
    bool holes;           /* of leat_log_tail, until the holes have ended */
    bool reads_expire;    /* reads that wait for older segments are answered now */
    /* Bytes after the end of a segment may have been passed over: damage.c walks the table */
    bool passed_look;
    bool damage_look; /* a segment may be damaged or missing: damage.c walks the table */
    bool
        unsought; /* the bytes of a damaged segment could not be asked for: the next care asks again */
    void (*on_end)(void *arg, struct leat_log *log); /* of stop or delete */
    void *on_end_arg;
    /* The last member: a read behind the hints is a read behind the log, which the address sanitizer sees. */
    struct log_hint hints[LOG_HINTS];
};

/* Another node has the segment whole, and this node's disk does not take it: readers here are told to try again. */
static inline bool log_slot_is_refused(const struct leat_log *log, const struct log_slot *slot)
{
    return slot->repair == LOG_REPAIR_REFUSED && !slot->dropping && !slot->given_up &&
           slot->seg->next_offset > log->first_offset;
}

static inline uint64_t log_now(const struct leat_log *log)
{
    return log->env->clock->now_us(log->env->clock->ctx);
}
static inline uint64_t log_acked(const struct leat_log *log)
{
    return atomic_load_explicit(&log->acked_offset, memory_order_relaxed);
}
static inline struct log_slot *log_slot_at(const struct leat_log *log, uint32_t index)
{
    LEAT_ASSERT_CMP(index, <, log->slot_count);
    return &log->slots[log->slot_begin + index];
}
static inline bool log_is_unloaded(const struct leat_log *log)
{
    return log->restored != LOG_WARM;
}
static inline bool log_front_is_unknown(const struct leat_log *log)
{
    return log->restored == LOG_FRONT_UNKNOWN || log->restored == LOG_FRONT_UNTOLD;
}
static inline bool log_backfill_runs(const struct leat_log *log)
{
    return log->backfill == LOG_BACKFILL_FOLLOWS || log->backfill == LOG_BACKFILL_AGAIN;
}
static inline bool log_is_opened(const struct leat_log *log)
{
    return log->opened == LOG_OPENED;
}
/* The log takes no new appends; appends that have begun are finished. */
static inline bool log_is_stopping(const struct leat_log *log)
{
    return log->ending == LOG_STOPPING || log->ending == LOG_RELEASING;
}
static inline bool log_is_hibernated(const struct leat_log *log)
{
    return log->hibernating == LOG_HIBERNATED || log->hibernating == LOG_RESUMING;
}
/* HIBERNATE or RESUME is in flight. */
static inline bool log_hibernating_changes(const struct leat_log *log)
{
    return log->hibernating != LOG_AWAKE && log->hibernating != LOG_HIBERNATED;
}
/* The close entry of the segment that was rolled away from has its trailer. */
static inline bool log_old_close_is_sealed(const struct leat_log *log)
{
    return log->old.writer.sealed_bytes == log->old.writer.used;
}
/* Segments before the first segment here are missing. */
static inline bool log_front_is_missing(const struct leat_log *log)
{
    return log->slot_count && log->first_segment < log_slot_at(log, 0)->seg->id.v;
}
/* SUBTLE: segments that no node had are called missing until they are here, also during a second look.
 *  1. No node has segment 2. A reader is told so, and tries again, as clients do.
 *  2. For the second read all nodes are asked once more, which takes seconds. Then the read is refused, and the
 *     reader tries again.
 *  3. If segment 2 did not count as missing during a look, the log would report no trouble for as long as a reader is
 *     refused. */
static inline bool log_older_come(const struct leat_log *log)
{
    return log->backfill == LOG_BACKFILL_FOLLOWS;
}
/* The log waits, and has no segments: where it begins is not known either. */
static inline bool log_front_is_elsewhere(const struct leat_log *log)
{
    return log->state == LEAT_LOG_WAITING && log->slot_count == 0 && log->next_segment > 0;
}

/* Nothing below calls what calls it: log.c is above all, state.c below all. */

/* state.c */
void log_mark_dirty(struct leat_log *log);
/* No request of the log is in flight at the store, and no read at the disk. */
bool log_is_quiet(const struct leat_log *log);
/** The only functions that change these states; README.md has the diagrams. */
void log_opened_enter(struct leat_log *log, enum log_opened to);
void log_restored_enter(struct leat_log *log, enum log_restored to);
void log_hibernating_enter(struct leat_log *log, enum log_hibernating to);
void log_backfill_enter(struct leat_log *log, enum log_backfill to);
void log_skip_enter(struct leat_log *log, enum log_skip to);
void log_slot_repair_enter(struct log_slot *slot, enum log_repair to);
void log_ending_enter(struct leat_log *log, enum log_ending to,
                      void (*on_end)(void *arg, struct leat_log *log), void *arg);
/** rc: what appends get in STOPPED. The node log is not told. */
void log_state_enter(struct leat_log *log, enum leat_log_state to, leat_err rc, const char *why);
/** STOPPED, with a line in the node log; nothing if it is already. */
void log_fail(struct leat_log *log, leat_err rc, const char *why);
void log_fail_finally(struct leat_log *log, leat_err rc, const char *what);
void log_request(struct leat_log *log, struct leat_store_req *req, enum leat_store_req_kind kind,
                 struct leat_segment *seg, void (*on_done)(struct leat_store_req *req));

/* slots.c */
struct log_slot *log_slot_find(const struct leat_log *log, uint64_t segment);
/** Index of the first segment held with at least this id; slot_count: none. */
uint32_t log_slot_from(const struct leat_log *log, uint64_t segment);
/** Room for so many more. */
leat_err log_slots_reserve(struct leat_log *log, uint32_t count) LEAT_NODISCARD;
void log_slot_push(struct leat_log *log, struct leat_segment *seg);
struct log_open *log_open_of(struct leat_log *log, const struct leat_segment *seg);
void log_segment_own(struct leat_log *log, struct leat_segment *seg);
/** No reader holds the slot's bytes; otherwise its owner is told when the last reader is done. */
bool log_slot_is_unpinned(struct log_slot *slot);

/* head.c */
uint32_t log_keep_free(const struct log_open *open);
bool log_head_fits(const struct leat_log *log, uint32_t payload_bytes);
/** Why the log takes no appends now; LEAT_OK: it does. */
leat_err log_refusal(const struct leat_log *log, struct leat_error *error);
/** LEAT_E_DISK_FULL, LEAT_E_NO_MEMORY: there is no place for a segment more; the log asks again after a while. spare:
 * for a segment that is to free other segments. */
leat_err log_place_refusal(const struct leat_log *log, bool spare);
/** There is no memory for producers that are not known here; the log asks again after a while. */
bool log_producers_are_refused(const struct leat_log *log);

/* seal.c */
/** Whether a recovery may find the batches that have gathered in the head. */
bool log_may_seal(const struct leat_log *log);
/** No batch comes any more: write a trailer that says that the last batches are acked. */
void log_run_close(struct leat_log *log);
void log_step_seal(struct leat_log *log);
/** COMMIT requests that may be in flight at once. */
unsigned log_commits_max(const struct leat_log *log);

/* retain.c */
bool log_trim_is_pending(const struct leat_log *log);
/** An acked start or trim entry has this offset: the log begins no earlier. */
void log_begin_note(struct leat_log *log, uint64_t offset);
void log_retain(struct leat_log *log);
/** A trim entry is wanted that gives up the first so many segments held. */
void log_trim_to(struct leat_log *log, uint32_t count);
/** So have all records of the head. */
bool log_head_has_expired(const struct leat_log *log, int64_t now_ms);

/* log.c */
/** The only function in which a log goes on: compare what is wanted with what is reached, start the next action,
 * return. */
void log_step(struct leat_log *log);

/* roll.c */
void log_step_room(struct leat_log *log);
void log_step_close(struct leat_log *log);
void log_drop_next(struct leat_log *log);
uint32_t log_start_bytes(const struct leat_log *log);

/* ack.c */
void log_step_safe(struct leat_log *log);
void log_step_ack(struct leat_log *log);
void log_fail_waiting(struct leat_log *log, leat_err rc);

/* warm.c */
void log_step_front(struct leat_log *log);
void log_step_warm(struct leat_log *log);
void log_warm_leave(struct leat_log *log);

/* repair.c */
/** The segment's file has other bytes than it should. true: a reader is to try again, since other nodes are asked for
 * the bytes, or will be. */
bool log_slot_is_repaired(struct leat_log *log, struct log_slot *slot);
/** Ask for the bytes of damaged segments that could not be asked for before. */
void log_repairs_ask(struct leat_log *log);

/* damage.c */
/** Name the records that are to be given up from now on: all that are known to be missing or damaged now. */
void log_damage_name(struct leat_log *log);
/** Start to give up the next named range of records. false: no range is left. */
bool log_damage_give_up(struct leat_log *log);
/** Records are missing before table row i, or an operator gave them up. */
bool log_gap_has_records(const struct leat_log *log, uint32_t i);
/** The node log has what is missing before table row i, if anything is. */
void log_gap_tell(const struct leat_log *log, uint32_t i);

/* move.c */
bool log_release_goes_on(struct leat_log *log);

/* care.c */
void log_step_drop(struct leat_log *log);
void log_step_end(struct leat_log *log);
void log_step_resume(struct leat_log *log);

/* trim.c */
/** A trim entry is to be written, and has room. */
bool log_trim_is_due(const struct leat_log *log);
void log_step_trim(struct leat_log *log);
void log_step_trimmed(struct leat_log *log);
void log_step_skip(struct leat_log *log);
void log_step_begin(struct leat_log *log);
void log_step_begun(struct leat_log *log);
/** A start entry is about to be written: it names what is asked for. */
void log_begin_take(struct leat_log *log);

/* read.c */
void log_step_reads(struct leat_log *log);
leat_err log_read_begin(struct leat_log *log, struct leat_read *read) LEAT_NODISCARD;
struct leat_position log_end_position(const struct leat_log *log);
/** Highest timestamp of a segment. */
int64_t log_newest_of(struct leat_log *log, const struct log_slot *slot);
static inline uint64_t log_group_of(uint64_t segment)
{
    return segment / LEAT_SEGMENTS_PER_GROUP;
}

#endif
