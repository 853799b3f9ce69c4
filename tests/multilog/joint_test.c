/* SPDX-License-Identifier: Apache-2.0 */
/* Where a segment is missing: what the start entry of the next one says of it, which is read from memory or from a
 * file. And what of a log costs memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "reopen.h"

enum { BLOCK = 4096, MISSING = 1 };

static void *buffer;

static int setup(void **state)
{
    (void)state;
    buffer = aligned_alloc(4096, BUFFER_BYTES);
    memset(buffer, 0, BUFFER_BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(buffer);
    return 0;
}

/* Somebody above the log, whose state is so long. */
static size_t state_bytes;
static size_t app_bytes(void *ctx)
{
    (void)ctx;
    return state_bytes;
}
static void app_write(void *ctx, uint8_t *out)
{
    (void)ctx;
    memset(out, 7, state_bytes);
}
static void app_restore(void *ctx, const uint8_t *of, size_t count)
{
    (void)ctx, (void)of, (void)count;
}
static void app_replay(void *ctx, const struct leat_batch *batch)
{
    (void)ctx, (void)batch;
}
static void app_read(void *ctx)
{
    (void)ctx;
}

static struct fake *log_with(size_t bytes_above, unsigned segments)
{
    struct fake *fake = fake_create(9, LEAT_DURABILITY_MEMORY);
    state_bytes = bytes_above;
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake->options.app =
        (struct leat_log_app){fake, app_bytes, app_write, app_restore, app_replay, app_read};
    fake_open(fake, NULL, 0, NULL);
    while (fake->log->next_segment < segments + 1)
        must_append(fake, 50, 100);
    return fake;
}

/* Segment 1 of five does not come back. */
static struct fake *log_with_a_hole(size_t bytes_above, bool evicted)
{
    struct fake *fake = log_with(bytes_above, 4);
    reopen(fake, 1u << MISSING, 0, evicted);
    fake_settle(fake);
    fake->made_up = true;
    assert_int_equal(log_slot_at(fake->log, 1)->seg->id.v, MISSING + 1);
    assert_int_equal(log_slot_at(fake->log, 1)->joint, LOG_JOINT_UNKNOWN);
    return fake;
}

static struct leat_read of_the_missing(void)
{
    return (struct leat_read){.by_position = true, .position = {0, MISSING, 0}};
}

/* Goal: a start entry is read as far as it goes: when it is longer than a block, when it ends with it, and when the
 * file has less than it says. */
static void start_entry_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    struct fake *fake = log_with_a_hole(0, false);
    struct leat_segment *after = log_slot_at(fake->log, 1)->seg;
    uint32_t end =
        leat_log_start_end(after->buffer, after->prefix_id.bytes, after->prefix_id.bytes);
    assert_in_range(end, 1, BLOCK - 1);
    fake_destroy(fake);
    const struct {
        size_t bytes_above;
        uint64_t files_end;
        unsigned reads;
    } cases[] = {{0, 0, 1}, {BLOCK - end, 0, 1}, {BLOCK - end + 8, 0, 2}, {6000, 5000, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake = log_with_a_hole(cases[i].bytes_above, true);
        struct leat_read read = of_the_missing();
        uint64_t reads = fake->reads_done;
        fake->files_end = cases[i].files_end;
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
        assert_int_equal(fake->reads_done - reads, cases[i].reads);
        assert_int_equal(read.next_position.segment, MISSING);
        assert_int_equal(read.next.v, log_slot_at(fake->log, 1)->seg->base_offset);
        fake->files_end = 0;
        fake_destroy(fake);
    }
}

static leat_err others_have_it(void *owner, const struct leat_segment *seg)
{
    (void)owner;
    assert_int_equal(seg->id.v, MISSING + 1);
    return LEAT_OK;
}

/* Goal: while other nodes are asked for the segment whose start entry can't be read, nobody is told that what lies in
 * front of it is lost. */
static void start_entry_that_is_damaged_says_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_with_a_hole(0, true);
    struct log_slot *after = log_slot_at(fake->log, 1);
    struct leat_read read = of_the_missing();
    fake->log->options.events.on_damaged = others_have_it;
    uint8_t *file = fake_held_of(fake, after->seg)->file;
    uint32_t at = leat_log_start_end(file, BLOCK, after->seg->prefix_id.bytes) - 1;
    file[at] ^= 1;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_STARTING);
    assert_int_equal(after->joint, LOG_JOINT_UNKNOWN);
    file[at] ^= 1;
    assert_ptr_equal(leat_log_repair_begin(fake->log, after->seg->id, after->seg->prefix_id),
                     after->seg);
    assert_true(leat_log_repair_end(fake->log, after->seg->id, LEAT_OK));
    fake_settle(fake);
    read = of_the_missing();
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(after->joint, LOG_JOINT_CHAINED);
    fake_destroy(fake);
}

