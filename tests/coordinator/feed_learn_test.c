/* SPDX-License-Identifier: Apache-2.0 */
/* A learner: the node that it asks, the messages that it takes, and when it asks another node. */
#include "coordinator/membership/feed.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "tests/coordinator/feed_rig.h"

static const uint8_t cluster[16] = {1, 2, 3}, other_cluster[16] = {1, 2, 4};

static int begin_learner(void **state)
{
    begin(state);
    for (unsigned i = 0; i < 3; i++) {
        peer_votes[i] = true;
        peers[i].peer.state.role = i == 1 ? LEAT_VOTER_LEADER : LEAT_VOTER_FOLLOWER;
        memcpy(peers[i].peer.state.cluster_id, cluster, 16);
    }
    memcpy(own_identity.cluster_id, cluster, 16);
    dice = 0;
    return 0;
}
static int finish(void **state)
{
    leat_mem_free(coordinator->feed_in);
    return solo_finish(state);
}
#define LEARNER_TEST(name) cmocka_unit_test_setup_teardown(name, begin_learner, finish)

/* ---- who learns ---- */

static void who_does_not_vote_yet_learns(void **state)
{
    (void)state;
    struct raft_server servers[2] = {{.id = 2, .role = RAFT_VOTER}, {.id = 1, .role = RAFT_VOTER}};
    struct raft_configuration *configuration = &coordinator->drive.raft.configuration;
    assert_true(co_learns(coordinator));
    configuration->servers = servers;
    configuration->n = 2;
    assert_true(co_learns(coordinator)); /* raft does not run here */
    coordinator->votes = true;
    assert_false(co_learns(coordinator));
    servers[1].role = RAFT_SPARE;
    assert_true(co_learns(coordinator));
    servers[1].role = RAFT_STANDBY;
    assert_true(co_learns(coordinator));
    servers[1].role = RAFT_VOTER;
    configuration->n = 1;
    assert_true(co_learns(coordinator));
    configuration->n = 0;
    assert_true(co_learns(coordinator));
}

/* ---- who is asked ---- */

static void voter_drawn_by_dice_is_asked_from_what_is_here(void **state)
{
    (void)state;
    leader = &peers[1].peer; /* it is one of them, no more */
    for (unsigned i = 0; i < 4; i++) {
        coordinator->feeder = NULL;
        dice = i;
        coordinator->feed_in = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, 1);
        coordinator->feed_in_total = coordinator->feed_in_offset = 1;
        coordinator->current = false;
        coordinator->fed_us = 0;
        co_feed_tick(coordinator);
        assert_ptr_equal(coordinator->feeder, &peers[i % 3].peer);
        assert_true(coordinator->current);
        assert_int_equal(coordinator->fed_us, now_us);
        assert_null(coordinator->feed_in);
        assert_int_equal(coordinator->feed_in_total + coordinator->feed_in_offset, 0);
        call_ends(LEAT_OK);
        assert_non_null(coordinator->feeder);
    }
    TRACE_IS("call n0 kind 277 within 5000000 [1 11\ncall n1 kind 277 within 5000000 [1 11\n"
             "call n2 kind 277 within 5000000 [1 11\ncall n0 kind 277 within 5000000 [1 11\n");
}

static void only_voters_of_the_cluster_are_asked(void **state)
{
    (void)state;
    const uint32_t roles[] = {LEAT_VOTER_LEARNER,   LEAT_VOTER_EMPTY,  LEAT_VOTER_PREPARED,
                              LEAT_VOTER_CANDIDATE, LEAT_VOTER_FAILED, LEAT_VOTER_JOINING};
    peer_votes[0] = peer_votes[1] = false;
    struct co_peer *peer = &peers[2].peer;
    for (unsigned i = 0; i < 6; i++) {
        peer->state.role = roles[i];
        co_feed_tick(coordinator);
    }
    peer->state.role = LEAT_VOTER_LEADER;
    memcpy(peer->state.cluster_id, other_cluster, 16);
    co_feed_tick(coordinator);
    memset(peer->state.cluster_id, 0, 16);
    co_feed_tick(coordinator);
    memset(own_identity.cluster_id, 0, 16); /* of none yet: any that has one */
    co_feed_tick(coordinator);
    TRACE_IS("");
    assert_null(coordinator->feeder);
    memcpy(peer->state.cluster_id, other_cluster, 16);
    co_feed_tick(coordinator);
    TRACE_IS("call n2 kind 277 within 5000000 [1 11\n");
    assert_ptr_equal(coordinator->feeder, peer);
}

