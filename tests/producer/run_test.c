/* SPDX-License-Identifier: Apache-2.0 */
/* Many records by one call, without a callback, into the one open batch of a stream (leat_gather_run_fill()), and who
 * is woken when. By the public calls, on the rig of produce_test.c. */
#include "tests/producer/public_rig.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat_producer *ready(uint32_t linger_us)
{
    leat_producer_options options = public_options();
    options.linger_us = linger_us;
    leat_producer *producer = public_open(1, &options);
    fake_shared.world.streamlets = 1;
    leat_produce_record record = public_record("first");
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    return producer;
}

static void bytes_are(const void *got, size_t got_bytes, const void *want, size_t want_bytes)
{
    assert_int_equal(got != NULL, want != NULL);
    if (!want) return;
    assert_int_equal(got_bytes, want_bytes);
    assert_memory_equal(got, want, want_bytes);
}

/* Goal: each record of a run arrives whole, in its place, whatever records are before and after it: plain records, and
 * records with a key, headers, a time of their own or no value. Method: each kind between two plain records, and at
 * both ends. */
static void run_keeps_each_record_whole(void **state)
{
    (void)state;
    static const uint8_t headers[] = {2, 'h', 6, 'a', 'b', 'c'}; /* h: abc */
    char p[100], v[100],
        t[100]; /* long enough to be added by the short way: leat_batch_builder_add_value() */
    memset(p, 'p', sizeof p);
    memset(v, 'v', sizeof v);
    memset(t, 't', sizeof t);
    const leat_produce_record plain = {.value = p, .value_bytes = 100, .streamlet = -1};
    const leat_produce_record kinds[] = {
        plain,
        {.key = "key", .key_bytes = 3, .value = v, .value_bytes = 100, .streamlet = -1},
        {.value = v,
         .value_bytes = 100,
         .headers = headers,
         .headers_bytes = sizeof headers,
         .header_count = 1,
         .streamlet = -1},
        {.key = "k", .key_bytes = 1, .value = NULL, .value_bytes = 7, .streamlet = -1},
        {.value = NULL, .value_bytes = 100, .streamlet = 0},
        {.key = NULL,
         .key_bytes = 5,
         .headers_bytes = 3,
         .header_count = 1,
         .value = v,
         .value_bytes = 100,
         .streamlet = 0},
        {.value = t, .value_bytes = 100, .timestamp_ms = 1234567890123, .streamlet = -1},
        {.key = "k",
         .key_bytes = 1,
         .value = t,
         .value_bytes = 100,
         .timestamp_ms = -5,
         .streamlet = -1}};
    enum { KINDS = sizeof kinds / sizeof kinds[0], ROWS = 3 * KINDS };
    leat_producer *producer = ready(1000);
    leat_produce_record rows[ROWS];
    for (unsigned i = 0; i < KINDS; i++) {
        rows[3 * i] = kinds[i];
        rows[3 * i + 1] = plain;
        rows[3 * i + 2] = kinds[KINDS - 1 - i];
    }
    int64_t now = fake_shared.world.clock.wall_ms(&fake_shared.world);
    leat_produce_record opens = public_record("opens");
    assert_int_equal(leat_produce(producer, "s", &opens, NULL, NULL), LEAT_OK);
    size_t queued = 0;
    assert_int_equal(leat_produce_many(producer, "s", rows, ROWS, NULL, NULL, &queued), LEAT_OK);
    assert_int_equal(queued, ROWS);
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    struct leat_record stored[ROWS + 3];
    uint32_t batches[ROWS + 3];
    assert_int_equal(public_stored(0, stored, batches, ROWS + 3), ROWS + 2);
    for (unsigned i = 0; i < ROWS; i++) {
        const struct leat_record *got = &stored[2 + i];
        bytes_are(got->key, got->key_bytes, rows[i].key, rows[i].key_bytes);
        bytes_are(got->value, got->value_bytes, rows[i].value, rows[i].value_bytes);
        assert_int_equal(got->header_count, rows[i].headers ? 1 : 0);
        bytes_are(got->headers_bytes ? got->headers : NULL, got->headers_bytes, rows[i].headers,
                  sizeof headers);
        assert_int_equal(got->timestamp_ms, rows[i].timestamp_ms ? rows[i].timestamp_ms : now);
        assert_int_equal(batches[2 + i], batches[1]); /* the one that was open */
    }
    public_end(producer);
}

/* Goal: a run goes on in the next batch where one is full, by its bytes or its records, and nothing is lost or comes
 * twice. */
