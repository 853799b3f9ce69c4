/* SPDX-License-Identifier: Apache-2.0 */
/* What a log tells of itself: to whoever asks, in the header of each segment, and to an address with too many
 * producers; and that it leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "poke.h"

static void three(void)
{
    segments(3);
}

/* Segments from this index on get ids that are so much higher. */
static void renumber(uint32_t index, uint64_t by)
{
    for (uint32_t i = index; i < it->slot_count; i++)
        slot(i)->seg->id.v += by;
    it->next_segment += by;
}

static void info_tell(void)
{
    struct leat_log_info i = info_of(fake);
    trace("segments %llu to %llu, groups %llu and %llu more, missing %llu to %llu\n",
          (unsigned long long)i.first_segment, (unsigned long long)i.end_segment,
          (unsigned long long)i.first_group, (unsigned long long)i.group_count,
          (unsigned long long)i.missing_segments, (unsigned long long)i.missing_end);
}

/* Goal: segment groups are counted from where the log begins to its last segment; missing segments at the front are
 * reported unless they are on their way. */
static void groups_and_what_is_missing_are_told(void **state)
{
    (void)state;
    const uint64_t group = LEAT_SEGMENTS_PER_GROUP;
    CASE_AS_IT_IS(three, info_tell);
    CASE(three, info_tell, it->slot_count = 0);
    CASE(three, info_tell, renumber(1, group - 2));
    CASE(three, info_tell, renumber(1, group - 1));
    CASE(three, info_tell, renumber(2, 5 * group));
    CASE(three, info_tell, renumber(0, group), it->first_segment = group);
    CASE(three, info_tell, renumber(0, 4), it->first_segment = 1, slot(0)->seg->base_offset = 30);
    CASE(three, info_tell, renumber(0, 4), it->first_segment = 1, slot(0)->seg->base_offset = 30,
         it->backfill = LOG_BACKFILL_FOLLOWS);
    TRACE_IS("(void)0: segments 0 to 4, groups 0 and 1 more, missing 0 to 0\n"
             "it->slot_count = 0: segments 0 to 0, groups 0 and 0 more, missing 0 to 0\n"
             "renumber(1, group - 2): segments 0 to 18, groups 0 and 2 more, missing 0 to 0\n"
             "renumber(1, group - 1): segments 0 to 19, groups 0 and 2 more, missing 0 to 0\n"
             "renumber(2, 5 * group): segments 0 to 84, groups 0 and 6 more, missing 0 to 0\n"
             "renumber(0, group), it->first_segment = group: segments 16 to 20, groups 1 and 1 "
             "more, missing 0 to 0\n"
             "renumber(0, 4), it->first_segment = 1, slot(0)->seg->base_offset = 30: segments 1 to "
             "8, groups 0 and 1 more, missing 3 to 30\n"
             "renumber(0, 4), it->first_segment = 1, slot(0)->seg->base_offset = 30, "
             "it->backfill = LOG_BACKFILL_FOLLOWS: segments 1 to 8, groups 0 and 1 more, missing 0 "
             "to 0\n");
}

/* Goal: a reader of a lone segment learns from the header of the segment which log it is of, and the name and settings
 * of the stream. */
static void header_of_a_segment_says_whose_it_is(void **state)
{
    (void)state;
    struct fake *made = fake_create(5, LEAT_DURABILITY_MEMORY);
    struct leat_log_options *options = &made->options;
    for (unsigned i = 0; i < sizeof options->cluster_id; i++)
        options->cluster_id[i] = (uint8_t)(200 + i);
    options->ref = (struct leat_log_ref){11, 12, 13};
    options->stream_name = "a stream";
    options->settings.retention_ms = 21;
    options->settings.retention_bytes = 22;
    options->settings.streamlets = 23;
    options->settings.logs = 24;
    options->settings.copies = 3;
    options->incarnation = 31;
    fake_open(made, NULL, 0, NULL);
    must_append(made, 1, 100);
    const struct leat_segment *seg = made->log->head.seg;
    struct {
        struct leat_entry entry;
        struct leat_segment_header header;
        char name[8];
    } found;
    memcpy(&found, seg->buffer, sizeof found);
    assert_int_equal(found.entry.type, LEAT_ENTRY_SEGMENT);
    assert_int_equal(found.entry.payload_bytes, sizeof found.header + 8);
    assert_memory_equal(found.name, "a stream", 8);
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC,
                                         .format_version = LEAT_FORMAT_VERSION,
                                         .name_bytes = 8,
                                         .stream = 11,
                                         .streamlet = 12,
                                         .log = 13,
                                         .epoch = 7,
                                         .owner_incarnation = 31,
                                         .capacity = seg->capacity,
                                         .durability = LEAT_DURABILITY_MEMORY,
                                         .created_ms = found.header.created_ms,
                                         .retention_ms = 21,
                                         .retention_bytes = 22,
                                         .streamlets = 23,
                                         .logs = 24,
                                         .copies = 3,
                                         .segment_bytes_max = LEAT_SEGMENT_BYTES_MAX};
    memcpy(header.cluster_id, options->cluster_id, sizeof header.cluster_id);
    assert_memory_equal(&found.header, &header, sizeof header);
    assert_in_range(header.created_ms, 1, fake_wall(made));
    fake_destroy(made);
}

