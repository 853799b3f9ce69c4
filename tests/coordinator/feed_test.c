/* SPDX-License-Identifier: Apache-2.0 */
/* A voter that feeds learners: entries, or a snapshot where its log begins later; one message at a time. */
#include "coordinator/membership/feed.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/feed_rig.h"

static struct co_peer *const learner = &peers[1].peer;

static int begin_voter(void **state)
{
    begin(state);
    coordinator->votes = true;
    return 0;
}
static int finish(void **state)
{
    for (unsigned i = 0; i < PEERS; i++)
        co_feed_peer_gone(coordinator, &peers[i].peer);
    return solo_finish(state);
}
#define VOTER_TEST(name) cmocka_unit_test_setup_teardown(name, begin_voter, finish)

static void entries_that_are_applied_go_out_one_message_at_a_time(void **state)
{
    (void)state;
    coordinator->applied = 3;
    co_feed_wanted(coordinator, learner, 2);
    assert_true(learner->feeding);
    co_feed_advance(coordinator);
    TRACE_IS("call n1 kind 278 within 5000000 [2 2 2 "
             "+21:020000000100000063640300000001000000646566\n");
    assert_true(learner->feed_busy);
    assert_int_equal(learner->feed_next, 2);
    coordinator->applied = 4;
    co_feed_advance(coordinator);
    TRACE_IS("");
    call_ends(LEAT_OK);
    assert_false(learner->feed_busy);
    assert_int_equal(learner->feed_next, 4);
    co_feed_advance(coordinator);
    TRACE_IS("call n1 kind 278 within 5000000 [2 4 1 +12:040000000100000065666768\n");
    call_ends(LEAT_OK);
    co_feed_advance(coordinator);
    TRACE_IS("");
    /* Of nothing there is still an entry; its type goes with it. */
    coordinator->applied = 5;
    entries[5].type = RAFT_CHANGE;
    co_feed_advance(coordinator);
    TRACE_IS("call n1 kind 278 within 5000000 [2 5 1 +8:0000000003000000\n");
}

static void who_is_fed(void **state)
{
    (void)state;
    co_feed_advance(coordinator);
    TRACE_IS(""); /* nobody has asked */
    co_feed_wanted(coordinator, &peers[0].peer, 11);
    co_feed_wanted(coordinator, &peers[1].peer, 0); /* from the beginning, that is */
    co_feed_wanted(coordinator, &peers[2].peer, 10);
    co_feed_wanted(coordinator, &peers[3].peer, 9);
    assert_int_equal(peers[1].peer.feed_next, 1);
    peers[1].up = false;
    coordinator->votes = false;
    co_feed_advance(coordinator);
    TRACE_IS("");
    coordinator->votes = true;
    co_feed_advance(coordinator);
    TRACE_IS("call n2 kind 278 within 5000000 [2 10 1 +8:0000000001000000\n"
             "call n3 kind 278 within 5000000 [2 9 2 "
             "+20:04000000010000006a6b6c6d0000000001000000\n");
}

/* A message has as many bytes as permitted, headers included and the last entry's excluded: with one byte more the
 * entry waits. */
static void message_holds_so_many_bytes(void **state)
{
    (void)state;
    static uint8_t large[CO_FEED_BYTES + 8];
    for (unsigned more = 0; more < 2; more++) {
        coordinator->applied = 3;
        entries[1] = (struct leat_raft_entry){.type = 1, .data = large, .bytes = 1000};
        entries[2] = (struct leat_raft_entry){
            .type = 1, .data = large, .bytes = CO_FEED_BYTES - 1008 + more};
        entries[3] = (struct leat_raft_entry){.type = 1, .data = large, .bytes = 1};
        co_feed_wanted(coordinator, learner, 1);
        co_feed_advance(coordinator);
        assert_int_equal(calls[0]->payload[0].bytes, more ? 1008 : CO_FEED_BYTES + 8);
        assert_int_equal(calls[0]->control[2], more ? 1 : 2);
        call_ends(LEAT_OK);
        assert_int_equal(learner->feed_next, more ? 2 : 3);
    }
    /* The first goes at any rate. */
    entries[2].bytes = CO_FEED_BYTES + 8;
    co_feed_advance(coordinator);
    assert_int_equal(calls[0]->payload[0].bytes, CO_FEED_BYTES + 16);
    trace_begin();
}

