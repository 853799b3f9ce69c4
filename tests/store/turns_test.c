/* SPDX-License-Identifier: Apache-2.0 */
/* The order of requests that want the disk: rows and commits, more rows than a round holds, flushes that fail between
 * their pieces; and descriptors, which are used again only when they are free. */
#include "tests/store/side.h"
#include "tests/store/trace.h"

enum { MIB = 1024 * 1024, DELAY_US = 50000 };

static struct leat_row *row_of(struct bench *bench, const struct mine *mine, bool durable)
{
    const struct leat_file *file = fake_file(&bench->world, "catalogue");
    return (void *)((durable ? file->durable : file->now) + LEAT_BLOCK_BYTES +
                    mine->seg->row * (uint64_t)LEAT_ROW_BYTES);
}

static unsigned count_of(const struct leat_list *list)
{
    unsigned count = 0;
    for (const struct leat_list *it = list->next; it != list; it = it->next)
        count++;
    return count;
}

/* ---- rows and commits ---- */

static unsigned answered;
static void on_answered(struct leat_store_req *req)
{
    assert_int_equal(req->rc, LEAT_OK);
    answered++;
}

/* Goal: while commits are written rows wait for two rounds, and go beside the third then. */
static void turns_rows_wait_for_two_rounds(void **state)
{
    (void)state;
    enum { ROUNDS = 5 };
    struct bench *bench = trace_begin(bench_ready(1));
    struct leat_store *store = bench->store;
    struct mine *commits = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *stamped = opened(bench, LEAT_DURABILITY_DISK);
    struct leat_store_req reqs[ROUNDS];
    op_count = answered = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        reqs[round] = (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                              .seg = commits->seg,
                                              .to_bytes = last_prefix_id(commits).bytes,
                                              .on_done = on_answered};
        bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &reqs[round]);
        (void)fake_event_step(&bench->world);
        assert_int_equal(store->data_running, 1);
        if (round == 0) {
            ask(bench, stamped, LEAT_STORE_STAMP);
            stamped->req.version = 3;
            (void)fake_event_step(&bench->world);
            continue;
        }
        /* The one before ends, and this one's round begins. */
        while (answered < round)
            assert_true(bench->world.event_count ? fake_event_step(&bench->world)
                                                 : fake_step(&bench->world));
        unsigned rows = 0;
        for (unsigned i = 0; i < op_count; i++) {
            if (strcmp(ops[i].file, "catalogue") != 0) continue;
            rows++;
            assert_true(ops[i].io.beside);
        }
        assert_int_equal(rows != 0, round >= LEAT_STORE_ROWS_PASSED_MAX);
        if (round < LEAT_STORE_ROWS_PASSED_MAX) assert_int_equal(store->rows_passed, round);
    }
    fake_settle(&bench->world);
    assert_int_equal(answered, ROUNDS);
    assert_false(stamped->busy);
    assert_int_equal(row_of(bench, stamped, true)->version, 3);
    bench_free(bench);
}

/* Goal: a row waits until no commit of its own segment is under way, whatever the turn of others. */
static void turns_row_waits_for_its_own_bytes(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(2));
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    ask(bench, mine, LEAT_STORE_COMMIT);
    (void)fake_event_step(&bench->world);
    struct leat_store_req drop = {
        .kind = LEAT_STORE_DROP, .seg = mine->seg, .on_done = on_answered};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &drop);
    (void)fake_event_step(&bench->world);
    bench->store->rows_passed = LEAT_STORE_ROWS_PASSED_MAX;
    op_count = 0;
    assert_false(leat_rows_round(bench->store));
    assert_int_equal(op_count, 0);
    ask(bench, other, LEAT_STORE_DROP); /* which nothing holds back */
    (void)fake_event_step(&bench->world);
    assert_true(bench->store->rows_running);
    assert_int_equal(count_of(&bench->store->rows_reqs), 1);
    assert_int_equal(count_of(&bench->store->todo), 1);
    assert_int_equal(row_of(bench, mine, false)->state, LEAT_SEGMENT_RESERVED);
    answered = 0;
    fake_settle(&bench->world);
    assert_false(mine->busy || other->busy);
    assert_int_equal(answered, 1);
    bench_free(bench);
}

/* Goal: a round has room for a limited number of blocks of rows; further rows wait for the next round, and no request
 * is answered before its own row is written. */
