/* SPDX-License-Identifier: Apache-2.0 */
/* The repair of a closed segment. */
#include "tests/store/repair_rig.h"

static unsigned damage_told;
static void on_damaged(void *core, struct leat_segment *seg)
{
    (void)core, (void)seg;
    damage_told++;
}

static struct bench *bench_that_scrubs(uint64_t seed)
{
    struct bench *bench = bench_new(seed);
    struct leat_store_options options = options_of();
    options.scrub_bytes_per_second = 1024 * 1024;
    options.events.on_damaged = on_damaged;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->store_port = leat_store_port(bench->store);
    leat_store_found_done(bench->store);
    return bench;
}

/* Goal: a closed segment that the scrub has found corrupt is as before once its own bytes were written over it; a
 * repair with other bytes is refused, and the slot keeps its bytes. */
static void store_repair_takes_the_segments_own_bytes_and_no_others(void **state)
{
    (void)state;
    struct bench *bench = bench_that_scrubs(14);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40));
    write_close(mine);
    uint32_t bytes = last_prefix_id(mine).bytes;
    uint8_t *copy = aligned_alloc(4096, 16384), *other = aligned_alloc(4096, 16384);
    memset(copy, 0, 16384);
    memcpy(copy, mine->seg->buffer, bytes);
    assert_int_equal(repaired(bench, mine, copy), LEAT_E_INVALID); /* it is open */
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    damage_told = 0;
    fake_pass(&bench->world, 5000000);
    assert_int_equal(damage_told, 0);
    uint64_t place = mine->seg->file_offset;
    for (uint32_t at = 0; at < bytes; at += 211) {
        bit_flip(bench, place + at, at % 8);
        unsigned before = damage_told;
        fake_pass(&bench->world, 3000000);
        assert_true(damage_told > before);
        memcpy(other, copy, 16384);
        other[at] ^= 4; /* as damaged as what is there */
        assert_int_equal(repaired(bench, mine, other), LEAT_E_INVALID);
        assert_int_not_equal(fake_file(&bench->world, "store/0")->now[place + at], copy[at]);
        assert_int_equal(repaired(bench, mine, copy), LEAT_OK);
        assert_memory_equal(fake_file(&bench->world, "store/0")->now + place, copy, bytes);
        before = damage_told;
        fake_pass(&bench->world, 3000000);
        assert_int_equal(damage_told, before);
    }
    free(copy);
    free(other);
    bench_free(bench);
}

/* Goal: the scrub says nothing of a segment whose repair began while the scrub read it, since it may have read bytes of
 * both; the repair of another segment changes nothing for the one that is read. */
static void store_repair_makes_the_scrub_look_again(void **state)
{
    (void)state;
    for (unsigned other = 0; other < 2; other++) {
        struct bench *bench = bench_that_scrubs(12 + other);
        struct leat_store *store = bench->store;
        struct mine *mine[2];
        uint8_t *copies[2];
        for (unsigned i = 0; i < 2; i++) {
            mine[i] = opened(bench, LEAT_DURABILITY_DISK);
            assert_true(write_some(mine[i], 40));
            write_close(mine[i]);
            copies[i] = aligned_alloc(4096, 16384);
            memset(copies[i], 0, 16384);
            memcpy(copies[i], mine[i]->seg->buffer, last_prefix_id(mine[i]).bytes);
            assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
        }
        bit_flip(bench, mine[0]->seg->file_offset + 100, 3);
        damage_told = 0;
        store->scrub_row = mine[0]->seg->row - 1;
        store->scrub_at_us = 0;
        leat_store_actor.on_turn_end(store);
        assert_ptr_equal(store->scrubbing, leat_held_of(mine[0]->seg));
        repair_ask(bench, mine[other], copies[other]);
        while (mine[other]->req.from_bytes == 0 && store->repairs == 0)
            assert_true(fake_event_step(&bench->world));
        fake_settle(&bench->world);
        assert_int_equal(mine[other]->rc, LEAT_OK);
        assert_int_equal(damage_told, other);
        free(copies[0]);
        free(copies[1]);
        bench_free(bench);
    }
}

/* Goal: a file that is found damaged at a start, and whole at the next, is synced before its row says that it is whole:
 * the power may go. */
