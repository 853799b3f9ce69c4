/* SPDX-License-Identifier: Apache-2.0 */
/* ASSIGN: which streamlets and logs its rows may name, in which order, and in whose name. What is refused changes
 * nothing: the whole state is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/metadata/assign.h"
#include "tests/coordinator/machine_rig.h"

enum { LOGS = 2, A = 1, B = 2 /* incarnations */, S = 1, T = 2 /* streams */ };

static struct leat_machine *m, *copy;
static struct command command;
static struct leat_machine_result result;

static void stream_make(const char *name)
{
    const struct leat_stream_settings settings = {.streamlets = 2, .logs = LOGS};
    struct leat_msg_writer w = command_begin(&command, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&w, name, 1);
    leat_msg_settings_write(&w, &settings);
    assert_int_equal(entry_apply(m, &command, &w), LEAT_OK);
}

/* Node a has two streamlets of two logs in each of two streams; b has none. */
static int begin(void **state)
{
    (void)state;
    m = calloc(1, sizeof *m);
    copy = calloc(1, sizeof *copy);
    assert_true(m && copy);
    leat_machine_init(m, 1);
    leat_machine_init(copy, 1);
    node_up(m, &command, "a");
    stream_make("s");
    stream_make("t");
    node_up(m, &command, "b");
    assert_int_equal(m->streams[0].id, S);
    assert_int_equal(m->streams[1].id, T);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_machine_fini(m);
    leat_machine_fini(copy);
    free(m);
    free(copy);
    return 0;
}

/* A row with the present state of a log. */
static struct leat_assign_row row_of(uint32_t stream, uint32_t streamlet, uint32_t log)
{
    const struct leat_machine_stream *of = &m->streams[stream - 1];
    const struct leat_machine_log *it = &of->logs[streamlet * LOGS + log];
    const bool opened = it->record.opened;
    return (struct leat_assign_row){.log = {stream, streamlet, log},
                                    .seen_owner = of->desc->streamlets[streamlet].owner,
                                    .seen_epoch = of->desc->streamlets[streamlet].epoch.v,
                                    .owner = B,
                                    .rows = LOGS,
                                    .seen_log_epoch = it->epoch.v,
                                    .seen_stamp = opened ? it->record.stamp_epoch.v : 0,
                                    .seen_version = opened ? it->record.stamp_version : 0,
                                    .decision = LEAT_RECOVER_TAIL,
                                    .tail = {.segment = 7, .prefix_id = {512, 0x1234}}};
}

/* LEAT_E_CORRUPT: not well-formed. The head of a streamlet is that of its first row. */
static leat_err assign(const struct leat_assign_entry *entry, const struct leat_assign_row *rows,
                       uint32_t count)
{
    struct leat_assign_entry head = *entry;
    struct leat_msg_writer w;
    for (uint32_t i = 0; i < count; i += rows[i].rows)
        head.streamlets++;
    leat_msg_writer_init(&w, command.bytes, sizeof command.bytes);
    leat_assign_entry_write(&w, &head);
    for (uint32_t i = 0; i < count; i += rows[i].rows) {
        leat_assign_streamlet_write(&w, &rows[i]);
        for (uint32_t q = 0; q < rows[i].rows; q++)
            leat_assign_log_write(&w, &rows[i + q]);
    }
    command_end(&command, &w);
    assert_int_equal(leat_machine_apply(m, command.bytes, command.count, &result), LEAT_OK);
    leat_machine_check(m);
    return result.malformed ? LEAT_E_CORRUPT : result.rc;
}

static void expect_refused(const struct leat_assign_entry *entry,
                           const struct leat_assign_row *rows, uint32_t count, leat_err rc)
{
    machine_restore_copy(m, copy);
    assert_int_equal(assign(entry, rows, count), rc);
    assert_int_equal(result.epoch.v, 0);
    machines_compare(m, copy);
}

/* ---- moves ---- */

static const struct leat_assign_entry move = {.reason = LEAT_ASSIGN_MOVE, .incarnation = A};

