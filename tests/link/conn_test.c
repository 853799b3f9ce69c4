/* SPDX-License-Identifier: Apache-2.0 */
/* link/conn.c alone: how a connection comes up, which frames are taken in which state, and the error at its end. */
#include "tests/link/conn_alone.h"

/* ---- coming up ---- */

static void connecting_begins_anew(void **state)
{
    (void)state;
    link_.why.code = LEAT_E_TIMEOUT;
    link_.was_up = true;
    link_.pinged_us = link_.heard_us = 7;
    link_.net = NULL;
    leat_link_connect(&link_);
    TRACE_IS("connect host:1\n");
    assert_int_equal(link_.state, LINK_CONNECTING);
    assert_ptr_equal(link_.net, conn);
    assert_true(link_.why.code == LEAT_OK && !link_.was_up && link_.pinged_us == 0);
    assert_true(link_.since_us == 5000 && link_.heard_us == 5000);
    played.connect_rc = LEAT_E_NO_MEMORY;
    leat_link_connect(&link_);
    TRACE_IS("connect host:1\n"
             "retry later\n"
             "down 0: 3 connecting to host:1: the memory budget is used up\n");
    assert_null(link_.net);
    assert_int_equal(link_.state, LINK_WAITING);
}

static void open_connection_says_its_nonce(void **state)
{
    (void)state;
    link_.state = LINK_CLOSING; /* closed meanwhile */
    leat_link_conn_handler.on_open(&link_, link_.net);
    TRACE_IS("");
    assert_int_equal(link_.state, LINK_CLOSING);
    link_.state = LINK_CONNECTING;
    leat_link_conn_handler.on_open(&link_, link_.net);
    TRACE_IS("nonce 1 in state 2\n");
    assert_int_equal(link_.state, LINK_NONCE);
    link_.state = LINK_CONNECTING;
    played.no_nonce = true;
    leat_link_conn_handler.on_open(&link_, link_.net);
    TRACE_IS("nonce 1 in state 2\n"
             "cut 3 no memory for a nonce\n");
}

static void accepted_connection_is_a_strangers(void **state)
{
    (void)state;
    const struct leat_conn_handler *handler = NULL;
    link_.net = NULL;
    assert_ptr_equal(leat_link_accept(&links, (struct leat_conn *)conn, &handler), &link_);
    TRACE_IS("make\n"
             "account conn strangers\n"
             "due 5000\n"
             "stranger\n");
    assert_true(link_.accepted && link_.state == LINK_NONCE && link_.key[0] == 9);
    assert_int_equal(link_.key[LEAT_NET_KEY_BYTES - 1], 9);
    assert_ptr_equal(link_.net, conn);
    assert_ptr_equal(handler, &leat_link_conn_handler);
    assert_string_equal(link_.address, "203.0.113.7:5");
    played.no_link = true;
    handler = NULL;
    assert_null(leat_link_accept(&links, (struct leat_conn *)conn, &handler));
    assert_null(handler);
    TRACE_IS("make\n");
}

/* ---- frames ---- */

static void frames_are_taken_one_behind_the_other(void **state)
{
    (void)state;
    link_.state = LINK_UP;
    frame_add(KIND, 0, 5, 10);
    frame_add(KIND + 1, 0, 0, 20);
    size_t two = used;
    frame_add(KIND + 2, 0, 6, 30);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 400, its first 31\n"
             "request 400 5, 1 under way\n"
             "check 401, its first 41\n"
             "request 401 0, 1 under way\n"
             "check 402, its first 51\n"
             "request 402 6, 2 under way\n"
             "leave\n"
             "135 of 135, wants 24\n");
    assert_int_equal(link_.heard_us, 5000);
    assert_int_equal(link_.request_count, 2);
    link_.request_count = 0;
    frame_add(KIND, 0, 5, 10);
    frame_add(KIND + 1, 0, 0, 20);
    frame_add(KIND + 2, 0, 6, 30);
    bytes_come(two + 40); /* a part of the last one */
    TRACE_IS("enter\n"
             "check 400, its first 31\n"
             "request 400 5, 1 under way\n"
             "check 401, its first 41\n"
             "request 401 0, 1 under way\n"
             "leave\n"
             "80 of 120, wants 55\n");
    played.wrong_tag = true;
    played.keeps_state = true;
    frame_add(KIND, 0, 5, 10);
    frame_add(KIND, 0, 6, 10);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 400, its first 31\n"
             "leave\n"
             "70 of 70, wants 0\n");
    static const enum leat_link_state deaf[] = {LINK_WAITING, LINK_CONNECTING, LINK_CLOSING};
    for (unsigned i = 0; i < 3; i++) {
        link_.state = deaf[i];
        comes(KIND, 0, 5);
        TRACE_IS("enter\nleave\n25 of 25, wants 0\n");
    }
    link_.state = LINK_UP;
    link_.gone = true;
    comes(KIND, 0, 5);
    TRACE_IS("enter\n"
             "leave, gone\n"
             "25 of 25, wants 0\n");
}

