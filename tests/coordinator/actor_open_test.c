/* SPDX-License-Identifier: Apache-2.0 */
/* How a coordinator opens: alone or of a cluster, new or not; with which voters it refuses to; what is undone. */
#include "coordinator/membership/detect.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/actor_rig.h"
#include "tests/coordinator/raft_heap.h"

#define BEGINS "co_requests_init\nco_detect_init\ntables 3\n"
#define ENDS                                                                                       \
    "co_detect_fini\nco_peers_fini\ndrive ends\nco_install_fini\nco_collect_fini\n"                \
    "co_recovery_fini\ntables end\ntimers end\n"
#define CLUSTERED "co_identity_update\nco_peers_want\ntick in 100000 us\nco_detect_start\n"
#define ALONE                                                                                      \
    BEGINS                                                                                         \
    "recovery 0 3\ntimers 7\nvoter?\ndrive 1 at 1, 1000 100 ms, snapshot 4194304, segment 0\n"
#define MANY                                                                                       \
    BEGINS                                                                                         \
    "recovery 1 3\ntimers 7\nvoter?\ndrive 1 at own:1, 400 80 ms, snapshot 4194304, segment "      \
    "0\npeers\n"
#define ID_DRAWN "11 11 11 11 11 11 11 11 22 22 22 22 22 22 22 22"

static const char *const voters[LEAT_VOTERS_MAX + 1] = {"h1:1", "h2:1", "h3:1", "h4:1", "h5:1",
                                                        "h6:1", "h7:1", "h8:1", "h9:1", "h10:1"};

static void an_embedded_node_forms_alone(void **state)
{
    (void)state;
    is_new = true;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(ALONE "random\nrandom\nform 1=1/1: c4 10 " ID_DRAWN "\nstart 1\nbegin in 0 us\n");
    assert_true(coordinator->votes && !coordinator->clustered);
    assert_int_equal(coordinator->forming, LEAT_VOTER_FOLLOWER);
    assert_true(leat_list_empty(&coordinator->peers));
    uint8_t id[17] = {[16] = 0x5a};
    memset(coordinator->machine.cluster_id, 0xc1, 16);
    leat_coordinator_cluster_id(coordinator, id);
    assert_memory_equal(id, coordinator->machine.cluster_id, 16);
    assert_int_equal(id[16], 0x5a);
    coordinator->begin_timer.on_expired(&coordinator->begin_timer);
    closes();
    TRACE_IS(ENDS);
    closes();
    is_new = false;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(ALONE "start 1\nbegin in 0 us\n");
    closes();
    trace_begin();
}

static void numbers_are_as_the_operator_says(void **state)
{
    (void)state;
    options.election_ms = 11;
    options.heartbeat_ms = 12;
    options.snapshot_bytes_min = 13;
    options.raft_segment_bytes = 14;
    voter_id = 15;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(BEGINS
             "recovery 0 3\ntimers 7\nvoter?\ndrive 15 at 1, 11 12 ms, snapshot 13, segment 14\n"
             "start 1\nbegin in 0 us\n");
}

static void a_node_with_an_address_forms_alone(void **state)
{
    (void)state;
    options.node_address = "own:1";
    is_new = true;
    options.cluster_id[3] = 7;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(MANY "form 1=own:1 own/1: c4 10 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 00\n"
                  "start 1\n" CLUSTERED "begin in 0 us\n");
}

static void a_node_of_a_list_forms_with_others(void **state)
{
    (void)state;
    options.node_address = "own:1";
    options.voters = voters;
    options.voter_count = LEAT_VOTERS_MAX;
    is_new = true;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(MANY "form open 1\n" CLUSTERED "begin in 0 us\n");
    assert_false(coordinator->votes);
    closes();
    trace_begin();
    form_open_rc = LEAT_E_DISK;
    assert_int_equal(opens(), LEAT_E_DISK);
    TRACE_IS(MANY "form open 1\n" ENDS);
    options.voter_count = LEAT_VOTERS_MAX + 1;
    assert_int_equal(opens(), LEAT_E_CONFIG);
    assert_string_equal(error.text,
                        "a cluster has 1 to 9 coordinators, and each node an address of "
                        "its own");
    options.voter_count = 1;
    options.node_address = NULL;
    assert_int_equal(opens(), LEAT_E_CONFIG);
    TRACE_IS("");
}

