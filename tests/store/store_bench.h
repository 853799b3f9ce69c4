/* SPDX-License-Identifier: Apache-2.0 */
/* The store's tests share this bench: an owner of segments that knows its writes and its answers, and the store on its
 * small world. For one test program only: the bench has static state. */
#ifndef LEAT_TESTS_STORE_BENCH_H
#define LEAT_TESTS_STORE_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "store/private.h"
#include "tests/store/fake_world.h"

enum { MEMORY = 128 * 1024 * 1024, SEGS_MAX = 512, PREFIX_IDS_MAX = 64 };
static const uint8_t cluster[16] = "the cluster 0001";

/* The owner's record of a segment. */
struct mine {
    struct leat_segment *seg;
    struct leat_log_ref log;
    struct leat_segment_id id;
    struct leat_epoch epoch;
    enum leat_durability durability;
    struct leat_entry_writer writer;
    struct leat_prefix_id prefix_ids[PREFIX_IDS_MAX]; /* every sealed prefix; [0]: with the start */
    unsigned prefix_id_count;
    uint64_t next_offset;
    uint32_t committed_bytes; /* answered */
    bool asked, busy, dropped, drop_asked, hibernated, hibernate_asked, resumed_since, closed,
        close_asked;
    bool flushed, gone, evict_wanted, reserved;
    enum leat_segment_state state;
    struct leat_store_req req;
    leat_err rc;
};

struct bench {
    struct fake_world world;
    struct leat_store *store;
    struct leat_store_port store_port;
    struct mine mine[SEGS_MAX];
    unsigned count;
    uint32_t epoch;
    unsigned answers, errors;
    size_t bytes_before; /* of the heap */
};

static inline struct leat_segment_header header_of(const struct mine *mine, uint32_t capacity)
{
    struct leat_segment_header header = {
        .magic = LEAT_SEGMENT_MAGIC,
        .format_version = LEAT_FORMAT_VERSION,
        .stream = mine->log.stream,
        .streamlet = mine->log.streamlet,
        .log = mine->log.log,
        .epoch = mine->epoch.v,
        .segment = mine->id.v,
        .capacity = capacity,
        .durability = mine->durability,
        .streamlets = 1,
        .logs = 1,
        .copies = 1,
        .segment_bytes_max = LEAT_SEGMENT_BYTES_MAX,
    };
    memcpy(header.cluster_id, cluster, sizeof cluster);
    return header;
}

static inline void put(struct mine *mine, enum leat_entry_type type, const void *payload,
                       uint32_t bytes)
{
    (void)leat_entry_append(&mine->writer, type, 0, 0, payload, bytes,
                            leat_crc32c(0, payload, bytes));
}

static inline void seal(struct mine *mine)
{
    assert_true(mine->prefix_id_count < PREFIX_IDS_MAX);
    mine->prefix_ids[mine->prefix_id_count++] =
        leat_entry_seal(&mine->writer, mine->committed_bytes);
}

static inline struct leat_prefix_id last_prefix_id(const struct mine *mine)
{
    return mine->prefix_id_count ? mine->prefix_ids[mine->prefix_id_count - 1]
                                 : (struct leat_prefix_id){0};
}

static inline void write_header(struct mine *mine)
{
    struct leat_segment_header header = header_of(mine, mine->seg->capacity);
    leat_entry_writer_init(&mine->writer, mine->seg->buffer, mine->seg->capacity);
    put(mine, LEAT_ENTRY_SEGMENT, &header, sizeof header);
}

static inline void write_start(struct mine *mine)
{
    struct leat_start start = {.base_offset = mine->id.v * 1000};
    put(mine, LEAT_ENTRY_START, &start, sizeof start);
    seal(mine);
    mine->seg->state = mine->state = LEAT_SEGMENT_OPEN;
    mine->seg->base_offset = start.base_offset;
    mine->next_offset = start.base_offset;
}

/* Trim entries are the simplest that may be many. */
static inline bool write_some(struct mine *mine, unsigned entries)
{
    struct leat_trim trim = {.first_segment = mine->prefix_id_count};
    if (mine->prefix_id_count + 2 >= PREFIX_IDS_MAX) return false;
    for (unsigned i = 0; i < entries; i++) {
        if (!leat_entry_fits(&mine->writer, sizeof trim, 256)) break;
        put(mine, LEAT_ENTRY_TRIM, &trim, sizeof trim);
    }
    seal(mine);
    return true;
}

