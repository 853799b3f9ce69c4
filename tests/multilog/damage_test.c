/* SPDX-License-Identifier: Apache-2.0 */
/* One log whose bytes are damaged on the disk: what its readers are told, also while other nodes are asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reopen.h"

/* Bytes from the file are those from memory; a flipped bit is never shown. */
static void read_from_file_equals_memory_and_names_damage(void **state)
{
    (void)state;
    struct fake *fake = fake_create(6, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 256 * 1024;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 100, 100);
    evict_all(fake);
    uint64_t before = fake->reads_done;
    assert_int_equal(read_all(fake, 0, false), 10000);
    assert_int_equal(read_all(fake, 0, true), 10000);
    assert_true(fake->reads_done > before);
    struct fake_held *held = &fake->held[1];
    assert_true(held->closed_row && held->seg->buffer == NULL);
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    unsigned damaged = 0;
    for (uint32_t at = 0; at < held->seg->prefix_id.bytes; at += 97) {
        held->file[at] ^= 16;
        bool done = false;
        struct leat_read read = {.from = {held->seg->base_offset},
                                 .max_bytes = 1024 * 1024,
                                 .disk_buffer = buffer,
                                 .disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024,
                                 .on_done = on_read,
                                 .owner = &done};
        uint64_t next = read.from.v;
        while (next < held->seg->next_offset) {
            read.from.v = next;
            done = false;
            assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
            while (!done)
                assert_true(fake_deliver(fake));
            if (read.rc == LEAT_E_DAMAGED) {
                assert_int_equal(read.next_position.segment, held->seg->id.v);
                damaged++;
                break;
            }
            assert_int_equal(read.rc, LEAT_OK);
            for (unsigned i = 0; i < read.iov_count; i++) {
                struct leat_batch batch;
                assert_int_equal(
                    leat_batch_check(read.iovs[i].base, read.iovs[i].bytes, &batch, NULL), LEAT_OK);
                assert_int_equal(batch.base_offset, next);
                next += batch.record_count;
            }
        }
        held->file[at] ^= 16;
    }
    assert_true(damaged > 100);
    free(buffer);
    fake_destroy(fake);
}

static unsigned repairs_asked;
static leat_err others_are_asked;
static leat_err on_damaged(void *owner, const struct leat_segment *seg)
{
    (void)owner, (void)seg;
    repairs_asked++;
    return others_are_asked;
}

/* Goal: while other nodes are asked for a damaged segment its readers wait, or are told to try again, and get the bytes
 * once these are there. Where no node has the segment its readers are told of the damage, and nodes are not asked again
 * at once. */
static void damaged_segment_is_waited_for_while_others_are_asked(void **state)
{
    (void)state;
    struct fake *fake = fake_create(6, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 256 * 1024;
    fake->options.events.on_damaged = on_damaged;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 100, 100);
    evict_all(fake);
    struct fake_held *held = &fake->held[1];
    assert_true(held->closed_row && held->seg->buffer == NULL);
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    uint32_t at = held->seg->prefix_id.bytes / 2;
    struct leat_read read = {.from = {held->seg->next_offset - 1}}, waits = read;
    bool done = false;
    repairs_asked = 0;
    others_are_asked = LEAT_OK;
    for (uint32_t i = 0; i < held->seg->prefix_id.bytes; i += 64)
        held->file[i] ^= 16;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    assert_int_equal(repairs_asked, 1);
    assert_true(leat_segment_is_damaged(held->seg));
    leat_log_on_damaged(fake->log, held->seg, true); /* who finds it again asks nobody again */
    assert_int_equal(repairs_asked, 1);
    waits.max_bytes = 1024;
    waits.on_done = on_read;
    waits.owner = &done;
    assert_int_equal(leat_log_read(fake->log, &waits), LEAT_E_AGAIN);
    fake_settle(fake);
    assert_false(done);
    struct leat_prefix_id wrong = held->seg->prefix_id;
    wrong.crc ^= 1;
    assert_null(leat_log_repair_begin(fake->log, held->seg->id, wrong));
    assert_ptr_equal(leat_log_repair_begin(fake->log, held->seg->id, held->seg->prefix_id),
                     held->seg);
    for (uint32_t i = 0; i < held->seg->prefix_id.bytes; i += 64)
        held->file[i] ^= 16;
    assert_true(leat_log_repair_end(fake->log, held->seg->id, LEAT_OK));
    fake_settle(fake);
    assert_true(done);
    assert_int_equal(waits.rc, LEAT_E_NO_MEMORY); /* it goes on, and asks for a buffer */
    assert_false(leat_segment_is_damaged(held->seg));
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(repairs_asked, 1);
    /* Others are asked in vain. */
    for (uint32_t i = at % 64; i < held->seg->prefix_id.bytes; i += 64)
        held->file[i] ^= 16;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    leat_log_repair_give_up(fake->log, held->seg->id);
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next.v, held->seg->next_offset);
    assert_int_equal(repairs_asked, 2);
    free(buffer);
    fake_destroy(fake);
}

