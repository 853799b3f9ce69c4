/* SPDX-License-Identifier: Apache-2.0 */
/* link/send.c alone: each frame as the frame goes to the network, its slot and its bytes; the bounds at which a call, a
 * message and an answer are refused; how calls end. This file plays (--wrap) the network, the tags and the functions of
 * link/ that send.c calls; each call of these is a line of the trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "link/internal.h"
#include "tests/trace.h"
#include "wire/message.h"

enum { KIND = 400, QUEUED_MAX = 10000, SENDS_MAX = 1024, OVERHEAD = 24 + LEAT_TAG_BYTES };

static struct {
    uint64_t now_us;
    struct leat_send *sends[SENDS_MAX]; /* given to the network, oldest first */
    unsigned count;
    const void *big; /* where the control body of the last one lay */
} played;
static struct leat_links links;
static struct leat_link link_;
static struct leat_env env;
static char conn[] = "conn", mac_out[] = "out", answer_name[] = "x";

void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
void __wrap_leat_link_cut(struct leat_link *link, leat_err rc, const char *why)
{
    assert_ptr_equal(link, &link_);
    trace("cut %d %s\n", rc, why);
}
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us);
void __wrap_leat_links_due(struct leat_links *at, uint64_t at_us)
{
    assert_ptr_equal(at, &links);
    trace("due %llu\n", (unsigned long long)at_us);
}
void __wrap_leat_link_enter(struct leat_link *link);
void __wrap_leat_link_enter(struct leat_link *link)
{
    trace("enter, %u slots out\n", link->slots_out);
}
bool __wrap_leat_link_leave(struct leat_link *link);
bool __wrap_leat_link_leave(struct leat_link *link)
{
    (void)link;
    trace("leave\n");
    return true;
}
void __wrap_leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned count,
                         uint8_t out_tag[LEAT_TAG_BYTES]);
void __wrap_leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned count,
                         uint8_t out_tag[LEAT_TAG_BYTES])
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        bytes += iovs[i].bytes;
    memset(out_tag, 0xa5, LEAT_TAG_BYTES);
    trace("tag %s of %zu bytes\n", (const char *)mac, bytes);
}

/* ---- the port ---- */

static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return played.now_us;
}
static void net_send(struct leat_conn *at, struct leat_send *send)
{
    static const uint8_t tag[LEAT_TAG_BYTES] = {[0 ... LEAT_TAG_BYTES - 1] = 0xa5};
    struct leat_frame frame;
    size_t want, bytes = 0;
    const struct leat_iov *last = &send->iovs[send->iov_count - 1];
    for (unsigned i = 0; i < send->iov_count; i++)
        bytes += send->iovs[i].bytes;
    /* Its header and control body; the payload's bytes are only said to be somewhere. */
    assert_int_equal(leat_frame_decode(send->iovs[0].base, send->iovs[0].bytes, &frame, &want),
                     LEAT_E_AGAIN);
    assert_int_equal(want, bytes);
    assert_int_equal(last->bytes, LEAT_TAG_BYTES);
    assert_memory_equal(last->base, tag, LEAT_TAG_BYTES);
    assert_int_equal(frame.version, LEAT_NODE_VERSION_MAX);
    played.big = send->iovs[0].base;
    trace("send %s %u %u %u: %zu and %zu bytes in %u\n", (const char *)at, frame.kind, frame.flags,
          frame.request, send->iovs[0].bytes - LEAT_FRAME_HEADER_BYTES,
          bytes - send->iovs[0].bytes - LEAT_TAG_BYTES, send->iov_count);
    assert_true(played.count < SENDS_MAX);
    played.sends[played.count++] = send;
}
static void net_close(struct leat_conn *at)
{
    trace("close %s\n", (const char *)at);
}
static void net_resume(struct leat_conn *at)
{
    trace("resume %s\n", (const char *)at);
}
/* The oldest of these is let go of. */
static void sent(leat_err rc)
{
    assert_true(played.count > 0);
    struct leat_send *send = played.sends[0];
    memmove(played.sends, played.sends + 1, --played.count * sizeof *played.sends);
    send->on_sent(send, rc);
}

