/* SPDX-License-Identifier: Apache-2.0 */
/* The gather's bounds: how large the pool is, what is refused, and that a refusal changes nothing. */
#include "producer/gather.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t value[4096];

static uint64_t now_us(void *ctx)
{
    (void)ctx;
    return 1000;
}
static int64_t wall_ms(void *ctx)
{
    (void)ctx;
    return 1000000;
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void some_call(void)
{
}

/* Goal: the pool has as many buffers as fit, two at least, each at a line of the cache of its own. */
static void gather_pool_is_what_fits(void **state)
{
    (void)state;
    static const struct {
        uint32_t batch;
        uint64_t buffer;
        uint32_t count;
    } rows[] = {{64, 0, 2},      {64, 127, 2},    {64, 128, 2},   {64, 191, 2},     {64, 192, 3},
                {65, 64 * 6, 3}, {100, 1280, 10}, {100, 1279, 9}, {1024, 10240, 10}};
    struct leat_gather_clock clock = {NULL, now_us, wall_ms};
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct leat_gather gather;
        memset(&gather, 0xff, sizeof gather);
        struct leat_gather_options options = {
            .batch_bytes = rows[r].batch, .linger_us = 3, .buffer_bytes = rows[r].buffer};
        assert_int_equal(leat_gather_init(&gather, &options, clock), LEAT_OK);
        assert_int_equal(gather.batch_count, rows[r].count);
        assert_int_equal(gather.free_count, rows[r].count);
        assert_int_equal(gather.batch_records, 1 << 20);
        assert_int_equal(gather.linger_us, 3);
        assert_true(gather.notify_wanted);
        uint64_t stride = (rows[r].batch + 63) / 64 * 64;
        const struct leat_list *link = gather.free.next;
        for (uint32_t i = 0; i < rows[r].count; i++, link = link->next) {
            assert_ptr_equal(link, &gather.batches[i].link);
            assert_ptr_equal(gather.batches[i].bytes, gather.memory + i * stride);
            assert_int_equal(gather.batches[i].capacity, rows[r].batch);
            memset(gather.batches[i].bytes, 1, rows[r].batch);
        }
        assert_ptr_equal(link, &gather.free);
        leat_gather_fini(&gather);
        assert_null(gather.memory);
    }
    struct leat_gather gather;
    struct leat_gather_options options = {.batch_bytes = 1024,
                                          .buffer_bytes = UINT64_C(1024) * (UINT32_MAX / 2 + 1)};
    assert_int_equal(leat_gather_init(&gather, &options, clock), LEAT_E_TOO_LARGE);
    options.buffer_bytes -= 1024;
    leat_mem_ask(always, NULL);
    assert_int_equal(leat_gather_init(&gather, &options, clock), LEAT_E_NO_MEMORY);
    leat_mem_ask(NULL, NULL);
}

/* A gather of two batches of 1,024 bytes. */
static void small_begin(struct leat_gather *gather)
{
    struct leat_gather_options options = {.batch_bytes = 1024, .buffer_bytes = 2048};
    struct leat_gather_clock clock = {NULL, now_us, wall_ms};
    assert_int_equal(leat_gather_init(gather, &options, clock), LEAT_OK);
}

/* Goal: an allocation that fails refuses that record, and changes nothing else: the next one is taken. */
static void gather_without_memory_refuses_one_record(void **state)
{
    (void)state;
    size_t before = leat_mem_bytes(LEAT_MEM_CLIENT);
    struct leat_gather gather;
    struct leat_gather_options options = {.batch_bytes = 1024, .buffer_bytes = 2048};
    struct leat_gather_clock clock = {NULL, now_us, wall_ms};
    for (unsigned n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        assert_int_equal(leat_gather_init(&gather, &options, clock), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
    }
    small_begin(&gather);
    bool notify = false;
    struct leat_gather_record plain = {
        .stream = "s", .streamlet = -1, .value = value, .value_bytes = 10};
    struct leat_gather_record told = plain, big = plain;
    told.fn = some_call;
    big.value_bytes = 2000;
    leat_mem_fail_at(1);
    assert_int_equal(leat_gather_add(&gather, &plain, &notify), LEAT_E_NO_MEMORY); /* the stream */
    assert_int_equal(gather.stream_count, 0);
    leat_mem_fail_at(2);
    assert_int_equal(leat_gather_add(&gather, &told, &notify),
                     LEAT_E_NO_MEMORY); /* the first callback */
    assert_int_equal(gather.stream_count, 1);
    assert_int_equal(gather.free_count, 2);
    assert_true(leat_list_empty(&gather.opened) && !gather.streams[0]->open_any);
    for (unsigned n = 1; n <= 3;
         n++) { /* the batch, its bytes, and of one with a callback its list */
        leat_mem_fail_at(n);
        big.fn = n == 3 ? some_call : NULL;
        assert_int_equal(leat_gather_add(&gather, &big, &notify), LEAT_E_NO_MEMORY);
        assert_int_equal(gather.big_bytes, 0);
        assert_true(leat_list_empty(&gather.opened) && leat_list_empty(&gather.ready));
    }
    leat_mem_fail_at(0);
    assert_false(notify);
    assert_true(gather.notify_wanted);
    assert_int_equal(gather.open_records, 0);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(leat_gather_add(&gather, &told, &notify), LEAT_OK);
    leat_mem_fail_at(1);
    assert_int_equal(leat_gather_add(&gather, &told, &notify),
                     LEAT_E_NO_MEMORY); /* a longer list */
    struct leat_producer_batch *batch = gather.streams[0]->open_any;
    assert_int_equal(batch->builder.record_count, 16);
    assert_int_equal(batch->call_count, 16);
    assert_int_equal(gather.open_records, 16);
    leat_mem_fail_at(1);
    gather.streams[0]->refused = LEAT_E_UNKNOWN_STREAM;
    assert_int_equal(leat_gather_stream_known(gather.streams[0], 3), LEAT_E_NO_MEMORY);
    assert_int_equal(gather.streams[0]->streamlets, 0);
    leat_mem_fail_at(0);
    assert_int_equal(leat_gather_stream_known(gather.streams[0], 3), LEAT_OK);
    assert_int_equal(gather.streams[0]->streamlets, 3);
    assert_int_equal(leat_gather_stream_known(gather.streams[0], 2), LEAT_OK); /* never fewer */
    assert_int_equal(gather.streams[0]->streamlets, 3);
    leat_gather_fini(&gather);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), before);
}

