/* SPDX-License-Identifier: Apache-2.0 */
/* Where a read or a look-up ends up: from memory, from files, where something is missing; each condition by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/node_log.h"
#include "poke.h"
#include "wire/message.h"

static _Alignas(4096) uint8_t disk_buffer[BUFFER_BYTES];
static struct leat_read reading;
static struct leat_locate_op looking;
static bool is_done;

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

#define READS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Offsets 0 to 99, to 199, to 749, to 1299, and a head. */
static void four(void)
{
    segments(4);
    memset(&reading, 0, sizeof reading);
    memset(&looking, 0, sizeof looking);
    reading.max_bytes = looking.read.max_bytes = 20000;
    reading.disk_buffer = looking.read.disk_buffer = disk_buffer;
    reading.disk_buffer_bytes = looking.read.disk_buffer_bytes = sizeof disk_buffer;
    is_done = false;
}

static void gone(uint32_t index)
{
    free(slot(index)->seg->buffer);
    slot(index)->seg->buffer = NULL;
}

/* Not here: its place in the table either. */
static void lacks(uint32_t index)
{
    memmove(slot(index), slot(index) + 1, (it->slot_count - index - 1) * sizeof *it->slots);
    it->slot_count--;
}

static void renumber(uint32_t index, uint64_t by)
{
    for (uint32_t i = index; i < it->slot_count; i++)
        slot(i)->seg->id.v += by;
    it->next_segment += by;
}

static void position_tell(struct leat_position place)
{
    trace("%llu/%llu/%u", (unsigned long long)place.group, (unsigned long long)place.segment,
          place.position);
}

static void on_reading(struct leat_read *read)
{
    assert_false(is_done);
    assert_ptr_equal(read, &reading);
    is_done = true;
}

static void on_looking(struct leat_locate_op *op)
{
    assert_false(is_done);
    assert_ptr_equal(op, &looking);
    is_done = true;
}

/* What it reads of files meanwhile. */
static void follow(leat_err rc)
{
    while (rc == LEAT_E_AGAIN && !is_done && fake->queued) {
        const struct leat_disk_io *io = fake->queue[0].io;
        assert_non_null(io);
        trace("[%u of %llu+%zu] ", it->reads_in_flight, (unsigned long long)io->offset, io->bytes);
        one_done();
    }
}

static void read_tell(void)
{
    trace("%s", leat_err_name(reading.rc));
    if (reading.iov_count) {
        trace(" %u of %llu records %llu@", reading.iov_count,
              (unsigned long long)reading.record_count, (unsigned long long)reading.first.v);
        position_tell(reading.first_position);
    }
    trace("..%llu@", (unsigned long long)reading.next.v);
    position_tell(reading.next_position);
    trace("%s%s\n", reading.pinned ? " pinned" : "", reading.full ? " full" : "");
}

static void read_it(void)
{
    reading.on_done = on_reading;
    leat_err rc = leat_log_read(it, &reading);
    follow(rc);
    if (rc == LEAT_E_AGAIN && !is_done)
        trace("waits, %s\n", leat_log_reads_wait(it) ? "in line" : "nowhere");
    else
        read_tell();
    if (!leat_list_empty(&reading.link)) leat_list_remove(&reading.link);
    leat_list_init(&it->stalled_reads);
}

static void from(uint64_t offset)
{
    reading.from.v = offset;
}

static void from_place(uint64_t group, uint64_t segment, uint32_t position)
{
    reading.by_position = true;
    reading.position = (struct leat_position){group, segment, position};
}

