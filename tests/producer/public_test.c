/* SPDX-License-Identifier: Apache-2.0 */
/* The public producer is opened and closed: which options it takes, what each option does, what the producer reports of
 * itself. */
#include "tests/producer/public_rig.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Goal: the defaults are those of the header. */
static void public_options_have_their_defaults(void **state)
{
    (void)state;
    leat_producer_options options;
    memset(&options, 0xff, sizeof options);
    leat_producer_options_init(&options);
    assert_int_equal(options.struct_bytes, sizeof options);
    assert_null(options.brokers);
    assert_null(options.client_name);
    assert_int_equal(options.batch_bytes, 65536);
    assert_int_equal(options.linger_us, 1000);
    assert_int_equal(options.compression, 0);
    assert_int_equal(options.buffer_bytes, 33554432);
    assert_int_equal(options.timeout_ms, 120000);
    assert_true(options.create_streams);
    assert_int_equal(options.batch_records, 0);
}

/* Is it taken? Else: with which code, and a sentence that has this in it? */
static void taken(const leat_producer_options *options, leat_code code, const char *in_text)
{
    size_t before = leat_mem_bytes(LEAT_MEM_CLIENT);
    fake_shared_begin(1);
    leat_message message = {.code = -1};
    leat_producer *producer = leat_producer_open(options, &message);
    if (code == LEAT_OK) {
        assert_non_null(producer);
        assert_int_equal(fake_shared.started, 1);
        assert_int_equal(message.code, -1); /* nothing is said */
    } else {
        assert_null(producer);
        assert_int_equal(message.code, code);
        assert_non_null(strstr(message.text, in_text));
        assert_int_equal(fake_shared.opened, 0);
        assert_null(leat_producer_open(options, NULL));
    }
    leat_producer_close(producer);
    fake_shared_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
}

/* Goal: each option on both sides of its bounds. */
static void public_options_beyond_their_bounds_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes;
        bool ok;
    } batches[] = {{0, true},    {1, false},          {1023, false},
                   {1024, true}, {1024 * 1024, true}, {1024 * 1024 + 1, false}};
    for (unsigned i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        leat_producer_options options = public_options();
        options.batch_bytes = batches[i].bytes;
        taken(&options, batches[i].ok ? LEAT_OK : LEAT_E_CONFIG, "between 1024 and 1048576");
    }
    for (int codec = -1; codec <= 5; codec++) {
        leat_producer_options options = public_options();
        options.compression = codec;
        taken(&options, codec == 0 || codec == 3 || codec == 4 ? LEAT_OK : LEAT_E_UNSUPPORTED,
              "0 none, 3 lz4, 4 zstd");
    }
    const size_t least = offsetof(leat_producer_options, batch_records);
    const struct {
        size_t bytes;
        bool ok;
    } sizes[] = {{0, false},
                 {least - 1, false},
                 {least, true},
                 {sizeof(leat_producer_options), true},
                 {sizeof(leat_producer_options) + 1, false}};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        leat_producer_options options = public_options();
        options.struct_bytes = sizes[i].bytes;
        taken(&options, sizes[i].ok ? LEAT_OK : LEAT_E_CONFIG, "leat_producer_options_init()");
    }
    taken(NULL, LEAT_OK, "");
}

/* Goal: the options of the connection reach the background thread. */
static void public_options_of_the_connection_are_passed_on(void **state)
{
    (void)state;
    static const struct {
        uint32_t timeout_ms;
        uint64_t request_us;
    } rows[] = {{1, 1000}, {29999, 29999000}, {30000, 30000000}, {30001, 30000000}, {0, 30000000}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        leat_producer_options options = public_options();
        options.timeout_ms = rows[i].timeout_ms;
        options.brokers = i ? "one:1,two:2" : NULL;
        options.client_name = i ? "me" : NULL;
        leat_producer *producer = public_open(1, &options);
        assert_string_equal(fake_shared.brokers, i ? "one:1,two:2" : "-");
        assert_string_equal(fake_shared.name, i ? "me" : "-");
        assert_int_equal(fake_shared.options.request_timeout_us, rows[i].request_us);
        assert_true(fake_shared.options.common);
        assert_false(fake_shared.options.fail_fast);
        public_end(producer);
    }
}

