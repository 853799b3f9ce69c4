/* SPDX-License-Identifier: Apache-2.0 */
/* Store files at their bounds: which file a segment gets a place in where several may, or can't, and which is written
 * ahead next. */
#include "tests/store/slots_disk.h"

#include "base/node_log.h"

enum { STEP_UNITS = 64 }; /* of a store of up to 1 MiB */

/* So many files of one step, of which nothing is free. */
static void files_full(unsigned count)
{
    begin();
    for (unsigned i = 0; i < count; i++) {
        disk.files[i] = (struct leat_file){.there = true, .bytes = MIB};
        static const char *const names[] = {"0", "1", "2", "3"};
        disk.names[i] = names[i];
    }
    assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
    assert_int_equal(slots.count, count);
    disk.did[0] = 0;
}

static void free_in(unsigned number, uint32_t from, uint32_t units)
{
    leat_buddy_add(&slots.files[number]->buddy, from, units);
}

/* ---- a file's end ---- */

/* Goal: a file grows to its largest size and no further, and its last slot is given out; a segment that does not fit
 * before that end goes into the next file. */
static void places_end_where_a_file_may(void **state)
{
    (void)state;
    static const struct {
        uint32_t units, capacity, want_unit;
        const char *did;
    } rows[] = {
        {FILE_UNITS - 1, UNIT, FILE_UNITS - 1, "0 to 1048576K;"},
        {FILE_UNITS - 2, 2 * UNIT, FILE_UNITS - 2, "0 to 1048576K;"},
        {FILE_UNITS - 1, 2 * UNIT, 0, "create 1;dir;1 to 65536K;"},
        {FILE_UNITS - 3, 4 * UNIT, 0, "create 1;dir;1 to 65536K;"},
        {FILE_UNITS - 4097, UNIT, FILE_UNITS - 4097, "0 to 1048560K;"},
        {FILE_UNITS - 4095, UNIT, FILE_UNITS - 4095, "0 to 1048576K;"},
        {FILE_UNITS, UNIT, 0, "create 1;dir;1 to 65536K;"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        disk.files[0] = (struct leat_file){.there = true, .bytes = (uint64_t)rows[i].units * UNIT};
        disk.names[0] = "0";
        assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
        did("open 0;");
        struct leat_slot slot = take(rows[i].capacity, LEAT_DURABILITY_MEMORY);
        did(rows[i].did);
        assert_int_equal(slot.file->number, rows[i].want_unit == 0);
        assert_int_equal(slot.unit, rows[i].want_unit);
        assert_true(slots.files[0]->grown_units <= FILE_UNITS);
        counted();
        end();
    }
}

/* ---- which file ---- */

/* Goal: a slot comes from the first file with a free slot, and never from a file that failed or lacks its end. */
static void places_come_from_the_first_file_that_has_one(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4; what++) {
        files_full(3);
        if (what) free_in(0, 0, 8);
        free_in(1, 8, 8);
        free_in(2, 16, 8);
        if (what == 2) slots.files[0]->failed = true;
        if (what == 3) slots.files[0]->here_units = STEP_UNITS - 1;
        struct leat_slot slot = take(8 * UNIT, LEAT_DURABILITY_MEMORY);
        assert_int_equal(slot.file->number, what != 1);
        assert_int_equal(slot.unit, what == 1 ? 0 : 8);
        assert_int_equal(take(8 * UNIT, LEAT_DURABILITY_DISK).file->number, what == 1 ? 1 : 2);
        did("");
        end();
    }
}

/* Goal: a file that failed does not grow, nor does a file whose lost end has no room on the disk: the next file grows
 * instead. A file that gets its end back gives slots there again. */
