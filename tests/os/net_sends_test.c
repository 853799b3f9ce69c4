/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that go out: in which order, how many of them the socket takes, and what senders are told. */
#include "tests/os/net_alone.h"

static struct leat_iov pieces[3][LEAT_SEND_IOVS_MAX];
static struct leat_send sends[3];

static void on_sent(struct leat_send *send, leat_err rc)
{
    trace("%s: %s\n", (const char *)send->owner, leat_err_name(rc));
}

/* Up to four pieces, in the words of one string: "ab|c|def". */
static struct leat_send *send_of(unsigned number, const char *words)
{
    static char texts[3][64];
    struct leat_send *send = &sends[number];
    snprintf(texts[number], sizeof texts[number], "%s", words);
    *send = (struct leat_send){.iovs = pieces[number], .on_sent = on_sent, .owner = texts[number]};
    for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        pieces[number][send->iov_count++] = (struct leat_iov){at, strcspn(at, "|")};
    return send;
}

/* Fill the stack, so that a function finds these bytes in memory that it has not written to. */
static void stack_dirty(void)
{
    volatile uint8_t dirt[32 * 1024];
    for (size_t i = 0; i < sizeof dirt; i++)
        dirt[i] = 0xff;
}

static void flush(struct leat_conn *conn)
{
    stack_dirty();
    leat_os_net_flush(&here);
    trace("'%.*s'\n", (int)sent_bytes, sent);
    sent_bytes = 0;
    queue_look(conn);
    for (unsigned i = 0; i < 3; i++)
        trace("%zu%s", net->unsent_bytes(conn, &sends[i]), i < 2 ? " " : " unsent\n");
}

static void parts_leave_later(struct leat_conn *conn)
{
    take(-EINTR);
    take(3);
    event(conn, 0, UV_WRITABLE);
    flush(conn);
    take(-EAGAIN);
    event(conn, 0, UV_WRITABLE);
    flush(conn);
    deliver();
    TRACE_IS("write 6 in 3: -4\n"
             "write 6 in 3: 3\n"
             "'Hij'\n"
             "queued 3, taken 10, copies 2 in 16384 of 16384\n"
             "0 1 0 unsent\n"
             "write 3 in 2: -11\n"
             "''\n"
             "queued 3, taken 10, copies 2 in 16384 of 16384\n"
             "0 1 0 unsent\n"
             "nothing to call\n");
    event(conn, 0, UV_WRITABLE);
    flush(conn);
    deliver();
    deliver();
    TRACE_IS("write 3 in 2: 3\n"
             "poll read\n"
             "'kLM'\n"
             "queued 0, taken 13, copies 0 in 0 of 0\n"
             "0 0 0 unsent\n"
             "ijk: OK\n"
             ": OK\n"
             "called\n"
             "nothing to call\n");
    errno = EINTR;                   /* of another call */
    net->send(conn, send_of(2, "")); /* by itself: it needs no write */
    flush(conn);
    deliver();
    errno = EPIPE;
    net->send(conn, send_of(2, ""));
    flush(conn);
    deliver();
    TRACE_IS("''\n"
             "queued 0, taken 13, copies 0 in 0 of 0\n"
             "0 0 0 unsent\n"
             ": OK\n"
             "called\n"
             "''\n"
             "queued 0, taken 13, copies 0 in 0 of 0\n"
             "0 0 0 unsent\n"
             ": OK\n"
             "called\n");
}

/* Goal: sends and copies leave in the order in which they were given; the socket may take any part of them, and each
 * send is told once when it has left. */