/* More nodes may say that they vote than there may be voters. */
static void only_so_many_are_drawn_from(void **state)
{
    (void)state;
    struct peer_of_test more[LEAT_VOTERS_MAX];
    memset(more, 0, sizeof more);
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++) {
        more[i].peer = peers[0].peer;
        more[i].peer.link = (struct leat_link *)(void *)&peers[3];
        leat_list_init(&more[i].peer.list);
        leat_list_push_back(&coordinator->peers, &more[i].peer.list);
    }
    everybody_votes = true;
    dice = LEAT_VOTERS_MAX;
    co_feed_tick(coordinator);
    assert_ptr_equal(coordinator->feeder, &peers[0].peer);
    coordinator->feeder = NULL;
    dice = LEAT_VOTERS_MAX - 1;
    co_feed_tick(coordinator);
    assert_ptr_equal(coordinator->feeder, &more[LEAT_VOTERS_MAX - PEERS].peer);
    everybody_votes = false;
    trace_begin();
    for (unsigned i = 0; i < LEAT_VOTERS_MAX; i++)
        leat_list_remove(&more[i].peer.list);
}

static void who_votes_asks_nobody(void **state)
{
    (void)state;
    struct raft_server server = {.id = 1, .role = RAFT_VOTER};
    coordinator->drive.raft.configuration = (struct raft_configuration){.servers = &server, .n = 1};
    coordinator->votes = true;
    coordinator->feeder = &peers[0].peer;
    co_feed_tick(coordinator);
    assert_null(coordinator->feeder);
    co_feed_behind(coordinator, &peers[1].peer, 100);
    TRACE_IS("");
}

static void asking_that_fails_is_begun_anew(void **state)
{
    (void)state;
    leat_mem_fail_at(1);
    co_feed_tick(coordinator);
    assert_null(coordinator->feeder);
    TRACE_IS("");
    link_rc = LEAT_E_AGAIN;
    dice = 0;
    co_feed_tick(coordinator);
    assert_null(coordinator->feeder);
    assert_false(coordinator->current);
    link_rc = LEAT_OK;
    dice = 0;
    co_feed_tick(coordinator);
    TRACE_IS(
        "call n0 kind 277 within 5000000 [1 11 fails\ncall n0 kind 277 within 5000000 [1 11\n");
    call_ends(LEAT_E_CLOSED);
    assert_null(coordinator->feeder);
    /* An answer of who feeds no longer means nothing, nor one at close. */
    co_feed_tick(coordinator);
    coordinator->feeder = &peers[2].peer;
    call_ends(LEAT_E_CLOSED);
    assert_ptr_equal(coordinator->feeder, &peers[2].peer);
    coordinator->feeder = NULL;
    dice = 0;
    co_feed_tick(coordinator);
    call_ends(LEAT_E_CANCELLED);
    assert_ptr_equal(coordinator->feeder, &peers[0].peer);
    trace_begin();
}

/* ---- one that feeds no more ---- */

static void who_waits_in_vain_asks_another(void **state)
{
    (void)state;
    struct leat_list waits;
    leat_list_init(&waits);
    leat_list_push_back(&coordinator->pending, &waits);
    for (unsigned c = 0; c < 2; c++) {
        coordinator->feeder = &peers[0].peer;
        coordinator->fed_us = now_us - 2 * CO_RESEND_US - c;
        dice = 0;
        co_feed_tick(coordinator);
        TRACE_IS(c ? "call n1 kind 277 within 5000000 [1 11\n" : "");
        assert_ptr_equal(coordinator->feeder, &peers[c].peer);
    }
    /* Nothing waits: whoever says nothing has nothing to say. */
    leat_list_remove(&waits);
    coordinator->fed_us = 0;
    co_feed_tick(coordinator);
    TRACE_IS("");
    /* But of a term that is over it would be said by nobody. */
    leader = &peers[2].peer;
    leader->state.term = peers[1].peer.state.term = 4;
    co_feed_tick(coordinator);
    TRACE_IS("");
    leader->state.term = 5;
    coordinator->fed_us = now_us - 2 * CO_RESEND_US;
    co_feed_tick(coordinator);
    TRACE_IS("");
    coordinator->fed_us--;
    dice = 1;
    co_feed_tick(coordinator);
    TRACE_IS("call n2 kind 277 within 5000000 [1 11\n");
    /* With nobody else it stays. */
    peer_votes[0] = peer_votes[1] = false;
    leader->state.term = 7;
    struct co_peer later = {.state.term = 8};
    leader = &later;
    coordinator->fed_us = 0;
    co_feed_tick(coordinator);
    TRACE_IS("");
    assert_ptr_equal(coordinator->feeder, &peers[2].peer);
}

