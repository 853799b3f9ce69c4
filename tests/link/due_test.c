/* SPDX-License-Identifier: Apache-2.0 */
/* link/links.c and life.c alone, time: when a sweep is armed, what it does to a link in each state at each bound,
 * pauses between attempts, and cutting. */
#include "tests/link/links_alone.h"

#define SWEPT "links were refused %llu\n"

static void sweeps(void)
{
    links->timer.on_expired(&links->timer);
}

/* Sweeps at a time; what happens then, and when the next is due (from then; -1: never). */
static void swept_is(uint64_t at_us, const char *calls, int64_t next, const char *file, int line)
{
    char expected[500], timer[40] = "";
    played.now_us = at_us;
    links->next_us = at_us;
    trace_begin();
    sweeps();
    if (next >= 0) snprintf(timer, sizeof timer, "timer %lld\n", (long long)next);
    snprintf(expected, sizeof expected, SWEPT "%s%s", (unsigned long long)at_us, calls, timer);
    trace_must_be(expected, file, line);
    assert_int_equal(links->next_us, next < 0 ? UINT64_MAX : at_us + (uint64_t)next);
    assert_false(links->sweeping);
}
#define SWEPT_IS(at_us, calls, next) swept_is((at_us), (calls), (next), __FILE__, __LINE__)

/* Goal: a sweep is armed for the earliest that is asked for, and not again for what is no earlier. */
static void due_arms_for_the_earliest(void **state)
{
    (void)state;
    creates();
    leat_links_due(links, 12000);
    TRACE_IS("timer 2000\n");
    leat_links_due(links, 12000);
    leat_links_due(links, 12001);
    TRACE_IS("");
    leat_links_due(links, 11999);
    TRACE_IS("timer 1999\n");
    leat_links_due(links, 10001);
    leat_links_due(links, 10000);
    leat_links_due(links, 9000); /* past: at once */
    TRACE_IS("timer 1\ntimer 0\ntimer 0\n");
    assert_int_equal(links->next_us, 9000);
    links->next_us = UINT64_MAX;
    links->sweeping = true; /* armed at its end */
    leat_links_due(links, 10500);
    TRACE_IS("");
    assert_int_equal(links->next_us, 10500);
    links->sweeping = false;
    links->closing = true;
    leat_links_due(links, 10400);
    TRACE_IS("");
    assert_int_equal(links->next_us, 10500);
    links->closing = false;
}

/* Goal: the pause doubles up to its longest, and a random half of it is taken off. */
static void retry_later_doubles_the_pause(void **state)
{
    (void)state;
    creates();
    static const uint64_t pauses[] = {20, 40, 80, 160, 320, 500, 500};
    struct leat_link *link = in_state(LINK_CLOSING);
    link->net = NULL;
    for (unsigned i = 0; i < 7; i++) {
        uint64_t half = pauses[i] / 2;
        for (unsigned k = 0; k < 4; k++) {
            const uint64_t random[] = {0, half, half + 1, half + 3}, off[] = {0, half, 0, 2};
            link->attempts = i;
            link->state = LINK_CLOSING;
            played.random = random[k];
            links->next_us = UINT64_MAX;
            leat_link_retry_later(link);
            assert_int_equal(link->try_at_us, 10000 + pauses[i] - off[k]);
            assert_int_equal(links->next_us, link->try_at_us);
            assert_int_equal(link->attempts, i + 1);
            assert_int_equal(link->state, LINK_WAITING);
        }
    }
    played.random = 0;
    links->retry_us_min = 1;
    links->retry_us_max = UINT64_MAX;
    for (unsigned attempts = 15; attempts < 19; attempts++) {
        link->attempts = attempts;
        leat_link_retry_later(link);
        assert_int_equal(link->try_at_us - 10000, attempts == 15 ? 1 << 15 : 1 << 16);
    }
    ends(link);
}