static void run_goes_on_in_the_next_batch(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    static const uint32_t most[] = {0, 1, 2, 7, 127, 128, 129};
    static char values[COUNT][140];
    leat_produce_record rows[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(values[i], sizeof values[i], "%90u is the number of a value of a run", i);
        rows[i] = public_record(values[i]);
        if (i % 50 == 49) rows[i].key = "k", rows[i].key_bytes = 1;
    }
    for (unsigned m = 0; m < sizeof most / sizeof most[0]; m++) {
        leat_producer_options options = public_options();
        options.batch_bytes = 2000;
        options.linger_us = 1000;
        options.batch_records = most[m];
        leat_producer *producer = public_open(1, &options);
        fake_shared.world.streamlets = 1;
        size_t queued = 0;
        assert_int_equal(leat_produce_many(producer, "s", rows, COUNT, NULL, NULL, &queued),
                         LEAT_OK);
        assert_int_equal(queued, COUNT);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        static struct leat_record stored[COUNT + 1];
        static uint32_t batches[COUNT + 1];
        assert_int_equal(public_stored(0, stored, batches, COUNT + 1), COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
            assert_true(public_is(&stored[i], values[i]));
            assert_int_equal(stored[i].key != NULL, rows[i].key != NULL);
            if (most[m] && i >= most[m]) assert_true(batches[i] > batches[i - most[m]]);
        }
        public_end(producer);
    }
}

/* Goal: a caller that waits for a record in an open batch wakes the background thread, which sleeps until the linger is
 * over; the background thread wakes the caller when the answer arrives. */
static void run_waiter_wakes_and_is_woken(void **state)
{
    (void)state;
    leat_producer *producer = ready(30000000);
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared_run(1000000);
    uint64_t asked = fake_shared.world.now_us;
    unsigned told = fake_shared.told, waited = fake_shared.waited;
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    assert_int_equal(fake_shared.world.now_us - asked, 200);
    assert_int_equal(fake_shared.told - told, 1);
    assert_int_equal(fake_shared.waited - waited, 1);
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared_run(1000000);
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    asked = fake_shared.world.now_us;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    assert_int_equal(fake_shared.world.now_us - asked, 200);
    public_end(producer);
}

static void not_asked(void *arg, const leat_result *result)
{
    (void)arg;
    (void)result;
}

/* Goal: many records by one call wake the background thread where one would: once, when it sleeps. */
static void run_wakes_who_sleeps(void **state)
{
    (void)state;
    leat_producer *producer = ready(30000000);
    leat_produce_record rows[3] = {public_record("a"), public_record("b"), public_record("c")};
    for (unsigned heard = 0; heard < 2; heard++) {
        fake_shared_run(1000000);
        unsigned posted = fake_shared.posted;
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(
                leat_produce_many(producer, "s", rows, 3, heard ? not_asked : NULL, NULL, NULL),
                LEAT_OK);
        assert_int_equal(fake_shared.posted - posted, 1);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
    }
    public_end(producer);
}

/* Goal: a call that waits until a stream is known learns that the stream does not exist. */
static void run_waiter_hears_that_there_is_no_stream(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.create_streams = false;
    leat_producer *producer = public_open(1, &options);
    fake_shared.world.stream_id = 0;
    leat_produce_record record = public_record("v");
    record.streamlet = 1;
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_E_UNKNOWN_STREAM);
    size_t queued = 9;
    fake_shared_run(2000000);
    assert_int_equal(leat_produce_many(producer, "s", &record, 1, NULL, NULL, &queued),
                     LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(queued, 0);
    assert_int_equal(leat_producer_flush(producer, 0), 0);
    public_end(producer);
}

/* Goal: a record that can't be sent fails at the first look behind its time limit, of which there are four in it. */
static void run_record_fails_when_its_time_is_over(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.timeout_ms = 800;
    leat_producer *producer = public_open(1, &options);
    assert_in_range(public_times_out(producer, 2000000), 800000, 800500);
    public_end(producer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_keeps_each_record_whole),
        cmocka_unit_test(run_goes_on_in_the_next_batch),
        cmocka_unit_test(run_waiter_wakes_and_is_woken),
        cmocka_unit_test(run_wakes_who_sleeps),
        cmocka_unit_test(run_waiter_hears_that_there_is_no_stream),
        cmocka_unit_test(run_record_fails_when_its_time_is_over),
    };
    return cmocka_run_group_tests_name("producer run", tests, NULL, NULL);
}
