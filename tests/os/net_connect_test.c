/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: which addresses are tried, and the report of an address where nobody answers. */
#include "tests/os/net_open_alone.h"

static char name[] = "a";

static struct leat_conn *connect_to(const char *address)
{
    struct leat_conn *conn = NULL;
    leat_err rc = net->connect(net->ctx, address, &alone_handler, name, &conn);
    trace("%s\n", leat_err_name(rc));
    assert_true((rc == LEAT_OK) == (conn != NULL));
    return conn;
}

/* Two addresses, as a look-up gives them: 192.0.2.7:80, then 2001:db8::7:80. */
static struct addrinfo answer[2];
static struct sockaddr_storage answers[2];

static void answered(int status)
{
    answers[0] = address_of("192.0.2.7", 80);
    answers[1] = address_of("2001:db8::7", 80);
    for (unsigned i = 0; i < 2; i++)
        answer[i] = (struct addrinfo){.ai_family = answers[i].ss_family,
                                      .ai_addr = (struct sockaddr *)&answers[i],
                                      .ai_addrlen = i ? sizeof(struct sockaddr_in6)
                                                      : sizeof(struct sockaddr_in),
                                      .ai_next = i ? NULL : &answer[1]};
    looked_up_cb(looked_up, status, status ? NULL : answer);
}

static void end(void)
{
    deliver();
    assert_true(leat_os_net_stopped(&here));
}

/* Goal: a numeric address is not looked up; sends before the handshake leave after it. */
static void number_is_connected_to_at_once(void **state)
{
    (void)state;
    open_begin();
    say(CONNECT, -EINPROGRESS);
    struct leat_conn *conn = connect_to("192.0.2.7:80");
    assert_int_equal(conn->state, OS_CONN_CONNECTING);
    assert_int_equal(conn->intake.account, LEAT_NET_NODES);
    assert_string_equal(net->peer(conn), "192.0.2.7:80");
    TRACE_IS("look up 192.0.2.7 80 numeric\n"
             "socket v4: 5\n"
             "5 is tuned\n"
             "connect 5 192.0.2.7 80\n"
             "watch 5\n"
             "poll write\n"
             "OK\n");
    net->send_copy(conn, "hello", 5);
    leat_os_net_flush(&here);
    assert_true(leat_list_empty(&here.net.dirty));
    TRACE_IS("");
    here.called = false;
    struct leat_conn *other = alone_conn("b", 2); /* which has something to say in the same turn */
    net->send_copy(other, "so", 2);
    event(conn, 0, UV_WRITABLE | UV_READABLE); /* one after the other */
    assert_true(here.called && conn->state == OS_CONN_OPEN && !conn->addresses);
    leat_os_net_flush(&here);
    TRACE_IS("a: open\n"
             "poll read\n"
             "write 2 in 1: 2\n"
             "write 5 in 1: 5\n");
    alone_end();
}

/* Goal: a socket may have any number; within the machine there is no pacing. */
static void socket_may_be_number_nothing(void **state)
{
    (void)state;
    open_begin();
    say(SOCKET, 0);
    struct leat_conn *conn = connect_to("192.0.2.7:80");
    event(conn, 0, UV_WRITABLE);
    net->close(conn);
    deliver();
    say(SOCKET, 0);
    conn = connect_to("unix:/run/door");
    net->close(conn);
    deliver();
    conn = connect_to("[::1]:81");
    net->send_copy(conn, "x", 1);
    event(conn, 0, UV_WRITABLE);
    leat_os_net_flush(&here);
    assert_false(leat_os_net_waiting(&here));
    TRACE_IS("look up 192.0.2.7 80 numeric\n"
             "socket v4: 0\n"
             "0 is tuned\n"
             "connect 0 192.0.2.7 80\n"
             "watch 0\n"
             "poll write\n"
             "OK\n"
             "a: open\n"
             "poll read\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, OK\n"
             "close 0\n"
             "called\n"
             "socket unix: 0\n"
             "connect 0 /run/door\n"
             "watch 0\n"
             "poll write\n"
             "OK\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, OK\n"
             "close 0\n"
             "called\n"
             "look up ::1 81 numeric\n"
             "socket v6: 5\n"
             "5 is tuned\n"
             "5 is reno\n"
             "connect 5 ::1 81\n"
             "watch 5\n"
             "poll write\n"
             "OK\n"
             "a: open\n"
             "poll read\n"
             "write 1 in 1: 1\n");
    alone_end();
}

