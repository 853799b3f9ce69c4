/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of entries and of the segment scanner. */
#include "wire_fixture.h"

static struct leat_scan scan_of(const uint8_t *bytes, uint32_t count)
{
    struct leat_scan scan;
    leat_scan_segment(bytes, count, &scan);
    return scan;
}

/* The last seal at or before `bytes`. */
static struct leat_prefix_id seal_before(const struct fixture_segment *seg, uint32_t bytes)
{
    struct leat_prefix_id last = {0, 0};
    for (uint32_t i = 0; i < seg->seal_count; i++)
        if (seg->seals[i].bytes <= bytes) last = seg->seals[i];
    return last;
}

static void scan_whole_segment_finds_all(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 1);
    for (int round = 0; round < 200; round++) {
        static struct fixture_segment seg;
        bool closed = round % 2;
        fixture_fill(&seg, &random, round, 1 + (uint32_t)leat_xoshiro_below(&random, 6), 100,
                     closed);
        struct leat_scan scan = scan_of(seg.bytes, sizeof seg.bytes);
        assert_int_equal(scan.bytes, seg.writer.used);
        assert_int_equal(scan.crc, seg.seals[seg.seal_count - 1].crc);
        assert_int_equal(scan.acked_bytes, seg.seals[seg.seal_count - 2].bytes);
        assert_false(scan.damaged);
        assert_true(scan.has_header && scan.started);
        assert_int_equal(scan.closed, closed);
        assert_int_equal(scan.base_offset, 500);
        assert_int_equal(scan.next_offset, seg.next_offset);
        assert_int_equal(scan.max_timestamp_ms, seg.max_timestamp_ms);
        assert_int_equal(scan.previous.bytes, 4096);
        assert_int_equal(scan.previous.crc, 77);
        assert_int_equal(scan.header.stream, 3);
    }
}

static void scan_reservation_is_not_started(void **state)
{
    static struct fixture_segment seg;
    fixture_open(&seg, 1);
    struct leat_scan scan = scan_of(seg.bytes, sizeof seg.bytes);
    assert_true(scan.has_header);
    assert_false(scan.started || scan.closed || scan.damaged);
    assert_int_equal(scan.bytes, 0);
    memset(seg.bytes, 0, sizeof seg.bytes);
    assert_false(scan_of(seg.bytes, sizeof seg.bytes).has_header);
}

/* Cut after every byte: what remains is the last whole run, and never called damaged. */
static void scan_cut_at_each_byte_ends_at_last_trailer(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 2);
    static struct fixture_segment seg;
    fixture_fill(&seg, &random, 1, 5, 60, true);
    static _Alignas(8) uint8_t torn[FIXTURE_BYTES];
    for (uint32_t cut = 0; cut <= seg.writer.used; cut++) {
        struct leat_prefix_id want = seal_before(&seg, cut);
        memset(torn, 0, sizeof torn);
        memcpy(torn, seg.bytes, cut);
        for (int zero_filled = 0; zero_filled < 2; zero_filled++) {
            struct leat_scan scan = scan_of(torn, zero_filled ? sizeof torn : cut);
            /* Trailing zeros may be what was cut off: then nothing is missing. */
            if (zero_filled && scan.bytes > cut) {
                assert_memory_equal(torn, seg.bytes, scan.bytes);
                continue;
            }
            assert_int_equal(scan.bytes, want.bytes);
            assert_int_equal(scan.crc, want.crc);
            assert_false(scan.damaged);
        }
    }
}

/* Pieces of a write land in any order: some blocks are there, others still zero. What is accepted
 * ends before the first that is missing; in the run under way, which no trailer calls acked, that is
 * never damage. */
static void scan_missing_blocks_end_at_the_trailer_before_the_first(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 11);
    static struct fixture_segment seg;
    static _Alignas(8) uint8_t torn[FIXTURE_BYTES];
    unsigned shortened = 0;
    for (unsigned round = 0; round < 4000; round++) {
        bool under_way = round % 2;
        if (round % 100 == 0) fixture_fill(&seg, &random, round, 4, 60, true);
        uint32_t used = seg.writer.used;
        uint32_t from = under_way ? seg.seals[seg.seal_count - 2].bytes : 0;
        memcpy(torn, seg.bytes, sizeof torn);
        for (uint64_t n = 1 + leat_xoshiro_below(&random, 6); n > 0; n--) {
            uint32_t at = from + (uint32_t)leat_xoshiro_below(&random, used - from);
            uint32_t bytes = 1u << leat_xoshiro_below(&random, 11);
            memset(torn + at, 0, bytes < used - at ? bytes : used - at);
        }
        uint32_t first = 0;
        while (first < used && torn[first] == seg.bytes[first])
            first++;
        struct leat_prefix_id want = seal_before(&seg, first);
        struct leat_scan scan = scan_of(torn, sizeof torn);
        assert_int_equal(scan.bytes, want.bytes);
        assert_int_equal(scan.crc, want.crc);
        if (under_way) assert_false(scan.damaged);
        shortened += want.bytes < used;
    }
    assert_true(shortened > 2000);
}

