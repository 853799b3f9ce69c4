/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes: tables on every core, links, and requests handed on. See members.h. */
#include "broker/net/core.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/replicate.h"
#include "broker/net/hooks.h"

static void member_open_link(struct leat_member *member);
static void member_close_link(struct leat_member *member);
static void serve_on_up(void *owner, struct leat_link *link);
static void serve_on_down(void *owner, struct leat_link *link, bool was_up,
                          const struct leat_error *error);
static void serve_on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                             const struct leat_link_ticket *ticket);

/* ---- the table ---- */

static void member_keep_earlier(struct leat_member *member, uint64_t incarnation)
{
    if (incarnation == 0 || incarnation == member->info.incarnation) return;
    memmove(member->earlier + 1, member->earlier,
            sizeof member->earlier - sizeof member->earlier[0]);
    member->earlier[0] = incarnation;
}

static struct leat_member *member_of_name(struct leat_core *core, const char *name)
{
    struct leat_members *members = &core->members;
    struct leat_member *member = leat_member_named(core, name);
    if (member != NULL) return member;
    /* The coordinator holds LEAT_NODES_MAX of them and no more. */
    LEAT_ASSERT_CMP(members->count, <, LEAT_NODES_MAX);
    member = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *member);
    /* A committed member can't be refused: without memory the node ends, and reads the member at its next start. */
    const bool committed_is_applied = member != NULL;
    LEAT_ASSERT(committed_is_applied);
    member->core = core;
    member->number = members->count;
    member->self = strcmp(name, core->node->name) == 0;
    members->rows[members->count++] = member;
    return member;
}

/* An event of a node on its way over all cores. */
struct member_walk {
    struct leat_mail mail;
    struct leat_node_info info;
};

/* The member's earlier incarnations are over: their messages, on any connection of this core, are not heard any more.
 * A process that was stopped and goes on is such an incarnation. */
static void member_fence(const struct leat_member *member)
{
    struct leat_links *links = member->core->members.links;
    if (links == NULL || member->self || member->info.incarnation < 2) return;
    leat_err rc = leat_links_fence(links, member->info.name, member->info.incarnation - 1);
    const bool dead_are_fenced = rc == LEAT_OK; /* no memory: better end here than go on hearing */
    LEAT_ASSERT(dead_are_fenced);
}

static void member_walk_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct member_walk *walk = LEAT_CONTAINER(mail, struct member_walk, mail);
    struct leat_member *member = member_of_name(core, walk->info.name);
    bool same = member->info.incarnation == walk->info.incarnation &&
                strcmp(member->info.node_address, walk->info.node_address) == 0;
    if (!same || walk->info.state != LEAT_NODE_UP) member_close_link(member);
    uint64_t before = member->info.incarnation;
    member->info = walk->info;
    member_keep_earlier(member, before);
    member_fence(member);
    leat_replicate_on_member(core, member, before);
    member_open_link(member);
    if (core->index + 1 < core->node->options.cores)
        leat_core_mail(core, core->index + 1, mail, member_walk_deliver);
    else
        leat_mem_free(walk);
}

void leat_node_on_node(void *owner, const struct leat_node_info *info)
{
    struct leat_node *node = owner;
    LEAT_ASSERT_OWNER(node->coordinator);
    const struct leat_post *post = node->options.coordinator_env->post;
    struct member_walk *walk = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *walk);
    const bool committed_is_applied = walk != NULL; /* as above */
    LEAT_ASSERT(committed_is_applied);
    walk->info = *info;
    walk->mail.deliver = member_walk_deliver;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &walk->mail);
}

/* ---- links ---- */

static const struct leat_link_handler serve_out = {serve_on_up, serve_on_down, serve_on_request,
                                                   NULL};

