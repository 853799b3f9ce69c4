/* SPDX-License-Identifier: Apache-2.0 */
/* Where a reader must not pass over records, and where a reader must go on: ends of segments and of groups, batches
 * that can't be found, times of records that were given up, reads that wait together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "reopen.h"

static struct leat_entry *batch_of(struct leat_segment *seg)
{
    const struct leat_entry *entry;
    for (uint32_t at = 0; (entry = leat_entry_at(seg->buffer, seg->capacity, at)) != NULL;
         at += leat_entry_bytes(entry->payload_bytes))
        if (entry->type == LEAT_ENTRY_BATCH) return (struct leat_entry *)(void *)(seg->buffer + at);
    fail();
    return NULL;
}

static struct leat_segment *segment_of(const struct fake *fake, uint32_t index)
{
    return log_slot_at(fake->log, index)->seg;
}

static leat_err read_from(struct fake *fake, struct leat_read *read, uint64_t offset)
{
    *read = (struct leat_read){.from = {offset}};
    return read_once(fake, read, NULL);
}

/* Goal: an acked offset whose batch can't be found in its segment, closed or open, is damaged: its reader does not go
 * on in the next segment, and does not wait. */
static void batch_that_is_not_found_is_damaged(void **state)
{
    (void)state;
    static struct leat_read read;
    struct fake *fake = log_of(2);
    struct leat_segment *closed = segment_of(fake, 0);
    struct leat_entry *entry = batch_of(closed);
    uint64_t last = closed->next_offset - 1;
    struct leat_entry *lost = entry;
    for (struct leat_entry *next = entry; next->type != LEAT_ENTRY_CLOSE;
         next =
             (struct leat_entry *)(void *)((uint8_t *)next + leat_entry_bytes(next->payload_bytes)))
        if (next->type == LEAT_ENTRY_BATCH) lost = next;
    struct leat_entry before = *lost;
    lost->type = LEAT_ENTRY_TRAILER; /* the last batch vanishes */
    lost->record_count = 0;
    assert_int_equal(read_from(fake, &read, last), LEAT_E_DAMAGED);
    *lost = before;
    assert_int_equal(read_from(fake, &read, last), LEAT_OK);
    fake_destroy(fake);
    fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 100);
    struct sent sent;
    assert_int_equal(append(fake, &sent, 1, 100, -1, -1, -1), LEAT_OK); /* is not acked */
    entry = batch_of(segment_of(fake, 0));
    before = *entry;
    entry->type = LEAT_ENTRY_TRAILER;
    entry->record_count = 0;
    assert_int_equal(log_acked(fake->log), 1);
    assert_int_equal(read_from(fake, &read, 0), LEAT_E_DAMAGED);
    *entry = before;
    fake_settle(fake);
    fake_destroy(fake);
}

/* Goal: a place in a closed segment after a batch that says nonsense is damaged, not out of range, also where the
 * segment is the log's last. */
static void place_after_nonsense_is_damaged(void **state)
{
    (void)state;
    static struct leat_read read;
    struct fake *fake = log_of(2);
    reopen(fake, 0, 0, false);
    fake_settle(fake);
    struct leat_segment *last = segment_of(fake, fake->log->slot_count - 1);
    assert_int_equal(last->next_offset, log_acked(fake->log));
    struct leat_entry *entry = batch_of(last);
    uint64_t base = entry->base_offset;
    entry->base_offset = UINT32_MAX; /* as if it was not acked */
    read = (struct leat_read){.by_position = true,
                              .position = {last->id.v / 16, last->id.v, last->prefix_id.bytes}};
    assert_int_equal(read_once(fake, &read, NULL), LEAT_E_DAMAGED);
    assert_int_equal(read_from(fake, &read, base), LEAT_E_DAMAGED);
    entry->base_offset = base;
    fake_destroy(fake);
}

/* Goal: a reader by position goes on from the end of each segment to the next segment. At the end of a group the reader
 * is told where the next group begins. */
static void reader_by_position_goes_on_within_its_group(void **state)
{
    (void)state;
    static struct leat_read read;
    struct fake *fake = log_of(18);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    for (unsigned evicted = 0; evicted < 2; evicted++) {
        assert_int_equal(read_all(fake, 0, true), log_acked(fake->log));
        for (uint32_t i = 0; i < 18; i++) {
            const struct leat_segment *seg = segment_of(fake, i);
            read = (struct leat_read){
                .by_position = true, .position = {seg->id.v / 16, seg->id.v, seg->prefix_id.bytes}};
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
            if (seg->id.v % 16 == 15) {
                assert_int_equal(read.iov_count, 0);
                assert_int_equal(read.next_position.group, seg->id.v / 16 + 1);
                read = (struct leat_read){.by_position = true, .position = read.next_position};
                assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
            }
            assert_true(read.iov_count > 0);
            assert_int_equal(read.first.v, seg->next_offset);
        }
        evict_all(fake);
        if (evicted) continue;
        struct leat_segment *first = segment_of(fake, 0); /* comes back to memory alone */
        first->buffer = fake_buffer(first->capacity);
        fake->log->memory_bytes += first->capacity;
        memcpy(first->buffer, fake_held_of(fake, first)->file, first->capacity);
        read = (struct leat_read){.by_position = true, .position = {0, 0, first->prefix_id.bytes}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, first->next_offset);
        fake->log->memory_bytes -= first->capacity;
        free(first->buffer);
        first->buffer = NULL;
    }
    free(buffer);
    fake_destroy(fake);
}

