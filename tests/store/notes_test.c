/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalogue says of a segment through the segment's whole life, field by field; when the catalogue says so
 * durably; and that the next start reports the same. */
#include "tests/store/store_bench.h"

#include "store/row.h"
#include "wire/batch.h"

enum { CAPACITY = 32768, BORN_MS = 5555, DONE_MS = 6666 };

struct life {
    enum leat_durability durability;
    enum leat_segment_role role;
    struct bench *bench;
    struct mine *mine;
    struct leat_row want;
    bool durable; /* the row is on the disk as soon as that is answered */
    int64_t max_ms;
};

/* ---- the row ---- */

static struct leat_row row_of(const struct life *life, bool durable)
{
    const struct leat_file *file = fake_file(&life->bench->world, "catalogue");
    struct leat_row row;
    uint64_t at = LEAT_BLOCK_BYTES + (uint64_t)life->mine->seg->row * LEAT_ROW_BYTES;
    memcpy(&row, (durable ? file->durable : file->now) + at, sizeof row);
    return row;
}

static bool row_same(struct leat_row row, struct leat_row want)
{
    row.crc = want.crc = 0;
    return memcmp(&row, &want, sizeof row) == 0;
}

static void row_check(const struct life *life)
{
    struct leat_row row = row_of(life, false);
    if (!row_same(row, life->want))
        for (unsigned i = 4; i < sizeof row; i++) /* which byte */
            assert_int_equal(((const uint8_t *)&row)[i] << 8 | i,
                             ((const uint8_t *)&life->want)[i] << 8 | i);
    assert_true(leat_row_valid(&row, life->mine->seg->row));
    assert_int_equal(row_same(row_of(life, true), life->want), life->durable);
}

/* Where in memory, or nowhere. */
static void want_memory(struct life *life, bool there)
{
    const struct leat_segment *seg = life->mine->seg;
    const struct leat_arena *arena = &life->bench->world.arena;
    life->want.flags &= (uint8_t)~LEAT_ROW_IN_POOL;
    life->want.pool_at = 0;
    memset(life->want.pool_id, 0, sizeof life->want.pool_id);
    if (!there) return;
    life->want.flags |= LEAT_ROW_IN_POOL;
    life->want.pool_at = (uint64_t)(seg->buffer - arena->base);
    memcpy(life->want.pool_id, arena->pool_id, sizeof life->want.pool_id);
}

/* How far, and until when: of a segment that is hibernated or closed. */
static void want_end(struct life *life)
{
    const struct mine *mine = life->mine;
    life->want.prefix_id_bytes = last_prefix_id(mine).bytes;
    life->want.prefix_id_crc = last_prefix_id(mine).crc;
    life->want.next_offset = mine->next_offset;
    life->want.max_timestamp_ms = life->max_ms;
}

static void want_no_end(struct life *life)
{
    life->want.prefix_id_bytes = life->want.prefix_id_crc = life->want.passed_bytes = 0;
    life->want.next_offset = 0;
    life->want.max_timestamp_ms = life->want.written_ms = 0;
}

/* ---- the steps ---- */

static void request(struct life *life, struct leat_store_req req)
{
    struct mine *mine = life->mine;
    mine->busy = true;
    req.seg = mine->seg;
    req.durability = life->durability;
    req.on_done = on_req_done;
    req.owner = mine;
    mine->req = req;
    life->bench->store_port.request(life->bench->store_port.ctx, &life->bench->world.core_post,
                                    &mine->req);
    fake_settle(&life->bench->world);
    assert_false(mine->busy);
    assert_int_equal(mine->rc, LEAT_OK);
}

