/* SPDX-License-Identifier: Apache-2.0 */
/* The store against a small world: requests. */
#include "base/node_log.h"
#include "tests/store/store_bench.h"

/* ---- small ones ---- */
static unsigned unpinned_count;
static void on_unpinned(void *actor, struct leat_mail *mail)
{
    (void)actor;
    (void)mail;
    unpinned_count++;
}

static void segment_last_pin_given_back_sends_one_mail(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(1);
    struct mine *mine = opened(bench, LEAT_DURABILITY_MEMORY);
    unpinned_count = 0;
    mine->seg->unpinned.deliver = on_unpinned;
    assert_true(leat_segment_want_back(mine->seg));
    leat_segment_pin(mine->seg);
    leat_segment_pin(mine->seg);
    assert_false(leat_segment_want_back(mine->seg));
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 0);
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 1);
    leat_segment_pin(mine->seg);
    leat_segment_unpin(mine->seg, &bench->world.core_post);
    fake_settle(&bench->world);
    assert_int_equal(unpinned_count, 1);
    bench_free(bench);
}

static void store_whole_life_of_a_segment_keeps_its_bytes(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct bench *bench = bench_ready(2);
        struct mine *mine = opened(bench, (enum leat_durability)level);
        assert_true(write_some(mine, 30));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        assert_true(write_some(mine, 7));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_RESUME), LEAT_OK);
        struct leat_scan scan;
        leat_scan_segment(mine->seg->buffer, mine->seg->capacity, &scan);
        assert_int_equal(scan.bytes, last_prefix_id(mine).bytes);
        assert_true(write_some(mine, 7));
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        fake_pass(&bench->world, 100000);
        assert_true(mine->flushed);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_EVICT), LEAT_OK);
        struct leat_store_usage usage;
        leat_store_usage(bench->store, &usage);
        assert_int_equal(usage.memory_used, 0);
        assert_int_equal(usage.segments, 1);
        assert_true(usage.disk_bytes < 2 * 1024 * 1024);
        reopen(bench, true);
        const struct leat_found *found = found_of(bench, mine);
        assert_non_null(found);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->prefix_id.bytes, last_prefix_id(mine).bytes);
        assert_int_equal(found->seg->prefix_id.crc, last_prefix_id(mine).crc);
        leat_scan_segment(fake_file(&bench->world, "store/0")->now + found->seg->file_offset, 16384,
                          &scan);
        assert_true(scan.closed);
        mine->seg = found->seg;
        leat_store_found_done(bench->store);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        reopen(bench, true);
        assert_int_equal(found_count(bench), 0);
        bench_free(bench);
    }
}

static void store_reservation_never_started_is_freed(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct bench *bench = bench_ready(3);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 32768);
        struct mine *other = reserve(bench, LEAT_DURABILITY_MEMORY, 1, 16384);
        fake_settle(&bench->world);
        write_header(mine);
        write_header(other);
        reopen(bench, power);
        /* Of a `memory` reservation whose memory is gone nobody can say that it never started. */
        const struct leat_found *found = found_of(bench, other);
        assert_null(found_of(bench, mine));
        assert_true(!found || (power && found->kind == LEAT_FOUND_LOST));
        bench_free(bench);
    }
}

/* A reservation is dropped and made again under the same segment id, in the same memory: the ids in the first
 * reservation's header are still there when the server is killed. If the new reservation has a header, the same bytes
 * mean damage. */
static void store_reservation_in_its_own_remains_is_freed(void **state)
{
    (void)state;
    for (int damaged = 0; damaged < 2; damaged++) {
        struct bench *bench = bench_ready(3);
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
        fake_settle(&bench->world);
        const uint8_t *memory = mine->seg->buffer;
        write_header(mine);
        uint64_t id = mine->id.v;
        assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP), LEAT_OK);
        bench->count--;
        struct mine *again = reserve(bench, LEAT_DURABILITY_MEMORY, 0, 16384);
        fake_settle(&bench->world);
        assert_true(again == mine && again->id.v == id && again->seg->buffer == memory);
        if (damaged) write_header(again);
        if (damaged) again->seg->buffer[0] ^= 1;
        reopen(bench, false);
        const struct leat_found *found = found_of(bench, again);
        assert_true(damaged ? found && found->kind == LEAT_FOUND_LOST : !found);
        bench_free(bench);
    }
}