/* Goal: a segment whose bytes never got to its file is not read from the file, whatever lies there. Its readers wait
 * for another node's copy, and are told of damage where no node has a copy. */
static void unwritten_segment_is_not_read_from_its_place(void **state)
{
    (void)state;
    struct fake *fake = fake_create(6, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 256 * 1024;
    fake->options.events.on_damaged = on_damaged;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 100, 100);
    evict_all(fake);
    struct fake_held *held = &fake->held[1];
    assert_true(held->closed_row && held->seg->buffer == NULL);
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    struct leat_read read = {.from = {held->seg->base_offset}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    /* Its place has batches of these very offsets. */
    held->seg->integrity = LEAT_INTEGRITY_MISSING;
    uint64_t reads = fake->reads_done;
    repairs_asked = 0;
    others_are_asked = LEAT_OK;
    read = (struct leat_read){.from = {held->seg->base_offset}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    assert_int_equal(repairs_asked, 1);
    char why[128];
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why),
                     LEAT_OK); /* others may have it */
    leat_log_repair_give_up(fake->log, held->seg->id);
    read = (struct leat_read){.from = {held->seg->base_offset}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next.v, held->seg->next_offset);
    assert_int_equal(fake->reads_done, reads);
    fake->now_us += LEAT_LOG_REPAIR_AGAIN_US;
    read = (struct leat_read){.from = {held->seg->base_offset}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    assert_int_equal(repairs_asked, 2);
    /* It was asked for in vain once: it stays named until it is here. */
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_E_DAMAGED);
    assert_non_null(leat_log_repair_begin(fake->log, held->seg->id, held->seg->prefix_id));
    assert_false(leat_log_repair_end(fake->log, held->seg->id, LEAT_E_DISK));
    assert_true(held->seg->integrity == LEAT_INTEGRITY_MISSING);
    /* The log names the segment as long as the disk refuses it, so that operators see it; no loss can be accepted. */
    uint64_t at = 0;
    struct leat_log_damage damage;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_E_DAMAGED);
        assert_non_null(strstr(why, "segment 1 ("));
    }
    assert_false(leat_log_damage_find(fake->log, &at, &damage));
    assert_non_null(leat_log_repair_begin(fake->log, held->seg->id, held->seg->prefix_id));
    assert_true(leat_log_repair_end(fake->log, held->seg->id, LEAT_OK));
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_OK);
    assert_false(held->seg->integrity == LEAT_INTEGRITY_MISSING);
    read = (struct leat_read){.from = {held->seg->base_offset}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_true(fake->reads_done > reads);
    free(buffer);
    fake_destroy(fake);
}

static void on_skipped(void *arg, struct leat_log *log)
{
    (void)log;
    ++*(unsigned *)arg;
}

/* Goal: an operator accepts the loss of a segment that all nodes are asked for again: it is given up, and not
 * waited for any more. One whose bytes are just being written is left for the next try. */
static void lost_segment_is_given_up_while_others_are_asked_again(void **state)
{
    (void)state;
    struct fake *fake = fake_create(6, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 256 * 1024;
    fake->options.events.on_damaged = on_damaged;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 100, 100);
    evict_all(fake);
    struct fake_held *held = &fake->held[1];
    unsigned skipped = 0;
    char why[128];
    others_are_asked = LEAT_OK;
    leat_log_on_damaged(fake->log, held->seg, false);
    leat_log_repair_give_up(fake->log, held->seg->id);
    fake->now_us += LEAT_LOG_REPAIR_AGAIN_US;
    leat_log_on_damaged(fake->log, held->seg, false);
    assert_non_null(leat_log_repair_begin(fake->log, held->seg->id, held->seg->prefix_id));
    leat_log_skip_missing(fake->log, on_skipped, &skipped);
    fake_settle(fake);
    assert_int_equal(skipped, 1);
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_E_DAMAGED);
    assert_false(leat_log_repair_end(fake->log, held->seg->id, LEAT_E_NOT_FOUND));
    leat_log_skip_missing(fake->log, on_skipped, &skipped);
    fake_settle(fake);
    assert_int_equal(skipped, 2);
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_OK);
    assert_null(leat_log_repair_begin(fake->log, held->seg->id, held->seg->prefix_id));
    fake_destroy(fake);
}

