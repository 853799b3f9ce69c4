/* SPDX-License-Identifier: Apache-2.0 */
/* Kept bytes whose first part was consumed: where the rest lies, and what is read behind it. */
#include "tests/os/net_alone.h"

enum { KIB = 1024 };

static void amid_pause(struct leat_conn *conn)
{
    net->pause(conn);
}

static void amid_resume(struct leat_conn *conn)
{
    net->pause(conn);
    net->resume(conn);
}

/* So many bytes are kept; then so many of them are consumed, the rest where it is. */
static struct leat_conn *kept_behind(size_t bytes, size_t consumed)
{
    alone_begin();
    quiet = true;
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    come((long)bytes);
    readable(conn);
    consumes = consumed;
    net->pause(conn);
    net->resume(conn);
    deliver();
    trace_begin();
    quiet = false;
    kept_look(conn);
    return conn;
}

/* Goal: new bytes go behind the kept bytes where there is room. Else the kept bytes are moved to the front, and only
 * then is more room taken. */
static void room_in_front_serves_before_more_is_taken(void **state)
{
    (void)state;
    static const size_t wanted[] = {1596, 1597, 4096, 4097};
    for (unsigned i = 0; i < 4; i++) {
        struct leat_conn *conn = kept_behind(3000, 2500);
        conn->want_bytes = wanted[i];
        consumes = 0;
        come(1000);
        readable(conn);
        kept_look(conn);
        consumes = SIZE_MAX;
        wants = 0;
        come((long)wanted[i] - 1500);
        readable(conn); /* all of them are right */
        if (i == 0)
            TRACE_IS("kept 500 at 2500 of 4096, wants 0\n"
                     "read 262144: 1000\n"
                     "kept 1500 at 2500 of 4096, wants 1596\n"
                     "read 262144: 96\n"
                     "a: shown 1596\n");
        else if (i == 1)
            TRACE_IS("kept 500 at 2500 of 4096, wants 0\n"
                     "read 262144: 1000\n"
                     "kept 1500 at 0 of 4096, wants 1597\n"
                     "read 262144: 97\n"
                     "a: shown 1597\n");
        else if (i == 2)
            TRACE_IS("kept 500 at 2500 of 4096, wants 0\n"
                     "read 262144: 1000\n"
                     "kept 1500 at 0 of 4096, wants 4096\n"
                     "read 262144: 2596\n"
                     "a: shown 4096\n");
        else
            TRACE_IS("kept 500 at 2500 of 4096, wants 0\n"
                     "read 262144: 1000\n"
                     "kept 1500 at 0 of 8192, wants 4097\n"
                     "read 262144: 2597\n"
                     "a: shown 4097\n");
        alone_end();
    }
}

/* Goal: little of it is put in front of new bytes from where it lies. */
static void rest_is_put_in_front_from_where_it_lies(void **state)
{
    (void)state;
    struct leat_conn *conn = kept_behind(3000, 2500);
    conn->want_bytes = 0;
    consumes = SIZE_MAX;
    come(100);
    readable(conn);
    TRACE_IS("kept 500 at 2500 of 4096, wants 0\n"
             "read 262144: 100\n"
             "a: shown 600\n");
    alone_end();
    conn = kept_behind(1, 0);
    consumes = 0;
    wants = 0;
    come(1);
    readable(conn);
    kept_look(conn);
    TRACE_IS("kept 1 at 0 of 1024, wants 0\n"
             "read 262144: 1\n"
             "a: shown 2\n"
             "kept 2 at 0 of 1024, wants 0\n");
    alone_end();
}

/* Goal: many kept bytes stay, and new bytes are read behind them; room that the connection has need not be asked
 * for. Past the end of a large frame little is read while the account is full. */
static void rest_is_read_behind_from_where_it_lies(void **state)
{
    (void)state;
    static const size_t wanted[] = {20000, 0, 20001, 300000};
    for (unsigned i = 0; i < 4; i++) {
        struct leat_conn *conn = kept_behind(250000, 230000); /* of 256 KiB */
        net->limit(&here, LEAT_NET_CLIENTS, 8 * KIB);
        conn->want_bytes = wanted[i];
        consumes = SIZE_MAX;
        come(2000);
        readable(conn);
        kept_look(conn);
        if (i == 0)
            TRACE_IS("kept 20000 at 230000 of 262144, wants 0\n"
                     "read 262144: 2000\n"
                     "a: shown 22000\n"
                     "kept 0 at 0 of 0, wants 0\n");
        else if (i == 1)
            TRACE_IS("kept 20000 at 230000 of 262144, wants 0\n"
                     "read 262144: 2000\n"
                     "a: shown 22000\n"
                     "kept 0 at 0 of 0, wants 0\n");
        else if (i == 2)
            TRACE_IS("kept 20000 at 230000 of 262144, wants 0\n"
                     "read 1+4096: 2000\n"
                     "a: shown 20001\n"
                     "a: shown 1999\n"
                     "kept 0 at 0 of 0, wants 0\n");
        else
            TRACE_IS("kept 20000 at 230000 of 262144, wants 0\n"
                     "read 12144: 2000\n"
                     "kept 22000 at 230000 of 262144, wants 300000\n");
        alone_end();
    }
    struct leat_conn *conn = kept_behind(128 * KIB, 10);
    net->limit(&here, LEAT_NET_CLIENTS, 8 * KIB);
    consumes = 0;
    wants = 100 * KIB;
    come(20 * KIB);
    shown_at = read_at;
    readable(alone_conn("b", 2)); /* the one that may exceed the account */
    shown_at = 10;
    read_at = 128 * KIB;
    conn->want_bytes = 128 * KIB; /* all the room that it has */
    come(10);
    readable(conn);
    TRACE_IS("kept 131062 at 10 of 131072, wants 0\n"
             "read 4096: 4096\n"
             "b: shown 4096\n"
             "read 28672: 16384\n"
             "read 10+4096: 10\n"
             "a: shown 131072\n");
    alone_end();
}

