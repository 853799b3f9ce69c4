/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of recovery, from the tables to the nodes' answers: which segments are looked for, which nodes are asked,
 * whose answers count, and when an attempt goes on without the missing answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/attempts_rig.h"

/* ---- who recovers ---- */

static void only_leaders_whose_tables_are_whole_recover(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    for (unsigned c = 0; c < 4; c++) {
        leads = c & 1;
        coordinator->start = c & 2 ? CO_START_READY : CO_START_ASKS;
        advance(1);
        assert_int_equal(it->phase, c == 3 ? LEAT_RECOVERY_COLLECT : LEAT_RECOVERY_NONE);
    }
    assert_int_equal(it->attempt, ATTEMPT);
    assert_int_equal(it->lost_us, now_us);
    leads = false;
    advance(1);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_int_equal(it->attempt + it->lost_us + it->streamlet_count + it->log_count + it->asked +
                         it->crashed_count,
                     0);
    assert_false(it->looked);
    assert_null(it->streamlets);
    assert_int_equal(it->now_us, now_us);
    leads = true;
    advance(0); /* it leads again, and looks at once */
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
}

static void server_alone_has_no_memory_for_it(void **state)
{
    (void)state;
    co_recovery_fini(coordinator);
    coordinator->clustered = false;
    assert_int_equal(co_recovery_init(coordinator), LEAT_OK);
    assert_null(coordinator->recovery);
    co_collect_fini(coordinator); /* of a server alone, at its end */
    co_recovery_advance(coordinator);
    struct leat_collect collect = {.attempt = 0};
    co_recovery_rows(coordinator, 10, &collect);
    co_recovery_pulled(coordinator, 10, 0, NULL, 0);
    coordinator->clustered = true;
    leat_mem_fail_at(1);
    assert_int_equal(co_recovery_init(coordinator), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
}

/* ---- what is looked for ---- */

enum found { NOTHING, LATER, TAKEN, WAITS };

/* When recovery looks for a streamlet: it has no owner; its owner has crashed; its owner has started again and has not
 * adopted the streamlet for so long; the streamlet waits. */
static void streamlet_is_looked_for_when_nobody_serves_it(void **state)
{
    (void)state;
    static const struct {
        bool nobody, crashed, down, older, adopted, waits;
        bool first;  /* the first of its logs waits, and not the last */
        int64_t age; /* of what is known of its node, beside CO_ADOPT_GRACE_US */
        enum found found;
    } cases[] = {
        {.found = NOTHING},
        {.nobody = true, .found = TAKEN},
        {.crashed = true, .down = true, .found = TAKEN},
        {.down = true, .found = NOTHING}, /* it is not heard of: it was not declared crashed yet */
        {.older = true, .age = -1, .found = LATER},
        {.older = true, .age = 0, .found = TAKEN},
        {.older = true, .age = 1, .found = TAKEN},
        {.older = true, .age = -1, .adopted = true, .found = TAKEN},
        {.older = true, .age = -1, .down = true, .found = TAKEN},
        {.older = true, .age = -1, .crashed = true, .down = true, .found = TAKEN},
        {.waits = true, .found = WAITS},
        {.waits = true, .first = true, .found = WAITS},
        {.waits = true, .older = true, .age = -1, .found = LATER},
        {.waits = true, .crashed = true, .down = true, .found = TAKEN},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        struct leat_machine_stream *stream = stream_make(1, 2);
        struct leat_machine_node *node = &machine->nodes[0];
        if (cases[c].nobody) stream->owners[0] = LEAT_OWNER_NONE;
        node->info.crashed = cases[c].crashed;
        node->info.state = cases[c].down ? LEAT_NODE_DOWN : LEAT_NODE_UP;
        if (cases[c].older) stream->desc->streamlets[0].owner = 9;
        node->adopted = cases[c].adopted ? 10 : 9;
        if (cases[c].waits) stream->logs[!cases[c].first].epoch.v = 4;
        it->seen[0].incarnation = 10;
        it->seen[0].since_us = now_us - CO_ADOPT_GRACE_US - (uint64_t)cases[c].age;
        advance(0);
        const bool begun = cases[c].found == TAKEN || cases[c].found == WAITS;
        if ((it->phase == LEAT_RECOVERY_COLLECT) != begun) fail_msg("case %zu", c);
        assert_int_equal(it->again_us == now_us + CO_TICK_US, cases[c].found == LATER);
        assert_int_equal(it->again_us == UINT64_MAX, cases[c].found != LATER);
        assert_int_equal(it->lost_us, begun ? now_us : 0);
        if (begun) {
            const struct co_recover_streamlet *found = &it->streamlets[0];
            assert_int_equal(it->streamlet_count, 1);
            assert_int_equal(it->log_count, 2);
            assert_int_equal(found->takes, cases[c].found == TAKEN);
            assert_true(found->ref.stream == 1 && found->ref.streamlet == 0 && found->first == 0 &&
                        found->logs == 2);
            assert_int_equal(found->seen_owner, cases[c].older ? 9 : 10);
            assert_int_equal(found->seen_epoch.v, 3);
            assert_int_equal(it->logs[0].seen_epoch.v, cases[c].first ? 4 : 3);
            assert_int_equal(it->logs[1].seen_epoch.v, cases[c].waits && !cases[c].first ? 4 : 3);
            assert_true(it->logs[1].ref.log == 1 && it->logs[1].seen.opened &&
                        it->logs[1].seen.stamp_epoch.v == 3);
            bool named = found->takes && !cases[c].nobody; /* whose writes are fenced */
            assert_int_equal(it->crashed_count, named);
            if (named) assert_string_equal(it->crashed[0].name, "n0");
            if (named) assert_int_equal(it->crashed[0].incarnation, found->seen_owner);
        }
        if (c + 1 < sizeof cases / sizeof *cases) finish(NULL);
    }
}

/* When nothing is to be had it is not looked at again before a node changes, or the time has come. */
static void tables_are_looked_at_when_something_may_be_new(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(1, 1);
    advance(0);
    assert_true(it->looked && it->phase == LEAT_RECOVERY_NONE);
    stream->owners[0] = LEAT_OWNER_NONE; /* no entry does that by itself */
    advance(1000000000);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    it->again_us = now_us + 10;
    advance(9);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    advance(1);
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
    leads = false;
    advance(0);
    leads = true;
    stream->owners[0] = 0;
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    stream->owners[0] = LEAT_OWNER_NONE;
    machine->node_changes++;
    it->committing = true; /* the entry of an attempt that was given up is on its way yet */
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    it->committing = false;
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
}

/* Streamlets in use come first, as many as an attempt holds; the next attempt goes on after the last, and the last
 * attempt ends the round. */
static void attempt_takes_what_it_holds_and_the_next_goes_on(void **state)
{
    (void)state;
    const uint32_t half = CO_COLLECT_LOGS_MAX / 2;
    struct leat_machine_stream *idle = stream_make(2, 1);
    for (uint32_t i = 0; i < 2; i++)
        idle->logs[i].record = (struct leat_log_record){.tail.segment = UINT64_MAX};
    stream_make(half / 256, 256);
    stream_make(half / 256, 256);
    stream_make(1, 3);
    crash(0);
    away[2] = away[3] = true;
    advance(0);
    assert_int_equal(it->log_count, CO_COLLECT_LOGS_MAX);
    assert_int_equal(it->streamlets[0].ref.stream, 2);
    assert_int_equal(it->streamlets[it->streamlet_count - 1].ref.stream, 3);
    assert_int_equal(it->streamlets[it->streamlet_count - 1].first, CO_COLLECT_LOGS_MAX - 256);
    assert_true(it->cursor.pass == 0 && it->cursor.stream == 4 && it->cursor.streamlet == 0);
    expect_calls("ask n1");
    answer(1, 0, 0, LEAT_E_TIMEOUT);
    advance(1); /* all wait: of none an entry */
    assert_int_equal(it->round_waits, 0);
    advance(1);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_int_equal(it->round_waits, CO_COLLECT_LOGS_MAX);
    assert_int_equal(it->again_us, now_us + CO_RECOVER_NEXT_US);
    advance(CO_RECOVER_NEXT_US - 1);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    advance(1);
    assert_int_equal(it->log_count, 5);
    assert_int_equal(it->streamlets[0].ref.stream, 4);
    assert_int_equal(it->streamlets[1].ref.stream, 1);
    assert_int_equal(it->streamlets[2].ref.streamlet, 1);
    assert_true(it->cursor.pass == 0 && it->cursor.stream == 0 && it->cursor.streamlet == 0);
    assert_int_equal(it->round_waits, CO_COLLECT_LOGS_MAX);
    answer(1, 0, 0, LEAT_E_TIMEOUT);
    advance(1);
    advance(1);
    assert_int_equal(it->round_waits,
                     CO_COLLECT_LOGS_MAX + 3 +
                         2); /* of those never opened nobody is there to own them */
    assert_int_equal(it->again_us, now_us + CO_RECOVER_AGAIN_US);
}

/* The newest incarnation of each node that is lost, once; and nobody whose log only waits. */
static void lost_incarnations_are_named_once(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(5, 1);
    const uint64_t owners[] = {9, 10, 8, 12, 13};
    const uint16_t nodes[] = {0, 0, 0, 2, 3};
    for (uint32_t i = 0; i < 5; i++) {
        stream->owners[i] = nodes[i];
        stream->desc->streamlets[i].owner = owners[i];
    }
    stream->logs[4].epoch.v = 4; /* of n3, which lives */
    crash(0);
    crash(2);
    advance(0);
    assert_int_equal(it->streamlet_count, 5);
    assert_int_equal(it->crashed_count, 2);
    assert_string_equal(it->crashed[0].name, "n0");
    assert_int_equal(it->crashed[0].incarnation, 10);
    assert_string_equal(it->crashed[1].name, "n2");
    assert_int_equal(it->crashed[1].incarnation, 12);
}

static void lack_of_memory_begins_the_attempt_later(void **state)
{
    (void)state;
    stream_make(2, 2);
    crash(0);
    for (unsigned n = 1; n <= 3; n++) {
        leat_mem_fail_at(n);
        advance(CO_RECOVER_AGAIN_US);
        leat_mem_fail_at(0);
        assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
        assert_int_equal(it->again_us, now_us + CO_RECOVER_AGAIN_US);
        assert_null(it->streamlets);
        assert_null(it->logs);
        expect_calls("");
    }
    advance(CO_RECOVER_AGAIN_US);
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
}

/* ---- collecting ---- */

/* An attempt asks the nodes that are up and can be reached; this node itself needs no link. */
static void nodes_that_can_answer_are_asked(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    away[2] = true;
    machine->nodes[3].info.node_address[0] = '\0';
    advance(0);
    expect_calls("ask n1");
    assert_int_equal(it->asked, 1);
    assert_int_equal(it->index, 42);
    finish(NULL);
    begin(NULL);
    stream_make(1, 1);
    crash(0);
    advance(0);
    expect_calls("ask n1, ask n2, ask n3");
    assert_int_equal(it->asked, 3);
    assert_int_equal(it->begun_us, now_us);
    struct leat_recovery_status status = co_recovery_status(coordinator);
    assert_true(status.attempt == ATTEMPT && status.phase == LEAT_RECOVERY_COLLECT &&
                status.streamlets == 1 && status.logs == 1 && status.nodes_asked == 3 &&
                status.nodes_answered == 0 && status.decided == 0);
}

static void answers_count_once_and_for_their_attempt(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    away[3] = true;
    advance(0);
    struct leat_replica_row row = {.log = {1, 0, 0}};
    struct leat_collect collect = {.attempt = ATTEMPT + 2, .rows = &row, .row_count = 1};
    co_recovery_rows(coordinator, 11, &collect); /* another's */
    collect.attempt = ATTEMPT;
    co_recovery_rows(coordinator, 99, &collect); /* nobody's */
    co_recovery_rows(coordinator, 13, &collect); /* who was not asked */
    assert_int_equal(it->answered + it->row_count, 0);
    co_recovery_rows(coordinator, 12, &collect);
    co_recovery_rows(coordinator, 12, &collect); /* again */
    assert_int_equal(it->answered, 1);
    assert_int_equal(it->good, 1);
    assert_int_equal(it->row_count, 1);
    assert_int_equal(it->rows[0].node, 2);
    assert_true(co_node_heard(it, 2) && it->nodes[1] == CO_NODE_ASKED);
    collect.rc = LEAT_E_TIMEOUT;
    co_recovery_rows(coordinator, 11, &collect); /* it has none */
    assert_int_equal(it->answered, 2);
    assert_int_equal(it->good, 1);
    assert_int_equal(it->row_count, 1);
    advance(0);
    assert_true(it->phase != LEAT_RECOVERY_COLLECT);
    collect.rc = LEAT_OK;
    co_recovery_rows(coordinator, 11, &collect); /* too late */
    assert_int_equal(it->row_count, 1);
}

/* Many rows, of several answers; one for which memory lacks is no answer. */
static void rows_of_all_answers_are_kept(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    advance(0);
    const size_t counts[] = {256, 1, 700};
    size_t before = 0;
    for (uint32_t n = 1; n < NODES; n++) {
        struct leat_replica_row rows[700] = {0};
        for (uint32_t i = 0; i < 700; i++)
            rows[i].segment = 1000 * n + i;
        struct leat_collect collect = {
            .attempt = ATTEMPT, .rows = rows, .row_count = counts[n - 1]};
        if (n == 2) leat_mem_fail_at(1);
        co_recovery_rows(coordinator, 10 + n, &collect);
        leat_mem_fail_at(0);
        assert_int_equal(co_node_heard(it, n), n != 2);
        assert_int_equal(collect.rc, n == 2 ? LEAT_E_NO_MEMORY : LEAT_OK);
        if (n == 2) continue;
        assert_int_equal(it->row_count, before + counts[n - 1]);
        for (size_t i = before; i < it->row_count; i++)
            assert_true(it->rows[i].row.segment == 1000 * n + (i - before) &&
                        it->rows[i].node == n);
        before = it->row_count;
    }
    assert_true(it->row_capacity >= it->row_count);
    assert_int_equal(it->good, 2);
}

/* All have answered; or enough of them, after a while; or the time is up. Whoever dies meanwhile is not waited
 * for. */
static void collecting_ends_as_soon_as_it_may(void **state)
{
    (void)state;
    static const struct {
        unsigned answers; /* of 3 */
        uint32_t rows;    /* of each: else nothing is decided */
        uint64_t after_us;
        unsigned die;
        bool goes_on;
    } cases[] = {
        {3, 1, 0, 0, true},
        {3, 0, 0, 0, true},
        {2, 1, 0, 0, false},
        {2, 1, CO_COLLECT_WAIT_US - 1, 0, false},
        {2, 1, CO_COLLECT_WAIT_US, 0, true},
        {2, 0, CO_COLLECT_WAIT_US, 0, false},
        {0, 0, CO_COLLECT_WAIT_US, 0, false},
        {2, 0, CO_COLLECT_WAIT_US_MAX - 1, 0, false},
        {2, 0, CO_COLLECT_WAIT_US_MAX, 0, true},
        {0, 0, CO_COLLECT_WAIT_US_MAX, 0, true},
        {2, 0, 0, 1, true},
        {1, 0, 0, 1, false},
        {2, 0, 0, 2, true},
        {2, 0, 0, 3, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (c) assert_int_equal(begin(NULL), 0);
        stream_make(1, 1);
        crash(0);
        advance(0);
        for (uint32_t n = 1; n <= cases[c].answers; n++)
            answer(n, cases[c].rows, 100, LEAT_OK);
        if (cases[c].die == 1) machine->nodes[3].info.crashed = true;
        if (cases[c].die == 2) machine->nodes[3].info.state = LEAT_NODE_DOWN;
        if (cases[c].die == 3) machine->nodes[3].info.incarnation = 23;
        advance(cases[c].after_us);
        if ((it->phase != LEAT_RECOVERY_COLLECT) != cases[c].goes_on) fail_msg("case %zu", c);
        if (cases[c].goes_on) assert_int_equal(it->collected_us, cases[c].after_us);
        if (!cases[c].goes_on && cases[c].after_us == 0) { /* nor does it in the next turn */
            advance(0);
            assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
        }
        if (c + 1 < sizeof cases / sizeof *cases) finish(NULL);
    }
}

/* A decision that failed is tried again with the next answer, not in each turn. */
static void deciding_early_waits_for_another_answer(void **state)
{
    (void)state;
    stream_make(2, 1);
    crash(0);
    advance(0);
    answer(1, 1, 100, LEAT_OK);
    advance(CO_COLLECT_WAIT_US);
    assert_true(it->sorted && it->phase == LEAT_RECOVERY_COLLECT);
    advance(1);
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
    answer(2, 2, 100, LEAT_OK);
    assert_false(it->sorted);
    advance(1);
    assert_int_equal(it->phase, LEAT_RECOVERY_PREPARE);
}

/* Goal: an attempt decides nothing while no node has answered, also of logs that need no replica; and an answer that
 * comes after the attempt has decided changes nothing: its plan names the rows that there were. */
static void answers_are_awaited_and_none_comes_late(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(1, 1);
    stream->logs[0].record = (struct leat_log_record){.tail.segment = UINT64_MAX};
    crash(0);
    advance(0);
    advance(CO_COLLECT_WAIT_US);
    assert_int_equal(it->phase, LEAT_RECOVERY_COLLECT);
    answer(1, 0, 0, LEAT_OK);
    advance(1);
    assert_true(it->phase != LEAT_RECOVERY_COLLECT);
    finish(NULL);
    begin(NULL);
    stream_make(1, 1);
    crash(0);
    advance(0);
    answer(1, 1, 100, LEAT_OK);
    advance(CO_COLLECT_WAIT_US);
    assert_int_equal(it->phase, LEAT_RECOVERY_PREPARE);
    answer(2, 1, 200, LEAT_OK);
    assert_int_equal(it->row_count, 1);
    assert_false(co_node_heard(it, 2));
}

/* Goal: since when each incarnation is there is noted when it is first seen. */
static void incarnations_are_noted_when_they_are_seen(void **state)
{
    (void)state;
    advance(0);
    const uint64_t first_us = now_us;
    machine->nodes[0].info.incarnation = 20;
    advance(5);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(it->seen[i].incarnation, i ? 10 + i : 20);
        assert_int_equal(it->seen[i].since_us, i ? first_us : now_us);
    }
}

/* Goal: a node that is down is not asked, though its connection is open. */
static void node_that_is_down_is_not_asked(void **state)
{
    (void)state;
    stream_make(1, 1);
    crash(0);
    machine->nodes[2].info.state = LEAT_NODE_DOWN;
    advance(0);
    expect_calls("ask n1, ask n3");
}

/* A stream that no attempt holds whole is gone on with in its middle. */
static void attempt_goes_on_in_the_middle_of_a_stream(void **state)
{
    (void)state;
    const uint32_t held = CO_COLLECT_LOGS_MAX / 256;
    stream_make(held + 8, 256);
    stream_make(2, 256);
    crash(0);
    advance(0);
    assert_int_equal(it->streamlet_count, held);
    assert_true(it->cursor.pass == 0 && it->cursor.stream == 1 && it->cursor.streamlet == held);
    for (uint32_t n = 1; n < NODES; n++)
        answer(n, 0, 0, LEAT_E_TIMEOUT);
    advance(0);
    advance(0);
    advance(CO_RECOVER_NEXT_US);
    assert_int_equal(it->streamlet_count, 10);
    assert_true(it->streamlets[0].ref.stream == 1 && it->streamlets[0].ref.streamlet == held);
    assert_true(it->streamlets[8].ref.stream == 2 && it->streamlets[8].ref.streamlet == 0);
}

/* The first node in the tables is one like the others. */
static void first_node_is_asked_answers_and_dies_like_others(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(1, 1);
    stream->owners[0] = 3;
    stream->desc->streamlets[0].owner = 13;
    crash(3);
    advance(0);
    expect_calls("ask n0, ask n1, ask n2");
    answer(1, 1, 100, LEAT_OK);
    answer(2, 0, 0, LEAT_OK);
    machine->nodes[0].info.crashed = true;
    machine->nodes[0].info.state = LEAT_NODE_DOWN;
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_PREPARE);
    finish(NULL);
    begin(NULL);
    stream = stream_make(1, 1);
    stream->owners[0] = 3;
    stream->desc->streamlets[0].owner = 13;
    crash(3);
    away[2] = true;
    advance(0);
    answer(0, 0, 0, LEAT_OK);
    assert_int_equal(it->good, 1);
    answer(1, 1, 100, LEAT_OK);
    calls[0] = '\0';
    advance(0);
    expect_calls("pull n0");
    co_recovery_pulled(coordinator, 10, it->attempt, (leat_err[]){LEAT_OK}, 1);
    assert_int_equal(it->tasks_open, 0);
}

