/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: what a starting node found of its logs is checked and decided, and the entries have the same effect as the
 * decisions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/machine_rig.h"

enum { COMMANDS_MAX = 4 };

struct rig {
    struct leat_machine machine;
    struct command command;
};

static struct rig *rig_begin(uint32_t streamlets, uint32_t logs, uint32_t copies)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    leat_machine_init(&rig->machine, 1);
    node_up(&rig->machine, &rig->command, "a");
    node_up(&rig->machine, &rig->command, "b");
    assert_int_equal(crash(&rig->machine, &rig->command, "b", 2), LEAT_OK);
    node_up(&rig->machine, &rig->command, "b");
    assert_int_equal(crash(&rig->machine, &rig->command, "b", 3), LEAT_OK);
    node_up(&rig->machine, &rig->command, "a"); /* 4 */
    struct leat_stream_settings settings = {
        .streamlets = streamlets, .logs = logs, .copies = 1, .min_copies = 1};
    assert_int_equal(
        stream_entry(&rig->machine, &rig->command, LEAT_COMMAND_STREAM_CREATE, 0, &settings),
        LEAT_OK);
    leat_machine_name_find(&rig->machine, "s", 1)->desc->settings.copies = copies;
    return rig;
}

static void rig_end(struct rig *rig)
{
    leat_machine_fini(&rig->machine);
    free(rig);
}

static leat_err decided(struct rig *rig, const struct leat_log_marks *marks, size_t count,
                        uint64_t incarnation, struct leat_coordinate *out)
{
    struct leat_error error;
    *out =
        (struct leat_coordinate){.incarnation = incarnation, .marks = marks, .mark_count = count};
    return leat_adopt_decide(&rig->machine, out, true, &error);
}

/* Goal: marks of logs or epochs that these tables have never had are refused, each at its bound: by tables that have
 * lost entries the node would drop its data. */
static void marks_that_the_tables_do_not_know_are_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_begin(3, 2, 1);
    const uint32_t id = leat_machine_name_find(&rig->machine, "s", 1)->id;
    const struct leat_epoch next = {rig->machine.next_epoch}, last = {next.v - 1};
    rig->machine.next_stream_id = id + 2; /* the stream after it was created, and deleted */
    const struct {
        struct leat_log_marks marks[2];
        leat_err rc;
    } rows[] = {
        {{{.log = {id, 0, 0}}, {.log = {id, 0, 1}}}, LEAT_OK},
        {{{.log = {id, 0, 1}}, {.log = {id, 0, 1}}}, LEAT_E_INVALID},
        {{{.log = {id, 0, 1}}, {.log = {id, 0, 0}}}, LEAT_E_INVALID},
        {{{.log = {id, 0, 1}}, {.log = {id, 1, 0}}}, LEAT_OK},
        {{{.log = {id, 2, 1}}, {.log = {id + 1, 9, 9}}}, LEAT_OK},
        {{{.log = {id, 2, 1}}, {.log = {id + 2, 0, 0}}}, LEAT_E_WRONG_CLUSTER},
        {{{.log = {id, 2, 1}}, {.log = {id, 3, 0}}}, LEAT_E_WRONG_CLUSTER},
        {{{.log = {id, 1, 1}}, {.log = {id, 1, 2}}}, LEAT_E_WRONG_CLUSTER},
        {{{.log = {id, 0, 0}}, {.log = {id, 0, 1}, .has_mark = true, .mark_epoch = last}}, LEAT_OK},
        {{{.log = {id, 0, 0}}, {.log = {id, 0, 1}, .has_mark = true, .mark_epoch = next}},
         LEAT_E_WRONG_CLUSTER},
        {{{.log = {id, 0, 0}}, {.log = {id, 0, 1}, .mark_epoch = next}}, LEAT_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct leat_coordinate request;
        assert_int_equal(decided(rig, rows[i].marks, 2, 0, &request), rows[i].rc);
        assert_int_equal(request.decision_count, rows[i].rc == LEAT_OK ? 6 : 0);
        leat_mem_free(request.decisions);
    }
    rig_end(rig);
}

/* Goal: only the newest incarnation of a node that is up adopts anything: whoever names none gets the newest of all
 * nodes, and a crashed or replaced one gets nothing. */
