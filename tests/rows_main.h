/* SPDX-License-Identifier: Apache-2.0 */
/* A whole test of tables of bodies, for a file that has `rows` and `rows_bytes`, after rows_page.h. Its argument is the
 * path of the page that shows them. */
#ifndef LEAT_TESTS_ROWS_MAIN_H
#define LEAT_TESTS_ROWS_MAIN_H

static const char *page_path;
enum { ROWS = sizeof rows / sizeof rows[0] };

static void rows_have_the_bytes_of_before(void **state)
{
    (void)state;
    rows_bytes_expect(rows, ROWS, rows_bytes, sizeof rows_bytes / sizeof rows_bytes[0]);
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

#endif
