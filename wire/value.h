/* SPDX-License-Identifier: Apache-2.0 */
/* Building, the short way: a record that is a value and nothing else, inline, because half of what
 * leat_batch_builder_add() takes for 100 bytes (6.8 ns against 3.1) is the call and its choices. */
#ifndef LEAT_WIRE_VALUE_H
#define LEAT_WIRE_VALUE_H

#include "wire/batch.h"
#include "wire/varint.h"

#include <string.h>

enum {
    /* With no fewer and no more bytes than these the record's own length takes two bytes, and so
     * does the value's. */
    LEAT_VALUE_BYTES_MIN = 64,
    LEAT_VALUE_BYTES_MAX = 8000,
    LEAT_VALUE_EXTRA_BYTES_MAX = 40,
    /* So far ahead of a record its batch's memory is fetched. */
    LEAT_VALUE_AHEAD_BYTES = 4096,
};

/* The line that holds `at` is about to be written. In the buffer of a batch that came back it is in
 * another processor's cache, or in none near: fetched early it costs nothing, else a third of the
 * copy's time. The place may lie past the buffer: a hint never faults. */
static inline void leat_prefetch_to_write(uintptr_t at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" ::"r"(at)); /* a processor without it does nothing */
#else
    __builtin_prefetch((const void *)at, 1);
#endif
}

/**
 * Append a record without key and headers to a builder that is not empty.
 *
 * Returns false, and leaves the builder as it is, where leat_batch_builder_add() must decide: first
 * record, size outside the limits above, no room for the largest form.
 * Hot: keep the builder in a local variable around a loop of calls; written bytes may alias it.
 * Thread: any.
 */
static inline bool leat_batch_builder_add_value(struct leat_batch_builder *builder,
                                                int64_t timestamp_ms, const uint8_t *value,
                                                size_t value_bytes)
{
    uint32_t room = builder->capacity - builder->used;
    if (value_bytes < LEAT_VALUE_BYTES_MIN || value_bytes > LEAT_VALUE_BYTES_MAX ||
        value_bytes + LEAT_VALUE_EXTRA_BYTES_MAX > room || builder->record_count == 0 ||
        builder->record_count == LEAT_RECORDS_PER_BATCH_MAX)
        return false;
    uint8_t *start = builder->bytes + builder->used, *at = start + 2;
    leat_prefetch_to_write((uintptr_t)start + LEAT_VALUE_AHEAD_BYTES);
    leat_prefetch_to_write((uintptr_t)start + LEAT_VALUE_AHEAD_BYTES + 64);
    *at++ = 0; /* attributes */
    at = leat_varint_write(
        at, leat_zigzag((int64_t)((uint64_t)timestamp_ms - (uint64_t)builder->base_timestamp_ms)));
    at = leat_varint_write(at, (uint64_t)builder->record_count << 1);
    *at++ = 1; /* no key: length -1 */
    *at++ = (uint8_t)((value_bytes << 1) | 0x80);
    *at++ = (uint8_t)(value_bytes >> 6);
    /* Whole pieces of 16 bytes, the last one overlapping: no call, no jump table. */
    size_t copied = 0;
    do {
        memcpy(at + copied, value + copied, 16);
        copied += 16;
    } while (copied + 16 <= value_bytes);
    memcpy(at + value_bytes - 16, value + value_bytes - 16, 16);
    at += value_bytes;
    *at++ = 0; /* headers */
    uint32_t length = (uint32_t)(at - start - 2) << 1;
    start[0] = (uint8_t)(length | 0x80);
    start[1] = (uint8_t)(length >> 7);
    builder->used += (uint32_t)(at - start);
    builder->record_count++;
    if (timestamp_ms > builder->max_timestamp_ms) builder->max_timestamp_ms = timestamp_ms;
    return true;
}

#endif
