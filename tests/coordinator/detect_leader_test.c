/* SPDX-License-Identifier: Apache-2.0 */
/* A lost leader: which node reports the loss to which, and which node takes over; addresses that are refused, or gone,
 * are probed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/detect.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/detect_rig.h"

/* ---- the leader is lost ---- */

static void leader_is_lost_when_it_is_silent_beyond_patience(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 6; c++) {
        if (c) begin(NULL);
        follow(2);
        it->leader = 2;
        it->leader_term = TERM;
        peers[1].heard_us = now_us;
        coordinator->watch[1].lost = coordinator->watch[2].lost = false;
        it->leader_watch = (struct co_watch){.heard_us = now_us, .said_us = now_us};
        const uint64_t at_us = now_us + SUSPECT_US + CONFIRM_US + (c != 0);
        if (c == 2) learns = true;
        if (c == 3) coordinator->votes = false, it->leader_term = 0;
        if (c == 4) leader = 0, it->leader = 0;
        if (c == 5) leader = it->leader = 1;
        round_in_time(at_us);
        assert_int_equal(it->lost, c == 1);
        if (c == 1) {
            expect_calls(PINGS ", ping n1, lost 5.2 5.5 to n1, lost 5.2 5.5 to n2");
            assert_true(it->lost_leader == 2 && it->lost_term == TERM &&
                        it->lost_told_us == now_us);
        }
        assert_int_equal(coordinator->watch[1].lost,
                         c == 1); /* the node at its address, should this one lead */
        assert_false(coordinator->watch[2].lost);
        if (c == 1) { /* it is told again each round, until it is heard */
            calls[0] = '\0';
            round_in_time(now_us + PING_US);
            assert_non_null(strstr(calls, "lost 5.2"));
            peers[1].heard_us = now_us;
            calls[0] = '\0';
            round_in_time(now_us + 1);
            assert_false(it->lost);
            assert_null(strstr(calls, "lost"));
            assert_int_equal(it->leader_watch.heard_us, now_us - 1);
        }
        calls[0] = '\0';
        if (c < 5) finish(NULL);
    }
}

static void another_leader_is_watched_anew(void **state)
{
    (void)state;
    follow(2);
    it->leader = 3;
    it->leader_term = TERM;
    it->lost = true;
    it->leader_watch = (struct co_watch){.heard_us = 1, .gap_us = 70000};
    peers[1].heard_us = now_us - 5;
    round_in_time(now_us);
    assert_true(it->leader == 2 && it->leader_term == TERM && !it->lost);
    assert_true(it->leader_watch.heard_us == now_us &&
                it->leader_watch.gap_us == 70000 - (70000 + 255) / 256);
    it->leader_term = TERM - 1; /* the same in another term */
    it->lost = true;
    round_in_time(now_us + 10);
    assert_true(it->leader_term == TERM && !it->lost && it->leader_watch.heard_us == now_us);
    /* How long it was silent before is what it is waited for. */
    const uint64_t begun = now_us;
    peers[1].heard_us = begun + 90000;
    round_in_time(begun + 90000);
    assert_int_equal(it->leader_watch.gap_us, 90000);
    round_in_time(begun + 90000 + PING_US); /* not yet longer than a round */
    calls[0] = '\0';
    round_in_time(begun + 90000 + PING_US);
    assert_null(strstr(calls, "ping n1"));
    round_in_time(begun + 90000 + PING_US + 1);
    assert_non_null(strstr(calls, "ping n1"));
    calls[0] = '\0';
    /* Where raft does not run it is the one that peers name. */
    named = 3;
    for (unsigned c = 0; c < 2; c++) {
        it->leader = 2;
        learns = c == 0;
        coordinator->votes = c == 0;
        round_in_time(now_us + 1);
        assert_int_equal(it->leader, 3);
    }
    calls[0] = '\0';
}

/* A leader that was silent for long before is waited for, however soon it is heard again; a leader without a connection
 * is not pinged. */