static void answer_that_is_no_success_ends_the_feeding(void **state)
{
    (void)state;
    const leat_err codes[] = {LEAT_E_AGAIN, LEAT_E_CLOSED, LEAT_E_TIMEOUT};
    for (unsigned c = 0; c < 3; c++) {
        co_feed_wanted(coordinator, learner, 10);
        co_feed_advance(coordinator);
        trace_begin();
        call_ends(codes[c]);
        assert_false(learner->feeding || learner->feed_busy);
        assert_int_equal(learner->feed_next, 10);
        if (c == 2)
            TRACE_IS("cut n1: TIMEOUT: a learner took too long\n");
        else
            TRACE_IS("");
        co_feed_advance(coordinator);
        TRACE_IS("");
    }
    /* The coordinator closes: nothing is touched. */
    co_feed_wanted(coordinator, learner, 10);
    co_feed_advance(coordinator);
    trace_begin();
    call_ends(LEAT_E_CANCELLED);
    assert_true(learner->feeding && learner->feed_busy);
    TRACE_IS("");
}

static void what_was_not_sent_is_tried_again(void **state)
{
    (void)state;
    co_feed_wanted(coordinator, learner, 10);
    leat_mem_fail_at(1);
    co_feed_advance(coordinator);
    TRACE_IS("");
    link_rc = LEAT_E_AGAIN;
    co_feed_advance(coordinator);
    assert_true(learner->feeding && !learner->feed_busy);
    link_rc = LEAT_OK;
    co_feed_advance(coordinator);
    TRACE_IS("call n1 kind 278 within 5000000 [2 10 1 +8:0000000001000000 fails\n"
             "call n1 kind 278 within 5000000 [2 10 1 +8:0000000001000000\n");
}

/* An answer to a message from before the learner asked again counts for nothing. */
static void who_asks_anew_is_fed_from_there(void **state)
{
    (void)state;
    co_feed_wanted(coordinator, learner, 10);
    co_feed_advance(coordinator);
    co_feed_peer_gone(coordinator, &peers[2].peer);
    assert_true(learner->feeding);
    coordinator->feeder = learner;
    co_feed_peer_gone(coordinator, &peers[2].peer);
    assert_ptr_equal(coordinator->feeder, learner);
    co_feed_peer_gone(coordinator, learner);
    assert_true(!learner->feeding && !learner->feed_busy);
    assert_null(coordinator->feeder);
    call_ends(LEAT_OK); /* it is not feeding: nothing moves on */
    assert_int_equal(learner->feed_next, 10);
    /* Entries are no part of a snapshot. */
    co_feed_wanted(coordinator, learner, 10);
    co_feed_advance(coordinator);
    learner->feed_snapshot = leat_mem_calloc(LEAT_MEM_COORDINATOR, 100, 1);
    learner->feed_bytes = 100;
    call_ends(LEAT_OK);
    assert_int_equal(learner->feed_offset, 0);
    trace_begin();
}

/* ---- snapshots ---- */

static void snapshot_goes_out_where_the_log_begins_later(void **state)
{
    (void)state;
    log_first = 6;
    co_feed_wanted(coordinator, learner, 5);
    co_feed_advance(coordinator);
    TRACE_IS("snapshot\n"
             "call n1 kind 279 within 5000000 [3 10 10 0 +10:00010203040506070809\n");
    assert_true(learner->feed_busy);
    coordinator->applied = 12; /* goes on meanwhile */
    co_feed_advance(coordinator);
    TRACE_IS("");
    call_ends(LEAT_OK);
    assert_null(learner->feed_snapshot);
    assert_int_equal(learner->feed_next, 11);
    co_feed_advance(coordinator);
    TRACE_IS(
        "call n1 kind 278 within 5000000 [2 11 2 +19:01000000010000006c02000000010000006d6e\n");
}

static void snapshot_goes_out_in_chunks(void **state)
{
    (void)state;
    log_first = 11;
    snapshot_bytes = 2 * CO_CHUNK_BYTES + 1;
    co_feed_wanted(coordinator, learner, 1);
    co_feed_advance(coordinator);
    coordinator->applied = 11;
    const size_t sizes[] = {CO_CHUNK_BYTES, CO_CHUNK_BYTES, 1};
    for (unsigned i = 0; i < 3; i++) {
        if (i) co_feed_advance(coordinator);
        assert_int_equal(calls[0]->payload[0].bytes, sizes[i]);
        assert_memory_equal(calls[0]->payload[0].base, learner->feed_snapshot + i * CO_CHUNK_BYTES,
                            sizes[i]);
        assert_int_equal(learner->feed_offset, i * CO_CHUNK_BYTES);
        assert_int_equal(learner->feed_next, 1);
        call_ends(LEAT_OK);
        assert_int_equal(learner->feed_snapshot != NULL, i < 2);
    }
    assert_int_equal(learner->feed_next, 11);
    /* Should the log begin later still, another one begins at its first byte. */
    coordinator->applied = 12;
    log_first = 13;
    snapshot_bytes = 7;
    co_feed_advance(coordinator);
    assert_int_equal(learner->feed_offset, 0);
    assert_int_equal(calls[0]->payload[0].bytes, 7);
    assert_memory_equal(trace_text, "snapshot\ncall n1 kind 279", 25);
    trace_begin();
}

