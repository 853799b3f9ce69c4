/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: which rows and headers are taken for whole, how its file grows, and which blocks a round writes. */
#include "tests/store/store_bench.h"

#include "store/row.h"

/* ---- rows ---- */

static struct leat_row good_row(void)
{
    return (struct leat_row){.state = LEAT_SEGMENT_CLOSED,
                             .durability = LEAT_DURABILITY_DISK,
                             .capacity = 65536,
                             .slot_file = 3,
                             .slot_unit = 8,
                             .prefix_id_bytes = 65536};
}

/* Goal: a row is whole on one side of each bound and damaged on the other; one that is free may say anything. */
static void catalogue_rows_have_their_bounds(void **state)
{
    (void)state;
    static const struct {
        size_t at, bytes;
        uint64_t value;
        bool good;
    } rows[] = {
#define FIELD(name) offsetof(struct leat_row, name), sizeof((struct leat_row *)0)->name
        {FIELD(state), LEAT_SEGMENT_CLOSED, true},
        {FIELD(state), LEAT_SEGMENT_CLOSED + 1, false},
        {FIELD(state), LEAT_SEGMENT_RESERVED, true},
        {FIELD(durability), 0, true},
        {FIELD(durability), LEAT_DURABILITY_DISK + 1, false},
        {FIELD(capacity), 0, false},
        {FIELD(capacity), LEAT_SEGMENT_BYTES_MIN / 2, false},
        {FIELD(capacity), 65536 - 1, false},
        {FIELD(capacity), 65536 + 1, false},
        {FIELD(capacity), 65536 * 3, false},
        {FIELD(capacity), LEAT_SEGMENT_BYTES_MAX * 2, false},
        {FIELD(prefix_id_bytes), 65537, false},
        {FIELD(prefix_id_bytes), 0, true},
        {FIELD(slot_file), LEAT_STORE_FILES_MAX - 1, true},
        {FIELD(slot_file), LEAT_STORE_FILES_MAX, false},
        {FIELD(slot_unit), 65536 - 4, true},
        {FIELD(slot_unit), 65536, false},
        {FIELD(slot_unit), 4, true},
        {FIELD(slot_unit), 5, false},
        {FIELD(slot_unit), 6, false},
        {FIELD(flags), 255, true},
        {FIELD(stream), 77, true},
#undef FIELD
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct leat_row row = good_row();
        memcpy((uint8_t *)&row + rows[i].at, &rows[i].value, rows[i].bytes);
        leat_row_seal(&row, 9);
        assert_int_equal(leat_row_valid(&row, 9), rows[i].good);
        assert_false(leat_row_valid(&row, 10)); /* it is another's */
        if (row.state <= LEAT_SEGMENT_CLOSED) {
            row.state = LEAT_SEGMENT_FREE;
            leat_row_seal(&row, 9);
            assert_true(leat_row_valid(&row, 9));
        }
        for (unsigned byte = 0; byte < sizeof row; byte++) {
            struct leat_row bad = row;
            ((uint8_t *)&bad)[byte] ^= 0x10;
            assert_false(leat_row_valid(&bad, 9));
        }
    }
    for (uint32_t capacity = LEAT_SEGMENT_BYTES_MIN; capacity <= LEAT_SEGMENT_BYTES_MAX;
         capacity *= 2) {
        struct leat_row row = good_row();
        row.capacity = capacity;
        row.prefix_id_bytes = capacity;
        row.slot_unit = capacity / LEAT_SLOT_UNIT_BYTES;
        leat_row_seal(&row, 0);
        assert_true(leat_row_valid(&row, 0));
    }
    struct leat_row large = good_row();
    large.capacity = large.prefix_id_bytes = LEAT_SEGMENT_BYTES_MAX * 2;
    large.slot_unit = 0;
    leat_row_seal(&large, 0);
    assert_false(leat_row_valid(&large, 0));
    struct leat_row none = {0};
    assert_true(leat_row_valid(&none, 5)); /* never used */
    for (unsigned byte = 0; byte < sizeof none; byte++) {
        struct leat_row bad = none;
        ((uint8_t *)&bad)[byte] = 1;
        assert_false(leat_row_valid(&bad, 5));
    }
    memset(&none, 0xff, sizeof none); /* nor is one of other bytes that are all the same */
    assert_false(leat_row_valid(&none, 5));
}

