/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of files: which bytes are written where, with which sync, on whose thread, and who is answered what then. */
#include "tests/store/trace.h"

enum { CAPACITY = 65536 };

/* ---- requests ---- */
static struct leat_store_req reqs[64];
static unsigned answered[64], answer_count; /* numbers, in order */

static struct bench *begin(uint64_t seed)
{
    answer_count = 0;
    return trace_begin(bench_ready(seed));
}

static void on_answer(struct leat_store_req *req)
{
    assert_true(answer_count < 64);
    answered[answer_count++] = (unsigned)(req - reqs);
}

static void commit(struct bench *bench, unsigned number, struct leat_segment *seg, uint32_t from,
                   uint32_t to, bool follow)
{
    reqs[number] = (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                           .seg = seg,
                                           .from_bytes = from,
                                           .to_bytes = to,
                                           .follow = follow,
                                           .on_done = on_answer};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &reqs[number]);
}

/* All that lies with the store comes in one turn. */
static void together(struct bench *bench)
{
    bench->world.turn_stays = true;
    while (bench->world.event_count > 1)
        (void)fake_event_step(&bench->world);
    bench->world.turn_stays = false;
    fake_settle(&bench->world);
}

static void answers_are(const char *want)
{
    char got[200] = "";
    for (unsigned i = 0; i < answer_count; i++)
        snprintf(got + strlen(got), 16, "%u:%u ", answered[i], reqs[answered[i]].rc);
    assert_string_equal(got, want);
    answer_count = 0;
}

static struct leat_segment *segment(struct bench *bench, enum leat_durability durability)
{
    struct mine *mine = reserve(bench, durability, 0, CAPACITY);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    for (uint32_t i = 0; i < CAPACITY; i++)
        mine->seg->buffer[i] = (uint8_t)(i * 31 + bench->count);
    op_count = 0;
    return mine->seg;
}

/* Goal: a commit writes its bytes, rounded out to blocks, from the buffer to the segment's slot, then syncs that file;
 * the durable length grows only up to the first gap. */
static void rounds_write_whole_blocks_of_what_was_asked(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to, block_from, block_to, in_file;
    } rows[] = {
        {0, 1, 0, 4096, 1},
        {0, 4095, 0, 4096, 4095},
        {0, 4096, 0, 4096, 4096},
        {0, 4097, 0, 8192, 4097},
        {100, 4096, 0, 4096, 4097},
        {4095, 4097, 0, 8192, 4097},
        {4096, 8192, 4096, 8192, 8192},
        {9000, 9001, 8192, 12288, 8192}, /* a gap before it */
        {8192, 9000, 8192, 12288, 9000},
        {8999, 9500, 8192, 12288, 9500},
        {9500, 9500, 8192, 12288, 9500},
        {8192, 8192, 0, 0, 9500},
        {9500, CAPACITY, 8192, CAPACITY, CAPACITY},
    };
    struct bench *bench = begin(1);
    struct leat_segment *seg = segment(bench, LEAT_DURABILITY_DISK);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        seg->buffer[rows[i].from] ^= 1;
        if (rows[i].to) seg->buffer[rows[i].to - 1] ^= 2;
        op_count = 0;
        commit(bench, 0, seg, rows[i].from, rows[i].to, false);
        fake_settle(&bench->world);
        answers_are("0:0 ");
        unsigned n = 0;
        if (rows[i].block_to) wrote(n++, seg, rows[i].block_from, rows[i].block_to, false);
        synced(n++, "store/0", false);
        assert_int_equal(op_count, n);
        assert_int_equal(leat_held_of(seg)->in_file_bytes, rows[i].in_file);
        assert_memory_equal(file->durable + seg->file_offset + rows[i].block_from,
                            seg->buffer + rows[i].block_from,
                            rows[i].block_to - rows[i].block_from);
    }
    bench_free(bench);
}

/* Goal: requests that wait for one file go together: a write for each segment, as far as any of its commits reaches,
 * and one sync; all requests are answered then, in their order. */
