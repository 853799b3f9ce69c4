/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of simulated processes with links between them, their calls, and strangers. */
#ifndef LEAT_TESTS_LINK_RIG_H
#define LEAT_TESTS_LINK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/link.h"
#include "tests/sim/sim.h"

enum { KIND_ECHO = 400, KIND_HOLD = 401, KIND_COUNT = 402, CORES = 3, HELD_MAX = 8192 };
#define SECOND ((uint64_t)1000000)

/* One actor of a node with its links, and the events of the links. */
struct end {
    struct node *node;
    struct sim_actor *actor;
    struct leat_timers timers;
    struct leat_links *links;
    struct leat_link_handler handler;
    struct leat_link *link;     /* that it opened */
    struct leat_link *accepted; /* the last */
    unsigned ups, downs, downs_unborn, requests;
    struct leat_error last_down;
    struct leat_link_ticket held[HELD_MAX];
    unsigned held_count;
    uint64_t counted;
    bool out_of_order;
    uint8_t first_byte;
};
struct node {
    struct sim_process *process;
    struct leat_link_hub hub;
    struct end ends[CORES];
};

struct setup {
    struct node *node;
    const char *name, *address;
    uint8_t cluster;
    uint64_t incarnation, queued_bytes_max;
    uint32_t strangers_max; /* 0: as many as may be */
    bool strangers;
    const struct leat_key *key; /* NULL: the cluster's */
};

extern struct sim_world *world;
extern struct node *left, *right;
extern const struct leat_key cluster_key;

struct node *node_make(struct setup setup);
void open_with(struct node *node, unsigned core, struct leat_link_options options);
void run(uint64_t us);

struct caller {
    struct leat_link_call call;
    struct leat_iov iov[2];
    struct end *end;
    unsigned done;
    leat_err rc, started;
    bool matched;
};
void call_start(struct node *node, unsigned core, struct caller *caller);

/* Somebody who connects and sends these bytes. */
struct stranger {
    struct sim_actor *actor;
    const char *address;
    const void *bytes;
    size_t count;
    bool closed;
    size_t got;
    uint8_t answer[1024];
};
/* To right:1. */
struct stranger *stranger_make(const void *bytes, size_t count);
/* from: what is one address to limits. */
struct stranger *stranger_from(const char *from, const char *address, const void *bytes,
                               size_t count);

/* A world with left:1 and right:1. */
int setup_world(void **state);
int teardown_world(void **state);

#endif
