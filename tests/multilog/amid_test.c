/* SPDX-License-Identifier: Apache-2.0 */
/* What happens while a log reads a file or waits: its head goes on, the log ends, the file is shorter than recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "reopen.h"

static void *buffer;

static int setup(void **state)
{
    (void)state;
    buffer = aligned_alloc(4096, BUFFER_BYTES);
    memset(buffer, 0, BUFFER_BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(buffer);
    return 0;
}

/* A read that counts its answers, begun. */
static leat_err read_begin(struct fake *fake, struct leat_read *read, unsigned *answers)
{
    *answers = 0;
    read->max_bytes = 64 * 1024;
    read->disk_buffer = buffer;
    read->disk_buffer_bytes = BUFFER_BYTES;
    read->on_done = on_read_counted;
    read->owner = answers;
    return leat_log_read(fake->log, read);
}

/* ---- files that end too soon ---- */

/* Goal: a file that is shorter than the segment's record is damaged from its end on; where it ends with the segment,
 * within a block, nothing is. */
static void file_that_ends_too_soon_is_damaged(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    evict_all(fake);
    struct leat_segment *seg = log_slot_at(fake->log, 0)->seg;
    assert_null(seg->buffer);
    assert_true(seg->prefix_id.bytes % 4096 != 0);
    for (uint64_t from = 0; from < seg->next_offset;) {
        struct leat_read read = {.from = {from}};
        fake->files_end = seg->prefix_id.bytes;
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_true(read.next.v > from);
        from = read.next.v;
    }
    struct leat_read place = {.by_position = true, .position = {0, 0, 0}};
    fake->files_end = 8192;
    assert_int_equal(read_once(fake, &place, buffer), LEAT_E_DAMAGED);
    assert_int_equal(place.next.v, seg->next_offset);
    assert_int_equal(place.next_position.position, 8192);
    fake_destroy(fake);
}

/* Goal: of a segment that an operator gave up the read goes on in the next, and is answered once, when that was
 * read: whether the file ends too soon, or its bytes never reached it. */
static void read_of_what_was_given_up_is_answered_once(void **state)
{
    (void)state;
    for (unsigned missing = 0; missing < 2; missing++) {
        struct fake *fake = log_of(3);
        evict_all(fake);
        struct log_slot *slot = log_slot_at(fake->log, 0);
        struct leat_segment *next = log_slot_at(fake->log, 1)->seg;
        struct leat_read read = {.from = {0}};
        unsigned answers;
        slot->given_up = true;
        if (missing) slot->seg->integrity = LEAT_INTEGRITY_MISSING;
        if (!missing) fake->files_end = 4096;
        assert_int_equal(read_begin(fake, &read, &answers), LEAT_E_AGAIN);
        assert_int_equal(answers, 0);
        if (!missing) {
            assert_true(fake_deliver(fake)); /* of the first segment */
            assert_int_equal(answers, 0);
            fake->files_end = 0;
        }
        while (fake_deliver(fake))
            continue;
        assert_int_equal(answers, 1);
        assert_int_equal(read.rc, LEAT_OK);
        assert_int_equal(read.first.v, next->base_offset);
        fake->made_up = true;
        fake_destroy(fake);
    }
}

/* ---- a hibernated head ---- */

static struct fake *hibernated(void)
{
    struct fake *fake = log_of(1);
    must_append(fake, 3, 100);
    fake->now_us += fake->options.hibernate_after_us;
    leat_log_care(fake->log); /* the log drops the segment that it has reserved */
    fake_settle(fake);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_true(log_is_hibernated(fake->log));
    return fake;
}

/* Goal: a read of a head that is being hibernated waits until the file of this node has the bytes, and not for the
 * copies; the head stays as it is until these are hibernated, too. */
