/* SPDX-License-Identifier: Apache-2.0 */
/* Port suite: net, what a connection carries.
 *
 * Frames: u32 LE length of the body, u32 LE CRC-32C of the body, body. Their sizes come from a seed
 * that both sides know. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/os/port_net_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t frame_body_bytes(struct leat_xoshiro *seed, unsigned size_bits)
{
    uint64_t dice = leat_xoshiro_next(seed);
    if (dice % 97 == 0) return BODY_MAX - (size_t)(dice % 1000);
    return (size_t)((dice >> 8) & ((1u << size_bits) - 1));
}

/* ---- writer: keeps all its sends under way ---- */
static void frame_sent(struct leat_send *send, leat_err rc);

static void frames_fill(struct net_test *test)
{
    struct net_side *writer = &test->writer;
    if (writer->closed) return;
    writer->in_call = true;
    for (unsigned i = 0; i < SENDS && test->written < ROUND_FRAMES; i++) {
        struct frame_out *out = &test->out[test->written % SENDS];
        if (out->busy) break;
        size_t bytes = frame_body_bytes(&test->write_seed, test->how.size_bits);
        const uint8_t *body = test->body + test->written;
        leat_put_le32(out->header, (uint32_t)bytes);
        leat_put_le32(out->header + 4, leat_crc32c(0, body, bytes));
        test->written++;
        if (bytes < 64) { /* small ones go by copy, in order with the others */
            PORT_CHECK(writer->env->net->send_copy(writer->conn, out->header, HEADER) == LEAT_OK);
            PORT_CHECK(writer->env->net->send_copy(writer->conn, body, bytes) == LEAT_OK);
            test->sent++;
            continue;
        }
        size_t cut = bytes / 3;
        out->iov[0] = (struct leat_iov){out->header, HEADER};
        out->iov[1] = (struct leat_iov){body, cut};
        out->iov[2] = (struct leat_iov){body, 0}; /* an empty piece is legal */
        out->iov[3] = (struct leat_iov){body + cut, bytes - cut};
        out->send = (struct leat_send){
            .iovs = out->iov, .iov_count = 4, .on_sent = frame_sent, .owner = test};
        out->busy = true;
        writer->env->net->send(writer->conn, &out->send);
        PORT_CHECK(writer->env->net->queued_bytes(writer->conn) >= bytes);
    }
    writer->in_call = false;
}

static void rest_sent(struct leat_send *send, leat_err rc)
{
    struct net_test *test = send->owner;
    struct frame_out *out =
        (struct frame_out *)(void *)((uint8_t *)send - offsetof(struct frame_out, by));
    PORT_CHECK(rc == LEAT_OK && !test->writer.in_call && out->busy);
    free(out->by_bytes);
    out->by_bytes = NULL;
    out->busy = false;
    test->sent++;
    frames_fill(test);
}

/* What is had back is overwritten. */
static void frames_replace(struct net_test *test)
{
    const struct net_side *writer = &test->writer;
    const struct leat_net *net = writer->env->net;
    for (unsigned i = 0; i < SENDS && !writer->closed; i += 3) {
        struct frame_out *out = &test->out[i];
        if (!out->busy || out->by_bytes) continue;
        size_t bytes = net->unsent_bytes(writer->conn, &out->send);
        if (bytes == 0) continue;
        size_t queued = net->queued_bytes(writer->conn);
        out->by_bytes = malloc(bytes);
        out->by_iov = (struct leat_iov){out->by_bytes, bytes};
        out->by = (struct leat_send){
            .iovs = &out->by_iov, .iov_count = 1, .on_sent = rest_sent, .owner = test};
        test->replaced++;
        net->replace(writer->conn, &out->send, &out->by);
        PORT_CHECK(net->queued_bytes(writer->conn) == queued);
        PORT_CHECK(net->unsent_bytes(writer->conn, &out->send) == 0);
        PORT_CHECK(net->unsent_bytes(writer->conn, &out->by) == bytes);
        memset(&out->send, 0xee, sizeof out->send);
        memset(out->iov, 0xee, sizeof out->iov);
        memset(out->header, 0xee, sizeof out->header);
    }
}

static void frame_sent(struct leat_send *send, leat_err rc)
{
    struct net_test *test = send->owner;
    struct frame_out *out = (struct frame_out *)(void *)send;
    PORT_CHECK(rc == LEAT_OK && !test->writer.in_call && out->busy);
    out->busy = false;
    test->sent++;
    frames_fill(test);
    if (test->how.replaces) frames_replace(test);
}

static void writer_open(void *user, struct leat_conn *conn)
{
    struct net_side *side = user;
    PORT_CHECK(side->conn == conn && !side->in_call && !side->opened);
    side->opened = true;
    PORT_CHECK(side->env->net->peer(conn)[0] != 0);
    frames_fill(side->test);
}
/* The reader closes when it has seen everything; the writer must be told, once. */
static void writer_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(!side->closed && why != LEAT_OK);
    side->closed = true;
    side->test->rig->finish(side->test->rig->ctx);
}
static const struct leat_conn_handler writer_handler = {writer_open, net_no_bytes, writer_closed};

/* ---- reader ---- */
static const struct leat_conn_handler reader_handler;

static void reader_resume(void *actor, struct leat_mail *mail)
{
    struct net_side *side = actor;
    struct net_test *test = side->test;
    (void)mail;
    test->resuming = false;
    if (!side->closed) side->env->net->resume(side->conn);
}

