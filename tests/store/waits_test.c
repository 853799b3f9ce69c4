/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for memory, at the bounds: which place is kept for which request, which owners are asked for memory, when the
 * pool grows though it would rather recycle, and when an arena is freed. */
#include "tests/store/side.h"

enum {
    PLACE = LEAT_SEGMENT_BYTES_MAX,
    PLACES = MEMORY / PLACE,
    HALF = PLACE / 2,
    STEP_PLACES = LEAT_ARENA_STEP_BYTES / PLACE
};
#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)

static struct mine *open_one(struct bench *bench, uint32_t capacity)
{
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, capacity);
    fake_settle(&bench->world);
    fake_pass(&bench->world, 30000);
    assert_false(mine->busy);
    assert_int_equal(mine->rc, LEAT_OK);
    return mine;
}

/* As if it had been flushed. */
static void to_cached(struct bench *bench, struct mine *mine)
{
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){100, 99};
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    leat_held_move(leat_held_of(mine->seg), LEAT_HELD_CACHED, &bench->store->cached);
}

/* A pool of halves, all of which are used; nobody is asked and nothing is flushed. */
static struct bench *halves_begin(uint64_t seed, struct mine *half[PLACES][2])
{
    struct bench *bench = bench_ready(seed);
    for (unsigned i = 0; i < PLACES; i++)
        for (unsigned j = 0; j < 2; j++)
            half[i][j] = open_one(bench, HALF);
    bench->store->started = false;
    bench->store->options.flush_delay_us = 3600 * UINT64_C(1000000);
    return bench;
}

/* ---- the place that is kept ---- */

/* Goal: the first place is one like all others: what is free of it counts. */
static void waits_first_place_may_be_the_best(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(1, half);
    assert_int_equal(do_now(bench, half[0][0], LEAT_STORE_DROP), LEAT_OK);
    to_cached(bench, half[3][0]);
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    leat_memory_step(bench->store, bench->world.now_us + LEAT_STORE_FAVOUR_US);
    assert_int_equal(bench->store->pool.buddy.kept_from, 0);
    assert_int_equal(bench->store->pool.buddy.kept_end, 512);
    bench_free(bench);
}

/* Goal: segments in an arena belong to no place of the pool; and for a kept place the store asks for the segments in
 * that place, not for the segments after it. */
static void waits_place_has_its_own_segments(void **state)
{
    (void)state;
    enum { OTHER = 4, BEST = 9 };
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(2, half);
    struct leat_store *store = bench->store;
    for (unsigned j = 0; j < 2; j++)
        to_cached(bench, half[OTHER][j]);
    to_cached(bench, half[BEST][1]);
    to_cached(bench, half[BEST + 1][0]);
    struct leat_pool elsewhere;
    for (unsigned j = 0; j < 2; j++) /* as if they lay in an arena that is mapped there */
        leat_held_of(half[OTHER][j]->seg)->pool = &elsewhere;
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    leat_memory_step(store, bench->world.now_us + LEAT_STORE_FAVOUR_US);
    assert_int_equal(store->pool.buddy.kept_from, BEST * 512);
    assert_int_equal(leat_held_of(half[BEST][1]->seg)->where, LEAT_HELD_ASKED);
    assert_int_equal(leat_held_of(half[BEST + 1][0]->seg)->where, LEAT_HELD_CACHED);
    for (unsigned j = 0; j < 2; j++)
        leat_held_of(half[OTHER][j]->seg)->pool = &store->pool;
    bench_free(bench);
}

static uint64_t less;
static uint64_t less_bytes(void *owner)
{
    (void)owner;
    return less;
}

/* Goal: where the pool's limit changes a place within the new limit is chosen at once. */
static void waits_place_lies_within_the_limit(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(3, half);
    struct leat_store *store = bench->store;
    to_cached(bench, half[STEP_PLACES][0]); /* the first that lies past it then */
    to_cached(bench, half[STEP_PLACES][1]);
    to_cached(bench, half[2][1]);
    struct mine *large = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    uint64_t now = bench->world.now_us + LEAT_STORE_FAVOUR_US;
    leat_memory_step(store, now);
    assert_int_equal(store->pool.buddy.kept_from, STEP_PLACES * 512);
    store->options.less_bytes = less_bytes;
    less = STEP;
    store->look_us = 0;
    leat_memory_step(store, now + 1);
    assert_int_equal(store->pool.limit_bytes, STEP);
    assert_int_equal(store->pool.buddy.kept_from, 2 * 512);
    assert_ptr_equal(store->favoured, &large->req);
    assert_int_equal(store->favoured_at_us, now + 1);
    store->options.less_bytes = NULL;
    bench_free(bench);
}