/* Goal: the bytes in memory are read where there are any, whatever is known of the file; but not while the store may
 * be taking them. */
static void start_entry_is_read_from_memory_where_it_stays(void **state)
{
    (void)state;
    for (unsigned changing = 0; changing < 2; changing++) {
        struct fake *fake = log_with_a_hole(0, false);
        struct log_slot *after = log_slot_at(fake->log, 1);
        struct leat_read read = of_the_missing();
        uint64_t reads = fake->reads_done;
        after->changing = changing;
        if (!changing) after->seg->integrity = LEAT_INTEGRITY_MISSING;
        assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
        assert_int_equal(fake->reads_done - reads, changing);
        assert_int_equal(after->joint, LOG_JOINT_CHAINED);
        after->changing = false;
        fake_destroy(fake);
    }
}

/* Goal: a hole in front of an offset to which a jump might have led is told to operators once a reader has seen that
 * none did. */
static void hole_in_front_of_a_round_offset_is_told_once_it_is_known(void **state)
{
    (void)state;
    char words[256];
    struct fake *fake = log_with_a_hole(0, false);
    struct leat_read read = of_the_missing();
    log_slot_at(fake->log, 1)->seg->base_offset = (uint64_t)1 << 40;
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_OK);
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_DAMAGED);
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_E_DAMAGED);
    fake_destroy(fake);
}

/* Goal: what an earlier read of the same owner met says nothing of where this one begins. */
static void place_within_an_entry_is_refused_whatever_was_read_before(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    struct leat_read read = {.by_position = true, .position = {0, 0, 0}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    assert_true(read.boundary);
    read.position.position = 8;
    assert_int_equal(read_once(fake, &read, buffer), LEAT_E_OFFSET_OUT_OF_RANGE);
    fake_destroy(fake);
}

/* Goal: a read at the log's end finds nothing there yet, by its offset and by its place. */
static void read_at_the_end_finds_nothing(void **state)
{
    (void)state;
    struct fake *fake = log_of(2);
    fake_settle(fake);
    uint64_t next = fake->log->next_segment;
    struct leat_read reads[] = {
        {.from = {info_of(fake).next_offset}},
        {.by_position = true, .position = {log_group_of(next), next, 0}},
    };
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(read_once(fake, &reads[i], buffer), LEAT_OK);
        assert_int_equal(reads[i].iov_count, 0);
    }
    fake_destroy(fake);
}

/* Goal: a reader at the end of a segment's records is not led to the next segment where the segment should have
 * more. */
static void reader_is_not_led_past_records_that_are_not_there(void **state)
{
    (void)state;
    struct fake *fake = log_with(0, 2);
    struct leat_segment *seg = log_slot_at(fake->log, 0)->seg;
    uint64_t end = seg->next_offset;
    for (unsigned lacks = 0; lacks < 2; lacks++) {
        seg->next_offset = end + lacks;
        struct leat_read read = {.by_position = true};
        do {
            struct leat_position from = read.next_position;
            read = (struct leat_read){.by_position = true, .position = from};
            assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
        } while (read.next.v < end);
        assert_int_equal(read.next.v, end);
        assert_int_equal(read.next_position.segment, !lacks);
    }
    seg->next_offset = end;
    fake_destroy(fake);
}

/* Goal: a segment that this node's disk does not take is told to operators, also the first of the log. */
static void first_segment_that_is_refused_is_told(void **state)
{
    (void)state;
    char words[256];
    struct fake *fake = log_with(0, 2);
    log_slot_at(fake->log, 0)->repair = LOG_REPAIR_REFUSED;
    fake->log->damage_look = true;
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_E_DAMAGED);
    assert_non_null(strstr(words, "segment 0 ("));
    assert_non_null(strstr(words, "can't be read here"));
    log_slot_at(fake->log, 0)->repair = LOG_REPAIR_NONE;
    fake_destroy(fake);
}

/* Goal: a log reports a refused segment to no reader if the segment leaves the log, was given up, or lies before the
 * beginning of the log. */
static void refused_segment_that_nobody_reads_is_not_told(void **state)
{
    (void)state;
    char words[256];
    struct fake *fake = log_with(0, 2);
    struct log_slot *slot = log_slot_at(fake->log, 0);
    uint64_t begins = fake->log->first_offset;
    slot->repair = LOG_REPAIR_REFUSED;
    for (unsigned why = 0; why < 3; why++) {
        slot->dropping = why == 0;
        slot->given_up = why == 1;
        fake->log->first_offset = why == 2 ? slot->seg->next_offset : begins;
        fake->log->damage_look = true; /* a walk that finds no damage clears it */
        assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_OK);
    }
    fake->log->first_offset = begins;
    fake->log->damage_look = true;
    assert_int_equal(leat_log_trouble(fake->log, words, sizeof words), LEAT_E_DAMAGED);
    slot->repair = LOG_REPAIR_NONE;
    fake_destroy(fake);
}

