/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas of replicas: buffers of writers elsewhere, and what a start makes of them. */
#include "tests/store/side.h"

/* Goal: a buffer for one-sided writes has only zeros when it is given out, also where another segment has used the
 * place. */
static void arena_buffers_are_zero_when_handed_out(void **state)
{
    (void)state;
    struct side side;
    side_init(&side, bench_ready(1), 1);
    side_add(&side);
    for (int i = 0; i < 3; i++) {
        struct mine *mine = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
        assert_ptr_equal(mine->seg->buffer, side.arena.base); /* the same place each time */
        for (uint32_t at = 0; at < mine->seg->capacity; at++)
            assert_int_equal(mine->seg->buffer[at], 0);
        memset(mine->seg->buffer, 0xaa, mine->seg->capacity);
        assert_int_equal(do_now(side.bench, mine, LEAT_STORE_DROP), LEAT_OK);
    }
    side_fini(&side);
}

/* Goal: a full arena refuses at once, leaves nothing behind, and serves again when one has gone. */
static void arena_full_refuses_at_once_and_keeps_no_state(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(2);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *first = NULL;
    for (unsigned i = 0; i < ARENA / LEAT_SEGMENT_BYTES_MAX; i++) {
        struct mine *mine = &bench->mine[bench->count++];
        *mine = (struct mine){.log = {5, 0, 0}, .id = {i}, .epoch = {3}, .durability = 1};
        mine->req.capacity = LEAT_SEGMENT_BYTES_MAX;
        assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESERVE, 1, false), LEAT_OK);
        if (!first) first = mine;
    }
    struct leat_store_usage before, after;
    leat_store_usage(bench->store, &before);
    uint64_t now_us = bench->world.now_us;
    struct mine *late = &bench->mine[bench->count++];
    *late = (struct mine){.log = {5, 0, 0}, .id = {99}, .epoch = {3}, .durability = 1};
    late->req.capacity = LEAT_SEGMENT_BYTES_MIN;
    assert_int_equal(replica_ask(&side, late, LEAT_STORE_RESERVE, 1, false), LEAT_E_NO_MEMORY);
    assert_int_equal(bench->world.now_us, now_us);
    leat_store_usage(bench->store, &after);
    assert_int_equal(after.segments, before.segments);
    assert_int_equal(after.arenas_used, ARENA);
    assert_int_equal(do_now(bench, first, LEAT_STORE_DROP), LEAT_OK);
    assert_int_equal(replica_ask(&side, late, LEAT_STORE_RESERVE, 1, false), LEAT_OK);
    side_fini(&side);
}

/* Goal: an arena that got no memory when it was made gets it when there is some again, though nobody
 * asks for anything meanwhile. */
static void arena_without_memory_asks_again(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(2);
    side_init(&side, bench, 1);
    side.grows_max = 0;
    side_add(&side);
    assert_int_equal(side.arena.grown_bytes, 0);
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {5, 0, 0}, .id = {1}, .epoch = {3}, .durability = 1};
    mine->req.capacity = LEAT_SEGMENT_BYTES_MIN;
    assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESERVE, 1, false), LEAT_E_NO_MEMORY);
    side.grows_max = 1;
    uint64_t until_us = bench->world.now_us + LEAT_STORE_GROW_RETRY_US + 1000000;
    while (side.arena.grown_bytes == 0 && bench->world.wake_at_us < until_us) {
        bench->world.now_us = bench->world.wake_at_us;
        leat_store_actor.on_wake(bench->store);
        leat_store_actor.on_turn_end(bench->store);
        fake_settle(&bench->world);
    }
    assert_int_equal(side.arena.grown_bytes, ARENA);
    assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESERVE, 1, false), LEAT_OK);
    side_fini(&side);
}

/* Goal: a pool that is used for the first time, and little, does not grow ahead of that use at once, when all
 * nodes may have better to do; it does some time later, though nobody asks for anything meanwhile. */
