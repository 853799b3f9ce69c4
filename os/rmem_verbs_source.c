/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that writes over verbs come from: the store's pool, what a core names, and the host's own arenas. All of it is
 * registered with the device, by regions that each have a key. */
#include "os/rmem_verbs.h"

#include <errno.h>

static const struct leat_arena *pool_of(const struct os_rmem *rmem)
{
    const struct os_actor *store = rmem->world->actors[LEAT_ACTOR_STORE];
    return store ? store->env.arena : NULL;
}

enum verbs_key leat_os_verbs_local_key(struct os_rmem *rmem, const uint8_t *at, uint32_t *out_key,
                                       size_t *out_bytes)
{
    struct os_verbs *shared = rmem->verbs;
    unsigned count = atomic_load(&shared->source_count);
    for (unsigned i = 0; i < count; i++) {
        const struct verbs_source *source = &shared->sources[i];
        if (at < source->base || at >= source->base + source->bytes) continue;
        *out_key = source->mr->lkey;
        *out_bytes = (size_t)(source->base + source->bytes - at);
        return VERBS_KEY_KNOWN;
    }
    const struct leat_arena *pool = pool_of(rmem);
    if (pool && at >= pool->base && at < pool->base + pool->limit_bytes) {
        size_t offset = (size_t)(at - pool->base);
        size_t step = offset / LEAT_ARENA_STEP_BYTES;
        if (step >= LEAT_RMEM_STEPS_MAX) return VERBS_KEY_NONE;
        struct ibv_mr *mr = atomic_load(&shared->pool[step]);
        if (!mr) return VERBS_KEY_LATER;
        *out_key = mr->lkey;
        *out_bytes = LEAT_ARENA_STEP_BYTES - offset % LEAT_ARENA_STEP_BYTES;
        return VERBS_KEY_KNOWN;
    }
    return leat_os_verbs_arena_key(rmem, at, out_key, out_bytes) ? VERBS_KEY_KNOWN : VERBS_KEY_NONE;
}

void leat_os_verbs_pool_register(struct os_rmem *rmem, struct leat_error *error)
{
    const struct leat_arena *pool = pool_of(rmem);
    uint64_t steps = __atomic_load_n(&pool->grown_bytes, __ATOMIC_ACQUIRE) / LEAT_ARENA_STEP_BYTES;
    for (uint64_t step = 0; step < steps && step < LEAT_RMEM_STEPS_MAX; step++) {
        if (atomic_load(&rmem->verbs->pool[step])) continue;
        struct ibv_mr *mr = ibv_reg_mr(rmem->verbs->pd, pool->base + step * LEAT_ARENA_STEP_BYTES,
                                       LEAT_ARENA_STEP_BYTES, IBV_ACCESS_LOCAL_WRITE);
        if (!mr) {
            leat_os_verbs_why(errno, error);
            return;
        }
        atomic_store(&rmem->verbs->pool[step], mr);
    }
}

leat_err leat_os_verbs_source_register(struct os_rmem *rmem, void *base, size_t bytes,
                                       struct leat_error *error)
{
    struct os_verbs *shared = rmem->verbs;
    struct leat_error ignored;
    struct ibv_mr *mr = ibv_reg_mr(shared->pd, base, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!mr) {
        leat_os_verbs_why(errno, error ? error : &ignored);
        return error ? error->code : ignored.code;
    }
    (void)pthread_mutex_lock(&rmem->lock);
    unsigned count = atomic_load(&shared->source_count);
    bool room = count < VERBS_SOURCES_MAX;
    if (room) {
        shared->sources[count] = (struct verbs_source){base, bytes, mr};
        atomic_store(&shared->source_count, count + 1);
    }
    (void)pthread_mutex_unlock(&rmem->lock);
    if (room) return LEAT_OK;
    (void)ibv_dereg_mr(mr);
    return leat_error_set(error, LEAT_E_TOO_MANY, "%d regions are registered already",
                          VERBS_SOURCES_MAX);
}