static void opener_comes_up_by_nonce_and_hello(void **state)
{
    (void)state;
    link_.state = LINK_NONCE;
    link_.attempts = 4;
    link_.request_count = 3;
    frame_add(LEAT_NODE_KIND_NONCE, LEAT_FRAME_ANSWER, 1, 0);
    frame_add(LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER, 2, 0);
    frame_add(KIND, 0, 0, 0);
    link_.connection = 8;
    links.next_connection = 7;
    bytes_come(used);
    TRACE_IS("enter\n"
             "takes nonce 258 of 25 bytes, its first 21\n"
             "check 256, its first 21\n"
             "no stranger\n"
             "hello answered 256\n"
             "no stranger\n"
             "account conn nodes\n"
             "due 5100\n"
             "up, state 4, connection 8\n"
             "check 400, its first 21\n"
             "request 400 0, 0 under way\n"
             "leave\n"
             "75 of 75, wants 24\n");
    assert_true(link_.was_up && link_.attempts == 0 && link_.request_count == 0);
    assert_true(links.next_connection == 8);
    link_.state = LINK_HELLO;
    link_.was_up = false;
    played.hello_rc = LEAT_E_WRONG_CLUSTER;
    comes(LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER, 2);
    TRACE_IS("enter\n"
             "check 256, its first 21\n"
             "no stranger\n"
             "hello answered 256\n"
             "cut 43 refused so\n"
             "leave\n"
             "25 of 25, wants 0\n");
    assert_false(link_.was_up);
}

static void acceptor_comes_up_by_nonce_and_hello(void **state)
{
    (void)state;
    link_.accepted = true;
    link_.state = LINK_HELLO;
    comes(LEAT_NODE_KIND_HELLO, 0, 2);
    TRACE_IS("enter\n"
             "check 256, its first 21\n"
             "no stranger\n"
             "takes hello 256\n"
             "no stranger\n"
             "account conn nodes\n"
             "due 5100\n"
             "up, state 4, connection 21\n"
             "leave\n"
             "25 of 25, wants 24\n");
    link_.state = LINK_HELLO;
    played.greeted = LINK_REFUSED;
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, 0);
    frame_add(KIND, 0, 2, 0);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 256, its first 21\n"
             "no stranger\n"
             "takes hello 256\n"
             "leave\n"
             "50 of 50, wants 0\n");
    /* Moved to another actor, with what comes behind it: nothing of it is touched any more. */
    link_.state = LINK_HELLO;
    played.greeted = LINK_MOVED;
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, 0);
    frame_add(KIND, 0, 2, 0);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 256, its first 21\n"
             "no stranger\n"
             "takes hello 256\n"
             "0 of 50, wants 0\n");
}