static void silence_of_a_leader_is_remembered(void **state)
{
    (void)state;
    follow(2);
    it->leader = 2;
    it->leader_term = TERM;
    it->leader_watch = (struct co_watch){.heard_us = now_us, .gap_us = 51200};
    peers[1].heard_us = now_us + 1000;
    round_in_time(now_us + 1000);
    assert_int_equal(it->leader_watch.gap_us, 51000);
    peers[1].gone = true;
    calls[0] = '\0';
    round_in_time(now_us + PING_US + 1);
    expect_calls("");
}

/* The reports of n1 (voter 2) and n2 (voter 3) on the loss of their leader, voter 3 or another; this node is voter
 * 1. */
static void voter_with_the_longest_log_of_a_majority_takes_over(void **state)
{
    (void)state;
    static const struct {
        uint64_t term, leader, index, last_term; /* of n1's word */
        int64_t age_us;                          /* beside a second */
        unsigned change;
        bool takes_over;
    } cases[] = {
        {TERM, 3, 5, 5, 0, 0, true},
        {TERM, 3, 4, 5, 0, 0, true},
        {TERM, 3, 6, 5, 0, 0, false},
        {TERM, 3, 9, 4, 0, 0, true},
        {TERM, 3, 1, 6, 0, 0, false},
        {TERM - 1, 3, 5, 5, 0, 0, false},
        {TERM, 2, 5, 5, 0, 0, false},
        {TERM, 3, 5, 5, 1, 0, false},
        {TERM, 3, 5, 5, -1, 0, true},
        {TERM, 3, 5, 5, 0, 1, false} /* not heard of */,
        {TERM, 3, 5, 5, 0, 2, false} /* learns */,
        {TERM, 3, 5, 5, 0, 3, false} /* not lost */,
        {TERM, 3, 5, 5, 0, 4, false} /* does not vote */,
        {TERM, 3, 5, 5, 0, 5, false} /* another leads by now */,
        {TERM, 3, 5, 5, 0, 6, false} /* no voter's word */,
        {TERM, 3, 5, 5, 0, 7, false} /* a tie, of a lower id */,
        {TERM, 3, 5, 5, 0, 8, false} /* four vote */,
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (c) begin(NULL);
        follow(3);
        it->lost = cases[c].change != 3;
        it->lost_leader = 3;
        it->lost_term = TERM;
        peers[2].up = false; /* the lost one says nothing */
        peers[1].peer.lost =
            (struct co_lost){.term = cases[c].term,
                             .leader = cases[c].leader,
                             .last_index = cases[c].index,
                             .last_term = cases[c].last_term,
                             .since_us = now_us - 1000000 - (uint64_t)cases[c].age_us};
        if (cases[c].change == 1) peers[1].peer.state.known = false;
        if (cases[c].change == 2) learns = true;
        if (cases[c].change == 4) coordinator->votes = false;
        if (cases[c].change == 5) leader = 2;
        if (cases[c].change == 6) servers[1].role = RAFT_SPARE;
        if (cases[c].change == 7) coordinator->voter_id = 9, servers[0].id = 9;
        if (cases[c].change == 8) coordinator->drive.raft.configuration.n = 4;
        it->leader = leader;
        it->leader_term = coordinator->votes ? TERM : 0;
        it->leader_watch = (struct co_watch){.heard_us = now_us};
        round_in_time(now_us);
        if ((strstr(calls, "take over") != NULL) != cases[c].takes_over)
            fail_msg("case %zu: %s", c, calls);
        if (cases[c].takes_over) assert_false(it->lost);
        calls[0] = '\0';
        if (c + 1 < sizeof cases / sizeof *cases) finish(NULL);
    }
}

