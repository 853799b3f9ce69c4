/* SPDX-License-Identifier: Apache-2.0 */
/* Store files: what is asked of the disk, and where segments get their places. */
#include "tests/store/slots_disk.h"

/* Goal: a store doubles from 1 MiB to steps of 64 MiB, and a file that is full is followed by the next. */
static void slots_grow_as_the_store_does(void **state)
{
    (void)state;
    begin();
    char want[4096] = "create 0;dir;";
    uint64_t grown = 0, at = 0, all = 0;
    unsigned number = 0;
    for (unsigned i = 0; i < 65536 * 2 / 512 + 3; i++) { /* of 8 MiB each */
        if (at + 8 * MIB > UINT64_C(1024) * MIB) {
            number++;
            grown = at = 0;
            snprintf(want + strlen(want), 64, "create %u;dir;", number);
        }
        if (at + 8 * MIB > grown) {
            uint64_t step = all < MIB ? MIB : all > 64 * MIB ? 64 * MIB : all;
            uint64_t to = grown + step < at + 8 * MIB ? at + 8 * MIB : grown + step;
            if (to > UINT64_C(1024) * MIB) to = UINT64_C(1024) * MIB;
            all += to - grown;
            grown = to;
            snprintf(want + strlen(want), 64, "%u to %lluK;", number,
                     (unsigned long long)grown / KIB);
        }
        struct leat_slot slot = take(8 * MIB, LEAT_DURABILITY_MEMORY);
        assert_int_equal(slot.file->number, number);
        assert_int_equal((uint64_t)slot.unit * UNIT, at);
        at += 8 * MIB;
    }
    did(want);
    counted();
    assert_int_equal(slots.count, 3);
    end();
    begin(); /* and small ones, of which many fit into each step */
    for (unsigned i = 0; i < 257; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).unit, i);
    did("create 0;dir;0 to 1024K;0 to 2048K;0 to 4096K;0 to 8192K;");
    counted();
    /* One that is larger than what is left of a step begins at a multiple of its size. */
    assert_int_equal(take(4 * MIB, LEAT_DURABILITY_MEMORY).unit, 512);
    did("0 to 16384K;");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).unit, 257);
    did("");
    end();
}

/* Goal: where the disk has no room for a step, the file grows by one segment; where there is no room for that, the disk
 * is full. The disk counts as full until as much is free again as was refused. */
