/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the state machine and their bytes, at the ends of their ranges: full rings, the largest numbers, and bytes
 * that no voter can have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/assign.h"
#include "coordinator/metadata/private.h"
#include "tests/coordinator/machine_rig.h"

static struct leat_machine *m, *copy;
static struct command *command;

static int begin(void **state)
{
    (void)state;
    m = calloc(1, sizeof *m);
    copy = calloc(1, sizeof *copy);
    command = calloc(1, sizeof *command);
    assert_true(m && copy && command);
    leat_machine_init(m, 1);
    leat_machine_init(copy, 1);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_machine_fini(m);
    leat_machine_fini(copy);
    free(m);
    free(copy);
    free(command);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}

/* ---- names and descriptions ---- */

/* Goal: each byte of a name is looked at, the first and the last, too; bytes behind the name are none of it. */
static void each_byte_of_a_name_counts(void **state)
{
    (void)state;
    struct leat_error error;
    for (size_t at = 0; at < 4; at++) {
        char name[] = "name/";
        name[at] = '/';
        assert_int_equal(leat_stream_name_check(name, 4, &error), LEAT_E_BAD_NAME);
    }
    assert_int_equal(leat_stream_name_check("/", 1, &error), LEAT_E_BAD_NAME);
    assert_int_equal(leat_stream_name_check("name/", 4, &error), LEAT_OK);
}

/* Goal: the server's own streams begin with "leat."; a stream of a shorter name is none of them, whatever follows. */
static void short_name_is_no_internal_stream(void **state)
{
    (void)state;
    const struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
    for (size_t bytes = 1; bytes < 7; bytes++) {
        struct leat_stream_desc *desc = leat_machine_desc_create(1, "leat.x", bytes, &settings);
        assert_non_null(desc);
        assert_int_equal(desc->internal, bytes >= 5);
        leat_stream_desc_unref(desc);
    }
}

/* Goal: a description is freed with the last that holds it. */
static void description_is_freed_with_its_last_holder(void **state)
{
    (void)state;
    const struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
    struct leat_stream_desc *desc = leat_machine_desc_create(1, "s", 1, &settings);
    assert_non_null(desc);
    leat_stream_desc_ref(desc);
    leat_stream_desc_unref(desc);
    assert_true(leat_mem_bytes(LEAT_MEM_ROWS) > 0);
    leat_stream_desc_unref(desc);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), 0);
}

/* ---- entries ---- */

static struct leat_machine_result assigned(uint32_t reason)
{
    struct leat_machine_result result;
    struct leat_msg_writer w;
    const struct leat_assign_row row = {
        .log = {1, 0, 0}, .seen_owner = 1, .owner = 1, .rows = 1, .decision = LEAT_RECOVER_WAITS};
    leat_msg_writer_init(&w, command->bytes, sizeof command->bytes);
    leat_assign_entry_write(
        &w, &(struct leat_assign_entry){
                .reason = (enum leat_assign_reason)reason, .incarnation = 1, .streamlets = 1});
    leat_assign_streamlet_write(&w, &row);
    leat_assign_log_write(&w, &row);
    command_end(command, &w);
    assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result), LEAT_OK);
    return result;
}

/* Goal: an entry of any kind or reason that this version does not know is refused, the next number and the largest. */
static void numbers_behind_the_last_are_refused(void **state)
{
    (void)state;
    static const uint32_t more[] = {1, 2, 100, INT32_MAX - 100};
    struct leat_machine_result result;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_ASSIGN + more[i], 0);
        command_end(command, &w);
        assert_int_equal(leat_machine_apply(m, command->bytes, command->count, &result),
                         LEAT_E_CORRUPT);
        assert_true(assigned(LEAT_ASSIGN_LOSS + more[i]).malformed);
    }
    assert_false(assigned(LEAT_ASSIGN_RECOVERY).malformed);
}

