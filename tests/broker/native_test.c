/* SPDX-License-Identifier: Apache-2.0 */
/* Leat's own protocol on a connection, by native.c alone: hello, frames that make no sense, and which part answers
 * which request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "broker/admin/calls.h"
#include "broker/data/append.h"
#include "broker/data/fetch.h"
#include "broker/data/serve.h"
#include "broker/net/call.h"
#include "broker/node/native.h"
#include "broker/ownership/below.h"
#include "broker/ownership/calls.h"
#include "link/link.h"
#include "tests/broker/alone.h"
#include "wire/message.h"
#include "wire/speaker.h"

static struct {
    struct leat_peer peer;
    const struct leat_protocol *protocol;
    struct leat_net net;
    struct leat_random random;
    uint64_t next; /* of the random numbers */
    bool refused, no_turn, may_administer, closes;
    enum leat_handled handled; /* by appends and fetches */
    uint8_t frame[70 * 1024], scratch[1024];
    size_t frame_bytes, taken, want;
    leat_err listen;
} it;

/* ---- what it calls ---- */

struct leat_peer *leat_peer_accepted(struct leat_core *core, struct leat_conn *conn,
                                     const struct leat_protocol *protocol, size_t own_bytes,
                                     const struct leat_conn_handler **out_handler)
{
    assert_ptr_equal(core, &alone.cores[1]);
    assert_ptr_equal(conn, &it);
    assert_int_equal(own_bytes, 0);
    *out_handler = NULL;
    it.protocol = protocol;
    return it.refused ? NULL : &it.peer;
}
void leat_peer_refuse_and_close(struct leat_peer *peer, uint16_t kind, uint32_t request,
                                leat_err code, const char *text)
{
    assert_ptr_equal(peer, &it.peer);
    said("close %u/%u %s: %s", kind, request, leat_err_name(code), text);
}
void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *text)
{
    assert_ptr_equal(peer, &it.peer);
    said("refuse %u/%u %s: %s", kind, request, leat_err_name(code), text);
}
void leat_peer_known(struct leat_peer *peer)
{
    said("known");
    peer->greeted = true;
}
void leat_peer_move(struct leat_peer *peer, uint32_t core)
{
    said("move to %u with %u", core, peer->moved_request);
}
void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes)
{
    struct leat_msg_hello_ok ok;
    assert_ptr_equal(out, it.scratch);
    assert_int_equal(kind, LEAT_KIND_HELLO);
    assert_int_equal(flags, LEAT_FRAME_ANSWER);
    assert_int_equal(payload_bytes, 0);
    assert_int_equal(leat_msg_hello_ok_decode(out + LEAT_FRAME_HEADER_BYTES, control_bytes, &ok),
                     LEAT_OK);
    said("hello %u: %u, %.16s, %llu, %.*s, %u of %u on %u", request, ok.version,
         (const char *)ok.cluster_id, (unsigned long long)ok.incarnation, (int)ok.node.bytes,
         ok.node.text, ok.lane, ok.lanes, peer->core->index);
}
void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer)
{
    assert_ptr_equal(core, &alone.cores[1]);
    leat_msg_writer_init(out_writer, it.scratch + LEAT_FRAME_HEADER_BYTES,
                         sizeof it.scratch - LEAT_FRAME_HEADER_BYTES);
}
bool leat_pace_begin(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("begin");
    return !it.no_turn;
}
void leat_pace_end(struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    said("end");
}
bool leat_administers(uint16_t kind)
{
    return kind == LEAT_KIND_NODE_CHANGE;
}
bool leat_peer_may_administer(const struct leat_peer *peer)
{
    assert_ptr_equal(peer, &it.peer);
    return it.may_administer;
}
void leat_administer_refusal(const struct leat_peer *peer, struct leat_error *out_error)
{
    assert_ptr_equal(peer, &it.peer);
    leat_error_set(out_error, LEAT_E_DENIED, "not from here");
}
enum leat_handled leat_append_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    assert_ptr_equal(peer, &it.peer);
    said("append %u", frame->request);
    return it.handled;
}
enum leat_handled leat_fetch_frame(struct leat_peer *peer, const struct leat_frame *frame)
{
    assert_ptr_equal(peer, &it.peer);
    said("fetch %u", frame->request);
    return it.handled;
}
#define OF_PEER(name, words)                                                                       \
    void name(struct leat_peer *peer)                                                              \
    {                                                                                              \
        assert_ptr_equal(peer, &it.peer);                                                          \
        said("%s", words);                                                                         \
    }
