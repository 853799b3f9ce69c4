/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of segments, request by request: what a store asks of the disk, and all that it knows after it. */
#include "tests/store/whole_trace.h"

static struct mine *begun(enum leat_durability durability, uint32_t log)
{
    struct mine *mine = reserve(bench, durability, log, 32768);
    settles();
    assert_int_equal(mine->rc, LEAT_OK);
    write_header(mine);
    write_start(mine);
    return mine;
}

static void disk_segment_goes(struct mine *mine)
{
    asks(mine, LEAT_STORE_EVICT);
    asks(begun(LEAT_DURABILITY_DISK, 2), LEAT_STORE_COMMIT);
    settles();
    show();
    TRACE_IS(
        " write catalogue 4096+4096 ad2b46c8\n"
        " sync catalogue\n"
        " answer 1 kind 10: 0\n"
        " write store/0 together 32768+4096 89197d5c\n"
        " sync store/0\n"
        " answer 2 kind 1: 0\n"
        " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown -220.000 "
        "behind +0.000 due +10000.000\n"
        " file 0: 60 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 2 held, 0 joined, 1 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 24576 last +0.000 wake +10000.000\n"
        " 1 state 4 nowhere at 0/0 extent 10976 755f3c4d in file 10976 flushed closed -200.000; "
        "row 0 state 4 flags 3 more 0 extent 10976 755f3c4d offsets 1000 1000 at 0/0 in 0\n"
        " 2 state 2 nowhere at 0/2 memory 0 extent 0 00000000 in file 256; row 1 state 2 flags 2 "
        "more 0 extent 256 00000000 offsets 2000 0 at 0/2 in 0\n");
    asks(mine, LEAT_STORE_DROP);
    settles();
    show();
    TRACE_IS(
        " write catalogue 4096+4096 fe4fab1d\n"
        " sync catalogue\n"
        " answer 1 kind 5: 0\n"
        " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown -220.000 "
        "behind +0.000 due +10000.000\n"
        " file 0: 62 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 24576 last +0.000 wake +10000.000\n"
        " 2 state 2 nowhere at 0/2 memory 0 extent 0 00000000 in file 256; row 1 state 2 flags 2 "
        "more 0 extent 256 00000000 offsets 2000 0 at 0/2 in 0\n");
    bench_free(bench);
}

static void disk_segment_closes(struct mine *mine)
{
    assert_true(write_some(mine, 20));
    write_close(mine);
    asks(mine, LEAT_STORE_CLOSE);
    settles();
    show();
    TRACE_IS(" write store/0 together 8192+4096 3a0dc812\n"
             " sync store/0\n"
             " write catalogue 4096+4096 6129ed1d\n"
             " answer 1 kind 2: 0\n"
             " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown -20.000 "
             "behind +0.000 due +10000.000\n"
             " file 0: 62 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 32768; flush 0+0, 0 written 0 unsynced turn, "
             "arenas 0\n"
             " committed 20480 last -20.000 wake +10000.000\n"
             " 1 state 4 cached at 0/0 memory 0 extent 10976 755f3c4d in file 10976 flushed closed "
             "+0.000; row 0 state 4 flags 3 more 0 extent 10976 755f3c4d offsets 1000 1000 at 0/0 "
             "in 0\n");
    passes(200);
    show();
    TRACE_IS(" pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown -220.000 "
             "behind -200.000 due +9800.000\n"
             " file 0: 62 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 32768; flush 0+0, 0 written 0 unsynced turn, "
             "arenas 0\n"
             " committed 20480 last -220.000 wake +9800.000\n"
             " 1 state 4 cached at 0/0 memory 0 extent 10976 755f3c4d in file 10976 flushed closed "
             "-200.000; row 0 state 4 flags 3 more 0 extent 10976 755f3c4d offsets 1000 1000 at "
             "0/0 in 0\n");
    disk_segment_goes(mine);
}

