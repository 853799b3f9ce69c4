/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: which request gets a buffer when, which owners are asked for a buffer, and what happens to requests that get
 * none. */
#include "tests/store/store_bench.h"

enum { MIB = 1024 * 1024, PLACE = LEAT_SEGMENT_BYTES_MAX, PLACES = MEMORY / PLACE };

/* ---- how much the pool may have ---- */
static uint64_t less;
static unsigned asked_less;
static uint64_t less_bytes(void *owner)
{
    (void)owner;
    asked_less++;
    return less;
}

/* Goal: the pool is made smaller by whole steps, never below one, at once; larger only with a quarter of a step to
 * spare, or to all of it where nothing is to be left. */
static void memory_limit_goes_down_at_once_and_up_with_room_to_spare(void **state)
{
    (void)state;
    enum { QUARTER = LEAT_ARENA_STEP_BYTES / 4 };
    static const struct {
        unsigned limit; /* steps, of 8 */
        uint64_t less;  /* quarters of a step, and a byte more */
        bool more;
        unsigned want;
    } rows[] = {
        {8, 0, false, 8},  {8, 0, true, 7},   {8, 4, false, 7},  {8, 4, true, 6},
        {8, 28, false, 1}, {8, 31, false, 1}, {8, 32, false, 1}, {8, 99, false, 1},
        {4, 0, false, 8},  {4, 0, true, 7},   {4, 4, false, 6},  {6, 7, false, 6},
        {5, 7, false, 6},  {5, 7, true, 5},   {5, 8, false, 5},  {5, 12, false, 5},
        {5, 12, true, 4},  {1, 28, false, 1}, {1, 27, false, 1}, {1, 23, false, 2},
        {1, 24, false, 1}, {7, 1, false, 7},  {7, 0, false, 8},  {2, 3, false, 7},
        {2, 4, false, 6},
    };
    const uint64_t full = 8ull * LEAT_ARENA_STEP_BYTES;
    struct fake_world *world = calloc(1, sizeof *world);
    struct leat_store *store;
    struct leat_store_options options = options_of();
    fake_world_init(world, 1, full);
    options.memory_bytes = full;
    assert_int_equal(leat_store_open(&world->env, &options, &store, NULL), LEAT_OK);
    leat_store_found_done(store);
    store->options.less_bytes = less_bytes;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        leat_pool_limit_set(&store->pool, rows[i].limit * (uint64_t)LEAT_ARENA_STEP_BYTES);
        struct leat_store_req favoured;
        store->favoured = &favoured;
        leat_buddy_keep(&store->pool.buddy, 512, 9);
        store->pool.grow_failed = true; /* so that it is asked once */
        store->pool.grown_us = world->now_us;
        less = rows[i].less * QUARTER + rows[i].more;
        store->look_us = world->now_us;
        asked_less = 0;
        leat_memory_step(store, world->now_us);
        assert_int_equal(store->pool.limit_bytes, rows[i].want * (uint64_t)LEAT_ARENA_STEP_BYTES);
        assert_int_equal(asked_less, 1);
        /* The place that was kept may lie past it; nobody waits here, so it is dropped in any case. */
        assert_null(store->favoured);
        assert_int_equal(store->pool.buddy.kept_end, 0);
    }
    leat_store_close(&store);
    fake_world_fini(world);
    free(world);
}

/* Goal: the pool's limit is read every second, ten times as often while a segment lies past the limit, and before each
 * step by which the pool grows. */
