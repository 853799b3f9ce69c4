/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of transports tcp and rpc: writes as messages on a link of purpose LEAT_LINK_DATA.
 *
 * tcp: one-way messages; the sink says how far it has come. rpc: calls, each with its answer. */
#include "replication/transport/data.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static struct data_target *data_of(struct leat_rmem_target *target)
{
    return LEAT_CONTAINER(target, struct data_target, target);
}

static void target_mail(struct data_target *target)
{
    if (target->mailed) return;
    target->mailed = true;
    const struct leat_post *post = target->transport->env->post;
    post->send(post->ctx, post->self, &target->mail);
}

static void target_fail(struct data_target *target, leat_err rc, const char *text)
{
    if (target->error.code == LEAT_OK) leat_error_set(&target->error, rc, "%s", text);
    target->target.failed = true;
    target_mail(target);
}

/* ---- writes ---- */

static struct data_slot *slot_of(struct data_target *target, uint64_t number)
{
    return &target->slots[number % LEAT_RMEM_WINDOW];
}

static void write_on_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                          const struct leat_error *error)
{
    struct data_target *target = call->owner;
    struct data_slot *slot = LEAT_CONTAINER(call, struct data_slot, call);
    (void)answer;
    slot->sent = true;
    if (rc) target_fail(target, rc, error ? error->text : leat_err_text(rc));
    if (!call->one_way) {
        slot->done = true;
        slot->rc = rc;
    }
    target_mail(target);
    /* There is room on the link again. */
    LEAT_LIST_EACH(&target->node->targets, at)
    {
        struct data_target *other = LEAT_CONTAINER(at, struct data_target, link);
        if (!leat_list_empty(&other->waiting)) target_mail(other);
    }
}

/* False: the link takes no more for now, or never. */
static bool slot_send(struct data_target *target, struct leat_rmem_write *write)
{
    uint64_t number = target->posted + 1;
    struct data_slot *slot = slot_of(target, number);
    bool tcp = target->target.kind == LEAT_RMEM_TCP;
    slot->write = write;
    slot->sent = slot->done = false;
    slot->rc = LEAT_OK;
    slot->control = (struct leat_data_write){.address = target->address,
                                             .offset = write->offset,
                                             .number = number,
                                             .target = target->number};
    slot->call = (struct leat_link_call){
        .kind = tcp ? LEAT_DATA_WRITE : target->transport->baseline->kind,
        .one_way = tcp,
        .control = (const uint8_t *)&slot->control,
        .control_bytes = sizeof slot->control,
        .payload = write->iovs,
        .payload_count = write->iov_count,
        .on_done = write_on_done,
        .owner = target,
    };
    leat_err rc = leat_link_call(target->node->link, &slot->call);
    if (rc && rc != LEAT_E_AGAIN) target_fail(target, rc, leat_err_text(rc));
    if (rc == LEAT_OK) target->posted = number;
    return rc == LEAT_OK;
}

static void waiting_send(struct data_target *target)
{
    while (!leat_list_empty(&target->waiting) && !target->error.code && !target->detached &&
           target->posted - target->ended < LEAT_RMEM_WINDOW) {
        struct leat_list *first = target->waiting.next;
        leat_list_remove(first);
        if (slot_send(target, LEAT_CONTAINER(first, struct leat_rmem_write, list))) continue;
        leat_list_push_front(&target->waiting, first);
        return;
    }
}

static leat_err end_of(const struct data_target *target)
{
    return target->error.code ? target->error.code : LEAT_E_CANCELLED;
}

/* In order: ends completed writes; after a failure, all writes whose bytes the link has released. */
static void writes_end(struct data_target *target)
{
    while (target->ended < target->posted) {
        struct data_slot *slot = slot_of(target, target->ended + 1);
        bool over = target->error.code || target->detached;
        if (!slot->sent || (!slot->done && !over)) return;
        leat_err rc = slot->done ? slot->rc : end_of(target);
        /* after a failed write no later write counts */
        if (target->first_rc) rc = target->first_rc;
        target->first_rc = rc;
        target->ended++;
        slot->write->on_done(slot->write, rc); /* may write, or detach */
    }
    while ((target->error.code || target->detached) && !leat_list_empty(&target->waiting)) {
        struct leat_rmem_write *write =
            LEAT_CONTAINER(leat_list_pop_front(&target->waiting), struct leat_rmem_write, list);
        write->on_done(write, end_of(target));
    }
}

