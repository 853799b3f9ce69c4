/* SPDX-License-Identifier: Apache-2.0 */
/* Records by the public calls: the queue, the records in the logs, the report of each record, the calls that wait and
 * the calls that do not. */
#include "tests/producer/public_rig.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMLETS = 3, MANY = 1000 };

/* A producer of a stream that is known. */
static leat_producer *ready_with(const leat_producer_options *options, uint32_t streamlets)
{
    leat_producer *producer = public_open(1, options);
    fake_shared.world.streamlets = streamlets;
    leat_produce_record record = public_record("first");
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
    return producer;
}

static leat_producer *ready(uint32_t streamlets)
{
    leat_producer_options options = public_options();
    return ready_with(&options, streamlets);
}

/* Goal: each field of a record arrives as it was given; a NULL field is null, whatever its length. */
static void produce_record_arrives_as_it_was_given(void **state)
{
    (void)state;
    static const uint8_t headers[] = {2, 'h', 6, 'a', 'b', 'c'}; /* h: abc */
    static const leat_produce_record rows[] = {
        {.value = "v", .value_bytes = 1, .streamlet = 2},
        {.key = "key", .key_bytes = 3, .value = "v", .value_bytes = 1, .streamlet = 2},
        {.key = "", .key_bytes = 0, .value = "v", .value_bytes = 1, .streamlet = 2},
        {.key = NULL, .key_bytes = 5, .value = "v", .value_bytes = 1, .streamlet = 2},
        {.value = NULL, .value_bytes = 7, .key = "k", .key_bytes = 1, .streamlet = 2},
        {.value = "", .value_bytes = 0, .streamlet = 2},
        {.value = "v", .value_bytes = 1, .timestamp_ms = 1234567890123, .streamlet = 2},
        {.value = "v", .value_bytes = 1, .timestamp_ms = -5, .streamlet = 2},
        {.value = "v",
         .value_bytes = 1,
         .headers = headers,
         .headers_bytes = sizeof headers,
         .header_count = 1,
         .streamlet = 2},
        {.value = "v", .value_bytes = 1, .headers_bytes = 9, .header_count = 2, .streamlet = 2},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    for (unsigned how = 0; how < 3; how++) {
        leat_producer *producer = ready(STREAMLETS);
        int64_t now = fake_shared.world.clock.wall_ms(&fake_shared.world);
        struct told told[ROWS] = {0};
        size_t queued = 0;
        if (how == 0)
            for (unsigned i = 0; i < ROWS; i++)
                assert_int_equal(leat_produce(producer, "s", &rows[i], public_told, &told[i]), 0);
        else
            assert_int_equal(leat_produce_many(producer, "s", rows, ROWS,
                                               how == 1 ? public_told : NULL, &told[0], &queued),
                             LEAT_OK);
        if (how) assert_int_equal(queued, ROWS);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        struct leat_record stored[ROWS + 1];
        uint32_t log = 2 * 2 + 100 % 2; /* of streamlet 2: the id, modulo the logs */
        assert_int_equal(public_stored(log, stored, NULL, ROWS + 1), ROWS);
        for (unsigned i = 0; i < ROWS; i++) {
            const leat_produce_record *row = &rows[i];
            assert_int_equal(stored[i].key != NULL, row->key != NULL);
            assert_int_equal(stored[i].key_bytes, row->key ? row->key_bytes : 0);
            if (row->key) assert_memory_equal(stored[i].key, row->key, row->key_bytes);
            assert_int_equal(stored[i].value != NULL, row->value != NULL);
            assert_int_equal(stored[i].value_bytes, row->value ? row->value_bytes : 0);
            if (row->value) assert_memory_equal(stored[i].value, row->value, row->value_bytes);
            assert_int_equal(stored[i].header_count, row->headers ? row->header_count : 0);
            assert_int_equal(stored[i].headers_bytes, row->headers ? row->headers_bytes : 0);
            if (row->headers)
                assert_memory_equal(stored[i].headers, row->headers, row->headers_bytes);
            assert_int_equal(stored[i].timestamp_ms, row->timestamp_ms ? row->timestamp_ms : now);
            if (how == 0) assert_int_equal(told[i].count, 1);
        }
        if (how == 1) assert_int_equal(told[0].count, ROWS);
        public_end(producer);
    }
}

/* Goal: each record's report has the record's streamlet, log and offset; the log follows from the producer's place
 * among the producers. */
static void produce_tells_where_each_record_lies(void **state)
{
    (void)state;
    for (uint64_t spread = 0; spread < 2; spread++) {
        leat_producer_options options = public_options();
        options.batch_records = 4;
        leat_producer *producer = public_open(1, &options);
        fake_shared.world.streamlets = STREAMLETS;
        fake_shared.spread = spread;
        struct told told[30] = {0};
        char values[30][8];
        for (unsigned i = 0; i < 30; i++) {
            snprintf(values[i], sizeof values[i], "v%u", i);
            leat_produce_record record = public_record(values[i]);
            record.streamlet = (int32_t)(i * 7 % STREAMLETS);
            assert_int_equal(leat_produce(producer, "s", &record, public_told, &told[i]), LEAT_OK);
        }
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        assert_int_equal(fake_shared.spread_id, 100);
        for (unsigned i = 0; i < 30; i++) {
            const leat_result *result = &told[i].result;
            assert_int_equal(told[i].count, 1);
            assert_int_equal(result->code, LEAT_OK);
            assert_string_equal(told[i].text, "");
            assert_int_equal(result->streamlet, i * 7 % STREAMLETS);
            assert_int_equal(result->log, spread % 2);
            assert_int_equal(result->offset, i / STREAMLETS);
            struct leat_record stored[10];
            uint32_t log = result->streamlet * 2 + result->log;
            assert_int_equal(public_stored(log, stored, NULL, 10), 10);
            assert_true(public_is(&stored[result->offset], values[i]));
        }
        public_end(producer);
    }
}

/* Goal: a record that can't be queued is refused at once, and no callback is called for it. */
static void produce_what_is_refused_at_once_is_not_told(void **state)
{
    (void)state;
    leat_producer *producer = ready(2);
    static uint8_t huge[LEAT_BATCH_BYTES_MAX];
    char name[LEAT_STREAM_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    struct told told = {0};
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(producer, "", &record, public_told, &told), LEAT_E_BAD_NAME);
    assert_int_equal(leat_produce(producer, name, &record, public_told, &told), LEAT_E_BAD_NAME);
    record.streamlet = 2;
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_E_UNKNOWN_LOG);
    leat_result result = {.code = -1};
    assert_int_equal(leat_produce_wait(producer, "s", &record, &result), LEAT_E_UNKNOWN_LOG);
    assert_int_equal(result.code, LEAT_E_UNKNOWN_LOG);
    assert_int_equal(result.offset, UINT64_MAX);
    assert_string_equal(result.text, leat_strerror(LEAT_E_UNKNOWN_LOG));
    assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_E_UNKNOWN_LOG);
    record = (leat_produce_record){.value = huge, .value_bytes = sizeof huge, .streamlet = -1};
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_E_TOO_LARGE);
    fake_shared_run(1000000);
    assert_int_equal(told.count, 0);
    assert_int_equal(leat_producer_flush(producer, 0), 0);
    public_end(producer);
}

