/* SPDX-License-Identifier: Apache-2.0 */
/* Random walks of one log: producers with retries and gaps, readers, retention, hibernating, evictions,
 * kills and power cuts, and a recovery that knows only what the store port holds. A failing walk prints
 * its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "fake.h"

enum {
    PRODUCERS = 4,
    SENT_MAX = 5,
    OFFSETS_MAX = 400 * 1000,
    READS_MAX = 4,
    DISK_BUFFER_BYTES = LEAT_BATCH_BYTES_MAX + 64 * 1024,
};

struct sent { /* one batch of a producer, through all its retries */
    struct leat_append append;
    struct walk *walk;
    int32_t sequence;
    uint32_t count, value_bytes;
    bool waiting; /* the log has it */
    bool used;
};
struct producer {
    int16_t epoch;
    int32_t next_sequence;
    struct sent sent[SENT_MAX]; /* oldest first */
    unsigned sent_count;
};
struct reader {
    struct leat_read read;
    bool busy, held;
    uint8_t *buffer;
};
struct walk {
    struct fake *fake;
    struct leat_xoshiro random;
    struct producer producers[PRODUCERS];
    struct reader readers[READS_MAX];
    uint32_t *seen;    /* per first offset: CRC of the batch that a reader was shown */
    int32_t *acked_by; /* per first offset: producer + 1 of an acked batch */
    int32_t *acked_sequence;
    uint64_t acked_max; /* nothing below this may ever be lost */
    uint64_t first_max; /* the log was told to begin there, and said that it does */
    struct leat_log_trim trim;
    bool trimming;
    bool opened_committed;
    struct leat_log_tail tail; /* the coordinator's record while !opened_committed */
    uint8_t *bytes;
    uint64_t appends, restarts, dupes, hibernates, trims;
};

static uint64_t ways; /* heads of all walks that were to leave where they lay */

static uint64_t pick(struct walk *walk, uint64_t bound)
{
    return leat_xoshiro_below(&walk->random, bound);
}

/* ---- producers ---- */

static void on_answer(struct leat_append *append, leat_err rc)
{
    struct sent *sent = append->owner;
    struct walk *walk = sent->walk;
    assert_true(sent->waiting);
    sent->waiting = false;
    if (rc == LEAT_E_DISK || rc == LEAT_E_UNKNOWN_STREAM) return;
    assert_true(rc == LEAT_OK || rc == LEAT_E_ALREADY_APPENDED);
    unsigned p = 0;
    while (!(sent >= walk->producers[p].sent && sent < walk->producers[p].sent + SENT_MAX))
        p++;
    if (rc == LEAT_OK) {
        uint64_t first = append->first_offset;
        assert_true(first + sent->count <= leat_log_acked_offset(walk->fake->log));
        assert_true(walk->acked_by[first] == 0 || (walk->acked_by[first] == (int32_t)p + 1 &&
                                                   walk->acked_sequence[first] == sent->sequence));
        walk->acked_by[first] = (int32_t)p + 1;
        walk->acked_sequence[first] = sent->sequence;
    }
    sent->used = false;
    struct producer *producer = &walk->producers[p];
    while (producer->sent_count && !producer->sent[0].used) {
        /* Lists point into the array: only move what does not wait. */
        bool waits = false;
        for (unsigned i = 1; i < producer->sent_count; i++)
            waits |= producer->sent[i].waiting;
        if (waits) break;
        memmove(&producer->sent[0], &producer->sent[1],
                (producer->sent_count - 1) * sizeof producer->sent[0]);
        producer->sent_count--;
        for (unsigned i = 0; i < producer->sent_count; i++)
            producer->sent[i].append.owner = &producer->sent[i];
    }
}