static void leader_that_is_further_is_asked(void **state)
{
    (void)state;
    co_feed_behind(coordinator, &peers[1].peer, 10);
    TRACE_IS("");
    coordinator->feeder = &peers[1].peer;
    co_feed_behind(coordinator, &peers[1].peer, 11);
    TRACE_IS("");
    coordinator->feeder = &peers[0].peer;
    co_feed_behind(coordinator, &peers[3].peer, 11);
    TRACE_IS("");
    co_feed_behind(coordinator, &peers[1].peer, 11);
    TRACE_IS("call n1 kind 277 within 5000000 [1 11\n");
    assert_ptr_equal(coordinator->feeder, &peers[1].peer);
}

/* ---- entries ---- */

static void entries_come(uint64_t first, uint64_t count, const void *payload, size_t bytes)
{
    const struct leat_frame frame = frame_of(NUMBERS(first, count), payload ? payload : "", bytes);
    coordinator->feeder = &peers[1].peer;
    coordinator->fed_us = 0;
    co_feed_entries(coordinator, &peers[1].peer, &frame, &ticket);
    assert_int_equal(coordinator->fed_us, now_us);
}
#define ONE         "\x02\0\0\0\x01\0\0\0xy"
#define EMPTY       "\0\0\0\0\x01\0\0\0"
#define OTHER       "\x01\0\0\0\x02\0\0\0z" /* a barrier */
#define BYTES(text) text, sizeof(text) - 1

static void entries_that_follow_are_applied(void **state)
{
    (void)state;
    entries_come(11, 3, BYTES(ONE OTHER EMPTY));
    TRACE_IS("apply at 11 +2:7879\napply at 13 +0\nanswer [0\n");
    assert_int_equal(coordinator->applied, 13);
    assert_ptr_equal(coordinator->feeder, &peers[1].peer);
    entries_come(14, 0, NULL, 0);
    TRACE_IS("answer [0\n");
}

static void entries_that_do_not_follow_are_refused(void **state)
{
    (void)state;
    const struct {
        uint64_t first, count, applied;
        const char *payload;
        size_t bytes;
        const char *said;
    } cases[] = {
        {10, 1, 10, BYTES(ONE), ""},
        {12, 1, 10, BYTES(ONE), ""},
        {11, 1, 11, BYTES(ONE "!"), "apply at 11 +2:7879\n"},
        {11, 2, 11, BYTES(ONE), "apply at 11 +2:7879\n"},
        {11, 2, 11, BYTES(ONE "\0\0\0\0\x01\0\0"), "apply at 11 +2:7879\n"},
        {11, 1, 10, BYTES("\x03\0\0\0\x01\0\0\0xy"), ""},
    };
    for (unsigned c = 0; c < 6; c++) {
        coordinator->applied = 10;
        entries_come(cases[c].first, cases[c].count, cases[c].payload, cases[c].bytes);
        char expected[200];
        snprintf(expected, sizeof expected, "%srefuse INVALID: not the entries that follow\n",
                 cases[c].said);
        TRACE_IS(expected);
        assert_int_equal(coordinator->applied, cases[c].applied);
        assert_null(coordinator->feeder);
    }
    coordinator->applied = 10;
    struct leat_frame frame = frame_of(NUMBERS(11, 1), BYTES(ONE));
    frame.control_bytes++; /* more than belongs there */
    coordinator->feeder = &peers[1].peer;
    co_feed_entries(coordinator, &peers[1].peer, &frame, &ticket);
    TRACE_IS("refuse INVALID: not the entries that follow\n");
}

#define STOPPED                                                                                    \
    "the coordinator has stopped: an entry from its voters can't be applied; is this program "     \
    "older than theirs?"

static void entry_that_can_not_be_applied_stops_the_learner(void **state)
{
    (void)state;
    apply_rc = LEAT_E_UNSUPPORTED;
    entries_come(11, 2, BYTES(ONE ONE));
    TRACE_IS("apply at 11 +2:7879\nrequests fail UNSUPPORTED: " STOPPED
             "\nrefuse UNSUPPORTED: not the entries that follow\n");
    assert_int_equal(coordinator->failed, LEAT_E_UNSUPPORTED);
    assert_string_equal(coordinator->failed_why, STOPPED);
    /* Nothing more is taken. */
    coordinator->feeder = &peers[1].peer;
    const struct leat_frame frame = frame_of(NUMBERS(12, 1), BYTES(ONE));
    co_feed_entries(coordinator, &peers[1].peer, &frame, &ticket);
    co_feed_snapshot(coordinator, &peers[1].peer, &frame, &ticket);
    TRACE_IS("refuse AGAIN: nothing is wanted of you\nrefuse AGAIN: nothing is wanted of you\n");
}

