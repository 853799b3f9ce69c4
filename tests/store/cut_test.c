/* SPDX-License-Identifier: Apache-2.0 */
/* Between a start and serving: cutting a log's end, giving up segments, changing roles; and repairing later. The disk
 * operations, the rows after them, and the refusals. */
#include "tests/store/trace.h"

#include "store/row.h"
#include "tests/pages.h"

static const struct leat_row *row_of(struct bench *bench, const struct mine *mine, bool durable)
{
    const struct leat_file *file = fake_file(&bench->world, "catalogue");
    return (const void *)((durable ? file->durable : file->now) + LEAT_BLOCK_BYTES +
                          mine->seg->row * 128ull);
}

/* An open segment of three sealed prefixes, all committed. */
static struct mine *begun(struct bench *bench, enum leat_durability durability)
{
    struct mine *mine = opened(bench, durability);
    assert_true(write_some(mine, 2));
    assert_true(write_some(mine, 3));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    return mine;
}

/* As the next start finds it. */
static void start_again(struct bench *bench, struct mine *const *mine, unsigned count, bool memory)
{
    fake_kill(&bench->world);
    if (!memory) bench->world.arena.inherited_bytes = 0;
    open_again(bench);
    for (unsigned i = 0; i < count; i++) {
        const struct leat_found *found = found_of(bench, mine[i]);
        assert_non_null(found);
        mine[i]->seg = found->seg;
    }
}

/* Goal: an open replica is cut to the decided end, by its row alone, when its bytes up to that end are the decided
 * bytes, and not otherwise; from its file and from memory; each failure is reported and changes nothing durable. */
static void cut_takes_what_was_decided_and_nothing_else(void **state)
{
    (void)state;
    enum {
        GOOD,
        OTHER_CRC,
        OTHER_END,
        NOTHING,
        TOO_LONG,
        BEHIND,
        READ_FAILS,
        SHORT_FILE,
        ANOTHERS,
        CASES
    };
    static const leat_err want[] = {LEAT_OK,        LEAT_E_DAMAGED, LEAT_E_DAMAGED,
                                    LEAT_E_INVALID, LEAT_E_INVALID, LEAT_E_DAMAGED,
                                    LEAT_E_DISK,    LEAT_E_DAMAGED, LEAT_E_DAMAGED};
    for (unsigned memory = 0; memory < 2; memory++)
        for (unsigned what = 0; what < CASES; what++) {
            if (memory && (what == READ_FAILS || what == SHORT_FILE)) continue;
            struct bench *bench = bench_ready(what + 1);
            struct mine *mine =
                begun(bench, memory ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK);
            start_again(bench, &mine, 1, memory);
            struct leat_segment *seg = mine->seg;
            const struct leat_prefix_id *ids = mine->prefix_ids;
            struct leat_prefix_id to = ids[1];
            uint64_t next = seg->base_offset + 7;
            if (what == OTHER_CRC) to.crc ^= 1;
            if (what == OTHER_END) to.bytes -= 8;
            if (what == NOTHING) to.bytes = 0;
            if (what == TOO_LONG) to.bytes = seg->capacity + 1;
            if (what == BEHIND) next = seg->base_offset - 1;
            if (what == READ_FAILS) bench->world.fail_at = bench->world.op_count + 1;
            if (what == SHORT_FILE)
                fake_file(&bench->world, "store/0")->bytes = seg->file_offset + 8;
            if (what == ANOTHERS) seg->log.log++;
            assert_int_equal(leat_store_cut(bench->store, seg, to, next, 1234), want[what]);
            bench->world.fail_at = 0;
            if (what == ANOTHERS) seg->log.log--;
            if (what) {
                assert_int_equal(seg->state, LEAT_SEGMENT_OPEN);
                bench_free(bench);
                continue;
            }
            assert_int_equal(seg->state, LEAT_SEGMENT_CLOSED);
            assert_int_equal(seg->prefix_id.bytes, to.bytes);
            assert_int_equal(seg->prefix_id.crc, to.crc);
            assert_int_equal(seg->base_offset, mine->id.v * 1000);
            assert_int_equal(seg->next_offset, next);
            assert_int_equal(seg->max_timestamp_ms, 1234);
            assert_int_equal(row_of(bench, mine, false)->state == LEAT_SEGMENT_CLOSED, false);
            for (uint32_t i = to.bytes; memory && i < seg->capacity; i++)
                assert_int_equal(seg->buffer[i], 0);
            uint64_t before = bench->world.op_count;
            assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
            assert_int_equal(bench->world.op_count - before,
                             memory ? 2 : 3); /* its file's sync, its row, its row's */
            const struct leat_row *row = row_of(bench, mine, true);
            assert_int_equal(row->state, LEAT_SEGMENT_CLOSED);
            assert_int_equal(row->prefix_id_bytes, to.bytes);
            assert_int_equal(row->next_offset, next);
            assert_int_equal(row->max_timestamp_ms, 1234);
            assert_int_equal(row->flags, memory ? LEAT_ROW_IN_POOL : LEAT_ROW_FLUSHED);
            assert_int_equal(leat_held_of(seg)->in_file_bytes, memory ? 0 : to.bytes);
            /* The cut is repeated, as by the start that comes after an interrupted start. */
            assert_int_equal(leat_store_cut(bench->store, seg, to, next, 1234), LEAT_OK);
            assert_int_equal(leat_store_cut(bench->store, seg, ids[0], next, 1), LEAT_OK);
            assert_int_equal(leat_store_cut(bench->store, seg, to, next + 1, 1234), LEAT_E_DAMAGED);
            assert_int_equal(leat_store_cut(bench->store, seg, ids[2], next, 1234), LEAT_E_DAMAGED);
            before = bench->world.op_count;
            assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
            assert_int_equal(bench->world.op_count - before, 1); /* nothing is cut any more */
            bench_free(bench);
        }
}