static void only_an_incarnation_that_is_up_adopts(void **state)
{
    (void)state;
    struct rig *rig = rig_begin(1, 1, 1);
    struct leat_coordinate request;
    for (uint64_t incarnation = 1; incarnation <= 5; incarnation++) {
        const leat_err rc = incarnation == 4 ? LEAT_OK : LEAT_E_STALE_EPOCH;
        assert_int_equal(decided(rig, NULL, 0, incarnation, &request), rc);
        leat_mem_free(request.decisions);
    }
    node_up(&rig->machine, &rig->command, "c"); /* 5 */
    assert_int_equal(decided(rig, NULL, 0, 0, &request), LEAT_OK);
    assert_int_equal(request.incarnation, 5);
    assert_int_equal(request.decision_count, 0); /* all has another owner */
    leat_mem_free(request.decisions);
    node_up(&rig->machine, &rig->command, "a"); /* 6, in a row before it */
    assert_int_equal(decided(rig, NULL, 0, 0, &request), LEAT_OK);
    assert_int_equal(request.incarnation, 6);
    assert_int_equal(request.decision_count, 1);
    leat_mem_free(request.decisions);
    rig_end(rig);
}

static struct leat_log_marks mark(uint32_t streamlet, uint32_t log, uint32_t epoch)
{
    return (struct leat_log_marks){.log = {1, streamlet, log},
                                   .has_mark = true,
                                   .mark_segment = 5,
                                   .mark_epoch = {epoch},
                                   .mark_version = 1,
                                   .mark_prefix_id = {512, 0x1234},
                                   .mark_next_offset = 100,
                                   .highest_segment = 5};
}

/* Of a stream with two logs in each of three streamlets, log 0 of the first streamlet is opened. */
static uint32_t one_opened(struct rig *rig)
{
    uint32_t epoch = leat_machine_name_find(&rig->machine, "s", 1)->desc->streamlets[0].epoch.v;
    assert_int_equal(opened(&rig->machine, &rig->command, epoch, 4, 1), LEAT_OK);
    return epoch;
}

/* Goal: an open log's streamlet is left to recovery as a whole where other nodes have replicas, the others are not. */
static void streamlet_with_an_open_log_is_left_to_recovery(void **state)
{
    (void)state;
    for (uint32_t copies = 1; copies <= 2; copies++) {
        struct rig *rig = rig_begin(3, 2, copies);
        const uint32_t epoch = one_opened(rig);
        struct leat_log_marks marks[] = {mark(0, 0, epoch), mark(2, 1, epoch)};
        struct leat_machine_log *opened_logs = leat_machine_name_find(&rig->machine, "s", 1)->logs;
        opened_logs[5].record = opened_logs[0].record; /* also log 1 of the last streamlet */
        struct leat_coordinate request;
        assert_int_equal(decided(rig, marks, 2, 0, &request), LEAT_OK);
        assert_int_equal(request.decision_count, 6);
        for (size_t i = 0; i < 6; i++) {
            const struct leat_log_decision *it = &request.decisions[i];
            const bool left = copies == 2 && i / 2 != 1;
            assert_int_equal(it->log.streamlet, i / 2);
            assert_int_equal(it->log.log, i % 2);
            assert_int_equal(it->left, left);
            assert_int_equal(it->kind, left ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL);
            if (left) assert_non_null(strstr(it->why, "decided with what all nodes hold"));
            if (i == 0 && !left) assert_int_equal(it->tail.segment, 5);
        }
        leat_mem_free(request.decisions);
        rig_end(rig);
    }
}

/* Goal: an operator reads of a log that waits why the log waits, and of the other logs of the streamlet that these are
 * decided with it. */
static void log_that_waits_keeps_its_reason(void **state)
{
    (void)state;
    struct rig *rig = rig_begin(1, 2, 2);
    one_opened(rig);
    struct leat_coordinate request;
    assert_int_equal(decided(rig, NULL, 0, 0, &request), LEAT_OK);
    assert_int_equal(request.decision_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct leat_log_decision *it = &request.decisions[i];
        assert_true(it->left && it->kind == LEAT_DECIDED_WAIT && it->why[0] != '\0');
        assert_int_equal(strstr(it->why, "decided with what all nodes hold") != NULL, i == 1);
    }
    leat_mem_free(request.decisions);
    rig_end(rig);
}

/* Goal: the entries of an adoption have the effect of its decisions: an opened log gets its decided tail, the node gets
 * its streamlets under a new epoch, and streamlets that are left stay as they are. */
