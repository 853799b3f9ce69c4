/* SPDX-License-Identifier: Apache-2.0 */
/* How large the next segment is, when memory for it is asked for, and which gaps are damage; each condition by
 * itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"

static void lacks_room(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    it->room_wanted = true;
    it->room_bytes = 60 * 1000;
}

static void room(void)
{
    log_step_room(it);
    trace("-> %s%s, %s not before %lld, memory not before %lld%s%s\n",
          it->reserving ? "asked" : "not asked", it->next_index ? " with an index" : "",
          leat_err_name(it->reserve_rc),
          (long long)it->reserve_not_before_us - (long long)fake->now_us,
          (long long)it->memory_not_before_us - (long long)fake->now_us,
          it->memory_spent ? " spent" : "", it->leave_wanted ? " leaves" : "");
}

static void most(uint32_t bytes_max)
{
    it->options.settings.segment_bytes_max = bytes_max;
}

static void segment_is_as_large_as_is_asked_for(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lacks_room, room);
    CASE(lacks_room, room, it->room_bytes = 200 * 1000);
    CASE(lacks_room, room, it->room_bytes = 65536 - 32);
    CASE(lacks_room, room, it->roll_capacity = 1 << 20);
    CASE(lacks_room, room, it->roll_capacity = (1 << 20) + 1);
    CASE(lacks_room, room, it->roll_capacity = 1 << 20, most(1 << 19));
    CASE(lacks_room, room, it->roll_capacity = 1 << 20, most(1 << 20));
    CASE(lacks_room, room, it->roll_capacity = 1 << 20, most(0));
    CASE(lacks_room, room, most(16384));
    CASE(lacks_room, room, it->room_bytes = LEAT_SEGMENT_BYTES_MAX);
    CASE(lacks_room, room, it->roll_capacity = LEAT_SEGMENT_BYTES_MAX, most(0));
    TRACE_IS(
        "(void)0: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->room_bytes = 200 * 1000: RESERVE s1 1/0/0 e7 cap 262144 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->room_bytes = 65536 - 32: RESERVE s1 1/0/0 e7 cap 131072 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = 1 << 20: RESERVE s1 1/0/0 e7 cap 1048576 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = (1 << 20) + 1: RESERVE s1 1/0/0 e7 cap 2097152 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = 1 << 20, most(1 << 19): RESERVE s1 1/0/0 e7 cap 524288 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = 1 << 20, most(1 << 20): RESERVE s1 1/0/0 e7 cap 1048576 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = 1 << 20, most(0): RESERVE s1 1/0/0 e7 cap 1048576 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "most(16384): RESERVE s1 1/0/0 e7 cap 65536 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->room_bytes = LEAT_SEGMENT_BYTES_MAX: RESERVE s1 1/0/0 e7 cap 8388608 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n"
        "it->roll_capacity = LEAT_SEGMENT_BYTES_MAX, most(0): RESERVE s1 1/0/0 e7 cap 8388608 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000\n");
}

static void full(void)
{
    lacks_room();
    watched.full = true;
    it->leave_wanted = true;
    it->store_port.in_the_way = watch_in_the_way;
}

static int64_t size(void)
{
    return (int64_t)(it->closed_bytes + it->head.writer.used);
}

static void memory_for_a_segment_is_asked_for_by_what_it_takes(void **state)
{
    (void)state;
    CASE_AS_IT_IS(full, room);
    CASE(full, room, it->slot_capacity = it->slot_begin + it->slot_count);
    CASE(full, room, it->roll_wanted = true);
    CASE(full, room, it->trim_segment = 1);
    CASE(full, room, it->options.settings.retention_bytes = size());
    CASE(full, room, it->options.settings.retention_bytes = size() + 1);
    CASE(full, room, it->memory_not_before_us = fake->now_us + 1);
    CASE(full, room, it->memory_not_before_us = fake->now_us);
    CASE(full, room, it->memory_not_before_us = fake->now_us + 1, it->roll_wanted = true);
    CASE(full, room, it->memory_not_before_us = fake->now_us + 1,
         it->roll_wanted = it->memory_spent = true);
    CASE(full, room, it->options.memory_is_full = NULL);
    TRACE_IS(
        "(void)0: full? 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000\n"
        "it->slot_capacity = it->slot_begin + it->slot_count: full? 824\n"
        "-> not asked, OK not before -1000000, memory not before 1000000\n"
        "it->roll_wanted = true: full? spare 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000 spent\n"
        "it->trim_segment = 1: full? spare 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000 spent\n"
        "it->options.settings.retention_bytes = size(): full? spare 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000 spent\n"
        "it->options.settings.retention_bytes = size() + 1: full? 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000\n"
        "it->memory_not_before_us = fake->now_us + 1: -> not asked, OK not before -1000000, memory "
        "not before 1 leaves\n"
        "it->memory_not_before_us = fake->now_us: full? 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000\n"
        "it->memory_not_before_us = fake->now_us + 1, it->roll_wanted = true: full? spare 776\n"
        "-> not asked, OK not before -1000000, memory not before 1000000 spent\n"
        "it->memory_not_before_us = fake->now_us + 1, it->roll_wanted = it->memory_spent = true: "
        "-> not asked, OK not before -1000000, memory not before 1 spent leaves\n"
        "it->options.memory_is_full = NULL: RESERVE s1 1/0/0 e7 cap 65536 d1\n"
        "-> asked with an index, OK not before -1000000, memory not before -1000000 leaves\n");
}

static void room_without(void)
{
    room();
    leat_mem_fail_at(0);
}

static void segment_without_memory_is_not_asked_for(void **state)
{
    (void)state;
    CASE(lacks_room, room_without, leat_mem_fail_at(1));
    CASE(lacks_room, room_without, it->slot_capacity = it->slot_begin + it->slot_count,
         leat_mem_fail_at(2));
    CASE(lacks_room, room_without, leat_mem_fail_at(2));
    TRACE_IS("leat_mem_fail_at(1): -> not asked, NO_MEMORY not before 1000000, memory not before "
             "-1000000\n"
             "it->slot_capacity = it->slot_begin + it->slot_count, leat_mem_fail_at(2): -> not "
             "asked, NO_MEMORY not before 1000000, memory not before -1000000\n"
             "leat_mem_fail_at(2): RESERVE s1 1/0/0 e7 cap 65536 d1\n"
             "-> asked with an index, OK not before -1000000, memory not before -1000000\n");
}

/* ---- pace ---- */

