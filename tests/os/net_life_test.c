/* SPDX-License-Identifier: Apache-2.0 */
/* The life of connections: what epoll is asked for, how each end is noticed and told, and pausing. */
#include "tests/os/net_alone.h"

enum { KIB = 1024, END_TIMER = 2 };

static void amid_close(struct leat_conn *conn)
{
    net->close(conn);
}

static void amid_pause(struct leat_conn *conn)
{
    net->pause(conn);
}

static void amid_resume(struct leat_conn *conn)
{
    net->pause(conn);
    net->resume(conn);
}

static const char *waiting(void)
{
    return leat_os_net_waiting(&here) ? "waiting" : "nothing waits";
}

/* ---- events ---- */

/* Goal: the socket's error is told by the socket: it is read from and written to; who is not read from ends at once. */
static void error_of_a_socket_is_looked_at(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    come(10);
    event(conn, UV_EIO, 0);
    TRACE_IS("read 262144: 10\n"
             "a: shown 10\n"
             "poll read\n");
    take(0);
    net->send_copy(conn, "xy", 2);
    leat_os_net_flush(&here);
    TRACE_IS("write 2 in 1: 0\n"
             "poll read write\n");
    come(-ECONNRESET);
    take(1);
    event(conn, UV_EIO, 0);
    deliver();
    TRACE_IS("write 2 in 1: 1\n"
             "read 262144: -104\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    conn = alone_conn("b", 1);
    net->pause(conn);
    readable(conn);
    event(conn, UV_EIO, 0);
    deliver();
    TRACE_IS("poll end\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: writes go on when the socket takes more, and not before; a write that fails leaves nothing to be read. */
static void socket_that_takes_more_is_written_to(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->send_copy(conn, "xy", 2);
    event(conn, 0, UV_WRITABLE); /* nobody waits for that: it leaves at the end of the turn */
    TRACE_IS("");
    take(1);
    leat_os_net_flush(&here);
    readable(conn); /* that says nothing of it */
    come(3);
    take(-EPIPE);
    event(conn, 0, UV_WRITABLE | UV_READABLE | UV_DISCONNECT);
    conn->blocked = true;
    unread = 1;
    event(conn, 0, UV_WRITABLE | UV_READABLE | UV_DISCONNECT); /* it ends: that is all */
    trace("%s\n", waiting());
    deliver();
    trace("%s\n", waiting());
    TRACE_IS("write 2 in 1: 1\n"
             "poll read write\n"
             "read 262144: -11\n"
             "write 1 in 1: -32\n"
             "poll nothing\n"
             "waiting\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n"
             "nothing waits\n");
    alone_end();
}

/* ---- the other side's end ---- */

/* Goal: a connection that is not read is closed when the other side has closed and no bytes lie before that; bytes that
 * lie there may be taken for a second. */
static void end_of_one_that_is_not_read_from_is_noticed(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *a = alone_conn("a", 1), *b = alone_conn("b", 2), *c = alone_conn("c", 3),
                     *d = alone_conn("d", 4);
    struct leat_conn *const conns[] = {a, b, c, d};
    for (unsigned i = 0; i < 4; i++) {
        net->pause(conns[i]);
        readable(conns[i]);
    }
    TRACE_IS("poll end\n"
             "poll end\n"
             "poll end\n"
             "poll end\n");
    event(a, 0, UV_DISCONNECT);
    deliver();
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    unread = 1;
    event(b, 0, UV_DISCONNECT);
    now_ms += 100;
    event(b, 0, UV_DISCONNECT); /* from the first time on */
    event(c, 0, UV_DISCONNECT);
    TRACE_IS("timer end 250\n"
             "poll nothing\n"
             "poll nothing\n");
    now_ms += 899;
    expire(END_TIMER);
    deliver();
    TRACE_IS("timer end 250\n"
             "nothing to call\n");
    now_ms++;
    expire(END_TIMER);
    deliver();
    TRACE_IS("timer end 250\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    net->resume(c); /* it is read from by now, and gets its end as bytes */
    TRACE_IS("poll read\n");
    now_ms += 1000;
    expire(END_TIMER);
    deliver();
    TRACE_IS("timer end 250\n"
             "nothing to call\n");
    come(0);
    readable(c);
    deliver();
    expire(END_TIMER);
    assert_false(timer_active[END_TIMER]);
    unread = -1; /* nobody can tell */
    event(d, 0, UV_DISCONNECT);
    TRACE_IS("read 262144: 0\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "c: closed, CLOSED\n"
             "close 5\n"
             "called\n"
             "timer end 250\n"
             "poll nothing\n");
    alone_end();
}

/* Goal: a frame that is there whole, and was not taken yet, is taken before the end. */
static void whole_frame_comes_before_the_end(void **state)
{
    (void)state;
    static const struct {
        size_t has, wants;
        bool whole;
    } ways[] = {{0, 100, false}, {99, 100, false}, {100, 100, true}, {101, 100, true},
                {0, 0, false},   {1, 1, true},     {1, 0, true}};
    for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        consumes = 0;
        wants = ways[way].wants;
        if (ways[way].has) bytes_come(conn, (long)ways[way].has);
        net->pause(conn);
        readable(conn);
        trace_begin();
        event(conn, 0, UV_DISCONNECT);
        deliver();
        if (ways[way].whole)
            TRACE_IS("timer end 250\n"
                     "poll nothing\n"
                     "nothing to call\n");
        else
            TRACE_IS("poll nothing\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, CLOSED\n"
                     "close 5\n"
                     "called\n");
        alone_end();
    }
}

/* ---- watching ---- */

/* Goal: a socket that can't be watched is reported, and what was made for the socket goes. Nothing of a connection is
 * reported after its end. */
static void socket_that_can_not_be_watched_is_told(void **state)
{
    (void)state;
    alone_begin();
    uint8_t key[LEAT_NET_KEY_BYTES] = {1, 2};
    for (unsigned n = 1; n <= 2; n++) { /* the buffer of all, and itself */
        leat_mem_fail_at(n);
        assert_null(leat_os_conn_create(&here, FD, key, LEAT_NET_NODES));
        leat_mem_fail_at(0);
        assert_true(leat_os_net_stopped(&here));
    }
    struct leat_conn *conn = leat_os_conn_create(&here, FD, key, LEAT_NET_NODES);
    assert_memory_equal(net->key(conn), key, sizeof key);
    assert_int_equal(conn->intake.account, LEAT_NET_NODES);
    assert_int_equal(net->origin(conn), LEAT_ORIGIN_NETWORK);
    assert_ptr_equal(net->peer(conn), conn->peer);
    assert_false(leat_os_net_stopped(&here));
    size_t before = leat_mem_bytes(LEAT_MEM_NET);
    leat_mem_fail_at(1);
    assert_int_equal(leat_os_conn_watch(conn), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    poll_init_rc = UV_EINVAL;
    assert_int_equal(leat_os_conn_watch(conn), LEAT_E_CLOSED);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), before);
    leat_os_conn_unwatch(conn); /* it is not */
    leat_os_conn_events(conn);
    poll_init_rc = 0;
    TRACE_IS("watch 5\n");
    conn->state = OS_CONN_CONNECTING;
    conn->events = UV_WRITABLE; /* of before */
    assert_int_equal(leat_os_conn_watch(conn), LEAT_OK);
    struct os_poll *poll = conn->poll;
    leat_os_conn_unwatch(conn);
    assert_true(!conn->poll && !poll->conn && conn->events == 0);
    conn->fd = -1;
    leat_os_conn_free(conn); /* which has no socket any more */
    assert_true(leat_os_net_stopped(&here));
    TRACE_IS("watch 5\n"
             "poll write\n"
             "poll nothing\n"
             "unwatch\n");
    alone_end();
}

/* Goal: epoll is told only what changes. */
static void epoll_is_told_what_changes(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    leat_os_conn_events(conn);
    conn->blocked = true;
    leat_os_conn_events(conn);
    net->pause(conn);
    leat_os_conn_events(conn);
    conn->blocked = false;
    leat_os_conn_events(conn);
    leat_list_push_back(&here.net.ended, &conn->ended);
    leat_os_conn_events(conn);
    leat_list_remove(&conn->ended);
    conn->paused = false;
    leat_os_conn_events(conn);
    conn->moving = true;
    leat_os_conn_events(conn);
    conn->moving = conn->paused = false;
    conn->state = OS_CONN_CONNECTING;
    leat_os_conn_events(conn);
    conn->state = OS_CONN_CLOSING;
    conn->blocked = true;
    leat_os_conn_events(conn);
    TRACE_IS("poll read write\n"
             "poll write end\n"
             "poll end\n"
             "poll nothing\n"
             "poll read\n"
             "poll end\n"
             "poll write\n"
             "poll nothing\n");
    conn->state = OS_CONN_OPEN;
    alone_end();
}

/* ---- pausing ---- */

/* Goal: after a pause kept bytes are shown again, where there are as many as are wanted; also of a pause that begins
 * and ends while they are shown. */
static void kept_bytes_are_shown_again_after_a_pause(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->pause(conn);
    conn->intake.heard_bytes = 7;
    now_ms += 5;
    net->resume(conn);
    assert_true(conn->intake.heard_ms == now_ms && conn->intake.heard_bytes == 0);
    trace("%s\n", waiting());
    consumes = 0;
    bytes_come(conn, 10);
    deliver();
    net->resume(conn); /* it was not held up */
    deliver();
    TRACE_IS("nothing waits\n"
             "read 262144: 10\n"
             "a: shown 10\n"
             "nothing to call\n"
             "nothing to call\n");
    net->pause(conn);
    net->resume(conn);
    trace("%s\n", waiting());
    come(5); /* not before what is kept */
    readable(conn);
    deliver();
    TRACE_IS("waiting\n"
             "a: shown 10\n"
             "called\n");
    alone_end();
}

/* Goal: of a pause that begins and ends while bytes are shown the rest is shown again; less than is wanted is not. */
static void kept_bytes_wait_for_as_many_as_are_wanted(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    bytes_come(conn, 10);
    come(5);
    trace_begin();
    wants = 16;
    readable(conn);
    read_next = read_count;
    net->pause(conn);
    net->resume(conn);
    trace("%s\n", waiting()); /* it wants one more */
    conn->want_bytes = 15;
    net->pause(conn);
    net->resume(conn);
    amid = amid_pause;
    deliver(); /* epoll hears of that pause, too */
    amid = NULL;
    net->resume(conn);
    deliver();
    TRACE_IS("read 262144: 5\n"
             "a: shown 15\n"
             "nothing waits\n"
             "a: shown 15\n"
             "poll end\n"
             "called\n"
             "poll read\n"
             "nothing to call\n");
    consumes = 16;
    wants = 0;
    amid = amid_resume;
    come(6);
    readable(conn);
    trace("%s\n", waiting());
    amid = NULL;
    deliver();
    deliver();
    TRACE_IS("read 262144: 6\n"
             "a: shown 21\n"
             "waiting\n"
             "a: shown 5\n"
             "called\n"
             "nothing to call\n");
    net->pause(conn);
    net->close(conn);
    net->resume(conn);
    deliver();
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, OK\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: a paused connection that is shown what it keeps stays paused. */
static void nothing_is_shown_amid_a_pause(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 4;
    bytes_come(conn, 10);
    net->pause(conn);
    net->resume(conn);
    net->pause(conn);
    deliver();
    TRACE_IS("read 262144: 10\n"
             "a: shown 10\n"
             "nothing to call\n");
    net->resume(conn);
    consumes = 3;
    amid = amid_close;
    deliver();
    deliver();
    TRACE_IS("a: shown 6\n"
             "poll nothing\n"
             "called\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, OK\n"
             "close 5\n"
             "called\n");
    alone_end();
}

static struct leat_send sends[3];
static struct leat_iov piece = {"ab", 2};
static unsigned agains;

static void on_sent(struct leat_send *send, leat_err rc)
{
    trace("%td: %s\n", send - sends, leat_err_name(rc));
    if (agains && agains--) net->send(send->owner, send);
}

static void send_one(struct leat_conn *conn, unsigned number)
{
    sends[number] =
        (struct leat_send){.iovs = &piece, .iov_count = 1, .on_sent = on_sent, .owner = conn};
    net->send(conn, &sends[number]);
}

/* Goal: the first cause of an end is told, once, and not within the call; what is sent meanwhile comes back. */
static void end_is_told_once_and_later(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    leat_os_conn_fail(conn, LEAT_E_TIMEOUT);
    net->close(conn);
    trace("%s\n", waiting());
    send_one(conn, 0);
    send_one(conn, 1);
    agains = 1;
    TRACE_IS("poll nothing\n"
             "waiting\n");
    deliver();
    TRACE_IS("0: CLOSED\n"
             "1: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "0: CLOSED\n"
             "a: closed, TIMEOUT\n"
             "close 5\n"
             "called\n");
    deliver();
    trace("%s\n", waiting());
    conn = alone_conn("b", 1);
    net->close(conn);
    send_one(conn, 2);
    deliver();
    conn = alone_conn("c", 1);
    net->send_copy(conn, "x", 1); /* gone before the end of its turn */
    net->close(conn);
    deliver();
    trace("%s\n", waiting());
    TRACE_IS("nothing to call\n"
             "nothing waits\n"
             "poll nothing\n"
             "2: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, OK\n"
             "close 5\n"
             "called\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "c: closed, OK\n"
             "close 5\n"
             "called\n"
             "nothing waits\n");
    alone_end();
}

static struct leat_conn *next_one;

static void closed_and_sends(void *user, struct leat_conn *conn, leat_err why)
{
    alone_closed(user, conn, why);
    send_one(next_one, 1);
}

/* Goal: what is sent while another connection's end is told comes back, too; where nobody is told of an end, what came
 * back is a callback all the same. */
static void send_amid_an_end_comes_back(void **state)
{
    (void)state;
    static const struct leat_conn_handler handler = {NULL, alone_bytes, closed_and_sends};
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    conn->handler = &handler;
    next_one = alone_conn("b", 1);
    net->close(conn);
    net->close(next_one);
    send_one(conn, 0);
    agains = 1;
    deliver();
    conn = alone_conn("c", 1);
    conn->handler = NULL;
    net->close(conn);
    send_one(conn, 2);
    deliver();
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "0: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "0: CLOSED\n"
             "a: closed, OK\n"
             "close 5\n"
             "poll nothing\n"
             "unwatch\n"
             "1: CLOSED\n"
             "b: closed, OK\n"
             "close 5\n"
             "called\n"
             "poll nothing\n"
             "2: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: on_sent may use its send struct again, also where the connection has ended. */
static void sent_struct_is_its_senders_again(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    send_one(conn, 0);
    send_one(conn, 1);
    leat_os_net_flush(&here);
    trace("%s\n", waiting());
    agains = 2;
    deliver();
    trace("%s\n", waiting());
    leat_os_net_flush(&here);
    trace("%s\n", waiting());
    deliver();
    trace("%s\n", waiting());
    TRACE_IS("write 4 in 2: 4\n"
             "waiting\n"
             "0: OK\n"
             "1: OK\n"
             "called\n"
             "waiting\n"
             "write 4 in 2: 4\n"
             "waiting\n"
             "0: OK\n"
             "1: OK\n"
             "called\n"
             "nothing waits\n");
    send_one(conn, 2);
    trace("%s\n", waiting());
    leat_os_net_stop(&here);
    leat_os_net_flush(&here); /* the end of the connection is not reported yet */
    send_one(conn, 0);
    trace("%s\n", waiting());
    deliver();
    trace("%s\n", waiting());
    TRACE_IS("waiting\n"
             "poll nothing\n"
             "waiting\n"
             "0: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "2: CLOSED\n"
             "a: closed, CANCELLED\n"
             "close 5\n"
             "called\n"
             "nothing waits\n");
    alone_end();
}

/* Goal: what becomes ready while callbacks run has its turn later. */
static void deliver_brings_what_was_there(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *const conns[] = {alone_conn("a", 1), alone_conn("b", 2)};
    consumes = 0;
    for (unsigned i = 0; i < 2; i++) {
        bytes_come(conns[i], 256); /* the same bytes again and again */
        read_at = 0;
        shown_at = 0;
        net->pause(conns[i]);
        net->resume(conns[i]);
    }
    trace_begin();
    amid = amid_resume;
    deliver();
    trace("%s\n", waiting());
    TRACE_IS("a: shown 256\n"
             "b: shown 256\n"
             "called\n"
             "waiting\n");
    amid = NULL;
    deliver();
    trace("%s\n", waiting());
    deliver();
    TRACE_IS("a: shown 256\n"
             "b: shown 256\n"
             "called\n"
             "nothing waits\n"
             "nothing to call\n");
    net->close(conns[1]);
    net->pause(conns[0]);
    net->resume(conns[0]);
    deliver();
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, OK\n"
             "close 5\n"
             "a: shown 256\n"
             "called\n");
    alone_end();
}

/* Goal: whatever comes last in a turn, a callback that ran is told. */
static void callback_that_ran_is_told(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1), *other = alone_conn("b", 1);
        consumes = 0;
        come(1);
        readable(conn);
        if (way < 2) send_one(other, 0);
        leat_os_net_flush(&here);
        if (way == 0) conn->handler = NULL; /* it ends without a word */
        if (way == 0) net->close(conn);
        if (way > 0) net->pause(conn), net->resume(conn); /* a byte is enough */
        if (way == 1) conn->want_bytes = 5;
        trace_begin();
        deliver();
        if (way == 0)
            TRACE_IS("0: OK\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "close 5\n"
                     "called\n");
        else if (way == 1)
            TRACE_IS("0: OK\n"
                     "called\n");
        else
            TRACE_IS("a: shown 1\n"
                     "called\n");
        alone_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(error_of_a_socket_is_looked_at),
        TRACE_TEST(socket_that_takes_more_is_written_to),
        TRACE_TEST(end_of_one_that_is_not_read_from_is_noticed),
        TRACE_TEST(whole_frame_comes_before_the_end),
        TRACE_TEST(socket_that_can_not_be_watched_is_told),
        TRACE_TEST(epoll_is_told_what_changes),
        TRACE_TEST(kept_bytes_are_shown_again_after_a_pause),
        TRACE_TEST(kept_bytes_wait_for_as_many_as_are_wanted),
        TRACE_TEST(nothing_is_shown_amid_a_pause),
        TRACE_TEST(end_is_told_once_and_later),
        TRACE_TEST(send_amid_an_end_comes_back),
        TRACE_TEST(sent_struct_is_its_senders_again),
        TRACE_TEST(deliver_brings_what_was_there),
        TRACE_TEST(callback_that_ran_is_told),
    };
    return cmocka_run_group_tests_name("os-net-life", tests, NULL, NULL);
}