static void places_are_made_in_a_file_that_can_grow(void **state)
{
    (void)state;
    files_full(2);
    slots.files[0]->failed = true;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 1);
    did("1 to 3072K;");
    end();
    files_full(2);
    disk.space = 4 * MIB;
    assert_int_equal(leat_slots_cover(&slots, 0, 6 * STEP_UNITS), LEAT_E_DISK_FULL);
    did("0 to 6144K;");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 1);
    did("0 to 6144K;1 to 3072K;");
    disk.space = 0;
    while (slots.files[1]->buddy.free_units)
        (void)take(UNIT, LEAT_DURABILITY_MEMORY);
    did("");
    struct leat_slot slot = take(UNIT, LEAT_DURABILITY_MEMORY);
    did("0 to 6144K;"); /* filled, and not grown */
    assert_int_equal(slot.file->number, 0);
    assert_int_equal(slot.unit, STEP_UNITS);
    counted();
    end();
}

/* Goal: an error of the disk that is no lack of space is answered, whoever asks: no other file is tried. */
static void places_are_refused_by_the_error_of_the_disk(void **state)
{
    (void)state;
    struct leat_slot slot = {0};
    for (unsigned i = 0; i < 2; i++) {
        enum leat_durability level = i ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY;
        files_full(2);
        disk.allocate_rc = LEAT_E_DISK;
        assert_int_equal(leat_slots_take(&slots, UNIT, level, &slot), LEAT_E_DISK);
        did("0 to 3072K;");
        assert_null(slot.file);
        assert_int_equal(slots.full_bytes, 0);
        assert_int_equal(slots.files[0]->grown_units, STEP_UNITS);
        assert_int_equal(slots.files[0]->buddy.free_units, 0);
        counted();
        disk.open_rc = LEAT_E_DISK; /* and of a file that would be new */
        slots.files[0]->failed = slots.files[1]->failed = true;
        assert_int_equal(leat_slots_take(&slots, UNIT, level, &slot), LEAT_E_DISK);
        did("create 2;");
        assert_false(slots.lacks_file);
        end();
    }
    /* Rows claim a place: in a file that can't be made, and where the disk fails. */
    files_full(1);
    disk.open_rc = LEAT_E_DISK;
    assert_int_equal(leat_slots_cover(&slots, 1, 4), LEAT_E_DISK);
    did("create 1;");
    disk.allocate_rc = LEAT_E_DISK;
    assert_int_equal(leat_slots_cover(&slots, 0, STEP_UNITS + 4), LEAT_E_DISK);
    did("0 to 1088K;");
    assert_int_equal(slots.files[0]->here_units, STEP_UNITS);
    counted();
    assert_int_equal(leat_slots_fill(&slots, slots.files[0]), LEAT_E_DISK);
    counted();
    end();
}

/* ---- what is written ahead ---- */

/* As if two files were in turn, the second of which has been used up. */
static void two_in_turn(unsigned ahead, unsigned before)
{
    slots.ahead = slots.files[ahead];
    slots.ahead_before = slots.files[before];
    slots.look_ahead = true;
}

/* Goal: the next step lies in the file of the step before the last; where that is full or has failed, in the first that
 * has room and nothing free that was not written, which is not the last step's. */
static void places_ahead_lie_in_the_next_file_in_turn(void **state)
{
    (void)state;
    enum { TURN, FAILED, LACKS, FULL, FREE_IN_FIRST, FIRST_FAILED, FIRST_IS_AHEAD, CASES };
    static const char *const want[CASES] = {"2 to 4096K;zero 1024K at 1024K;",
                                            "0 to 4096K;zero 1024K at 1024K;",
                                            "0 to 4096K;zero 1024K at 1024K;",
                                            "0 to 4096K;zero 1024K at 1024K;",
                                            "create 3;dir;3 to 3072K;zero 1024K at 0K;",
                                            "create 3;dir;3 to 3072K;zero 1024K at 0K;",
                                            "1 to 4096K;zero 1024K at 1024K;"};
    for (unsigned what = 0; what < CASES; what++) {
        files_full(3);
        two_in_turn(what == FIRST_IS_AHEAD ? 0 : 1, 2);
        if (what != TURN) slots.files[2]->failed = true;
        if (what == LACKS || what == FULL) slots.files[2]->failed = false;
        if (what == LACKS) slots.files[2]->here_units--;
        if (what == FULL) slots.files[2]->grown_units = slots.files[2]->here_units = FILE_UNITS;
        if (what == FREE_IN_FIRST) free_in(0, 5, 1);
        if (what == FIRST_FAILED) slots.files[0]->failed = true;
        struct leat_store_file *last = slots.ahead;
        assert_true(leat_slots_step(&slots));
        did(want[what]);
        assert_ptr_equal(slots.ahead_before, last);
        assert_int_equal(slots.ahead->number,
                         want[what][0] == 'c' ? 3 : (unsigned)want[what][0] - '0');
        zeroed(LEAT_OK);
        slots.files[2]->grown_units = slots.files[2]->found_units;
        end();
    }
}