/* Goal: nothing is kept for one of a single unit: any will do. */
static void waits_smallest_needs_no_place(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 2; order++) {
        struct mine *half[PLACES][2];
        struct bench *bench = halves_begin(4, half);
        (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384u << order);
        fake_settle(&bench->world);
        leat_memory_step(bench->store, bench->world.now_us + LEAT_STORE_FAVOUR_US);
        assert_int_equal(bench->store->favoured != NULL, order);
        bench_free(bench);
    }
}

/* Goal: the place is for who has waited longest, of whatever size, and stays that one's while the limit is what it
 * was. */
static void waits_longest_gets_the_place(void **state)
{
    (void)state;
    for (unsigned smaller = 0; smaller < 2; smaller++) {
        struct mine *half[PLACES][2];
        struct bench *bench = halves_begin(6 + smaller, half);
        struct leat_store *store = bench->store;
        struct mine *first =
            reserve(bench, LEAT_DURABILITY_MEMORY, 0, smaller ? 32768 : (uint32_t)PLACE);
        fake_settle(&bench->world);
        bench->world.now_us += 1;
        struct mine *second =
            reserve(bench, LEAT_DURABILITY_MEMORY, 0, smaller ? (uint32_t)PLACE : 32768);
        fake_settle(&bench->world);
        uint64_t now = bench->world.now_us + LEAT_STORE_FAVOUR_US;
        leat_memory_step(store, now);
        assert_ptr_equal(store->favoured, &first->req);
        uint32_t from = store->pool.buddy.kept_from, end = store->pool.buddy.kept_end;
        assert_int_equal(end - from, smaller ? 2 : 512);
        store->options.less_bytes = less_bytes;
        less = 0;
        store->look_us = 0;
        leat_memory_step(store, now + 1);
        assert_ptr_equal(store->favoured, &first->req);
        assert_int_equal(store->favoured_at_us, now);
        assert_int_equal(store->pool.buddy.kept_end, end);
        store->options.less_bytes = NULL;
        assert_true(second->busy);
        bench_free(bench);
    }
}

/* Goal: without memory to compare places none is kept, and it is tried again at the next look. */
static void waits_place_is_chosen_later(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(5, half);
    struct leat_store *store = bench->store;
    to_cached(bench, half[6][0]);
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    uint64_t now = bench->world.now_us + LEAT_STORE_FAVOUR_US;
    leat_mem_fail_at(1);
    leat_memory_step(store, now);
    leat_mem_fail_at(0);
    assert_int_equal(store->pool.buddy.kept_end, 0);
    assert_int_equal(leat_held_of(half[6][0]->seg)->where, LEAT_HELD_CACHED);
    leat_memory_step(store, now + LEAT_STORE_FAVOUR_US);
    assert_int_equal(store->pool.buddy.kept_from, 6 * 512);
    assert_int_equal(leat_held_of(half[6][0]->seg)->where, LEAT_HELD_ASKED);
    bench_free(bench);
}

/* ---- who is asked ---- */

/* Goal: the memory by which the pool may still grow is as good as free, unless the system has just refused a step: then
 * the present memory has to do. */
static void waits_refused_step_is_not_free(void **state)
{
    (void)state;
    for (unsigned failed = 0; failed < 2; failed++) {
        struct bench *bench = bench_ready(10 + failed);
        struct leat_store *store = bench->store;
        struct mine *mine[7];
        store->pool.ahead_bytes = 0; /* no step ahead of use */
        for (unsigned i = 0; i < 7; i++)
            mine[i] = open_one(bench, PLACE);
        assert_int_equal(store->pool.added_bytes, STEP);
        store->started = false;
        for (unsigned i = 0; i < 3; i++)
            to_cached(bench, mine[i]);
        store->started = true;
        store->pool.grow_failed = failed;
        store->pool.grown_us = bench->world.now_us;
        leat_memory_step(store, bench->world.now_us);
        /* A place is free, and two are to be. */
        assert_int_equal(store->asked_bytes, failed * (uint64_t)PLACE);
        bench_free(bench);
    }
}

