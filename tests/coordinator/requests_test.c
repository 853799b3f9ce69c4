/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a request: at once, when its entry was applied, when the tables were replaced, and when no answer
 * comes. */
#include "coordinator/membership/requests.h"
#include "tests/coordinator/requests_rig.h"

/* ---- in ---- */

static void request_is_queued(void **state)
{
    (void)state;
    requests[0].sequence = 9;
    requests[0].sent_us = 9;
    requests[0].takes_back = true;
    requests[0].rc = LEAT_E_DISK;
    requests[0].bytes = (uint8_t *)&requests[1]; /* whatever was there */
    ask(0);
    where();
    TRACE_IS("asked\nqueue r0, pending\n");
    assert_int_equal(requests[0].from, 3);
    assert_int_equal(requests[0].since_us, now_us);
    assert_true(!requests[0].bytes && !requests[0].sequence && !requests[0].sent_us &&
                !requests[0].takes_back && requests[0].rc == LEAT_OK);
    ask(1);
    requests[2].bytes = (uint8_t *)&requests[1];
    co_request_queue(coordinator, &requests[2]);
    assert_null(requests[2].bytes);
    where();
    TRACE_IS("asked\nqueue r0 r1 r2, pending\n");
}

static void request_that_can_not_be_served_is_refused(void **state)
{
    (void)state;
    requests[0].epoch.v = 5;
    requests[0].bytes = (uint8_t *)&requests[1]; /* whatever was there */
    offence = "no sense";
    ask(0);
    TRACE_IS("asked\nmail to 3\ndone r0 INVALID: no sense\n");
    coordinator->failed = LEAT_E_DISK;
    snprintf(coordinator->failed_why, sizeof coordinator->failed_why, "the disk");
    ask(0);
    TRACE_IS("asked\nmail to 3\ndone r0 DISK: the disk\n");
    where();
    TRACE_IS("queue, pending\n");
}

static void tails_are_answered_from_the_tables(void **state)
{
    (void)state;
    requests[0].kind = LEAT_COORDINATE_TAILS;
    requests[0].error.code = LEAT_E_DISK; /* of before */
    ask(0);
    TRACE_IS("asked\ntails of r0\nmail to 3\ndone r0 OK\n");
    tails_rc = requests[0].error.code = LEAT_E_UNKNOWN_STREAM;
    ask(0);
    TRACE_IS("asked\ntails of r0\nmail to 3\ndone r0 UNKNOWN_STREAM: \n");
}

static void changes_of_the_voters_have_their_own_way(void **state)
{
    (void)state;
    requests[0].kind = LEAT_COORDINATE_ADD_VOTER;
    requests[1].kind = LEAT_COORDINATE_NODE_REPLACE;
    requests[0].target = requests[1].target = "n9";
    ask(0);
    ask(1);
    where();
    TRACE_IS("asked\nchange 0 n9 for r0\nasked\nchange 1 n9 for r1\nqueue, pending\n");
}

#define FULL "AGAIN: too many requests wait for the coordinator, or too many of this address\n"

static void places_are_shared(void **state)
{
    (void)state;
    coordinator->queue_count = LEAT_COORDINATE_QUEUE_MAX;
    ask(0);
    TRACE_IS("asked\nmail to 3\ndone r0 " FULL);
    coordinator->queue_count--;
    ask(0);
    TRACE_IS("asked\n");
    assert_int_equal(coordinator->queue_count, LEAT_COORDINATE_QUEUE_MAX);
    coordinator->queue_count = 1;
    coordinator->shares.all = LEAT_COORDINATE_CLIENTS_MAX; /* of others */
    requests[1].asker = 77;
    ask(1);
    TRACE_IS("asked\nmail to 3\ndone r1 " FULL);
    ask(2); /* the node itself */
    TRACE_IS("asked\n");
    coordinator->shares.all = 0;
    ask(1);
    assert_int_equal(coordinator->shares.all, 1);
    where();
    TRACE_IS("asked\nqueue r0 r2 r1, pending\n");
    assert_int_equal(coordinator->shares.most, LEAT_COORDINATE_CLIENTS_MAX);
    co_requests_fail(coordinator, LEAT_E_DISK, "all of them");
    assert_int_equal(coordinator->shares.all, 0);
    trace_begin();
}

