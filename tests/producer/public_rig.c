/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/producer/public_rig.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_before;

void public_told(void *arg, const leat_result *result)
{
    struct told *told = arg;
    told->count++;
    told->result = *result;
    told->at_us = fake_shared.world.now_us;
    snprintf(told->text, sizeof told->text, "%s", result->text);
}

leat_producer_options public_options(void)
{
    leat_producer_options options;
    leat_producer_options_init(&options);
    options.buffer_bytes = 4 * 1024 * 1024; /* what is filled with a pattern takes time */
    return options;
}

leat_producer *public_open(uint64_t seed, const leat_producer_options *options)
{
    bytes_before = leat_mem_bytes(LEAT_MEM_CLIENT);
    fake_shared_begin(seed);
    leat_message message = {0};
    leat_producer *producer = leat_producer_open(options, &message);
    if (!producer) print_message("%s\n", message.text);
    assert_non_null(producer);
    return producer;
}

void public_end(leat_producer *producer)
{
    leat_producer_close(producer);
    assert_int_equal(fake_shared.closed, fake_shared.started);
    fake_shared_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_CLIENT), bytes_before);
}

leat_produce_record public_record(const char *value)
{
    return (leat_produce_record){.value = value, .value_bytes = strlen(value), .streamlet = -1};
}

uint64_t public_times_out(leat_producer *producer, uint64_t us)
{
    struct told told = {0};
    leat_produce_record record = public_record("v");
    uint64_t asked = fake_shared.world.now_us;
    fake_shared.world.down = true;
    assert_int_equal(leat_produce(producer, "s", &record, public_told, &told), LEAT_OK);
    fake_shared_run(us);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.result.code, LEAT_E_TIMEOUT);
    assert_int_equal(told.result.offset, UINT64_MAX);
    return told.at_us - asked;
}

uint32_t public_stored(uint32_t log, struct leat_record *out, uint32_t *out_batches, uint32_t max)
{
    static uint8_t unpacked[LEAT_BATCH_BYTES_MAX];
    const struct fake_log *from = &fake_shared.world.log[log];
    uint32_t count = 0;
    for (uint32_t b = 0; b < from->batch_count; b++) {
        struct leat_batch batch;
        struct leat_record_reader reader;
        const uint8_t *records;
        size_t bytes;
        assert_int_equal(
            leat_batch_check(from->batches[b].bytes, from->batches[b].count, &batch, NULL),
            LEAT_OK);
        assert_int_equal(leat_batch_records(&batch, unpacked, sizeof unpacked, &records, &bytes),
                         LEAT_OK);
        leat_record_reader_init(&reader, &batch, records, bytes);
        while (count < max && leat_record_next(&reader, &out[count]) == LEAT_OK) {
            if (out_batches) out_batches[count] = b;
            count++;
        }
    }
    return count;
}

bool public_is(const struct leat_record *record, const char *value)
{
    return record->value && record->value_bytes == strlen(value) &&
           memcmp(record->value, value, record->value_bytes) == 0;
}
