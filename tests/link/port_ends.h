/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a link on a port of the test's: the test decides which frames leave, when they arrive, and which are
 * refused. */
#ifndef LEAT_TESTS_LINK_PORT_ENDS_H
#define LEAT_TESTS_LINK_PORT_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "link/link.h"

enum { CONNS_MAX = 256, SENDS_MAX = 64, MS = 1000, KIND = 400, KIND_HOLD = 401, KIND_ERROR = 402 };

struct leat_conn {
    struct leat_conn *peer; /* NULL: it is gone */
    const struct leat_conn_handler *handler;
    void *user;
    uint8_t *in;
    size_t in_bytes, want;
    struct leat_send *sends[SENDS_MAX];
    unsigned send_count, delivered; /* of these, so many have reached the peer */
    bool open_due, closing, paused, fresh, dead;
};

struct end {
    struct leat_timers timers;
    struct leat_post post;
    struct leat_env env;
    struct leat_links *links;
    struct leat_link_hub hub;
    struct leat_link_handler handler;
    struct leat_link *link; /* opened */
    unsigned ups, downs, unborn, requests;
    struct leat_error last;
    struct leat_link_ticket held[16];
    unsigned held_count;
    bool close_on_up, close_on_down;
};

static struct leat_conn conns[CONNS_MAX];
static unsigned conn_count;
static uint64_t now_us;
static leat_err connect_rc;
static bool keep_sends; /* delivered, and not told so */
static bool stall;      /* nothing leaves */
static struct end ends[2];
static struct leat_xoshiro rng;

/* ---- the port ---- */

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static int64_t clock_wall(void *ctx)
{
    (void)ctx;
    return 0;
}
static void clock_wake(void *ctx, uint64_t at)
{
    (void)ctx;
    (void)at;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return leat_xoshiro_next(&rng);
}
static void random_secret(void *ctx, void *out, size_t bytes)
{
    (void)ctx;
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)leat_xoshiro_next(&rng);
}

static void bytes_add(struct leat_conn *to, const void *bytes, size_t count)
{
    if (!to || to->closing || to->dead) return;
    to->in = realloc(to->in, to->in_bytes + count);
    memcpy(to->in + to->in_bytes, bytes, count);
    to->in_bytes += count;
    to->fresh = true;
}

static leat_err port_connect(void *ctx, const char *address,
                             const struct leat_conn_handler *handler, void *user,
                             struct leat_conn **out)
{
    (void)ctx;
    (void)address;
    if (connect_rc != LEAT_OK) return connect_rc;
    assert_true(conn_count + 2 <= CONNS_MAX);
    struct leat_conn *a = &conns[conn_count++], *b = &conns[conn_count++];
    *a = (struct leat_conn){.handler = handler, .user = user, .peer = b, .open_due = true};
    *b = (struct leat_conn){.peer = a};
    b->user = leat_link_accept(ends[1].links, b, &b->handler);
    if (!b->user) {
        b->dead = true;
        a->peer = NULL;
    }
    *out = a;
    return LEAT_OK;
}
static void port_send(struct leat_conn *conn, struct leat_send *send)
{
    assert_true(conn->send_count < SENDS_MAX);
    conn->sends[conn->send_count++] = send;
}
static leat_err port_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    bytes_add(conn->peer, bytes, count);
    return LEAT_OK;
}
static void port_pause(struct leat_conn *conn)
{
    conn->paused = true;
}
static void port_resume(struct leat_conn *conn)
{
    conn->paused = false;
    conn->fresh = true;
}
static void port_close(struct leat_conn *conn)
{
    conn->closing = true;
}
static void port_account(struct leat_conn *conn, enum leat_net_account account)
{
    (void)conn;
    (void)account;
}
static const char *port_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "left:1";
}
static const uint8_t *port_key(const struct leat_conn *conn)
{
    static const uint8_t key[LEAT_NET_KEY_BYTES];
    (void)conn;
    return key;
}

