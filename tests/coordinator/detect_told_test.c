/* SPDX-License-Identifier: Apache-2.0 */
/* What the node log says about nodes that come back and about a leader that is lost. */
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
#include "tests/coordinator/told.h"

static int begin_told(void **state)
{
    told_from_now_on();
    return begin(state);
}

/* Goal: the leader alone tells that a node is back, since a line of each node would count the return several times;
 * and only while the node is up. */
static void leader_tells_that_a_node_is_back(void **state)
{
    (void)state;
    enum { BACK, UNHEARD, FOLLOWER, UNREADY, CRASHED, DOWN, SELF, CASES };
    static const char *const lines[CASES] = {
        [BACK] = "I coordinator: node n1 (incarnation 21) is up; the one before it (11) was last "
                 "heard 7000 us ago\n",
        [UNHEARD] = "I coordinator: node n1 (incarnation 21) is up\n",
    };
    for (unsigned c = 0; c < CASES; c++) {
        if (c) begin_told(NULL);
        struct leat_node_info *info = &coordinator->machine.nodes[1].info;
        struct co_watch *watch = &coordinator->watch[1];
        info->incarnation = peers[1].peer.state.incarnation = OWN + 11;
        peers[1].gone = true; /* its first answer is still to come */
        watch->heard = c != UNHEARD;
        watch->said_us = now_us - 6000;
        if (c == FOLLOWER) follow(2);
        if (c == UNREADY) coordinator->start = CO_START_ASKS;
        if (c == CRASHED) info->crashed = true;
        if (c == DOWN) info->state = LEAT_NODE_DOWN;
        if (c == SELF) coordinator->incarnation = OWN + 11;
        round_in_time(now_us + 1000);
        expect_told(lines[c] ? lines[c] : "");
        assert_int_equal(watch->incarnation, OWN + 11);
        round_in_time(now_us + 1000); /* once */
        expect_told("");
        calls[0] = '\0';
        if (c + 1 < CASES) finish(NULL);
    }
}

/* Goal: a leader that is lost and heard again in each round does not fill the node log; another leader's loss is told
 * at once. */
static void leader_that_is_lost_is_told_once_a_second(void **state)
{
    (void)state;
    enum { SECOND = 1000000, SILENT = SUSPECT_US + CONFIRM_US + 1 };
    follow(2);
    it->leader = 2;
    it->leader_term = TERM;
    it->leader_watch = (struct co_watch){.heard_us = now_us, .said_us = now_us};
    peers[1].heard_us = now_us;
    round_in_time(now_us + SILENT);
    const uint64_t first_us = now_us;
    expect_told("W coordinator: the leader (h1:1) is not heard: it does not answer, for 160001 us; "
                "the other voters are told\n");
    round_in_time(now_us + PING_US); /* still lost */
    expect_told("");
    round_in_time(first_us + SECOND + 1);
    assert_true(it->lost);
    expect_told("");
    for (unsigned c = 0; c < 2;
         c++) { /* heard, and lost again: within a second of the line, and after */
        it->lost = false;
        it->leader_watch.heard_us = it->leader_watch.said_us = peers[1].heard_us =
            first_us + SECOND - 1 + c - SILENT;
        round_in_time(first_us + SECOND - 1 + c);
        assert_true(it->lost);
        expect_told(c == 0 ? ""
                           : "W coordinator: the leader (h1:1) is not heard: it does not answer, "
                             "for 160001 us; the other voters are told\n");
    }
    /* Another leader, at once. */
    follow(3);
    it->leader = 3;
    it->lost = false;
    it->leader_watch.heard_us = it->leader_watch.said_us = peers[2].heard_us = now_us + 10 - SILENT;
    round_in_time(now_us + 10);
    expect_told("W coordinator: the leader (h2:1) is not heard: it does not answer, for 160001 us; "
                "the other voters are told\n");
    calls[0] = '\0';
}

#define TOLD_TEST(name) cmocka_unit_test_setup_teardown(name, begin_told, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD_TEST(leader_tells_that_a_node_is_back),
        TOLD_TEST(leader_that_is_lost_is_told_once_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
