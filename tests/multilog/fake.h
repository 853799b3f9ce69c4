/* SPDX-License-Identifier: Apache-2.0 */
/* A small world for one log: virtual time, a store port that holds segments in memory and in a "file",
 * completions at chosen delays, failures on request. One thread; nothing runs inside the call that
 * started it. */
#ifndef LEAT_TESTS_MULTILOG_FAKE_H
#define LEAT_TESTS_MULTILOG_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/random.h"
#include "multilog/internal.h"

enum { FAKE_SEGMENTS_MAX = 4096, FAKE_QUEUE_MAX = 4096 };

/* What the store port has of one segment. */
struct fake_held {
    struct leat_segment *seg;
    uint8_t *file; /* capacity bytes */
    bool started_reservation;
    bool hibernated_row, closed_row;
    struct leat_prefix_id row_prefix_id;
};
struct fake_event {
    uint64_t at_us, number;
    struct leat_store_req *req;
    struct leat_disk_io *io;
    struct leat_mail *mail;
};
struct fake {
    struct leat_clock clock;
    struct leat_random random_port;
    struct leat_post post;
    struct leat_disk disk;
    struct leat_env env;
    struct leat_store_port store_port;
    struct leat_timers timers;
    struct leat_xoshiro random;
    uint64_t now_us, delay_us_max;
    int64_t wall_offset_ms;
    struct fake_held held[FAKE_SEGMENTS_MAX];
    unsigned held_count;
    struct fake_event queue[FAKE_QUEUE_MAX];
    unsigned queued;
    uint64_t numbers;
    bool memory_is_safe;
    uint64_t requests, fail_request_at; /* the n-th request fails; 0: none */
    leat_err fail_rc;
    unsigned fail_kinds; /* bit per enum leat_store_req_kind that may fail */
    uint64_t reads_done;
    bool fail_reads, flip_reads;
    bool copies_hibernate_later; /* than the store of this node */
    uint64_t files_end;          /* all of them end there, whatever was written; 0: nowhere */
    uint64_t drops;
    uint64_t starts_alone; /* start entries committed without the data behind them */
    uint64_t data_hidden;  /* turns that ended with data behind one that no scan may find yet */

    struct leat_log *log;
    bool dirty, room, opening, ended;
    bool made_up; /* the test changes the log itself: it is not checked */
    uint64_t acked_events;
    bool open_at_once;
    bool backfill_follows, holes; /* of logs that are opened anew */
    bool keep_lost;               /* what is lost on the way is here, by its id */
    struct leat_segment *lost[64];
    struct leat_log_options options;
};

static inline uint64_t fake_now(void *ctx)
{
    return ((struct fake *)ctx)->now_us;
}
static inline int64_t fake_wall(void *ctx)
{
    struct fake *fake = ctx;
    return (int64_t)(fake->now_us / 1000) + fake->wall_offset_ms;
}
static inline void fake_wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}

static inline void fake_push(struct fake *fake, struct fake_event event)
{
    LEAT_ASSERT_CMP(fake->queued, <, FAKE_QUEUE_MAX);
    uint64_t delay = fake->delay_us_max ? leat_xoshiro_below(&fake->random, fake->delay_us_max) : 0;
    event.at_us = fake->now_us + delay;
    event.number = fake->numbers++;
    fake->queue[fake->queued++] = event;
}
static inline void fake_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)to;
    fake_push(ctx, (struct fake_event){.mail = mail});
}
static inline void fake_submit(void *ctx, struct leat_disk_io *io)
{
    LEAT_ASSERT(io->kind == LEAT_DISK_READ);
    LEAT_ASSERT(io->offset % 4096 == 0 && io->bytes % 4096 == 0 && io->bytes > 0);
    LEAT_ASSERT((uintptr_t)io->buffer % 4096 == 0);
    fake_push(ctx, (struct fake_event){.io = io});
}
static inline bool fake_safe(void *ctx, const struct leat_segment *seg)
{
    LEAT_ASSERT(seg->buffer != NULL);
    return ((struct fake *)ctx)->memory_is_safe;
}
static inline struct fake_held *fake_held_of(struct fake *fake, const struct leat_segment *seg)
{
    for (unsigned i = 0; i < fake->held_count; i++)
        if (fake->held[i].seg == seg) return &fake->held[i];
    LEAT_ASSERT(seg == NULL); /* the store port holds every one */
    return NULL;
}

