/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the store that show only at their edge: parts of a start entry, one row alone in its block, slots beyond a
 * lowered limit, commits that make zeroing wait, files and catalogues that have failed. */
#include "tests/store/trace.h"

enum { MIB = 1024 * 1024, PLACE = LEAT_SEGMENT_BYTES_MAX, PLACES = MEMORY / PLACE };

static struct leat_row *row_of(struct bench *bench, const struct mine *mine)
{
    return leat_catalogue_row(&bench->store->cat, mine->seg->row);
}
static struct leat_row *row_in_file(struct bench *bench, uint32_t row)
{
    return (void *)(fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES +
                    row * (uint64_t)LEAT_ROW_BYTES);
}

/* Goal: a segment is called begun when all of its start entry, and the place of the next one's header, is in the file;
 * before that it may be a reservation. */
static void segment_has_begun_with_its_whole_start_entry(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(1);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct leat_entry entry;
    memcpy(&entry, mine->seg->buffer, sizeof entry);
    uint32_t at = (uint32_t)leat_entry_bytes(entry.payload_bytes);
    memcpy(&entry, mine->seg->buffer + at, sizeof entry);
    assert_int_equal(entry.type, LEAT_ENTRY_START);
    uint32_t whole = at + (uint32_t)leat_entry_bytes(entry.payload_bytes) + LEAT_ENTRY_HEADER_BYTES;
    const uint32_t commits[] = {at, at + LEAT_ENTRY_HEADER_BYTES - 1, at + LEAT_ENTRY_HEADER_BYTES,
                                whole - 1, whole};
    for (unsigned i = 0; i < 5; i++) {
        mine->prefix_ids[0].bytes = commits[i];
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        assert_int_equal(leat_held_of(mine->seg)->in_file_bytes, commits[i]);
        assert_int_equal(row_of(bench, mine)->state,
                         i < 4 ? LEAT_SEGMENT_RESERVED : LEAT_SEGMENT_OPEN);
    }
    assert_int_equal(row_of(bench, mine)->prefix_id_bytes, whole);
    bench_free(bench);
    for (unsigned second = 0; second < 2; second++) { /* entries of other types begin nothing */
        bench = bench_ready(5 + second);
        mine = opened(bench, LEAT_DURABILITY_DISK);
        uint8_t *other = mine->seg->buffer + (second ? at : 0);
        memcpy(&entry, other, sizeof entry);
        entry.type = LEAT_ENTRY_TRIM;
        memcpy(other, &entry, sizeof entry);
        mine->prefix_ids[0].bytes = whole;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        assert_int_equal(row_of(bench, mine)->state, LEAT_SEGMENT_RESERVED);
        bench_free(bench);
    }
}

/* Goal: the state that a start finds for a segment is in its row, also where no other row of that block has changed. */
static void row_of_a_segment_that_its_bytes_close_is_written(void **state)
{
    (void)state;
    for (unsigned power = 0; power < 2; power++) {
        struct bench *bench = bench_ready(2 + power);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        uint32_t row = mine->seg->row;
        assert_int_equal(row_in_file(bench, row)->state, LEAT_SEGMENT_RESERVED);
        reopen(bench, power);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(row_in_file(bench, row)->state, LEAT_SEGMENT_CLOSED);
        bench_free(bench);
    }
}

/* Goal: a segment whose file is gone has its slot in a new file. */
static void segment_of_a_lost_file_keeps_its_place(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(4);
    struct leat_disk *disk = &bench->world.disk;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 100000);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    assert_int_equal(disk->remove(disk->ctx, "store/0"), LEAT_OK);
    open_again(bench);
    const struct leat_found *found = found_of(bench, mine);
    const struct leat_held *held = leat_held_of(found->seg);
    assert_non_null(held->slot.file);
    assert_ptr_equal(held->slot.file, bench->store->slots.files[0]);
    assert_ptr_equal(held->seg.file, held->slot.file->file);
    assert_false(held->slot_shared);
    assert_int_equal(held->slot.file->buddy.free_units, 0);
    bench_free(bench);
}

/* Goal: a slot that a start frees may be given out at once. */
static void reservation_that_a_start_frees_is_free(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(30);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    uint32_t units = mine->seg->capacity / LEAT_SLOT_UNIT_BYTES, row = mine->seg->row;
    reopen(bench, false);
    assert_null(found_of(bench, mine));
    struct leat_store_file *file = bench->store->slots.files[0];
    assert_int_equal(file->buddy.free_units, file->grown_units);
    assert_int_equal(units, 1);
    assert_int_equal(bench->store->cat.held_count, 0);
    assert_null(*leat_catalogue_held(&bench->store->cat, row));
    bench_free(bench);
}

/* Goal: the bytes of a closed segment that a start reads may be only in the page cache of a killed process: the start
 * syncs the file before the row says that the file has the bytes. */
