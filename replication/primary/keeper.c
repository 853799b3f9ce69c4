/* SPDX-License-Identifier: Apache-2.0 */
/* What a log asks of the store, asked of all copies: the requests come in here. */
#include "replication/primary/state.h"

static void request_reserve(struct leat_primary_log *log, struct leat_keep *keep)
{
    struct rep_set *set = rep_set_new(log, keep->id, keep->capacity);
    if (!set) {
        /* Answered later, as everything: the store's answer for a request that it never had. */
        log->primary->options.store.request(log->primary->options.store.ctx,
                                            log->primary->options.env->post, keep);
        return;
    }
    set->reserve = keep;
    rep_local_ask(set, LEAT_KEEP_RESERVE);
}

/* What is new goes to all copies. Its CPU time is measured once in REP_CPU_EVERY times: asking for that
 * of a thread is a system call, and two of them for each post were 4 % of a core's time. */
static void copies_write(struct rep_set *set)
{
    struct leat_primary *primary = set->log->primary;
    bool measured = primary->posts++ % REP_CPU_EVERY == 0;
    uint64_t from_ns = measured ? rep_cpu(primary) : 0;
    for (unsigned i = 0; i < set->copy_count; i++)
        rep_copy_write(set->copies[i]);
    if (measured) primary->accounts.cpu_append += (rep_cpu(primary) - from_ns) * REP_CPU_EVERY;
}

static void request_commit(struct rep_set *set, struct leat_keep *keep)
{
    LEAT_ASSERT(!set->commit && keep->to_bytes >= set->target);
    set->commit = keep;
    set->started = true;
    set->target = keep->to_bytes;
    if (rep_is_disk(set->log)) rep_local_ask(set, LEAT_KEEP_COMMIT);
    /* Here, not at the next mail: this is what an append's latency is made of. */
    copies_write(set);
    rep_arm(set->log->primary, REP_TICK_US);
}

/* Only while nothing but bytes and acks is wanted of any copy: what is compared with the target (a
 * replacement that is nearly whole) must be able to reach it. */
static void keeper_ahead(void *ctx, struct leat_segment *seg, uint32_t upto)
{
    const struct leat_primary_log *log = ctx;
    struct rep_set *set = seg->copies_pointer;
    if (!set->commit || upto <= set->target || rep_is_held(log) || log->fenced) return;
    for (unsigned i = 0; i < set->copy_count; i++)
        if (!rep_copy_is_plain(set->copies[i])) return;
    set->target = upto;
    copies_write(set);
}

/* Copies that acks did not need yet. */
static void uncounted_remove(struct rep_set *set)
{
    for (unsigned i = set->copy_count; i-- > 0;)
        if (!set->copies[i]->counted) rep_copy_remove(set->copies[i]);
}

static void keeper_request(void *ctx, const struct leat_post *post, struct leat_keep *keep)
{
    struct leat_primary_log *log = ctx;
    struct rep_set *set = keep->seg ? keep->seg->copies_pointer : NULL;
    keep->from = post->self;
    keep->rc = LEAT_OK;
    LEAT_ASSERT((keep->kind == LEAT_KEEP_RESERVE) == (set == NULL));
    switch (keep->kind) {
    case LEAT_KEEP_RESERVE:
        request_reserve(log, keep);
        break;
    case LEAT_KEEP_COMMIT:
        request_commit(set, keep);
        /* What is under way brings its answer. */
        if (!rep_is_disk(log) && set->writes && !rep_is_held(log)) return;
        break;
    case LEAT_KEEP_CLOSE:
        set->close = keep;
        set->closed = true;
        uncounted_remove(set); /* the background begins anew */
        break;
    case LEAT_KEEP_PARK:
        set->park = keep;
        set->want_parked = true;
        uncounted_remove(set); /* made good when it is resumed */
        break;
    case LEAT_KEEP_RESUME:
        set->resume = keep;
        set->want_parked = false;
        break;
    case LEAT_KEEP_DROP:
        set->drop = keep;
        set->dropping = true;
        rep_set_activate(set); /* settled ones are looked at again */
        break;
    case LEAT_KEEP_EVICT:
        if (set->writes == 0) {
            const struct leat_keeper *store = &log->primary->options.store;
            store->request(store->ctx, post, keep);
            return;
        }
        set->evict = keep;
        rep_set_activate(set);
        break;
    case LEAT_KEEP_GIVE_UP: { /* of this node's row; the others hear that what was passed over was seen */
        const struct leat_keeper *store = &log->primary->options.store;
        for (unsigned i = 0; i < set->copy_count; i++)
            rep_audit_all(set->copies[i]->peer);
        store->request(store->ctx, post, keep);
        return;
    }
    case LEAT_KEEP_STAMP:
    case LEAT_KEEP_MOVE:
    case LEAT_KEEP_MEND: /* of this node's file alone: the store is asked */
        LEAT_ASSERT(keep->kind != LEAT_KEEP_STAMP && keep->kind != LEAT_KEEP_MOVE &&
                    keep->kind != LEAT_KEEP_MEND);
        break;
    }
    rep_mark_dirty(log);
}

static bool keeper_safe_in_memory(void *ctx, const struct leat_segment *seg)
{
    (void)ctx;
    (void)seg;
    return false; /* other copies have to be asked */
}

static bool keeper_roll_wanted(void *ctx, const struct leat_segment *head)
{
    return rep_better_roll(ctx, head);
}

static bool keeper_copy_wanted(void *ctx, const struct leat_segment *head)
{
    return rep_head_copy_wanted(ctx, head);
}

static bool keeper_in_the_way(void *ctx, const struct leat_segment *head)
{
    const struct leat_primary_log *log = ctx;
    const struct leat_keeper *store = &log->primary->options.store;
    return store->in_the_way && store->in_the_way(store->ctx, head);
}

static leat_err keeper_refusal(void *ctx)
{
    const struct leat_primary_log *log = ctx;
    if (log->fenced) return LEAT_E_STALE_EPOCH;
    return rep_nodes_up(log->primary) < log->options.min_copies ? LEAT_E_TOO_FEW_COPIES : LEAT_OK;
}

struct leat_keeper leat_primary_keeper(struct leat_primary_log *rep)
{
    return (struct leat_keeper){.ctx = rep,
                                .request = keeper_request,
                                .safe_in_memory = keeper_safe_in_memory,
                                .refusal = keeper_refusal,
                                .ahead = keeper_ahead,
                                .roll_wanted = keeper_roll_wanted,
                                .copy_wanted = keeper_copy_wanted,
                                .in_the_way = keeper_in_the_way};
}
