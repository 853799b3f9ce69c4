/* SPDX-License-Identifier: Apache-2.0 */
/* A change of the voters: which node may begin a change, which node learns how the change ended, and the steps
 * between. */
#include "coordinator/membership/forming.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/members_rig.h"

/* ---- beginning ---- */

static void change_begins_for_a_request_or_a_ticket(void **state)
{
    (void)state;
    const struct co_change *change = &coordinator->change;
    wanted(true);
    assert_true(change->replace && !change->has_ticket);
    assert_int_equal(change->since_us, now_us);
    assert_ptr_equal(change->request, &request);
    assert_string_equal(change->node, "n1");
    co_change_end(coordinator, LEAT_E_AGAIN, "later");
    TRACE_IS("refused AGAIN: later\n");
    assert_false(change->running || change->replace || change->request);
    co_change_begin(coordinator, false, "n2", NULL, &ticket);
    assert_true(change->running && change->has_ticket && !change->replace);
    assert_int_equal(change->ticket.request, ticket.request);
    co_change_end(coordinator, LEAT_E_AGAIN, "later");
    TRACE_IS("refuse AGAIN: later\n");
    wanted(false);
    co_change_end(coordinator, LEAT_OK, "");
    TRACE_IS("done OK\n");
    co_change_begin(coordinator, false, "n2", NULL, &ticket);
    co_change_end(coordinator, LEAT_OK, "");
    TRACE_IS("answer [0\n");
    coordinator->change.request = &request;
    co_change_end(coordinator, LEAT_OK, "");
    TRACE_IS(""); /* nothing is under way */
}

static void change_that_can_not_begin_is_refused(void **state)
{
    (void)state;
    for (unsigned asker = 0; asker < 2; asker++) {
        struct leat_coordinate *who = asker ? NULL : &request;
        const struct leat_link_ticket *from = asker ? &ticket : NULL;
        const char *said = asker ? "refuse" : "refused";
        char expected[600];
        coordinator->clustered = false;
        co_change_begin(coordinator, false, "n1", who, from);
        coordinator->clustered = true;
        node_known[1] = false;
        co_change_begin(coordinator, false, "n1", who, from);
        node_known[1] = true;
        coordinator->change.running = true;
        co_change_begin(coordinator, true, "n1", who, from);
        assert_false(coordinator->change.replace);
        coordinator->change.running = false;
        snprintf(expected, sizeof expected,
                 "%s CONFIG: this server is alone: start it with --coordinators for that\n"
                 "%s NOT_FOUND: no node \"n1\" has come up: leat cluster status names those that "
                 "have\n%s AGAIN: the voters are being changed already\n",
                 said, said, said);
        TRACE_IS(expected);
    }
    leads = false;
    co_change_begin(coordinator, false, "n1", NULL, &ticket);
    char expected[200];
    snprintf(expected, sizeof expected, "refuse NOT_LEADER: %s\n",
             leat_err_text(LEAT_E_NOT_LEADER));
    TRACE_IS(expected);
}

static void who_does_not_lead_asks_the_leader(void **state)
{
    (void)state;
    leads = false;
    leader = &peers[2].peer;
    co_change_begin(coordinator, true, "n1", &request, NULL);
    co_change_begin(coordinator, false, "n3", &request, NULL);
    TRACE_IS("call n2 kind 281 within 65000000 [2 true 'n1'\n"
             "call n2 kind 281 within 65000000 [2 false 'n3'\n");
    assert_false(coordinator->change.running);
    call_ends(LEAT_OK);
    call_ends(LEAT_E_EXISTS);
    TRACE_IS("done OK\nrefused EXISTS: words of a refusal\n");
    co_change_begin(coordinator, true, "n1", &request, NULL);
    trace_begin();
    call_ends(LEAT_E_CANCELLED);
    TRACE_IS("");
    link_rc = LEAT_E_CLOSED;
    co_change_begin(coordinator, true, "n1", &request, NULL);
    leat_mem_fail_at(1);
    co_change_begin(coordinator, true, "n1", &request, NULL);
    leader = NULL;
    co_change_begin(coordinator, true, "n1", &request, NULL);
    leader = &peers[2].peer;
    coordinator->links = NULL;
    co_change_begin(coordinator, true, "n1", &request, NULL);
    TRACE_IS("call n2 kind 281 within 65000000 [2 true 'n1' fails\nrefused CLOSED: no leader\n"
             "refused NOT_LEADER: no leader\nrefused NOT_LEADER: no leader\n"
             "refused NOT_LEADER: no leader\n");
}