leat_err leat_members_open(struct leat_core *core, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_node *node = core->node;
    if (node->options.cluster.node_address == NULL) return LEAT_OK; /* there is no other node */
    core->serve_in = (struct leat_link_handler){serve_on_up, serve_on_down, serve_on_request, core};
    struct leat_links_options options = {
        .env = core->env,
        .actor = core,
        .timers = &core->timers,
        .hub = &node->hub,
        .key = node->options.cluster.key,
        .services = {[LEAT_LINK_SERVE] = {.handler = &core->serve_in}},
    };
    leat_err rc = leat_replicate_prepare(core, &options);
    if (rc != LEAT_OK) return leat_error_set(error, rc, "no memory for replication");
    memcpy(options.identity.cluster_id, node->cluster_id, sizeof options.identity.cluster_id);
    snprintf(options.identity.node, sizeof options.identity.node, "%s", node->name);
    options.identity.incarnation = node->incarnation;
    options.identity.cores = node->options.cores;
    rc = leat_links_create(&options, &core->members.links, error);
    if (rc == LEAT_OK) rc = leat_replicate_open(core, error);
    for (uint32_t i = 0; rc == LEAT_OK && i < core->members.count; i++) {
        member_fence(core->members.rows[i]);
        member_open_link(core->members.rows[i]);
    }
    return rc;
}

static void member_open_link(struct leat_member *member)
{
    struct leat_links *links = member->core->members.links;
    const struct leat_node_info *info = &member->info;
    if (links == NULL || member->self || member->serve != NULL) return;
    if (info->state != LEAT_NODE_UP || info->node_address[0] == '\0') return;
    struct leat_link_options options = {
        .address = info->node_address,
        .to_actor = LEAT_ACTOR_CORE_0 + member->core->index,
        .purpose = LEAT_LINK_SERVE,
        .expect_node = info->name,
        .expect_incarnation = info->incarnation,
        .handler = &serve_out,
    };
    struct leat_error error;
    leat_err rc = leat_link_open(links, &options, &member->serve, &error);
    if (rc != LEAT_OK)
        leat_node_log_error("no link to node %s at %s: %s", info->name, info->node_address,
                            error.text);
    else
        leat_link_user_set(member->serve, member);
}

static void member_close_link(struct leat_member *member)
{
    if (member->serve != NULL) leat_link_close(&member->serve);
}

void leat_members_fini(struct leat_core *core)
{
    leat_replicate_fini(core);
    for (uint32_t i = 0; i < core->members.count; i++) {
        member_close_link(core->members.rows[i]);
        leat_mem_free(core->members.rows[i]);
    }
    core->members.count = 0;
    leat_links_destroy(&core->members.links);
    leat_replicate_sink_fini(core);
}

static void serve_on_up(void *owner, struct leat_link *link)
{
    (void)owner;
    (void)link;
}

static void serve_on_down(void *owner, struct leat_link *link, bool was_up,
                          const struct leat_error *error)
{
    (void)owner;
    if (was_up && !leat_link_accepted(link))
        leat_node_log_info("the link to %s is gone: %s", leat_link_address(link), error->text);
}

/* ---- requests from another node, on behalf of its clients ---- */

static void serve_on_request(void *owner, struct leat_link *link, const struct leat_frame *frame,
                             const struct leat_link_ticket *ticket)
{
    struct leat_core *core = owner;
    struct leat_links *links = leat_link_links(link);
    struct leat_frame inner = *frame;
    if (core == NULL || frame->kind < LEAT_NODE_KIND_BROKER) {
        leat_link_answer_error(links, ticket, LEAT_E_UNSUPPORTED,
                               "this kind of request is not for a link between brokers");
        return;
    }
    inner.kind = (uint16_t)(frame->kind - LEAT_NODE_KIND_BROKER);
    core->serving = ticket;
    if (!core->node->hooks->request(&core->link_peer, &inner))
        leat_link_answer_error(links, ticket, LEAT_E_UNSUPPORTED,
                               "this request is not handed on between brokers");
    core->serving = NULL;
}

/* ---- requests for another node ---- */

/* ---- questions of this node's own ---- */