/* Goal: a call waits for room when the buffer is full, not longer than the options say; after the timeout its record is
 * not queued. On the background thread no call waits. All queued records arrive, in order. */
static void produce_waits_for_room(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    leat_producer_options options = public_options();
    options.batch_bytes = 1024;
    options.buffer_bytes = 4096;
    options.timeout_ms = 300;
    leat_producer *producer = ready_with(&options, 1);
    static struct told told[COUNT];
    memset(told, 0, sizeof told);
    uint8_t value[100] = {0};
    leat_produce_record record = {.value = value, .value_bytes = sizeof value, .streamlet = -1};
    unsigned waited = fake_shared.waited, posted = fake_shared.posted;
    for (uint32_t i = 0; i < COUNT; i++) {
        leat_put_le32(value, i);
        assert_int_equal(leat_produce(producer, "s", &record, public_told, &told[i]), LEAT_OK);
    }
    assert_true(fake_shared.waited - waited > 3); /* and not for each */
    assert_true(fake_shared.waited - waited < COUNT / 8);
    assert_true(fake_shared.posted - posted < COUNT / 8);
    assert_true(fake_shared.sent_asked > 3);
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    static struct leat_record stored[COUNT + 1];
    assert_int_equal(public_stored(0, stored, NULL, COUNT + 1), COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(leat_get_le32(stored[i + 1].value), i);
        assert_int_equal(told[i].result.offset, i + 1);
    }
    fake_shared.world.mute = true; /* now there will be no room */
    fake_shared.own_thread = true;
    leat_code code;
    uint32_t queued = 0;
    while ((code = leat_produce(producer, "s", &record, NULL, NULL)) == LEAT_OK)
        queued++;
    assert_int_equal(code, LEAT_E_AGAIN);
    fake_shared.own_thread = false;
    struct told late = {0};
    uint64_t asked = fake_shared.world.now_us;
    code = leat_produce(producer, "s", &record, public_told, &late);
    uint64_t took = fake_shared.world.now_us - asked;
    /* Those before it have been given up about when its own time was over. */
    assert_true(code == LEAT_E_TIMEOUT ? took == 300000 : took < 300000);
    assert_true(queued > 20);
    fake_shared.world.mute = false;
    public_end(producer);
    assert_int_equal(late.count, code == LEAT_OK);
}

