/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of a core: the session with the peer's backup, and requests in batches.
 *
 * A session is a control link and a target for writes; if one ends, both end, and so does every replica there that is
 * not closed. Without the link a restart of the backup would go unnoticed, and writes into the memory of a dead
 * backup would count (docs/stories.md 11). */
#include <string.h>

#include "base/node_log.h"
#include "replication/primary/state.h"

/* ---- session ---- */
void rep_peer_enter(struct rep_peer *peer, enum rep_peer_state to)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    static const unsigned follow[] = {
        [REP_PEER_DOWN] = 1u << REP_PEER_UP,
        [REP_PEER_UP] = 1u << REP_PEER_ASKED | 1u << REP_PEER_DOWN,
        [REP_PEER_ASKED] = 1u << REP_PEER_CONNECTING | 1u << REP_PEER_UP | 1u << REP_PEER_DOWN,
        [REP_PEER_CONNECTING] = 1u << REP_PEER_ATTACHED | 1u << REP_PEER_UP | 1u << REP_PEER_DOWN,
        [REP_PEER_ATTACHED] = 1u << REP_PEER_UP | 1u << REP_PEER_DOWN,
    };
    LEAT_ASSERT(follow[peer->state] & 1u << to);
    peer->state = to;
}

static void on_attached(void *user, struct leat_rmem_target *target)
{
    struct rep_peer *peer = user;
    (void)target;
    rep_peer_enter(peer, REP_PEER_ATTACHED);
    peer->refused = LEAT_OK;
    peer->primary->attached_count++;
    peer->session++;
    peer->audited_us = 0;
    peer->audit_from = 0;
    peer->audit_all = true; /* what lies there closed counts again */
    rep_place_nodes_changed(peer->primary);
    rep_peer_came(peer);
    const struct leat_primary_options *options = &peer->primary->options;
    LEAT_LIST_EACH(&peer->primary->waits, it)
    {
        struct leat_primary_log *log = LEAT_CONTAINER(it, struct leat_primary_log, waits_link);
        rep_mark_dirty(log);
        if (options->events.on_room) options->events.on_room(options->owner, log);
    }
    rep_arm(peer->primary, 0);
}

static void on_target_failed(void *user, struct leat_rmem_target *target,
                             const struct leat_error *error)
{
    struct rep_peer *peer = user;
    (void)target;
    leat_node_log_warn("replication: node %s: %s", peer->node.name, error->text);
    rep_peer_lost(peer);
}

static const struct leat_rmem_target_handler target_handler = {.on_attached = on_attached,
                                                               .on_failed = on_target_failed};

static void retry_later(struct rep_peer *peer)
{
    peer->retry_us = rep_now(peer->primary) + REP_RETRY_US;
    rep_arm(peer->primary, REP_RETRY_US);
}

/* It is asked again several times a second: the same cause is said again once it has lasted. */
static void refusal_tell(struct rep_peer *peer, leat_err rc, const char *text)
{
    uint64_t now_us = rep_now(peer->primary);
    if (peer->refused == rc && now_us < peer->refused_told_us + REP_REFUSAL_TELL_US) return;
    peer->refused = rc;
    peer->refused_told_us = now_us;
    if (rc == LEAT_E_STARTING) /* it hears of this node in a moment */
        leat_node_log_info("replication: node %s cannot be attached yet: %s", peer->node.name,
                           text);
    else
        leat_node_log_warn("replication: node %s cannot be attached: %s", peer->node.name, text);
}

static void on_attach_answer(struct leat_link_call *call, leat_err rc,
                             const struct leat_frame *answer, const struct leat_error *error)
{
    struct rep_peer *peer = call->owner;
    struct leat_primary *primary = peer->primary;
    struct rep_attached attached;
    struct leat_error why = {0};
    peer->attach_busy = false;
    if (peer->state != REP_PEER_ASKED) {
        retry_later(peer); /* lost meanwhile; up again perhaps */
        return;
    }
    if (!rc) rc = rep_attached_decode(answer->control, answer->control_bytes, &attached);
    if (!rc) {
        primary->accounts.other_rpcs++;
        peer->load_bytes = attached.load_bytes;
        rc = primary->options.rmem->attach(primary->options.rmem->ctx, peer->node.number,
                                           &attached.grant, &target_handler, peer, &peer->target,
                                           &why);
        error = &why;
    }
    rep_peer_enter(peer, rc ? REP_PEER_UP : REP_PEER_CONNECTING);
    if (!rc) return;
    refusal_tell(peer, rc, error && error->text[0] ? error->text : leat_err_text(rc));
    peer->target = NULL;
    retry_later(peer);
}

