/* SPDX-License-Identifier: Apache-2.0 */
/* The stream or the log that a request names, which may have been made a moment ago by way of another node. */
#include <string.h>

#include "base/assert.h"
#include "broker/data/call_find.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"

bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame, void (*on_again)(struct leat_stream_seek *seek))
{
    LEAT_ASSERT_OWNER(call->core);
    if (frame->control_bytes > sizeof kept->control) {
        leat_call_refuse(call, LEAT_E_INVALID, "the control body is longer than any that is valid");
        return false;
    }
    memcpy(kept->control, frame->control, frame->control_bytes);
    kept->control_bytes = frame->control_bytes;
    kept->seek.on_again = on_again;
    kept->seek.catch_up.address = leat_peer_asks(call->peer);
    kept->seek.owner = call;
    return true;
}

bool leat_call_name_check(struct leat_call *call, struct leat_msg_string name)
{
    LEAT_ASSERT_OWNER(call->core);
    struct leat_error error;
    leat_err rc = leat_stream_name_check(name.text, name.bytes, &error);
    if (rc != LEAT_OK) leat_call_refuse(call, rc, error.text);
    return rc == LEAT_OK;
}

const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name)
{
    LEAT_ASSERT_OWNER(call->core);
    struct leat_stream *stream;
    struct leat_error error;
    if (!leat_call_name_check(call, name)) return NULL;
    leat_err rc = leat_stream_seek(call->core, &kept->seek, name.text, name.bytes, &stream, &error);
    if (rc == LEAT_OK) return stream;
    if (rc != LEAT_E_AGAIN) leat_call_refuse(call, rc, error.text);
    return NULL;
}

bool leat_call_log_find(struct leat_call *call, struct leat_call_kept *kept,
                        struct leat_msg_string name, uint32_t streamlet, uint32_t log,
                        struct leat_log_ref *out_log, uint32_t *out_home)
{
    LEAT_ASSERT_OWNER(call->core);
    const struct leat_stream *stream = leat_call_stream_find(call, kept, name);
    struct leat_error error;
    if (stream == NULL) return false;
    *out_log = (struct leat_log_ref){stream->desc->id, streamlet, log};
    leat_err rc = leat_partition_place(call->core, *out_log, out_home, &error);
    if (rc == LEAT_E_NOT_OWNER)
        leat_call_forward(call, stream->desc->streamlets[streamlet].owner, kept->control,
                          kept->control_bytes);
    else if (rc != LEAT_OK)
        leat_call_refuse(call, rc, error.text);
    return rc == LEAT_OK;
}
