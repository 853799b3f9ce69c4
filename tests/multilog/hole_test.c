/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are not there, between others and at the end: lost, damaged, given up, or on their way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/node_log.h"
#include "reopen.h"

/* ---- the last segment ---- */

static unsigned last_damaged;
static bool others_have_it;
static bool on_last_damaged(void *owner, struct leat_log *log, struct leat_segment *seg)
{
    (void)owner, (void)log;
    assert_int_equal(seg->id.v, 3);
    last_damaged++;
    return others_have_it;
}

static char node_log_line[1024];
static unsigned node_log_lines;
static void node_log_keep(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    if (level != LEAT_NODE_LOG_ERROR) return;
    snprintf(node_log_line, sizeof node_log_line, "%s", line);
    node_log_lines++;
}

/* A log that is found damaged long after the start says so in the node log: which, where, and what to type. */
static void last_segment_damaged_is_told_with_the_place_and_the_command(void **state)
{
    (void)state;
    struct sent sent;
    struct fake *fake = log_of(3);
    node_log_line[0] = '\0';
    leat_node_log_set(node_log_keep, NULL, LEAT_NODE_LOG_ERROR);
    reopen(fake, 0, 0, true);
    fake_settle(fake);
    assert_string_equal(node_log_line, "");
    fake->fail_reads = true;
    assert_int_equal(append(fake, &sent, 50, 100, -1, -1, -1), LEAT_E_DAMAGED);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    assert_non_null(
        strstr(node_log_line, "segment 3 is damaged: the disk failed to read it (store/"));
    assert_non_null(strstr(node_log_line, "leat log recover "));
    assert_non_null(strstr(node_log_line, " --streamlet 0 --log 0 --accept-loss"));
    fake_destroy(fake);
}

/* Goal: a start that finds no segment at the front of a log names the missing offsets, though nobody reads them. */
static void front_that_is_gone_at_a_start_is_named(void **state)
{
    (void)state;
    uint64_t bases[SEGMENTS_MAX];
    char want[80];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    node_log_line[0] = '\0';
    leat_node_log_set(node_log_keep, NULL, LEAT_NODE_LOG_ERROR);
    reopen(fake, 7, 0, false);
    fake_settle(fake);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    snprintf(want, sizeof want, "segments 0 to 2 with offsets 0 to %llu are ",
             (unsigned long long)bases[3] - 1);
    assert_non_null(strstr(node_log_line, want));
    fake_destroy(fake);
}

/* Where other nodes have the last segment whoever appends is told to try again: only where none has it the
 * log is damaged. */
static void last_segment_damaged_refuses_for_good_only_where_nobody_else_has_it(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct sent sent;
        struct fake *fake = log_of(3);
        fake->options.events.on_last_damaged = on_last_damaged;
        last_damaged = 0;
        others_have_it = others;
        reopen(fake, 0, 0, true);
        fake_settle(fake); /* where it begins is known */
        fake->fail_reads = true;
        assert_int_equal(append(fake, &sent, 50, 100, -1, -1, -1),
                         others ? LEAT_E_STARTING : LEAT_E_DAMAGED);
        assert_int_equal(last_damaged, 1);
        assert_int_equal(info_of(fake).state, others ? LEAT_LOG_STOPPED : LEAT_LOG_DAMAGED);
        fake_destroy(fake);
    }
}

/* The tail could not be read and was given up: its offsets are jumped over, before the next segment
 * and after it, in this life and in the next. */
static void tail_given_up_is_jumped_over(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 0x70, 1 << 20, evicted);
    uint64_t next = info_of(fake).next_offset;
    struct leat_read read = {.from = {bases[4] + 5}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.iov_count, 0);
    assert_int_equal(read.next.v, next);
    must_append(fake, 7, 100);
    for (int start = 0; start < 2; start++) {
        for (uint64_t from = bases[4]; from < bases[4] + 9; from += 4) {
            read = (struct leat_read){.from = {from}};
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
            assert_int_equal(read.first.v, next);
            assert_int_equal(read.first_position.segment, 7);
        }
        read = (struct leat_read){.by_position = true, .position = {0, 4, 0}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, next);
        struct leat_locate_op op = {.what = LEAT_LOCATE_OFFSET, .value = (int64_t)bases[4] + 1};
        assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
        assert_int_equal(op.offset.v, next);
        reopen(fake, 0, 0, evicted);
    }
    /* Without a buffer the read asks for one, as ever. */
    if (evicted) {
        fake_settle(fake);
        read = (struct leat_read){.from = {bases[4] + 1}, .max_bytes = 1000};
        assert_int_equal(leat_log_read(fake->log, &read), LEAT_OK);
        assert_int_equal(read.rc, LEAT_E_NO_MEMORY);
    }
    free(buffer);
    fake_destroy(fake);
}

