/* SPDX-License-Identifier: Apache-2.0 */
/* groups_calls.c by itself: the groups, streams and other nodes are the test's. */
#ifndef LEAT_TESTS_BROKER_GROUPS_CALLS_RIG_H
#define LEAT_TESTS_BROKER_GROUPS_CALLS_RIG_H

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

enum { BODY = LEAT_CONTROL_BYTES_MAX + 64 };

struct groups_calls_rig {
    struct leat_partition partition;
    struct leat_groups_options options;
    leat_err create, append, seek, stands, made;
    bool append_silent;                             /* why an append fails is not said */
    bool none;                                      /* the stream of homes is not there */
    bool no_partition, unloaded, waits, full, deaf; /* the last: nothing of theirs is cancelled */
    bool fails;                                     /* what waits is answered at once, inside */
    uint32_t home;
    struct leat_stream other; /* that members name */
    struct leat_stream_seek *sought;
    struct leat_maker *maker;
    struct leat_groups_request *request; /* at the home */
    size_t answer_bytes;                 /* that it would take */
    uint8_t *body;
    struct leat_msg_writer writer;
    uint8_t forwarded[128]; /* its end */
    uint32_t forwarded_bytes;
};
extern struct groups_calls_rig it;

void begin(void);
void end(void);
/** The body of a request of that kind, to be written. */
struct leat_msg_writer *body(uint16_t kind);
/** Bodies of so many streams, rows and logs. */
struct leat_msg_writer *join(uint32_t mode, uint32_t streams);
struct leat_msg_writer *commit(uint32_t rows);
struct leat_msg_writer *fetch(uint32_t logs);
/** The request comes. */
void asks(const struct leat_msg_writer *writer);
void leaves(const char *group, size_t group_bytes, const char *member, size_t member_bytes);
/** A leave that waits at its home. */
void begin_waiting(void);

#define HOME    "mail to 0\n"
#define AT_HOME "core 0: home 7/1/0\n"
#define BACK    "mail to 1\n"
#define LEAVE   "leave \"s\" \"m\" generation 0 of 99, 1024 bytes\n"

#endif
