/* SPDX-License-Identifier: Apache-2.0 */
/* What the node log says about attempts of recovery: an operator counts on its numbers and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/recovery/recovery.h"
#include "tests/coordinator/attempts_rig.h"
#include "tests/coordinator/told.h"

static int begin_told(void **state)
{
    told_from_now_on();
    return begin(state);
}

/* All nodes answer that they have nothing: the attempt ends, and all its logs wait. */
static void attempt_in_vain(void)
{
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 0, 0, LEAT_OK);
    advance(0);
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
}

/* Goal: each number has a value of its own here, so that none stands for another. */
static void attempt_tells_each_step_with_its_numbers(void **state)
{
    (void)state;
    const leat_err made[] = {LEAT_OK, LEAT_OK};
    stream_make(3, 1);
    crash(0);
    advance(0);
    attempt_in_vain();
    told[0] = '\0';
    advance(CO_RECOVER_AGAIN_US);
    expect_told("I recovery 0000004d: 3 streamlets with 3 logs, of 1 lost incarnations (n0): "
                "asking 3 nodes\n");
    answer(3, 0, 0, LEAT_E_TIMEOUT);
    char line[200];
    snprintf(line, sizeof line, "W recovery 0000004d: n3 has no answer: %s\n",
             leat_err_text(LEAT_E_TIMEOUT));
    expect_told(line);
    answer(1, 2, 100, LEAT_OK);
    answer(2, 0, 0, LEAT_OK);
    expect_told(""); /* of an answer */
    advance(5);
    expect_told("I recovery 0000004d: 2 of 3 nodes answered in 5 us: 2 replicas, 2 logs decided, "
                "1 wait\n");
    co_recovery_pulled(coordinator, 12, ATTEMPT, made, 2);
    advance(7);
    expect_told("I recovery 0000004d: 2 copies were asked for, in 7 us\n");
    commit_done(LEAT_OK, 2);
    advance(3);
    char lines[640];
    snprintf(lines, sizeof lines,
             "I recovery 0000004d: 2 of 3 streamlets have an owner again, committed in 3 us; 15 us "
             "in all, %llu us since the crash; 1 logs wait\n"
             "W recovery 0000004d: stream 1 streamlet 2 log 0 waits: %s\n",
             CO_RECOVER_AGAIN_US + 15ULL, it->waiting[0].why);
    expect_told(lines);
}

static void attempt_without_copies_tells_of_none(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    advance(0);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 1, 100, LEAT_OK);
    advance(0);
    told[0] = '\0';
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_COMMIT);
    expect_told("");
    commit_done(LEAT_OK, 1);
    advance(0);
    expect_told("I recovery 0000004d: 1 of 1 streamlets have an owner again, committed in 0 us; "
                "0 us in all, 0 us since the crash; 0 logs wait\n");
}

static void lost_nodes_are_told_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"0 lost incarnations (none)", "1 lost incarnations (n0)",
                                        "2 lost incarnations (n0, ...)"};
    for (unsigned count = 0; count < 3; count++) {
        if (count) begin_told(NULL);
        struct leat_machine_stream *stream = stream_make(2, 3);
        for (uint32_t i = 0; i < 2; i++) {
            stream->owners[i] = count == 0 ? LEAT_OWNER_NONE : count == 2 && i == 1 ? 2 : 0;
            stream->desc->streamlets[i].owner = count == 0 ? 0 : 10 + stream->owners[i];
        }
        if (count) crash(0);
        if (count == 2) crash(2);
        advance(0);
        char line[200];
        snprintf(line, sizeof line,
                 "I recovery 0000004d: 2 streamlets with 6 logs, of %s: asking %u nodes\n",
                 names[count], NODES - count);
        expect_told(line);
        if (count < 2) finish(NULL);
    }
}

/* Goal: an attempt does not tell of a log that waits since an earlier attempt of the same round. */
static void attempt_tells_of_its_own_logs_that_wait(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    advance(0);
    it->round_waits = it->waiting_count = 1; /* by the round's first attempt */
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 1, 100, LEAT_OK);
    advance(0);
    advance(0);
    told[0] = '\0';
    commit_done(LEAT_OK, 1);
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_null(strstr(told, "waits:"));
    assert_non_null(strstr(told, "; 0 logs wait\n"));
}

