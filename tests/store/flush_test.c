/* SPDX-License-Identifier: Apache-2.0 */
/* Flush-behind and scrub: when they go, in which pieces, what they tell, and what stops them. */
#include "tests/store/trace.h"

enum { MIB = 1024 * 1024, DELAY_US = 50000 };

static unsigned evicts, damages;
static void on_damaged(void *core, struct leat_segment *seg)
{
    (void)core;
    (void)seg;
    damages++;
}

static struct bench *begin(uint64_t seed)
{
    struct bench *bench = trace_begin(bench_ready(seed));
    bench->store->options.events.on_damaged = on_damaged;
    evicts = damages = 0;
    return bench;
}

/* A segment of that size, with these bytes in it, closed as it is. */
static struct mine *closed(struct bench *bench, enum leat_durability durability, uint32_t capacity,
                           uint32_t bytes)
{
    struct mine *mine = reserve(bench, durability, 0, capacity);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    memset(mine->seg->buffer, (int)bench->count, bytes);
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){bytes, 99};
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    return mine;
}

static const struct leat_row *row_of(struct bench *bench, const struct mine *mine, bool durable)
{
    const struct leat_file *file = fake_file(&bench->world, "catalogue");
    return (const void *)((durable ? file->durable : file->now) + LEAT_BLOCK_BYTES +
                          mine->seg->row * 128ull);
}

/* Goal: a closed `memory` segment waits for the delay, goes in pieces of 1 MiB, of which two are under way at a time,
 * is synced, then its row says so, durably, and only then is its owner told. */
static void flush_goes_after_its_delay_in_pieces(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 4095, 4096, 4097, MIB, MIB + 1, 5 * MIB / 2, 4 * MIB};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench *bench = begin(i + 1);
        struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, 4 * MIB, sizes[i]);
        op_count = 0;
        uint64_t closed_us = bench->world.now_us;
        fake_pass(&bench->world, DELAY_US - 1);
        assert_int_equal(op_count, 0);
        fake_pass(&bench->world, 1);
        assert_true(mine->flushed);
        uint32_t end = (sizes[i] + 4095) / 4096 * 4096, pieces = (end + MIB - 1) / MIB;
        assert_int_equal(op_count, pieces + 3);
        for (uint32_t n = 0; n < pieces; n++) {
            wrote(n, mine->seg, n * MIB, (n + 1) * MIB < end ? (n + 1) * MIB : end, true);
            assert_int_equal(ops[n].us, closed_us + DELAY_US);
        }
        synced(pieces, "store/0", true); /* nobody waits for it */
        assert_string_equal(ops[pieces + 1].file, "catalogue");
        assert_int_equal(ops[pieces + 1].io.kind, LEAT_DISK_WRITE);
        synced(pieces + 2, "catalogue", ops[pieces + 2].io.beside);
        assert_int_equal(row_of(bench, mine, true)->flags, LEAT_ROW_FLUSHED | LEAT_ROW_IN_POOL);
        assert_int_equal(bench->store->cached_bytes, 4 * MIB);
        assert_memory_equal(fake_file(&bench->world, "store/0")->durable + mine->seg->file_offset,
                            mine->seg->buffer, sizes[i]);
        bench_free(bench);
    }
}

/* Goal: step by step: what is not yet on the disk is not called so. */
static void flush_tells_nothing_too_early(void **state)
{
    (void)state;
    struct bench *bench = begin(11);
    struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, 4 * MIB, 3 * MIB);
    const struct leat_file *file = fake_file(&bench->world, "store/0");
    bench->world.now_us += DELAY_US;
    bench->world.turn = true;
    unsigned most = 0;
    op_count = 0;
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(op_count, 2);
    while (fake_is_busy(&bench->world)) {
        if (bench->store->flush_in_flight > most) most = bench->store->flush_in_flight;
        bool there =
            memcmp(file->durable + mine->seg->file_offset, mine->seg->buffer, 3 * MIB) == 0;
        bool noted = row_of(bench, mine, false)->flags & LEAT_ROW_FLUSHED;
        bool durable = row_of(bench, mine, true)->flags & LEAT_ROW_FLUSHED;
        assert_true(there || !noted);
        assert_true(durable || !mine->flushed);
        assert_true(leat_held_of(mine->seg)->where != LEAT_HELD_CACHED || durable);
        (void)fake_step(&bench->world);
    }
    assert_true(mine->flushed);
    assert_int_equal(most, 2);
    bench_free(bench);
}

