/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a start finds for each segment, by its row, its memory and its file: README's table, row by row, with
 * each kind of damage. */
#include "tests/store/subject.h"

/* ---- nothing is spoilt ---- */

/* Goal: README's table, of segments of both levels, after a kill and after another boot. */
static void judge_takes_what_is_whole(void **state)
{
    (void)state;
    static const struct {
        enum leat_durability durability;
        enum made made;
        bool memory;
        enum leat_found_kind kind;
        enum leat_segment_state state;
        unsigned prefix;
        const char *why;
        bool buffer, flushed, corrupt, unwritten;
    } rows[] = {
        {MEM, RESERVED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL, true, false, false,
         false},
        {MEM, RESERVED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING,
         "its memory did not survive", false, false, false, false},
        {MEM, COMMITTED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL, true, false, false,
         false},
        {MEM, COMMITTED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, ALL,
         "its memory did not survive", false, false, false, false},
        {MEM, HIBERNATED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED, ALL, NULL, false, false,
         false, false},
        {MEM, HIBERNATED, false, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED, ALL, NULL, false, false,
         false, false},
        {MEM, CLOSED, true, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL, true, false, false,
         false},
        {MEM, CLOSED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, NOTHING,
         "before it was flushed; 0 of", false, false, true, true},
        {MEM, FLUSHED, true, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL, false, true, false,
         false},
        {MEM, FLUSHED, false, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL, false, true, false,
         false},
        {DISK, RESERVED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL, false, false, false,
         false},
        {DISK, RESERVED, false, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, NOTHING, NULL, false, false,
         false, false},
        {DISK, COMMITTED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL, false, false, false,
         false},
        {DISK, COMMITTED, false, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL, false, false, false,
         false},
        {DISK, HIBERNATED, false, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED, ALL, NULL, false, false,
         false, false},
        {DISK, CLOSED, true, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL, false, true, false,
         false},
        {DISK, CLOSED, false, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL, false, true, false,
         false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct subject it = make(i + 1, rows[i].durability, rows[i].made, NULL);
        start_again(&it, rows[i].memory);
        const struct leat_found *found =
            found_is(&it, rows[i].kind, rows[i].state, rows[i].prefix, rows[i].why);
        if (found) {
            const struct leat_segment *seg = found->seg;
            assert_int_equal(seg->buffer != NULL, rows[i].buffer);
            if (seg->buffer) assert_ptr_equal(seg->buffer, in_memory(&it));
            assert_int_equal(seg->flushed, rows[i].flushed);
            assert_int_equal(leat_segment_is_damaged(seg), rows[i].corrupt);
            assert_int_equal(seg->integrity == LEAT_INTEGRITY_MISSING, rows[i].unwritten);
            assert_false(seg->integrity == LEAT_INTEGRITY_TORN);
            uint32_t there = leat_held_of(found->seg)->in_file_bytes;
            bool file =
                rows[i].durability == DISK || rows[i].made == HIBERNATED || rows[i].made == FLUSHED;
            assert_int_equal(there, file ? last_prefix_id(it.mine).bytes : 0);
            assert_int_equal(it.bench->store->complaint_count, rows[i].kind == LEAT_FOUND_LOST);
        }
        bench_free(it.bench);
    }
}

/* Goal: a bit that flips in the memory of a killed process makes a closed segment lost, wherever the bit is, if nothing
 * else here has the segment. After the segment's end a bit is nothing. If the file has the bytes the file is taken. */
static void judge_takes_no_damaged_memory(void **state)
{
    (void)state;
    struct subject first = make(470, MEM, CLOSED, NULL);
    uint32_t bytes = last_prefix_id(first.mine).bytes;
    bench_free(first.bench);
    for (uint32_t at = 0; at <= bytes; at += at < bytes && at + 13 > bytes ? bytes - at : 13) {
        struct subject it = make(470, MEM, CLOSED, NULL);
        in_memory(&it)[at] ^= 1;
        start_again(&it, true);
        const struct leat_found *found =
            at == bytes ? found_is(&it, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL)
                        : found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, NOTHING,
                                   "its memory was damaged before it was flushed; 0 of");
        assert_int_equal(found->seg->buffer != NULL, at == bytes);
        assert_int_equal(found->seg->integrity == LEAT_INTEGRITY_MISSING, at < bytes);
        bench_free(it.bench);
    }
    struct subject it = make(470, MEM, CLOSED, NULL);
    memcpy(store_file(&it)->now + it.file_at, in_memory(&it), bytes);
    in_memory(&it)[bytes / 2] ^= 1;
    start_again(&it, true);
    const struct leat_found *found =
        found_is(&it, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL);
    assert_true(found->seg->flushed && found->seg->buffer == NULL);
    assert_int_equal(row_in_file(&it)->flags, LEAT_ROW_FLUSHED);
    bench_free(it.bench);
}