OF_PEER(leat_append_answer, "appends answer")
OF_PEER(leat_append_peer_closed, "no appends")
OF_PEER(leat_fetch_peer_closed, "no fetches")
OF_PEER(leat_groups_peer_closed, "no groups")
#define CALL(name)                                                                                 \
    void name(struct leat_peer *peer, const struct leat_frame *frame)                              \
    {                                                                                              \
        assert_ptr_equal(peer, &it.peer);                                                          \
        said("%s %u", #name, frame->request);                                                      \
        peer->closing = it.closes;                                                                 \
    }
CALL(leat_call_ping)
CALL(leat_call_metadata)
CALL(leat_call_stream_create)
CALL(leat_call_stream_delete)
CALL(leat_call_stream_describe)
CALL(leat_call_producer_id)
CALL(leat_call_locate)
CALL(leat_call_group)
CALL(leat_call_recover)
CALL(leat_call_status)
CALL(leat_call_cluster_status)
CALL(leat_call_node_change)
CALL(leat_call_segments)
CALL(leat_call_node_report)
CALL(leat_call_segment_group)
CALL(leat_call_streamlet_move)
CALL(leat_call_stream_trim)
CALL(leat_call_places)
CALL(leat_call_below)

static uint64_t random_next(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return it.next;
}
static leat_err net_listen(void *ctx, const char *address, leat_accept_fn on_accept, void *acceptor,
                           char out_address[128], struct leat_error *error)
{
    assert_ptr_equal(ctx, &it);
    assert_ptr_equal(acceptor, &alone.cores[1]);
    assert_true(on_accept == leat_peer_accept);
    out_address[0] = '\0';
    said("listen on %s", address);
    return it.listen == LEAT_OK ? LEAT_OK : leat_error_set(error, it.listen, "no place");
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.random = (struct leat_random){.ctx = &it, .next = random_next};
    it.net = (struct leat_net){.ctx = &it, .listen = net_listen};
    alone.env.random = &it.random;
    alone.cores[1].net = &it.net;
    alone.cores[1].scratch = it.scratch;
    memcpy(alone.node.cluster_id, "0123456789abcdef", 16);
    const struct leat_conn_handler *handler;
    struct leat_peer *peer = leat_peer_accept(&alone.cores[1], (void *)&it, &handler);
    assert_ptr_equal(peer, &it.peer);
    it.peer.core = &alone.cores[1];
}

static void greeted(void)
{
    begin();
    it.peer.greeted = true;
}

static enum leat_handled takes(size_t bytes)
{
    it.taken = it.want = 0;
    return it.protocol->take(&it.peer, it.frame, bytes, &it.taken, &it.want);
}

/* A whole frame of that kind comes, with nothing in it but what lies at it.frame already. */
static enum leat_handled comes(unsigned kind, uint8_t flags, uint32_t control_bytes)
{
    leat_frame_encode(it.frame, (enum leat_kind)kind, LEAT_PROTOCOL_VERSION_MAX, flags, 31,
                      control_bytes, 0);
    it.frame_bytes = LEAT_FRAME_HEADER_BYTES + control_bytes;
    enum leat_handled handled = takes(it.frame_bytes + 3);
    assert_int_equal(it.taken, it.frame_bytes);
    return handled;
}

static enum leat_handled hello(uint32_t version_min, uint32_t version_max, int64_t lane)
{
    struct leat_msg_writer writer;
    const struct leat_msg_hello hello = {version_min, version_max, {"a\nclient", 8}, lane};
    leat_msg_writer_init(&writer, it.frame + LEAT_FRAME_HEADER_BYTES, 100);
    leat_msg_hello_write(&writer, &hello);
    return comes(LEAT_KIND_HELLO, 0, (uint32_t)writer.used);
}

/* ---- coming and going ---- */

static void connection_is_accepted_and_goes(void **state)
{
    (void)state;
    begin();
    const struct leat_conn_handler *handler;
    it.refused = true;
    assert_null(leat_peer_accept(&alone.cores[1], (void *)&it, &handler));
    it.protocol->on_closed(&it.peer);
    assert_said("no appends\nno fetches\nno groups\n");
    it.protocol->answer(&it.peer);
    assert_said("appends answer\n");
    assert_int_equal(it.protocol->idle_us_max, 0);
    alone_end();
}

static void operators_have_a_socket(void **state)
{
    (void)state;
    begin();
    leat_administer_open(&alone.cores[1]);
    assert_said("");
    alone.node.options.admin_address = "unix:admin";
    leat_administer_open(&alone.cores[1]);
    assert_said("listen on unix:admin\n");
    it.listen = LEAT_E_DISK;
    leat_administer_open(&alone.cores[1]);
    assert_said("listen on unix:admin\nnode log warn: no Unix socket in the data directory\n");
    alone_end();
}

/* ---- hello ---- */

#define HELLO "hello 31: %u, 0123456789abcdef, 100, n1, 1 of 2 on 1\n"

static void client_says_hello(void **state)
{
    (void)state;
    char expected[128];
    enum { LEAST = LEAT_PROTOCOL_VERSION_MIN, MOST = LEAT_PROTOCOL_VERSION_MAX };
    snprintf(expected, sizeof expected, "known\n" HELLO, LEAT_PROTOCOL_VERSION_MAX);
    begin();
    it.next = 6; /* any lane would be the other core */
    assert_int_equal(hello(0, LEAST, 1), LEAT_HANDLED);
    assert_said(expected);
    assert_string_equal(it.peer.name, "a?client");
    it.peer.greeted = false;
    it.next = 7;
    assert_int_equal(hello(MOST, MOST + 5, 0), LEAT_LEFT);
    assert_said("known\nmove to 0 with 31\n");
    it.protocol->on_moved(&it.peer, 31);
    assert_said(expected + strlen("known\n"));
    it.next = 7; /* of lanes that are none any is as good */
    static const int64_t none[] = {-1, ALONE_CORES, INT64_C(1) << 32};
    for (unsigned i = 0; i < 3; i++) {
        it.peer.greeted = false;
        assert_int_equal(hello(LEAST, MOST, none[i]), LEAT_HANDLED);
        assert_said(expected);
    }
    it.next = 8;
    it.peer.greeted = false;
    assert_int_equal(hello(LEAST, MOST, -1), LEAT_LEFT);
    assert_said("known\nmove to 0 with 31\n");
    alone_end();
}

static void first_request_has_to_be_hello(void **state)
{
    (void)state;
    begin();
    assert_int_equal(comes(LEAT_KIND_PING, 0, 0), LEAT_LEFT);
    assert_said("close 2/31 INVALID: the first request has to be hello\n");
    assert_int_equal(comes(LEAT_KIND_HELLO, 0, 0), LEAT_LEFT);
    assert_said("close 1/31 INVALID: the control body of hello is not [version min, version max, "
                "name, lane]\n");
    char expected[128];
    for (unsigned i = 0; i < 2; i++) {
        uint32_t version = i == 0 ? LEAT_PROTOCOL_VERSION_MAX + 1 : LEAT_PROTOCOL_VERSION_MIN - 1;
        assert_int_equal(hello(version, version, 1), LEAT_LEFT);
        snprintf(expected, sizeof expected,
                 "close 1/31 UNSUPPORTED: client speaks protocol versions %u to %u, this server %d "
                 "to %d\n",
                 version, version, LEAT_PROTOCOL_VERSION_MIN, LEAT_PROTOCOL_VERSION_MAX);
        assert_said(expected);
    }
    /* A frame that may be large after hello has to be small until then. */
    leat_frame_encode(it.frame, LEAT_KIND_HELLO, 1, 0, 31, 64 * 1024 - LEAT_FRAME_HEADER_BYTES, 0);
    assert_int_equal(takes(LEAT_FRAME_HEADER_BYTES), LEAT_SHORT);
    assert_int_equal(it.want, 64 * 1024);
    leat_frame_encode(it.frame, LEAT_KIND_HELLO, 1, 0, 31, 64 * 1024 - LEAT_FRAME_HEADER_BYTES, 1);
    assert_int_equal(takes(LEAT_FRAME_HEADER_BYTES), LEAT_LEFT);
    assert_int_equal(it.taken, LEAT_FRAME_HEADER_BYTES);
    assert_said("close 1/31 TOO_LARGE: the first request has to be hello, of 64 KiB at most\n");
    /* Damage is named as damage, whatever length the damaged frame has. */
    leat_frame_encode(it.frame, LEAT_KIND_HELLO, 1, 0, 31, 0, 64 * 1024);
    it.frame[6] ^= 1;
    assert_int_equal(takes(LEAT_FRAME_HEADER_BYTES), LEAT_LEFT);
    assert_said("close 1/31 CORRUPT: the frame's header or control body fails its CRC\n");
    leat_frame_encode(it.frame, LEAT_KIND_HELLO, 1, 0, 31, 64 * 1024 - LEAT_FRAME_HEADER_BYTES, 1);
    it.peer.greeted = true;
    assert_int_equal(takes(LEAT_FRAME_HEADER_BYTES), LEAT_SHORT);
    assert_said("");
    alone_end();
}

/* ---- frames ---- */

static void no_frame(const char *expected, size_t bytes)
{
    assert_int_equal(takes(bytes), LEAT_LEFT);
    assert_int_equal(it.taken, bytes);
    assert_said(expected);
}

static void bytes_that_are_no_frame_end_the_connection(void **state)
{
    (void)state;
    enum { HEADER = LEAT_FRAME_HEADER_BYTES };
    char expected[512];
    greeted();
    leat_frame_encode(it.frame, LEAT_KIND_PING, 1, 0, 31, 0, 0);
    it.frame[16] ^= 1;
    no_frame("close 2/0 CORRUPT: the frame's header or control body fails its CRC\n", HEADER);
    leat_put_le32(it.frame + 12, LEAT_CONTROL_BYTES_MAX + 1);
    no_frame("close 2/0 TOO_LARGE: the frame is larger than 8 MiB, or its control body than 1 "
             "MiB\n",
             HEADER);
    memset(it.frame, 0, HEADER);
    no_frame("close 0/0 INVALID: this is not a frame of Leat's protocol\n", HEADER);
    it.peer.greeted = false; /* before hello the client is told which protocol the server speaks */
    static const char http[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    memcpy(it.frame, http, sizeof http);
    struct leat_frame frame;
    assert_int_equal(leat_frame_decode(it.frame, 30, &frame, &it.want), LEAT_E_TOO_LARGE);
    const char *speaks = leat_speaker_text(leat_speaker_of(it.frame, 30));
    assert_non_null(speaks);
    snprintf(expected, sizeof expected, "close %u/%u TOO_LARGE: %s\n", frame.kind, frame.request,
             speaks);
    no_frame(expected, 30);
    memset(it.frame, 0, HEADER);
    no_frame("close 0/0 INVALID: this is not a frame of Leat's protocol\n", HEADER);
    snprintf(expected, sizeof expected, "close %u/31 INVALID: %s\n", LEAT_NODE_KIND_HELLO,
             leat_speaker_text(LEAT_SPEAKER_NODE));
    assert_int_equal(comes(LEAT_NODE_KIND_HELLO, 0, 0), LEAT_LEFT);
    assert_said(expected);
    alone_end();
}

static void request_goes_to_the_part_that_answers_it(void **state)
{
    (void)state;
    static const char *const calls[] = {
        [LEAT_KIND_PING] = "ping",
        [LEAT_KIND_METADATA] = "metadata",
        [LEAT_KIND_STREAM_CREATE] = "stream_create",
        [LEAT_KIND_STREAM_DELETE] = "stream_delete",
        [LEAT_KIND_STREAM_DESCRIBE] = "stream_describe",
        [LEAT_KIND_PRODUCER_ID] = "producer_id",
        [LEAT_KIND_LOCATE] = "locate",
        [LEAT_KIND_GROUP_JOIN] = "group",
        [LEAT_KIND_GROUP_HEARTBEAT] = "group",
        [LEAT_KIND_GROUP_LEAVE] = "group",
        [LEAT_KIND_GROUP_COMMIT] = "group",
        [LEAT_KIND_GROUP_FETCH] = "group",
        [LEAT_KIND_LOG_RECOVER] = "recover",
        [LEAT_KIND_STATUS] = "status",
        [LEAT_KIND_CLUSTER_STATUS] = "cluster_status",
        [LEAT_KIND_NODE_CHANGE] = "node_change",
        [LEAT_KIND_SEGMENTS] = "segments",
        [LEAT_KIND_NODE_REPORT] = "node_report",
        [LEAT_KIND_SEGMENT_GROUP] = "segment_group",
        [LEAT_KIND_STREAMLET_MOVE] = "streamlet_move",
        [LEAT_KIND_STREAM_TRIM] = "stream_trim",
        [LEAT_KIND_PLACES] = "places",
        [LEAT_KIND_LOG_BELOW] = "below",
    };
    enum { KINDS = sizeof calls / sizeof *calls };
    greeted();
    it.may_administer = true;
    for (unsigned kind = 0; kind <= KINDS; kind++) {
        char expected[160];
        if (kind == LEAT_KIND_APPEND || kind == LEAT_KIND_FETCH) continue;
        bool known = kind < KINDS && calls[kind] != NULL;
        assert_int_equal(comes(kind, 0, 0), LEAT_HANDLED);
        if (known)
            snprintf(expected, sizeof expected, "begin\nleat_call_%s 31\nend\n", calls[kind]);
        else
            snprintf(expected, sizeof expected,
                     "begin\nend\nrefuse %u/31 UNSUPPORTED: this server knows no request of kind "
                     "%u\n",
                     kind, kind);
        assert_said(expected);
    }
    it.handled = LEAT_HELD;
    assert_int_equal(comes(LEAT_KIND_APPEND, 0, 0), LEAT_HELD);
    assert_said("append 31\n");
    it.handled = LEAT_HANDLED;
    assert_int_equal(comes(LEAT_KIND_FETCH, 0, 0), LEAT_HANDLED);
    assert_said("fetch 31\n");
    assert_int_equal(comes(LEAT_KIND_PING, LEAT_FRAME_ANSWER, 0), LEAT_HANDLED); /* is no request */
    assert_said("begin\nend\nrefuse 2/31 UNSUPPORTED: this server knows no request of kind 2\n");
    it.closes = true;
    assert_int_equal(comes(LEAT_KIND_PING, 0, 0), LEAT_LEFT);
    it.no_turn = true;
    said_enough();
    assert_int_equal(comes(LEAT_KIND_PING, 0, 0), LEAT_HELD);
    assert_said("begin\n");
    it.may_administer = false;
    assert_int_equal(comes(LEAT_KIND_NODE_CHANGE, 0, 0), LEAT_HANDLED);
    assert_said("refuse 19/31 DENIED: not from here\n");
    it.no_turn = it.closes = it.peer.closing = false; /* anybody may ask for the rest */
    assert_int_equal(comes(LEAT_KIND_PING, 0, 0), LEAT_HANDLED);
    assert_said("begin\nleat_call_ping 31\nend\n");
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_is_accepted_and_goes),
        cmocka_unit_test(operators_have_a_socket),
        cmocka_unit_test(client_says_hello),
        cmocka_unit_test(first_request_has_to_be_hello),
        cmocka_unit_test(bytes_that_are_no_frame_end_the_connection),
        cmocka_unit_test(request_goes_to_the_part_that_answers_it),
    };
    return cmocka_run_group_tests_name("broker native", tests, NULL, NULL);
}
