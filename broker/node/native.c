/* SPDX-License-Identifier: Apache-2.0 */
/* Leat's own protocol on a connection: hello, frames, and which part answers a request. */
#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/admin/calls.h"
#include "broker/data/serve.h"
#include "broker/net/call.h"
#include "broker/node/native.h"
#include "broker/ownership/calls.h"
#include "link/link.h"
#include "wire/speaker.h"

static enum leat_handled peer_take(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                   size_t *out_taken, size_t *out_want);
static void peer_native_closed(struct leat_peer *peer);
static enum leat_handled peer_frame(struct leat_peer *peer, const struct leat_frame *frame);
static enum leat_handled peer_hello(struct leat_peer *peer, const struct leat_frame *frame);
static void peer_greet(struct leat_peer *peer, uint32_t request);

static const struct leat_protocol native = {peer_take, peer_native_closed, leat_append_answer, 0,
                                            peer_greet};

static void peer_native_closed(struct leat_peer *peer)
{
    leat_append_peer_closed(peer);
    leat_fetch_peer_closed(peer);
    leat_groups_peer_closed(peer);
}

void *leat_peer_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler)
{
    return leat_peer_accepted(acceptor, conn, &native, 0, out_handler);
}

static enum leat_handled peer_take(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                                   size_t *out_taken, size_t *out_want)
{
    struct leat_frame frame = {0};
    leat_err rc = leat_frame_decode(data, bytes, &frame, out_want);
    if (rc == LEAT_E_AGAIN && !peer->greeted && *out_want > LEAT_FIRST_FRAME_BYTES_MAX) {
        leat_peer_refuse_and_close(peer, frame.kind, frame.request, LEAT_E_TOO_LARGE,
                                   "the first request has to be hello, of 64 KiB at most");
        *out_taken = bytes;
        return LEAT_LEFT;
    }
    if (rc == LEAT_E_AGAIN) return LEAT_SHORT;
    if (rc != LEAT_OK) {
        const char *speaks = peer->greeted ? NULL : leat_speaker_text(leat_speaker_of(data, bytes));
        static_assert(LEAT_FRAME_BYTES_MAX == 8 << 20 && LEAT_CONTROL_BYTES_MAX == 1 << 20,
                      "the sentence below names them");
        /* SUBTLE: the request's number may be what is damaged. (1) A bit of the number flips: the number is another
         * request's, whose batch is being appended. (2) The refusal would name this other request. (3) The client would
         * take CORRUPT, INVALID or TOO_LARGE for a promise that the batch is in no log. */
        leat_peer_refuse_and_close(
            peer, frame.kind, peer->greeted ? 0 : frame.request, rc,
            speaks != NULL ? speaks
            : rc == LEAT_E_TOO_LARGE
                ? "the frame is larger than 8 MiB, or its control body than 1 MiB"
            : rc == LEAT_E_CORRUPT ? "the frame's header or control body fails its CRC"
                                   : "this is not a frame of Leat's protocol");
        *out_taken = bytes;
        return LEAT_LEFT;
    }
    *out_taken = frame.frame_bytes;
    return peer_frame(peer, &frame);
}

static enum leat_handled peer_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    if (!peer->greeted) return peer_hello(peer, frame);
    if (frame->kind == LEAT_KIND_APPEND) return leat_append_frame(peer, frame);
    if (frame->kind == LEAT_KIND_FETCH) return leat_fetch_frame(peer, frame);
    struct leat_error error;
    if (leat_administers(frame->kind) && !leat_peer_may_administer(peer)) {
        leat_administer_refusal(peer, &error);
        leat_peer_refuse(peer, (enum leat_kind)frame->kind, frame->request, error.code, error.text);
        return LEAT_HANDLED;
    }
    if (!leat_pace_begin(peer)) return LEAT_HELD;
    bool known = leat_peer_call(peer, frame);
    leat_pace_end(peer);
    if (known) return peer->closing ? LEAT_LEFT : LEAT_HANDLED;
    char text[96];
    leat_error_set(&error, LEAT_E_UNSUPPORTED, "this server knows no request of kind %u",
                   frame->kind);
    memcpy(text, error.text, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    leat_peer_refuse(peer, (enum leat_kind)frame->kind, frame->request, LEAT_E_UNSUPPORTED, text);
    return LEAT_HANDLED;
}

