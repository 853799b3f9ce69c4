/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends, which nodes hold that end, and why: the one rule. Pure: no clock, no network, no allocation.
 *
 * The caller describes each known replica of a log in a row, gives the coordinator's record of the log and the number
 * of nodes that have answered, and gets an answer. docs/recovery.md has the reasons; the comments of the conditions
 * in tail.c tell how data would be lost. */
#ifndef LEAT_COORDINATOR_METADATA_TAIL_H
#define LEAT_COORDINATOR_METADATA_TAIL_H

#include "coordinator/metadata/records.h"

enum {
    LEAT_TAIL_ROWS_MAX = 256, /* of one question */
    LEAT_TAIL_TEXT_BYTES = 240,
};

/* A replica of a segment, as its node found it. */
enum leat_tail_state {
    LEAT_TAIL_OPEN = LEAT_REPLICA_MARK,     /* started, whole, not closed; its bytes survived */
    LEAT_TAIL_CLOSED = LEAT_REPLICA_CLOSED, /* closed, or right by its prefix id only */
    LEAT_TAIL_MISSING = LEAT_REPLICA_LOST,  /* it was here; its bytes are gone, or corrupt */
};
enum leat_tail_flag {
    LEAT_TAIL_ONLY_START = 1, /* OPEN: no batch yet, so the segment before it is needed */
    /* OPEN: bytes after its end may be a torn write, or a damaged acked write. */
    LEAT_TAIL_TORN = 2,
    /* The replica begins with exactly the bytes that leat_log_decided() names: compared, not guessed. Bytes may
     * follow. */
    LEAT_TAIL_HAS_DECIDED = 4,
    /* CLOSED: made for an attempt of recovery, and no owner has counted on it since. */
    LEAT_TAIL_PROVISIONAL = 8,
};
struct leat_tail_row {
    uint64_t segment;
    uint32_t node; /* any number that tells nodes apart */
    enum leat_tail_state state;
    struct leat_epoch epoch;      /* its writer's */
    uint32_t generation;          /* of its writer's set of copies: raised when a copy is lost */
    struct leat_prefix_id prefix; /* the prefix id, (length, CRC), of its valid bytes */
    struct leat_prefix_id
        previous; /* of the segment before, named by the start entry; bytes 0: none */
    uint64_t base_offset, next_offset;
    unsigned flags; /* enum leat_tail_flag */
};

struct leat_tail_question {
    const struct leat_log_record *record;
    uint32_t majority; /* of the log's copies: damage does not hit so many at once */
    bool all_heard;    /* no node is left that may hold more of it */
};

enum leat_tail_reason {
    /* It ends: */
    LEAT_TAIL_EMPTY = 1, /* by the coordinator's record the log has no segment */
    LEAT_TAIL_RECORDED,  /* where the record says, and its bytes were found */
    LEAT_TAIL_GIVEN_UP, /* where the record says; a loss was accepted, so its bytes are not asked for */
    LEAT_TAIL_BY_OPEN, /* in the lowest segment with an open replica of the current generation */
    LEAT_TAIL_BY_ALL,  /* every replica is torn, and this is all that any node holds */
    LEAT_TAIL_LEFT,    /* not known: this is the most that is left of the log */
    /* It waits: */
    LEAT_TAIL_NO_BYTES, /* no node that answered has the bytes that the record names */
    LEAT_TAIL_LEFT_UNHEARD, /* a loss was accepted, and what was left may be on a node that has not answered */
    LEAT_TAIL_NO_OPEN,      /* no open replica of its epoch and generation */
    LEAT_TAIL_ONLY_TORN,    /* every open replica ends in a torn write or in damage */
    LEAT_TAIL_DIFFERENT,    /* two replicas of one length have different bytes */
    LEAT_TAIL_NO_PREVIOUS,  /* the segment has just begun, and the segment before was not found */
    LEAT_TAIL_NOTHING_LEFT, /* nothing that may be kept */
};

struct leat_tail {
    bool ends; /* else it waits */
    enum leat_tail_reason reason;
    struct leat_tail_record end;               /* ends */
    uint64_t holders[LEAT_TAIL_ROWS_MAX / 64]; /* ends: bit i: rows[i] has exactly that */
    /* waits: what the reason is about */
    uint64_t segment;
    uint32_t older, other,
        missing; /* NO_OPEN: rows of older generations, of other epochs, without their bytes */
};

/** Where the log ends. count: at most LEAT_TAIL_ROWS_MAX; rows in any order. */
void leat_tail_decide(const struct leat_tail_question *question, const struct leat_tail_row *rows,
                      size_t count, struct leat_tail *out);
/** The most that is left of an opened log whose end no node holds: up to there it may go on once a loss is accepted.
 * rows: of all nodes, any order. */
void leat_tail_left(const struct leat_log_record *record, const struct leat_tail_row *rows,
                    size_t count, struct leat_tail *out);
/** The replica of the later segment shows that the log went on: the earlier replica says nothing about the log's
 * end. */
bool leat_tail_went_on(const struct leat_tail_row *row, const struct leat_tail_row *later);
/** Orders two replicas of what is left of a log: by segment; within a segment by the owner's epoch. < 0, 0, > 0: a is
 * earlier, neither, later. */
int leat_tail_order(const struct leat_tail_row *a, const struct leat_tail_row *b);
/** May an opened log whose end no node holds be kept up to the end of this replica? */
bool leat_tail_may_be_left(const struct leat_log_record *record, const struct leat_tail_row *row);
/** The reason, for operators. Returns text. */
const char *leat_tail_text(const struct leat_tail *tail, const struct leat_log_record *record,
                           char text[LEAT_TAIL_TEXT_BYTES]);

static inline bool leat_tail_holds(const struct leat_tail *tail, size_t at)
{
    return tail->ends && (tail->holders[at / 64] >> at % 64 & 1);
}

/** What a node answers of a replica, as a row. */
static inline struct leat_tail_row leat_tail_row_of(const struct leat_replica_row *row,
                                                    uint32_t node)
{
    return (struct leat_tail_row){
        .segment = row->segment,
        .node = node,
        .state = (enum leat_tail_state)row->kind,
        .epoch = row->epoch,
        .generation = row->version,
        .prefix = row->prefix_id,
        .previous = row->previous,
        .base_offset = row->base_offset,
        .next_offset = row->next_offset,
        .flags = (row->only_start ? LEAT_TAIL_ONLY_START : 0u) | (row->torn ? LEAT_TAIL_TORN : 0u) |
                 (row->holds_tail ? LEAT_TAIL_HAS_DECIDED : 0u) |
                 (row->provisional ? LEAT_TAIL_PROVISIONAL : 0u),
    };
}

#endif
