/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's limit while the store runs: lowered, drained, given back, raised, grown again. */
#include "tests/store/store_bench.h"

enum { STEP = LEAT_ARENA_STEP_BYTES, LARGE = LEAT_SEGMENT_BYTES_MAX, LARGE_IN_STEP = STEP / LARGE };

static uint64_t less;

static uint64_t less_bytes(void *owner)
{
    (void)owner;
    return less;
}

/* With a store that asks what it may have. */
static void bench_start(struct bench *bench)
{
    struct leat_store_options options = options_of();
    options.less_bytes = less_bytes;
    bench->store = NULL;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->store_port = leat_store_port(bench->store);
}

static struct bench *bench_limited(uint64_t seed)
{
    struct bench *bench = bench_new(seed);
    less = 0;
    bench_start(bench);
    leat_store_found_done(bench->store);
    return bench;
}

static struct mine *large(struct bench *bench)
{
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LARGE);
    fake_pass(&bench->world, 10000);
    assert_false(mine->busy);
    assert_int_equal(mine->rc, LEAT_OK);
    write_header(mine);
    write_start(mine);
    assert_true(write_some(mine, 9));
    return mine;
}

static void evict_wanted_all(struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        struct mine *mine = &bench->mine[i];
        if (!mine->evict_wanted || mine->busy) continue;
        mine->evict_wanted = false;
        ask(bench, mine, LEAT_STORE_EVICT);
    }
}

static void pass(struct bench *bench, unsigned turns)
{
    for (; turns > 0; turns--) {
        evict_wanted_all(bench);
        fake_pass(&bench->world, 100000);
    }
}

static struct leat_store_usage usage_of(const struct bench *bench)
{
    struct leat_store_usage usage;
    leat_store_usage(bench->store, &usage);
    return usage;
}

static bool is_past(const struct bench *bench, const struct mine *mine, uint64_t limit)
{
    return mine->seg->buffer >= bench->world.arena.base + limit;
}

/* Goal: flushed segments past a lowered limit leave memory, and their step is given back; with a raised limit the pool
 * grows again and gives out all of it. */
static void limit_lowered_gives_a_step_back_and_raised_grows_again(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(41);
    for (int i = 0; i < LARGE_IN_STEP + 3; i++) {
        struct mine *mine = large(bench);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    }
    assert_int_equal(bench->world.arena.grown_bytes, 2 * STEP);
    pass(bench, 20);
    assert_int_equal(bench->world.shrinks, 0);

    assert_false(usage_of(bench).memory_kept);
    less = 1; /* one byte takes a whole step */
    pass(bench, 30);
    assert_int_equal(bench->world.shrinks, 1);
    assert_int_equal(bench->world.arena.grown_bytes, STEP);
    assert_int_equal(usage_of(bench).memory_limit, STEP);
    assert_true(usage_of(bench).memory_used <= STEP);
    less = 100ull * STEP; /* never below one */
    pass(bench, 30);
    assert_int_equal(usage_of(bench).memory_limit, STEP);
    assert_int_equal(bench->world.arena.grown_bytes, STEP);

    less = STEP - 1; /* up only with room to spare */
    pass(bench, 30);
    assert_int_equal(usage_of(bench).memory_limit, STEP);
    less = 0;
    pass(bench, 30);
    assert_int_equal(usage_of(bench).memory_limit, 2 * STEP);
    struct mine *open[2 * LARGE_IN_STEP];
    for (int i = 0; i < 2 * LARGE_IN_STEP; i++) {
        open[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LARGE);
        pass(bench, 3);
        assert_false(open[i]->busy);
        assert_int_equal(open[i]->rc, LEAT_OK);
    }
    assert_int_equal(bench->world.arena.grown_bytes, 2 * STEP);
    bench_free(bench);
}

/* Goal: an open segment past the limit stays where it is and goes on; its step is given back when the segment
 * leaves. */
