/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of bodies between clients and servers: those of the tables, and those that are written by hand. The
 * first byte picks one. What decodes is encoded again; that must decode, and encode to the same bytes. */
#include "fuzz.h"

#include "rows_fuzz.h"
#include "wire/message_cluster.h"

enum { OUT_BYTES = 256 * 1024 };

/* Those by hand first: append, fetch, fetched, locate, stream. */
static const leat_msg_row_fn rows[] = {
    leat_msg_append_row,       leat_msg_fetch_row,  leat_msg_fetched_row,
    leat_msg_locate_place_row, leat_msg_stream_row,
#define LEAT_ROWS "wire/bodies.def"
#include "tests/rows_list.h"
#define LEAT_ROWS "wire/bodies_cluster.def"
#include "tests/rows_list.h"
};
enum { ROWS = sizeof rows / sizeof rows[0], BY_HAND = 5 };

typedef bool (*recode_fn)(struct leat_msg_reader *reader, struct leat_msg_writer *writer);

static bool recode_append(struct leat_msg_reader *reader, struct leat_msg_writer *writer)
{
    struct leat_msg_append append;
    if (leat_msg_append_decode(reader->at, (size_t)(reader->end - reader->at), &append) != LEAT_OK)
        return false;
    reader->at = reader->end;
    leat_msg_append_write(writer, &append);
    return true;
}

static bool recode_fetch(struct leat_msg_reader *reader, struct leat_msg_writer *writer)
{
    struct leat_msg_fetch fetch;
    uint32_t left = leat_msg_fetch_read(reader, &fetch);
    leat_msg_fetch_write(writer, &fetch);
    for (uint32_t i = 0; i < fetch.log_count && !reader->failed; i++) {
        struct leat_msg_fetch_log log;
        leat_msg_fetch_log_read(reader, &log);
        leat_msg_fetch_log_write(writer, &log);
    }
    leat_msg_skip_n(reader, left);
    return true;
}

#define PIECE(name)                                                                                \
    static bool recode_##name(struct leat_msg_reader *reader, struct leat_msg_writer *writer)      \
    {                                                                                              \
        struct leat_msg_##name value;                                                              \
        leat_msg_##name##_read(reader, &value);                                                    \
        if (!reader->failed) leat_msg_##name##_write(writer, &value);                              \
        return true;                                                                               \
    }
PIECE(fetched)
PIECE(locate)
#undef PIECE

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

static bool recode(unsigned number, const uint8_t *in, size_t count, struct leat_msg_writer *writer)
{
    static const recode_fn by_hand[BY_HAND] = {recode_append, recode_fetch, recode_fetched,
                                               recode_locate, recode_stream};
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, in, count);
    if (number == UINT8_MAX) return recode_skip(&reader, writer);
    number %= ROWS;
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