/* Goal: the last segment, where it is damaged, and the log begins behind all of its records, behind a jump: it is said
 * to have no record of the log. */
static void damaged_segment_in_front_of_the_log_has_no_record(void **state)
{
    (void)state;
    char words[256];
    struct fake *fake = log_of(2);
    reopen(fake, 0, 1000, true);
    fake_settle(fake);
    fake->made_up = true;
    struct leat_log *log = fake->log;
    struct log_slot *last = log_slot_at(log, log->slot_count - 1);
    leat_segment_damage_found(last->seg);
    last->repair = LOG_REPAIR_LOST;
    log->first_offset = log->trim_offset = log->next_offset;
    log->damage_look = true;
    assert_int_equal(leat_log_trouble(log, words, sizeof words), LEAT_E_DAMAGED);
    assert_non_null(strstr(words, "with no record of the log is damaged"));
    log->first_offset = log->trim_offset = 0;
    fake_destroy(fake);
}

/* ---- memory ---- */

/* Goal: without memory for a long start entry the head stays, and the log rolls a second later, not before. */
static void roll_waits_for_memory(void **state)
{
    (void)state;
    struct fake *fake = log_with(6000, 2);
    struct leat_log *log = fake->log;
    uint64_t head = log->head.seg->id.v;
    fake_settle(fake);
    assert_non_null(log->next); /* all else is there */
    log->roll_wanted = true;
    log_mark_dirty(log);
    leat_mem_fail_at(1);
    fake_turn_end(fake);
    leat_mem_fail_at(0);
    assert_int_equal(log->head.seg->id.v, head);
    fake->now_us += LOG_RESERVE_PAUSE_US - 1;
    log_mark_dirty(log);
    fake_settle(fake);
    assert_int_equal(log->head.seg->id.v, head);
    fake->now_us++;
    log_mark_dirty(log);
    fake_settle(fake);
    assert_int_equal(log->head.seg->id.v, head + 1);
    fake_destroy(fake);
}

/* Goal: a log gives back all memory that it took, also the memory of segments that the log has closed. */
static void log_gives_back_all_its_memory(void **state)
{
    (void)state;
    uint64_t before = 0, after = 0;
    for (unsigned tag = 0; tag < LEAT_MEM_TAGS; tag++)
        before += leat_mem_bytes(tag);
    struct fake *fake = log_of(3);
    fake_settle(fake);
    fake_destroy(fake);
    for (unsigned tag = 0; tag < LEAT_MEM_TAGS; tag++)
        after += leat_mem_bytes(tag);
    assert_int_equal(after, before);
}

/* Goal: of a log without a head, too, as many of the newest bytes stay as its stream keeps, to the byte. */
static void newest_bytes_stay_without_a_head(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct fake *fake = log_of(3);
        reopen(fake, 0, 0, true);
        fake_settle(fake);
        struct leat_log *log = fake->log;
        assert_null(log->head.seg);
        struct leat_stream_settings settings = log->options.settings;
        settings.retention_bytes =
            (int64_t)(log->closed_bytes - log_slot_at(log, 0)->seg->prefix_id.bytes + more);
        leat_log_settings_set(log, &settings);
        log_retain(log);
        assert_int_equal(log_trim_is_pending(log), !more);
        fake_destroy(fake);
    }
}

int main(void)
{
#define JOINT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        JOINT_TEST(start_entry_is_read_as_far_as_it_goes),
        JOINT_TEST(start_entry_that_is_damaged_says_nothing),
        JOINT_TEST(start_entry_is_read_from_memory_where_it_stays),
        JOINT_TEST(hole_in_front_of_a_round_offset_is_told_once_it_is_known),
        JOINT_TEST(place_within_an_entry_is_refused_whatever_was_read_before),
        JOINT_TEST(reader_is_not_led_past_records_that_are_not_there),
        JOINT_TEST(first_segment_that_is_refused_is_told),
        JOINT_TEST(refused_segment_that_nobody_reads_is_not_told),
        JOINT_TEST(read_at_the_end_finds_nothing),
        JOINT_TEST(damaged_segment_in_front_of_the_log_has_no_record),
        JOINT_TEST(roll_waits_for_memory),
        JOINT_TEST(log_gives_back_all_its_memory),
        JOINT_TEST(newest_bytes_stay_without_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