/* ---- another one's bytes ---- */

static unsigned changed;
static void change_one(struct leat_segment_header *header)
{
    switch (changed) {
    case 0:
        header->stream++;
        break;
    case 1:
        header->streamlet++;
        break;
    case 2:
        header->log++;
        break;
    case 3:
        header->epoch++;
        break;
    case 4:
        header->segment++;
        break;
    case 5:
        header->capacity *= 2;
        break;
    case 6:
        header->magic++;
        break;
    case 7:
        header->cluster_id[15]++;
        break;
    case 8:
        header->created_ms++; /* of that nobody asks */
        break;
    }
}

/* Goal: whole bytes whose header differs in any of what names a segment are not this one's: lost where it had begun; of
 * a reservation nothing, where the ids are others', and lost where they are its own. */
static void judge_takes_no_others_bytes(void **state)
{
    (void)state;
    for (changed = 0; changed <= 8; changed++) {
        bool ids = changed < 5, ours = changed == 8;
        struct subject it = make(200 + changed, DISK, COMMITTED, change_one);
        start_again(&it, false);
        (void)found_is(&it, ours ? LEAT_FOUND_MARK : LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN,
                       ours ? ALL : NOTHING, "its header does not match");
        bench_free(it.bench);

        it = make(220 + changed, MEM, RESERVED, change_one);
        start_again(&it, true);
        (void)found_is(&it, ours ? LEAT_FOUND_MARK : LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN,
                       ours ? ALL : NOTHING, ids ? NULL : "its header does not match");
        bench_free(it.bench);

        if (changed == 5 || changed == 6)
            continue; /* no segment at all: it is neither hibernated nor closed so */
        it = make(240 + changed, MEM, HIBERNATED, change_one);
        start_again(&it, true);
        if (ours)
            (void)found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_HIBERNATED, ALL, NULL);
        else
            (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "only 0 of");
        bench_free(it.bench);

        it = make(260 + changed, MEM, CLOSED, change_one);
        start_again(&it, true);
        if (ours)
            (void)found_is(&it, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL);
        else
            (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, NOTHING, "0 of");
        bench_free(it.bench);
    }
    /* The place of the first entry is cleared, and behind it are its own ids: given back, and reserved again. */
    for (unsigned file = 0; file < 2; file++) {
        struct subject it = make(280 + file, file ? DISK : MEM, RESERVED, NULL);
        if (file) {
            memcpy(in_file(&it), in_memory(&it), 4096);
            memset(in_file(&it), 0, LEAT_ENTRY_HEADER_BYTES);
        }
        memset(in_memory(&it), 0, LEAT_ENTRY_HEADER_BYTES);
        start_again(&it, true);
        (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING,
                       file ? "its header does not match" : NULL);
        bench_free(it.bench);
    }
}

/* ---- memory that a row names ---- */

