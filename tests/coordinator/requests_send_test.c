/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way: to raft here, to a leader elsewhere, again after every doubt, and until their time is over. */
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/requests_rig.h"

static void queue_up(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        co_request_queue(coordinator, &requests[i]);
}
static void advance(void)
{
    co_requests_advance(coordinator);
}

/* ---- to raft here ---- */

static void leader_proposes_what_waits_together(void **state)
{
    (void)state;
    leads = true;
    advance();
    TRACE_IS("");
    queue_up(0, 2);
    busy = true;
    advance();
    TRACE_IS("");
    busy = false;
    now_us += 7;
    advance();
    where();
    TRACE_IS("encode r0\nencode r1\nsubmit 2: +2:7230 +2:7231\nqueue, pending r0 r1\n");
    assert_int_equal(requests[0].sent_us, now_us);
    assert_int_equal(requests[1].sent_us, now_us);
    assert_int_equal(requests[0].since_us, now_us - 7);
    /* Records are made once. */
    co_requests_again(coordinator);
    queue_up(2, 3);
    where();
    advance();
    TRACE_IS("queue r0 r1 r2, pending\nencode r2\nsubmit 3: +2:7230 +2:7231 +2:7232\n");
}

static void proposal_that_fails_is_made_again(void **state)
{
    (void)state;
    leads = true;
    queue_up(0, 2);
    submit_rc = LEAT_E_NOT_LEADER;
    advance();
    where();
    TRACE_IS("encode r0\nencode r1\nsubmit 2: +2:7230 +2:7231\nqueue r0 r1, pending\n");
    leat_mem_fail_at(1);
    advance();
    where();
    TRACE_IS("queue r0 r1, pending\n");
    /* Not by one that has failed: it has refused all of them. */
    coordinator->failed = LEAT_E_DISK;
    advance();
    TRACE_IS("");
    coordinator->failed = LEAT_OK;
}

static void fail_here(void)
{
    coordinator->failed = LEAT_E_DISK;
}
static void apply_here(void)
{
    applied(1, RESULT(.rc = LEAT_OK));
}

static void what_happens_inside_a_proposal_finds_it_sent(void **state)
{
    (void)state;
    leads = true;
    queue_up(0, 2);
    while_submitting = apply_here;
    advance();
    where();
    TRACE_IS("encode r0\nencode r1\nsubmit 2: +2:7230 +2:7231\nmail to 7\ndone r0 OK\n"
             "queue, pending r1\n");
    while_submitting = fail_here;
    submit_rc = LEAT_E_DISK;
    queue_up(2, 3);
    advance();
    where();
    TRACE_IS("encode r2\nsubmit 1: +2:7232\nqueue, pending r1 r2\n");
    coordinator->failed = LEAT_OK;
}

static void record_that_can_not_be_made_is_refused_alone(void **state)
{
    (void)state;
    leads = true;
    queue_up(0, 1);
    advance();
    co_requests_again(coordinator);
    queue_up(1, 2);
    requests[1].epoch.v = 4;
    encode_rc = LEAT_E_TOO_LARGE;
    trace_begin();
    advance();
    where();
    TRACE_IS("encode r1\nmail to 7\ndone r1 TOO_LARGE: can't be made\nsubmit 1: +2:7230\n"
             "queue, pending r0\n");
    queue_up(1, 2);
    advance();
    where();
    TRACE_IS("encode r1\nmail to 7\ndone r1 TOO_LARGE: can't be made\nqueue, pending r0\n");
}