static void deliver(struct leat_conn *conn)
{
    if (stall) return;
    for (; conn->delivered < conn->send_count; conn->delivered++) {
        const struct leat_send *send = conn->sends[conn->delivered];
        for (unsigned i = 0; i < send->iov_count; i++)
            bytes_add(conn->peer, send->iovs[i].base, send->iovs[i].bytes);
    }
    while (!keep_sends && conn->delivered > 0) {
        struct leat_send *send = conn->sends[0];
        memmove(conn->sends, conn->sends + 1, --conn->send_count * sizeof *conn->sends);
        conn->delivered--;
        send->on_sent(send, LEAT_OK);
    }
}

static void end_conn(struct leat_conn *conn, leat_err why)
{
    struct leat_conn *peer = conn->peer;
    conn->dead = true;
    while (conn->send_count > 0) {
        struct leat_send *send = conn->sends[0];
        memmove(conn->sends, conn->sends + 1, --conn->send_count * sizeof *conn->sends);
        send->on_sent(send, LEAT_E_CLOSED);
    }
    free(conn->in);
    conn->in = NULL;
    if (peer) peer->peer = NULL;
    conn->handler->on_closed(conn->user, conn, why);
}

static void conn_step(struct leat_conn *conn)
{
    if (conn->dead) return;
    if (conn->open_due && !conn->closing && conn->peer) {
        conn->open_due = false;
        conn->handler->on_open(conn->user, conn);
    }
    deliver(conn);
    if (!conn->closing && conn->fresh && !conn->paused && conn->in_bytes >= conn->want) {
        conn->fresh = false;
        conn->want = 0;
        size_t used =
            conn->handler->on_bytes(conn->user, conn, conn->in, conn->in_bytes, &conn->want);
        if (conn->dead) return;
        conn->in_bytes -= used;
        memmove(conn->in, conn->in + used, conn->in_bytes);
    }
    if (conn->closing)
        end_conn(conn, LEAT_OK);
    else if (!conn->peer && !conn->fresh)
        end_conn(conn, LEAT_E_CLOSED);
}

static void run_ms(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        now_us += MS;
        for (unsigned e = 0; e < 2; e++)
            leat_timers_run(&ends[e].timers);
        for (unsigned turn = 0; turn < 6; turn++)
            for (unsigned c = 0; c < conn_count; c++)
                conn_step(&conns[c]);
    }
}

/* ---- two ends ---- */

static void on_up(void *owner, struct leat_link *link)
{
    struct end *end = owner;
    end->ups++;
    if (end->close_on_up) {
        assert_ptr_equal(link, end->link);
        leat_link_close(&end->link);
    }
}
static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    struct end *end = owner;
    if (was_up)
        end->downs++;
    else
        end->unborn++;
    end->last = *error;
    if (end->close_on_down) {
        assert_ptr_equal(link, end->link);
        leat_link_close(&end->link);
    }
}
static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    struct end *end = owner;
    end->requests++;
    if (frame->kind == KIND_HOLD)
        end->held[end->held_count++ % 16] = *ticket;
    else if (frame->kind == KIND_ERROR)
        leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_DISK, "the disk is full");
    else if (ticket->request != 0)
        leat_link_answer(leat_link_links(link), ticket, frame->control, frame->control_bytes);
}

static const struct leat_clock port_clock = {NULL, clock_now, clock_wall, clock_wake};
static const struct leat_random port_random = {
    .ctx = NULL, .next = random_next, .secret = random_secret};
static const struct leat_net port = {.connect = port_connect,
                                     .send = port_send,
                                     .send_copy = port_copy,
                                     .pause = port_pause,
                                     .resume = port_resume,
                                     .close = port_close,
                                     .account = port_account,
                                     .peer = port_peer,
                                     .key = port_key};
static const struct leat_key key = {{"the cluster's key, of 32 bytes."}};