static void has_next(void)
{
    lacks_room();
    size_t used = trace_used;
    log_step_room(it);
    one_done();
    trace_text[trace_used = used] = '\0';
    assert_non_null(it->next);
    it->roll_capacity = 5;
    fake->now_us += 200 * 1000 * 1000;
}

static void lasted(uint64_t us, uint32_t capacity)
{
    it->rolled_us = fake->now_us - us;
    it->head.seg->capacity = capacity;
}

static void rolls(void)
{
    log_step_room(it);
    trace("-> head %llu, pace %u%s%s\n", (unsigned long long)it->head.seg->id.v, it->roll_capacity,
          it->rolling_fast ? " fast" : "", it->rolled_us == fake->now_us ? ", noted" : "");
}

static void pace_of_rolling_is_noted(void **state)
{
    (void)state;
    enum { MIB = 1024 * 1024, MOST = LEAT_SEGMENT_BYTES_MAX };
    CASE(has_next, rolls, lasted(LOG_FAST_ROLL_US - 1, MIB));
    CASE(has_next, rolls, lasted(LOG_FAST_ROLL_US, MIB));
    CASE(has_next, rolls, lasted(LOG_SLOW_ROLL_US, MIB));
    CASE(has_next, rolls, lasted(LOG_SLOW_ROLL_US + 1, MIB));
    CASE(has_next, rolls, lasted(1, MOST / 4 - 64));
    CASE(has_next, rolls, lasted(1, MOST / 4));
    CASE(has_next, rolls, lasted(1, MOST / 2));
    CASE(has_next, rolls, lasted(1, MIB), it->roll_wanted = true);
    CASE(has_next, rolls, lasted(1, MIB), it->room_wanted = false, it->roll_wanted = true);
    CASE(has_next, rolls, lasted(1, MIB), it->room_wanted = false, it->leave_wanted = true,
         it->store_port.in_the_way = watch_in_the_way);
    TRACE_IS("lasted(LOG_FAST_ROLL_US - 1, MIB): -> head 1, pace 4194304 fast, noted\n"
             "lasted(LOG_FAST_ROLL_US, MIB): -> head 1, pace 1048576, noted\n"
             "lasted(LOG_SLOW_ROLL_US, MIB): -> head 1, pace 1048576, noted\n"
             "lasted(LOG_SLOW_ROLL_US + 1, MIB): -> head 1, pace 262144, noted\n"
             "lasted(1, MOST / 4 - 64): -> head 1, pace 8388352 fast, noted\n"
             "lasted(1, MOST / 4): -> head 1, pace 8388608 fast, noted\n"
             "lasted(1, MOST / 2): -> head 1, pace 8388608 fast, noted\n"
             "lasted(1, MIB), it->roll_wanted = true: -> head 1, pace 4194304 fast, noted\n"
             "lasted(1, MIB), it->room_wanted = false, it->roll_wanted = true: -> head 1, pace 5\n"
             "lasted(1, MIB), it->room_wanted = false, it->leave_wanted = true, "
             "it->store_port.in_the_way = watch_in_the_way: in the way s1?\n"
             "-> head 1, pace 5\n");
}