static void turns_rows_of_more_blocks_than_a_round_holds(void **state)
{
    (void)state;
    enum { COUNT = LEAT_STORE_ROUND_BLOCKS_MAX + 3 };
    struct bench *bench = trace_begin(bench_ready(3));
    struct leat_store *store = bench->store;
    struct mine *mine[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t row;
        mine[i] = opened(bench, LEAT_DURABILITY_MEMORY);
        while (store->cat.held_count % LEAT_ROWS_PER_BLOCK)
            assert_int_equal(leat_catalogue_take(&store->cat, &row), LEAT_OK);
        assert_int_equal(mine[i]->seg->row, i * LEAT_ROWS_PER_BLOCK);
        write_close(mine[i]);
    }
    bench->world.turn_stays = true;
    for (unsigned i = 0; i < COUNT; i++)
        ask(bench, mine[i], LEAT_STORE_CLOSE);
    while (bench->world.event_count)
        (void)fake_event_step(&bench->world);
    bench->world.turn_stays = false;
    op_count = 0;
    leat_store_actor.on_turn_end(store);
    assert_int_equal(op_count, LEAT_STORE_ROUND_BLOCKS_MAX);
    assert_int_equal(count_of(&store->rows_reqs), LEAT_STORE_ROUND_BLOCKS_MAX);
    assert_int_equal(count_of(&store->todo), 3);
    fake_settle(&bench->world);
    assert_int_equal(op_count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(mine[i]->rc, LEAT_OK);
        assert_int_equal(row_of(bench, mine[i], false)->state, LEAT_SEGMENT_CLOSED);
        assert_false(mine[i]->flushed);
    }
    /* Their flush: all are synced together, and their rows go in two rounds. */
    bench->world.now_us += DELAY_US;
    leat_store_actor.on_turn_end(store);
    unsigned flushed = 0;
    while (fake_step(&bench->world)) {
        unsigned now = 0;
        for (unsigned i = 0; i < COUNT; i++) {
            if (!mine[i]->flushed) continue;
            now++;
            assert_int_equal(row_of(bench, mine[i], true)->flags,
                             LEAT_ROW_FLUSHED | LEAT_ROW_IN_POOL);
        }
        assert_true(now >= flushed);
        flushed = now;
    }
    assert_int_equal(flushed, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(leat_row_valid(row_of(bench, mine[i], true), mine[i]->seg->row));
    bench_free(bench);
}

/* Goal: rows go beside where files' rounds do, or a flush does; alone they run on the store's thread. */
static void turns_rows_go_beside_what_is_under_way(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4; what++) {
        struct bench *bench = trace_begin(bench_ready(6 + what));
        struct leat_store *store = bench->store;
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        op_count = 0;
        store->crowded = what == 1;
        store->flush_in_flight = what == 2;
        store->data_running = what == 3;
        bench->world.poked = true;
        store->rows_passed = LEAT_STORE_ROWS_PASSED_MAX;
        ask(bench, mine, LEAT_STORE_STAMP);
        (void)fake_event_step(&bench->world);
        assert_int_equal(op_count, 2);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(ops[i].io.beside, what != 0);
        store->crowded = store->flush_in_flight = store->data_running = 0;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
        bench_free(bench);
    }
}

/* Goal: a block that was written by a round may be written by the next, whichever it is. */
static void turns_block_is_written_again(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(4));
    struct leat_store *store = bench->store;
    uint32_t row;
    for (unsigned block = 0; block < 70; block += 23) {
        while (store->cat.held_count < block * LEAT_ROWS_PER_BLOCK)
            assert_int_equal(leat_catalogue_take(&store->cat, &row), LEAT_OK);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(mine->seg->row / LEAT_ROWS_PER_BLOCK, block);
        for (uint32_t version = 7; version < 10; version++) {
            ask(bench, mine, LEAT_STORE_STAMP);
            mine->req.version = version;
            fake_settle(&bench->world);
            assert_int_equal(mine->rc, LEAT_OK);
            assert_int_equal(row_of(bench, mine, true)->version, version);
        }
    }
    bench_free(bench);
}

/* ---- flushes ---- */

/* Goal: where a piece of a flush fails nothing more of that segment is written, and its flush is over when what is
 * under way has ended. */
