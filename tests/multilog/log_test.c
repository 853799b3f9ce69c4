/* One log step by step: what each call promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "steps.h"
#include "wire/message.h"

/* Read everything from an offset on; returns records seen, checks that offsets are dense. */
static uint64_t read_all(struct fake *fake, uint64_t from, bool by_position)
{
    static struct leat_read read;
    bool done = false;
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    uint64_t expected = from;
    struct leat_position place = {0};
    place.segment = fake->log->first_segment;
    place.group = place.segment / 16;
    for (;;) {
        read = (struct leat_read){.from = {expected},
                                  .by_position = by_position,
                                  .position = place,
                                  .max_bytes = 64 * 1024,
                                  .disk_buffer = buffer,
                                  .disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024,
                                  .on_done = on_read,
                                  .owner = &done};
        done = false;
        if (leat_log_read(fake->log, &read) == LEAT_E_AGAIN)
            while (!done)
                assert_true(fake_deliver(fake));
        assert_int_equal(read.rc, LEAT_OK);
        for (unsigned i = 0; i < read.iov_count; i++) {
            struct leat_batch batch;
            leat_err rc = leat_batch_check(read.iovs[i].base, read.iovs[i].bytes, &batch, NULL);
            assert_int_equal(rc, LEAT_OK);
            assert_int_equal(batch.base_offset, expected);
            assert_int_equal(batch.leader_epoch, 7);
            expected += batch.record_count;
        }
        assert_int_equal(read.next.v, expected);
        if (read.pinned) leat_segment_unpin(read.pinned, &fake->post);
        place = read.next_position;
        if (read.iov_count == 0) break;
    }
    free(buffer);
    return expected - from;
}

static void append_first_batch_is_acked_only_after_opened(void **state)
{
    (void)state;
    struct fake *fake = fake_create(1, LEAT_DURABILITY_MEMORY);
    fake->open_at_once = false;
    fake_open(fake, NULL, 0, NULL);
    struct sent sent;
    assert_int_equal(append(fake, &sent, 3, 100, -1, -1, -1), LEAT_OK);
    fake_settle(fake);
    assert_true(fake->opening);
    assert_int_equal(sent.answers, 0);
    assert_int_equal(leat_log_acked_offset(fake->log), 0);
    fake->opening = false;
    leat_log_opened(fake->log, LEAT_OK);
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(leat_log_acked_offset(fake->log), 3);
    assert_int_equal(read_all(fake, 0, false), 3);
    fake_destroy(fake);
}

static void append_many_rolls_and_reads_back(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    struct fake *fake = fake_create(2, level);
    fake->delay_us_max = 300;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 400; i++)
        must_append(fake, 100, 100);
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    assert_true(info.segment_count > 2);
    assert_int_equal(info.acked_offset, 40000);
    assert_int_equal(read_all(fake, 0, false), 40000);
    assert_int_equal(read_all(fake, 0, true), 40000);
    fake_destroy(fake);
}

/* Batches that come while the log rolls wait for the close entry of the segment before; what is
 * committed when is checked by fake_commit_check(). */
static void roll_with_batches_waiting_commits_the_start_entry_alone(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    enum { BATCHES = 400 };
    static struct sent sent[BATCHES];
    struct fake *fake = fake_create(31, level);
    fake->delay_us_max = 300;
    fake->memory_is_safe = false;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    for (int i = 0; i < BATCHES; i++) {
        assert_int_equal(append(fake, &sent[i], 1, 1000, -1, -1, -1), LEAT_OK);
        if (i % 4 == 0) fake_turn_end(fake);
    }
    fake_settle(fake);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(sent[i].answers, 1);
    assert_true(fake->starts_alone > 0);
    assert_int_equal(read_all(fake, 0, false), 1 + BATCHES);
    fake_destroy(fake);
}

/* ---- producers through the log ---- */

