/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state of a store and its disk requests, as text: each segment with its row, its places and its waiting
 * requests, the free space of memory and files, the counters. For one test program only. */
#ifndef LEAT_TESTS_STORE_WHOLE_TRACE_H
#define LEAT_TESTS_STORE_WHOLE_TRACE_H

#include "tests/store/store_bench.h"
#include "tests/trace.h"

static struct bench *bench;
static leat_err (*disk_run)(void *ctx, struct leat_disk_io *io);
static void (*disk_submit)(void *ctx, struct leat_disk_io *io);

static void trace_io(const struct leat_disk_io *io, const char *how)
{
    static const char *const kinds[] = {
        [LEAT_DISK_READ] = "read", [LEAT_DISK_WRITE] = "write", [LEAT_DISK_SYNC] = "sync"};
    const char *kind = io->kind == LEAT_DISK_ZERO ? "zero" : kinds[io->kind];
    trace(" %s%s%s %s", how, kind, io->beside ? " beside" : "", io->file->name);
    if (io->together) trace(" together");
    if (io->kind != LEAT_DISK_SYNC) trace(" %llu+%zu", (unsigned long long)io->offset, io->bytes);
    if (io->kind == LEAT_DISK_WRITE) trace(" %08x", leat_crc32c(0, io->buffer, io->bytes));
    trace("\n");
}
static void on_submit(void *ctx, struct leat_disk_io *io)
{
    for (const struct leat_disk_io *it = io; it; it = it->beside ? it->then : NULL)
        trace_io(it, it == io ? "" : "then ");
    disk_submit(ctx, io);
}
static leat_err on_run(void *ctx, struct leat_disk_io *io)
{
    trace_io(io, "now ");
    return disk_run(ctx, io);
}

static void bench_watch(uint64_t seed)
{
    bench = bench_ready(seed);
    disk_submit = bench->world.disk.submit;
    disk_run = bench->world.disk.run;
    bench->world.disk.submit = on_submit;
    bench->world.disk.run = on_run;
    trace_begin();
}

/* From now, in milliseconds. */
static void trace_time(const char *what, uint64_t at_us)
{
    if (at_us == 0 || at_us == UINT64_MAX)
        trace(" %s -", what);
    else
        trace(" %s %+.3f", what, (double)(int64_t)(at_us - bench->world.now_us) / 1000);
}

static void trace_pool(const char *name, const struct leat_pool *pool)
{
    trace(" %s %u given, %u units free, %u past; %llu of %llu MiB%s%s%s%s%s leaving %llu", name,
          pool->given, pool->buddy.free_units, pool->buddy.past_units,
          (unsigned long long)(pool->added_bytes >> 20),
          (unsigned long long)(pool->limit_bytes >> 20), pool->growing ? " grows" : "",
          pool->grow_failed ? " failed" : "", pool->went_ahead ? " ahead" : "",
          pool->used_once ? " used" : "", pool->retired ? " retired" : "",
          (unsigned long long)pool->leaving_bytes);
    trace_time("grown", pool->grown_us);
    trace_time("behind", pool->behind_us);
    trace_time("due", pool->due_us);
    trace("\n");
}

static void trace_held(const struct leat_held *held)
{
    static const char *const where[] = {"nowhere", "dirty", "flushing", "cached",
                                        "asked",   "stuck", "kept"};
    const struct leat_segment *seg = &held->seg;
    const struct leat_row *row = leat_catalogue_row(&held->store->cat, seg->row);
    trace(" %llu state %d %s at %u/%u", (unsigned long long)seg->id.v, seg->state,
          where[held->where], held->slot.file->number, held->slot.unit);
    if (seg->buffer) trace(" memory %llu", (unsigned long long)held->pool_at);
    trace(" extent %u %08x in file %u%s%s%s%s", seg->prefix_id.bytes, seg->prefix_id.crc,
          held->in_file_bytes, seg->flushed ? " flushed" : "", held->failed ? " failed" : "",
          held->damaged ? " damaged" : "", held->slot_shared ? " shared" : "");
    if (held->data_reqs) trace(" waits %u", held->data_reqs);
    if (held->closed_us) trace_time("closed", held->closed_us);
    trace("; row %u state %u flags %x more %x extent %u %08x offsets %llu %llu at %u/%u in %llu\n",
          seg->row, row->state, row->flags, row->more, row->prefix_id_bytes, row->prefix_id_crc,
          (unsigned long long)row->base_offset, (unsigned long long)row->next_offset,
          row->slot_file, row->slot_unit, (unsigned long long)row->pool_at);
    if (!leat_row_valid(row, seg->row)) trace("  its row does not read\n");
}

