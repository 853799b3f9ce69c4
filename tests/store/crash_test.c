/* SPDX-License-Identifier: Apache-2.0 */
/* The store against a small world: crashes at random points, failures at every operation. */
#include "tests/store/store_bench.h"

/* ---- crashes at random points ---- */
static bool known_prefix_id(const struct mine *mine, struct leat_prefix_id prefix_id)
{
    for (unsigned i = 0; i < mine->prefix_id_count; i++)
        if (mine->prefix_ids[i].bytes == prefix_id.bytes &&
            mine->prefix_ids[i].crc == prefix_id.crc)
            return true;
    return false;
}

/* Checks one segment after a crash. */
static void check_mine(struct bench *bench, struct mine *mine, bool power)
{
    const struct leat_found *found = found_of(bench, mine);
    bool started = mine->prefix_id_count != 0;
    bool disk = mine->durability == LEAT_DURABILITY_DISK;
    if (mine->dropped || mine->gone) {
        assert_true(mine->gone || !found);
        return;
    }
    if (found && mine->gone) return;
    if (!started) {
        assert_true(!found || (power && !disk && found->kind == LEAT_FOUND_LOST));
        return;
    }
    if (mine->drop_asked && !found) return;
    /* Acked: what the level promises to have survived this crash. */
    struct leat_prefix_id last = last_prefix_id(mine);
    uint32_t acked = disk || power ? mine->committed_bytes : last.bytes;
    bool promised = disk ? mine->committed_bytes != 0 : !power;
    if (mine->hibernated || (mine->closed && (mine->flushed || disk))) {
        promised = true;
        acked = last.bytes;
    }
    if (promised) assert_non_null(found);
    if (!found) return;
    if (promised && found->kind == LEAT_FOUND_LOST)
        print_error(
            "lost: %s (committed %u of %u, level %d, kind %d busy %d state %d hibernated %d "
            "closed %d flushed %d power %d)\n",
            found->why, mine->committed_bytes, last.bytes, mine->durability, mine->req.kind,
            mine->busy, mine->state, mine->hibernated, mine->closed, mine->flushed, power);
    if (promised) assert_int_not_equal(found->kind, LEAT_FOUND_LOST);
    if (found->kind == LEAT_FOUND_LOST) return;
    assert_true(known_prefix_id(mine, found->seg->prefix_id));
    assert_true(found->seg->prefix_id.bytes >= acked);
    /* A mark says where the log ends: never short of what was acked at its level. */
    if (found->kind == LEAT_FOUND_MARK && !disk)
        assert_int_equal(found->seg->prefix_id.bytes, last.bytes);
    if (mine->closed && promised && acked == last.bytes)
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
    if (found->kind == LEAT_FOUND_CLOSED) assert_true(mine->close_asked);
}

static void act(struct bench *bench)
{
    if (bench->count < SEGS_MAX - 1 && fake_below(&bench->world, 5) == 0) {
        (void)reserve(bench,
                      fake_below(&bench->world, 2) ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY,
                      (uint32_t)fake_below(&bench->world, 3),
                      (uint32_t)16384 << fake_below(&bench->world, 2));
        return;
    }
    if (!bench->count) return;
    struct mine *mine = &bench->mine[fake_below(&bench->world, bench->count)];
    if (mine->busy || mine->gone || mine->dropped || mine->rc || !mine->reserved) return;
    switch (mine->state) {
    case LEAT_SEGMENT_RESERVED:
        if (fake_below(&bench->world, 8) == 0) {
            ask(bench, mine, LEAT_STORE_DROP);
        } else {
            write_header(mine);
            write_start(mine);
        }
        break;
    case LEAT_SEGMENT_OPEN: {
        uint64_t what = fake_below(&bench->world, 12);
        if (what < 5) {
            (void)write_some(mine, 1 + (unsigned)fake_below(&bench->world, 40));
        } else if (what < 8) {
            ask(bench, mine, LEAT_STORE_COMMIT);
        } else if (what < 10) {
            ask(bench, mine, LEAT_STORE_HIBERNATE);
        } else if (what == 10) {
            write_close(mine);
            mine->close_asked = true; /* by its bytes */
            mine->state = LEAT_SEGMENT_FREE;
            if (mine->durability == LEAT_DURABILITY_DISK && fake_below(&bench->world, 4)) {
                ask(bench, mine, LEAT_STORE_COMMIT);
            } else {
                ask(bench, mine, LEAT_STORE_CLOSE);
            }
        }
        break;
    }
    case LEAT_SEGMENT_FREE: /* closed by its bytes, not told yet */
        if (!mine->closed) ask(bench, mine, LEAT_STORE_CLOSE);
        break;
    case LEAT_SEGMENT_HIBERNATED:
        ask(bench, mine, fake_below(&bench->world, 5) ? LEAT_STORE_RESUME : LEAT_STORE_CLOSE);
        break;
    case LEAT_SEGMENT_CLOSED:
        if (fake_below(&bench->world, 6) == 0)
            ask(bench, mine, LEAT_STORE_DROP);
        else if (mine->flushed && mine->seg->buffer)
            ask(bench, mine, LEAT_STORE_EVICT);
        break;
    }
}

