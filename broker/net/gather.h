/* SPDX-License-Identifier: Apache-2.0 */
/* One question to several nodes, and their answers. Private to broker/. */
#ifndef LEAT_BROKER_NET_GATHER_H
#define LEAT_BROKER_NET_GATHER_H

#include "broker/net/members.h"

struct leat_gather_part {
    struct leat_ask ask;
    struct leat_gather *gather;
    uint64_t node; /* incarnation of the asked node */
    bool skip;     /* the node is not asked */
};
/* Caller's storage until on_done. The caller sets all down to `owner`, and of each part `node` and `skip`. */
struct leat_gather {
    struct leat_core *core;
    enum leat_kind kind;
    const uint8_t *control; /* borrowed until on_done */
    uint32_t control_bytes;
    uint64_t timeout_us; /* of each question; 0: LEAT_ASK_US_MAX */
    struct leat_gather_part *parts;
    uint32_t count;
    /** Once for each part that is not skipped, maybe inside leat_gather_start(). at: the part's number. rc, answer:
     * as of leat_ask; why: also why a node can't be asked. */
    void (*on_answer)(struct leat_gather *gather, uint32_t at, leat_err rc,
                      const struct leat_frame *answer, const char *why);
    /** Once, after the last on_answer, maybe inside leat_gather_start(). */
    void (*on_done)(struct leat_gather *gather);
    void *owner;
    uint32_t out; /* questions under way, and 1 while leat_gather_start() runs */
};
/** Thread: the core. */
void leat_gather_start(struct leat_gather *gather);
/** Owners of streamlets of the stream, except this node, each once, in the order of their first streamlets. Returns
 * how many; further owners than LEAT_NODES_MAX are left out. */
uint32_t leat_gather_owners(const struct leat_core *core, const struct leat_stream_desc *desc,
                            uint64_t out_owners[LEAT_NODES_MAX]);

#endif