/* Goal: the end of the stream shows nothing again. */
static void end_shows_nothing_again(void **state)
{
    (void)state;
    struct leat_conn *conn = kept_behind(100 * KIB, 1);
    come(0);
    readable(conn);
    deliver();
    TRACE_IS("kept 102399 at 1 of 131072, wants 0\n"
             "read 262144: 0\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: a large frame grows also from little that is kept: the rest of the frame is read behind the kept bytes, in as
 * much room as the frame may have. */
static void large_frame_may_begin_with_a_byte(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    wants = LEAT_NET_READ_BYTES + 2;
    come(1);
    readable(conn);
    come(1500);
    readable(conn);
    kept_look(conn);
    alone_end();
    alone_begin();
    conn = alone_conn("b", 1);
    wants = 2 * LEAT_NET_READ_BYTES;
    come(10);
    readable(conn);
    come(1000); /* of the next one, of which nothing is kept */
    readable(conn);
    kept_look(conn);
    TRACE_IS("read 262144: 1\n"
             "a: shown 1\n"
             "read 1023: 1023\n"
             "kept 1024 at 0 of 1024, wants 262146\n"
             "read 262144: 10\n"
             "b: shown 10\n"
             "read 262144: 1000\n"
             "kept 1000 at 0 of 8192, wants 524288\n");
    alone_end();
}

/* Goal: a handler that says nothing of what it wants is shown the next byte. */
static void nothing_said_is_nothing_wanted(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    wants = SIZE_MAX; /* it says nothing */
    come(1);
    readable(conn);
    kept_look(conn);
    TRACE_IS("read 262144: 1\n"
             "a: shown 1\n"
             "kept 1 at 0 of 1024, wants 0\n");
    alone_end();
}

static void amid_hunger(struct leat_conn *conn)
{
    (void)conn;
    consumes = 30;
    amid = NULL;
}

/* Goal: what follows a large frame may be taken in part; a pause amid it makes nothing ready. */
static void what_follows_a_large_frame_may_be_taken_in_part(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        quiet = true;
        consumes = 0;
        wants = 400 * KIB;
        come(LEAT_NET_READ_BYTES);
        readable(conn);
        consumes = way ? 400 * KIB - 50 : SIZE_MAX;
        wants = 0;
        amid = way ? amid_pause : amid_hunger;
        come(400 * KIB - LEAT_NET_READ_BYTES + 100);
        readable(conn);
        amid = NULL;
        kept_look(conn);
        trace("%s\n", leat_os_net_waiting(&here) ? "waiting" : "nothing waits");
        if (!way) net->pause(conn);
        net->resume(conn);
        deliver(); /* the connection is as it was */
        if (way)
            TRACE_IS("a: shown 262144\n"
                     "a: shown 409600\n"
                     "poll end\n"
                     "kept 150 at 409550 of 524288, wants 0\n"
                     "nothing waits\n"
                     "poll read\n"
                     "a: shown 150\n"
                     "called\n");
        else
            TRACE_IS("a: shown 262144\n"
                     "a: shown 409600\n"
                     "a: shown 100\n"
                     "kept 70 at 0 of 1024, wants 0\n"
                     "nothing waits\n"
                     "a: shown 70\n"
                     "called\n");
        alone_end();
    }
}

/* Goal: asked for again, nothing is shown where there is nothing, or less than is wanted by then. */
static void nothing_is_shown_again_where_there_is_too_little(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        consumes = way ? 4 : SIZE_MAX;
        wants = way ? 8 - way : 0; /* of six that are left */
        amid = amid_resume;
        come(10);
        readable(conn);
        amid = NULL;
        consumes = SIZE_MAX;
        deliver();
        if (way == 2)
            TRACE_IS("read 262144: 10\n"
                     "a: shown 10\n"
                     "a: shown 6\n"
                     "called\n");
        else if (way == 1)
            TRACE_IS("read 262144: 10\n"
                     "a: shown 10\n"
                     "nothing to call\n");
        else
            TRACE_IS("read 262144: 10\n"
                     "a: shown 10\n"
                     "nothing to call\n");
        alone_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(room_in_front_serves_before_more_is_taken),
        TRACE_TEST(rest_is_put_in_front_from_where_it_lies),
        TRACE_TEST(rest_is_read_behind_from_where_it_lies),
        TRACE_TEST(end_shows_nothing_again),
        TRACE_TEST(large_frame_may_begin_with_a_byte),
        TRACE_TEST(nothing_said_is_nothing_wanted),
        TRACE_TEST(what_follows_a_large_frame_may_be_taken_in_part),
        TRACE_TEST(nothing_is_shown_again_where_there_is_too_little),
    };
    return cmocka_run_group_tests_name("os-net-kept", tests, NULL, NULL);
}
