/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of recovery, from copies to the end: which failures are left to the next attempt, the entries, and the time
 * of the next attempt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/private.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/attempts_rig.h"

/* ---- copies ---- */

/* n1 alone has the tails of both streamlets: the other node has to copy them. */
static void prepare_begin(void)
{
    stream_make(2, 1);
    crash(0);
    away[3] = true;
    machine->nodes[3].info.state = LEAT_NODE_GONE;
    advance(0);
    answer(1, 2, 100, LEAT_OK);
    answer(2, 0, 0, LEAT_OK);
    calls[0] = '\0';
    advance(5);
    assert_int_equal(it->phase, LEAT_RECOVERY_PREPARE);
    assert_int_equal(it->phase_us, now_us);
    expect_calls("pull n2");
    assert_int_equal(it->task_count, 2);
    assert_int_equal(it->tasks_open, 2);
}

/* Goal: copies that did not fit into a message are asked for as soon as those before them are answered: otherwise their
 * logs wait for the next attempt. */
static void copies_of_the_next_message_are_asked_for(void **state)
{
    (void)state;
    prepare_begin();
    const leat_err made = LEAT_OK;
    it->pulls[2].in_flight = 1; /* a message holds one */
    calls[0] = '\0';
    co_recovery_pulled(coordinator, 12, ATTEMPT, &made, 1);
    expect_calls("pull n2");
    assert_int_equal(it->tasks_open, 1);
    assert_int_equal(it->pulls[2].next, 1);
    calls[0] = '\0';
    co_recovery_pulled(coordinator, 12, ATTEMPT, &made, 1);
    expect_calls("");
    assert_int_equal(it->tasks_open, 0);
}

static void copies_that_fail_leave_their_logs_to_the_next_attempt(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) { /* none fails, the second, both, the second is not told of */
        if (c) assert_int_equal(begin(NULL), 0);
        prepare_begin();
        const leat_err codes[] = {c == 2 ? LEAT_E_DISK : LEAT_OK,
                                  c == 1 || c == 2 ? LEAT_E_DISK : LEAT_OK};
        co_recovery_pulled(coordinator, 12, ATTEMPT + 2, codes, 2);
        co_recovery_pulled(coordinator, 11, ATTEMPT, codes, 2);
        co_recovery_pulled(coordinator, 99, ATTEMPT, codes, 2);
        assert_int_equal(it->tasks_open, 2);
        co_recovery_pulled(coordinator, 12, ATTEMPT, codes, c == 3 ? 1 : 2);
        assert_int_equal(it->tasks_open, 0);
        assert_int_equal(it->pulls[2].in_flight, 0);
        assert_int_equal(it->pulls[2].next, 2);
        co_recovery_pulled(coordinator, 12, ATTEMPT, codes, 2); /* again */
        assert_int_equal(it->tasks_open, 0);
        assert_int_equal(it->waits, c == 0 ? 0 : c == 2 ? 2 : 1);
        assert_int_equal(it->logs[0].decision, c == 2 ? LEAT_RECOVER_WAITS : LEAT_RECOVER_TAIL);
        assert_int_equal(it->logs[1].decision, c ? LEAT_RECOVER_WAITS : LEAT_RECOVER_TAIL);
        if (c == 1) {
            char why[240];
            snprintf(why, sizeof why, "node n2 could not copy its last segment, 5: %s",
                     leat_err_text(LEAT_E_DISK));
            assert_string_equal(it->waiting[0].why, why);
            assert_int_equal(it->waiting[0].log.streamlet, 1);
        }
        struct leat_recovery_status status = co_recovery_status(coordinator);
        assert_int_equal(status.decided, 2 - it->waits);
        assert_int_equal(status.pulls, 2);
        assert_int_equal(status.pulls_open, 0);
        advance(7);
        assert_int_equal(it->prepared_us, 7);
        assert_int_equal(it->phase, c == 2 ? LEAT_RECOVERY_NONE : LEAT_RECOVERY_COMMIT);
        if (c == 0) {
            commit_done(LEAT_OK, 2);
            advance(3);
            assert_true(it->last.prepare_us == 7 && it->last.commit_us == 3);
        }
        if (c < 3) finish(NULL);
    }
}