static void pings_are_answered(void **state)
{
    (void)state;
    link_.state = LINK_UP;
    comes(LEAT_NODE_KIND_PING, 0, 0);
    TRACE_IS("enter\n"
             "check 257, its first 21\n"
             "send 257 1 0\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(LEAT_NODE_KIND_PING, LEAT_FRAME_ANSWER, 0);
    TRACE_IS("enter\n"
             "check 257, its first 21\n"
             "leave\n"
             "25 of 25, wants 24\n");
    played.no_memory = true;
    comes(LEAT_NODE_KIND_PING, 0, 0);
    TRACE_IS("enter\n"
             "check 257, its first 21\n"
             "send 257 1 0\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(LEAT_NODE_KIND_HELLO, 0, 5);
    TRACE_IS("enter\n"
             "check 256, its first 21\n"
             "cut 20 a request of a kind that nodes do not send\n"
             "leave\n"
             "25 of 25, wants 0\n");
    link_.state = LINK_UP;
    comes(LEAT_NODE_KIND_COORDINATOR - 1, 0, 0);
    TRACE_IS("enter\n"
             "check 271, its first 21\n"
             "cut 20 a request of a kind that nodes do not send\n"
             "leave\n"
             "25 of 25, wants 0\n");
    link_.state = LINK_UP;
    comes(LEAT_NODE_KIND_COORDINATOR, 0, 0);
    TRACE_IS("enter\n"
             "check 272, its first 21\n"
             "request 272 0, 0 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
}

static void requests_have_their_limits(void **state)
{
    (void)state;
    link_.state = LINK_UP;
    link_.request_count = LEAT_LINK_REQUESTS_MAX - 1;
    comes(KIND, 0, 5);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "request 400 5, 8192 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(KIND, 0, 0); /* nobody waits for it */
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "request 400 0, 8192 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(KIND, 0, 5);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "cut 38 the peer has too many requests under way\n"
             "leave\n"
             "25 of 25, wants 0\n");
    assert_int_equal(link_.request_count, LEAT_LINK_REQUESTS_MAX);
    link_.state = LINK_UP;
    link_.request_count = 0;
    link_.queued_bytes = 1000;
    comes(KIND, 0, 5);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "request 400 5, 1 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
    link_.queued_bytes = 1001;
    comes(KIND, 0, 0);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "request 400 0, 1 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(KIND, 0, 5);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "refuse 5 1 answers to this peer wait already: it has to read them\n"
             "leave\n"
             "25 of 25, wants 24\n");
    assert_int_equal(link_.request_count, 2);
}

static void answers_find_their_calls(void **state)
{
    (void)state;
    link_.state = LINK_UP;
    struct leat_link_call calls[3] = {
        {.number = 4, .sent = true}, {.number = 5, .one_way = true, .sent = true}, {.number = 5}};
    for (unsigned i = 0; i < 3; i++)
        leat_list_push_back(&link_.calls, &calls[i].list);
    comes(KIND, 0, 4); /* the other's own request of that number */
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "request 400 4, 1 under way\n"
             "leave\n"
             "25 of 25, wants 24\n");
    link_.request_count = 0;
    comes(KIND, LEAT_FRAME_ANSWER, 4);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "answered 4 by 4\n"
             "leave\n"
             "25 of 25, wants 24\n");
    comes(KIND, LEAT_FRAME_ANSWER, 4); /* given up meanwhile */
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "leave\n"
             "25 of 25, wants 24\n");
    /* The port still has the caller's bytes. */
    frame_add(KIND, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, 5, 0);
    frame_add(KIND, 0, 7, 0);
    size_t all = used;
    assert_int_equal(bytes_come(used), 0);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "pause conn\n"
             "again in\n"
             "leave\n"
             "0 of 50, wants 0\n");
    assert_true(calls[2].early && !calls[1].early);
    calls[2].sent = true;
    bytes_come(all);
    TRACE_IS("enter\n"
             "check 400, its first 21\n"
             "answered 5 by 5\n"
             "check 400, its first 21\n"
             "request 400 7, 1 under way\n"
             "leave\n"
             "50 of 50, wants 24\n");
}

