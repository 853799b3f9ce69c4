/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages between the nodes, lost and late; links. */
#include "tests/replication/world_parts.h"

/* ---- control messages ---- */
static void message_push(struct world *world, struct world_message message)
{
    LEAT_ASSERT_CMP(world->message_count, <, WORLD_MESSAGES_MAX);
    unsigned peer = message.answer ? message.from : message.to;
    struct world_node *node = &world->nodes[peer];
    message.at_us = world_later(world, world->message_us_max);
    if (message.at_us < node->link_last_us[message.answer])
        message.at_us = node->link_last_us[message.answer];
    node->link_last_us[message.answer] = message.at_us;
    message.link = node->link;
    world->messages[world->message_count++] = message;
}

static leat_err net_call(void *ctx, unsigned to, struct leat_link_call *call)
{
    struct world *world = ctx;
    struct world_node *node = &world->nodes[to];
    if (!node->link_up) return LEAT_E_CLOSED;
    LEAT_ASSERT_CMP(world->call_count, <, WORLD_CALLS_MAX);
    uint64_t id = ++world->ids;
    world->calls[world->call_count++] = (struct world_call){
        .call = call, .to = to, .id = id, .deadline_us = world->now_us + call->timeout_us};
    uint8_t *control = malloc(call->control_bytes);
    memcpy(control, call->control, call->control_bytes);
    message_push(world, (struct world_message){.id = id,
                                               .to = to,
                                               .kind = call->kind,
                                               .control = control,
                                               .bytes = call->control_bytes});
    return LEAT_OK;
}

static void net_cut(void *ctx, unsigned node)
{
    world_link_cut(ctx, node);
}

static void net_answer(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                       uint32_t bytes)
{
    struct world_node *node = ctx;
    if (ticket->connection != node->link) return;
    uint8_t *copy = malloc(bytes + 1);
    memcpy(copy, control, bytes);
    message_push(node->world, (struct world_message){.id = ticket->request,
                                                     .from = node->number,
                                                     .answer = true,
                                                     .control = copy,
                                                     .bytes = bytes});
}

static void net_refuse(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                       const char *text)
{
    struct world_node *node = ctx;
    (void)text;
    if (ticket->connection != node->link) return;
    message_push(node->world,
                 (struct world_message){
                     .id = ticket->request, .from = node->number, .answer = true, .rc = rc});
}

static void call_end(struct world *world, unsigned index, leat_err rc,
                     const struct leat_frame *frame)
{
    struct world_call ended = world->calls[index];
    struct leat_error error = {rc, ""};
    world->calls[index] = world->calls[--world->call_count];
    ended.call->on_done(ended.call, rc, frame, &error);
}

void world_message_deliver(struct world *world, unsigned index)
{
    struct world_message message = world->messages[index];
    memmove(&world->messages[index], &world->messages[index + 1],
            (world->message_count - index - 1) * sizeof world->messages[0]);
    world->message_count--;
    struct world_node *node = &world->nodes[message.answer ? message.from : message.to];
    struct leat_frame frame = {
        .kind = message.kind, .control = message.control, .control_bytes = message.bytes};
    if (message.link != node->link || !node->link_up) {
        free(message.control);
        return;
    }
    if (message.answer) {
        for (unsigned i = 0; i < world->call_count; i++)
            if (world->calls[i].id == message.id) {
                call_end(world, i, message.rc, &frame);
                break;
            }
    } else if (node->alive) {
        struct leat_link_identity who = {.incarnation = world->nodes[0].incarnation, .cores = 1};
        struct leat_link_ticket ticket = {
            .request = (uint32_t)message.id, .connection = node->link, .kind = message.kind};
        snprintf(who.node, sizeof who.node, "n0");
        if (message.kind == LEAT_REP_OPEN && world_below(world, 100) < node->refuses)
            net_refuse(node, &ticket, LEAT_E_AGAIN, "no");
        else
            leat_backup_request(node->backup, &who, &frame, &ticket);
    }
    free(message.control);
}

/* ---- links ---- */
void world_link_cut(struct world *world, unsigned number)
{
    struct world_node *node = &world->nodes[number];
    if (!node->link_up) return;
    node->link_up = false;
    node->link++;
    node->link_at_us = world_later(world, 4 * world->message_us_max);
}

void world_link_event(struct world *world, struct world_node *node)
{
    bool told = node->link % 2 == 0; /* even: the owner knows that it is down */
    if (!told) {
        for (unsigned i = 0; i < world->call_count;) {
            if (world->calls[i].to != node->number) {
                i++;
                continue;
            }
            call_end(world, i, LEAT_E_CLOSED, NULL);
            i = 0;
        }
        node->link++;
        leat_primary_peer_down(world->primary, node->number);
        node->link_at_us = world_later(world, 20 * world->message_us_max) + 1000;
        return;
    }
    if (!node->alive) {
        node->link_at_us = world->now_us + 5000;
        return;
    }
    struct leat_rep_node seen = {.number = node->number, .incarnation = node->incarnation};
    unsigned host = world->hosts ? node->number % world->hosts : node->number;
    snprintf(seen.host, sizeof seen.host, "h%u", host);
    leat_primary_node_set(world->primary, &seen);
    node->link_up = true;
    node->link_at_us = UINT64_MAX;
    leat_primary_peer_up(world->primary, node->number);
}

void world_call_timeout(struct world *world, unsigned index)
{
    call_end(world, index, LEAT_E_TIMEOUT, NULL);
}

/* A backup asks another one for bytes: the way is the one that the owner's requests take. */
static leat_err backup_call(void *ctx, unsigned to, struct leat_link_call *call)
{
    return net_call(((struct world_node *)ctx)->world, to, call);
}

struct leat_rep_net world_backup_net(struct world_node *node)
{
    return (struct leat_rep_net){
        .ctx = node, .call = backup_call, .answer = net_answer, .refuse = net_refuse};
}

struct leat_rep_net world_primary_net(struct world *world)
{
    return (struct leat_rep_net){.ctx = world, .call = net_call, .cut = net_cut};
}