static leat_err send_batch(struct walk *walk, unsigned p, struct sent *sent, int32_t sequence)
{
    struct leat_batch batch;
    struct leat_error error = {0};
    uint32_t total = fake_batch(walk->bytes, LEAT_BATCH_BYTES_MAX, sent->count, sent->value_bytes,
                                fake_wall(walk->fake), p, walk->producers[p].epoch, sequence);
    assert_int_equal(leat_batch_check(walk->bytes, total, &batch, &error), LEAT_OK);
    sent->append = (struct leat_append){.on_acked = on_answer, .owner = sent};
    sent->walk = walk;
    leat_err rc = leat_log_append(walk->fake->log, &batch, &sent->append, &error);
    if (rc == LEAT_OK) sent->waiting = true;
    return rc;
}

/* Send what was sent before and not answered (in order), or something new. */
static void producer_step(struct walk *walk)
{
    unsigned p = (unsigned)pick(walk, PRODUCERS);
    struct producer *producer = &walk->producers[p];
    for (unsigned i = 0; i < producer->sent_count; i++) {
        struct sent *sent = &producer->sent[i];
        if (!sent->used || sent->waiting) continue;
        leat_err rc = send_batch(walk, p, sent, sent->sequence);
        assert_true(rc == LEAT_OK || rc == LEAT_E_AGAIN || rc == LEAT_E_DISK_FULL);
        if (rc == LEAT_OK && sent->append.duplicate) walk->dupes++;
        return;
    }
    if (producer->sent_count == SENT_MAX) return;
    struct sent *sent = &producer->sent[producer->sent_count];
    uint32_t value = pick(walk, 50) == 0 ? 30000 : (uint32_t)pick(walk, 300);
    *sent = (struct sent){.count = 1 + (uint32_t)pick(walk, 20), .value_bytes = value};
    if (pick(walk, 20) == 0) { /* a gap, refused by name, changes nothing */
        leat_err rc = send_batch(walk, p, sent, producer->next_sequence + 1);
        assert_true(rc == LEAT_E_AGAIN || rc == LEAT_E_SEQUENCE_GAP);
        return;
    }
    sent->sequence = producer->next_sequence;
    leat_err rc = send_batch(walk, p, sent, sent->sequence);
    if (rc == LEAT_E_AGAIN || rc == LEAT_E_DISK_FULL) return;
    assert_int_equal(rc, LEAT_OK);
    assert_false(sent->append.duplicate);
    sent->used = true;
    producer->sent_count++;
    producer->next_sequence += (int32_t)sent->count;
    walk->appends++;
}

/* ---- readers ---- */

static void reader_take(struct walk *walk, struct reader *reader)
{
    struct leat_read *read = &reader->read;
    reader->busy = false;
    assert_int_equal(read->rc, LEAT_OK);
    uint64_t at = read->first.v;
    for (unsigned i = 0; i < read->iov_count; i++) {
        struct leat_batch batch;
        leat_err rc = leat_batch_check(read->iovs[i].base, read->iovs[i].bytes, &batch, NULL);
        assert_int_equal(rc, LEAT_OK);
        assert_int_equal(batch.base_offset, at);
        uint32_t crc = leat_crc32c(0, read->iovs[i].base, read->iovs[i].bytes) | 1;
        assert_true(walk->seen[at] == 0 || walk->seen[at] == crc);
        walk->seen[at] = crc;
        if (walk->acked_by[at]) {
            assert_int_equal(batch.producer_id, walk->acked_by[at] - 1);
            assert_int_equal(batch.base_sequence, walk->acked_sequence[at]);
        }
        at += batch.record_count;
        if (at > walk->acked_max) walk->acked_max = at;
    }
    assert_true(at <= leat_log_acked_offset(walk->fake->log) || read->iov_count == 0);
    if (read->pinned) reader->held = true;
}

static void on_read_done(struct leat_read *read);
static struct walk *the_walk;

