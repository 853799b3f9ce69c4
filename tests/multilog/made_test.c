/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a log that has just been made of the segments that were found; which segments the log takes later, and
 * where they stand in its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poke.h"

struct row {
    uint64_t id, base, next;
};

static struct leat_segment *segment_of(struct fake *made, struct row row)
{
    struct leat_segment *seg = calloc(1, sizeof *seg);
    *seg = (struct leat_segment){.id = {row.id},
                                 .state = LEAT_SEGMENT_CLOSED,
                                 .capacity = 65536,
                                 .flushed = true,
                                 .base_offset = row.base,
                                 .next_offset = row.next,
                                 .prefix_id = {100, 1}};
    made->held[made->held_count++] =
        (struct fake_held){.seg = seg, .file = fake_buffer(65536), .closed_row = true};
    return seg;
}

static void make_as(struct fake *made, const struct row *rows, size_t count,
                    struct leat_log_tail tail)
{
    struct leat_segment *segs[8] = {NULL};
    for (size_t i = 0; i < count; i++)
        segs[i] = segment_of(made, rows[i]);
    fake_open(made, segs, count, &tail);
    fake = made;
    it = made->log;
}

/* ---- as it begins ---- */
static const struct row two[] = {{0, 0, 10}, {1, 10, 20}};
static const struct row jump[] = {{0, 0, 10}, {1, 12, 20}};
static struct leat_log_tail tail;
static struct leat_log_options changed;

static void begin(void)
{
    fake = watch(LEAT_DURABILITY_DISK);
    changed = fake->options;
    tail = (struct leat_log_tail){.next_segment = 2, .next_offset = 20, .previous = {70, 6}};
}

static void tell(void)
{
    trace("%s%s%s%s%s%s%s%s%s%s, s%llu %llu from s%llu %llu told %llu trim s%llu %llu acked %llu, "
          "previous %u, %u segments %llu\n",
          log_is_unloaded(it) ? "cold " : "", log_front_is_unknown(it) ? "front " : "",
          it->jumped ? "jumped " : "", it->front_accepted ? "accepted " : "",
          it->producers.lost ? "lost " : "", it->producers.expired ? "expired " : "",
          it->damage_look ? "look " : "", it->holes ? "holes " : "",
          log_backfill_runs(it) ? "older " : "", fake->dirty ? "dirty" : "",
          (unsigned long long)it->next_segment, (unsigned long long)it->next_offset,
          (unsigned long long)it->first_segment, (unsigned long long)it->first_offset,
          (unsigned long long)it->begin_told, (unsigned long long)it->trim_segment,
          (unsigned long long)it->trim_offset, (unsigned long long)leat_log_acked_offset(it),
          it->previous.bytes, it->slot_count, (unsigned long long)it->closed_bytes);
    assert_int_equal(it->slot_capacity, it->slot_count + 4);
    assert_int_equal(it->gathered_us, fake->now_us);
}

static void none(void)
{
    fake->options = changed;
    make_as(fake, NULL, 0, tail);
    tell();
}

static void first(void)
{
    fake->options = changed;
    make_as(fake, two, 1, tail);
    tell();
}

static void second(void)
{
    fake->options = changed;
    make_as(fake, two + 1, 1, tail);
    tell();
}

static void both(void)
{
    fake->options = changed;
    make_as(fake, two, 2, tail);
    tell();
}

static void apart(void)
{
    fake->options = changed;
    make_as(fake, jump, 2, tail);
    tell();
}

