/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas, each as far as its writer came, at a start with their arena and without it, and while the disk fails. A
 * line for each. */
#include "tests/store/side.h"
#include "tests/trace.h"

static struct bench *bench;
static struct side side;
static struct mine *mine;
static uint32_t row_number;

enum stage {
    RESERVED,
    HEADER,
    OPENED,
    COMMITTED,
    HIBERNATED,
    CLOSED,
    FLUSHED,
    TORN,
    DAMAGED,
    BEHIND
};
static const char *const stages[] = {"reserved", "header",  "opened", "committed", "hibernated",
                                     "closed",   "flushed", "torn",   "damaged",   "behind"};
enum { STAGES = BEHIND + 1 };

static void make(enum leat_durability durability, enum stage stage, bool incomplete)
{
    bench = bench_ready(60 + stage);
    side_init(&side, bench, 7);
    side_add(&side);
    mine = replica_new(&side, durability, incomplete);
    row_number = mine->seg->row;
    if (stage == RESERVED) return;
    write_header(mine);
    if (stage == HEADER) return;
    write_start(mine);
    assert_true(write_some(mine, 20));
    if (stage != OPENED && stage != TORN)
        assert_int_equal(do_now(bench, mine, LEAT_STORE_COMMIT), LEAT_OK);
    if (stage == COMMITTED || stage == BEHIND || stage == DAMAGED) {
        struct mine *other =
            reserve(bench, LEAT_DURABILITY_DISK, 9, 16384); /* takes its row along */
        fake_settle(&bench->world);
        assert_int_equal(other->rc, LEAT_OK);
    }
    uint8_t *bytes = mine->seg->buffer;
    if (stage == TORN) bytes[LEAT_ENTRY_HEADER_BYTES + 80] ^= 1;
    if (stage == DAMAGED) bytes[mine->prefix_ids[0].bytes + 40] ^= 1;
    if (stage == DAMAGED)
        fake_file(&bench->world, "store/0")
            ->now[mine->seg->file_offset + mine->prefix_ids[0].bytes + 40] ^= 1;
    if (stage == BEHIND) {
        memset(bytes + last_prefix_id(mine).bytes, 0x33, 200);
        memset(fake_file(&bench->world, "store/0")->now + mine->seg->file_offset +
                   last_prefix_id(mine).bytes,
               0x33, 200);
    }
    if (stage == HIBERNATED) assert_int_equal(do_now(bench, mine, LEAT_STORE_HIBERNATE), LEAT_OK);
    if (stage != CLOSED && stage != FLUSHED) return;
    write_close(mine);
    assert_int_equal(do_now(bench, mine, LEAT_STORE_CLOSE), LEAT_OK);
    if (stage == FLUSHED) fake_pass(&bench->world, 100000);
}

static leat_err starts(bool arena, uint64_t fails)
{
    fake_kill(&bench->world);
    bench_drop_store(bench);
    side.arena.inherited_bytes = side.arena.grown_bytes;
    if (!arena) side.arena.pool_id[0] ^= 1;
    struct leat_arena *inherited[] = {&side.arena};
    struct leat_store_options options = options_of();
    struct leat_error error = {0};
    options.inherited = inherited;
    options.inherited_count = 1;
    bench->world.fail_at = fails ? bench->world.op_count + fails : 0;
    leat_err rc = leat_store_open(&bench->world.env, &options, &bench->store, &error);
    bench->world.store = bench->store;
    trace(" %d %s", rc, rc ? error.text : "");
    return rc;
}

