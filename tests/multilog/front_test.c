/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are not there in front of a log: lost, trimmed, given up, or on their way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "reopen.h"

/* What a reader that begins at the earliest finds of `lost` leading segments. Asked before the log
 * has had a turn: the first to ask waits until it is known. */
static void front_is_named(struct fake *fake, unsigned lost, const uint64_t *bases)
{
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct leat_locate_op op = {.what = LEAT_LOCATE_EARLIEST};
    struct leat_read read = {.from = {0}}, place = {.by_position = true};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(read.next_position.segment, 0);
    assert_int_equal(read.next.v, bases[lost]);
    assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
    assert_int_equal(op.offset.v, 0);
    assert_int_equal(read_once(fake, &place, buffer), LEAT_E_DAMAGED);
    assert_int_equal(place.next.v, bases[lost]);
    read = (struct leat_read){.from = {bases[lost] - 1}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    read = (struct leat_read){.from = {bases[lost]}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_int_equal(read.first.v, bases[lost]);
    struct leat_log_info info = info_of(fake);
    assert_int_equal(info.state, LEAT_LOG_SERVING);
    assert_int_equal(info.first_offset, 0);
    assert_int_equal(info.missing_segments, lost);
    assert_int_equal(info.missing_end, bases[lost]);
    assert_int_equal(leat_log_offsets_lost(fake->log), bases[lost]);
    free(buffer);
}

/* The front is gone. It has a name, after later starts too; the rest is read and written. */
static void front_that_was_lost_is_named_and_the_rest_goes_on(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 7, 0, evicted);
    front_is_named(fake, 3, bases);
    must_append(fake, 7, 100);
    reopen(fake, 0, 0, evicted);
    front_is_named(fake, 3, bases);
    fake_destroy(fake);
}

static void on_skipped(void *arg, struct leat_log *log)
{
    (void)log;
    (*(unsigned *)arg)++;
}

/* An operator gives the lost front up: the log begins behind it, for good. */
static void front_given_up_is_no_part_of_the_log_any_more(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    unsigned told = 0;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 3, 0, evicted);
    fake_settle(fake);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 1);
    for (int start = 0; start < 2; start++) {
        struct leat_log_info info = info_of(fake);
        assert_int_equal(info.missing_segments, 0);
        assert_int_equal(info.first_offset, bases[2]);
        struct leat_read read = {.from = {0}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
        read = (struct leat_read){.from = {bases[2]}};
        assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        reopen(fake, 0, 0, evicted);
        fake_settle(fake);
    }
    /* Nothing is missing: told at once. */
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 2);
    free(buffer);
    fake_destroy(fake);
}

/* Goal: an operator gives up what was named: not what is missing in front while it is on its way, nor where it turns
 * out to be lost while the operator's word is being recorded. */
static void front_that_comes_is_not_given_up(void **state)
{
    (void)state;
    uint64_t bases[SEGMENTS_MAX];
    char words[256];
    unsigned told = 0;
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    fake->held[4].seg->passed_bytes = 50;
    fake->backfill_follows = true;
    reopen(fake, 3, 0, false);
    fake_settle(fake);
    assert_int_equal(info_of(fake).missing_segments, 0);
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_OK);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_turn_end(fake); /* the store is asked to note it */
    assert_int_equal(told, 0);
    leat_log_older_done(fake->log, true);
    fake_settle(fake);
    assert_int_equal(told, 1);
    assert_int_equal(fake->held[4].seg->passed_bytes, 0);
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    assert_int_equal(info_of(fake).missing_segments, 2);
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_E_DAMAGED);
    leat_log_skip_missing(fake->log, on_skipped, &told); /* now it was named */
    fake_settle(fake);
    assert_int_equal(told, 2);
    assert_int_equal(info_of(fake).first_offset, bases[2]);
    fake_destroy(fake);
}

/* Goal: bytes that a start has passed over are named by the log that has their segments, wherever the log got these
 * from, until an operator has seen the bytes. That the operator sees them gives nothing up. */