static void turns_flush_that_fails_amid_its_pieces(void **state)
{
    (void)state;
    for (unsigned piece = 1; piece <= 4; piece++) {
        struct bench *bench = trace_begin(bench_ready(10 + piece));
        struct leat_store *store = bench->store;
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 4 * MIB);
        fake_settle(&bench->world);
        mine->prefix_id_count = 1;
        mine->prefix_ids[0] = (struct leat_prefix_id){4 * MIB - 100, 99};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        bench->world.fail_at = bench->world.op_count + piece;
        op_count = 0;
        fake_pass(&bench->world, DELAY_US);
        assert_int_equal(store->flush_in_flight, 0);
        assert_null(store->flushing);
        assert_int_equal(store->flush_pending, 0);
        assert_true(op_count <= piece + 1);
        const struct leat_held *held = leat_held_of(mine->seg);
        assert_int_equal(held->where, LEAT_HELD_STUCK);
        assert_int_equal(held->flush_ios, 0);
        assert_true(store->flush_failed);
        assert_int_equal(store->complaint_count, 1);
        assert_false(mine->flushed);
        for (unsigned i = 0; i < op_count; i++)
            assert_int_equal(ops[i].io.kind, LEAT_DISK_WRITE);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        bench_free(bench);
    }
}

/* Goal: a drop that waits for a flush goes on when that flush fails, at the write of the bytes, at their sync or at the
 * row. */
static void turns_drop_goes_on_when_the_flush_fails(void **state)
{
    (void)state;
    for (unsigned what = 1; what <= 4; what++) {
        struct bench *bench = bench_ready(16 + what);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        struct mine *second = opened(bench, LEAT_DURABILITY_MEMORY);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        bench->world.now_us += DELAY_US;
        leat_store_actor.on_turn_end(bench->store);
        const struct leat_held *held = leat_held_of(mine->seg);
        assert_int_equal(held->where, LEAT_HELD_FLUSHING);
        bench->world.fail_at = bench->world.op_count + what;
        ask(bench, mine, LEAT_STORE_DROP);
        fake_settle(&bench->world);
        assert_false(mine->busy);
        assert_int_equal(mine->rc, what <= 2 ? LEAT_OK : LEAT_E_DISK);
        assert_null(what <= 2 ? NULL : held->drop);
        assert_int_equal(bench->store->flush_pending, 0);
        assert_false(mine->flushed);
        if (what <= 2) assert_int_equal(bench->store->cat.held_count, 1);
        (void)second;
        bench_free(bench);
    }
}

/* Goal: a segment whose bytes could not be written before is not flushed when it closes: it stays in memory at once. */
static void turns_close_of_what_failed_is_no_flush(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(15));
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    bench->world.fail_at = bench->world.op_count + 1;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_E_DISK);
    assert_true(leat_held_of(mine->seg)->failed);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_STUCK);
    assert_true(bench->store->flush_failed);
    bench_free(bench);
}

/* Goal: flushed bytes are synced when there are enough of them, when a request waits for memory, or when no more
 * flushes follow; without flushed bytes nothing is synced. */
static void turns_flush_is_synced_in_time(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    struct leat_store *store = bench->store;
    static const struct {
        unsigned written, in_flight, waits;
        bool flushing;
        uint64_t unsynced;
        bool due;
    } rows[] = {
        {0, 0, 0, false, 0, false},
        {1, 0, 0, false, 1, true},
        {1, 1, 0, false, 1, false},
        {1, 0, 0, true, 1, false},
        {1, 1, 1, true, 1, true},
        {1, 1, 0, true, LEAT_STORE_FLUSH_SYNC_BYTES - 1, false},
        {1, 1, 0, true, LEAT_STORE_FLUSH_SYNC_BYTES, true},
    };
    struct leat_held held;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store->flush_written = rows[i].written;
        store->flush_in_flight = rows[i].in_flight;
        store->memory_wait_count = rows[i].waits;
        store->flushing = rows[i].flushing ? &held : NULL;
        store->flush_unsynced_bytes = rows[i].unsynced;
        assert_int_equal(leat_flush_sync_due(store), rows[i].due);
    }
    store->flush_written = store->flush_in_flight = store->memory_wait_count = 0;
    store->flushing = NULL;
    bench_free(bench);
}

/* ---- scrub ---- */

/* Goal: the scrub has one read under way at a time, whatever the time. */
static void turns_scrub_reads_one_at_a_time(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(20));
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    bench->store->options.scrub_bytes_per_second = 1000000;
    op_count = 0;
    for (unsigned i = 0; i < 3; i++)
        leat_scrub_step(bench->store, bench->world.now_us + i * UINT64_C(1000000000));
    assert_int_equal(op_count, 1);
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: a segment that no log has taken yet has no owner that could write its memory over the file again: the scrub
 * reports the damage, with everything that identifies the segment. */
