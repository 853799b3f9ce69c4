/* SPDX-License-Identifier: Apache-2.0 */
/* What is read back of producers, from a start entry or from batches, and when a log has no room for one more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "poke.h"

enum { STATES_MAX = LEAT_START_BYTES_MAX / sizeof(struct leat_producer_state) };

static struct leat_producers known;
static struct leat_producer_state *said; /* as many as there can be, and one more */

static int setup(void **state)
{
    (void)state;
    trace_begin();
    assert_int_equal(leat_producers_init(&known, 100, 5), LEAT_OK);
    said = calloc(STATES_MAX + 1, sizeof *said);
    for (int i = 0; i <= (int)STATES_MAX; i++)
        said[i] = (struct leat_producer_state){
            .producer_id = 10 + i, .batch_count = 1, .batches = {{.last_sequence = 3}}};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leat_producers_fini(&known);
    free(said);
    return 0;
}

static leat_err decode(uint32_t count, size_t bytes_there)
{
    leat_err rc =
        leat_producers_decode(&known, (const uint8_t *)said, bytes_there, count, count == 3);
    leat_mem_fail_at(0);
    return rc;
}

static struct leat_batch batch_of(int64_t id, int32_t sequence)
{
    return (struct leat_batch){.producer_id = id, .base_sequence = sequence, .record_count = 1};
}

static enum leat_producer_verdict check(int64_t id, int32_t sequence)
{
    struct leat_batch batch = batch_of(id, sequence);
    uint64_t offset;
    int64_t expected;
    return leat_producers_check(&known, &batch, &offset, &expected);
}

/* Goal: the number of a table, by which ids find their places, is odd, whatever number the table is given. */
static void number_of_a_table_is_odd(void **state)
{
    (void)state;
    for (uint64_t number = 4; number <= 7; number++) {
        struct leat_producers table;
        assert_int_equal(leat_producers_init(&table, 100, number), LEAT_OK);
        assert_int_equal(table.number, number <= 5 ? 5 : 7);
        leat_producers_fini(&table);
    }
}

/* Goal: what was known before is replaced, or is still known where what comes is wrong; either way the memory of the
 * other one is given back. */
static void states_replace_what_was_known(void **state)
{
    (void)state;
    enum { BYTES = sizeof *said };
    size_t before = leat_mem_bytes(LEAT_MEM_LOG);
    assert_int_equal(decode(2, 2 * BYTES), LEAT_OK);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);
    assert_int_equal(known.count, 2);
    assert_false(known.expired);
    assert_int_equal(check(10, 4), LEAT_PRODUCER_NEW);
    assert_int_equal(check(12, 4), LEAT_PRODUCER_GAP);
    said[2].zero[0] = 7; /* nobody's */
    assert_int_equal(decode(3, 3 * BYTES), LEAT_OK);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);
    assert_true(known.expired);
    assert_int_equal(check(12, 4), LEAT_PRODUCER_NEW);
    for (uint32_t i = 0; i <= known.slot_mask; i++)
        assert_int_equal(known.slots[i].zero[0], 0);
    /* Half of one is missing; one comes twice; one is no state; there is no memory. */
    assert_int_equal(decode(2, 2 * BYTES - 1), LEAT_E_CORRUPT);
    said[1].producer_id = 10;
    assert_int_equal(decode(2, 2 * BYTES), LEAT_E_CORRUPT);
    said[1].producer_id = -2;
    assert_int_equal(decode(2, 2 * BYTES), LEAT_E_CORRUPT);
    leat_mem_fail_at(1);
    assert_int_equal(decode(1, BYTES), LEAT_E_NO_MEMORY);
    assert_int_equal(known.count, 3);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);
    assert_int_equal(decode(0, 0), LEAT_OK);
    assert_int_equal(known.count, 0);
}

/* Goal: a start entry may have as many states of producers as there is room for, and no more; the other fields of a
 * state are the producer's own. */
static void states_are_no_more_than_an_entry_has(void **state)
{
    (void)state;
    enum { BYTES = sizeof *said };
    known.count_max = STATES_MAX;
    assert_int_equal(decode(STATES_MAX, STATES_MAX * BYTES), LEAT_OK);
    assert_int_equal(known.count, STATES_MAX);
    assert_int_equal(decode(STATES_MAX + 1, (STATES_MAX + 1) * BYTES), LEAT_E_CORRUPT);
    assert_int_equal(known.count, STATES_MAX);
    assert_int_equal(check(10 + STATES_MAX - 1, 4), LEAT_PRODUCER_NEW);
}

static leat_err replay(int64_t id, int32_t sequence)
{
    struct leat_batch batch = batch_of(id, sequence);
    leat_err rc = leat_producers_replay(&known, &batch, 100, 1000);
    leat_mem_fail_at(0);
    return rc;
}