static void segment_that_a_start_reads_is_synced(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(31);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    uint64_t at = mine->seg->file_offset;
    memcpy(file->now + at, mine->seg->buffer, mine->seg->capacity); /* its flush, not synced */
    memset(file->touched + at / FAKE_SECTOR_BYTES, 1, mine->seg->capacity / FAKE_SECTOR_BYTES);
    uint32_t row = mine->seg->row;
    reopen_without_memory(bench);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_CLOSED);
    assert_true(found_of(bench, mine)->seg->flushed);
    assert_int_equal(row_in_file(bench, row)->flags, LEAT_ROW_FLUSHED);
    assert_memory_equal(file->durable + at, file->now + at, last_prefix_id(mine).bytes);
    bench_free(bench);
}

/* Goal: nobody is woken for a scrub while one reads. */
static void scrub_that_reads_is_due_at_no_time(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(32);
    struct leat_store *store = bench->store;
    store->scrub_at_us = 77;
    assert_int_equal(leat_scrub_next_us(store), UINT64_MAX);
    store->options.scrub_bytes_per_second = 1000;
    assert_int_equal(leat_scrub_next_us(store), 77);
    store->scrub_reading = true;
    assert_int_equal(leat_scrub_next_us(store), UINT64_MAX);
    store->scrub_reading = false;
    store->started = false;
    assert_int_equal(leat_scrub_next_us(store), UINT64_MAX);
    bench_free(bench);
}

/* Goal: a start of an empty store is refused whatever operation of it fails, also where the catalogue is longer than
 * its header says: rows there are used, so that the header says them first. */
static void start_promises_the_rows_that_it_uses(void **state)
{
    (void)state;
    enum { CHUNK = LEAT_STORE_ROWS_PER_CHUNK * LEAT_ROW_BYTES };
    for (unsigned n = 0;; n++) {
        struct bench *bench = bench_ready(40);
        struct leat_disk *disk = &bench->world.disk;
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_file *file = fake_file(&bench->world, "catalogue");
        assert_int_equal(file->bytes, LEAT_BLOCK_BYTES + CHUNK);
        assert_int_equal(disk->allocate(disk->ctx, file, file->bytes + CHUNK), LEAT_OK);
        bench->world.fail_at = n ? bench->world.op_count + n : 0;
        leat_err rc = bench_open(bench, NULL);
        bool over = n && bench->world.op_count < bench->world.fail_at;
        if (rc == LEAT_OK)
            assert_int_equal(bench->store->cat.header.row_count, 2 * LEAT_STORE_ROWS_PER_CHUNK);
        assert_int_equal(rc, n && !over ? LEAT_E_DISK : LEAT_OK);
        bench_free(bench);
        if (over) break;
    }
}

/* Goal: a scrub passes over what is being repaired, and over what is not in its file. */
static void scrub_passes_over_what_is_repaired(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(41);
    struct leat_store *store = bench->store;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    store->options.scrub_bytes_per_second = 1000000;
    leat_scrub_step(store, bench->world.now_us);
    assert_false(store->scrub_reading);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    struct leat_held *held = leat_held_of(mine->seg);
    store->scrubbing = NULL;
    store->scrub_reading = false;
    for (unsigned repairs = 0; repairs < 2; repairs++) {
        held->repairing = !repairs;
        store->scrub_at_us = 0;
        leat_scrub_step(store, bench->world.now_us);
        assert_int_equal(store->scrub_reading, repairs);
        fake_settle(&bench->world);
    }
    bench_free(bench);
}

/* Goal: a closed segment of which the file has other bytes than its row says is not taken for it, of the same length
 * neither. */
static void other_bytes_of_the_same_length_are_not_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(42);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    struct leat_entry_writer before = mine->writer;
    struct leat_trim trim = {.first_segment = 1};
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint64_t at = mine->seg->file_offset;
    struct leat_prefix_id prefix_id = last_prefix_id(mine);
    mine->writer = before;
    trim.first_segment = 2;
    put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    write_close(mine);
    assert_int_equal(last_prefix_id(mine).bytes, prefix_id.bytes);
    assert_true(last_prefix_id(mine).crc != prefix_id.crc);
    memcpy(fake_file(&bench->world, "store/0")->now + at, mine->seg->buffer, mine->seg->capacity);
    reopen_without_memory(bench);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_LOST);
    bench_free(bench);
}