static struct leat_store_req small;
static unsigned commits;
static void on_commit(struct leat_store_req *req)
{
    assert_int_equal(req->rc, LEAT_OK);
    commits++;
}
static void commit(struct bench *bench, struct leat_segment *seg)
{
    small = (struct leat_store_req){
        .kind = LEAT_STORE_COMMIT, .seg = seg, .to_bytes = 100, .on_done = on_commit};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &small);
}

/* Goal: while commits come, and for 10 ms after the last, pieces are of 256 KiB, one at a time, and one goes between
 * two rounds that carry requests. */
static void flush_leaves_the_disk_to_commits(void **state)
{
    (void)state;
    for (uint64_t after = 0; after < 2; after++) {
        struct bench *bench = begin(12);
        struct mine *open = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, 4 * MIB, 2 * MIB);
        fake_pass(&bench->world, DELAY_US - LEAT_STORE_BUSY_US + 1 - after);
        commit(bench, open->seg);
        fake_settle(&bench->world);
        op_count = 0;
        fake_pass(&bench->world, LEAT_STORE_BUSY_US - 1 + after);
        assert_true(mine->flushed);
        uint32_t piece = after ? MIB : 256 * 1024;
        for (uint32_t n = 0; n < 2 * MIB / piece; n++)
            wrote(n, mine->seg, n * piece, (n + 1) * piece, true);
        assert_int_equal(op_count, 2 * MIB / piece + 3);
        bench_free(bench);
    }
    /* A round is always under way. */
    struct bench *bench = begin(13);
    struct mine *open = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, 4 * MIB, 2 * MIB);
    fake_pass(&bench->world, DELAY_US - 1);
    op_count = commits = 0;
    commit(bench, open->seg);
    (void)fake_event_step(&bench->world);
    bench->world.now_us += 1;
    unsigned pieces = 0, rounds = 0;
    for (unsigned i = 0; i < 20; i++) {
        unsigned was = commits;
        while (commits == was)
            assert_true(fake_step(&bench->world));
        commit(bench, open->seg);
    }
    for (unsigned i = 0; i < op_count; i++) {
        pieces += ops[i].io.kind == LEAT_DISK_WRITE && ops[i].io.bytes == 256 * 1024;
        rounds += ops[i].io.kind == LEAT_DISK_SYNC && ops[i].io.file == open->seg->file;
        assert_true(ops[i].io.bytes <= 256 * 1024);
    }
    assert_int_equal(pieces, 8);
    assert_true(rounds >= 19);
    fake_settle(&bench->world);
    fake_pass(&bench->world, 1000);
    assert_true(mine->flushed);
    bench_free(bench);
}

/* Goal: bytes that are in the file already are not written again; for a segment with all bytes in the file nothing is
 * written. */
static void flush_writes_what_the_file_lacks(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++) {
        struct bench *bench = begin(14);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 4 * MIB);
        fake_settle(&bench->world);
        small = (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                        .seg = mine->seg,
                                        .to_bytes = all ? 20000 : 10000,
                                        .on_done = on_commit};
        bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &small);
        fake_settle(&bench->world);
        mine->prefix_id_count = 1;
        mine->prefix_ids[0] = (struct leat_prefix_id){20000, 99};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        assert_int_equal(mine->flushed, all);
        assert_int_equal(row_of(bench, mine, false)->flags & LEAT_ROW_FLUSHED, all);
        op_count = 0;
        fake_pass(&bench->world, DELAY_US + 20000);
        assert_true(mine->flushed);
        if (!all) wrote(0, mine->seg, 8192, 20480, true);
        assert_int_equal(op_count, all ? 0 : 4);
        bench_free(bench);
    }
}

