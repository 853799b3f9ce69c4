/* SPDX-License-Identifier: Apache-2.0 */
/* Starts whose disk, memory or bytes are damaged so that only one rule notices: a read that failed and left bytes,
 * other bytes of the same length, acks that only a later trailer names, no memory for the result. */
#include "tests/store/subject.h"

#include "tests/pages.h"

/* ---- reads that fail ---- */

static leat_err (*disk_run)(void *ctx, struct leat_disk_io *io);
static unsigned reads_good;
/* After so many reads of a store file each fails, having brought what is there. */
static leat_err run_and_fail(void *ctx, struct leat_disk_io *io)
{
    leat_err rc = disk_run(ctx, io);
    if (io->kind != LEAT_DISK_READ || strcmp(io->file->name, "store/0") != 0) return rc;
    if (reads_good) {
        reads_good--;
        return rc;
    }
    return io->rc = LEAT_E_DISK;
}

/* Goal: bytes that a failed read has left in memory are not used, whatever they are. */
static void spoilt_read_brings_nothing(void **state)
{
    (void)state;
    static const struct {
        enum leat_durability durability;
        enum made made;
        unsigned reads;
        enum leat_segment_state state;
        bool corrupt;
    } rows[] = {
        {DISK, RESERVED, 0, LEAT_SEGMENT_OPEN, false},
        {DISK, COMMITTED, 0, LEAT_SEGMENT_OPEN, false},
        {DISK, COMMITTED, 1, LEAT_SEGMENT_OPEN, false}, /* memory was looked at in between */
        {DISK, HIBERNATED, 0, LEAT_SEGMENT_HIBERNATED, false},
        {MEM, HIBERNATED, 0, LEAT_SEGMENT_HIBERNATED, false},
        {MEM, COMMITTED, 0, LEAT_SEGMENT_OPEN, false},
        {MEM, CLOSED, 0, LEAT_SEGMENT_CLOSED, true},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct subject it = make(1 + i, rows[i].durability, rows[i].made, NULL);
        if (rows[i].made == CLOSED) memcpy(in_file(&it), in_memory(&it), CAPACITY);
        disk_run = it.bench->world.disk.run;
        it.bench->world.disk.run = run_and_fail;
        reads_good = rows[i].reads;
        start_again(&it, false);
        const struct leat_found *found = found_of(it.bench, it.mine);
        assert_int_equal(found->kind, LEAT_FOUND_LOST);
        assert_int_equal(found->seg->state, rows[i].state);
        assert_non_null(strstr(found->why, "cannot be read from store/0"));
        assert_int_equal(found->scan.bytes, 0);
        assert_false(found->scan.started);
        assert_int_equal(leat_segment_is_damaged(found->seg), rows[i].corrupt);
        assert_int_equal(found->seg->integrity == LEAT_INTEGRITY_MISSING, rows[i].corrupt);
        assert_false(found->seg->flushed);
        bench_free(it.bench);
    }
}

/* ---- what was found damaged before ---- */

/* Goal: a segment that was found corrupt is whole again if its slot has exactly the bytes that its row names, under the
 * segment's own ids. Else the segment is closed, flushed and corrupt, and the start reports how many bytes are
 * valid. */
