/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the fast path (wire/rows_straight.h) beside the tables that they come from. */
#ifndef LEAT_TESTS_ROWS_STRAIGHT_H
#define LEAT_TESTS_ROWS_STRAIGHT_H

#include "tests/rows.h"
#include "wire/message.h"

struct rows_straight {
    leat_msg_row_fn row;
    void (*write)(struct leat_msg_writer *writer, const void *value);
    uint32_t (*read)(struct leat_msg_reader *reader, void *out);
    leat_err (*decode)(const void *bytes, size_t count, void *out);
};

#define STRAIGHT(name)                                                                             \
    static void name##_put(struct leat_msg_writer *writer, const void *value)                      \
    {                                                                                              \
        name##_write(writer, value);                                                               \
    }                                                                                              \
    static uint32_t name##_get(struct leat_msg_reader *reader, void *out)                          \
    {                                                                                              \
        return name##_read(reader, out);                                                           \
    }                                                                                              \
    static leat_err name##_take(const void *bytes, size_t count, void *out)                        \
    {                                                                                              \
        return name##_decode(bytes, count, out);                                                   \
    }
STRAIGHT(leat_msg_append)
STRAIGHT(leat_msg_appended)
STRAIGHT(leat_msg_position)
STRAIGHT(leat_msg_fetch_log)
STRAIGHT(leat_msg_fetch)
STRAIGHT(leat_msg_fetched)
#undef STRAIGHT

#define STRAIGHT(name) {name##_row, name##_put, name##_get, name##_take},
static const struct rows_straight rows_straight[] = {
    STRAIGHT(leat_msg_append) STRAIGHT(leat_msg_appended) STRAIGHT(leat_msg_position)
        STRAIGHT(leat_msg_fetch_log) STRAIGHT(leat_msg_fetch) STRAIGHT(leat_msg_fetched)};
#undef STRAIGHT
enum { ROWS_STRAIGHT = sizeof rows_straight / sizeof rows_straight[0] };

/** Both write a value to the same bytes, which are put into `writer`. */
static inline bool rows_straight_writes(const struct rows_straight *straight, const void *value,
                                        struct leat_msg_writer *writer)
{
    static uint8_t table[ROWS_VALUE_BYTES_MAX];
    struct leat_msg_writer by_table;
    leat_msg_writer_init(&by_table, table, sizeof table);
    leat_msg_row_write(&by_table, straight->row(), value);
    uint32_t from = writer->used;
    straight->write(writer, value);
    return by_table.used == writer->used - from &&
           memcmp(table, writer->bytes + from, by_table.used) == 0;
}

/** Both read the same of any bytes: they fail, or leave the reader there, and what they read is written alike. */
static inline bool rows_straight_reads(const struct rows_straight *straight, const void *bytes,
                                       size_t count)
{
    static uint8_t one[ROWS_VALUE_BYTES_MAX], two[ROWS_VALUE_BYTES_MAX];
    _Alignas(16) char by_table[256], by_hand[256], whole[256];
    const struct leat_msg_row *row = straight->row();
    LEAT_ASSERT(row->bytes <= sizeof by_table);
    struct leat_msg_reader table, hand;
    leat_msg_reader_init(&table, bytes, count);
    leat_msg_reader_init(&hand, bytes, count);
    uint32_t table_left = leat_msg_row_read(&table, row, by_table);
    uint32_t hand_left = straight->read(&hand, by_hand);
    if (table.failed != hand.failed) return false;
    bool decoded = straight->decode(bytes, count, whole) == LEAT_OK;
    if (decoded != leat_msg_row_decode(bytes, count, row, by_table)) return false;
    if (table.failed) return true;
    struct leat_msg_writer first, second;
    leat_msg_writer_init(&first, one, sizeof one);
    leat_msg_writer_init(&second, two, sizeof two);
    leat_msg_row_write(&first, row, by_table);
    leat_msg_row_write(&second, row, by_hand);
    return table_left == hand_left && table.at == hand.at && first.used == second.used &&
           first.overflow == second.overflow && memcmp(one, two, first.used) == 0;
}

#endif