static void passed_over_is_named_until_it_was_seen(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    unsigned told = 0;
    struct leat_log_passed passed;
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 0);
    fake->held[1].seg->passed_bytes = 100;
    fake->held[2].seg->passed_bytes = 50;
    reopen(fake, 0, 0, evicted);
    fake_settle(fake);
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 150);
    assert_int_equal(passed.segments, 2);
    assert_int_equal(passed.segment, fake->held[2].seg->id.v);
    assert_int_equal(passed.next_offset, fake->held[2].seg->next_offset);
    assert_int_equal(info_of(fake).missing_segments, 0);
    /* That it was seen can't be noted: so it is told on. */
    fake->fail_request_at = fake->requests + 2;
    fake->fail_kinds = 1u << LEAT_STORE_GIVE_UP;
    fake->fail_rc = LEAT_E_DISK;
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 1);
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 50);
    assert_int_equal(fake->held[2].seg->passed_bytes, 50);
    leat_log_skip_missing(fake->log, on_skipped, &told);
    fake_settle(fake);
    assert_int_equal(told, 2);
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 0);
    assert_false(fake->held[1].seg->given_up || fake->held[2].seg->given_up);
    assert_int_equal(read_all(fake, 0, true), fake->log->next_offset);
    fake_destroy(fake);
}

/* Goal: a look while the segment is open does not lose its passed-over bytes: they are named once the segment has
 * closed. */
static void passed_over_of_an_open_segment_is_named_once_it_has_closed(void **state)
{
    struct leat_log_passed passed;
    struct fake *fake = log_of(2);
    struct leat_segment *head = fake->log->head.seg;
    (void)state;
    head->passed_bytes = 1;
    fake->log->passed_look = true;
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 0);
    while (fake->log->head.seg == head)
        must_append(fake, 7, 100);
    fake_settle(fake);
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 1);
    assert_int_equal(passed.segment, head->id.v);
    fake_destroy(fake);
}

/* An application's table of four bytes. */
static unsigned tables_read;
static size_t app_bytes(void *ctx)
{
    (void)ctx;
    return 4;
}
static void app_write(void *ctx, uint8_t *out)
{
    memcpy(out, ctx, 4);
}
static void app_restore(void *ctx, const uint8_t *stored, size_t count)
{
    assert_int_equal(count, 4);
    assert_memory_equal(stored, ctx, 4);
    assert_int_equal(tables_read, 0);
}
static void app_replay(void *ctx, const struct leat_batch *batch)
{
    (void)ctx, (void)batch;
    assert_int_equal(tables_read, 0);
}
static void app_read(void *ctx)
{
    (void)ctx;
    tables_read++;
}

/* Goal: an application hears once that all of its table was read, behind the last of it. */
static void application_hears_that_its_table_is_read(void **state)
{
    (void)state;
    char table[] = "abc";
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake->options.app =
        (struct leat_log_app){table, app_bytes, app_write, app_restore, app_replay, app_read};
    tables_read = 0;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 20; i++)
        must_append(fake, 50, 100);
    assert_int_equal(tables_read, 0); /* of a new log there is none */
    for (int start = 0; start < 2; start++) {
        tables_read = 0;
        reopen(fake, 0, 0, true);
        must_append(fake, 50, 100);
        assert_int_equal(tables_read, 1);
    }
    fake_destroy(fake);
}