static void turns_scrub_names_what_nobody_has(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(21);
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){
        .log = {21, 22, 23}, .id = {24}, .epoch = {5}, .durability = LEAT_DURABILITY_DISK};
    mine->req.capacity = 16384;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_RESERVE), LEAT_OK);
    write_header(mine);
    write_start(mine);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint64_t at = mine->seg->file_offset;
    uint32_t number = mine->seg->row;
    reopen(bench, false);
    leat_store_found_done(bench->store);
    struct leat_held *held = *leat_catalogue_held(&bench->store->cat, number);
    assert_true(leat_repair_remembers(bench->store, held));
    fake_file(&bench->world, "store/0")->now[at + 60] ^= 1;
    bench->store->options.scrub_bytes_per_second = 1000000;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    assert_int_equal(bench->store->complaint_count, 1);
    char says[100];
    snprintf(says, sizeof says, "closed segment 24 of log 21/22/23 in store/0 at %llu is damaged",
             (unsigned long long)at);
    assert_non_null(strstr(bench->store->complaints[0], says));
    assert_true(held->damaged);
    assert_true(leat_segment_is_damaged(&held->seg));
    bench_free(bench);
}

/* Goal: a segment that ends with its last block, and with its file, is not cut short. */
static void turns_scrub_reads_whole_blocks(void **state)
{
    (void)state;
    for (uint32_t less = 0; less < 2; less++) {
        struct bench *bench = bench_ready(23 + less);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        mine->prefix_ids[0] = (struct leat_prefix_id){2 * LEAT_BLOCK_BYTES, 99};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 2 * DELAY_US);
        fake_file(&bench->world, "store/0")->bytes =
            mine->seg->file_offset + 2 * LEAT_BLOCK_BYTES - less;
        mine->seg->role = LEAT_SEGMENT_REPLICA; /* so that it is named */
        bench->store->options.scrub_bytes_per_second = 1000000;
        leat_store_actor.on_turn_end(bench->store);
        fake_settle(&bench->world);
        assert_int_equal(bench->store->complaint_count, 1); /* that checksum is none of its own */
        assert_int_equal(strstr(bench->store->complaints[0], "is cut short") != NULL, less);
        bench_free(bench);
    }
}

/* Goal: a replica whose file is corrupt is reported, even when memory has the right bytes: the replica's writer is on
 * another node, and no owner here writes the bytes again. */
static void turns_scrub_names_replicas(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(22);
    struct side side;
    side_init(&side, bench, 6);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_DISK, false);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    assert_true(leat_repair_remembers(bench->store, leat_held_of(mine->seg)));
    fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 60] ^= 1;
    bench->store->options.scrub_bytes_per_second = 1000000;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    assert_int_equal(bench->store->complaint_count, 1);
    assert_true(leat_held_of(mine->seg)->damaged);
    side_fini(&side);
}

/* ---- descriptors ---- */

/* Goal: the descriptor of a dropped segment joins the free descriptors, also beside descriptors in use; while its
 * message is under way it is not free. */
static void turns_descriptors_come_back(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct leat_store *store = bench->store;
    for (unsigned busy = 0; busy < 2; busy++) {
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        struct leat_held *held = leat_held_of(mine->seg);
        assert_int_equal(count_of(&store->held_free), LEAT_STORE_HELD_PER_SLAB - 1);
        atomic_store(&held->event_busy, busy);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        assert_int_equal(count_of(&store->held_free), LEAT_STORE_HELD_PER_SLAB - busy);
        assert_int_equal(count_of(&store->zombies), busy);
        assert_false(leat_held_events_step(store));
        assert_int_equal(count_of(&store->zombies), busy);
        atomic_store(&held->event_busy, false);
        assert_false(leat_held_events_step(store));
        assert_int_equal(count_of(&store->held_free), LEAT_STORE_HELD_PER_SLAB);
        assert_int_equal(count_of(&store->zombies), 0);
    }
    bench_free(bench);
}

/* Goal: an owner that gave a buffer back is not asked for that buffer, though the store wanted it while another message
 * was under way. */
static void turns_buffer_that_is_given_back_is_wanted_no_more(void **state)
{
    (void)state;
    for (unsigned given = 0; given < 2; given++) {
        struct bench *bench = bench_ready(32 + given);
        struct leat_store *store = bench->store;
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        struct leat_held *held = leat_held_of(mine->seg);
        mine->flushed = false;
        atomic_store(&held->event_busy, true);
        leat_held_tell(store, held, LEAT_HELD_EVENT_EVICT);
        leat_held_tell(store, held, LEAT_HELD_EVENT_FLUSHED);
        assert_true(leat_held_events_step(store));
        if (given) assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
        atomic_store(&held->event_busy, false);
        assert_false(leat_held_events_step(store));
        fake_settle(&bench->world);
        assert_int_equal(mine->evict_wanted, !given);
        assert_true(mine->flushed);
        bench_free(bench);
    }
}

