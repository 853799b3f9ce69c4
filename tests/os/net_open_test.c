/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, and whom a listener lets in. */
#include "tests/os/net_open_alone.h"

enum { ACCEPT_TIMER = 0 };

/* ---- listening ---- */

/* Goal: a listener has what its connections need; of this machine alone no pacing. */
static void listener_is_made_as_its_connections_need_it(void **state)
{
    (void)state;
    open_begin();
    listen_at("192.0.2.1:7700");
    TRACE_IS("look up 192.0.2.1 7700 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 7700\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: 192.0.2.1:7700, -\n");
    bound = address_of("127.0.0.9", 0x1234);
    listen_at("127.0.0.9:0");
    TRACE_IS("look up 127.0.0.9 0 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "5 is reno\n"
             "bind 5 127.0.0.9 0\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: 127.0.0.9:4660, -\n");
    assert_true(listener()->loopback);
    bound = address_of("::1", 80);
    listen_at("[::1]:80");
    TRACE_IS("look up ::1 80 passive\n"
             "socket v6: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "5 is reno\n"
             "bind 5 ::1 80\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: [::1]:80, -\n");
    bound = address_of("2001:db8::1", 80);
    listen_at("[2001:db8::1]:80");
    assert_false(listener()->loopback);
    say(NAME, -EBADF);
    bound = address_of("127.0.0.1", 80);
    say(STAT, -ENOENT);
    assert_int_equal(net->listen(net->ctx, "unix:door", on_accept, acceptor_name, NULL, NULL),
                     LEAT_OK);
    assert_int_equal(net->listen(net->ctx, "192.0.2.1:7700", on_accept, acceptor_name, NULL, NULL),
                     LEAT_OK);
    TRACE_IS("look up 2001:db8::1 80 passive\n"
             "socket v6: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 2001:db8::1 80\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "OK: [2001:db8::1]:80, -\n"
             "stat 9 door\n"
             "socket unix: 5\n"
             "mode 5 0600\n"
             "bind 5 /proc/self/fd/9/door\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n"
             "look up 192.0.2.1 7700 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 7700\n"
             "listen 5\n"
             "watch 5\n"
             "poll read\n");
    alone_end();
}

/* Goal: an address that is none, or that nobody can look up, is named. */
static void address_that_is_none_is_told(void **state)
{
    (void)state;
    open_begin();
    char long_host[400];
    memset(long_host, 'h', sizeof long_host);
    memcpy(long_host + 256, ":1", 3);
    listen_at("192.0.2.1");
    listen_at(long_host);
    say(LOOKUP, EAI_NONAME);
    listen_at(long_host + 1); /* the longest name that there can be */
    TRACE_IS("INVALID: -, 192.0.2.1 is not an address (HOST:PORT)\n"
             "INVALID: -, "
             "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"
             "hhhhhhhhhhhhhhh is not an address (HOST:PORT)\n"
             "look up hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh 1 passive\n"
             "CONFIG: -, can't find the address "
             "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"
             "hhhhhhhhhhhhhhh: Name or service not known\n");
    alone_end();
}

/* Goal: a listener without a socket, a place or memory is named with its cause, and nothing of it is left. */
static void listener_that_can_not_be_made_is_not_there(void **state)
{
    (void)state;
    open_begin();
    say(SOCKET, -EMFILE);
    listen_at("192.0.2.1:1");
    say(BIND, -EADDRINUSE);
    listen_at("192.0.2.1:1");
    say(LISTEN, -EACCES);
    listen_at("192.0.2.1:1");
    TRACE_IS("look up 192.0.2.1 1 passive\n"
             "socket v4: -1\n"
             "CONFIG: -, can't listen on 192.0.2.1:1: Too many open files\n"
             "look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "close 5\n"
             "EXISTS: -, can't listen on 192.0.2.1:1: Address already in use\n"
             "look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "listen 5\n"
             "close 5\n"
             "CONFIG: -, can't listen on 192.0.2.1:1: Permission denied\n");
    leat_mem_fail_at(1);
    listen_at("192.0.2.1:1");
    leat_mem_fail_at(0);
    poll_init_rc = UV_ENOMEM;
    listen_at("192.0.2.1:1");
    assert_true(leat_list_empty(&here.net.listeners));
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    TRACE_IS("look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "listen 5\n"
             "close 5\n"
             "NO_MEMORY: -, no memory to listen on 192.0.2.1:1\n"
             "look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "listen 5\n"
             "watch 5\n"
             "close 5\n"
             "NO_MEMORY: -, no memory to listen on 192.0.2.1:1\n");
    struct leat_error error;
    assert_int_equal(leat_os_address_try("192.0.2.1:1", &error), LEAT_OK);
    say(BIND, -EADDRINUSE);
    assert_int_equal(leat_os_address_try("192.0.2.1:1", &error), LEAT_E_EXISTS);
    TRACE_IS("look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "listen 5\n"
             "close 5\n"
             "look up 192.0.2.1 1 passive\n"
             "socket v4: 5\n"
             "5 has reuse 1\n"
             "5 is tuned\n"
             "bind 5 192.0.2.1 1\n"
             "close 5\n");
    alone_end();
}

