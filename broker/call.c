/* Requests off the data path: one allocated struct each, bounded in number. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/core.h"

static void call_turn_away(struct leat_peer *peer, const struct leat_frame *frame, leat_err code,
                           const char *text)
{
    struct leat_core *core = peer->core;
    if (peer == &core->link_peer)
        leat_link_answer_error(core->members.links, core->serving, code, text);
    else
        leat_peer_refuse(peer, (enum leat_kind)frame->kind, frame->request, code, text);
}

/* SUBTLE: an eighth of the places is for other nodes alone. (1) Clients of two addresses hold half each, by requests
 * that wait for long. (2) A node crashes, and those that take over its logs ask here for segments. (3) Without a place
 * they were told to try again for as long. */
static bool has_place(const struct leat_core *core, const struct leat_peer *peer)
{
    const uint32_t most = core->calls_max, of_nodes = most / 8, own = peer->sharer->calls;
    if (peer == &core->link_peer) return own < of_nodes || core->calls < most;
    return core->calls < most - of_nodes && own < most / 2;
}

void *leat_call_create(struct leat_peer *peer, const struct leat_frame *frame, size_t bytes)
{
    struct leat_core *core = peer->core;
    struct leat_call *call = NULL;
    LEAT_ASSERT_CMP(bytes, >=, sizeof *call);
    if (core->stopping) {
        call_turn_away(peer, frame, LEAT_E_STARTING, "the server is stopping");
        return NULL;
    }
    const bool placed = has_place(core, peer);
    const size_t own = placed ? 0 : bytes;
    if (placed || leat_own_take(peer, peer->requests == 0, own)) {
        if (leat_output_take(peer, bytes)) {
            call = leat_mem_calloc(LEAT_MEM_BROKER, 1, bytes);
            if (call == NULL) leat_output_give(peer, bytes);
        }
        if (call == NULL && own > 0) leat_own_give(core, peer, own);
    }
    if (call == NULL) {
        call_turn_away(peer, frame, LEAT_E_AGAIN,
                       "too many requests are under way on this core, try again");
        return NULL;
    }
    if (peer == &core->link_peer) {
        call->by_link = true;
        call->ticket = *core->serving;
    }
    call->core = core;
    call->peer = peer;
    call->held = bytes;
    call->own = own;
    call->kind = frame->kind;
    call->request = frame->request;
    core->calls++;
    peer->sharer->calls++;
    leat_peer_begin(peer);
    return call;
}

bool leat_call_hold(struct leat_call *call, size_t bytes)
{
    if (!leat_output_take(call->peer, bytes)) return false;
    call->held += bytes;
    return true;
}

void *leat_call_memory(struct leat_call *call, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || !leat_output_take(call->peer, all))
        return NULL;
    void *block = leat_mem_calloc(LEAT_MEM_BROKER, count, bytes);
    if (block == NULL)
        leat_output_give(call->peer, all);
    else
        call->held += all;
    return block;
}

bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame, void (*on_again)(struct leat_stream_seek *seek))
{
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
    struct leat_error error;
    leat_err rc = leat_stream_name_check(name.text, name.bytes, &error);
    if (rc != LEAT_OK) leat_call_refuse(call, rc, error.text);
    return rc == LEAT_OK;
}

const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name)
{
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
    struct leat_core *core = call->core;
    const struct leat_stream *stream = leat_call_stream_find(call, kept, name);
    struct leat_error error;
    if (stream == NULL) return false;
    if (streamlet >= stream->desc->streamlet_count || log >= stream->desc->settings.logs) {
        leat_error_set(&error, LEAT_E_UNKNOWN_LOG, "stream \"%.*s\" has no streamlet %u log %u",
                       (int)name.bytes, name.text, streamlet, log);
        leat_call_refuse(call, error.code, error.text);
        return false;
    }
    if (!leat_core_owns(core, stream->desc, streamlet)) {
        leat_call_forward(call, stream->desc->streamlets[streamlet].owner, kept->control,
                          kept->control_bytes);
        return false;
    }
    *out_log = (struct leat_log_ref){stream->desc->id, streamlet, log};
    *out_home = leat_core_of_log(core->node, *out_log, stream->desc->settings.logs);
    return true;
}

static void call_give(struct leat_call *call)
{
    leat_output_give(call->peer, call->held);
    call->held = 0;
}

static void call_free(struct leat_call *call)
{
    struct leat_peer *peer = call->peer;
    call->core->calls--;
    peer->sharer->calls--;
    if (call->own > 0) leat_own_give(call->core, peer, call->own);
    call_give(call);
    leat_mem_free(call);
    leat_peer_end(peer);
}

void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer)
{
    leat_msg_writer_init(out_writer, core->scratch + LEAT_FRAME_HEADER_BYTES,
                         LEAT_CORE_SCRATCH_BYTES - LEAT_FRAME_HEADER_BYTES);
}

void leat_call_answer(struct leat_call *call, const struct leat_msg_writer *writer)
{
    struct leat_core *core = call->core;
    LEAT_ASSERT(writer->bytes == core->scratch + LEAT_FRAME_HEADER_BYTES);
    if (writer->overflow) {
        leat_call_refuse(call, LEAT_E_TOO_LARGE,
                         "the answer does not fit one frame (1 MiB): ask for less at once");
        return;
    }
    call_give(call); /* what it held is of no use any more: its answer may have that room */
    if (!call->by_link && !leat_output_fits(call->peer, writer->used)) {
        leat_output_wait(call->peer, writer->used, true); /* until it is asked again */
        leat_call_refuse(call, LEAT_E_AGAIN,
                         "the memory of this core for answers is full of those that clients have "
                         "not taken: try again");
        return;
    }
    if (call->by_link && core->members.links == NULL)
        LEAT_MAYBE(true); /* the node has stopped meanwhile: nobody is left who could take it */
    else if (call->by_link)
        leat_link_answer(core->members.links, &call->ticket, writer->bytes, writer->used);
    else
        leat_peer_send(call->peer, core->scratch, (enum leat_kind)call->kind, LEAT_FRAME_ANSWER,
                       call->request, writer->used, 0);
    call_free(call);
}

void leat_call_refuse(struct leat_call *call, leat_err code, const char *text)
{
    if (text == NULL || text[0] == '\0') text = leat_err_text(code);
    if (call->by_link && call->core->members.links == NULL)
        LEAT_MAYBE(true); /* as above */
    else if (call->by_link)
        leat_link_answer_error(call->core->members.links, &call->ticket, code, text);
    else
        leat_peer_refuse(call->peer, (enum leat_kind)call->kind, call->request, code, text);
    call_free(call);
}
