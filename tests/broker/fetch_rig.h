/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c by itself: reads, waits, stocks, the connection and the coordinators are the test's. Fetches are of core 0;
 * log 7/1/q is on core q. */
#ifndef LEAT_TESTS_BROKER_FETCH_RIG_H
#define LEAT_TESTS_BROKER_FETCH_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/fetch.h"
#include "tests/broker/alone.h"
#include "wire/message.h"

enum { FETCH_ITEMS = 4 };

struct fetch_rig {
    struct leat_peer peer;
    struct leat_sharer sharer;
    struct leat_net net;
    uint8_t scratch[4096];
    bool slow, no_fetch, no_items, no_width, clustered, enough;
    leat_err route;
    bool end_missing;                             /* of each log */
    struct leat_msg_fetched results[FETCH_ITEMS]; /* what each log's read comes to, in order */
    bool later;                                   /* reads go on elsewhere */
    bool full;
    bool left;              /* records follow what was read */
    bool lent[FETCH_ITEMS]; /* batches of it lie with a read */
    struct leat_confirm *confirm;
    struct leat_send *sends[FETCH_ITEMS];
    unsigned send_count, fetches, items, reads, waited;
    const struct leat_timer *stopped; /* the timer that was stopped last */
    struct leat_fetch *last, *ready;
};
extern struct fetch_rig it;

void begin(void);
void end(void);
/** A frame of so many logs: 7/1/0, 7/1/1 and so on in turn, from offset 40. */
enum leat_handled frame(uint32_t number, uint32_t logs, uint32_t min_bytes, uint32_t max_bytes,
                        uint32_t wait_ms);
/** What log `at` has: so many bytes, or a code. */
void has(unsigned at, leat_err code, uint32_t bytes);
void confirmed(leat_err rc);
/** The send of this number has left. */
void sent(unsigned at);

#endif