/* After the check: decide as a lone node would, and go on with what is left. */
static void adopt(struct bench *bench)
{
    struct mine *kept = calloc(SEGS_MAX, sizeof *kept);
    unsigned kept_count = 0;
    for (unsigned i = 0; i < bench->count; i++) {
        const struct leat_found *one = found_of(bench, &bench->mine[i]);
        if (!one) continue;
        if (one->kind == LEAT_FOUND_LOST || fake_below(&bench->world, 3) == 0) {
            assert_int_equal(leat_store_forget(bench->store, one->seg), LEAT_OK);
            continue;
        }
        struct mine mine = bench->mine[i];
        if (one->kind == LEAT_FOUND_MARK) {
            assert_int_equal(leat_store_cut(bench->store, one->seg, one->seg->prefix_id,
                                            one->seg->next_offset, 1),
                             LEAT_OK);
            if (one->seg->prefix_id.bytes != last_prefix_id(&mine).bytes)
                mine.prefix_ids[mine.prefix_id_count++] = one->seg->prefix_id;
        }
        mine = (struct mine){.seg = one->seg,
                             .log = mine.log,
                             .id = mine.id,
                             .epoch = mine.epoch,
                             .durability = mine.durability,
                             .reserved = true,
                             .closed = true,
                             .close_asked = true,
                             .flushed = one->seg->flushed,
                             .state = LEAT_SEGMENT_CLOSED,
                             .prefix_ids = {one->seg->prefix_id},
                             .prefix_id_count = 1};
        mine.committed_bytes = one->seg->flushed ? one->seg->prefix_id.bytes : 0;
        one->seg->owner_actor = 0;
        kept[kept_count++] = mine;
    }
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    memcpy(bench->mine, kept, sizeof *kept * kept_count);
    bench->count = kept_count;
    for (unsigned i = 0; i < kept_count; i++)
        if (!kept[i].seg->buffer) {
            bench->mine[i].flushed = true;
            bench->mine[i].committed_bytes = last_prefix_id(&kept[i]).bytes;
        }
    free(kept);
    leat_store_found_done(bench->store);
    bench->epoch++;
}

static void check_all(struct bench *bench, bool power)
{
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    for (unsigned i = 0; i < bench->count; i++)
        check_mine(bench, &bench->mine[i], power);
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (unsigned j = 0; j < bench->count && !known; j++)
            known = found_of(bench, &bench->mine[j]) == &found[i];
        assert_true(known);
    }
}

static void work(struct bench *bench, uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
        act(bench);
        for (uint64_t j = fake_below(&bench->world, 6); j > 0; j--)
            if (!fake_step(&bench->world)) break;
        if (fake_below(&bench->world, 30) == 0) fake_pass(&bench->world, 20000);
    }
}

static void store_crash_at_any_point_keeps_what_was_answered(void **state)
{
    (void)state;
    unsigned lost = 0, marks = 0, closed = 0;
    const char *many = getenv("LEAT_STORE_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : 60;
    const char *from = getenv("LEAT_STORE_SEED");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        struct bench *bench = bench_ready(seed * 7919);
        for (int life = 0; life < 5; life++) {
            work(bench, 20 + fake_below(&bench->world, 400));
            bool power = fake_below(&bench->world, 2);
            if (from)
                print_message("seed %llu life %d power %d\n", (unsigned long long)seed, life,
                              power);
            reopen(bench, power);
            check_all(bench, power);
            size_t count;
            const struct leat_found *found = leat_store_found(bench->store, &count);
            for (size_t i = 0; i < count; i++) {
                lost += found[i].kind == LEAT_FOUND_LOST;
                marks += found[i].kind == LEAT_FOUND_MARK;
                closed += found[i].kind == LEAT_FOUND_CLOSED;
            }
            adopt(bench);
        }
        bench_free(bench);
    }
    /* The test is worth something only if all kinds came up. */
    assert_true(lost && marks && closed);
}

/* ---- every operation fails once ---- */
/* One life with a failure at disk operation or allocation n, then a crash, then a life without failures. false: n was
 * never reached. */
static bool survive(uint64_t n, bool allocation, bool power)
{
    struct bench *bench = bench_new(4711);
    struct leat_error error = {0};
    if (allocation)
        leat_mem_fail_at(n);
    else
        bench->world.fail_at = n;
    leat_err rc = bench_open(bench, &error);
    if (rc) {
        assert_true(error.text[0]);
        assert_int_equal(rc, allocation ? LEAT_E_NO_MEMORY : LEAT_E_DISK);
        bench->world.fail_at = 0;
        fake_power_cut(&bench->world);
        assert_int_equal(bench_open(bench, &error), LEAT_OK);
    }
    leat_store_found_done(bench->store);
    work(bench, 300);
    uint64_t reached = allocation ? leat_mem_calls() : bench->world.op_count;
    leat_mem_fail_at(0);
    bench->world.fail_at = 0;
    reopen(bench, power);
    check_all(bench, power);
    adopt(bench);
    work(bench, 100);
    fake_settle(&bench->world);
    unsigned errors = bench->errors;
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    assert_int_equal(bench->errors, errors);
    bench_free(bench);
    return reached >= n;
}

