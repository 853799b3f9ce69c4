/* SPDX-License-Identifier: Apache-2.0 */
/* What a refusal of the disk does to one segment and not to other segments: flushes, replicas that a start takes from
 * memory; and how often the faults are reported. */
#include "tests/store/trace.h"

#include "store/row.h"

enum { MIB = 1024 * 1024, DELAY_US = 50000 };

static struct mine *closed(struct bench *bench, uint32_t capacity)
{
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, capacity);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    memset(mine->seg->buffer, (int)bench->count, capacity);
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){capacity, 99};
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    return mine;
}

/* Goal: whichever write fails, its segment stays in memory, and the failure is reported once. The other segments are
 * flushed, also a segment whose flush was under way at that time. */
static void flush_that_fails_leaves_others_alone(void **state)
{
    (void)state;
    enum { SEGMENTS = 3, PIECES = 2, WRITES = SEGMENTS * PIECES };
    unsigned beside = 0;
    for (unsigned fails = 1; fails <= WRITES; fails++) {
        struct bench *bench = trace_begin(bench_ready(fails));
        struct mine *mine[SEGMENTS];
        for (unsigned i = 0; i < SEGMENTS; i++)
            mine[i] = closed(bench, PIECES * MIB);
        op_count = 0;
        bench->world.fail_at = bench->world.op_count + fails;
        fake_pass(&bench->world, 10 * DELAY_US);
        bench->world.fail_at = 0;
        const struct leat_disk_io *io = &ops[fails - 1].io;
        assert_int_equal(io->kind, LEAT_DISK_WRITE);
        for (unsigned i = 0; i < SEGMENTS; i++) {
            struct leat_segment *seg = mine[i]->seg;
            bool its =
                io->offset >= seg->file_offset && io->offset < seg->file_offset + seg->capacity;
            assert_int_equal(mine[i]->flushed, !its);
            assert_int_equal(leat_held_of(seg)->failed, its);
            assert_non_null(seg->buffer);
            /* Its last piece: the next one had begun. */
            beside += its && io->offset > seg->file_offset && i + 1 < SEGMENTS;
        }
        assert_null(bench->store->flushing);
        assert_int_equal(bench->store->flush_in_flight, 0);
        assert_int_equal(bench->store->complaint_count, 1);
        bench_free(bench);
    }
    assert_true(beside > 0);
}

/* A replica of another node's log, with some of its bytes. */
static struct mine *replica(struct bench *bench)
{
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {1, 0, 0},
                          .id = {bench->count},
                          .epoch = {bench->epoch},
                          .durability = LEAT_DURABILITY_MEMORY,
                          .asked = true,
                          .busy = true};
    mine->req = (struct leat_store_req){.kind = LEAT_STORE_RESERVE,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .durability = LEAT_DURABILITY_MEMORY,
                                        .capacity = 16384,
                                        .role = LEAT_SEGMENT_REPLICA,
                                        .writer = 5,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    write_header(mine);
    write_start(mine);
    assert_true(write_some(mine, 3));
    return mine;
}

/* Goal: a replica that a start finds in memory becomes hibernated only where its file has the bytes; where the disk
 * refuses these bytes the replica is lost, and the reason is reported. */
static void replica_is_hibernated_where_its_file_has_it(void **state)
{
    (void)state;
    unsigned hibernated = 0, lost = 0;
    for (unsigned fails = 0; fails < 40; fails++) {
        struct bench *bench = bench_ready(70);
        struct mine *mine = replica(bench);
        const struct leat_prefix_id prefix_id = last_prefix_id(mine);
        static uint8_t written[LEAT_SEGMENT_BYTES_MAX];
        memcpy(written, mine->seg->buffer, prefix_id.bytes);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        if (fails) bench->world.fail_at = bench->world.op_count + fails;
        struct leat_error error = {0};
        leat_err rc = bench_open(bench, &error);
        bench->world.fail_at = 0;
        if (rc == LEAT_OK) {
            size_t count;
            const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
            assert_int_equal(count, 1);
            const struct leat_segment *seg = found->seg;
            if (seg->state == LEAT_SEGMENT_HIBERNATED) {
                hibernated++;
                assert_int_equal(seg->prefix_id.bytes, prefix_id.bytes);
                assert_memory_equal(fake_file(&bench->world, "store/0")->durable + seg->file_offset,
                                    written, prefix_id.bytes);
            } else {
                lost++;
                assert_int_equal(found->kind, LEAT_FOUND_LOST);
                assert_non_null(strstr(found->why, "cannot be written to store/0"));
            }
        }
        bench_free(bench);
    }
    assert_true(hibernated > 0 && lost > 0);
}