/* Goal: memory is a row's where it names this pool and a place that survived, whole; and two rows can't have one. */
static void judge_believes_rows_of_memory_that_survived(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 7; what++) {
        struct subject it = make(300 + what, MEM, RESERVED, NULL);
        struct leat_arena *arena = &it.bench->world.arena;
        fake_kill(&it.bench->world);
        struct leat_row *row = row_in_file(&it);
        if (what == 1) row->flags &= (uint8_t)~LEAT_ROW_IN_POOL;
        if (what == 2) row->pool_id[15]++;
        if (what == 3) row->pool_at += 8;
        if (what == 4) row->pool_at = arena->grown_bytes + 16384;
        leat_row_seal(row, it.row);
        if (what == 5) arena->inherited_bytes = it.pool_at + CAPACITY;
        if (what == 6) arena->inherited_bytes = it.pool_at + CAPACITY - 16384;
        open_again(it.bench);
        bool good = what == 0 || what == 5;
        (void)found_is(&it, good ? LEAT_FOUND_MARK : LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN,
                       good ? ALL : NOTHING, "its memory did not survive");
        bench_free(it.bench);
    }
    struct subject it = make(310, MEM, RESERVED, NULL);
    struct mine *other = opened(it.bench, MEM);
    fake_kill(&it.bench->world);
    struct leat_row *row = (void *)(fake_file(&it.bench->world, "catalogue")->now +
                                    LEAT_BLOCK_BYTES + other->seg->row * 128ull);
    row->pool_at = it.pool_at;
    leat_row_seal(row, other->seg->row);
    open_again(it.bench);
    (void)found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL);
    assert_int_equal(found_of(it.bench, other)->kind, LEAT_FOUND_LOST);
    assert_non_null(strstr(it.bench->store->complaints[0], "claim the same memory"));
    bench_free(it.bench);
}

/* ---- damage ---- */

/* Goal: durable bytes that read otherwise are damage, wherever they are, and never a shorter segment. Where the memory
 * of the killed process has the bytes, they are taken from there and put into the file. */
static void judge_calls_damage_by_its_name(void **state)
{
    (void)state;
    for (unsigned memory = 0; memory < 2; memory++)
        for (unsigned what = 0; what < 4; what++) {
            struct subject it = make(400 + what, DISK, COMMITTED, NULL);
            static const uint32_t at[] = {20, 200, 260,
                                          400}; /* header's entry, start, trailer, a trim */
            uint8_t was[CAPACITY];
            memcpy(was, in_file(&it), CAPACITY);
            in_file(&it)[at[what]] ^= 0x40;
            start_again(&it, memory);
            const struct leat_found *found;
            if (memory) {
                found = found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, ALL, NULL);
                assert_memory_equal(store_file(&it)->durable + it.file_at, was, it.committed);
            } else {
                found = found_of(it.bench, it.mine);
                assert_int_equal(found->kind, LEAT_FOUND_LOST);
                assert_true(found->scan.bytes < it.committed);
                if (what) assert_true(found->scan.damaged);
                if (what) assert_int_equal(found->scan.acked_bytes, it.committed);
            }
            bench_free(it.bench);
        }
    struct subject it = make(410, MEM, HIBERNATED, NULL);
    in_file(&it)[400] ^= 1;
    start_again(&it, true);
    const struct leat_found *found = found_of(it.bench, it.mine);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    assert_int_equal(found->seg->state, LEAT_SEGMENT_OPEN);
    assert_int_equal(found->scan.acked_bytes, it.committed);
    assert_true(found->scan.damaged && found->scan.bytes < it.committed);
    bench_free(it.bench);
}

/* Goal: an end with any bytes but zeros after it is torn, and the number of these bytes is reported. The memory of
 * the killed process is used where it has more bytes, and these are whole. */