static void parts_leave_in_order(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->send(conn, send_of(0, "ab||cde"));
    assert_int_equal(net->send_copy(conn, "FG", 2), LEAT_OK);
    assert_int_equal(net->send_copy(conn, "H", 1), LEAT_OK);
    net->send(conn, send_of(1, "ijk"));
    net->send(conn, send_of(2, ""));
    assert_int_equal(net->send_copy(conn, "LM", 2), LEAT_OK);
    queue_look(conn);
    take(1);
    flush(conn);
    assert_true(conn->blocked);
    TRACE_IS("queued 13, taken 0, copies 5 in 17408 of 17408\n"
             "write 13 in 5: 1\n"
             "poll read write\n"
             "'a'\n"
             "queued 12, taken 1, copies 5 in 17408 of 17408\n"
             "4 3 0 unsent\n");
    flush(conn); /* nothing before the socket says that it takes more */
    deliver();
    TRACE_IS("''\n"
             "queued 12, taken 1, copies 5 in 17408 of 17408\n"
             "4 3 0 unsent\n"
             "nothing to call\n");
    take(1);
    event(conn, 0, UV_WRITABLE);
    flush(conn);
    take(5);
    event(conn, 0, UV_WRITABLE);
    flush(conn);
    deliver();
    TRACE_IS("write 12 in 5: 1\n"
             "'b'\n"
             "queued 11, taken 2, copies 5 in 17408 of 17408\n"
             "3 3 0 unsent\n"
             "write 11 in 4: 5\n"
             "'cdeFG'\n"
             "queued 6, taken 7, copies 5 in 17408 of 17408\n"
             "0 3 0 unsent\n"
             "ab||cde: OK\n"
             "called\n");
    parts_leave_later(conn);
    alone_end();
}

