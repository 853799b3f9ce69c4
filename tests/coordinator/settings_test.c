/* SPDX-License-Identifier: Apache-2.0 */
/* Names and settings of streams: what is refused, and what is completed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/decide.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/machine_rig.h"

/* ---- names and settings ---- */

static void name_offences_are_named(void **state)
{
    (void)state;
    struct leat_error error;
    char name[300];
    memset(name, 'a', sizeof name);
    assert_int_equal(leat_stream_name_check(name, 249, &error), LEAT_OK);
    assert_int_equal(leat_stream_name_check(name, 250, &error), LEAT_E_BAD_NAME);
    assert_int_equal(leat_stream_name_check("", 0, &error), LEAT_E_BAD_NAME);
    assert_int_equal(leat_stream_name_check(".", 1, &error), LEAT_E_BAD_NAME);
    assert_int_equal(leat_stream_name_check("..", 2, &error), LEAT_E_BAD_NAME);
    assert_int_equal(leat_stream_name_check("a/b", 3, &error), LEAT_E_BAD_NAME);
    assert_non_null(strstr(error.text, "'/'"));
    assert_int_equal(leat_stream_name_check("a\0b", 3, &error), LEAT_E_BAD_NAME);
    assert_non_null(strstr(error.text, "0x00"));
    assert_int_equal(leat_stream_name_check("A.b_c-9", 7, &error), LEAT_OK);
}

static void settings_are_completed_and_bounded(void **state)
{
    (void)state;
    struct leat_error error;
    struct leat_stream_settings settings = {0};
    assert_int_equal(leat_stream_settings_complete(&settings, 4, &error), LEAT_OK);
    assert_int_equal(settings.streamlets, 1);
    assert_int_equal(settings.logs, 4);
    assert_int_equal(settings.copies, 1);
    assert_int_equal(settings.min_copies, 1);
    assert_int_equal(settings.durability, LEAT_DURABILITY_DISK);
    assert_int_equal(settings.segment_bytes_max, LEAT_SEGMENT_BYTES_MAX);
    struct leat_stream_settings bad = {.copies = LEAT_COPIES_MAX + 1};
    assert_int_equal(leat_stream_settings_complete(&bad, 4, &error), LEAT_E_INVALID);
    assert_non_null(strstr(error.text, "copies"));
    bad = (struct leat_stream_settings){.segment_bytes_max = 100000};
    assert_int_equal(leat_stream_settings_complete(&bad, 4, &error), LEAT_E_INVALID);
    bad = (struct leat_stream_settings){.streamlets = LEAT_STREAMLETS_MAX, .logs = 256};
    assert_int_equal(leat_stream_settings_complete(&bad, 4, &error), LEAT_E_INVALID);
    bad = (struct leat_stream_settings){.logs = 257};
    assert_int_equal(leat_stream_settings_complete(&bad, 4, &error), LEAT_E_INVALID);
}

/* Goal: a name has exactly the characters that Kafka's clients allow: the neighbours of each range are refused, and the
 * refusal says where. */
