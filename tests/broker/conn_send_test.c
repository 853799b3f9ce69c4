/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent over connections, by conn.c alone: refusals, large answers, and last ones. */
#include "tests/broker/conn_rig.h"

static void frame_is_sent(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    uint8_t out[LEAT_FRAME_HEADER_BYTES + 8] = {0};
    leat_peer_send(peer, out, LEAT_KIND_PING, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, 31, 8, 0);
    assert_said("owes\ncopy 32 bytes\n");
    struct leat_frame frame;
    size_t want;
    assert_int_equal(leat_frame_decode(it.sent, it.sent_bytes, &frame, &want), LEAT_OK);
    assert_int_equal(frame.kind, LEAT_KIND_PING);
    assert_int_equal(frame.version, LEAT_PROTOCOL_VERSION_MAX);
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR);
    assert_int_equal(frame.request, 31);
    assert_int_equal(frame.control_bytes, 8);
    assert_int_equal(frame.payload_bytes, 0);
    leat_peer_send(peer, out, LEAT_KIND_PING, 0, 31, 8, 5); /* what follows is sent elsewhere */
    assert_said("owes\ncopy 32 bytes\n");
    peer->closing = true;
    leat_peer_send_bytes(peer, out, 5);
    assert_said("");
    leat_peer_begin(peer);
    it.handler->on_closed(peer, &it.conn, LEAT_OK);
    peer->closing = false;
    said_enough();
    leat_peer_send_bytes(peer, out, 5);
    assert_said("");
    leat_peer_end(peer);
    end();
}

static struct leat_msg_error refusal(const uint8_t *bytes, size_t count, uint32_t request)
{
    struct leat_frame frame;
    struct leat_msg_error error;
    size_t want;
    assert_int_equal(leat_frame_decode(bytes, count, &frame, &want), LEAT_OK);
    assert_int_equal(frame.frame_bytes, count);
    assert_int_equal(frame.kind, LEAT_KIND_APPEND);
    assert_int_equal(frame.version, LEAT_PROTOCOL_VERSION_MAX);
    assert_int_equal(frame.flags, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR);
    assert_int_equal(frame.request, request);
    assert_int_equal(leat_msg_error_decode(frame.control, frame.control_bytes, &error), LEAT_OK);
    return error;
}
static void assert_refusal(const uint8_t *bytes, size_t count, leat_err code, const char *text)
{
    struct leat_msg_error error = refusal(bytes, count, 12);
    assert_int_equal(error.code, code);
    assert_int_equal(error.text.bytes, strlen(text));
    assert_memory_equal(error.text.text, text, strlen(text));
}

static void request_is_refused(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    leat_peer_refuse(peer, LEAT_KIND_APPEND, 12, LEAT_E_INVALID, "no such thing");
    assert_refusal(it.sent, it.sent_bytes, LEAT_E_INVALID, "no such thing");
    leat_peer_refuse(peer, LEAT_KIND_APPEND, 12, LEAT_E_AGAIN, NULL);
    assert_refusal(it.sent, it.sent_bytes, LEAT_E_AGAIN, leat_err_text(LEAT_E_AGAIN));
    char longest[LEAT_ERROR_TEXT_BYTES];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    leat_peer_refuse(peer, LEAT_KIND_APPEND, 12, LEAT_E_AGAIN, longest);
    assert_refusal(it.sent, it.sent_bytes, LEAT_E_AGAIN, longest);
    closes(LEAT_OK);
    end();
}

