/* SPDX-License-Identifier: Apache-2.0 */
/* The store against a small world: what a start refuses or names. */
#include "tests/store/repair_rig.h"

/* ---- what a start refuses or names ---- */
static void store_open_wrong_header_is_refused_by_name(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    struct leat_catalogue_header good, bad;
    memcpy(&good, file->now, sizeof good);
    struct {
        size_t at;
        leat_err rc;
    } cases[] = {{offsetof(struct leat_catalogue_header, magic), LEAT_E_DAMAGED},
                 {offsetof(struct leat_catalogue_header, version), LEAT_E_UNSUPPORTED},
                 {offsetof(struct leat_catalogue_header, row_count), LEAT_E_DAMAGED}};
    struct leat_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bad = good;
        ((uint8_t *)&bad)[cases[i].at] ^= 0x10;
        memcpy(file->now, &bad, sizeof bad);
        assert_int_equal(bench_open(bench, &error), cases[i].rc);
        assert_true(error.text[0]);
    }
    memcpy(file->now, &good, sizeof good);
    struct leat_store_options options = options_of();
    options.cluster_id[0] ^= 1;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, &error),
                     LEAT_E_WRONG_CLUSTER);
    snprintf(file->name, sizeof file->name, "elsewhere");
    assert_int_equal(bench_open(bench, &error), LEAT_E_DAMAGED);
    snprintf(file->name, sizeof file->name, "catalogue");
    assert_int_equal(bench_open(bench, &error), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    assert_int_equal(complaint_count(bench->store), 0);
    bench_free(bench);
}

static void store_open_damaged_row_is_named_and_its_place_kept(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_int_equal(do_now(bench, other, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_kill(&bench->world);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    uint8_t *row = file->now + 4096 + mine->seg->row * (size_t)LEAT_ROW_BYTES;
    const struct leat_file *place = mine->seg->file;
    uint64_t at = mine->seg->file_offset;
    row[60] ^= 1;
    bench_drop_store(bench);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(complaint_count(bench->store), 2);
    assert_null(found_of(bench, mine));
    assert_int_equal(found_of(bench, other)->kind, LEAT_FOUND_MARK);
    leat_store_found_done(bench->store);
    for (int i = 0; i < 70; i++) {
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        assert_int_equal(more->rc, LEAT_OK);
        assert_false(more->seg->file == place && more->seg->file_offset == at);
    }
    row[60] ^= 1;
    reopen(bench, false);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    bench_free(bench);
}

/* Its checksum is right, and what it says can't be: a place that no segment is given, memory that wraps. */
static void store_open_row_that_cannot_be_is_damaged(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(15);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, other, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_kill(&bench->world);
    uint32_t number = mine->seg->row;
    bench_drop_store(bench);
    size_t at = LEAT_BLOCK_BYTES + number * (size_t)LEAT_ROW_BYTES;
    struct leat_row good, bad;
    memcpy(&good, fake_file(&bench->world, "catalogue")->now + at, sizeof good);
    assert_true(good.flags & LEAT_ROW_IN_POOL);
    for (unsigned i = 0; i < 6; i++) {
        bad = good;
        if (i == 5) bad.slot_file = LEAT_STORE_FILES_MAX;
        if (i == 0) bad.durability = LEAT_DURABILITY_DISK + 1;
        if (i == 1) bad.capacity = 2 * LEAT_SLOT_UNIT_BYTES;
        if (i == 1) bad.slot_unit = LEAT_STORE_FILE_BYTES / LEAT_SLOT_UNIT_BYTES - 1;
        if (i == 2) bad.slot_unit = LEAT_STORE_FILE_BYTES / LEAT_SLOT_UNIT_BYTES;
        if (i == 3 || i == 4) bad.pool_at = UINT64_MAX - LEAT_SLOT_UNIT_BYTES + 1;
        if (i == 4) bad.flags |= LEAT_ROW_REPLICA; /* which is copied from there before all else */
        leat_row_seal(&bad, number);
        memcpy(fake_file(&bench->world, "catalogue")->now + at, &bad, sizeof bad);
        assert_int_equal(bench_open(bench, NULL), LEAT_OK);
        assert_true(complaint_count(bench->store) > 0);
        const struct leat_found *found = found_of(bench, mine);
        assert_true(i == 3 ? found && found->kind == LEAT_FOUND_LOST : found == NULL);
        assert_int_equal(found_of(bench, other)->kind, LEAT_FOUND_MARK);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        memcpy(fake_file(&bench->world, "catalogue")->now + at, &good, sizeof good);
    }
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    bench_free(bench);
}

/* One chunk more than the header promises is what a crash leaves; no run can have written more, so a longer file is not
 * read. */
static void store_open_catalogue_longer_than_it_can_be_is_refused(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    const uint64_t own = file->bytes;
    const uint64_t chunk = LEAT_STORE_ROWS_PER_CHUNK * (uint64_t)LEAT_ROW_BYTES;
    struct leat_error error;
    file->bytes = own + chunk + 1;
    assert_int_equal(bench_open(bench, &error), LEAT_E_DAMAGED);
    assert_non_null(strstr(error.text, "longer than it can be"));
    file->bytes = UINT64_C(1) << 40;
    assert_int_equal(bench_open(bench, &error), LEAT_E_DAMAGED);
    file->bytes = own;
    assert_int_equal(bench_open(bench, &error), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    bench_free(bench);
}

/* Each crash while the file grows leaves a chunk more; what is there at a start is in the header from then on. */
static void store_open_catalogue_of_many_crashes_is_taken(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    const uint64_t chunk = LEAT_STORE_ROWS_PER_CHUNK * (uint64_t)LEAT_ROW_BYTES;
    for (int i = 0; i < 3; i++) {
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_file *file = fake_file(&bench->world, "catalogue");
        const struct leat_disk *disk = bench->world.env.disk;
        assert_int_equal(disk->allocate(disk->ctx, file, file->bytes + chunk), LEAT_OK);
        assert_int_equal(bench_open(bench, NULL), LEAT_OK);
        assert_int_equal(complaint_count(bench->store), 0);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    }
    bench_free(bench);
}

static void store_open_truncated_files_are_named(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(10);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *in_memory = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "store/0");
    uint64_t bytes = file->bytes;
    file->bytes = 0;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_LOST);
    assert_int_equal(found_of(bench, in_memory)->kind, LEAT_FOUND_MARK);
    assert_int_equal(complaint_count(bench->store), 1);
    bench_drop_store(bench);
    file->bytes = bytes;
    file = fake_file(&bench->world, "catalogue");
    file->bytes = 4096 + 1024;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_MARK);
    assert_true(complaint_count(bench->store) >= 1);
    bench_free(bench);
}