static void store_cut_closes_a_mark_where_it_was_decided(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct bench *bench = bench_ready(4);
        struct mine *mine = opened(bench, (enum leat_durability)level);
        assert_true(write_some(mine, 30));
        struct leat_prefix_id decided = last_prefix_id(mine);
        assert_true(write_some(mine, 30));
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
        reopen(bench, false);
        const struct leat_found *found = found_of(bench, mine);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, last_prefix_id(mine).bytes);
        struct leat_prefix_id wrong = {decided.bytes, decided.crc ^ 1};
        assert_int_equal(leat_store_cut(bench->store, found->seg, wrong, mine->next_offset, 5),
                         LEAT_E_DAMAGED);
        assert_int_equal(leat_store_cut(bench->store, found->seg, decided, mine->next_offset, 5),
                         LEAT_OK);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        /* Not a byte is added: other copies of it end there. */
        assert_int_equal(found->seg->prefix_id.bytes, decided.bytes);
        assert_int_equal(found->seg->prefix_id.crc, decided.crc);
        leat_store_found_done(bench->store);
        reopen(bench, level == LEAT_DURABILITY_DISK);
        found = found_of(bench, mine);
        assert_int_equal(found->kind, LEAT_FOUND_CLOSED);
        assert_int_equal(found->seg->prefix_id.bytes, decided.bytes);
        assert_int_equal(found->seg->prefix_id.crc, decided.crc);
        assert_int_equal(found->seg->next_offset, mine->next_offset);
        assert_int_equal(leat_store_forget(bench->store, found->seg), LEAT_OK);
        assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
        reopen(bench, true);
        assert_int_equal(found_count(bench), 0);
        bench_free(bench);
    }
}

/* Fill the pool with closed segments: reservations wait, are served by eviction, and the budget
 * holds. */
static void store_memory_short_asks_owners_and_serves_waiting(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(5);
    for (int i = 0; i < 40; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
        fake_settle(&bench->world);
        for (int turn = 0; mine->busy && turn < 100; turn++) {
            for (unsigned j = 0; j < bench->count; j++) {
                struct mine *old = &bench->mine[j];
                if (!old->evict_wanted || old->busy) continue;
                old->evict_wanted = false;
                ask(bench, old, LEAT_STORE_EVICT);
            }
            fake_pass(&bench->world, 1000);
        }
        assert_false(mine->busy);
        assert_int_equal(mine->rc, LEAT_OK);
        write_header(mine);
        write_start(mine);
        write_close(mine);
        assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        struct leat_store_usage usage;
        leat_store_usage(bench->store, &usage);
        assert_true(usage.memory_used <= MEMORY);
        assert_true(bench->world.arena.grown_bytes <= MEMORY);
    }
    bench_free(bench);
}

/* A commit is answered when its own file is synced: rows that wait with it come after, but not
 * behind an endless row of commits. */
static void store_commit_goes_before_rows_and_rows_are_not_starved(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(15);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 3));
    ask(bench, mine, LEAT_STORE_COMMIT);
    struct mine *other = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    while (mine->busy)
        assert_true(fake_step(&bench->world));
    assert_int_equal(mine->rc, LEAT_OK);
    assert_true(other->busy);
    unsigned commits = 0;
    while (other->busy) {
        if (!mine->busy) {
            assert_true(write_some(mine, 1));
            ask(bench, mine, LEAT_STORE_COMMIT);
            commits++;
        }
        assert_true(fake_step(&bench->world));
    }
    assert_int_equal(other->rc, LEAT_OK);
    assert_true(commits <= 2 * LEAT_STORE_ROWS_PASSED_MAX + 2);
    fake_settle(&bench->world);
    bench_free(bench);
}

struct follower {
    struct leat_store_req req;
    unsigned *answers, answered; /* the how-manieth it was, from 1 */
    struct bench *bench;
    struct mine *mine;
    struct follower *next; /* asked when this one is answered; NULL: none */
};

static void follow(struct bench *bench, struct mine *mine, struct follower *follower,
                   unsigned *answers);

static void on_followed(struct leat_store_req *req)
{
    struct follower *follower = req->owner;
    assert_int_equal(req->rc, LEAT_OK);
    follower->answered = ++*follower->answers;
    if (follower->next) follow(follower->bench, follower->mine, follower->next, follower->answers);
}

