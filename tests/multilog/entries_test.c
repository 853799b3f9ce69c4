/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk over a segment's entries takes: every end of what is at hand, every target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "entries_rig.h"

static void offset_says_which_batches_are_taken(void **state)
{
    (void)state;
    SWEEP(8, 16, target.offset = v);
    SWEEP(8, 16, target.offset = v, view.verify = true);
    TRACE_IS("target.offset = v\n"
             "  8: damaged at 0, boundary\n"
             "  10: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  13: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  14: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  15: done at 496, boundary\n"
             "target.offset = v, view.verify = true\n"
             "  8: damaged at 0, boundary\n"
             "  10: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  13: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  14: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  15: done at 496, boundary\n");
}

static void place_is_a_batch_s_beginning(void **state)
{
    (void)state;
    SWEEP(0, segment_end + 9, from_position(v));
    TRACE_IS("from_position(v)\n"
             "  0: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  1: no boundary at 96\n"
             "  96: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  97: no boundary at 128\n"
             "  128: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  129: no boundary at 224\n"
             "  224: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  225: no boundary at 272\n"
             "  272: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  273: no boundary at 368\n"
             "  368: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  369: no boundary at 464\n"
             "  464: done at 496, boundary\n"
             "  465: no boundary at 496\n"
             "  496: done at 496, boundary\n"
             "  497: done at 496\n");
}

static void place_in_a_file_is_a_batch_s_beginning(void **state)
{
    (void)state;
    SWEEP(0, segment_end + 9, from_position(v), view.verify = true);
    TRACE_IS("from_position(v), view.verify = true\n"
             "  0: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  1: no boundary at 96\n"
             "  96: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  97: no boundary at 128\n"
             "  128: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  129: no boundary at 224\n"
             "  224: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  225: no boundary at 272\n"
             "  272: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  273: no boundary at 368\n"
             "  368: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  369: no boundary at 464\n"
             "  464: done at 496, boundary\n"
             "  465: no boundary at 496\n"
             "  496: done at 496, boundary\n"
             "  497: done at 496\n");
}

static void place_is_looked_for_from_an_index_row_on(void **state)
{
    (void)state;
    SWEEP(0, batches[2] + 9, from_position(v), at = batches[1]);
    SWEEP(0, batches[2] + 9, from_position(v), at = batches[1], reading.boundary = true);
    TRACE_IS("from_position(v), at = batches[1]\n"
             "  0: no boundary at 128\n"
             "  128: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  129: no boundary at 224\n"
             "  224: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  225: no boundary at 272\n"
             "  272: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  273: no boundary at 368\n"
             "from_position(v), at = batches[1], reading.boundary = true\n"
             "  0: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  129: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  273: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n");
}

static void time_says_which_batches_are_taken(void **state)
{
    (void)state;
    SWEEP(98, 402, from_time(v));
    SWEEP(98, 402, from_time(v), view.verify = true);
    TRACE_IS("from_time(v)\n"
             "  98: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  101: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  301: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  401: done at 496, boundary\n"
             "from_time(v), view.verify = true\n"
             "  98: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  101: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  301: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary\n"
             "  401: done at 496, boundary\n");
}

static void walk_ends_where_nothing_more_is_at_hand(void **state)
{
    (void)state;
    SWEEP(0, segment_end, view.end = v);
    SWEEP(0, segment_end, view.end = v, target.offset = 13);
    SWEEP(0, segment_end, view.end = v, from_time(200), view.verify = true);
    SWEEP(0, segment_end, view.end = v, from_position(batches[1] + 8), view.verify = true);
    TRACE_IS("view.end = v\n"
             "  0: more at 0, boundary\n"
             "  94: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  128: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  223: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  256: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  366: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  462: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  496: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "view.end = v, target.offset = 13\n"
             "  0: more at 0, boundary\n"
             "  32: more at 96, boundary\n"
             "  128: more at 128, boundary\n"
             "  160: more at 224, boundary\n"
             "  256: more at 272, boundary\n"
             "  366: done at 368, 1 of 62 bytes, 1 records: 13@272..14@368, boundary\n"
             "  462: done at 464, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  496: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "view.end = v, from_time(200), view.verify = true\n"
             "  0: more at 0, boundary\n"
             "  94: more at 96, boundary\n"
             "  128: more at 128, boundary\n"
             "  223: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  256: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  366: done at 368, 2 of 125 bytes, 3 records: 11@128..14@368, boundary\n"
             "  462: done at 464, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  496: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "view.end = v, from_position(batches[1] + 8), view.verify = true\n"
             "  0: more at 0\n"
             "  32: more at 96\n"
             "  128: more at 128\n"
             "  223: no boundary at 224\n");
}