/* A voter's word comes: it is taken down, and may make the majority. */
static void word_of_a_voter_is_taken(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        if (c) begin(NULL);
        uint8_t bytes[64];
        struct leat_msg_writer w;
        follow(3);
        it->lost = true;
        it->lost_leader = 3;
        it->lost_term = TERM;
        peers[1].other_cluster = c == 1;
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        leat_msg_write_array(&w, c == 2 ? 3 : 4);
        const uint64_t values[] = {TERM, 3, 4, 5};
        for (unsigned i = 0; i < 4; i++)
            leat_msg_write_u64(&w, values[i]);
        const struct leat_frame frame = {.control = bytes,
                                         .control_bytes = (uint32_t)w.used - (c == 3)};
        co_lost_take(coordinator, &peers[1].peer, &frame);
        const struct co_lost *lost = &peers[1].peer.lost;
        expect_calls(c == 0 ? "take over" : c == 1 ? "" : "cut n1");
        assert_int_equal(lost->since_us, c == 0 ? now_us : 0);
        if (c == 0)
            assert_true(lost->term == TERM && lost->leader == 3 && lost->last_index == 4 &&
                        lost->last_term == 5);
        if (c < 3) finish(NULL);
    }
}

static void leader_that_says_it_is_deaf_is_lost(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 5; c++) {
        if (c) begin(NULL);
        follow(2);
        it->leader = 2;
        if (c == 1) peers[1].votes = false;
        if (c == 2) it->leader = 3;
        if (c == 3) leads = true;
        if (c == 4) it->leader = peers[1].peer.state.voter_id = 0;
        co_detect_deaf(coordinator, &peers[1].peer);
        expect_calls(c == 0 ? "lost 5.2 5.5 to n1, lost 5.2 5.5 to n2" : "");
        assert_int_equal(it->lost, c == 0);
        if (c < 4) finish(NULL);
    }
    /* The node log says it once in a second, though it is lost and found. */
    finish(NULL);
    begin(NULL);
    follow(2);
    it->leader = 2;
    co_detect_deaf(coordinator, &peers[1].peer);
    const uint64_t told_us = now_us;
    for (unsigned i = 0; i < 3; i++) {
        it->lost = i == 0;
        now_us = told_us + (i < 2 ? 999999 : 1000000);
        co_detect_deaf(coordinator, &peers[1].peer);
        assert_int_equal(it->lost_told_us, i < 2 ? told_us : now_us);
    }
    calls[0] = '\0';
}

/* ---- proof ---- */

/* Nobody listens where it was: that is a proof, unless there is a connection to it. */
static void node_that_refuses_is_dead(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 7; c++) {
        if (c) begin(NULL);
        peers[3].gone = c != 1;
        if (c == 2) coordinator->watch[3].incarnation = 12;
        if (c == 3) coordinator->machine.nodes[3].info.incarnation = 23;
        if (c == 4) leads = false;
        if (c == 5) coordinator->start = CO_START_ASKS;
        co_detect_refused(coordinator, c == 6 ? 0 : 13, 0);
        assert_int_equal(coordinator->watch[3].dead, c == 0 || c >= 4 ? c != 6 : false);
        expect_calls(c == 0 ? "crash n3 13" : "");
        if (c < 6) finish(NULL);
    }
    for (unsigned c = 0; c < 4; c++) {
        finish(NULL);
        begin(NULL);
        follow(2);
        it->leader = c == 1 ? 3 : 2;
        peers[1].gone = c != 2;
        co_detect_refused(coordinator, 0, c == 3 ? 0 : 2);
        expect_calls(c == 0 ? "lost 5.2 5.5 to n2" : "");
        assert_int_equal(it->lost, c == 0);
    }
}