static void pool_grows_ahead_of_its_first_use_some_time_later(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(2);
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    assert_int_equal(bench->world.arena.grown_bytes, LEAT_ARENA_STEP_BYTES);
    (void)reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
    fake_settle(&bench->world);
    assert_int_equal(bench->world.arena.grown_bytes, LEAT_ARENA_STEP_BYTES);
    uint64_t used_us = bench->world.now_us;
    while (bench->world.arena.grown_bytes == LEAT_ARENA_STEP_BYTES &&
           bench->world.wake_at_us < used_us + 2 * (uint64_t)LEAT_STORE_GROW_FIRST_US) {
        bench->world.now_us = bench->world.wake_at_us;
        leat_store_actor.on_wake(bench->store);
        leat_store_actor.on_turn_end(bench->store);
        fake_settle(&bench->world);
    }
    assert_int_equal(bench->world.arena.grown_bytes, 2 * LEAT_ARENA_STEP_BYTES);
    assert_in_range(bench->world.now_us - used_us, LEAT_STORE_GROW_FIRST_US,
                    LEAT_STORE_GROW_FIRST_US + 1000000);
    bench_free(bench);
}

/* Goal: a store that has nothing to do asks for no turn: a step that is not needed any more is not waited for. */
static void pool_that_is_given_back_all_waits_for_nothing(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(2);
    leat_store_actor.on_turn_end(bench->store);
    fake_settle(&bench->world);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
    fake_settle(&bench->world);
    /* It is behind, and waits for its first step ahead. */
    assert_true(bench->world.wake_at_us <= bench->world.now_us + LEAT_STORE_GROW_FIRST_US);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
    uint64_t until_us = bench->world.now_us + 2 * (uint64_t)LEAT_STORE_GROW_FIRST_US;
    unsigned wakes = 0;
    while (bench->world.wake_at_us <= until_us && ++wakes < 100) {
        if (bench->world.wake_at_us > bench->world.now_us)
            bench->world.now_us = bench->world.wake_at_us;
        leat_store_actor.on_wake(bench->store);
        leat_store_actor.on_turn_end(bench->store);
        fake_settle(&bench->world);
    }
    assert_in_range(wakes, 0, 8);
    assert_int_equal(bench->world.arena.grown_bytes, LEAT_ARENA_STEP_BYTES);
    bench_free(bench);
}

/* Goal: after a kill an open replica is a mark as long as its memory said, with its stamp, and what
 * a writer that knows nothing of the start puts there afterwards changes nothing. */
static void start_hibernates_open_replicas_from_a_private_copy(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct side side;
        struct bench *bench = bench_ready(3);
        side_init(&side, bench, 1);
        side_add(&side);
        struct mine *mine = replica_opened(&side, (enum leat_durability)level, false);
        if (level == LEAT_DURABILITY_DISK)
            assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        mine->req.capacity = 65536;
        assert_int_equal(replica_ask(&side, mine, LEAT_STORE_STAMP, 9, false), LEAT_OK);
        struct leat_prefix_id prefix_id = last_prefix_id(mine);
        reopen_with(bench, &side);
        memset(side.arena.base, 0x55, ARENA); /* the zombie */
        size_t count;
        assert_int_equal(found_count(bench), 0);
        const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
        assert_int_equal(count, 1);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->seg->state, LEAT_SEGMENT_HIBERNATED);
        assert_int_equal(found->seg->version, 9);
        assert_int_equal(found->seg->epoch.v, 3);
        assert_int_equal(found->seg->writer, 77);
        assert_int_equal(found->scan.bytes, prefix_id.bytes);
        assert_int_equal(found->scan.crc, prefix_id.crc);
        /* It is in the file, durably: a power cut now takes nothing. */
        fake_power_cut(&bench->world);
        bench_drop_store(bench);
        assert_int_equal(bench_open(bench, NULL), LEAT_OK);
        found = leat_store_found_replicas(bench->store, &count);
        assert_int_equal(count, 1);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, prefix_id.bytes);
        side_fini(&side);
    }
}