static bool target_idle(const struct data_target *target)
{
    return target->ended == target->posted && leat_list_empty(&target->waiting);
}

static void target_free(struct data_target *target)
{
    leat_list_remove(&target->link);
    target->transport->target_count--;
    leat_mem_free(target);
}

static void target_deliver(void *actor, struct leat_mail *mail)
{
    struct data_target *target = LEAT_CONTAINER(mail, struct data_target, mail);
    (void)actor;
    target->mailed = false;
    writes_end(target);
    waiting_send(target);
    if (target->error.code && !target->told && !target->detached && target_idle(target) &&
        !target->attaching) {
        target->told = true;
        target->handler->on_failed(target->user, &target->target, &target->error);
    }
    if (target->detached && !target->mailed && target_idle(target) && !target->attaching)
        target_free(target);
}

/* ---- attaching ---- */

static void attach_on_done(struct leat_link_call *call, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct data_target *target = call->owner;
    (void)answer;
    target->attaching = false;
    if (rc) target_fail(target, rc, error ? error->text : leat_err_text(rc));
    if (!rc && !target->detached && !target->error.code) {
        target->target.attached = true;
        target->handler->on_attached(target->user, &target->target);
    }
    target_mail(target);
}

static void attach_send(struct data_target *target)
{
    target->attach_call = (struct leat_link_call){
        .kind = LEAT_DATA_ATTACH,
        .control = (const uint8_t *)&target->address,
        .control_bytes = sizeof target->address,
        .on_done = attach_on_done,
        .owner = target,
    };
    leat_err rc = leat_link_call(target->node->link, &target->attach_call);
    target->attaching = rc == LEAT_OK;
    if (rc) target_fail(target, rc, leat_err_text(rc));
}

/* ---- the link ---- */

static void link_on_up(void *owner, struct leat_link *link)
{
    struct transport_node *node = owner;
    (void)link;
    LEAT_LIST_EACH(&node->targets, at)
    {
        struct data_target *target = LEAT_CONTAINER(at, struct data_target, link);
        if (!target->target.attached && !target->attaching && !target->error.code)
            attach_send(target);
    }
}

static void targets_fail(struct transport_node *node, leat_err rc, const char *text)
{
    LEAT_LIST_EACH(&node->targets, at)
    target_fail(LEAT_CONTAINER(at, struct data_target, link), rc, text);
}

static void link_on_down(void *owner, struct leat_link *link, bool was_up,
                         const struct leat_error *error)
{
    (void)link;
    (void)was_up;
    targets_fail(owner, error->code, error->text);
}

static void link_on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                            const struct leat_link_ticket *ticket)
{
    struct transport_node *node = owner;
    struct leat_data_done done;
    if (frame->kind != LEAT_DATA_DONE || frame->control_bytes != sizeof done) {
        if (ticket->request)
            leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_UNSUPPORTED,
                                   "a writer takes no requests");
        return;
    }
    memcpy(&done, frame->control, sizeof done);
    LEAT_LIST_EACH(&node->targets, at)
    {
        struct data_target *target = LEAT_CONTAINER(at, struct data_target, link);
        if (target->number != done.target || target->error.code) continue;
        if (done.number > target->posted || done.number <= target->ended) return; /* nonsense */
        for (uint64_t n = target->ended + 1; n < done.number; n++)
            slot_of(target, n)->done = true;
        struct data_slot *last = slot_of(target, done.number);
        last->done = true;
        last->rc = (leat_err)done.rc;
        if (done.rc) {
            struct leat_error error;
            leat_error_set(&error, last->rc, "the backup refused a write: %s",
                           leat_err_text(last->rc));
            target_fail(target, last->rc, error.text);
        }
        target_mail(target);
        return;
    }
}