/* Goal: a cut is durable only when all of it is: each failed operation is reported, and the next start finds the
 * segment open, or cut. */
static void cut_that_fails_is_cut_again(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        struct bench *bench = bench_ready(20 + n);
        struct mine *mine = begun(bench, LEAT_DURABILITY_DISK);
        start_again(bench, &mine, 1, false);
        assert_int_equal(
            leat_store_cut(bench->store, mine->seg, mine->prefix_ids[1], mine->seg->base_offset, 1),
            LEAT_OK);
        bench->world.fail_at = bench->world.op_count + n;
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_E_DISK);
        assert_int_equal(bench->store->slots.files[0]->failed, n == 1);
        assert_int_equal(bench->store->cat.failed, n > 1);
        bench->world.fail_at = 0;
        fake_power_cut(&bench->world);
        open_again(bench);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        if (found->kind == LEAT_FOUND_CLOSED)
            assert_int_equal(found->scan.bytes, mine->prefix_ids[1].bytes);
        if (found->kind != LEAT_FOUND_CLOSED)
            assert_int_equal(found->scan.bytes, mine->prefix_ids[2].bytes);
        bench_free(bench);
    }
}

/* Goal: of several segments some are cut, one is given up, one is hibernated for another node, one gets another role;
 * all of that is durable at once, and the slot of the segment given up serves others. */
