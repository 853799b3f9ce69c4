/* SPDX-License-Identifier: Apache-2.0 */
/* When the store looks again by itself: for a scrub without memory, and for owners that are still busy with an earlier
 * message. */
#include "tests/store/trace.h"

enum { DELAY_US = 50000, RATE = 1000000 };

static struct mine *flushed(struct bench *bench)
{
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_true(write_some(mine, 10));
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 2 * DELAY_US);
    assert_true(mine->seg->flushed);
    return mine;
}

/* Goal: a scrub for which there is no memory asks nothing of the disk, and goes on where there is. */
static void scrub_without_memory_waits_for_it(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(31));
    struct leat_store *store = bench->store;
    (void)flushed(bench);
    leat_mem_free(store->scratch_raw);
    store->scratch = store->scratch_raw = NULL;
    store->options.scrub_bytes_per_second = RATE;
    store->scrub_at_us = 0;
    op_count = 0;
    leat_mem_fail_at(1);
    leat_scrub_step(store, bench->world.now_us);
    leat_mem_fail_at(0);
    assert_int_equal(op_count, 0);
    assert_false(store->scrub_reading);
    leat_scrub_step(store, bench->world.now_us);
    assert_int_equal(op_count, 1);
    assert_true(store->scrub_reading);
    fake_settle(&bench->world);
    assert_int_equal(store->complaint_count, 0);
    bench_free(bench);
}

/* Goal: the scrub comes to each segment in turn, and leaves out none. */
static void scrub_comes_to_each_segment(void **state)
{
    (void)state;
    enum { SEGMENTS = 3 };
    struct bench *bench = bench_ready(34);
    struct leat_store *store = bench->store;
    struct mine *mine[SEGMENTS];
    unsigned seen[SEGMENTS] = {0};
    for (unsigned i = 0; i < SEGMENTS; i++)
        mine[i] = flushed(bench);
    for (unsigned turn = 0; turn < 2 * SEGMENTS; turn++) {
        store->options.scrub_bytes_per_second = RATE;
        store->scrub_at_us = 0;
        leat_scrub_step(store, bench->world.now_us);
        for (unsigned i = 0; i < SEGMENTS; i++)
            seen[i] += store->scrubbing == leat_held_of(mine[i]->seg);
        store->options.scrub_bytes_per_second = 0; /* no other one meanwhile */
        fake_settle(&bench->world);
    }
    for (unsigned i = 0; i < SEGMENTS; i++)
        assert_int_equal(seen[i], 2);
    bench_free(bench);
}

static void on_line(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)level;
    *(unsigned *)ctx += strstr(line, "segments are missing or damaged") != NULL;
}

/* Goal: what is not logged of many damaged segments is summed up, in words that say of what. */
static void many_complaints_are_summed_up(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(35);
    unsigned told = 0;
    leat_node_log_set(on_line, &told, LEAT_NODE_LOG_INFO);
    for (unsigned i = 0; i < 1000; i++)
        leat_store_complain_of(bench->store, "segment %u is damaged", i);
    leat_node_log_sum_tell(&bench->store->segments_sum,
                           bench->world.now_us + 2 * (uint64_t)LEAT_NODE_LOG_SUM_US);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    assert_int_equal(told, 1);
    bench_free(bench);
}

/* Goal: in a store without a row there is nothing to look at: it looks again a second later. */
static void scrub_of_an_empty_store_waits(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(33));
    struct leat_store *store = bench->store;
    assert_int_equal(store->cat.chunk_count, 0);
    store->options.scrub_bytes_per_second = RATE;
    store->scrub_at_us = 0;
    leat_scrub_step(store, bench->world.now_us);
    assert_int_equal(op_count, 0);
    assert_int_equal(store->scrub_at_us, bench->world.now_us + 1000000);
    bench_free(bench);
}

/* Goal: an owner that has not taken what it was told last is looked at again 2 ms later, or sooner where anything else
 * is due. */