static leat_err link_open(struct transport_node *node, struct leat_error *error)
{
    struct leat_transport *transport = node->transport;
    if (node->link) return LEAT_OK;
    node->handler = (struct leat_link_handler){
        .on_up = link_on_up, .on_down = link_on_down, .on_request = link_on_request, .owner = node};
    struct leat_link_options options = {
        .address = node->address,
        .to_actor = transport->env->post->self,
        .purpose = LEAT_LINK_DATA,
        .expect_node = node->name,
        .expect_incarnation = node->incarnation,
        .handler = &node->handler,
    };
    return leat_link_open(transport->links, &options, &node->link, error);
}

/* ---- the port ---- */

static leat_err data_attach(void *ctx, unsigned node_number, const struct leat_rmem_grant *grant,
                            const struct leat_rmem_target_handler *handler, void *user,
                            struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct leat_rmem *port = ctx;
    struct leat_rmem *first = port - (port->kind - LEAT_RMEM_RPC);
    struct leat_transport *transport = LEAT_CONTAINER(first, struct leat_transport, data);
    size_t bytes;
    struct leat_rmem_address address;
    struct transport_node *node = leat_transport_node(transport, node_number);
    if (leat_rmem_grant_address(grant, &address))
        return leat_error_set(error, LEAT_E_INVALID, "the grant can't be read");
    if (!leat_rmem_grant_find(grant, port->kind, &bytes))
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "the backup does not offer %s",
                              leat_rmem_kind_name(port->kind));
    if (!node || node->incarnation == 0)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "it is not up");
    if (transport->target_count == LEAT_RMEM_TARGETS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "%d targets are attached already",
                              LEAT_RMEM_TARGETS_MAX);
    leat_err rc = link_open(node, error);
    if (rc) return rc;
    struct data_target *target = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *target);
    if (!target) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to attach an arena");
    target->target.port = port;
    target->target.kind = port->kind;
    target->transport = transport;
    target->node = node;
    target->handler = handler;
    target->user = user;
    target->address = address;
    target->number = ++transport->next_target;
    target->mail.deliver = target_deliver;
    leat_list_init(&target->waiting);
    leat_list_push_back(&node->targets, &target->link);
    transport->target_count++;
    if (leat_link_is_up(node->link)) attach_send(target);
    *out_target = &target->target;
    return LEAT_OK;
}

static leat_err data_write(struct leat_rmem_target *port_target, struct leat_rmem_write *write)
{
    struct data_target *target = data_of(port_target);
    if (target->detached) return LEAT_E_CLOSED;
    leat_err rc = leat_rmem_write_check(port_target, write, target->address.limit_bytes);
    if (rc) return rc;
    leat_list_push_back(&target->waiting, &write->list);
    waiting_send(target);
    return LEAT_OK;
}

static void data_detach(struct leat_rmem_target *port_target)
{
    struct data_target *target = data_of(port_target);
    LEAT_ASSERT(!target->detached);
    target->detached = true;
    target_mail(target);
}

/* ---- life ---- */

void leat_transport_data_init(struct leat_transport *transport)
{
    const enum leat_rmem_kind kinds[2] = {LEAT_RMEM_RPC, LEAT_RMEM_TCP};
    for (unsigned i = 0; i < 2; i++)
        transport->data[i] = (struct leat_rmem){
            .ctx = &transport->data[i],
            .kind = kinds[i],
            .attach = data_attach,
            .write = data_write,
            .detach = data_detach,
        };
}

void leat_transport_node_drop(struct transport_node *node)
{
    targets_fail(node, LEAT_E_CLOSED, "the node has gone, or moved");
    if (node->link) leat_link_close(&node->link);
}

void leat_transport_node_free(struct transport_node *node)
{
    if (node->link) leat_link_close(&node->link);
    while (!leat_list_empty(&node->targets))
        target_free(LEAT_CONTAINER(node->targets.next, struct data_target, link));
    leat_mem_free(node);
}
