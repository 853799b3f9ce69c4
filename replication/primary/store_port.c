/* SPDX-License-Identifier: Apache-2.0 */
/* What a log asks of the store, asked of all copies: the requests come in here. */
#include "base/bug.h"
#include "replication/primary/state.h"

static void no_set_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_store_req *req = LEAT_CONTAINER(mail, struct leat_store_req, mail);
    (void)actor;
    req->rc = LEAT_E_NO_MEMORY;
    req->on_done(req);
}

static void request_reserve(struct leat_primary_log *log, struct leat_store_req *req)
{
    struct rep_set *set = rep_set_new(log, req->id, req->capacity);
    if (!set) {
        /* By mail: no request is answered while the caller makes the request. */
        const struct leat_post *post = log->primary->options.env->post;
        req->mail = (struct leat_mail){.deliver = no_set_deliver};
        post->send(post->ctx, post->self, &req->mail);
        return;
    }
    set->reserve = req;
    rep_local_ask(set, LEAT_STORE_RESERVE);
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

/* SUBTLE: set->writes counts writes to lost copies, too, which a slow node may take seconds to end. No end of such a
 * write answers a commit: if the other copies have all bytes already (store_port_ahead()), nothing else would. */
static bool writes_to_copies(const struct rep_set *set)
{
    bool some = LEAT_BUG(LOST_WRITE_HOLDS) && set->writes > 0;
    for (unsigned i = 0; i < set->copy_count; i++)
        some |= set->copies[i]->writes > 0;
    return some;
}

static void request_commit(struct rep_set *set, struct leat_store_req *req)
{
    LEAT_ASSERT(!set->commit && req->to_bytes >= set->target);
    set->commit = req;
    if (set->state != REP_SET_STARTED) rep_set_enter(set, REP_SET_STARTED);
    set->target = req->to_bytes;
    if (rep_is_disk(set->log)) rep_local_ask(set, LEAT_STORE_COMMIT);
    /* Here, not at the next mail: this is what an append's latency is made of. */
    copies_write(set);
    rep_arm(set->log->primary, REP_TICK_US);
}

/* Only while all copies need nothing but bytes and acks: a copy that is compared with the target (a replacement that
 * is almost complete) must be able to reach the target. */
static void store_port_ahead(void *ctx, struct leat_segment *seg, uint32_t upto)
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

static void store_port_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    struct leat_primary_log *log = ctx;
    struct rep_set *set = req->seg ? req->seg->copies_pointer : NULL;
    req->from = post->self;
    req->rc = LEAT_OK;
    LEAT_ASSERT((req->kind == LEAT_STORE_RESERVE) == (set == NULL));
    switch (req->kind) {
    case LEAT_STORE_RESERVE:
        request_reserve(log, req);
        break;
    case LEAT_STORE_COMMIT:
        request_commit(set, req);
        /* What is under way brings its answer. */
        if (!rep_is_disk(log) && writes_to_copies(set) && !rep_is_held(log)) return;
        break;
    case LEAT_STORE_CLOSE:
        set->close = req;
        rep_set_enter(set, REP_SET_CLOSED);
        uncounted_remove(set); /* the background begins anew */
        break;
    case LEAT_STORE_HIBERNATE:
        set->hibernate = req;
        rep_set_enter(set, REP_SET_HIBERNATING);
        uncounted_remove(set); /* made good when it is resumed */
        break;
    case LEAT_STORE_RESUME:
        set->resume = req;
        rep_set_enter(set, REP_SET_RESUMING);
        break;
    case LEAT_STORE_DROP:
        set->drop = req;
        set->dropping = true;
        rep_set_activate(set); /* settled ones are looked at again */
        break;
    case LEAT_STORE_EVICT:
        if (set->writes == 0) {
            const struct leat_store_port *store = &log->primary->options.store;
            store->request(store->ctx, post, req);
            return;
        }
        set->evict = req;
        rep_set_activate(set);
        break;
    case LEAT_STORE_GIVE_UP: { /* for this node's row; the backups hear that an operator has seen the torn tail */
        const struct leat_store_port *store = &log->primary->options.store;
        for (unsigned i = 0; i < set->copy_count; i++)
            rep_audit_all(set->copies[i]->peer);
        store->request(store->ctx, post, req);
        return;
    }
    case LEAT_STORE_STAMP:
    case LEAT_STORE_MOVE:
    case LEAT_STORE_REPAIR: /* of this node's file alone: the store is asked */
        LEAT_ASSERT(req->kind != LEAT_STORE_STAMP && req->kind != LEAT_STORE_MOVE &&
                    req->kind != LEAT_STORE_REPAIR);
        break;
    }
    rep_mark_dirty(log);
}

static bool store_port_safe_in_memory(void *ctx, const struct leat_segment *seg)
{
    (void)ctx;
    (void)seg;
    return false; /* other copies have to be asked */
}

static bool store_port_roll_wanted(void *ctx, const struct leat_segment *head)
{
    return rep_better_roll(ctx, head);
}

static bool store_port_copy_wanted(void *ctx, const struct leat_segment *head)
{
    return rep_head_copy_wanted(ctx, head);
}

static bool store_port_in_the_way(void *ctx, const struct leat_segment *head)
{
    const struct leat_primary_log *log = ctx;
    const struct leat_store_port *store = &log->primary->options.store;
    return store->in_the_way && store->in_the_way(store->ctx, head);
}

static leat_err store_port_refusal(void *ctx)
{
    const struct leat_primary_log *log = ctx;
    if (log->fenced) return LEAT_E_STALE_EPOCH;
    return rep_nodes_up(log->primary) < log->options.min_copies ? LEAT_E_TOO_FEW_COPIES : LEAT_OK;
}

struct leat_store_port leat_primary_port(struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    return (struct leat_store_port){.ctx = rep,
                                    .request = store_port_request,
                                    .safe_in_memory = store_port_safe_in_memory,
                                    .refusal = store_port_refusal,
                                    .ahead = store_port_ahead,
                                    .roll_wanted = store_port_roll_wanted,
                                    .copy_wanted = store_port_copy_wanted,
                                    .in_the_way = store_port_in_the_way};
}
