/* SPDX-License-Identifier: Apache-2.0 */
/* The answers, the rows and the remaining state where a request is impossible, or is for a segment without a buffer. */
#include "tests/store/trace.h"

static struct leat_row *row_at(struct bench *bench, uint32_t row, bool durable)
{
    const struct leat_file *file = fake_file(&bench->world, "catalogue");
    return (void *)((durable ? file->durable : file->now) + LEAT_BLOCK_BYTES +
                    row * (uint64_t)LEAT_ROW_BYTES);
}

static struct leat_row *row_of(struct bench *bench, const struct mine *mine, bool durable)
{
    return row_at(bench, mine->seg->row, durable);
}

/* A start after which owners have taken what was found of theirs, and all goes on. */
static void start_again(struct bench *bench, struct mine *mine, bool memory)
{
    fake_kill(&bench->world);
    if (!memory) bench->world.arena.inherited_bytes = 0;
    open_again(bench);
    const struct leat_found *found = found_of(bench, mine);
    assert_non_null(found);
    mine->seg = found->seg;
    mine->seg->owner_actor = 0;
}

/* ---- reservations ---- */

/* Goal: a reservation that can't be is answered by why, names no segment, and keeps no place, row or descriptor. */
static void answers_reservation_that_can_not_be(void **state)
{
    (void)state;
    static struct leat_segment stale;
    enum { ROWS_FAILED, NO_DESCRIPTOR, NO_SPACE, NO_ROW, CASES };
    static const leat_err want[] = {LEAT_E_DISK, LEAT_E_NO_MEMORY, LEAT_E_DISK_FULL,
                                    LEAT_E_NO_MEMORY};
    for (unsigned what = 0; what < CASES; what++) {
        struct bench *bench = bench_ready(1 + what);
        struct leat_store *store = bench->store;
        if (what == NO_ROW) { /* there is a place, and there are descriptors */
            struct mine *first = opened(bench, LEAT_DURABILITY_DISK);
            assert_int_equal(do_now(bench, first, LEAT_STORE_DROP), LEAT_OK);
            uint32_t row;
            while (store->cat.held_count < LEAT_STORE_ROWS_PER_CHUNK)
                assert_int_equal(leat_catalogue_take(&store->cat, &row), LEAT_OK);
        }
        uint32_t rows = store->cat.held_count;
        uint64_t free_units = what == NO_ROW ? store->slots.files[0]->buddy.free_units : 0;
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
        mine->req.seg = &stale;
        if (what == ROWS_FAILED) store->cat.failed = true;
        if (what == NO_SPACE) bench->world.space_bytes = 1;
        if (what == NO_DESCRIPTOR || what == NO_ROW) leat_mem_fail_at(1);
        fake_settle(&bench->world);
        leat_mem_fail_at(0);
        assert_false(mine->busy);
        assert_int_equal(mine->rc, want[what]);
        assert_null(mine->req.seg);
        assert_int_equal(store->cat.held_count, rows);
        if (what == NO_ROW) assert_int_equal(store->slots.files[0]->buddy.free_units, free_units);
        if (what == NO_SPACE)
            assert_int_equal(leat_held_free_bytes(store),
                             LEAT_STORE_HELD_PER_SLAB * sizeof(struct leat_held));
        assert_int_equal(store->memory_wait_count, 0);
        assert_int_equal(store->pool.given, 0);
        bench_free(bench);
    }
}

/* Goal: a reservation has all values of its request, in its segment and in its row. */
static void answers_reservation_as_it_was_asked(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct bench *bench = bench_ready(10 + i);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 5, 65536);
        mine->req.provisional = i & 1;
        mine->req.incomplete = i & 2;
        mine->req.version = 3 * i;
        mine->req.writer = 100 + i;
        fake_settle(&bench->world);
        const struct leat_segment *seg = mine->seg;
        assert_int_equal(seg->provisional, i & 1);
        assert_int_equal(seg->incomplete, (i & 2) != 0);
        assert_int_equal(seg->version, i ? 3 * i : 1);
        assert_int_equal(seg->writer, 100 + i);
        assert_true(leat_list_empty(&seg->by_log)); /* its log may put it anywhere */
        assert_true(leat_list_empty(&seg->by_store));
        assert_int_equal(seg->durability, LEAT_DURABILITY_DISK);
        const struct leat_row *row = row_of(bench, mine, true);
        assert_int_equal(row->flags, LEAT_ROW_IN_POOL | (i & 1 ? LEAT_ROW_PROVISIONAL : 0) |
                                         (i & 2 ? LEAT_ROW_INCOMPLETE : 0));
        assert_int_equal(row->version, seg->version);
        assert_int_equal(row->writer, 100 + i);
        bench_free(bench);
    }
}