static void slots_take_what_the_disk_has(void **state)
{
    (void)state;
    struct leat_slot slot, first, last[4];
    begin();
    disk.space = 1536 * KIB;
    for (unsigned i = 0; i < 64; i++)
        (void)take(UNIT, LEAT_DURABILITY_MEMORY);
    did("create 0;dir;0 to 1024K;");
    first = take(256 * KIB, LEAT_DURABILITY_MEMORY);
    did("0 to 2048K;0 to 1280K;");
    assert_int_equal(slots.full_bytes, 0);
    assert_int_equal(leat_slots_take(&slots, 512 * KIB, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    did("0 to 2560K;0 to 2048K;"); /* aligned: 1,536 and 512 more */
    assert_int_equal(slots.full_bytes, 512 * KIB);
    for (unsigned i = 0; i < 4; i++)
        last[i] = take(64 * KIB, LEAT_DURABILITY_MEMORY); /* smaller ones still fit */
    did("0 to 2560K;0 to 1344K;0 to 2688K;0 to 1408K;0 to 2816K;0 to 1472K;0 to 2944K;0 to 1536K;");
    assert_int_equal(slots.full_bytes, 512 * KIB); /* which says nothing of larger ones */
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    assert_int_equal(slots.full_bytes, 512 * KIB);
    for (unsigned i = 0; i < 4; i++)
        leat_slots_give(&slots, last[i], 64 * KIB);
    assert_int_equal(slots.full_bytes, 512 * KIB);
    leat_slots_give(&slots, first, 256 * KIB);
    assert_int_equal(slots.full_bytes, 0); /* together they are large enough */
    assert_int_equal(slots.files[0]->buddy.free_units, 32);
    counted();
    end();
}

/* Goal: after a refusal for lack of space, a segment at least as large as the refused segment that gets a slot ends the
 * report of a full disk. A smaller segment does not, and neither does a slot that is given back in a failed file. */
static void slots_full_disk_is_told_by_size(void **state)
{
    (void)state;
    struct leat_slot slot, kept;
    begin();
    disk.space = MIB;
    kept = take(MIB, LEAT_DURABILITY_MEMORY);
    assert_int_equal(leat_slots_take(&slots, 128 * KIB, LEAT_DURABILITY_DISK, &slot),
                     LEAT_E_DISK_FULL);
    disk.space = 4 * MIB;
    (void)take(64 * KIB, LEAT_DURABILITY_DISK);
    assert_int_equal(slots.full_bytes, 128 * KIB);
    (void)take(128 * KIB, LEAT_DURABILITY_DISK);
    assert_int_equal(slots.full_bytes, 0);
    slots.full_bytes = 128 * KIB;
    slots.files[0]->failed = true;
    leat_slots_give(&slots, kept, MIB);
    assert_int_equal(slots.full_bytes, 128 * KIB);
    slots.files[0]->failed = false;
    disk.allocate_rc = LEAT_E_DISK;
    assert_int_equal(leat_slots_take(&slots, 8 * MIB, LEAT_DURABILITY_MEMORY, &slot), LEAT_E_DISK);
    assert_int_equal(slots.full_bytes, 128 * KIB); /* that is no lack of space */
    end();
}

/* Goal: only the directory's names of store files are opened; a file's size is rounded down to whole slots, and counts
 * up to the largest size. */
static void slots_open_what_is_theirs(void **state)
{
    (void)state;
    static const char *const names[] = {"1",  "01", "x",    "1x",          "",  "-1",
                                        "+1", " 1", "4096", "99999999999", NULL};
    static const struct {
        uint64_t bytes;
        uint32_t units;
    } sizes[] = {{0, 0},
                 {UNIT - 1, 0},
                 {UNIT, 1},
                 {2 * UNIT - 1, 1},
                 {UINT64_C(1024) * MIB - 1, FILE_UNITS - 1},
                 {UINT64_C(1024) * MIB, FILE_UNITS},
                 {UINT64_C(1024) * MIB + UNIT, FILE_UNITS},
                 {UINT64_C(5000) * MIB, FILE_UNITS}};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        begin();
        memcpy(disk.names, names, sizeof names);
        disk.files[1] = (struct leat_file){.there = true, .bytes = sizes[i].bytes};
        assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
        did("open 1;");
        assert_int_equal(slots.count, 2);
        assert_null(slots.files[0]);
        const struct leat_store_file *file = slots.files[1];
        assert_int_equal(file->number, 1);
        assert_int_equal(file->found_units, sizes[i].units);
        assert_int_equal(file->grown_units, sizes[i].units);
        assert_int_equal(file->here_units, sizes[i].units);
        assert_int_equal(file->buddy.free_units, 0); /* rows are asked first */
        counted();
        end();
    }
    begin();
    disk.names[0] = "4095";
    disk.files[4095 % FILES].there = true;
    assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
    assert_int_equal(slots.count, 4096);
    end();
}

/* Goal: a file that can't be opened is refused with its own code and sentence, and the first refusal of several ends
 * the start. */
static void slots_open_says_why_not(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4; what++) {
        begin();
        struct leat_error error = {0};
        disk.files[0].there = disk.files[1].there = true;
        disk.names[0] = "0";
        disk.names[1] = "1";
        leat_err *const rc[] = {&disk.make_rc, &disk.list_rc, &disk.open_rc, &disk.size_rc};
        *rc[what] = LEAT_E_DISK;
        assert_int_equal(leat_slots_open(&slots, &error), LEAT_E_DISK);
        static const char *const says[] = {"cannot make the directory 'store'",
                                           "cannot list the directory 'store'", "can't be opened",
                                           ""};
        assert_string_equal(error.text, says[what]);
        did(what < 2 ? "" : "open 0;");
        assert_int_equal(slots.count, 0);
        end();
    }
    for (uint64_t n = 1; n <= 2; n++) { /* the file, and its blocks */
        begin();
        disk.files[0].there = true;
        disk.names[0] = "0";
        leat_mem_fail_at(n);
        assert_int_equal(leat_slots_open(&slots, NULL), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_null(slots.files[0]);
        end();
    }
    leat_mem_fail_at(1);
    assert_int_equal(leat_slots_init(&slots, &disk.port), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    leat_slots_fini(&slots);
}

/* Goal: a file that can't be made for want of memory is tried again by the next who needs it; one whose name is not
 * sure to last is not used. */
static void slots_file_that_can_not_be_made(void **state)
{
    (void)state;
    struct leat_slot slot;
    for (unsigned dir = 0; dir < 2; dir++) {
        begin();
        *(dir ? &disk.dir_rc : &disk.open_rc) = LEAT_E_NO_MEMORY;
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                             LEAT_E_NO_MEMORY);
            did(dir ? "create 0;dir;" : "create 0;");
            assert_null(slots.files[0]);
            assert_true(slots.lacks_file);
            assert_int_equal(slots.disk_bytes, 0);
            assert_false(disk.files[0].open);
        }
        disk.dir_rc = disk.open_rc = LEAT_OK;
        (void)take(UNIT, LEAT_DURABILITY_MEMORY);
        did("create 0;dir;0 to 1024K;");
        assert_false(slots.lacks_file);
        end();
    }
    begin();
    disk.dir_rc = LEAT_E_DISK;
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot), LEAT_E_DISK);
    assert_true(slots.files[0]->failed);
    disk.dir_rc = LEAT_OK;
    disk.did[0] = 0;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 1);
    did("create 1;dir;1 to 1024K;");
    end();
}