/* Goal: an incomplete replica is never taken for a whole replica. */
static void start_frees_incomplete_replicas_and_reservations(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(4);
    side_init(&side, bench, 1);
    side_add(&side);
    (void)replica_opened(&side, LEAT_DURABILITY_MEMORY, true);
    (void)replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    struct mine *whole = replica_opened(&side, LEAT_DURABILITY_MEMORY, true);
    whole->req.capacity = 65536;
    assert_int_equal(replica_ask(&side, whole, LEAT_STORE_STAMP, 5, false), LEAT_OK);
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->seg->id.v, whole->id.v);
    assert_false(found->seg->incomplete);
    side_fini(&side);
}

/* Goal: a segment that no actor has since the start leaves memory after its flush, out of an arena, too. */
static void flushed_segment_without_owner_leaves_its_arena(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(12);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    mine->seg->owner_actor = LEAT_ACTORS;
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    fake_pass(&bench->world, 60000);
    assert_true(mine->seg->flushed);
    assert_null(mine->seg->buffer);
    assert_int_equal(leat_held_of(mine->seg)->where, LEAT_HELD_NOWHERE);
    side_fini(&side);
}

/* Goal: the first one-sided write of a writer that died during the write arrives in part. Such bytes are a reservation;
 * the same bytes are damage in a segment with acked entries. A whole header that says something else is no part of a
 * write: damage, too. */
static void start_tells_a_torn_first_write_from_a_damaged_header(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(11);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *torn = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    write_header(torn);
    write_start(torn);
    torn->seg->buffer[128] ^= 1; /* in the header's payload, behind its ids */
    struct mine *damaged = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    damaged->committed_bytes = last_prefix_id(damaged).bytes;
    assert_true(write_some(damaged, 20)); /* its trailer says that what was before is acked */
    damaged->seg->buffer[128] ^= 1;
    struct leat_scan scan;
    leat_scan_segment(damaged->seg->buffer, damaged->seg->capacity, &scan);
    assert_true(!scan.has_header && scan.acked_bytes > 0);
    struct mine *other = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    struct leat_segment_header header = header_of(other, other->seg->capacity / 2);
    leat_entry_writer_init(&other->writer, other->seg->buffer, other->seg->capacity);
    put(other, LEAT_ENTRY_SEGMENT, &header, sizeof header);
    write_start(other);
    leat_scan_segment(other->seg->buffer, other->seg->capacity, &scan);
    assert_true(scan.has_header && scan.acked_bytes == 0);
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].kind, LEAT_FOUND_LOST);
        assert_int_equal(found[i].seg->id.v, (i ? other : damaged)->id.v);
    }
    side_fini(&side);
}

/* Goal: another segment's bytes in a replica's memory are not put into the replica's place. */
static void start_puts_no_others_bytes_into_a_replicas_place(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(14);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_new(&side, LEAT_DURABILITY_MEMORY, false);
    struct mine another = *mine;
    another.log.log++;
    write_header(&another);
    write_start(&another);
    assert_true(write_some(&another, 5));
    uint64_t at = mine->seg->file_offset;
    reopen_with(bench, &side);
    size_t count;
    (void)leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 0); /* nothing of it came: it had not begun */
    static const uint8_t zeros[4096];
    assert_memory_equal(fake_file(&bench->world, "store/0")->now + at, zeros, sizeof zeros);
    side_fini(&side);
}