static void records(struct life *life, uint32_t count, int64_t time_ms)
{
    static uint8_t bytes[2048];
    struct mine *mine = life->mine;
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, bytes, sizeof bytes);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(leat_batch_builder_add(&builder, time_ms, NULL, 0, "v", 1, NULL, 0, 0),
                         LEAT_OK);
    uint32_t size = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_batch_stamp(bytes, mine->next_offset, 1);
    (void)leat_entry_append(&mine->writer, LEAT_ENTRY_BATCH, mine->next_offset, count, bytes, size,
                            leat_crc32c(0, bytes, size));
    mine->next_offset += count;
    if (time_ms > life->max_ms) life->max_ms = time_ms;
    seal(mine);
}

static void step_reserve(struct life *life)
{
    struct bench *bench = life->bench;
    struct mine *mine = life->mine = &bench->mine[bench->count++];
    *mine = (struct mine){
        .log = {11, 12, 13}, .id = {14}, .epoch = {15}, .durability = life->durability};
    request(life, (struct leat_store_req){.kind = LEAT_STORE_RESERVE,
                                          .log = mine->log,
                                          .id = mine->id,
                                          .epoch = mine->epoch,
                                          .capacity = CAPACITY,
                                          .version = life->role == LEAT_SEGMENT_OWN ? 0 : 7,
                                          .role = life->role,
                                          .writer = 0x1234567890});
    const struct leat_segment *seg = mine->seg;
    assert_int_equal(seg->state, LEAT_SEGMENT_RESERVED);
    assert_int_equal(seg->capacity, CAPACITY);
    assert_int_equal(seg->owner_actor, bench->world.core_post.self);
    assert_string_equal(seg->file->name, "store/0");
    assert_int_equal(seg->file_number, 0);
    assert_int_equal(seg->file_offset % CAPACITY, 0);
    life->want =
        (struct leat_row){.state = LEAT_SEGMENT_RESERVED,
                          .durability = (uint8_t)life->durability,
                          .flags = life->role == LEAT_SEGMENT_REPLICA ? LEAT_ROW_REPLICA : 0,
                          .stream = 11,
                          .streamlet = 12,
                          .log = 13,
                          .epoch = 15,
                          .segment = 14,
                          .capacity = CAPACITY,
                          .slot_unit = (uint32_t)(seg->file_offset / LEAT_SLOT_UNIT_BYTES),
                          .writer = 0x1234567890,
                          .version = life->role == LEAT_SEGMENT_OWN ? 1 : 7};
    want_memory(life, true);
    life->durable = life->durability == LEAT_DURABILITY_DISK;
}

/* Its row follows with the next write of any other. */
static void step_commit(struct life *life)
{
    struct mine *mine = life->mine;
    write_header(mine);
    write_start(mine);
    records(life, 3, 700);
    struct leat_row before = life->want;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                          .to_bytes = last_prefix_id(mine).bytes});
    assert_true(row_same(row_of(life, false), before));
    struct mine *other = &life->bench->mine[life->bench->count++];
    *other = (struct mine){
        .log = {1, 0, 0}, .id = {1}, .epoch = {1}, .durability = LEAT_DURABILITY_DISK};
    other->req.capacity = LEAT_SEGMENT_BYTES_MIN;
    assert_int_equal(do_now(life->bench, other, LEAT_STORE_RESERVE), LEAT_OK);
    life->want.state = LEAT_SEGMENT_OPEN;
    life->want.prefix_id_bytes = last_prefix_id(mine).bytes;
    life->want.base_offset = mine->seg->base_offset;
    life->durable = true; /* with the other one's */
}

static void stamp(struct life *life, struct leat_store_req req)
{
    const uint8_t ours = LEAT_ROW_REPLICA | LEAT_ROW_INCOMPLETE | LEAT_ROW_PROVISIONAL;
    req.kind = LEAT_STORE_STAMP;
    life->want.flags = (uint8_t)((life->want.flags & ~ours) |
                                 (req.role == LEAT_SEGMENT_REPLICA ? LEAT_ROW_REPLICA : 0) |
                                 (req.incomplete ? LEAT_ROW_INCOMPLETE : 0) |
                                 (req.provisional ? LEAT_ROW_PROVISIONAL : 0));
    life->want.version = req.version;
    life->want.writer = req.writer;
    life->durable =
        life->durability == LEAT_DURABILITY_DISK || life->want.state == LEAT_SEGMENT_HIBERNATED;
    request(life, req);
    const struct leat_segment *seg = life->mine->seg;
    assert_int_equal(seg->version, req.version);
    assert_int_equal(seg->writer, req.writer);
    assert_int_equal(seg->role, req.role);
    assert_int_equal(seg->incomplete, req.incomplete);
    assert_int_equal(seg->provisional, req.provisional);
}

