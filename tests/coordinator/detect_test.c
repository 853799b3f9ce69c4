/* SPDX-License-Identifier: Apache-2.0 */
/* The failure detector, round by round: silence, patience, proof, and rounds that come late. Each bound on both
 * sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/detect.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/detect_rig.h"

/* ---- silence ---- */

/* Exactly as long as patience it is no silence; and none of one that is away for good, is this one, or has no
 * address. */
static void node_that_is_silent_beyond_patience_is_declared_crashed(void **state)
{
    (void)state;
    const uint64_t patience_us = SUSPECT_US + CONFIRM_US;
    for (unsigned c = 0; c < 9; c++) {
        if (c) begin(NULL);
        const uint64_t at_us = now_us + patience_us + (c != 0);
        struct leat_node_info *info = &coordinator->machine.nodes[3].info;
        if (c == 2) coordinator->start = CO_START_ASKS;
        if (c == 3) info->crashed = true;
        if (c == 4) info->state = LEAT_NODE_GONE;
        if (c == 5) coordinator->incarnation = 13, coordinator->watch[0].heard_us = at_us;
        if (c == 6) info->node_address[0] = '\0';
        if (c == 7) coordinator->watching = true;
        if (c == 8)
            info->state =
                LEAT_NODE_DOWN; /* not heard of before either: it is declared all the same */
        now_us = at_us;
        answers(at_us, 3);
        round_in_time(at_us);
        const bool declared = c == 1 || c == 8;
        if (declared)
            expect_calls(PINGS ", crash n3 13");
        else
            expect_calls(PINGS);
        assert_int_equal(coordinator->watching, declared || c == 7);
        if (declared) {
            assert_int_equal(coordinator->watch[3].gap_us, (patience_us + 1) / 2);
            queued->on_done(queued);
            assert_false(coordinator->watching);
        }
        if (c < 8) finish(NULL);
    }
}

/* A leader that hears no majority declares nobody; a proof is another matter. */
static void deaf_leader_declares_nobody_for_silence(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 5; c++) {
        if (c) begin(NULL);
        const uint64_t begun = now_us, at_us = begun + SUSPECT_US + CONFIRM_US + 1;
        /* n2 was heard just within `suspect`, or not; n1 not at all. */
        peers[2].peer.pong_us = at_us - SUSPECT_US - (c == 1);
        if (c == 2)
            servers[1].role = servers[2].role = RAFT_SPARE; /* who does not vote does not count */
        if (c == 3) coordinator->watch[3].dead = true, peers[2].peer.pong_us = 0;
        if (c == 4) coordinator->watch[3].lost = true, peers[2].peer.pong_us = 0;
        round_in_time(at_us - 1);
        if (c < 3)
            expect_calls(PINGS);
        else
            expect_calls(PINGS ", crash n3 13");
        round_in_time(at_us);
        if (c == 0)
            expect_calls(PINGS ", crash n1 11");
        else
            expect_calls(PINGS);
        if (c < 4) finish(NULL);
    }
}

/* Only the leader declares a crash: by silence, by an address at which no process listens, or by the loss of the leader
 * before. */
static void nobody_but_the_leader_declares_a_crash(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        if (c) begin(NULL);
        const uint64_t at_us = now_us + SUSPECT_US + CONFIRM_US + 1;
        leads = c == 3; /* who does says it */
        if (c == 1) coordinator->watch[3].dead = true;
        if (c == 2) coordinator->watch[3].lost = true;
        now_us = at_us;
        answers(at_us, 3);
        round_in_time(at_us);
        assert_int_equal(strstr(calls, "crash") != NULL, leads);
        assert_int_equal(coordinator->watching, leads);
        calls[0] = '\0';
        if (c < 3) finish(NULL);
    }
}

