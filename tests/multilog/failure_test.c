/* SPDX-License-Identifier: Apache-2.0 */
/* One log whose requests, allocations or flushes fail: everybody is answered, what was acked stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "steps.h"

/* A failed flush is final: waiting appends are answered by its name, acked records stay readable. */
static void commit_fails(leat_err rc)
{
    struct fake *fake = fake_create(4, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 10, 100);
    struct sent sent, later;
    assert_int_equal(append(fake, &sent, 10, 100, -1, -1, -1), LEAT_OK);
    fake->fail_request_at = fake->requests + 1;
    fake->fail_kinds = ~0u;
    fake->fail_rc = rc;
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(sent.rc, LEAT_E_DISK);
    assert_int_equal(append(fake, &later, 1, 10, -1, -1, -1), LEAT_E_DISK);
    assert_non_null(strstr(fake->log->why, leat_err_text(rc)));
    assert_int_equal(read_all(fake, 0, false), 10);
    fake->ended = false;
    leat_log_stop(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(fake->ended);
    fake->ended = false;
    fake_destroy(fake);
}

static void commit_fails_log_stops_and_reads_go_on(void **state)
{
    (void)state;
    commit_fails(LEAT_E_DISK);
    commit_fails(LEAT_E_DISK_FULL); /* nor is what has no room tried again; it is told */
}

/* A log was stopped for another owner that did not get the log: it takes appends again, in the same segment. */
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
    fake->fail_kinds = 1u << LEAT_STORE_RESERVE;
    fake->fail_rc = LEAT_E_DISK_FULL;
    assert_int_equal(append(fake, &sent, 1, 10, -1, -1, -1), LEAT_E_DISK_FULL);
    fake->now_us += 2 * 1000 * 1000;
    must_append(fake, 1, 10);
    fake_destroy(fake);
}

/* The end that a new owner is told: all bytes before it are on the disk, and all acked records are among them. */
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

/* Fail request 1, then 2, ... of a run with rolls, hibernating and trimming, until it survives: every
 * append is answered once, and whatever was acked is there, also for who has the log next. */
static void requests_fail_one_by_one_every_append_is_answered(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    for (uint64_t at = 1;; at++) {
        struct fake *fake = fake_create(at, level);
        fake->options.settings.segment_bytes_max = 16384;
        fake->options.settings.retention_bytes = 60000;
        fake->options.hibernate_after_us = 1000;
        fake->delay_us_max = 200;
        fake->fail_request_at = at;
        fake->fail_kinds = ~(1u << LEAT_STORE_DROP | 1u << LEAT_STORE_EVICT);
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
        leat_err rc = leat_log_create(&fake->env, &fake->store_port, &fake->timers, &fake->options,
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

/* Goal: a caller that awaits acks is answered once all earlier appends are acked, and not with later ones; where all is
 * acked there is nothing to await. */
static void acks_are_awaited_up_to_here(void **state)
{
    (void)state;
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    struct sent first, later, wait = {.append = {.on_acked = on_answer, .owner = &wait}};
    assert_false(leat_log_await_acked(fake->log, &wait.append));
    for (unsigned turn = 0; turn < 2; turn++) {
        wait.answers = 0;
        wait.append.first_offset = 77; /* of what it was used for before */
        wait.append.duplicate = true;
        assert_int_equal(append(fake, &first, 5, 10, -1, -1, -1), LEAT_OK);
        assert_true(leat_log_await_acked(fake->log, &wait.append));
        assert_int_equal(wait.append.first_offset, 0);
        assert_false(wait.append.duplicate);
        assert_int_equal(append(fake, &later, 5, 10, -1, -1, -1), LEAT_OK);
        fake_turn_end(fake); /* its commit is in flight */
        assert_int_equal(first.answers + wait.answers, 0);
        if (turn == 1) log_fail_waiting(fake->log, LEAT_E_STALE_EPOCH);
        fake_settle(fake);
        assert_int_equal(first.answers, 1);
        assert_int_equal(wait.answers, 1);
        assert_int_equal(wait.rc, turn == 1 ? LEAT_E_STALE_EPOCH : LEAT_OK);
    }
    assert_false(leat_log_await_acked(fake->log, &wait.append));
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_fails_log_stops_and_reads_go_on),
        cmocka_unit_test(log_that_was_stopped_goes_on),
        cmocka_unit_test(reserve_without_disk_space_is_refused_and_heals),
        cmocka_unit_test_prestate(requests_fail_one_by_one_every_append_is_answered,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(requests_fail_one_by_one_every_append_is_answered,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test(allocations_fail_one_by_one_nothing_is_lost),
        cmocka_unit_test(stopped_log_that_gives_memory_back_rests_when_that_is_done),
        cmocka_unit_test(acks_are_awaited_up_to_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
