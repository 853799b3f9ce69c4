/* SPDX-License-Identifier: Apache-2.0 */
/* Names and settings of streams: what is refused, and what is completed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/decide.h"
#include "coordinator/recovery/recovery.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_offences_are_named),
        cmocka_unit_test(settings_are_completed_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