static void follow(struct bench *bench, struct mine *mine, struct follower *follower,
                   unsigned *answers)
{
    *follower = (struct follower){.answers = answers, .bench = bench, .mine = mine};
    follower->req = (struct leat_store_req){.kind = LEAT_STORE_COMMIT,
                                            .seg = mine->seg,
                                            .from_bytes = mine->committed_bytes,
                                            .to_bytes = last_prefix_id(mine).bytes,
                                            .follow = true,
                                            .on_done = on_followed,
                                            .owner = follower};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &follower->req);
}

static void assert_durable(const struct mine *mine)
{
    const struct leat_segment *seg = mine->seg;
    assert_memory_equal(seg->file->durable + seg->file_offset, seg->buffer, mine->committed_bytes);
}

/* Commits of two segments, at times two of one segment, and more batches sealed meanwhile: each commit is answered in
 * its turn, with all batches that were sealed when the write began, and these are durable at the answer. */
static void store_commits_that_follow_bring_what_was_sealed_meanwhile(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(17);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct mine *other = opened(bench, LEAT_DURABILITY_DISK);
    fake_settle(&bench->world);
    unsigned answers = 0;
    for (int round = 0; round < 20; round++) {
        struct follower first, second;
        assert_true(write_some(mine, 2));
        follow(bench, mine, &first, &answers);
        assert_true(write_some(other, 1));
        ask(bench, other, LEAT_STORE_COMMIT);
        for (int i = round % 5; i > 0; i--)
            (void)fake_step(&bench->world);
        assert_true(write_some(mine, 1));
        follow(bench, mine, &second, &answers);
        uint32_t asked = last_prefix_id(mine).bytes;
        assert_true(write_some(mine, 1));
        atomic_store(&mine->seg->sealed_bytes, last_prefix_id(mine).bytes);
        fake_settle(&bench->world);
        assert_true(first.answered == answers - 1 && second.answered == answers);
        assert_true(first.req.to_bytes <= second.req.to_bytes);
        assert_true(second.req.to_bytes > asked);
        assert_int_equal(second.req.to_bytes, last_prefix_id(mine).bytes);
        mine->committed_bytes = second.req.to_bytes;
        assert_durable(mine);
        assert_int_equal(other->rc, LEAT_OK);
        assert_durable(other);
    }
    assert_int_equal(answers, 40);
    bench_free(bench);
}

/* The bytes that a round took along are in the file when the log's next commit is asked for, in the same turn of the
 * store's thread. The commit between, which waits for a round that has nothing to write for it, is answered first. */
static void store_commits_of_a_log_are_answered_in_the_order_of_asking(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(18);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    struct follower first, second, third;
    unsigned answers = 0;
    fake_settle(&bench->world);
    assert_true(write_some(mine, 1));
    follow(bench, mine, &first, &answers);
    first.next = &third;
    assert_true(write_some(mine, 1));
    follow(bench, mine, &second, &answers);
    assert_true(write_some(mine, 1));
    atomic_store(&mine->seg->sealed_bytes, last_prefix_id(mine).bytes);
    while (fake_event_step(&bench->world)) {
    } /* the first one's round begins */
    bench->world.turn_stays = true;
    while (answers == 0)
        assert_true(fake_step(&bench->world));
    while (fake_event_step(&bench->world)) {
    } /* the third is asked for */
    bench->world.turn_stays = false;
    leat_store_actor.on_turn_end(bench->world.store);
    fake_settle(&bench->world);
    assert_int_equal(first.answered, 1);
    assert_int_equal(second.answered, 2);
    assert_int_equal(third.answered, 3);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_DROP),
                     LEAT_OK); /* which waits for none of them */
    bench_free(bench);
}

static unsigned pieces_queued(const struct bench *bench)
{
    unsigned pieces = 0;
    for (const struct leat_disk_io *io = bench->world.disk_first; io; io = io->next)
        pieces += io->bytes >= LEAT_STORE_FLUSH_WRITE_BYTES_BUSY;
    for (int i = 0; i < bench->world.beside_count; i++)
        pieces += bench->world.besides[i]->bytes >= LEAT_STORE_FLUSH_WRITE_BYTES_BUSY;
    return pieces;
}

/* A large segment is flushed while commits come: at most one small piece stands before a commit,
 * and the flush ends all the same. */