static void judge_tells_a_torn_end(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 5; what++) {
        struct subject it = make(420 + what, DISK, COMMITTED, NULL);
        uint8_t *end = in_file(&it) + it.committed;
        uint32_t behind = 0;
        if (what == 1) end[0] = 1, behind = 8;
        if (what == 2) end[31] = 1, behind = 32;
        if (what == 3) end[32] = 1; /* behind the place of an entry */
        if (what == 4) {
            write_some(it.mine, 2); /* a whole write, then a flipped bit in its trailer */
            memcpy(end, in_memory(&it) + it.committed,
                   last_prefix_id(it.mine).bytes - it.committed);
            end[last_prefix_id(it.mine).bytes - it.committed - 1] ^= 1;
            behind = last_prefix_id(it.mine).bytes - it.committed;
        }
        start_again(&it, false);
        const struct leat_found *found = found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, 1, NULL);
        assert_int_equal(found->seg->integrity == LEAT_INTEGRITY_TORN, behind != 0);
        if (what != 1 && what != 2) assert_int_equal(found->behind_bytes, behind);
        if (what < 4) assert_true(found->behind_bytes <= 40);
        bench_free(it.bench);
        if (what != 4) continue;
        it = make(430, DISK, COMMITTED, NULL);
        write_some(it.mine, 2);
        memset(in_file(&it) + it.committed, 1, 100);
        start_again(&it, true);
        found = found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, 2, NULL);
        assert_false(found->seg->integrity == LEAT_INTEGRITY_TORN);
        assert_int_equal(leat_held_of(found->seg)->in_file_bytes, last_prefix_id(it.mine).bytes);
        for (uint32_t i = last_prefix_id(it.mine).bytes; i < 4096; i++)
            assert_int_equal(in_file(&it)[i], 0);
        bench_free(it.bench);
    }
}

/* Goal: where the file's end is clean it is the end, though the memory of the killed process had more: nobody was told
 * that that was there, and copies elsewhere end there, too. */
static void judge_takes_a_clean_end_for_the_end(void **state)
{
    (void)state;
    struct subject it = make(435, DISK, COMMITTED, NULL);
    assert_true(write_some(it.mine, 2));
    start_again(&it, true);
    const struct leat_found *found = found_is(&it, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, 1, NULL);
    assert_false(found->seg->integrity == LEAT_INTEGRITY_TORN);
    assert_int_equal(leat_held_of(found->seg)->in_file_bytes, it.committed);
    bench_free(it.bench);
}

/* Goal: bytes that are taken from memory are in the file, durably, before the segment is reported; where they can't be
 * written the file's damage stands. Method: each operation of the start fails once. */
static void judge_takes_from_memory_what_it_could_write(void **state)
{
    (void)state;
    uint64_t write_at = 0; /* the operation that puts it there: the one behind the file's read */
    unsigned taken = 0, damaged = 0;
    for (uint64_t n = 1; n < 100;
         n++) { /* a write that fails may have got through, in part or whole */
        if (n > 20 && !write_at) break;
        struct subject it = make(1000 + n, DISK, COMMITTED, NULL);
        in_file(&it)[400] ^= 0x40;
        fake_kill(&it.bench->world);
        bench_drop_store(it.bench);
        it.bench->world.fail_at = it.bench->world.op_count + (n <= 20 ? n : write_at);
        if (bench_open(it.bench, NULL) == LEAT_OK) {
            const struct leat_found *found = found_of(it.bench, it.mine);
            assert_non_null(found);
            if (!write_at && strstr(found->why, "cannot be read")) write_at = n + 1;
            damaged += strstr(found->why, "acked bytes are valid") != NULL;
            taken += found->kind == LEAT_FOUND_MARK;
            if (found->kind == LEAT_FOUND_MARK)
                assert_memory_equal(in_file(&it), in_memory(&it), last_prefix_id(it.mine).bytes);
        }
        it.bench->world.fail_at = 0;
        bench_free(it.bench);
    }
    assert_true(taken > 5 && damaged > 0);
}