static void chunk_of_a_snapshot_given_up_moves_nothing_on(void **state)
{
    (void)state;
    log_first = 11;
    snapshot_bytes = 2 * CO_CHUNK_BYTES;
    co_feed_wanted(coordinator, learner, 1);
    co_feed_advance(coordinator);
    co_feed_wanted(coordinator, learner, 7); /* asks anew: from there, and no snapshot of before */
    assert_null(learner->feed_snapshot);
    assert_int_equal(learner->feed_bytes + learner->feed_offset, 0);
    call_ends(LEAT_OK);
    assert_int_equal(learner->feed_next, 7);
    assert_int_equal(learner->feed_offset, 0);
    assert_false(learner->feed_busy);
    /* One that fails is given up, too. */
    co_feed_advance(coordinator);
    assert_non_null(learner->feed_snapshot);
    call_ends(LEAT_E_CLOSED);
    assert_null(learner->feed_snapshot);
    trace_begin();
}

/* A snapshot that can't be made or sent is tried again at the next turn, and the next turn goes on at the same
 * index. */
static void snapshot_is_tried_again(void **state)
{
    (void)state;
    log_first = 11;
    co_feed_wanted(coordinator, learner, 1);
    snapshot_rc = LEAT_E_NO_MEMORY;
    learner->feed_index = 3;
    co_feed_advance(coordinator);
    assert_null(learner->feed_snapshot);
    assert_int_equal(learner->feed_index, 3);
    TRACE_IS("snapshot\n");
    snapshot_rc = LEAT_OK;
    leat_mem_fail_at(2); /* the first is the snapshot itself */
    co_feed_advance(coordinator);
    TRACE_IS("snapshot\n");
    assert_non_null(learner->feed_snapshot);
    link_rc = LEAT_E_AGAIN;
    co_feed_advance(coordinator);
    link_rc = LEAT_OK;
    co_feed_advance(coordinator);
    TRACE_IS("call n1 kind 279 within 5000000 [3 10 10 0 +10:00010203040506070809 fails\n"
             "call n1 kind 279 within 5000000 [3 10 10 0 +10:00010203040506070809\n");
}

static void so_many_snapshots_are_under_way_at_once(void **state)
{
    (void)state;
    struct peer_of_test more = {.up = true};
    assert_int_equal(PEERS, CO_FEED_SNAPSHOTS_MAX);
    more.peer.link = (struct leat_link *)(void *)&peers[3]; /* for its name */
    leat_list_init(&more.peer.list);
    leat_list_push_back(&coordinator->peers, &more.peer.list);
    log_first = 11;
    for (unsigned i = 0; i < PEERS; i++)
        co_feed_wanted(coordinator, &peers[i].peer, 1);
    co_feed_wanted(coordinator, &more.peer, 1);
    co_feed_advance(coordinator);
    assert_int_equal(call_count, PEERS);
    assert_null(more.peer.feed_snapshot);
    call_ends(LEAT_OK);
    co_feed_advance(coordinator);
    assert_int_equal(call_count, PEERS);
    assert_non_null(more.peer.feed_snapshot);
    while (call_count)
        call_ends(LEAT_OK);
    leat_list_remove(&more.peer.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VOTER_TEST(entries_that_are_applied_go_out_one_message_at_a_time),
        VOTER_TEST(who_is_fed),
        VOTER_TEST(message_holds_so_many_bytes),
        VOTER_TEST(answer_that_is_no_success_ends_the_feeding),
        VOTER_TEST(what_was_not_sent_is_tried_again),
        VOTER_TEST(who_asks_anew_is_fed_from_there),
        VOTER_TEST(snapshot_goes_out_where_the_log_begins_later),
        VOTER_TEST(snapshot_goes_out_in_chunks),
        VOTER_TEST(chunk_of_a_snapshot_given_up_moves_nothing_on),
        VOTER_TEST(snapshot_is_tried_again),
        VOTER_TEST(so_many_snapshots_are_under_way_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