static void head_is_read_while_its_copies_are_hibernated(void **state)
{
    (void)state;
    struct fake *fake = log_of(1);
    must_append(fake, 3, 100);
    fake->now_us += fake->options.hibernate_after_us;
    leat_log_care(fake->log); /* the log drops the segment that it has reserved */
    fake_settle(fake);
    fake->copies_hibernate_later = true;
    fake->delay_us_max = 0;
    leat_log_care(fake->log);
    assert_int_equal(fake->log->hibernating, LOG_HIBERNATING);
    struct leat_read read = {.from = {fake->log->next_offset - 3}};
    unsigned answers;
    assert_int_equal(read_begin(fake, &read, &answers), LEAT_E_AGAIN);
    fake_turn_end(fake);
    assert_false(leat_list_empty(&fake->log->stalled_reads));
    assert_int_equal(fake->queued, 1); /* HIBERNATE */
    assert_true(fake_deliver(fake));
    assert_int_equal(fake->log->hibernating, LOG_HIBERNATED_HERE);
    assert_int_equal(fake->queued, 2);
    struct fake_event copies = fake->queue[0]; /* a backup is slow */
    assert_ptr_equal(copies.req, &fake->log->hibernate);
    fake->queue[0] = fake->queue[--fake->queued];
    assert_true(fake_deliver(fake));
    assert_int_equal(answers, 1);
    assert_int_equal(read.rc, LEAT_OK);
    assert_int_equal(read.record_count, 3);
    assert_false(log_is_quiet(fake->log));
    struct sent sent;
    assert_int_equal(append_try(fake, &sent, 5, 100, -1, -1, -1), LEAT_E_AGAIN);
    fake_turn_end(fake);
    assert_int_equal(fake->queued, 0); /* nothing else is asked for the segment */
    fake->queue[fake->queued++] = copies;
    fake_settle(fake);
    assert_int_equal(fake->log->hibernating, LOG_AWAKE);
    fake_destroy(fake);
}

/* Goal: a reader at the end of a hibernated head, whose file is being read, gets the batch that was appended meanwhile.
 * A reader of the earlier batches gets them, once. */
static void head_that_goes_on_while_its_file_is_read(void **state)
{
    (void)state;
    for (unsigned at_end = 0; at_end < 2; at_end++) {
        struct fake *fake = hibernated();
        struct leat_position end = log_end_position(fake->log), begin = end;
        uint64_t offset = fake->log->next_offset, base = fake->log->head.seg->base_offset;
        begin.position = 0;
        struct leat_read read = {.by_position = true, .position = at_end ? end : begin};
        unsigned answers;
        fake->delay_us_max = 0;
        assert_int_equal(read_begin(fake, &read, &answers), LEAT_E_AGAIN);
        assert_int_equal(fake->queued, 1);
        struct fake_event reading = fake->queue[--fake->queued]; /* the disk is slow */
        must_append(fake, 5, 100);
        assert_false(log_is_hibernated(fake->log));
        fake->queue[fake->queued++] = reading;
        while (fake_deliver(fake))
            continue;
        assert_int_equal(answers, 1);
        assert_int_equal(read.rc, LEAT_OK);
        assert_int_equal(read.first.v, at_end ? offset : base);
        assert_int_equal(read.next.v, at_end ? offset + 5 : offset);
        assert_int_equal(read.record_count, read.next.v - read.first.v);
        if (read.pinned) leat_segment_unpin(read.pinned, &fake->post);
        fake_destroy(fake);
    }
}

/* Goal: a log that was stopped while its head is hibernated ends where the head ends: the bytes of the head are in its
 * file alone. */
static void hibernated_log_that_stops_ends_where_it_was_hibernated(void **state)
{
    (void)state;
    struct fake *fake = hibernated();
    struct leat_log_tail tail;
    const struct leat_segment *head = fake->log->head.seg;
    log_fail(fake->log, LEAT_E_DISK, "for a test");
    leat_log_end(fake->log, &tail);
    assert_int_equal(tail.next_segment, head->id.v + 1);
    assert_true(leat_prefix_id_equal(tail.previous, head->prefix_id));
    assert_int_equal(tail.next_offset, fake->log->next_offset);
    fake_destroy(fake);
}

/* ---- a log that ends ---- */

