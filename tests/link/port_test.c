/* SPDX-License-Identifier: Apache-2.0 */
/* Links on a port that does what the test says: the port refuses, keeps buffers for longer, delivers answers before it
 * has released the request. All memory comes back, and each allocation fails once. */
#include "tests/link/port_ends.h"

static void port_that_refuses_is_told_and_tried_again(void **state)
{
    (void)state;
    connect_rc = LEAT_E_UNREACHABLE;
    assert_int_equal(open_link(), LEAT_OK);
    assert_int_equal(ends[0].unborn, 0); /* nothing is told inside */
    run_ms(1);
    assert_int_equal(ends[0].unborn, 1);
    assert_int_equal(ends[0].last.code, LEAT_E_UNREACHABLE);
    run_ms(3000);
    unsigned unborn = ends[0].unborn;
    assert_in_range(unborn, 7, 14); /* 20 ms that double to a second */
    connect_rc = LEAT_OK;
    run_ms(1001);
    assert_int_equal(ends[0].ups, 1);
    /* It was up: the next pause is the shortest again. */
    connect_rc = LEAT_E_UNREACHABLE;
    for (unsigned c = 1; c < conn_count; c += 2)
        conns[c].closing = true;
    run_ms(1);
    assert_int_equal(ends[0].downs, 1);
    assert_int_equal(ends[0].last.code, LEAT_E_CLOSED);
    run_ms(21);
    assert_int_equal(ends[0].unborn, unborn + 1);
}

/* Word of the peer ends the pause, and the next is the shortest again. */
static void pause_ends_when_the_peer_is_said_to_be_up(void **state)
{
    (void)state;
    connect_rc = LEAT_E_UNREACHABLE;
    assert_int_equal(open_link(), LEAT_OK);
    for (unsigned unborn = 0; ends[0].unborn < 10; unborn = ends[0].unborn)
        while (ends[0].unborn == unborn)
            run_ms(1);
    run_ms(100); /* of half a second at least */
    unsigned unborn = ends[0].unborn;
    leat_link_retry(ends[0].link);
    assert_int_equal(ends[0].unborn, unborn);
    run_ms(1);
    assert_int_equal(ends[0].unborn, unborn + 1);
    run_ms(21);
    assert_int_equal(ends[0].unborn, unborn + 2);
}

static void links_end_with_one_that_was_just_closed(void **state)
{
    (void)state;
    up();
    struct caller held = {0};
    assert_int_equal(ask(&held, KIND_HOLD, 10), LEAT_OK);
    leat_link_close(&ends[0].link);
    assert_int_equal(held.done, 0); /* and destroyed, before the port has said that it is closed */
    leat_links_destroy(&ends[0].links);
    run_ms(2);
    assert_int_equal(held.done, 1);
    assert_int_equal(held.rc, LEAT_E_CANCELLED);
}

/* One request alone: no other frame makes the link read again. */
static void question_that_was_kept_is_answered_when_it_is_let_go_of(void **state)
{
    (void)state;
    up();
    struct caller call = {0}, next = {0};
    keep_sends = true;
    assert_int_equal(ask(&call, KIND, 10), LEAT_OK);
    run_ms(5);
    assert_int_equal(call.done, 0);
    keep_sends = false;
    run_ms(1);
    assert_int_equal(call.done, 1);
    assert_int_equal(ask(&next, KIND, 10), LEAT_OK);
    run_ms(1);
    assert_true(next.matched);
}

/* The answer comes before the port has released the request: the caller is told when both have happened. */
static void port_that_keeps_a_question_has_its_answer_wait(void **state)
{
    (void)state;
    up();
    struct caller calls[3] = {0};
    keep_sends = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(&calls[i], KIND, 10 + i), LEAT_OK);
    struct caller tell = {.call = {.one_way = true}};
    assert_int_equal(ask(&tell, KIND, 5), LEAT_OK);
    run_ms(50);
    assert_int_equal(ends[1].requests, 4);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(calls[i].done, 0);
    assert_int_equal(tell.done, 0);
    assert_true(leat_link_queued_bytes(ends[0].link) > 0);
    keep_sends = false;
    run_ms(5);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(calls[i].done, 1);
        assert_true(calls[i].matched);
    }
    assert_int_equal(tell.done, 1);
    assert_int_equal(tell.rc, LEAT_OK);
    assert_int_equal(leat_link_queued_bytes(ends[0].link), 0);
    run_ms(5000);
    assert_int_equal(ends[0].downs, 0);
}