static unsigned lines;
static char last_line[LEAT_STORE_COMPLAINT_BYTES];
static void on_line(void *arg, const char *line)
{
    assert_ptr_equal(arg, &lines);
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

/* Goal: the kept complaints are reported, each once, and the number of complaints beyond the limit. */
static void complaints_are_told_as_far_as_they_are_kept(void **state)
{
    (void)state;
    static const struct {
        unsigned count, told;
        const char *last;
    } cases[] = {{0, 0, ""},
                 {1, 1, "number 0"},
                 {64, 64, "number 63"},
                 {65, 65, "and 1 complaints more, see the node log"},
                 {100, 65, "and 36 complaints more, see the node log"}};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct bench *bench = bench_ready(90);
        for (unsigned i = 0; i < cases[c].count; i++)
            leat_store_complain(bench->store, "number %u", i);
        lines = 0;
        last_line[0] = '\0';
        leat_store_complaints(bench->store, on_line, &lines);
        assert_int_equal(lines, cases[c].told);
        assert_string_equal(last_line, cases[c].last);
        bench_free(bench);
    }
}

/* Goal: in a file that has failed nothing more is written: what is closed there stays in memory. */
static void flush_writes_nothing_to_a_file_that_failed(void **state)
{
    (void)state;
    struct bench *bench = trace_begin(bench_ready(60));
    struct mine *mine = closed(bench, 2 * MIB);
    leat_held_of(mine->seg)->slot.file->failed = true;
    op_count = 0;
    fake_pass(&bench->world, 10 * DELAY_US);
    for (unsigned i = 0; i < op_count; i++)
        assert_string_not_equal(ops[i].file, "store/0");
    assert_false(mine->flushed);
    assert_non_null(mine->seg->buffer);
    bench_free(bench);
}

/* Goal: the store looks at the flush again when it is due; at once, unless something in flight ends with a turn of its
 * own. */
static void flush_is_looked_at_when_it_is_due(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(61);
    struct leat_store *store = bench->store;
    uint64_t now = bench->world.now_us;
    assert_int_equal(leat_flush_next_us(store, now), UINT64_MAX);
    struct leat_held *held = leat_held_of(closed(bench, 2 * MIB)->seg);
    uint64_t due = held->closed_us + DELAY_US;
    assert_int_equal(leat_flush_next_us(store, due - 1), due);
    assert_int_equal(leat_flush_next_us(store, due), due);
    assert_int_equal(leat_flush_next_us(store, due + 1), due + 1);
    store->flush_in_flight = 1;
    assert_int_equal(leat_flush_next_us(store, due - 1), due);
    assert_int_equal(leat_flush_next_us(store, due), UINT64_MAX);
    store->flush_in_flight = 0;
    store->data_waiting = 1;
    assert_int_equal(leat_flush_next_us(store, due), UINT64_MAX);
    store->data_waiting = 0;
    store->flushing = held;
    assert_int_equal(leat_flush_next_us(store, due), UINT64_MAX);
    store->flushing = NULL;
    bench_free(bench);
}

/* Goal: the row of a segment is written once when the segment becomes corrupt, and once when the segment is no longer
 * corrupt. */
static void damage_is_noted_when_it_changes(void **state)
{
    (void)state;
    static const bool told[] = {false, true, true, false, false};
    static const bool noted[] = {false, true, false, true, false};
    struct bench *bench = bench_ready(62);
    struct leat_store *store = bench->store;
    struct leat_held *held = leat_held_of(closed(bench, 2 * MIB)->seg);
    for (unsigned i = 0; i < 5; i++) {
        store->rows_noted = false;
        leat_held_row_damaged(store, held, told[i]);
        assert_int_equal(store->rows_noted, noted[i]);
        assert_int_equal(held->damaged, told[i]);
        assert_int_equal(leat_catalogue_row(&store->cat, held->seg.row)->more,
                         told[i] ? LEAT_ROW_DAMAGED : 0);
    }
    bench_free(bench);
}