static void *on_moved(void *actor, struct leat_conn *conn, void *baggage,
                      const struct leat_conn_handler **out_handler)
{
    (void)actor, (void)conn, (void)out_handler;
    return baggage;
}

static void open_and_move(void *user, struct leat_conn *conn)
{
    trace("%s: open\n", (const char *)user);
    net->move(conn, THERE, on_moved, name);
}

/* Goal: without anything sent nothing leaves; a handler may move the connection when it is told of it. */
static void connection_moves_when_it_is_open(void **state)
{
    (void)state;
    static const struct leat_conn_handler handler = {open_and_move, alone_bytes, alone_closed};
    open_begin();
    struct leat_conn *conn;
    say(CONNECT, -EINPROGRESS);
    assert_int_equal(net->connect(net->ctx, "192.0.2.7:80", &handler, name, &conn), LEAT_OK);
    trace_begin();
    event(conn, 0, UV_WRITABLE);
    assert_false(leat_os_net_waiting(&here));
    TRACE_IS("a: open\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n");
    leat_os_net_drop_mail(mails[--mail_count]);
    TRACE_IS("close 5\n");
    static const struct leat_conn_handler none = {NULL, alone_bytes, alone_closed};
    assert_int_equal(net->connect(net->ctx, "192.0.2.7:80", &none, name, &conn), LEAT_OK);
    event(conn, 0, UV_WRITABLE);
    assert_false(leat_os_net_waiting(&here));
    trace_begin();
    net->send_copy(conn, "x", 1);
    leat_os_net_flush(&here);
    TRACE_IS("write 1 in 1: 1\n");
    alone_end();
}

static const struct {
    int causes[2];
    leat_err why;
} ways[] = {
    {{ECONNREFUSED, ECONNREFUSED}, LEAT_E_CLOSED},
    {{ECONNREFUSED, ENETUNREACH}, LEAT_E_CLOSED},
    {{EMFILE, ECONNREFUSED}, LEAT_E_CLOSED},
    {{EHOSTUNREACH, ENFILE}, LEAT_E_NO_MEMORY},
    {{EHOSTUNREACH, ENOBUFS}, LEAT_E_NO_MEMORY},
    {{EHOSTUNREACH, ENOMEM}, LEAT_E_NO_MEMORY},
    {{EHOSTUNREACH, EMFILE}, LEAT_E_NO_MEMORY},
    {{EHOSTUNREACH, EADDRNOTAVAIL}, LEAT_E_NO_MEMORY},
    {{EHOSTUNREACH, EAGAIN}, LEAT_E_NO_MEMORY},
    {{EMFILE, ETIMEDOUT}, LEAT_E_UNREACHABLE},
    {{EMFILE, ECONNRESET}, LEAT_E_UNREACHABLE},
};

/* Goal: each address is tried before the end is reported. A refusal, also among other errors, says that nobody listens
 * there; an error of this machine, and a host that can't be reached, do not. */
static void cause_of_an_end_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        for (unsigned where = 0; where < 3; where++) {
            open_begin();
            struct leat_conn *conn = connect_to("host:80");
            for (unsigned k = 0; k < 2; k++) {
                if (where == 0) say(SOCKET, -ways[i].causes[k]);
                if (where == 1) say(CONNECT, -ways[i].causes[k]);
                if (where == 2) say(CONNECT, -EINPROGRESS);
            }
            answered(0);
            for (unsigned k = 0; where == 2 && k < 2; k++) {
                socket_error = ways[i].causes[k];
                event(conn, 0, UV_WRITABLE);
            }
            assert_int_equal(conn->why, ways[i].why);
            end();
            if (i == 0 && where == 0)
                TRACE_IS("look up host 80 numeric\n"
                         "ask for host 80\n"
                         "OK\n"
                         "socket v4: -1\n"
                         "socket v6: -1\n"
                         "answer freed\n"
                         "a: closed, CLOSED\n"
                         "called\n");
            else if (i == 0 && where == 1)
                TRACE_IS("look up host 80 numeric\n"
                         "ask for host 80\n"
                         "OK\n"
                         "socket v4: 5\n"
                         "5 is tuned\n"
                         "connect 5 192.0.2.7 80\n"
                         "close 5\n"
                         "socket v6: 5\n"
                         "5 is tuned\n"
                         "connect 5 2001:db8::7 80\n"
                         "close 5\n"
                         "answer freed\n"
                         "a: closed, CLOSED\n"
                         "called\n");
            else if (i == 0)
                TRACE_IS("look up host 80 numeric\n"
                         "ask for host 80\n"
                         "OK\n"
                         "socket v4: 5\n"
                         "5 is tuned\n"
                         "connect 5 192.0.2.7 80\n"
                         "watch 5\n"
                         "poll write\n"
                         "poll nothing\n"
                         "unwatch\n"
                         "close 5\n"
                         "socket v6: 5\n"
                         "5 is tuned\n"
                         "connect 5 2001:db8::7 80\n"
                         "watch 5\n"
                         "poll write\n"
                         "poll nothing\n"
                         "unwatch\n"
                         "close 5\n"
                         "answer freed\n"
                         "a: closed, CLOSED\n"
                         "called\n");
            alone_end();
            trace_begin();
        }
}