/* Goal: a closed segment was not flushed and its memory is gone: where its file can't be read, the start reports a read
 * error. Method: each operation of the start fails once. */
static void judge_tells_of_a_closed_segment_that_it_can_not_read(void **state)
{
    (void)state;
    unsigned told = 0;
    for (uint64_t n = 1; n <= 20; n++) {
        struct subject it = make(1100 + n, MEM, CLOSED, NULL);
        fake_kill(&it.bench->world);
        it.bench->world.arena.inherited_bytes = 0;
        bench_drop_store(it.bench);
        it.bench->world.fail_at = it.bench->world.op_count + n;
        if (bench_open(it.bench, NULL) == LEAT_OK) {
            const struct leat_found *found = found_of(it.bench, it.mine);
            assert_int_equal(found->kind, LEAT_FOUND_LOST);
            bool unread = strstr(found->why, "cannot be read from store/0") != NULL;
            assert_true(unread || strstr(found->why, "0 of"));
            assert_int_equal(it.bench->store->complaint_count, 1);
            told += unread;
        }
        it.bench->world.fail_at = 0;
        bench_free(it.bench);
    }
    assert_int_equal(told, 1);
}

/* Goal: where the disk has no room for a file's lost end, what memory alone has is not called lost: the start fails,
 * the memory stays, and a start that finds room has it all. */
static void judge_waits_for_room_for_what_memory_has(void **state)
{
    (void)state;
    static const enum made made[] = {COMMITTED, CLOSED};
    for (unsigned i = 0; i < 2; i++) {
        struct subject it = make(455 + i, MEM, made[i], NULL);
        struct leat_error error = {0};
        store_file(&it)->bytes = 0;
        it.bench->world.space_bytes = 1;
        for (unsigned start = 0; start < 2; start++) {
            fake_kill(&it.bench->world);
            bench_drop_store(it.bench);
            assert_int_equal(bench_open(it.bench, &error), LEAT_E_DISK_FULL);
        }
        it.bench->world.space_bytes = 0;
        start_again(&it, true);
        (void)found_is(&it, i ? LEAT_FOUND_CLOSED : LEAT_FOUND_MARK,
                       i ? LEAT_SEGMENT_CLOSED : LEAT_SEGMENT_OPEN, ALL, NULL);
        assert_int_equal(it.bench->store->complaint_count, 0);
        bench_free(it.bench);
    }
}

/* Goal: a start waits for room only where room lacks, and not where the disk fails. */
static void judge_waits_for_room_alone(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 16; n++) {
        struct subject it = make(480, MEM, COMMITTED, NULL);
        store_file(&it)->bytes = 0;
        fake_kill(&it.bench->world);
        bench_drop_store(it.bench);
        it.bench->world.fail_at = it.bench->world.op_count + n;
        assert_int_not_equal(bench_open(it.bench, NULL), LEAT_E_DISK_FULL);
        it.bench->world.fail_at = 0;
        bench_free(it.bench);
    }
}

/* Goal: only a segment whose own place is gone waits for room: one whose place is in its file is found, although the
 * same file has lost the place of another segment, and the disk has no room for that place. */
static void judge_waits_for_no_place_but_its_own(void **state)
{
    (void)state;
    struct subject it = make(490, MEM, FLUSHED, NULL);
    struct mine *other = opened(it.bench, MEM);
    fake_kill(&it.bench->world);
    uint32_t end = (uint32_t)(store_file(&it)->bytes / LEAT_SLOT_UNIT_BYTES);
    struct leat_row *row = row_in_file(&it);
    row->slot_unit = LEAT_ALIGN_UP(end, row->capacity / LEAT_SLOT_UNIT_BYTES);
    leat_row_seal(row, it.row);
    it.bench->world.space_bytes = 1;
    open_again(it.bench);
    assert_int_equal(found_of(it.bench, it.mine)->seg->integrity, LEAT_INTEGRITY_CORRUPT);
    const struct leat_found *found = found_of(it.bench, other);
    assert_int_equal(found->kind, LEAT_FOUND_MARK);
    assert_int_equal(found->seg->prefix_id.bytes, last_prefix_id(other).bytes);
    bench_free(it.bench);
}