/* LEAT_E_NO_MEMORY, or both are there. */
static leat_err ends_make(uint64_t queued_bytes_max)
{
    memset(ends, 0, sizeof ends);
    memset(conns, 0, sizeof conns);
    conn_count = 0;
    connect_rc = LEAT_OK;
    keep_sends = stall = false;
    leat_xoshiro_seed(&rng, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct end *end = &ends[i];
        end->env = (struct leat_env){
            .clock = &port_clock, .random = &port_random, .post = &end->post, .net = &port};
        end->handler = (struct leat_link_handler){on_up, on_down, on_request, end};
        leat_err rc = leat_timers_init(&end->timers, &port_clock, LEAT_LINKS_TIMERS);
        if (rc != LEAT_OK) return rc;
        struct leat_links_options options = {.env = &end->env,
                                             .timers = &end->timers,
                                             .hub = &end->hub,
                                             .key = &key,
                                             .queued_bytes_max = queued_bytes_max};
        memset(options.identity.cluster_id, 7, 16);
        snprintf(options.identity.node, sizeof options.identity.node, "%s", i ? "right" : "left");
        options.identity.incarnation = 11 + i;
        options.identity.cores = 1;
        options.services[LEAT_LINK_SERVE].handler = &end->handler;
        rc = leat_links_create(&options, &end->links, NULL);
        if (rc != LEAT_OK) return rc;
    }
    return LEAT_OK;
}

static leat_err open_link(void)
{
    struct leat_link_options options = {.address = "right:1",
                                        .purpose = LEAT_LINK_SERVE,
                                        .handler = &ends[0].handler,
                                        .expect_node = "right"};
    return leat_link_open(ends[0].links, &options, &ends[0].link, NULL);
}

static void ends_free(void)
{
    keep_sends = stall = false;
    for (unsigned i = 0; i < 2; i++)
        leat_links_destroy(&ends[i].links);
    for (unsigned turn = 0; turn < 10; turn++)
        for (unsigned c = 0; c < conn_count; c++)
            conn_step(&conns[c]);
    for (unsigned c = 0; c < conn_count; c++)
        assert_true(conns[c].dead);
    for (unsigned i = 0; i < 2; i++)
        leat_timers_fini(&ends[i].timers);
}

static size_t memory_before;
static int begin(void **state)
{
    (void)state;
    now_us = 1000000;
    memory_before = leat_mem_bytes(LEAT_MEM_NET);
    assert_int_equal(ends_make(0), LEAT_OK);
    return 0;
}
static int finish(void **state)
{
    (void)state;
    ends_free();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), memory_before);
    return 0;
}

struct caller {
    struct leat_link_call call;
    unsigned done;
    leat_err rc;
    struct leat_error error;
    bool matched, close;
};
static void on_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    struct caller *caller = call->owner;
    caller->done++;
    caller->rc = rc;
    caller->error = *error;
    assert_int_equal(rc == LEAT_OK && !call->one_way, answer != NULL);
    assert_null(call->link);
    caller->matched = answer && answer->control_bytes == call->control_bytes &&
                      memcmp(answer->control, call->control, call->control_bytes) == 0;
    if (caller->close) leat_link_close(&ends[0].link);
}
static leat_err ask(struct caller *caller, uint16_t kind, uint32_t bytes)
{
    static uint8_t control[LEAT_CONTROL_BYTES_MAX + 1];
    caller->call.kind = kind;
    caller->call.control = control;
    caller->call.control_bytes = bytes;
    caller->call.on_done = on_done;
    caller->call.owner = caller;
    return leat_link_call(ends[0].link, &caller->call);
}

static void up(void)
{
    assert_int_equal(open_link(), LEAT_OK);
    run_ms(5);
    assert_int_equal(ends[0].ups, 1);
    assert_int_equal(ends[1].ups, 1);
}

#endif