static const struct leat_segment *slot_before(struct leat_log *log, uint64_t offset)
{
    uint32_t i = 0;
    while (log_slot_at(log, i)->seg->next_offset != offset)
        i++;
    return log_slot_at(log, i)->seg;
}

/* Offsets that were given up behind a whole segment are jumped over by a reader that comes from there, also where the
 * next segment's start entry has not been looked at since the start. */
static void offsets_given_up_behind_a_segment_are_jumped_over(void **state)
{
    bool evicted = *state != NULL;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(3);
    uint64_t end = info_of(fake).next_offset;
    reopen(fake, 0, 1 << 20, evicted);
    uint64_t next = info_of(fake).next_offset;
    assert_true(next > end);
    must_append(fake, 7, 100);
    for (unsigned start = 0; start < 3; start++) {
        struct leat_read read = {.from = {end}};
        if (start == 2) { /* from its place */
            const struct leat_segment *last = slot_before(fake->log, end);
            read = (struct leat_read){
                .by_position = true,
                .position = {log_group_of(last->id.v), last->id.v, last->prefix_id.bytes}};
        }
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, next);
        reopen(fake, 0, 0, evicted);
    }
    if (evicted) { /* without a buffer the read asks for one */
        fake_settle(fake);
        struct leat_read read = {.from = {end}, .max_bytes = 1000};
        assert_int_equal(leat_log_read(fake->log, &read), LEAT_OK);
        assert_int_equal(read.rc, LEAT_E_NO_MEMORY);
    }
    free(buffer);
    fake_destroy(fake);
}

/* A look-up by time behind the last segment that is there waits while segments behind it may come. */
static void last_segments_that_may_come_are_not_passed_by_time(void **state)
{
    (void)state;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    for (unsigned follows = 0; follows < 2; follows++) {
        struct fake *fake = log_of(6);
        fake->backfill_follows = follows;
        reopen(fake, 0x70, 1 << 20, false);
        bool done = false;
        struct leat_locate_op op = {
            .what = LEAT_LOCATE_TIME,
            .value = INT64_MAX,
            .read = {.disk_buffer = buffer, .disk_buffer_bytes = BUFFER_BYTES},
            .on_done = on_locate_done,
            .owner = &done};
        leat_err rc = leat_log_locate(fake->log, &op);
        fake_settle(fake);
        if (follows) assert_true(rc == LEAT_E_AGAIN && !done);
        if (follows) leat_log_older_done(fake->log, false);
        fake_settle(fake);
        if (follows) assert_true(done);
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, info_of(fake).next_offset);
        fake_destroy(fake);
    }
    free(buffer);
}

/* A jump is only what the start entry behind it says: a segment lost later on has its name. */
static void loss_behind_a_jump_is_named(void **state)
{
    bool evicted = *state != NULL;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(3);
    reopen(fake, 4, 1 << 20, evicted);
    while (fake->log->next_segment < 8)
        must_append(fake, 50, 100);
    uint64_t lost = log_slot_find(fake->log, 6)->seg->base_offset;
    uint64_t after = log_slot_find(fake->log, 6)->seg->next_offset;
    reopen(fake, 1 << 6, 0, evicted);
    struct leat_read read = {.from = {lost}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next_position.segment, 6);
    assert_int_equal(read.next.v, after);
    free(buffer);
    fake_destroy(fake);
}

/* Two groups between the last segment and the next: who reads the first group does not get records
 * of another, which may be somebody else's. */