/* Goal: an owner without event handlers gets no events. */
static void turns_owner_that_asks_for_no_events(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(34);
    bench->store->options.events = (struct leat_store_events){0};
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_held *held = leat_held_of(mine->seg);
    leat_held_tell(bench->store, held,
                   LEAT_HELD_EVENT_FLUSHED | LEAT_HELD_EVENT_EVICT | LEAT_HELD_EVENT_DAMAGED);
    fake_settle(&bench->world);
    assert_false(atomic_load(&held->event_busy));
    assert_false(mine->flushed || mine->evict_wanted);
    bench_free(bench);
}

/* ---- the end ---- */

static void on_all(void *arg, leat_err rc)
{
    assert_int_equal(rc, LEAT_OK);
    ++*(unsigned *)arg;
}

/* Goal: from the moment at which all is to be flushed nothing is begun that could outlive the store: no scrub, no space
 * written ahead. */
static void turns_end_begins_nothing(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(36));
    struct leat_store *store = bench->store;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    store->options.scrub_bytes_per_second = 1000000;
    unsigned done = 0;
    op_count = 0;
    leat_store_flush_all(store, on_all, &done);
    store->slots.fresh_from = 4;
    store->slots.fresh_end = 8;
    for (unsigned i = 0; i < 3; i++) {
        bench->world.now_us += UINT64_C(10000000);
        leat_store_actor.on_turn_end(store);
    }
    assert_int_equal(done, 1);
    assert_int_equal(op_count, 0);
    assert_false(store->scrub_reading);
    store->slots.fresh_from = store->slots.fresh_end = 0;
    bench_free(bench);
}

/* Goal: the buffer of a replica whose writer may still write there is left as it is when it is dropped, and serves
 * nobody: it comes back with its arena's end. */
static void turns_buffer_that_is_left_serves_nobody(void **state)
{
    (void)state;
    for (unsigned leave = 0; leave < 2; leave++) {
        struct bench *bench = bench_ready(44 + leave);
        struct side side;
        side_init(&side, bench, 6);
        side_add(&side);
        struct mine *mine = replica_opened(&side, LEAT_DURABILITY_DISK, false);
        const struct leat_pool *pool = &side.add.added->pool;
        uint32_t units = pool->buddy.free_units, own = mine->seg->capacity / LEAT_SLOT_UNIT_BYTES;
        const uint8_t *buffer = mine->seg->buffer;
        ask(bench, mine, LEAT_STORE_DROP);
        mine->req.leave = leave;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
        assert_int_equal(pool->given, 0);
        assert_int_equal(pool->buddy.free_units, units + (leave ? 0 : own));
        assert_int_equal(buffer[LEAT_ENTRY_HEADER_BYTES] != 0, leave);
        side_retire(&side);
        assert_true(side.retired);
        side_fini(&side);
    }
}

/* Goal: the memory for reads of a start, or of the scrub, has room for the largest segment, at any place of a block. */
static void turns_scratch_holds_the_largest(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(46);
    struct leat_store *store = bench->store;
    size_t with = heap_bytes();
    uint8_t *had = store->scratch_raw;
    leat_mem_free(had);
    store->scratch = store->scratch_raw = NULL;
    assert_true(with - heap_bytes() >= LEAT_SEGMENT_BYTES_MAX + LEAT_BLOCK_BYTES);
    leat_mem_fail_at(1);
    assert_int_equal(leat_store_scratch(store), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_null(store->scratch);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(leat_store_scratch(store), LEAT_OK);
        assert_int_equal(heap_bytes(), with);
        assert_int_equal((uintptr_t)store->scratch % LEAT_BLOCK_BYTES, 0);
        assert_true(store->scratch >= store->scratch_raw &&
                    store->scratch <= store->scratch_raw + LEAT_BLOCK_BYTES);
    }
    bench_free(bench);
}