bool leat_peer_call(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    static const leat_call_fn calls[] = {
        [LEAT_KIND_PING] = leat_call_ping,
        [LEAT_KIND_METADATA] = leat_call_metadata,
        [LEAT_KIND_STREAM_CREATE] = leat_call_stream_create,
        [LEAT_KIND_STREAM_DELETE] = leat_call_stream_delete,
        [LEAT_KIND_STREAM_DESCRIBE] = leat_call_stream_describe,
        [LEAT_KIND_PRODUCER_ID] = leat_call_producer_id,
        [LEAT_KIND_LOCATE] = leat_call_locate,
        [LEAT_KIND_GROUP_JOIN] = leat_call_group,
        [LEAT_KIND_GROUP_HEARTBEAT] = leat_call_group,
        [LEAT_KIND_GROUP_LEAVE] = leat_call_group,
        [LEAT_KIND_GROUP_COMMIT] = leat_call_group,
        [LEAT_KIND_GROUP_FETCH] = leat_call_group,
        [LEAT_KIND_LOG_RECOVER] = leat_call_recover,
        [LEAT_KIND_STATUS] = leat_call_status,
        [LEAT_KIND_CLUSTER_STATUS] = leat_call_cluster_status,
        [LEAT_KIND_NODE_CHANGE] = leat_call_node_change,
        [LEAT_KIND_SEGMENTS] = leat_call_segments,
        [LEAT_KIND_NODE_REPORT] = leat_call_node_report,
        [LEAT_KIND_SEGMENT_GROUP] = leat_call_segment_group,
        [LEAT_KIND_STREAMLET_MOVE] = leat_call_streamlet_move,
        [LEAT_KIND_STREAM_TRIM] = leat_call_stream_trim,
        [LEAT_KIND_PLACES] = leat_call_places,
        [LEAT_KIND_LOG_BELOW] = leat_call_below,
    };
    leat_call_fn call =
        frame->kind < sizeof calls / sizeof *calls ? calls[frame->kind] : (leat_call_fn)NULL;
    if (call == NULL || (frame->flags & LEAT_FRAME_ANSWER) != 0) return false;
    call(peer, frame);
    return true;
}

static enum leat_handled peer_hello(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct leat_core *core = peer->core;
    struct leat_msg_hello hello;
    if (frame->kind != LEAT_KIND_HELLO) {
        leat_peer_refuse_and_close(peer, frame->kind, frame->request, LEAT_E_INVALID,
                                   frame->kind >= LEAT_NODE_KIND_HELLO
                                       ? leat_speaker_text(LEAT_SPEAKER_NODE)
                                       : "the first request has to be hello");
        return LEAT_LEFT;
    }
    if (leat_msg_hello_decode(frame->control, frame->control_bytes, &hello) != LEAT_OK) {
        leat_peer_refuse_and_close(
            peer, frame->kind, frame->request, LEAT_E_INVALID,
            "the control body of hello is not [version min, version max, name, lane]");
        return LEAT_LEFT;
    }
    if (hello.version_min > LEAT_PROTOCOL_VERSION_MAX ||
        hello.version_max < LEAT_PROTOCOL_VERSION_MIN) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_UNSUPPORTED,
                       "client speaks protocol versions %u to %u, this server %d to %d",
                       hello.version_min, hello.version_max, LEAT_PROTOCOL_VERSION_MIN,
                       LEAT_PROTOCOL_VERSION_MAX);
        leat_peer_refuse_and_close(peer, frame->kind, frame->request, LEAT_E_UNSUPPORTED,
                                   error.text);
        return LEAT_LEFT;
    }
    leat_peer_known(peer);
    leat_node_log_name(peer->name, sizeof peer->name, hello.name.text, hello.name.bytes);

    /* A lane that is none (stale metadata) means any: a wrong lane works too, only slower. */
    uint32_t cores = core->node->options.cores;
    uint32_t lane = core->index;
    if (hello.lane >= 0 && (uint64_t)hello.lane < cores)
        lane = (uint32_t)hello.lane;
    else
        lane = (uint32_t)(core->env->random->next(core->env->random->ctx) % cores);
    if (lane == core->index) {
        peer_greet(peer, frame->request);
        return LEAT_HANDLED;
    }
    peer->moved_request = frame->request;
    leat_peer_move(peer, lane);
    return LEAT_LEFT;
}

static void peer_greet(struct leat_peer *peer, uint32_t request)
{
    struct leat_core *core = peer->core;
    const struct leat_node *node = core->node;
    struct leat_msg_hello_ok ok = {
        .version = LEAT_PROTOCOL_VERSION_MAX,
        .incarnation = node->incarnation,
        .node = {node->name, (uint32_t)strlen(node->name)},
        .lanes = node->options.cores,
        .lane = core->index,
    };
    memcpy(ok.cluster_id, node->cluster_id, sizeof ok.cluster_id);
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    leat_msg_hello_ok_write(&writer, &ok);
    leat_peer_send(peer, core->scratch, LEAT_KIND_HELLO, LEAT_FRAME_ANSWER, request, writer.used,
                   0);
}

void leat_administer_open(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_node *node = core->node;
    struct leat_error error;
    char bound[128];
    if (node->options.admin_address == NULL) return;
    if (core->net->listen(core->net->ctx, node->options.admin_address, leat_peer_accept, core,
                          bound, &error) == LEAT_OK)
        return;
    leat_node_log_warn(
        "no Unix socket in the data directory: %s; what changes the cluster can be asked for "
        "by a loopback address only",
        error.text);
}