static void spoilt_segment_is_looked_at_again(void **state)
{
    (void)state;
    enum { WHOLE, UNREAD, OTHER_BYTES, SHORTER, ANOTHERS, ZEROS, CASES };
    for (unsigned what = 0; what < CASES; what++) {
        struct subject it = make(20 + what, DISK, CLOSED, NULL);
        struct leat_prefix_id prefix_id = last_prefix_id(it.mine);
        fake_kill(&it.bench->world);
        struct leat_row *row = row_in_file(&it);
        row->more = LEAT_ROW_DAMAGED;
        row->written_ms = 5; /* so that nothing else of it is written */
        if (what == OTHER_BYTES) row->prefix_id_crc ^= 1;
        if (what == ANOTHERS) row->log++;
        leat_row_seal(row, it.row);
        it.mine->log.log += what == ANOTHERS;
        if (what == SHORTER) in_file(&it)[prefix_id.bytes - 8] ^= 1;
        if (what == ZEROS) memset(in_file(&it), 0, CAPACITY);
        if (what == UNREAD) {
            disk_run = it.bench->world.disk.run;
            it.bench->world.disk.run = run_and_fail;
            reads_good = 0;
        }
        start_again(&it, false);
        const struct leat_found *found = found_of(it.bench, it.mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->state, LEAT_SEGMENT_CLOSED);
        assert_true(found->seg->flushed);
        assert_int_equal(leat_segment_is_damaged(found->seg), what != WHOLE);
        assert_int_equal(found->scan.bytes, prefix_id.bytes);
        const struct leat_held *held = leat_held_of(found->seg);
        assert_int_equal(held->in_file_bytes, prefix_id.bytes);
        assert_int_equal(held->damaged, what != WHOLE);
        assert_int_equal(row_in_file(&it)->more, what == WHOLE ? 0 : LEAT_ROW_DAMAGED);
        assert_int_equal(row_in_file(&it)->flags & LEAT_ROW_FLUSHED, LEAT_ROW_FLUSHED);
        assert_int_equal(it.bench->store->complaint_count, what != WHOLE);
        if (what != WHOLE) {
            uint32_t valid = what == OTHER_BYTES ? prefix_id.bytes
                             : what == SHORTER
                                 ? it.mine->prefix_ids[it.mine->prefix_id_count - 2].bytes
                                 : 0;
            char says[80];
            snprintf(says, sizeof says, "store/0 is damaged: %u of %u bytes of it are valid", valid,
                     prefix_id.bytes);
            assert_non_null(strstr(it.bench->store->complaints[0], says));
        }
        bench_free(it.bench);
    }
}

/* ---- what was acked ---- */

/* Goal: the acked bytes are the bytes that the row names or that a later trailer names, whichever are more: a fault
 * below that end is damage, and never an end. */
static void spoilt_bytes_that_a_trailer_names_are_damage(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 3; what++) { /* nothing; below what is acked; behind it */
        struct subject it = make(40 + what, DISK, COMMITTED, NULL);
        uint32_t in_row = it.committed;
        struct mine *mine = it.mine;
        for (unsigned i = 0; i < 2; i++) {
            assert_true(write_some(mine, 2));
            assert_int_equal(do_now(it.bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        }
        assert_int_equal(row_in_file(&it)->state, LEAT_SEGMENT_OPEN);
        assert_int_equal(row_in_file(&it)->prefix_id_bytes, in_row);
        uint32_t acked = mine->prefix_ids[mine->prefix_id_count - 2].bytes;
        if (what == 1) in_file(&it)[in_row + 40] ^= 1;
        if (what == 2) in_file(&it)[acked + 40] ^= 1;
        start_again(&it, false);
        const struct leat_found *found = found_of(it.bench, mine);
        assert_int_equal(found->kind, what == 1 ? LEAT_FOUND_LOST : LEAT_FOUND_MARK);
        assert_int_equal(found->scan.damaged, what == 1);
        assert_int_equal(found->scan.acked_bytes, acked);
        assert_int_equal(found->scan.bytes, what == 0   ? last_prefix_id(mine).bytes
                                            : what == 1 ? in_row
                                                        : acked);
        assert_int_equal(found->seg->integrity == LEAT_INTEGRITY_TORN, what == 2);
        bench_free(it.bench);
    }
}

/* Goal: other bytes in a slot are only reported as such: the segment counts as not started, and they are no part of
 * it. */
static void change_log(struct leat_segment_header *header)
{
    header->log++;
}
static void spoilt_header_is_of_no_segment(void **state)
{
    (void)state;
    struct subject it = make(45, DISK, COMMITTED, change_log);
    start_again(&it, false);
    const struct leat_found *found =
        found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "its header does not match");
    assert_false(found->scan.started);
    assert_int_equal(found->seg->prefix_id.crc, 0);
    bench_free(it.bench);
}