static void on_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    assert_true(call->link == NULL && leat_list_empty(&call->list));
    trace("done %s %d %d '%s', %u left%s\n", (const char *)call->owner, rc, error->code,
          error->text, link_.call_count, answer ? ", an answer" : "");
}
static void on_sent(struct leat_link_answer *answer, leat_err rc)
{
    trace("answered %s %d\n", (const char *)answer->owner, rc);
}

static int begin(void **state)
{
    (void)state;
    static const struct leat_clock clock = {.now_us = clock_now};
    static const struct leat_net net = {.send = net_send, .close = net_close, .resume = net_resume};
    static struct leat_link *table[3];
    memset(&played, 0, sizeof played);
    memset(&links, 0, sizeof links);
    memset(&link_, 0, sizeof link_);
    played.now_us = 1000;
    env = (struct leat_env){.clock = &clock, .net = &net};
    links.env = &env;
    links.queued_bytes_max = QUEUED_MAX;
    links.table = table;
    links.table_capacity = 2; /* behind its end lies what must not be looked at */
    table[1] = table[2] = &link_;
    link_.links = &links;
    link_.net = (struct leat_conn *)conn;
    link_.mac_out = (struct leat_mac *)mac_out;
    link_.state = LINK_UP;
    link_.slot = 1;
    link_.connection = 5;
    link_.request_count = 9;
    leat_list_init(&link_.calls);
    trace_begin();
    return 0;
}
static int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    while (played.count) /* calls are told only of what has left */
        sent(LEAT_E_CLOSED);
    leat_links_slots_free(&links);
    return links.free_slots.first || leat_mem_bytes(LEAT_MEM_NET) != 0;
}
#define SEND_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static uint8_t control[LEAT_CONTROL_BYTES_MAX + 1];
static struct leat_iov pieces[LEAT_LINK_PAYLOADS_MAX + 1];

static struct leat_link_call call_of(const char *name, uint32_t control_bytes, unsigned count)
{
    struct leat_link_call call = {.kind = KIND,
                                  .control = control,
                                  .control_bytes = control_bytes,
                                  .payload = pieces,
                                  .payload_count = count,
                                  .on_done = on_done,
                                  .number = 77,
                                  .deadline_us = 77,
                                  .sent = true,
                                  .early = true,
                                  .owner = (void *)(uintptr_t)name};
    for (unsigned i = 0; i < count; i++)
        pieces[i] = (struct leat_iov){control + i, 10};
    return call;
}

/* ---- frames and slots ---- */

static void frame_has_its_header_its_pieces_and_its_tag(void **state)
{
    (void)state;
    struct leat_link_call call = call_of("a", 3, 2);
    memcpy(control, "\x92\x01\x02", 3);
    assert_int_equal(leat_link_call(&link_, &call), LEAT_OK);
    TRACE_IS("tag out of 47 bytes\nsend conn 400 0 1: 3 and 20 bytes in 4\n");
    struct leat_link_slot *slot = played.sends[0]->owner;
    assert_memory_equal(slot->bytes + LEAT_FRAME_HEADER_BYTES, "\x92\x01\x02", 3);
    assert_ptr_equal(played.sends[0]->iovs[1].base, control);
    assert_ptr_equal(played.sends[0]->iovs[2].base, control + 1);
    assert_int_equal(link_.queued_bytes, 3 + 20 + OVERHEAD);
    assert_int_equal(link_.slots_out, 1);
    assert_true(!call.sent && !call.early && call.number == 1 && call.deadline_us == UINT64_MAX);
    assert_ptr_equal(call.link, &link_);
    assert_int_equal(link_.call_count, 1);
    sent(LEAT_OK);
    TRACE_IS("enter, 0 slots out\nleave\n");
    assert_true(call.sent && link_.queued_bytes == 0);
    assert_ptr_equal(links.free_slots.first, slot);
    assert_int_equal(links.free_slot_count, 1);
    assert_true(!slot->big && !slot->call);
    /* The slot that was given back is taken again. */
    assert_int_equal(leat_link_tell(&link_, KIND + 1, "\x90", 1), LEAT_OK);
    TRACE_IS("tag out of 25 bytes\nsend conn 401 0 0: 1 and 0 bytes in 2\n");
    assert_ptr_equal(played.sends[0]->owner, slot);
    assert_true(!links.free_slots.first && links.free_slot_count == 0);
    sent(LEAT_OK);
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
    TRACE_IS("enter, 0 slots out\nleave\ndone a 8 8 'over', 0 left\n");
}