/* Goal: a row of less than the smallest segment is damaged, also where nothing else of it is too large. */
static void catalogue_row_of_too_little_is_damaged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct leat_row small = good_row();
        small.capacity = i * LEAT_SEGMENT_BYTES_MIN / 2;
        small.prefix_id_bytes = small.slot_unit = 0;
        leat_row_seal(&small, 0);
        assert_int_equal(leat_row_valid(&small, 0), i == 2);
    }
}

/* ---- the header ---- */

static void header_seal(struct leat_catalogue_header *header)
{
    header->crc = leat_crc32c(0, (const uint8_t *)header + sizeof header->crc,
                              sizeof *header - sizeof header->crc);
}

/* Goal: a header that is not this store's, this format's or whole is refused by its own code; nothing is written. */
static void catalogue_headers_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t to;
        bool sealed;
        leat_err rc;
        const char *says;
    } rows[] = {
        {offsetof(struct leat_catalogue_header, magic), 0, true, LEAT_E_DAMAGED,
         "does not begin with"},
        {offsetof(struct leat_catalogue_header, version), 2, true, LEAT_E_UNSUPPORTED,
         "format version 2"},
        {offsetof(struct leat_catalogue_header, version), 2, false, LEAT_E_UNSUPPORTED,
         "format version 2"},
        {offsetof(struct leat_catalogue_header, row_bytes), 127, true, LEAT_E_DAMAGED,
         "checksum mismatch"},
        {offsetof(struct leat_catalogue_header, row_count), 1, false, LEAT_E_DAMAGED,
         "checksum mismatch"},
        {offsetof(struct leat_catalogue_header, store_id), 1, false, LEAT_E_DAMAGED,
         "checksum mismatch"},
        {offsetof(struct leat_catalogue_header, cluster_id), 'x', true, LEAT_E_WRONG_CLUSTER,
         "another cluster"},
        {offsetof(struct leat_catalogue_header, store_id), 1, true, LEAT_OK, ""},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench *bench = bench_ready(1);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_file *file = fake_file(&bench->world, "catalogue");
        file->now[rows[i].at] = rows[i].to;
        if (rows[i].sealed) header_seal((struct leat_catalogue_header *)(void *)file->now);
        static uint8_t before[LEAT_BLOCK_BYTES];
        memcpy(before, file->now, sizeof before);
        struct leat_error error = {0};
        assert_int_equal(bench_open(bench, &error), rows[i].rc);
        if (rows[i].rc) assert_non_null(strstr(error.text, rows[i].says));
        assert_memory_equal(file->now, before, sizeof before);
        bench_free(bench);
    }
    for (unsigned less = 0; less < 2; less++) { /* the header is whole, but not its block */
        struct bench *bench = bench_ready(1);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        fake_file(&bench->world, "catalogue")->bytes = LEAT_BLOCK_BYTES - less;
        assert_int_equal(bench_open(bench, NULL), less ? LEAT_E_DAMAGED : LEAT_OK);
        bench_free(bench);
    }
}

/* Goal: a store of no cluster yet becomes one's, durably, and stays it; its own id is never another's. */
static void catalogue_joins_a_cluster_once(void **state)
{
    (void)state;
    struct bench *bench = bench_new(3);
    struct leat_store_options options = options_of();
    static const uint8_t other[16] = "another cluster";
    memset(options.cluster_id, 0, sizeof options.cluster_id);
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    const struct leat_catalogue_header *header = (const void *)file->durable;
    uint8_t id[16], again[16];
    leat_store_id(bench->store, id);
    assert_memory_equal(header->store_id, id, 16);
    static const uint8_t none[16];
    assert_memory_equal(header->cluster_id, none, 16);
    assert_memory_not_equal(id, none, 8);
    assert_memory_not_equal(id + 8, none, 8);
    assert_int_equal(leat_store_join(bench->store, cluster, NULL), LEAT_OK);
    assert_memory_equal(header->cluster_id, cluster, 16);
    uint64_t ops = bench->world.op_count;
    assert_int_equal(leat_store_join(bench->store, cluster, NULL), LEAT_OK); /* already */
    assert_int_equal(bench->world.op_count, ops);
    struct leat_error error = {0};
    assert_int_equal(leat_store_join(bench->store, other, &error), LEAT_E_WRONG_CLUSTER);
    assert_non_null(strstr(error.text, "another cluster"));
    assert_memory_equal(header->cluster_id, cluster, 16);
    assert_memory_equal(bench->store->options.cluster_id, cluster, 16);
    leat_store_id(bench->store, again);
    assert_memory_equal(again, id, 16);
    bench_drop_store(bench);
    bench_free(bench);

    bench = bench_new(4);
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    leat_store_id(bench->store, again);
    assert_memory_not_equal(again, id, 16);
    bench->world.fail_at = bench->world.op_count + 1;
    assert_int_equal(leat_store_join(bench->store, cluster, &error), LEAT_E_DISK);
    assert_non_null(strstr(error.text, "catalogue's header"));
    bench_free(bench);
}

