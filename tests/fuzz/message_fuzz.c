/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of bodies between clients and servers: the decoders of the tables, and the decoders written by hand.
 * The first byte picks a decoder. A body that decodes is encoded again; the result must decode, and encode to the same
 * bytes. The functions of the fast path read and write the same bytes as their tables. */
#include "fuzz.h"

#include "rows_fuzz.h"
#include "tests/rows_straight.h"
#include "wire/message_cluster.h"

enum { OUT_BYTES = 256 * 1024 };

/* The decoders written by hand first: locate, stream. */
static const leat_msg_row_fn rows[] = {
    leat_msg_locate_place_row,
    leat_msg_stream_row,
#define LEAT_ROWS "wire/bodies_data.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "tests/rows_list.h"
};
enum { ROWS = sizeof rows / sizeof rows[0], BY_HAND = 2 };

typedef bool (*recode_fn)(struct leat_msg_reader *reader, struct leat_msg_writer *writer);

static bool recode_locate(struct leat_msg_reader *reader, struct leat_msg_writer *writer)
{
    struct leat_msg_locate locate;
    leat_msg_locate_read(reader, &locate);
    if (!reader->failed) leat_msg_locate_write(writer, &locate);
    return true;
}

static bool recode_stream(struct leat_msg_reader *reader, struct leat_msg_writer *writer)
{
    struct leat_msg_stream stream;
    leat_msg_stream_read(reader, &stream);
    leat_msg_stream_write(writer, &stream);
    for (uint32_t i = 0; i < stream.log_count && !reader->failed; i++)
        if (!rows_copy(reader, leat_msg_log_row(), writer, 0)) return false;
    return true;
}

/* The bare cursor: skipping takes exactly what is there, or fails. */
static bool recode_skip(struct leat_msg_reader *reader, struct leat_msg_writer *writer)
{
    (void)writer;
    struct leat_msg_reader map = *reader;
    leat_msg_skip(reader);
    LEAT_ASSERT(reader->at <= reader->end);
    leat_msg_skip_n(&map, leat_msg_read_map(&map));
    return false;
}

static void fast_check(leat_msg_row_fn row, const uint8_t *in, size_t count)
{
    static uint8_t out[1024];
    _Alignas(16) char value[256];
    struct leat_msg_writer writer;
    for (size_t i = 0; i < ROWS_STRAIGHT; i++) {
        if (rows_straight[i].row != row) continue;
        LEAT_ASSERT(rows_straight_reads(&rows_straight[i], in, count));
        if (rows_straight[i].decode(in, count, value) != LEAT_OK) return;
        leat_msg_writer_init(&writer, out, sizeof out);
        LEAT_ASSERT(rows_straight_writes(&rows_straight[i], value, &writer));
    }
}

static bool recode(unsigned number, const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    static const recode_fn by_hand[BY_HAND] = {recode_locate, recode_stream};
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    if (number == UINT8_MAX) return recode_skip(&reader, writer);
    number %= ROWS;
    fast_check(rows[number], in, count);
    bool right = number < BY_HAND ? by_hand[number](&reader, writer)
                                  : rows_copy(&reader, rows[number](), writer, 0);
    return right && leat_msg_read_done(&reader);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return rows_mutate(rows, ROWS, 0, data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    static uint8_t first[OUT_BYTES], second[OUT_BYTES];
    struct leat_msg_writer one, two;
    leat_msg_writer_init(&one, first, sizeof first);
    if (!recode(data[0], data + 1, size - 1, &one) || one.overflow) return 0;
    leat_msg_writer_init(&two, second, sizeof second);
    LEAT_ASSERT(recode(data[0], first, one.used, &two));
    LEAT_ASSERT(one.used == two.used && memcmp(first, second, one.used) == 0);
    return 0;
}