/* Goal: segments go in the order in which they were closed, and are synced together where nobody waits. */
static void flush_goes_in_order_and_syncs_together(void **state)
{
    (void)state;
    struct bench *bench = begin(15);
    struct mine *mine[5];
    for (unsigned i = 0; i < 5; i++)
        mine[i] = closed(bench, LEAT_DURABILITY_MEMORY, MIB, MIB);
    op_count = 0;
    fake_pass(&bench->world, DELAY_US);
    unsigned syncs = 0, at = 0;
    for (unsigned i = 0; i < op_count; i++) {
        syncs += ops[i].io.kind == LEAT_DISK_SYNC && strcmp(ops[i].file, "store/0") == 0;
        if (ops[i].io.kind != LEAT_DISK_WRITE || strcmp(ops[i].file, "store/0") != 0) continue;
        assert_ptr_equal(ops[i].io.buffer, mine[at]->seg->buffer);
        at++;
    }
    assert_int_equal(at, 5);
    assert_int_equal(syncs, 1);
    for (unsigned i = 0; i < 5; i++)
        assert_true(mine[i]->flushed);
    assert_int_equal(bench->store->flush_unsynced_bytes, 0);
    assert_int_equal(bench->store->flush_written, 0);
    assert_int_equal(bench->store->flush_pending, 0);
    /* Where much is not synced yet that does not wait for the end. */
    for (unsigned i = 0; i < 10; i++)
        (void)closed(bench, LEAT_DURABILITY_MEMORY, 8 * MIB, 8 * MIB);
    op_count = 0;
    fake_pass(&bench->world, DELAY_US);
    uint64_t since = 0;
    for (unsigned i = 0; i < op_count; i++) {
        if (strncmp(ops[i].file, "store/", 6) != 0) continue;
        if (ops[i].io.kind == LEAT_DISK_WRITE) since += ops[i].io.bytes;
        if (ops[i].io.kind == LEAT_DISK_SYNC) since = 0;
        assert_true(since <= 32 * MIB + 8 * MIB + 2 * MIB);
    }
    bench_free(bench);
}

/* Goal: a flush that fails leaves the segment in memory, and this is reported once; drops and a flush of all segments
 * end all the same. */
static void flush_that_fails_keeps_the_bytes(void **state)
{
    (void)state;
    for (unsigned what = 1; what <= 4; what++) { /* a piece; the sync; the row; its sync */
        struct bench *bench = begin(16);
        struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 5000);
        bench->world.fail_at = bench->world.op_count + what;
        fake_pass(&bench->world, DELAY_US);
        bench->world.fail_at = 0;
        struct leat_held *held = leat_held_of(mine->seg);
        assert_false(mine->flushed);
        assert_int_equal(held->where, LEAT_HELD_STUCK);
        assert_true(held->failed);
        assert_non_null(mine->seg->buffer);
        assert_int_equal(bench->store->complaint_count, what == 1 ? 1 : 2);
        assert_int_equal(bench->store->flush_pending, 0);
        assert_int_equal(bench->store->slots.files[0]->failed, what == 2);
        assert_int_equal(bench->store->cat.failed, what > 2);
        fake_pass(&bench->world, 10 * DELAY_US);
        assert_false(mine->flushed);
        if (what <= 2) {
            assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
            struct mine *next = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 5000);
            fake_pass(&bench->world, DELAY_US);
            assert_true(next->flushed);
            if (what == 2) assert_int_equal(next->seg->file_number, 1);
        }
        bench_free(bench);
    }
}

static unsigned all_done;
static leat_err all_rc;
static void on_all(void *arg, leat_err rc)
{
    assert_ptr_equal(arg, &all_done);
    all_done++;
    all_rc = rc;
}

/* Goal: flushing all does not wait for the delay, ends when all is down and not sooner, once, and says whether it
 * is. */