static void name_characters_are_bounded(void **state)
{
    (void)state;
    struct leat_error error;
    for (unsigned c = 0; c < 256; c++) {
        const char name[3] = {'x', 'y', (char)c};
        const bool ok = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
        char shown[64];
        snprintf(shown, sizeof shown,
                 c >= 0x20 && c < 0x7f ? "byte 3 of the stream's name is '%c'"
                                       : "byte 3 of the stream's name is 0x%02x",
                 c);
        if (c < 0x20 || c >= 0x7f) assert_false(ok);
        assert_int_equal(leat_stream_name_check(name, 3, &error), ok ? LEAT_OK : LEAT_E_BAD_NAME);
        if (!ok) assert_non_null(strstr(error.text, shown));
    }
    static const char *const fine[] = {"a", ".a", "a.", "...", "-", "_"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_int_equal(leat_stream_name_check(fine[i], strlen(fine[i]), &error), LEAT_OK);
}

static leat_err completed(struct leat_stream_settings *settings)
{
    struct leat_error error;
    return leat_stream_settings_complete(settings, 0, &error);
}

/* Goal: each bound is allowed itself, and one more is refused: voters of one cluster must agree about each entry. */
static void settings_are_allowed_up_to_their_bounds(void **state)
{
    (void)state;
    struct {
        struct leat_stream_settings settings;
        leat_err rc;
    } rows[] = {
        {{.streamlets = LEAT_STREAMLETS_MAX, .logs = 1}, LEAT_OK},
        {{.streamlets = LEAT_STREAMLETS_MAX + 1, .logs = 1}, LEAT_E_INVALID},
        {{.logs = LEAT_LOGS_MAX}, LEAT_OK},
        {{.logs = LEAT_LOGS_MAX + 1}, LEAT_E_INVALID},
        {{.streamlets = LEAT_STREAM_LOGS_MAX / LEAT_LOGS_MAX, .logs = LEAT_LOGS_MAX}, LEAT_OK},
        {{.streamlets = LEAT_STREAM_LOGS_MAX / LEAT_LOGS_MAX + 1, .logs = LEAT_LOGS_MAX},
         LEAT_E_INVALID},
        {{.copies = LEAT_COPIES_MAX}, LEAT_OK},
        {{.copies = LEAT_COPIES_MAX + 1}, LEAT_E_INVALID},
        {{.copies = 2, .min_copies = 2}, LEAT_OK},
        {{.copies = 2, .min_copies = 3}, LEAT_E_INVALID},
        {{.durability = LEAT_DURABILITY_MEMORY}, LEAT_OK},
        {{.durability = LEAT_DURABILITY_DISK}, LEAT_OK},
        {{.durability = LEAT_DURABILITY_MEMORY + LEAT_DURABILITY_DISK}, LEAT_E_INVALID},
        {{.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN}, LEAT_OK},
        {{.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN / 2}, LEAT_E_INVALID},
        {{.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN * 3}, LEAT_E_INVALID},
        {{.segment_bytes_max = LEAT_SEGMENT_BYTES_MAX}, LEAT_OK},
        {{.segment_bytes_max = LEAT_SEGMENT_BYTES_MAX * 2U}, LEAT_E_INVALID},
        {{.batch_bytes_max = LEAT_BATCH_BYTES_LIMIT_MIN}, LEAT_OK},
        {{.batch_bytes_max = LEAT_BATCH_BYTES_LIMIT_MIN - 1}, LEAT_E_INVALID},
        {{.batch_bytes_max = LEAT_BATCH_BYTES_MAX}, LEAT_OK},
        {{.batch_bytes_max = LEAT_BATCH_BYTES_MAX + 1}, LEAT_E_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct leat_stream_settings asked = rows[i].settings;
        assert_int_equal(completed(&rows[i].settings), rows[i].rc);
        if (rows[i].rc != LEAT_OK) continue;
        const struct leat_stream_settings *got = &rows[i].settings;
        assert_int_equal(got->streamlets, asked.streamlets ? asked.streamlets : 1);
        assert_int_equal(got->logs, asked.logs ? asked.logs : 1); /* a node with no core said */
        assert_int_equal(got->copies, asked.copies ? asked.copies : 1);
        assert_int_equal(got->min_copies, got->copies / 2 + 1);
        assert_int_equal(got->durability,
                         asked.durability ? asked.durability : LEAT_DURABILITY_DISK);
        assert_int_equal(got->batch_bytes_max,
                         asked.batch_bytes_max ? asked.batch_bytes_max : LEAT_BATCH_BYTES_MAX);
    }
    struct leat_stream_settings kept = {.retention_ms = 1, .retention_bytes = 1};
    assert_int_equal(completed(&kept), LEAT_OK);
    assert_true(kept.retention_ms == 1 && kept.retention_bytes == 1);
    struct leat_stream_settings none = {.retention_ms = -1, .retention_bytes = -1};
    assert_int_equal(completed(&none), LEAT_OK);
    assert_true(none.retention_ms == 0 && none.retention_bytes == 0);
}

static leat_err create(struct leat_machine *m, struct command *command, unsigned number)
{
    const struct leat_stream_settings settings = {.streamlets = 1, .logs = 1};
    char name[16];
    snprintf(name, sizeof name, "s%u", number);
    struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_STREAM_CREATE, 2);
    leat_msg_write_string(&w, name, strlen(name));
    leat_msg_settings_write(&w, &settings);
    return entry_apply(m, command, &w);
}

/* Goal: the number of streams is limited, and the ids of streams end before they would be used again. */
static void streams_and_their_ids_are_limited(void **state)
{
    (void)state;
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    for (unsigned i = 0; i <= LEAT_STREAMS_MAX; i++)
        if (create(m, command, i) != (i < LEAT_STREAMS_MAX ? LEAT_OK : LEAT_E_TOO_MANY))
            fail_msg("stream %u", i);
    assert_int_equal(m->stream_count, LEAT_STREAMS_MAX);
    leat_machine_fini(m);
    m->next_stream_id = UINT32_MAX - 1;
    assert_int_equal(create(m, command, 1), LEAT_OK);
    assert_int_equal(leat_machine_name_find(m, "s1", 2)->id, UINT32_MAX - 1);
    assert_int_equal(create(m, command, 2), LEAT_E_TOO_MANY);
    leat_machine_fini(m);
    free(m);
    free(command);
}

/* Goal: each stream is found by its name, and no other, whichever were deleted before: names that share places in the
 * table move up. */
static void streams_are_found_whatever_was_deleted(void **state)
{
    (void)state;
    enum { STREAMS = 120 };
    struct leat_machine *m = calloc(1, sizeof *m);
    struct command *command = calloc(1, sizeof *command);
    assert_true(m && command);
    leat_machine_init(m, 1);
    for (unsigned order = 1; order < 8; order += 2) { /* in another order each time */
        for (unsigned i = 0; i < STREAMS; i++)
            assert_int_equal(create(m, command, i), LEAT_OK);
        bool gone[STREAMS] = {false};
        for (unsigned d = 0; d < STREAMS; d++) {
            char name[16];
            unsigned victim = d * order % STREAMS;
            while (gone[victim])
                victim = (victim + 1) % STREAMS;
            gone[victim] = true;
            snprintf(name, sizeof name, "s%u", victim);
            struct leat_msg_writer w = command_begin(command, LEAT_COMMAND_STREAM_DELETE, 1);
            leat_msg_write_string(&w, name, strlen(name));
            assert_int_equal(entry_apply(m, command, &w), LEAT_OK);
            for (unsigned i = 0; i < STREAMS; i++) {
                snprintf(name, sizeof name, "s%u", i);
                const struct leat_machine_stream *stream =
                    leat_machine_name_find(m, name, strlen(name));
                assert_int_equal(stream == NULL, gone[i]);
                if (stream) assert_string_equal(stream->desc->name, name);
            }
        }
        assert_int_equal(m->stream_count, 0);
    }
    leat_machine_fini(m);
    free(m);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_offences_are_named),
        cmocka_unit_test(settings_are_completed_and_bounded),
        cmocka_unit_test(name_characters_are_bounded),
        cmocka_unit_test(settings_are_allowed_up_to_their_bounds),
        cmocka_unit_test(streams_and_their_ids_are_limited),
        cmocka_unit_test(streams_are_found_whatever_was_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