/* Goal: the first record for a streamlet or with a key waits until the stream is known, as long as the options say. */
static void produce_waits_until_the_stream_is_known(void **state)
{
    (void)state;
    for (int down = 0; down < 2; down++) {
        leat_producer_options options = public_options();
        options.timeout_ms = 400;
        leat_producer *producer = public_open(1, &options);
        fake_shared.world.streamlets = 2;
        fake_shared.world.down = down;
        struct told told = {0};
        leat_produce_record record = public_record("v");
        record.streamlet = 1;
        uint64_t asked = fake_shared.world.now_us;
        leat_code code = leat_produce(producer, "s", &record, public_told, &told);
        assert_int_equal(code, down ? LEAT_E_TIMEOUT : LEAT_OK);
        if (down)
            assert_int_equal(fake_shared.world.now_us - asked, 400000);
        else
            assert_in_range(fake_shared.world.now_us - asked, 300, 3000);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        assert_int_equal(told.count, !down);
        public_end(producer);
    }
}

/* Goal: all records of one call arrive, in order, however many they are: on both sides of the number that is added
 * under one lock, with and without a callback. */
static void produce_many_queues_all_in_order(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 127, 128, 129, 255, 256, 257, MANY};
    static leat_produce_record records[MANY];
    static uint32_t numbers[MANY];
    static struct leat_record stored[MANY + 1];
    for (uint32_t i = 0; i < MANY; i++) {
        leat_put_le32((uint8_t *)&numbers[i], i);
        records[i] = (leat_produce_record){.value = &numbers[i], .value_bytes = 4, .streamlet = -1};
    }
    for (unsigned c = 0; c < 2 * sizeof counts / sizeof counts[0]; c++) {
        uint32_t count = counts[c / 2];
        leat_producer_options options = public_options();
        options.batch_bytes = c % 4 < 2 ? 1024 : 65536;
        leat_producer *producer = ready_with(&options, 1);
        struct told told = {0};
        size_t queued = 77;
        assert_int_equal(leat_produce_many(producer, "s", records, count,
                                           c % 2 ? public_told : NULL, &told, &queued),
                         LEAT_OK);
        assert_int_equal(queued, count);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        assert_int_equal(told.count, c % 2 ? count : 0);
        assert_int_equal(public_stored(0, stored, NULL, MANY + 1), count + 1);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(leat_get_le32(stored[i + 1].value), i);
        leat_producer_stats stats;
        leat_producer_stats_get(producer, &stats);
        assert_int_equal(stats.records_acked, count + 1);
        public_end(producer);
    }
}

