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

/* A log whose segments are all closed and out of memory, as after a restart. */
static void make_cold(struct fake *fake, struct leat_restore_budget *restore_budget)
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
    fake->options.restore_budget = restore_budget;
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
    struct leat_restore_budget restore_budget;
    leat_restore_budget_init(&restore_budget, 1); /* less than any needs: one at a time */
    struct fake *fakes[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        fakes[i] = fake_create(20 + (uint64_t)i, LEAT_DURABILITY_DISK);
        make_cold(fakes[i], &restore_budget);
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
        assert_true(restore_budget.bytes_used > 0 && is_cold(now));
        assert_int_equal(now->queued, 1);
        assert_true(fake_deliver(now));
        assert_false(is_cold(now));
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
        make_cold(fakes[i], &restore_budget);
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
    assert_false(is_cold(fakes[1]) || is_cold(fakes[2]));
    assert_int_equal(restore_budget.bytes_used, 0);
    for (int i = 0; i < 3; i++)
        fake_destroy(fakes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wake_many_logs_share_bytes_in_order),
        cmocka_unit_test(wake_failures_give_the_bytes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
