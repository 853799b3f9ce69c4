/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c by itself: logs, their copies, other nodes and the store are the test's. The stream is "orders", whose log
 * q of streamlet s is on core q; calls come on core 1. */
#ifndef LEAT_TESTS_BROKER_DESCRIBE_RIG_H
#define LEAT_TESTS_BROKER_DESCRIBE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/report.h"
#include "broker/data/partition.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

enum { DESCRIBE_ASKS = LEAT_NODES_MAX + 1, NODE_B = 200, NODE_C = 300 };

/* A log, as far as it is asked. */
struct leat_log {
    struct leat_log_info info;
    struct leat_log_passed passed;
    uint64_t lost;
    leat_err trouble;
    bool front_unknown, lacks_space, reads_wait;
    leat_err located; /* how looking for its front begins */
};

struct describe_rig {
    struct leat_partition partition[ALONE_STREAMLETS][ALONE_LOGS];
    struct leat_log logs[ALONE_STREAMLETS][ALONE_LOGS];
    struct leat_primary_log_status status;
    struct leat_rep_segment_status segments[LEAT_SEGMENT_ROWS_MAX + 2];
    uint32_t segment_count;
    struct leat_member rows[3];
    leat_err seek;
    bool heap_refuses;
    struct leat_locate_op *front; /* that is looked for */
    struct leat_mail *to_store;
    struct leat_env store_env;
    uint64_t disk_lacks;
    unsigned ask_refused; /* the number of the one that can't be asked; 0: none */
    struct leat_ask *asks[DESCRIBE_ASKS];
    unsigned ask_count;
    uint32_t shift; /* so many cores on is each log */
    void (*post)(void *ctx, unsigned to, struct leat_mail *mail);
    size_t memory_bytes;
};
extern struct describe_rig it;

/** All logs are this node's, and are served; the cluster has n1, which is this node, b and c. */
void begin(void);
/** Nothing is left of any call. */
void end(void);
/** A log of streamlet s is on this node; each field of its description has a number of its own. */
struct leat_log *hosts(uint32_t s, uint32_t q);
/** Streamlet 1 belongs to another node, and nothing of it is here. */
void of_other(uint64_t owner);
/** Mail is delivered until none is on its way, the store's as well. */
void deliver_all(void);

#endif
