/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c by itself: replicas, the disk and the coordinator are the test's. */
#ifndef LEAT_TESTS_BROKER_COLLECT_RIG_H
#define LEAT_TESTS_BROKER_COLLECT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/ownership/filter.h"
#include "tests/broker/alone.h"

enum { REPLICAS = 300, LOGS = 3, FENCES = 4, AGAIN = 10 * 1000 };

struct collect_rig {
    struct leat_replica_info replicas[REPLICAS]; /* that this node has */
    size_t replica_count;
    struct leat_segment segs[REPLICAS];
    struct leat_collect_log logs[LOGS];
    struct leat_crashed_node crashed[FENCES];
    struct leat_collect collect;
    leat_err fence, look, flush, pull; /* what these answer */
    void (*on_fenced)(void *arg);
    void *fence_arg;
    void (*on_looked)(void *arg, bool begins);
    void *look_arg;
    void (*on_flushed)(void *arg, leat_err rc);
    void *flush_arg;
    struct leat_backup_pull *pulling;
    struct leat_timer *timer;
    struct leat_scan scan; /* of whatever is scanned */
    bool holds;
    unsigned crashes; /* on_crashed() */
    struct leat_pull wanted;
    struct leat_member members[4];
};
extern struct collect_rig it;

void begin(void);
void end(void);
/** The timer that was started. */
void expire(void);

#endif