static void tell(void)
{
    const struct leat_store *store = bench->store;
    const struct leat_row *row = leat_catalogue_row(&store->cat, row_number);
    for (size_t i = store->found_own; i < store->found_count; i++) {
        const struct leat_found *found = &store->found[i];
        const struct leat_segment *seg = found->seg;
        const struct leat_held *held = leat_held_of(found->seg);
        trace(" kind %d state %d %u of %u%s%s%s%s%s%s in file %u behind %u of %llu v%u",
              found->kind, seg->state, found->scan.bytes, found->scan.acked_bytes,
              seg->flushed ? " flushed" : "", seg->buffer ? " memory" : "",
              seg->integrity == LEAT_INTEGRITY_TORN ? " torn" : "",
              leat_segment_is_damaged(seg) ? " corrupt" : "",
              seg->integrity == LEAT_INTEGRITY_MISSING ? " unwritten" : "",
              held->damaged ? " damaged" : "", held->in_file_bytes, found->behind_bytes,
              (unsigned long long)seg->writer, seg->version);
    }
    trace("; row %d flags %x more %x extent %u %08x", row->state, row->flags, row->more,
          row->prefix_id_bytes, row->prefix_id_crc);
    for (size_t i = 0; i < store->complaint_count; i++)
        trace("\n   %s", store->complaints[i]);
    trace("; %u arenas, %u free\n", store->arena_count, store->slots.files[0]->buddy.free_units);
}

static const char at_starts[] =
    "level disk, arena there\n"
    " reserved: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " header: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " opened: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " committed: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 "
    "flags 4 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " hibernated: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags "
    "4 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " closed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    " flushed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    " torn: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " damaged: 0  kind 2 state 2 256 of 1248 in file 0 behind 0 of 77 v4; row 2 flags 6 "
    "more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: damaged: only 256 of at least 1248 acked bytes are valid; "
    "1 arenas, 60 free\n"
    " behind: 0  kind 1 state 3 1248 of 1248 torn in file 1248 behind 200 of 77 v4; row "
    "3 flags 14 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " incomplete: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "level memory, arena there\n"
    " reserved: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " header: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " opened: 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 "
    "more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " committed: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 "
    "flags 4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " hibernated: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags "
    "4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " closed: 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 "
    "flags 6 more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    " flushed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    " torn: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " damaged: 0  kind 2 state 2 256 of 1248 in file 0 behind 0 of 77 v4; row 2 flags 6 "
    "more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: damaged: only 256 of at least 1248 acked bytes are valid; "
    "1 arenas, 60 free\n"
    " behind: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags "
    "4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " incomplete: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "level disk, arena gone\n"
    " reserved: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " header: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " opened: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " committed: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 "
    "flags 4 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " hibernated: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags "
    "4 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " closed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    " flushed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    " torn: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " damaged: 0  kind 2 state 2 256 of 1248 in file 0 behind 0 of 77 v4; row 2 flags 6 "
    "more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: damaged: only 256 of at least 1248 acked bytes are valid; "
    "1 arenas, 60 free\n"
    " behind: 0  kind 1 state 3 1248 of 1248 torn in file 1248 behind 200 of 77 v4; row "
    "3 flags 14 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " incomplete: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "level memory, arena gone\n"
    " reserved: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 1 flags 6 more "
    "0 extent 0 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 0 bytes are in the file; 1 arenas, 60 free\n"
    " header: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 1 flags 6 more 0 "
    "extent 0 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 0 bytes are in the file; 1 arenas, 60 free\n"
    " opened: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 1 flags 6 more 0 "
    "extent 0 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 0 bytes are in the file; 1 arenas, 60 free\n"
    " committed: 0  kind 2 state 2 1248 of 0 in file 0 behind 0 of 77 v4; row 2 flags 6 "
    "more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 1248 bytes are in the file; 1 arenas, 60 free\n"
    " hibernated: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags "
    "4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " closed: 0  kind 2 state 4 1248 of 0 corrupt unwritten in file 0 behind 0 of 77 v4; "
    "row 4 flags 6 more 0 extent 1344 b8756a89\n"
    "   segment 1 of log 5/0/0: its memory did not survive before it was flushed; 1248 of "
    "1344 bytes are in the file; 1 arenas, 60 free\n"
    " flushed: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row "
    "4 flags 5 more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    " torn: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 1 flags 6 more 0 "
    "extent 0 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 0 bytes are in the file; 1 arenas, 60 free\n"
    " damaged: 0  kind 2 state 2 256 of 0 in file 0 behind 0 of 77 v4; row 2 flags 6 more "
    "0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 256 bytes are in the file; 1 arenas, 60 free\n"
    " behind: 0  kind 2 state 2 1248 of 0 in file 0 behind 0 of 77 v4; row 2 flags 6 more "
    "0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: its memory did not survive (another boot or another "
    "pool); 1248 bytes are in the file; 1 arenas, 60 free\n"
    " incomplete: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n";