/* A connection ends: a leader probes the peer's address, and a follower probes only its leader's address. */
static void address_of_who_has_gone_is_tried(void **state)
{
    (void)state;
    static const char *const tried[] = {"probe p1:1 11 0", "probe p1:1 11 2", "", "", "",
                                        "probe p1:1 11 0"};
    for (unsigned c = 0; c < 6; c++) {
        if (c) begin(NULL);
        if (c > 0 && c < 5) follow(2);
        it->leader = c == 2 ? 3 : c == 4 ? 0 : c ? 2 : 1;
        if (c == 3) peers[1].peer.state.known = false;
        if (c == 4) peers[1].peer.state.voter_id = 0;
        co_detect_peer_down(coordinator, &peers[1].peer);
        expect_calls(tried[c]);
        if (c < 5) finish(NULL);
    }
}

/* A new leader begins to watch all nodes from now on, and probes the nodes that it does not hear. */
static void new_leader_watches_all_anew(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        if (c) begin(NULL);
        struct leat_node_info *info = &coordinator->machine.nodes[3].info;
        peers[2].gone = peers[3].gone = true;
        it->leader_watch.gap_us = 40000;
        coordinator->watch[2].lost = coordinator->watch[2].heard = true;
        coordinator->watch[3].lost = true;
        coordinator->watch[3].incarnation = 9; /* of before */
        if (c == 1) info->crashed = true;
        if (c == 2) info->state = LEAT_NODE_GONE;
        if (c == 3) info->node_address[0] = '\0';
        now_us += 7;
        co_detect_leads(coordinator);
        expect_calls(c ? "probe h2:1 12 0" : "probe h2:1 12 0, probe h3:1 13 0");
        const struct co_watch *two = &coordinator->watch[2], *three = &coordinator->watch[3];
        assert_true(two->lost && !two->heard);
        assert_int_equal(two->heard_us, now_us);
        assert_int_equal(two->gap_us, 40000);
        assert_int_equal(three->incarnation, c ? 9 : 13);
        assert_int_equal(three->lost, c != 0);
        assert_int_equal(coordinator->watch[0].heard_us, now_us - 7); /* itself */
        if (c < 3) finish(NULL);
    }
}

/* The first voter's report counts like any voter's; the first voter gets reports and probes like any voter. */
static void first_voter_is_told_heard_and_tried_like_others(void **state)
{
    (void)state;
    be_the_last_voter();
    follow(2);
    it->leader = 2;
    peers[1].up = false;
    peers[0].peer.lost = (struct co_lost){
        .term = TERM, .leader = 2, .last_index = 5, .last_term = 4, .since_us = now_us};
    co_detect_deaf(coordinator, &peers[1].peer);
    expect_calls("lost 5.2 5.5 to n0, take over"); /* at once */
    assert_false(it->lost);
    finish(NULL);
    begin(NULL);
    be_the_last_voter();
    peers[0].gone = true;
    coordinator->watch[1].incarnation = 11;
    co_detect_leads(coordinator);
    expect_calls("probe h0:1 10 0");
    assert_false(coordinator->watch[1].lost);
    co_detect_refused(coordinator, 10, 0);
    expect_calls("crash n0 10");
    finish(NULL);
    begin(NULL);
    be_the_last_voter();
    follow(1);
    it->leader = 1;
    peers[0].heard_us = now_us;
    it->leader_term = TERM;
    it->leader_watch = (struct co_watch){.heard_us = now_us};
    round_in_time(now_us + SUSPECT_US + CONFIRM_US + 1);
    assert_true(it->lost && it->lost_leader == 1 && coordinator->watch[0].lost &&
                !coordinator->watch[1].lost);
    calls[0] = '\0';
}

/* A leader that says that it is deaf is told as lost in each round, although it is heard. */
static void isolated_leader_is_told_as_lost_each_round(void **state)
{
    (void)state;
    follow(2);
    it->leader = 2;
    it->leader_term = TERM;
    it->leader_watch = (struct co_watch){.heard_us = now_us, .said_us = now_us};
    peers[1].heard_us = now_us;
    co_detect_deaf(coordinator, &peers[1].peer);
    for (unsigned i = 0; i < 3; i++) {
        calls[0] = '\0';
        round_in_time(now_us + 1000);
        assert_non_null(strstr(calls, "lost 5.2 5.5 to n1, lost 5.2 5.5 to n2"));
        assert_true(it->lost);
    }
    calls[0] = '\0';
}