/* Goal: a link that waits connects at its time; then it has as long as silence may last. */
static void sweep_connects_when_it_is_time(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_WAITING);
    link->try_at_us = 10010;
    SWEPT_IS(10009, "", 1);
    SWEPT_IS(10010, "connect 0\n", SILENCE);
    link->state = LINK_WAITING;
    played.no_connect = true;
    SWEPT_IS(10010, "connect 0\n", RETRY_MIN);
    ends(link);
    SWEPT_IS(10010, "", -1);
}

/* Goal: a peer that sends no hello, or does not read a refusal, is disconnected when that has taken too long. */
static void sweep_ends_what_takes_too_long(void **state)
{
    (void)state;
    static const enum leat_link_state states[] = {LINK_CONNECTING, LINK_NONCE, LINK_HELLO};
    creates();
    for (unsigned i = 0; i < 3; i++) {
        struct leat_link *link = in_state(states[i]);
        link->since_us = 9500;
        SWEPT_IS(9500 + SILENCE - 1, "", 1);
        SWEPT_IS(9500 + SILENCE, "no stranger 0\nclose conn\n", -1);
        assert_int_equal(link->state, LINK_CLOSING);
        assert_int_equal(link->why.code, LEAT_E_TIMEOUT);
        assert_string_equal(link->why.text, "no hello within the time allowed");
        ends(link);
    }
    struct leat_link *link = in_state(LINK_CLOSING);
    link->since_us = 9500;
    SWEPT_IS(9500 + SILENCE - 1, "", 1);
    SWEPT_IS(9500 + SILENCE, "close conn\n", -1);
    link->gone = true;
    SWEPT_IS(9500 + SILENCE, "", -1);
    ends(link);
}

/* Goal: a peer that is up is asked when nothing was heard of it, at even pauses, and cut after too long a silence. */
static void sweep_asks_who_is_silent(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_UP);
    link->heard_us = 10000;
    SWEPT_IS(10000 + PING - 1, "expire 0\n", 1);
    SWEPT_IS(10000 + PING, "expire 0\nping 0\n", PING);
    assert_int_equal(link->pinged_us, 10000 + PING);
    SWEPT_IS(10000 + 2 * PING - 1, "expire 0\n", 1);
    link->heard_us = 10000 + PING + 1; /* it answers */
    SWEPT_IS(10000 + 2 * PING, "expire 0\n", 1);
    played.no_memory = true;
    SWEPT_IS(10000 + 2 * PING + 1, "expire 0\nping 0\n", PING);
    played.no_memory = false;
    played.call_due_us = 10000 + 2 * PING + 50;
    SWEPT_IS(10000 + 2 * PING + 2, "expire 0\n", 48); /* a call's time is sooner */
    played.call_due_us = 20000;
    link->heard_us = 10000;
    link->pinged_us = 10000 + SILENCE - 10;
    SWEPT_IS(10000 + SILENCE - 1, "expire 0\n", 1);
    SWEPT_IS(10000 + SILENCE, "expire 0\nno stranger 0\nclose conn\n", 20000 - 10000 - SILENCE);
    assert_int_equal(link->why.code, LEAT_E_TIMEOUT);
    assert_string_equal(link->why.text, "nothing was heard of the peer for too long");
    ends(link);
    link = in_state(LINK_UP);
    link->heard_us = 10000;
    played.call_due_us = 0;
    played.expiry_cuts = true;
    SWEPT_IS(10001, "expire 0\nno stranger 0\nclose conn\n", -1);
    assert_string_equal(link->why.text, "a call");
    ends(link);
    link = in_state(LINK_UP);
    link->net = NULL;
    link->net = (struct leat_conn *)conn;
    played.expiry_cuts = false;
    played.call_due_us = 9000; /* past: at once */
    played.now_us = 10000;
    trace_begin();
    sweeps();
    TRACE_IS("links were refused 10000\nexpire 0\ntimer 0\n");
    link->net = NULL;
    played.expiry_closes = true; /* it is gone, and nothing is due for it */
    played.call_due_us = 10500;
    SWEPT_IS(10000, "expire 0\n", -1);
    assert_int_equal(links->count, 0);
}