static void memory_limit_is_looked_at_in_time(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(2);
    struct leat_store *store = bench->store;
    store->options.less_bytes = less_bytes;
    less = 0;
    store->pool.grow_failed = true; /* none is asked for to grow */
    store->pool.grown_us = UINT64_MAX / 2;
    store->look_us = 0;
    uint64_t now = 5000000;
    asked_less = 0;
    leat_memory_step(store, now);
    assert_int_equal(asked_less, 1);
    assert_int_equal(store->look_us, now + 1000000);
    assert_int_equal(leat_memory_next_us(store), now + 1000000);
    leat_memory_step(store, now + 999999);
    assert_int_equal(asked_less, 1);
    leat_memory_step(store, now + 1000000);
    assert_int_equal(asked_less, 2);
    bench_free(bench);

    bench = bench_ready(2);
    store = bench->store;
    for (unsigned i = 0; i < 9; i++) { /* more than a step */
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
    }
    assert_int_equal(leat_memory_next_us(store), UINT64_MAX); /* nothing is waited for */
    store->options.less_bytes = less_bytes;
    less = LEAT_ARENA_STEP_BYTES;
    store->look_us = 0;
    leat_memory_step(store, now);
    assert_int_equal(store->pool.limit_bytes, LEAT_ARENA_STEP_BYTES);
    assert_int_equal(store->look_us, now + 100000);
    store->options.less_bytes = NULL; /* what is past the limit is looked at all the same */
    assert_int_equal(leat_memory_next_us(store), now + 100000);
    store->options.less_bytes = less_bytes;
    less = 0;
    leat_memory_step(store, now + 100000);
    assert_int_equal(store->pool.limit_bytes, 2 * LEAT_ARENA_STEP_BYTES);
    bench_free(bench);

    bench = bench_ready(3); /* before it grows */
    store = bench->store;
    store->options.less_bytes = less_bytes;
    less = asked_less = 0;
    store->look_us = UINT64_MAX;
    assert_true(leat_pool_can_grow(&store->pool));
    leat_memory_step(store, now);
    assert_int_equal(asked_less, 1);
    bench_free(bench);
}

/* ---- who is asked ---- */

static struct mine *open_one(struct bench *bench, uint32_t capacity)
{
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, capacity);
    fake_settle(&bench->world);
    fake_pass(&bench->world, 30000);
    assert_false(mine->busy);
    assert_int_equal(mine->rc, LEAT_OK);
    return mine;
}

/* Goal: an eighth of the pool is kept free, and where a step of flushed segments is there, a step: so many owners are
 * asked, the oldest segments first, each once. */
static void memory_asks_owners_for_as_much_as_it_lacks(void **state)
{
    (void)state;
    static const struct {
        unsigned open, flushed, asked, dropped;
    } rows[] = {{12, 2, 0, 0}, {13, 2, 1, 0}, {12, 3, 1, 0}, {13, 3, 2, 0},
                {14, 2, 2, 0}, {15, 1, 1, 0}, {7, 7, 0, 0},  {6, 8, 6, 0},
                {5, 9, 6, 0},  {8, 8, 8, 0},  {4, 8, 4, 0},  {1, 8, 1, 0},
                {0, 8, 0, 8},  {0, 9, 1, 7},  {0, 10, 2, 6}, {2, 8, 2, 6}};
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct bench *bench = bench_ready(10 + r);
        struct mine *mine[PLACES];
        unsigned count = rows[r].open + rows[r].flushed, gone = rows[r].dropped;
        for (unsigned i = 0; i < count + gone; i++) {
            mine[i] = open_one(bench, PLACE);
            bench->store->started = false; /* nobody is asked until all are there */
        }
        for (unsigned i = count; i < count + gone; i++) /* all of the pool is there by now */
            assert_int_equal(do_now(bench, mine[i], LEAT_STORE_DROP), LEAT_OK);
        bench->store->started = true;
        for (unsigned i = 0; i < rows[r].flushed; i++) {
            mine[i]->prefix_id_count = 1;
            mine[i]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
            ask(bench, mine[i], LEAT_STORE_CLOSE);
        }
        fake_settle(&bench->world);
        fake_pass(&bench->world, 60000);
        unsigned asked = 0;
        for (unsigned i = 0; i < count; i++) {
            if (!mine[i]->evict_wanted) continue;
            asked++;
            assert_true(i < rows[r].flushed);
            assert_int_equal(leat_held_of(mine[i]->seg)->where, LEAT_HELD_ASKED);
        }
        assert_int_equal(asked, rows[r].asked);
        assert_int_equal(bench->store->asked_bytes, asked * (uint64_t)PLACE);
        for (unsigned i = 0; i < asked; i++)
            assert_true(mine[i]->evict_wanted); /* the oldest */
        bench_free(bench);
    }
}

/* Goal: owners are asked for what a waiting request needs besides, also where a step is kept free. */
static void memory_asks_more_for_who_waits(void **state)
{
    (void)state;
    static const struct {
        unsigned open, flushed, asked;
    } rows[] = {{13, 3, 3}, {7, 9, 9}};
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct bench *bench = bench_ready(60 + r);
        struct mine *mine[PLACES];
        for (unsigned i = 0; i < PLACES; i++) {
            mine[i] = open_one(bench, PLACE);
            bench->store->started = false;
        }
        for (unsigned i = 0; i < rows[r].flushed; i++) {
            mine[i]->prefix_id_count = 1;
            mine[i]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
            assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
            leat_held_move(leat_held_of(mine[i]->seg), LEAT_HELD_CACHED, &bench->store->cached);
        }
        struct mine *waits = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        assert_true(waits->busy);
        bench->store->started = true;
        leat_memory_step(bench->store, bench->world.now_us);
        assert_int_equal(bench->store->asked_bytes, rows[r].asked * (uint64_t)PLACE);
        fake_settle(&bench->world);
        bench_free(bench);
    }
}