/* The store as it is. */
static void show(void)
{
    const struct leat_store *store = bench->store;
    const struct leat_slots *slots = &store->slots;
    trace_pool("pool", &store->pool);
    LEAT_LIST_EACH(&bench->store->arenas, it)
    trace_pool("arena", &LEAT_CONTAINER(it, struct leat_store_arena, link)->pool);
    for (uint32_t i = 0; i < slots->count; i++)
        if (slots->files[i])
            trace(" file %u: %u of %u units free%s\n", i, slots->files[i]->buddy.free_units,
                  slots->files[i]->grown_units, slots->files[i]->failed ? ", failed" : "");
    trace(" fresh %u to %u%s%s, zeroing %u+%u\n", slots->fresh_from, slots->fresh_end,
          slots->look_ahead ? ", to be looked at" : "", slots->ahead_before ? ", two" : "",
          slots->zero_from, slots->zeroing ? slots->zero_units : 0);
    trace(" rows %u held, %u joined, %u lazy%s%s; rounds %u + %d of rows, %u passed, %u crowded\n",
          store->cat.held_count, store->cat.block_count, store->cat.lazy_count,
          store->cat.sync_wanted ? ", sync" : "", store->rows_noted ? ", noted" : "",
          store->data_running, store->rows_running, store->rows_passed, store->crowded);
    trace(" waits %u of %llu, data %u; asked %llu cached %llu; flush %u+%u, %u written %llu "
          "unsynced%s, arenas %llu\n",
          store->memory_wait_count, (unsigned long long)store->memory_wait_bytes,
          store->data_waiting, (unsigned long long)store->asked_bytes,
          (unsigned long long)store->cached_bytes, store->flush_in_flight, store->flush_pending,
          store->flush_written, (unsigned long long)store->flush_unsynced_bytes,
          store->flush_turn ? " turn" : "", (unsigned long long)store->arenas_dirty);
    trace(" committed %llu", (unsigned long long)store->committed_bytes);
    trace_time("last", store->committed_us);
    trace_time("wake", bench->world.wake_at_us);
    trace("\n");
    for (uint32_t i = 0; i < store->cat.chunk_count * LEAT_STORE_ROWS_PER_CHUNK; i++)
        if (*leat_catalogue_held(&store->cat, i)) trace_held(*leat_catalogue_held(&store->cat, i));
}

static void on_told(struct leat_store_req *req)
{
    trace(" answer %llu kind %d: %d\n", (unsigned long long)req->id.v, req->kind, req->rc);
    on_req_done(req);
}
/* Asked, and not looked at yet. */
static void asks(struct mine *mine, enum leat_store_req_kind kind)
{
    ask(bench, mine, kind);
    mine->req.on_done = on_told;
}
static void settles(void)
{
    fake_settle(&bench->world);
}
static void passes(unsigned ms)
{
    fake_pass(&bench->world, ms * 1000ull);
}

static void trace_found(void)
{
    const struct leat_store *store = bench->store;
    for (size_t i = 0; i < store->found_count; i++) {
        const struct leat_found *found = &store->found[i];
        trace(" found %llu kind %d state %d: %u bytes %08x of %u, offsets %llu %llu%s%s%s%s '%s'\n",
              (unsigned long long)found->seg->id.v, found->kind, found->seg->state,
              found->scan.bytes, found->scan.crc, found->scan.acked_bytes,
              (unsigned long long)found->scan.base_offset,
              (unsigned long long)found->scan.next_offset, found->scan.started ? " started" : "",
              found->scan.closed ? " closed" : "", found->scan.damaged ? " damaged" : "",
              found->seg->integrity == LEAT_INTEGRITY_TORN ? " torn" : "", found->why);
    }
}

#endif