/* Goal: a socket may have any number, also that of a standard input which was closed. */
static void socket_may_be_number_nothing(void **state)
{
    (void)state;
    open_begin();
    say(SOCKET, 0);
    listen_at("192.0.2.1:1");
    say(SOCKET, 0);
    listen_at("unix:door");
    TRACE_IS("look up 192.0.2.1 1 passive\n"
             "socket v4: 0\n"
             "0 has reuse 1\n"
             "0 is tuned\n"
             "bind 0 192.0.2.1 1\n"
             "listen 0\n"
             "watch 0\n"
             "poll read\n"
             "OK: 192.0.2.1:7700, -\n"
             "stat 9 door\n"
             "remove 9 door 0\n"
             "socket unix: 0\n"
             "mode 0 0600\n"
             "bind 0 /proc/self/fd/9/door\n"
             "listen 0\n"
             "watch 0\n"
             "poll read\n"
             "OK: unix:door, -\n");
    listen_at("192.0.2.1:2");
    trace_begin();
    say(ACCEPT, 0);
    doorbell(0);
    sent_to = 0;
    assert_int_equal(net->send_copy(accepted, "bye", 3), LEAT_OK);
    net->close(accepted);
    leat_os_net_flush(&here);
    sent_to = FD;
    deliver();
    TRACE_IS("door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
             "watch 0\n"
             "poll read\n"
             "poll nothing\n"
             "write 3 in 1: 3\n"
             "poll nothing\n"
             "unwatch\n"
             "door: closed, OK\n"
             "close 0\n"
             "called\n");
    alone_end();
}

/* Goal: of several addresses the first one that can be listened at is. */
static void first_address_that_works_is_listened_at(void **state)
{
    (void)state;
    open_begin();
    bound = address_of("0.0.0.0", 7700);
    say(SOCKET, -EAFNOSUPPORT);
    say(SOCKET, 6);
    listen_at(":7700");
    assert_false(listener()->loopback);
    say(SOCKET, 0);
    listen_at(":7700");
    TRACE_IS("look up any 7700 passive\n"
             "socket v4: -1\n"
             "socket v6: 6\n"
             "6 has reuse 1\n"
             "6 is tuned\n"
             "bind 6 :: 7700\n"
             "listen 6\n"
             "watch 6\n"
             "poll read\n"
             "OK: 0.0.0.0:7700, -\n"
             "look up any 7700 passive\n"
             "socket v4: 0\n"
             "0 has reuse 1\n"
             "0 is tuned\n"
             "bind 0 0.0.0.0 7700\n"
             "listen 0\n"
             "watch 0\n"
             "poll read\n"
             "OK: 0.0.0.0:7700, -\n");
    alone_end();
}

/* ---- accepting ---- */