void rep_peer_attach(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    const struct leat_rep_net *net = &peer->primary->options.net;
    if (peer->state != REP_PEER_UP || peer->attach_busy) return;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, peer->small, sizeof peer->small);
    leat_msg_write_array(&writer, 0);
    peer->attach = (struct leat_link_call){.kind = LEAT_REP_ATTACH,
                                           .control = peer->small,
                                           .control_bytes = writer.used,
                                           .timeout_us = peer->primary->options.flush_us,
                                           .on_done = on_attach_answer,
                                           .owner = peer};
    rep_peer_enter(peer, REP_PEER_ASKED);
    peer->attach_busy = true;
    if (net->call(net->ctx, peer->node.number, &peer->attach)) {
        peer->attach_busy = false;
        rep_peer_enter(peer, REP_PEER_UP);
        retry_later(peer);
    }
}

static void batch_clear(struct rep_batch *batch)
{
    while (leat_list_pop_front(&batch->waiting)) {
    }
}

static void session_end(struct rep_peer *peer, enum rep_peer_state to)
{
    struct leat_primary *primary = peer->primary;
    if (peer->state == REP_PEER_ATTACHED) {
        LEAT_ASSERT_CMP(primary->attached_count, >, 0);
        primary->attached_count--;
        primary->accounts.lost_backups++;
        peer->cut = true;
    }
    if (peer->state != to) rep_peer_enter(peer, to);
    peer->session++;
    if (peer->target) leat_rmem_detach(peer->target);
    peer->target = NULL;
    batch_clear(&peer->restamp);
    batch_clear(&peer->flush);
    peer->settle_count = 0;
    /* Requests that were not sent yet have no answer to wait for. */
    struct leat_list *link;
    while ((link = leat_list_pop_front(&peer->ops_waiting)) != NULL) {
        struct rep_op *op = LEAT_CONTAINER(link, struct rep_op, link);
        if (op->copy) op->copy->op = NULL;
        leat_list_push_back(&primary->ops_free, &op->link);
    }
    LEAT_LIST_EACH(&peer->copies, it)
    {
        struct rep_copy *copy = LEAT_CONTAINER(it, struct rep_copy, by_peer);
        if (copy->set) rep_copy_lost(copy);
    }
    if (to == REP_PEER_UP) retry_later(peer);
}

void rep_peer_lost(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    session_end(peer, peer->state == REP_PEER_DOWN ? REP_PEER_DOWN : REP_PEER_UP);
}

void rep_peer_down(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    session_end(peer, REP_PEER_DOWN);
}

/* ---- batches ---- */
static void row_done(struct rep_batch *batch, struct rep_copy *copy, uint32_t value, leat_err rc)
{
    copy->batched = false;
    if (!copy->set) {
        /* Given up meanwhile: freed here only. */
        if (!copy->writes && !copy->op) {
            leat_list_remove(&copy->by_peer);
            leat_mem_free(copy);
        }
        return;
    }
    rep_mark_dirty(copy->set->log);
    if (rc) {
        rep_copy_lost(copy);
    } else if (batch == &batch->peer->restamp) {
        copy->stamp = value;
    } else {
        copy->flushed = value;
    }
}

static void on_batch_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct rep_batch *batch = call->owner;
    struct rep_peer *peer = batch->peer;
    struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    uint32_t count = 0;
    (void)error;
    if (!rc) rep_peer_heard(peer);
    if (!rc) rc = rep_pairs_decode(answer->control, answer->control_bytes, pairs, &count);
    if (!rc && count != batch->count) rc = LEAT_E_INVALID;
    if (batch == &peer->restamp)
        peer->primary->accounts.other_rpcs++;
    else
        peer->primary->accounts.flush_rpcs++;
    batch->busy = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        leat_err row_rc = rc ? rc : (leat_err)pairs[i].value;
        row_done(batch, batch->rows[i], batch->values[i], row_rc);
    }
    batch->count = 0;
    rep_peer_batches(peer);
}