static void reader_step(struct walk *walk)
{
    struct reader *reader = &walk->readers[pick(walk, READS_MAX)];
    if (reader->busy) return;
    if (reader->held) {
        reader->held = false;
        leat_segment_unpin(reader->read.pinned, &walk->fake->post);
        return;
    }
    struct leat_log_info info;
    leat_log_info(walk->fake->log, &info);
    bool goes_on = reader->read.rc == LEAT_OK && reader->read.iov_count &&
                   reader->read.next.v >= info.first_offset && pick(walk, 3);
    uint64_t from = info.first_offset + pick(walk, info.acked_offset - info.first_offset + 1);
    struct leat_position place = reader->read.next_position;
    bool by_position = goes_on && pick(walk, 2);
    if (goes_on) from = reader->read.next.v;
    reader->read = (struct leat_read){.from = {from},
                                      .position = place,
                                      .by_position = by_position,
                                      .max_bytes = (uint32_t)pick(walk, 40000),
                                      .disk_buffer = reader->buffer,
                                      .disk_buffer_bytes = DISK_BUFFER_BYTES,
                                      .on_done = on_read_done,
                                      .owner = reader};
    reader->busy = true;
    if (leat_log_read(walk->fake->log, &reader->read) != LEAT_OK) return;
    if (by_position && place.segment < info.first_segment) {
        assert_int_equal(reader->read.rc, LEAT_E_OFFSET_OUT_OF_RANGE);
        reader->busy = false;
        return;
    }
    bool group_ends = by_position && reader->read.next_position.group > place.group;
    if (group_ends && reader->read.iov_count == 0) {
        assert_int_equal(reader->read.next.v, from); /* the next group has the rest */
    } else if (from < info.acked_offset) {
        assert_true(reader->read.iov_count > 0);
        assert_true(reader->read.first.v <= from && reader->read.next.v > from);
        if (by_position) assert_int_equal(reader->read.first.v, from);
    }
    reader_take(walk, reader);
}

static void on_read_done(struct leat_read *read)
{
    struct reader *reader = read->owner;
    if (read->rc == LEAT_E_OFFSET_OUT_OF_RANGE) { /* trimmed meanwhile */
        reader->busy = false;
        read->iov_count = 0;
        return;
    }
    reader_take(the_walk, reader);
}

/* ---- records given up ---- */

static void on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    struct walk *walk = trim->owner;
    assert_true(walk->trimming);
    walk->trimming = false;
    assert_true(rc == LEAT_OK || rc == LEAT_E_UNKNOWN_STREAM);
    if (rc != LEAT_OK) return;
    assert_true(trim->first_offset >= trim->before);
    if (trim->before > walk->first_max) walk->first_max = trim->before;
    walk->trims++;
}

static void trim_step(struct walk *walk)
{
    if (walk->trimming) return;
    struct leat_log_info info;
    leat_log_info(walk->fake->log, &info);
    uint64_t some = pick(walk, info.acked_offset - info.first_offset + 1);
    walk->trim = (struct leat_log_trim){.before = info.first_offset + some / (1 + pick(walk, 8)),
                                        .on_done = on_trimmed,
                                        .owner = walk};
    if (pick(walk, 8) == 0) walk->trim.before = UINT64_MAX;
    assert_int_equal(leat_log_trim_before(walk->fake->log, &walk->trim, NULL), LEAT_OK);
    walk->trimming = true;
}

/* ---- the end of a process, and what comes after ---- */