static void control_body_lies_in_the_slot_as_far_as_it_fits(void **state)
{
    (void)state;
    assert_int_equal(leat_link_tell(&link_, KIND, control, LINK_SLOT_CONTROL_BYTES), LEAT_OK);
    struct leat_link_slot *slot = played.sends[0]->owner;
    assert_true(played.big == slot->bytes && !slot->big);
    size_t bytes = leat_mem_bytes(LEAT_MEM_NET);
    sent(LEAT_OK);
    assert_int_equal(leat_link_tell(&link_, KIND, control, LINK_SLOT_CONTROL_BYTES + 1), LEAT_OK);
    assert_true(played.big == slot->big && slot->big);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET) - bytes,
                     LEAT_FRAME_HEADER_BYTES + LINK_SLOT_CONTROL_BYTES + 1);
    sent(LEAT_E_CLOSED);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), bytes);
    assert_true(!slot->big);
    trace_begin();
}

static void so_many_free_slots_are_kept(void **state)
{
    (void)state;
    links.queued_bytes_max = UINT64_MAX;
    for (unsigned i = 0; i < LINK_SLOTS_KEPT_MAX + 2; i++) {
        assert_int_equal(leat_link_tell(&link_, KIND, "\x90", 1), LEAT_OK);
        trace_begin();
    }
    assert_int_equal(link_.slots_out, LINK_SLOTS_KEPT_MAX + 2);
    size_t bytes = leat_mem_bytes(LEAT_MEM_NET) / (LINK_SLOTS_KEPT_MAX + 2);
    while (played.count) {
        sent(LEAT_OK);
        trace_begin();
    }
    assert_int_equal(links.free_slot_count, LINK_SLOTS_KEPT_MAX);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), bytes * LINK_SLOTS_KEPT_MAX);
}

static void memory_that_is_short_leaves_nothing_behind(void **state)
{
    (void)state;
    struct leat_link_call call = call_of("a", LINK_SLOT_CONTROL_BYTES + 1, 0);
    call.timeout_us = 100;
    for (unsigned n = 1; n <= 2; n++) { /* the large body, the slot */
        leat_mem_fail_at(n);
        assert_int_equal(leat_link_call(&link_, &call), LEAT_E_NO_MEMORY);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
    }
    leat_mem_fail_at(1);
    assert_int_equal(leat_link_tell(&link_, KIND, control, 1), LEAT_E_NO_MEMORY);
    TRACE_IS("");
    assert_true(link_.call_count == 0 && leat_list_empty(&link_.calls) && link_.slots_out == 0);
    struct leat_link_ticket ticket = {1, 3, 5, KIND};
    leat_mem_fail_at(1);
    leat_link_answer(&links, &ticket, "\x90", 1);
    TRACE_IS("cut 3 no memory for an answer\n");
    struct leat_link_answer answer = {.control = control, .on_sent = on_sent, .owner = answer_name};
    leat_mem_fail_at(1);
    assert_int_equal(leat_link_answer_send(&links, &ticket, &answer), LEAT_E_CLOSED);
    TRACE_IS("cut 3 no memory for an answer\n");
    assert_int_equal(link_.request_count, 7);
}

static void frame_closes_after_it_where_a_connection_is_left(void **state)
{
    (void)state;
    for (unsigned there = 0; there < 2; there++) {
        link_.net = (struct leat_conn *)conn;
        assert_true(leat_link_frame_send(&link_, KIND, 1, 2, NULL, 0, NULL, NULL, true));
        TRACE_IS("tag out of 24 bytes\nsend conn 400 1 2: 0 and 0 bytes in 2\n");
        if (!there) link_.net = NULL;
        sent(LEAT_OK);
        TRACE_IS(there ? "enter, 0 slots out\nclose conn\nleave\n" : "enter, 0 slots out\nleave\n");
    }
}

/* ---- calls ---- */

static leat_err call_with(uint32_t control_bytes, unsigned count, size_t first_bytes)
{
    static struct leat_link_call call;
    call = call_of("a", control_bytes, count);
    if (count) pieces[0].bytes = first_bytes;
    leat_err rc = leat_link_call(&link_, &call);
    if (rc != LEAT_OK) {
        TRACE_IS("");
        return rc;
    }
    sent(LEAT_OK);
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "");
    trace_begin();
    return LEAT_OK;
}

