/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come: the state of each takeover. See handover.h; private to takeover*.c.
 *
 * All steps run on core 0, which has the replicas, except the moment in which the log's own core gets a segment.
 * takeover.c: which takeover goes on next; takeover_get.c: a segment becomes this node's own, wherever it is;
 * takeover_home.c: the log is made, or gets the segment. */
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
    TAKEOVER_OLDER,     /* the segment before the last one that came */
    TAKEOVER_COMPLETE,  /* nothing is missing */
    TAKEOVER_NONE_LEFT, /* the same: an operator gave up the older segments */
    TAKEOVER_MISSING,   /* the next segment is on no node */
    TAKEOVER_NODE_DOWN, /* the same, and a node was down during the search */
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
    bool busy;                 /* an answer is awaited */
    bool repeated;             /* a repeated search: a node with the segment had time to say so */
    bool all_asked;            /* the last time no node was down */
    bool queued;               /* another takeover of the same log has not ended yet */
    bool replaced;             /* a takeover of a later epoch waits for this one */
    bool whole;                /* the log knows that this takeover ended, and lacks no segment */
    uint64_t
        hole_end; /* from OLDER on: the segment after the gap that is filled; 0: the gap is before all segments */
    /* The segment that is wanted now; prefix_id {0, 0}: nothing names a prefix id, the newest segment up to there is
     * wanted. */
    uint64_t segment, next_offset;
    struct leat_prefix_id prefix_id;
    struct leat_below_found left; /* nothing names a prefix id: the candidates that are left */
    uint64_t first_retained;
    struct leat_segment_range unsure; /* whole: of the log */
    struct leat_segment *seg;         /* adopted, on its way to the log */
    struct leat_start start;          /* of seg */
    uint64_t again_us, since_us, missing_us;
    unsigned failures, nowhere; /* in a row; nowhere: failures where no node had the segment */
    leat_err rc;                /* from giving seg to the log */
    union {
        struct leat_backup_pull pull;
        struct leat_below below;
    };
    struct leat_disk_read read; /* of the start entry */
    uint32_t segment_bytes;     /* length of the segment that is read, in bytes */
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
    struct leat_takeovers *takeovers = takeover_core(takeover)->takeovers;
    takeovers->older_count -= takeover->state == TAKEOVER_OLDER;
    takeovers->older_count += to == TAKEOVER_OLDER;
    takeover->state = to;
}
/** The takeover looks for the segment that the log is made with. */
static inline bool takeover_wants_tail(const struct leat_takeover *takeover)
{
    return takeover->state == TAKEOVER_TAIL || takeover->state == TAKEOVER_ABSENT;
}
static inline bool takeover_has_ended(const struct leat_takeover *takeover)
{
    return !takeover_wants_tail(takeover) && takeover->state != TAKEOVER_OLDER;
}
/** The takeover has ended, and no segment is missing. */
static inline bool takeover_is_complete(const struct leat_takeover *takeover)
{
    return takeover->state == TAKEOVER_COMPLETE || takeover->state == TAKEOVER_NONE_LEFT;
}

/* ---- takeover.c ---- */
/** All fields zero, except the log, the epoch and the home core; NULL: no memory. Thread: its home core. */
struct leat_takeover *takeover_create(struct leat_core *core, struct leat_log_ref ref,
                                      struct leat_epoch epoch);
/** To core 0, which takes the takeover, or frees it if the same takeover is under way already. Thread: its home core.
 */
void takeover_send(struct leat_takeover *takeover);
void takeover_free(struct leat_takeover *takeover);
/** Look soon whether there is something to do. */
void takeover_kick(struct leat_core *core);
/** Not now: somewhat later. */
void takeover_pause(struct leat_takeover *takeover, uint64_t us);

/* ---- takeover_get.c ---- */
/** Its next segment: a replica here is adopted, else the segment is fetched; then takeover_start_read(). */
void takeover_get(struct leat_core *core, struct leat_takeover *takeover);
/** Read from the segment's start entry which segment precedes it; then takeover_to_home(). */
void takeover_start_read(struct leat_takeover *takeover);

/* ---- takeover_home.c ---- */
/** By the state: the log is made, gets its next segment, or is told that no more segments come. */
void takeover_to_home(struct leat_takeover *takeover);
/** Recovery has given the streamlet to this node, has not decided where this log ends, and has heard all nodes: the
 * log is made as a log that waits. Until then clients are told to try again, because a node that is down may come
 * back with the end. */
void takeover_stand_in(struct leat_core *core, const struct leat_begun_log *row);
/** The log could not take the segment: the segment goes back to the backup. false: no memory. */
bool takeover_seg_back(struct leat_takeover *takeover);

#endif