static void store_flush_behind_lets_commits_pass(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(16);
    struct mine *big = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    fake_settle(&bench->world);
    write_header(big);
    write_start(big);
    static uint8_t payload[1024 * 1024];
    for (int i = 0; i < 7; i++)
        (void)leat_entry_append(&big->writer, LEAT_ENTRY_TRIM, 0, 0, payload, sizeof payload,
                                leat_crc32c(0, payload, sizeof payload));
    seal(big);
    write_close(big);
    assert_int_equal(do_now(bench, big, LEAT_STORE_COMMIT), LEAT_OK);
    leat_held_of(big->seg)->in_file_bytes = 0; /* as if nothing were in the file yet */
    assert_int_equal(do_now(bench, big, LEAT_STORE_CLOSE), LEAT_OK);
    assert_false(big->flushed);
    bench->world.now_us += 10 * 1000 * 1000;
    for (int i = 0; i < 20000 && !big->flushed; i++) {
        if (!mine->busy) {
            (void)write_some(mine, 1); /* until it is full: then only the sync is asked for */
            ask(bench, mine, LEAT_STORE_COMMIT);
            assert_true(pieces_queued(bench) <= 1);
        }
        assert_true(fake_step(&bench->world));
    }
    assert_true(big->flushed);
    fake_settle(&bench->world);
    bench_free(bench);
}

static void evict_asked(struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        struct mine *mine = &bench->mine[i];
        if (!mine->evict_wanted || mine->busy) continue;
        mine->evict_wanted = false;
        ask(bench, mine, LEAT_STORE_EVICT);
    }
    fake_settle(&bench->world);
}

/* The whole pool is in small pieces, and small requests take every piece that comes free: a large request gets its
 * place all the same, long before its time is over. */
static void store_large_reservation_is_not_starved_by_small_ones(void **state)
{
    (void)state;
    enum { PIECE = 1024 * 1024, KEEP = 16 };
    struct bench *bench = bench_ready(17);
    struct mine *big = NULL;
    for (int i = 0; i < 400 && !(big && !big->busy); i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_MEMORY, 0, PIECE);
        for (int turn = 0; mine->busy && turn < 400; turn++) {
            fake_pass(&bench->world, 1000);
            evict_asked(bench);
        }
        assert_false(mine->busy);
        assert_int_equal(mine->rc, LEAT_OK);
        write_header(mine);
        write_start(mine);
        write_close(mine);
        if (i % KEEP) assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
        if (i == 200) big = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LEAT_SEGMENT_BYTES_MAX);
        fake_pass(&bench->world, 5000);
        evict_asked(bench);
    }
    assert_non_null(big);
    assert_false(big->busy);
    assert_int_equal(big->rc, LEAT_OK);
    bench_free(bench);
}

struct full_told {
    int full, again;
};

static void on_node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    struct full_told *told = ctx;
    told->full += level == LEAT_NODE_LOG_ERROR && strstr(line, "no space left") != NULL;
    told->again += level == LEAT_NODE_LOG_INFO && strstr(line, "has space") != NULL;
}

static void store_disk_full_refuses_reservations_only(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(6);
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    bench->world.space_bytes = 1;
    struct full_told told = {0};
    leat_node_log_set(on_node_log, &told, LEAT_NODE_LOG_INFO);
    struct mine *refused = NULL;
    for (int i = 0; i < 200 && !refused; i++) {
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        if (more->rc) refused = more;
    }
    assert_non_null(refused);
    assert_int_equal(refused->rc, LEAT_E_DISK_FULL);
    struct mine *another = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    fake_settle(&bench->world);
    assert_int_equal(another->rc, LEAT_E_DISK_FULL);
    assert_int_equal(told.full, 1); /* once, not for each that is refused */
    assert_int_equal(told.again, 0);
    assert_true(write_some(mine, 9));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    bench->world.space_bytes = 0;
    struct mine *again = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    fake_settle(&bench->world);
    assert_int_equal(again->rc, LEAT_OK);
    assert_int_equal(told.full, 1);
    assert_int_equal(told.again, 1);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    bench_free(bench);
}

/* Goal: space that is given back ends the report of a full disk as soon as it is there, though no request for a segment
 * comes; not where there is less space than was refused. */