/* Goal: a reservation that was found missing had begun, as far as anybody knows: one whose start entry is not there is
 * lost, and not free. */
static void spoilt_start_entry_is_a_loss(void **state)
{
    (void)state;
    for (unsigned noted = 0; noted < 2; noted++) {
        struct subject it = make(46 + noted, DISK, RESERVED, NULL);
        fake_kill(&it.bench->world);
        row_in_file(&it)->more = noted ? LEAT_ROW_DAMAGED : 0;
        leat_row_seal(row_in_file(&it), it.row);
        memcpy(in_file(&it), in_memory(&it), CAPACITY); /* all of it is there again */
        start_again(&it, false);
        const struct leat_found *found =
            found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL);
        assert_false(leat_held_of(found->seg)->damaged);
        fake_kill(&it.bench->world);
        struct leat_entry entry; /* its header alone */
        memcpy(&entry, in_file(&it), sizeof entry);
        uint32_t bytes = (uint32_t)leat_entry_bytes(entry.payload_bytes);
        memset(in_file(&it) + bytes, 0, CAPACITY - bytes);
        for (unsigned fails = 0; fails < 1 + noted; fails++) {
            bench_drop_store(it.bench);
            it.bench->world.arena.inherited_bytes = 0;
            leat_mem_fail_at(fails ? leat_mem_calls() : UINT64_MAX);
            leat_err rc = bench_open(it.bench, NULL);
            assert_int_equal(rc, fails ? LEAT_E_NO_MEMORY : LEAT_OK);
            if (fails == 0)
                (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING,
                               noted ? "its start entry is not valid" : NULL);
        }
        leat_mem_fail_at(0);
        bench_free(it.bench);
    }
}

/* Goal: the memory of a reservation of level `memory` is gone, so nobody knows whether the reservation had begun:
 * another segment's bytes in its slot in the file, closed and whole, say nothing of it. */
static void spoilt_place_of_a_memory_segment_says_nothing(void **state)
{
    (void)state;
    struct subject it = make(49, MEM, RESERVED, change_log);
    write_close(it.mine);
    assert_int_equal(do_now(it.bench, it.mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_int_equal(row_in_file(&it)->state, LEAT_SEGMENT_RESERVED);
    start_again(&it, false);
    (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING,
                   "its memory did not survive (another boot or another pool); 0 bytes");
    bench_free(it.bench);
}

/* ---- memory beside the file ---- */

/* Goal: the memory of a killed process is taken for what the file lacks where it is longer, and no shorter than the row
 * says was durable; else the file stays as it is. */
static void spoilt_file_stays_where_memory_has_no_more(void **state)
{
    (void)state;
    enum { SAME, LESS_THAN_ROW, CASES };
    for (unsigned what = 0; what < CASES; what++) {
        struct subject it = make(50 + what, DISK, COMMITTED, NULL);
        static uint8_t was[CAPACITY];
        if (what == SAME) { /* torn, and memory ends there, too */
            memset(in_file(&it) + it.committed, 0x77, 64);
        } else { /* neither has what was acked */
            in_file(&it)[20] ^= 1;
            in_memory(&it)[it.committed - 8] ^= 1;
            assert_true(it.mine->prefix_ids[0].bytes < it.committed);
        }
        memcpy(was, in_file(&it), CAPACITY);
        start_again(&it, true);
        assert_memory_equal(in_file(&it), was, CAPACITY);
        if (what == SAME)
            assert_true(
                found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, 1, NULL)->seg->integrity ==
                LEAT_INTEGRITY_TORN);
        else
            (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "does not match");
        bench_free(it.bench);
    }
}

/* Goal: memory that is damaged itself, as a trailer further on says, is no better than a damaged file, whatever whole
 * prefix it has: that would be shorter than what was acked. */
static void spoilt_memory_is_no_better_than_the_file(void **state)
{
    (void)state;
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        struct subject it = make(53 + damaged, DISK, RESERVED, NULL);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(do_now(it.bench, it.mine, LEAT_STORE_COMMIT), LEAT_OK);
            assert_true(write_some(it.mine, 4));
        }
        assert_int_equal(row_in_file(&it)->state, LEAT_SEGMENT_RESERVED);
        in_file(&it)[20] ^= 1;
        if (damaged) in_memory(&it)[it.mine->prefix_ids[1].bytes + 40] ^= 1;
        start_again(&it, true);
        if (damaged)
            (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "does not match");
        else
            (void)found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL);
        bench_free(it.bench);
    }
}