/* Goal: an eighth of the pool is kept free, to the unit. */
static void waits_an_eighth_is_kept_free(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct bench *bench = bench_ready(16 + more);
        struct leat_store *store = bench->store;
        struct mine *first = open_one(bench, 16384);
        for (unsigned i = 1; i < PLACES - 2; i++)
            (void)open_one(bench, PLACE);
        for (uint32_t bytes = 16384; bytes < PLACE;
             bytes *= 2) /* beside the first: all of a place */
            (void)open_one(bench, bytes);
        assert_int_equal(leat_pool_used(&store->pool), MEMORY - 2 * PLACE);
        to_cached(bench, first);
        if (more) (void)open_one(bench, 16384);
        store->asked_bytes = 0;
        leat_memory_step(store, bench->world.now_us);
        assert_int_equal(leat_held_of(first->seg)->where,
                         more ? LEAT_HELD_ASKED : LEAT_HELD_CACHED);
        bench_free(bench);
    }
}

/* Goal: for a request that waits while enough memory is free, but in pieces, one owner at a time is asked for
 * memory. */
static void waits_for_what_is_free_in_pieces(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(28, half);
    struct leat_store *store = bench->store;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(do_now(bench, half[i][0], LEAT_STORE_DROP), LEAT_OK);
    for (unsigned i = 10; i < 13; i++)
        to_cached(bench, half[i][0]);
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    store->started = true;
    leat_memory_step(store, bench->world.now_us);
    assert_int_equal(store->asked_bytes, HALF);
    assert_int_equal(leat_held_of(half[10][0]->seg)->where, LEAT_HELD_ASKED); /* the oldest */
    leat_memory_step(store, bench->world.now_us);
    assert_int_equal(store->asked_bytes, HALF);
    bench_free(bench);
}

/* Goal: nobody is asked for one who waits while the pool can grow: that is in one piece. */
static void waits_for_growth_ask_nobody(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        struct bench *bench = bench_ready(12 + full);
        struct leat_store *store = bench->store;
        store->pool.ahead_bytes = 0;
        struct mine *mine[8];
        for (unsigned i = 0; i < 8; i++)
            mine[i] = open_one(bench, PLACE);
        assert_int_equal(store->pool.added_bytes, STEP);
        store->started = false;
        to_cached(bench, mine[0]);
        to_cached(bench, mine[1]);
        store->started = true;
        store->pool.growing = true; /* it comes, some time */
        if (full) store->pool.limit_bytes = STEP;
        struct mine *waits = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        assert_true(waits->busy);
        assert_int_equal(store->asked_bytes != 0, full);
        store->pool.limit_bytes = MEMORY;
        bench_free(bench);
    }
}

/* Goal: past a lowered limit all that is flushed is asked for, and by that nothing before it. */
static void waits_what_lies_past_the_limit_is_asked_for(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(15, half);
    struct leat_store *store = bench->store;
    enum { FIRST_PAST = STEP_PLACES };
    static const unsigned at[] = {0, 5, FIRST_PAST - 1, FIRST_PAST, 12, PLACES - 1};
    for (unsigned i = 0; i < 6; i++)
        for (unsigned j = 0; j < 2; j++)
            to_cached(bench, half[at[i]][j]);
    for (unsigned i = 0; i < STEP_PLACES; i++) /* room below: by that nobody is asked */
        if (i != 0 && i != 5 && i != FIRST_PAST - 1)
            for (unsigned j = 0; j < 2; j++)
                assert_int_equal(do_now(bench, half[i][j], LEAT_STORE_DROP), LEAT_OK);
    for (unsigned i = FIRST_PAST; i < PLACES; i++)
        if (i != FIRST_PAST && i != 12 && i != PLACES - 1)
            for (unsigned j = 0; j < 2; j++)
                assert_int_equal(do_now(bench, half[i][j], LEAT_STORE_DROP), LEAT_OK);
    store->options.less_bytes = less_bytes;
    less = STEP;
    store->look_us = 0;
    store->started = true;
    leat_memory_step(store, bench->world.now_us);
    assert_int_equal(store->pool.limit_bytes, STEP);
    for (unsigned i = 0; i < 6; i++)
        for (unsigned j = 0; j < 2; j++)
            assert_int_equal(leat_held_of(half[at[i]][j]->seg)->where,
                             at[i] < FIRST_PAST ? LEAT_HELD_CACHED : LEAT_HELD_ASKED);
    store->options.less_bytes = NULL;
    bench_free(bench);
}