/* ---- its file ---- */

static uint64_t rows_said(struct bench *bench)
{
    return ((const struct leat_catalogue_header *)(void *)fake_file(&bench->world, "catalogue")
                ->durable)
        ->row_count;
}

/* Goal: the catalogue grows by 1,024 rows when it needs more, and its header says so before a row is written there. The
 * row that was freed last is taken next. */
static void catalogue_grows_by_its_chunk(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(5);
    struct leat_catalogue *cat = &bench->store->cat;
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    assert_int_equal(rows_said(bench), 0);
    assert_int_equal(file->bytes, 4096);
    for (uint32_t want = 0; want < 2050; want++) {
        uint32_t row = UINT32_MAX;
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
        assert_int_equal(row, want);
        uint32_t chunks = want / 1024 + 1;
        assert_int_equal(cat->chunk_count, chunks);
        assert_int_equal(cat->held_count, want + 1);
        assert_int_equal(rows_said(bench), chunks * 1024);
        assert_int_equal(file->bytes, 4096 + chunks * 131072);
        assert_int_equal(leat_catalogue_bytes(cat), 4096 + chunks * 131072);
    }
    static const uint32_t free[] = {5, 64, 1023, 1024, 2047};
    for (unsigned i = 5; i-- > 0;)
        leat_catalogue_give(cat, free[i]);
    assert_int_equal(cat->held_count, 2045);
    for (unsigned i = 0; i < 5; i++) {
        uint32_t row = UINT32_MAX;
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
        assert_int_equal(row, free[i]);
    }
    uint32_t row;
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    assert_int_equal(row, 2050);
    /* A chunk for which the disk, or memory, has no room: nothing is said of it. */
    while (cat->held_count < 3072)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    bench->world.space_bytes = 1;
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_E_DISK_FULL);
    bench->world.space_bytes = 0;
    leat_mem_fail_at(1);
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(rows_said(bench), 3072);
    assert_false(cat->failed);
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    assert_int_equal(row, 3072);
    cat->chunk_count = LEAT_STORE_CHUNKS_MAX; /* its last */
    uint32_t hint = cat->free_hint;
    cat->free_hint = LEAT_STORE_CHUNKS_MAX;
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_E_TOO_MANY);
    cat->chunk_count = 4;
    cat->free_hint = hint;
    while (cat->held_count < 4096)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    bench->world.fail_at = bench->world.op_count + 2; /* the header's write */
    assert_int_equal(leat_catalogue_take(cat, &row), LEAT_E_DISK);
    assert_true(cat->failed);
    bench_free(bench);
}

static uint64_t bad_rows;
static void count_line(void *arg, const char *line)
{
    *(char *)arg = line[0];
}

/* Opens a catalogue of that length, with a header that promises so many rows. */
static leat_err opened_with(uint64_t bytes, uint64_t rows, char *out_said,
                            struct leat_catalogue *cat, struct bench *bench)
{
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    struct leat_catalogue_header *header = (void *)file->now;
    file->bytes = bytes;
    header->row_count = rows;
    header_seal(header);
    *out_said = 0;
    assert_int_equal(leat_catalogue_init(cat, &bench->world.disk), LEAT_OK);
    if (rows > 4096) leat_mem_fail_at(1);
    leat_err rc = leat_catalogue_open(cat, &bench->world.env, cluster, true, count_line, out_said,
                                      &bad_rows, NULL);
    leat_mem_fail_at(0);
    return rc;
}

/* Goal: rows that the header promises and the file lacks count as missing. One chunk more than the header promises is
 * what a crash leaves, and the header promises it then; a longer file is no catalogue. */