/* ---- stamps ---- */

/* Goal: STAMP of a segment without a buffer keeps the state that the row has: a segment that is open and only in its
 * file stays open, and the row no longer names the segment's memory. */
static void answers_stamp_of_what_is_open_in_its_file(void **state)
{
    (void)state;
    for (unsigned committed = 0; committed < 2; committed++) {
        struct bench *bench = bench_ready(20 + committed);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(write_some(mine, 3));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        if (committed) (void)opened(bench, LEAT_DURABILITY_DISK); /* takes its row along */
        start_again(bench, mine, true);
        assert_int_equal(mine->seg->state, LEAT_SEGMENT_OPEN);
        assert_null(mine->seg->buffer);
        leat_store_found_done(bench->store);
        enum leat_segment_state was = committed ? LEAT_SEGMENT_OPEN : LEAT_SEGMENT_RESERVED;
        assert_int_equal(row_of(bench, mine, true)->state, was);
        ask(bench, mine, LEAT_STORE_STAMP);
        mine->req.version = 9;
        mine->req.writer = 77;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
        const struct leat_row *row = row_of(bench, mine, true);
        assert_true(leat_row_valid(row, mine->seg->row));
        assert_int_equal(row->state, was);
        assert_int_equal(row->flags, 0);
        assert_int_equal(row->version, 9);
        assert_int_equal(row->writer, 77);
        start_again(bench, mine, true);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
        assert_int_equal(found_of(bench, mine)->scan.bytes, last_prefix_id(mine).bytes);
        bench_free(bench);
    }
}

/* Goal: a segment was cut, and its row does not say so yet: the row that STAMP writes says that the segment is closed
 * and in its file. */
static void answers_stamp_of_what_was_cut(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(22);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 3));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    start_again(bench, mine, false);
    struct leat_prefix_id cut = mine->prefix_ids[0];
    assert_int_equal(leat_store_cut(bench->store, mine->seg, cut, 5000, 3), LEAT_OK);
    ask(bench, mine, LEAT_STORE_STAMP);
    mine->req.version = 4;
    mine->req.incomplete = true;
    fake_settle(&bench->world);
    const struct leat_row *row = row_of(bench, mine, true);
    assert_int_equal(row->state, LEAT_SEGMENT_CLOSED);
    assert_int_equal(row->flags, LEAT_ROW_FLUSHED | LEAT_ROW_INCOMPLETE);
    assert_int_equal(row->version, 4);
    assert_int_equal(row->prefix_id_bytes, cut.bytes);
    assert_int_equal(row->prefix_id_crc, cut.crc);
    assert_int_equal(row->next_offset, 5000);
    bench_free(bench);
}

/* Goal: a segment that was cut in memory is in no file, so STAMP leaves the state in its row as it was. */
static void answers_stamp_of_what_was_cut_in_memory(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(23);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_true(write_some(mine, 3));
    start_again(bench, mine, true);
    assert_non_null(mine->seg->buffer);
    assert_int_equal(leat_store_cut(bench->store, mine->seg, mine->prefix_ids[0], 5000, 3),
                     LEAT_OK);
    ask(bench, mine, LEAT_STORE_STAMP);
    mine->req.version = 4;
    fake_settle(&bench->world);
    const struct leat_row *row = row_of(bench, mine, false);
    assert_int_equal(row->state, LEAT_SEGMENT_RESERVED);
    assert_int_equal(row->flags, LEAT_ROW_IN_POOL);
    assert_int_equal(row->version, 4);
    bench_free(bench);
}

/* ---- what fails on the way ---- */

/* Goal: a reservation whose row could not be written names no segment; its memory serves nobody else, since the row may
 * have got through. */