/* Goal: a reader is told that a segment is damaged only where no node has it. The reader is to try again where other
 * nodes can't be asked now, or where the disk refuses the bytes that they gave: a reader that is told of damage goes on
 * behind the segment. */
static void damage_is_told_only_where_nobody_has_the_segment(void **state)
{
    (void)state;
    static const struct {
        leat_err asked, written, told;
    } cases[] = {
        {LEAT_E_NOT_FOUND, LEAT_OK, LEAT_E_DAMAGED}, /* nothing is written: that is not looked at */
        {LEAT_E_NO_MEMORY, LEAT_OK, LEAT_E_STARTING}, {LEAT_E_STARTING, LEAT_OK, LEAT_E_STARTING},
        {LEAT_OK, LEAT_E_DISK, LEAT_E_STARTING},      {LEAT_OK, LEAT_E_DISK_FULL, LEAT_E_STARTING},
        {LEAT_OK, LEAT_E_INVALID, LEAT_E_DAMAGED},
    };
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake *fake = fake_create(8, LEAT_DURABILITY_MEMORY);
        fake->options.settings.segment_bytes_max = 256 * 1024;
        fake->options.events.on_damaged = on_damaged;
        fake_open(fake, NULL, 0, NULL);
        for (int j = 0; j < 100; j++)
            must_append(fake, 100, 100);
        evict_all(fake);
        struct fake_held *held = &fake->held[1];
        struct leat_segment_id id = held->seg->id;
        struct leat_read read = {.from = {held->seg->next_offset - 1}};
        for (uint32_t at = 0; at < held->seg->prefix_id.bytes; at += 64)
            held->file[at] ^= 16;
        repairs_asked = 0;
        others_are_asked = cases[i].asked;
        leat_err told = read_once(fake, &read, buffer);
        if (cases[i].asked == LEAT_OK) {
            assert_int_equal(told, LEAT_E_STARTING);
            assert_non_null(leat_log_repair_begin(fake->log, id, held->seg->prefix_id));
            struct leat_read waits = {.from = read.from, .max_bytes = 1024, .on_done = on_read};
            bool done = false;
            waits.owner = &done;
            assert_int_equal(leat_log_read(fake->log, &waits), LEAT_E_AGAIN);
            bool over = leat_log_repair_end(fake->log, id, cases[i].written);
            assert_int_equal(over, cases[i].written == LEAT_E_INVALID);
            fake_settle(fake);
            assert_true(done); /* the read does not wait for the disk, as its whole fetch would */
            if (!over) {
                assert_int_equal(waits.rc, LEAT_E_STARTING);
                waits = (struct leat_read){.from = read.from, .max_bytes = 1024};
                assert_int_equal(leat_log_read(fake->log, &waits), LEAT_OK); /* at once */
                assert_int_equal(waits.rc, LEAT_E_STARTING);
            }
            told = read_once(fake, &read, buffer);
        }
        assert_int_equal(told, cases[i].told);
        assert_int_equal(repairs_asked, 1);
        if (told == LEAT_E_STARTING) { /* until it is there */
            for (uint32_t at = 0; at < held->seg->prefix_id.bytes; at += 64)
                held->file[at] ^= 16;
            others_are_asked = LEAT_OK;
            leat_log_on_damaged(fake->log, held->seg, true);
            assert_non_null(leat_log_repair_begin(fake->log, id, held->seg->prefix_id));
            assert_true(leat_log_repair_end(fake->log, id, LEAT_OK));
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        }
        fake_destroy(fake);
    }
    free(buffer);
}

/* Goal: at level disk what was acked last is named by a trailer behind it, half a second later, once: else a bit that
 * flips in it would look as if it had never been written whole. */
static void last_run_is_closed_by_a_trailer(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    fake_settle(fake);
    const struct log_open *head = &fake->log->head;
    must_append(fake, 10, 100);
    fake_settle(fake);
    uint32_t used = head->writer.used;
    assert_int_equal(head->acked_bytes, used);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(head->writer.used, used); /* more may follow */
    for (unsigned i = 0; i < 3; i++) {
        fake->now_us += LOG_RUN_CLOSE_US;
        leat_log_care(fake->log);
        fake_settle(fake);
        assert_int_equal(head->writer.used, used + LEAT_ENTRY_HEADER_BYTES);
        assert_int_equal(head->acked_bytes, head->writer.used);
    }
    struct leat_entry trailer;
    memcpy(&trailer, head->seg->buffer + used, sizeof trailer);
    assert_int_equal(trailer.type, LEAT_ENTRY_TRAILER);
    assert_int_equal(trailer.base_offset, used); /* so much is acked, it says */
    fake_destroy(fake);
}

/* Goal: a caller that reports damage hears whether the bytes are lost: not while other nodes are asked for the first
 * time, and still when they are asked again. */