static void log_abandon(struct walk *walk)
{
    struct fake *fake = walk->fake;
    struct leat_log *log = fake->log;
    for (unsigned i = 0; i < fake->queued; i++) {
        struct leat_store_req *req = fake->queue[i].req;
        if (!req || pick(walk, 2)) continue;
        /* Some of what was under way took effect. */
        struct leat_segment *seg = req->seg;
        if (req->kind == LEAT_STORE_COMMIT) {
            struct fake_held *held = fake_held_of(fake, seg);
            for (uint32_t at = LEAT_ALIGN_DOWN(req->from_bytes, 512u); at < req->to_bytes;
                 at += 512)
                if (pick(walk, 3)) memcpy(held->file + at, seg->buffer + at, 512);
        } else if (req->kind == LEAT_STORE_CLOSE) {
            struct fake_held *held = fake_held_of(fake, seg);
            memcpy(held->file, seg->buffer, seg->capacity);
            held->closed_row = true;
            held->row_prefix_id = seg->prefix_id;
        }
    }
    fake->queued = 0;
    leat_list_init(&log->waiting);
    leat_list_init(&log->trims);
    walk->trimming = false;
    leat_list_init(&log->stalled_reads);
    memset(log->helper_busy, 0, sizeof log->helper_busy);
    log->reserving = log->closing = false;
    log->hibernating = LOG_AWAKE;
    log->commit_count = 0;
    log->warming = false;
    log->reads_in_flight = 0;
    leat_log_destroy(&fake->log);
    fake->dirty = fake->opening = fake->room = false;
    for (unsigned i = 0; i < READS_MAX; i++) {
        walk->readers[i].busy = walk->readers[i].held = false;
        walk->readers[i].read.iov_count = 0;
    }
    for (unsigned p = 0; p < PRODUCERS; p++)
        for (unsigned i = 0; i < SENT_MAX; i++)
            walk->producers[p].sent[i].waiting = false;
    for (unsigned i = 0; i < fake->held_count; i++)
        fake->held[i].seg->log_pointer = NULL;
    for (unsigned i = 0; i < fake->held_count; i++)
        atomic_store(&fake->held[i].seg->pins, 0u);
}

static int by_id(const void *a, const void *b)
{
    const struct fake_held *x = a, *y = b;
    return x->seg->id.v < y->seg->id.v ? -1 : x->seg->id.v > y->seg->id.v;
}

static void held_look(struct fake_held *held, bool power_cut, struct leat_scan *scan)
{
    struct leat_segment *seg = held->seg;
    if (power_cut || !seg->buffer) {
        free(seg->buffer);
        seg->buffer = NULL;
        leat_scan_segment(held->file, seg->capacity, scan);
    } else {
        leat_scan_segment(seg->buffer, seg->capacity, scan);
    }
    if (held->closed_row) {
        assert_int_equal(scan->bytes, held->row_prefix_id.bytes);
        assert_int_equal(scan->crc, held->row_prefix_id.crc);
        assert_true(scan->closed || held->hibernated_row);
    } else if (held->hibernated_row) {
        assert_int_equal(scan->bytes, held->row_prefix_id.bytes);
    }
}

static void segment_close(struct fake_held *held, const struct leat_scan *scan)
{
    struct leat_segment *seg = held->seg;
    seg->state = LEAT_SEGMENT_CLOSED;
    seg->prefix_id = (struct leat_prefix_id){scan->bytes, scan->crc};
    seg->base_offset = scan->base_offset;
    seg->next_offset = scan->next_offset;
    seg->max_timestamp_ms = scan->max_timestamp_ms;
    /* Cut: what lay behind is gone, in memory and in the file. */
    if (seg->buffer) {
        memset(seg->buffer + scan->bytes, 0, seg->capacity - scan->bytes);
        memcpy(held->file, seg->buffer, seg->capacity);
    } else {
        memset(held->file + scan->bytes, 0, seg->capacity - scan->bytes);
    }
    held->closed_row = true;
    held->hibernated_row = true; /* "closed by its row": need not hold a close entry */
    held->row_prefix_id = seg->prefix_id;
    seg->flushed = true;
}