static void jump_over_groups_ends_the_group_that_is_read(void **state)
{
    (void)state;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(2 * LEAT_SEGMENTS_PER_GROUP + 2);
    reopen(fake, ~(uint64_t)7, 1 << 20, true);
    must_append(fake, 7, 100);
    struct leat_read read = {.by_position = true, .position = {0, 3, 0}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.iov_count, 0);
    assert_int_equal(read.next_position.group, 2);
    assert_int_equal(read.next_position.segment, 2 * LEAT_SEGMENTS_PER_GROUP + 3);
    free(buffer);
    fake_destroy(fake);
}

/* Goal: a read by position ends with its segment group, though the segment at its place has no further records, or its
 * records were given up: its reader may not own the next group. A search by time goes on. */
static void read_by_position_ends_with_its_group(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX], last = LEAT_SEGMENTS_PER_GROUP - 1;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(LEAT_SEGMENTS_PER_GROUP + 2);
    bases_of(fake, bases);
    reopen(fake, 0, 0, evicted);
    struct log_slot *slot = log_slot_find(fake->log, last);
    uint32_t end = slot->seg->prefix_id.bytes;
    struct leat_read read = {.from = {bases[last]}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    uint32_t first = read.first_position.position;
    for (unsigned given_up = 0; given_up < 2; given_up++) {
        read = (struct leat_read){.by_position = true, .position = {0, last, given_up ? 0 : end}};
        slot->given_up = given_up;
        if (given_up) fake_held_of(fake, slot->seg)->file[first] ^= 1;
        if (given_up && slot->seg->buffer) slot->seg->buffer[first] ^= 1;
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.iov_count, 0);
        assert_int_equal(read.next.v, bases[last + 1]);
        assert_int_equal(read.next_position.group, 1);
        assert_int_equal(read.next_position.segment, last + 1);
        assert_int_equal(read.next_position.position, 0);
    }
    for (uint32_t i = 0; i < last; i++)
        log_slot_at(fake->log, i)->seg->max_timestamp_ms = 0;
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = 1};
    assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
    assert_int_equal(op.offset.v, bases[last + 1]);
    free(buffer);
    fake_destroy(fake);
}

/* An operator gave up what lay behind segment 3: offsets jump, ids do not. */
static void read_in_an_accepted_loss_goes_on_behind_it(void **state)
{
    (void)state;
    uint64_t bases[32];
    struct fake *fake = log_of(4);
    reopen(fake, 0, 1000, false);
    bases_of(fake, bases);
    bases[5] = fake->log->next_offset - 1000;
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    struct leat_read read = {.from = {bases[5] + 10}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.iov_count, 0);
    assert_int_equal(read.next.v, bases[5] + 1000);
    int64_t before = fake_wall(fake);
    fake->now_us += 1000 * 1000;
    must_append(fake, 7, 100);
    for (int file = 0; file < 2; file++) {
        read = (struct leat_read){.from = {bases[5] + 10}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, bases[5] + 1000);
        assert_int_equal(read.next.v, bases[5] + 1007);
        bool done = false;
        struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = before + 500};
        op.read.disk_buffer = buffer;
        op.read.disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024;
        op.on_done = on_locate_done;
        op.owner = &done;
        if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
            while (!done)
                assert_true(fake_deliver(fake));
        assert_int_equal(op.rc, LEAT_OK);
        assert_int_equal(op.offset.v, bases[5] + 1000);
        op.what = LEAT_LOCATE_OFFSET;
        op.value = (int64_t)bases[5] + 1;
        done = false;
        if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
            while (!done)
                assert_true(fake_deliver(fake));
        assert_int_equal(op.offset.v, bases[5] + 1000);
        evict_all(fake);
    }
    free(buffer);
    fake_destroy(fake);
}

/* Readers that try again, some of them for ever, do not fill the node log: each place is told once. */
static void damage_and_holes_are_told_once(void **state)
{
    (void)state;
    uint64_t bases[32];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 4, 0, true); /* segment 2 is not there */
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake_held *bad = &fake->held[0];
    while (bad->seg == NULL || bad->seg->id.v != 3)
        bad++;
    bad->file[bad->seg->prefix_id.bytes / 2] ^= 1;
    node_log_lines = 0;
    leat_node_log_set(node_log_keep, NULL, LEAT_NODE_LOG_ERROR);
    for (int i = 0; i < 5; i++) {
        struct leat_read read = {.from = {bases[2]}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
        uint64_t at = bases[3];
        do {
            read = (struct leat_read){.from = {at}};
            if (read_once(fake, &read, buffer) == LEAT_OK) at = read.next.v;
        } while (read.rc == LEAT_OK && at < bases[4]);
        assert_int_equal(read.rc, LEAT_E_DAMAGED);
    }
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    assert_int_equal(node_log_lines, 2);
    free(buffer);
    fake_destroy(fake);
}