static void limit_lowered_leaves_open_segments_alone(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(42);
    struct mine *mine[LARGE_IN_STEP + 1];
    for (int i = 0; i <= LARGE_IN_STEP; i++)
        mine[i] = large(bench);
    struct mine *last = mine[LARGE_IN_STEP];
    assert_true(is_past(bench, last, STEP));
    less = 1;
    pass(bench, 30);
    assert_int_equal(usage_of(bench).memory_limit, STEP);
    assert_int_equal(bench->world.shrinks, 0);
    /* Nothing new goes there, though there is room. */
    struct mine *waits = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LARGE);
    pass(bench, 5);
    assert_true(waits->busy);
    assert_true(write_some(last, 9));
    write_close(last);
    assert_int_equal(do_now(bench, last, LEAT_STORE_CLOSE), LEAT_OK);
    write_close(mine[0]);
    assert_int_equal(do_now(bench, mine[0], LEAT_STORE_CLOSE), LEAT_OK);
    pass(bench, 30);
    assert_int_equal(bench->world.shrinks, 1);
    assert_false(waits->busy);
    assert_int_equal(waits->rc, LEAT_OK);
    assert_false(is_past(bench, waits, STEP));
    bench_free(bench);
}

/* Goal: heads past the limit are told that they are in the way, but only while other heads would have room. */
static void limit_lowered_tells_which_heads_are_in_the_way(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(46);
    const struct leat_store_port *store_port = &bench->store_port;
    struct mine *mine[LARGE_IN_STEP + 2];
    for (int i = 0; i < LARGE_IN_STEP + 2; i++)
        mine[i] = large(bench);
    const struct mine *first = mine[0], *last = mine[LARGE_IN_STEP + 1];
    assert_true(is_past(bench, last, STEP));
    assert_false(store_port->in_the_way(store_port->ctx, last->seg));
    less = 1;
    pass(bench, 30);
    assert_false(store_port->in_the_way(store_port->ctx, last->seg)); /* full */
    for (int i = 1; i <= 2; i++) {
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
    }
    pass(bench, 30);
    assert_true(store_port->in_the_way(store_port->ctx, last->seg));
    assert_false(store_port->in_the_way(store_port->ctx, first->seg));
    less = 0;
    pass(bench, 30);
    assert_false(store_port->in_the_way(store_port->ctx, last->seg));
    bench_free(bench);
}

/* Goal: killed at any moment of giving a step back, a restart has all that was there, and its bytes. */
static void killed_while_a_step_goes_back_nothing_is_lost(void **state)
{
    (void)state;
    unsigned before = 0, after = 0;
    for (unsigned steps = 0; steps < 120; steps += 4) {
        struct bench *bench = bench_limited(43);
        for (int i = 0; i < LARGE_IN_STEP + 2; i++) {
            struct mine *mine = large(bench);
            if (i % 3 == 0 && i < LARGE_IN_STEP) continue; /* stays open */
            write_close(mine);
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        }
        less = 1;
        for (unsigned i = 0; i < steps; i++) {
            evict_wanted_all(bench);
            if (!fake_step(&bench->world)) fake_pass(&bench->world, 20000);
        }
        before += bench->world.shrinks == 0;
        after += bench->world.shrinks == 1;
        fake_kill(&bench->world);
        bench_drop_store(bench);
        bench_start(bench);
        for (unsigned i = 0; i < bench->count; i++) {
            const struct leat_found *found = found_of(bench, &bench->mine[i]);
            assert_non_null(found);
            assert_int_equal(found->kind,
                             bench->mine[i].closed ? LEAT_FOUND_CLOSED : LEAT_FOUND_MARK);
            assert_int_equal(found->seg->prefix_id.bytes, last_prefix_id(&bench->mine[i]).bytes);
            assert_int_equal(found->seg->prefix_id.crc, last_prefix_id(&bench->mine[i]).crc);
        }
        bench_free(bench);
    }
    assert_true(before && after);
}

/* Goal: the pool's limit is asked for before each step that the pool grows, not once a second: other users of the
 * memory have grown meanwhile, and count on the memory that the pool has. */
