/* SPDX-License-Identifier: Apache-2.0 */
/* Application offsets: each leads to its batch and to no other, for as long as that is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "reopen.h"

enum { SEGMENTS = 20, RECORDS = 50, BATCHES_MAX = 1000 };

struct places {
    struct fake *fake;
    void *buffer;
    struct leat_position at[BATCHES_MAX]; /* of the batch with the offsets from RECORDS * i on */
    unsigned count;
};

static struct leat_locate_op what_is_at(struct places *places, struct leat_position place)
{
    struct leat_locate_op op = {.what = LEAT_LOCATE_POSITION, .from = place};
    (void)locate(places->fake, &op, places->buffer);
    return op;
}

static struct leat_position end_of(struct places *places)
{
    struct leat_locate_op op = {.what = LEAT_LOCATE_LATEST};
    assert_int_equal(locate(places->fake, &op, places->buffer), LEAT_OK);
    return op.position;
}

/* Batches that reach into a second group, and where each lies, as told for a record within it. */
static struct places places_make(void)
{
    struct places places = {.fake = log_of(SEGMENTS), .buffer = aligned_alloc(4096, BUFFER_BYTES)};
    places.count = (unsigned)(leat_log_acked_offset(places.fake->log) / RECORDS);
    assert_in_range(places.count, SEGMENTS * 3, BATCHES_MAX);
    for (unsigned i = 0; i < places.count; i++) {
        struct leat_locate_op op = {.what = LEAT_LOCATE_OFFSET, .value = RECORDS * (int64_t)i + 7};
        assert_int_equal(locate(places.fake, &op, places.buffer), LEAT_OK);
        places.at[i] = op.position;
        assert_int_equal(op.position.group, op.position.segment / LEAT_SEGMENTS_PER_GROUP);
    }
    assert_int_equal(places.at[places.count - 1].group, 1);
    return places;
}

static void places_end(struct places *places)
{
    free(places->buffer);
    fake_destroy(places->fake);
}

static void all_lead_back(struct places *places, unsigned from)
{
    for (unsigned i = from; i < places->count; i++) {
        struct leat_locate_op op = what_is_at(places, places->at[i]);
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, RECORDS * (uint64_t)i);
        assert_int_equal(op.position.segment, places->at[i].segment);
        assert_int_equal(op.position.position, places->at[i].position);
    }
}

static void refused(struct places *places, struct leat_position place)
{
    struct leat_locate_op op = what_is_at(places, place);
    struct leat_position end = end_of(places);
    assert_int_equal(op.rc, LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_int_equal(op.first_position.segment, info_of(places->fake).first_segment);
    assert_int_equal(op.first_position.position, 0);
    assert_int_equal(op.end_position.segment, end.segment);
    assert_int_equal(op.end_position.position, end.position);
}

/* Goal: from memory, from files, after appends and after restarts each leads to its own batch. */
static void place_leads_to_its_batch_for_good(void **state)
{
    (void)state;
    struct places places = places_make();
    all_lead_back(&places, 0);
    evict_all(places.fake);
    all_lead_back(&places, 0);
    for (int start = 0; start < 3; start++) {
        reopen(places.fake, 0, 0, start == 1);
        all_lead_back(&places, 0);
        must_append(places.fake, RECORDS, 100);
        all_lead_back(&places, 0);
    }
    places_end(&places);
}

/* Whatever bit flips in the offset or the length of a batch, the place of the next one is not said to be none. */
static void flipped_in_front(struct places *places, unsigned before)
{
    unsigned found = 0;
    struct fake_held *held = &places->fake->held[0];
    while (held->seg == NULL || held->seg->id.v != places->at[before].segment)
        held++;
    assert_null(held->seg->buffer);
    struct leat_entry *entry =
        (struct leat_entry *)(void *)(held->file + places->at[before].position);
    for (unsigned bit = 0; bit < 64 + 32; bit++) {
        uint64_t offset = entry->base_offset;
        uint32_t length = entry->payload_bytes;
        if (bit < 64)
            entry->base_offset ^= UINT64_C(1) << bit;
        else
            entry->payload_bytes ^= UINT32_C(1) << (bit - 64);
        struct leat_locate_op op = what_is_at(places, places->at[before + 1]);
        assert_true(op.rc == LEAT_E_DAMAGED || op.rc == LEAT_OK);
        if (op.rc == LEAT_OK) assert_int_equal(op.offset.v, RECORDS * (uint64_t)(before + 1));
        found += op.rc == LEAT_E_DAMAGED;
        entry->base_offset = offset;
        entry->payload_bytes = length;
    }
    assert_true(found > 32);
}

/* Goal: so it is in a segment in the middle, and in the last one, behind which nothing is acked. */
static void place_behind_a_flipped_bit_is_no_lie(void **state)
{
    (void)state;
    struct places places = places_make();
    unsigned before = 0;
    while (places.at[before].segment == 0 ||
           places.at[before].segment != places.at[before + 1].segment)
        before++; /* of a closed segment */
    evict_all(places.fake);
    flipped_in_front(&places, before);
    before = places.count - 2;
    while (places.at[before].segment != places.at[before + 1].segment)
        before--;
    reopen(places.fake, 0, 0, true);
    flipped_in_front(&places, before);
    places_end(&places);
}

/* Goal: whatever bit flips in a batch, a time is not answered by a record behind the first one that is not older. */
static void time_behind_a_flipped_bit_is_no_lie(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->next_segment < 3) {
        fake->wall_offset_ms += 1000; /* no two batches have the same times */
        must_append(fake, RECORDS, 100);
    }
    evict_all(fake);
    const struct leat_segment *seg = log_slot_at(fake->log, 0)->seg;
    uint8_t *at = fake_held_of(fake, seg)->file;
    uint32_t position = 0;
    const struct leat_entry *entry;
    while ((entry = leat_entry_at(at, seg->prefix_id.bytes, position)) != NULL &&
           (entry->type != LEAT_ENTRY_BATCH || entry->base_offset == 0))
        position += leat_entry_bytes(entry->payload_bytes);
    assert_non_null(entry);
    at += position;
    uint32_t count = LEAT_ENTRY_HEADER_BYTES + entry->payload_bytes;
    uint64_t offset = entry->base_offset + RECORDS - 1; /* its newest record */
    int64_t newest = (int64_t)leat_get_be64(at + LEAT_ENTRY_HEADER_BYTES + 35);
    unsigned found = 0;
    for (unsigned bit = 0; bit < 8 * count; bit++) {
        struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = newest};
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)locate(fake, &op, buffer);
        assert_true(op.rc == LEAT_E_DAMAGED || op.rc == LEAT_OK);
        if (op.rc == LEAT_OK) assert_int_equal(op.offset.v, offset);
        found += op.rc == LEAT_E_DAMAGED;
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(found > 4 * count);
    free(buffer);
    fake_destroy(fake);
}

