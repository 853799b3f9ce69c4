/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that wait for something scarce. Addresses have turns; within an address connections come in the order in
 * which they began to wait. So an address with many connections makes only its own connections wait. Private to
 * broker/. Thread: owner's. */
#ifndef LEAT_BROKER_NET_LINE_H
#define LEAT_BROKER_NET_LINE_H

#include <stdbool.h>

#include "base/list.h"

struct leat_line {
    struct leat_list ring; /* struct leat_queue: the queue whose turn it is comes first */
};
/* The members of one address in one line. */
struct leat_queue {
    struct leat_list ring;
    struct leat_list members;
};

static inline void leat_line_init(struct leat_line *line)
{
    leat_list_init(&line->ring);
}
static inline void leat_queue_init(struct leat_queue *queue)
{
    leat_list_init(&queue->ring);
    leat_list_init(&queue->members);
}
/** first: the member had its turn, in vain: neither its place nor its address's place in line is lost. */
static inline void leat_line_join(struct leat_line *line, struct leat_queue *queue,
                                  struct leat_list *member, bool first)
{
    if (first)
        leat_list_push_front(&queue->members, member);
    else
        leat_list_push_back(&queue->members, member);
    if (first) leat_list_remove(&queue->ring);
    if (first)
        leat_list_push_front(&line->ring, &queue->ring);
    else if (leat_list_empty(&queue->ring))
        leat_list_push_back(&line->ring, &queue->ring);
}
/** Nothing if it is in no line. */
static inline void leat_line_leave(struct leat_queue *queue, struct leat_list *member)
{
    leat_list_remove(member);
    if (leat_list_empty(&queue->members)) leat_list_remove(&queue->ring);
}
/** A member of the queue has had its turn: now other queues have theirs. */
static inline void leat_line_turn(struct leat_line *line, struct leat_queue *queue)
{
    if (leat_list_empty(&queue->ring)) return; /* no member is left */
    leat_list_remove(&queue->ring);
    leat_list_push_back(&line->ring, &queue->ring);
}
static inline bool leat_line_empty(const struct leat_line *line)
{
    return leat_list_empty(&line->ring);
}
static inline struct leat_queue *leat_queue_of(struct leat_list *ring)
{
    return LEAT_CONTAINER(ring, struct leat_queue, ring);
}

#endif