/* Every flipped bit shortens the prefix to before it; in the payload of an acked entry it shows as
 * damage. */
static void scan_each_flipped_bit_is_detected(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 3);
    static struct fixture_segment seg;
    fixture_fill(&seg, &random, 1, 4, 40, true);
    uint32_t acked = scan_of(seg.bytes, sizeof seg.bytes).acked_bytes;
    uint32_t at = 0; /* of the entry that holds the bit */
    uint32_t damage_seen = 0;
    while (at < seg.writer.used) {
        const struct leat_entry *entry = leat_entry_at(seg.bytes, seg.writer.used, at);
        assert_non_null(entry);
        uint32_t end = at + leat_entry_bytes(entry->payload_bytes);
        for (uint32_t bit = at * 8; bit < end * 8; bit++) {
            seg.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct leat_scan scan = scan_of(seg.bytes, sizeof seg.bytes);
            assert_int_equal(scan.bytes, seal_before(&seg, bit / 8).bytes);
            bool in_payload = bit / 8 >= at + LEAT_ENTRY_HEADER_BYTES;
            if (in_payload && end <= acked) {
                assert_true(scan.damaged);
                damage_seen++;
            }
            seg.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        at = end;
    }
    assert_true(damage_seen > 1000);
}

/* A new segment is written, byte by byte, over an old one: old entries never count, as content or
 * as proof of damage. The sizes of both are equal, so that entry boundaries coincide. */
static void scan_recycled_buffer_ignores_what_was_there(void **state)
{
    for (uint64_t seed = 10; seed < 14; seed++) {
        struct leat_xoshiro random;
        static struct fixture_segment old, fresh;
        leat_xoshiro_seed(&random, seed);
        fixture_fill(&old, &random, 1, 6, 60, true);
        leat_xoshiro_seed(&random, seed);
        fixture_fill(&fresh, &random, 2, 6, 60, true);
        assert_int_equal(old.writer.used, fresh.writer.used);
        static _Alignas(8) uint8_t mixed[FIXTURE_BYTES];
        memcpy(mixed, old.bytes, sizeof mixed);
        struct leat_scan scan = scan_of(mixed, sizeof mixed);
        for (uint32_t cut = 1; cut <= fresh.writer.used; cut++) {
            mixed[cut - 1] = fresh.bytes[cut - 1];
            if (memcmp(mixed, old.bytes, cut) == 0) continue; /* still the old segment */
            scan = scan_of(mixed, sizeof mixed);
            assert_false(scan.damaged);
            assert_memory_equal(mixed, fresh.bytes, scan.bytes);
            assert_true(scan.bytes >= seal_before(&fresh, cut).bytes);
        }
        assert_int_equal(scan.bytes, fresh.writer.used);
    }
}

/* An entry that no writer writes, with checksums that fit, ends the walk before this entry. */
static void scan_wrong_order_stops(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 5);
    static struct fixture_segment seg;
    struct leat_start start = {.base_offset = 500};

    fixture_fill(&seg, &random, 1, 2, 20, false); /* a second START */
    uint32_t valid = seg.writer.used;
    fixture_entry(&seg, LEAT_ENTRY_START, &start, sizeof start);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).bytes, valid);

    fixture_fill(&seg, &random, 1, 2, 20, true); /* anything after CLOSE */
    valid = seg.writer.used;
    fixture_append(&seg, &random, 20);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).bytes, valid);
    assert_true(scan_of(seg.bytes, sizeof seg.bytes).closed);

    fixture_open(&seg, 1); /* a batch or a trailer without START */
    fixture_append(&seg, &random, 20);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).bytes, 0);
    fixture_open(&seg, 1);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).bytes, 0);
    assert_true(scan_of(seg.bytes, sizeof seg.bytes).has_header);
}

static void scan_wrong_header_stops(void **state)
{
    struct leat_segment_header good = {.magic = LEAT_SEGMENT_MAGIC,
                                       .format_version = LEAT_FORMAT_VERSION,
                                       .capacity = FIXTURE_BYTES};
    struct leat_segment_header bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].magic++;
    bad[1].format_version++;
    bad[2].capacity = LEAT_SEGMENT_BYTES_MIN - 8;
    bad[3].capacity = LEAT_SEGMENT_BYTES_MAX + 8;
    bad[4].name_bytes = 1;
    bad[5].capacity = FIXTURE_BYTES + 4;
    static struct fixture_segment seg;
    for (int i = -1; i < 6; i++) {
        leat_entry_writer_init(&seg.writer, seg.bytes, sizeof seg.bytes);
        fixture_entry(&seg, LEAT_ENTRY_SEGMENT, i < 0 ? &good : &bad[i], sizeof good);
        assert_int_equal(scan_of(seg.bytes, seg.writer.used).has_header, i < 0);
    }
}