/* A streamlet that is passed over is looked for again, whatever comes behind it. */
static void streamlet_that_is_passed_over_is_not_forgotten(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(2, 1);
    machine->nodes[0].adopted = 9;
    stream->desc->streamlets[0].owner = 9;
    it->seen[0].incarnation = 10;
    it->seen[0].since_us = now_us;
    advance(0);
    assert_int_equal(it->phase, LEAT_RECOVERY_NONE);
    assert_int_equal(it->again_us, now_us + CO_TICK_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTEMPT_TEST(only_leaders_whose_tables_are_whole_recover),
        ATTEMPT_TEST(server_alone_has_no_memory_for_it),
        ATTEMPT_TEST(streamlet_is_looked_for_when_nobody_serves_it),
        ATTEMPT_TEST(tables_are_looked_at_when_something_may_be_new),
        ATTEMPT_TEST(attempt_takes_what_it_holds_and_the_next_goes_on),
        ATTEMPT_TEST(lost_incarnations_are_named_once),
        ATTEMPT_TEST(lack_of_memory_begins_the_attempt_later),
        ATTEMPT_TEST(streamlet_that_is_passed_over_is_not_forgotten),
        ATTEMPT_TEST(nodes_that_can_answer_are_asked),
        ATTEMPT_TEST(answers_count_once_and_for_their_attempt),
        ATTEMPT_TEST(rows_of_all_answers_are_kept),
        ATTEMPT_TEST(collecting_ends_as_soon_as_it_may),
        ATTEMPT_TEST(deciding_early_waits_for_another_answer),
        ATTEMPT_TEST(answers_are_awaited_and_none_comes_late),
        ATTEMPT_TEST(node_that_is_down_is_not_asked),
        ATTEMPT_TEST(incarnations_are_noted_when_they_are_seen),
        ATTEMPT_TEST(attempt_goes_on_in_the_middle_of_a_stream),
        ATTEMPT_TEST(first_node_is_asked_answers_and_dies_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
