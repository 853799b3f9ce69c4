/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-size structs of a core for requests under way, carved from one block, and who gets them when there are few.
 *
 * Connections take as many as they pipeline while there are some. Where there are none a connection has a few of its
 * own, allocated, up to a limit: so whatever others pipeline, and however long that waits, who asks for one thing at a
 * time is served. Beyond that connections stand in line: a struct that comes free is for the one that waits longest,
 * which then stands at the end again.
 *
 * An address has half of them at most, and in line addresses have turns, and of each its connections.
 *
 * Connections without another request under way stand in a line before all that pipeline; while there are some,
 * fetches that only wait for data are answered with what there is (leat_fetch_give_way()). Private to broker/; what
 * front ends call is in broker/front.h.
 */
#ifndef LEAT_BROKER_NET_STOCK_H
#define LEAT_BROKER_NET_STOCK_H

#include "base/error.h"
#include "base/list.h"
#include "base/types.h"
#include "broker/front.h"
#include "broker/net/line.h"

struct leat_core;
struct leat_peer;
struct leat_sharer;

enum {
    LEAT_CORE_OWN_BYTES =
        512 *
        1024, /* of connections, beyond the stocks of a core: these have a place in the budget */
    LEAT_PEER_OWN_BYTES =
        4096, /* of one: while there is half of that, and of its only request always ... */
    LEAT_PEER_OWN_BYTES_MOST =
        16 * 1024, /* ... and while there is that. Beyond it the segments give them up */
    LEAT_STOCK_WAIT_US = 10 * 1000 * 1000, /* so long a connection's only request waits: closed */
};

/* Structs of requests, whose layout is data/'s: how large they are, for who reckons with a core's memory. */
enum {
    LEAT_APPEND_REQUEST_BYTES = 296,
    LEAT_APPEND_PART_BYTES = 104,
    LEAT_FETCH_STRUCT_BYTES = 768, /* struct leat_fetch, to where its last member has no use */
    LEAT_FETCH_ITEM_BYTES = 248,
    LEAT_FETCH_READ_BYTES = 4488,
};

struct leat_stock {
    void *block;
    void *free; /* the first word of a free element points at the next */
    uint32_t element_bytes, fresh, count, left;
    uint32_t index; /* of its core's */
    struct leat_core *core;
    struct leat_line lines
        [2]; /* struct leat_stock_peer: of a connection's only request; of those that pipeline */
    struct leat_list wanted; /* among its core's, while somebody waits in its lines */
};
/* Of a connection: it waits for structs, or may have some that it keeps beyond the stocks. */
struct leat_stock_peer {
    struct leat_list link;
    struct leat_stock *stock; /* that it waits for */
    uint32_t count;           /* so many of that stock */
    bool only;                /* in the first line */
    bool called;              /* it was its turn: it may take some before all who stand in line */
    uint64_t since_us;
    size_t own_bytes;
};

leat_err leat_stock_init(struct leat_stock *stock, struct leat_core *core, size_t element_bytes,
                         uint32_t count) LEAT_NODISCARD;
void leat_stock_fini(struct leat_stock *stock);
/** NULL when none is left. Contents are what they were. sharer: whose share it is of; NULL: nobody's. */
void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer);
/** May it have so many now? Else it waits. */
bool leat_stock_admits(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                       uint32_t count);
/** Before as many as were admitted are taken, at once: may add them. false: there is no memory. */
bool leat_stock_widen(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count);
/** They are not taken. */
void leat_stock_narrow(struct leat_stock *stock, struct leat_peer *peer);

/** Account for a connection's own, of whatever kind. false: it has no more. */
bool leat_own_take(struct leat_peer *peer, bool only, size_t bytes);
/** peer: NULL: gone. */
void leat_own_give(struct leat_core *core, struct leat_peer *peer, size_t bytes);

/** Look again: there may be something of its own. Does nothing unless it waits. */
void leat_stock_again(struct leat_peer *peer);
/** It goes. */
void leat_stock_leave(struct leat_peer *peer);
/** At the end of a turn of the core: call as many as there are structs for. true: somebody was. */
bool leat_stocks_call(struct leat_core *core);
/** Does anybody wait for some who has nothing under way? Of all stocks but those of appends. */
bool leat_stocks_are_wanted(const struct leat_core *core);
/* How many structs those want who have nothing under way, of the same stocks. */
struct leat_wanted {
    uint32_t of_all; /* who holds them is all the same */
    uint32_t
        of_own; /* their address has its half: of what the address holds; how many is with it */
    uint32_t at;
};
void leat_stocks_wanted(struct leat_core *core, struct leat_wanted *out_wanted);
/** So many may come from what an address holds: are they wanted? */
bool leat_wanted_of(struct leat_wanted *wanted, struct leat_sharer *sharer, uint32_t count);
/** Once a second: whose only request has waited too long. */
void leat_stocks_tick(struct leat_core *core);

/** pools.c: the stock number i of a core, with the size of its structs and how many it has. NULL: there are no more. */
struct leat_stock *leat_core_stock(struct leat_core *core, size_t i, size_t *out_bytes,
                                   uint32_t *out_count);

#endif
