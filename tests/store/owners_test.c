/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between the store and its owners besides requests: messages about segments, arenas that are added and
 * retired, and the reports on these. */
#include "tests/pages.h"
#include "tests/store/store_bench.h"

enum { MIB = 1024 * 1024 };

/* ---- mail to the owner ---- */
static char told[64];
static void tell(char what)
{
    size_t used = strlen(told);
    assert_true(used + 1 < sizeof told);
    told[used] = what;
    told[used + 1] = 0;
}
static void tell_flushed(void *core, struct leat_segment *seg)
{
    (void)seg;
    assert_ptr_equal(core, the_bench);
    tell('f');
}
static void tell_evict(void *core, struct leat_segment *seg)
{
    (void)core;
    (void)seg;
    tell('e');
}
static void tell_damaged(void *core, struct leat_segment *seg)
{
    (void)core;
    (void)seg;
    tell('d');
}

static struct bench *begin(uint64_t seed)
{
    struct bench *bench = bench_ready(seed);
    bench->store->options.events = (struct leat_store_events){
        .on_flushed = tell_flushed, .on_evict_wanted = tell_evict, .on_damaged = tell_damaged};
    told[0] = 0;
    return bench;
}

/* Goal: an owner learns of all events that it wanted, by one message at a time; events during one message follow in the
 * next. */
static void owners_are_told_by_one_mail_at_a_time(void **state)
{
    (void)state;
    struct bench *bench = begin(1);
    struct leat_store *store = bench->store;
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    struct leat_held *held = leat_held_of(mine->seg);
    unsigned mails = bench->world.event_count;
    leat_held_tell(store, held, LEAT_HELD_EVENT_FLUSHED);
    assert_int_equal(bench->world.event_count, mails + 1);
    assert_true(atomic_load(&held->event_busy));
    leat_held_tell(store, held, LEAT_HELD_EVENT_EVICT);
    leat_held_tell(store, held, LEAT_HELD_EVENT_DAMAGED);
    assert_int_equal(bench->world.event_count, mails + 1);
    assert_true(leat_held_events_step(store)); /* they still wait */
    assert_int_equal(bench->world.event_count, mails + 1);
    leat_store_actor.on_turn_end(store);
    assert_int_equal(bench->world.wake_at_us, bench->world.now_us + 2000); /* it looks again */
    assert_true(fake_event_step(&bench->world));
    assert_string_equal(told, "f");
    assert_false(atomic_load(&held->event_busy));
    assert_false(leat_held_events_step(store));
    assert_int_equal(bench->world.event_count, mails + 1);
    assert_true(leat_list_empty(&store->event_waits));
    assert_false(leat_held_events_step(store)); /* and it is sent once */
    assert_int_equal(bench->world.event_count, mails + 1);
    fake_settle(&bench->world);
    assert_string_equal(told, "fed");
    /* One that waits goes with the next that is wanted. */
    told[0] = 0;
    leat_held_tell(store, held, LEAT_HELD_EVENT_EVICT);
    leat_held_tell(store, held, LEAT_HELD_EVENT_FLUSHED);
    assert_true(fake_event_step(&bench->world));
    leat_held_tell(store, held, LEAT_HELD_EVENT_DAMAGED);
    assert_true(leat_list_empty(&store->event_waits));
    fake_settle(&bench->world);
    assert_string_equal(told, "efd");
    bench_free(bench);
}

