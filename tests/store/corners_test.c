/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the store that show where two segments, two files or two moments meet: one place for both, starts, cuts. */
#include "tests/store/store_bench.h"

enum { PLACE = LEAT_SEGMENT_BYTES_MAX };

static struct leat_row *row_in_file(struct bench *bench, uint32_t row)
{
    return (void *)(fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES +
                    row * (uint64_t)LEAT_ROW_BYTES);
}

/* Goal: where two rows claim a place that its file has lost, memory stands in for the first segment alone: there is
 * nowhere to write the other one to. */
static void place_that_is_gone_is_of_one_segment(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(1);
    struct mine *first = opened(bench, LEAT_DURABILITY_MEMORY);
    struct mine *second = opened(bench, LEAT_DURABILITY_MEMORY);
    struct leat_row *row = row_in_file(bench, second->seg->row);
    row->slot_unit = row_in_file(bench, first->seg->row)->slot_unit;
    leat_row_seal(row, second->seg->row);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    reopen(bench, false);
    assert_int_equal(found_of(bench, first)->kind, LEAT_FOUND_MARK);
    const struct leat_found *found = found_of(bench, second);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    assert_non_null(strstr(found->why, "missing or truncated"));
    assert_null(found->seg->buffer);
    bench_free(bench);
}

/* Goal: a pool that would rather recycle than grow asks for no segment while it has more than a step at hand. */
static void pool_with_a_step_at_hand_asks_for_none(void **state)
{
    (void)state;
    enum { OPEN = 17, FLUSHED = 8 };
    const uint64_t full = 4ull * LEAT_ARENA_STEP_BYTES;
    struct bench *bench = calloc(1, sizeof *bench);
    fake_world_init(&bench->world, 4, full);
    bench->world.core = the_bench = bench;
    bench->bytes_before = heap_bytes();
    bench->epoch = 1;
    struct leat_store_options options = options_of();
    options.memory_bytes = full;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    struct leat_store *store = bench->world.store = bench->store;
    bench->store_port = leat_store_port(store);
    for (unsigned i = 0; i < OPEN; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_pass(&bench->world, 30000);
        assert_int_equal(mine->rc, LEAT_OK);
        assert_false(mine->busy);
    }
    for (unsigned i = 0; i < FLUSHED; i++) {
        bench->mine[i].prefix_id_count = 1;
        bench->mine[i].prefix_ids[0] = (struct leat_prefix_id){100, 99};
        assert_int_equal(do_now(bench, &bench->mine[i], LEAT_STORE_CLOSE), LEAT_OK);
        leat_held_move(leat_held_of(bench->mine[i].seg), LEAT_HELD_CACHED, &store->cached);
    }
    for (unsigned i = FLUSHED; i < OPEN; i++)
        assert_int_equal(do_now(bench, &bench->mine[i], LEAT_STORE_DROP), LEAT_OK);
    assert_true(leat_pool_prefers_recycling(&store->pool, store->cached_bytes));
    assert_true(store->pool.buddy.free_units > LEAT_ARENA_STEP_BYTES / LEAT_SLOT_UNIT_BYTES);
    leat_store_found_done(store);
    leat_memory_step(store, bench->world.now_us);
    assert_int_equal(store->asked_bytes, 0);
    assert_int_equal(store->cached_bytes, FLUSHED * (uint64_t)PLACE);
    bench_free(bench);
}

/* Goal: a segment that shares its place is not repaired: nobody is told to look for its bytes. */
static void place_of_two_is_not_repaired(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(5);
    struct mine *mine[2];
    for (unsigned i = 0; i < 2; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_DISK);
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
    }
    struct leat_row *row = row_in_file(bench, mine[1]->seg->row);
    row->slot_unit = row_in_file(bench, mine[0]->seg->row)->slot_unit;
    leat_row_seal(row, mine[1]->seg->row);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    reopen_without_memory(bench);
    assert_int_equal(found_of(bench, mine[0])->seg->integrity, LEAT_INTEGRITY_CORRUPT);
    const struct leat_found *found = found_of(bench, mine[1]);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    assert_int_equal(found->seg->integrity, LEAT_INTEGRITY_OK);
    bench_free(bench);
}

/* Goal: what lies past a lowered limit is flushed at once, and is asked for when owners have taken what a start
 * found. */