/* Decide where the log ends by the design's rules, from what the store port holds alone. */
static void recover(struct walk *walk, bool power_cut)
{
    static struct leat_scan scans[FAKE_SEGMENTS_MAX];
    static struct leat_segment *segs[FAKE_SEGMENTS_MAX];
    struct fake *fake = walk->fake;
    qsort(fake->held, fake->held_count, sizeof fake->held[0], by_id);
    unsigned mark = UINT32_MAX, kept = 0;
    for (unsigned i = 0; i < fake->held_count; i++) {
        held_look(&fake->held[i], power_cut, &scans[i]);
        assert_false(scans[i].damaged);
        bool closed = fake->held[i].closed_row || scans[i].closed;
        if (mark == UINT32_MAX && scans[i].started && !closed) mark = i;
    }
    struct leat_log_tail tail = walk->tail;
    unsigned count = fake->held_count;
    if (walk->opened_committed) {
        assert_true(mark != UINT32_MAX); /* exactly one thing says where a log ends */
        const struct leat_scan *scan = &scans[mark];
        if (mark > 0 && fake->held[mark - 1].seg->id.v + 1 == fake->held[mark].seg->id.v) {
            assert_int_equal(scan->previous.bytes, scans[mark - 1].bytes);
            assert_int_equal(scan->previous.crc, scans[mark - 1].crc);
        }
        count = mark + 1;
        tail = (struct leat_log_tail){.next_segment = fake->held[mark].seg->id.v + 1,
                                      .previous = {scan->bytes, scan->crc},
                                      .next_offset = scan->next_offset};
    }
    for (unsigned i = 0; i < count; i++) {
        if (fake->held[i].seg->id.v >= tail.next_segment) break;
        segment_close(&fake->held[i], &scans[i]);
        segs[kept++] = fake->held[i].seg;
    }
    while (fake->held_count > kept)
        fake_forget(fake, fake->held[fake->held_count - 1].seg);
    assert_true(tail.next_offset >= walk->acked_max);
    walk->acked_max = tail.next_offset;
    walk->opened_committed = false;
    walk->tail = tail;
    fake->options.epoch.v++;
    fake_open(fake, segs, kept, &tail);
    walk->restarts++;
}

static void restart(struct walk *walk)
{
    /* Level memory survives a kill only; level disk both. */
    bool power_cut = walk->fake->options.durability == LEAT_DURABILITY_DISK && pick(walk, 2);
    uint64_t acked = leat_log_acked_offset(walk->fake->log);
    if (acked > walk->acked_max) walk->acked_max = acked;
    log_abandon(walk);
    recover(walk, power_cut);
}

/* ---- the walk ---- */

static void opening_step(struct walk *walk)
{
    struct fake *fake = walk->fake;
    if (!fake->opening) return;
    if (!walk->opened_committed) {
        walk->opened_committed = true;
        return; /* committed, and the answer is under way */
    }
    fake->opening = false;
    leat_log_opened(fake->log, LEAT_OK);
}

static void evict_step(struct walk *walk)
{
    struct fake *fake = walk->fake;
    if (fake->held_count == 0) return;
    struct fake_held *held = &fake->held[pick(walk, fake->held_count)];
    if (!held->closed_row || held->seg->log_pointer != fake->log) return;
    if (!held->seg->flushed)
        leat_log_on_flushed(fake->log, held->seg);
    else
        leat_log_on_evict_wanted(fake->log, held->seg);
}

/* Nobody does anything for a while: the head hibernates. */
static void quiet_step(struct walk *walk)
{
    struct fake *fake = walk->fake;
    for (unsigned i = 0; i < 4; i++) {
        fake_settle(fake);
        opening_step(walk);
    }
    fake->now_us += 1000 * 1000;
    leat_log_care(fake->log);
    fake_turn_end(fake);
    if (fake->log->hibernating == LOG_HIBERNATING) walk->hibernates++;
    if (pick(walk, 2)) fake_settle(fake);
}

