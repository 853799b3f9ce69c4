/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by conn.c alone: the network, whatever limits connections and what a connection speaks are the test's. */
#ifndef LEAT_TESTS_BROKER_CONN_RIG_H
#define LEAT_TESTS_BROKER_CONN_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_hash.h"
#include "base/mem.h"
#include "tests/broker/alone.h"

enum { CONN_BUCKET = 77, CONN_SENT_MAX = LEAT_FRAME_HEADER_BYTES + LEAT_ERROR_TEXT_BYTES + 64 };

/* The only connection, as far as the source asks about it. */
struct leat_conn {
    size_t queued;
};

struct conn_rig {
    struct leat_net net;
    struct leat_conn conn;
    struct leat_sharer sharer;
    const struct leat_conn_handler *handler;
    struct leat_peer *peer;
    size_t memory_bytes;                     /* in use before the test */
    bool crowded, full, no_sharer, no_moved; /* whom nobody lets in */
    bool copies_full, slow, over_share;
    uint8_t sent[CONN_SENT_MAX];
    size_t sent_bytes;
    struct leat_send *send; /* the last one */
    /* What the protocol says to each frame, and when it is asked in vain. */
    enum leat_handled handled[8];
    unsigned takes;
    size_t frame_bytes;
    void *(*on_moved)(void *to_actor, struct leat_conn *conn, void *baggage,
                      const struct leat_conn_handler **out_handler);
    void *baggage;
};
extern struct conn_rig it;
extern struct leat_protocol protocol;
const uint8_t *net_key(const struct leat_conn *conn);

/** A node with 3 connections on core 0, and 5 of an address. */
void begin(void);
/** All memory was given back. */
void end(void);
/** A connection "client" comes to core 0. */
bool try_open(void);
/** The same after begin(), and it was let in. */
struct leat_peer *opened(void);
uint64_t connections(unsigned core);
/** Its connection ends, while nothing is under way. */
void closes(leat_err why);
/** What is said then. */
#define WENT                                                                                       \
    "address goes from 77\nexpect nothing\nquiet ends\nno batch\nno turn\nno structs\nno output\n" \
    "on closed, 1 under way\n"

#endif