static void store_disk_is_not_full_after_segments_have_gone(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(6);
    struct mine *small[4], *held[200], *refused = NULL;
    struct full_told told = {0};
    struct leat_store_usage usage;
    unsigned count = 0;
    for (unsigned i = 0; i < 4; i++)
        small[i] = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
    fake_settle(&bench->world);
    bench->world.space_bytes = 1;
    leat_node_log_set(on_node_log, &told, LEAT_NODE_LOG_INFO);
    while (!refused && count < 200) {
        struct mine *more = reserve(bench, LEAT_DURABILITY_DISK, 1, 65536);
        fake_settle(&bench->world);
        if (more->rc)
            refused = more;
        else
            held[count++] = more;
    }
    assert_non_null(refused);
    assert_true(count > 1);
    assert_int_equal(told.full, 1);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.disk_lacks_bytes, 65536);
    assert_int_equal(do_now(bench, small[1], LEAT_STORE_DROP), LEAT_OK);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.disk_lacks_bytes, 65536);
    assert_int_equal(do_now(bench, held[0], LEAT_STORE_DROP), LEAT_OK);
    fake_settle(&bench->world);
    leat_store_usage(bench->store, &usage);
    assert_int_equal(usage.disk_lacks_bytes, 0);
    assert_int_equal(told.again, 1);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    bench_free(bench);
}

static void on_lack(void *ctx, enum leat_node_log_level level, const char *line)
{
    int *told = ctx;
    *told += level == LEAT_NODE_LOG_ERROR && strstr(line, "another file for segments") != NULL;
}

/* Neither the file nor the log that wanted it is given up: there is one as soon as it can be opened. */
static void store_file_that_can_not_be_opened_is_tried_again(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(6);
    int told = 0;
    leat_node_log_set(on_lack, &told, LEAT_NODE_LOG_INFO);
    for (int i = 0; i < 4; i++) {
        bench->world.no_opens = i % 2 == 0;
        bench->world.no_dirs = !bench->world.no_opens;
        struct mine *refused = reserve(bench, LEAT_DURABILITY_DISK, 1, 16384);
        fake_settle(&bench->world);
        assert_int_equal(refused->rc, LEAT_E_NO_MEMORY);
    }
    assert_int_equal(told, 1);
    bench->world.no_opens = bench->world.no_dirs = false;
    struct mine *mine = opened(bench, LEAT_DURABILITY_DISK);
    assert_true(write_some(mine, 9));
    assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    assert_non_null(fake_file(&bench->world, "store/0"));
    assert_null(fake_file(&bench->world, "store/1")); /* what was not opened counts for none */
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_INFO);
    bench_free(bench);
}

static bool was_written(struct bench *bench, const struct mine *mine)
{
    (void)bench;
    const struct leat_file *file = mine->seg->file;
    return file->touched[mine->seg->file_offset / FAKE_SECTOR_BYTES];
}

/* Once the store knows that `disk` segments come, no `disk` segment gets blocks that were only allocated; `memory`
 * segments do, and leave the written blocks alone. Nothing is synced meanwhile, so the blocks that the fake disk calls
 * touched are the written blocks. */
static void store_space_of_disk_segments_is_written_ahead(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(31);
    unsigned written = 0, count = 0;
    for (int i = 0; i < 60; i++) {
        struct mine *disk = reserve(bench, LEAT_DURABILITY_DISK, 0, 128 * 1024);
        fake_settle(&bench->world);
        struct mine *memory = reserve(bench, LEAT_DURABILITY_MEMORY, 1, 128 * 1024);
        fake_settle(&bench->world);
        assert_int_equal(disk->rc, LEAT_OK);
        assert_int_equal(memory->rc, LEAT_OK);
        assert_false(was_written(bench, memory));
        if (i < 8) continue; /* the first MiB is taken as it is */
        count++;
        written += was_written(bench, disk);
    }
    assert_int_equal(written, count);
    assert_null(bench->store->slots.zeroing);
    bench_free(bench);
}

/* Zeros that cannot be written cost nothing but the advantage. */
static void store_zeros_that_fail_refuse_no_reservation(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(32);
    for (int i = 0; i < 40; i++) {
        struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 0, 128 * 1024);
        while (!bench->store->slots.zeroing && fake_step(&bench->world)) {
        }
        if (bench->store->slots.zeroing) bench->world.fail_zero = true;
        fake_settle(&bench->world);
        assert_int_equal(mine->rc, LEAT_OK);
    }
    assert_true(bench->world.zeros_failed > 0);
    bench_free(bench);
}