static void walk_step(struct walk *walk)
{
    struct fake *fake = walk->fake;
    switch (pick(walk, 40)) {
    case 0:
        evict_step(walk);
        break;
    case 1:
        opening_step(walk);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        reader_step(walk);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
        (void)fake_deliver(fake);
        break;
    case 19:
    case 20:
    case 21:
    case 22:
        fake_turn_end(fake);
        break;
    case 23:
        fake->now_us += pick(walk, 100) == 0 ? 20 * 1000 * 1000 : pick(walk, 50 * 1000);
        leat_log_care(fake->log);
        break;
    case 25:
        if (pick(walk, 4) == 0) trim_step(walk);
        break;
    case 24:
        if (pick(walk, 5) == 0) quiet_step(walk);
        if (pick(walk, 10) == 0) restart(walk);
        break;
    default:
        producer_step(walk);
        break;
    }
    /* Nothing is ever lost in a walk: what is not there was trimmed, and the log knows it. */
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    assert_int_equal(info.missing_segments, 0);
    assert_true(log_front_is_unknown(fake->log) || info.first_offset >= walk->first_max);
    uint64_t acked = leat_log_acked_offset(fake->log);
    assert_true(acked >= walk->acked_max || walk->acked_max - acked == 0);
    if (acked > walk->acked_max) walk->acked_max = acked;
}

/* Everything that was sent gets its answer, then the whole log is read. */
static void walk_finish(struct walk *walk)
{
    struct fake *fake = walk->fake;
    fake_settle(fake);
    for (unsigned round = 0; round < 2000; round++) {
        bool open = false;
        for (unsigned p = 0; p < PRODUCERS; p++)
            for (unsigned i = 0; i < walk->producers[p].sent_count; i++)
                open |= walk->producers[p].sent[i].used;
        if (!open) break;
        assert_true(round < 1999);
        for (unsigned p = 0; p < PRODUCERS; p++)
            for (unsigned i = 0; i < walk->producers[p].sent_count; i++) {
                struct sent *sent = &walk->producers[p].sent[i];
                if (!sent->used || sent->waiting) continue;
                leat_err rc = send_batch(walk, p, sent, sent->sequence);
                assert_true(rc == LEAT_OK || rc == LEAT_E_AGAIN);
                if (rc == LEAT_E_AGAIN) break;
            }
        fake_settle(fake);
        opening_step(walk);
        opening_step(walk);
        fake_settle(fake);
    }
    for (unsigned i = 0; i < READS_MAX; i++) {
        assert_false(walk->readers[i].busy);
        if (walk->readers[i].held) leat_segment_unpin(walk->readers[i].read.pinned, &fake->post);
        walk->readers[i].held = false;
    }
    fake_settle(fake);
    for (unsigned round = 0; walk->trimming; round++) {
        assert_true(round < 100);
        opening_step(walk);
        fake->now_us += 1000 * 1000;
        leat_log_care(fake->log);
        fake_settle(fake);
    }
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    assert_true(info.first_offset >= walk->first_max);
    assert_int_equal(info.acked_offset, info.next_offset);
    int64_t last[PRODUCERS] = {-1, -1, -1, -1};
    struct reader *reader = &walk->readers[0];
    for (uint64_t at = info.first_offset; at < info.acked_offset;) {
        reader->read = (struct leat_read){.from = {at},
                                          .max_bytes = 100000,
                                          .disk_buffer = reader->buffer,
                                          .disk_buffer_bytes = DISK_BUFFER_BYTES,
                                          .on_done = on_read_done,
                                          .owner = reader};
        reader->busy = true;
        if (leat_log_read(fake->log, &reader->read) == LEAT_OK) reader_take(walk, reader);
        while (reader->busy)
            assert_true(fake_deliver(fake));
        assert_true(at == info.first_offset ? reader->read.first.v <= at
                                            : reader->read.first.v == at);
        assert_true(reader->read.next.v > at);
        for (unsigned i = 0; i < reader->read.iov_count; i++) {
            struct leat_batch batch;
            assert_int_equal(
                leat_batch_view(reader->read.iovs[i].base, reader->read.iovs[i].bytes, &batch),
                LEAT_OK);
            int64_t *known = &last[batch.producer_id];
            assert_true(*known < 0 || batch.base_sequence == *known + 1);
            *known = batch.base_sequence + (int64_t)batch.record_count - 1;
        }
        at = reader->read.next.v;
        if (reader->held) leat_segment_unpin(reader->read.pinned, &fake->post);
        reader->held = false;
    }
    for (unsigned p = 0; p < PRODUCERS; p++)
        assert_true(last[p] < 0 || last[p] + 1 == walk->producers[p].next_sequence);
}