/* Nobody is lost where no leader is known, or where this node is what it takes for the leader: it has changed since the
 * last round. And what is known of an earlier leader, or an earlier term, makes nobody take over. */
static void leader_of_before_is_not_lost(void **state)
{
    (void)state;
    for (raft_id now = 0; now < 2; now++) {
        if (now) finish(NULL), begin(NULL);
        follow(now);
        it->leader = 2;
        co_detect_deaf(coordinator, &peers[1].peer);
        expect_calls("");
        assert_false(it->lost);
    }
    for (unsigned c = 0; c < 3; c++) {
        finish(NULL);
        begin(NULL);
        uint8_t bytes[64];
        struct leat_msg_writer w;
        follow(c == 1 ? 2 : 3);
        it->lost = true;
        it->lost_leader = 3;
        it->lost_term = TERM - (c == 2);
        const struct co_lost word = {
            .term = it->lost_term, .leader = 3, .last_index = 4, .last_term = 5};
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        co_lost_said_write(&w, &word);
        const struct leat_frame frame = {.control = bytes, .control_bytes = (uint32_t)w.used};
        co_lost_take(coordinator, &peers[1].peer, &frame);
        expect_calls(c == 0 ? "take over" : "");
    }
}

/* The word on a lost leader has the own last index, then its term; a longer log of the same term takes over. */
static void word_on_a_lost_leader_has_index_and_term(void **state)
{
    (void)state;
    follow(2);
    it->leader = 2;
    last_index = 9;
    peers[2].peer.lost = (struct co_lost){
        .term = TERM, .leader = 2, .last_index = 8, .last_term = 5, .since_us = now_us};
    co_detect_deaf(coordinator, &peers[1].peer);
    expect_calls("lost 5.2 9.5 to n1, lost 5.2 9.5 to n2, take over");
    /* An index larger than all terms is not taken for one. */
    finish(NULL);
    begin(NULL);
    follow(2);
    it->leader = 2;
    last_index = 9;
    peers[2].peer.lost = (struct co_lost){
        .term = TERM, .leader = 2, .last_index = 1, .last_term = 6, .since_us = now_us};
    co_detect_deaf(coordinator, &peers[1].peer);
    expect_calls("lost 5.2 9.5 to n1, lost 5.2 9.5 to n2");
    /* The lower id counts between equal logs only. */
    finish(NULL);
    begin(NULL);
    be_the_last_voter();
    follow(2);
    it->leader = 2;
    peers[1].up = false;
    peers[0].peer.lost = (struct co_lost){
        .term = TERM, .leader = 2, .last_index = 4, .last_term = 5, .since_us = now_us};
    co_detect_deaf(coordinator, &peers[1].peer);
    expect_calls("lost 5.2 5.5 to n0, take over");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DETECT_TEST(leader_is_lost_when_it_is_silent_beyond_patience),
        DETECT_TEST(another_leader_is_watched_anew),
        DETECT_TEST(silence_of_a_leader_is_remembered),
        DETECT_TEST(voter_with_the_longest_log_of_a_majority_takes_over),
        DETECT_TEST(word_of_a_voter_is_taken),
        DETECT_TEST(leader_that_says_it_is_deaf_is_lost),
        DETECT_TEST(node_that_refuses_is_dead),
        DETECT_TEST(address_of_who_has_gone_is_tried),
        DETECT_TEST(new_leader_watches_all_anew),
        DETECT_TEST(first_voter_is_told_heard_and_tried_like_others),
        DETECT_TEST(isolated_leader_is_told_as_lost_each_round),
        DETECT_TEST(leader_of_before_is_not_lost),
        DETECT_TEST(word_on_a_lost_leader_has_index_and_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