/* Goal: the segments that were found say what a log knows at its start, and what the log still has to find out. */
static void log_begins_with_what_was_found(void **state)
{
    (void)state;
    CASE(begin, none, tail = (struct leat_log_tail){0});
    CASE_AS_IT_IS(begin, none);
    CASE(begin, none, tail.next_segment = 1);
    CASE(begin, none, tail.jumped = true);
    CASE(begin, none, tail.backfill_follows = true);
    CASE(begin, none, tail.holes = true);
    CASE(begin, none, changed.app.ctx = &changed);
    CASE(begin, none, changed.remade = true);
    CASE(begin, first, tail.next_segment = 1, tail.next_offset = 10);
    CASE(begin, first, tail.next_segment = 1, tail.next_offset = 11);
    CASE(begin, first, tail.next_segment = 1, tail.next_offset = 10, changed.app.ctx = &changed);
    CASE(begin, first, tail.next_segment = 1, tail.next_offset = 10, changed.remade = true);
    CASE(begin, first, tail.next_segment = 1, tail.next_offset = 10, tail.backfill_follows = true);
    CASE_AS_IT_IS(begin, second);
    CASE(begin, second, tail.jumped = true);
    CASE_AS_IT_IS(begin, both);
    CASE_AS_IT_IS(begin, apart);
    TRACE_IS(
        "tail = (struct leat_log_tail){0}: look , s0 0 from s0 0 told 0 trim s0 0 acked 0, "
        "previous 0, 0 segments 0\n"
        "(void)0: lost look , s2 20 from s2 20 told 20 trim s2 20 acked 20, previous 70, 0 "
        "segments 0\n"
        "tail.next_segment = 1: lost look , s1 20 from s1 20 told 20 trim s1 20 acked 20, "
        "previous 70, 0 segments 0\n"
        "tail.jumped = true: jumped accepted lost look , s2 20 from s2 20 told 20 trim s2 20 "
        "acked 20, previous 0, 0 segments 0\n"
        "tail.backfill_follows = true: lost look older , s2 20 from s2 20 told 20 trim s2 20 "
        "acked 20, previous 70, 0 segments 0\n"
        "tail.holes = true: lost look holes , s2 20 from s2 20 told 20 trim s2 20 acked 20, "
        "previous 70, 0 segments 0\n"
        "changed.app.ctx = &changed: lost look , s2 20 from s2 20 told 20 trim s2 20 acked "
        "20, previous 70, 0 segments 0\n"
        "changed.remade = true: lost expired look , s2 20 from s2 20 told 20 trim s2 20 acked "
        "20, previous 70, 0 segments 0\n"
        "tail.next_segment = 1, tail.next_offset = 10: cold , s1 10 from s0 0 told 0 trim s0 "
        "0 acked 10, previous 70, 1 segments 100\n"
        "tail.next_segment = 1, tail.next_offset = 11: cold look , s1 11 from s0 0 told 0 "
        "trim s0 0 acked 11, previous 70, 1 segments 100\n"
        "tail.next_segment = 1, tail.next_offset = 10, changed.app.ctx = &changed: cold "
        "dirty, s1 10 from s0 0 told 0 trim s0 0 acked 10, previous 70, 1 segments 100\n"
        "tail.next_segment = 1, tail.next_offset = 10, changed.remade = true: cold , s1 10 "
        "from s0 0 told 0 trim s0 0 acked 10, previous 70, 1 segments 100\n"
        "tail.next_segment = 1, tail.next_offset = 10, tail.backfill_follows = true: cold look "
        "older , s1 10 from s0 0 told 0 trim s0 0 acked 10, previous 70, 1 segments 100\n"
        "(void)0: cold front look dirty, s2 20 from s1 10 told 0 trim s1 10 acked 20, "
        "previous 70, 1 segments 100\n"
        "tail.jumped = true: cold front jumped accepted look dirty, s2 20 from s1 10 told 0 "
        "trim s1 10 acked 20, previous 0, 1 segments 100\n"
        "(void)0: cold front look dirty, s2 20 from s0 0 told 0 trim s0 0 acked 20, previous "
        "70, 2 segments 200\n"
        "(void)0: cold front look dirty, s2 20 from s0 0 told 0 trim s0 0 acked 20, previous "
        "70, 2 segments 200\n");
}

/* Goal: a log for which there is no memory is none, and leaves nothing behind. */
static void log_without_memory_is_none(void **state)
{
    (void)state;
    struct fake *made = watch(LEAT_DURABILITY_DISK);
    const struct leat_log_tail new = {0};
    size_t before = leat_mem_bytes(LEAT_MEM_LOG);
    unsigned fails = 0;
    leat_err rc = LEAT_E_NO_MEMORY;
    for (; rc; fails += rc != LEAT_OK) {
        struct leat_log *log = NULL;
        leat_mem_fail_at(fails + 1);
        rc = leat_log_create(&made->env, &made->store_port, &made->timers, &made->options, NULL, 0,
                             &new, &log);
        leat_mem_fail_at(0);
        assert_int_equal(rc, log ? LEAT_OK : LEAT_E_NO_MEMORY);
        leat_log_destroy(&log);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_LOG), before);
    }
    assert_int_equal(fails, 4);
    watch_end(made);
}

