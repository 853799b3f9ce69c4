/* SPDX-License-Identifier: Apache-2.0 */
/* Port suite: net, how connections end: closed while sends are under way, by the other side while nobody reads,
 * refused; and a reader that pauses for long. */
#include "tests/os/port_net_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- closing while sends are under way ---- */
enum { CLOSE_SENDS = 200, CLOSE_BYTES = 256 * 1024 };
struct close_out {
    struct leat_send sends[CLOSE_SENDS];
    struct leat_iov iov;
    unsigned ended, failed;
};
static struct close_out close_out;

static void close_sent(struct leat_send *send, leat_err rc)
{
    struct net_test *test = send->owner;
    PORT_CHECK(!test->writer.in_call && !test->writer.closed);
    PORT_CHECK(rc == LEAT_OK || rc == LEAT_E_CLOSED);
    PORT_CHECK(send == &close_out.sends[close_out.ended]);
    PORT_CHECK(rc != LEAT_OK || close_out.failed == 0); /* a failed one is followed by none */
    close_out.ended++;
    close_out.failed += rc != LEAT_OK;
}
static void close_open(void *user, struct leat_conn *conn)
{
    struct net_side *side = user;
    struct net_test *test = side->test;
    side->in_call = true;
    close_out.iov = (struct leat_iov){test->body, CLOSE_BYTES};
    for (unsigned i = 0; i < CLOSE_SENDS; i++) {
        close_out.sends[i] = (struct leat_send){
            .iovs = &close_out.iov, .iov_count = 1, .on_sent = close_sent, .owner = test};
        side->env->net->send(conn, &close_out.sends[i]);
    }
    PORT_CHECK(side->env->net->queued_bytes(conn) == (size_t)CLOSE_SENDS * CLOSE_BYTES);
    side->env->net->close(conn);
    side->in_call = false;
}
static void close_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(why == LEAT_OK && !side->in_call);
    PORT_CHECK(close_out.ended == CLOSE_SENDS);
    side->closed = true;
}
static const struct leat_conn_handler close_handler = {close_open, net_no_bytes, close_closed};
static void connect_closer(struct net_test *test)
{
    struct net_side *side = &test->writer;
    PORT_CHECK(side->env->net->connect(side->env->net->ctx, test->address, &close_handler, side,
                                       &side->conn) == LEAT_OK);
}
static size_t swallow_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    ((struct net_side *)user)->test->received_bytes += bytes;
    return bytes;
}
static void swallow_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(why != LEAT_OK);
    side->why = why;
    side->test->rig->finish(side->test->rig->ctx);
}
static const struct leat_conn_handler swallow_handler = {NULL, swallow_bytes, swallow_closed};
static void *swallow_accept(void *acceptor, struct leat_conn *conn,
                            const struct leat_conn_handler **out_handler)
{
    ((struct net_side *)acceptor)->conn = conn;
    *out_handler = &swallow_handler;
    return acceptor;
}

static void net_close_while_sending_ends_each_send_once(void **state)
{
    const struct port_family *family = *state;
    memset(&close_out, 0, sizeof close_out);
    struct net_test *test = net_test_make(family, swallow_accept, connect_closer);
    test->rig->run(test->rig->ctx);
    assert_int_equal(close_out.ended, CLOSE_SENDS);
    assert_true(close_out.failed > 0);
    assert_true(test->writer.closed);
    net_test_drop(family, test);
}