/* A segment is not there any more: its offsets are refused by name, everything else is read. */
static void read_of_a_missing_segment_names_it_and_no_other(void **state)
{
    (void)state;
    uint64_t bases[32];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 4, 0, false);
    void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
    struct leat_read read = {.from = {bases[2] + 5}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next_position.segment, 2);
    assert_int_equal(read.next.v, bases[3]);
    read = (struct leat_read){.by_position = true, .position = {0, 2, 0}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next.v, bases[3]);
    for (uint64_t from = bases[1]; from < bases[6]; from = read.next.v) {
        if (from == bases[2]) from = bases[3];
        read = (struct leat_read){.from = {from}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, from);
    }
    struct leat_locate_op op = {.what = LEAT_LOCATE_EARLIEST};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    assert_int_equal(op.offset.v, 0);
    must_append(fake, 7, 100);
    free(buffer);
    fake_destroy(fake);
}

/* A segment between others comes while its log serves: reads of it wait, and nothing goes over its place. */
static void segment_between_others_comes_and_is_read(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    struct leat_log_hole hole;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(8);
    bases_of(fake, bases);
    fake->keep_lost = fake->backfill_follows = fake->holes = true;
    reopen(fake, 1 << 2 | 1 << 4 | 1 << 5, 0, evicted);
    fake_settle(fake);
    assert_true(leat_log_hole_find(fake->log, UINT64_MAX, &hole));
    assert_int_equal(hole.behind->id.v, 6);
    assert_int_equal(hole.first, 4);
    assert_true(leat_log_hole_find(fake->log, 6, &hole));
    assert_int_equal(hole.behind->id.v, 3);
    assert_int_equal(hole.first, 2);
    assert_false(leat_log_hole_find(fake->log, 3, &hole));
    assert_null(leat_log_held(fake->log, 4));
    unsigned done = 0;
    struct leat_read read = {.from = {bases[4]},
                             .max_bytes = 1,
                             .disk_buffer = buffer,
                             .disk_buffer_bytes = BUFFER_BYTES,
                             .on_done = on_read_counted,
                             .owner = &done};
    leat_err rc = leat_log_read(fake->log, &read);
    fake_settle(fake);
    assert_int_equal(rc, LEAT_E_AGAIN);
    assert_int_equal(done, 0);
    for (unsigned id = 5; id >= 2; id--)
        if (id != 3) assert_int_equal(leat_log_segment_add(fake->log, fake->lost[id]), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(done, 1);
    assert_int_equal(read.rc, LEAT_OK);
    assert_int_equal(read.first.v, bases[4]);
    if (read.pinned) leat_segment_unpin(read.pinned, &fake->post);
    assert_false(leat_log_hole_find(fake->log, UINT64_MAX, &hole));
    leat_log_older_done(fake->log, false);
    leat_log_holes_end(fake->log);
    for (uint64_t from = 0; from < bases[8]; from = read.next.v) {
        read = (struct leat_read){.from = {from}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_int_equal(read.first.v, from);
    }
    free(buffer);
    fake_destroy(fake);
}

/* Retention goes as far as what is missing, which then is missing in front, and not over it; where offsets
 * jumped it does. */
static void retention_does_not_go_over_what_may_come(void **state)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        bool holes = turn > 0, jumped = turn == 2;
        uint64_t bases[SEGMENTS_MAX];
        struct fake *fake = log_of(8);
        (void)state;
        bases_of(fake, bases);
        fake->backfill_follows = fake->holes = holes;
        reopen(fake, 1 << 4, 0, false);
        must_append(fake, 1, 100);
        if (jumped) leat_log_hole_jumped(fake->log, 5);
        leat_log_older_done(fake->log, false);
        uint64_t behind = 0;
        for (unsigned id = 5; id < 9; id++)
            behind += leat_log_held(fake->log, id)->prefix_id.bytes;
        fake->log->options.settings.retention_bytes = (int64_t)behind;
        for (int i = 0; i < 3; i++) {
            leat_log_care(fake->log);
            fake_settle(fake);
        }
        bool over = !holes || jumped;
        struct leat_log_info info = info_of(fake);
        assert_int_equal(info.first_segment, over ? 5 : 4);
        assert_int_equal(info.first_offset, bases[over ? 5 : 4]);
        assert_int_equal(info.missing_segments, over ? 0 : 1);
        fake_destroy(fake);
    }
}