/* ---- segments that come later ---- */
static const struct row holed[] = {{2, 20, 30}, {3, 30, 40}, {5, 50, 60}, {8, 80, 90}};
static struct leat_segment *comes;

/* What has room for five, and for a reservation besides. */
static void begin_holed(void)
{
    make_as(watch(LEAT_DURABILITY_DISK), holed, 4,
            (struct leat_log_tail){.next_segment = 12, .next_offset = 120});
    it->dirty = fake->dirty = it->damage_look = false;
    if (log_front_is_unknown(it)) it->restored = LOG_UNLOADED;
    it->slot_capacity = 6;
    comes = segment_of(fake, (struct row){4, 40, 50});
}

static void add(void)
{
    leat_err rc = leat_log_segment_add(it, comes);
    leat_mem_fail_at(0);
    trace("%s%s%s:", leat_err_name(rc), fake->dirty ? " dirty" : "",
          it->passed_look ? " look" : "");
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" s%llu%s%s%s", (unsigned long long)slot(i)->seg->id.v, slot(i)->closed ? "" : "?",
              slot(i)->given_up ? " given up" : "", slot(i)->front_given_up ? " front" : "");
    trace(", room %u, %llu bytes %llu memory%s%s\n", it->slot_capacity,
          (unsigned long long)it->closed_bytes, (unsigned long long)it->memory_bytes,
          comes->flushed ? "" : " unflushed", comes->log_pointer == it ? " own" : "");
}

/* Goal: a segment that comes stands where its id says, with what is known of the segment, and a place is left for a
 * reservation. */
static void segment_that_comes_stands_in_its_place(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begin_holed, add);
    CASE(begin_holed, add, comes->id.v = 1);
    CASE(begin_holed, add, comes->id.v = 9);
    CASE(begin_holed, add, comes->id.v = 11);
    CASE(begin_holed, add, comes->id.v = 12);
    CASE(begin_holed, add, comes->id.v = 8);
    CASE(begin_holed, add, comes->id.v = 2);
    CASE(begin_holed, add, it->ending = LOG_DELETING);
    CASE(begin_holed, add, it->ending = LOG_RELEASING);
    CASE(begin_holed, add, it->restored = LOG_FRONT_UNKNOWN);
    CASE(begin_holed, add, it->slot_capacity = 5);
    CASE(begin_holed, add, it->slot_capacity = 5, leat_mem_fail_at(1));
    CASE(begin_holed, add, leat_mem_fail_at(1));
    CASE(begin_holed, add, comes->flushed = false);
    CASE(begin_holed, add, comes->flushed = false, comes->buffer = fake_buffer(4096));
    CASE(begin_holed, add, comes->given_up = true);
    CASE(begin_holed, add, comes->front_given_up = true);
    CASE(begin_holed, add, comes->passed_bytes = 1);
    CASE(begin_holed, add, it->passed_look = true);
    TRACE_IS(
        "(void)0: OK dirty: s2 s3 s4 s5 s8, room 6, 500 bytes 0 memory own\n"
        "comes->id.v = 1: OK dirty: s1 s2 s3 s5 s8, room 6, 500 bytes 0 memory own\n"
        "comes->id.v = 9: OK dirty: s2 s3 s5 s8 s9, room 6, 500 bytes 0 memory own\n"
        "comes->id.v = 11: OK dirty: s2 s3 s5 s8 s11, room 6, 500 bytes 0 memory own\n"
        "comes->id.v = 12: NOT_OWNER: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "comes->id.v = 8: EXISTS: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "comes->id.v = 2: EXISTS: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "it->ending = LOG_DELETING: NOT_OWNER: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "it->ending = LOG_RELEASING: NOT_OWNER: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "it->restored = LOG_FRONT_UNKNOWN: AGAIN: s2 s3 s5 s8, room 6, 400 bytes 0 memory\n"
        "it->slot_capacity = 5: OK dirty: s2 s3 s4 s5 s8, room 10, 500 bytes 0 memory own\n"
        "it->slot_capacity = 5, leat_mem_fail_at(1): NO_MEMORY: s2 s3 s5 s8, room 5, 400 bytes 0 "
        "memory\n"
        "leat_mem_fail_at(1): OK dirty: s2 s3 s4 s5 s8, room 6, 500 bytes 0 memory own\n"
        "comes->flushed = false: OK dirty: s2 s3 s4 s5 s8, room 6, 500 bytes 0 memory own\n"
        "comes->flushed = false, comes->buffer = fake_buffer(4096): OK dirty: s2 s3 s4 s5 s8, room "
        "6, 500 bytes 65536 memory unflushed own\n"
        "comes->given_up = true: OK dirty: s2 s3 s4 given up s5 s8, room 6, 500 bytes 0 memory "
        "own\n"
        "comes->front_given_up = true: OK dirty: s2 s3 s4 front s5 s8, room 6, 500 bytes 0 memory "
        "own\n"
        "comes->passed_bytes = 1: OK dirty look: s2 s3 s4 s5 s8, room 6, 500 bytes 0 memory own\n"
        "it->passed_look = true: OK dirty look: s2 s3 s4 s5 s8, room 6, 500 bytes 0 memory own\n");
}