/* Goal: for a segment without an owner since the start, the store itself records what the owner would record. */
static void owners_that_are_not_there_are_stood_in_for(void **state)
{
    (void)state;
    struct bench *bench = begin(2);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    struct leat_held *held = leat_held_of(mine->seg);
    for (unsigned events = 1; events < 8; events++) {
        mine->seg->owner_actor = LEAT_CORES_MAX;
        mine->seg->flushed = false, mine->seg->integrity = LEAT_INTEGRITY_OK;
        leat_held_tell(bench->store, held, events);
        assert_int_equal(mine->seg->flushed, events & LEAT_HELD_EVENT_FLUSHED);
        assert_int_equal(leat_segment_is_damaged(mine->seg),
                         (events & LEAT_HELD_EVENT_DAMAGED) != 0);
        assert_int_equal(bench->world.event_count, 0);
        assert_int_equal(held->events_wanted, 0);
    }
    mine->seg->owner_actor = LEAT_CORES_MAX - 1; /* a core */
    leat_held_tell(bench->store, held, LEAT_HELD_EVENT_EVICT);
    assert_int_equal(bench->world.event_count, 1);
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: a descriptor whose mail is under way is another segment's only when that has come; what was to follow does
 * not. */
static void owners_mail_outlives_the_segment(void **state)
{
    (void)state;
    struct bench *bench = begin(3);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    struct leat_held *held = leat_held_of(mine->seg);
    assert_ptr_equal(bench->store->held_free.next == &held->seg.by_store, false);
    struct fake_event event = {0};
    leat_held_tell(bench->store, held, LEAT_HELD_EVENT_FLUSHED);
    event = bench->world.events[bench->world.event_first];
    assert_true(fake_is_busy(&bench->world));
    bench->world.event_first = (bench->world.event_first + 1) % FAKE_EVENTS_MAX; /* it comes last */
    bench->world.event_count--;
    leat_held_tell(bench->store, held, LEAT_HELD_EVENT_EVICT);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    assert_false(leat_list_empty(&bench->store->zombies));
    assert_true(leat_list_empty(&bench->store->event_waits));
    struct mine *next = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_ptr_not_equal(leat_held_of(next->seg), held);
    event.mail->deliver(bench, event.mail);
    assert_string_equal(told, "f");
    leat_store_actor.on_turn_end(bench->store);
    assert_true(leat_list_empty(&bench->store->zombies));
    next = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_ptr_equal(leat_held_of(next->seg), held); /* the last that came free is the first */
    fake_settle(&bench->world);
    assert_string_equal(told, "f");
    bench_free(bench);
}

/* ---- arenas ---- */
struct side {
    struct leat_arena arena;
    struct leat_arena_grow *grow;
    struct leat_store_arena_op op, over;
    unsigned answered;
    leat_err rc;
};
static void on_grow(void *ctx, struct leat_arena_grow *grow)
{
    struct side *side = ctx;
    assert_null(side->grow);
    side->grow = grow;
}
static void grown(struct bench *bench, struct side *side, leat_err rc)
{
    struct leat_arena_grow *grow = side->grow;
    assert_non_null(grow);
    side->grow = NULL;
    if (!rc) side->arena.grown_bytes += LEAT_ARENA_STEP_BYTES;
    grow->rc = rc;
    grow->on_grown(grow);
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
}
static void on_op(struct leat_store_arena_op *op)
{
    struct side *side = op->owner;
    side->answered++;
    side->rc = op->rc;
}
static leat_err side_add(struct bench *bench, struct side *side, uint64_t limit)
{
    static uint8_t name;
    *side = (struct side){.arena = {.ctx = side,
                                    .base = pages_get(4ull * LEAT_ARENA_STEP_BYTES),
                                    .limit_bytes = 4ull * LEAT_ARENA_STEP_BYTES,
                                    .grow = on_grow}};
    memset(side->arena.pool_id, ++name, sizeof side->arena.pool_id);
    side->op = (struct leat_store_arena_op){
        .arena = &side->arena, .limit_bytes = limit, .on_done = on_op, .owner = side};
    leat_store_arena_add(bench->store, &bench->world.core_post, &side->op);
    fake_settle(&bench->world);
    assert_int_equal(side->answered, 1);
    return side->rc;
}
static void side_over(struct bench *bench, struct side *side)
{
    side->answered = 0;
    side->over =
        (struct leat_store_arena_op){.added = side->op.added, .on_done = on_op, .owner = side};
    leat_store_arena_retire(bench->store, &bench->world.core_post, &side->over);
    fake_settle(&bench->world);
}
static void side_end(struct side *side)
{
    pages_put(side->arena.base, 4ull * LEAT_ARENA_STEP_BYTES);
}
static struct mine *replica(struct bench *bench, struct side *side, uint32_t capacity)
{
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {5, 0, 0}, .id = {bench->count}, .epoch = {3}, .busy = true};
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_RESERVE,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .capacity = capacity,
                                        .arena = side->op.added,
                                        .role = LEAT_SEGMENT_REPLICA,
                                        .writer = 77,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
    fake_settle(&bench->world);
    return mine;
}

