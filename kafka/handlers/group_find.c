/* SPDX-License-Identifier: Apache-2.0 */
/* FindCoordinator: the node of a group's home. */
#include "base/assert.h"
#include "kafka/front/pieces.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/group.h"

enum { KEY_GROUP = 0, KEY_TRANSACTION = 1 };

struct find {
    struct leat_kafka_pieces pieces;
    int32_t next;
    leat_err rc; /* whether there are homes */
    /* The nodes that are up; their hosts are in the request's memory */
    struct leat_kafka_node *nodes;
    uint32_t node_count;
};

static bool nodes_keep(struct leat_kafka_request *request, struct find *find)
{
    find->nodes = leat_kafka_take(request, LEAT_NODES_MAX, sizeof *find->nodes);
    if (find->nodes == NULL) return false;
    find->node_count = leat_kafka_nodes(request->core, find->nodes, LEAT_NODES_MAX);
    LEAT_ASSERT_CMP(find->node_count, <=, LEAT_NODES_MAX);
    for (uint32_t i = 0; i < find->node_count; i++) {
        find->nodes[i].host = leat_kafka_keep(request, find->nodes[i].host);
        if (find->nodes[i].host.text == NULL) return false;
    }
    return true;
}

/* The node that owns the home; false: it is not known, or not up. */
static bool home_node(const struct find *find, struct leat_kafka_string key,
                      struct leat_kafka_node *out_node)
{
    const struct leat_core *core = find->pieces.request->core;
    uint64_t owner = leat_kafka_group_home_owner(core, key);
    int32_t id = owner != 0 ? leat_kafka_node_id(core, owner) : -1;
    for (uint32_t i = 0; i < find->node_count && id >= 0; i++) {
        if (find->nodes[i].id != id) continue;
        *out_node = find->nodes[i];
        return true;
    }
    return false;
}

static int16_t coordinator_find(const struct find *find, int8_t key_type,
                                struct leat_kafka_string key, struct leat_kafka_node *out_node)
{
    *out_node = (struct leat_kafka_node){.id = -1, .host = {"", 0}, .port = -1};
    if (key_type == KEY_TRANSACTION) return LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    if (key_type != KEY_GROUP) return LEAT_KAFKA_INVALID_REQUEST;
    if (find->rc != LEAT_OK || !home_node(find, key, out_node))
        return LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    return LEAT_KAFKA_NONE;
}

static struct leat_kafka_string refusal_words(int16_t error)
{
    switch (error) {
    case LEAT_KAFKA_NONE:
        return (struct leat_kafka_string){NULL, -1};
    case LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return leat_kafka_text("transactions are not served");
    case LEAT_KAFKA_INVALID_REQUEST:
        return leat_kafka_text("only groups have a coordinator here");
    default:
        return leat_kafka_text("the homes of groups are not served right now, try again");
    }
}

static enum leat_kafka_piece find_next(struct leat_kafka_pieces *pieces)
{
    struct find *find = LEAT_CONTAINER(pieces, struct find, pieces);
    const struct leat_kafka_find_coordinator_request *body = pieces->request->body;
    const int32_t at = find->next++;
    struct leat_kafka_node node;
    const struct leat_kafka_find_coordinator_response *response = pieces->response;
    if (at >= response->coordinators.count) return LEAT_KAFKA_PIECE_NONE;
    struct leat_kafka_find_coordinator_response_coordinator *row = &response->coordinators.at[at];
    LEAT_ASSERT(at < body->coordinator_keys.count);
    row->key = body->coordinator_keys.at[at];
    row->error_code = coordinator_find(find, body->key_type, row->key, &node);
    row->error_message = refusal_words(row->error_code);
    row->node_id = node.id;
    row->host = node.host;
    row->port = node.port;
    return LEAT_KAFKA_PIECE_DONE;
}

static void find_on_done(struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_request *request = ask->request;
    const struct leat_kafka_find_coordinator_request *body = request->body;
    bool many = request->version >= 4;
    int32_t count = many && body->coordinator_keys.count > 0 ? body->coordinator_keys.count : 0;
    struct leat_kafka_find_coordinator_response *response =
        LEAT_KAFKA_MAKE(request, find_coordinator_response, 1);
    struct find *find = leat_kafka_pieces_take(request, sizeof *find, response, find_next);
    if (find != NULL)
        response->coordinators.at =
            LEAT_KAFKA_MAKE(request, find_coordinator_response_coordinator, (size_t)count);
    if (find == NULL || response->coordinators.at == NULL || !nodes_keep(request, find)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    find->rc = ask->home_request.rc;
    response->coordinators.count = count;
    if (!many) {
        struct leat_kafka_node node;
        response->error_code = coordinator_find(find, body->key_type, body->key, &node);
        response->error_message = refusal_words(response->error_code);
        response->node_id = node.id;
        response->host = node.host;
        response->port = node.port;
    }
    leat_kafka_pieces_start(&find->pieces);
}

void leat_kafka_handle_find_coordinator(struct leat_kafka_request *request)
{
    struct leat_kafka_group_ask *ask = leat_kafka_group_ask_make(request, LEAT_GROUPS_LIST);
    if (ask == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    ask->on_done = find_on_done;
    leat_kafka_group_home_make(ask);
}
