/* The store against a small world: requests, crashes at random points, failures at every
 * operation. */
#include "tests/store/store_bench.h"

/* ---- small ones ---- */
static void buddy_random_take_and_give_never_overlaps(void **state)
{
    (void)state;
    struct leat_buddy buddy;
    assert_int_equal(leat_buddy_init(&buddy, 4096), LEAT_OK);
    leat_buddy_add(&buddy, 0, 1000);
    leat_buddy_add(&buddy, 1000, 3096);
    assert_int_equal(buddy.free_units, 4096);
    static uint8_t used[4096];
    struct {
        uint32_t unit;
        unsigned order;
    } held[512];
    unsigned count = 0;
    struct fake_world world = {.seed = 7};
    memset(used, 0, sizeof used);
    for (int i = 0; i < 20000; i++) {
        if (count < 512 && fake_below(&world, 2)) {
            unsigned order = (unsigned)fake_below(&world, LEAT_BUDDY_ORDERS);
            uint32_t unit;
            if (!leat_buddy_take(&buddy, order, &unit)) continue;
            for (uint32_t j = unit; j < unit + (1u << order); j++)
                assert_int_equal(used[j]++, 0);
            held[count].unit = unit;
            held[count++].order = order;
        } else if (count) {
            unsigned pick = (unsigned)fake_below(&world, count);
            leat_buddy_give(&buddy, held[pick].unit, held[pick].order);
            memset(used + held[pick].unit, 0, (size_t)1 << held[pick].order);
            held[pick] = held[--count];
        }
    }
    while (count--)
        leat_buddy_give(&buddy, held[count].unit, held[count].order);
    assert_int_equal(buddy.free_units, 4096);
    assert_int_equal(buddy.free_count[LEAT_BUDDY_ORDERS - 1], 8);
    assert_true(leat_buddy_claim(&buddy, 77, 0));
    assert_false(leat_buddy_claim(&buddy, 64, 4));
    assert_true(leat_buddy_claim(&buddy, 80, 4));
    leat_buddy_give(&buddy, 77, 0);
    leat_buddy_give(&buddy, 80, 4);

    /* What is kept for one is not given to others, and grows together while they take and give. */
    uint32_t unit;
    assert_true(leat_buddy_claim(&buddy, 517, 0));
    leat_buddy_keep(&buddy, 512, 9);
    assert_int_equal(leat_buddy_free_in(&buddy, 512, 9), 511);
    for (int i = 0; i < 4096 - 512; i++) {
        assert_true(leat_buddy_take(&buddy, 0, &unit));
        assert_true(unit < 512 || unit >= 1024);
    }
    assert_false(leat_buddy_take(&buddy, 0, &unit));
    assert_false(leat_buddy_claim(&buddy, 512, 9));
    leat_buddy_give(&buddy, 517, 0);
    assert_false(leat_buddy_take(&buddy, 0, &unit));
    assert_true(leat_buddy_claim(&buddy, 512, 9));
    leat_buddy_keep_none(&buddy);
    leat_buddy_fini(&buddy);
}

static unsigned unpinned_count;
static void on_unpinned(void *actor, struct leat_mail *mail)
{
    (void)actor;
    (void)mail;
    unpinned_count++;
}

static void segment_last_pin_given_back_sends_one_mail(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(1);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    unpinned_count = 0;
    mine->seg->unpinned.deliver = on_unpinned;
    assert_true(leat_segment_want_back(mine->seg));
    leat_segment_pin(mine->seg);
    leat_segment_pin(mine->seg);
    assert_false(leat_segment_want_back(mine->seg));
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 0);
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 1);
    leat_segment_pin(mine->seg);
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 1);
    bench_free(bench);
}

static void store_whole_life_of_a_segment_keeps_its_bytes(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct bench *bench = bench_ready(2);
        struct mine *mine = opened(bench, (enum leat_durability)level);
        assert_true(write_some(mine, 30));
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
        assert_true(write_some(mine, 7));
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_PARK), LEAT_OK);
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_RESUME), LEAT_OK);
        struct leat_scan scan;
        leat_scan_segment(mine->seg->buffer, mine->seg->capacity, &scan);
        assert_int_equal(scan.bytes, last_extent(mine).bytes);
        assert_true(write_some(mine, 7));
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 100000);
        assert_true(mine->flushed);
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_EVICT), LEAT_OK);
        struct leat_store_usage usage;
        leat_store_usage(bench->store, &usage);
        assert_int_equal(usage.memory_used, 0);
        assert_int_equal(usage.segments, 1);
        assert_true(usage.disk_bytes < 2 * 1024 * 1024);
        reopen(bench, true);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->extent.bytes, last_extent(mine).bytes);
        assert_int_equal(found->seg->extent.crc, last_extent(mine).crc);
        leat_scan_segment(fake_file(&bench->world, "store/0")->now + found->seg->file_offset, 16384,
                          &scan);
        assert_true(scan.closed);
        mine->seg = found->seg;
        leat_store_found_done(bench->store);
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_DROP), LEAT_OK);
        reopen(bench, true);
        assert_int_equal(found_count(bench), 0);
        bench_free(bench);
    }
}