/* ---- gaps ---- */

static void four(void)
{
    segments(4);
}

static void gaps(void)
{
    struct leat_log_damage damage;
    uint64_t at = 0;
    trace("->");
    while (leat_log_damage_find(it, &at, &damage))
        trace(" s%llu..%llu %llu..%llu%s;", (unsigned long long)damage.first_segment,
              (unsigned long long)damage.end_segment, (unsigned long long)damage.first_offset,
              (unsigned long long)damage.end_offset, damage.missing ? "" : " corrupt");
    trace(" %llu lost\n", (unsigned long long)leat_log_offsets_lost(it));
}

static void lacks(uint32_t index)
{
    memmove(slot(index), slot(index) + 1, (it->slot_count - index - 1) * sizeof *it->slots);
    it->slot_count--;
}

static void joint(uint32_t index, enum log_joint kind)
{
    slot(index)->joint = kind;
}

static void what_is_not_there_is_damage_unless_it_was_given_up(void **state)
{
    (void)state;
    CASE_AS_IT_IS(four, gaps);
    CASE(four, gaps, lacks(1));
    CASE(four, gaps, lacks(1), joint(1, LOG_JOINT_JUMPED));
    CASE(four, gaps, lacks(1), joint(1, LOG_JOINT_UNKNOWN));
    CASE(four, gaps, lacks(1), slot(1)->front_given_up = true);
    CASE(four, gaps, lacks(1), slot(0)->closed = false);
    CASE(four, gaps, lacks(1), it->first_offset = 150);
    CASE(four, gaps, lacks(1), it->first_offset = 200);
    CASE(four, gaps, lacks(1), it->restored = LOG_FRONT_UNKNOWN);
    CASE(four, gaps, lacks(0));
    CASE(four, gaps, lacks(0), it->restored = LOG_FRONT_UNKNOWN);
    CASE(four, gaps, lacks(0), lacks(1));
    CASE(four, gaps, lacks(0), lacks(1), it->backfill = LOG_BACKFILL_FOLLOWS);
    CASE(four, gaps, lacks(0), lacks(1), it->backfill = LOG_BACKFILL_FOLLOWS, it->holes = true);
    CASE(four, gaps, it->slot_count = 3);
    CASE(four, gaps, it->slot_count = 3, it->jumped = true);
    CASE(four, gaps, it->slot_count = 0);
    TRACE_IS(
        "(void)0: -> 0 lost\n"
        "lacks(1): -> s1..2 100..200; 100 lost\n"
        "lacks(1), joint(1, LOG_JOINT_JUMPED): -> 100 lost\n"
        "lacks(1), joint(1, LOG_JOINT_UNKNOWN): -> s1..2 100..200; 100 lost\n"
        "lacks(1), slot(1)->front_given_up = true: -> 100 lost\n"
        "lacks(1), slot(0)->closed = false: -> 0 lost\n"
        "lacks(1), it->first_offset = 150: -> s1..2 150..200; 50 lost\n"
        "lacks(1), it->first_offset = 200: -> 0 lost\n"
        "lacks(1), it->restored = LOG_FRONT_UNKNOWN: -> s1..2 100..200; 100 lost\n"
        "lacks(0): -> s0..1 0..100; 100 lost\n"
        "lacks(0), it->restored = LOG_FRONT_UNKNOWN: -> 100 lost\n"
        "lacks(0), lacks(1): -> s0..1 0..100; s2..3 200..750; 650 lost\n"
        "lacks(0), lacks(1), it->backfill = LOG_BACKFILL_FOLLOWS: -> s2..3 200..750; 550 lost\n"
        "lacks(0), lacks(1), it->backfill = LOG_BACKFILL_FOLLOWS, it->holes = true: -> 0 lost\n"
        "it->slot_count = 3: -> s3..5 750..1350; 600 lost\n"
        "it->slot_count = 3, it->jumped = true: -> 600 lost\n"
        "it->slot_count = 0: -> s0..5 0..1350; 1350 lost\n");
}