/* Goal: nobody takes a part of a replica for all of it, whatever its writer may still do. */
static void start_finds_each_replica(void **state)
{
    (void)state;
    trace_begin();
    for (unsigned way = 0; way < 4; way++) {
        enum leat_durability durability = way % 2 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK;
        trace("level %s, arena %s\n", way % 2 ? "memory" : "disk", way < 2 ? "there" : "gone");
        for (unsigned stage = 0; stage < STAGES; stage++) {
            make(durability, (enum stage)stage, false);
            trace(" %s:", stages[stage]);
            assert_int_equal(starts(way < 2, 0), LEAT_OK);
            tell();
            side_fini(&side);
        }
        make(durability, COMMITTED, true);
        trace(" incomplete:");
        assert_int_equal(starts(way < 2, 0), LEAT_OK);
        tell();
        side_fini(&side);
    }
    TRACE_IS(at_starts);
}

static const char at_starts_that_fail[] =

    "opened, level disk, 1: 5 cannot make the directory 'store'\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 2: 5 cannot open store/0\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 3: 5 cannot open catalogue\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 6: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 1 flags "
    "6 more 0 extent 0 00000000\n"
    "   segment 1 of log 5/0/0: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 60 free\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 7: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 8: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 9: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level disk, 10: 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    " then 0 ; row 0 flags 0 more 0 extent 0 00000000; 1 arenas, 64 free\n"
    "opened, level memory, 1: 5 cannot make the directory 'store'\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 2: 5 cannot open store/0\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 3: 5 cannot open catalogue\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 6: 0  kind 2 state 2 1248 of 0 in file 0 behind 0 of 77 v4; row 1 "
    "flags 6 more 0 extent 0 00000000\n"
    "   segment 1 of log 5/0/0: cannot be written to store/0: the disk failed a read, write or "
    "flush; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 7: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 8: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 9: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "opened, level memory, 10: 0  kind 1 state 3 1248 of 0 in file 1248 behind 0 of 77 v4; row "
    "3 flags 4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level disk, 1: 5 cannot make the directory 'store'\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 2: 5 cannot open store/0\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 3: 5 cannot open catalogue\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 6: 0  kind 2 state 2 0 of 0 in file 0 behind 0 of 77 v4; row 2 "
    "flags 6 more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 7: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; "
    "row 3 flags 4 more 0 extent 1248 a7231e42\n"
    "   segment 2 of log 1/0/9: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 59 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 8: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; "
    "row 3 flags 4 more 0 extent 1248 a7231e42\n"
    "   segment 2 of log 1/0/9: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 59 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 9: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 10: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 11: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level disk, 12: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; "
    "row 3 flags 4 more 0 extent 1248 a7231e42; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a7231e42; 1 arenas, 60 free\n"
    "committed, level memory, 1: 5 cannot make the directory 'store'\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 2: 5 cannot open store/0\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 3: 5 cannot open catalogue\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 6: 0  kind 2 state 2 1248 of 0 in file 0 behind 0 of 77 v4; row "
    "2 flags 6 more 0 extent 1248 00000000\n"
    "   segment 1 of log 5/0/0: cannot be written to store/0: the disk failed a read, write or "
    "flush; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 7: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 "
    "v4; row 3 flags 4 more 0 extent 1248 a48b6b74\n"
    "   segment 2 of log 1/0/9: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 59 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 8: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 "
    "v4; row 3 flags 4 more 0 extent 1248 a48b6b74\n"
    "   segment 2 of log 1/0/9: cannot be read from store/0: the disk failed a read, write or "
    "flush; 1 arenas, 59 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 9: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 10: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 11: 5 cannot open the store: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "committed, level memory, 12: 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 "
    "v4; row 3 flags 4 more 0 extent 1248 a48b6b74; 1 arenas, 60 free\n"
    " then 0  kind 1 state 3 1248 of 1248 in file 1248 behind 0 of 77 v4; row 3 flags 4 more 0 "
    "extent 1248 a48b6b74; 1 arenas, 60 free\n"
    "closed, level disk, 1: 5 cannot make the directory 'store'\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 2: 5 cannot open store/0\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 3: 5 cannot open catalogue\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 6: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 7: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level disk, 8: 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 "
    "v4; row 4 flags 5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    " then 0  kind 0 state 4 1344 of 1344 flushed in file 1344 behind 0 of 77 v4; row 4 flags "
    "5 more 0 extent 1344 14f07625; 1 arenas, 60 free\n"
    "closed, level memory, 1: 5 cannot make the directory 'store'\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 2: 5 cannot open store/0\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 3: 5 cannot open catalogue\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 4: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 5: 5 cannot read the catalogue: the disk failed a read, write or "
    "flush\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 6: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 7: 5 cannot open the store: the disk failed a read, write or flush\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    "closed, level memory, 8: 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 "
    "v4; row 4 flags 6 more 0 extent 1344 b8756a89; 1 arenas, 60 free\n"
    " then 0  kind 0 state 4 1344 of 1344 memory in file 0 behind 0 of 77 v4; row 4 flags 6 "
    "more 0 extent 1344 b8756a89; 1 arenas, 60 free\n";

