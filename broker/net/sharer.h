/* SPDX-License-Identifier: Apache-2.0 */
/* The share of one address in one core's resources: all connections of the address use it together. An IPv6 address is
 * its /56 (addresses.h). The share is half of a scarce resource at most; addresses take turns in waiting lines
 * (line.h). Private to broker/. Thread: the core's. */
#ifndef LEAT_BROKER_NET_SHARER_H
#define LEAT_BROKER_NET_SHARER_H

#include "broker/front.h"
#include "broker/net/line.h"
#include "broker/net/output.h"
#include "broker/net/unpack.h"

enum {
    LEAT_SHARER_BUCKETS = 256,
    LEAT_SHARER_STOCKS_MAX = 8, /* stock.h: of a core, with the stocks of other front ends */
};

struct leat_sharer {
    struct leat_sharer *next;
    uint32_t address, members; /* connections, also closed ones with requests under way */
    uint32_t calls;
    struct leat_output_sharer output;
    struct {
        uint32_t taken; /* of its block */
        struct leat_queue queues[2];
    } stocks[LEAT_SHARER_STOCKS_MAX];
    uint32_t wanted, wanted_at; /* leat_wanted_of() */
    uint64_t rest_bytes;        /* lend.h */
    struct leat_rate creates, creates_asked;
    struct leat_front_share front;
    struct leat_address_turns *unpack; /* NULL: it has sent no compressed batch */
    struct leat_address_turns *pace;   /* NULL: it has asked for nothing but records */
};

/** false: there is no memory for one. The address is the peer's. */
bool leat_sharer_join(struct leat_core *core, struct leat_peer *peer) LEAT_NODISCARD;
void leat_sharer_leave(struct leat_core *core, struct leat_sharer *sharer);
/** A request outlives its connection. */
static inline struct leat_sharer *leat_sharer_keep(struct leat_sharer *sharer)
{
    sharer->members++;
    return sharer;
}

#endif