static void busy_owner_is_told_later(void **state)
{
    (void)state;
    static const uint64_t scrub_in_us[] = {500, 1999, 2000, 2001, 50000};
    for (unsigned i = 0; i < sizeof scrub_in_us / sizeof *scrub_in_us; i++) {
        struct bench *bench = trace_begin(bench_ready(32));
        struct leat_store *store = bench->store;
        struct leat_held *held = leat_held_of(flushed(bench)->seg);
        uint64_t now = bench->world.now_us;
        store->look_us = now + 1000000;
        store->options.scrub_bytes_per_second = RATE;
        store->scrub_at_us = now + scrub_in_us[i];
        atomic_store(&held->event_busy, true);
        leat_held_tell(store, held, LEAT_HELD_EVENT_DAMAGED);
        assert_false(leat_list_empty(&store->event_waits));
        leat_store_actor.on_turn_end(store);
        assert_int_equal(bench->world.wake_at_us - now,
                         scrub_in_us[i] < 2000 ? scrub_in_us[i] : 2000);
        atomic_store(&held->event_busy, false);
        leat_store_actor.on_turn_end(store);
        assert_true(leat_list_empty(&store->event_waits));
        assert_int_equal(bench->world.wake_at_us - now, scrub_in_us[i]);
        bench_free(bench);
    }
}

/* Goal: a segment that goes while it is read is read no more: who gets its descriptor is not spoken of. */
static void scrub_reads_nothing_of_what_has_gone(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(7);
    struct leat_store *store = bench->store;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_held *held = leat_held_of(mine->seg);
    store->options.scrub_bytes_per_second = 1000000;
    leat_store_actor.on_turn_end(store);
    assert_ptr_equal(store->scrubbing, held);
    leat_held_row_free(store, held);
    leat_held_free(store, held);
    assert_null(store->scrubbing);
    fake_settle(&bench->world);
    assert_int_equal(store->complaint_count, 0);
    bench_free(bench);
}

/* Goal: one piece of a flush is written between two rounds of commits, and no second piece before the next round. */
static void flush_has_one_turn_between_rounds(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct leat_store *store = bench->store;
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 4 * 1024 * 1024);
    fake_settle(&bench->world);
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){4 * 1024 * 1024, 99};
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint64_t now = bench->world.now_us + store->options.flush_delay_us;
    for (unsigned waiting = 0; waiting < 2; waiting++) {
        store->data_running = !waiting;
        store->data_waiting = waiting;
        store->flush_turn = false;
        unsigned before = store->flush_in_flight;
        leat_flush_step(store, now);
        assert_int_equal(store->flush_in_flight, before);
        store->flush_turn = true;
        leat_flush_step(store, now);
        assert_int_equal(store->flush_in_flight, before + 1);
        assert_false(store->flush_turn);
    }
    store->data_running = store->data_waiting = 0;
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: nothing is read again before owners have taken what a start found: they would not be told. */
static void scrub_waits_until_all_is_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(10);
    (void)flushed(bench);
    reopen(bench, false);
    struct leat_store *store = bench->store;
    store->options.scrub_bytes_per_second = RATE;
    leat_scrub_step(store, bench->world.now_us);
    assert_false(store->scrub_reading);
    leat_store_found_done(store);
    leat_scrub_step(store, bench->world.now_us);
    assert_true(store->scrub_reading);
    fake_settle(&bench->world);
    bench_free(bench);
}

/* Goal: nothing is flushed before owners have taken what a start found: they would not be told. */
static void flush_waits_until_all_is_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    reopen(bench, false);
    struct leat_segment *seg = found_of(bench, mine)->seg;
    uint64_t later = bench->world.now_us + 10 * bench->store->options.flush_delay_us;
    assert_int_equal(leat_flush_next_us(bench->store, later), UINT64_MAX);
    leat_flush_step(bench->store, later);
    assert_int_equal(leat_held_of(seg)->where, LEAT_HELD_DIRTY);
    leat_store_found_done(bench->store);
    assert_true(leat_flush_next_us(bench->store, later) <= later);
    bench->store->data_running =
        1; /* the flush goes on with the end of the round, not with a turn of its own */
    assert_int_equal(leat_flush_next_us(bench->store, later), UINT64_MAX);
    bench->store->data_running = 0;
    leat_flush_step(bench->store, later);
    assert_int_equal(leat_held_of(seg)->where, LEAT_HELD_FLUSHING);
    fake_settle(&bench->world);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scrub_without_memory_waits_for_it),
        cmocka_unit_test(scrub_comes_to_each_segment),
        cmocka_unit_test(many_complaints_are_summed_up),
        cmocka_unit_test(scrub_of_an_empty_store_waits),
        cmocka_unit_test(busy_owner_is_told_later),
        cmocka_unit_test(scrub_reads_nothing_of_what_has_gone),
        cmocka_unit_test(flush_has_one_turn_between_rounds),
        cmocka_unit_test(scrub_waits_until_all_is_taken),
        cmocka_unit_test(flush_waits_until_all_is_taken),
    };
    return cmocka_run_group_tests_name("store scrub", tests, NULL, NULL);
}