/* It does not know where it ends: no offset is too high for it. */
static void read_past_what_is_there_of_a_waiting_log_is_not_out_of_range(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    uint64_t end = fake->log->next_offset;
    fake_settle(fake);
    struct leat_read read = {.from = {end + 1}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    leat_log_set_state(fake->log, LEAT_LOG_WAITING, "its end is missing");
    read = (struct leat_read){.from = {end + 1}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_LOG_INCOMPLETE);
    read = (struct leat_read){.from = {end}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    read = (struct leat_read){.from = {0}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.first.v, 0);
    free(buffer);
    fake_destroy(fake);
}

/* What is under way of before may come in any order: only from a new beginning on is it in order. */
static void producer_after_an_accepted_loss_begins_anew(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    struct sent sent[4];
    assert_int_equal(append(fake, &sent[0], 1, 10, 7, 0, 0), LEAT_OK);
    fake_settle(fake);
    reopen(fake, UINT64_MAX, 1 << 20, false);
    assert_int_equal(append(fake, &sent[1], 1, 10, 8, 0, 0), LEAT_OK);
    assert_int_equal(append(fake, &sent[2], 1, 10, 7, 0, 2), LEAT_E_UNKNOWN_PRODUCER);
    assert_int_equal(append(fake, &sent[2], 1, 10, 7, 0, 1), LEAT_E_UNKNOWN_PRODUCER);
    assert_int_equal(append(fake, &sent[2], 1, 10, 7, 1, 0), LEAT_OK);
    assert_int_equal(append(fake, &sent[3], 1, 10, 7, 1, 1), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(sent[3].rc, LEAT_OK);
    assert_true(sent[2].append.first_offset < sent[3].append.first_offset);
    fake_destroy(fake);
}

/* Of a start entry with many producers the first block has the fixed part, and not what its checksum
 * covers: what it names as the segment before is not believed until all of it is there. */
static void start_longer_than_a_block_is_believed_only_as_a_whole(void **state)
{
    (void)state;
    enum { PRODUCERS = 100, START_BYTES = 48 + PRODUCERS * 104, CAPACITY = 65536, BLOCK = 4096 };
    static uint8_t segment[CAPACITY], payload[START_BYTES];
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC, .capacity = CAPACITY};
    struct leat_start start = {.base_offset = 7, .previous = {640, 5}, .producer_count = PRODUCERS};
    struct leat_entry_writer writer;
    memcpy(payload, &start, sizeof start);
    leat_entry_writer_init(&writer, segment, sizeof segment);
    (void)leat_entry_append(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header,
                            leat_crc32c(0, &header, sizeof header));
    (void)leat_entry_append(&writer, LEAT_ENTRY_START, 0, 0, payload, sizeof payload,
                            leat_crc32c(0, payload, sizeof payload));
    uint32_t used = leat_entry_seal(&writer, 0).bytes;
    uint32_t end = leat_log_start_end(segment, BLOCK, used);
    assert_true(end > BLOCK && end <= used);
    assert_int_equal(leat_log_start_end(segment, used, used), end);
    assert_int_equal(leat_log_start_end(segment, BLOCK, end - 1), 0); /* it can't be so long */
    struct leat_start found;
    assert_false(leat_log_start_find(segment, BLOCK, &found));
    assert_false(leat_log_start_find(segment, end - 1, &found));
    assert_true(leat_log_start_find(segment, end, &found));
    assert_int_equal(found.previous.bytes, 640);
    uint32_t at = 2 * LEAT_ENTRY_HEADER_BYTES + LEAT_ALIGN_UP((uint32_t)sizeof header, 8u);
    for (uint32_t i = 0; i < sizeof start; i++) {
        segment[at + i] ^= 1;
        assert_false(leat_log_start_find(segment, BLOCK, &found));
        assert_false(leat_log_start_find(segment, used, &found));
        segment[at + i] ^= 1;
    }
}

/* Where a batch begins behind the middle, as a start cuts what it finds damaged there: closed, and no longer. */
static uint32_t cut_in_the_middle(struct leat_segment *seg)
{
    uint32_t at = 0;
    for (;;) {
        const struct leat_entry *entry = (const void *)((const uint8_t *)seg->buffer + at);
        if (entry->type == LEAT_ENTRY_BATCH && at > seg->prefix_id.bytes / 2) {
            seg->next_offset = entry->base_offset;
            break;
        }
        at += leat_entry_bytes(entry->payload_bytes);
    }
    seg->prefix_id.bytes = at;
    return at;
}

/* Of an older segment only a part is left, and the next one is there: no reader goes on there without a word. */
static void segment_of_which_a_part_is_left_is_named(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    fake_settle(fake);
    struct leat_segment *cut = log_slot_find(fake->log, 2)->seg;
    uint32_t end = cut_in_the_middle(cut);
    uint64_t left = cut->next_offset;
    assert_true(bases[2] < left && left < bases[3]);
    reopen(fake, 0, 0, evicted);
    for (uint64_t from = bases[2]; from < left;) {
        struct leat_read read = {.from = {from}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        assert_true(read.next.v > from && read.next.v <= left);
        from = read.next.v;
    }
    for (uint64_t from = left; from < bases[3];
         from += bases[3] - 1 - left) { /* the first and the last */
        struct leat_read read = {.from = {from}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
        assert_int_equal(read.next.v, bases[3]);
        assert_int_equal(read.next_position.segment, 2);
        assert_int_equal(read.next_position.position, end);
        if (from == bases[3] - 1) break;
    }
    struct leat_position place = {0, 2, 0};
    struct leat_read read = {.by_position = true, .position = place};
    while (read.position.segment == 2 && read_once(fake, &read, buffer) == LEAT_OK)
        read = (struct leat_read){.by_position = true, .position = read.next_position};
    assert_int_equal(read.rc, LEAT_E_DAMAGED);
    assert_int_equal(read.next_position.position, end);
    assert_int_equal(read.next.v, bases[3]);
    read = (struct leat_read){.from = {bases[3]}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.first.v, bases[3]);
    free(buffer);
    fake_destroy(fake);
}

int main(void)
{
    void *files = (void *)1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_segment_damaged_is_told_with_the_place_and_the_command),
        cmocka_unit_test(front_that_is_gone_at_a_start_is_named),
        cmocka_unit_test(last_segment_damaged_refuses_for_good_only_where_nobody_else_has_it),
        cmocka_unit_test(tail_given_up_is_jumped_over),
        cmocka_unit_test_prestate(tail_given_up_is_jumped_over, files),
        cmocka_unit_test(offsets_given_up_behind_a_segment_are_jumped_over),
        cmocka_unit_test_prestate(offsets_given_up_behind_a_segment_are_jumped_over, files),
        cmocka_unit_test(last_segments_that_may_come_are_not_passed_by_time),
        cmocka_unit_test(loss_behind_a_jump_is_named),
        cmocka_unit_test_prestate(loss_behind_a_jump_is_named, files),
        cmocka_unit_test(jump_over_groups_ends_the_group_that_is_read),
        cmocka_unit_test(read_by_position_ends_with_its_group),
        cmocka_unit_test_prestate(read_by_position_ends_with_its_group, files),
        cmocka_unit_test(read_in_an_accepted_loss_goes_on_behind_it),
        cmocka_unit_test(damage_and_holes_are_told_once),
        cmocka_unit_test(read_of_a_missing_segment_names_it_and_no_other),
        cmocka_unit_test(segment_between_others_comes_and_is_read),
        cmocka_unit_test_prestate(segment_between_others_comes_and_is_read, files),
        cmocka_unit_test(segment_of_which_a_part_is_left_is_named),
        cmocka_unit_test_prestate(segment_of_which_a_part_is_left_is_named, files),
        cmocka_unit_test(retention_does_not_go_over_what_may_come),
        cmocka_unit_test(producer_after_an_accepted_loss_begins_anew),
        cmocka_unit_test(read_past_what_is_there_of_a_waiting_log_is_not_out_of_range),
        cmocka_unit_test(start_longer_than_a_block_is_believed_only_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
