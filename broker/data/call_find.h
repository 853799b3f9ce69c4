/* SPDX-License-Identifier: Apache-2.0 */
/* The stream or the log that a request names, which may have been made a moment ago by way of another node.
 * Thread: the call's core. */
#ifndef LEAT_BROKER_DATA_CALL_FIND_H
#define LEAT_BROKER_DATA_CALL_FIND_H

#include "broker/data/seek.h"
#include "broker/net/call.h"

/* A call whose stream may have been made a moment ago by way of another node: its body outlives the frame. */
enum { LEAT_CALL_KEPT_BYTES = 512 }; /* a stream's name, a node's, some numbers */

struct leat_call_kept {
    struct leat_stream_seek seek;
    uint32_t control_bytes;
    uint8_t control[LEAT_CALL_KEPT_BYTES];
};

/** kept: zeroed, the call's. false: the call has been refused. on_again: as of a seek, whose owner is the call. */
bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame,
                    void (*on_again)(struct leat_stream_seek *seek)) LEAT_NODISCARD;
/** false: no stream can have that name, and the call has been refused. */
bool leat_call_name_check(struct leat_call *call, struct leat_msg_string name) LEAT_NODISCARD;
/** The stream that a kept call names. NULL: the call has been refused, or on_again follows. */
const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name) LEAT_NODISCARD;
/** The log that a kept call names. false: as above, or another node has it: the call has been passed on to that
 * node as it came. */
bool leat_call_log_find(struct leat_call *call, struct leat_call_kept *kept,
                        struct leat_msg_string name, uint32_t streamlet, uint32_t log,
                        struct leat_log_ref *out_log, uint32_t *out_home) LEAT_NODISCARD;

#endif