/* Goal: a time of which only records that were given up, or that are not acked, are late enough has no record: the
 * answer is the log's end. */
static void time_of_what_nobody_reads_is_the_end(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    uint64_t bases[8];
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->next_segment < 3) {
        times.later_ms = fake->log->next_segment < 2 ? 5000 : 0;
        must_append(fake, 50, 100);
    }
    times.later_ms = 0;
    bases_of(fake, bases);
    int64_t late_ms = fake_wall(fake) + 4000;
    for (unsigned gap = 0; gap < 2; gap++) {
        /* The batch that made the log roll has the late time, too. */
        fake->log->first_offset = fake->log->trim_offset = bases[1] + 50;
        segment_of(fake, 1)->base_offset += gap;
        struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = late_ms};
        assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
        assert_int_equal(op.offset.v, log_acked(fake->log));
        segment_of(fake, 1)->base_offset -= gap;
    }
    fake_destroy(fake);
    fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 100);
    times.later_ms = 5000;
    struct sent sent;
    assert_int_equal(append(fake, &sent, 1, 100, -1, -1, -1), LEAT_OK); /* is not acked */
    times.later_ms = 0;
    leat_log_turn_end(fake->log);
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = fake_wall(fake) + 4000};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, 1);
    fake_settle(fake);
    fake_destroy(fake);
    free(buffer);
}

static void on_counted(struct leat_read *read)
{
    (*(unsigned *)read->owner)++;
}

/* Goal: all reads that wait are answered, in their order. */
static void reads_that_wait_together_are_all_answered(void **state)
{
    (void)state;
    struct fake *fake = log_of(3);
    static struct leat_read reads[3];
    unsigned answered = 0;
    reopen(fake, 0, 0, true);
    assert_true(log_front_is_unknown(fake->log));
    for (unsigned i = 0; i < 3; i++) {
        reads[i] = (struct leat_read){.on_done = on_counted, .owner = &answered};
        assert_int_equal(leat_log_front_await(fake->log, &reads[i]), LEAT_E_AGAIN);
    }
    fake_settle(fake);
    assert_int_equal(answered, 3);
    fake_destroy(fake);
}

/* Goal: a reader passes over records between segments that an operator gave up, also while a node is down. */
static void reader_passes_over_what_was_given_up(void **state)
{
    (void)state;
    static struct leat_read read;
    struct fake *fake = log_of(5);
    uint64_t bases[8];
    bases_of(fake, bases);
    reopen(fake, 1 << 2, 0, false);
    fake_settle(fake);
    log_slot_find(fake->log, 3)->front_given_up = true;
    fake->log->older_node_down = true;
    assert_int_equal(read_from(fake, &read, bases[2]), LEAT_OK);
    assert_int_equal(read.first.v, bases[3]);
    fake_destroy(fake);
}

/* Goal: a log that has no memory to remember a producer while it wakes stays cold, and knows all producers when it is
 * warm. */
static void log_that_wakes_without_memory_forgets_no_producer(void **state)
{
    (void)state;
    enum { PRODUCERS = 60 };
    for (unsigned fails = 1;; fails++) {
        struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
        struct sent sent;
        fake_open(fake, NULL, 0, NULL);
        for (int64_t producer = 0; producer < PRODUCERS; producer++) {
            assert_int_equal(append(fake, &sent, 1, 100, 100 + producer, 0, 0), LEAT_OK);
            fake_settle(fake);
        }
        reopen(fake, 0, 0, false);
        fake_settle(fake);
        assert_int_equal(append_try(fake, &sent, 1, 100, -1, -1, -1), LEAT_E_AGAIN);
        leat_mem_fail_at(fails);
        log_step_warm(fake->log);
        leat_mem_fail_at(0);
        bool unloaded = log_is_unloaded(fake->log);
        if (!unloaded) assert_int_equal(fake->log->producers.count, PRODUCERS);
        fake->now_us += 10 * 1000 * 1000;
        fake->dirty = true;
        fake_settle(fake);
        assert_false(log_is_unloaded(fake->log));
        assert_int_equal(fake->log->producers.count, PRODUCERS);
        fake_destroy(fake);
        if (!unloaded) break;
        assert_true(fails < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_that_is_not_found_is_damaged),
        cmocka_unit_test(place_after_nonsense_is_damaged),
        cmocka_unit_test(reader_by_position_goes_on_within_its_group),
        cmocka_unit_test(time_of_what_nobody_reads_is_the_end),
        cmocka_unit_test(reads_that_wait_together_are_all_answered),
        cmocka_unit_test(reader_passes_over_what_was_given_up),
        cmocka_unit_test(log_that_wakes_without_memory_forgets_no_producer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