/* Goal: names, the number of streams and the size of a record have their bounds. */
static void gather_bounds_are_kept(void **state)
{
    (void)state;
    static uint8_t huge[LEAT_BATCH_BYTES_MAX];
    struct leat_gather gather;
    small_begin(&gather);
    bool notify = false;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 2] = {0};
    struct leat_gather_record record = {
        .stream = name, .streamlet = -1, .value = value, .value_bytes = 1};
    assert_int_equal(leat_gather_add(&gather, &record, &notify), LEAT_E_BAD_NAME);
    memset(name, 'n', sizeof name - 1);
    assert_int_equal(leat_gather_add(&gather, &record, &notify), LEAT_E_BAD_NAME);
    name[sizeof name - 2] = 0;
    assert_int_equal(leat_gather_add(&gather, &record, &notify), LEAT_OK);
    assert_string_equal(gather.streams[0]->name, name);
    for (uint32_t i = 1; i <= LEAT_GATHER_STREAMS_MAX; i++) {
        snprintf(name, sizeof name, "s%u", i);
        leat_err want = i < 2                          ? LEAT_OK
                        : i == LEAT_GATHER_STREAMS_MAX ? LEAT_E_TOO_MANY
                                                       : LEAT_E_AGAIN;
        assert_int_equal(leat_gather_add(&gather, &record, &notify), want); /* two buffers */
    }
    assert_int_equal(gather.stream_count, LEAT_GATHER_STREAMS_MAX);
    record.stream = "s1";
    size_t most = sizeof huge - LEAT_BATCH_HEADER_BYTES - leat_batch_record_bytes_max(0, 0, 0);
    record.value = huge;
    record.value_bytes = most + 1;
    assert_int_equal(leat_gather_add(&gather, &record, &notify), LEAT_E_TOO_LARGE);
    assert_int_equal(gather.big_bytes, 0);
    record.value_bytes = most;
    assert_int_equal(leat_gather_add(&gather, &record, &notify),
                     LEAT_OK); /* the only one may be of any size */
    assert_int_equal(gather.big_bytes, LEAT_BATCH_BYTES_MAX);
    record.value_bytes = 2000;
    notify = false;
    gather.room_wanted = false;
    assert_int_equal(leat_gather_add(&gather, &record, &notify), LEAT_E_AGAIN);
    assert_true(notify && gather.room_wanted);
    struct leat_list taken, *link;
    leat_list_init(&taken);
    leat_gather_take(&gather, UINT64_MAX, NULL, NULL, &taken);
    while ((link = leat_list_pop_front(&taken)))
        (void)leat_gather_give(&gather, LEAT_CONTAINER(link, struct leat_producer_batch, link));
    leat_gather_fini(&gather);
}