/* Goal: when this actor itself ran late no peer is disconnected for that. A peer that stays silent is disconnected all
 * the same, though this actor runs late again and again. */
static void sweep_that_is_late_blames_nobody(void **state)
{
    (void)state;
    creates();
    struct leat_link *one = in_state(LINK_UP), *two = in_state(LINK_UP);
    one->heard_us = 10000, two->heard_us = 10500;
    played.now_us = 10000 + SILENCE + PING;
    links->next_us = played.now_us - PING - 1;
    struct leat_link_call call = {.deadline_us = 10001}; /* its answer may lie unread */
    leat_list_push_back(&one->calls, &call.list);
    sweeps();
    assert_int_equal(call.deadline_us, played.now_us + PING);
    leat_list_remove(&call.list);
    TRACE_IS("links were refused 11100\nexpire 0\nping 0\nexpire 1\nping 1\ntimer 100\n");
    assert_int_equal(one->heard_us + one->late_us, played.now_us + PING - SILENCE);
    assert_int_equal(two->heard_us + two->late_us, 10500 + PING + 1);
    assert_true(one->heard_us == 10000 && two->heard_us == 10500); /* what users are told */
    two->heard_us = 9000; /* late by more than the silence */
    links->next_us = 9000;
    sweeps();
    TRACE_IS("links were refused 11100\nexpire 0\nexpire 1\ntimer 100\n");
    assert_int_equal(two->heard_us + two->late_us, played.now_us);
    played.now_us = 10000;
    two->heard_us = 10000;
    for (unsigned i = 0; i < 2 * SILENCE / PING; i++) { /* each second sweep is late */
        bool late = i % 2 == 0;
        played.now_us += late ? 2 * PING + 1 : PING;
        one->heard_us = played.now_us;
        links->next_us = late ? played.now_us - PING - 1 : played.now_us;
        sweeps();
        if (two->state != LINK_UP) break;
    }
    trace_begin();
    assert_int_equal(two->state, LINK_CLOSING);
    assert_in_range(played.now_us, 10000 + 3 * SILENCE / 2, 10000 + 2 * SILENCE);
    ends(two);
    two = in_state(LINK_UP);
    played.now_us = 10000 + SILENCE;
    two->heard_us = played.now_us;
    one->heard_us = 10000;
    links->next_us = played.now_us - PING; /* that is in time */
    sweeps();
    TRACE_IS("links were refused 11000\nexpire 0\nno stranger 0\nclose conn\nexpire 1\n"
             "timer 100\n");
    assert_int_equal(one->heard_us, 10000);
    ends(one);
    two->heard_us = 10000;
    links->next_us = UINT64_MAX; /* none was armed: of what is late nothing is known */
    two->state = LINK_CONNECTING;
    two->since_us = played.now_us;
    sweeps();
    assert_true(two->heard_us == 10000 && two->late_of_us != 10000);
    ends(two);
}

/* Goal: where every sweep is late by more than a ping a silent peer is disconnected all the same, and a peer that is
 * heard between two sweeps stays. */
static void late_sweeps_disconnect_a_silent_peer(void **state)
{
    (void)state;
    creates();
    struct leat_link *one = in_state(LINK_UP), *two = in_state(LINK_UP);
    played.now_us = one->heard_us = two->heard_us = 10000;
    for (unsigned i = 0; i < 2 * SILENCE / PING && two->state == LINK_UP; i++) {
        links->next_us = played.now_us + PING;
        played.now_us = links->next_us + PING + 1;
        if (i > 0) one->heard_us = played.now_us - 1;
        sweeps();
    }
    assert_int_equal(two->state, LINK_CLOSING);
    assert_int_equal(one->state, LINK_UP);
    assert_true(played.now_us >= 10000 + SILENCE);
    trace_begin();
    ends(two);
    ends(one);
}