static void call_of_which_half_may_have_left_takes_the_link_with_it(void **state)
{
    (void)state;
    up();
    struct caller held = {0}, late = {.call = {.timeout_us = 100 * MS}}, other = {0};
    assert_int_equal(ask(&held, KIND_HOLD, 10), LEAT_OK);
    run_ms(5);
    stall = true;
    assert_int_equal(ask(&late, KIND, 10), LEAT_OK);
    assert_int_equal(ask(&other, KIND, 10), LEAT_OK);
    run_ms(99);
    assert_int_equal(late.done, 0);
    run_ms(2);
    assert_int_equal(late.rc, LEAT_E_TIMEOUT);
    assert_int_equal(other.rc, LEAT_E_CLOSED);
    assert_int_equal(held.rc, LEAT_E_CLOSED);
    assert_int_equal(late.done + other.done + held.done, 3);
    assert_int_equal(ends[0].last.code, LEAT_E_TIMEOUT);
}

struct answer {
    struct leat_link_answer answer;
    unsigned sent;
    leat_err rc;
};
static void answer_on_sent(struct leat_link_answer *answer, leat_err rc)
{
    struct answer *it = answer->owner;
    it->sent++;
    it->rc = rc;
}

static void answer_with_payload_is_let_go_of_once(void **state)
{
    (void)state;
    up();
    struct caller calls[2] = {0};
    static const uint8_t payload[100];
    struct leat_iov iov = {payload, sizeof payload};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ask(&calls[i], KIND_HOLD, 10), LEAT_OK);
    run_ms(5);
    assert_int_equal(ends[1].held_count, 2);
    struct answer answers[2];
    for (unsigned i = 0; i < 2; i++) {
        answers[i] = (struct answer){.answer = {.control = payload,
                                                .control_bytes = 10,
                                                .payload = &iov,
                                                .payload_count = 1,
                                                .on_sent = answer_on_sent}};
        answers[i].answer.owner = &answers[i];
        keep_sends = i == 1;
        assert_int_equal(leat_link_answer_send(ends[1].links, &ends[1].held[i], &answers[i].answer),
                         LEAT_OK);
        assert_int_equal(answers[i].sent, 0);
        run_ms(2);
        assert_int_equal(answers[i].sent, 1 - i);
        assert_true(calls[i].matched);
    }
    leat_link_close(&ends[0].link);
    assert_null(ends[0].link);
    run_ms(2);
    assert_int_equal(answers[0].rc, LEAT_OK);
    assert_int_equal(answers[1].sent, 1);
    assert_int_equal(answers[1].rc, LEAT_E_CLOSED);
    assert_int_equal(leat_link_answer_send(ends[1].links, &ends[1].held[0], &answers[0].answer),
                     LEAT_E_CLOSED);
    assert_int_equal(answers[0].sent, 1);
}

static void refusal_of_a_call_has_its_code_and_words(void **state)
{
    (void)state;
    up();
    struct caller call = {0};
    assert_int_equal(ask(&call, KIND_ERROR, 10), LEAT_OK);
    run_ms(2);
    assert_int_equal(call.rc, LEAT_E_DISK);
    assert_int_equal(call.error.code, LEAT_E_DISK);
    assert_string_equal(call.error.text, "the disk is full");
}

static void calls_are_taken_up_to_their_limits(void **state)
{
    (void)state;
    up();
    struct caller large = {0}, most = {0}, many = {0};
    static const uint8_t byte;
    struct leat_iov pieces[LEAT_LINK_PAYLOADS_MAX + 1];
    for (unsigned i = 0; i <= LEAT_LINK_PAYLOADS_MAX; i++)
        pieces[i] = (struct leat_iov){&byte, 1};
    assert_int_equal(ask(&large, KIND, LEAT_CONTROL_BYTES_MAX + 1), LEAT_E_TOO_LARGE);
    assert_int_equal(ask(&most, KIND, LEAT_CONTROL_BYTES_MAX), LEAT_OK);
    many.call.payload = pieces;
    many.call.payload_count = LEAT_LINK_PAYLOADS_MAX + 1;
    assert_int_equal(ask(&many, KIND, 1), LEAT_E_TOO_LARGE);
    many.call.payload_count = LEAT_LINK_PAYLOADS_MAX;
    assert_int_equal(ask(&many, KIND, 1), LEAT_OK);
    run_ms(10);
    assert_true(most.matched && many.matched);
    ends_free();
    /* As many bytes under way as may be, and not one more. */
    const uint64_t frame = LEAT_FRAME_HEADER_BYTES + 100 + LEAT_TAG_BYTES;
    assert_int_equal(ends_make(3 * frame), LEAT_OK);
    up();
    struct caller calls[4] = {0};
    keep_sends = true;
    assert_int_equal(ask(&calls[0], KIND, 100), LEAT_OK);
    assert_int_equal(ask(&calls[1], KIND, 100), LEAT_OK);
    assert_int_equal(leat_link_queued_bytes(ends[0].link), 2 * frame);
    assert_int_equal(ask(&calls[2], KIND, 101), LEAT_E_AGAIN);
    assert_int_equal(ask(&calls[2], KIND, 100), LEAT_OK);
    assert_int_equal(ask(&calls[3], KIND, 1), LEAT_E_AGAIN);
    keep_sends = false;
    run_ms(5);
    assert_int_equal(ask(&calls[3], KIND, 1), LEAT_OK);
    run_ms(5);
    for (unsigned i = 0; i < 4; i++)
        assert_true(calls[i].done == 1 && calls[i].rc == LEAT_OK);
}