/* Goal: a new connection is named by its address; limits go by a /56 of IPv6. */
static void one_that_comes_has_a_name_and_a_key(void **state)
{
    (void)state;
    static const char *const froms[] = {"192.0.2.7",           "192.0.2.1",         "127.3.4.5",
                                        "::ffff:198.51.100.3", "2001:db8:1:2ff::9", "::1",
                                        "2001:db8:0:1::1",     "::ffff:127.0.0.1"};
    open_begin();
    bound = address_of("192.0.2.1", 7700);
    listen_at("192.0.2.1:7700");
    trace_begin();
    for (unsigned i = 0; i < 8; i++) {
        if (i == 3) bound = address_of("2001:db8:0:1::1", 7700);
        from = address_of(froms[i], (uint16_t)(4000 + i));
        if (i == 3) ((struct sockaddr_in6 *)(void *)&from)->sin6_scope_id = UINT32_MAX;
        say(ACCEPT, 20 + i);
        doorbell(0);
        assert_int_equal(accepted->state, OS_CONN_OPEN);
        assert_int_equal(accepted->intake.account, LEAT_NET_CLIENTS);
    }
    TRACE_IS("door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
             "watch 20\n"
             "poll read\n"
             "door: 192.0.2.1:4001 from machine, key 0000000000000000c000020100000000\n"
             "watch 21\n"
             "poll read\n"
             "22 is reno\n"
             "door: 127.3.4.5:4002 from machine, key 00000000000000007f03040500000000\n"
             "watch 22\n"
             "poll read\n"
             "door: [::ffff:198.51.100.3%4294967295]:4003 from network, key "
             "0000000000000000c633640300000000\n"
             "watch 23\n"
             "poll read\n"
             "door: [2001:db8:1:2ff::9]:4004 from network, key 20010db8000102000000000000000000\n"
             "watch 24\n"
             "poll read\n"
             "25 is reno\n"
             "door: [::1]:4005 from machine, key 00000000000000000000000000000000\n"
             "watch 25\n"
             "poll read\n"
             "door: [2001:db8:0:1::1]:4006 from machine, key 20010db8000000000000000000000000\n"
             "watch 26\n"
             "poll read\n"
             "27 is reno\n"
             "door: [::ffff:127.0.0.1]:4007 from machine, key 00000000000000007f00000100000000\n"
             "watch 27\n"
             "poll read\n");
    say(NAME, -EBADF); /* nobody knows */
    from = address_of("192.0.2.1", 1);
    say(ACCEPT, 30);
    doorbell(0);
    bound = address_of("192.0.2.1", 7700);
    bound.ss_family = AF_INET6; /* the same bytes, of another kind */
    say(ACCEPT, 33);
    doorbell(0);
    from = bound = address_of("::1", 1); /* of no kind that is known */
    from.ss_family = bound.ss_family = AF_UNSPEC;
    say(ACCEPT, 31);
    doorbell(0);
    listener()->loopback = true; /* its connections take this from the listener */
    from = address_of("127.0.0.1", 1);
    say(ACCEPT, 32);
    doorbell(0);
    TRACE_IS("door: 192.0.2.1:1 from network, key 0000000000000000c000020100000000\n"
             "watch 30\n"
             "poll read\n"
             "door: 192.0.2.1:1 from network, key 0000000000000000c000020100000000\n"
             "watch 33\n"
             "poll read\n"
             "door: unknown from network, key 00000000000000000000000000000000\n"
             "watch 31\n"
             "poll read\n"
             "door: 127.0.0.1:1 from machine, key 00000000000000007f00000100000000\n"
             "watch 32\n"
             "poll read\n");
    alone_end();
}

/* Goal: a limited number of connections is let in at a time; then other work has its turn. */
static void so_many_are_let_in_at_a_time(void **state)
{
    (void)state;
    for (unsigned nodes = 0; nodes < 2; nodes++) {
        open_begin();
        here.kind = nodes ? LEAT_OS_ACTOR_DISK : LEAT_OS_ACTOR_CORE;
        listen_at("192.0.2.1:7700");
        refuses = true;
        for (unsigned i = 0; i < 70; i++)
            say(ACCEPT, 20);
        doorbell(0);
        trace_begin();
        assert_int_equal(script[ACCEPT].next,
                         nodes ? LEAT_NET_NODE_ACCEPTS_PER_EVENT : LEAT_NET_ACCEPTS_PER_EVENT);
        refuses = false;
        script[ACCEPT].count = script[ACCEPT].next = 0;
        say(ACCEPT, -ECONNABORTED); /* one that has gone already: the next */
        say(ACCEPT, 20);
        say(ACCEPT, -EAGAIN);
        say(ACCEPT, 21);
        doorbell(UV_EIO); /* then libuv has stopped */
        assert_int_equal(script[ACCEPT].next, 3);
        TRACE_IS("door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
                 "watch 20\n"
                 "poll read\n"
                 "poll read\n");
        alone_end();
    }
}

/* Goal: where this machine has no more descriptors or memory, it is tried again a little later, which is said once a
 * minute. */