static void session_is_drawn_and_never_none(void **state)
{
    (void)state;
    assert_int_equal(coordinator->session, 1001); /* of 1001; the dice before is of shares */
    dice = 1001;
    co_requests_init(coordinator);
    assert_int_equal(coordinator->session, 1003);
}

/* ---- applied ---- */

static void what_was_applied_is_told_by_kind(void **state)
{
    (void)state;
    struct leat_stream_desc desc = {.id = 44};
    const struct leat_machine_result result = {.stream_id = 4,
                                               .first_id = 3000,
                                               .id_count = 100,
                                               .incarnation = 66,
                                               .epoch = {8},
                                               .desc = &desc};
    const enum leat_coordinate_kind kinds[] = {
        LEAT_COORDINATE_PRODUCER_IDS, LEAT_COORDINATE_ACCEPT_LOSS, LEAT_COORDINATE_STREAM_CREATE,
        LEAT_COORDINATE_STREAM_CHANGE, LEAT_COORDINATE_NODE_UP};
    memset(coordinator->machine.cluster_id, 5, 16);
    for (unsigned c = 0; c < 5; c++) {
        requests[c].kind = kinds[c];
        requests[c].next_offset = 1;
    }
    sent_here(5);
    for (unsigned c = 0; c < 5; c++) {
        const struct leat_coordinate *it = &requests[c];
        applied(c + 1, &result);
        assert_int_equal(it->stream_id, 4);
        assert_int_equal(it->first_id, 3000);
        assert_int_equal(it->id_count, 100);
        assert_int_equal(it->epoch.v, 8);
        assert_int_equal(it->next_offset, c == 1 ? 3000 : 1);
        assert_ptr_equal(it->desc, c == 2 || c == 3 ? &desc : NULL);
        assert_int_equal(it->incarnation, c == 4 ? 66 : 0);
        assert_int_equal(it->cluster_id[15], c == 4 ? 5 : 0);
        assert_int_equal(coordinator->incarnation, c == 4 ? 66 : 0);
    }
    where();
    TRACE_IS("mail to 7\ndone r0 OK, epoch 8\nmail to 7\ndone r1 OK, epoch 8\n"
             "kept 44\nmail to 7\ndone r2 OK, epoch 8\nkept 44\nmail to 7\ndone r3 OK, epoch 8\n"
             "identity of 66\nstate told 1\nmail to 7\ndone r4 OK, epoch 8\nqueue, pending\n");
}

static void refusal_of_the_tables_is_handed_on(void **state)
{
    (void)state;
    requests[2].kind = LEAT_COORDINATE_STREAM_CREATE;
    requests[3].kind = LEAT_COORDINATE_STREAM_CHANGE;
    sent_here(4);
    struct leat_machine_result result = {.rc = LEAT_E_STALE_EPOCH, .epoch = {4}};
    (void)leat_error_set(&result.error, LEAT_E_STALE_EPOCH, "said");
    applied(1, &result);
    applied(2, RESULT(.rc = LEAT_E_NOT_FOUND));
    applied(3, RESULT(.epoch = {6}));
    applied(4, RESULT(.epoch = {0}));
    TRACE_IS("mail to 7\ndone r0 STALE_EPOCH: said, epoch 4\n"
             "mail to 7\ndone r1 NOT_FOUND: not found\n"
             "mail to 7\ndone r2 UNKNOWN_STREAM: no such stream, epoch 6\n"
             "mail to 7\ndone r3 UNKNOWN_STREAM: no such stream\n");
}

static void what_others_asked_for_is_none_of_these(void **state)
{
    (void)state;
    sent_here(2);
    const struct leat_machine_result other = {.session = coordinator->session + 2, .sequence = 1};
    co_requests_applied(coordinator, &other);
    applied(3, RESULT(.rc = LEAT_OK));
    where();
    TRACE_IS("queue, pending r0 r1\n");
    /* One that is to be sent again is found, too; one that was never sent has no sequence. */
    co_requests_again(coordinator);
    co_request_queue(coordinator, &requests[2]);
    applied(0, RESULT(.rc = LEAT_OK));
    applied(2, RESULT(.rc = LEAT_OK));
    where();
    TRACE_IS("mail to 7\ndone r1 OK\nqueue r0 r2, pending\n");
    applied(2, RESULT(.rc = LEAT_OK));
    TRACE_IS("");
}