static void cut_done_makes_all_of_it_durable(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct mine *mine[5];
    for (unsigned i = 0; i < 5; i++)
        mine[i] = begun(bench, LEAT_DURABILITY_DISK);
    start_again(bench, mine, 5, false);
    uint32_t unit = leat_held_of(mine[1]->seg)->slot.unit;
    struct leat_store_file *file = leat_held_of(mine[1]->seg)->slot.file;
    assert_int_equal(leat_store_cut(bench->store, mine[0]->seg, mine[0]->prefix_ids[0], 5000, 6),
                     LEAT_OK);
    assert_int_equal(leat_store_forget(bench->store, mine[1]->seg), LEAT_OK);
    const struct leat_found *found = found_of(bench, mine[2]);
    struct leat_found open = *found;
    open.scan.bytes = mine[2]->prefix_ids[1].bytes; /* as much as that node asked for */
    open.scan.crc = mine[2]->prefix_ids[1].crc;
    open.scan.base_offset = 11;
    open.scan.next_offset = 12;
    open.scan.max_timestamp_ms = 13;
    leat_store_found_hibernate(bench->store, &open);
    leat_store_role_set(bench->store, mine[3]->seg, LEAT_SEGMENT_REPLICA, 777);
    leat_store_role_set(bench->store, mine[4]->seg, LEAT_SEGMENT_REPLICA, 5);
    leat_store_role_set(bench->store, mine[4]->seg, LEAT_SEGMENT_OWN, 778);
    uint32_t rows[5];
    for (unsigned i = 0; i < 5; i++)
        rows[i] = mine[i]->seg->row;
    assert_int_equal(leat_buddy_free_in(&file->buddy, unit, 0), 0);
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    assert_int_equal(leat_buddy_free_in(&file->buddy, unit, 0), 1);
    const struct leat_row *row[5];
    for (unsigned i = 0; i < 5; i++)
        row[i] = (const void *)(fake_file(&bench->world, "catalogue")->durable + LEAT_BLOCK_BYTES +
                                rows[i] * 128ull);
    assert_int_equal(row[0]->state, LEAT_SEGMENT_CLOSED);
    assert_int_equal(row[1]->state, LEAT_SEGMENT_FREE);
    assert_int_equal(row[2]->state, LEAT_SEGMENT_HIBERNATED);
    assert_true(mine[2]->prefix_ids[1].bytes < last_prefix_id(mine[2]).bytes);
    assert_int_equal(row[2]->prefix_id_bytes, mine[2]->prefix_ids[1].bytes);
    assert_int_equal(row[2]->prefix_id_crc, mine[2]->prefix_ids[1].crc);
    assert_int_equal(row[2]->base_offset, 11);
    assert_int_equal(row[2]->next_offset, 12);
    assert_int_equal(row[2]->max_timestamp_ms, 13);
    assert_int_equal(mine[2]->seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_int_equal(leat_held_of(mine[2]->seg)->in_file_bytes, mine[2]->prefix_ids[1].bytes);
    assert_int_equal(row[3]->flags & LEAT_ROW_REPLICA, LEAT_ROW_REPLICA);
    assert_int_equal(row[3]->writer, 777);
    assert_int_equal(mine[3]->seg->role, LEAT_SEGMENT_REPLICA);
    assert_int_equal(mine[3]->seg->writer, 777);
    assert_int_equal(row[4]->flags & LEAT_ROW_REPLICA, 0);
    assert_int_equal(row[4]->writer, 778);
    for (unsigned i = 0; i < 5; i++)
        assert_true(leat_row_valid(row[i], rows[i]));
    leat_store_found_hibernate(bench->store, &open); /* hibernated already: nothing */
    assert_int_equal(mine[2]->seg->state, LEAT_SEGMENT_HIBERNATED);
    bench_free(bench);
    /* A segment with a buffer stays open; a segment that is lost stays as it is. */
    bench = bench_ready(31);
    mine[0] = begun(bench, LEAT_DURABILITY_MEMORY);
    start_again(bench, mine, 1, true);
    leat_store_found_hibernate(bench->store, found_of(bench, mine[0]));
    assert_int_equal(mine[0]->seg->state, LEAT_SEGMENT_OPEN);
    open = *found_of(bench, mine[0]);
    open.kind = LEAT_FOUND_LOST;
    uint8_t *buffer = mine[0]->seg->buffer;
    mine[0]->seg->buffer = NULL;
    leat_store_found_hibernate(bench->store, &open);
    assert_int_equal(mine[0]->seg->state, LEAT_SEGMENT_OPEN);
    mine[0]->seg->buffer = buffer;
    bench_free(bench);
}

/* Goal: none of it while anything is on its way to the disk. */
static void cut_waits_for_rounds(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(32);
    struct mine *mine = begun(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 1));
    ask(bench, mine, LEAT_STORE_COMMIT);
    (void)fake_event_step(&bench->world);
    assert_int_equal(leat_store_cut(bench->store, mine->seg, mine->prefix_ids[1], 9999, 0),
                     LEAT_E_AGAIN);
    assert_int_equal(leat_store_forget(bench->store, mine->seg), LEAT_E_AGAIN);
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_E_AGAIN);
    fake_settle(&bench->world);
    struct mine *other = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(other);
    assert_int_equal(do_now(bench, other, LEAT_STORE_CLOSE), LEAT_OK);
    bench->world.now_us += 60000;
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(leat_store_forget(bench->store, other->seg),
                     LEAT_E_AGAIN); /* it is being flushed */
    fake_settle(&bench->world);
    assert_int_equal(leat_store_forget(bench->store, other->seg), LEAT_OK);
    assert_int_equal(leat_held_of(other->seg)->where, LEAT_HELD_NOWHERE);
    assert_int_equal(bench->store->cached_bytes, 0);
    bench_free(bench);
}

