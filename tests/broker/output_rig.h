/* SPDX-License-Identifier: Apache-2.0 */
/* A core whose memory for answers and calls the tests fill: connections without bytes, of addresses of their own. */
#ifndef LEAT_TESTS_BROKER_OUTPUT_RIG_H
#define LEAT_TESTS_BROKER_OUTPUT_RIG_H

#include "broker/net/core.h"
#include "tests/broker/parts.h"

enum { PEERS = 16, MIB = 1024 * 1024 };

/* A connection, as far as the network knows it. */
struct leat_conn {
    const struct desk *desk;
    uint32_t address;
    size_t copied; /* bytes that the peer has not taken, in the core's memory */
    size_t mapped; /* likewise, not in the core's memory */
    uint64_t taken;
    bool closed;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
};

/** A budget of 512 MiB: 16 MiB are for answers and calls. Of these 10 are for answers, 5 for the answers of one
 * address, 2 for the answers of one connection, and 2 are the last part. */
struct desk *desk_new(void);
void desk_free(struct desk *desk);
/** The connection is of the same address as the first one. */
void desk_move(struct desk *desk, unsigned i);
/** The peer takes bytes that it owed. */
void conn_takes(struct leat_conn *conn, size_t bytes);

#endif