static void offset_leads_to_its_batch_or_is_refused(void **state)
{
    (void)state;
    CASE(four, read_it, from(0));
    CASE(four, read_it, from(99));
    CASE(four, read_it, from(100));
    CASE(four, read_it, from(749), reading.max_bytes = 1);
    CASE(four, read_it, from(0), reading.max_bytes = 1, reading.strict = true);
    CASE(four, read_it, from(log_acked(it) - 1));
    CASE(four, read_it, from(log_acked(it)));
    CASE(four, read_it, from(log_acked(it) + 1));
    CASE(four, read_it, from(log_acked(it) + 1), it->state = LEAT_LOG_WAITING);
    CASE(four, read_it, from(50), it->first_offset = 50);
    CASE(four, read_it, from(49), it->first_offset = 50);
    CASE(four, read_it, from(49), it->first_offset = 50, it->state = LEAT_LOG_WAITING);
    CASE(four, read_it, from(49), it->first_offset = 50, it->state = LEAT_LOG_WAITING,
         it->slot_count = 0);
    TRACE_IS(
        "from(0): OK 2 of 100 records 0@0/0/264..100@0/1/0 pinned\n"
        "from(99): OK 1 of 50 records 50@0/0/5840..100@0/1/0 pinned\n"
        "from(100): OK 2 of 100 records 100@0/1/264..200@0/2/0 pinned\n"
        "from(749), reading.max_bytes = 1: OK 1 of 50 records 700@0/2/56024..750@0/3/0 pinned\n"
        "from(0), reading.max_bytes = 1, reading.strict = true: OK..0@0/0/0 full\n"
        "from(log_acked(it) - 1): OK 1 of 50 records 1300@0/4/264..1350@0/4/5808 pinned\n"
        "from(log_acked(it)): OK..1350@0/4/5840\n"
        "from(log_acked(it) + 1): OFFSET_OUT_OF_RANGE..1351@0/0/0\n"
        "from(log_acked(it) + 1), it->state = LEAT_LOG_WAITING: LOG_INCOMPLETE..1351@0/0/0\n"
        "from(50), it->first_offset = 50: OK 1 of 50 records 50@0/0/5840..100@0/1/0 pinned\n"
        "from(49), it->first_offset = 50: OFFSET_OUT_OF_RANGE..49@0/0/0\n"
        "from(49), it->first_offset = 50, it->state = LEAT_LOG_WAITING: "
        "OFFSET_OUT_OF_RANGE..49@0/0/0\n"
        "from(49), it->first_offset = 50, it->state = LEAT_LOG_WAITING, it->slot_count = 0: "
        "LOG_INCOMPLETE..49@0/0/0\n");
}

static void place_leads_to_its_batch_or_is_refused(void **state)
{
    (void)state;
    CASE(four, read_it, from_place(0, 0, 0));
    CASE(four, read_it, from_place(0, 3, 0));
    CASE(four, read_it, from_place(0, 4, 0));
    CASE(four, read_it, from_place(0, 4, it->head.acked_bytes));
    CASE(four, read_it, from_place(0, 4, it->head.acked_bytes + 8));
    CASE(four, read_it, from_place(0, 3, slot(3)->seg->prefix_id.bytes));
    CASE(four, read_it, from_place(0, 3, slot(3)->seg->prefix_id.bytes + 8));
    CASE(four, read_it, from_place(0, 1, 8));
    CASE(four, read_it, from_place(0, 5, 0));
    CASE(four, read_it, from_place(0, 5, 8));
    CASE(four, read_it, from_place(0, 6, 0));
    CASE(four, read_it, from_place(1, 1, 0));
    CASE(four, read_it, from_place(0, 0, 0), it->first_segment = 1);
    CASE(four, read_it, from_place(0, 1, 0), it->first_segment = 1);
    CASE(four, read_it, from_place(0, 4, 0), it->slot_count = 0);
    TRACE_IS(
        "from_place(0, 0, 0): OK 2 of 100 records 0@0/0/264..100@0/1/0 pinned\n"
        "from_place(0, 3, 0): OK 3 of 150 records 750@0/3/264..900@0/3/16960 pinned\n"
        "from_place(0, 4, 0): OK 1 of 50 records 1300@0/4/264..1350@0/4/5808 pinned\n"
        "from_place(0, 4, it->head.acked_bytes): OK..1350@0/4/5840\n"
        "from_place(0, 4, it->head.acked_bytes + 8): OFFSET_OUT_OF_RANGE..0@0/4/5848\n"
        "from_place(0, 3, slot(3)->seg->prefix_id.bytes): OK 1 of 50 records "
        "1300@0/4/264..1350@0/4/5808 pinned\n"
        "from_place(0, 3, slot(3)->seg->prefix_id.bytes + 8): OFFSET_OUT_OF_RANGE..0@0/3/61720\n"
        "from_place(0, 1, 8): OFFSET_OUT_OF_RANGE..0@0/1/8\n"
        "from_place(0, 5, 0): OK..1350@0/5/0\n"
        "from_place(0, 5, 8): OFFSET_OUT_OF_RANGE..0@0/5/8\n"
        "from_place(0, 6, 0): OFFSET_OUT_OF_RANGE..0@0/6/0\n"
        "from_place(1, 1, 0): OFFSET_OUT_OF_RANGE..0@1/1/0\n"
        "from_place(0, 0, 0), it->first_segment = 1: OFFSET_OUT_OF_RANGE..0@0/0/0\n"
        "from_place(0, 1, 0), it->first_segment = 1: OK 2 of 100 records "
        "100@0/1/264..200@0/2/0 pinned\n"
        "from_place(0, 4, 0), it->slot_count = 0: OFFSET_OUT_OF_RANGE..0@0/4/0\n");
}