static void copies_are_given_up_when_their_node_dies_or_takes_too_long(void **state)
{
    (void)state;
    static const char late[] = "a copy of its last segment took too long",
                      died[] = "a node died that was to copy its last segment";
    for (unsigned c = 0; c < 5; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        prepare_begin();
        if (c == 2) machine->nodes[2].info.crashed = true;
        if (c == 3) machine->nodes[2].info.incarnation = 22;
        if (c == 4) machine->nodes[1].info.crashed = true; /* nothing was asked of that one */
        advance(c == 0 ? CO_PULL_US_MAX - 1 : c == 1 ? CO_PULL_US_MAX : 1);
        const bool gives_up = c >= 1 && c <= 3;
        assert_int_equal(it->phase, gives_up ? LEAT_RECOVERY_NONE : LEAT_RECOVERY_PREPARE);
        if (gives_up) assert_int_equal(it->waiting_count, 2);
        if (gives_up) assert_string_equal(it->waiting[1].why, c == 1 ? late : died);
        if (!gives_up) assert_int_equal(it->tasks_open, 2);
        if (c < 4) finish(NULL);
    }
}

/* The first node's copies are given up like any other's. */
static void copies_of_the_first_node_are_given_up(void **state)
{
    (void)state;
    prepare_begin();
    it->pulls[0] = it->pulls[2];
    memset(&it->pulls[2], 0, sizeof it->pulls[2]);
    advance(CO_PULL_US_MAX);
    assert_int_equal(it->tasks_open, 0);
    assert_int_equal(it->waiting_count, 2);
}

/* A stream that was deleted meanwhile has nobody who answers for it. */
static void nobody_answers_for_a_stream_that_is_deleted(void **state)
{
    (void)state;
    prepare_begin();
    machine->nodes[0].info.state = LEAT_NODE_GONE;
    it->logs[0].undecided = true;
    for (uint32_t i = 0; i < NODES; i++) {
        it->nodes[i] = CO_NODE_HEARD;
        it->seen[i].incarnation = machine->nodes[i].info.incarnation;
        it->seen[i].since_us = 0;
    }
    struct co_recover_streamlet streamlet = {.ref = {1, 0}, .logs = 1};
    assert_true(co_recovery_answers(coordinator, &streamlet) >= 0);
    streamlet.ref.stream = 9;
    assert_int_equal(co_recovery_answers(coordinator, &streamlet), -1);
}

/* ---- committing ---- */

static void entries_are_committed_one_behind_the_other(void **state)
{
    (void)state;
    stream_make(2, 1);
    crash(0);
    advance(0);
    const uint64_t lost_us = now_us;
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 2, 100, LEAT_OK);
    advance(10);
    advance(0); /* there is nothing to prepare */
    assert_int_equal(it->phase, LEAT_RECOVERY_COMMIT);
    assert_true(it->committing);
    assert_int_equal(queued->kind, LEAT_COORDINATE_RECOVER);
    assert_int_equal(queued->attempt, ATTEMPT);
    assert_ptr_equal(queued->owner, coordinator);
    assert_true(it->request.command_bytes > 0);
    advance(5);
    assert_int_equal(it->phase, LEAT_RECOVERY_COMMIT); /* it is waited for */
    commit_done(LEAT_OK, 2);
    assert_false(it->committing);
    assert_int_equal(it->recovered, 2);
    advance(6);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_null(queued);
    assert_int_equal(it->attempts, 1);
    assert_int_equal(it->fruitful, 1);
    assert_true(it->last.recovered == 2 && it->last.commit_us == 11 && it->last.collect_us == 10 &&
                it->last.crash_to_commit_us == now_us - lost_us && it->last.streamlets == 2 &&
                it->last.phase == LEAT_RECOVERY_NONE && it->last.nodes_answered == 3 &&
                it->last.age_us == 21 && it->last.decided == 2);
    assert_int_equal(it->lost_us, 0);
    assert_int_equal(it->again_us, now_us + CO_RECOVER_NEXT_US);
    /* What is not taken counts for nothing; nor does the answer to an attempt that is over. */
    advance(CO_RECOVER_NEXT_US);
    struct leat_recovery_status begun = co_recovery_status(coordinator);
    assert_int_equal(begun.collect_us + begun.prepare_us + begun.age_us, 0);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 2, 100, LEAT_OK);
    advance(0);
    advance(0);
    commit_done(LEAT_E_AGAIN, 2);
    assert_int_equal(it->recovered, 0);
    advance(0);
    assert_int_equal(it->attempts, 2);
    assert_int_equal(it->fruitful, 1);
    advance(CO_RECOVER_NEXT_US);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 2, 100, LEAT_OK);
    advance(0);
    advance(0);
    leads = false;
    advance(0);
    assert_true(it->committing);
    commit_done(LEAT_OK, 2);
    assert_false(it->committing);
    assert_int_equal(it->recovered, 0);
}