static void accept_without_resources_pauses(void **state)
{
    (void)state;
    static const int causes[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    open_begin();
    listen_at("192.0.2.1:7700");
    listen_at("192.0.2.1:7701");
    trace_begin();
    now_ms = 0; /* also in the first minute of all */
    for (unsigned i = 0; i < 4; i++) {
        say(ACCEPT, -causes[i]);
        say(ACCEPT, -EAGAIN);
        doorbell(0);
        assert_int_equal(script[ACCEPT].next++, 2 * i + 1); /* nobody is asked for after that */
        if (i == 2) now_ms += LEAT_NET_TELL_MS - 1;
        if (i < 2) now_ms++;
        expire(ACCEPT_TIMER);
    }
    TRACE_IS(
        "node log: can't accept connections: Too many open files; tried again every 100 ms, said "
        "once a minute at most\n"
        "poll nothing\n"
        "timer accept 100\n"
        "poll read\n"
        "poll read\n"
        "poll nothing\n"
        "timer accept 100\n"
        "poll read\n"
        "poll read\n"
        "poll nothing\n"
        "timer accept 100\n"
        "poll read\n"
        "poll read\n"
        "node log: can't accept connections: Cannot allocate memory; tried again every 100 ms, "
        "said once a minute at most\n"
        "poll nothing\n"
        "timer accept 100\n"
        "poll read\n"
        "poll read\n");
    say(ACCEPT, 20);
    leat_mem_fail_at(1);
    doorbell(0);
    leat_mem_fail_at(0);
    TRACE_IS("close 20\n"
             "poll nothing\n"
             "timer accept 100\n");
    say(ACCEPT, -EMFILE);
    doorbell(UV_EBADF); /* an error of the listener does not end the pause either */
    TRACE_IS("poll nothing\n"
             "timer accept 100\n");
    alone_end();
}

/* Goal: the last descriptors are for this process's own; of these nodes may have half, the Unix socket three
 * quarters. */
static void last_descriptors_are_kept(void **state)
{
    (void)state;
    static const struct {
        bool nodes, local;
        int first;
    } ways[] = {{false, false, 100}, {true, false, 108}, {false, true, 112}, {true, true, 112}};
    for (unsigned i = 0; i < 4; i++) {
        open_begin();
        here.kind = ways[i].nodes ? LEAT_OS_ACTOR_DISK : LEAT_OS_ACTOR_CORE;
        listen_at(ways[i].local ? "unix:door" : "192.0.2.1:7700");
        trace_begin();
        say(ACCEPT, ways[i].first - 1);
        say(ACCEPT, ways[i].first);
        say(ACCEPT, ways[i].first + 1);
        doorbell(0);
        if (i == 0)
            TRACE_IS(
                "door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
                "watch 99\n"
                "poll read\n"
                "close 100\n"
                "node log: connections are refused: this process may have 116 files open (ulimit "
                "-n, "
                "LimitNOFILE=), and the last of them are for its own; said once a minute at most\n"
                "close 101\n");
        else if (i == 1)
            TRACE_IS(
                "door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
                "watch 107\n"
                "poll read\n"
                "close 108\n"
                "node log: connections are refused: this process may have 116 files open (ulimit "
                "-n, "
                "LimitNOFILE=), and the last of them are for its own; said once a minute at most\n"
                "close 109\n");
        else if (i == 2)
            TRACE_IS(
                "door: process 77 of account 1000 from owner, key "
                "0000000000000000c000020700000000\n"
                "watch 111\n"
                "poll read\n"
                "close 112\n"
                "node log: connections are refused: this process may have 116 files open (ulimit "
                "-n, "
                "LimitNOFILE=), and the last of them are for its own; said once a minute at most\n"
                "close 113\n");
        else
            TRACE_IS(
                "door: process 77 of account 1000 from owner, key "
                "0000000000000000c000020700000000\n"
                "watch 111\n"
                "poll read\n"
                "close 112\n"
                "node log: connections are refused: this process may have 116 files open (ulimit "
                "-n, "
                "LimitNOFILE=), and the last of them are for its own; said once a minute at most\n"
                "close 113\n");
        alone_end();
    }
}

/* Goal: a connection that is not taken goes, with what was sent to it; a connection whose socket can't be watched
 * ends. */
static void one_that_is_not_taken_goes(void **state)
{
    (void)state;
    open_begin();
    listen_at("192.0.2.1:7700");
    trace_begin();
    here.called = false;
    refuses = true;
    say(ACCEPT, 20);
    doorbell(0);
    refuses = false;
    assert_true(here.called && leat_os_net_stopped(&here));
    poll_init_rc = UV_ENOMEM;
    say(ACCEPT, 21);
    doorbell(0);
    deliver();
    TRACE_IS("door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
             "close 20\n"
             "door: 192.0.2.7:4000 from network, key 0000000000000000c000020700000000\n"
             "watch 21\n"
             "door: closed, CLOSED\n"
             "close 21\n"
             "called\n");
    leat_os_net_stop(&here); /* listeners, too */
    assert_true(leat_list_empty(&here.net.listeners));
    TRACE_IS("poll nothing\n"
             "close 5\n"
             "unwatch\n");
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(listener_is_made_as_its_connections_need_it),
        TRACE_TEST(address_that_is_none_is_told),
        TRACE_TEST(listener_that_can_not_be_made_is_not_there),
        TRACE_TEST(socket_may_be_number_nothing),
        TRACE_TEST(first_address_that_works_is_listened_at),
        TRACE_TEST(one_that_comes_has_a_name_and_a_key),
        TRACE_TEST(so_many_are_let_in_at_a_time),
        TRACE_TEST(accept_without_resources_pauses),
        TRACE_TEST(last_descriptors_are_kept),
        TRACE_TEST(one_that_is_not_taken_goes),
    };
    return cmocka_run_group_tests_name("os-net-open", tests, NULL, NULL);
}