/* The first segment that what is safe of a segment calls retained: level disk has what its file has,
 * level memory what lies under a trailer. */
static inline uint64_t fake_retained_of(const struct fake *fake, const struct fake_held *held)
{
    bool disk = fake->options.durability == LEAT_DURABILITY_DISK;
    const uint8_t *bytes = disk || !held->seg->buffer ? held->file : held->seg->buffer;
    uint64_t retained = 0;
    struct leat_scan scan;
    leat_scan_segment(bytes, held->seg->capacity, &scan);
    const struct leat_entry *entry;
    for (uint32_t at = 0; (entry = leat_entry_at(bytes, scan.bytes, at)) != NULL;
         at += leat_entry_bytes(entry->payload_bytes)) {
        struct leat_start start;
        struct leat_trim trim;
        if (entry->type == LEAT_ENTRY_START) {
            memcpy(&start, entry + 1, sizeof start);
            retained = start.first_segment;
        } else if (entry->type == LEAT_ENTRY_TRIM) {
            memcpy(&trim, entry + 1, sizeof trim);
            if (trim.first_segment > retained) retained = trim.first_segment;
        }
    }
    return retained;
}

/* A segment of a log that lives on may go only when its last copy of "no more retained" is safe: a
 * crash right now must find a log that says itself where it begins. */
static inline void fake_drop_check(const struct fake *fake, const struct leat_segment *seg)
{
    if (seg->state != LEAT_SEGMENT_CLOSED || fake->log->ending == LOG_DELETING) return;
    uint64_t highest = 0, retained = 0;
    for (unsigned i = 0; i < fake->held_count; i++)
        if (fake->held[i].seg->id.v > highest) highest = fake->held[i].seg->id.v;
    for (unsigned i = 0; i < fake->held_count; i++) {
        const struct fake_held *held = &fake->held[i];
        if (held->seg->id.v + 3 < highest) continue; /* the last few know it */
        uint64_t known = fake_retained_of(fake, held);
        if (known > retained) retained = known;
    }
    LEAT_ASSERT_CMP(seg->id.v, <, retained);
}

/* While the log rolls only the new head's start entry may be asked for: data of N+1 goes nowhere before
 * the close entry of N is safe. Counted: how often there was data that had to wait. */
static inline void fake_commit_check(struct fake *fake, const struct leat_store_req *req)
{
    const struct leat_log *log = fake->log;
    if (!log || req->seg != log->head.seg || !log->old.seg) return;
    if (log_old_close_is_sealed(log) && log->old.safe_bytes == log->old.seg->prefix_id.bytes)
        return;
    LEAT_ASSERT_CMP(req->to_bytes, ==, log->head.start_end);
    if (log->head.writer.used > log->head.start_end) fake->starts_alone++;
}

/* Nor may a recovery find more there meanwhile, in what a kill leaves in memory or in the file, whose last
 * block is written whole. Counted: how often there was data that had to wait. */
static inline void fake_roll_check(struct fake *fake)
{
    const struct leat_log *log = fake->log;
    struct leat_scan scan;
    if (!log || fake->ended || !log->old.seg || !log->head.seg) return;
    const struct leat_segment *seg = log->head.seg;
    leat_scan_segment(seg->buffer, seg->capacity, &scan);
    LEAT_ASSERT_CMP(scan.bytes, ==, log->head.start_end);
    leat_scan_segment(fake_held_of(fake, seg)->file, seg->capacity, &scan);
    LEAT_ASSERT_CMP(scan.bytes, <=, log->head.start_end);
    if (log->head.writer.used > log->head.start_end) fake->data_hidden++;
}