static void entries_do_what_was_decided(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t copies = 1 + c % 2, logs = 1 + c / 2;
        struct rig *rig = rig_begin(3, logs, copies);
        const uint32_t before = one_opened(rig), now = rig->machine.next_epoch;
        struct leat_log_marks marks = mark(0, 0, before);
        struct leat_coordinate request;
        struct leat_error error;
        struct raft_buffer commands[COMMANDS_MAX];
        unsigned count = 0;
        uint8_t *bytes = NULL;
        assert_int_equal(decided(rig, &marks, 1, 0, &request), LEAT_OK);
        assert_int_equal(
            leat_adopt_encode(&rig->machine, &request, 7, commands, 0, &count, &bytes, &error),
            LEAT_E_TOO_MANY);
        assert_int_equal(leat_adopt_encode(&rig->machine, &request, 7, commands, COMMANDS_MAX,
                                           &count, &bytes, &error),
                         LEAT_OK);
        assert_int_equal(count, 1);
        struct leat_machine_result result;
        assert_int_equal(
            leat_machine_apply(&rig->machine, commands[0].base, commands[0].len, &result), LEAT_OK);
        assert_int_equal(result.rc, LEAT_OK);
        const struct leat_machine_stream *stream = leat_machine_name_find(&rig->machine, "s", 1);
        for (uint32_t i = 0; i < 3; i++) {
            const bool left = copies == 2 && i == 0;
            assert_int_equal(stream->desc->streamlets[i].epoch.v, left ? before : now);
            for (uint32_t q = 0; q < logs; q++) {
                const struct leat_machine_log *log = &stream->logs[logs * i + q];
                const bool first = i == 0 && q == 0;
                assert_int_equal(log->epoch.v, left ? before : now);
                assert_int_equal(log->record.opened, left && first);
                if (first && !left) {
                    assert_int_equal(log->record.tail.segment, 5);
                    assert_int_equal(log->record.tail.next_offset, 100);
                }
            }
        }
        /* A second time: the node's streamlets have changed since. */
        assert_int_equal(
            leat_machine_apply(&rig->machine, commands[0].base, commands[0].len, &result), LEAT_OK);
        assert_int_equal(result.rc, LEAT_E_AGAIN);
        leat_mem_free(bytes);
        leat_mem_free(request.decisions);
        rig_end(rig);
    }
}

/* Goal: a log whose end was not found here goes on waiting after the adoption: a tail would give up what it lacks. */
static void log_that_waits_gets_no_tail(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 2; c++) {
        struct rig *rig = rig_begin(3, 2, 1);
        const uint32_t before = one_opened(rig);
        struct leat_log_marks marks = mark(0, 0, before);
        marks.mark_epoch.v--; /* of an earlier owner */
        struct leat_coordinate request;
        struct leat_error error;
        struct raft_buffer commands[COMMANDS_MAX];
        unsigned count = 0;
        uint8_t *bytes = NULL;
        assert_int_equal(decided(rig, &marks, c, 0, &request), LEAT_OK);
        assert_int_equal(request.decisions[0].kind, LEAT_DECIDED_WAIT);
        assert_false(request.decisions[0].left);
        assert_int_equal(leat_adopt_encode(&rig->machine, &request, 7, commands, COMMANDS_MAX,
                                           &count, &bytes, &error),
                         LEAT_OK);
        struct leat_machine_result result;
        assert_int_equal(
            leat_machine_apply(&rig->machine, commands[0].base, commands[0].len, &result), LEAT_OK);
        assert_int_equal(result.rc, LEAT_OK);
        const struct leat_machine_log *log =
            &leat_machine_name_find(&rig->machine, "s", 1)->logs[0];
        assert_true(log->record.opened);
        assert_int_equal(log->record.stamp_epoch.v, before);
        assert_true(log->epoch.v > before);
        leat_mem_free(bytes);
        leat_mem_free(request.decisions);
        rig_end(rig);
    }
}

/* Goal: an open log without a mark waits, whatever the next log has; a mark of a log that there is not is refused, the
 * only one, too; and only a coordinator of several nodes leaves a streamlet to recovery. */