/* Goal: a sweep that nothing else is due for, or of links that are closing, arms none. */
static void sweep_of_what_is_closing_arms_none(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_CONNECTING);
    link->since_us = 10000;
    links->closing = true;
    links->next_us = 10000;
    sweeps();
    TRACE_IS("links were refused 10000\n");
    assert_true(links->next_us == UINT64_MAX);
    links->closing = false;
    ends(link);
    link = in_state(LINK_CONNECTING); /* closing since its middle, behind one that is due again */
    link->since_us = 10000;
    struct leat_link *other = in_state(LINK_WAITING);
    other->try_at_us = 10000;
    played.connect_closes = true;
    links->next_us = 10000;
    sweeps();
    TRACE_IS("links were refused 10000\nconnect 1\n");
    played.connect_closes = links->closing = false;
    ends(link);
    ends(other);
}

/* Goal: a link to a node that is reported as up again is tried now, unless an attempt is young, the link is up, or the
 * link is not this node's to open. */
static void retry_tries_now(void **state)
{
    (void)state;
    creates();
    played.now_us = LINK_STALE_US + 10000;
    struct leat_link *link = in_state(LINK_WAITING);
    link->attempts = 4;
    link->try_at_us = played.now_us + 300;
    leat_link_retry(link);
    TRACE_IS("timer 0\n");
    assert_int_equal(link->try_at_us, played.now_us);
    assert_int_equal(link->attempts, 0);
    links->next_us = UINT64_MAX;
    link->accepted = true;
    link->attempts = 4;
    leat_link_retry(link);
    TRACE_IS("");
    assert_int_equal(link->attempts, 4);
    link->accepted = false;
    link->gone = true;
    leat_link_retry(link);
    TRACE_IS("");
    assert_int_equal(link->attempts, 4);
    link->gone = false;
    static const enum leat_link_state states[] = {LINK_NONCE, LINK_HELLO, LINK_UP, LINK_CLOSING};
    link->net = (struct leat_conn *)conn;
    link->since_us = 0;
    for (unsigned i = 0; i < 4; i++) {
        link->state = states[i];
        leat_link_retry(link);
        TRACE_IS("");
        assert_int_equal(link->attempts, 0);
    }
    link->state = LINK_CONNECTING;
    link->since_us = 10000;
    leat_link_retry(link);
    TRACE_IS("");
    link->since_us--;
    leat_link_retry(link);
    TRACE_IS("no stranger 0\nclose conn\n");
    assert_int_equal(link->why.code, LEAT_E_TIMEOUT);
    assert_string_equal(link->why.text, "it is tried anew: the peer has just come up");
    ends(link);
}

/* Goal: a connection is cut once, by its first cause. */
static void cut_closes_once(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_WAITING);
    leat_link_cut(link, LEAT_E_CORRUPT, "none");
    TRACE_IS("");
    assert_int_equal(link->state, LINK_WAITING);
    assert_int_equal(link->why.code, LEAT_OK);
    link->net = (struct leat_conn *)conn;
    link->state = LINK_UP;
    leat_link_cut(link, LEAT_E_CORRUPT, "first");
    TRACE_IS("no stranger 0\nclose conn\n");
    assert_int_equal(link->state, LINK_CLOSING);
    leat_link_cut(link, LEAT_E_TIMEOUT, "second");
    TRACE_IS("");
    assert_int_equal(link->why.code, LEAT_E_CORRUPT);
    assert_string_equal(link->why.text, "first");
    ends(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINKS_TEST(due_arms_for_the_earliest),
        LINKS_TEST(retry_later_doubles_the_pause),
        LINKS_TEST(sweep_connects_when_it_is_time),
        LINKS_TEST(sweep_ends_what_takes_too_long),
        LINKS_TEST(sweep_asks_who_is_silent),
        LINKS_TEST(sweep_that_is_late_blames_nobody),
        LINKS_TEST(late_sweeps_disconnect_a_silent_peer),
        LINKS_TEST(sweep_of_what_is_closing_arms_none),
        LINKS_TEST(retry_tries_now),
        LINKS_TEST(cut_closes_once),
    };
    return cmocka_run_group_tests_name("link-due", tests, NULL, NULL);
}