/* Goal: a segment that nobody has since the start goes without asking. */
static void memory_takes_what_nobody_has(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct mine *mine[PLACES];
    for (unsigned i = 0; i < PLACES; i++)
        mine[i] = open_one(bench, PLACE);
    mine[3]->seg->owner_actor = LEAT_ACTORS;
    mine[3]->prefix_id_count = 1;
    mine[3]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
    assert_int_equal(do_now(bench, mine[3], LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 60000);
    assert_true(mine[3]->seg->flushed);
    assert_null(mine[3]->seg->buffer);
    assert_false(mine[3]->evict_wanted);
    assert_int_equal(leat_held_of(mine[3]->seg)->where, LEAT_HELD_NOWHERE);
    bench_free(bench);
}

/* ---- who waits ---- */

static void to_cached(struct bench *bench, struct mine *mine)
{
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){100, 99};
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    leat_held_move(leat_held_of(mine->seg), LEAT_HELD_CACHED, &bench->store->cached);
}

/* Goal: a request that finds no memory waits for 10 s, and is refused then, leaving nothing behind; a request that is
 * served before gets the memory that came free, in the order of the requests for each size. */
static void memory_lets_wait_and_refuses_in_time(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(31);
    struct mine *all[PLACES];
    for (unsigned i = 0; i < PLACES; i++)
        all[i] = open_one(bench, PLACE);
    struct leat_store *store = bench->store;
    struct leat_store_usage before, after;
    fake_pass(&bench->world, 1000);
    leat_store_usage(store, &before);
    uint64_t asked = bench->world.now_us;
    struct mine *first = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    struct mine *second = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    struct mine *little = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(store->memory_wait_count, 3);
    assert_int_equal(store->memory_wait_bytes, 2 * PLACE + 16384);
    assert_int_equal(bench->world.wake_at_us, asked + 20000); /* it looks again soon */
    fake_pass(&bench->world, 9999999);
    assert_true(first->busy && second->busy && little->busy);
    assert_int_equal(bench->world.wake_at_us, asked + 10000000);
    fake_pass(&bench->world, 1);
    assert_false(first->busy || second->busy || little->busy);
    assert_int_equal(first->rc, LEAT_E_NO_MEMORY);
    assert_int_equal(little->rc, LEAT_E_NO_MEMORY);
    assert_null(first->req.seg);
    assert_int_equal(store->memory_wait_count, 0);
    assert_int_equal(store->memory_wait_bytes, 0);
    leat_store_usage(store, &after);
    assert_int_equal(after.segments, before.segments);
    struct leat_store_file *file = store->slots.files[0];
    assert_true(file->buddy.free_units >= 2 * 512); /* their places */
    /* Now one after the other, as memory comes free. */
    first = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    second = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    uint8_t *place = all[4]->seg->buffer;
    assert_int_equal(do_now(bench, all[4], LEAT_STORE_DROP), LEAT_OK);
    assert_false(first->busy);
    assert_true(second->busy);
    assert_int_equal(first->rc, LEAT_OK);
    assert_ptr_equal(first->seg->buffer, place);
    fake_pass(&bench->world, 9999000);
    assert_true(second->busy);
    assert_int_equal(do_now(bench, all[5], LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(second->rc, LEAT_OK);
    assert_int_equal(store->memory_wait_bytes, 0);
    /* What comes free at the last moment is given. */
    to_cached(bench, all[6]);
    first = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    assert_true(first->busy);
    bench->world.now_us += 10000000;
    place = all[6]->seg->buffer;
    assert_int_equal(do_now(bench, all[6], LEAT_STORE_EVICT), LEAT_OK);
    assert_false(first->busy);
    assert_int_equal(first->rc, LEAT_OK);
    assert_ptr_equal(first->seg->buffer, place);
    assert_int_equal(store->memory_wait_count, 0);
    bench_free(bench);
}

/* Goal: a hibernated segment that gets no memory stays hibernated. A segment whose file has other bytes than its row
 * says, or fewer bytes, or can't be read, is refused with the code of its fault, and its buffer serves other
 * segments. */
static void memory_resumes_what_is_whole(void **state)
{
    (void)state;
    static const leat_err want[] = {LEAT_OK, LEAT_E_DAMAGED, LEAT_E_DAMAGED, LEAT_E_DISK};
    for (unsigned what = 0; what < 4; what++) {
        struct bench *bench = bench_ready(32);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine, 5));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
        struct leat_file *file = fake_file(&bench->world, "store/0");
        memset(file->now + mine->seg->file_offset + mine->seg->prefix_id.bytes, 0x66,
               mine->seg->capacity - mine->seg->prefix_id.bytes); /* an earlier segment */
        if (what == 1) file->now[mine->seg->file_offset + mine->seg->prefix_id.bytes - 1] ^= 1;
        if (what == 2) file->bytes = mine->seg->file_offset + mine->seg->prefix_id.bytes - 1;
        if (what == 3) bench->world.fail_at = bench->world.op_count + 1;
        uint64_t used = leat_pool_used(&bench->store->pool);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_RESUME), want[what]);
        assert_int_equal(mine->seg->state, what ? LEAT_SEGMENT_HIBERNATED : LEAT_SEGMENT_OPEN);
        assert_int_equal(mine->seg->buffer != NULL, what == 0);
        assert_int_equal(leat_pool_used(&bench->store->pool), used + (what ? 0 : 16384));
        assert_int_equal(bench->store->complaint_count, what == 1);
        for (uint32_t i = mine->seg->prefix_id.bytes; !what && i < mine->seg->capacity; i++)
            assert_int_equal(mine->seg->buffer[i], 0);
        bench_free(bench);
    }
    /* A file that ends with the record has all of it. */
    struct bench *bench = bench_ready(33);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_file(&bench->world, "store/0")->bytes =
        mine->seg->file_offset + mine->seg->prefix_id.bytes;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_RESUME), LEAT_OK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    /* And no memory. */
    for (unsigned i = 0; i < PLACES; i++)
        (void)open_one(bench, PLACE);
    ask(bench, mine, LEAT_STORE_RESUME);
    fake_pass(&bench->world, 9999999);
    assert_true(mine->busy);
    fake_pass(&bench->world, 1);
    assert_int_equal(mine->rc, LEAT_E_NO_MEMORY);
    assert_int_equal(mine->seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_non_null(mine->req.seg);
    bench_free(bench);
}