static void marks_are_of_one_log(void **state)
{
    (void)state;
    struct rig *rig = rig_begin(3, 2, 1);
    const uint32_t epoch = one_opened(rig);
    struct leat_machine_log *logs = leat_machine_name_find(&rig->machine, "s", 1)->logs;
    logs[1].record = logs[0].record;
    const struct leat_log_marks second = mark(0, 1, epoch), none = mark(0, 2, epoch);
    struct leat_coordinate request;
    assert_int_equal(decided(rig, &second, 1, 0, &request), LEAT_OK);
    assert_int_equal(request.decisions[0].kind, LEAT_DECIDED_WAIT);
    assert_int_equal(request.decisions[1].kind, LEAT_DECIDED_TAIL);
    assert_int_equal(request.decisions[1].tail.segment, 5);
    leat_mem_free(request.decisions);
    assert_int_equal(decided(rig, &none, 1, 0, &request), LEAT_E_WRONG_CLUSTER);
    rig_end(rig);
    for (unsigned leaves = 0; leaves < 2; leaves++) {
        struct leat_error error;
        rig = rig_begin(1, 2, 2);
        const struct leat_log_marks first = mark(0, 0, one_opened(rig));
        request = (struct leat_coordinate){.marks = &first, .mark_count = 1};
        assert_int_equal(leat_adopt_decide(&rig->machine, &request, leaves, &error), LEAT_OK);
        assert_int_equal(request.decisions[0].left, leaves);
        assert_int_equal(request.decisions[0].kind, leaves ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL);
        leat_mem_free(request.decisions);
        rig_end(rig);
    }
}

static uint64_t random_next(void *ctx)
{
    return ++*(uint64_t *)ctx;
}

static void adoption_of_many(uint32_t streamlets, uint32_t logs, uint64_t next_offset)
{
    const uint64_t segment = UINT64_C(1) << 60;
    struct rig *rig = rig_begin(streamlets, logs, 1);
    struct leat_coordinator *coordinator = calloc(1, sizeof *coordinator);
    struct leat_log_marks *marks = calloc(streamlets * logs, sizeof *marks);
    assert_true(coordinator && marks);
    uint64_t drawn = 0;
    const struct leat_random random = {.ctx = &drawn, .next = random_next};
    const struct leat_env env = {.random = &random};
    struct leat_machine_stream *stream = leat_machine_name_find(&rig->machine, "s", 1);
    const uint32_t epoch = stream->desc->streamlets[0].epoch.v;
    for (uint32_t i = 0; i < streamlets * logs; i++) {
        stream->logs[i].record =
            (struct leat_log_record){.opened = true, .stamp_epoch = {epoch}, .stamp_version = 1};
        marks[i] = mark(i / logs, i % logs, epoch);
        marks[i].mark_segment = marks[i].highest_segment = segment;
        marks[i].mark_next_offset = next_offset;
        marks[i].mark_prefix_id = (struct leat_prefix_id){UINT32_MAX, UINT32_MAX};
    }
    coordinator->machine = rig->machine;
    coordinator->env = &env;
    coordinator->session = 9;
    struct leat_coordinate request = {.marks = marks, .mark_count = streamlets * logs};
    assert_int_equal(co_adopt_encode(coordinator, &request), LEAT_OK);
    const uint8_t *at = request.bytes, *end = at + request.byte_count;
    unsigned entries = 0;
    while (at < end) {
        struct leat_machine_result result;
        const uint32_t bytes =
            at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        assert_int_equal(leat_machine_apply(&rig->machine, at + 4, bytes, &result), LEAT_OK);
        assert_int_equal(result.rc, LEAT_OK);
        assert_int_equal(result.session, 9);
        assert_int_equal(result.sequence, ++entries);
        at += 4 + bytes;
    }
    assert_ptr_equal(at, end);
    assert_int_equal(entries, 2);
    for (uint32_t i = 0; i < streamlets * logs; i++)
        assert_true(!stream->logs[i].record.opened &&
                    stream->logs[i].record.tail.segment == segment);
    leat_mem_free(request.bytes);
    leat_mem_free(request.decisions);
    free(coordinator);
    free(marks);
    rig_end(rig);
}

/* Goal: an adoption of more logs than an entry takes has several entries, each a request of its own with the next
 * number; all of them together adopt each log. */
static void adoption_of_many_logs_has_several_entries(void **state)
{
    (void)state;
    static const uint64_t next_offsets[] = {UINT64_C(1) << 60, 1 << 20, 300, 5};
    adoption_of_many(150, LEAT_LOGS_MAX, next_offsets[0]);
    for (unsigned i = 0; i < 4; i++) /* entries end at several bytes */
        adoption_of_many(32000, 1, next_offsets[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_that_the_tables_do_not_know_are_refused),
        cmocka_unit_test(only_an_incarnation_that_is_up_adopts),
        cmocka_unit_test(streamlet_with_an_open_log_is_left_to_recovery),
        cmocka_unit_test(log_that_waits_keeps_its_reason),
        cmocka_unit_test(entries_do_what_was_decided),
        cmocka_unit_test(log_that_waits_gets_no_tail),
        cmocka_unit_test(marks_are_of_one_log),
        cmocka_unit_test(adoption_of_many_logs_has_several_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
