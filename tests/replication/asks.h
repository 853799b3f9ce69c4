/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a backup by hand, on the world of world.h. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_ASKS_H
#define LEAT_TESTS_REPLICATION_ASKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/replication/world.h"

/* Its answer goes to connection UINT64_MAX, which no node of the world has. */
static inline void request_of(struct world *world, unsigned node,
                              const struct leat_link_identity *who, const struct leat_frame *frame)
{
    struct leat_link_ticket ticket = {.connection = UINT64_MAX, .kind = frame->kind};
    leat_backup_request(world->nodes[node].backup, who, frame, &ticket);
    world_run(world, 200 * 1000);
}

static inline bool is_open_of(const struct replica *rep, struct leat_log_ref ref)
{
    return rep->seg && leat_log_ref_equal(rep->seg->log, ref) && rep->seg->buffer &&
           rep->seg->state < LEAT_SEGMENT_HIBERNATED;
}

/* The log's head there, with records in it. */
static inline struct replica *open_copy(const struct world *world, unsigned node, unsigned log)
{
    const struct rep_set *head = NULL;
    LEAT_LIST_EACH(&world->logs[log].rep->active, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (rep_set_is_started(set) && !rep_set_is_closed(set)) head = set;
    }
    assert_non_null(head);
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (is_open_of(rep, world->logs[log].ref) && rep->seg->id.v == head->id.v) return rep;
    }
    return NULL;
}

static inline void append_some(struct world *world, unsigned log, unsigned batches)
{
    for (unsigned i = 0; i < batches; i++)
        for (unsigned tries = 0; !world_append(&world->logs[log], 3000) && tries < 200000;
             tries++) {
            world_step(world);
            world_care(world);
        }
}

#endif