/* Goal: an address that has as many producers as an address may have is refused by name, and nothing is appended. Known
 * producers of the address go on, and new producers of other addresses come. */
static void address_with_too_many_producers_is_refused_by_name(void **state)
{
    (void)state;
    enum { MAX = 64 };
    struct fake *made = fake_create(5, LEAT_DURABILITY_MEMORY);
    fake_open(made, NULL, 0, NULL);
    must_append(made, 1, 100);
    struct leat_log *log = made->log;
    log->producers.count_max = MAX;
    while (log->producers.slot_mask + 1 < MAX)
        assert_int_equal(leat_producers_prepare(&log->producers), LEAT_OK);
    struct sent sent;
    struct leat_batch batch;
    for (int64_t id = 0; id <= MAX / 2 + 2; id++) {
        struct leat_error error = {0};
        int64_t producer = id == MAX / 2 + 1 ? 0 : id;
        uint32_t total =
            fake_batch(bytes, sizeof bytes, 1, 100, 7000, producer, 0, producer == id ? 0 : 1);
        assert_int_equal(leat_batch_check(bytes, total, &batch, &error), LEAT_OK);
        sent = (struct sent){.append = {.on_acked = on_answer, .owner = &sent}};
        sent.append.address = id == MAX / 2 + 2 ? 8 : 7;
        uint64_t next = log->next_offset;
        leat_err rc = leat_log_append(log, &batch, &sent.append, &error);
        if (id == MAX / 2) {
            assert_int_equal(rc, LEAT_E_TOO_MANY_PRODUCERS);
            assert_string_equal(error.text,
                                "the log remembers 32 producers, at least half of as many as it "
                                "can, and this address has a quarter of that many: it brings no "
                                "more");
            assert_int_equal(log->next_offset, next);
            continue;
        }
        assert_int_equal(rc, LEAT_OK);
        fake_settle(made);
        assert_int_equal(sent.answers, 1);
    }
    fake_destroy(made);
}

static size_t memory_used(void)
{
    size_t sum = 0;
    for (int tag = 0; tag < LEAT_MEM_TAGS; tag++)
        sum += leat_mem_bytes((enum leat_mem_tag)tag);
    return sum;
}

/* Goal: all memory of a log goes with the log, also the memory that the log keeps for its next segment. */
static void log_leaves_no_memory_behind(void **state)
{
    (void)state;
    struct fake *made = fake_create(5, LEAT_DURABILITY_MEMORY);
    size_t before = memory_used();
    fake_open(made, NULL, 0, NULL);
    must_append(made, 1, 100);
    struct leat_log *log = made->log;
    log->next_index = leat_index_create(16384);
    log->old.index = leat_index_create(16384);
    assert_true(leat_disk_read_reserve(&log->warm, LEAT_MEM_BROKER, 4096));
    assert_true(log->next_index && log->old.index);
    leat_log_destroy(&made->log);
    assert_null(made->log);
    assert_int_equal(memory_used(), before);
    fake_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(groups_and_what_is_missing_are_told),
        cmocka_unit_test(header_of_a_segment_says_whose_it_is),
        cmocka_unit_test(address_with_too_many_producers_is_refused_by_name),
        cmocka_unit_test(log_leaves_no_memory_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
