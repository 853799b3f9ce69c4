/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches: check, uncompress, read every record, and rebuild what can be rebuilt. */
#include "fuzz.h"

#include "wire/batch.h"
#include "wire/unpack.h"

enum { RECORDS_BYTES_MAX = 256 * 1024 };

/* Rebuilding gives a batch that passes and reads the same. */
static void records_rebuild(const struct leat_batch *batch, const uint8_t *records, size_t bytes)
{
    size_t capacity = LEAT_BATCH_HEADER_BYTES + bytes + 64 * (size_t)batch->record_count;
    uint8_t *out = malloc(capacity);
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, capacity);
    struct leat_record_reader reader;
    struct leat_record record;
    uint64_t sum = 0, sum_again = 0;
    leat_err rc;
    leat_record_reader_init(&reader, batch, records, bytes);
    while ((rc = leat_record_next(&reader, &record)) == LEAT_OK) {
        LEAT_ASSERT(record.headers + record.headers_bytes <= records + bytes);
        sum += record.key_bytes + 3 * (uint64_t)record.value_bytes + (uint64_t)record.timestamp_ms;
        if (leat_batch_builder_add(&builder, record.timestamp_ms, record.key, record.key_bytes,
                                   record.value, record.value_bytes, record.headers,
                                   record.headers_bytes, record.header_count) != LEAT_OK)
            break;
    }
    if (rc == LEAT_E_NOT_FOUND) {
        struct leat_batch again;
        uint32_t made = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        LEAT_ASSERT(leat_batch_check(out, made, &again, NULL) == LEAT_OK);
        leat_record_reader_init(&reader, &again, out + LEAT_BATCH_HEADER_BYTES,
                                made - LEAT_BATCH_HEADER_BYTES);
        while (leat_record_next(&reader, &record) == LEAT_OK)
            sum_again +=
                record.key_bytes + 3 * (uint64_t)record.value_bytes + (uint64_t)record.timestamp_ms;
        LEAT_ASSERT(sum == sum_again);
    }
    free(out);
}

/* In a batch that passes the check, the records follow each other without a gap, and the largest time is the
 * batch's. */
static void records_follow(const struct leat_batch *batch, const uint8_t *records, size_t bytes)
{
    struct leat_record_reader reader;
    struct leat_record record;
    int64_t newest = INT64_MIN;
    uint32_t count = 0;
    leat_err rc;
    leat_record_reader_init(&reader, batch, records, bytes);
    while ((rc = leat_record_next(&reader, &record)) == LEAT_OK) {
        LEAT_ASSERT_CMP(record.offset_delta, ==, count);
        count++;
        if (record.timestamp_ms > newest) newest = record.timestamp_ms;
    }
    LEAT_ASSERT(rc == LEAT_E_NOT_FOUND && count == batch->record_count);
    LEAT_ASSERT(newest == batch->max_timestamp_ms);
}

/* The records of a compressed batch are taken: then they can be uncompressed whole, too. */
static bool records_taken(struct leat_batch *batch)
{
    static struct leat_unpacker *unpacker;
    size_t cost;
    struct leat_error error;
    if (unpacker == NULL) unpacker = leat_unpacker_create(LEAT_UNPACKER_BYTES);
    leat_err rc = leat_unpacker_check(unpacker, batch, &cost, &error);
    LEAT_ASSERT(cost <= LEAT_UNPACKED_BYTES_MAX + LEAT_UNPACK_WINDOW_BYTES);
    return rc == LEAT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leat_batch batch;
    struct leat_error error;
    bool viewed = leat_batch_view(data, size, &batch) == LEAT_OK;
    bool taken = leat_batch_check(data, size, &batch, &error) == LEAT_OK;
    if (!taken && !viewed) return 0;
    if (taken && batch.codec != LEAT_CODEC_NONE) taken = records_taken(&batch);
    static uint8_t *out;
    if (out == NULL) out = malloc(RECORDS_BYTES_MAX);
    const uint8_t *records;
    size_t bytes;
    leat_err rc = leat_batch_records(&batch, out, RECORDS_BYTES_MAX, &records, &bytes);
    LEAT_ASSERT(!taken || rc == LEAT_OK || rc == LEAT_E_TOO_LARGE);
    if (rc != LEAT_OK) return 0;
    if (taken) records_follow(&batch, records, bytes);
    records_rebuild(&batch, records, bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < LEAT_BATCH_HEADER_BYTES || seed % 8 == 0) return size;
    data[16] = 2;
    leat_put_be32(data + LEAT_BATCH_LENGTH_AT, (uint32_t)size - 12);
    data[22] &= 0x07; /* the codec, and none of the refused flags */
    if (seed % 2) leat_put_be32(data + 23, leat_get_be32(data + 57) - 1);
    leat_put_be32(data + LEAT_BATCH_CRC_AT,
                  leat_crc32c(0, data + LEAT_BATCH_CRC_FROM, size - LEAT_BATCH_CRC_FROM));
    return size;
}