/* Goal: a start tells of this node's own segments and of replicas apart, whichever logs they are of. */
static void start_tells_replicas_from_own_segments(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(15);
    side_init(&side, bench, 1);
    side_add(&side);
    for (unsigned i = 0; i < 3; i++) {
        struct mine *own =
            &bench->mine[bench->count++]; /* before, at and behind the replicas' log */
        *own = (struct mine){.log = {4 + i, 0, 0},
                             .id = {100 + i},
                             .epoch = {3},
                             .durability = LEAT_DURABILITY_DISK};
        own->req.capacity = 16384;
        assert_int_equal(do_now(bench, own, LEAT_STORE_RESERVE), LEAT_OK);
        write_header(own);
        write_start(own);
        assert_int_equal(do_now(bench, own, LEAT_STORE_COMMIT), LEAT_OK);
        (void)replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    }
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    assert_int_equal(count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(found[i].seg->role, LEAT_SEGMENT_OWN);
        assert_int_equal(found[i].seg->log.stream, 4 + i);
    }
    found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(found[i].seg->role, LEAT_SEGMENT_REPLICA);
    side_fini(&side);
}

/* Goal: a replica that its bytes close is closed, in the file by then, though its row does not say so. */
static void start_closes_replicas_that_their_bytes_close(void **state)
{
    (void)state;
    for (unsigned level = 0; level < 2; level++) {
        struct side side;
        struct bench *bench = bench_ready(16 + level);
        side_init(&side, bench, 1);
        side_add(&side);
        struct mine *mine =
            replica_opened(&side, level ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY, false);
        write_close(mine);
        if (level) assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        uint32_t number = mine->seg->row;
        reopen_with(bench, &side);
        size_t count;
        const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
        assert_int_equal(count, 1);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->state, LEAT_SEGMENT_CLOSED);
        assert_true(found->seg->flushed);
        const struct leat_row *row = leat_catalogue_row(&bench->store->cat, number);
        assert_int_equal(row->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(row->flags, LEAT_ROW_FLUSHED | LEAT_ROW_REPLICA);
        side_fini(&side);
    }
}

/* Goal: the bytes of arenas that are in no file are counted while that is so: not after a flush, after a drop, or in a
 * segment that stays in memory for good. */
static void arena_counts_what_is_in_no_file(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        struct side side;
        struct bench *bench = bench_ready(18 + fails);
        side_init(&side, bench, 1);
        side_add(&side);
        struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        assert_int_equal(bench->store->arenas_dirty, mine->seg->capacity);
        if (fails) bench->world.fail_at = bench->world.op_count + 1;
        fake_pass(&bench->world, 100000);
        assert_int_equal(leat_held_of(mine->seg)->where, fails ? LEAT_HELD_STUCK : LEAT_HELD_KEPT);
        assert_int_equal(bench->store->arenas_dirty, 0);
        if (!fails) assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
        assert_int_equal(bench->store->arenas_dirty, 0);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        assert_int_equal(bench->store->arenas_dirty, 0);
        assert_int_equal(side.add.added->pool.leaving_bytes, 0);
        side_fini(&side);
    }
}

/* Goal: a segment that moves out of an arena is not counted among the bytes that leave the arena, at whatever moment it
 * moves. */
static void arena_counts_nothing_of_what_moved(void **state)
{
    (void)state;
    for (unsigned kept = 0; kept < 2; kept++) {
        struct side side;
        struct bench *bench = bench_ready(21 + kept);
        side_init(&side, bench, 1);
        side_add(&side);
        struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
        const struct leat_pool *pool = &side.add.added->pool;
        if (kept) {
            write_close(mine);
            assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
            fake_pass(&bench->world, 100000);
            assert_int_equal(pool->leaving_bytes, mine->seg->capacity);
        }
        uint32_t given = bench->store->pool.given;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_MOVE), LEAT_OK);
        assert_ptr_equal(leat_held_of(mine->seg)->pool, &bench->store->pool);
        assert_int_equal(pool->leaving_bytes, 0);
        assert_int_equal(pool->given, 0);
        assert_int_equal(bench->store->pool.given, given + 1);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        assert_int_equal(pool->leaving_bytes, 0);
        assert_int_equal(bench->store->pool.given, given);
        side_fini(&side);
    }
}

