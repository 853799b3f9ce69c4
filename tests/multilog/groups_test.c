/* SPDX-License-Identifier: Apache-2.0 */
/* Where groups begin and end, and what a reader meets in a segment that is damaged; each condition by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"

/* Segments 14 to 17, and a head, 18. */
static void two_groups(void)
{
    segments(4);
    for (uint32_t i = 0; i < it->slot_count; i++)
        slot(i)->seg->id.v += 14;
    it->next_segment += 14;
    it->first_segment = it->trim_segment = 14;
}

static void groups(void)
{
    for (uint64_t group = 0; group < 4; group++) {
        uint64_t first = 0, end = 0;
        leat_err rc = leat_log_group(it, group, &first, &end);
        trace(" %s", leat_err_name(rc));
        if (rc == LEAT_OK && end == UINT64_MAX)
            trace(" %llu on;", (unsigned long long)first);
        else if (rc == LEAT_OK)
            trace(" %llu..%llu;", (unsigned long long)first, (unsigned long long)end);
    }
    trace("\n");
}

static void no_head(uint64_t next)
{
    it->slot_count--;
    it->head.seg = NULL;
    it->next_segment = next;
}

static void group_ends_where_the_next_begins(void **state)
{
    (void)state;
    CASE_AS_IT_IS(two_groups, groups);
    CASE(two_groups, groups, it->old.seg = slot(3)->seg);
    CASE(two_groups, groups, it->slot_count = 3, it->head.seg = slot(2)->seg);
    CASE(two_groups, groups, it->slot_count = 3, it->head.seg = slot(2)->seg,
         it->old.seg = slot(1)->seg);
    CASE(two_groups, groups, it->first_offset = 150);
    CASE(two_groups, groups, it->first_offset = 1000);
    CASE(two_groups, groups, it->first_segment = 15);
    CASE(two_groups, groups, it->first_segment = 16);
    CASE(two_groups, groups, no_head(18));
    CASE(two_groups, groups, no_head(31));
    CASE(two_groups, groups, no_head(32));
    CASE(two_groups, groups, no_head(33));
    CASE(two_groups, groups, no_head(48));
    CASE(two_groups, groups, it->slot_begin += 2, it->slot_count -= 2);
    CASE(two_groups, groups, it->slot_count = 0, it->head.seg = NULL);
    CASE(two_groups, groups, it->slot_count = 0);
    TRACE_IS(
        "(void)0:  OK 0..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "it->old.seg = slot(3)->seg:  OK 0..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "it->slot_count = 3, it->head.seg = slot(2)->seg:  OK 0..200; OK 200 on; NOT_FOUND "
        "NOT_FOUND\n"
        "it->slot_count = 3, it->head.seg = slot(2)->seg, it->old.seg = slot(1)->seg:  OK 0 on; OK "
        "200 on; NOT_FOUND NOT_FOUND\n"
        "it->first_offset = 150:  OK 150..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "it->first_offset = 1000:  OK 1000..1000; OK 1000 on; NOT_FOUND NOT_FOUND\n"
        "it->first_segment = 15:  OK 100..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "it->first_segment = 16:  NOT_FOUND OK 200 on; NOT_FOUND NOT_FOUND\n"
        "no_head(18):  OK 0..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "no_head(31):  OK 0..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "no_head(32):  OK 0..200; OK 200..1350; OK 1350 on; NOT_FOUND\n"
        "no_head(33):  OK 0..200; OK 200..1350; OK 1350 on; NOT_FOUND\n"
        "no_head(48):  OK 0..200; OK 200..1350; NOT_FOUND OK 1350 on;\n"
        "it->slot_begin += 2, it->slot_count -= 2:  OK 200..200; OK 200 on; NOT_FOUND NOT_FOUND\n"
        "it->slot_count = 0, it->head.seg = NULL:  NOT_FOUND OK 1350 on; NOT_FOUND NOT_FOUND\n"
        "it->slot_count = 0:  NOT_FOUND NOT_FOUND NOT_FOUND NOT_FOUND\n");
}

/* ---- damaged under a reader ---- */

static struct leat_read reading;
static bool is_done;

static void on_reading(struct leat_read *read)
{
    (void)read;
    is_done = true;
}

static leat_err on_damaged(void *owner, const struct leat_segment *seg)
{
    (void)owner;
    trace("asked for s%llu ", (unsigned long long)seg->id.v);
    return LEAT_OK;
}

/* Offsets 100 to 199 are segment 1's. */
static void four(void)
{
    static _Alignas(4096) uint8_t buffer[BUFFER_BYTES];
    segments(4);
    it->options.events.on_damaged = on_damaged;
    reading = (struct leat_read){.from = {100},
                                 .max_bytes = 20000,
                                 .disk_buffer = buffer,
                                 .disk_buffer_bytes = sizeof buffer,
                                 .on_done = on_reading};
    is_done = false;
}