static void store_repaired_by_others_is_synced(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(18);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40));
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    uint64_t place = mine->seg->file_offset + 100;
    struct leat_file *file = fake_file(&bench->world, "store/0");
    file->now[place] ^= 8;
    file->durable[place] ^= 8;
    reopen_without_memory(bench);
    found_again(bench, mine);
    assert_int_equal(repaired(bench, mine, NULL), LEAT_E_NOT_FOUND); /* its row says so by now */
    fake_kill(&bench->world);
    file->now[place] ^= 8; /* somebody has restored the file */
    file->touched[place / FAKE_SECTOR_BYTES] = 1;
    bench->world.arena.inherited_bytes = 0;
    open_again(bench);
    assert_false(leat_segment_is_damaged(found_of(bench, mine)->seg));
    assert_int_equal(file->now[place], file->durable[place]);
    bench_free(bench);
}

/* Goal: corrupt bytes in a file are no damage while memory has the right bytes: in the segment's buffer, or in its
 * former place as long as no other segment has got the place. */
static void store_repair_takes_what_memory_has(void **state)
{
    (void)state;
    struct bench *bench = bench_that_scrubs(15);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 40));
    write_close(mine);
    uint32_t bytes = last_prefix_id(mine).bytes;
    uint8_t *copy = aligned_alloc(4096, 16384);
    memcpy(copy, mine->seg->buffer, bytes);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 5000000);
    for (int evicted = 0; evicted < 2; evicted++) {
        if (evicted) assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
        damage_told = 0;
        bit_flip(bench, mine->seg->file_offset + bytes / 2, 3);
        fake_pass(&bench->world, 5000000);
        assert_true(damage_told > 0);
        assert_int_equal(complaint_count(bench->store), 0);
        assert_int_equal(repaired(bench, mine, NULL), LEAT_OK);
        assert_memory_equal(in_file(bench, mine), copy, bytes);
    }
    (void)opened(bench, LEAT_DURABILITY_DISK); /* it gets the first place that is free */
    bit_flip(bench, mine->seg->file_offset + bytes / 2, 3);
    fake_pass(&bench->world, 5000000);
    assert_int_equal(complaint_count(bench->store), 1);
    assert_int_equal(repaired(bench, mine, NULL), LEAT_E_NOT_FOUND);
    free(copy);
    bench_free(bench);
}

/* Goal: the memory of a killed server is looked into when a closed segment's file is found damaged, and not
 * before; that of a machine without power is not. */
static void store_repair_takes_what_the_memory_of_a_killed_server_has(void **state)
{
    (void)state;
    for (unsigned level = 0; level < 2; level++) {
        struct bench *bench = bench_ready(16 + level);
        struct mine *mine = opened(bench, level ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK);
        assert_true(write_some(mine, 40));
        write_close(mine);
        uint32_t bytes = last_prefix_id(mine).bytes;
        uint8_t *copy = aligned_alloc(4096, 16384);
        memcpy(copy, mine->seg->buffer, bytes);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 10000000);
        uint64_t place = mine->seg->file_offset;
        bit_flip(bench, place + bytes / 2, 3);
        for (unsigned start = 0; start < 2; start++) {
            reopen(bench, false);
            found_again(bench, mine);
            assert_int_equal(mine->seg->version, 1); /* also where the stamp has none */
            if (start == 0) assert_int_equal(do_now(bench, mine, LEAT_STORE_STAMP), LEAT_OK);
        }
        assert_int_equal(repaired(bench, mine, NULL), LEAT_OK);
        assert_memory_equal(in_file(bench, mine), copy, bytes);
        reopen_without_memory(bench);
        found_again(bench, mine);
        bit_flip(bench, place + bytes / 2, 3);
        assert_int_equal(repaired(bench, mine, NULL), LEAT_E_NOT_FOUND);
        free(copy);
        bench_free(bench);
    }
}

/* Goal: wherever a power cut interrupts the repair, the start finds a closed segment that can be repaired, and that has
 * its right bytes after the last repair. */