/* Goal: where the error of a socket can't be read, the failed read is the error; a socket that can't be watched lacks
 * memory. */
static void socket_that_tells_nothing_has_failed(void **state)
{
    (void)state;
    open_begin();
    say(CONNECT, -EINPROGRESS);
    struct leat_conn *conn = connect_to("192.0.2.7:80");
    say(GET, -ECONNREFUSED);
    trace_begin();
    event(conn, 0, UV_WRITABLE);
    end();
    TRACE_IS("poll nothing\n"
             "unwatch\n"
             "close 5\n"
             "a: closed, CLOSED\n"
             "called\n");
    poll_init_rc = UV_ENOMEM;
    connect_to("192.0.2.7:80");
    end();
    TRACE_IS("look up 192.0.2.7 80 numeric\n"
             "socket v4: 5\n"
             "5 is tuned\n"
             "connect 5 192.0.2.7 80\n"
             "watch 5\n"
             "close 5\n"
             "OK\n"
             "a: closed, NO_MEMORY\n"
             "called\n");
    alone_end();
}

/* Goal: a name is asked for, and an answer that comes too late, or not at all, leaves nothing. */
static void name_is_asked_for(void **state)
{
    (void)state;
    open_begin();
    struct leat_conn *conn = connect_to("host:80");
    assert_string_equal(net->peer(conn), "host:80");
    say(CONNECT, -EINPROGRESS);
    answered(0);
    assert_string_equal(net->peer(conn), "192.0.2.7:80");
    event(conn, 0, UV_WRITABLE);
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "socket v4: 5\n"
             "5 is tuned\n"
             "connect 5 192.0.2.7 80\n"
             "watch 5\n"
             "poll write\n"
             "answer freed\n"
             "a: open\n"
             "poll read\n");
    conn = connect_to("host:80");
    answered(UV_EAI_NONAME);
    deliver();
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "a: closed, UNREACHABLE\n"
             "called\n");
    conn = connect_to("host:80"); /* it goes while it is asked for */
    net->send_copy(conn, "x", 1);
    net->close(conn);
    leat_os_net_flush(&here); /* it has no socket */
    deliver();
    assert_null(((struct os_lookup *)looked_up->data)->conn);
    answered(0);
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "a: closed, OK\n"
             "ask no more\n"
             "called\n"
             "answer freed\n");
    conn = connect_to("host:80");
    net->close(conn);
    deliver();
    answered(UV_ECANCELED);
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "a: closed, OK\n"
             "ask no more\n"
             "called\n");
    conn = connect_to("host:80"); /* ... or is about to */
    net->close(conn);
    answered(0);
    deliver();
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "answer freed\n"
             "a: closed, OK\n"
             "called\n");
    conn = connect_to("host:80");
    net->close(conn);
    answered(UV_EAI_NONAME);
    deliver();
    TRACE_IS("look up host 80 numeric\n"
             "ask for host 80\n"
             "OK\n"
             "a: closed, OK\n"
             "called\n");
    alone_end();
}

