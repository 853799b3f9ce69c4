/* SPDX-License-Identifier: Apache-2.0 */
/* A small segment and a walk over its entries, of which each field and each bound is varied. After cmocka.h. For one
 * test program only. */
#ifndef LEAT_TESTS_MULTILOG_ENTRIES_RIG_H
#define LEAT_TESTS_MULTILOG_ENTRIES_RIG_H

#include "base/bytes.h"
#include "base/crc32c.h"
#include "multilog/read.h"
#include "tests/trace.h"

/* A segment with batches of offsets 10, 11 and 12, 13, 14; behind the second one an entry of another kind, and
 * trailers behind the first and the last. Each batch is a header and as many bytes as it has records. */
enum { BATCHES = 4, ENTRIES = 7 };

static _Alignas(8) uint8_t segment[4096];
static uint32_t entries[ENTRIES], batches[BATCHES], segment_end;
static struct leat_log whose;
static struct leat_read reading;
static struct log_view view;
static struct leat_target target;
static uint32_t at;
static char outcome[256], outcome_before[256];

static inline struct leat_entry *entry_of(uint32_t position)
{
    return (struct leat_entry *)(void *)(segment + position);
}

static inline void right_crc(uint32_t position)
{
    struct leat_entry *entry = entry_of(position);
    entry->crc = leat_crc32c(0, entry + 1, entry->payload_bytes);
}

static inline uint32_t put_batch(struct leat_entry_writer *writer, uint64_t offset, uint32_t count,
                                 int64_t time_ms)
{
    uint8_t batch[LEAT_BATCH_HEADER_BYTES + 8] = {0};
    uint32_t total = LEAT_BATCH_HEADER_BYTES + count;
    leat_put_be64(batch, offset);
    leat_put_be64(batch + 35, (uint64_t)time_ms);
    leat_put_be32(batch + 57, count);
    return leat_entry_append(writer, LEAT_ENTRY_BATCH, offset, count, batch, total,
                             leat_crc32c(0, batch, total));
}

static inline void again(void)
{
    struct leat_entry_writer writer;
    struct leat_trim trim = {0};
    memset(segment, 0, sizeof segment);
    leat_entry_writer_init(&writer, segment, sizeof segment);
    entries[0] = batches[0] = put_batch(&writer, 10, 1, 100);
    entries[1] = writer.used;
    (void)leat_entry_seal(&writer, 0);
    entries[2] = batches[1] = put_batch(&writer, 11, 2, 300);
    entries[3] = leat_entry_append(&writer, LEAT_ENTRY_TRIM, 0, 0, &trim, sizeof trim,
                                   leat_crc32c(0, &trim, sizeof trim));
    entries[4] = batches[2] = put_batch(&writer, 13, 1, 200);
    entries[5] = batches[3] = put_batch(&writer, 14, 1, 400);
    entries[6] = writer.used;
    (void)leat_entry_seal(&writer, 0);
    segment_end = writer.used;
    memset(&whose, 0, sizeof whose);
    atomic_store(&whose.acked_offset, 15);
    memset(&reading, 0, sizeof reading);
    reading.segment = 33;
    reading.max_bytes = 10000;
    view = (struct log_view){.bytes = segment, .end = segment_end, .limit = segment_end};
    target = (struct leat_target){.kind = LEAT_TARGET_OFFSET, .offset = 10};
    at = 0;
}

static inline void walk(void)
{
    static const char *const ends[] = {[LOG_WALK_DONE] = "done",
                                       [LOG_WALK_MORE] = "more",
                                       [LOG_WALK_DAMAGED] = "damaged",
                                       [LOG_WALK_FULL] = "full",
                                       [LOG_WALK_NO_BOUNDARY] = "no boundary"};
    reading.from.v = target.offset;
    enum log_walk_end end = log_walk(&whose, &reading, &view, &target, &at);
    int used = snprintf(outcome, sizeof outcome, "%s at %u", ends[end], at);
    if (reading.iov_count) {
        assert_true(reading.first_position.group == 2 && reading.first_position.segment == 33);
        assert_true(reading.next_position.group == 2 && reading.next_position.segment == 33);
        used += snprintf(outcome + used, sizeof outcome - (size_t)used,
                         ", %u of %u bytes, %llu records: %llu@%u..%llu@%u", reading.iov_count,
                         reading.bytes, (unsigned long long)reading.record_count,
                         (unsigned long long)reading.first.v, reading.first_position.position,
                         (unsigned long long)reading.next.v, reading.next_position.position);
    }
    if (reading.from.v != target.offset)
        used += snprintf(outcome + used, sizeof outcome - (size_t)used, ", from %llu",
                         (unsigned long long)reading.from.v);
    snprintf(outcome + used, sizeof outcome - (size_t)used, "%s%s",
             reading.boundary ? ", boundary" : "", reading.given_up ? ", given up" : "");
    for (unsigned i = 0; i < reading.iov_count; i++) {
        bool known = false;
        for (unsigned b = 0; b < BATCHES; b++)
            known |= reading.iovs[i].base == segment + batches[b] + LEAT_ENTRY_HEADER_BYTES &&
                     reading.iovs[i].bytes == entry_of(batches[b])->payload_bytes;
        assert_true(known);
    }
}

/* Each value by itself; the outcome is printed where it differs from the outcome of the value before. */
#define SWEEP(from_value, to_value, ...)                                                           \
    do {                                                                                           \
        trace("%s\n", #__VA_ARGS__);                                                               \
        outcome_before[0] = '\0';                                                                  \
        for (uint32_t v = (from_value); v <= (to_value); v++) {                                    \
            again();                                                                               \
            __VA_ARGS__;                                                                           \
            walk();                                                                                \
            if (strcmp(outcome, outcome_before) != 0) trace("  %u: %s\n", v, outcome);             \
            snprintf(outcome_before, sizeof outcome_before, "%s", outcome);                        \
        }                                                                                          \
    } while (0)

static inline void is_of_kind(int kind)
{
    target.kind = kind;
}

static inline void from_position(uint32_t position)
{
    target.kind = LEAT_TARGET_POSITION;
    target.position = position;
}

static inline void from_time(int64_t time_ms)
{
    target.kind = LEAT_TARGET_TIME;
    target.time_ms = time_ms;
}

#endif
