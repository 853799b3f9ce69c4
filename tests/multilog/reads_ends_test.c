/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a read: bytes that are wrong where they lie, the log's end, a start entry longer than a block; and the
 * places that readers come back to. Each condition by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/node_log.h"
#include "poke.h"
#include "wire/message.h"

enum { FIRST_BATCH = 264, SECOND_BATCH = 5840 }; /* where they lie in segments 0 and 1 */

static _Alignas(4096) uint8_t disk_buffer[BUFFER_BYTES];
static struct leat_read reading;
static unsigned answers;

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    const char *text = strstr(line, "log 1/0/0 of s: ");
    trace("\"%s\" ", text ? text + 16 : line);
}

static int setup(void **state)
{
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_WARN);
    return trace_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    return 0;
}

#define ENDS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What a read before left in it says nothing. */
static void reading_begin(void)
{
    memset(&reading, 0, sizeof reading);
    reading.max_bytes = 20000;
    reading.disk_buffer = disk_buffer;
    reading.disk_buffer_bytes = sizeof disk_buffer;
    reading.rc = LEAT_E_INTERNAL;
    answers = 0;
}

/* Offsets 0 to 99, to 199, to 749, to 1299, and a head with 50. */
static void four(void)
{
    segments(4);
    reading_begin();
}

static void gone(uint32_t index)
{
    free(slot(index)->seg->buffer);
    slot(index)->seg->buffer = NULL;
}

static void lacks(uint32_t index)
{
    memmove(slot(index), slot(index) + 1, (it->slot_count - index - 1) * sizeof *it->slots);
    it->slot_count--;
}

static void on_reading(struct leat_read *read)
{
    assert_ptr_equal(read, &reading);
    answers++;
}

static void read_it(void)
{
    reading.on_done = on_reading;
    leat_err rc = leat_log_read(it, &reading);
    while (rc == LEAT_E_AGAIN && answers == 0 && fake->queued) {
        const struct leat_disk_io *io = fake->queue[0].io;
        trace("[%llu+%zu] ", (unsigned long long)io->offset, io->bytes);
        one_done();
    }
    assert_int_equal(answers, rc == LEAT_E_AGAIN);
    trace("%s", leat_err_name(reading.rc));
    if (reading.iov_count)
        trace(" %llu records from %llu", (unsigned long long)reading.record_count,
              (unsigned long long)reading.first.v);
    trace("..%llu at %llu/%llu/%u\n", (unsigned long long)reading.next.v,
          (unsigned long long)reading.next_position.group,
          (unsigned long long)reading.next_position.segment, reading.next_position.position);
}

static void from(uint64_t offset)
{
    reading.from.v = offset;
}

static void from_place(uint64_t segment, uint32_t position)
{
    reading.by_position = true;
    reading.position = (struct leat_position){0, segment, position};
}

static struct leat_entry *entry_at(uint32_t index, uint32_t at)
{
    uint8_t *bytes_of = slot(index)->seg->buffer;
    return (struct leat_entry *)(void *)(bytes_of + at);
}