static void store_reservation_never_started_is_freed(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct bench *bench = bench_ready(3);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 32768);
        struct mine *other = reserve(bench, LEAT_DURABILITY_MEMORY, 1, 16384);
        fake_settle(&bench->world);
        write_header(mine);
        write_header(other);
        reopen(bench, power);
        /* Of a `memory` reservation whose memory is gone nobody can say that it never started. */
        const struct leat_found *found = found_of(bench, other);
        assert_null(found_of(bench, mine));
        assert_true(!found || (power && found->kind == LEAT_FOUND_LOST));
        bench_free(bench);
    }
}

static void store_cut_closes_a_mark_where_it_was_decided(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct bench *bench = bench_ready(4);
        struct mine *mine = opened(bench, (enum leat_durability)level);
        assert_true(write_some(mine, 30));
        struct leat_extent decided = last_extent(mine);
        assert_true(write_some(mine, 30));
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
        reopen(bench, false);
        const struct leat_found *found = found_of(bench, mine);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, last_extent(mine).bytes);
        struct leat_extent wrong = {decided.bytes, decided.crc ^ 1};
        assert_int_equal(leat_store_cut(bench->store, found->seg, wrong, mine->next_offset, 5),
                         LEAT_E_DAMAGED);
        assert_int_equal(leat_store_cut(bench->store, found->seg, decided, mine->next_offset, 5),
                         LEAT_OK);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        struct leat_extent closed = found->seg->extent;
        assert_true(closed.bytes > decided.bytes);
        leat_store_found_done(bench->store);
        reopen(bench, level == LEAT_DURABILITY_DISK);
        found = found_of(bench, mine);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->extent.crc, closed.crc);
        assert_int_equal(found->seg->next_offset, mine->next_offset);
        assert_int_equal(leat_store_forget(bench->store, found->seg), LEAT_OK);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        reopen(bench, true);
        assert_int_equal(found_count(bench), 0);
        bench_free(bench);
    }
}

/* Fill the pool with closed segments: reservations wait, are served by eviction, and the budget
 * holds. */
static void store_memory_short_asks_owners_and_serves_waiting(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(5);
    for (int i = 0; i < 40; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
        fake_settle(&bench->world);
        for (int turn = 0; mine->busy && turn < 100; turn++) {
            for (unsigned j = 0; j < bench->count; j++) {
                struct mine *old = &bench->mine[j];
                if (!old->evict_wanted || old->busy) continue;
                old->evict_wanted = false;
                ask(bench, old, LEAT_KEEP_EVICT);
            }
            fake_pass(&bench->world, 1000);
        }
        assert_false(mine->busy);
        assert_int_equal(mine->rc, LEAT_OK);
        write_header(mine);
        write_start(mine);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_CLOSE), LEAT_OK);
        struct leat_store_usage usage;
        leat_store_usage(bench->store, &usage);
        assert_true(usage.memory_used <= MEMORY);
        assert_true(bench->world.arena.grown_bytes <= MEMORY);
    }
    bench_free(bench);
}

/* A commit is answered when its own file is synced: rows that wait with it come after, but not
 * behind an endless row of commits. */
static void store_commit_goes_before_rows_and_rows_are_not_starved(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(15);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 3));
    ask(bench, mine, LEAT_KEEP_COMMIT);
    struct mine *other = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    while (mine->busy)
        assert_true(fake_step(&bench->world));
    assert_int_equal(mine->rc, LEAT_OK);
    assert_true(other->busy);
    unsigned commits = 0;
    while (other->busy) {
        if (!mine->busy) {
            assert_true(write_some(mine, 1));
            ask(bench, mine, LEAT_KEEP_COMMIT);
            commits++;
        }
        assert_true(fake_step(&bench->world));
    }
    assert_int_equal(other->rc, LEAT_OK);
    assert_true(commits <= 2 * LEAT_STORE_ROWS_PASSED_MAX + 2);
    fake_settle(&bench->world);
    bench_free(bench);
}