/* This end itself stood still: that is no silence of the peer. */
static void link_stays_when_its_own_actor_ran_late(void **state)
{
    (void)state;
    up();
    run_ms(1000);
    now_us += 10000 * MS;
    leat_timers_run(&ends[0].timers);
    run_ms(1000);
    assert_int_equal(ends[0].downs, 0);
    stall = true; /* silence of the other, while this one runs, is its end */
    run_ms(2600);
    assert_int_equal(ends[0].downs, 1);
    assert_int_equal(ends[0].last.code, LEAT_E_TIMEOUT);
}

/* A callback may close the link that it was called for. */
static void link_may_be_closed_by_who_is_told(void **state)
{
    (void)state;
    ends[0].close_on_up = true;
    assert_int_equal(open_link(), LEAT_OK);
    run_ms(5);
    assert_int_equal(ends[0].ups, 1);
    assert_null(ends[0].link);
    assert_int_equal(ends[1].downs, 1);
    ends[0].close_on_up = false;
    ends[0].close_on_down = true;
    connect_rc = LEAT_E_UNREACHABLE;
    assert_int_equal(open_link(), LEAT_OK);
    run_ms(50);
    assert_null(ends[0].link);
    assert_int_equal(ends[0].unborn, 1);
    connect_rc = LEAT_OK;
    assert_int_equal(open_link(), LEAT_OK);
    run_ms(5);
    struct caller calls[2] = {0};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ask(&calls[i], KIND_HOLD, 10), LEAT_OK);
    calls[0].close = true;
    run_ms(5);
    leat_link_answer(ends[1].links, &ends[1].held[0], "ten bytes.", 10);
    run_ms(5);
    assert_null(ends[0].link);
    assert_int_equal(calls[0].rc, LEAT_OK);
    assert_int_equal(calls[1].rc, LEAT_E_CANCELLED);
    assert_int_equal(calls[1].done, 1);
}

/* Two links, a fence, a call with a large body, a refusal. */
static void story(void)
{
    struct caller small = {0}, large = {0}, refused = {0};
    if (open_link() != LEAT_OK) return;
    for (unsigned i = 0; i < 40 && !leat_link_is_up(ends[0].link); i++)
        run_ms(100);
    if (ask(&small, KIND, 10) != LEAT_OK) small.done = 1;
    if (ask(&large, KIND, 2000) != LEAT_OK) large.done = 1;
    if (ask(&refused, KIND_ERROR, 10) != LEAT_OK) refused.done = 1;
    leat_err fenced = leat_links_fence(ends[1].links, "somebody", 5);
    assert_true(fenced == LEAT_OK || fenced == LEAT_E_NO_MEMORY);
    run_ms(2500); /* what was not answered for lack of memory took its link with it */
    for (unsigned i = 0; i < 20; i++)
        run_ms(100);
    leat_link_close(&ends[0].link);
    run_ms(5);
    assert_int_equal(small.done, 1);
    assert_int_equal(large.done, 1);
    assert_int_equal(refused.done, 1);
}

static void allocations_fail_one_by_one_and_nothing_stays_behind(void **state)
{
    (void)state;
    ends_free();
    bool survived = false;
    for (uint64_t at = 1; !survived; at++) {
        leat_mem_fail_at(at);
        leat_err rc = ends_make(0);
        if (rc == LEAT_OK) story();
        survived = leat_mem_calls() < at;
        leat_mem_fail_at(0);
        if (rc == LEAT_OK) assert_true(ends[0].ups > 0 || !survived);
        ends_free();
        assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), memory_before);
        assert_true(!survived || at > 10);
    }
    assert_int_equal(ends_make(0), LEAT_OK);
}

int main(void)
{
#define PORT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        PORT_TEST(port_that_refuses_is_told_and_tried_again),
        PORT_TEST(pause_ends_when_the_peer_is_said_to_be_up),
        PORT_TEST(links_end_with_one_that_was_just_closed),
        PORT_TEST(question_that_was_kept_is_answered_when_it_is_let_go_of),
        PORT_TEST(port_that_keeps_a_question_has_its_answer_wait),
        PORT_TEST(call_of_which_half_may_have_left_takes_the_link_with_it),
        PORT_TEST(answer_with_payload_is_let_go_of_once),
        PORT_TEST(refusal_of_a_call_has_its_code_and_words),
        PORT_TEST(calls_are_taken_up_to_their_limits),
        PORT_TEST(link_stays_when_its_own_actor_ran_late),
        PORT_TEST(link_may_be_closed_by_who_is_told),
        PORT_TEST(allocations_fail_one_by_one_and_nothing_stays_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