/* A stream and a streamlet, in ascending order and each once, with all of its logs. */
static void move_names_whole_streamlets_in_ascending_order(void **state)
{
    (void)state;
    const struct leat_assign_row falls[] = {row_of(T, 0, 0), row_of(T, 0, 1), row_of(S, 1, 0),
                                            row_of(S, 1, 1)};
    expect_refused(&move, falls, 4, LEAT_E_INVALID);
    const struct leat_assign_row twice[] = {row_of(S, 1, 0), row_of(S, 1, 1), row_of(S, 1, 0),
                                            row_of(S, 1, 1)};
    expect_refused(&move, twice, 4, LEAT_E_INVALID);
    struct leat_assign_row part[] = {row_of(S, 0, 0), row_of(S, 1, 0), row_of(S, 1, 1)};
    part[0].rows = 1;
    expect_refused(&move, part, 3, LEAT_E_INVALID);
    const struct leat_assign_row rises[] = {row_of(S, 1, 0), row_of(S, 1, 1), row_of(T, 0, 0),
                                            row_of(T, 0, 1)};
    assert_int_equal(assign(&move, rises, 4), LEAT_OK);
    assert_int_equal(m->streams[0].desc->streamlets[1].owner, B);
    assert_int_equal(m->streams[1].desc->streamlets[0].owner, B);
    assert_int_equal(m->streams[0].desc->streamlets[0].owner, A);
}

static void move_names_what_there_is(void **state)
{
    (void)state;
    struct leat_assign_row rows[] = {row_of(S, 1, 0), row_of(S, 1, 1)};
    rows[0].log.streamlet = rows[1].log.streamlet = 2;
    expect_refused(&move, rows, 2, LEAT_E_UNKNOWN_LOG);
    rows[0].log.stream = rows[1].log.stream = 9;
    expect_refused(&move, rows, 2, LEAT_E_UNKNOWN_STREAM);
    expect_refused(&move, rows, 0, LEAT_E_CORRUPT);
}

/* MOVE, the older kind, is taken with all its rows or not at all: also where the last is none. */
static void move_of_the_older_kind_has_rows_alone(void **state)
{
    (void)state;
    machine_restore_copy(m, copy);
    struct leat_msg_writer w = command_begin(&command, LEAT_COMMAND_MOVE, 4);
    leat_msg_write_u64(&w, A);
    leat_msg_write_u64(&w, m->streams[0].desc->streamlets[0].epoch.v);
    leat_msg_write_string(&w, "b", 1);
    leat_msg_write_array(&w, LOGS + 1);
    for (uint64_t q = 0; q < LOGS; q++) {
        const uint64_t numbers[] = {S, 0, q, 1, 2, 3, 4};
        leat_msg_write_array(&w, 7);
        for (unsigned k = 0; k < 7; k++)
            leat_msg_write_u64(&w, numbers[k]);
    }
    leat_msg_write_string(&w, "no row", 6);
    command_end(&command, &w);
    assert_int_equal(leat_machine_apply(m, command.bytes, command.count, &result), LEAT_OK);
    assert_true(result.malformed);
    machines_compare(m, copy);
}

/* All streamlets of a move go to one node. */
static void move_has_one_target(void **state)
{
    (void)state;
    struct leat_assign_row rows[] = {row_of(S, 0, 0), row_of(S, 0, 1), row_of(S, 1, 0),
                                     row_of(S, 1, 1)};
    rows[2].owner = rows[3].owner = A;
    expect_refused(&move, rows, 4, LEAT_E_CORRUPT);
}

/* As many streamlets as its head says; and of a log that ends nobody says what others were heard to have. */
static void entry_is_as_long_as_it_says(void **state)
{
    (void)state;
    struct leat_assign_row rows[] = {row_of(S, 0, 0), row_of(S, 0, 1)};
    struct leat_assign_entry more = move;
    more.streamlets = 1; /* and that of the rows */
    expect_refused(&more, rows, 2, LEAT_E_CORRUPT);
    rows[1].heard = 9;
    expect_refused(&move, rows, 2, LEAT_E_CORRUPT);
    rows[1].heard = 0;
    assert_int_equal(assign(&move, rows, 2), LEAT_OK);
}