static void rounds_take_all_that_waits_together(void **state)
{
    (void)state;
    struct bench *bench = begin(2);
    struct leat_segment *a = segment(bench, LEAT_DURABILITY_DISK),
                        *b = segment(bench, LEAT_DURABILITY_DISK);
    assert_ptr_equal(a->file, b->file);
    commit(bench, 0, a, 0, 5000, false);
    commit(bench, 1, b, 0, 100, false);
    commit(bench, 2, a, 5000, 9000, false);
    commit(bench, 3, a, 4000, 6000, false);
    commit(bench, 4, b, 100, 100, false);
    together(bench);
    wrote(0, a, 0, 12288, false);
    wrote(1, b, 0, 4096, false);
    synced(2, "store/0", false);
    assert_int_equal(op_count, 3);
    answers_are("0:0 1:0 2:0 3:0 4:0 ");
    assert_int_equal(leat_held_of(a)->in_file_bytes, 9000);
    assert_int_equal(leat_held_of(b)->in_file_bytes, 100);
    /* What comes while they are written goes together next, from where its own bytes begin. */
    op_count = 0;
    commit(bench, 0, a, 9000, 20000, false);
    commit(bench, 5, a, 0, 1, false);
    (void)fake_event_step(&bench->world);
    commit(bench, 1, a, 20000, 20001, false);
    commit(bench, 2, b, 100, 8193, false);
    fake_settle(&bench->world);
    answers_are("0:0 5:0 1:0 2:0 ");
    assert_int_equal(op_count, 5);
    wrote(0, a, 8192, 20480, false);
    synced(1, "store/0", false);
    wrote(2, a, 0, 20480, false);
    wrote(3, b, 0, 12288, false);
    synced(4, "store/0", false);
    bench_free(bench);
}

/* Goal: a commit that follows takes along what its owner has sealed by then, begins where the file ends, and costs
 * nothing where the round before it took all; a commit never overtakes one before it. */
static void rounds_follow_what_was_sealed(void **state)
{
    (void)state;
    struct bench *bench = begin(3);
    struct leat_segment *seg = segment(bench, LEAT_DURABILITY_DISK);
    atomic_store(&seg->sealed_bytes, 3000);
    commit(bench, 0, seg, 0, 1000, true);
    fake_settle(&bench->world);
    answers_are("0:0 ");
    assert_int_equal(reqs[0].to_bytes, 3000);
    wrote(0, seg, 0, 4096, false);
    /* All of it is there: it is answered at once, with nothing done. */
    op_count = 0;
    commit(bench, 0, seg, 1000, 3000, true);
    fake_settle(&bench->world);
    answers_are("0:0 ");
    assert_int_equal(op_count, 0);
    /* Of one that asks for more only the rest is written. */
    commit(bench, 0, seg, 0, 5000, true);
    fake_settle(&bench->world);
    answers_are("0:0 ");
    wrote(0, seg, 0, 8192, false); /* from 3,000, in its block */
    atomic_store(&seg->sealed_bytes, 5000);
    op_count = 0;
    commit(bench, 0, seg, 4999, 5000, false); /* one that does not follow is written all the same */
    fake_settle(&bench->world);
    wrote(0, seg, 4096, 8192, false);
    answers_are("0:0 ");
    /* Two of them, of which the first round takes all: the second round has nothing to do. */
    op_count = 0;
    commit(bench, 0, seg, 5000, 6000, true);
    (void)fake_event_step(&bench->world);
    commit(bench, 1, seg, 6000, 6100, true);
    atomic_store(&seg->sealed_bytes, 6100);
    fake_settle(&bench->world);
    answers_are("0:0 1:0 ");
    assert_int_equal(reqs[0].to_bytes, 6000);
    assert_int_equal(op_count, 4);
    op_count = 0;
    commit(bench, 0, seg, 6100, 7000, true);
    commit(bench, 1, seg, 6200, 6900, true);
    together(bench);
    answers_are("0:0 1:0 ");
    assert_int_equal(op_count, 2);
    assert_int_equal(leat_held_of(seg)->in_file_bytes, 7000);
    /* One that does not follow takes nothing along: its owner rolls, and what is behind has to wait. */
    atomic_store(&seg->sealed_bytes, 9000);
    commit(bench, 0, seg, 7000, 7100, false);
    fake_settle(&bench->world);
    answers_are("0:0 ");
    assert_int_equal(reqs[0].to_bytes, 7100);
    assert_int_equal(leat_held_of(seg)->in_file_bytes, 7100);
    bench_free(bench);
}