/* A batch that says to hold as many records as any may, in a few bytes: what is compressed is not looked at. */
static void must_append_many(struct fake *fake, unsigned *batches)
{
    uint32_t total = fake_batch(bytes, sizeof bytes, 1, 8, fake_wall(fake), -1, -1, -1);
    struct sent sent = {.append = {.on_acked = on_answer, .owner = &sent}, .rc = LEAT_E_AGAIN};
    struct leat_batch batch;
    leat_put_be16(bytes + 21, LEAT_CODEC_GZIP);
    leat_put_be32(bytes + 23, LEAT_RECORDS_PER_BATCH_MAX - 1);
    leat_put_be32(bytes + 57, LEAT_RECORDS_PER_BATCH_MAX);
    leat_put_be32(bytes + LEAT_BATCH_CRC_AT,
                  leat_crc32c(0, bytes + LEAT_BATCH_CRC_FROM, total - LEAT_BATCH_CRC_FROM));
    assert_int_equal(leat_batch_check(bytes, total, &batch, NULL), LEAT_OK);
    leat_err rc = leat_log_append(fake->log, &batch, &sent.append, NULL);
    fake_settle(fake);
    assert_true(rc == LEAT_OK || rc == LEAT_E_AGAIN);
    if (rc == LEAT_E_AGAIN) return; /* there is room now */
    assert_int_equal(sent.rc, LEAT_OK);
    (*batches)++;
}

/* Goal: a segment whose offsets reach over more than 32 bits is read at each of them, written to and closed. */
static void place_of_an_offset_beyond_32_bits_of_its_segment(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    unsigned batches = 0;
    fake->options.settings.segment_bytes_max = LEAT_SEGMENT_BYTES_MAX;
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->head.seg == NULL || fake->log->head.seg->capacity < 2 * 1024 * 1024 ||
           fake->log->head.writer.used < 1024 * 1024)
        must_append_many(fake, &batches);
    assert_true(fake->log->next_offset - fake->log->head.seg->base_offset > UINT32_MAX);
    uint64_t end = leat_log_acked_offset(fake->log);
    assert_true(end == (uint64_t)batches * LEAT_RECORDS_PER_BATCH_MAX);
    for (int closed = 0; closed < 2; closed++) {
        for (unsigned i = 0; i < batches; i += 97) {
            uint64_t base = (uint64_t)i * LEAT_RECORDS_PER_BATCH_MAX;
            struct leat_locate_op op = {.what = LEAT_LOCATE_OFFSET, .value = (int64_t)base + 5};
            struct leat_read read = {.from = {base + 5}};
            assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
            assert_true(read.first.v == base);
        }
        fake->log->roll_wanted = true;
        log_mark_dirty(fake->log);
        fake_settle(fake);
        evict_all(fake);
    }
    free(buffer);
    fake_destroy(fake);
}