static void call_is_refused_where_no_frame_can_hold_it(void **state)
{
    (void)state;
    links.queued_bytes_max = UINT64_MAX;
    assert_int_equal(call_with(LEAT_CONTROL_BYTES_MAX, 0, 0), LEAT_OK);
    assert_int_equal(call_with(LEAT_CONTROL_BYTES_MAX + 1, 0, 0), LEAT_E_TOO_LARGE);
    assert_int_equal(call_with(2, 1, LEAT_FRAME_BYTES_MAX - OVERHEAD - 2), LEAT_OK);
    assert_int_equal(call_with(2, 1, LEAT_FRAME_BYTES_MAX - OVERHEAD - 1), LEAT_E_TOO_LARGE);
    assert_int_equal(call_with(2, 2, LEAT_FRAME_BYTES_MAX - OVERHEAD - 12), LEAT_OK);
    assert_int_equal(call_with(2, 2, LEAT_FRAME_BYTES_MAX - OVERHEAD - 11), LEAT_E_TOO_LARGE);
    assert_int_equal(call_with(2, LEAT_LINK_PAYLOADS_MAX, 10), LEAT_OK);
    assert_int_equal(call_with(2, LEAT_LINK_PAYLOADS_MAX + 1, 10), LEAT_E_TOO_LARGE);
}

static void call_waits_where_too_much_is_queued(void **state)
{
    (void)state;
    assert_int_equal(call_with(100, 0, 0), LEAT_OK);
    link_.queued_bytes = QUEUED_MAX - 100 - OVERHEAD;
    assert_int_equal(call_with(100, 0, 0), LEAT_OK);
    assert_int_equal(call_with(101, 0, 0), LEAT_E_AGAIN);
    assert_int_equal(leat_link_tell(&link_, KIND, control, 101), LEAT_E_AGAIN);
    link_.call_count = LEAT_LINK_CALLS_MAX;
    assert_int_equal(call_with(10, 0, 0), LEAT_E_AGAIN);
    link_.call_count = 0;
}

static void call_needs_a_link_that_is_up(void **state)
{
    (void)state;
    link_.gone = true;
    assert_int_equal(call_with(1, 0, 0), LEAT_E_CLOSED);
    assert_int_equal(leat_link_tell(&link_, KIND, control, 1), LEAT_E_CLOSED);
    link_.gone = false;
    link_.state = LINK_HELLO;
    assert_int_equal(call_with(1, 0, 0), LEAT_E_CLOSED);
    link_.state = LINK_CLOSING;
    assert_int_equal(call_with(1, 0, 0), LEAT_E_CLOSED);
    link_.call_count = LEAT_LINK_CALLS_MAX; /* waiting for room there would be for ever */
    assert_int_equal(call_with(1, 0, 0), LEAT_E_CLOSED);
    link_.call_count = 0;
}

static void calls_have_numbers_and_deadlines(void **state)
{
    (void)state;
    struct leat_link_call a = call_of("a", 1, 0), b = call_of("b", 1, 0), one = call_of("c", 1, 0);
    link_.next_number = UINT32_MAX - 1;
    a.timeout_us = 250;
    assert_int_equal(leat_link_call(&link_, &a), LEAT_OK);
    TRACE_IS("tag out of 25 bytes\nsend conn 400 0 4294967295: 1 and 0 bytes in 2\ndue 1250\n");
    assert_int_equal(a.deadline_us, 1250);
    assert_int_equal(leat_link_call(&link_, &b), LEAT_OK);
    TRACE_IS("tag out of 25 bytes\nsend conn 400 0 1: 1 and 0 bytes in 2\n");
    one.one_way = true;
    assert_int_equal(leat_link_call(&link_, &one), LEAT_OK);
    TRACE_IS("tag out of 25 bytes\nsend conn 400 0 0: 1 and 0 bytes in 2\n");
    assert_ptr_equal(link_.calls.next, &a.list);
    assert_ptr_equal(link_.calls.prev, &one.list);
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
    TRACE_IS("done a 8 8 'over', 2 left\ndone b 8 8 'over', 1 left\n"
             "done c 8 8 'over', 0 left\n");
}

