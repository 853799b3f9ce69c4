/* SPDX-License-Identifier: Apache-2.0 */
/* A log on its core: the logs' table, their care, how they stop and go. Thread: the log's core. */
#ifndef LEAT_BROKER_DATA_PARTITION_H
#define LEAT_BROKER_DATA_PARTITION_H

#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"

struct leat_append_request;

enum {
    LEAT_OLDER_TICKS = 5, /* segments that were on no node are looked for again after so many */
    LEAT_OLDER_READ_US = 1000 * 1000, /* ... and at a read of such a segment, at most this often */
    LEAT_OLDER_READ_TICKS = 10,       /* a read waits for older segments for so many */
};

/* What a partition does (README.md, "States"). Only SERVES takes new work. A partition is given up beside this state:
 * give_up. */
enum leat_partition_state {
    LEAT_PARTITION_SERVES,
    LEAT_PARTITION_ASKS_LOSS, /* the coordinators are asked whether what its end has lost is given up */
    /* The loss is committed: the log stops, and is made anew; recover.c goes on */
    LEAT_PARTITION_LOSS_STOPS,
    LEAT_PARTITION_DRAINS,  /* its log stops for a move */
    LEAT_PARTITION_DRAINED, /* its log has stopped for a move, and the coordinators are asked */
    LEAT_PARTITION_GOES,    /* deleted, given up, or stopped with its core */
};

/* Whether segments of the log that are not here are looked for on other nodes (README.md, "States"). */
enum leat_backfill {
    LEAT_BACKFILL_NONE,      /* nothing is missing that another node may have */
    LEAT_BACKFILL_UNDER_WAY, /* missing segments are looked for, or come: a takeover is under way */
    LEAT_BACKFILL_DUE,       /* looked for each LEAT_OLDER_TICKS, and when one is read */
};

struct leat_partition {
    struct leat_partition *hash_next;
    struct leat_log_ref ref;
    struct leat_core *core;
    struct leat_log *log;
    /* The core's (stream_table.c). The end of a deletion frees the stream, and a log that is going may last longer:
     * only a log that is not going reads it. */
    struct leat_stream *stream;
    struct leat_primary_log *copies; /* NULL: this node's copy is the only one */
    struct leat_groups *groups;      /* of a home log */
    struct leat_epoch epoch;
    enum leat_partition_state state; /* leat_partition_enter() */
    bool tail_missing; /* no node has the log's end: the log waits, and takes no appends */
    bool opens_alone;  /* "opened" was refused for several logs at once: ask for this log alone */
    bool skipping_missing; /* an operator gives up missing segments before the log's first */
    /* Its last segment is damaged here: other nodes have this segment, and the log is made anew. NULL: not damaged. */
    const struct leat_segment *last_damaged;
    /* The log goes: another node owns it. */
    struct give_up *give_up;
    /* an operator gives up the records that its end has lost; NULL: no such call */
    struct recover_call *recover;
    struct leat_move_part *moving; /* DRAINS: to be handed over */
    /* whether its first segments are damaged was not known when the log was made */
    bool damage_untold;
    struct leat_segment_range unsure; /* see leat_takeover_unsure() */
    enum leat_backfill backfill;      /* leat_backfill_enter() */
    /* some segments are missing between other segments: these are fetched first, the newest before all */
    bool holes;
    /* the pass over all places goes on with the segments before this segment */
    uint64_t hole_below;
    /* a node was down in this pass: it may have the missing segments */
    bool backfill_pass_node_down;
    bool backfill_node_down; /* ... in the last pass that ended */
    uint32_t backfill_ticks;
    uint64_t backfill_looked_us; /* when a read last started a search for older segments */
    uint32_t reads_ticks;        /* how many ticks reads have waited */
    uint32_t care_index;
    struct leat_list dirty, care, opening, home;
    struct leat_list waiters; /* struct leat_fetch_item.waiting */
    struct leat_list blocked; /* struct leat_room_wait.by_log */
    /* All segments of a log that waits; after an accepted loss the log is made anew with them. */
    struct leat_segment **segs;
    size_t seg_count;
    uint64_t highest_segment, highest_offset;
    struct leat_prefix_id highest_prefix_id; /* of a segment on another node; {0, 0}: not known */
};

/** The step from one state to the next. Thread: the log's core. */
static inline void leat_partition_enter(struct leat_partition *partition,
                                        enum leat_partition_state to)
{
    LEAT_ASSERT_OWNER(partition->core);
    static const unsigned follow[] = {
        [LEAT_PARTITION_SERVES] = 1u << LEAT_PARTITION_ASKS_LOSS | 1u << LEAT_PARTITION_DRAINS |
                                  1u << LEAT_PARTITION_GOES,
        [LEAT_PARTITION_ASKS_LOSS] = 1u << LEAT_PARTITION_SERVES | 1u << LEAT_PARTITION_LOSS_STOPS,
        [LEAT_PARTITION_LOSS_STOPS] = 1u << LEAT_PARTITION_SERVES,
        [LEAT_PARTITION_DRAINS] = 1u << LEAT_PARTITION_DRAINED | 1u << LEAT_PARTITION_GOES,
        [LEAT_PARTITION_DRAINED] = 1u << LEAT_PARTITION_SERVES | 1u << LEAT_PARTITION_GOES,
        [LEAT_PARTITION_GOES] = 0,
    };
    LEAT_ASSERT(follow[partition->state] & 1u << to);
    partition->state = to;
}
/** The step from one state to the next. From NONE, too, as a takeover that ends or is put off may have begun before the
 * log went to another node and came back. Thread: the log's core. */