/* A repeat is answered with the original's offset, and only once that is acked (docs/stories.md 7). */
static void append_repeat_waits_for_the_original(void **state)
{
    (void)state;
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    struct sent first, repeat;
    assert_int_equal(append(fake, &first, 5, 10, 42, 0, 0), LEAT_OK);
    fake_turn_end(fake); /* its commit is in flight */
    assert_int_equal(append(fake, &repeat, 5, 10, 42, 0, 0), LEAT_OK);
    fake_turn_end(fake);
    assert_true(repeat.append.duplicate);
    assert_int_equal(first.answers + repeat.answers, 0);
    fake_settle(fake);
    assert_int_equal(first.answers, 1);
    assert_int_equal(repeat.answers, 1);
    assert_int_equal(repeat.rc, LEAT_OK);
    assert_int_equal(repeat.append.first_offset, first.append.first_offset);
    /* Six more, and the first is appended, but where is forgotten. */
    struct sent other;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(append(fake, &other, 5, 10, 42, 0, 5 + 5 * i), LEAT_OK);
        fake_settle(fake);
    }
    assert_int_equal(append(fake, &repeat, 5, 10, 42, 0, 0), LEAT_OK);
    assert_int_equal(repeat.answers, 0);
    fake_settle(fake);
    assert_int_equal(repeat.rc, LEAT_E_ALREADY_APPENDED);
    assert_int_equal(append(fake, &other, 5, 10, 42, 0, 36), LEAT_E_SEQUENCE_GAP);
    assert_int_equal(append(fake, &other, 5, 10, 42, 1, 7), LEAT_E_SEQUENCE_GAP);
    assert_int_equal(append(fake, &other, 5, 10, 42, 1, 0), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(append(fake, &other, 5, 10, 42, 0, 35), LEAT_E_PRODUCER_FENCED);
    assert_int_equal(append(fake, &other, 5, 10, 43, 0, 1), LEAT_E_SEQUENCE_GAP);
    fake_destroy(fake);
}

static struct leat_keep *commits_held[4];
static unsigned commits_held_count;

static void commit_hold(void *ctx, const struct leat_post *post, struct leat_keep *keep)
{
    if (keep->kind != LEAT_KEEP_COMMIT) {
        fake_request(ctx, post, keep);
        return;
    }
    assert_true(commits_held_count < 4);
    commits_held[commits_held_count++] = keep;
}

static void commit_answer(struct fake *fake, unsigned which)
{
    fake_push(fake, (struct fake_event){.keep = commits_held[which]});
    fake_settle(fake);
}

/* Where the keeper takes two commits of a segment, the second leaves while the first is under way, and what
 * comes then is shown for it to take along. Acks follow the answers. */
static void append_meanwhile_goes_along_with_the_next_commit(void **state)
{
    (void)state;
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake->keeper.commits = 2;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    fake_settle(fake);
    fake->log->keeper.request = commit_hold;
    commits_held_count = 0;
    struct sent sent[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(append(fake, &sent[i], 1, 10, 42, 0, i), LEAT_OK);
        fake_turn_end(fake);
    }
    assert_int_equal(commits_held_count, 2);
    struct leat_keep *first = commits_held[0], *second = commits_held[1];
    uint32_t shown = atomic_load(&second->seg->sealed_bytes);
    assert_true(first->to_bytes < second->to_bytes && second->to_bytes < shown);
    second->to_bytes = shown;
    commit_answer(fake, 0);
    assert_true(sent[0].answers == 1 && sent[1].answers == 0 && sent[2].answers == 0);
    commit_answer(fake, 1);
    assert_true(sent[1].answers == 1 && sent[2].answers == 1);
    /* Asked for before it was known that the second would bring it. */
    assert_int_equal(commits_held_count, 3);
    commit_answer(fake, 2);
    fake_destroy(fake);
}

/* Nine in flight, and all of them once more before one is acked: each is stored once, in its order, and
 * no repeat is answered before its original is. Of the older ones the offset is forgotten, no more
 * (README D3). */