static void log_that_ends_answers_no_reads(void **state)
{
    (void)state;
    CASE(four, read_it, from(0), it->ending = LOG_DELETING);
    CASE(four, read_it, from(0), it->ending = LOG_RELEASING);
    CASE(four, read_it, from(0), it->ending = LOG_STOPPING);
    CASE(four, read_it, from(0), it->restored = LOG_FRONT_UNKNOWN);
    CASE(four, read_it, from(0), it->restored = LOG_FRONT_UNKNOWN, it->ending = LOG_STOPPING);
    CASE(four, read_it, from(0), it->restored = LOG_FRONT_UNKNOWN, it->reads_expire = true);
    TRACE_IS(
        "from(0), it->ending = LOG_DELETING: UNKNOWN_STREAM..0@0/0/0\n"
        "from(0), it->ending = LOG_RELEASING: NOT_OWNER..0@0/0/0\n"
        "from(0), it->ending = LOG_STOPPING: OK 2 of 100 records 0@0/0/264..100@0/1/0 pinned\n"
        "from(0), it->restored = LOG_FRONT_UNKNOWN: waits, in line\n"
        "from(0), it->restored = LOG_FRONT_UNKNOWN, it->ending = LOG_STOPPING: STARTING..0@0/0/0\n"
        "from(0), it->restored = LOG_FRONT_UNKNOWN, it->reads_expire = true: STARTING..0@0/0/0\n");
}

static void buffer_that_is_on_its_way_out_is_not_read(void **state)
{
    (void)state;
    CASE(four, read_it, from(100), slot(1)->changing = true);
    CASE(four, read_it, from(100), slot(1)->evicting = true);
    CASE(four, read_it, from(log_acked(it) - 1), it->hibernating = LOG_HIBERNATING);
    CASE(four, read_it, from(100), it->hibernating = LOG_HIBERNATING);
    CASE(four, read_it, from(100), slot(1)->repair = LOG_REPAIR_SOUGHT);
    CASE(four, read_it, from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING);
    TRACE_IS("from(100), slot(1)->changing = true: [1 of 0+12288] OK 2 of 100 records "
             "100@0/1/264..200@0/2/0\n"
             "from(100), slot(1)->evicting = true: [1 of 0+12288] OK 2 of 100 records "
             "100@0/1/264..200@0/2/0\n"
             "from(log_acked(it) - 1), it->hibernating = LOG_HIBERNATING: waits, in line\n"
             "from(100), it->hibernating = LOG_HIBERNATING: OK 2 of 100 records "
             "100@0/1/264..200@0/2/0 pinned\n"
             "from(100), slot(1)->repair = LOG_REPAIR_SOUGHT: OK 2 of 100 records "
             "100@0/1/264..200@0/2/0 "
             "pinned\n"
             "from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING: OK 2 of 100 records "
             "100@0/1/264..200@0/2/0 "
             "pinned\n");
}

static void file_is_read_in_windows(void **state)
{
    (void)state;
    CASE(four, read_it, gone(1), from(100));
    CASE(four, read_it, gone(1), from(199));
    CASE(four, read_it, gone(1), from_place(0, 1, 0));
    CASE(four, read_it, gone(2), from(700));
    CASE(four, read_it, gone(2), from(200), reading.max_bytes = 1);
    CASE(four, read_it, gone(2), from_place(0, 2, 0), reading.max_bytes = 1);
    CASE(four, read_it, gone(1), from(100), reading.disk_buffer = NULL);
    CASE(four, read_it, gone(1), from(100), fake->fail_reads = true);
    CASE(four, read_it, gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT);
    CASE(four, read_it, gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT,
         reading.disk_buffer = NULL);
    CASE(four, read_it, gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT,
         reading.disk_buffer = NULL, slot(1)->repair = LOG_REPAIR_REFUSED);
    CASE(four, read_it, gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT,
         reading.disk_buffer = NULL, it->ending = LOG_STOPPING);
    CASE(four, read_it, gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT,
         reading.disk_buffer = NULL, it->reads_expire = true);
    CASE(four, read_it, gone(1), from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING);
    CASE(four, read_it, gone(1), from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING,
         slot(1)->given_up = true);
    TRACE_IS(
        "gone(1), from(100): [1 of 0+12288] OK 2 of 100 records 100@0/1/264..200@0/2/0\n"
        "gone(1), from(199): [1 of 0+12288] OK 1 of 50 records 150@0/1/5840..200@0/2/0\n"
        "gone(1), from_place(0, 1, 0): [1 of 0+12288] OK 2 of 100 records 100@0/1/264..200@0/2/0\n"
        "gone(2), from(700): [1 of 53248+12288] [1 of 32768+32768] OK 1 of 50 records "
        "700@0/2/56024..750@0/3/0\n"
        "gone(2), from(200), reading.max_bytes = 1: [1 of 53248+12288] [1 of 0+53248] OK 1 of 50 "
        "records 200@0/2/264..250@0/2/5808\n"
        "gone(2), from_place(0, 2, 0), reading.max_bytes = 1: [1 of 0+53248] OK 1 of 50 records "
        "200@0/2/264..250@0/2/5808\n"
        "gone(1), from(100), reading.disk_buffer = NULL: NO_MEMORY..100@0/0/0\n"
        "gone(1), from(100), fake->fail_reads = true: [1 of 0+12288] DISK..100@0/0/0\n"
        "gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT: STARTING..100@0/0/0\n"
        "gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT, reading.disk_buffer = NULL: "
        "waits, "
        "in line\n"
        "gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT, reading.disk_buffer = NULL, "
        "slot(1)->repair = LOG_REPAIR_REFUSED: STARTING..100@0/0/0\n"
        "gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT, reading.disk_buffer = NULL, "
        "it->ending = LOG_STOPPING: STARTING..100@0/0/0\n"
        "gone(1), from(100), slot(1)->repair = LOG_REPAIR_SOUGHT, reading.disk_buffer = NULL, "
        "it->reads_expire "
        "= true: STARTING..100@0/0/0\n"
        "gone(1), from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING: \"segment 1 is "
        "damaged at 0\" "
        "DAMAGED..200@0/1/0\n"
        "gone(1), from(100), slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING, slot(1)->given_up = "
        "true: OK 3 of 150 "
        "records 200@0/2/264..350@0/2/16960 pinned\n");
}