/* As many bytes as may be, and then one more record; as many records as may be, and no more. */
static void batch_is_bounded(void **state)
{
    (void)state;
    for (unsigned less = 0; less < 2; less++) {
        leads = true;
        record_bytes = CO_SUBMIT_BYTES_MAX / 2 - 4 + (less ? 0 : 1);
        queue_up(0, 4);
        advance();
        trace_begin();
        where();
        TRACE_IS(less ? "queue r3, pending r0 r1 r2\n" : "queue r2 r3, pending r0 r1\n");
        co_requests_fail(coordinator, LEAT_E_DISK, "");
        trace_begin();
    }
    record_bytes = 0;
    struct leat_coordinate *many = calloc(CO_SUBMIT_COMMANDS_MAX + 1, sizeof *many);
    assert_non_null(many);
    for (unsigned i = 0; i <= CO_SUBMIT_COMMANDS_MAX; i++) {
        many[i].bytes = NULL;
        many[i].on_done = done;
        co_request_queue(coordinator, &many[i]);
        many[i].bytes = leat_mem_calloc(LEAT_MEM_COORDINATOR, 5, 1);
        many[i].bytes[0] = 1;
        many[i].byte_count = 5;
        many[i].sequence = 100 + i;
    }
    advance();
    TRACE_IS("submit 2048: +1:00 +1:00 +1:00 +1:00 +1:00 +1:00 +1:00 +1:00\n");
    assert_int_equal(coordinator->queue_count, 1);
    assert_ptr_equal(coordinator->queue.next, &many[CO_SUBMIT_COMMANDS_MAX].link);
    for (unsigned i = 0; i <= CO_SUBMIT_COMMANDS_MAX; i++) {
        leat_list_remove(&many[i].link);
        leat_mem_free(many[i].bytes);
    }
    coordinator->queue_count = 0;
    free(many);
}

static void adoption_goes_alone(void **state)
{
    (void)state;
    leads = true;
    requests[1].kind = LEAT_COORDINATE_ADOPT;
    queue_up(0, 3);
    advance();
    where();
    TRACE_IS("encode r0\nsubmit 1: +2:7230\nqueue r1 r2, pending r0\n");
    advance(); /* not before that is applied */
    where();
    TRACE_IS("queue r1 r2, pending r0\n");
    applied(1, RESULT(.rc = LEAT_OK));
    advance();
    where();
    TRACE_IS("mail to 7\ndone r0 OK\nadopt r1\nsubmit 1: +2:7231\nqueue r2, pending r1\n");
    advance(); /* and nothing beside it */
    TRACE_IS("");
    co_requests_again(coordinator);
    advance();
    where();
    TRACE_IS("submit 1: +2:7231\nqueue r2, pending r1\n");
    applied(2, RESULT(.rc = LEAT_OK));
    advance();
    where();
    TRACE_IS("mail to 7\ndone r1 OK\nencode r2\nsubmit 1: +2:7232\nqueue, pending r2\n");
    leat_mem_free(requests[1].decisions);
}

static void full_disk_refuses_what_was_never_sent(void **state)
{
    (void)state;
    leads = true;
    queue_up(0, 1);
    advance();
    co_requests_again(coordinator);
    queue_up(1, 3);
    coordinator->drive.log.full = true;
    busy = true;
    trace_begin();
    advance();
    where();
    TRACE_IS("mail to 7\ndone r1 DISK_FULL: the disk has no room for the coordinator's log\n"
             "mail to 7\ndone r2 DISK_FULL: the disk has no room for the coordinator's log\n"
             "queue r0, pending\n");
}

/* ---- records of others ---- */

static leat_err submit_bytes(const struct co_peer *peer, const char *bytes, size_t count)
{
    return co_records_submit(coordinator, peer, (const uint8_t *)bytes, count);
}
#define RECORDS(text) text, sizeof(text) - 1