static void batch_send(struct rep_batch *batch, uint16_t kind, uint64_t timeout_us)
{
    struct rep_peer *peer = batch->peer;
    const struct leat_rep_net *net = &peer->primary->options.net;
    struct rep_pair pairs[LEAT_REP_BATCH_MAX];
    struct leat_list *link;
    if (batch->busy || leat_list_empty(&batch->waiting)) return;
    while (batch->count < LEAT_REP_BATCH_MAX &&
           (link = leat_list_pop_front(&batch->waiting)) != NULL) {
        struct rep_copy *copy = LEAT_CONTAINER(link, struct rep_copy, in_batch);
        uint32_t value = batch == &peer->restamp ? copy->set->log->version : copy->done;
        if (batch == &peer->restamp && value > copy->stamp_sent) copy->stamp_sent = value;
        copy->batched = true;
        batch->rows[batch->count] = copy;
        batch->values[batch->count] = value;
        pairs[batch->count++] = (struct rep_pair){copy->handle, value, 0};
    }
    size_t room = (size_t)LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8;
    batch->call = (struct leat_link_call){
        .kind = kind,
        .control = batch->control,
        .control_bytes = rep_pairs_encode(pairs, batch->count, batch->control, room),
        .timeout_us = timeout_us,
        .on_done = on_batch_done,
        .owner = batch};
    if (net->call(net->ctx, peer->node.number, &batch->call) == LEAT_OK) {
        batch->busy = true;
        batch->sent_us = rep_now(peer->primary);
        rep_arm(peer->primary, REP_TICK_US);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->rows[i]->batched = false;
        leat_list_push_back(&batch->waiting, &batch->rows[i]->in_batch);
    }
    batch->count = 0;
    rep_arm(peer->primary, REP_TICK_US);
}

void rep_peer_batches(struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->primary->options.owner);
    const struct leat_primary_options *options = &peer->primary->options;
    if (peer->state != REP_PEER_ATTACHED) return;
    batch_send(&peer->restamp, LEAT_REP_RESTAMP, options->answer_us);
    batch_send(&peer->flush, LEAT_REP_FLUSH, options->flush_us);
}

/* ---- life ---- */
static leat_err batch_init(struct rep_batch *batch, struct rep_peer *peer)
{
    batch->peer = peer;
    leat_list_init(&batch->waiting);
    batch->rows = leat_mem_calloc(LEAT_MEM_STORE, LEAT_REP_BATCH_MAX, sizeof *batch->rows);
    batch->values = leat_mem_calloc(LEAT_MEM_STORE, LEAT_REP_BATCH_MAX, sizeof *batch->values);
    batch->control =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8, 1);
    return batch->rows && batch->values && batch->control ? LEAT_OK : LEAT_E_NO_MEMORY;
}

static void batch_fini(struct rep_batch *batch)
{
    leat_mem_free(batch->rows);
    leat_mem_free(batch->values);
    leat_mem_free(batch->control);
}

leat_err rep_peer_init(struct rep_peer *peer, struct leat_primary *primary)
{
    peer->primary = primary;
    leat_list_init(&peer->copies);
    leat_list_init(&peer->writes);
    leat_list_init(&peer->ops_waiting);
    peer->settle_pairs =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_REP_BATCH_MAX, sizeof *peer->settle_pairs);
    peer->settle_control =
        leat_mem_calloc(LEAT_MEM_STORE, LEAT_REP_BATCH_MAX * REP_PAIR_BYTES_MAX + 8, 1);
    leat_err rc = batch_init(&peer->restamp, peer);
    if (!rc) rc = batch_init(&peer->flush, peer);
    return rc || !peer->settle_pairs || !peer->settle_control ? LEAT_E_NO_MEMORY : LEAT_OK;
}

void rep_peer_fini(struct rep_peer *peer)
{
    if (peer->target) leat_rmem_detach(peer->target);
    batch_fini(&peer->restamp);
    batch_fini(&peer->flush);
    leat_mem_free(peer->settle_pairs);
    leat_mem_free(peer->settle_control);
    leat_mem_free(peer);
}
