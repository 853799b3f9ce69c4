/* SPDX-License-Identifier: Apache-2.0 */
/* Logs whose segments are all out of memory: they wake in turn, within the bytes that they share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "steps.h"

enum { WAKERS = 5 };

/* A log whose segments are all closed and out of memory, as after a restart, which has had no turn yet. */
static void make_anew(struct fake *fake, struct leat_restore_budget *restore_budget)
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
                                 .previous = segs[count - 1]->prefix_id,
                                 .next_offset = segs[count - 1]->next_offset};
    leat_log_destroy(&fake->log);
    for (unsigned i = 0; i < fake->held_count;)
        if (!fake->held[i].closed_row)
            fake_forget(fake, fake->held[i].seg);
        else
            i++;
    fake->dirty = fake->room = fake->opening = false;
    fake->options.restore_budget = restore_budget;
    fake->options.epoch.v++;
    fake_open(fake, segs, count, &tail);
}

static void make_unloaded(struct fake *fake, struct leat_restore_budget *restore_budget)
{
    make_anew(fake, restore_budget);
    fake_settle(fake); /* where it begins has been looked up */
}

static bool is_unloaded(const struct fake *fake)
{
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    return info.unloaded;
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
    struct leat_restore_budget restore_budget;
    leat_restore_budget_init(&restore_budget, 1); /* less than any needs: one at a time */
    struct fake *fakes[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        fakes[i] = fake_create(20 + (uint64_t)i, LEAT_DURABILITY_DISK);
        make_unloaded(fakes[i], &restore_budget);
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
        assert_true(restore_budget.bytes_used > 0 && is_unloaded(now));
        assert_int_equal(now->queued, 1);
        assert_true(fake_deliver(now));
        assert_false(is_unloaded(now));
        if (i == 2) break;
        assert_true(fakes[order[i + 1]]->dirty);
        fake_turn_end(fakes[order[i + 1]]);
    }
    assert_int_equal(restore_budget.bytes_used, 0);
    assert_true(leat_list_empty(&restore_budget.waiting));
    for (int i = 0; i < WAKERS; i++) {
        if (fakes[i]->log) {
            fake_settle(fakes[i]);
            must_append(fakes[i], 10, 100);
        }
        fake_destroy(fakes[i]);
    }
}

/* Goal: two logs wake together where the bytes are enough to the byte; a log that asks later, with bytes enough, does
 * not overtake a log that waits. */
static void wake_takes_the_last_byte_and_its_turn(void **state)
{
    (void)state;
    struct leat_restore_budget restore_budget;
    struct fake *fakes[4];
    leat_restore_budget_init(&restore_budget, 1);
    for (int i = 0; i < 4; i++) {
        fakes[i] = fake_create(70, LEAT_DURABILITY_DISK); /* all alike */
        make_unloaded(fakes[i], &restore_budget);
    }
    wake(fakes[0]);
    restore_budget.bytes_max = 2 * restore_budget.bytes_used;
    wake(fakes[1]);
    assert_int_equal(fakes[1]->queued, 1);
    wake(fakes[2]);
    assert_int_equal(fakes[2]->queued, 0);
    restore_budget.bytes_max *= 2;
    wake(fakes[3]);
    assert_int_equal(fakes[3]->queued, 0); /* the third is before it */
    fakes[2]->dirty = false;
    fake_delete_log(fakes[2]); /* leaves the line: the next is told */
    assert_true(fakes[3]->dirty);
    for (int i = 0; i < 4; i++) {
        if (fakes[i]->log) fake_settle(fakes[i]);
        if (fakes[i]->log) assert_false(is_unloaded(fakes[i]));
    }
    assert_int_equal(restore_budget.bytes_used, 0);
    for (int i = 0; i < 4; i++)
        fake_destroy(fakes[i]);
}

/* A read that fails, or memory that is refused, gives the bytes back. Whoever is asked with room
 * for two runs beside the first. */
static void wake_failures_give_the_bytes_back(void **state)
{
    (void)state;
    struct leat_restore_budget restore_budget;
    leat_restore_budget_init(&restore_budget, 2 * (65536 + 4096));
    struct fake *fakes[3];
    for (int i = 0; i < 3; i++) {
        fakes[i] = fake_create(40 + (uint64_t)i, LEAT_DURABILITY_DISK);
        make_unloaded(fakes[i], &restore_budget);
    }
    leat_mem_fail_at(1);
    wake(fakes[2]);
    leat_mem_fail_at(0);
    assert_int_equal(fakes[2]->queued, 0);
    assert_int_equal(restore_budget.bytes_used, 0);
    fakes[2]->now_us += 2 * 1000 * 1000;
    for (int i = 0; i < 3; i++) {
        wake(fakes[i]);
        assert_int_equal(fakes[i]->queued, i < 2);
    }
    assert_true(restore_budget.bytes_used <= restore_budget.bytes_max);
    fakes[0]->fail_reads = true;
    fake_settle(fakes[0]);
    struct leat_log_info info;
    leat_log_info(fakes[0]->log, &info);
    assert_int_equal(info.state, LEAT_LOG_DAMAGED);
    assert_true(fakes[2]->dirty);
    fake_settle(fakes[2]);
    fake_settle(fakes[1]);
    assert_false(is_unloaded(fakes[1]) || is_unloaded(fakes[2]));
    assert_int_equal(restore_budget.bytes_used, 0);
    for (int i = 0; i < 3; i++)
        fake_destroy(fakes[i]);
}