/* Goal: where the background thread can't be had, or memory, the caller hears why and nothing is left. */
static void public_open_that_fails_leaves_nothing(void **state)
{
    (void)state;
    size_t before = leat_mem_bytes(LEAT_MEM_CLIENT);
    fake_shared_begin(1);
    leat_message message = {0};
    fake_shared.refuse = LEAT_E_DISK;
    assert_null(leat_producer_open(NULL, &message));
    assert_int_equal(message.code, LEAT_E_DISK);
    assert_string_equal(message.text, "refused by the script");
    assert_null(leat_producer_open(NULL, NULL));
    assert_int_equal(fake_shared.closed, 0);
    fake_shared.refuse = LEAT_OK;
    leat_producer *producer = NULL;
    unsigned refused = 0;
    leat_producer_options options = public_options();
    options.compression = 3; /* for which the engine takes memory, too */
    for (uint64_t n = 1; !producer; n++) {
        leat_mem_fail_at(n);
        message = (leat_message){0};
        producer = leat_producer_open(&options, &message);
        leat_mem_fail_at(0);
        if (producer) break;
        refused++;
        assert_int_equal(message.code, LEAT_E_NO_MEMORY);
        assert_true(message.text[0] != 0);
        assert_int_equal(fake_shared.started, 0);
        fake_shared_run(100000); /* connections' memory goes with their end */
        assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
    }
    assert_true(refused >= 6);
    leat_producer_close(producer);
    fake_shared_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
}

/* How many records of 100 bytes a batch of so many bytes has. */
static uint32_t fitting(uint32_t bytes)
{
    static uint8_t room[1024 * 1024];
    static const uint8_t value[100];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, room, bytes);
    while (leat_batch_builder_add(&builder, fake_shared.world.clock.wall_ms(&fake_shared.world),
                                  NULL, 0, value, sizeof value, NULL, 0, 0) == LEAT_OK)
        ;
    return builder.record_count;
}

/* Goal: a batch has as many bytes and as many records as the options say; who was built against an earlier header
 * has no limit on its records, whatever lies behind its struct. */
static void public_batches_are_as_large_as_the_options_say(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static const struct {
        uint32_t bytes, records;
        bool early;
    } rows[] = {{1024, 0, false}, {2000, 0, false}, {0, 0, false},
                {0, 7, false},    {1024, 3, true},  {0, 1, false}};
    static struct leat_record stored[COUNT];
    static uint32_t batches[COUNT];
    static uint8_t value[100];
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        leat_producer_options options = public_options();
        options.batch_bytes = rows[r].bytes;
        options.batch_records = rows[r].records;
        options.linger_us = 5000; /* none goes for its time */
        if (rows[r].early) options.struct_bytes = offsetof(leat_producer_options, batch_records);
        leat_producer *producer = public_open(r + 1, &options);
        leat_produce_record record = {.value = value, .value_bytes = sizeof value, .streamlet = -1};
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(leat_produce(producer, "s", &record, NULL, NULL), LEAT_OK);
        uint32_t most = rows[r].records && !rows[r].early
                            ? rows[r].records
                            : fitting(rows[r].bytes ? rows[r].bytes : 65536);
        assert_int_equal(leat_producer_flush(producer, -1), 0);
        uint32_t log = fake_shared.world.log[0].batch_count ? 0 : 1;
        assert_int_equal(public_stored(log, stored, batches, COUNT), COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(batches[i], i / most);
        public_end(producer);
    }
}

/* Goal: a record goes when it has waited for the linger. */
static void public_record_waits_for_the_linger(void **state)
{
    (void)state;
    static const uint32_t lingers[] = {0, 1, 777, 5000, 60000};
    for (unsigned i = 0; i < sizeof lingers / sizeof lingers[0]; i++) {
        leat_producer_options options = public_options();
        options.linger_us = lingers[i];
        leat_producer *producer = public_open(1, &options);
        leat_produce_record record = public_record("first");
        assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
        fake_shared_run(1000000);
        struct told told = {0};
        uint64_t asked = fake_shared.world.now_us;
        assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
        fake_shared_run(1000000);
        assert_int_equal(told.count, 1);
        assert_int_equal(told.at_us - asked, lingers[i] + 200); /* there and back */
        public_end(producer);
    }
}

/* Goal: batches are compressed as the options say. */
static void public_batches_are_compressed_as_the_options_say(void **state)
{
    (void)state;
    static uint8_t value[4000];
    for (unsigned codec = 0; codec <= 4; codec++) {
        if (codec == 1 || codec == 2) continue;
        leat_producer_options options = public_options();
        options.compression = (int)codec;
        leat_producer *producer = public_open(1, &options);
        leat_produce_record record = {.value = value, .value_bytes = sizeof value, .streamlet = -1};
        leat_result result;
        assert_int_equal(leat_produce_wait(producer, "s", &record, &result), LEAT_OK);
        const struct fake_log *log = &fake_shared.world.log[result.log];
        assert_int_equal(leat_batch_codec(log->batches[0].bytes, log->batches[0].count), codec);
        assert_true((log->batches[0].count < 1000) == (codec != 0));
        struct leat_record stored;
        assert_int_equal(public_stored(result.log, &stored, NULL, 1), 1);
        assert_int_equal(stored.value_bytes, sizeof value);
        public_end(producer);
    }
}

/* Goal: the buffer holds as many batches as the options say, two at least; the background thread, which makes the room,
 * does not wait for it. */
