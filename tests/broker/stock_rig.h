/* SPDX-License-Identifier: Apache-2.0 */
/* A core with one stock of structs for requests, of which half is left, and connections of addresses of their own. */
#ifndef LEAT_TESTS_BROKER_STOCK_RIG_H
#define LEAT_TESTS_BROKER_STOCK_RIG_H

#include "broker/net/core.h"
#include "tests/broker/parts.h"

enum { PEERS = 8, ELEMENT = 512, COUNT = 16, OWN = LEAT_PEER_OWN_BYTES / ELEMENT };

struct leat_conn {
    bool paused, closed;
    unsigned answers;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_stock stock;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
    void *taken[PEERS][COUNT + OWN];
    unsigned count[PEERS];
};

struct desk *desk_new(void);
/** The connections' structs are given back first. */
void desk_free(struct desk *desk);
/** The first connections are of one address, as if each had its own bytes already. */
void desk_gather(struct desk *desk, unsigned count);
/** All requests end, and no connection has own bytes. */
void desk_end_all(struct desk *desk);
/** One request of a connection more, as far as that goes. */
bool asks(struct desk *desk, unsigned i, bool only);
/** A connection's last request ends. */
void ends(struct desk *desk, unsigned i);

#endif