static void append_of_more_than_five_in_flight_stores_each_once(void **state)
{
    (void)state;
    enum { BATCHES = 9, KNOWN = LEAT_BATCHES_IN_FLIGHT_MAX };
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    struct sent first[BATCHES], repeat[BATCHES], gap;
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append(fake, &first[i], 5, 10, 42, 0, 5 * i), LEAT_OK);
    fake_turn_end(fake); /* their commit is in flight */
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append(fake, &repeat[i], 5, 10, 42, 0, 5 * i), LEAT_OK);
    assert_int_equal(append_try(fake, &gap, 5, 10, 42, 0, 5 * BATCHES + 5), LEAT_E_SEQUENCE_GAP);
    fake_turn_end(fake);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(first[i].answers + repeat[i].answers, 0);
    fake_settle(fake);
    for (int i = 0; i < BATCHES; i++) {
        assert_int_equal(first[i].rc, LEAT_OK);
        assert_int_equal(first[i].append.first_offset, 1 + 5 * i);
        assert_int_equal(repeat[i].answers, 1);
        bool known = i >= BATCHES - KNOWN;
        assert_int_equal(repeat[i].rc, known ? LEAT_OK : LEAT_E_ALREADY_APPENDED);
        if (known) assert_int_equal(repeat[i].append.first_offset, 1 + 5 * i);
    }
    assert_int_equal(leat_log_acked_offset(fake->log), 1 + 5 * BATCHES);
    fake_destroy(fake);
}

/* ---- failures ---- */