static void disk_segment_is_hibernated(struct mine *mine)
{
    passes(20);
    asks(mine, LEAT_STORE_HIBERNATE);
    settles();
    show();
    TRACE_IS(
        " write catalogue 4096+4096 2e227aa2\n"
        " sync catalogue\n"
        " answer 1 kind 3: 0\n"
        " pool 0 given, 4096 units free, 0 past; 64 of 128 MiB used leaving 0 grown -20.000 behind "
        "- due -\n"
        " file 0: 62 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 16384 last -20.000 wake -\n"
        " 1 state 3 nowhere at 0/0 extent 9888 bc14d5fa in file 9888; row 0 state 3 flags 0 more 0 "
        "extent 9888 bc14d5fa offsets 1000 1000 at 0/0 in 0\n");
    asks(mine, LEAT_STORE_RESUME);
    settles();
    show();
    TRACE_IS(
        " read store/0 0+12288\n"
        " write catalogue 4096+4096 03a9601d\n"
        " sync catalogue\n"
        " answer 1 kind 4: 0\n"
        " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown -20.000 behind "
        "+0.000 due +10000.000\n"
        " file 0: 62 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 16384 last -20.000 wake +10000.000\n"
        " 1 state 2 nowhere at 0/0 memory 0 extent 9888 bc14d5fa in file 9888; row 0 state 2 flags "
        "2 more 0 extent 9888 00000000 offsets 1000 0 at 0/0 in 0\n");
    disk_segment_closes(mine);
}

static void segment_of_a_disk_stream_lives(void **state)
{
    (void)state;
    bench_watch(1);
    struct mine *mine = reserve(bench, LEAT_DURABILITY_DISK, 1, 32768);
    mine->req.on_done = on_told;
    settles();
    show();
    TRACE_IS(" now write catalogue 0+4096 092f777f\n"
             " now sync catalogue\n"
             " write catalogue 4096+4096 f972908b\n"
             " sync catalogue\n"
             " answer 1 kind 0: 0\n"
             " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown +0.000 "
             "behind +0.000 due +10000.000\n"
             " file 0: 62 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 1 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced, arenas 0\n"
             " committed 0 last - wake +10000.000\n"
             " 1 state 1 nowhere at 0/0 memory 0 extent 0 00000000 in file 0; row 0 state 1 flags "
             "2 more 0 extent 0 00000000 offsets 0 0 at 0/0 in 0\n");
    write_header(mine);
    write_start(mine);
    asks(mine, LEAT_STORE_COMMIT);
    while (fake_event_step(&bench->world)) {
    }
    show();
    TRACE_IS(
        " write store/0 together 0+4096 fd88d68e\n"
        " sync store/0\n"
        " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown +0.000 behind "
        "+0.000 due +10000.000\n"
        " file 0: 62 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 1 held, 0 joined, 0 lazy; rounds 1 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 4096 last +0.000 wake +10000.000\n"
        " 1 state 2 nowhere at 0/0 memory 0 extent 0 00000000 in file 0 waits 1; row 0 state 1 "
        "flags 2 more 0 extent 0 00000000 offsets 0 0 at 0/0 in 0\n");
    settles();
    assert_true(write_some(mine, 200));
    asks(mine, LEAT_STORE_COMMIT);
    settles();
    show();
    TRACE_IS(
        " answer 1 kind 1: 0\n"
        " write store/0 together 0+12288 a2534c71\n"
        " sync store/0\n"
        " answer 1 kind 1: 0\n"
        " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown +0.000 behind "
        "+0.000 due +10000.000\n"
        " file 0: 62 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 1 held, 0 joined, 1 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 16384 last +0.000 wake +10000.000\n"
        " 1 state 2 nowhere at 0/0 memory 0 extent 0 00000000 in file 9888; row 0 state 2 flags 2 "
        "more 0 extent 9888 00000000 offsets 1000 0 at 0/0 in 0\n");
    disk_segment_is_hibernated(mine);
}