/* ---- the table ---- */

/* Of that size, and begins there. */
static void table(uint32_t begins, uint32_t capacity)
{
    struct log_slot *slots = leat_mem_calloc(LEAT_MEM_LOG, capacity, sizeof *slots);
    memcpy(slots + begins, it->slots, it->slot_count * sizeof *slots);
    leat_mem_free(it->slots);
    it->slots = slots;
    it->slot_begin = begins;
    it->slot_capacity = capacity;
}

static void reserve(uint32_t count)
{
    leat_err rc = log_slots_reserve(it, count);
    leat_mem_fail_at(0);
    trace("%s %u+%u of %u:", leat_err_name(rc), it->slot_begin, it->slot_count, it->slot_capacity);
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" s%llu", (unsigned long long)slot(i)->seg->id.v);
    trace("\n");
}

static void reserve_one(void)
{
    reserve(1);
}

static void reserve_five(void)
{
    reserve(5);
}

/* Goal: there is room afterwards, by what is free in front where that is more than half, else by twice as much. */
static void table_has_room_for_what_is_to_come(void **state)
{
    (void)state;
    CASE(begin_holed, reserve_one, table(0, 5));
    CASE(begin_holed, reserve_one, table(0, 4));
    CASE(begin_holed, reserve_one, table(0, 4), leat_mem_fail_at(1));
    CASE(begin_holed, reserve_one, table(4, 8));
    CASE(begin_holed, reserve_one, table(5, 9));
    CASE(begin_holed, reserve_one, table(5, 9), leat_mem_fail_at(1));
    CASE(begin_holed, reserve_one, table(3, 8));
    CASE(begin_holed, reserve_five, table(4, 8));
    CASE(begin_holed, reserve_five, table(5, 9));
    CASE(begin_holed, reserve_five, table(4, 9));
    CASE(begin_holed, reserve_five, it->slot_count = 2, table(4, 7));
    CASE(begin_holed, reserve_one, it->slot_count = 0, table(0, 1), it->slot_capacity = 0);
    TRACE_IS("table(0, 5): OK 0+4 of 5: s2 s3 s5 s8\n"
             "table(0, 4): OK 0+4 of 8: s2 s3 s5 s8\n"
             "table(0, 4), leat_mem_fail_at(1): NO_MEMORY 0+4 of 4: s2 s3 s5 s8\n"
             "table(4, 8): OK 4+4 of 16: s2 s3 s5 s8\n"
             "table(5, 9): OK 0+4 of 9: s2 s3 s5 s8\n"
             "table(5, 9), leat_mem_fail_at(1): OK 0+4 of 9: s2 s3 s5 s8\n"
             "table(3, 8): OK 3+4 of 8: s2 s3 s5 s8\n"
             "table(4, 8): OK 4+4 of 16: s2 s3 s5 s8\n"
             "table(5, 9): OK 0+4 of 9: s2 s3 s5 s8\n"
             "table(4, 9): OK 4+4 of 18: s2 s3 s5 s8\n"
             "it->slot_count = 2, table(4, 7): OK 4+2 of 14: s2 s3\n"
             "it->slot_count = 0, table(0, 1), it->slot_capacity = 0: OK 0+0 of 4:\n");
}