/* The last segment's start entry as it lies in the file: `bit` of first_offset flips. */
static void first_offset_flip(struct fake *fake, unsigned bit)
{
    struct leat_segment *seg = log_slot_at(fake->log, fake->log->slot_count - 1)->seg;
    uint8_t *file = fake_held_of(fake, seg)->file;
    const struct leat_entry *header = leat_entry_at(file, seg->prefix_id.bytes, 0);
    uint32_t at = leat_entry_bytes(header->payload_bytes) + LEAT_ENTRY_HEADER_BYTES;
    file[at + offsetof(struct leat_start, first_offset) + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* A flipped bit in the bytes that say where the log begins is damage: a log that believed these bytes would let
 * retention drop earlier records. With few producers, whose table is in the first block, and with many. */
static void begin_that_is_damaged_is_named_and_gives_nothing_up(void **state)
{
    (void)state;
    for (unsigned producers = 0; producers <= 100; producers += 100) {
        for (unsigned bit = 0; bit < 12; bit++) {
            struct sent sent;
            struct fake *fake = log_of(2);
            for (unsigned i = 0; i < producers; i++) {
                assert_int_equal(append(fake, &sent, 1, 10, 1000 + i, 0, 0), LEAT_OK);
                fake_settle(fake);
            }
            uint64_t first = fake->log->next_segment;
            while (fake->log->next_segment == first)
                must_append(fake, 50, 100);
            reopen(fake, 0, 0, true);
            if (bit > 0) first_offset_flip(fake, bit - 1);
            fake_settle(fake);
            leat_log_care(fake->log);
            fake_settle(fake);
            assert_int_equal(info_of(fake).state, bit ? LEAT_LOG_DAMAGED : LEAT_LOG_SERVING);
            assert_int_equal(info_of(fake).first_offset, 0);
            assert_int_equal(log_slot_at(fake->log, 0)->seg->id.v, 0);
            fake_destroy(fake);
        }
    }
}

/* What retention dropped was not lost, whatever lies between the trim entry and the crash. */
static void front_that_was_trimmed_is_not_missed(void **state)
{
    bool evicted = *state != NULL;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(8);
    fake->log->options.settings.retention_bytes = 300 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    uint64_t first = info_of(fake).first_segment;
    assert_true(first > 0 && fake->drops == first);
    for (int start = 0; start < 2; start++) {
        reopen(fake, 0, 0, evicted);
        struct leat_locate_op op = {.what = LEAT_LOCATE_EARLIEST};
        assert_int_equal(locate(fake, &op, buffer), LEAT_OK);
        assert_int_equal(op.position.segment, first);
        fake_settle(fake);
        assert_int_equal(info_of(fake).missing_segments, 0);
        must_append(fake, 1, 100);
    }
    free(buffer);
    fake_destroy(fake);
}

/* The group of a lost front ends where the log goes on, so that whoever reads by groups gets past. */
static void group_that_was_lost_has_ended(void **state)
{
    (void)state;
    struct fake *fake = log_of(LEAT_SEGMENTS_PER_GROUP + 2);
    uint64_t bases[SEGMENTS_MAX], first, end;
    bases_of(fake, bases);
    reopen(fake, (1u << LEAT_SEGMENTS_PER_GROUP) - 1, 0, true);
    fake_settle(fake);
    assert_int_equal(info_of(fake).first_group, 0);
    assert_int_equal(leat_log_group(fake->log, 0, &first, &end), LEAT_OK);
    assert_int_equal(end, bases[LEAT_SEGMENTS_PER_GROUP]);
    assert_int_equal(leat_log_group(fake->log, 1, &first, &end), LEAT_OK);
    assert_int_equal(first, bases[LEAT_SEGMENTS_PER_GROUP]);
    fake_destroy(fake);
}

/* Memory that is refused delays the answer, and a server that stops does not wait for it. */
static void front_unknown_at_the_stop_lets_readers_go(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    reopen(fake, 1, 0, true);
    bool done = false;
    struct leat_read read = {.from = {0}, .on_done = on_read, .owner = &done};
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
    leat_mem_fail_at(1);
    fake_settle(fake);
    leat_mem_fail_at(0);
    assert_false(done);
    leat_log_stop(fake->log, fake_on_end, fake);
    fake_settle(fake);
    assert_true(done && fake->ended);
    assert_int_equal(read.rc, LEAT_E_STARTING);
    fake->ended = false;
    fake_destroy(fake);
}

/* Before it is known where the log begins nothing is given up, not even a segment without records: the records of the
 * segment before are on other nodes. */
static void care_before_the_front_is_known_gives_up_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    struct leat_segment *second = log_slot_at(fake->log, 1)->seg;
    second->next_offset = second->base_offset; /* as if its owner had died before the first */
    fake->backfill_follows = true;
    reopen(fake, 1, 0, true);
    assert_false(leat_log_front_known(fake->log));
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    bool done = false;
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME,
                                .read = {.by_position = true, .position = {9, 9, 9}},
                                .on_done = on_locate_done,
                                .owner = &done};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_E_AGAIN);
    assert_true(op.read.by_time && !op.read.by_position);
    assert_true(op.read.position.segment == 0 && op.read.position.position == 0);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_true(leat_log_front_known(fake->log));
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    assert_int_equal(info_of(fake).first_offset, 0);
    must_append(fake, 1, 100); /* a trim entry would go with it */
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    fake_destroy(fake);
}