/* Goal: the first record that is refused ends the call; the call returns which record was refused, and the records
 * before it are queued. Where there is no room, the call waits for room, also in the middle of the records. */
static void produce_many_ends_at_the_one_that_is_refused(void **state)
{
    (void)state;
    static leat_produce_record records[MANY];
    static uint32_t numbers[MANY];
    static struct leat_record stored[MANY + 1];
    static const uint32_t at[] = {0, 1, 5, 127, 128, 129, 500};
    for (unsigned a = 0; a < 2 * sizeof at / sizeof at[0]; a++) {
        uint32_t bad = at[a / 2];
        leat_producer *producer = ready(1);
        for (uint32_t i = 0; i < MANY; i++) {
            leat_put_le32((uint8_t *)&numbers[i], i);
            records[i] = (leat_produce_record){
                .value = &numbers[i], .value_bytes = 4, .streamlet = i == bad ? 1 : -1};
        }
        struct told told = {0};
        size_t queued = 77;
        assert_int_equal(leat_produce_many(producer, "s", records, MANY, a % 2 ? public_told : NULL,
                                           &told, a % 4 < 2 ? &queued : NULL),
                         LEAT_E_UNKNOWN_LOG);
        assert_int_equal(queued, a % 4 < 2 ? bad : 77);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        assert_int_equal(told.count, a % 2 ? bad : 0);
        assert_int_equal(public_stored(0, stored, NULL, MANY + 1), bad + 1);
        public_end(producer);
    }
    leat_producer_options options = public_options();
    options.batch_bytes = 1024;
    options.buffer_bytes = 4096;
    leat_producer *producer = ready_with(&options, 1);
    for (uint32_t i = 0; i < MANY; i++)
        records[i].streamlet = -1;
    size_t queued = 0;
    unsigned waited = fake_shared.waited;
    assert_int_equal(leat_produce_many(producer, "s", records, MANY, NULL, NULL, &queued), LEAT_OK);
    assert_int_equal(queued, MANY);
    assert_true(fake_shared.waited > waited);
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    assert_int_equal(public_stored(0, stored, NULL, MANY + 1), MANY + 1);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(leat_get_le32(stored[i + 1].value), i);
    /* And where none comes, it ends there. */
    fake_shared.world.mute = true;
    fake_shared.own_thread = true;
    assert_int_equal(leat_produce_many(producer, "s", records, MANY, NULL, NULL, &queued),
                     LEAT_E_AGAIN);
    assert_in_range(queued, 100, MANY - 1);
    fake_shared.own_thread = false;
    fake_shared.world.mute = false;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    assert_int_equal(public_stored(0, stored, NULL, MANY + 1), MANY + 1);
    public_end(producer);
}

/* Goal: a call that waits for a record returns as soon as the record's result is there, whatever the linger. */
static void produce_wait_returns_with_the_ack(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.linger_us = 30000000;
    leat_producer *producer = ready_with(&options, 1);
    leat_produce_record record = public_record("v");
    for (unsigned i = 0; i < 3; i++) {
        uint64_t asked = fake_shared.world.now_us;
        leat_result result = {.code = -1};
        assert_int_equal(leat_produce_wait(producer, "s", &record, i == 1 ? NULL : &result),
                         LEAT_OK);
        assert_int_equal(fake_shared.world.now_us - asked, 200);
        if (i == 1) continue;
        assert_int_equal(result.code, LEAT_OK);
        assert_int_equal(result.offset, 1 + i);
        assert_string_equal(result.text, leat_strerror(LEAT_OK));
    }
    fake_shared.world.batch_bytes_max = 80;
    static uint8_t value[100];
    record = (leat_produce_record){.value = value, .value_bytes = sizeof value, .streamlet = -1};
    leat_result result = {.code = -1};
    assert_int_equal(leat_produce_wait(producer, "s", &record, &result), LEAT_E_TOO_LARGE);
    assert_int_equal(result.code, LEAT_E_TOO_LARGE);
    assert_string_equal(result.text, leat_strerror(LEAT_E_TOO_LARGE));
    assert_int_equal(result.offset, UINT64_MAX);
    public_end(producer);
}