/* A node that was silent for long before gets more patience, up to a limit; old silences count less and less. */
static void patience_is_made_of_silences_before(void **state)
{
    (void)state;
    const struct {
        uint64_t gap_us, patience_us;
    } cases[] = {{50000, 160000},
                 {50300, 160000 + 206},
                 {500000, 1056092 + 0},
                 {5000000, MOST_US + CONFIRM_US}};
    for (unsigned c = 0; c < 4; c++)
        for (unsigned more = 0; more < 2; more++) {
            if (c || more) begin(NULL);
            const uint64_t begun = now_us;
            /* Faded once, in the round that judges. */
            uint64_t left = cases[c].gap_us - (cases[c].gap_us + 255) / 256;
            uint64_t patience_us = 2 * left > SUSPECT_US ? 2 * left : SUSPECT_US;
            if (patience_us > MOST_US) patience_us = MOST_US;
            coordinator->watch[3].gap_us = cases[c].gap_us;
            const uint64_t at_us = begun + patience_us + CONFIRM_US + more;
            answers(at_us, 3);
            round_in_time(at_us);
            if (more)
                expect_calls(PINGS ", crash n3 13");
            else
                expect_calls(PINGS);
            if (!more) assert_int_equal(coordinator->watch[3].gap_us, left);
            if (c < 3 || !more) finish(NULL);
        }
}

/* A silence is measured from one answer to the next, not before the first answer, and not for a node that has
 * crashed. */
static void answers_are_what_is_heard(void **state)
{
    (void)state;
    struct co_watch *watch = &coordinator->watch[3];
    const uint64_t begun = now_us;
    watch->dead = watch->lost = true;
    peers[3].peer.pong_us = begun + 70000;
    answers(begun + 70000, 3);
    round_in_time(begun + 80000);
    assert_true(watch->heard && !watch->dead && !watch->lost);
    assert_int_equal(watch->heard_us, begun + 70000);
    assert_int_equal(watch->said_us, begun + 70000);
    assert_int_equal(watch->gap_us, 0); /* the first word: how long it took says nothing */
    coordinator->machine.nodes[3].info.crashed = true;
    peers[3].peer.pong_us = begun + 150000;
    round_in_time(begun + 150000);
    assert_int_equal(watch->gap_us, 0); /* it has crashed */
    coordinator->machine.nodes[3].info.crashed = false;
    peers[3].peer.pong_us = begun + 240000;
    round_in_time(begun + 240000);
    assert_int_equal(watch->gap_us, 90000);
    peers[3].peer.pong_us = begun + 300000;
    round_in_time(begun + 300000);
    assert_int_equal(watch->gap_us, 90000 - (90000 + 255) / 256);
    peers[3].peer.pong_us = begun + 200000; /* of before */
    round_in_time(begun + 310000);
    assert_int_equal(watch->heard_us, begun + 300000);
    /* Anew: nothing is known of it but how long silences are here. */
    const uint64_t gap_us = watch->gap_us;
    coordinator->machine.nodes[3].info.incarnation = 23;
    round_in_time(begun + 320000);
    assert_true(watch->incarnation == 23 && !watch->heard && watch->gap_us == gap_us &&
                watch->heard_us == now_us && watch->said_us == now_us);
    calls[0] = '\0';
}

/* ---- rounds ---- */

static void round_asks_those_it_has_to(void **state)
{
    (void)state;
    peers[1].up = false;
    peers[2].peer.state.known = false;
    round_in_time(now_us);
    expect_calls("ping n3");
    assert_int_equal(it->number, 1);
    assert_int_equal(it->expected_us, now_us + PING_US);
    assert_true(leat_timer_armed(&it->timer) && it->timer.at_us == now_us + PING_US);
    coordinator->failed = LEAT_E_DISK;
    round_in_time(now_us);
    expect_calls("");
    assert_int_equal(it->number, 2);
    coordinator->failed = LEAT_OK;
    /* Who follows asks all while it hears no leader, or is alone. */
    follow(2);
    peers[1].up = true;
    it->leader = 2;
    it->leader_term = TERM;
    const uint64_t begun = now_us;
    for (unsigned c = 0; c < 5; c++) {
        it->leader_watch.heard_us = begun;
        peers[1].heard_us = 0;
        it->standing = c == 2 ? LEAT_STANDING_ALONE : LEAT_STANDING_CONFIRMED;
        if (c == 3) it->leader = leader = 0;
        if (c == 4) it->leader = leader = 2;
        round_in_time(begun + (c == 0   ? 0
                               : c == 1 ? SUSPECT_US / 2 + 1
                               : c == 4 ? SUSPECT_US / 2
                                        : 10));
        if (c == 0)
            expect_calls("");
        else if (c == 4)
            expect_calls("ping n1"); /* it alone */
        else if (c == 1)
            expect_calls(
                "ping n1, ping n3, ping n1"); /* the leader once more: it is silent for more than a round */
        else
            expect_calls("ping n1, ping n3");
    }
}

