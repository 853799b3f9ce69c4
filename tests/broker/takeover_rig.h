/* SPDX-License-Identifier: Apache-2.0 */
/* takeover*.c by themselves: the replicas, the log, its core's tables and the disk are the test's. One log, 7/1/1,
 * whose home is core 1. */
#ifndef LEAT_TESTS_BROKER_TAKEOVER_RIG_H
#define LEAT_TESTS_BROKER_TAKEOVER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/ownership/takeover.h"
#include "tests/broker/alone.h"

enum { HOME = 1, EPOCH = 9, TICK = LEAT_TAKEOVER_TICK_US };
static const struct leat_log_ref LOG = {ALONE_STREAM, 1, 1};

struct takeover_rig {
    struct leat_partition partition; /* what leat_partition_find() finds, where there */
    bool deleted;                    /* the log's stream */
    bool there, rows_damaged, front_known,
        lost;                               /* lost: no node has the bytes of what is damaged */
    uint64_t retained;                      /* the log's first */
    struct leat_segment first, behind, seg; /* the log's; what is adopted */
    const struct leat_segment *first_held, *held;          /* NULL: none */
    struct leat_log_hole hole, lower;                      /* behind NULL: none */
    leat_err adopt, look, pull, take, create, add, copies; /* what these answer */
    void (*on_adopted)(void *arg, leat_err rc, struct leat_segment *seg);
    void *adopt_arg;
    struct leat_backup_pull *pulling;
    struct leat_below *below;
    struct leat_timer *timer;
    bool start_found;
    uint32_t start_end;
    struct leat_start start;
    struct leat_member members[4];
};
extern struct takeover_rig it;

void begin(void);
/** With nothing left. */
void end(void);
/** The log has begun: what the coordinators' tables say of it. */
struct leat_begun_log *begun(void);
/** It is asked for, and came to core 0: the first mail and the kick have come. */
struct leat_takeover *ask(void);
/** The timer of core 0. */
void tick(void);
void adopted(leat_err rc);
void pulled(leat_err rc);
/** What is behind it is `found`: so many candidates of that segment, prefix ids {1000, 1}, {1000, 2}. */
void below_found(leat_err rc, uint64_t segment, uint32_t count);
/** The node of that row of `members`. */
void node_is(unsigned row, enum leat_node_state state, bool draining);
unsigned takeovers(void);
/** A takeover of core 0's, at its first step: of segment 4, {bytes, 4}. */
struct leat_takeover *wants(enum takeover_state state, uint32_t bytes);
/** With it under way. */
void ends(void);
/** Not before so many microseconds. */
void assert_pauses(const struct leat_takeover *takeover, uint64_t us);
/** Let the pause pass, and look. */
void later(uint64_t us);
/** ... and what is pulled then fails. */
void fails(leat_err rc, uint64_t pause_us);

#endif
