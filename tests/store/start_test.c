/* SPDX-License-Identifier: Apache-2.0 */
/* A start's report of the segments: their order, and that the report stays true. */
#include "tests/store/store_bench.h"

/* A segment of that log that was open when the process ended. */
static struct mine *segment_of(struct bench *bench, uint32_t log, uint64_t id, uint32_t epoch)
{
    assert_true(bench->count < SEGS_MAX);
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {1, 0, log},
                          .id = {id},
                          .epoch = {epoch},
                          .durability = LEAT_DURABILITY_MEMORY,
                          .asked = true};
    mine->req.capacity = 16384;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_RESERVE), LEAT_OK);
    write_header(mine);
    write_start(mine);
    return mine;
}

/* Goal: the start lists segments by log, then by segment id, then by epoch, whichever rows they have: the code that
 * builds the logs relies on this order. */
static void start_tells_of_segments_in_their_order(void **state)
{
    (void)state;
    enum { LOGS = 3, IDS = 4, EPOCHS = 2, COUNT = LOGS * IDS * EPOCHS };
    struct bench *bench = bench_ready(21);
    uint32_t order[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        order[i] = COUNT - 1 - i;
    for (uint32_t i = 0; i < COUNT; i += 5) { /* neither up nor down */
        uint32_t j = (i * 7 + 3) % COUNT, was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        (void)segment_of(bench, order[i] / (IDS * EPOCHS), order[i] / EPOCHS % IDS,
                         1 + order[i] % EPOCHS);
    reopen(bench, false);
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    assert_int_equal(count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(found[i].seg->log.log, i / (IDS * EPOCHS));
        assert_int_equal(found[i].seg->id.v, i / EPOCHS % IDS);
        assert_int_equal(found[i].seg->epoch.v, 1 + i % EPOCHS);
    }
    bench_free(bench);
}

/* How far it is a mark; 0: it is called lost. */
static uint32_t mark_bytes(struct bench *bench, const struct mine *mine)
{
    const struct leat_found *found = found_of(bench, mine);
    assert_non_null(found);
    assert_true(found->kind == LEAT_FOUND_MARK || found->kind == LEAT_FOUND_LOST);
    return found->kind == LEAT_FOUND_MARK ? found->scan.bytes : 0;
}

/* Goal: the report of a start holds after a power cut, too, though the killed process before had not flushed the bytes:
 * where the disk refuses an operation, the start is refused, or reports what is certain. */
static void start_tells_nothing_that_the_power_may_take(void **state)
{
    (void)state;
    unsigned refused = 0, opened_again = 0, longer = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct bench *bench = bench_ready(seed);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        uint32_t committed = mine->committed_bytes;
        assert_true(write_some(mine, 100));
        ask(bench, mine, LEAT_STORE_COMMIT); /* on its way: written, perhaps, and not flushed */
        for (uint64_t steps = fake_below(&bench->world, 6); steps > 0 && mine->busy; steps--)
            (void)fake_step(&bench->world);
        fake_kill(&bench->world);
        bench->world.arena.inherited_bytes = 0; /* so the file says what there is */
        bench_drop_store(bench);
        bench->world.fail_at = bench->world.op_count + 1 + fake_below(&bench->world, 24);
        leat_err rc = bench_open(bench, NULL);
        refused += rc != LEAT_OK;
        if (rc == LEAT_OK) {
            uint32_t told = mark_bytes(bench, mine);
            assert_true(told == 0 || told >= committed);
            opened_again += told != 0;
            longer += told > committed;
            bench->world.fail_at = 0;
            fake_power_cut(&bench->world);
            open_again(bench);
            assert_true(mark_bytes(bench, mine) >= told);
        }
        bench_free(bench);
    }
    assert_true(refused > 10 && opened_again > 10 && longer > 10);
}

/* Goal: where another segment's bytes lie in an open one's place, whole and valid, nothing of that is called its
 * own. */
static void start_takes_no_other_segments_bytes(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(71);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *third = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_true(write_some(other, 50));
    assert_int_equal(do_now(bench, other, LEAT_STORE_COMMIT), LEAT_OK);
    assert_int_equal(do_now(bench, third, LEAT_STORE_HIBERNATE),
                     LEAT_OK); /* and the rows of the others */
    uint8_t *bytes = fake_file(&bench->world, "store/0")->now;
    assert_ptr_equal(mine->seg->file, fake_file(&bench->world, "store/0"));
    memcpy(bytes + mine->seg->file_offset, bytes + other->seg->file_offset, mine->seg->capacity);
    uint32_t whole = last_prefix_id(other).bytes;
    reopen_without_memory(bench);
    const struct leat_found *found = found_of(bench, mine);
    assert_non_null(found);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    assert_int_equal(found->scan.bytes, 0);
    assert_int_equal(found->seg->prefix_id.bytes, 0);
    assert_int_equal(found_of(bench, other)->kind, LEAT_FOUND_MARK);
    assert_int_equal(found_of(bench, other)->scan.bytes, whole);
    bench_free(bench);
}

/* Goal: each start reports a segment whose file was lost, though an earlier start ended anywhere after it had made the
 * file again: the loss is recorded before the file is made. */
static void start_that_ends_anywhere_forgets_no_lost_file(void **state)
{
    (void)state;
    unsigned ended = 0;
    bool reached = true;
    for (uint64_t n = 1; reached; n++)
        for (unsigned power = 0; power < 2; power++) {
            struct bench *bench = bench_ready(81);
            struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
            assert_true(write_some(mine, 40));
            write_close(mine);
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
            fake_pass(&bench->world, 10000000);
            struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
            assert_int_equal(do_now(bench, other, LEAT_STORE_HIBERNATE),
                             LEAT_OK); /* its row is synced */
            struct leat_file *file = fake_file(&bench->world, "store/0");
            memset(file->now + mine->seg->file_offset, 0, mine->seg->capacity);
            memset(file->durable + mine->seg->file_offset, 0, mine->seg->capacity);
            file->bytes = file->durable_bytes = 0;
            fake_kill(&bench->world);
            bench->world.arena.inherited_bytes = 0;
            bench_drop_store(bench);
            bench->world.fail_at = bench->world.op_count + n;
            leat_err rc = bench_open(bench, NULL);
            reached = bench->world.op_count >= bench->world.fail_at;
            bench->world.fail_at = 0;
            ended += rc != LEAT_OK;
            if (power) fake_power_cut(&bench->world);
            reopen_without_memory(bench);
            const struct leat_found *found = found_of(bench, mine);
            assert_non_null(found);
            assert_true(leat_segment_is_damaged(found->seg) || found->kind == LEAT_FOUND_LOST);
            bench_free(bench);
        }
    assert_true(ended > 4);
}

enum { HELD = 80 };

struct told {
    enum leat_found_kind kind;
    enum leat_segment_state state;
    uint32_t bytes;
};

/* A start's report, in its order. */
static void take_told(struct bench *bench, struct told out[HELD])
{
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    assert_int_equal(count, HELD);
    for (size_t i = 0; i < HELD; i++)
        out[i] = (struct told){found[i].kind, found[i].seg->state, found[i].scan.bytes};
}

/* Goal: a start that lacks memory is refused, or reports every segment as with enough memory; a refused start changes
 * nothing in the report of the next start. */
static void start_without_memory_is_refused_or_tells_all(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(61);
    for (unsigned i = 0; i < HELD; i++) {
        struct mine *mine = opened(bench, i % 2 ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine, 1 + i));
        if (i % 2) assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        if (i % 5 == 1) assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
        if (i % 5 < 3 && i % 5 != 1) {
            write_close(mine);
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        }
        if (i == HELD / 2) fake_pass(&bench->world, 1000000); /* those so far are in files */
    }
    struct told whole[HELD], now[HELD];
    reopen(bench, false);
    take_told(bench, whole);
    unsigned refused = 0, told = 0;
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        fake_kill(&bench->world);
        bench_drop_store(bench);
        leat_mem_fail_at(n);
        leat_err rc = bench_open(bench, NULL);
        reached = leat_mem_calls() >= n;
        leat_mem_fail_at(0);
        assert_true(rc == LEAT_OK || rc == LEAT_E_NO_MEMORY);
        refused += rc != LEAT_OK;
        if (rc) continue;
        told++;
        take_told(bench, now);
        for (unsigned i = 0; i < HELD; i++)
            assert_true(now[i].kind == whole[i].kind && now[i].state == whole[i].state &&
                        now[i].bytes == whole[i].bytes);
    }
    assert_true(refused > 10 && told > 0);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_tells_of_segments_in_their_order),
        cmocka_unit_test(start_takes_no_other_segments_bytes),
        cmocka_unit_test(start_that_ends_anywhere_forgets_no_lost_file),
        cmocka_unit_test(start_without_memory_is_refused_or_tells_all),
        cmocka_unit_test(start_tells_nothing_that_the_power_may_take),
    };
    return cmocka_run_group_tests_name("store start", tests, NULL, NULL);
}