/* A failed flush is final: what waits is answered by its name, what is acked stays readable. */
static void commit_fails_log_stops_and_reads_go_on(void **state)
{
    (void)state;
    struct fake *fake = fake_create(4, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 10, 100);
    struct sent sent, later;
    assert_int_equal(append(fake, &sent, 10, 100, -1, -1, -1), LEAT_OK);
    fake->fail_request_at = fake->requests + 1;
    fake->fail_kinds = ~0u;
    fake->fail_rc = LEAT_E_DISK;
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(sent.rc, LEAT_E_DISK);
    assert_int_equal(append(fake, &later, 1, 10, -1, -1, -1), LEAT_E_DISK);
    assert_int_equal(read_all(fake, 0, false), 10);
    fake->ended = false;
    leat_log_stop(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    fake->ended = false;
    fake_destroy(fake);
}

/* Stopped for another owner that it did not get: it takes appends again, in the segment that it has. */
static void log_that_was_stopped_goes_on(void **state)
{
    (void)state;
    for (unsigned level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct fake *fake = fake_create(4, level);
        fake_open(fake, NULL, 0, NULL);
        struct sent sent;
        for (unsigned turn = 0; turn < 3; turn++) { /* the first time it has no segment */
            leat_log_stop(fake->log, fake_on_end, fake);
            fake_settle(fake);
            assert_true(fake->ended);
            fake->ended = false;
            assert_int_equal(append(fake, &sent, 1, 10, -1, -1, -1), LEAT_E_STARTING);
            leat_log_go_on(fake->log);
            must_append(fake, 10, 100);
            assert_int_equal(fake->log->slot_count, 1);
            assert_int_equal(read_all(fake, 0, false), 10 * (turn + 1));
        }
        fake_destroy(fake);
    }
}

static void reserve_without_disk_space_is_refused_and_heals(void **state)
{
    (void)state;
    struct fake *fake = fake_create(5, LEAT_DURABILITY_MEMORY);
    fake_open(fake, NULL, 0, NULL);
    struct sent sent;
    fake->fail_request_at = 1;
    fake->fail_kinds = 1u << LEAT_KEEP_RESERVE;
    fake->fail_rc = LEAT_E_DISK_FULL;
    assert_int_equal(append(fake, &sent, 1, 10, -1, -1, -1), LEAT_E_DISK_FULL);
    fake->now_us += 2 * 1000 * 1000;
    must_append(fake, 1, 10);
    fake_destroy(fake);
}

/* What a new owner is told to be the end: all of it is on the disk, and all that was acked is in it. */
static void assert_end_is_safe(struct fake *fake, uint64_t acked)
{
    struct leat_log_tail tail;
    struct leat_scan scan;
    const struct fake_held *held = NULL;
    leat_log_end(fake->log, &tail);
    assert_false(tail.jumped);
    assert_in_range(tail.next_offset, acked, UINT64_MAX);
    if (tail.next_segment == 0) {
        assert_int_equal(tail.next_offset, 0);
        return;
    }
    for (unsigned i = 0; i < fake->held_count; i++)
        if (fake->held[i].seg->id.v == tail.next_segment - 1) held = &fake->held[i];
    assert_non_null(held);
    leat_scan_segment(held->file, tail.previous.bytes, &scan);
    assert_int_equal(scan.bytes, tail.previous.bytes);
    assert_int_equal(scan.crc, tail.previous.crc);
    assert_int_equal(scan.next_offset, tail.next_offset);
}

/* Fail request 1, then 2, ... of a run with rolls, parking and trimming, until it survives: every
 * append is answered once, and whatever was acked is there, also for who has the log next. */
static void requests_fail_one_by_one_every_append_is_answered(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    for (uint64_t at = 1;; at++) {
        struct fake *fake = fake_create(at, level);
        fake->options.settings.segment_bytes_max = 16384;
        fake->options.settings.retention_bytes = 60000;
        fake->options.park_after_us = 1000;
        fake->delay_us_max = 200;
        fake->fail_request_at = at;
        fake->fail_kinds = ~(1u << LEAT_KEEP_DROP | 1u << LEAT_KEEP_EVICT);
        fake->fail_rc = at & 1 ? LEAT_E_DISK : LEAT_E_NO_MEMORY;
        fake_open(fake, NULL, 0, NULL);
        uint64_t acked = 0;
        struct sent sent;
        for (int i = 0; i < 60; i++) {
            leat_err rc = append(fake, &sent, 10, 200, -1, -1, -1);
            if (rc == LEAT_E_AGAIN) { /* nothing under way: a pause, then care */
                fake->now_us += 2 * 1000 * 1000;
                leat_log_care(fake->log);
                fake_settle(fake);
                continue;
            }
            if (rc == LEAT_OK) {
                fake_settle(fake);
                assert_int_equal(sent.answers, 1);
                if (sent.rc == LEAT_OK) acked += 10;
            }
            if (i % 7 == 0) {
                fake->now_us += 2000;
                leat_log_care(fake->log);
                fake_settle(fake);
            }
        }
        struct leat_log_info info;
        leat_log_info(fake->log, &info);
        assert_int_equal(info.acked_offset, acked);
        assert_int_equal(read_all(fake, info.first_offset, false), acked - info.first_offset);
        bool survived = fake->requests < at;
        leat_log_stop(fake->log, fake_on_end, fake);
        fake_settle(fake);
        assert_true(fake->ended);
        fake->ended = false;
        if (level == LEAT_DURABILITY_DISK) assert_end_is_safe(fake, acked);
        fake_destroy(fake);
        if (survived) break;
    }
}

/* The same for allocations: a refused one delays, it loses nothing. */
static void allocations_fail_one_by_one_nothing_is_lost(void **state)
{
    (void)state;
    for (uint64_t at = 1;; at++) {
        struct fake *fake = fake_create(at, LEAT_DURABILITY_MEMORY);
        fake->options.settings.segment_bytes_max = 16384;
        leat_mem_fail_at(at);
        const struct leat_log_tail none = {0};
        leat_err rc = leat_log_create(&fake->env, &fake->keeper, &fake->timers, &fake->options,
                                      NULL, 0, &none, &fake->log);
        uint64_t acked = 0;
        for (int i = 0; rc == LEAT_OK && i < 40; i++) {
            struct sent sent;
            while (append(fake, &sent, 10, 200, i, 0, 0) == LEAT_E_AGAIN) {
                fake->now_us += 2 * 1000 * 1000;
                leat_log_care(fake->log);
                fake_settle(fake);
            }
            fake_settle(fake);
            assert_int_equal(sent.rc, LEAT_OK);
            acked += 10;
        }
        bool survived = leat_mem_calls() < at;
        leat_mem_fail_at(0);
        if (rc == LEAT_OK)
            assert_int_equal(read_all(fake, 0, false), acked);
        else
            assert_int_equal(rc, LEAT_E_NO_MEMORY);
        fake_destroy(fake);
        if (survived) break;
    }
}

/* Goal: a stopped log that the store still wants memory of is not destroyed before its question is answered, and asks
 * for nothing afterwards. */
static void stopped_log_that_gives_memory_back_rests_when_that_is_done(void **state)
{
    (void)state;
    struct fake *fake = fake_create(8, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 256 * 1024;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 100, 100);
    leat_log_stop(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    fake->ended = false; /* its turns go on, as those of a core do */
    struct fake_held *first = &fake->held[0], *second = &fake->held[1];
    assert_true(first->closed_row && second->closed_row);
    leat_log_on_flushed(fake->log, first->seg);
    leat_log_on_flushed(fake->log, second->seg);
    leat_log_on_evict_wanted(fake->log, first->seg);
    fake_turn_end(fake);
    assert_int_equal(fake->queued, 1);
    assert_false(leat_log_rest(fake->log));
    fake_settle(fake);
    assert_null(first->seg->buffer);
    assert_true(leat_log_rest(fake->log));
    leat_log_on_evict_wanted(fake->log, second->seg);
    fake_settle(fake);
    assert_non_null(second->seg->buffer);
    leat_log_destroy(&fake->log);
    fake_destroy(fake);
}

/* ---- damage, memory, places ---- */

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
    for (uint32_t at = 0; at < held->seg->extent.bytes; at += 97) {
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

static unsigned mends_asked;
static leat_err others_are_asked;
static leat_err on_damaged(void *owner, const struct leat_segment *seg)
{
    (void)owner, (void)seg;
    mends_asked++;
    return others_are_asked;
}

/* Goal: while other nodes are asked for a damaged segment its readers wait, or are told to try again; once
 * its bytes are there they get them. Where nobody has it they are told what is damaged, and nobody is asked
 * again at once. */
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
    uint32_t at = held->seg->extent.bytes / 2;
    struct leat_read read = {.from = {held->seg->next_offset - 1}}, waits = read;
    bool done = false;
    mends_asked = 0;
    others_are_asked = LEAT_OK;
    for (uint32_t i = 0; i < held->seg->extent.bytes; i += 64)
        held->file[i] ^= 16;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    assert_int_equal(mends_asked, 1);
    assert_true(held->seg->rotten);
    waits.max_bytes = 1024;
    waits.on_done = on_read;
    waits.owner = &done;
    assert_int_equal(leat_log_read(fake->log, &waits), LEAT_E_AGAIN);
    fake_settle(fake);
    assert_false(done);
    struct leat_extent wrong = held->seg->extent;
    wrong.crc ^= 1;
    assert_null(leat_log_mend_begin(fake->log, held->seg->id, wrong));
    assert_ptr_equal(leat_log_mend_begin(fake->log, held->seg->id, held->seg->extent), held->seg);
    for (uint32_t i = 0; i < held->seg->extent.bytes; i += 64)
        held->file[i] ^= 16;
    assert_true(leat_log_mend_end(fake->log, held->seg->id, LEAT_OK));
    fake_settle(fake);
    assert_true(done);
    assert_int_equal(waits.rc, LEAT_E_NO_MEMORY); /* it goes on, and asks for a buffer */
    assert_false(held->seg->rotten);
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(mends_asked, 1);
    /* Others are asked in vain. */
    for (uint32_t i = at % 64; i < held->seg->extent.bytes; i += 64)
        held->file[i] ^= 16;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    leat_log_mend_give_up(fake->log, held->seg->id);
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next.v, held->seg->next_offset);
    assert_int_equal(mends_asked, 2);
    free(buffer);
    fake_destroy(fake);
}

/* Goal: a reader is told that a segment is damaged only where nobody has it. Where others can't be asked now,
 * or the disk refuses what they gave, it is to try again: whoever is told of damage begins behind it. */
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
        for (uint32_t at = 0; at < held->seg->extent.bytes; at += 64)
            held->file[at] ^= 16;
        mends_asked = 0;
        others_are_asked = cases[i].asked;
        leat_err told = read_once(fake, &read, buffer);
        if (cases[i].asked == LEAT_OK) {
            assert_int_equal(told, LEAT_E_STARTING);
            assert_non_null(leat_log_mend_begin(fake->log, id, held->seg->extent));
            bool over = leat_log_mend_end(fake->log, id, cases[i].written);
            assert_int_equal(over, cases[i].written == LEAT_E_INVALID);
            told = read_once(fake, &read, buffer);
        }
        assert_int_equal(told, cases[i].told);
        assert_int_equal(mends_asked, 1);
        if (told == LEAT_E_STARTING) { /* until it is there */
            for (uint32_t at = 0; at < held->seg->extent.bytes; at += 64)
                held->file[at] ^= 16;
            others_are_asked = LEAT_OK;
            leat_log_on_damaged(fake->log, held->seg);
            assert_non_null(leat_log_mend_begin(fake->log, id, held->seg->extent));
            assert_true(leat_log_mend_end(fake->log, id, LEAT_OK));
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        }
        fake_destroy(fake);
    }
    free(buffer);
}