static void request_apply(struct leat_machine *machine, uint64_t sequence)
{
    const uint8_t drain[] = {0x94, LEAT_COMMAND_VERSION, LEAT_COMMAND_NODE_DRAIN, 0xa1, 'x', 0xc3};
    struct leat_machine_result result;
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_REQUEST, 3);
    leat_msg_write_u64(&w, 7);
    leat_msg_write_u64(&w, sequence);
    leat_msg_write_bin(&w, drain, sizeof drain);
    command_end(command, &w);
    assert_int_equal(leat_machine_apply(machine, command->bytes, command->count, &result), LEAT_OK);
}

/* Goal: a voter that begins with a snapshot forgets the same outcomes as all others, the oldest first, also when the
 * ring of outcomes has gone round: else a repeated request would be done on some voters, and not on others. */
static void outcomes_are_forgotten_alike_after_a_snapshot(void **state)
{
    (void)state;
    uint64_t sequence = 0;
    while (sequence < LEAT_OUTCOMES_MAX + 3)
        request_apply(m, ++sequence);
    assert_int_equal(m->outcome_count, LEAT_OUTCOMES_MAX);
    machine_restore_copy(m, copy);
    machines_compare(m, copy);
    for (unsigned i = 0; i < 5; i++) {
        request_apply(m, ++sequence);
        request_apply(copy, sequence);
    }
    machines_compare(m, copy);
}

/* ---- snapshots ---- */

static struct leat_machine_stream *stream_make(uint32_t streamlets, uint32_t logs)
{
    const struct leat_stream_settings settings = {.streamlets = streamlets, .logs = logs};
    assert_int_equal(stream_entry(m, command, LEAT_COMMAND_STREAM_CREATE, 0, &settings), LEAT_OK);
    return leat_machine_name_find(m, "s", 1);
}

/* Goal: a snapshot has room for the largest numbers of all that it holds. */
static void snapshot_has_room_for_the_largest_numbers(void **state)
{
    (void)state;
    enum { STREAMLETS = 2000 };
    const struct leat_tail_record largest = {
        UINT64_MAX - 1, {UINT32_MAX, UINT32_MAX}, UINT64_MAX, true};
    struct leat_machine_stream *stream = stream_make(STREAMLETS, 1);
    for (uint32_t i = 0; i < STREAMLETS; i++) {
        stream->desc->streamlets[i].owner = UINT64_MAX;
        stream->desc->streamlets[i].epoch.v = UINT32_MAX;
        stream->logs[i] = (struct leat_machine_log){.epoch = {UINT32_MAX},
                                                    .record = {.opened = true,
                                                               .stamp_epoch = {UINT32_MAX},
                                                               .stamp_version = UINT32_MAX,
                                                               .tail = largest,
                                                               .heard = UINT64_MAX,
                                                               .began = largest},
                                                    .jumped_to = UINT64_MAX};
    }
    machine_restore_copy(m, copy);
    assert_int_equal(copy->streams[0].logs[STREAMLETS - 1].jumped_to, UINT64_MAX);
    assert_int_equal(copy->streams[0].logs[STREAMLETS - 1].record.began.next_offset, UINT64_MAX);
    leat_machine_fini(m);
    m->session_count = LEAT_SESSIONS_MAX;
    for (uint32_t i = 0; i < LEAT_SESSIONS_MAX; i++)
        m->sessions[i] = (struct leat_machine_session){UINT64_MAX - i, UINT64_MAX};
    machine_restore_copy(m, copy);
    assert_int_equal(copy->sessions[LEAT_SESSIONS_MAX - 1].sequence, UINT64_MAX);
}

