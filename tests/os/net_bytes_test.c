/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that come in: what is read when, what of it is shown, and where the rest of a frame is kept. */
#include "tests/os/net_alone.h"

enum { KIB = 1024 };

static void amid_close(struct leat_conn *conn)
{
    net->close(conn);
}

static void amid_pause(struct leat_conn *conn)
{
    net->pause(conn);
}

/* ---- reading ---- */

/* Goal: bytes are shown as they come, all of them and once; bytes that are not consumed are shown again, with the bytes
 * that follow. */
static void rest_is_shown_with_what_follows(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    come(100);
    consumes = 30;
    here.called = false;
    readable(conn);
    assert_true(here.called); /* its turn has an end, then */
    kept_look(conn);
    come(40);
    consumes = 110;
    readable(conn);
    kept_look(conn);
    TRACE_IS("read 262144: 100\n"
             "a: shown 100\n"
             "kept 70 at 0 of 1024, wants 0\n"
             "read 262144: 40\n"
             "a: shown 110\n"
             "kept 0 at 0 of 0, wants 0\n");
    alone_end();
}

/* Goal: a handler that wants more bytes is not called before they are there; the room for kept bytes grows with the
 * bytes that have come. */
static void nobody_is_called_before_there_is_enough(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    wants = 10000;
    come(1000);
    readable(conn);
    kept_look(conn); /* eight times as much, rounded up */
    come(4000);
    readable(conn);
    kept_look(conn);
    come(4999);
    readable(conn);
    kept_look(conn);
    consumes = 10000;
    wants = 0;
    come(1);
    readable(conn);
    kept_look(conn);
    consumes = 0;
    wants = 1500;
    come(1000);
    readable(conn);
    kept_look(conn); /* no more than is wanted */
    consumes = SIZE_MAX;
    wants = 0;
    come(500);
    readable(conn);
    consumes = 0;
    wants = 3;
    come(1); /* a byte is enough to be kept, and to be shown with the next */
    readable(conn);
    kept_look(conn);
    come(1);
    readable(conn);
    kept_look(conn);
    consumes = SIZE_MAX;
    wants = 0;
    come(1);
    readable(conn);
    TRACE_IS("read 262144: 1000\n"
             "a: shown 1000\n"
             "kept 1000 at 0 of 8192, wants 10000\n"
             "read 262144: 4000\n"
             "kept 5000 at 0 of 16384, wants 10000\n"
             "read 262144: 4999\n"
             "kept 9999 at 0 of 16384, wants 10000\n"
             "read 262144: 1\n"
             "a: shown 10000\n"
             "kept 0 at 0 of 0, wants 0\n"
             "read 262144: 1000\n"
             "a: shown 1000\n"
             "kept 1000 at 0 of 2048, wants 1500\n"
             "read 262144: 500\n"
             "a: shown 1500\n"
             "read 262144: 1\n"
             "a: shown 1\n"
             "kept 1 at 0 of 1024, wants 3\n"
             "read 262144: 1\n"
             "kept 2 at 0 of 1024, wants 3\n"
             "read 262144: 1\n"
             "a: shown 3\n");
    alone_end();
}

/* Goal: the room in front of what is kept serves again before more is taken. */
static void kept_bytes_move_to_the_front_of_their_room(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    come(3 * KIB);
    readable(conn);
    consumes = 2 * KIB + 512;
    come(1 * KIB);
    readable(conn);
    kept_look(conn);
    consumes = 0;
    wants = 8 * KIB;
    come(100);
    readable(conn);
    kept_look(conn);
    consumes = 1000;
    wants = 0;
    come(8 * KIB - 1636);
    readable(conn);
    kept_look(conn);
    come(900);
    wants = 8 * KIB;
    consumes = 100;
    readable(conn);
    kept_look(conn);
    TRACE_IS("read 262144: 3072\n"
             "a: shown 3072\n"
             "read 262144: 1024\n"
             "a: shown 4096\n"
             "kept 1536 at 0 of 2048, wants 0\n"
             "read 262144: 100\n"
             "a: shown 1636\n"
             "kept 1636 at 0 of 8192, wants 8192\n"
             "read 262144: 6556\n"
             "a: shown 8192\n"
             "kept 7192 at 0 of 8192, wants 0\n"
             "read 262144: 900\n"
             "a: shown 8092\n"
             "kept 7992 at 0 of 8192, wants 8192\n");
    alone_end();
}