/* Goal: a place that a row claims past a file's end is the file's again, or counts as its own and is given to nobody
 * until it is there. */
static void slots_cover_what_rows_claim(void **state)
{
    (void)state;
    begin_with(64 * UNIT, 0);
    assert_int_equal(leat_slots_cover(&slots, 0, 64), LEAT_OK); /* it has that */
    did("");
    assert_int_equal(leat_slots_cover(&slots, 0, 65), LEAT_OK);
    did("0 to 1040K;");
    struct leat_store_file *file = slots.files[0];
    assert_int_equal(file->grown_units, 65);
    assert_int_equal(file->here_units, 65);
    assert_int_equal(file->found_units, 64);
    assert_int_equal(file->buddy.free_units, 65);
    counted();
    assert_int_equal(leat_slots_cover(&slots, 2, 4), LEAT_OK); /* a file that is not there */
    did("create 2;dir;2 to 64K;");
    assert_int_equal(slots.files[2]->here_units, 4);
    disk.space = 69 * UNIT;
    assert_int_equal(leat_slots_cover(&slots, 0, 80), LEAT_E_DISK_FULL);
    did("0 to 1280K;");
    assert_int_equal(file->grown_units, 80);
    assert_int_equal(file->here_units, 65);
    counted();
    assert_int_equal(leat_slots_cover(&slots, 0, 80), LEAT_OK); /* it has been claimed already */
    did("");
    end();
}

/* Goal: a file that lacks its end gives no slot until it has been extended again. Each request that finds no other slot
 * tries to extend that file. */
static void slots_lost_end_is_asked_for_again(void **state)
{
    (void)state;
    struct leat_slot slot;
    begin_with(4 * UNIT, 4 * UNIT);
    disk.space = 8 * UNIT;
    assert_int_equal(leat_slots_cover(&slots, 0, 8), LEAT_E_DISK_FULL);
    did("0 to 128K;");
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 1);
    did("");
    /* No other place: it is asked for, and then the other file is to grow; a new one would be next. */
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    did("0 to 128K;1 to 1088K;1 to 80K;");
    assert_int_equal(slots.full_bytes, UNIT);
    disk.space = 12 * UNIT;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 0);
    did("0 to 128K;");
    assert_int_equal(slots.full_bytes, 0);
    assert_int_equal(slots.files[0]->here_units, 8);
    assert_int_equal(slots.files[0]->buddy.free_units, 7);
    counted();
    assert_int_equal(leat_slots_fill(&slots, slots.files[0]), LEAT_OK); /* nothing lacks */
    did("");
    end();
}

/* Goal: with the file of the highest number the table of files is full, and a look for space ends with the table. The
 * slot behind the table is seen by a sanitizer. */
