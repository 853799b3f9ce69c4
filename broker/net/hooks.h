/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from lower libraries to higher ones. */
#ifndef LEAT_BROKER_NET_HOOKS_H
#define LEAT_BROKER_NET_HOOKS_H

#include "multilog/log.h"
#include "wire/frame.h"

struct leat_core;
struct leat_partition;
struct leat_move_part;
struct leat_peer;

/* Calls of lower libraries to higher ones: hooks.c has the table. Thread: the core's. */
struct leat_core_hooks {
    /** A request of another node, for a client of its own. false: there is no such kind. */
    bool (*request)(struct leat_peer *peer, const struct leat_frame *frame);
    /** A connection has taken bytes: fetches of other connections may go on. */
    void (*drained)(struct leat_core *core);
    /** More of the log is acked; there is room in it. Also when the log stops: requests that wait look again. */
    void (*acked)(struct leat_partition *partition);
    void (*room)(struct leat_partition *partition);
    /** A log of a home is being made: its options are completed. And it is made. */
    leat_err (*groups_attach)(struct leat_partition *partition, struct leat_log_options *options);
    void (*groups_made)(struct leat_partition *partition);
    /** A closed segment is damaged here. As leat_repair_ask(). */
    leat_err (*damaged)(const struct leat_partition *partition, const struct leat_segment *seg);
    /** Where the log begins is known now, and so which of its first segments are damaged. */
    void (*front_known)(struct leat_core *core, struct leat_partition *partition);
    /** Segments of the log are not here: look for them on other nodes. Asked at a read, and now and then. */
    void (*older)(struct leat_partition *partition);
    /** A log that was drained for a move goes otherwise. */
    void (*part_gone)(struct leat_move_part *part);
    /** A log that was given up has left the tables. */
    void (*released)(struct leat_core *core, struct leat_log_ref ref);
};

#endif