/* Each row must be in the name of the node that asks: a right row does not stand for another row. */
static void every_row_is_in_the_name_of_who_asks(void **state)
{
    (void)state;
    struct leat_assign_row rows[] = {row_of(S, 0, 0), row_of(S, 0, 1), row_of(S, 1, 0),
                                     row_of(S, 1, 1)};
    rows[0].seen_owner = rows[1].seen_owner = B;
    expect_refused(&move, rows, 4, LEAT_E_CORRUPT);
    const struct leat_assign_entry start = {
        .reason = LEAT_ASSIGN_START, .incarnation = A, .attempt = 9};
    for (unsigned i = 0; i < 4; i++)
        rows[i].owner = i < 2 ? B : A;
    expect_refused(&start, rows, 4, LEAT_E_CORRUPT);
    assert_null(m->staged);
}

/* ---- a start ---- */

/* Its end is in the name of who starts, and has no rows. */
static void end_of_a_start_is_of_who_starts(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 3; c++) {
        const struct leat_assign_entry head = {
            .reason = LEAT_ASSIGN_START, .incarnation = A, .attempt = 9, .streamlets = 1};
        struct leat_assign_row rest = row_of(S, 0, 0);
        struct leat_msg_writer w;
        machine_restore_copy(m, copy);
        leat_msg_writer_init(&w, command.bytes, sizeof command.bytes);
        leat_assign_entry_write(&w, &head);
        rest.log.stream = 0;
        rest.seen_owner = leat_machine_seen(m, &m->nodes[0]);
        rest.owner = c == 1 ? B : A;
        rest.rows = c == 2;
        leat_assign_streamlet_write(&w, &rest);
        if (c == 2) leat_assign_log_write(&w, &rest);
        command_end(&command, &w);
        assert_int_equal(leat_machine_apply(m, command.bytes, command.count, &result), LEAT_OK);
        assert_int_equal(result.malformed, c != 0);
        if (c) machines_compare(m, copy);
    }
}

/* ---- loss that an operator accepts ---- */

/* A loss is of one log: only the first row is checked. */
static void loss_is_of_one_log(void **state)
{
    (void)state;
    const struct leat_assign_entry loss = {.reason = LEAT_ASSIGN_LOSS, .incarnation = A};
    struct leat_assign_row rows[] = {row_of(S, 0, 0), row_of(S, 0, 1)};
    for (unsigned i = 0; i < 2; i++) {
        rows[i].owner = A;
        rows[i].decision = LEAT_RECOVER_LEFT;
    }
    expect_refused(&loss, rows, 2, LEAT_E_CORRUPT);
    rows[0].rows = rows[1].rows = 1;
    expect_refused(&loss, rows, 2, LEAT_E_CORRUPT);
    assert_int_equal(assign(&loss, rows, 1), LEAT_OK);
    assert_true(m->streams[0].logs[0].record.tail.jumped);
    assert_false(m->streams[0].logs[1].record.tail.jumped);
}

/* Goal: a log whose loss is accepted waits no more: nothing counts of what was heard while the log waited. */
static void loss_ends_what_was_heard(void **state)
{
    (void)state;
    struct leat_machine_log *log = &m->streams[0].logs[0];
    log->record = (struct leat_log_record){.opened = true,
                                           .stamp_epoch = {log->epoch.v},
                                           .stamp_version = 1,
                                           .heard = m->next_incarnation};
    log->epoch.v = m->next_epoch++;
    assert_true(leat_machine_log_waits(log));
    const struct leat_assign_entry loss = {.reason = LEAT_ASSIGN_LOSS, .incarnation = A};
    struct leat_assign_row row = row_of(S, 0, 0);
    row.owner = A;
    row.rows = 1;
    row.decision = LEAT_RECOVER_LEFT;
    row.heard = m->next_incarnation;
    assert_int_equal(assign(&loss, &row, 1), LEAT_OK);
    assert_true(log->record.tail.jumped);
    assert_false(log->record.opened);
    assert_int_equal(log->record.heard, 0);
}

/* ---- recovery ---- */

static const struct leat_assign_entry recovery = {.reason = LEAT_ASSIGN_RECOVERY, .attempt = 9};