static void flush_of_all_ends_when_all_is_down(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 3; fails++) {
        struct bench *bench = begin(17);
        struct mine *mine[3];
        for (unsigned i = 0; i < 3; i++)
            mine[i] = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 5000);
        all_done = 0;
        if (fails) bench->world.fail_at = bench->world.op_count + fails;
        leat_store_flush_all(bench->store, on_all, &all_done);
        assert_int_equal(bench->store->options.scrub_bytes_per_second, 0);
        assert_true(bench->store->slots.no_more);
        bench->world.turn = true;
        leat_store_actor.on_turn_end(bench->store);
        while (!all_done) {
            assert_true(fake_step(&bench->world));
            for (unsigned i = 0; all_done && i < 3; i++)
                assert_int_not_equal(leat_held_of(mine[i]->seg)->where, LEAT_HELD_FLUSHING);
        }
        assert_int_equal(all_rc, fails ? LEAT_E_DISK : LEAT_OK);
        fake_pass(&bench->world, 1000000);
        assert_int_equal(all_done, 1);
        for (unsigned i = 0; !fails && i < 3; i++)
            assert_true(row_of(bench, mine[i], true)->flags & LEAT_ROW_FLUSHED);
        bench_free(bench);
    }
    struct bench *bench = begin(18); /* nothing to do */
    all_done = 0;
    leat_store_flush_all(bench->store, on_all, &all_done);
    leat_store_actor.on_turn_end(bench->store);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(all_done, 1);
    assert_int_equal(all_rc, LEAT_OK);
    bench_free(bench);
}

/* Goal: a drop of a segment whose flush is under way is answered when the flush has ended, and the slot serves no other
 * segment before. A drop of a segment that waits for its flush is answered at once. */
static void flush_under_way_holds_a_drop_back(void **state)
{
    (void)state;
    struct bench *bench = begin(19);
    struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 900000);
    struct mine *waits = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 900000);
    bench->world.now_us += DELAY_US;
    waits->req.owner = NULL;
    assert_int_equal(do_now(bench, waits, LEAT_STORE_DROP), LEAT_OK);
    /* Its turn has begun the flush of the other. */
    mine = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 900000);
    bench->world.now_us += DELAY_US;
    op_count = 0;
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_FLUSHING);
    struct leat_held *held = leat_held_of(mine->seg);
    ask(bench, mine, LEAT_STORE_DROP);
    bool waited = false;
    while (mine->busy) {
        waited |= held->drop != NULL;
        assert_true(fake_step(&bench->world));
    }
    assert_true(waited);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_false(mine->flushed); /* nobody is there to be told */
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: the disk's speed is what pieces of 64 KiB and more took, smoothed by eighths. */
static void flush_measures_the_disk(void **state)
{
    (void)state;
    struct bench *bench = begin(20);
    struct leat_store_usage usage;
    uint64_t want = 0;
    static const struct {
        uint32_t bytes;
        uint64_t us;
    } rows[] = {{65536, 1000}, {4096, 5}, {61440, 5}, {1048576, 2000}, {65536, 0}, {131072, 1}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)closed(bench, LEAT_DURABILITY_MEMORY, MIB, rows[i].bytes);
        bench->world.now_us += DELAY_US;
        leat_store_actor.on_turn_end(bench->store);
        assert_int_equal(bench->store->flush_in_flight, 1);
        bench->world.now_us += rows[i].us;
        fake_settle(&bench->world);
        uint64_t speed = rows[i].us ? rows[i].bytes * UINT64_C(1000000) / rows[i].us : 0;
        if (rows[i].bytes >= 65536 && rows[i].us) want = want ? (want * 7 + speed) / 8 : speed;
        leat_store_usage(bench->store, &usage);
        assert_int_equal(usage.flush_bytes_per_second, want);
    }
    bench_free(bench);
}

/* Goal: the pool in need makes closed segments go at once: when half of it is in no file, or somebody waits for
 * memory. */
static void flush_hurries_when_memory_is_short(void **state)
{
    (void)state;
    for (uint32_t held = 7; held <= 9; held++) {
        struct bench *bench = begin(21);
        uint64_t limit = bench->store->pool.limit_bytes;
        assert_int_equal(limit, 128 * MIB);
        struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, 8 * MIB, 4096);
        for (uint32_t i = 1; i < held; i++) {
            (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, 8 * MIB);
            fake_settle(&bench->world);
        }
        fake_pass(&bench->world, 1000);
        assert_int_equal(mine->flushed, held > 8); /* more than half */
        bench_free(bench);
    }
}

