/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk over a segment's entries makes of every field that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "entries_rig.h"

/* v / 16: which entry; v % 16: which of its fields. */
static void flip(uint32_t v)
{
    uint32_t position = entries[v / 16 % ENTRIES];
    struct leat_entry *entry = entry_of(position);
    uint8_t *payload = (uint8_t *)(entry + 1);
    switch (v % 16) {
    case 0:
        entry->type ^= 1;
        break;
    case 1:
        entry->type = 0;
        break;
    case 2:
        entry->type = LEAT_ENTRY_CLOSE + 1;
        break;
    case 3:
        entry->flags = 1;
        break;
    case 4:
        entry->zero16 = 1;
        break;
    case 5:
        entry->zero64 = 1;
        break;
    case 6:
        entry->record_count ^= 1;
        break;
    case 7:
        entry->payload_bytes = LEAT_BATCH_HEADER_BYTES - 1;
        break;
    case 8:
        entry->payload_bytes = sizeof segment;
        break;
    case 9:
        entry->base_offset += 1;
        break;
    case 10:
        entry->base_offset -= 1;
        break;
    case 11:
        entry->crc ^= 1;
        break;
    case 12:
        payload[7] ^= 1;
        right_crc(position);
        break;
    case 13:
        payload[60] ^= 1;
        right_crc(position);
        break;
    case 14:
        payload[20] ^= 1;
        break;
    default:
        entry->record_count = 0;
        break;
    }
}

enum { FLIPS = ENTRIES * 16 - 1 };

static void wrong_field_in_memory_ends_the_walk(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v));
    TRACE_IS("flip(v)\n"
             "  0: damaged at 0, boundary\n"
             "  10: damaged at 128, boundary\n"
             "  11: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  17: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  23: done at 192, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  24: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  25: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  28: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  29: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  32: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  38: done at 272, 2 of 125 bytes, 4 records: 10@0..14@224, boundary\n"
             "  39: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  43: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  47: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  48: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  49: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  55: done at 320, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  56: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  57: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  62: done at 496, 4 of 250 bytes, 5 records: 10@0..15@464, boundary\n"
             "  63: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  64: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  75: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  79: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  80: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  91: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  95: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  96: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  97: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  105: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void wrong_field_in_a_file_ends_the_walk(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = true);
    TRACE_IS("flip(v), view.verify = true\n"
             "  0: damaged at 0, boundary\n"
             "  10: damaged at 128, boundary\n"
             "  11: damaged at 0, boundary\n"
             "  16: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  17: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  23: done at 192, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  24: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  25: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  28: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  31: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  32: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  48: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  49: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  55: done at 320, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  56: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  57: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  61: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  63: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  64: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  80: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  96: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  97: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  105: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void wrong_field_before_a_place_ends_the_walk(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = true, from_position(batches[2]));
    TRACE_IS("flip(v), view.verify = true, from_position(batches[2])\n"
             "  0: damaged at 0\n"
             "  9: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  15: damaged at 0\n"
             "  16: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  17: damaged at 96\n"
             "  23: damaged at 192\n"
             "  24: damaged at 96\n"
             "  25: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  28: damaged at 128\n"
             "  29: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  32: damaged at 128\n"
             "  38: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  39: damaged at 128\n"
             "  41: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  47: damaged at 128\n"
             "  48: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  49: damaged at 224\n"
             "  55: no boundary at 320\n"
             "  56: damaged at 224\n"
             "  57: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  61: damaged at 272, boundary\n"
             "  63: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  64: damaged at 272, boundary\n"
             "  80: done at 368, 1 of 62 bytes, 1 records: 13@272..14@368, boundary\n"
             "  96: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  97: done at 464, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  105: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n");
}

static void wrong_field_around_a_place_is_no_boundary(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = true, from_position(batches[1] + 8));
    TRACE_IS("flip(v), view.verify = true, from_position(batches[1] + 8)\n"
             "  0: damaged at 0\n"
             "  9: no boundary at 224\n"
             "  15: damaged at 0\n"
             "  16: no boundary at 224\n"
             "  17: damaged at 96\n"
             "  23: no boundary at 192\n"
             "  24: damaged at 96\n"
             "  25: no boundary at 224\n"
             "  28: damaged at 128\n"
             "  31: no boundary at 224\n"
             "  32: damaged at 128\n"
             "  48: no boundary at 224\n");
}

static void wrong_field_before_a_time_ends_the_walk(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = true, from_time(300));
    TRACE_IS("flip(v), view.verify = true, from_time(300)\n"
             "  0: damaged at 0, boundary\n"
             "  16: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  17: damaged at 96, boundary\n"
             "  23: damaged at 192, boundary\n"
             "  24: damaged at 96, boundary\n"
             "  25: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  28: damaged at 128, boundary\n"
             "  31: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  32: damaged at 128, boundary\n"
             "  48: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  49: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  55: done at 320, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  56: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  57: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  61: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  63: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  64: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  80: done at 368, 2 of 125 bytes, 3 records: 11@128..14@368, boundary\n"
             "  96: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  97: done at 464, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  105: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n");
}