/* Goal: nothing is written ahead while half a step is free in files that give places; and only what was looked for. */
static void places_ahead_are_made_when_half_a_step_is_left(void **state)
{
    (void)state;
    enum { HALF, LESS, IN_TWO, FAILED, LACKS, NOT_LOOKED_FOR, CASES };
    for (unsigned what = 0; what < CASES; what++) {
        files_full(2); /* a step is 2 MiB */
        two_in_turn(0, 1);
        slots.look_ahead = what != NOT_LOOKED_FOR;
        if (what == IN_TWO) free_in(0, 0, 16);
        free_in(1, 0, what == HALF ? 64 : what == LESS ? 63 : what == IN_TWO ? 48 : 64);
        if (what == FAILED) slots.files[1]->failed = true;
        if (what == LACKS) slots.files[1]->here_units--;
        bool begins = what == LESS || what == FAILED || what == LACKS;
        if (what == FAILED || what == LACKS) slots.ahead_before = NULL;
        assert_int_equal(leat_slots_step(&slots), begins);
        assert_int_equal(slots.zeroing != NULL, begins);
        assert_false(slots.look_ahead);
        if (begins) zeroed(LEAT_OK);
        end();
    }
}

/* Goal: a request that can't wait gets space that is not written yet, be there ever so little. */
static void places_not_written_serve_who_can_not_wait(void **state)
{
    (void)state;
    files_full(1);
    slots.ahead = slots.files[0];
    slots.files[0]->grown_units = slots.files[0]->here_units = 65;
    disk.files[0].bytes = 65 * UNIT;
    slots.fresh_from = 64;
    slots.fresh_end = 65;
    struct leat_slot slot = take(UNIT, LEAT_DURABILITY_DISK);
    assert_ptr_equal(slot.file, slots.files[0]);
    assert_int_equal(slot.unit, 64);
    did("");
    end();
}

/* Goal: a `disk` segment that gets no slot changes nothing of where space is written ahead. */
static void places_ahead_outlive_a_refusal(void **state)
{
    (void)state;
    struct leat_slot slot = {0};
    files_full(2);
    two_in_turn(0, 1);
    struct leat_store_file *ahead = slots.ahead, *before = slots.ahead_before;
    disk.space = 1;
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_DISK, &slot), LEAT_E_DISK_FULL);
    assert_ptr_equal(slots.ahead, ahead);
    assert_ptr_equal(slots.ahead_before, before);
    end();
}

/* Goal: a step is written in pieces of 1 MiB, and its last piece is as large as what is left. */
static void places_ahead_are_written_to_their_end(void **state)
{
    (void)state;
    files_full(1);
    slots.ahead = slots.files[0];
    slots.files[0]->grown_units = slots.files[0]->here_units = 64 + 65;
    disk.files[0].bytes = 129 * UNIT;
    slots.fresh_from = 64;
    slots.fresh_end = 129;
    slots.look_ahead = true; /* which finds that there is still some */
    assert_true(leat_slots_step(&slots));
    did("zero 1024K at 1024K;");
    assert_int_equal(slots.fresh_end, 129);
    assert_int_equal(slots.files[0]->buddy.free_units, 0);
    assert_false(leat_slots_step(&slots));
    zeroed(LEAT_OK);
    assert_int_equal(slots.files[0]->buddy.free_units, 64);
    assert_true(leat_slots_step(&slots));
    did("zero 16K at 2048K;");
    zeroed(LEAT_OK);
    assert_int_equal(slots.files[0]->buddy.free_units, 65);
    assert_int_equal(slots.fresh_from, slots.fresh_end);
    assert_null(slots.zeroing);
    end();
}