static inline void fake_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    (void)post;
    if (req->kind == LEAT_STORE_COMMIT) fake_commit_check(ctx, req);
    if (req->kind == LEAT_STORE_DROP) fake_drop_check(ctx, req->seg);
    fake_push(ctx, (struct fake_event){.req = req});
}

static inline uint8_t *fake_buffer(uint32_t bytes)
{
    uint8_t *buffer = aligned_alloc(4096, bytes);
    LEAT_ASSERT(buffer != NULL);
    memset(buffer, 0, bytes);
    return buffer;
}

static inline void fake_reserve(struct fake *fake, struct leat_store_req *req)
{
    LEAT_ASSERT_CMP(fake->held_count, <, FAKE_SEGMENTS_MAX);
    LEAT_ASSERT((req->capacity & (req->capacity - 1)) == 0);
    LEAT_ASSERT_CMP(req->capacity, >=, (uint32_t)LEAT_SEGMENT_BYTES_MIN);
    LEAT_ASSERT_CMP(req->capacity, <=, (uint32_t)LEAT_SEGMENT_BYTES_MAX);
    struct leat_segment *seg = calloc(1, sizeof *seg);
    struct fake_held *held = &fake->held[fake->held_count++];
    *held = (struct fake_held){.seg = seg, .file = fake_buffer(req->capacity)};
    seg->log = req->log;
    seg->id = req->id;
    seg->epoch = req->epoch;
    seg->capacity = req->capacity;
    seg->durability = req->durability;
    seg->state = LEAT_SEGMENT_RESERVED;
    seg->buffer = fake_buffer(req->capacity);
    seg->file = (struct leat_file *)(void *)held->file;
    seg->file_offset = 0;
    seg->owner_actor = req->from;
    seg->post = &fake->post;
    req->seg = seg;
}

static inline void fake_forget(struct fake *fake, struct leat_segment *seg)
{
    struct fake_held *held = fake_held_of(fake, seg);
    LEAT_ASSERT_CMP(atomic_load(&seg->pins), ==, 0u);
    free(seg->buffer);
    free(held->file);
    free(seg);
    *held = fake->held[--fake->held_count];
}

static inline void fake_hibernate(struct fake_held *held)
{
    struct leat_segment *seg = held->seg;
    LEAT_ASSERT_CMP(atomic_load(&seg->pins), ==, 0u);
    memcpy(held->file, seg->buffer, seg->capacity);
    held->hibernated_row = true;
    held->row_prefix_id = seg->prefix_id;
    seg->state = LEAT_SEGMENT_HIBERNATED;
    free(seg->buffer);
    seg->buffer = NULL;
}