/* Two segments in two files. */
static void two_files(struct bench *bench, struct leat_segment **out_a, struct leat_segment **out_b)
{
    *out_a = segment(bench, LEAT_DURABILITY_DISK);
    *out_b = segment(bench, LEAT_DURABILITY_MEMORY);
    assert_string_equal((*out_a)->file->name, "store/0");
    assert_string_equal((*out_b)->file->name, "store/1");
}

/* Goal: rounds run on the store's thread until two files want one at a time; from then on 64 of them run beside it,
 * counted from the last time that was so. */
static void rounds_of_two_files_run_beside(void **state)
{
    (void)state;
    struct bench *bench = begin(4);
    struct leat_segment *a, *b;
    two_files(bench, &a, &b);
    commit(bench, 0, a, 0, 100, false);
    fake_settle(&bench->world);
    wrote(0, a, 0, 4096, false);
    op_count = 0;
    commit(bench, 0, a, 0, 100, false);
    commit(bench, 1, b, 0, 5000, false);
    together(bench);
    assert_int_equal(op_count, 4);
    wrote(0, a, 0, 4096, false);
    synced(1, "store/0", false);
    wrote(2, b, 0, 8192, true);
    synced(3, "store/1", true);
    assert_ptr_equal(ops[2].io.then, ops[3].at); /* one behind the other */
    assert_int_equal(bench->store->crowded, 64);
    for (unsigned i = 0; i < 66; i++) {
        op_count = answer_count = 0;
        commit(bench, 0, a, 0, 100, false);
        fake_settle(&bench->world);
        wrote(0, a, 0, 4096, i < 63);
        synced(1, "store/0", i < 63);
        assert_int_equal(bench->store->crowded, i < 64 ? 63 - i : 0);
    }
    bench_free(bench);
}

/* Goal: a round runs on another thread than the store's while a flush is under way, and so do the rounds after it. */
static void rounds_run_beside_a_flush(void **state)
{
    (void)state;
    for (unsigned flushes = 0; flushes < 2; flushes++) {
        struct bench *bench = begin(10 + flushes);
        struct leat_segment *seg = segment(bench, LEAT_DURABILITY_DISK);
        bench->store->flush_in_flight = flushes;
        bench->world.poked = true;
        commit(bench, 0, seg, 0, 100, false);
        (void)fake_event_step(&bench->world);
        wrote(0, seg, 0, 4096, flushes);
        synced(1, "store/0", flushes);
        bench->store->flush_in_flight = 0;
        assert_int_equal(bench->store->crowded, flushes ? LEAT_STORE_CROWDED_ROUNDS : 0);
        fake_settle(&bench->world);
        answers_are("0:0 ");
        bench_free(bench);
    }
}

/* Goal: a commit of bytes that are in the file already is answered at once, whatever other segments' bytes are being
 * written. */
static void rounds_keep_nobody_who_has_nothing_to_write(void **state)
{
    (void)state;
    struct bench *bench = begin(12);
    struct leat_segment *a = segment(bench, LEAT_DURABILITY_DISK),
                        *b = segment(bench, LEAT_DURABILITY_DISK);
    atomic_store(&b->sealed_bytes, 100);
    commit(bench, 0, b, 0, 100, true);
    fake_settle(&bench->world);
    answers_are("0:0 ");
    commit(bench, 1, a, 0, 100, false);
    (void)fake_event_step(&bench->world);
    assert_int_equal(bench->store->data_running, 1);
    commit(bench, 0, b, 50, 100, true);
    while (bench->world.event_count) /* the disk does nothing */
        (void)fake_event_step(&bench->world);
    answers_are("0:0 ");
    fake_settle(&bench->world);
    answers_are("1:0 ");
    bench_free(bench);
}