static void catalogue_length_is_what_its_header_promises(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, rows;
        leat_err rc;
        uint64_t bad, in_file, promised;
    } cases[] = {
        {4096, 0, LEAT_OK, 0, 0, 0},
        {4096, 1, LEAT_OK, 1, 0, 1},
        {4096 + 1, 0, LEAT_OK, 0, 0, 0},
        {4096 + 127, 1, LEAT_OK, 1, 0, 1},
        {4096 + 128, 1, LEAT_OK, 0, 1, 1},
        {4096 + 128 * 1024, 1024, LEAT_OK, 0, 1024, 1024},
        {4096 + 128 * 1023, 1024, LEAT_OK, 1, 1023, 1024},
        {4096 + 128 * 1024, 0, LEAT_OK, 0, 1024, 1024},
        {4096 + 128 * 1024 + 1, 0, LEAT_E_DAMAGED, 0, 0, 0},
        {4096 + 128 * 2048, 1024, LEAT_OK, 0, 2048, 2048},
        {4096 + 128 * 2048 + 1, 1024, LEAT_E_DAMAGED, 0, 0, 0},
        {4096 + 128 * 700, 2048, LEAT_OK, 1348, 700, 2048},
        /* No catalogue has more chunks than this; the test has no memory for so many. */
        {4096 + 128 * 1024 * UINT64_C(8192), 1024 * 8192, LEAT_E_NO_MEMORY, 0, 0, 0},
        {4096 + 128 * 1024 * UINT64_C(8192) + 1, 1024 * 8192, LEAT_E_DAMAGED, 0, 0, 0},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench *bench = bench_ready(6);
        uint32_t row;
        for (unsigned j = 0; j < 2049; j++) /* so that the file is large enough to be cut */
            assert_int_equal(leat_catalogue_take(&bench->store->cat, &row), LEAT_OK);
        fake_kill(&bench->world);
        bench_drop_store(bench);
        struct leat_catalogue cat;
        char said;
        bad_rows = 0;
        assert_int_equal(opened_with(cases[i].bytes, cases[i].rows, &said, &cat, bench),
                         cases[i].rc);
        if (cases[i].rc == LEAT_OK) {
            assert_int_equal(bad_rows, cases[i].bad);
            assert_int_equal(said != 0, cases[i].bad != 0);
            assert_int_equal(cat.rows_in_file, cases[i].in_file);
            assert_int_equal(cat.header.row_count, cases[i].promised);
            assert_int_equal(cat.chunk_count, (cases[i].bytes - 4096 + 131071) / 131072);
            if (cases[i].promised != cases[i].rows)
                assert_int_equal(rows_said(bench), cases[i].promised);
        }
        leat_catalogue_fini(&cat);
        bench_free(bench);
    }
}

/* Goal: a row is read from the place that its number gives, in the second chunk too. A catalogue whose header promises
 * the rows that the file has is not written to. */
static void catalogue_reads_each_row_where_it_lies(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {0, 1, 31, 32, 1023, 1024, 1025, 1500, 2046, 2047};
    enum { ROWS = sizeof numbers / sizeof *numbers, CHUNKS = 2 };
    struct bench *bench = bench_ready(6);
    struct leat_row written[ROWS];
    uint32_t row;
    for (unsigned j = 0; j < 2049; j++)
        assert_int_equal(leat_catalogue_take(&bench->store->cat, &row), LEAT_OK);
    fake_kill(&bench->world);
    bench_drop_store(bench);
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    for (unsigned i = 0; i < ROWS; i++) {
        written[i] = good_row();
        written[i].stream = 1000 + numbers[i];
        leat_row_seal(&written[i], numbers[i]);
        memcpy(file->now + LEAT_BLOCK_BYTES + numbers[i] * 128, &written[i], sizeof written[i]);
    }
    struct leat_catalogue cat;
    char said;
    bad_rows = 0;
    uint64_t ops = bench->world.op_count;
    assert_int_equal(opened_with(4096 + CHUNKS * 131072, CHUNKS * 1024, &said, &cat, bench),
                     LEAT_OK);
    assert_int_equal(bench->world.op_count - ops,
                     2 + CHUNKS); /* opened, and read: the header, each chunk */
    assert_int_equal(bad_rows, 0);
    for (unsigned i = 0; i < ROWS; i++)
        assert_memory_equal(leat_catalogue_row(&cat, numbers[i]), &written[i], sizeof written[i]);
    assert_int_equal(leat_catalogue_row(&cat, 1026)->state, LEAT_SEGMENT_FREE);
    leat_catalogue_fini(&cat);
    /* Another's row in its place is damaged, whichever chunk that is in. */
    memcpy(file->now + LEAT_BLOCK_BYTES + 1600 * 128, &written[2], sizeof written[2]);
    assert_int_equal(opened_with(4096 + CHUNKS * 131072, CHUNKS * 1024, &said, &cat, bench),
                     LEAT_OK);
    assert_int_equal(bad_rows, 1);
    assert_int_equal(said, 'r'); /* row 1600 ... is damaged */
    leat_catalogue_fini(&cat);
    bench_free(bench);
}