/* ---- a reader that does not read: backpressure, then everything ---- */
static void slow_sent(struct leat_send *send, leat_err rc)
{
    struct net_test *test = send->owner;
    PORT_CHECK(rc == LEAT_OK);
    PORT_CHECK(send == &close_out.sends[close_out.ended]);
    if (++close_out.ended < CLOSE_SENDS) return;
    PORT_CHECK(test->went_on); /* not before the reader went on: 50 MB fit nowhere */
}
static void slow_open(void *user, struct leat_conn *conn)
{
    struct net_side *side = user;
    for (unsigned i = 0; i < CLOSE_SENDS; i++) {
        close_out.iov = (struct leat_iov){side->test->body, CLOSE_BYTES};
        close_out.sends[i] = (struct leat_send){
            .iovs = &close_out.iov, .iov_count = 1, .on_sent = slow_sent, .owner = side->test};
        side->env->net->send(conn, &close_out.sends[i]);
    }
    /* The other bound: copies are refused when too many wait. */
    unsigned copies = 0;
    leat_err rc;
    while (!(rc = side->env->net->send_copy(conn, side->test->body, 64 * 1024)))
        copies++;
    PORT_CHECK(rc == LEAT_E_AGAIN);
    PORT_CHECK(copies >= LEAT_CONN_COPY_BYTES_MAX / (64 * 1024) - 1);
    side->test->written = copies;
}
static void slow_closed(void *user, struct leat_conn *conn, leat_err why)
{
    PORT_CHECK(why != LEAT_OK);
    ((struct net_side *)user)->closed = true;
}
static const struct leat_conn_handler slow_handler = {slow_open, net_no_bytes, slow_closed};
static void connect_slow(struct net_test *test)
{
    struct net_side *side = &test->writer;
    PORT_CHECK(side->env->net->connect(side->env->net->ctx, test->address, &slow_handler, side,
                                       &side->conn) == LEAT_OK);
}
static size_t slow_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                         size_t *want_bytes)
{
    struct net_side *side = user;
    struct net_test *test = side->test;
    PORT_CHECK(side->opened);
    /* `data` lies in the repeated body: any wrong byte would show. */
    for (size_t done = 0; done < bytes;) {
        size_t at = (size_t)(test->received_bytes % CLOSE_BYTES);
        bool copies = test->received_bytes >= (uint64_t)CLOSE_SENDS * CLOSE_BYTES;
        size_t period = copies ? 64 * 1024 : CLOSE_BYTES;
        at %= period;
        size_t piece = period - at < bytes - done ? period - at : bytes - done;
        PORT_CHECK(memcmp(data + done, test->body + at, piece) == 0);
        done += piece;
        test->received_bytes += piece;
    }
    uint64_t all = (uint64_t)CLOSE_SENDS * CLOSE_BYTES + (uint64_t)test->written * 64 * 1024;
    if (test->received_bytes == all) test->rig->finish(test->rig->ctx);
    return bytes;
}
static const struct leat_conn_handler slow_reader_handler = {NULL, slow_bytes, slow_closed};
static void slow_go_on(void *actor)
{
    struct net_side *side = actor;
    if (!side->conn) return;
    side->opened = true;
    side->test->went_on = true;
    side->env->net->resume(side->conn);
}
static void *slow_accept(void *acceptor, struct leat_conn *conn,
                         const struct leat_conn_handler **out_handler)
{
    struct net_side *side = acceptor;
    side->conn = conn;
    side->env->net->pause(conn);
    const struct leat_clock *clock = side->env->clock;
    clock->wake_at(clock->ctx, clock->now_us(clock->ctx) + 100000);
    *out_handler = &slow_reader_handler;
    return side;
}

static void net_slow_reader_pushes_back_then_gets_all(void **state)
{
    static const struct leat_actor_ops slow_ops = {.on_wake = slow_go_on};
    const struct port_family *family = *state;
    memset(&close_out, 0, sizeof close_out);
    struct net_test *test = net_test_make(family, slow_accept, connect_slow);
    test->rig->attach(test->rig->ctx, PORT_RIGHT, &test->reader, &slow_ops, net_right_listen);
    test->rig->run(test->rig->ctx);
    assert_int_equal(close_out.ended, CLOSE_SENDS);
    net_test_drop(family, test);
}

/* ---- the other side closes while nobody reads ---- */
enum { ENDED_BYTES = 3000, ENDED_UNREAD = 1000, ENDED_STEP_US = 50000 };
/* What a test varies: bytes that lie unread before the end, and whether they are read in time. */
static struct ended_case {
    bool more, goes_on, more_sent;
} ended;
static _Atomic uint64_t ended_us; /* the writer closed */
static size_t ended_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                          size_t *want_bytes)
{
    struct net_side *side = user;
    side->test->received_bytes = bytes;
    *want_bytes = bytes < ENDED_BYTES ? ENDED_BYTES : bytes + 1;
    if (bytes == ENDED_BYTES) side->env->net->pause(conn); /* a part of a frame: kept by the port */
    return 0;
}
static void ended_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    const struct leat_clock *clock = side->env->clock;
    PORT_CHECK(why != LEAT_OK);
    PORT_CHECK(clock->now_us(clock->ctx) < atomic_load(&ended_us) + 2000 * 1000);
    side->conn = NULL;
    side->closed = true;
    side->test->rig->finish(side->test->rig->ctx);
}
static void ended_go_on(void *actor)
{
    struct net_side *side = actor;
    if (side->conn) side->env->net->resume(side->conn);
}
static void ended_write_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    side->closed = true;
}
static void ended_write_open(void *user, struct leat_conn *conn)
{
    static const uint8_t bytes[ENDED_BYTES];
    struct net_side *side = user;
    PORT_CHECK(side->env->net->send_copy(conn, bytes, sizeof bytes) == LEAT_OK);
    const struct leat_clock *clock = side->env->clock;
    clock->wake_at(clock->ctx, clock->now_us(clock->ctx) + ENDED_STEP_US);
}
static void ended_write_close(void *actor)
{
    static const uint8_t bytes[ENDED_UNREAD];
    struct net_side *side = actor;
    const struct leat_clock *clock = side->env->clock;
    if (side->closed) return;
    if (ended.more && !ended.more_sent) {
        ended.more_sent = true;
        PORT_CHECK(side->env->net->send_copy(side->conn, bytes, sizeof bytes) == LEAT_OK);
        clock->wake_at(clock->ctx, clock->now_us(clock->ctx) + ENDED_STEP_US);
        return;
    }
    atomic_store(&ended_us, clock->now_us(clock->ctx));
    side->env->net->close(side->conn);
}
static const struct leat_conn_handler ended_handler = {NULL, ended_bytes, ended_closed};
static const struct leat_conn_handler ended_write_handler = {ended_write_open, net_no_bytes,
                                                             ended_write_closed};