/* Goal: the table grows for who is new to it, and for nobody else. */
static void replay_takes_memory_for_newcomers_alone(void **state)
{
    (void)state;
    for (int64_t id = 1; id <= 6; id++)
        assert_int_equal(replay(id, 0), LEAT_OK);
    uint32_t mask = known.slot_mask;
    assert_int_equal(mask, 7);
    leat_mem_fail_at(1);
    assert_int_equal(replay(-1, -1), LEAT_OK);
    leat_mem_fail_at(1);
    assert_int_equal(replay(6, 1), LEAT_OK);
    assert_int_equal(known.slot_mask, mask);
    leat_mem_fail_at(1);
    assert_int_equal(replay(7, 0), LEAT_E_NO_MEMORY);
    assert_int_equal(known.count, 6);
    assert_int_equal(check(7, 0), LEAT_PRODUCER_GROW);
    assert_int_equal(replay(7, 0), LEAT_OK);
    assert_int_equal(known.count, 7);
    assert_int_equal(known.slot_mask, 2 * mask + 1);
}

/* ---- start entries ---- */

/* Goal: only an entry that is whole, has its checksum and is of kind start is a start entry, and not another entry
 * whose checksum is that of the bytes at the segment's begin. */
static void start_entry_is_one_that_says_so(void **state)
{
    (void)state;
    static _Alignas(8) uint8_t segment[4096];
    struct leat_entry_writer writer;
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC};
    struct leat_start start = {.base_offset = 100, .first_offset = 90}, found;
    for (unsigned i = 0; i < 2; i++) {
        memset(segment, 0, sizeof segment);
        leat_entry_writer_init(&writer, segment, sizeof segment);
        (void)leat_entry_append(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header,
                                leat_crc32c(0, &header, sizeof header));
        assert_true(writer.used >= sizeof start);
        uint32_t crc =
            i ? leat_crc32c(0, segment, sizeof start) : leat_crc32c(0, &start, sizeof start);
        (void)leat_entry_append(&writer, i ? LEAT_ENTRY_TRIM : LEAT_ENTRY_START, 0, 0, &start,
                                sizeof start, crc);
        for (uint32_t count = 0; count <= writer.used; count++) {
            memset(&found, 0, sizeof found);
            bool is = leat_log_start_find(segment, count, &found);
            assert_int_equal(is, i == 0 && count == writer.used);
            assert_int_equal(found.base_offset, is ? 100 : 0);
        }
    }
    segment[writer.used - 1] ^= 1;
    assert_false(leat_log_start_find(segment, writer.used, &found));
}

/* ---- appending ---- */

static void begin(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
}

static void offer_as(int64_t producer)
{
    struct leat_batch batch;
    struct leat_error error = {0};
    struct sent *sent = &watch_sent[0];
    uint32_t total = fake_batch(bytes, sizeof bytes, 1, 100, 7000, producer, 0, 0);
    assert_int_equal(leat_batch_check(bytes, total, &batch, &error), LEAT_OK);
    *sent = (struct sent){.append = {.on_acked = watch_answer, .owner = sent}};
    leat_err rc = leat_log_append(it, &batch, &sent->append, &error);
    trace("%s%s%s%s%s next %llu\n", leat_err_name(rc), it->producers_wanted ? " table" : "",
          it->room_wanted ? " room" : "", fake->dirty ? " dirty" : "",
          error.text[0] != '\0' ? " told" : "", (unsigned long long)it->next_offset);
}

static void offer(void)
{
    offer_as(77);
}

static void offer_of_nobody(void)
{
    offer_as(-1);
}

/* Goal: where the table has no place for a new producer the table is to grow, and the batch comes again; a producer
 * that needs no place is appended. */
static void newcomer_waits_for_a_place_in_the_table(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begin, offer);
    CASE(begin, offer, it->producers.count = 5);
    CASE(begin, offer, it->producers.count = 6);
    CASE(begin, offer_of_nobody, it->producers.count = 6);
    CASE(begin, offer, it->producers.count = 6, it->producers_not_before_us = fake->now_us + 1);
    CASE(begin, offer, it->producers.count = 6, it->producers_not_before_us = fake->now_us);
    CASE(begin, offer, it->producers.count = it->producers.count_max = 6);
    TRACE_IS("(void)0: OK dirty next 2\n"
             "it->producers.count = 5: OK dirty next 2\n"
             "it->producers.count = 6: AGAIN table room dirty next 1\n"
             "it->producers.count = 6: OK dirty next 2\n"
             "it->producers.count = 6, it->producers_not_before_us = fake->now_us + 1: NO_MEMORY "
             "told next 1\n"
             "it->producers.count = 6, it->producers_not_before_us = fake->now_us: AGAIN table "
             "room dirty next 1\n"
             "it->producers.count = it->producers.count_max = 6: TOO_MANY_PRODUCERS told next 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_of_a_table_is_odd),
        cmocka_unit_test_setup_teardown(states_replace_what_was_known, setup, teardown),
        cmocka_unit_test_setup_teardown(states_are_no_more_than_an_entry_has, setup, teardown),
        cmocka_unit_test_setup_teardown(replay_takes_memory_for_newcomers_alone, setup, teardown),
        TRACE_TEST(start_entry_is_one_that_says_so),
        TRACE_TEST(newcomer_waits_for_a_place_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