/* Goal: a start that can't read or write a replica is refused, or calls it lost; the next one finds no less. */
static void start_whose_disk_fails_finds_no_shorter_replica(void **state)
{
    (void)state;
    static const enum stage which[] = {OPENED, COMMITTED, CLOSED};
    trace_begin();
    for (unsigned way = 0; way < 6; way++)
        for (uint64_t n = 1;; n++) {
            make(way % 2 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK, which[way / 2], false);
            trace("%s, level %s, %llu:", stages[which[way / 2]], way % 2 ? "memory" : "disk",
                  (unsigned long long)n);
            leat_err rc = starts(true, n);
            bool over = bench->world.op_count < bench->world.fail_at;
            if (rc)
                trace("\n");
            else
                tell();
            for (unsigned i = 0; i < FAKE_FILES_MAX; i++)
                bench->world.files[i].sync_failed = false;
            trace(" then");
            assert_int_equal(starts(true, 0), LEAT_OK);
            tell();
            side_fini(&side);
            if (over) break;
        }
    TRACE_IS(at_starts_that_fail);
}

/* Goal: whatever state a start finds for a replica, and whatever the disk does then, the start is refused where it has
 * no memory to record the replica. */
static void start_without_memory_is_refused(void **state)
{
    (void)state;
    trace_begin();
    for (unsigned i = 0; i < 2 * 2 * STAGES; i++)
        for (uint64_t fails = 0; fails < (i / 4 == OPENED || i / 4 == COMMITTED ? 10 : 1);
             fails++) {
            enum leat_durability durability = i % 2 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK;
            uint64_t calls = UINT64_MAX;
            leat_err rc = LEAT_OK;
            for (unsigned last = 0; last < 2 && rc == LEAT_OK; last++) {
                make(durability, i / 4, false);
                bench->world.seed = 5; /* the same part of a write gets through */
                leat_mem_fail_at(calls);
                rc = starts(i / 2 % 2, fails);
                calls = leat_mem_calls();
                leat_mem_fail_at(0);
                if (last) assert_int_equal(rc, LEAT_E_NO_MEMORY);
                bench->world.fail_at = 0;
                side_fini(&side);
            }
            trace_begin();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_finds_each_replica),
        cmocka_unit_test(start_without_memory_is_refused),
        cmocka_unit_test(start_whose_disk_fails_finds_no_shorter_replica),
    };
    return cmocka_run_group_tests_name("store replicas", tests, NULL, NULL);
}