static void read_it(void)
{
    leat_err rc = leat_log_read(it, &reading);
    while (rc == LEAT_E_AGAIN && !is_done)
        one_done();
    trace("%s, %u from %llu, next %llu at %llu/%u%s%s\n", leat_err_name(reading.rc),
          reading.iov_count, (unsigned long long)(reading.iov_count ? reading.first.v : 0),
          (unsigned long long)reading.next.v, (unsigned long long)reading.next_position.segment,
          reading.next_position.position, log_slot_is_sought(slot(1)) ? ", repairing" : "",
          slot(1)->damage_told ? ", told" : "");
}

static void at_place(uint32_t position)
{
    reading.by_position = true;
    reading.position = (struct leat_position){0, 1, position};
}

static uint8_t *bytes_of(void)
{
    struct leat_segment *seg = slot(1)->seg;
    return seg->buffer && !slot(1)->changing ? seg->buffer : (uint8_t *)(void *)seg->file;
}

/* The first batch's kind; what is said to be its offset; a byte of it. */
static void wrong_kind(void)
{
    bytes_of()[264] = 0;
}

static void wrong_offset(void)
{
    struct leat_entry *entry = (struct leat_entry *)(void *)(bytes_of() + 264);
    entry->base_offset = 1 << 30;
}

static void wrong_byte(void)
{
    bytes_of()[264 + 200] ^= 1;
}

static void gone(void)
{
    free(slot(1)->seg->buffer);
    slot(1)->seg->buffer = NULL;
}

static void given_up(void)
{
    slot(1)->given_up = true;
}

static void segment_that_is_damaged_is_named_repaired_or_passed_over(void **state)
{
    (void)state;
    CASE_AS_IT_IS(four, read_it);
    CASE(four, read_it, wrong_kind());
    CASE(four, read_it, wrong_kind(), given_up());
    CASE(four, read_it, wrong_kind(), given_up(), at_place(0));
    CASE(four, read_it, wrong_kind(), given_up(), slot(1)->closed = false);
    CASE(four, read_it, wrong_offset());
    CASE(four, read_it, wrong_offset(), at_place(0));
    CASE(four, read_it, wrong_offset(), at_place(5840));
    CASE(four, read_it, wrong_offset(), at_place(264));
    CASE(four, read_it, gone(), wrong_kind());
    CASE(four, read_it, gone(), wrong_byte());
    CASE(four, read_it, gone(), wrong_byte(), given_up());
    CASE(four, read_it, gone(), wrong_byte(), it->options.events.on_damaged = NULL);
    CASE(four, read_it, gone(), fake->fail_reads = true);
    CASE(four, read_it, slot(1)->changing = true, fake->fail_reads = true);
    CASE(four, read_it, slot(1)->changing = true, wrong_byte());
    CASE(four, read_it, gone(), fake->fail_reads = true, slot(1)->closed = false);
    TRACE_IS("(void)0: OK, 2 from 100, next 200 at 2/0\n"
             "wrong_kind(): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "wrong_kind(), given_up(): OK, 3 from 200, next 350 at 2/16960\n"
             "wrong_kind(), given_up(), at_place(0): OK, 3 from 200, next 350 at 2/16960\n"
             "wrong_kind(), given_up(), slot(1)->closed = false: DAMAGED, 0 from 0, next 100 at "
             "1/264, told\n"
             "wrong_offset(): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "wrong_offset(), at_place(0): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "wrong_offset(), at_place(5840): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "wrong_offset(), at_place(264): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "gone(), wrong_kind(): asked for s1 STARTING, 0 from 0, next 100 at 0/0, repairing\n"
             "gone(), wrong_byte(): asked for s1 STARTING, 0 from 0, next 100 at 0/0, repairing\n"
             "gone(), wrong_byte(), given_up(): OK, 1 from 150, next 200 at 2/0\n"
             "gone(), wrong_byte(), it->options.events.on_damaged = NULL: DAMAGED, 0 from 0, next "
             "200 at 1/264, told\n"
             "gone(), fake->fail_reads = true: asked for s1 STARTING, 0 from 0, next 100 at 0/0, "
             "repairing\n"
             "slot(1)->changing = true, fake->fail_reads = true: DISK, 0 from 0, next 100 at 0/0\n"
             "slot(1)->changing = true, wrong_byte(): DAMAGED, 0 from 0, next 200 at 1/264, told\n"
             "gone(), fake->fail_reads = true, slot(1)->closed = false: DISK, 0 from 0, next 100 "
             "at 0/0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(group_ends_where_the_next_begins),
        TRACE_TEST(segment_that_is_damaged_is_named_repaired_or_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
