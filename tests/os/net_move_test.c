/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that move to another actor: with the bytes that they keep, or to their end. */
#include "tests/os/net_alone.h"

enum { KIB = 1024 };

static struct leat_conn *moved_to;
static bool refuses;

static void *on_moved(void *actor, struct leat_conn *conn, void *baggage,
                      const struct leat_conn_handler **out_handler)
{
    trace("moved for %s with %s\n", (const char *)actor, (const char *)baggage);
    moved_to = conn;
    *out_handler = &alone_handler;
    if (refuses) assert_int_equal(net->send_copy(conn, "no", 2), LEAT_OK); /* its last words */
    return refuses ? NULL : baggage;
}

static char there_name[] = "there", baggage_name[] = "bag";

static void amid_move(struct leat_conn *conn)
{
    net->move(conn, THERE, on_moved, baggage_name);
}

static void arrive(void)
{
    struct leat_mail *mail = mails[--mail_count];
    mail->deliver(there_name, mail);
}

static void there_deliver(void)
{
    trace(leat_os_net_deliver(&there) ? "called there\n" : "nothing to call there\n");
}

/* Goal: a connection moves with the bytes that it keeps; its old loop and its old handler hear nothing more of it. */
static void connection_moves_with_its_bytes(void **state)
{
    (void)state;
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 4;
    wants = 50;
    amid = amid_move;
    conn->blocked = true;
    come(2 * LEAT_NET_READ_BYTES);
    readable(conn);
    amid = NULL;
    assert_true(leat_os_net_stopped(&here));
    assert_true(!conn->moving && !conn->paused && !conn->blocked && !conn->handler);
    assert_int_equal(here.net.intake.accounts[LEAT_NET_CLIENTS].bytes, 0);
    trace("there %d\n", leat_os_net_stopped(&there));
    TRACE_IS("read 262144: 262144\n"
             "a: shown 262144\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "there 1\n");
    now_ms += 70;
    arrive();
    assert_ptr_equal(conn->actor, &there);
    assert_int_equal(conn->intake.heard_ms, now_ms);
    assert_non_null(conn->intake.address);
    assert_non_null(there.net.read_buffer);
    kept_look(conn);
    assert_int_equal(there.net.intake.accounts[LEAT_NET_CLIENTS].bytes, conn->kept_capacity);
    consumes = SIZE_MAX;
    there_deliver();
    there_deliver();
    TRACE_IS("moved for there with bag\n"
             "watch 5 there\n"
             "poll read\n"
             "kept 262140 at 0 of 262144, wants 0\n"
             "bag: shown 262140\n"
             "called there\n"
             "nothing to call there\n");
    alone_end();
}

static void leave_amid_a_pause(unsigned way)
{
    alone_begin();
    struct leat_conn *conn = alone_conn("a", 1);
    net->pause(conn);
    net->move(conn, THERE, on_moved, baggage_name);
    assert_false(conn->paused);
    trace("way %u\n", way);
}

/* Goal: a connection moves at once between events; where it keeps no bytes nothing is shown on its arrival. A
 * connection that is not taken ends without a word, and so does a connection whose message is never read. */
static void connection_moves_between_events(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 6; way++) {
        leave_amid_a_pause(way);
        refuses = way == 1;
        if (way == 2) there.stopping = true;
        if (way == 3)
            leat_mem_fail_at(2); /* its address has a place there, but there is no buffer */
        if (way == 4) poll_init_rc = UV_ENOMEM;
        if (way == 5) {
            struct leat_mail other = {.deliver = NULL};
            leat_os_net_drop_mail(&other);
            leat_os_net_drop_mail(mails[--mail_count]);
            assert_true(leat_os_net_stopped(&there));
        } else {
            arrive();
            leat_mem_fail_at(0);
            assert_true(there.net.copy_capacity == 0 && !here.net.copy_capacity);
            if (way == 0) assert_false(leat_os_net_waiting(&there));
            there_deliver();
            trace("%s\n", leat_os_net_stopped(&there) ? "gone" : "there");
        }
        alone_end();
    }
    TRACE_IS("poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 0\n"
             "moved for there with bag\n"
             "watch 5 there\n"
             "poll read\n"
             "nothing to call there\n"
             "there\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 1\n"
             "moved for there with bag\n"
             "close 5\n"
             "nothing to call there\n"
             "gone\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 2\n"
             "moved for there with bag\n"
             "bag: closed, CANCELLED\n"
             "close 5\n"
             "called there\n"
             "gone\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 3\n"
             "moved for there with bag\n"
             "bag: closed, NO_MEMORY\n"
             "close 5\n"
             "called there\n"
             "gone\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 4\n"
             "moved for there with bag\n"
             "watch 5 there\n"
             "bag: closed, CLOSED\n"
             "close 5\n"
             "called there\n"
             "gone\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "way 5\n"
             "close 5\n");
}