/* One flipped bit anywhere in the acked bytes of an open segment: the damage is named, and the replica never gets
 * shorter. */
static void store_open_flipped_bit_is_damage_not_a_torn_tail(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(11);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    for (int i = 0; i < 3; i++) {
        assert_true(write_some(mine, 5));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    }
    /* Another round carries the row that says OPEN. */
    (void)opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 1));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    uint8_t *bytes = fake_file(&bench->world, "store/0")->now + mine->seg->file_offset;
    uint32_t acked = mine->prefix_ids[mine->prefix_id_count - 2].bytes;
    unsigned lost = 0, shorter = 0;
    for (uint32_t i = 0; i < acked; i += 3) {
        bytes[i] ^= 4;
        reopen_without_memory(bench);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        if (found->kind == LEAT_FOUND_LOST)
            lost++;
        else
            shorter++;
        bytes[i] ^= 4;
    }
    /* A flip in an entry's header breaks the chain, which alone looks like a torn tail: the row
     * tells. */
    assert_true(lost > 0);
    assert_int_equal(shorter, 0);
    bench_free(bench);
}

static const struct leat_found *mark_of(struct bench *bench, const struct mine *mine)
{
    const struct leat_found *found = found_of(bench, mine);
    assert_non_null(found);
    assert_int_equal(found->kind, LEAT_FOUND_MARK);
    return found;
}

/* No later entry names the last entries: a flip in these leaves a shorter prefix, which must never pass for a prefix
 * without bytes after it; not at a later start either. */
