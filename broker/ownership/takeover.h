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

/* What a takeover does (README.md, "A log that comes"). In the last four states the takeover has ended, and tells the
 * log that no more segments come now. */
enum takeover_state {
    TAKEOVER_TAIL,      /* gets the log's last segment, with which the log is made */
    TAKEOVER_ABSENT,    /* no node has the last segment: the log is made without it, and waits */
    TAKEOVER_OLDER,     /* gets the segment before the segment that came last */
    TAKEOVER_COMPLETE,  /* ended: no segment is missing */
    TAKEOVER_NONE_LEFT, /* ended: an operator gave up the segments that are missing */
    TAKEOVER_MISSING,   /* ended: no node has the next segment, and all nodes are up */
    TAKEOVER_NODE_DOWN, /* ended: no node that is up has the next segment, and a node is down */
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
    /* Not the first search for the log's older segments: the last owner has had time to give these up, so the first
     * answer "no node has the segment" ends the search. */
    bool repeated;
    bool all_asked; /* no node was down at the last search for the wanted segment */
    bool queued;    /* begins when an earlier takeover of the same log has ended */
    bool replaced;  /* ends: a later takeover of the same log is queued */
    bool whole;     /* has ended, and the log lacks no segment */
    /* From OLDER on: the hole that is filled ends before this segment; 0: it is before all segments of the log. */
    uint64_t hole_end;
    /* The wanted segment. prefix_id {0, 0}: no start entry or tail record names its prefix id, and the newest segment
     * with this number or a lower number is wanted. */
    uint64_t segment, next_offset;
    struct leat_prefix_id prefix_id;
    struct leat_below_found left; /* its remaining candidates, if nothing names it */
    uint64_t first_retained;
    struct leat_segment_range unsure; /* the log's, once `whole` is set: leat_takeover_unsure() */
    struct leat_segment *seg;         /* adopted, on its way to the log */
    struct leat_start start;          /* of seg */
    /* When the next step may begin; when the takeover began; when the wanted segment was first not found. */
    uint64_t again_us, since_us, missing_us;
    unsigned failures, nowhere; /* in a row; nowhere: no node that was asked had the segment */
    leat_err rc;                /* the answer of the log's core */
    union {
        struct leat_backup_pull pull;
        struct leat_below below;
    };
    struct leat_disk_read read; /* of a start entry */
    uint32_t segment_bytes;     /* length of the segment whose start entry is read */
};

static inline struct leat_core *takeover_core(const struct leat_takeover *takeover)
{
    return &takeover->node->cores[0];
}

/** A step of README.md's diagram. Thread: core 0. */
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
/** The log is not made yet. */
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
/** All fields zero, except the log, the epoch and the log's core; NULL: no memory. Thread: the log's core. */
struct leat_takeover *takeover_create(struct leat_core *core, struct leat_log_ref ref,
                                      struct leat_epoch epoch);
/** To core 0, which begins the takeover, or frees it if the same takeover is under way already. Thread: the log's
 * core. */
void takeover_send(struct leat_takeover *takeover);
void takeover_free(struct leat_takeover *takeover);
/** Run the step of all takeovers soon. */
void takeover_kick(struct leat_core *core);
/** The takeover's next step begins `us` from now. */
void takeover_pause(struct leat_takeover *takeover, uint64_t us);

/* ---- takeover_get.c ---- */
/** Get the wanted segment: a replica here is adopted, otherwise the segment is fetched first. Then
 * takeover_start_read(). */
void takeover_get(struct leat_core *core, struct leat_takeover *takeover);
/** Read from the segment's start entry which segment precedes it; then takeover_to_home(). */
void takeover_start_read(struct leat_takeover *takeover);

/* ---- takeover_home.c ---- */
/** Sends the takeover to the log's core. By its state the log is made there, gets its next segment, or is told that no
 * more segments come. */
void takeover_to_home(struct leat_takeover *takeover);
/** Recovery has given the streamlet to this node, has not decided where this log ends, and has heard all nodes: the
 * log is made as a log that waits. Until then clients are told to try again, because a node that is down may come
 * back with the end. */
void takeover_stand_in(struct leat_core *core, const struct leat_begun_log *row);
/** The log could not take the segment: the segment goes back to the backup. false: no memory. */
bool takeover_seg_back(struct leat_takeover *takeover);

#endif