/* ---- again ---- */

static void attempt_in_vain(void)
{
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 0, 0, LEAT_OK);
    advance(0);
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
}

static void what_waits_is_looked_for_less_and_less_often(void **state)
{
    (void)state;
    const uint64_t first = CO_RECOVER_AGAIN_US, most = CO_RECOVER_AGAIN_US_MAX;
    struct leat_machine_stream *stream = stream_make(3, 1);
    crash(0);
    advance(0);
    const uint64_t lost_us = it->lost_us, pace[] = {first, 2 * first, 4 * first, most, most};
    for (unsigned i = 0; i < 5; i++) {
        attempt_in_vain();
        assert_int_equal(it->again_us, now_us + pace[i]);
        assert_int_equal(it->waiting_count, 3);
        assert_int_equal(it->lost_us, lost_us);
        advance(pace[i] - 1);
        assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
        advance(1);
    }
    machine->node_changes++; /* somebody came or went */
    attempt_in_vain();
    assert_int_equal(it->again_us, now_us + first);
    advance(first);
    attempt_in_vain();
    assert_int_equal(it->again_us, now_us + 2 * first);
    advance(2 * first);
    stream->logs[2].record = (struct leat_log_record){.tail.segment = UINT64_MAX};
    it->logs[2].seen = stream->logs[2].record; /* two wait, and one goes to another owner */
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 0, 0, LEAT_OK);
    advance(0);
    advance(0);
    commit_done(LEAT_OK, 1);
    advance(0);
    assert_int_equal(it->again_us, now_us + first);
    assert_true(it->last.recovered == 1 && it->lost_us == lost_us);
    advance(first);
    it->nodes[1] = CO_NODE_ASKED;
    answer(1, 0, 0, LEAT_E_TIMEOUT); /* somebody has no answer */
    it->streamlet_count = it->log_count = 2;
    answer(2, 0, 0, LEAT_OK);
    answer(3, 0, 0, LEAT_OK);
    advance(0);
    advance(0);
    assert_int_equal(it->again_us, now_us + first);
    /* None waits any more. */
    stream->owners[0] = stream->owners[1] = stream->owners[2] = 1;
    for (uint32_t i = 0; i < 3; i++)
        stream->desc->streamlets[i].owner = 11;
    advance(first);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_int_equal(it->waiting_count, 0);
    assert_int_equal(it->lost_us, 0);
    assert_true(it->again_us == UINT64_MAX);
}

static void logs_that_wait_are_listed_as_many_as_there_is_room_for(void **state)
{
    (void)state;
    const uint32_t count = LEAT_RECOVERY_WAITING_MAX + 3;
    stream_make(count, 1);
    crash(0);
    advance(0);
    attempt_in_vain();
    assert_int_equal(it->waiting_count, count);
    for (uint32_t i = 0; i < LEAT_RECOVERY_WAITING_MAX; i++) {
        assert_int_equal(it->waiting[i].log.streamlet, i);
        assert_true(it->waiting[i].why[0] != '\0');
    }
    advance(CO_RECOVER_AGAIN_US);
    attempt_in_vain();
    assert_int_equal(it->waiting_count, count); /* of this round alone */
}

/* Two nodes shall copy a log: the log waits once, though both copies fail, and a late answer of a dead node has no
 * effect. */
