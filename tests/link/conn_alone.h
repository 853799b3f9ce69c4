/* SPDX-License-Identifier: Apache-2.0 */
/* link/conn.c alone: this file plays (--wrap) the functions of link/, of the network, of the tags and of the user that
 * conn.c calls; each call of these is a line of the trace. For one test program only. */
#ifndef LEAT_TESTS_LINK_CONN_ALONE_H
#define LEAT_TESTS_LINK_CONN_ALONE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/internal.h"
#include "tests/trace.h"

enum { KIND = 400, PING = 100, SILENCE = 1000 };

static struct {
    leat_err connect_rc, hello_rc;
    enum leat_link_greeted greeted;
    bool no_nonce, no_link, wrong_tag, no_memory, closed_in_fail, closed_in_down, keeps_state;
    struct leat_conn *connected;
} played;
static struct leat_links links;
static struct leat_link link_;
static struct leat_env env;
static char conn[] = "conn", mac_in[] = "in";

/* ---- what it calls ---- */

void __wrap_leat_link_retry_later(struct leat_link *link);
void __wrap_leat_link_retry_later(struct leat_link *link)
{
    trace("retry later\n");
    link->state = LINK_WAITING;
}
bool __wrap_leat_link_nonce_send(struct leat_link *link, uint32_t request);
bool __wrap_leat_link_nonce_send(struct leat_link *link, uint32_t request)
{
    trace("nonce %u in state %d\n", request, link->state);
    return !played.no_nonce;
}
void __wrap_leat_link_nonce_take(struct leat_link *link, const struct leat_frame *frame,
                                 const uint8_t *bytes);
void __wrap_leat_link_nonce_take(struct leat_link *link, const struct leat_frame *frame,
                                 const uint8_t *bytes)
{
    trace("takes nonce %u of %u bytes, its first %u\n", frame->kind, frame->frame_bytes, *bytes);
    link->state = LINK_HELLO;
}
bool __wrap_leat_link_frame_check(struct leat_link *link, struct leat_frame *frame,
                                  const uint8_t *bytes);
bool __wrap_leat_link_frame_check(struct leat_link *link, struct leat_frame *frame,
                                  const uint8_t *bytes)
{
    (void)link;
    trace("check %u, its first %u\n", frame->kind, *bytes);
    return !played.wrong_tag;
}
enum leat_link_greeted __wrap_leat_link_hello_take(struct leat_link *link,
                                                   const struct leat_frame *frame);
enum leat_link_greeted __wrap_leat_link_hello_take(struct leat_link *link,
                                                   const struct leat_frame *frame)
{
    trace("takes hello %u\n", frame->kind);
    if (played.greeted == LINK_REFUSED) link->state = LINK_CLOSING;
    return played.greeted;
}
leat_err __wrap_leat_link_hello_answered(struct leat_link *link, const struct leat_frame *frame,
                                         struct leat_error *error);
leat_err __wrap_leat_link_hello_answered(struct leat_link *link, const struct leat_frame *frame,
                                         struct leat_error *error)
{
    (void)link;
    trace("hello answered %u\n", frame->kind);
    return played.hello_rc ? leat_error_set(error, played.hello_rc, "refused so") : LEAT_OK;
}
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    trace("cut %d %s\n", rc, why);
    if (!played.keeps_state) link->state = LINK_CLOSING;
}
struct leat_link *__wrap_leat_link_make(struct leat_links *at);
struct leat_link *__wrap_leat_link_make(struct leat_links *at)
{
    assert_ptr_equal(at, &links);
    trace("make\n");
    return played.no_link ? NULL : &link_;
}
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us);
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us)
{
    assert_ptr_equal(at, &links);
    trace("due %llu\n", (unsigned long long)at_us);
}
void __wrap_leat_link_stranger_begin(struct leat_link *link);
void __wrap_leat_link_stranger_begin(struct leat_link *link)
{
    assert_ptr_equal(link, &link_);
    trace("stranger\n");
}
void __wrap_leat_link_stranger_end(struct leat_link *link);
void __wrap_leat_link_stranger_end(struct leat_link *link)
{
    assert_ptr_equal(link, &link_);
    trace("no stranger\n");
}
void __wrap_leat_link_keys_drop(struct leat_link *link);
void __wrap_leat_link_keys_drop(struct leat_link *link)
{
    trace("no keys, state %d, net %d\n", link->state, link->net != NULL);
}
void __wrap_leat_link_enter(struct leat_link *link);
void __wrap_leat_link_enter(struct leat_link *link)
{
    (void)link;
    trace("enter\n");
}
bool __wrap_leat_link_leave(struct leat_link *link);
bool __wrap_leat_link_leave(struct leat_link *link)
{
    trace("leave%s\n", link->gone ? ", gone" : "");
    return !link->gone;
}
void __wrap_leat_link_complain(struct leat_link *link, const char *text);
void __wrap_leat_link_complain(struct leat_link *link, const char *text)
{
    (void)link;
    trace("node log %s\n", text);
}
void __wrap_leat_link_calls_fail(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_calls_fail(struct leat_link *link, leat_err rc, const char *why)
{
    trace("calls fail %d %s, state %d\n", rc, why, link->state);
    if (played.closed_in_fail) link->gone = true;
}
void __wrap_leat_link_answer_error(struct leat_links *at, const struct leat_link_ticket *ticket,
                                   leat_err rc, const char *text);
void __wrap_leat_link_answer_error(struct leat_links *at, const struct leat_link_ticket *ticket,
                                   leat_err rc, const char *text)
{
    assert_ptr_equal(at, &links);
    trace("refuse %u %d %s\n", ticket->request, rc, text);
}
void __wrap_leat_link_answered(struct leat_link *link, struct leat_link_call *call,
                               const struct leat_frame *frame);
void __wrap_leat_link_answered(struct leat_link *link, struct leat_link_call *call,
                               const struct leat_frame *frame)
{
    trace("answered %u by %u\n", call->number, frame->request);
    (void)link;
    leat_list_remove(&call->list);
}
bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after);
bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after)
{
    (void)link;
    assert_true(bytes == 1 && memcmp(control, "\x90", 1) == 0 && !call && !answer && !close_after);
    trace("send %u %u %u\n", kind, flags, number);
    return !played.no_memory;
}
void __wrap_leat_mac_again(struct leat_mac *mac);
void __wrap_leat_mac_again(struct leat_mac *mac)
{
    trace("again %s\n", (const char *)mac);
}