static void strangers_frames_are_small(void **state)
{
    (void)state;
    enum { PAYLOAD = LINK_UNPROVED_FRAME_BYTES_MAX - LEAT_FRAME_HEADER_BYTES - 1 };
    link_.state = LINK_HELLO;
    link_.accepted = true;
    played.greeted = LINK_REFUSED;
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, PAYLOAD);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 256, its first 252\n"
             "no stranger\n"
             "takes hello 256\n"
             "leave\n"
             "1024 of 1024, wants 0\n");
    link_.state = LINK_HELLO;
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, PAYLOAD + 1);
    bytes_come(used);
    TRACE_IS("enter\n"
             "node log its first frame is not that of a node, or of one of an older version\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "1025 of 1025, wants 0\n");
    link_.state = LINK_NONCE;
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, PAYLOAD + 1);
    bytes_come(LEAT_FRAME_HEADER_BYTES); /* its header says enough */
    TRACE_IS("enter\n"
             "node log its first frame is not that of a node, or of one of an older version\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "24 of 24, wants 0\n");
    link_.state = LINK_UP;
    frame_add(KIND, 0, 0, PAYLOAD + 1);
    bytes_come(used);
    TRACE_IS("enter\n"
             "check 400, its first 253\n"
             "request 400 0, 0 under way\n"
             "leave\n"
             "1025 of 1025, wants 24\n");
}