static void round_takes_longer_with_many_nodes(void **state)
{
    (void)state;
    coordinator->options.ping_ms = 3;
    coordinator->options.suspect_ms = 7;
    coordinator->options.confirm_ms = 9;
    assert_int_equal(co_suspect_us(coordinator), 7000);
    assert_int_equal(co_confirm_us(coordinator), 9000);
    co_detect_start(coordinator);
    assert_int_equal(it->timer.at_us, now_us + 4000); /* of four nodes */
    coordinator->options.ping_ms = 5;
    co_detect_start(coordinator);
    assert_int_equal(it->timer.at_us, now_us + 5000);
    coordinator->options = (struct leat_coordinator_options){0};
    assert_int_equal(co_suspect_us(coordinator), SUSPECT_US);
    assert_int_equal(co_confirm_us(coordinator), CONFIRM_US);
}

/* Messages that came while this process stood still are unread: no node counts as silent for that time, and none as
 * heard. */
static void round_that_comes_late_judges_nobody_for_it(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 6; c++) {
        if (c) begin(NULL);
        const uint64_t begun = now_us, late_us = c == 0   ? PING_US
                                                 : c == 1 ? PING_US + 1
                                                 : c == 2 ? SUSPECT_US
                                                          : SUSPECT_US + 1;
        if (c == 4) coordinator->incarnation = 0;
        if (c == 5) expected = false;
        it->expected_us = begun + 10000;
        it->heard_us = begun - 5000;
        it->leader_watch = (struct co_watch){.heard_us = begun};
        it->leader = 1;
        it->leader_term = TERM;
        coordinator->watch[3].heard_us = 0; /* never heard */
        coordinator->watch[2].heard_us = begun + 9999;
        round_at(begun + 10000 + late_us);
        const bool late = c > 0;
        assert_int_equal(it->judged_us, late ? now_us - PING_US : now_us);
        assert_int_equal(coordinator->watch[1].heard_us, late ? begun + late_us : begun);
        assert_int_equal(coordinator->watch[2].heard_us,
                         late ? begun + 9999 + late_us : begun + 9999);
        assert_int_equal(coordinator->watch[3].heard_us, 0);
        assert_int_equal(it->leader_watch.heard_us, late ? begun + late_us : begun);
        assert_int_equal(coordinator->watch[1].gap_us, late ? late_us - (late_us + 255) / 256 : 0);
        assert_int_equal(it->heard_us, late ? begun - 5000 + late_us : begun - 5000);
        assert_int_equal(strstr(calls, "stands 2") != NULL, c == 3);
        calls[0] = '\0';
        if (c < 5) finish(NULL);
    }
    /* What was heard since counts as of now, not later. */
    finish(NULL);
    begin(NULL);
    it->expected_us = now_us;
    it->heard_us = now_us + 50000;
    coordinator->watch[1].heard_us = now_us + 50000;
    round_at(now_us + 60000);
    assert_int_equal(coordinator->watch[1].heard_us, now_us);
    assert_int_equal(it->heard_us, now_us);
    calls[0] = '\0';
}

/* A leader says that it is deaf when it has heard no majority of the voters, each within the patience for this voter,
 * unless it has just begun to lead. */
static void leader_that_hears_no_majority_is_deaf(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 7; c++) {
        if (c) begin(NULL);
        const uint64_t begun = now_us, patience_us = SUSPECT_US + CONFIRM_US,
                       at_us = begun + patience_us + (c != 0);
        coordinator->watching = true; /* whom it declares is another matter */
        if (c == 2) coordinator->start = CO_START_ASKS;
        if (c == 3) leads = false;
        if (c == 4) coordinator->leads_since_us = at_us - SUSPECT_US;
        if (c == 5) coordinator->leads_since_us = at_us - SUSPECT_US - 1;
        if (c == 6) peers[2].peer.pong_us = begun + 1;
        round_in_time(at_us);
        assert_int_equal(it->deaf, c == 1 || c == 5);
        calls[0] = '\0';
        if (c < 6) finish(NULL);
    }
}