static void on_again(struct leat_keep *keep)
{
    assert_int_equal(keep->rc, LEAT_OK);
    *(bool *)keep->owner = false;
}

/* Commits of two segments of one file: while they come at the same time, the second does not wait for
 * the first; each has been written and synced when it is answered. */
static void store_commits_of_two_segments_overlap(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(17);
    struct mine *two[2] = {opened(bench, LEAT_DURABILITY_DISK),
                           opened(bench, LEAT_DURABILITY_DISK)};
    fake_settle(&bench->world);
    unsigned overlaps = 0, again_count = 0;
    bool again_busy = false;
    struct leat_keep again;
    for (int commits = 0; commits < 80;) {
        /* One more commit of a segment that is being written: the fake world refuses two writes of one
         * place at a time. */
        if (two[0]->busy && !again_busy && bench->world.beside_count) {
            again_busy = true;
            again_count++;
            again = two[0]->keep;
            again.on_done = on_again;
            again.owner = &again_busy;
            bench->keeper.request(bench->keeper.ctx, &bench->world.core_post, &again);
        }
        for (int i = 0; i < 2; i++) {
            if (two[i]->busy) continue;
            assert_int_equal(two[i]->rc, LEAT_OK);
            const struct leat_segment *seg = two[i]->seg;
            assert_memory_equal(seg->file->durable + seg->file_offset, seg->buffer,
                                two[i]->committed_bytes);
            assert_true(write_some(two[i], 2));
            ask(bench, two[i], LEAT_KEEP_COMMIT);
            commits++;
        }
        assert_true(fake_step(&bench->world));
        overlaps += bench->world.beside_count == 2;
    }
    fake_settle(&bench->world);
    assert_true(overlaps > 20 && again_count > 5 && !again_busy);
    bench_free(bench);
}

static unsigned pieces_queued(const struct bench *bench)
{
    unsigned pieces = 0;
    for (const struct leat_disk_io *io = bench->world.disk_first; io; io = io->next)
        pieces += io->bytes >= LEAT_STORE_FLUSH_WRITE_BYTES_BUSY;
    for (int i = 0; i < bench->world.beside_count; i++)
        pieces += bench->world.besides[i]->bytes >= LEAT_STORE_FLUSH_WRITE_BYTES_BUSY;
    return pieces;
}

/* A large segment is flushed while commits come: at most one small piece stands before a commit,
 * and the flush ends all the same. */
static void store_flush_behind_lets_commits_pass(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    struct mine *big = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    fake_settle(&bench->world);
    write_header(big);
    write_start(big);
    static uint8_t payload[1024 * 1024];
    for (int i = 0; i < 7; i++)
        (void)leat_entry_append(&big->writer, LEAT_ENTRY_TRIM, 0, 0, payload, sizeof payload,
                                leat_crc32c(0, payload, sizeof payload));
    seal(big);
    write_close(big);
    assert_int_equal(do_now(bench, big, LEAT_KEEP_COMMIT), LEAT_OK);
    leat_held_of(big->seg)->in_file_bytes = 0; /* as if nothing were in the file yet */
    assert_int_equal(do_now(bench, big, LEAT_KEEP_CLOSE), LEAT_OK);
    assert_false(big->flushed);
    bench->world.now_us += 10 * 1000 * 1000;
    for (int i = 0; i < 20000 && !big->flushed; i++) {
        if (!mine->busy) {
            (void)write_some(mine, 1); /* until it is full: then only the sync is asked for */
            ask(bench, mine, LEAT_KEEP_COMMIT);
            assert_true(pieces_queued(bench) <= 1);
        }
        assert_true(fake_step(&bench->world));
    }
    assert_true(big->flushed);
    fake_settle(&bench->world);
    bench_free(bench);
}

static void evict_asked(struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        struct mine *mine = &bench->mine[i];
        if (!mine->evict_wanted || mine->busy) continue;
        mine->evict_wanted = false;
        ask(bench, mine, LEAT_KEEP_EVICT);
    }
    fake_settle(&bench->world);
}

/* The whole pool in small pieces, and small requests that take whatever comes free: a large one
 * gets its place all the same, long before its time is over. */