static void call_has_left_when_the_network_says_so(void **state)
{
    (void)state;
    struct leat_link_call a = call_of("a", 1, 0), one = call_of("b", 1, 0);
    one.one_way = true;
    assert_int_equal(leat_link_call(&link_, &one), LEAT_OK);
    assert_int_equal(leat_link_call(&link_, &a), LEAT_OK);
    trace_begin();
    sent(LEAT_OK);
    TRACE_IS("enter, 1 slots out\ndone b 0 0 '', 1 left\nleave\n");
    sent(LEAT_E_CLOSED);
    TRACE_IS("enter, 0 slots out\nleave\n");
    assert_false(a.sent);
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
    trace_begin();
    /* Its answer came before: reading goes on, where there is a connection to read from. */
    for (unsigned up = 0; up < 2; up++) {
        link_.state = LINK_UP;
        assert_int_equal(leat_link_call(&link_, &a), LEAT_OK);
        trace_begin();
        a.early = true;
        link_.state = up ? LINK_UP : LINK_CLOSING;
        sent(LEAT_OK);
        TRACE_IS(up ? "enter, 0 slots out\nresume conn\nleave\n" : "enter, 0 slots out\nleave\n");
        assert_true(a.sent && !a.early);
        leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
        trace_begin();
    }
}

static struct leat_frame answer_frame(uint16_t kind, uint8_t flags, const void *bytes, size_t count)
{
    return (struct leat_frame){
        .kind = kind, .flags = flags, .control = bytes, .control_bytes = (uint32_t)count};
}
/* Ends a call by this frame. */
static void ends_by(const struct leat_frame *frame)
{
    struct leat_link_call call = call_of("a", 1, 0);
    assert_int_equal(leat_link_call(&link_, &call), LEAT_OK);
    sent(LEAT_OK);
    trace_begin();
    leat_link_answered(&link_, &call, frame);
}
static void refused_by(leat_err code, const char *text)
{
    uint8_t bytes[1024];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_error_encode(&writer, code, text);
    struct leat_frame frame =
        answer_frame(KIND, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, bytes, writer.used);
    ends_by(&frame);
}
static void call_ends_as_its_answer_says(void **state)
{
    (void)state;
    struct leat_frame frame = answer_frame(KIND, LEAT_FRAME_ANSWER, "\x90", 1);
    ends_by(&frame);
    TRACE_IS("done a 0 0 '', 0 left, an answer\n");
    frame.kind = KIND + 1;
    ends_by(&frame);
    TRACE_IS("done a 20 20 'the peer answered with another kind', 0 left\n");
    frame = answer_frame(KIND, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR, "\xff", 1);
    ends_by(&frame);
    TRACE_IS("done a 20 20 '', 0 left\n");
    refused_by(LEAT_E_AGAIN, "later");
    TRACE_IS("done a 1 1 'later', 0 left\n");
    refused_by(LEAT_OK, "what?"); /* a refusal without a reason is none of ours */
    TRACE_IS("done a 20 20 'what?', 0 left\n");
    char text[300];
    memset(text, 'x', sizeof text);
    for (unsigned bytes = 254; bytes <= 257; bytes++) {
        text[bytes] = '\0';
        refused_by(LEAT_E_AGAIN, text);
        assert_int_equal(strspn(strchr(trace_text, 'x'), "x"), bytes < 255 ? bytes : 255);
        text[bytes] = 'x';
    }
}

static void calls_expire_at_their_deadlines(void **state)
{
    (void)state;
    struct leat_link_call calls[4];
    static const uint64_t timeouts[] = {300, 100, 200, 0};
    static const char *const names[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        calls[i] = call_of(names[i], 1, 0);
        calls[i].timeout_us = timeouts[i];
        assert_int_equal(leat_link_call(&link_, &calls[i]), LEAT_OK);
        sent(LEAT_OK);
    }
    trace_begin();
    uint64_t next_us = UINT64_MAX;
    leat_link_calls_expire(&link_, 1099, &next_us);
    TRACE_IS("");
    assert_int_equal(next_us, 1100);
    next_us = 1050; /* earlier than any of them */
    leat_link_calls_expire(&link_, 1099, &next_us);
    assert_int_equal(next_us, 1050);
    next_us = UINT64_MAX;
    leat_link_calls_expire(&link_, 1200, &next_us);
    TRACE_IS("done b 2 2 'no answer within the time allowed; whether it took effect is unknown', 3 "
             "left\n"
             "done c 2 2 'no answer within the time allowed; whether it took effect is unknown', 2 "
             "left\n");
    assert_int_equal(next_us, 1300);
    /* Half of one may have left: the connection ends, and with it all that come behind. */
    calls[0].sent = false;
    leat_link_calls_expire(&link_, 1300, &next_us);
    TRACE_IS("cut 2 the peer takes no bytes within a call's time\n");
    assert_int_equal(link_.call_count, 2);
    /* Of those that go with a connection, whose time is over is told so. */
    played.now_us = 1299;
    calls[3].deadline_us = 1299;
    leat_link_calls_fail(&link_, LEAT_E_CLOSED, "lost");
    TRACE_IS("done a 6 6 'lost', 1 left\n"
             "done d 2 2 'lost', 0 left\n");
}