/* Goal: where the catalogue failed nothing that needs a row is begun; where a segment's file did it is not resumed. A
 * move of what lies in the pool already is done at once. */
static void memory_refuses_what_can_not_be_noted(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4; what++) {
        struct bench *bench = bench_ready(34);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        struct mine *other = opened(bench, LEAT_DURABILITY_MEMORY);
        uint8_t *at = other->seg->buffer;
        assert_int_equal(do_now(bench, other, LEAT_STORE_MOVE), LEAT_OK);
        assert_ptr_equal(other->seg->buffer, at);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
        struct leat_held *held = leat_held_of(mine->seg);
        if (what == 1) bench->store->cat.failed = true;
        if (what == 2) held->failed = true;
        if (what == 3) held->slot.file->failed = true;
        uint64_t ops = bench->world.op_count;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_RESUME), what ? LEAT_E_DISK : LEAT_OK);
        if (what) assert_int_equal(bench->world.op_count, ops);
        assert_int_equal(do_now(bench, other, LEAT_STORE_MOVE), what == 1 ? LEAT_E_DISK : LEAT_OK);
        struct mine *next = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
        fake_settle(&bench->world);
        assert_int_equal(next->rc, what == 1 ? LEAT_E_DISK : LEAT_OK);
        if (what == 1) assert_null(next->req.seg);
        bench_free(bench);
    }
}

/* Goal: a request that has waited for 50 ms gets the place with the most memory that is free or can be given back: the
 * flushed segments there are asked for, segments that are not flushed count as well, and no other request gets a part
 * of the place. */