/* ---- the port and the link's user ---- */

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return 5000;
}
static leat_err net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                            void *user, struct leat_conn **out_conn)
{
    assert_true(ctx == &played && handler == &leat_link_conn_handler && user == &link_);
    trace("connect %s\n", address);
    *out_conn = (struct leat_conn *)conn;
    return played.connect_rc;
}
static void net_account(struct leat_conn *at, enum leat_net_account account)
{
    trace("account %s %s\n", (const char *)at,
          account == LEAT_NET_STRANGERS ? "strangers"
          : account == LEAT_NET_NODES   ? "nodes"
                                        : "else");
}
static const char *net_peer(const struct leat_conn *at)
{
    (void)at;
    return "203.0.113.7:5";
}
static const uint8_t *net_key(const struct leat_conn *at)
{
    static const uint8_t key[LEAT_NET_KEY_BYTES] = {[0 ... LEAT_NET_KEY_BYTES - 1] = 9};
    (void)at;
    return key;
}
static void net_pause(struct leat_conn *at)
{
    trace("pause %s\n", (const char *)at);
}

static void on_up(void *owner, struct leat_link *link)
{
    assert_true(owner == &played && link == &link_);
    trace("up, state %d, connection %llu\n", link->state, (unsigned long long)link->connection);
}
static void on_down(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error)
{
    assert_true(owner == &played && link == &link_);
    trace("down %d: %d %s\n", was_up, error->code, error->text);
    if (played.closed_in_down) link->gone = true;
}
static void on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket)
{
    assert_true(owner == &played && link == &link_ && ticket->kind == frame->kind);
    assert_true(ticket->slot == 3 && ticket->connection == 8 && ticket->request == frame->request);
    trace("request %u %u, %u under way\n", frame->kind, frame->request, link->request_count);
}

static int begin(void **state)
{
    (void)state;
    static const struct leat_clock clock = {.now_us = clock_now};
    static const struct leat_net net = {.ctx = &played,
                                        .connect = net_connect,
                                        .account = net_account,
                                        .peer = net_peer,
                                        .key = net_key,
                                        .pause = net_pause};
    static const struct leat_link_handler handler = {on_up, on_down, on_request, &played};
    memset(&played, 0, sizeof played);
    memset(&links, 0, sizeof links);
    memset(&link_, 0, sizeof link_);
    env = (struct leat_env){.clock = &clock, .net = &net};
    links.env = &env;
    links.ping_us = PING;
    links.silence_us = SILENCE;
    links.queued_bytes_max = 1000;
    links.next_connection = 20;
    link_.links = &links;
    link_.net = (struct leat_conn *)conn;
    link_.handler = &handler;
    link_.mac_in = (struct leat_mac *)mac_in;
    link_.slot = 3;
    link_.connection = 8;
    link_.since_us = 4000;
    leat_list_init(&link_.calls);
    snprintf(link_.address, sizeof link_.address, "host:1");
    snprintf(link_.peer.node, sizeof link_.peer.node, "peer");
    trace_begin();
    return 0;
}
#define CONN_TEST(name) cmocka_unit_test_setup(name, begin)

/* ---- frames that come ---- */

/* Several, one behind the other. */
static uint8_t bytes[16 * 1024];
static size_t used;

static void frame_add(uint16_t kind, uint8_t flags, uint32_t request, uint32_t payload_bytes)
{
    bytes[used + LEAT_FRAME_HEADER_BYTES] = 0x90;
    leat_frame_encode(bytes + used, (enum leat_kind)kind, 3, flags, request, 1, payload_bytes);
    used += LEAT_FRAME_HEADER_BYTES + 1 + payload_bytes;
}
static size_t bytes_come(size_t count)
{
    size_t want = 0, taken;
    taken = leat_link_conn_handler.on_bytes(&link_, link_.net, bytes, count, &want);
    trace("%zu of %zu, wants %zu\n", taken, count, want);
    used = 0;
    return taken;
}
static size_t comes(uint16_t kind, uint8_t flags, uint32_t request)
{
    frame_add(kind, flags, request, 0);
    return bytes_come(used);
}

#endif