/* ---- repairing ---- */

static struct leat_store_req repair;
static bool repaired;
static void on_repaired(struct leat_store_req *req)
{
    (void)req;
    repaired = true;
}
static leat_err repair_by(struct bench *bench, struct leat_segment *seg, uint8_t *bytes)
{
    repair = (struct leat_store_req){
        .kind = LEAT_STORE_REPAIR, .seg = seg, .bytes = bytes, .on_done = on_repaired};
    repaired = false;
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &repair);
    fake_settle(&bench->world);
    assert_true(repaired);
    assert_null(repair.copy);
    assert_false(leat_held_of(seg)->repairing);
    assert_int_equal(bench->store->repairs, 0);
    return repair.rc;
}

/* All of them, in three pieces, and synced. */
static void own_bytes_are_written(const struct leat_segment *seg, const struct leat_file *file,
                                  const uint8_t *copy, uint32_t end)
{
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ops[i].io.offset, seg->file_offset + i * 262144ull);
        assert_int_equal(ops[i].io.bytes, i < 2 ? 262144 : end - 2 * 262144);
        assert_ptr_equal(ops[i].io.buffer, copy + i * 262144ull);
        assert_true(ops[i].io.beside);
        assert_ptr_equal(ops[i].io.file, file);
    }
    synced(3, "store/0", true);
}

/* Goal: a repair writes a segment's own bytes over its slot, 256 KiB at a time, then syncs; each failure is reported,
 * and a sync that fails is the file's end. Other bytes are refused with nothing written, and so is a segment that must
 * not be repaired. */