static void locate_time_offset_and_ends(void **state)
{
    (void)state;
    struct fake *fake = fake_create(7, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    int64_t begin = fake_wall(fake);
    for (int i = 0; i < 100; i++) { /* record j of batch i: begin + 100 i + j */
        must_append(fake, 50, 100);
        fake->now_us = 1000000 + (uint64_t)(i + 1) * 100000;
    }
    for (int file = 0; file < 2; file++) {
        void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
        for (int i = 0; i < 99; i += 7) {
            struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 100 * i + 20};
            op.read.disk_buffer = buffer;
            op.read.disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024;
            op.on_done = on_locate_done;
            bool done = false;
            op.owner = &done;
            if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
                while (!done)
                    assert_true(fake_deliver(fake));
            assert_int_equal(op.rc, LEAT_OK);
            assert_int_equal(op.offset.v, 50 * i + 20);
            assert_int_equal(op.timestamp_ms, begin + 100 * i + 20);
            op.what = LEAT_LOCATE_OFFSET;
            op.value = 50 * i + 20;
            done = false;
            struct leat_position place = op.position;
            if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
                while (!done)
                    assert_true(fake_deliver(fake));
            assert_int_equal(op.rc, LEAT_OK);
            assert_int_equal(op.position.segment, place.segment);
            assert_int_equal(op.position.position, place.position);
        }
        struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 1000000};
        assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
        assert_int_equal(op.offset.v, 5000);
        assert_int_equal(op.timestamp_ms, -1);
        free(buffer);
        evict_all(fake);
    }
    uint64_t first, end, last_end = 0;
    for (uint64_t group = 0; leat_log_group(fake->log, group, &first, &end) == LEAT_OK; group++) {
        assert_int_equal(first, last_end);
        last_end = end;
    }
    assert_true(last_end == UINT64_MAX);
    fake_destroy(fake);
}

