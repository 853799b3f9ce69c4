/* SPDX-License-Identifier: Apache-2.0 */
/* Clients' calls at a source by itself: each comes on core 1, says how it is answered, and is freed with that. */
#ifndef LEAT_TESTS_BROKER_ALONE_CALLS_H
#define LEAT_TESTS_BROKER_ALONE_CALLS_H

#include "broker/net/call.h"
#include "tests/broker/alone.h"

struct alone_calls {
    struct leat_peer peer;
    uint16_t kind;           /* of the next */
    bool by_link;            /* another node hands it on */
    bool none, not_kept;     /* there is no place for a call; its body is too long */
    bool no_log;             /* leat_call_log_find(): it is refused, or on its way */
    struct leat_log_ref log; /* what that finds */
    struct leat_stream_seek *seek;
    uint8_t answer[64 * 1024];
    uint32_t answer_bytes;
    unsigned open; /* calls that are not answered */
};
extern struct alone_calls calls;

/** With a body that was written by this. */
void alone_call(leat_call_fn call, const struct leat_msg_writer *body);
/** The last answer. */
void alone_answer(struct leat_msg_reader *out_reader);

#endif