static inline void write_close(struct mine *mine)
{
    struct leat_close close = {.next_offset = mine->next_offset, .bytes = mine->writer.used};
    put(mine, LEAT_ENTRY_CLOSE, &close, sizeof close);
    seal(mine);
}

/* ---- events ---- */
static struct bench *the_bench;

static inline struct mine *mine_of(struct leat_segment *seg)
{
    for (unsigned i = 0; i < the_bench->count; i++)
        if (the_bench->mine[i].seg == seg && !the_bench->mine[i].dropped)
            return &the_bench->mine[i];
    return NULL;
}

static inline void on_flushed(void *core, struct leat_segment *seg)
{
    (void)core;
    struct mine *mine = mine_of(seg);
    if (!mine) return;
    mine->flushed = true;
    seg->flushed = true;
}

static inline void on_evict_wanted(void *core, struct leat_segment *seg)
{
    (void)core;
    struct mine *mine = mine_of(seg);
    if (mine) mine->evict_wanted = true;
}

static inline struct leat_store_options options_of(void)
{
    struct leat_store_options options = {
        .memory_bytes = MEMORY,
        .flush_delay_us = 50000,
        .events = {.on_evict_wanted = on_evict_wanted, .on_flushed = on_flushed}};
    memcpy(options.cluster_id, cluster, sizeof cluster);
    return options;
}

static inline leat_err bench_open(struct bench *bench, struct leat_error *error)
{
    struct leat_store_options options = options_of();
    bench->store = NULL;
    leat_err rc = leat_store_open(&bench->world.env, &options, &bench->store, error);
    bench->world.store = bench->store;
    if (!rc) bench->store_port = leat_store_port(bench->store);
    return rc;
}

static inline size_t heap_bytes(void)
{
    return leat_mem_bytes(LEAT_MEM_STORE) + leat_mem_bytes(LEAT_MEM_ROWS);
}

static inline struct bench *bench_new(uint64_t seed)
{
    struct bench *bench = calloc(1, sizeof *bench);
    bench->bytes_before = heap_bytes();
    fake_world_init(&bench->world, seed, MEMORY);
    bench->world.core = bench;
    bench->epoch = 1;
    the_bench = bench;
    return bench;
}

static inline void bench_drop_store(struct bench *bench)
{
    if (!bench->store) return;
    /* Killed: what was in flight is no more. */
    bench->store->rows_running = false;
    bench->store->data_running = 0;
    bench->store->flush_in_flight = 0;
    bench->store->slots.zeroing = NULL;
    leat_store_close(&bench->store);
}

static inline void bench_free(struct bench *bench)
{
    bench_drop_store(bench);
    assert_int_equal(heap_bytes(), bench->bytes_before);
    fake_world_fini(&bench->world);
    free(bench);
}

static inline void on_req_done(struct leat_store_req *req)
{
    struct mine *mine = req->owner;
    struct bench *bench = the_bench;
    assert_true(mine->busy);
    mine->busy = false;
    mine->rc = req->rc;
    bench->answers++;
    if (req->rc) {
        bench->errors++;
        if (req->kind == LEAT_STORE_RESERVE || req->kind == LEAT_STORE_DROP) mine->gone = true;
        return;
    }
    switch (req->kind) {
    case LEAT_STORE_RESERVE:
        mine->seg = req->seg;
        mine->reserved = true;
        mine->state = LEAT_SEGMENT_RESERVED;
        assert_int_equal(req->seg->state, LEAT_SEGMENT_RESERVED);
        for (uint32_t i = 0; i < LEAT_ENTRY_HEADER_BYTES; i += 8)
            assert_int_equal(*(uint64_t *)(void *)(req->seg->buffer + i), 0);
        break;
    case LEAT_STORE_COMMIT:
        mine->committed_bytes = req->to_bytes;
        break;
    case LEAT_STORE_HIBERNATE:
        assert_null(req->seg->buffer);
        mine->state = LEAT_SEGMENT_HIBERNATED;
        mine->hibernated = true;
        break;
    case LEAT_STORE_RESUME:
        mine->state = LEAT_SEGMENT_OPEN;
        mine->hibernated = false;
        assert_non_null(req->seg->buffer);
        mine->writer.bytes = req->seg->buffer;
        break;
    case LEAT_STORE_CLOSE:
        mine->closed = true;
        mine->state = LEAT_SEGMENT_CLOSED;
        break;
    case LEAT_STORE_DROP:
        mine->dropped = true;
        break;
    case LEAT_STORE_EVICT:
        assert_null(req->seg->buffer);
        break;
    case LEAT_STORE_STAMP:
    case LEAT_STORE_GIVE_UP:
    case LEAT_STORE_MOVE:
    case LEAT_STORE_REPAIR:
        break;
    }
}