/* Nothing is written any more: the last records go too when their time is over, also from a parked
 * head, and offsets go on where they were. */
static void retention_of_an_idle_log_drops_its_last_records(void **state)
{
    (void)state;
    for (int parked = 0; parked < 2; parked++) {
        struct fake *fake = fake_create(11, LEAT_DURABILITY_DISK);
        fake->options.settings.retention_ms = 60 * 1000;
        fake_open(fake, NULL, 0, NULL);
        must_append(fake, 50, 100);
        if (parked) {
            fake->now_us += 20 * 1000 * 1000;
            leat_log_care(fake->log);
            fake_settle(fake);
            assert_true(fake->log->parked);
        }
        fake->now_us += 120 * 1000 * 1000;
        for (int i = 0; i < 4; i++) {
            leat_log_care(fake->log);
            fake_settle(fake);
            fake->now_us += 1000 * 1000;
        }
        struct leat_log_info info;
        leat_log_info(fake->log, &info);
        assert_int_equal(info.first_offset, 50);
        assert_int_equal(info.acked_offset, 50);
        assert_int_equal(info.segment_count, 1);
        assert_int_equal(fake->drops, 1);
        uint64_t next = fake->log->next_segment;
        for (int i = 0; i < 4; i++) {
            fake->now_us += 120 * 1000 * 1000;
            leat_log_care(fake->log);
            fake_settle(fake);
        }
        assert_int_equal(fake->log->next_segment, next); /* an empty head does not roll */
        must_append(fake, 3, 100);
        assert_int_equal(read_all(fake, 50, false), 3);
        fake_destroy(fake);
    }
}

/* An idle log gives its buffer back, its bytes stay readable, and it goes on in the same segment.
 */
static void park_and_resume_go_on_in_the_same_segment(void **state)
{
    (void)state;
    struct fake *fake = fake_create(8, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 10, 100);
    struct leat_log_info info;
    for (int i = 1; i <= 5; i++) {
        fake->now_us += 20 * 1000 * 1000;
        leat_log_care(fake->log);
        fake_settle(fake);
        leat_log_info(fake->log, &info);
        assert_int_equal(info.memory_bytes, 0);
        assert_int_equal(read_all(fake, 0, false), (uint64_t)i * 10);
        must_append(fake, 10, 100);
    }
    leat_log_info(fake->log, &info);
    assert_int_equal(info.segment_count, 1);
    assert_int_equal(read_all(fake, 0, true), 60);
    fake_destroy(fake);
}

