/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the parts of the small cluster share. Private to world*.c. */
#ifndef LEAT_TESTS_REPLICATION_WORLD_PARTS_H
#define LEAT_TESTS_REPLICATION_WORLD_PARTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/replication/world.h"

static inline uint64_t world_later(struct world *world, uint64_t us_max)
{
    return world->now_us + world_below(world, us_max + 1);
}

/* world_memory.c: arenas, and one-sided writes into them */
void world_host_init(struct world_node *node);
void world_rmem_init(struct world *world);
/** The write of that index ends. */
void world_write_finish(struct world *world, unsigned index);
/** Some bytes of some write come early, or of one that ended long ago late. */
void world_bytes_come(struct world *world);

/* world_net.c: control messages, links */
struct leat_rep_net world_backup_net(struct world_node *node);
struct leat_rep_net world_primary_net(struct world *world);
void world_message_deliver(struct world *world, unsigned index);
void world_call_timeout(struct world *world, unsigned index);
void world_link_event(struct world *world, struct world_node *node);

/* world_logs.c: logs of the owner, and their coordinator */
struct leat_primary_events world_primary_events(void);
void world_versions_event(struct world *world);
void world_opening_event(struct world_log *log);
void world_log_open(struct world *world, unsigned index);

#endif