/* Goal: a snapshot with a stream that no settings allow is refused: whoever wrote it is no voter of this version. */
static void snapshot_of_an_impossible_stream_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t streamlets, logs;
        leat_err rc;
    } rows[] = {
        {2, 256, LEAT_OK},      {1, LEAT_LOGS_MAX, LEAT_OK}, {1, LEAT_LOGS_MAX + 1, LEAT_E_CORRUPT},
        {1, 0, LEAT_E_CORRUPT}, {0, 1, LEAT_E_CORRUPT},      {0, 0, LEAT_E_CORRUPT}};
    struct leat_machine_stream *stream = stream_make(2, 256);
    struct leat_stream_desc *desc = stream->desc;
    const uint32_t log_count = stream->log_count;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *bytes;
        size_t count;
        desc->settings.streamlets = desc->streamlet_count = rows[i].streamlets;
        desc->settings.logs = rows[i].logs;
        stream->log_count = rows[i].streamlets * rows[i].logs;
        assert_int_equal(leat_machine_snapshot(m, &bytes, &count), LEAT_OK);
        assert_int_equal(leat_machine_restore(copy, bytes, count), rows[i].rc);
        assert_int_equal(copy->stream_count, rows[i].rc == LEAT_OK);
        leat_mem_free(bytes);
    }
    desc->settings.streamlets = desc->streamlet_count = 2;
    desc->settings.logs = 256;
    stream->log_count = log_count;
}

/* Goal: each field of an open log comes back by itself: who was heard, and where its offsets jumped to. */
static void each_field_of_an_open_log_comes_back(void **state)
{
    (void)state;
    struct leat_machine_stream *stream = stream_make(1, 2);
    for (uint32_t q = 0; q < 2; q++)
        stream->logs[q] = (struct leat_machine_log){
            .epoch = {4},
            .record = {.opened = true, .stamp_epoch = {3}, .stamp_version = 1, .heard = q ? 0 : 9},
            .jumped_to = q ? 77 : 0};
    machine_restore_copy(m, copy);
    assert_int_equal(copy->streams[0].logs[0].record.heard, 9);
    assert_int_equal(copy->streams[0].logs[1].jumped_to, 77);
    machines_compare(m, copy);
}

/* Goal: a snapshot has room for rows that wait for the rest of an adoption, and is refused with more streamlets than a
 * stream may have. */
static void staged_rows_come_back_and_streamlets_too_many_do_not(void **state)
{
    (void)state;
    enum { STAGED = 100 * 1000 };
    m->staged = leat_mem_calloc(LEAT_MEM_ROWS, STAGED, 1);
    assert_non_null(m->staged);
    memset(m->staged, 7, STAGED);
    m->staged_bytes = m->staged_capacity = STAGED;
    m->staged_attempt = 5;
    machine_restore_copy(m, copy);
    assert_int_equal(copy->staged_bytes, STAGED);
    assert_memory_equal(copy->staged, m->staged, STAGED);
    leat_machine_fini(m);
    for (uint32_t more = 0; more < 2; more++) {
        const struct leat_stream_settings settings = {.streamlets = LEAT_STREAMLETS_MAX + more,
                                                      .logs = 1};
        struct leat_machine_log *logs;
        uint8_t *bytes;
        size_t count;
        struct leat_stream_desc *desc = leat_machine_desc_create(1, "s", 1, &settings);
        assert_non_null(desc);
        assert_int_equal(leat_machine_stream_add(m, desc, &logs), LEAT_OK);
        for (uint32_t i = 0; i < settings.streamlets; i++)
            m->streams[0].owners[i] = LEAT_OWNER_NONE;
        assert_int_equal(leat_machine_snapshot(m, &bytes, &count), LEAT_OK);
        assert_int_equal(leat_machine_restore(copy, bytes, count), more ? LEAT_E_CORRUPT : LEAT_OK);
        leat_mem_free(bytes);
        leat_machine_fini(m);
    }
}

#define TABLES_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TABLES_TEST(each_byte_of_a_name_counts),
        TABLES_TEST(short_name_is_no_internal_stream),
        TABLES_TEST(description_is_freed_with_its_last_holder),
        TABLES_TEST(numbers_behind_the_last_are_refused),
        TABLES_TEST(outcomes_are_forgotten_alike_after_a_snapshot),
        TABLES_TEST(snapshot_has_room_for_the_largest_numbers),
        TABLES_TEST(snapshot_of_an_impossible_stream_is_refused),
        TABLES_TEST(each_field_of_an_open_log_comes_back),
        TABLES_TEST(staged_rows_come_back_and_streamlets_too_many_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