/* Goal: a stream that is deleted goes once its last read is done, and that is told so. */
static void deleted_log_waits_for_the_read_of_its_file(void **state)
{
    (void)state;
    struct fake *fake = log_of(1);
    evict_all(fake);
    struct leat_read read = {.from = {0}};
    unsigned answers;
    assert_int_equal(read_begin(fake, &read, &answers), LEAT_E_AGAIN);
    assert_int_equal(fake->queued, 1);
    struct fake_event reading = fake->queue[--fake->queued]; /* the disk is slow */
    leat_log_delete(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(answers == 0 && !fake->ended);
    fake->queue[fake->queued++] = reading;
    fake_settle(fake);
    assert_int_equal(answers, 1);
    assert_int_equal(read.rc, LEAT_E_UNKNOWN_STREAM);
    assert_true(fake->ended);
    leat_log_destroy(&fake->log);
    fake_destroy(fake);
}

/* Goal: the coordinator is not told that a log begins whose stream was deleted before its first entry was safe. */
static void deleted_log_is_not_opened(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    struct sent sent;
    fake->open_at_once = false;
    fake_open(fake, NULL, 0, NULL);
    assert_int_equal(append_try(fake, &sent, 1, 10, -1, -1, -1), LEAT_E_AGAIN);
    fake_turn_end(fake);
    while (!fake->log->commit_count)
        assert_true(fake_deliver(fake));
    assert_false(fake->opening);
    fake_delete_log(fake);
    assert_false(fake->opening);
    fake_destroy(fake);
}

/* ---- memory that is given back ---- */

/* Goal: a look-up of a record within a batch in memory holds the segment no longer than the look-up takes. */
static void look_up_lets_go_of_the_segment(void **state)
{
    (void)state;
    struct fake *fake = log_of(1);
    struct leat_segment *seg = log_slot_at(fake->log, 0)->seg;
    int64_t time_ms = seg->max_timestamp_ms;
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = time_ms};
    assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
    assert_int_equal(op.timestamp_ms, time_ms);
    for (uint32_t i = 0; i < fake->log->slot_count; i++)
        assert_int_equal(atomic_load(&log_slot_at(fake->log, i)->seg->pins), 0);
    fake_destroy(fake);
}

static void on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    (void)rc;
    (*(unsigned *)trim->owner)++;
}

/* Goal: no waiting trim is forgotten while another trim is looked at. */
static void trims_that_wait_are_all_answered(void **state)
{
    (void)state;
    unsigned answers = 0;
    struct leat_log_trim trims[3];
    struct fake *fake = log_of(2);
    fake->memory_is_safe = false; /* so the entry that says where the log begins takes its time */
    for (unsigned i = 0; i < 3; i++) {
        trims[i] =
            (struct leat_log_trim){.before = 10 + i, .on_done = on_trimmed, .owner = &answers};
        assert_int_equal(leat_log_trim_before(fake->log, &trims[i], NULL), LEAT_OK);
    }
    fake_turn_end(fake); /* they are looked at, and wait */
    assert_int_equal(answers, 0);
    log_mark_dirty(fake->log);
    fake_turn_end(fake);
    assert_int_equal(answers, 0);
    fake_settle(fake);
    assert_int_equal(answers, 3);
    fake_destroy(fake);
}

/* Goal: where a trim left a log beginning amid a compressed batch, a time is found from the first offset on. */
static void time_is_found_from_first_offset_on(void **state)
{
    (void)state;
    struct fake *fake = fake_create(7, LEAT_DURABILITY_MEMORY);
    fake_open(fake, NULL, 0, NULL);
    int64_t begin = fake_wall(fake);
    must_append(fake, 1, 10);
    compressed_append(fake, begin, 20);
    unsigned answers = 0;
    struct leat_log_trim trim = {.before = 8, .on_done = on_trimmed, .owner = &answers};
    assert_int_equal(leat_log_trim_before(fake->log, &trim, NULL), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(answers, 1);
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 3};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    while (leat_locate_step(&op) == LEAT_E_AGAIN)
        continue;
    assert_int_equal(op.offset.v, 8);
    assert_int_equal(op.timestamp_ms, begin + 7);
    fake_destroy(fake);
}

int main(void)
{
#define AMID_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        AMID_TEST(file_that_ends_too_soon_is_damaged),
        AMID_TEST(read_of_what_was_given_up_is_answered_once),
        AMID_TEST(head_is_read_while_its_copies_are_hibernated),
        AMID_TEST(head_that_goes_on_while_its_file_is_read),
        AMID_TEST(hibernated_log_that_stops_ends_where_it_was_hibernated),
        AMID_TEST(deleted_log_waits_for_the_read_of_its_file),
        AMID_TEST(deleted_log_is_not_opened),
        AMID_TEST(look_up_lets_go_of_the_segment),
        AMID_TEST(trims_that_wait_are_all_answered),
        AMID_TEST(time_is_found_from_first_offset_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