/* ---- from a learner to a voter ---- */

static void learner_becomes_a_voter_step_by_step(void **state)
{
    (void)state;
    wanted(false);
    advance();
    TRACE_IS(JOIN);
    advance(); /* its answer is waited for */
    TRACE_IS("");
    call_ends(LEAT_OK);
    assert_true(coordinator->change.confirmed);
    peers[1].peer.state.role = LEAT_VOTER_JOINING;
    advance();
    TRACE_IS("change: 1 me:1 me votes, 11 h1:1 n1 spare\n");
    changing = true;
    advance();
    TRACE_IS("");
    changing = false;
    server_add(11, "h1:1 n1", RAFT_SPARE);
    coordinator->drive.raft.leader_state.promotee_id = 5;
    advance();
    TRACE_IS("catch up 11\n");
    assert_int_equal(coordinator->drive.raft.leader_state.promotee_id, 0);
    assert_int_equal(coordinator->change.tries, 1);
    catch_up_status = RAFT_CATCH_UP_RUNNING;
    advance();
    TRACE_IS("");
    catch_up_status = RAFT_CATCH_UP_FINISHED;
    coordinator->drive.raft.leader_state.promotee_id = 5;
    advance();
    TRACE_IS("change: 1 me:1 me votes, 11 h1:1 n1 votes\n");
    assert_int_equal(coordinator->drive.raft.leader_state.promotee_id, 0);
    servers[1].role = RAFT_VOTER;
    peers[1].peer.state.role = LEAT_VOTER_FOLLOWER;
    advance();
    TRACE_IS("done OK\n");
    assert_false(coordinator->change.running);
}

static void voter_of_lost_data_leaves_before_it_comes(void **state)
{
    (void)state;
    server_add(3, "h1:1 n1", RAFT_VOTER);
    server_add(10, "h0:1 n0", RAFT_VOTER);
    wanted(true);
    advance();
    TRACE_IS("change: 1 me:1 me votes, 10 h0:1 n0 votes\n");
    assert_true(coordinator->change.left && coordinator->change.lacked);
    servers[1] = servers[2];
    coordinator->drive.raft.configuration.n = 2;
    advance();
    TRACE_IS(JOIN);
    call_ends(LEAT_OK);
    peers[1].peer.state.role = LEAT_VOTER_CANDIDATE;
    advance();
    TRACE_IS("change: 1 me:1 me votes, 10 h0:1 n0 votes, 11 h1:1 n1 spare\n");
    server_add(11, "h1:1 n1", RAFT_VOTER);
    advance();
    TRACE_IS("done OK\n");
}

/* A voter that is there already is asked once more whether it knows. */
static void voter_that_is_there_is_asked_once_more(void **state)
{
    (void)state;
    const uint32_t runs[] = {LEAT_VOTER_FOLLOWER, LEAT_VOTER_CANDIDATE, LEAT_VOTER_LEADER,
                             LEAT_VOTER_JOINING};
    server_add(11, "h1:1 n1", RAFT_VOTER);
    for (unsigned c = 0; c < 8; c++) {
        wanted(c >= 4);
        peers[1].peer.state.role = runs[c % 4];
        advance();
        TRACE_IS(JOIN);
        call_ends(LEAT_OK);
        advance();
        TRACE_IS(c >= 4 ? "refused EXISTS: the node votes: there is nothing to replace\n"
                        : "done OK\n");
    }
    /* One that votes by the configuration, and has forgotten it: JOIN, too, but its vote was missing. */
    const uint32_t not [] = {LEAT_VOTER_LEARNER, LEAT_VOTER_EMPTY, LEAT_VOTER_FAILED,
                             LEAT_VOTER_PREPARED};
    for (unsigned c = 0; c < 4; c++) {
        bool begins =
            not [c] == LEAT_VOTER_PREPARED; /* by itself, as soon as the cluster is formed */
        wanted(true);
        peers[1].peer.state.role = not [c];
        advance();
        TRACE_IS(JOIN);
        assert_int_equal(coordinator->change.lacked, !begins);
        call_ends(LEAT_OK);
        peers[1].peer.state.role = LEAT_VOTER_FOLLOWER;
        advance();
        TRACE_IS(begins ? "refused EXISTS: the node votes: there is nothing to replace\n"
                        : "done OK\n");
    }
    wanted(true); /* a spare does not vote yet, whether or not it is about to run Raft */
    servers[1].role = RAFT_SPARE;
    peers[1].peer.state.role = LEAT_VOTER_PREPARED;
    advance();
    TRACE_IS(JOIN);
    assert_true(coordinator->change.lacked);
}