/* Goal: while somebody waits for memory the store looks again soon. */
static void who_waits_for_memory_is_looked_at_soon(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(43);
    for (unsigned i = 0; i < PLACES; i++) {
        (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        fake_pass(&bench->world, 30000);
    }
    struct mine *waits = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
    fake_settle(&bench->world);
    assert_true(waits->busy);
    assert_int_equal(leat_memory_next_us(bench->store),
                     bench->world.now_us + LEAT_STORE_GROW_PATIENCE_US);
    bench->world.now_us = waits->req.asked_us + LEAT_RESERVE_WAIT_US - 5; /* it is refused then */
    assert_int_equal(leat_memory_next_us(bench->store), bench->world.now_us + 5);
    bench_free(bench);
}

/* Goal: a segment shorter than a trailer, or longer than its slot, does not end in a trailer. */
static void segment_ends_in_its_trailer(void **state)
{
    (void)state;
    static const uint32_t prefix_ids[] = {LEAT_ENTRY_HEADER_BYTES - 1, LEAT_ENTRY_HEADER_BYTES};
    for (unsigned i = 0; i < 2; i++) {
        struct bench *bench = bench_ready(44 + i);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        mine->prefix_ids[0] = (struct leat_prefix_id){prefix_ids[i], 99};
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        reopen(bench, false);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_LOST);
        bench_free(bench);
    }
}

static struct leat_mail *posted;
static void on_post(void *ctx, unsigned to, struct leat_mail *mail)
{
    (void)ctx;
    assert_int_equal(to, LEAT_ACTOR_STORE);
    posted = mail;
}

/* Goal: a request to add or retire an arena is answered to the actor that sent it, whichever actor that is. */
static void arena_is_answered_to_who_asked(void **state)
{
    (void)state;
    const struct leat_post post = {.self = 5, .send = on_post};
    struct leat_store_arena_op add = {.from = 99}, retire = {.from = 99};
    leat_store_arena_add(NULL, &post, &add);
    assert_true(add.from == 5 && posted == &add.mail && add.mail.deliver);
    leat_store_arena_retire(NULL, &post, &retire);
    assert_true(retire.from == 5 && posted == &retire.mail && retire.mail.deliver);
}

/* ---- arenas of a process before ---- */

/* Goal: a start that has no table for what an arena holds does not go on without it. */
static void arena_of_before_that_can_not_be_taken_ends_the_start(void **state)
{
    (void)state;
    static struct leat_arena left = {.inherited_bytes = 64 * 1024};
    struct leat_arena *inherited[] = {&left};
    for (unsigned has = 0; has < 2; has++) {
        struct bench *bench = bench_new(5 + has);
        struct leat_store_options options = options_of();
        struct leat_error error = {0};
        options.inherited = inherited;
        options.inherited_count = 1;
        left.inherited_bytes = has ? 64 * 1024 : 0; /* its limit is below what is one step */
        leat_err rc = leat_store_open(&bench->world.env, &options, &bench->store, &error);
        assert_int_equal(rc, has ? LEAT_E_CONFIG : LEAT_OK);
        if (has) assert_null(bench->store);
        bench_free(bench);
    }
}

/* ---- memory past a limit ---- */

static uint64_t less;
static uint64_t less_bytes(void *owner)
{
    (void)owner;
    return less;
}

/* Goal: where a limit was lowered what lies past it is wanted back, and an eighth of the rest, at once. */
static void what_lies_past_a_limit_is_wanted_at_once(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct leat_store *store = bench->store;
    struct mine *mine[PLACES];
    for (unsigned i = 0; i < PLACES; i++) {
        mine[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PLACE);
        fake_settle(&bench->world);
        fake_pass(&bench->world, 30000);
        assert_int_equal(mine[i]->rc, LEAT_OK);
        store->started = false; /* nobody is asked until all are there */
    }
    for (unsigned i = 0; i < PLACES; i++) { /* as if all had been flushed */
        mine[i]->seg->state = LEAT_SEGMENT_CLOSED;
        leat_held_move(leat_held_of(mine[i]->seg), LEAT_HELD_CACHED, &store->cached);
    }
    assert_int_equal(store->cached_bytes, MEMORY);
    store->started = true;
    store->options.less_bytes = less_bytes;
    less = LEAT_ARENA_STEP_BYTES;
    store->look_us = 0;
    leat_memory_step(store, bench->world.now_us);
    assert_int_equal(store->pool.limit_bytes, LEAT_ARENA_STEP_BYTES);
    assert_int_equal(store->asked_bytes, LEAT_ARENA_STEP_BYTES + LEAT_ARENA_STEP_BYTES / 8);
    fake_settle(&bench->world);
    bench_free(bench);
}

/* ---- zeros ahead ---- */