/* A table beyond three quarters forgets whom it has not seen for longest, not before a quarter of an
 * hour; a table with room keeps everybody for the whole expiry. */
static void producers_of_a_full_table_expire_sooner(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    fake->log->producers.count_max = 40; /* the real limit is only more of the same */
    struct sent sent;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(append(fake, &sent, 1, 10, i, 0, 0), LEAT_OK);
        fake_settle(fake);
        fake->now_us += 1000 * 1000;
    }
    struct leat_log_info info;
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(append(fake, &sent, 1, 10, 99, 0, 0), LEAT_E_TOO_MANY_PRODUCERS);
    /* Producers 0 to 4 are older than 15 minutes now: the excess is 10, but 5 are too young. */
    fake->now_us += (uint64_t)(15 * 60 - 40 + 5) * 1000 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    leat_log_info(fake->log, &info);
    assert_int_equal(info.producers, 35);
    fake->now_us += (uint64_t)3600 * 1000 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    leat_log_info(fake->log, &info);
    assert_int_equal(info.producers, 30);
    assert_int_equal(append(fake, &sent, 1, 10, 10, 0, 0), LEAT_OK);
    fake_settle(fake);
    assert_true(sent.append.duplicate && sent.rc == LEAT_OK);
    assert_int_equal(append(fake, &sent, 1, 10, 99, 0, 0), LEAT_OK);
    fake_settle(fake);
    fake_destroy(fake);
}

/* ---- waking ---- */

enum { WAKERS = 5 };

/* A log whose segments are all closed and out of memory, as after a restart. */
static void make_cold(struct fake *fake, struct leat_log_warmth *warmth)
{
    fake->options.settings.segment_bytes_max = 65536;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 20; i++)
        must_append(fake, 100, 100);
    evict_all(fake);
    struct leat_segment *segs[64];
    size_t count = 0;
    /* What is not closed is given up: this is about the waking alone. */
    for (unsigned i = 0; i < fake->held_count; i++)
        if (fake->held[i].closed_row) segs[count++] = fake->held[i].seg;
    assert_in_range(count, 2, 63);
    struct leat_log_tail tail = {.next_segment = count,
                                 .previous = segs[count - 1]->extent,
                                 .next_offset = segs[count - 1]->next_offset};
    leat_log_destroy(&fake->log);
    for (unsigned i = 0; i < fake->held_count;)
        if (!fake->held[i].closed_row)
            fake_forget(fake, fake->held[i].seg);
        else
            i++;
    fake->dirty = fake->room = fake->opening = false;
    fake->options.warmth = warmth;
    fake->options.epoch.v++;
    fake_open(fake, segs, count, &tail);
    fake_settle(fake); /* where it begins has been looked up */
}

static bool is_cold(const struct fake *fake)
{
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    return info.cold;
}

static void wake(struct fake *fake)
{
    struct sent sent;
    assert_int_equal(append_try(fake, &sent, 1, 10, -1, -1, -1), LEAT_E_AGAIN);
    fake_turn_end(fake);
}

/* Many wake at once: the bytes they read never exceed what they share, they start in the order of
 * asking, each by the end of another, and who is deleted in line holds nobody up. */