/* What a log stands in line for. */
enum line { FRONT, WAKING, LINES };

/* Three logs that share bytes for one at a time: the first reads, the others stand in line. */
static void line_up(struct fake **fakes, enum line line, struct leat_restore_budget *restore_budget)
{
    leat_restore_budget_init(restore_budget, 1);
    for (int i = 0; i < 3; i++) {
        fakes[i] = fake_create(60 + (uint64_t)i, LEAT_DURABILITY_DISK);
        if (line == FRONT) make_anew(fakes[i], restore_budget);
        if (line == WAKING) make_unloaded(fakes[i], restore_budget);
    }
    for (int i = 0; i < 3; i++) {
        if (line == WAKING) fakes[i]->log->room_wanted = true;
        log_mark_dirty(fakes[i]->log);
        fake_turn_end(fakes[i]);
        assert_int_equal(fakes[i]->queued, i == 0);
        assert_int_equal(leat_list_empty(&fakes[i]->log->warm_link), i == 0);
    }
}

static void line_end(struct fake **fakes, struct leat_restore_budget *restore_budget)
{
    for (int i = 0; i < 3; i++)
        fake_settle(fakes[i]);
    assert_int_equal(restore_budget->bytes_used, 0);
    assert_true(leat_list_empty(&restore_budget->waiting));
    for (int i = 0; i < 3; i++)
        fake_destroy(fakes[i]);
}

/* Goal: a log that stands in line keeps its place while nothing changes for it, however often the log has a turn. */
static void place_in_line_is_kept(void **state)
{
    (void)state;
    for (enum line line = 0; line < LINES; line++) {
        struct leat_restore_budget restore_budget;
        struct fake *fakes[3];
        line_up(fakes, line, &restore_budget);
        log_mark_dirty(fakes[1]->log);
        fake_turn_end(fakes[1]);
        assert_ptr_equal(restore_budget.waiting.next, &fakes[1]->log->warm_link);
        assert_true(fake_deliver(fakes[0]));
        for (int i = 1; i < 3; i++) {
            fake_turn_end(fakes[i]);
            assert_int_equal(fakes[i]->queued, i == 1);
        }
        line_end(fakes, &restore_budget);
    }
}

/* Goal: a log that can't start any more, or needs to read nothing as its bytes are in memory, leaves the line: the next
 * log starts. */
static void place_in_line_is_left(void **state)
{
    (void)state;
    for (enum line line = 0; line < LINES; line++)
        for (unsigned in_memory = 0; in_memory < 2; in_memory++) {
            struct leat_restore_budget restore_budget;
            struct fake *fakes[3];
            line_up(fakes, line, &restore_budget);
            struct leat_log *log = fakes[1]->log;
            struct leat_segment *last = log_slot_at(log, log->slot_count - 1)->seg;
            fakes[1]->made_up = true;
            if (in_memory) {
                last->buffer = fake_buffer(last->capacity);
                memcpy(last->buffer, fake_held_of(fakes[1], last)->file, last->capacity);
            } else {
                log->ending = LOG_STOPPING;
            }
            log_mark_dirty(log);
            fake_turn_end(fakes[1]);
            assert_true(leat_list_empty(&log->warm_link));
            assert_int_equal(log_front_is_unknown(log), line == FRONT && !in_memory);
            assert_true(fake_deliver(fakes[0]));
            fake_turn_end(fakes[2]);
            assert_int_equal(fakes[2]->queued, 1);
            if (!in_memory) log->ending = LOG_LIVES;
            log->room_wanted = false;
            line_end(fakes, &restore_budget);
        }
}

/* Goal: nothing is read of a log that ends. */
static void log_that_ends_is_not_read(void **state)
{
    (void)state;
    for (enum line line = 0; line < LINES; line++) {
        struct fake *fake = fake_create(70, LEAT_DURABILITY_DISK);
        if (line == FRONT) make_anew(fake, NULL);
        if (line == WAKING) make_unloaded(fake, NULL);
        fake->log->room_wanted = line == WAKING;
        fake->log->ending = LOG_STOPPING;
        fake->made_up = true;
        log_mark_dirty(fake->log);
        fake_turn_end(fake);
        assert_int_equal(fake->queued, 0);
        fake->log->ending = LOG_LIVES;
        fake_destroy(fake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wake_many_logs_share_bytes_in_order),
        cmocka_unit_test(wake_takes_the_last_byte_and_its_turn),
        cmocka_unit_test(wake_failures_give_the_bytes_back),
        cmocka_unit_test(place_in_line_is_kept),
        cmocka_unit_test(place_in_line_is_left),
        cmocka_unit_test(log_that_ends_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
