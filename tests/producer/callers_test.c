/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls amid those of another caller, and of the background thread: the lock, which each of them takes, and
 * what a caller has to be told of when it waits. The fake thread holds the lock, and gives it to whoever waits. */
#include "tests/producer/public_rig.h"

#include "producer/gather.h"

#include <stdio.h>
#include <string.h>

/* A producer of a stream that is known. */
static leat_producer *ready(void)
{
    leat_producer_options options = public_options();
    leat_producer *producer = public_open(1, &options);
    fake_shared.world.streamlets = 1;
    leat_produce_record record = public_record("first");
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    return producer;
}

static struct leat_spin *lock_of(void)
{
    return fake_shared.place->owner;
}

static void hold(void)
{
    assert_int_equal(atomic_load(&lock_of()->taken), 0);
    atomic_store(&lock_of()->taken, 1);
    fake_shared.held = true;
    fake_shared.spins = 0;
}

/* Goal: a caller that adds while another caller fills a batch waits without the lock, and adds under the lock. */
static void callers_wait_for_one_that_fills_a_batch(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    struct told told = {0};
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared.gather->filling = &fake_shared.gather->batches[0];
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
    assert_int_equal(fake_shared.yields, 2);
    assert_int_equal(atomic_load(&lock_of()->taken), 0);
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.result.offset, 2);
    public_end(producer);
}

/* Goal: the statistics' error is read under the lock, and the lock is free afterwards. */
static void callers_read_statistics_under_the_lock(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    leat_producer_stats stats;
    hold();
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(fake_shared.spins, 1);
    assert_int_equal(atomic_load(&lock_of()->taken), 0);
    assert_int_equal(stats.records_acked, 1);
    public_end(producer);
}

static void hold_once(void)
{
    hold();
    fake_shared.on_sending = NULL;
}

/* Goal: an error that is new goes into the statistics under the lock. Method: another caller takes the lock when room
 * is told of, right before the statistics. */
static void callers_do_not_read_an_error_that_is_being_written(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.create_streams = false;
    leat_producer *producer = public_open(1, &options);
    struct told told = {0};
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "none", &record, public_told, &told), LEAT_OK);
    fake_shared.on_sending = hold_once;
    fake_shared_run(5000000);
    assert_int_equal(told.count, 1);
    assert_int_equal(fake_shared.spins, 1);
    leat_producer_stats stats;
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.last_error, told.result.code);
    public_end(producer);
}

/* Goal: an error of the same code replaces the one before, whichever text comes first in the alphabet. */
static void callers_read_the_last_error_of_a_code(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    leat_producer_stats stats;
    leat_produce_record record = public_record("v");
    for (unsigned round = 0; round < 2; round++) {
        fake_shared.world.faults.garble = 1000;
        assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
        fake_shared_run(20000);
        leat_producer_stats_get(producer, &stats);
        assert_int_equal(stats.last_error, LEAT_E_INVALID);
        assert_string_equal(stats.last_text, "the server's answer could not be read");
        fake_shared.world.faults.garble = 0;
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        fake_shared.world.faults.refuse_hard = 1000;
        assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_E_INVALID);
        fake_shared.world.faults.refuse_hard = 0;
        leat_producer_stats_get(producer, &stats);
        assert_int_equal(stats.last_error, LEAT_E_INVALID);
        assert_string_equal(stats.last_text, "by the script");
    }
    public_end(producer);
}

/* Goal: another code with the same text replaces the one before. */
static void callers_read_the_last_error_of_a_text(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    leat_producer_stats stats;
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared.world.faults.refuse_again = 1000;
    fake_shared_run(20000);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.last_error, LEAT_E_AGAIN);
    assert_string_equal(stats.last_text, "refused by the script");
    fake_shared.world.faults.refuse_again = 0;
    fake_shared.world.faults.refuse_owner = 1000;
    fake_shared_run(500000);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.last_error, LEAT_E_NOT_OWNER);
    assert_string_equal(stats.last_text, "refused by the script");
    fake_shared.world.faults.refuse_owner = 0;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    public_end(producer);
}