/* What lies in memory is not read again to see whether it is right. */
static void wrong_field_in_memory_before_a_time_is_believed(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), from_time(300));
    TRACE_IS("flip(v), from_time(300)\n"
             "  0: damaged at 0, boundary\n"
             "  9: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  17: damaged at 96, boundary\n"
             "  23: damaged at 192, boundary\n"
             "  24: damaged at 96, boundary\n"
             "  25: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  28: damaged at 128, boundary\n"
             "  29: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  32: damaged at 128, boundary\n"
             "  38: done at 272, 1 of 63 bytes, 3 records: 11@128..14@224, boundary\n"
             "  39: damaged at 128, boundary\n"
             "  41: done at 272, 1 of 63 bytes, 2 records: 12@128..14@224, boundary\n"
             "  42: done at 272, 1 of 63 bytes, 2 records: 10@128..12@224, boundary\n"
             "  43: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  47: damaged at 128, boundary\n"
             "  48: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  49: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  55: done at 320, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  56: done at 224, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  57: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  62: done at 496, 3 of 188 bytes, 4 records: 11@128..15@464, boundary\n"
             "  63: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  64: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  75: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  79: done at 272, 1 of 63 bytes, 2 records: 11@128..13@224, boundary\n"
             "  80: done at 368, 2 of 125 bytes, 3 records: 11@128..14@368, boundary\n"
             "  91: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  95: done at 368, 2 of 125 bytes, 3 records: 11@128..14@368, boundary\n"
             "  96: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  97: done at 464, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  105: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n");
}

static void what_was_given_up_is_passed_over(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = view.given_up = true);
    TRACE_IS("flip(v), view.verify = view.given_up = true\n"
             "  0: damaged at 0, boundary\n"
             "  9: damaged at 128, from 12, boundary\n"
             "  10: damaged at 128, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, from 11, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  17: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  23: done at 192, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  24: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  25: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  28: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  31: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  32: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  48: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  49: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  55: done at 320, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  56: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  57: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  61: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  63: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  64: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  80: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  96: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  97: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  105: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void what_was_given_up_before_an_offset_is_passed_over(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = view.given_up = true, target.offset = 13);
    TRACE_IS("flip(v), view.verify = view.given_up = true, target.offset = 13\n"
             "  0: damaged at 0, boundary\n"
             "  9: damaged at 128, boundary\n"
             "  11: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  17: damaged at 96, boundary\n"
             "  23: damaged at 192, boundary\n"
             "  24: damaged at 96, boundary\n"
             "  25: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  28: damaged at 128, boundary\n"
             "  29: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  32: damaged at 128, boundary\n"
             "  38: damaged at 272, from 14, boundary\n"
             "  39: damaged at 128, boundary\n"
             "  41: damaged at 272, from 14, boundary\n"
             "  42: damaged at 272, boundary\n"
             "  43: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  47: damaged at 128, boundary\n"
             "  48: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  49: damaged at 224, boundary\n"
             "  55: damaged at 320, boundary\n"
             "  56: damaged at 224, boundary\n"
             "  57: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  61: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, from 14, boundary\n"
             "  63: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  64: damaged at 272, boundary\n"
             "  73: damaged at 368, from 15, boundary\n"
             "  74: damaged at 368, boundary\n"
             "  75: done at 496, 1 of 62 bytes, 1 records: 14@368..15@464, from 14, boundary\n"
             "  79: damaged at 272, boundary\n"
             "  80: done at 368, 1 of 62 bytes, 1 records: 13@272..14@368, boundary\n"
             "  96: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  97: done at 464, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n"
             "  105: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, boundary\n");
}

static void what_was_given_up_before_a_place_is_passed_over(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), view.verify = view.given_up = true, is_of_kind(LEAT_TARGET_POSITION));
    TRACE_IS("flip(v), view.verify = view.given_up = true, is_of_kind(LEAT_TARGET_POSITION)\n"
             "  0: damaged at 0, boundary\n"
             "  9: damaged at 128, boundary\n"
             "  11: done at 496, 3 of 187 bytes, 4 records: 11@128..15@464, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  17: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  23: done at 192, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  24: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  25: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  28: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  31: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  32: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  48: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  49: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  55: done at 320, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  56: done at 224, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  57: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  61: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  63: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  64: done at 272, 2 of 125 bytes, 3 records: 10@0..13@224, boundary\n"
             "  80: done at 368, 3 of 187 bytes, 4 records: 10@0..14@368, boundary\n"
             "  96: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  97: done at 464, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  105: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n");
}

static void two_that_were_given_up_are_passed_over(void **state)
{
    (void)state;
    SWEEP(0, FLIPS, flip(v), flip(2 * 16 + 11), view.verify = view.given_up = true);
    TRACE_IS("flip(v), flip(2 * 16 + 11), view.verify = view.given_up = true\n"
             "  0: damaged at 0, boundary\n"
             "  9: damaged at 128, from 12, boundary\n"
             "  10: damaged at 128, boundary\n"
             "  11: done at 496, 2 of 124 bytes, 2 records: 13@272..15@464, from 13, boundary\n"
             "  15: damaged at 0, boundary\n"
             "  16: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  17: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  23: done at 192, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  24: done at 96, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  25: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  30: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  31: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n"
             "  43: done at 496, 4 of 249 bytes, 5 records: 10@0..15@464, boundary\n"
             "  44: done at 128, 1 of 62 bytes, 1 records: 10@0..11@96, boundary\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(wrong_field_in_memory_ends_the_walk),
        TRACE_TEST(wrong_field_in_a_file_ends_the_walk),
        TRACE_TEST(wrong_field_before_a_place_ends_the_walk),
        TRACE_TEST(wrong_field_around_a_place_is_no_boundary),
        TRACE_TEST(wrong_field_before_a_time_ends_the_walk),
        TRACE_TEST(wrong_field_in_memory_before_a_time_is_believed),
        TRACE_TEST(what_was_given_up_is_passed_over),
        TRACE_TEST(what_was_given_up_before_an_offset_is_passed_over),
        TRACE_TEST(what_was_given_up_before_a_place_is_passed_over),
        TRACE_TEST(two_that_were_given_up_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
