/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c by itself: the log, its copies, the tables and the coordinators are the test's. The log is 7/1/0, on
 * core 0; calls come on core 1. */
#ifndef LEAT_TESTS_BROKER_LOSS_RIG_H
#define LEAT_TESTS_BROKER_LOSS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

struct loss_rig {
    struct leat_partition partition;
    bool there;
    struct leat_log_info info;
    struct leat_log_passed passed;
    leat_err trouble, open, absent;
    struct leat_log_damage damages[3];
    unsigned damage_count;
    struct leat_coordinate *request;
    void (*on_stopped)(void *arg, struct leat_log *log);
    void (*on_idle)(void *arg);
    void (*on_skipped)(void *arg, struct leat_log *log);
    void *stop_arg, *idle_arg, *skip_arg;
    struct leat_segment segs[3];
    struct leat_segment *found[3];
    struct leat_begun_log begun; /* the one row of a table that nobody looks into */
};
extern struct loss_rig it;

void begin(void);
void end(void);
/** An operator accepts the loss, or asks what would be kept; it comes to the log's core. */
void accepts(void);
void wonders(void);
void coordinators_say(leat_err rc);
/** From the start to where the loss is committed, and its log stops. */
void to_stop(void);
void stopped(void);
void idle(void);
void skipped(void);
/** The answer's, when there is one. */
uint64_t answered_offset(void);

#endif