/* Goal: the first log that waits is named, in full. */
static void first_log_that_waits_is_named(void **state)
{
    (void)state;
    stream_make(3, 2);
    stream_make(1, 1);
    crash(0);
    advance(0);
    for (uint32_t n = 1; n < NODES; n++) {
        struct leat_replica_row rows[5] = {0}; /* of each log but 1/2/1 and 2/0/0 */
        for (uint32_t i = 0; i < 5; i++)
            rows[i] = (struct leat_replica_row){.log = {1, i / 2, i % 2},
                                                .segment = 5,
                                                .kind = LEAT_REPLICA_MARK,
                                                .epoch = {3},
                                                .version = 1,
                                                .prefix_id = {100, 100},
                                                .next_offset = 50,
                                                .durable = true};
        struct leat_collect collect = {.attempt = it->attempt, .rows = rows, .row_count = 5};
        co_recovery_rows(coordinator, 10 + n, &collect);
    }
    advance(0);
    advance(0);
    told[0] = '\0';
    commit_done(LEAT_OK, 3);
    advance(0);
    assert_non_null(strstr(told, "; 2 logs wait\n"));
    assert_non_null(strstr(told, "W recovery 0000004d: stream 1 streamlet 2 log 1 waits: "));
}

/* Goal: the reason that is told is the reason of the log that is told. */
static void log_that_waits_is_told_with_its_own_reason(void **state)
{
    (void)state;
    const leat_err codes[] = {LEAT_E_DISK, LEAT_E_NO_MEMORY};
    char line[400];
    stream_make(2, 1);
    crash(0);
    away[3] = true;
    advance(0);
    answer(1, 2, 100, LEAT_OK);
    answer(2, 0, 0, LEAT_OK);
    advance(0);
    co_recovery_pulled(coordinator, 12, ATTEMPT, codes, 2);
    told[0] = '\0';
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    snprintf(line, sizeof line,
             "stream 1 streamlet 0 log 0 waits: node n2 could not copy its last segment, 5: %s\n",
             leat_err_text(LEAT_E_DISK));
    assert_non_null(strstr(told, line));
}

/* Goal: an attempt that finds owners is told at the usual level, also when nothing was new for long. */
static void attempt_that_recovers_is_told_in_quiet_times(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    advance(0);
    for (unsigned round = 0; round < 2; round++) {
        attempt_in_vain();
        advance(it->again_us - now_us);
    }
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 1, 100, LEAT_OK);
    advance(0);
    advance(0);
    told[0] = '\0';
    commit_done(LEAT_OK, 1);
    advance(0);
    assert_non_null(strstr(told, "I recovery 0000004d: 1 of 1 streamlets have an owner again"));
}

/* Goal: as long as the same logs wait and no node comes or goes, the lines are for debugging: a node that is down for
 * a night does not fill the node log. */
static void attempts_in_vain_are_told_until_nothing_is_new(void **state)
{
    (void)state;
    static const char line[] =
        "%c recovery 0000004d: 2 streamlets with 2 logs, of 1 lost incarnations (n0): asking 3 "
        "nodes\n"
        "%c recovery 0000004d: 3 of 3 nodes answered in 0 us: 0 replicas, 0 logs decided, 2 wait\n"
        "%c recovery 0000004d: 0 of 2 streamlets have an owner again, committed in 0 us; 0 us in "
        "all, %llu us since the crash; 2 logs wait\n"
        "%c recovery 0000004d: stream 1 streamlet 0 log 0 waits: %s\n";
    stream_make(2, 1);
    crash(0);
    const uint64_t begun_us = now_us;
    for (unsigned round = 0; round < 6; round++) {
        if (round == 4) machine->node_changes++;
        told[0] = '\0';
        advance(round == 0 || round == 4 ? 0 : it->again_us - now_us);
        attempt_in_vain();
        /* The pause after round 0 is the shortest; later pauses are longer. */
        const bool quiet = round == 2 || round == 3;
        const char level = quiet ? 'D' : 'I';
        char expected[1024];
        snprintf(expected, sizeof expected, line, level, level, level,
                 (unsigned long long)(now_us - begun_us), quiet ? 'D' : 'W', it->waiting[0].why);
        expect_told(expected);
    }
}

#define TOLD_TEST(name) cmocka_unit_test_setup_teardown(name, begin_told, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD_TEST(attempt_tells_each_step_with_its_numbers),
        TOLD_TEST(attempt_without_copies_tells_of_none),
        TOLD_TEST(lost_nodes_are_told_by_name),
        TOLD_TEST(attempt_tells_of_its_own_logs_that_wait),
        TOLD_TEST(first_log_that_waits_is_named),
        TOLD_TEST(log_that_waits_is_told_with_its_own_reason),
        TOLD_TEST(attempt_that_recovers_is_told_in_quiet_times),
        TOLD_TEST(attempts_in_vain_are_told_until_nothing_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
