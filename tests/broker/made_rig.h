/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c by itself: the coordinators, tables and rates are the test's. */
#ifndef LEAT_TESTS_BROKER_MADE_RIG_H
#define LEAT_TESTS_BROKER_MADE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin/streams.h"
#include "broker/net/output.h"
#include "tests/broker/alone.h"

enum { HEAP = LEAT_LOG_HEAP_BYTES, CORE = 1 /* that asks */ };

struct made_rig {
    uint64_t heap, room;
    struct leat_member rows[4];
    struct leat_sharer sharer;
    bool full_all, full_own, full_half; /* rates; full_half: the address's, once all's was taken */
    leat_err name, sought[3];
    unsigned seeks;
    struct leat_coordinate *request;
    struct leat_catch_up *catch_up;
    struct leat_stream_seek *seek;
    bool named; /* leat_stream_find_name() finds the stream */
    unsigned unrefs;
    struct leat_stream *buckets[2];
};
extern struct made_rig it;

static struct leat_core *const core = &alone.cores[CORE];

void begin(void);
void end(void);
/** Memory is counted; so many nodes are up, and one is down; `other` is taken beside logs. */
void begin_counted(uint32_t up, uint64_t logs, uint64_t other);

#endif