static void on_front_read(struct leat_read *read)
{
    assert_false(log_front_is_unknown(read->log));
    *(bool *)read->owner = true;
}

/* What is read of the last segment, or behind the end, is told with where the log begins: that is known first. */
static void read_behind_the_front_waits_until_it_is_known(void **state)
{
    (void)state;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    for (unsigned turn = 0; turn < 4; turn++) {
        struct fake *fake = log_of(6);
        uint64_t last = log_slot_at(fake->log, fake->log->slot_count - 1)->seg->base_offset;
        uint64_t end = fake->log->next_offset;
        reopen(fake, 0, 0, true);
        bool done = false;
        struct leat_read read = {.from = {turn == 0   ? last
                                          : turn == 1 ? end
                                                      : end + 1},
                                 .max_bytes = 1,
                                 .disk_buffer = buffer,
                                 .disk_buffer_bytes = BUFFER_BYTES,
                                 .on_done = on_front_read,
                                 .owner = &done};
        leat_err rc =
            turn == 3 ? leat_log_front_await(fake->log, &read) : leat_log_read(fake->log, &read);
        assert_int_equal(rc, LEAT_E_AGAIN);
        assert_true(leat_log_reads_wait(fake->log));
        fake_settle(fake);
        assert_true(done);
        assert_int_equal(read.rc, turn == 2 ? LEAT_E_OFFSET_OUT_OF_RANGE : LEAT_OK);
        assert_int_equal(read.iov_count > 0, turn == 0);
        assert_int_equal(leat_log_front_await(fake->log, &read), LEAT_OK);
        fake_destroy(fake);
    }
    free(buffer);
}

/* What is missing in front is looked for again when it is read: the read waits for that, at most for
 * so long, and is named as missing only when it was looked for in vain. */
static void read_of_an_older_segment_waits_while_it_is_looked_for(void **state)
{
    (void)state;
    uint64_t bases[SEGMENTS_MAX];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    reopen(fake, 7, 0, false);
    front_is_named(fake, 3, bases);
    unsigned done = 0;
    struct leat_read read = {
        .from = {0}, .max_bytes = 1, .on_done = on_read_counted, .owner = &done};
    leat_log_older_again(fake->log);
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
    assert_true(leat_log_reads_wait(fake->log));
    fake_settle(fake);
    assert_int_equal(done, 0);
    leat_log_reads_expire(fake->log);
    fake_settle(fake);
    assert_int_equal(done, 1);
    assert_int_equal(read.rc, LEAT_E_STARTING);
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN); /* it is asked again */
    leat_log_older_done(fake->log, false);
    fake_settle(fake);
    assert_int_equal(done, 2);
    assert_int_equal(read.rc, LEAT_E_DAMAGED);
    assert_false(leat_log_reads_wait(fake->log));
    fake_destroy(fake);
}

/* Goal: segments that were once looked for in vain are named as missing until they are here, also while they are looked
 * for again. */