static void store_large_reservation_is_not_starved_by_small_ones(void **state)
{
    (void)state;
    enum { PIECE = 1024 * 1024, KEEP = 16 };
    struct bench *bench = bench_ready(17);
    struct mine *big = NULL;
    for (int i = 0; i < 400 && !(big && !big->busy); i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PIECE);
        for (int turn = 0; mine->busy && turn < 400; turn++) {
            fake_pass(&bench->world, 1000);
            evict_asked(bench);
        }
        assert_false(mine->busy);
        assert_int_equal(mine->rc, LEAT_OK);
        write_header(mine);
        write_start(mine);
        write_close(mine);
        if (i % KEEP) assert_int_equal(do_now(bench, mine, LEAT_KEEP_CLOSE), LEAT_OK);
        if (i == 200) big = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LEAT_SEGMENT_BYTES_MAX);
        fake_pass(&bench->world, 5000);
        evict_asked(bench);
    }
    assert_non_null(big);
    assert_false(big->busy);
    assert_int_equal(big->rc, LEAT_OK);
    bench_free(bench);
}

static void store_disk_full_refuses_reservations_only(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(6);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    bench->world.space_bytes = 1;
    struct mine *refused = NULL;
    for (int i = 0; i < 200 && !refused; i++) {
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        if (more->rc) refused = more;
    }
    assert_non_null(refused);
    assert_int_equal(refused->rc, LEAT_E_DISK_FULL);
    assert_true(write_some(mine, 9));
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_PARK), LEAT_OK);
    bench->world.space_bytes = 0;
    struct mine *again = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    fake_settle(&bench->world);
    assert_int_equal(again->rc, LEAT_OK);
    bench_free(bench);
}

static bool was_written(struct bench *bench, const struct mine *mine)
{
    (void)bench;
    const struct leat_file *file = mine->seg->file;
    return file->touched[mine->seg->file_offset / FAKE_SECTOR_BYTES];
}

/* Once it is known that `disk` segments come, none of them gets blocks that were only allocated;
 * `memory` segments do, and leave the written ones alone. Nothing is synced meanwhile, so what was
 * written is what the fake disk calls touched. */
static void store_space_of_disk_segments_is_written_ahead(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(31);
    unsigned written = 0, count = 0;
    for (int i = 0; i < 60; i++) {
        struct mine *disk = reserve(bench, LEAT_DURABILITY_DISK, 0, 128 * 1024);
        fake_settle(&bench->world);
        struct mine *memory = reserve(bench, LEAT_DURABILITY_MEMORY, 1, 128 * 1024);
        fake_settle(&bench->world);
        assert_int_equal(disk->rc, LEAT_OK);
        assert_int_equal(memory->rc, LEAT_OK);
        assert_false(was_written(bench, memory));
        if (i < 8) continue; /* the first MiB is taken as it is */
        count++;
        written += was_written(bench, disk);
    }
    assert_int_equal(written, count);
    assert_null(bench->store->slots.zeroing);
    bench_free(bench);
}

/* Zeros that cannot be written cost nothing but the advantage. */
static void store_zeros_that_fail_refuse_no_reservation(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(32);
    for (int i = 0; i < 40; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 128 * 1024);
        while (!bench->store->slots.zeroing && fake_step(&bench->world)) {
        }
        if (bench->store->slots.zeroing) bench->world.fail_zero = true;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
    }
    assert_true(bench->world.zeros_failed > 0);
    bench_free(bench);
}

/* Killed, and started again with a smaller budget: what lies past it is still found. */
static void store_smaller_budget_keeps_what_memory_holds(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(14);
    struct mine *mine[12];
    for (int i = 0; i < 12; i++) {
        mine[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
        fake_settle(&bench->world);
        assert_int_equal(mine[i]->rc, LEAT_OK);
        write_header(mine[i]);
        write_start(mine[i]);
        assert_true(write_some(mine[i], 9));
    }
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_store_options options = options_of();
    options.memory_bytes = LEAT_ARENA_STEP_BYTES;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->keeper = leat_store_keeper(bench->store);
    for (int i = 0; i < 12; i++) {
        const struct leat_found *found = found_of(bench, mine[i]);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, last_extent(mine[i]).bytes);
        assert_int_equal(leat_store_cut(bench->store, found->seg, found->seg->extent,
                                        found->scan.next_offset, 1),
                         LEAT_OK);
    }
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    leat_store_found_done(bench->store);
    struct mine *more = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LEAT_SEGMENT_BYTES_MAX);
    fake_pass(&bench->world, 1000000);
    assert_int_equal(more->rc, LEAT_OK);
    assert_true(more->seg->buffer < bench->world.arena.base + LEAT_ARENA_STEP_BYTES);
    struct leat_store_usage usage;
    fake_pass(&bench->world, 1000000);
    leat_store_usage(bench->store, &usage);
    assert_true(usage.memory_used <= LEAT_ARENA_STEP_BYTES);
    bench_free(bench);
}