static void step_stamp_as_another(struct life *life)
{
    stamp(life,
          (struct leat_store_req){.version = 21,
                                  .writer = 22,
                                  .role = life->role == LEAT_SEGMENT_OWN ? LEAT_SEGMENT_REPLICA
                                                                         : LEAT_SEGMENT_OWN,
                                  .provisional = true});
}

static void step_stamp_incomplete(struct life *life)
{
    stamp(life, (struct leat_store_req){
                    .version = 23, .writer = 24, .role = life->role, .incomplete = true});
}

static void step_stamp_as_it_was(struct life *life)
{
    stamp(life, (struct leat_store_req){.version = 25, .writer = 26, .role = life->role});
}

static void step_give_up(struct life *life)
{
    life->want.flags |= LEAT_ROW_GIVEN_UP;
    life->durable = true;
    request(life, (struct leat_store_req){
                      .kind = LEAT_STORE_GIVE_UP, .given_up = true, .version = 99, .writer = 98});
    assert_true(life->mine->seg->given_up && !life->mine->seg->front_given_up);
}

static void step_give_front_up(struct life *life)
{
    life->want.flags |= LEAT_ROW_FRONT_GIVEN_UP;
    life->durable = true;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_GIVE_UP, .front_given_up = true});
    assert_true(life->mine->seg->given_up && life->mine->seg->front_given_up);
}

static void step_hibernate(struct life *life)
{
    struct leat_segment *seg = life->mine->seg;
    records(life, 4, 900);
    seg->prefix_id = last_prefix_id(life->mine);
    seg->passed_bytes = 123;
    seg->integrity = LEAT_INTEGRITY_TORN;
    seg->written_ms = BORN_MS;
    life->want.state = LEAT_SEGMENT_HIBERNATED;
    life->want.flags |= LEAT_ROW_TORN;
    want_memory(life, false);
    want_end(life);
    life->want.passed_bytes = 123;
    life->want.written_ms = BORN_MS;
    life->durable = true;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_HIBERNATE});
    assert_null(seg->buffer);
    assert_int_equal(seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_int_equal(seg->base_offset, life->want.base_offset);
    assert_int_equal(seg->next_offset, life->mine->next_offset);
    assert_int_equal(seg->max_timestamp_ms, 900);
}

static void step_stamp_hibernated(struct life *life)
{
    stamp(life, (struct leat_store_req){.version = 27, .writer = 28, .role = life->role});
}

static void step_see_hibernated(struct life *life)
{
    life->mine->seg->passed_bytes = 0; /* an operator has seen it */
    life->want.passed_bytes = 0;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_GIVE_UP});
    assert_true(life->mine->seg->given_up && life->mine->seg->front_given_up);
}

static void step_resume(struct life *life)
{
    struct mine *mine = life->mine;
    mine->seg->passed_bytes = 5;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_RESUME, .capacity = CAPACITY});
    assert_int_equal(mine->seg->state, LEAT_SEGMENT_OPEN);
    assert_false(mine->seg->integrity == LEAT_INTEGRITY_TORN);
    assert_int_equal(mine->seg->passed_bytes, 0);
    life->want.state = LEAT_SEGMENT_OPEN;
    life->want.flags &= (uint8_t)~LEAT_ROW_TORN;
    want_no_end(life);
    life->want.prefix_id_bytes = last_prefix_id(mine).bytes; /* all of that is in the file */
    want_memory(life, true);
    life->durable = true;
    for (uint32_t i = last_prefix_id(mine).bytes; i < CAPACITY; i++)
        assert_int_equal(mine->seg->buffer[i], 0);
}

