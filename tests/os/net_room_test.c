/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that come in where there is little room: who waits, who is closed, and which buffers lie ready. */
#include "tests/os/net_alone.h"

enum { KIB = 1024 };

/* Goal: where the account has no room for more bytes than have come, no more are taken for it. A connection that would
 * grow past the account waits for its turn, and is read again when there is room. A connection that brings nothing
 * meanwhile is closed. */
static void full_account_makes_connections_wait(void **state)
{
    (void)state;
    alone_begin();
    net->limit(&here, LEAT_NET_CLIENTS, 64 * KIB);
    struct leat_conn *a = alone_conn("a", 1), *b = alone_conn("b", 2), *c = alone_conn("c", 3);
    consumes = 0;
    wants = 100 * KIB;
    come(5 * KIB);
    readable(a);
    kept_look(a); /* 32 KiB are half of it all */
    come(30 * KIB);
    readable(a);
    kept_look(a);
    TRACE_IS("read 262144: 5120\n"
             "a: shown 5120\n"
             "kept 5120 at 0 of 8192, wants 102400\n"
             "read 262144: 30720\n"
             "kept 35840 at 0 of 65536, wants 102400\n");
    come(28 * KIB); /* it is full: 4 KiB at a time of who has none; one may exceed it */
    shown_at = read_at;
    readable(b);
    kept_look(b);
    TRACE_IS("read 4096: 4096\n"
             "b: shown 4096\n"
             "read 28672: 24576\n"
             "kept 28672 at 0 of 32768, wants 102400\n");
    shown_at = read_at;
    come(28 * KIB);
    readable(c);
    kept_look(c);
    readable(c);
    deliver();
    TRACE_IS("read 4096: 4096\n"
             "c: shown 4096\n"
             "timer stall 250\n"
             "poll end\n"
             "kept 4096 at 0 of 4096, wants 102400\n"
             "nothing to call\n");
    net->close(b);
    deliver();
    c->intake.heard_bytes = 9;
    now_ms += 33;
    deliver();
    assert_int_equal(c->intake.heard_ms, now_ms); /* its time begins now */
    assert_int_equal(c->intake.heard_bytes, 0);
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, OK\n"
             "close 5\n"
             "called\n"
             "poll read\n"
             "nothing to call\n");
    reads[read_next] = 10 * KIB;
    readable(c);
    kept_look(c);
    TRACE_IS("read 28672: 10240\n"
             "kept 14336 at 0 of 32768, wants 102400\n");
    alone_end();
}

/* Three, of which two have taken all the room, and the third waits. */
static struct leat_conn *one_waits(struct leat_conn *conns[3])
{
    alone_begin();
    quiet = true;
    now_ms = 100 * 1000;
    net->limit(&here, LEAT_NET_CLIENTS, 64 * KIB);
    consumes = 0;
    wants = 100 * KIB;
    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        conns[i] = alone_conn(names[i], (uint8_t)i);
        shown_at = read_at;
        come(35 * KIB);
        readable(conns[i]);
        if (i < 2) read_next = read_count;
    }
    deliver();
    return conns[1];
}

/* A point for each look that changes nothing. */
static void time_passes(void)
{
    static const char nothing[] = "timer stall 250\nnothing to call\n";
    for (unsigned i = 0; i < 6; i++) {
        now_ms += LEAT_INTAKE_LOOK_MS;
        size_t before = trace_used;
        expire(1);
        deliver();
        if (strcmp(trace_text + before, nothing) != 0) continue;
        trace_text[trace_used = before] = '\0';
        trace(".\n");
    }
}

/* Goal: a connection that holds a part of a frame and is silent while others wait is closed for that. A connection with
 * unread bytes, or whose handler holds it up, is not silent. */
static void silent_connection_makes_room(void **state)
{
    (void)state;
    struct leat_conn *conns[3];
    one_waits(conns);
    TRACE_IS("a: shown 35840\n"
             "b: shown 4096\n"
             "c: shown 4096\n"
             "timer stall 250\n"
             "poll end\n"
             "nothing to call\n");
    time_passes();
    TRACE_IS("poll nothing\n"
             "timer stall 250\n"
             "poll read\n"
             "poll nothing\n"
             "unwatch\n"
             "b: closed, TIMEOUT\n"
             "close 5\n"
             "called\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n");
    alone_end();
    one_waits(conns);
    trace_begin();
    unread = 1;
    time_passes();
    TRACE_IS(".\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n");
    alone_end();
    net->pause(one_waits(conns));
    trace_begin();
    time_passes();
    TRACE_IS(".\n"
             ".\n"
             ".\n"
             "poll nothing\n"
             "timer stall 250\n"
             "poll read\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, TIMEOUT\n"
             "close 5\n"
             "called\n"
             ".\n"
             ".\n");
    alone_end();
    one_waits(conns);
    trace_begin();
    unread = -1; /* nobody can tell */
    time_passes();
    TRACE_IS(".\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n"
             ".\n");
    alone_end();
}