static inline void fake_req_done(struct fake *fake, struct leat_store_req *req)
{
    struct leat_segment *seg = req->seg;
    if (req->kind == LEAT_STORE_HIBERNATE && !seg->buffer) { /* the copies are hibernated as well */
        req->on_done(req);
        return;
    }
    fake->requests++;
    req->rc = LEAT_OK;
    if (fake->requests == fake->fail_request_at && (fake->fail_kinds >> req->kind & 1)) {
        req->rc = fake->fail_rc;
        req->on_done(req);
        return;
    }
    struct fake_held *held = seg ? fake_held_of(fake, seg) : NULL;
    switch (req->kind) {
    case LEAT_STORE_RESERVE:
        fake_reserve(fake, req);
        break;
    case LEAT_STORE_COMMIT: {
        LEAT_ASSERT_CMP(req->from_bytes, <, req->to_bytes);
        LEAT_ASSERT_CMP(req->to_bytes, <=, seg->capacity);
        uint32_t from = LEAT_ALIGN_DOWN(req->from_bytes, 4096u);
        uint32_t to = LEAT_ALIGN_UP(req->to_bytes, 4096u);
        memcpy(held->file + from, seg->buffer + from, to - from);
        break;
    }
    case LEAT_STORE_CLOSE:
        LEAT_ASSERT(seg->buffer != NULL && !held->closed_row);
        memcpy(held->file, seg->buffer, seg->capacity);
        held->closed_row = true;
        held->row_prefix_id = seg->prefix_id;
        break;
    case LEAT_STORE_HIBERNATE:
        fake_hibernate(held);
        if (!fake->copies_hibernate_later) break;
        req->on_here(req);
        fake_push(fake, (struct fake_event){.req = req});
        return;
    case LEAT_STORE_RESUME:
        LEAT_ASSERT(seg->state == LEAT_SEGMENT_HIBERNATED && held->hibernated_row && !seg->buffer);
        seg->buffer = fake_buffer(seg->capacity);
        memcpy(seg->buffer, held->file, seg->prefix_id.bytes);
        held->hibernated_row = false;
        seg->state = LEAT_SEGMENT_OPEN;
        break;
    case LEAT_STORE_DROP:
        fake_forget(fake, seg);
        req->seg = NULL;
        fake->drops++;
        break;
    case LEAT_STORE_EVICT:
        LEAT_ASSERT_CMP(atomic_load(&seg->pins), ==, 0u);
        LEAT_ASSERT(seg->flushed && seg->state == LEAT_SEGMENT_CLOSED && seg->buffer);
        free(seg->buffer);
        seg->buffer = NULL;
        break;
    case LEAT_STORE_GIVE_UP:
        seg->given_up |= req->given_up;
        seg->front_given_up |= req->front_given_up;
        break;
    case LEAT_STORE_STAMP:
    case LEAT_STORE_MOVE:
    case LEAT_STORE_REPAIR:
        LEAT_ASSERT(false); /* no log asks for that */
        break;
    }
    req->on_done(req);
}

static inline void fake_io_done(struct fake *fake, struct leat_disk_io *io)
{
    const uint8_t *file = (const uint8_t *)(void *)io->file;
    fake->reads_done++;
    io->rc = fake->fail_reads ? LEAT_E_DISK : LEAT_OK;
    uint64_t end = fake->files_end ? fake->files_end : io->offset + io->bytes;
    uint64_t left = io->offset < end ? end - io->offset : 0;
    io->done_bytes = left < io->bytes ? (size_t)left : io->bytes;
    memcpy(io->buffer, file + io->offset, io->done_bytes);
    if (fake->flip_reads)
        ((uint8_t *)io->buffer)[leat_xoshiro_below(&fake->random, io->bytes)] ^= 4;
    io->on_done(io);
}

/* Deliver one completion, the earliest; then the turn's end. false: nothing is under way. */
static inline void fake_turn_end(struct fake *fake)
{
    while (fake->dirty && !fake->ended) {
        fake->dirty = false;
        leat_log_turn_end(fake->log);
        if (!fake->ended && !fake->made_up) leat_log_check(fake->log, fake->dirty);
    }
    fake_roll_check(fake);
    if (fake->opening && fake->open_at_once && !fake->ended) {
        fake->opening = false;
        leat_log_opened(fake->log, LEAT_OK);
        fake_turn_end(fake);
    }
}
static inline bool fake_deliver(struct fake *fake)
{
    if (fake->queued == 0) return false;
    unsigned best = 0;
    for (unsigned i = 1; i < fake->queued; i++) {
        const struct fake_event *a = &fake->queue[i], *b = &fake->queue[best];
        if (a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number)) best = i;
    }
    struct fake_event event = fake->queue[best];
    fake->queue[best] = fake->queue[--fake->queued];
    if (event.at_us > fake->now_us) fake->now_us = event.at_us;
    if (event.req) fake_req_done(fake, event.req);
    if (event.io) fake_io_done(fake, event.io);
    if (event.mail) event.mail->deliver(fake, event.mail);
    fake_turn_end(fake);
    return true;
}
static inline void fake_settle(struct fake *fake)
{
    fake_turn_end(fake);
    while (fake_deliver(fake)) {
    }
}