static void store_open_flipped_bit_in_what_came_last_leaves_a_torn_end(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(13);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    uint32_t from = last_prefix_id(mine).bytes;
    assert_true(write_some(mine, 3));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    uint32_t to = last_prefix_id(mine).bytes;
    uint64_t place = mine->seg->file_offset; /* the segment goes with the store that was open */
    reopen(bench, false);
    assert_false(mark_of(bench, mine)->seg->integrity == LEAT_INTEGRITY_TORN);
    assert_int_equal(mark_of(bench, mine)->scan.bytes, to);
    assert_int_equal(mark_of(bench, mine)->behind_bytes, 0);
    unsigned torn = 0, exact = 0;
    for (uint32_t i = from; i < to; i++) {
        for (unsigned bit = 0; bit < 8; bit += 3) {
            bit_flip(bench, place + i, bit);
            reopen_without_memory(bench);
            const struct leat_found *found = found_of(bench, mine);
            assert_non_null(found);
            if (found->kind == LEAT_FOUND_MARK) {
                assert_true(found->seg->integrity == LEAT_INTEGRITY_TORN &&
                            found->scan.bytes == from);
                assert_true(found->behind_bytes > 0);
                exact += found->behind_bytes == to - from;
                torn++;
            }
            bit_flip(bench, place + i, bit);
        }
    }
    assert_true(torn > 0 && exact > torn * 3 / 4); /* but where a header's length was hit */
    bit_flip(bench, place + to - 1, 0);
    bit_flip(bench, place + to - 40, 0);
    reopen_without_memory(bench);
    leat_store_found_hibernate(bench->store, mark_of(bench, mine));
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    reopen(bench, true);
    assert_int_equal(mark_of(bench, mine)->seg->state, LEAT_SEGMENT_HIBERNATED);
    assert_true(mark_of(bench, mine)->seg->integrity == LEAT_INTEGRITY_TORN);
    bench_free(bench);
}

/* The memory of a killed server has what came last as it was: the file gets it from there, wherever the bit has
 * flipped. */
static void store_open_flipped_bit_comes_from_memory_that_survived(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(14);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    for (int i = 0; i < 3; i++) {
        assert_true(write_some(mine, 3));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    }
    uint32_t to = last_prefix_id(mine).bytes;
    uint64_t place = mine->seg->file_offset;
    for (uint32_t i = 0; i < to; i += 7) {
        bit_flip(bench, place + i, i % 8);
        reopen(bench, false);
        assert_int_equal(mark_of(bench, mine)->scan.bytes, to);
        assert_false(mark_of(bench, mine)->seg->integrity == LEAT_INTEGRITY_TORN);
    }
    reopen_without_memory(bench);
    assert_int_equal(mark_of(bench, mine)->scan.bytes, to); /* it is in the file */
    assert_false(mark_of(bench, mine)->seg->integrity == LEAT_INTEGRITY_TORN);
    bench_free(bench);
}

static void store_scrub_names_damage_in_closed_segments(void **state)
{
    (void)state;
    struct bench *bench = bench_new(12);
    struct leat_store_options options = options_of();
    options.scrub_bytes_per_second = 1024 * 1024;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->store_port = leat_store_port(bench->store);
    leat_store_found_done(bench->store);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 5000000);
    assert_int_equal(complaint_count(bench->store), 0);
    mine->seg->buffer[40] ^= 1; /* else memory had them */
    /* Once, however often it is found; and once more when it was well in between. */
    for (unsigned damages = 1; damages <= 2; damages++) {
        fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 40] ^= 1;
        fake_pass(&bench->world, 5000000);
        assert_int_equal(complaint_count(bench->store), damages);
        fake_file(&bench->world, "store/0")->now[mine->seg->file_offset + 40] ^= 1;
        fake_pass(&bench->world, 5000000);
        assert_int_equal(complaint_count(bench->store), damages);
    }
    bench_free(bench);
}

/* Goal: each start reports a file that was missing once, until its bytes are back. */
static void store_open_tells_again_of_what_was_missing(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(21);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40));
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 10000000);
    uint8_t copy[16384];
    memcpy(copy, in_file(bench, mine), 16384);
    uint64_t place = mine->seg->file_offset;
    memset(fake_file(&bench->world, "store/0")->now + place, 0, 16384);
    fake_file(&bench->world, "store/0")->bytes = 0;
    for (unsigned start = 0; start < 4; start++) {
        if (start == 3) memcpy(fake_file(&bench->world, "store/0")->now + place, copy, 16384);
        reopen_without_memory(bench);
        found_again(bench, mine);
        assert_true(leat_segment_is_damaged(mine->seg) == (start < 3) &&
                    complaint_count(bench->store) == (start < 3));
    }
    bench_free(bench);
}

/* Goal: how many bytes a start has passed over behind a segment's end is found by the next starts, until an operator
 * has seen it, or the segment is written on. */