/* Goal: memory that could be evicted is as good as free: with enough of it a pool that is used by more than half does
 * not hurry its flushes. */
static void flush_does_not_hurry_beside_what_can_be_evicted(void **state)
{
    (void)state;
    for (unsigned flushed = 0; flushed < 3; flushed++) {
        struct bench *bench = begin(22);
        for (unsigned i = 0; i < flushed; i++)
            (void)closed(bench, LEAT_DURABILITY_MEMORY, 8 * MIB, 4096);
        fake_pass(&bench->world, DELAY_US);
        struct mine *mine = NULL;
        for (unsigned i = flushed; i < 10; i++) {
            mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 8 * MIB);
            fake_settle(&bench->world);
        }
        mine->prefix_id_count = 1;
        mine->prefix_ids[0] = (struct leat_prefix_id){4096, 99};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 1000);
        assert_int_equal(mine->flushed,
                         flushed < 2); /* 80 MiB, of which 64 and what is flushed may be used */
        bench_free(bench);
    }
}

/* Goal: a close whose bytes could not be written leaves the segment in memory, where it can be dropped from. */
static void flush_never_begins_for_what_could_not_be_closed(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 2; what++) { /* its bytes; its row */
        struct bench *bench = begin(23);
        struct mine *mine = opened(bench, what ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK);
        write_close(mine);
        bench->world.fail_at = bench->world.op_count + 1;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_E_DISK);
        bench->world.fail_at = 0;
        assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_STUCK);
        assert_non_null(mine->seg->buffer);
        unsigned complaints = (unsigned)bench->store->complaint_count;
        assert_int_equal(complaints, what);
        fake_pass(&bench->world, 10 * DELAY_US);
        assert_false(mine->flushed);
        struct mine *next = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
        fake_settle(&bench->world);
        assert_int_equal(next->rc, what ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), what ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(bench->store->complaint_count, complaints); /* it is said once */
        bench_free(bench);
    }
}

/* Goal: in a file that failed nothing is flushed: what is closed there stays in memory, and flushing all says so. */
static void flush_leaves_a_failed_file_alone(void **state)
{
    (void)state;
    struct bench *bench = begin(24);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    leat_held_of(mine->seg)->slot.file->failed = true;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_STUCK);
    op_count = 0;
    fake_pass(&bench->world, 2 * DELAY_US);
    assert_int_equal(op_count, 0);
    all_done = 0;
    leat_store_flush_all(bench->store, on_all, &all_done);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(all_done, 1);
    assert_int_equal(all_rc, LEAT_E_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    bench_free(bench);
}

/* Goal: a segment that is dropped while its flush is due is not flushed. */
static void flush_forgets_what_is_dropped(void **state)
{
    (void)state;
    struct bench *bench = begin(25);
    struct mine *mine = closed(bench, LEAT_DURABILITY_MEMORY, MIB, 900000);
    ask(bench, mine, LEAT_STORE_DROP);
    bench->world.now_us += DELAY_US;
    op_count = 0;
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_int_equal(op_count, 2); /* its row, and that row's sync */
    assert_string_equal(ops[0].file, "catalogue");
    bench_free(bench);
}

/* Goal: flushing all waits for a repair that is under way. */
static void flush_of_all_waits_for_repairs(void **state)
{
    (void)state;
    struct bench *bench = begin(26);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    ask(bench, mine, LEAT_STORE_REPAIR);
    (void)fake_event_step(&bench->world);
    assert_int_equal(bench->store->repairs, 1);
    all_done = 0;
    leat_store_flush_all(bench->store, on_all, &all_done);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(all_done, 0);
    leat_held_of(mine->seg)->slot.file->failed = true; /* and its sync is not told of again */
    bench->world.fail_at = bench->world.op_count + 2;
    fake_settle(&bench->world);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(all_done, 1);
    assert_int_equal(mine->rc, LEAT_E_DISK);
    assert_int_equal(bench->store->complaint_count, 0);
    bench_free(bench);
}