/* Goal: where this actor ran late each call gets until then, once. */
static void late_actor_excuses_calls_once(void **state)
{
    (void)state;
    struct leat_link_call calls[3];
    static const uint64_t timeouts[] = {300, 100, 0};
    for (unsigned i = 0; i < 3; i++) {
        calls[i] = call_of("a", 1, 0);
        calls[i].timeout_us = timeouts[i];
        assert_int_equal(leat_link_call(&link_, &calls[i]), LEAT_OK);
        sent(LEAT_OK);
    }
    leat_link_calls_excuse(&link_, 1250);
    assert_int_equal(calls[0].deadline_us, 1300);
    assert_int_equal(calls[1].deadline_us, 1250);
    assert_true(calls[2].deadline_us == UINT64_MAX);
    leat_link_calls_excuse(&link_,
                           1300); /* the first call has the time anyway, and keeps its excuse */
    leat_link_calls_excuse(&link_, 1400);
    assert_int_equal(calls[0].deadline_us, 1400);
    assert_int_equal(calls[1].deadline_us, 1250);
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
    trace_begin();
}

static void expiry_cuts_behind_those_that_are_due(void **state)
{
    (void)state;
    struct leat_link_call calls[3];
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        calls[i] = call_of(names[i], 1, 0);
        calls[i].timeout_us = 100;
        assert_int_equal(leat_link_call(&link_, &calls[i]), LEAT_OK);
    }
    calls[0].sent = true;
    trace_begin();
    uint64_t next_us = UINT64_MAX;
    leat_link_calls_expire(&link_, 1100, &next_us);
    TRACE_IS("cut 2 the peer takes no bytes within a call's time\n"
             "done a 2 2 'no answer within the time allowed; whether it took effect is unknown', 2 "
             "left\n");
    assert_int_equal(next_us, UINT64_MAX);
    played.now_us = 1100;
    leat_link_calls_fail(&link_, LEAT_E_CANCELLED, "over");
    TRACE_IS("done b 8 8 'over', 1 left\n"
             "done c 8 8 'over', 0 left\n");
}

/* ---- answers ---- */

static void ticket_is_of_one_connection(void **state)
{
    (void)state;
    struct leat_link_ticket ticket = {.slot = 1, .request = 3, .connection = 5, .kind = KIND};
    assert_ptr_equal(leat_link_of(&links, &ticket), &link_);
    ticket.connection = 4;
    assert_null(leat_link_of(&links, &ticket));
    ticket.connection = 5;
    ticket.slot = 0;
    assert_null(leat_link_of(&links, &ticket));
    ticket.slot = 2;
    assert_null(leat_link_of(&links, &ticket));
    ticket.slot = 1;
    link_.gone = true;
    assert_null(leat_link_of(&links, &ticket));
    link_.gone = false;
    link_.state = LINK_CLOSING;
    assert_null(leat_link_of(&links, &ticket));
}