static void node_that_died_has_no_say_in_what_it_was_to_copy(void **state)
{
    (void)state;
    const leat_err failed[] = {LEAT_E_DISK, LEAT_E_DISK};
    for (unsigned c = 0; c < 2; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        struct leat_machine_stream *stream = stream_make(2, 1);
        stream->desc->settings.copies = stream->desc->settings.min_copies = 3;
        crash(0);
        advance(0);
        answer(1, 2, 100, LEAT_OK);
        answer(2, 0, 0, LEAT_OK);
        answer(3, 0, 0, LEAT_OK);
        calls[0] = '\0';
        advance(0);
        expect_calls("pull n2, pull n3");
        assert_int_equal(it->tasks_open, 4);
        if (c == 0) machine->nodes[2].info.crashed = true;
        if (c == 0) advance(0);
        if (c == 1) co_recovery_pulled(coordinator, 12, it->attempt, failed, 2);
        assert_int_equal(it->tasks_open, 2);
        assert_int_equal(it->waits, 2);
        co_recovery_pulled(coordinator, 12, it->attempt, failed, 2);
        assert_int_equal(it->tasks_open, 2);
        advance(0);
        assert_int_equal(it->tasks_open, 2);
        co_recovery_pulled(coordinator, 13, it->attempt, failed, 2);
        assert_int_equal(it->tasks_open, 0);
        assert_int_equal(it->waits, 2);
        assert_int_equal(it->waiting_count, 2);
        if (c == 0) finish(NULL);
    }
}

static void lack_of_memory_for_copies_ends_the_attempt(void **state)
{
    (void)state;
    stream_make(2, 1);
    crash(0);
    away[3] = true;
    advance(0);
    answer(1, 2, 100, LEAT_OK);
    answer(2, 0, 0, LEAT_OK);
    calls[0] = '\0';
    leat_mem_fail_at(1);
    advance(3);
    leat_mem_fail_at(0);
    expect_calls("");
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_int_equal(it->attempt, 0);
    assert_int_equal(it->again_us, now_us + CO_RECOVER_AGAIN_US);
}

/* More, or fewer, wait than before: somebody may have what is lacking soon. */
static void pace_begins_anew_when_another_number_waits(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(3, 1);
    crash(0);
    advance(0);
    attempt_in_vain();
    advance(CO_RECOVER_AGAIN_US);
    attempt_in_vain();
    assert_int_equal(it->again_us, now_us + 2 * CO_RECOVER_AGAIN_US);
    stream->owners[2] = 1;
    stream->desc->streamlets[2].owner = 11;
    advance(2 * CO_RECOVER_AGAIN_US);
    assert_int_equal(it->log_count, 2);
    attempt_in_vain();
    assert_int_equal(it->again_us, now_us + CO_RECOVER_AGAIN_US);
}

/* Something was decided: what waits still may be next, though as many wait as before. Then it slows down again. */
static void pace_begins_anew_when_something_was_decided(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(3, 1);
    stream->owners[2] = 1;
    stream->desc->streamlets[2].owner = 11;
    crash(0);
    advance(0);
    attempt_in_vain();
    advance(CO_RECOVER_AGAIN_US);
    attempt_in_vain();
    assert_int_equal(it->again_us, now_us + 2 * CO_RECOVER_AGAIN_US);
    stream->owners[2] = LEAT_OWNER_NONE; /* of the third all have where it ends */
    advance(2 * CO_RECOVER_AGAIN_US);
    for (uint32_t n = 1; n < NODES; n++) {
        struct leat_replica_row row = {.log = {1, 2, 0},
                                       .segment = 5,
                                       .kind = LEAT_REPLICA_MARK,
                                       .epoch = {3},
                                       .version = 1,
                                       .prefix_id = {100, 100},
                                       .next_offset = 50,
                                       .durable = true};
        struct leat_collect collect = {.attempt = it->attempt, .rows = &row, .row_count = 1};
        co_recovery_rows(coordinator, 10 + n, &collect);
    }
    advance(0);
    advance(0);
    commit_done(LEAT_OK, 1);
    stream->owners[2] = 1;
    advance(0);
    assert_int_equal(it->waiting_count, 2);
    assert_int_equal(it->again_us, now_us + CO_RECOVER_AGAIN_US);
    for (unsigned i = 0; i < 2; i++) {
        advance(it->again_us - now_us);
        attempt_in_vain();
        assert_int_equal(it->again_us, now_us + (2 << i) * CO_RECOVER_AGAIN_US);
    }
}