static void step_close(struct life *life)
{
    struct mine *mine = life->mine;
    struct leat_segment *seg = mine->seg;
    records(life, 5, 800);
    struct leat_close close = {.next_offset = mine->next_offset, .bytes = mine->writer.used};
    put(mine, LEAT_ENTRY_CLOSE, &close, sizeof close);
    seal(mine);
    seg->prefix_id = last_prefix_id(mine);
    seg->next_offset = mine->next_offset;
    seg->max_timestamp_ms = life->max_ms;
    seg->written_ms = DONE_MS;
    seg->passed_bytes = 321;
    life->want.state = LEAT_SEGMENT_CLOSED;
    want_end(life);
    life->want.written_ms = DONE_MS;
    life->want.passed_bytes = 321;
    if (life->durability == LEAT_DURABILITY_DISK) life->want.flags |= LEAT_ROW_FLUSHED;
    life->durable = false; /* the bytes hold the close entry */
    request(life, (struct leat_store_req){.kind = LEAT_STORE_CLOSE});
    assert_int_equal(seg->state, LEAT_SEGMENT_CLOSED);
    assert_int_equal(mine->flushed, life->durability == LEAT_DURABILITY_DISK);
}

static void step_flush(struct life *life)
{
    if (life->durability == LEAT_DURABILITY_MEMORY) {
        fake_pass(&life->bench->world, 49000);
        assert_false(life->mine->flushed);
    }
    fake_pass(&life->bench->world, 2000);
    assert_true(life->mine->flushed);
    life->want.flags |= LEAT_ROW_FLUSHED;
    life->durable = life->durability == LEAT_DURABILITY_MEMORY;
}

static void step_give_up_closed(struct life *life)
{
    life->mine->seg->passed_bytes = 0;
    life->want.passed_bytes = 0;
    life->durable = true;
    request(life, (struct leat_store_req){.kind = LEAT_STORE_GIVE_UP});
}

static void step_evict(struct life *life)
{
    request(life, (struct leat_store_req){.kind = LEAT_STORE_EVICT});
    assert_null(life->mine->seg->buffer);
}

static void step_stamp_closed(struct life *life)
{
    stamp(life, (struct leat_store_req){.version = 31, .writer = 32, .role = life->role});
}

static void (*const steps[])(struct life *life) = {
    step_reserve,
    step_commit,
    step_stamp_as_another,
    step_stamp_incomplete,
    step_stamp_as_it_was,
    step_give_up,
    step_give_front_up,
    step_hibernate,
    step_stamp_hibernated,
    step_see_hibernated,
    step_resume,
    step_close,
    step_flush,
    step_give_up_closed,
    step_evict,
    step_stamp_closed,
};
enum { STEPS = sizeof steps / sizeof steps[0], STEP_COMMIT = 1, STEP_INCOMPLETE = 3 };

/* ---- after a kill ---- */