static void memory_segments_go(struct mine **mine)
{
    passes(2000);
    show();
    TRACE_IS(" pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown -2060.000 "
             "behind -2060.000 due +7940.000\n"
             " file 0: 58 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 3 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 65536; flush 0+0, 0 written 0 unsynced turn, "
             "arenas 0\n"
             " committed 28672 last -2060.000 wake +7940.000\n"
             " 1 state 4 cached at 0/0 memory 0 extent 5184 bd6136fe in file 5184 flushed closed "
             "-2060.000; row 0 state 4 flags 3 more 0 extent 5184 bd6136fe offsets 1000 1000 at "
             "0/0 in 0\n"
             " 2 state 4 cached at 0/2 memory 32768 extent 7584 6343637b in file 7584 flushed "
             "closed -2060.000; row 1 state 4 flags 3 more 0 extent 7584 6343637b offsets 2000 "
             "2000 at 0/2 in 32768\n"
             " 3 state 3 nowhere at 0/4 extent 9888 5084abe1 in file 9888; row 2 state 3 flags 0 "
             "more 0 extent 9888 5084abe1 offsets 3000 3000 at 0/4 in 0\n");
    asks(mine[0], LEAT_STORE_DROP);
    asks(mine[2], LEAT_STORE_RESUME);
    settles();
    show();
    TRACE_IS(" write catalogue 4096+4096 babe246d\n"
             " sync catalogue\n"
             " read store/0 65536+12288\n"
             " write catalogue 4096+4096 8ab47db0\n"
             " sync catalogue\n"
             " answer 1 kind 5: 0\n"
             " answer 3 kind 4: 0\n"
             " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown -2060.000 "
             "behind -2060.000 due +7940.000\n"
             " file 0: 60 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 2 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 32768; flush 0+0, 0 written 0 unsynced turn, "
             "arenas 0\n"
             " committed 28672 last -2060.000 wake +7940.000\n"
             " 2 state 4 cached at 0/2 memory 32768 extent 7584 6343637b in file 7584 flushed "
             "closed -2060.000; row 1 state 4 flags 3 more 0 extent 7584 6343637b offsets 2000 "
             "2000 at 0/2 in 32768\n"
             " 3 state 2 nowhere at 0/4 memory 65536 extent 9888 5084abe1 in file 9888; row 2 "
             "state 2 flags 2 more 0 extent 9888 00000000 offsets 3000 0 at 0/4 in 65536\n");
    bench_free(bench);
}

static void memory_segments_wait(struct mine **mine)
{
    passes(40);
    show();
    TRACE_IS(
        " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown -40.000 behind "
        "-40.000 due +9960.000\n"
        " file 0: 58 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 3 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 28672 last -40.000 wake +10.000\n"
        " 1 state 4 dirty at 0/0 memory 0 extent 5184 bd6136fe in file 5088 closed -40.000; row 0 "
        "state 4 flags 2 more 0 extent 5184 bd6136fe offsets 1000 1000 at 0/0 in 0\n"
        " 2 state 4 dirty at 0/2 memory 32768 extent 7584 6343637b in file 7488 closed -40.000; "
        "row 1 state 4 flags 2 more 0 extent 7584 6343637b offsets 2000 2000 at 0/2 in 32768\n"
        " 3 state 3 nowhere at 0/4 extent 9888 5084abe1 in file 9888; row 2 state 3 flags 0 more 0 "
        "extent 9888 5084abe1 offsets 3000 3000 at 0/4 in 0\n");
    passes(20);
    show();
    TRACE_IS(
        " write beside store/0 4096+4096 fb6f4195\n"
        " write beside store/0 36864+4096 b6502609\n"
        " sync beside store/0\n"
        " write catalogue 4096+4096 d6766838\n"
        " sync catalogue\n"
        " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown -60.000 behind "
        "-60.000 due +9940.000\n"
        " file 0: 58 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 3 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 65536; flush 0+0, 0 written 0 unsynced turn, arenas "
        "0\n"
        " committed 28672 last -60.000 wake +9940.000\n"
        " 1 state 4 cached at 0/0 memory 0 extent 5184 bd6136fe in file 5184 flushed closed "
        "-60.000; row 0 state 4 flags 3 more 0 extent 5184 bd6136fe offsets 1000 1000 at 0/0 in 0\n"
        " 2 state 4 cached at 0/2 memory 32768 extent 7584 6343637b in file 7584 flushed closed "
        "-60.000; row 1 state 4 flags 3 more 0 extent 7584 6343637b offsets 2000 2000 at 0/2 in "
        "32768\n"
        " 3 state 3 nowhere at 0/4 extent 9888 5084abe1 in file 9888; row 2 state 3 flags 0 more 0 "
        "extent 9888 5084abe1 offsets 3000 3000 at 0/4 in 0\n");
    memory_segments_go(mine);
}

