/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come: what is under way of each. See handover.h; private to takeover*.c.
 *
 * All of it on core 0, where the replicas are, but for the moment in which a segment is given to a log on the
 * log's own core. takeover.c: who is next; takeover_get.c: a segment becomes this node's own, wherever it is;
 * takeover_home.c: its log is made, or gets it. */
#ifndef LEAT_BROKER_OWNERSHIP_TAKEOVER_H
#define LEAT_BROKER_OWNERSHIP_TAKEOVER_H

#include "base/disk_read.h"
#include "broker/data/begun.h"
#include "broker/net/core.h"
#include "broker/ownership/below.h"
#include "broker/ownership/handover.h"

/* What a takeover does (README.md, "A log that comes"). From COMPLETE on it has ended, and tells the log that no more
 * segments come now; the state says why. */
enum takeover_state {
    TAKEOVER_TAIL,      /* the last segment, with which the log is made */
    TAKEOVER_ABSENT,    /* that segment is on no node: the log is made without it, and waits */
    TAKEOVER_OLDER,     /* the one before the last that came */
    TAKEOVER_COMPLETE,  /* nothing is missing */
    TAKEOVER_NONE_LEFT, /* the same: what was in front went with what an operator gave up */
    TAKEOVER_MISSING,   /* the next one is on no node */
    TAKEOVER_NODE_DOWN, /* the same, and a node was down when it was looked for */
};

struct leat_takeover {
    struct leat_list link;
    struct leat_mail mail;
    struct leat_node *node;
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint32_t home;
    struct leat_tail_record tail;
    enum takeover_state state; /* takeover_enter() */
    bool busy;                 /* something is under way that comes back by itself */
    bool again;                /* looked for before: a node that has it had time to say so */
    bool all_asked;            /* the last time no node was down */
    bool behind;               /* another one of the same log has not ended yet */
    bool over;                 /* a later epoch's is behind this one */
    bool whole;                /* the log knows that this ended, and lacks no segment */
    uint64_t
        hole_behind; /* from OLDER on: the segment after the gap that is filled; 0: the gap is before all segments */
    /* The segment that is wanted now; extent {0, 0}: nothing names it, the newest up to there. */
    uint64_t segment, next_offset;
    struct leat_extent extent;
    struct leat_below_found left; /* nothing names it: others that it may be, too */
    uint64_t first_retained;
    struct leat_segment_range unsure; /* whole: of the log */
    struct leat_segment *seg;         /* adopted, on its way to the log */
    struct leat_start start;          /* its */
    uint64_t again_us, since_us, missing_us;
    unsigned failures, nowhere; /* in a row; of these, that no node had it */
    leat_err rc;                /* of giving it to the log */
    union {
        struct leat_backup_pull pull;
        struct leat_below below;
    };
    struct leat_disk_read read; /* of the start entry */
    uint32_t start_of;          /* of the segment that is read: all its bytes */
};

static inline struct leat_core *takeover_core(const struct leat_takeover *takeover)
{
    return &takeover->node->cores[0];
}

/** The step from one state to the next. Thread: core 0. */
static inline void takeover_enter(struct leat_takeover *takeover, enum takeover_state to)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    static const unsigned follow[] = {
        [TAKEOVER_TAIL] = 1u << TAKEOVER_ABSENT | 1u << TAKEOVER_OLDER | 1u << TAKEOVER_COMPLETE,
        [TAKEOVER_ABSENT] = 1u << TAKEOVER_TAIL,
        [TAKEOVER_OLDER] = 1u << TAKEOVER_OLDER | 1u << TAKEOVER_COMPLETE |
                           1u << TAKEOVER_NONE_LEFT | 1u << TAKEOVER_MISSING |
                           1u << TAKEOVER_NODE_DOWN,
        [TAKEOVER_COMPLETE] = 0,
        [TAKEOVER_NONE_LEFT] = 0,
        [TAKEOVER_MISSING] = 0,
        [TAKEOVER_NODE_DOWN] = 0,
    };
    LEAT_ASSERT(follow[takeover->state] & 1u << to);
    takeover->state = to;
}
/** It looks for the segment that the log is made with. */
static inline bool takeover_wants_tail(const struct leat_takeover *takeover)
{
    return takeover->state == TAKEOVER_TAIL || takeover->state == TAKEOVER_ABSENT;
}
static inline bool takeover_has_ended(const struct leat_takeover *takeover)
{
    return !takeover_wants_tail(takeover) && takeover->state != TAKEOVER_OLDER;
}
/** It has ended, and found all that there was to find. */
static inline bool takeover_is_complete(const struct leat_takeover *takeover)
{
    return takeover->state == TAKEOVER_COMPLETE || takeover->state == TAKEOVER_NONE_LEFT;
}

/* ---- takeover.c ---- */
/** Zeros but what names it; NULL: no memory. Thread: its home core. */
struct leat_takeover *takeover_create(struct leat_core *core, struct leat_log_ref ref,
                                      struct leat_epoch epoch);
/** To core 0: taken, or freed where the same is under way already. Thread: its home core. */
void takeover_send(struct leat_takeover *takeover);
void takeover_free(struct leat_takeover *takeover);
/** Look soon whether there is something to do. */
void takeover_kick(struct leat_core *core);
/** Not now: somewhat later. */
void takeover_pause(struct leat_takeover *takeover, uint64_t us);

/* ---- takeover_get.c ---- */
/** Its next segment: what is here is adopted, else it is fetched; then takeover_start_read(). */
void takeover_get(struct leat_core *core, struct leat_takeover *takeover);
/** What the segment says of the one before; then takeover_to_home(). */
void takeover_start_read(struct leat_takeover *takeover);

/* ---- takeover_home.c ---- */
/** The log is made, gets its next segment, or is told that no more come: by the state. */
void takeover_to_home(struct leat_takeover *takeover);
/** Recovery has given the streamlet here, not decided where this log of it ends, and heard all nodes: it is made
 * as one that waits. Before that clients are told to try again: a node that is down may come back with it. */
void takeover_stand_in(struct leat_core *core, const struct leat_begun_log *row);
/** The log could not take it: it goes back to where it came from. false: no memory. */
bool takeover_seg_back(struct leat_takeover *takeover);

#endif