/* Goal: what a connection brought while nobody waited says nothing of the time in which one waits: that time begins
 * with the wait. */
static void time_of_a_wait_begins_with_it(void **state)
{
    (void)state;
    struct leat_conn *conns[3];
    one_waits(conns);
    now_ms += LEAT_INTAKE_OVER_SILENT_MS - 1;
    expire(1);
    net->close(conns[1]);
    deliver();
    deliver();
    readable(conns[2]); /* nobody waits any more */
    for (; timer_active[1]; now_ms += LEAT_INTAKE_LOOK_MS)
        expire(1);
    now_ms += 100 * 1000;
    for (unsigned i = 0; i < 2; i++) { /* then another one does */
        read_next = read_count;
        come(35 * KIB);
        shown_at = read_at;
        readable(alone_conn(i ? "e" : "d", (uint8_t)(3 + i)));
    }
    trace_begin();
    static const unsigned others[] = {0, 2};
    for (unsigned i = 0; i < 2; i++) {
        read_next = read_count;
        come(LEAT_INTAKE_HEARD_BYTES);
        readable(conns[others[i]]);
    }
    now_ms += LEAT_INTAKE_OVER_SILENT_MS - 1; /* none is silent for long enough */
    expire(1);
    deliver();
    TRACE_IS("timer stall 250\n"
             "nothing to call\n");
    alone_end();
}

/* Goal: who is silent with a part of a frame while others wait, and ends, has lost its place; one held up has not. */
static void place_of_one_that_ends_is_lost(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        alone_begin();
        net->limit(&here, LEAT_NET_CLIENTS, 64 * KIB);
        struct leat_conn *const conns[] = {alone_conn("a", 1), alone_conn("b", 2),
                                           alone_conn("c", 3)};
        consumes = 0;
        wants = 100 * KIB;
        quiet = true;
        for (unsigned i = 0; i < 3; i++) {
            bytes_come(conns[i], 35 * KIB);
            read_next = read_count;
        }
        now_ms += 1000;
        if (way == 2) net->pause(conns[0]);
        trace_begin();
        if (way == 1)
            net->close(conns[0]);
        else
            leat_os_conn_fail(conns[0], LEAT_E_CLOSED);
        trace("%u\n", here.net.intake.blamed_count);
        deliver();
        if (way == 0)
            TRACE_IS("poll nothing\n"
                     "1\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, CLOSED\n"
                     "close 5\n"
                     "called\n");
        else if (way == 1)
            TRACE_IS("poll nothing\n"
                     "0\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, OK\n"
                     "close 5\n"
                     "called\n");
        else
            TRACE_IS("poll nothing\n"
                     "0\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, CLOSED\n"
                     "close 5\n"
                     "called\n");
        alone_end();
    }
}

/* Goal: a read of a stranger brings no more than a small request. */
static void strangers_are_read_in_small_pieces(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->account(conn, LEAT_NET_STRANGERS);
    come(10000);
    readable(conn);
    consumes = 4000;
    come(5000);
    readable(conn);
    kept_look(conn);
    TRACE_IS("read 4096: 4096\n"
             "a: shown 4096\n"
             "read 4096: 4096\n"
             "a: shown 4096\n"
             "read 4096: 1808\n"
             "a: shown 1808\n"
             "read 4096: 4096\n"
             "a: shown 4096\n"
             "read 4096: 904\n"
             "a: shown 1000\n"
             "kept 0 at 0 of 0, wants 0\n");
    alone_end();
}

/* Goal: when strangers hold more than all strangers may, the stranger that has held its part for longest goes. */
static void oldest_stranger_makes_room(void **state)
{
    (void)state;
    alone_begin();
    quiet = true;
    net->limit(&here, LEAT_NET_STRANGERS, 8 * KIB);
    consumes = 0;
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_conn *conn = alone_conn(names[i], (uint8_t)i);
        net->account(conn, LEAT_NET_STRANGERS);
        shown_at = read_at;
        come(4000);
        readable(conn);
    }
    deliver();
    TRACE_IS("a: shown 4000\n"
             "b: shown 4000\n"
             "c: shown 4000\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, TOO_MANY\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: without memory for what has to be kept the connection ends. */
static void rest_without_memory_ends_the_connection(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        consumes = 0;
        wants = way == 2 ? 8 * 1024 * KIB : 0;
        if (way) come(way == 1 ? 1000 : LEAT_NET_READ_BYTES);
        if (way == 2) come(-EAGAIN);
        readable(conn);
        trace_begin();
        leat_mem_fail_at(1);
        come(way == 2 ? 7 * LEAT_NET_READ_BYTES + 1 : 100 * KIB); /* its buffer holds all but one */
        readable(conn);
        leat_mem_fail_at(0);
        deliver();
        if (way == 0)
            TRACE_IS("read 262144: 102400\n"
                     "a: shown 102400\n"
                     "poll nothing\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, NO_MEMORY\n"
                     "close 5\n"
                     "called\n");
        else if (way == 1)
            TRACE_IS("read 262144: 102400\n"
                     "a: shown 103400\n"
                     "poll nothing\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, NO_MEMORY\n"
                     "close 5\n"
                     "called\n");
        else
            TRACE_IS("read 1835008: 1835008\n"
                     "poll nothing\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, NO_MEMORY\n"
                     "close 5\n"
                     "called\n");
        alone_end();
    }
}

