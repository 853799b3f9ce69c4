/* SPDX-License-Identifier: Apache-2.0 */
/* Streams come and go: what the coordinator tells, carried over all cores. */
#ifndef LEAT_BROKER_NODE_WALK_H
#define LEAT_BROKER_NODE_WALK_H

#include "broker/data/news.h"
#include "coordinator/coordinator.h"

struct leat_core;
struct leat_partition;
struct leat_stream;

/* Logs that were missing on a core are being made. */
struct leat_missing {
    struct leat_news news;
    bool under_way, told;
    uint32_t bucket, at;
    struct leat_stream *stream; /* NULL: the first of the bucket is the next */
};

/** Called every tick: logs that could not be made when their stream came (walk.c). */
void leat_walk_make_missing(struct leat_core *core);
/** A log that this core gave up is released. It may be this node's again (walk.c). */
void leat_walk_log_released(struct leat_core *core, struct leat_log_ref ref);
/** The core has adopted what was the node's own: now what came to it meanwhile is made (walk.c). */
void leat_walk_on_adopted(struct leat_core *core);
/** walk.c: events of the coordinator, carried over all cores. */
void leat_node_on_stream(void *owner, struct leat_stream_desc *desc);
void leat_node_on_stream_deleted(void *owner, uint32_t stream_id);
void leat_node_on_streams_given(void *owner, uint32_t highest);

#endif