/* Goal: an arena that can't be is refused by why. */
static void owners_arena_that_can_not_be_is_refused(void **state)
{
    (void)state;
    struct bench *bench = begin(4);
    struct side side;
    assert_int_equal(side_add(bench, &side, LEAT_ARENA_STEP_BYTES - 1), LEAT_E_CONFIG);
    side_end(&side);
    leat_mem_fail_at(1);
    assert_int_equal(side_add(bench, &side, LEAT_ARENA_STEP_BYTES), LEAT_E_NO_MEMORY);
    side_end(&side);
    leat_mem_fail_at(2);
    assert_int_equal(side_add(bench, &side, LEAT_ARENA_STEP_BYTES), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    side_end(&side);
    assert_int_equal(bench->store->arena_count, 0);
    bench->store->arena_count = LEAT_STORE_ARENAS_MAX;
    bench->world.poked = true;
    assert_int_equal(side_add(bench, &side, LEAT_ARENA_STEP_BYTES), LEAT_E_TOO_MANY);
    bench->store->arena_count = 0;
    side_end(&side);
    bench_free(bench);
}

/* Goal: a request for an arena's memory waits while the arena grows, 10 s at most, and is refused at once where the
 * arena can't grow. A retired arena gives no memory, and is freed when its last buffer has come back. The usage counts
 * the arena's memory. */
static void owners_arena_lets_wait_only_while_it_grows(void **state)
{
    (void)state;
    struct bench *bench = begin(5);
    struct leat_store_usage usage;
    struct side side;
    assert_int_equal(side_add(bench, &side, 2ull * LEAT_ARENA_STEP_BYTES), LEAT_OK);
    assert_int_equal(bench->store->arena_count, 1);
    struct mine *first = replica(bench, &side, 8 * MIB);
    assert_true(first->busy); /* it grows, from nothing */
    grown(bench, &side, LEAT_OK);
    assert_int_equal(first->rc, LEAT_OK);
    assert_ptr_equal(first->seg->buffer, side.arena.base);
    struct mine *mine[8];
    for (unsigned i = 1; i < 8; i++)
        mine[i] = replica(bench, &side, 8 * MIB);
    assert_int_equal(mine[7]->rc, LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.arenas_limit, 2ull * LEAT_ARENA_STEP_BYTES);
    assert_int_equal(usage.arenas_used, 8 * 8 * MIB);
    assert_int_equal(usage.arenas_grown, LEAT_ARENA_STEP_BYTES);
    assert_int_equal(usage.arenas_dirty, 0);
    struct mine *waits = replica(bench, &side, 16384);
    assert_true(waits->busy); /* it grows, or will */
    uint64_t asked = bench->world.now_us;
    fake_pass(&bench->world, 9999999);
    assert_true(waits->busy);
    bench->world.now_us = asked + 10000000;
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    assert_false(waits->busy);
    assert_int_equal(waits->rc, LEAT_E_NO_MEMORY);
    assert_null(waits->req.seg);
    grown(bench, &side, LEAT_E_NO_MEMORY); /* that was long ago: it is asked for again */
    grown(bench, &side, LEAT_E_NO_MEMORY);
    assert_null(side.grow);
    waits = replica(bench, &side, 16384);
    assert_int_equal(waits->rc, LEAT_E_NO_MEMORY); /* at once: it can't grow now */
    /* One of them is closed: not in a file yet, then in one, and given back. */
    first->prefix_id_count = 1;
    first->prefix_ids[0] = (struct leat_prefix_id){5000, 9};
    assert_int_equal(do_now(bench, first, LEAT_STORE_CLOSE), LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_true(usage.arenas_dirty == 8 * MIB || first->seg->flushed ||
                leat_held_of(first->seg)->where == LEAT_HELD_KEPT);
    fake_pass(&bench->world, 100000);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.arenas_dirty, 0);
    assert_int_equal(leat_held_of(first->seg)->where, LEAT_HELD_KEPT);
    assert_int_equal(side.op.added->pool.leaving_bytes, 8 * MIB);
    assert_int_equal(do_now(bench, first, LEAT_STORE_EVICT), LEAT_OK);
    assert_int_equal(side.op.added->pool.leaving_bytes, 0);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.arenas_used, 7 * 8 * MIB);
    side_over(bench, &side);
    assert_int_equal(side.answered, 0);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.arenas_limit, 0); /* nothing of it is given out again */
    assert_int_equal(usage.arenas_grown, LEAT_ARENA_STEP_BYTES);
    waits = replica(bench, &side, 16384);
    assert_int_equal(waits->rc, LEAT_E_NO_MEMORY);
    for (unsigned i = 1; i < 8; i++) {
        assert_int_equal(side.answered, 0);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_DROP), LEAT_OK);
    }
    assert_int_equal(side.answered, 1);
    assert_int_equal(side.rc, LEAT_OK);
    assert_int_equal(bench->store->arena_count, 0);
    side_end(&side);
    bench_free(bench);
}

