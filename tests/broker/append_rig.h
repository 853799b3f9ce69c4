/* SPDX-License-Identifier: Apache-2.0 */
/* append.c by itself: connections, stocks, the check of batches and the log are the test's. The log is 7/1/0 (or
 * 7/1/1), on core 0 (or 1); the connection is on core 0. */
#ifndef LEAT_TESTS_BROKER_APPEND_RIG_H
#define LEAT_TESTS_BROKER_APPEND_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/append.h"
#include "broker/data/partition.h"
#include "tests/broker/alone.h"

enum { APPENDS = 16, ANSWER_MOST = 64 * 1024 };

struct append_rig {
    struct leat_peer peer;
    struct leat_partition partition[ALONE_CORES];
    bool gone; /* the log */
    leat_err route, absent;
    uint32_t route_core;       /* that looks for it */
    leat_err appends[APPENDS]; /* the log's answers, in order; then LEAT_OK */
    unsigned append_at;
    struct leat_append *waiting[APPENDS]; /* for their acks */
    bool unacked;                         /* the log has appends that are not acked */
    bool clustered;                       /* another node may own the log by now */
    struct leat_confirm *confirm;         /* the coordinators are asked about that */
    unsigned waiting_count;
    leat_err unpacks[APPENDS]; /* what leat_unpack() says, likewise */
    unsigned unpack_at;
    bool unpack_waits, no_request, no_parts, no_width;
    unsigned requests, parts; /* taken from stocks */
    uint8_t answer[ANSWER_MOST];
    size_t answer_bytes;
    uint32_t cut; /* so many bytes are missing at the end of a frame's payload */
    struct leat_append_request *done; /* on_done() */
};
extern struct append_rig it;

void begin(void);
void end(void);

/* A batch of these: so many bytes, its codec, what its check says, and so many records. */
enum { PLAIN = LEAT_CODEC_NONE, PACKED = LEAT_CODEC_LZ4 };
struct batch {
    uint8_t bytes, codec, check, records;
};
/** A frame of that request to log 7/1/`log`, epoch 9, of these batches, of which it says that there are `said`. */
enum leat_handled frame(uint32_t number, uint32_t log, const struct batch *batches, uint32_t count,
                        uint32_t said_count);
/** The same of one plain batch of 10 bytes with 2 records. */
enum leat_handled frame_plain(uint32_t number, uint32_t log);
/** The append of this number, from 0, is acked. */
void acked(unsigned at, leat_err rc);
/** The turn ends: answers, in words, one line each; "" and false: none. */
void answers(void);

#endif