static void own_requests_are_answered_at_once(void **state)
{
    (void)state;
    coordinator->ready_request.from = LEAT_ACTOR_COORDINATOR;
    co_request_answer(coordinator, &coordinator->ready_request);
    TRACE_IS("done ready OK\n");
    requests[0].rc = requests[1].rc = LEAT_OK;
    coordinator->adopting = &requests[0];
    co_request_answer(coordinator, &requests[1]);
    assert_ptr_equal(coordinator->adopting, &requests[0]);
    co_request_answer(coordinator, &requests[0]);
    assert_null(coordinator->adopting);
    TRACE_IS("mail to 7\ndone r1 OK\nmail to 7\ndone r0 OK\n");
}

/* ---- the last node's drain ---- */

static void drain_of_the_last_node_is_taken_back(void **state)
{
    (void)state;
    requests[0].kind = LEAT_COORDINATE_NODE_DRAIN;
    requests[2].kind = LEAT_COORDINATE_NODE_DRAIN;
    sent_here(3);
    applied(2, RESULT(.drained_last = true)); /* of another kind: nothing is to be taken back */
    applied(3, RESULT(.drained_last = false));
    TRACE_IS("mail to 7\ndone r1 OK\nmail to 7\ndone r2 OK\n");
    co_request_queue(coordinator, &requests[1]);
    applied(1, RESULT(.drained_last = true));
    assert_true(requests[0].takes_back);
    assert_null(requests[0].bytes);
    where();
    co_requests_advance(coordinator);
    applied(4, RESULT(.drained_last = false));
    where();
    TRACE_IS("queue r0 r1, pending\nencode r0\nencode r1\nsubmit 2: +2:7230 +2:7231\n"
             "mail to 7\ndone r0 INVALID: the last one\nqueue, pending r1\n");
    /* A refused one took nothing. */
    requests[3].kind = LEAT_COORDINATE_NODE_DRAIN;
    sent_here(0);
    co_request_queue(coordinator, &requests[3]);
    co_requests_advance(coordinator);
    trace_begin();
    applied(6, RESULT(.rc = LEAT_E_NOT_FOUND, .drained_last = true));
    TRACE_IS("mail to 7\ndone r3 NOT_FOUND: not found\n");
}

/* ---- adopting ---- */

static void adoption_has_its_epoch_but_for_what_is_left(void **state)
{
    (void)state;
    requests[0].kind = LEAT_COORDINATE_ADOPT;
    sent_here(1);
    assert_ptr_equal(coordinator->adopting, &requests[0]);
    applied(1, RESULT(.incarnation = 9, .epoch = {7}));
    TRACE_IS("mail to 7\ndone r0 OK, epoch 7\n");
    assert_null(coordinator->adopting);
    assert_int_equal(requests[0].incarnation, 9);
    assert_int_equal(requests[0].decision_count, 2);
    assert_int_equal(requests[0].decisions[0].epoch.v, 7);
    assert_int_equal(requests[0].decisions[1].epoch.v, 0);
    assert_int_equal(requests[0].decisions[2].epoch.v, 0); /* there are two */
    leat_mem_free(requests[0].decisions);
}