/* Goal: flushed bytes are synced at once where an arena has hardly any free memory. */
static void arena_that_is_short_has_flushes_synced(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(20);
    struct leat_store *store = bench->store;
    side_init(&side, bench, 1);
    side_add(&side);
    struct leat_held held;
    assert_int_equal(side.add.added->pool.ahead_bytes, LEAT_ARENA_STEP_BYTES / 4);
    for (unsigned used = 1; used <= 7; used++) {
        struct mine *mine = &bench->mine[bench->count++];
        *mine = (struct mine){.log = {5, 0, 0}, .id = {used}, .epoch = {3}, .durability = 1};
        mine->req.capacity = LEAT_SEGMENT_BYTES_MAX;
        assert_int_equal(replica_ask(&side, mine, LEAT_STORE_RESERVE, 1, false), LEAT_OK);
        store->flush_written = store->flush_in_flight = 1;
        store->flushing = &held;
        assert_int_equal(leat_flush_sync_due(store), used > 6);
        store->flush_written = store->flush_in_flight = 0;
        store->flushing = NULL;
    }
    side_fini(&side);
}

/* Goal: this node wrote the bytes of a file itself, in order, and synced them before the answer: so at level `disk` a
 * header with its ids and a wrong checksum is damage. */
static void start_calls_no_damaged_header_in_a_file_torn(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(13);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_new(&side, LEAT_DURABILITY_DISK, false);
    write_header(mine);
    mine->prefix_id_count = 1;
    mine->prefix_ids[0] = (struct leat_prefix_id){mine->writer.used, 0};
    mine->seg->buffer[128] ^= 1;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found[0].kind, LEAT_FOUND_LOST);
    assert_non_null(strstr(found[0].why, "its header does not match"));
    side_fini(&side);
}

/* Goal: an open replica of which acked bytes are damaged in memory is no shorter one: what lies in front of the damage
 * is never its log's end. */
static void start_calls_no_damaged_replica_a_shorter_one(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(12);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *mine = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    uint32_t before = last_prefix_id(mine).bytes;
    assert_true(write_some(mine, 20));
    mine->committed_bytes = last_prefix_id(mine).bytes;
    assert_true(write_some(mine, 20)); /* its trailer says that what was before is acked */
    mine->seg->buffer[before + LEAT_ENTRY_HEADER_BYTES] ^= 1;
    struct leat_scan scan;
    leat_scan_segment(mine->seg->buffer, mine->seg->capacity, &scan);
    assert_true(scan.damaged && scan.bytes == before);
    for (int start = 0; start < 2; start++) { /* nor when it starts again */
        reopen_with(bench, &side);
        size_t count;
        const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
        assert_int_equal(count, 1);
        assert_int_equal(found->kind, LEAT_FOUND_LOST);
    }
    side_fini(&side);
}

/* Goal: memory that is gone (another arena) makes a `memory` replica LOST, never shorter. */
static void start_without_the_arena_calls_open_replicas_lost(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(5);
    side_init(&side, bench, 1);
    side_add(&side);
    (void)replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    side.arena.pool_id[0] ^= 1;
    reopen_with(bench, &side);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    side_fini(&side);
}

/* Goal: a closed replica is flushed behind, from an inherited arena too; its buffer goes back when
 * its owner says so, and a retired arena is over when the last has gone. */