/* ---- scrub ---- */

/* Goal: each closed segment that is in its file is read in turn, as fast as may be and no faster, to the end of its
 * last block; others are not. */
static void scrub_reads_what_is_closed_at_its_rate(void **state)
{
    (void)state;
    struct bench *bench = begin(30);
    struct mine *mine[3], *open = opened(bench, LEAT_DURABILITY_DISK);
    for (unsigned i = 0; i < 3; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine[i], 10 + i * 60));
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, DELAY_US * (i < 2)); /* the last is in no file */
    }
    bench->store->options.flush_delay_us = 3600 * UINT64_C(1000000);
    enum { RATE = 1000000 };
    bench->store->options.scrub_bytes_per_second = RATE;
    bench->store->scrub_at_us = 0;
    op_count = 0;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    fake_pass(&bench->world, 100000);
    unsigned reads = 0;
    uint64_t due = 0;
    for (unsigned i = 0; i < op_count; i++) {
        if (ops[i].io.kind != LEAT_DISK_READ) continue;
        const struct leat_segment *seg = mine[reads % 2]->seg;
        uint32_t bytes = (seg->prefix_id.bytes + 4095) / 4096 * 4096;
        assert_ptr_equal(ops[i].io.file, seg->file);
        assert_int_equal(ops[i].io.offset, seg->file_offset);
        assert_int_equal(ops[i].io.bytes, bytes);
        if (reads) assert_int_equal(ops[i].us, due);
        due = ops[i].us + bytes * UINT64_C(1000000) / RATE + 1;
        reads++;
    }
    assert_true(reads > 10);
    assert_int_equal(damages, 0);
    assert_int_equal(bench->store->complaint_count, 0);
    /* Nothing to read: it looks again a second later. */
    assert_int_equal(do_now(bench, mine[0], LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(do_now(bench, mine[1], LEAT_STORE_DROP), LEAT_OK);
    fake_pass(&bench->world, 100000);
    op_count = 0;
    uint64_t at = bench->store->scrub_at_us;
    fake_pass(&bench->world, at - bench->world.now_us);
    assert_int_equal(bench->store->scrub_at_us, at + 1000000);
    assert_int_equal(op_count, 0);
    (void)open;
    bench_free(bench);
}

/* Goal: a segment that reads as other bytes than recorded, shorter, or not at all is reported to its owner with each
 * pass, named in the node log once, and recorded in its row, durably; not where memory has the bytes. */
static void scrub_tells_what_is_damaged(void **state)
{
    (void)state;
    static const char *const says[] = {"do not match their checksums", "is cut short",
                                       "cannot be read"};
    for (unsigned what = 0; what < 6; what++) {
        bool memory = what >= 3;
        struct bench *bench = begin(31);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine, 100));
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, DELAY_US);
        assert_true(mine->flushed);
        if (!memory) {
            assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
            memset(bench->world.arena.base + leat_held_of(mine->seg)->pool_at, 0,
                   mine->seg->capacity);
        }
        struct leat_file *file = fake_file(&bench->world, "store/0");
        bench->store->options.scrub_bytes_per_second = 1000000;
        bench->store->scrub_at_us = 0;
        if (what % 3 == 0) file->now[mine->seg->file_offset + 600] ^= 4;
        if (what % 3 == 1) file->bytes = mine->seg->file_offset + 4096;
        if (what % 3 == 2) bench->world.fail_at = bench->world.op_count + 1;
        leat_store_actor.on_turn_end(bench->store);
        fake_settle(&bench->world);
        assert_int_equal(damages, 1);
        assert_int_equal(bench->store->complaint_count, !memory);
        assert_int_equal(row_of(bench, mine, true)->more, memory ? 0 : LEAT_ROW_DAMAGED);
        assert_int_equal(leat_held_of(mine->seg)->damaged, !memory);
        if (!memory) assert_non_null(strstr(bench->store->complaints[0], says[what]));
        if (!memory)
            assert_non_null(
                strstr(bench->store->complaints[0], "closed segment 1 of log 1/0/0 in store/0"));
        fake_pass(&bench->world, 8300); /* one pass more */
        assert_int_equal(damages, what % 3 == 2 ? 1 : 2);
        assert_int_equal(bench->store->complaint_count, !memory);
        /* As it was: and what is found later is other damage. */
        if (what % 3 == 0) file->now[mine->seg->file_offset + 600] ^= 4;
        if (what % 3 == 1) file->bytes = 1024 * 1024;
        fake_pass(&bench->world, 8300);
        unsigned before = damages;
        fake_pass(&bench->world, 8300);
        assert_int_equal(damages, before);
        file->now[mine->seg->file_offset + 601] ^= 4;
        fake_pass(&bench->world, 8300);
        assert_true(damages > before);
        assert_int_equal(bench->store->complaint_count, memory ? 0 : 2);
        bench_free(bench);
    }
}