static void reporter_of_damage_hears_whether_it_is_lost(void **state)
{
    (void)state;
    struct fake *fake = log_of(3);
    const struct leat_segment *one = log_slot_at(fake->log, 0)->seg,
                              *other = log_slot_at(fake->log, 1)->seg;
    fake->log->options.events.on_damaged = NULL; /* a server alone */
    assert_true(leat_log_on_damaged(fake->log, one, false));
    fake->log->options.events.on_damaged = on_damaged;
    others_are_asked = LEAT_OK;
    for (int i = 0; i < 2; i++)
        assert_false(leat_log_on_damaged(fake->log, other, false));
    leat_log_repair_give_up(fake->log, other->id);
    assert_true(leat_log_on_damaged(fake->log, other, false));
    fake->now_us += LEAT_LOG_REPAIR_AGAIN_US;
    assert_true(leat_log_on_damaged(fake->log, other, false));
    assert_int_equal(log_slot_at(fake->log, 1)->repair, LOG_REPAIR_LOST_SOUGHT);
    log_slot_at(fake->log, 2)->dropping = true;
    assert_false(leat_log_on_damaged(fake->log, log_slot_at(fake->log, 2)->seg, false));
    log_slot_at(fake->log, 2)->dropping = false;
    fake_destroy(fake);
}

/* Goal: where there was no memory to ask for a damaged segment's bytes the log's care asks again, though nobody reads
 * the segment; once for each segment that is not given up. */
static void damaged_segments_are_asked_for_again_without_a_reader(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    fake->log->options.events.on_damaged = on_damaged;
    others_are_asked = LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < 3; i++)
        assert_false(leat_log_on_damaged(fake->log, log_slot_at(fake->log, i)->seg, true));
    log_slot_at(fake->log, 2)->given_up = true;
    repairs_asked = 0;
    leat_log_care(fake->log);
    assert_int_equal(repairs_asked, 1); /* no memory for one: the other waits, too */
    others_are_asked = LEAT_OK;
    for (int i = 0; i < 2; i++)
        leat_log_care(fake->log);
    assert_int_equal(repairs_asked, 3);
    assert_int_equal(log_slot_at(fake->log, 0)->repair, LOG_REPAIR_SOUGHT);
    assert_int_equal(log_slot_at(fake->log, 1)->repair, LOG_REPAIR_SOUGHT);
    assert_int_equal(log_slot_at(fake->log, 2)->repair, LOG_REPAIR_NONE);
    others_are_asked = LEAT_E_STARTING;
    assert_false(leat_log_on_damaged(fake->log, log_slot_at(fake->log, 2)->seg, true));
    log_slot_at(fake->log, 2)->given_up = false;
    others_are_asked = LEAT_E_NOT_FOUND;
    leat_log_care(fake->log);
    assert_int_equal(log_slot_at(fake->log, 2)->repair, LOG_REPAIR_LOST);
    fake_destroy(fake);
}

/* Goal: the log's care asks for a damaged segment only if a question could not be asked before, and if the segment is
 * closed, stays, and waits for no answer and has none. */
static void care_asks_for_no_other_segment(void **state)
{
    (void)state;
    enum { ASKED, ALL_SOUGHT, LOST, OPEN, DROPPING, CASES };
    struct fake *fake = log_of(4);
    struct log_slot *slot = log_slot_at(fake->log, 0);
    const struct log_slot before = *slot;
    fake->log->options.events.on_damaged = on_damaged;
    others_are_asked = LEAT_OK;
    leat_segment_damage_found(slot->seg);
    for (unsigned i = 0; i < CASES; i++) {
        repairs_asked = 0;
        fake->log->unsought = i != ALL_SOUGHT;
        slot->closed = i != OPEN;
        slot->dropping = i == DROPPING;
        if (i == LOST) slot->repair = LOG_REPAIR_LOST;
        log_repairs_ask(fake->log);
        assert_int_equal(repairs_asked, i == ASKED);
        assert_false(fake->log->unsought);
        *slot = before;
    }
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_from_file_equals_memory_and_names_damage),
        cmocka_unit_test(last_run_is_closed_by_a_trailer),
        cmocka_unit_test(damaged_segment_is_waited_for_while_others_are_asked),
        cmocka_unit_test(unwritten_segment_is_not_read_from_its_place),
        cmocka_unit_test(lost_segment_is_given_up_while_others_are_asked_again),
        cmocka_unit_test(damage_is_told_only_where_nobody_has_the_segment),
        cmocka_unit_test(reporter_of_damage_hears_whether_it_is_lost),
        cmocka_unit_test(damaged_segments_are_asked_for_again_without_a_reader),
        cmocka_unit_test(care_asks_for_no_other_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