static void memory_past_the_limit_goes_first(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(6);
    struct leat_store *store = bench->store;
    struct mine *mine[9];
    for (unsigned i = 0; i < 9; i++) {
        mine[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_pass(&bench->world, 30000);
        assert_int_equal(mine[i]->rc, LEAT_OK);
    }
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_DROP), LEAT_OK);
    assert_false(leat_flush_pressed(store));
    leat_pool_limit_set(&store->pool, LEAT_ARENA_STEP_BYTES);
    assert_true(leat_flush_pressed(store));
    store->started = false;
    mine[8]->prefix_id_count = 1;
    mine[8]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
    assert_int_equal(do_now(bench, mine[8], LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_held *held = leat_held_of(mine[8]->seg);
    leat_held_move(held, LEAT_HELD_CACHED, &store->cached);
    for (unsigned started = 0; started < 2; started++) {
        store->started = started;
        store->look_us = 0;
        leat_memory_step(store, bench->world.now_us);
        assert_int_equal(held->where, started ? LEAT_HELD_ASKED : LEAT_HELD_CACHED);
    }
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: a reservation of level `memory` whose memory survived is a reservation still, whatever its file lost. */
static void reservation_in_memory_outlives_its_file(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 1, 16384);
    fake_settle(&bench->world);
    struct mine *behind = opened(bench, LEAT_DURABILITY_DISK);
    write_close(behind);
    assert_int_equal(do_now(bench, behind, LEAT_STORE_CLOSE), LEAT_OK);
    assert_true(behind->seg->file_offset > mine->seg->file_offset);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    reopen(bench, false);
    assert_null(found_of(bench, mine));
    assert_non_null(found_of(bench, behind));
    bench_free(bench);
}

/* Goal: the row of a closed segment that is in memory alone does not show that its file had a place. */
static void segment_in_memory_says_nothing_of_its_file(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    (void)opened(bench, LEAT_DURABILITY_MEMORY);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    fake_settle(&bench->world);
    struct mine *behind = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(behind);
    assert_int_equal(do_now(bench, behind, LEAT_STORE_CLOSE), LEAT_OK);
    assert_true(behind->seg->file_offset > mine->seg->file_offset);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    reopen(bench, false);
    assert_null(found_of(bench, mine)); /* it may never have had one, and so no bytes */
    assert_int_equal(found_of(bench, behind)->kind, LEAT_FOUND_CLOSED);
    bench_free(bench);
}

/* Goal: a start says in which file a segment is. */
static void segment_knows_its_files_number(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(10);
    struct mine *mine;
    do {
        mine = reserve(bench, LEAT_DURABILITY_DISK, 0, PLACE);
        fake_settle(&bench->world);
        fake_pass(&bench->world, 30000);
        assert_int_equal(mine->rc, LEAT_OK);
    } while (mine->seg->file_number == 0);
    write_header(mine);
    write_start(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    uint32_t number = mine->seg->file_number;
    reopen(bench, false);
    assert_int_equal(found_of(bench, mine)->seg->file_number, number);
    bench_free(bench);
}

/* Goal: a file that can't be made as long as its rows claim is of no use. */
static void file_that_refuses_its_end_has_failed(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        struct bench *bench = bench_ready(11);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        struct leat_file *file = fake_file(&bench->world, "store/0");
        file->bytes = 0;
        fake_kill(&bench->world);
        bench_drop_store(bench);
        if (full) bench->world.space_bytes = 1;
        bench->world.arena.inherited_bytes = 0;
        leat_err rc = LEAT_E_DISK;
        for (uint64_t at = 1; rc; at++) { /* the operation that makes the file longer */
            if (!full) bench->world.fail_at = bench->world.op_count + at;
            rc = bench_open(bench, NULL);
        }
        assert_non_null(found_of(bench, mine));
        assert_int_equal(bench->store->slots.files[0]->failed, !full);
        bench_free(bench);
    }
}

/* Goal: an arena that gives nothing back keeps its memory, and the usage says so. */
static void arena_that_can_not_shrink_is_kept(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(12);
    struct leat_store_usage usage;
    for (unsigned kept = 0; kept < 2; kept++) {
        if (kept) bench->world.arena.shrink = NULL;
        leat_store_actor.on_turn_end(bench->store);
        leat_store_usage(bench->store, &usage);
        assert_int_equal(usage.memory_kept, kept);
    }
    bench_free(bench);
}

/* Goal: a segment that is hibernated is written from where its file ends, whatever its owner says was committed. */
static void hibernation_writes_what_the_file_lacks(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(13);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 65536);
    fake_settle(&bench->world);
    write_header(mine);
    write_start(mine);
    while (mine->writer.used < 20000)
        assert_true(write_some(mine, 20));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_true(write_some(mine, 1));
    uint64_t before = bench->store->committed_bytes;
    mine->committed_bytes = 0;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_true(bench->store->committed_bytes - before <= 2 * LEAT_BLOCK_BYTES);
    bench_free(bench);
}

static unsigned flushes;
static void on_all_flushed(void *arg, leat_err rc)
{
    (void)arg;
    assert_int_equal(rc, LEAT_OK);
    flushes++;
}