/* Goal: a write that fails fails the requests of its segment for good; other segments of the file go on. A sync that
 * fails is the file's end, which is reported once; other files go on. */
static void rounds_that_fail_say_so_for_good(void **state)
{
    (void)state;
    for (unsigned sync = 0; sync < 2; sync++) {
        struct bench *bench = begin(5);
        struct leat_segment *a, *b, *c = segment(bench, LEAT_DURABILITY_DISK);
        two_files(bench, &a, &b);
        bench->world.fail_at =
            bench->world.op_count + 1 + sync * 2; /* its write; the sync behind both */
        commit(bench, 0, a, 0, 100, false);
        commit(bench, 1, c, 0, 100, false);
        commit(bench, 2, a, 100, 200, false);
        together(bench);
        answers_are(sync ? "0:5 1:5 2:5 " : "0:5 1:0 2:5 ");
        assert_int_equal(reqs[0].rc, LEAT_E_DISK);
        assert_int_equal(leat_held_of(a)->in_file_bytes, 0);
        assert_int_equal(leat_held_of(c)->in_file_bytes, sync ? 0 : 100);
        assert_int_equal(leat_held_of(a)->failed, !sync);
        assert_int_equal(leat_held_of(a)->slot.file->failed, sync);
        assert_int_equal(bench->store->complaint_count, sync);
        bench->world.fail_at = 0;
        op_count = 0;
        commit(bench, 0, a, 0, 100, false);
        commit(bench, 1, c, 0, 100, true);
        commit(bench, 2, b, 0, 100, false);
        commit(bench, 3, a, 0, 0, true);
        together(bench);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(reqs[i].rc, i == 2 || (i == 1 && !sync) ? LEAT_OK : LEAT_E_DISK);
        assert_int_equal(bench->store->complaint_count, sync);
        for (unsigned i = 0; i < op_count; i++)
            assert_true(ops[i].io.file == b->file || (!sync && ops[i].io.file == c->file));
        assert_int_equal(answer_count, 4);
        answer_count = 0;
        /* No segment gets a place in a file that failed. */
        struct leat_segment *next = segment(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(next->file == a->file, !sync);
        bench_free(bench);
    }
}

/* Goal: a segment is hibernated only where the scanner finds the bytes that the request names. */
static void rounds_hibernate_what_is_whole_and_nothing_else(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 6; what++) {
        struct bench *bench = begin(6);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine, 3));
        struct leat_segment *seg = mine->seg;
        struct leat_prefix_id prefix_id = last_prefix_id(mine);
        seg->base_offset = 1;
        seg->next_offset = 2;
        seg->max_timestamp_ms = 3;
        struct leat_prefix_id wrong[] = {prefix_id,
                                         {prefix_id.bytes - 8, prefix_id.crc},
                                         {prefix_id.bytes, prefix_id.crc ^ 1},
                                         {mine->prefix_ids[0].bytes, prefix_id.crc},
                                         mine->prefix_ids[0], /* shorter, and whole */
                                         prefix_id};
        if (what == 5) memset(seg->buffer, 0, 200); /* it never began */
        reqs[0] =
            (struct leat_store_req){.kind = LEAT_STORE_HIBERNATE, .seg = seg, .on_done = on_answer};
        seg->prefix_id = wrong[what];
        op_count = 0;
        bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &reqs[0]);
        fake_settle(&bench->world);
        assert_int_equal(answer_count, 1);
        answer_count = 0;
        bool good = what == 0 || what == 4;
        assert_int_equal(reqs[0].rc, good ? LEAT_OK : LEAT_E_DAMAGED);
        assert_int_equal(seg->buffer == NULL, good);
        assert_int_equal(seg->base_offset, good ? mine->id.v * 1000 : 1);
        assert_int_equal(seg->next_offset, good ? mine->next_offset : 2);
        assert_int_equal(seg->max_timestamp_ms, good ? -1 : 3);
        assert_int_equal(op_count, good ? 4 : 0); /* bytes and sync, then row and sync */
        if (good) {
            synced(1, "store/0", false);
            assert_string_equal(ops[2].file, "catalogue");
            synced(3, "catalogue", false);
            assert_int_equal(leat_held_of(seg)->in_file_bytes, wrong[what].bytes);
        }
        bench_free(bench);
    }
    /* Where its file failed it stays in memory. */
    struct bench *bench = begin(7);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    leat_held_of(mine->seg)->slot.file->failed = true;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_E_DISK);
    assert_non_null(mine->seg->buffer);
    bench_free(bench);
}

