/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c and news.c by themselves: a node of two cores, whose logs, tables and coordinators are the test's. Stream 7
 * has two streamlets of two logs each; log q is on core q. */
#ifndef LEAT_TESTS_BROKER_WALK_RIG_H
#define LEAT_TESTS_BROKER_WALK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/places.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "tests/broker/alone.h"

struct walk_rig {
    struct leat_stream streams[ALONE_CORES]; /* of each core's table, where there */
    struct leat_stream *by_id[ALONE_CORES][2];
    struct leat_partition logs[ALONE_CORES][ALONE_STREAMLETS];
    bool there[ALONE_CORES][ALONE_STREAMLETS];
    struct leat_begun_log
        row; /* all logs have begun, where it is told: of a table that nobody looks into */
    bool begun_told, no_heap;
    leat_err create;
    unsigned desc_refs, begun_refs;
    unsigned forgotten;         /* cores that have forgotten the stream's places */
    struct leat_partition home; /* of groups, on core 0's list where it is in that */
    uint32_t set_rows;
    struct leat_coordinate *request;
    void (*on_gone)(void *arg, struct leat_log *log);
    void *gone_arg;
};
extern struct walk_rig it;

void begin(void);
void end(void);
/** The stream is on both cores, published; and its logs. */
void is_there(void);
/** News are carried to their end, in turns with all that they may use. */
void carried(void);

#endif
