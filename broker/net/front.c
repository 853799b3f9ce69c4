/* SPDX-License-Identifier: Apache-2.0 */
/* A node, its cores and its connections, for front ends: see broker/front.h. */
#include "broker/front.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/net/core.h"

_Static_assert((int)LEAT_FRONT_REQUESTS_MAX <= (int)LEAT_CORE_CALLS_MAX,
               "budget.c counts them as calls");
_Static_assert(sizeof(struct leat_peer) % _Alignof(uint64_t) == 0,
               "what a front end keeps lies after it");

/* ---- the node ---- */

struct leat_front_node leat_front_node(const struct leat_core *core)
{
    const struct leat_node *node = core->node;
    struct leat_front_node front = {
        .name = node->name,
        .rack = node->options.cluster.rack,
        .offsets_retention_us = node->options.offsets_retention_us,
        .incarnation = node->incarnation,
        .cores = node->options.cores,
        .auto_create = node->options.auto_create,
        .up = leat_node_is_up(node),
        .isolated = leat_node_stands(node, NULL) != LEAT_OK,
    };
    memcpy(front.cluster_id, node->cluster_id, sizeof front.cluster_id);
    return front;
}

uint32_t leat_front_node_count(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return core->members.count;
}

const struct leat_node_info *leat_front_node_info(const struct leat_core *core, uint32_t number)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(number, <, core->members.count);
    return &core->members.rows[number]->info;
}

int64_t leat_front_node_number(const struct leat_core *core, uint64_t incarnation)
{
    const struct leat_member *member = leat_member_find(core, incarnation);
    return member != NULL ? (int64_t)member->number : -1;
}

int64_t leat_front_self_number(const struct leat_core *core)
{
    for (uint32_t i = 0; i < core->members.count; i++)
        if (core->members.rows[i]->self) return core->members.rows[i]->number;
    return -1;
}

/* ---- a core ---- */

uint32_t leat_front_index(const struct leat_core *core)
{
    return core->index;
}

uint32_t leat_front_cores(const struct leat_core *core)
{
    return core->node->options.cores;
}

struct leat_core *leat_front_core(const struct leat_core *core, uint32_t index)
{
    LEAT_ASSERT_CMP(index, <, core->node->options.cores);
    return &core->node->cores[index];
}

uint64_t leat_front_now(const struct leat_core *core)
{
    return leat_core_now(core);
}

void leat_front_mail(struct leat_core *core, uint32_t to, struct leat_mail *mail,
                     void (*deliver)(void *actor, struct leat_mail *mail))
{
    LEAT_ASSERT_OWNER(core);
    leat_core_mail(core, to, mail, deliver);
}

bool leat_front_stops(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return core->stopping;
}

void *leat_front_own(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return core->front;
}

void leat_front_own_set(struct leat_core *core, void *own)
{
    LEAT_ASSERT_OWNER(core);
    core->front = own;
}

uint8_t *leat_front_scratch(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return core->scratch;
}

uint64_t leat_front_memory_bytes(const struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    return leat_node_door_bytes(options->memory_bytes, options->cores);
}

uint32_t leat_front_structs(const struct leat_core *core, uint32_t most)
{
    const struct leat_node_options *options = &core->node->options;
    return leat_node_structs(options->memory_bytes, options->cores, most);
}

/* ---- structs of requests ---- */

leat_err leat_front_stock_open(struct leat_core *core, size_t element_bytes, uint32_t count,
                               struct leat_stock **out_stock)
{
    struct leat_stock *stock = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *stock);
    if (stock == NULL) return LEAT_E_NO_MEMORY;
    leat_err rc = leat_stock_init(stock, core, element_bytes, count);
    if (rc == LEAT_OK)
        *out_stock = stock;
    else
        leat_mem_free(stock);
    return rc;
}

void leat_front_stock_close(struct leat_stock **stock)
{
    if (*stock == NULL) return;
    leat_stock_fini(*stock);
    leat_mem_free(*stock);
    *stock = NULL;
}

void leat_front_stock_left(struct leat_stock *stock, uint32_t left)
{
    LEAT_ASSERT_OWNER(stock->core);
    stock->left = left;
}

/* ---- connections ---- */

struct leat_peer *leat_peer_accepted(struct leat_core *core, struct leat_conn *conn,
                                     const struct leat_protocol *protocol, size_t own_bytes,
                                     const struct leat_conn_handler **out_handler)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(own_bytes, <=, LEAT_FRONT_CONN_BYTES); /* heap.c reckons with so many */
    struct leat_peer *peer = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *peer + own_bytes);
    if (peer == NULL || leat_peer_open(core, peer, conn, protocol, out_handler)) return peer;
    leat_mem_free(peer);
    return NULL;
}

void *leat_peer_own(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer + 1;
}

struct leat_core *leat_peer_core(const struct leat_peer *peer)
{
    return peer->core;
}

struct leat_sharer *leat_peer_sharer(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->sharer;
}

struct leat_front_share *leat_peer_share(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return &peer->sharer->front;
}

uint64_t leat_peer_address_number(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->address_number;
}

uint64_t leat_front_asks(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return leat_peer_asks(peer);
}

const char *leat_peer_client(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->conn != NULL ? peer->core->net->peer(peer->conn) : "";
}

void leat_peer_name_note(struct leat_peer *peer, const char *text, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (peer->name[0] == '\0' && bytes > 0)
        leat_node_log_name(peer->name, sizeof peer->name, text, bytes);
}

bool leat_peer_is_there(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->conn != NULL;
}

bool leat_peer_is_closing(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->closing;
}

bool leat_peer_is_paused(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->paused != 0;
}

bool leat_peer_is_known(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->greeted;
}

bool leat_peer_waits_for_room(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return !leat_list_empty(&peer->output.wait);
}

bool leat_peer_waits_for_structs(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return !leat_list_empty(&peer->stock.link);
}

size_t leat_peer_unsent(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->core->net->queued_bytes(peer->conn);
}

uint32_t leat_peer_requests(const struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    return peer->requests;
}

void leat_peer_hurry(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (!peer->stock.only) leat_stock_again(peer);
}

void leat_peer_answer_later(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (leat_list_empty(&peer->answers))
        leat_list_push_back(&peer->core->answer_peers, &peer->answers);
}
