/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that the tests of one log share: append, read, evict, as a broker does them. After cmocka.h. */
#ifndef LEAT_TESTS_MULTILOG_STEPS_H
#define LEAT_TESTS_MULTILOG_STEPS_H

#include "base/bytes.h"
#include "fake.h"
#include "wire/message.h"

static uint8_t bytes[LEAT_BATCH_BYTES_MAX + 4096];

struct sent {
    struct leat_append append;
    leat_err rc;
    unsigned answers;
};

static inline void on_answer(struct leat_append *append, leat_err rc)
{
    struct sent *sent = append->owner;
    sent->rc = rc;
    sent->answers++;
}

/* The batches that follow say so of their highest time, and their records' times are so much later; kept apart from
 * the parameters, which all tests have. */
static struct {
    bool lies;
    int64_t header_ms, later_ms;
} times;

static inline leat_err append_try(struct fake *fake, struct sent *sent, uint32_t count,
                                  uint32_t value, int64_t producer, int16_t epoch, int32_t sequence)
{
    uint32_t total = fake_batch(bytes, sizeof bytes, count, value, fake_wall(fake) + times.later_ms,
                                producer, epoch, sequence);
    if (times.lies) {
        leat_put_be64(bytes + 35, (uint64_t)times.header_ms);
        leat_batch_set_producer(bytes, total, producer, epoch, sequence); /* and the CRC */
    }
    struct leat_batch batch;
    struct leat_error error = {0};
    leat_err rc = leat_batch_check(bytes, total, &batch, &error);
    assert_int_equal(rc, LEAT_OK);
    *sent = (struct sent){.append = {.on_acked = on_answer, .owner = sent}, .rc = LEAT_E_AGAIN};
    rc = leat_log_append(fake->log, &batch, &sent->append, &error);
    if (rc != LEAT_OK && rc != LEAT_E_AGAIN) assert_true(error.text[0] != '\0');
    assert_int_equal(sent->answers, 0);
    return rc;
}

/* Append as a broker does: AGAIN waits for on_room. */
static inline leat_err append(struct fake *fake, struct sent *sent, uint32_t count, uint32_t value,
                              int64_t producer, int16_t epoch, int32_t sequence)
{
    for (;;) {
        leat_err rc = append_try(fake, sent, count, value, producer, epoch, sequence);
        if (rc != LEAT_E_AGAIN) return rc;
        fake->room = false;
        fake_turn_end(fake);
        while (!fake->room)
            if (!fake_deliver(fake)) return LEAT_E_AGAIN;
    }
}

static inline void must_append(struct fake *fake, uint32_t count, uint32_t value)
{
    struct sent sent;
    assert_int_equal(append(fake, &sent, count, value, -1, -1, -1), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(sent.rc, LEAT_OK);
}

/* A compressed batch; record i has the time begin + i. */
static inline void compressed_append(struct fake *fake, int64_t begin, uint32_t records)
{
    static uint8_t plain[LEAT_BATCH_BYTES_MAX], packed[LEAT_BATCH_BYTES_MAX];
    static uint8_t value[4000];
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, plain, sizeof plain);
    for (uint32_t i = 0; i < records; i++)
        assert_int_equal(
            leat_batch_builder_add(&builder, begin + i, NULL, 0, value, sizeof value, NULL, 0, 0),
            LEAT_OK);
    uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    assert_int_equal(
        leat_batch_compress(plain, count, LEAT_CODEC_ZSTD, 1, packed, sizeof packed, &count),
        LEAT_OK);
    struct leat_batch batch;
    struct sent sent = {0};
    assert_int_equal(leat_batch_check(packed, count, &batch, NULL), LEAT_OK);
    sent.append.on_acked = on_answer;
    sent.append.owner = &sent;
    assert_int_equal(leat_log_append(fake->log, &batch, &sent.append, NULL), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(sent.rc, LEAT_OK);
}

static inline void on_read(struct leat_read *read)
{
    *(bool *)read->owner = true;
}

static inline void evict_all(struct fake *fake)
{
    for (unsigned i = 0; i < fake->held_count; i++) {
        struct fake_held *held = &fake->held[i];
        if (!held->closed_row) continue;
        leat_log_on_flushed(fake->log, held->seg);
        leat_log_on_evict_wanted(fake->log, held->seg);
    }
    fake_settle(fake);
}

static inline leat_err read_once(struct fake *fake, struct leat_read *read, void *buffer)
{
    bool done = false;
    read->max_bytes = 64 * 1024;
    read->disk_buffer = buffer;
    read->disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024;
    read->on_done = on_read;
    read->owner = &done;
    leat_err rc = leat_log_read(fake->log, read);
    if (rc == LEAT_E_AGAIN) fake_turn_end(fake);
    while (rc == LEAT_E_AGAIN && !done)
        assert_true(fake_deliver(fake));
    if (read->pinned) leat_segment_unpin(read->pinned, &fake->post);
    return read->rc;
}

/* Read everything from an offset on; returns records seen, checks that offsets are dense. */
static inline uint64_t read_all(struct fake *fake, uint64_t from, bool by_position)
{
    static struct leat_read read;
    bool done = false;
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    uint64_t expected = from;
    struct leat_position place = {0};
    place.segment = fake->log->first_segment;
    place.group = place.segment / 16;
    for (;;) {
        read = (struct leat_read){.from = {expected},
                                  .by_position = by_position,
                                  .position = place,
                                  .max_bytes = 64 * 1024,
                                  .disk_buffer = buffer,
                                  .disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024,
                                  .on_done = on_read,
                                  .owner = &done};
        done = false;
        if (leat_log_read(fake->log, &read) == LEAT_E_AGAIN)
            while (!done)
                assert_true(fake_deliver(fake));
        assert_int_equal(read.rc, LEAT_OK);
        for (unsigned i = 0; i < read.iov_count; i++) {
            struct leat_batch batch;
            leat_err rc = leat_batch_check(read.iovs[i].base, read.iovs[i].bytes, &batch, NULL);
            assert_int_equal(rc, LEAT_OK);
            assert_int_equal(batch.base_offset, expected);
            assert_int_equal(batch.leader_epoch, 7);
            expected += batch.record_count;
        }
        assert_int_equal(read.next.v, expected);
        if (read.pinned) leat_segment_unpin(read.pinned, &fake->post);
        place = read.next_position;
        if (read.iov_count == 0) break;
    }
    free(buffer);
    return expected - from;
}

static inline void on_locate_done(struct leat_locate_op *op)
{
    *(bool *)op->owner = true;
}

#endif