static inline void ask(struct bench *bench, struct mine *mine, enum leat_store_req_kind kind)
{
    assert_false(mine->busy);
    mine->busy = true;
    mine->req = (struct leat_store_req){.kind = kind,
                                        .seg = mine->seg,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .durability = mine->durability,
                                        .capacity = mine->req.capacity,
                                        .from_bytes = mine->committed_bytes,
                                        .to_bytes = last_prefix_id(mine).bytes,
                                        .on_done = on_req_done,
                                        .owner = mine};
    if (kind == LEAT_STORE_HIBERNATE || kind == LEAT_STORE_CLOSE) {
        mine->seg->prefix_id = last_prefix_id(mine);
        mine->seg->next_offset = mine->next_offset;
    }
    if (kind == LEAT_STORE_HIBERNATE) mine->hibernate_asked = true;
    if (kind == LEAT_STORE_RESUME) mine->hibernated = false; /* the record may be erased already */
    if (kind == LEAT_STORE_CLOSE) mine->close_asked = true;
    if (kind == LEAT_STORE_DROP) mine->drop_asked = true;
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
}

static inline struct mine *reserve(struct bench *bench, enum leat_durability durability,
                                   uint32_t log, uint32_t capacity)
{
    assert_true(bench->count < SEGS_MAX);
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){.log = {1, 0, log},
                          .id = {bench->count},
                          .epoch = {bench->epoch},
                          .durability = durability,
                          .asked = true};
    mine->req.capacity = capacity;
    ask(bench, mine, LEAT_STORE_RESERVE);
    return mine;
}

static inline leat_err do_now(struct bench *bench, struct mine *mine, enum leat_store_req_kind kind)
{
    ask(bench, mine, kind);
    fake_settle(&bench->world);
    assert_false(mine->busy);
    return mine->rc;
}

static inline struct mine *opened(struct bench *bench, enum leat_durability durability)
{
    struct mine *mine = reserve(bench, durability, 0, 16384);
    fake_settle(&bench->world);
    assert_int_equal(mine->rc, LEAT_OK);
    write_header(mine);
    write_start(mine);
    return mine;
}

static inline void open_again(struct bench *bench)
{
    bench_drop_store(bench);
    struct leat_error error = {0};
    leat_err rc = bench_open(bench, &error);
    if (rc) print_error("%s\n", error.text);
    assert_int_equal(rc, LEAT_OK);
}

static inline void reopen(struct bench *bench, bool power)
{
    if (power)
        fake_power_cut(&bench->world);
    else
        fake_kill(&bench->world);
    open_again(bench);
}

/* As after another boot, with the files as they are. */
static inline void reopen_without_memory(struct bench *bench)
{
    fake_kill(&bench->world);
    bench->world.arena.inherited_bytes = 0;
    open_again(bench);
}

static inline const struct leat_found *found_of(struct bench *bench, const struct mine *mine)
{
    size_t count;
    const struct leat_found *found = leat_store_found(bench->store, &count);
    for (size_t i = 0; i < count; i++)
        if (found[i].seg->id.v == mine->id.v && found[i].seg->epoch.v == mine->epoch.v &&
            leat_log_ref_equal(found[i].seg->log, mine->log))
            return &found[i];
    return NULL;
}

static inline size_t found_count(struct bench *bench)
{
    size_t count;
    (void)leat_store_found(bench->store, &count);
    return count;
}

static inline struct bench *bench_ready(uint64_t seed)
{
    struct bench *bench = bench_new(seed);
    assert_int_equal(bench_open(bench, NULL), LEAT_OK);
    leat_store_found_done(bench->store);
    return bench;
}

#endif