static void hole_is_named_unless_it_was_given_up(void **state)
{
    (void)state;
    CASE(four, read_it, lacks(1), from(100));
    CASE(four, read_it, lacks(1), from(100), slot(1)->hole_told = true);
    CASE(four, read_it, lacks(1), from(100), slot(1)->joint = LOG_JOINT_JUMPED);
    CASE(four, read_it, lacks(1), from(100), slot(1)->front_given_up = true);
    CASE(four, read_it, lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS);
    CASE(four, read_it, lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS,
         it->ending = LOG_STOPPING);
    CASE(four, read_it, lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS,
         it->reads_expire = true);
    CASE(four, read_it, lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS,
         slot(1)->joint = LOG_JOINT_JUMPED);
    CASE(four, read_it, lacks(1), from_place(0, 1, 0));
    CASE(four, read_it, lacks(1), from_place(0, 1, 8));
    CASE(four, read_it, lacks(1), from_place(0, 1, 0), slot(1)->joint = LOG_JOINT_JUMPED);
    CASE(four, read_it, lacks(0), from(0));
    CASE(four, read_it, lacks(0), from_place(0, 0, 0));
    CASE(four, read_it, lacks(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN);
    CASE(four, read_it, lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN);
    CASE(four, read_it, lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN,
         reading.disk_buffer = NULL);
    CASE(four, read_it, lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN,
         slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING);
    TRACE_IS(
        "lacks(1), from(100): \"segment 1 with offsets 100 to 199 is missing\" "
        "DAMAGED..200@0/1/0\n"
        "lacks(1), from(100), slot(1)->hole_told = true: DAMAGED..200@0/1/0\n"
        "lacks(1), from(100), slot(1)->joint = LOG_JOINT_JUMPED: OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n"
        "lacks(1), from(100), slot(1)->front_given_up = true: OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n"
        "lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS: waits, in line\n"
        "lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS, it->ending = LOG_STOPPING: "
        "STARTING..100@0/0/0\n"
        "lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS, it->reads_expire = true: "
        "STARTING..100@0/0/0\n"
        "lacks(1), from(100), it->backfill = LOG_BACKFILL_FOLLOWS, slot(1)->joint = "
        "LOG_JOINT_JUMPED: "
        "waits, "
        "in line\n"
        "lacks(1), from_place(0, 1, 0): \"segment 1 with offsets 100 to 199 is missing\" "
        "DAMAGED..200@0/1/0\n"
        "lacks(1), from_place(0, 1, 8): \"segment 1 with offsets 100 to 199 is missing\" "
        "DAMAGED..200@0/1/0\n"
        "lacks(1), from_place(0, 1, 0), slot(1)->joint = LOG_JOINT_JUMPED: OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n"
        "lacks(0), from(0): \"segment 0 with offsets 0 to 99 is missing\" "
        "DAMAGED..100@0/0/0\n"
        "lacks(0), from_place(0, 0, 0): \"segment 0 with offsets 0 to 99 is missing\" "
        "DAMAGED..100@0/0/0\n"
        "lacks(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN: \"segment 1 with offsets "
        "100 to 199 is missing\" DAMAGED..200@0/1/0\n"
        "lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN: [1 of 0+4096] "
        "\"segment 1 with offsets 100 to 199 is missing\" DAMAGED..200@0/1/0\n"
        "lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN, reading.disk_buffer = "
        "NULL: NO_MEMORY..100@0/0/0\n"
        "lacks(1), gone(1), from(100), slot(1)->joint = LOG_JOINT_UNKNOWN, slot(1)->seg->integrity "
        "= LEAT_INTEGRITY_MISSING: \"segment 1 with offsets 100 to 199 is missing\" "
        "DAMAGED..200@0/1/0\n");
}

static void hole_over_groups_ends_what_is_read(void **state)
{
    (void)state;
    CASE(four, read_it, renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(0, 2, 0));
    CASE(four, read_it, renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(1, 20, 0));
    CASE(four, read_it, renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(1, 22, 0));
    CASE(four, read_it, renumber(2, 20), from_place(0, 2, 0));
    CASE(four, read_it, renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from(200));
    CASE(four, read_it, renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, lacks(1), from(100));
    TRACE_IS(
        "renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(0, 2, 0): OK..200@1/22/0\n"
        "renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(1, 20, 0): OK 3 of 150 "
        "records 200@1/22/264..350@1/22/16960 pinned\n"
        "renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from_place(1, 22, 0): OK 3 of 150 "
        "records 200@1/22/264..350@1/22/16960 pinned\n"
        "renumber(2, 20), from_place(0, 2, 0): OK..200@1/22/0\n"
        "renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, from(200): OK 3 of 150 records "
        "200@1/22/264..350@1/22/16960 pinned\n"
        "renumber(2, 20), slot(2)->joint = LOG_JOINT_JUMPED, lacks(1), from(100): OK 3 of 150 "
        "records 200@1/22/264..350@1/22/16960 pinned\n");
}

/* What is missing at the end. */
static void end_that_is_missing_is_named_unless_it_was_given_up(void **state)
{
    (void)state;
    CASE(four, read_it, it->slot_count = 2, from(200), it->head.seg = NULL);
    CASE(four, read_it, it->slot_count = 2, from(200), it->head.seg = NULL, it->jumped = true);
    CASE(four, read_it, it->slot_count = 2, from(200), it->head.seg = NULL, it->hole_told = true);
    CASE(four, read_it, it->slot_count = 2, from(200), it->head.seg = NULL, it->next_segment = 2);
    CASE(four, read_it, it->slot_count = 2, from_place(0, 2, 0), it->head.seg = NULL,
         it->jumped = true);
    TRACE_IS(
        "it->slot_count = 2, from(200), it->head.seg = NULL: \"segments 2 to 4 with offsets 200 to "
        "1349 are missing\" DAMAGED..1350@0/2/0\n"
        "it->slot_count = 2, from(200), it->head.seg = NULL, it->jumped = true: OK..1350@0/5/0\n"
        "it->slot_count = 2, from(200), it->head.seg = NULL, it->hole_told = true: "
        "DAMAGED..1350@0/2/0\n"
        "it->slot_count = 2, from(200), it->head.seg = NULL, it->next_segment = 2: OK..1350@0/2/0\n"
        "it->slot_count = 2, from_place(0, 2, 0), it->head.seg = NULL, it->jumped = true: "
        "OK..1350@0/2/0\n");
}

static void cut(uint32_t index, uint64_t offsets)
{
    slot(index)->seg->next_offset -= offsets;
}

static void segment_that_ends_short_is_named(void **state)
{
    (void)state;
    CASE(four, read_it, cut(1, 50), from(150));
    CASE(four, read_it, cut(1, 50), from(150), slot(1)->damage_told = true);
    CASE(four, read_it, cut(1, 50), from(150), read_it(), from(150));
    CASE(four, read_it, cut(1, 50), from(150), slot(2)->joint = LOG_JOINT_JUMPED);
    CASE(four, read_it, cut(1, 50), from(150), slot(2)->front_given_up = true);
    CASE(four, read_it, cut(1, 50), gone(2), from(150), slot(2)->joint = LOG_JOINT_UNKNOWN);
    CASE(four, read_it, cut(1, 50), from_place(0, 1, slot(1)->seg->prefix_id.bytes));
    CASE(four, read_it, from_place(0, 1, slot(1)->seg->prefix_id.bytes));
    TRACE_IS(
        "cut(1, 50), from(150): \"segment 1 is damaged at 11512: offsets 150 to 199 are not "
        "there\" DAMAGED..200@0/1/11512\n"
        "cut(1, 50), from(150), slot(1)->damage_told = true: DAMAGED..200@0/1/11512\n"
        "\"segment 1 is damaged at 11512: offsets 150 to 199 are not there\" "
        "DAMAGED..200@0/1/11512\n"
        "cut(1, 50), from(150), read_it(), from(150): DAMAGED..200@0/1/11512\n"
        "cut(1, 50), from(150), slot(2)->joint = LOG_JOINT_JUMPED: OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n"
        "cut(1, 50), from(150), slot(2)->front_given_up = true: OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n"
        "cut(1, 50), gone(2), from(150), slot(2)->joint = LOG_JOINT_UNKNOWN: [1 of 0+4096] "
        "\"segment 1 is damaged at 11512: offsets 150 to 199 are not there\" "
        "DAMAGED..200@0/1/11512\n"
        "cut(1, 50), from_place(0, 1, slot(1)->seg->prefix_id.bytes): \"segment 1 is damaged at "
        "11512: offsets 150 to 199 are not there\" DAMAGED..200@0/1/11512\n"
        "from_place(0, 1, slot(1)->seg->prefix_id.bytes): OK 3 of 150 records "
        "200@0/2/264..350@0/2/16960 pinned\n");
}

/* ---- look-ups ---- */

static void look_up(void)
{
    looking.on_done = on_looking;
    leat_err rc = leat_log_locate(it, &looking);
    follow(rc);
    if (rc == LEAT_E_AGAIN && !is_done) {
        trace("waits\n");
        leat_list_init(&it->stalled_reads);
        return;
    }
    trace("%s %llu time %lld epoch %u at ", leat_err_name(looking.rc),
          (unsigned long long)looking.offset.v, (long long)looking.timestamp_ms, looking.epoch.v);
    position_tell(looking.position);
    if (looking.rc == LEAT_E_OFFSET_OUT_OF_RANGE || looking.rc == LEAT_E_LOG_INCOMPLETE) {
        trace(" of ");
        position_tell(looking.first_position);
        trace(" to ");
        position_tell(looking.end_position);
    }
    trace("%s%s%s\n", looking.read.pinned ? " pinned" : "", looking.seeks ? " seeks" : "",
          looking.seeks && looking.post == it->env->post ? " by its post" : "");
    if (!looking.seeks) return;
    while (leat_locate_step(&looking) == LEAT_E_AGAIN)
        continue;
    trace("   then %llu time %lld%s%s\n", (unsigned long long)looking.offset.v,
          (long long)looking.timestamp_ms, looking.read.pinned ? " pinned" : "",
          looking.seeks ? " seeks" : "");
}

static void what(uint32_t kind, int64_t value)
{
    looking.what = kind;
    looking.value = value;
}

static void what_place(uint64_t group, uint64_t segment, uint32_t position)
{
    looking.what = LEAT_LOCATE_POSITION;
    looking.from = (struct leat_position){group, segment, position};
}

static void offsets_and_ends_are_looked_up(void **state)
{
    (void)state;
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0));
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0), it->first_offset = 7, it->first_segment = 1);
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0), it->restored = LOG_FRONT_UNKNOWN);
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING,
         it->slot_count = 0);
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING,
         it->slot_count = 0, it->next_segment = 1);
    CASE(four, look_up, what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING,
         it->slot_count = 0, it->next_segment = 0); /* none has ever been made */
    CASE(four, look_up, what(LEAT_LOCATE_LATEST, 0));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 0));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 149));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 149), it->first_offset = 149);
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 148), it->first_offset = 149);
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, (int64_t)log_acked(it)));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, (int64_t)log_acked(it) + 1));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 100), lacks(1));
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 100), lacks(1), slot(1)->joint = LOG_JOINT_JUMPED);
    CASE(four, look_up, what(LEAT_LOCATE_OFFSET, 100), gone(1));
    CASE(four, look_up, what(LEAT_LOCATE_EPOCH, 6));
    CASE(four, look_up, what(LEAT_LOCATE_EPOCH, 7));
    CASE(four, look_up, what(LEAT_LOCATE_EPOCH, 6), slot(0)->seg->epoch.v = 5);
    CASE(four, look_up, what(LEAT_LOCATE_EPOCH, 4), slot(0)->seg->epoch.v = 5);
    CASE(four, look_up, what(99, 0));
    TRACE_IS(
        "what(LEAT_LOCATE_EARLIEST, 0): OK 0 time -1 epoch 0 at 0/0/0\n"
        "what(LEAT_LOCATE_EARLIEST, 0), it->first_offset = 7, it->first_segment = 1: OK 7 time -1 "
        "epoch 0 at 0/1/0\n"
        "what(LEAT_LOCATE_EARLIEST, 0), it->restored = LOG_FRONT_UNKNOWN: waits\n"
        "what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING, it->slot_count = 0: "
        "LOG_INCOMPLETE 0 time -1 epoch 0 at 0/0/0 of 0/0/0 to 0/0/0\n"
        "what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING, it->slot_count = 0, "
        "it->next_segment = 1: LOG_INCOMPLETE 0 time -1 epoch 0 at 0/0/0 of 0/0/0 to 0/0/0\n"
        "what(LEAT_LOCATE_EARLIEST, 0), it->state = LEAT_LOG_WAITING, it->slot_count = 0, "
        "it->next_segment = 0: OK 0 time -1 epoch 0 at 0/0/0\n"
        "what(LEAT_LOCATE_LATEST, 0): OK 1350 time -1 epoch 0 at 0/4/5840\n"
        "what(LEAT_LOCATE_OFFSET, 0): OK 0 time -1 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_OFFSET, 149): OK 149 time -1 epoch 0 at 0/1/264\n"
        "what(LEAT_LOCATE_OFFSET, 149), it->first_offset = 149: OK 149 time -1 epoch 0 at 0/1/264\n"
        "what(LEAT_LOCATE_OFFSET, 148), it->first_offset = 149: OFFSET_OUT_OF_RANGE 149 time -1 "
        "epoch 0 at 0/0/0 of 0/0/0 to 0/0/0\n"
        "what(LEAT_LOCATE_OFFSET, (int64_t)log_acked(it)): OK 1350 time -1 epoch 0 at 0/4/5840\n"
        "what(LEAT_LOCATE_OFFSET, (int64_t)log_acked(it) + 1): OFFSET_OUT_OF_RANGE 1350 time -1 "
        "epoch 0 at 0/0/0 of 0/0/0 to 0/0/0\n"
        "what(LEAT_LOCATE_OFFSET, 100), lacks(1): \"segment 1 with offsets 100 to 199 is "
        "missing\" DAMAGED 100 time -1 epoch 0 at 0/0/0\n"
        "what(LEAT_LOCATE_OFFSET, 100), lacks(1), slot(1)->joint = LOG_JOINT_JUMPED: OK 200 time "
        "-1 epoch 0 at 0/2/264\n"
        "what(LEAT_LOCATE_OFFSET, 100), gone(1): [1 of 0+12288] OK 100 time -1 epoch 0 at 0/1/264\n"
        "what(LEAT_LOCATE_EPOCH, 6): OK 0 time -1 epoch 0 at 0/0/0\n"
        "what(LEAT_LOCATE_EPOCH, 7): OK 1350 time -1 epoch 7 at 0/4/5840\n"
        "what(LEAT_LOCATE_EPOCH, 6), slot(0)->seg->epoch.v = 5: OK 100 time -1 epoch 5 at 0/0/0\n"
        "what(LEAT_LOCATE_EPOCH, 4), slot(0)->seg->epoch.v = 5: OK 0 time -1 epoch 0 at 0/0/0\n"
        "what(99, 0): INVALID 0 time -1 epoch 0 at 0/0/0\n");
}

