/* SPDX-License-Identifier: Apache-2.0 */
/* A log of several segments that ends and is made anew from what is held of it. After cmocka.h. */
#ifndef LEAT_TESTS_MULTILOG_REOPEN_H
#define LEAT_TESTS_MULTILOG_REOPEN_H

#include "steps.h"
#include "wire/message.h"

enum { BUFFER_BYTES = LEAT_BATCH_BYTES_MAX + 64 * 1024, SEGMENTS_MAX = 64 };

/* Segments 0, 1, ... `count` - 1, closed, and a head. */
static inline struct fake *log_of(unsigned count)
{
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->next_segment < count + 1)
        must_append(fake, 50, 100);
    return fake;
}

/* The server ends and starts anew; what is open then is closed as it is. Ids of the bits in `lost`
 * do not come back; `jump`: an operator has accepted that. */
static inline void reopen(struct fake *fake, uint64_t lost, uint64_t jump, bool evicted)
{
    struct leat_log *log = fake->log;
    struct leat_segment *segs[SEGMENTS_MAX], *gone[SEGMENTS_MAX];
    size_t count = 0, gone_count = 0;
    struct leat_log_tail tail = {.next_segment = log->next_segment,
                                 .next_offset = log->next_offset + jump,
                                 .jumped = jump != 0,
                                 .backfill_follows = fake->backfill_follows,
                                 .holes = fake->holes};
    fake_settle(fake);
    for (uint32_t i = 0; i < log->slot_count; i++) {
        struct leat_segment *seg = log_slot_at(log, i)->seg;
        struct fake_held *held = fake_held_of(fake, seg);
        if (seg->state != LEAT_SEGMENT_CLOSED) {
            seg->state = LEAT_SEGMENT_CLOSED;
            seg->prefix_id =
                (struct leat_prefix_id){log->head.writer.sealed_bytes, log->head.writer.chain};
            seg->next_offset = log->next_offset;
            seg->max_timestamp_ms = log->head.max_timestamp_ms;
            held->closed_row = true;
            memcpy(held->file, seg->buffer, seg->capacity);
        }
        tail.previous = seg->prefix_id;
        if (lost >> seg->id.v & 1)
            gone[gone_count++] = seg;
        else
            segs[count++] = seg;
    }
    leat_log_destroy(&fake->log);
    while (gone_count) {
        struct leat_segment *seg = gone[--gone_count];
        if (fake->keep_lost)
            fake->lost[seg->id.v] = seg; /* they come later */
        else
            fake_forget(fake, seg);
    }
    for (size_t i = 0; i < count && evicted; i++) {
        free(segs[i]->buffer);
        segs[i]->buffer = NULL;
        segs[i]->flushed = true;
    }
    fake->dirty = fake->room = fake->opening = false;
    fake->options.epoch.v++;
    fake_open(fake, segs, count, &tail);
}

/* A read whose owner counts its answers. */
static inline void on_read_counted(struct leat_read *read)
{
    (*(unsigned *)read->owner)++;
}

static inline void bases_of(const struct fake *fake, uint64_t *out_bases)
{
    for (uint32_t i = 0; i < fake->log->slot_count; i++)
        out_bases[i] = log_slot_at(fake->log, i)->seg->base_offset;
}

static inline leat_err locate(struct fake *fake, struct leat_locate_op *op, void *buffer)
{
    bool done = false;
    op->read.disk_buffer = buffer;
    op->read.disk_buffer_bytes = BUFFER_BYTES;
    op->on_done = on_locate_done;
    op->owner = &done;
    leat_err rc = leat_log_locate(fake->log, op);
    if (rc == LEAT_E_AGAIN) fake_turn_end(fake);
    while (rc == LEAT_E_AGAIN && !done)
        assert_true(fake_deliver(fake));
    while (op->seeks && leat_locate_step(op) == LEAT_E_AGAIN)
        continue;
    return op->rc;
}

static inline struct leat_log_info info_of(const struct fake *fake)
{
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    return info;
}

#endif