/* ---- rounds ---- */

static unsigned dones;
static void on_done(struct leat_disk_io *io)
{
    (void)io;
    dones++;
}

/* Goal: a round writes each block with a joined row once, as the block was at that time, up to the limit of blocks.
 * Rows that were joined lazily are written in the next round that has other work, and room for their block. */
static void catalogue_round_writes_each_block_once(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(7);
    struct leat_catalogue *cat = &bench->store->cat;
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    uint32_t row;
    for (unsigned i = 0; i < 32 * 100; i++)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    for (unsigned beside = 0; beside < 2; beside++) {
        for (uint32_t i = 0; i < 64; i++)
            assert_true(leat_catalogue_join(cat, i * 32 + i % 32));
        assert_true(leat_catalogue_join(cat, 33));       /* of a block that goes anyway */
        assert_false(leat_catalogue_join(cat, 64 * 32)); /* no room for another */
        leat_catalogue_join_lazily(cat, 70 * 32);
        leat_catalogue_join_lazily(cat, 70 * 32 + 31);
        assert_int_equal(cat->lazy_count, 1);
        memset(leat_catalogue_row(cat, 40), 0x11 + (int)beside, 128);
        dones = 0;
        assert_int_equal(leat_catalogue_submit(cat, beside, on_done, NULL), 64);
        memset(leat_catalogue_row(cat, 40), 0x33, 128); /* later: not of this round */
        fake_settle(&bench->world);
        assert_int_equal(dones, 64);
        assert_int_equal(file->now[4096 + 40 * 128], 0x11 + (int)beside);
        leat_catalogue_round_end(cat);
        assert_false(cat->failed);
        assert_int_equal(cat->lazy_count, 1); /* there was no room for it */
        dones = 0;
        assert_int_equal(leat_catalogue_submit(cat, beside, on_done, NULL),
                         0); /* for it alone nothing goes */
        cat->sync_wanted = true;
        assert_int_equal(leat_catalogue_submit(cat, beside, on_done, NULL), 2);
        fake_settle(&bench->world);
        assert_int_equal(dones, 2);
        assert_int_equal(cat->blocks[0], 70);
        assert_int_equal(cat->lazy_count, 0);
        leat_catalogue_round_end(cat);
        assert_false(cat->sync_wanted);
        assert_int_equal(cat->block_count, 0);
        assert_int_equal(file->durable[4096 + 40 * 128], 0x11 + (int)beside);
    }
    for (uint32_t i = 0; i < 66; i++)
        leat_catalogue_join_lazily(cat, i * 32);
    assert_int_equal(cat->lazy_count, 64);
    for (unsigned sync = 0; sync < 2; sync++) { /* a write that fails, and a sync */
        cat->failed = false;
        cat->lazy_count = 0;
        assert_true(leat_catalogue_join(cat, 40));
        cat->sync_wanted = true;
        assert_int_equal(leat_catalogue_submit(cat, false, on_done, NULL), 2);
        bench->world.fail_at = bench->world.op_count + 1 + sync;
        fake_settle(&bench->world);
        leat_catalogue_round_end(cat);
        assert_true(cat->failed);
    }
    bench_free(bench);
}