static void missing_front_stays_named_while_it_is_looked_for_again(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    char why[128];
    struct fake *fake = log_of(6);
    bases_of(fake, bases);
    fake->keep_lost = fake->backfill_follows = true;
    reopen(fake, 7, 0, evicted);
    fake_settle(fake);
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why),
                     LEAT_OK); /* it comes, as far as is known */
    assert_int_equal(info_of(fake).missing_segments, 0);
    leat_log_older_done(fake->log, false);
    for (unsigned look = 0; look < 2; look++) {
        assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_E_DAMAGED);
        assert_non_null(strstr(why, "segments 0 to 2 with offsets 0 to "));
        assert_int_equal(info_of(fake).missing_segments, 3);
        assert_int_equal(leat_log_offsets_lost(fake->log), bases[3]);
        leat_log_older_again(fake->log);
    }
    for (unsigned id = 3; id-- > 0;)
        assert_int_equal(leat_log_segment_add(fake->log, fake->lost[id]), LEAT_OK);
    assert_int_equal(leat_log_trouble(fake->log, why, sizeof why), LEAT_OK);
    assert_int_equal(leat_log_offsets_lost(fake->log), 0);
    fake_destroy(fake);
}

/* The end was given up, and the front is on other nodes: it is waited for, and goes only when all were
 * asked. What is missing without an operator's word stays missing. */
static void front_of_a_log_given_up_may_be_on_its_way(void **state)
{
    bool evicted = *state != NULL;
    uint64_t bases[SEGMENTS_MAX];
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    for (unsigned turn = 0; turn < 3; turn++) {
        bool accepted = turn == 1; /* here; turn 2: under an owner before this one */
        bool jumped = turn == 2;
        struct fake *fake = log_of(6);
        bases_of(fake, bases);
        fake->backfill_follows = true;
        reopen(fake, 7, accepted ? 1 << 20 : 0, evicted);
        fake_settle(fake);
        assert_int_equal(info_of(fake).first_offset, 0);
        assert_int_equal(leat_log_first_retained(fake->log), 0);
        unsigned done = 0;
        struct leat_read read = {.from = {0},
                                 .max_bytes = 1,
                                 .disk_buffer = buffer,
                                 .disk_buffer_bytes = BUFFER_BYTES,
                                 .on_done = on_read_counted,
                                 .owner = &done};
        assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
        leat_log_front_give_up(fake->log, jumped);
        leat_log_older_done(fake->log, false);
        fake_settle(fake);
        assert_int_equal(done, 1);
        assert_int_equal(read.rc, accepted || jumped ? LEAT_E_OFFSET_OUT_OF_RANGE : LEAT_E_DAMAGED);
        assert_int_equal(info_of(fake).first_offset, accepted || jumped ? bases[3] : 0);
        assert_int_equal(info_of(fake).missing_segments, accepted || jumped ? 0 : 3);
        fake_destroy(fake);
    }
    free(buffer);
}

/* What comes later may hold the time that is asked for: the answer waits for it, and is not an offset behind it.
 * What is lost is passed over. */