static void records_are_looked_at_one_by_one(void **state)
{
    (void)state;
    const struct co_peer *peer = &peers[2].peer;
    assert_int_equal(submit_bytes(peer, RECORDS("\1\0\0\0a\2\0\0\0bc")), LEAT_OK);
    TRACE_IS("may n2 +1:61\nmay n2 +2:6263\nsubmit 2: +1:61 +2:6263\n");
    submit_rc = LEAT_E_NOT_LEADER;
    assert_int_equal(submit_bytes(NULL, RECORDS("\1\0\0\0a")), LEAT_E_NOT_LEADER);
    TRACE_IS("submit 1: +1:61\n");
    submit_rc = LEAT_OK;
    may_rc = LEAT_E_DENIED;
    assert_int_equal(submit_bytes(peer, RECORDS("\1\0\0\0a\2\0\0\0bc")), LEAT_E_DENIED);
    TRACE_IS("may n2 +1:61\n");
    assert_int_equal(submit_bytes(NULL, RECORDS("")), LEAT_E_INVALID);
    assert_int_equal(submit_bytes(NULL, RECORDS("\1\0\0")), LEAT_E_INVALID);
    assert_int_equal(submit_bytes(NULL, RECORDS("\2\0\0\0a")), LEAT_E_INVALID);
    assert_int_equal(submit_bytes(NULL, RECORDS("\1\0\0\0a\1\0\0")), LEAT_E_INVALID);
    unknown_command = true;
    assert_int_equal(submit_bytes(NULL, RECORDS("\1\0\0\0a")), LEAT_E_INVALID);
    TRACE_IS("");
    unknown_command = false;
    assert_int_equal(submit_bytes(NULL, RECORDS("\0\0\0\0")), LEAT_OK);
    TRACE_IS("submit 1: +0\n");
}

static void records_are_bounded(void **state)
{
    (void)state;
    const size_t large = (size_t)LEAT_RAFT_ENTRY_BYTES_MAX + 5;
    char *bytes = calloc(large, 1);
    assert_non_null(bytes);
    for (unsigned more = 0; more < 2; more++) {
        leat_put_le32((uint8_t *)bytes, (uint32_t)LEAT_RAFT_ENTRY_BYTES_MAX + more);
        assert_int_equal(submit_bytes(NULL, bytes, large - 1 + more),
                         more ? LEAT_E_INVALID : LEAT_OK);
    }
    memset(bytes, 0, 4);
    for (unsigned more = 0; more < 2; more++)
        assert_int_equal(submit_bytes(NULL, bytes, (size_t)4 * (CO_SUBMIT_COMMANDS_MAX + more)),
                         more ? LEAT_E_INVALID : LEAT_OK);
    free(bytes);
    trace_begin();
}

/* ---- to a leader elsewhere ---- */

#define SUBMIT "call n1 kind 276 within 5000000 [0 "

static void leader_there_gets_what_waits(void **state)
{
    (void)state;
    queue_up(0, 2);
    advance();
    TRACE_IS(""); /* nobody leads */
    leader = &peers[1].peer;
    leader->state.term = 6;
    coordinator->votes = false;
    advance(); /* nor would it be applied here */
    TRACE_IS("");
    coordinator->current = true;
    now_us += 3;
    advance();
    where();
    TRACE_IS("encode r0\nencode r1\n" SUBMIT "+12:020000007230020000007231\n"
             "queue, pending r0 r1\n");
    assert_ptr_equal(coordinator->submitting_to, leader);
    assert_int_equal(coordinator->pending_term, 6);
    assert_int_equal(coordinator->submit_number, 1);
    assert_int_equal(requests[1].sent_us, now_us);
    queue_up(2, 3);
    advance(); /* one at a time */
    struct co_peer *there = leader;
    leader = NULL;
    advance();
    leader = there;
    TRACE_IS("");
    call_ends(LEAT_OK);
    assert_null(coordinator->submitting_to);
    advance();
    where();
    TRACE_IS("encode r2\n" SUBMIT "+6:020000007232\nqueue, pending r0 r1 r2\n");
    coordinator->links = NULL;
    queue_up(3, 4);
    coordinator->submitting_to = NULL;
    advance();
    TRACE_IS("");
}

static void nothing_is_sent_of_what_can_not_be_made(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    encode_rc = LEAT_E_TOO_LARGE;
    queue_up(0, 1);
    advance();
    TRACE_IS("encode r0\nmail to 7\ndone r0 TOO_LARGE: can't be made\n");
    assert_int_equal(coordinator->submit_number, 0);
}