static void last_answer_is_sent_and_then_it_is_closed(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    leat_peer_refuse_and_close(peer, LEAT_KIND_APPEND, 12, LEAT_E_DENIED, "who are you");
    assert_true(peer->closing);
    assert_int_equal(peer->requests, 1);
    assert_int_equal(peer->paused, LEAT_PAUSE_CLOSING);
    assert_true(said_one("node log info: him (no hello) refused and closed\n"));
    assert_true(said_one("pause\n") && said_one("owes\n") && said_one("send "));
    assert_refusal(it.send->iovs[0].base, it.send->iovs[0].bytes, LEAT_E_DENIED, "who are you");
    it.send->on_sent(it.send, LEAT_OK);
    assert_said("close\nstructs again\n");
    assert_int_equal(peer->requests, 0);
    closes(LEAT_OK);
    end();
    peer = opened();
    peer->greeted = true;
    leat_peer_refuse_and_close(peer, LEAT_KIND_APPEND, 12, LEAT_E_DENIED, "who are you");
    assert_true(said_one("node log info: him (client) refused and closed\n"));
    leat_peer_begin(peer);
    it.handler->on_closed(peer, &it.conn, LEAT_OK); /* before it has taken that */
    said_enough();
    it.send->on_sent(it.send, LEAT_E_CLOSED);
    assert_said("");
    leat_peer_end(peer);
    assert_said("no sharer on 0\n");
    end();
    peer = opened();
    leat_mem_fail_at(1);
    leat_peer_refuse_and_close(peer, LEAT_KIND_APPEND, 12, LEAT_E_DENIED, "who are you");
    assert_said("node log info: him (no hello) refused and closed\npause\nclose\n");
    assert_true(peer->closing);
    assert_int_equal(peer->requests, 0);
    closes(LEAT_OK);
    end();
}

static void large_answer_is_sent_from_where_it_lies(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    uint8_t *buffer = leat_mem_calloc(LEAT_MEM_BROKER, 1, 5000);
    leat_peer_send_large(peer, buffer, 5000);
    assert_said("output more 5000\nowes\nsend 5000 bytes\n");
    assert_ptr_equal(it.send->iovs[0].base, buffer);
    assert_int_equal(peer->requests, 1);
    it.send->on_sent(it.send, LEAT_OK);
    assert_said("output less 5000\n");
    assert_int_equal(peer->requests, 0);
    /* There is no memory to send it. */
    buffer = leat_mem_calloc(LEAT_MEM_BROKER, 1, 5000);
    leat_mem_fail_at(1);
    leat_peer_send_large(peer, buffer, 5000);
    assert_said("close\n");
    peer->closing = true;
    leat_peer_send_large(peer, leat_mem_calloc(LEAT_MEM_BROKER, 1, 5000), 5000);
    assert_said("close\n");
    peer->closing = false;
    leat_peer_begin(peer);
    it.handler->on_closed(peer, &it.conn, LEAT_OK);
    said_enough();
    leat_peer_send_large(peer, leat_mem_calloc(LEAT_MEM_BROKER, 1, 5000), 5000);
    assert_said("");
    leat_peer_end(peer);
    end();
}

/* Goal: where the network copies no more of a connection's answers, the next have memory of their own, to a limit. */
static void answer_that_is_not_copied_has_its_own_memory(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    const char text[] = "an answer";
    it.copies_full = true;
    it.conn.queued = LEAT_PEER_QUEUED_BYTES_HARD - 1;
    leat_peer_send_bytes(peer, text, sizeof text);
    assert_said("owes\ncopy 10 bytes: no room\noutput more 10\nowes\nsend 10 bytes\n");
    assert_string_equal(it.send->iovs[0].base, text);
    it.send->on_sent(it.send, LEAT_OK);
    said_enough();
    it.conn.queued++;
    leat_peer_send_bytes(peer, text, sizeof text);
    assert_said(
        "owes\ncopy 10 bytes: no room\nnode log warn: him (client) does not take its answers; "
        "connection closed\n"
        "pause\nclose\n");
    assert_true(peer->closing);
    assert_int_equal(peer->paused, LEAT_PAUSE_CLOSING);
    closes(LEAT_OK);
    end();
    peer = opened();
    it.copies_full = true;
    leat_mem_fail_at(1);
    leat_peer_send_bytes(peer, text, sizeof text);
    assert_true(peer->closing);
    closes(LEAT_OK);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_is_sent),
        cmocka_unit_test(request_is_refused),
        cmocka_unit_test(last_answer_is_sent_and_then_it_is_closed),
        cmocka_unit_test(large_answer_is_sent_from_where_it_lies),
        cmocka_unit_test(answer_that_is_not_copied_has_its_own_memory),
    };
    return cmocka_run_group_tests_name("broker conn_send", tests, NULL, NULL);
}