/* Goal: `memory` segments take of the files written ahead what is more than a step, and no less. */
static void places_of_one_step_are_spared(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++)
        for (unsigned before = 0; before < 2; before++) {
            files_full(3);
            two_in_turn(before, !before);
            slots.disk_bytes = MIB; /* so that a step is 64 units */
            free_in(0, 0, STEP_UNITS);
            slots.files[0]->buddy.free_units += more;
            struct leat_slot slot = take(UNIT, LEAT_DURABILITY_MEMORY);
            assert_int_equal(slot.file->number, more ? 0 : 2);
            slots.files[0]->buddy.free_units = 0;
            end();
        }
}

/* Goal: a slot of level `disk` comes from the older of the two files first, then from the other, then from other files;
 * only then is a fresh slot taken as it is, or a file grown, and its space is then written ahead. */
static void places_of_disk_segments_in_their_order(void **state)
{
    (void)state;
    files_full(4);
    two_in_turn(2, 1);
    for (unsigned i = 0; i < 3; i++)
        free_in(i, 0, 1);
    slots.files[2]->grown_units = slots.files[2]->here_units = 66;
    disk.files[2].bytes = 66 * UNIT;
    slots.fresh_from = 64;
    slots.fresh_end = 66;
    static const unsigned order[] = {1, 2, 0, 2, 2};
    for (unsigned i = 0; i < 5; i++) {
        slots.look_ahead = false;
        assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, order[i]);
        assert_true(slots.look_ahead);
        assert_int_equal(slots.fresh_end, i < 3 ? 66 : 0);
    }
    did("");
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0);
    assert_ptr_equal(slots.ahead, slots.files[0]);
    assert_ptr_equal(slots.ahead_before, slots.files[2]);
    disk.did[0] = 0;
    while (slots.files[0]->buddy.free_units)
        (void)take(UNIT, LEAT_DURABILITY_DISK);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 0); /* its own growth */
    assert_ptr_equal(slots.ahead_before, slots.files[2]);
    slots.look_ahead = false;
    free_in(3, 0, 1);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).file->number, 3);
    assert_false(slots.look_ahead); /* that is nothing of theirs */
    end();
}

/* Goal: a file that grows for a `disk` segment while another one's step is fresh: that is free for all then. */
static void places_that_were_fresh_are_not_lost(void **state)
{
    (void)state;
    struct leat_slot slot;
    files_full(2);
    two_in_turn(0, 1);
    slots.files[0]->grown_units = slots.files[0]->here_units = 68;
    disk.files[0].bytes = 68 * UNIT;
    slots.fresh_from = 66;
    slots.fresh_end = 68;
    /* Larger than what is fresh. */
    slot = take(4 * UNIT, LEAT_DURABILITY_DISK);
    assert_int_equal(slot.file->number, 0);
    assert_int_equal(slot.unit, 68);
    assert_int_equal(slots.fresh_end, 0);
    assert_int_equal(leat_buddy_free_in(&slots.files[0]->buddy, 66, 1), 2);
    end();
    /* Of a file that has failed it is nobody's. */
    files_full(2);
    two_in_turn(0, 1);
    slots.files[0]->failed = true;
    slots.fresh_from = 0;
    slots.fresh_end = 2;
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 1);
    assert_int_equal(slots.files[0]->buddy.free_units, 0);
    assert_int_equal(slots.fresh_end, 0);
    end();
}

/* ---- all files, and those that are not there ---- */

/* Goal: where each file that there may be is full or has failed the disk is full, also for what is written ahead. */
static void places_are_none_where_no_file_is_left(void **state)
{
    (void)state;
    struct leat_slot slot;
    files_full(2);
    slots.files[0]->failed = true;
    for (uint32_t i = 2; i < LEAT_STORE_FILES_MAX; i++)
        slots.files[i] = slots.files[0];
    slots.files[1]->grown_units = slots.files[1]->here_units = FILE_UNITS;
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    slots.ahead = slots.files[1];
    slots.look_ahead = true;
    assert_false(leat_slots_step(&slots));
    assert_null(slots.ahead);
    did("");
    slots.files[LEAT_STORE_FILES_MAX - 1] = slots.files[1]; /* the last one gives what it has */
    slots.files[1] = slots.files[0];
    slots.count = LEAT_STORE_FILES_MAX;
    leat_buddy_add(&slots.files[LEAT_STORE_FILES_MAX - 1]->buddy, 7, 1);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_MEMORY).unit, 7);
    slots.files[1] = slots.files[LEAT_STORE_FILES_MAX - 1];
    for (uint32_t i = 2; i < LEAT_STORE_FILES_MAX; i++)
        slots.files[i] = NULL;
    slots.files[1]->grown_units = slots.files[1]->here_units = STEP_UNITS;
    slots.count = 2;
    end();
}