/* Goal: the largest frame is shown whole; a handler that does not take it then never will. */
static void frame_that_nobody_takes_ends_the_connection(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    quiet = true;
    consumes = 0;
    wants = LEAT_WANT_BYTES_MAX;
    come(LEAT_WANT_BYTES_MAX - 1);
    while (read_next < read_count)
        readable(conn);
    TRACE_IS("a: shown 262144\n");
    wants = 0;
    come(1);
    readable(conn);
    kept_look(conn);
    TRACE_IS("a: shown 9437184\n"
             "kept 9437184 at 0 of 16777216, wants 0\n");
    come(1);
    readable(conn);
    deliver();
    TRACE_IS("poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, TOO_LARGE\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: buffers lie ready for the next as long as those in use leave room, whoever has these. */
static void buffers_lie_ready_while_there_is_room(void **state)
{
    (void)state;
    for (unsigned less = 0; less < 2; less++) {
        alone_begin();
        quiet = true;
        here.net.buffers.ready_bytes_max = 7 * KIB - less;
        struct leat_conn *const conns[] = {alone_conn("a", 1), alone_conn("b", 2),
                                           alone_conn("c", 3)};
        net->account(conns[1], LEAT_NET_NODES);
        net->account(conns[2], LEAT_NET_STRANGERS);
        consumes = 0;
        for (unsigned i = 0; i < 3; i++) { /* 2 KiB each */
            come(1500);
            shown_at = read_at;
            readable(conns[i]);
        }
        trace_begin();
        assert_int_equal(net->send_copy(conns[0], "0123456789", 10), LEAT_OK); /* 1 KiB */
        leat_os_conn_kept_drop(conns[0]);
        trace("%zu lie ready, %llu and %zu are used\n", here.net.buffers.ready_bytes,
              (unsigned long long)here.net.intake.accounts[LEAT_NET_CLIENTS].bytes,
              here.net.copy_capacity);
        kept_look(conns[0]);
        size_t before = leat_mem_bytes(LEAT_MEM_NET);
        come(1500);
        shown_at = read_at;
        readable(conns[0]);
        trace("%zu more are taken\n", leat_mem_bytes(LEAT_MEM_NET) - before);
        if (less)
            TRACE_IS("0 lie ready, 0 and 1024 are used\n"
                     "kept 0 at 0 of 0, wants 0\n"
                     "a: shown 1500\n"
                     "2048 more are taken\n");
        else
            TRACE_IS("2048 lie ready, 0 and 1024 are used\n"
                     "kept 0 at 0 of 0, wants 0\n"
                     "a: shown 1500\n"
                     "0 more are taken\n");
        alone_end();
    }
}

/* Goal: a connection with few kept bytes goes on up to 4 KiB where its account is full, and does not wait. */
static void few_bytes_are_read_though_the_account_is_full(void **state)
{
    (void)state;
    alone_begin();
    net->limit(&here, LEAT_NET_CLIENTS, 8 * KIB);
    struct leat_conn *a = alone_conn("a", 1), *b = alone_conn("b", 2);
    consumes = 0;
    wants = 100 * KIB;
    quiet = true;
    come(20 * KIB); /* the one that may exceed the account */
    readable(a);
    quiet = false;
    trace_begin();
    shown_at = read_at;
    come(1000);
    readable(b);
    come(500);
    readable(b);
    kept_look(b);
    TRACE_IS("read 4096: 1000\n"
             "b: shown 1000\n"
             "read 3096: 500\n"
             "kept 1500 at 0 of 2048, wants 102400\n");
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(full_account_makes_connections_wait),
        TRACE_TEST(few_bytes_are_read_though_the_account_is_full),
        TRACE_TEST(silent_connection_makes_room),
        TRACE_TEST(time_of_a_wait_begins_with_it),
        TRACE_TEST(place_of_one_that_ends_is_lost),
        TRACE_TEST(strangers_are_read_in_small_pieces),
        TRACE_TEST(oldest_stranger_makes_room),
        TRACE_TEST(rest_without_memory_ends_the_connection),
        TRACE_TEST(frame_that_nobody_takes_ends_the_connection),
        TRACE_TEST(buffers_lie_ready_while_there_is_room),
    };
    return cmocka_run_group_tests_name("os-net-room", tests, NULL, NULL);
}