/* Goal: a waiting request is looked at soon, also where the next look at the limit comes later. */
static void waits_are_looked_at_before_the_limit_is(void **state)
{
    (void)state;
    struct mine *half[PLACES][2];
    struct bench *bench = halves_begin(14, half);
    struct leat_store *store = bench->store;
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    uint64_t now = bench->world.now_us, soon = now + LEAT_STORE_GROW_PATIENCE_US;
    store->options.less_bytes = less_bytes;
    static const int64_t looks[] = {-1, 0, 1};
    for (unsigned i = 0; i < 3; i++) {
        store->look_us = soon + (uint64_t)looks[i];
        assert_int_equal(leat_memory_next_us(store), soon - (i == 0));
    }
    store->options.less_bytes = NULL;
    bench_free(bench);
}

/* Goal: cached memory and memory that owners are asked for both count as free when flushes are paced. */
static void waits_flush_counts_what_is_asked_for(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(18);
    struct leat_store *store = bench->store;
    for (unsigned i = 0; i < PLACES / 2 + 3; i++)
        (void)open_one(bench, PLACE);
    static const struct {
        unsigned cached, asked;
        bool pressed;
    } rows[] = {{0, 0, true}, {3, 0, false}, {0, 3, false}, {1, 2, false}, {1, 1, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store->cached_bytes = rows[i].cached * (uint64_t)PLACE;
        store->asked_bytes = rows[i].asked * (uint64_t)PLACE;
        assert_int_equal(leat_flush_pressed(store), rows[i].pressed);
    }
    store->cached_bytes = store->asked_bytes = 0;
    bench_free(bench);
}

/* Goal: a step under way counts as present, whether it is being added or given back. */
static void waits_step_under_way_is_told(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(19);
    struct leat_store_usage usage;
    (void)open_one(bench, PLACE);
    for (unsigned growing = 0; growing < 2; growing++) {
        bench->store->pool.growing = growing;
        leat_store_actor.on_turn_end(bench->store);
        leat_store_usage(bench->store, &usage);
        assert_int_equal(usage.memory_grown, (1 + growing) * STEP);
    }
    bench_free(bench);
}

/* ---- when the pool grows ---- */

/* Goal: a pool that would rather recycle grows after a request has waited for 20 ms, however small the request is, and
 * not before. */
static void waits_long_make_the_pool_grow(void **state)
{
    (void)state;
    enum { STEPS = 8, THERE = 6 };
    for (unsigned order = 0; order < LEAT_BUDDY_ORDERS; order += LEAT_BUDDY_ORDERS - 1) {
        struct fake_world *world = calloc(1, sizeof *world);
        struct leat_store *store;
        struct leat_store_options options = options_of();
        fake_world_init(world, 20 + order, STEPS * STEP);
        world->arena.grown_bytes = THERE * STEP;
        options.memory_bytes = STEPS * STEP;
        assert_int_equal(leat_store_open(&world->env, &options, &store, NULL), LEAT_OK);
        leat_store_found_done(store);
        uint32_t unit;
        for (unsigned i = 0; i < THERE * STEP / PLACE; i++)
            assert_true(leat_buddy_take(&store->pool.buddy, LEAT_BUDDY_ORDERS - 1, &unit));
        uint64_t now = 50000000;
        store->cached_bytes = store->asked_bytes = STEP / 2; /* together a step */
        store->pool.grown_us = now - 1000000;
        store->pool.used_once = true;
        struct leat_segment seg = {.capacity = 16384u << order};
        struct leat_store_req req = {.seg = &seg,
                                     .asked_us = now - LEAT_STORE_GROW_PATIENCE_US + 1};
        leat_list_push_back(&store->memory_waits[order], &req.waiting);
        store->memory_wait_count = 1;
        leat_memory_step(store, now);
        assert_false(store->pool.growing);
        leat_memory_step(store, now + 1);
        assert_true(store->pool.growing);
        store->cached_bytes = store->asked_bytes = 0;
        leat_store_close(&store);
        fake_world_fini(world);
        free(world);
    }
}

/* ---- arenas ---- */

/* Goal: an arena is over when nothing lies there and nothing is under way there: its memory goes then. */
static void waits_arena_is_over_when_its_growth_has_ended(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct side side;
    side_init(&side, bench, 3);
    side_add(&side);
    struct leat_pool *pool = &side.add.added->pool;
    pool->growing = true;
    side_retire(&side);
    assert_false(side.retired);
    assert_int_equal(bench->store->arena_count, 1);
    pool->growing = false;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    assert_true(side.retired);
    assert_int_equal(bench->store->arena_count, 0);
    side_fini(&side);
}

/* Goal: a request that waits for an arena's memory makes the arena grow at once, however recently the arena last
 * grew. */
static void waits_make_an_arena_grow_at_once(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(32);
    struct side side;
    side_init(&side, bench, 3);
    side_add(&side);
    struct leat_pool *pool = &side.add.added->pool;
    for (unsigned i = 0; i < STEP_PLACES + 1; i++) {
        struct mine *mine = &bench->mine[bench->count++];
        *mine = (struct mine){.log = {5, 0, 0}, .id = {i}, .epoch = {3}, .durability = 1};
        mine->req.capacity = PLACE;
        pool->grown_us = i < STEP_PLACES ? 0 : bench->world.now_us;
        if (i == STEP_PLACES) pool->limit_bytes = pool->full_bytes = 2 * STEP;
        /* The last asks for a step, which is refused. */
        assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESERVE, 1, false),
                         i < STEP_PLACES ? LEAT_OK : LEAT_E_NO_MEMORY);
    }
    assert_true(pool->grow_failed);
    side_fini(&side);
}