static void holes(void)
{
    struct leat_log_hole hole;
    uint64_t below = it->next_segment;
    it->holes = true;
    trace("->");
    while (leat_log_hole_find(it, below, &hole)) {
        below = hole.behind->id.v;
        trace(" %llu to s%llu", (unsigned long long)hole.first, (unsigned long long)below);
    }
    leat_log_hole_jumped(it, 3);
    leat_log_hole_jumped(it, 77);
    leat_log_holes_end(it);
    trace(";");
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" %u", (unsigned)slot(i)->joint);
    trace("%s\n", it->holes ? " holes" : "");
}

static void holes_between_segments_are_found_from_the_end(void **state)
{
    (void)state;
    CASE_AS_IT_IS(four, holes);
    CASE(four, holes, lacks(1));
    CASE(four, holes, lacks(0));
    CASE(four, holes, lacks(1), lacks(2));
    CASE(four, holes, lacks(1), slot(1)->closed = false);
    CASE(four, holes, lacks(1), joint(1, LOG_JOINT_JUMPED));
    CASE(four, holes, lacks(1), joint(1, LOG_JOINT_UNKNOWN));
    TRACE_IS("(void)0: ->; 1 1 1 2 1\n"
             "lacks(1): -> 1 to s2; 1 1 2 1\n"
             "lacks(0): ->; 1 1 2 1\n"
             "lacks(1), lacks(2): -> 1 to s2; 1 1 1\n"
             "lacks(1), slot(1)->closed = false: ->; 1 1 2 1\n"
             "lacks(1), joint(1, LOG_JOINT_JUMPED): ->; 1 2 2 1\n"
             "lacks(1), joint(1, LOG_JOINT_UNKNOWN): -> 1 to s2; 1 0 2 1\n");
}

static void at_offset(uint64_t base)
{
    lacks(1);
    joint(1, LOG_JOINT_UNKNOWN);
    slot(1)->seg->base_offset = base;
    slot(1)->seg->next_offset = base + 1;
    it->slot_count = 2;
}

static void jump_is_known_by_its_offset(void **state)
{
    (void)state;
    CASE(four, gaps, at_offset(UINT64_C(1) << 40));
    CASE(four, gaps, at_offset(UINT64_C(3) << 40));
    CASE(four, gaps, at_offset(UINT64_C(1) << 39));
    CASE(four, gaps, at_offset(UINT64_C(1) << 41));
    CASE(four, gaps, at_offset((UINT64_C(1) << 40) + 1));
    TRACE_IS("at_offset(UINT64_C(1) << 40): -> 1250 lost\n"
             "at_offset(UINT64_C(3) << 40): -> 1250 lost\n"
             "at_offset(UINT64_C(1) << 39): -> s1..2 100..549755813888; 1250 lost\n"
             "at_offset(UINT64_C(1) << 41): -> 1250 lost\n"
             "at_offset((UINT64_C(1) << 40) + 1): -> s1..2 100..1099511627777; 1250 lost\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(segment_is_as_large_as_is_asked_for),
        TRACE_TEST(memory_for_a_segment_is_asked_for_by_what_it_takes),
        TRACE_TEST(segment_without_memory_is_not_asked_for),
        TRACE_TEST(pace_of_rolling_is_noted),
        TRACE_TEST(what_is_not_there_is_damage_unless_it_was_given_up),
        TRACE_TEST(holes_between_segments_are_found_from_the_end),
        TRACE_TEST(jump_is_known_by_its_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
