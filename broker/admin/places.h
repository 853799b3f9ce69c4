/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes have the copies of a stream's logs now. The owners are asked when a request wants to know, and each
 * core remembers the answers for a while. Private to broker/; functions that front ends call are in
 * broker/front_logs.h. */
#ifndef LEAT_BROKER_ADMIN_PLACES_H
#define LEAT_BROKER_ADMIN_PLACES_H

#include "broker/front_logs.h"
#include "broker/net/core.h"

struct leat_stream;

enum {
    /* Older answers are asked for anew, when they are wanted */
    LEAT_PLACES_FRESH_US = 5 * 1000 * 1000,
    LEAT_PLACES_ASK_US_MAX = 250 * 1000, /* then another node has not said */
    LEAT_PLACES_ASKS_MAX = 1024,         /* streams asked about at one time, of one core */
    LEAT_PLACES_LOGS_MAX = 64 * 1024, /* remembered by one core; beyond it the least lately wanted
                                         streams are forgotten */
};

/** The known places of a log; NULL: none are known. A view, until the next turn. */
const struct leat_log_places *leat_places_of(const struct leat_stream *stream, uint32_t streamlet,
                                             uint32_t log);

void leat_places_init(struct leat_core *core);
/** The core runs no more. */
void leat_places_fini(struct leat_core *core);

/* A core's knowledge of where copies are: see places.h. */
struct leat_placer {
    struct leat_list known, asks, waits; /* asks: in the order in which they began */
    uint32_t logs, ask_count;
    uint64_t serial;
};

#endif