/* Goal: another segment's bytes in a reservation's memory are not put into its place in the file. */
static void spoilt_memory_is_of_another_segment(void **state)
{
    (void)state;
    struct subject it = make(59, DISK, RESERVED, change_log);
    uint8_t was[4096];
    it.mine->writer.bytes = in_file(&it); /* its own header, damaged */
    write_header(it.mine);
    memcpy(in_file(&it), it.mine->seg->buffer, 4096);
    struct leat_segment_header header = header_of(it.mine, CAPACITY);
    memcpy(in_file(&it) + LEAT_ENTRY_HEADER_BYTES, &header, sizeof header);
    in_file(&it)[20] ^= 1;
    struct leat_segment_header theirs = header;
    change_log(&theirs);
    leat_entry_writer_init(&it.mine->writer, in_memory(&it), CAPACITY);
    put(it.mine, LEAT_ENTRY_SEGMENT, &theirs, sizeof theirs);
    write_start(it.mine);
    assert_true(write_some(it.mine, 6));
    memcpy(was, in_file(&it), sizeof was);
    start_again(&it, true);
    (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "its header does not match");
    assert_memory_equal(in_file(&it), was, sizeof was);
    bench_free(it.bench);
}

/* Goal: bytes after an end are counted up to the segment's end and no further. */
static void spoilt_end_is_counted_to_the_segments_end(void **state)
{
    (void)state;
    struct subject it = make(55, DISK, COMMITTED, NULL);
    struct mine *longer = reserve(it.bench, DISK, 9, 2 * CAPACITY);
    fake_settle(&it.bench->world);
    write_header(longer);
    write_start(longer);
    assert_int_equal(do_now(it.bench, longer, LEAT_STORE_COMMIT), LEAT_OK);
    struct leat_file *file = store_file(&it);
    memset(file->now + longer->seg->file_offset + CAPACITY, 1, CAPACITY);
    memset(in_file(&it) + it.committed, 1, CAPACITY - it.committed);
    /* The longer one is read first. */
    fake_kill(&it.bench->world);
    struct leat_row *ours = row_in_file(&it);
    struct leat_row *theirs = (void *)((uint8_t *)ours + 2 * LEAT_ROW_BYTES);
    assert_int_equal(theirs->log, 9);
    struct leat_row swapped = *ours;
    *ours = *theirs;
    *theirs = swapped;
    leat_row_seal(ours, it.row);
    leat_row_seal(theirs, it.row + 2);
    start_again(&it, false);
    const struct leat_found *found = found_of(it.bench, it.mine);
    assert_int_equal(found->kind, LEAT_FOUND_MARK);
    assert_true(found->seg->integrity == LEAT_INTEGRITY_TORN);
    assert_int_equal(found->behind_bytes, /* as long as an entry may begin there */
                     CAPACITY - it.committed - LEAT_ENTRY_HEADER_BYTES + LEAT_ENTRY_ALIGN);
    bench_free(it.bench);
}

/* Goal: a closed segment in memory that survived ends in its trailer: other bytes with the right checksum at that place
 * are no trailer. */