static void only_who_was_asked_is_listened_to(void **state)
{
    (void)state;
    const struct leat_frame frame = frame_of(NUMBERS(11, 1), BYTES(ONE));
    coordinator->feeder = &peers[1].peer;
    co_feed_entries(coordinator, &peers[2].peer, &frame, &ticket);
    co_feed_snapshot(coordinator, &peers[2].peer, &frame, &ticket);
    struct raft_server server = {.id = 1, .role = RAFT_VOTER};
    coordinator->drive.raft.configuration = (struct raft_configuration){.servers = &server, .n = 1};
    coordinator->votes = true;
    co_feed_entries(coordinator, &peers[1].peer, &frame, &ticket);
    co_feed_snapshot(coordinator, &peers[1].peer, &frame, &ticket);
    TRACE_IS("refuse AGAIN: nothing is wanted of you\nrefuse AGAIN: nothing is wanted of you\n"
             "refuse AGAIN: nothing is wanted of you\nrefuse AGAIN: nothing is wanted of you\n");
    assert_int_equal(coordinator->applied, 10);
    assert_ptr_equal(coordinator->feeder, &peers[1].peer);
    assert_int_equal(coordinator->fed_us, 0);
}

static void configuration_tells_who_votes(void **state)
{
    (void)state;
    uint8_t payload[128];
    struct raft_configuration configuration;
    struct raft_buffer buffer;
    raft_configuration_init(&configuration);
    assert_int_equal(raft_configuration_add(&configuration, 3, "a:1 n3", RAFT_VOTER), 0);
    assert_int_equal(raft_configuration_add(&configuration, 4, "b:1", RAFT_SPARE), 0);
    assert_int_equal(raft_configuration_encode(&configuration, &buffer), 0);
    leat_put_le32(payload, (uint32_t)buffer.len);
    leat_put_le32(payload + 4, RAFT_CHANGE);
    memcpy(payload + 8, buffer.base, buffer.len);
    entries_come(11, 1, payload, 8 + buffer.len);
    TRACE_IS("voters at 11: 3 a:1 n3 1 4 b:1 2\npeers wanted\nanswer [0\n");
    /* One that does not decode, or names nobody, is passed over. */
    payload[8] = 9;
    entries_come(12, 1, payload, 8 + buffer.len);
    memset(payload, 0, sizeof payload);
    payload[0] = 9;
    payload[4] = RAFT_CHANGE;
    payload[8] = 1;
    entries_come(13, 1, payload, 17);
    TRACE_IS("answer [0\nanswer [0\n");
    assert_int_equal(coordinator->applied, 13);
    raft_free(buffer.base);
    raft_configuration_close(&configuration);
}

/* ---- snapshots ---- */

static void chunk_comes(uint64_t index, uint64_t total, uint64_t offset, const char *text)
{
    const struct leat_frame frame = frame_of(NUMBERS(index, total, offset), text, strlen(text));
    coordinator->feeder = &peers[1].peer;
    coordinator->fed_us = 0;
    co_feed_snapshot(coordinator, &peers[1].peer, &frame, &ticket);
    assert_int_equal(coordinator->fed_us, now_us);
}

static void snapshot_takes_the_place_of_the_tables(void **state)
{
    (void)state;
    chunk_comes(20, 5, 0, "abc");
    TRACE_IS("chunk at 0 of 5\nanswer [0\n");
    assert_int_equal(coordinator->applied, 10);
    chunk_comes(20, 5, 3, "d");
    chunk_comes(20, 5, 4, "e");
    TRACE_IS("chunk at 3 of 5\nanswer [0\n"
             "chunk at 4 of 5\nrestore at 10 +5:6162636465\nanswer [0\n");
    assert_int_equal(coordinator->applied, 20);
    assert_ptr_equal(coordinator->feeder, &peers[1].peer);
    assert_null(coordinator->feed_in);
    assert_int_equal(coordinator->feed_in_total + coordinator->feed_in_offset, 0);
}

static void snapshot_of_one_byte_is_taken(void **state)
{
    (void)state;
    chunk_comes(20, 1, 0, "a");
    TRACE_IS("chunk at 0 of 1\nrestore at 10 +1:61\nanswer [0\n");
    assert_int_equal(coordinator->applied, 20);
}

