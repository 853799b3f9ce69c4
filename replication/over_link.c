/* SPDX-License-Identifier: Apache-2.0 */
/* Replication's control requests over link/. */
#include "replication/over_link.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

struct peer {
    struct leat_rep_link *owner;
    struct leat_link *link; /* NULL: none */
    unsigned number;
    uint64_t incarnation;
};

struct leat_rep_link {
    struct leat_links *links;
    struct leat_primary *primary;
    struct leat_backup *backup;
    struct peer peers[LEAT_REP_NODES_MAX];
    struct leat_link_handler accepted, opened;
};

/* ---- the primary's side: links that are opened here ---- */
static void opened_on_up(void *owner, struct leat_link *link)
{
    struct leat_rep_link *rep_link = owner;
    const struct peer *peer = leat_link_user(link);
    if (rep_link->primary) leat_primary_peer_up(rep_link->primary, peer->number);
}

static void opened_on_down(void *owner, struct leat_link *link, bool was_up,
                           const struct leat_error *error)
{
    struct leat_rep_link *rep_link = owner;
    const struct peer *peer = leat_link_user(link);
    if (!rep_link->primary) return;
    if (was_up)
        leat_primary_peer_down(rep_link->primary, peer->number);
    else /* link/ says it in the node log, once */
        leat_primary_peer_refused(rep_link->primary, peer->number, error->code);
}

static void opened_on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                              const struct leat_link_ticket *ticket)
{
    struct leat_rep_link *rep_link = owner;
    (void)link;
    (void)frame; /* a backup asks nothing of its writers */
    leat_link_answer_error(rep_link->links, ticket, LEAT_E_UNSUPPORTED, "backups ask nothing");
}

static leat_err net_call(void *ctx, unsigned node, struct leat_link_call *call)
{
    struct leat_rep_link *rep_link = ctx;
    struct leat_link *link = rep_link->peers[node].link;
    return link ? leat_link_call(link, call) : LEAT_E_CLOSED;
}

static void net_cut(void *ctx, unsigned node)
{
    struct leat_rep_link *rep_link = ctx;
    struct leat_link *link = rep_link->peers[node].link;
    if (link) leat_link_cut(link, LEAT_E_TIMEOUT, "it does not answer, or takes no writes");
}

/* ---- the backup's side: links of others ---- */
static void accepted_on_up(void *owner, struct leat_link *link)
{
    (void)owner;
    (void)link;
}

static void accepted_on_down(void *owner, struct leat_link *link, bool was_up,
                             const struct leat_error *error)
{
    (void)owner; /* replicas stay as they are: they may be what a recovery looks for */
    (void)link;
    (void)was_up;
    (void)error;
}

static void accepted_on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                                const struct leat_link_ticket *ticket)
{
    struct leat_rep_link *rep_link = owner;
    if (rep_link->backup)
        leat_backup_request(rep_link->backup, leat_link_peer(link), frame, ticket);
    else
        leat_link_answer_error(leat_link_links(link), ticket, LEAT_E_STARTING,
                               "this core keeps no replicas, or not yet");
}

static void net_answer(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                       uint32_t control_bytes)
{
    struct leat_rep_link *rep_link = ctx;
    leat_link_answer(rep_link->links, ticket, control, control_bytes);
}

static void net_refuse(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                       const char *text)
{
    struct leat_rep_link *rep_link = ctx;
    leat_link_answer_error(rep_link->links, ticket, rc, text);
}

/* ---- both ---- */
leat_err leat_rep_link_create(struct leat_rep_link **out_rep_link)
{
    struct leat_rep_link *rep_link = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *rep_link);
    if (!rep_link) return LEAT_E_NO_MEMORY;
    rep_link->opened = (struct leat_link_handler){.on_up = opened_on_up,
                                                  .on_down = opened_on_down,
                                                  .on_request = opened_on_request,
                                                  .owner = rep_link};
    rep_link->accepted = (struct leat_link_handler){.on_up = accepted_on_up,
                                                    .on_down = accepted_on_down,
                                                    .on_request = accepted_on_request,
                                                    .owner = rep_link};
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX; i++)
        rep_link->peers[i] = (struct peer){.owner = rep_link, .number = i};
    *out_rep_link = rep_link;
    return LEAT_OK;
}

const struct leat_link_handler *leat_rep_link_handler(struct leat_rep_link *rep_link)
{
    return &rep_link->accepted;
}

struct leat_rep_net leat_rep_link_net(struct leat_rep_link *rep_link)
{
    return (struct leat_rep_net){.ctx = rep_link,
                                 .call = net_call,
                                 .cut = net_cut,
                                 .answer = net_answer,
                                 .refuse = net_refuse};
}

void leat_rep_link_start(struct leat_rep_link *rep_link, struct leat_links *links,
                         struct leat_primary *primary, struct leat_backup *backup)
{
    rep_link->links = links;
    rep_link->primary = primary;
    rep_link->backup = backup;
}

static void peer_close(struct peer *peer)
{
    if (!peer->link) return;
    bool up = leat_link_is_up(peer->link);
    leat_link_close(&peer->link); /* on_down does not run */
    if (up && peer->owner->primary) leat_primary_peer_down(peer->owner->primary, peer->number);
}

leat_err leat_rep_link_node_set(struct leat_rep_link *rep_link, const struct leat_rep_node *node,
                                const char *address, struct leat_error *error)
{
    LEAT_ASSERT(rep_link->links && node->number < LEAT_REP_NODES_MAX);
    struct peer *peer = &rep_link->peers[node->number];
    if (rep_link->primary) leat_primary_node_set(rep_link->primary, node);
    const struct leat_link_identity *self = leat_links_identity(rep_link->links);
    if (strcmp(self->node, node->name) == 0) return LEAT_OK;
    if (peer->link && node->incarnation == peer->incarnation)
        return leat_link_readdress(peer->link, address);
    peer_close(peer);
    peer->incarnation = node->incarnation;
    if (!node->incarnation) return LEAT_OK;
    struct leat_link_options options = {
        .address = address,
        .to_actor = LEAT_ACTOR_CORE_0,
        .purpose = LEAT_LINK_REPLICATE,
        .expect_node = node->name,
        .expect_incarnation = node->incarnation,
        .handler = &rep_link->opened,
    };
    leat_err rc = leat_link_open(rep_link->links, &options, &peer->link, error);
    if (rc) return rc;
    leat_link_user_set(peer->link, peer);
    return LEAT_OK;
}

void leat_rep_link_destroy(struct leat_rep_link **pointer)
{
    struct leat_rep_link *rep_link = *pointer;
    if (!rep_link) return;
    rep_link->primary = NULL;
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX; i++)
        peer_close(&rep_link->peers[i]);
    leat_mem_free(rep_link);
    *pointer = NULL;
}