/* Goal: each end of a read is named: no record there yet, damage, a place that is none. */
static void each_end_of_a_read_is_said(void **state)
{
    (void)state;
    CASE(four, read_it, from(log_acked(it)));
    CASE(four, read_it, from_place(4, it->head.acked_bytes));
    CASE(four, read_it, from_place(1, SECOND_BATCH));
    CASE(four, read_it, from_place(1, SECOND_BATCH), entry_at(1, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from_place(4, it->head.acked_bytes),
         entry_at(4, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from_place(1, 0), entry_at(1, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from_place(4, 0), entry_at(4, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from(1300), entry_at(4, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from_place(1, 0), entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from_place(4, 0), entry_at(4, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from(1300), entry_at(4, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from(100), entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from(100), entry_at(1, SECOND_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from(100), slot(1)->given_up = true,
         entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from(100), slot(1)->given_up = true, gone(2),
         entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE);
    CASE(four, read_it, from_place(1, SECOND_BATCH), slot(1)->given_up = true, gone(2),
         entry_at(1, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from_place(1, 0), slot(1)->given_up = true, gone(2),
         entry_at(1, FIRST_BATCH)->base_offset = 5000);
    CASE(four, read_it, from(100), slot(1)->given_up = true, gone(2),
         entry_at(1, FIRST_BATCH)->base_offset = 5000);
    TRACE_IS(
        "from(log_acked(it)): OK..1350 at 0/4/5840\n"
        "from_place(4, it->head.acked_bytes): OK..1350 at 0/4/5840\n"
        "from_place(1, SECOND_BATCH): OK 50 records from 150..200 at 0/2/0\n"
        "from_place(1, SECOND_BATCH), entry_at(1, FIRST_BATCH)->base_offset = 5000: \"segment 1 is "
        "damaged at 264\" DAMAGED..200 at 0/1/264\n"
        "from_place(4, it->head.acked_bytes), entry_at(4, FIRST_BATCH)->base_offset = 5000: "
        "\"segment 4 is damaged at 264\" DAMAGED..0 at 0/4/264\n"
        "from_place(1, 0), entry_at(1, FIRST_BATCH)->base_offset = 5000: \"segment 1 is damaged at "
        "264\" DAMAGED..200 at 0/1/264\n"
        "from_place(4, 0), entry_at(4, FIRST_BATCH)->base_offset = 5000: \"segment 4 is damaged at "
        "264\" DAMAGED..0 at 0/4/264\n"
        "from(1300), entry_at(4, FIRST_BATCH)->base_offset = 5000: \"segment 4 is damaged at 264\" "
        "DAMAGED..1300 at 0/4/264\n"
        "from_place(1, 0), entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE: \"segment 1 is "
        "damaged at 264\" DAMAGED..200 at 0/1/264\n"
        "from_place(4, 0), entry_at(4, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE: \"segment 4 is "
        "damaged at 264\" DAMAGED..0 at 0/4/264\n"
        "from(1300), entry_at(4, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE: \"segment 4 is damaged at "
        "264\" DAMAGED..1300 at 0/4/264\n"
        "from(100), entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE: \"segment 1 is damaged at "
        "264\" DAMAGED..200 at 0/1/264\n"
        "from(100), entry_at(1, SECOND_BATCH)->type = LEAT_ENTRY_CLOSE: OK 50 records from "
        "100..150 at 0/1/5808\n"
        "from(100), slot(1)->given_up = true, entry_at(1, FIRST_BATCH)->type = LEAT_ENTRY_CLOSE: "
        "OK 150 records from 200..350 at 0/2/16960\n"
        "from(100), slot(1)->given_up = true, gone(2), entry_at(1, FIRST_BATCH)->type = "
        "LEAT_ENTRY_CLOSE: [53248+12288] [0+65536] OK 150 records from 200..350 at 0/2/16960\n"
        "from_place(1, SECOND_BATCH), slot(1)->given_up = true, gone(2), entry_at(1, "
        "FIRST_BATCH)->base_offset = 5000: [0+65536] OK 150 records from 200..350 at 0/2/16960\n"
        "from_place(1, 0), slot(1)->given_up = true, gone(2), entry_at(1, "
        "FIRST_BATCH)->base_offset = 5000: [0+65536] OK 150 records from 200..350 at 0/2/16960\n"
        "from(100), slot(1)->given_up = true, gone(2), entry_at(1, FIRST_BATCH)->base_offset = "
        "5000: [53248+12288] [0+65536] OK 150 records from 200..350 at 0/2/16960\n");
}

static void hibernated(void)
{
    struct leat_segment *head = slot(4)->seg;
    head->prefix_id.bytes = it->head.acked_bytes;
    head->next_offset = it->next_offset;
}

/* Goal: a head that was hibernated, and goes on, ends nowhere: a reader at its end stays there, and does not go on in
 * the next segment. */
static void end_of_a_head_that_was_hibernated_is_no_segments_end(void **state)
{
    (void)state;
    CASE(four, read_it, hibernated(), from_place(4, it->head.acked_bytes));
    CASE(four, read_it, hibernated(), from_place(4, 0));
    CASE(four, read_it, hibernated(), from(1300));
    CASE(four, read_it, hibernated(), from(1350));
    TRACE_IS("hibernated(), from_place(4, it->head.acked_bytes): OK..1350 at 0/4/5840\n"
             "hibernated(), from_place(4, 0): OK 50 records from 1300..1350 at 0/4/5808\n"
             "hibernated(), from(1300): OK 50 records from 1300..1350 at 0/4/5808\n"
             "hibernated(), from(1350): OK..1350 at 0/4/5840\n");
}

/* ---- a start entry longer than a block ---- */

/* That segment's file begins with the state of so many producers, and names such a predecessor. */
static void starts_with(uint32_t index, uint32_t producers, uint32_t previous_bytes)
{
    static uint8_t payload[16384];
    struct leat_segment *seg = slot(index)->seg;
    struct leat_entry_writer writer;
    struct leat_segment_header header = {.magic = LEAT_SEGMENT_MAGIC, .capacity = seg->capacity};
    struct leat_start start = {.base_offset = seg->base_offset,
                               .previous = {previous_bytes, 5},
                               .producer_count = producers};
    uint32_t count = (uint32_t)(sizeof start + producers * sizeof(struct leat_producer_state));
    assert_in_range(count, sizeof start, sizeof payload);
    memset(payload, 0, sizeof payload);
    memcpy(payload, &start, sizeof start);
    leat_entry_writer_init(&writer, fake_held_of(fake, seg)->file, seg->capacity);
    (void)leat_entry_append(&writer, LEAT_ENTRY_SEGMENT, 0, 0, &header, sizeof header,
                            leat_crc32c(0, &header, sizeof header));
    (void)leat_entry_append(&writer, LEAT_ENTRY_START, 0, 0, payload, count,
                            leat_crc32c(0, payload, count));
    slot(index)->joint = LOG_JOINT_UNKNOWN;
}

static void start_flips(uint32_t index, uint32_t at)
{
    fake_held_of(fake, slot(index)->seg)->file[at] ^= 1;
}

static void joint_tell(void)
{
    read_it();
    trace("   joint %u\n", (unsigned)slot(1)->joint);
}

/* Goal: whether an operator gave up what is missing is said by all of the start entry behind it, however long it is;
 * and by none that is damaged. */
static void start_longer_than_a_block_is_read_whole(void **state)
{
    (void)state;
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 3, 0), from(100));
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 3, 640), from(100));
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 100, 0), from(100));
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 100, 640), from(100));
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 100, 0), start_flips(1, 9000),
         from(100));
    CASE(four, joint_tell, lacks(1), gone(1), starts_with(1, 3, 0), start_flips(1, 200), from(100));
    TRACE_IS(
        "lacks(1), gone(1), starts_with(1, 3, 0), from(100): [0+4096] [53248+12288] [0+65536] "
        "\"segment 2 is damaged at 536\" DAMAGED..750 at 0/2/536\n"
        "   joint 2\n"
        "lacks(1), gone(1), starts_with(1, 3, 640), from(100): [0+4096] \"segment 1 with "
        "offsets 100 to 199 is missing\" DAMAGED..200 at 0/1/0\n"
        "   joint 1\n"
        "lacks(1), gone(1), starts_with(1, 100, 0), from(100): [0+4096] [0+12288] [53248+12288] "
        "[0+65536] \"segment 2 is damaged at 10624\" DAMAGED..750 at 0/2/10624\n"
        "   joint 2\n"
        "lacks(1), gone(1), starts_with(1, 100, 640), from(100): [0+4096] [0+12288] \"segment 1 "
        "with offsets 100 to 199 is missing\" DAMAGED..200 at 0/1/0\n"
        "   joint 1\n"
        "lacks(1), gone(1), starts_with(1, 100, 0), start_flips(1, 9000), from(100): [0+4096] "
        "[0+12288] \"segment 1 with offsets 100 to 199 is missing\" DAMAGED..200 at 0/1/0\n"
        "   joint 1\n"
        "lacks(1), gone(1), starts_with(1, 3, 0), start_flips(1, 200), from(100): [0+4096] "
        "\"segment 1 with offsets 100 to 199 is missing\" DAMAGED..200 at 0/1/0\n"
        "   joint 1\n");
}