static void chunk_that_is_not_the_next_is_refused(void **state)
{
    (void)state;
    const struct {
        uint64_t index, total, offset;
        const char *text;
    } cases[] = {{20, 5, 2, "cd"}, {20, 5, 4, "c"}, {20, 6, 3, "cd"},    {21, 5, 3, "cd"},
                 {10, 5, 3, "cd"}, {20, 5, 3, ""},  {20, 5, 3, "def"},   {20, 5, 5, "d"},
                 {20, 0, 0, "d"},  {10, 5, 0, "d"}, {20, 5, 0, "abcdef"}};
    for (unsigned c = 0; c < 11; c++) {
        chunk_comes(20, 5, 0, "abc");
        trace_begin();
        chunk_comes(cases[c].index, cases[c].total, cases[c].offset, cases[c].text);
        TRACE_IS("refuse INVALID: not the next chunk\n");
        assert_null(coordinator->feeder);
        assert_int_equal(coordinator->feed_in_offset, 3);
    }
    /* The first begins anew. */
    chunk_comes(21, 4, 0, "ab");
    assert_int_equal(coordinator->feed_in_index, 21);
    assert_int_equal(coordinator->feed_in_total, 4);
    TRACE_IS("chunk at 0 of 4\nanswer [0\n");
    chunk_comes(11, CO_SNAPSHOT_BYTES_MAX, 0, "ab");
    TRACE_IS("chunk at 0 of 536870912\nanswer [0\n");
    chunk_comes(11, (uint64_t)CO_SNAPSHOT_BYTES_MAX + 1, 0, "ab");
    TRACE_IS("refuse INVALID: not the next chunk\n");
    struct leat_frame frame = frame_of(NUMBERS(20, 5, 0), "ab", 2);
    frame.control_bytes++;
    coordinator->feeder = &peers[1].peer;
    co_feed_snapshot(coordinator, &peers[1].peer, &frame, &ticket);
    TRACE_IS("refuse INVALID: not the next chunk\n");
}

static void snapshot_without_memory_is_given_up(void **state)
{
    (void)state;
    chunk_comes(20, 5, 0, "abc");
    chunk_rc = LEAT_E_NO_MEMORY;
    trace_begin();
    chunk_comes(20, 5, 3, "de");
    TRACE_IS("chunk at 3 of 5\nrefuse NO_MEMORY: no memory for the snapshot\n");
    assert_null(coordinator->feeder);
    assert_null(coordinator->feed_in);
    assert_int_equal(coordinator->feed_in_total + coordinator->feed_in_offset, 0);
}

static void snapshot_that_does_not_decode_stops_the_learner(void **state)
{
    (void)state;
    restore_rc = LEAT_E_CORRUPT;
    chunk_comes(20, 2, 0, "ab");
    TRACE_IS("chunk at 0 of 2\nrestore at 10 +2:6162\nrequests fail CORRUPT: " STOPPED "\n"
             "refuse CORRUPT: not a snapshot of the tables\n");
    assert_int_equal(coordinator->failed, LEAT_E_CORRUPT);
    assert_null(coordinator->feeder);
    assert_int_equal(coordinator->applied, 10);
    assert_null(coordinator->feed_in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNER_TEST(who_does_not_vote_yet_learns),
        LEARNER_TEST(voter_drawn_by_dice_is_asked_from_what_is_here),
        LEARNER_TEST(only_voters_of_the_cluster_are_asked),
        LEARNER_TEST(only_so_many_are_drawn_from),
        LEARNER_TEST(who_votes_asks_nobody),
        LEARNER_TEST(asking_that_fails_is_begun_anew),
        LEARNER_TEST(who_waits_in_vain_asks_another),
        LEARNER_TEST(leader_that_is_further_is_asked),
        LEARNER_TEST(entries_that_follow_are_applied),
        LEARNER_TEST(entries_that_do_not_follow_are_refused),
        LEARNER_TEST(entry_that_can_not_be_applied_stops_the_learner),
        LEARNER_TEST(only_who_was_asked_is_listened_to),
        LEARNER_TEST(configuration_tells_who_votes),
        LEARNER_TEST(snapshot_takes_the_place_of_the_tables),
        LEARNER_TEST(snapshot_of_one_byte_is_taken),
        LEARNER_TEST(chunk_that_is_not_the_next_is_refused),
        LEARNER_TEST(snapshot_without_memory_is_given_up),
        LEARNER_TEST(snapshot_that_does_not_decode_stops_the_learner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