static void told_check(const struct life *life)
{
    const struct leat_row *want = &life->want;
    size_t count;
    const struct leat_found *found = want->flags & LEAT_ROW_REPLICA
                                         ? leat_store_found_replicas(life->bench->store, &count)
                                         : leat_store_found(life->bench->store, &count);
    if (want->state == LEAT_SEGMENT_RESERVED || want->flags & LEAT_ROW_INCOMPLETE) {
        assert_int_equal(count, 0); /* it never started, or may be a part */
        return;
    }
    assert_int_equal(count, 1);
    const struct leat_segment *seg = found[0].seg;
    bool open = want->state == LEAT_SEGMENT_OPEN;
    assert_int_equal(found[0].kind,
                     want->state == LEAT_SEGMENT_CLOSED ? LEAT_FOUND_CLOSED : LEAT_FOUND_MARK);
    assert_int_equal(seg->state, want->state);
    assert_int_equal(seg->durability, want->durability);
    assert_true(leat_log_ref_equal(seg->log, life->mine->log));
    assert_int_equal(seg->id.v, want->segment);
    assert_int_equal(seg->epoch.v, want->epoch);
    assert_int_equal(seg->version, want->version);
    assert_int_equal(seg->writer, want->writer);
    assert_int_equal(seg->role == LEAT_SEGMENT_REPLICA, (want->flags & LEAT_ROW_REPLICA) != 0);
    assert_int_equal(seg->provisional, (want->flags & LEAT_ROW_PROVISIONAL) != 0);
    assert_int_equal(seg->given_up, (want->flags & LEAT_ROW_GIVEN_UP) != 0);
    assert_int_equal(seg->front_given_up, (want->flags & LEAT_ROW_FRONT_GIVEN_UP) != 0);
    assert_int_equal(seg->integrity == LEAT_INTEGRITY_TORN, (want->flags & LEAT_ROW_TORN) != 0);
    assert_int_equal(seg->passed_bytes, want->passed_bytes);
    assert_int_equal(seg->capacity, CAPACITY);
    assert_int_equal(seg->file_number, 0);
    assert_int_equal(seg->file_offset, (uint64_t)want->slot_unit * LEAT_SLOT_UNIT_BYTES);
    assert_string_equal(seg->file->name, "store/0");
    assert_int_equal(seg->base_offset, want->base_offset);
    assert_int_equal(seg->next_offset, life->mine->next_offset);
    assert_int_equal(seg->max_timestamp_ms, life->max_ms);
    assert_int_equal(seg->prefix_id.bytes, last_prefix_id(life->mine).bytes);
    assert_int_equal(seg->prefix_id.crc, last_prefix_id(life->mine).crc);
    if (!open) assert_int_equal(seg->written_ms, want->written_ms);
    assert_int_equal(seg->flushed, (want->flags & LEAT_ROW_FLUSHED) != 0);
    assert_false(leat_segment_is_damaged(seg) || seg->incomplete);
    assert_int_equal(found[0].scan.bytes, last_prefix_id(life->mine).bytes);
    assert_int_equal(found[0].scan.crc, last_prefix_id(life->mine).crc);
    assert_int_equal(found[0].scan.base_offset, want->base_offset);
    assert_int_equal(found[0].scan.next_offset, life->mine->next_offset);
    assert_int_equal(found[0].scan.max_timestamp_ms, life->max_ms);
    assert_true(found[0].scan.started);
    assert_int_equal(found[0].scan.closed, want->state == LEAT_SEGMENT_CLOSED);
    /* A `memory` segment that was not in its file lies where it lay. */
    if (life->durability == LEAT_DURABILITY_MEMORY && want->flags & LEAT_ROW_IN_POOL &&
        !(want->flags & (LEAT_ROW_FLUSHED | LEAT_ROW_REPLICA)))
        assert_int_equal(seg->buffer - life->bench->world.arena.base, want->pool_at);
    if (want->state == LEAT_SEGMENT_HIBERNATED || want->flags & LEAT_ROW_FLUSHED)
        assert_null(seg->buffer);
}

static void life_begin(struct life *life, unsigned kind)
{
    *life = (struct life){.durability = kind % 2 ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY,
                          .role = kind / 2 ? LEAT_SEGMENT_REPLICA : LEAT_SEGMENT_OWN,
                          .max_ms = -1,
                          .bench = bench_ready(100 + kind)};
}

/* Goal: the row says what it should after each step of a segment's life, and is durable when it has to be and not
 * sooner. When it goes nothing is left of it. */