static void store_open_tells_what_was_passed_over_until_it_was_seen(void **state)
{
    (void)state;
    enum { PASSED = 77 };
    struct bench *bench = bench_ready(24);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *hibernated = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40) && write_some(hibernated, 4));
    assert_int_equal(do_now(bench, hibernated, LEAT_STORE_COMMIT), LEAT_OK);
    hibernated->seg->passed_bytes = PASSED;
    assert_int_equal(do_now(bench, hibernated, LEAT_STORE_HIBERNATE), LEAT_OK);
    assert_int_equal(do_now(bench, hibernated, LEAT_STORE_RESUME), LEAT_OK);
    assert_int_equal(hibernated->seg->passed_bytes, 0);
    write_close(mine);
    mine->seg->passed_bytes = PASSED;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 10000000);
    for (unsigned start = 0; start < 4; start++) {
        reopen_without_memory(bench);
        found_again(bench, mine);
        assert_int_equal(mine->seg->passed_bytes, start < 2 ? PASSED : 0);
        if (start != 1) continue;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_GIVE_UP), LEAT_OK); /* of something else */
        assert_int_equal(mine->seg->passed_bytes, PASSED);
        mine->seg->passed_bytes = 0;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_GIVE_UP), LEAT_OK);
        assert_int_equal(mine->seg->passed_bytes, 0);
    }
    bench_free(bench);
}

/* Goal: the bytes of a segment are only in the memory of a killed server: the memory is used where it ends as the row
 * says and begins as that segment; else the segment waits for another node's copy. */
static void store_open_memory_of_another_segment_is_not_taken_for_one(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 3; row++) {
        struct bench *bench = bench_ready(80 + row);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_true(write_some(mine, 40));
        write_close(mine);
        struct leat_segment_header *header = (void *)(mine->seg->buffer + LEAT_ENTRY_HEADER_BYTES);
        struct leat_entry *trailer = (void *)(mine->seg->buffer + last_prefix_id(mine).bytes);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        if (row == 1) trailer[-1].crc ^= 1;
        if (row == 2) header->stream++;
        reopen(bench, false);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, row == 0 ? LEAT_FOUND_CLOSED : LEAT_FOUND_LOST);
        assert_int_equal(leat_segment_is_damaged(found->seg), row != 0);
        bench_free(bench);
    }
}

/* Goal: a file that lost its end while the disk is full is not given up: what is in it is written on, nothing gets a
 * place in it, and what its end had is repaired once there is space, without another start. */
static void store_open_that_finds_no_space_for_a_files_end_goes_on_later(void **state)
{
    (void)state;
    for (unsigned made_first = 0; made_first < 2; made_first++) {
        struct bench *bench = bench_ready(80 + made_first);
        struct mine *front = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *gone = opened(bench, LEAT_DURABILITY_DISK);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        uint64_t free_place = gone->seg->file_offset;
        assert_int_equal(do_now(bench, gone, LEAT_STORE_DROP), LEAT_OK);
        assert_true(write_some(mine, 40));
        write_close(mine);
        uint32_t bytes = last_prefix_id(mine).bytes;
        uint8_t *copy = aligned_alloc(4096, 16384);
        memset(copy, 0, 16384);
        memcpy(copy, mine->seg->buffer, bytes);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        assert_int_equal(do_now(bench, front, LEAT_STORE_HIBERNATE), LEAT_OK);
        fake_pass(&bench->world, 1000000);
        uint64_t place = mine->seg->file_offset;
        assert_true(front->seg->file_offset < free_place && free_place < place);
        bench_drop_store(bench);
        struct leat_file *file = fake_file(&bench->world, "store/0");
        file->bytes = file->durable_bytes = free_place;
        memset(file->now + place, 0, 16384);
        bench->world.space_bytes = 1;
        assert_int_equal(bench_open(bench, NULL), LEAT_OK);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_CLOSED);
        assert_true(leat_segment_is_damaged(found_of(bench, mine)->seg));
        assert_int_equal(found_of(bench, front)->kind, LEAT_FOUND_MARK);
        mine->seg = found_of(bench, mine)->seg;
        front->seg = found_of(bench, front)->seg;
        leat_store_found_done(bench->store);
        mine->busy = front->busy = false;
        assert_int_equal(do_now(bench, front, LEAT_STORE_RESUME), LEAT_OK);
        assert_true(write_some(front, 4));
        assert_int_equal(do_now(bench, front, LEAT_STORE_COMMIT), LEAT_OK);
        assert_int_equal(repaired(bench, mine, copy), LEAT_E_DISK_FULL);
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        assert_int_equal(more->rc, LEAT_E_DISK_FULL);
        bench->world.space_bytes = 0;
        if (made_first) {
            more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
            fake_settle(&bench->world);
            assert_int_equal(more->rc, LEAT_OK);
            assert_true(more->seg->file_number != 0 || more->seg->file_offset != place);
        }
        assert_int_equal(repaired(bench, mine, copy), LEAT_OK);
        reopen(bench, true);
        assert_int_equal(found_of(bench, mine)->kind, LEAT_FOUND_CLOSED);
        assert_memory_equal(fake_file(&bench->world, "store/0")->now + place, copy, bytes);
        free(copy);
        bench_free(bench);
    }
}