/* Goal: a connection that can't be begun is refused at once, and leaves nothing. */
static void connection_that_can_not_be_begun_is_refused(void **state)
{
    (void)state;
    open_begin();
    connect_to("host");
    connect_to(":80"); /* any host is none */
    here.stopping = true;
    connect_to("192.0.2.7:80");
    here.stopping = false;
    leat_mem_fail_at(1);
    connect_to("192.0.2.7:80");
    leat_mem_fail_at(4); /* after the buffer, the connection and its address */
    connect_to("host:80");
    leat_mem_fail_at(0);
    say(LOOKUP, EAI_NONAME);
    say(LOOKUP, -EAGAIN);
    connect_to("host:80");
    TRACE_IS("INVALID\n"
             "INVALID\n"
             "CANCELLED\n"
             "NO_MEMORY\n"
             "look up host 80 numeric\n"
             "NO_MEMORY\n"
             "look up host 80 numeric\n"
             "ask for host 80\n"
             "NO_MEMORY\n");
    assert_true(leat_os_net_stopped(&here));
    alone_end();
}

/* Goal: a Unix socket is there or is not: where nobody listens that is a refusal, also where there is no file. */
static void unix_socket_is_connected_to(void **state)
{
    (void)state;
    open_begin();
    struct leat_conn *conn = connect_to("unix:/run/door");
    assert_string_equal(net->peer(conn), "unix:/run/door");
    event(conn, 0, UV_WRITABLE);
    TRACE_IS("socket unix: 5\n"
             "connect 5 /run/door\n"
             "watch 5\n"
             "poll write\n"
             "OK\n"
             "a: open\n"
             "poll read\n");
    alone_end();
}

/* Goal: a path may have 107 bytes; who has no socket there, or may not use it, is told apart. */
static void unix_socket_that_nobody_answers_is_told(void **state)
{
    (void)state;
    static const int causes[] = {ECONNREFUSED, ENOENT, EACCES, EPERM, EAGAIN, EMFILE};
    open_begin();
    for (unsigned i = 0; i < 6; i++) {
        if (causes[i] == EMFILE)
            say(SOCKET, -EMFILE);
        else
            say(CONNECT, -causes[i]);
        connect_to("unix:/run/door");
        deliver();
    }
    TRACE_IS("socket unix: 5\n"
             "connect 5 /run/door\n"
             "close 5\n"
             "OK\n"
             "a: closed, CLOSED\n"
             "called\n"
             "socket unix: 5\n"
             "connect 5 /run/door\n"
             "close 5\n"
             "OK\n"
             "a: closed, CLOSED\n"
             "called\n"
             "socket unix: 5\n"
             "connect 5 /run/door\n"
             "close 5\n"
             "OK\n"
             "a: closed, DENIED\n"
             "called\n"
             "socket unix: 5\n"
             "connect 5 /run/door\n"
             "close 5\n"
             "OK\n"
             "a: closed, DENIED\n"
             "called\n"
             "socket unix: 5\n"
             "connect 5 /run/door\n"
             "close 5\n"
             "OK\n"
             "a: closed, NO_MEMORY\n"
             "called\n"
             "socket unix: -1\n"
             "OK\n"
             "a: closed, NO_MEMORY\n"
             "called\n");
    char longest[128] = "unix:";
    memset(longest + 5, 'n', sizeof longest - 6);
    longest[5 + 107] = '\0';
    connect_to(longest);
    longest[5 + 107] = 'n';
    longest[5 + 108] = '\0';
    connect_to(longest);
    deliver();
    poll_init_rc = UV_ENOMEM;
    connect_to("unix:/run/door");
    TRACE_IS("socket unix: 5\n"
             "connect 5 "
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
             "nnnnnnnnnnnnnnnnnnnnnn\n"
             "watch 5\n"
             "poll write\n"
             "OK\n"
             "OK\n"
             "a: closed, UNREACHABLE\n"
             "called\n"
             "socket unix: 5\n"
             "connect 5 /run/door\n"
             "watch 5\n"
             "close 5\n"
             "CLOSED\n");
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(number_is_connected_to_at_once),
        TRACE_TEST(socket_may_be_number_nothing),
        TRACE_TEST(connection_moves_when_it_is_open),
        TRACE_TEST(cause_of_an_end_is_told),
        TRACE_TEST(socket_that_tells_nothing_has_failed),
        TRACE_TEST(name_is_asked_for),
        TRACE_TEST(connection_that_can_not_be_begun_is_refused),
        TRACE_TEST(unix_socket_is_connected_to),
        TRACE_TEST(unix_socket_that_nobody_answers_is_told),
    };
    return cmocka_run_group_tests_name("os-net-connect", tests, NULL, NULL);
}