/* Whether its logs could be decided or not: of the others all goes on. */
static void stream_is_deleted_amid_an_attempt(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 2; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        stream_make(1, 1);
        stream_make(1, 1);
        crash(0);
        advance(0);
        assert_int_equal(it->streamlet_count, 2);
        leat_machine_stream_drop(machine, leat_machine_stream_find(machine, 1));
        for (uint32_t n = 1; n < NODES; n++)
            answer(n, c, 100, LEAT_OK);
        advance(0);
        advance(0);
        assert_int_equal(it->waiting_count, 2 - c);
        assert_int_equal(it->waiting[0].log.stream, 1 + c);
        assert_int_equal(it->waiting[1 - c].log.stream, 2);
        if (c == 0) finish(NULL);
    }
}

/* Goal: a log whose stream is gone is not listed as waiting, where a torn replica would wait for other nodes. */
static void log_of_a_deleted_stream_waits_for_no_majority(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 2; c++) { /* the stream is there, and gone */
        if (c) assert_int_equal(begin(NULL), 0);
        stream_make(1, 1);
        crash(0);
        advance(0);
        if (c) leat_machine_stream_drop(machine, leat_machine_stream_find(machine, 1));
        struct leat_replica_row row = {.log = {1, 0, 0},
                                       .segment = 5,
                                       .kind = LEAT_REPLICA_MARK,
                                       .epoch = {3},
                                       .version = 1,
                                       .prefix_id = {100, 100},
                                       .next_offset = 50,
                                       .torn = true,
                                       .durable = true};
        struct leat_collect collect = {.attempt = it->attempt, .rows = &row, .row_count = 1};
        co_recovery_rows(coordinator, 11, &collect);
        answer(2, 0, 0, LEAT_E_TIMEOUT);
        answer(3, 0, 0, LEAT_E_TIMEOUT);
        advance(0);
        advance(0);
        assert_int_equal(it->waiting_count, 1 - c);
        if (c == 0) finish(NULL);
    }
}

/* The last part of a round has nothing more: what waits of the parts before is looked for again. */
static void one_log_that_waits_is_looked_for_again(void **state)
{
    (void)state;
    stream_make(1, 1);
    for (uint32_t waits = 0; waits < 3; waits++) {
        it->cursor.stream = 2; /* of the first an attempt was made */
        it->round_waits = waits;
        it->lost_us = 1;
        it->paced.us = 0;
        machine->node_changes++;
        advance(1);
        assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
        assert_int_equal(it->cursor.stream, 0);
        assert_true(it->again_us == (waits ? now_us + CO_RECOVER_AGAIN_US : UINT64_MAX));
        assert_int_equal(it->lost_us, waits ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTEMPT_TEST(copies_of_the_next_message_are_asked_for),
        ATTEMPT_TEST(copies_that_fail_leave_their_logs_to_the_next_attempt),
        ATTEMPT_TEST(copies_are_given_up_when_their_node_dies_or_takes_too_long),
        ATTEMPT_TEST(copies_of_the_first_node_are_given_up),
        ATTEMPT_TEST(nobody_answers_for_a_stream_that_is_deleted),
        ATTEMPT_TEST(entries_are_committed_one_behind_the_other),
        ATTEMPT_TEST(what_waits_is_looked_for_less_and_less_often),
        ATTEMPT_TEST(logs_that_wait_are_listed_as_many_as_there_is_room_for),
        ATTEMPT_TEST(node_that_died_has_no_say_in_what_it_was_to_copy),
        ATTEMPT_TEST(lack_of_memory_for_copies_ends_the_attempt),
        ATTEMPT_TEST(pace_begins_anew_when_another_number_waits),
        ATTEMPT_TEST(pace_begins_anew_when_something_was_decided),
        ATTEMPT_TEST(stream_is_deleted_amid_an_attempt),
        ATTEMPT_TEST(log_of_a_deleted_stream_waits_for_no_majority),
        ATTEMPT_TEST(one_log_that_waits_is_looked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