static void answers_go_to_who_waits(void **state)
{
    (void)state;
    struct leat_link_ticket ticket = {.slot = 1, .request = 3, .connection = 5, .kind = KIND};
    leat_link_answer(&links, &ticket, "\x91\x05", 2);
    TRACE_IS("tag out of 26 bytes\nsend conn 400 1 3: 2 and 0 bytes in 2\n");
    assert_memory_equal((const uint8_t *)played.big + LEAT_FRAME_HEADER_BYTES, "\x91\x05", 2);
    assert_int_equal(link_.request_count, 8);
    pieces[0] = (struct leat_iov){control, 30};
    struct leat_link_answer answer = {.control = "\x92\x06\x07",
                                      .control_bytes = 3,
                                      .payload = pieces,
                                      .payload_count = 1,
                                      .on_sent = on_sent,
                                      .owner = answer_name};
    assert_int_equal(leat_link_answer_send(&links, &ticket, &answer), LEAT_OK);
    TRACE_IS("tag out of 57 bytes\nsend conn 400 1 3: 3 and 30 bytes in 3\n");
    assert_memory_equal((const uint8_t *)played.big + LEAT_FRAME_HEADER_BYTES, "\x92\x06\x07", 3);
    sent(LEAT_OK);
    TRACE_IS("enter, 1 slots out\nleave\n");
    sent(LEAT_E_CLOSED);
    TRACE_IS("enter, 0 slots out\n"
             "answered x 6\n"
             "leave\n");
    assert_null(((struct leat_link_slot *)links.free_slots.first)->answer);
    assert_int_equal(link_.request_count, 7);
    ticket.request = 0; /* nobody waits */
    leat_link_answer(&links, &ticket, "\x90", 1);
    assert_int_equal(leat_link_answer_send(&links, &ticket, &answer), LEAT_E_CLOSED);
    leat_link_answer_error(&links, &ticket, LEAT_E_AGAIN, "no");
    ticket.request = 3;
    ticket.connection = 6;
    leat_link_answer(&links, &ticket, "\x90", 1);
    TRACE_IS("");
    assert_int_equal(link_.request_count, 7);
}

static void refusal_has_a_code_and_a_sentence(void **state)
{
    (void)state;
    struct leat_link_ticket ticket = {.slot = 1, .request = 3, .connection = 5, .kind = KIND};
    char text[LEAT_ERROR_TEXT_BYTES + 2];
    memset(text, 'y', sizeof text);
    static const size_t lengths[] = {2, LEAT_ERROR_TEXT_BYTES - 1, LEAT_ERROR_TEXT_BYTES,
                                     LEAT_ERROR_TEXT_BYTES + 1};
    for (unsigned i = 0; i < 4; i++) {
        struct leat_msg_error refused;
        text[lengths[i]] = '\0';
        leat_link_answer_error(&links, &ticket, LEAT_E_AGAIN, text);
        const struct leat_iov *head = &played.sends[0]->iovs[0];
        assert_int_equal(
            leat_msg_error_decode((const uint8_t *)head->base + LEAT_FRAME_HEADER_BYTES,
                                  head->bytes - LEAT_FRAME_HEADER_BYTES, &refused),
            LEAT_OK);
        assert_int_equal(refused.code, LEAT_E_AGAIN);
        assert_int_equal(refused.text.bytes, lengths[i < 2 ? i : 1]);
        assert_memory_equal(refused.text.text, text, refused.text.bytes);
        assert_non_null(strstr(trace_text, "send conn 400 3 3: "));
        sent(LEAT_OK);
        trace_begin();
        text[lengths[i]] = 'y';
    }
    assert_int_equal(link_.request_count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEND_TEST(frame_has_its_header_its_pieces_and_its_tag),
        SEND_TEST(control_body_lies_in_the_slot_as_far_as_it_fits),
        SEND_TEST(so_many_free_slots_are_kept),
        SEND_TEST(memory_that_is_short_leaves_nothing_behind),
        SEND_TEST(frame_closes_after_it_where_a_connection_is_left),
        SEND_TEST(call_is_refused_where_no_frame_can_hold_it),
        SEND_TEST(call_waits_where_too_much_is_queued),
        SEND_TEST(call_needs_a_link_that_is_up),
        SEND_TEST(calls_have_numbers_and_deadlines),
        SEND_TEST(call_has_left_when_the_network_says_so),
        SEND_TEST(call_ends_as_its_answer_says),
        SEND_TEST(calls_expire_at_their_deadlines),
        SEND_TEST(late_actor_excuses_calls_once),
        SEND_TEST(expiry_cuts_behind_those_that_are_due),
        SEND_TEST(ticket_is_of_one_connection),
        SEND_TEST(answers_go_to_who_waits),
        SEND_TEST(refusal_has_a_code_and_a_sentence),
    };
    return cmocka_run_group_tests_name("link-send", tests, NULL, NULL);
}
