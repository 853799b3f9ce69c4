/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of the disk fails, each in its turn: the answers, the files that are given up, the findings of the next
 * start. A line for each. */
#include "tests/store/store_bench.h"
#include "tests/trace.h"

static struct bench *bench;

enum { LIVES = 5 };
static struct mine *lives[LIVES];

static void told(struct leat_store_req *req)
{
    if (req->rc) trace(" %llu:%d!%d", (unsigned long long)req->id.v, req->kind, req->rc);
    on_req_done(req);
}
/* Where it has come so far. */
static void goes_on(struct mine *mine, enum leat_store_req_kind kind)
{
    if (mine->gone || mine->rc || !mine->seg || (kind != LEAT_STORE_RESUME && !mine->seg->buffer))
        return;
    if (kind == LEAT_STORE_CLOSE) write_close(mine);
    ask(bench, mine, kind);
    mine->req.on_done = told;
    fake_settle(&bench->world);
}
/* Segments of level disk and of memory: one stays open, others are hibernated, resumed, closed and flushed. */
static void live(void)
{
    for (unsigned i = 0; i < LIVES; i++) {
        struct mine *mine = lives[i] =
            reserve(bench, i % 2 ? LEAT_DURABILITY_MEMORY : LEAT_DURABILITY_DISK, i, 32768);
        mine->req.on_done = told;
        fake_settle(&bench->world);
        if (mine->rc) continue;
        write_header(mine);
        write_start(mine);
        (void)write_some(mine, 30 * i);
        goes_on(mine, LEAT_STORE_COMMIT);
    }
    goes_on(lives[1], LEAT_STORE_HIBERNATE);
    goes_on(lives[2], LEAT_STORE_HIBERNATE);
    goes_on(lives[2], LEAT_STORE_RESUME);
    goes_on(lives[3], LEAT_STORE_CLOSE);
    goes_on(lives[4], LEAT_STORE_CLOSE);
    fake_pass(&bench->world, 100000);
}

static void tell_state(void)
{
    const struct leat_store *store = bench->store;
    for (uint32_t i = 0; i < store->slots.count; i++)
        if (store->slots.files[i] && store->slots.files[i]->failed) trace(", file %u failed", i);
    if (store->cat.failed) trace(", rows failed");
    if (store->flush_failed) trace(", flush failed");
    for (unsigned i = 0; i < LIVES; i++) {
        if (!lives[i]->seg || lives[i]->gone) continue;
        const struct leat_held *held = leat_held_of(lives[i]->seg);
        trace(" %u.%d.%d.%u%s%s", i + 1, held->seg.state, held->where, held->in_file_bytes,
              held->failed ? "!" : "", held->seg.buffer ? "m" : "");
    }
    trace(", %u given, %u rows", store->pool.given, store->cat.held_count);
    for (uint32_t i = 0; i < store->slots.count; i++)
        if (store->slots.files[i]) trace(", %u free", store->slots.files[i]->buddy.free_units);
    for (size_t i = 0; i < store->complaint_count; i++)
        trace("\n   %s", store->complaints[i]);
}
static void tell_found(void)
{
    const struct leat_store *store = bench->store;
    for (size_t i = 0; i < store->found_count; i++) {
        const struct leat_found *found = &store->found[i];
        trace(" %llu.%d.%d.%u%s%s", (unsigned long long)found->seg->id.v, found->kind,
              found->seg->state, found->scan.bytes, found->seg->flushed ? "f" : "",
              found->seg->buffer ? "m" : "");
    }
    for (size_t i = 0; i < store->complaint_count; i++)
        trace("\n   %s", store->complaints[i]);
}