static void this_node_is_no_other(void **state)
{
    (void)state;
    for (unsigned replace = 0; replace < 2; replace++) {
        wanted(replace);
        snprintf(coordinator->change.node, sizeof coordinator->change.node, "me");
        advance();
        TRACE_IS(replace ? "refused EXISTS: the node votes: there is nothing to replace\n"
                         : "done OK\n");
    }
}

/* A voter that began alone has an address that no other node can reach, or no name: the change of voters repairs that
 * first. */
static void own_address_is_put_right_first(void **state)
{
    (void)state;
    server_add(10, "h0:1 n0", RAFT_VOTER);
    snprintf(server_texts[0], sizeof server_texts[0], "me:1 old");
    servers[0].role = RAFT_SPARE;
    wanted(false);
    advance();
    TRACE_IS("change: 1 me:1 me spare, 10 h0:1 n0 votes\n");
    assert_false(coordinator->change.lacked);
    servers[0].id = 2; /* not in it: nothing to put right */
    advance();
    TRACE_IS(JOIN);
}

static void what_is_lacking_is_waited_for(void **state)
{
    (void)state;
    wanted(false);
    peer_known[1] = false;
    advance();
    peer_known[1] = true;
    assert_false(coordinator->change.lacked);
    node_known[1] = false;
    advance();
    assert_true(coordinator->change.lacked);
    node_known[1] = true;
    snprintf(nodes[1].info.node_address, sizeof nodes[1].info.node_address, "nowhere");
    advance();
    TRACE_IS("");
    assert_true(coordinator->change.running);
}

static void change_that_names_the_wrong_node_ends(void **state)
{
    (void)state;
    server_add(12, "h1:1 n2", RAFT_VOTER);
    wanted(false);
    advance();
    TRACE_IS("refused EXISTS: another node votes at that node's address: give it an address of "
             "its own\n");
    snprintf(nodes[1].info.node_address, sizeof nodes[1].info.node_address, "me:1");
    wanted(false);
    advance();
    TRACE_IS("refused EXISTS: another node votes at that node's address: give it an address of "
             "its own\n");
    snprintf(nodes[1].info.node_address, sizeof nodes[1].info.node_address, "h1:1");
    snprintf(server_texts[1], sizeof server_texts[1], "h7:1 n1");
    wanted(false);
    advance();
    TRACE_IS("refused EXISTS: the node votes under another id; has it lost its data? Then it is "
             "leat node replace\n");
    coordinator->drive.raft.configuration.n = 1;
    wanted(true);
    advance();
    TRACE_IS("refused NOT_FOUND: the node has no vote that could be replaced; if it shall have "
             "one: leat node add-voter\n");
    /* One that is on its way, or would vote, has been asked for before. */
    peers[1].peer.state.role = LEAT_VOTER_EMPTY;
    wanted(true);
    advance();
    TRACE_IS(JOIN);
    co_change_end(coordinator, LEAT_OK, "");
    server_add(11, "h1:1 n1", RAFT_SPARE);
    peers[1].peer.state.role = LEAT_VOTER_LEARNER;
    trace_begin();
    wanted(true);
    advance();
    TRACE_IS(JOIN);
    assert_true(coordinator->change.running);
}

static void there_are_only_so_many_voters(void **state)
{
    (void)state;
    peers[1].peer.state.role = LEAT_VOTER_FOLLOWER;
    for (unsigned i = 1; i < LEAT_VOTERS_MAX - 1; i++) {
        char text[32];
        snprintf(text, sizeof text, "x%u:1 x%u", i, i);
        server_add(100 + i, text, RAFT_VOTER);
    }
    wanted(false);
    advance();
    assert_non_null(strstr(trace_text, "11 h1:1 n1 spare"));
    trace_begin();
    server_add(200, "y:1 y", RAFT_SPARE);
    advance();
    TRACE_IS("refused TOO_MANY: the cluster has as many voters as it can have\n");
}