static void places_are_looked_up(void **state)
{
    (void)state;
    CASE(four, look_up, what_place(0, 0, 0));
    CASE(four, look_up, what_place(0, 0, 0), it->first_offset = 60);
    CASE(four, look_up, what_place(0, 1, 8));
    CASE(four, look_up, what_place(0, 0, 0), it->first_segment = 1);
    CASE(four, look_up, what_place(0, 4, it->head.acked_bytes));
    CASE(four, look_up, what_place(0, 4, it->head.acked_bytes + 8));
    CASE(four, look_up, what_place(0, 4, it->head.acked_bytes + 8), it->state = LEAT_LOG_WAITING);
    CASE(four, look_up, what_place(0, 5, 0));
    CASE(four, look_up, what_place(0, 5, 8), it->state = LEAT_LOG_WAITING);
    CASE(four, look_up, what_place(0, 1, 8), it->state = LEAT_LOG_WAITING);
    CASE(four, look_up, what_place(0, 1, 0), lacks(1));
    CASE(four, look_up, what_place(0, 1, 0), lacks(1), slot(1)->joint = LOG_JOINT_JUMPED);
    TRACE_IS(
        "what_place(0, 0, 0): OK 0 time -1 epoch 0 at 0/0/264\n"
        "what_place(0, 0, 0), it->first_offset = 60: OK 60 time -1 epoch 0 at 0/0/5840\n"
        "what_place(0, 1, 8): OFFSET_OUT_OF_RANGE 0 time -1 epoch 0 at 0/0/0 of 0/0/0 to 0/4/5840\n"
        "what_place(0, 0, 0), it->first_segment = 1: OFFSET_OUT_OF_RANGE 0 time -1 epoch 0 at "
        "0/0/0 of 0/1/0 to 0/4/5840\n"
        "what_place(0, 4, it->head.acked_bytes): OK 1350 time -1 epoch 0 at 0/4/5840\n"
        "what_place(0, 4, it->head.acked_bytes + 8): OFFSET_OUT_OF_RANGE 0 time -1 epoch 0 at "
        "0/0/0 of 0/0/0 to 0/4/5840\n"
        "what_place(0, 4, it->head.acked_bytes + 8), it->state = LEAT_LOG_WAITING: LOG_INCOMPLETE "
        "0 time -1 epoch 0 at 0/0/0 of 0/0/0 to 0/4/5840\n"
        "what_place(0, 5, 0): OK 1350 time -1 epoch 0 at 0/5/0\n"
        "what_place(0, 5, 8), it->state = LEAT_LOG_WAITING: LOG_INCOMPLETE 0 time -1 epoch 0 at "
        "0/0/0 of 0/0/0 to 0/4/5840\n"
        "what_place(0, 1, 8), it->state = LEAT_LOG_WAITING: OFFSET_OUT_OF_RANGE 0 time -1 epoch 0 "
        "at 0/0/0 of 0/0/0 to 0/4/5840\n"
        "what_place(0, 1, 0), lacks(1): \"segment 1 with offsets 100 to 199 is missing\" "
        "DAMAGED 0 time -1 epoch 0 at 0/0/0\n"
        "what_place(0, 1, 0), lacks(1), slot(1)->joint = LOG_JOINT_JUMPED: OK 200 time -1 epoch 0 "
        "at 0/2/264\n");
}