static void memory_favours_who_has_waited(void **state)
{
    (void)state;
    enum { HALF = PLACE / 2, BEST = 9, GOOD = 1 };
    for (unsigned what = 0; what < 5; what++) {
        struct bench *bench = bench_ready(40 + what);
        struct mine *half[PLACES][2];
        for (unsigned i = 0; i < PLACES; i++)
            for (unsigned j = 0; j < 2; j++) {
                half[i][j] = open_one(bench, HALF);
                assert_ptr_equal(half[i][j]->seg->buffer, bench->world.arena.base +
                                                              i * (uint64_t)PLACE +
                                                              j * (uint64_t)HALF);
            }
        bench->store->options.flush_delay_us = 3600 * UINT64_C(1000000);
        bench->store->started = false; /* nobody is asked, nothing is flushed yet */
        struct mine *closed[3] = {half[GOOD][0], half[BEST][0],
                                  what ? half[BEST][1] : half[GOOD + 1][0]};
        for (unsigned i = 0; i < 3; i++) {
            closed[i]->prefix_id_count = 1;
            closed[i]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
            if (what == 2 && i == 2)
                assert_int_equal(do_now(bench, closed[i], LEAT_STORE_DROP), LEAT_OK); /* free */
            else
                assert_int_equal(do_now(bench, closed[i], LEAT_STORE_CLOSE), LEAT_OK);
            struct leat_held *held = leat_held_of(closed[i]->seg);
            if (what == 3) leat_held_move(held, LEAT_HELD_DIRTY, &bench->store->dirty_soon);
            if (what == 4) leat_held_move(held, LEAT_HELD_ASKED, &bench->store->asked);
        }
        struct mine *large = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        uint64_t now = bench->world.now_us;
        leat_memory_step(bench->store, now + 49999);
        assert_null(bench->store->favoured);
        leat_memory_step(bench->store, now + 50000);
        assert_ptr_equal(bench->store->favoured, &large->req);
        assert_int_equal(bench->store->favoured_at_us, now + 50000);
        unsigned best = what ? BEST : GOOD; /* the first of equals */
        assert_int_equal(bench->store->pool.buddy.kept_from, best * 512);
        assert_int_equal(bench->store->pool.buddy.kept_end, (best + 1) * 512);
        if (what == 0 || what == 4) {
            bench_free(bench);
            continue;
        }
        bench->store->started = true; /* now all goes on: flushed, asked for, given */
        bench->world.now_us += 50000;
        for (unsigned i = 0; i < 40 && large->busy; i++) {
            fake_pass(&bench->world, 20000);
            for (unsigned j = 0; j < 3; j++)
                if (closed[j]->evict_wanted && !closed[j]->busy && closed[j]->seg->buffer)
                    assert_int_equal(do_now(bench, closed[j], LEAT_STORE_EVICT), LEAT_OK);
        }
        assert_int_equal(large->rc, LEAT_OK);
        assert_ptr_equal(large->seg->buffer, bench->world.arena.base + BEST * (uint64_t)PLACE);
        assert_null(bench->store->favoured);
        assert_int_equal(bench->store->pool.buddy.kept_end, 0);
        bench_free(bench);
    }
}

/* Goal: while a place is kept for a request, the store asks only the owners of segments in that place for memory; after
 * another 50 ms, and not before, the store looks for a better place. */
static void memory_looks_for_a_better_place_now_and_then(void **state)
{
    (void)state;
    enum { HALF = PLACE / 2, FIRST = 9, BETTER = 2 };
    struct bench *bench = bench_ready(50);
    struct mine *half[PLACES][2];
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned j = 0; j < 2; j++)
            half[i][j] = open_one(bench, HALF);
    struct leat_store *store = bench->store;
    store->started = false;
    to_cached(bench, half[5][0]);
    to_cached(bench, half[FIRST][0]);
    to_cached(bench, half[FIRST][1]);
    struct mine *large = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    uint64_t now = bench->world.now_us + 50000;
    leat_memory_step(store, now);
    assert_int_equal(store->pool.buddy.kept_from, FIRST * 512);
    assert_int_equal(leat_held_of(half[FIRST][0]->seg)->where, LEAT_HELD_ASKED);
    assert_int_equal(leat_held_of(half[FIRST][1]->seg)->where, LEAT_HELD_ASKED);
    assert_int_equal(leat_held_of(half[5][0]->seg)->where, LEAT_HELD_CACHED);
    to_cached(bench, half[BETTER][0]);
    to_cached(bench, half[BETTER][1]);
    leat_memory_step(store, now + 49999);
    assert_int_equal(store->pool.buddy.kept_from, FIRST * 512);
    leat_memory_step(store, now + 50000);
    assert_int_equal(store->pool.buddy.kept_from, BETTER * 512); /* the first of equals */
    assert_int_equal(leat_held_of(half[BETTER][1]->seg)->where, LEAT_HELD_ASKED);
    assert_true(large->busy);
    fake_settle(&bench->world);
    /* It comes free: it is that one's, and counted. */
    uint32_t given = store->pool.given;
    assert_int_equal(do_now(bench, half[BETTER][0], LEAT_STORE_EVICT), LEAT_OK);
    bench->world.now_us = now + 60000;
    assert_int_equal(do_now(bench, half[BETTER][1], LEAT_STORE_EVICT), LEAT_OK);
    assert_false(large->busy);
    assert_ptr_equal(large->seg->buffer, bench->world.arena.base + BETTER * (uint64_t)PLACE);
    for (unsigned i = 0; i < LEAT_ENTRY_HEADER_BYTES; i++)
        assert_int_equal(large->seg->buffer[i], 0);
    assert_int_equal(store->pool.given, given - 1);
    assert_null(store->favoured);
    bench_free(bench);
}

