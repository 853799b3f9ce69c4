/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-size structs of a core for requests under way, carved from one block, and which connections get them when
 * there are few.
 *
 * Connections take as many structs as they pipeline requests, while structs are free. Where none is free, a
 * connection has a few of its own, allocated, up to a limit: so a connection with one request at a time is served,
 * however much other connections pipeline and however long their requests wait. Beyond this limit connections wait in
 * line: a struct that becomes free is for the connection that waits longest, which then goes to the end of the line.
 *
 * An address has half of the structs at most. In line, addresses take turns, and so do the connections of an address.
 *
 * Connections without another request under way wait in a line of their own, which comes before the line of
 * connections that pipeline. While this first line is not empty, fetches that only wait for data are answered with
 * what they have (leat_fetch_give_way()). Private to broker/; functions that front ends call are in broker/front.h. */
#ifndef LEAT_BROKER_NET_STOCK_H
#define LEAT_BROKER_NET_STOCK_H

#include "base/error.h"
#include "base/free_list.h"
#include "base/list.h"
#include "base/types.h"
#include "broker/front.h"
#include "broker/net/line.h"

struct leat_core;
struct leat_peer;
struct leat_sharer;

enum {
    /* Structs that connections own, beyond the stocks of a core: they have a part of the budget */
    LEAT_CORE_OWN_BYTES = 512 * 1024,
    /* Of one connection: if it pipelines, while half of LEAT_CORE_OWN_BYTES is left; for its only request always */
    LEAT_PEER_OWN_BYTES = 4096,
    /* Of one connection, for its only request, while LEAT_CORE_OWN_BYTES are not used up; beyond, segments give up
     * memory */
    LEAT_PEER_OWN_BYTES_MOST = 16 * 1024,
    LEAT_STOCK_WAIT_US = 10 * 1000 * 1000, /* so long a connection's only request waits: closed */
};

/* Sizes of structs of requests, for the budget of a core; data/ has their layout. */
enum {
    LEAT_APPEND_REQUEST_BYTES = 296,
    LEAT_APPEND_PART_BYTES = 104,
    LEAT_FETCH_STRUCT_BYTES = 768, /* struct leat_fetch without the unused end of its last member */
    LEAT_FETCH_ITEM_BYTES = 248,
    LEAT_FETCH_READ_BYTES = 4488,
};

struct leat_stock {
    void *block;
    struct leat_free_list free;
    uint32_t element_bytes, fresh, count, left;
    uint32_t index; /* of its core's */
    struct leat_core *core;
    /* struct leat_stock_peer: 0: of connections with this request only; 1: of connections that pipeline */
    struct leat_line lines[2];
    struct leat_list wanted; /* in its core's list, while a connection waits in its lines */
};
/* Of a connection, which waits for structs, or may have some of its own beyond the stocks. */
struct leat_stock_peer {
    struct leat_list link;
    struct leat_stock *stock; /* that the connection waits for */
    uint32_t count;           /* so many structs of this stock */
    bool only;                /* in the first line */
    bool called; /* its turn has come: it may take structs before all connections in line */
    uint64_t since_us;
    size_t own_bytes;
};

leat_err leat_stock_init(struct leat_stock *stock, struct leat_core *core, size_t element_bytes,
                         uint32_t count) LEAT_NODISCARD;
void leat_stock_fini(struct leat_stock *stock);
/** NULL when none is left. The struct is not cleared. sharer: of whose share the struct is; NULL: of none. */
void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer);
/** May the peer have so many structs now? Otherwise the peer waits. */
bool leat_stock_admits(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                       uint32_t count);
/** Called at once before as many structs as were admitted are taken: may add structs. false: there is no memory. */
bool leat_stock_widen(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count);
/** The admitted structs are not taken. */
void leat_stock_narrow(struct leat_stock *stock, struct leat_peer *peer);

/** Account for a connection's own struct, of any kind. false: the connection may have no more. */
bool leat_own_take(struct leat_peer *peer, bool only, size_t bytes);
/** peer: NULL: the peer is gone. */
void leat_own_give(struct leat_core *core, struct leat_peer *peer, size_t bytes);

/** Look again: the peer may get a struct of its own. Does nothing unless the peer waits. */
void leat_stock_again(struct leat_peer *peer);
/** The peer goes. */
void leat_stock_leave(struct leat_peer *peer);
/** At the end of a turn of the core: call as many connections as there are structs for. true: some were called. */
bool leat_stocks_call(struct leat_core *core);
/** Does a connection without a request under way wait for structs? Of all stocks but those of appends. */
bool leat_stocks_are_wanted(const struct leat_core *core);
/* How many structs the connections without a request under way want, of the same stocks. */
struct leat_wanted {
    uint32_t of_all; /* wanted from any holder */
    /* Wanted from holders of the same address, which has its half; each address has its own number */
    uint32_t of_own;
    uint32_t at;
};
void leat_stocks_wanted(struct leat_core *core, struct leat_wanted *out_wanted);
/** An address holds so many structs, and may give them back: are they wanted? */
bool leat_wanted_of(struct leat_wanted *wanted, struct leat_sharer *sharer, uint32_t count);
/** Once a second: close connections whose only request has waited too long. */
void leat_stocks_tick(struct leat_core *core);

/** pools.c: the stock number i of a core, with the size of its structs and how many it has. NULL: there are no more. */
struct leat_stock *leat_core_stock(struct leat_core *core, size_t i, size_t *out_bytes,
                                   uint32_t *out_count);

#endif
