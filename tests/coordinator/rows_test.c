/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of bodies between coordinators, and of those with which a connection begins: their bytes, what is refused,
 * and the page that shows them, whose path is the argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/membership/messages.h"
#include "coordinator/recovery/recovery.h"
#include "link/bodies.h"
#include "tests/rows_expect.h"
#include "tests/rows_page.h"

static const char *page_path;
static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "link/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/membership/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "coordinator/recovery/bodies.def"
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

static void rows_are_as_the_page_shows_them(void **state)
{
    (void)state;
    rows_page_expect(page_path, rows, ROWS);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    page_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_of_before),
        cmocka_unit_test(rows_of_every_body_read_back_and_end),
        cmocka_unit_test(rows_are_as_the_page_shows_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