static void answers_reservation_whose_row_fails(void **state)
{
    (void)state;
    for (unsigned sync = 0; sync < 2; sync++) {
        struct bench *bench = bench_ready(24 + sync);
        struct mine *first = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
        (void)fake_event_step(&bench->world);
        bench->world.fail_at = bench->world.op_count + 1 + sync;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_E_DISK);
        assert_null(mine->req.seg);
        const struct leat_held *held =
            *leat_catalogue_held(&bench->store->cat, first->seg->row + 1);
        assert_null(held->seg.buffer);
        assert_int_equal(held->where, LEAT_HELD_NOWHERE);
        assert_int_equal(bench->store->pool.given, 2);
        assert_int_equal(bench->store->pool.buddy.free_units + 2,
                         LEAT_ARENA_STEP_BYTES / LEAT_SLOT_UNIT_BYTES);
        bench_free(bench);
    }
}

/* Goal: a segment that has not begun is not hibernated, whatever end the request names. */
static void answers_hibernate_of_what_has_not_begun(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(26);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE),
                     LEAT_E_DAMAGED); /* all of no bytes */
    assert_non_null(mine->seg->buffer);
    assert_int_equal(mine->seg->state, LEAT_SEGMENT_RESERVED);
    bench_free(bench);
}

/* Goal: a segment that was cut to a decided end is repaired with bytes that end at the decided offset or before, since
 * the last records may be lost with another copy. Bytes that end after the decided offset are refused. */
static void answers_repair_of_what_was_cut(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 3; more++) {
        struct bench *bench = bench_ready(27 + more);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(write_some(mine, 3));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        start_again(bench, mine, true);
        uint64_t end = mine->next_offset;
        assert_int_equal(
            leat_store_cut(bench->store, mine->seg, last_prefix_id(mine), end + more, 3), LEAT_OK);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        leat_store_found_done(bench->store);
        if (more == 2) mine->seg->next_offset = end - 1;
        static _Alignas(4096) uint8_t bytes[16384];
        memcpy(bytes, fake_file(&bench->world, "store/0")->now + mine->seg->file_offset, 16384);
        ask(bench, mine, LEAT_STORE_REPAIR);
        mine->req.bytes = bytes;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, more == 2 ? LEAT_E_INVALID : LEAT_OK);
        bench_free(bench);
    }
}

/* Goal: no cut, give-up or flush of a segment happens while its row or its bytes are being written. */
static void answers_cut_amid_rounds(void **state)
{
    (void)state;
    for (unsigned rows = 0; rows < 2; rows++) {
        struct bench *bench = bench_ready(31 + rows);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
        ask(bench, other, rows ? LEAT_STORE_STAMP : LEAT_STORE_COMMIT);
        (void)fake_event_step(&bench->world);
        assert_int_equal(bench->store->rows_running, rows);
        assert_int_equal(bench->store->data_running, !rows);
        assert_true(leat_round_running(bench->store) && leat_round_busy(bench->store));
        assert_int_equal(leat_store_cut(bench->store, mine->seg, mine->prefix_ids[0], 9999, 0),
                         LEAT_E_AGAIN);
        assert_int_equal(leat_store_forget(bench->store, mine->seg), LEAT_E_AGAIN);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_E_AGAIN);
        fake_settle(&bench->world);
        assert_false(leat_round_running(bench->store) || leat_round_busy(bench->store));
        bench_free(bench);
    }
    struct leat_store *none = NULL;
    leat_store_close(&none); /* of which there is nothing to close */
}

/* Goal: where a file lacks the end in which a segment lies, a repair gets it back first, or is refused by why not. */
static void answers_repair_past_a_lost_end(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4;
         what++) { /* nothing lacks; its end; no space; the file has failed */
        struct bench *bench = bench_ready(34 + what);
        for (unsigned i = 0; i < 4; i++)
            (void)opened(bench, LEAT_DURABILITY_DISK);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 4 * 16384);
        fake_settle(&bench->world);
        write_header(mine);
        write_start(mine);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        struct leat_held *held = leat_held_of(mine->seg);
        struct leat_store_file *file = held->slot.file;
        assert_int_equal(held->slot.unit, 4);
        file->here_units = what ? 7 : 8;
        if (what == 2) bench->world.space_bytes = 1;
        if (what == 3) file->failed = true;
        static const leat_err want[] = {LEAT_OK, LEAT_OK, LEAT_E_DISK_FULL, LEAT_E_DISK};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_REPAIR), want[what]);
        assert_int_equal(file->here_units, what == 0 ? 8 : what == 1 ? file->grown_units : 7);
        bench_free(bench);
    }
}