/* ---- a step that fails: the error is told, all is undone ---- */

static void fails(leat_err *step, const char *before, bool told)
{
    char all[2048];
    *step = LEAT_E_DISK;
    assert_int_equal(opens(), LEAT_E_DISK);
    assert_null(coordinator);
    snprintf(all, sizeof all, "%s" ENDS, before);
    trace_must_be(all, __FILE__, __LINE__);
    assert_int_equal(error.code, LEAT_E_DISK);
    if (!told) assert_string_equal(error.text, leat_err_text(LEAT_E_DISK));
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    *step = LEAT_OK;
}

static void each_step_that_fails_undoes_all(void **state)
{
    (void)state;
    options.node_address = "own:1";
    is_new = true;
    fails(&recovery_rc, BEGINS "recovery 1 3\n", false);
    fails(&timers_rc, BEGINS "recovery 1 3\ntimers 7\n", false);
    fails(&voter_rc, BEGINS "recovery 1 3\ntimers 7\nvoter?\n", true);
    assert_string_equal(error.text, "no voter");
    fails(&open_rc,
          BEGINS "recovery 1 3\ntimers 7\nvoter?\ndrive 1 at own:1, 400 80 ms, snapshot 4194304, "
                 "segment 0\n",
          false);
    fails(&peers_rc, MANY, false);
#define FORMS MANY "random\nrandom\nform 1=own:1 own/1: c4 10 " ID_DRAWN "\n"
    fails(&form_rc, FORMS, false);
    fails(&start_rc, FORMS "start 1\n", false);
    for (unsigned n = 1; n < 3; n++) {
        refuse = n;
        assert_int_equal(opens(), LEAT_E_NO_MEMORY);
        TRACE_IS(MANY "random\nrandom\n" ENDS);
    }
    assert_int_equal(refuse + blocks, 0);
    leat_mem_fail_at(1);
    assert_int_equal(opens(), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(error.text, "no memory for the coordinator");
    struct leat_coordinator *made = NULL;
    open_rc = LEAT_E_DISK;
    assert_int_equal(leat_coordinator_open(&env, &options, &made, NULL), LEAT_E_DISK);
    assert_null(made);
    trace_begin();
    open_rc = LEAT_OK;
    is_new = false; /* and its list is right */
    options.voters = voters;
    options.voter_count = 2;
    server(1, "h1:1 own");
    fails(&start_rc, MANY "start 1\n", false);
}

static void no_vote_where_raft_does_not_start(void **state)
{
    (void)state;
    options.node_address = "own:1";
    options.voters = voters;
    options.voter_count = 1;
    is_new = true;
    assert_int_equal(opens(), LEAT_OK);
    TRACE_IS(MANY "form open 1\n" CLUSTERED "begin in 0 us\n");
    coordinator->forming = LEAT_VOTER_PREPARED;
    trace_begin();
    start_rc = LEAT_E_DISK;
    assert_int_equal(co_vote_start(coordinator, &error), LEAT_E_DISK);
    TRACE_IS("start 1\n");
    assert_false(coordinator->votes);
    assert_int_equal(coordinator->forming, LEAT_VOTER_PREPARED);
    start_rc = LEAT_OK;
    assert_int_equal(co_vote_start(coordinator, &error), LEAT_OK);
    TRACE_IS("start 1\n");
    assert_true(coordinator->votes);
    assert_int_equal(coordinator->forming, LEAT_VOTER_FOLLOWER);
}

/* ---- whose directory this is ---- */

static void opens_as(leat_err rc, const char *text)
{
    options.node_address = "own:1";
    options.voters = voters;
    assert_int_equal(opens(), rc);
    trace_must_be(rc == LEAT_OK ? MANY "start 1\n" CLUSTERED "begin in 0 us\n"
                                : MANY "start 1\n" ENDS,
                  __FILE__, __LINE__);
    if (text) assert_string_equal(error.text, text);
    if (coordinator) closes();
    trace_begin();
    server_count = 0;
}

static void somebody_of_the_log_is_in_the_list(void **state)
{
    (void)state;
    options.voter_count = 2;
    opens_as(LEAT_OK, NULL); /* joined, and nothing has come yet */
    server(1, "h2:1 own");
    opens_as(LEAT_OK, NULL);
    server(1, "g1:1 own");
    server(2, "h1:1 b");
    opens_as(LEAT_OK, NULL);
    server(1, "g1:1 own");
    opens_as(LEAT_E_WRONG_CLUSTER,
             "this data directory is of another cluster, whose coordinators (g1:1) are "
             "not in --coordinators: correct the list, or choose another directory");
    server(1, "g1:1 own");
    server(2, "h3:1 b"); /* behind the list */
    opens_as(LEAT_E_WRONG_CLUSTER,
             "this data directory is of another cluster, whose coordinators (g1:1, ...) are "
             "not in --coordinators: correct the list, or choose another directory");
}

static void the_shortest_list_is_one_too(void **state)
{
    (void)state;
    options.voter_count = 1;
    server(1, "h2:1 own");
    opens_as(LEAT_E_WRONG_CLUSTER, NULL);
    server(1, "h2:1 old"); /* nor is its name: of another cluster it is first of all */
    opens_as(LEAT_E_WRONG_CLUSTER, NULL);
    server(1, "h1:1 own");
    opens_as(LEAT_OK, NULL);
}

static void who_was_alone_is_at_its_address_now(void **state)
{
    (void)state;
    options.voter_count = 2;
    server(1, "1");
    opens_as(LEAT_E_WRONG_CLUSTER,
             "this data directory is of a server alone: name its own address, own:1, "
             "in --coordinators, or choose another directory");
    static const char *const own[] = {"own:1"};
    server(1, "1");
    options.node_address = "own:1";
    options.voters = own;
    options.voter_count = 1;
    assert_int_equal(opens(), LEAT_OK);
    closes();
    trace_begin();
    server(2, "g2:1");
    servers[0].address = (char *)(uintptr_t) "2";
    opens_as(LEAT_E_WRONG_CLUSTER,
             "this data directory is of another cluster, whose coordinators (2, ...) are "
             "not in --coordinators: correct the list, or choose another directory");
}

static void a_voter_keeps_its_name(void **state)
{
    (void)state;
    options.voter_count = 2;
    server(1, "h1:1 o");
    opens_as(LEAT_E_CONFIG, NULL);
    server(1, "h1:1 old");
    opens_as(LEAT_E_CONFIG, "this data directory has the vote of node 'old', and a voter keeps its "
                            "name: start it with --node 'old'");
    server(1, "h1:1"); /* of a version that had no names */
    opens_as(LEAT_OK, NULL);
    server(2, "h1:1 old"); /* another's */
    opens_as(LEAT_OK, NULL);
    server(1, "1 old"); /* without a list nobody is compared, but the name is */
    options.node_address = "own:1";
    options.voter_count = 0;
    assert_int_equal(opens(), LEAT_E_CONFIG);
    TRACE_IS(MANY "start 1\n" ENDS);
    options.node_address = NULL;
    assert_int_equal(opens(), LEAT_OK);
    trace_begin();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ACTOR_TEST(an_embedded_node_forms_alone),
        ACTOR_TEST(numbers_are_as_the_operator_says),
        ACTOR_TEST(a_node_with_an_address_forms_alone),
        ACTOR_TEST(a_node_of_a_list_forms_with_others),
        ACTOR_TEST(each_step_that_fails_undoes_all),
        ACTOR_TEST(no_vote_where_raft_does_not_start),
        ACTOR_TEST(somebody_of_the_log_is_in_the_list),
        ACTOR_TEST(the_shortest_list_is_one_too),
        ACTOR_TEST(who_was_alone_is_at_its_address_now),
        ACTOR_TEST(a_voter_keeps_its_name),
    };
    heap_begin();
    return cmocka_run_group_tests(tests, NULL, NULL) || blocks != 0;
}