static void store_repair_that_the_power_ends_is_done_again(void **state)
{
    (void)state;
    for (unsigned cut = 0; cut < 8; cut++) {
        struct bench *bench = bench_ready(40 + cut);
        struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
        for (unsigned i = 0; i < 30; i++)
            assert_true(write_some(mine, 8));
        write_close(mine);
        uint32_t bytes = last_prefix_id(mine).bytes;
        uint8_t *copy = aligned_alloc(4096, 16384);
        memset(copy, 0, 16384);
        memcpy(copy, mine->seg->buffer, bytes);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 1000000);
        uint64_t place = mine->seg->file_offset;
        for (unsigned i = 0; i < 4; i++) {
            struct leat_file *file = fake_file(&bench->world, "store/0");
            file->now[place + i * bytes / 4] ^= 1;
            file->durable[place + i * bytes / 4] ^= 1;
        }
        repair_ask(bench, mine, copy);
        for (unsigned i = 0; i < cut; i++)
            fake_pass(&bench->world, 20);
        reopen(bench, true);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->prefix_id.bytes, bytes);
        mine->seg = found->seg;
        leat_store_found_done(bench->store);
        mine->busy = false;
        assert_int_equal(repaired(bench, mine, copy), LEAT_OK);
        reopen(bench, true);
        assert_memory_equal(fake_file(&bench->world, "store/0")->now + place, copy, bytes);
        free(copy);
        bench_free(bench);
    }
}

/* Goal: a closed segment whose memory was lost in a power cut before the flush has a slot for the bytes of another
 * node's copy, and is like any other segment once the bytes are there, in whichever state its row was. */
static void store_repair_writes_what_only_the_memory_had(void **state)
{
    (void)state;
    for (unsigned passes = 0; passes < 2; passes++) {
        struct bench *bench = bench_ready(60 + passes);
        struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
        for (unsigned i = 0; i < 30; i++)
            assert_true(write_some(mine, 8));
        write_close(mine);
        uint32_t bytes = last_prefix_id(mine).bytes;
        uint8_t *copy = aligned_alloc(4096, 16384);
        memset(copy, 0, 16384);
        memcpy(copy, mine->seg->buffer, bytes);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        /* It is in memory alone: nothing is to be repaired. */
        assert_int_equal(repaired(bench, mine, copy), LEAT_E_INVALID);
        /* Rows of level disk are synced, and this one with them. */
        (void)opened(bench, LEAT_DURABILITY_DISK);
        reopen(bench, true);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_LOST);
        assert_true(found->seg->integrity == LEAT_INTEGRITY_MISSING);
        assert_int_equal(found->seg->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(found->seg->prefix_id.bytes, bytes);
        mine->seg = found->seg;
        leat_store_found_done(bench->store);
        mine->busy = false;
        /* Another stamp of its row names no memory any more, and is no word of the file. */
        assert_int_equal(do_now(bench, mine, LEAT_STORE_STAMP), LEAT_OK);
        (void)opened(bench, LEAT_DURABILITY_DISK);
        reopen(bench, true);
        found = found_of(bench, mine);
        assert_non_null(found);
        assert_true(found->kind == LEAT_FOUND_LOST &&
                    found->seg->integrity == LEAT_INTEGRITY_MISSING);
        mine->seg = found->seg;
        leat_store_found_done(bench->store);
        mine->busy = false;
        copy[bytes / 2] ^= 1;
        assert_int_equal(repaired(bench, mine, copy), LEAT_E_INVALID);
        assert_true(mine->seg->integrity == LEAT_INTEGRITY_MISSING);
        copy[bytes / 2] ^= 1;
        assert_int_equal(repaired(bench, mine, copy), LEAT_OK);
        assert_true(mine->seg->integrity ==
                    LEAT_INTEGRITY_MISSING); /* the owner resets this after the answer */
        /* Its row goes with another one's write, or is what it was. */
        if (passes == 1) (void)opened(bench, LEAT_DURABILITY_DISK);
        reopen(bench, true);
        found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_true(found->seg->flushed && !leat_segment_is_damaged(found->seg));
        assert_memory_equal(fake_file(&bench->world, "store/0")->now + found->seg->file_offset,
                            copy, bytes);
        free(copy);
        bench_free(bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_repair_takes_the_segments_own_bytes_and_no_others),
        cmocka_unit_test(store_repair_makes_the_scrub_look_again),
        cmocka_unit_test(store_repaired_by_others_is_synced),
        cmocka_unit_test(store_repair_takes_what_memory_has),
        cmocka_unit_test(store_repair_takes_what_the_memory_of_a_killed_server_has),
        cmocka_unit_test(store_repair_that_the_power_ends_is_done_again),
        cmocka_unit_test(store_repair_writes_what_only_the_memory_had),
    };
    return cmocka_run_group_tests_name("store repair", tests, NULL, NULL);
}