/* Goal: an arena of the process before, in which nothing lies, is let go when owners have taken what was found, and not
 * before: what a start reads lies there. */
static void waits_arena_of_before_until_all_is_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(31);
    struct side side;
    side_init(&side, bench, 3);
    side_add(&side);
    struct mine *mine = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    reopen_with(bench, &side);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(bench->store->arena_count, 1);
    leat_store_found_done(bench->store);
    leat_store_actor.on_turn_end(bench->store);
    assert_int_equal(bench->store->arena_count, 0);
    side_fini(&side);
}

/* ---- pins ---- */

static unsigned sent;
static void on_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(mail, &((struct leat_segment *)ctx)->unpinned);
    assert_int_equal(to, 6);
    sent++;
}

/* Goal: the last of those who pin what is wanted back says so, once, and nothing is pinned or wanted then. */
static void waits_for_the_last_pin(void **state)
{
    (void)state;
    uint8_t bytes[1];
    struct leat_segment seg = {.buffer = bytes, .owner_actor = 6};
    const struct leat_post post = {.ctx = &seg, .send = on_send};
    assert_true(leat_segment_want_back(&seg));
    assert_false(leat_segment_is_wanted_back(&seg));
    for (unsigned i = 0; i < 2; i++) {
        sent = 0;
        leat_segment_pin(&seg);
        leat_segment_pin(&seg);
        assert_false(leat_segment_want_back(&seg));
        assert_false(leat_segment_want_back(&seg)); /* still */
        assert_true(leat_segment_is_wanted_back(&seg));
        leat_segment_unpin(&seg, &post);
        assert_int_equal(sent, 0);
        leat_segment_unpin(&seg, &post);
        assert_int_equal(sent, 1);
        assert_int_equal(atomic_load(&seg.pins), 0);
        assert_true(leat_segment_want_back(&seg));
    }
    leat_segment_pin(&seg);
    leat_segment_unpin(&seg, &post); /* of what nobody wants */
    assert_int_equal(sent, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_first_place_may_be_the_best),
        cmocka_unit_test(waits_place_has_its_own_segments),
        cmocka_unit_test(waits_place_lies_within_the_limit),
        cmocka_unit_test(waits_smallest_needs_no_place),
        cmocka_unit_test(waits_place_is_chosen_later),
        cmocka_unit_test(waits_longest_gets_the_place),
        cmocka_unit_test(waits_refused_step_is_not_free),
        cmocka_unit_test(waits_an_eighth_is_kept_free),
        cmocka_unit_test(waits_for_what_is_free_in_pieces),
        cmocka_unit_test(waits_for_growth_ask_nobody),
        cmocka_unit_test(waits_what_lies_past_the_limit_is_asked_for),
        cmocka_unit_test(waits_are_looked_at_before_the_limit_is),
        cmocka_unit_test(waits_flush_counts_what_is_asked_for),
        cmocka_unit_test(waits_step_under_way_is_told),
        cmocka_unit_test(waits_long_make_the_pool_grow),
        cmocka_unit_test(waits_arena_is_over_when_its_growth_has_ended),
        cmocka_unit_test(waits_arena_of_before_until_all_is_taken),
        cmocka_unit_test(waits_make_an_arena_grow_at_once),
        cmocka_unit_test(waits_for_the_last_pin),
    };
    return cmocka_run_group_tests_name("store waits", tests, NULL, NULL);
}