/* Goal: a flush sends what has gathered at once, waits as long as it may, and says how many records are open. */
static void produce_flush_says_what_is_open(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.linger_us = 30000000;
    leat_producer *producer = ready_with(&options, 2);
    struct told told[5] = {0};
    leat_produce_record record = public_record("v");
    for (unsigned i = 0; i < 5; i++) {
        record.streamlet = (int32_t)(i % 2);
        assert_int_equal(leat_produce(producer, "s", &record, public_told, &told[i]), LEAT_OK);
    }
    uint64_t asked = fake_shared.world.now_us;
    assert_int_equal(leat_producer_flush(producer, 0), 5);
    assert_int_equal(fake_shared.world.now_us, asked);
    fake_shared.world.mute_streamlet = 2;
    assert_int_equal(leat_producer_flush(producer, 70), 2);
    assert_int_equal(fake_shared.world.now_us - asked, 70000);
    assert_int_equal(told[0].count + told[2].count + told[4].count, 3);
    assert_int_equal(told[0].at_us - asked, 200);
    fake_shared.world.mute_streamlet = 0;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(told[i].count, 1);
    unsigned waited = fake_shared.waited, posted = fake_shared.posted, was = fake_shared.told;
    assert_int_equal(leat_producer_flush(producer, -1), 0); /* nothing to wait for */
    assert_int_equal(fake_shared.waited, waited);
    assert_int_equal(fake_shared.posted, posted);
    /* Nobody waits: nobody is woken. */
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared_run(31000000);
    assert_int_equal(fake_shared.told, was);
    assert_int_equal(leat_producer_flush(producer, 0), 0);
    public_end(producer);
}

/* Goal: the background thread is woken when it sleeps, and only then: once for many records, not while appends are
 * under way, again for the next record. */
static void produce_tells_the_background_thread_when_it_sleeps(void **state)
{
    (void)state;
    leat_producer *producer = ready(1);
    fake_shared_run(1000000);
    leat_produce_record record = public_record("v");
    for (unsigned round = 0; round < 3; round++) {
        unsigned posted = fake_shared.posted, turns = fake_shared.turns;
        for (unsigned i = 0; i < 50; i++)
            assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
        assert_int_equal(fake_shared.posted - posted, 1);
        fake_shared_run(1100); /* it is on its way */
        assert_true(fake_shared.turns > turns);
        for (unsigned i = 0; i < 50; i++)
            assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
        assert_int_equal(fake_shared.posted - posted, 1);
        fake_shared_run(1000000);
        assert_int_equal(leat_producer_flush(producer, 0), 0);
        turns = fake_shared.turns;
        fake_shared_run(60000000); /* and it sleeps when there is nothing to do */
        assert_true(fake_shared.turns - turns <= 2);
    }
    public_end(producer);
}