static void joining_voter_that_does_not_catch_up_is_given_up(void **state)
{
    (void)state;
    server_add(11, "h1:1 n1", RAFT_SPARE);
    peers[1].peer.state.role = LEAT_VOTER_JOINING;
    wanted(false);
    catch_up_status = RAFT_CATCH_UP_ABORTED;
    for (unsigned i = 0; i < CO_CATCH_UP_TRIES; i++) {
        advance();
        TRACE_IS("catch up 11\n");
    }
    advance();
    TRACE_IS("refused TIMEOUT: the node does not catch up with the coordinator's log\n");
    assert_false(coordinator->change.running);
}

/* ---- JOIN ---- */

static void join_that_is_refused_ends_the_change(void **state)
{
    (void)state;
    wanted(false);
    advance();
    trace_begin();
    call_ends(LEAT_E_STARTING);
    TRACE_IS("refused STARTING: words of a refusal\n");
    assert_false(coordinator->change.running || coordinator->change.confirmed);
    wanted(false);
    advance();
    trace_begin();
    call_ends(LEAT_E_CANCELLED);
    TRACE_IS("");
    assert_true(coordinator->change.running && coordinator->change.calling);
}

static void answer_to_an_earlier_join_means_nothing(void **state)
{
    (void)state;
    wanted(false);
    advance();
    assert_int_equal(coordinator->change.call_number, 1);
    co_change_end(coordinator, LEAT_OK, "");
    coordinator->change.calling = true;
    coordinator->change.call_number = 1;
    trace_begin();
    call_ends(LEAT_OK); /* nothing runs */
    TRACE_IS("");
    assert_false(coordinator->change.confirmed);
    coordinator->change.calling = false;
    wanted(false);
    advance();
    co_change_end(coordinator, LEAT_OK, "");
    trace_begin();
    wanted(false);
    coordinator->change.call_number = 2;
    call_ends(LEAT_E_STARTING); /* nothing was called for in this one */
    assert_true(coordinator->change.running);
    advance();
    now_us += 2 * CO_CALL_US;
    advance();
    trace_begin();
    assert_int_equal(coordinator->change.call_number, 4);
    call_ends(LEAT_OK); /* of the call before */
    assert_true(coordinator->change.calling && !coordinator->change.confirmed);
    call_ends(LEAT_OK);
    assert_true(!coordinator->change.calling && coordinator->change.confirmed);
    TRACE_IS("");
}

static void join_without_an_answer_is_made_again(void **state)
{
    (void)state;
    wanted(false);
    advance();
    assert_int_equal(coordinator->change.calling_until_us, now_us + 2 * CO_CALL_US);
    now_us += 2 * CO_CALL_US - 1;
    advance();
    TRACE_IS(JOIN);
    now_us++;
    advance();
    TRACE_IS(JOIN);
    now_us += 2 * CO_CALL_US;
    link_rc = LEAT_E_CLOSED;
    advance();
    assert_false(coordinator->change.calling);
    leat_mem_fail_at(1);
    advance();
    assert_false(coordinator->change.calling);
    TRACE_IS("call n1 kind 280 within 5000000 [2 <000102030405060708090a0b0c0d0e0f> 11 fails\n");
}

/* ---- when it goes on ---- */

static void change_goes_on_only_at_the_leader(void **state)
{
    (void)state;
    wanted(false);
    leads = false;
    advance();
    leads = true;
    coordinator->votes = false;
    advance();
    coordinator->votes = changing = true;
    advance();
    TRACE_IS("");
    assert_true(coordinator->change.running);
    now_us += 60 * 1000 * 1000;
    advance();
    TRACE_IS("");
    now_us++;
    advance();
    TRACE_IS("refused TIMEOUT: the node has not connected, or too few voters are up; ask again\n");
}

static void change_that_raft_refuses_ends(void **state)
{
    (void)state;
    peers[1].peer.state.role = LEAT_VOTER_FOLLOWER;
    wanted(false);
    change_rc = LEAT_E_AGAIN;
    advance();
    assert_true(coordinator->change.running);
    change_rc = LEAT_E_NOT_LEADER;
    advance();
    TRACE_IS("change: 1 me:1 me votes, 11 h1:1 n1 spare\n"
             "change: 1 me:1 me votes, 11 h1:1 n1 spare\n"
             "refused NOT_LEADER: the voters can't be changed now\n");
    /* At each step. */
    for (unsigned c = 0; c < 3; c++) {
        coordinator->drive.raft.configuration.n = 1;
        snprintf(server_texts[0], sizeof server_texts[0], c == 0 ? "old:1 me" : "me:1 me");
        if (c == 1) server_add(3, "h1:1 n1", RAFT_VOTER);
        if (c == 2) server_add(11, "h1:1 n1", RAFT_SPARE);
        catch_up_status = RAFT_CATCH_UP_FINISHED;
        wanted(true);
        advance();
        const char *const proposed[] = {"1 me:1 me votes", "1 me:1 me votes",
                                        "1 me:1 me votes, 11 h1:1 n1 votes"};
        char expected[200];
        snprintf(expected, sizeof expected,
                 "change: %s\nrefused NOT_LEADER: the voters can't be changed now\n", proposed[c]);
        TRACE_IS(expected);
    }
}