/* These bytes, in this state. */
static void bytes_are_wrong(const char *first, enum leat_link_state at, bool accepted)
{
    memset(bytes, 0, 64);
    memcpy(bytes, first, strlen(first));
    link_.state = at;
    link_.accepted = accepted;
    bytes_come(64);
}
static void bytes_that_are_no_frame_are_told_of(void **state)
{
    (void)state;
    bytes_are_wrong("GET / HTTP/1.1", LINK_NONCE, true);
    TRACE_IS("enter\n"
             "node log it speaks HTTP, which no port here does\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "64 of 64, wants 0\n");
    bytes_are_wrong("GET / HTTP/1.1", LINK_NONCE, false);
    TRACE_IS("enter\n"
             "cut 21 host:1 answers with what is no frame of a node; it speaks HTTP, which no port "
             "here does: another program listens there, or the address is not its --node-listen\n"
             "leave\n"
             "64 of 64, wants 0\n");
    bytes_are_wrong("what is this that comes here", LINK_NONCE, true);
    TRACE_IS("enter\n"
             "node log its first bytes are no frame of a node\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "64 of 64, wants 0\n");
    bytes_are_wrong("what is this that comes here", LINK_HELLO, false);
    TRACE_IS("enter\n"
             "cut 21 host:1 answers with what is no frame of a node: another program listens "
             "there, or the address is not its --node-listen\n"
             "leave\n"
             "64 of 64, wants 0\n");
    bytes_are_wrong("GET / HTTP/1.1", LINK_UP, true);
    TRACE_IS("enter\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "64 of 64, wants 0\n");
    bytes_are_wrong("GET / HTTP/1.1", LINK_UP, false);
    TRACE_IS("enter\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "64 of 64, wants 0\n");
    /* Behind a frame that is one. */
    frame_add(LEAT_NODE_KIND_NONCE, 0, 1, 0);
    memset(bytes + used, 0, 64);
    memcpy(bytes + used, "GET / HTTP/1.1", 14);
    link_.state = LINK_NONCE;
    link_.accepted = true;
    bytes_come(used + 64);
    TRACE_IS("enter\n"
             "takes nonce 258 of 25 bytes, its first 21\n"
             "node log it speaks HTTP, which no port here does\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "89 of 89, wants 0\n");
    frame_add(LEAT_NODE_KIND_NONCE, 0, 1, 0);
    frame_add(LEAT_KIND_HELLO, 0, 1, LINK_UNPROVED_FRAME_BYTES_MAX);
    link_.state = LINK_NONCE;
    bytes_come(used);
    TRACE_IS("enter\n"
             "takes nonce 258 of 25 bytes, its first 21\n"
             "node log it speaks Leat's own protocol, whose port is that of --listen (7700)\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "1074 of 1074, wants 0\n");
    frame_add(LEAT_NODE_KIND_HELLO, 0, 2, 0);
    bytes[20] = 1;
    link_.state = LINK_NONCE;
    link_.accepted = true;
    bytes_come(used);
    TRACE_IS("enter\n"
             "node log its first frame is not that of a node, or of one of an older version\n"
             "cut 20 bytes that are no frame\n"
             "leave\n"
             "25 of 25, wants 0\n");
}

/* What lies behind the bytes that have come, here of Kafka's, says nothing. */
static void bytes_behind_the_end_say_nothing(void **state)
{
    (void)state;
    link_.state = LINK_NONCE;
    link_.accepted = true;
    memcpy(bytes, (const uint8_t[]){0, 0, 0, 32, 0, 18, 0, 3}, 8);
    bytes_come(4);
    TRACE_IS("enter\n"
             "node log its first bytes are no frame of a node\n"
             "cut 21 bytes that are no frame\n"
             "leave\n"
             "4 of 4, wants 0\n");
}

/* ---- going down ---- */

static void closes(enum leat_link_state at, leat_err why)
{
    link_.net = (struct leat_conn *)conn;
    link_.state = at;
    link_.gone = link_.gone && played.closed_in_down;
    leat_link_conn_handler.on_closed(&link_, link_.net, why);
    assert_null(link_.net);
}

static void ends_once_up(void)
{
    link_.was_up = true;
    closes(LINK_UP, LEAT_E_CLOSED);
    TRACE_IS(
        "no stranger\n"
        "no keys, state 4, net 0\n"
        "enter\n"
        "calls fail 6 the connection to host:1 (peer) was lost: the other side closed it, state 5\n"
        "retry later\n"
        "down 1: 6 the connection to host:1 (peer) was lost: the other side closed it\n"
        "leave\n");
    closes(LINK_UP, LEAT_E_TIMEOUT);
    TRACE_IS("no stranger\n"
             "no keys, state 4, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 (peer) was lost: no answer within the time "
             "allowed; whether it took effect is unknown, state 5\n"
             "retry later\n"
             "down 1: 6 the connection to host:1 (peer) was lost: no answer within the time "
             "allowed; whether it took effect is unknown\n"
             "leave\n");
}

static void ends_before_a_hello(void)
{
    link_.was_up = false;
    closes(LINK_CONNECTING, LEAT_E_CLOSED);
    TRACE_IS("no stranger\n"
             "no keys, state 1, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 could not be made: nobody listens there, or it "
             "was closed at once, state 5\n"
             "retry later\n"
             "down 0: 6 the connection to host:1 could not be made: nobody listens there, or it "
             "was closed at once\n"
             "leave\n");
    closes(LINK_CONNECTING, LEAT_E_UNREACHABLE);
    TRACE_IS("no stranger\n"
             "no keys, state 1, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 could not be made: there is no way to the "
             "host, or its name is not known here, state 5\n"
             "retry later\n"
             "down 0: 6 the connection to host:1 could not be made: there is no way to the host, "
             "or its name is not known here\n"
             "leave\n");
    closes(LINK_CONNECTING, LEAT_OK);
    TRACE_IS("no stranger\n"
             "no keys, state 1, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 could not be made: nobody listens there, or it "
             "was closed at once, state 5\n"
             "retry later\n"
             "down 0: 6 the connection to host:1 could not be made: nobody listens there, or it "
             "was closed at once\n"
             "leave\n");
}

static void ends_at_the_hello(void)
{
    closes(LINK_HELLO, LEAT_E_CLOSED);
    TRACE_IS("node log it closed the connection at this node's proof: the cluster keys differ "
             "(--cluster-key), or that node is stopping\n"
             "no stranger\n"
             "no keys, state 3, net 0\n"
             "enter\n"
             "calls fail 6 host:1: it closed the connection at this node's proof: the cluster keys "
             "differ (--cluster-key), or that node is stopping, state 5\n"
             "retry later\n"
             "down 0: 43 host:1: it closed the connection at this node's proof: the cluster keys "
             "differ (--cluster-key), or that node is stopping\n"
             "leave\n");
    closes(LINK_HELLO, LEAT_E_TIMEOUT);
    TRACE_IS("no stranger\n"
             "no keys, state 3, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 could not be made: no answer within the time "
             "allowed; whether it took effect is unknown, state 5\n"
             "retry later\n"
             "down 0: 6 the connection to host:1 could not be made: no answer within the time "
             "allowed; whether it took effect is unknown\n"
             "leave\n");
    (void)leat_error_set(&link_.why, LEAT_E_CORRUPT, "a cause of its own");
    closes(LINK_HELLO, LEAT_E_CLOSED);
    TRACE_IS("no stranger\n"
             "no keys, state 3, net 0\n"
             "enter\n"
             "calls fail 6 a cause of its own, state 5\n"
             "retry later\n"
             "down 0: 22 a cause of its own\n"
             "leave\n");
}

static void end_of_an_opened_one_is_told_and_tried_again(void **state)
{
    (void)state;
    ends_once_up();
    ends_before_a_hello();
    ends_at_the_hello();
}

static void end_of_an_accepted_one_is_its_end(void **state)
{
    (void)state;
    link_.accepted = link_.was_up = true;
    closes(LINK_UP, LEAT_E_CLOSED);
    TRACE_IS(
        "no stranger\n"
        "no keys, state 4, net 0\n"
        "enter\n"
        "calls fail 6 the connection to host:1 (peer) was lost: the other side closed it, state 5\n"
        "down 1: 6 the connection to host:1 (peer) was lost: the other side closed it\n"
        "leave, gone\n");
    assert_true(link_.gone);
    link_.gone = link_.was_up = false;
    closes(LINK_HELLO, LEAT_E_CLOSED);
    TRACE_IS("no stranger\n"
             "no keys, state 3, net 0\n"
             "enter\n"
             "calls fail 6 the connection to host:1 could not be made: nobody listens there, or it "
             "was closed at once, state 5\n"
             "leave, gone\n");
    assert_true(link_.gone);
}

static void end_of_one_that_was_closed_is_told_to_nobody(void **state)
{
    (void)state;
    link_.was_up = played.closed_in_down = link_.gone = true;
    closes(LINK_CLOSING, LEAT_E_CLOSED);
    TRACE_IS("no stranger\n"
             "no keys, state 5, net 0\n"
             "enter\n"
             "calls fail 8 the link was closed, state 5\n"
             "leave, gone\n");
    link_.was_up = false;
    closes(LINK_HELLO, LEAT_E_CLOSED); /* by this node: no word of another key */
    TRACE_IS("no stranger\n"
             "no keys, state 3, net 0\n"
             "enter\n"
             "calls fail 8 the link was closed, state 5\n"
             "leave, gone\n");
    link_.was_up = true;
    link_.gone = false;
    closes(LINK_UP, LEAT_E_CLOSED); /* closed by who is told of its end */
    TRACE_IS(
        "no stranger\n"
        "no keys, state 4, net 0\n"
        "enter\n"
        "calls fail 6 the connection to host:1 (peer) was lost: the other side closed it, state 5\n"
        "retry later\n"
        "down 1: 6 the connection to host:1 (peer) was lost: the other side closed it\n"
        "leave, gone\n");
    link_.gone = false;
    played.closed_in_fail = true; /* by who is told of a call's */
    closes(LINK_UP, LEAT_E_CLOSED);
    TRACE_IS(
        "no stranger\n"
        "no keys, state 4, net 0\n"
        "enter\n"
        "calls fail 6 the connection to host:1 (peer) was lost: the other side closed it, state 5\n"
        "leave, gone\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONN_TEST(connecting_begins_anew),
        CONN_TEST(open_connection_says_its_nonce),
        CONN_TEST(accepted_connection_is_a_strangers),
        CONN_TEST(frames_are_taken_one_behind_the_other),
        CONN_TEST(opener_comes_up_by_nonce_and_hello),
        CONN_TEST(acceptor_comes_up_by_nonce_and_hello),
        CONN_TEST(pings_are_answered),
        CONN_TEST(requests_have_their_limits),
        CONN_TEST(answers_find_their_calls),
        CONN_TEST(strangers_frames_are_small),
        CONN_TEST(bytes_that_are_no_frame_are_told_of),
        CONN_TEST(bytes_behind_the_end_say_nothing),
        CONN_TEST(end_of_an_opened_one_is_told_and_tried_again),
        CONN_TEST(end_of_an_accepted_one_is_its_end),
        CONN_TEST(end_of_one_that_was_closed_is_told_to_nobody),
    };
    return cmocka_run_group_tests_name("link-conn", tests, NULL, NULL);
}