static void store_disk_failure_at_any_operation_loses_nothing_answered(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (survive(n, false, false) && survive(n, false, true))
        n++;
    assert_true(n > 150);
}

static void store_allocation_failure_at_any_point_loses_nothing_answered(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (survive(n, true, n % 2))
        n++;
    assert_true(n > 10);
}

static void commit_ask(struct bench *bench, struct mine *mine, uint32_t from, uint32_t to)
{
    mine->busy = true;
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                        .seg = mine->seg,
                                        .from_bytes = from,
                                        .to_bytes = to,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
}

/* Goal: where several commits of a segment wait for one round, the round writes all bytes that its answers promise, in
 * whichever order the commits were asked for, whether one commit begins at the end of the other or within it: a power
 * cut loses none of these bytes. */
static void store_commits_of_one_round_are_written_as_far_as_they_reach(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        bool larger_first = way & 1, overlap = way & 2;
        struct bench *bench = bench_ready(41 + way);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *before = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        uint32_t from = mine->committed_bytes;
        ask(bench, before, LEAT_STORE_COMMIT);
        while (fake_event_step(&bench->world)) {
        } /* its round begins; what comes now waits */
        assert_true(write_some(mine, 180));
        uint32_t middle = last_prefix_id(mine).bytes;
        assert_true(write_some(mine, 120));
        struct leat_prefix_id end = last_prefix_id(mine);
        assert_true(middle - from > LEAT_BLOCK_BYTES && end.bytes - middle > LEAT_BLOCK_BYTES);
        struct mine first = *mine, second = *mine;
        if (larger_first) commit_ask(bench, &second, overlap ? from : middle, end.bytes);
        commit_ask(bench, &first, from, middle);
        if (!larger_first) commit_ask(bench, &second, overlap ? from : middle, end.bytes);
        fake_settle(&bench->world);
        assert_true(!first.busy && !second.busy && !before->busy);
        assert_true(first.rc == LEAT_OK && second.rc == LEAT_OK);
        reopen(bench, true);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, end.bytes);
        assert_int_equal(found->scan.crc, end.crc);
        bench_free(bench);
    }
}

/* Goal: once the catalogue could not be written, each request that needs a row is answered, by that name, and none
 * waits; what is held is read and committed as before. */
static void store_catalogue_that_failed_answers_every_request(void **state)
{
    (void)state;
    static const enum leat_store_req_kind kinds[] = {LEAT_STORE_HIBERNATE, LEAT_STORE_CLOSE,
                                                     LEAT_STORE_STAMP,     LEAT_STORE_GIVE_UP,
                                                     LEAT_STORE_MOVE,      LEAT_STORE_DROP};
    for (unsigned first = 0; first < sizeof kinds / sizeof *kinds; first++) {
        struct bench *bench = bench_ready(31 + first);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        struct mine *other = opened(bench, LEAT_DURABILITY_MEMORY);
        struct mine *hibernated = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *on_disk = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(do_now(bench, hibernated, LEAT_STORE_HIBERNATE), LEAT_OK);
        struct leat_file *file = fake_file(&bench->world, "catalogue");
        file->sync_failed = true; /* as after a flush that failed */
        (void)do_now(bench, mine, kinds[first]);
        assert_true(bench->store->cat.failed || mine->rc == LEAT_OK);
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            assert_int_equal(do_now(bench, other, kinds[i]), LEAT_E_DISK);
        assert_true(bench->store->cat.failed);
        assert_int_equal(do_now(bench, hibernated, LEAT_STORE_RESUME), LEAT_E_DISK);
        assert_int_equal(do_now(bench, hibernated, LEAT_STORE_DROP), LEAT_E_DISK);
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 0, 16384);
        fake_settle(&bench->world);
        assert_false(more->busy);
        assert_int_equal(more->rc, LEAT_E_DISK);
        assert_int_equal(do_now(bench, on_disk, LEAT_STORE_COMMIT), LEAT_OK);
        bench_free(bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_commits_of_one_round_are_written_as_far_as_they_reach),
        cmocka_unit_test(store_catalogue_that_failed_answers_every_request),
        cmocka_unit_test(store_crash_at_any_point_keeps_what_was_answered),
        cmocka_unit_test(store_disk_failure_at_any_operation_loses_nothing_answered),
        cmocka_unit_test(store_allocation_failure_at_any_point_loses_nothing_answered),
    };
    return cmocka_run_group_tests_name("store crash", tests, NULL, NULL);
}