/* Goal: small copies share a buffer as long as nothing came between them, and it has room; there is a limit. */
static void copies_share_buffers(void **state)
{
    (void)state;
    static uint8_t large[LEAT_CONN_COPY_BYTES_MAX];
    alone_begin();
    quiet = true;
    struct leat_conn *conn = alone_conn("a", 1), *other = alone_conn("b", 1);
    net->send_copy(conn, large, 100);
    queue_look(conn);
    net->send_copy(conn, large,
                   1024 - sizeof(struct leat_send) - sizeof(struct leat_iov) - 8 - 100);
    queue_look(conn); /* full to the last byte */
    net->send_copy(conn, large, 1);
    queue_look(conn); /* then 16 KiB */
    net->send_copy(conn, large, 16000);
    queue_look(conn);
    net->send_copy(conn, large, 20000);
    queue_look(conn);
    net->send_copy(other, large, 1);
    queue_look(other);
    trace("near %zu\n", net->copied_bytes_near(conn));
    net->send_copy(other, large, 1000); /* a second buffer has 16 KiB also after one byte */
    queue_look(other);
    TRACE_IS("queued 100, taken 0, copies 100 in 1024 of 1024\n"
             "queued 952, taken 0, copies 952 in 1024 of 1024\n"
             "queued 953, taken 0, copies 953 in 17408 of 17408\n"
             "queued 16953, taken 0, copies 16953 in 17408 of 17408\n"
             "queued 36953, taken 0, copies 36953 in 50176 of 50176\n"
             "queued 1, taken 0, copies 1 in 1024 of 51200\n"
             "near 51200\n"
             "queued 1001, taken 0, copies 1001 in 17408 of 67584\n");
    leat_os_net_flush(&here);
    queue_look(conn);
    trace("near %zu\n", net->copied_bytes_near(conn));
    conn->blocked = true;
    assert_int_equal(net->send_copy(conn, large, LEAT_CONN_COPY_BYTES_MAX - 10), LEAT_OK);
    assert_int_equal(net->send_copy(conn, large, 11), LEAT_E_AGAIN);
    assert_int_equal(net->send_copy(conn, large, 10), LEAT_OK);
    assert_int_equal(net->send_copy(conn, large, 1), LEAT_E_AGAIN);
    queue_look(conn);
    leat_mem_fail_at(1);
    assert_int_equal(net->send_copy(other, large, 1), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    queue_look(other);
    TRACE_IS("queued 0, taken 36953, copies 0 in 0 of 0\n"
             "near 0\n"
             "queued 4194304, taken 36953, copies 4194304 in 8388608 of 8388608\n"
             "queued 0, taken 1001, copies 0 in 0 of 8388608\n");
    alone_end();
}

/* Goal: a connection that ends tells each send that it has not left, and takes no more. */
static void sends_of_a_connection_that_ends_are_told(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->send(conn, send_of(0, "abc"));
    net->send_copy(conn, "DE", 2);
    net->send(conn, send_of(1, "fgh"));
    take(4);
    flush(conn);
    take(-EPIPE);
    event(conn, 0, UV_WRITABLE);
    assert_int_equal(net->send_copy(conn, "I", 1), LEAT_E_CLOSED);
    net->send(conn, send_of(2, "jkl"));
    queue_look(conn);
    TRACE_IS("write 8 in 3: 4\n"
             "poll read write\n"
             "'abcD'\n"
             "queued 4, taken 4, copies 2 in 1024 of 1024\n"
             "0 3 0 unsent\n"
             "write 4 in 2: -32\n"
             "poll nothing\n"
             "queued 4, taken 4, copies 2 in 1024 of 1024\n");
    deliver();
    deliver();
    assert_int_equal(here.net.copy_capacity, 0);
    TRACE_IS("abc: OK\n"
             "jkl: CLOSED\n"
             "poll nothing\n"
             "unwatch\n"
             "fgh: CLOSED\n"
             "a: closed, CLOSED\n"
             "close 5\n"
             "called\n"
             "nothing to call\n");
    conn = alone_conn("b", 1);
    net->send(conn, send_of(0, "last"));
    net->send(conn, send_of(1, "words"));
    net->close(conn);
    take(6);
    flush(conn);
    leat_list_push_back(&here.net.dirty, &conn->dirty);
    flush(conn); /* the socket takes no more: nothing is tried again */
    deliver();
    TRACE_IS("poll nothing\n"
             "write 9 in 2: 6\n"
             "'lastwo'\n"
             "queued 3, taken 6, copies 0 in 0 of 0\n"
             "0 3 0 unsent\n"
             "''\n"
             "queued 3, taken 6, copies 0 in 0 of 0\n"
             "0 3 0 unsent\n"
             "last: OK\n"
             "poll nothing\n"
             "unwatch\n"
             "words: CLOSED\n"
             "b: closed, OK\n"
             "close 5\n"
             "called\n");
    alone_end();
}

static struct leat_conn *partly_gone(size_t gone)
{
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->send(conn, send_of(0, "0"));
    net->send(conn, send_of(1, "abc||de|fgh"));
    if (gone % 2) net->send(conn, send_of(2, "z"));
    take((long)(1 + gone));
    flush(conn);
    trace_begin();
    return conn;
}

/* Goal: the memory that a send borrows can be had back at any time: the bytes that have not left go on from
 * elsewhere. */
static void replaced_send_goes_on_from_elsewhere(void **state)
{
    (void)state;
    for (size_t gone = 0; gone < 8; gone++) {
        static char place[16], by_name[] = "by";
        struct leat_iov iov = {place, 8 - gone};
        struct leat_send by = {
            .iovs = &iov, .iov_count = 1, .on_sent = on_sent, .owner = by_name, .sent_bytes = 7};
        struct leat_conn *conn = partly_gone(gone);
        memset(place, '.', sizeof place);
        pieces[1][sends[1].iov_count] = (struct leat_iov){"what follows is none of it", 26};
        net->replace(conn, &sends[1], &by);
        pieces[1][0].base = pieces[1][2].base = pieces[1][3].base = "xxx"; /* the caller's again */
        trace("%zu: %zu left, '%.9s'\n", gone, net->unsent_bytes(conn, &by), place);
        if (gone % 2 == 0) net->send(conn, send_of(2, "z"));
        take(2);
        event(conn, 0, UV_WRITABLE);
        event(conn, 0, UV_WRITABLE);
        flush(conn);
        deliver();
        alone_end();
        if (gone == 0)
            TRACE_IS("0: 8 left, 'abcdefgh.'\n"
                     "write 9 in 2: 2\n"
                     "write 7 in 2: 7\n"
                     "poll read\n"
                     "'abcdefghz'\n"
                     "queued 0, taken 10, copies 0 in 0 of 0\n"
                     "0 0 0 unsent\n"
                     "0: OK\n"
                     "by: OK\n"
                     "z: OK\n"
                     "called\n");
        else if (gone == 3)
            TRACE_IS("3: 5 left, 'defgh....'\n"
                     "write 6 in 2: 2\n"
                     "write 4 in 2: 4\n"
                     "poll read\n"
                     "'defghz'\n"
                     "queued 0, taken 10, copies 0 in 0 of 0\n"
                     "0 0 0 unsent\n"
                     "0: OK\n"
                     "by: OK\n"
                     "z: OK\n"
                     "called\n");
        else if (gone == 5)
            TRACE_IS("5: 3 left, 'fgh......'\n"
                     "write 4 in 2: 2\n"
                     "write 2 in 2: 2\n"
                     "poll read\n"
                     "'fghz'\n"
                     "queued 0, taken 10, copies 0 in 0 of 0\n"
                     "0 0 0 unsent\n"
                     "0: OK\n"
                     "by: OK\n"
                     "z: OK\n"
                     "called\n");
        else if (gone == 7)
            TRACE_IS("7: 1 left, 'h........'\n"
                     "write 2 in 2: 2\n"
                     "poll read\n"
                     "'hz'\n"
                     "queued 0, taken 10, copies 0 in 0 of 0\n"
                     "0 0 0 unsent\n"
                     "0: OK\n"
                     "by: OK\n"
                     "z: OK\n"
                     "called\n");
        else
            assert_non_null(strstr(trace_text, "by: OK\nz: OK\n"));
        trace_begin();
    }
}

/* Goal: a write has 1,024 pieces at most, and a connection four writes in a turn; the rest when the socket says so. */
static void large_queue_leaves_in_several_turns(void **state)
{
    (void)state;
    enum { SENDS = 20, EACH = 256 };
    static struct leat_iov iovs[SENDS][EACH];
    static struct leat_send many[SENDS];
    static char many_name[] = "many";
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    for (unsigned i = 0; i < SENDS; i++) {
        for (unsigned k = 0; k < EACH; k++)
            iovs[i][k] = (struct leat_iov){"x", 1};
        many[i] = (struct leat_send){
            .iovs = iovs[i], .iov_count = EACH, .on_sent = on_sent, .owner = many_name};
        net->send(conn, &many[i]);
    }
    leat_os_net_flush(&here);
    TRACE_IS("write 1024 in 1024: 1024\n"
             "write 1024 in 1024: 1024\n"
             "write 1024 in 1024: 1024\n"
             "write 1024 in 1024: 1024\n"
             "poll read write\n");
    assert_true(conn->blocked);
    event(conn, 0, UV_WRITABLE);
    queue_look(conn);
    TRACE_IS("write 1024 in 1024: 1024\n"
             "poll read\n"
             "queued 0, taken 5120, copies 0 in 0 of 0\n");
    alone_end();
}

/* Goal: a send behind other sends is replaced too, and keeps its place. */
static void replaced_send_keeps_its_place(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        static char place[16], by_name[] = "by";
        struct leat_iov iov = {place, 3};
        struct leat_send by = {
            .iovs = &iov, .iov_count = 1, .on_sent = on_sent, .owner = by_name, .sent_bytes = 7};
        alone_begin();
        struct leat_conn *conn = alone_conn("a", 1);
        net->send(conn, send_of(0, "0"));
        net->send(conn, send_of(1, "abc"));
        if (way) net->send(conn, send_of(2, "z"));
        net->replace(conn, &sends[1], &by);
        if (!way) net->send(conn, send_of(2, "z"));
        flush(conn);
        deliver();
        alone_end();
        TRACE_IS("write 5 in 3: 5\n"
                 "'0abcz'\n"
                 "queued 0, taken 5, copies 0 in 0 of 0\n"
                 "0 0 0 unsent\n"
                 "0: OK\n"
                 "by: OK\n"
                 "z: OK\n"
                 "called\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(parts_leave_in_order),
        TRACE_TEST(copies_share_buffers),
        TRACE_TEST(sends_of_a_connection_that_ends_are_told),
        TRACE_TEST(replaced_send_goes_on_from_elsewhere),
        TRACE_TEST(replaced_send_keeps_its_place),
        TRACE_TEST(large_queue_leaves_in_several_turns),
    };
    return cmocka_run_group_tests_name("os-net-sends", tests, NULL, NULL);
}