/* ---- crashes at random points ---- */
static bool known_extent(const struct mine *mine, struct leat_extent extent)
{
    for (unsigned i = 0; i < mine->extent_count; i++)
        if (mine->extents[i].bytes == extent.bytes && mine->extents[i].crc == extent.crc)
            return true;
    return false;
}

/* What must hold of one segment after a crash. */
static void check_mine(struct bench *bench, struct mine *mine, bool power)
{
    const struct leat_found *found = found_of(bench, mine);
    bool started = mine->extent_count != 0;
    bool disk = mine->durability == LEAT_DURABILITY_DISK;
    if (mine->dropped || mine->gone) {
        assert_true(mine->gone || !found);
        return;
    }
    if (found && mine->gone) return;
    if (!started) {
        assert_true(!found || (power && !disk && found->kind == LEAT_FOUND_LOST));
        return;
    }
    if (mine->drop_asked && !found) return;
    /* Acked: what the level promises to have survived this crash. */
    struct leat_extent last = last_extent(mine);
    uint32_t acked = disk || power ? mine->committed_bytes : last.bytes;
    bool promised = disk ? mine->committed_bytes != 0 : !power;
    if (mine->parked || (mine->closed && (mine->flushed || disk))) {
        promised = true;
        acked = last.bytes;
    }
    if (promised) assert_non_null(found);
    if (!found) return;
    if (promised && found->kind == LEAT_FOUND_LOST)
        print_error("lost: %s (committed %u of %u, level %d, kind %d busy %d state %d parked %d "
                    "closed %d flushed %d power %d)\n",
                    found->why, mine->committed_bytes, last.bytes, mine->durability,
                    mine->keep.kind, mine->busy, mine->state, mine->parked, mine->closed,
                    mine->flushed, power);
    if (promised) assert_int_not_equal(found->kind, LEAT_FOUND_LOST);
    if (found->kind == LEAT_FOUND_LOST) return;
    assert_true(known_extent(mine, found->seg->extent));
    assert_true(found->seg->extent.bytes >= acked);
    /* A mark says where the log ends: never short of what was acked at its level. */
    if (found->kind == LEAT_FOUND_MARK && !disk)
        assert_int_equal(found->seg->extent.bytes, last.bytes);
    if (mine->closed && promised && acked == last.bytes)
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
    if (found->kind == LEAT_FOUND_CLOSED) assert_true(mine->close_asked);
}

static void act(struct bench *bench)
{
    if (bench->count < SEGS_MAX - 1 && fake_below(&bench->world, 5) == 0) {
        (void)reserve(bench,
                      fake_below(&bench->world, 2) ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY,
                      (uint32_t)fake_below(&bench->world, 3),
                      (uint32_t)16384 << fake_below(&bench->world, 2));
        return;
    }
    if (!bench->count) return;
    struct mine *mine = &bench->mine[fake_below(&bench->world, bench->count)];
    if (mine->busy || mine->gone || mine->dropped || mine->rc || !mine->reserved) return;
    switch (mine->state) {
    case LEAT_SEGMENT_RESERVED:
        if (fake_below(&bench->world, 8) == 0) {
            ask(bench, mine, LEAT_KEEP_DROP);
        } else {
            write_header(mine);
            write_start(mine);
        }
        break;
    case LEAT_SEGMENT_OPEN: {
        uint64_t what = fake_below(&bench->world, 12);
        if (what < 5) {
            (void)write_some(mine, 1 + (unsigned)fake_below(&bench->world, 40));
        } else if (what < 8) {
            ask(bench, mine, LEAT_KEEP_COMMIT);
        } else if (what < 10) {
            ask(bench, mine, LEAT_KEEP_PARK);
        } else if (what == 10) {
            write_close(mine);
            mine->close_asked = true; /* by its bytes */
            mine->state = LEAT_SEGMENT_FREE;
            if (mine->durability == LEAT_DURABILITY_DISK && fake_below(&bench->world, 4)) {
                ask(bench, mine, LEAT_KEEP_COMMIT);
            } else {
                ask(bench, mine, LEAT_KEEP_CLOSE);
            }
        }
        break;
    }
    case LEAT_SEGMENT_FREE: /* closed by its bytes, not told yet */
        if (!mine->closed) ask(bench, mine, LEAT_KEEP_CLOSE);
        break;
    case LEAT_SEGMENT_PARKED:
        ask(bench, mine, fake_below(&bench->world, 5) ? LEAT_KEEP_RESUME : LEAT_KEEP_CLOSE);
        break;
    case LEAT_SEGMENT_CLOSED:
        if (fake_below(&bench->world, 6) == 0)
            ask(bench, mine, LEAT_KEEP_DROP);
        else if (mine->flushed && mine->seg->buffer)
            ask(bench, mine, LEAT_KEEP_EVICT);
        break;
    }
}

