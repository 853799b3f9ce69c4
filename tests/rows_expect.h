/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations that hold for every table of bodies (rows.h). After cmocka.h. */
#ifndef LEAT_TESTS_ROWS_EXPECT_H
#define LEAT_TESTS_ROWS_EXPECT_H

#include "base/crc32c.h"
#include "tests/rows.h"

enum { ROWS_SEEDS = 1000, ROWS_BODY_BYTES_MAX = 16 * 1024 };

/* The CRC-32C of what ROWS_SEEDS values of a row are written as, without the elements of its lists. */
struct rows_bytes {
    const char *name;
    uint32_t crc;
};

/** Rows keep the bytes that they had when each was added; those of wire/ and replication/ are what the codecs by
 * hand wrote that the tables replaced. A row that is new, or has a field more, is printed. */
static inline void rows_bytes_expect(const leat_msg_row_fn *rows, size_t count,
                                     const struct rows_bytes *bytes, size_t bytes_count)
{
    static uint8_t out[ROWS_BODY_BYTES_MAX];
    size_t at = 0, wrong = 0;
    for (size_t r = 0; r < count; r++) {
        const struct leat_msg_row *row = rows[r]();
        _Alignas(16) char value[ROWS_VALUE_BYTES_MAX];
        uint32_t crc = 0;
        if (row->fields == NULL) continue;
        for (uint64_t seed = 1; seed <= ROWS_SEEDS; seed++) {
            uint64_t random = seed;
            struct leat_msg_writer writer;
            leat_msg_writer_init(&writer, out, sizeof out);
            rows_fill(row, value, &random);
            leat_msg_row_write(&writer, row, value);
            for (uint32_t i = 0; i + 1 < row->count; i++)
                if (rows_goes_on(&row->fields[i]))
                    leat_msg_row_write_behind(&writer, row, value, row->fields[i].at);
            crc = leat_crc32c(crc, out, writer.used);
        }
        if (at < bytes_count && strcmp(bytes[at].name, row->name) == 0 && bytes[at].crc == crc) {
            at++;
            continue;
        }
        wrong++;
        if (at < bytes_count && strcmp(bytes[at].name, row->name) == 0) at++;
        print_error("{\"%s\", 0x%08x},\n", row->name, crc);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(at, bytes_count);
}

static inline bool rows_is(const struct leat_msg_row *row, const uint8_t *bytes, size_t count,
                           struct leat_msg_writer *writer)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, bytes, count);
    writer->used = 0;
    return rows_copy(&reader, row, writer, 0) && leat_msg_read_done(&reader);
}

/** Each row is read as it was written, and with one more field unless the row is exact; a row that is cut anywhere, or
 * has a byte after it, is refused. */
static inline void rows_read_back_expect(const leat_msg_row_fn *rows, size_t count)
{
    static uint8_t in[ROWS_BODY_BYTES_MAX], out[ROWS_BODY_BYTES_MAX];
    struct leat_msg_writer writer, copy;
    leat_msg_writer_init(&copy, out, sizeof out);
    for (size_t r = 0; r < count; r++) {
        const struct leat_msg_row *row = rows[r]();
        const struct leat_msg_field *last = row->fields ? &row->fields[row->count - 1] : NULL;
        for (uint64_t seed = 1; seed <= 50; seed++) {
            uint64_t random = seed;
            leat_msg_writer_init(&writer, in, sizeof in);
            rows_make(&writer, row, &random);
            if (!rows_is(row, in, writer.used, &copy)) fail_msg("%s is not read", row->name);
            assert_int_equal(copy.used, writer.used);
            assert_memory_equal(in, out, copy.used);
            in[writer.used] = 1;
            if (rows_is(row, in, writer.used + 1, &copy))
                fail_msg("%s is read with a byte behind it", row->name);
            for (uint32_t cut = 0; cut < writer.used; cut++)
                if (rows_is(row, in, cut, &copy)) fail_msg("%s is read cut", row->name);
            /* One field more, in an array whose header is one byte. */
            if (last == NULL || last->last || last->is == LEAT_MSG_IF_SET || row->count > 14 ||
                row->size == LEAT_MSG_FORMS)
                continue;
            in[0]++;
            if (rows_is(row, in, writer.used + 1, &copy) != (row->size == LEAT_MSG_GROWS))
                fail_msg("%s with a field more is %s", row->name,
                         row->size == LEAT_MSG_GROWS ? "not read" : "read");
        }
    }
}

#endif