/* Goal: a damaged row says nothing: the start leaves the row as it is, and does not take it for the row of a segment
 * whose bytes are missing. */
static void damaged_row_is_left_as_it_is(void **state)
{
    (void)state;
    for (unsigned sound = 0; sound < 2; sound++) {
        struct bench *bench = bench_ready(63);
        struct mine *mine = closed(bench, 2 * MIB);
        fake_pass(&bench->world, 10 * DELAY_US);
        assert_true(mine->flushed);
        uint32_t number = mine->seg->row;
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_file *file = fake_file(&bench->world, "catalogue");
        struct leat_row *row = (void *)(file->now + LEAT_BLOCK_BYTES + number * 128ull);
        row->slot_unit += row->capacity / LEAT_SLOT_UNIT_BYTES * 64; /* which no file has */
        if (sound) leat_row_seal(row, number);
        struct leat_row before = *row;
        struct leat_error error = {0};
        assert_int_equal(bench_open(bench, &error), LEAT_OK);
        assert_int_equal(memcmp(row, &before, sizeof before) == 0, !sound);
        assert_int_equal(leat_row_valid(row, number), sound);
        assert_true(bench->store->complaint_count > 0);
        bench_free(bench);
    }
}

/* Goal: a head is in the way where it lies past the pool's limit, all others have room below it, and the pool may be
 * made smaller. */
static void head_past_the_limit_is_in_the_way(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(64);
    struct leat_store *store = bench->store;
    struct leat_store_port store_port = leat_store_port(store);
    const uint64_t span = (uint64_t)store->pool.buddy.units * LEAT_SLOT_UNIT_BYTES,
                   limit = span / 2;
    const uint64_t room = 16384 + limit / LEAT_STORE_ROOM_PART;
    const struct {
        uint64_t at, room;
        bool kept, is;
    } cases[] = {{limit, room, false, true},        {limit - 4096, room, false, false},
                 {limit + 4096, room, false, true}, {limit, room - 1, false, false},
                 {limit, room, true, false},        {span - 4096, room, false, true},
                 {span, room, false, false},        {0, room, false, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct leat_segment head = {.capacity = 16384,
                                    .buffer = store->pool.arena->base + cases[c].at};
        atomic_store(&store->usage_limit, limit);
        atomic_store(&store->usage_room, cases[c].room);
        atomic_store(&store->usage_kept, cases[c].kept);
        assert_int_equal(store_port.in_the_way(store_port.ctx, &head), cases[c].is);
    }
    bench_free(bench);
}

/* Goal: where the row of a resumed or reserved segment can't be written, the owner gets no buffer: no segment gets the
 * place until the next start. */
static void segment_that_is_not_begun_has_no_buffer(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (unsigned fails = 1; fails < 8; fails++) {
        struct bench *bench = bench_ready(65);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(write_some(mine, 3));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
        assert_null(mine->seg->buffer);
        bench->world.fail_at = bench->world.op_count + fails;
        leat_err rc = do_now(bench, mine, LEAT_STORE_RESUME);
        bench->world.fail_at = 0;
        assert_int_equal(mine->seg->buffer == NULL, rc != LEAT_OK);
        refused += rc != LEAT_OK;
        bench_free(bench);
    }
    assert_in_range(refused, 3, 6); /* its read, its row, the sync of that */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flush_that_fails_leaves_others_alone),
        cmocka_unit_test(replica_is_hibernated_where_its_file_has_it),
        cmocka_unit_test(flush_writes_nothing_to_a_file_that_failed),
        cmocka_unit_test(flush_is_looked_at_when_it_is_due),
        cmocka_unit_test(damage_is_noted_when_it_changes),
        cmocka_unit_test(damaged_row_is_left_as_it_is),
        cmocka_unit_test(head_past_the_limit_is_in_the_way),
        cmocka_unit_test(segment_that_is_not_begun_has_no_buffer),
        cmocka_unit_test(complaints_are_told_as_far_as_they_are_kept),
    };
    return cmocka_run_group_tests_name("store beside", tests, NULL, NULL);
}