/* Goal: a row of the second chunk is written by each round that it joins, not by the first alone. */
static void catalogue_rounds_write_rows_of_every_chunk(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(9);
    struct leat_catalogue *cat = &bench->store->cat;
    uint32_t row;
    for (unsigned i = 0; i <= LEAT_STORE_ROWS_PER_CHUNK; i++)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(leat_catalogue_join(cat, LEAT_STORE_ROWS_PER_CHUNK));
        assert_int_equal(leat_catalogue_submit(cat, false, on_done, NULL), 1);
        fake_settle(&bench->world);
        leat_catalogue_round_end(cat);
    }
    bench_free(bench);
}

/* Goal: all rows that a start or a cut has changed are written, and no other rows, then synced. */
static void catalogue_writes_what_was_changed(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(8);
    struct leat_catalogue *cat = &bench->store->cat;
    struct leat_file *file = fake_file(&bench->world, "catalogue");
    uint32_t row;
    for (unsigned i = 0; i < 32 * 70; i++)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    static const uint32_t rows[] = {0, 31, 32, 1023, 1024, 2047, 2239};
    for (unsigned i = 0; i < 7; i++) {
        memset(leat_catalogue_row(cat, rows[i]), (int)i + 1, 128);
        if (i != 2) leat_catalogue_changed(cat, rows[i]);
    }
    uint64_t ops = bench->world.op_count;
    assert_int_equal(leat_catalogue_write_changed(cat), LEAT_OK);
    assert_int_equal(bench->world.op_count - ops, 5 + 1);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(file->durable[4096 + rows[i] * 128], i == 2 ? 0 : i + 1);
    ops = bench->world.op_count;
    assert_int_equal(leat_catalogue_write_changed(cat), LEAT_OK);
    assert_int_equal(bench->world.op_count - ops, 1);
    leat_catalogue_changed(cat, 32);
    bench->world.fail_at = bench->world.op_count + 1;
    assert_int_equal(leat_catalogue_write_changed(cat), LEAT_E_DISK);
    assert_true(cat->failed);
    cat->failed = false;
    assert_int_equal(leat_catalogue_write_changed(cat), LEAT_OK); /* it is still to be written */
    assert_int_equal(file->durable[4096 + 32 * 128], 3);
    bench->world.fail_at = bench->world.op_count + 1; /* the sync */
    assert_int_equal(leat_catalogue_write_changed(cat), LEAT_E_DISK);
    assert_true(cat->failed);
    bench_free(bench);
}

/* ---- files that are open ---- */

static int files_open;
static leat_err (*fake_open)(void *ctx, const char *path, unsigned flags,
                             struct leat_file **out_file, struct leat_error *error);
static leat_err open_and_count(void *ctx, const char *path, unsigned flags,
                               struct leat_file **out_file, struct leat_error *error)
{
    leat_err rc = fake_open(ctx, path, flags, out_file, error);
    files_open += rc == LEAT_OK;
    return rc;
}
static void close_and_count(void *ctx, struct leat_file *file)
{
    (void)ctx;
    (void)file;
    files_open--;
}

/* Goal: a catalogue that is made is open once, and each file that a store opens is closed with it. */
static void catalogue_that_is_made_is_open_once(void **state)
{
    (void)state;
    struct bench *bench = bench_new(90);
    files_open = 0;
    fake_open = bench->world.disk.open;
    bench->world.disk.open = open_and_count;
    bench->world.disk.close = close_and_count;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_int_equal(files_open, 1);
    leat_store_found_done(bench->store);
    (void)opened(bench, LEAT_DURABILITY_DISK);
    assert_int_equal(files_open, 2);
    bench_drop_store(bench);
    assert_int_equal(files_open, 0);
    bench_free(bench);
}

/* Goal: the name of a catalogue that was made survives a power cut. */
static void catalogue_has_its_name_for_good(void **state)
{
    (void)state;
    struct bench *bench = bench_new(13);
    bench->store = NULL;
    struct leat_catalogue cat;
    struct leat_error error = {0};
    uint64_t bad;
    assert_int_equal(leat_catalogue_init(&cat, &bench->world.disk), LEAT_OK);
    assert_int_equal(
        leat_catalogue_open(&cat, &bench->world.env, cluster, false, NULL, NULL, &bad, &error),
        LEAT_OK);
    assert_true(fake_file(&bench->world, "catalogue")->name_durable);
    leat_catalogue_fini(&cat);
    bench_free(bench);
}

/* Goal: where a crash has interrupted the creation of a catalogue, the catalogue that is created next has nothing of
 * it. */