static void segments_of_a_memory_stream_are_flushed(void **state)
{
    (void)state;
    bench_watch(2);
    struct mine *mine[3];
    for (unsigned i = 0; i < 3; i++) {
        mine[i] = begun(LEAT_DURABILITY_MEMORY, i);
        assert_true(write_some(mine[i], 100 + 50 * i));
    }
    trace_begin();
    asks(mine[0], LEAT_STORE_COMMIT);
    asks(mine[1], LEAT_STORE_COMMIT);
    settles();
    show();
    TRACE_IS(
        " write store/0 together 0+8192 85e32e41\n"
        " sync store/0\n"
        " write store/0 together 32768+8192 a8cfac0b\n"
        " sync store/0\n"
        " answer 1 kind 1: 0\n"
        " answer 2 kind 1: 0\n"
        " pool 3 given, 4090 units free, 0 past; 64 of 128 MiB used leaving 0 grown +0.000 behind "
        "+0.000 due +10000.000\n"
        " file 0: 58 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 3 held, 0 joined, 1 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 16384 last +0.000 wake +10000.000\n"
        " 1 state 2 nowhere at 0/0 memory 0 extent 0 00000000 in file 5088; row 0 state 2 flags 2 "
        "more 0 extent 5088 00000000 offsets 1000 0 at 0/0 in 0\n"
        " 2 state 2 nowhere at 0/2 memory 32768 extent 0 00000000 in file 7488; row 1 state 2 "
        "flags 2 more 0 extent 7488 00000000 offsets 2000 0 at 0/2 in 32768\n"
        " 3 state 2 nowhere at 0/4 memory 65536 extent 0 00000000 in file 0; row 2 state 1 flags 2 "
        "more 0 extent 0 00000000 offsets 0 0 at 0/4 in 65536\n");
    for (unsigned i = 0; i < 2; i++) {
        write_close(mine[i]);
        asks(mine[i], LEAT_STORE_CLOSE);
    }
    asks(mine[2], LEAT_STORE_HIBERNATE);
    settles();
    show();
    TRACE_IS(
        " write catalogue 4096+4096 2cfe8c61\n"
        " write store/0 together 65536+12288 94548b9a\n"
        " sync store/0\n"
        " answer 1 kind 2: 0\n"
        " write catalogue 4096+4096 d6228192\n"
        " sync catalogue\n"
        " answer 2 kind 2: 0\n"
        " answer 3 kind 3: 0\n"
        " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown +0.000 behind "
        "+0.000 due +10000.000\n"
        " file 0: 58 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 3 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced turn, arenas 0\n"
        " committed 28672 last +0.000 wake +50.000\n"
        " 1 state 4 dirty at 0/0 memory 0 extent 5184 bd6136fe in file 5088 closed +0.000; row 0 "
        "state 4 flags 2 more 0 extent 5184 bd6136fe offsets 1000 1000 at 0/0 in 0\n"
        " 2 state 4 dirty at 0/2 memory 32768 extent 7584 6343637b in file 7488 closed +0.000; row "
        "1 state 4 flags 2 more 0 extent 7584 6343637b offsets 2000 2000 at 0/2 in 32768\n"
        " 3 state 3 nowhere at 0/4 extent 9888 5084abe1 in file 9888; row 2 state 3 flags 0 more 0 "
        "extent 9888 5084abe1 offsets 3000 3000 at 0/4 in 0\n");
    memory_segments_wait(mine);
}

/* Four lives, as far as each has come. */
static struct mine *lives[5];
static void lives_begin(void)
{
    for (unsigned i = 0; i < 5; i++) {
        lives[i] = begun(i % 2 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK, i);
        assert_true(write_some(lives[i], 30 * i));
        asks(lives[i], LEAT_STORE_COMMIT);
        settles();
    }
    asks(lives[2], LEAT_STORE_HIBERNATE);
    settles();
    write_close(lives[3]);
    asks(lives[3], LEAT_STORE_CLOSE);
    write_close(lives[4]);
    asks(lives[4], LEAT_STORE_CLOSE);
    settles();
    assert_true(write_some(lives[0], 3)); /* sealed, and asked for by nobody */
}

static void starts(bool power, bool memory)
{
    trace_begin();
    if (power)
        fake_power_cut(&bench->world);
    else
        fake_kill(&bench->world);
    if (!memory) bench->world.arena.inherited_bytes = 0;
    open_again(bench);
    trace_found();
    show();
}