static void spoilt_trailer_is_none(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 3; what++) { /* as it is; another type; another checksum */
        struct subject it = make(56 + what, MEM, CLOSED, NULL);
        struct leat_entry trailer;
        uint8_t *at = in_memory(&it) + last_prefix_id(it.mine).bytes - sizeof trailer;
        memcpy(&trailer, at, sizeof trailer);
        assert_int_equal(trailer.type, LEAT_ENTRY_TRAILER);
        if (what == 1) trailer.type = LEAT_ENTRY_CLOSE;
        if (what == 2) trailer.crc++;
        memcpy(at, &trailer, sizeof trailer);
        start_again(&it, true);
        const struct leat_found *found = found_of(it.bench, it.mine);
        assert_int_equal(found->kind, what ? LEAT_FOUND_LOST : LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->buffer != NULL, !what);
        assert_int_equal(it.bench->store->pool.given, !what);
        bench_free(it.bench);
    }
}

/* ---- rows ---- */

/* Goal: rows that are free in the file are given out again after a start, the lowest first; rows that the file has not
 * are not. */
static void spoilt_rows_are_no_others(void **state)
{
    (void)state;
    enum { ROWS = LEAT_STORE_ROWS_PER_CHUNK };
    for (unsigned cut = 0; cut < 2; cut++) {
        struct subject it = make(60 + cut, DISK, HIBERNATED, NULL);
        assert_int_equal(it.row, 0);
        struct leat_file *file = fake_file(&it.bench->world, "catalogue");
        if (cut) {
            file->bytes = LEAT_BLOCK_BYTES + 70 * LEAT_ROW_BYTES;
            struct leat_catalogue_header *header = (void *)file->now;
            header->row_count = 70;
            header->crc = leat_crc32c(0, (const uint8_t *)header + sizeof header->crc,
                                      sizeof *header - sizeof header->crc);
        }
        start_again(&it, true);
        struct leat_catalogue *cat = &it.bench->store->cat;
        uint32_t held = cat->held_count, row;
        for (uint32_t want = held; want < (cut ? 70 : ROWS); want++) {
            assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
            assert_int_equal(row, want);
        }
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
        assert_int_equal(row, ROWS); /* of a new chunk */
        bench_free(it.bench);
    }
}

/* Three segments of one unit each in store/0: a start after which the file is gone. Their rows are changed first. */
static void start_without_file(struct bench *bench, void (*change)(struct leat_row *rows))
{
    fake_kill(&bench->world);
    struct leat_row *rows = (void *)(fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES);
    change(rows);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    bench->world.arena.inherited_bytes = 0;
    open_again(bench);
}
static void place_in_turn(struct leat_row *rows)
{
    static const uint32_t units[] = {2, 0, 1}; /* hibernated, hibernated, reserved */
    for (uint32_t i = 0; i < 3; i++) {
        rows[i].slot_unit = units[i];
        leat_row_seal(&rows[i], i);
    }
}
static void damage_first(struct leat_row *rows)
{
    static const uint32_t units[] = {9, 0, 1};
    for (uint32_t i = 0; i < 3; i++) {
        rows[i].slot_unit = units[i];
        leat_row_seal(&rows[i], i);
    }
    rows[0].crc ^= 1;
}

/* Goal: a reservation is behind what any whole row says was there, in whichever order rows come; a damaged one says
 * nothing. */
static void spoilt_rows_say_what_was_there(void **state)
{
    (void)state;
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        struct bench *bench = bench_ready(64 + damaged);
        struct mine *mine[3];
        for (unsigned i = 0; i < 3; i++) {
            mine[i] = opened(bench, DISK);
            assert_int_equal(mine[i]->seg->row, i);
        }
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(do_now(bench, mine[i], LEAT_STORE_HIBERNATE), LEAT_OK);
        start_without_file(bench, damaged ? damage_first : place_in_turn);
        const struct leat_found *found = found_of(bench, mine[2]);
        if (damaged) {
            assert_null(found);
            assert_null(found_of(bench, mine[0]));
            /* And its place may be anywhere: nothing that is free in files is given out. */
            for (uint32_t i = 0; i < bench->store->slots.count; i++)
                assert_int_equal(bench->store->slots.files[i]->buddy.free_units,
                                 i == 0 ? 1 : 0); /* what was just freed */
        } else {
            assert_int_equal(found->kind, LEAT_FOUND_LOST);
            assert_true(leat_held_of(found->seg)->damaged);
        }
        bench_free(bench);
    }
}