/* Goal: a segment with a close entry in its bytes is closed, and its row follows, although the store had got no
 * CLOSE. */
static void judge_closes_what_its_bytes_close(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 3;
         what++) { /* in memory; in the file; in the file, without its memory */
        struct subject it = make(440 + what, what == 1 ? DISK : MEM, COMMITTED, NULL);
        write_close(it.mine);
        if (what) assert_int_equal(do_now(it.bench, it.mine, LEAT_STORE_COMMIT), LEAT_OK);
        start_again(&it, what == 0);
        const struct leat_found *found =
            found_is(&it, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL);
        assert_int_equal(found->seg->flushed, what != 0);
        assert_int_equal(found->seg->buffer != NULL, what == 0);
        assert_true(found->scan.closed);
        assert_int_equal(found->seg->next_offset, it.mine->next_offset);
        assert_int_equal(row_in_file(&it)->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(row_in_file(&it)->flags, what ? LEAT_ROW_FLUSHED : LEAT_ROW_IN_POOL);
        assert_int_equal(row_in_file(&it)->prefix_id_bytes, last_prefix_id(it.mine).bytes);
        bench_free(it.bench);
    }
}

/* ---- a file that is missing, or has lost its end ---- */

/* Goal: where a file has lost a segment's slot, whole or in part, the report depends on the segment's state. The slot
 * is allocated again, and the row says that the bytes are missing. The loss does no harm to bytes in memory that
 * survived. */