/* Records of a batch are a millisecond apart from when it came on. */
static int64_t time_of(uint32_t index)
{
    return slot(index)->seg->max_timestamp_ms;
}

/* Of the first batch, which lies behind the segment's header and start entry. */
static void attributes(uint8_t more)
{
    slot(0)->seg->buffer[264 + LEAT_ENTRY_HEADER_BYTES + 22] |= more;
}

static void times_are_looked_up(void **state)
{
    (void)state;
    CASE(four, look_up, what(LEAT_LOCATE_TIME, 0));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, 0), it->first_offset = 20);
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0)));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20), it->first_offset = 45);
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) + 1000000));
    CASE(four, look_up, what(LEAT_LOCATE_NEWEST, 0));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0)), lacks(0),
         it->backfill = LOG_BACKFILL_FOLLOWS);
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0)), lacks(0));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20), gone(0));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(LEAT_CODEC_LZ4));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, 0), attributes(LEAT_CODEC_LZ4));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(8));
    CASE(four, look_up, what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(8),
         it->first_offset = 45);
    TRACE_IS(
        "what(LEAT_LOCATE_TIME, 0): OK 0 time 1001000 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, 0), it->first_offset = 20: OK 20 time 1001020 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0)): OK 49 time 1001049 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20): OK 29 time 1001029 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20), it->first_offset = 45: OK 45 time 1001045 epoch "
        "0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) + 1000000): OK 1350 time -1 epoch 0 at 0/4/5840\n"
        "what(LEAT_LOCATE_NEWEST, 0): OK 49 time 1001049 epoch 0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0)), lacks(0), it->backfill = LOG_BACKFILL_FOLLOWS: waits\n"
        "what(LEAT_LOCATE_TIME, time_of(0)), lacks(0): OK 149 time 1001049 epoch 0 at 0/1/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20), gone(0): [1 of 0+12288] OK 29 time 1001029 epoch "
        "0 at 0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(LEAT_CODEC_LZ4): OK 0 time 1001000 "
        "epoch 0 at 0/0/264 pinned seeks by its post\n"
        "   then 0 time 1001000\n"
        "what(LEAT_LOCATE_TIME, 0), attributes(LEAT_CODEC_LZ4): OK 0 time 1001000 epoch 0 at "
        "0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(8): OK 0 time 1001049 epoch 0 at "
        "0/0/264\n"
        "what(LEAT_LOCATE_TIME, time_of(0) - 20), attributes(8), it->first_offset = 45: OK 45 time "
        "1001049 epoch 0 at 0/0/264\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        READS_TEST(offset_leads_to_its_batch_or_is_refused),
        READS_TEST(place_leads_to_its_batch_or_is_refused),
        READS_TEST(log_that_ends_answers_no_reads),
        READS_TEST(buffer_that_is_on_its_way_out_is_not_read),
        READS_TEST(file_is_read_in_windows),
        READS_TEST(hole_is_named_unless_it_was_given_up),
        READS_TEST(hole_over_groups_ends_what_is_read),
        READS_TEST(end_that_is_missing_is_named_unless_it_was_given_up),
        READS_TEST(segment_that_ends_short_is_named),
        READS_TEST(offsets_and_ends_are_looked_up),
        READS_TEST(places_are_looked_up),
        READS_TEST(times_are_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