/* Goal: the numbers of files may have gaps, at a start, at its end and later. */
static void answers_files_with_gaps(void **state)
{
    (void)state;
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        struct bench *bench = bench_ready(38 + damaged);
        struct mine *low = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY); /* it spares that file */
        struct mine *other = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_string_equal(mine->seg->file->name, "store/1");
        assert_int_equal(do_now(bench, low, LEAT_STORE_DROP), LEAT_OK);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 100000);
        uint32_t row = other->seg->row; /* the store that goes has the segment */
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_disk *disk = &bench->world.disk;
        assert_int_equal(disk->remove(disk->ctx, "store/0"), LEAT_OK);
        if (damaged) row_at(bench, row, false)->crc ^= 1;
        open_again(bench);
        struct leat_slots *slots = &bench->store->slots;
        assert_int_equal(slots->count, 2);
        assert_null(slots->files[0]);
        assert_int_equal(slots->files[1]->buddy.free_units == 0, damaged);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        leat_store_found_done(bench->store);
        struct mine *next = opened(bench, LEAT_DURABILITY_MEMORY);
        write_close(next);
        assert_int_equal(do_now(bench, next, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 100000);
        assert_true(next->flushed);
        bench_free(bench);
    }
}

/* Goal: a repair does not look at an old copy in its request: the copy is the store's own, and is freed with the
 * repair. */
static void answers_repair_looks_at_no_old_copy(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(50);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    static _Alignas(4096) uint8_t bytes[16384];
    for (unsigned what = 0; what < 3; what++) { /* refused; by bytes; by memory */
        if (what == 1) {
            write_close(mine);
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
            memcpy(bytes, mine->seg->buffer, sizeof bytes);
        }
        ask(bench, mine, LEAT_STORE_REPAIR);
        mine->req.copy = bytes + 8; /* nobody's to free */
        mine->req.bytes = what < 2 ? bytes : NULL;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, what == 0 ? LEAT_E_INVALID : LEAT_OK);
        assert_null(mine->req.copy);
    }
    bench_free(bench);
}

/* Goal: the row of a segment that a start hibernates says hibernated and nothing else; the segment was open, and its
 * memory is gone. */
static void answers_found_segment_is_hibernated(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(52);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 3));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    start_again(bench, mine, true);
    leat_store_found_hibernate(bench->store, found_of(bench, mine));
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    const struct leat_row *row = row_of(bench, mine, true);
    assert_int_equal(row->state, LEAT_SEGMENT_HIBERNATED);
    assert_int_equal(row->flags, 0);
    assert_int_equal(row->prefix_id_bytes, last_prefix_id(mine).bytes);
    leat_store_found_done(bench->store);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_RESUME), LEAT_OK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    bench_free(bench);
}

/* Goal: memory that is another segment's by now has nothing of this one, whatever was read before. */
static void answers_memory_of_another_is_not_remembered(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(53);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    const struct leat_held *held = leat_held_of(mine->seg);
    const uint8_t *at = mine->seg->buffer;
    memcpy(bench->store->scratch, at, 16384);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
    assert_true(leat_repair_remembers(bench->store, held));
    assert_ptr_equal(opened(bench, LEAT_DURABILITY_DISK)->seg->buffer, at);
    memcpy(bench->store->scratch, fake_file(&bench->world, "store/0")->now + mine->seg->file_offset,
           16384);
    assert_false(leat_repair_remembers(bench->store, held));
    bench_free(bench);
}

/* Goal: a segment is repaired by one at a time. */
static void answers_repair_amid_a_repair(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(54);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct mine another = *mine;
    ask(bench, mine, LEAT_STORE_REPAIR);
    (void)fake_event_step(&bench->world);
    assert_int_equal(bench->store->repairs, 1);
    assert_int_equal(do_now(bench, &another, LEAT_STORE_REPAIR), LEAT_E_INVALID);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_false(mine->busy);
    assert_int_equal(bench->store->repairs, 0);
    assert_int_equal(do_now(bench, &another, LEAT_STORE_REPAIR), LEAT_OK);
    bench_free(bench);
}

/* Goal: the start's findings are reported until owners have taken them, and not after that. */
static void answers_nothing_is_found_once_it_is_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(55);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    start_again(bench, mine, true);
    size_t count;
    assert_non_null(leat_store_found(bench->store, &count));
    assert_int_equal(count, 1);
    (void)leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 0);
    leat_store_found_done(bench->store);
    assert_null(leat_store_found(bench->store, &count));
    assert_int_equal(count, 0);
    assert_null(leat_store_found_replicas(bench->store, &count));
    assert_int_equal(count, 0);
    bench_free(bench);
}

