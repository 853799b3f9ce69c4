/* SPDX-License-Identifier: Apache-2.0 */
/* The world of tail_walk.h, and what its two sources share: tail_walk_owner.c has the owner's steps, tail_walk.c
 * recovery and the world. */
#ifndef LEAT_TESTS_COORDINATOR_TAIL_WALK_PARTS_H
#define LEAT_TESTS_COORDINATOR_TAIL_WALK_PARTS_H

#include "base/random.h"
#include "coordinator/metadata/tail.h"
#include "tests/coordinator/tail_walk.h"

enum { NODES = 4, RECORDS = 9, SEGMENTS = 5, REPLICAS = 96 };

/* Records in their order, four bits each. */
struct content {
    uint32_t count;
    uint64_t ids;
};

struct replica {
    bool used, started, closed, buffered;
    bool close_entry; /* closed by one, not by its row */
    uint32_t node, epoch, generation;
    int segment, hibernated; /* hibernated: how many records, -1: it is not */
    struct content base, data;
    struct leat_prefix_id previous;
};

enum roll { ROLL_NONE, ROLL_RESERVE, ROLL_START, ROLL_CLOSE };

struct owner {
    bool on, pending, suspended, opened;
    uint32_t epoch, generation;
    int head; /* segment; -1: none of its own yet */
    struct content base, data, staged;
    unsigned copies; /* of the head; a bit for each node */
    uint32_t complete[NODES], acked;
    int tail_segment;
    struct content tail;
    struct leat_prefix_id tail_id;
    uint32_t tail_epoch; /* of who wrote that segment */
    enum roll roll;
    unsigned next, reserved, begun,
        closed; /* copies of the next segment, and how far they are; of the head */
    unsigned restamp_head, restamp_next;
    unsigned replacements;
};

struct world {
    enum walk_rule rule;
    struct leat_xoshiro rng;
    uint32_t nodes, copies;
    struct replica replicas[REPLICAS];
    struct owner owners[NODES];
    bool down[NODES];
    uint32_t fenced[NODES];
    /* the coordinator's */
    struct leat_log_record record;
    struct content tail;
    uint32_t tail_epoch, owner, owner_epoch, next_epoch, attempt;
    bool owner_up;
    struct content acked; /* or shown */
    uint32_t next_record;
    bool lost, full;
    struct walk_count *count;
};

static inline uint32_t chance(struct world *it, uint32_t of)
{
    return (uint32_t)leat_xoshiro_below(&it->rng, of);
}

/* ---- contents ---- */

static inline struct content first_of(struct content all, uint32_t count)
{
    return (struct content){count, all.ids & ((UINT64_C(1) << 4 * count) - 1)};
}

static inline struct content joined(struct content a, struct content b)
{
    return (struct content){a.count + b.count, a.ids | b.ids << 4 * a.count};
}

static inline bool same(struct content a, struct content b)
{
    return a.count == b.count && a.ids == b.ids;
}

static inline bool begins(struct content all, struct content with)
{
    return with.count <= all.count && same(first_of(all, with.count), with);
}

static inline void push(struct world *it, struct content *to)
{
    *to = joined(*to, (struct content){1, it->next_record++});
}

/* The prefix id of a segment's bytes. */
static inline struct leat_prefix_id id_of(uint32_t epoch, int segment, struct content data,
                                          bool close_entry)
{
    uint64_t crc = data.ids + 1;
    const uint64_t parts[] = {epoch, (uint64_t)segment, data.count, close_entry};
    for (unsigned i = 0; i < 4; i++)
        crc = (crc ^ (crc >> 29) ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (struct leat_prefix_id){64 + 32 * data.count + (close_entry ? 16 : 0),
                                   (uint32_t)(crc >> 32)};
}

/* ---- tail_walk_owner.c ---- */

/** The replica under that key; NULL: there is none. */
struct replica *walk_find(struct world *it, uint32_t node, int segment, uint32_t epoch);
/** A node owns the log in an epoch; it went up to `tail` when that began. */
void walk_owner_new(struct world *it, uint32_t node, uint32_t epoch, int segment,
                    struct content tail, struct leat_prefix_id id);
/** One step of one owner, be it the current owner or a former one. */
void walk_owner_step(struct world *it, uint32_t node);

static inline struct content full_of(const struct replica *rep)
{
    return joined(rep->base, rep->data);
}

static inline uint32_t pick(struct world *it, unsigned set)
{
    uint32_t at = chance(it, (uint32_t)__builtin_popcount(set));
    for (uint32_t node = 0;; node++)
        if ((set >> node & 1) && at-- == 0) return node;
}

#endif