/* After the check: decide as a lone node would, and go on with what is left. */
static void adopt(struct bench *bench)
{
    struct mine *kept = calloc(SEGS_MAX, sizeof *kept);
    unsigned kept_count = 0;
    for (unsigned i = 0; i < bench->count; i++) {
        const struct leat_found *one = found_of(bench, &bench->mine[i]);
        if (!one) continue;
        if (one->kind == LEAT_FOUND_LOST || fake_below(&bench->world, 3) == 0) {
            assert_int_equal(leat_store_forget(bench->store, one->seg), LEAT_OK);
            continue;
        }
        struct mine mine = bench->mine[i];
        if (one->kind == LEAT_FOUND_MARK) {
            assert_int_equal(
                leat_store_cut(bench->store, one->seg, one->seg->extent, one->seg->next_offset, 1),
                LEAT_OK);
            if (one->seg->extent.bytes != last_extent(&mine).bytes)
                mine.extents[mine.extent_count++] = one->seg->extent;
        }
        mine = (struct mine){.seg = one->seg,
                             .log = mine.log,
                             .id = mine.id,
                             .epoch = mine.epoch,
                             .durability = mine.durability,
                             .reserved = true,
                             .closed = true,
                             .close_asked = true,
                             .flushed = one->seg->flushed,
                             .state = LEAT_SEGMENT_CLOSED,
                             .extents = {one->seg->extent},
                             .extent_count = 1};
        mine.committed_bytes = one->seg->flushed ? one->seg->extent.bytes : 0;
        one->seg->owner_actor = 0;
        kept[kept_count++] = mine;
    }
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    memcpy(bench->mine, kept, sizeof *kept * kept_count);
    bench->count = kept_count;
    for (unsigned i = 0; i < kept_count; i++)
        if (!kept[i].seg->buffer) {
            bench->mine[i].flushed = true;
            bench->mine[i].committed_bytes = last_extent(&kept[i]).bytes;
        }
    free(kept);
    leat_store_found_done(bench->store);
    bench->epoch++;
}

static void check_all(struct bench *bench, bool power)
{
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    for (unsigned i = 0; i < bench->count; i++)
        check_mine(bench, &bench->mine[i], power);
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (unsigned j = 0; j < bench->count && !known; j++)
            known = found_of(bench, &bench->mine[j]) == &found[i];
        assert_true(known);
    }
}

static void work(struct bench *bench, uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
        act(bench);
        for (uint64_t j = fake_below(&bench->world, 6); j > 0; j--)
            if (!fake_step(&bench->world)) break;
        if (fake_below(&bench->world, 30) == 0) fake_pass(&bench->world, 20000);
    }
}

static void store_crash_at_any_point_keeps_what_was_answered(void **state)
{
    (void)state;
    unsigned lost = 0, marks = 0, closed = 0;
    const char *many = getenv("LEAT_STORE_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : 60;
    const char *from = getenv("LEAT_STORE_SEED");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        struct bench *bench = bench_ready(seed * 7919);
        for (int life = 0; life < 5; life++) {
            work(bench, 20 + fake_below(&bench->world, 400));
            bool power = fake_below(&bench->world, 2);
            if (from)
                print_message("seed %llu life %d power %d\n", (unsigned long long)seed, life,
                              power);
            reopen(bench, power);
            check_all(bench, power);
            size_t count;
            const struct leat_found *found = leat_store_found(bench->store, &count);
            for (size_t i = 0; i < count; i++) {
                lost += found[i].kind == LEAT_FOUND_LOST;
                marks += found[i].kind == LEAT_FOUND_MARK;
                closed += found[i].kind == LEAT_FOUND_CLOSED;
            }
            adopt(bench);
        }
        bench_free(bench);
    }
    /* The test is worth something only if all kinds came up. */
    assert_true(lost && marks && closed);
}

/* ---- every operation fails once ---- */
/* One life with a failure at disk operation or allocation n, then a crash, then a life without.
 * false: n was never reached. */