static void public_buffer_is_as_large_as_the_options_say(void **state)
{
    (void)state;
    static const struct {
        uint32_t buffer, batch, batches;
    } rows[] = {{1, 1024, 2},    {2048, 1024, 2},       {3071, 1024, 2},
                {3072, 1024, 3}, {10 * 1088, 1030, 10}, {0, 1048576, 32}};
    static uint8_t value[100];
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        leat_producer_options options = public_options();
        options.buffer_bytes = rows[r].buffer;
        options.batch_bytes = rows[r].batch;
        options.timeout_ms = 50;
        leat_producer *producer = public_open(1, &options);
        fake_shared.world.down = true;
        leat_produce_record record = {.value = value, .value_bytes = sizeof value, .streamlet = -1};
        uint32_t count = 0;
        fake_shared.own_thread = true;
        leat_code code;
        while ((code = leat_produce(producer, "s", &record, NULL, NULL)) == LEAT_OK)
            count++;
        fake_shared.own_thread = false;
        assert_int_equal(code, LEAT_E_AGAIN);
        assert_int_equal(fake_shared.waited, 0);
        assert_int_equal(count, rows[r].batches * fitting(rows[r].batch));
        public_end(producer);
    }
}

/* Goal: a record that can't be sent fails when its time is over, and soon; the stream is made only where that is
 * asked for. */
static void public_records_fail_after_their_time(void **state)
{
    (void)state;
    static const uint32_t limits[] = {40, 1000, 60000};
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        leat_producer_options options = public_options();
        options.timeout_ms = limits[i];
        leat_producer *producer = public_open(1, &options);
        uint64_t limit_us = limits[i] * UINT64_C(1000);
        assert_in_range(public_times_out(producer, 120000000), limit_us,
                        limit_us + (limit_us / 4 < 250000 ? limit_us / 4 : 250000));
        public_end(producer);
    }
    for (int may = 0; may < 2; may++) {
        leat_producer_options options = public_options();
        options.create_streams = may;
        leat_producer *producer = public_open(1, &options);
        leat_produce_record record = public_record("v");
        leat_result result;
        leat_code code = leat_produce_wait(producer, "s", &record, &result);
        assert_int_equal(code, may ? LEAT_OK : LEAT_E_UNKNOWN_STREAM);
        assert_int_equal(fake_shared.world.stream_id != 0, may);
        public_end(producer);
    }
}

/* Goal: closing sends what has gathered and waits until it is acked; then nothing is left. NULL is allowed. */
static void public_close_sends_what_has_gathered(void **state)
{
    (void)state;
    leat_producer_close(NULL);
    leat_producer_options options = public_options();
    options.linger_us = 50000000;
    leat_producer *producer = public_open(1, &options);
    struct told told[3] = {0};
    leat_produce_record record = public_record("v");
    uint64_t asked = fake_shared.world.now_us;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(leat_produce(producer, "s", &record, public_told, &told[i]), LEAT_OK);
    public_end(producer);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(told[i].count, 1);
        assert_int_equal(told[i].result.code, LEAT_OK);
        assert_in_range(told[i].at_us - asked, 1, 10000);
    }
}

/* Goal: closing waits for a silent server as long as the options say, and no longer; each record is reported once. */
static void public_close_waits_as_long_as_it_should(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        leat_producer_options options = public_options();
        options.timeout_ms = 2000;
        leat_producer *producer = public_open(1, &options);
        leat_produce_record record = public_record("v");
        struct told told[4] = {0};
        assert_int_equal(leat_produce_wait(producer, "s", &record, NULL), LEAT_OK);
        fake_shared.world.mute = true;
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(leat_produce(producer, "s", &record, public_told, &told[i]), LEAT_OK);
        if (late) fake_shared_run(1500000); /* their time is over before the wait is */
        uint64_t asked = fake_shared.world.now_us;
        leat_producer_close(producer);
        uint64_t took = fake_shared.world.now_us - asked;
        fake_shared_end();
        assert_in_range(took, late ? 500000 : 1900000, late ? 800000 : 2010000);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(told[i].count, 1);
            assert_true(told[i].result.code == LEAT_E_TIMEOUT ||
                        told[i].result.code == LEAT_E_CANCELLED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_options_have_their_defaults),
        cmocka_unit_test(public_options_beyond_their_bounds_are_refused),
        cmocka_unit_test(public_options_of_the_connection_are_passed_on),
        cmocka_unit_test(public_open_that_fails_leaves_nothing),
        cmocka_unit_test(public_batches_are_as_large_as_the_options_say),
        cmocka_unit_test(public_record_waits_for_the_linger),
        cmocka_unit_test(public_batches_are_compressed_as_the_options_say),
        cmocka_unit_test(public_buffer_is_as_large_as_the_options_say),
        cmocka_unit_test(public_records_fail_after_their_time),
        cmocka_unit_test(public_close_sends_what_has_gathered),
        cmocka_unit_test(public_close_waits_as_long_as_it_should),
    };
    return cmocka_run_group_tests_name("producer public", tests, NULL, NULL);
}
