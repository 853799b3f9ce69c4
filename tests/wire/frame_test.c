/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of frames and messages. */
#include "wire_fixture.h"

#include "wire/frame.h"
#include "wire/message.h"

static uint32_t frame_make(uint8_t *out)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, 100);
    leat_msg_append_write(&writer, &(struct leat_msg_append){{1, 2, 3}, 4, 1});
    memcpy(out + LEAT_FRAME_HEADER_BYTES + writer.used, "payload", 7);
    leat_frame_encode(out, LEAT_KIND_APPEND, 1, 0, 99, writer.used, 7);
    return LEAT_FRAME_HEADER_BYTES + writer.used + 7;
}

static void frame_decodes_what_was_encoded(void **state)
{
    uint8_t bytes[160];
    uint32_t total = frame_make(bytes);
    struct leat_frame frame;
    size_t want;
    assert_int_equal(leat_frame_decode(bytes, sizeof bytes, &frame, &want), LEAT_OK);
    assert_int_equal(frame.kind, LEAT_KIND_APPEND);
    assert_int_equal(frame.request, 99);
    assert_int_equal(frame.frame_bytes, total);
    assert_int_equal(frame.payload_bytes, 7);
    assert_memory_equal(frame.payload, "payload", 7);
    struct leat_msg_append append;
    assert_int_equal(leat_msg_append_decode(frame.control, frame.control_bytes, &append), LEAT_OK);
    assert_int_equal(append.log.log, 3);
}

static void frame_cut_at_each_byte_asks_for_more(void **state)
{
    uint8_t bytes[160];
    uint32_t total = frame_make(bytes);
    struct leat_frame frame;
    size_t want;
    for (uint32_t cut = 0; cut < total; cut++) {
        assert_int_equal(leat_frame_decode(bytes, cut, &frame, &want), LEAT_E_AGAIN);
        assert_int_equal(want, cut < LEAT_FRAME_HEADER_BYTES ? LEAT_FRAME_HEADER_BYTES : total);
    }
}

