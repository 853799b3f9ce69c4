/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are alike, of which all but the first are compared rather than decoded. */
#include "known_batch.h"

#include <sys/mman.h>
#include <unistd.h>

/* Copied to the end of a page, behind which nothing may be read. */
static leat_err check_at_page_end(const uint8_t *batch, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
    uint8_t *map =
        mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + pages, page, PROT_NONE), 0);
    uint8_t *copy = map + pages - bytes;
    memcpy(copy, batch, bytes);
    leat_put_be32(copy + 8, (uint32_t)bytes - 12);
    set_crc(copy, bytes);
    struct leat_batch taken;
    leat_err rc = leat_batch_check(copy, bytes, &taken, NULL);
    munmap(map, pages + page);
    return rc;
}

/* Goal: where offsets take a byte more, records that go on as before are malformed: what would be the second byte of
 * the offset is the length of the key. */
static void alike_offsets_end_where_they_take_a_byte_more(void **state)
{
    (void)state;
    static uint8_t bytes[LEAT_BATCH_HEADER_BYTES + 9000 * 10];
    for (unsigned width = 1; width <= 2; width++) {
        const uint32_t end = width == 1 ? 1 << 6 : 1 << 13;
        uint8_t head[256];
        known_batch(head);
        memcpy(bytes, head, LEAT_BATCH_HEADER_BYTES);
        uint8_t *at = bytes + LEAT_BATCH_HEADER_BYTES, *last = at;
        for (uint32_t i = 0; i <= end; i++) {
            uint32_t raw = 2 * i;
            bool two =
                raw > 0x7f && width == 2; /* of the last one as if it were like those before */
            last = at;
            *at++ = two ? 18 : 16;
            *at++ = 0; /* attributes, time */
            *at++ = 0;
            *at++ = (uint8_t)(two ? 0x80 | (raw & 0x7f) : raw);
            if (two) *at++ = (uint8_t)(raw >> 7);
            *at++ = 1; /* no key */
            *at++ = 4;
            *at++ = 'v';
            *at++ = 'v';
            *at++ = 0;
        }
        for (uint32_t more = 0; more < 2; more++) {
            leat_put_be32(bytes + 23, end - 1 + more);
            leat_put_be32(bytes + 57, end + more);
            assert_int_equal(check_at_page_end(bytes, (size_t)((more ? at : last) - bytes)),
                             more ? LEAT_E_INVALID : LEAT_OK);
        }
    }
}

/* Goal: records that look alike are decoded where bytes of them are not compared. Three records; a byte of the second
 * differs, so that the record is malformed. */
static void alike_records_are_compared_in_all_that_they_say(void **state)
{
    (void)state;
    static uint8_t bytes[65536], large[9000];
    static const uint8_t zero[] = {2, 'h', 2, 0};
    static const struct {
        uint32_t key, value;
        bool header;
        int from_next, at; /* from the end of the second record, or its beginning */
        uint8_t byte;
    } cases[] = {
        {0, 1, true, 1, -5, 1},       /* how many headers: fewer than none */
        {0, 9000, false, 0, 8, 0x8d}, /* the second byte of the length of the value */
        {9000, 1, false, 0, 5, 6},    /* the offset, behind a length of three bytes */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        uint32_t ends[3];
        for (int i = 0; i < 3; i++) {
            assert_int_equal(leat_batch_builder_add(&builder, 1, cases[c].key ? large : NULL,
                                                    cases[c].key, large, cases[c].value, zero,
                                                    cases[c].header ? sizeof zero : 0,
                                                    cases[c].header),
                             LEAT_OK);
            ends[i] = builder.used;
        }
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        assert_int_equal(check_at_page_end(bytes, total), LEAT_OK);
        bytes[(cases[c].from_next ? ends[1] : ends[0]) + (uint32_t)cases[c].at] = cases[c].byte;
        assert_int_equal(newest_by_reading(bytes, total), INT64_MIN);
        assert_int_equal(check_at_page_end(bytes, total), LEAT_E_INVALID);
    }
}

/* Goal: nothing is read behind the last of the shortest records, nor of records of which the batch says it has more. */
static void alike_records_end_where_their_bytes_do(void **state)
{
    (void)state;
    uint8_t bytes[2048], value[20] = {0};
    for (uint32_t size = 0; size < sizeof value; size++) {
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        for (int i = 0; i < 20; i++)
            assert_int_equal(leat_batch_builder_add(&builder, 1, NULL, 0, value, size, NULL, 0, 0),
                             LEAT_OK);
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        assert_int_equal(check_at_page_end(bytes, total), LEAT_OK);
        for (uint32_t less = 1; less < 3 * size; less++)
            assert_int_equal(check_at_page_end(bytes, total - less), LEAT_E_INVALID);
    }
}

/* Goal: the highest time of records that differ in nothing else, in however many bytes it is written. */
static void alike_records_of_other_times_are_read_right(void **state)
{
    (void)state;
    static uint8_t bytes[65536];
    for (unsigned bits = 3; bits < 40; bits++) {
        struct leat_batch_builder builder;
        struct leat_batch batch;
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        for (int64_t i = 0; i < 50; i++) {
            int64_t time = i == 0 ? 1000 : 1000 + (INT64_C(1) << bits) + i % 7;
            assert_int_equal(
                leat_batch_builder_add(&builder, time, NULL, 0, "value", 5, NULL, 0, 0), LEAT_OK);
        }
        uint32_t total = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
        assert_int_equal(batch.max_timestamp_ms, 1000 + (INT64_C(1) << bits) + 6);
        assert_int_equal(newest_by_reading(bytes, total), batch.max_timestamp_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_offsets_end_where_they_take_a_byte_more),
        cmocka_unit_test(alike_records_are_compared_in_all_that_they_say),
        cmocka_unit_test(alike_records_end_where_their_bytes_do),
        cmocka_unit_test(alike_records_of_other_times_are_read_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