static void adoption_of_tables_that_have_changed_is_decided_anew(void **state)
{
    (void)state;
    coordinator->adopt_tries = 5;
    requests[0].kind = LEAT_COORDINATE_ADOPT;
    ask(0);
    requests[0].from = 7;
    assert_int_equal(coordinator->adopt_tries, 0);
    leads = true;
    ask(1);
    requests[1].from = 7;
    trace_begin();
    for (unsigned i = 1; i < 64; i++) {
        co_requests_advance(coordinator);
        where();
        TRACE_IS("adopt r0\nsubmit 1: +2:7230\nqueue r1, pending r0\n");
        applied(i, RESULT(.rc = LEAT_E_AGAIN));
        assert_null(coordinator->adopting);
        assert_null(requests[0].decisions);
        assert_int_equal(requests[0].decision_count, 0);
        where();
        TRACE_IS("queue r0 r1, pending\n");
    }
    co_requests_advance(coordinator);
    trace_begin();
    applied(64, RESULT(.rc = LEAT_E_AGAIN));
    assert_null(requests[0].decisions);
    where();
    char expected[200];
    snprintf(expected, sizeof expected, "mail to 7\ndone r0 AGAIN: %s\nqueue r1, pending\n",
             leat_err_text(LEAT_E_AGAIN));
    TRACE_IS(expected);
}

static void adoption_that_is_refused_has_no_decisions(void **state)
{
    (void)state;
    requests[0].kind = LEAT_COORDINATE_ADOPT;
    sent_here(1);
    applied(1, RESULT(.rc = LEAT_E_NOT_FOUND));
    assert_null(requests[0].decisions);
    TRACE_IS("mail to 7\ndone r0 NOT_FOUND: not found\n");
    encode_rc = LEAT_E_NO_MEMORY;
    requests[0].epoch.v = 3;
    co_request_queue(coordinator, &requests[0]);
    co_requests_advance(coordinator);
    assert_null(requests[0].decisions);
    TRACE_IS("adopt r0\nmail to 7\ndone r0 NO_MEMORY: can't be made\n");
    encode_rc = LEAT_OK;
    sent_here(1);
    co_requests_fail(coordinator, LEAT_E_DISK, "gone");
    assert_null(requests[0].decisions);
    assert_null(coordinator->adopting);
    TRACE_IS("mail to 7\ndone r0 DISK: gone\n");
}

/* ---- tables that were replaced, and the end ---- */

static void outcome_in_new_tables_is_an_answer(void **state)
{
    (void)state;
    sent_here(3);
    co_request_queue(coordinator, &requests[3]);
    outcome = (struct leat_machine_result){.sequence = 2, .epoch = {3}};
    co_requests_restored(coordinator);
    where();
    TRACE_IS("mail to 7\ndone r1 OK, epoch 3\nqueue r0 r2 r3, pending\n");
    outcome.sequence = 0; /* what was never sent has none */
    co_requests_restored(coordinator);
    where();
    TRACE_IS("queue r0 r2 r3, pending\n");
}

static void everything_is_refused_when_it_fails(void **state)
{
    (void)state;
    sent_here(2);
    requests[0].epoch.v = 2;
    co_request_queue(coordinator, &requests[2]);
    co_requests_fail(coordinator, LEAT_E_DISK, "why");
    where();
    TRACE_IS("mail to 7\ndone r0 DISK: why\nmail to 7\ndone r1 DISK: why\n"
             "mail to 7\ndone r2 DISK: why\nqueue, pending\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REQUESTS_TEST(request_is_queued),
        REQUESTS_TEST(request_that_can_not_be_served_is_refused),
        REQUESTS_TEST(tails_are_answered_from_the_tables),
        REQUESTS_TEST(changes_of_the_voters_have_their_own_way),
        REQUESTS_TEST(places_are_shared),
        REQUESTS_TEST(session_is_drawn_and_never_none),
        REQUESTS_TEST(what_was_applied_is_told_by_kind),
        REQUESTS_TEST(refusal_of_the_tables_is_handed_on),
        REQUESTS_TEST(what_others_asked_for_is_none_of_these),
        REQUESTS_TEST(own_requests_are_answered_at_once),
        REQUESTS_TEST(drain_of_the_last_node_is_taken_back),
        REQUESTS_TEST(adoption_has_its_epoch_but_for_what_is_left),
        REQUESTS_TEST(adoption_of_tables_that_have_changed_is_decided_anew),
        REQUESTS_TEST(adoption_that_is_refused_has_no_decisions),
        REQUESTS_TEST(outcome_in_new_tables_is_an_answer),
        REQUESTS_TEST(everything_is_refused_when_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