/* Killed, and started again with a smaller budget: what lies past it is still found. */
static void store_smaller_budget_keeps_what_memory_holds(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(14);
    struct mine *mine[12];
    for (int i = 0; i < 12; i++) {
        mine[i] = reserve(bench, LEAT_DURABILITY_MEMORY, 0, LEAT_SEGMENT_BYTES_MAX);
        fake_settle(&bench->world);
        assert_int_equal(mine[i]->rc, LEAT_OK);
        write_header(mine[i]);
        write_start(mine[i]);
        assert_true(write_some(mine[i], 9));
    }
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_store_options options = options_of();
    options.memory_bytes = LEAT_ARENA_STEP_BYTES;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->store_port = leat_store_port(bench->store);
    for (int i = 0; i < 12; i++) {
        const struct leat_found *found = found_of(bench, mine[i]);
        assert_int_equal(found->kind, LEAT_FOUND_MARK);
        assert_int_equal(found->scan.bytes, last_prefix_id(mine[i]).bytes);
        assert_int_equal(leat_store_cut(bench->store, found->seg, found->seg->prefix_id,
                                        found->scan.next_offset, 1),
                         LEAT_OK);
    }
    assert_int_equal(leat_store_cut_done(bench->store), LEAT_OK);
    leat_store_found_done(bench->store);
    struct mine *more = reserve(bench, LEAT_DURABILITY_MEMORY, 1, LEAT_SEGMENT_BYTES_MAX);
    fake_pass(&bench->world, 1000000);
    assert_int_equal(more->rc, LEAT_OK);
    assert_true(more->seg->buffer < bench->world.arena.base + LEAT_ARENA_STEP_BYTES);
    struct leat_store_usage usage;
    fake_pass(&bench->world, 1000000);
    leat_store_usage(bench->store, &usage);
    assert_true(usage.memory_used <= LEAT_ARENA_STEP_BYTES);
    bench_free(bench);
}

static void count_done(void *arg, leat_err rc)
{
    assert_int_equal(rc, LEAT_OK);
    ++*(unsigned *)arg;
}

static void store_flush_all_makes_closed_segments_survive_a_power_cut(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(13);
    struct mine *mine[20];
    for (int i = 0; i < 20; i++) {
        mine[i] = opened(bench, LEAT_DURABILITY_MEMORY);
        write_close(mine[i]);
        assert_int_equal(do_now(bench, mine[i], LEAT_STORE_CLOSE), LEAT_OK);
    }
    unsigned done = 0;
    leat_store_flush_all(bench->store, count_done, &done);
    fake_pass(&bench->world, 100000);
    assert_int_equal(done, 1);
    reopen(bench, true);
    for (int i = 0; i < 20; i++)
        assert_int_equal(found_of(bench, mine[i])->kind, LEAT_FOUND_CLOSED);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_last_pin_given_back_sends_one_mail),
        cmocka_unit_test(store_whole_life_of_a_segment_keeps_its_bytes),
        cmocka_unit_test(store_reservation_never_started_is_freed),
        cmocka_unit_test(store_reservation_in_its_own_remains_is_freed),
        cmocka_unit_test(store_cut_closes_a_mark_where_it_was_decided),
        cmocka_unit_test(store_memory_short_asks_owners_and_serves_waiting),
        cmocka_unit_test(store_commit_goes_before_rows_and_rows_are_not_starved),
        cmocka_unit_test(store_commits_that_follow_bring_what_was_sealed_meanwhile),
        cmocka_unit_test(store_commits_of_a_log_are_answered_in_the_order_of_asking),
        cmocka_unit_test(store_flush_behind_lets_commits_pass),
        cmocka_unit_test(store_large_reservation_is_not_starved_by_small_ones),
        cmocka_unit_test(store_disk_full_refuses_reservations_only),
        cmocka_unit_test(store_disk_is_not_full_after_segments_have_gone),
        cmocka_unit_test(store_file_that_can_not_be_opened_is_tried_again),
        cmocka_unit_test(store_space_of_disk_segments_is_written_ahead),
        cmocka_unit_test(store_zeros_that_fail_refuse_no_reservation),
        cmocka_unit_test(store_smaller_budget_keeps_what_memory_holds),
        cmocka_unit_test(store_flush_all_makes_closed_segments_survive_a_power_cut),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