/* The first node in the tables is one like the others: watched, heard, late for, and of the majority. */
static void first_node_is_watched_like_others(void **state)
{
    (void)state;
    be_the_last_voter();
    const uint64_t begun = now_us, at_us = begun + SUSPECT_US + CONFIRM_US + 1;
    coordinator->watch[1].heard_us = coordinator->watch[3].heard_us = peers[1].peer.pong_us = at_us;
    round_in_time(at_us);
    expect_calls("ping n0, ping n1, ping n3, crash n0 10");
    finish(NULL);
    begin(NULL);
    be_the_last_voter();
    coordinator->watch[0].heard_us = at_us; /* n0 alone makes the majority */
    peers[0].peer.pong_us = at_us;
    coordinator->watch[1].heard_us = begun + 5;
    coordinator->watch[3].heard_us = begun;
    round_in_time(at_us);
    expect_calls("ping n0, ping n1, ping n3, crash n3 13");
    assert_false(it->deaf);
    finish(NULL);
    begin(NULL);
    be_the_last_voter();
    it->expected_us = begun;
    round_at(begun + PING_US + 5);
    assert_int_equal(coordinator->watch[0].heard_us, begun + PING_US + 5);
    calls[0] = '\0';
}

/* A node whose crash can't be proposed yet, because another node's crash is under way, gets no more patience for it. */
static void silence_counts_once_it_is_declared(void **state)
{
    (void)state;
    const uint64_t begun = now_us, at_us = begun + SUSPECT_US + CONFIRM_US + 1;
    answers(at_us, 3);
    coordinator->watching = true;
    round_in_time(at_us);
    expect_calls(PINGS);
    assert_int_equal(coordinator->watch[3].gap_us, 0);
    coordinator->watching = false;
    answers(at_us + 1, 3);
    round_in_time(at_us + 1);
    expect_calls(PINGS ", crash n3 13");
    queued->on_done(queued);
    assert_int_equal(probes_expired, 2);
    assert_int_equal(standings_advanced, 2);
    /* Half of a declared silence counts where it is more than what counted before. */
    finish(NULL);
    begin(NULL);
    const uint64_t gap_us = 200 * 1000, silent_us = 2 * gap_us + CONFIRM_US + 40 * 1000;
    const uint64_t later_us = now_us + silent_us;
    coordinator->watch[3].gap_us = gap_us;
    answers(later_us, 3);
    round_in_time(later_us);
    expect_calls(PINGS ", crash n3 13");
    assert_int_equal(coordinator->watch[3].gap_us, silent_us / 2);
}

/* The first node's silence counts like any voter's. */
static void silent_first_node_is_not_of_the_majority(void **state)
{
    (void)state;
    be_the_last_voter();
    coordinator->watching = true;
    round_in_time(now_us + SUSPECT_US + CONFIRM_US + 1);
    assert_true(it->deaf);
    calls[0] = '\0';
}

/* The first round was expected at no time, so it is not late. */
static void first_round_is_not_late(void **state)
{
    (void)state;
    const uint64_t heard_us = coordinator->watch[1].heard_us;
    round_at(now_us + 10 * PING_US);
    assert_int_equal(it->judged_us, now_us);
    assert_int_equal(coordinator->watch[1].heard_us, heard_us);
    calls[0] = '\0';
}

/* Two of four voters are no majority. */
static void half_of_the_voters_is_no_majority(void **state)
{
    (void)state;
    const uint64_t at_us = now_us + SUSPECT_US + CONFIRM_US + 1;
    coordinator->drive.raft.configuration.n = 4;
    coordinator->watching = true;
    coordinator->watch[1].heard_us = peers[1].peer.pong_us = at_us;
    round_in_time(at_us);
    assert_true(it->deaf);
    calls[0] = '\0';
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DETECT_TEST(node_that_is_silent_beyond_patience_is_declared_crashed),
        DETECT_TEST(deaf_leader_declares_nobody_for_silence),
        DETECT_TEST(nobody_but_the_leader_declares_a_crash),
        DETECT_TEST(patience_is_made_of_silences_before),
        DETECT_TEST(answers_are_what_is_heard),
        DETECT_TEST(round_asks_those_it_has_to),
        DETECT_TEST(round_takes_longer_with_many_nodes),
        DETECT_TEST(round_that_comes_late_judges_nobody_for_it),
        DETECT_TEST(leader_that_hears_no_majority_is_deaf),
        DETECT_TEST(first_node_is_watched_like_others),
        DETECT_TEST(silence_counts_once_it_is_declared),
        DETECT_TEST(half_of_the_voters_is_no_majority),
        DETECT_TEST(silent_first_node_is_not_of_the_majority),
        DETECT_TEST(first_round_is_not_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