/* A batch entry whose payload is no batch, or a batch of other offsets, is not valid. */
static void scan_implausible_batch_ends_prefix(void **state)
{
    struct leat_xoshiro random;
    static struct fixture_segment seg;
    for (int wrong = 0; wrong < 4; wrong++) {
        leat_xoshiro_seed(&random, 6);
        fixture_fill(&seg, &random, 1, 2, 20, false);
        uint32_t valid = seg.writer.used;
        uint8_t batch[1024];
        uint64_t offset = seg.next_offset + (wrong == 1);
        uint32_t bytes = fixture_batch(&random, batch, sizeof batch, offset, 2, 20);
        if (wrong == 2) batch[16] = 1;
        (void)leat_entry_append(&seg.writer, LEAT_ENTRY_BATCH, offset, wrong == 3 ? 3 : 2, batch,
                                bytes, leat_crc32c(0, batch, bytes));
        fixture_seal(&seg);
        struct leat_scan scan = scan_of(seg.bytes, sizeof seg.bytes);
        assert_int_equal(scan.bytes, wrong == 0 ? seg.writer.used : valid);
    }
}

/* A trim entry counts once a trailer stands behind it. */
static void scan_trim_entry_names_what_is_retained(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 9);
    static struct fixture_segment seg;
    fixture_fill(&seg, &random, 1, 2, 20, false);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).retained_segment, 2);
    struct leat_trim trim = {4, 600};
    fixture_entry(&seg, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).retained_segment, 2);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).retained_segment, 4);
}

/* The segment before a segment that has only begun is needed, unless it is given up there. */
static void scan_only_start_until_a_batch_or_a_trim_of_all_before(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 9);
    static struct fixture_segment seg;
    fixture_fill(&seg, &random, 1, 2, 20, false);
    struct leat_scan scan = scan_of(seg.bytes, sizeof seg.bytes);
    assert_true(scan.next_offset > scan.base_offset);
    assert_false(leat_scan_only_start(&scan));
    fixture_fill(&seg, &random, 0, 0, 0, false);
    scan = scan_of(seg.bytes, sizeof seg.bytes);
    assert_true(scan.started && leat_scan_only_start(&scan));
    struct leat_trim trim = {scan.header.segment - 1, scan.base_offset};
    fixture_entry(&seg, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    fixture_seal(&seg);
    scan = scan_of(seg.bytes, sizeof seg.bytes);
    assert_true(leat_scan_only_start(&scan));
    trim.first_segment++;
    fixture_entry(&seg, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    fixture_seal(&seg);
    scan = scan_of(seg.bytes, sizeof seg.bytes);
    assert_false(leat_scan_only_start(&scan));
}

static void writer_resumed_from_prefix_id_continues_chain(void **state)
{
    struct leat_xoshiro random;
    leat_xoshiro_seed(&random, 8);
    static struct fixture_segment seg;
    fixture_fill(&seg, &random, 1, 2, 20, false);
    struct leat_prefix_id last = seg.seals[seg.seal_count - 1];
    leat_entry_writer_init(&seg.writer, seg.bytes, sizeof seg.bytes);
    seg.writer.used = seg.writer.sealed_bytes = last.bytes;
    seg.writer.chain = last.crc;
    fixture_append(&seg, &random, 20);
    fixture_seal(&seg);
    assert_int_equal(scan_of(seg.bytes, sizeof seg.bytes).bytes, seg.writer.used);
}

static void entry_fits_counts_trailer_and_reserve(void **state)
{
    struct leat_entry_writer writer;
    static _Alignas(8) uint8_t bytes[128];
    leat_entry_writer_init(&writer, bytes, 128);
    assert_true(leat_entry_fits(&writer, 64, 0));
    assert_false(leat_entry_fits(&writer, 65, 0));
    assert_false(leat_entry_fits(&writer, 64, 1));
    assert_false(leat_entry_fits(&writer, UINT32_MAX, UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_whole_segment_finds_all),
        cmocka_unit_test(scan_reservation_is_not_started),
        cmocka_unit_test(scan_cut_at_each_byte_ends_at_last_trailer),
        cmocka_unit_test(scan_missing_blocks_end_at_the_trailer_before_the_first),
        cmocka_unit_test(scan_each_flipped_bit_is_detected),
        cmocka_unit_test(scan_recycled_buffer_ignores_what_was_there),
        cmocka_unit_test(scan_wrong_order_stops),
        cmocka_unit_test(scan_wrong_header_stops),
        cmocka_unit_test(scan_implausible_batch_ends_prefix),
        cmocka_unit_test(scan_trim_entry_names_what_is_retained),
        cmocka_unit_test(scan_only_start_until_a_batch_or_a_trim_of_all_before),
        cmocka_unit_test(writer_resumed_from_prefix_id_continues_chain),
        cmocka_unit_test(entry_fits_counts_trailer_and_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