/* Goal: each number of the statistics, and the last error with its text, which stays when all is well again. */
static void produce_statistics_say_what_happened(void **state)
{
    (void)state;
    leat_producer_options options = public_options();
    options.batch_records = 2;
    options.timeout_ms = 500;
    leat_producer *producer = ready_with(&options, 1);
    leat_producer_stats stats;
    memset(&stats, 0xff, sizeof stats);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.records_acked, 1);
    assert_int_equal(stats.batches_acked, 1);
    assert_int_equal(stats.records_failed, 0);
    assert_int_equal(stats.retries, 0);
    assert_int_equal(stats.last_error, LEAT_OK);
    assert_string_equal(stats.last_text, "");
    leat_produce_record record = public_record("v");
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.records_acked, 8);
    assert_int_equal(stats.batches_acked, 5);
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < fake_shared.world.log[0].batch_count; b++)
        bytes += fake_shared.world.log[0].batches[b].count;
    assert_int_equal(stats.bytes_acked, bytes);
    fake_shared.world.faults.refuse_again = 1000;
    assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
    fake_shared_run(50000);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.last_error, LEAT_E_AGAIN);
    assert_string_equal(stats.last_text, "refused by the script");
    assert_in_range(stats.retries, 1, fake_shared.world.refused);
    fake_shared.world.faults.refuse_again = 0;
    assert_int_equal(leat_producer_flush(producer, -1), 0);
    leat_producer_stats_get(producer, &stats);
    assert_int_equal(stats.records_acked, 9);
    assert_int_equal(stats.records_failed, 0);
    assert_int_equal(stats.last_error, LEAT_E_AGAIN);
    assert_string_equal(stats.last_text, "refused by the script");
    fake_shared.world.faults.refuse_hard = 1000; /* another code, another text */
    leat_result result;
    assert_int_equal(leat_produce_wait(producer, "s", &record, &result), LEAT_E_INVALID);
    leat_producer_stats_get(producer, &stats); /* before who was told looks */
    assert_int_equal(stats.records_failed, 1);
    assert_int_equal(stats.last_error, LEAT_E_INVALID);
    assert_string_equal(stats.last_text, "by the script");
    public_end(producer);
}

/* Records by a callback, on the background thread. */
static struct {
    leat_producer *producer;
    unsigned left, refused;
    struct told told[64];
} chain;

static void chain_told(void *arg, const leat_result *result)
{
    public_told(arg, result);
    if (!chain.left) return;
    leat_produce_record record = public_record("next");
    chain.left--;
    if (leat_produce(chain.producer, "s", &record, chain_told, &chain.told[chain.left]) != LEAT_OK)
        chain.refused++;
}

/* Goal: a callback may produce; its records are sent and reported. */
static void produce_by_a_callback_goes_on(void **state)
{
    (void)state;
    memset(&chain, 0, sizeof chain);
    chain.producer = ready(1);
    chain.left = 63;
    leat_produce_record record = public_record("v");
    assert_int_equal(leat_produce(chain.producer, "s", &record, chain_told, &chain.told[63]), 0);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(leat_producer_flush(chain.producer, -1), 0);
    fake_shared_run(1000000);
    assert_int_equal(chain.refused, 0);
    assert_int_equal(chain.left, 0);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(chain.told[i].count, 1);
        assert_int_equal(chain.told[i].result.offset, 64 - i);
    }
    public_end(chain.producer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(produce_record_arrives_as_it_was_given),
        cmocka_unit_test(produce_tells_where_each_record_lies),
        cmocka_unit_test(produce_what_is_refused_at_once_is_not_told),
        cmocka_unit_test(produce_waits_for_room),
        cmocka_unit_test(produce_waits_until_the_stream_is_known),
        cmocka_unit_test(produce_many_queues_all_in_order),
        cmocka_unit_test(produce_many_ends_at_the_one_that_is_refused),
        cmocka_unit_test(produce_wait_returns_with_the_ack),
        cmocka_unit_test(produce_flush_says_what_is_open),
        cmocka_unit_test(produce_tells_the_background_thread_when_it_sleeps),
        cmocka_unit_test(produce_statistics_say_what_happened),
        cmocka_unit_test(produce_by_a_callback_goes_on),
    };
    return cmocka_run_group_tests_name("producer produce", tests, NULL, NULL);
}
