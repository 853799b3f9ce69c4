/* FindCoordinator: the node of a group's home. */
#include "kafka/cluster.h"
#include "kafka/group.h"

enum { KEY_GROUP = 0, KEY_TRANSACTION = 1 };

/* The node that owns the home; false: it is not known, or not up. */
static bool home_node(struct leat_kafka_request *request, struct leat_kafka_string key,
                      struct leat_kafka_node *out_node)
{
    struct leat_core *core = request->core;
    struct leat_kafka_node *nodes = leat_kafka_take(request, LEAT_NODES_MAX, sizeof *nodes);
    uint64_t owner = leat_kafka_group_home_owner(core, key);
    if (nodes == NULL || owner == 0) return false;
    int32_t id = leat_kafka_node_id(core, owner);
    uint32_t count = leat_kafka_nodes(core, nodes, LEAT_NODES_MAX);
    for (uint32_t i = 0; i < count && id >= 0; i++) {
        if (nodes[i].id != id) continue;
        *out_node = nodes[i];
        out_node->host = leat_kafka_keep(request, nodes[i].host);
        return out_node->host.text != NULL;
    }
    return false;
}

static int16_t coordinator_find(struct leat_kafka_request *request, leat_err rc, int8_t key_type,
                                struct leat_kafka_string key, struct leat_kafka_node *out_node)
{
    *out_node = (struct leat_kafka_node){.id = -1, .host = {"", 0}, .port = -1};
    if (key_type == KEY_TRANSACTION) return LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    if (key_type != KEY_GROUP) return LEAT_KAFKA_INVALID_REQUEST;
    if (rc != LEAT_OK || !home_node(request, key, out_node))
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

static void find_on_done(struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_request *request = ask->request;
    const struct leat_kafka_find_coordinator_request *body = request->body;
    bool many = request->version >= 4;
    int32_t count = many && body->coordinator_keys.count > 0 ? body->coordinator_keys.count : 0;
    struct leat_kafka_find_coordinator_response *response =
        LEAT_KAFKA_MAKE(request, find_coordinator_response, 1);
    struct leat_kafka_find_coordinator_response_coordinator *rows =
        LEAT_KAFKA_MAKE(request, find_coordinator_response_coordinator, (size_t)count);
    if (response == NULL || rows == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    struct leat_kafka_node node;
    response->coordinators.at = rows;
    response->coordinators.count = count;
    for (int32_t i = 0; i < count; i++) {
        rows[i].key = body->coordinator_keys.at[i];
        rows[i].error_code =
            coordinator_find(request, ask->set.rc, body->key_type, rows[i].key, &node);
        rows[i].error_message = refusal_words(rows[i].error_code);
        rows[i].node_id = node.id;
        rows[i].host = node.host;
        rows[i].port = node.port;
    }
    if (!many) {
        response->error_code =
            coordinator_find(request, ask->set.rc, body->key_type, body->key, &node);
        response->error_message = refusal_words(response->error_code);
        response->node_id = node.id;
        response->host = node.host;
        response->port = node.port;
    }
    leat_kafka_answer(request, response);
}

void leat_kafka_handle_find_coordinator(struct leat_kafka_request *request)
{
    struct leat_kafka_group_ask *ask = leat_kafka_group_ask_make(request, LEAT_SETS_LIST);
    if (ask == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    ask->on_done = find_on_done;
    leat_kafka_group_home_make(ask);
}