/* Goal: a file that is not there, between others, has no places, and is made where one is needed. */
static void places_of_a_file_that_is_not_there(void **state)
{
    (void)state;
    begin();
    disk.files[1] = (struct leat_file){.there = true, .bytes = MIB};
    disk.names[0] = "1";
    assert_int_equal(leat_slots_open(&slots, NULL), LEAT_OK);
    assert_int_equal(slots.count, 2);
    assert_null(slots.files[0]);
    did("open 1;");
    free_in(1, 3, 1);
    assert_int_equal(take(UNIT, LEAT_DURABILITY_DISK).file->number, 1);
    slots.ahead = slots.files[1];
    assert_true(leat_slots_step(&slots));
    did("create 0;dir;0 to 1024K;zero 1024K at 0K;");
    zeroed(LEAT_OK);
    end();
}

/* Goal: a file that was there already, and can't be kept for want of memory, counts no more. */
static void places_of_a_file_that_is_let_go(void **state)
{
    (void)state;
    struct leat_slot slot;
    begin();
    disk.files[0] = (struct leat_file){.there = true, .bytes = MIB};
    disk.dir_rc = LEAT_E_NO_MEMORY;
    assert_int_equal(leat_slots_take(&slots, UNIT, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_NO_MEMORY);
    assert_null(slots.files[0]);
    assert_int_equal(slots.disk_bytes, 0);
    assert_false(disk.files[0].open);
    end();
}

/* Goal: where no file can be made for it nothing is written ahead, until somebody needs space. */
static void places_ahead_without_a_file(void **state)
{
    (void)state;
    for (unsigned memory = 0; memory < 2; memory++) {
        files_full(2);
        two_in_turn(0, 1);
        slots.files[0]->failed = slots.files[1]->failed = true;
        disk.open_rc = memory ? LEAT_E_NO_MEMORY : LEAT_E_DISK;
        assert_false(leat_slots_step(&slots));
        did("create 2;");
        assert_null(slots.ahead);
        assert_null(slots.zeroing);
        slots.look_ahead = true;
        assert_false(leat_slots_step(&slots));
        did("");
        end();
    }
}

/* Goal: for one segment without room the disk is asked once, for exactly that segment. */
static void places_that_are_refused_are_asked_for_once(void **state)
{
    (void)state;
    struct leat_slot slot;
    begin();
    disk.space = MIB;
    assert_int_equal(leat_slots_take(&slots, 8 * MIB, LEAT_DURABILITY_MEMORY, &slot),
                     LEAT_E_DISK_FULL);
    did("create 0;dir;0 to 8192K;");
    end();
}

static void on_warning(void *ctx, enum leat_node_log_level level, const char *line)
{
    *(unsigned *)ctx += level == LEAT_NODE_LOG_WARN && strstr(line, "store/0 has lost its end");
}

/* Goal: the loss of a file's end is logged once, however many rows claim a slot there. */
static void places_past_a_lost_end_are_told_once(void **state)
{
    (void)state;
    unsigned told = 0;
    files_full(1);
    disk.space = MIB;
    leat_node_log_set(on_warning, &told, LEAT_NODE_LOG_INFO);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(leat_slots_cover(&slots, 0, STEP_UNITS + i), LEAT_E_DISK_FULL);
        assert_int_equal(told, 1);
    }
    disk.space = 0;
    disk.allocate_rc = LEAT_E_DISK;
    slots.files[0]->here_units = slots.files[0]->grown_units;
    assert_int_equal(leat_slots_cover(&slots, 0, STEP_UNITS + 9), LEAT_E_DISK);
    assert_int_equal(told, 1); /* that is no lack of space */
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    end();
}