static void catalogue_that_is_made_begins_with_nothing(void **state)
{
    (void)state;
    struct bench *bench = bench_new(91);
    struct leat_disk *disk = &bench->world.disk;
    struct leat_file *file;
    assert_int_equal(disk->open(disk->ctx, "catalogue.new", LEAT_OPEN_CREATE, &file, NULL),
                     LEAT_OK);
    assert_int_equal(disk->allocate(disk->ctx, file, 3 * LEAT_BLOCK_BYTES), LEAT_OK);
    memset(file->now, 0x55, 3 * LEAT_BLOCK_BYTES);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    assert_null(fake_file(&bench->world, "catalogue.new"));
    assert_int_equal(fake_file(&bench->world, "catalogue")->bytes, LEAT_BLOCK_BYTES);
    assert_int_equal(bench->store->cat.chunk_count, 0);
    assert_int_equal(bench->store->complaint_count, 0);
    bench_free(bench);
}

/* Goal: a catalogue of no cluster yet is of the first that a start names, and of no other after that. */
static void catalogue_of_no_cluster_is_of_the_first(void **state)
{
    (void)state;
    struct bench *bench = bench_new(93);
    struct leat_store_options options = options_of();
    static const leat_err want[] = {LEAT_OK, LEAT_OK, LEAT_OK, LEAT_E_WRONG_CLUSTER};
    for (unsigned i = 0; i < 4; i++) { /* none; one; the same; another */
        memset(options.cluster_id, i == 0 ? 0 : i < 3 ? 7 : 8, sizeof options.cluster_id);
        assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL),
                         want[i]);
        const struct leat_file *file = fake_file(&bench->world, "catalogue");
        const struct leat_catalogue_header *header = (const void *)file->durable;
        for (unsigned j = 0; j < sizeof header->cluster_id; j++)
            assert_int_equal(header->cluster_id[j], i == 0 ? 0 : 7);
        bench_drop_store(bench);
    }
    bench_free(bench);
}

/* Goal: a row that comes free is the next to be taken, in whichever chunk. */
static void catalogue_takes_what_came_free(void **state)
{
    (void)state;
    struct bench *bench = bench_ready(94);
    struct leat_catalogue *cat = &bench->store->cat;
    uint32_t row;
    for (unsigned i = 0; i < 4000; i++)
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
    for (uint32_t free = 1; free < 4000; free = free * 3 / 2 + 1) {
        leat_catalogue_give(cat, free);
        assert_int_equal(leat_catalogue_take(cat, &row), LEAT_OK);
        assert_int_equal(row, free);
    }
    bench_free(bench);
}

/* Goal: a catalogue for which there is no space is not begun. */
static void catalogue_that_has_no_space_is_not_made(void **state)
{
    (void)state;
    struct bench *bench = bench_new(92);
    bench->world.space_bytes = 1;
    assert_int_equal(bench_open(bench, NULL), LEAT_E_DISK_FULL);
    assert_null(fake_file(&bench->world, "catalogue"));
    bench->world.space_bytes = 0;
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalogue_rows_have_their_bounds),
        cmocka_unit_test(catalogue_row_of_too_little_is_damaged),
        cmocka_unit_test(catalogue_headers_are_told_apart),
        cmocka_unit_test(catalogue_joins_a_cluster_once),
        cmocka_unit_test(catalogue_grows_by_its_chunk),
        cmocka_unit_test(catalogue_length_is_what_its_header_promises),
        cmocka_unit_test(catalogue_reads_each_row_where_it_lies),
        cmocka_unit_test(catalogue_round_writes_each_block_once),
        cmocka_unit_test(catalogue_rounds_write_rows_of_every_chunk),
        cmocka_unit_test(catalogue_has_its_name_for_good),
        cmocka_unit_test(catalogue_writes_what_was_changed),
        cmocka_unit_test(catalogue_that_is_made_is_open_once),
        cmocka_unit_test(catalogue_that_is_made_begins_with_nothing),
        cmocka_unit_test(catalogue_of_no_cluster_is_of_the_first),
        cmocka_unit_test(catalogue_takes_what_came_free),
        cmocka_unit_test(catalogue_that_has_no_space_is_not_made),
    };
    return cmocka_run_group_tests_name("store catalogue", tests, NULL, NULL);
}