/* Goal: dropping another segment during the read changes nothing in the result of the scrub. */
static void scrub_goes_on_when_others_are_dropped(void **state)
{
    (void)state;
    struct bench *bench = begin(33);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK),
                *other = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 60] ^= 4;
    bench->store->options.scrub_bytes_per_second = 1000000;
    leat_store_actor.on_turn_end(bench->store);
    assert_ptr_equal(bench->store->scrubbing, leat_held_of(mine->seg));
    leat_held_row_free(bench->store, leat_held_of(other->seg));
    leat_held_free(bench->store, leat_held_of(other->seg));
    assert_ptr_equal(bench->store->scrubbing, leat_held_of(mine->seg));
    fake_settle(&bench->world);
    assert_int_equal(damages, 1);
    bench_free(bench);
}

/* Goal: a segment that is dropped while it is read is not spoken of. */
static void scrub_forgets_what_was_dropped(void **state)
{
    (void)state;
    struct bench *bench = begin(32);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 60] ^= 4;
    bench->store->options.scrub_bytes_per_second = 1000000;
    leat_store_actor.on_turn_end(bench->store);
    assert_ptr_equal(bench->store->scrubbing, leat_held_of(mine->seg));
    assert_true(bench->store->scrub_reading);
    ask(bench, mine, LEAT_STORE_DROP);
    while (mine->busy)
        assert_true(bench->world.event_count ? fake_event_step(&bench->world)
                                             : fake_step(&bench->world));
    fake_settle(&bench->world);
    assert_false(bench->store->scrub_reading);
    assert_int_equal(damages, 0);
    assert_int_equal(bench->store->complaint_count, 0);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flush_goes_after_its_delay_in_pieces),
        cmocka_unit_test(flush_tells_nothing_too_early),
        cmocka_unit_test(flush_leaves_the_disk_to_commits),
        cmocka_unit_test(flush_writes_what_the_file_lacks),
        cmocka_unit_test(flush_goes_in_order_and_syncs_together),
        cmocka_unit_test(flush_that_fails_keeps_the_bytes),
        cmocka_unit_test(flush_of_all_ends_when_all_is_down),
        cmocka_unit_test(flush_under_way_holds_a_drop_back),
        cmocka_unit_test(flush_measures_the_disk),
        cmocka_unit_test(flush_hurries_when_memory_is_short),
        cmocka_unit_test(flush_does_not_hurry_beside_what_can_be_evicted),
        cmocka_unit_test(flush_never_begins_for_what_could_not_be_closed),
        cmocka_unit_test(flush_leaves_a_failed_file_alone),
        cmocka_unit_test(flush_forgets_what_is_dropped),
        cmocka_unit_test(flush_of_all_waits_for_repairs),
        cmocka_unit_test(scrub_reads_what_is_closed_at_its_rate),
        cmocka_unit_test(scrub_tells_what_is_damaged),
        cmocka_unit_test(scrub_goes_on_when_others_are_dropped),
        cmocka_unit_test(scrub_forgets_what_was_dropped),
    };
    return cmocka_run_group_tests_name("store flush", tests, NULL, NULL);
}