static bool survive(uint64_t n, bool allocation, bool power)
{
    struct bench *bench = bench_new(4711);
    struct leat_error error = {0};
    if (allocation)
        leat_mem_fail_at(n);
    else
        bench->world.fail_at = n;
    leat_err rc = bench_open(bench, &error);
    if (rc) {
        assert_true(error.text[0]);
        assert_int_equal(rc, allocation ? LEAT_E_NO_MEMORY : LEAT_E_DISK);
        bench->world.fail_at = 0;
        fake_power_cut(&bench->world);
        assert_int_equal(bench_open(bench, &error), LEAT_OK);
    }
    leat_store_found_done(bench->store);
    work(bench, 300);
    uint64_t reached = allocation ? leat_mem_calls() : bench->world.op_count;
    leat_mem_fail_at(0);
    bench->world.fail_at = 0;
    reopen(bench, power);
    check_all(bench, power);
    adopt(bench);
    work(bench, 100);
    fake_settle(&bench->world);
    unsigned errors = bench->errors;
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_int_equal(bench->errors, errors);
    bench_free(bench);
    return reached >= n;
}

static void store_disk_failure_at_any_operation_loses_nothing_answered(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (survive(n, false, false) && survive(n, false, true))
        n++;
    assert_true(n > 150);
}

static void store_allocation_failure_at_any_point_loses_nothing_answered(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (survive(n, true, n % 2))
        n++;
    assert_true(n > 10);
}

/* ---- what a start refuses or names ---- */
static void count_line(void *arg, const char *line)
{
    (void)line;
    ++*(unsigned *)arg;
}

static unsigned complaint_count(const struct leat_store *store)
{
    unsigned count = 0;
    leat_store_complaints(store, count_line, &count);
    return count;
}

static void store_open_wrong_header_is_refused_by_name(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    struct leat_catalogue_header good, bad;
    memcpy(&good, file->now, sizeof good);
    struct {
        size_t at;
        leat_err rc;
    } cases[] = {{offsetof(struct leat_catalogue_header, magic), LEAT_E_DAMAGED},
                 {offsetof(struct leat_catalogue_header, version), LEAT_E_UNSUPPORTED},
                 {offsetof(struct leat_catalogue_header, row_count), LEAT_E_DAMAGED}};
    struct leat_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bad = good;
        ((uint8_t *)&bad)[cases[i].at] ^= 0x10;
        memcpy(file->now, &bad, sizeof bad);
        assert_int_equal(bench_open(bench, &error), cases[i].rc);
        assert_true(error.text[0]);
    }
    memcpy(file->now, &good, sizeof good);
    struct leat_store_options options = options_of();
    options.cluster_id[0] ^= 1;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, &error),
                     LEAT_E_WRONG_CLUSTER);
    snprintf(file->name, sizeof file->name, "elsewhere");
    assert_int_equal(bench_open(bench, &error), LEAT_E_DAMAGED);
    snprintf(file->name, sizeof file->name, "catalogue");
    assert_int_equal(bench_open(bench, &error), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    assert_int_equal(complaint_count(bench->store), 0);
    bench_free(bench);
}

static void store_open_damaged_row_is_named_and_its_place_kept(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_PARK), LEAT_OK);
    assert_int_equal(do_now(bench, other, LEAT_KEEP_PARK), LEAT_OK);
    fake_kill(&bench->world);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    uint8_t *row = file->now + 4096 + mine->seg->row * (size_t)LEAT_ROW_BYTES;
    uint64_t at = mine->seg->file_offset;
    row[60] ^= 1;
    bench_drop_store(bench);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(complaint_count(bench->store), 2);
    assert_null(found_of(bench, mine));
    assert_int_equal(found_of(bench, other)->kind, LEAT_FOUND_MARK);
    leat_store_found_done(bench->store);
    for (int i = 0; i < 70; i++) {
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        assert_int_equal(more->rc, LEAT_OK);
        assert_int_not_equal(more->seg->file_offset, at);
    }
    row[60] ^= 1;
    reopen(bench, false);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    bench_free(bench);
}

static void store_open_truncated_files_are_named(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(10);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *in_memory = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_PARK), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    uint64_t bytes = file->bytes;
    file->bytes = 0;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_LOST);
    assert_int_equal(found_of(bench, in_memory)->kind, LEAT_FOUND_MARK);
    assert_int_equal(complaint_count(bench->store), 1);
    bench_drop_store(bench);
    file->bytes = bytes;
    file = fake_file(&bench->world, "catalogue");
    file->bytes = 4096 + 1024;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    assert_true(complaint_count(bench->store) >= 1);
    bench_free(bench);
}