/* Goal: fresh slots are left to `disk` segments while the disk has room for other slots. */
static void places_that_are_fresh_are_not_for_memory_segments(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        files_full(2);
        two_in_turn(0, 1);
        slots.files[0]->grown_units = slots.files[0]->here_units = 68;
        disk.files[0].bytes = 68 * UNIT;
        slots.fresh_from = 66;
        slots.fresh_end = 68;
        slots.look_ahead = false;
        if (full) disk.space = disk.files[0].bytes + disk.files[1].bytes;
        struct leat_slot slot = take(UNIT, LEAT_DURABILITY_MEMORY);
        assert_int_equal(slot.file->number, full ? 0 : 2);
        assert_int_equal(slots.fresh_end, full ? 0 : 68);
        assert_ptr_equal(slots.ahead, slots.files[0]);
        assert_false(slots.look_ahead);
        end();
    }
}

/* ---- what is given back ---- */

static void on_space(void *ctx, enum leat_node_log_level level, const char *line)
{
    *(unsigned *)ctx += level == LEAT_NODE_LOG_INFO && strstr(line, "has space for segments again");
}

/* Goal: slots that are given back end the report of a full disk when as much as was refused is free in one piece, and
 * not before; that is logged once. */
static void places_given_back_say_so_in_one_piece(void **state)
{
    (void)state;
    for (unsigned lacks = 0; lacks < 2; lacks++) {
        files_full(1);
        struct leat_store_file *file = slots.files[0];
        unsigned told = 0;
        leat_node_log_set(on_space, &told, LEAT_NODE_LOG_INFO);
        slots.full_bytes = 4 * UNIT;
        if (lacks) file->here_units--;
        for (uint32_t unit = 0; unit < 64; unit += 2)
            leat_slots_give(&slots, (struct leat_slot){file, unit}, UNIT);
        leat_slots_give(&slots, (struct leat_slot){file, 1}, UNIT);
        leat_slots_give(&slots, (struct leat_slot){file, 5}, UNIT);
        assert_int_equal(slots.full_bytes, 4 * UNIT);
        leat_slots_give(&slots, (struct leat_slot){file, 3}, UNIT);
        assert_int_equal(slots.full_bytes, lacks ? 4 * UNIT : 0);
        assert_int_equal(file->buddy.free_units, 35);
        leat_slots_give(&slots, (struct leat_slot){file, 7}, UNIT);
        assert_int_equal(told, !lacks);
        leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_end_where_a_file_may),
        cmocka_unit_test(places_come_from_the_first_file_that_has_one),
        cmocka_unit_test(places_are_made_in_a_file_that_can_grow),
        cmocka_unit_test(places_are_refused_by_the_error_of_the_disk),
        cmocka_unit_test(places_ahead_lie_in_the_next_file_in_turn),
        cmocka_unit_test(places_ahead_are_made_when_half_a_step_is_left),
        cmocka_unit_test(places_not_written_serve_who_can_not_wait),
        cmocka_unit_test(places_ahead_outlive_a_refusal),
        cmocka_unit_test(places_ahead_are_written_to_their_end),
        cmocka_unit_test(places_of_one_step_are_spared),
        cmocka_unit_test(places_of_disk_segments_in_their_order),
        cmocka_unit_test(places_that_were_fresh_are_not_lost),
        cmocka_unit_test(places_are_none_where_no_file_is_left),
        cmocka_unit_test(places_of_a_file_that_is_not_there),
        cmocka_unit_test(places_of_a_file_that_is_let_go),
        cmocka_unit_test(places_ahead_without_a_file),
        cmocka_unit_test(places_that_are_refused_are_asked_for_once),
        cmocka_unit_test(places_past_a_lost_end_are_told_once),
        cmocka_unit_test(places_that_are_fresh_are_not_for_memory_segments),
        cmocka_unit_test(places_given_back_say_so_in_one_piece),
    };
    return cmocka_run_group_tests_name("store places", tests, NULL, NULL);
}