static inline void leat_backfill_enter(struct leat_partition *partition, enum leat_backfill to)
{
    LEAT_ASSERT_OWNER(partition->core);
    static const unsigned follow[] = {
        [LEAT_BACKFILL_NONE] = 1u << LEAT_BACKFILL_DUE | 1u << LEAT_BACKFILL_NONE,
        [LEAT_BACKFILL_UNDER_WAY] = 1u << LEAT_BACKFILL_DUE | 1u << LEAT_BACKFILL_NONE,
        [LEAT_BACKFILL_DUE] =
            1u << LEAT_BACKFILL_UNDER_WAY | 1u << LEAT_BACKFILL_DUE | 1u << LEAT_BACKFILL_NONE,
    };
    LEAT_ASSERT(follow[partition->backfill] & 1u << to);
    partition->backfill = to;
}
/** With the next tick. */
static inline void leat_backfill_soon(struct leat_partition *partition)
{
    leat_backfill_enter(partition, LEAT_BACKFILL_DUE);
    partition->backfill_ticks = LEAT_OLDER_TICKS - 1;
}
/** The partition takes no new work. */
static inline bool leat_partition_goes(const struct leat_partition *partition)
{
    return partition->state != LEAT_PARTITION_SERVES;
}
static inline bool leat_partition_loss_stops(const struct leat_partition *partition)
{
    return partition->recover != NULL && partition->state == LEAT_PARTITION_LOSS_STOPS;
}

struct leat_opener {
    struct leat_coordinate request;
    struct leat_core *core;
    uint32_t count, version;
    struct leat_log_ref refs[LEAT_OPENER_LOGS_MAX];
};

/** A log that the stopping core has counted is hibernated, or gone. Once for each. */
void leat_core_log_stopped(struct leat_core *core);
/** Stop a log that the stopping core has counted. */
void leat_core_log_stop(struct leat_core *core, struct leat_partition *partition);
leat_err leat_partition_create(struct leat_core *core, struct leat_stream *stream,
                               struct leat_log_ref ref, struct leat_epoch epoch,
                               struct leat_segment *const *segs, size_t seg_count,
                               const struct leat_log_tail *tail,
                               struct leat_partition **out_partition) LEAT_NODISCARD;
/** (Re)make the log of a partition that has none. */
leat_err leat_partition_open(struct leat_partition *partition, struct leat_segment *const *segs,
                             size_t seg_count, const struct leat_log_tail *tail) LEAT_NODISCARD;
/** The log is gone or stopped: take it out of the tables and free it. */
void leat_partition_destroy(struct leat_partition *partition);
/** Wake the requests that wait for the partition: they look again. */
void leat_partition_wake(struct leat_partition *partition);
/** Commit "opened" for logs whose first segment has started. */
void leat_partition_send_openings(struct leat_core *core);
/** From now on the log gets its care every second again. */
void leat_partition_watch(struct leat_partition *partition);
/** What a reader is told when a read of the log has ended. Segments that are missing here may be on a node that is
 * down: then the answer is LEAT_E_STARTING, which tells the reader to try again, and not to pass over them. Thread:
 * the log's core. */
leat_err leat_partition_hope(const struct leat_partition *partition, const struct leat_read *read);
/** The read did not find segments that may still come. */
bool leat_partition_lacks(const struct leat_partition *partition, const struct leat_read *read);
/** Called every tick: retention, hibernating. */
void leat_partition_care(struct leat_core *core);
/** Asserts what is true of a core's logs and replicas between two turns: leat_actor_ops.check of a core. */
void leat_core_check(const void *actor);
/* ---- holes.c: segments that a log lacks between the segments that are here ---- */
/** Ids are missing between these. */
bool leat_takeover_has_holes(struct leat_segment *const *segs, size_t count) LEAT_NODISCARD;
/** Of which segments a log that is made with these can't say whether they are its own. Thread: its core. */
struct leat_segment_range leat_takeover_unsure(const struct leat_partition *partition,
                                               struct leat_segment *const *segs, size_t count,
                                               const struct leat_log_tail *tail) LEAT_NODISCARD;
/* ---- retire.c ---- */
/** A log of a stream that was deleted goes, unless it goes already. */
void leat_partition_delete(struct leat_core *core, struct leat_partition *partition);

#endif
