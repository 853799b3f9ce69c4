/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes have the copies of a stream's logs now: asked of their owners when somebody wants to know,
 * and remembered for a while, by each core for itself. Private to broker/ and the front doors. */
#ifndef LEAT_BROKER_ADMIN_PLACES_H
#define LEAT_BROKER_ADMIN_PLACES_H

#include "broker/net/core.h"
#include "replication/primary/primary.h"

enum {
    LEAT_PLACES_FRESH_US = 5 * 1000 * 1000, /* what is older is asked for anew, when it is wanted */
    LEAT_PLACES_ASK_US_MAX = 250 * 1000,    /* then another node has not said */
    LEAT_PLACES_ASKS_MAX = 1024,            /* streams asked about at one time, of one core */
    LEAT_PLACES_LOGS_MAX = 64 * 1024, /* remembered by one core; beyond it the least lately wanted
                                         streams are forgotten */
};

/* Of one log. */
struct leat_log_places {
    bool known; /* false: its owner has not said */
    struct leat_rep_places others;
};

/**
 * Somebody wants to know of that stream: ask, unless it is known well enough, or too much is under way.
 * true: nothing is known yet, and it is being asked. Streams of one copy are never asked about.
 * Thread: core.
 */
bool leat_places_want(struct leat_core *core, uint32_t stream);
/** What is known of a log; NULL: nothing. A view, until the next turn. */
const struct leat_log_places *leat_places_of(const struct leat_stream *stream, uint32_t streamlet,
                                             uint32_t log);

/* Caller's storage until on_done. */
struct leat_places_wait {
    struct leat_list link;
    uint64_t serial;
    void (*on_done)(struct leat_places_wait *wait);
    void *owner;
};
/** on_done when all that is being asked now has been answered, or after LEAT_PLACES_ASK_US_MAX; never
 * inside. Only after leat_places_want() has said true. Thread: core. */
void leat_places_wait(struct leat_core *core, struct leat_places_wait *wait);

/** The stream goes, or is not wanted any more. */
void leat_places_forget(struct leat_core *core, struct leat_stream *stream);
void leat_places_init(struct leat_core *core);
/** The core runs no more. */
void leat_places_fini(struct leat_core *core);

/* What a core knows of where copies are: see places.h. */
struct leat_placer {
    struct leat_list known, asks, waits; /* asks: in the order in which they began */
    uint32_t logs, ask_count;
    uint64_t serial;
};

#endif