/* Goal: a connection has four reads at a time, and goes on as long as each fills the buffer. */
static void reads_end_after_four_and_where_nothing_is_left(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    come(5 * LEAT_NET_READ_BYTES + 10);
    readable(conn);
    trace("and then\n");
    readable(conn);
    TRACE_IS("read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: 262144\n"
             "a: shown 262144\n"
             "and then\n"
             "read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: 10\n"
             "a: shown 10\n");
    come(-EINTR);
    come(7);
    readable(conn);
    come(LEAT_NET_READ_BYTES);
    come(-EAGAIN);
    readable(conn);
    TRACE_IS("read 262144: -4\n"
             "read 262144: 7\n"
             "a: shown 7\n"
             "read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: -11\n");
    come(LEAT_NET_READ_BYTES);
    come(-EINTR);
    come(0); /* errno is what it was before */
    readable(conn);
    deliver();
    TRACE_IS("read 262144: 262144\n"
             "a: shown 262144\n"
             "read 262144: -4\n"
             "read 262144: 0\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: an error of the socket ends the connection, and a handler that ends it, or holds it up, is shown no more. */
static void nothing_is_read_after_an_end(void **state)
{
    (void)state;
    static void (*const ways[])(struct leat_conn * conn) = {amid_close, amid_pause};
    for (unsigned i = 0; i < 2; i++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        amid = ways[i];
        consumes = 10;
        come(2 * LEAT_NET_READ_BYTES);
        readable(conn);
        kept_look(conn);
        deliver();
        amid = NULL;
        if (i == 1) net->resume(conn);
        deliver();
        if (i == 0)
            TRACE_IS("read 262144: 262144\n"
                     "a: shown 262144\n"
                     "poll nothing\n"
                     "kept 0 at 0 of 0, wants 0\n"
                     "poll nothing\n"
                     "unwatch\n"
                     "a: closed, OK\n"
                     "close 5\n"
                     "called\n"
                     "nothing to call\n");
        else
            TRACE_IS("read 262144: 262144\n"
                     "a: shown 262144\n"
                     "poll end\n"
                     "kept 262134 at 0 of 262144, wants 0\n"
                     "nothing to call\n"
                     "poll read\n"
                     "a: shown 262134\n"
                     "called\n");
        alone_end();
    }
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    come(-ECONNRESET);
    trace_begin();
    readable(conn);
    deliver();
    TRACE_IS("read 262144: -104\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    alone_end();
}

enum { FRAME = 600 * KIB };

/* Of a large frame all has come but its last KiB; then that, and so much more. */
static struct leat_conn *large_frame(size_t more, size_t used, size_t then)
{
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    wants = FRAME;
    quiet = true;
    come(LEAT_NET_READ_BYTES);
    readable(conn);
    come(FRAME - LEAT_NET_READ_BYTES - KIB);
    readable(conn);
    quiet = false;
    kept_look(conn);
    consumes = used;
    wants = then;
    come((long)(KIB + more));
    return conn;
}

/* Goal: a large frame's rest is read behind what is kept of it, and what follows the frame in the same call is shown by
 * itself. */
static void rest_of_a_large_frame_is_read_behind_it(void **state)
{
    (void)state;
    struct leat_conn *conn = large_frame(0, FRAME, 0);
    readable(conn);
    kept_look(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1024\n"
             "a: shown 614400\n"
             "kept 0 at 0 of 0, wants 0\n");
    alone_end();
    conn = large_frame(100, FRAME, 0);
    readable(conn);
    kept_look(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "a: shown 100\n"
             "kept 0 at 0 of 0, wants 0\n");
    alone_end();
    conn = large_frame(100, FRAME, 100); /* just as much as is wanted */
    readable(conn);
    kept_look(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "a: shown 100\n"
             "kept 0 at 0 of 0, wants 100\n");
    alone_end();
    conn = large_frame(100, FRAME, 101); /* more comes later */
    readable(conn);
    kept_look(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "kept 100 at 0 of 1024, wants 101\n"
             "nothing to call\n");
    alone_end();
}

/* Goal: where the frame is not taken whole, what follows it is kept with it, and the handler is asked again. */
static void what_follows_a_frame_that_is_not_taken_is_kept(void **state)
{
    (void)state;
    struct leat_conn *conn = large_frame(100, FRAME - 50, 0);
    readable(conn);
    kept_look(conn);
    consumes = 150;
    deliver();
    kept_look(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "kept 150 at 614350 of 1048576, wants 0\n"
             "a: shown 150\n"
             "called\n"
             "kept 0 at 0 of 0, wants 0\n"
             "nothing to call\n");
    alone_end();
    conn = large_frame(100, FRAME - 50, 151);
    readable(conn);
    deliver(); /* nobody wants that */
    kept_look(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "nothing to call\n"
             "kept 150 at 614350 of 1048576, wants 151\n");
    alone_end();
    conn = large_frame(100, FRAME - 50, 150);
    readable(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "a: shown 150\n"
             "called\n");
    alone_end();
    conn = large_frame(100, FRAME, 0);
    amid = amid_pause;
    readable(conn);
    kept_look(conn);
    deliver();
    amid = NULL;
    net->resume(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "poll end\n"
             "kept 100 at 0 of 1024, wants 0\n"
             "nothing to call\n"
             "poll read\n"
             "a: shown 100\n"
             "called\n");
    alone_end();
    conn = large_frame(100, FRAME, 0);
    amid = amid_close;
    readable(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1124\n"
             "a: shown 614400\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, OK\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: after the frame reads go on as long as they fill their room. */
static void more_is_read_after_a_large_frame(void **state)
{
    (void)state;
    struct leat_conn *conn = large_frame(LEAT_NET_READ_BYTES + 10, SIZE_MAX, 0);
    readable(conn);
    kept_look(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 263168\n"
             "a: shown 614400\n"
             "a: shown 262144\n"
             "read 262144: 10\n"
             "a: shown 10\n"
             "kept 0 at 0 of 0, wants 0\n");
    alone_end();
    conn = large_frame(0, FRAME, 0);
    read_count--;
    come(KIB - 1);
    come(-EINTR);
    come(1);
    readable(conn);
    readable(conn);
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 1023\n"
             "read 1+262144: -4\n"
             "read 1+262144: 1\n"
             "a: shown 614400\n");
    alone_end();
    conn = large_frame(0, FRAME, 0);
    read_count--;
    come(0);
    readable(conn);
    deliver();
    TRACE_IS("a: shown 262144\n"
             "kept 613376 at 0 of 1048576, wants 614400\n"
             "read 1024+262144: 0\n"
             "poll nothing\n"
             "poll nothing\n"
             "unwatch\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n");
    alone_end();
}

/* Goal: few kept bytes are put in front of new bytes; more kept bytes stay where they are. */
static void where_new_bytes_go_depends_on_what_is_kept(void **state)
{
    (void)state;
    static const size_t keeps[] = {LEAT_NET_FRONT_BYTES, LEAT_NET_FRONT_BYTES + 1};
    for (unsigned i = 0; i < 4; i++) {
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        consumes = 0;
        if (i >= 2) wants = 5000 + LEAT_NET_READ_BYTES + i - 2;
        come(i < 2 ? (long)keeps[i] : 5000);
        readable(conn);
        consumes = 0;
        wants = 0;
        come(i < 2 ? 1000 : LEAT_NET_READ_BYTES + 1);
        readable(conn);
        kept_look(conn);
        trace("\n");
        alone_end();
    }
    TRACE_IS("read 262144: 16384\n"
             "a: shown 16384\n"
             "read 262144: 1000\n"
             "a: shown 17384\n"
             "kept 17384 at 0 of 32768, wants 0\n"
             "\n"
             "read 262144: 16385\n"
             "a: shown 16385\n"
             "read 262144: 1000\n"
             "a: shown 17385\n"
             "kept 17385 at 0 of 524288, wants 0\n"
             "\n"
             "read 262144: 5000\n"
             "a: shown 5000\n"
             "read 262144: 262144\n"
             "a: shown 267144\n"
             "read 262144: 1\n"
             "a: shown 267145\n"
             "kept 267145 at 0 of 1048576, wants 0\n"
             "\n"
             "read 262144: 5000\n"
             "a: shown 5000\n"
             "read 60536: 60536\n"
             "kept 65536 at 0 of 65536, wants 267145\n"
             "\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(rest_is_shown_with_what_follows),
        TRACE_TEST(nobody_is_called_before_there_is_enough),
        TRACE_TEST(kept_bytes_move_to_the_front_of_their_room),
        TRACE_TEST(reads_end_after_four_and_where_nothing_is_left),
        TRACE_TEST(nothing_is_read_after_an_end),
        TRACE_TEST(rest_of_a_large_frame_is_read_behind_it),
        TRACE_TEST(what_follows_a_frame_that_is_not_taken_is_kept),
        TRACE_TEST(more_is_read_after_a_large_frame),
        TRACE_TEST(where_new_bytes_go_depends_on_what_is_kept),
    };
    return cmocka_run_group_tests_name("os-net-bytes", tests, NULL, NULL);
}
