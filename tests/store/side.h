/* SPDX-License-Identifier: Apache-2.0 */
/* An arena for replicas beside a bench's pool, and the segments in it. For one test program only. */
#ifndef LEAT_TESTS_STORE_SIDE_H
#define LEAT_TESTS_STORE_SIDE_H

#include "tests/store/store_bench.h"

enum { ARENA = 64 * 1024 * 1024 };

/* An arena that survives a killed process, as the files behind the real ones do. */
struct side {
    struct bench *bench;
    struct leat_arena arena;
    uint8_t *raw;
    struct leat_mail mail;
    struct leat_arena_grow *grow;
    unsigned grows_max;
    struct leat_store_arena_op add, retire;
    bool added, retired;
};

static inline void grown_deliver(void *actor, struct leat_mail *mail)
{
    struct side *side = LEAT_CONTAINER(mail, struct side, mail);
    (void)actor;
    side->grow->rc = side->grows_max ? LEAT_OK : LEAT_E_NO_MEMORY;
    if (side->grows_max) {
        side->grows_max--;
        side->arena.grown_bytes += LEAT_ARENA_STEP_BYTES;
    }
    side->grow->on_grown(side->grow);
}

static inline void side_grow(void *ctx, struct leat_arena_grow *grow)
{
    struct side *side = ctx;
    side->grow = grow;
    side->mail.deliver = grown_deliver;
    side->bench->world.store_post.send(&side->bench->world, LEAT_ACTOR_STORE, &side->mail);
}

static inline void side_init(struct side *side, struct bench *bench, uint8_t name)
{
    *side = (struct side){.bench = bench, .grows_max = 1};
    side->raw = calloc(1, ARENA + 4096);
    side->arena = (struct leat_arena){
        .ctx = side,
        .base = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)side->raw, 4096),
        .limit_bytes = ARENA,
        .grow = side_grow,
    };
    memset(side->arena.pool_id, name, sizeof side->arena.pool_id);
}

static inline void on_added(struct leat_store_arena_op *op)
{
    struct side *side = op->owner;
    assert_int_equal(op->rc, LEAT_OK);
    side->added = true;
}

static inline void on_retired(struct leat_store_arena_op *op)
{
    ((struct side *)op->owner)->retired = true;
}

static inline void side_add(struct side *side)
{
    side->add = (struct leat_store_arena_op){
        .arena = &side->arena, .limit_bytes = ARENA, .on_done = on_added, .owner = side};
    leat_store_arena_add(side->bench->store, &side->bench->world.core_post, &side->add);
    fake_settle(&side->bench->world);
    assert_true(side->added);
}

static inline void side_retire(struct side *side)
{
    side->retire = (struct leat_store_arena_op){
        .added = side->add.added, .on_done = on_retired, .owner = side};
    leat_store_arena_retire(side->bench->store, &side->bench->world.core_post, &side->retire);
    fake_settle(&side->bench->world);
}

static inline leat_err replica_ask(struct side *side, struct mine *mine,
                                   enum leat_store_req_kind kind, uint32_t version, bool incomplete)
{
    struct bench *bench = side->bench;
    mine->busy = true;
    mine->req = (struct leat_store_req){.kind = kind,
                                        .seg = mine->seg,
                                        .log = mine->log,
                                        .id = mine->id,
                                        .epoch = mine->epoch,
                                        .durability = mine->durability,
                                        .capacity = mine->req.capacity,
                                        .arena = side->add.added,
                                        .version = version,
                                        .role = LEAT_SEGMENT_REPLICA,
                                        .writer = 77,
                                        .incomplete = incomplete,
                                        .on_done = on_req_done,
                                        .owner = mine};
    bench->store_port.request(bench->store_port.ctx, &bench->world.core_post, &mine->req);
    fake_settle(&bench->world);
    assert_false(mine->busy);
    return mine->rc;
}

static inline struct mine *replica_new(struct side *side, enum leat_durability durability,
                                       bool incomplete)
{
    struct bench *bench = side->bench;
    struct mine *mine = &bench->mine[bench->count++];
    *mine = (struct mine){
        .log = {5, 0, 0}, .id = {bench->count}, .epoch = {3}, .durability = durability};
    mine->req.capacity = 65536;
    assert_int_equal(replica_ask(side, mine, LEAT_STORE_RESERVE, 4, incomplete), LEAT_OK);
    return mine;
}

static inline struct mine *replica_opened(struct side *side, enum leat_durability durability,
                                          bool incomplete)
{
    struct mine *mine = replica_new(side, durability, incomplete);
    write_header(mine);
    write_start(mine);
    assert_true(write_some(mine, 20));
    return mine;
}

static inline void reopen_with(struct bench *bench, struct side *side)
{
    fake_kill(&bench->world);
    bench_drop_store(bench);
    side->arena.inherited_bytes = side->arena.grown_bytes;
    struct leat_arena *inherited[] = {&side->arena};
    struct leat_store_options options = options_of();
    options.inherited = inherited;
    options.inherited_count = 1;
    assert_int_equal(leat_store_open(&bench->world.env, &options, &bench->store, NULL), LEAT_OK);
    bench->world.store = bench->store;
    bench->store_port = leat_store_port(bench->store);
}

static inline void side_fini(struct side *side)
{
    bench_free(side->bench);
    free(side->raw);
}

#endif