/* Goal: while a row is damaged no free slot of the store's files is given out, down to the smallest slot. */
static void spoilt_row_keeps_free_places_from_all(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(66);
    struct mine *mine = opened(bench, DISK);
    (void)opened(bench, DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_kill(&bench->world);
    struct leat_row *rows = (void *)(fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES);
    rows[1].crc ^= 1;
    bench->world.arena.inherited_bytes = 0;
    open_again(bench);
    assert_true(leat_store_rows_damaged(bench->store));
    const struct leat_buddy *buddy = &bench->store->slots.files[0]->buddy;
    assert_int_equal(buddy->free_units, 0);
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order++)
        assert_int_equal(buddy->free_count[order], 0);
    leat_store_found_done(bench->store);
    struct mine *next = opened(bench, DISK);
    assert_true(next->seg->file_offset >= 1024 * 1024 || next->seg->file_number != 0);
    bench_free(bench);
}

/* ---- hibernated ---- */

/* Goal: a hibernated segment of which the file has other bytes, whole and of the same length, is not resumed by
 * them. */
static void spoilt_hibernated_segment_is_not_resumed(void **state)
{
    (void)state;
    struct subject it = make(70, DISK, RESERVED, NULL);
    struct mine *mine = it.mine;
    struct leat_entry_writer before = mine->writer;
    struct leat_trim trim = {.first_segment = 5};
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    seal(mine);
    assert_int_equal(do_now(it.bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    mine->writer = before;
    mine->writer.bytes = in_memory(&it);
    trim.first_segment = 6;
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    seal(mine);
    assert_int_equal(last_prefix_id(mine).bytes, mine->seg->prefix_id.bytes);
    memcpy(in_file(&it), in_memory(&it), CAPACITY);
    assert_int_equal(do_now(it.bench, mine, LEAT_STORE_RESUME), LEAT_E_DAMAGED);
    assert_null(mine->seg->buffer);
    assert_int_equal(mine->seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_int_equal(it.bench->store->pool.given, 0);
    assert_int_equal(it.bench->store->complaint_count, 1);
    char says[100];
    snprintf(
        says, sizeof says,
        "hibernated segment 1 of log 1/0/3 is damaged in store/0 at 0: %u of %u bytes are valid",
        mine->seg->prefix_id.bytes, mine->seg->prefix_id.bytes);
    assert_non_null(strstr(it.bench->store->complaints[0], says));
    bench_free(it.bench);
}

/* Goal: the bytes in the slot of a hibernated segment are that segment only if both length and checksum are right. */
static void spoilt_hibernated_segment_is_found_by_both(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 3; what++) { /* as it is; other bytes; fewer */
        struct subject it = make(72 + what, DISK, HIBERNATED, NULL);
        fake_kill(&it.bench->world);
        if (what == 1) row_in_file(&it)->prefix_id_crc ^= 1;
        if (what == 2) row_in_file(&it)->prefix_id_bytes += 8;
        leat_row_seal(row_in_file(&it), it.row);
        start_again(&it, false);
        const struct leat_found *found = found_of(it.bench, it.mine);
        assert_int_equal(found->kind, what ? LEAT_FOUND_LOST : LEAT_FOUND_MARK);
        assert_int_equal(found->seg->state, what ? LEAT_SEGMENT_OPEN : LEAT_SEGMENT_HIBERNATED);
        assert_int_equal(found->scan.damaged, what != 0);
        assert_int_equal(found->scan.acked_bytes, row_in_file(&it)->prefix_id_bytes);
        bench_free(it.bench);
    }
}

/* Goal: a hibernated segment that is full to its last block is found as it was hibernated. */
static void spoilt_full_segment_is_found_hibernated(void **state)
{
    (void)state;
    struct subject it = make(71, DISK, RESERVED, NULL);
    struct mine *mine = it.mine;
    while (mine->writer.used + LEAT_BLOCK_BYTES / 2 < CAPACITY)
        put(mine, LEAT_ENTRY_TRIM, &(struct leat_trim){.first_segment = 1},
            sizeof(struct leat_trim));
    seal(mine);
    assert_true(last_prefix_id(mine).bytes > CAPACITY - LEAT_BLOCK_BYTES);
    assert_int_equal(do_now(it.bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    start_again(&it, false);
    (void)found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED, ALL, NULL);
    bench_free(it.bench);
}

/* ---- repairs ---- */

/* Goal: a segment never reached its file, and its memory is gone: a repair from memory is refused, and does not mark
 * the file's bytes as corrupt. */
static void spoilt_memory_is_no_damage_of_a_file(void **state)
{
    (void)state;
    struct subject it = make(75, MEM, CLOSED, NULL);
    start_again(&it, false);
    struct leat_segment *seg =
        found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, NOTHING, "0 of")->seg;
    assert_int_equal(seg->integrity, LEAT_INTEGRITY_MISSING);
    leat_store_found_done(it.bench->store);
    it.mine->seg = seg;
    assert_int_equal(do_now(it.bench, it.mine, LEAT_STORE_REPAIR), LEAT_E_NOT_FOUND);
    assert_false(leat_held_of(seg)->damaged);
    assert_int_equal(leat_catalogue_row(&it.bench->store->cat, seg->row)->more, 0);
    bench_free(it.bench);
}

/* Goal: a segment that never reached its file is in its file after a repair, and is not after a repair that failed. */
static void spoilt_unwritten_segment_is_repaired(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 3; fails++) { /* not at all; the write; its sync */
        struct subject it = make(76 + fails, MEM, CLOSED, NULL);
        static _Alignas(4096) uint8_t bytes[CAPACITY];
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes, in_memory(&it), last_prefix_id(it.mine).bytes);
        start_again(&it, false);
        struct leat_segment *seg =
            found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, NOTHING, "0 of")->seg;
        leat_store_found_done(it.bench->store);
        it.mine->seg = seg;
        ask(it.bench, it.mine, LEAT_STORE_REPAIR);
        it.mine->req.bytes = bytes;
        it.bench->world.fail_at = fails ? it.bench->world.op_count + fails : 0;
        fake_settle(&it.bench->world);
        assert_int_equal(it.mine->rc, fails ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(leat_held_of(seg)->in_file_bytes, fails ? 0 : seg->prefix_id.bytes);
        assert_int_equal(leat_catalogue_row(&it.bench->store->cat, seg->row)->flags,
                         fails ? LEAT_ROW_IN_POOL : LEAT_ROW_FLUSHED);
        assert_false(leat_held_of(seg)->repairing);
        if (!fails) { /* its row goes with the next that is written, of whichever block */
            uint32_t row;
            assert_int_equal(row_in_file(&it)->flags, LEAT_ROW_IN_POOL);
            while (it.bench->store->cat.held_count < LEAT_ROWS_PER_BLOCK)
                assert_int_equal(leat_catalogue_take(&it.bench->store->cat, &row), LEAT_OK);
            (void)opened(it.bench, DISK);
            assert_int_equal(row_in_file(&it)->flags, LEAT_ROW_FLUSHED);
        }
        bench_free(it.bench);
    }
}

