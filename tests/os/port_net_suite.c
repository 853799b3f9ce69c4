/* SPDX-License-Identifier: Apache-2.0 */
/* Port suite: net. RIGHT listens and LEFT connects, or the other way round.
 *
 * Frames: u32 LE length of the body, u32 LE CRC-32C of the body, body. Their sizes come from a seed
 * that both sides know. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "tests/os/port_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADER = 8, SENDS = 64, BODY_MAX = 3 * 1024 * 1024, ROUND_FRAMES = 400 };

/* What a test varies. */
struct net_case {
    bool want;     /* the reader names the bytes it needs */
    bool pauses;   /* the reader pauses now and then and resumes by a mail to itself */
    bool moves;    /* the connection moves to DISK after the first frame, with bytes not consumed */
    bool replaces; /* the writer has some sends back before their bytes are taken */
    bool one_by_one;    /* the reader takes one frame per callback */
    unsigned size_bits; /* bodies below 1 << size_bits, sometimes BODY_MAX */
};

struct net_side {
    struct net_test *test;
    const struct leat_env *env;
    struct leat_conn *conn;
    bool in_call, closed, opened;
    leat_err why;
};

struct net_test {
    struct port_rig *rig;
    struct net_case how;
    struct net_side reader, writer, third; /* on RIGHT, LEFT, DISK */
    char address[128];
    /* Writer. */
    struct leat_xoshiro write_seed;
    unsigned written, sent;
    struct frame_out {
        struct leat_send send;
        struct leat_iov iov[5];
        uint8_t header[HEADER];
        bool busy;
        struct leat_send by; /* sends the rest, from bytes of its own */
        struct leat_iov by_iov;
        void *by_bytes;
    } out[SENDS];
    unsigned replaced;
    uint8_t *body;
    /* Reader. */
    struct leat_xoshiro read_seed;
    unsigned read;
    struct leat_mail start_mail, resume_mail;
    bool resuming, moved;
    _Atomic bool went_on; /* the slow reader; the writer looks */
    uint64_t received_bytes;
    void (*on_start_left)(struct net_test *test);
};

static void actor_nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops net_ops = {actor_nothing, actor_nothing};

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
static size_t writer_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                           size_t *want_bytes)
{
    PORT_CHECK(false); /* the reader never answers */
    return bytes;
}
/* The reader closes when it has seen everything; the writer must be told, once. */
static void writer_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct net_side *side = user;
    PORT_CHECK(!side->closed && why != LEAT_OK);
    side->closed = true;
    side->test->rig->finish(side->test->rig->ctx);
}
static const struct leat_conn_handler writer_handler = {writer_open, writer_bytes, writer_closed};

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

/* ---- coming up: RIGHT listens, then tells LEFT where ---- */
static void left_start(void *actor, struct leat_mail *mail)
{
    struct net_side *side = actor;
    (void)mail;
    side->test->on_start_left(side->test);
}
static void connect_writer(struct net_test *test)
{
    struct net_side *side = &test->writer;
    side->in_call = true;
    PORT_CHECK(side->env->net->connect(side->env->net->ctx, test->address, &writer_handler, side,
                                       &side->conn) == LEAT_OK);
    side->in_call = false;
}
static leat_accept_fn accept_fn;
static void right_listen(void *actor)
{
    struct net_side *side = actor;
    struct net_test *test = side->test;
    struct leat_error error;
    PORT_CHECK(side->env->net->listen(side->env->net->ctx, test->rig->listen_address, accept_fn,
                                      side, test->address, &error) == LEAT_OK);
    test->start_mail.deliver = left_start;
    side->env->post->send(side->env->post->ctx, PORT_LEFT, &test->start_mail);
}

static struct net_test *net_test_make(const struct port_family *family, leat_accept_fn on_accept,
                                      void (*on_start_left)(struct net_test *test))
{
    struct net_test *test = calloc(1, sizeof *test);
    test->rig = family->make();
    test->on_start_left = on_start_left;
    accept_fn = on_accept;
    struct net_side *sides[3] = {&test->writer, &test->reader, &test->third};
    const unsigned numbers[3] = {PORT_LEFT, PORT_RIGHT, PORT_DISK};
    for (int i = 0; i < 3; i++) {
        sides[i]->test = test;
        sides[i]->env = test->rig->env(test->rig->ctx, numbers[i]);
        test->rig->attach(test->rig->ctx, numbers[i], sides[i], &net_ops,
                          numbers[i] == PORT_RIGHT ? right_listen : NULL);
    }
    leat_xoshiro_seed(&test->write_seed, 11);
    leat_xoshiro_seed(&test->read_seed, 11);
    test->body = malloc(BODY_MAX + ROUND_FRAMES);
    struct leat_xoshiro noise;
    leat_xoshiro_seed(&noise, 5);
    for (size_t i = 0; i + 8 <= BODY_MAX + ROUND_FRAMES; i += 8)
        leat_put_le64(test->body + i, leat_xoshiro_next(&noise));
    return test;
}
static void net_test_drop(const struct port_family *family, struct net_test *test)
{
    family->drop(test->rig);
    free(test->body);
    free(test);
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
static const struct leat_conn_handler close_handler = {close_open, writer_bytes, close_closed};
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
static const struct leat_conn_handler slow_handler = {slow_open, writer_bytes, slow_closed};
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
    static const struct leat_actor_ops slow_ops = {slow_go_on, NULL};
    const struct port_family *family = *state;
    memset(&close_out, 0, sizeof close_out);
    struct net_test *test = net_test_make(family, slow_accept, connect_slow);
    test->rig->attach(test->rig->ctx, PORT_RIGHT, &test->reader, &slow_ops, right_listen);
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
static const struct leat_conn_handler ended_write_handler = {ended_write_open, writer_bytes,
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
    static const struct leat_actor_ops ops = {ended_write_close, NULL};
    static const struct leat_actor_ops reader_ops = {ended_go_on, NULL};
    const struct port_family *family = *state;
    struct net_test *test = net_test_make(family, ended_accept, connect_ended);
    ended = how;
    test->rig->attach(test->rig->ctx, PORT_LEFT, &test->writer, &ops, NULL);
    test->rig->attach(test->rig->ctx, PORT_RIGHT, &test->reader, &reader_ops, right_listen);
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
static const struct leat_conn_handler refused_handler = {refused_open, writer_bytes,
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
    struct net_test *test = net_test_make(family, reader_accept, connect_refused);
    test->rig->run(test->rig->ctx);
    assert_true(test->writer.closed);
    net_test_drop(family, test);
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
        cmocka_unit_test_prestate(net_close_while_sending_ends_each_send_once, state),
        cmocka_unit_test_prestate(net_slow_reader_pushes_back_then_gets_all, state),
        cmocka_unit_test_prestate(net_paused_connection_notices_its_end, state),
        cmocka_unit_test_prestate(net_paused_connection_with_bytes_unread_ends_within_a_second,
                                  state),
        cmocka_unit_test_prestate(net_bytes_before_an_end_are_taken_within_a_second, state),
        cmocka_unit_test_prestate(net_refused_connection_ends_with_on_closed, state),
    };
    return cmocka_run_group_tests_name("ports-net", tests, NULL, NULL);
}