static const char of_lives[] =

    "1: 1:0!5 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 3 given, 4 rows, 56 free\n"
    "  found 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "2: 1:0!5, file 0 failed 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 3 given, 4 rows, "
    "0 free, 56 free\n"
    "  found 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "3: 1:0!5 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 3 given, 4 rows, 56 free\n"
    "  found 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "4: 1:0!5 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 3 given, 4 rows, 60 free, 60 "
    "free\n"
    "  found 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "5: 1:0!5 2:0!5 3:0!5 4:0!5 5:0!5, rows failed, 0 given, 0 rows, 64 free\n"
    "  found\n"
    "6: 1:0!5 2:0!5 3:0!5 4:0!5 5:0!5, rows failed, 0 given, 0 rows, 64 free\n"
    "  found\n"
    "7: 1:0!5 2:0!5 3:0!5 4:0!5 5:0!5, rows failed, 1 given, 1 rows, 62 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found\n"
    "8: 1:0!5 2:0!5 3:0!5 4:0!5 5:0!5, rows failed, 1 given, 1 rows, 62 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found\n"
    "9: 1:1!5 1.2.0.0!m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "10: 1:1!5, file 0 failed 1.2.0.0m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 "
    "given, 5 rows, 62 free, 56 free, 128 free\n"
    "   the disk failed a flush of store/0: nothing more is written there\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "11: 2:0!5 1.2.0.288m 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 given, 4 rows, 58 free, 62 "
    "free\n"
    "  found 1.1.2.288 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "12: 2:0!5, file 1 failed 1.2.0.288m 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 given, 4 rows, "
    "58 free, 0 free, 62 free\n"
    "  found 1.1.2.288 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "13: 2:0!5 1.2.0.288m 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 given, 4 rows, 58 free, 62 "
    "free\n"
    "  found 1.1.2.288 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "14: 2:0!5 3:0!5 4:0!5 5:0!5, rows failed 1.2.0.288m, 2 given, 2 rows, 62 free, 62 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288\n"
    "15: 2:1!5 1.2.0.288m 2.2.0.0!m 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 5 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "16: 2:1!5, file 1 failed 1.2.0.288m 2.2.0.0m 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 5 "
    "given, 5 rows, 58 free, 62 free, 126 free\n"
    "   the disk failed a flush of store/1: nothing more is written there\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "17: 3:0!5 4:0!5 5:0!5 2:3!5, rows failed 1.2.0.288m 2.2.0.1728m, 3 given, 3 rows, 60 "
    "free, 62 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.2.1728m\n"
    "18: 3:0!5 4:0!5 5:0!5 2:3!5, rows failed 1.2.0.288m 2.2.0.1728m, 3 given, 3 rows, 60 "
    "free, 62 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.2.1728m\n"
    "19: 3:1!5 1.2.0.288m 2.3.0.1728 3.2.0.0!m 4.4.3.4704m 5.4.3.6144m, 4 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "20: 3:1!5, file 0 failed 1.2.0.288m 2.3.0.1728 3.2.0.0m 4.4.3.4704m 5.4.3.6144m, 4 given, "
    "5 rows, 60 free, 58 free, 128 free\n"
    "   the disk failed a flush of store/0: nothing more is written there\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "21: 4:0!5 5:0!5 2:3!5 3:3!5, rows failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m, 4 given, 4 "
    "rows, 60 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168\n"
    "22: 4:1!5 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.2.0.0!m 5.4.3.6144m, 4 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.1.2.4608m 5.0.4.6144f\n"
    "23: 4:1!5 2:3!5, file 1 failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m 4.2.0.0m 5.4.3.6144m, 5 "
    "given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a flush of store/1: nothing more is written there\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168 4.1.2.4608m 5.0.4.6144f\n"
    "24: 5:0!5 2:3!5 3:3!5 4:2!5, rows failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m 4.2.5.4608m, "
    "5 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168 4.0.4.4704m\n"
    "25: 5:0!5 2:3!5 3:3!5 4:2!5, rows failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m 4.2.5.4608m, "
    "5 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.2.1728m 3.1.2.3168 4.0.4.4704m\n"
    "26: 5:1!5 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.2.0.0!m, 4 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.1.2.6048\n"
    "27: 5:1!5 3:3!5, file 0 failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.2.0.0m, 4 "
    "given, 5 rows, 58 free, 60 free, 128 free\n"
    "   the disk failed a flush of store/0: nothing more is written there\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.1.2.6048\n"
    "28: 2:3!5 3:3!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m 4.2.5.4608m "
    "5.2.5.6144m, 5 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "29: 2:3!5 3:3!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.2.0.1728m 3.2.0.3168m 4.2.5.4608m "
    "5.2.5.6144m, 5 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "30: 3:3!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.2.5.4608m "
    "5.2.5.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.3.3168 4.0.4.4704m 5.0.4.6144f\n"
    "31: 3:3!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.2.5.4608m "
    "5.2.5.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.3.3168 4.0.4.4704m 5.0.4.6144f\n"
    "32: 3:4!5 1.2.0.288m 2.3.0.1728 3.3.0.3168 4.4.3.4704m 5.4.3.6144m, 3 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.3.3168 4.0.4.4704f 5.0.4.6144f\n"
    "33: 3:4!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.3.0.1728 3.3.0.3168 4.2.5.4608m "
    "5.2.5.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "34: 3:4!5 4:2!5 5:2!5, rows failed 1.2.0.288m 2.3.0.1728 3.3.0.3168 4.2.5.4608m "
    "5.2.5.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "35: 4:2!5 5:2!5, rows failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.2.5.4608m 5.2.5.6144m, 4 "
    "given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "36: 5:2!5 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.2.5.6048!m, 4 given, 5 rows, 58 "
    "free, 60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.1.2.6048\n"
    "37: 5:2!5, file 0 failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.2.5.6048m, 4 "
    "given, 5 rows, 58 free, 60 free, 128 free\n"
    "   the disk failed a flush of store/0: nothing more is written there\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "38: 5:2!5, rows failed, flush failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.5.4704!m "
    "5.2.5.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "   segment 4 of log 1/0/3 could not be flushed to store/1: it stays in memory\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "39:, flush failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.5.4608!m 5.4.3.6144m, 4 given, 5 "
    "rows, 58 free, 60 free\n"
    "   segment 4 of log 1/0/3 could not be flushed to store/1: it stays in memory\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "40:, file 1 failed, flush failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.5.4608!m "
    "5.4.3.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a flush of store/1: nothing more is written there\n"
    "   segment 4 of log 1/0/3 could not be flushed to store/1: it stays in memory\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704m 5.0.4.6144f\n"
    "41:, rows failed, flush failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.5.4704!m "
    "5.4.3.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "   segment 4 of log 1/0/3 could not be flushed to store/1: it stays in memory\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "42:, rows failed, flush failed 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.5.4704!m "
    "5.4.3.6144m, 4 given, 5 rows, 58 free, 60 free\n"
    "   the disk failed a write of the catalogue: no segment can be reserved, hibernated or "
    "dropped until a restart\n"
    "   segment 4 of log 1/0/3 could not be flushed to store/1: it stays in memory\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "43: 1.2.0.288m 2.3.0.1728 3.2.0.3168m 4.4.3.4704m 5.4.3.6144m, 4 given, 5 rows, 58 free, "
    "60 free\n"
    "  found 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n";