static void frame_flipped_bit_is_detected_outside_payload(void **state)
{
    uint8_t bytes[160];
    uint32_t total = frame_make(bytes);
    struct leat_frame frame;
    size_t want;
    for (uint32_t bit = 0; bit < total * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        leat_err rc = leat_frame_decode(bytes, total, &frame, &want);
        assert_int_equal(rc == LEAT_OK, bit / 8 >= total - 7);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void frame_past_limits_is_refused(void **state)
{
    uint8_t bytes[LEAT_FRAME_HEADER_BYTES] = {0};
    struct leat_frame frame;
    size_t want;
    leat_put_le32(bytes, LEAT_FRAME_BYTES_MAX - 3);
    assert_int_equal(leat_frame_decode(bytes, 4, &frame, &want), LEAT_E_TOO_LARGE);
    assert_int_equal(leat_frame_decode(bytes, 24, &frame, &want), LEAT_E_TOO_LARGE);
    leat_put_le32(bytes, 19);
    assert_int_equal(leat_frame_decode(bytes, 4, &frame, &want), LEAT_E_INVALID);
    leat_put_le32(bytes, LEAT_FRAME_BYTES_MAX - 4);
    leat_put_le32(bytes + 12, LEAT_CONTROL_BYTES_MAX + 1);
    assert_int_equal(leat_frame_decode(bytes, 24, &frame, &want), LEAT_E_TOO_LARGE);
}

static void cursor_integers_of_every_width_read_back(void **state)
{
    uint8_t bytes[64];
    for (int shift = 0; shift < 64; shift++) {
        for (int add = -1; add <= 1; add++) {
            uint64_t value = (1ull << shift) + (uint64_t)(int64_t)add;
            struct leat_msg_writer writer;
            struct leat_msg_reader reader;
            leat_msg_writer_init(&writer, bytes, sizeof bytes);
            leat_msg_write_u64(&writer, value);
            leat_msg_write_i64(&writer, (int64_t)value);
            leat_msg_write_i64(&writer, (int64_t)(0 - value));
            leat_msg_reader_init(&reader, bytes, writer.used);
            assert_true(leat_msg_read_u64(&reader) == value);
            assert_true(leat_msg_read_i64(&reader) == (int64_t)value);
            assert_true(leat_msg_read_i64(&reader) == (int64_t)(0 - value));
            assert_true(leat_msg_read_done(&reader));
        }
    }
}

/* All strings are cleaned, at any depth, and nothing else. A body that ends in the middle of a string is left unchanged
 * from there on. */
static void cursor_texts_are_cleaned(void **state)
{
    (void)state;
    uint8_t bytes[256], longer[40];
    memset(longer, '\n', sizeof longer);
    for (int cut = 0; cut < 2; cut++) {
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_write_array(&writer, 5);
        leat_msg_write_u64(&writer, 0x1b1b1b1b);
        leat_msg_write_bin(&writer, "\33[m", 3);
        leat_msg_write_array(&writer, 1);
        leat_msg_write_string(&writer, "\33[m\xc2\x9b\xc3\xa4", 7);
        leat_msg_write_bool(&writer, true);
        leat_msg_write_string(&writer, (const char *)longer, sizeof longer);
        assert_false(writer.overflow);
        leat_msg_texts_clean(bytes, writer.used - (size_t)cut);
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, bytes, writer.used);
        assert_int_equal(leat_msg_read_array(&reader), 5);
        assert_true(leat_msg_read_u64(&reader) == 0x1b1b1b1b);
        assert_memory_equal(leat_msg_read_string(&reader).text, "\33[m", 3);
        (void)leat_msg_read_array(&reader);
        assert_memory_equal(leat_msg_read_string(&reader).text, "?[m??\xc3\xa4", 7);
        assert_true(leat_msg_read_bool(&reader));
        const char *last = leat_msg_read_string(&reader).text;
        for (size_t i = 0; i < sizeof longer; i++)
            assert_int_equal(last[i], cut ? '\n' : '?');
        assert_true(leat_msg_read_done(&reader));
    }
}

static void cursor_claims_of_more_than_is_there_fail(void **state)
{
    static const uint8_t wrong[][6] = {
        {0xdd, 0x06, 0, 0, 0, 0},          {0xdf, 0x40, 0, 0, 0, 0},
        {0xc6, 0xff, 0xff, 0xff, 0xff, 0}, {0xdb, 0x80, 0, 0, 0, 0},
        {0xc9, 0xff, 0xff, 0xff, 0xff, 1}, {0xc1, 0, 0, 0, 0, 0},
    };
    struct leat_msg_reader reader;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        leat_msg_reader_init(&reader, wrong[i], sizeof wrong[i]);
        leat_msg_skip(&reader);
        assert_true(reader.failed);
        assert_int_equal(leat_msg_read_u64(&reader), 0);
    }
    for (size_t depth = 1; depth < 12; depth++) { /* arrays of one array, a number inside */
        uint8_t nested[16];
        memset(nested, 0x91, sizeof nested);
        nested[depth] = 7;
        leat_msg_reader_init(&reader, nested, depth + 1);
        leat_msg_skip(&reader);
        assert_int_equal(leat_msg_read_done(&reader), depth <= 8);
    }
}

/* A body of a newer peer has more fields; one that lacks fields, or bytes, is invalid. */
static void message_longer_array_is_accepted_shorter_refused(void **state)
{
    uint8_t bytes[64];
    struct leat_msg_hello hello = {1, 3, {"probe", 5}, -1}, got;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_hello_write(&writer, &hello);
    uint32_t used = writer.used;
    for (uint32_t cut = 0; cut < used; cut++)
        assert_int_equal(leat_msg_hello_decode(bytes, cut, &got), LEAT_E_INVALID);
    leat_msg_write_string(&writer, "more", 4);
    assert_int_equal(leat_msg_hello_decode(bytes, writer.used, &got), LEAT_E_INVALID);
    bytes[0]++;
    assert_int_equal(leat_msg_hello_decode(bytes, writer.used, &got), LEAT_OK);
    assert_int_equal(got.version_max, 3);
    assert_int_equal(got.lane, -1);
    bytes[0] -= 2;
    assert_int_equal(leat_msg_hello_decode(bytes, used, &got), LEAT_E_INVALID);
}

static void message_overflow_is_sticky_and_inside(void **state)
{
    uint8_t bytes[64];
    struct leat_msg_hello hello = {1, 70000, {"a longer name", 13}, -1};
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_hello_write(&writer, &hello);
    uint32_t whole = writer.used;
    for (uint32_t capacity = 0; capacity < whole; capacity++) {
        memset(bytes, 0xee, sizeof bytes);
        leat_msg_writer_init(&writer, bytes, capacity);
        leat_msg_hello_write(&writer, &hello);
        assert_true(writer.overflow && writer.used <= capacity);
        for (size_t i = capacity; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], 0xee);
    }
}

