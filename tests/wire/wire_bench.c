/* SPDX-License-Identifier: Apache-2.0 */
/* What the hot paths of wire cost, per record and per batch. Prints the best of several rounds,
 * since what is above it is the machine's other work.
 *
 * On two cores of a shared, busy server, in ns a record:
 *
 *   records                  add    check, CRC included   CRC alone   read
 *   100 of 100 B             11.5    2.4                   1.7        8.3
 *   100 of 100 to 175 B      11.9    6.1                   2.0        8.4
 *   1,000 of 20 B             9.9    1.0                   0.4        7.7
 *   20 of 1,000 B            18     15                    14          9.3 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/batch.h"
#include "wire/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 400, BATCHES = 20, CAPACITY = 256 * 1024 };

static uint8_t bytes[CAPACITY];
static uint8_t value[4096];
static uint32_t batch_bytes, batch_records;
static size_t value_bytes, value_bytes_step;

static double now_ns(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at); /* cannot fail for this clock */
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static void build(void)
{
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    for (uint32_t i = 0; i < batch_records; i++) {
        leat_err rc =
            leat_batch_builder_add(&builder, 1000 + i / 10, NULL, 0, value,
                                   value_bytes + (i * 7 % 16) * value_bytes_step, NULL, 0, 0);
        LEAT_ASSERT(rc == LEAT_OK);
    }
    /* As finish, but for the CRC, which is a cost of its own. */
    batch_bytes = builder.used;
}

static void build_and_finish(void)
{
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    for (uint32_t i = 0; i < batch_records; i++) {
        leat_err rc =
            leat_batch_builder_add(&builder, 1000 + i / 10, NULL, 0, value,
                                   value_bytes + (i * 7 % 16) * value_bytes_step, NULL, 0, 0);
        LEAT_ASSERT(rc == LEAT_OK);
    }
    batch_bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, 1, 0, 0);
}

static void check(void)
{
    struct leat_batch batch;
    leat_err rc = leat_batch_check(bytes, batch_bytes, &batch, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
}

static volatile uint64_t sink;

static void crc_only(void)
{
    sink = leat_crc32c(0, bytes + LEAT_BATCH_CRC_FROM, batch_bytes - LEAT_BATCH_CRC_FROM);
}

static void read_all(void)
{
    struct leat_batch batch;
    leat_err rc = leat_batch_view(bytes, batch_bytes, &batch);
    LEAT_ASSERT(rc == LEAT_OK);
    struct leat_record_reader reader;
    struct leat_record record;
    uint64_t sum = 0;
    leat_record_reader_init(&reader, &batch, bytes + LEAT_BATCH_HEADER_BYTES,
                            batch_bytes - LEAT_BATCH_HEADER_BYTES);
    while (leat_record_next(&reader, &record) == LEAT_OK)
        sum += record.value_bytes + record.offset_delta;
    sink = sum;
}

static void measure(const char *name, void (*work)(void))
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < BATCHES; i++)
            work();
        double took = (now_ns() - start) / BATCHES;
        if (took < best) best = took;
    }
    printf("  %-18s %8.0f ns a batch %7.2f ns a record\n", name, best, best / batch_records);
}

static void bench(const char *title, size_t size, size_t step, uint32_t records)
{
    value_bytes = size;
    value_bytes_step = step;
    batch_records = records;
    printf("%s\n", title);
    measure("builder add", build);
    measure("add and finish", build_and_finish);
    measure("check", check);
    measure("its CRC alone", crc_only);
    measure("record next", read_all);
}

int main(void)
{
    bench("100 records of 100 B", 100, 0, 100);
    bench("100 records of 100 to 175 B", 100, 5, 100);
    bench("1000 records of 20 B", 20, 0, 1000);
    bench("20 records of 1000 B", 1000, 0, 20);
    return 0;
}