static inline void fake_on_dirty(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct fake *)owner)->dirty = true;
}
static inline void fake_on_acked(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct fake *)owner)->acked_events++;
}
static inline void fake_on_room(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct fake *)owner)->room = true;
}
static inline void fake_on_opening(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct fake *)owner)->opening = true;
}
static inline void fake_on_end(void *arg, struct leat_log *log)
{
    (void)log;
    ((struct fake *)arg)->ended = true;
}

/* Not of fake->random: what happens in a seed stays. */
static inline uint64_t fake_number(void *ctx)
{
    return ((const struct fake *)ctx)->now_us * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct fake *fake_create(uint64_t seed, enum leat_durability durability)
{
    struct fake *fake = calloc(1, sizeof *fake);
    leat_xoshiro_seed(&fake->random, seed);
    fake->clock = (struct leat_clock){fake, fake_now, fake_wall, fake_wake_at};
    fake->post = (struct leat_post){fake, fake_send, 0};
    fake->disk = (struct leat_disk){.ctx = fake, .submit = fake_submit};
    fake->random_port = (struct leat_random){.ctx = fake, .next = fake_number};
    fake->env = (struct leat_env){.clock = &fake->clock,
                                  .random = &fake->random_port,
                                  .post = &fake->post,
                                  .disk = &fake->disk};
    fake->store_port =
        (struct leat_store_port){.ctx = fake, .request = fake_request, .safe_in_memory = fake_safe};
    fake->now_us = 1000 * 1000;
    fake->wall_offset_ms = 1000 * 1000;
    fake->memory_is_safe = true;
    fake->open_at_once = true;
    LEAT_ASSERT(leat_timers_init(&fake->timers, &fake->clock, 16) == LEAT_OK);
    fake->options = (struct leat_log_options){
        .ref = {1, 0, 0},
        .epoch = {7},
        .stream_name = "s",
        .settings = {.streamlets = 1,
                     .logs = 1,
                     .copies = 1,
                     .segment_bytes_max = LEAT_SEGMENT_BYTES_MAX},
        .incarnation = 3,
        .durability = durability,
        .hibernate_after_us = 10 * 1000 * 1000,
        .producer_expiry_ms = 24 * 3600 * 1000,
        .events = {fake_on_dirty, fake_on_acked, fake_on_room, fake_on_opening, NULL, NULL},
        .owner = fake,
    };
    return fake;
}
static inline void fake_open(struct fake *fake, struct leat_segment *const *segs, size_t count,
                             const struct leat_log_tail *tail)
{
    const struct leat_log_tail none = {0};
    leat_err rc = leat_log_create(&fake->env, &fake->store_port, &fake->timers, &fake->options,
                                  segs, count, tail ? tail : &none, &fake->log);
    LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
}
static inline void fake_delete_log(struct fake *fake)
{
    fake->ended = false;
    leat_log_delete(fake->log, fake_on_end, fake);
    fake_settle(fake);
    LEAT_ASSERT(fake->ended);
    leat_log_destroy(&fake->log);
    fake->ended = fake->dirty = false;
}
static inline void fake_destroy(struct fake *fake)
{
    if (fake->log) fake_delete_log(fake);
    while (fake->held_count)
        fake_forget(fake, fake->held[0].seg);
    leat_timers_fini(&fake->timers);
    free(fake);
}

/* A batch of `count` records of value_bytes. Returns its bytes. */
static inline uint32_t fake_batch(uint8_t *out, size_t capacity, uint32_t count,
                                  uint32_t value_bytes, int64_t timestamp_ms, int64_t producer,
                                  int16_t epoch, int32_t sequence)
{
    static uint8_t value[LEAT_BATCH_BYTES_MAX];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, out, capacity);
    for (uint32_t i = 0; i < count; i++) {
        memset(value, (int)(sequence + (int32_t)i), value_bytes < 8 ? value_bytes : 8);
        leat_err rc = leat_batch_builder_add(&builder, timestamp_ms + i, NULL, 0, value,
                                             value_bytes, NULL, 0, 0);
        LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
    }
    return leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, producer, epoch, sequence);
}

#endif