static void slots_look_ends_with_the_last_file(void **state)
{
    (void)state;
    begin();
    assert_int_equal(leat_slots_cover(&slots, LEAT_STORE_FILES_MAX - 1, 4), LEAT_OK);
    did("create 4095;dir;3 to 64K;");
    assert_int_equal(slots.count, LEAT_STORE_FILES_MAX);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, LEAT_STORE_FILES_MAX - 1);
    did("");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 0);
    did("create 0;dir;0 to 1024K;");
    end();
}

/* ---- written ahead ---- */

static void ahead_is(int ahead, int before, uint32_t from, uint32_t fresh_end)
{
    assert_ptr_equal(slots.ahead, ahead < 0 ? NULL : slots.files[ahead]);
    assert_ptr_equal(slots.ahead_before, before < 0 ? NULL : slots.files[before]);
    assert_int_equal(slots.fresh_from, from);
    assert_int_equal(slots.fresh_end, fresh_end);
}

/* Its first 33 places are taken, and the second file is being written ahead. */
static void begin_ahead(void)
{
    begin();
    assert_false(leat_slots_step(&slots)); /* nobody needs any */
    (void)take(UNIT, LEAT_DURABILITY_DISK);
    did("create 0;dir;0 to 1024K;");
    ahead_is(0, -1, 0, 0);
    for (unsigned i = 0; i < 31; i++) {
        assert_false(leat_slots_step(&slots));
        (void)take(UNIT, LEAT_DURABILITY_DISK);
    }
    assert_false(leat_slots_step(&slots)); /* half a step is free */
    did("");
    (void)take(UNIT, LEAT_DURABILITY_DISK);
    assert_true(leat_slots_step(&slots));
    did("create 1;dir;1 to 1024K;zero 1024K at 0K;");
    ahead_is(1, 0, 64, 64);
    assert_false(leat_slots_step(&slots)); /* nothing was taken since */
    did("");
}

/* Goal: space for `disk` segments is written before it is given out: in two files in turn, in pieces of 1 MiB, one at a
 * time, when less than half a step is free. */
static void slots_write_ahead_in_two_files_in_turn(void **state)
{
    (void)state;
    begin_ahead();
    assert_int_equal(slots.files[1]->buddy.free_units, 0); /* until it is written */
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0);
    assert_false(leat_slots_step(&slots)); /* one piece at a time; but the next step is there */
    did("0 to 3072K;");
    ahead_is(0, 1, 64, 192);
    zeroed(LEAT_OK);
    assert_int_equal(slots.files[1]->buddy.free_units, 64);
    assert_true(leat_slots_step(&slots));
    did("zero 1024K at 1024K;");
    ahead_is(0, 1, 128, 192);
    zeroed(LEAT_OK);
    assert_int_equal(slots.files[0]->buddy.free_units, 30 + 64);
    assert_true(leat_slots_step(&slots));
    did("zero 1024K at 2048K;");
    zeroed(LEAT_OK);
    ahead_is(0, 1, 192, 192);
    assert_false(leat_slots_step(&slots));
    assert_int_equal(slots.files[0]->buddy.free_units, 30 + 128);
    /* The file of the step before is used up first, then the other; others' files come after. */
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 1);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0);
    did("");
    counted();
    end();
}

/* Goal: a request gets the space that is there, written or not; a failed writing of zeros costs the space that it was
 * for and nothing else. */
static void slots_write_ahead_that_fails_or_is_late(void **state)
{
    (void)state;
    begin_ahead();
    for (unsigned i = 0; i < 31; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0);
    assert_false(
        leat_slots_step(&slots)); /* the first file's next step, while the second's is written */
    did("0 to 3072K;");
    ahead_is(0, 1, 64, 192);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).unit, 64); /* as it is */
    ahead_is(0, 1, 0, 0);
    assert_int_equal(slots.files[0]->buddy.free_units, 127);
    did("");
    zeroed(LEAT_E_DISK); /* of the second file, which is not the one ahead any more */
    ahead_is(0, 1, 0, 0);
    assert_int_equal(slots.files[1]->buddy.free_units, 0);
    end();

    begin_ahead();
    zeroed(LEAT_E_DISK);
    ahead_is(-1, 0, 0, 0);
    assert_int_equal(slots.files[1]->buddy.free_units, 0);
    assert_null(slots.zeroing);
    for (unsigned i = 0; i < 31; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0);
    assert_false(leat_slots_step(&slots));
    did("");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number,
                     0); /* and begins anew with what grows */
    did("0 to 3072K;");
    ahead_is(0, -1, 0, 0);
    end();

    begin_ahead();
    slots.files[1]->failed = true;
    zeroed(LEAT_OK);
    slots.fresh_from = 0; /* as if it had not all been written */
    for (unsigned i = 0; i < 31; i++)
        (void)take(UNIT, LEAT_DURABILITY_DISK);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number,
                     0); /* a failed file's is nobody's */
    did("0 to 3072K;");
    end();
}