static void time_of_an_older_segment_waits_until_it_is_here(void **state)
{
    bool evicted = *state != NULL;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    uint64_t bases[SEGMENTS_MAX];
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->next_segment < 7) {
        fake->wall_offset_ms += 1000;
        must_append(fake, 50, 100);
    }
    bases_of(fake, bases);
    int64_t early = log_slot_at(fake->log, 1)->seg->max_timestamp_ms;
    int64_t late = fake_wall(fake);
    fake->backfill_follows = true;
    reopen(fake, 0x1f, 0, evicted);
    fake_settle(fake);
    bool done[2] = {false, false};
    struct leat_locate_op ops[2] = {{.what = LEAT_LOCATE_TIME, .value = early},
                                    {.what = LEAT_LOCATE_TIME, .value = late}};
    for (unsigned i = 0; i < 2; i++) {
        ops[i].read.disk_buffer = buffer;
        ops[i].read.disk_buffer_bytes = BUFFER_BYTES;
        ops[i].on_done = on_locate_done;
        ops[i].owner = &done[i];
        assert_int_equal(leat_log_locate(fake->log, &ops[i]), LEAT_E_AGAIN);
        fake_settle(fake);
        assert_false(done[i]);
        leat_log_reads_expire(fake->log);
        fake_settle(fake);
        assert_true(done[i]);
        assert_int_equal(ops[i].rc, LEAT_E_STARTING);
    }
    done[0] = false;
    assert_int_equal(leat_log_locate(fake->log, &ops[0]), LEAT_E_AGAIN);
    leat_log_older_done(fake->log, false); /* nobody has them */
    fake_settle(fake);
    assert_true(done[0]);
    assert_int_equal(ops[0].rc, LEAT_OK);
    assert_int_equal(ops[0].offset.v, bases[5]);
    assert_int_equal(locate(fake, &ops[1], buffer), LEAT_OK);
    assert_true(ops[1].offset.v > bases[5]);
    fake_destroy(fake);
    free(buffer);
}

/* What is left in front of a jump comes behind the log's back, too: a reader waits for it, and is not sent on
 * behind the jump before it is known that nothing comes. */
static void older_segments_in_front_of_a_jump_are_waited_for(void **state)
{
    bool evicted = *state != NULL;
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    struct fake *fake = log_of(6);
    reopen(fake, 0, 1 << 20, evicted);
    uint64_t behind = fake->log->next_offset;
    assert_int_equal(leat_log_offsets_lost(fake->log), 1 << 20);
    must_append(fake, 5, 100);
    assert_int_equal(leat_log_offsets_lost(fake->log), 1 << 20);
    fake->backfill_follows = true;
    reopen(fake, 0x7f, 0, evicted);
    fake_settle(fake);
    assert_int_equal(leat_log_offsets_lost(fake->log), 0); /* as far as is known here: they come */
    unsigned done = 0;
    struct leat_read read = {.from = {0},
                             .max_bytes = 1,
                             .disk_buffer = buffer,
                             .disk_buffer_bytes = BUFFER_BYTES,
                             .on_done = on_read_counted,
                             .owner = &done};
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
    fake_settle(fake);
    assert_int_equal(done, 0);
    leat_log_older_done(fake->log, true); /* a node is down */
    fake_settle(fake);
    assert_int_equal(done, 1);
    assert_int_equal(read.rc, LEAT_E_DAMAGED);
    assert_int_equal(read.next.v, behind);
    leat_log_older_again(fake->log);
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_E_AGAIN);
    leat_log_older_done(fake->log, false);
    fake_settle(fake);
    assert_int_equal(done, 2);
    assert_int_equal(read.rc, LEAT_OK);
    assert_int_equal(read.first.v, behind);
    if (read.pinned) leat_segment_unpin(read.pinned, &fake->post);
    fake_destroy(fake);
    free(buffer);
}

/* The last segment is damaged, and the other segments are on their way from other nodes: the damage gives up no earlier
 * segment, neither a segment that comes nor a segment that has not come. */
static void end_that_is_damaged_gives_up_nothing_that_is_on_its_way(void **state)
{
    (void)state;
    struct fake *fake = log_of(4);
    struct leat_segment *older = log_slot_find(fake->log, 2)->seg;
    fake->backfill_follows = true;
    /* What comes is no part of the log when it is made. */
    memmove(fake->log->slots + fake->log->slot_begin + 2,
            fake->log->slots + fake->log->slot_begin + 3,
            (fake->log->slot_count - 3) * sizeof(struct log_slot));
    fake->log->slot_count--;
    reopen(fake, 0x3, 0, true);
    fake->fail_reads = true;
    fake_settle(fake);
    assert_int_equal(info_of(fake).state, LEAT_LOG_DAMAGED);
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    uint64_t drops = fake->drops;
    older->passed_bytes = 7;
    assert_int_equal(leat_log_segment_add(fake->log, older), LEAT_OK);
    struct leat_log_passed passed;
    leat_log_passed_over(fake->log, &passed);
    assert_int_equal(passed.bytes, 7);
    fake_settle(fake);
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(fake->drops, drops);
    assert_ptr_equal(log_slot_at(fake->log, 0)->seg, older);
    assert_int_equal(leat_log_first_retained(fake->log), 0);
    fake_destroy(fake);
}

