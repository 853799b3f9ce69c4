/* SPDX-License-Identifier: Apache-2.0 */
/* Streamlets that go to another node on purpose: STREAMLET_MOVE, and a drained node, which moves its own streamlets.
 * Private to broker/.
 *
 * This node asks the target whether it has met as many other nodes as the stream's appends need. A target that has
 * just joined still waits for memory on the other nodes, and this node stops no log until the target has memory
 * there, but waits some seconds at most. Then this node stops every log of the streamlet: the log takes no more
 * appends, has all of them acked, and has its head hibernated on all copies. A log whose flush fails meanwhile ends
 * where its copies' disks have it; the bytes after that were not acked. Then the coordinator commits where each log
 * ends and which node owns them next (LEAT_COORDINATE_MOVE). From this request on, this node never acts in the same
 * epoch again, whatever the answer: the coordinator tells all nodes the outcome (handover.h). A refused move gives the
 * streamlet back under a new epoch. Where a log can't go after all, because its disk has failed meanwhile, the
 * coordinator is not asked, and the other logs take appends again. */
#ifndef LEAT_BROKER_OWNERSHIP_MOVE_H
#define LEAT_BROKER_OWNERSHIP_MOVE_H

#include "base/list.h"
#include "base/timer.h"
#include "broker/net/core.h"
#include "broker/ownership/calls.h"
#include "coordinator/coordinator.h"
#include "multilog/log.h"

struct leat_core;
struct leat_partition;
struct leat_move_ask;

enum {
    LEAT_MOVERS_MAX = 4, /* streamlets on their way at one time */
    /* This node waits so long for the target to meet nodes, then moves the streamlet anyway. */
    LEAT_MOVE_TARGET_US_MAX = 10 * 1000 * 1000,
};

/* A log of a streamlet that moves. */
struct leat_move_part {
    struct leat_mail mail;
    struct leat_mover *mover;
    struct leat_log_ref ref;
    struct leat_partition *partition; /* on its core, while it is drained */
    struct leat_tail_record tail;
    leat_err rc;
    struct leat_error error;
};

/* A streamlet on its way. Caller's storage until on_done. */
struct leat_mover {
    struct leat_list link;
    struct leat_core *core; /* 0 */
    uint32_t stream, streamlet;
    char target[LEAT_NODE_NAME_BYTES_MAX + 1];
    void (*on_done)(struct leat_mover *mover);
    void *owner;
    leat_err rc;
    struct leat_error error;
    /* its own fields */
    struct leat_mail mail;
    struct leat_epoch epoch;
    enum leat_move_step {
        LEAT_MOVE_CHECKS, /* may all logs go? */
        LEAT_MOVE_STOPS,  /* the logs are stopped; then the coordinator is asked */
        /* a log could not be stopped: the coordinator was not asked, the stopped logs go on */
        LEAT_MOVE_GOES_ON,
    } step;
    uint32_t count, left;
    struct leat_move_part *parts; /* [count]; left: parts whose answer is awaited */
    struct leat_log_ref *refs;
    struct leat_tail_record *tails;
    struct leat_coordinate request;
    struct leat_timer timer;
    struct leat_move_ask *ask; /* NULL: none is under way */
    uint64_t ask_until_us; /* then the streamlet moves anyway; 0: the target was not asked yet */
};
struct leat_movers {
    struct leat_list all;
    uint32_t count;
    struct leat_mover *drain; /* of a drained node: one streamlet after the other */
    uint32_t drain_ticks;
};

void leat_movers_init(struct leat_core *core);
void leat_movers_fini(struct leat_core *core);
/** mover: stream, streamlet, target, on_done, owner are filled. on_done later and once, when the
 * outcome is applied here. Thread: core 0. */
void leat_mover_start(struct leat_core *core, struct leat_mover *mover);

#endif