static void limit_is_asked_before_each_step(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(45);
    large(bench);
    assert_int_equal(usage_of(bench).memory_grown, STEP);
    less = 1;
    for (int i = 1; i < LARGE_IN_STEP; i++)
        large(bench);
    struct mine *waits = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LARGE);
    for (int i = 0; i < 10; i++) {
        fake_pass(&bench->world, 10000);
        assert_int_equal(bench->world.arena.grown_bytes, STEP);
        assert_int_equal(usage_of(bench).memory_grown, STEP);
    }
    assert_true(waits->busy);
    less = 0;
    pass(bench, 30);
    assert_false(waits->busy);
    assert_int_equal(waits->rc, LEAT_OK);
    assert_int_equal(usage_of(bench).memory_grown, 2 * STEP);
    bench_free(bench);
}

/* Goal: the heap memory of a dropped segment is reported as free for the next segment. */
static void dropped_segments_leave_their_rows_to_others(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(47);
    struct mine *mine[20];
    large(bench);
    pass(bench, 3);
    uint64_t before = usage_of(bench).rows_free_bytes;
    assert_true(before > 0);
    for (int i = 0; i < 20; i++) {
        mine[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LEAT_SEGMENT_BYTES_MIN);
        fake_pass(&bench->world, 10000);
        assert_int_equal(mine[i]->rc, LEAT_OK);
    }
    uint64_t during = usage_of(bench).rows_free_bytes;
    assert_in_range(before - during, 20 * sizeof(struct leat_held), 20 * 1024);
    for (int i = 0; i < 20; i++)
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_DROP), LEAT_OK);
    pass(bench, 10);
    assert_int_equal(usage_of(bench).rows_free_bytes, before);
    bench_free(bench);
}

/* Goal: an arena that keeps its steps is asked once, and used as before when the limit is raised. */
static bool refused;
static void keep_step(void *ctx, struct leat_arena_grow *grow)
{
    (void)ctx;
    assert_false(refused);
    refused = true;
    grow->rc = LEAT_E_DISK;
    grow->on_grown(grow);
}
static void limit_lowered_where_the_arena_keeps_its_steps(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(44);
    bench->world.arena.shrink = keep_step;
    for (int i = 0; i <= LARGE_IN_STEP; i++) {
        struct mine *mine = large(bench);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    }
    less = 1;
    pass(bench, 30);
    assert_true(refused);
    assert_true(usage_of(bench).memory_kept);
    assert_int_equal(bench->world.arena.grown_bytes, 2 * STEP);
    assert_true(usage_of(bench).memory_used <= STEP);
    less = 0;
    pass(bench, 30);
    for (int i = 0; i < 2 * LARGE_IN_STEP; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LARGE);
        pass(bench, 3);
        assert_false(mine->busy);
        assert_int_equal(mine->rc, LEAT_OK);
    }
    bench_free(bench);
}

/* Goal: until a request has its row, the usage counts the row that the request will take. */
static void rows_that_were_asked_for_are_told(void **state)
{
    (void)state;
    struct bench *bench = bench_limited(47);
    pass(bench, 1);
    uint64_t free_bytes = usage_of(bench).rows_free_bytes;
    assert_int_equal(usage_of(bench).rows_asked_bytes, 0);
    for (unsigned i = 1; i <= 5; i++) {
        (void)reserve(bench, LEAT_DURABILITY_MEMORY, i, LARGE);
        assert_int_equal(usage_of(bench).rows_asked_bytes, i * LEAT_SEGMENT_HEAP_BYTES);
        assert_int_equal(usage_of(bench).rows_free_bytes, free_bytes);
    }
    pass(bench, 3);
    assert_int_equal(usage_of(bench).rows_asked_bytes, 0);
    assert_true(usage_of(bench).rows_free_bytes != free_bytes);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_lowered_gives_a_step_back_and_raised_grows_again),
        cmocka_unit_test(limit_lowered_leaves_open_segments_alone),
        cmocka_unit_test(limit_lowered_tells_which_heads_are_in_the_way),
        cmocka_unit_test(killed_while_a_step_goes_back_nothing_is_lost),
        cmocka_unit_test(limit_is_asked_before_each_step),
        cmocka_unit_test(dropped_segments_leave_their_rows_to_others),
        cmocka_unit_test(limit_lowered_where_the_arena_keeps_its_steps),
        cmocka_unit_test(rows_that_were_asked_for_are_told),
    };
    return cmocka_run_group_tests_name("store limit", tests, NULL, NULL);
}