/* Goal: a disk failure during the lives of segments is reported to the requests that wait for the disk, and to no
 * other; each answered state is found again. */
static void each_operation_fails_once(void **state)
{
    (void)state;
    trace_begin();
    for (uint64_t n = 1;; n++) {
        bench = bench_ready(40);
        uint64_t from = bench->world.op_count;
        bench->world.fail_at = from + n;
        trace("%llu:", (unsigned long long)n);
        live();
        bool over = bench->world.op_count < bench->world.fail_at;
        tell_state();
        bench->world.fail_at = 0;
        for (unsigned i = 0; i < FAKE_FILES_MAX; i++)
            bench->world.files[i].sync_failed = false; /* another process may write there */
        fake_kill(&bench->world);
        open_again(bench);
        trace("\n  found");
        tell_found();
        trace("\n");
        bench_free(bench);
        if (over) break;
    }
    TRACE_IS(of_lives);
}

static void start_after(unsigned how)
{
    if (how == 2)
        fake_power_cut(&bench->world);
    else
        fake_kill(&bench->world);
    if (how == 1) bench->world.arena.inherited_bytes = 0;
    bench_drop_store(bench);
}

static const char of_starts[] =
    "killed\n"
    "1: 5 cannot make the directory 'store'\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "2: 5 cannot open store/0\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "3: 5 cannot open store/1\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "4: 5 cannot open catalogue\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "5: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "6: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "7: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "8: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "9: 0  1.1.2.288 2.2.3.0 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 2 of log 1/0/1: cannot be read from store/1: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "10: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "11: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "12: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "13: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "14: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "15: 0  1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "without memory\n"
    "1: 5 cannot make the directory 'store'\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "2: 5 cannot open store/0\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "3: 5 cannot open store/1\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "4: 5 cannot open catalogue\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "5: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "6: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "7: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "8: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "9: 0  1.1.2.288 2.2.3.0 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 2 of log 1/0/1: cannot be read from store/1: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "10: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "11: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "12: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "13: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "14: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "15: 0  1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "power\n"
    "1: 5 cannot make the directory 'store'\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "2: 5 cannot open store/0\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "3: 5 cannot open store/1\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "4: 5 cannot open catalogue\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "5: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "6: 5 cannot read the catalogue: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "7: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "8: 0  1.2.2.0 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 1 of log 1/0/0: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "9: 0  1.1.2.288 2.2.3.0 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 2 of log 1/0/1: cannot be read from store/1: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "10: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "11: 0  1.1.2.288 2.1.3.1728 3.2.2.0 4.0.4.4704f 5.0.4.6144f\n"
    "   segment 3 of log 1/0/2: cannot be read from store/0: the disk failed a read, "
    "write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "12: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "13: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "14: 5 cannot open the store: the disk failed a read, write or flush\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "15: 0  1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n"
    "  then 1.1.2.288 2.1.3.1728 3.1.2.3168 4.0.4.4704f 5.0.4.6144f\n";

/* Goal: a start during which the disk fails is refused, or tells of what it could not read, and writes no row that says
 * more than it knows. */
static void each_operation_of_a_start_fails_once(void **state)
{
    (void)state;
    static const char *const hows[] = {"killed", "without memory", "power"};
    trace_begin();
    for (unsigned how = 0; how < 3; how++) {
        trace("%s\n", hows[how]);
        for (uint64_t n = 1;; n++) {
            bench = bench_ready(50 + how);
            live();
            start_after(how);
            bench->world.fail_at = bench->world.op_count + n;
            struct leat_error error = {0};
            leat_err rc = bench_open(bench, &error);
            bool over = bench->world.op_count < bench->world.fail_at;
            trace("%llu: %d %s", (unsigned long long)n, rc, rc ? error.text : "");
            if (!rc) tell_found();
            bench->world.fail_at = 0;
            for (unsigned i = 0; i < FAKE_FILES_MAX; i++)
                bench->world.files[i].sync_failed = false;
            bench_drop_store(bench);
            fake_kill(&bench->world);
            open_again(bench);
            trace("\n  then");
            tell_found();
            trace("\n");
            bench_free(bench);
            if (over) break;
        }
    }
    TRACE_IS(of_starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_fails_once),
        cmocka_unit_test(each_operation_of_a_start_fails_once),
    };
    return cmocka_run_group_tests_name("store failures", tests, NULL, NULL);
}