/* Goal: while commits come a piece is written ahead after so much of theirs, and at any time when none come. */
static void zeros_go_on_after_so_much_of_commits(void **state)
{
    (void)state;
    static const struct {
        uint64_t since_us, bytes;
        bool goes;
    } rows[] = {{0, 0, false},
                {0, LEAT_STORE_ZERO_EVERY_BYTES - 1, false},
                {0, LEAT_STORE_ZERO_EVERY_BYTES, true},
                {LEAT_STORE_BUSY_US - 1, 0, false},
                {LEAT_STORE_BUSY_US, 0, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench *bench = bench_ready(10 + i);
        struct leat_store *store = bench->store;
        struct leat_slots *slots = &store->slots;
        (void)opened(bench, LEAT_DURABILITY_DISK);
        assert_non_null(slots->ahead);
        /* Half of its first step is fresh, and not written yet. */
        assert_true(leat_buddy_claim(&slots->ahead->buddy, 32, 5));
        slots->fresh_from = 32;
        slots->fresh_end = 64;
        store->committed_us = bench->world.now_us - rows[i].since_us;
        store->committed_bytes = rows[i].bytes;
        leat_store_actor.on_turn_end(store);
        assert_int_equal(slots->zeroing != NULL, rows[i].goes);
        assert_int_equal(store->committed_bytes, rows[i].goes ? 0 : rows[i].bytes);
        fake_settle(&bench->world);
        bench_free(bench);
    }
}

/* Goal: a catalogue that has failed is written no more, whatever was noted before. */
static void catalogue_that_failed_is_written_no_more(void **state)
{
    (void)state;
    for (unsigned failed = 0; failed < 2; failed++) {
        struct bench *bench = trace_begin(bench_ready(20 + failed));
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        bench->store->rows_noted = true;
        bench->store->cat.failed = failed;
        op_count = 0;
        assert_int_equal(leat_rows_round(bench->store), !failed);
        assert_int_equal(op_count != 0, !failed);
        fake_settle(&bench->world);
        bench_free(bench);
    }
}

/* Goal: an end that leaves no room for an entry's header is not torn, whatever lies behind its place: here what was
 * read of a longer segment before. */
static void end_of_a_full_segment_is_not_torn(void **state)
{
    (void)state;
    enum { LEFT = LEAT_ENTRY_HEADER_BYTES / 2, CAPACITY = 16384 };
    struct bench *bench = bench_ready(43);
    struct mine *longer = reserve(bench, LEAT_DURABILITY_DISK, 0, 2 * CAPACITY);
    fake_settle(&bench->world);
    write_header(longer);
    write_start(longer);
    assert_int_equal(do_now(bench, longer, LEAT_STORE_COMMIT), LEAT_OK);
    memset(fake_file(&bench->world, "store/0")->now + longer->seg->file_offset + CAPACITY, 1, 100);
    struct mine *full = opened(bench, LEAT_DURABILITY_DISK);
    struct leat_entry_writer *writer = &full->writer;
    struct leat_trim trim = {.first_segment = 1};
    while ((writer->capacity - writer->used) % LEAT_ENTRY_HEADER_BYTES != LEFT)
        put(full, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    while (writer->capacity - writer->used > LEAT_ENTRY_HEADER_BYTES + LEFT)
        (void)leat_entry_seal(writer, 0);
    seal(full);
    assert_int_equal(last_prefix_id(full).bytes, CAPACITY - LEFT);
    assert_int_equal(do_now(bench, full, LEAT_STORE_COMMIT), LEAT_OK);
    reopen_without_memory(bench);
    const struct leat_found *found = found_of(bench, full);
    assert_int_equal(found->scan.bytes, CAPACITY - LEFT);
    assert_false(found->seg->integrity == LEAT_INTEGRITY_TORN);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_has_begun_with_its_whole_start_entry),
        cmocka_unit_test(row_of_a_segment_that_its_bytes_close_is_written),
        cmocka_unit_test(segment_of_a_lost_file_keeps_its_place),
        cmocka_unit_test(reservation_that_a_start_frees_is_free),
        cmocka_unit_test(segment_that_a_start_reads_is_synced),
        cmocka_unit_test(scrub_that_reads_is_due_at_no_time),
        cmocka_unit_test(start_promises_the_rows_that_it_uses),
        cmocka_unit_test(scrub_passes_over_what_is_repaired),
        cmocka_unit_test(other_bytes_of_the_same_length_are_not_taken),
        cmocka_unit_test(who_waits_for_memory_is_looked_at_soon),
        cmocka_unit_test(segment_ends_in_its_trailer),
        cmocka_unit_test(arena_is_answered_to_who_asked),
        cmocka_unit_test(arena_of_before_that_can_not_be_taken_ends_the_start),
        cmocka_unit_test(what_lies_past_a_limit_is_wanted_at_once),
        cmocka_unit_test(zeros_go_on_after_so_much_of_commits),
        cmocka_unit_test(catalogue_that_failed_is_written_no_more),
        cmocka_unit_test(end_of_a_full_segment_is_not_torn),
    };
    return cmocka_run_group_tests_name("store bounds", tests, NULL, NULL);
}