/* A streamlet past the end of its stream is no streamlet, whatever its row says. */
static void recovery_takes_no_streamlet_past_the_end_of_its_stream(void **state)
{
    (void)state;
    struct leat_stream_desc *desc = m->streams[0].desc;
    assert_int_equal(crash(m, &command, "a", A), LEAT_OK);
    struct leat_assign_row rows[] = {row_of(S, 1, 0), row_of(S, 1, 1)};
    rows[0].decision = rows[1].decision = LEAT_RECOVER_STANDS; /* neither log was opened */
    desc->settings.streamlets = 1;
    assert_int_equal(assign(&recovery, rows, 2), LEAT_E_AGAIN);
    assert_int_equal(desc->streamlets[1].owner, A);
    desc->settings.streamlets = 2;
    assert_int_equal(assign(&recovery, rows, 2), LEAT_OK);
    assert_int_equal(m->streams[0].desc->streamlets[1].owner, B);
}

/* The reports of all nodes on a log that waits are kept only if the log is as the recovery saw it: not if the log has
 * another generation, though the row is right for another log of the streamlet. */
static void recovery_keeps_what_was_heard_of_logs_as_they_were_seen(void **state)
{
    (void)state;
    for (unsigned q = 0; q < LOGS; q++) {
        const struct leat_log_record waits = {
            .opened = true, .stamp_epoch = m->streams[0].logs[q].epoch, .stamp_version = 3};
        m->streams[0].logs[q].record = waits;
        m->streams[0].logs[q].epoch.v += 100; /* another owner since, who found no end */
    }
    struct leat_assign_row rows[] = {row_of(S, 0, 0), row_of(S, 0, 1)};
    for (unsigned q = 0; q < LOGS; q++) {
        rows[q].owner = A;
        rows[q].decision = LEAT_RECOVER_WAITS;
        rows[q].heard = m->next_incarnation;
    }
    rows[1].seen_version = 2;
    assert_int_equal(assign(&recovery, rows, 2), LEAT_OK);
    assert_int_equal(m->streams[0].logs[0].record.heard, m->next_incarnation);
    assert_int_equal(m->streams[0].logs[0].record.tail.segment, 7);
    assert_int_equal(m->streams[0].logs[1].record.heard, 0);
    assert_int_equal(m->streams[0].logs[1].record.tail.segment, 0);
}

/* RECOVER, the older kind, gives nothing up: its rows have no such decision. */
static void recover_gives_nothing_up(void **state)
{
    (void)state;
    assert_int_equal(crash(m, &command, "a", A), LEAT_OK);
    machine_restore_copy(m, copy);
    const struct leat_machine_stream *stream = &m->streams[0];
    struct leat_msg_writer w = recover_begin(&command, stream, 0, B);
    recover_log(&w, &stream->logs[0], LEAT_RECOVER_TAIL, 3);
    leat_msg_write_array(&w, 9);
    leat_msg_write_u64(&w, stream->logs[1].epoch.v);
    for (unsigned k = 0; k < 2; k++)
        leat_msg_write_u64(&w, 0);
    leat_msg_write_u64(&w, LEAT_RECOVER_LEFT);
    for (unsigned k = 0; k < 5; k++)
        leat_msg_write_u64(&w, 1);
    command_end(&command, &w);
    assert_int_equal(leat_machine_apply(m, command.bytes, command.count, &result), LEAT_OK);
    assert_true(result.malformed);
    machines_compare(m, copy);
}

int main(void)
{
#define ROWS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        ROWS_TEST(move_names_whole_streamlets_in_ascending_order),
        ROWS_TEST(move_names_what_there_is),
        ROWS_TEST(move_of_the_older_kind_has_rows_alone),
        ROWS_TEST(move_has_one_target),
        ROWS_TEST(entry_is_as_long_as_it_says),
        ROWS_TEST(every_row_is_in_the_name_of_who_asks),
        ROWS_TEST(end_of_a_start_is_of_who_starts),
        ROWS_TEST(loss_is_of_one_log),
        ROWS_TEST(loss_ends_what_was_heard),
        ROWS_TEST(recovery_takes_no_streamlet_past_the_end_of_its_stream),
        ROWS_TEST(recovery_keeps_what_was_heard_of_logs_as_they_were_seen),
        ROWS_TEST(recover_gives_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