static void call_that_can_not_be_made_is_made_again(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    queue_up(0, 2);
    for (unsigned n = 1; n <= 2; n++) {
        advance(); /* records are made, and sent: here the link fails first */
        trace_begin();
        link_rc = LEAT_E_CLOSED;
        if (n == 1) call_ends(LEAT_E_CLOSED);
        advance();
        where();
        TRACE_IS(SUBMIT "+12:020000007230020000007231 fails\nqueue r0 r1, pending\n");
        assert_null(coordinator->submitting_to);
        link_rc = LEAT_OK;
        leat_mem_fail_at(n);
        advance();
        where();
        TRACE_IS("queue r0 r1, pending\n");
        link_rc = LEAT_E_CLOSED;
    }
    assert_int_equal(coordinator->submit_number, 1);
    link_rc = LEAT_OK;
}

static void answer_without_success_means_again_or_never(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    queue_up(0, 2);
    advance();
    trace_begin();
    call_ends(LEAT_E_TIMEOUT);
    where();
    TRACE_IS("queue r0 r1, pending\n");
    advance();
    trace_begin();
    call_ends(LEAT_E_NOT_LEADER);
    where();
    TRACE_IS("queue r0 r1, pending\n");
    advance();
    trace_begin();
    queue_up(2, 3);
    call_ends(LEAT_E_INVALID); /* so each time that it is sent */
    where();
    TRACE_IS("mail to 7\ndone r0 INVALID: words of a refusal\n"
             "mail to 7\ndone r1 INVALID: words of a refusal\nqueue r2, pending\n");
    /* One that has failed asks nobody again. */
    advance();
    coordinator->failed = LEAT_E_DISK;
    trace_begin();
    call_ends(LEAT_E_CLOSED);
    where();
    TRACE_IS("queue, pending r2\n");
    coordinator->failed = LEAT_OK;
}

static void answer_of_a_leader_before_means_nothing(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    queue_up(0, 1);
    advance();
    leader = &peers[2].peer;
    queue_up(1, 2);
    advance();
    assert_ptr_equal(coordinator->submitting_to, leader);
    trace_begin();
    call_ends(LEAT_E_INVALID);
    assert_ptr_equal(coordinator->submitting_to, leader);
    where();
    call_ends(LEAT_E_CANCELLED);
    assert_ptr_equal(coordinator->submitting_to, leader);
    where();
    TRACE_IS("queue, pending r0 r1\nqueue, pending r0 r1\n");
}

/* A request that the leader of an earlier term has is sent to the leader of a later term at once. */
static void later_leader_gets_everything_unanswered(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    leader->state.term = 6;
    queue_up(0, 2);
    advance();
    leader = &peers[2].peer;
    leader->state.term = 6;
    trace_begin();
    advance();
    where();
    TRACE_IS("queue, pending r0 r1\n");
    leader->state.term = 7;
    coordinator->failed = LEAT_E_DISK;
    advance();
    coordinator->failed = LEAT_OK;
    leads = true;
    advance();
    leads = false;
    coordinator->links = NULL;
    advance();
    coordinator->links = (struct leat_links *)(void *)coordinator;
    where();
    TRACE_IS("queue, pending r0 r1\n");
    advance();
    where();
    TRACE_IS("call n2 kind 276 within 5000000 [0 +12:020000007230020000007231\n"
             "queue, pending r0 r1\n");
    assert_int_equal(coordinator->pending_term, 7);
    leader = NULL;
    advance();
    where();
    TRACE_IS("queue, pending r0 r1\n");
}

/* ---- time ---- */

static void tick(uint64_t at_us)
{
    now_us = at_us;
    co_requests_tick(coordinator, at_us);
}