static void killed_store_goes_on(void)
{
    leat_store_found_done(bench->store);
    leat_store_actor.on_turn_end(bench->store);
    passes(100);
    show();
    TRACE_IS(
        " write beside store/1 32768+8192 bc260b92\n"
        " sync beside store/1\n"
        " write catalogue 4096+4096 cf8417fd\n"
        " sync catalogue\n"
        " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown - behind "
        "-100.000 due +9900.000\n"
        " file 0: 58 of 64 units free\n"
        " file 1: 60 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 5 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 32768; flush 0+0, 0 written 0 unsynced, arenas 0\n"
        " committed 0 last - wake +9900.000\n"
        " 1 state 2 nowhere at 0/0 extent 288 844cb4ae in file 288; row 0 state 2 flags 2 more 0 "
        "extent 288 00000000 offsets 1000 0 at 0/0 in 0\n"
        " 2 state 2 nowhere at 1/0 memory 32768 extent 1728 ef761d9e in file 0; row 1 state 2 "
        "flags 2 more 0 extent 1728 00000000 offsets 2000 0 at 1/0 in 32768\n"
        " 3 state 3 nowhere at 0/2 extent 3168 6eb166fc in file 3168; row 2 state 3 flags 0 more 0 "
        "extent 3168 6eb166fc offsets 3000 3000 at 0/2 in 0\n"
        " 4 state 4 cached at 1/2 memory 98304 extent 4704 359331c1 in file 4704 flushed closed "
        "-100.000; row 3 state 4 flags 3 more 0 extent 4704 359331c1 offsets 4000 4000 at 1/2 in "
        "98304\n"
        " 5 state 4 nowhere at 0/4 extent 6144 224fc51c in file 6144 flushed; row 4 state 4 flags "
        "3 more 0 extent 6144 224fc51c offsets 5000 5000 at 0/4 in 131072\n");
    starts(false, true);
    TRACE_IS(" now read catalogue 0+4096\n"
             " now read catalogue 4096+131072\n"
             " now read store/0 0+32768\n"
             " now read store/0 0+32768\n"
             " now read store/0 32768+4096\n"
             " now sync store/0\n"
             " now sync catalogue\n"
             " found 1 kind 1 state 2: 288 bytes 844cb4ae of 288, offsets 1000 1000 started ''\n"
             " found 2 kind 1 state 2: 1728 bytes ef761d9e of 1728, offsets 2000 2000 started ''\n"
             " found 3 kind 1 state 3: 3168 bytes 6eb166fc of 3168, offsets 3000 3000 started ''\n"
             " found 4 kind 0 state 4: 4704 bytes 359331c1 of 4704, offsets 4000 4000 started "
             "closed ''\n"
             " found 5 kind 0 state 4: 6144 bytes 224fc51c of 6144, offsets 5000 5000 started "
             "closed ''\n"
             " pool 1 given, 4094 units free, 0 past; 64 of 128 MiB used leaving 0 grown - behind "
             "- due -\n"
             " file 0: 58 of 64 units free\n"
             " file 1: 60 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 5 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced, arenas 0\n"
             " committed 0 last - wake -\n"
             " 1 state 2 nowhere at 0/0 extent 288 844cb4ae in file 288; row 0 state 2 flags 2 "
             "more 0 extent 288 00000000 offsets 1000 0 at 0/0 in 0\n"
             " 2 state 2 nowhere at 1/0 memory 32768 extent 1728 ef761d9e in file 0; row 1 state 2 "
             "flags 2 more 0 extent 1728 00000000 offsets 2000 0 at 1/0 in 32768\n"
             " 3 state 3 nowhere at 0/2 extent 3168 6eb166fc in file 3168; row 2 state 3 flags 0 "
             "more 0 extent 3168 6eb166fc offsets 3000 3000 at 0/2 in 0\n"
             " 4 state 4 nowhere at 1/2 extent 4704 359331c1 in file 4704 flushed; row 3 state 4 "
             "flags 3 more 0 extent 4704 359331c1 offsets 4000 4000 at 1/2 in 98304\n"
             " 5 state 4 nowhere at 0/4 extent 6144 224fc51c in file 6144 flushed; row 4 state 4 "
             "flags 3 more 0 extent 6144 224fc51c offsets 5000 5000 at 0/4 in 131072\n");
    bench_free(bench);
}

