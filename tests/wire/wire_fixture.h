/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of wire share: random batches, and a segment full of them. */
#ifndef LEAT_TESTS_WIRE_FIXTURE_H
#define LEAT_TESTS_WIRE_FIXTURE_H

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "wire/batch.h"
#include "wire/entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FIXTURE_BYTES = 16 * 1024, FIXTURE_SEALS = 64 };

struct fixture_segment {
    _Alignas(8) uint8_t bytes[FIXTURE_BYTES];
    struct leat_entry_writer writer;
    struct leat_prefix_id seals[FIXTURE_SEALS];
    uint32_t seal_count, acked;
    uint64_t base_offset, next_offset;
    int64_t max_timestamp_ms;
};

static inline uint32_t fixture_batch(struct leat_xoshiro *random, uint8_t *out, size_t capacity,
                                     uint64_t base_offset, uint32_t records, size_t value_max)
{
    uint8_t value[4096];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, capacity);
    for (uint32_t i = 0; i < records; i++) {
        size_t count = (size_t)leat_xoshiro_below(random, value_max + 1);
        for (size_t j = 0; j < count; j++)
            value[j] = (uint8_t)leat_xoshiro_next(random);
        assert_int_equal(leat_batch_builder_add(&builder, 1000 + (int64_t)(base_offset + i), "key",
                                                3, value, count, NULL, 0, 0),
                         LEAT_OK);
    }
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_batch_stamp(out, base_offset, 7);
    return bytes;
}

static inline void fixture_seal(struct fixture_segment *seg)
{
    assert_true(seg->seal_count < FIXTURE_SEALS);
    seg->seals[seg->seal_count++] = leat_entry_seal(&seg->writer, seg->acked);
    /* What the next trailer may call acked: all up to this one. */
    seg->acked = seg->writer.sealed_bytes;
}

static inline void fixture_entry(struct fixture_segment *seg, enum leat_entry_type type,
                                 const void *payload, uint32_t bytes)
{
    (void)leat_entry_append(&seg->writer, type, 0, 0, payload, bytes,
                            leat_crc32c(0, payload, bytes));
}

static inline void fixture_open(struct fixture_segment *seg, int64_t created_ms)
{
    memset(seg, 0, sizeof *seg);
    seg->base_offset = seg->next_offset = 500;
    seg->max_timestamp_ms = -1;
    leat_entry_writer_init(&seg->writer, seg->bytes, sizeof seg->bytes);
    struct {
        struct leat_segment_header fixed;
        char name[5];
    } header = {.fixed = {.magic = LEAT_SEGMENT_MAGIC,
                          .format_version = LEAT_FORMAT_VERSION,
                          .name_bytes = 5,
                          .stream = 3,
                          .segment = 9,
                          .capacity = FIXTURE_BYTES,
                          .created_ms = created_ms},
                .name = "rooms"};
    fixture_entry(seg, LEAT_ENTRY_SEGMENT, &header, sizeof header.fixed + 5);
}

static inline void fixture_start(struct fixture_segment *seg)
{
    struct {
        struct leat_start fixed;
        struct leat_producer_state producer;
        char app[3];
    } start = {.fixed = {.base_offset = seg->base_offset,
                         .previous = {.bytes = 4096, .crc = 77},
                         .producer_count = 1,
                         .app_bytes = 3},
               .producer = {.producer_id = 4, .batch_count = 1}};
    fixture_entry(seg, LEAT_ENTRY_START, &start,
                  sizeof start.fixed + sizeof start.producer + sizeof start.app);
    fixture_seal(seg);
}

static inline void fixture_append(struct fixture_segment *seg, struct leat_xoshiro *random,
                                  size_t value_max)
{
    uint8_t batch[8192];
    uint32_t records = 1 + (uint32_t)leat_xoshiro_below(random, 4);
    uint32_t bytes =
        fixture_batch(random, batch, sizeof batch, seg->next_offset, records, value_max);
    (void)leat_entry_append(&seg->writer, LEAT_ENTRY_BATCH, seg->next_offset, records, batch, bytes,
                            leat_crc32c(0, batch, bytes));
    seg->next_offset += records;
    seg->max_timestamp_ms = 1000 + (int64_t)seg->next_offset - 1;
}

static inline void fixture_close(struct fixture_segment *seg)
{
    struct {
        struct leat_close fixed;
        struct leat_index_row row;
    } close = {.fixed = {.next_offset = seg->next_offset,
                         .record_count = seg->next_offset - seg->base_offset,
                         .max_timestamp_ms = seg->max_timestamp_ms,
                         .bytes = seg->writer.used,
                         .index_count = 1}};
    fixture_entry(seg, LEAT_ENTRY_CLOSE, &close, sizeof close);
    fixture_seal(seg);
}

/* Header, start, runs of batches with a trim among them, and a close if asked for. */
static inline void fixture_fill(struct fixture_segment *seg, struct leat_xoshiro *random,
                                int64_t created_ms, uint32_t runs, size_t value_max, bool closed)
{
    fixture_open(seg, created_ms);
    fixture_start(seg);
    for (uint32_t run = 0; run < runs; run++) {
        for (uint64_t n = 1 + leat_xoshiro_below(random, 3); n > 0; n--)
            fixture_append(seg, random, value_max);
        if (run == 1) {
            struct leat_trim trim = {.first_segment = 2, .first_offset = 40};
            fixture_entry(seg, LEAT_ENTRY_TRIM, &trim, sizeof trim);
        }
        fixture_seal(seg);
    }
    if (closed) fixture_close(seg);
}

#endif