static void walk_passes_over_what_is_whole_alone(void **state)
{
    (void)state;
    SWEEP(0, segment_end, view.end = v, view.given_up = true);
    SWEEP(0, segment_end - batches[1], view.from = at = batches[1],
          view.bytes = segment + batches[1], target.offset = 11, view.end = batches[1] + v);
    TRACE_IS("view.end = v, view.given_up = true\n"
             "  0: more at 0, boundary\n"
             "  94: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  128: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  223: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  256: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  366: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  462: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  496: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "view.from = at = batches[1], view.bytes = segment + batches[1], target.offset = 11, "
             "view.end = batches[1] + v\n"
             "  0: more at 128\n"
             "  95: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224\n"
             "  128: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224\n"
             "  238: done at 368, 2 of 125 bytes, 3 records: 11@128..14@368\n"
             "  334: done at 464, 3 of 187 bytes, 4 records: 11@128..15@464\n"
             "  368: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464\n");
}

static void segment_ends_where_its_limit_is(void **state)
{
    (void)state;
    SWEEP(0, segment_end, view.limit = view.end = v);
    TRACE_IS("view.limit = view.end = v\n"
             "  0: done at 0, boundary\n"
             "  1: damaged at 0, boundary\n"
             "  94: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  128: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  223: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  272: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  366: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  462: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  496: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void no_more_is_taken_than_is_acked(void **state)
{
    (void)state;
    SWEEP(9, 16, atomic_store(&whose.acked_offset, v));
    SWEEP(9, 16, atomic_store(&whose.acked_offset, v), target.offset = 13);
    TRACE_IS("atomic_store(&whose.acked_offset, v)\n"
             "  9: done at 0, boundary\n"
             "  11: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  12: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  14: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  15: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "atomic_store(&whose.acked_offset, v), target.offset = 13\n"
             "  9: done at 0, boundary\n"
             "  11: done at 128, boundary\n"
             "  12: done at 272, boundary\n"
             "  14: done at 368, 1 of 62 bytes, 1 records: 13@272..14@368, boundary\n"
             "  15: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n");
}

static void no_more_is_taken_than_is_asked_for(void **state)
{
    (void)state;
    SWEEP(0, 330, reading.max_bytes = v);
    SWEEP(0, 330, reading.max_bytes = v, reading.strict = true);
    TRACE_IS("reading.max_bytes = v\n"
             "  0: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  125: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  187: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  249: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "reading.max_bytes = v, reading.strict = true\n"
             "  0: full at 0, boundary\n"
             "  62: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  125: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  187: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  249: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void what_lies_before_the_log_begins_is_not_taken(void **state)
{
    (void)state;
    SWEEP(9, 16, whose.first_offset = v);
    SWEEP(9, 16, whose.first_offset = v, from_position(batches[1]));
    SWEEP(9, 16, whose.first_offset = v, from_position(0));
    SWEEP(9, 16, whose.first_offset = v, from_time(200));
    TRACE_IS("whose.first_offset = v\n"
             "  9: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "whose.first_offset = v, from_position(batches[1])\n"
             "  9: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  13: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary, given up\n"
             "  14: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary, given up\n"
             "  15: done at 496, boundary, given up\n"
             "whose.first_offset = v, from_position(0)\n"
             "  9: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary, given up\n"
             "  13: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary, given up\n"
             "  14: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary, given up\n"
             "  15: done at 496, boundary, given up\n"
             "whose.first_offset = v, from_time(200)\n"
             "  9: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary, given up\n"
             "  13: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary, given up\n"
             "  14: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, boundary, given up\n"
             "  15: done at 496, boundary, given up\n");
}

/* The payload may be as long as what is left, and a batch as long as batches may be. */
static void length_is_right_up_to_its_bounds(void **state)
{
    (void)state;
    SWEEP(segment_end - batches[3] - 40, segment_end - batches[3],
          entry_of(batches[3])->payload_bytes = v, target.offset = 14);
    SWEEP(segment_end - batches[3] - 40, segment_end - batches[3],
          entry_of(batches[3])->payload_bytes = v, target.offset = 14, view.verify = true,
          right_crc(batches[3]));
    SWEEP(LEAT_BATCH_BYTES_MAX - 1, LEAT_BATCH_BYTES_MAX + 1, entry_of(0)->payload_bytes = v,
          view.limit = LEAT_BATCH_BYTES_MAX * 2);
    TRACE_IS("entry_of(batches[3])->payload_bytes = v, target.offset = 14\n"
             "  88: done at 488, 1 of 88 bytes, 1 records: 14@368..15@488, boundary\n"
             "  89: done at 496, 1 of 89 bytes, 1 records: 14@368..15@496, boundary\n"
             "  90: done at 496, 1 of 90 bytes, 1 records: 14@368..15@496, boundary\n"
             "  91: done at 496, 1 of 91 bytes, 1 records: 14@368..15@496, boundary\n"
             "  92: done at 496, 1 of 92 bytes, 1 records: 14@368..15@496, boundary\n"
             "  93: done at 496, 1 of 93 bytes, 1 records: 14@368..15@496, boundary\n"
             "  94: done at 496, 1 of 94 bytes, 1 records: 14@368..15@496, boundary\n"
             "  95: done at 496, 1 of 95 bytes, 1 records: 14@368..15@496, boundary\n"
             "  96: done at 496, 1 of 96 bytes, 1 records: 14@368..15@496, boundary\n"
             "  97: damaged at 368, boundary\n"
             "entry_of(batches[3])->payload_bytes = v, target.offset = 14, view.verify = true, "
             "right_crc(batches[3])\n"
             "  88: done at 488, 1 of 88 bytes, 1 records: 14@368..15@488, boundary\n"
             "  89: done at 496, 1 of 89 bytes, 1 records: 14@368..15@496, boundary\n"
             "  90: done at 496, 1 of 90 bytes, 1 records: 14@368..15@496, boundary\n"
             "  91: done at 496, 1 of 91 bytes, 1 records: 14@368..15@496, boundary\n"
             "  92: done at 496, 1 of 92 bytes, 1 records: 14@368..15@496, boundary\n"
             "  93: done at 496, 1 of 93 bytes, 1 records: 14@368..15@496, boundary\n"
             "  94: done at 496, 1 of 94 bytes, 1 records: 14@368..15@496, boundary\n"
             "  95: done at 496, 1 of 95 bytes, 1 records: 14@368..15@496, boundary\n"
             "  96: done at 496, 1 of 96 bytes, 1 records: 14@368..15@496, boundary\n"
             "  97: damaged at 368, boundary\n"
             "entry_of(0)->payload_bytes = v, view.limit = LEAT_BATCH_BYTES_MAX * 2\n"
             "  2097151: more at 0, boundary\n"
             "  2097153: damaged at 0, boundary\n");
}

/* One batch more than an answer can name. */
static void answer_names_so_many_batches(void **state)
{
    (void)state;
    enum { COUNT = LEAT_READ_IOVS_MAX + 1, BYTES = COUNT * 128 };
    static _Alignas(8) uint8_t many[BYTES];
    struct leat_entry_writer writer;
    for (uint32_t count = COUNT - 2; count <= COUNT; count++) {
        leat_entry_writer_init(&writer, many, sizeof many);
        for (uint32_t i = 0; i < count; i++)
            (void)put_batch(&writer, i, 1, 0);
        again();
        atomic_store(&whose.acked_offset, count);
        reading.max_bytes = UINT32_MAX;
        view = (struct log_view){.bytes = many, .end = writer.used, .limit = writer.used};
        target.offset = 0;
        enum log_walk_end end = log_walk(&whose, &reading, &view, &target, &at);
        trace("%u: %u, %u to %llu at %u of %u\n", count, (unsigned)end, reading.iov_count,
              (unsigned long long)reading.next.v, reading.next_position.position, writer.used);
    }
    TRACE_IS("249: 0, 249 to 249 at 23904 of 23904\n"
             "250: 0, 250 to 250 at 24000 of 24000\n"
             "251: 0, 250 to 250 at 24000 of 24096\n");
}

/* Goal: a damaged batch that ends where a reader begins is not in the reader's way; a damaged batch that was given up
 * is looked at as a whole. */
static void damaged_batch_before_the_place_is_not_met(void **state)
{
    (void)state;
    again();
    segment[batches[0] + LEAT_ENTRY_HEADER_BYTES + 20] ^= 1;
    from_position(entries[1]);
    view.verify = true;
    walk();
    trace("%s\n", outcome);
    again();
    segment[batches[0] + LEAT_ENTRY_HEADER_BYTES + 20] ^= 1;
    view.verify = view.given_up = true;
    view.end = batches[0] + LEAT_ENTRY_HEADER_BYTES + 8;
    walk();
    trace("%s\n", outcome);
    TRACE_IS("done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "more at 0, boundary\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(offset_says_which_batches_are_taken),
        TRACE_TEST(place_is_a_batch_s_beginning),
        TRACE_TEST(place_in_a_file_is_a_batch_s_beginning),
        TRACE_TEST(damaged_batch_before_the_place_is_not_met),
        TRACE_TEST(place_is_looked_for_from_an_index_row_on),
        TRACE_TEST(time_says_which_batches_are_taken),
        TRACE_TEST(walk_ends_where_nothing_more_is_at_hand),
        TRACE_TEST(walk_passes_over_what_is_whole_alone),
        TRACE_TEST(segment_ends_where_its_limit_is),
        TRACE_TEST(no_more_is_taken_than_is_acked),
        TRACE_TEST(no_more_is_taken_than_is_asked_for),
        TRACE_TEST(what_lies_before_the_log_begins_is_not_taken),
        TRACE_TEST(length_is_right_up_to_its_bounds),
        TRACE_TEST(answer_names_so_many_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