static void killed_store_finds_what_memory_has(void **state)
{
    (void)state;
    bench_watch(3);
    lives_begin();
    starts(false, true);
    TRACE_IS(" now read catalogue 0+4096\n"
             " now read catalogue 4096+131072\n"
             " now read store/0 0+32768\n"
             " now read store/0 0+32768\n"
             " now read store/0 32768+4096\n"
             " now sync store/0\n"
             " now write catalogue 4096+4096 8b6416df\n"
             " now sync catalogue\n"
             " found 1 kind 1 state 2: 288 bytes 844cb4ae of 288, offsets 1000 1000 started ''\n"
             " found 2 kind 1 state 2: 1728 bytes ef761d9e of 1728, offsets 2000 2000 started ''\n"
             " found 3 kind 1 state 3: 3168 bytes 6eb166fc of 3168, offsets 3000 3000 started ''\n"
             " found 4 kind 0 state 4: 4704 bytes 359331c1 of 4704, offsets 4000 4000 started "
             "closed ''\n"
             " found 5 kind 0 state 4: 6144 bytes 224fc51c of 6144, offsets 5000 5000 started "
             "closed ''\n"
             " pool 2 given, 4092 units free, 0 past; 64 of 128 MiB used leaving 0 grown - behind "
             "- due -\n"
             " file 0: 58 of 64 units free\n"
             " file 1: 60 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 5 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced, arenas 0\n"
             " committed 0 last - wake -\n"
             " 1 state 2 nowhere at 0/0 extent 288 844cb4ae in file 288; row 0 state 2 flags 2 "
             "more 0 extent 288 00000000 offsets 1000 0 at 0/0 in 0\n"
             " 2 state 2 nowhere at 1/0 memory 32768 extent 1728 ef761d9e in file 0; row 1 state 2 "
             "flags 2 more 0 extent 1728 00000000 offsets 2000 0 at 1/0 in 32768\n"
             " 3 state 3 nowhere at 0/2 extent 3168 6eb166fc in file 3168; row 2 state 3 flags 0 "
             "more 0 extent 3168 6eb166fc offsets 3000 3000 at 0/2 in 0\n"
             " 4 state 4 dirty at 1/2 memory 98304 extent 4704 359331c1 in file 0 closed +0.000; "
             "row 3 state 4 flags 2 more 0 extent 4704 359331c1 offsets 4000 4000 at 1/2 in 98304\n"
             " 5 state 4 nowhere at 0/4 extent 6144 224fc51c in file 6144 flushed; row 4 state 4 "
             "flags 3 more 0 extent 6144 224fc51c offsets 5000 5000 at 0/4 in 131072\n");
    killed_store_goes_on();
}

static void store_after_a_power_cut(void)
{
    bench_watch(5);
    lives_begin();
    passes(1000);
    starts(true, false);
    TRACE_IS(" now read catalogue 0+4096\n"
             " now read catalogue 4096+131072\n"
             " now read store/0 0+32768\n"
             " now read store/0 0+32768\n"
             " now read store/1 0+32768\n"
             " now read store/0 32768+4096\n"
             " now sync store/0\n"
             " now sync store/1\n"
             " now write catalogue 4096+4096 6a4a6797\n"
             " now sync catalogue\n"
             " found 1 kind 1 state 2: 288 bytes 844cb4ae of 288, offsets 1000 1000 started ''\n"
             " found 2 kind 2 state 2: 1728 bytes ef761d9e of 0, offsets 2000 2000 started 'its "
             "memory did not survive (another boot or another pool); 1728 bytes are in the file'\n"
             " found 3 kind 1 state 3: 3168 bytes 6eb166fc of 3168, offsets 3000 3000 started ''\n"
             " found 4 kind 0 state 4: 4704 bytes 359331c1 of 4704, offsets 4000 4000 started "
             "closed ''\n"
             " found 5 kind 0 state 4: 6144 bytes 224fc51c of 6144, offsets 5000 5000 started "
             "closed ''\n"
             " pool 0 given, 0 units free, 0 past; 0 of 128 MiB leaving 0 grown - behind - due -\n"
             " file 0: 58 of 64 units free\n"
             " file 1: 60 of 64 units free\n"
             " fresh 0 to 0, zeroing 0+0\n"
             " rows 5 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
             " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced, arenas 0\n"
             " committed 0 last - wake -\n"
             " 1 state 2 nowhere at 0/0 extent 288 844cb4ae in file 288; row 0 state 2 flags 2 "
             "more 0 extent 288 00000000 offsets 1000 0 at 0/0 in 0\n"
             " 2 state 2 nowhere at 1/0 extent 1728 ef761d9e in file 0; row 1 state 2 flags 2 more "
             "0 extent 1728 00000000 offsets 2000 0 at 1/0 in 32768\n"
             " 3 state 3 nowhere at 0/2 extent 3168 6eb166fc in file 3168; row 2 state 3 flags 0 "
             "more 0 extent 3168 6eb166fc offsets 3000 3000 at 0/2 in 0\n"
             " 4 state 4 nowhere at 1/2 extent 4704 359331c1 in file 4704 flushed; row 3 state 4 "
             "flags 3 more 0 extent 4704 359331c1 offsets 4000 4000 at 1/2 in 98304\n"
             " 5 state 4 nowhere at 0/4 extent 6144 224fc51c in file 6144 flushed; row 4 state 4 "
             "flags 3 more 0 extent 6144 224fc51c offsets 5000 5000 at 0/4 in 131072\n");
    bench_free(bench);
}