/* ---- no memory ---- */

enum { AS_IT_IS, HEADER, ENTRY, NO_FILE, SHUT, NOTED, NOT_READ, NOT_READ_AGAIN, IN_FILE, SPOILS };
static void spoil(struct subject *it, unsigned how, bool closed)
{
    if (how == HEADER) in_file(it)[20] ^= 1, in_memory(it)[20] ^= 1;
    if (how == ENTRY) in_file(it)[260] ^= 1, in_memory(it)[260] ^= 1;
    if (how == SHUT && !closed) {
        write_close(it->mine);
        assert_int_equal(do_now(it->bench, it->mine, LEAT_STORE_COMMIT), LEAT_OK);
    }
    fake_kill(&it->bench->world);
    if (how == NO_FILE) {
        memset(store_file(it)->now, 0, store_file(it)->bytes);
        store_file(it)->bytes = 0;
    }
    if (how == NOTED) {
        row_in_file(it)->more = LEAT_ROW_DAMAGED;
        leat_row_seal(row_in_file(it), it->row);
        in_file(it)[260] ^= 1;
    }
    if (how == IN_FILE) memcpy(in_file(it), in_memory(it), CAPACITY);
    if (how == NOT_READ || how == NOT_READ_AGAIN) {
        disk_run = it->bench->world.disk.run;
        it->bench->world.disk.run = run_and_fail;
        reads_good = how == NOT_READ_AGAIN;
    }
}

