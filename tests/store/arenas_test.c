/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas of replicas that are full, retired or named by a damaged row, and replicas that move, leave and come back. */
#include "tests/store/side.h"

enum { PLACE = LEAT_SEGMENT_BYTES_MAX };

static struct leat_row *row_in_file(struct bench *bench, uint32_t row)
{
    return (void *)(fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES +
                    row * (uint64_t)LEAT_ROW_BYTES);
}

/* Goal: a replica whose row names a place past its arena's end, or between two places, is lost: nothing is read
 * there. */
static void place_that_is_none_is_not_read(void **state)
{
    (void)state;
    static const uint64_t places[] = {1024ull * ARENA, 64};
    for (unsigned i = 0; i < 2; i++) {
        struct side side;
        struct bench *bench = bench_ready(2);
        side_init(&side, bench, 1);
        side_add(&side);
        struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
        struct leat_row *row = row_in_file(bench, mine->seg->row);
        row->pool_at = places[i];
        leat_row_seal(row, mine->seg->row);
        reopen_with(bench, &side);
        size_t count;
        const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
        assert_int_equal(count, 1);
        assert_int_equal(found->kind, LEAT_FOUND_LOST);
        assert_non_null(strstr(found->why, "memory did not survive"));
        side_fini(&side);
    }
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

/* An arena of two steps, of which the first is there. */
static struct bench *two_steps(struct side *side)
{
    struct bench *bench = bench_ready(3);
    side_init(side, bench, 1);
    free(side->raw);
    side->raw = calloc(1, 2 * ARENA + 4096);
    side->arena.base = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)side->raw, 4096);
    side->arena.limit_bytes = 2 * ARENA;
    side->grows_max = 2;
    side->add = (struct leat_store_arena_op){
        .arena = &side->arena, .limit_bytes = 2 * ARENA, .on_done = on_added, .owner = side};
    leat_store_arena_add(bench->store, &bench->world.core_post, &side->add);
    fake_settle(&bench->world);
    assert_int_equal(side->add.added->pool.added_bytes, ARENA);
    return bench;
}

/* Goal: a writer waits where its arena is full and may still grow. */
static void full_arena_that_may_grow_is_waited_for(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = two_steps(&side);
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
    side_fini(&side);
}

/* Goal: a retired arena refuses at once, though it might grow. */
static void retired_arena_refuses_at_once(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = two_steps(&side);
    replica_want(&side, PLACE);
    fake_settle(&bench->world);
    side_retire(&side);
    assert_false(side.retired);
    replica_want(&side, PLACE);
    fake_settle(&bench->world);
    assert_false(bench->mine[1].busy);
    assert_int_equal(bench->mine[1].rc, LEAT_E_NO_MEMORY);
    side_fini(&side);
}

/* Goal: a replica moves without a sync of its own, at level `disk` too: its bytes are where they were. */
static void replica_moves_without_a_sync(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(7);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_DISK, false);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    uint32_t row = mine->seg->row;
    uint64_t pool_at = row_in_file(bench, row)->pool_at;
    uint8_t was[LEAT_ROW_BYTES];
    memcpy(was, file->durable + LEAT_BLOCK_BYTES + row * (uint64_t)LEAT_ROW_BYTES, sizeof was);
    replica_want(&side, PLACE); /* so that the other place has another number */
    fake_settle(&bench->world);
    (void)opened(bench, LEAT_DURABILITY_MEMORY);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_MOVE), LEAT_OK);
    assert_int_not_equal(row_in_file(bench, row)->pool_at, pool_at);
    assert_memory_equal(file->durable + LEAT_BLOCK_BYTES + row * (uint64_t)LEAT_ROW_BYTES, was,
                        sizeof was);
    side_fini(&side);
}

/* Goal: a replica that was hibernated comes back into its writer's arena. */
static void replica_comes_back_into_its_arena(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(17);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESUME, 4, false), LEAT_OK);
    assert_ptr_equal(leat_held_of(mine->seg)->pool, &side.add.added->pool);
    assert_int_equal(side.add.added->pool.given, 1);
    side_fini(&side);
}

/* Goal: of a replica that had only its header nothing is put into its place. */
static void replica_without_a_start_is_not_written(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(8);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    write_header(mine);
    seal(mine);
    uint64_t at = mine->seg->file_offset;
    reopen_with(bench, &side);
    size_t count;
    (void)leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 0);
    static const uint8_t zeros[4096];
    assert_memory_equal(fake_file(&bench->world, "store/0")->now + at, zeros, sizeof zeros);
    side_fini(&side);
}

/* Goal: while a replica is flushed its bytes count among those that leave its arena. */
static void replica_that_is_flushed_leaves_its_arena(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(25);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    const struct leat_pool *pool = &side.add.added->pool;
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    assert_int_equal(pool->leaving_bytes, 0);
    bench->world.now_us += 100000;
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_FLUSHING);
    assert_int_equal(pool->leaving_bytes, mine->seg->capacity);
    fake_settle(&bench->world);
    side_fini(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_that_is_none_is_not_read),
        cmocka_unit_test(full_arena_that_may_grow_is_waited_for),
        cmocka_unit_test(retired_arena_refuses_at_once),
        cmocka_unit_test(replica_moves_without_a_sync),
        cmocka_unit_test(replica_comes_back_into_its_arena),
        cmocka_unit_test(replica_without_a_start_is_not_written),
        cmocka_unit_test(replica_that_is_flushed_leaves_its_arena),
    };
    return cmocka_run_group_tests_name("store arenas", tests, NULL, NULL);
}
