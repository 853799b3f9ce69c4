/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of bodies between clients and servers: their bytes, what is refused, and that the functions of the fast
 * path do the same as their tables. */
#include "wire_fixture.h"

#include "tests/rows_expect.h"
#include "wire/message_cluster.h"

#include "tests/rows_straight.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_data.def"
#include "tests/rows_list.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Goal: a table whose fields stand in another order, or are of another type, is seen. */
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

/* ---- the fast path ---- */

static void fast_rows_are_all_compared(void **state)
{
    (void)state;
    static const leat_msg_row_fn fast[] = {
#define LEAT_ROWS "wire/bodies_data.def"
#include "tests/rows_list.h"
    };
    size_t at = 0;
    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
        if (fast[i]()->fields != NULL) assert_ptr_equal(fast[i], rows_straight[at++].row);
    assert_int_equal(at, ROWS_STRAIGHT);
}

static void fast_rows_write_what_their_tables_do(void **state)
{
    (void)state;
    static uint8_t bytes[1024];
    for (size_t i = 0; i < ROWS_STRAIGHT; i++)
        for (uint64_t seed = 1; seed <= ROWS_SEEDS; seed++) {
            _Alignas(16) char value[ROWS_VALUE_BYTES_MAX];
            uint64_t random = seed;
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, bytes, sizeof bytes);
            rows_fill(rows_straight[i].row(), value, &random);
            assert_true(rows_straight_writes(&rows_straight[i], value, &writer));
            assert_false(writer.overflow);
        }
}

/* Of whole bodies, with a field more, cut, and with changed bytes. */
static void fast_rows_read_what_their_tables_do(void **state)
{
    (void)state;
    static uint8_t bytes[1024];
    uint64_t random = 1;
    for (size_t i = 0; i < ROWS_STRAIGHT; i++)
        for (uint32_t turn = 0; turn < 20 * ROWS_SEEDS; turn++) {
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, bytes, sizeof bytes);
            rows_make(&writer, rows_straight[i].row(), &random);
            uint32_t count = writer.used;
            if (turn % 4 == 1) bytes[0] += (uint8_t)(1 + turn / 4 % 3);
            if (turn % 4 == 1) memset(bytes + count, (int)(rows_random(&random) & 0xff), 3);
            if (turn % 4 == 1) count += 3;
            if (turn % 4 == 2) count = (uint32_t)(rows_random(&random) % count);
            for (uint32_t c = 0; turn % 4 == 3 && c < 1 + turn / 4 % 2; c++)
                bytes[rows_random(&random) % count] = (uint8_t)rows_random(&random);
            if (!rows_straight_reads(&rows_straight[i], bytes, count))
                fail_msg("%s, turn %u", rows_straight[i].row()->name, turn);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_of_before),
        cmocka_unit_test(rows_of_every_body_read_back_and_end),
        cmocka_unit_test(fast_rows_are_all_compared),
        cmocka_unit_test(fast_rows_write_what_their_tables_do),
        cmocka_unit_test(fast_rows_read_what_their_tables_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
