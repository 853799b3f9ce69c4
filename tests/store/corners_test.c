/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the store that hold between two segments: one place for both, one file, one step of memory. */
#include "tests/store/side.h"

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

/* Goal: a replica whose row names a place past its arena's end is lost: nothing is read there. */
static void place_past_the_arena_is_not_read(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(2);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    struct leat_row *row = row_in_file(bench, mine->seg->row);
    row->pool_at = 1024ull * ARENA;
    leat_row_seal(row, mine->seg->row);
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    assert_non_null(strstr(found->why, "memory did not survive"));
    side_fini(&side);
}

static void replica_want(struct side *side, uint32_t capacity)
{
    struct bench *bench = side->bench;
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {5, 0, 0}, .id = {bench->count}, .epoch = {3}, .durability = 1};
    mine->busy = true;
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_RESERVE,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .durability = mine->durability,
                                        .capacity = capacity,
                                        .arena = side->add.added,
                                        .role = LEAT_SEGMENT_REPLICA,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
}

/* Goal: a writer waits where its arena is full and may still grow; a retired arena refuses at once. */
static void full_arena_that_may_grow_is_waited_for(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(3);
    side_init(&side, bench, 1);
    free(side.raw);
    side.raw = calloc(1, 2 * ARENA + 4096);
    side.arena.base = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)side.raw, 4096);
    side.arena.limit_bytes = 2 * ARENA;
    side.grows_max = 2;
    side.add = (struct leat_store_arena_op){
        .arena = &side.arena, .limit_bytes = 2 * ARENA, .on_done = on_added, .owner = &side};
    leat_store_arena_add(bench->store, &bench->world.core_post, &side.add);
    fake_settle(&bench->world);
    bench->world.turn_stays = true; /* all of them come in one turn */
    for (unsigned i = 0; i < ARENA / PLACE + 1; i++)
        replica_want(&side, PLACE);
    for (unsigned i = 0; i < ARENA / PLACE + 1; i++)
        assert_true(fake_event_step(&bench->world));
    bench->world.turn_stays = false;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    for (unsigned i = 0; i < bench->count; i++)
        assert_int_equal(bench->mine[i].rc, LEAT_OK);
    assert_int_equal(side.add.added->pool.added_bytes, 2 * ARENA);
    side_retire(&side);
    replica_want(&side, PLACE);
    fake_settle(&bench->world);
    assert_int_equal(bench->mine[bench->count - 1].rc, LEAT_E_NO_MEMORY);
    side_fini(&side);
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
        bench->mine[i].extent_count = 1;
        bench->mine[i].extents[0] = (struct leat_extent){100, 99};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_that_is_gone_is_of_one_segment),
        cmocka_unit_test(place_past_the_arena_is_not_read),
        cmocka_unit_test(full_arena_that_may_grow_is_waited_for),
        cmocka_unit_test(pool_with_a_step_at_hand_asks_for_none),
    };
    return cmocka_run_group_tests_name("store corners", tests, NULL, NULL);
}
