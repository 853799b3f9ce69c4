/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c by itself: logs, their copies, groups and the coordinators are the test's. Logs are 7/1/0 and up, on
 * core 0,
 * which keeps them in its own table. */
#ifndef LEAT_TESTS_BROKER_PARTITION_RIG_H
#define LEAT_TESTS_BROKER_PARTITION_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/broker/alone.h"

/* A log, as far as its core asks. */
struct leat_log {
    struct leat_log_ref ref;
    struct leat_log_options options;
    struct leat_log_info info;
    const struct leat_segment *first, *held;
    bool reads_wait, closed;
};

struct partition_rig {
    bool of_groups, heap_full, heap_refuses, pressed, no_copies;
    leat_err attach, groups, create;
    uint32_t version; /* leat_primary_opening() */
    struct leat_coordinate *requests[LEAT_OPENERS_MAX + 1];
    unsigned request_count;
    uint64_t hibernate_us; /* of the log that was made last, or cared for */
    const struct leat_begun_log *row;
};
extern struct partition_rig it;

void begin(void);
/** All logs are destroyed. */
void end(void);
/** A log of stream 7 and that number. */
struct leat_partition *make(uint32_t number);
struct leat_core *core_of_all(void);

#endif