static struct leat_conn *part_of_a_frame(uint8_t address)
{
    struct leat_conn *conn = alone_conn("a", address);
    consumes = 0;
    wants = 200 * KIB;
    bytes_come(conn, 20 * KIB);
    net->move(conn, THERE, on_moved, baggage_name);
    return conn;
}

/* Goal: a connection that arrives with more bytes than there is room for ends there, and so does a connection whose
 * bytes can't be kept while it moves. */
static void connection_for_which_there_is_no_room_ends_there(void **state)
{
    (void)state;
    alone_begin();
    refuses = false;
    quiet = true;
    net->limit(&there, LEAT_NET_CLIENTS, 200 * KIB);
    part_of_a_frame(1);
    arrive(); /* 160 KiB, rounded up */
    trace("%s\n", moved_to->state == OS_CONN_OPEN ? "stays" : "ends");
    part_of_a_frame(2);
    arrive();
    trace("%s\n", moved_to->state == OS_CONN_OPEN ? "stays" : "ends");
    TRACE_IS("a: shown 20480\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "moved for there with bag\n"
             "watch 5 there\n"
             "poll read\n"
             "stays\n"
             "a: shown 20480\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "moved for there with bag\n"
             "ends\n");
    shown_at = 0;
    there_deliver();
    TRACE_IS("bag: shown 20480\n"
             "bag: closed, TOO_MANY\n"
             "close 5\n"
             "called there\n");
    struct leat_conn *conn = alone_conn("b", 3);
    amid = amid_move;
    wants = 0;
    leat_mem_fail_at(1);
    bytes_come(conn, 10);
    leat_mem_fail_at(0);
    amid = NULL;
    arrive();
    there_deliver();
    TRACE_IS("b: shown 10\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "moved for there with bag\n"
             "bag: closed, NO_MEMORY\n"
             "close 5\n"
             "called there\n");
    alone_end();
}

/* Goal: what was to be shown again here is shown there; what follows a large frame goes along. */
static void what_is_to_be_shown_moves(void **state)
{
    (void)state;
    alone_begin();
    refuses = false;
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    bytes_come(conn, 9);
    net->pause(conn);
    net->resume(conn);
    net->move(conn, THERE, on_moved, baggage_name);
    assert_false(leat_os_net_waiting(&here));
    arrive();
    there_deliver();
    TRACE_IS("read 262144: 9\n"
             "a: shown 9\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "moved for there with bag\n"
             "watch 5 there\n"
             "poll read\n"
             "bag: shown 9\n"
             "called there\n");
    alone_end();
    alone_begin();
    quiet = true;
    conn = alone_conn("a", 1);
    consumes = 0;
    wants = 400 * KIB;
    bytes_come(conn, LEAT_NET_READ_BYTES);
    consumes = 400 * KIB;
    wants = 0;
    amid = amid_move;
    come(400 * KIB - LEAT_NET_READ_BYTES + 100);
    readable(conn);
    amid = NULL;
    arrive();
    there_deliver();
    TRACE_IS("a: shown 262144\n"
             "a: shown 409600\n"
             "poll nothing\n"
             "unwatch\n"
             "mail to 2\n"
             "moved for there with bag\n"
             "watch 5 there\n"
             "poll read\n"
             "bag: shown 100\n"
             "called there\n");
    alone_end();
}

/* Goal: a byte is enough to be shown where it arrives. */
static void single_byte_moves(void **state)
{
    (void)state;
    alone_begin();
    refuses = false;
    struct leat_conn *conn = alone_conn("a", 1);
    consumes = 0;
    bytes_come(conn, 1);
    net->move(conn, THERE, on_moved, baggage_name);
    arrive();
    trace_begin();
    there_deliver();
    TRACE_IS("bag: shown 1\n"
             "called there\n");
    alone_end();
}

/* Goal: a moved connection that never arrives holds nothing at its destination. */
static void connection_that_never_arrives_holds_nothing(void **state)
{
    (void)state;
    alone_begin();
    part_of_a_frame(1);
    leat_os_net_drop_mail(mails[--mail_count]);
    assert_int_equal(there.net.intake.accounts[LEAT_NET_CLIENTS].bytes, 0);
    assert_true(leat_os_net_stopped(&there));
    trace_begin();
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(connection_moves_with_its_bytes),
        TRACE_TEST(connection_moves_between_events),
        TRACE_TEST(what_is_to_be_shown_moves),
        TRACE_TEST(single_byte_moves),
        TRACE_TEST(connection_that_never_arrives_holds_nothing),
        TRACE_TEST(connection_for_which_there_is_no_room_ends_there),
    };
    return cmocka_run_group_tests_name("os-net-move", tests, NULL, NULL);
}