static void request_without_an_answer_ends(void **state)
{
    (void)state;
    requests[1].wait_us_max = 1000;
    requests[2].kind = LEAT_COORDINATE_NODE_UP;
    requests[3].kind = LEAT_COORDINATE_ADOPT;
    requests[2].wait_us_max = requests[3].wait_us_max = 1;
    requests[4].asker = 5;
    queue_up(0, 5);
    coordinator->ready_request.on_done = done;
    co_request_queue(coordinator, &coordinator->ready_request);
    const uint64_t begun = now_us;
    tick(begun + 999);
    TRACE_IS("");
    tick(begun + 1000);
    TRACE_IS("mail to 7\ndone r1 TIMEOUT: no leader\n");
    tick(begun + LEAT_COORDINATE_WAIT_US_MAX - 1);
    TRACE_IS("");
    tick(begun + LEAT_COORDINATE_WAIT_US_MAX);
    where();
    TRACE_IS("mail to 7\ndone r0 TIMEOUT: no leader\nmail to 7\ndone r4 TIMEOUT: no leader\n"
             "queue r2 r3 ready, pending\n");
    assert_int_equal(coordinator->shares.all, 0);
    tick(begun + 10 * (uint64_t)LEAT_COORDINATE_WAIT_US_MAX);
    TRACE_IS("");
}

static void outcome_of_what_was_sent_is_unknown(void **state)
{
    (void)state;
    requests[1].kind = LEAT_COORDINATE_PRODUCER_IDS;
    sent_here(2);
    tick(now_us + LEAT_COORDINATE_WAIT_US_MAX - 1);
    where();
    TRACE_IS("queue, pending r0 r1\n");
    tick(now_us + 1);
    where();
    TRACE_IS("mail to 7\ndone r0 TIMEOUT: whether it takes effect is unknown: no leader\n"
             "mail to 7\ndone r1 TIMEOUT: no leader\nqueue, pending\n");
    sent_here(1);
    co_requests_again(coordinator);
    tick(now_us + LEAT_COORDINATE_WAIT_US_MAX);
    TRACE_IS("mail to 7\ndone r0 TIMEOUT: whether it takes effect is unknown: no leader\n");
}

static void request_is_sent_again_by_the_clock(void **state)
{
    (void)state;
    leader = &peers[1].peer;
    queue_up(0, 1);
    advance();
    call_ends(LEAT_OK);
    now_us += 1000;
    queue_up(1, 2);
    advance();
    call_ends(LEAT_OK);
    const uint64_t first = now_us - 1000;
    trace_begin();
    tick(first + CO_RESEND_US);
    where();
    leads = true; /* its own are in its log */
    tick(first + CO_RESEND_US + 1);
    where();
    TRACE_IS("queue, pending r0 r1\nqueue, pending r0 r1\n");
    leads = false;
    tick(first + CO_RESEND_US + 1);
    where();
    TRACE_IS("queue r0 r1, pending\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REQUESTS_TEST(leader_proposes_what_waits_together),
        REQUESTS_TEST(proposal_that_fails_is_made_again),
        REQUESTS_TEST(what_happens_inside_a_proposal_finds_it_sent),
        REQUESTS_TEST(record_that_can_not_be_made_is_refused_alone),
        REQUESTS_TEST(batch_is_bounded),
        REQUESTS_TEST(adoption_goes_alone),
        REQUESTS_TEST(full_disk_refuses_what_was_never_sent),
        REQUESTS_TEST(records_are_looked_at_one_by_one),
        REQUESTS_TEST(records_are_bounded),
        REQUESTS_TEST(leader_there_gets_what_waits),
        REQUESTS_TEST(nothing_is_sent_of_what_can_not_be_made),
        REQUESTS_TEST(call_that_can_not_be_made_is_made_again),
        REQUESTS_TEST(answer_without_success_means_again_or_never),
        REQUESTS_TEST(answer_of_a_leader_before_means_nothing),
        REQUESTS_TEST(later_leader_gets_everything_unanswered),
        REQUESTS_TEST(request_without_an_answer_ends),
        REQUESTS_TEST(outcome_of_what_was_sent_is_unknown),
        REQUESTS_TEST(request_is_sent_again_by_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