static void *ended_accept(void *acceptor, struct leat_conn *conn,
                          const struct leat_conn_handler **out_handler)
{
    struct net_side *side = acceptor;
    const struct leat_clock *clock = side->env->clock;
    side->conn = conn;
    if (ended.goes_on) clock->wake_at(clock->ctx, clock->now_us(clock->ctx) + 10 * ENDED_STEP_US);
    *out_handler = &ended_handler;
    return side;
}
static void connect_ended(struct net_test *test)
{
    struct net_side *side = &test->writer;
    const struct leat_net *net = side->env->net;
    PORT_CHECK(net->connect(net->ctx, test->address, &ended_write_handler, side, &side->conn) ==
               LEAT_OK);
}

static void ended_run(void **state, struct ended_case how, unsigned received_bytes)
{
    static const struct leat_actor_ops ops = {.on_wake = ended_write_close};
    static const struct leat_actor_ops reader_ops = {.on_wake = ended_go_on};
    const struct port_family *family = *state;
    struct net_test *test = net_test_make(family, ended_accept, connect_ended);
    ended = how;
    test->rig->attach(test->rig->ctx, PORT_LEFT, &test->writer, &ops, NULL);
    test->rig->attach(test->rig->ctx, PORT_RIGHT, &test->reader, &reader_ops, net_right_listen);
    test->rig->run(test->rig->ctx);
    assert_true(test->reader.closed);
    assert_int_equal(test->received_bytes, received_bytes);
    net_test_drop(family, test);
}

static void net_paused_connection_notices_its_end(void **state)
{
    ended_run(state, (struct ended_case){0}, ENDED_BYTES);
}

static void net_paused_connection_with_bytes_unread_ends_within_a_second(void **state)
{
    ended_run(state, (struct ended_case){.more = true}, ENDED_BYTES);
}

static void net_bytes_before_an_end_are_taken_within_a_second(void **state)
{
    ended_run(state, (struct ended_case){.more = true, .goes_on = true},
              ENDED_BYTES + ENDED_UNREAD);
}

/* ---- nobody listens ---- */
static void refused_open(void *user, struct leat_conn *conn)
{
    PORT_CHECK(false);
}
static void refused_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(why != LEAT_OK && !side->in_call && side->conn == conn);
    side->closed = true;
    side->test->rig->finish(side->test->rig->ctx);
}
static const struct leat_conn_handler refused_handler = {refused_open, net_no_bytes,
                                                         refused_closed};
static void connect_refused(struct net_test *test)
{
    struct net_side *side = &test->writer;
    struct leat_conn *none = NULL;
    const struct leat_net *net = side->env->net;
    PORT_CHECK(net->connect(net->ctx, "no port", &refused_handler, side, &none) == LEAT_E_INVALID);
    PORT_CHECK(none == NULL);
    side->in_call = true;
    PORT_CHECK(net->connect(net->ctx, test->rig->refused_address, &refused_handler, side,
                            &side->conn) == LEAT_OK);
    side->in_call = false;
}

static void net_refused_connection_ends_with_on_closed(void **state)
{
    const struct port_family *family = *state;
    struct net_test *test = net_test_make(family, swallow_accept, connect_refused);
    test->rig->run(test->rig->ctx);
    assert_true(test->writer.closed);
    net_test_drop(family, test);
}

int port_suite_net_ends_run(const struct port_family *family)
{
    void *state = (void *)(uintptr_t)family;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(net_close_while_sending_ends_each_send_once, state),
        cmocka_unit_test_prestate(net_slow_reader_pushes_back_then_gets_all, state),
        cmocka_unit_test_prestate(net_paused_connection_notices_its_end, state),
        cmocka_unit_test_prestate(net_paused_connection_with_bytes_unread_ends_within_a_second,
                                  state),
        cmocka_unit_test_prestate(net_bytes_before_an_end_are_taken_within_a_second, state),
        cmocka_unit_test_prestate(net_refused_connection_ends_with_on_closed, state),
    };
    return cmocka_run_group_tests_name("ports-net-ends", tests, NULL, NULL);
}