static void arena_retired_is_over_when_its_last_buffer_has_gone(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(6);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *open = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    struct mine *closed = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    write_close(closed);
    closed->seg->state = LEAT_SEGMENT_CLOSED;
    assert_int_equal(do_now(bench, closed, LEAT_STORE_CLOSE), LEAT_OK);
    side_retire(&side);
    assert_false(side.retired);
    fake_pass(&bench->world, 100000);
    assert_true(closed->flushed);
    assert_int_equal(do_now(bench, closed, LEAT_STORE_EVICT), LEAT_OK);
    fake_settle(&bench->world);
    assert_false(side.retired);
    /* The open one's bytes go on in the node's own pool; its old place may be scribbled on. */
    struct leat_prefix_id prefix_id = last_prefix_id(open);
    assert_int_equal(do_now(bench, open, LEAT_STORE_MOVE), LEAT_OK);
    memset(side.arena.base, 0x33, ARENA);
    fake_settle(&bench->world);
    assert_true(side.retired);
    struct leat_scan scan;
    leat_scan_segment(open->seg->buffer, open->seg->capacity, &scan);
    assert_int_equal(scan.bytes, prefix_id.bytes);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 2);
    assert_int_equal(found[0].kind, LEAT_FOUND_MARK);
    assert_int_equal(found[0].scan.bytes, prefix_id.bytes);
    assert_int_equal(found[1].kind, LEAT_FOUND_CLOSED);
    side_fini(&side);
}

static struct mine *replica_closed(struct side *side, uint32_t capacity)
{
    struct bench *bench = side->bench;
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){
        .log = {5, 0, 0}, .id = {bench->count}, .epoch = {3}, .durability = LEAT_DURABILITY_MEMORY};
    mine->req.capacity = capacity;
    assert_int_equal(replica_ask(side, mine, LEAT_STORE_RESERVE, 4, false), LEAT_OK);
    write_header(mine);
    write_start(mine);
    assert_true(write_some(mine, 20));
    write_close(mine);
    mine->seg->state = LEAT_SEGMENT_CLOSED;
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    return mine;
}

/* Goal: closed replicas wait for the delay while half of their arena is free, and those that are
 * dropped meanwhile are never written; past the half the oldest is, at once. */
static void closed_replicas_wait_until_half_of_the_arena_is_used(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(9);
    side_init(&side, bench, 1);
    side_add(&side);
    enum { CAPACITY = LEAT_SEGMENT_BYTES_MAX, HALF = ARENA / 2 / CAPACITY };
    struct mine *waiting[HALF + 1];
    struct leat_store_usage usage;
    for (unsigned i = 0; i < HALF; i++)
        waiting[i] = replica_closed(&side, CAPACITY);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.arenas_dirty, ARENA / 2);
    assert_false(waiting[0]->flushed);
    const struct leat_file *file = waiting[0]->seg->file;
    uint64_t place = waiting[0]->seg->file_offset;
    assert_int_equal(do_now(bench, waiting[0], LEAT_STORE_DROP), LEAT_OK);
    assert_true(place + LEAT_ENTRY_HEADER_BYTES <= file->room);
    for (unsigned i = 0; i < LEAT_ENTRY_HEADER_BYTES; i++)
        assert_int_equal(file->now[place + i], 0);
    waiting[0] = replica_closed(&side, CAPACITY);
    assert_false(waiting[1]->flushed);
    waiting[HALF] = replica_closed(&side, CAPACITY);
    fake_pass(&bench->world, 10000); /* of the delay's 50,000 */
    assert_true(waiting[1]->flushed);
    assert_false(waiting[HALF]->flushed);
    fake_pass(&bench->world, 200000);
    assert_true(waiting[HALF]->flushed);
    side_fini(&side);
}

static bool inherited_free;
static void on_inherited_free(void *owner, size_t index)
{
    (void)owner;
    inherited_free = index == 1;
}

/* Goal: what a start finds closed in an arena of an earlier process is flushed at once, and then the arena is told to
 * be free, by its place among all arenas. */
