/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/alone_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/call_find.h"
#include "broker/net/call.h"

struct alone_calls calls;

void *leat_call_create(struct leat_peer *peer, const struct leat_frame *frame, size_t bytes)
{
    assert_ptr_equal(peer, &calls.peer);
    (void)frame;
    struct leat_call *call = calls.none ? NULL : calloc(1, bytes);
    if (call == NULL) return NULL;
    call->core = peer->core;
    call->peer = peer;
    call->kind = calls.kind;
    call->by_link = calls.by_link;
    calls.open++;
    return call;
}
bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame, void (*on_again)(struct leat_stream_seek *seek))
{
    if (calls.not_kept) {
        leat_call_refuse(call, LEAT_E_TOO_LARGE, "too long");
        return false;
    }
    memcpy(kept->control, frame->control, frame->control_bytes);
    kept->control_bytes = frame->control_bytes;
    kept->seek.on_again = on_again;
    kept->seek.owner = call;
    calls.seek = &kept->seek;
    return true;
}
bool leat_call_log_find(struct leat_call *call, struct leat_call_kept *kept,
                        struct leat_msg_string name, uint32_t streamlet, uint32_t log,
                        struct leat_log_ref *out_log, uint32_t *out_home)
{
    (void)call, (void)kept;
    said("find %.*s/%u/%u", (int)name.bytes, name.text, streamlet, log);
    if (calls.no_log) return false;
    *out_log = calls.log;
    *out_home = calls.log.log % ALONE_CORES;
    return true;
}
void *leat_call_memory(struct leat_call *call, size_t count, size_t bytes)
{
    assert_non_null(call);
    return leat_mem_calloc(LEAT_MEM_BROKER, count, bytes);
}
void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer)
{
    assert_ptr_equal(core, calls.peer.core);
    leat_msg_writer_init(out_writer, calls.answer, sizeof calls.answer);
}
static void call_end(struct leat_call *call)
{
    assert_non_null(call);
    assert_in_range(calls.open, 1, 1000);
    calls.open--;
    free(call);
}
void leat_call_answer(struct leat_call *call, const struct leat_msg_writer *writer)
{
    assert_false(writer->overflow);
    calls.answer_bytes = (uint32_t)writer->used;
    said("answer");
    call_end(call);
}
void leat_call_refuse(struct leat_call *call, leat_err code, const char *refusal)
{
    said("refuse %s%s%s", leat_err_name(code), refusal != NULL ? ": " : "",
         refusal != NULL ? refusal : "");
    call_end(call);
}

void alone_call(leat_call_fn call, const struct leat_msg_writer *body)
{
    calls.peer.core = &alone.cores[1];
    struct leat_frame frame = {.control = body->bytes, .control_bytes = (uint32_t)body->used};
    assert_false(body->overflow);
    call(&calls.peer, &frame);
}

void alone_answer(struct leat_msg_reader *out_reader)
{
    leat_msg_reader_init(out_reader, calls.answer, calls.answer_bytes);
}
