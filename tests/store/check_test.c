/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on the store between two turns: each rule is broken once. */
#include "side.h"

#include "tests/broken.h"

enum { DELAY_US = 50000 }; /* as store_bench.h has it */

static struct bench *bench;
static struct leat_store *it;
static struct leat_held *cached, *dirty, *flushing;

static struct leat_held *closed(void)
{
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_true(write_some(mine, 3));
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    return leat_held_of(mine->seg);
}

/* Three closed segments: `cached` is in its file and in memory, `flushing` is being written to its file, `dirty` waits
 * for that write. */
static void begin(void)
{
    bench = bench_ready(1);
    it = bench->store;
    cached = closed();
    fake_pass(&bench->world, DELAY_US);
    assert_int_equal(cached->where, LEAT_HELD_CACHED);
    flushing = closed();
    bench->world.now_us += DELAY_US / 2;
    dirty = closed();
    bench->world.now_us = flushing->closed_us + DELAY_US;
    bench->world.turn = true;
    leat_store_actor.on_turn_end(it);
    assert_int_equal(flushing->where, LEAT_HELD_FLUSHING);
    assert_int_equal(dirty->where, LEAT_HELD_DIRTY);
    assert_int_equal(it->flush_in_flight, 1);
}

/* The store is sound; then something of it is changed, and afterwards is as it was. */
#define BROKEN(rule, what, value)                                                                  \
    do {                                                                                           \
        __typeof__(what) was = what;                                                               \
        assert_broken(NULL, leat_store_check(it));                                                 \
        what = value;                                                                              \
        assert_broken(rule, leat_store_check(it));                                                 \
        what = was;                                                                                \
    } while (0)

static void buffers_are_where_their_list_says(void **state)
{
    (void)state;
    begin();
    BROKEN("held->where == where", cached->where, LEAT_HELD_KEPT);
    BROKEN("held->where == where", dirty->where, LEAT_HELD_CACHED);
    BROKEN("where == LEAT_HELD_STUCK || (held->seg.buffer != NULL && held->pool != NULL)",
           cached->seg.buffer, NULL);
    BROKEN("where == LEAT_HELD_STUCK || (held->seg.buffer != NULL && held->pool != NULL)",
           dirty->pool, NULL);
    BROKEN("held_check(&store->cached, LEAT_HELD_CACHED) == store->cached_bytes", it->cached_bytes,
           was + 1);
    BROKEN("held_check(&store->asked, LEAT_HELD_ASKED) == store->asked_bytes", it->asked_bytes, 1);
    bench_free(bench);
}

static void flushes_are_counted(void **state)
{
    (void)state;
    begin();
    BROKEN("written == store->flush_written", it->flush_written, was + 1);
    BROKEN("writing == store->flush_in_flight", it->flush_in_flight, was + 1);
    BROKEN("held->where == LEAT_HELD_FLUSHING", flushing->where, LEAT_HELD_NOWHERE);
    BROKEN("held->flush_ios > 0", flushing->flush_ios, 0);
    BROKEN("store->flushing == NULL || store->flushing->where == LEAT_HELD_FLUSHING", it->flushing,
           cached);
    BROKEN("store->flush_pending <= written + syncing + rows + writing + (store->flushing != NULL)",
           it->flush_pending, was + 1);
    for (unsigned lane = 0; lane < LEAT_STORE_LANES; lane++) {
        it->flush_pending--;
        leat_list_push_back(&flushing->slot.file->rounds[lane].flush_syncs,
                            &flushing->seg.by_store);
        assert_broken("written + syncing + rows <= store->flush_pending", leat_store_check(it));
        leat_list_remove(&flushing->seg.by_store);
        it->flush_pending++;
    }
    bench_free(bench);
}

static void memory_is_counted(void **state)
{
    (void)state;
    begin();
    BROKEN("count == store->memory_wait_count", it->memory_wait_count, 1);
    BROKEN("bytes == store->memory_wait_bytes", it->memory_wait_bytes, 1);
    BROKEN("free_bytes <= pool->added_bytes", it->pool.added_bytes, 0);
    BROKEN("pool->limit_bytes <= pool->full_bytes", it->pool.full_bytes, 0);
    BROKEN("pool->leaving_bytes <= pool->added_bytes", it->pool.leaving_bytes, UINT64_MAX);
    BROKEN("count_of(&store->arenas) == store->arena_count", it->arena_count, 1);
    struct leat_store_req req = {.seg = &dirty->seg};
    unsigned order = leat_buddy_order(dirty->seg.capacity, LEAT_SLOT_UNIT_BYTES);
    it->memory_wait_count++;
    it->memory_wait_bytes += dirty->seg.capacity;
    leat_list_push_back(&it->memory_waits[order + 1], &req.waiting);
    assert_broken("leat_buddy_order(req->seg->capacity, LEAT_SLOT_UNIT_BYTES) == order",
                  leat_store_check(it));
    leat_list_remove(&req.waiting);
    leat_list_push_back(&it->memory_waits[order], &req.waiting);
    assert_broken("req->seg->buffer == NULL || leat_held_in_arena(leat_held_of(req->seg))",
                  leat_store_check(it));
    leat_list_remove(&req.waiting);
    it->memory_wait_count--;
    it->memory_wait_bytes -= dirty->seg.capacity;
    bench_free(bench);
}

static void arenas_are_counted(void **state)
{
    (void)state;
    struct side side;
    begin();
    side_init(&side, bench, 1);
    side_add(&side);
    BROKEN("pool->limit_bytes <= pool->full_bytes", side.add.added->pool.full_bytes, 0);
    side_fini(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_where_their_list_says),
        cmocka_unit_test(flushes_are_counted),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(arenas_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