/* Goal: slots that rows claim in a file that is gone and can't be made are given to no other segment. */
static void store_open_waits_for_a_file_that_can_not_be_made(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(90);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40));
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 1000000);
    uint64_t place = mine->seg->file_offset;
    bench_drop_store(bench);
    assert_int_equal(bench->world.disk.remove(bench->world.disk.ctx, "store/0"), LEAT_OK);
    bench->world.no_dirs = true;
    struct leat_error error = {0};
    assert_int_equal(bench_open(bench, &error), LEAT_E_NO_MEMORY);
    assert_non_null(strstr(error.text, "cannot open the store"));
    bench->world.no_dirs = false;
    bench_drop_store(bench);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_true(leat_segment_is_damaged(found_of(bench, mine)->seg));
    leat_store_found_done(bench->store);
    for (int i = 0; i < 8; i++) {
        const struct mine *more = opened(bench, LEAT_DURABILITY_DISK);
        assert_true(more->seg->file_number != 0 || more->seg->file_offset != place);
    }
    bench_free(bench);
}

/* Goal: where the file of the highest number is there, the start, the flush of a segment and the end of the store look
 * at each file of the table, and at nothing behind the table: a sanitizer sees that. */
static void store_open_with_the_last_file_looks_at_no_other(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(91);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    fake_kill(&bench->world);
    /* A damaged row: what is free in the files is taken out of use. */
    uint8_t *row = fake_file(&bench->world, "catalogue")->now + LEAT_BLOCK_BYTES +
                   mine->seg->row * (size_t)LEAT_ROW_BYTES;
    row[60] ^= 1;
    bench_drop_store(bench);
    const struct leat_disk *disk = &bench->world.disk;
    struct leat_file *last = NULL;
    assert_int_equal(
        disk->open(disk->ctx, "store/4095", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &last, NULL),
        LEAT_OK);
    assert_int_equal(disk->allocate(disk->ctx, last, LEAT_SLOT_UNIT_BYTES), LEAT_OK);
    disk->close(disk->ctx, last);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(bench->store->slots.count, LEAT_STORE_FILES_MAX);
    assert_null(found_of(bench, mine));
    leat_store_found_done(bench->store);
    const struct leat_store_file *file = bench->store->slots.files[LEAT_STORE_FILES_MAX - 1];
    assert_int_equal(file->grown_units, 1);
    assert_int_equal(file->buddy.free_units, 0);
    struct mine *more = opened(bench, LEAT_DURABILITY_MEMORY);
    assert_true(write_some(more, 3));
    write_close(more);
    assert_int_equal(do_now(bench, more, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 1000000);
    assert_int_equal(leat_held_of(more->seg)->where, LEAT_HELD_CACHED);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_open_wrong_header_is_refused_by_name),
        cmocka_unit_test(store_open_damaged_row_is_named_and_its_place_kept),
        cmocka_unit_test(store_open_row_that_cannot_be_is_damaged),
        cmocka_unit_test(store_open_catalogue_longer_than_it_can_be_is_refused),
        cmocka_unit_test(store_open_catalogue_of_many_crashes_is_taken),
        cmocka_unit_test(store_open_truncated_files_are_named),
        cmocka_unit_test(store_open_flipped_bit_is_damage_not_a_torn_tail),
        cmocka_unit_test(store_open_flipped_bit_comes_from_memory_that_survived),
        cmocka_unit_test(store_open_flipped_bit_in_what_came_last_leaves_a_torn_end),
        cmocka_unit_test(store_scrub_names_damage_in_closed_segments),
        cmocka_unit_test(store_open_tells_again_of_what_was_missing),
        cmocka_unit_test(store_open_tells_what_was_passed_over_until_it_was_seen),
        cmocka_unit_test(store_open_memory_of_another_segment_is_not_taken_for_one),
        cmocka_unit_test(store_open_that_finds_no_space_for_a_files_end_goes_on_later),
        cmocka_unit_test(store_open_waits_for_a_file_that_can_not_be_made),
        cmocka_unit_test(store_open_with_the_last_file_looks_at_no_other),
    };
    return cmocka_run_group_tests_name("store open", tests, NULL, NULL);
}