/* ---- places that readers come back to ---- */

static void hints_tell(void)
{
    trace("\n");
    for (unsigned i = 0; i < LOG_HINTS; i++)
        if (it->hints[i].position)
            trace("  %u: s%llu %llu at %u\n", i, (unsigned long long)it->hints[i].segment,
                  (unsigned long long)it->hints[i].offset, it->hints[i].position);
}

static void read_again(uint64_t offset, uint32_t most)
{
    reading_begin();
    reading.from.v = offset;
    reading.max_bytes = most;
    assert_int_equal(leat_log_read(it, &reading), LEAT_OK);
    assert_int_equal(reading.rc, LEAT_OK);
    if (reading.pinned) leat_segment_unpin(reading.pinned, &fake->post);
}

/* Goal: where a read ended is noted, once for each reader that moves on; the oldest of too many gives way. */
static void place_of_a_reader_is_noted_once(void **state)
{
    (void)state;
    CASE(four, hints_tell, read_again(200, 1));
    CASE(four, hints_tell, read_again(200, 1), read_again(250, 1));
    CASE(four, hints_tell, read_again(200, 1), read_again(300, 1));
    CASE(four, hints_tell, read_again(200, 20000), read_again(750, 1));
    CASE(four, hints_tell, read_again(log_acked(it), 1));
    CASE(four, hints_tell, for (unsigned i = 0; i <= LOG_HINTS; i++) read_again(750 + 100 * i, 1));
    TRACE_IS("read_again(200, 1): \n"
             "  0: s2 250 at 5808\n"
             "read_again(200, 1), read_again(250, 1): \n"
             "  0: s2 300 at 11384\n"
             "read_again(200, 1), read_again(300, 1): \n"
             "  0: s2 250 at 5808\n"
             "  1: s2 350 at 16960\n"
             "read_again(200, 20000), read_again(750, 1): \n"
             "  0: s2 350 at 16960\n"
             "  1: s3 800 at 5808\n"
             "read_again(log_acked(it), 1): \n"
             "for (unsigned i = 0; i <= LOG_HINTS; i++) read_again(750 + 100 * i, 1): \n"
             "  0: s3 1200 at 50416\n"
             "  1: s3 900 at 16960\n"
             "  2: s3 1000 at 28112\n"
             "  3: s3 1100 at 39264\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENDS_TEST(each_end_of_a_read_is_said),
        ENDS_TEST(end_of_a_head_that_was_hibernated_is_no_segments_end),
        ENDS_TEST(start_longer_than_a_block_is_read_whole),
        ENDS_TEST(place_of_a_reader_is_noted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