static void judge_tells_of_places_that_are_gone(void **state)
{
    (void)state;
    static const struct {
        enum leat_durability durability;
        enum made made;
        bool memory;
        enum leat_found_kind kind;
        enum leat_segment_state state;
        bool nothing, corrupt, unwritten, noted;
    } rows[] = {
        {MEM, RESERVED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, false, false, false, false},
        {MEM, RESERVED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, false, false, false, false},
        {MEM, COMMITTED, true, LEAT_FOUND_MARK, LEAT_SEGMENT_OPEN, false, false, false, false},
        {MEM, CLOSED, true, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, false, false, false, false},
        {MEM, CLOSED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_CLOSED, false, true, true, false},
        {MEM, HIBERNATED, true, LEAT_FOUND_LOST, LEAT_SEGMENT_HIBERNATED, false, false, false,
         false},
        {MEM, FLUSHED, true, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, false, true, false, true},
        {DISK, RESERVED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, true, false, false, false},
        {DISK, COMMITTED, false, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, false, false, false, false},
        {DISK, CLOSED, false, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, false, true, false, true},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (unsigned part = 0; part < 2; part++) {
            struct subject it = make(500 + i, rows[i].durability, rows[i].made, NULL);
            struct leat_file *file = store_file(&it);
            uint64_t had = file->bytes;
            file->bytes = part ? it.file_at + CAPACITY - 16384 : 0;
            memset(file->now + file->bytes, 0, had - file->bytes);
            start_again(&it, rows[i].memory);
            const struct leat_found *found = found_of(it.bench, it.mine);
            if (rows[i].nothing) {
                assert_null(found);
            } else {
                assert_non_null(found);
                assert_int_equal(found->kind, rows[i].kind);
                assert_int_equal(found->seg->state, rows[i].state);
                /* The part that is gone may have had none of its bytes: it was looked at. */
                bool noted = rows[i].noted && !part;
                assert_int_equal(leat_segment_is_damaged(found->seg),
                                 rows[i].noted ? noted : rows[i].corrupt);
                assert_int_equal(found->seg->integrity == LEAT_INTEGRITY_MISSING,
                                 rows[i].unwritten);
                assert_int_equal(row_in_file(&it)->more, noted ? LEAT_ROW_DAMAGED : 0);
                if (noted)
                    assert_non_null(strstr(it.bench->store->complaints[0],
                                           "segment 1 of log 1/0/3: the file store/0 is missing"));
                if (rows[i].kind == LEAT_FOUND_LOST)
                    assert_non_null(strstr(found->why, "missing or truncated"));
                assert_true(file->bytes >= it.file_at + CAPACITY);
                struct leat_store_file *claimed = leat_held_of(found->seg)->slot.file;
                assert_int_equal(
                    leat_buddy_free_in(&claimed->buddy, leat_held_of(found->seg)->slot.unit, 1), 0);
            }
            bench_free(it.bench);
        }
    /* The end of a file just behind a place is none of its concern. */
    struct subject it = make(520, DISK, FLUSHED, NULL);
    store_file(&it)->bytes = it.file_at + CAPACITY;
    start_again(&it, false);
    (void)found_is(&it, LEAT_FOUND_CLOSED, LEAT_SEGMENT_CLOSED, ALL, NULL);
    assert_int_equal(it.bench->store->complaint_count, 0);
    bench_free(it.bench);
}

/* Goal: a reservation of level `disk` whose slot the file must have had is lost where the slot is gone, since something
 * may have been acked there. The file must have had the slot where a later slot had been synced. */
static void judge_knows_what_a_file_must_have_had(void **state)
{
    (void)state;
    for (unsigned behind = 0; behind < 3; behind++) {
        struct subject it = make(530 + behind, DISK, RESERVED, NULL);
        struct mine *other = NULL;
        while (!other || other->seg->file_offset < it.file_at)
            other = opened(it.bench, DISK);
        write_close(other);
        assert_int_equal(
            do_now(it.bench, other, behind == 1 ? LEAT_STORE_HIBERNATE : LEAT_STORE_COMMIT),
            LEAT_OK);
        if (behind == 2) {
            assert_int_equal(do_now(it.bench, other, LEAT_STORE_CLOSE), LEAT_OK);
            fake_pass(&it.bench->world, 1000);
        }
        struct leat_file *file = store_file(&it);
        memset(file->now, 0, file->bytes);
        file->bytes = 0;
        start_again(&it, false);
        /* Of one that is open, and whose row does not say so yet, nobody knows. */
        (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING,
                       behind ? "missing or truncated" : NULL);
        if (behind) assert_int_equal(row_in_file(&it)->more, LEAT_ROW_DAMAGED);
        bench_free(it.bench);
    }
}

/* Goal: a reservation whose slot the file still has is free, also where the file ends with this slot and has lost a
 * later slot. */
static void judge_frees_the_last_place_that_a_file_has(void **state)
{
    (void)state;
    struct subject it = make(534, DISK, RESERVED, NULL);
    struct mine *other = NULL;
    while (!other || other->seg->file_offset < it.file_at)
        other = opened(it.bench, DISK);
    write_close(other);
    assert_int_equal(do_now(it.bench, other, LEAT_STORE_COMMIT), LEAT_OK);
    assert_int_equal(do_now(it.bench, other, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&it.bench->world, 1000);
    struct leat_file *file = store_file(&it);
    memset(file->now + it.file_at, 0, file->bytes - it.file_at);
    file->bytes = it.file_at + CAPACITY;
    start_again(&it, false);
    assert_null(found_of(it.bench, it.mine));
    bench_free(it.bench);
}

/* Goal: a file's name is durable before any row names the file: where the whole file is gone, a reservation in it is
 * lost. An open segment whose row says how far it was committed had its slot there, too. */
static void judge_knows_of_a_file_that_is_gone(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 2; what++) {
        struct subject it = make(535 + what, DISK, RESERVED, NULL);
        struct leat_disk *disk = &it.bench->world.disk;
        if (what) {
            struct mine *other = NULL;
            while (!other || other->seg->file_offset < it.file_at)
                other = opened(it.bench, DISK);
            assert_int_equal(do_now(it.bench, other, LEAT_STORE_COMMIT), LEAT_OK);
            struct mine *next = reserve(it.bench, DISK, 9, 16384); /* which takes its row along */
            fake_settle(&it.bench->world);
            assert_int_equal(next->rc, LEAT_OK);
            struct leat_file *file = store_file(&it);
            memset(file->now, 0, file->bytes);
            file->bytes = 0;
        } else {
            fake_kill(&it.bench->world);
            bench_drop_store(it.bench);
            assert_int_equal(disk->remove(disk->ctx, "store/0"), LEAT_OK);
        }
        start_again(&it, false);
        (void)found_is(&it, LEAT_FOUND_LOST, LEAT_SEGMENT_OPEN, NOTHING, "missing or truncated");
        assert_int_equal(row_in_file(&it)->more, LEAT_ROW_DAMAGED);
        bench_free(it.bench);
    }
}

/* Goal: two rows claim one slot: the first row has the slot; the start reports the second row, which frees no slot when
 * its segment is dropped. */
static void judge_gives_one_place_to_one_row(void **state)
{
    (void)state;
    struct subject it = make(540, DISK, FLUSHED, NULL);
    struct mine *other = opened(it.bench, DISK);
    write_close(other);
    assert_int_equal(do_now(it.bench, other, LEAT_STORE_CLOSE), LEAT_OK);
    fake_kill(&it.bench->world);
    struct leat_row *row = (void *)(fake_file(&it.bench->world, "catalogue")->now +
                                    LEAT_BLOCK_BYTES + other->seg->row * 128ull);
    row->slot_unit = row_in_file(&it)->slot_unit;
    leat_row_seal(row, other->seg->row);
    open_again(it.bench);
    assert_non_null(strstr(it.bench->store->complaints[0], "claim the same place in store/0"));
    struct leat_held *first = leat_held_of(found_of(it.bench, it.mine)->seg);
    struct leat_held *second = leat_held_of(found_of(it.bench, other)->seg);
    assert_false(first->slot_shared);
    assert_true(second->slot_shared);
    leat_store_found_done(it.bench->store);
    other->seg = &second->seg;
    assert_int_equal(do_now(it.bench, other, LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(leat_buddy_free_in(&first->slot.file->buddy, first->slot.unit, 1), 0);
    bench_free(it.bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_takes_what_is_whole),
        cmocka_unit_test(judge_takes_no_damaged_memory),
        cmocka_unit_test(judge_takes_no_others_bytes),
        cmocka_unit_test(judge_believes_rows_of_memory_that_survived),
        cmocka_unit_test(judge_calls_damage_by_its_name),
        cmocka_unit_test(judge_tells_a_torn_end),
        cmocka_unit_test(judge_takes_a_clean_end_for_the_end),
        cmocka_unit_test(judge_takes_from_memory_what_it_could_write),
        cmocka_unit_test(judge_tells_of_a_closed_segment_that_it_can_not_read),
        cmocka_unit_test(judge_waits_for_room_for_what_memory_has),
        cmocka_unit_test(judge_waits_for_room_alone),
        cmocka_unit_test(judge_waits_for_no_place_but_its_own),
        cmocka_unit_test(judge_closes_what_its_bytes_close),
        cmocka_unit_test(judge_tells_of_places_that_are_gone),
        cmocka_unit_test(judge_knows_what_a_file_must_have_had),
        cmocka_unit_test(judge_frees_the_last_place_that_a_file_has),
        cmocka_unit_test(judge_knows_of_a_file_that_is_gone),
        cmocka_unit_test(judge_gives_one_place_to_one_row),
    };
    return cmocka_run_group_tests_name("store judge", tests, NULL, NULL);
}