/* Goal: a segment may be cut to all of its capacity, and to nothing and more than that not. */
static void answers_cut_within_its_capacity(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(57);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    start_again(bench, mine, true);
    const uint32_t bytes[] = {0, 16384, 16385};
    for (unsigned i = 0; i < 3; i++) /* of the second it has other bytes */
        assert_int_equal(
            leat_store_cut(bench->store, mine->seg, (struct leat_prefix_id){bytes[i], 1}, 9999, 0),
            i == 1 ? LEAT_E_DAMAGED : LEAT_E_INVALID);
    bench_free(bench);
}

/* Goal: memory has no bytes for a segment of no bytes, or of more bytes than its capacity. */
static void answers_memory_has_nothing_of_what_can_not_be(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(58);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint32_t bytes = mine->seg->prefix_id.bytes;
    const uint32_t prefix_ids[] = {bytes, 0, 16385};
    for (unsigned i = 0; i < 3; i++) {
        mine->seg->prefix_id.bytes = prefix_ids[i];
        assert_int_equal(leat_repair_remembers(bench->store, leat_held_of(mine->seg)), i == 0);
    }
    bench_free(bench);
}

/* ---- roles ---- */

/* Goal: the role that a start gives a segment is in the segment's row by the end of that start, also where no other row
 * of that block changes. */
static void answers_role_is_in_its_row(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    start_again(bench, mine, true);
    leat_store_role_set(bench->store, mine->seg, LEAT_SEGMENT_REPLICA, 55);
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    const struct leat_row *row = row_of(bench, mine, true);
    assert_true(leat_row_valid(row, mine->seg->row));
    assert_int_equal(row->flags, LEAT_ROW_REPLICA);
    assert_int_equal(row->writer, 55);
    leat_store_role_set(bench->store, mine->seg, LEAT_SEGMENT_OWN, 56);
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    assert_true(leat_row_valid(row, mine->seg->row));
    assert_int_equal(row->flags, 0);
    assert_int_equal(row->writer, 56);
    bench_free(bench);
}

/* ---- commits ---- */

/* Goal: bytes that do not begin with a segment's header have not begun a segment: their row stays a reservation. */
static void answers_commit_of_what_has_no_header(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(40);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
    fake_settle(&bench->world);
    leat_entry_writer_init(&mine->writer, mine->seg->buffer, 16384);
    write_start(mine);
    assert_true(write_some(mine, 5));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_int_equal(leat_held_of(mine->seg)->in_file_bytes, last_prefix_id(mine).bytes);
    assert_int_equal(leat_catalogue_row(&bench->store->cat, mine->seg->row)->state,
                     LEAT_SEGMENT_RESERVED);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_reservation_that_can_not_be),
        cmocka_unit_test(answers_reservation_as_it_was_asked),
        cmocka_unit_test(answers_stamp_of_what_is_open_in_its_file),
        cmocka_unit_test(answers_stamp_of_what_was_cut),
        cmocka_unit_test(answers_stamp_of_what_was_cut_in_memory),
        cmocka_unit_test(answers_reservation_whose_row_fails),
        cmocka_unit_test(answers_hibernate_of_what_has_not_begun),
        cmocka_unit_test(answers_repair_of_what_was_cut),
        cmocka_unit_test(answers_cut_amid_rounds),
        cmocka_unit_test(answers_repair_past_a_lost_end),
        cmocka_unit_test(answers_files_with_gaps),
        cmocka_unit_test(answers_repair_looks_at_no_old_copy),
        cmocka_unit_test(answers_found_segment_is_hibernated),
        cmocka_unit_test(answers_memory_of_another_is_not_remembered),
        cmocka_unit_test(answers_repair_amid_a_repair),
        cmocka_unit_test(answers_nothing_is_found_once_it_is_taken),
        cmocka_unit_test(answers_cut_within_its_capacity),
        cmocka_unit_test(answers_memory_has_nothing_of_what_can_not_be),
        cmocka_unit_test(answers_role_is_in_its_row),
        cmocka_unit_test(answers_commit_of_what_has_no_header),
    };
    return cmocka_run_group_tests_name("store answers", tests, NULL, NULL);
}
