/* SPDX-License-Identifier: Apache-2.0 */
/* Requests off the data path: one allocated struct each, bounded in number. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/net/call.h"
#include "broker/net/core.h"

static void call_turn_away(struct leat_peer *peer, const struct leat_frame *frame, leat_err code,
                           const char *text)
{
    struct leat_core *core = peer->core;
    if (peer == &core->link_peer)
        leat_link_answer_error(core->members.links, core->serving, code, text);
    else
        leat_peer_refuse(peer, (enum leat_kind)frame->kind, frame->request, code, text);
}

/* SUBTLE: an eighth of the places is for other nodes only. Else (1) clients of two addresses hold half of the places
 * each, by requests that wait for long; (2) a node crashes, and the new owners of its logs ask this node for
 * segments; (3) without a place the new owners are told to try again for as long. */
static bool has_place(const struct leat_core *core, const struct leat_peer *peer)
{
    const uint32_t most = core->calls_max, of_nodes = most / 8, own = peer->sharer->calls;
    if (peer == &core->link_peer) return own < of_nodes || core->calls < most;
    return core->calls < most - of_nodes && own < most / 2;
}

void *leat_call_create(struct leat_peer *peer, const struct leat_frame *frame, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
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
    LEAT_ASSERT_OWNER(call->core);
    if (!leat_output_take(call->peer, bytes)) return false;
    call->held += bytes;
    return true;
}

void *leat_call_memory(struct leat_call *call, size_t count, size_t bytes)
{
    LEAT_ASSERT_OWNER(call->core);
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
    LEAT_ASSERT_OWNER(core);
    leat_msg_writer_init(out_writer, core->scratch + LEAT_FRAME_HEADER_BYTES,
                         LEAT_CORE_SCRATCH_BYTES - LEAT_FRAME_HEADER_BYTES);
}

void leat_call_answer(struct leat_call *call, const struct leat_msg_writer *writer)
{
    LEAT_ASSERT_OWNER(call->core);
    struct leat_core *core = call->core;
    LEAT_ASSERT(writer->bytes == core->scratch + LEAT_FRAME_HEADER_BYTES);
    if (writer->overflow) {
        leat_call_refuse(call, LEAT_E_TOO_LARGE,
                         "the answer does not fit one frame (1 MiB): ask for less at once");
        return;
    }
    call_give(call); /* the memory that the call held is free: the call's answer may use it */
    if (!call->by_link && !leat_output_fits(call->peer, writer->used)) {
        leat_output_wait(call->peer, writer->used, true); /* until it is asked again */
        leat_call_refuse(call, LEAT_E_AGAIN,
                         "the memory of this core for answers is full of those that clients have "
                         "not taken: try again");
        return;
    }
    if (call->by_link && core->members.links == NULL)
        LEAT_MAYBE(true); /* the node has stopped meanwhile: the link is gone */
    else if (call->by_link)
        leat_link_answer(core->members.links, &call->ticket, writer->bytes, writer->used);
    else
        leat_peer_send(call->peer, core->scratch, (enum leat_kind)call->kind, LEAT_FRAME_ANSWER,
                       call->request, writer->used, 0);
    call_free(call);
}

void leat_call_refuse(struct leat_call *call, leat_err code, const char *text)
{
    LEAT_ASSERT_OWNER(call->core);
    if (text == NULL || text[0] == '\0') text = leat_err_text(code);
    if (call->by_link && call->core->members.links == NULL)
        LEAT_MAYBE(true); /* as above */
    else if (call->by_link)
        leat_link_answer_error(call->core->members.links, &call->ticket, code, text);
    else
        leat_peer_refuse(call->peer, (enum leat_kind)call->kind, call->request, code, text);
    call_free(call);
}