/* Goal: the end is near: nothing is begun. Where the disk has no room nothing is written ahead until it grows again. */
static void slots_write_ahead_stops(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 33; i++)
        (void)take(UNIT, LEAT_DURABILITY_DISK);
    slots.no_more = true;
    disk.did[0] = 0;
    assert_false(leat_slots_step(&slots));
    did("");
    slots.no_more = false;
    disk.space = MIB;
    assert_false(leat_slots_step(&slots));
    did("create 1;dir;1 to 1024K;");
    ahead_is(-1, -1, 0, 0);
    assert_false(leat_slots_step(&slots));
    did("");
    end();
}

/* Goal: the free slots of a failed file are of no use. */
static void slots_write_ahead_beside_a_file_that_failed(void **state)
{
    (void)state;
    begin();
    (void)take(UNIT, LEAT_DURABILITY_DISK);
    did("create 0;dir;0 to 1024K;");
    slots.look_ahead = true;
    assert_false(leat_slots_step(&slots));
    slots.files[0]->failed = true;
    slots.look_ahead = true;
    assert_true(leat_slots_step(&slots));
    did("create 1;dir;1 to 1024K;zero 1024K at 0K;");
    zeroed(LEAT_OK);
    end();
}

/* Goal: `memory` segments leave the last steps of what is written ahead alone, and take another file; where the disk is
 * full all there is is for all. */
static void slots_memory_spares_what_is_written(void **state)
{
    (void)state;
    struct leat_slot slot;
    begin_ahead();
    zeroed(LEAT_OK);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 2);
    did("create 2;dir;2 to 2048K;");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 2);
    /* More than a step of them is free: that is for all. */
    slots.disk_bytes = 0;
    slots.files[1]->buddy.free_units = 65;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 1);
    slots.files[1]->buddy.free_units = 63;
    slots.disk_bytes = UINT64_C(4) * MIB;
    for (unsigned i = 0; i < 126; i++)
        assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 2);
    did("");
    disk.space = 4 * MIB;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 0);
    did("2 to 6144K;2 to 2064K;");
    for (unsigned i = 0; i < 30 + 63; i++)
        (void)take(UNIT, LEAT_DURABILITY_MEMORY);
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    /* What was to be written counts as well, once nothing else is left. */
    slots.ahead = slots.files[2];
    slots.fresh_from = slots.files[2]->grown_units - 1;
    slots.fresh_end = slots.files[2]->grown_units;
    leat_slots_give(&slots, (struct leat_slot){slots.files[2], slots.fresh_from}, UNIT);
    assert_true(leat_buddy_claim(&slots.files[2]->buddy, slots.fresh_from, 0));
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).unit, 127);
    ahead_is(2, 0, 0, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_grow_as_the_store_does),
        cmocka_unit_test(slots_take_what_the_disk_has),
        cmocka_unit_test(slots_full_disk_is_told_by_size),
        cmocka_unit_test(slots_open_what_is_theirs),
        cmocka_unit_test(slots_open_says_why_not),
        cmocka_unit_test(slots_file_that_can_not_be_made),
        cmocka_unit_test(slots_cover_what_rows_claim),
        cmocka_unit_test(slots_lost_end_is_asked_for_again),
        cmocka_unit_test(slots_look_ends_with_the_last_file),
        cmocka_unit_test(slots_write_ahead_in_two_files_in_turn),
        cmocka_unit_test(slots_write_ahead_that_fails_or_is_late),
        cmocka_unit_test(slots_write_ahead_stops),
        cmocka_unit_test(slots_write_ahead_beside_a_file_that_failed),
        cmocka_unit_test(slots_memory_spares_what_is_written),
    };
    return cmocka_run_group_tests_name("store slots", tests, NULL, NULL);
}
