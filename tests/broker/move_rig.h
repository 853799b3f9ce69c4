/* SPDX-License-Identifier: Apache-2.0 */
/* move.c by itself, with two logs on a core each, a target, and the coordinators: all of them the test's. */
#ifndef LEAT_TESTS_BROKER_MOVE_RIG_H
#define LEAT_TESTS_BROKER_MOVE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/partition.h"
#include "tests/broker/alone.h"
#include "wire/message_cluster.h"

enum { TARGET = 200 }; /* its incarnation */

struct leat_log {
    bool writing; /* to its copies */
    const char *name;
    struct leat_log_info info;
    struct leat_log_tail tail;
    void (*on_stopped)(void *arg, struct leat_log *log);
    void *arg;
};

struct move_rig {
    struct leat_log logs[ALONE_LOGS];
    struct leat_partition partition[ALONE_LOGS];
    bool absent[ALONE_LOGS];
    struct leat_member target, self;
    struct leat_mover mover;
    leat_err ask_rc;
    struct leat_ask *ask;
    uint32_t cut; /* so many bytes of the target's answer are missing */
    struct leat_coordinate *request;
    struct leat_timer *timer;
    bool no_call, not_kept;
    struct leat_stream_seek *seek;
    struct leat_call *seek_call;
    uint8_t answer[64];
    leat_err allowed;
};
extern struct move_rig it;

void begin(void);
void end(void);
void start(void);
/** The timer that was started. */
void expire(void);
/** The target names the nodes with which it is connected: `up` nodes with a transport, a node that is up without, and a
 * node that is down. */
void target_answers(leat_err rc, uint32_t up);
void stopped(unsigned q);
void coordinators_say(leat_err rc, uint32_t epoch);
/* From the start to where ... */
void to_ask(void);    /* the target is asked */
void to_stop(void);   /* both logs stop */
void to_commit(void); /* the coordinators are asked */

#endif
