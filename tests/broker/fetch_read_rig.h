/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_read.c by itself: logs, stocks and buffers are the test's. A fetch of core 0's with some logs: log 7/1/q is on
 * core q. */
#ifndef LEAT_TESTS_BROKER_FETCH_READ_RIG_H
#define LEAT_TESTS_BROKER_FETCH_READ_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/fetch.h"
#include "broker/data/partition.h"
#include "tests/broker/alone.h"

enum { ITEMS = 3, BUFFERS = 2 };

struct fetch_rig {
    struct leat_peer peer;
    struct leat_fetch fetch;
    struct leat_fetch_item
        items[ITEMS]; /* of log 7/1/q on core q; the third is the first log again */
    struct leat_partition partition[ALONE_CORES];
    struct leat_segment seg;
    bool gone, front_unknown, reads_wait, lacks, later, no_read, no_buffer, older_found;
    bool second_later; /* the second read ends later */
    unsigned reads_begun;
    leat_err absent, rc;
    leat_err hope; /* LEAT_OK: as it was */
    uint32_t bytes, group, records;
    uint64_t next, acked;
    enum leat_log_state log_state;
    bool full, pins;
    struct leat_read *read;
    unsigned reads, buffers; /* that are out */
    char buffer[BUFFERS][8];
};
extern struct fetch_rig it;

/** A fetch of so many logs, the first of which is 7/1/`first_log`, and the others in turn. */
void begin(uint32_t count, uint32_t first_log);
/** What it has is given back. */
void end(void);
/** All steps that end at once. */
void run(void);
/** The read that was begun last ends. */
void ends_later(void);

#endif