/* Goal: a key's streamlet is Kafka's, for keys of any length. Method: its hash as Kafka writes it, by bytes. */
static void gather_key_hash_is_kafkas(void **state)
{
    (void)state;
    uint32_t number = 5;
    for (uint32_t bytes = 0; bytes < 40; bytes++)
        for (unsigned round = 0; round < 20; round++) {
            uint8_t key[40];
            for (uint32_t i = 0; i < bytes; i++)
                key[i] = (uint8_t)((number = number * 1103515245 + 12345) >> 16);
            uint32_t h = 0x9747b28cu ^ bytes, at = 0;
            for (; at + 4 <= bytes; at += 4) {
                uint32_t k = 0;
                for (uint32_t i = 0; i < 4; i++)
                    k |= (uint32_t)key[at + i] << (8 * i);
                k *= 0x5bd1e995;
                k ^= k >> 24;
                h = h * 0x5bd1e995 ^ k * 0x5bd1e995;
            }
            for (uint32_t i = bytes; i-- > at;)
                h ^= (uint32_t)key[i] << (8 * (i - at));
            if (bytes % 4) h *= 0x5bd1e995;
            h ^= h >> 13;
            h *= 0x5bd1e995;
            h ^= h >> 15;
            assert_int_equal(leat_gather_streamlet_of_key(key, bytes, 1000003),
                             (h & 0x7fffffffu) % 1000003);
        }
}

/* Goal: a batch whose linger ends while a caller copies into the batch is left alone. The caller makes the batch ready
 * when the copy ends, and tells the engine; other batches go meanwhile; no record of the run is lost. */
static void gather_batch_due_while_filled_goes_after_it(void **state)
{
    (void)state;
    struct leat_gather gather;
    struct leat_gather_options options = {
        .batch_bytes = 16 * 1024, .batch_records = 100, .buffer_bytes = 64 * 1024};
    struct leat_gather_clock clock = {NULL, now_us, wall_ms};
    assert_int_equal(leat_gather_init(&gather, &options, clock), LEAT_OK);
    struct leat_gather_record first = {
        .stream = "t", .streamlet = -1, .value = value, .value_bytes = 100};
    bool notify = false;
    assert_int_equal(leat_gather_add(&gather, &first, &notify), LEAT_OK);
    first.stream = "s";
    assert_int_equal(leat_gather_add(&gather, &first, &notify), LEAT_OK);
    leat_produce_record records[150];
    for (uint32_t i = 0; i < 150; i++)
        records[i] = (leat_produce_record){.value = value,
                                           .value_bytes = i % 2 ? 100 : 5, /* both ways */
                                           .streamlet = i == 120 ? 0 : -1};
    assert_null(leat_gather_run_begin(&gather, "t")); /* not the stream of the last add */
    struct leat_producer_batch *batch = leat_gather_run_begin(&gather, "s");
    assert_non_null(batch);
    struct leat_list taken;
    leat_list_init(&taken);
    gather.notify_wanted = true;
    leat_gather_take(&gather, now_us(NULL), NULL, NULL, &taken);
    struct leat_list *other = leat_list_pop_front(&taken);
    assert_non_null(other); /* the one of "t" */
    assert_true(leat_list_empty(&taken));
    assert_int_equal(leat_gather_run_fill(&gather, batch, records, 20), 20);
    notify = false;
    leat_gather_run_end(&gather, 20, &notify);
    assert_true(notify && !gather.notify_wanted);
    leat_gather_take(&gather, 0, NULL, NULL, &taken);
    assert_ptr_equal(leat_list_pop_front(&taken), &batch->link);
    assert_int_equal(batch->builder.record_count, 21);
    assert_int_equal(gather.open_records, 22);
    /* A run ends where the batch would, and before a record that is not plain. */
    assert_null(leat_gather_run_begin(&gather, "s"));
    assert_int_equal(leat_gather_add(&gather, &first, &notify), LEAT_OK);
    struct leat_producer_batch *next = leat_gather_run_begin(&gather, "s");
    assert_int_equal(leat_gather_run_fill(&gather, next, records + 110, 30), 10);
    assert_int_equal(leat_gather_run_fill(&gather, next, records, 110), 88);
    notify = false;
    leat_gather_run_end(&gather, 98, &notify);
    assert_false(notify);
    assert_int_equal(next->builder.record_count, 99);
    leat_gather_fini(&gather);
}

/* Goal: keys go where Kafka's default partitioner sends them. Values of its own test. */
static void key_streamlet_is_kafkas(void **state)
{
    (void)state;
    /* murmur2("21") = -973932308, "foobar" = -790332482: positive form modulo 1000. */
    assert_int_equal(leat_gather_streamlet_of_key("21", 2, 1000),
                     ((uint32_t)-973932308 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("foobar", 6, 1000),
                     ((uint32_t)-790332482 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("a-little-bit-long-string", 24, 1000),
                     ((uint32_t)-985981536 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("abc", 3, 1000),
                     ((uint32_t)479470107 & 0x7fffffff) % 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_batch_due_while_filled_goes_after_it),
        cmocka_unit_test(key_streamlet_is_kafkas),
        cmocka_unit_test(gather_pool_is_what_fits),
        cmocka_unit_test(gather_without_memory_refuses_one_record),
        cmocka_unit_test(gather_bounds_are_kept),
        cmocka_unit_test(gather_key_hash_is_kafkas),
    };
    return cmocka_run_group_tests_name("producer gather", tests, NULL, NULL);
}