static uint64_t calls;
static leat_err start_with(struct subject *it, bool memory, uint64_t fails)
{
    if (!memory) it->bench->world.arena.inherited_bytes = 0;
    bench_drop_store(it->bench);
    leat_mem_fail_at(fails);
    leat_err rc = bench_open(it->bench, NULL);
    calls = leat_mem_calls();
    leat_mem_fail_at(0);
    return rc;
}

/* Goal: whatever state a start finds for a segment, the start is refused where it has no memory to record the segment:
 * a start that went on would know of one segment less. */
static void spoilt_start_has_no_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2 * 5 * 2 * SPOILS; i++) {
        enum leat_durability durability = i % 2 ? DISK : MEM;
        enum made made = i / 2 % 5;
        bool memory = i / 10 % 2;
        calls = UINT64_MAX;
        for (unsigned last = 0; last < 2;
             last++) { /* its last allocation, as the first start had */
            struct subject it = make(100, durability, made, NULL);
            spoil(&it, i / 20, made >= HIBERNATED);
            assert_int_equal(start_with(&it, memory, calls), last ? LEAT_E_NO_MEMORY : LEAT_OK);
            assert_true(calls > 3);
            bench_free(it.bench);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spoilt_read_brings_nothing),
        cmocka_unit_test(spoilt_segment_is_looked_at_again),
        cmocka_unit_test(spoilt_bytes_that_a_trailer_names_are_damage),
        cmocka_unit_test(spoilt_header_is_of_no_segment),
        cmocka_unit_test(spoilt_place_of_a_memory_segment_says_nothing),
        cmocka_unit_test(spoilt_start_entry_is_a_loss),
        cmocka_unit_test(spoilt_file_stays_where_memory_has_no_more),
        cmocka_unit_test(spoilt_memory_is_no_better_than_the_file),
        cmocka_unit_test(spoilt_memory_is_of_another_segment),
        cmocka_unit_test(spoilt_end_is_counted_to_the_segments_end),
        cmocka_unit_test(spoilt_trailer_is_none),
        cmocka_unit_test(spoilt_rows_are_no_others),
        cmocka_unit_test(spoilt_rows_say_what_was_there),
        cmocka_unit_test(spoilt_row_keeps_free_places_from_all),
        cmocka_unit_test(spoilt_full_segment_is_found_hibernated),
        cmocka_unit_test(spoilt_hibernated_segment_is_found_by_both),
        cmocka_unit_test(spoilt_hibernated_segment_is_not_resumed),
        cmocka_unit_test(spoilt_memory_is_no_damage_of_a_file),
        cmocka_unit_test(spoilt_unwritten_segment_is_repaired),
        cmocka_unit_test(spoilt_start_has_no_memory),
    };
    return cmocka_run_group_tests_name("store spoilt", tests, NULL, NULL);
}