/* Goal: a flush ends also where all records come back before it waits. */
static void callers_are_told_before_they_wait(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    struct told told = {0};
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
    fake_shared_run(10);
    fake_shared.at_once = true;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    fake_shared.at_once = false;
    assert_int_equal(told.count, 1);
    public_end(producer);
}

/* Goal: a record that waited for room, or until its stream was known, leaves without another call. */
static void callers_records_leave_behind_a_wait(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    leat_producer *producer = public_open(1, &options);
    fake_shared.world.streamlets = 2;
    struct told told = {0};
    leat_produce_record record = public_record("v");
    record.streamlet = 1;
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
    uint64_t queued_us = fake_shared.world.now_us;
    fake_shared_run(1000000);
    assert_int_equal(told.count, 1);
    assert_in_range(told.at_us - queued_us, 1, 20000);
    public_end(producer);
}

/* Goal: the same of many records that are given at once, with and without a callback for each. */
static void callers_many_records_leave_without_another_call(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    leat_produce_record records[3] = {public_record("a"), public_record("b"), public_record("c")};
    for (unsigned heard = 0; heard < 2; heard++) {
        struct told told = {0};
        size_t queued = 0;
        leat_producer_stats before, after;
        fake_shared_run(1000000);
        leat_producer_stats_get(producer, &before);
        assert_int_equal(leat_produce_many(producer, "s", records, 3, heard ? public_told : NULL,
                                           &told, &queued),
                         LEAT_OK);
        fake_shared_run(20000);
        leat_producer_stats_get(producer, &after);
        assert_int_equal(queued, 3);
        assert_int_equal(told.count, 3 * heard);
        assert_int_equal(after.records_acked - before.records_acked, 3);
    }
    public_end(producer);
}

static leat_producer_stats seen;
static void look_at_statistics(void *producer)
{
    leat_producer_stats_get(producer, &seen);
}

/* Goal: who is woken by an ack finds the ack in the statistics. */
static void callers_find_their_acks_in_the_statistics(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    leat_produce_record record = public_record("v");
    fake_shared.on_tell = look_at_statistics;
    fake_shared.on_tell_arg = producer;
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    fake_shared.on_tell = NULL;
    assert_int_equal(seen.records_acked, 2);
    public_end(producer);
}

/* Goal: a turn behind the last one of a producer that was closed does nothing. */
static void callers_may_close_before_the_last_turn(void **state)
{
    (void)state;
    leat_producer *producer = ready();
    fake_shared.turns_twice = true;
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    public_end(producer);
}

/* Goal: a producer that is closed while an append can't be taken back ends when the append has come back. */
static void callers_close_behind_an_append_that_stays(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.timeout_ms = 5;
    leat_producer *producer = public_open(1, &options);
    leat_produce_record record = public_record("v");
    struct told told = {0};
    while (leat_produce_wait(producer, "s", &record, NULL) != LEAT_OK)
        fake_shared_run(100000);
    fake_shared.world.faults.slow = 1000;
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
    fake_shared_run(2000);
    assert_int_equal(told.count, 0);
    fake_shared.keeps = true;
    leat_producer_close(producer);
    assert_true(fake_shared.kept > 0);
    assert_int_equal(told.count, 1);
    assert_true(fake_shared.world.now_us > told.at_us); /* the append's own time is over later */
    fake_shared_end();
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(callers_wait_for_one_that_fills_a_batch),
        TEST(callers_read_statistics_under_the_lock),
        TEST(callers_do_not_read_an_error_that_is_being_written),
        TEST(callers_read_the_last_error_of_a_code),
        TEST(callers_read_the_last_error_of_a_text),
        TEST(callers_are_told_before_they_wait),
        TEST(callers_records_leave_behind_a_wait),
        TEST(callers_many_records_leave_without_another_call),
        TEST(callers_find_their_acks_in_the_statistics),
        TEST(callers_close_behind_an_append_that_stays),
        TEST(callers_may_close_before_the_last_turn),
    };
    return cmocka_run_group_tests_name("producer callers", tests, NULL, NULL);
}
