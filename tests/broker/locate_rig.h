/* SPDX-License-Identifier: Apache-2.0 */
/* locate.c and confirm.c by themselves: logs, buffers and the coordinators are the test's. Log 7/1/q is on core q;
 * locators are core 0's, clients' calls core 1's. */
#ifndef LEAT_TESTS_BROKER_LOCATE_RIG_H
#define LEAT_TESTS_BROKER_LOCATE_RIG_H

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
#include "broker/data/serve.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

enum { LOCATORS = 6, PLACES = 3 };

struct locator {
    struct leat_locator locator;
    struct leat_msg_locate asked[PLACES];
    struct leat_msg_located found[PLACES];
    struct leat_epoch epochs[PLACES];
    struct leat_locate_range ranges[PLACES];
};

struct locate_rig {
    struct locator locators[LOCATORS];
    struct leat_peer peers[LOCATORS];
    struct leat_partition partition[ALONE_CORES];
    bool gone, no_buffer, reads_wait, later, seeks;
    leat_err place, route, absent, rc,
        read_rc; /* what these answer; of a locate, and of its read */
    leat_err hope;
    unsigned steps; /* that a batch takes besides the last */
    struct leat_locate_op *op;
    struct leat_buffer_wait *waiting;
    struct leat_catch_up *catching_up;
};
extern struct locate_rig it;

void begin(void);
void end(void);
/** Start one of a connection, for so many places: log 7/1/`log`, offsets 100 and up. */
struct locator *locates(unsigned at, unsigned peer, uint32_t log, uint32_t count);
/** What is asked of a log later ends. */
void located(leat_err rc);
void caught_up(leat_err rc);

#endif