static void notes_say_what_a_segment_is(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct life life;
        life_begin(&life, kind);
        for (unsigned i = 0; i < STEPS; i++) {
            steps[i](&life);
            row_check(&life);
        }
        struct leat_store_usage usage;
        leat_store_usage(life.bench->store, &usage);
        assert_int_equal(usage.segments, 2);
        uint32_t row = life.mine->seg->row, unit = life.want.slot_unit;
        struct leat_store_file *file = life.bench->store->slots.files[0];
        unsigned order = leat_buddy_order(CAPACITY, LEAT_SLOT_UNIT_BYTES);
        assert_int_equal(leat_buddy_free_in(&file->buddy, unit, order), 0);
        request(&life, (struct leat_store_req){.kind = LEAT_STORE_DROP});
        assert_null(life.mine->req.seg);
        assert_int_equal(leat_buddy_free_in(&file->buddy, unit, order), 2);
        const struct leat_file *catalogue = fake_file(&life.bench->world, "catalogue");
        struct leat_row gone, none = {0};
        memcpy(&gone, catalogue->durable + LEAT_BLOCK_BYTES + row * LEAT_ROW_BYTES, sizeof gone);
        assert_true(row_same(gone, none) && leat_row_valid(&gone, row) && gone.crc != 0);
        leat_store_usage(life.bench->store, &usage);
        assert_int_equal(usage.segments, 1);
        bench_free(life.bench);
    }
}

/* Goal: a start after each step tells of the segment as it was. Method: the process is killed there. */
static void notes_are_what_the_next_start_tells(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned last = 0; last < STEPS; last++) {
            struct life life;
            life_begin(&life, kind);
            for (unsigned i = 0; i <= last; i++)
                steps[i](&life);
            fake_kill(&life.bench->world);
            open_again(life.bench);
            /* Replicas that were open are hibernated by the start: open ones are looked at as own ones only. */
            if (life.want.state != LEAT_SEGMENT_OPEN || !(life.want.flags & LEAT_ROW_REPLICA))
                told_check(&life);
            /* A second start finds the same. */
            fake_kill(&life.bench->world);
            open_again(life.bench);
            if (life.want.state != LEAT_SEGMENT_OPEN || !(life.want.flags & LEAT_ROW_REPLICA))
                told_check(&life);
            bench_free(life.bench);
        }
}

/* Goal: a row that nobody waits for is written with the next round of others, in another block, too; once. */
static void notes_that_nobody_waits_for_go_along(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(7);
    struct mine *mine[70];
    for (unsigned i = 0; i < 70; i++)
        mine[i] = opened(bench, LEAT_DURABILITY_DISK);
    for (unsigned i = 0; i < 70; i += 30)
        for (unsigned twice = 0; twice < 2; twice++) {
            assert_true(write_some(mine[i], 2));
            assert_int_equal(do_now(bench, mine[i], LEAT_STORE_COMMIT), LEAT_OK);
        }
    const struct leat_file *catalogue = fake_file(&bench->world, "catalogue");
    uint64_t ops = bench->world.op_count;
    for (unsigned i = 0; i < 70; i += 30) {
        const struct leat_row *row =
            (const void *)(catalogue->now + LEAT_BLOCK_BYTES + mine[i]->seg->row * 128ull);
        assert_int_equal(row->state, LEAT_SEGMENT_RESERVED);
    }
    assert_int_equal(do_now(bench, mine[69], LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(bench->world.op_count - ops, 4); /* three blocks and their sync */
    for (unsigned i = 0; i < 70; i += 30) {
        const struct leat_row *row =
            (const void *)(catalogue->durable + LEAT_BLOCK_BYTES + mine[i]->seg->row * 128ull);
        assert_int_equal(row->state, LEAT_SEGMENT_OPEN);
        assert_int_equal(row->prefix_id_bytes, last_prefix_id(mine[i]).bytes);
    }
    ops = bench->world.op_count;
    assert_int_equal(do_now(bench, mine[68], LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(bench->world.op_count - ops, 2);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_say_what_a_segment_is),
        cmocka_unit_test(notes_are_what_the_next_start_tells),
        cmocka_unit_test(notes_that_nobody_waits_for_go_along),
    };
    return cmocka_run_group_tests_name("store notes", tests, NULL, NULL);
}