/* Goal: a request that waits for memory makes the flushes hurry, also where no more than half of the pool is used
 * besides what could be evicted: the free memory may lie in pieces. */
static void memory_that_is_waited_for_hurries_the_flush(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct bench *bench = bench_ready(51);
        struct mine *mine[PLACES];
        for (unsigned i = 0; i < PLACES; i++)
            mine[i] = open_one(bench, PLACE);
        bench->store->started = false;
        for (unsigned i = 0; i < 8; i++)
            to_cached(bench, mine[i]);
        mine[8]->prefix_id_count = 1;
        mine[8]->prefix_ids[0] = (struct leat_prefix_id){100, 99};
        assert_int_equal(do_now(bench, mine[8], LEAT_STORE_CLOSE), LEAT_OK);
        assert_false(leat_flush_pressed(bench->store));
        if (waits) (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        assert_int_equal(leat_flush_pressed(bench->store), waits);
        bench->store->started = true;
        fake_pass(&bench->world, 30000); /* before its delay is over */
        assert_int_equal(mine[8]->flushed, waits);
        bench_free(bench);
    }
}

/* Goal: the memory of a stopped node may go once every segment in it is closed and flushed, or hibernated: one segment
 * that is not holds all of it. Memory that is not the node's own does not count. */
static void memory_is_needed_until_all_of_it_is_on_disk(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    const struct leat_store *store = bench->store;
    assert_true(leat_store_is_on_disk(store));
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_false(leat_store_is_on_disk(store));
    struct leat_held *held = leat_held_of(mine->seg);
    mine->seg->flushed = true; /* a part, as long as it is open */
    assert_false(leat_store_is_on_disk(store));
    mine->seg->flushed = false;
    struct leat_pool *pool = held->pool;
    held->pool = NULL;
    assert_true(leat_store_is_on_disk(store));
    held->pool = pool;
    void *buffer = mine->seg->buffer;
    mine->seg->buffer = NULL;
    assert_true(leat_store_is_on_disk(store));
    mine->seg->buffer = buffer;
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    assert_false(mine->flushed);
    assert_false(leat_store_is_on_disk(store));
    fake_pass(&bench->world, 60000);
    fake_settle(&bench->world);
    assert_true(mine->flushed && mine->seg->buffer);
    assert_true(leat_store_is_on_disk(store));
    struct mine *hibernated = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_false(leat_store_is_on_disk(store));
    assert_int_equal(do_now(bench, hibernated, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_true(leat_store_is_on_disk(store));
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_limit_goes_down_at_once_and_up_with_room_to_spare),
        cmocka_unit_test(memory_limit_is_looked_at_in_time),
        cmocka_unit_test(memory_asks_owners_for_as_much_as_it_lacks),
        cmocka_unit_test(memory_asks_more_for_who_waits),
        cmocka_unit_test(memory_takes_what_nobody_has),
        cmocka_unit_test(memory_lets_wait_and_refuses_in_time),
        cmocka_unit_test(memory_resumes_what_is_whole),
        cmocka_unit_test(memory_refuses_what_can_not_be_noted),
        cmocka_unit_test(memory_favours_who_has_waited),
        cmocka_unit_test(memory_looks_for_a_better_place_now_and_then),
        cmocka_unit_test(memory_that_is_waited_for_hurries_the_flush),
        cmocka_unit_test(memory_is_needed_until_all_of_it_is_on_disk),
    };
    return cmocka_run_group_tests_name("store memory", tests, NULL, NULL);
}