/* Goal: all is flushed when nothing is under way any more, whatever it is. */
static void turns_end_waits_for_what_is_under_way(void **state)
{
    (void)state;
    enum { ZEROS, SCRUB, REPAIR, ROWS, DATA, FLUSH, WAITS, ASKED, CASES };
    for (unsigned what = 0; what < CASES; what++) {
        struct bench *bench = bench_ready(48 + what);
        struct leat_store *store = bench->store;
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        unsigned done = 0;
        leat_store_flush_all(store, on_all, &done);
        for (unsigned ended = 0; ended < 2; ended++) {
            store->slots.zeroing = what == ZEROS && !ended ? store->slots.files[0] : NULL;
            store->scrub_reading = what == SCRUB && !ended;
            store->repairs = what == REPAIR && !ended;
            store->rows_running = what == ROWS && !ended;
            store->data_running = what == DATA && !ended;
            store->flush_pending = what == FLUSH && !ended;
            if (what == WAITS && !ended)
                leat_list_push_back(&store->files_ready, &store->slots.files[0]->ready);
            struct leat_store_req req;
            if (what == ASKED && !ended) leat_list_push_back(&store->todo, &req.waiting);
            leat_flush_step(store, bench->world.now_us);
            assert_int_equal(done, ended);
            (void)leat_list_pop_front(&store->todo);
            leat_list_remove(&store->slots.files[0]->ready);
        }
        (void)mine;
        bench_free(bench);
    }
}

/* Goal: commits are said to come for 10 ms after one was asked for, and never before the first. */
static void turns_commits_come_for_a_while(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(56);
    struct leat_store *store = bench->store;
    assert_false(leat_store_commits_come(store, 5)); /* of a clock that has just begun */
    store->committed_us = 7000;
    assert_true(leat_store_commits_come(store, 7000));
    assert_true(leat_store_commits_come(store, 7000 + LEAT_STORE_BUSY_US - 1));
    assert_false(leat_store_commits_come(store, 7000 + LEAT_STORE_BUSY_US));
    bench_free(bench);
}

/* ---- CPU time ---- */

static uint64_t cpu;
static uint64_t cpu_ns(void *owner)
{
    (void)owner;
    return cpu += 10;
}

/* Goal: the CPU time that zeroing replicas' memory takes is counted, and that of taking bytes out of it. */
static void turns_cpu_time_is_counted(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(40);
    struct side side;
    struct leat_store_usage usage;
    side_init(&side, bench, 5);
    side_add(&side);
    bench->store->options.cpu_ns = cpu_ns;
    struct mine *plain = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, plain, LEAT_STORE_DROP), LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.cpu_zeroing_ns, 0);
    assert_int_equal(usage.cpu_flush_ns, 0);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_DISK, false);
    struct mine *moves = replica_opened(&side, LEAT_DURABILITY_DISK, false);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.cpu_zeroing_ns, 10);
    assert_int_equal(usage.cpu_flush_ns, 0);
    assert_int_equal(do_now(bench, moves, LEAT_STORE_MOVE), LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.cpu_zeroing_ns, 10);
    assert_int_equal(usage.cpu_flush_ns, 10);
    side_fini(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_rows_wait_for_two_rounds),
        cmocka_unit_test(turns_row_waits_for_its_own_bytes),
        cmocka_unit_test(turns_rows_of_more_blocks_than_a_round_holds),
        cmocka_unit_test(turns_rows_go_beside_what_is_under_way),
        cmocka_unit_test(turns_block_is_written_again),
        cmocka_unit_test(turns_flush_that_fails_amid_its_pieces),
        cmocka_unit_test(turns_drop_goes_on_when_the_flush_fails),
        cmocka_unit_test(turns_close_of_what_failed_is_no_flush),
        cmocka_unit_test(turns_flush_is_synced_in_time),
        cmocka_unit_test(turns_scrub_reads_one_at_a_time),
        cmocka_unit_test(turns_scrub_names_what_nobody_has),
        cmocka_unit_test(turns_scrub_names_replicas),
        cmocka_unit_test(turns_scrub_reads_whole_blocks),
        cmocka_unit_test(turns_descriptors_come_back),
        cmocka_unit_test(turns_buffer_that_is_given_back_is_wanted_no_more),
        cmocka_unit_test(turns_owner_that_asks_for_no_events),
        cmocka_unit_test(turns_end_begins_nothing),
        cmocka_unit_test(turns_buffer_that_is_left_serves_nobody),
        cmocka_unit_test(turns_scratch_holds_the_largest),
        cmocka_unit_test(turns_end_waits_for_what_is_under_way),
        cmocka_unit_test(turns_commits_come_for_a_while),
        cmocka_unit_test(turns_cpu_time_is_counted),
    };
    return cmocka_run_group_tests_name("store turns", tests, NULL, NULL);
}