/* Goal: an arena is under pressure when more than half of its permitted memory is used, and is short from three
 * quarters on: of its limit, or of the memory that it has where it is refused more. Bytes that are being flushed do not
 * count, nor do retired arenas. */
static void owners_arenas_press_by_their_use(void **state)
{
    (void)state;
    struct bench *bench = begin(6);
    struct side side;
    assert_int_equal(side_add(bench, &side, LEAT_ARENA_STEP_BYTES), LEAT_OK);
    (void)replica(bench, &side, 16384);
    grown(bench, &side, LEAT_OK);
    struct leat_pool *pool = &side.op.added->pool;
    static const struct {
        uint32_t units; /* used, of 4,096 of 16 KiB */
        uint64_t leaving;
        unsigned steps; /* limit */
        bool failed, retired, pressed, is_short;
    } rows[] = {
        {2048, 0, 1, false, false, false, false},    {2049, 0, 1, false, false, true, false},
        {3072, 0, 1, false, false, true, false},     {3073, 0, 1, false, false, true, true},
        {3073, 16384, 1, false, false, true, false}, {2049, 16384, 1, false, false, false, false},
        {3073, 0, 1, false, true, false, false},     {3073, 0, 2, false, false, false, false},
        {3073, 0, 2, true, false, true, true},       {4096, 0, 2, false, false, false, false}};
    uint32_t free_units = pool->buddy.free_units;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool->buddy.free_units = 4096 - rows[i].units;
        pool->leaving_bytes = rows[i].leaving;
        pool->limit_bytes = rows[i].steps * (uint64_t)LEAT_ARENA_STEP_BYTES;
        pool->grow_failed = rows[i].failed;
        pool->retired = rows[i].retired;
        assert_int_equal(leat_arenas_pressed(bench->store), rows[i].pressed);
        assert_int_equal(leat_arenas_short(bench->store), rows[i].is_short);
    }
    pool->buddy.free_units = free_units;
    pool->leaving_bytes = 0;
    pool->limit_bytes = LEAT_ARENA_STEP_BYTES;
    bench_free(bench);
    side_end(&side);
}

/* ---- making a store ---- */

/* Goal: a store that can't be made is refused, whichever operation fails, and the next start makes it. */
static void owners_store_that_can_not_be_made_is_made_later(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t n = 1;; n++) {
        struct bench *bench = bench_new(n);
        struct leat_error error = {0};
        bench->world.fail_at = n;
        leat_err rc = bench_open(bench, &error);
        bool failed = bench->world.op_count >= n;
        assert_int_equal(rc, failed ? LEAT_E_DISK : LEAT_OK);
        if (!failed) {
            bench_free(bench);
            break;
        }
        refused++;
        assert_true(error.text[0] != 0);
        assert_null(bench->store);
        bench->world.fail_at = 0;
        fake_power_cut(&bench->world);
        assert_int_equal(bench_open(bench, NULL), LEAT_OK);
        bench_free(bench);
    }
    assert_true(refused >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_are_told_by_one_mail_at_a_time),
        cmocka_unit_test(owners_that_are_not_there_are_stood_in_for),
        cmocka_unit_test(owners_mail_outlives_the_segment),
        cmocka_unit_test(owners_arena_that_can_not_be_is_refused),
        cmocka_unit_test(owners_arena_lets_wait_only_while_it_grows),
        cmocka_unit_test(owners_arenas_press_by_their_use),
        cmocka_unit_test(owners_store_that_can_not_be_made_is_made_later),
    };
    return cmocka_run_group_tests_name("store owners", tests, NULL, NULL);
}