/* A configuration that is none, of two servers with one address, raft never sees. */
static void what_is_no_configuration_is_not_proposed(void **state)
{
    (void)state;
    const char *const none = "refused INVALID: the voters can't be changed now\n";
    server_add(10, "me:1 me", RAFT_VOTER);
    server_add(12, "h2:1 n2", RAFT_VOTER);
    snprintf(server_texts[0], sizeof server_texts[0], "old:1 me");
    wanted(true);
    advance();
    TRACE_IS(none);
    coordinator->drive.raft.configuration.n = 1;
    snprintf(server_texts[0], sizeof server_texts[0], "me:1 me");
    server_add(12, "h2:1 n2", RAFT_VOTER);
    server_add(13, "h2:1 n2", RAFT_VOTER);
    peers[1].peer.state.role = LEAT_VOTER_FOLLOWER;
    wanted(false);
    advance();
    TRACE_IS(none);
}

/* A change that has ended, or was never begun, takes no step. */
static void step_is_taken_only_by_what_runs(void **state)
{
    (void)state;
    snprintf(server_texts[0], sizeof server_texts[0], "old:1 me");
    now_us = 1000;
    advance();
    TRACE_IS("");
    wanted(false);
    now_us += 60 * 1000 * 1000 + 1;
    advance();
    TRACE_IS("refused TIMEOUT: the node has not connected, or too few voters are up; ask again\n");
}

static void addresses_are_put_right_while_nobody_comes_or_goes(void **state)
{
    (void)state;
    server_add(10, "h0:1 n0", RAFT_SPARE);
    server_add(12, "h2:1 n2", RAFT_VOTER);
    advance();
    TRACE_IS("");
    correct_id = 10;
    coordinator->clustered = false;
    advance();
    coordinator->clustered = changing = true;
    advance();
    changing = leads = false;
    advance();
    TRACE_IS("");
    leads = true;
    advance();
    change_rc = LEAT_E_AGAIN;
    advance();               /* tried again */
    correct_id = UINT64_MAX; /* all: one at a time */
    advance();
    TRACE_IS("change: 1 me:1 me votes, 10 right:1 n9 spare, 12 h2:1 n2 votes\n"
             "change: 1 me:1 me votes, 10 right:1 n9 spare, 12 h2:1 n2 votes\n"
             "change: 1 right:1 n9 votes, 10 h0:1 n0 spare, 12 h2:1 n2 votes\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMBERS_TEST(change_begins_for_a_request_or_a_ticket),
        MEMBERS_TEST(change_that_can_not_begin_is_refused),
        MEMBERS_TEST(who_does_not_lead_asks_the_leader),
        MEMBERS_TEST(learner_becomes_a_voter_step_by_step),
        MEMBERS_TEST(voter_of_lost_data_leaves_before_it_comes),
        MEMBERS_TEST(voter_that_is_there_is_asked_once_more),
        MEMBERS_TEST(this_node_is_no_other),
        MEMBERS_TEST(own_address_is_put_right_first),
        MEMBERS_TEST(what_is_lacking_is_waited_for),
        MEMBERS_TEST(change_that_names_the_wrong_node_ends),
        MEMBERS_TEST(there_are_only_so_many_voters),
        MEMBERS_TEST(joining_voter_that_does_not_catch_up_is_given_up),
        MEMBERS_TEST(join_that_is_refused_ends_the_change),
        MEMBERS_TEST(answer_to_an_earlier_join_means_nothing),
        MEMBERS_TEST(join_without_an_answer_is_made_again),
        MEMBERS_TEST(change_goes_on_only_at_the_leader),
        MEMBERS_TEST(change_that_raft_refuses_ends),
        MEMBERS_TEST(what_is_no_configuration_is_not_proposed),
        MEMBERS_TEST(step_is_taken_only_by_what_runs),
        MEMBERS_TEST(addresses_are_put_right_while_nobody_comes_or_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