/* One flipped bit anywhere in the acked bytes of an open segment: named, never a shorter mark. */
static void store_open_flipped_bit_is_damage_not_a_torn_tail(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(11);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    for (int i = 0; i < 3; i++) {
        assert_true(write_some(mine, 5));
        assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
    }
    /* Another round carries the row that says OPEN. */
    (void)opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 1));
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_COMMIT), LEAT_OK);
    uint8_t *bytes = fake_file(&bench->world, "store/0")->now + mine->seg->file_offset;
    uint32_t acked = mine->extents[mine->extent_count - 2].bytes;
    unsigned lost = 0, shorter = 0;
    for (uint32_t i = 0; i < acked; i += 3) {
        bytes[i] ^= 4;
        reopen(bench, false);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        if (found->kind == LEAT_FOUND_LOST)
            lost++;
        else
            shorter++;
        bytes[i] ^= 4;
    }
    /* A flip in an entry's header breaks the chain, which alone looks like a torn tail: the row
     * tells. */
    assert_true(lost > 0);
    assert_int_equal(shorter, 0);
    bench_free(bench);
}

static void store_scrub_names_damage_in_closed_segments(void **state)
{
    (void)state;
    struct bench *bench = bench_new(12);
    struct leat_store_options options = options_of();
    options.scrub_bytes_per_second = 1024 * 1024;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->keeper = leat_store_keeper(bench->store);
    leat_store_found_done(bench->store);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_KEEP_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 5000000);
    assert_int_equal(complaint_count(bench->store), 0);
    fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 40] ^= 1;
    fake_pass(&bench->world, 5000000);
    assert_true(complaint_count(bench->store) > 0);
    bench_free(bench);
}

static void count_done(void *arg, leat_err rc)
{
    assert_int_equal(rc, LEAT_OK);
    ++*(unsigned *)arg;
}

static void store_flush_all_makes_closed_segments_survive_a_power_cut(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(13);
    struct mine *mine[20];
    for (int i = 0; i < 20; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_MEMORY);
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_KEEP_CLOSE), LEAT_OK);
    }
    unsigned done = 0;
    leat_store_flush_all(bench->store, count_done, &done);
    fake_pass(&bench->world, 100000);
    assert_int_equal(done, 1);
    reopen(bench, true);
    for (int i = 0; i < 20; i++)
        assert_int_equal(found_of(bench, mine[i])->kind, LEAT_FOUND_CLOSED);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buddy_random_take_and_give_never_overlaps),
        cmocka_unit_test(segment_last_pin_given_back_sends_one_mail),
        cmocka_unit_test(store_whole_life_of_a_segment_keeps_its_bytes),
        cmocka_unit_test(store_reservation_never_started_is_freed),
        cmocka_unit_test(store_cut_closes_a_mark_where_it_was_decided),
        cmocka_unit_test(store_memory_short_asks_owners_and_serves_waiting),
        cmocka_unit_test(store_commit_goes_before_rows_and_rows_are_not_starved),
        cmocka_unit_test(store_commits_of_two_segments_overlap),
        cmocka_unit_test(store_flush_behind_lets_commits_pass),
        cmocka_unit_test(store_large_reservation_is_not_starved_by_small_ones),
        cmocka_unit_test(store_disk_full_refuses_reservations_only),
        cmocka_unit_test(store_space_of_disk_segments_is_written_ahead),
        cmocka_unit_test(store_zeros_that_fail_refuse_no_reservation),
        cmocka_unit_test(store_smaller_budget_keeps_what_memory_holds),
        cmocka_unit_test(store_crash_at_any_point_keeps_what_was_answered),
        cmocka_unit_test(store_disk_failure_at_any_operation_loses_nothing_answered),
        cmocka_unit_test(store_allocation_failure_at_any_point_loses_nothing_answered),
        cmocka_unit_test(store_open_wrong_header_is_refused_by_name),
        cmocka_unit_test(store_open_damaged_row_is_named_and_its_place_kept),
        cmocka_unit_test(store_open_truncated_files_are_named),
        cmocka_unit_test(store_open_flipped_bit_is_damage_not_a_torn_tail),
        cmocka_unit_test(store_scrub_names_damage_in_closed_segments),
        cmocka_unit_test(store_flush_all_makes_closed_segments_survive_a_power_cut),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