static void *reader_moved(void *actor, struct leat_conn *conn, void *baggage,
                          const struct leat_conn_handler **out_handler)
{
    struct net_side *from = baggage, *side = actor;
    PORT_CHECK(side == &from->test->third);
    from->test->moved = true;
    side->conn = conn;
    side->opened = true;
    *out_handler = &reader_handler;
    return side;
}

/* Returns the frame's bytes, or 0 and what it needs. */
static size_t frame_take(struct net_test *test, const uint8_t *data, size_t bytes, size_t *need)
{
    *need = HEADER;
    if (bytes < HEADER) return 0;
    size_t body_bytes = leat_get_le32(data);
    *need = HEADER + body_bytes;
    if (bytes < *need) return 0;
    PORT_CHECK(body_bytes == frame_body_bytes(&test->read_seed, test->how.size_bits));
    PORT_CHECK(leat_get_le32(data + 4) == leat_crc32c(0, data + HEADER, body_bytes));
    test->read++;
    return HEADER + body_bytes;
}

static void reader_after_frame(struct net_side *side)
{
    struct net_test *test = side->test;
    const struct leat_net *net = side->env->net;
    if (test->read == ROUND_FRAMES) {
        net->close(side->conn);
        net->close(side->conn); /* idempotent */
    } else if (test->how.moves && !test->moved && side == &test->reader) {
        struct leat_conn *conn = side->conn;
        side->closed = true; /* no callback may come here any more */
        net->move(conn, PORT_DISK, reader_moved, side);
    } else if (test->how.pauses && test->read % 7 == 0 && !test->resuming) {
        test->resuming = true;
        net->pause(side->conn);
        test->resume_mail.deliver = reader_resume;
        side->env->post->send(side->env->post->ctx, side->env->post->self, &test->resume_mail);
    }
}

static size_t reader_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                           size_t *want_bytes)
{
    struct net_side *side = user;
    struct net_test *test = side->test;
    size_t used = 0, need = 0;
    PORT_CHECK(side->conn == conn && !side->in_call && !side->closed && !test->resuming);
    PORT_CHECK(bytes > 0);
    for (;;) {
        size_t took = frame_take(test, data + used, bytes - used, &need);
        if (took == 0) break;
        used += took;
        reader_after_frame(side);
        if (side->closed || test->read == ROUND_FRAMES || test->resuming) return used;
        if (test->how.one_by_one) {
            /* Pausing and resuming is how a reader asks for the rest again. */
            side->env->net->pause(conn);
            side->env->net->resume(conn);
            return used;
        }
    }
    if (test->how.want) *want_bytes = need;
    return used;
}

static void reader_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(!side->closed && why == LEAT_OK);
    PORT_CHECK(side->test->read == ROUND_FRAMES);
    side->closed = true;
}
static const struct leat_conn_handler reader_handler = {NULL, reader_bytes, reader_closed};

static void *reader_accept(void *acceptor, struct leat_conn *conn,
                           const struct leat_conn_handler **out_handler)
{
    struct net_side *side = acceptor;
    PORT_CHECK(side->conn == NULL);
    side->conn = conn;
    *out_handler = &reader_handler;
    return side;
}

static void connect_writer(struct net_test *test)
{
    struct net_side *side = &test->writer;
    side->in_call = true;
    PORT_CHECK(side->env->net->connect(side->env->net->ctx, test->address, &writer_handler, side,
                                       &side->conn) == LEAT_OK);
    side->in_call = false;
}
static void frames_case(void **state, struct net_case how)
{
    const struct port_family *family = *state;
    struct net_test *test = net_test_make(family, reader_accept, connect_writer);
    test->how = how;
    test->rig->run(test->rig->ctx);
    assert_int_equal(test->read, ROUND_FRAMES);
    assert_int_equal(test->sent, ROUND_FRAMES);
    assert_true(test->writer.closed);
    assert_true(test->moved == how.moves);
    assert_true((test->replaced > 0) == how.replaces);
    net_test_drop(family, test);
}

static void net_small_frames_arrive_whole_and_in_order(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 7});
}
static void net_frames_without_want_arrive_whole(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 18});
}
static void net_large_frames_with_want_arrive_whole(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 20, .want = true});
}
static void net_replaced_sends_arrive_from_where_their_rest_lies(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 20, .want = true, .replaces = true});
}
static void net_pausing_reader_loses_nothing(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 16, .want = true, .pauses = true});
}
static void net_one_frame_per_callback_gets_the_rest(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 13, .want = true, .one_by_one = true});
}
static void net_moved_connection_takes_its_bytes_along(void **state)
{
    frames_case(state, (struct net_case){.size_bits = 12, .want = true, .moves = true});
}
static void net_moved_connection_pauses_and_reads_on(void **state)
{
    frames_case(state,
                (struct net_case){.size_bits = 17, .want = true, .moves = true, .pauses = true});
}

int port_suite_net_run(const struct port_family *family)
{
    void *state = (void *)(uintptr_t)family;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(net_small_frames_arrive_whole_and_in_order, state),
        cmocka_unit_test_prestate(net_frames_without_want_arrive_whole, state),
        cmocka_unit_test_prestate(net_large_frames_with_want_arrive_whole, state),
        cmocka_unit_test_prestate(net_replaced_sends_arrive_from_where_their_rest_lies, state),
        cmocka_unit_test_prestate(net_pausing_reader_loses_nothing, state),
        cmocka_unit_test_prestate(net_one_frame_per_callback_gets_the_rest, state),
        cmocka_unit_test_prestate(net_moved_connection_takes_its_bytes_along, state),
        cmocka_unit_test_prestate(net_moved_connection_pauses_and_reads_on, state),
    };
    return cmocka_run_group_tests_name("ports-net", tests, NULL, NULL);
}