/* ---- what goes on as if nothing were ---- */

/* Goal: where the front is known nobody waits for it, and the read is as it was. */
static void known_front_is_not_waited_for(void **state)
{
    (void)state;
    begin_holed();
    struct leat_read read = {.rc = LEAT_E_DISK};
    it->ending = LOG_RELEASING;
    assert_int_equal(leat_log_front_await(it, &read), LEAT_OK);
    assert_null(read.log);
    assert_int_equal(read.rc, LEAT_E_DISK);
    poke_end();
}

/* Goal: a read that is used again says nothing of the one before. */
static void read_begins_anew(void **state)
{
    (void)state;
    segments(2);
    struct leat_read read = {.max_bytes = 64 * 1024,
                             .full = true,
                             .given_up = true,
                             .by_time = true,
                             .bytes = 7,
                             .iov_count = 3,
                             .record_count = 9};
    assert_int_equal(leat_log_read(it, &read), LEAT_OK);
    assert_int_equal(read.rc, LEAT_OK);
    assert_false(read.full || read.given_up || read.by_time);
    assert_true(read.iov_count > 0 && read.record_count > 0 && read.record_count % 50 == 0);
    uint32_t sum = 0;
    for (unsigned i = 0; i < read.iov_count; i++)
        sum += (uint32_t)read.iovs[i].bytes;
    assert_int_equal(read.bytes, sum);
    leat_segment_unpin(read.pinned, &fake->post);
    for (unsigned phase = 1; phase < 8; phase++) { /* whatever it waited for before */
        read.phase = phase;
        assert_int_equal(leat_log_read(it, &read), LEAT_OK);
        assert_int_equal(read.bytes, sum);
        leat_segment_unpin(read.pinned, &fake->post);
    }
    read.full = true;
    read.from.v = leat_log_acked_offset(it); /* nothing is there yet */
    assert_int_equal(leat_log_read(it, &read), LEAT_OK);
    assert_true(!read.full && read.bytes == 0 && read.rc == LEAT_OK);
    read.from.v = 0;
    read.strict = true;
    read.max_bytes = 1;
    assert_int_equal(leat_log_read(it, &read), LEAT_OK);
    assert_true(read.full && read.bytes == 0 && read.iov_count == 0 && read.record_count == 0);
    assert_null(read.pinned);
    poke_end();
}

/* Goal: where something is looked for again, what was looked for before is forgotten. */
static void place_is_looked_for_anew(void **state)
{
    (void)state;
    static const struct leat_position before = {5, 6, 7};
    segments(2);
    struct leat_locate_op op = {.what = LEAT_LOCATE_OFFSET,
                                .value = 60,
                                .timestamp_ms = 5,
                                .position = before,
                                .read = {.by_position = true, .by_time = true, .position = before}};
    assert_int_equal(leat_log_locate(it, &op), LEAT_OK);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, 60);
    assert_int_equal(op.timestamp_ms, -1);
    assert_true(op.position.segment == 0 && op.position.position > 0);
    op.what = 99;
    op.position = before;
    assert_int_equal(leat_log_locate(it, &op), LEAT_OK);
    assert_int_equal(op.rc, LEAT_E_INVALID);
    assert_true(op.position.group == 0 && op.position.segment == 0 && op.position.position == 0);
    poke_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(log_begins_with_what_was_found),
        TRACE_TEST(log_without_memory_is_none),
        TRACE_TEST(segment_that_comes_stands_in_its_place),
        TRACE_TEST(table_has_room_for_what_is_to_come),
        TRACE_TEST(known_front_is_not_waited_for),
        TRACE_TEST(read_begins_anew),
        TRACE_TEST(place_is_looked_for_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