/* Goal: closing writes what is not in the file yet first, where the level is `disk`, and only the row where not. */
static void rounds_close_puts_the_bytes_first(void **state)
{
    (void)state;
    for (unsigned what = 0; what < 4; what++) {
        struct bench *bench = begin(8);
        struct mine *mine = opened(bench, what % 2 ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY);
        write_close(mine);
        if (what / 2) assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        op_count = 0;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        bool bytes = what == 1;
        assert_int_equal(op_count, bytes ? 3 : 1);
        if (bytes) {
            wrote(0, mine->seg, 0, 4096, false);
            synced(1, "store/0", false);
        }
        assert_string_equal(ops[op_count - 1].file, "catalogue");
        assert_int_equal(ops[op_count - 1].io.kind, LEAT_DISK_WRITE);
        bench_free(bench);
    }
}

/* Goal: requests that wait for a file when it fails are answered with that failure, without further disk operations,
 * and the store has nothing under way then. */
static void rounds_answer_what_waited_for_a_file_that_failed(void **state)
{
    (void)state;
    struct bench *bench = begin(9);
    struct mine *mine[4];
    for (unsigned i = 0; i < 4; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_DISK);
        if (i) write_close(mine[i]);
    }
    op_count = 0;
    ask(bench, mine[0], LEAT_STORE_COMMIT);
    (void)fake_event_step(&bench->world);
    ask(bench, mine[1], LEAT_STORE_CLOSE);
    ask(bench, mine[2], LEAT_STORE_HIBERNATE);
    bench->world.fail_at = bench->world.op_count + 2; /* the sync of the first */
    fake_settle(&bench->world);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(mine[i]->busy);
        assert_int_equal(mine[i]->rc, LEAT_E_DISK);
    }
    assert_int_equal(op_count, 2);
    assert_false(leat_round_busy(bench->store));
    assert_int_equal(leat_held_of(mine[1]->seg)->where, LEAT_HELD_STUCK);
    assert_int_equal(do_now(bench, mine[3], LEAT_STORE_CLOSE), LEAT_E_DISK);
    assert_int_equal(do_now(bench, mine[3], LEAT_STORE_DROP), LEAT_OK); /* its row is elsewhere */
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_write_whole_blocks_of_what_was_asked),
        cmocka_unit_test(rounds_take_all_that_waits_together),
        cmocka_unit_test(rounds_follow_what_was_sealed),
        cmocka_unit_test(rounds_of_two_files_run_beside),
        cmocka_unit_test(rounds_run_beside_a_flush),
        cmocka_unit_test(rounds_keep_nobody_who_has_nothing_to_write),
        cmocka_unit_test(rounds_that_fail_say_so_for_good),
        cmocka_unit_test(rounds_hibernate_what_is_whole_and_nothing_else),
        cmocka_unit_test(rounds_close_puts_the_bytes_first),
        cmocka_unit_test(rounds_answer_what_waited_for_a_file_that_failed),
    };
    return cmocka_run_group_tests_name("store rounds", tests, NULL, NULL);
}
