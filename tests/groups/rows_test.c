/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the bodies in home logs: the bytes of the bodies, and the bodies that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "groups/stored.h"
#include "tests/rows_expect.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "groups/bodies.def"
#include "tests/rows_list.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void rows_have_the_bytes_of_before(void **state)
{
    (void)state;
    static const struct rows_bytes bytes[] = {
#include "rows_bytes.inc"
    };
    rows_bytes_expect(rows, ROWS, bytes, sizeof bytes / sizeof bytes[0]);
}

static void rows_of_every_body_read_back_and_end(void **state)
{
    (void)state;
    rows_read_back_expect(rows, ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_of_before),
        cmocka_unit_test(rows_of_every_body_read_back_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