static void start_flushes_closed_replicas_and_lets_the_arena_go(void **state)
{
    (void)state;
    struct side side;
    struct bench *bench = bench_ready(7);
    side_init(&side, bench, 1);
    side_add(&side);
    struct mine *closed = replica_opened(&side, LEAT_DURABILITY_MEMORY, false);
    write_close(closed);
    closed->seg->state = LEAT_SEGMENT_CLOSED;
    assert_int_equal(do_now(bench, closed, LEAT_STORE_CLOSE), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    side.arena.inherited_bytes = side.arena.grown_bytes;
    struct leat_arena empty = side.arena; /* of which nothing survived */
    empty.inherited_bytes = 0;
    struct leat_arena *inherited[] = {&empty, &side.arena};
    struct leat_store_options options = options_of();
    options.inherited = inherited;
    options.inherited_count = 2;
    options.on_inherited_free = on_inherited_free;
    inherited_free = false;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    size_t count;
    const struct leat_found *found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
    leat_store_found_done(bench->store);
    fake_pass(&bench->world, 1000);
    bench->world.turn = true;
    leat_store_actor.on_turn_end(bench->store);
    fake_pass(&bench->world,
              10000); /* of the delay's 50,000, for which a writer that is gone does not wait */
    assert_true(inherited_free);
    memset(side.arena.base, 0x11, ARENA);
    fake_power_cut(&bench->world);
    bench_drop_store(bench);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    found = leat_store_found_replicas(bench->store, &count);
    assert_int_equal(count, 1);
    assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
    assert_true(found->seg->flushed);
    side_fini(&side);
}

/* Goal: a place that a row claims past the end of its file (a power cut took the growth) stays that
 * row's when the file grows again. */
static void start_place_past_the_files_end_is_not_given_to_others(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct mine *first = opened(bench, LEAT_DURABILITY_MEMORY);
    uint64_t place = first->seg->file_offset;
    fake_kill(&bench->world);
    bench_drop_store(bench);
    fake_file(&bench->world, "store/0")->bytes = 0;
    bench->world.arena.pool_id[0] ^= 1;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    const struct leat_found *found = found_of(bench, first);
    assert_non_null(found);
    assert_int_equal(found->kind, LEAT_FOUND_LOST);
    leat_store_found_done(bench->store);
    for (int i = 0; i < 8; i++) {
        struct mine *other = opened(bench, LEAT_DURABILITY_MEMORY);
        assert_int_not_equal(other->seg->file_offset, place);
    }
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_buffers_are_zero_when_handed_out),
        cmocka_unit_test(arena_full_refuses_at_once_and_keeps_no_state),
        cmocka_unit_test(arena_without_memory_asks_again),
        cmocka_unit_test(pool_grows_ahead_of_its_first_use_some_time_later),
        cmocka_unit_test(pool_that_is_given_back_all_waits_for_nothing),
        cmocka_unit_test(start_hibernates_open_replicas_from_a_private_copy),
        cmocka_unit_test(start_frees_incomplete_replicas_and_reservations),
        cmocka_unit_test(flushed_segment_without_owner_leaves_its_arena),
        cmocka_unit_test(start_tells_a_torn_first_write_from_a_damaged_header),
        cmocka_unit_test(start_puts_no_others_bytes_into_a_replicas_place),
        cmocka_unit_test(start_tells_replicas_from_own_segments),
        cmocka_unit_test(start_closes_replicas_that_their_bytes_close),
        cmocka_unit_test(arena_counts_what_is_in_no_file),
        cmocka_unit_test(arena_counts_nothing_of_what_moved),
        cmocka_unit_test(arena_that_is_short_has_flushes_synced),
        cmocka_unit_test(start_calls_no_damaged_header_in_a_file_torn),
        cmocka_unit_test(start_calls_no_damaged_replica_a_shorter_one),
        cmocka_unit_test(start_without_the_arena_calls_open_replicas_lost),
        cmocka_unit_test(arena_retired_is_over_when_its_last_buffer_has_gone),
        cmocka_unit_test(closed_replicas_wait_until_half_of_the_arena_is_used),
        cmocka_unit_test(start_place_past_the_files_end_is_not_given_to_others),
        cmocka_unit_test(start_flushes_closed_replicas_and_lets_the_arena_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