/* Goal: flushing all ends without segments that a start has found and is not done with: memory keeps these segments. */
static void flush_of_all_leaves_what_a_start_has_found(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(14);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    for (int done = 0; done < 2; done++) {
        reopen(bench, false);
        assert_false(found_of(bench, mine)->seg->flushed);
        flushes = 0;
        if (done) leat_store_found_done(bench->store);
        leat_store_flush_all(bench->store, on_all_flushed, NULL);
        leat_store_actor.on_turn_end(bench->store);
        bench->world.turn = true;
        fake_settle(&bench->world);
        assert_int_equal(flushes, 1);
        assert_int_equal(leat_store_is_on_disk(bench->store), done);
    }
    bench_free(bench);
}

/* Goal: a store that has no memory for itself or its complaints is not opened. */
static void store_without_memory_is_not_opened(void **state)
{
    (void)state;
    struct bench *bench = bench_new(15);
    for (unsigned at = 1; at <= 2; at++) {
        leat_mem_fail_at(at);
        leat_err rc = bench_open(bench, NULL);
        leat_mem_fail_at(0);
        assert_int_equal(rc, LEAT_E_NO_MEMORY);
        assert_null(bench->store);
    }
    bench_free(bench);
}

/* Goal: descriptors of segments that went while their owner was told something are free when it has been told, however
 * many there are. */
static void descriptors_wait_for_their_owners(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(18);
    struct leat_store *store = bench->store;
    struct leat_held *held[3];
    for (unsigned i = 0; i < 3; i++) {
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        held[i] = leat_held_of(mine->seg);
        atomic_store(&held[i]->event_busy, true);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    }
    for (unsigned i = 0; i < 3; i++) {
        atomic_store(&held[i]->event_busy, false);
        leat_held_events_step(store);
        assert_int_equal(leat_list_empty(&store->zombies), i == 2);
        assert_ptr_equal(leat_held_get(store), held[i]); /* the last that came free */
    }
    for (unsigned i = 0; i < 3; i++)
        leat_held_put(store, held[i]);
    bench_free(bench);
}

/* Goal: a segment that could not be read at a start, and can be at the cut, begins where its start entry says. */
static void cut_segment_begins_where_its_bytes_say(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(19);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 3));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    const struct leat_found *found = NULL;
    for (uint64_t at = 1; !found || found->kind != LEAT_FOUND_LOST; at++) {
        assert_true(at < 100);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        bench->world.arena.inherited_bytes = 0;
        bench->world.fail_at =
            bench->world.op_count + at; /* until that is the read of the segment */
        if (bench_open(bench, NULL) == LEAT_OK) found = found_of(bench, mine);
    }
    bench->world.fail_at = 0;
    struct leat_segment *seg = found->seg;
    assert_int_equal(leat_store_cut(bench->store, seg, last_prefix_id(mine), mine->next_offset, 0),
                     LEAT_OK);
    assert_int_equal(seg->base_offset, mine->id.v * 1000);
    bench_free(bench);
}

/* Goal: a start that has no memory to record what is missing is refused. */
static void start_without_memory_forgets_nothing_missing(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(20);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint32_t row = mine->seg->row;
    struct leat_file *file = fake_file(&bench->world, "store/0");
    memset(file->now, 0, file->bytes);
    file->bytes = 0;
    fake_kill(&bench->world);
    bench_drop_store(bench);
    bench->world.arena.inherited_bytes = 0;
    leat_err rc = LEAT_E_NO_MEMORY;
    for (unsigned at = 1; rc; at++) {
        leat_mem_fail_at(at);
        rc = bench_open(bench, NULL);
        leat_mem_fail_at(0);
        if (rc) assert_int_equal(rc, LEAT_E_NO_MEMORY);
    }
    assert_int_equal(row_in_file(bench, row)->more, LEAT_ROW_DAMAGED);
    bench_free(bench);
}

/* Goal: where all descriptors are in use none counts as free. */
static void descriptors_in_use_are_not_free(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(21);
    for (unsigned i = 0; i < LEAT_STORE_HELD_PER_SLAB; i++) {
        (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
        fake_settle(&bench->world);
    }
    uint64_t rows = LEAT_STORE_ROWS_PER_CHUNK - LEAT_STORE_HELD_PER_SLAB;
    assert_int_equal(bench->store->cat.held_count, LEAT_STORE_HELD_PER_SLAB);
    assert_int_equal(leat_held_free_bytes(bench->store),
                     rows * (sizeof(struct leat_row_chunk) / LEAT_STORE_ROWS_PER_CHUNK));
    bench_free(bench);
}

/* Goal: requests that are refused take no descriptors with them. */
static void refusals_give_their_descriptors_back(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(22);
    (void)opened(bench, LEAT_DURABILITY_MEMORY);
    bench->world.space_bytes = 1;
    for (unsigned i = 0; i < 2 * LEAT_STORE_HELD_PER_SLAB; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_E_DISK_FULL);
    }
    assert_int_equal(bench->store->slab_count, 1);
    bench_free(bench);
}