static void store_without_its_memory_finds_its_files(void **state)
{
    (void)state;
    bench_watch(4);
    lives_begin();
    starts(false, false);
    TRACE_IS(
        " now read catalogue 0+4096\n"
        " now read catalogue 4096+131072\n"
        " now read store/0 0+32768\n"
        " now read store/0 0+32768\n"
        " now read store/1 0+32768\n"
        " now read store/0 32768+4096\n"
        " now read store/1 32768+32768\n"
        " now sync store/0\n"
        " now sync store/1\n"
        " now write catalogue 4096+4096 a710b5ac\n"
        " now sync catalogue\n"
        " found 1 kind 1 state 2: 288 bytes 844cb4ae of 288, offsets 1000 1000 started ''\n"
        " found 2 kind 2 state 2: 1728 bytes ef761d9e of 0, offsets 2000 2000 started 'its memory "
        "did not survive (another boot or another pool); 1728 bytes are in the file'\n"
        " found 3 kind 1 state 3: 3168 bytes 6eb166fc of 3168, offsets 3000 3000 started ''\n"
        " found 4 kind 2 state 4: 4608 bytes 21ad1653 of 0, offsets 4000 4000 started 'its memory "
        "did not survive before it was flushed; 4608 of 4704 bytes are in the file'\n"
        " found 5 kind 0 state 4: 6144 bytes 224fc51c of 6144, offsets 5000 5000 started closed "
        "''\n"
        " pool 0 given, 4096 units free, 0 past; 64 of 128 MiB leaving 0 grown - behind - due -\n"
        " file 0: 58 of 64 units free\n"
        " file 1: 60 of 64 units free\n"
        " fresh 0 to 0, zeroing 0+0\n"
        " rows 5 held, 0 joined, 0 lazy; rounds 0 + 0 of rows, 0 passed, 0 crowded\n"
        " waits 0 of 0, data 0; asked 0 cached 0; flush 0+0, 0 written 0 unsynced, arenas 0\n"
        " committed 0 last - wake -\n"
        " 1 state 2 nowhere at 0/0 extent 288 844cb4ae in file 288; row 0 state 2 flags 2 more 0 "
        "extent 288 00000000 offsets 1000 0 at 0/0 in 0\n"
        " 2 state 2 nowhere at 1/0 extent 1728 ef761d9e in file 0; row 1 state 2 flags 2 more 0 "
        "extent 1728 00000000 offsets 2000 0 at 1/0 in 32768\n"
        " 3 state 3 nowhere at 0/2 extent 3168 6eb166fc in file 3168; row 2 state 3 flags 0 more 0 "
        "extent 3168 6eb166fc offsets 3000 3000 at 0/2 in 0\n"
        " 4 state 4 nowhere at 1/2 extent 4704 359331c1 in file 0; row 3 state 4 flags 2 more 0 "
        "extent 4704 359331c1 offsets 4000 4000 at 1/2 in 98304\n"
        " 5 state 4 nowhere at 0/4 extent 6144 224fc51c in file 6144 flushed; row 4 state 4 flags "
        "3 more 0 extent 6144 224fc51c offsets 5000 5000 at 0/4 in 131072\n");
    bench_free(bench);
    store_after_a_power_cut();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_of_a_disk_stream_lives),
        cmocka_unit_test(segments_of_a_memory_stream_are_flushed),
        cmocka_unit_test(killed_store_finds_what_memory_has),
        cmocka_unit_test(store_without_its_memory_finds_its_files),
    };
    return cmocka_run_group_tests_name("store whole", tests, NULL, NULL);
}