/* A log that waits for all of its segments does not know its first offset. */
static void log_that_stands_in_calls_no_offset_too_low(void **state)
{
    (void)state;
    struct fake *fake = fake_create(10, LEAT_DURABILITY_MEMORY);
    struct leat_log_tail tail = {.next_segment = 3, .next_offset = 42, .stands_in = true};
    fake_open(fake, NULL, 0, &tail);
    leat_log_set_state(fake->log, LEAT_LOG_WAITING, "its end is elsewhere");
    struct leat_read read = {.from = {39}, .max_bytes = 1};
    assert_int_equal(leat_log_read(fake->log, &read), LEAT_OK);
    assert_int_equal(read.rc, LEAT_E_LOG_INCOMPLETE);
    struct leat_locate_op op = {.what = LEAT_LOCATE_EARLIEST};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    assert_int_equal(op.rc, LEAT_E_LOG_INCOMPLETE);
    fake_destroy(fake);
}

int main(void)
{
    void *files = (void *)1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(front_that_was_lost_is_named_and_the_rest_goes_on),
        cmocka_unit_test_prestate(front_that_was_lost_is_named_and_the_rest_goes_on, files),
        cmocka_unit_test(front_given_up_is_no_part_of_the_log_any_more),
        cmocka_unit_test(front_that_comes_is_not_given_up),
        cmocka_unit_test_prestate(front_given_up_is_no_part_of_the_log_any_more, files),
        cmocka_unit_test(passed_over_is_named_until_it_was_seen),
        cmocka_unit_test(passed_over_of_an_open_segment_is_named_once_it_has_closed),
        cmocka_unit_test(application_hears_that_its_table_is_read),
        cmocka_unit_test_prestate(passed_over_is_named_until_it_was_seen, files),
        cmocka_unit_test(begin_that_is_damaged_is_named_and_gives_nothing_up),
        cmocka_unit_test(front_that_was_trimmed_is_not_missed),
        cmocka_unit_test_prestate(front_that_was_trimmed_is_not_missed, files),
        cmocka_unit_test(group_that_was_lost_has_ended),
        cmocka_unit_test(front_unknown_at_the_stop_lets_readers_go),
        cmocka_unit_test(care_before_the_front_is_known_gives_up_nothing),
        cmocka_unit_test(read_behind_the_front_waits_until_it_is_known),
        cmocka_unit_test(read_of_an_older_segment_waits_while_it_is_looked_for),
        cmocka_unit_test(missing_front_stays_named_while_it_is_looked_for_again),
        cmocka_unit_test_prestate(missing_front_stays_named_while_it_is_looked_for_again, files),
        cmocka_unit_test(front_of_a_log_given_up_may_be_on_its_way),
        cmocka_unit_test_prestate(front_of_a_log_given_up_may_be_on_its_way, files),
        cmocka_unit_test(older_segments_in_front_of_a_jump_are_waited_for),
        cmocka_unit_test_prestate(older_segments_in_front_of_a_jump_are_waited_for, files),
        cmocka_unit_test(time_of_an_older_segment_waits_until_it_is_here),
        cmocka_unit_test_prestate(time_of_an_older_segment_waits_until_it_is_here, files),
        cmocka_unit_test(end_that_is_damaged_gives_up_nothing_that_is_on_its_way),
        cmocka_unit_test(log_that_stands_in_calls_no_offset_too_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