static void repair_writes_its_own_bytes(void **state)
{
    (void)state;
    enum { BYTES = 600 * 1024, CAPACITY = 1024 * 1024 };
    static uint8_t *copy;
    if (!copy) copy = pages_get(CAPACITY);
    enum {
        GOOD,
        FIRST_FAILS,
        LAST_FAILS,
        SYNC_FAILS,
        OTHER_BYTES,
        FILE_FAILED,
        SHARED,
        NOT_CLOSED,
        IN_MEMORY,
        ANOTHERS,
        CASES
    };
    for (unsigned what = 0; what < CASES; what++) {
        struct bench *bench = trace_begin(bench_ready(40 + what));
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, CAPACITY);
        fake_settle(&bench->world);
        write_header(mine);
        write_start(mine);
        assert_true(write_some(mine, BYTES / 48));
        if (what != NOT_CLOSED) {
            write_close(mine);
            if (what == IN_MEMORY)
                mine->seg->durability = mine->durability = LEAT_DURABILITY_MEMORY;
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        }
        struct leat_segment *seg = mine->seg;
        struct leat_held *held = leat_held_of(seg);
        uint32_t bytes = last_prefix_id(mine).bytes, end = (bytes + 4095) / 4096 * 4096;
        memset(copy, 0, CAPACITY);
        memcpy(copy, seg->buffer, bytes);
        struct leat_file *file = fake_file(&bench->world, "store/0");
        memset(file->now + seg->file_offset, 0x5a, end);
        if (what == OTHER_BYTES) copy[bytes - 1] ^= 1;
        if (what == ANOTHERS) seg->log.log++;
        if (what == FILE_FAILED) held->slot.file->failed = true;
        if (what == SHARED) held->slot_shared = true;
        if (what == FIRST_FAILS) bench->world.fail_at = bench->world.op_count + 1;
        if (what == LAST_FAILS) bench->world.fail_at = bench->world.op_count + 3;
        if (what == SYNC_FAILS) bench->world.fail_at = bench->world.op_count + 4;
        held->damaged = what != NOT_CLOSED && what != IN_MEMORY;
        op_count = 0;
        leat_err rc = repair_by(bench, seg, copy);
        bench->world.fail_at = 0;
        if (what == ANOTHERS) seg->log.log--;
        static const leat_err want[] = {
            LEAT_OK,     LEAT_E_DISK,    LEAT_E_DISK,    LEAT_E_DISK,    LEAT_E_INVALID,
            LEAT_E_DISK, LEAT_E_INVALID, LEAT_E_INVALID, LEAT_E_INVALID, LEAT_E_INVALID};
        assert_int_equal(rc, want[what]);
        if (what >= OTHER_BYTES) assert_int_equal(op_count, 0);
        if (what == FIRST_FAILS) assert_int_equal(op_count, 1);
        if (what == LAST_FAILS) assert_int_equal(op_count, 3);
        assert_int_equal(held->slot.file->failed, what == SYNC_FAILS || what == FILE_FAILED);
        assert_int_equal(bench->store->complaint_count, what == SYNC_FAILS);
        if (what == GOOD || what == SYNC_FAILS) own_bytes_are_written(seg, file, copy, end);
        if (what == GOOD) {
            assert_memory_equal(file->durable + seg->file_offset, copy, end);
            assert_false(held->damaged);
            assert_int_equal(row_of(bench, mine, true)->more, 0);
        } else if (what == FIRST_FAILS) {
            assert_true(held->damaged);
        }
        held->slot_shared = false;
        bench_free(bench);
    }
}

/* Goal: whole bytes of the same segment and of the same length, which are not those that its row names, are refused. */
static void repair_refuses_other_bytes_of_the_same_length(void **state)
{
    (void)state;
    static uint8_t *copy;
    if (!copy) copy = pages_get(16384);
    struct bench *bench = bench_ready(58);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct leat_segment *seg = mine->seg;
    struct leat_entry_writer before = mine->writer;
    struct leat_trim trim = {.first_segment = 1};
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    memcpy(copy, seg->buffer, 16384);
    mine->writer = before;
    mine->writer.bytes = copy;
    trim.first_segment = 2;
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    write_close(mine);
    assert_int_equal(last_prefix_id(mine).bytes, seg->prefix_id.bytes);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now + seg->file_offset, 0x5a, 4096);
    assert_int_equal(repair_by(bench, seg, copy), LEAT_E_INVALID);
    assert_int_equal(file->now[seg->file_offset], 0x5a);
    assert_int_equal(repair_by(bench, seg, seg->buffer), LEAT_OK);
    bench_free(bench);
}

/* Goal: without bytes of the caller's they are those of memory: the buffer, or the place where it was, while it is
 * nobody's. Where they are not whole the row says, durably, that the file is damaged. */