static void wake_many_logs_share_bytes_in_order(void **state)
{
    (void)state;
    struct leat_log_warmth warmth;
    leat_log_warmth_init(&warmth, 1); /* less than any needs: one at a time */
    struct fake *fakes[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        fakes[i] = fake_create(20 + (uint64_t)i, LEAT_DURABILITY_DISK);
        make_cold(fakes[i], &warmth);
    }
    for (int i = 0; i < WAKERS; i++) {
        wake(fakes[i]);
        assert_int_equal(fakes[i]->queued, i == 0);
    }
    /* Nothing but the read in flight moves them on. */
    leat_log_care(fakes[2]->log);
    fake_turn_end(fakes[2]);
    assert_int_equal(fakes[2]->queued, 0);
    fake_delete_log(fakes[1]);
    fake_delete_log(fakes[3]);
    const int order[] = {0, 2, 4};
    for (unsigned i = 0; i < 3; i++) {
        struct fake *now = fakes[order[i]];
        assert_true(warmth.bytes_used > 0 && is_cold(now));
        assert_int_equal(now->queued, 1);
        assert_true(fake_deliver(now));
        assert_false(is_cold(now));
        if (i == 2) break;
        assert_true(fakes[order[i + 1]]->dirty);
        fake_turn_end(fakes[order[i + 1]]);
    }
    assert_int_equal(warmth.bytes_used, 0);
    assert_true(leat_list_empty(&warmth.waiting));
    for (int i = 0; i < WAKERS; i++) {
        if (fakes[i]->log) {
            fake_settle(fakes[i]);
            must_append(fakes[i], 10, 100);
        }
        fake_destroy(fakes[i]);
    }
}

/* A read that fails, or memory that is refused, gives the bytes back. Whoever is asked with room
 * for two runs beside the first. */
static void wake_failures_give_the_bytes_back(void **state)
{
    (void)state;
    struct leat_log_warmth warmth;
    leat_log_warmth_init(&warmth, 2 * (65536 + 4096));
    struct fake *fakes[3];
    for (int i = 0; i < 3; i++) {
        fakes[i] = fake_create(40 + (uint64_t)i, LEAT_DURABILITY_DISK);
        make_cold(fakes[i], &warmth);
    }
    leat_mem_fail_at(1);
    wake(fakes[2]);
    leat_mem_fail_at(0);
    assert_int_equal(fakes[2]->queued, 0);
    assert_int_equal(warmth.bytes_used, 0);
    fakes[2]->now_us += 2 * 1000 * 1000;
    for (int i = 0; i < 3; i++) {
        wake(fakes[i]);
        assert_int_equal(fakes[i]->queued, i < 2);
    }
    assert_true(warmth.bytes_used <= warmth.bytes_max);
    fakes[0]->fail_reads = true;
    fake_settle(fakes[0]);
    struct leat_log_info info;
    leat_log_info(fakes[0]->log, &info);
    assert_int_equal(info.state, LEAT_LOG_DAMAGED);
    assert_true(fakes[2]->dirty);
    fake_settle(fakes[2]);
    fake_settle(fakes[1]);
    assert_false(is_cold(fakes[1]) || is_cold(fakes[2]));
    assert_int_equal(warmth.bytes_used, 0);
    for (int i = 0; i < 3; i++)
        fake_destroy(fakes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_first_batch_is_acked_only_after_opened),
        cmocka_unit_test_prestate(append_many_rolls_and_reads_back,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(append_many_rolls_and_reads_back,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test_prestate(roll_with_batches_waiting_commits_the_start_entry_alone,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(roll_with_batches_waiting_commits_the_start_entry_alone,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test(append_repeat_waits_for_the_original),
        cmocka_unit_test(append_meanwhile_goes_along_with_the_next_commit),
        cmocka_unit_test(append_of_more_than_five_in_flight_stores_each_once),
        cmocka_unit_test(commit_fails_log_stops_and_reads_go_on),
        cmocka_unit_test(log_that_was_stopped_goes_on),
        cmocka_unit_test(reserve_without_disk_space_is_refused_and_heals),
        cmocka_unit_test_prestate(requests_fail_one_by_one_every_append_is_answered,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(requests_fail_one_by_one_every_append_is_answered,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test(allocations_fail_one_by_one_nothing_is_lost),
        cmocka_unit_test(stopped_log_that_gives_memory_back_rests_when_that_is_done),
        cmocka_unit_test(read_from_file_equals_memory_and_names_damage),
        cmocka_unit_test(damaged_segment_is_waited_for_while_others_are_asked),
        cmocka_unit_test(damage_is_told_only_where_nobody_has_the_segment),
        cmocka_unit_test(locate_time_offset_and_ends),
        cmocka_unit_test(retention_of_an_idle_log_drops_its_last_records),
        cmocka_unit_test(park_and_resume_go_on_in_the_same_segment),
        cmocka_unit_test(producers_of_a_full_table_expire_sooner),
        cmocka_unit_test(wake_many_logs_share_bytes_in_order),
        cmocka_unit_test(wake_failures_give_the_bytes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