/* The pool's limit falls now and then, so that heads are to leave where they lie. */
static bool in_the_way(void *ctx, const struct leat_segment *head)
{
    const struct fake *fake = ctx;
    assert_non_null(head->buffer);
    bool leaves = (fake->now_us * 0x9e3779b97f4a7c15u) >> 62 == 0;
    ways += leaves;
    return leaves;
}

static void walk_run(uint64_t seed, enum leat_durability level, unsigned steps)
{
    static struct walk walk;
    memset(&walk, 0, sizeof walk);
    the_walk = &walk;
    leat_xoshiro_seed(&walk.random, seed);
    struct fake *fake = walk.fake = fake_create(seed, level);
    walk.seen = calloc(OFFSETS_MAX, sizeof *walk.seen);
    walk.acked_by = calloc(OFFSETS_MAX, sizeof *walk.acked_by);
    walk.acked_sequence = calloc(OFFSETS_MAX, sizeof *walk.acked_sequence);
    walk.bytes = malloc(LEAT_BATCH_BYTES_MAX);
    for (unsigned i = 0; i < READS_MAX; i++)
        walk.readers[i].buffer = aligned_alloc(4096, DISK_BUFFER_BYTES);
    fake->open_at_once = false;
    fake->delay_us_max = 1 + pick(&walk, 3000);
    fake->copies_hibernate_later = seed % 2 != 0;
    fake->memory_is_safe = pick(&walk, 4) != 0;
    fake->options.settings.segment_bytes_max = 16384u << pick(&walk, 4);
    if (pick(&walk, 2)) fake->options.settings.retention_bytes = 200000;
    if (pick(&walk, 3) == 0) fake->options.settings.retention_ms = 5000;
    fake->options.hibernate_after_us = 100 * 1000;
    if (seed % 2) fake->store_port.in_the_way = in_the_way;
    fake_open(fake, NULL, 0, NULL);
    for (unsigned i = 0; i < steps; i++)
        walk_step(&walk);
    walk_finish(&walk);
    if (getenv("LEAT_WALK_PRINT"))
        print_message("seed %llu: %llu appends, %llu repeats, %llu restarts, %llu hibernates, "
                      "%llu trims, %llu drops, %llu file reads\n",
                      (unsigned long long)seed, (unsigned long long)walk.appends,
                      (unsigned long long)walk.dupes, (unsigned long long)walk.restarts,
                      (unsigned long long)walk.hibernates, (unsigned long long)walk.trims,
                      (unsigned long long)fake->drops, (unsigned long long)fake->reads_done);
    fake_destroy(fake);
    for (unsigned i = 0; i < READS_MAX; i++)
        free(walk.readers[i].buffer);
    free(walk.bytes);
    free(walk.seen);
    free(walk.acked_by);
    free(walk.acked_sequence);
}

static void log_random_walks_keep_every_promise(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    const char *one = getenv("LEAT_WALK_SEED"), *many = getenv("LEAT_WALKS");
    uint64_t from = one ? strtoull(one, NULL, 0) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 0) : 40;
    for (uint64_t seed = from; seed < from + count; seed++) {
        fprintf(stderr, "\rwalk %llu", (unsigned long long)seed);
        walk_run(seed, level, 6000);
    }
    fprintf(stderr, "\r");
    assert_true(one || ways > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(log_random_walks_keep_every_promise,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(log_random_walks_keep_every_promise,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