static void repair_by_what_memory_has(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4;
         what++) { /* buffer; its place; that place is another's; it was written over */
        struct bench *bench = bench_ready(60 + what);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(write_some(mine, 9));
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        struct leat_segment *seg = mine->seg;
        struct leat_held *held = leat_held_of(seg);
        uint8_t *at = seg->buffer;
        if (what) assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
        if (what == 2) assert_ptr_equal(opened(bench, LEAT_DURABILITY_MEMORY)->seg->buffer, at);
        if (what == 3) at[100] ^= 1;
        struct leat_file *file = fake_file(&bench->world, "store/0");
        memset(file->now + seg->file_offset, 0x5a, 4096);
        assert_int_equal(leat_repair_remembers(bench->store, held), what < 2);
        assert_int_equal(repair_by(bench, seg, NULL), what < 2 ? LEAT_OK : LEAT_E_NOT_FOUND);
        if (what < 2)
            assert_memory_equal(file->durable + seg->file_offset, at, seg->prefix_id.bytes);
        assert_int_equal(held->damaged, what >= 2);
        assert_int_equal(row_of(bench, mine, true)->more, what >= 2 ? LEAT_ROW_DAMAGED : 0);
        if (what < 2) {
            leat_mem_fail_at(1);
            assert_int_equal(repair_by(bench, seg, NULL), LEAT_E_NO_MEMORY);
            leat_mem_fail_at(0);
            assert_false(held->damaged);
        }
        bench_free(bench);
    }
}

/* ---- what the store says of itself ---- */

/* Goal: so it is after a kill, too, for each at its own place. */
static void repair_after_a_kill_looks_where_each_row_says(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(66);
    struct mine *mine[3];
    for (unsigned i = 0; i < 3; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(write_some(mine[i], 9 + i));
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
    }
    start_again(bench, mine, 3, true);
    for (unsigned i = 0; i < 3; i++)
        assert_true(leat_repair_remembers(bench->store, leat_held_of(mine[i]->seg)));
    start_again(bench, mine, 3, false); /* another boot */
    for (unsigned i = 0; i < 3; i++)
        assert_false(leat_repair_remembers(bench->store, leat_held_of(mine[i]->seg)));
    bench_free(bench);
}

/* Goal: the numbers of leat_store_usage(), and the report to a log on its head's memory. */
static void store_tells_what_it_uses(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(70);
    struct leat_store_usage usage;
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.memory_limit, MEMORY);
    assert_int_equal(usage.memory_used, 0);
    assert_int_equal(usage.segments, 0);
    assert_int_equal(usage.disk_bytes, 4096);
    assert_false(usage.memory_kept);
    assert_int_equal(usage.disk_lacks_bytes, 0);
    struct mine *mine = begun(bench, LEAT_DURABILITY_DISK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.memory_used, 16384);
    assert_int_equal(usage.memory_grown, LEAT_ARENA_STEP_BYTES);
    assert_int_equal(usage.segments, 1);
    assert_int_equal(usage.disk_bytes, 4096 + 131072 + 1024 * 1024);
    assert_int_equal(usage.rows_free_bytes,
                     127 * sizeof(struct leat_held) +
                         1023 * (sizeof(struct leat_row_chunk) / LEAT_STORE_ROWS_PER_CHUNK));
    assert_int_equal(usage.rows_asked_bytes, 0);
    assert_true(bench->store_port.safe_in_memory(bench->store_port.ctx, mine->seg));
    assert_int_equal(bench->store_port.commits, 2);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_false(bench->store_port.safe_in_memory(bench->store_port.ctx, mine->seg));
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.memory_used, 0);
    bench->world.space_bytes = 1;
    struct mine *none = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 4 * 1024 * 1024);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.rows_asked_bytes, LEAT_SEGMENT_HEAP_BYTES); /* it has not begun */
    fake_settle(&bench->world);
    assert_int_equal(none->rc, LEAT_E_DISK_FULL);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.disk_lacks_bytes, 4 * 1024 * 1024);
    assert_int_equal(usage.rows_asked_bytes, 0);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_takes_what_was_decided_and_nothing_else),
        cmocka_unit_test(cut_that_fails_is_cut_again),
        cmocka_unit_test(cut_done_makes_all_of_it_durable),
        cmocka_unit_test(cut_waits_for_rounds),
        cmocka_unit_test(repair_writes_its_own_bytes),
        cmocka_unit_test(repair_refuses_other_bytes_of_the_same_length),
        cmocka_unit_test(repair_by_what_memory_has),
        cmocka_unit_test(repair_after_a_kill_looks_where_each_row_says),
        cmocka_unit_test(store_tells_what_it_uses),
    };
    return cmocka_run_group_tests_name("store cut", tests, NULL, NULL);
}
