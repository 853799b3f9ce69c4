/* SPDX-License-Identifier: Apache-2.0 */
/* A log that starts on segments with other bytes than the log wrote: start entries with the table of its producers,
 * batches, trim entries. The log reports damage, or goes on: the log wakes, judges producers, takes batches, reads
 * from its beginning to its end in order, finds times, gives its bytes back. No assertion, no sanitizer's report.
 *
 * The input: a byte (bit 0: the first segment is changed, else the last; bit 1: checksums stay as they are; bit 2: the
 * segment's record stays as it is; bit 3: an offset gap follows the segment), then pieces (fuzz.h): two bytes with the
 * place, then the bytes at that place; bit 0 of the kind: the place counts from the start entry's payload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "entries.h"

#include "tests/multilog/reopen.h"

enum { FIRST = 1, CRC_STAYS = 2, RECORD_STAYS = 4, JUMPED = 8, FROM_START = 1 };
enum { READS_MAX = 64, PRODUCERS = 6, JUMP = 1000 };

/* Two segments; the second one's start entry knows some producers. */
static struct fake *log_make(void)
{
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    struct sent sent;
    fake->options.settings.segment_bytes_max = 16 * 1024;
    fake_open(fake, NULL, 0, NULL);
    for (int32_t i = 0; fake->log->next_segment < 2 || i % 8 != 0; i++) {
        LEAT_ASSERT(append(fake, &sent, 4, 100, i % PRODUCERS, 0, i / PRODUCERS * 4) == LEAT_OK);
        fake_settle(fake);
    }
    return fake;
}

static void segment_change(struct fake_held *held, uint32_t capacity, uint8_t how,
                           struct fuzz_pieces pieces)
{
    struct fuzz_piece piece;
    struct leat_segment *seg = held->seg;
    struct leat_entry first;
    memcpy(&first, held->file, sizeof first);
    size_t start = leat_entry_bytes(first.payload_bytes) + LEAT_ENTRY_HEADER_BYTES;
    while (fuzz_piece_next(&pieces, &piece)) {
        if (piece.count < 2) continue;
        size_t at = leat_get_le16(piece.bytes) + (piece.kind & FROM_START ? start : 0);
        if (at >= seg->prefix_id.bytes || at >= capacity) continue;
        size_t count = piece.count - 2;
        if (count > capacity - at) count = capacity - at;
        if (count) memcpy(held->file + at, piece.bytes + 2, count);
    }
    if (!(how & CRC_STAYS)) fuzz_entries_seal(held->file, seg->prefix_id.bytes, false);
    struct leat_scan scan;
    leat_scan_segment(held->file, seg->prefix_id.bytes, &scan);
    if ((how & RECORD_STAYS) || scan.bytes == 0) return;
    seg->prefix_id = (struct leat_prefix_id){scan.bytes, scan.crc};
    seg->next_offset = scan.next_offset;
}

/* As reopen() does it, with another's bytes in one of the segments. */
static void log_begin_anew(struct fake *fake, uint8_t how, struct fuzz_pieces pieces)
{
    struct leat_log *log = fake->log;
    struct leat_segment *segs[SEGMENTS_MAX];
    uint32_t count = log->slot_count;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_segment *seg = segs[i] = log_slot_at(log, i)->seg;
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
        if (i == (how & FIRST ? 0 : count - 1)) segment_change(held, seg->capacity, how, pieces);
    }
    struct leat_log_tail tail = {.next_segment = count,
                                 .previous = segs[count - 1]->prefix_id,
                                 .next_offset = segs[count - 1]->next_offset,
                                 .jumped = (how & JUMPED) != 0};
    if (tail.jumped) tail.next_offset += JUMP;
    leat_log_destroy(&fake->log);
    for (uint32_t i = 0; i < count; i++) {
        free(segs[i]->buffer);
        segs[i]->buffer = NULL;
        segs[i]->flushed = true;
    }
    fake->dirty = fake->room = fake->opening = false;
    fake->options.epoch.v++;
    fake_open(fake, segs, count, &tail);
    fake_settle(fake);
}

/* Offsets do not go back, whatever is missing. */
static void log_read(struct fake *fake)
{
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    uint64_t from = fake->log->first_offset;
    for (unsigned i = 0; i < READS_MAX; i++) {
        struct leat_read read = {.from = {from}};
        if (read_once(fake, &read, buffer) != LEAT_OK || read.iov_count == 0) break;
        LEAT_ASSERT(read.next.v > from);
        from = read.next.v;
    }
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = fake_wall(fake)};
    if (locate(fake, &op, buffer) == LEAT_OK) LEAT_ASSERT(op.offset.v <= fake->log->next_offset);
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct fake *fake = log_make();
    struct sent sent[2 * PRODUCERS];
    struct fuzz_pieces pieces = {data + 1, data + size};
    log_begin_anew(fake, data[0], pieces);
    log_read(fake);
    for (unsigned i = 0; i < 2 * PRODUCERS; i++)
        if (append(fake, &sent[i], 1, 10, i % (PRODUCERS + 1), 0, (int32_t)(i * 3)) == LEAT_OK)
            fake_settle(fake);
    fake->now_us += 20 * 1000 * 1000;
    leat_timers_run(&fake->timers);
    leat_log_care(fake->log);
    fake_settle(fake);
    log_read(fake);
    fake_destroy(fake);
    return 0;
}