/* Goal: a cut changes no segment besides the one that is cut. */
static void cut_leaves_others_alone(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(23);
    struct mine *open = opened(bench, LEAT_DURABILITY_MEMORY);
    struct mine *cut = opened(bench, LEAT_DURABILITY_MEMORY);
    reopen(bench, false);
    struct leat_segment *seg = found_of(bench, cut)->seg;
    struct leat_held *held = leat_held_of(found_of(bench, open)->seg);
    assert_int_equal(leat_store_cut(bench->store, seg, last_prefix_id(cut), cut->next_offset, 0),
                     LEAT_OK);
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    assert_int_equal(leat_held_of(seg)->where, LEAT_HELD_DIRTY);
    assert_int_equal(held->where, LEAT_HELD_NOWHERE);
    assert_non_null(held->seg.buffer);
    bench_free(bench);
}

/* Goal: a segment is of the actor that has asked for it, and has the post by which this actor is reached. */
static void segment_is_of_who_has_asked(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(24);
    struct leat_post other = bench->world.core_post;
    other.self = 3;
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {1, 0, 0}, .id = {1}, .epoch = {1}, .busy = true};
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_RESERVE,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .capacity = 16384,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &other, &mine->req);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_int_equal(mine->seg->owner_actor, 3);
    assert_ptr_equal(mine->seg->post, bench->world.env.post);
    bench_free(bench);
}

/* Goal: that a file failed is said once, also where two of its rounds end so. */
static void file_that_failed_is_told_once(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(26);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_store_file *file = leat_held_of(mine->seg)->slot.file;
    bench->world.now_us += 100000;
    leat_store_actor.on_turn_end(bench->store);
    while (!file->rounds[LEAT_STORE_LANE_SYNCS].running)
        assert_true(fake_step(&bench->world));
    file->failed = true; /* by the round of the other lane */
    bench->world.fail_at = bench->world.op_count + 1;
    fake_settle(&bench->world);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_STUCK);
    assert_int_equal(bench->store->complaint_count, 1); /* that the segment stays in memory */
    bench_free(bench);
}

/* Goal: a segment of a file that could not be made again is missing; no other segment has its place. */
static void place_in_no_file_is_nobodys(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(27);
    struct leat_disk *disk = &bench->world.disk;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    for (uint64_t at = 1; !bench->store || !bench->store->slots.files[0]->failed; at++) {
        assert_true(at < 100);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        bench->world.arena.inherited_bytes = 0;
        (void)disk->remove(disk->ctx, "store/0");
        bench->world.fail_at = bench->world.op_count + at; /* until that is the sync of its name */
        (void)bench_open(bench, NULL);
    }
    assert_int_equal(bench->store->slots.files[0]->grown_units, 0);
    assert_int_equal(bench->store->complaint_count, 1);
    assert_null(strstr(bench->store->complaints[0], "same place"));
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_that_is_gone_is_of_one_segment),
        cmocka_unit_test(pool_with_a_step_at_hand_asks_for_none),
        cmocka_unit_test(place_of_two_is_not_repaired),
        cmocka_unit_test(memory_past_the_limit_goes_first),
        cmocka_unit_test(reservation_in_memory_outlives_its_file),
        cmocka_unit_test(segment_in_memory_says_nothing_of_its_file),
        cmocka_unit_test(segment_knows_its_files_number),
        cmocka_unit_test(file_that_refuses_its_end_has_failed),
        cmocka_unit_test(arena_that_can_not_shrink_is_kept),
        cmocka_unit_test(hibernation_writes_what_the_file_lacks),
        cmocka_unit_test(flush_of_all_leaves_what_a_start_has_found),
        cmocka_unit_test(store_without_memory_is_not_opened),
        cmocka_unit_test(start_without_memory_forgets_nothing_missing),
        cmocka_unit_test(descriptors_in_use_are_not_free),
        cmocka_unit_test(refusals_give_their_descriptors_back),
        cmocka_unit_test(cut_leaves_others_alone),
        cmocka_unit_test(segment_is_of_who_has_asked),
        cmocka_unit_test(file_that_failed_is_told_once),
        cmocka_unit_test(place_in_no_file_is_nobodys),
        cmocka_unit_test(descriptors_wait_for_their_owners),
        cmocka_unit_test(cut_segment_begins_where_its_bytes_say),
    };
    return cmocka_run_group_tests_name("store corners", tests, NULL, NULL);
}