/* Goal: only where a batch begins is there something; 0 is a segment's first record, and the end is the end. */
static void place_between_batches_is_refused(void **state)
{
    (void)state;
    struct places places = places_make();
    for (int file = 0; file < 2; file++) {
        for (uint32_t skip = 1; skip < 400; skip += 13) {
            struct leat_position within = places.at[3];
            within.position += skip;
            refused(&places, within);
        }
        struct leat_position begin = {places.at[30].group, places.at[30].segment, 0};
        struct leat_locate_op op = what_is_at(&places, begin);
        assert_int_equal(op.rc, LEAT_OK);
        assert_true(op.offset.v <= 30 * RECORDS);
        assert_int_equal(op.position.segment, begin.segment);
        begin.group++;
        refused(&places, begin);
        struct leat_position end = end_of(&places);
        op = what_is_at(&places, end);
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, leat_log_acked_offset(places.fake->log));
        end.position += 8;
        refused(&places, end);
        refused(&places, (struct leat_position){6, 100, 0});
        refused(&places, (struct leat_position){UINT64_MAX / LEAT_SEGMENTS_PER_GROUP, UINT64_MAX,
                                                UINT32_MAX});
        evict_all(places.fake);
    }
    places_end(&places);
}

/* Goal: a record that is appended and not acked yet has no place: after a change of owner something else may lie
 * there. */
static void place_of_what_is_not_acked_is_refused(void **state)
{
    (void)state;
    struct fake *fake = fake_create(7, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    struct places places = {.fake = fake, .buffer = aligned_alloc(4096, BUFFER_BYTES)};
    must_append(fake, RECORDS, 100);
    struct leat_position end = end_of(&places);
    struct sent sent;
    assert_int_equal(append_try(fake, &sent, RECORDS, 100, -1, -1, -1), LEAT_OK);
    leat_log_turn_end(fake->log);
    assert_int_equal(sent.answers, 0);
    struct leat_locate_op op = what_is_at(&places, end);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, RECORDS);
    struct leat_position next = end;
    next.position = fake->log->head.writer.used; /* behind it, and a boundary once that is acked */
    refused(&places, next);
    fake_settle(fake);
    op = what_is_at(&places, next);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, 2 * RECORDS);
    places_end(&places);
}

static void on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    assert_int_equal(rc, LEAT_OK);
    *(bool *)trim->owner = true;
}

/* Goal: a place in records that were given up is refused, also in a segment that is there; records that are left are
 * found. */
static void place_of_what_was_given_up_is_refused(void **state)
{
    (void)state;
    struct places places = places_make();
    unsigned half = places.count / 2;
    while (places.at[half].segment == places.at[half - 1].segment)
        half++;
    half += 2; /* the third of its segment */
    bool trimmed = false;
    struct leat_error error;
    struct leat_log_trim trim = {
        .before = (uint64_t)half * RECORDS + 7, .on_done = on_trimmed, .owner = &trimmed};
    assert_int_equal(leat_log_trim_before(places.fake->log, &trim, &error), LEAT_OK);
    fake_settle(places.fake);
    assert_true(trimmed);
    for (int start = 0; start < 3; start++) {
        /* The batch that is cut is there with the records that are left. */
        struct leat_locate_op op = what_is_at(&places, places.at[half]);
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, trim.before);
        all_lead_back(&places, half + 1);
        for (unsigned i = 0; i < half; i++)
            if (places.at[i].position > 0) refused(&places, places.at[i]);
        struct leat_position begin = {places.at[half].group, places.at[half].segment, 0};
        op = what_is_at(&places, begin);
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, trim.before);
        reopen(places.fake, 0, 0, start == 1);
    }
    places_end(&places);
}

/* Goal: a log that waits for its end does not say that a place after its last record is none. Places of its records are
 * found, and a place in segments that an operator gave up goes on after these segments. */
static void place_of_a_log_with_holes(void **state)
{
    (void)state;
    struct places places = places_make();
    unsigned last = places.count - 1;
    struct leat_position behind = end_of(&places);
    behind.position += 8;
    leat_log_set_state(places.fake->log, LEAT_LOG_WAITING, "its end is missing");
    all_lead_back(&places, 0);
    assert_int_equal(what_is_at(&places, behind).rc, LEAT_E_LOG_INCOMPLETE);
    refused(&places, (struct leat_position){1, 0, 0});
    places.fake->log->state = LEAT_LOG_SERVING; /* as no log does: the rest is of another one */
    uint64_t gone = places.at[last].segment, end = leat_log_acked_offset(places.fake->log);
    reopen(places.fake, 1ull << gone, 1000, false);
    must_append(places.fake, RECORDS, 100);
    struct leat_locate_op op = what_is_at(&places, places.at[last]);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, end + 1000);
    places_end(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_leads_to_its_batch_for_good),
        cmocka_unit_test(place_between_batches_is_refused),
        cmocka_unit_test(place_behind_a_flipped_bit_is_no_lie),
        cmocka_unit_test(place_of_an_offset_beyond_32_bits_of_its_segment),
        cmocka_unit_test(time_behind_a_flipped_bit_is_no_lie),
        cmocka_unit_test(place_of_what_is_not_acked_is_refused),
        cmocka_unit_test(place_of_what_was_given_up_is_refused),
        cmocka_unit_test(place_of_a_log_with_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
