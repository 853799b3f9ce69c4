/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of bodies between clients and servers: their bytes, what is refused, and that the fast path, which is
 * written by hand, does the same. */
#include "wire_fixture.h"

#include "tests/rows_expect.h"
#include "wire/message_cluster.h"

static const leat_msg_row_fn rows[] = {
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
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

static uint8_t by_hand[1024], by_table[1024];

static void bytes_equal(const struct leat_msg_writer *hand, const struct leat_msg_row *row,
                        const void *value)
{
    struct leat_msg_writer table;
    leat_msg_writer_init(&table, by_table, sizeof by_table);
    leat_msg_row_write(&table, row, value);
    assert_int_equal(hand->used, table.used);
    assert_memory_equal(by_hand, by_table, table.used);
}

static void table_read(const struct leat_msg_row *row, void *out, uint32_t bytes)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, by_hand, bytes);
    (void)leat_msg_row_read(&reader, row, out);
    assert_true(leat_msg_read_done(&reader));
}

static void fast_append_is_as_its_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROWS_SEEDS; seed++) {
        uint64_t random = seed;
        struct leat_msg_append append, append_read;
        struct leat_msg_appended answer, answer_read;
        struct leat_msg_writer writer;
        struct leat_msg_reader reader;
        rows_fill(leat_msg_append_row(), (char *)&append, &random);
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_append_write(&writer, &append);
        bytes_equal(&writer, leat_msg_append_row(), &append);
        assert_int_equal(leat_msg_append_decode(by_table, writer.used, &append_read), LEAT_OK);
        assert_memory_equal(&append, &append_read, sizeof append);
        assert_int_equal(leat_msg_append_decode(by_table, writer.used + 1, &append_read),
                         LEAT_E_INVALID);
        rows_fill(leat_msg_appended_row(), (char *)&answer, &random);
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_appended_write(&writer, answer.code, answer.first_offset);
        bytes_equal(&writer, leat_msg_appended_row(), &answer);
        leat_msg_reader_init(&reader, by_table, writer.used);
        memset(&answer_read, 0, sizeof answer_read);
        leat_msg_appended_read(&reader, &answer_read);
        assert_true(leat_msg_read_done(&reader));
        assert_memory_equal(&answer, &answer_read, sizeof answer);
    }
}

/* Member by member: the bytes between them are nobody's. */
static void same_log(const struct leat_msg_fetch_log *table, const struct leat_msg_fetch_log *hand)
{
    assert_memory_equal(&table->log, &hand->log, sizeof table->log);
    assert_true(table->epoch == hand->epoch);
    if (!table->by_position) {
        assert_true(table->offset == hand->offset);
        return;
    }
    assert_true(table->position.group == hand->position.group &&
                table->position.segment == hand->position.segment &&
                table->position.position == hand->position.position);
}

static void fast_fetch_is_as_its_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROWS_SEEDS; seed++) {
        uint64_t random = seed;
        struct leat_msg_fetch fetch, fetch_read;
        struct leat_msg_fetch_log log, log_read, table;
        struct leat_msg_writer writer;
        struct leat_msg_reader reader;
        rows_fill(leat_msg_fetch_row(), (char *)&fetch, &random);
        fetch.log_count = 0;
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_fetch_write(&writer, &fetch);
        bytes_equal(&writer, leat_msg_fetch_row(), &fetch);
        leat_msg_reader_init(&reader, by_table, writer.used);
        assert_int_equal(leat_msg_fetch_read(&reader, &fetch_read), 0);
        assert_memory_equal(&fetch, &fetch_read, sizeof fetch);
        const struct leat_msg_row *row =
            seed % 2 ? leat_msg_fetch_log_row() : leat_msg_fetch_place_row();
        rows_fill(row, (char *)&log, &random);
        log.by_position = seed % 2 == 0;
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_fetch_log_write(&writer, &log);
        bytes_equal(&writer, row, &log);
        leat_msg_reader_init(&reader, by_table, writer.used);
        leat_msg_fetch_log_read(&reader, &log_read);
        assert_true(leat_msg_read_done(&reader));
        assert_int_equal(log_read.by_position, log.by_position);
        table_read(row, &table, writer.used);
        table.by_position = log.by_position;
        same_log(&table, &log_read);
    }
}

/* Of a log that was asked for by its place. By an offset `next` is a 0, and is not there unless something follows. */
static void fast_fetched_is_as_its_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROWS_SEEDS; seed++) {
        uint64_t random = seed;
        struct leat_msg_fetched fetched, hand, table;
        struct leat_msg_writer writer, table_writer;
        struct leat_msg_reader reader;
        rows_fill(leat_msg_fetched_row(), (char *)&fetched, &random);
        fetched.by_position = true;
        if (fetched.resume == 0 && fetched.code == LEAT_E_DAMAGED) fetched.code = LEAT_OK;
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_fetched_write(&writer, &fetched);
        bytes_equal(&writer, leat_msg_fetched_row(), &fetched);
        leat_msg_reader_init(&reader, by_table, writer.used);
        leat_msg_fetched_read(&reader, &hand);
        assert_true(leat_msg_read_done(&reader));
        table_read(leat_msg_fetched_row(), &table, writer.used);
        assert_int_equal(table.code, hand.code);
        assert_true(table.first_offset == hand.first_offset &&
                    table.acked_offset == hand.acked_offset && table.bytes == hand.bytes &&
                    table.next.group == hand.next.group &&
                    table.next.segment == hand.next.segment &&
                    table.next.position == hand.next.position && table.resume == hand.resume);
        assert_int_equal(table.text.bytes, hand.text.bytes);
        fetched.by_position = false;
        fetched.resume = 0;
        fetched.text.bytes = 0;
        if (fetched.code == LEAT_E_DAMAGED) fetched.code = LEAT_OK;
        leat_msg_writer_init(&writer, by_hand, sizeof by_hand);
        leat_msg_fetched_write(&writer, &fetched);
        leat_msg_writer_init(&table_writer, by_table, sizeof by_table);
        leat_msg_row_write(&table_writer, leat_msg_fetched_row(), &fetched);
        assert_int_equal(by_hand[0], 0x94);
        assert_memory_equal(by_hand + 1, by_table + 1, writer.used - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_of_before),
        cmocka_unit_test(rows_of_every_body_read_back_and_end),
        cmocka_unit_test(fast_append_is_as_its_table),
        cmocka_unit_test(fast_fetch_is_as_its_table),
        cmocka_unit_test(fast_fetched_is_as_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