static void message_lists_read_back(void **state)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    struct leat_msg_fetch fetch = {1, 1 << 20, 250, 2}, fetch_got;
    struct leat_msg_fetch_log by_offset = {.log = {7, 1, 0}, .epoch = 5, .offset = 1ull << 40};
    struct leat_msg_fetch_log by_position = {
        .log = {7, 1, 1}, .epoch = 5, .by_position = true, .position = {2, 33, 4096}};
    leat_msg_fetch_write(&writer, &fetch);
    leat_msg_fetch_log_write(&writer, &by_offset);
    leat_msg_fetch_log_write(&writer, &by_position);
    struct leat_msg_fetch_log got;
    leat_msg_reader_init(&reader, bytes, writer.used);
    leat_msg_fetch_read(&reader, &fetch_got);
    assert_int_equal(fetch_got.log_count, 2);
    assert_int_equal(fetch_got.wait_ms, 250);
    leat_msg_fetch_log_read(&reader, &got);
    assert_false(got.by_position);
    assert_true(got.offset == 1ull << 40);
    leat_msg_fetch_log_read(&reader, &got);
    assert_true(got.by_position && got.position.segment == 33 && got.position.position == 4096);
    assert_true(leat_msg_read_done(&reader));

    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    struct leat_msg_stream gone = {.code = LEAT_E_UNKNOWN_STREAM,
                                   .name = {"attic", 5},
                                   .text = {"it is empty", 11}},
                           stream_got;
    leat_msg_stream_write(&writer, &gone);
    leat_msg_reader_init(&reader, bytes, writer.used);
    leat_msg_stream_read(&reader, &stream_got);
    assert_true(leat_msg_read_done(&reader));
    assert_int_equal(stream_got.code, LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(stream_got.log_count, 0);
    assert_int_equal(stream_got.text.bytes, 11);
    assert_memory_equal(stream_got.text.text, "it is empty", 11);
}

/* A place stands where the value does, and is three numbers, not fewer; what comes behind it is skipped. */
static void message_locate_takes_a_place(void **state)
{
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    struct leat_msg_reader reader;
    struct leat_msg_locate place = {
        .log = {7, 1, 2}, .what = LEAT_LOCATE_POSITION, .position = {2, 33, UINT32_MAX}};
    struct leat_msg_locate time = {.log = {7, 1, 2}, .what = LEAT_LOCATE_TIME, .value = -5}, got;
    (void)state;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_locate_write(&writer, &place);
    leat_msg_locate_write(&writer, &time);
    leat_msg_reader_init(&reader, bytes, writer.used);
    leat_msg_locate_read(&reader, &got);
    assert_memory_equal(&got, &place, sizeof got);
    leat_msg_locate_read(&reader, &got);
    assert_memory_equal(&got, &time, sizeof got);
    assert_true(leat_msg_read_done(&reader));
    for (uint32_t fields = 4; fields <= 9; fields++) {
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_write_array(&writer, fields);
        for (uint32_t i = 0; i < fields; i++)
            leat_msg_write_u64(&writer, i == 3 ? LEAT_LOCATE_POSITION : i);
        leat_msg_reader_init(&reader, bytes, writer.used);
        leat_msg_locate_read(&reader, &got);
        assert_int_equal(leat_msg_read_done(&reader), fields >= 7);
        if (fields >= 7) assert_int_equal(got.position.position, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_decodes_what_was_encoded),
        cmocka_unit_test(frame_cut_at_each_byte_asks_for_more),
        cmocka_unit_test(frame_flipped_bit_is_detected_outside_payload),
        cmocka_unit_test(frame_past_limits_is_refused),
        cmocka_unit_test(cursor_integers_of_every_width_read_back),
        cmocka_unit_test(cursor_claims_of_more_than_is_there_fail),
        cmocka_unit_test(cursor_texts_are_cleaned),
        cmocka_unit_test(message_longer_array_is_accepted_shorter_refused),
        cmocka_unit_test(message_overflow_is_sticky_and_inside),
        cmocka_unit_test(message_lists_read_back),
        cmocka_unit_test(message_locate_takes_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
