/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas of replicas: one per writer on another node, beside the node's pool.
 *
 * Their buffers are handed out zeroed, because a remote writer fills them in any order. Buffers are zeroed when they
 * come back, on this thread, so that no request waits for zeroing. A full arena refuses at once: the writer can ask
 * other nodes. Requests wait only while the arena grows.
 *
 * Memory of an earlier process is read at open and never given out again: its writers may still have it mapped. */
#include "store/private.h"

static leat_err arena_new(struct leat_store *store, struct leat_arena *arena, uint64_t limit_bytes,
                          struct leat_store_arena **out_arena)
{
    if (store->arena_count == LEAT_STORE_ARENAS_MAX) return LEAT_E_TOO_MANY;
    struct leat_store_arena *made = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *made);
    if (!made) return LEAT_E_NO_MEMORY;
    leat_err rc = leat_pool_init(&made->pool, arena, limit_bytes);
    if (rc) {
        leat_mem_free(made);
        return rc;
    }
    made->store = store;
    made->pool.zeroed = true;
    made->pool.ahead_bytes = LEAT_ARENA_STEP_BYTES / 4;
    leat_list_init(&made->waits);
    leat_list_push_back(&store->arenas, &made->link);
    store->arena_count++;
    *out_arena = made;
    return LEAT_OK;
}

static void arena_free(struct leat_store_arena *arena)
{
    leat_list_remove(&arena->link);
    arena->store->arena_count--;
    leat_pool_fini(&arena->pool);
    leat_mem_free(arena);
}

leat_err leat_arenas_open(struct leat_store *store)
{
    const struct leat_store_options *options = &store->options;
    for (size_t i = 0; i < options->inherited_count; i++) {
        struct leat_store_arena *arena;
        struct leat_arena *left = options->inherited[i];
        if (left->inherited_bytes == 0) continue;
        leat_err rc = arena_new(store, left, left->inherited_bytes, &arena);
        if (rc) return rc;
        arena->inherited = arena->pool.retired = true;
        arena->index = i;
    }
    return LEAT_OK;
}

void leat_arenas_fini(struct leat_store *store)
{
    LEAT_LIST_EACH(&store->arenas, it)
    arena_free(leat_store_arena_at(it));
}

/* ---- giving out ---- */
void leat_arena_take(struct leat_store *store, struct leat_store_req *req)
{
    leat_list_push_back(&req->arena->waits, &req->waiting);
    (void)store; /* served at the end of the turn, with everything else */
}

static void arena_serve(struct leat_store *store, struct leat_store_arena *arena, uint64_t now_us)
{
    struct leat_pool *pool = &arena->pool;
    LEAT_LIST_EACH(&arena->waits, it)
    {
        struct leat_store_req *req = leat_store_req_waiting(it);
        uint8_t *buffer = pool->retired ? NULL : leat_pool_take(pool, req->seg->capacity);
        if (buffer) {
            leat_list_remove(it);
            leat_memory_got_buffer(store, req, pool, buffer);
        } else if (pool->retired || (!pool->growing && !leat_pool_can_grow(pool)) ||
                   now_us >= req->asked_us + LEAT_RESERVE_WAIT_US) {
            leat_list_remove(it);
            leat_memory_refuse(store, req);
        }
    }
    if (!pool->retired) leat_pool_step(pool, !leat_list_empty(&arena->waits), false, now_us);
}

static bool arena_is_over(const struct leat_store_arena *arena)
{
    return arena->pool.retired && arena->pool.given == 0 && !arena->pool.growing;
}

static void op_answer_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store_arena_op *op = LEAT_CONTAINER(mail, struct leat_store_arena_op, mail);
    (void)actor;
    op->on_done(op);
}

static void op_answer(struct leat_store *store, struct leat_store_arena_op *op, leat_err rc)
{
    op->rc = rc;
    op->mail = (struct leat_mail){.deliver = op_answer_deliver};
    store->env->post->send(store->env->post->ctx, op->from, &op->mail);
}

void leat_arenas_step(struct leat_store *store, uint64_t now_us)
{
    LEAT_ASSERT_OWNER(store);
    LEAT_LIST_EACH(&store->arenas, it)
    {
        struct leat_store_arena *arena = leat_store_arena_at(it);
        arena_serve(store, arena, now_us);
        if (!store->started || !arena_is_over(arena)) continue;
        if (arena->inherited) {
            size_t index = arena->index;
            arena_free(arena);
            if (store->options.on_inherited_free)
                store->options.on_inherited_free(store->options.owner, index);
        } else if (arena->retire) {
            struct leat_store_arena_op *op = arena->retire;
            arena_free(arena);
            op_answer(store, op, LEAT_OK);
        }
    }
}

uint64_t leat_arenas_due_us(const struct leat_store *store)
{
    uint64_t next = UINT64_MAX;
    for (const struct leat_list *it = store->arenas.next; it != &store->arenas; it = it->next) {
        uint64_t at =
            leat_pool_due_us(&LEAT_CONTAINER(it, const struct leat_store_arena, link)->pool);
        if (at < next) next = at;
    }
    return next;
}

/* ---- adding and retiring ---- */
static void add_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store_arena_op *op = LEAT_CONTAINER(mail, struct leat_store_arena_op, mail);
    struct leat_store *store = actor;
    op_answer(store, op, arena_new(store, op->arena, op->limit_bytes, &op->added));
}

void leat_store_arena_add(struct leat_store *store, const struct leat_post *post,
                          struct leat_store_arena_op *op)
{
    (void)store;
    op->from = post->self;
    op->mail = (struct leat_mail){.deliver = add_deliver};
    post->send(post->ctx, LEAT_ACTOR_STORE, &op->mail);
}

static void retire_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store_arena_op *op = LEAT_CONTAINER(mail, struct leat_store_arena_op, mail);
    (void)actor;
    LEAT_ASSERT(op->added->retire == NULL && !op->added->inherited);
    op->added->retire = op;
    op->added->pool.retired = true;
}

void leat_store_arena_retire(struct leat_store *store, const struct leat_post *post,
                             struct leat_store_arena_op *op)
{
    (void)store;
    op->from = post->self;
    op->mail = (struct leat_mail){.deliver = retire_deliver};
    post->send(post->ctx, LEAT_ACTOR_STORE, &op->mail);
}
