/* SPDX-License-Identifier: Apache-2.0 */
/* A log that is opened with a made-up last segment, whose start entry and later entries say what a test wants. For one
 * test program only. */
#ifndef LEAT_TESTS_MULTILOG_START_RIG_H
#define LEAT_TESTS_MULTILOG_START_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "watch.h"

enum {
    CAPACITY = 65536,
    FIRST = 6,
    LAST = 8
}; /* segments 6, 7, 8 are held, of ten records each from 60 on */

/* What the last one says. */
struct says {
    const char *what;
    uint64_t first_segment, first_offset; /* of the start entry */
    uint64_t trim_segment, trim_offset;   /* of a trim entry behind it; 0: none */
    uint32_t producers, producers_told;   /* states that are there; as many as it says */
    uint32_t app_bytes;                   /* as many as it says, which are not there */
    bool no_start, short_start, short_trim, bad_producer, bad_batch, expired;
};

static void entry_add(struct leat_entry_writer *writer, enum leat_entry_type type, uint64_t offset,
                      uint32_t count, const void *payload, uint32_t bytes_count)
{
    (void)leat_entry_append(writer, type, offset, count, payload, bytes_count,
                            leat_crc32c(0, payload, bytes_count));
}

static struct leat_prefix_id segment_write(uint8_t *out, const struct says *says)
{
    struct leat_entry_writer writer;
    static uint8_t payload[8192];
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .stream = 1,
                                         .segment = LAST,
                                         .epoch = 7,
                                         .capacity = CAPACITY};
    struct leat_start start = {.base_offset = 80,
                               .first_segment = says->first_segment,
                               .first_offset = says->first_offset,
                               .producer_count = says->producers_told,
                               .app_bytes = says->app_bytes,
                               .producers_expired = says->expired};
    struct leat_trim trim = {says->trim_segment, says->trim_offset};
    leat_entry_writer_init(&writer, out, CAPACITY);
    entry_add(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header);
    memset(payload, 0, sizeof payload);
    memcpy(payload, &start, sizeof start);
    for (uint32_t i = 0; i < says->producers; i++) {
        struct leat_producer_state state = {.producer_id =
                                                says->bad_producer ? -1 : (int64_t)(10 + i),
                                            .batch_count = 1,
                                            .batches = {{0, 4, 70 + i}}};
        memcpy(payload + sizeof start + i * sizeof state, &state, sizeof state);
    }
    uint32_t start_bytes =
        (uint32_t)(sizeof start + says->producers * sizeof(struct leat_producer_state));
    if (says->short_start) start_bytes = sizeof start - 1;
    if (!says->no_start) entry_add(&writer, LEAT_ENTRY_START, 0, 0, payload, start_bytes);
    (void)leat_entry_seal(&writer, 0);
    uint32_t batch = fake_batch(payload, sizeof payload, 10, 20, 7000, 77, 0, 5);
    leat_batch_stamp(payload, 80, 7);
    if (says->bad_batch) batch -= 20;
    entry_add(&writer, LEAT_ENTRY_BATCH, 80, 10, payload, batch);
    if (says->trim_segment || says->trim_offset)
        entry_add(&writer, LEAT_ENTRY_TRIM, 0, 0, &trim, sizeof trim - (says->short_trim ? 8 : 0));
    return leat_entry_seal(&writer, 0);
}

static void log_trace(const struct fake *fake, const char *when)
{
    const struct leat_log *log = fake->log;
    struct leat_log_info i = info_of(fake);
    trace("  %s: state %u%s%s, from %llu/%llu, told %llu, missing %llu to %llu, %u producers%s%s\n",
          when, (unsigned)i.state, i.unloaded ? " cold" : "",
          log_front_is_unknown(log) ? " front unknown" : "", (unsigned long long)i.first_segment,
          (unsigned long long)i.first_offset, (unsigned long long)log->begin_told,
          (unsigned long long)i.missing_segments, (unsigned long long)i.missing_end, i.producers,
          log->producers.expired ? " expired" : "", log->producers.lost ? " lost" : "");
}

/* The segments 6, 7, 8, the last one in its file, or in memory too. */
static void held_make(struct fake *fake, const struct says *says, bool in_memory,
                      struct leat_segment **segs)
{
    for (uint64_t id = FIRST; id <= LAST; id++) {
        struct leat_segment *seg = segs[id - FIRST] = calloc(1, sizeof *seg);
        struct fake_held *held = &fake->held[fake->held_count++];
        *held = (struct fake_held){.seg = seg, .file = fake_buffer(CAPACITY), .closed_row = true};
        *seg = (struct leat_segment){.id = {id},
                                     .state = LEAT_SEGMENT_CLOSED,
                                     .capacity = CAPACITY,
                                     .flushed = true,
                                     .base_offset = 10 * id,
                                     .next_offset = 10 * id + 10,
                                     .prefix_id = {100, 1},
                                     .file = (struct leat_file *)(void *)held->file};
        if (id == LAST) seg->prefix_id = segment_write(held->file, says);
        if (id == LAST && in_memory) {
            seg->buffer = fake_buffer(CAPACITY);
            memcpy(seg->buffer, held->file, CAPACITY);
        }
    }
}

/* A log with that last segment in its file, opened; then its first append. */
static void opened(const struct says *says, bool jumped, bool in_memory)
{
    struct fake *fake = watch(LEAT_DURABILITY_MEMORY);
    struct leat_segment *segs[3];
    fake->open_at_once = true;
    held_make(fake, says, in_memory, segs);
    struct leat_log_tail tail = {.next_segment = LAST + 1,
                                 .next_offset = 90,
                                 .jumped = jumped,
                                 .backfill_follows = fake->backfill_follows};
    trace("%s%s%s\n", says->what, jumped ? ", jumped" : "", in_memory ? ", in memory" : "");
    size_t used = trace_used;
    fake_open(fake, segs, 3, &tail);
    fake_settle(fake);
    trace_text[trace_used = used] = '\0';
    log_trace(fake, "opened");
    used = trace_used;
    (void)put(fake, 1, 100);
    fake_settle(fake);
    trace_text[trace_used = used] = '\0';
    log_trace(fake, "woken");
    if (fake->log->state != LEAT_LOG_SERVING) trace("  %s\n", fake->log->why);
    watch_end(fake);
}

static const struct says nonsense[] = {
    {.what = "three producers",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 3},
    {.what = "some were forgotten",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 3,
     .expired = true},
    {.what = "fewer than there are",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 2},
    {.what = "more than there are",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 4},
    {.what = "many more", .first_segment = 6, .first_offset = 60, .producers_told = UINT32_MAX},
    {.what = "state of others that is not there",
     .first_segment = 6,
     .first_offset = 60,
     .app_bytes = 1},
    {.what = "state of others",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 2,
     .app_bytes = sizeof(struct leat_producer_state)},
    {.what = "a byte more of it",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 3,
     .producers_told = 2,
     .app_bytes = sizeof(struct leat_producer_state) + 1},
    {.what = "a producer of no id",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 1,
     .producers_told = 1,
     .bad_producer = true},
    {.what = "more than a block of them",
     .first_segment = 6,
     .first_offset = 60,
     .producers = 60,
     .producers_told = 60},
    {.what = "a batch that is none", .first_segment = 6, .first_offset = 60, .bad_batch = true},
    {.what = "too short", .short_start = true},
    {.what = "not there", .no_start = true},
};

#endif
